# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 · Two divisors: what GRPO's std and its 1/T do
#
# **Settles:** what dividing by the group's std does to equal rewards, to nearly equal ones, to easy and hard prompts; what
# dividing by the length does to right and wrong answers; and what of it a small real model shows.
#
# 40 minutes · after [06](06_grpo.ipynb) · GRPO, Shao et al. 2024 ([2402.03300](https://arxiv.org/abs/2402.03300));
# Dr. GRPO, Liu et al. 2025 ([2503.20783](https://arxiv.org/abs/2503.20783)); DAPO, Yu et al. 2025
# ([2503.14476](https://arxiv.org/abs/2503.14476)); MaxRL, 2026 ([2602.02710](https://arxiv.org/abs/2602.02710)).

# %% [markdown]
# > **[06](06_grpo.ipynb) in two lines.** $G$ answers to one prompt, rewards $r_i$; each answer is compared with the mean $\bar r$ of its
# > group, and the difference is divided by the group's std $s$. No advantage exceeds $\sqrt{G-1}$. Equal rewards teach nothing.
# >
# > **[03](03_baselines.ipynb) in two lines.** Subtracting a baseline leaves the expected gradient where it was. Dividing by a number that
# > depends on the draw does not: at $G=2$ with graded rewards a component of the gradient even changes its sign.

# %%
import torch
from rlnb import ZOO, Objective, check
from rlnb.toys import Bandit, estimator_moments, running_group
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# On fresh data GRPO pushes token $t$ of answer $i$ up with the weight
#
# $$\frac1G\cdot\frac1{T_i}\cdot\frac{r_i-\bar r}{s+\varepsilon}.$$
#
# The policy gradient of [03](03_baselines.ipynb) has $r_i-\bar r$ and neither of the other two: not $s$, the std of the group (one number per
# prompt), and not $T_i$, the length of the answer (one number per answer). If they were constants they would be a learning rate. They are
# not, and this page is about the difference. First $s$, then $T_i$.
#
# ## Nearly equal rewards
#
# Eight answers, seven with reward 1, one lower by a gap. How large does its advantage get?

# %% tags=["claim:G04"]
def zscore(r, eps=1e-6):                       # (..., G) -> (..., G)
    centred = r - r.mean(-1, keepdim=True)
    return centred / (r.std(-1, keepdim=True, correction=0) + eps)


def one_lower(gap, G=8):
    return torch.tensor([1.0] * (G - 1) + [1.0 - gap])


gaps = (1, 1e-2, 1e-4, 1e-6, 1e-7)
print("gap           ", *(f"{gap:8.0e}" for gap in gaps))
for eps in (0, 1e-6, 1e-4):
    largest = [float(-zscore(one_lower(g), eps)[-1]) for g in gaps]
    print(f"|A|, eps {eps:5.0e}", *(f"{a:8.4f}" for a in largest))
    assert max(largest) < 7**0.5 + 1e-6        # the bound of 06.1
gain = [1 / float(one_lower(g).std(correction=0)) for g in gaps]
print("gain 1/std    ", *(f"{g:8.0e}" for g in gain))
assert all(abs(zscore(one_lower(g), 0)[-1] + 7**0.5) < 1e-6 for g in gaps)

# %% [markdown]
# It is often said that nearly equal rewards make the advantages blow up. The *gain* $1/s$ does, to thirty million here. The result never
# passes $\sqrt7=2.6458$. That is the trouble: a gap of 0.0001 counts as much as a gap of 1.
#
# And so $\varepsilon$ gets a meaning: it is the **resolution of the reward**. Differences whose std is far above $\varepsilon$ count in full, far
# below it they vanish. TRL adds $10^{-4}$, verl and this course $10^{-6}$. Neither protects against a bonus of 0.01.
#
# Move it. Pull the difference down until the bars give way; then set ε to 0; then put noise on all answers and divide by nothing.

# %% tags=["explorer"]
from rlnb.classroom import explorers

explorers.std_explorer()

# %%
from rlnb.classroom.explorers.near_equal import compute as near

print("difference              largest |A|: divided  mean only")
for pattern, name in (("one", "one answer"), ("noise", "noise on all")):
    for gap in (1.0, 1e-2, 1e-6):
        with_std, without = (near(gap, divide=d, pattern=pattern)
                             for d in (True, False))
        print(f"{name:13s} {gap:5.0e}            "
              f"{with_std['largest']:.4f}     {without['largest']:.0e}")

# %% [markdown]
# **"When all answers score the same, dividing by almost nothing blows the gradient up."** With *exactly* equal rewards the numerator is 0
# as well: 0/0, or 0 with an ε. With *almost* equal rewards (a learned scorer's last digits, a small penalty) the noise comes out
# at ordinary size. Here is why no alarm rings: the gradient looks like any other.

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
    print(f"rewards {str(r):29s} gradient norm {gradient.norm():.4f}")
assert zscore(ones, 0).isnan().all() and (zscore(ones) == 0).all()
assert gradient.norm() == 0

