# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 · statements: REINFORCE
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the corner cases and the long tables of the lesson,
# [02 · REINFORCE](../02_reinforce.ipynb). All of it on the lesson's toy: fifteen answers made of 0,
# 1 and stop, three of them right.

# %% tags=["setup"]
import math
from itertools import product
import torch
from rlnb import ZOO, Batch, Objective, check
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures import reinforce
from rlnb.objective import logprob, raw_reward, sequence_mean
from rlnb.toys import (
    SequencePolicy, expected_gradient, running_group, true_gradient)
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

policy = SequencePolicy(2, 3, torch.sin(torch.arange(21.)).view(7, 3))

def grade(y):                                    # a program: no derivative
    return float(y.count(1) == 1 and y[-1] == policy.stop)

R = torch.tensor([grade(y) for y in policy.outcomes])            # (15,)

# %% tags=["setup"]
def show(x):                     # 4 decimals, and no "-0.0000"
    print((x.detach().round(decimals=4) + 0.0).tolist())

def score(y):                                    # grad log pi(y), (7, 3)
    return torch.autograd.grad(policy.logprobs()[y].sum(), policy.logits)[0]

J = (policy.probabilities() * R).sum()
g = torch.autograd.grad(J, policy.logits)[0]                     # (7, 3)
S = torch.stack([score(y) for y in range(len(policy))])  # (15, 7, 3)
P, J = policy.probabilities().detach(), J.detach()               # (15,)
trick = torch.einsum("y,y,yij->ij", P, R, S)     # sum of pi * R * score

def reinforce_loss(logprobs, mask, rewards):     # (N, T), (N, T), (N,)
    per_answer = torch.where(mask.bool(), logprobs, 0.0).sum(1)  # (N,)
    return -(rewards * per_answer).mean()

# %% [markdown]
# ## The statements

# %% [markdown]
# ### B04 · no gradient through a draw
#
# Lesson: "Turn one knob" and "Derive it".

# %%
statement("B04")

# %% tags=["claim:B04"]
drawn = torch.multinomial(policy.probabilities(), 4, replacement=True,
                          generator=torch.Generator().manual_seed(0))
print("the draw carries a gradient:", drawn.grad_fn is not None)
digits = 100 * math.log10(50_000)
print(f"answers of 100 tokens, 50,000 words: about 10^{digits:.1f}")
assert drawn.grad_fn is None and not drawn.requires_grad
assert (trick - true_gradient(policy, grade)).abs().max() < 1e-12
assert abs(digits - 469.9) < 0.05
# "no gradient flows through it": true

# %%
settle("B04", "true")

# %% [markdown]
# ### B01 · mean of reward times gradient
#
# Five answers of one token. The loss is minus the mean of $R\log\pi$ over draws, from the policy
# and from another one. Then four equally likely answers, drawn once each, with centred rewards.

# %%
statement("B01")

# %% tags=["claim:B01"]
arms = torch.tensor([0.3, -1.2, 0.8, 0.0, 2.0], requires_grad=True)
r5 = torch.tensor([1.0, 0.0, -2.0, 0.5, 3.0])
log_pi = arms.log_softmax(0)
pi = log_pi.exp().detach()
theorem = sum(pi[a] * r5[a] * (torch.eye(5)[a] - pi) for a in range(5))
gaps = []
for name, q in (("pi", pi), ("uniform", torch.full((5,), 0.2))):
    loss = -(q * r5 * log_pi).sum()              # mean over draws from q
    grad = torch.autograd.grad(loss, arms, retain_graph=True)[0]
    gaps.append((theorem + grad).abs().max())
    print(f"drawn from {name}: largest difference {gaps[-1]:.4f}")
assert gaps[0] < 1e-12 and gaps[1] > 0.1

flat = torch.zeros(4, requires_grad=True)        # four answers, drawn once
centred = torch.tensor([1.0, 1.0, 0.0, 0.0]) - 0.5
loss = -(centred * flat.log_softmax(0)).mean()
grad = torch.autograd.grad(loss, flat)[0]
print(f"centred: loss {loss.abs().item():.4f}, "
      f"gradient norm {grad.norm():.4f}")
assert loss.abs() < 1e-12 and grad.norm() > 0.2
# "The policy gradient is the mean of reward times the gradient": true

# %%
settle("B01", "true")

# %% [markdown]
# ### B03 · the bad ones sink
#
# Eight equally likely answers, four of them drawn, rewards 1, 0, 1, 0. First without, then with a
# baseline of one half.

