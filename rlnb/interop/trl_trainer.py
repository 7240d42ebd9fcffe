"""TRL's GRPOTrainer with the advantages and the loss of an `Objective`.

    from trl import GRPOConfig
    from rlnb.interop.trl_trainer import ObjectiveTrainer
    from rlnb.objective import ZOO

    ObjectiveTrainer(
        model="Qwen/Qwen2.5-0.5B-Instruct",
        reward_funcs=reward,
        args=GRPOConfig(learning_rate=1e-6, num_generations=8),
        train_dataset=dataset,
        objective=ZOO["maxrl"],
    ).train()

Generation, rewards, data order, optimizer, checkpoints and engines are TRL's; two things are ours.
Once per rollout the rewards of all processes become advantages (`Objective.prepare`), and per
micro-batch the loss is `Objective.loss`. The denominators are the rollout's, over all processes:
with S = steps_per_generation micro-batches per process, N processes and g accumulated micro-batches
per optimizer step,

    loss of a micro-batch = N (S / g) sum over its tokens of c * ( - gate * surrogate) + terms,

of which N is undone by averaging gradients over processes and S / g makes each optimizer step stand
for a whole rollout, as in TRL. `local_token_mean` is the exception that TRL's `bnpo` makes: the
mean over the micro-batch, divided by g. What the loss needs travels with the rows, so that
shuffling, splitting, reuse and an evaluation in between do not disturb it.

Written against TRL 1.16, whose private methods it overrides; other versions are refused. Parity
with TRL over whole trainings: tests/parity/test_trl_trainer.py.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from rlnb.interop.trl_fit import kl_coefficient, refuse_needs, refuse_shape, refuse_words
from rlnb.interop.trl_metrics import metrics_of
from rlnb.interop.trl_pieces import as_tensors, from_tensors, in_pieces
from rlnb.objective.batch import Batch, Prepared
from rlnb.objective.composition import Objective
from rlnb.objective.gates import top_entropy
from rlnb.objective.naming import name_of
from rlnb.objective.terms import entropy_bonus
from rlnb.objective.weights import token_mean

__all__ = ["ObjectiveLoss"]

VERSION = "1.16"
# what a multimodal rollout hands to the model beside the tokens
BESIDE_TOKENS = (
    "pixel_values", "image_grid_thw", "num_images", "pixel_attention_mask", "spatial_shapes",
    "num_tiles", "image_sizes", "token_type_ids", "mm_token_type_ids", "image_position_ids",
)  # fmt: skip
FILE = "objective.json"  # in every checkpoint


class ObjectiveLoss:
    """What makes a trainer of TRL's train on `objective` instead of on TRL's loss words.

    `ObjectiveTrainer` is this before GRPOTrainer; it goes before a subclass of that likewise.

    objective: any composition whose needs TRL's rollout can fill (`trl_fit.PRODUCED`): no critic,
    no greedy answers, no top-k candidates. All other arguments are GRPOTrainer's. The words of
    `args` that touch the loss (`loss_type`, `beta`, `epsilon`, ...) stay at TRL's defaults, or say
    the same as the objective. TRL's reference model and old log-probabilities serve the objective;
    where TRL computes none and the objective looks at them, they are scored once per rollout. The
    engine's log-probabilities are vLLM's (or a `rollout_func`'s) where there are any; `generate`
    reports none and samples with the trainer's weights, whose log-probabilities then stand in.

    A part with statistics of the rows at hand (covariances, quantiles) takes them over one process'
    micro-batch; `top_entropy` over that of all processes, as TRL does.

    Raises ValueError, in one sentence, for a field TRL cannot fill, for loss words that contradict
    the objective, for a batch shape it cannot use, and for a checkpoint of another objective.
    """

    _tag_names = ["trl", "rlnb"]
    objective: Objective
    # TRL's
    accelerator: Any
    args: Any
    aux_loss_enabled: bool
    current_gradient_accumulation_steps: int
    get_high_entropy_mask: Any
    max_completion_length: int
    model: Any
    num_generations: int
    num_generations_eval: int
    reward_weights: torch.Tensor
    router_aux_loss_coef: float
    state: Any
    _get_output_dir: Any
    _get_per_token_logps_and_entropies: Any
    _logs: dict[str, Any]
    _metrics: dict[str, Any]

    @property
    def _trls(self) -> Any:
        """The trainer that this stands before, with its own methods."""
        return super()

    def __init__(
        self,
        model: Any,
        reward_funcs: Any = None,
        args: Any = None,
        *more: Any,
        objective: Objective,
        **keywords: Any,
    ) -> None:
        if not isinstance(objective, Objective):
            raise TypeError(
                f"objective must be an rlnb Objective, got {type(objective).__name__}: take one "
                "from rlnb.objective.ZOO, or from_trl(...).objective."
            )
        args = _trl().GRPOConfig() if args is None else args
        refuse_needs(objective)
        refuse_words(objective, args)
        refuse_shape(objective, args, "num_generations")
        if args.eval_strategy != "no" or keywords.get("eval_dataset") is not None:
            refuse_shape(objective, args, "num_generations_eval")
        self.objective = objective
        self._rewards = torch.empty(0)
        args = copy.copy(args)
        # beta is TRL's switch for a reference; its value is used nowhere else here
        args.beta = kl_coefficient(objective)
        self._trls.__init__(model, reward_funcs, args, *more, **keywords)

    # ---- once per rollout

    def _calculate_rewards(self, *given: Any, **keywords: Any) -> torch.Tensor:
        per_function = self._trls._calculate_rewards(*given, **keywords)  # of all processes
        unscored = torch.isnan(per_function).all(1)
        if bool(unscored.any()):
            raise ValueError(
                f"every reward function returned None for completion {int(unscored.nonzero()[0])} "
                "of the rollout: a baseline needs a number. Return 0 for it, or leave its prompt "
                "out of the dataset."
            )
        weights = self.reward_weights.to(per_function.device)
        self._rewards = (per_function * weights).nansum(1)
        return per_function

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        out = self._trls._generate_and_score_completions(inputs)
        training = self.model.training
        size = self.num_generations if training else self.num_generations_eval
        self._complete(out)
        logprobs = out.get("old_per_token_logps")
        if logprobs is None:  # nothing at this stage looks at them
            logprobs = torch.zeros_like(out["completion_ids"], dtype=self._rewards.dtype)
        entropies = out.pop("rollout_entropies", torch.zeros_like(logprobs))
        whole = self._of_all_processes(self._batch(out, logprobs, entropies, self._rewards, size))
        # Where every completion was cut off and masked, TRL goes on with a gradient of 0; so do we.
        prepared = self.objective.prepare(whole, check=bool(whole.mask.any()))
        rows, width = out["completion_ids"].shape
        first = self.accelerator.process_index * rows
        mine = prepared.rows(torch.arange(first, first + rows, device=whole.logprobs.device))
        out["advantages"] = mine.advantages[:, :width]
        out |= as_tensors(mine)
        self._log_advantages(prepared)
        return out

    def _complete(self, out: dict[str, Any]) -> None:
        """Adds the log-probabilities that the objective looks at and TRL did not compute.

        Decided by the composition, never by the data: a forward pass is for all processes or none.
        """
        objective = self.objective
        early = bool(objective.shape or objective.credit)  # parts that see the batch in `prepare`
        wanted = {"old_logprobs", "sampling_logprobs"} & objective.needs
        known = out.get("old_per_token_logps")
        if early or (wanted and known is None):
            with torch.no_grad():
                scored, out["rollout_entropies"] = self._scored(
                    self.model, out, self.args.per_device_train_batch_size
                )[:2]
            known = scored if known is None else known
        if known is None:
            return
        if early or wanted:
            out["old_per_token_logps"] = known
        if "sampling_logprobs" in objective.needs:
            reported = out.get("sampling_per_token_logps", known)
            # vLLM reports nan for a token that it could not score: there is no gap to correct
            out["sampling_per_token_logps"] = torch.where(reported.isnan(), known, reported)

    def _of_all_processes(self, batch: Batch) -> Batch:
        """The rollout of all processes, in their order: rows of a group may be on several."""
        if self.accelerator.num_processes == 1:
            return batch

        def gathered(local: torch.Tensor) -> torch.Tensor:
            padded = self.accelerator.pad_across_processes(local, dim=1)
            return self.accelerator.gather(padded.contiguous())

        names = ("logprobs", "completion_mask", "entropies", "old_logprobs", "ref_logprobs",
                 "sampling_logprobs")  # fmt: skip
        found = {name: value for name in names if (value := getattr(batch, name)) is not None}
        return batch.replace(**{name: gathered(value) for name, value in found.items()})

    def _log_advantages(self, prepared: Prepared) -> None:
        """The advantages in TRL's table of completions: the mean over a row's tokens."""
        lengths = prepared.batch.lengths.clamp(min=1)
        per_row = (prepared.advantages.sum(1) / lengths).tolist()
        logged = self._logs["advantages"]  # TRL has just written its own there
        for _ in range(min(len(per_row), len(logged))):
            logged.pop()
        logged.extend(per_row)

    # ---- once per micro-batch

    def _scored(
        self, model: Any, inputs: dict[str, Any], rows: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """Log-probabilities and entropies (B, T) in nats, and a mixture of experts' own loss.

        rows: rows per forward pass, all at once when None.
        """
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
        attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
        return self._get_per_token_logps_and_entropies(
            model,
            ids,
            attention,
            inputs["completion_ids"].size(1),
            batch_size=rows,
            compute_entropy=True,
            compute_aux_loss=self.aux_loss_enabled and rows is None,
            **{name: inputs.get(name) for name in BESIDE_TOKENS},
        )

    def _batch(
        self,
        inputs: dict[str, Any],
        logprobs: torch.Tensor,
        entropies: torch.Tensor | None,
        rewards: torch.Tensor | None,
        size: int,
    ) -> Batch:
        mask = inputs["completion_mask"]
        if "tool_mask" in inputs:
            mask = mask * inputs["tool_mask"]
        at_least = torch.promote_types(logprobs.dtype, torch.float32)
        return Batch(
            logprobs.to(at_least),
            mask,
            inputs["row_rewards"] if rewards is None else rewards,
            size,
            entropies=entropies,
            old_logprobs=inputs.get("old_per_token_logps"),
            ref_logprobs=inputs.get("ref_per_token_logps"),
            sampling_logprobs=inputs.get("sampling_per_token_logps"),
            max_completion_length=self.max_completion_length,
        )

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        training = self.model.training
        logprobs, entropies, aux_loss = self._scored(model, inputs)
        size = self.num_generations if training else self.num_generations_eval
        prepared = from_tensors(inputs, self._batch(inputs, logprobs, entropies, None, size))
        processes = self.accelerator.num_processes
        split = self.args.steps_per_generation if training else 1
        accumulated = self.current_gradient_accumulation_steps if training else 1
        objective = in_pieces(self.objective, processes * split, self._gate)
        loss = objective.loss(prepared) * (processes * split / accumulated)
        mode = "train" if training else "eval"
        if self.aux_loss_enabled:
            loss = loss + self.router_aux_loss_coef * aux_loss / accumulated
            self._log(mode, "aux_loss", self.accelerator.gather_for_metrics(aux_loss).mean())
        with torch.no_grad():
            self._log_loss(mode, objective, prepared, processes * split, accumulated)
            for name, value in metrics_of(self.objective, prepared, self.accelerator).items():
                self._log(mode, name, value)
        return loss

    def _gate(self, part: top_entropy) -> Callable[..., torch.Tensor]:
        """`top_entropy` with its threshold over the micro-batches of all processes."""

        def gate(batch: Batch, advantages: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
            entropies = batch.required("entropies", "top_entropy").detach()
            kept = self.get_high_entropy_mask(entropies, batch.mask, 1 - part.quantile)
            return kept.to(advantages.dtype)

        return gate

    def _log(self, mode: str, name: str, value: Any) -> None:
        self._metrics[mode][name].append(float(value))

    def _log_loss(
        self, mode: str, objective: Objective, prepared: Prepared, pieces: int, accumulated: int
    ) -> None:
        """TRL's `policy_loss`, beside an entropy bonus: the loss without it. TRL writes it down
        before dividing by the accumulated micro-batches, but for token_mean after that."""
        bonuses = [part for part in objective.terms if isinstance(part, entropy_bonus)]
        if not bonuses:
            return
        rest = tuple(part for part in objective.terms if part not in bonuses)
        policy = objective.replace(terms=rest).loss(prepared) * pieces
        if isinstance(objective.weights, token_mean):
            policy = policy / accumulated
        self._log(mode, "policy_loss", self.accelerator.gather(policy).nanmean())
        if mode == "train" and self.accelerator.sync_gradients:
            self._log(mode, "entropy_coef", sum(part.coefficient for part in bonuses))

    # ---- checkpoints

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self._trls._save_checkpoint(model, trial)
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial=trial))
            said = {"objective": repr(self.objective), "name": name_of(self.objective)}
            path = folder / f"checkpoint-{self.state.global_step}" / FILE
            path.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        path = None if checkpoint is None else Path(checkpoint) / FILE
        if path is not None and path.exists():
            before = json.loads(path.read_text(encoding="utf-8"))["objective"]
            if before != repr(self.objective):
                raise ValueError(
                    f"the checkpoint {path.parent.name} was written for {before}, and this trainer "
                    f"has {self.objective!r}: pass that objective, or start anew from its weights."
                )
        self._trls._load_optimizer_and_scheduler(checkpoint)


# ---- TRL itself, on first use


def __getattr__(name: str) -> Any:
    if name == "ObjectiveTrainer":
        return _trainer()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _trainer() -> type:
    words = {"__doc__": ObjectiveLoss.__doc__, "__module__": __name__}
    return type("ObjectiveTrainer", (ObjectiveLoss, _trl().GRPOTrainer), words)


def _trl() -> Any:
    """TRL, which learners do not have and which takes seconds to import."""
    try:
        trl = import_module("trl")
    except ImportError as error:
        raise ImportError(
            f"ObjectiveTrainer needs TRL {VERSION}, which cannot be imported here ({error}): "
            "pip install trl==1.16.0"
        ) from error
    if not trl.__version__.startswith(VERSION + "."):
        raise ImportError(
            f"ObjectiveTrainer overrides private methods of TRL {VERSION}, and this is TRL "
            f"{trl.__version__}: pip install trl==1.16.0"
        )
    return trl
