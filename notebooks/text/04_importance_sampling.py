# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Importance sampling: other people's samples
#
# **Settles:** what $\pi_\theta/\pi_\text{old}$ repairs and what it cannot; why PPO does not multiply it
# over an answer; which of three KL estimators to read, which to differentiate, and why those are two
# questions; what TRPO solved before PPO gave up solving.
#
# 40 minutes · after [02](02_reinforce.ipynb) and [03](03_baselines.ipynb) · Kahn & Marshall 1953 (importance sampling), Schulman et al. 2015 (TRPO,
# arXiv 1502.05477), Ziegler et al. 2019 (KL in the reward, 1909.08593), Shao et al. 2024 (k3 in the loss,
# 2402.03300), Tang & Munos 2025 (KL estimators and gradients, 2506.09477)

# %%
import torch
from rlnb import ZOO, Batch, check
from rlnb.classroom import explorers, figures
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## The identity
#
# $q$ wrote the answers, and we want the average of $f$ under $p$. Weigh each sample by how much more
# often $p$ would have written it:
#
# $$\mathbb{E}_{y\sim p}[f(y)]=\sum_y q(y)\,\frac{p(y)}{q(y)}\,f(y)
# =\mathbb{E}_{y\sim q}\big[w(y)f(y)\big],\qquad w=\frac pq$$
#
# One token out of four, a reference that wrote it, and a policy that has moved since:

# %%
ref = torch.tensor([0.1, 0.4, 0.2, 0.3])      # wrote the token
z = torch.tensor([0.3, -0.5, 1.1, 0.0])                      # logits
pi = z.softmax(0)                                            # has moved
f = torch.tensor([1.0, 0.0, 0.5, 0.0])                       # its reward

def show(x):
    """The numbers of a tensor: four decimals, no negative zero."""
    flat = torch.as_tensor(x).detach().flatten().tolist()
    return [round(v, 4) + 0.0 for v in flat]

w = pi / ref
print("policy ", show(pi))
print("weights", show(w), " mean under ref", show(ref @ w))
print("E_pi f ", show(pi @ f), " weighted from ref", show(ref @ (w * f)),
      " unweighted", show(ref @ f))
assert torch.isclose(ref @ (w * f), pi @ f)

# %% [markdown]
# The weights average to 1 under the policy that sampled. That is a free check: a batch whose mean weight
# is far from 1 is too small, or was not drawn by the policy you think.
#
# The logarithm of the same ratio says how far the policy has gone. With $y$ drawn from $\pi$ and
# $\ell=\log\pi(y)-\log\pi_\text{ref}(y)$, the mean of $\ell$ is $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$, and
# John Schulman's note of 2020 named three estimates of it from one sample:
#
# $$k_1=\ell,\qquad k_2=\tfrac12\ell^2,\qquad k_3=e^{-\ell}-1+\ell$$
#
# GRPO's paper writes $r=\pi_\text{ref}/\pi=e^{-\ell}$ and $k_3=r-\log r-1$. "It is always positive", one
# reads. Not quite: never negative, and 0 exactly where the two agree:

# %% tags=["claim:K01"]
def k1(l): return l
def k2(l): return l**2 / 2
def k3(l): return torch.expm1(-l) + l      # exp(-l) - 1 without rounding

l = (pi / ref).log()                       # (4,) log-ratio per token
for k in (k1, k2, k3):
    print(f"{k.__name__} per token {show(k(l))}  mean {show(pi @ k(l))}")
KL = pi @ l
print("KL(pi || ref)", show(KL))
assert k1(l).min() < 0 and k3(l).min() > 0

grid = torch.arange(-20_000, 20_001) / 1000  # log-ratios
assert k3(grid).min() == 0 and grid[k3(grid) == 0].tolist() == [0.0]
# "is never negative": true

# %% [markdown]
# $k_1$ is negative on two tokens of four and right on average; $k_3$ is right and never negative.
#
# Drag the policy away from the reference: distance 0 is `ref`, 1 is `pi`, on a straight line in logits.
# Left: what each estimator says on average. Middle: how much a single sample scatters. Right: the gradient
# of its mean when it is used as a *loss*, beside that of the true KL (black). Then let an older policy, half
# the distance out, do the sampling; $\rho=\pi/\pi_\text{old}$.

# %% tags=["explorer"]
explorers.kl_estimator_explorer()

# %% [markdown]
# The same at default values, as a table, fresh and stale:

# %%
from rlnb.classroom.explorers.kl_estimators import compute

for samples in ("fresh", "stale"):
    d = compute(1.0, samples)
    print(f"{samples} samples, KL {d['kl']:.4f}")
    for name in d["value"]:
        none = d["length"][name] < 1e-12
        cosine = f"cosine {d['cosine'][name]:+.4f}"
        cosine = "no gradient" if none else cosine
        print(f"  {name:9s} mean {d['value'][name]:.4f}"
              f"  std {d['spread'][name]:.4f}  {cosine}")
assert abs(compute()["kl"] - KL) < 1e-12

# %% [markdown]
# *On fresh samples $k_1$ and $k_3$ have the right mean, $k_2$ nearly; as a loss $k_1$ has no gradient on
# average, $k_2$ the right one, $k_3$ another. On stale samples only the ratio-corrected form is right.*
#
# ## Support: what no weight repairs
#
# "An expectation under $p$ can be had from samples of $q$ by weighting with $p/q$": true where $q$
# goes everywhere that $p$ goes. A token that $q$ never writes has no weight at all.

# %% tags=["claim:B14"]
p = torch.tensor([0.4, 0.4, 0.2])
values = torch.tensor([1.0, 1.0, 3.0])
truth = p @ values
for name, q in (("covers p", torch.tensor([0.5, 0.4, 0.1])),
                ("has a gap", torch.tensor([0.5, 0.5, 0.0]))):
    seen = q > 0                                # what q can draw
    weight = p[seen] / q[seen]
    estimate = q[seen] @ (weight * values[seen])
    print(f"q {name:9s}: estimate {estimate:.4f}, truth {truth:.4f}, "
          f"mean weight {q[seen] @ weight:.4f}")
assert torch.isclose(estimate, torch.tensor(0.8))
assert torch.isclose(truth, torch.tensor(1.4))
# "An expectation under p can be had from samples of q": conditional

