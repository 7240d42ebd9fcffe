"""What the derivation boards ask: lines, what each may use, right versions and slips; the numbers.

Four boards: "reinforce", from the slope of a probability to the loss, with the baseline's proof on
the way; "ppo", from the surprise at a token to the whole loss; "grpo", in a file of its own; "dpo",
from the reward with a KL to the loss on pairs. Every line feeds a later one or is a result. A case
holds the values behind the names: the given ones, and the right value of each line, by autograd or
`rlnb.objective`. Each board has two cases or more, so that no line is right by accident.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch

from rlnb.classroom.interview.board_text import BoardText, Line, Numbers
from rlnb.classroom.interview.group_board import GRPO, group_cases
from rlnb.objective import Objective
from rlnb.objective.advantages import gae
from rlnb.objective.batch import Batch
from rlnb.objective.preference import Pairs, dpo
from rlnb.objective.ratios import token
from rlnb.objective.surrogates import clip
from rlnb.objective.terms import entropy_bonus, value_loss
from rlnb.objective.weights import token_mean
from rlnb.toys import running_batch

__all__ = ["BOARDS", "FUNCTIONS"]

# epsilon, gamma, lambda, c_v, c_h
PPO_NUMBERS = ((0.2, 0.99, 0.95, 0.5, 0.01), (0.12, 0.9, 0.8, 0.3, 0.05))


REINFORCE = (
    Line("score", "the slope of log p, by the chain rule", ("p", "dp"), "dp / p",
         (("dp", "that is the slope of p itself"),
          ("dp * p", "the slope of a logarithm is 1 over its argument, times the slope of that")),
         number=True),
    Line("slope", "the slope of the mean reward, as a mean over draws from p",
         ("p", "score", "R"), "sum(p * score * R)",
         (("sum(score * R)", "p is missing: answers are drawn from it, and that weighs them"),
          ("sum(p * R)", "that is the mean reward, not its slope")), number=True),
    Line("bias", "what a constant baseline b takes from that mean", ("p", "score", "b"),
         "sum(p * score * b)",
         (("sum(score * b)", "p is missing: only under p is the mean of the scores 0"),
          ("sum(p * b)", "b meets the score, not the probability alone"),
          ("sum(p * 0)", "0 is what comes out; write the mean that is 0")), number=True),
    Line("best", "the constant with the least noise: the slope of the second moment is 0 there",
         ("p", "score", "R"), "sum(p * score ** 2 * R) / sum(p * score ** 2)",
         (("sum(p * R)", "the mean reward; each answer still needs the square of its score"),
          ("sum(p * score * R) / sum(p * score ** 2)", "the score is squared above as well")),
         number=True),
    Line("togo", "the reward-to-go: what a token can still change", ("r", "later"), "later(r, 1)",
         (("later(r, 1) - r", "a token's own reward comes after it as well"),
          ("r", "the token's own reward alone: later ones are missing")), number=True),
    Line("A", "the token's advantage over b", ("togo", "b"), "togo - b",
         (("b - togo", "the sign: better than b is to become likelier"),
          ("togo", "b is missing")), number=True),
    Line("loss", "minimised: one mean over tokens", ("logp", "A", "mean"), "-mean(logp * A)",
         (("mean(logp * A)", "the sign: the slope is climbed, a loss is descended"),
          ("-mean(exp(logp) * A)", "the tokens were drawn already: the slope of log p, not of p"))),
)  # fmt: skip

PPO = (
    Line("delta", "the critic's surprise at each token", ("r", "V", "V_next", "gamma"),
         "r + gamma * V_next - V",
         (("r + V - gamma * V_next", "the two values changed places: what comes minus what was"),
          ("r + V_next - V", "gamma is missing"),
          ("r - V", "the next state's value is missing")), number=True),
    Line("A", "the advantage, GAE", ("delta", "gamma", "lam", "later"),
         "later(delta, gamma * lam)",
         (("later(delta, gamma)", "lambda is missing: this is the return minus the value"),
          ("later(delta, lam)", "gamma is missing: a step costs gamma times lambda"),
          ("delta", "one step only: that is lambda = 0")), number=True),
    Line("R", "the critic's target, the lambda-return", ("A", "V"), "A + V",
         (("A - V", "the sign: an advantage is a return minus the value"),
          ("A", "the value is missing: the critic would learn advantages")), number=True),
    Line("ratio", "how much more likely the token has become", ("logp", "old"),
         "exp(logp - old)",
         (("exp(old - logp)", "upside down: the new policy stands above the line"),
          ("logp - old", "that is its logarithm"),
          ("exp(logp) / exp(old) * 0 + 1", "a constant: the new log-probs must carry a gradient"))),
    Line("unclipped", "a token's objective by importance sampling", ("ratio", "A"), "ratio * A",
         (("log(ratio) * A", "the ratio itself weighs the advantage, not its logarithm"),)),
    Line("clipped", "the same, kept in the band", ("ratio", "A", "eps"),
         "clamp(ratio, 1 - eps, 1 + eps) * A",
         (("clamp(ratio * A, 1 - eps, 1 + eps)", "the ratio is clipped, not its product with A"),
          ("clamp(ratio, 1 - eps, 1 + eps)", "times A is missing"))),
    Line("surrogate", "a token's objective, of the two above", ("unclipped", "clipped"),
         "minimum(unclipped, clipped)",
         (("maximum(unclipped, clipped)", "that is the optimist: it keeps the dead corners alive"),
          ("clipped", "the clip alone cannot pull back a token that went the wrong way"))),
    Line("policy", "the policy's loss, minimised: one mean over tokens", ("surrogate", "mean"),
         "-mean(surrogate)",
         (("mean(surrogate)", "the sign: an objective is maximised, a loss minimised"),)),
    Line("value", "the critic's loss: half the mean squared error, no clip", ("V", "R", "mean"),
         "mean((V - R) ** 2) / 2",
         (("mean((V - R) ** 2)", "right but for the one half that was asked for"),
          ("mean(V - R) / 2", "the error is squared"))),
    Line("loss", "the whole, with an entropy bonus",
         ("policy", "value", "H", "c_v", "c_h", "mean"),
         "policy + c_v * value - c_h * mean(H)",
         (("policy + c_v * value + c_h * mean(H)",
           "the entropy's sign: a bonus is subtracted from a loss"),
          ("policy + c_v * value", "the entropy bonus is missing"))),
)  # fmt: skip

DPO = (
    Line("Z", "what makes the best policy sum to 1", ("ref", "reward", "beta"),
         "sum(ref * exp(reward / beta))",
         (("sum(exp(reward / beta))", "the reference is missing: it weighs every answer"),
          ("sum(ref * exp(reward * beta))", "a large beta holds the policy back: divide by it")),
         number=True),
    Line("best", "the policy that maximises reward - beta KL(policy, ref)",
         ("ref", "reward", "beta", "Z"), "ref * exp(reward / beta) / Z",
         (("exp(reward / beta) / Z", "the reference is missing: at reward 0 nothing moves"),
          ("ref * exp(reward / beta)", "not normalised: divide by Z")), number=True),
    Line("solved", "the reward, from the best policy", ("best", "ref", "beta", "Z"),
         "beta * log(best / ref) + beta * log(Z)",
         (("beta * log(best / ref)", "right but for beta log Z, the same for all answers"),
          ("log(best / ref) + log(Z)", "beta is missing")), number=True),
    Line("margin", "the reward of w minus that of l",
         ("logp_w", "logp_l", "ref_w", "ref_l", "beta"),
         "beta * ((logp_w - ref_w) - (logp_l - ref_l))",
         (("beta * ((logp_l - ref_l) - (logp_w - ref_w))", "w is the chosen answer: w minus l"),
          ("beta * (logp_w - logp_l)", "the reference is missing"),
          ("(logp_w - ref_w) - (logp_l - ref_l)", "beta is missing"))),
    Line("prefer", "the chance that w is preferred, Bradley-Terry", ("margin",),
         "sigmoid(margin)",
         (("exp(margin)", "that is the odds, not the chance"),
          ("sigmoid(-margin)", "that is the chance that l is preferred"))),
    Line("loss", "minimised: one mean over pairs", ("prefer", "mean"), "-mean(log(prefer))",
         (("mean(log(prefer))", "the sign: a likelihood is maximised, a loss minimised"),
          ("-log(mean(prefer))", "the logarithm of each pair, then the mean"),
          ("-mean(prefer)", "the logarithm is missing"))),
)  # fmt: skip


def _later(x: torch.Tensor, factor: float) -> torch.Tensor:
    """(B, T): each token's sum of what comes, a factor for every step on."""
    out, come = [], torch.zeros_like(x[:, 0])
    for t in reversed(range(x.shape[1])):
        come = x[:, t] + factor * come
        out.insert(0, come)
    return torch.stack(out, 1)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "exp": torch.exp, "log": torch.log, "sigmoid": torch.sigmoid, "abs": torch.abs,
    "clamp": torch.clamp, "clip": torch.clamp, "minimum": torch.minimum, "min": torch.minimum,
    "maximum": torch.maximum, "max": torch.maximum, "where": torch.where, "sum": torch.sum,
    "later": _later,
}  # fmt: skip


