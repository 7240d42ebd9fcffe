# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 14 · The zoo: solutions
#
# The exercises of [14](../14_the_zoo.ipynb), solved and run. Try first: reading a solution feels
# like knowing it.

# %%
import torch
from rlnb import ZOO, check
from rlnb.toys import running_batch
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## 1 Two ratios
#
# Three clean log-probs, two exps. Nothing differentiates through $\omega$: old policy and engine
# are stored numbers.

# %% tags=["solution"]
def two_ratios(logprobs, old_logprobs, engine_logprobs, mask, advantages):
    lp, old, engine = (torch.where(mask, x, 0.0) for x in (
        logprobs, old_logprobs, engine_logprobs))
    rho, omega = (lp - old).exp(), (old - engine).exp()
    A = advantages[:, None]
    gain = torch.min(rho * A, rho.clamp(0.8, 1.28) * A)
    gate = torch.where((omega < 0.5) | (omega > 2.0), 0.0, omega)
    worth = torch.where(mask, gate * gain, 0.0)
    return -(worth.sum(1) / mask.sum(1).clamp(min=1)).mean()


check.two_ratios(two_ratios)

# %%
from rlnb.interop.labs import lab

b = running_batch(complete=True)
engine = b.old_logprobs * 1.3                          # less sure
glm = b.replace(sampling_logprobs=engine)
objective = lab("GLM-5 reasoning").objective
A_glm = objective(glm).advantages[:, 0]
mine = two_ratios(b.logprobs, b.old_logprobs, engine, b.mask, A_glm)
assert torch.allclose(mine, objective(glm).loss, atol=1e-12)
print(f"mine {mine.item():.6f}, the lab's row "
      f"{objective(glm).loss.item():.6f}")

# %% [markdown]
# ## 2 The name
#
# Centred, no std. PPO's band on the token's ratio. One mean per answer. A KL term with ρ in front
# of it, and ρ is not detached. A wrong answer whose tokens are, on average, more than half a nat
# less likely than the engine found them is dropped whole.

# %% tags=["solution"]
check.name_this_the_zoo("DeepSeek-V3.2")

# %%
def loss(lp, old, engine, ref, r, mask):
    A = (r - r.mean(1, keepdim=True)).view(-1, 1)
    rho, T = (lp - old).exp(), mask.sum(1, keepdim=True)
    gap = ((engine - lp).detach() * mask).sum(1, keepdim=True) / T
    worth = torch.minimum(rho * A, rho.clamp(0.8, 1.2) * A)
    worth = torch.where((A < 0) & (gap > 0.5), 0.0, worth)
    pull = rho * ((ref - lp).exp() - (ref - lp) - 1)
    return (((0.04 * pull - worth) * mask).sum(1) / T[:, 0]).mean()

# %%
from rlnb.objective import ANNEX

batch = running_batch(complete=True)
surer = 0.2 * batch.old_logprobs                       # surer, everywhere
batch = batch.replace(sampling_logprobs=surer)
colleague = loss(batch.logprobs, batch.old_logprobs, surer,
                 batch.ref_logprobs,
                 batch.rewards.view(2, 4), batch.completion_mask)
v32 = ANNEX["deepseek_v3_2"](batch).loss
print(f"the colleague's {colleague:.6f}, DeepSeek-V3.2 {v32:.6f}")
g_mine, g_v32 = (torch.autograd.grad(x, batch.logprobs)[0]
                 for x in (colleague, v32))
assert abs(colleague - v32) < 1e-12
sure = batch.replace(sampling_logprobs=batch.old_logprobs)
other = ANNEX["deepseek_v3_2"](sure)
assert abs(colleague - other.loss) > 1e-3              # the mask saw it
assert torch.allclose(g_mine[batch.mask], g_v32[batch.mask], atol=1e-12)

# %% [markdown]
# Those of the [statements page](../statements/14_the_zoo.ipynb):

