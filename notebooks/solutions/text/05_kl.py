# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 · KL: solutions
#
# Try them first: [the page](../05_kl.ipynb).

# %%
import torch
from rlnb import check
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 The slope for both directions
#
# Gradients add, and so do slopes. $k_2'=\ell$ gives $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$, $k_3'=1-e^{-\ell}$ gives
# $\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)$. Together $k'(\ell)=\ell+1-e^{-\ell}$, and it is 0 at $\ell=0$. Any constant added to it leaves the mean gradient as it is,
# because $\mathbb E_\pi[\nabla\log\pi]=0$, and adds noise.

# %% tags=["solution"]
def my_slope(log_ratio):
    return log_ratio + 1 - torch.exp(-log_ratio)

check.kl_slope(my_slope)

# %% [markdown]
# Six tokens, by enumeration: the loss $k_2+k_3$ against the sum of the two KLs.

# %%
g = torch.Generator().manual_seed(0)
z = torch.randn(6, generator=g).requires_grad_()
log_ref = torch.randn(6, generator=g).log_softmax(0)
log_pi = z.log_softmax(0)
l = log_pi - log_ref
both = (log_pi.exp() * l).sum() - (log_ref.exp() * l).sum()
loss = (log_pi.exp().detach() * (l**2 / 2 + torch.expm1(-l) + l)).sum()
true, = torch.autograd.grad(both, z, retain_graph=True)
mine, = torch.autograd.grad(loss, z)
print("largest difference of the two gradients below 1e-12:",
      (true - mine).abs().max().item() < 1e-12)
assert torch.allclose(true, mine, atol=1e-12)

# %% [markdown]
# ## 2 k3

# %% tags=["solution"]
def k3(logprobs, ref_logprobs):
    d = ref_logprobs - logprobs                        # log(ref / pi)
    return torch.expm1(d) - d

check.k3(k3)

# %% [markdown]
# ## 3 KL in the reward

# %% tags=["solution"]
def my_kl_in_reward(rewards, logprobs, ref_logprobs, mask, beta):
    k1 = torch.where(mask, logprobs - ref_logprobs, 0)       # (B, T)
    out = -beta * k1
    last = (mask * torch.arange(mask.shape[1])).argmax(1)    # (B,)
    out[torch.arange(len(rewards)), last] += rewards
    return out

check.kl_in_reward(my_kl_in_reward)

# %% [markdown]
# `mask.sum(1) - 1` finds the last token only while nothing is masked in the middle. And `where` comes before the product with β, since nan times 0 is nan.
#
# ## 4 The silent bug
#
# At the start of a run the policy *is* the reference, so whatever the temperature the penalty is 0.

# %% tags=["solution"]
def my_test(kl_penalty):
    dice = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 7, generator=dice)               # (T, V)
    tokens = torch.tensor([0, 1, 2, 3, 4])
    penalty = kl_penalty(logits, logits, tokens, 0.7)
    assert penalty.abs().max() < 1e-9, "same model, no penalty"

check.silent_bug_kl(my_test)

# %% [markdown]
# The policy's logits are divided by the temperature, the reference's are not. The penalty then measures the distance to a *flatter* model and pulls towards it. It is
# not negative, it is 0 at temperature 1 for equal models, its shape is right, and training goes on. In a log it shows at step 0: a KL that should be 0 and is not.
# Here, averaged over what the policy samples:

# %%
dice = torch.Generator().manual_seed(0)
logits = torch.randn(1000, 7, generator=dice)                # (T, V)
for temperature in (1.0, 0.9, 0.7, 0.5):
    lp = (logits / temperature).log_softmax(-1)
    kl = (lp.exp() * (lp - logits.log_softmax(-1))).sum(-1).mean()
    print(f"temperature {temperature}: KL of a model with itself, one side "
          f"at 1: {kl.abs():.4f} nats per token")
