# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 · REINFORCE: learn from answers you can only draw
#
# **Settles:** how a reward without a derivative trains a policy, why the number called
# "loss" says nothing, why the gradient is so noisy, and which token gets the credit.
#
# 35 minutes · after [00](00_start_here.ipynb) · Williams 1992 (REINFORCE, *Machine
# Learning* 8); Sutton, McAllester, Singh and Mansour 1999 (policy gradient theorem,
# NeurIPS 12).
#
# > **From [01](01_one_scalar_loss.ipynb).** A language model gives each next token a probability;
# > the probability of an answer is the product, its log the sum. Supervised fine-tuning
# > (SFT) minimises $-\log\pi_\theta(y^\star)$ of a given answer: plain differentiation.
# > Here nobody gives the answer. The model draws one, and a program grades it.

# %%
import torch
from rlnb import ZOO, Objective, check
from rlnb.toys import SequencePolicy, expected_gradient, true_gradient
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## What we want
#
# A program reads an answer and says 1 or 0. It has no derivative, and the model is to get
# better by it:
#
# $$J(\theta)=\mathbb{E}_{y\sim\pi_\theta}\,[\,r(y)\,]=\sum_y \pi_\theta(y)\,r(y)$$
#
# $\pi_\theta(y)$ is the probability of answer $y$, $r(y)$ its reward, $\theta$ the
# parameters. Here is a policy small enough to do the sum. It writes 0, 1 or stop (token 2),
# three tokens at most, so it can stand at seven prefixes, with three logits at each. The
# grader wants exactly one 1, then a stop.

# %%
policy = SequencePolicy(2, 3, torch.sin(torch.arange(21.)).view(7, 3))

def grade(y):                                    # a program: no derivative
    return float(y.count(1) == 1 and y[-1] == policy.stop)

R = torch.tensor([grade(y) for y in policy.outcomes])            # (15,)
P = policy.probabilities()                                       # (15,)
for y, p, r in zip(policy.outcomes, P.tolist(), R.tolist()):
    print(f"{str(y):10s} probability {p:.4f}   reward {r:.0f}")
J = (P * R).sum()
print(f"J = {J.item():.4f}")
assert abs(P.sum().item() - 1) < 1e-12

# %% [markdown]
# Fifteen answers, three of them right, $J=0.2298$. This sum is differentiable, so here
# autograd gives the true gradient. It is the referee for the rest of the page.

# %%
def show(x):                     # 4 decimals, and no "-0.0000"
    print((x.detach().round(decimals=4) + 0.0).tolist())

g = torch.autograd.grad(J, policy.logits)[0]                     # (7, 3)
print("gradient on the logits of the first token (0, 1, stop):")
show(g[0])
assert torch.equal(g, true_gradient(policy, grade))

# %% [markdown]
# Up with 1, down with 0 and with stopping at once. For a real model, $V$ words and $T$
# tokens, the sum has $V^T$ terms, and the draw in its place has no derivative. The way out
# is one line of algebra.
#
# ## The log-derivative trick
#
# $\nabla\log\pi=\nabla\pi/\pi$, so $\nabla\pi=\pi\,\nabla\log\pi$. Put it into the sum:
#
# $$\nabla J=\sum_y r(y)\,\nabla\pi(y)=\sum_y\pi(y)\;r(y)\,\nabla\log\pi(y)
# =\mathbb{E}_{y\sim\pi_\theta}\big[\,r(y)\,\nabla\log\pi_\theta(y)\,\big]$$
#
# The left side needs every answer. The right side is a mean over answers *the policy
# draws*, and only $\log\pi$ is differentiated, never $r$. $\nabla\log\pi(y)$ is called
# the **score** of $y$.

# %%
def score(y):                                    # grad log pi(y), (7, 3)
    return torch.autograd.grad(policy.logprobs()[y].sum(), policy.logits)[0]

S = torch.stack([score(y) for y in range(len(policy))])  # (15, 7, 3)
P = P.detach()
trick = torch.einsum("y,y,yij->ij", P, R, S)     # sum of pi * r * score
print(f"largest difference to the truth: {(trick - g).abs().max():.4f}")
assert (trick - g).abs().max() < 1e-12