# %% [markdown]
# ## One term of the series
#
# (a) The answers of a group are exchangeable, so
# $\mathbb E\big[\frac1K\sum_{R_i=1}S_i\big]=G\,\mathbb E\big[\frac{R_1S_1}{K}\big]$. Given $R_1=1$,
# $K=1+n$, and $n$, binomial over the other $G-1$ answers, is independent of $S_1$:
#
# $$\mathbb E\Big[\frac1{1+n}\Big]=\sum_{n=0}^{G-1}\frac1{n+1}\binom{G-1}{n}p^n(1-p)^{G-1-n}=\frac1{Gp}\sum_{m=1}^{G}\binom Gm p^m(1-p)^{G-m}=\frac{1-(1-p)^G}{Gp}.$$
#
# With $\mathbb E[R_1S_1]=\nabla p$ the mean is $\frac{1-(1-p)^G}p\nabla p$. Subtracting
# $\frac1G\sum S_i$ in *every* group changes nothing, since $\mathbb E[S_i]=0$. In an all-wrong
# group all that is left of the update is this subtraction: $A=-1$ for every answer.
#
# (b) Leaving it out there subtracts only $\mathbb E[S_1;K>0]=-\mathbb E[S_1;K=0]$. In an all-wrong
# group $R_1=0$ and the other $G-1$ are wrong, independently:
# $\mathbb E[S_1;K=0]=(1-p)^{G-1}\,\mathbb E[(1-R_1)S_1]=-(1-p)^{G-1}\nabla p$. So
#
# $$w=\frac{1-(1-p)^G}{p}-(1-p)^{G-1}=\frac{1-(1-p)^{G-1}\big[(1-p)+p\big]}{p}=\frac{1-(1-p)^{G-1}}{p}=\sum_{k=1}^{G-1}(1-p)^{k-1},$$
#
# and $(1-p)^{k-1}\nabla p=\nabla\,\text{pass@}k/k$.

# %%
from math import comb

for p in (0.05, 0.3, 0.8):
    for G in (2, 4, 16):
        w = [0.0, 0.0]                       # an all-wrong group: 0, or -1
        for K in range(1, G + 1):            # groups with K right answers
            ways = comb(G, K) * p**K * (1 - p)**(G - K)
            # sum of the scores of the right ones, per unit of grad p:
            # +1/p each, of a wrong one -1/(1-p); A = G/K - 1 and -1
            right, wrong = K / p, -(G - K) / (1 - p)
            w[0] += ways / G * ((G / K - 1) * right - wrong)
        w[1] = w[0] + (1 - p)**G / (1 - p)   # A = -1 in an all-wrong one
        assert abs(w[0] - (1 - (1 - p)**(G - 1)) / p) < 1e-12
        assert abs(w[1] - (1 - (1 - p)**G) / p) < 1e-12
    print(f"p = {p}: w at G = 16: {w[0]:.4f} and {w[1]:.4f}, "
          f"1/p = {1 / p:.4f}")

# %% [markdown]
# Here a group is summed by its number of right answers: given that an answer is right, its score is
# $\nabla\log p=\nabla p/p$ on average, given that it is wrong, $-\nabla p/(1-p)$.

# %% [markdown]
# ## Ten times the reward

# %%
tenfold = b.replace(rewards=10 * b.rewards,
                    greedy_rewards=10 * b.greedy_rewards)

def gradient(objective, b):
    loss = objective.replace(terms=(), shape=())(b).loss
    return torch.autograd.grad(loss, b.logprobs)[0][b.mask]

found = {}
for name, objective in ZOO.items():
    try:
        g, g10 = gradient(objective, b), gradient(objective, tenfold)
    except ValueError:
        found.setdefault("refused", []).append(name)
        continue
    size = g.abs().max()
    what = ("unmoved" if (g10 - g).abs().max() < 1e-5 * size else
            "tenfold" if (g10 - 10 * g).abs().max() < 1e-5 * size else
            "neither")
    found.setdefault(what, []).append(name)
for what, names in found.items():
    print(f"{what}: {' '.join(names)}")