# %% [markdown]
# Useless, not huge. Clipping the gradient norm cannot catch it.
#
# **"With an ε, equal rewards give exactly zero."** On paper. 0.7 has no finite binary form, twelve of them do not sum to 8.4, and the
# rounding is divided by itself:

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
        A[dtype, eps] = float(looped(torch.full((12,), 0.7, dtype=dtype),
                                     eps).abs().max())
        print(f"{str(dtype)[6:]}, eps {eps:.0e}: {A[dtype, eps]:.0e}")
half = torch.full((12,), 0.7, dtype=torch.float16)
print("float16, eps 1e-08:", zscore(half, 1e-8)[0].item())
assert A[torch.float32, 1e-8] > 0.5 and A[torch.float32, 1e-6] > 0.05
assert A[torch.float32, 1e-4] < 2e-3 and A[torch.float64, 1e-6] < 1e-9
assert zscore(half, 1e-8).isnan().all()

# %% [markdown]
# Twelve equal answers, and each is told 0.9 (with another order of summation the digits change). In float16 $10^{-8}$ is 0 and the
# result NaN. So `rlnb` asks `max == min`, and never `std > 0`. You will write that test in 07.4.
#
# ### Noise promoted to signal, and where the division is right
#
# A bandit with softmax logits, as in 06, groups of 16. First eight arms that are all worth 1, with noise of 0.0001: there is nothing to
# learn. Then four arms whose values differ by 0.01, by 0.3 and by 300.

# %%
def train(value, noise=0.0, divide=True, lr=0.5, seeds=200, steps=400):
    """All seeds side by side: pi at every step, (seeds, steps, K)."""
    gen = torch.Generator().manual_seed(0)
    value = torch.tensor(value)
    theta, history = torch.zeros(seeds, len(value)), []
    for _ in range(steps):
        pi = theta.softmax(1)
        history.append(pi)
        draws = torch.multinomial(pi, 16, True, generator=gen)
        r = value[draws] + noise * torch.randn(seeds, 16, generator=gen)
        A = zscore(r) if divide else r - r.mean(1, keepdim=True)
        counts = torch.zeros_like(pi).scatter_add(1, draws, A)
        theta = theta + lr * (counts - pi * A.sum(1, keepdim=True)) / 16
    return torch.stack(history, 1)

# %% tags=["claim:G05"]
entropy = {}
for name, divide in (("z-score", True), ("mean only", False)):
    pi = train([1.0] * 8, 1e-4, divide, seeds=40, steps=500)[:, -1]
    H = entropy[name] = -(pi * pi.log()).sum(1)
    print(f"{name:9s}: entropy {H.mean():.2f} (from {H.min():.2f} to "
          f"{H.max():.2f} over 40 seeds), top arm {pi.amax(1).mean():.2f}")
assert entropy["z-score"].mean() < 1.8 < 2.079 < entropy["mean only"].min()

# %% [markdown]
# It starts at $\ln8=2.08$. Divided, 500 steps of pure noise take it to about 1.66: a random walk at full step size. Nothing explodes, and "the
# dominant instability of GRPO", as it has been called, is more than anyone has shown. A slow drift towards nothing in particular is
# what it is.

# %% tags=["claim:G24"]
arms = {"0.87 to 0.90": [0.87, 0.88, 0.89, 0.90],
        "0.2 to 1": [0.2, 0.5, 0.8, 1.0],
        "200 to 1000": [200.0, 500.0, 800.0, 1000.0]}
solved = {}
for name, value in arms.items():
    for rule, divide in (("z-score", True), ("mean only", False)):
        best = train(value, 0.0, divide)[:, :, 3]      # (200, 400)
        there = (best > 0.9).any(1)
        solved[name, rule] = int(there.sum())
        step = (best > 0.9).int().argmax(1)[there]
        print(f"rewards {name:12s} {rule:9s}: {solved[name, rule]:3d} of "
              f"200 seeds, median step "
              f"{int(step.median()) if len(step) else '-'}")
assert all(solved[name, "z-score"] == 200 for name in arms)
assert solved["0.87 to 0.90", "mean only"] == 0
assert solved["200 to 1000", "mean only"] < 200

# %% [markdown]
# This is the honest case for the division: it is optional, and it helps when rewards differ in scale. One learning rate serves all three
# worlds (14 or 15 steps). Without it the first never gets there, and the third jumps so far that 22 of 200 seeds lock on to a wrong arm. With
# *one* scale you would tune the learning rate once and be done; with several reward sources you cannot.
#
# ### Where the division turns the gradient
#
# With 0/1 rewards and one prompt the std changes a length, not a direction (03). Graded rewards are different. A policy that is nearly
# done: 49 % right, 49 % right with a keyword that earns a bonus of 0.01, 2 % wrong. $G=8$, exact:

# %% tags=["see:G16"]
def four(numbers):
    """Four decimals each, no minus zero."""
    return " ".join(f"{round(float(x), 4) + 0.0:8.4f}" for x in numbers)


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
# The true gradient mostly says "less wrong". GRPO's says "plain right answers down, bonus up", seven times louder than it says anything about
# wrong ones, because 85 % of the groups are all right and in those the bonus is the only difference. (The mean alone is the truth times 7/8, as 03
# proved.) Any bonus for length, format or style is such a near-tie.
#
# The same in a real model: 0.3 million parameters, sums as in [19](19_grpo_for_real.ipynb), right or wrong is worth 1, and each word `wait` in an answer earns 0.01, at most
# ten times. Recorded on a CPU; 1/T is a constant in both, so that only the std differs. The table beside it: `wait` per answer over the last ten steps.

# %%
from rlnb.classroom.recorded import BONUS_RUNS, bonus_figure, waits

last = {rule: waits(rule)[:, -10:].mean(1) for rule in BONUS_RUNS}
for rule, each in last.items():
    print(f"{rule:9s}: `wait` per answer, {len(each)} recorded:",
          " ".join(f"{x:.2f}" for x in each))
assert last["z-score"].min() > 1 > 0.4 > last["mean only"].max()
bonus_figure("A bonus of a hundredth: divided by the std, every recorded "
             "seed learns to write it; with the mean alone none does.")

# %% [markdown]
# A hundredth, and the model learns to write it. The more groups are all right, the more it counts.
#
# ## Easy and hard prompts
#
# Rewards 0 or 1 from here on, pass rate $p$, and $k$ right answers in the group. All right ones get the same $A_+$, and their sum $kA_+$ is
# what the wrong ones lose. A right answer's score averages to $\mathbb E[r\,s(y)]/p=\nabla p/p$, a wrong one's to $-\nabla p/(1-p)$. So the group pushes
#
# $$\frac{kA_+}{G}\Big(\frac1p+\frac1{1-p}\Big)\nabla p=\underbrace{\frac{kA_+}{G\,p(1-p)}}_{\text{weight}}\nabla p,\qquad
# kA_+=\begin{cases}\sqrt{k(G-k)}&\text{z-score}\\ k(G-k)/G&\text{mean only}\\ G-k\ \text{ if }k\gt0&\text{MaxRL: }(r-\bar r)/\bar r\end{cases}$$
#
# The expectation over $k$ is a finite sum. Against the package, enumerated, with ten answers of which one or nine are right:

# %%
from math import comb

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


for right in (1, 9):
    rewards = [1.0] * right + [0.0] * (10 - right)
    for rule, method in (("z-score", grpo), ("mean only", ZOO["dr_grpo"])):
        m = estimator_moments(Bandit(10), rewards, method, 4)
        w = weight(right / 10, 4, rule)
        print(f"p {right / 10}, G 4, {rule:9s}: weight {w:.4f}")
        assert torch.allclose(m.mean, w * m.truth, atol=1e-5)

# %% [markdown]
# The z-score gives 0.1 and 0.9 the same weight. That is not rounding: exchange $k$ and $G-k$, and nothing in $\sqrt{k(G-k)}$ or $p(1-p)$
# changes. Drag the pass rate; then switch to the net signal, the weight times $p(1-p)$; then to MaxRL.

# %% tags=["explorer"]
explorers.difficulty_explorer()

# %%
from rlnb.classroom.explorers.difficulty import compute as difficulty

print("G = 16    weight: z-score  mean only    MaxRL    P(no signal)")
for p in (0.01, 0.1, 0.5, 0.9, 0.99):
    by = [difficulty(p, 16, m) for m in ("zscore", "mean", "maxrl")]
    print(f"p = {p:4.2f}       ", four([d["weight"] for d in by]),
          f"       {by[0]['silent']:.4f}")

# %% [markdown]
# **"The std inflates easy prompts and shrinks hard ones."** No: both tails gain alike. **"Prompts at either end get larger advantages
# throughout, so they weigh too much."** Relative to $\nabla p$ they weigh more, yes. But the mean $|A|$ is largest at one half.

# %% tags=["claim:G12", "claim:G13"]
print("   p   weight  at 1-p   1/sqrt(p(1-p))   mean |A|")
for p in (0.5, 0.1, 0.01):
    size = 2 * expected(p, 16, "z-score") / 16         # E |A_i|
    print(f"{p:4.2f}   {weight(p):.4f}  {weight(1 - p):.4f}   "
          f"{(p * (1 - p)) ** -0.5:14.4f}   {size:8.4f}")
    assert abs(weight(p) - weight(1 - p)) < 1e-9
assert [round(weight(p), 3) for p in (0.5, 0.1, 0.01)] == \
    [1.934, 2.848, 3.733]
assert all(weight(p) < 15**0.5 for p in (0.5, 1e-2, 1e-4))
assert abs(weight(1e-6) - 15**0.5) < 1e-3              # the ceiling
assert abs(weight(0.1, 500) - 0.09**-0.5) < 0.01       # the limit
p = torch.tensor(0.1, requires_grad=True)
(2 * p.sqrt().asin()).backward()                       # 2 arcsin sqrt p
assert torch.isclose(p.grad, torch.tensor(0.09**-0.5))

