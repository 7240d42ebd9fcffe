# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 · statements: baselines
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the long tables and the corner cases of the lesson,
# [03 · Baselines](../03_baselines.ipynb).

# %% tags=["setup"]
import torch
from rlnb import ZOO, Objective
from rlnb.classroom.figures import bar_figure
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures import baselines as pictures
from rlnb.objective import (batch_mean, batch_zscore, clip, group_zscore,
                            logprob, sequence_sum)
from rlnb.toys import Bandit, SequencePolicy, estimator_moments
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

P = torch.tensor([0.5, 0.3, 0.2])                # pi of three answers
R = torch.tensor([1.0, 0.2, 0.0])                # their rewards
S = torch.eye(3) - P                             # scores in logits, (3, 3)
J = P @ R
g = (P * R) @ S                                  # the true gradient
size = (S**2).sum(1)                             # |score|^2, (3,)
best = (P @ (size * R)) / (P @ size)             # the best fixed baseline

# %% tags=["setup"]
def four(x):                     # 4 decimals, and no "-0.0000"
    return " ".join(f"{round(float(v), 4) + 0.0:7.4f}" for v in x)

def variance(b):
    """Of one answer: mean squared distance from the mean push."""
    return P @ ((R - b)**2 * size) - g @ g

def group_mean(r):                               # (M, G) -> (M, G)
    return r - r.mean(1, keepdim=True)

def leave_one_out(r):
    G = r.shape[1]
    return r - (r.sum(1, keepdim=True) - r) / (G - 1)

# %% tags=["setup"]
def enumerate_groups(rule, G):   # rule: (M, G) rewards -> advantages
    rows = torch.cartesian_prod(*[torch.arange(3)] * G)          # (3^G, G)
    prob = P[rows].prod(1)
    g_hat = (rule(R[rows])[:, :, None] * S[rows]).mean(1)        # (3^G, 3)
    mean = prob @ g_hat
    return mean, prob @ (g_hat**2).sum(1) - mean @ mean

def row(name, m, G):
    length = float((m.mean * m.truth).sum() / (m.truth**2).sum())
    n = G * m.trace / float((m.mean**2).sum())
    print(f"{name:26s} length {length:.4f}  cosine {m.cosine:.4f}"
          f"  variance {m.trace:.4f}  noise {n:.4f}")
    return length, m.cosine, m.trace, n

# %% tags=["setup"]
three = Bandit(P.log())
graded = Bandit(torch.tensor([0.3, 0.3, 0.4]).log())
grpo = ZOO["grpo"].replace(terms=())             # no KL
spp = ZOO["reinforce_plus_plus"].replace(shape=())               # no KL
# group mean, tokens summed: dr_grpo without its 1/L (page 10)
centre = ZOO["rloo"].replace(advantage=ZOO["dr_grpo"].advantage)
pair = grpo.replace(advantage=group_zscore(eps=0.0), weights=sequence_sum)
# page 02's toy of up to three tokens: right is exactly one 1 and an end
seq = SequencePolicy(2, 3, torch.sin(torch.arange(21.)).view(7, 3))
ok = torch.tensor([float(y.count(1) == 1 and y[-1] == 2)
                   for y in seq.outcomes])                       # (15,)

# %% [markdown]
# The first toy of this page has one prompt and three answers with probabilities 0.5, 0.3, 0.2 and
# rewards 1, 0.2, 0. **Noise** is the lesson's, for a group of $G$ answers times $G$, so that it is
# per answer. `estimator_moments` computes mean, variance (`trace`), cosine and bias of any
# `Objective` exactly, over all groups. It agrees with going through them by hand:

# %%
for rule, name in ((leave_one_out, "rloo"), (group_mean, "dr_grpo")):
    m = estimator_moments(three, R, ZOO[name], 4)
    mean, noise = enumerate_groups(rule, 4)
    print(f"{name:8s}", m)
    assert torch.allclose(m.mean, mean, atol=1e-12)
    assert abs(m.trace - noise) < 1e-12

# %% [markdown]
# ## One number for every answer

# %% [markdown]
# ### B02 · unbiased, and quieter?
#
# Two halves in one sentence. Five baselines, and the best one is 0.38.

# %%
statement("B02")

