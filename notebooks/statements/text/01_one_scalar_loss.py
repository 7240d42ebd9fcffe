# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · statements: one scalar loss
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the long tables and corner cases of the lesson,
# [01 · one scalar loss](../01_one_scalar_loss.ipynb).

# %% tags=["setup"]
import math
import torch
from rlnb.classroom.explorers.kl_directions import compute
from rlnb.classroom.lesson import settle, statement
from rlnb.toys import SequencePolicy, expected_reward, true_gradient
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

def kl(p, q):                                    # (V,), (V,) -> ()
    return torch.where(p > 0, p * (p / q).log(), 0.0).sum()

def cross_entropy(p, q):
    return -torch.where(p > 0, p * q.log(), 0.0).sum()

def entropy(p):
    return cross_entropy(p, p)

# %% [markdown]
# The policy of this page can be listed: two words (0 and 1), a stop token (2), at most three
# tokens, fifteen answers. Each of the seven prefixes has a row of three logits. The teacher has
# another table. The grader wants exactly one 1, and a stop.

# %% tags=["setup"]
policy = SequencePolicy(2, 3, torch.sin(torch.arange(21.)).view(7, 3))
teacher = SequencePolicy(2, 3, torch.cos(torch.arange(21.)).view(7, 3))
p_true = teacher.probabilities().detach()                        # (15,)

def grade(y):                                    # a program
    return float(y.count(1) == 1 and y[-1] == policy.stop)

R = torch.tensor([grade(y) for y in policy.outcomes])            # (15,)

def show(name, x):               # 4 decimals, and no "-0.0000"
    x = (x.detach().round(decimals=4) + 0.0).tolist()
    print(f"{name:14s}", " ".join(f"{v:8.4f}" for v in x))

# %% [markdown]
# ### B12 · cross-entropy and KL
#
# Lesson: "Where does the loss of SFT stop?" 1,000 answers by the teacher, their shares as data, and
# the mean negative log-likelihood (NLL) of those answers under the policy.

# %%
statement("B12")

# %% tags=["claim:B12"]
given = teacher.sample(1000, torch.Generator().manual_seed(0))   # (1000,)
p_hat = torch.bincount(given, minlength=15) / 1000               # (15,)
student = policy.copy()
mean_nll = -student.logprobs().sum(1)[given].mean()
pi = student.probabilities()                                     # (15,)
print(f"mean NLL {mean_nll.item():.4f} = H {entropy(p_hat):.4f} "
      f"+ KL {kl(p_hat, pi).item():.4f}")
assert torch.isclose(mean_nll, entropy(p_hat) + kl(p_hat, pi))
grads = [torch.autograd.grad(x, student.logits, retain_graph=True)[0]
         for x in (mean_nll, kl(p_hat, pi))]
assert torch.allclose(*grads, atol=1e-12)        # same gradient
for seed in range(100):
    a, b = torch.rand(2, 6, generator=torch.Generator().manual_seed(seed))
    a, b = a / a.sum(), b / b.sum()
    gap = cross_entropy(a, b) - entropy(a) - kl(a, b)
    assert gap.abs() < 1e-12 and kl(a, b) > 0

# %%
settle("B12", "true")

# %% [markdown]
# Training the student on them takes the KL from 1.0597 to 0. A loss of 2.3006 stays, with nothing
# left to learn: the variety of the answers. The last number, 0.0091, is what 1,000 of them could
# not tell about the teacher.

# %%
copied = policy.copy()
for step in range(1001):
    pi_now = copied.probabilities()
    L = cross_entropy(p_hat, pi_now)
    if step in (0, 10, 100, 1000):
        print(f"step {step:4d}: loss {L.item():.4f}, of it KL to the data "
              f"{abs(kl(p_hat, pi_now).item()):.4f}")
    copied.logits.data -= torch.autograd.grad(L, copied.logits)[0]
print(f"floor H(data) {entropy(p_hat):.4f}; KL(teacher||student) "
      f"{kl(p_true, pi_now).item():.4f}")
assert abs(L.item() - entropy(p_hat)) < 1e-3

