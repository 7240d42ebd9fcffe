# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 · statements: GRPO's two divisors
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the long tables and the corner cases of the lesson,
# [09 · two divisors](../09_grpo_biases.ipynb).

# %% tags=["setup"]
from itertools import product
from math import comb
import torch
from rlnb import ZOO, Batch, Objective, check, from_trl, from_verl
from rlnb.classroom import explorers
from rlnb.classroom.explorers.difficulty import compute as difficulty
from rlnb.classroom.explorers.near_equal import compute as near
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures import recorded_runs as runs
from rlnb.classroom.pictures.grpo_biases import by_type
from rlnb.objective import (batch_zscore, group_center, group_zscore,
                            logprob, sequence_sum)
from rlnb.toys import (Bandit, SequencePolicy, estimator_moments,
                       running_batch, running_group)
from rlnb.training import ESTIMATORS, TASKS, CoinFlip, data_folder, load
from rlnb.training import sample_decisions, stop_push
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)



# %% tags=["setup"]
grpo = ZOO["grpo"].replace(terms=())           # no KL on this page
fresh = running_group().replace(old_logprobs=None)       # on-policy


def zscore(r, eps=1e-6):                       # (..., G) -> (..., G)
    centred = r - r.mean(-1, keepdim=True)
    return centred / (r.std(-1, keepdim=True, correction=0) + eps)


def one_lower(gap, G=8):
    """G rewards of 1, the last one lower by gap."""
    return torch.tensor([1.0] * (G - 1) + [1.0 - gap])


def four(numbers):
    """Four decimals each, no minus zero."""
    return " ".join(f"{round(float(x), 4) + 0.0:8.4f}" for x in numbers)

# %% tags=["setup"]
# sums of the right answers' advantages, and what a prompt weighs
SUM_OF_A = {"z-score": lambda k, G: (k * (G - k)).sqrt(),
            "mean only": lambda k, G: k * (G - k) / G,
            "MaxRL": lambda k, G: (G - k) * (k > 0)}


def expected(p, G, rule):                      # E[k A+] over k right
    k = torch.arange(G + 1.0)
    chance = torch.tensor([comb(G, j) * p**j * (1 - p)**(G - j)
                           for j in range(G + 1)])
    return float(chance @ SUM_OF_A[rule](k, G))


def weight(p, G=16, rule="z-score"):
    return expected(p, G, rule) / (G * p * (1 - p))

# %% [markdown]
# ## Nearly equal rewards

# %% [markdown]
# ### G04 · nearly equal
#
# Seven of eight answers earn 1, the last a little less. How large does its advantage get?

# %%
statement("G04")

# %% tags=["claim:G04"]
gaps = (1, 1e-2, 1e-4, 1e-6, 1e-7)
print("gap           ", *(f"{gap:8.0e}" for gap in gaps))
for eps in (0, 1e-6, 1e-4):
    largest = [float(-zscore(one_lower(g), eps)[-1]) for g in gaps]
    print(f"|A|, eps {eps:5.0e}", *(f"{a:8.4f}" for a in largest))
    assert max(largest) < 7**0.5 + 1e-6        # the bound of 06.1
gain = [1 / float(one_lower(g).std(correction=0)) for g in gaps]
print("gain 1/std    ", *(f"{g:8.0e}" for g in gain))
assert all(abs(zscore(one_lower(g), 0)[-1] + 7**0.5) < 1e-6 for g in gaps)

bounds = [float(-zscore(one_lower(1, G), 0)[-1]) for G in (2, 4, 8, 16, 64)]
print("G = 2, 4, 8, 16, 64: at most", *(f"{b:.4f}" for b in bounds))
# "Nearly equal rewards make the advantages blow up": sloppy

# %%
settle("G04", "it depends")

# %% [markdown]
# The *gain* $1/\sigma_R$ blows up, to thirty million here. The result never passes $\sqrt7$. That
# is the trouble: a gap of 0.0001 counts as much as a gap of 1. And so ε gets a meaning, the
# *resolution of the reward*: differences whose std is far above ε count in full, far below it they
# vanish. TRL adds $10^{-4}$, verl and this course $10^{-6}$; neither protects against a bonus of
# 0.01. So an advantage is bounded by $\sqrt{G-1}$, and small only where the std is near ε or below
# it.
#
# To play with: pull the difference down until the bars give way; then set ε to 0.

# %% tags=["explorer"]
explorers.std_explorer()

# %%
print("difference              largest |A|: divided  mean only")
for pattern, name in (("one", "one answer"), ("noise", "noise on all")):
    for gap in (1.0, 1e-2, 1e-6):
        with_std, without = (near(gap, divide=d, pattern=pattern)
                             for d in (True, False))
        print(f"{name:13s} {gap:5.0e}            "
              f"{with_std['largest']:.4f}     {without['largest']:.0e}")

# %% [markdown]
# ### G01 · equal rewards
#
# All answers score the same, or nearly. What reaches the gradient?

# %%
statement("G01")

# %% tags=["claim:G01"]
gen = torch.Generator().manual_seed(0)
noise = torch.randn(2000, 16, generator=gen)
ones = torch.ones(16)
print("exactly equal: eps 0", zscore(ones, 0)[:2].tolist(),
      "eps 1e-6", zscore(ones)[:2].tolist())
for size in (1e-2, 1e-4):
    A = zscore(1 + size * noise)
    print(f"noise {size:.0e}: rms {A.square().mean().sqrt():.4f}, "
          f"largest {A.abs().max():.4f}")
    assert A.square().mean().sqrt() > 0.98 and A.abs().max() < 15**0.5

grpo = ZOO["grpo"].replace(terms=())           # no KL on this page
fresh = running_group().replace(old_logprobs=None)       # on-policy
for r in ([1, 1, 0, 0], [1.0003, 1.0001, 1, 1.0002], [1, 1, 1, 1]):
    b = fresh.replace(rewards=torch.tensor(r, dtype=torch.float64))
    gradient, = torch.autograd.grad(grpo(b).loss, b.logprobs)
    print(f"rewards {str(r):29s} norm of d loss / d log-probs "
          f"{gradient.norm():.4f}")