# %%
statement("B03")

# %% tags=["claim:B03"]
theta = torch.zeros(8, requires_grad=True)
r4 = torch.tensor([1.0, 0.0, 1.0, 0.0])          # answers 0, 1, 2, 3 drawn
for b, claim in ((0.0, (3/16, -1/16, -1/16)), (0.5, (1/8, -1/8, 0))):
    loss = -((r4 - b) * theta.log_softmax(0)[:4]).mean()
    push = -torch.autograd.grad(loss, theta)[0]  # (8,)
    push = push.round(decimals=12) + 0.0
    print(f"baseline {b}: good {push[0]:+.4f}, bad {push[1]:+.4f}, "
          f"never drawn {push[7]:+.4f}")
    assert torch.allclose(push[[0, 1, 7]], torch.tensor(claim), atol=1e-12)
of_two, = torch.autograd.grad(theta.log_softmax(0)[[0, 2]].mean(), theta)
print(f"mean over the 2 good ones alone: good {of_two[0]:+.4f}")
assert torch.isclose(of_two[0], torch.tensor(2 * 3 / 16))  # 2 times 3/16
# "take the mean gradient of the two good answers": sloppy

# %%
settle("B03", "it depends")

# %% [markdown]
# ### B17 · what Q-learning fails at
#
# Eight sequences of three bits, one is best. Greedy on the exact values, and with one value too
# high: a prefix's value is learnt from those of longer prefixes (bootstrapping).

# %%
statement("B17")

# %% tags=["claim:B17"]
good = {y: 0.1 * sum(y) for y in product((0, 1), repeat=3)}
good[0, 1, 1] = 1.0                              # the best of 8 answers

def q_star(y, wrong):                            # backward induction
    if len(y) == 3:
        return good[y]
    return wrong.get(y, max(q_star((*y, a), wrong) for a in (0, 1)))

def greedy(wrong, y=()):
    while len(y) < 3:
        y = max(((*y, a) for a in (0, 1)), key=lambda z: q_star(z, wrong))
    return y

one_call = torch.arange(100_000.0).argmax()      # V comparisons
print("greedy on exact Q:", greedy({}))
print("one wrong value, at the prefix (1,):", greedy({(1,): 1.5}))
print(f"prefixes: {(2**3 - 1) // (2 - 1)} here, "
      f"10^{math.log10(1e5) * 9:.0f} at V = 100,000 and T = 10")
assert one_call == 99_999
assert greedy({}) == (0, 1, 1) and greedy({(1,): 1.5}) != (0, 1, 1)
# "does not fail at the argmax over tokens": true

# %%
settle("B17", "true")

# %% [markdown]
# Asked in an interview, "why policy gradients and not Q-learning over tokens?": policy gradients
# use the reward that really came, and the pre-trained model already is a policy, not a $Q$.

# %% [markdown] tags=["cited:B16", "cited:B18"]
# **B16 · greedy only?** Value-based methods, one reads, can only end in a deterministic greedy
# policy. Plain DQN acts that way (Mnih et al. 2013, arXiv 1312.5602). A softmax over $Q$ at some
# temperature is a stochastic policy and value-based all the same: soft Q-learning (Haarnoja et al.
# 2017, arXiv 1702.08165).
#
# **B18 · one gradient for all?** All methods of the family are said to descend the same gradient.
# On fresh answers, at the first step, they share REINFORCE's direction up to baseline and a
# positive scale (policy gradient theorem, Sutton et al. 1999). After that each takes its own, and
# DPO (Rafailov et al. 2023, arXiv 2305.18290) never uses it: it differentiates a classification
# loss on pairs. And rewards are *ascended*.

# %% [markdown]
# ## Is it unbiased?
#
# The fifteen answers, and the true gradient on the logits of the first token (0, 1, stop), from the
# exact sum and from the trick:

# %%
for y, p, r in zip(policy.outcomes, P.tolist(), R.tolist()):
    print(f"{str(y):10s} probability {p:.4f}   reward {r:.0f}")
print(f"J = {J.item():.4f}")
show(g[0])
print(f"trick, largest difference: {(trick - g).abs().max():.4f}")
assert abs(P.sum().item() - 1) < 1e-12
assert torch.equal(g, true_gradient(policy, grade))
assert (trick - g).abs().max() < 1e-12

# %% [markdown]
# Draws. Each estimate $\hat g$ measured along the truth, $\hat g\cdot g/\lVert g\rVert^2$, should
# be 1: five seeds, 4000 answers each, with the standard error.