# %% [markdown]
# ### B13 · which direction covers
#
# Lesson: "Two KLs: who draws?". Descent on both KLs, from several starts. The teacher has
# peaks at ±3, each of deviation 1. In closed form the forward fit has the teacher's mean and
# variance, 0 and $3^2+1$: only $H(p,q)=\log(\sigma\sqrt{2\pi})+\mathbb{E}_p[(x-\mu)^2]/(2\sigma^2)$
# depends on the bell (with $\pi$ the circle's number).

# %%
statement("B13")

# %% tags=["claim:B13"]
x = torch.arange(-40.0, 40.0, 0.1)

def log_normal(x, m, s):
    return -0.5 * ((x - m) / s) ** 2 - (s * math.sqrt(2 * math.pi)).log()

def best_gaussian(direction, at, begin):         # descent on both KLs
    one, a = torch.tensor(1.0), torch.tensor(at)
    log_p = torch.logaddexp(log_normal(x, -a, one), log_normal(x, a, one))
    log_p = log_p - math.log(2)                  # two peaks, 1/2 each
    w = torch.tensor([begin, 0.0], requires_grad=True)  # mean, log sd
    for _ in range(1500):
        log_q = log_normal(x, w[0], w[1].exp())
        a, b = (log_p, log_q) if direction == "forward" else (log_q, log_p)
        value = (a.exp() * (a - b)).sum() * 0.1
        w.data -= 0.1 * torch.autograd.grad(value, w)[0]
    return round(w[0].item(), 9) + 0.0, w[1].exp().item(), value.item()

fits = [best_gaussian("forward", 3.0, 0.5)]
fits += [best_gaussian("reverse", 3.0, at) for at in (2.0, -2.0, 0.5)]
for way, (m, s, value) in zip(["forward"] + 3 * ["reverse"], fits):
    print(f"{way}: mean {m:+.4f}, deviation {s:.4f}, KL {value:.4f}")
assert abs(fits[0][0]) < 1e-4 and abs(fits[0][1] - 10**0.5) < 1e-4
assert abs(fits[1][0] - 3) < 0.02 and abs(fits[1][1] - 1) < 0.03
assert abs(fits[1][0] + fits[2][0]) < 1e-4       # which peak: the start

# %%
settle("B13", "true")

# %% [markdown]
# Forward: deviation $\sqrt{10}$, 3.1623. Reverse: one peak, and which one depends on the start. Its
# price, 0.6888, is nearly log 2: minus the log of the share it keeps. The last row is the trap in
# the middle: a local minimum that covers, deviation 2.7438, and costs 0.8406. The two conditions:
# nearer peaks, or a model that is large enough.

# %%
middle = x.abs() < 1.5
cover = log_normal(x, 0.0, torch.tensor(10.0).sqrt()).exp()
peaks = sum(log_normal(x, m, torch.tensor(1.0)).exp() for m in (-3, 3)) / 2
for name, density in (("forward fit", cover), ("target", peaks)):
    print(f"mass within 1.5 of 0: {name} {density[middle].sum() * 0.1:.2f}")
for at in (0, 1, 2, 2.8, 2.9, 4):
    best = compute(distance=at)["best"]
    line = "   ".join(f"{way} mean {abs(m):.2f}, deviation {s:.2f}"
                      for way, (m, s, _) in best.items())
    print(f"peaks at ±{at:<3}: {line}")
two = SequencePolicy(2, 3)                       # any 15 shares
for step in range(1000):
    reverse = kl(two.probabilities(), p_true)
    two.logits.data -= torch.autograd.grad(reverse, two.logits)[0]
print(f"reverse KL of a large enough model: {abs(reverse.item()):.4f}")
assert abs(reverse) < 1e-4

# %% [markdown]
# (TRL's `GKDTrainer` has a knob for each direction: `lmbda` is the share of answers that the
# student writes, `beta` goes from forward, 0, to reverse, 1.)
#
# Up to ±2.8 reverse covers as well; then the best bell jumps to a peak. Unequal peaks, 0.8 on the
# right one: the moments on paper are mean 1.8, variance $10-1.8^2=2.6^2$; reverse sits on the heavy
# peak and pays about $-\log0.8$, which is 0.2231. It leans a little towards the gap, mean 2.9931
# and deviation 1.0109.

