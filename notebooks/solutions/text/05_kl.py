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
# The exercises of [05](../05_kl.ipynb), solved and run. Try first; a check that names your mistake
# teaches more than a listing.

# %%
import torch
from rlnb import check
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 One slope for both directions
#
# Write $\ell=\log\pi-\log\pi_\text{ref}$. The mean gradient of a loss $k(\ell)$ on fresh samples is
# $\mathbb E_\pi[k'(\ell)\,\nabla\log\pi]$. First the true gradients:
#
# $$\begin{aligned}
# \nabla\mathrm{KL}(\pi\,\|\,\pi_\text{ref})&=\textstyle\sum_y\nabla\pi\,\ell+\sum_y\pi\,\nabla\ell&&\text{product rule}\\
# &=\mathbb E_\pi[\ell\,\nabla\log\pi]+\nabla\textstyle\sum_y\pi&&\nabla\pi=\pi\nabla\log\pi\text{, and }\pi\nabla\ell=\nabla\pi\\
# &=\mathbb E_\pi[\ell\,\nabla\log\pi]&&\nabla1=0\\
# \nabla\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)&=-\textstyle\sum_y\pi_\text{ref}\,\nabla\log\pi&&\pi_\text{ref}\text{ is constant}\\
# &=-\mathbb E_\pi[e^{-\ell}\,\nabla\log\pi]&&\pi_\text{ref}=\pi e^{-\ell}\\
# &=\mathbb E_\pi[(1-e^{-\ell})\,\nabla\log\pi]&&\mathbb E_\pi[\nabla\log\pi]=0
# \end{aligned}$$
#
# So $k'=\ell$ for the first, which is $k_2$'s slope, and $1-e^{-\ell}$ for the second, which is
# $k_3$'s. Gradients add: $k'(\ell)=\ell+1-e^{-\ell}$. Any constant could be added without changing
# the mean; that it is 0 at $\ell=0$ fixes it, and is the quietest choice near the reference.

# %% tags=["solution"]
def my_slope(log_ratio):
    return log_ratio - torch.expm1(-log_ratio)

check.kl_slope(my_slope)

# %% [markdown]
# On a random policy over six tokens, all six weighed by their chance. The term that vanishes,
# $\sum_y\nabla\pi$, is the whole mean gradient of $k_1$ as a loss:

# %%
g = torch.Generator().manual_seed(0)
z = torch.randn(6, generator=g).requires_grad_()
log_ref = torch.randn(6, generator=g).log_softmax(0)
l = z.log_softmax(0) - log_ref
pi, ref = z.softmax(0), log_ref.exp()

def gradient(x):
    return torch.autograd.grad(x, z, retain_graph=True)[0]

def loss_on_samples(k):
    return gradient((pi.detach() * k).sum())

reverse, forward = gradient((pi * l).sum()), gradient(-(ref * l).sum())
by_slope = loss_on_samples(my_slope(l).detach() * z.log_softmax(0))
for name, found, wanted in (
        ("k2", loss_on_samples(l**2 / 2), reverse),
        ("k3", loss_on_samples(torch.expm1(-l) + l), forward),
        ("k1", loss_on_samples(l), torch.zeros(6)),
        ("my slope", by_slope, reverse + forward)):
    print(f"{name:8s} as wanted, to 1e-12:",
          (found - wanted).abs().max().item() < 1e-12)
    assert torch.allclose(found, wanted, rtol=0, atol=1e-12)

# %% [markdown]
# ## 2 k3

# %% tags=["solution"]
def my_k3(logprobs, ref_logprobs):
    d = ref_logprobs - logprobs                        # log(ref / pi)
    return torch.expm1(d) - d

check.k3(my_k3)

# %% [markdown]
# $\ell=-d$, so $e^{-\ell}-1+\ell$ is $e^d-1-d$. `expm1` keeps the digits where the two
# log-probabilities are close.
#
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
# `mask.sum(1) - 1` finds the last token only while nothing is masked in the middle. And `where`
# comes before the product with β, since nan times 0 is nan.
#
# ## 4 The silent bug
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
# The policy's logits are divided by the temperature, the reference's are not. The penalty then
# measures the distance to a *flatter* model and pulls towards it. It is not negative, it is 0 at
# temperature 1 for equal models, its shape is right, and training goes on. In a log it shows at
# step 0: a KL that should be 0 and is not. Here, averaged over what the policy samples:

# %%
g = torch.Generator().manual_seed(0)
logits = torch.randn(1000, 7, generator=g)                   # (T, V)
for temperature in (1.0, 0.9, 0.7, 0.5):
    lp = (logits / temperature).log_softmax(-1)
    kl = (lp.exp() * (lp - logits.log_softmax(-1))).sum(-1).mean()
    print(f"temperature {temperature}: KL of a model with itself, one side "
          f"at 1: {kl.abs():.4f} nats per token")
