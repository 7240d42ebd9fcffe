# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 · Baselines: the same mean, another noise
#
# **Settles:** which number may be subtracted from a reward, which one should be, what the
# group mean, leave-one-out, ReMax and a division by the std each do to length, direction
# and noise, and which of these differences matter.
#
# 40 minutes · after [02](02_reinforce.ipynb) · Greensmith, Bartlett and Baxter 2004
# (optimal baselines, *JMLR* 5); RLOO, Ahmadian et al. 2024
# ([2402.14740](https://arxiv.org/abs/2402.14740)); ReMax, Li et al. 2023
# ([2310.10505](https://arxiv.org/abs/2310.10505)); REINFORCE++, Hu et al. 2025
# ([2501.03262](https://arxiv.org/abs/2501.03262)); GRPO, Shao et al. 2024
# ([2402.03300](https://arxiv.org/abs/2402.03300)).

# %%
import torch
from rlnb import ZOO, Objective, check
from rlnb.toys import Bandit, SequencePolicy, estimator_moments
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## One line of proof
#
# A policy $\pi$ draws an answer $y$; $s(y)=\nabla\log\pi(y)$ is its score. For any number
# $b$ that is fixed before $y$ is drawn,
#
# $$\mathbb{E}[\,b\,s(y)\,]=b\sum_y\pi(y)\,\frac{\nabla\pi(y)}{\pi(y)}
# =b\,\nabla\sum_y\pi(y)=b\,\nabla1=0.$$
#
# So $\mathbb{E}[(r-b)\,s]=\mathbb{E}[r\,s]=\nabla J$ whatever $b$ is. Three answers, one
# good, one poor, one wrong:

# %%
P = torch.tensor([0.5, 0.3, 0.2])                # pi
R = torch.tensor([1.0, 0.2, 0.0])                # rewards
S = torch.eye(3) - P                             # scores in logits, (3, 3)
J = P @ R
g = (P * R) @ S                                  # the true gradient
size = (S**2).sum(1)                             # |s|^2, (3,)

def four(x):                     # 4 decimals, and no "-0.0000"
    return " ".join(f"{round(float(v), 4) + 0.0:7.4f}" for v in x)

print(f"J = {J:.4f}, |s|^2 =", four(size))
for b in (0.0, J, -10.0):
    mean = (P * (R - b)) @ S
    noise = P @ ((R - b)**2 * size) - mean @ mean
    print(f"b {b:8.4f}: mean", four(mean), f"| variance {noise:.4f}")
    assert torch.allclose(mean, g, atol=1e-12)

# %% [markdown]
# One mean, three noises: 0.1268, 0.0560, 66.8628. **Variance** here is
# $\mathbb{E}\lVert\hat g\rVert^2-\lVert\mathbb{E}\hat g\rVert^2$, the variances of all
# components summed. It is a parabola in $b$:
#
# $$\mathrm{var}(b)=\mathbb{E}[(r-b)^2\lVert s\rVert^2]-\lVert\nabla J\rVert^2,\qquad
# b^\star=\frac{\mathbb{E}[\lVert s\rVert^2\,r]}{\mathbb{E}[\lVert s\rVert^2]}$$
#
# The best baseline is a mean reward, but weighted: answers with a large score count more.
# Rare answers have large scores.

# %%
def variance(b):
    return P @ ((R - b)**2 * size) - g @ g

best = (P @ (size * R)) / (P @ size)
b = torch.tensor(0.0, requires_grad=True)
slope, = torch.autograd.grad(variance(b), b)     # at 0 it is -2 E[|s|^2 r]
assert torch.allclose(slope, -2 * P @ (size * R))
for name, b in (("none", 0.0), ("mean reward", J), ("optimal", best),
                ("greedy answer's", 1.0), ("2 x optimal", 2 * best)):
    print(f"{name:16s} b {b:.4f}  variance {variance(b):.4f}")
assert variance(best) < variance(J) < variance(0) < variance(1)
assert torch.isclose(variance(2 * best), variance(0))

# %% [markdown]
# A parabola is symmetric: between 0 and $2b^\star=0.7639$ a baseline helps, outside it
# hurts. The greedy answer is right here, and its reward 1 lies outside.
#
# **Move it.** Left: drag $b$; the named baselines are marked. Middle and right: three ways
# to take it from a group of $G$ answers, each derived below. Then change the toy, and see
# which of your conclusions survive.

# %% tags=["explorer"]
from rlnb.classroom import explorers
explorers.baseline_variance_explorer()

