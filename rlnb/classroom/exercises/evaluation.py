"""Counting what a model can do: pass@k without bias, the vote, and what a step does to entropy.

Several mistakes are real: the shortcut `if n - c < k: return 1` with k above n (human-eval, issue
35; MultiPL-E, issue 40), best@N drawn with replacement (verl, pull request 7240), the pool of all
problems as one n (aprender, pull request 2118), a vote that unreadable answers can win.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = [
    "ENTROPY_CHANGE", "MAJORITY_VOTE", "PASS_AT_K", "SILENT_BUG_EVALUATION", "entropy_change",
    "majority_vote", "pass_at_k",
]  # fmt: skip


def pass_at_k(n: int, c: Tensor, k: int) -> Tensor:
    """1 - C(n - c, k) / C(n, k) for each problem's count c (P,), as a product; k at most n."""
    i = torch.arange(k, dtype=c.dtype)
    left = (n - c[:, None] - i).clamp(min=0)  # wrong answers that are left to draw
    return 1 - (left / (n - i)).prod(1)


@mistake("this is the plug-in: 1 - (1 - c/n)^k puts answers back and is too low on average")
def _plug_in(n, c, k):
    return 1 - (1 - c / n) ** k


@mistake("that is the share of right answers, pass@1, whatever k is")
def _share(n, c, k):
    return c / n


@mistake("k times the share, cut at 1: two of the k may be right at once, chances do not add up")
def _added_up(n, c, k):
    return (k * c / n).clamp(max=1)


@mistake("this is the chance that ALL k are right, pass^k: pass@k asks for at least one")
def _all_right(n, c, k):
    i = torch.arange(k, dtype=c.dtype)
    return ((c[:, None] - i).clamp(min=0) / (n - i)).prod(1)


@mistake("this is the chance that none of the k is right: 1 minus it")
def _none_right(n, c, k):
    return 1 - pass_at_k(n, c, k)


@mistake("1 as soon as one of the n is right: that is pass@n, k was not used")
def _any_of_n(n, c, k):
    return (c > 0).to(c.dtype)


@mistake("one number came from counts that were added up first: every problem has its own n")
def _pooled(n, c, k):
    return pass_at_k(n * len(c), c.sum()[None], k)[0]


@mistake("one number came: keep the problems apart, the mean is taken later")
def _averaged(n, c, k):
    return pass_at_k(n, c, k).mean()


@mistake("drawn one by one, the k draws come from n, n - 1, n - 2 ...: the divisor shrinks as well")
def _fixed_divisor(n, c, k):
    i = torch.arange(k, dtype=c.dtype)
    return 1 - ((n - c[:, None] - i).clamp(min=0) / n).prod(1)


PASS_AT_K = Exercise(
    name="pass_at_k",
    reference=pass_at_k,
    one_by_one="c",
    probes=(
        Probe("ten answers, 3 right, 5 drawn", {"n": 10, "c": [3.0], "k": 5}),
        Probe("four problems", {"n": 8, "c": [0.0, 1.0, 3.0, 8.0], "k": 4}),
        Probe("two drawn of four", {"n": 4, "c": [2.0, 3.0, 1.0], "k": 2}),
        Probe("six of eight right, five drawn", {"n": 8, "c": [6.0, 1.0], "k": 5}),
        Probe("all drawn", {"n": 6, "c": [1.0, 0.0], "k": 6}),
    ),
    mistakes=(
        _plug_in, _share, _added_up, _all_right, _none_right, _any_of_n, _pooled, _averaged,
        _fixed_divisor,
    ),
    hint="Draw k answers one after the other without putting any back: the first is wrong with "
    "chance (n - c)/n, the second then with (n - c - 1)/(n - 1). Multiply k such factors.",
)  # fmt: skip


