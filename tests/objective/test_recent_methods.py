"""The zoo's recent methods and the annex: hand numbers, gradients, what a part must not do."""

from __future__ import annotations

import importlib.util
import math
import pathlib

import pytest
import torch

from rlnb.objective import (
    ANNEX,
    ZOO,
    Batch,
    Objective,
    batch_zscore,
    divergence_mask,
    entropy_shaped,
    group_center,
    length_preference,
    logprob,
    max_rl,
    mgpo_weight,
    press_top,
    ratio,
    sapo,
    sequence_mean,
    sequence_sum,
    soft_sequence,
    token_sum,
    topk_mix,
)
from rlnb.toys import Bandit, expected_gradient, running_batch

spec = importlib.util.spec_from_file_location(
    "worked", pathlib.Path(__file__).with_name("worked.py")
)
worked = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worked)
SIGNS = torch.tensor([1.0, -1.0], dtype=torch.float64)


def rows(rewards, size, **fields):
    """A batch of one-token answers with these rewards."""
    rewards = torch.tensor(rewards, dtype=torch.float64)
    zero = torch.zeros(len(rewards), 1, dtype=torch.float64)
    return Batch(zero.clone().requires_grad_(), zero + 1, rewards, size, **fields)


def advantages(part, rewards, size):
    batch = rows(rewards, size)
    return part(batch, batch.rewards[:, None])[:, 0].tolist()


# ---- MaxRL


def test_max_rl_divides_by_the_mean():
    assert advantages(max_rl(), [1, 0, 0, 0], 4) == [3, -1, -1, -1]
    assert advantages(max_rl(), [1, 1, 0, 0], 4) == [1, 1, -1, -1]
    assert advantages(max_rl(), [1, 1, 1, 1], 4) == [0] * 4


def test_max_rl_without_a_success_is_zero_or_minus_one():
    assert advantages(max_rl(), [0, 0], 2) == [0, 0]
    assert advantages(max_rl("minus_one"), [0, 0], 2) == [-1, -1]


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("p", [0.5, 0.2])
def test_max_rl_ascends_the_harmonic_sum_of_pass_at_k(size, p):
    """E[estimate] = grad sum_{k<=n} pass@k / k, n = G - 1 ("zero") or G ("minus_one")."""
    policy = Bandit([math.log(p), math.log((1 - p) * 0.7), math.log((1 - p) * 0.3)])
    success = policy.logits.softmax(-1)[0]
    for part, terms in ((max_rl(), size - 1), (max_rl("minus_one"), size)):
        target = sum((1 - (1 - success) ** k) / k for k in range(1, terms + 1))
        (truth,) = torch.autograd.grad(target, policy.logits, retain_graph=True)
        got = expected_gradient(
            policy, [1.0, 0.0, 0.0], Objective(part, logprob(), sequence_sum), size
        )
        assert torch.allclose(got, truth, atol=1e-12), part
        (other,) = torch.autograd.grad(
            target + (1 - (1 - success) ** (terms + 1)) / (terms + 1),
            policy.logits,
            retain_graph=True,
        )
        assert not torch.allclose(got, other, atol=1e-6)


def test_max_rl_refuses_graded_rewards():
    with pytest.raises(ValueError, match=r"takes rewards of 0 and 1; rewards\[1\] is 0.5"):
        ZOO["maxrl"](rows([1, 0.5], 2))


# ---- ScaleRL


def test_scalerl_divides_by_one_std_of_the_centred_rewards():
    rewards = [1, 0, 0, 0, 1, 1, 1, 0]
    for part, big, small in (
        (batch_zscore("group", of="centred", eps=0), 1.732051, 0.577350),
        (batch_zscore("group", "bessel", of="centred", eps=0), 1.620185, 0.540062),
        (batch_zscore("group", "bessel", eps=1e-4), 1.402859, 0.467620),  # TRL
    ):
        want = [big, -small, -small, -small, small, small, small, -big]
        assert advantages(part, rewards, 4) == pytest.approx(want, abs=1e-6), part


