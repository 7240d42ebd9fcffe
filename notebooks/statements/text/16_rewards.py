# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 16 · statements: rewards
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# Between them stands what the lesson, [16 · Rewards](../16_rewards.ipynb), had no room for: graders
# on one task, heavy tails, two formulas fitted, distillation, steps and shaping, several rewards,
# the median of three graders.

# %% tags=["setup"]
import random
from math import log
import torch
from torch.nn.functional import cross_entropy
from rlnb.classroom.lesson import settle, statement
from rlnb.objective import Batch, Objective, several_rewards
from rlnb.objective import raw_reward, ratio, sequence_sum
from rlnb.toys import SequencePolicy
from rlnb.toys.proxy import (GAO_FORMS, answer_pool, best_of_n_kl,
                             best_of_n_weights, fit_gao, group_pay,
                             kl_to_uniform, pool_kl, tilted_weights)
from rlnb.training.tasks import TASKS
from rlnb.training.tasks.sort import read_numbers
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## The grader

# %% [markdown] tags=["cited:D13"]
# ### D13 · dense and sparse
#
# **"Reward models give dense rewards, verifiers sparse ones."** Both give one number per answer, at
# its end: InstructGPT ([2203.02155](https://arxiv.org/abs/2203.02155)) and Tülu 3
# ([2411.15124](https://arxiv.org/abs/2411.15124)) alike. What differs is that the first is *graded*
# and the second binary. Dense in time is a process reward, or distillation (below).

# %% [markdown]
# ### Four graders on one task
#
# The lesson's sorting task. Answers come from its demonstrations, made to err more often: half of
# them replace a number, a tenth swap two neighbours. A fifth of the answers are a trick,
# `1,1,1,1,1`. Four graders:
#
# * **verifier**: compares with the right list.
# * **rubric**, a quarter each: five numbers; in order; starts with the smallest given number; ends
#   with the largest.
# * **reward model**: logistic regression on three features (in order, share of the given numbers'
#   digits that occur, length), fitted to 300 pairs of demonstrations. It never saw the trick.
# * **judge**: sees the share of the given numbers through noise of std 0.3, and likes short
#   answers.

# %%
sorting = type(TASKS["sort"])(misread=0.5, swap=0.1)
dice = random.Random(0)
noise = torch.Generator().manual_seed(0)

def features(problem, text):
    """In order, digits, length, both ends right, numbers: shares."""
    wanted, got = (read_numbers(t, 5) or [] for t in (problem.answer, text))
    left, digits = list(wanted), set(problem.answer)
    for number in got:
        if number in left:
            left.remove(number)
    ends = (got[0] == wanted[0]) + (got[-1] == wanted[-1])
    common = len(digits & set(text)) / len(digits)
    return [float(got == sorted(got)), common, len(text) / 15, ends / 2,
            1 - len(left) / 5]

# %%

def answers(n, tricks):
    """n problems with 16 answers each: features (n, 16, 5), right."""
    rows = []
    for _ in range(n):
        problem = sorting.problem(dice)
        texts = ["1,1,1,1,1" if dice.random() < tricks
                 else sorting.demo(dice, problem) for _ in range(16)]
        rows.append([[*features(problem, t), sorting.verify(problem, t)]
                     for t in texts])
    return torch.tensor(rows)[..., :5], torch.tensor(rows)[..., 5]

# %%
seen, seen_right = answers(300, 0.0)             # pairs: answers 0 and 1
w = torch.zeros(3, requires_grad=True)
better = seen_right[:, 0] - seen_right[:, 1]
gap = (seen[:, 0, :3] - seen[:, 1, :3])[better != 0]
gap = gap * better[better != 0, None]
for _ in range(400):
    loss = -torch.nn.functional.logsigmoid(gap @ w).mean()
    w = (w - 2.0 * torch.autograd.grad(loss, w)[0]).detach()
    w.requires_grad_()
x, truth = answers(400, 0.2)
graders = {"verifier": truth, "rubric": (1 + x[..., 0] + 2 * x[..., 3]) / 4,
           "reward model": x[..., :3] @ w.detach(),
           "judge": x[..., 4] + 1.5 * (1 - x[..., 2]) + 0.3 * torch.randn(
               x.shape[:2], generator=noise)}

# %%
print("grader         right on pairs    right, best of 1      4     16")
for name, scores in graders.items():
    a, b = scores[:, ::2] - scores[:, 1::2], truth[:, ::2] - truth[:, 1::2]
    pairs = ((a * b > 0).double() + 0.5 * (a == 0))[b != 0].mean()
    best = [truth.gather(1, scores[:, :n].argmax(1, keepdim=True)).mean()
            for n in (1, 4, 16)]
    print(f"{name:14s} {pairs:12.2f} {best[0]:21.2f} {best[1]:7.2f} "
          f"{best[2]:6.2f}")

