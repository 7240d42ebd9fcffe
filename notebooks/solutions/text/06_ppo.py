# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06 · PPO: solutions
#
# Every exercise of page 06, solved and run. Try first; a check that names your mistake teaches more
# than a listing.

# %%
import torch
from rlnb import ZOO, check
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 06.1 The indicator
#
# Let $A>0$. Then $\min(\rho A,\mathrm{clip}(\rho)A)=A\min(\rho,\mathrm{clip}(\rho))$. For
# $\rho\le1+\epsilon$ the smaller factor is ρ: inside the band the two agree, and below it the clip
# is the larger, $1-\epsilon>\rho$. For $\rho>1+\epsilon$ it is the constant $1+\epsilon$.
#
# Let $A<0$. A negative factor turns the min into a max,
# $A\max(\rho,\mathrm{clip}(\rho))$: that is ρ for $\rho\ge1-\epsilon$ and the constant $1-\epsilon$
# below.
#
# A constant has no gradient, and $\nabla\rho=\rho\nabla\log\pi_\theta$. So, away from the two edges,
#
# $$\nabla J=\rho A\,\nabla\log\pi_\theta\cdot
# \begin{cases}\mathbb 1[\rho\le1+\epsilon]&A>0\\ \mathbb 1[\rho\ge1-\epsilon]&A<0\end{cases}$$
#
# On the first step $\rho=1$: both indicators are 1 and what is left is $A\,\nabla\log\pi_\theta$,
# REINFORCE with a baseline. Against autograd, on 10,000 random tokens:

# %%
g = torch.Generator().manual_seed(0)
logp = torch.rand(10_000, generator=g) - 0.5                 # log rho
A = 2 * torch.rand(10_000, generator=g) - 1
logp.requires_grad_()
rho = logp.exp()
torch.minimum(rho * A, rho.clamp(0.8, 1.2) * A).sum().backward()
alive = torch.where(A > 0, rho <= 1.2, rho >= 0.8)
by_hand = (rho * A * alive).detach()
print("largest difference below 1e-12:",
      (by_hand - logp.grad).abs().max().item() < 1e-12)
assert torch.allclose(by_hand, logp.grad, rtol=0, atol=1e-12)

# %% [markdown]
# ## 06.2 Negated advantages
#
# Four again. Outside the band a token is either dead or alive, and negating $A$ exchanges the two:
# the four that were cut come alive, the four that were alive are cut. With no $A=0$ the two counts
# always add up to the number of tokens outside.

# %%
batch = running_group()
stand_in = batch.rewards - batch.rewards.mean()
cut = {}
for sign in (1, -1):
    out = ZOO["ppo"](batch.replace(advantages=sign * stand_in))
    cut[sign] = round(out.metrics["clip_ratio/region_mean"] * 16)
    print(f"A times {sign:+d}: {cut[sign]} tokens cut")
assert cut == {1: 4, -1: 4}

# %% [markdown]
# ## 06.3 Half of the reward
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
# ## 06.4 The surrogate without `minimum`

# %% tags=["solution"]
def my_surrogate_clip(ratio, advantage, epsilon):
    low, high = 1 - epsilon, 1 + epsilon
    cut_up = (advantage > 0) & (ratio > high)
    cut_down = (advantage < 0) & (ratio < low)
    value = ratio * advantage
    value = torch.where(cut_up, high * advantage, value)
    return torch.where(cut_down, low * advantage, value)

check.surrogate_clip(my_surrogate_clip)

# %% [markdown]
# Written like this the clip fraction is one line more: `(cut_up | cut_down).mean()` over the tokens
# of the mask, and it cannot forget the sign of $A$.
#
# ## 06.5 The dual clip

# %% tags=["solution"]
def my_dual_clip(ratio, advantage, epsilon, c):
    value = my_surrogate_clip(ratio, advantage, epsilon)
    floor = torch.maximum(value, c * advantage)
    return torch.where(advantage < 0, floor, value)

check.dual_clip(my_dual_clip)

# %% [markdown]
# The `where` matters. Where $A>0$ the maximum with $cA$ would lift every token above its clip and
# leave no gradient at all.
#
# ## 06.6 GAE for one answer

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
# ## 06.7 The recursion
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

# %% [markdown]
# ## 06.8 The silent bug
#
# Ask for the slope in the four corners.

# %% tags=["solution"]
def colleague(rho, A, epsilon=0.2):
    raw, clipped = rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A
    return torch.where(A >= 0, torch.minimum(raw, clipped),
                       torch.maximum(raw, clipped))

def slopes(objective):
    rho = torch.tensor([1.5, 0.5, 1.5, 0.5], requires_grad=True)
    A = torch.tensor([1.0, 1.0, -1.0, -1.0])
    objective(rho, A).sum().backward()
    return [round(s, 4) + 0.0 for s in rho.grad.tolist()]

def right(rho, A):
    return my_surrogate_clip(rho, A, 0.2)

print("right    ", slopes(right))
print("colleague", slopes(colleague))
assert slopes(right) == [0, 1, -1, 0]
assert slopes(colleague) != [0, 1, -1, 0], "the bug is exposed"

# %% [markdown]
# For $A<0$ the two corners are exchanged. A bad token that rose is dead: the mistake stays. A bad
# token that fell is pushed down without end, which is the collapse that the clip was there to slow.
# The pessimist takes the smaller of the two *values* for either sign. Since $A$ is inside the
# products, the `min` over them already turns into a max over the ratios where $A<0$; taking the max
# a second time undoes it.
#
# The reward curve looks fine because inside the band, and for all $A>0$, the two functions are the
# same. What gives it away during training is the smallest ratio. Forty steps on one batch of four
# arms, and no brake on the bad one:

# %%
def smallest_ratio(objective, steps=40, lr=0.05):
    z, A = torch.zeros(4), torch.tensor([1.0, -1.0, 0.0, 0.0])
    old = z.log_softmax(0)
    for _ in range(steps):
        z = z.detach().requires_grad_()
        rho = (z.log_softmax(0) - old).exp()
        g, = torch.autograd.grad(objective(rho, A).sum(), z)
        z = (z + lr * g).detach()
    return (z.log_softmax(0) - old).exp().min().item()

for name, J in (("right", right), ("colleague", colleague)):
    print(f"{name:9s} smallest ratio {smallest_ratio(J):.4f}")
assert smallest_ratio(colleague) < 0.5 * smallest_ratio(right)
