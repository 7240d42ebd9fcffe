# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 11 · statements: DAPO
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the long tables and the corner cases of the lesson,
# [11 · DAPO](../11_dapo.ipynb).

# %% tags=["setup"]
import numpy as np
import torch
from math import comb
from types import SimpleNamespace
from rlnb import ZOO, check, from_trl
from rlnb.classroom.figures import line_figure
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures.recorded_runs import curve, final
from rlnb.objective import clip, difference, overlong, prompt_mean, ratio
from rlnb.toys import running_batch, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

grpo, dapo = ZOO["grpo"], ZOO["dapo"]
narrow = dapo.replace(surrogate=clip(0.2))
group = running_group()
penalty = overlong(20480, cache=4096).penalty          # the paper's numbers

# %% tags=["setup"]
def mixed(p, G):
    return 1 - p**G - (1 - p)**G


def four(numbers):
    return " ".join(f"{round(float(x), 4) + 0.0:8.4f}" for x in numbers)

# %% tags=["setup"]
HIGH = torch.tensor([0.2, 0.28, 0.5, torch.inf])[:, None]
START, RARE_BEST = (0.01, 0.97, 0.01, 0.01), (1.0, 0.5, 0.0, 0.0)

# %% tags=["setup"]
def train(optimizer, lr, pay=RARE_BEST, batches=40, runs=1, draw=None,
          freeze=False):
    theta = torch.tensor(START).log().repeat(4 * runs, 1)
    pay, high = torch.tensor(pay), HIGH.repeat_interleave(runs, 0)
    opt, trace = optimizer([theta.requires_grad_()], lr=lr), []
    ever = 0.0                                         # drawn so far
    for _ in range(batches + 1):
        old = theta.detach().log_softmax(1)            # (runs, 4 arms)
        p = old.exp()
        w = p if draw is None else draw(p)             # share in the batch
        ever = ever + w
        A = pay - (w * pay).sum(1, keepdim=True)
        A = A / ((w * A**2).sum(1, keepdim=True).sqrt() + 1e-6)
        cut = torch.zeros(len(p))
        for _ in range(8):                             # updates
            rho = (theta.log_softmax(1) - old).exp()
            cut += ((rho > 1 + high) & (A > 0)).any(1)
            clipped = torch.minimum(rho.clamp(min=0.8), 1 + high)
            loss = -(w * torch.minimum(rho * A, clipped * A)).sum()
            opt.zero_grad(), loss.backward()
            theta.grad *= (ever > 0) if freeze else 1.0
            opt.step()
        trace.append((p[:, 0], -(p * old).sum(1), cut))
    return [torch.stack(x, 1) for x in zip(*trace)]    # p, entropy, cut

# %% [markdown]
# ## What DAPO is

# %% [markdown]
# ### Z20 · four fixes
#
# The loss shows two of them. Where are the others?

# %%
statement("Z20")

# %% tags=["claim:Z20"]
print(difference(grpo, dapo))
with_penalty = dapo.replace(shape=overlong(20480, cache=4096))
print(difference(dapo, with_penalty))
assert len(difference(grpo, dapo)) == 3 and dapo.terms == ()
assert dapo.advantage == grpo.advantage

# %%
settle("Z20", "true")

# %% [markdown]
# Dynamic sampling stands in the sampler; no loss shows it.

# %% [markdown] tags=["cited:G33"]
# ### G33 · the group's mean
#
# "DAPO's baseline is the group mean." The advantage is GRPO's z-score; the sentence leaves out its
# scale. DAPO ([2503.14476](https://arxiv.org/abs/2503.14476)), GSPO and CISPO all keep the std, Dr.
# GRPO drops it.

# %% [markdown] tags=["cited:H02"]
# ### H02 · the band
#
# "DAPO clips at 0.2 below and 0.28 above." As published (section 4.1 of
# [2503.14476](https://arxiv.org/abs/2503.14476)). The lower edge stays: a wider one, the paper
# says, would let tokens be pushed to zero.

# %% [markdown] tags=["cited:H01"]
# ### H01 · half the steps
#
# The folk version of the result: 50 points on AIME 2024 in half the steps of R1-Zero. The
# comparison in the paper ([2503.14476](https://arxiv.org/abs/2503.14476), Figure 1 and Table 1) is
# with *DeepSeek-R1-Zero-Qwen-32B*, 47 points, the same 32B base; it is not R1-Zero itself. And a
# step is not a sample (G29).
#
# *Which of the four mattered?* Table 1 adds one after the other, one run a row: GRPO 30, overlong
# filtering 36, clip-higher 38, overlong penalty 41, token-level mean 42, dynamic sampling 50. The
# gains depend on the order, so they are not main effects. verl's
# [reproduction](https://github.com/volcengine/verl/blob/main/recipe/dapo/README.md) has 52 with
# dynamic sampling and 50 without.

# %% [markdown]
# ## Clip-higher

# %% [markdown]
# ### A17 · a rare token held down
#
# PPO's clip, a softmax, and an optimizer: four arms, of which the rare one (0.01) pays 1 and the
# usual one (0.97) pays ½. Every arm is counted with its probability, as in a batch without end, so
# no seed is involved. Adam and SGD, three speeds each. *Cut* counts the updates on the way to 0.5
# in which the upper edge silenced an arm; the last columns say what one batch multiplied the rare
# arm by under ε = 0.20, on average and at most.