# %%
from rlnb.classroom.explorers.baseline_variance import TOYS, compute
print("noise relative to no baseline, one answer")
for toy in TOYS:
    named = compute(toy)["named"]
    print(f"{toy:22s}", " | ".join(
        f"{name.split()[0]} {b:.2f}: {noise:5.2f}" for name, (b, noise)
        in named.items() if name != "none"))

# %% [markdown]
# *The same three baselines, four worlds: the mean reward leaves 44, 38 and 10 percent of
# the noise in three of them, and in the two-armed bandit it makes 64 times as much.*
#
# > **It is often said** that a baseline which does not depend on the action keeps the
# > gradient unbiased and lowers its variance. The first half is the lemma. The second
# > holds between 0 and $2b^\star$, and nowhere else.

# %% tags=["claim:B02"]
for b in (0.01, 0.75, 0.78, 5.0, -10.0):
    assert torch.allclose((P * (R - b)) @ S, g, atol=1e-12)
    ratio = variance(b) / variance(0)
    print(f"b {b:6.2f}: {ratio:8.4f} of the variance without")
    assert (ratio < 1) == (0 < b < 2 * best)
assert variance(-10) > 500 * variance(0)
# "keeps the gradient unbiased and lowers its variance": sloppy

# %% [markdown]
# ## What it may depend on
#
# The lemma needs that $b$ is fixed before *this* draw. It may depend on the prompt, on
# other draws, on an older critic. Per token it may depend on the prefix: the sum over the
# next token still gives $b(\text{prefix})\,\nabla1=0$. That is a critic's licence. A value
# per prefix, $V(y_{<t})$, on page 02's toy of up to three tokens (2 ends an answer; right is
# exactly one 1 and an end):

# %%
seq = SequencePolicy(2, 3, torch.sin(torch.arange(21.)).view(7, 3))
ok = torch.tensor([float(y.count(1) == 1 and y[-1] == 2)
                   for y in seq.outcomes])                       # (15,)
p = seq.probabilities().detach()
token_score = torch.stack([torch.autograd.grad(
    lp, seq.logits, retain_graph=True)[0].view(-1)
    for lp in seq.logprobs().view(-1)]).view(15, 3, 21)

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
# Same mean, less noise: 0.2274, 0.1657, 0.1628. In answers this short a prefix adds little
# to the prompt. And what a baseline must not depend on: the draw it is multiplied with.
# "Compare with the best answer of the group" sounds harmless. The best may be the answer
# itself:

# %%
def enumerate_groups(rule, G):   # rule: (M, G) rewards -> advantages
    rows = torch.cartesian_prod(*[torch.arange(3)] * G)          # (3^G, G)
    prob = P[rows].prod(1)
    g_hat = (rule(R[rows])[:, :, None] * S[rows]).mean(1)        # (3^G, 3)
    mean = prob @ g_hat
    return mean, prob @ (g_hat**2).sum(1) - mean @ mean

for G in (2, 4):
    mean, _ = enumerate_groups(lambda r: r - r.amax(1, keepdim=True), G)
    print(f"G = {G}: mean", four(mean), "| ratio", four(mean / g))
own, _ = enumerate_groups(lambda r: r - r, 2)    # b = one's own reward
assert own.abs().max() == 0 and (mean / g).std() > 0.001

# %% [markdown]
# Shorter, and *turned*: the three ratios differ. With $b=r_i$ nothing is left at all.
#
# ## The group mean contains you
#
# Answers $1\dots G$ to one prompt, $\bar r$ their mean. Two candidates:
#
# $$b=\bar r\ \ (\text{own reward inside}),\qquad
# b_i=\frac1{G-1}\sum_{j\ne i}r_j\ \ (\text{leave-one-out, RLOO}).$$
#
# They look like different estimators. Put
# $\bar r=\frac1G r_i+\frac{G-1}{G}\,b_i$ into $r_i-\bar r$:
#
# $$r_i-\bar r=\frac{G-1}{G}\,(r_i-b_i)$$
#
# for every answer of every group. Not on average: elementwise.

# %%
def group_mean(r):                               # (M, G) -> (M, G)
    return r - r.mean(1, keepdim=True)

def leave_one_out(r):
    G = r.shape[1]
    return r - (r.sum(1, keepdim=True) - r) / (G - 1)

r = torch.tensor([[1.0, 1.0, 0.0, 0.0], [1.0, 0.2, 0.0, -3.0]])
print("group mean   ", four(group_mean(r)[1]))
print("leave-one-out", four(leave_one_out(r)[1]))
assert torch.allclose(group_mean(r), 3 / 4 * leave_one_out(r))

