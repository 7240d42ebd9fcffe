"""A run: the loss of a later update, its log, the slope of a style, and wrong neighbours."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = [
    "LATER_LOSS",
    "RUN_LOG",
    "SILENT_BUG_GRPO_FOR_REAL",
    "STYLE_SLOPE",
    "later_loss",
    "rewards_of",
    "run_log",
]


def run_log(
    rewards: torch.Tensor,
    num_generations: int,
    finished: torch.Tensor,
    mask: torch.Tensor,
    sampled: torch.Tensor,
    scored: torch.Tensor,
) -> torch.Tensor:
    """(5,): shares of groups all right, mixed, all wrong; share cut off; largest gap in log-probs.

    rewards (B,) of 0 and 1, rows of a prompt together; finished (B,) bool; mask (B, T) bool;
    sampled and scored (B, T), the log-probabilities of sampler and trainer.
    """
    groups = rewards.view(-1, num_generations)
    low, high = groups.min(1).values, groups.max(1).values
    gap = torch.where(mask, sampled - scored, 0.0).abs().max()
    shares = [low == 1, high > low, high == 0, ~finished]
    return torch.stack([*(share.to(rewards.dtype).mean() for share in shares), gap])


def _replaced(place: int, value: torch.Tensor, log: torch.Tensor) -> torch.Tensor:
    log = log.clone()
    log[place] = value
    return log


@mistake("the groups are interleaved: rows kG to kG + G - 1 answer prompt k, so view(-1, G)")
def _interleaved(rewards, num_generations, finished, mask, sampled, scored):
    shuffled = rewards.view(num_generations, -1).T.reshape(-1)
    return run_log(shuffled, num_generations, finished, mask, sampled, scored)


@mistake("the gap looks at padding: only tokens under the mask were written")
def _padding(rewards, num_generations, finished, mask, sampled, scored):
    return run_log(rewards, num_generations, finished, torch.ones_like(mask), sampled, scored)


@mistake("the gap has a sign here: one token far below is as bad as one far above, take abs first")
def _signed(rewards, num_generations, finished, mask, sampled, scored):
    log = run_log(rewards, num_generations, finished, mask, sampled, scored)
    return _replaced(4, torch.where(mask, sampled - scored, -torch.inf).max(), log)


@mistake("the mean gap hides one bad token among thousands: log the largest")
def _mean_gap(rewards, num_generations, finished, mask, sampled, scored):
    log = run_log(rewards, num_generations, finished, mask, sampled, scored)
    return _replaced(4, (sampled - scored).abs()[mask].mean(), log)


@mistake("the share that finished: what has to be watched is the share that was cut off")
def _finished(rewards, num_generations, finished, mask, sampled, scored):
    log = run_log(rewards, num_generations, finished, mask, sampled, scored)
    return _replaced(3, 1 - log[3], log)


@mistake("all right and all wrong are exchanged: the first is success, the last is a task too hard")
def _exchanged(rewards, num_generations, finished, mask, sampled, scored):
    return run_log(rewards, num_generations, finished, mask, sampled, scored)[[2, 1, 0, 3, 4]]


@mistake("shares of answers, not of groups: an answer alone is never mixed")
def _of_answers(rewards, num_generations, finished, mask, sampled, scored):
    log = run_log(rewards, num_generations, finished, mask, sampled, scored)
    log = _replaced(0, rewards.mean(), log)
    return _replaced(2, 1 - rewards.mean(), log)


def _batch(label: str, rewards: list, size: int, finished: list, gaps: list, mask: list) -> Probe:
    scored = torch.full((len(gaps), len(gaps[0])), -0.5)
    return Probe(
        label,
        {
            "rewards": torch.tensor(rewards),
            "num_generations": size,
            "finished": torch.tensor(finished, dtype=torch.bool),
            "mask": torch.tensor(mask, dtype=torch.bool),
            "sampled": scored + torch.tensor(gaps),
            "scored": scored,
        },
    )


RUN_LOG = Exercise(
    name="run_log",
    reference=run_log,
    probes=(
        _batch(
            "two prompts, two answers each",
            [1.0, 1.0, 0.0, 1.0],
            2,
            [1, 1, 0, 1],
            [[0.0, 0.01], [0.0, 0.0], [-0.03, 0.5], [0.0, 0.7]],
            [[1, 1], [1, 1], [1, 0], [1, 0]],
        ),
        _batch(
            "three prompts, four answers each",
            [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
            4,
            [1] * 10 + [0, 0],
            [[0.001, -0.2, 0.9]] + [[0.0, 0.004, 0.0]] * 11,
            [[1, 1, 0]] + [[1, 1, 1]] * 11,
        ),
        _batch(
            "all wrong but one group",
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0],
            2,
            [1, 0, 1, 0, 1, 1, 1, 1],
            [[0.0, 0.0]] * 7 + [[0.02, -0.05]],
            [[1, 1]] * 8,
        ),
    ),
    mistakes=(_interleaved, _padding, _signed, _mean_gap, _finished, _exchanged, _of_answers),
    hint="groups = rewards.view(-1, num_generations); min and max of a row say which kind it is. "
    "The gap: abs of the difference where the mask is true, then max.",
)


def style_slope(d: torch.Tensor, direct: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """d(1 - d)(direct - steps): the slope of p = d direct + (1 - d) steps in the logit of d."""
    return d * (1 - d) * (direct - steps)


@mistake("that is the slope in d itself: d = sigmoid(z), so the chain rule brings d(1 - d)")
def _in_d(d, direct, steps):
    return direct - steps


@mistake("the sign: more direct answers change p by a_direct minus a_steps")
def _other_sign(d, direct, steps):
    return -style_slope(d, direct, steps)


@mistake("d(1 - d) is there, once: one factor too many")
def _twice(d, direct, steps):
    return d * (1 - d) * style_slope(d, direct, steps)


@mistake("the derivative of the sigmoid is d(1 - d), not d alone")
def _only_d(d, direct, steps):
    return d * (direct - steps)


@mistake("the derivative of the sigmoid is d(1 - d), not 1 - d alone: that is the slope of log d")
def _only_rest(d, direct, steps):
    return (1 - d) * (direct - steps)


@mistake("(1 - d) a_steps falls as d rises: the second term enters with a minus")
def _sum(d, direct, steps):
    return d * (1 - d) * (direct + steps)


STYLE_SLOPE = Exercise(
    name="style_slope",
    reference=style_slope,
    probes=(
        Probe("the base", {"d": [0.6], "direct": [0.23], "steps": [0.66]}),
        Probe("even", {"d": [0.5, 0.5], "direct": [0.2, 0.9], "steps": [0.8, 0.1]}),
        Probe(
            "nearly decided",
            {"d": [0.999, 0.01, 0.3], "direct": [0.2, 0.2, 0.5], "steps": [0.7, 0.7, 0.25]},
        ),
    ),
    mistakes=(_in_d, _other_sign, _twice, _only_d, _only_rest, _sum),
    hint="d = sigmoid(z), and its derivative is d(1 - d). p is linear in d.",
)


def _right(problems: list[str], texts: list[str]) -> list[float]:
    size = len(texts) // len(problems)
    return [float(text.endswith("so" + problems[i // size])) for i, text in enumerate(texts)]


def rewards_of(problems, texts):
    """problems: right digits; texts: G answers to each, in order."""
    rewards = []
    for i, text in enumerate(texts):
        digit = problems[i % len(problems)]
        rewards.append(float(text.endswith("so" + digit)))
    return rewards


SILENT_BUG_GRPO_FOR_REAL = SilentBug(
    "silent_bug_grpo_for_real",
    _right,
    rewards_of,
    "`i % P` deals the problems out in turn; the rows come prompt by prompt, `i // G`. Nearly "
    "every answer is held against another problem's digit: a weak coin for a verifier.",
    hint="Which texts must all earn 1? Two problems with different digits, two answers each.",
)


def later_loss(
    logp: torch.Tensor,
    stored: torch.Tensor,
    rewards: torch.Tensor,
    mask: torch.Tensor,
    num_generations: int,
    max_length: int,
) -> torch.Tensor:
    """Dr. GRPO's loss of any update on a batch, clipped to 1 +- 0.2.

    logp and stored (B, T): log-probabilities now, and when the answers were drawn; rewards (B,),
    rows of a prompt together; mask (B, T) bool.
    """
    groups = rewards.view(-1, num_generations)
    advantages = (groups - groups.mean(1, keepdim=True)).view(-1, 1)
    rho = (logp - stored).exp()
    gain = torch.minimum(rho * advantages, rho.clamp(0.8, 1.2) * advantages)
    return -torch.where(mask, gain, 0.0).sum() / (len(rewards) * max_length)


@mistake("rho is 1 here: logp.detach() is the old policy in the first update only, use `stored`")
def _own_detached(logp, stored, rewards, mask, num_generations, max_length):
    return later_loss(logp, logp, rewards, mask, num_generations, max_length)


@mistake("no clip: from the second update on the ratio leaves the band, and only the clip stops it")
def _unclipped(logp, stored, rewards, mask, num_generations, max_length):
    groups = rewards.view(-1, num_generations)
    advantages = (groups - groups.mean(1, keepdim=True)).view(-1, 1)
    gain = torch.where(mask, (logp - stored).exp() * advantages, 0.0)
    return -gain.sum() / (len(rewards) * max_length)


@mistake("the minimum is missing: clamp alone also drops tokens that are on the way back")
def _clamp_alone(logp, stored, rewards, mask, num_generations, max_length):
    banded = (logp - stored).exp().clamp(0.8, 1.2).log()
    return _unclipped(banded, torch.zeros_like(banded), rewards, mask, num_generations, max_length)


@mistake("the ratio is upside down: now minus stored, then exp")
def _upside_down(logp, stored, rewards, mask, num_generations, max_length):
    return later_loss(stored, logp, rewards, mask, num_generations, max_length)


@mistake("the sign: the gain is to rise, so the loss is minus the gain")
def _gain(logp, stored, rewards, mask, num_generations, max_length):
    return -later_loss(logp, stored, rewards, mask, num_generations, max_length)


@mistake("padding is counted: only tokens under the mask were written")
def _with_padding(logp, stored, rewards, mask, num_generations, max_length):
    every = torch.ones_like(mask)
    return later_loss(logp, stored, rewards, every, num_generations, max_length)


@mistake("divided by the tokens there are: Dr. GRPO divides by a constant, B times max_length")
def _token_mean(logp, stored, rewards, mask, num_generations, max_length):
    loss = later_loss(logp, stored, rewards, mask, num_generations, max_length)
    return loss * len(rewards) * max_length / mask.sum()


@mistake("the rewards are not centred: subtract the mean of the group")
def _not_centred(logp, stored, rewards, mask, num_generations, max_length):
    rho = (logp - stored).exp()
    gain = torch.minimum(rho * rewards[:, None], rho.clamp(0.8, 1.2) * rewards[:, None])
    return -torch.where(mask, gain, 0.0).sum() / (len(rewards) * max_length)


@mistake("the mean of the whole batch: each prompt's answers have a mean of their own")
def _one_mean(logp, stored, rewards, mask, num_generations, max_length):
    return later_loss(logp, stored, rewards, mask, len(rewards), max_length)


def _updates(label: str, rewards: list, moved: list, mask: list, size: int, length: int) -> Probe:
    stored = torch.full((len(moved), len(moved[0])), -0.7)
    return Probe(
        label,
        {
            "logp": stored + torch.tensor(moved),
            "stored": stored,
            "rewards": torch.tensor(rewards),
            "mask": torch.tensor(mask, dtype=torch.bool),
            "num_generations": size,
            "max_length": length,
        },
    )


LATER_LOSS = Exercise(
    name="later_loss",
    reference=later_loss,
    probes=(
        _updates("one group", [1.0, 0.0], [[0.1, -0.05], [0.15, 0.9]], [[1, 1], [1, 0]], 2, 8),
        _updates(
            "two groups, some tokens outside the band",
            [1.0, 0.0, 1.0, 0.0, 0.0, 1.0],
            [[0.4, -0.5], [0.5, -0.4], [0.02, 0.3], [0.6, 0.1], [-0.6, 0.1], [-0.3, 0.7]],
            [[1, 1], [1, 1], [1, 0], [1, 1], [1, 1], [1, 1]],
            3,
            16,
        ),
    ),
    mistakes=(
        _own_detached,
        _unclipped,
        _clamp_alone,
        _upside_down,
        _gain,
        _with_padding,
        _token_mean,
        _not_centred,
        _one_mean,
    ),
    hint="rho = exp(logp - stored). The gain of a token is the smaller of rho A and clamp(rho) A.",
)