# %%
statement("A17")

# %% tags=["claim:A17"]
print("              batches to 0.5         cut on the way     one batch")
print("ε high       .20  .28  .50 none    .20  .28  .50 none   mean   max")
runs, speed, most = {}, {}, {}
for name, lr, batches in (
        ("Adam", 0.005, 50), ("Adam", 0.02, 40), ("Adam", 0.05, 40),
        ("SGD", 0.02, 125), ("SGD", 0.05, 55), ("SGD", 0.2, 40)):
    p, entropy, cut = runs[name, lr] = train(
        getattr(torch.optim, name), lr, batches=batches)
    n = speed[name, lr] = (p > 0.5).int().argmax(1).tolist()
    held = (cut * (p < 0.5)).sum(1).int().tolist()
    factor = (p[0, 1:] / p[0, :-1])[:n[0]]             # ε = 0.20
    most[name, lr] = factor.max().item()
    print(f"{name:4s} {lr:<6.3f}", *(f"{x:4d}" for x in n), "  ",
          *(f"{x:4d}" for x in held),
          f"  {factor.log().mean().exp():5.2f} {most[name, lr]:5.2f}")
assert speed["Adam", 0.05] == [9, 8, 7, 6]
assert speed["Adam", 0.02] == [15, 14, 13, 13]
assert speed["SGD", 0.2] == [19, 17, 14, 12]
assert len(set(speed["Adam", 0.005])) == len(set(speed["SGD", 0.02])) == 1
assert most["Adam", 0.05] > 1.8 and most["SGD", 0.2] > 1.4

# %%
settle("A17", "it depends")

# %% [markdown]
# The condition is not the optimizer: would the ratio pass 1.2 *within one batch*? With short steps
# the clip never meets an arm, under Adam or SGD, and all four runs agree to the batch. What Adam
# changes is *when*: it moves a rare token as fast as a likely one from the first update, while a
# softmax under SGD moves a token in proportion to its own probability.
#
# **The clip ends the token's own gradient; it does not stop the token.** Under ε = 0.20 Adam at
# 0.05 carries it by up to 1.87 in a batch, so it needs 9 batches and not the 22 of a wall at the
# edge. The last step overshoots, Adam's momentum goes on, and the usual arm falls, which lifts the
# others.
#
# With a wall, the share of batches saved is $1-\log1.2/\log1.28=26\,\%$ in the limit of many
# batches; whole batches give 27 % to one half and 24 % to 0.9:

# %%
def wall(edge, target, p=0.01):
    batches = 0
    while p < target:
        p, batches = p * edge, batches + 1
    return batches


for target in (0.5, 0.9):
    n = [wall(edge, target) for edge in (1.2, 1.28)]
    print(f"0.01 to {target}: {n[0]} and {n[1]} batches, "
          f"{1 - n[1] / n[0]:.0%} saved")
    assert n == ([22, 16] if target == 0.5 else [25, 19])

# %% [markdown]
# In the running group 1.28 revives one token. Its *gate* is the ratio where a token is alive, 0
# where it is cut:

# %%
gates = [o.explain(group).gate for o in (narrow, dapo)]
other = (gates[0] != gates[1]) & group.completion_mask.bool()
(i, t), = other.nonzero().tolist()
print(f"answer {i}, token {t}: gate {abs(gates[0][i, t]):.2f} ->"
      f" {gates[1][i, t]:.2f}")
high = (group.logprobs - group.old_logprobs).exp() > 1.28
print("above 1.28 and right, still dead:", high[:2].sum().item())
assert (i, t) == (0, 1) and (gates[1][:2][high[:2]] == 0).all()

# %% [markdown]
# And in DAPO's own run? 512 prompts × 16 answers, 16 updates per rollout, learning rate $10^{-6}$
# (section 4.1). Several updates, but each uses *other* answers, and a ratio moves through shared
# weights only, while the toy repeats its tokens 8 times. Whether 1.28 bites, only the share of
# tokens cut at the *upper* edge tells. With one update per batch (the default of TRL 1.16) it is
# zero:

# %%
fresh = running_batch().replace(old_logprobs=None)
for name, b in (("first step", fresh), ("later step", running_batch())):
    one, two = (torch.autograd.grad(o(b).loss, b.logprobs)[0]
                for o in (narrow, dapo))
    print(f"{name}: {(one != two).sum().item()} gradients change")
    assert ((one != two).sum() == 0) == (b is fresh)

# %% [markdown]
# ### A25 · never kill a gradient
#
# CISPO caps the token's weight instead, SAPO lets it fade
# ([page 12](../12_soft_trust_regions.ipynb)); neither is ever 0. One batch, used 50 times:

# %%
statement("A25")

