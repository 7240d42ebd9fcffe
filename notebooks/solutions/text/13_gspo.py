# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 13 · GSPO: solutions
#
# The exercises of [13](../13_gspo.ipynb), solved and run. Try first: reading a solution feels like
# knowing it.

# %%
import torch
from rlnb import ZOO, Batch, check
from rlnb.classroom.explorers import answer_ratio
from rlnb.objective import ratio
from rlnb.toys import RouterPolicy, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

group = running_group()

# %% [markdown]
# ## 1 The length
#
# $\log s=\frac1T\,\mathrm{leap}$, for all other logs are 0. The clip silences while $s>1+\epsilon$,
# that is while $\mathrm{leap}/T>\log(1+\epsilon)$. So it leaves the answer alone from
# $T=\mathrm{leap}/\log(1+\epsilon)$ on.

# %% tags=["solution"]
def my_length(leap, epsilon):
    return leap / torch.log1p(epsilon)

check.outlier_length(my_length)

# %%
for epsilon in (0.2, 4e-4):
    T = my_length(torch.tensor(2.0), torch.tensor(epsilon)).item()
    print(f"log ratio 2, epsilon {epsilon}: {T:.1f} tokens")

# %% [markdown]
# ## 2 The ratio and the loss

# %% tags=["solution"]
def my_sequence_ratio(logprobs, old_logprobs, mask):
    zero = torch.zeros_like(logprobs)
    new = torch.where(mask, logprobs, zero)
    old = torch.where(mask, old_logprobs, zero)
    return ((new - old).sum(1) / mask.sum(1).clamp(min=1)).exp()

check.sequence_ratio(my_sequence_ratio)

# %% tags=["solution"]
def my_gspo_loss(logprobs, old_logprobs, mask, advantages,
                 epsilon, epsilon_high):
    s = my_sequence_ratio(logprobs, old_logprobs, mask)
    clipped = s.clamp(1 - epsilon, 1 + epsilon_high)
    return -torch.min(s * advantages, clipped * advantages).mean()

check.gspo_loss(my_gspo_loss)

# %% [markdown]
# No other $1/T$: it came in with the mean of the logs. On the running group, against the package:

# %%
A = ZOO["gspo"](group).advantages[:, 0]
mine = my_gspo_loss(group.logprobs, group.old_logprobs, group.mask, A,
                    3e-4, 4e-4)
print(f"{mine:.6f}  {ZOO['gspo'](group).loss:.6f}")
assert abs(mine - ZOO["gspo"](group).loss) < 1e-12

# %% [markdown]
# ## 3 Paid twice
#
# The paper writes $\mathrm{sg}[s]$; here $s$ carries a gradient of its own. Then
# $\nabla\sum_ts_t=\sum_t(\nabla s+s\nabla\log\pi_t)$, and $T\,\nabla s=s\sum\nabla\log\pi_t$ comes
# on top: exactly double. Adam divides it away. With one advantage per token the first half goes to
# all tokens alike, so credit is smeared. No value shows it; a gradient does.

# %% tags=["solution"]
def my_test(gspo_token_ratio):
    new = torch.tensor([[-0.5, -1.0]], requires_grad=True)
    old, mask = torch.tensor([[-0.6, -0.8]]), torch.ones(1, 2).bool()
    first = gspo_token_ratio(new, old, mask)[0, 0]
    g, = torch.autograd.grad(first, new)
    assert g[0, 1] == 0, "the first token's ratio moves the second"

check.silent_bug_gspo(my_test)

# %% [markdown]
# ## 4 The name
#
# The living tokens of an answer share a number: a mean, so none of the token methods. Tokens die
# one by one: the clip came before the mean, so not GSPO. With $A\gt0$ the token at 1.80 is cut and
# the one at 0.60 lives, with $A\lt0$ the one at 0.50 is cut and 2.00 lives: GMPO. The edge: the
# push 1.01 is the exp of the mean of four logs, three of them known, and the fourth is the edge
# itself, for a clipped token still counts in the mean. With 1.01 rounded, it comes out near 0.4.

