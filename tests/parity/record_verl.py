"""Ask verl 0.9.1 itself for its losses, gradients and advantages, and write them down.

verl wants Ray, TensorDict and more, which is too much for a test run, so `verl_cases.json` is
committed and this script regenerates it. In a throwaway folder DIR:

    pip install --no-deps verl==0.9.1 --target DIR
    python tests/parity/record_verl.py DIR            # rewrites verl_cases.json
    python tests/parity/record_verl.py DIR --check    # exit status 1 if anything would change

torch, numpy and transformers come from the environment. What verl imports and the losses never
call (`STUBBED`) is replaced by empty modules where it is missing. Losses go through verl's own
`ppo_loss`, which adds KL and entropy to the policy loss; what unpacks a TensorDict there is
bypassed. Inputs are float64 and masks what the trainer passes: bool to losses, int64 to advantages.
Two of verl's constants pass through float32 then. The 1e-8 it adds to token counts is lost
(5 + 1e-8 is 5), and Bessel's n/(n-1) is rounded, unless n - 1 is a power of two: the batch of the
advantages has 17 tokens.

Random choices: `clip_cov` draws its tokens with randperm. Recorded are only cases in which the
draw cannot matter: every eligible token is drawn (clip_cov_ratio=1), none is eligible, or one.

The file: one case per line. `gradient` is d loss / d log_prob on the unmasked tokens, row by row;
on masked tokens verl's is exactly 0, which is asserted here. `denominators` says what the trainer
passed: "local" nothing, "global" global_batch_size and batch_num_tokens of all rows, while the
rows come as two micro-batches (`loss` then has two entries, which add up).

`methods` are the named methods that verl can say, in the words that `to_verl` gives them: verl's
estimator on the rewards, then its loss on the whole batch with the totals passed.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import json
import math
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from rlnb.interop import to_verl
from rlnb.objective import ANNEX, ZOO

VERSION = "0.9.1"
OUT = Path(__file__).with_name("verl_cases.json")
STUBBED = {
    "accelerate",
    "cachetools",
    "codetiming",
    "datasets",
    "fastapi",
    "omegaconf",
    "orjson",
    "pandas",
    "peft",
    "ray",
    "tensordict",
    "torchdata",
    "uvicorn",
}


class _Anything(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing


class _Nothing(metaclass=_Anything):
    """Stands for any class, submodule or decorator of a stubbed module."""

    def __init__(self, *args: Any, **words: Any) -> None:
        pass

    def __call__(self, decorated: Any) -> Any:
        return decorated


class _Stub(types.ModuleType):
    """A module in which every name is a class of its own that does nothing."""

    __path__: list = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        inner = sys.modules.get(f"{self.__name__}.{name}") or type(name, (_Nothing,), {})
        setattr(self, name, inner)
        return inner


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in STUBBED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Stub(spec.name)

    def exec_module(self, module):
        pass


# ---- inputs: every number is rounded to six decimals, so the file is the whole truth


def _worked() -> dict:
    """One prompt, two answers of 3 and 5 tokens: the example with numbers made by hand."""
    log = [
        [[math.log(p) for p in row] + [-0.5] * (5 - len(row)) for row in rows]
        for rows in (
            [[0.55, 0.14, 0.82], [0.45, 0.06, 0.88, 0.15, 0.72]],
            [[0.50, 0.10, 0.80], [0.60, 0.05, 0.90, 0.30, 0.70]],
            [[0.50, 0.12, 0.78], [0.58, 0.05, 0.91, 0.25, 0.70]],
        )
    ]
    return {
        "num_generations": 2,
        "mask": [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]],
        "log_prob": log[0],
        "old_log_prob": log[1],
        "ref_log_prob": log[2],
        "advantages": [[1.0] * 5, [-1.0] * 5],
    }


MASK = [
    [1, 1, 1, 0, 1, 1],  # a hole: tool output
    [1, 1, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0],  # a truncated answer, masked as a whole
    [1, 1, 1, 1, 1, 1],
    [1, 0, 0, 1, 1, 0],
    [1, 0, 0, 0, 0, 0],
]


def _ragged(seed: int, move: float, per_token: bool) -> dict:
    """Two prompts, three answers each. move: how far pi_old is, in nats, at most."""
    draw = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float, *shape: int) -> list:
        x = torch.rand(shape, generator=draw, dtype=torch.float64) * (high - low) + low
        return (x * 1e6).round().div(1e6)

    new = uniform(-2.5, -0.1, 6, 6)
    old = (new + uniform(-move, move, 6, 6)).clamp(max=-0.001)
    rows = torch.tensor([1.2, -0.7, -0.5, 0.9, -1.4, 0.5], dtype=torch.float64)[:, None]
    advantages = uniform(-1.5, 1.5, 6, 6) if per_token else rows.expand(6, 6)
    return {
        "num_generations": 3,
        "mask": MASK,
        "log_prob": new.tolist(),
        "old_log_prob": old.tolist(),
        "ref_log_prob": (new + uniform(-1.0, 1.0, 6, 6)).clamp(max=-0.001).tolist(),
        "rollout_log_prob": (old + uniform(-0.9, 0.9, 6, 6)).clamp(max=-0.001).tolist(),
        "entropy": uniform(0.1, 2.0, 6, 6).tolist(),
        "advantages": advantages.tolist(),
    }


def _rare() -> dict:
    """Ratios near 1 and one token of probability 0.01 in a bad answer: Clip-Cov's one token."""
    batch = _ragged(3, 2e-3, per_token=False)
    batch["log_prob"][1][1], batch["old_log_prob"][1][1] = -4.5, -4.501
    return batch