# %% [markdown]
# **Move it.** Four answers of probability 0.4, 0.1, 0.3, 0.2; the first two are right.
# One is drawn, and its own logit moves by $(r-b)(1-\pi)$, where the **baseline** $b$ is a
# number subtracted from every reward. So far $b=0$. Drag it, then add something to all
# rewards, and watch what moves and what does not. *Draws until noise equals signal*: the
# variance of one draw over the squared length of the mean push.

# %% tags=["explorer"]
from rlnb.classroom import explorers
explorers.baseline_explorer()

# %%
from rlnb.classroom.explorers.baseline import compute
for b in (0.0, 0.44, 0.5, 1.0, 3.0):
    d = compute(baseline=b)
    push = " ".join(f"{x:+.2f}" for x in (d["own_push"] + 0.0).tolist())
    mean = " ".join(f"{x:+.2f}" for x in d["expected"].tolist())
    print(f"b {b:.2f}: one draw {push} | mean {mean} | "
          f"draws {d['answers']:5.2f}")

# %% [markdown]
# *At $b=0$ drawing a wrong answer moves nothing: it sinks ($-0.15$, $-0.10$) only when a
# right one is drawn and takes probability from the others. At $b=1$ only wrong ones are
# pushed, down. The mean over all draws is the same to the last digit. What changes is how
# many draws it takes to see it: 3.13 at $b=0$, 1.30 at best, 62.33 at $b=3$.*
#
# > **It is often said** that sampling a token is discrete, so no gradient flows through
# > it; that the exact sum is out of reach; and that the score is needed for that reason.
# > True. Not the only way, though: relaxations such as Gumbel-softmax exist, with bias.

# %% tags=["claim:B04"]
import math
drawn = torch.multinomial(policy.probabilities(), 4, replacement=True,
                          generator=torch.Generator().manual_seed(0))
print("the draw carries a gradient:", drawn.grad_fn is not None)
digits = 100 * math.log10(50_000)
print(f"answers of 100 tokens, 50,000 words: about 10^{digits:.1f}")
assert drawn.grad_fn is None and not drawn.requires_grad
assert (trick - true_gradient(policy, grade)).abs().max() < 1e-12
assert abs(digits - 469.9) < 0.05
# "no gradient flows through it": true

# %% [markdown]
# ## The surrogate loss
#
# Autograd wants a scalar to differentiate. So we write one whose *gradient* is right,
# for $N$ drawn answers $y_1\dots y_N$ with $T_i$ tokens each:
#
# $$L=-\frac1N\sum_{i=1}^{N} r_i\log\pi_\theta(y_i),\qquad
# \log\pi_\theta(y_i)=\sum_{t=1}^{T_i}\log\pi_\theta(y_{i,t}\mid y_{i,\lt t})$$
#
# The minus is there because optimizers minimise. $r_i$ is a plain number in it.

# %%
def reinforce_loss(logprobs, mask, rewards):     # (N, T), (N, T), (N,)
    per_answer = torch.where(mask.bool(), logprobs, 0.0).sum(1)  # (N,)
    return -(rewards * per_answer).mean()

draw = policy.sample(1000, torch.Generator().manual_seed(0))     # (1000,)
loss = reinforce_loss(policy.logprobs()[draw], policy.mask[draw], R[draw])
estimate = -torch.autograd.grad(loss, policy.logits)[0]          # (7, 3)
print("true, and from 1000 answers:")
show(g[0])
show(estimate[0])
by_hand = (R[draw][:, None, None] * S[draw]).mean(0)
assert torch.allclose(estimate, by_hand, atol=1e-12)

# %% [markdown]
# Close, not equal. Is the rest chance? To ask that of 21 numbers at once, measure each
# estimate $\hat g$ along the truth: $\hat g\cdot g/\lVert g\rVert^2$ should be 1. Five
# seeds, 4000 answers each, with the standard error.

# %%
along = (S * g).sum((1, 2)) / (g**2).sum()       # (15,) per answer
for seed in range(5):
    draw = policy.sample(4000, torch.Generator().manual_seed(seed))
    x = R[draw] * along[draw]
    error = x.std() / 4000**0.5
    print(f"seed {seed}: {x.mean():.4f} +- {error:.4f}")
    assert abs(x.mean() - 1) < 4 * error

