"""KL in the reward, token by token, and a penalty that is not 0 where the policies agree."""

from __future__ import annotations

import torch

from rlnb.classroom.exercises.exercise import Exercise, Mistake, Probe
from rlnb.classroom.exercises.reinforce import PADDING
from rlnb.classroom.exercises.silent_bug import SilentBug

__all__ = ["KL_IN_REWARD", "SILENT_BUG_04", "kl_in_reward"]


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


def _last_column(rewards, logprobs, ref_logprobs, mask, beta):
    out = -beta * _k1(logprobs, ref_logprobs, mask)
    out[:, -1] += rewards
    return out


def _counted(rewards, logprobs, ref_logprobs, mask, beta):
    out = -beta * _k1(logprobs, ref_logprobs, mask)
    out[torch.arange(len(rewards)), mask.sum(1) - 1] += rewards
    return out


def _every_token(rewards, logprobs, ref_logprobs, mask, beta):
    return torch.where(mask, rewards[:, None] - beta * (logprobs - ref_logprobs), 0)


def _shared_out(rewards, logprobs, ref_logprobs, mask, beta):
    share = rewards[:, None] / mask.sum(1, keepdim=True)
    return torch.where(mask, share - beta * (logprobs - ref_logprobs), 0)


def _first_token(rewards, logprobs, ref_logprobs, mask, beta):
    out = -beta * _k1(logprobs, ref_logprobs, mask)
    out[:, 0] += rewards
    return out


def _paid_for_leaving(rewards, logprobs, ref_logprobs, mask, beta):
    return kl_in_reward(rewards, logprobs, ref_logprobs, mask, -beta)


def _k3(rewards, logprobs, ref_logprobs, mask, beta):
    d = -_k1(logprobs, ref_logprobs, mask)
    return _on_last(rewards, mask) - beta * (torch.expm1(d) - d)


def _k2(rewards, logprobs, ref_logprobs, mask, beta):
    d = _k1(logprobs, ref_logprobs, mask)
    return _on_last(rewards, mask) - beta * d.square() / 2


def _absolute(rewards, logprobs, ref_logprobs, mask, beta):
    return _on_last(rewards, mask) - beta * _k1(logprobs, ref_logprobs, mask).abs()


def _no_mask(rewards, logprobs, ref_logprobs, mask, beta):
    return _on_last(rewards, mask) - beta * (logprobs - ref_logprobs)


def _no_beta(rewards, logprobs, ref_logprobs, mask, beta):
    return kl_in_reward(rewards, logprobs, ref_logprobs, mask, 1.0)


def _beta_on_the_reward(rewards, logprobs, ref_logprobs, mask, beta):
    return beta * kl_in_reward(rewards, logprobs, ref_logprobs, mask, 1.0)


def _all_on_the_last(rewards, logprobs, ref_logprobs, mask, beta):
    return _on_last(rewards - beta * _k1(logprobs, ref_logprobs, mask).sum(1), mask)


def _answer_mean(rewards, logprobs, ref_logprobs, mask, beta):
    lengths = mask.sum(1, keepdim=True)
    return _on_last(rewards, mask) - beta * _k1(logprobs, ref_logprobs, mask) / lengths


def _penalty_only(rewards, logprobs, ref_logprobs, mask, beta):
    return -beta * _k1(logprobs, ref_logprobs, mask)


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
    def table(x):
        return torch.tensor(x, dtype=torch.float64)

    return Probe(
        label,
        {
            "rewards": table(rewards),
            "logprobs": table(logprobs),
            "ref_logprobs": table(ref_logprobs),
            "mask": torch.tensor(mask, dtype=torch.bool),
            "beta": beta,
        },
        catches,
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
        Mistake(
            "the reward is in the last column: it belongs on the last token of the answer, "
            "which padding comes after",
            _last_column,
        ),
        Mistake(
            "mask.sum(1) - 1 counts tokens: with masked tokens in the middle (a tool's output) "
            "the last one stands further right",
            _counted,
        ),
        Mistake("the reward is on every token: then an answer is paid by its length", _every_token),
        Mistake(
            "the reward is shared out over the tokens: it comes once, on the last token; "
            "spreading it is the advantage's job",
            _shared_out,
        ),
        Mistake(
            "the reward is on the first token: with a discount or a critic it matters that it "
            "comes at the end",
            _first_token,
        ),
        Mistake(
            "the sign of the KL is flipped: this pays for leaving the reference", _paid_for_leaving
        ),
        Mistake(
            "this is k3: in the reward it is biased; k1, log pi - log ref, gives the gradient "
            "of KL(pi || ref) exactly",
            _k3,
        ),
        Mistake("this is k2: in the reward it is biased; k1, log pi - log ref, is asked for", _k2),
        Mistake(
            "no absolute value: a token rarer than under the reference is paid back, and only "
            "the mean is the KL",
            _absolute,
        ),
        Mistake("padding is penalised: outside the mask the reward is 0", _no_mask),
        Mistake("beta is missing", _no_beta),
        Mistake(
            "beta multiplies the reward as well: it belongs to the penalty only",
            _beta_on_the_reward,
        ),
        Mistake(
            "the whole penalty is on the last token: right for one action per answer (RLOO); "
            "here every token pays its own",
            _all_on_the_last,
        ),
        Mistake(
            "the penalty is divided by the length: per token it is beta times the log-ratio, "
            "and an answer pays the sum",
            _answer_mean,
        ),
        Mistake("the rewards are not used: this is the penalty alone", _penalty_only),
        Mistake(PADDING, _padding_times_zero),
    ),
    hint="torch.where(mask, logprobs - ref_logprobs, 0) times -beta. Then find the last True of "
    "every row: (mask * torch.arange(T)).argmax(1), and add the reward there.",
)


def _kl_penalty(logits, ref_logits, tokens, temperature):
    scores = torch.stack([logits, ref_logits]) / temperature  # (2, T, V)
    index = tokens.expand(2, -1).unsqueeze(-1)  # (2, T, 1)
    logp, ref = scores.log_softmax(-1).gather(-1, index).squeeze(-1)
    return torch.expm1(ref - logp) - (ref - logp)


def kl_penalty(logits, ref_logits, tokens, temperature):  # (T, V), (T, V)
    index = tokens.unsqueeze(-1)  # (T, 1)
    logp = (logits / temperature).log_softmax(-1).gather(-1, index)
    ref = ref_logits.log_softmax(-1).gather(-1, index)
    d = (ref - logp).squeeze(-1)  # (T,)
    return torch.expm1(d) - d


SILENT_BUG_04 = SilentBug(
    name="silent_bug_04",
    right=_kl_penalty,
    broken=kl_penalty,
    story="Policy at the sampling temperature, reference at 1: the penalty pulls towards a policy "
    "that is not the reference, even from the reference itself.",
    hint="At temperature 1 nothing is wrong. What must the penalty be on the first step of a run, "
    "where policy and reference are the same model?",
)