# %% tags=["claim:B02"]
for b in (0.01, 0.75, 0.78, 5.0, -10.0):
    assert torch.allclose((P * (R - b)) @ S, g, atol=1e-12)
    ratio = variance(b) / variance(0)
    print(f"b {b:6.2f}: {ratio:8.4f} of the variance without")
    assert (ratio < 1) == (0 < b < 2 * best)
assert variance(-10) > 500 * variance(0)

# %%
settle("B02", "it depends")

# %% [markdown]
# The variance is a parabola in $b$, with its bottom at the best number and as high at twice that
# number as at 0:

# %%
for b in (0.0, J, -10.0):
    mean = (P * (R - b)) @ S
    print(f"b {b:8.4f}: mean", four(mean), f"| variance {variance(b):.4f}")
    assert torch.allclose(mean, g, atol=1e-12)
at_zero = torch.tensor(0.0, requires_grad=True)
slope, = torch.autograd.grad(variance(at_zero), at_zero)
assert torch.allclose(slope, -2 * P @ (size * R))  # -2 E[|score|^2 R]
for name, b in (("none", 0.0), ("mean reward", J), ("best", best),
                ("greedy answer's", 1.0), ("2 x best", 2 * best)):
    print(f"{name:16s} b {b:.4f}  variance {variance(b):.4f}")
assert variance(best) < variance(J) < variance(0) < variance(1)
assert torch.isclose(variance(2 * best), variance(0))

# %% [markdown]
# One mean, three variances: 0.1268, 0.0560, 66.8628. Between 0 and 0.7639 a baseline helps, outside
# it hurts. The greedy answer is right here, and its reward 1 lies outside.

# %% [markdown]
# ### What a baseline may look at
#
# Per token it may depend on the prefix: the sum over the next token still gives
# $b(\text{prefix})\,\nabla1=0$. That is a critic's licence. $V$ is the value of a prefix on page
# 02's toy:

# %%
p = seq.probabilities().detach()
token_score = torch.stack([torch.autograd.grad(
    lp, seq.logits, retain_graph=True)[0].view(-1)
    for lp in seq.logprobs().view(-1)]).view(15, 3, 21)

# %%
def value(prefix):
    here = torch.tensor([y[:len(prefix)] == prefix for y in seq.outcomes])
    return float((p * ok)[here].sum() / p[here].sum())

V = torch.tensor([[value(y[:t]) if t < len(y) else 0.0 for t in range(3)]
                  for y in seq.outcomes])                        # (15, 3)
truth = torch.einsum("y,ytd->d", p * ok, token_score)
for name, b in (("none", 0 * V), ("J", p @ ok + 0 * V), ("V(prefix)", V)):
    g_hat = ((ok[:, None] - b)[:, :, None] * token_score).sum(1)
    noise = p @ (g_hat**2).sum(1) - truth @ truth
    print(f"{name:10s} variance {noise:.4f}")
    assert torch.allclose(p @ g_hat, truth, atol=1e-12)

# %% [markdown]
# Same mean, less variance: 0.2274, 0.1657, 0.1628. In answers this short a prefix adds little to
# the prompt. And what it must not look at: its own answer. "Compare with the best of the group"
# sounds harmless, but the best may be the answer itself. The ratio to the truth differs from
# component to component: the mean push is shorter, and turned. With one's own reward as baseline
# nothing is left.

# %%
for G in (2, 4):
    mean, _ = enumerate_groups(lambda r: r - r.amax(1, keepdim=True), G)
    print(f"G = {G}: mean", four(mean), "| ratio", four(mean / g))
own, _ = enumerate_groups(lambda r: r - r, 2)    # b = one's own reward
assert own.abs().max() == 0 and (mean / g).std() > 0.001

# %% [markdown]
# ### The best number, estimated from the group
#
# Weigh each reward of a group by its squared score, as the best number does, and use that as the
# baseline: of all $G$ answers, or of the others only. The lesson's toy, $\pi$ = 0.3, 0.3, 0.4, and
# its policy with $\pi$(good) = 0.8. Exact, over all groups; noise per answer.

# %%
def weighed(r, w):                               # own answer included
    return (w * r).sum(1, keepdim=True) / w.sum(1, keepdim=True)

def weighed_others(r, w):
    total = (w * r).sum(1, keepdim=True) - w * r
    return total / (w.sum(1, keepdim=True) - w)

