# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 · Baselines: solutions
#
# The exercises of [03 · Baselines](../03_baselines.ipynb), solved and run.

# %%
import torch
from rlnb import Objective, check
from rlnb.toys import Bandit, estimator_moments
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## 03.1 Derive
#
# **(a)** The mean does not depend on $b$, so only the second moment has to be minimised:
#
# $$\frac{d}{db}\,\mathbb{E}[(r-b)^2\lVert s\rVert^2]
# =-2\,\mathbb{E}[r\lVert s\rVert^2]+2b\,\mathbb{E}[\lVert s\rVert^2]=0
# \;\Rightarrow\;b^\star=\frac{\mathbb{E}[\lVert s\rVert^2r]}{\mathbb{E}[\lVert s\rVert^2]}.$$
#
# The second derivative is $2\,\mathbb{E}\lVert s\rVert^2>0$: a minimum.
#
# **(b)** $\mathbb{E}[\bar r\,s(y_i)]=\frac1G\sum_j\mathbb{E}[r_j\,s(y_i)]$. For $j\ne i$ the
# two answers are independent: $\mathbb{E}[r_j]\,\mathbb{E}[s(y_i)]=J\cdot0=0$. The term $j=i$ is
# $\frac1G\mathbb{E}[r_i\,s(y_i)]=\frac1G\nabla J$. So
# $\mathbb{E}[(r_i-\bar r)\,s(y_i)]=(1-\frac1G)\nabla J$.
#
# **(c)** With $s=\text{onehot}-\pi$ the arms have $\lVert s\rVert^2=2(1-p)^2$ (right) and $2p^2$
# (wrong). Hence
#
# $$b^\star=\frac{p\,(1-p)^2}{p\,(1-p)^2+(1-p)\,p^2}=\frac{1-p}{(1-p)+p}=1-p.$$

# %%
for p in (0.2, 0.5, 0.9):
    pi, r = torch.tensor([p, 1 - p]), torch.tensor([1.0, 0.0])
    s = torch.eye(2) - pi
    size = (s**2).sum(1)
    best = (pi @ (size * r)) / (pi @ size)
    print(f"p = {p}: optimal baseline {best:.4f}")
    assert torch.isclose(best, torch.tensor(1 - p))

# %% [markdown]
# ## 03.2 Predict, then run
#
# The right answer is now nearly certain and has a tiny score; nearly all of
# $\mathbb{E}\lVert s\rVert^2$ comes from the two failures, whose rewards are 0.2 and 0. So
# $b^\star$ falls to 0.18, although the mean reward has risen to 0.91.

# %%
R = torch.tensor([1.0, 0.2, 0.0])
for probs in ((0.5, 0.3, 0.2), (0.9, 0.06, 0.04)):
    pi = torch.tensor(probs)
    s = torch.eye(3) - pi
    size, g = (s**2).sum(1), (pi * R) @ s
    best = (pi @ (size * R)) / (pi @ size)
    for name, b in (("none", 0.0), ("mean reward", pi @ R),
                    ("greedy", 1.0), ("optimal", best)):
        var = pi @ ((R - b)**2 * size) - g @ g
        print(f"pi {probs}: {name:12s} b {b:.4f}  variance {var:.4f}")

# %% [markdown]
# From optimal, mean, none, greedy to optimal, none, mean, greedy: a learnt policy over
# three answers behaves like a two-armed bandit, and the mean reward has become twelve
# times noisier than nothing. Many different right answers, and the effect is gone: fifty
# equally likely answers, 45 of them right, put $b^\star$ on the mean.
#
# ## 03.3 Implement `optimal_baseline`

# %%
def optimal_baseline(scores, rewards, probs):  # (N, D), (N,), (N,) -> ()
    weight = probs * (scores**2).sum(1)                          # (N,)
    return (weight * rewards).sum() / weight.sum()

check.optimal_baseline(optimal_baseline)

# %% [markdown]
# ## 03.4 Experiment
#
# Unbiased for every $w$ and $m$: a mix of two numbers, neither of which depends on $y_i$.
# Only the noise differs.

# %%
from rlnb.objective import logprob, sequence_sum