# %% [markdown]
# All five within about two standard errors of 1. Sampling can only fail to disagree;
# enumeration decides. `expected_gradient` goes through every possible group of $N$
# answers, weights each by its probability and sums $-\nabla L$. `ZOO["reinforce"]` is our
# loss in the course's package: raw reward as advantage, log-prob as surrogate, sum over
# tokens.

# %%
print(ZOO["reinforce"])
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
# ## The value of the loss means nothing
#
# Climb the true gradient and watch both: what we want, and what the logger prints. Twice:
# once with rewards 1 and 0, once with 0 and −1. The mean gradient is the same, so it is the
# same climb.

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

# %%
from rlnb.classroom.figures import line_figure
line_figure(
    range(61), {"expected reward J": J_curve, "loss, rewards 1, 0": L_curve,
                "loss, rewards 0, −1": L_minus},
    xlabel="gradient step", ylabel="value", ylim=(-1.5, 1),
    alt="Expected reward climbs from 0.23 to 0.97 in 60 steps. With rewards"
        " 1 and 0 the loss starts at 0.44, peaks at 0.49 and ends at 0.04."
        " With 0 and -1 it goes from -1.46 up to -0.15.",
    caption="One climb, two losses: one ends lower, one ends higher.")

# %% [markdown]
# Five steps more than double the expected reward, and both losses go *up*. Later the first
# falls and the second goes on rising, while the policy is the same. The loss is a device
# for `backward()`: right gradient at the point where the answers were drawn, no meaning as
# a number.
#
# %% [markdown]
# > **It is often said** that the policy gradient is the mean of reward times the
# > gradient of the log-probability, and that differentiating $-\frac1N\sum r\log\pi$
# > gives exactly that. True, for answers drawn from the policy being differentiated; not if
# > another policy drew them. And the printed value is never progress: with four equally
# > likely answers, two of them right, and centred rewards, it is 0 and the gradient is not.

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

# %% [markdown]
# > **A popular lesson** takes four answers with rewards 1, 0, 1, 0, averages the
# > gradients of the two good ones, and lets the bad ones sink because they contribute
# > nothing. The good ones do rise, and all else falls by normalisation. But the mean is
# > over four, and the bad ones are not *pushed*: a sample with reward 0 is treated like
# > an answer nobody drew. Eight equally likely answers, four of them drawn:

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

# %% [markdown]
# Only a baseline tells a bad answer from one that was never seen.
#
# ## The same loss as SFT, on other answers
#
# One gold answer, reward 1: REINFORCE's gradient is SFT's. With rewards 0 and 1 and no
# baseline it is SFT on the policy's own successes, times the share of successes.

# %%
gold = policy.outcomes.index((1, 0, policy.stop))
sft = -policy.logprobs()[gold].sum()
sft = torch.autograd.grad(sft, policy.logits)[0]                 # (7, 3)
one = policy.batch([gold], grade, num_generations=1)
same = torch.autograd.grad(ZOO["reinforce"](one).loss, policy.logits)[0]
assert torch.equal(sft, same)

right = R == 1
mean_success = (P * R)[right] / (P * R).sum()    # pi given "right"
imitate = torch.einsum("y,yij->ij", mean_success, S[right])
assert torch.allclose(J.detach() * imitate, g, atol=1e-12)
print(f"REINFORCE = {J.item():.4f} x SFT on its own right answers")

# %% [markdown]
# A policy that is right once in a thousand gets a thousandth of the gradient that SFT on
# those right answers would give. That is the price of not being shown.
#
# ## From logits to log-probabilities
#
# A model returns logits $z$ of shape $(B,T,V)$; we need the log-probability of the token
# that was written: normalise over the vocabulary, then pick.
#
# $$\log\pi(y_t)=z_{t,y_t}-\log\sum_{v=1}^{V} e^{z_{t,v}}$$

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