assert zscore(ones, 0).isnan().all() and (zscore(ones) == 0).all()
assert gradient.norm() == 0
# "dividing by nearly zero blows the gradient up": sloppy

# %%
settle("G01", "it depends")

# %% [markdown]
# 0.2739 for right against wrong, 0.3108 for noise: useless, not huge. A limit on the gradient norm
# sees nothing unusual.

# %% [markdown]
# ### G03 · exactly zero
#
# Twelve answers, all with reward 0.7, which has no finite binary form.

# %%
statement("G03")

# %% tags=["claim:G03"]
def looped(r, eps):            # sums one by one: the same bits everywhere
    total = torch.zeros((), dtype=r.dtype)
    for x in r:
        total = total + x
    centred = r - total / len(r)
    square = torch.zeros((), dtype=r.dtype)
    for x in centred:
        square = square + x * x
    return centred / ((square / len(r)).sqrt() + eps)


A = {}
for dtype in (torch.float32, torch.float64):
    for eps in (1e-4, 1e-6, 1e-8):
        each = looped(torch.full((12,), 0.7, dtype=dtype), eps)
        A[dtype, eps] = float(each.abs().max())
        assert (each == each[0]).all()         # all with the same sign
        print(f"{str(dtype)[6:]}, eps {eps:.0e}: {A[dtype, eps]:.0e}")
half = torch.full((12,), 0.7, dtype=torch.float16)
print("float16, eps 1e-08:", zscore(half, 1e-8)[0].item())
assert A[torch.float32, 1e-8] > 0.5 and A[torch.float32, 1e-6] > 0.05
assert A[torch.float32, 1e-4] < 2e-3 and A[torch.float64, 1e-6] < 1e-9
assert zscore(half, 1e-8).isnan().all()
# "With eps an all-equal group gives exactly zero": conditional

# %%
settle("G03", "it depends")

# %% [markdown]
# In float32 each of twelve equal answers is told 0.1 at verl's ε, 0.001 at TRL's, and 0.9 at
# $10^{-8}$, all with the same sign. (Another order of summation changes the digits.) In float16
# $10^{-8}$ is 0 and the result NaN. So `std > 0` is the wrong question; the lesson's third exercise
# asks for a better one.

# %% [markdown]
# ### The toy of the next two
#
# A bandit with softmax logits, groups of 16, plain gradient steps (SGD). First eight arms that are
# all worth 1, with noise of 0.0001: there is nothing to learn. Adam, which divides each parameter's
# step by the size of its recent gradients, is there to compare.

# %%
def train(value, noise=0.0, divide=True, lr=0.5, seeds=200, steps=400,
          adam=False):
    """All seeds side by side: pi at every step, (seeds, steps, K)."""
    gen = torch.Generator().manual_seed(0)
    value = torch.tensor(value)
    theta, history = torch.zeros(seeds, len(value)), []
    m = v = torch.zeros_like(theta)
    for t in range(1, steps + 1):
        pi = theta.softmax(1)
        history.append(pi)
        draws = torch.multinomial(pi, 16, True, generator=gen)
        r = value[draws] + noise * torch.randn(seeds, 16, generator=gen)
        A = zscore(r) if divide else r - r.mean(1, keepdim=True)
        counts = torch.zeros_like(pi).scatter_add(1, draws, A)
        up = (counts - pi * A.sum(1, keepdim=True)) / 16
        if adam:
            m, v = 0.9 * m + 0.1 * up, 0.999 * v + 0.001 * up * up
            size = (v / (1 - 0.999**t)).sqrt() + 1e-8
            up = m / (1 - 0.9**t) / size
        theta = theta + lr * up
    return torch.stack(history, 1)

# %% [markdown]
# ### G05 · the dominant instability
#
# Pure noise for a reward, 500 to 5000 steps, with the division and without.

# %%
statement("G05")

# %% tags=["claim:G05"]
H = {}
print("entropy, mean of 40 seeds, after  500   2000   5000   top arm")
for name, divide, lr, adam, steps in (
        ("z-score", True, 0.5, False, (500, 2000, 5000)),
        ("mean only", False, 0.5, False, (500,)),
        ("mean only, Adam", False, 0.05, True, (500,))):
    pi = train([1.0] * 8, 1e-4, divide, lr, 40, steps[-1], adam)
    some = pi[:, [step - 1 for step in steps]]
    H[name] = -torch.special.xlogy(some, some).sum(2)
    means = " ".join(f"{h:.2f}  " for h in H[name].mean(0))
    print(f"{name:32s} {means:20s} {some[:, -1].amax(1).mean():.2f}")
first = H["z-score"][:, 0]
print(f"z-score after 500: from {first.min():.2f} to {first.max():.2f}")
assert first.mean() < 1.7 and H["mean only"].min() > 2.079
assert H["z-score"][:, 2].mean() < 0.5
# "Dividing by the std is the dominant instability of GRPO": sloppy

# %%
settle("G05", "it depends")

# %% [markdown]
# It starts at $\ln8=2.08$. Divided, pure noise takes it to 1.66 in 500 steps and to 0.40 in 5000:
# no explosion, but in the end a policy collapsed on a random arm. The mean alone stays at 2.08,
# until Adam rescales it: alone in its parameters, noise comes out at full size again. "Dominant" is
# more than this shows: it is slow, and there was nothing else to learn.

# %% [markdown]
# ### G24 · rewards of three scales
#
# Four arms whose values differ by 0.01, by 0.3 and by 300.

# %%
statement("G24")

# %% tags=["claim:G24"]
arms = {"0.87 to 0.90": [0.87, 0.88, 0.89, 0.90],
        "0.2 to 1": [0.2, 0.5, 0.8, 1.0],
        "200 to 1000": [200.0, 500.0, 800.0, 1000.0]}
rules = {"z-score": (True, 0.5, False), "mean only": (False, 0.5, False),
         "mean only, lr 13": (False, 13.0, False),
         "mean only, lr 0.0015": (False, 0.0015, False),
         "mean only, Adam 0.05": (False, 0.05, True)}