def estimated(pi, baseline, G):
    s = torch.eye(3) - pi
    rows = torch.cartesian_prod(*[torch.arange(3)] * G)          # (3^G, G)
    r, w = R[rows], (s**2).sum(1)[rows]
    g_hat = ((r - baseline(r, w))[:, :, None] * s[rows]).mean(1)
    mean = pi[rows].prod(1) @ g_hat
    square = pi[rows].prod(1) @ (g_hat**2).sum(1)
    return mean / ((pi * R) @ s), G * (square / (mean @ mean) - 1)

# %%
rules = {"mean of the others": lambda r, w: r - leave_one_out(r),
         "weighed, others": weighed_others, "weighed, all": weighed}
for good in (0.3, 0.8):
    pi = torch.tensor([good, (1 - good) * 3 / 7, (1 - good) * 4 / 7])
    for G in (4, 8):
        for name, rule in rules.items():
            ratio, n = estimated(pi, rule, G)
            print(f"good {good}, G = {G}: {name:18s} mean / truth",
                  four(ratio), f"noise {n:.4f}")
            flat = torch.allclose(ratio, torch.ones(3), atol=1e-10)
            assert flat == (name != "weighed, all")
print(f"no failure among three others: {0.8**3:.3f}")

# %% [markdown]
# With the own answer included, the mean push turns. Without it there is no bias, and no gain at
# $G=4$: 2.1187 against 2.0833, and 5.0783 against 4.6449. The rare long scores decide the best
# number, and a small group seldom holds one: at $\pi$(good) = 0.8, three others are all right in
# half of the cases, and then both baselines are 1. At $G=8$ weighing pays for the sure policy,
# 2.7425 against 4.1878.

# %% [markdown]
# ## The group's mean, and the others'
#
# For every answer of every group $R_i-\bar R=\frac{G-1}G(R_i-b_i)$, with $b_i$ the mean of the
# others.

# %%
some = torch.tensor([[1.0, 1.0, 0.0, 0.0], [1.0, 0.2, 0.0, -3.0]])
print("group mean   ", four(group_mean(some)[1]))
print("leave-one-out", four(leave_one_out(some)[1]))
assert torch.allclose(group_mean(some), 3 / 4 * leave_one_out(some))

# %% [markdown]
# ### G14 · your own reward inside
#
# Every component of the mean push, over the true one.

# %%
statement("G14")

# %% tags=["claim:G14"]
for G in (2, 4, 6):
    mean, _ = enumerate_groups(group_mean, G)
    loo, _ = enumerate_groups(leave_one_out, G)
    long = estimator_moments(seq, ok, centre, G)   # 21 components
    print(f"G = {G}: group mean / truth", four(mean / g),
          "| leave-one-out", four(loo / g))
    assert torch.allclose(mean - g, -g / G, atol=1e-12)
    assert torch.allclose(loo, g, atol=1e-12)
    assert torch.allclose(long.bias, -long.truth / G, atol=1e-12)

# %%
settle("G14", "true")

# %% [markdown]
# ### M12 · the mean of the batch
#
# The same, with the batch size $N$ in place of $G$.

# %%
statement("M12")

# %% tags=["claim:M12"]
for N in (4, 64):
    m = estimator_moments(three, R, ZOO["reinforce_batch_mean"], N)
    print(f"N = {N:2d}: mean / truth", four(m.mean / m.truth))
    assert torch.allclose(m.mean, (N - 1) / N * g, atol=1e-12)

# %%
settle("M12", "it depends")

# %% [markdown]
# At $G=4$ the group's mean has the smaller variance, 0.0170 against 0.0303, and that is no merit:
# multiply any estimator by 3/4, and its variance falls to 9/16. Noise cannot be faked so, and it is
# the same for both at every $G$.

# %%
for G in (2, 4, 16):
    a = row(f"group mean, G = {G}", estimator_moments(three, R, centre, G),
            G)
    b = row(f"leave-one-out, G = {G}",
            estimator_moments(three, R, ZOO["rloo"], G), G)
    assert abs(a[3] - b[3]) < 1e-9 and a[2] < b[2]
print(f"one answer: none {variance(0) / (g @ g):.4f}, "
      f"best fixed one {variance(best) / (g @ g):.4f}")

# %% [markdown]
# One estimator, two names. At $G=2$ it has noise 3.4650, twice that of no baseline, 1.7457: it
# subtracts one noisy reward.

# %% [markdown]
# ### G22 · a steadier baseline
#
# $\mathrm{Var}(R_i-b_i)$ over the variance $\sigma^2$ of one reward, for leave-one-out.

