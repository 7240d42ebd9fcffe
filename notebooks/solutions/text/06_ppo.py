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
# The exercises of [06](../06_ppo.ipynb), solved and run. Try first; a check that names your mistake
# teaches more than a listing.

# %%
import torch
from rlnb import check
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 The push on each token
#
# Let $A>0$. Then $\min(\rho A,\mathrm{clip}(\rho)A)=A\min(\rho,\mathrm{clip}(\rho))$. For
# $\rho\le1+\epsilon$ the smaller factor is ρ: inside the band the two agree, and below it the clip
# is the larger, $1-\epsilon>\rho$. For $\rho>1+\epsilon$ it is the constant $1+\epsilon$.
#
# Let $A<0$. A negative factor turns the min into a max, $A\max(\rho,\mathrm{clip}(\rho))$: that is
# ρ for $\rho\ge1-\epsilon$ and the constant $1-\epsilon$ below.
#
# A constant has no gradient, and $\partial\rho/\partial\log\pi_\theta=\rho$. So, away from the two
# edges,
#
# $$\frac{\partial L_t}{\partial\log\pi_\theta}=\rho A\cdot
# \begin{cases}\mathbb 1[\rho\le1+\epsilon]&A>0\\ \mathbb 1[\rho\ge1-\epsilon]&A<0\end{cases}$$
#
# On the first step $\rho=1$: both indicators are 1 and what is left is $A$, REINFORCE with a
# baseline.

# %% tags=["solution"]
def my_push(ratio, advantage, epsilon):
    risen_good = (advantage > 0) & (ratio > 1 + epsilon)
    fallen_bad = (advantage < 0) & (ratio < 1 - epsilon)
    return torch.where(risen_good | fallen_bad, 0, ratio * advantage)

check.surrogate_push(my_push)

# %% [markdown]
# Against autograd, on 10,000 random tokens:

# %%
g = torch.Generator().manual_seed(0)
logp = torch.rand(10_000, generator=g) - 0.5                 # log rho
A = 2 * torch.rand(10_000, generator=g) - 1
logp.requires_grad_()
rho = logp.exp()
torch.minimum(rho * A, rho.clamp(0.8, 1.2) * A).sum().backward()
by_hand = my_push(rho, A, 0.2).detach()
print("largest difference below 1e-12:",
      (by_hand - logp.grad).abs().max().item() < 1e-12)
print(f"silent: {(by_hand == 0).sum()} of {len(A)}")
assert torch.allclose(by_hand, logp.grad, rtol=0, atol=1e-12)

# %% [markdown]
# ## 2 The value without `minimum`
#
# The same two conditions: where a token is silent its value is a constant, the edge times $A$.

# %% tags=["solution"]
def my_surrogate_clip(ratio, advantage, epsilon):
    low, high = 1 - epsilon, 1 + epsilon
    risen_good = (advantage > 0) & (ratio > high)
    fallen_bad = (advantage < 0) & (ratio < low)
    value = ratio * advantage
    value = torch.where(risen_good, high * advantage, value)
    return torch.where(fallen_bad, low * advantage, value)

check.surrogate_clip(my_surrogate_clip)

# %% [markdown]
# The same two conditions are the clip fraction:

# %% tags=["solution"]
def my_clip_fraction(ratio, advantage, mask, epsilon):
    risen_good = (advantage > 0) & (ratio > 1 + epsilon)
    fallen_bad = (advantage < 0) & (ratio < 1 - epsilon)
    silent = (risen_good | fallen_bad) & mask
    return silent.to(ratio.dtype).sum() / mask.sum().clamp(min=1)

check.clip_fraction(my_clip_fraction)

# %% [markdown]
# It cannot forget the sign of $A$. The other line of the log; `entr` knows that 0 log 0 counts as
# 0:

# %% tags=["solution"]
def my_token_entropy(logits):
    return torch.special.entr(logits.softmax(-1)).sum(-1)

check.token_entropy(my_token_entropy)

# %% [markdown]
# ## 3 The inner loop
#
# The old log-probabilities are numbers of the policy that drew: once, before the loop. All else is
# anew in each step.

# %% tags=["solution"]
def my_reuse(logits, answers, advantages, epochs, lr, epsilon):
    old = logits.detach().log_softmax(-1)[answers]
    z = logits.detach()
    for _ in range(epochs):
        z = z.detach().requires_grad_()
        rho = (z.log_softmax(-1)[answers] - old).exp()
        clipped = rho.clamp(1 - epsilon, 1 + epsilon)
        gain = torch.minimum(rho * advantages, clipped * advantages).mean()
        slope, = torch.autograd.grad(gain, z)
        z = z.detach() + lr * slope
    return z