def test_scalerl_loss_by_hand():
    """c = 1 / (P tokens of the prompt), weight min(pi / pi_engine, 5), A over one std."""
    batch = worked.worked_batch(sampling_logprobs=worked.worked_batch().logprobs.detach() - 2.0)
    out = ZOO["scalerl"](batch)
    out.loss.backward()
    c, weight = 1 / 8, 5.0  # one prompt, 3 + 5 tokens; e^2 > 5
    A = torch.tensor([[1.0], [-1.0]], dtype=torch.float64).expand(2, 5) / (1 + 2e-6)
    want = torch.where(batch.mask, -c * weight * A, 0.0)
    assert torch.allclose(batch.logprobs.grad, want, atol=1e-12)
    assert torch.allclose(out.loss, (want * batch.logprobs.detach()).sum())


# ---- MGPO


@pytest.mark.parametrize(
    ("strength", "p", "weight"),
    [
        (4.0, 0.25, 0.592593),
        (1.0, 0.25, 0.877383),
        (1.0, 0.5, 1.0),
        (3.0, 0.0, 0.125),
        (3.0, 1.0, 0.125),
    ],
)
def test_mgpo_weight_of_an_accuracy(strength, p, weight):
    got = mgpo_weight(strength).of(torch.tensor(p, dtype=torch.float64)).item()
    assert got == pytest.approx(weight, abs=1e-6)


def test_mgpo_is_grpo_times_a_weight_per_prompt():
    rewards = [1, 0, 0, 0, 1, 1, 0, 0]
    plain = ZOO["grpo"].replace(terms=()).prepare(rows(rewards, 4)).advantages[:, 0]
    got = ZOO["mgpo"].prepare(rows(rewards, 4)).advantages[:, 0]
    assert torch.allclose(got / plain, torch.tensor([0.592593] * 4 + [1.0] * 4).double(), atol=1e-6)
    with pytest.raises(ValueError, match="reads the group mean as an accuracy"):
        ZOO["mgpo"](rows([3, 0], 2))


# ---- credit of the annex


def test_entropy_bonus_keeps_the_sign_and_is_capped():
    H = torch.tensor([[0.5], [9.0], [0.1], [9.0]], dtype=torch.float64)
    batch = rows([0] * 4, 2, entropies=H)
    A = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64)
    got = entropy_shaped(0.4, 2.0)(batch, A)[:, 0].tolist()
    assert got == pytest.approx([1.2, 1.5, -0.96, -0.5])
    with pytest.raises(ValueError, match="kappa must be above 1"):
        entropy_shaped(0.4, 1.0)


@pytest.mark.parametrize(
    ("exponent", "want"),
    [
        (0.0, (1.0, 1.0)),
        (1.0, (0.889344, 1.110656)),
        (3.0, (0.677258, 1.322742)),
        (-1.0, (1.111, 0.889)),
    ],
)
def test_length_preference_of_lengths_3_and_5(exponent, want):
    lengths = torch.tensor([[3.0, 5.0]], dtype=torch.float64)
    got = length_preference(exponent, eps=0.0).factor(lengths)[0].tolist()
    assert got == pytest.approx(want, abs=1e-6 if exponent >= 0 else 0.02)
    assert sum(got) == pytest.approx(2)


def test_scaling_the_advantage_by_a_length_factor_is_scaling_the_loss():
    """The paper multiplies the clipped loss of an answer by f; f > 0 passes through the min."""
    batch = running_batch()
    plain = ANNEX["lambda_grpo"].replace(credit=())
    f = batch.expand(length_preference(1.0).factor(batch.grouped(batch.lengths))).detach()
    prepared = plain.evaluate(plain.prepare(batch))
    want = (prepared.weights * f * prepared.per_token_loss).sum()
    assert ANNEX["lambda_grpo"](batch).loss.item() == pytest.approx(want.item(), abs=1e-14)


def test_length_preference_refuses_a_base_below_zero():
    with pytest.raises(ValueError, match=r"\|z\| reaches 1.73, so \|r\| must be below 0.5774"):
        length_preference(1.0, r=0.6).check(rows([0] * 4, 4))


# ---- SimKO