# %%
draw = policy.sample(1000, torch.Generator().manual_seed(0))     # (1000,)
loss = reinforce_loss(policy.logprobs()[draw], policy.mask[draw], R[draw])
estimate = -torch.autograd.grad(loss, policy.logits)[0]          # (7, 3)
by_hand = (R[draw][:, None, None] * S[draw]).mean(0)
assert torch.allclose(estimate, by_hand, atol=1e-12)
print("from 1000 answers:", end=" ")
show(estimate[0])
along = (S * g).sum((1, 2)) / (g**2).sum()       # (15,) per answer
for seed in range(5):
    many = policy.sample(4000, torch.Generator().manual_seed(seed))
    x = R[many] * along[many]
    error = x.std() / 4000**0.5
    print(f"seed {seed}: {x.mean():.4f} +- {error:.4f}")
    assert abs(x.mean() - 1) < 4 * error

# %% [markdown]
# Sampling can only fail to disagree; enumeration decides. `expected_gradient` goes through every
# possible group of $N$ answers, weights each by its probability and sums $-\nabla L$.

# %%
for N in (1, 2, 3):
    mean = expected_gradient(policy, grade, ZOO["reinforce"], N)
    print(f"N = {N}: largest difference {(mean - g).abs().max():.4f}")
    assert (mean - g).abs().max() < 1e-12

batch = policy.batch(draw[:8], grade, num_generations=8)
ours = reinforce_loss(batch.logprobs, batch.completion_mask, batch.rewards)
theirs = ZOO["reinforce"](batch).loss
assert torch.allclose(ours, theirs, atol=1e-12)
print(f"from scratch {ours.item():.4f}, rlnb {theirs.item():.4f}")

# %% [markdown]
# Unbiased at every $N$, one answer included.
#
# ## REINFORCE and SFT
#
# One gold answer, reward 1: REINFORCE's gradient is SFT's. With rewards 0 and 1 and no baseline it
# is SFT on the policy's own successes, times the share of successes.

# %%
gold = policy.outcomes.index((1, 0, policy.stop))
sft = -policy.logprobs()[gold].sum()
sft = torch.autograd.grad(sft, policy.logits)[0]                 # (7, 3)
one = policy.batch([gold], grade, num_generations=1)
same = torch.autograd.grad(ZOO["reinforce"](one).loss, policy.logits)[0]
assert torch.equal(sft, same)

right = R == 1
own_success = (P * R)[right] / (P * R).sum()     # pi given "right"
imitate = torch.einsum("y,yij->ij", own_success, S[right])
assert torch.allclose(J * imitate, g, atol=1e-12)
print(f"REINFORCE = {J.item():.4f} x SFT on its own right answers")

# %% [markdown]
# **Does Adam undo the factor?** One prompt, the same gradient at every step, whole and times $J$:
# the same path. Then two prompts that share one weight vector, solved nine times in ten and once in
# a thousand. Their directions are at right angles. As with one right answer in a softmax, SFT's
# gradient is $1-J$ long and REINFORCE's $J(1-J)$. The direction of Adam's first step says how much
# each prompt counts.

# %%
def adam_path(gradients):
    """Where Adam ends on fixed gradients (steps, n), rate 0.01."""
    w = torch.zeros(gradients.shape[1], requires_grad=True)
    adam = torch.optim.Adam([w], lr=0.01, eps=1e-12)
    for one in gradients:
        w.grad = -one                            # uphill
        adam.step()
    return w.detach()

noisy = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
apart = (adam_path(noisy) - adam_path(J * noisy)).abs().max()
print(f"one prompt: Adam's paths differ by {apart:.4f}")
assert apart < 1e-6
easy, rare = torch.tensor([1.0, 1.0]), torch.tensor([1.0, -1.0])
for name, long in (("SFT      ", lambda j: 1 - j),
                   ("REINFORCE", lambda j: j * (1 - j))):
    w = adam_path((long(0.9) * easy + long(0.001) * rare)[None])
    easy_part, rare_part = (
        round((w @ one).item() / 2, 4) + 0.0 for one in (easy, rare))
    print(f"{name}: easy {long(0.9):.4f} long, rare {long(0.001):.4f}; "
          f"Adam's step along them {easy_part:.4f}, {rare_part:.4f}")