def mixed(w, m):
    def advantage(batch, token_rewards):
        r = token_rewards.sum(1)                                 # (G,)
        others = (r.sum() - r) / (len(r) - 1)
        return batch.expand(r - (w * others + (1 - w) * m))
    return Objective(advantage, logprob(), sequence_sum)

three = Bandit(torch.tensor([0.5, 0.3, 0.2]).log())
print("answers until noise equals signal, w = 0, 0.25, 0.5, 0.75, 1")
for m in (0.56, 0.0, 1.0):
    n = []
    for w in (0, 0.25, 0.5, 0.75, 1):
        x = estimator_moments(three, R, mixed(w, m), 4)
        assert torch.allclose(x.mean, x.truth, atol=1e-12)
        n.append(4 * x.trace / float((x.mean**2).sum()))
    print(f"m = {m:.2f}:", " ".join(f"{v:.4f}" for v in n))

# %% [markdown]
# * $m=0.56$, right: all weight on it, $w=0$. It is the noise of the others that costs.
# * $m=0$, from before the policy had learnt anything: still half and half. A mix shrinks the
#   noisy mean of three towards a constant, and on this toy smaller is nearer $b^\star=0.38$.
# * $m=1$, too optimistic: the group alone.
#
# In an all-wrong group the mix gives every answer $-(1-w)\,m$: not zero, the same for all,
# and so mostly noise.
#
# ## 03.5 The silent bug
#
# `repeat` lays out the prompts' means as 1 2 1 2 ..., and the rows stand as 1 1 2 2 ...: they
# want `repeat_interleave`. Half the answers here, and more with more prompts, are measured
# against another prompt's mean. That mean does not depend on them, so the direction is right
# on average and models learn; the sum over the batch is 0; one prompt alone is right. Only
# the noise says so. Two tests, each enough:

# %%
def sums_to_zero_per_group(advantages):
    rewards = torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    A = advantages(rewards, 4)
    assert A.view(2, 4).sum(1).abs().max() < 1e-9

check.silent_bug_baselines(sums_to_zero_per_group)

# %%
def blind_to_a_bonus_for_one_prompt(advantages):
    rewards = torch.tensor([1.0, 0.0, 0.0, 1.0])
    bonus = torch.tensor([5.0, 5.0, 0.0, 0.0])
    before, after = advantages(rewards, 2), advantages(rewards + bonus, 2)
    assert torch.allclose(before, after)

check.silent_bug_baselines(blind_to_a_bonus_for_one_prompt)

# %% [markdown]
# And three that sound reasonable and see nothing:

# %%
two = torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
for test in (lambda f: f(two, 4).sum().abs() < 1e-9,
             lambda f: f(two[:4], 4).sum().abs() < 1e-9,
             lambda f: f(two, 4).shape == two.shape):
    verdict = check.silent_bug_baselines(test)
    assert not verdict
    print(verdict.message)

# %% [markdown]
# What the bug costs: two prompts with two answers each, drawn from five equally likely
# ones, 4 and 1 of them right. All $5^4$ ordered batches:

# %%
from rlnb.classroom.exercises.baselines import advantages as broken

def correct(rewards, G):
    mean = rewards.view(-1, G).mean(1).repeat_interleave(G)
    return (rewards - mean) * G / (G - 1)

r = torch.tensor([[1.0, 1, 1, 1, 0], [1.0, 0, 0, 0, 0]])         # (2, 5)
S = torch.eye(5) - 0.2
rows = torch.cartesian_prod(*[torch.arange(5)] * 4)              # (625, 4)
truth = (r - r.mean(1, keepdim=True)) / 5 / 2                    # (2, 5)
for name, function in (("repeat_interleave", correct), ("repeat", broken)):
    A = torch.stack([function(r[[0, 0, 1, 1], row], 2) for row in rows])
    g_hat = (A[:, :, None] * S[rows]).view(625, 2, 2, 5).sum(2) / 4
    mean = g_hat.mean(0)                                         # (2, 5)
    var = (g_hat**2).sum((1, 2)).mean() - (mean**2).sum()
    print(f"{name:17s} mean / truth {(mean / truth).mean():.4f}, answers "
          f"{4 * var / (mean**2).sum():.4f}")
    assert torch.allclose(mean / mean.norm(), truth / truth.norm())

# %% [markdown]
# The right direction, a step half as long again, and 28 answers where 16 would do.