# %% [markdown]
# With large groups the weight is $1/\sqrt{p(1-p)}$, the derivative of $2\arcsin\sqrt p$: GRPO maximises that of each prompt where Dr. GRPO maximises
# $p$ and MaxRL, with weight $1/p$, $\log p$. With small groups it stops at $\sqrt{G-1}$, and at $G=2$ it is 1 for every $p$: pairs
# do not reweight at all.
#
# Do the heavy weights make the tails loud? A prompt's **net signal** is weight times $p(1-p)$: what reaches the logit of $p$, whose slope is $p(1-p)$. It is said
# to go as $p(1-p)$. That is the mean alone; the z-score's falls half as steeply.

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

# %% [markdown]
# **"The one failure on an easy prompt dominates the batch, though it teaches least."** Its advantage *is* the largest there is, 3.87 against 1.
# Then count what the whole prompt adds. And note what is called hard: 8 of 16 is the *medium* prompt; the hard mirror of 15 is 1.

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

# %% [markdown]
# Over-weighted 1.63 times compared with no division; still less than four tenths of a medium prompt. "Dominating" is wrong, "promoted" is right.
#
# And do not expect to *see* the weight in a training curve. The groups that speak have $1\le k\le G-1$, and their stds differ little:

# %%
for G, told in ((8, 1.51), (16, 2.07), (64, 4.03)):
    std = [(k * (G - k))**0.5 / G for k in range(1, G)]
    print(f"G = {G:2d}: std from {min(std):.4f} to {max(std):.4f}, "
          f"weights at most {max(std) / min(std):.2f} apart")
    assert round(max(std) / min(std), 2) == told

# %% [markdown]
# At $G=8$ a factor of one and a half between the extremes. (We have no training curve that shows it, and none that rules it out.) The near-ties above are
# where the std shows.
#
# ## Groups that say nothing
#
# All right or all wrong: $A=0$. How often?
#
# $$P(\text{no signal})=p^G+(1-p)^G$$

# %%
from itertools import product

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
# At $G=1$ every group is silent (06: zero, or NaN with Bessel). At $G=2$ at best half speak, and those only say who won (03). At $p=0.01$ a group of 16
# is silent 85 % of the time: six or seven groups generated for one that teaches. Page 09 resamples until they speak.
#
# **"A group with equal rewards adds nothing to the gradient."** Its policy term, no. Two things stay: the KL term, and its tokens, if the loss is
# one mean over all tokens.

# %% tags=["claim:G25"]
from rlnb.toys import running_batch

flat = fresh.replace(rewards=torch.ones(4))
for name, objective in (("without KL", grpo), ("0.04 k3", ZOO["grpo"])):
    gradient, = torch.autograd.grad(objective(flat).loss, flat.logprobs)
    print(f"all right, {name:10s}: gradient norm {gradient.norm():.4f}")
    assert (gradient.norm() > 0) == (name == "0.04 k3")
both = running_batch()
both = both.replace(rewards=torch.tensor([1.0, 1, 0, 0, 0, 0, 0, 0]))
for name in ("grpo", "dapo"):
    alone = ZOO[name](running_group()).weights[0, 0]
    beside = ZOO[name](both).weights[0, 0]
    print(f"{name}: a token's weight alone 1/{1 / alone:.0f}, beside a "
          f"silent group 1/{1 / beside:.0f}")
    assert beside < alone

# %% [markdown]
# The silent group of 14 tokens halves its neighbour's weight under GRPO (it counts answers) and shrinks it from 1/16 to 1/30 under DAPO (it
# counts tokens): one factor for the whole step, which shrinks as more groups fall silent.
#
# ### Can a baseline from elsewhere make them speak?
#
# A shared baseline (the mean of the batch, or a running mean of past rewards, an *EMA*) does not vanish in an all-wrong group: every answer gets
# $0-b$. It is said to give such groups a direction.

# %% tags=["claim:G30"]
b, p = 0.5, 0.1                                # one logit, p its sigmoid
push = (0 - b) * (0 - p)                       # A times d log(1-p)/d logit
print(f"p = 0.1: each wrong answer pushes the logit by {push:+.3f}")
e, quarter = torch.eye(4), torch.full((4,), 0.25)
pushes = (0 - b) * (e - quarter)               # p = 0: four wrong answers
mean, noise = quarter @ pushes, quarter @ pushes.square().sum(1)
print(f"p = 0: mean push {mean.norm():.4f}, variance {noise:.4f}")
assert push > 0 and mean.norm() == 0 and noise == 0.1875

