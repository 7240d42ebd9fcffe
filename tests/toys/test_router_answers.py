"""Means over all answers of the small mixture, against every answer written out."""

from __future__ import annotations

import itertools

import pytest
import torch

from rlnb.toys.router import RouterPolicy
from rlnb.toys.router_answers import draw_places, exact_share


def both(vocab):
    pi = RouterPolicy(layers=2, experts=3, vocab=vocab, width=4, seed=1)
    return pi, pi.rounded()


@pytest.mark.parametrize("length", (1, 2, 6))
def test_it_is_the_mean_over_every_answer_written_out(length):
    pi, mu = both(3)
    with torch.no_grad():
        for weight in mu.parameters():  # far apart, so that a wrong term would show
            weight.mul_(0.7)
        y = torch.tensor([*itertools.product(range(3), repeat=length)])
        log_pi, log_mu = (p.logprobs(y)[0].sum(1) for p in (pi, mu))
    squares = (log_mu.exp() * (2 * (log_pi - log_mu)).exp()).sum()
    found = exact_share(pi.table(), mu.table(), [length])
    assert found[length] == pytest.approx(1 / float(squares), rel=1e-12)
    assert found[length] < 0.999


def test_long_answers_are_a_power_of_the_matrix_from_context_to_context():
    """300 tokens, past the length at which the loop stops, by another route."""
    pi, mu = both(2)
    log_pi, log_mu = pi.table() * 1.2, mu.table()  # not normalised: E[w^2] moves far from 1
    matrix = torch.zeros(81, 81, dtype=torch.float64)
    rows = (2 * log_pi - log_mu).exp().view(81, 2)
    for at in range(81):
        for y in range(2):
            matrix[at, 27 * y + at // 3] += rows[at, y]
    power = torch.linalg.matrix_power(matrix, 300)
    assert exact_share(log_pi, log_mu, [300, 5])[300] == pytest.approx(
        1 / float(power[-1].sum()), rel=1e-9
    )


def test_drawn_places_hold_the_gaps_of_the_engine_s_own_answers():
    pi, mu = both(5)
    log_pi, log_mu = pi.table(), mu.table()
    places = draw_places(log_mu, 400, 7, torch.Generator().manual_seed(2))
    with torch.no_grad():
        y = mu.sample(400, 7, torch.Generator().manual_seed(2))
        gap = pi.logprobs(y)[0] - mu.logprobs(y)[0]
    assert torch.allclose((log_pi - log_mu).flatten()[places], gap, atol=1e-12)


@pytest.mark.parametrize("lengths", ([], [0]))
def test_lengths_without_an_answer_are_refused(lengths):
    pi, mu = both(2)
    with pytest.raises(ValueError, match="lengths must be 1 or more"):
        exact_share(pi.table(), mu.table(), lengths)


def test_a_table_with_replayed_experts_is_what_replaying_gives():
    pi, mu = both(3)
    with torch.no_grad():
        mu.router.neg_()  # other experts everywhere
        y = torch.tensor([*itertools.product(range(3), repeat=3)])
        wanted, _ = pi.logprobs(y, routes=mu.logprobs(y)[1])
    table, start = pi.table(routes_of=mu), (3,) * 4
    found = torch.stack([table[start][y[:, 0]],
                         table[y[:, 0], 3, 3, 3].gather(1, y[:, 1:2])[:, 0],
                         table[y[:, 1], y[:, 0], 3, 3].gather(1, y[:, 2:])[:, 0]], 1)  # fmt: skip
    assert torch.allclose(found, wanted, atol=1e-12)
    assert not torch.allclose(table, pi.table())
