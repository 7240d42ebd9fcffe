# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 12 · CISPO, SAPO, DPPO: solutions
#
# The exercises of [12](../12_soft_trust_regions.ipynb), solved and run. Try first: reading a
# solution feels like knowing it.

# %%
import torch
from rlnb import ZOO, check
from rlnb.toys import running_batch
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## 1 CISPO

# %% tags=["solution"]
def cispo_loss(logprobs, old_logprobs, mask, advantages, cap):
    lp, old = (torch.where(mask, x, 0.0) for x in (logprobs, old_logprobs))
    weight = (lp - old).exp().clamp(max=cap).detach()
    worth = weight * advantages[:, None] * lp
    return -torch.where(mask, worth, 0.0).sum() / mask.sum()


check.cispo_loss(cispo_loss)

# %%
b = running_batch()
out = ZOO["cispo"](b)
mine = cispo_loss(b.logprobs, b.old_logprobs, b.mask,
                  out.advantages[:, 0], 5.0)
g, theirs = (torch.autograd.grad(loss, b.logprobs)[0]
             for loss in (mine, out.loss))
print(f"mine {mine:.6f}, the zoo's {out.loss:.6f}")
assert abs(mine - out.loss) < 1e-12
assert torch.allclose(g, theirs, atol=1e-12)

# %% [markdown]
# The check accepts $\log\rho$ or $\pi/\mathrm{sg}[\pi]$ in the place of $\log\pi$ and says so: the
# gradient is the same, and the value meant nothing anyway.
#
# ## 2 SAPO's gate

# %% tags=["solution"]
def sapo_gate(ratio, advantage, tau_pos, tau_neg):
    tau = torch.where(advantage > 0, torch.full_like(advantage, tau_pos),
                      torch.full_like(advantage, tau_neg))
    return 4 / tau * torch.sigmoid(tau * (ratio - 1))


check.sapo_gate(sapo_gate)

# %%
from rlnb.objective import sapo

rho = (b.logprobs - b.old_logprobs).exp()
A = out.advantages
assert torch.allclose(sapo_gate(rho, A, 1.0, 1.05) * A,
                      sapo()(b, A, rho.log()))
one = sapo_gate(torch.ones(2), torch.tensor([1.0, -1.0]), 1.0, 1.05)
print("f(1) for A > 0 and A < 0:", [round(x, 4) for x in one.tolist()])

# %% [markdown]
# ## 3 DPPO's mask
#
# No absolute value is needed: the direction and the distance are one comparison.

# %% tags=["solution"]
def dppo_mask(logprobs, old_logprobs, advantages, low, high):
    rise = logprobs.exp() - old_logprobs.exp()
    return torch.where(advantages > 0, rise <= high, -rise <= low)


check.dppo_mask(dppo_mask)

# %%
from rlnb.objective import divergence_mask

mine = dppo_mask(b.logprobs.detach(), b.old_logprobs, A, 0.1, 0.15)
part = divergence_mask(0.1, high=0.15)(b, A, None)
print("dropped:", (~mine & b.mask).nonzero().tolist())
assert torch.equal(mine[b.mask], part[b.mask].bool())

# %% [markdown]
# ## 4 An anchor that moves along
#
# `old` is taken inside the loop, so it is the policy of one line ago. The ratio is 1 in every
# update, nothing has moved, nothing is masked: the clip share of 0 is the symptom, not the proof of
# health. One update is right, and so is every test with one update. With many the policy goes where
# no mask would let it.

# %% tags=["solution"]
def one_batch_moves_a_token_a_little(train_on_batch):
    theta, arm, A = torch.zeros(3), torch.tensor([0]), torch.tensor([1.0])
    p = train_on_batch(theta, arm, A, updates=50).softmax(0)[0]
    assert p < 1 / 3 + 0.1 + 0.15, "the mass allowed, and one step over"


check.silent_bug_soft_trust_regions(one_batch_moves_a_token_a_little)