# %% [markdown]
# On pairs the reward model is far ahead of the judge. At best of 16 they are level, and the rubric
# is little better: a list with one number replaced between its ends has full marks, and among
# sixteen answers there is one. The reward model is no better at 16 than at 4. Which grader to take
# is a question about what the policy can write, not about pairs.

# %% [markdown]
# ### E08 · swap the order
#
# A judge compares two answers. It adds a bonus for the longer one and a bonus for the one it reads
# first, and some noise. Then it reads them in the other order, and the two verdicts are averaged.

# %%
statement("E08")

# %% tags=["claim:E08"]
gen = torch.Generator().manual_seed(0)
quality, length, noise1, noise2 = torch.randn(4, 2, 200_000, generator=gen)
def judge(a, b, noise):
    """Above 0: a wins. a is read first."""
    return ((quality[a] - quality[b]) + 0.5 * (length[a] - length[b])
            + 0.8 + 0.3 * noise[0])

one_way = judge(0, 1, noise1)
both_ways = (judge(0, 1, noise1) - judge(1, 0, noise2)) / 2
right, longer = quality[0] > quality[1], length[0] > length[1]
found = {}
for name, verdict in (("one way", one_way), ("averaged", both_ways)):
    first = verdict > 0
    found[name] = [x.double().mean().item() for x in
                   (first, first == right, first == longer)]
    print("{:9s} first one wins {:.3f}, agrees with the truth {:.3f}, "
          "longer one wins {:.3f}".format(name, *found[name]))
assert abs(found["averaged"][0] - 0.5) < 0.005 < found["one way"][0] - 0.6
assert found["averaged"][1] > found["one way"][1] + 0.05
assert found["averaged"][2] > 0.6

# %%
settle("E08", "it depends")

# %% [markdown]
# The bonus for the place is a constant and cancels, *because it is added*. A judge whose bias
# depends on the answers (it reads the second less carefully when the first is long) keeps a rest.
# Length survives, and even grows a little: what the place had blurred is now clear.

# %% [markdown]
# ## Pushing

# %% [markdown]
# ### E09 · verifiable is not unhackable
#
# Three strategies to pass unit tests: sloppy (passes 0.1), honest (passes 0.3, and is then right),
# and hard-code the tests (passes always, never right), at the start one answer in a hundred. Exact
# policy gradient on the pass rate, no sampling.

# %%
statement("E09")

# %% tags=["claim:E09"]
passes = torch.tensor([0.1, 0.3, 1.0])
truly = torch.tensor([0.1, 0.3, 0.0])
def climb(start, steps=900):
    """(steps, 3): passed, right, hard-coded."""
    z, path = torch.tensor(start).log(), []
    for _ in range(steps):
        pi = z.softmax(0)
        path.append(torch.stack([pi @ passes, pi @ truly, pi[2]]))
        z = z + pi * (passes - pi @ passes)   # gradient of the pass rate
    return torch.stack(path)

path = climb([0.09, 0.90, 0.01])
top = path[:, 1].argmax()
for step in (0, int(top), 899):
    print("step {:3d}: tests passed {:.2f}, truly right {:.2f}, "
          "hard-coded {:.3f}".format(step, *path[step].tolist()))
share = climb([0.09, 0.91, 1e-12])[-1]
print("without the hard-coders:  truly right {:.2f}".format(share[1]))
assert path[top, 1] > path[0, 1] and path[-1, 1] < 0.01 < path[-1, 0] - 0.9
assert share[1] > 0.29 and (path[1:, 0] >= path[:-1, 0] - 1e-12).all()

# %%
settle("E09", "true")

# %% [markdown]
# The pass rate never falls, at any step. Only a second set of tests would have shown the turn. The
# surface is smaller than a reward model's, and one hole is enough.

# %% [markdown]
# ### E12 · nearly ground truth
#
# A verifier that lets one wrong answer in a hundred pass, and a hard prompt: one answer in a
# thousand is right.

# %%
statement("E12")

# %% tags=["claim:E12"]
false_pass, rate = 0.01, 0.001
wrong = (1 - rate) * false_pass                 # passes, and is wrong
among = wrong / (wrong + rate)
met = 1 - (1 - false_pass) ** 256
print(f"one answer, wrongly passed:            {wrong:.4f}")
print(f"of the answers that pass, wrong:       {among:.2f}")
print(f"a false pass among 256 wrong answers:  {met:.2f}")
z = torch.tensor([rate, wrong, 1 - rate - wrong]).log()
for _ in range(2000):                           # all that passes is paid 1
    pi, paid = z.softmax(0), torch.tensor([1.0, 1.0, 0.0])
    z = z + pi * (paid - pi @ paid)
pi = z.softmax(0)
print(f"after training: passes {1 - pi[2]:.2f}, right {pi[0]:.4f}")
assert 0.92 < met < 0.93 and among > 0.9 and pi[1] > 0.9

# %%
settle("E12", "it depends")