# %% [markdown]
# SFT's sum leads Adam along the rare prompt, REINFORCE's along the easy one, which is 90 times as
# long: Adam rescales the sum and does not know what it is made of. (It could, if the two prompts
# used different weights.)
#
# **Two right answers.** The four-answer toy of the lesson's first explorer, climbed with exact
# gradients of rate 1: A and B are right.

# %%
four = torch.tensor([0.4, 0.1, 0.3, 0.2]).log()  # logits of A, B, C, D
pays = torch.tensor([1.0, 1.0, 0.0, 0.0])
for step in range(61):
    p4 = four.softmax(0)
    J4 = p4 @ pays
    if step in (0, 10, 60):
        print(f"step {step:2d}: J {100 * J4:.0f} %, A {100 * p4[0]:.0f} %, "
              f"B {100 * p4[1]:.0f} %, A is {p4[0] / p4[1]:.0f} times B")
    four = four + p4 * (pays - J4)               # the mean push
assert p4[1] < 0.1 < 0.9 < J4

# %% [markdown]
# B is right, its logit is never pushed down, and B sinks all the same: A's logit rises faster, by
# $\pi_A(1-J)$ against $\pi_B(1-J)$, and the softmax shares out 1.
#
# **Can a step downhill happen at rewards 0 and 1?** Not in the lesson's toy. But take one right
# answer of probability 0.3, six hundred right ones of 0.001 each, and ten wrong ones of 0.01. One
# draw is a step.

# %%
chances = torch.cat([torch.full((n,), p) for n, p in
                     ((1, 0.3), (600, 0.001), (10, 0.01))])
paid_one = torch.cat([torch.ones(601), torch.zeros(10)])
uphill = chances * (paid_one - chances @ paid_one)           # true gradient
along_it = uphill - chances @ uphill             # of each answer's score
for name, k in (("the likely right one", 0), ("a rare right one", 1)):
    print(f"{name}: push along the gradient {along_it[k]:+.4f}")
down = (chances * paid_one)[along_it < 0].sum()
print(f"steps downhill: {100 * down:.0f} %")
assert abs(chances.sum() - 1) < 1e-12 and abs(down - 0.6) < 1e-12

# %% [markdown]
# A rare right answer pushes the likely one down, and that one carries the gradient. So here most
# steps go downhill without any constant.

# %% [markdown]
# ## Two climbs, one policy
#
# The true gradient climbed twice, with rewards 1 and 0 and with 0 and −1: what we want, and what
# the logger prints.

# %%
climber, J_curve, L_curve, L_minus = policy.copy(), [], [], []
for step in range(61):
    p = climber.probabilities().detach()
    log_p = climber.logprobs().sum(1).detach()
    J_curve.append(float((p * R).sum()))
    L_curve.append(float(-(p * R * log_p).sum()))    # mean of the surrogate
    L_minus.append(float(-(p * (R - 1) * log_p).sum()))
    ascent = true_gradient(climber, R)
    assert torch.allclose(ascent, true_gradient(climber, R - 1))
    climber.logits.data += ascent
for step in (0, 3, 5, 10, 60):
    print(f"step {step:2d}: J {J_curve[step]:.4f}"
          f"  loss 1/0 {L_curve[step]:.4f}  loss 0/-1 {L_minus[step]:.4f}")
assert L_curve[5] > L_curve[0] and J_curve[5] > 2 * J_curve[0]

# %% [markdown]
# ## From logits to log-probabilities
#
# A model returns logits $z$ of shape $(B,T,V)$. Normalise over the vocabulary, then pick the token
# that was written: $\log\pi(y_t)=z_{t,y_t}-\log\sum_v e^{z_{t,v}}$. Here `logits` at $t$ already
# belong to the token at $t$; a causal model's output at $t$ is about the token at $t+1$, so cut
# once, `logits[:, :-1]` against `tokens[:, 1:]`, and never again inside the loss.

# %%
def token_logprobs(logits, tokens):  # (B, T, V), (B, T) -> (B, T)
    every = logits.log_softmax(-1)   # of every word, (B, T, V)
    return every.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)

pad = [(*y, 0, 0)[:3] for y in policy.outcomes]
tokens = torch.tensor(pad)                                       # (15, 3)
place = torch.tensor([[policy.states.get(y[:t], 0) for t in range(3)]
                      for y in pad])  # which prefix each token saw
logits = policy.logits[place]  # (15, 3, 3)
mask = policy.mask.bool()                                        # (15, 3)
lp = token_logprobs(logits, tokens)
assert torch.equal(torch.where(mask, lp, 0.0), policy.logprobs())
print("answer", policy.outcomes[2], "log-probs, two real and one padding:")
show(lp[2])
print(f"the two real ones: probability {lp[2, :2].sum().exp():.4f}")

