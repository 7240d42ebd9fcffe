# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 · Two divisors: solutions
#
# The exercises of [09](../09_grpo_biases.ipynb), solved and run. Try first: reading a solution
# feels like knowing it.

# %%
import torch
from rlnb import ZOO, check
from rlnb.toys import running_batch
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## 1 The weight of a prompt
#
# Given $k$ right answers, each has $A_+=(1-k/G)/\sigma_R$ with $\sigma_R=\sqrt{k(G-k)}/G$. Their
# sum $kA_+=\sqrt{k(G-k)}$ is what the wrong ones lose. A right answer carries $\nabla p/p$, a wrong
# one $-\nabla p/(1-p)$, so the group's mean push is
# $\frac{kA_+}G\big(\frac1p+\frac1{1-p}\big)\nabla p =\frac{\sqrt{k(G-k)}}{G\,p(1-p)}\nabla p$.
# Average over $k$, which is binomial.

# %% tags=["solution"]
from math import comb


def prompt_weight(rate, size):
    total = torch.zeros_like(rate)
    for k in range(1, size):                   # k = 0 and k = G push by 0
        chance = comb(size, k) * rate**k * (1 - rate)**(size - k)
        total = total + chance * (k * (size - k))**0.5
    return total / (size * rate * (1 - rate))


check.prompt_weight(prompt_weight)

# %% [markdown]
# It never exceeds $\sqrt{G-1}$. Only $1\le k\le G-1$ contribute, and there $k(G-k)\ge G-1$, hence
#
# $$\sqrt{k(G-k)}=\frac{k(G-k)}{\sqrt{k(G-k)}}\le\frac{k(G-k)}{\sqrt{G-1}},\qquad
# w(p)\le\frac{\mathbb E[k(G-k)]}{G\,p(1-p)\sqrt{G-1}}=\frac{G(G-1)p(1-p)}{G\,p(1-p)\sqrt{G-1}}=\sqrt{G-1}.$$
#
# Equality needs $k=1$ or $k=G-1$ in every mixed group: in the limit $p\to0$ or $p\to1$, where the
# only mixed groups are one against the rest. There the weight *is* the advantage of the odd one
# out. At $G=2$ and 3 every mixed group is of that kind, so the weight is $\sqrt{G-1}$ for every
# $p$.

# %%
def weight(p, G):
    return float(prompt_weight(torch.tensor([p]), G))


print("  G  sqrt(G-1)   p = 0.5     0.1   0.001")
for G in (2, 3, 4, 16, 64):
    row = [weight(p, G) for p in (0.5, 0.1, 0.001)]
    print(f"{G:3d}     {(G - 1)**0.5:.4f}   ",
          "  ".join(f"{w:.4f}" for w in row))
    assert max(row) <= (G - 1)**0.5 + 1e-12
assert abs(weight(0.3, 3) - 2**0.5) < 1e-12            # flat for three

# %% [markdown]
# ## 2 The push on the stop decision
#
# $$\mathbb E\Big[\frac1T\Big]=\sum_{T\ge1}\frac{q(1-q)^{T-1}}T=\frac{q}{1-q}\sum_{T\ge1}\frac{(1-q)^T}T
# =\frac{q}{1-q}\big(-\ln(1-(1-q))\big)=-\frac{q\ln q}{1-q}.$$
#
# Jensen: $1/T$ is convex, so $\mathbb E[1/T]\ge1/\mathbb E[T]=q$, with equality only if $T$ is
# always the same. The drift $A(\mathbb E[1/T]-q)$ has the sign of $A$, for every stop probability.

# %% tags=["solution"]
def stop_push(q):
    return -q * q.log() / (1 - q) - q


check.stop_push(stop_push)

# %%
for q in (0.02, 0.1, 0.5, 0.9):
    T = torch.arange(1.0, 5001.0)
    mean = (q * (1 - q)**(T - 1) / T).sum()
    closed = -q / (1 - q) * torch.tensor(q).log()
    print(f"q {q:.2f}: E[1/T] {mean:.6f}, minus q {mean - q:+.6f}")
    assert torch.isclose(mean, closed) and mean > q

# %% [markdown]
# ## 3 Groups with a signal

# %% tags=["solution"]
def keep_informative(rewards, num_generations):
    groups = rewards.view(-1, num_generations)         # (P, G)
    return groups.amax(1) != groups.amin(1)            # (P,) bool


check.keep_informative(keep_informative)

# %% [markdown]
# `std > 0` fails on twelve rewards of 0.7, whose rounded mean is not 0.7. A threshold does not mend
# it: twelve float32 rewards of 700.1 have a std of 6e-5, and rewards of 0 and 1e-12 do differ.
# Comparing the largest with the smallest needs no mean, so nothing is rounded.

# %%
same = torch.full((12,), 700.1, dtype=torch.float32)
print(f"std of twelve equal rewards: {same.std(correction=0):.0e}")

# %% [markdown]
# ## 4 The bonus that was only to break ties
#
# The bonus sits inside the reward when it is divided. In a mixed group the std is about a half and
# 0.01 stays about 0.02. In an all-right group the bonus is the only difference, and comes out at
# size one. The promise to test: where all are equally correct, no advantage may exceed the bonus.

# %% tags=["solution"]
def test_bonus_stays_small(advantages):
    correct = torch.ones(8)
    bonus = 0.01 * torch.arange(8.0) / 7
    assert advantages(correct, bonus, 8).abs().max() <= 0.01


check.silent_bug_grpo_biases(test_bonus_stays_small)

# %% [markdown]
# The mend in the hidden right code: the z-score of correctness, plus the centred bonus, not
# divided. Dropping groups by *correctness*, before the bonus is added, would help too.
#
# ## Name this method
#
# The riddle at the end of [statements 09](../statements/09_grpo_biases.ipynb).

# %% tags=["solution"]
check.name_this_grpo_biases("Dr. GRPO")

# %% [markdown]
# Three and five tokens are pushed alike, so there is no $1/T$. 0.75 against 0.5 is $1-\bar r$ in
# the two groups, where z-scores would give $\sqrt3$ against 1. The table, computed:

# %%
fresh = running_batch().replace(old_logprobs=None)
for name in ("dr_grpo", "rloo", "dapo", "grpo"):
    method = ZOO[name].replace(terms=())
    push = -method.explain(fresh).gradient[:, 0]
    print(f"{name:8s}", " ".join(f"{x:7.4f}" for x in push / push[0]))