# %% [markdown]
# For one answer that nobody selected, the verifier errs once in a hundred. Train on what passes,
# and the false pass is what you train: it was ten times as frequent as a right answer.

# %% [markdown]
# ### E13 · noise without bias
#
# Self-rewarding: the grader is the model, and say its marks are pure noise, no bias. Eight equal
# answers, groups of 16, 500 steps, 40 seeds. Entropy starts at $\ln8=2.08$.

# %%
statement("E13")

# %%
def drift(divide, noise=1e-4, K=8, seeds=40, steps=500, lr=0.5):
    """Entropy at the end, (seeds,), and the mean policy."""
    gen = torch.Generator().manual_seed(0)
    theta = torch.zeros(seeds, K)
    for _ in range(steps):
        pi = theta.softmax(1)
        y = torch.multinomial(pi, 16, True, generator=gen)
        A = noise * torch.randn(seeds, 16, generator=gen)
        A = A - A.mean(1, keepdim=True)
        if divide:
            A = A / (A.std(1, correction=0, keepdim=True) + 1e-6)
        push = torch.zeros_like(pi).scatter_add(1, y, A)
        theta = theta + lr / 16 * (push - pi * A.sum(1, keepdim=True))
    pi = theta.softmax(1)
    return -torch.special.xlogy(pi, pi).sum(1), pi.mean(0)

# %% tags=["claim:E13"]
kinds = (("mean alone, noise of std 1e-4", False, 1e-4),
         ("mean alone, noise of std 1", False, 1.0),
         ("z-score, any noise", True, 1e-4))
H = {name: drift(divide, noise) for name, divide, noise in kinds}
print(f"start: entropy {log(8):.2f}")
for name, (h, average) in H.items():
    print(f"{name:30s} {h.mean():.2f} ({h.min():.2f} to {h.max():.2f}), "
          f"mean policy from {average.min():.2f} to {average.max():.2f}")
h = H["z-score, any noise"]
assert h[0].mean() < 1.75 and h[0].max() < log(8) - 0.02
assert (h[1] - 1 / 8).abs().max() < 0.09
assert H["mean alone, noise of std 1e-4"][0].min() > 2.079

# %%
settle("E13", "it depends")

# %% [markdown]
# Averaged over the seeds no answer is favoured: there is no pull. But every single run drifts away
# from uniform, and a run is all one has. The mean alone is safe only because this noise was tiny:
# with noise of std 1 it drifts as well.

# %% [markdown]
# ## Over-optimisation
#
# ### Tails of three kinds, and two formulas
#
# The lesson's pool, and a third grader T: its error is a Student t with two degrees of freedom, a
# smooth heavy tail. Gao et al. ([2210.10760](https://arxiv.org/abs/2210.10760)) describe gold with
# $d=\sqrt{\mathrm{KL}}$: $d(a-bd)$ for best of N, $d(a-b\log d)$ for RL. Both forms, fitted to both
# ways to push, up to 4 nats; the largest error of the fit, in units of gold:

# %%
gold, A, B = answer_pool()
gen = torch.Generator().manual_seed(2)
top, low1, low2 = torch.randn(3, *gold.shape, generator=gen)
T = gold + 0.25 * top / ((low1**2 + low2**2) / 2).sqrt()

# %%
def along(scores, weights):
    """sqrt(KL) and gold for a list of weights, up to 4 nats."""
    points = torch.tensor([[kl_to_uniform(w).mean().sqrt().item(),
                            (w * gold).sum(1).mean().item()]
                           for w in weights])
    return points[points[:, 0] <= 2.0].T

print("grader  push        highest gold   d(a - b d)            "
      "d(a - b log d)")
for name, scores in (("A", A), ("B", B), ("T", T)):
    for way, weights in (
            ("best of N", [best_of_n_weights(scores, 2**k)
                           for k in range(1, 9)]),
            ("RL", [tilted_weights(scores, b) for b in
                    (10, 5, 4, 3.4, 3, 2.5, 2, 1.5, 1, 0.7, 0.5)])):
        d, g = along(scores, weights)
        row = f"{name:7s} {way:10s} {g.max():12.2f}   "
        for form in GAO_FORMS:
            a, b = fit_gao(d, g, form)
            miss = (d * a + b * GAO_FORMS[form](d) - g).abs().max()
            row += f"{a:6.2f} {b:5.2f}, off {miss:.2f}   "
        print(row)

# %% [markdown]
# A is a straight line in $d$: $b$ is about 0, nothing turns. T behaves as B does: best of N first
# gains, RL gains hardly anything. Fitted to data with the turn inside, the forms miss best of N by
# 0.11 to 0.34. Neither is a law. They were found on trained reward models, whose errors may also
# grow with the distance from the training answers. For that kind the first form can be derived:
#
# **A proxy that is right only near the start.** Let $x$ be standard normal, the proxy $x$ ("longer
# is better", true for the answers it was fitted to), gold $a\,x-c\,x^2$. RL shifts $x$ to mean
# $1/\beta$, with $\mathrm{KL}=1/(2\beta^2)$. So with $\delta=\sqrt{2\,\mathrm{KL}}=1/\beta$ gold
# gains $\delta(a-c\,\delta)$, exactly, and goes far below its start.