# %% [markdown]
# ## What stands under the padding must not matter
#
# Not even when it is infinite, and multiplying by 0 does not achieve that. (The `exp` is here
# because later losses have one, in every ratio.)

# %%
x = torch.tensor([[-1.0, float("-inf")]], requires_grad=True)
m = torch.tensor([[1.0, 0.0]])                   # one token, one padding
times = (x * m).sum()
before = (torch.where(m.bool(), -x, 0.0).exp() * m).sum()  # where, exp
after = torch.where(m.bool(), (-x).exp(), 0.0).sum()       # exp, where
print(f"multiply:         {times.item()}")
for name, value in (("before exp:", before), ("after exp: ", after)):
    print(f"where {name} {value.item():.4f}, gradient", end=" ")
    show(torch.autograd.grad(value, x)[0])
assert times.isnan() and before == after

out = ZOO["reinforce"](Batch(x, m, torch.tensor([1.0]), 1))
print("rlnb, REINFORCE: gradient",
      torch.autograd.grad(out.loss, x)[0].tolist())

# %% [markdown]
# The third line is the treacherous one: a healthy value and a `nan` in the gradient. `where` goes
# on the *inputs*.
#
# ## Sum over tokens, or mean?
#
# On-policy, dividing each answer's sum by its length has an exact meaning: the reward becomes
# $R/T$, so it is the gradient of another objective, $\mathbb{E}[R(y)/T(y)]$. (verl calls the sum
# `loss_agg_mode="seq-mean-token-sum"`, and it is not its default.)

# %%
per_mean = Objective(raw_reward(), logprob(), sequence_mean)
mean_of_two = expected_gradient(policy, grade, per_mean, 2)
other = true_gradient(policy, R / policy.lengths)
print(f"difference to grad E[R]:   {(mean_of_two - g).abs().max():.4f}")
print(f"difference to grad E[R/T]: {(mean_of_two - other).abs().max():.4f}")
assert (mean_of_two - other).abs().max() < 1e-12
assert (mean_of_two - g).abs().max() > 1e-12

# %% [markdown]
# Does it matter? Pay 1 for a right answer of three tokens and 0.4 for giving up with a stop at
# once. The sum prefers the work. The mean sees $1/3$ against 0.4:

# %%
def effort(y):
    return 0.4 if y == (2,) else float(y == (1, 0, 2))

pay = torch.tensor([effort(y) for y in policy.outcomes])         # (15,)
for name, target in (("sum ", pay), ("mean", pay / policy.lengths)):
    p2 = SequencePolicy(2, 3)                    # uniform start
    for step in range(600):
        p2.logits.data += true_gradient(p2, target)
    end = p2.probabilities()
    work = end[p2.outcomes.index((1, 0, 2))].item()
    print(f"{name}: gives up {end[0].item():.4f}, does the work {work:.4f}")

# %% [markdown]
# Page [09](../09_grpo_biases.ipynb) is about what this does to wrong answers, where the advantage
# is below 0 and dividing by $T$ makes long failures cheap. A mean over all *tokens of the batch* is
# a third estimator: one denominator for every row, but it depends on who else was drawn.
#
# ## Answers needed
#
# The variance of one drawn answer, summed over the 21 logits, divided by $\lVert g\rVert^2$: that
# many draws have to be averaged until the noise is as long as the gradient. We call it **answers
# needed**. For any number $b$ that does not depend on the drawn answer
# $\mathbb{E}[b\,\nabla\log\pi]=b\,\nabla\sum_y\pi(y)=b\,\nabla 1=0$, so adding 10 to all rewards
# changes nothing in the mean.

# %%
def mean_and_variance(A):                        # A (15,): advantage
    G = A[:, None, None] * S                     # (15, 7, 3)
    mean = torch.einsum("y,yij->ij", P, G)
    return mean, (P * (G**2).sum((1, 2))).sum() - (mean**2).sum()

signal = (g**2).sum()
for c, b in ((0, 0), (10, 0), (10, 10), (10, 10 + J.item())):
    m1, var = mean_and_variance(R + c - b)
    assert torch.allclose(m1, g, atol=1e-12)
    print(f"rewards +{c:<2d} baseline {b:7.4f}: variance {var:8.4f}, "
          f"answers needed {var / signal:6.0f}")