# %% [markdown]
# 0.8 instead of 1.4, and no sample looks odd. What gives it away is the mean weight: it is the share of
# $p$ that $q$ covers. Top-p sampling makes such gaps on purpose, if the trainer scores with the full
# softmax.
#
# ## What a weighted sample is worth
#
# $n$ weighted samples carry the information of fewer unweighted ones. The **effective sample size**
#
# $$\mathrm{ESS}=\frac{(\sum_iw_i)^2}{\sum_iw_i^2}\;\approx\;\frac{n}{1+\chi^2},\qquad
# \chi^2=\mathrm{Var}_q[w]=\mathbb{E}_q[w^2]-1$$
#
# is $n$ for equal weights and 1 when one sample has them all. "The ratios explode when the two
# distributions drift apart" is true, and exponentially so. Two Gaussians of width 1, $\mu$ apart:
# $\mathrm{Var}\,w=e^{\mu^2}-1$. By the integral, asserted against the formula, and from
# 1,000 samples, five seeds:

# %% tags=["claim:B15"]
def ess(log_w):
    return 1 / log_w.softmax(0).square().sum()   # the scale cancels

x = torch.linspace(-15, 25, 40_001)              # grid for the integral
q = (-x**2 / 2).exp() / (2 * torch.pi) ** 0.5
for mu in (0.5, 1.0, 2.0):
    log_w = mu * x - mu**2 / 2                   # log p(x)/q(x)
    variance = torch.trapezoid(q * (2 * log_w).exp(), x) - 1
    share = 1 / (1 + variance)
    drawn = []
    for seed in range(5):
        g = torch.Generator().manual_seed(seed)
        y = torch.randn(1000, generator=g)
        drawn.append((ess(mu * y - mu**2 / 2) / 1000).item())
    print(f"mu {mu}: Var w {variance:8.4f}  ESS/n {share:.4f}"
          f"  sampled", *[f"{s:.4f}" for s in drawn])
    assert torch.isclose(variance, torch.tensor(mu**2).exp() - 1)
assert round(share.item(), 3) == 0.018
# "Importance ratios explode when the two distributions drift": true

# %% [markdown]
# 78 %, 37 % and 1.8 % of the samples are left at $\mu=0.5$, 1 and 2. Read the last line again: the sampled
# share is three to five times the true one, in all five seeds. The rare sample with the huge weight is not
# in the batch, and its absence looks like health. ESS is a good alarm and a poor all-clear.
#
# ## A whole answer: the product
#
# An answer is $T$ tokens, and its ratio is the product of theirs:
#
# $$\frac{\pi_\theta(y\mid x)}{\pi_\text{old}(y\mid x)}=\prod_{t=1}^T\rho_t,\qquad
# \mathrm{Var}\Big[\prod_t\rho_t\Big]=(1+\chi^2)^T-1$$
#
# for independent tokens with the same $\chi^2$: second moments multiply. The mildest case there is, each
# token's ratio 1.2 or 0.8 with even odds, so $\chi^2=0.04$. Exactly, by counting the 1.2s:

# %% tags=["claim:A23"]
def product_moments(T):
    """Mean, variance and median of prod rho over T tokens."""
    T, n = torch.tensor(float(T)), torch.arange(T + 1.0)     # n times 1.2
    log_chance = (torch.lgamma(T + 1) - torch.lgamma(n + 1)
                  - torch.lgamma(T - n + 1) + T * torch.tensor(0.5).log())
    log_w = n * torch.tensor(1.2).log() + (T - n) * torch.tensor(0.8).log()
    mean = (log_chance + log_w).exp().sum()
    second = (log_chance + 2 * log_w).exp().sum()
    middle = (log_chance.exp().cumsum(0) < 0.5).sum()
    return mean, second - mean**2, log_w[middle].exp()

for T in (1, 10, 100, 1000):
    mean, variance, median = product_moments(T)
    print(f"T {T:4d}: mean {mean:.4f}, median {median:.1e}, variance "
          f"{variance:.3e}, formula {1.04**T - 1:.3e}")
    assert torch.isclose(variance, torch.tensor(1.04**T - 1), rtol=1e-8)
assert round(product_moments(100)[1].item(), 1) == 49.5
assert 1e17 < product_moments(1000)[1] < 2e17
# "its variance explodes": true

# %% [markdown]
# Unbiased at every length: the mean is 1. Half of all answers of 1,000 tokens have a weight below
# $10^{-8}$, and the mean is carried by answers that no batch contains. Draw 1,000 answers per length and
# look at the mean weight, which should be 1:

# %%
def mean_weight(T, seed, n=1000):
    g = torch.Generator().manual_seed(seed)
    heads = torch.binomial(torch.full((n,), float(T)),
                           torch.full((n,), 0.5), generator=g)
    return (heads * torch.tensor(1.2).log()
            + (T - heads) * torch.tensor(0.8).log()).exp().mean().item()

lengths = [20, 50, 100, 200, 300, 400, 500, 700, 1000]
runs = [[mean_weight(T, seed) for T in lengths] for seed in range(8)]
for T in (20, 100, 300, 1000):
    column = sorted(run[lengths.index(T)] for run in runs)
    print(f"T {T:4d}: mean weight of 1000 answers, 8 seeds, from "
          f"{column[0]:.4f} to {column[-1]:.4f}")
figures.learning_curves(
    {"product": runs}, base=1.0, steps=lengths, ylim=(0, 3),
    xlabel="tokens per answer", ylabel="mean weight of 1,000 answers",
    alt="Mean product weight of 1,000 answers against length, 8 seeds: "
        "all near 1 at 20 tokens, scattered around 1 at 100, most of them "
        "far below 1 from 300 tokens on.",
    caption="The true mean is 1 at every length (dashed); beyond a few "
            "hundred tokens 1,000 answers no longer contain it.")

# %% [markdown]
# That is the case against the product. It is not a case against PPO or GRPO, which never use it. (TRL's RLOO
# trainer does form it, and clips it.)
#
# ## What PPO uses instead
#
# One weight per token, $\rho_t$, and the tokens before it taken as they came. The prefix ratio
# $\prod_{s\lt t}\rho_s$ is dropped: no product, some bias. How much? A policy over two words
# and a stop token, moved by a random step, answers drawn from before. Exact moments of one answer's gradient:

# %%
from rlnb import objective as parts
from rlnb.objective import Objective, ratio, raw_reward
from rlnb.toys import SequencePolicy, estimator_moments

by_token = Objective(raw_reward, ratio, parts.sequence_sum)
by_product = by_token.replace(               # one ratio, at every token:
    ratio=parts.product(),
    weights=parts.sequence_mean())           # count it once
ignored = by_token.replace(surrogate=parts.logprob())
choices = {"none": ignored, "token": by_token, "product": by_product}

def ones(answer):
    """The reward: the share of word 1."""
    return answer.count(1) / len(answer)