BATCHES = {
    "worked": _worked(),
    "ragged": _ragged(1, 1.6, per_token=False),
    "per_token": _ragged(2, 1.6, per_token=True),  # the advantage differs from token to token
    "close": _ragged(3, 2e-3, per_token=False),  # ratios near 1, where GSPO's band lives
    "rare": _rare(),
}

AGGREGATIONS = [
    ("token-mean", None),
    ("token-sum", None),
    ("seq-mean-token-sum", None),
    ("seq-mean-token-mean", None),
    ("seq-mean-token-sum-norm", None),
    ("seq-mean-token-sum-norm", 9),
]

WIDE = dict(clip_ratio_low=0.2, clip_ratio_high=0.28)
CONFIGS: dict[str, list[dict]] = {
    "vanilla": [
        {},
        WIDE,
        dict(clip_ratio_low=0.1, clip_ratio_high=0.3, clip_ratio_c=1.5),
        dict(clip_ratio=0.3, clip_ratio_low=None, clip_ratio_high=None),
    ],
    "gspo": [{}, WIDE, dict(clip_ratio_low=3e-4, clip_ratio_high=4e-4)],
    "cispo": [
        {},
        dict(clip_ratio_low=10, clip_ratio_high=0.2),
        dict(clip_ratio_low=10, clip_ratio_high=4.0),
    ],
    "sapo": [{}, dict(tau_pos=10.0, tau_neg=12.0)],
    "geo_mean": [
        {},
        dict(clip_ratio_low=0.4, clip_ratio_high=0.4),
        dict(clip_ratio_low=0.3, clip_ratio_high=0.6),
    ],
    "dppo_tv": [
        {},
        dict(clip_ratio_low=0.1, clip_ratio_high=0.1, clip_ratio_c=20.0),
        dict(clip_ratio_low=0.05, clip_ratio_high=0.15, clip_ratio_c=1.5),
    ],
    "dppo_kl": [
        {},
        dict(clip_ratio_low=0.05, clip_ratio_high=0.05, clip_ratio_c=20.0),
        dict(clip_ratio_low=0.02, clip_ratio_high=0.1, clip_ratio_c=1.5),
    ],
    "clip_cov": [
        dict(clip_cov_ratio=1.0, clip_cov_lb=0.05, clip_cov_ub=5.0),  # all eligible
        dict(WIDE, clip_cov_ratio=1.0, clip_cov_lb=50.0, clip_cov_ub=60.0),
    ],  # none
    "kl_cov": [{}, dict(kl_cov_ratio=0.2), dict(kl_cov_ratio=0.3, ppo_kl_coef=1.0)],
    "gpg": [{}],
    "dro": [dict(dro_beta=0.1)],
    "reinforce": [{}],  # bypass_mode's loss without its rollout correction
}
ONE_ELIGIBLE = 0.45  # above it lies the covariance of one token that the band has not cut
LOCAL_STATISTICS = ("geo_mean", "clip_cov", "kl_cov")  # a micro-batch changes their loss
POLICY_LOSS = (
    "clip_cov_ratio",
    "clip_cov_lb",
    "clip_cov_ub",
    "kl_cov_ratio",
    "ppo_kl_coef",
    "dro_beta",
)
ALGORITHM = (
    "adv_estimator",
    "norm_adv_by_std_in_grpo",
    "gamma",
    "lam",
    "use_kl_in_reward",
    "kl_coef",
    "kl_penalty",
    "bypass_mode",
)  # words that are not the actor's
KL_TYPES = (
    "kl",
    "k1",
    "abs",
    "mse",
    "k2",
    "low_var_kl",
    "k3",
    "kl+",
    "k1+",
    "abs+",
    "mse+",
    "k2+",
    "low_var_kl+",
    "k3+",
)


