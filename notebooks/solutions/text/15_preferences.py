# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 15 · Preferences: solutions
#
# The exercises of [15](../15_preferences.ipynb), solved and run. Try first; a check that names your
# mistake teaches more than a listing.

# %%
import torch
from torch.nn.functional import logsigmoid
from rlnb import check
from rlnb.objective.preference import Pairs, dpo
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 DPO from tokens
#
# The `where` stands before the sum: NaN times 0 is NaN. `logsigmoid(x)` is computed as
# $\min(x,0)-\log(1+e^{-|x|})$; `log(sigmoid(x))` is minus infinity where the sigmoid has
# underflowed, and that is the pair that needs the gradient most.

# %% tags=["solution"]
def my_dpo_loss(logprobs, ref_logprobs, mask, beta):
    per_token = torch.where(mask, logprobs - ref_logprobs, 0)
    h = per_token.sum(1)                               # (2 P,)
    chosen, rejected = h.chunk(2)
    return -logsigmoid(beta * (chosen - rejected)).mean()

check.dpo_loss(my_dpo_loss)

# %% [markdown]
# The gradient, on 1,000 random pairs of up to 9 tokens, against the package:

# %%
dice = torch.Generator().manual_seed(0)
logp = -2 * torch.rand(2000, 9, generator=dice)
logp.requires_grad_()
ref = logp.detach() + 0.3 * torch.randn(2000, 9, generator=dice)
mask = torch.arange(9) < torch.randint(1, 10, (2000, 1), generator=dice)
mine, = torch.autograd.grad(my_dpo_loss(logp, ref, mask, 0.1), logp)
theirs, = torch.autograd.grad(
    dpo(Pairs.from_tokens(logp, mask, ref)).mean(), logp)
print(f"largest difference {(mine - theirs).abs().max():.1e}")
assert torch.equal(mine != 0, mask)

# %% [markdown]
# ## 2 IPO and SimPO
#
# In IPO β stands in the target only. In SimPO it multiplies both rewards, and γ is subtracted
# after that: TRL writes $\beta(\text{gap}-\gamma/\beta)$, which is the same.

# %% tags=["solution"]
def my_ipo_loss(chosen, rejected, ref_chosen, ref_rejected, beta):
    gap = (chosen - ref_chosen) - (rejected - ref_rejected)
    return ((gap - 1 / (2 * beta)) ** 2).mean()

check.ipo_loss(my_ipo_loss)

# %% tags=["solution"]
def my_simpo_loss(chosen, rejected, chosen_length, rejected_length,
                  beta, gamma):
    gap = chosen / chosen_length - rejected / rejected_length
    return -logsigmoid(beta * gap - gamma).mean()

check.simpo_loss(my_simpo_loss)

# %% [markdown]
# ## 3 The silent bug
#
# `rewards.argsort()[:P]` are the lowest rewards of the *batch*. When one prompt is hard they are
# all its answers. In $r_w-r_l$ the two $\beta\log Z$ no longer cancel, and what the pair teaches is
# which prompt is easy. Both rows of a pair must answer the same prompt:

# %% tags=["solution"]
def my_test(make_pairs):
    rewards = torch.tensor([1.0, 0.9, 0.8, 0.2, 0.1, 0.0])   # 2 prompts
    chosen, rejected = make_pairs(rewards, 3)
    return torch.equal(chosen // 3, rejected // 3)

check.silent_bug_preferences(my_test)

# %% [markdown]
# ## 4 The reward model's loss

# %% tags=["solution"]
def my_bradley_terry(chosen, rejected, margin):
    return -logsigmoid(chosen - rejected - margin).mean()

check.bradley_terry(my_bradley_terry)

# %% [markdown]
# Add a number to all scores: nothing changes. So a trained reward model has a free offset (per
# prompt, in principle), and its scores mean nothing alone.

# %%
r_w, r_l = torch.tensor([1.2, -0.4]), torch.tensor([0.3, 0.5])
for offset in (0.0, 100.0):
    value = my_bradley_terry(r_w + offset, r_l + offset, torch.zeros(2))
    print(f"offset {offset:3.0f}: loss {value:.6f}")