# %%
a, c = 1.0, 0.25
x = torch.linspace(-12, 12, 20001)
start = torch.softmax(-x**2 / 2, 0)
print("delta   gold gained   delta (a - c delta)")
for beta in (2.0, 1.0, 0.5, 0.25, 0.2):
    w = start * torch.exp(x / beta - x.max() / beta)
    w = w / w.sum()
    kl = (w * (w.clamp_min(1e-300) / start.clamp_min(1e-300)).log()).sum()
    delta = (2 * kl).sqrt()
    gained = (w - start) @ (a * x - c * x**2)
    print(f"{delta:5.2f} {gained:12.4f} {delta * (a - c * delta):16.4f}")
    assert abs(gained - delta * (a - c * delta)) < 1e-6

# %% [markdown]
# ### GRPO's z-score of a graded score
#
# Pay is the z-score of B's score beside seven opponents, no more than $\sqrt7$ however high a
# glitch scores. With opponents of the starting policy the optimum is
# $\pi_{\text{ref}}\,e^{R/\beta}$ again. With opponents renewed at every small step there is no such
# formula; small steps are followed.

# %%
even = torch.full_like(gold, 1 / gold.shape[1])
pay = group_pay(B, even, torch.Generator().manual_seed(3), groups=16)
fixed = [tilted_weights(pay, b) for b in (4, 2, 1.5, 1, 0.7, 0.5, 0.4, 0.3)]
told, renewed = torch.zeros_like(gold), []
gen = torch.Generator().manual_seed(0)
for _ in range(27):
    renewed.append(told.softmax(1))
    told = told + 0.1 * group_pay(B, renewed[-1], gen, groups=3)
for name, weights in (("of the start", fixed), ("renewed", renewed)):
    worth = [(w * gold).sum(1).mean().item() for w in weights]
    top = worth.index(max(worth))
    spent = kl_to_uniform(weights[top]).mean()
    print(f"opponents {name:13s} highest gold {worth[top]:.1f}, "
          f"at {spent:.1f} nats")
    assert worth[-1] < worth[top] - 0.1

# %% [markdown]
# Gold turns both times. A glitch's pay is bounded, but still above an honest answer's.

# %% [markdown]
# ### Best of N with few answers
#
# $\log N-(N-1)/N$ is exact in the limit of rare answers that all score differently, and a bound
# otherwise ([2401.01879](https://arxiv.org/abs/2401.01879)). A policy with five answers; the best
# one has chance $p$. The exact KL can never exceed $-\log p$.

# %%
print("   N   bound    p = 0.2    p = 0.02")
for n in (2, 4, 16, 64, 1024):
    exact = [pool_kl(torch.tensor([(1 - p) / 4] * 4 + [p]), n).item()
             for p in (0.2, 0.02)]
    print(f"{n:4d} {best_of_n_kl(n):7.3f} {exact[0]:10.3f} "
          f"{exact[1]:11.3f}")
    assert max(exact) <= best_of_n_kl(n) + 1e-12
print(f"-log p {-log(0.2):12.3f} {-log(0.02):11.3f}")

# %% [markdown]
# ## Selection

# %% [markdown]
# ### D14 · what it never samples
#
# Rejection-sampling fine-tuning writes $N$ answers to a prompt and trains on the right ones. One
# answer in a thousand is right.

# %%
statement("D14")

# %% tags=["claim:D14"]
p = 0.001
for n in (8, 64, 1024):
    print(f"N = {n:4d}: at least one right answer with chance "
          f"{100 * (1 - (1 - p) ** n):.1f} %")
policy = torch.tensor([0.7, 0.3, 0.0])         # the third is right
kept = best_of_n_weights(torch.tensor([0.0, 1.0, 2.0]), 1024)  # uniform
cumulated = policy.cumsum(0) ** 1024
chosen = torch.diff(cumulated, prepend=torch.zeros(1))
print("best of 1,024 when the right one has chance 0:",
      [round(x, 4) + 0.0 for x in chosen.tolist()])
assert chosen[2] == 0 and kept[2] > 0.99
assert abs(1 - (1 - p) ** 8 - 0.008) < 1e-4

# %%
settle("D14", "true")

# %% [markdown]
# The same holds for RL: a group without a right answer has no gradient (11). SFT and distillation
# are the way in for what is not there at all.

# %% [markdown]
# ### D15 · one operation in two places
#
# Serve the best of $N$, or fine-tune on the best of $N$ until the loss is flat. Six answers; the
# second policy starts at the base and does cross-entropy on the picks, exactly.

# %%
statement("D15")