# %%
for mean, deviation in ((1, 2), (0, 3.2), (3, 1), (-3, 1), (0, 1)):
    d = compute(mean=mean, deviation=deviation)
    print(f"mean {mean:+d}, deviation {deviation:.1f}:  "
          f"KL(target||model) {d['forward']:6.4f}   "
          f"KL(model||target) {d['reverse']:6.4f}")
uneven = compute(weight=0.8)["best"]
on_paper = {"forward": (1.8, 2.6), "reverse": (3.0, 1.0, -math.log(0.8))}
for way, numbers in on_paper.items():
    print(f"weight 0.8, {way}: on paper {[round(v, 4) for v in numbers]}, "
          f"found {[round(v, 4) for v in uneven[way]]}")
    assert all(abs(a - b) < 0.02 for a, b in zip(numbers, uneven[way]))

# %% [markdown]
# ## KL: what one has to know
#
# **Never negative.** $\log x\le x-1$, equal only at $x=1$. Over the words with $p>0$:
#
# $$-\mathrm{KL}(p\Vert q)=\sum p\log\frac qp\le\sum p\Big(\frac qp-1\Big)=\sum q-1\le0$$
#
# Equality needs $q=p$ wherever $p>0$, and then everywhere.

# %%
gen = torch.Generator().manual_seed(0)
ps = torch.rand(10_000, 5, generator=gen)
qs = torch.rand(10_000, 5, generator=gen)
ps, qs = ps / ps.sum(1, keepdim=True), qs / qs.sum(1, keepdim=True)
kls = (ps * (ps / qs).log()).sum(1)              # (10000,)
print(f"smallest of 10,000 random KLs: {kls.min():.4f}")
assert kls.min() > 0

# %% [markdown]
# **It can be infinite**, in one direction only; and $0\log0$ counts as 0 but computes to nan.

# %%
half = torch.tensor([0.5, 0.5, 0.0])
sure = torch.tensor([1.0, 0.0, 0.0])
print(f"KL(p||q) = {kl(half, sure)}, KL(q||p) = {kl(sure, half):.4f}")
print("0 * log 0 in floating point:", (half * half.log())[2].item())
assert kl(half, sure) == math.inf
assert torch.isclose(kl(sure, half), torch.tensor(2.0).log())

# %% [markdown]
# **It is no distance.** Not symmetric, and a detour can be shorter, 0.6553 against 1.6145:

# %%
def coin(a):
    return torch.tensor([a, 1 - a])

direct = kl(coin(0.5), coin(0.01))
detour = kl(coin(0.5), coin(0.1)) + kl(coin(0.1), coin(0.01))
print(f"direct {direct:.4f}, through a third coin {detour:.4f}")
assert direct > detour

# %% [markdown]
# **`F.kl_div(p, q)`: three traps in one call.** The first argument has to be *log*-probabilities;
# the result is KL(second ‖ first); and the default `reduction="mean"` divides by the number of
# *elements*.

# %%
import warnings
import torch.nn.functional as F
p3 = torch.tensor([[0.50, 0.48, 0.02]])
q3 = torch.tensor([[0.90, 0.05, 0.05]])
print(f"KL(p||q) {kl(p3, q3):.4f}, KL(q||p) {kl(q3, p3):.4f}")
calls = {"p, q, sum": (p3, q3, "sum"),
         "log p, q, sum": (p3.log(), q3, "sum"),
         "log q, p, mean": (q3.log(), p3, "mean"),
         "log q, p, batchmean": (q3.log(), p3, "batchmean")}
got = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")              # torch warns of "mean"
    for name, (a, b, how) in calls.items():
        got.append(F.kl_div(a, b, reduction=how))
        print(f"kl_div of {name:20s} {got[-1]:7.4f}")