# %% [markdown]
# The two real ones multiply to $e^{-0.9168-0.6923}=0.2001$, as in the first table. Two
# traps. **The shift:** a causal model's output at position $t$ is about the token at $t+1$.
# Cut once, `logits[:, :-1]` against `tokens[:, 1:]`, and never again inside the
# loss. **The mask:** what stands under the padding must not matter, not even when it is
# infinite, and multiplying by 0 does not achieve that. (The `exp` below is here because
# later losses have one, in every ratio.)

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

from rlnb import Batch
out = ZOO["reinforce"](Batch(x, m, torch.tensor([1.0]), 1))
print("rlnb, REINFORCE: gradient",
      torch.autograd.grad(out.loss, x)[0].tolist())

# %% [markdown]
# The third line is the treacherous one: a healthy value and a `nan` in the gradient.
# `where` goes on the *inputs*. `rlnb` does so, and a masked token gets gradient exactly
# zero whatever stands there.
#
# ## Sum over tokens, or mean?
#
# $\log\pi(y)$ is a sum. Many losses divide it by $T_i$ "to normalise". On-policy that
# has an exact meaning: each answer's reward becomes $r/T$, so this is the gradient of
# another objective, $\mathbb{E}[r(y)/T(y)]$.

# %%
from rlnb.objective import logprob, raw_reward, sequence_mean
per_mean = Objective(raw_reward(), logprob(), sequence_mean)
mean = expected_gradient(policy, grade, per_mean, 2)
other = true_gradient(policy, R / policy.lengths)
print(f"difference to grad E[r]:   {(mean - g).abs().max():.4f}")
print(f"difference to grad E[r/T]: {(mean - other).abs().max():.4f}")
assert (mean - other).abs().max() < 1e-12 < (mean - g).abs().max()

# %% [markdown]
# Does it matter? Pay 1 for a right answer of three tokens and 0.4 for giving up with a
# stop at once. The sum prefers the work. The mean sees $1/3$ against $0.4$:

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
# Page [09](09_grpo_biases.ipynb) is about what this does to wrong answers, where $r-b<0$ and
# dividing by $T$ makes long failures cheap. A mean over all *tokens of the batch* is a third
# estimator: the same denominator for every row, but one that depends on who else was drawn.
#
# ## Variance
#
# For any number $b$ that does not depend on the drawn answer,
#
# $$\mathbb{E}[\,b\,\nabla\log\pi\,]=b\sum_y\nabla\pi(y)=b\,\nabla 1=0.$$
#
# So adding 10 to all rewards changes nothing in the mean. It changes everything in the
# noise. The variance here is of one drawn answer, summed over the 21 logits; divided by
# $\lVert g\rVert^2$ it is the draws until noise equals signal:

# %%
def mean_and_variance(A):                        # A (15,): advantage
    G = A[:, None, None] * S                     # (15, 7, 3)
    mean = torch.einsum("y,yij->ij", P, G)
    return mean, (P * (G**2).sum((1, 2))).sum() - (mean**2).sum()

signal = (g**2).sum()
for c, b in ((0, 0), (10, 0), (10, 10), (10, 10 + J.item())):
    mean, var = mean_and_variance(R + c - b)
    assert torch.allclose(mean, g, atol=1e-12)
    print(f"rewards +{c:<2d} baseline {b:7.4f}: variance {var:8.4f}, "
          f"draws until noise equals signal {var / signal:6.0f}")

# %% [markdown]
# 6 draws without the offset, 3076 with it, 4 with the mean reward as baseline. The policy,
# the task and the mean gradient are the same in all four lines.
#
# > **From [03](03_baselines.ipynb), in short.** The mean reward is not known, so it is estimated
# > from
# > the other answers. The **batch mean** $\bar r$ contains the answer's own reward and
# > shrinks the expected gradient by $(N-1)/N$, direction untouched. **Leave-one-out** (RLOO),
# > $b_i=\frac{1}{N-1}\sum_{j\ne i}r_j$, does not contain it and is exactly unbiased.

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
# All $15^4=50625$ groups of four. Both baselines are blind to the offset. The batch mean
# gives exactly $3/4$ of the truth; leave-one-out all of it. At offset 0 there is no gain:
# 0.0617 against 0.0569, because a baseline from three neighbours is itself noisy. Nor is
# the batch mean quieter than leave-one-out. It is the same estimate times $3/4$, and the
# last column says so.
#
# ## Credit: one number for every token
#
# The loss multiplies *every* token of an answer by the same $r_i$. Take the right answer
# (0, 1, stop), and ask after each token how good things look. The **value** of a prefix is
# the mean reward of the answers that start with it.