# %% tags=["claim:D15"]
base = torch.tensor([0.3, 0.25, 0.2, 0.15, 0.07, 0.03])   # by score, rising
served = torch.diff((base.cumsum(0)) ** 4, prepend=torch.zeros(1))
z = base.log().requires_grad_()
for _ in range(4000):
    loss = -(served * z.log_softmax(0)).sum()
    z = (z - 1.0 * torch.autograd.grad(loss, z)[0]).detach()
    z.requires_grad_()
tuned = z.detach().softmax(0)
print("best of 4, served", [round(x, 4) for x in served.tolist()])
print("fine-tuned on it ", [round(x, 4) for x in tuned.tolist()])
for n in (2, 4, 64, 1024):
    top = torch.diff(base.cumsum(0).clamp(max=1) ** n,
                     prepend=torch.zeros(1))
    kl = torch.special.xlogy(top, top / base).sum()
    print(f"N = {n:4d}: KL at most {best_of_n_kl(n):.3f}, here {kl:.3f}")
    assert kl <= best_of_n_kl(n)
assert (tuned - served).abs().max() < 1e-3

# %%
settle("D15", "true")

# %% [markdown]
# What differs is the price: $N$ answers at every request, or $N$ answers per training prompt and
# then one. And a network, unlike this table, also carries the change to other prompts.

# %% [markdown]
# ## Distillation, and handing over

# %% [markdown]
# ### D16 · on-policy distillation
#
# The student writes; at each token its advantage is
# $A_t=\log p_\text{teacher}-\log\pi_\text{student}$. What is the expected gradient? A policy of up
# to three tokens, enumerated: the rule as an objective of this course, against the gradient of the
# reverse KL *per token with the visited prefixes held fixed*.

# %%
statement("D16")

# %% tags=["claim:D16"]
gen = torch.Generator().manual_seed(0)
student, teacher = (SequencePolicy(2, 3, torch.randn(7, 3, generator=gen))
                    for _ in range(2))
lp, target = student.logprobs(), teacher.logprobs().detach()
A_t = (target - lp).detach()                     # (outcomes, tokens)
pi, mask = student.probabilities().detach(), student.mask
by_rule, = torch.autograd.grad((pi[:, None] * A_t * lp * mask).sum(),
                               student.logits, retain_graph=True)

table, told = student.logits.log_softmax(1), teacher.logits.log_softmax(1)
visits = torch.zeros(7)
for row, state in enumerate(student._state):
    visits.index_add_(0, state, pi[row] * mask[row])
reverse = (table.exp() * (table - told.detach())).sum(1)      # per prefix
by_kl, = torch.autograd.grad(-(visits * reverse).sum(), student.logits)
print("equal to 1e-12:", bool((by_rule - by_kl).abs().max() < 1e-12))
print(f"tokens with a signal: {int((A_t * mask != 0).sum())} of "
      f"{int(mask.sum())}; one number per answer in RL")
assert (by_rule - by_kl).abs().max() < 1e-12 and by_rule.norm() > 0.1

# %%
settle("D16", "true")

# %% [markdown]
# In this course that is a `Batch` with given advantages, nothing new. (The gradient of the KL of
# *whole answers* has one more part: a token also decides which prefixes come later. It needs the
# sum of all later differences instead of the present one.)

# %%
rows = torch.arange(len(student))
chance = student.probabilities().detach()
opd = Objective(raw_reward(), ratio(), sequence_sum)
batch = Batch(logprobs=student.logprobs(), completion_mask=mask,
              rewards=torch.zeros(len(student)), num_generations=1,
              advantages=A_t * chance[:, None] * len(student))
gradient, = torch.autograd.grad(-opd(batch).loss, student.logits)
off = (gradient - by_rule).abs().max()
print("as an Objective, equal to 1e-12:", bool(off < 1e-12))
assert off < 1e-12

# %% [markdown]
# ### SFT, RL, on-policy distillation: the same answers
#
# A chain of ten decisions with four choices. On the track one of them is right; after a mistake the
# chain is *off the track*, where another one is right and leads back. The reward is 1 if at least
# six choices were right. The teacher is right with 0.97 everywhere, the student starts near random.
# Five batches of 32 answers: SFT gets the teacher's, the others write their own. Three learning
# rates for each, the best one counts; 40 seeds.

# %%
L, V, S = 10, 4, 40                              # steps, choices, seeds
good = torch.stack([torch.zeros(L), torch.ones(L)]).long()   # on, off track
sure = torch.full((2, L, V), 0.01)
sure.scatter_(2, good[:, :, None], 0.97)

def walk(table, gen, n=32):
    """table (S, 2, L, V) -> state, choice (S, n, L) and reward (S, n)."""
    off, made = torch.zeros(S, n).long(), torch.zeros(S, n)
    states, picks = [], []
    for t in range(L):
        here = table[:, :, t].gather(1, off[..., None].expand(-1, -1, V))
        pick = here.reshape(-1, V).multinomial(1, generator=gen).view(S, n)
        states.append(off), picks.append(pick)
        off = (pick != good[:, t][off]).long()
        made += 1 - off
    reward = (made >= 6).double()
    return torch.stack(states, 2), torch.stack(picks, 2), reward