assert got[0] < 0 and torch.isclose(got[1], kl(q3, p3))
assert torch.isclose(got[2], kl(p3, q3) / 3)
assert torch.isclose(got[3], kl(p3, q3)) and kl(p3, p3) == 0

# %% [markdown]
# A penalty with the order swapped is 0 where the two agree, positive elsewhere, and falls on the
# way to the reference. Only a value by hand shows it: here
# $\frac12\log\frac{0.5}{0.9}+\frac12\log\frac{0.5}{0.1}=\frac12\log\frac{25}{9}$.

# %%
fair, ref2 = torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])
for step in (0.0, 0.5, 0.9):
    on_the_way = fair + step * (ref2 - fair)
    wanted = F.kl_div(ref2.log(), on_the_way, reduction="sum")
    other = F.kl_div(on_the_way.log(), ref2, reduction="sum")
    print(f"{step:.1f} of the way: KL(pi||ref) {wanted:.4f}, "
          f"KL(ref||pi) {other:.4f}")
assert abs(kl(fair, ref2) - 0.5 * math.log(25 / 9)) < 1e-12

# %% [markdown]
# ## Entropy, bits, the first loss
#
# With a code of 1, 2, 3, 3 bits four words cost $\frac12+\frac24+\frac38+\frac38=1\frac34$ bits on
# average. A model that believes them equally likely pays 2. The quarter bit too much is the KL.

# %%
p4 = torch.tensor([1/2, 1/4, 1/8, 1/8])
q4 = torch.full((4,), 1/4)
bit = torch.tensor(2.0).log()
for name, value in (("H(p)", entropy(p4)),
                    ("H(p, q)", cross_entropy(p4, q4)),
                    ("KL(p||q)", kl(p4, q4))):
    print(f"{name:9s} {value:.4f} nats = {value / bit:.4f} bits")
assert torch.isclose(entropy(p4) / bit, torch.tensor(1.75))

# %%
for V in (3, 50_257, 151_936):
    data = torch.rand(V, generator=torch.Generator().manual_seed(0))
    data, uniform = data / data.sum(), torch.full((V,), 1 / V)
    H = cross_entropy(data, uniform).item()
    print(f"V = {V:7,d}: first loss {H:7.4f}, perplexity "
          f"{math.exp(H):,.0f}")
    assert abs(H - math.log(V)) < 1e-9
for T in (6, 4):                                 # one answer, 12 nats
    print(f"{T} tokens: {12 / T:.4f} nats each, "
          f"perplexity {math.exp(12 / T):.2f}")

# %% [markdown]
# A first loss of 10.8249 on GPT-2's vocabulary or 11.9312 on Qwen's is that of a model that knows
# nothing. The last two lines: perplexity per token compares no two tokenisers, 7.39 and 20.09 for
# one and the same answer.
#
# ## An answer, token by token
#
# The log-probability of an answer is a sum, which splits over tokens and does not underflow.

# %%
gold = (0, 1, policy.stop)
z = policy.logits                                                # (7, 3)
total = 0.0
for t, token in enumerate(gold):
    row = policy.states[gold[:t]]                # which prefix we are in
    lp = z[row].log_softmax(0)[token].item()
    total -= lp
    print(f"after {str(gold[:t]):7s} token {token}: probability "
          f"{math.exp(lp):.4f}, -log {-lp:.4f}")
found = policy.probabilities()[policy.outcomes.index(gold)].item()
print(f"NLL {total:.4f}, probability of the answer {found:.4f}")
assert abs(total + math.log(found)) < 1e-12
halves = torch.full((1000,), 0.5, dtype=torch.float32)
print(f"1,000 tokens at 0.5: product {halves.prod().item()}, "
      f"sum of logs {halves.log().sum():.4f}")
assert halves.prod() == 0

# %% [markdown]
# Two gold answers, lengths 3 and 2. Averaging over the padding too shrinks loss and gradient by a
# factor that depends on who else is in the batch.

