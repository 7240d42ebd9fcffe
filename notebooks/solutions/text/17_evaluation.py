# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 17 · Evaluation: solutions
#
# The exercises of [17](../17_evaluation.ipynb), solved and run. Try first; a check that names your
# mistake teaches more than a listing.

# %%
from math import comb
import torch
from rlnb import check
from rlnb.toys.entropy import entropy
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 pass@k
#
# Draw the k answers one after the other and put none back. All are wrong with chance
# $\prod_{i<k}(n-c-i)/(n-i)$. When the wrong ones run out, a factor is 0 and the product with it.

# %% tags=["solution"]
def my_pass_at_k(n, c, k):
    i = torch.arange(k, dtype=c.dtype)
    wrong = (n - c[:, None] - i).clamp(min=0)
    return 1 - (wrong / (n - i)).prod(1)

check.pass_at_k(my_pass_at_k)

# %%
many = my_pass_at_k(1000, torch.tensor([3.0]), 100)
print(f"n = 1000, c = 3, k = 100: {many.item():.6f}, by binomials "
      f"{1 - comb(997, 100) / comb(1000, 100):.6f}")
assert abs(many.item() - (1 - comb(997, 100) / comb(1000, 100))) < 1e-12

# %% [markdown]
# ## 2 The vote
#
# Every answer counts how often it was given. `argmax` takes the first of the largest, so a tie goes
# to the answer that came first.

# %% tags=["solution"]
def my_majority_vote(answers):
    votes = (answers[:, :, None] == answers[:, None, :]).sum(2)
    votes = torch.where(answers >= 0, votes, 0)
    winner = answers.gather(1, votes.argmax(1, keepdim=True))[:, 0]
    return torch.where(votes.amax(1) > 0, winner, -1)

check.majority_vote(my_majority_vote)

# %% [markdown]
# ## 3 The change of entropy

# %% tags=["solution"]
def my_entropy_change(logits, advantages, eta):
    log_p = logits.log_softmax(-1)
    p = log_p.exp()
    centred = advantages - (p * advantages).sum()
    return -eta * (p * (log_p - (p * log_p).sum()) * centred).sum()

check.entropy_change(my_entropy_change)

# %% [markdown]
# Beside the change itself: the gap is of second order, a tenth of the step leaves a hundredth of
# it.

# %%
z, A = torch.tensor([2.0, 0.0, -1.0]), torch.tensor([0.6, -0.4, -0.4])
gaps = []
for eta in (0.1, 0.01):
    true = entropy(z + eta * A) - entropy(z)
    gaps.append((true - my_entropy_change(z, A, eta)).item())
    print(f"eta {eta}: in truth {true:.6f}, gap {gaps[-1]:.1e}")
assert 80 < gaps[0] / gaps[1] < 120

# %% [markdown]
# ## 4 The silent bug
#
# Two answers, one right, one cut off: pass@1 is one half. The broken function says 1.

# %% tags=["solution"]
def my_test(pass_at_1):
    right = torch.tensor([[1.0, 0.0]])
    finished = torch.tensor([[1.0, 0.0]])
    return torch.allclose(pass_at_1(right, finished), torch.tensor(0.5))

check.silent_bug_evaluation(my_test)