# %%
def learn(kind, rate, batches=5):
    """Reward after training, (S,), and the right choice off the track."""
    gen = torch.Generator().manual_seed(0)
    z = 0.5 * torch.randn(S, 2, L, V, generator=gen)
    teacher = sure.expand(S, 2, L, V)
    for _ in range(batches):
        z = z.requires_grad_()
        pi = z.softmax(3)
        s, y, R = walk(teacher if kind == "SFT" else pi.detach(), gen)
        at = torch.arange(L).expand_as(s)
        seed = torch.arange(S)[:, None, None].expand_as(s)
        lp = pi[seed, s, at, y].log()
        A = {"SFT": torch.ones_like(lp),
             "RL": (R - R.mean(1, keepdim=True))[..., None].expand_as(lp),
             "distillation": (sure[s, at, y].log() - lp).detach()}[kind]
        up, = torch.autograd.grad((A * lp).sum() / 32, z)
        z = (z + rate * up).detach()
    _, _, R = walk(z.softmax(3), gen, 2000)
    return R.mean(1), z.softmax(3)[:, 1, :, 1].mean()

# %%
print("                reward               right choice, off the track")
best = {}
for kind in ("SFT", "RL", "distillation"):
    runs = [learn(kind, rate) for rate in (3.0, 10.0, 30.0)]
    best[kind] = R, back = max(runs, key=lambda run: run[0].mean())
    print(f"{kind:14s} {R.mean():7.3f} +- {R.std() / S**0.5:.3f}"
          f"{back:20.2f}")
assert best["RL"][0].mean() < 0.9 < 0.99 < best["SFT"][0].mean()
assert best["distillation"][1] > best["SFT"][1] + 0.1

# %% [markdown]
# In reward SFT and distillation tie: on the track both know the way. Off it SFT has learnt less,
# because the teacher rarely goes there; that matters for a student that errs. RL sees its own
# mistakes too and gets one number per answer, at the start mostly 0. Distillation has both, where a
# teacher with log-probabilities exists. It cannot pass the teacher; RL can.

# %% [markdown] tags=["cited:E11"]
# ### E11 · distillation beats RL on small models
#
# **"Distillation beats RL on small models."** As reported in two families: DeepSeek-R1
# ([2501.12948](https://arxiv.org/abs/2501.12948)) compares a 32B distilled from R1 with RL on the
# same base, and Qwen3 ([2505.09388](https://arxiv.org/abs/2505.09388)) reports on-policy
# distillation to be both better and cheaper than RL for its small models. Other small models gained
# from RL (M04). Not a law.

# %% [markdown] tags=["cited:M03"]
# ### M03 · words in quotation marks
#
# **"DeepSeek's report says that RL for its distilled models would help and is left to others", as a
# quotation.** Those words are not in it ([2501.12948](https://arxiv.org/abs/2501.12948)). In one
# place it says that adding RL could raise the distilled models substantially and leaves this to the
# community; in another that RL on them did bring further gains. Quote what is there.

# %% [markdown] tags=["cited:M04"]
# ### M04 · small models skip RL
#
# **"Small models skip RL altogether."** Two small families did. A 7B was trained with RL to good
# effect in the same period: AceReason-Nemotron
# ([2505.16400](https://arxiv.org/abs/2505.16400)).

# %% [markdown]
# ### From SFT to RL: how long?
#
# Forty prompts with twenty answers; a fifth of the answers to each are right. Demonstrations for
# SFT are right on thirty prompts and wrong on ten. SFT for some steps, then RL with a fixed budget:
# 60 steps with 8 answers to each prompt.

# %%
gen = torch.Generator().manual_seed(0)
P, K = 40, 20
right = (torch.rand(P, K, generator=gen) < 0.2).double()
right[:, 0], right[:, 1] = 1.0, 0.0
demo = torch.where(torch.arange(P) < 30, 0, 1)      # the last 10: wrong
first = torch.randn(P, K, generator=gen) - 2 * right  # right is rare

def after(sft_steps, rl_steps=60, seeds=40, rate=1.0):
    z = first.clone().requires_grad_()
    for _ in range(sft_steps):
        loss = cross_entropy(z, demo, reduction="sum")
        up, = torch.autograd.grad(loss, z)
        z = (z - 0.3 * up).detach().requires_grad_()
    before = (z.softmax(1) * right).sum(1).detach()
    z = z.detach().repeat(seeds, 1, 1)
    dice = torch.Generator().manual_seed(1)
    for _ in range(rl_steps):
        pi = z.softmax(2)
        y = pi.view(-1, K).multinomial(8, True, generator=dice)
        A = right.repeat(seeds, 1).gather(1, y)
        A = A - A.mean(1, keepdim=True)
        push = torch.zeros(seeds * P, K).scatter_add(1, y, A)
        push = push - A.sum(1, keepdim=True) * pi.view(-1, K)
        z = z + rate / 8 * push.view_as(z)
    return before, (z.softmax(2) * right).sum(2).mean(0)