# %% [markdown]
# The others were drawn independently of $y_i$, so $b_i$ is a legal baseline and
# leave-one-out is unbiased. Hence the expectation of the group mean is
# $\frac{G-1}{G}\nabla J$, and its bias is exactly $-\nabla J/G$.
#
# `estimator_moments` is the instrument of this page: mean, variance, cosine and bias of
# any `Objective`, exact, over all steps (here 15 groups of four from three answers, order
# aside). It agrees with `enumerate_groups`:

# %%
three = Bandit(P.log())
for rule, name in ((leave_one_out, "rloo"), (group_mean, "dr_grpo")):
    m = estimator_moments(three, R, ZOO[name], 4)
    mean, noise = enumerate_groups(rule, 4)
    print(f"{name:8s}", m)
    assert torch.allclose(m.mean, mean, atol=1e-12)
    assert abs(m.trace - noise) < 1e-12

# %% [markdown]
# > **A widely repeated remark:** GRPO's mean contains the answer's own reward and so
# > biases the estimator a little; leave-one-out avoids that. True, for any $G$. It is a
# > shorter step in the right direction, which a learning rate absorbs.

# %% tags=["claim:G14"]
# group mean, tokens summed: dr_grpo without its 1/L (page 10)
centre = ZOO["rloo"].replace(advantage=ZOO["dr_grpo"].advantage)
for G in (2, 4, 6):
    mean, _ = enumerate_groups(group_mean, G)
    loo, _ = enumerate_groups(leave_one_out, G)
    long = estimator_moments(seq, ok, centre, G)   # 21 components
    print(f"G = {G}: group mean / truth", four(mean / g),
          "| leave-one-out", four(loo / g))
    assert torch.allclose(mean - g, -g / G, atol=1e-12)
    assert torch.allclose(loo, g, atol=1e-12)
    assert torch.allclose(long.bias, -long.truth / G, atol=1e-12)
# "GRPO's mean contains the answer's own reward": true

# %% [markdown]
# > **"Subtract the mean reward of the batch: no bias."** A nit of the same kind, with the
# > batch size $N$ in place of $G$. For large batches nobody will ever see it.

# %% tags=["claim:M12"]
for N in (4, 64):
    m = estimator_moments(three, R, ZOO["reinforce_batch_mean"], N)
    print(f"N = {N:2d}: mean / truth", four(m.mean / m.truth))
    assert torch.allclose(m.mean, (N - 1) / N * g, atol=1e-12)
# "Subtract the mean reward of the batch": sloppy

# %% [markdown]
# ## Noise, in a unit that a learning rate cannot fake
#
# The group mean has the smaller variance: 0.0170 against 0.0303. That is no merit.
# Multiply any estimator by 3/4 and its variance falls to 9/16. A fair unit is scale-free:
# the **answers** to average until noise equals signal,
#
# $$n=G\cdot\frac{\mathrm{var}(\hat g)}{\lVert\mathbb{E}\,\hat g\rVert^2}.$$
#
# **Length** is the part of the mean along the truth; the truth has 1.

# %%
def row(name, m, G):
    length = float((m.mean * m.truth).sum() / (m.truth**2).sum())
    n = G * m.trace / float((m.mean**2).sum())
    print(f"{name:26s} length {length:.4f}  cosine {m.cosine:.4f}"
          f"  variance {m.trace:.4f}  answers {n:.4f}")
    return length, m.cosine, m.trace, n

for G in (2, 4, 16):
    a = row(f"group mean, G = {G}", estimator_moments(three, R, centre, G),
            G)
    b = row(f"leave-one-out, G = {G}",
            estimator_moments(three, R, ZOO["rloo"], G), G)
    assert abs(a[3] - b[3]) < 1e-9 and a[2] < b[2]
print(f"one answer: no baseline {variance(0) / (g @ g):.4f}, "
      f"best fixed one {variance(best) / (g @ g):.4f}")

# %% [markdown]
# Same `answers`, at every $G$: one estimator, two names. At $G=2$ leave-one-out needs
# 3.4650, *twice as many as no baseline at all* (1.7457): it subtracts one noisy reward. How
# noisy, exactly? With $\sigma^2$ the variance of one reward, the mean of the others has
# $\sigma^2/(G-1)$, and it is independent of $r_i$:
#
# $$\mathrm{var}(r_i-b_i)=\sigma^2\Big(1+\frac1{G-1}\Big).$$
#
# > **"A larger group has a steadier baseline, at linear cost."** True, and most of it is
# > had early: 2, 1.33, 1.14, 1.07 times the variance at $G=2,4,8,16$.