# %% [markdown]
# Policy, task and mean gradient are the same in all four lines. A second measure is the share of
# steps that go uphill (less than 90° from $g$). The two need not agree: next to rewards 0 and 1,
# −0.5 helps the share much, and the error not at all.

# %%
def share_uphill(c, N, steps=20_000):            # c added to all rewards
    y = policy.sample(steps * N, torch.Generator().manual_seed(1))
    step = ((R + c) * along)[y].view(steps, N).mean(1)
    return (step > 0).double().mean().item()

for c in (10, 0, -0.2, -0.5):
    needed = mean_and_variance(R + c)[1] / signal
    print(f"add {c:4g}: answers needed {needed:8,.1f}, steps of 4 answers "
          f"uphill {100 * share_uphill(c, 4):.0f} %")
for N in (11, 12):                               # right ones are uphill
    print(f"add 0: steps of {N} with a right answer "
          f"{100 * (1 - (1 - J.item())**N):.1f} %")
assert (along[right] > 0).all()

# %% [markdown]
# At 0 and 1 a step without a right answer stands still. Three tastes of grader, without
# baseline: the first two share the mean gradient, the third has twice it.

# %%
for name, high, low in (("1 and 0 ", 1.0, 0.0), ("0 and -1", 0.0, -1.0),
                        ("1 and -1", 1.0, -1.0)):
    m3, var = mean_and_variance(torch.where(R == 1, high, low))
    print(f"{name}: length of the mean {m3.norm():.4f}, variance {var:.4f},"
          f" answers needed {var / m3.norm()**2:.1f}")

# %% [markdown]
# With 0 and −1 most draws push, since most answers are wrong here. On an easy task it is the other
# way round.
#
# **The group's own mean as baseline** (page [03](../03_baselines.ipynb)). The batch mean $\bar R$
# contains the answer's own reward and shrinks the expected gradient by $(N-1)/N$, direction
# untouched; leave-one-out (RLOO) takes the mean of the others and is exactly unbiased. All
# $15^4=50625$ groups of four:

# %%
def group_estimate(baseline, N, c):
    rows = torch.cartesian_prod(*[torch.arange(15)] * N).view(-1, N)
    prob = P[rows].prod(1)                       # every group of N, (15^N,)
    r = R[rows] + c                              # (15^N, N)
    A = r - baseline(r)
    G = (A[:, :, None] * S.view(15, 21)[rows]).mean(1)  # (15^N, 21)
    mean = prob @ G
    return mean @ g.view(-1) / signal, prob @ (G**2).sum(1) - mean @ mean

rules = {"none": lambda r: 0 * r,
         "batch mean": lambda r: r.mean(1, keepdim=True),
         "leave-one-out": lambda r: (r.sum(1, keepdim=True) - r)
                                    / (r.shape[1] - 1)}
for name, rule in rules.items():
    for c in (0, 10):
        scale, var = group_estimate(rule, 4, c)
        print(f"{name:14s} rewards +{c:<2d}: mean {scale:.4f} of the truth,"
              f" variance {var:7.4f}, / mean^2 {var / scale**2:7.4f}")

# %% [markdown]
# Both baselines are blind to the constant. Without one there is no gain here, 0.0617 against
# 0.0569: a baseline from three neighbours is itself noisy. Nor is the batch mean quieter than
# leave-one-out. It is the same estimate times $3/4$, and the last column says so.
#
# **Write it** · 5 minutes. The leave-one-out baseline for several prompts: the first $G$ rows
# answer the first prompt, the next $G$ the second; $G$ is `num_generations`.
#
# <details><summary>hint</summary>Reshape to (prompts, G). The sum of the others is the sum of all minus one's own.</details>

# %% tags=["exercise"]
def my_leave_one_out(rewards, num_generations):  # (B,), G -> (B,)
    return ...

check.baseline_leave_one_out(my_leave_one_out)

# %% [markdown]
# ## Does the noise matter for training?
#
# All of REINFORCE: draw, grade, step. A hundred seeds train side by side, 4 answers a step, 60
# steps, four graders that differ by a constant. Six learning rates for each.

# %% tags=["setup"] jupyter={"source_hidden": true}
# log-probabilities for many models at once
outcomes = policy.outcomes                       # 15 tuples; 2 is stop

def log_pis(logits):                             # (n, 7, 3) -> (n, 15)
    every = logits.log_softmax(2)
    rows = [[policy.states.get(y[:t], 0) for t in range(3)]
            for y in outcomes]
    words = [(*y, 0, 0)[:3] for y in outcomes]
    own = every[:, torch.tensor(rows), torch.tensor(words)]
    return (own * policy.mask).sum(2)