# %%
tokens = torch.tensor([[0, 1, 2], [1, 2, 0]])                    # (2, 3)
mask = torch.tensor([[1, 1, 1], [1, 1, 0]])                      # (2, 3)
rows = torch.tensor([[policy.states[()], policy.states[(0,)],
                      policy.states[(0, 1)]],
                     [policy.states[()], policy.states[(1,)], 0]])
scores = z[rows].log_softmax(-1)                                 # (2, 3, 3)
lps = scores.gather(-1, tokens[..., None])[..., 0]               # (2, 3)
nll = -torch.where(mask.bool(), lps, 0.0)
masked = nll.sum() / mask.sum()
print(f"mean over 5 real tokens {masked.item():.4f}, over 6 places "
      f"{nll.mean().item():.4f}")
g = torch.autograd.grad(masked, z)[0]                            # (7, 3)

# %% [markdown]
# The gradient is the one-token formula of the lesson, once for each real token, added up. The
# prefix (0, 0) is in no gold answer: SFT says nothing about states that the teacher never visits.

# %%
by_hand = torch.zeros_like(g)
for i in range(2):
    for t in range(mask[i].sum()):
        row = rows[i, t]
        onehot = torch.eye(3)[tokens[i, t]]
        by_hand[row] += (z[row].detach().softmax(0) - onehot) / 5
for prefix in ((), (0,), (0, 0)):
    show(f"after {prefix}", g[policy.states[prefix]])
assert torch.allclose(g, by_hand, atol=1e-12)

# %% [markdown]
# **Low NLL, so the policy is good at the task?** NLL asks how likely the teacher's wording is, $J$
# how often the answer is right. One policy nearly always writes *another* right answer, (1, stop);
# one writes the gold one four times in ten and else gives up. The lower NLL, 0.9168 against
# 16.0127, has the lower $J$.

# %%
def writes(favourite, probability):              # first token decides
    table = torch.full((7, 3), 1e-4)
    for t, token in enumerate(favourite):
        table[policy.states[favourite[:t]], token] = 1.0
    table[0, favourite[0]] = probability / (1 - probability)
    table[0, policy.stop] = 1.0
    return SequencePolicy(2, 3, table.log())

pairs = []
for name, one in (("other wording", writes((1, 2), 0.99)),
                  ("gold, 4 in 10", writes(gold, 0.4))):
    pays = -one.probabilities()[policy.outcomes.index(gold)].log()
    pairs.append((pays.item(), expected_reward(one, grade).item()))
    print(f"{name}: NLL {pairs[-1][0]:.4f}, J {pairs[-1][1]:.4f}")
assert pairs[0][0] > pairs[1][0] and pairs[0][1] > pairs[1][1]

# %% [markdown]
# ## Own draws, on fifteen answers
#
# Autograd has nothing to hold on to in a draw:

# %%
logits = torch.tensor([2.0, 1.0, 0.0, -1.0], requires_grad=True)
drawn = torch.multinomial(logits.softmax(0), 1,
                          generator=torch.Generator().manual_seed(0))
for name, value in (("drawn", drawn), ("argmax", logits.argmax())):
    print(f"{name}: {value.dtype}, requires grad: {value.requires_grad}")
reward = (drawn == 1).double().sum()
try:
    reward.backward()
except RuntimeError as error:
    print(str(error).split(" and ")[0])

# %% [markdown]
# A tempting repair: draw $y$ from the policy, and minimise the mean of
# $\log\pi_\theta(y)-\log p(y)$, an honest estimate of the reverse KL. The value is right and the
# expected gradient is exactly zero, where the true one has norm 0.3337:
# $\sum_y\pi\,\nabla\log\pi=\nabla1$. It is the lesson's first picture, SFT on own answers, with the
# sign turned.

# %%
all_pi = policy.probabilities()                                  # (15,)
log_pi = policy.logprobs().sum(1)                                # (15,)
truth = torch.autograd.grad(kl(all_pi, p_true), policy.logits,
                            retain_graph=True)[0]                # (7, 3)
inside = (all_pi.detach() * (log_pi - p_true.log())).sum()
naive = torch.autograd.grad(inside, policy.logits)[0]
print(f"value {inside.item():.4f}, KL {kl(all_pi, p_true).item():.4f}")
print(f"norm of the true gradient {truth.norm():.4f}, "
      f"of this one {naive.norm():.4f}")