solved = {}
print("seeds of 200, median step ", *(f"{name:>15s}" for name in arms))
for rule, (divide, lr, adam) in rules.items():
    row = []
    for name, value in arms.items():
        best = train(value, 0.0, divide, lr, adam=adam)[:, :, 3]
        there = (best > 0.9).any(1)
        solved[name, rule] = int(there.sum())
        step = (best > 0.9).int().argmax(1)[there]
        when = f"{int(step.median()):3d}" if len(step) else "  -"
        row.append(f"{solved[name, rule]:11d} {when}")
    print(f"{rule:26s}", *row)
assert all(solved[n, "z-score"] == 200 for n in arms)
assert solved["0.87 to 0.90", "mean only"] == 0
assert all(max(solved[n, r] for r in rules if "lr" in r) == 200
           for n in ("0.87 to 0.90", "200 to 1000"))
# "Dividing by the std is optional and helps": true

# %%
settle("G24", "true")

# %% [markdown]
# One learning rate serves all three worlds (14 or 15 steps). The mean alone needs one per world:
# each has one with which all 200 seeds arrive, and none of the three serves all (at 0.5 the first
# world never gets there, and in the third 22 seeds lock on to a wrong arm).
#
# Adam mends that here, since each world has its own parameters. A language model has one set for
# all prompts: Adam takes out a factor common to all of them, and what is left is how prompts weigh
# *against each other* in a batch.

# %% [markdown]
# ### G23 · one σ for the batch
#
# The group's mean and one std for the whole batch (TRL's `scale_rewards="batch"`). Two prompts in
# one batch, from the first and the third world.

# %%
statement("G23")

# %% tags=["claim:G23"]
def advantages(part, *groups):
    r = torch.tensor(groups).reshape(-1)
    tokens = torch.zeros(len(r), 1)            # one token each
    batch = Batch(tokens, tokens + 1, r, len(groups[0]))
    return part(batch, r[:, None])[:, 0]


small, large = arms["0.87 to 0.90"], arms["200 to 1000"]
print("advantage of the best answer:  mean only   batch std   group std")
for name, groups in (("small, large", (small, large)),
                     ("small, small", (small, small))):
    mean, whole, own = (advantages(part, *groups) for part in (
        group_center(), batch_zscore(center="group"), group_zscore()))
    for i, kind in ((3, name[:5]), (7, name[7:])):
        print(f"({name}) {kind:14s}", *(f"{float(A[i]):11.5f}"
                                        for A in (mean, whole, own)))
    factor = whole / mean
    print(f"    batch std / mean only: {factor[0]:.4f} for all eight")
    assert torch.allclose(factor, factor[:1].expand(8))
# "One σ for the whole batch is a global factor": true

# %%
settle("G23", "true")

# %% [markdown]
# True inside a batch: 1 to 25000 before, 1 to 25000 after. But the factor is 0.0026 in one batch
# and 89 in the other, so from step to step it acts as a learning rate that moves. Only the group's
# own std makes the two prompts equal.

# %% [markdown]
# ### Where the division turns the gradient
#
# With 0/1 rewards and one prompt the std changes a length, not a direction
# ([03](../03_baselines.ipynb)). Graded rewards are different. A policy that is nearly done: 49 %
# right, 49 % right with a keyword that earns a bonus of 0.01, 2 % wrong. $G=8$, exact:
# `estimator_moments` goes through all possible groups and returns the estimator's `mean`, the
# `truth` (the gradient of the expected reward), the `cosine` between the two, and `trace`, the
# summed variance of one group's gradient.

# %% tags=["see:G16"]
policy = Bandit(torch.tensor([0.49, 0.49, 0.02]).log())
rewards = [1.0, 1.01, 0.0]
print("                      right  + bonus    wrong")
for name in ("dr_grpo", "grpo"):
    objective = grpo if name == "grpo" else ZOO[name]
    m = estimator_moments(policy, rewards, objective, 8)
    print(f"{name:17s}", four(m.mean), f"  cosine {m.cosine:.4f}")
print(f"{'true gradient':17s}", four(m.truth))
assert m.mean[0] < 0 < m.truth[0] and m.cosine < 0.3
assert abs(m.mean[0]) > 7 * abs(m.mean[2])

# %% [markdown]
# The true gradient mostly says: less wrong. GRPO's says: plain right answers down, bonus up, seven
# times louder than it says anything about wrong ones, because 85 % of the groups are all right and
# in those the bonus is the only difference. (The mean alone is the truth times 7/8, as
# [03](../03_baselines.ipynb) proved.) Any bonus for length, format or style that is small against
# the main reward is such a near-tie.
#
# The same in a real model: the run of the lesson, seed by seed.

# %%
def seeds(values):
    return " ".join(f"{x:.2f}" for x in values)


last = {rule: runs.waits(rule)[:, -10:].mean(1) for rule in runs.BONUS_RUNS}
for rule, each in last.items():
    share = runs.all_right(rule)          # (seeds, steps)
    print(f"{rule:9s} steps 41-50: wait per answer {seeds(each)}, "
          f"pass@1 then {seeds(runs.evaluated(rule, 'pass@1'))}")
    print(f"{'':9s} groups all right, steps 1-10: "
          f"{seeds(share[:, :10].mean(1))}, 41-50: "
          f"{seeds(share[:, -10:].mean(1))}")
assert last["z-score"].min() > 1 > 0.4 > last["mean only"].max()

# %% [markdown]
# About 1.6 `wait` an answer are worth 0.016, and the model learns to write them as the all-right
# groups grow from one in sixteen to one in three. In those the bonus is all there is. The mean
# alone has more such groups and ignores them; its pass@1 is higher on every seed (three seeds of a
# small model, not a law).

# %% [markdown]
# ## Easy and hard prompts
#
# Rewards 0 or 1, pass rate $p$, $k$ right answers in the group, ε = 0. All right answers get the
# same $A_+$, and their sum $kA_+$ is what the wrong ones lose. The score of a right answer averages
# to $\nabla p/p$, of a wrong one to $-\nabla p/(1-p)$ (derived in the lesson). So, given $k$, the
# group pushes in expectation
#
# $$\frac{kA_+}{G}\Big(\frac1p+\frac1{1-p}\Big)\nabla p=\underbrace{\frac{kA_+}{G\,p(1-p)}}_{\text{weight}}\nabla p,\qquad
# kA_+=\begin{cases}\sqrt{k(G-k)}&\text{z-score}\\ k(G-k)/G&\text{mean only}\\ G-k\ \text{ if }k\gt0&\text{MaxRL: }(R-\bar R)/\bar R\end{cases}$$
#
# The expectation over $k$ is a finite sum. Against the package, all groups enumerated, with ten
# answers of which one or nine are right:

# %%
for right in (1, 9):
    rewards = [1.0] * right + [0.0] * (10 - right)
    for rule, method in (("z-score", grpo), ("mean only", ZOO["dr_grpo"])):
        m = estimator_moments(Bandit(10), rewards, method, 4)
        w = weight(right / 10, 4, rule)
        print(f"p {right / 10}, G 4, {rule:9s}: weight {w:.4f}")
        assert torch.allclose(m.mean, w * m.truth, atol=1e-5)

# %% [markdown]
# The z-score gives 0.1 and 0.9 the same weight. That is not rounding: exchange $k$ and $G-k$, and
# nothing in $\sqrt{k(G-k)}$ or $p(1-p)$ changes. To play with, MaxRL
# ([2602.02710](https://arxiv.org/abs/2602.02710)) included:

# %% tags=["explorer"]
explorers.difficulty_explorer()

# %%
print("G = 16    weight: z-score  mean only    MaxRL    P(no signal)")
for p in (0.01, 0.1, 0.5, 0.9, 0.99):
    by = [difficulty(p, 16, m) for m in ("zscore", "mean", "maxrl")]
    print(f"p = {p:4.2f}       ", four([d["weight"] for d in by]),
          f"       {by[0]['silent']:.4f}")
    assert abs(by[2]["weight"] - (1 - (1 - p)**15) / p) < 1e-9

# %% [markdown]
# ### G12 and G13 · easy, hard, both
#
# Weight on ∇p at both ends of the scale, and the mean size of an advantage.

# %%
statement("G12")
statement("G13")

# %% tags=["claim:G12", "claim:G13"]
print("   p   weight  at 1-p   1/sqrt(p(1-p))   mean |A|")
for p in (0.5, 0.1, 0.01):
    size = 2 * expected(p, 16, "z-score") / 16         # E |A_i|
    print(f"{p:4.2f}   {weight(p):.4f}  {weight(1 - p):.4f}   "
          f"{(p * (1 - p)) ** -0.5:14.4f}   {size:8.4f}")
    assert abs(weight(p) - weight(1 - p)) < 1e-9
pairs = [weight(p, 2) for p in (0.5, 0.1, 0.01)]
print("G = 2: weight", *(f"{w:.4f}" for w in pairs))
assert all(abs(w - 1) < 1e-12 for w in pairs)
assert [round(weight(p), 3) for p in (0.5, 0.1, 0.01)] == \
    [1.934, 2.848, 3.733]
assert all(weight(p) < 15**0.5 for p in (0.5, 1e-2, 1e-4))
assert abs(weight(1e-6) - 15**0.5) < 1e-3              # the ceiling
assert abs(weight(0.1, 500) - 0.09**-0.5) < 0.01       # the limit
p = torch.tensor(0.1, requires_grad=True)
(2 * p.sqrt().asin()).backward()                       # 2 arcsin sqrt p
assert torch.isclose(p.grad, torch.tensor(0.09**-0.5))
# "inflates easy prompts and shrinks hard ones": wrong
# "hence too much weight": conditional

# %%
settle("G12", "false")
settle("G13", "it depends")

# %% [markdown]
# Both tails gain alike, and Dr. GRPO says just that: too easy *and* too hard questions get more
# weight ([2503.20783](https://arxiv.org/abs/2503.20783), section 3.1). Relative to $\nabla p$ they
# weigh more, yes; but the mean $|A|$ is largest at one half.
#
# With large groups the weight is $1/\sqrt{p(1-p)}$, the derivative of $2\arcsin\sqrt p$: GRPO
# maximises that of each prompt where Dr. GRPO maximises $p$ and MaxRL $\log p$ (weight $1/p$). With
# finite groups GRPO's stops at $\sqrt{G-1}$ and MaxRL's is $(1-(1-p)^{G-1})/p$. At $G=2$ GRPO's is
# 1 for every $p$: pairs with 0/1 rewards are not reweighted at all (the sign change of
# [03](../03_baselines.ipynb) had graded ones).

# %% [markdown]
# ### G26 · the net signal
#
# What reaches the logit of p: the weight times p(1 − p).

# %%
statement("G26")

# %% tags=["claim:G26"]
def half_of_maximum(rule):                     # by bisection
    low, high = 1e-6, 0.5
    for _ in range(60):
        p = (low + high) / 2
        half = expected(p, 16, rule) < expected(0.5, 16, rule) / 2
        low, high = (p, high) if half else (low, p)
    return high


print("net signal, G = 16:  p =", *(f"{p:7.2f}" for p in (0.5, 0.1, 0.01)))
for rule in ("mean only", "z-score"):
    edge = half_of_maximum(rule)
    signal = [expected(p, 16, rule) / 16 for p in (0.5, 0.1, 0.01)]
    print(f"{rule:20s}   ", *(f"{x:7.4f}" for x in signal),
          f"  half from {edge:.3f} to {1 - edge:.3f}")
    assert signal[0] > signal[1] > signal[2]
assert round(half_of_maximum("mean only"), 3) == 0.146
assert round(half_of_maximum("z-score"), 3) == 0.091
# "A prompt's expected gradient goes as p(1-p)": conditional

# %%
settle("G26", "it depends")

# %% [markdown]
# Both are largest at one half. p(1 − p) is the mean alone. The z-score's goes as $\sqrt{p(1-p)}$
# while groups are large; once $Gp\lt1$ it falls as fast as the mean alone, about four times higher
# (0.0370 against 0.0093 at $p=0.01$).

# %% [markdown]
# ### G10 and G11 · what is hard
#
# Fifteen of sixteen right, eight, one: the advantages, and what the whole prompt adds.

# %%
statement("G10")
statement("G11")

