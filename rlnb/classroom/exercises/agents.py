"""Trajectories of many turns: whose tokens are trained, which turn gets the credit."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake
from rlnb.objective.turns import observation_mask as right_mask
from rlnb.objective.turns import turn_advantages as right_credit

__all__ = [
    "BREAK_EVEN_ERROR",
    "OBSERVATION_MASK",
    "TURN_ADVANTAGES",
    "break_even_error",
    "observation_mask",
    "turn_advantages",
]


def observation_mask(role: torch.Tensor, prompt_length: torch.Tensor) -> torch.Tensor:
    """(B, L) of 0 padding, 1 user, 2 assistant, 3 tool, and (B,) -> (B, L-1), True is trained."""
    return right_mask(role, prompt_length)


def _behind_the_prompt(role, prompt_length):
    return torch.arange(role.shape[1]) >= prompt_length[:, None]


@mistake(
    "the tool's tokens are in the loss: only what the assistant wrote is (TRL's fused loss had "
    "this, pull request 4975)"
)
def _world_included(role, prompt_length):
    return (_behind_the_prompt(role, prompt_length) & (role > 0))[:, 1:]


@mistake("upside down: the gradient goes to the tool's tokens and not to the policy's (RAGEN, 71)")
def _inverted(role, prompt_length):
    behind = _behind_the_prompt(role, prompt_length) & (role > 0)
    return (behind & (role != 2))[:, 1:]


@mistake(
    "assistant turns inside the prompt are trained: examples or history, not written here; use "
    "prompt_length (NeMo-RL, pull request 2176)"
)
def _history_included(role, prompt_length):
    return (role == 2)[:, 1:]


@mistake(
    "one place off: column t predicts token t + 1, and the author of the predicted token counts; "
    "drop the first column, not the last"
)
def _inputs_not_targets(role, prompt_length):
    return (_behind_the_prompt(role, prompt_length) & (role == 2))[:, :-1]


@mistake(
    "only the last turn is trained: every turn of the policy led to the reward (ms-swift, 7838)"
)
def _last_turn_only(role, prompt_length):
    own = _behind_the_prompt(role, prompt_length) & (role == 2)
    later = own & ~torch.roll(own, 1, 1)  # first token of each turn
    starts = later.cumsum(1)
    return (own & (starts == starts[:, -1:]))[:, 1:]


@mistake("only the first turn is trained: what the policy wrote behind a tool's answer counts too")
def _first_turn_only(role, prompt_length):
    own = _behind_the_prompt(role, prompt_length) & (role == 2)
    starts = (own & ~torch.roll(own, 1, 1)).cumsum(1)
    return (own & (starts == 1))[:, 1:]


@mistake(
    "the first token of every turn is lost: it is predicted from somebody else's token, and the "
    "policy chose it all the same"
)
def _both_sides(role, prompt_length):
    own = _behind_the_prompt(role, prompt_length) & (role == 2)
    return own[:, 1:] & own[:, :-1]


@mistake("the last token of every turn is lost: the call, or the end token, is a decision as well")
def _stop_dropped(role, prompt_length):
    own = _behind_the_prompt(role, prompt_length) & (role == 2)
    following = torch.cat([own[:, 1:], torch.zeros_like(own[:, :1])], 1)
    return (own & following)[:, 1:]


@mistake("the prompt is in the loss: nobody drew it; start at prompt_length")
def _all_but_tools(role, prompt_length):
    return ((role == 1) | (role == 2))[:, 1:]


@mistake("padding is in the loss: role 0 was written by nobody")
def _padding_included(role, prompt_length):
    return (_behind_the_prompt(role, prompt_length) & ((role == 2) | (role == 0)))[:, 1:]


def _rows(label: str, role: list[list[int]], prompt: list[int]) -> Probe:
    return Probe(label, {"role": torch.tensor(role), "prompt_length": torch.tensor(prompt)})


OBSERVATION_MASK = Exercise(
    name="observation_mask",
    reference=observation_mask,
    probes=(
        _rows("a call, an answer, and no padding", [[1, 1, 2, 2, 3, 3, 2, 2]], [2]),
        _rows(
            "two rows: an example in the prompt, padding behind",
            [
                [1, 1, 2, 2, 1, 2, 2, 2, 3, 3, 2, 2, 3, 2, 2, 0],
                [1, 2, 2, 1, 1, 2, 2, 3, 2, 2, 2, 0, 0, 0, 0, 0],
            ],
            [5, 5],
        ),
    ),
    mistakes=(
        _world_included,
        _inverted,
        _history_included,
        _inputs_not_targets,
        _last_turn_only,
        _first_turn_only,
        _both_sides,
        _stop_dropped,
        _all_but_tools,
        _padding_included,
    ),
    hint="Two conditions on a token: its author, and its place. Then: which of its columns does a "
    "prediction belong to?",
)


def turn_advantages(
    rewards: torch.Tensor, turn: torch.Tensor, num_generations: int, *, all_rows: bool = False
) -> torch.Tensor:
    """Return from the turn on, minus its group's mean: (B, K), (B, T), int -> (B, T).

    all_rows: the mean is over all G rows, with 0 for those that have ended.
    """
    if not all_rows:
        return right_credit(rewards, turn, num_generations)
    return _laid_out(_centred(_to_go(rewards), num_generations), turn)


def _to_go(rewards):
    return rewards.flip(1).cumsum(1).flip(1)


def _centred(credit, num_generations):
    grouped = credit.reshape(-1, num_generations, credit.shape[1])
    return (grouped - grouped.mean(1, keepdim=True)).view_as(credit)


def _there(rewards, turn):
    return torch.arange(rewards.shape[1]) <= turn.amax(1, keepdim=True)


def _centred_there(credit, rewards, turn, num_generations):
    there = _there(rewards, turn)
    grouped = torch.where(there, credit, 0.0).view(-1, num_generations, rewards.shape[1])
    count = there.view(grouped.shape).sum(1, keepdim=True).clamp(min=1)
    return (grouped - grouped.sum(1, keepdim=True) / count).view_as(rewards)


def _laid_out(credit, turn):
    return torch.where(turn >= 0, credit.gather(1, turn.clamp(min=0)), 0.0)


@mistake(
    "the world's tokens carry the last turn's advantage: index -1 counts from the end in torch; "
    "clamp the index and put 0 there"
)
def _minus_one_wraps(rewards, turn, num_generations):
    credit = _centred_there(_to_go(rewards), rewards, turn, num_generations)
    return credit.gather(1, turn % rewards.shape[1])


@mistake("every turn gets the whole trajectory's reward: leave out what came before the turn")
def _whole_trajectory(rewards, turn, num_generations):
    whole = rewards.sum(1, keepdim=True).expand_as(rewards).contiguous()
    return _laid_out(_centred_there(whole, rewards, turn, num_generations), turn)


@mistake(
    "a turn gets only its own reward: what it made possible later is missing, so a call that earns "
    "nothing itself would never be learned"
)
def _own_reward_only(rewards, turn, num_generations):
    return _laid_out(_centred_there(rewards, rewards, turn, num_generations), turn)


@mistake("summed from the front: a turn is paid for its past; sum from the turn to the end")
def _past_instead(rewards, turn, num_generations):
    return _laid_out(_centred_there(rewards.cumsum(1), rewards, turn, num_generations), turn)


@mistake("the turn's own reward is left out: start the sum at the turn itself, j >= k")
def _own_left_out(rewards, turn, num_generations):
    later = _to_go(rewards) - rewards
    return _laid_out(_centred_there(later, rewards, turn, num_generations), turn)


@mistake("no baseline: subtract the mean of the group at the same turn")
def _no_baseline(rewards, turn, num_generations):
    return _laid_out(_to_go(rewards), turn)


@mistake("the mean is over the whole batch: another prompt is not a rival; group the rows first")
def _batch_mean(rewards, turn, num_generations):
    return _laid_out(_centred_there(_to_go(rewards), rewards, turn, len(rewards)), turn)


@mistake(
    "one mean for all turns: late turns have less to come, so all of them would look bad; take the "
    "mean turn by turn"
)
def _one_mean(rewards, turn, num_generations):
    credit, there = _to_go(rewards), _there(rewards, turn)
    grouped = torch.where(there, credit, 0.0).view(-1, num_generations * rewards.shape[1])
    mean = grouped.sum(1) / there.view(grouped.shape).sum(1)
    return _laid_out(credit - mean.repeat_interleave(num_generations)[:, None], turn)


@mistake("the mean runs over the turns of a row: a trajectory is compared with itself; dim 1 is G")
def _wrong_axis(rewards, turn, num_generations):
    credit = _to_go(rewards)
    return _laid_out(credit - credit.mean(1, keepdim=True), turn)


def _case(label: str, rewards: list[list[float]], turn: list[list[int]], size: int) -> Probe:
    arguments = {"rewards": rewards, "turn": torch.tensor(turn), "num_generations": size}
    return Probe(label, arguments)


TURN_ADVANTAGES = Exercise(
    name="turn_advantages",
    reference=turn_advantages,
    probes=(
        _case(
            "one group of two, two turns",
            [[1.0, 0.25], [0.0, 1.0]],
            [[0, 0, -1, 1], [0, -1, 1, 1]],
            2,
        ),
        _case(
            "two groups of three, some end early",
            [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0], [0.75, 0.0, 0.0],
             [0.1, 0.2, 0.6], [1.0, 0.0, 0.3], [0.0, 0.9, 0.0]],
            [[0, 0, -1, 1, -1, 2, 2], [0, -1, 1, 1, -1, -1, -1], [0, 0, 0, -1, -1, -1, -1],
             [0, -1, 1, -1, -1, 2, -1], [0, -1, 1, -1, 2, 2, 2], [0, 0, -1, 1, 1, 1, -1]],
            3,
        ),
    ),
    conventions=(
        Convention(
            "your mean counts trajectories that have ended, with 0: a legal baseline too. The page "
            "takes those that have the turn",
            {"all_rows": True},
        ),
    ),
    mistakes=(
        _minus_one_wraps,
        _whole_trajectory,
        _own_reward_only,
        _past_instead,
        _own_left_out,
        _no_baseline,
        _batch_mean,
        _one_mean,
        _wrong_axis,
    ),
    hint="Three steps: a sum from the back along the turns; a mean over the rows of a group that "
    "have turn k; a gather from turns to tokens, with 0 where turn is -1.",
)  # fmt: skip


def break_even_error(turns: torch.Tensor) -> torch.Tensor:
    """(1 - 1/sqrt(T)) / 2: (n,) -> (n,)."""
    return (1 - 1 / turns.sqrt()) / 2


@mistake("forgot to halve: 1 - 2e is the signal, so e is half of what is missing")
def _not_halved(turns):
    return 1 - 1 / turns.sqrt()


@mistake("a root is missing: the signal 1 - 2e enters the number of trajectories squared")
def _no_root(turns):
    return (1 - 1 / turns) / 2


@mistake("this is the share of right verdicts; asked is the share of wrong ones")
def _right_share(turns):
    return (1 + 1 / turns.sqrt()) / 2


@mistake("this is the signal 1 - 2e at the break-even: solve for e")
def _signal(turns):
    return 1 / turns.sqrt()


@mistake(
    "the first turn's noise comes from the T - 1 others, and the grader's own -1 cancels it: "
    "4 (T - 1) = 4 (1/(1-2e)^2 - 1)"
)
def _one_turn_less(turns):
    return (1 - 1 / (turns - 1).sqrt()) / 2


BREAK_EVEN_ERROR = Exercise(
    name="break_even_error",
    reference=break_even_error,
    probes=(
        Probe("four turns", {"turns": [4.0]}),
        Probe("some horizons", {"turns": [2.0, 8.0, 32.0, 128.0]}),
    ),
    mistakes=(_not_halved, _no_root, _right_share, _signal, _one_turn_less),
    hint="Mean and variance of one push, under either credit. Then 4 Var / mean^2 on both sides.",
)