assert found["refused"] == ["maxrl", "mgpo"]
assert found["neither"] == ["ppo"]
assert {"grpo", "gspo", "scalerl"} <= set(found["unmoved"])

# %% [markdown]
# The eps of the z-score is the whole difference of the unmoved: $\sigma+10^{-6}$ against
# $10\sigma+10^{-6}$, seven digits. That is also why a method without σ needs another learning rate
# when the reward's scale changes, under SGD; Adam hides it.

# %% [markdown]
# ## The silent bug: a solved prompt leaves no trace
#
# The history is built from the groups that trained. A solved prompt gives all-right groups, equal
# rewards, no gradient: they are not in it. What is in it are the few mixed groups, whose pass rate
# is at most $(G-1)/G$. The better the prompt, the less is known of it. The mend: count first,
# filter afterwards.

# %% tags=["solution"]
def a_solved_prompt_leaves(retired):
    rewards = torch.ones(3, 2, 4)                      # steps, prompts, G
    rewards[:, 1, :2] = 0                              # the second: half
    assert retired(rewards).tolist() == [True, False]


check.silent_bug_the_zoo(a_solved_prompt_leaves)

# %%
def retired(rewards, threshold=0.9):
    return rewards.mean((0, 2)) >= threshold


a_solved_prompt_leaves(retired)

# %% [markdown]
# ## The fit
#
# The curve is a line in $s$, so two of four numbers are never searched. The grid's centre may move
# as far as its edge, and it shrinks slowly: the valley is long and bent, and a grid that closes in
# too fast stops on its slope.

# %% tags=["solution"]
def sigmoid_fit(compute, reward):
    x, r = compute.log(), reward - reward.mean()
    steps = torch.linspace(-1, 1, 9, dtype=x.dtype)
    offsets = torch.cartesian_prod(steps, steps)       # (81, 2)
    at = torch.stack([torch.zeros_like(x[0]), x.mean()])
    width = torch.tensor([1.5, 3.0], dtype=x.dtype)    # of ln B, ln C_mid
    for _ in range(60):
        tried = at + offsets * width
        s = torch.sigmoid(tried[:, :1].exp() * (x - tried[:, 1:]))
        d = s - s.mean(1, keepdim=True)                # (81, n)
        gain = (d @ r) / d.square().sum(1)             # A - R0
        best = (r - gain[:, None] * d).square().sum(1).argmin()
        at, width = tried[best], 0.8 * width
    start = reward.mean() - gain[best] * s[best].mean()
    exponent, midpoint = at.exp()
    return torch.stack([start + gain[best], exponent, midpoint, start])


check.sigmoid_fit(sigmoid_fit)

# %% [markdown]
# Against the package's fit (a grid, then Gauss-Newton), on one noisy run:

# %%
import numpy as np
from rlnb.toys import Sigmoid, fit_sigmoid

c = np.arange(1.0, 101.0)
r = Sigmoid(0.6, 1.5, 20.0, 0.1)(c)
r = r + 0.01 * np.random.default_rng(0).standard_normal(100)
fitted = sigmoid_fit(torch.tensor(c), torch.tensor(r))
found_by = fit_sigmoid(c, r)
package = torch.tensor([found_by.ceiling, found_by.exponent,
                        found_by.midpoint, found_by.start])
print("fitted   ", *(f"{x:8.4f}" for x in fitted))
print("package", *(f"{x:8.4f}" for x in package))
assert torch.allclose(fitted, package, rtol=1e-3)

# %% [markdown]
# ## MaxRL

# %% tags=["solution"]
def max_rl_advantages(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    mean = groups.mean(1, keepdim=True)
    some = mean > 0                                    # 0/0 elsewhere
    A = (groups - mean) / torch.where(some, mean, 1.0)
    return torch.where(some, A, 0.0).view(-1)


check.max_rl_advantages(max_rl_advantages)

# %%
A_maxrl = max_rl_advantages(b.rewards, 4)
assert torch.equal(A_maxrl, ZOO["maxrl"](b).advantages[:, 0])
print(*(f"{x:.4f}" for x in A_maxrl))
