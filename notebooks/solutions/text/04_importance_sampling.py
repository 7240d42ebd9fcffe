# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Importance sampling: solutions
#
# Every exercise of page 04, solved and run. Try first; a check that names your mistake teaches more
# than a listing.

# %%
import math
import torch
from rlnb import check
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 04.1 Why $k_2$ has the right slope
#
# Write $\ell=\log\pi-\log\pi_\text{ref}$. The product rule on $\mathrm{KL}=\sum_y\pi(y)\,\ell(y)$ gives
#
# $$\nabla\mathrm{KL}=\sum_y\nabla\pi\,\ell+\sum_y\pi\,\nabla\ell
# =\mathbb{E}_\pi[\ell\,\nabla\log\pi]+\sum_y\nabla\pi .$$
#
# The second term is $\nabla\sum_y\pi=\nabla1=0$: that is the one that vanishes, and it is also the mean
# gradient of $k_1$ as a loss. Differentiating $k_2=\tfrac12\ell^2$ on fixed samples gives
# $\ell\,\nabla\ell=\ell\,\nabla\log\pi$, whose mean is the first term. So $k_2$ in the loss, or $k_1$ as a
# number multiplying $\nabla\log\pi$ (in the reward), is the gradient of the KL.
#
# On a random policy over six tokens:

# %%
g = torch.Generator().manual_seed(0)
z = torch.randn(6, generator=g).requires_grad_()
log_ref = torch.randn(6, generator=g).log_softmax(0)
l = z.log_softmax(0) - log_ref
pi = z.softmax(0)
true, = torch.autograd.grad((pi * l).sum(), z, retain_graph=True)
from_k2, = torch.autograd.grad((pi.detach() * l**2 / 2).sum(), z,
                               retain_graph=True)
from_k1, = torch.autograd.grad((pi.detach() * l).sum(), z)
print("k2 as a loss has the gradient of the KL:",
      torch.allclose(from_k2, true, atol=1e-12))
print("k1 as a loss has none:", from_k1.abs().max().item() < 1e-12)
assert torch.allclose(from_k2, true, atol=1e-12)
assert from_k1.abs().max() < 1e-12

# %% [markdown]
# ## 04.2 Nine ones and a nine
#
# $18^2/(9\cdot1+81)=324/90=3.6$: one large weight costs almost two thirds of the samples. Multiplying all
# weights by 100 multiplies both sides of the fraction by 10,000: still 3.6.

# %%
w = torch.tensor([1.0] * 9 + [9.0])
for scale in (1, 100):
    print(f"weights times {scale:3d}: "
          f"ESS {(scale * w).sum()**2 / (scale * w).square().sum():.4f}")
assert math.isclose(w.sum()**2 / w.square().sum(), 3.6)

# %% [markdown]
# ## 04.3 The weighted mean

# %% tags=["solution"]
def my_importance_estimate(values, log_p, log_q):
    return ((log_p - log_q).exp() * values).mean()

check.importance_estimate(my_importance_estimate)

# %% [markdown]
# Subtract first. $e^{-800}$ is 0 in float64, and $0/0$ is nan; $e^{-800-(-801)}$ is 2.718. Dividing by the sum
# of the weights instead of $n$ passes as well, under its own name: it is biased by order $1/n$, and exact
# for a constant $f$, which the ordinary estimate is not.

# %%
def self_normalised(values, log_p, log_q):
    return ((log_p - log_q).softmax(0) * values).sum()

check.importance_estimate(self_normalised)

# %% [markdown]
# ## 04.4 Effective sample size
#
# A common factor cancels, so let it be one over the sum: that is what `softmax` does, without overflow.

# %% tags=["solution"]
def my_effective_sample_size(log_weights):
    share = log_weights.softmax(0)                           # (n,)
    return 1 / share.square().sum()

check.effective_sample_size(my_effective_sample_size)

# %% [markdown]
# ## 04.5 KL in the reward

# %% tags=["solution"]
def my_kl_in_reward(rewards, logprobs, ref_logprobs, mask, beta):
    k1 = torch.where(mask, logprobs - ref_logprobs, 0)       # (B, T)
    out = -beta * k1
    last = (mask * torch.arange(mask.shape[1])).argmax(1)    # (B,)
    out[torch.arange(len(rewards)), last] += rewards
    return out

check.kl_in_reward(my_kl_in_reward)

# %% [markdown]
# `mask.sum(1) - 1` finds the last token only while nothing is masked in the middle. And `where` comes before
# the product with β, since nan times 0 is nan.
#
# ## 04.6 The variance of a product
#
# $\mathbb{E}\big[(\prod_t\rho_t)^2\big]=\prod_t\mathbb{E}[\rho_t^2]=\prod_t(1+\chi_t^2)$ by independence, and
# $\mathbb{E}[\prod_t\rho_t]=\prod_t1=1$. The variance is the first minus the square of the second.
#
# $\mathrm{ESS}/n=1/(1+\mathrm{Var})=1.04^{-T}$, which is one half at $T=\ln2/\ln1.04$: not quite 18 tokens.

# %%
T = math.log(2) / math.log(1.04)
print(f"half of the samples are left at T = {T:.4f}")
print(f"at 17 tokens {1.04**-17:.4f}, at 18 {1.04**-18:.4f}")
assert 1.04**-17 > 0.5 > 1.04**-18

# %% [markdown]
# ## 04.7 The silent bug
#
# At the start of a run the policy *is* the reference, so whatever the temperature the penalty is 0.

# %% tags=["solution"]
def my_test(kl_penalty):
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 7, generator=g)                  # (T, V)
    tokens = torch.tensor([0, 1, 2, 3, 4])
    penalty = kl_penalty(logits, logits, tokens, 0.7)
    assert penalty.abs().max() < 1e-9, "same model, no penalty"

check.silent_bug_kl(my_test)

# %% [markdown]
# The policy's logits are divided by the temperature, the reference's are not. The penalty then measures the
# distance to a *flatter* model and pulls towards it. It is not negative, it is 0 at temperature 1 for equal
# models, its shape is right, and training goes on. In a log it shows at step 0: a KL that should be 0 and
# is not. Here, averaged over what the policy samples:

# %%
g = torch.Generator().manual_seed(0)
logits = torch.randn(1000, 7, generator=g)                   # (T, V)
for temperature in (1.0, 0.9, 0.7, 0.5):
    lp = (logits / temperature).log_softmax(-1)
    kl = (lp.exp() * (lp - logits.log_softmax(-1))).sum(-1).mean()
    print(f"temperature {temperature}: KL of a model with itself, one side "
          f"at 1: {kl.abs():.4f} nats per token")
