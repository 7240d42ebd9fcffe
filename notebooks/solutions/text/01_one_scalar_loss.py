# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · One scalar loss: solutions
#
# The exercises of [01](../01_one_scalar_loss.ipynb), solved and run.

# %%
import math
import torch
from rlnb import check
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## 01.1 Two derivations
#
# **(a)** $L=\log\sum_u e^{z_u}-z_{y^\star}$. The first term has the derivative
# $e^{z_v}/\sum_u e^{z_u}=\pi_v$: softmax is the slope of log-sum-exp. The second has $1$ for
# $v=y^\star$ and $0$ otherwise. Together $\pi_v-[v=y^\star]$. The sum over $v$ is $1-1=0$:
# adding the same number to all logits changes nothing.
#
# **(b)** Sum over the words with $p_v>0$ only; the others contribute 0.
#
# $$-\mathrm{KL}(p\Vert q)=\sum_{p_v>0}p_v\log\frac{q_v}{p_v}
# \le\sum_{p_v>0}p_v\Big(\frac{q_v}{p_v}-1\Big)=\sum_{p_v>0}q_v-1\le0$$
#
# Equality in the first place needs $q_v=p_v$ wherever $p_v>0$; then the second holds as well,
# because $q$ sums to 1 there already. So the KL is 0 exactly when $p=q$.

# %%
z = torch.tensor([0.3, -1.0, 2.0], requires_grad=True)
(torch.logsumexp(z, 0) - z[2]).backward()
assert torch.allclose(z.grad, z.detach().softmax(0) - torch.eye(3)[2])

gen = torch.Generator().manual_seed(0)
p = torch.rand(10_000, 5, generator=gen)
q = torch.rand(10_000, 5, generator=gen)
p, q = p / p.sum(1, keepdim=True), q / q.sum(1, keepdim=True)
kls = (p * (p / q).log()).sum(1)                 # (10000,)
print(f"smallest of 10,000 random KLs: {kls.min():.4f}")
assert kls.min() > 0

# %% [markdown]
# ## 01.2 Unequal peaks
#
# Forward: mean $0.8\cdot3-0.2\cdot3=1.8$; $\mathbb{E}[x^2]=1+9=10$, so the variance is
# $10-3.24=6.76$ and the deviation 2.6. Reverse: the heavy peak, about mean 3 and deviation 1,
# and nearly $-\log0.8=0.2231$: minus the log of the share that is kept.

# %%
from rlnb.classroom.explorers.kl_directions import compute
mine = {"forward": (1.8, 2.6), "reverse": (3.0, 1.0, -math.log(0.8))}
best = compute(weight=0.8)["best"]
for way, numbers in mine.items():
    print(f"{way}: on paper {[round(v, 4) for v in numbers]}, "
          f"found {[round(v, 4) for v in best[way]]}")
    assert all(abs(a - b) < 0.02 for a, b in zip(numbers, best[way]))

# %% [markdown]
# The reverse fit leans a little towards the gap: mean 2.9931, deviation 1.0109. Dropping the
# light peak is cheap, 0.22 nats; dropping the heavy one would cost $-\log0.2=1.61$.
#
# ## 01.3 The leashed reward
#
# $\log\pi^\star=\log\pi_\text{ref}+r/\beta-\log Z$, so $r=\beta\log\frac{\pi^\star}{\pi_\text{ref}}
# +\beta\log Z$. Put it in:
#
# $$\mathbb{E}_\pi[r]-\beta\,\mathbb{E}_\pi\Big[\log\frac{\pi}{\pi_\text{ref}}\Big]
# =\beta\log Z+\beta\,\mathbb{E}_\pi\Big[\log\frac{\pi^\star}{\pi_\text{ref}}
# -\log\frac{\pi}{\pi_\text{ref}}\Big]
# =\beta\log Z-\beta\,\mathrm{KL}(\pi\Vert\pi^\star)$$
#
# $Z$ does not depend on $\pi$, and the KL is 0 only at $\pi=\pi^\star$: that is the best policy.
# $\beta\to\infty$: the exponent vanishes, $\pi^\star\to\pi_\text{ref}$. $\beta\to0$: all mass on
# the answers with the largest reward among those with $\pi_\text{ref}>0$, in the reference's own
# proportions.

# %%
ref = torch.tensor([0.5, 0.3, 0.15, 0.05, 0.0])
r = torch.tensor([0.0, 0.2, 1.0, 1.0, 5.0])      # the last is never drawn
for beta in (100.0, 1.0, 0.1, 0.02):
    star = ref * (r / beta).exp()
    star = star / star.sum()
    print(f"beta {beta:6.2f}:", " ".join(f"{v:.4f}" for v in star.tolist()))
assert star[4] == 0 and torch.isclose(star[2] / star[3], ref[2] / ref[3])

# %% [markdown]
# At $\beta=0.02$ the two answers of reward 1 share everything 3 to 1, as in the reference; the
# answer of reward 5 stays at 0.
#
# ## 01.4 KL

# %% tags=["solution"]
def kl_divergence(p, q):                         # (V,), (V,) -> ()
    return torch.where(p > 0, p * (p / q).log(), 0.0).sum()

check.kl_divergence(kl_divergence)

# %% [markdown]
# `where` picks 0 for the words that $p$ never uses, whatever stands in the other branch. For
# words that only $q$ never uses, $p/0$ is infinite and stays so.
#
# ## 01.5 Cross-entropy

# %% tags=["solution"]
def cross_entropy(p, q):                         # (V,), (V,) -> ()
    return -torch.where(p > 0, p * q.log(), 0.0).sum()

check.cross_entropy(cross_entropy)

# %%
p, q = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.3, 0.3, 0.4])
total = cross_entropy(p, p) + kl_divergence(p, q)
print(f"H(p) + KL {total:.4f}, H(p, q) {cross_entropy(p, q):.4f}")
assert torch.isclose(total, cross_entropy(p, q))

# %% [markdown]
# ## 01.6 The other KL
#
# `F.kl_div(input, target)` is KL(target ‖ input): the *target* weighs. With the policy in the
# first place the result is KL(ref ‖ π). A pair of distributions, one number by hand:
# $\frac12\log\frac{0.5}{0.9}+\frac12\log\frac{0.5}{0.1}=\frac12\log\frac{25}{9}=0.5108$.

# %% tags=["solution"]
def test(kl_to_reference):
    pi = torch.tensor([[0.5, 0.5]]).log()
    ref = torch.tensor([[0.9, 0.1]]).log()
    by_hand = 0.5 * math.log(25 / 9)
    assert abs(kl_to_reference(pi, ref) - by_hand) < 1e-6

check.silent_bug_one_scalar_loss(test)

# %% [markdown]
# What does *not* expose it: that the value is 0 at $\pi=\pi_\text{ref}$, that it is positive
# elsewhere, that it falls when the policy moves towards the reference. All true of either KL.

# %%
import torch.nn.functional as F
start = torch.tensor([0.5, 0.5])
ref = torch.tensor([0.9, 0.1])
for step in (0.0, 0.5, 0.9):
    pi = start + step * (ref - start)
    wanted = F.kl_div(ref.log(), pi.log(), log_target=True, reduction="sum")
    other = F.kl_div(pi.log(), ref.log(), log_target=True, reduction="sum")
    print(f"{step:.1f} of the way: KL(pi||ref) {wanted:.4f}, "
          f"KL(ref||pi) {other:.4f}")