def loss_cases() -> list[dict]:
    """What to ask: batch, verl's words, and which denominators the trainer passed."""
    cases = []

    def add(batch, mode, denominators="local", **words):
        cases.append(
            {"batch": batch, "denominators": denominators, "words": {"loss_mode": mode, **words}}
        )

    def agg(mode, factor):
        more = {} if factor is None else {"loss_scale_factor": factor}
        return {"loss_agg_mode": mode, **more}

    mean = agg("seq-mean-token-mean", None)
    for mode, config, how in [
        ("vanilla", {}, mean),
        ("vanilla", {}, {}),
        ("vanilla", WIDE, {}),
        ("gspo", CONFIGS["gspo"][2], mean),
        ("gspo", WIDE, mean),
        ("geo_mean", CONFIGS["geo_mean"][1], {}),
        ("cispo", {}, {}),
        ("cispo", CONFIGS["cispo"][1], {}),
        ("sapo", {}, mean),
        ("dppo_tv", CONFIGS["dppo_tv"][1], agg("seq-mean-token-sum-norm", 8)),
        ("vanilla", {}, agg("seq-mean-token-sum-norm", 8)),
        ("vanilla", {}, agg("seq-mean-token-sum-norm", None)),
    ]:
        add("worked", mode, **config, **how)
    for mode, configs in CONFIGS.items():
        deaf = mode in ("sapo", "geo_mean")  # to loss_agg_mode: two words show it
        for config in configs:
            for how in [AGGREGATIONS[0], AGGREGATIONS[3]] if deaf else AGGREGATIONS:
                add("ragged", mode, **config, **agg(*how))
                if mode not in LOCAL_STATISTICS:
                    add("ragged", mode, "global", **config, **agg(*how))
                if mode != "geo_mean" and how[0] in ("token-mean", "seq-mean-token-mean"):
                    add("per_token", mode, **config, **agg(*how))
            add("close", mode, **config, **mean)
    # exactly one eligible token: Clip-Cov's default ratio draws it
    add("ragged", "clip_cov", clip_cov_lb=ONE_ELIGIBLE, clip_cov_ub=5.0)
    for kind in KL_TYPES:
        for how in (AGGREGATIONS[0], AGGREGATIONS[3], AGGREGATIONS[5]):
            add(
                "ragged",
                "vanilla",
                use_kl_loss=True,
                kl_loss_coef=0.04,
                kl_loss_type=kind,
                **agg(*how),
            )
    for mode in ("gspo", "sapo", "geo_mean", "dppo_tv", "cispo"):  # the KL keeps loss_agg_mode
        for how in (AGGREGATIONS[0], AGGREGATIONS[3]):
            for denominators in ("local", "global"):
                if denominators == "local" or mode not in LOCAL_STATISTICS:
                    add("ragged", mode, denominators, use_kl_loss=True, **agg(*how))
                    add("ragged", mode, denominators, entropy_coeff=0.01, **agg(*how))
    for how in (AGGREGATIONS[0], AGGREGATIONS[3]):
        for level in ("token", "sequence"):
            for bound in (2.0, 1.2, "0.5_2.0"):
                for mode in ("vanilla", "gspo", "cispo"):
                    add("ragged", mode, rollout_is=level, rollout_is_threshold=bound, **agg(*how))
        for mode in ("vanilla", "gspo", "cispo", "sapo", "dppo_tv", "dppo_kl", "kl_cov"):
            for config in CONFIGS[mode]:
                add("ragged", mode, bypass_mode=True, **config, **agg(*how))
    return cases