# %%
statement("G22")

# %% tags=["claim:G22"]
q = torch.tensor([0.3, 0.7])                     # 0/1 rewards
for G in (2, 4, 8, 16):
    rows = torch.cartesian_prod(*[torch.arange(2)] * G)          # (2^G, G)
    A = leave_one_out(1.0 - rows)[:, 0]
    factor = q[rows].prod(1) @ A**2 / q.prod()   # sigma^2 = 0.3 x 0.7
    print(f"G = {G}: var(r - b) is {factor:.4f} of sigma^2, {G} answers")
    assert abs(factor - (1 + 1 / (G - 1))) < 1e-12

# %%
settle("G22", "true")

# %% [markdown]
# ### G20 · ever larger groups
#
# The weight of a prompt is the length of its part of the mean push, 1 when nothing is divided. $V$
# is the chance to be right.

# %%
statement("G20")

# %% tags=["claim:G20"]
for k in (1, 5, 9):                              # right answers of 10
    q = k / 10
    sigma = (q * (1 - q)) ** 0.5
    rewards = [1.0] * k + [0.0] * (10 - k)
    weight = []
    for G in (4, 16, 64):
        m = estimator_moments(Bandit(10), rewards, grpo, G)
        weight.append(float((m.mean * m.truth).sum()
                            / (m.truth**2).sum()))
    print(f"V = {q}: var of the mean at G = 16: {sigma**2 / 16:.4f}; "
          f"weights {four(weight)}, limit {1 / sigma:.4f}")
    assert abs(weight[-1] - 1 / sigma) < 0.1 and weight[0] < weight[-1]

# %%
settle("G20", "it depends")

# %% [markdown]
# Not one baseline but three, 0.1, 0.5 and 0.9; not one scale but two, 3.3333 and 2.

# %% [markdown]
# ### G21 · larger groups and diversity
#
# A hundred answers, the $i$-th drawn in proportion to $1/i$.

# %%
statement("G21")

# %% tags=["claim:G21"]
zipf = 1 / (1 + torch.arange(100.0))
zipf = zipf / zipf.sum()
distinct = {}
for G in (2, 8, 64):
    distinct[G] = float((1 - (1 - zipf)**G).sum())
    print(f"G = {G:2d}: {distinct[G]:5.1f} distinct, "
          f"share {distinct[G] / G:.2f}")
assert round(distinct[8], 1) == 6.7 and round(distinct[64], 1) == 31.4
assert distinct[2] / 2 > distinct[8] / 8 > distinct[64] / 64

# %%
settle("G21", "it depends")

# %% [markdown]
# ## Dividing by the std

# %% [markdown]
# ### G16 · only a rescaling?
#
# One prompt, rewards 0/1 or graded, three group sizes.

# %%
statement("G16")

# %% tags=["claim:G16"]
cosines = []
for name, rewards in (("0/1", (1, 0, 0)), ("graded", (1, 0.2, 0))):
    for G in (2, 4, 6):
        m = estimator_moments(graded, rewards, grpo, G)
        cosines.append(round(m.cosine, 3))
        print(f"{name:7s} G = {G}: mean", four(m.mean),
              f"cosine {m.cosine:.4f}")
        if (name, G) == ("graded", 2):           # the second answer flips
            assert abs(m.truth[1] + 0.048) < 1e-9
            assert abs(m.mean[1] - 0.030) < 1e-6
    print(f"{'':7s} truth      ", four(m.truth))
assert cosines == [1, 1, 1, 0.937, 0.981, 0.995]

# %%
settle("G16", "it depends")

# %% [markdown]
# With 0/1 rewards a right answer has some mean advantage $a_+$ over the rest of its group, a wrong
# one $a_-$. So the mean push is
# $a_+\mathbb E[R\,\nabla\log\pi]+a_-\mathbb E[(1-R)\nabla\log\pi]=(a_+-a_-)\nabla J$: another
# length, nothing else. With graded rewards and $G=2$ the second answer wins with 0.4 and loses with
# 0.3: $0.3\,(0.4-0.3)=+0.03$. Leave-one-out keeps the gaps:
# $0.3\,(0.4\cdot0.2-0.3\cdot0.8)=-0.048$.

# %% [markdown]
# ### G19 · a preference pair
#
# $G=2$, the better answer $w$, the other $l$. DPO (page 15) learns from pairs without a reward.
# Both gradients at the reference, for a reward gap of 1 and of 0.001.