# %%
def value(prefix):
    n = len(prefix)
    here = torch.tensor([y[:n] == prefix for y in policy.outcomes])
    return float((P * R)[here].sum() / P[here].sum())

for y in ((0, 1, 2), (1, 2)):
    v = [value(y[:t]) for t in range(len(y) + 1)]
    for t, token in enumerate(y):
        print(f"answer {y}, token {token}: REINFORCE 1, "
              f"what it changed {v[t + 1] - v[t]:+.4f}")

# %% [markdown]
# The first 0 was a mistake: it took the chance of success from 0.2298 to 0.1313. It got
# lucky, and it is reinforced as much as the 1 that saved the answer. The *expected*
# gradient is right all the same: other draws with that 0 fail and are not reinforced.
# Wrong credit is not bias. It is variance, paid for in samples.
#
# How much, with answers of up to $T$ tokens? Let only the first token decide (reward 1
# when it is word 1) and let the policy write on. The signal stays; each innocent token
# adds noise.

# %%
for T in (1, 2, 3, 4):
    long = SequencePolicy(2, T)
    first = torch.tensor([float(y[0] == 1) for y in long.outcomes])
    truth = true_gradient(long, first)
    p = long.probabilities().detach()
    s = torch.stack([torch.autograd.grad(long.logprobs()[i].sum(),
                     long.logits)[0] for i in range(len(long))])
    var = p @ (first**2 * (s**2).sum((1, 2))) - (truth**2).sum()
    print(f"T = {T}: signal {(truth**2).sum():.4f}, noise "
          f"{var:.4f}, draws {var / (truth**2).sum():.1f}")

# %% [markdown]
# From 2.0 draws to 8.3. Each further token adds $2/3$ of what the last one did, because
# this policy stops with probability $1/3$ each time.
#
# **Reward-to-go.** When rewards arrive on the way, a token cannot have caused those that
# came before it; for that token they are a baseline. Dropping them,
# $G_t=\sum_{t'\ge t}r_{t'}$ in place of $r$, keeps the mean and as a rule lowers the
# noise. Pay 1 for each word 1, on the spot:

# %%
paid = torch.tensor([[float(y[t:t + 1] == (1,)) for t in range(3)]
                     for y in policy.outcomes])                  # (15, 3)
to_go = paid.flip(1).cumsum(1).flip(1)                           # (15, 3)
zero = torch.zeros_like(g)
per_token = torch.stack([torch.stack([
    torch.autograd.grad(policy.logprobs()[i, t], policy.logits)[0]
    if mask[i, t] else zero for t in range(3)]) for i in range(15)])
truth = true_gradient(policy, paid.sum(1))
for name, c in (("whole return", paid.sum(1, keepdim=True).expand(15, 3)),
                ("reward-to-go", to_go)):
    G = torch.einsum("yt,ytij->yij", c, per_token)
    mean = torch.einsum("y,yij->ij", P, G)
    var = P @ (G**2).sum((1, 2)) - (mean**2).sum()
    print(f"{name}: variance {var:.4f}")
    assert torch.allclose(mean, truth, atol=1e-12)

# %% [markdown]
# Less than half the noise, for free. (No law: where a late fine always takes back an early
# reward, the whole return is 0 and silent.) With an **outcome reward**, graded once at the end,
# there is nothing to drop: every token's reward-to-go is the whole reward. That is the
# usual case for language models. Page 06 builds a critic to get around it; page 08 lives
# with it.
#
# ## Where people go wrong
#
# > **Q-learning.** It is often said that the vocabulary is too large an action space for
# > it, since nobody can take that argmax. Better texts say the opposite, and are right:
# > the argmax is one call. What does not scale is *bootstrapping*, learning the value of
# > a prefix from the learnt values of longer ones, of which there are about $V^{T-1}$. One
# > value that is too high, and the greedy answer goes there:

# %% tags=["claim:B17"]
from itertools import product
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

