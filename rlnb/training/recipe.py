"""The numbers of a training run, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from rlnb.training.errors import BadInput
from rlnb.training.models.precision import AUTOCAST, SAMPLER_DTYPES
from rlnb.training.sampling.sampler import Sampling

__all__ = ["Recipe"]


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

    Precision and memory (`precision`); the weights and AdamW's moments stay as loaded, float32:
    sampler_dtype: rollouts come from a copy of the weights in bfloat16 or float16, made anew before
    each; the old log-probabilities are then the trainer's, and those of the copy are known as the
    sampler's. "same" samples from the weights themselves. autocast: "bfloat16" for the matrix
    products of scoring and training. gradient_checkpointing: layers are computed again in backward,
    which saves their activations. tf32: float32 products in TF32 on a GPU. torch_compile: the
    layers' elementwise work fused into few kernels, equal up to rounding.

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
    minibatches: int = 1
    num_iterations: int = 1
    micro_batch: int = 64
    skip_silent_rows: bool = True
    staleness: int = 0
    max_resample: int = 0
    mask_truncated_completions: bool = False
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
        whole = ("prompts", "num_generations", "max_completion_length", "minibatches",
                 "num_iterations", "micro_batch", "eval_prompts", "eval_generations")  # fmt: skip
        for name in whole:
            if getattr(self, name) < 1:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected 1 or more")
        for name in ("steps", "learning_rate", "eval_every", "checkpoint_every", "staleness",
                     "max_resample", "record_rollouts"):  # fmt: skip
            if getattr(self, name) < 0:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected 0 or more")
        for name, known in (("sampler_dtype", SAMPLER_DTYPES), ("autocast", AUTOCAST)):
            if getattr(self, name) not in known:
                raise BadInput(
                    f"{name}: got {getattr(self, name)!r}, expected one of {', '.join(known)}"
                )
        if self.minibatches > self.prompts * self.num_generations:
            raise BadInput(
                f"minibatches: got {self.minibatches}, but a rollout has only "
                f"{self.prompts * self.num_generations} rows"
            )

    @property
    def sampling(self) -> Sampling:
        """How answers are drawn."""
        return Sampling(self.temperature, self.top_k, self.top_p, self.max_completion_length)

    @property
    def on_policy(self) -> bool:
        """One optimizer step per rollout, which the weights before that step have sampled."""
        return self.minibatches == self.num_iterations == 1 and self.staleness == 0
