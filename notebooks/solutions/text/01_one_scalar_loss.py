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

# %% tags=["setup"]
import math
import torch
from rlnb import check
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## 1 The push of KL(π‖p)
#
# $-\mathrm{KL}(\pi\Vert p)=\sum_y\pi_y\ell_y$ with $\ell_y=\log p_y-\log\pi_y$ is a $J$ whose
# reward $\ell$ depends on $z$ as well. Two places to differentiate:
#
# * the weight $\pi_y$, as in the lesson:
#   $\pi_v(\ell_v-\sum_y\pi_y\ell_y)=\pi_v(\ell_v+\mathrm{KL})$;
# * the reward: $-\sum_y\pi_y\,\partial\log\pi_y/\partial z_v=-\sum_y\partial\pi_y/\partial z_v=0$,
#   since the probabilities always sum to 1.
#
# Autograd on sampled answers sees only the second place, and its mean is 0. That is the first
# picture of the lesson once more.

# %% tags=["solution"]
def reverse_push(z, p):
    pi = z.softmax(-1)
    ell = p.log() - z.log_softmax(-1)          # the reward
    return pi * (ell - (pi * ell).sum())

check.reverse_kl_push(reverse_push)

# %%
z = torch.tensor([0.3, -1.0, 2.0], requires_grad=True)
p = torch.tensor([0.7, 0.2, 0.1])
kl = (z.softmax(0) * (z.log_softmax(0) - p.log())).sum()
assert torch.allclose(reverse_push(z, p), -torch.autograd.grad(kl, z)[0])

# %% [markdown]
# ## 2 SFT, shifted and masked
#
# The last place predicts a token that does not exist, and nobody predicts the first token: cut
# both. The mask goes with the tokens.

# %% tags=["solution"]
def sft_loss(logits, tokens, mask):
    log_pi = logits[:, :-1].log_softmax(-1)    # predicts what comes next
    after, mask = tokens[:, 1:], mask[:, 1:].bool()
    nll = -log_pi.gather(-1, after[..., None])[..., 0]
    return torch.where(mask, nll, 0.0).sum() / mask.sum()

check.sft_loss(sft_loss)

# %% [markdown]
# Dividing by all places instead, padding included, would shrink loss and gradient by a factor that
# depends on who else is in the batch. Every test on one unpadded answer would pass.
#
# ## 3 A softmax too many
#
# `F.cross_entropy` takes logits and does the softmax itself. The function gives it probabilities,
# which it takes for logits between 0 and 1. Equal logits give equal probabilities, and log V. A
# model that is certain and right should pay nothing; here its “logits” are 1 and 0:

# %% tags=["solution"]
def test(mean_nll):
    logits = torch.tensor([[[50.0, 0.0, 0.0]]])            # certain
    tokens, mask = torch.tensor([[0]]), torch.tensor([[1]])
    assert mean_nll(logits, tokens, mask) < 1e-6           # and right

check.silent_bug_one_scalar_loss(test)

# %%
V = 50_257
floor = math.log(math.e + V - 1) - 1
print(f"V = {V:,}: starts at {math.log(V):.4f}, never below {floor:.4f}")

# %% [markdown]
# The push exposes it too: it is not one-hot minus π. With three answers the loss looks reasonable;
# with a real vocabulary it can hardly move, and one blames the learning rate.
#
# ## 4 KL with zeros

# %% tags=["solution"]
def kl_divergence(p, q):                         # (V,), (V,) -> ()
    return torch.where(p > 0, p * (p / q).log(), 0.0).sum()

check.kl_divergence(kl_divergence)

# %% [markdown]
# `where` picks 0 for the answers that $p$ never gives, whatever stands in the other branch. For
# answers that only $q$ never gives, $p/0$ is infinite and stays so. (For a gradient in $p$ the
# other branch must be made harmless first, or its nan comes back.) The cross-entropy goes alike:

# %%
def cross_entropy(p, q):                         # (V,), (V,) -> ()
    return -torch.where(p > 0, p * q.log(), 0.0).sum()

check.cross_entropy(cross_entropy)

# %%
p3, q3 = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.3, 0.3, 0.4])
total = cross_entropy(p3, p3) + kl_divergence(p3, q3)
print(f"H(p) + KL {total:.4f}, H(p, q) {cross_entropy(p3, q3):.4f}")
assert torch.isclose(total, cross_entropy(p3, q3))

# %% [markdown]
# More derivations, KL is never negative, and RL with a KL penalty as a reverse KL, stand on the
# [statements page](../statements/01_one_scalar_loss.ipynb).
