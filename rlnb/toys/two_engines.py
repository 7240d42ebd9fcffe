"""An engine that writes, a trainer that learns, and what a correction does to the gradient: exact.

The policy is a table: `TOKENS` logits for each of the 1 + 4 + 16 + 64 prefixes of answers of
`LENGTH` tokens, 256 answers. The engine that writes has the same table, disturbed: every logit by
`JITTER` (rounding), and the logits of a share `flips` of the prefixes by `JUMP` (another expert).
Reward, fixed: 1 for the answers of a random quarter, 0 for the rest. All 256 answers are counted,
so nothing here is sampled but the disturbance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "BY_SIGN", "HALVES", "MORE", "ONE_BACK", "RULES", "Engines", "Run", "Verdict", "engines",
    "judge", "learn", "train",
]  # fmt: skip

TOKENS, LENGTH = 4, 4
PREFIXES = sum(TOKENS**k for k in range(LENGTH))  # 85
JITTER, JUMP = 0.01, 1.5

_ids = np.arange(TOKENS**LENGTH)
_Y = np.stack([_ids // TOKENS ** (LENGTH - 1 - t) % TOKENS for t in range(LENGTH)], 1)  # (256, 4)
_first = np.cumsum([0] + [TOKENS**t for t in range(LENGTH - 1)])
_AT = np.stack([_first[t] + _ids // TOKENS ** (LENGTH - t) for t in range(LENGTH)], 1)


@dataclass(frozen=True)
class Engines:
    """log-probabilities (draws, 256, 4) of every token of every answer under the trainer's policy
    and under the engine's, the policy's table of probabilities (draws, 85, 4), rewards (256,)."""

    trainer: np.ndarray
    engine: np.ndarray
    table: np.ndarray
    rewards: np.ndarray

    @property
    def ratio(self) -> np.ndarray:
        """w = pi / mu of each token."""
        return np.exp(self.trainer - self.engine)

    @property
    def advantages(self) -> np.ndarray:
        """(draws, 256, 1) reward minus its mean under the policy."""
        mean = (np.exp(self.trainer.sum(2)) * self.rewards).sum(1)
        return (self.rewards - mean[:, None])[..., None]


def _disturbance(
    gen: np.random.Generator, flips: float, shape: tuple[int, ...], jump: float | None = None
) -> np.ndarray:
    moved = JITTER * gen.standard_normal(shape)
    jumps, luck = gen.standard_normal(shape), gen.random((*shape[:2], 1))
    return moved + np.where(luck < flips, (JUMP if jump is None else jump) * jumps, 0.0)


def _normalised(logits: np.ndarray) -> np.ndarray:
    top = logits - logits.max(2, keepdims=True)
    return top - np.log(np.exp(top).sum(2, keepdims=True))


def _both(logits: np.ndarray, moved: np.ndarray) -> Engines:
    rewards = (np.random.default_rng(1).permutation(TOKENS**LENGTH) < TOKENS**LENGTH // 4) * 1.0
    trainer, engine = _normalised(logits), _normalised(logits + moved)
    return Engines(trainer[:, _AT, _Y], engine[:, _AT, _Y], np.exp(trainer), rewards)


def engines(
    flips: float = 0.05, draws: int = 20, seed: int = 0, jump: float | None = None
) -> Engines:
    """`draws` policies with an engine each. flips: the share of prefixes that take a jump; jump:
    its std, in logits (None: JUMP)."""
    if not 0 <= flips <= 1:
        raise ValueError(f"flips is a share, 0 to 1; got {flips}.")
    gen = np.random.default_rng(seed)
    shape = (draws, PREFIXES, TOKENS)
    logits = 1.5 * gen.standard_normal(shape)
    return _both(logits, _disturbance(gen, flips, shape, jump))


def _answer(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.exp(np.log(x).sum(2, keepdims=True)), x.shape)


# (w, probability gap pi - mu, A) -> factor on A grad log pi, all (draws, 256, 4)
RULES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "nothing": lambda w, gap, A: np.ones_like(w),
    "weight of the answer": lambda w, gap, A: _answer(w),
    "weight of the token": lambda w, gap, A: w,
    "truncated at 2": lambda w, gap, A: np.minimum(w, 2.0),
    "IcePop [1/2, 2]": lambda w, gap, A: np.where((w >= 0.5) & (w <= 2), w, 0.0),
    "GLM-5 band, both signs": lambda w, gap, A: np.where(np.abs(w - 1) < 0.2, w, 0.0),
    "the same band, by sign": lambda w, gap, A: np.where(
        np.where(A > 0, w - 1, 1 - w) >= 0.2, 0.0, w
    ),
    "prime-rl, by sign": lambda w, gap, A: np.where(np.where(A > 0, gap, -gap) > 0.2, 0.0, w),
    "DPPO": lambda w, gap, A: np.where(np.where(A > 0, gap, -gap) > 0.15, 0.0, np.minimum(w, 10.0)),
    "answer dropped above 3": lambda w, gap, A: np.where(_answer(w) > 3, 0.0, _answer(w)),
}

# the control: IcePop's band, and a token beyond it is dropped only if its push widens the gap
BY_SIGN: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "IcePop, by sign": lambda w, gap, A: np.where(np.where(A > 0, w > 2, w < 0.5), 0.0, w)
}

# the band that libraries take for IcePop, and the two rules for a whole answer: its w, capped, or 0
# outside a band
MORE: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "IcePop [1/2, 5]": lambda w, gap, A: np.where((w >= 0.5) & (w <= 5), w, 0.0),
    "answer truncated at 2": lambda w, gap, A: np.minimum(_answer(w), 2.0),
    "answer masked [1/2, 2]": lambda w, gap, A: np.where(
        (_answer(w) >= 0.5) & (_answer(w) <= 2), _answer(w), 0.0
    ),
}

# a cap at 2 has two sides: above 1 it raises a push, below 1 it damps one. Each alone, by token and
# by answer.
HALVES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "token, above 1": lambda w, gap, A: np.clip(w, 1.0, 2.0),
    "token, below 1": lambda w, gap, A: np.minimum(w, 1.0),
    "answer, above 1": lambda w, gap, A: np.clip(_answer(w), 1.0, 2.0),
    "answer, below 1": lambda w, gap, A: np.minimum(_answer(w), 1.0),
}


def _icepop_but(above: bool, good: bool) -> Callable[[np.ndarray, np.ndarray, np.ndarray], Any]:
    """IcePop, with the pushes above (or below) the band on tokens with A > 0 (or not) kept."""

    def rule(w: np.ndarray, gap: np.ndarray, A: np.ndarray) -> np.ndarray:
        back = ((w > 2) if above else (w < 0.5)) & ((A > 0) == good)
        return np.where(((w >= 0.5) & (w <= 2)) | back, w, 0.0)

    return rule


# one of the four kinds of push that IcePop drops, given back
ONE_BACK = {
    f"back: {place}, A {sign} 0": _icepop_but(place == "above", sign == ">")
    for place in ("above", "below")
    for sign in "><"
}
_ALL = RULES | MORE | HALVES | BY_SIGN | ONE_BACK


@dataclass(frozen=True)
class Verdict:
    """What a factor does, means of the draws. bias: |E g - true| / |true|. noise: the
    std of one answer's gradient (root of the trace), over |true|. cosine: of E g with the true
    gradient. dropped_good, dropped_bad: share of the tokens with factor 0, among A > 0 and
    A <= 0."""

    bias: float
    noise: float
    cosine: float
    dropped_good: float
    dropped_bad: float

    def error(self, answers: int) -> float:
        """Root mean square error of a batch's mean gradient, over |true|: bias and noise."""
        return float(np.sqrt(self.bias**2 + self.noise**2 / answers))