# %% tags=["solution"]
check.name_this_gspo("GMPO")

# %%
known = torch.tensor([1.10, 0.60, 1.05]).log().sum()
edge = 4 * torch.tensor(1.01).log() - known
print(f"upper edge, in the log: {edge:.2f}")
assert abs(edge - 0.4) < 0.02

# %%
rho = torch.tensor([[1.10, 0.60, 1.80, 1.05], [0.50, 0.90, 1.30, 2.00]])
old = torch.full((2, 4), 0.3).log()
two = Batch((rho.log() + old).requires_grad_(), torch.ones(2, 4),
            torch.tensor([1.0, 0.0]), 2, old_logprobs=old)
gate = ZOO["gmpo"].explain(two).gate.abs()
for row in gate:
    print(*(f"{x:.2f}" for x in row))
want = torch.tensor([[1.01, 1.01, 0, 1.01], [0, 1.12, 1.12, 1.12]])
assert (gate - want).abs().max() < 0.005

# %% [markdown]
# ## Beyond the page: the weight of a token, and a bound
#
# $\nabla s=s\,\nabla\log s=s\cdot\frac1T\sum_t\nabla\log\pi(y_t)$: each token's score gets $s/T$.
# GRPO's token, in an answer's own mean, gets $\rho_t/T$. Equal ratios inside the answer make
# $s=\rho_t$; on fresh data both are $1/T$.

# %%
from math import log

free = {name: ZOO[name].replace(terms=(), surrogate=ratio())
        for name in ("grpo", "gspo")}
for name, before in (("all ratios 1.1", group.logprobs.detach() - log(1.1)),
                     ("fresh", None), ("as it is", group.old_logprobs)):
    batch = group.replace(old_logprobs=before)
    g = [torch.autograd.grad(o(batch).loss, batch.logprobs)[0]
         for o in free.values()]
    same = torch.allclose(g[0], g[1])
    print(f"{name:15s} GRPO and GSPO have one gradient: {same}")
    assert same == (name != "as it is")

# %% [markdown]
# How far can $s$ rise when nobody has looked at the answer? $s\ge1+\epsilon$ is
# $\prod_t\rho_t\ge(1+\epsilon)^T$. For a number $X\ge0$, Markov: $P(X\ge c)\le\mathbb E[X]/c$. And
# $\mathbb E_{\pi_\text{old}}\big[\prod_t\rho_t\big]=\sum_y\pi_\text{old}(y)\frac{\pi_\theta(y)}{\pi_\text{old}(y)}=1$.
# So $P\le(1+\epsilon)^{-T}$. On 2000 fresh answers of the router toy, weights moved at random:

# %%
gen = torch.Generator().manual_seed(0)
start = RouterPolicy(seed=0)
moved = start.copy()
with torch.no_grad():
    for weight in moved.parameters():
        weight += 0.02 * torch.randn(weight.shape, generator=gen)
    tokens = start.sample(2000, 40, gen)
    gap = moved.logprobs(tokens)[0] - start.logprobs(tokens)[0]
for T in (5, 10, 20, 40):
    log_s = gap[:, :T].mean(1)
    for high in (0.1, 0.2):
        share = (log_s.exp() >= 1 + high).double().mean()
        bound = (1 + high)**-T
        print(f"T = {T:2d}, s at least {1 + high}: {share:.4f}, "
              f"at most {bound:.4f}")
        assert share <= bound
print(f"mean of the product {gap.sum(1).exp().mean():.2f}, "
      f"of log s {log_s.mean():.4f}")

# %% [markdown]
# The bound is generous. The product has mean 1, as it must, while $\log s$ has mean $-\mathrm{KL}$.
#
# Which sign loses more answers to such noise? $\log s$ lies below 0, and below is where $A\lt0$ is
# cut; the longer the answer, the surer:

# %%
for T in (8, 64, 512):
    d = answer_ratio.compute(flips=6.0, length=T)
    below, above = d["cut_down"], d["cut_up"]
    print(f"T = {T:3d}: cut if A < 0 {below:4.0%}, if A > 0 {above:4.0%}")
    assert below > above