# %%
statement("G19")

# %% tags=["claim:G19"]
w, l = seq.outcomes.index((1, 2)), seq.outcomes.index((0, 0, 2))
ref = seq.logprobs().sum(1).detach()                             # (15,)
for gap in (1.0, 0.001):
    duel = seq.batch([w, l], gap * ok, 2)
    ours, = torch.autograd.grad(pair(duel).loss, seq.logits)
    A = pair.prepare(duel).advantages[:, 0]
    print(f"gap {gap}: A", four(A), f"| norm {ours.norm():.4f}")
    for beta in (0.1, 1.0):
        d = seq.logprobs().sum(1) - ref                          # all 0
        dpo = -torch.nn.functional.logsigmoid(beta * (d[w] - d[l]))
        theirs, = torch.autograd.grad(dpo, seq.logits)
        assert (ours - theirs / beta).abs().max() < 1e-12
    assert torch.equal(A, torch.tensor([1.0, -1.0]))

# %%
settle("G19", "true")

# %% [markdown]
# A gap of 0.001 pulls as hard as a gap of 1. For longer answers this needs the sum over tokens;
# GRPO's $1/T$ would weigh the two differently.

# %% [markdown]
# ### G17 · the others' mean, the group's std
#
# Divided by GRPO's z-score. And what if the std leaves one out as well?

# %%
statement("G17")

# %% tags=["claim:G17"]
for G in (2, 4, 6):
    r = torch.rand(G, generator=torch.Generator().manual_seed(G))
    group = Bandit(torch.zeros(G)).batch(list(range(G)), r, G)
    z = pair.prepare(group).advantages[:, 0]                    # GRPO's
    mixed = leave_one_out(r[None])[0] / r.std(correction=0)
    print(f"G = {G}: times {(mixed / z).mean():.4f}")
    assert torch.allclose(mixed, z * G / (G - 1), atol=1e-12)

def std_of_others(r):
    return torch.stack([r[torch.arange(len(r)) != i].std(correction=0)
                        for i in range(len(r))])

new = leave_one_out(r[None])[0] / std_of_others(r)
print("leave-one-out std too, G = 6: times", four(new / z))
assert (new / z).max() > 1.2 * (new / z).min()   # no rescaling: it is new
odd = torch.tensor([1.0, 0.0, 0.0, 0.0])
print("std of the others, rewards 1 0 0 0:", four(std_of_others(odd)))
assert std_of_others(odd)[0] == 0                # undefined for the first

# %%
settle("G17", "it depends")

# %% [markdown]
# The factors are 2, 1.3333 and 1.2: $G/(G-1)$, a learning rate.

# %% [markdown]
# ### G15 · without both divisors
#
# Fresh answers, then answers of a policy that is $3\nabla J$ behind.

# %%
statement("G15")

# %% tags=["claim:G15"]
G, L = 4, 3
m = estimator_moments(seq, ok, ZOO["dr_grpo"], G)
back = m.mean * L * G / (G - 1)
print(f"norms: estimator {m.mean.norm():.5f}, multiplied back "
      f"{back.norm():.5f}, truth {m.truth.norm():.5f}")
assert torch.allclose(back, m.truth, atol=1e-12)
old = seq.copy()
old.logits.data -= 3 * m.truth                   # drew the answers
rho = (seq.logprobs() - old.logprobs()).exp()[seq.mask.bool()]
print(f"token ratios {rho.min():.2f} to {rho.max():.2f}")
wide = ZOO["dr_grpo"].replace(surrogate=clip(1.0, high=9.0))
for name, obj in (("never clipped", wide), ("clip 0.2", ZOO["dr_grpo"])):
    off = estimator_moments(seq, ok, obj, G, old_policy=old)
    print(f"older answers, {name}: cosine {off.cosine:.4f}")
    assert off.cosine < 0.9999

# %%
settle("G15", "it depends")

# %% [markdown]
# On fresh answers the estimator times $G\,L/(G-1)$ has norm 0.19812, and so has the truth. On older
# ones, never clipped, the cosine is 0.9970: a token's ratio corrects the token, not the rest of its
# answer ([04](../04_importance_sampling.ipynb)). The clip has switched off the tokens that left the
# band in the right direction, and what remains points back on average: a brake, no longer an
# estimator.

