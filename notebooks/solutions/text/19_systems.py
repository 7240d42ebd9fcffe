# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 19 · Systems: solutions
#
# The exercises of [19](../19_systems.ipynb), solved and run. Try first; a check that names your
# mistake teaches more than a listing.

# %%
import torch
from rlnb import check
from rlnb.toys.rollout_queue import simulate
from rlnb.training.studies.cluster_memory import memory_bytes
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 Bytes on each GPU
#
# Stage 1 splits AdamW's 12 bytes, stage 2 also the gradients, stage 3 also the weights, of the
# frozen models too.

# %% tags=["solution"]
def my_memory(parameters, trained, frozen, gpus, stage):
    weights = 2 / (gpus if stage >= 3 else 1)
    gradients = 2 / (gpus if stage >= 2 else 1)
    adamw = 12 / (gpus if stage >= 1 else 1)
    return parameters * (trained * (weights + gradients + adamw)
                         + frozen * weights)

check.memory_bytes(my_memory)

# %%
for stage in range(4):
    mine = my_memory(torch.tensor(7.62), 1, 1, 8, stage)
    print(f"7.6B with a reference, 8 cards, stage {stage}: {mine:.1f} GB")
    assert abs(mine - memory_bytes(7.62, 1, 1, 8, stage)) < 1e-9

# %% [markdown]
# ## 2 The mean age

# %% tags=["solution"]
def my_age(begun, taken, updates):
    after = updates > begun[:, None]               # (n, m)
    before = updates <= taken[:, None]
    return (after & before).to(begun.dtype).sum(1).mean()

check.queue_age(my_age)

# %% [markdown]
# On the simulation of the lesson it gives what the versions say:

# %%
run = simulate(64, 64, 1, 1.0)
rows = [(a.begun, run.steps[v][0], v - a.version)
        for v in range(12, 24) for a in run.trained[v]]
begun, taken, ages = torch.tensor(rows).T
updates = torch.tensor([end for _, end in run.steps])
print(f"{my_age(begun, taken, updates):.4f} = {ages.mean():.4f}")
assert torch.isclose(my_age(begun, taken, updates), ages.mean())

# %% [markdown]
# ## 3 The corrected loss
#
# The weight is a constant of the data: it is detached, or its own gradient comes along. And what
# stands under the mask is replaced before `exp`.

# %% tags=["solution"]
def my_loss(logprobs, engine_logprobs, mask, advantages, cap):
    log_pi = torch.where(mask, logprobs, 0.0)
    log_mu = torch.where(mask, engine_logprobs, 0.0)
    w = (log_pi - log_mu).exp().clamp(max=cap).detach()
    per_token = torch.where(mask, w * advantages[:, None] * log_pi, 0.0)
    return -per_token.sum() / mask.sum()

check.corrected_loss(my_loss)

# %% [markdown]
# ## 4 The silent bug
#
# `heads * head_dim` is the width of the queries. Keys and values have `kv_heads`. On a model
# without grouped queries the two are equal, so the test must use one where they are not.

# %% tags=["solution"]
def my_test(cache_bytes):
    assert cache_bytes(1, 8, 2, 4, 1) == 2 * 2 * 4 * 2

check.silent_bug_systems(my_test)
