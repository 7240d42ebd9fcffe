"""The numbers of a training run, and of a base training, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, inf, pi

from rlnb.training.errors import BadInput
from rlnb.training.models.optimizers import OPTIMIZERS
from rlnb.training.models.precision import AUTOCAST, DTYPES, SAMPLER_DTYPES
from rlnb.training.sampling.sampler import Sampling

__all__ = ["SCHEDULES", "BaseRecipe", "Recipe"]

SCHEDULES = ("constant", "linear", "cosine")


@dataclass(frozen=True)
class Recipe:
    """The numbers of a run. The defaults are the main recipe: on-policy, 16 prompts x 8 answers.

    minibatches x num_iterations optimizer steps follow each rollout; 1 x 1 is on-policy, where the
    ratio is exactly 1. micro_batch: rows per forward pass, which changes memory and speed, not the
    gradient (except of parts that say they cannot be split). skip_silent_rows: leave out the
    forward pass of rows whose gradient is exactly 0 (advantage 0, and no term beside the policy's).

    Off-policy on purpose:
    staleness: rollouts come from the weights of exactly so many steps ago, fewer at the start; the
    ratio is taken against those. max_resample: at most so many further rounds of `prompts` prompts,
    until there are `prompts` groups whose rewards differ; surplus groups are dropped, and if the
    rounds end first the step trains on those there are (DAPO's dynamic sampling; verl's
    max_num_gen_batches counts the first round as well, and stops the run instead). 0 samples once
    and trains on all groups. mask_truncated_completions: answers cut off at max_completion_length
    stay out of the loss, not out of their group's baseline (DAPO's overlong filtering; TRL's name);
    whether such a row counts in a denominator is up to the objective's weights.

    The learning rate (`rate`): a linear warm-up over the first warmup_steps steps, then as
    lr_scheduler_type says: constant, or linear or half a cosine down to 0 after the last step
    (TRL's names and shapes; a step is a rollout with all its updates).

    LoRA (`models.adapters`; needs peft): lora_r is the rank of the factors, 0 trains all weights;
    lora_alpha / lora_r their scale. The base is frozen, and is the reference where the objective
    has one; dtype is the type it is held in, and can be lower than float32 only with lora_r. The
    final model is an adapter; with merge_adapter, OUT/merged is a whole model beside it.

    Precision and memory (`precision`); weights that train stay float32, as do AdamW's moments:
    optim: "adamw", or "adamw8bit" with moments of one byte (needs bitsandbytes). sampler_dtype:
    rollouts come from a copy of the weights in bfloat16 or float16, made anew before each; the old
    log-probabilities are then the trainer's, and those of the copy are known as the sampler's.
    "same" samples from the weights themselves. autocast: "bfloat16" for the matrix products of
    scoring and training, or "float16" for a card without it, with the loss scaled so that small
    gradients survive: an update that overflows is computed again at half the scale.
    gradient_checkpointing: layers are computed again in backward, which saves their activations.
    tf32: float32 products in TF32 on a GPU. torch_compile: the layers' elementwise work fused into
    few kernels, equal up to rounding.

    eval_every and checkpoint_every count steps; 0 turns them off. eval_greedy: one more answer per
    held-out prompt, at temperature 0. record_rollouts: the answers to so many prompts are recorded
    token by token, at step 1 and at each step that ends in an evaluation.
    """

    steps: int = 40
    prompts: int = 16
    num_generations: int = 8
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    max_completion_length: int = 72
    learning_rate: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    warmup_steps: int = 0
    lr_scheduler_type: str = "constant"
    optim: str = "adamw"
    minibatches: int = 1
    num_iterations: int = 1
    micro_batch: int = 64
    skip_silent_rows: bool = True
    staleness: int = 0
    max_resample: int = 0
    mask_truncated_completions: bool = False
    lora_r: int = 0
    lora_alpha: float = 32.0
    merge_adapter: bool = False
    dtype: str = "float32"
    sampler_dtype: str = "same"
    autocast: str = "off"
    gradient_checkpointing: bool = False
    tf32: bool = False
    torch_compile: bool = False
    eval_every: int = 10
    eval_prompts: int = 250
    eval_generations: int = 4
    eval_greedy: bool = True
    checkpoint_every: int = 10
    record_rollouts: int = 0
    seed: int = 0

    def __post_init__(self):
        for name, legal, expected in (  # nan is below and above nothing, and so never legal
            ("learning_rate", 0.0 <= self.learning_rate <= 1e9, "a number from 0 to 1e9"),
            ("weight_decay", 0.0 <= self.weight_decay <= 1e9, "a number from 0 to 1e9"),
            ("max_grad_norm", 0.0 < self.max_grad_norm < inf, "a finite number above 0"),
            ("lora_alpha", 0.0 < self.lora_alpha < inf, "a finite number above 0"),
            ("betas", all(0.0 <= beta < 1.0 for beta in self.betas), "two numbers in [0, 1)"),
            # torch takes 64 bits, and Python draws the same numbers for -1 as for 1
            ("seed", 0 <= self.seed < 2**64, "a whole number from 0 to 2**64 - 1"),
        ):
            if not legal:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected {expected}")
        whole = ("prompts", "num_generations", "max_completion_length", "minibatches",
                 "num_iterations", "micro_batch", "eval_prompts", "eval_generations")  # fmt: skip
        for name in whole:
            if getattr(self, name) < 1:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected 1 or more")
        for name in ("steps", "eval_every", "checkpoint_every", "staleness", "max_resample",
                     "record_rollouts", "warmup_steps", "lora_r"):  # fmt: skip
            if getattr(self, name) < 0:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected 0 or more")
        for name, known in (
            ("sampler_dtype", SAMPLER_DTYPES), ("autocast", AUTOCAST), ("dtype", DTYPES),
            ("lr_scheduler_type", SCHEDULES), ("optim", OPTIMIZERS),
        ):  # fmt: skip
            if getattr(self, name) not in known:
                raise BadInput(
                    f"{name}: got {getattr(self, name)!r}, expected one of {', '.join(known)}"
                )
        if self.minibatches > self.prompts * self.num_generations:
            raise BadInput(
                f"minibatches: got {self.minibatches}, but a rollout has only "
                f"{self.prompts * self.num_generations} rows"
            )
        if self.dtype != "float32" and not self.lora_r:
            raise BadInput(
                f"dtype: got {self.dtype!r}, but weights that train stay float32, because AdamW's "
                "small steps would be rounded away; freeze them with lora_r, or lower the memory "
                "with sampler_dtype, autocast and gradient_checkpointing"
            )
        if self.merge_adapter and not self.lora_r:
            raise BadInput("merge_adapter: there is no adapter to merge; give lora_r as well")
        _ = self.sampling  # refuses its own numbers

    @property
    def sampling(self) -> Sampling:
        """How answers are drawn."""
        return Sampling(self.temperature, self.top_k, self.top_p, self.max_completion_length)

    def rate(self, step: int) -> float:
        """Learning rate of step 1 ... steps: warm-up, then the schedule.

            step <= warmup_steps     learning_rate * step / warmup_steps
            afterwards               learning_rate * f((step - 1 - warmup) / (steps - warmup))

        with f(x) = 1, 1 - x or (1 + cos(pi x)) / 2.

        >>> recipe = Recipe(steps=6, learning_rate=1.0, warmup_steps=2, lr_scheduler_type="linear")
        >>> [recipe.rate(step) for step in range(1, 7)]
        [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
        """
        if step <= self.warmup_steps:
            return self.learning_rate * step / self.warmup_steps
        x = (step - 1 - self.warmup_steps) / max(1, self.steps - self.warmup_steps)
        shape = {"constant": 1.0, "linear": 1.0 - x, "cosine": (1.0 + cos(pi * x)) / 2}
        return self.learning_rate * shape[self.lr_scheduler_type]

    @property
    def on_policy(self) -> bool:
        """One optimizer step per rollout, which the weights before that step have sampled."""
        return self.minibatches == self.num_iterations == 1 and self.staleness == 0


@dataclass(frozen=True)
class BaseRecipe:
    """The base training: AdamW with warm-up, then linear decay of the learning rate to a tenth."""

    steps: int = 1000
    batch: int = 128
    micro_batches: int = 4
    learning_rate: float = 3e-3
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    warmup: int = 50
    max_grad_norm: float = 1.0
    seed: int = 0
    preset: str = "tiny"

    def __post_init__(self):
        for name, legal, expected in (
            ("learning_rate", 0.0 <= self.learning_rate <= 1e9, "a number from 0 to 1e9"),
            ("weight_decay", 0.0 <= self.weight_decay <= 1e9, "a number from 0 to 1e9"),
            ("max_grad_norm", 0.0 < self.max_grad_norm < inf, "a finite number above 0"),
            ("seed", 0 <= self.seed < 2**64, "a whole number from 0 to 2**64 - 1"),
        ):
            if not legal:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected {expected}")
        for name, least in (("steps", 0), ("batch", 1), ("micro_batches", 1), ("warmup", 1)):
            if getattr(self, name) < least:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected {least} or more")

    def rate(self, step: int) -> float:
        """Learning rate of step 0 ... steps - 1."""
        warm = min(1.0, (step + 1) / self.warmup)
        return self.learning_rate * warm * (1 - 0.9 * step / self.steps)
