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
# The exercises of [08](../08_grpo.ipynb), solved and run. Try first: reading a solution feels like knowing it.

# %% tags=["setup"]
import torch
from rlnb import ZOO, check
from rlnb.toys import running_batch
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 The bound
#
# With the population std the advantages satisfy $\sum_j A_j=0$ and $\sum_j A_j^2=G$. Fix $A_1=x$. The others sum to $-x$, and $G-1$ numbers with a given sum
# have the smallest sum of squares when they are equal:
#
# $$G = x^2+\sum_{j>1}A_j^2\ \ge\ x^2+\frac{x^2}{G-1}=x^2\,\frac{G}{G-1}\quad\Longrightarrow\quad |x|\le\sqrt{G-1}.$$
#
# Equality: all the others are equal, that is one answer against $G-1$. Bessel's std is larger by $\sqrt{G/(G-1)}$, so its bound is $(G-1)/\sqrt G$.

# %% tags=["solution"]
def bound(size):
    return (size - 1).sqrt()

check.largest_advantage(bound)

# %% [markdown]
# ## 2 Many prompts

# %% tags=["solution"]
def group_advantages(rewards, num_generations):
    r = rewards.view(-1, num_generations)              # (P, G)
    centred = r - r.mean(1, keepdim=True)
    std = r.std(1, keepdim=True, correction=0)         # population
    return (centred / (std + 1e-6)).view(-1)           # (B,)

check.group_advantages(group_advantages)

# %% [markdown]
# With `r.std(1, keepdim=True)` the check accepts it too, and says whose convention it is.
#
# ## 3 `repeat` is not `repeat_interleave`
#
# The means are laid out as prompt 1, prompt 2, prompt 1, ...; the rows come as all answers of prompt 1, then all of prompt 2. With one prompt there is nothing to
# mix up, and the sum over the whole batch may be 0 all the same. Inside every group the advantages must sum to zero.

# %% tags=["solution"]
def test(advantages):
    A = advantages(running_batch().rewards, 4)
    assert (A.view(-1, 4).sum(1).abs() < 1e-9).all()

check.silent_bug_grpo(test)

# %% [markdown]
# ## 4 A loss that survives

# %% tags=["solution"]
def grpo_loss(logprobs, old_logprobs, ref_logprobs, mask, rewards,
              num_generations, epsilon, beta):
    lp, old, ref = (torch.where(mask, x, 0.0) for x in
                    (logprobs, old_logprobs, ref_logprobs))
    A = group_advantages(rewards, num_generations)[:, None]   # (B, 1)
    rho = (lp - old).exp()                                    # (B, T)
    gain = torch.minimum(rho * A,
                         rho.clamp(1 - epsilon, 1 + epsilon) * A)
    d = ref - lp
    worth = gain - beta * (torch.expm1(d) - d)
    worth = torch.where(mask, worth, 0.0)
    return -(worth.sum(1) / mask.sum(1).clamp(min=1)).mean()

check.grpo_loss(grpo_loss)

# %% [markdown]
# Three lines carry the edge cases. `where` on the inputs: what lies under the mask reaches neither value nor gradient. `clamp(min=1)`: a row without tokens is 0,
# not 0/0. The small number in the std: equal rewards give 0.

# %%
b = running_batch()
mine = grpo_loss(b.logprobs, b.old_logprobs, b.ref_logprobs, b.mask,
                 b.rewards, 4, 0.2, 0.04)
theirs = ZOO["grpo"](b).loss
print(f"mine {mine:.6f}, rlnb {theirs:.6f}")
assert abs(mine - theirs) < 1e-12
