# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 · The critic: solutions
#
# Every exercise of page 07, solved and run. Try first; a check that names your mistake teaches more
# than a listing.

# %%
import torch
from rlnb import check
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 GAE without a loop

# %% tags=["solution"]
def my_gae(rewards, values, gamma, lam):
    delta = rewards + gamma * torch.cat([values[1:], values.new_zeros(1)])
    delta = delta - values
    t = torch.arange(len(delta))
    later = (t - t[:, None]).clamp(min=0)                    # k - t
    counts = ((gamma * lam) ** later).triu().to(delta)       # (T, T)
    return counts @ delta

check.gae(my_gae)

# %% [markdown]
# ## 2 The λ at which the sign turns
#
# At the plan the critic claims its lead, $c$. The error $c-t$ shrinks to $q$ of itself per token,
# $q$ being `keeps`. So the $k$-th token after the plan corrects $(t-c)(1-q)\,q^{k-1}$, and GAE
# multiplies that by $\lambda^k$. The mean gradient goes with
#
# $$c+(t-c)(1-q)\sum_{k\ge1}\lambda^kq^{k-1}=c+(t-c)\,\frac{(1-q)\,\lambda}{1-q\lambda}=0
# \quad\Longleftrightarrow\quad\lambda=\frac{c}{c-(1-q)\,t}$$
#
# With $c=-0.2$, $t=0.7$, $q=0$ that is the lesson's $2/9$. With $q=0.9$ the error fades over some
# ten tokens, and λ has to pass $20/27$: less than the 0.86 <!-- cited: 0.86 --> that an error needs
# which lasts ten tokens and then ends, since this one is corrected a little from the first token
# on.

# %% tags=["solution"]
def my_tipping_lambda(claimed, true, keeps):
    return claimed / (claimed - (1 - keeps) * true)

check.tipping_lambda(my_tipping_lambda)

# %% [markdown]
# ## 3 The target that was whitened
#
# At λ = 1 and γ = 1 the advantage is the return minus the value, so the target, advantage plus
# value, is the return: 1 at every token of a right answer. The colleague adds a z-score to the
# value instead.

# %% tags=["solution"]
def my_test(advantages_and_targets):
    rewards = torch.tensor([0.0, 0.0, 1.0])
    values = torch.tensor([0.2, 0.5, 0.7])
    _, target = advantages_and_targets(rewards, values, 1.0, 1.0)
    assert torch.allclose(target, torch.ones(3)), target

check.silent_bug_critic(my_test)

# %% [markdown]
# ## Two more, from paper
#
# **How far does half of the reward reach?** A 200-token answer, reward 1 at the end, λ = 0.95.
#
# With $V=0$ and one reward at the end, $A_t=0.95^{d}$ at distance $d$ from the last token.
# $0.95^{13}=0.5133$ and $0.95^{14}=0.4877$, so distances 0 to 13: fourteen tokens of 200. The first
# token sees $0.95^{199}$, four parts in 100,000.

# %%
shares = torch.tensor([0.95**d for d in range(200)])
print("above one half:", (shares > 0.5).sum().item(), "tokens")
print(f"first token: {shares[-1].item():.1e}")
assert (shares > 0.5).sum() == 14

# %% [markdown]
# **The recursion, from the sum; and what λ = 1 needs.**
#
# Take the first term out of the sum and rename $l=k+1$ in the rest:
#
# $$A_t=\delta_t+\sum_{l\ge1}(\gamma\lambda)^l\delta_{t+l}
# =\delta_t+\gamma\lambda\sum_{k\ge0}(\gamma\lambda)^k\delta_{t+1+k}=\delta_t+\gamma\lambda A_{t+1}$$
#
# At λ = 1 write $n=T-t$ for the distance to the last token:
#
# $$\sum_{l=0}^{n}\gamma^l\big(r_{t+l}+\gamma V_{t+l+1}-V_{t+l}\big)
# =\sum_{l=0}^{n}\gamma^lr_{t+l}+\sum_{l=1}^{n+1}\gamma^lV_{t+l}-\sum_{l=0}^{n}\gamma^lV_{t+l}$$
#
# Everything from $l=1$ to $n$ cancels. What is left is the discounted return, minus $V_t$, plus
# $\gamma^{n+1}V_{T+1}$. The last term is where $V_{T+1}=0$ is needed: bootstrap from the last value
# instead, and λ = 1 is no longer Monte Carlo.

# %%
g = torch.Generator().manual_seed(3)
r, V = torch.rand(5, generator=g), torch.rand(5, generator=g)
to_go = torch.stack([sum(0.9 ** (k - t) * r[k] for k in range(t, 5))
                     for t in range(5)])
gap = (my_gae(r, V, 0.9, 1.0) - (to_go - V)).abs().max().item()
print("lambda 1 is return minus V, to 1e-12:", gap < 1e-12)
assert gap < 1e-12