def moved(T, seed, size=0.5):
    g = torch.Generator().manual_seed(seed)
    rows = 2**T - 1                          # one row of logits per prefix
    old = torch.randn(rows, 3, generator=g)
    step = size * torch.randn(rows, 3, generator=g)
    return SequencePolicy(2, T, old), SequencePolicy(2, T, old + step)

# %%
def table(T, seed):
    old, new = moved(T, seed)
    for name, objective in choices.items():
        m = estimator_moments(new, ones, objective, 1, old_policy=old)
        bias = float(m.bias.norm() / m.truth.norm())
        print(f"T {T} seed {seed} {name:8s}bias {bias:.4f} of the gradient"
              f"  cosine {m.cosine:.4f}  variance {m.trace:.4f}")
        assert (bias < 1e-10) == (name == "product")

for T in (2, 4):
    table(T, 0)
for seed in (1, 2):
    table(4, seed)

# %% [markdown]
# The product has no bias at all, and at four tokens its variance is nothing to fear. Length is what
# makes it useless. The token ratio removes 47 to 88 % of the error that ignoring the move makes; an error
# of 3 to 18 % of the gradient is left, after a large step. In return no weight is ever a product. This is
# the trade that PPO, GRPO and their relatives make: not the importance weight of an answer but a correction
# per token, exact at $\pi_\text{old}$ and worse the more the prefixes have changed.
#
# ## KL estimators: the value
#
# Back to the two tables under the explorer. "$k_3$ is an unbiased estimate of $\mathrm{KL}(\pi\,\|\,
# \pi_\text{ref})$": on samples of $\pi$ itself, and when $\pi$ can draw every token that the reference can.
# Stale samples are repaired by the ratio. Missing support is not:

# %% tags=["claim:K02"]
old = ((z + ref.log()) / 2).softmax(0)       # half-way back
rho = pi / old
print("KL", show(KL), " E k3: fresh", show(pi @ k3(l)), " stale",
      show(old @ k3(l)), " stale, weighted", show(old @ (rho * k3(l))))
assert torch.isclose(pi @ k3(l), KL)
assert old @ k3(l) > 1.3 * KL
assert torch.isclose(old @ (rho * k3(l)), KL)

narrow, wide = torch.tensor([0.7, 0.3]), torch.tensor([0.5, 0.3, 0.2])
l_gap = (narrow / wide[:2]).log()           # the third is never drawn
kl_gap, k3_gap = narrow @ l_gap, narrow @ k3(l_gap)
print("support gap of 0.2: KL", show(kl_gap), " E k3", show(k3_gap))
assert torch.isclose(kl_gap - k3_gap, torch.tensor(0.2))
# "k3 is an unbiased estimate": conditional

# %% [markdown]
# The gap costs exactly the mass that is missed, because $\mathbb{E}_\pi[\pi_\text{ref}/\pi]$ is then 0.8 and
# not 1.
#
# "$k_3$ has lower variance than the plain log-ratio": near the reference, yes, and that is where runs live.
# Far from it, no. For two Gaussians of width 1, $\mu$ apart, $\mathrm{KL}=\mu^2/2$ and
#
# $$\mathrm{Var}\,k_1=\mu^2,\qquad\mathrm{Var}\,k_3=e^{\mu^2}-1-\mu^2$$
#
# They cross where $e^{\mu^2}=1+2\mu^2$. The integral below agrees. The other way to fail is a rare token that
# the reference likes:

# %% tags=["claim:K03"]
import math

for mu in (0.5, 1.0, 1.5):
    l_mu = mu * x - mu**2 / 2                # x and q: the grid above
    from_mean = (k3(l_mu) - mu**2 / 2) ** 2
    var_k3 = torch.trapezoid(q * l_mu.exp() * from_mean, x).item()
    print(f"mu {mu}: KL {mu**2 / 2:.4f}  var k1 {mu**2:.4f}"
          f"  var k3 {var_k3:.4f}")
    assert math.isclose(var_k3, math.exp(mu**2) - 1 - mu**2)
low, high = 0.5, 2.0
for _ in range(60):                          # bisection
    mid = (low + high) / 2
    above = math.exp(mid**2) > 1 + 2 * mid**2
    low, high = (low, mid) if above else (mid, high)
print(f"crossing at mu {mid:.4f}, KL {mid**2 / 2:.4f} nats per token")
assert round(mid, 4) == 1.1209 and round(mid**2 / 2, 2) == 0.63

rare, liked = torch.tensor([0.999, 0.001]), torch.tensor([0.9, 0.1])
l_rare = (rare / liked).log()
def spread(k):
    return (rare @ k(l_rare)**2 - (rare @ k(l_rare))**2) ** 0.5
print("rare token that the reference likes: KL", show(rare @ l_rare),
      " std k1", show(spread(k1)), " std k3", show(spread(k3)))
assert spread(k3) > 10 * spread(k1)
# "k3 has lower variance than the plain log-ratio": conditional

# %% [markdown]
# 0.63 nats *per token* is a policy that has left. In ordinary runs $k_3$ is the quieter one. The last line
# is how it fails there: one rare token in a thousand, $k_3\approx94$, and the log shows a spike.
#
# ## KL estimators: the gradient
#
# An estimator may have the right mean and the wrong slope. Differentiating $k(\ell)$ on sampled tokens
# leaves out that $\pi$ also decides *which* tokens are sampled. On fresh samples what is left is
# $\mathbb{E}_\pi[k'(\ell)\,\nabla\log\pi]$, and since $\mathbb{E}_\pi[\nabla\log\pi]=0$:
#
# $$k_1'=1\ \to\ 0,\qquad k_2'=\ell\ \to\ \nabla\mathrm{KL}(\pi\,\|\,\pi_\text{ref}),\qquad
# k_3'=1-\tfrac{\pi_\text{ref}}{\pi}\ \to\ \nabla\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)$$
#
# What people do, by enumeration. *Loss*: autograd through $k$. *Reward*: $k$ is a number that
# multiplies $\nabla\log\pi$. The ratio $\rho=\pi/\pi_\text{old}$ may be absent, a constant weight
# (detached), or differentiated too.

# %%
def kl_gradient(k, place="loss", sampler=None, weight="none"):
    """Mean gradient of the penalty, (4,), over all four tokens."""
    x = z.clone().requires_grad_()
    lp = x.log_softmax(0)                                    # (4,)
    q = pi if sampler is None else sampler
    rho = (lp - q.log()).exp()
    w = {"none": 1, "detached": rho.detach(), "full": rho}[weight]
    value = k(lp - ref.log())
    if place == "reward":
        value = value.detach() * lp
    return torch.autograd.grad((q * w * value).sum(), x)[0]

def of(function):
    """The gradient of a function of the logits, at z."""
    x = z.clone().requires_grad_()
    return torch.autograd.grad(function(x.log_softmax(0)), x)[0]