# %% [markdown]
# ## One mean for the batch, or one per prompt?

# %% [markdown]
# ### B05 · a baseline per prompt
#
# Two prompts, right with 0.1 and with 0.9; two, ten or fifty possible answers.

# %%
statement("B05")

# %% tags=["claim:B05"]
noise = {}
for arms in (2, 10, 50):
    for name in ("leave-one-out", "batch mean"):
        bandits, rewards = [], []
        for q in (0.1, 0.9):                     # success rate
            k = round(q * arms) if arms > 2 else 1
            split = [q / k] * k + [(1 - q) / (arms - k)] * (arms - k)
            bandits.append(Bandit(torch.tensor(split).log()))
            rewards.append([1.0] * k + [0.0] * (arms - k))
        rule = {"leave-one-out": ZOO["rloo"].advantage,
                "batch mean": batch_mean()}[name]
        obj = Objective(rule, logprob(), sequence_sum)
        m = estimator_moments(bandits, rewards, obj, 4, prompts=2)
        noise[arms, name] = 8 * m.trace / float((m.mean**2).sum())
        print(f"{arms:2d} answers, {name:13s} variance {m.trace:.4f}"
              f"  noise {noise[arms, name]:8.4f}")
assert noise[2, "batch mean"] < noise[2, "leave-one-out"] / 4
for arms in (10, 50):
    assert noise[arms, "leave-one-out"] < noise[arms, "batch mean"] / 2

# %%
settle("B05", "it depends")

# %% [markdown]
# In a two-armed bandit the squared score $2(1-\pi_a)^2$ is so tied to the reward that the best
# baseline is $1-p$, the mirror image of the mean, and one draw *is* the gradient:

# %%
for q in (0.1, 0.3, 0.9):                        # the two-armed bandit
    pi = torch.tensor([q, 1 - q])
    s2 = 2 * (1 - pi)**2                         # |s|^2
    var = {b: pi @ ((torch.tensor([1.0, 0.0]) - b)**2 * s2)
           - 2 * (q * (1 - q))**2 for b in (0, q, 1 - q)}
    print(f"p = {q}: none {var[0]:.4f}, b = p {var[q]:.4f}, "
          f"b = 1 - p {abs(var[1 - q]):.4f}")
    assert abs(var[1 - q]) < 1e-12

# %% [markdown]
# ### Two prompts, five rules
#
# Ten equally likely answers each, $k$ of them right, $G=8$. The weight of a prompt is the length of
# its part of the mean push.

# %%
parts = {"leave-one-out": ZOO["rloo"].advantage,
         "batch mean": batch_mean(),
         "group z-score (GRPO)": group_zscore(),
         "batch z-score (R++)": batch_zscore(),
         "group mean, batch std": batch_zscore("group")}

def two_prompts(part, right, G, arms=10):
    rewards = [[1.0] * k + [0.0] * (arms - k) for k in right]
    obj = Objective(part, logprob(), sequence_sum)
    m = estimator_moments([Bandit(arms)] * 2, rewards, obj, G, prompts=2)
    mean, truth = m.mean.view(2, arms), m.truth.view(2, arms)
    return (mean * truth).sum(1) / (truth**2).sum(1), m, \
        2 * G * m.trace / float((m.mean**2).sum())

# %%
table2 = {}
for right in ((5, 5), (9, 5), (9, 1)):
    noises = {}
    print(f"right answers {right[0]} and {right[1]} of 10, G = 8")
    for name, part in parts.items():
        weight, m, n = two_prompts(part, right, 8)
        noises[name] = n
        print(f"  {name:22s} weights {four(weight)}  cosine "
              f"{m.cosine:.4f}  noise {n:7.4f}")
    table2[f"{right[0]} and {right[1]} of 10"] = noises
pictures.two_prompts(table2, (
    "Equal prompts: the batch's mean averages more answers and is a little "
    "quieter. Unequal ones: it is an offset per prompt, and offsets are "
    "noise."))

# %% [markdown]
# Equal prompts: 17.3 for the batch's mean, 18.9 for the others of the group. Unequal ones: 22.1 and
# then 53.7 for the batch.
#
# GRPO's std gives the prompt with 9 of 10 the weight 2.33 and the one with 5 of 10 the weight 1.86:
# the mean push turns (cosine 0.9945). One std for the batch leaves the two within 5 percent, but
# then a prompt's step depends on who else is in the batch. And the z-score is not only harm: it has
# the least noise in the last two tables.
#
# ### REINFORCE++ with one prompt
#
# Without KL it normalises over all tokens of the batch. With one prompt and one token per answer it
# *is* GRPO, up to the convention for the std ($G-1$ in place of $G$).