# %% tags=["claim:A25"]
old = torch.tensor((0.1, 0.7, 0.1, 0.1)).log()
p, pay = old.exp(), torch.tensor(RARE_BEST)
A = (pay - p @ pay) / (p @ (pay - p @ pay)**2).sqrt()
far = {}
for name in ("grpo", "dapo", "cispo", "sapo", "none"):
    worth = ZOO[name].surrogate if name in ZOO else ratio()
    theta, seen = old.clone().requires_grad_(), []
    for _ in range(50):
        logp = theta.log_softmax(0)
        value = worth(SimpleNamespace(logprobs=logp), A, logp - old)
        g, = torch.autograd.grad((p * value).sum(), theta)
        theta = (theta + 0.2 * g).detach().requires_grad_()
        seen.append((theta.log_softmax(0) - old).exp().max().item())
    far[name] = seen[3], seen[49]
    print(f"{name:6s} largest ratio after 4 epochs {seen[3]:.2f}, "
          f"after 50 {seen[49]:5.2f}")
assert max(x[0] for x in far.values()) < 1.13
assert far["grpo"][1] < 1.3 < 4 < far["sapo"][1] < far["cispo"][1] < 9.3

# %%
settle("A25", "it depends")

# %% [markdown]
# After 4 epochs the five are one method, 1.12. After 50 the masks are at 1.24 and 1.34, SAPO at
# 4.25, CISPO at 8.79, almost no clip at all (9.20, where 10 is the most there is): a bounded
# *weight* does not bound the *policy*. In this toy farther is better, since its batch is exact.
# With sixteen sampled answers a token's advantage is partly luck, and going far means going far on
# that luck.

# %% [markdown]
# ## Entropy

# %% [markdown]
# ### A18 · entropy collapse
#
# *Entropy collapse*: the policy becomes so sure that all its answers are alike, groups stop being
# mixed, learning ends. First without sampling and without any clip: ten arms paying 0 to 1, the
# exact gradient of the expected reward.

# %%
def exact_ascent(steps, lr=2.0, arms=10):
    pay, theta, entropy = torch.linspace(0, 1, arms), torch.zeros(arms), []
    for _ in range(steps + 1):
        p = theta.softmax(0)
        entropy.append(-(p * p.log()).sum().item())
        theta = theta + lr * p * (pay - (p * pay).sum())
    return entropy


without_clip = exact_ascent(3000)
for step in (0, 10, 100, 1000, 3000):
    print(f"step {step:4d}: entropy {without_clip[step]:.4f}")
assert without_clip[-1] < 0.01 < 2.3 < without_clip[0]

# %% [markdown]
# From $\ln10=2.3026$ to 0.0046, and no clip in sight. Now the four runs of Adam at 0.05 of A17, and
# the same with the usual arm as the best one.

# %%
statement("A18")

# %% tags=["claim:A18"]
usual_best = train(torch.optim.Adam, 0.05, pay=(0.5, 1.0, 0.0, 0.0))
path, rare, _ = runs["Adam", 0.05]
usual = usual_best[1]
print("entropy, ε high               0.20    0.28    0.50    none")
for name, entropy in (("rare arm best", rare), ("usual arm best", usual)):
    for batch in (0, 5, 10, 40):
        row = " ".join(f"{x:7.4f}" for x in entropy[:, batch].tolist())
        print(f"{name:14s} batch {batch:2d}  {row}")
half = []                                    # entropy as p passes 1/2
for p, h, n in zip(path, rare, speed["Adam", 0.05]):
    half += [torch.lerp(h[n - 1], h[n], (0.5 - p[n-1]) / (p[n] - p[n-1]))]
print("rare arm best, at p = 1/2 ", *(f"{x:7.3f}" for x in half))
assert (rare[:, 5].diff() > 0).all()         # the wider, the more ...
assert (rare[:, 10].diff() < 0).all()        # ... and the less
assert rare[:, 40].max() < 0.003 and max(half) - min(half) < 0.02
assert (usual == usual[:1]).all() and usual_best[2].sum() == 0
assert without_clip[-1] < 0.01               # and with no clip at all

# %%
settle("A18", "it depends")

# %% [markdown]
# After 5 batches the widest band has the most entropy, 0.70 against 0.29. After 10 it has the
# least, 0.18 against 0.51. It is nearly the same journey at another speed: when the rare arm passes
# ½ all four have about 0.71, and all end at 0.002. So a plot in which clip-higher "keeps entropy
# up" may be true at the step where it stops. Where the usual answer is the right one, nothing is
# ever clipped above ($1/0.97\lt1.2$) and the four runs are equal to the last bit.
#
# An exact expectation cannot *lose* an arm. The collapse that people fear, sure before the good
# answer was found, needs sampling: $G=16$ answers a batch, 200 runs per edge, the same random
# numbers for all four. *Lost*: below 0.001.

# %%
def sampled(name, lr, n=200, G=16, freeze=False):
    gen = torch.Generator().manual_seed(0)

    def draw(p):                             # share of each arm among G
        u = torch.rand(n, G, generator=gen).repeat(4, 1)
        arm = torch.searchsorted(p.cumsum(1), u).clamp(max=3)
        return torch.nn.functional.one_hot(arm, 4).double().mean(1)

    p = train(getattr(torch.optim, name), lr, batches=100, runs=n,
              draw=draw, freeze=freeze)[0].view(4, n, -1)
    for batch in (50, 100):
        yield tuple(x.sum(1).tolist() for x in
                    (p[..., batch] > 0.5, p[..., batch] < 0.001))


