# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 · REINFORCE: solutions
#
# The exercises of [02 · REINFORCE](../02_reinforce.ipynb), solved and run.

# %%
import torch
from rlnb import check
from rlnb.toys import Bandit, SequencePolicy, true_gradient
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## 02.1 Derive
#
# Let $\theta$ be the parameters and $J=\sum_y\pi_\theta(y)\,r(y)$. The sum is finite and
# $r$ does not depend on $\theta$, so
#
# $$\nabla J=\sum_y r(y)\,\nabla\pi(y)
# =\sum_y \pi(y)\,r(y)\,\frac{\nabla\pi(y)}{\pi(y)}
# =\sum_y \pi(y)\,r(y)\,\nabla\log\pi(y)
# =\mathbb{E}_{y\sim\pi}[\,r(y)\,\nabla\log\pi(y)\,].$$
#
# Dividing by $\pi(y)$ needs $\pi(y)>0$; a softmax gives that.
#
# **A constant baseline is free.** Replace $r$ by $r-b$. The change is
# $-b\,\mathbb{E}[\nabla\log\pi]=-b\sum_y\nabla\pi(y)=-b\,\nabla\sum_y\pi(y)=-b\,\nabla1=0$.
# Nothing was used but that $b$ is the same for every $y$. In a sequence the same holds
# token by token, with a $b$ that may depend on the prefix.
#
# **The step that fails off-policy** is the last one. The sum over $y$ with weight
# $\pi_\theta(y)$ is a mean over draws only if the draws come from $\pi_\theta$. Draws
# from $\pi_\text{old}$ estimate $\sum_y\pi_\text{old}(y)\,r\,\nabla\log\pi_\theta$; the
# missing factor is the ratio $\pi_\theta/\pi_\text{old}$. In numbers:

# %%
r = torch.tensor([1.0, 0.0, 0.5])
old = Bandit([0.0, 0.0, 0.0]).probabilities().detach()  # drew the answers
now = Bandit([1.0, -1.0, 0.0])
pi = now.probabilities().detach()                                # (3,)
S = torch.eye(3) - pi  # scores, (3, 3)
truth = true_gradient(now, r)
naive = (old * r) @ S
corrected = (old * (pi / old) * r) @ S
print("truth    ", (truth.round(decimals=4) + 0.0).tolist())
print("no ratio ", (naive.round(decimals=4) + 0.0).tolist())
print("ratio    ", (corrected.round(decimals=4) + 0.0).tolist())
assert torch.allclose(corrected, truth, atol=1e-12)
assert not torch.allclose(naive, truth, atol=1e-2)
assert (pi @ S).abs().max() < 1e-12              # the mean score is zero

# %% [markdown]
# ## 02.2 Predict, then run
#
# With $r$ from (a): (b) is $r-1$, (c) is $2r-1$. A constant shift does not touch the mean
# gradient, a factor multiplies it. So (a) and (b) share it and (c) has twice it. Which
# samples move: (a) only right ones, (b) only wrong ones, (c) all.

# %%
policy = SequencePolicy(2, 3, torch.sin(torch.arange(21.)).view(7, 3))
R = torch.tensor([float(y.count(1) == 1 and y[-1] == 2)
                  for y in policy.outcomes])                     # (15,)
P = policy.probabilities().detach()
S = torch.stack([torch.autograd.grad(policy.logprobs()[i].sum(),
                 policy.logits)[0] for i in range(15)])  # (15, 7, 3)

def mean_and_variance(A):
    G = A[:, None, None] * S
    mean = torch.einsum("y,yij->ij", P, G)
    return mean, (P * (G**2).sum((1, 2))).sum() - (mean**2).sum()

for name, right, wrong in (("a", 1., 0.), ("b", 0., -1.), ("c", 1., -1.)):
    mean, var = mean_and_variance(torch.where(R == 1, right, wrong))
    print(f"({name}) norm {mean.norm():.4f}, variance {var:.4f}, "
          f"variance / norm^2 {var / mean.norm()**2:.1f}")

# %% [markdown]
# Same mean for (a) and (b), and nearly four times the variance in (b): with $J=0.23$
# most answers are wrong, so most draws push. On an easy task it is the other way round. The last
# column says what a step costs: (c) is not (a) with a larger step, it sits between them.
#
# ## 02.3 Implement `token_logprobs`

# %%
def token_logprobs(logits, tokens):  # (B, T, V), (B, T) -> (B, T)
    scores = logits.log_softmax(-1)  # subtracts the largest first
    return scores.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)

check.token_logprobs(token_logprobs)

# %% [markdown]
# ## 02.4 Implement `reinforce_loss`

# %%
def reinforce_loss(logprobs, mask, rewards):  # (B, T), (B, T), (B,) -> ()
    per_answer = torch.where(mask, logprobs, 0.0).sum(1)         # (B,)
    return -(rewards * per_answer).mean()

check.reinforce_loss(reinforce_loss)

# %% [markdown]
# ## 02.5 Implement `baseline_leave_one_out`

# %%
def baseline_leave_one_out(rewards, num_generations):  # (B,), G -> (B,)
    groups = rewards.view(-1, num_generations)                   # (P, G)
    others = groups.sum(1, keepdim=True) - groups                # (P, G)
    return (others / (num_generations - 1)).view(-1)

check.baseline_leave_one_out(baseline_leave_one_out)

# %% [markdown]
# ## 02.6 The silent bug
#
# `.mean()` over a padded matrix divides by rows times *padded width*. The direction within
# a batch is right and the sign is right, but the step size depends on the longest answer
# in the batch: padding, which should be silent, shrinks everyone's gradient. The
# assertion: one more column of padding changes nothing.

# %%
def suspect(logprobs, mask, rewards):
    kept = torch.where(mask.bool(), logprobs, 0.0)
    return -(rewards[:, None] * kept).mean()

def gradient(loss, extra):  # `extra` columns of padding
    lp = torch.tensor([[-1.0, -0.5], [-2.0, -0.3]], requires_grad=True)
    mask = torch.tensor([[True, False], [True, True]])
    pad = torch.zeros(2, extra)
    value = loss(torch.cat([lp, pad], 1), torch.cat([mask, pad.bool()], 1),
                 torch.tensor([1.0, 0.5]))
    return torch.autograd.grad(value, lp)[0]

def padding_is_silent(loss):
    return torch.allclose(gradient(loss, 0), gradient(loss, 2))

print("reinforce_loss:", padding_is_silent(reinforce_loss))
print("suspect:       ", padding_is_silent(suspect))
print("its gradients: ", gradient(suspect, 0).tolist())
print("with padding:  ", gradient(suspect, 2).tolist())
assert padding_is_silent(reinforce_loss) and not padding_is_silent(suspect)

# %% [markdown]
# And the check's opinion, which knows this mistake by name:

# %%
verdict = check.reinforce_loss(suspect)
assert not verdict
print(verdict.message)