# %%
one = estimator_moments(three, R, spp, 4)
same = estimator_moments(three, R, grpo, 4)
bessel = (3 / 4) ** 0.5
print("REINFORCE++       ", four(one.mean))
print("GRPO x sqrt(3/4)  ", four(same.mean * bessel))
assert torch.allclose(one.mean, same.mean * bessel, atol=1e-5)

# %% [markdown]
# ### A mean laid out wrongly
#
# `repeat` lays two prompts' means out as 1 2 1 2, the rows stand as 1 1 2 2: half the answers get
# another prompt's mean, which is independent of them. The mean push keeps its direction and the sum
# over the batch is 0; only the noise tells. Two prompts with two answers each, drawn from five
# equally likely ones, 4 and 1 of them right:

# %%
def laid_out(rewards, G, repeat):
    mean = getattr(rewards.view(-1, G).mean(1), repeat)(G)
    return (rewards - mean) * G / (G - 1)

r5 = torch.tensor([[1.0, 1, 1, 1, 0], [1.0, 0, 0, 0, 0]])        # (2, 5)
S5 = torch.eye(5) - 0.2
draws = torch.cartesian_prod(*[torch.arange(5)] * 4)             # (625, 4)
truth5 = (r5 - r5.mean(1, keepdim=True)) / 5 / 2                 # (2, 5)
for name in ("repeat_interleave", "repeat"):
    A = torch.stack([laid_out(r5[[0, 0, 1, 1], row_], 2, name)
                     for row_ in draws])
    g_hat = (A[:, :, None] * S5[draws]).view(625, 2, 2, 5).sum(2) / 4
    mean = g_hat.mean(0)                                         # (2, 5)
    var = (g_hat**2).sum((1, 2)).mean() - (mean**2).sum()
    print(f"{name:17s} mean / truth {(mean / truth5).mean():.4f}, noise "
          f"{4 * var / (mean**2).sum():.4f}")
    assert torch.allclose(mean / mean.norm(), truth5 / truth5.norm())

# %% [markdown]
# ## All of them on one toy
#
# ReMax takes the reward of the greedy answer, at the price of one more answer per prompt, not
# counted here. Dr. GRPO (page 10) is the group's mean. $G=4$, exact:

# %%
def fixed(b):
    return Objective(lambda batch, r: batch.expand(r.sum(1) - b),
                     logprob(), sequence_sum)

methods = {"none (REINFORCE)": ZOO["reinforce"],
           "b = E r": fixed(J), "b optimal": fixed(best),
           "batch mean": ZOO["reinforce_batch_mean"],
           "group mean (Dr. GRPO)": ZOO["dr_grpo"],
           "leave-one-out (RLOO)": ZOO["rloo"],
           "greedy (ReMax)": ZOO["remax"],
           "group z-score (GRPO)": grpo, "batch z-score (R++)": spp,
           "best of the group": Objective(
               lambda batch, r: batch.expand(r.sum(1) - r.sum(1).max()),
               logprob(), sequence_sum)}
table = {name: row(name, estimator_moments(three, R, obj, 4), 4)
         for name, obj in methods.items()}

# %% [markdown]
# Which sentences does this table contradict?
#
# | often said | the table |
# |---|---|
# | any baseline lowers the variance | ReMax has twice the noise of none here, 3.7620 against 1.7457 |
# | the mean reward is the best baseline | its noise is 0.7708, that of the best number 0.5001 |
# | RLOO is better than GRPO's mean | equal, both 1.6689 |
# | smaller variance is better | the group's mean has the smaller one by length alone |
# | a group baseline beats none | by 4 percent at $G=4$; at $G=2$ it loses |
# | the std is a constant factor | length 1.8241, cosine 0.9999 |
#
# Fair to ReMax: three answers are few, and the greedy one's 1 is far from the best 0.38. When the
# greedy answer is wrong, it subtracts 0 and changes nothing.

# %%
n = {name: round(values[3], 4) for name, values in table.items()}
assert n["greedy (ReMax)"] > 2 * n["none (REINFORCE)"]
assert n["b optimal"] < n["b = E r"] < n["leave-one-out (RLOO)"]
assert n["batch mean"] == n["group mean (Dr. GRPO)"] == \
    n["leave-one-out (RLOO)"]