from rlnb.objective import group_center, logprob, sequence_sum
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
# If $p\gt0$, yes: all wrong is evidence, +0.05 per answer towards success. If $p=0$ it is pure noise. And it is not free: **answers** is page 03's unit, how many
# one must average until noise equals signal. An EMA of *this* prompt's rewards (0.1) beats the group's mean, 8.00 against 11.33. The mean of an
# easier batch (0.5) is twice as bad, 24.00. A baseline that knows the prompt is good wherever it comes from; one that does not is noise.
#
# ## The length divisor
#
# Now $T_i$. Take the simplest policy that decides its own length: after each token it stops with probability $\mathrm s=\sigma(\theta)$, whatever
# was said. Every token but the last has score $-\mathrm s$ in $\theta$, the last $1-\mathrm s$: in total $1-\mathrm sT$, which averages to 0. The reward
# does not depend on the length.

# %% tags=["claim:L01"]
s = 0.1
T = torch.arange(1.0, 3001.0)
chance = s * (1 - s)**(T - 1)                  # of length T
theta = torch.tensor(s / (1 - s)).log().requires_grad_()
stop = theta.sigmoid()
log_prob = (6 * (1 - stop).log() + stop.log())         # an answer of 7
assert torch.isclose(torch.autograd.grad(log_prob, theta)[0],
                     torch.tensor(1 - s * 7))
score = 1 - s * T
drift = {"undivided": chance @ score, "divided by T": chance @ (score / T)}
for name, value in drift.items():
    print(f"{name:12s}: push on the stop logit per unit of A "
          f"{abs(value):.6f}")
closed = -s / (1 - s) * torch.tensor(s).log() - s      # E[1/T] - s
assert abs(drift["undivided"]) < 1e-12
assert abs(drift["divided by T"] - closed) < 1e-12
assert round(float(closed), 6) == 0.155843

# %% [markdown]
# Undivided: nothing pulls on the length, as it should be. Divided: $A\,(\mathbb E[1/T]-\mathrm s)$, with 0.155843 at $\mathrm s=0.1$. Short answers
# have high scores for stopping, and $1/T$ counts them more. With $A\gt0$ the policy learns to stop sooner, with $A\lt0$ to go on: **short
# when right, long when wrong**, though length was never rewarded.
#
# Now let right and wrong answers each own a stop decision, as when a model sees how it is doing. The first token
# decides: 0 is right, 1 is wrong; then each route stops with its own 0.3. Enumerated with the package, $G=4$:

# %%
from rlnb.toys import SequencePolicy

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
# Three things to read off. GRPO pushes the two routes apart. Dr. GRPO, which divides by a constant, does not. And if both routes
# *share* one stop logit the pushes add up to exactly 0: the bias needs a model that can tell its right answers from its wrong ones
# **while it can still stop**. DAPO's mean over all tokens keeps a small remainder of the same sign, because
# a short answer also shortens the batch's total; it goes as $1/G$, and 08 measures it.
#
# **"Averaging per answer favours short outputs."** Half the story. **"Only longer reasoning can score better, so RL selects for length."** Follow
# the expected push for 100 steps: two routes, half of the answers right throughout, $G=8$, and a reward that never looks at length.

# %% tags=["claim:L02", "claim:L11"]
pull = expected(0.5, 8, "z-score") / 8         # k A+ / G, on average


def follow(steps, shared=False, lr=0.5):
    logit = torch.full((2,), 0.1 / 0.9).log()  # right, wrong
    for _ in range(steps):
        s = logit.sigmoid()
        push = pull * (-s * s.log() / (1 - s) - s)
        push = push * torch.tensor([1.0, -1.0])
        logit = logit + lr * (push.sum() if shared else push)
    return (1 / logit.sigmoid()).tolist()      # mean lengths


print("steps   right   wrong   all    | one shared stop")
for steps in (0, 20, 60, 100):
    r, w = follow(steps)
    print(f"{steps:5d}  {r:6.1f}  {w:6.1f}  {(r + w) / 2:5.1f}   | "
          f"{follow(steps, shared=True)[0]:6.1f}")
assert r < 2 and w > 50 and abs(follow(100, True)[0] - 10) < 1e-9

# %% [markdown]
# The mean length of all answers more than triples, with nothing learned. Right answers get shorter: "favours short" describes those. Wrong ones
# get longer: that is what Dr. GRPO is remembered for. So growing answers alone prove nothing about thinking. (Longer reasoning may score
# better *as well*; then both happen.)
#
# ### On a real model
#
# A transformer of 0.3 million parameters and a task made for this effect. `44529:1?` asks for three of the digits whose sum ends in 1, in two
# steps. Then comes the model's own verdict (`:` reached, `;` missed), and then it may repeat its last step as often as it likes:
# `6+8=4,4+0=4;wait4+0=4;`. The reward looks at the first attempt only, so length is free.
#
# No training here: sample 16 batches of 16 prompts, $G=8$, and add up what each estimator pushes "go on" by, right and wrong answers apart.
# Unit: the mean absolute weight of the estimator. The control pays by coin flip. (Sampled: your digits may differ.)

# %% tags=["nbval-ignore-output"]
from rlnb.training import TASKS, CoinFlip, data_folder, load
from rlnb.training.push import ESTIMATORS, sample_decisions, stop_push