# %% tags=["claim:G22"]
q = torch.tensor([0.3, 0.7])                     # 0/1 rewards
for G in (2, 4, 8, 16):
    rows = torch.cartesian_prod(*[torch.arange(2)] * G)          # (2^G, G)
    A = leave_one_out(1.0 - rows)[:, 0]
    factor = q[rows].prod(1) @ A**2 / q.prod()   # sigma^2 = 0.3 x 0.7
    print(f"G = {G}: var(r - b) is {factor:.4f} of sigma^2, {G} answers")
    assert abs(factor - (1 + 1 / (G - 1))) < 1e-12
# "A larger group has a steadier baseline at linear cost": true

# %% [markdown]
# ## The division by the std
#
# GRPO does not stop at the mean. It divides by the group's own std, $\hat\sigma$:
#
# $$A_i=\frac{r_i-\bar r}{\hat\sigma+\varepsilon},\qquad
# \hat\sigma^2=\frac1G\sum_j(r_j-\bar r)^2.$$
#
# $\hat\sigma$ depends on the draw, and on $r_i$ itself. Nothing in the lemma covers that.
#
# > **"Dividing by the std only rescales."** For one prompt with 0/1 rewards, yes. With
# > graded rewards no; and over several prompts each is rescaled by a number of its own
# > (next section).

# %% tags=["claim:G16"]
grpo = ZOO["grpo"].replace(terms=())             # no KL
graded = Bandit(torch.tensor([0.3, 0.3, 0.4]).log())
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
# "Dividing by the std only rescales": sloppy

# %% [markdown]
# With 0/1 rewards a right answer's $A$ has some expectation $a_+$ over the rest of its
# group, a wrong one's $a_-$. So the mean is $a_+\mathbb{E}[r\,s]+a_-\mathbb{E}[(1-r)\,s]
# =(a_+-a_-)\,\nabla J$: another length, nothing else. (At $G=2$ it *is* leave-one-out:
# $\pm1$.) With graded rewards the mean turns, and at $G=2$ the second answer, reward 0.2 in
# a world whose mean is 0.36, is pushed *up*.
#
# The flip is arithmetic, not chance. At $G=2$ every unequal pair has $A=\pm1$: the gap is
# forgotten, only who won remains. Answer 2 beats answer 3 (probability 0.4) and loses to
# answer 1 (0.3), so its component is $0.3\,(0.4-0.3)=+0.03$. Leave-one-out keeps the gaps,
# 0.2 for the win and 0.8 for the defeat: $0.3\,(0.4\cdot0.2-0.3\cdot0.8)=-0.048$, the truth.
#
# ### Two answers: a preference pair
#
# Call the better answer $w$, the other $l$. With $A=\pm1$ and one term per answer,
#
# $$-\nabla L_{\text{GRPO}}=\tfrac12\big(\nabla\log\pi(w)-\nabla\log\pi(l)\big).$$
#
# DPO, which learns from pairs without any reward (page 15), minimises
# $-\log\operatorname{sigmoid}\big(\beta\,[\log\tfrac{\pi(w)}{\pi_\text{ref}(w)}
# -\log\tfrac{\pi(l)}{\pi_\text{ref}(l)}]\big)$. At $\pi=\pi_\text{ref}$ the sigmoid is
# $\frac12$ and the same expression stands there, times $\beta$.
#
# > **"With two answers per prompt GRPO is pairwise preference learning."** True, when the
# > rewards differ, and at the first step. For longer answers it needs the sum over tokens;
# > GRPO's $1/T$ would weigh the two differently.

# %% tags=["claim:G19"]
from rlnb.objective import group_zscore, sequence_sum
pair = grpo.replace(advantage=group_zscore(eps=0.0), weights=sequence_sum)
w, l = seq.outcomes.index((1, 2)), seq.outcomes.index((0, 0, 2))
ref = seq.logprobs().sum(1).detach()                             # (15,)
for gap in (1.0, 0.001):
    two = seq.batch([w, l], gap * ok, 2)
    ours, = torch.autograd.grad(pair(two).loss, seq.logits)
    A = pair.prepare(two).advantages[:, 0]
    print(f"gap {gap}: A", four(A), f"| norm {ours.norm():.4f}")
    for beta in (0.1, 1.0):
        d = seq.logprobs().sum(1) - ref                          # all 0
        dpo = -torch.nn.functional.logsigmoid(beta * (d[w] - d[l]))
        theirs, = torch.autograd.grad(dpo, seq.logits)
        assert (ours - theirs / beta).abs().max() < 1e-12
    assert torch.equal(A, torch.tensor([1.0, -1.0]))
# "With two answers per prompt GRPO is pairwise": true

