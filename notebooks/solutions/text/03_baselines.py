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
from rlnb import check
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## 1 The best baseline
#
# The mean push does not depend on $b$, so only the mean square has to be smallest:
#
# $$\frac{d}{db}\,\mathbb E\big[(R-b)^2\lVert\nabla\log\pi\rVert^2\big]
# =-2\,\mathbb E\big[R\lVert\nabla\log\pi\rVert^2\big]+2b\,\mathbb E\lVert\nabla\log\pi\rVert^2=0.$$
#
# The second derivative is positive: a minimum.

# %%
def optimal_baseline(scores, rewards, probs):  # (N, D), (N,), (N,) -> ()
    weight = probs * (scores**2).sum(1)                          # (N,)
    return (weight * rewards).sum() / weight.sum()

check.optimal_baseline(optimal_baseline)

# %% [markdown]
# A policy that has learnt, (0.5, 0.3, 0.2) before and (0.9, 0.06, 0.04) now: the mean reward rises
# and the best baseline falls, and in the end the mean reward is far noisier than none.

# %%
R = torch.tensor([1.0, 0.2, 0.0])
for probs in ((0.5, 0.3, 0.2), (0.9, 0.06, 0.04)):
    pi = torch.tensor(probs)
    s = torch.eye(3) - pi
    size, g = (s**2).sum(1), (pi * R) @ s
    best = optimal_baseline(s, R, pi)
    for name, b in (("none", 0.0), ("mean reward", pi @ R),
                    ("greedy", 1.0), ("best", best)):
        var = pi @ ((R - b)**2 * size) - g @ g
        print(f"pi {probs}: {name:12s} b {b:.4f}  "
              f"noise {var / (g @ g):.4f}")

# %% [markdown]
# ## 2 The noise of a run
#
# With $\bar g$ the mean of $N$ gradients,
# $\mathbb E\lVert\bar g\rVert^2=\lVert\nabla J\rVert^2+\frac1N\mathrm{tr\,Cov}$. So an $N$-th of
# the trace comes off.

# %%
def noise(gradients):                            # (N, D) -> ()
    mean = gradients.mean(0)
    trace = (gradients - mean).square().sum() / (len(gradients) - 1)
    return trace / (mean.square().sum() - trace / len(gradients))

check.noise_scale(noise)

# %% [markdown]
# Both parts are right on average; their quotient is so only for many answers, and below zero when
# the signal is drowned. On the lesson's toy, where 2.85 is the truth, from 2,000 answers:

# %%
p3 = torch.tensor([0.3, 0.3, 0.4])
for seed in range(3):
    y = p3.multinomial(2000, True,
                       generator=torch.Generator().manual_seed(seed))
    print(f"{noise(R[y, None] * (torch.eye(3) - p3)[y]):.2f}")

# %% [markdown]
# ## 3 Many ways to be right
#
# The score of a right answer: $1-\frac pk$ at its own place, $-\frac pk$ at the $k-1$ other right
# ones, nothing at the wrong ones. Squared:
# $(1-\frac pk)^2+(k-1)\frac{p^2}{k^2}=1-\frac{2p}k+\frac{p^2}k$. Of a wrong one:
# $1+k\,\frac{p^2}{k^2}=1+\frac{p^2}k$. So
#
# $$b^\star=\frac{p\,(1-\frac{2p}k+\frac{p^2}k)}{p\,(1-\frac{2p}k+\frac{p^2}k)+(1-p)(1+\frac{p^2}k)}
# =\frac{p\,(1-\frac{2p}k+\frac{p^2}k)}{1-\frac{p^2}k}.$$
#
# For $k=1$ it is $\frac{p(1-p)}{1+p}$, small when $p$ is large; for many it is $p$, the mean
# reward.

# %%
def best_baseline(p, k):                         # (n,), (n,) -> (n,)
    return p * (1 - 2 * p / k + p**2 / k) / (1 - p**2 / k)

check.shared_baseline(best_baseline)

# %% [markdown]
# With only two answers, one right and one wrong, it is $1-p$, the mirror image of the mean:

# %%
for p in (0.2, 0.5, 0.9):
    two = torch.tensor([p, 1 - p])
    found = optimal_baseline(torch.eye(2) - two, torch.tensor([1.0, 0.0]),
                             two)
    print(f"p = {p}: best baseline {found:.4f}")
    assert torch.isclose(found, torch.tensor(1 - p))

# %% [markdown]
# ## 4 The silent bug
#
# `rewards[:, None] != rewards[None, :]` tells others apart by what they earned. Whoever earned the
# same as you is left out too, and so your baseline changes when your own reward does. Two tests,
# each enough:

# %%
def my_reward_does_not_move_my_baseline(advantages):
    rewards = torch.tensor([1.0, 1.0, 0.0, 0.5])
    more = rewards + torch.tensor([0.5, 0.0, 0.0, 0.0])
    rise = advantages(more)[0] - advantages(rewards)[0]
    assert abs(rise - 0.5) < 1e-6

check.silent_bug_baselines(my_reward_does_not_move_my_baseline)

# %%
def sums_to_zero(advantages):
    A = advantages(torch.tensor([1.0, 0.0, 0.0, 0.0]))
    assert abs(A.sum()) < 1e-6

check.silent_bug_baselines(sums_to_zero)

# %% [markdown]
# And three that sound reasonable and see nothing:

# %%
half = torch.tensor([1.0, 1.0, 0.0, 0.0])
for test in (lambda f: (f(half) > 0).tolist() == [True, True, False, False],
             lambda f: f(half).sum().abs() < 1e-9,
             lambda f: torch.allclose(f(half + 10), f(half))):
    verdict = check.silent_bug_baselines(test)
    assert not verdict
    print(verdict.message)

# %% [markdown]
# What it costs on the lesson's toy, all groups of four: the mean push, and its cosine with the
# truth.

# %%
from rlnb.classroom.exercises.baselines import advantages as broken

def correct(r):
    return r - (r.sum() - r) / (len(r) - 1)

draws = torch.cartesian_prod(*[torch.arange(3)] * 4)             # (81, 4)
truth = p3 * (R - p3 @ R)
for name, function in (("right", correct), ("by reward", broken)):
    A = torch.stack([function(R[y]) for y in draws])             # (81, 4)
    step = (A[:, :, None] * (torch.eye(3) - p3)[draws]).mean(1)  # (81, 3)
    mean = p3[draws].prod(1) @ step
    print(f"{name:9s}", [round(x, 3) for x in mean.tolist()],
          f"cosine {torch.cosine_similarity(mean, truth, 0):.3f}")