def majority_vote(answers: Tensor, *, smallest: bool = False) -> Tensor:
    """The answer given most often in each row: (P, n) whole numbers as floats -> (P,).

    -1 is an answer that could not be read: it does not vote. A tie goes to the answer that came
    first (`smallest`: to the smallest). A row without any vote is -1.
    """
    votes = (answers[:, :, None] == answers[:, None, :]).sum(2)
    votes = torch.where(answers >= 0, votes, 0)
    if smallest:
        best = votes == votes.amax(1, keepdim=True)
        large = answers.max() + 1
        chosen = torch.where(best & (answers >= 0), answers, large).amin(1)
    else:
        chosen = answers.gather(1, votes.argmax(1, keepdim=True))[:, 0]
    return torch.where(votes.amax(1) > 0, chosen, -1)


@mistake("unreadable answers vote: where most are -1, -1 wins; leave them out first")
def _unreadable_votes(answers):
    votes = (answers[:, :, None] == answers[:, None, :]).sum(2)
    return answers.gather(1, votes.argmax(1, keepdim=True))[:, 0]


@mistake("more than half is asked for here: the largest number of votes is enough")
def _absolute_majority(answers):
    chosen = majority_vote(answers)
    count = ((answers == chosen[:, None]) & (answers >= 0)).sum(1)
    return torch.where(count > answers.shape[1] / 2, chosen, -1)


@mistake("this is the first answer of each row: nobody voted")
def _first(answers):
    return answers[:, 0]


@mistake("an average of answers is no answer: the mean of 2 and 8 is 5, which nobody said")
def _mean(answers):
    said = torch.where(answers >= 0, answers, 0).sum(1)
    return said // (answers >= 0).sum(1).clamp(min=1)


@mistake("this is the median: answers are names here, not sizes")
def _median(answers):
    return answers.median(1).values


@mistake("this is the number of votes of the winner, not the winner")
def _count(answers):
    chosen = majority_vote(answers)
    return ((answers == chosen[:, None]) & (answers >= 0)).sum(1).to(answers.dtype)


@mistake("the vote runs down the columns: a row is a problem")
def _columns(answers):
    winners = majority_vote(answers.T)
    return winners[torch.arange(len(answers)) % len(winners)]


@mistake("the largest answer, not the most frequent one")
def _largest(answers):
    return answers.amax(1)


@mistake("the answer given least often: argmin where argmax belongs")
def _rarest(answers):
    votes = (answers[:, :, None] == answers[:, None, :]).sum(2)
    votes = torch.where(answers >= 0, votes, votes.max() + 1)
    return answers.gather(1, votes.argmin(1, keepdim=True))[:, 0]


def _rows(label: str, rows: list[list[int]]) -> Probe:
    return Probe(label, {"answers": torch.tensor(rows, dtype=torch.float64)})


MAJORITY_VOTE = Exercise(
    name="majority_vote",
    reference=majority_vote,
    probes=(
        _rows("one problem", [[7, 3, 7, 1, 3, 7, 0]]),
        _rows("three problems", [[2, 8, 8, 2, 8], [1, 5, 9, 5, 0], [4, 4, 6, 6, 6]]),
        _rows("a tie", [[9, 2, 9, 2, 5], [6, 6, 1, 1, 3]]),
        _rows("unreadable ones", [[-1, -1, -1, 4, 4, 2], [-1, 3, 3, -1, -1, 0]]),
        _rows("nobody can be read", [[-1, -1, -1], [5, -1, 5]]),
    ),
    conventions=(
        Convention("a tie goes to the smallest answer, as in torch.mode", {"smallest": True}),
    ),
    mistakes=(
        _unreadable_votes, _absolute_majority, _first, _mean, _median, _count, _columns, _largest,
        _rarest,
    ),
    hint="answers[:, :, None] == answers[:, None, :] compares every answer of a row with every "
    "other; its sum is each answer's number of votes. -1 must get none.",
)  # fmt: skip


def entropy_change(logits: Tensor, advantages: Tensor, eta: float) -> Tensor:
    """-eta Cov_pi(log pi, A), in nats: logits and advantages (K,) -> a number."""
    log_p = logits.log_softmax(-1)
    p = log_p.exp()
    return -eta * (p * (log_p - p @ log_p) * (advantages - p @ advantages)).sum()


@mistake("the sign: where likely answers are good, entropy falls")
def _other_sign(logits, advantages, eta):
    return -entropy_change(logits, advantages, eta)