# %% [markdown]
# A gap of 0.001 between two rewards pulls as hard as a gap of 1: only the winner counts.
#
# > **"RLOO's baseline with GRPO's std is a new estimator."** With the group's own std it is
# > the z-score times $G/(G-1)$: 2, 1.3333, 1.2 at $G=2,4,6$. Only a leave-one-out std would
# > be new, and it is 0 whenever the others agree.

# %% tags=["claim:G17"]
plain = pair.replace(advantage=group_zscore(eps=0.0))
for G in (2, 4, 6):
    r = torch.rand(G, generator=torch.Generator().manual_seed(G))
    group = Bandit(torch.zeros(G)).batch(list(range(G)), r, G)
    z = plain.prepare(group).advantages[:, 0]                    # GRPO's
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
# "RLOO's baseline combined with GRPO's std": conditional

# %% [markdown]
# ## One mean for the batch, or one per prompt?
#
# So far one prompt. With one prompt "batch" and "group" are the same thing, and so are
# their methods. REINFORCE++ without KL normalises over all tokens of the batch; with one
# token per answer it *is* GRPO, up to the convention for the std ($G-1$ in place of $G$).

# %%
spp = ZOO["reinforce_plus_plus"].replace(shape=())               # no KL
one = estimator_moments(three, R, spp, 4)
same = estimator_moments(three, R, grpo, 4)
bessel = (3 / 4) ** 0.5
print("REINFORCE++       ", four(one.mean))
print("GRPO x sqrt(3/4)  ", four(same.mean * bessel))
assert torch.allclose(one.mean, same.mean * bessel, atol=1e-5)

# %% [markdown]
# Two prompts, ten equally likely answers each, $k$ of them right; every prompt has its own
# parameters. The **weight** of a prompt is the length of its part of the mean gradient,
# 1 when unbiased.

# %%
from rlnb.objective import batch_mean, batch_zscore, logprob
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

for right in ((5, 5), (9, 5), (9, 1)):
    print(f"right answers {right[0]} and {right[1]} of 10, G = 8")
    for name, part in parts.items():
        weight, m, n = two_prompts(part, right, 8)
        print(f"  {name:22s} weights {four(weight)}  cosine "
              f"{m.cosine:.4f}  answers {n:7.4f}")

# %% [markdown]
# * **Equal prompts**: the batch mean is better than the group's (17.3 against 18.9). It
#   averages 16 answers in place of 8.
# * **Unequal prompts**: it is worse (22.1), then far worse (53.7). In the last table the batch's
#   mean is 0.5: an easy prompt's answers are nearly all above it, a hard one's nearly all below. An
#   offset per prompt, and offsets are noise.
# * **The std**: GRPO gives the prompt with 9 of 10 the weight 2.33 and the one with 5 of 10
#   1.86. The mean turns (cosine 0.9945). One std for the batch leaves the two within 5
#   percent, but a prompt's step now depends on who else is in the batch. And the z-score is
#   not only harm: it has the least noise in the last two tables (17.9, 16.4).
#
# > **"A baseline per prompt beats one mean over the batch."** True for unequal
# > prompts with many answers, where score and reward are nearly unrelated. In a two-armed bandit
# > $\lVert s\rVert^2=2(1-\pi_a)^2$ is so tied to the reward that the best baseline is $1-p$,
# > the mirror image of the mean $p$, with variance exactly 0.

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
        obj = Objective(parts[name], logprob(), sequence_sum)
        m = estimator_moments(bandits, rewards, obj, 4, prompts=2)
        noise[arms, name] = 8 * m.trace / float((m.mean**2).sum())
        print(f"{arms:2d} answers, {name:13s} variance {m.trace:.4f}"
              f"  answers {noise[arms, name]:8.4f}")
assert noise[2, "batch mean"] < noise[2, "leave-one-out"] / 4
for arms in (10, 50):
    assert noise[arms, "leave-one-out"] < noise[arms, "batch mean"] / 2