reverse = of(lambda lp: (lp.exp() * (lp - ref.log())).sum())
forward = of(lambda lp: (ref * (ref.log() - lp)).sum())
print("grad KL(pi || ref)", show(reverse))
print("grad KL(ref || pi)", show(forward))

# %%
def which(g):
    """The name of a gradient."""
    names = {"0": torch.zeros(4), "KL(pi|ref)": reverse,
             "KL(ref|pi)": forward}
    for name, other in names.items():
        if torch.allclose(g, other, rtol=0, atol=1e-12):
            return name
    return "neither"

ways = [("loss,   fresh", "loss", None, "none"),
        ("reward, fresh", "reward", None, "none"),
        ("loss,   stale, no ratio", "loss", old, "none"),
        ("loss,   stale, ratio detached", "loss", old, "detached"),
        ("loss,   stale, ratio in full", "loss", old, "full"),
        ("reward, stale, no ratio", "reward", old, "none"),
        ("reward, stale, ratio", "reward", old, "detached")]
found = {}
print(f"{'':30s}" + "".join(f"{k.__name__:12s}" for k in (k1, k2, k3)))
for label, place, sampler, weight in ways:
    found[label] = [which(kl_gradient(k, place, sampler, weight))
                    for k in (k1, k2, k3)]
    print(f"{label:30s}" + "".join(f"{n:12s}" for n in found[label]))

# %%
R, F, N = "KL(pi|ref)", "KL(ref|pi)", "neither"
assert list(found.values()) == [
    ["0", R, F], [R, N, N],                  # fresh: loss, reward
    [N, N, N], ["0", R, F], [R, N, R],       # stale loss: none, const, full
    [N, N, N], [R, N, N]]                    # stale reward: none, ratio
minus = kl_gradient(k3, "reward") - (reverse - forward)
assert minus.abs().max() < 1e-12             # k3 in the reward: R minus F

def library(term, sampler):
    """The same mean gradient with rlnb's term."""
    x = z.clone().requires_grad_()
    batch = Batch(x.log_softmax(0)[:, None], torch.ones(4, 1),
                  torch.zeros(4), 1, ref_logprobs=ref.log()[:, None],
                  old_logprobs=sampler.log()[:, None])
    mean = (sampler * term(batch)[:, 0]).sum()
    return torch.autograd.grad(mean, x)[0]

for k in (k1, k2, k3):
    for corrected, weight in ((False, "none"), (True, "full"),
                              ("detached", "detached")):
        term = getattr(parts, k.__name__)(1.0, corrected=corrected)
        mine = kl_gradient(k, "loss", old, weight)
        assert torch.allclose(library(term, old), mine, atol=1e-12)
print("nine forms, same gradients as rlnb")

# %% [markdown]
# How to read it. Two roads lead to $\nabla\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$. One multiplies an *unbiased
# value* by the ratio and differentiates both: $\rho k_1$ and $\rho k_3$ (DeepSeek-V3.2, arXiv 2512.02556, and
# TRL's `use_bias_correction_kl`, do the second). The other takes an estimator whose *slope* is right:
# $k_2$ in the loss, or $k_1$ in the reward, with a detached ratio when samples are stale.
#
# Detach the ratio of $\rho k_3$ and the forward KL is back. Drop the ratio on stale samples and nothing is
# right; $k_1$ in a loss then even pushes *away* from the reference, cosine −0.99 in the
# table of stale samples.
#
# ## How much does it matter?
#
# "$k_3$ is unbiased, so put it in the loss as $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$." For the gradient this
# does not follow, as the row "loss, fresh" shows. It is sloppy rather than wrong, because the penalty works: it
# too is smallest at the reference, and close to it the directions agree.

# %% tags=["claim:K04"]
print("k3's gradient against that of KL(pi||ref)")
print("    KL  cosine  length")
for distance in (0.02, 0.044, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0):
    d = compute(distance)
    ratio_of_lengths = d["length"]["k3"] / d["length"]["k2"]
    print(f"{d['kl']:6.4f}  {d['cosine']['k3']:6.4f}  "
          f"{ratio_of_lengths:6.4f}")
near = compute(0.044)
assert round(near["kl"], 4) == 0.0009 and near["cosine"]["k3"] > 0.9999
assert which(kl_gradient(k3)) == F and which(kl_gradient(k1)) == "0"
assert which(kl_gradient(k2)) == R
at_ref = compute(0.0)
assert at_ref["length"]["k3"] < 1e-12 and at_ref["kl"] < 1e-12
# "k3 is unbiased, so put it in the loss": sloppy

# %% [markdown]
# At 0.001 nats per token there is nothing to see. At 0.4 the directions differ by 13
# degrees, at 1.1 by 44, and by then the two KLs want different things: the forward one covers
# whatever the reference does, the reverse one stays where the reference is likely.
#
# ## Two tokens
#
# Every row of the table of gradients holds *per state*: one prefix, one token. An answer is a chain, and what KL the
# later tokens meet depends on the earlier ones. Two tokens, each word 0, word 1 or stop:

# %%
def chain(start, after0, after1):
    return SequencePolicy(2, 2, torch.tensor([start, after0, after1]))