# %%
def train(constant, rate, n=100, N=4, steps=60):
    """J of n seeds after training with N answers a step."""
    dice = torch.Generator().manual_seed(0)
    z = policy.logits.detach().repeat(n, 1, 1)
    for _ in range(steps):
        z.requires_grad_()
        logp = log_pis(z)                                    # (n, 15)
        y = logp.detach().exp().multinomial(N, True, generator=dice)
        loss = -((R + constant)[y] * logp.gather(1, y)).mean(1).sum()
        grad, = torch.autograd.grad(loss, z)
        z = (z - rate * grad).detach()
    return log_pis(z).exp() @ R

rates = (0.03, 0.1, 0.3, 1, 3, 10)
ends = {name: torch.stack([train(c, rate) for rate in rates])
        for name, c in (("rewards −0.2 and 0.8", -0.2),
                        ("rewards 0 and 1", 0.0),
                        ("rewards 1 and 2", 1.0),
                        ("rewards 10 and 11", 10.0))}
reinforce.rate_sweep(rates, ends, J.item(), (
    "The first two graders end level; the further the zero, the smaller "
    "the rates that work. 100 seeds, bars: two standard errors."))

# %% tags=["nbval-ignore-output"]
for name, runs in ends.items():
    best = runs[runs.mean(1).argmax()]           # 100 seeds
    print(f"{name:21s} at its best rate {best.mean():.2f} "
          f"+- {best.std() / 10:.2f}")
for steps in (2000, 8000):
    slow = train(10.0, 0.01, steps=steps)
    print(f"rewards 10 and 11, rate 0.01, {steps:,} steps: mean "
          f"{slow.mean():.2f}, above 0.9: {(slow > 0.9).sum()} of 100")
assert slow.min() > 0.8

# %% [markdown]
# The first two are level at every rate tried, not only at the best: the steps of 0 and 1 that do
# not go uphill are steps without a right answer, and they push nothing. At rates 3 and 10 both are
# near 1, so the level curves at the smaller rates are the evidence. Rewards 10 and 11 are slow, not
# stuck: given enough small steps, all hundred seeds arrive.

# %% [markdown]
# ## Credit
#
# What each token changed in the chance to end right (the **value** of a prefix is the mean reward
# of the answers that start with it), against REINFORCE's credit of 1:

# %%
def value(prefix):
    n = len(prefix)
    here = torch.tensor([y[:n] == prefix for y in policy.outcomes])
    return float((P * R)[here].sum() / P[here].sum())

for y in ((0, 1, 2), (1, 2)):
    v = [value(y[:t]) for t in range(len(y) + 1)]
    for t, token in enumerate(y):
        print(f"answer {y}, token {token}: REINFORCE 1, value before "
              f"{v[t]:.4f}, it changed {v[t + 1] - v[t]:+.4f}")

# %% [markdown]
# Wrong credit is paid for in draws. How many, with answers of $T$ tokens? Let each token be a coin
# flip, 0 or 1, and let only the first decide: reward 1 when it is a 1. We weigh each token with
# REINFORCE's $R$, with $R-½$, and with the exact $Q-V$, which is 0 for all tokens but the first.

# %%
def coin_answers(T):
    """With R, R - 1/2 and Q - V; each place has logits of its own."""
    flips = torch.tensor(list(product((0, 1), repeat=T)))    # (2^T, T)
    s = torch.nn.functional.one_hot(flips, 2) - 0.5          # (2^T, T, 2)
    won = flips[:, 0].double()[:, None].expand(-1, T)        # (2^T, T)
    first = torch.eye(T)[0]                      # 1 at the first token
    needed = []
    for weight in (won, won - 0.5, (won - 0.5) * first):
        G = weight[:, :, None] * s
        mean, square = G.mean(0), (G**2).sum((1, 2)).mean()
        needed.append(((square / (mean**2).sum()) - 1).item())
    return needed

for T in (1, 2, 4, 8):
    print(f"T = {T}: R {coin_answers(T)[0]:.0f}, R - 1/2 "
          f"{coin_answers(T)[1]:.0f}, Q - V {coin_answers(T)[2]:.0f}")
    for found, by_hand in zip(coin_answers(T), (2 * T - 1, T - 1, 0)):
        assert abs(found - by_hand) < 1e-9
print(f"T = 500: R {2 * 500 - 1}, R - 1/2 {500 - 1}, Q - V 0")