torch.set_default_dtype(torch.float32)         # as the model is
model, tokenizer = load(data_folder() / "model_pick", device="cpu")
answers = sample_decisions(model, tokenizer, TASKS["pick"], batches=16,
                           prompts=16, num_generations=8, seed=0)
torch.set_default_dtype(torch.float64)
pushes = {name: stop_push(answers, ESTIMATORS[name])
          for name in ("grpo", "zscore_constant", "dr_grpo", "dapo")}
pushes["grpo, coin flip"] = stop_push(answers, ESTIMATORS["grpo"],
                                      CoinFlip(0))
print(f"pass@1 {answers.summary()['pass@1']:.2f}, push on 'go on'")
for name, push in pushes.items():
    row = [f"{kind.mean:+.3f} ± {kind.error:.3f}, below 0 in "
           f"{int((kind.batches < 0).sum()):2d}"
           for kind in (push.right, push.wrong)]
    print(f"{name:15s} right {row[0]} | wrong {row[1]} of 16")
assert pushes["grpo"].right.mean < -0.08 < 0.08 < pushes["grpo"].wrong.mean
for name in ("dr_grpo", "grpo, coin flip"):
    assert max(abs(pushes[name].right.mean),
               abs(pushes[name].wrong.mean)) < 0.05

# %% [markdown]
# Right answers are told to stop and wrong ones to go on, by more than a tenth of a typical weight, and only where $1/T$ is in the estimator. Keep the std and
# drop $1/T$ (`zscore_constant`), drop both, or take one mean over tokens, and it is gone. When a coin pays it is gone too: being right then earns no advantage.
# Single batches scatter; one would not have shown it.
#
# Now train from there, 80 steps of 128 answers. **One seed of each**, recorded on a CPU:

# %%
from rlnb.classroom.recorded import LENGTH_RUNS, length_figure, length_gap

for method in LENGTH_RUNS:
    gaps = [" ".join(f"{g:+.1f}" for g in length_gap(method, a, a + 9))
            for a in (1, 41, 71)]
    print(f"{method:9s} wrong minus right, steps 1-10: {gaps[0]}, "
          f"41-50: {gaps[1]}, 71-80: {gaps[2]}")
length_figure("One seed each, running mean of five steps: right and wrong "
              "answers keep together, under GRPO as under Dr. GRPO.")

# %% [markdown]
# Nothing. That is the third column of the enumeration: right and wrong answers *share* one stop policy here. This small model writes its verdict
# nearly blind, so when it decides to go on it hardly knows whether it was right, and opposite pushes on the same parameters cancel. An estimator's push is
# not yet a model's behaviour. (One seed is no proof of absence either. And mean length alone wanders: compare right with wrong, beside a control.)
#
# ## Where people go wrong
#
# **"As the group converges, advantages shrink to zero by themselves, so no adaptive KL is needed."** Averaged over groups with 0/1 rewards, yes: mixed
# groups get rare. Inside a mixed group the rms is always 1. With graded rewards nothing shrinks at all. The KL does not follow from any of it.

# %% tags=["claim:G06"]
for p in (0.5, 0.9, 0.99):
    all_groups = 2 * expected(p, 16, "z-score") / 16
    mixed = 1 - p**16 - (1 - p)**16
    print(f"p {p:4.2f}: mean |A| over all groups {all_groups:.3f}, "
          f"inside mixed ones {all_groups / mixed:.3f}, "
          f"mixed {mixed:.3f}")
graded = [float(zscore(one_lower(gap, 4))[-1]) for gap in (1, 0.001)]
print(f"graded 1, 1, 1, 1 - gap: {graded[0]:.4f} at 1, "
      f"{graded[1]:.4f} at 0.001")
for k in range(1, 16):                         # any mixed group: rms 1
    A = zscore(torch.tensor([1.0] * k + [0.0] * (16 - k)), 0)
    assert torch.isclose(A.square().mean(), torch.tensor(1.0))
assert round(2 * expected(0.99, 16, "z-score") / 16, 3) == 0.074
assert abs(graded[0] - graded[1]) < 0.005

# %% [markdown]
# **"A task that is never solved is as useless as one that is always solved."** Right now and under a 0/1 reward, exactly. But one has everything
# to gain: give partial credit, or let another task teach the skill, and it speaks.

# %% tags=["claim:G28"]
print("                 0/1 reward                          partial credit")
tasks = {"never solved ": ([0, 0, 0, 0], [0.5, 0.25, 0.25, 0.0]),
         "always solved": ([1, 1, 1, 1], [1.0, 1.0, 1.0, 1.0])}
norms = {}
for task, kinds in tasks.items():
    A = [zscore(torch.tensor(r, dtype=torch.float64)) for r in kinds]
    norms[task.strip()] = [float(a.norm()) for a in A]
    print(task, four(A[0]), " |", four(A[1]))