# %% [markdown] tags=["cited:B16", "cited:B18"]
# > **Greedy only?** Value-based methods, one reads, can only end in a deterministic greedy
# > policy. Plain DQN acts that way (Mnih et al. 2013, arXiv 1312.5602). A softmax over
# > $Q$ at some temperature is a stochastic policy and value-based all the same: soft
# > Q-learning (Haarnoja et al. 2017, arXiv 1702.08165).
#
# > **One gradient for all?** All methods of the family are said to descend the same
# > gradient. On fresh answers, at the first step, they share REINFORCE's direction up to
# > baseline and a positive scale (policy gradient theorem, Sutton et al. 1999). After that
# > each takes its own, and DPO (Rafailov et al. 2023, arXiv 2305.18290) never uses it: it
# > differentiates a classification loss on pairs. And rewards are *ascended*.

# %% [markdown]
# > **Equal rewards teach nothing?** Under a group baseline, true. REINFORCE without one
# > moves on such a group, and *differently* on all 1 and on all 0, although neither says
# > which answer was better.

# %%
theta = torch.zeros(4, requires_grad=True)       # answers 0, 0, 1, 2 drawn
for r in (1.0, 0.0):
    loss = -(r * theta.log_softmax(0)[[0, 0, 1, 2]]).mean()
    print(f"all {r:.0f}:", end=" ")
    show(-torch.autograd.grad(loss, theta)[0])

# %% [markdown]
# With every reward 1, the answer drawn twice gets likelier and the one not drawn sinks. In
# the mean over draws this is zero. In one draw it is noise with a name: the rich get richer.
#
# > **Does the reward need a gradient?** No, and this loss must not see one. If the reward
# > tensor carries a graph (a KL penalty computed from the current log-probs, say), autograd
# > adds $\frac1N\sum_i\nabla r_i\,\log\pi(y_i)$ to the result. Detach it:

# %%
z = torch.tensor([0.5, -0.5, 0.0], requires_grad=True)
log_pi = z.log_softmax(0)
reward = torch.tensor([1.0, 0.0, 0.0]) - 0.5 * log_pi    # has a graph
p = log_pi.exp().detach()
for name, r in (("detached", reward.detach()), ("with graph", reward)):
    loss = -(p * r * log_pi).sum()
    print(f"{name:10s}", end=" ")
    show(-torch.autograd.grad(loss, z, retain_graph=True)[0])
p = z.softmax(0)
print("truth     ", end=" ")
show(torch.autograd.grad((p * reward).sum(), z)[0])

# %% [markdown]
# The last line is the true gradient of $\mathbb{E}[r]$, with $r$ depending on $\theta$. It
# equals the detached one: the term left out is $\mathbb{E}[\nabla r]$, here
# $-0.5\,\mathbb{E}[\nabla\log\pi]=0$ once more. Where that mean is not zero it is a loss
# term of its own.
#
# ## Exercises
#
# **02.1 Derive** · 8 minutes · ●●○. Without looking up: $\nabla\mathbb{E}[r]$ as an
# expectation, then why a constant baseline is free. Name the step that fails when the
# answers were drawn by an older policy.
# <details><summary>hint</summary>
#
# Start from $\sum_y\pi(y)r(y)$. Multiply and divide by $\pi(y)$. For the baseline you
# need only $\sum_y\pi(y)=1$.
# </details>

# %% [markdown]
# **02.2 Predict, then run** · 5 minutes · ●○○. Graders differ in taste: (a) right 1,
# wrong 0; (b) right 0, wrong −1; (c) right 1, wrong −1. Without baseline: which share
# the mean gradient? Under each, which answers move the policy when drawn? Write it down,
# then change `taste`.
# <details><summary>hint</summary>
#
# Write each as $\alpha\,r+c$ with $r$ from (a). What does $\alpha$ do to the gradient,
# what does $c$?
# </details>

# %% tags=["exercise"]
taste = {"right": 1.0, "wrong": 0.0}             # your turn
reward = torch.where(R == 1, taste["right"], taste["wrong"])
mean, var = mean_and_variance(reward)
print(f"mean gradient, norm {mean.norm():.4f}; variance {var:.4f}")