# %% [markdown]
# $2T-1$, $T-1$ and 0: each innocent token adds its own squared score once, so what has to be
# averaged grows in proportion to the length. A baseline halves it and keeps the law. A weight per
# token removes it.
#
# **Return to go.** Pay 1 for each word 1, on the spot. A token cannot have caused the rewards
# before it, so drop them: $R_{\ge t}=\sum_{t'\ge t}r_{t'}$ in place of $R$.

# %%
paid = torch.tensor([[float(y[t:t + 1] == (1,)) for t in range(3)]
                     for y in policy.outcomes])                  # (15, 3)
to_go = paid.flip(1).cumsum(1).flip(1)                           # (15, 3)
zero = torch.zeros_like(g)
per_token = torch.stack([torch.stack([
    torch.autograd.grad(policy.logprobs()[i, t], policy.logits)[0]
    if mask[i, t] else zero for t in range(3)]) for i in range(15)])
paid_truth = true_gradient(policy, paid.sum(1))
for name, c in (("whole return", paid.sum(1, keepdim=True).expand(15, 3)),
                ("return to go", to_go)):
    G = torch.einsum("yt,ytij->yij", c, per_token)
    its_mean = torch.einsum("y,yij->ij", P, G)
    var = P @ (G**2).sum((1, 2)) - (its_mean**2).sum()
    print(f"{name}: variance {var:.4f}")
    assert torch.allclose(its_mean, paid_truth, atol=1e-12)

# %% [markdown]
# Less than half the noise, for free. (No law: where a late fine always takes back an early reward,
# the whole return is 0 and silent.) With an outcome reward, graded once at the end, $R_{\ge t}=R$
# for every token.
#
# ## Equal rewards
#
# Under a group baseline they teach nothing. REINFORCE without one moves on such a group, and
# *differently* on all 1 and on all 0, although neither says which answer was better. Answers 0, 0,
# 1, 2 of four are drawn:

# %%
even = torch.zeros(4, requires_grad=True)        # answers 0, 0, 1, 2 drawn
for r in (1.0, 0.0):
    loss = -(r * even.log_softmax(0)[[0, 0, 1, 2]]).mean()
    print(f"all {r:.0f}:", end=" ")
    show(-torch.autograd.grad(loss, even)[0])

# %% [markdown]
# With every reward 1, the answer drawn twice gets likelier and the one not drawn sinks. In the mean
# over draws this is zero. In one draw it is noise with a name: the rich get richer.
#
# ## A reward with a graph
#
# Does the reward need a gradient? No, and this loss must not see one. If the reward tensor carries
# a graph (a KL penalty computed from the current log-probs, say), autograd adds
# $\frac1N\sum_i\nabla R_i\,\log\pi(y_i)$ to the result. Detach it:

# %%
z = torch.tensor([0.5, -0.5, 0.0], requires_grad=True)
log_z = z.log_softmax(0)
reward = torch.tensor([1.0, 0.0, 0.0]) - 0.5 * log_z     # has a graph
p = log_z.exp().detach()
for name, r in (("detached", reward.detach()), ("with graph", reward)):
    loss = -(p * r * log_z).sum()
    print(f"{name:10s}", end=" ")
    show(-torch.autograd.grad(loss, z, retain_graph=True)[0])
p = z.softmax(0)
print("truth     ", end=" ")
show(torch.autograd.grad((p * reward).sum(), z)[0])

# %% [markdown]
# The last line is the true gradient of $\mathbb{E}[R]$, with $R$ depending on $\theta$. It equals
# the detached one: the term left out is $\mathbb{E}[\nabla R]$, here
# $-0.5\,\mathbb{E}[\nabla\log\pi]=0$ once more. Where that mean is not zero it is a loss term of
# its own.
#
# ## The running group
#
# Per answer the advantage $A$ (reward minus baseline), and the weight with which each of its tokens
# is pushed, $A/4$: without baseline, with the batch mean, with leave-one-out.

# %%
group = running_group().replace(old_logprobs=None)               # on-policy
for name in ("reinforce", "reinforce_batch_mean", "rloo"):
    table = ZOO[name].explain(group)
    A = table.advantages[:, 0]                                   # (4,)
    push4 = -table.gradient[:, 0]                                # (4,)
    print(f"{name:21s} A", " ".join(f"{v:+.4f}" for v in A.tolist()),
          "| token", " ".join(f"{v + 0.0:+.4f}" for v in push4.tolist()))
