# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 16 · Rewards: solutions
#
# The exercises of [16](../16_rewards.ipynb), solved and run. Try first: reading a solution feels
# like knowing it.

# %%
import torch
from rlnb import check
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## 1 The KL of best of n
#
# The best one has density $n\,u^{n-1}$. The mean of its log, over itself, is
# $\log n+(n-1)\cdot(-1/n)$.

# %% tags=["solution"]
def best_of_n_kl(n):
    return n.log() - (n - 1) / n


check.best_of_n_kl(best_of_n_kl)

# %% [markdown]
# ## 2 Keep the best
#
# Where all answers fail, `argmax` still names one. The last factor throws it out.

# %% tags=["solution"]
def keep_best(rewards, least):
    first = rewards.argmax(1, keepdim=True)
    chosen = torch.zeros_like(rewards).scatter(1, first, 1.0)
    return chosen * (rewards >= least)


check.keep_best(keep_best)

# %% [markdown]
# ## 3 Several rewards
#
# Mean and std run over the answers, dimension 1; the rewards are summed last. The small number
# keeps a reward that all answers share at 0.

# %% tags=["solution"]
def advantages(rewards):
    mean = rewards.mean(1, keepdim=True)
    std = rewards.std(1, correction=0, keepdim=True)
    return ((rewards - mean) / (std + 1e-6)).sum(2)


check.several_rewards(advantages)

# %% [markdown]
# ## 4 The silent bug
#
# It puts a drawn sample back. Of $K$ samples the best of $K$ is the top one, for certain. The right
# weight of the $k$-th is $\binom{k-1}{n-1}/\binom Kn$: it is in, and the other $n-1$ come from
# below it.

# %% tags=["solution"]
def test(estimate):
    gold = torch.tensor([0.3, -1.0, 2.0, 0.5])
    score = torch.tensor([0.1, 0.9, 0.4, 0.7])
    assert torch.isclose(estimate(gold, score, 4), gold[score.argmax()])


check.silent_bug_rewards(test)