# %% tags=["claim:G10", "claim:G11"]
for k in (1, 8, 15):
    A = zscore(torch.tensor([1.0] * k + [0.0] * (16 - k)), 0)
    print(f"{k:2d} of 16 right: rare side |A| {A.abs().max():.4f}, "
          f"sum |A| {A.abs().sum():5.2f}, sum A^2 {A.square().sum():.2f}")
    assert torch.isclose(A.square().sum(), torch.tensor(16.0))
share = {rule: expected(15 / 16, 16, rule) / expected(0.5, 16, rule)
         for rule in ("z-score", "mean only")}
over = share["z-score"] / share["mean only"]
print(f"expected signal at p = 15/16, of a medium prompt's: z-score "
      f"{share['z-score']:.3f}, mean only {share['mean only']:.3f}, "
      f"so {over:.2f} times over-weighted")
assert round(share["z-score"], 3) == 0.381
assert round(share["mean only"], 3) == 0.234 and round(over, 2) == 1.63
# "A prompt solved 8 times in 16 is a hard prompt": wrong
# "Outliers on easy prompts dominate the batch gradient": sloppy

# %%
settle("G10", "false")
settle("G11", "it depends")

# %% [markdown]
# Note what is called hard: 8 of 16 is the *medium* prompt. The one failure has the largest
# advantage there is, 3.87 against 1. The prompt is over-weighted 1.63 times compared with no
# division; still less than four tenths of a medium prompt. "Dominating" is wrong, "promoted" is
# right.
#
# How far apart can the gains $1/\sigma_R$ of two groups that speak be? They have $1\le k\le G-1$:

# %%
for G, told in ((8, 1.51), (16, 2.07), (64, 4.03)):
    std = [(k * (G - k))**0.5 / G for k in range(1, G)]
    print(f"G = {G:2d}: std from {min(std):.4f} to {max(std):.4f}, "
          f"gains at most {max(std) / min(std):.2f} apart")
    assert round(max(std) / min(std), 2) == told

# %% [markdown]
# Per mixed group 1.5 times at $G=8$, 4 times at 64. The recorded run of the lesson in full: seven
# types of prompt that the model solves at first between 11 % and 95 % of the time, $G=8$, AdamW,
# otherwise alike; held-out pass@1, mean of three seeds:

# %%
print("step            hardest                              easiest")
for step in (0, 10, 20, 30, 40):
    both = {r: runs.by_difficulty(r, step)
            for r in ("z-score", "mean only")}
    for rule, table in both.items():           # (seeds, types)
        print(f"{step:4d} {rule:9s}", *(f"{x:6.2f}" for x in table.mean(0)))
    apart = abs(both["z-score"] - both["mean only"]).max()
    spread = max(float((x.max(0) - x.min(0)).max()) for x in both.values())
    print(f"{'':15s}rules apart on one seed, at most {apart:.2f}; "
          f"seeds apart, at most {spread:.2f}")
    assert apart <= 0.06

# %%
by_type()

# %% [markdown]
# No visible difference at $G=8$: the two rules differ less than two seeds of one rule. (One hard
# type is up on all three seeds, by a hundredth; it is the largest of seven.) (Nothing
# here was run at $G=64$.)
#
# ## Groups that say nothing
#
# All right or all wrong: $A=0$. How often? $P(\text{no signal})=p^G+(1-p)^G$.

# %%
rates = (0.01, 0.1, 0.5, 0.9, 0.99)
print("           p =", *(f"{p:7.2f}" for p in rates))
for G in (2, 4, 8, 16, 64):
    silent = [p**G + (1 - p)**G for p in rates]
    print(f"G = {G:2d}        ", *(f"{x:7.4f}" for x in silent))
    if G <= 8:                                 # count all 2^G groups
        for p, x in zip(rates, silent):
            count = sum(p**sum(r) * (1 - p)**(G - sum(r)) for r in
                        product((0, 1), repeat=G) if len(set(r)) == 1)
            assert abs(count - x) < 1e-12
    if G == 16:
        assert [round(x, 3) for x in silent[::2]] == [0.851, 0.0, 0.851]

# %% [markdown]
# At $G=1$ every group is silent ([08](../08_grpo.ipynb)). At $G=2$ at best half speak. At $p=0.01$
# a group of 16 is silent 85 % of the time: six or seven groups generated for one that teaches.
# [11](../11_dapo.ipynb) resamples until they speak.

# %% [markdown]
# ### G25 · a group of equal rewards
#
# Its policy term is zero. With a KL term, or one mean over all tokens?

# %%
statement("G25")

# %% tags=["claim:G25"]
flat = fresh.replace(rewards=torch.ones(4))
for name, objective in (("without KL", grpo), ("with KL", ZOO["grpo"])):
    gradient, = torch.autograd.grad(objective(flat).loss, flat.logprobs)
    print(f"all right, {name:10s}: gradient norm {gradient.norm():.4f}")
    assert (gradient.norm() > 0) == (name == "with KL")
both = running_batch()
both = both.replace(rewards=torch.tensor([1.0, 1, 0, 0, 0, 0, 0, 0]))
for name in ("grpo", "dapo"):
    alone = ZOO[name](running_group()).weights[0, 0]
    beside = ZOO[name](both).weights[0, 0]
    print(f"{name}: a token's coefficient alone 1/{1 / alone:.0f}, beside "
          f"a silent group 1/{1 / beside:.0f}")
    assert beside < alone
# "A group with equal rewards adds nothing to the gradient": conditional

# %%
settle("G25", "it depends")

# %% [markdown]
# (The KL is $\beta$ times k3, $\beta=0.04$.) The silent group of 14 tokens halves its neighbour
# under GRPO, which counts answers, and shrinks it from 1/16 to 1/30 under DAPO, which counts
# tokens: one factor for the whole step, smaller as more groups fall silent.

# %% [markdown]
# ### G30 · a baseline from elsewhere
#
# A shared baseline b (the mean of the batch, or a running mean of past rewards, an *EMA*) does not
# vanish in an all-wrong group: every answer gets 0 − b.

# %%
statement("G30")

