# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 08 · GRPO: solutions
#
# The exercises of [08](../08_grpo.ipynb), solved and run. Try first; a check that names your
# mistake teaches more than a listing.

# %%
import torch
from rlnb import ZOO, check
from rlnb.toys import running_batch
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 The bound
#
# With the population std the advantages satisfy $\sum_j A_j=0$ and $\sum_j A_j^2=G$. Fix $A_1=x$.
# The others sum to $-x$, and $G-1$ numbers with a given sum have the smallest sum of squares when
# they are equal:
#
# $$G = x^2+\sum_{j>1}A_j^2\ \ge\ x^2+\frac{x^2}{G-1}=x^2\,\frac{G}{G-1}\quad\Longrightarrow\quad |x|\le\sqrt{G-1}.$$
#
# Equality: all the others are equal, that is one answer against $G-1$.

# %% tags=["solution"]
def my_bound(size):
    return (size - 1).sqrt()

check.largest_advantage(my_bound)

# %% [markdown]
# Bessel's std is larger by $\sqrt{G/(G-1)}$, so its bound is $(G-1)/\sqrt G$. Ten thousand random
# groups, and the extreme one:

# %%
gen = torch.Generator().manual_seed(0)
for G in (2, 4, 8, 16, 64):
    r = torch.rand(10_000, G, generator=gen) ** 4      # skewed on purpose
    A = (r - r.mean(1, keepdim=True)) / r.std(1, keepdim=True, correction=0)
    one = torch.zeros(G)
    one[0] = 1.0
    extreme = (one - one.mean())[0] / one.std(correction=0)
    bessel = (one - one.mean())[0] / one.std()
    print(f"G={G:2d}: one against the rest {extreme:.4f},"
          f" with Bessel {bessel:.4f}")
    assert A.abs().max() <= my_bound(torch.tensor(float(G))) + 1e-9
    assert torch.isclose(extreme, my_bound(torch.tensor(float(G))))
    assert torch.isclose(bessel, torch.tensor((G - 1) / G**0.5))

# %% [markdown]
# ## 2 The z-score

# %% tags=["solution"]
def my_group_advantages(rewards, num_generations):
    r = rewards.view(-1, num_generations)              # (P, G)
    centred = r - r.mean(1, keepdim=True)
    std = r.std(1, keepdim=True, correction=0)         # population
    return (centred / (std + 1e-6)).view(-1)           # (B,)

check.group_advantages(my_group_advantages)

# %% [markdown]
# With `r.std(1, keepdim=True)` the check accepts it too, and says whose convention it is.
#
# ## 3 The silent bug
#
# `mean.repeat(4)` lays out $\bar R_1,\bar R_2,\bar R_1,\bar R_2,\dots$; the rows come as four
# answers of prompt 1, then four of prompt 2. With one prompt there is nothing to mix up. With two,
# answers are measured against the wrong prompt. What must hold in every group is that the
# advantages sum to zero.

# %% tags=["solution"]
def my_test(advantages):
    A = advantages(running_batch().rewards, 4)
    assert (A.view(-1, 4).sum(1).abs() < 1e-9).all()

check.silent_bug_grpo(my_test)

# %% [markdown]
# The sum over the *whole* batch would not have caught it:

# %%
def suspicious(rewards, num_generations):
    r = rewards.view(-1, num_generations)
    mean = r.mean(1).repeat(num_generations)
    std = r.std(1, correction=0).repeat(num_generations)
    return (rewards - mean) / (std + 1e-6)

sums = suspicious(running_batch().rewards, 4).view(-1, 4).sum(1)
print("sum in each group", [round(x, 4) for x in sums.tolist()],
      " of the batch", round(sums.sum().item(), 4) + 0.0)
assert abs(sums.sum()) < 1e-9 < sums.abs().min()

# %% [markdown]
# The mend is `repeat_interleave`, or better no repeating at all: stay in shape (P, G) and let
# broadcasting do it.
#
# ## 4 A loss that survives

# %% tags=["solution"]
def my_grpo_loss(logprobs, old_logprobs, ref_logprobs, mask, rewards,
                 num_generations, epsilon, beta):
    lp, old, ref = (torch.where(mask, x, 0.0) for x in
                    (logprobs, old_logprobs, ref_logprobs))
    A = my_group_advantages(rewards, num_generations)[:, None]   # (B, 1)
    rho = (lp - old).exp()                             # (B, T)
    clipped = rho.clamp(1 - epsilon, 1 + epsilon)
    d = ref - lp                                       # log(ref / pi)
    k3 = torch.expm1(d) - d
    worth = torch.minimum(rho * A, clipped * A) - beta * k3
    worth = torch.where(mask, worth, 0.0)
    return -(worth.sum(1) / mask.sum(1).clamp(min=1)).mean()

check.grpo_loss(my_grpo_loss)

# %% [markdown]
# Three lines carry the edge cases. `where` on the inputs: what lies under the mask reaches neither
# value nor gradient. `clamp(min=1)`: a row without tokens is 0, not 0/0. The small number in the
# std: equal rewards give 0.

# %%
b = running_batch()
mine = my_grpo_loss(b.logprobs, b.old_logprobs, b.ref_logprobs, b.mask,
                    b.rewards, 4, 0.2, 0.04)
theirs = ZOO["grpo"](b).loss
print(f"mine {mine:.6f}, rlnb {theirs:.6f}")
assert abs(mine - theirs) < 1e-12

# %% [markdown]
# Why a `where` behind the `exp` comes too late, on one padded token that holds an infinity. Its
# value is replaced, its slope is 0 · inf:

# %%
for name, early in (("where before exp", True), ("where after exp", False)):
    lp = torch.tensor([-0.1, float("inf")], requires_grad=True)
    keep = torch.tensor([True, False])
    rho = (torch.where(keep, lp, 0.0) if early else lp).exp()
    torch.where(keep, rho, 0.0).sum().backward()
    print(f"{name}: slope", [round(x, 4) for x in lp.grad.tolist()])
    assert lp.grad.isfinite().all() == early
