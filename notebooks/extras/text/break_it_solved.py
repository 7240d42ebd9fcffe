# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The break-it lab, solved
#
# A test or two for each function of [the lab](break_it.ipynb). Together they kill every bug; the
# project's own tests run this page's tests and say so if one stops.

# %% tags=["setup"]
import math
import torch
from rlnb.classroom.breaking.lab import break_it
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)
nan = float("nan")

# %%
def near(a, b):
    """Equal to 1e-9; NaN is near nothing."""
    a, b = torch.as_tensor(a), torch.as_tensor(b)
    return bool(((a - b).abs() < 1e-9).all())

# %% [markdown]
# ## Advantages
#
# Two groups that differ in mean and spread, and one of equal rewards.

# %%
def z_scores(group_advantages):
    R = torch.tensor([1.0, 0, 0, 0, 9, 9, 5, 5, 3, 3, 3, 3])
    root = math.sqrt(3)
    one, two, three = group_advantages(R, 4).split(4)
    assert (one - torch.tensor([root, *[-1 / root] * 3])).abs().max() < 1e-4
    assert (two - torch.tensor([1.0, 1, -1, -1])).abs().max() < 1e-4
    assert near(three, 0.0)

def others_only(leave_one_out):
    R = torch.tensor([1.0, 0, 0, 0, 8, 8, 8, 4])
    A = leave_one_out(R, 4)
    assert near(A[:2], [1, -1 / 3]) and near(A[-1], -4)

def only_mixed(keep_mixed):
    R = torch.tensor([1.0, 1, 0.5, 0.7, 0, 0])
    assert keep_mixed(R, 2).tolist() == [False, False, True, True,
                                         False, False]

def ramp(overlong_penalty):
    got = [overlong_penalty(n, 100, 20) for n in (80, 90, 100, 130)]
    assert near(got, [0, -0.5, -1, -1])

# %% [markdown]
# GAE by hand: γ = 0.5, λ = 0.5. The last step sees no value after it: 2 − 1 = 1. The one before: 0
# + 0.5 · 1 − 3 = −2.5, plus a quarter of 1.

# %%
def by_hand(gae):
    r, V = torch.tensor([0.0, 2.0]), torch.tensor([3.0, 1.0])
    assert near(gae(r, V, 0.5, 0.5), [-2.25, 1.0])
    assert near(gae(r, V, 1.0, 0.5), [-1.5, 1.0])

def three_of_ten(pass_at_k):
    assert near(pass_at_k(10, 3, 5), 11 / 12)

break_it(z_scores, others_only, only_mixed, ramp, by_hand, three_of_ten)

# %% [markdown]
# ## Averages
#
# Lengths 1 and 3 in a width of 5, NaN under the mask, and a batch without a token.

# %%
def ragged():
    mask = torch.arange(5) < torch.tensor([[1], [3]])
    values = torch.tensor([[6.0], [2.0]]).expand(2, 5)
    return torch.where(mask, values, nan), mask

def over_tokens(token_mean):
    assert near(token_mean(*ragged()), 3.0)              # 12 / 4
    assert near(token_mean(torch.zeros(1, 2), torch.zeros(1, 2).bool()), 0)

def over_answers(sequence_mean):
    values, mask = ragged()
    assert near(sequence_mean(values, mask), 4.0)        # (6 + 2) / 2
    mask[0] = False
    assert near(sequence_mean(values, mask), 1.0)        # (0 + 2) / 2

def over_a_constant(constant_mean):
    assert near(constant_mean(*ragged(), 10), 0.6)       # 12 / (2 * 10)

# %%
def cut_as_you_like(accumulated):
    for pieces in (1, 2):
        assert near(accumulated(*ragged(), pieces), 3.0)

def cut_off(without_truncated):
    values, mask = ragged()
    left = without_truncated(values, mask, torch.tensor([True, False]))
    assert near(left, 2.0)

break_it(over_tokens, over_answers, over_a_constant, cut_as_you_like,
         cut_off)

# %% [markdown]
# ## Ratios and losses
#
# Values where the function is curved, and the gradient.

# %%
def what_sampled_it(token_logprobs):
    logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [9.0, 9, 9]])
    got = token_logprobs(logits, torch.tensor([2, 0, 1]), 2.0)
    want = [1 - math.log(math.e + 2), 2 - math.log(math.e**2 + 2)]
    assert near(got, want)

def corners(clipped_surrogate):
    r = torch.tensor([1.5, 0.5, 1.5, 0.5], requires_grad=True)
    A = torch.tensor([1.0, 1.0, -1.0, -1.0])
    L = clipped_surrogate(r, A, 0.2)
    L.sum().backward()
    assert near(L.detach(), [1.2, 0.5, -1.5, -0.8])
    assert r.grad.tolist() == [0, 1, -1, 0]

# %%
def geometric_mean(sequence_ratio):
    logp = torch.tensor([[0.3, 0.1, nan]], requires_grad=True)
    old = torch.tensor([[0.0, 0.0, nan]], requires_grad=True)
    s = sequence_ratio(logp, old, torch.tensor([[True, True, False]]))
    assert near(s.detach(), math.exp(0.2))
    s.sum().backward()
    assert near(logp.grad[0, :2], math.exp(0.2) / 2) and old.grad is None

def capped_weight(cispo):
    logp = torch.tensor([2.0, 0.0, -2.0], requires_grad=True)
    L = cispo(logp, torch.zeros(3), torch.tensor([1.0, 1.0, -1.0]), 1.5)
    L.sum().backward()
    assert near(logp.grad, [1.5, 1.0, -math.exp(-2)])

def silent_share(clip_fraction):
    r = torch.tensor([[1.5, 0.5, 1.5, 0.5, 1.5, 1.5]])
    A = torch.tensor([[1.0, 1.0, -1.0, 1.0, 1.0, 1.0]])
    mask = torch.tensor([[True, True, True, True, False, False]])
    assert near(clip_fraction(r, A, mask, 0.2), 0.25)

# %%
def value_and_digits(k3):
    logp, ref = torch.tensor([-1.0, -1.0]), torch.tensor([-1.0, 0.0])
    assert near(k3(logp, ref), [0, math.e - 2])
    small = k3(torch.tensor([1e-4], dtype=torch.float32),
               torch.tensor([0.0], dtype=torch.float32)).item()
    assert abs(small / 5e-9 - 1) < 0.01          # d^2 / 2

def nats_of_real_tokens(mean_entropy):
    logits = torch.zeros(1, 3, 4)                # 2 ln 2 at the first
    logits[0, 1] = torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 8]).log()
    H = mean_entropy(logits, torch.tensor([[True, True, False]]))
    assert near(H, (2 + 1.75) / 2 * math.log(2))

def leash(dpo_loss):
    pair = [torch.tensor([x]) for x in (-1.0, -2.0, -3.0, -3.5)]
    L = dpo_loss(*pair, 0.5)                     # margin 2 - 1.5
    assert near(L, math.log(1 + math.exp(-0.25)))

# %%
break_it(z_scores, others_only, only_mixed, ramp, by_hand, three_of_ten,
         over_tokens, over_answers, over_a_constant, cut_as_you_like,
         cut_off, what_sampled_it, corners, geometric_mean, capped_weight,
         silent_share, value_and_digits, nats_of_real_tokens, leash)