# "A baseline per prompt beats one mean over the batch": conditional

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
# With ten or fifty answers the batch mean needs 2.7 and 2.6 times as many as leave-one-out,
# with two a fifth: on a batch at 0.1 and 0.9 its 0.5 is nearer to $1-p$. And zero at $1-p$:
# one draw *is* the gradient. No language model is like that. Do not judge baselines on two
# arms.
#
# ## All of them on one toy
#
# ReMax takes the reward of the greedy answer: a legal baseline, at the price of one more answer per
# prompt, not counted below. Page 10's Dr. GRPO is the group mean. Fixed numbers are added for
# scale; in practice nobody knows them. Three answers, rewards 1, 0.2, 0, $G=4$, exact:

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
# Which statements does this table contradict?
#
# | often said | the table |
# |---|---|
# | any baseline lowers the variance | ReMax has twice the noise of none here (3.7620 against 1.7457) |
# | the mean reward is the best baseline | $b=\mathbb{E}r$ needs 0.7708 answers, $b^\star$ 0.5001 |
# | RLOO is better than GRPO's mean | equal: 1.6689 and 1.6689 |
# | smaller variance is better | the group mean has the smaller one by length alone |
# | a group baseline beats none | by 4 percent at $G=4$; at $G=2$ it loses |
# | the std is a constant factor | length 1.8241, cosine 0.9999, and 0.9888 at $G=2$ |
#
# Fair to ReMax: three answers are few, and the greedy one's 1 is far from $b^\star=0.38$. On
# the toy with fifty it leaves 11 percent of the noise. When the greedy answer is wrong, it
# subtracts 0 and changes nothing:

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
from rlnb.classroom.figures import bar_figure
short = {"none (REINFORCE)": "none", "b = E r": "b = E r",
         "b optimal": "b optimal", "group mean (Dr. GRPO)": "group\nmean",
         "leave-one-out (RLOO)": "leave-\none-out",
         "greedy (ReMax)": "greedy", "group z-score (GRPO)": "z-score"}
none = table["none (REINFORCE)"]
bar_figure(
    list(short.values()),
    {"variance": [table[k][2] / none[2] for k in short],
     "answers": [table[k][3] / none[3] for k in short]},
    ylabel="relative to no baseline",
    alt="Seven baselines at G = 4, relative to none. Answers until noise"
        " equals signal: mean reward 0.44, optimal 0.29, group mean and"
        " leave-one-out 0.96 each, greedy 2.16, z-score 1.11. Variance:"
        " group mean 0.54, leave-one-out 0.96, z-score 3.69.",
    caption="By variance the group mean beats leave-one-out and the z-score"
            " is hopeless; in answers the first two are equal and the third"
            " is close behind.")

# %% [markdown]
# ## Where people go wrong
#
# > **"Without std and without 1/length, GRPO is unbiased."** On fresh answers, in
# > direction. Its size carries $(G-1)/(G\,L)$, with $L$ the constant length; multiplied
# > back it is the gradient. Once a batch is reused and the clip binds, it is not.

# %% tags=["claim:G15"]
from rlnb.objective import clip
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
# "Without std and without 1/length, GRPO is an unbiased": conditional

# %% [markdown]
# The older policy is $3\nabla J$ behind. Never clipped, 0.9970: a token's ratio corrects the
# token, not the rest of its answer ([page 04](04_importance_sampling.ipynb)). The clip has
# switched off the tokens that left the band in the right direction, and what remains points
# back on average: a brake, no longer an estimator.
#
# > **"As the group grows, GRPO becomes REINFORCE with one global baseline."** For one
# > prompt. With several, each group's mean goes to its *own* prompt's $V$ (variance
# > $\sigma^2/G$), and the division stays: the limit weighs a prompt by $1/\sigma$.

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
# "As the group grows GRPO approaches REINFORCE": sloppy

# %% [markdown]
# Not one baseline but three, 0.1, 0.5 and 0.9; not one scale but two, 3.3333 and 2.
#
# > **"Larger groups may reduce diversity."** Of what? The *number* of distinct answers
# > grows with $G$. The share that is new falls. A hundred answers, the $i$-th drawn in
# > proportion to $1/i$:

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
# "Larger groups may reduce diversity": sloppy

# %% [markdown] tags=["cited:B19"]
# > **"Critic-free methods have won."** They are what most open recipes used, being simple
# > and cheap. As a finished contest it does not stand: VAPO (arXiv 2504.05118), which keeps
# > a critic, reports 60.4 on AIME24, against 50 for the critic-free DAPO (arXiv 2503.14476)
# > from the same base model. Reports of single recipes, not controlled comparisons. What a
# > critic can do and a group cannot is the $V(\text{prefix})$ line above: a baseline that
# > moves within an answer.

# %% [markdown]
# ## Exercises
#
# **03.1 Derive** · 8 minutes · ●●○. (a) Find $b^\star$ from the parabola. (b) Show that
# $\mathbb{E}[\bar r\,s(y_i)]=\nabla J/G$ when $\bar r$ is the mean of $G$ independent
# answers, and say which terms vanish. (c) For two arms with success rate $p$, get
# $b^\star=1-p$.
# <details><summary>hint</summary>
#
# (b) Split $\bar r$ into its $G$ terms. For $j\ne i$ the expectation factorises, and one
# factor is the mean score.
# </details>