def judge(both: Engines, rule: str | Callable = "nothing") -> Verdict:
    """What a rule of RULES or MORE, or a function like them, does to the policy gradient.

    Exact: g = sum_t f_t A grad log pi(y_t), mean and variance over all 256 answers of the engine;
    the true gradient is the policy's own mean without a factor.
    """
    if isinstance(rule, str) and rule not in _ALL:
        raise ValueError(f"There is no rule {rule!r}; there are {list(_ALL)}.")
    factor = _ALL[rule] if isinstance(rule, str) else rule
    A, w = np.broadcast_to(both.advantages, both.trainer.shape), both.ratio
    gap = np.exp(both.trainer) - np.exp(both.engine)
    f = factor(w, gap, A)
    policy, engine = np.exp(both.trainer.sum(2)), np.exp(both.engine.sum(2))  # (draws, 256)
    mean, second = _gradient(both.table, engine, f * A)
    true, _ = _gradient(both.table, policy, A)
    size = np.sqrt((true**2).sum(1))
    off = np.sqrt(((mean - true) ** 2).sum(1))
    noise = np.sqrt(second - (mean**2).sum(1))
    cosine = (mean * true).sum(1) / (np.sqrt((mean**2).sum(1)) * size)
    weight = engine[..., None]

    def dropped(which: np.ndarray) -> float:
        return float((weight * (which & (f == 0))).sum() / (weight * which).sum())

    return Verdict(float((off / size).mean()), float((noise / size).mean()), float(cosine.mean()),
                   dropped(A > 0), dropped(A <= 0))  # fmt: skip