print("of 200 runs, ε high 0.20, 0.28, 0.50, none")
slow, fast = list(sampled("SGD", 0.2)), list(sampled("Adam", 0.05))
for name, pair in (("SGD  0.20", slow), ("Adam 0.05", fast)):
    for batch, (found, lost) in zip((50, 100), pair):
        print(f"{name} batch {batch:3d}: found", found, " lost", lost)
assert slow[0][0][1] > 1.5 * slow[0][0][0] and sum(slow[0][1]) == 0
assert len(set(fast[0][1])) == 1 and fast[0][1][0] > 30

# %% [markdown]
# With SGD, where nobody gets lost, the edge matters far more than in the exact toy: after 50
# batches 71 runs have found the arm under 0.20, 132 under 0.28; after 100, 162 and 191. With Adam
# at 0.05, 41 of 200 runs do become sure too early, and it is 41 under *every* edge: what loses the
# arm is the rise of the usual answer, which no upper edge touches. One prompt, four arms: this does
# not show that DAPO's authors saw nothing. In their figure 2 entropy stays higher with 0.28.
#
# *Who moves an arm that was never drawn?* As a control, freeze the logits of arms not drawn so far:
# they get no push. And each optimizer at other rates, edge 0.20, after 50 batches:

# %%
print("of 200 runs       found  lost  lost with the freeze")
control = {}
for name, lr in (("Adam", 0.01), ("Adam", 0.02), ("Adam", 0.05),
                 ("SGD", 1.0), ("SGD", 4.0)):
    control[name, lr] = row = []
    for freeze in (False, True):
        found, lost = next(sampled(name, lr, freeze=freeze))
        row += [found[0], lost[0]]
    print(f"{name:4s} rate {lr:4.2f} {row[0]:9d} {row[1]:5d} {row[3]:6d}")
assert control["Adam", 0.05][3] < 10 < 30 < control["Adam", 0.05][1]

# %% [markdown]
# The freeze saves nearly every run of Adam at 0.05. So from its second update on Adam had moved
# arms that no answer contained: softmax passes them a tiny push down, and Adam divides each logit's
# push by that logit's own usual size. But the rate matters as much. Adam at 0.02 and SGD at 1.0
# find the arm in about as many runs, and both lose few. SGD at 4.0 loses 24, and there the freeze
# does not help: what one arm gains, softmax takes from the others.
#
# **Clip-Cov and KL-Cov** ([2505.22617](https://arxiv.org/abs/2505.22617)) act on entropy by another
# handle: the covariance between a token's log-probability and its advantage, which drives entropy
# down (page 17). As their authors' scripts run them: Clip-Cov takes the gradient from a fraction
# 2e-4 of the tokens, drawn at random among those with covariance 1 to 5, and its ratio band is [0,
# 2] (`clip_ratio_low` = `clip_ratio_high` = 1), so the clip hardly acts. KL-Cov adds 1 · |log ρ| to
# the tokens of highest covariance, a fraction 2e-3 for the 7B model and 2e-4 for the 32B, and has
# no ratio clip. verl's defaults are another configuration: coefficient 0.1, and its usual band
# 0.2. <!-- cited: 0.1, 0.2 -->

# %% [markdown]
# ## Without the KL

# %% [markdown] tags=["cited:K11"]
# ### K11 · two distances
#
# DAPO has no reference policy. "GSPO handles that by its sequence clip, CISPO by its bounded
# weight" mixes two distances: a clip looks at the policy that *sampled*, a KL at the *reference*,
# which may be thousands of steps away. Neither is a KL term. GSPO's paper
# ([2507.18071](https://arxiv.org/abs/2507.18071)) leaves the KL out of its formulas for brevity,
# and some public recipes run it with a small β.

# %% [markdown]
# ### K13 · too strong, too weak
#
# GRPO's z-score, the exact gradient, minus β times the KL to the start. First 0.01 right and a
# reward without a hole. Then a reward *with* one: 0.09 right pays 1, an exploit of 0.01 pays 1.5.

# %%
statement("K13")

# %% tags=["claim:K13"]
def ascend(pay, start, beta, steps=1000, lr=0.5):
    ref, pay, path = torch.tensor(start).log(), torch.tensor(pay), []
    theta = ref.clone()
    for _ in range(steps + 1):
        p = theta.softmax(0)
        A = pay - p @ pay
        A = A / ((p @ A**2).sqrt() + 1e-6)
        far = p.log() - ref                            # from the start
        theta = theta + lr * p * (A - beta * (far - p @ far))
        path.append(p)
    return torch.stack(path)

ends, needed = {}, {}
print("β      right   steps to 0.9    with a hole: right  exploit")
for beta in (0, 0.04, 0.1, 0.3, 0.7, 1):
    right = ascend((0.0, 1.0), (0.99, 0.01), beta)[:, 1]
    hole = ascend((0.0, 1.0, 1.5), (0.9, 0.09, 0.01), beta)[-1]
    needed[beta] = (right < 0.9).sum().item() if right[-1] > 0.9 else None
    ends[beta] = [round(x.item(), 2) for x in (right[-1], *hole[1:])]
    right, good, bad = (f"{x:.2f}" for x in ends[beta])
    print(f"{beta:<5}   {right}   {needed[beta] or 'never':>7}"
          f"                      {good}     {bad}")