# %%
print("SFT steps   right before RL   right after RL: demos right  wrong")
ends = {}
for steps in (0, 3, 10, 30, 100, 300):
    before, end = after(steps)
    ends[steps] = end.mean()
    print(f"{steps:7d} {before.mean():14.2f} {end.mean():16.2f} "
          f"{end[:30].mean():15.2f} {end[30:].mean():9.2f}")
assert ends[10] > ends[0] and ends[10] > ends[300]

# %% [markdown]
# SFT before RL buys right answers that groups can be made of. SFT for too long makes its mistakes
# certain, and then RL never samples its way out. "Stop SFT when pass@1 is highest" picks too late:
# what RL needs is that right answers still occur.
#
# <details><summary>R1's four stages, as reported (2501.12948)</summary>
#
# 1. *Cold start*: SFT on thousands of long, readable answers, so that RL starts from a policy whose
#    answers can be read.
# 2. *Reasoning RL*: GRPO with verifiers for mathematics, code and logic, and a reward for staying
#    in one language. The language reward costs a little accuracy: several rewards, and a price.
# 3. *Rejection sampling and SFT*: about 600,000 reasoning answers that the stage-2 policy wrote and
#    that passed, and 200,000 others (writing, facts); the *base* model is fine-tuned on them.
# 4. *RL for all scenarios*: verifiers where there are some, reward models for the rest; the
#    preference reward only in the last steps, since longer training on it was hacked.
#
# R1-Zero is stage 2 alone, from the base.
# </details>

# %% [markdown]
# ## Steps, and shaping
#
# ### Outcome against process
#
# A chain of $L$ steps, each right with chance 0.5 and independent of the others; the answer is
# right if all are. An outcome reward gives one number to all steps. A process reward grades each
# step. How much of the noise of a step's gradient is left, per answer, exactly?

# %%
print("  L   outcome: mean push, std      process: mean push, std")
for L_steps in (1, 2, 4, 8):
    # the step's score in its logit: +1/2 if right, -1/2 if wrong
    p_rest = 0.5 ** (L_steps - 1)            # all other steps right
    J = 0.5 * p_rest
    outcome = [(0.5 * p_rest, (1 - J) / 2), (0.5 * (1 - p_rest), -J / 2),
               (0.5, J / 2)]                 # (chance, A times score)
    mean = sum(c * v for c, v in outcome)
    std = (sum(c * v * v for c, v in outcome) - mean**2) ** 0.5
    own = [(0.5, 0.25), (0.5, 0.25)]         # A = +-1/2, score = +-1/2
    own_mean = sum(c * v for c, v in own)
    print(f"{L_steps:3d} {mean:18.4f} {std:9.4f} {own_mean:19.4f}      0")
    assert abs(mean - p_rest / 4) < 1e-12

# %% [markdown]
# Outcome credit for one step falls as $2^{-L}$ with the length, its noise as $2^{-L/2}$: the ratio
# gets worse. A step grade does not care about $L$. The price: nobody has the step grades. They are
# a learned proxy, asked $L$ times per answer, and the lesson applies to it. DeepSeek-R1 reports
# having dropped process reward models, among other things for being hacked
# ([2501.12948](https://arxiv.org/abs/2501.12948)).
#
# ### Shaping
#
# A bonus on the way is harmless if it is a *difference of potentials*: $\Phi(s_{t+1})-\Phi(s_t)$
# sums to $\Phi(\text{end})-\Phi(\text{start})$, a constant if the end has one potential (Ng, Harada
# and Russell 1999). A bonus for a pretty step is not such a difference. Answers of up to three
# tokens from `a`, `b`, stop; right is exactly `b`.

# %%
toy = SequencePolicy(2, 3)
text = ["".join("ab."[t] for t in o) for o in toy.outcomes]
base_reward = torch.tensor([float(t == "b.") for t in text])
pretty = 0.4 * torch.tensor([float(t.count("a")) for t in text])

def shaped(text):
    """Potential: 1 after a first b; 0 at the end, whatever it is."""
    phi = [0.0] + [float(text[:k].startswith("b"))
                   for k in range(1, len(text))] + [0.0]
    return sum(after - before for before, after in zip(phi, phi[1:]))

for name, reward in (
        ("reward alone", base_reward),
        ("plus 0.4 for each a", base_reward + pretty),
        ("plus potentials", base_reward + torch.tensor(
            [shaped(t) for t in text]))):
    top = reward.argmax()
    print(f"{name:20s} best answer {text[top]!r}, worth {reward[top]:.1f}")
assert text[int((base_reward + pretty).argmax())] == "aaa"

