"""The router toy: a distribution, routes that are obeyed, and flips that jump."""

from __future__ import annotations

import pytest
import torch

from rlnb.toys import RouterPolicy, flipped, router

# Matrix products round by the CPU's instructions and by how many rows stand beside a row.
BITS = 1e-12


def assert_same(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=BITS)


def sampled(n=8, length=40, seed=0, **shape):
    policy = RouterPolicy(seed=seed, **shape)
    return policy, policy.sample(n, length, torch.Generator().manual_seed(seed))


def test_probabilities_sum_to_one_and_belong_to_the_tokens():
    policy, tokens = sampled()
    table = policy.distributions(tokens)
    torch.testing.assert_close(table.exp().sum(-1), torch.ones(8, 40), rtol=0, atol=1e-12)
    logprobs, _ = policy.logprobs(tokens)
    assert_same(logprobs, table.gather(-1, tokens[..., None])[..., 0])
    assert logprobs.dtype == torch.float64 and logprobs.requires_grad


def test_one_token_by_hand():
    """The first token of an answer: the start row four times, one layer, one expert."""
    policy = RouterPolicy(layers=1, experts=3, vocab=4, width=5, seed=1)
    h = policy.embed[:, 4].sum(0)
    n = h / h.square().mean().sqrt()
    score = n @ policy.router[0] + policy.bias[0]
    e = int(score.argmax())
    h = h + score.softmax(0)[e] * ((n @ policy.up[0, e]).tanh() @ policy.down[0, e])
    hand = (h / h.square().mean().sqrt() @ policy.head).log_softmax(0)
    logprobs, routes = policy.logprobs(torch.tensor([[2]]))
    assert routes.tolist() == [[[[e]]]]
    torch.testing.assert_close(logprobs[0, 0], hand[2], rtol=0, atol=1e-12)


def test_two_experts_work_when_top_is_two():
    policy, tokens = sampled(top=2)
    _, routes = policy.logprobs(tokens)
    assert routes.shape == (8, 40, 4, 2) and (routes[..., 0] != routes[..., 1]).all()
    swapped = policy.logprobs(tokens, routes=routes.flip(-1))[0]
    torch.testing.assert_close(swapped, policy.logprobs(tokens)[0], rtol=0, atol=1e-12)
    assert not flipped(routes, routes.flip(-1)).any()  # a set, not an order


@pytest.mark.parametrize("top", [1, 2])
def test_all_experts_at_once_and_one_by_one_agree(top, monkeypatch):
    policy, tokens = sampled(top=top)
    together = policy.distributions(tokens[:4])  # 160 tokens
    g = torch.autograd.grad(together[..., 0].sum(), policy.parameters())
    monkeypatch.setattr(router, "FEW", 0)
    apart = policy.distributions(tokens[:4])
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-12)
    for a, b in zip(g, torch.autograd.grad(apart[..., 0].sum(), policy.parameters()), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_a_token_looks_back_four_tokens_and_never_ahead():
    policy, tokens = sampled(n=1)
    other = tokens.clone()
    other[0, 10] = (other[0, 10] + 1) % policy.vocab
    gap = policy.distributions(tokens) - policy.distributions(other)
    same = (gap.abs() < BITS).all(-1)[0]
    assert same[:11].all() and same[15:].all() and not same[11:15].any()


def test_samples_come_from_the_policy():
    policy, tokens = sampled(n=4000, length=1)
    p = policy.distributions(tokens[:1])[0, 0].exp()
    share = torch.bincount(tokens[:, 0], minlength=16) / 4000
    assert ((share - p).abs() < 4.5 * (p * (1 - p) / 4000).sqrt() + 1e-9).all()


def test_own_routes_change_nothing_and_other_routes_are_obeyed():
    policy, tokens = sampled()
    logprobs, routes = policy.logprobs(tokens)
    again, used = policy.logprobs(tokens, routes=routes)
    assert_same(logprobs, again)
    assert torch.equal(routes, used)
    second = policy.ranking(tokens)[..., 1:2]
    bent, used = policy.logprobs(tokens, routes=second)
    assert torch.equal(used, second) and flipped(routes, second).all()
    assert ((bent - logprobs).abs() > 1e-6).double().mean() > 0.99


def test_replay_takes_the_jumps_away():
    """A change of weights: small where routes stay, large where they flip, small under replay."""
    old, tokens = sampled(n=32, length=100)
    new, gen = old.copy(), torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in new.parameters():
            weight += 1e-3 * torch.randn(weight.shape, generator=gen)
        before, routes = old.logprobs(tokens)
        after, used = new.logprobs(tokens)
        replayed = new.logprobs(tokens, routes=routes)[0]
    flip = flipped(routes, used)
    assert 0.002 < flip.double().mean() < 0.05
    gap = (after - before).abs()
    assert gap[flip].mean() > 10 * gap[~flip].mean()
    assert_same(after[~flip], replayed[~flip])
    assert (replayed - before).abs().max() < 0.1 < gap[flip].max()


def test_the_mean_log_ratio_of_fresh_answers_is_minus_the_kl():
    old, tokens = sampled(n=256, length=60)
    noise = 0.05 * torch.randn(256, 60, 4, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        p, q = old.distributions(tokens), old.distributions(tokens, router_noise=noise)
        kl = (p.exp() * (p - q)).sum(-1).mean()
        gap = (old.logprobs(tokens, router_noise=noise)[0] - old.logprobs(tokens)[0]).mean(1)
    assert kl > 0.005 and abs(gap.mean() + kl) < 4 * gap.std() / 16


def test_gradients_reach_every_weight():
    policy, tokens = sampled(n=32)
    policy.logprobs(tokens)[0].sum().backward()
    for name in policy.names:
        assert getattr(policy, name).grad.abs().sum() > 0, name


def test_a_copy_shares_nothing_and_a_seed_is_a_policy():
    policy, tokens = sampled()
    twin = policy.copy()
    assert_same(twin.logprobs(tokens)[0], policy.logprobs(tokens)[0])
    twin.head.data += 1.0
    twin.bias.data[0, 0] += 5.0
    assert_same(RouterPolicy(seed=0).logprobs(tokens)[0], policy.logprobs(tokens)[0])
    other = RouterPolicy(seed=1).logprobs(tokens)[0]
    assert (other - policy.logprobs(tokens)[0]).abs().max() > 0.1


def test_what_does_not_fit_is_refused_with_a_sentence():
    policy, tokens = sampled()
    _, routes = policy.logprobs(tokens)
    with pytest.raises(ValueError, match=r"routes must be \(8, 40, 4, 1\)"):
        policy.logprobs(tokens, routes=routes[:, :-1])
    with pytest.raises(ValueError, match=r"router_noise must be \(8, 40, 4, 8\)"):
        policy.logprobs(tokens, router_noise=torch.zeros(8, 40))
    with pytest.raises(ValueError, match=r"tokens must be \(B, T\)"):
        policy.logprobs(tokens[0])
    with pytest.raises(ValueError, match="one shape"):
        flipped(routes, routes[:1])
    with pytest.raises(ValueError, match="top must lie in"):
        RouterPolicy(experts=2, top=2)
    with pytest.raises(ValueError, match="at least 1"):
        RouterPolicy(layers=0)
