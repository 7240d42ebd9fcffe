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
# The exercises of [07](../07_critic.ipynb), solved and run. Try first; a check that names your mistake teaches more than a listing.

# %%
import torch
from rlnb import check
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 · GAE for one answer
#
# All the surprises first, with 0 behind the last value; then one walk backwards.

# %% tags=["solution"]
def my_gae(rewards, values, gamma, lam):
    after = torch.cat([values[1:], values.new_zeros(1)])
    delta = rewards + gamma * after - values                 # (T,)
    running, backwards = torch.zeros_like(delta[0]), []
    for d in reversed(delta):
        running = d + gamma * lam * running
        backwards.append(running)
    return torch.stack(backwards[::-1])

check.gae(my_gae)

# %% [markdown]
# Why the walk is right, with γ: take the first term out of the sum and rename $l=k+1$ in the rest.
#
# $$A_t=\delta_t+\sum_{l\ge1}(\gamma\lambda)^l\delta_{t+l}
# =\delta_t+\gamma\lambda\sum_{k\ge0}(\gamma\lambda)^k\delta_{t+1+k}=\delta_t+\gamma\lambda A_{t+1}$$
#
# And why λ = 1 is the return minus $V_t$. Write $n=T-t$ for the distance to the last token:
#
# $$\sum_{l=0}^{n}\gamma^l\big(r_{t+l}+\gamma V_{t+l+1}-V_{t+l}\big)
# =\sum_{l=0}^{n}\gamma^lr_{t+l}+\sum_{l=1}^{n+1}\gamma^lV_{t+l}-\sum_{l=0}^{n}\gamma^lV_{t+l}$$
#
# Everything from $l=1$ to $n$ cancels. What is left is the discounted return, minus $V_t$, plus $\gamma^{n+1}V_{T+1}$. The last term is where $V_{T+1}=0$ is needed:
# bootstrap from the last value instead, and λ = 1 is no longer Monte Carlo.

# %%
g = torch.Generator().manual_seed(3)
r, V = torch.rand(5, generator=g), torch.rand(5, generator=g)
to_go = torch.stack([sum(0.9 ** (k - t) * r[k] for k in range(t, 5))
                     for t in range(5)])
gap = (my_gae(r, V, 0.9, 1.0) - (to_go - V)).abs().max().item()
print("lambda 1 is return minus V, to 1e-12:", gap < 1e-12)
assert gap < 1e-12

# %% [markdown]
# A use of it. 200 tokens, reward 1 at the end, a critic that says 0 everywhere, λ = 0.95: how many tokens get an advantage above one half? At distance $d$ from the last
# token it is $0.95^d$, and one half is passed between $d=13$ and 14. Fourteen tokens, distances 0 to 13; the first token sees four parts in 100,000.

# %%
r = torch.zeros(200)
r[-1] = 1.0
shares = my_gae(r, torch.zeros(200), 1.0, 0.95)
print("above one half:", (shares > 0.5).sum().item(), "tokens")
print(f"0.95^13 {shares[-14]:.4f}, 0.95^14 {shares[-15]:.4f}, "
      f"first token {shares[0].item():.1e}")
assert (shares > 0.5).sum() == 14

# %% [markdown]
# ## 2 · The λ at which the sign tips
#
# At the two tokens the surprises differ by the *claimed* lead. The critic keeps its error for `lasts` tokens; then it sees the truth, and the surprises there differ by
# *true* minus *claimed*. GAE counts that one $\lambda^\text{lasts}$. So the lead in the mean push is
#
# $$\begin{aligned}
# &\text{claimed}+\lambda^\text{lasts}(\text{true}-\text{claimed})&&\gamma=1\\
# =\;&(1-\lambda^\text{lasts})\,\text{claimed}+\lambda^\text{lasts}\,\text{true}&&\text{collected}
# \end{aligned}$$
#
# It is 0 at $\lambda^\text{lasts}=\text{claimed}/(\text{claimed}-\text{true})$, which lies between 0 and 1 because claimed < 0 < true.

# %% tags=["solution"]
def my_tipping_lambda(claimed, true, lasts):
    return (claimed / (claimed - true)) ** (1 / lasts)

check.tipping_lambda(my_tipping_lambda)

# %% [markdown]
# Against GAE itself: two answers whose critic errs for `lasts` tokens after the first one, and is right from then on. The lesson's leads, −0.2 and 0.7:

# %%
def lead(lam, lasts, claimed=-0.2, true=0.7):
    """A of the first token, better minus worse; the end as expected."""
    A = []
    for error, value in ((claimed, true), (0.0, 0.0)):
        V = torch.tensor([0.0] + [error] * lasts + [value])
        r = torch.zeros(lasts + 2)
        r[-1] = value
        A.append(my_gae(r, V, 1.0, lam)[0].item())
    return A[0] - A[1]

for lasts in (1, 2, 30, 80):
    tip = my_tipping_lambda(torch.tensor(-0.2), torch.tensor(0.7),
                            lasts).item()
    print(f"lasts {lasts:2d}: tips at {tip:.4f}; lead there is 0:",
          abs(lead(tip, lasts)) < 1e-12)
    assert lead(tip - 0.01, lasts) < 0 < lead(tip + 0.001, lasts)

# %% [markdown]
# One token: 2/9. Thirty tokens: just above 0.95, as the second task of the lesson found.
#
# ## 3 · The silent bug
#
# At λ = 1 and γ = 1 the critic's target is the return, whatever the critic says: with a single reward of 1 at the end it is 1 at every token.

# %% tags=["solution"]
def my_test(advantages_and_targets):
    rewards = torch.tensor([0.0, 0.0, 0.0, 1.0])
    values = torch.tensor([0.3, 0.6, 0.2, 0.7])
    _, targets = advantages_and_targets(rewards, values, 1.0, 1.0)
    assert torch.allclose(targets, torch.ones(4))

check.silent_bug_critic(my_test)

# %% [markdown]
# The mend is the order: targets first, from the raw advantages; whiten a copy for the policy. What the colleague's critic is told instead:

# %%
def colleague(rewards, values, gamma, lam):
    A = my_gae(rewards, values, gamma, lam)
    A = (A - A.mean()) / (A.std(correction=0) + 1e-8)        # whiten
    return A, A + values

rewards = torch.tensor([0.0, 0.0, 0.0, 1.0])
perfect = torch.ones(4)
for name, V in (("a critic that errs", torch.tensor([0.3, 0.6, 0.2, 0.7])),
                ("almost perfect", perfect - 0.01 * torch.arange(4.0))):
    _, targets = colleague(rewards, V, 1.0, 1.0)
    print(f"{name:19s} says", [round(x, 2) for x in V.tolist()],
          "and is told", [round(x, 2) for x in targets.tolist()])
assert (targets - perfect).abs().max() > 1

# %% [markdown]
# However good the critic gets, whitening blows what is left up to size 1. So it is pushed about by more than one for an error of a hundredth, and never comes to rest.
