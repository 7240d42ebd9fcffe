# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 · Dr. GRPO: solutions
#
# The exercises of [10](../10_dr_grpo.ipynb), solved and run. Try first: reading a solution feels
# like knowing it.

# %%
import torch
from rlnb import ZOO, check, from_trl
from rlnb.objective import name_of
from rlnb.toys import running_batch
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 The factor
#
# Both over $1/G$: GRPO's token has $\frac{R_i-\bar R}{\sigma_R\,T_i}$, Dr. GRPO's
# $\frac{R_i-\bar R}{L_{\max}}$. The second over the first is $\sigma_R\,T_i/L_{\max}$. It is never
# above $1/2$ for rewards of 0 and 1.

# %% tags=["solution"]
def my_factor(rewards, lengths, max_length):
    return rewards.std(correction=0) * lengths / max_length

check.switch_factor(my_factor)

# %%
b = running_batch().replace(old_logprobs=None)       # fresh, L_max = 8
slopes = [torch.autograd.grad(o(b).loss, b.logprobs)[0][:, 0]
          for o in (ZOO["grpo"].replace(terms=()), ZOO["dr_grpo"])]
for rows in (slice(0, 4), slice(4, 8)):
    mine = my_factor(b.rewards[rows], b.lengths[rows], 8)
    print(" ".join(f"{x:.4f}" for x in mine.tolist()))
    ratio = slopes[1][rows] / slopes[0][rows]
    assert torch.allclose(ratio, mine, rtol=1e-5)

# %% [markdown]
# ## 2 The token mean on several GPUs
#
# One number, the tokens of the whole step, before any split: every GPU needs it, so it takes an
# `all_reduce`. Sums of pieces add up by themselves, since `backward()` accumulates. The average
# over GPUs divides by their number, so multiply by it first. (verl writes `* dp_size` for this.)

# %% tags=["solution"]
def my_losses(per_token, mask, rows, workers):
    kept = torch.where(mask, per_token, 0)
    tokens = mask.sum()                                  # of the whole step
    pieces = [piece.sum() for piece in kept.split(rows)]
    return torch.stack(pieces) * workers / tokens

check.worker_losses(my_losses)

# %% [markdown]
# ## 3 The silent bug
#
# `kept.shape[1]` is the padded width, not `max_length`. On a batch as wide as the limit nothing
# shows. What must not matter is padding: one more empty column, and the loss must stay.

# %% tags=["solution"]
def my_test(aggregate):
    per_token = torch.tensor([[1.0, 5.0], [2.0, 2.0]])
    mask = torch.tensor([[True, False], [True, True]])
    wide = [torch.nn.functional.pad(x, (0, 1)) for x in (per_token, mask)]
    assert torch.isclose(aggregate(per_token, mask, 8), aggregate(*wide, 8))

check.silent_bug_dr_grpo(my_test)

# %% [markdown]
# The mend: divide by `max_length`. In verl the same happens until `loss_scale_factor` is set.
#
# ## 4 The name
#
# `bnpo` is a token mean inside a micro-batch, averaged over micro-batches. Here a micro-batch is
# one answer, so it is the mean inside each answer, averaged over 64 answers: $1/T_i$. The std is
# divided by, the clip is symmetric, the KL coefficient is 0.04.

# %% tags=["solution"]
check.name_this_dr_grpo("GRPO")

# %%
words = dict(beta=0.04, use_bias_correction_kl=False)
theirs = from_trl(loss_type="bnpo", **words).objective
published = from_trl(loss_type="grpo", **words).objective
step = theirs.prepare(running_batch())
for rows in (1, 4):
    parts = [theirs.loss(step.rows(range(i, i + rows)))
             for i in range(0, 8, rows)]
    value = sum(parts) / len(parts)
    print(f"{rows} per device {value:.6f}, GRPO {published.loss(step):.6f}")
    same = abs(value - published.loss(step)) < 1e-12
    assert same == (rows == 1)
assert name_of(published) == "grpo"

# %% [markdown]
# With four rows per device the same file is another method.
#
# ## More practice
#
# Three rules, each a function of `per_token` and `mask`, both (B, T); what lies under the mask may
# be NaN. The token mean:

# %% tags=["solution"]
def my_token_mean(per_token, mask):
    return torch.where(mask, per_token, 0).sum() / mask.sum()

check.token_mean(my_token_mean)

# %% [markdown]
# Dr. GRPO's aggregation, with `max_length`:

# %% tags=["solution"]
def my_constant_length(per_token, mask, max_length):
    total = torch.where(mask, per_token, 0).sum()
    return total / (len(mask) * max_length)

check.constant_length(my_constant_length)

# %% [markdown]
# The prompt mean, with `num_generations`; rows $kG\dots kG+G-1$ answer prompt $k$, and all answers
# of a prompt may be empty:

# %% tags=["solution"]
def my_prompt_mean(per_token, mask, num_generations):
    clean = torch.where(mask, per_token, 0)
    blocks = (-1, num_generations, mask.shape[1])
    sums = clean.view(blocks).sum((1, 2))                # (P,)
    tokens = mask.view(blocks).sum((1, 2)).clamp(min=1)
    return (sums / tokens).mean()

check.prompt_mean(my_prompt_mean)