assert norms["never solved"][0] == norms["always solved"][0] == 0
assert norms["never solved"][1] > 1 and norms["always solved"][1] == 0

# %% [markdown]
# **"GRPO's two normalisers favour easy prompts and long answers."** Each half is half true. Easy *and* hard prompts; short *right* and long *wrong*
# answers.

# %% tags=["claim:L12"]
E_inverse = -0.1 * torch.tensor(0.1).log() / 0.9       # E[1/T], s = 0.1
for side, p in (("easy", 0.9), ("hard", 0.1)):
    print(f"{side}, p = {p}: weight {weight(p):.4f}, medium "
          f"{weight(0.5):.4f}")
for side, A in (("right", 1.0), ("wrong", -1.0)):
    push = A * (E_inverse - 0.1)               # on the stop logit
    print(f"{side}: pushed {'to stop' if push > 0 else 'to go on'}, "
          f"{push:+.4f}")
assert abs(weight(0.9) - weight(0.1)) < 1e-9 and weight(0.1) > weight(0.5)
assert E_inverse > 0.1

# %% [markdown]
# ## Exercises
#
# **07.1 Derive** · 10 minutes · ●●●. Show that the z-score's weight never exceeds $\sqrt{G-1}$, and where it is reached. (In 06.1 the same number bounded a
# single advantage.)
#
# <details><summary>hint</summary>
#
# For $1\le k\le G-1$ the product $k(G-k)$ is at least $G-1$. Write $\sqrt{x}=x/\sqrt{x}$ and use $\mathbb E[k(G-k)]=G(G-1)\,p(1-p)$.
# </details>
#
# **07.2 Derive** · 8 minutes · ●●○. $T$ is geometric with stop probability s. Show $\mathbb E[1/T]=-\frac{s\ln s}{1-s}$, and that it is larger than s, so that the
# drift always has the sign of $A$.
#
# <details><summary>hint</summary>
#
# $\sum_{T\ge1}x^T/T=-\ln(1-x)$. For the second part: $1/T$ is convex and $\mathbb E[T]=1/s$.
# </details>
#
# **07.3 Predict, then run** · 5 minutes · ●●○. Sixteen answers, all right; each loses 0.001 for every 100 tokens it is long, lengths 100 to 1600. Before you run: the largest
# advantage with the z-score? Without the division? With $\varepsilon=10^{-2}$ in place of $10^{-6}$?

# %% tags=["exercise"]
r = 1 - 0.001 * torch.arange(1.0, 17.0)        # your turn
print(f"largest |A| {zscore(r).abs().max():.4f}")

# %% [markdown]
# <details><summary>hint</summary>
#
# The std of 1, 2, ..., 16 is 4.61. What is the largest deviation from their mean? Which of the three changes is a matter of scale only?
# </details>
#
# **07.4 Implement** · 8 minutes · ●○○. Which groups have a signal? One yes or no per group. Rewards may be graded, negative, or sixteen times 0.7.
#
# <details><summary>hint</summary>
#
# One prompt a line. Two rewards of a line differ exactly when its largest is not its smallest.
# </details>

# %% tags=["exercise"]
def my_keep_informative(rewards, num_generations):
    """rewards (B,), rows kG ... kG+G-1 answer one prompt -> (P,) bool"""
    return ...


check.keep_informative(my_keep_informative)

# %% [markdown]
# **07.5 Find the silent bug** · 8 minutes · ●●○. Answers get a bonus of at most 0.01 for being brief, "so small that it can only break ties".
# The code runs, in mixed groups it is right to two digits, accuracy rises at first. Write a test: a function that is given an implementation
# and fails (an `assert`, or `return False`) for this one and passes for one that keeps the promise.
#
# <details><summary>hint</summary>
#
# In which group does the bonus decide alone? How large may an advantage be there?
# </details>

# %%
print(check.silent_bug_07.source)

# %% tags=["exercise"]
def my_test(advantages):         # advantages(correct, bonus, G) -> (B,)
    ...


check.silent_bug_07(my_test)

# %% [markdown]
# **07.6 Name this method** · 4 minutes · ●●○. The running batch on fresh data, no KL: what one token of each answer is pushed by, in units of the first
# answer's. Which method? Look for the length first, then compare the two groups.

# %%
rows = zip(running_batch().rewards.int().tolist(),
           running_batch().lengths.int().tolist(),
           (1, 1, -1, -1, 1.5, -0.5, -0.5, -0.5))
for i, (reward, tokens, push) in enumerate(rows):
    print(f"prompt {1 + i // 4}, reward {reward}, {tokens} tokens: "
          f"{push:+.1f} per token")

# %% tags=["exercise"]
check.name_this_07("")