def test_simko_shares_the_gradient_of_right_answers_with_the_top_k():
    """Against the formula of the authors' code, differentiated by autograd."""
    g = torch.Generator().manual_seed(0)
    new, old = (
        torch.randn(2, 5, 4, generator=g, dtype=torch.float64).log_softmax(-1) for _ in range(2)
    )
    new = new.requires_grad_()
    H = torch.rand(2, 5, generator=g, dtype=torch.float64)
    ones = torch.ones(2, 5, dtype=torch.float64)
    A = torch.tensor([[1.0], [-1.0]], dtype=torch.float64).expand(2, 5)
    batch = Batch(
        new[..., 0],
        ones,
        torch.tensor([1.0, 0.0]),
        2,
        old_logprobs=old[..., 0],
        topk_logprobs=new[..., 1:],
        entropies=H,
    )
    alpha = 0.25
    got = (topk_mix(alpha=alpha, quantile=0.5)(batch, A).exp() * A).sum()
    rho, rivals = (new[..., 0] - old[..., 0]).exp(), (new[..., 1:] - old[..., 1:]).exp()
    mixed = (1 - alpha) * rho + alpha / 3 * ((rho[..., None] / rivals).detach() * rivals).sum(-1)
    fork = H > H.quantile(0.5, 1, keepdim=True)
    assert fork.sum() == 4  # two of five per answer
    want = (torch.where(fork & (A > 0), mixed, rho) * A).sum()
    assert got.item() == pytest.approx(want.item(), abs=1e-14)
    ours, theirs = (torch.autograd.grad(x, new, retain_graph=True)[0] for x in (got, want))
    assert torch.allclose(ours, theirs, atol=1e-14) and ours[0, :, 1:].abs().sum() > 0
    assert (ours[1, :, 1:] == 0).all()  # nothing shared in a wrong answer


def test_simko_presses_the_likeliest_token_of_wrong_answers_at_forks():
    H = torch.tensor([[0.1, 0.9, 0.8], [0.1, 0.9, 0.8]], dtype=torch.float64)
    rank = torch.tensor([[0, 0, 0], [0, 0, 1]])
    ones = torch.ones(2, 3, dtype=torch.float64)
    batch = Batch(-ones, ones, torch.tensor([1.0, 0.0]), 2, entropies=H, sampled_rank=rank)
    A = ones * SIGNS[:, None]
    got = press_top(1.1, quantile=0.5)(batch, A)
    assert got.tolist() == [[1, 1, 1], [-1, -1.1, -1]]


# ---- soft gates


@pytest.mark.parametrize(
    ("gate", "at_two", "peak", "place"),
    [
        ("sigmoid", 1.572895, 1.574675, 2.0601),
        ("erf", 1.213061, 1.336733, 1.6180),
        ("arctan", 1.000000, 1.207107, 1.4142),
        ("softsign", 0.707107, 1.142985, 1.2808),
    ],
)
def test_soft_gates_start_at_slope_one_and_peak_where_the_study_says(gate, at_two, peak, place):
    def weight(x):
        rho = torch.tensor(x, dtype=torch.float64)[None].requires_grad_()
        value = sapo(1.0, 1.05, gate)(None, torch.ones_like(rho), rho.log()).sum()
        return (torch.autograd.grad(value, rho)[0] * rho)[0].detach()

    assert weight([1.0, 2.0]).tolist() == pytest.approx([1.0, at_two], abs=1e-6)
    grid = torch.linspace(0.5, 4, 35001, dtype=torch.float64)
    curve = weight(grid.tolist())
    assert curve.max().item() == pytest.approx(peak, abs=1e-6)
    assert grid[curve.argmax()].item() == pytest.approx(place, abs=2e-4)


def test_the_sign_of_the_advantage_picks_the_temperature_of_every_gate():
    x = torch.tensor([[2.0, 2.0]], dtype=torch.float64)
    A = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    for gate in ("sigmoid", "erf", "arctan", "softsign"):
        both = sapo(1.0, 3.0, gate)(None, A, x.log())[0]
        assert both[0] == sapo(1.0, 1.0, gate)(None, A, x.log())[0, 0]
        assert both[1] == sapo(3.0, 3.0, gate)(None, A, x.log())[0, 1]
    with pytest.raises(ValueError, match="gate must be one of sigmoid, erf"):
        sapo(gate="tanh")


