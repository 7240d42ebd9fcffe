"""Credit over time: generalised advantage estimation."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake

__all__ = ["GAE", "gae"]


def gae(rewards: torch.Tensor, values: torch.Tensor, gamma: float, lam: float) -> torch.Tensor:
    """delta_t = r_t + gamma V_{t+1} - V_t; A_t = delta_t + gamma lam A_{t+1}. (T,) -> (T,).

    The episode ends after the last token: V_T = 0.
    """
    following = torch.cat([values[1:], values.new_zeros(1)])
    return _discounted(rewards + gamma * following - values, gamma * lam)


def _discounted(deltas: torch.Tensor, decay: float) -> torch.Tensor:
    running, backwards = torch.zeros_like(deltas[0]), []
    for delta in reversed(deltas):
        running = delta + decay * running
        backwards.append(running)
    return torch.stack(backwards[::-1])


def _deltas(rewards: torch.Tensor, values: torch.Tensor, gamma: float) -> torch.Tensor:
    return rewards + gamma * torch.cat([values[1:], values.new_zeros(1)]) - values


@mistake(
    "lambda is not used: the recursion decays by gamma alone, which is Monte Carlo "
    "minus V (lambda = 1)"
)
def _no_lambda(rewards, values, gamma, lam):
    return gae(rewards, values, gamma, 1.0)


@mistake(
    "these are the one-step deltas (lambda = 0): add gamma * lam times the next "
    "advantage, from the end backwards"
)
def _one_step(rewards, values, gamma, lam):
    return _deltas(rewards, values, gamma)


@mistake("these are the returns A + V, the critic's target; the advantages were asked for")
def _returns(rewards, values, gamma, lam):
    return gae(rewards, values, gamma, lam) + values


@mistake("the recursion decays by lam alone: A_t = delta_t + gamma * lam * A_{t+1}")
def _no_gamma_in_recursion(rewards, values, gamma, lam):
    return _discounted(_deltas(rewards, values, gamma), lam)


@mistake("gamma is missing in delta: r_t + gamma * V_{t+1} - V_t")
def _no_gamma_in_delta(rewards, values, gamma, lam):
    return _discounted(_deltas(rewards, values, 1.0), gamma * lam)


@mistake("lam is in delta as well: delta is r_t + gamma * V_{t+1} - V_t, lam only decays the sum")
def _lambda_in_delta(rewards, values, gamma, lam):
    return _discounted(_deltas(rewards, values, gamma * lam), gamma * lam)


@mistake("off by one: delta takes the value of the next token, V_{t+1}; you used V_t twice")
def _own_value_next(rewards, values, gamma, lam):
    return _discounted(rewards + gamma * values - values, gamma * lam)


@mistake(
    "you summed the past: A_t collects the deltas from t on, so run from the last token backwards"
)
def _forward(rewards, values, gamma, lam):
    return _discounted(_deltas(rewards, values, gamma).flip(0), gamma * lam).flip(0)


@mistake("after the last token the value is 0; you bootstrapped with the last V again")
def _last_value_again(rewards, values, gamma, lam):
    following = torch.cat([values[1:], values[-1:]])
    return _discounted(rewards + gamma * following - values, gamma * lam)


@mistake("roll brings V_0 behind the last token: there the value is 0")
def _wraps_around(rewards, values, gamma, lam):
    return _discounted(rewards + gamma * values.roll(-1) - values, gamma * lam)


@mistake("this is the discounted reward-to-go: the critic's values are not used")
def _no_values(rewards, values, gamma, lam):
    return _discounted(rewards, gamma)


@mistake("V_t is not subtracted: delta is r_t + gamma * V_{t+1} - V_t")
def _no_baseline(rewards, values, gamma, lam):
    return _discounted(_deltas(rewards, values, gamma) + values, gamma * lam)


@mistake(
    "these are whitened: normalising comes later, over the whole batch; the returns "
    "need the raw advantages"
)
def _whitened(rewards, values, gamma, lam):
    advantages = gae(rewards, values, gamma, lam)
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)


@mistake(
    "whitened, with Bessel's std: normalising comes later, over the whole batch; the returns need "
    "the raw advantages"
)
def _whitened_by_bessel(rewards, values, gamma, lam):
    advantages = gae(rewards, values, gamma, lam)
    spread = advantages.std(correction=1) if len(advantages) > 1 else torch.zeros(())
    return (advantages - advantages.mean()) / (spread + 1e-8)


@mistake("V_t and V_{t+1} have changed places: delta is r_t + gamma * V_{t+1} - V_t")
def _values_swapped(rewards, values, gamma, lam):
    following = torch.cat([values[1:], values.new_zeros(1)])
    return _discounted(rewards + gamma * values - following, gamma * lam)


@mistake(
    "the last token got no advantage: its delta is r - V, with 0 behind it; the walk starts there"
)
def _last_step_dropped(rewards, values, gamma, lam):
    deltas = _deltas(rewards, values, gamma)
    return _discounted(torch.cat([deltas[:-1], 0 * deltas[-1:]]), gamma * lam)


@mistake("the walk stops at the second token: the first got its own delta and nothing of the later")
def _first_step_alone(rewards, values, gamma, lam):
    deltas = _deltas(rewards, values, gamma)
    return torch.cat([deltas[:1], _discounted(deltas, gamma * lam)[1:]])


@mistake(
    "the sign is flipped: delta is what came, r_t + gamma * V_{t+1}, minus what was expected, V_t"
)
def _flipped(rewards, values, gamma, lam):
    return -gae(rewards, values, gamma, lam)


def _probe(
    label: str, rewards: list[float], values: list[float], gamma: float, lam: float
) -> Probe:
    return Probe(label, {"rewards": rewards, "values": values, "gamma": gamma, "lam": lam})


GAE = Exercise(
    name="gae",
    reference=gae,
    probes=(
        _probe("one token", [1.0], [0.25], 0.9, 0.5),
        _probe("two tokens", [0.0, 1.0], [0.5, 0.25], 0.5, 0.5),
        _probe("reward at the end", [0.0, 0.0, 1.0], [0.2, 0.5, 0.7], 1.0, 0.95),
        _probe("lambda 0", [0.0, 0.0, 1.0], [0.2, 0.5, 0.7], 0.9, 0.0),
        _probe("lambda 1", [0.0, 0.0, 1.0], [0.2, 0.5, 0.7], 0.9, 1.0),
        _probe(
            "a reward on every token",
            [0.5, -1.0, 0.25, 2.0, -0.5],
            [0.1, 0.4, -0.3, 0.8, 0.6],
            0.9,
            0.8,
        ),
    ),
    mistakes=(
        _no_lambda,
        _one_step,
        _returns,
        _no_gamma_in_recursion,
        _no_gamma_in_delta,
        _lambda_in_delta,
        _own_value_next,
        _forward,
        _last_value_again,
        _wraps_around,
        _no_values,
        _no_baseline,
        _whitened,
        _whitened_by_bessel,
        _values_swapped,
        _last_step_dropped,
        _first_step_alone,
        _flipped,
    ),
    hint="Compute every delta first, with 0 behind the last value. Then walk backwards: running = "
    "delta_t + gamma * lam * running.",
)