def _batch(gamma: float, lam: float) -> tuple[Batch, torch.Tensor]:
    """The running batch with a critic that says something, and its rewards token by token."""
    batch = running_batch(complete=True)
    mask = batch.mask.to(batch.logprobs.dtype)
    place = torch.arange(mask.shape[1], dtype=mask.dtype)
    values = ((0.3 + 0.1 * place) * mask).requires_grad_()
    last = batch.mask.sum(1) - 1
    rewards = torch.zeros_like(mask)
    rewards[torch.arange(len(mask)), last] = batch.rewards
    entropies = batch.entropies.clone().requires_grad_()
    batch = batch.replace(values=values, old_values=values.detach(), entropies=entropies)
    advantages = gae(gamma, lam)(batch, rewards)
    return batch.replace(returns=(advantages + values).detach()), rewards


@cache
def _reinforce_cases() -> tuple[Numbers, ...]:
    """Probabilities; and weights that do not sum to 1, as the mean score of those is not 0."""
    return (
        _reinforce([1.0, -0.5, 0.25], [1.0, 0.0, 0.5], 0.3, normal=True),
        _reinforce([0.2, -1.5, 0.7], [0.0, 0.3, 1.0], -0.2, normal=False),
    )


def _reinforce(
    directions: list[float], rewards_of: list[float], baseline: float, *, normal: bool
) -> Numbers:
    """Three answers with one weight for the proofs, the running batch for tokens."""
    weight = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    direction = torch.tensor(directions, dtype=torch.float64)
    reward = torch.tensor(rewards_of, dtype=torch.float64)
    p = (weight * direction).softmax(0) if normal else (weight * direction).exp()

    def slope(x: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(x, weight, retain_graph=True)[0]

    score = torch.stack([slope(x) for x in p.log()])
    noise = score**2 * p.detach()
    batch, rewards = _batch(0.99, 0.95)
    place = torch.arange(rewards.shape[1], dtype=rewards.dtype)
    rewards = rewards - 0.1 * place * batch.mask  # a small cost at every token
    togo = rewards.flip(1).cumsum(1).flip(1)

    def mean(x: torch.Tensor) -> torch.Tensor:
        return torch.where(batch.mask, x, 0.0).sum() / batch.mask.sum()

    given = {
        "p": p.detach(), "dp": torch.stack([slope(x) for x in p]), "R": reward, "b": baseline,
        "r": rewards, "logp": batch.logprobs, "mean": mean,
    }  # fmt: skip
    right = {
        "score": score,
        "slope": slope((p * reward).sum()),
        "bias": baseline * slope(p.sum()),
        "best": (noise * reward).sum() / noise.sum(),
        "togo": togo,
        "A": togo - baseline,
        "loss": -mean(batch.logprobs * (togo - baseline)),
    }
    return Numbers(given, right, (batch.logprobs,), batch.mask)


@cache
def _ppo_cases() -> tuple[Numbers, ...]:
    return tuple(_ppo(*numbers) for numbers in PPO_NUMBERS)


def _ppo(epsilon: float, gamma: float, lam: float, c_v: float, c_h: float) -> Numbers:
    batch, rewards = _batch(gamma, lam)
    on, values = batch.mask, batch.values

    def mean(x: torch.Tensor) -> torch.Tensor:
        return torch.where(on, x, 0.0).sum() / on.sum()

    advantages = gae(gamma, lam)(batch, rewards)
    log_ratio = token()(batch, advantages)
    following = torch.where(on[:, 1:], values[:, 1:], 0.0)
    following = torch.cat((following, torch.zeros_like(values[:, :1])), 1)
    given = {
        "logp": batch.logprobs, "old": batch.old_logprobs, "r": rewards, "V": values,
        "V_next": following.detach(), "H": batch.entropies, "eps": epsilon, "gamma": gamma,
        "lam": lam, "c_v": c_v, "c_h": c_h, "mean": mean,
    }  # fmt: skip
    ratio = log_ratio.exp()
    method = Objective(gae(gamma, lam), clip(epsilon), token_mean)
    whole = method.replace(terms=(value_loss(c_v, clip=None), entropy_bonus(c_h)))
    right = {
        "delta": torch.where(on, gae(gamma, 0.0)(batch, rewards), 0.0),
        "A": advantages,
        "R": batch.returns,
        "ratio": ratio,
        "unclipped": ratio * advantages,
        "clipped": ratio.clamp(1 - epsilon, 1 + epsilon) * advantages,
        "surrogate": clip(epsilon)(batch, advantages, log_ratio),
        "policy": method(batch).loss,
        "value": mean(value_loss(1.0, clip=None)(batch)),
        "loss": whole(batch).loss,
    }
    return Numbers(given, right, (batch.logprobs, values, batch.entropies), on)


@cache
def _dpo_cases() -> tuple[Numbers, ...]:
    return (
        _dpo(0.1, [0.1, 0.25, -0.05], [-4.0, -7.5], [-8.0, -6.0]),
        _dpo(0.5, [1.0, 0.0, 0.3], [-3.0, -9.0], [-5.5, -4.0]),
    )


def _dpo(beta: float, rewards: list[float], chosen: list[float], rejected: list[float]) -> Numbers:
    """Three answers for the best policy, two pairs for the loss."""
    ref = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    reward = torch.tensor(rewards, dtype=torch.float64)
    logp_w = torch.tensor(chosen, dtype=torch.float64).requires_grad_()
    logp_l = torch.tensor(rejected, dtype=torch.float64).requires_grad_()
    ref_w = torch.tensor([-6.0, -7.0], dtype=torch.float64)
    ref_l = torch.tensor([-7.0, -6.5], dtype=torch.float64)
    pairs = Pairs(logp_w, logp_l, ref_w, ref_l)
    best = (ref.log() + reward / beta).softmax(0)  # by the field's own function, not by Z
    each = dpo(pairs, beta)
    given = {
        "ref": ref, "reward": reward, "beta": beta, "logp_w": logp_w, "logp_l": logp_l,
        "ref_w": ref_w, "ref_l": ref_l, "mean": torch.mean,
    }  # fmt: skip
    right = {
        "Z": (ref.log() + reward / beta).logsumexp(0).exp(),
        "best": best,
        "solved": reward,
        "margin": beta * pairs.gap,
        "prefer": (-each).exp(),
        "loss": each.mean(),
    }
    return Numbers(given, right, (logp_w, logp_l))


BOARDS: Mapping[str, BoardText] = {
    "reinforce": BoardText(
        REINFORCE,
        "p, R: the probability and the reward of each answer to a prompt; dp: the slope of p in "
        "one weight; b: a number; r: the reward at each token; logp: the tokens' log-probs; "
        "later(x, f): at token t, x_t + f x_(t+1) + f² x_(t+2) + ...; sum: over the answers; mean: "
        "over the unmasked tokens",
        _reinforce_cases,
    ),
    "ppo": BoardText(
        PPO,
        "logp, old: the tokens' log-probs now and when sampled; r: reward; V, V_next: the critic's "
        "value here and one token on; H: entropy; gamma, lam, eps, c_v, c_h: numbers; "
        "later(x, f): at token t, x_t + f x_(t+1) + f² x_(t+2) + ...; mean: over the unmasked "
        "tokens. delta, A and R are constants for the gradient",
        _ppo_cases,
    ),
    "grpo": BoardText(
        GRPO,
        "R, n: the reward and the number of tokens of each of the G answers to one prompt; L: "
        "the most tokens an answer may have; ratio: a token's probability now over that when "
        "sampled; logp, ref: its log-prob under policy and reference; tiny, eps, beta: numbers; "
        "tokens(x): the sum over an answer's tokens; mean: over the G answers. D, s and A are "
        "constants for the gradient",
        group_cases,
    ),
    "dpo": BoardText(
        DPO,
        "ref, reward: the reference's probability and the reward of each answer to a prompt; beta: "
        "a number; logp_w, logp_l, ref_w, ref_l: log-probs of the chosen and the rejected answer "
        "under policy and reference, a pair each; sum: over the answers to the prompt; mean: over "
        "pairs",
        _dpo_cases,
    ),
}