class _Data(dict):
    """What `ppo_loss` asks of a TensorDict."""

    def select(self, *names: str) -> _Data:
        return _Data({name: self[name] for name in names})

    def to_padded_tensor(self) -> _Data:
        return self


def record_losses(verl) -> list[dict]:
    cases = loss_cases()
    for case in cases:
        batch = {
            k: torch.tensor(v, dtype=torch.float64)
            for k, v in BATCHES[case["batch"]].items()
            if isinstance(v, list)
        }
        mask = batch["mask"].bool()
        batch = anchored(batch, case["words"])
        if case["batch"] != "worked":  # it has 1.2 exactly, harmless where A < 0
            check_margins(batch, case["words"])
        if case["words"]["loss_mode"] == "clip_cov":
            check_draw(batch, case["words"])
        rows = len(mask)
        whole = case["denominators"] == "local"
        pieces = [slice(0, rows)] if whole else [slice(0, rows // 2), slice(rows // 2, rows)]
        losses, gradients = [], []
        for piece in pieces:
            part = {name: value[piece] for name, value in batch.items()}
            totals = {
                "dp_size": 1,
                "batch_num_tokens": None if whole else int(mask.sum()),
                "global_batch_size": None if whole else rows,
            }
            log_prob = part["log_prob"].clone().requires_grad_()
            loss = ask(verl, case["words"], part, log_prob, totals)
            (gradient,) = torch.autograd.grad(loss, log_prob)
            assert (gradient[~mask[piece]] == 0).all(), case
            assert torch.isfinite(gradient).all() and loss.dtype == torch.float64, case
            losses.append(loss.item())
            gradients.append(gradient)
        case["loss"] = losses
        case["gradient"] = torch.cat(gradients)[mask].tolist()
    return cases


def anchored(batch: dict, words: dict) -> dict:
    """With bypass_mode verl's trainer (trainer.use_v1=True, the default) puts the engine's
    log-probs in the place of the old ones, and does no more."""
    if words.get("bypass_mode"):
        return batch | {"old_log_prob": batch["rollout_log_prob"]}
    return batch


def ask(verl, words: dict, part: dict, log_prob: torch.Tensor, totals: dict) -> torch.Tensor:
    """verl's loss for verl's words."""
    actor = {
        k: v
        for k, v in words.items()
        if k not in ("loss_mode", *POLICY_LOSS, *ALGORITHM) and not k.startswith("rollout_is")
    }
    mode = words["loss_mode"]
    policy = verl.PolicyLossConfig(
        loss_mode="vanilla" if mode == "reinforce" else mode,
        **{k: v for k, v in words.items() if k in POLICY_LOSS},
    )
    config = verl.ActorConfig(
        strategy="fsdp", rollout_n=1, use_dynamic_bsz=True, policy_loss=policy, **actor
    )
    mask = part["mask"].bool()
    if mode == "reinforce":
        config.global_batch_info.update(totals, loss_scale_factor=config.loss_scale_factor)
        return verl.core.compute_policy_loss_reinforce(
            part["old_log_prob"],
            log_prob,
            part["advantages"],
            mask,
            loss_agg_mode=config.loss_agg_mode,
            config=config,
        )[0]
    data = _Data(
        response_mask=part["mask"],
        old_log_probs=part["old_log_prob"],
        advantages=part["advantages"],
        **totals,
    )
    if config.use_kl_loss:
        data["ref_log_prob"] = part["ref_log_prob"]
    if "rollout_is" in words:
        data["rollout_is_weights"] = verl.correction.compute_rollout_correction_weights(
            part["old_log_prob"] - part["rollout_log_prob"],
            part["mask"],
            **{k: v for k, v in words.items() if k.startswith("rollout_is")},
        )[0]
    output = {"log_probs": log_prob}
    if config.entropy_coeff:
        output["entropy"] = part["entropy"]
    return verl.losses.ppo_loss(config, output, data)[0]


def check_draw(batch: dict, words: dict) -> int:
    """Clip-Cov draws every eligible token, or there is none to draw. How many there are."""
    mask = batch["mask"].bool()
    lp, A = batch["log_prob"][mask], batch["advantages"][mask]
    rho = (lp - batch["old_log_prob"][mask]).exp()
    cov = (A - A.mean()) * (lp - lp.mean())
    band = rho.clamp(1 - words.get("clip_ratio_low", 0.2), 1 + words.get("clip_ratio_high", 0.2))
    eligible = (cov > words["clip_cov_lb"]) & (cov < words["clip_cov_ub"]) & (band * A >= rho * A)
    drawn = max(1, int(words.get("clip_cov_ratio", 2e-4) * len(cov)))
    assert int(eligible.sum()) <= drawn, (words, int(eligible.sum()))
    if words["clip_cov_lb"] == ONE_ELIGIBLE:
        assert int(eligible.sum()) == drawn == 1
    return int(eligible.sum())


def check_margins(batch: dict, words: dict) -> None:
    """No token on an edge: at a tie torch.maximum halves the gradient, and a comparison of
    probabilities can fall either way."""
    mask = batch["mask"].bool()
    log_ratio = (batch["log_prob"] - batch["old_log_prob"])[mask]
    edge = [words.get("clip_ratio_low", 0.2), words.get("clip_ratio_high", 0.2)]
    low, high = (words["clip_ratio"] if e is None else e for e in edge)
    moved = (batch["log_prob"].exp() - batch["old_log_prob"].exp())[mask]
    for x, at in [
        (log_ratio.exp(), (1 - low, 1 + high, words.get("clip_ratio_c", 3.0))),
        (log_ratio, (-low, high)),
        (moved, (-low, high)),
    ]:
        for value in at:
            assert (x - value).abs().min() > 1e-7, (words, value)


# ---- advantages

REWARDS = [1.0, 0.0, 0.25, 0.0, 0.5, 0.0]  # 3 of 6 nonzero: gpg's B/count is exact in float32
GREEDY = [0.5, 0.5, 0.5, 0.25, 0.25, 0.25]
ADVANTAGES: list[dict] = [
    *[
        {"adv_estimator": name}
        for name in (
            "grpo",
            "grpo_vectorized",
            "rloo",
            "rloo_vectorized",
            "opo",
            "gpg",
            "remax",
            "grpo_passk",
            "reinforce_plus_plus_baseline",
        )
    ],
    {"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": False},
    {"adv_estimator": "grpo_passk", "norm_adv_by_std_in_grpo": False},
    *[{"adv_estimator": "reinforce_plus_plus", "gamma": g} for g in (1.0, 0.9)],
    *[{"adv_estimator": "gae", "gamma": g, "lam": lam} for g, lam in ((1.0, 1.0), (0.97, 0.9))],
]
KL_IN_REWARD = [
    dict(use_kl_in_reward=True, kl_coef=0.05, kl_penalty=kind)
    for kind in ("kl", "mse", "low_var_kl")
]


def record_advantages(verl) -> list[dict]:
    """Each estimator on rewards that stand on the last token, then with a KL penalty per token."""
    mask = torch.tensor(MASK).bool()
    cases = []
    for words in ADVANTAGES:
        for penalty in [{}, *KL_IN_REWARD]:
            advantages, returns = estimate(verl, words | penalty, BATCHES["ragged"])
            cases.append(
                {
                    "words": words | penalty,
                    "advantages": advantages[mask].tolist(),
                    "returns": returns[mask].tolist(),
                }
            )
    return cases


def estimate(verl, words: dict, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """verl's advantages and returns (6, 6) for its algorithm words. V is `entropy`: any numbers
    do for a critic."""
    mask = torch.tensor(MASK)
    assert mask.sum() == 17
    rewards = torch.zeros(6, 6, dtype=torch.float64)
    last = (mask * torch.arange(1, 7)).argmax(1)
    rewards[range(6), last] = torch.tensor(REWARDS, dtype=torch.float64)
    if words.get("use_kl_in_reward"):
        data = types.SimpleNamespace(
            batch=_Rewards(
                token_level_scores=rewards,
                response_mask=mask,
                old_log_probs=torch.tensor(batch["old_log_prob"], dtype=torch.float64),
                ref_log_prob=torch.tensor(batch["ref_log_prob"], dtype=torch.float64),
            )
        )
        control = verl.core.FixedKLController(words["kl_coef"])
        verl.trainer.apply_kl_penalty(data, control, words["kl_penalty"])
        rewards = data.batch["token_level_rewards"]
    name = words["adv_estimator"]
    config = verl.AlgoConfig(
        **{
            k: v
            for k, v in words.items()
            if k in ("adv_estimator", "norm_adv_by_std_in_grpo", "gamma", "lam")
        }
    )
    given = dict(token_level_rewards=rewards, response_mask=mask)
    if name == "gae":
        values = torch.tensor(batch["entropy"], dtype=torch.float64)
        given |= dict(values=values, gamma=config.gamma, lam=config.lam)
    else:
        given |= dict(config=config, index=np.array([0, 0, 0, 1, 1, 1], dtype=object))
    if name == "grpo":
        given["norm_adv_by_std_in_grpo"] = config.norm_adv_by_std_in_grpo
    if name == "remax":
        given["reward_baselines"] = torch.tensor(GREEDY, dtype=torch.float64)
    advantages, returns = verl.core.get_adv_estimator_fn(name)(**given)
    assert torch.isfinite(advantages).all() and advantages.dtype == torch.float64
    return advantages, returns


def record_methods(verl) -> list[dict]:
    """Every named method that verl has words for, from the rewards to loss and gradient."""
    cases = []
    mask = torch.tensor(MASK).bool()
    for name, method in {**ZOO, **ANNEX}.items():
        try:
            words = to_verl(method)
        except ValueError:
            continue
        covariant = words["loss_mode"] in ("clip_cov", "kl_cov")
        for batch_name in ("ragged", "rare" if covariant else "close"):
            raw = BATCHES[batch_name]
            batch = {
                k: torch.tensor(v, dtype=torch.float64)
                for k, v in raw.items()
                if isinstance(v, list)
            }
            batch = anchored(batch, words)
            batch["advantages"] = estimate(verl, words, raw)[0]
            check_margins(batch, words)
            if words["loss_mode"] == "clip_cov":
                assert check_draw(batch, words) == (batch_name == "rare")
            log_prob = batch["log_prob"].clone().requires_grad_()
            loss = ask(
                verl,
                words,
                batch,
                log_prob,
                {"dp_size": 1, "batch_num_tokens": int(mask.sum()), "global_batch_size": len(mask)},
            )
            (gradient,) = torch.autograd.grad(loss, log_prob)
            assert (gradient[~mask] == 0).all() and gradient[mask].abs().max() > 0, name
            cases.append(
                {
                    "name": name,
                    "batch": batch_name,
                    "words": words,
                    "loss": loss.item(),
                    "gradient": gradient[mask].tolist(),
                }
            )
    return cases


def record_ties(verl) -> list[dict]:
    """DPPO on one token that moved by its threshold exactly, and a hair more: powers of two, so
    that no logarithm rounds. `back` is the other direction, where no threshold matters."""
    cases = []
    for mode in ("dppo_tv", "dppo_kl"):
        for new, old, advantage in [(0.5, 0.25, 1.0), (0.25, 0.5, -1.0)]:
            moved = abs(new - old)
            if mode == "dppo_kl":
                moved = old * math.log(old / new) + (1 - old) * math.log(
                    (1 - old + 1e-8) / (1 - new + 1e-8)
                )
            for threshold, sign, what in [
                (moved, 1, "at"),
                (moved * (1 - 1e-15), 1, "above"),
                (moved / 2, -1, "back"),
            ]:
                part = {
                    "mask": torch.ones(1, 1, dtype=torch.float64),
                    "old_log_prob": torch.tensor([[old]], dtype=torch.float64).log(),
                    "advantages": torch.full((1, 1), sign * advantage, dtype=torch.float64),
                }
                words = {
                    "loss_mode": mode,
                    "clip_ratio_low": threshold,
                    "clip_ratio_high": threshold,
                }
                log_prob = torch.tensor([[new]], dtype=torch.float64).log().requires_grad_()
                loss = ask(
                    verl,
                    words,
                    part,
                    log_prob,
                    {"dp_size": 1, "batch_num_tokens": None, "global_batch_size": None},
                )
                (gradient,) = torch.autograd.grad(loss, log_prob)
                cases.append(
                    {
                        "what": what,
                        "words": words,
                        "new": new,
                        "old": old,
                        "advantage": sign * advantage,
                        "gradient": gradient.item(),
                    }
                )
    return cases


class _Rewards(dict):
    batch_size = (6,)


def record_value_losses(verl) -> list[dict]:
    """The critic's loss, which verl trains beside the policy. V is `entropy`, V_old = V + 0.9 A."""
    batch = BATCHES["ragged"]
    mask = torch.tensor(MASK).bool()
    cases = []
    for mode, factor in AGGREGATIONS:
        new = torch.tensor(batch["entropy"], dtype=torch.float64, requires_grad=True)
        old = new.detach() + 0.9 * torch.tensor(batch["advantages"], dtype=torch.float64)
        loss, _ = verl.core.compute_value_loss(
            new,
            torch.tensor(batch["log_prob"], dtype=torch.float64) + 2,
            old,
            mask,
            cliprange_value=0.5,
            loss_agg_mode=mode,
            loss_scale_factor=factor,
        )
        (gradient,) = torch.autograd.grad(loss, new)
        cases.append(
            {
                "loss_agg_mode": mode,
                "loss_scale_factor": factor,
                "loss": loss.item(),
                "gradient": gradient[mask].tolist(),
            }
        )
    return cases


def record_clamps(verl) -> list[dict]:
    """Where verl clamps a log-ratio: one token that moved up by 9.5 to 21 nats, A = -1 or +1.

    The band and the cap are out of the way.
    """
    cases = []
    for mode in ("vanilla", "cispo", "dppo_tv", "gspo"):
        for move in (9.5, 10.5, 19.0, 21.0):
            for advantage in (-1.0, 1.0):
                part = {
                    "mask": torch.ones(1, 1, dtype=torch.float64),
                    "old_log_prob": torch.full((1, 1), -0.5 - move, dtype=torch.float64),
                    "advantages": torch.full((1, 1), advantage, dtype=torch.float64),
                }
                words = {"loss_mode": mode, "clip_ratio_high": 1e12, "clip_ratio_c": 1e12}
                log_prob = torch.full((1, 1), -0.5, dtype=torch.float64, requires_grad=True)
                loss = ask(
                    verl,
                    words,
                    part,
                    log_prob,
                    {"dp_size": 1, "batch_num_tokens": None, "global_batch_size": None},
                )
                (gradient,) = torch.autograd.grad(loss, log_prob)
                cases.append(
                    {
                        "words": words,
                        "move": move,
                        "advantage": advantage,
                        "loss": loss.item(),
                        "gradient": gradient.item(),
                    }
                )
    return cases


def defaults(folder: str) -> dict:
    """verl's words with the defaults of its shipped YAML, which is what a run gets, flat.

    Sections actor (with policy_loss) and algorithm (with kl_ctrl and rollout_correction); only
    plain values. Where a dataclass has another default it is not what the trainer sees.
    """
    path = Path(folder, "verl/trainer/config/_generated_ppo_trainer.yaml")
    whole = yaml.safe_load(path.read_text())
    actor, algorithm = whole["actor_rollout_ref"]["actor"], whole["algorithm"]
    sections = [
        actor,
        actor["policy_loss"],
        algorithm,
        algorithm["kl_ctrl"],
        algorithm["rollout_correction"],
    ]
    flat: dict[str, Any] = {}
    for section in sections:
        for word, value in section.items():
            if (
                value is None
                or isinstance(value, (bool, int, float))
                or (isinstance(value, str) and "${" not in value and word != "_target_")
            ):
                assert flat.get(word, value) == value, word
                flat[word] = value
    # two that stand deeper and that the Rosetta table quotes, by their dotted names
    flat["filter_groups.enable"] = algorithm["filter_groups"]["enable"]
    flat["rollout.n"] = whole["actor_rollout_ref"]["rollout"]["n"]
    return flat


def load(folder: str) -> types.SimpleNamespace:
    """verl's modules, imported from `folder` with what they do not need here stubbed.

    By name: verl is not a dependency of this package, not even of its tests.
    """
    sys.path.insert(0, folder)
    sys.meta_path.append(_Finder())
    found = importlib.import_module("verl").__version__
    if found != VERSION:
        raise SystemExit(f"the cases are of verl {VERSION}, but {folder} holds {found}.")
    core, correction, trainer = (
        importlib.import_module(f"verl.trainer.ppo.{name}")
        for name in ("core_algos", "rollout_corr_helper", "ray_trainer")
    )
    losses = importlib.import_module("verl.workers.utils.losses")
    losses.no_padding_2_padding = lambda values, data: values
    config = importlib.import_module("verl.workers.config")
    return types.SimpleNamespace(
        core=core,
        correction=correction,
        losses=losses,
        trainer=trainer,
        ActorConfig=config.ActorConfig,
        PolicyLossConfig=config.PolicyLossConfig,
        AlgoConfig=importlib.import_module("verl.trainer.config").AlgoConfig,
    )


def dump(recorded: dict) -> str:
    """JSON with one case per line, so that a change can be read in a diff."""
    out = []
    for key, value in recorded.items():
        if isinstance(value, list):
            lines = ",\n".join(json.dumps(v, separators=(",", ":")) for v in value)
            out.append(f'"{key}": [\n{lines}\n]')
        else:
            out.append(f'"{key}": {json.dumps(value, separators=(",", ":"))}')
    return "{" + ",\n".join(out) + "}\n"


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    torch.set_num_threads(1)
    verl = load(sys.argv[1])
    text = dump(
        {
            "verl": VERSION,
            "defaults": defaults(sys.argv[1]),
            "batches": BATCHES,
            "rewards": REWARDS,
            "greedy_rewards": GREEDY,
            "losses": record_losses(verl),
            "advantages": record_advantages(verl),
            "value_losses": record_value_losses(verl),
            "clamps": record_clamps(verl),
            "methods": record_methods(verl),
            "ties": record_ties(verl),
        }
    )
    if "--check" in sys.argv:
        if OUT.read_text() != text:
            raise SystemExit(f"{OUT.name} differs from what verl {VERSION} says now.")
        print(f"{OUT.name} is what verl {VERSION} says.")
        return
    OUT.write_text(text)
    print(f"{OUT}: {len(text) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