@mistake("every answer counts the same here: the covariance is taken under pi, weigh by p")
def _even_weights(logits, advantages, eta):
    log_p = logits.log_softmax(-1)
    return -eta * ((log_p - log_p.mean()) * (advantages - advantages.mean())).mean()


@mistake("torch.cov: every answer counts the same, and it divides by K - 1; weigh by p")
def _torch_cov(logits, advantages, eta):
    return -eta * torch.cov(torch.stack([logits.log_softmax(-1), advantages]))[0, 1]


@mistake("not centred: E[log pi A] is the covariance only if the mean advantage under pi is 0")
def _not_centred(logits, advantages, eta):
    log_p = logits.log_softmax(-1)
    return -eta * (log_p.exp() * log_p * advantages).sum()


@mistake("p stands where log p belongs: the covariance is with the log-probability")
def _with_p(logits, advantages, eta):
    p = logits.softmax(-1)
    return -eta * (p * (p - p @ p) * (advantages - p @ advantages)).sum()


@mistake("a correlation: the stds were divided out, and with them the size of the change")
def _correlation(logits, advantages, eta):
    log_p = logits.log_softmax(-1)
    p = log_p.exp()
    lp, a = log_p - p @ log_p, advantages - p @ advantages
    return -eta * (p * lp * a).sum() / ((p * lp**2).sum() * (p * a**2).sum()).sqrt()


@mistake(
    "this is the plain gradient's step, dz = eta pi (A - mean): here each logit moves by eta A"
)
def _plain_gradient(logits, advantages, eta):
    p = logits.softmax(-1)
    return entropy_change(logits, p * (advantages - p @ advantages), eta)


@mistake("this is the change itself, after a whole step: the first order was asked for")
def _whole_step(logits, advantages, eta):
    def entropy(z):
        return torch.special.entr(z.softmax(-1)).sum()

    return entropy(logits + eta * advantages) - entropy(logits)


@mistake("eta is missing")
def _no_eta(logits, advantages, eta):
    return entropy_change(logits, advantages, 1.0)


@mistake("the logits stand where log p belongs; centred under pi that is the same, but not here")
def _raw_logits(logits, advantages, eta):
    p = logits.softmax(-1)
    return -eta * (p * logits * advantages).sum()


ENTROPY_CHANGE = Exercise(
    name="entropy_change",
    reference=entropy_change,
    probes=(
        Probe("three answers", {"logits": [2.0, 0.0, -1.0], "advantages": [0.6, -0.4, -0.4],
                                "eta": 0.1}),
        Probe("a rare right one", {"logits": [-2.0, 1.0, 0.5, 0.0],
                                   "advantages": [1.0, 0.0, 0.0, 0.0], "eta": 0.5}),
        Probe("five answers", {"logits": [0.3, -0.7, 1.4, 0.0, -2.0],
                               "advantages": [1.5, -0.5, 2.0, -1.0, 0.25], "eta": 2.0}),
    ),
    mistakes=(
        _other_sign, _even_weights, _torch_cov, _not_centred, _with_p, _correlation,
        _plain_gradient, _whole_step, _no_eta, _raw_logits,
    ),
    hint="log_p = logits.log_softmax(-1), p = log_p.exp(). A mean under pi is (p * x).sum(). Take "
    "the mean of the product of the two centred things.",
)  # fmt: skip


def _pass_at_1(right: Tensor, finished: Tensor) -> Tensor:
    return (right * finished).sum(1) / right.shape[1]


def pass_at_1(right, finished):
    """pass@1 of each problem. Both (P, n), 0 or 1: the answer is
    right; it ended before the length limit."""
    counted = finished.sum(1)  # answers that can be graded
    solved = (right * finished).sum(1)
    return solved / counted.clamp(min=1)


SILENT_BUG_EVALUATION = SilentBug(
    "silent_bug_evaluation",
    _pass_at_1,
    pass_at_1,
    "answers that were cut off leave the count; they should count as failures. The longer a model "
    "rambles, the better its score. With everything finished it agrees.",
    hint="An answer that hits the limit is a wrong answer. Two answers are enough to show it.",
)