# %% [markdown]
# **02.3 Implement** · 8 minutes · ●●○. Log-probability of each written token; the logits
# at $t$ already belong to the token at $t$. `check.token_logprobs` says what you got, or
# what you did instead.
# <details><summary>hint</summary>
#
# `log_softmax` over the last axis. `gather` wants an index with as many axes as its
# input. And try it with a logit of 1000.
# </details>

# %% tags=["exercise"]
def my_token_logprobs(logits, tokens):  # (B, T, V), (B, T) -> (B, T)
    return ...

check.token_logprobs(my_token_logprobs)

# %% [markdown]
# **02.4 Implement** · 8 minutes · ●●○. REINFORCE's loss without baseline. `mask` is
# boolean, True on the tokens the policy wrote; anything may stand under False.
# <details><summary>hint</summary>
#
# Three reductions in this order: sum over an answer's own tokens, times its reward, mean
# over rows. Which of the three does a mask touch?
# </details>

# %% tags=["exercise"]
def my_reinforce_loss(logprobs, mask, rewards):  # (B, T), (B, T), (B,)
    return ...

check.reinforce_loss(my_reinforce_loss)

# %% [markdown]
# **02.5 Implement** · 6 minutes · ●●○. The leave-one-out baseline $b_i$ for several
# prompts at once: the first $G$ rows answer the first prompt, the next $G$ the second, and
# so on. $G$ is `num_generations`.
# <details><summary>hint</summary>
#
# Reshape to (prompts, G). The sum of the others is the sum of all minus one's own.
# </details>

# %% tags=["exercise"]
def my_leave_one_out(rewards, num_generations):  # (B,), G -> (B,)
    return ...

check.baseline_leave_one_out(my_leave_one_out)

# %% [markdown]
# **02.6 Find the silent bug** · 10 minutes · ●●●. This trains. Its loss is finite, the
# mask is applied, the sign is right, and one batch's gradient points the right way. Write
# one assertion that fails for it and holds for `reinforce_loss`: something about a batch
# that must not change a gradient. Then ask `check.reinforce_loss(suspect)`.
# <details><summary>hint</summary>
#
# Make a wrong answer (reward 0) longer than all others. What should happen to the gradient of
# the others? What does happen?
# </details>

# %% tags=["exercise"]
def suspect(logprobs, mask, rewards):
    kept = torch.where(mask.bool(), logprobs, 0.0)
    return -(rewards[:, None] * kept).mean()

# your assertion:

# %% [markdown]
# Solved, with every check passing: [solutions](solutions/02_reinforce.ipynb).
#
# ## In the interview
#
# Answer aloud, 60 seconds each, then unfold.
#
# **Derive the policy gradient. Where do you use that the samples are the policy's own?**
# <details><summary>answer</summary>
#
# $J=\sum_y\pi(y)r(y)$. Differentiate: $\sum_y r\,\nabla\pi$. Since
# $\nabla\pi=\pi\,\nabla\log\pi$, that is $\sum_y\pi\,r\,\nabla\log\pi
# =\mathbb{E}_\pi[r\,\nabla\log\pi]$. For a sequence $\log\pi$ is the sum of token
# log-probs; prompt and environment do not depend on $\theta$ and drop out. The samples
# must come from $\pi_\theta$ when the sum is read as an expectation, so that it can be
# estimated by a sample mean. With an older policy's samples each term needs the
# ratio $\pi_\theta/\pi_\text{old}$: that is importance sampling, and then PPO.
# </details>
#
# **Why not backpropagate through the sampling?**
# <details><summary>answer</summary>
#
# A drawn token is an integer: the draw is piecewise constant in the logits, its
# derivative is zero wherever it exists, and the reward is a program. The exact sum would do
# (it is differentiable) but has $V^T$ terms: $10^{470}$ at 50,000 words and 100 tokens.
# Relaxations exist (Gumbel-softmax, straight-through): lower variance, but biased, and
# they need a reward that accepts soft tokens. The score function needs only $\log\pi$.
# </details>
#
# **Why is REINFORCE high-variance, and what do you do about it?**
# <details><summary>answer</summary>
#
# The weight on a sample is its whole return: an offset in the reward multiplies the noise
# and not the signal (on this page 6 draws become 3076), and every token carries the noise
# of all the others, so noise grows with length. Remedies, cheapest first: a baseline
# (mean of the other answers), more answers per prompt, reward-to-go where rewards arrive
# on the way, a critic with GAE for per-token credit. The first three keep the mean.
# </details>
#
# **Your RL loss is flat at 0 (or rising). Is training broken?**
# <details><summary>answer</summary>
#
# You cannot tell from the loss. It is a surrogate: right gradient at the point where the
# samples were drawn, arbitrary value. With centred rewards and fresh samples it can be
# exactly 0 with a healthy gradient, and it can rise while the policy improves. Look at
# reward on held-out prompts, gradient norm, share of groups with any reward spread, KL and
# entropy.
# </details>
#
# **What does a baseline change, and what must it not depend on?**
# <details><summary>answer</summary>
#
# It changes each sample's push and the variance, and leaves the mean, because
# $\mathbb{E}[\nabla\log\pi]=0$. It must not depend on the sampled action it is multiplied
# with. The batch mean does a little (own reward is in it): scale $(N-1)/N$, same
# direction. It also changes meaning: without a baseline a reward-0 sample is treated
# as if it had not been drawn; with one it is pushed down.
# </details>
#
# **One reward at the end, 500 tokens. Who gets the credit?**
# <details><summary>answer</summary>
#
# All tokens equally: reward-to-go of an outcome reward is the whole reward. It is
# unbiased, since lucky mistakes are outvoted over many draws, and noisy, with noise
# growing in the number of tokens. To do better you need information from the middle: a
# critic's values, process rewards, or fresh rollouts from a prefix. Each adds cost and, if
# learnt, bias.
# </details>
#
# **Sum or mean over tokens?**
# <details><summary>answer</summary>
#
# The sum is $\log\pi(y)$ and gives the gradient of $\mathbb{E}[r]$. Dividing each answer
# by its length gives, on-policy without baseline, exactly the gradient of
# $\mathbb{E}[r/T]$: short right answers are preferred, and with negative advantages
# long wrong ones are punished less. A token mean over the batch uses one denominator for
# all rows. They are different estimators, not a normalisation detail.
# </details>
#
# **Why policy gradients and not Q-learning over tokens?**
# <details><summary>answer</summary>
#
# Not because of the argmax: 100,000 comparisons are nothing. Because the value of a prefix
# would be learnt from learnt values of longer prefixes, there are about $V^{T-1}$ of them,
# almost none is seen twice, and one inner value that is too high redirects the greedy
# answer. Policy gradients use the reward that really came. And the pre-trained model
# already *is* a policy, not a $Q$.
# </details>
#
# ## Recap
#
# From here on one group of four answers goes through every method: rewards 1, 1, 0, 0,
# lengths 3, 5, 2, 6, drawn from the current policy. Per answer: the advantage $A$ (reward
# minus baseline), and the weight $c\,A$, here $A/4$, with which each of its tokens is
# pushed up.

# %%
from rlnb.toys import running_group
group = running_group().replace(old_logprobs=None)               # on-policy
for name in ("reinforce", "reinforce_batch_mean", "rloo"):
    table = ZOO[name].explain(group)
    A = table.advantages[:, 0]                                   # (4,)
    push = -table.gradient[:, 0]                                 # (4,)
    print(f"{name:21s} A", " ".join(f"{x:+.4f}" for x in A.tolist()),
          "| token", " ".join(f"{x + 0.0:+.4f}" for x in push.tolist()))

# %% [markdown]
# * $\nabla J=\mathbb{E}[r\,\nabla\log\pi]$: differentiate the log-probability, not the
#   draw and not the grader.
# * The loss $-\frac1N\sum r_i\log\pi(y_i)$ has the right gradient and a meaningless value.
# * Sum over tokens, mean over answers; `where` on the inputs, so that padding is silent.
# * Any constant may be subtracted from the reward; without one, noise is the problem, and
#   an answer with reward 0 counts as not drawn.
# * One reward, every token: unbiased, and noisier with every token.
#
# Next: [03 · Baselines](03_baselines.ipynb), which numbers may be subtracted and what each costs.