at_two = estimator_moments(three, R, grpo, 2)
assert round(at_two.cosine, 4) == 0.9888
m = estimator_moments(graded, R, ZOO["remax"], 4)  # greedy answer wrong
raw = estimator_moments(graded, R, ZOO["reinforce"], 4)
print(f"greedy wrong: ReMax {m.trace:.4f}, none {raw.trace:.4f}")
assert abs(m.trace - raw.trace) < 1e-12

# %%
short = {"none (REINFORCE)": "none", "b = E r": "b = E r",
         "b optimal": "b optimal", "group mean (Dr. GRPO)": "group\nmean",
         "leave-one-out (RLOO)": "leave-\none-out",
         "greedy (ReMax)": "greedy", "group z-score (GRPO)": "z-score"}
none = table["none (REINFORCE)"]
bar_figure(
    list(short.values()),
    {"variance": [table[k][2] / none[2] for k in short],
     "noise": [table[k][3] / none[3] for k in short]},
    ylabel="relative to no baseline",
    alt="Seven baselines at G = 4, relative to none. Noise:"
        " mean reward 0.44, optimal 0.29, group mean and"
        " leave-one-out 0.96 each, greedy 2.16, z-score 1.11. Variance:"
        " group mean 0.54, leave-one-out 0.96, z-score 3.69.",
    caption="By variance the group mean beats leave-one-out and the z-score"
            " is hopeless; by noise the first two are equal and the third"
            " is close behind.")

# %% [markdown]
# ### A running mean beside the others
#
# All answers wrong: the group says nothing. Some recipes mix in a running mean $m$ of past rewards,
# $A_i=R_i-(w\,b_i+(1-w)\,m)$. It is unbiased for every $w$ and $m$. The noise for $w$ = 0, 0.25,
# 0.5, 0.75, 1, where 0.56 is the true mean reward:

# %%
def mixed_baseline(w, m):
    def advantage(batch, token_rewards):
        r = token_rewards.sum(1)                                 # (G,)
        others = (r.sum() - r) / (len(r) - 1)
        return batch.expand(r - (w * others + (1 - w) * m))
    return Objective(advantage, logprob(), sequence_sum)

for m in (0.56, 0.0, 1.0):
    noises = []
    for w in (0, 0.25, 0.5, 0.75, 1):
        x = estimator_moments(three, R, mixed_baseline(w, m), 4)
        assert torch.allclose(x.mean, x.truth, atol=1e-12)
        noises.append(4 * x.trace / float((x.mean**2).sum()))
    print(f"m = {m:.2f}:", " ".join(f"{v:.4f}" for v in noises))

# %% [markdown]
# With $m$ right all weight belongs on it. Stale at 0, half and half is still best. At 1, too
# optimistic, the group alone.
#
# ### The running group
#
# Rewards 1, 1, 0, 0, lengths 3, 5, 2, 6, fresh answers. Per answer the advantage $A$, and the
# weight with which each of its tokens is pushed up. For ReMax the greedy answer is taken to be
# right. REINFORCE++ counts tokens, 8 right and 8 wrong: $0.5/\sqrt{4/15}=0.9682$, over 16.

# %%
from rlnb.toys import running_group
group = running_group().replace(old_logprobs=None,
                                greedy_rewards=torch.ones(4))
for name in ("reinforce", "reinforce_batch_mean", "rloo", "remax",
             "reinforce_plus_plus"):
    explained = ZOO[name].replace(shape=()).explain(group)
    A = explained.advantages[:, 0]                               # (4,)
    push = -explained.gradient[:, 0]                             # (4,)
    print(f"{name:21s} A {four(A)} | token {four(push)}")

# %% [markdown]
# ## Reports

# %% [markdown] tags=["cited:B19"]
# ### B19 · have critic-free methods won?
#
# "Critic-free methods have won." They are what most open recipes used, being simple and cheap. As a
# finished contest it does not stand: VAPO ([2504.05118](https://arxiv.org/abs/2504.05118)), which
# keeps a critic, reports 60.4 on AIME24, against 50 for the critic-free DAPO
# ([2503.14476](https://arxiv.org/abs/2503.14476)) from the same base model. Reports of single
# recipes, not controlled comparisons.