assert list(needed.values()) == [26, 27, 29, 44, None, None]
assert ends[0.3] == [1, 0, 1] and ends[0.7] == [0.23, 0.45, 0.17]

# %%
settle("K13", "true")

# %% [markdown]
# At β = 0.7 the right answer stays at 0.23; and only at such a strength is the exploit held off. At
# GRPO's 0.04 the KL costs one step of 26 and protects from nothing. What it surely saves is the
# reference model. So dropping it costs little *where the reward is a checker without a hole*; where
# it is a learned model, see page 16.

# %% [markdown]
# ## Dynamic sampling

# %% [markdown]
# ### G29 · the batch stays full
#
# Merely dropping the silent groups leaves a smaller batch; drawing replacements keeps it full. The
# bill is in the last columns.

# %%
statement("G29")

# %% tags=["claim:G29"]
G = 16
print("                                                answers per kept")
print("    p   silent   512 groups leave  drawn per kept    G = 16  G = 64")
for p in (0.01, 0.1, 0.5, 0.9, 0.99):
    P = mixed(p, G)
    tries = sum(n * P * (1 - P)**(n - 1) for n in range(1, 2000))
    assert abs(tries - 1 / P) < 1e-6
    print(f"{p:5.2f}  {1 - P:.5f}        {512 * P:5.1f}           "
          f"{1 / P:5.2f}          {G / P:6.1f}  {64 / mixed(p, 64):6.1f}")
silent = [1 - mixed(p, G) for p in (0.01, 0.5, 0.99)]
assert [round(x, 5) for x in silent] == [0.85146, 0.00003, 0.85146]
assert round(1 / mixed(0.01, G), 1) == 6.7

# %%
settle("G29", "true")

# %% [markdown]
# If all prompts are at $p=0.01$, a kept group costs 6.7 groups, 108 answers. A bigger $G$ does not
# lower that bill, about $1/p=100$ answers: for small $p$ we have $P\approx Gp$.
#
# **Against filtering and retirement.** A pool holds prompts of seven difficulties, equally many of
# each, one hopeless ($p=0$), one solved ($p=1$). *Filtering* trains on the mixed groups that happen
# to come. *Retirement* takes prompts that stay solved, or never succeed, out of the pool: they are
# not even generated. Here by an oracle, which knows $p$.

# %%
pool = torch.tensor([0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0])
retired = pool[(pool > 0) & (pool < 1)]
print("512 groups a step            generated    live   generated per live")
for name, prompts, refill in (
        ("keep all, or filter", pool, False),
        ("refill (dynamic sampling)", pool, True),
        ("retire (oracle)", retired, False),
        ("retire and refill", retired, True)):
    P = mixed(prompts, G).mean()
    generated = 512 / P if refill else torch.tensor(512.0)
    live = generated * P                               # mixed groups
    print(f"{name:28s} {generated:8.0f} {live:8.0f}   "
          f"{generated / live:10.2f}")
    assert generated / live > (2 if prompts is pool else 1.7)
share = mixed(pool, G) / mixed(pool, G).sum()
print("share of the batch by p: ", *(f"{x:.3f}" for x in share))
assert abs(share.sum() - 1) < 1e-12 and share[3] > 6 * share[1]

# %% [markdown]
# *Keeping all* and *filtering* train on the same 214 live groups: a silent group has no gradient,
# and leaving it out only changes the divisor. *Refilling* has 512 live groups for 2.4 times the
# generation: a larger batch at the old price per live group. Of these three only *retirement*
# lowers the price, from 2.39 groups to 1.71. But nobody knows $p=0$. A hard prompt looks hopeless
# for long:

# %%
for n in (16, 64, 160):
    print(f"p = 0.01, {n:3d} answers, all wrong: {0.99**n:.2f}")

# %% [markdown]
# Retired on such evidence, the hard but possible prompts go first, the answers spent on finding out
# are not in the bill, and a retired prompt that is unlearned goes unnoticed.
#
# The batch is no longer a sample of the pool. Prompts enter in proportion to $P$: at $p=0.5$ almost
# seven times as often as at 0.01. And the reward curve changes its meaning:

# %%
print("   p   mean reward of all groups   of the kept, G = 8")
for p in (0.01, 0.1, 0.5, 0.9, 0.95):
    kept = (p - p**8) / mixed(p, 8)       # E[mean reward; mixed] / P
    print(f"{p:5.2f}          {p:.4f}                  {kept:.4f}")
assert round((0.95 - 0.95**8) / mixed(0.95, 8), 4) == 0.8514