@pytest.mark.parametrize(
    ("part", "g", "slope"),
    [
        (soft_sequence(gate="arctan"), 0.545468, 0.675469),
        (soft_sequence(), None, None),
        (soft_sequence(tau=3.0), None, None),
    ],
)
def test_soft_sequence_is_the_geometric_mean_of_gates(part, g, slope):
    """w_t = s rho g'(rho) / g(rho), c = 1 / (B T)."""
    batch = worked.worked_batch(advantages=SIGNS)
    out = Objective(group_center(), ratio(), sequence_mean, ratio=part).explain(batch)
    rho = (batch.logprobs - batch.old_logprobs).exp().detach()

    def gate(x):
        if part.gate == "sigmoid":
            return 4 / part.tau * torch.sigmoid(part.tau * (x - 1))
        return (torch.atan(part.tau * x.log()) / part.tau).exp()

    x = rho.clone().requires_grad_()
    (derivative,) = torch.autograd.grad(gate(x).sum(), x)
    log_g = torch.where(batch.mask, gate(rho).log(), 0.0)
    s = (log_g.sum(1) / batch.lengths).exp()[:, None]
    want = s * rho * derivative / gate(rho)
    assert torch.allclose(out.gate[batch.mask], want[batch.mask], atol=1e-12)
    if g is not None:
        half = torch.tensor(0.5, dtype=torch.float64).requires_grad_()
        (at,) = torch.autograd.grad(gate(half), half)
        assert gate(half).item() == pytest.approx(g, abs=1e-6)
        assert (half * at / gate(half)).item() == pytest.approx(slope, abs=1e-6)


# ---- DPPO


def test_dppo_on_the_worked_example():
    objective = ZOO["dppo"].replace(gates=divergence_mask(0.10, anchor="sampling"))
    batch = worked.worked_batch(advantages=SIGNS)
    out = objective(batch)
    out.loss.backward()
    assert out.loss.item() == pytest.approx(-0.014087, abs=1e-6)
    want = [-0.068750, -0.087500, -0.064062, 0, 0.075000, 0.061111, 0, 0.064286]
    assert batch.logprobs.grad[batch.mask].tolist() == pytest.approx(want, abs=1e-6)


def test_dppo_asks_for_the_rollout_engine():
    with pytest.raises(ValueError, match=r"token\(.sampling.\) needs sampling_logprobs"):
        ZOO["dppo"](running_batch())


def candidates(old, new, sampled, k=None):
    """One token whose K candidates had and have these probabilities; the rest is the remainder.
    With k only the first k are candidates; the sampled token may be another."""
    old, new = (torch.tensor(p, dtype=torch.float64) for p in (old, new))
    one = torch.ones(1, 1, dtype=torch.float64)
    return Batch(
        new[sampled].log().view(1, 1),
        one,
        torch.zeros(1),
        1,
        old_logprobs=old[sampled].log().view(1, 1),
        topk_logprobs=new[:k].log()[None, None],
        old_topk_logprobs=old[:k].log()[None, None],
        sampled_rank=torch.tensor([[min(sampled, len(new[:k]))]]),
    )


def test_top_k_divergence_by_hand():
    """.5 .3 (rest .2) becomes .5 .1 (rest .4): TV .2, though the sampled token never moved."""
    batch = candidates([0.5, 0.3], [0.5, 0.1], 0)
    assert divergence_mask(0.15)(batch, torch.ones(1, 1), None).item() == 1
    assert divergence_mask(0.15, top_k=True).divergence(batch).item() == pytest.approx(0.2)
    assert divergence_mask(0.15).divergence(batch).item() == pytest.approx(0)
    kl = 0.3 * math.log(3) + 0.2 * math.log(0.5)
    got = divergence_mask(0.05, kind="kl", top_k=True).divergence(batch).item()
    assert got == pytest.approx(kl, abs=1e-7)


