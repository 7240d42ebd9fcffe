# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 18 · agents: solutions
#
# The exercises of [18](../18_agents.ipynb), solved and run. Try first; a check that names your
# mistake teaches more than a listing.

# %%
import torch
from rlnb import check
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 Whose tokens
#
# Two conditions on a token, its author and its place. Then one step to the left: the prediction of
# token $t+1$ stands in column $t$, so the first column goes.

# %% tags=["solution"]
def my_observation_mask(role, prompt_length):
    place = torch.arange(role.shape[1])
    own = (role == 2) & (place >= prompt_length[:, None])   # (B, L)
    return own[:, 1:]                                       # (B, L - 1)

check.observation_mask(my_observation_mask)

# %% [markdown]
# ## 2 Credit by turn
#
# From the back along the turns; a mean inside each group, over those that have the turn; then from
# turns to tokens. An index of −1 would fetch the last turn's number: clamp it, and put 0 there.

# %% tags=["solution"]
def my_turn_advantages(rewards, turn, num_generations):
    K = rewards.shape[1]
    to_go = rewards.flip(1).cumsum(1).flip(1)               # (B, K)
    has = torch.arange(K) <= turn.amax(1, keepdim=True)     # (B, K)
    G = torch.where(has, to_go, 0.0).view(-1, num_generations, K)
    count = has.view(G.shape).sum(1, keepdim=True).clamp(min=1)
    A = (G - G.sum(1, keepdim=True) / count).view(-1, K)
    return torch.where(turn >= 0, A.gather(1, turn.clamp(min=0)), 0.0)

check.turn_advantages(my_turn_advantages)

# %% [markdown]
# With the reward only at the end all turns of a row share one number, and this is GRPO without the
# std.
#
# ## 3 The silent bug
#
# The memory is set to 0 once, before the loop over trajectories. The first one is right. The second
# starts with what the first has left, and only `x=` can show it.

# %% tags=["solution"]
def my_test(replies):
    first, second = replies([["4+3="], ["x="]])
    assert first == ["7"]
    assert second == ["0"]              # a fresh desk remembers nothing

check.silent_bug_agents(my_test)

# %% [markdown]
# ## 4 The careless grader
#
# Its verdict is the turn's own right or wrong, turned round with probability $e$. The push is ¼
# where the verdict is true and −¼ where it is not:
#
# $$\text{mean}=\frac{1-2e}4,\qquad\mathrm{Var}=\frac1{16}-\frac{(1-2e)^2}{16},\qquad\frac{4\,\mathrm{Var}}{\text{mean}^2}=4\Big(\frac1{(1-2e)^2}-1\Big)$$
#
# Set it equal to $4(T-1)$: $(1-2e)^2=1/T$.

# %% tags=["solution"]
def my_break_even(turns):
    return (1 - 1 / turns.sqrt()) / 2

check.break_even_error(my_break_even)

# %%
for T in (4, 32, 128):
    e = my_break_even(torch.tensor(float(T)))
    print(f"{T:3d} turns: e = {e:.3f}")