# %% [markdown]
# The kept groups are pulled to the middle. Logged after the filter, a policy at 0.95 reads 0.85 and
# one at 0.01 reads 0.13. Log the pass rate before.
#
# If every prompt is hopeless the loop never ends. verl lets you cap the rounds
# (`algorithm.filter_groups.max_num_gen_batches`): 0, the default, is no cap, and at the cap it
# raises an error.
#
# **Counted in answers, on a transformer.** The recorded 0.3M model, steps of 8 × 8 answers, with
# refilling and without, learning rate 3e-4; held-out pass@1 (start 0.37) at the evaluation nearest
# to so many answers, three seeds. The lesson has four learning rates. <!-- cited: 0.37 -->

# %%
def about(run, answers, every):
    """pass@1 of each seed at its evaluation nearest to `answers`."""
    out = []
    for seed in range(3):
        made = curve(run, seed, "generated").cumsum()[every - 1::every]
        step = every * (1 + int(abs(made - answers).argmin()))
        out.append(final(run, step=step)[seed])
    return out

for answers in (1280, 2560):
    plain = final("chain_stale_0", step=answers // 64)
    refilled = about("chain_refill", answers, 4)
    print(f"{answers} answers: plain", *(f"{x:.2f}" for x in plain),
          "  refilled", *(f"{x:.2f}" for x in refilled))
    assert max(refilled) < min(plain)

# %% [markdown]
# Refilling loses at both counts, in every seed. Here most groups are mixed anyway, so it buys full
# batches with fewer updates. Whether it pays where most groups
# are dead, or where generating is cheap, this run does not test.
#
# ### G27 · the band from 0.2 to 0.8
#
# DAPO drops 0 of $G$ and $G$ of $G$ and nothing else.

# %%
statement("G27")

# %% tags=["claim:G27"]
def kept_by_band(p, G, low, high):
    return sum(comb(G, k) * p**k * (1 - p)**(G - k) for k in range(G + 1)
               if low <= k / G <= high)


print("    p   DAPO's rule   band 0.2 to 0.8: on the group's rate   on p")
for p in (0.05, 0.2, 0.5, 0.9):
    print(f"{p:5.2f}     {mixed(p, 16):.4f}                 "
          f"{kept_by_band(p, 16, 0.2, 0.8):.4f}                   "
          f"{mixed(p, 16) * (0.2 <= p <= 0.8):.4f}")
    loosest = kept_by_band(p, 16, 1 / 16, 15 / 16)
    assert abs(loosest - mixed(p, 16)) < 1e-12
assert round(mixed(0.05, 16), 3) == 0.560
assert round(kept_by_band(0.05, 16, 0.2, 0.8), 3) == 0.007

# %%
settle("G27", "false")

# %% [markdown]
# At $p=0.05$ DAPO keeps 56 % of the groups, the band on the group's own rate 0.7 %. Most who use a
# band estimate $p$ from many answers beforehand (last column): all at 0.2, none at 0.05.

# %% [markdown]
# ## The token mean, printed and coded

# %% [markdown]
# ### M02 · over tokens or over prompts
#
# *Which* tokens share the divisor is where the paper and the popular code part. As printed, the
# divisor is inside the expectation over prompts:
#
# $$\text{printed: }\ \frac1N\sum_{n=1}^{N}\frac{1}{\sum_{i\in n}T_i}\sum_{i\in n}\sum_t(\cdot)\qquad\qquad
# \text{TRL, verl: }\ \frac{1}{\sum_{j}T_j}\sum_{j}\sum_t(\cdot)$$
#
# with $N$ prompts, $n$ one of them; $j$ runs over TRL's whole generation batch, over verl's
# mini-batch. ScaleRL ([2510.13786](https://arxiv.org/abs/2510.13786), section 3.2) calls its rule
# the prompt average and refers to DAPO for it. The whole loss, both ways:

# %%
def dapo_loss(logprobs, old_logprobs, mask, rewards, num_generations,
              low=0.2, high=0.28, printed=False, eps=1e-6):
    mask = mask.bool()                                 # (B, T)
    lp, old = (torch.where(mask, x, 0.0) for x in (logprobs, old_logprobs))
    r = rewards.view(-1, num_generations)              # (N, G)
    A = r - r.mean(1, keepdim=True)
    A = A / (r.std(1, keepdim=True, correction=0) + eps)
    A = A.view(-1, 1)                                  # (B, 1)

    rho = (lp - old).exp()                             # (B, T)
    clipped = rho.clamp(1 - low, 1 + high)             # clip-higher
    worth = torch.minimum(rho * A, clipped * A)
    worth = torch.where(mask, worth, 0.0)
    if not printed:
        return -worth.sum() / mask.sum()               # token mean
    rows = num_generations * mask.shape[1]             # numbers per prompt
    total = worth.view(-1, rows).sum(1)
    return -(total / mask.view(-1, rows).sum(1)).mean()       # prompt mean

# %%
statement("M02")

# %% tags=["claim:M02"]
b = running_batch()
print("tokens of the two prompts:",
      b.completion_mask.view(2, -1).sum(1).int().tolist())
for printed, theirs in ((False, dapo),
                        (True, dapo.replace(weights=prompt_mean))):
    mine = dapo_loss(b.logprobs, b.old_logprobs, b.completion_mask,
                     b.rewards, 4, printed=printed)
    out = theirs(b)
    c = out.weights[:, 0]
    print("printed" if printed else "code   ", f"loss {mine:.6f}, tokens"
          f" of prompt 0: 1/{1 / c[0]:.0f}, of prompt 1: 1/{1 / c[4]:.0f}")
    assert abs(mine - out.loss) < 1e-12
    g, g_theirs = (torch.autograd.grad(loss, b.logprobs)[0]
                   for loss in (mine, out.loss))
    assert torch.allclose(g, g_theirs, atol=1e-12)
    per_token = [1 / 32, 1 / 28] if printed else [1 / 30, 1 / 30]
    assert torch.allclose(c[[0, 4]], torch.tensor(per_token))

# %%
settle("M02", "false")

# %% [markdown]
# The weights differ by 7 %; the loss, a small sum of terms that cancel, by a factor of three. Let
# one prompt need 100 tokens in all and another 1000: printed, a token of the first weighs $1/200$
# and of the second $1/2000$, ten times less; in the code both weigh $1/1100$. When a paper says
# "token-level as in DAPO", ask which. What each does to the length of answers is page 10.
#
# The same for one group of the batch (rewards 1 0 0 0, lengths 4 1 7 2), both prompts in the batch,
# fresh data: the advantage of each answer, and below it what one of its tokens weighs, $c\cdot A$.

# %%
for name, objective in (
        ("grpo", grpo.replace(terms=())), ("dapo", dapo),
        ("printed", dapo.replace(weights=prompt_mean))):
    out = objective(fresh)
    A, c = out.advantages[4:, 0], out.weights[4:, 0]
    print(f"{name:8s} A {four(A)}\n{'':7s} cA {four(c * A)}")

# %% [markdown]
# One advantage, three weights: GRPO's by the answer's own length, DAPO's by the 30 tokens of the
# batch, the printed one's by the 14 of this prompt, twice.

# %% [markdown]
# ## Overlong answers

# %% [markdown]
# ### L14 · a soft penalty
#
# DAPO's *soft overlong punishment* adds to the reward, for an answer of $T$ tokens and a cache of
# $L_c$ (the third case cannot be generated; it guards the formula):
#
# $$R_\text{len}(T)=\begin{cases}0&T\le L_\text{max}-L_c\\[2pt]
# \dfrac{(L_\text{max}-L_c)-T}{L_c}&L_\text{max}-L_c\lt T\le L_\text{max}\\[2pt] -1&T>L_\text{max}\end{cases}$$

# %%
statement("L14")

# %% tags=["claim:L14"]
lengths = torch.tensor([12000.0, 16384, 17408, 18432, 20480])
for T, r in zip(lengths, penalty(lengths)):
    print(f"T = {T:5.0f}: {r:+.2f}")
assert penalty(lengths).tolist() == [0, 0, -0.25, -0.5, -1]
ramp = penalty(torch.arange(16384.0, 20481.0))
assert torch.allclose(ramp.diff(), torch.tensor(-1 / 4096))
assert penalty(torch.arange(16385.0)).abs().max() == 0

# %%
settle("L14", "true")

# %%
need = torch.arange(14000.0, 22001.0, 10)
cut_off = need > 20480                                 # rewards are +1, -1
line_figure(
    need, {"with the penalty": torch.where(cut_off, -2, 1 + penalty(need)),
           "without": torch.where(cut_off, -1.0, 1.0)},
    xlabel="tokens that a right answer needs", ylabel="its reward",
    ylim=(-2.2, 1.2), size=(900, 280),
    alt="Reward of a right answer against the tokens it needs. Without the "
        "penalty +1 up to 20480 and -1 above. With it +1 up to 16384, a "
        "straight line to 0 at 20480, and -2 above, where it is cut.",
    caption="Without the penalty only cut answers are told that they were "
            "long; with it, those that finish in the last 4096 tokens, "
            "too. A formula: no run, no seed.")

# %% [markdown]
# A cut answer pays twice, $-1-1=-2$. And since the penalty is a *reward*, the group's z-score sees
# it. The running group with limit 6 and cache 4, lengths 3, 5, 2, 6, without and with it; then an
# all-wrong group in the paper's numbers, one answer a single token over the edge.

# %%
def advantages(rewards):
    return dapo(running_group().replace(rewards=rewards)).advantages[:, 0]


short = overlong(6, cache=4).penalty(group.lengths)
for name, r in (
        ("no penalty", group.rewards),
        ("with penalty", group.rewards + short),
        ("all wrong, one at 16385", penalty(
            torch.tensor([16000.0, 16385, 15000, 9000])))):
    print(f"{name:23s} rewards", *(f"{x:7.4f}" for x in r),
          "  A", *(f"{x:7.4f}" for x in advantages(r)))
A = advantages(penalty(torch.tensor([16000.0, 16385, 15000, 9000])))
assert (A - torch.tensor([1, -3, 1, 1]) / 3**0.5).abs().max() < 0.02
assert round(A[1].item(), 2) == -1.72
sixteen = penalty(torch.tensor([16385.0] + [9000] * 15))
z = (sixteen - sixteen.mean()) / (sixteen.std(correction=0) + 1e-6)
print(f"the same among 16: {z[0]:.2f}")
assert round(z[0].item(), 2) == -3.81

# %% [markdown]
# The mixed group is what a correct DAPO run sees: the right answer of 5 tokens falls from 1.00 to
# 0.39, the right one of 3 rises to 1.18. Length counts among the right answers, and an answer gains
# nothing below the edge.
#
# The all-wrong group is the trap of the lesson: $-0.0002$ becomes $-1.72$, among sixteen $-3.81$.
# Published DAPO never sees it, since it keeps groups by right and wrong. In verl that is a switch:
# `filter_groups.metric: acc` is safe, `seq_reward` and `seq_final_reward` contain the penalty.
#
# How much may length cost? DAPO's rewards are +1 and −1:

# %%
for right, wrong in ((1.0, -1.0), (1.0, 0.0)):
    longest = right + penalty(torch.tensor(20480.0))
    print(f"rewards {right:+.0f} / {wrong:+.0f}: right at the limit "
          f"{longest:+.1f}, wrong and short {wrong:+.1f}")
    assert (longest > wrong) == (wrong == -1.0)

# %% [markdown]
# With ±1 a right answer always beats a wrong one. With 1 and 0, copied without thinking, the right
# answer at the limit *ties* with a short wrong one.
#
# **Overlong filtering** (section 3.4, the first step of Table 1) gives a cut answer mask 0: it
# trains nothing. It still counts in its group's mean and std. verl's recipe says that most runs of
# the paper, the best included, go without it. Answer 3 of the running group is cut off:

# %%
mask = group.completion_mask.clone()
mask[3] = 0
for name, m in (("all four", group.completion_mask), ("3 filtered", mask)):
    out = dapo(group.replace(completion_mask=m, old_logprobs=None))
    up, down = ((m * (s * out.advantages > 0)).sum().item()
                for s in (1, -1))
    print(f"{name:11s} A", *(f"{x:7.4f}" for x in out.advantages[:, 0]),
          f"  tokens pushed up {up:.0f}, down {down:.0f}, each with weight"
          f" 1/{1 / out.weights[0, 0]:.0f}")
assert (up, down) == (8, 2)

# %% [markdown]
# Eight tokens up against eight down become eight against two. Nothing pushes long answers down any
# more, so filter and penalty are different policies about length.
#
# **The penalty is a reward, not a cap.** The `pick` task of page 09, where restating is free: Dr.
# GRPO, DAPO's token mean, and Dr. GRPO with the penalty from token 36 to 72. Mean length over steps
# 71 to 80, right / wrong answers, three seeds, recorded on a CPU:

# %%
for label, run in (("constant", "pick_dr_grpo"),
                   ("token mean", "pick_dapo"),
                   ("penalty", "pick_overlong")):
    ends = [[np.nanmean(curve(run, seed, f"completions/mean_length_{kind}")
                        [70:80]) for kind in ("right", "wrong")]
            for seed in range(3)]
    print(f"{label:11s}", "   ".join(f"{r:.1f} / {w:.1f}" for r, w in ends))
    assert label != "penalty" or max(map(max, ends)) < 16

# %% [markdown]
# The shortest possible answer has 13 tokens. Almost nobody was near 36, and still every seed goes
# to the floor; without a penalty one seed of three does. Wrong answers end at most 5 tokens above
# right ones with the token mean; GRPO's $1/T$ drove them 50 apart in every seed.
#
# ## In the libraries
#
# **"Set ε_high to 1.28."** It is a distance from 1: `clip(0.2, high=1.28)` is a band up to
# 2.28, <!-- cited: 2.28 --> and it runs without a word. For CISPO, TRL 1.16 reads the same keyword
# `epsilon_high` as the ratio itself, so look twice.
#
# **"`loss_type="dapo"` runs DAPO."** In TRL it is one of the four: the aggregation. The edge
# (`epsilon_high`), the penalty (a reward function) and the masking of cut answers are switches of
# their own, and dynamic sampling is not there. The other way round, TRL's default `loss_type` *is*
# `"dapo"`, so a run that is called GRPO may have it.

# %%
by_word = from_trl(loss_type="dapo", beta=0.0).objective
print(difference(dapo.canonical(), by_word.canonical()))
assert by_word.canonical() == narrow.canonical()

# %% [markdown]
# ## The overlong penalty, yourself
#
# For any limit and any last stretch (`cache`), without looking: which share of the cache is used
# up? A share lies between 0 and 1.

# %% tags=["exercise"]
def my_overlong_penalty(lengths, max_length, cache):
    """lengths (B,), two whole numbers -> (B,)"""
    return ...

check.overlong_penalty(my_overlong_penalty)

# %% [markdown]
# ## Name this method
#
# A colleague's loss, prompts × answers × tokens. Which published method is it?
#
#     def loss(ratio, rewards, mask):        # (N, G, T), (N, G), (N, G, T)
#         A = rewards - rewards.mean(1, keepdim=True)
#         A = (A / (rewards.std(1, keepdim=True) + 1e-6)).unsqueeze(-1)
#         worth = torch.minimum(ratio * A, ratio.clamp(0.8, 1.28) * A)
#         share = (worth * mask).sum((1, 2)) / mask.sum((1, 2))
#         return -share.mean()

# %% tags=["exercise"]
check.name_this_dapo("")