check.reuse_batch(my_reuse)

# %% [markdown]
# ## Extra: the dual clip

# %% tags=["solution"]
def my_dual_clip(ratio, advantage, epsilon, c):
    value = my_surrogate_clip(ratio, advantage, epsilon)
    floor = torch.maximum(value, c * advantage)
    return torch.where(advantage < 0, floor, value)

check.dual_clip(my_dual_clip)

# %% [markdown]
# The `where` matters. Where $A>0$ the maximum with $cA$ would lift every token to the constant
# $cA$, above its clip, and leave no gradient at all.
#
# ## 4 The silent bug
#
# Ask for one number in one corner. A bad token that rose to 1.5 counts in full: −1.5, not −1.2.

# %% tags=["solution"]
def my_test(surrogate):
    value = surrogate(torch.tensor([1.5]), torch.tensor([-1.0]))
    assert torch.allclose(value, torch.tensor([-1.5]))

check.silent_bug_ppo(my_test)

# %% [markdown]
# Or for all four slopes, which say more about what goes wrong:

# %%
def colleague(ratio, advantage, epsilon=0.2):
    raw = ratio * advantage
    cut = ratio.clamp(1 - epsilon, 1 + epsilon) * advantage
    return torch.where(advantage >= 0, torch.min(raw, cut),
                       torch.max(raw, cut))

def right(ratio, advantage):
    return my_surrogate_clip(ratio, advantage, 0.2)

def slopes(surrogate):
    rho = torch.tensor([1.5, 0.5, 1.5, 0.5], requires_grad=True)
    A = torch.tensor([1.0, 1.0, -1.0, -1.0])
    surrogate(rho, A).sum().backward()
    return [round(s, 4) + 0.0 for s in rho.grad.tolist()]

print("right    ", slopes(right))
print("colleague", slopes(colleague))
assert slopes(right) == [0, 1, -1, 0]
assert slopes(colleague) == [0, 1, 0, -1]

# %% [markdown]
# For $A<0$ the two corners are exchanged. A bad token that rose is dead: the mistake stays. A bad
# token that fell is pushed down without end, which is the collapse that the clip was there to slow.
# The pessimist takes the smaller of the two *values* for either sign. Since $A$ is inside the
# products, the `min` over them already turns into a max over the ratios where $A<0$; taking the max
# a second time undoes it.
#
# The reward curve looks fine: inside the band, and for all $A>0$, the two functions are the same.
# Ten arms with rewards from 0 to 1, exact, four steps per batch:

# %%
def reward_curve(surrogate, lr=2.0, epochs=4):
    rewards, z, curve = torch.linspace(0, 1, 10), torch.zeros(10), []
    for _ in range(40):
        old = z.log_softmax(0)
        p, A = old.exp(), rewards - (old.exp() * rewards).sum()
        for _ in range(epochs):
            z = z.detach().requires_grad_()
            rho = (z.log_softmax(0) - old).exp()
            J = (p * surrogate(rho, A)).sum()
            z = (z + lr * torch.autograd.grad(J, z)[0]).detach()
        curve.append((z.softmax(0) * rewards).sum().item())
    return [round(x, 4) for x in curve[::10] + curve[-1:]]

for name, J in (("right", right), ("colleague", colleague)):
    print(f"{name:9s} mean reward after batch 1, 11, 21, 31, 40:",
          reward_curve(J))

# %% [markdown]
# What gives it away during training is the smallest ratio. Forty steps on one batch of four arms,
# and no brake on the bad one:

# %%
def smallest_ratio(surrogate, steps=40, lr=0.05):
    z, A = torch.zeros(4), torch.tensor([1.0, -1.0, 0.0, 0.0])
    old = z.log_softmax(0)
    for _ in range(steps):
        z = z.detach().requires_grad_()
        rho = (z.log_softmax(0) - old).exp()
        g, = torch.autograd.grad(surrogate(rho, A).sum(), z)
        z = (z + lr * g).detach()
    return (z.log_softmax(0) - old).exp().min().item()

for name, J in (("right", right), ("colleague", colleague)):
    print(f"{name:9s} smallest ratio {smallest_ratio(J):.4f}")
assert smallest_ratio(colleague) < 0.5 * smallest_ratio(right)
