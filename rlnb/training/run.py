"""What a run holds between steps, and how it is put together before the first."""

from __future__ import annotations

import copy
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from rlnb.objective import Batch, Objective, Prepared, value_loss
from rlnb.training.distributed import shared
from rlnb.training.errors import BadInput
from rlnb.training.models.adapters import add_adapters, has_adapters, without_adapters
from rlnb.training.models.critic import Critic
from rlnb.training.models.loading import check_vocabulary
from rlnb.training.models.optimizers import adamw, loss_scaler
from rlnb.training.models.precision import (
    AUTOCAST,
    SAMPLER_DTYPES,
    autocast,
    compiled_layers,
    recomputed_layers,
    refresh,
    sampler_copy,
)
from rlnb.training.prompt_pool import PromptPool
from rlnb.training.recipe import Recipe
from rlnb.training.rewards import Filter, Reward, keep_all
from rlnb.training.sampling.graph_decoder import sampler_for
from rlnb.training.sampling.prompts import longest_prompt
from rlnb.training.sampling.sampler import Rollout
from rlnb.training.sampling.scoring import refuse_mismatch
from rlnb.training.tasks import Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["PER_CANDIDATE", "PRODUCED", "Run", "Weights", "check_objective", "prepare", "start"]

PRODUCED = {
    "old_logprobs", "ref_logprobs", "sampling_logprobs", "entropies", "values", "old_values",
    "returns", "greedy_rewards", "max_completion_length", "generator",
    "topk_logprobs", "old_topk_logprobs", "sampled_rank",
}  # fmt: skip
PER_CANDIDATE = {"topk_logprobs", "old_topk_logprobs"}

Weights = dict[str, Tensor]