assert naive.abs().max() < 1e-12 < truth.abs().max()

# %% [markdown]
# **A smooth draw?** On the lesson's four answers, with a grader that can take mixtures: 100,000
# draws by Gumbel-softmax at five temperatures. The mean is the slope of the mean reward in the
# logit of “7”, where 0.14 is true; the spread is that of a single draw. A high temperature is quiet
# and wrong, a low one right and noisy. The log-derivative trick is right, and needs no mixtures.

# %%
four = torch.tensor([0.2, 0.1, 0.4, 0.3])
paid = torch.tensor([1.0, 1.0, 0.0, 0.0])
noise = -torch.rand(100_000, 4, generator=torch.Generator().manual_seed(0)
                    ).log()
perturbed = four.log() - noise.log()             # logits + Gumbel noise
for tau in (5.0, 2.0, 1.0, 0.5, 0.1):
    mixed = (perturbed / tau).softmax(1)
    at = mixed[:, 0] * (paid[0] - mixed @ paid) / tau
    print(f"tau {tau:.1f}: mean {at.mean():.3f}, spread {at.std():.2f}")
drawn = perturbed.argmax(1)                      # the same noise, hard
trick = paid[drawn] * ((drawn == 0).double() - four[0])
print(f"trick:   mean {trick.mean():.3f}, spread {trick.std():.2f}")
assert abs(trick.mean() - 0.14) < 0.004 and abs(at.mean() - 0.14) < 0.005

# %% [markdown]
# The expectation $J=\sum_y\pi_\theta(y)R(y)$ is differentiable, and its gradient is $J$ times that
# of SFT on the policy's own right answers, on a tree of tokens as well: their first gradients
# differ by exactly $1/J$, here 4.3525.

# %%
J = (policy.probabilities() * R).sum()
slope = torch.autograd.grad(J, policy.logits)[0]                 # (7, 3)
nudged = policy.copy()
nudged.logits.data[0, 1] += 1e-5
by_nudge = (expected_reward(nudged, grade) - J).item() / 1e-5
own_right = (R * policy.probabilities() / J).detach()            # (15,)
sft = -cross_entropy(own_right, policy.probabilities())
sft_slope = torch.autograd.grad(sft, policy.logits)[0]
print(f"J = {J.item():.4f} over {len(policy)} answers, "
      f"1/J = {1 / J.item():.4f}")
show("first token", slope[0])
show("SFT on own", sft_slope[0])
print(f"by finite difference, word 1: {by_nudge:.4f}")
assert torch.equal(slope, true_gradient(policy, grade))
assert abs(by_nudge - slope[0, 1].item()) < 1e-5
assert torch.allclose(sft_slope, slope / J, atol=1e-12)

# %% [markdown]
# **Keep, or draw again**, here with exact gradients. Equal step lengths: following log J is ahead
# of the kept answers from the second step on. With equal learning rates J itself begins slower than
# both, by the factor $J$, which is a matter of step size and of nothing else: at equal step lengths
# J and log J go the same way.

# %%
def climb(rule, length, steps=60):
    s, line = policy.copy(), []
    for step in range(steps + 1):
        J = expected_reward(s, grade)
        line.append(J.item())
        up = {"keep": -cross_entropy(own_right, s.probabilities()),
              "log J": J.log(), "J": J}[rule]
        d = torch.autograd.grad(up, s.logits)[0]
        s.logits.data += d * (length / d.norm() if length else 1.0)
    share = (s.probabilities() * R).detach().sort().values[-3:]
    return line, share / share.sum()

runs = {(rule, length): climb(rule, length) for length in (0.1, None)
        for rule in ("keep", "log J", "J")}
for (rule, length), (line, share) in runs.items():
    how = "step length 0.1" if length else "learning rate 1"
    print(f"{how}, {rule:5s}:", " ".join(f"{line[k]:.4f}" for k in
                                        (0, 3, 10, 30, 60)))
    show("  right answers", share)