def _gradient(table: np.ndarray, chance: np.ndarray, factor: np.ndarray):
    """Mean of sum_t factor_t grad log pi(y_t) on the logits (draws, 85 * 4), and the mean of its
    squared norm (draws,)."""
    draws, size = len(table), PREFIXES * TOKENS
    mean, square = np.zeros(draws * size), np.zeros(draws)
    eye = np.eye(TOKENS)
    for t in range(LENGTH):  # an answer's tokens stand at different prefixes: squares add up
        score = eye[_Y[:, t]] - table[:, _AT[:, t]]  # (draws, 256, 4)
        pushed = factor[:, :, t, None] * score
        square += (chance * (pushed**2).sum(2)).sum(1)
        at = (_AT[:, t, None] * TOKENS + np.arange(TOKENS)).ravel()
        at = (np.arange(draws)[:, None] * size + at).ravel()
        mean += np.bincount(at, (chance[..., None] * pushed).ravel(), draws * size)
    return mean.reshape(draws, size), square


@dataclass(frozen=True)
class Run:
    """Of every policy and step, (draws, steps + 1): its mean reward, and the share of the engine's
    tokens with factor 0 among A > 0 and among A <= 0."""

    reward: np.ndarray
    dropped_good: np.ndarray
    dropped_bad: np.ndarray


def train(
    rule: str,
    flips: float,
    steps: int = 60,
    rate: float = 4.0,
    draws: int = 20,
    seed: int = 0,
    lasts: int | None = None,
    answers: int | None = None,
    jump: float | None = None,
) -> Run:
    """`steps` exact gradient steps of `draws` policies. The engine always has the policy's newest
    table, disturbed; lasts: after so many steps the disturbance is drawn anew, None: never. The
    baseline is the mean reward of the engine's answers. answers: a step sees so many of them,
    drawn; None: all, each with its chance. jump: the std of a jump, in logits (None: JUMP).
    """
    if rule not in _ALL:
        raise ValueError(f"There is no rule {rule!r}; there are {list(_ALL)}.")
    if lasts is not None and lasts < 1:
        raise ValueError(f"lasts is a number of steps, 1 or more; got {lasts}.")
    gen = np.random.default_rng(seed)
    shape = (draws, PREFIXES, TOKENS)
    logits = 1.5 * gen.standard_normal(shape)
    moved = _disturbance(gen, flips, shape, jump)
    dice = np.random.default_rng(seed + 1)  # another, or the disturbance would depend on answers
    told: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for step in range(steps + 1):
        both = _both(logits, moved)
        chance = np.exp(both.engine.sum(2))
        if answers is not None:
            sure = chance / chance.sum(1, keepdims=True)
            chance = np.stack([dice.multinomial(answers, p) for p in sure]) / answers
        base = (chance * both.rewards).sum(1)
        A = np.broadcast_to((both.rewards - base[:, None])[..., None], both.trainer.shape)
        gap = np.exp(both.trainer) - np.exp(both.engine)
        f = _ALL[rule](both.ratio, gap, A)
        reward = (np.exp(both.trainer.sum(2)) * both.rewards).sum(1)
        told.append((reward, _share(f == 0, A > 0, chance), _share(f == 0, A <= 0, chance)))
        if step == steps:
            break
        push, _ = _gradient(both.table, chance, f * A)
        logits = logits + rate * push.reshape(shape)
        if lasts is not None and (step + 1) % lasts == 0 and step + 1 < steps:
            moved = _disturbance(gen, flips, shape, jump)
    return Run(*(np.stack(series, 1) for series in zip(*told, strict=True)))


def _share(what: np.ndarray, which: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """(draws,) share of the engine's tokens `which` that are `what`."""
    weight = chance[..., None] * which
    return (weight * what).sum((1, 2)) / np.maximum(weight.sum((1, 2)), 1e-300)


def learn(rule: str, flips: float, lasting: bool = True, **more: Any) -> np.ndarray:
    """The rewards of `train`, (draws, steps + 1); lasting: one disturbance for all steps, otherwise
    a new one in every step."""
    return train(rule, flips, lasts=None if lasting else 1, **more).reward