@dataclass
class Run:
    """What a run holds between steps. `model` is trained in place.

    With staleness, `past` holds the weights of the last updates, oldest first, and `behaviour` is
    the model that they are loaded into to sample and to score; otherwise it is `model` itself.
    With a sampler_dtype, `engine` is the copy of `behaviour` that is sampled from. `reference` is a
    frozen copy of the first weights, where the objective needs one; with adapters there is none,
    because the base is there (`referring`). scaler: of the loss, under float16 autocast.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    task: Task
    objective: Objective
    recipe: Recipe
    reward: Reward
    keep: Filter
    sampler: Callable[..., Rollout]
    reference: PreTrainedModel | None
    modules: nn.ModuleDict
    optimizer: torch.optim.Optimizer
    rng: random.Random
    generator: torch.Generator
    behaviour: PreTrainedModel
    pool: PromptPool | None = None
    num_tokens: int = 0
    past: deque[Weights] = field(default_factory=deque)
    engine: PreTrainedModel | None = None
    scaler: torch.amp.GradScaler = field(
        default_factory=lambda: torch.amp.GradScaler("cpu", enabled=False)
    )

    @property
    def critic(self) -> Critic | None:
        """The critic, where the objective needs `values`."""
        return self.modules["critic"] if "critic" in self.modules else None

    def sampling_model(self) -> PreTrainedModel:
        """What rollouts are drawn from: `behaviour`, or its copy of lower precision, up to date."""
        if self.engine is None:
            return self.behaviour
        refresh(self.engine, self.behaviour)
        return self.engine

    @property
    def adapted(self) -> bool:
        """Whether factors train beside frozen weights."""
        return has_adapters(self.model)

    @contextmanager
    def referring(self) -> Iterator[PreTrainedModel]:
        """The model that a KL is taken to: the reference, or the base of the adapters."""
        if self.reference is not None:
            yield self.reference
        else:
            with without_adapters(self.model):
                yield self.model

    @contextmanager
    def precision(self) -> Iterator[None]:
        """Goes around every forward pass whose log-probabilities or values count."""
        others = (self.reference, self.behaviour if self.behaviour is not self.model else None)
        with ExitStack() as stack:
            stack.enter_context(autocast(self.model.device, AUTOCAST[self.recipe.autocast]))
            for module in (self.modules, *others):
                if module is not None:
                    stack.enter_context(compiled_layers(module, self.recipe.torch_compile))
            yield

    def fall_behind(self) -> int:
        """Loads the weights of `staleness` updates ago into `behaviour`; how many ago it was.

        Fewer during the first steps. What is kept is weights, not finished rollouts: all else of a
        step, such as filters, pools and refills, then stays in that step, and a resumed run needs
        these tensors only. It costs `staleness` copies of the model. An asynchronous trainer keeps
        the rollouts, and has no choice.
        """
        if self.recipe.staleness == 0:
            return 0
        state = self.model.state_dict()
        if self.adapted:  # the rest is frozen
            state = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.past.append({k: v.detach().clone() for k, v in state.items()})
        while len(self.past) > self.recipe.staleness + 1:
            self.past.popleft()
        self.behaviour.load_state_dict(self.past[0], strict=not self.adapted)
        return len(self.past) - 1


def start(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    task: Task,
    objective: Objective,
    recipe: Recipe,
    *,
    reward: Reward | None = None,
    keep: Filter = keep_all,
    sampler: Callable[..., Rollout] | None = None,
    pool: PromptPool | None = None,
) -> Run:
    """A run before its first step. Raises BadInput if task, model and objective do not fit."""
    check_vocabulary(tokenizer, task)
    if pool is not None and len(pool.remaining) < recipe.prompts:
        raise BadInput(
            f"pool: it has {len(pool.remaining)} prompts, but a step takes {recipe.prompts}; make "
            "it larger, or prompts smaller"
        )
    refuse_mismatch(recipe.sampling, recipe.temperature)
    check_objective(objective, recipe)
    if recipe.lora_r:
        add_adapters(model, recipe.lora_r, recipe.lora_alpha, dtype=recipe.dtype, seed=recipe.seed)
    modules = nn.ModuleDict({"policy": model})
    if "values" in objective.needs:
        modules["critic"] = Critic(model)
        if not any(isinstance(part, value_loss) for part in objective.terms):
            # The named ppo says what the policy does; a critic that is not trained stays 0.
            objective = objective.replace(terms=(*objective.terms, value_loss(0.5)))
    reference = None
    if "ref_logprobs" in objective.needs and not has_adapters(model):
        reference = copy.deepcopy(model).requires_grad_(False)
    with recomputed_layers(modules, recipe.gradient_checkpointing):
        pass  # refuses a model that cannot
    sampler = sampler or sampler_for(model.device)
    if hasattr(sampler, "expect"):  # a decoder whose memory should fit every prompt from the start
        sampler.expect(longest_prompt(tokenizer, task, None if pool is None else pool.problems))
    lower = SAMPLER_DTYPES[recipe.sampler_dtype]
    trained = [parameter for parameter in modules.parameters() if parameter.requires_grad]
    for parameter in trained:
        # A gradient that is there and 0: a step without any signal is still a step of AdamW.
        parameter.grad = torch.zeros_like(parameter)
    return Run(
        model=model,
        tokenizer=tokenizer,
        task=task,
        objective=objective,
        recipe=recipe,
        reward=reward or task.verify,
        keep=keep,
        sampler=shared(sampler, modules, objective, recipe.prompts),
        reference=reference,
        modules=modules,
        optimizer=adamw(
            trained,
            recipe.optim,
            recipe.learning_rate,
            recipe.betas,
            recipe.weight_decay,
            model.device,
        ),  # fmt: skip
        rng=random.Random(recipe.seed),
        generator=torch.Generator(model.device).manual_seed(recipe.seed),
        behaviour=copy.deepcopy(model).requires_grad_(False) if recipe.staleness else model,
        pool=pool,
        engine=None if lower is None else sampler_copy(model, lower),
        scaler=loss_scaler(model.device, recipe.autocast),
    )


def check_objective(objective: Objective, recipe: Recipe) -> None:
    """Asks the objective to prepare a batch of this recipe's shape, before anything is sampled.

    Raises BadInput if it cannot, for example a group method with num_generations=1.
    """
    if missing := sorted(objective.needs - PRODUCED):
        raise BadInput(f"objective: it needs {', '.join(missing)}, which the loop does not produce")
    rows = recipe.prompts * recipe.num_generations
    zero = torch.zeros(rows, 1)
    given = {name: zero for name in objective.needs & PRODUCED}
    given |= {name: zero[..., None] for name in objective.needs & PER_CANDIDATE}
    if "greedy_rewards" in given:
        given["greedy_rewards"] = zero[:, 0]
    batch = Batch(zero, zero + 1, zero[:, 0], recipe.num_generations, **given)
    prepare(objective, batch.replace(max_completion_length=recipe.max_completion_length))


def prepare(objective: Objective, batch: Batch) -> Prepared:
    """`objective.prepare`; BadInput where the batch, its rewards for example, does not suit it."""
    try:
        return objective.prepare(batch)
    except ValueError as error:
        raise BadInput(f"objective: {error}") from error