# %% [markdown]
# **03.2 Predict, then run** · 5 minutes · ●○○. The policy learns: (0.5, 0.3, 0.2) becomes
# (0.9, 0.06, 0.04), rewards still 1, 0.2, 0. Rank "none", "mean reward" and "greedy"
# by noise, before you change the first line. Does the mean reward still help?
# <details><summary>hint</summary>
#
# Who has the large scores now, and what are their rewards? Where does that put $b^\star$?
# </details>

# %% tags=["exercise"]
pi = torch.tensor([0.5, 0.3, 0.2])               # your turn
s = torch.eye(3) - pi
for name, b in (("none", 0.0), ("mean reward", pi @ R),
                ("greedy", R[pi.argmax()])):
    second = pi @ ((R - b)**2 * (s**2).sum(1))
    var = second - ((pi * R) @ s).square().sum()
    print(f"{name:12s} b {b:.4f}  variance {var:.4f}")

# %% [markdown]
# **03.3 Implement** · 8 minutes · ●●○. The optimal baseline from any table of scores:
# `scores` (N, D) holds $\nabla\log\pi$ of each of $N$ outcomes, `rewards` and `probs` are
# (N,). One number comes back.
# <details><summary>hint</summary>
#
# Two expectations over outcomes, one divided by the other. $\lVert s\rVert^2$ is a sum
# over the $D$ parameters, done first.
# </details>

# %% tags=["exercise"]
def my_optimal_baseline(scores, rewards, probs):  # (N, D), (N,), (N,)
    return ...

check.optimal_baseline(my_optimal_baseline)

# %% [markdown]
# **03.4 Experiment** · 8 minutes · ●●○. All four answers wrong: the group says nothing. Some
# recipes mix in a running mean $m$ of past rewards,
# $A_i=r_i-(w\,b_i+(1-w)\,m)$ with $b_i$ leave-one-out. Is the mix unbiased? On the
# page's toy, which $w$ is best when $m=0.56$ is right, and when it is stale, $m=0$ or 1?
# <details><summary>hint</summary>
#
# $m$ is fixed before the draw, and so is $b_i$ as far as answer $i$ is concerned. For the
# noise, run it: `estimator_moments` for $w$ in 0, 0.25, ..., 1.
# </details>

# %% tags=["exercise"]
def mixed(w, m):                                 # your turn: w, m
    def advantage(batch, token_rewards):
        r = token_rewards.sum(1)
        others = (r.sum() - r) / (len(r) - 1)
        return batch.expand(r - others)
    return Objective(advantage, logprob(), sequence_sum)

_ = row("w = 1", estimator_moments(three, R, mixed(1.0, 0.56), 4), 4)

# %% [markdown]
# **03.5 Find the silent bug** · 10 minutes · ●●●. Here is leave-one-out for a batch of
# several prompts. It has the right shape, its advantages sum to 0, it is right for one
# prompt, and models trained with it learn. Write a test: a function that is given an
# implementation and fails (an `assert`, or `return False`) for this one, while it passes
# for the right one. `check.silent_bug_baselines` runs your test on both.
# <details><summary>hint</summary>
#
# Two prompts, one easy, one hard. What must be 0 in every group? What must a bonus for all
# answers of one prompt not change?
# </details>

# %%
print(check.silent_bug_baselines.source)

# %% tags=["exercise"]
def my_test(advantages):         # advantages(rewards, num_generations)
    ...

check.silent_bug_baselines(my_test)