# %% [markdown]
# ## Several rewards
#
# ### Summed then normalised, normalised then summed
#
# Two rewards, 0 or 1, two answers to a prompt. GRPO sums and takes the z-score; GDPO
# ([2601.05242](https://arxiv.org/abs/2601.05242)) takes the z-score of each and sums.

# %%
cases = {"better by one reward ": [[0.0, 1.0], [1.0, 1.0]],
         "better by both       ": [[0.0, 0.0], [1.0, 1.0]],
         "one each             ": [[1.0, 0.0], [0.0, 1.0]]}
print("the two answers are      sum, then z-score     z-scores, then sum")
for name, r in cases.items():
    r = torch.tensor(r)
    one = several_rewards(r, 2)
    two = several_rewards(r, 2, order="normalize_then_sum",
                          over_batch=False)
    print(name, *(f"{x:10.2f}" for x in (*one.tolist(), *two.tolist())))

# %% [markdown]
# Better by one or by both: the sum's z-score says the same. That is the reward that equal
# advantages hide. The other order keeps them apart. And a reward with a large spread: right or
# wrong, beside a length score from 0 to 10. How much of the advantage does each explain?

# %%
gen = torch.Generator().manual_seed(0)
correct = (torch.rand(64, 8, generator=gen) < 0.5).double()
style = 10 * torch.rand(64, 8, generator=gen)
r = torch.stack([correct, style], 2).view(-1, 2)
print("correlation of the advantage with    correct   length")
for order in ("sum_then_normalize", "normalize_then_sum"):
    adv = several_rewards(r, 8, order=order)
    both = [torch.corrcoef(torch.stack([adv, r[:, k]]))[0, 1]
            for k in (0, 1)]
    print(f"{order:36s} {both[0]:7.2f} {both[1]:8.2f}")
weighed = several_rewards(r, 8, torch.tensor([5.0, 1.0]))
print("sum, correct weighed by 5            "
      f"{torch.corrcoef(torch.stack([weighed, r[:, 0]]))[0, 1]:7.2f}")

# %% [markdown]
# A weight on the sum repairs the scale too, if one knows the spreads. What no weight repairs is the
# first table. GDPO's last step is one more z-score, over the batch, so that the size of the
# advantages does not grow with the number of rewards. In TRL it is
# `multi_objective_aggregation="normalize_then_sum"` (`reward_weights` are applied after the
# z-scores); the default is `"sum_then_normalize"`. TRL's arithmetic, written out, against ours:

# %%
def as_in_trl(rewards, G, eps=1e-4):
    grouped = rewards.view(-1, G, rewards.shape[1])
    each = (grouped - grouped.mean(1, keepdim=True)) / (
        grouped.std(1, keepdim=True) + eps)          # Bessel
    total = each.view(-1, rewards.shape[1]).sum(1)
    return (total - total.mean()) / (total.std() + eps)

ours = several_rewards(r, 8, order="normalize_then_sum", correction=1,
                       eps=1e-4)
off = (as_in_trl(r, 8) - ours).abs().max()
print("equal to 1e-12:", bool(off < 1e-12))
assert off < 1e-12

# %% [markdown]
# *A reward that all answers of a group share is silent in the second order, as it should be; in the
# first it only shifts the sum. But nearly equal rewards are blown up to size one, in each reward
# apart (08): a format score that differs in its third digit then counts as much as being right.*

# %% [markdown]
# ## Three graders, and the median
#
# Three graders like the lesson's B, and paid is the *median* of their scores. If they glitch on
# different answers, two outvote the third. But graders trained on the same comparisons err alike:
# where a glitch is shared, all three see the same wrong number.

# %%
def median_of_three(shared):
    """(P, K) scores; `shared` of the glitches hit all three alike."""
    own = torch.Generator().manual_seed(1)
    def glitch(share, *shape):
        at = torch.rand(*shape, *gold.shape, generator=own) < share
        return at, 10 * torch.randn(*shape, *gold.shape, generator=own)
    alone, e = glitch(0.02 * (1 - shared), 3)
    small = 0.2 * torch.randn(3, *gold.shape, generator=own)
    common, same = glitch(0.02 * shared)
    errors = torch.where(common, same, torch.where(alone, e, small))
    return gold + errors.median(0).values

print("gold of best of         32     64    256  1,024")
found = {}
for name, scores in (("one B", B), ("none shared", median_of_three(0.0)),
                     ("30 in 100 shared", median_of_three(0.3))):
    found[name] = [(best_of_n_weights(scores, n) * gold).sum(1).mean()
                   for n in (32, 64, 256, 1024)]
    print(f"{name:18s}", *(f"{g:6.2f}" for g in found[name]))
assert found["none shared"][2] > 2.6 > 1.7 > found["30 in 100 shared"][2]

# %% [markdown]
# Shared glitches are rarer than one grader's own, so the top of the curve moves further out. But
# they are there to be found, and a harder search finds them. Several graders help only as far as
# they err apart.
