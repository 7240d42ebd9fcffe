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
from rlnb.toys import Bandit, true_gradient
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## 1 Derive
#
# Answer $a$ is drawn with probability $\pi_a$ and then pushes logit $k$ by $R_a(1[a=k]-\pi_k)$. The
# mean push is
#
# $$\sum_a\pi_aR_a\,(1[a=k]-\pi_k)=\pi_kR_k-\pi_k\sum_a\pi_aR_a=\pi_k\,(R_k-J).$$
#
# An answer rises if it earns more than $J$, and the faster the more often it is drawn. Nobody
# subtracted a baseline: $J$ comes from the second half of the score.

# %%
def my_push(logits, rewards):            # (K,), (K,) -> (K,)
    pi = logits.softmax(0)
    return pi * (rewards - pi @ rewards)

check.logit_push(my_push)

# %% [markdown]
# **And with an older policy's draws?** The last step of the derivation fails: a sum with weights
# $\pi_\theta$ is a mean over draws only if the draws come from $\pi_\theta$. Draws from
# $\pi_\text{old}$ estimate $\sum_y\pi_\text{old}(y)\,R\,\nabla\log\pi_\theta$; the missing factor
# is the ratio $\pi_\theta/\pi_\text{old}$. In numbers:

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
# ## 2 Implement
#
# First the log-probability of each token, then the cut, the mask, the sum, the reward and the mean.

# %%
def token_logprobs(logits, tokens):  # (B, T, V), (B, T) -> (B, T)
    scores = logits.log_softmax(-1)  # subtracts the largest first
    return scores.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)

check.token_logprobs(token_logprobs)

# %%
def my_step_loss(logits, tokens, written, rewards):
    logp = token_logprobs(logits[:, :-1], tokens[:, 1:])         # (B, L-1)
    logp = torch.where(written[:, 1:], logp, 0.0)
    return -(rewards * logp.sum(1)).mean()

check.step_loss(my_step_loss)

# %% [markdown]
# The mask is cut like the tokens: `written[:, 1:]` says which of the *scored* tokens the policy
# wrote.
#
# ## 3 Make it survive

# %%
def reinforce_loss(logprobs, mask, rewards):  # (B, T), (B, T), (B,) -> ()
    per_answer = torch.where(mask, logprobs, 0.0).sum(1)         # (B,)
    return -(rewards * per_answer).mean()

check.reinforce_loss(reinforce_loss)

# %% [markdown]
# ## 4 The silent bug
#
# `.mean()` over a padded matrix divides by rows times *padded width*. The direction within a batch
# is right and the sign is right, but the step size depends on the longest answer in the batch:
# padding, which should be silent, shrinks everyone's gradient. The test: one more column of padding
# changes nothing.

# %%
def my_test(loss):
    lp, rewards = torch.tensor([[-1.0, -0.5], [-2.0, -0.3]]), torch.ones(2)
    mask = torch.tensor([[True, False], [True, True]])
    pad = torch.zeros(2, 1)
    wider = loss(torch.cat([lp, pad], 1), torch.cat([mask, pad.bool()], 1),
                 rewards)
    assert torch.allclose(loss(lp, mask, rewards), wider)

check.silent_bug_reinforce(my_test)

# %% [markdown]
# The bug in numbers, and the other check's opinion, which knows it by name:

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
verdict = check.reinforce_loss(suspect)
assert not verdict
print(verdict.message)

# %% [markdown]
# ## One more
#
# The leave-one-out baseline of [statements 02](../statements/02_reinforce.ipynb), for several
# prompts at once: the first $G$ rows answer the first prompt, the next $G$ the second.

# %%
def baseline_leave_one_out(rewards, num_generations):  # (B,), G -> (B,)
    groups = rewards.view(-1, num_generations)                   # (P, G)
    others = groups.sum(1, keepdim=True) - groups                # (P, G)
    return (others / (num_generations - 1)).view(-1)

check.baseline_leave_one_out(baseline_leave_one_out)