ref2 = chain([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
pi2 = chain([-0.2, 0.2, 0.0], [2.0, -1.0, 0.0], [0.0, 0.3, 0.0])

def chain_gradients(pi2, ref2):
    """Gradients with respect to pi2's logits, (3, 3) each."""
    l = pi2.logprobs() - ref2.logprobs().detach()            # (N, T)
    p, q = pi2.probabilities(), ref2.probabilities().detach()
    now, mask, whole = p.detach(), pi2.mask, l.sum(1)
    scalars = {"reverse": (p * whole).sum(),
               "forward": -(q * whole).sum()}
    for k in (k1, k2, k3):
        scalars[f"{k.__name__} per token"] = (
            now * (k(l) * mask).sum(1)).sum()
        scalars[f"{k.__name__} of the sum"] = (now * k(whole)).sum()
    scalars["k1 in reward"] = (now * whole.detach()
                               * pi2.logprobs().sum(1)).sum()
    return {name: torch.autograd.grad(v, pi2.logits, retain_graph=True)[0]
            for name, v in scalars.items()}

# %%
def cosine(a, b):
    return float((a * b).sum() / (a.norm() * b.norm()))

g = chain_gradients(pi2, ref2)
pairs = [("k1 in reward", "reverse"), ("k2 of the sum", "reverse"),
         ("k3 of the sum", "forward"), ("k2 per token", "reverse"),
         ("k3 per token", "forward"), ("k3 per token", "reverse")]
for mine, target in pairs:
    print(f"{mine:13s} against grad of the {target} sequence KL: cosine "
          f"{cosine(g[mine], g[target]):.4f}, largest difference "
          f"{(g[mine] - g[target]).abs().max():.4f}")
assert g["k1 per token"].abs().max() < 1e-12
for mine, target in pairs[:3]:
    assert torch.allclose(g[mine], g[target], atol=1e-12)
for mine, target in pairs[3:]:
    assert cosine(g[mine], g[target]) < 0.999

# %% [markdown]
# The identities survive for the log-ratio of the *whole answer*. They break when $k_2$ or $k_3$ are taken
# token by token and added up, which is how trainers do it: each token then answers for its own
# KL and not for the KL it leads to. Not for this chain only; eight random ones, near the
# reference and far:

# %%
for size in (0.05, 1.0):
    cosines = {pair: [] for pair in pairs[3:]}
    for seed in range(8):
        gen = torch.Generator().manual_seed(seed)
        base = torch.randn(3, 3, generator=gen)
        step = size * torch.randn(3, 3, generator=gen)
        g8 = chain_gradients(SequencePolicy(2, 2, base + step),
                             SequencePolicy(2, 2, base))
        for pair in cosines:
            cosines[pair].append(cosine(g8[pair[0]], g8[pair[1]]))
    for (mine, target), found8 in cosines.items():
        print(f"step {size:4}: {mine} against {target}: "
              f"from {min(found8):.4f} to {max(found8):.4f}")

# %% [markdown]
# Near the reference it costs next to nothing. Far from it a random chain loses less than ours, which was
# built to show it: at worst 0.94 for $k_2$, where ours has 0.50.
#
# "PPO puts the KL in the reward, GRPO puts it in the loss." True as a description, and more than a matter of
# place. In the reward, $k_1$ is the gradient of the sequence KL exactly, later tokens included. In the
# loss, per token, the first word below is pushed the other way: it is rarer than under the reference,
# and what follows it is far from the reference.

# %% tags=["claim:K05"]
beta = 0.1
policy_kl = Objective(raw_reward, parts.logprob(), parts.sequence_sum,
                      shape=parts.kl_in_reward(beta))
in_reward = estimator_moments(pi2, lambda y: 0.0, policy_kl, 1,
                              ref_policy=ref2)
in_loss = estimator_moments(pi2, lambda y: 0.0, policy_kl.replace(
    shape=(), terms=parts.k2(beta)), 1, ref_policy=ref2)
print("first token's logits, minus the gradient of beta * KL:")
print("  sequence KL          ", show(-beta * g["reverse"][0]))
print("  k1 in the reward     ", show(in_reward.mean[0]))
print("  k2 per token, in loss", show(in_loss.mean[0]))
assert torch.allclose(in_reward.mean, -beta * g["reverse"], atol=1e-12)
assert torch.allclose(in_loss.mean, -beta * g["k2 per token"], atol=1e-12)
assert in_reward.mean[0, 0] < 0 < in_loss.mean[0, 0]
# "PPO puts the KL in the reward, GRPO puts it in the loss": true

# %% [markdown]
# ## A constraint instead: TRPO
#
# A weight tells how much a sample is worth after the move. TRPO (2015) limits the move. With $A$ the
# advantage of page 03:
#
# $$\max_\theta\ \mathbb{E}_\text{old}[\rho\,A]\quad\text{subject to}\quad
# \mathrm{KL}(\pi_\text{old}\,\|\,\pi_\theta)\le\delta$$
#
# Mind the direction: old first, unlike the reference KL above. To second order in the step $\Delta$ the constraint
# is $\tfrac12\Delta^\top F\Delta\le\delta$, with $F$ the Hessian of the KL at the old policy, the Fisher matrix.
# Then $\Delta=\sqrt{2\delta/(s^\top Fs)}\;s$ with $Fs=g$, the gradient
# of the surrogate. Nobody builds $F$: conjugate gradient only asks for
# products $Fv$, and those are two backward passes. Five arms; the best one is rare:

# %%
start = torch.tensor([0.01, 0.24, 0.25, 0.20, 0.30]).log()
reward = torch.tensor([1.0, 0.0, 0.5, 0.2, 0.0])
A = reward - (start.exp() * reward).sum()                    # exact

def kl_old_new(x):
    return (start.exp() * (start - x.log_softmax(0))).sum()

def surrogate(x):                                            # E_old[rho A]
    return (start.exp() * (x.log_softmax(0) - start).exp() * A).sum()

def fisher_times(v):
    x = start.clone().requires_grad_()
    slope, = torch.autograd.grad(kl_old_new(x), x, create_graph=True)
    return torch.autograd.grad((slope * v).sum(), x)[0]

# %%
def conjugate_gradient(times, b, steps=10):
    x, residual, direction = torch.zeros_like(b), b.clone(), b.clone()
    for _ in range(steps):
        if residual @ residual < 1e-20:
            break
        image = times(direction)
        alpha = residual @ residual / (direction @ image)
        x, before = x + alpha * direction, residual
        residual = residual - alpha * image
        direction = residual + (residual @ residual) / (
            before @ before) * direction
    return x

x = start.clone().requires_grad_()
gradient, = torch.autograd.grad(surrogate(x), x)
s = conjugate_gradient(fisher_times, gradient)
print("gradient g        ", show(gradient))
print("s, with F s = g   ", show(s - s.mean()))
print("advantages, centred", show(A - A.mean()))
assert torch.allclose(fisher_times(s), gradient, atol=1e-10)
assert torch.allclose(s - s.mean(), A - A.mean(), atol=1e-8)

# %% [markdown]
# For a softmax table the natural step is the advantage itself, per logit. The plain gradient multiplies
# each arm by its own probability, so the rare best arm hardly moves; $F^{-1}$ takes that factor out.
# (A constant added to all logits changes nothing, hence "centred".)
#
# The quadratic model is a model. TRPO checks the KL it got and halves the step until the KL holds and the
# surrogate has risen:

# %%
def trpo_step(delta, most=10):
    full = (2 * delta / (s @ fisher_times(s))).sqrt() * s
    for halvings in range(most + 1):
        x = start + 0.5**halvings * full
        if kl_old_new(x) <= delta and surrogate(x) > 0:
            return full, x, halvings
    return full, start, None                 # keep the old policy

def plain_step(kl):
    """Along the gradient, to the same KL, by bisection."""
    low, high = 0.0, 1e4
    for _ in range(100):
        mid = (low + high) / 2
        inside = kl_old_new(start + mid * gradient) < kl
        low, high = (mid, high) if inside else (low, mid)
    return start + low * gradient

# %%
for delta in (0.01, 0.1, 1.0):
    full, new, halvings = trpo_step(delta)
    kl = kl_old_new(new)
    plain = plain_step(kl)
    print(f"delta {delta:4}: full step KL {kl_old_new(start + full):.4f},"
          f" after {halvings} halving KL {kl:.4f}")
    for name, x in (("natural", new), ("plain gradient", plain)):
        print(f"    {name:15s} surrogate {surrogate(x):.4f}, "
              f"rare arm 0.01 -> {x.softmax(0)[0]:.4f}")
    assert torch.isclose(full @ fisher_times(full) / 2,
                         torch.tensor(delta))
    assert kl <= delta and surrogate(new) > surrogate(plain) > 0

# %% [markdown]
# $\tfrac12\Delta^\top F\Delta=\delta$ as asserted, and the true KL is 5 to 44 % larger. Without the line
# search the constraint would be violated every time here. At the same KL the natural step gains more
# (0.0164 against 0.0152 at δ = 0.01), and at δ = 1 it lifts the rare arm tenfold where the plain one lowers
# it. The price is second-order
# products on every step; TRL, verl and OpenRLHF offer no TRPO. Page 05 is the cheap way out.
#
# ## A controller for β, and its units
#
# How large should the coefficient of a KL penalty be? Ziegler et al. (arXiv 1909.08593) do not choose β,
# they choose a KL and let β follow. With $n$ samples per update and a horizon, usually 10,000:
#
# $$e=\mathrm{clip}\Big(\frac{\mathrm{KL}}{\mathrm{KL}_\text{target}}-1,\ \pm0.2\Big),\qquad
# \beta\leftarrow\beta\,\Big(1+e\,\frac{n}{\text{horizon}}\Big)$$
#
# It compares two numbers, so they need the same unit, and there are two in use: the KL of a whole answer
# (a *sum* over its tokens; Ziegler's target is a few nats) and the *mean* per token (verl feeds that, with
# 0.1 as default target). A toy run: answers of 200 tokens, a policy that is always at its optimum
# $\pi\propto\pi_\text{ref}\,e^{r/\beta}$, four tokens, one of them worth 0.1:

# %%
T, gain = 200, torch.tensor([0.1, 0.0, 0.0, 0.0])

def token_kl(beta):
    """KL per token of the policy that is optimal at this beta."""
    tilted = (ref.log() + gain / beta).log_softmax(0)
    return (tilted.exp() * (tilted - ref.log())).sum().item()

def controlled(target, unit, beta=0.2, n=256, horizon=10_000):
    """The KL of an answer, in nats, over 2,000 updates; the last beta."""
    path = []
    for _ in range(2000):
        measured = token_kl(beta) * (T if unit == "sum" else 1)
        e = min(max(measured / target - 1, -0.2), 0.2)
        beta *= 1 + e * n / horizon
        path.append(T * token_kl(beta))
    return path, beta

# %%
feeds = {"sum, target 6": (6.0, "sum"), "mean, target 0.03": (0.03, "mean"),
         "mean, target 6": (6.0, "mean"), "sum, target 0.1": (0.1, "sum")}
paths = {}
for name, (target, unit) in feeds.items():
    paths[name], beta = controlled(target, unit)
    print(f"fed with {name:18s}: beta {beta:.1e}, an answer is "
          f"{paths[name][-1]:.4f} nats from the reference")
assert abs(paths["sum, target 6"][-1] - 6) < 0.05
assert abs(paths["mean, target 0.03"][-1] - 6) < 0.05
assert paths["mean, target 6"][-1] > 400
assert paths["sum, target 0.1"][-1] < 0.15
shown = range(0, 2000, 20)
figures.line_figure(
    shown, {name: [path[i] for i in shown] for name, path in paths.items()},
    xlabel="update", ylabel="KL of an answer (nats)", ylim=(0, 20),
    size=(900, 300),
    alt="KL of a 200-token answer over 2,000 updates. Fed with the sum and "
        "target 6, or the mean and 0.03, it settles at 6. Fed with the "
        "mean and 6 it leaves the picture; with the sum and 0.1 it goes "
        "to 0.1.",
    caption="A target in the wrong unit is off by the length of the "
            "answer: one way the leash vanishes (the line that leaves, to "
            "460 nats), the other way nothing moves.")

# %% [markdown]
# Nothing crashes in the third run. The measured number stays below 6, as asked, and β sinks for ever. A
# fixed β has no such unit: GRPO averages over tokens where RLOO sums, but it averages the advantage along
# with the penalty, and $T$ cancels.
#
# ## Where people go wrong
#
# Most statements about ratios and KL estimators stand above, next to the cell that decides them. Five
# about the reference are left.
#
# **"With verifiable rewards the KL leash mostly keeps the policy from moving far enough."** At a large β,
# yes. For $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ the best policy is $\pi_\text{ref}e^{r/\beta}$ up to a constant, so a
# reward of 1 can multiply the odds of a right answer by $e^{1/\beta}$. Right or wrong, starting from one in 10,000:

# %% tags=["claim:K07"]
p0 = 1e-4
def optimum(beta):
    odds = p0 / (1 - p0) * math.exp(1 / beta)
    return odds / (1 + odds)

def optimum_k3(beta):
    """Where p (1 - p) = beta (p - p0): reward against k3 in the loss."""
    b = 1 - beta
    return (b + math.sqrt(b**2 + 4 * beta * p0)) / 2

for beta in (0.04, 0.1, 0.2):
    print(f"beta {beta}: odds times {math.exp(1 / beta):.1e}, p at the "
          f"optimum {optimum(beta):.4f}; with k3 in the loss "
          f"{optimum_k3(beta):.4f}")
assert [round(optimum(b), 3) for b in (0.04, 0.1, 0.2)] \
    == [1.0, 0.688, 0.015]
# "the KL leash mostly keeps the policy from moving far": conditional

# %% [markdown]
# At the usual 0.04 the leash hardly holds. At 0.2 it does, *for this KL*. $k_3$ in the
# loss is another leash: it pulls back by $\pi-\pi_\text{ref}$ per logit, so it lets a rare answer rise to
# about $1-\beta$ and never quite to 1. Both numbers are resting points; how fast a run gets there is
# another question.
#
# **"With a verifier the KL can go; with a learned reward model that is dangerous."** **"As the KL grows, the
# true reward rises, peaks and falls."** Both hang on one thing, the tail of the reward's error. Take the
# best of $N$ answers by a proxy = truth + error, truth of mean 0 and deviation 1. More pressure is a larger
# $N$: the best of $N$ is at most $\log N-\frac{N-1}{N}$ nats away (arXiv 2401.01879). Integrated, not sampled:

# %% tags=["claim:K08", "claim:K09"]
z = torch.sinh(torch.linspace(-14, 14, 4001))          # the proxy (Z,)
g = torch.linspace(-8, 8, 401)                         # the truth (g,)
w = torch.exp(-g**2 / 2) / math.sqrt(2 * math.pi) * (g[1] - g[0])
tails = {"light (normal)": torch.special.ndtr,
         "heavy (t, 2 df)": lambda e: 0.5 + e / (2 * (2 + e**2).sqrt())}
sizes = (1, 4, 16, 256, 4096, 16384)
nats = [math.log(N) - (N - 1) / N for N in sizes]
print("N                ", *(f"{N:7d}" for N in sizes))
print("KL, at most      ", *(f"{x:7.2f}" for x in nats))
true = {}
for name, cdf in tails.items():
    below = cdf(z[:, None] - g)                        # (Z, g)
    F = below @ w                                      # P(proxy <= z)
    mean = (below.diff(dim=0) @ (w * g)) / F.diff()    # E[truth | z]
    true[name] = [((F**N).diff() * mean).nansum().item() for N in sizes]
    print(f"truth, {name:15s}"[:24],
          *(f"{abs(x):6.2f}" for x in true[name]))
light, heavy = true.values()
assert light == sorted(light) and light[-1] > 2.7
assert max(heavy) == heavy[2] and heavy[-1] < 0.05
# "fine with verifiable rewards and dangerous with": conditional
# "As the KL grows the true reward rises, peaks and then falls": conditional

# %% [markdown]
# A light tail: the truth still rises at $N=16384$, 8.7 nats out. A heavy one: it peaks near 16 and is gone,
# because the largest proxy is then an error. So: with *this* reward, what do the largest errors look like? A
# verifier that can be tricked may have a heavy tail too.
#
# **"Without the KL term no reference model is needed."** True, if nothing else uses one: 16 bytes a
# parameter instead of 18. **"Long chains of
# thought are what the reference cannot do."** If it could not at all, neither could the policy, which starts
# there: what is never sampled is never reinforced. Rarely is not never:

# %% tags=["claim:K10", "claim:M16"]
sizes = {"weights, gradients": 2 + 2, "fp32 master copy": 4,
         "Adam": 4 + 4, "bf16 reference": 2}
total = sum(sizes.values())
print(f"bytes a parameter: {total} with a reference, "
      f"{total - sizes['bf16 reference']} without")
assert (total, total - sizes["bf16 reference"]) == (18, 16)

def climb(p, steps=100, lr=200.0):
    """Exact policy gradient on two answers, rewards 1 and 0."""
    x = torch.tensor([p, 1 - p]).log()
    for _ in range(steps):
        prob = x.softmax(0)
        x = x + lr * prob * (torch.tensor([1.0, 0.0]) - prob[0])
    return x.softmax(0)[0].item()

print(f"start at 1e-4: {climb(1e-4):.4f}   start at 0: {climb(0.0):.4f}")
assert climb(1e-4) > 0.99 and climb(0.0) == 0
# "Without the KL term no reference model is needed": true
# "what the reference model cannot do": sloppy

# %% [markdown]
# An answer at exactly 0 stays there under any learning rate, as in the support gap above.
#
# ## Exercises
#
# **04.1 Derive** · 6 minutes · ●●○. Show that on fresh samples the mean gradient of $k_2$, used as a loss,
# is $\nabla\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$. Which term of the derivative of the KL vanishes, and why?
#
# <details><summary>hint</summary>
#
# Differentiate $\sum_y\pi(y)\,\ell(y)$ with the product rule. $\nabla\pi=\pi\,\nabla\log\pi$, and the sum of
# all $\nabla\pi$ is 0.
# </details>
#
# **04.2 Predict, then run** · 3 minutes · ●○○. Ten samples with weights 1, …, 1 (nine of them) and 9. What is
# the effective sample size? And after you multiply all weights by 100?
#
# <details><summary>hint</summary>
#
# The sum is 18, its square 324.
# </details>
#
# **04.3 Implement** · 5 minutes · ●○○. `values`, `log_p` and `log_q` of samples from $q$, each of shape (n,).
# Return the estimate of the mean of `values` under $p$, dividing by $n$. The logs may be those of whole
# answers.
#
# <details><summary>hint</summary>
#
# `print(check.importance_estimate.hint)`
# </details>

# %% tags=["exercise"]
def my_importance_estimate(values, log_p, log_q):
    return ...

check.importance_estimate(my_importance_estimate)

# %% [markdown]
# **04.4 Implement** · 6 minutes · ●●○. The effective sample size from log-weights of shape (n,). Log-weights
# of 800 are among the probes, and so are −800.
#
# <details><summary>hint</summary>
#
# What happens to the ESS when every weight is multiplied by the same number? Choose that number well.
# </details>

# %% tags=["exercise"]
def my_effective_sample_size(log_weights):
    return ...

check.effective_sample_size(my_effective_sample_size)

# %% [markdown]
# **04.5 Implement** · 8 minutes · ●●○. Token rewards (B, T) of PPO for RLHF: $-\beta(\log\pi-\log\pi_\text{ref})$
# on every real token, plus the scalar reward (B,) on the *last real token* of its answer. `mask` is boolean,
# True on real tokens; a tool's output in the middle of an answer is False. What is under the mask may be
# nan.
#
# <details><summary>hint</summary>
#
# `print(check.kl_in_reward.hint)`
# </details>

# %% tags=["exercise"]
def my_kl_in_reward(rewards, logprobs, ref_logprobs, mask, beta):
    return ...

check.kl_in_reward(my_kl_in_reward)

# %% [markdown]
# **04.6 Derive** · 6 minutes · ●●○. For independent tokens show $\mathrm{Var}[\prod_t\rho_t]=\prod_t(1+\chi_t^2)-1$.
# At $\chi^2=0.04$, how long may an answer be if half of the samples shall survive ($\mathrm{ESS}=n/2$)?
#
# <details><summary>hint</summary>
#
# $\mathbb{E}[\rho]=1$ and $\mathbb{E}[\rho^2]=1+\chi^2$; the mean of a product of independent factors is the
# product of the means.
# </details>
#
# **04.7 Find the silent bug** · 10 minutes · ●●●. Sampling runs at temperature 0.7, so the policy is scored
# at 0.7. This penalty trains, is never negative, and all its tests pass:

# %%
print(check.silent_bug_04.source)

# %% [markdown]
# Write a test that takes such a function, fails on this one and passes on a right one. It is called as
# `kl_penalty(logits, ref_logits, tokens, temperature)`; what you assert is up to you.
#
# <details><summary>hint</summary>
#
# `print(check.silent_bug_04.hint)`
# </details>

# %% tags=["exercise"]
def my_test(kl_penalty):
    return ...

check.silent_bug_04(my_test)

# %% [markdown]
# All solved, with outputs, in `solutions/04_importance_sampling.ipynb`.
#
# ## In the interview
#
# A minute each. Say the answer aloud before unfolding.
#
# **What is importance sampling, and when does it fail?**
# <details><summary>answer</summary>
#
# The mean of f under p equals the mean of (p/q)·f under q: samples of q, each weighted by how much more
# often p would have drawn it. Exact if q covers the support of p; the missing part is lost silently
# otherwise, and the mean weight below 1 is the only trace. Useful only if the weights vary little: the
# effective sample size is about n/(1 + χ²). Rejection sampling uses the same ratio to keep or drop samples
# instead of weighting them, and needs a bound on p/q.
# </details>
#
# **Why not use the ratio of the whole answer?**
# <details><summary>answer</summary>
#
# It is the right importance weight, and it is a product of T token ratios, so its variance is (1 + χ²)^T − 1.
# With χ² = 0.04 per token that is 49 at 100 tokens and 10^17 at 1,000: the mean is still 1, but it sits in
# answers that no batch contains. PPO and GRPO use one ratio per token and ignore the prefix: no product, some
# bias. GSPO's geometric mean is not an importance weight either; it measures movement.
# </details>
#
# **Compare $k_1$, $k_2$, $k_3$.**
# <details><summary>answer</summary>
#
# With l = log π − log π_ref on samples of π: k1 = l is unbiased and noisy, and single samples can be
# negative. k2 = l²/2 is biased and quiet. k3 = e^(−l) − 1 + l is unbiased, never negative, and quieter than
# k1 until about 0.63 nats per token, then noisier. As losses, state by state and on fresh samples, k1's mean
# gradient is 0, k2's is that of KL(π‖ref), k3's that of KL(ref‖π).
# </details>
#
# **So is GRPO's KL term wrong?**
# <details><summary>answer</summary>
#
# Its value estimates KL(π‖ref); its gradient follows KL(ref‖π), state by state. As a penalty it works: same
# minimum, and near the reference the directions agree (cosine 0.9999 at 0.0009 nats). It matters far from the
# reference, and with stale samples, where without a ratio it is neither KL. Fixes: k2 in the loss, k1 in the
# reward, or multiply k3 by the ratio and do not detach it.
# </details>
#
# **KL in the reward or in the loss?**
# <details><summary>answer</summary>
#
# k1 in the reward is exactly minus the gradient of the sequence KL: a token pays for the KL that follows it
# as well. A per-token term in the loss misses that; in a two-token chain it turned the sign of one entry. In
# the reward it also enters baselines and normalisation (a z-score rescales β), and it arrives with the noise
# of the policy gradient. The loss form is local and steady.
# </details>
#
# **What does TRPO do, step by step?**
# <details><summary>answer</summary>
#
# Maximise E_old[ρA] subject to mean KL(old‖new) ≤ δ. Gradient g of the surrogate; solve F s = g by conjugate
# gradient with Fisher-vector products, two backward passes each; scale s to √(2δ/sᵀFs); then halve the step
# until the measured KL is at most δ and the surrogate has improved. F⁻¹ removes the factor π from the
# gradient: for a softmax table the step is the advantage. PPO replaces all of it by a clip and any optimizer.
# </details>
#
# **Your KL controller lets the policy run away. What do you check first?**
# <details><summary>answer</summary>
#
# Units. Is the measured KL a sum over the answer or a mean per token, and which of the two is the target? A
# mean against a target of 6 nats never reaches it, so β falls by its largest step for ever. Then the sign of
# the estimator, whether padding is in the mean, and whether both log-probs are at the same temperature.
# </details>
#
# **With verifiable rewards, do you keep the KL?**
# <details><summary>answer</summary>
#
# Often not: it costs a reference model (2 bytes a parameter, and a forward pass) and the reward cannot be
# argued with. But at β = 0.04 it hardly limits where the policy ends: the odds of a right answer can grow by
# e^25. It buys calm and keeps other abilities near the reference. At β = 0.2 a solution that starts at one in
# 10,000 stays at 1.5 %.
# </details>

# %% [markdown]
# ## Recap
#
# The running group under the methods so far. Its answers were drawn from $\pi_\text{old}$ and the policy has
# moved. `reinforce` and `rloo` ignore that; the two rows below weigh RLOO's push (minus the loss's slope in
# each $\log\pi$) by the token ratio and by the product.

# %%
from rlnb.toys import running_group

rloo = ZOO["rloo"]
per_token = rloo.replace(surrogate=ratio())
per_answer = per_token.replace(ratio=parts.product(),
                               weights=parts.sequence_mean())
group = running_group()
rows = {"reinforce": ZOO["reinforce"], "rloo": rloo,
        "rloo, token ratio": per_token, "rloo, product": per_answer}
for name, objective in rows.items():
    told = objective.explain(group)
    print(name)
    for i, length in enumerate(group.lengths.int().tolist()):
        print(f"  A {told.advantages[i, 0].item() + 0.0:+.4f}  push",
              *[f"{-x + 0.0:+.4f}" for x in
                told.gradient[i, :length].tolist()])
product = (group.logprobs - group.old_logprobs).mul(group.mask).sum(1).exp()
print("products", show(product), " ESS", show(ess(product.log())), "of 4")

# %% [markdown]
# One token of answer 1 that rose sixfold makes the product of its whole answer large, and every token of
# that answer is pushed by it. With one ratio per token it speaks for itself only; page 05 clips that too.
#
# 1. $\mathbb{E}_p[f]=\mathbb{E}_q[\tfrac pq f]$ where $q$ covers $p$; the mean weight tells what is covered, the
#    ESS what is left.
# 2. Over an answer ratios multiply and their variance is $(1+\chi^2)^T-1$. PPO keeps one per token.
# 3. $k_1$ and $k_3$ have the right mean; $k_2$ in the loss and $k_1$ in the reward have the right slope; $k_3$
#    in the loss follows $\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)$. Near the reference all agree.
# 4. Per token these are statements about one state. For the answer, only the log-ratio of the whole answer
#    keeps them.
# 5. TRPO bounds $\mathrm{KL}(\pi_\text{old}\,\|\,\pi_\theta)$ with a solver and a line search. A KL target needs
#    its unit: sum or mean.
#
# Next: [05 · PPO](05_ppo.ipynb). One ratio per token, no solver, and a `min` that does the rest.