# %% tags=["claim:G30"]
b, p = 0.5, 0.1                                # one logit, p its sigmoid
push = (0 - b) * (0 - p)                       # A times d log(1-p)/d logit
print(f"two answers, p = 0.1: a wrong one pushes the logit by {push:+.3f}")
e, quarter = torch.eye(4), torch.full((4,), 0.25)
pushes = (0 - b) * (e - quarter)               # p = 0: four wrong answers
mean, noise = quarter @ pushes, quarter @ pushes.square().sum(1)
print(f"p = 0: mean push {mean.norm():.4f}, variance {noise:.4f}")
assert push > 0 and mean.norm() == 0 and noise == 0.1875
for n in (2, 10, 1000):                        # n equal arms, one right
    wrong = torch.full((n,), 1 / (n - 1))
    wrong[0] = 0                               # given that it was wrong
    mean = -b * (wrong - 1 / n)
    square = b * b * (1 - 1 / n)               # of |push|, for every arm
    spread = square - float(mean @ mean)
    print(f"1 right of {n:4d}, all wrong: noise "
          f"{spread / float(mean @ mean):8.0f} answers")
# "gives direction even to all-wrong groups": conditional

# %%
settle("G30", "it depends")

# %% [markdown]
# The noise is in *answers*: how many one must average until the noise is as large as the signal
# ([03](../03_baselines.ipynb)). If $p=0$ all is noise. If $p\gt0$ there is a direction, and it only
# says *not this one*: enough with two answers, 80 draws with ten, a million with a thousand. Nor is
# the rest of the batch free:

# %%
fixed = {f"fixed {c}": lambda batch, r, c=c: batch.expand(r.sum(1) - c)
         for c in (0.1, 0.5)}
for name, part in {"group mean": group_center(), **fixed}.items():
    m = estimator_moments(Bandit(10), [1.0] + [0.0] * 9,
                          Objective(part, logprob(), sequence_sum), 4)
    size = float(m.mean @ m.truth / (m.truth @ m.truth))
    answers = 4 * m.trace / float(m.mean @ m.mean)
    print(f"1 right of 10, {name:10s}: mean {size:.2f} of the truth, "
          f"noise {answers:5.2f} answers")

# %% [markdown]
# 0.1 is this prompt's true pass rate, the best that an EMA of its own rewards could reach: 8.00
# against the group mean's 11.33. 0.5, the mean of an easier batch, is twice as bad: 24.00. A
# baseline that knows the prompt is good wherever it comes from; one that does not adds noise.

# %% [markdown]
# ### G28 · never and always solved
#
# Two groups without a signal under 0/1 rewards. Is there a difference?

# %%
statement("G28")

# %% tags=["claim:G28"]
for name, r in (("never solved, 0/1 reward", [0.0] * 4),
                ("never solved, partial credit", [0.5, 0.25, 0.25, 0.0]),
                ("always solved, either", [1.0] * 4)):
    A = zscore(torch.tensor(r))
    print(f"{name:28s} A {four(A)}")
    assert (A.norm() > 1) == ("partial" in name)
# "A task never solved is as useless as one always solved": conditional

# %%
settle("G28", "it depends")

# %% [markdown]
# One has everything to gain: give partial credit, or let another task teach the skill, and it
# speaks.

# %% [markdown]
# ### G06 · do advantages shrink?
#
# As the policy gets better, averaged over groups, and inside a mixed group.

# %%
statement("G06")

# %% tags=["claim:G06"]
for p in (0.5, 0.9, 0.99):
    mean_A = 2 * expected(p, 16, "z-score") / 16       # over all groups
    print(f"p {p:4.2f}: mean |A| {mean_A:.3f}")
for k in range(1, 16):                         # any mixed group: rms 1
    A = zscore(torch.tensor([1.0] * k + [0.0] * (16 - k)), 0)
    assert torch.isclose(A.square().mean(), torch.tensor(1.0))
graded = [float(zscore(one_lower(gap, 4))[-1]) for gap in (1, 0.001)]
print(f"rewards 1, 1, 1, 1 - gap: {graded[0]:.3f} and {graded[1]:.3f} "
      f"at gaps of 1 and 0.001")
assert round(mean_A, 3) == 0.074 and abs(graded[0] - graded[1]) < 0.005
# "the advantages shrink to zero by themselves": sloppy

# %%
settle("G06", "it depends")

# %% [markdown]
# Averaged over groups with 0/1 rewards they shrink: mixed groups get rare. Inside a mixed group the
# rms is always 1, and with graded rewards nothing shrinks. Whether a KL is needed is another
# question.

# %% [markdown]
# ## The length divisor
#
# The simplest policy that decides its own length: after each token it stops with probability
# $q=\sigma(\theta)$, whatever was said. Every token but the last has score $-q$ in $\theta$, the
# last $1-q$: in total $1-qT$, which averages to 0. The reward does not depend on the length.

# %% [markdown]
# ### L01 · long and wrong, short and right
#
# The expected push on the stop decision, divided by the length or not.

# %%
statement("L01")

# %% tags=["claim:L01"]
q = 0.1
T = torch.arange(1.0, 3001.0)
chance = q * (1 - q)**(T - 1)                  # of length T
theta = torch.tensor(q / (1 - q)).log().requires_grad_()
stop = theta.sigmoid()
log_prob = (6 * (1 - stop).log() + stop.log())         # an answer of 7
assert torch.isclose(torch.autograd.grad(log_prob, theta)[0],
                     torch.tensor(1 - q * 7))
score = 1 - q * T
drift = {"undivided": chance @ score, "divided by T": chance @ (score / T)}
for name, value in drift.items():
    print(f"{name:12s}: push on the stop logit per unit of A "
          f"{abs(value):.6f}")
closed = -q / (1 - q) * torch.tensor(q).log() - q      # E[1/T] - q
assert abs(drift["undivided"]) < 1e-12
assert abs(drift["divided by T"] - closed) < 1e-12
assert round(float(closed), 6) == 0.155843
# "spares long wrong answers and favours short right ones": true

# %%
settle("L01", "true")

# %% [markdown]
# Undivided: nothing pulls on the length. Divided: $A\,(\mathbb E[1/T]-q)$, with 0.155843 at
# $q=0.1$: shorter when right, longer when wrong.
#
# Now let right and wrong answers each own a stop decision. The first token decides: 0 is right, 1
# is wrong; then each route stops with its own 0.3, at most three tokens later. All groups
# enumerated with the package, $G=4$:

# %%
routes = SequencePolicy(vocab=2, max_length=4)
never, stop = -40.0, torch.tensor(0.3)
with torch.no_grad():
    for prefix, row in routes.states.items():
        routes.logits[row] = torch.tensor(
            [(1 - stop).log(), never, stop.log()] if prefix
            else [0.0, 0.0, never])
right = [float(y[0] == 0) for y in routes.outcomes]
first = torch.tensor([prefix[0] if prefix else -1
                      for prefix in routes.states])
print("push on the stop logit     right    wrong   one shared")
for name in ("grpo", "dr_grpo", "dapo"):
    objective = ZOO[name].replace(terms=())
    m = estimator_moments(routes, right, objective, 4)
    own = [float(m.mean[first == kind, 2].sum()) for kind in (0, 1)]
    print(f"{name:22s}", four([*own, sum(own)]))
    assert abs(sum(own)) < 1e-12
    assert (abs(own[0]) < 1e-12) == (name == "dr_grpo")

# %% [markdown]
# GRPO pushes the two routes apart. Dr. GRPO, which divides by a constant, does not. And if both
# routes *share* one stop logit the pushes add up to exactly 0: the bias needs a model that can tell
# its right answers from its wrong ones while it can still stop. DAPO's mean over all tokens keeps
# about a fifth of GRPO's push, because a short answer also shortens the batch's total.

# %% [markdown]
# ### L02 and L11 · what the expected push does
#
# Follow it for 100 steps: two routes, half of the answers right throughout, G = 8, and a reward
# that never looks at length.

# %%
statement("L02")
statement("L11")

# %% tags=["claim:L02", "claim:L11"]
pull = expected(0.5, 8, "z-score") / 8         # k A+ / G, on average


def follow(steps, shared=False, lr=0.5):
    logit = torch.full((2,), 0.1 / 0.9).log()  # right, wrong
    for _ in range(steps):
        q = logit.sigmoid()
        push = pull * (-q * q.log() / (1 - q) - q)
        push = push * torch.tensor([1.0, -1.0])
        logit = logit + lr * (push.sum() if shared else push)
    return (1 / logit.sigmoid()).tolist()      # mean lengths


print("steps   right   wrong   all    | one shared stop")
for steps in (0, 20, 60, 100):
    r, w = follow(steps)
    print(f"{steps:5d}  {r:6.1f}  {w:6.1f}  {(r + w) / 2:5.1f}   | "
          f"{follow(steps, shared=True)[0]:6.1f}")
assert r < 2 and w > 50 and abs(follow(100, True)[0] - 10) < 1e-9
# "Averaging per sample favours short outputs": sloppy
# "Only longer reasoning can score better": sloppy

# %%
settle("L02", "it depends")
settle("L11", "it depends")

# %% [markdown]
# The mean length of all answers more than triples, with nothing learned. Right answers get shorter:
# the first statement describes those. Wrong ones get longer: that is what Dr. GRPO is remembered
# for. So growing answers alone prove nothing about thinking. (Longer reasoning may score better *as
# well*; then both happen.) This toy was given one stop decision per route. A real model must have
# one to give.

# %% [markdown]
# ### L12 · both divisors in one sentence
#
# Easy prompts and long answers?

# %%
statement("L12")

# %% tags=["claim:L12"]
print("weight at p = 0.9, 0.5, 0.1:", four(map(weight, (0.9, 0.5, 0.1))))
for side, A in (("right", 1.0), ("wrong", -1.0)):
    push = A * float(closed)                   # A (E[1/T] - q), q = 0.1
    print(f"{side}: pushed {'to stop' if push > 0 else 'to go on'}, "
          f"{push:+.4f}")
assert abs(weight(0.9) - weight(0.1)) < 1e-9 and weight(0.1) > weight(0.5)
assert closed > 0
# "GRPO's two normalisers favour easy prompts": sloppy

# %%
settle("L12", "it depends")

# %% [markdown]
# Each half is half true: easy *and* hard prompts, short *right* and long *wrong* answers.

# %% [markdown]
# ### The recorded runs on `pick`, all numbers
#
# The runs of the lesson: wrong minus right, mean lengths of ten steps, one number a seed.

# %%
gap = {}
for method in (*runs.LENGTH_RUNS, *runs.CONTROL_RUNS):
    every = runs.every_seed(method, "completions/mean_length")
    for a, b in ((1, 10), (21, 30), (71, 80)):
        if b <= every.shape[1]:
            gap[method] = runs.length_gap(method, a, b)
            print(f"{method:15s} steps {a:2d}-{b}: wrong minus right",
                  *(f"{g:+5.1f}" for g in gap[method]), "  all answers",
                  *(f"{x:.0f}" for x in every[:, a - 1:b].mean(1)))

# %%
for method in runs.LENGTH_RUNS:
    print(f"{method:15s} pass@1 before",
          f"{runs.evaluated(method, 'pass@1', min)[0]:.2f}, after 80 steps",
          seeds(runs.evaluated(method, "pass@1")))
assert min(gap["GRPO"]) > 40 and max(map(abs, gap["Dr. GRPO"])) < 5
assert max(map(abs, gap["GRPO, coin flip"])) < 3

# %% [markdown]
# ### The push before training, all numbers
#
# 16 batches of 16 prompts, $G=8$, sampled from the model before any training
# with rewards. What does the verdict know, and does "go on" know the verdict?

# %% tags=["nbval-ignore-output"]
torch.set_default_dtype(torch.float32)         # as the model is
model, tokenizer = load(data_folder() / "model_pick", device="cpu")
answers = sample_decisions(model, tokenizer, TASKS["pick"], batches=16,
                           prompts=16, num_generations=8, seed=0)
torch.set_default_dtype(torch.float64)
firsts = [text.partition("wait")[0][-1:] for text in answers.texts]
went_on = torch.tensor(["wait" in text for text in answers.texts])
print(f"right in all: {answers.right.double().mean():.2f}")
for verdict in ":;":
    rows = torch.tensor([v == verdict for v in firsts])
    print(f"verdict {verdict}  {int(rows.sum()):4d} answers: right "
          f"{answers.right[rows].double().mean():.2f}, "
          f"went on {went_on[rows].double().mean():.2f}")

