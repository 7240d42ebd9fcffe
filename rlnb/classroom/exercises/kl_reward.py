"""KL in the reward, token by token, and a penalty that is not 0 where the policies agree."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, habit, mistake
from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.exercises.reinforce import PADDING

__all__ = ["KL_IN_REWARD", "SILENT_BUG_KL", "kl_in_reward"]


def kl_in_reward(
    rewards: torch.Tensor,
    logprobs: torch.Tensor,
    ref_logprobs: torch.Tensor,
    mask: torch.Tensor,
    beta: float,
) -> torch.Tensor:
    """-beta (log pi - log ref)_t on every real token, plus r on the last one: (B, T)."""
    return _on_last(rewards, mask) - beta * _k1(logprobs, ref_logprobs, mask)


def _k1(logprobs, ref_logprobs, mask):
    return torch.where(mask, logprobs - ref_logprobs, 0)


def _on_last(rewards, mask):
    steps = torch.arange(mask.shape[1])
    last = (mask * steps).argmax(1, keepdim=True)
    return rewards.new_zeros(mask.shape).scatter(1, last, rewards[:, None])


@mistake(
    "the reward is in the last column: it belongs on the last token of the answer, "
    "which padding comes after"
)
def _last_column(rewards, logprobs, ref_logprobs, mask, beta):
    out = -beta * _k1(logprobs, ref_logprobs, mask)
    out[:, -1] += rewards
    return out


@mistake(
    "mask.sum(1) - 1 counts tokens: with masked tokens in the middle (a tool's output) "
    "the last one stands further right"
)
def _counted(rewards, logprobs, ref_logprobs, mask, beta):
    out = -beta * _k1(logprobs, ref_logprobs, mask)
    out[torch.arange(len(rewards)), mask.sum(1) - 1] += rewards
    return out


@mistake("the reward is on every token: then an answer is paid by its length")
def _every_token(rewards, logprobs, ref_logprobs, mask, beta):
    return torch.where(mask, rewards[:, None] - beta * (logprobs - ref_logprobs), 0)


@mistake(
    "the reward is shared out over the tokens: it comes once, on the last token; "
    "spreading it is the advantage's job"
)
def _shared_out(rewards, logprobs, ref_logprobs, mask, beta):
    share = rewards[:, None] / mask.sum(1, keepdim=True)
    return torch.where(mask, share - beta * (logprobs - ref_logprobs), 0)


@mistake(
    "the reward is on the first token: with a discount or a critic it matters that it "
    "comes at the end"
)
def _first_token(rewards, logprobs, ref_logprobs, mask, beta):
    out = -beta * _k1(logprobs, ref_logprobs, mask)
    out[:, 0] += rewards
    return out


@mistake("the sign of the KL is flipped: this pays for leaving the reference")
def _paid_for_leaving(rewards, logprobs, ref_logprobs, mask, beta):
    return kl_in_reward(rewards, logprobs, ref_logprobs, mask, -beta)


@mistake(
    "this is k3: in the reward it is biased; k1, log pi - log ref, gives the gradient "
    "of KL(pi || ref) exactly"
)
def _k3(rewards, logprobs, ref_logprobs, mask, beta):
    d = -_k1(logprobs, ref_logprobs, mask)
    return _on_last(rewards, mask) - beta * (torch.expm1(d) - d)


@mistake("this is k2: in the reward it is biased; k1, log pi - log ref, is asked for")
def _k2(rewards, logprobs, ref_logprobs, mask, beta):
    d = _k1(logprobs, ref_logprobs, mask)
    return _on_last(rewards, mask) - beta * d.square() / 2


@mistake(
    "no absolute value: a token rarer than under the reference is paid back, and only "
    "the mean is the KL"
)
def _absolute(rewards, logprobs, ref_logprobs, mask, beta):
    return _on_last(rewards, mask) - beta * _k1(logprobs, ref_logprobs, mask).abs()


@mistake("padding is penalised: outside the mask the reward is 0")
def _no_mask(rewards, logprobs, ref_logprobs, mask, beta):
    return _on_last(rewards, mask) - beta * (logprobs - ref_logprobs)


@mistake("beta is missing")
def _no_beta(rewards, logprobs, ref_logprobs, mask, beta):
    return kl_in_reward(rewards, logprobs, ref_logprobs, mask, 1.0)


@mistake("beta multiplies the reward as well: it belongs to the penalty only")
def _beta_on_the_reward(rewards, logprobs, ref_logprobs, mask, beta):
    return beta * kl_in_reward(rewards, logprobs, ref_logprobs, mask, 1.0)


@mistake(
    "the whole penalty is on the last token: right for one action per answer (RLOO); "
    "here every token pays its own"
)
def _all_on_the_last(rewards, logprobs, ref_logprobs, mask, beta):
    return _on_last(rewards - beta * _k1(logprobs, ref_logprobs, mask).sum(1), mask)


@mistake(
    "the penalty is divided by the length: per token it is beta times the log-ratio, "
    "and an answer pays the sum"
)
def _answer_mean(rewards, logprobs, ref_logprobs, mask, beta):
    lengths = mask.sum(1, keepdim=True)
    return _on_last(rewards, mask) - beta * _k1(logprobs, ref_logprobs, mask) / lengths


@mistake("the rewards are not used: this is the penalty alone")
def _penalty_only(rewards, logprobs, ref_logprobs, mask, beta):
    return -beta * _k1(logprobs, ref_logprobs, mask)


@habit(PADDING)
def _padding_times_zero(rewards, logprobs, ref_logprobs, mask, beta):
    return _on_last(rewards, mask) - beta * (logprobs - ref_logprobs) * mask


def _probe(
    label: str,
    rewards: list,
    logprobs: list,
    ref_logprobs: list,
    mask: list,
    beta: float,
    catches: str = "",
) -> Probe:
    return Probe(
        label,
        {
            "rewards": rewards,
            "logprobs": logprobs,
            "ref_logprobs": ref_logprobs,
            "mask": torch.tensor(mask, dtype=torch.bool),
            "beta": beta,
        },
        catches,
        bool(catches),
    )


NAN, INF = float("nan"), float("inf")

KL_IN_REWARD = Exercise(
    name="kl_in_reward",
    reference=kl_in_reward,
    probes=(
        _probe("one answer of two tokens", [1.0], [[-1.0, -0.5]], [[-0.5, -1.5]], [[1, 1]], 0.5),
        _probe(
            "unequal lengths",
            [1.0, -2.0],
            [[-1.0, -0.25, -2.0], [-0.5, -1.0, -0.75]],
            [[-1.5, -0.5, -1.0], [-0.25, -1.75, -2.75]],
            [[1, 1, 1], [1, 1, 0]],
            0.1,
        ),
        _probe(
            "a tool's output in the middle",
            [2.0],
            [[-0.5, -3.0, -1.0, -0.25]],
            [[-0.75, -1.0, -0.5, -0.5]],
            [[1, 0, 1, 1]],
            0.2,
        ),
        _probe(
            "-inf and nan under the mask",
            [1.0, 0.5],
            [[-1.0, -INF], [-2.0, -0.5]],
            [[-0.5, NAN], [-1.0, -1.0]],
            [[1, 0], [1, 1]],
            0.1,
            PADDING,
        ),
    ),
    mistakes=(
        _last_column,
        _counted,
        _every_token,
        _shared_out,
        _first_token,
        _paid_for_leaving,
        _k3,
        _k2,
        _absolute,
        _no_mask,
        _no_beta,
        _beta_on_the_reward,
        _all_on_the_last,
        _answer_mean,
        _penalty_only,
        _padding_times_zero,
    ),
    hint="torch.where(mask, logprobs - ref_logprobs, 0) times -beta. Then find the last True of "
    "every row: (mask * torch.arange(T)).argmax(1), and add the reward there.",
)


def _kl_penalty(logits, ref_logits, tokens, temperature):
    scores = torch.stack([logits, ref_logits]) / temperature  # (2, T, V)
    index = tokens.expand(2, -1).unsqueeze(-1)  # (2, T, 1)
    logp, ref = scores.log_softmax(-1).gather(-1, index).squeeze(-1)
    return torch.expm1(ref - logp) - (ref - logp)


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def kl_penalty(logits, ref_logits, tokens, temperature):  # (T, V), (T, V)
    index = tokens.unsqueeze(-1)                          # (T, 1)
    logp = (logits / temperature).log_softmax(-1).gather(-1, index)
    ref = ref_logits.log_softmax(-1).gather(-1, index)
    d = (ref - logp).squeeze(-1)                          # (T,)
    return torch.expm1(d) - d
# fmt: on


SILENT_BUG_KL = SilentBug(
    name="silent_bug_kl",
    right=_kl_penalty,
    broken=kl_penalty,
    story="Policy at the sampling temperature, reference at 1: the penalty pulls towards a policy "
    "that is not the reference, even from the reference itself.",
    hint="At temperature 1 nothing is wrong. What must the penalty be on the first step of a run, "
    "where policy and reference are the same model?",
)