show("kept shares", own_right.sort().values[-3:])
for length in (0.1, None):
    ahead = zip(runs["log J", length][0][2:], runs["keep", length][0][2:])
    assert all(a > b for a, b in ahead)

# %% [markdown]
# **How many answers?** With $V$ words, a stop token and at most $T$ tokens there are
# $1+V+\dots+V^{T-1}$ that stop and $V^T$ that run into the end.

# %%
def answers(V, T):
    return sum(V**t for t in range(T)) + V**T    # exact integers

for V, T in ((2, 3), (2, 20), (151_936, 2), (151_936, 1000)):
    n = answers(V, T)
    digits = int(math.log10(n)) + 1
    said = f"{n:,}" if digits < 15 else f"a number of {digits} digits"
    print(f"V = {V:7,d}, T = {T:4d}: {said}")
assert answers(2, 3) == len(policy) == 15
assert 10**5181 <= answers(151_936, 1000) < 10**5182

# %% [markdown]
# ## RL with a KL penalty is a reverse KL
#
# Take $\mathbb{E}_\pi[R]-\beta\,\mathrm{KL}(\pi\Vert\pi_\text{ref})$, and the target
# $\pi^\star(y)=\pi_\text{ref}(y)\,e^{R(y)/\beta}/Z$, with $Z$ so that it sums to 1. Then
# $R=\beta\log\frac{\pi^\star}{\pi_\text{ref}}+\beta\log Z$. Put it in:
#
# $$\mathbb{E}_\pi[R]-\beta\,\mathrm{KL}(\pi\Vert\pi_\text{ref})
# =\beta\log Z-\beta\,\mathrm{KL}(\pi\Vert\pi^\star)$$
#
# No policy gets above $\beta\log Z$, here 0.3363, and $\pi^\star$ gets there; the policy of this
# page is at −0.1453. DPO starts from this target.

# %%
beta = 0.5
tilted = p_true * (R / beta).exp()               # reference: the teacher
Z, target = tilted.sum(), tilted / tilted.sum()
pi_d = policy.probabilities().detach()
left = (pi_d * R).sum() - beta * kl(pi_d, p_true)
right = beta * Z.log() - beta * kl(pi_d, target)
best = (target * R).sum() - beta * kl(target, p_true)
print(f"penalised reward {left:.4f} = {right:.4f}; of the target "
      f"{best:.4f} = beta log Z")
assert torch.isclose(left, right) and torch.isclose(best, beta * Z.log())

# %% [markdown]
# Large $\beta$: the reference. Small $\beta$: all mass on the best answers among those that the
# reference gives at all, in its own proportions, here 3 to 1. The answer of reward 5 stays at 0.

# %%
ref5 = torch.tensor([0.5, 0.3, 0.15, 0.05, 0.0])
R5 = torch.tensor([0.0, 0.2, 1.0, 1.0, 5.0])     # the last is never drawn
for b in (100.0, 1.0, 0.1, 0.02):
    star = ref5 * (R5 / b).exp()
    star = star / star.sum()
    print(f"beta {b:6.2f}:", " ".join(f"{v:.4f}" for v in star.tolist()))
assert star[4] == 0 and torch.isclose(star[2] / star[3], ref5[2] / ref5[3])

# %% [markdown]
# ## The running group
#
# From page 02 on one group of four answers goes through every method: rewards 1, 1, 0, 0, lengths
# 3, 5, 2, 6. SFT on the two right ones is the mean over their 8 tokens: each is pushed by 1/8,
# whatever its answer, and the wrong ones not at all.

# %%
from rlnb.toys import running_group
group = running_group()
chosen = (group.rewards == 1)[:, None] & group.mask              # (4, T)
kept_loss = -torch.where(chosen, group.logprobs, 0.0).sum() / chosen.sum()
push = -torch.autograd.grad(kept_loss, group.logprobs)[0][:, 0]  # (4,)
show("rewards", group.rewards)
show("push a token", push)
assert torch.allclose(push, group.rewards / 8)