# %% [markdown]
# The verdict knows: `:` is right 96 times in a hundred, `;` never. Going on does not ask it yet: as
# likely behind either, as in the demonstrations that the model imitates. It *could* come apart,
# since the verdict stands right before the decision.

# %% tags=["nbval-ignore-output"]
pushes = {name: stop_push(answers, ESTIMATORS[name])
          for name in ("grpo", "zscore_constant", "dr_grpo", "dapo")}
pushes["grpo, coin flip"] = stop_push(answers, ESTIMATORS["grpo"],
                                      CoinFlip(0))
print("push on 'go on'       right            wrong            sum")
for name, push in pushes.items():
    both = push.right.batches + push.wrong.batches
    row = [f"{x.mean():+.3f} ± {x.std() / 4:.3f}"
           for x in (push.right.batches, push.wrong.batches, both)]
    print(f"{name:18s}", "  ".join(row))
assert pushes["grpo"].right.mean < -0.08 < 0.08 < pushes["grpo"].wrong.mean
for name in ("dr_grpo", "grpo, coin flip"):
    assert max(abs(pushes[name].right.mean),
               abs(pushes[name].wrong.mean)) < 0.05

# %% [markdown]
# Unit: the mean $|cA|$ of a token under that estimator, $c$ its coefficient. ± is the standard
# error over the 16 batches. GRPO tells right answers to stop and wrong ones to go on, by more than
# a tenth of a typical $|cA|$, about ten standard errors. The sum is near 0: what both kinds share
# is not pushed. Without $1/T$ the three estimators lean the other way by about two standard errors;
# they share one sample, so that is one chance. The fifth of GRPO's push that the enumeration left
# to DAPO would be 0.03 here and could not be told from none. When a coin pays, being right earns no
# advantage, and nothing is pushed.
#
# ## In the libraries
#
# Which of the two divisors does one get without asking? Read from the default configurations of TRL
# 1.16.0 and verl 0.9.1:

# %%
group = {"adv_estimator": "grpo"}
for name, o in {"TRL": from_trl().objective,
                "verl": from_verl(**group).objective,
                "this page": grpo}.items():
    print(f"{name:10s} {str(o.advantage):34s} {o.weights}")
    assert (o.weights == grpo.weights) == (name == "this page")
no_std = (from_trl(scale_rewards="none"),
          from_verl(**group, norm_adv_by_std_in_grpo=False))
with_T = (from_trl(loss_type="grpo"),
          from_verl(**group, loss_agg_mode="seq-mean-token-mean"))
assert all(x.objective.advantage == group_center() for x in no_std)
assert all(x.objective.weights == grpo.weights for x in with_T)

# %%
A = zscore(one_lower(1)) * (7 / 8)**0.5                # Bessel's std
print(f"one of eight differs: {zscore(one_lower(1)).abs().max():.4f} here, "
      f"{A.abs().max():.4f} with Bessel's std")
assert torch.isclose(A.abs().max(), torch.tensor(7 / 8**0.5))

# %% [markdown]
# Both have the std and neither has $1/T$: one mean over all tokens instead. Both use Bessel's std
# ($G-1$ in place of $G$), so their ceiling is $(G-1)/\sqrt G$. The switches: `scale_rewards="none"`
# and `norm_adv_by_std_in_grpo=False` take the std out; `loss_type="grpo"` and
# `loss_agg_mode="seq-mean-token-mean"` bring $1/T$ in.
#
# ## A penalty of 0.001
#
# Sixteen answers, all right; each loses 0.001 for every 100 tokens it is long, lengths 100 to 1600.
# Before you run: the largest advantage with the z-score? Without the division? With ε at
# $10^{-2}$?

# %%
r = 1 - 0.001 * torch.arange(1.0, 17.0)
print(f"std of the rewards {r.std(correction=0):.5f}")
for name, A in (("z-score, eps 1e-6", zscore(r)),
                ("mean only", r - r.mean()),
                ("z-score, eps 1e-2", zscore(r, 1e-2))):
    print(f"{name:18s} largest |A| {A.abs().max():.4f}")

# %% [markdown]
# A penalty that was meant to break ties decides everything in an all-right group. An ε of 0.01 is
# twice the std, and leaves about a third.
#
# ## The running group, one divisor at a time
#
# Fresh data. Per answer the advantage $A$, and what one of its tokens is pushed by, $cA$ with its
# coefficient $c$. The two middle rows undo one divisor each; Dr. GRPO, with $L_{\max}=8$, undoes
# both.

# %%
table = {"grpo": grpo,
         "without the std": grpo.replace(advantage=group_center()),
         "without 1/T": grpo.replace(weights=ZOO["dr_grpo"].weights),
         "dr_grpo": ZOO["dr_grpo"]}
print("rewards 1 1 0 0, lengths 3 5 2 6")
for name, objective in table.items():
    out = objective(fresh)
    A, c = out.advantages[:, 0], out.weights[:, 0]
    print(f"{name:16s} A {four(A)}\n{'':15s} cA {four(c * A)}")

# %% [markdown]
# ## Name this method
#
# The running batch on fresh data, no KL: what one token of each answer is pushed by, in units of
# the first answer's. Which method? Look for the length first, then compare the two groups. Write
# its name between the quotes.

# %%
rows = zip(running_batch().rewards.int().tolist(),
           running_batch().lengths.int().tolist(),
           (1, 1, -1, -1, 1.5, -0.5, -0.5, -0.5))
for i, (reward, tokens, push) in enumerate(rows):
    print(f"prompt {1 + i // 4}, reward {reward}, {tokens} tokens: "
          f"{push:+.1f} per token")

# %% tags=["exercise"]
check.name_this_grpo_biases("")

# %% [markdown]
# Would a method with $1/T$ push three and five tokens alike? What is the deviation from the mean in
# 1, 1, 0, 0, and what in 1, 0, 0, 0? The answer: [solutions 09](../solutions/09_grpo_biases.ipynb).