# %% [markdown]
# <details><summary>hint</summary>
#
# Would a method with $1/T$ push three and five tokens alike? What is the deviation from the mean in 1, 1, 0, 0, and what in 1, 0, 0, 0? And their z-scores?
# </details>
#
# All solved and run in [solutions/07_grpo_biases.ipynb](solutions/07_grpo_biases.ipynb).
#
# ## In the interview
#
# **All eight answers have the same reward. What happens?**
# <details><summary>answer</summary>
#
# Numerator and std are both 0. Without ε NaN, with ε zero advantages, so no policy gradient; a KL term still pulls, and the group's tokens still count in a token mean. Not an
# explosion. Two traps: rewards like 0.7 leave a rounding residue (0.9 instead of 0 in float32 with ε 1e-8), so test max == min; and *nearly* equal rewards, which come
# out at full size.
# </details>
#
# **So does dividing by a small std blow up the gradient?**
# <details><summary>answer</summary>
#
# The gain 1/std is unbounded, the advantage is not: at most √(G−1), rms 1 in any group. The harm is not size but meaning: noise, a bonus of 0.01, a penalty for length count as
# much as right against wrong. The gradient norm looks normal, so norm clipping never sees it. In a toy with eight equal arms noise of 1e-4 takes the entropy from 2.08 to 1.66 in 500 steps.
# </details>
#
# **What is the difficulty bias of GRPO?**
# <details><summary>answer</summary>
#
# With 0/1 rewards the expected gradient of a prompt is w(p)·∇p. Mean only: w constant. z-score: w goes to 1/√(p(1−p)), capped at √(G−1); at G = 16 it is 1.93 at p = 0.5, 2.85 at 0.1 *and* 0.9, 3.73
# at 0.01. Symmetric: easy and hard alike. In net signal the medium prompt still leads. It maximises 2·arcsin√p per prompt; MaxRL's (r − mean)/mean has 1/p and does prefer hard ones. At
# G = 8 the stds of mixed groups are at most 1.51 times apart, so expect little of it in a curve.
# </details>
#
# **When would you keep the std?**
# <details><summary>answer</summary>
#
# When reward scales differ between sources or are unknown: in our toy one learning rate served gaps of 0.01, 0.3 and 300, while the mean alone failed on the first and lost seeds on the third. Or use one std for the whole batch
# with the group's mean. Drop it with graded rewards, tiny bonuses or noisy scorers: there it turns the gradient.
# </details>
#
# **Why do wrong answers get longer under GRPO?**
# <details><summary>answer</summary>
#
# 1/T. A long wrong answer is punished less per token than a short one. Exactly: with stop probability s the push on the stop logit is A·(E[1/T] − s), 0.156·A at s = 0.1. Positive A: stop sooner. Negative: go on. It needs
# a policy that can tell right from wrong while it can still stop; if both share one stop rule the pushes cancel. A constant divisor has no such push.
# </details>
#
# **Answers grow during training. Proof of reasoning?**
# <details><summary>answer</summary>
#
# No. Plot right and wrong apart, beside a control with coin-flip rewards and a run with a constant divisor. 1/T alone lengthens wrong answers under a reward that ignores length.
# </details>
#
# **What share of my groups is wasted?**
# <details><summary>answer</summary>
#
# p^G + (1−p)^G of them: at G = 16, 85 % at p = 0.01 or 0.99, 0.003 % at 0.5. Remedies: larger groups on hard prompts, dropping prompts that are solved, resampling (DAPO), partial credit, a baseline that knows the prompt. A shared baseline
# over unlike prompts mostly adds noise.
# </details>
#
# ## Recap
#
# The running group and its neighbour on fresh data. Per answer the advantage, and what one of its tokens weighs in the gradient ($c\cdot A$). The last two rows undo one
# divisor each; Dr. GRPO, with $L_{\max}=8$, undoes both.

# %%
table = {"grpo": grpo,
         "without the std": grpo.replace(advantage=group_center()),
         "without 1/T": grpo.replace(weights=ZOO["dr_grpo"].weights),
         "dr_grpo": ZOO["dr_grpo"]}
for b, label in ((running_group(), "rewards 1 1 0 0, lengths 3 5 2 6"),
                 (running_batch(), "both: 1 0 0 0, lengths 4 1 7 2")):
    print(label)
    for name, objective in table.items():
        out = objective(b.replace(old_logprobs=None))
        A, c = out.advantages[-4:, 0], out.weights[-4:, 0]
        print(f"{name:16s} A {four(A)}\n{'':15s} cA {four(c * A)}")

# %% [markdown]
# * The std makes near-ties full size: bounded by $\sqrt{G-1}$, never small. ε is the resolution of the reward.
# * It weighs prompts by $1/\sqrt{p(1-p)}$, easy and hard alike; with graded rewards it also turns the gradient; with mixed scales it helps.
# * $p^G+(1-p)^G$ of the groups say nothing. Only a baseline that knows the prompt can stand in.
# * $1/T$ pushes the stop decision by $A(\mathbb E[1/T]-s)$: short when right, long when wrong, nothing when both share it.
# * In a small model a bonus of 0.01 became behaviour under the std. The length push was there in the gradient, and not in 80 steps of training.
#
# Next, **08**: take both divisors out and see what that costs.
