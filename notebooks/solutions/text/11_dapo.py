# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 11 · DAPO: solutions
#
# The exercises of [11](../11_dapo.ipynb), solved and run. Try first: reading a solution feels like
# knowing it.

# %%
import torch
from rlnb import ZOO, check
from rlnb.toys import running_batch
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## 1 What the log says
#
# Split the mean reward of all groups by what the group is. All right contributes 1, all wrong 0, a
# mixed one $m$, which is what we look for:
#
# $$p = 1\cdot p^G + 0\cdot(1-p)^G + m\,P\qquad\Longrightarrow\qquad m=\frac{p-p^G}{1-p^G-(1-p)^G}.$$

# %% tags=["solution"]
def my_logged_reward(p, G):
    return (p - p**G) / (1 - p**G - (1 - p) ** G)

check.kept_reward(my_logged_reward)

# %%
for p in (0.01, 0.5, 0.95):
    print(f"solved {p:.2f} of the time: the log says "
          f"{my_logged_reward(torch.tensor(p), 8):.4f}")

# %% [markdown]
# Everything is pulled to the middle: nearly solved reads 0.85, nearly hopeless 0.13. And the price
# of a kept group, $1/P$ of the lesson, counted by drawing until one is mixed:

# %%
def mixed(p, G):
    return 1 - p**G - (1 - p)**G


gen = torch.Generator().manual_seed(0)
p, G, pools = 0.1, 8, 20_000
drawn = torch.zeros(pools)
waiting = torch.ones(pools, dtype=torch.bool)
while waiting.any():                                   # refill until mixed
    drawn += waiting
    right = (torch.rand(pools, G, generator=gen) < p).sum(1)
    waiting &= (right == 0) | (right == G)
error = drawn.std() / pools**0.5
print(f"p = {p}, G = {G}: 1/P = {1 / mixed(p, G):.4f}")
assert abs(drawn.mean() - 1 / mixed(p, G)) < 4 * error
for p in (0.1, 0.01, 0.001):
    print(f"p = {p}: 1/p = {1 / p:6.0f}, answers at G = 8, 16, 64:",
          *(f"{G / mixed(p, G):8.1f}" for G in (8, 16, 64)))
    assert all(G / mixed(p, G) > 1 / p for G in (8, 16, 64))
print(f"p = 0.5, G = 16: {16 / mixed(0.5, 16):.4f}")

# %% [markdown]
# At $p=0.1$ and $G=64$ the approximation $1/p$ no longer applies: $Gp=6.4$, almost every group is
# mixed, and a group costs its 64 answers.
#
# ## 2 The fates
#
# One running count over all groups in the order of drawing answers both questions. Who trains: the
# mixed groups up to the `wanted`-th. Which rounds exist: those before which fewer than `wanted`
# were together.

# %% tags=["solution"]
def my_fates(rewards, wanted):
    """rewards (rounds, N, G) -> (rounds, N)"""
    mixed = rewards.amax(2) > rewards.amin(2)
    so_far = mixed.flatten().cumsum(0).view(mixed.shape)
    trained = mixed & (so_far <= wanted)
    before = so_far[:, -1] - mixed.sum(1)              # before the round
    generated = (before < wanted)[:, None].expand_as(mixed)
    return generated.to(rewards.dtype) + trained

check.refill_fates(my_fates)

# %% [markdown]
# ## 3 Right and wrong first
#
# The filter asks whether the *rewards* of a group differ, and by then the penalty is in them. An
# all-wrong group with answers on both sides of the edge differs, is kept, and the z-score turns a
# difference in length into advantages of full size. The share of kept groups rises, which looks
# like good news. With short answers, or in tests where all lengths are equal, nothing shows.

# %% tags=["solution"]
def all_wrong_is_never_kept(mixed_groups):
    correct = torch.zeros(4)
    lengths = torch.tensor([90.0, 95.0, 20.0, 100.0])  # the edge is at 80
    kept = mixed_groups(correct, lengths, 4, 100, 20)
    assert len(kept) == 0, "no answer is right: nothing to learn"


check.silent_bug_dapo(all_wrong_is_never_kept)

# %% [markdown]
# The mend: decide on `correct`, then add the penalty.

# %%
def mixed_groups(correct, lengths, num_generations, max_length, cache):
    groups = correct.view(-1, num_generations)
    mixed = groups.amax(1) > groups.amin(1)
    over = (lengths - (max_length - cache)) / cache
    rewards = correct - over.clamp(0, 1)
    return rewards.view(-1, num_generations)[mixed]


all_wrong_is_never_kept(mixed_groups)
b = running_batch()
kept = mixed_groups(b.rewards, b.lengths, 4, 7, 3)
print(kept.round(decimals=4).tolist())
assert kept.shape == (2, 4)

# %% [markdown]
# ## The penalty (statements page)
#
# The three cases of the formula are one clamp. Without its upper half the check accepts it as well
# and says whose form that is.

# %% tags=["solution"]
def my_overlong_penalty(lengths, max_length, cache):
    used = (lengths - (max_length - cache)) / cache    # share of the cache
    return -used.clamp(0, 1)

check.overlong_penalty(my_overlong_penalty)

# %% [markdown]
# ## The name (statements page)
#
# A band from 0.8 to 1.28 with `min`: clip-higher, so neither GRPO nor CISPO. A std: not Dr. GRPO. A
# sum over answers *and* tokens, divided by the tokens of the prompt, then a mean over prompts:
# DAPO's equation as printed.

# %% tags=["solution"]
check.name_this_dapo("DAPO")

# %%
def loss(ratio, rewards, mask):            # (N, G, T), (N, G), (N, G, T)
    A = rewards - rewards.mean(1, keepdim=True)
    A = (A / (rewards.std(1, keepdim=True) + 1e-6)).unsqueeze(-1)
    worth = torch.minimum(ratio * A, ratio.clamp(0.8, 1.28) * A)
    share = (worth * mask).sum((1, 2)) / mask.sum((1, 2))
    return -share.mean()


from rlnb.objective import group_zscore, prompt_mean

ratio = (b.logprobs - b.old_logprobs).exp()
mine = loss(*(x.view(2, 4, *x.shape[1:]) for x in
              (ratio, b.rewards, b.completion_mask)))
printed = ZOO["dapo"].replace(weights=prompt_mean,
                       advantage=group_zscore("bessel", eps=1e-6))
print(f"the colleague's {mine:.6f}, DAPO as printed {printed(b).loss:.6f}")
assert abs(mine - printed(b).loss) < 1e-12
