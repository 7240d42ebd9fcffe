"""The arms of every row of data/race.json: which objective, which recipe, which learning rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlnb.objective import (
    ANNEX,
    ZOO,
    cispo,
    clip,
    constant_length,
    engine_ratio,
    entropy_bonus,
    group_center,
    group_zscore,
    k3,
    ratio,
    sequence,
    token,
    token_mean,
)
from rlnb.objective.composition import Objective
from rlnb.training.recipe import Recipe
from rlnb.training.studies.race.large import LargeArm
from rlnb.training.studies.race.small import Arm
from rlnb.training.studies.race.world import World

__all__ = ["ROWS", "Row"]


FIVE = (100, 101, 102, 103, 104)


@dataclass(frozen=True)
class Row:
    """arms, per optimizer the learning rates to try, and the seeds they are tuned on."""

    arms: Mapping[str, Arm | LargeArm]
    rates: dict[str, tuple[float, ...]]
    tuning: tuple[int, ...] = FIVE


# a factor of 1.7 or so from one to the next; pilots lay at 1e-3, 3e-3, 1e-2 and 3e-2
ADAM = (3e-4, 6e-4, 1e-3, 1.8e-3, 3e-3, 5.5e-3, 1e-2, 1.8e-2)
SGD = (0.03, 0.06, 0.1, 0.18, 0.3, 0.55, 1.0)
GRPO = Objective(group_zscore(), clip(0.2), token_mean)
NONE = GRPO.replace(surrogate=ratio())
TAIL = World("tail", prompts=8, length=16, words=3)
ROUTER = World(experts=8)

# one advantage and one average; only ratio, surrogate and gate differ
STALE = {
    "GRPO": GRPO,
    "CISPO": GRPO.replace(surrogate=cispo(5.0)),
    "SAPO": GRPO.replace(surrogate=ZOO["sapo"].surrogate),
    "GSPO": GRPO.replace(surrogate=clip(3e-4, high=4e-4), ratio=sequence()),
    "GSPO wide": GRPO.replace(surrogate=clip(0.03, high=0.04), ratio=sequence()),
    "DPPO": GRPO.replace(surrogate=ZOO["dppo"].surrogate, ratio=token("sampling"),
                         gates=ZOO["dppo"].gates),
    "no clip": NONE,
}  # fmt: skip


CHAIN = Recipe(
    prompts=8, steps=40, staleness=4, eval_every=10, eval_prompts=100, eval_greedy=False,
    checkpoint_every=0,
)  # fmt: skip
PICK = Recipe(steps=80, eval_every=80, eval_prompts=100, checkpoint_every=0)


def _constant(objective: Objective) -> Objective:
    """With the mean-only advantage and a constant length."""
    return objective.replace(advantage=group_center(), weights=constant_length())


def _clip() -> Row:
    arms = {}
    for updates, cut in ((2, (2, 1)), (8, (4, 2)), (32, (4, 8))):
        for name, objective in (("clip", GRPO), ("no clip", NONE)):
            arms[f"{name}, {updates} updates"] = Arm(
                objective, minibatches=cut[0], passes=cut[1], answers=64 * 40
            )
    return Row(arms, {"Adam": ADAM})


def _higher() -> Row:
    arms = {}
    for optimizer in ("Adam", "SGD"):
        for edge in (0.2, 0.28):
            arms[f"edge {edge}, {optimizer}"] = Arm(
                GRPO.replace(surrogate=clip(0.2, high=edge)),
                optimizer=optimizer,
                ladder=optimizer,
                minibatches=4,
                passes=2,
            )
    return Row(arms, {"Adam": (1.8e-3,), "SGD": (0.1,)})


def _length() -> Row:
    plain = Objective(group_zscore(), clip(0.2), constant_length())
    weights = {"1/T": ZOO["grpo"].weights, "all tokens alike": token_mean,
               "constant": constant_length()}  # fmt: skip
    arms = {
        name: Arm(plain.replace(weights=c), world=TAIL, answers=64 * 100)
        for name, c in weights.items()
    }
    return Row(arms, {"Adam": (3e-3,)})


def _passk() -> Row:
    arms = {
        "GRPO": GRPO,
        "MaxRL": ZOO["maxrl"],
        "SimKO": ANNEX["simko"],
        "Dr. GRPO": ZOO["dr_grpo"],
        "entropy bonus": GRPO.replace(terms=entropy_bonus(0.01)),
    }
    return Row({n: Arm(o, answers=64 * 100) for n, o in arms.items()}, {"Adam": ADAM})


def _std_scales() -> Row:
    arms = {}
    for name, advantage in (("z-score", group_zscore()), ("mean only", group_center())):
        for optimizer in ("Adam", "SGD"):
            arms[f"{name}, {optimizer}"] = Arm(
                GRPO.replace(advantage=advantage),
                pay="scales",
                optimizer=optimizer,
                ladder=optimizer,
            )
    return Row(arms, {"Adam": ADAM, "SGD": SGD})


def _dynamic() -> Row:
    arms = {}
    for name, world in (("easy", World(low=0.1)), ("hard", World(low=0.002, high=0.05))):
        for how in ("plain", "refill"):
            arms[f"{how}, {name} base"] = Arm(GRPO, world=world, refill=how == "refill")
    return Row(arms, {"Adam": ADAM})


def _precision() -> Row:
    old = Arm(GRPO)
    arms = {"exact": old, **{f"{b} bits": replace(old, bits=b) for b in (7, 3, 2)}}
    for name, objective in (
        ("cut at 2", GRPO.replace(gates=engine_ratio("token", "truncate", high=2.0))),
        ("mask", GRPO.replace(gates=engine_ratio("token", "mask", 0.5, 2.0))),
        ("ratio to sampler", GRPO.replace(ratio=token("sampling"))),
    ):
        arms[f"2 bits, {name}"] = Arm(objective, bits=2)
    return Row(arms, {"Adam": (5.5e-3,)})


def _router() -> Row:
    arms = {}
    for place, world in (("router", ROUTER), ("dense", World())):
        for name in ("GRPO", "GSPO wide"):
            arms[f"{name}, {place}"] = Arm(STALE[name], world=world, minibatches=4, passes=2)
    arms["GRPO with replay, router"] = Arm(GRPO, world=ROUTER, replay=True, minibatches=4, passes=2)
    return Row(arms, {"Adam": (3e-4, 6e-4, 1e-3, 1.8e-3, 3e-3)}, (100, 101, 102))


ROWS: dict[str, Row] = {
    "clip": _clip(),
    "stale": Row(
        {f"{n}, k = {k}": Arm(o, stale=k) for k in (4, 16) for n, o in STALE.items()},
        {"Adam": ADAM},
    ),
    "higher": _higher(),
    "length": _length(),
    "baseline": Row(
        {
            "no baseline": Arm(ZOO["reinforce"]),
            "batch mean": Arm(ZOO["reinforce_batch_mean"]),
            "leave one out": Arm(ZOO["rloo"]),
        },
        {"Adam": ADAM},
    ),
    "passk": _passk(),
    "std_scales": _std_scales(),
    "std_graded": Row(
        {
            "z-score": Arm(GRPO, pay="graded", answers=64 * 120),
            "mean only": Arm(GRPO.replace(advantage=group_center()), pay="graded",
                             answers=64 * 120),
        },
        {"Adam": (3e-3,)},
    ),
    "dynamic": _dynamic(),
    "reuse": Row(
        {f"{n} pass{'es' * (n > 1)}": Arm(GRPO, passes=n, answers=64 * 20) for n in (1, 2, 4, 8)},
        {"Adam": ADAM},
    ),
    "kl": Row(
        {
            f"beta {b:g}": Arm(GRPO.replace(terms=k3(b)) if b else GRPO)
            for b in (0.0, 0.001, 0.01, 0.04, 0.1, 0.4)
        },
        {"Adam": ADAM},
    ),
    "precision": _precision(),
    "router": _router(),
    "stale_chain": Row(
        {f"{n}, k = 4": LargeArm(_constant(o), CHAIN) for n, o in STALE.items() if n != "GSPO"},
        {"AdamW": (1e-4, 3e-4, 6e-4)},
        (100, 101),
    ),
    # the rates are those that stale_chain's arms were tuned to: 3e-4 for every one
    "stale_chain_bases": Row(
        {f"{n}, k = 4": LargeArm(_constant(o), CHAIN, bases=(1, 2)) for n, o in STALE.items()
         if n != "GSPO"},
        {"AdamW": (3e-4,)},
    ),
    "length_pick": Row(
        {
            "1/T": LargeArm(ZOO["grpo"].replace(terms=()), PICK, "pick", "model_pick"),
            "constant": LargeArm(
                ZOO["grpo"].replace(terms=(), weights=constant_length()), PICK, "pick", "model_pick"
            ),
        },
        {"AdamW": (3e-4,)},
    ),
}  # fmt: skip