@pytest.mark.parametrize("kind", ["tv", "kl"])
def test_top_k_never_sees_less_than_the_sampled_token(kind):
    """Also where the sampled token (2 or 6) is none of the first four: it is added to them."""
    g = torch.Generator().manual_seed(1)
    for trial in range(200):
        old, new = torch.randn(2, 8, generator=g, dtype=torch.float64).softmax(-1)
        batch = candidates(old.tolist(), new.tolist(), (2, 6)[trial % 2], 4)
        full = (old - new).abs().sum() / 2 if kind == "tv" else (old * (old / new).log()).sum()
        binary, top = (
            divergence_mask(0.1, kind=kind, top_k=k).divergence(batch).item() for k in (False, True)
        )
        assert binary <= top + 1e-7 and top <= full.item() + 1e-7


@pytest.mark.parametrize("kind", ["tv", "kl"])
def test_the_mask_looks_at_the_direction(kind):
    """|dp| = .4 in all four corners; two of them are masked, with candidates as without."""
    kept = []
    for new in (0.7, 0.3):
        for A in (1.0, -1.0):
            old = 1 - new
            batch = candidates([old, new], [new, old], 0)
            A = torch.full((1, 1), A, dtype=torch.float64)
            one, many = (
                divergence_mask(0.1, kind=kind, top_k=k)(batch, A, None).item()
                for k in (False, True)
            )
            assert one == many
            kept.append(one)
    assert kept == [0, 1, 1, 0]  # rose & A>0 dropped, rose & A<0, fell & A>0, fell & A<0


def test_dppo_topk_needs_the_candidates():
    with pytest.raises(ValueError, match="needs (topk_logprobs|old_topk_logprobs|sampled_rank)"):
        ZOO["dppo_topk"](running_batch().replace(sampling_logprobs=running_batch().old_logprobs))


# ---- all of them


@pytest.mark.parametrize("name", [n for n in ZOO | ANNEX if n != "clip_cov"])
def test_every_gate_is_one_where_nothing_has_moved(name):
    """At theta_old, against an engine that agrees, no method weighs a token by anything but A."""
    objective = (ZOO | ANNEX)[name].replace(terms=(), weights=token_sum)
    batch = running_batch(complete=True)
    still = batch.logprobs.detach().clone().requires_grad_()
    batch = batch.replace(
        logprobs=still,
        old_logprobs=still.detach(),
        sampling_logprobs=still.detach(),
        old_topk_logprobs=batch.topk_logprobs,
    )
    gate = objective.explain(batch).gate
    gate = gate[~gate.isnan()]
    # SimKO passes alpha = 0.01 of a fork token's gradient on to its rivals
    allowed = {"simko": (0.99, 1.0)}.get(name, (1.0, 1.0))
    assert len(gate) > 0
    assert gate.min().item() == pytest.approx(allowed[0], abs=1e-12)
    assert gate.max().item() == pytest.approx(allowed[1], abs=1e-12)


def test_the_complete_running_batch_serves_every_method():
    for name, objective in (ZOO | ANNEX).items():
        out = objective(running_batch(complete=True))
        assert out.loss.isfinite() and out.per_token_loss.isfinite().all(), name


def test_the_methods_differ_somewhere_on_the_running_batch():
    """No two names of the zoo are one gradient there, save those that say so."""
    batch, seen = running_batch(complete=True), {}
    for name, objective in ZOO.items():
        (gradient,) = torch.autograd.grad(objective(batch).loss, batch.logprobs)
        gradient = gradient / gradient.norm()
        twin = [n for n, g in seen.items() if torch.allclose(g, gradient, atol=1e-9)]
        seen[name] = gradient
        if name == "gspo_token":
            assert twin == ["gspo"]
        else:
            assert twin == [], name


def test_dppo_weighs_a_bad_token_that_rose_by_its_ratio_up_to_20():
    """.5 from .05 weighs 10; .5 from .01 would weigh 50. Neither is masked: A pulls them back."""
    old = torch.tensor([[0.05, 0.01]], dtype=torch.float64).log()
    ones = torch.ones(1, 2, dtype=torch.float64)
    batch = Batch(
        (ones / 2).log().requires_grad_(),
        ones,
        torch.zeros(1),
        1,
        old_logprobs=old,
        sampling_logprobs=old,
        advantages=-ones[:, 0],
        max_completion_length=1,
    )
    gate = ZOO["dppo"].replace(weights=token_sum).explain(batch).gate[0].tolist()
    assert gate == pytest.approx([10.0, 20.0])