# %% [markdown]
# The mend is to move one line up, before the loop. In a trainer: compute the old log-probs once per
# batch and store them; or take the inference engine's, as DPPO does.
#
# ## 5 The name
#
# Ratios 6 and 2 are alive, 2.25 is dead; 0.80 and 0.84 are alive, 0.82 is dead: no band.
# Probability moved: 0.05, 0.10 (the way back), 0.30, 0.17, 0.14, 0.30 (the way back), 0.25. Dead is
# what moved more than 0.15 the way its advantage pushes.

# %% tags=["solution"]
check.name_this_soft_trust_regions("DPPO")

# %%
old = torch.tensor([0.01, 0.50, 0.60, 0.95, 0.90, 0.30, 0.20])
new = torch.tensor([0.06, 0.40, 0.30, 0.78, 0.76, 0.60, 0.45])
signs = torch.tensor([1.0, 1, -1, -1, -1, -1, 1])
keep = dppo_mask(new.log(), old.log(), signs, 0.15, 0.15)
print([round(x, 3) for x in (new / old * keep).tolist()])
assert keep.tolist() == [True, True, False, False, True, True, False]

# %% [markdown]
# ## With a pencil: SAPO's peak, DPPO's edges
#
# (a) $\nabla f(\rho)=f'(\rho)\nabla\rho=f'(\rho)\,\rho\,\nabla\log\pi$. With
# $s=\sigma(\tau(\rho-1))$, $f'=\frac4\tau\cdot\tau s(1-s)=4s(1-s)$. And
# $4\sigma(x)\sigma(-x)=\frac{4}{(e^{x/2}+e^{-x/2})^2}=\mathrm{sech}^2(x/2)$.
#
# (b) $\log w=\log\rho-2\log\cosh(\frac\tau2(\rho-1))$, whose derivative vanishes where
# $\frac1\rho=\tau\tanh(\frac\tau2(\rho-1))$. The left side falls, the right side rises, so there is
# one solution, above 1.
#
# (c) $p-q=q(\rho-1)$. For $A>0$: dropped above $1+\delta/q$, which exists only while
# $q+\delta\lt1$. For $A\le0$: below $1-\delta/q$, which exists only while $q>\delta$. PPO's edge is
# nearer to 1 where $\epsilon\lt\delta/q$, $q\lt\delta/\epsilon=0.75$. Above that DPPO's is, for
# $A>0$ only up to $q=1-\delta=0.85$, and PPO's 1.2 is itself out of reach above $q=1/1.2=0.833$.

# %%
def gap(rho, tau):                       # zero at the peak
    return 1 / rho - tau * torch.tanh(tau / 2 * (rho - 1))


for tau in (1.0, 1.05, 10.0):
    low, high = torch.tensor(1.0), torch.tensor(10.0)
    for _ in range(60):                  # bisection
        mid = (low + high) / 2
        low, high = (mid, high) if gap(mid, tau) > 0 else (low, mid)
    peak = low / torch.cosh(tau / 2 * (low - 1))**2
    print(f"τ {tau:5.2f}: peak {peak:.6f} at ρ = {low:.4f}")
    assert peak > 1
    if tau == 1:
        assert abs(peak - 1.574675) < 1e-6 and abs(low - 2.0601) < 1e-4

# %% [markdown]
# ## Four methods, two tokens, two signs
#
# A token has fallen to 0.7 of what it was. Who still pushes it, if it started at 0.3, or at 0.9?
# One ε of 0.2 for all.

# %%
from rlnb.classroom.explorers.gate_zoo import compute

print("            PPO  CISPO   SAPO   DPPO")
for sign in ("negative", "positive"):
    for old in (0.3, 0.9):
        w = compute(sign=sign, ratio=0.7, old=old)["at"]
        w = [w[name] for name in ("ppo", "cispo", "sapo", "dppo")]
        print(f"A {'<' if sign == 'negative' else '>'} 0, {old}",
              *(f"{x:6.3f}" for x in w))
        assert all(x > 0 for x in w) == (sign == "positive")
alive = [name for name, x in compute(
    sign="negative", ratio=0.7, old=0.3)["at"].items() if x > 0]
print("from 0.3, A < 0:", alive)
assert alive == ["none", "cispo", "sapo", "dppo"]