# %% [markdown]
# Solved, with every check passing: [solutions](solutions/03_baselines.ipynb).
#
# ## In the interview
#
# Answer aloud, 60 seconds each, then unfold.
#
# **Prove that a baseline is free. What may it depend on?**
# <details><summary>answer</summary>
#
# $\mathbb{E}[b\,\nabla\log\pi(y)]=b\sum_y\nabla\pi(y)=b\,\nabla1=0$. So anything fixed before
# the draw: the prompt, other samples, a critic, for a token its prefix. Not the drawn
# action: with the best of the group as baseline the mean shrinks and turns; with one's own
# reward nothing is left. "Free" refers to the mean. The variance is a parabola in $b$, and a
# bad $b$ costs as much as one likes.
# </details>
#
# **What is the best baseline? Is it the mean reward?**
# <details><summary>answer</summary>
#
# $b^\star=\mathbb{E}[\lVert s\rVert^2r]/\mathbb{E}[\lVert s\rVert^2]$: the mean reward weighted by
# squared score. It equals the mean reward when score size and reward are unrelated, about
# so for language models with many answers. In a two-armed bandit it is $1-p$, where the
# mean $p$ can be far worse than nothing. (On this page: 64 times the noise at $p=0.9$.)
# Never argue about baselines from two arms.
# </details>
#
# **GRPO has the own reward in its mean. Biased? Is RLOO better?**
# <details><summary>answer</summary>
#
# $r_i-\bar r=\frac{G-1}{G}(r_i-b_i)$ for each answer of each group. So the expectation is
# $\frac{G-1}{G}\nabla J$, bias $-\nabla J/G$ in every component: a learning-rate factor, 0.5
# at $G=2$, 0.9375 at 16. Same direction, same noise per answer. What really
# separates GRPO from RLOO is the std, the $1/T$, and clipping per token.
# </details>
#
# **What does dividing by the std do?**
# <details><summary>answer</summary>
#
# One prompt, 0/1 rewards: only length. Several prompts: each is weighted by about $1/\sigma$,
# symmetric in $p$ and $1-p$. Graded rewards: it also turns the gradient, since a gap counts
# relative to its group; at $G=2$ any gap gives $\pm1$ and a component can change sign. What it
# buys: insensitivity to the reward's scale. Keep the mean and drop it (Dr. GRPO), or use the
# batch's std, which keeps prompts in proportion but couples them.
# </details>
#
# **Group mean instead of a critic: what do you gain and lose?**
# <details><summary>answer</summary>
#
# The mean of $G$ rewards is an unbiased estimate of $V(\text{prompt})$ with variance
# $\sigma^2/G$: no second model, no critic to get wrong. It costs $G$ answers per prompt and is
# one number per answer: no credit within it. A critic pays when answers are long and the
# middle is informative, when samples are expensive, rewards dense, or a prompt cannot be
# replayed.
# </details>
#
# **RLOO's baseline with GRPO's std?**
# <details><summary>answer</summary>
#
# The z-score times $G/(G-1)$; nothing new. With a leave-one-out std as well it is
# undefined where it matters most: the only right answer among wrong ones sees others with
# std 0.
# </details>
#
# **How large should a group be? What happens at 1, 2 and infinity?**
# <details><summary>answer</summary>
#
# At 1 there is nothing to compare: advantage 0, or nan with $G-1$ in the std. At 2 the
# z-score is a preference pair, DPO's gradient at the reference over $\beta$. At infinity the
# baseline is the prompt's own $V$, still divided by $\sigma$. Baseline noise adds
# $1/(G-1)$: 14 percent at 8, 7 at 16. Beyond that, larger groups buy *mixed* groups on hard
# prompts: $1-p^G-(1-p)^G$.
# </details>
#
# **Normalise over the batch or over the group?**
# <details><summary>answer</summary>
#
# Equal prompts: the batch, it averages more. Unequal prompts: the group, because a shared mean
# compares an easy prompt's answers with a hard one's. For the scale the other way round:
# per-group stds reweight prompts, one batch std hardly does. So group mean with batch std
# is a sensible middle. With one prompt per batch it is all the same.
# </details>
#
# **All answers of a group are wrong. Can a baseline help?**
# <details><summary>answer</summary>
#
# A group baseline gives 0. A running mean per prompt, or one over prompts, gives all of
# them the same negative push: unbiased, mostly noise, and it says "not these" without
# saying what instead. Better: easier variants, hints, partial credit, or sample elsewhere and
# come back.
# </details>
#
# ## Recap
#
# The running group: rewards 1, 1, 0, 0, lengths 3, 5, 2, 6, drawn from the current policy.
# Per answer the advantage $A$ and the weight with which each of its tokens is pushed up.
# For ReMax the greedy answer is taken to be right. REINFORCE++ counts tokens, 8 right and 8
# wrong: $0.5/\sqrt{4/15}=0.9682$, over 16.

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
# * Anything fixed before the draw may be subtracted; the noise is a parabola in it.
# * $r-\bar r=\frac{G-1}{G}(r-b_\text{loo})$: GRPO's mean and RLOO are one estimator, bias
#   $-\nabla J/G$.
# * Compare noise in answers, $G\,\mathrm{var}/\lVert\mathbb{E}\hat g\rVert^2$; variance alone
#   rewards short steps.
# * The std turns the gradient with graded rewards and reweights prompts; with 0/1 rewards and
#   one prompt it is a length. At $G=2$ it is a preference pair.
# * Group mean for unequal prompts, batch mean for equal ones, and no verdict from two arms.
#
# Next: [04 · Importance sampling](04_importance_sampling.ipynb), where the answers were
# drawn by somebody else.
