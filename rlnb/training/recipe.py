"""The numbers of a training run, and nothing else."""

from dataclasses import dataclass

from rlnb.training.errors import BadInput
from rlnb.training.sampler import Sampling


@dataclass(frozen=True)
class Recipe:
    """The numbers of a run. The defaults are the main recipe: on-policy, 16 prompts x 8 answers.

    minibatches x num_iterations optimizer steps follow each rollout; 1 x 1 is on-policy, where the
    ratio is exactly 1. micro_batch: rows per forward pass, which changes memory and speed, not the
    gradient (except of parts that say they cannot be split). skip_silent_rows: leave out the
    forward pass of rows whose gradient is exactly 0 (advantage 0, and no term beside the policy's).
    eval_every and checkpoint_every count steps; 0 turns them off.
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
    eval_every: int = 10
    eval_prompts: int = 250
    eval_generations: int = 4
    checkpoint_every: int = 10
    seed: int = 0

    def __post_init__(self):
        whole = ("prompts", "num_generations", "max_completion_length", "minibatches",
                 "num_iterations", "micro_batch", "eval_prompts", "eval_generations")  # fmt: skip
        for name in whole:
            if getattr(self, name) < 1:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected 1 or more")
        for name in ("steps", "learning_rate", "eval_every", "checkpoint_every"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected 0 or more")
        if self.minibatches > self.prompts * self.num_generations:
            raise BadInput(
                f"minibatches: got {self.minibatches}, but a rollout has only "
                f"{self.prompts * self.num_generations} rows"
            )

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_k, self.top_p, self.max_completion_length)

    @property
    def on_policy(self) -> bool:
        """One optimizer step per rollout."""
        return self.minibatches == self.num_iterations == 1
