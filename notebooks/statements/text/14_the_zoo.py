# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 14 · statements: the zoo
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the long tables, the race, the labs' losses and the proposals that the
# lesson, [14 · the zoo](../14_the_zoo.ipynb), leaves out.

# %% tags=["setup"]
from math import isclose, log
import numpy as np
import torch
from rlnb import ZOO, check, from_trl, to_trl
from rlnb.classroom import explorers
from rlnb.classroom.figures import line_figure
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures.method_table import methods_table, notes_table
from rlnb.objective import (ANNEX, Batch, batch_zscore, clip, difference,
                            engine_ratio, length_preference, max_rl,
                            mgpo_weight, sequence_mask, token)
from rlnb.toys import (Bandit, Sigmoid, ceiling_error, expected_gradient,
                       expected_reward, fit_sigmoids, running_batch,
                       true_gradient)
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Which prompts count

# %% [markdown]
# ### Z18 · MaxRL and pass@k
#
# A prompt solved with probability $p$ pulls on the shared weights with $w(p)\,\nabla p$.
# MaxRL, for rewards of 0 and 1, divides by the *mean*:
#
# $$A_i=\frac{R_i-\bar R}{\bar R},\qquad \log p=-\sum_{k\ge1}\frac{(1-p)^k}{k}=\sum_{k\ge1}\frac{\text{pass@}k-1}{k},\qquad \nabla\log p=\frac1p\nabla p$$
#
# $\text{pass@}k=1-(1-p)^k$ is the chance that one of $k$ answers is right. Which of them does a
# group of $G$ really contain? All groups of a bandit, enumerated:

# %%
statement("Z18")

# %% tags=["claim:Z18"]
series = -sum(0.7**k / k for k in range(1, 201))       # log p at p = 0.3
assert abs(series - log(0.3)) < 1e-10

policy, right = Bandit([0.0, 1.0, 0.5, -1.0]), [1.0, 0.0, 0.0, 1.0]
print("    G   all-wrong group gets   terms k   w(p)      1/p")
for G in (2, 4, 8):
    for what, A, terms in (("zero", 0, G - 1), ("minus_one", -1, G)):
        maxrl = ZOO["maxrl"].replace(advantage=max_rl(no_success=what))
        mean = expected_gradient(policy, right, maxrl, G)
        p = expected_reward(policy, right)
        passes = sum((1 - (1 - p)**k) / k for k in range(1, terms + 1))
        wanted, = torch.autograd.grad(passes, policy.logits)
        w = (1 - (1 - p.item())**terms) / p.item()
        print(f"{G:5d}   {A:12d}           1 to {terms}  {w:7.4f}"
              f"  {1 / p.item():7.4f}")
        assert (mean - wanted).abs().max() < 1e-12
        assert (mean - w * true_gradient(policy, right)).abs().max() < 1e-12

# %%
settle("Z18", "it depends")

# %% [markdown]
# **The mean of MaxRL's update with $G$ answers is the gradient of
# $\sum_{k=1}^{G-1}\text{pass@}k/k$**, to machine precision, where an all-wrong group gets 0. Where
# it gets $-1$ for every answer (the mean score is subtracted there, too), the sum goes up to $k=G$.
# In both the weight is $(1-(1-p)^n)/p$, with $n=G-1$ or $G$: almost $1/p$ once $np\gg1$, and never
# above $n$. Two conventions, and they differ by one term (the last section). At $G=2$ with zeros
# MaxRL is pass@1, plain policy gradient.
#
# How much faster it solves things is the paper's to say
# ([2602.02710](https://arxiv.org/abs/2602.02710)); the factor in circulation changed between
# versions.

# %% [markdown]
# ### E10 · MGPO and the even prompt

# %% [markdown]
# MGPO keeps GRPO's z-score and multiplies by $e^{-\lambda D}$, where
# $D=\mathrm{KL}(p\,\|\,\tfrac12)$ in nats. "It gives more weight to prompts near one half." The
# factor does. What trains is its product with $1/\sigma$, both taken from the $K$ right answers of
# a group. Averaged over $K$, exactly, for $G=16$:

# %%
SIZE = 16                                              # K = 0 to 16 right
outcomes = (torch.arange(SIZE) < torch.arange(SIZE + 1)[:, None]).double()
flat = torch.zeros(outcomes.numel(), 1)
groups = Batch(flat, flat + 1, outcomes.flatten(), SIZE,
               old_logprobs=flat, max_completion_length=1)
adv = {
    name: m.replace(terms=())(groups).advantages.view(SIZE + 1, SIZE)
    for name, m in {
         "Dr. GRPO": ZOO["dr_grpo"], "GRPO": ZOO["grpo"],
         "MaxRL": ZOO["maxrl"],
         "MGPO λ=1": ZOO["mgpo"].replace(credit=mgpo_weight(1.0)),
         "MGPO λ=4": ZOO["mgpo"].replace(credit=mgpo_weight(4.0))}.items()}


def weight(name, p):                                   # w in w(p) grad p
    chance = torch.distributions.Binomial(SIZE, p).log_prob(
        torch.arange(SIZE + 1.0)).exp()
    score = torch.where(outcomes > 0, 1 / p, -1 / (1 - p))
    return (chance * (adv[name] * score).mean(1)).sum().item()

# %%
statement("E10")

# %% tags=["claim:E10"]
print("    p    factor λ=1   λ=4       G=16:", "  ".join(adv))
seen = {}
for p in torch.tensor([0.02, 0.1, 0.5, 0.9]):
    factor = [mgpo_weight(x).of(p).item() for x in (1, 4)]
    seen[round(p.item(), 2)] = [round(x, 2) for x in factor] + [
        round(weight(name, p), 2) for name in adv]
    print(f"{p:5.2f}   {factor[0]:10.2f}  {factor[1]:4.2f}", " " * 12,
          *(f"{weight(name, p):7.2f}" for name in adv))
assert seen[0.02][:2] == [0.55, 0.09] and seen[0.5][:2] == [1, 1]
assert seen[0.02][5] > 1.2 * seen[0.5][5]              # λ = 1: 1/σ wins
assert seen[0.02][6] < 0.5 * seen[0.5][6]              # λ = 4: the middle

# %%
settle("E10", "true")

# %% [markdown]
# At λ = 1 a prompt at 0.02 still weighs 1.25 times the even one: the std underneath pulls the other
# way and wins. (For $G\to\infty$ twice, $7.14\cdot0.55=3.94$ against 2.) At λ = 4, this course's
# number since the paper's is not verified here, the middle wins. So say the λ, and the $G$. (Dr.
# GRPO's 0.94 is 15/16: an answer is part of its own mean.)

# %%
ps = torch.linspace(0.01, 0.99, 99)
curves = {name: torch.tensor([weight(name, p) for p in ps])
          for name in adv if name != "MGPO λ=1"}
line_figure(
    ps, curves, xlabel="pass rate p of the prompt",
    ylabel="weight w(p) on ∇p", ylim=(0, 15), size=(900, 300),
    alt="Weight of a prompt against its pass rate, groups of 16. Dr. GRPO "
        "is 0.94 everywhere. GRPO is 1.9 at one half and 3.7 at 0.01 and "
        "0.99. MaxRL falls from 14 at 0.01 to 1 at 0.99. MGPO with "
        "strength 4 is 1.7 at one half and below 0.7 at both ends.",
    caption="Groups of 16. GRPO's std lifts both ends alike, MaxRL's mean "
            "only the hard one, MGPO at λ = 4 lowers both. Exact: no seed.")

# %% [markdown]
# ### Z24 · one σ or none

# %% [markdown]
# ScaleRL's box read quickly. *Whose* σ is the real question: of the centred rewards, or of the raw
# ones, which also contain the difference between prompts?

# %%
statement("Z24")

# %% tags=["claim:Z24"]
r = torch.tensor([1.0, 0, 0, 0, 1, 1, 1, 0])           # pass rates 1/4, 3/4
one = torch.zeros(8, 1)
eight = Batch(one, torch.ones(8, 1), r, 4)
first = {}
for name, part in (
        ("centred, population (ScaleRL)", ZOO["scalerl"].advantage),
        ("centred, Bessel", batch_zscore("group", "bessel", of="centred")),
        ("raw, population", batch_zscore("group")),
        ("raw, Bessel (TRL)", batch_zscore("group", "bessel", 1e-4)),
        ("no σ at all", ZOO["dr_grpo"].advantage)):
    A = part(eight, r[:, None])[:4, 0].tolist()
    first[name] = A
    print(f"{name:30s}", *(f"{x:9.6f}" for x in A[:2]))
centred, bessel, raw, trl, none = (x[0] for x in first.values())
assert abs(centred - 3**0.5) < 1e-5 and abs(raw - 1.5) < 1e-5
assert abs(bessel - 1.620185) < 1e-5 and abs(trl - 1.402859) < 1e-6
assert none == 0.75
print(f"raw against centred: {raw / centred:.2f}")

# %%
settle("Z24", "it depends")

# %% [markdown]
# With σ of the centred rewards the advantages have size 1 whatever the mix of prompts. With σ of
# the raw ones they shrink as easy and hard prompts are mixed, here to 0.87 of that (1.5 of 1.73);
# Bessel's correction on 8 answers takes the rest.

# %% [markdown]
# ## ScaleRL: a recipe and a curve

# %% [markdown]
# ScaleRL is CISPO with three changes in the loss. TRL 1.16 has the cap and one σ for the batch, but
# of the raw rewards, and neither the mean per prompt nor the engine's ratio:

# %%
print("from CISPO to ScaleRL:")
print(difference(ZOO["cispo"], ZOO["scalerl"]))
in_trl = from_trl(loss_type="cispo", epsilon_high=5.0,
                  scale_rewards="batch", beta=0.0).objective
print("\nfrom TRL's nearest words to ScaleRL:")
print(difference(in_trl.canonical(), ZOO["scalerl"]))

# %% [markdown] tags=["cited:H08"]
# ### H08 · outside the loss
#
# As reported ([2510.13786](https://arxiv.org/abs/2510.13786)): the sampler runs
# up to 8 steps ahead; logits in float32; groups of equal rewards are left out; a prompt whose pass
# rate has reached 0.9 leaves for good; long thoughts are cut by an inserted phrase. Over 400,000
# GPU hours went into the comparison, and a run of 100,000 hours was predicted from its first half,
# less the first 1,500 or so. The prediction is a fit of
#
# $$R(C)=R_0+\frac{A-R_0}{1+(C_\text{mid}/C)^B}$$
#
# reward $R$ (a pass rate) against compute $C$: $A$ the ceiling (not an advantage here), $R_0$ the
# start, $C_\text{mid}$ the compute at half of the gain, $B$ how steep. Two identities to know it
# by:

# %%
curve = Sigmoid(ceiling=0.6, exponent=1.5, midpoint=20.0, start=0.1)
print(f"R(C_mid) = {curve(20.0):.4f}, (A + R0)/2 = {(0.6 + 0.1) / 2:.4f}")
odds = [log((curve(c) - 0.1) / (0.6 - curve(c))) for c in (5.0, 50.0)]
slope = (odds[1] - odds[0]) / log(50 / 5)
print(f"slope of ln[(R - R0)/(A - R)] over ln C = {slope:.4f} = B")
assert isclose(curve(20.0), 0.35) and isclose(slope, 1.5)

# %% [markdown]
# ### Z25 · reading the ceiling off an early part

# %% [markdown]
# Fitting is easy: for given $B$ and $C_\text{mid}$ the curve is a straight line in $R_0$ and $A$,
# which least squares gives, so only two numbers are searched. The question is what the fit *knows*.
# Below, the true curve is an exact sigmoid with ceiling 0.60, evaluated 100 times on the way to
# 100,000 GPU hours, each time with noise.
#
# Guess, then move: at 22 % of the compute (61 % of the ceiling reached, the midpoint at 20 % just
# behind), how far apart are the ceilings of 24 runs? What does a noise of 0.002 instead of 0.01
# buy?

# %% tags=["explorer"]
explorers.scaling_fit_explorer()

# %%
statement("Z25")

# %% tags=["claim:Z25"]
hours = np.arange(1.0, 101.0)                          # thousands
draws = np.random.default_rng(0).standard_normal((200, 100))
spread = {}
print("         in mid-  of the    noise 0.01:                     0.002:")
print("  seen   points   ceiling   fitted        5 %  95 %  theory fitted")
for n in (12, 20, 25, 40, 50, 80):
    c, row = hours[:n], []
    for noise in (0.01, 0.002):
        ceiling = fit_sigmoids(c, curve(c) + noise * draws[:, :n])[:, 0]
        row += [(ceiling.mean(), ceiling.std(),
                 *np.quantile(ceiling, (0.05, 0.95)))]
    (mean, sd, low, high), (_, sd2, *_) = row
    spread[n], theory = (sd, sd2), ceiling_error(c, curve, 0.01)
    print(f"  {n:3d} %   {n / 20:4.2f}     {curve(n) / 0.6:4.0%}"
          f"     {mean:.2f} ± {sd:.3f}  {low:.2f}  {high:.2f}"
          f"   {theory:.3f}  ± {sd2:.3f}")
early = Sigmoid(ceiling=0.6, exponent=1.5, midpoint=5.0, start=0.1)
print("midpoint at 5 % instead, theory:", *(
    f"{n} % ± {ceiling_error(hours[:n], early, 0.01):.3f}"
    for n in (12, 25, 50)))
assert spread[12][0] > 0.25 and spread[12][1] > 0.1
assert spread[25][0] > 0.1 and spread[40][0] < 0.05
assert spread[80][0] < 0.012

# %%
settle("Z25", "it depends")

# %% [markdown]
# Count in midpoints. Before the first hardly anything is known: at 12 % the middle nine tenths of
# the fits run from 0.28 to 1, where they stop only because they are not allowed past it (the theory
# has no such bound: 0.95). At the midpoint ± 0.21, at twice ± 0.035, at four times ± 0.01. Where no
# fit hits the bound, from twice the midpoint on, a fifth of the noise buys a fifth of the error; at
# 12 % it buys 0.31 → 0.19. The share of the compute says little by itself: with the midpoint at 5
# %, the first quarter gives ± 0.014.
#
# What the toy cannot say: whether *your* curve is a sigmoid. All this is the error when the form is
# exactly right, for 100 evaluations with independent noise (four times as many halve it).

# %% [markdown]
# ## Reported, not decided

# %% [markdown] tags=["cited:H10"]
# ### H10 · RL without a critic
#
# **"RL with verifiable rewards does without a critic."** Most recipes do. The work that coined the
# name, Tülu 3 ([2411.15124](https://arxiv.org/abs/2411.15124)), trained with PPO and a value model;
# so did Open-Reasoner-Zero ([2503.24290](https://arxiv.org/abs/2503.24290)) and VAPO
# ([2504.05118](https://arxiv.org/abs/2504.05118)). A verifier replaces the *reward model*. The
# critic is another question.

# %% [markdown] tags=["cited:H12"]
# ### H12 · DAPO, GSPO and the KL
#
# **"DAPO and GSPO drop the KL."** The printed formulas do. DAPO
# ([2503.14476](https://arxiv.org/abs/2503.14476)) removes the KL on purpose. GSPO
# ([2507.18071](https://arxiv.org/abs/2507.18071)) leaves it out of its formulas to be short: its 1
# model is the count of the formula, not of every run.

# %% [markdown] tags=["cited:H13"]
# ### H13 · everybody has a recipe
#
# **"V3.2, V4, MiniMax M2.5 and GLM-5 each have their recipe."** As reported. V3.2's
# ([2512.02556](https://arxiv.org/abs/2512.02556)) and GLM-5's can be written down, less what was
# not printed (the table of labs below).

# %% [markdown] tags=["cited:H16"]
# ### H16 · dates in the numbers
#
# **"The usual timeline's arXiv numbers match its dates."** They do. The first four digits are year
# and month: PPO 1707.06347, DPO 2305.18290, DeepSeekMath with GRPO 2402.03300, DAPO 2503.14476,
# Dr. GRPO 2503.20783, CISPO in MiniMax-M1 2506.13585, GSPO 2507.18071, SAPO 2511.20347.

# %% [markdown] tags=["cited:M06"]
# ### M06 · what raises the ceiling
#
# **"Loss type and float32 logits raise the ceiling."** Say which ablation
# ([2510.13786](https://arxiv.org/abs/2510.13786)). Forward, switched on against a baseline: float32
# logits took the asymptote from 0.52 to 0.61. Leave-one-out, taken out of the full recipe (section
# 4): with DAPO's loss a similar asymptote, without float32 little difference on the dense 8B; with
# the filter of equal-reward groups and the curriculum a higher one than without. The abstract sums
# up that aggregation, normalisation, curriculum and off-policy method change efficiency, mostly.

# %% [markdown]
# ## The whole table

# %% [markdown]
# GRPO without its KL has no name here. And GSPO on these stale answers keeps three: wrong answers
# that became likelier. The other five have already moved the way they should, past the edge of the
# band, and every token of them is silent.
#
# `ZOO` has the methods with a page, `ANNEX` the proposals further down. Each cell is read off the
# composition and checked against what the loss does to the running batch
# (`tests/classroom/test_method_table.py`). Nine rows to know; the others open with a click.

# %%
CORE = ("reinforce", "rloo", "ppo", "grpo", "dapo", "dr_grpo",
        "gspo", "cispo", "maxrl")
methods_table(ZOO | ANNEX, first=CORE)

# %% [markdown]
# How to read it. The composer's menus are its columns: baseline = advantage and credit, trust
# region = surrogate and gate, aggregation = weights. A star marks a number that is this course's or
# a library's, not the paper's. *Cut* means: on the side where the token was being pushed; on the
# other side it lives. *To the engine*: the ratio is taken to the log-probs of the engine that
# sampled, not to the trainer's. *Sum*: over an answer's tokens, then the mean over answers;
# *constant*: that sum over one fixed length. *Per prompt* is DAPO's formula as printed, *per token*
# its popular code ([11](../11_dapo.ipynb)).
#
# *Models* counts networks whose weights the update needs: policy, reference if a KL asks for it,
# critic. $\pi_\text{old}$ is none of them: it is a stored tensor of log-probs. A learned reward
# model and the copy of the policy inside the sampler come on top. *Here*: PPO for RLHF has 4, these
# 2, the reference of its KL and the reward model; RLOO as published for RLHF, with the KL in its
# reward ([2402.14740](https://arxiv.org/abs/2402.14740)), has 3.

# %% [markdown]
# What each mends, and what that costs:

# %%
notes_table(ZOO | ANNEX, first=CORE)

# %% [markdown]
# 29 names. How many of them differ before anything has moved? On fresh answers, without KL, two
# methods are the same up to a learning rate when their gradients are proportional.

# %%


def fresh_gradient(objective):
    b = running_batch(complete=True)
    now = b.logprobs.detach()
    b = b.replace(old_logprobs=now, sampling_logprobs=now,
                  generator=torch.Generator().manual_seed(0))
    loss = objective.replace(terms=(), shape=())(b).loss
    return torch.autograd.grad(loss, b.logprobs)[0][b.mask]


families = []
for name, objective in (ZOO | ANNEX).items():
    g = fresh_gradient(objective)
    for other, names in families:
        if torch.cosine_similarity(g, other, 0) > 1 - 1e-9:
            names.append(name)
            break
    else:
        families.append((g, [name]))
print(len(ZOO | ANNEX), "names,", len(families), "directions; shared:")
for names in (n for _, n in families if len(n) > 1):
    print("  ", *names)
assert len(families) == 16

# %% [markdown]
# 16 directions per batch: at ratio 1 the surrogates of a family are one. (LUSPO's step also scales
# with the batch's mean length, so its "learning rate" moves.) The ratio and its taming are
# *off-policy* choices. With one update per rollout, in one piece, and an engine that agrees with
# the trainer, what is left to choose is baseline, credit, weights and KL. (SimKO, Clip-Cov and the
# entropy bonus act on fresh answers, too: they look at entropies, ranks and covariances.)

# %% [markdown]
# One line per direction: prompt 2 of the running batch, fresh, one right answer of four; its first
# token's $A$ and $c\cdot A$. SimKO and Clip-Cov leave DAPO's at other tokens.

# %%
b = running_batch(complete=True)
now = b.logprobs.detach()
b = b.replace(old_logprobs=now, sampling_logprobs=now,
              generator=torch.Generator().manual_seed(0))
print("                          A: right    wrong   c·A: right    wrong")
for _, (name, *others) in families:
    out = (ZOO | ANNEX)[name].replace(terms=(), shape=())(b)
    right_wrong, share = out.advantages[[4, 6], 0], out.weights[[4, 6], 0]
    cells = [f"{round(x, 4) + 0.0:8.4f}" for x in (*right_wrong.tolist(),
                        *(share * right_wrong).tolist())]
    also = f" + {len(others)}" if others else ""
    print(f"{name + also:23s}", *cells[:2], "   ", *cells[2:])

# %% [markdown]
# ## The race, all questions
#
# Stated in `data/race.json` before the first run, each with the sentences of the course that it is
# about. Three worlds. **code**: a policy of three thousand weights, 32 prompts, four words out of
# four, two right answers of 256 to each. **tail**: the first word guesses a hidden number, the
# policy reads hit or miss and chooses when to stop. **chain** and **pick**: the 0.3M models of the
# other pages. A run of the small worlds costs a fifth of a second to four, of the large ones 12 to
# 50.
#
# Every arm of a question generates equally many answers. Tuned: each arm at its own best learning
# rate of eight, chosen on five seeds that do not race. The interval is the 99 % bootstrap interval
# of the paired difference over the seeds, and
#
# * **no difference larger than $s$**: it lies within $\pm s$, the smallest effect of interest;
# * **better**, **worse** (for lengths and the like: more, less): it lies beside 0;
# * **inconclusive**: neither.
#
# With 99 % and some sixty comparisons, expect less than one false alarm.

# %%
from rlnb.classroom.pictures.race import race
from rlnb.training.errors import BadInput
from rlnb.training.studies.race.verdicts import (compared, questions,
                                                 recorded, results, verdict)

spent = 0.0
for name, asked in questions().items():
    print(f"{name} [{', '.join(asked['claims'])}] {asked['question']}")
    try:
        for found in results(name):
            print("   ", found)
        spent += recorded(name)["header"]["cpu_seconds"]
    except BadInput as error:
        print("    open:", str(error).removeprefix("race: "))
print(f"{spent / 3600:.2f} CPU hours in all, pilots and tuning included")

# %% [markdown] tags=["see:A25", "see:S12"]
# Answers $k$ updates old, all seven arms (A25, S12). CISPO's cap of 5 hardly acts here: it is "no
# clip". GSPO with a band a hundred times the paper's is ahead at both ages, DPPO at 16.

# %%
race("stale", caption="Below each other: k = 4, then k = 16. The blue "
     "arms are compared with the grey one of their k.")

# %% [markdown] tags=["see:A08", "see:A24", "see:A20"]
# The clip, and using a batch again (A08, A24, A20). The lesson's explorer shows all rates. At 2
# updates the clip's rate was the best of eight on five seeds and did much worse on the race's
# twenty: a winner's curse, and why the seeds are other ones.

# %%
race("clip", caption="Each arm at its own rate. Only at 8 updates the "
     "clip is ahead for sure.")

# %%
race("reuse", caption="1,280 answers each. 8 passes are 8 times the "
     "updates: the second view is below.")

# %% [markdown] tags=["see:B02", "see:B05"]
# A baseline (B02, B05). The spread over seeds does not change for sure. The second view, the mean,
# is a surprise: without a baseline REINFORCE ends *higher*. With rewards of 0 and 1 it only ever
# pushes right answers up. Why that is good here was not tested.

# %%
race("baseline", measure="pass@1", caption="The mean of pass@1: the second "
     "view. 20 seeds, each arm at its own rate.")

# %% [markdown] tags=["see:L01", "see:L03"]
# Lengths (L01, L03), where nobody can learn to be right and the policy sees hit or miss. The
# largest possible difference is 14.

# %%
race("length", caption="1/T: right answers stop at once, wrong ones never.")

# %% [markdown] tags=["see:L01"]
# The same with the 0.3M model of [09](../09_grpo_biases.ipynb) (pick), where the verdict is also
# written before every stop. 80 steps of 128 answers; one base, five seeds.

# %%
race("length_pick", unit="wrong minus right length, tokens",
     caption="1/T: right answers fall to the shortest, 13 tokens, and "
     "wrong ones run on towards the limit of 72.")

# %% [markdown] tags=["see:G24", "see:G16", "see:G04", "see:G05"]
# The std (G24, G16; G04, G05): it helps where prompts pay on different scales, and hurts where a
# tiny bonus is all that differs in a group.

# %%
race("std_scales", caption="Half of the prompts pay ten times as much.")

# %%
race("std_graded", measure="pass@1", caption="0.01 for every word 0: the "
     "z-score learns to write it, and forgets the task.")

# %% [markdown] tags=["see:G29", "see:G25"]
# Dynamic sampling (G29, G25), all answers counted. Every third to second group is dropped, so it
# makes half as many updates.

# %%
race("dynamic", caption="Easy base: nine groups in ten are mixed at the "
     "start. Hard base: every second.")

# %% [markdown] tags=["see:K07", "see:K13"]
# The KL (K07, K13), each β at its own rate.

# %%
race("kl", caption="β up to 0.1 does not slow this policy down; 0.04 and "
     "0.1 help. 0.4 does.")

# %% [markdown] tags=["see:Z18", "see:E01"]
# pass@16 (Z18, H09 above, E01). GRPO does not lose it here: the base has 0.87 <!-- cited: 0.87 -->.
# So "hold" was the wrong question, and MaxRL's lead is a gain.

# %%
race("passk", caption="After 6,400 answers. The vocabulary has four "
     "words, so SimKO's top three are nearly all.")

# %% [markdown] tags=["see:M06"]
# A coarser sampler (M06). Weights rounded to bfloat16 change nothing that can be seen, two bits
# hardly anything, and no correction helps. The ratio to the sampler, under the same clip, hurts.
# Whether that is the clip, which now can act before the first update, was not tested.

# %%
race("precision", caption="Mended arms are compared with the unmended two "
     "bits, coarse ones with the exact sampler.")

# %% [markdown] tags=["see:Z21", "see:S18"]
# A router (Z21, S18): 8 experts, one at work, 8 updates. Nothing is ahead for sure in 10 seeds, not
# the sequence ratio, and not a replay of the experts. [13](../13_gspo.ipynb) measures the flips
# themselves; a deep model, where one flip brings the next, was not raced.

# %%
race("router", caption="Tuned rates; the last two have no router.",
     only=[f"{name}, router" for name in ("GRPO", "GSPO wide",
                                          "GRPO with replay")]
     + ["GRPO, dense", "GSPO wide, dense"])


# %% [markdown] tags=["see:A25", "see:S12"]
# The same question with the 0.3M model of page 21 (chain, $k=4$), mean-only advantage, three rates.
# From the shipped base it seems to say what the small world says: CISPO and SAPO behind, GSPO with
# a wide band and DPPO level. But five seeds of one base, and a bootstrap of five is too narrow:
# read *worse* here as a hint, and see below what became of it.

# %%
race("stale_chain", caption="2,560 answers of the 0.3M model; pass@1 on "
     "100 held-out problems with 4 answers each.")

# %% [markdown]
# All of that started from one base, the shipped one. Two more (the same command with seeds 1 and
# 2), five runs each, asked after the first result was known:

# %%
race("stale_chain_bases", caption="As above, from two other bases in turn, "
     "with the rates tuned on the first.")

# %%
runs = recorded("stale_chain_bases")["arms"]
first = recorded("stale_chain")["arms"]
grpo = "GRPO, k = 4"
print("mean of five runs    base 0  base 1  base 2   worst of 15"
      "   all 15, against GRPO")
print("before training     ", *(f"{x:7.3f}" for x in (
    first[grpo]["start"]["pass@1"][0], *runs[grpo]["start"]["pass@1"][:2])))
passed = {name: first[name]["measures"]["pass@1"]
          + runs[name]["measures"]["pass@1"][::2]
          + runs[name]["measures"]["pass@1"][1::2] for name in first}
for name, x in passed.items():
    gap, low, high = compared(x, passed[grpo])
    means = [sum(x[k:k + 5]) / 5 for k in (0, 5, 10)]
    print(f"{name:20s}", *(f"{m:7.3f}" for m in means),
          f"{min(x):10.2f}      ",
          "" if name == grpo else f"{gap:+.3f} [{low:+.3f}, {high:+.3f}]: "
          + verdict(low, high, 0.05))

# %% [markdown]
# **The hint does not stand.** From the other bases nothing is decided, and over all fifteen runs
# nothing either. SAPO is 0.17 <!-- cited: 0.17 --> behind GRPO from base 0, and a fiftieth and a
# twentieth from the others; from base 2 it is GRPO that has the bad run. A base is one draw, as a
# seed is, and a verdict from one base is a verdict about that base: the same holds for pick above,
# where only one was run, although there the gap is 50 <!-- cited: 50 --> tokens in every seed. Seen
# and not asked: of fifteen runs each, only those of GSPO with a wide band and DPPO all end near
# 0.8 <!-- cited: 0.8 --> or above.
#
# ### The second view: compute
#
# Equal answers are one budget. Updates cost, too. The pictures of three rows again, against
# answers and against the CPU seconds of a run (the median over seeds, spread evenly over its
# answers):

# %%
from rlnb.classroom.pictures.race import two_budgets
from rlnb.training.studies.race.verdicts import results_at_equal_cpu

two_budgets({"reuse": ("1 pass", "2 passes", "4 passes", "8 passes"),
             "dynamic": ("plain, easy base", "refill, easy base"),
             "std_scales": ("mean only, Adam", "z-score, Adam")},
            caption="Left: reuse wins, refilling loses. Right, per second, "
            "both turn round. The std wins by either count.")

# %%
for name in "reuse", "dynamic", "std_scales", "clip", "stale", "kl":
    print(name)
    pairs = zip(results(name), results_at_equal_cpu(name), strict=True)
    for mine, by_cpu in pairs:
        print(f"    {mine.arm}: per answer {mine.difference:+.3f}, "
              f"{mine.verdict}; per CPU second {by_cpu.difference:+.3f}, "
              f"{by_cpu.verdict}")

# %% [markdown]
# Where one arm makes more updates of the same answers, the order turns: eight passes are ahead per
# answer and behind per second, refilled batches the other way round. Here an update is the dear
# part, for an answer has four words. In a run with answers of thousands of tokens writing them
# takes most of the time, and the left side is nearer to the bill. So a claim that reuse or a filter
# pays has to say per what.
#
# Where only the loss differs, the views mostly agree. What is decided per answer and not per
# second: GSPO's own band at $k=4$, and the KL at 0.04, whose reference costs a fifth more. The
# other way round: SAPO at $k=16$. (Seconds of such small runs are known to some 7 %, and smallest
# effects were stated for equal answers: a view, and not the race's verdict.)

# %% [markdown]
# ## What the labs ran, all rows
#
# *A*: the authors' text or code, read. *B*: a library's code or documentation. *C*: readers' notes
# that agree. A number that was not printed is named; the zoo's stands in for it. First what models
# were trained with, then methods as their authors' scripts run them.

# %%
from rlnb.interop.labs import LABS, NO_ROW, lab

for row in LABS:
    print(f"{row.who} [{row.letter}] {row.source}")
    if row.objective is None:
        print("    no composition:", row.why_not)
    else:
        near = ((ZOO | ANNEX).get(row.near)
                or lab(row.near).objective)
        apart = list(difference(near, row.objective))
        print(f"    {row.near}" + (" with" if apart else ", as it stands"),
              *apart, sep="\n        ")
    if row.unknown:
        print("    not printed:", ", ".join(row.unknown))
    if row.outside:
        print("    outside the loss:", row.outside)
print("\nno row:")
for who, why in NO_ROW.items():
    print(f"    {who}: {why}")

# %% [markdown]
# **The square of Kimi k1.5, by hand.** No menu has it. The form has room for it all the same: let a
# ratio per answer put $\log W_i=\sum_t\log\rho_{i,t}$ on every token, let the mean per answer count
# it once, and write a surrogate of your own:
#
# $$J=\frac1B\sum_i\Big[A_i\log W_i-\frac\tau2(\log W_i)^2\Big],\qquad\nabla J=\frac1B\sum_i(A_i-\tau\log W_i)\,\nabla\log\pi(y_i)$$
#
# with $A_i=r_i-\bar r$. It is a regression: each $\tau\log W_i$ is fitted to its $A_i$ (the
# report's τ is not printed).

# %%
from rlnb.objective import Objective, group_center, product, sequence_mean

TAU = 0.5


def regression(batch, A, log_W):
    return A * log_W - TAU / 2 * log_W**2


kimi = Objective(group_center(), regression, sequence_mean,
                 ratio=product())
b = running_batch(complete=True)
slope, = torch.autograd.grad(kimi(b).loss, b.logprobs)
log_W = (b.logprobs - b.old_logprobs).detach().where(b.mask, 0.0).sum(1)
A_kimi = kimi(b).advantages[:, 0]
left = A_kimi - TAU * log_W
assert torch.allclose(-8 * slope, left[:, None] * b.mask)
print("answer     A   log W   push = A - τ log W")
for i in range(8):
    print(f"{i:6d} {A_kimi[i]:+.2f}  {log_W[i]:+.3f}   {left[i]:+.3f}")

# %% [markdown]
# No clip, and none needed: a right answer that has moved far enough is left alone, and one that has
# moved too far, answer 1, is pulled back. The distance is the whole answer's, so long answers reach
# it sooner.

# %% [markdown]
# How many of them can be said in TRL's words, and which words are they?

# %%
for row in LABS:
    if row.objective is None:
        continue
    try:
        words = to_trl(row.objective)
    except ValueError as error:
        print(f"{row.who}: no. {str(error).split('. ')[0]}.")
        continue
    back = from_trl(**words).objective
    assert back.canonical() == row.objective.canonical()
    print(f"{row.who}:", ", ".join(f"{k}={v}" for k, v in words.items()
                                   if v is not None))

# %% [markdown]
# Each line of words was read back and gave the same composition, up to the conventions (which std,
# which eps). What TRL lacks most often is the average per prompt.

# %% [markdown]
# By date, with what the authors call it:
#
# | model or work | method | as reported in |
# |---|---|---|
# | DeepSeekMath 7B, Feb 2024 | GRPO, KL 0.04, 64 answers, one update per rollout | [2402.03300](https://arxiv.org/abs/2402.03300) |
# | Tülu 3, Nov 2024 | PPO with a value model, on verifiable rewards | [2411.15124](https://arxiv.org/abs/2411.15124) |
# | DeepSeek-R1, Jan 2025 | GRPO | [2501.12948](https://arxiv.org/abs/2501.12948) |
# | DAPO on Qwen2.5-32B, Mar 2025 | DAPO | [2503.14476](https://arxiv.org/abs/2503.14476) |
# | Open-Reasoner-Zero, Mar 2025 | PPO, learned critic, GAE with λ = γ = 1 | [2503.24290](https://arxiv.org/abs/2503.24290) |
# | VAPO, Apr 2025 | PPO family, with a critic | [2504.05118](https://arxiv.org/abs/2504.05118) |
# | Qwen3, Apr 2025 | GRPO for the reasoning stage; for general RL not stated | [2505.09388](https://arxiv.org/abs/2505.09388) |
# | MiniMax-M1, Jun 2025 | CISPO, on 512 H800 | [2506.13585](https://arxiv.org/abs/2506.13585) |
# | "the latest Qwen3 models", Jul 2025 | GSPO credited | [2507.18071](https://arxiv.org/abs/2507.18071) |
# | ScaleRL, Oct 2025 | its recipe above | [2510.13786](https://arxiv.org/abs/2510.13786) |
# | VibeThinker 1.5B, Nov 2025 | MGPO | [2511.06221](https://arxiv.org/abs/2511.06221) |
# | DeepSeek-V3.2, Dec 2025 | GRPO with the changes above | [2512.02556](https://arxiv.org/abs/2512.02556) |
#
# The two Qwen3 rows are not a contradiction: the models of April were reported with GRPO, their
# update of July with GSPO.

# %% [markdown]
# ## The engine's ratio, and DeepSeek-V3.2
#
# The engine that samples and the trainer compute the same token's probability with different
# kernels. $\omega=\pi_\text{old}^\text{trainer}/\pi^\text{engine}$ corrects for it, as a detached
# factor on the policy term. *Truncated* importance sampling cuts ω at a cap, *masked* importance
# sampling (IcePop is one) drops what lies outside. Three tokens with ω = 1.5, 3.0, 0.2:

# %%
omega = torch.tensor([[1.5, 3.0, 0.2]])
trainer = torch.full((1, 3), 0.1).log()
three = Batch(trainer, torch.ones(1, 3), torch.ones(1), 1,
              sampling_logprobs=trainer - omega.log())
for what, gate in (
        ("truncated at 2", engine_ratio("token", "truncate", high=2.0)),
        ("masked to [0.5, 2]", engine_ratio("token", "mask", 0.5, 2.0)),
        ("the answer's, TRL", engine_ratio())):
    factor = gate(three, None, None)[0].tolist()
    print(f"{what:20s}", *(f"{x:.2f}" for x in factor))
assert round(factor[0], 12) == 0.9                     # 1.5 * 3.0 * 0.2
print(f"geometric mean: {omega.log().mean().exp():.2f}")
print(ZOO["grpo"].replace(terms=(), gates=engine_ratio()))

# %% [markdown]
# TRL's default masks an answer above 3; 0.90 passes. "Sequence level" is a product here (TRL, verl)
# and a geometric mean in ms-swift, 0.97 for these three: the same word for two numbers. Truncating
# keeps every token and is biased by what it cuts off; masking leaves data out. ScaleRL and DPPO
# have no such gate, since their ratio is taken to the engine in the first place.
#
# DeepSeek-V3.2 ([2512.02556](https://arxiv.org/abs/2512.02556)) as GRPO with three parts changed.
# Its mask compares with what the *engine* returned, so it sees staleness and mismatch together. On
# the running batch, with an engine that was 0.15 nats a token surer than the trainer in answer 5 (δ
# is not published, TRL suggests 0.5; 0.2 so that something happens):

# %%
v32 = ANNEX["deepseek_v3_2"]
print(difference(ZOO["grpo"], v32))
b = running_batch(complete=True)
surer = torch.tensor([0, 0, 0, 0, 0, 0.15, 0, 0])[:, None]
b = b.replace(sampling_logprobs=b.old_logprobs + surer)
# nats per token
gap, stale = (((x - b.logprobs.detach()) * b.mask).sum(1) / b.lengths
              for x in (b.sampling_logprobs, b.old_logprobs))
A_v32 = v32(b).advantages
kept = sequence_mask(0.2, anchor="sampling")(b, A_v32, None)[:, 0]
for i in range(8):
    print(f"answer {i}: A {A_v32[i, 0]:+.2f}, "
          f"log(old/new) {stale[i]:+.3f}, "
          f"log(engine/new) {gap[i]:+.3f}", "" if kept[i] else "  masked")
assert kept.tolist() == [1] * 5 + [0, 1, 1]
for word, value in to_trl(v32).items():
    print(f"    {word} = {value}")

# %% [markdown]
# The last lines are TRL's words for all of it. Answer 5 is 0.105 from the trainer's old policy and
# 0.255 from the engine's: masked. Answer 7 moved more and stays, at 0.176; answer 2 is wrong and
# became *likelier*, and stays. The *corrected* KL is $\rho\cdot k_3$ with a ratio that carries
# gradient; detached, at ρ = 1, it is the old term again ([05](../05_kl.ipynb)). Not
# in the loss: the sampler's expert choices and its top-p mask are replayed in training.
#
# ## Proposals, a few lines each
#
# Each as the change from something known:

# %%
dapo = ZOO["dapo"].replace(surrogate=clip(0.2))        # without its 1.28
base = {"luspo": ZOO["gspo"], "vespo": ZOO["cispo"], "sspo": ZOO["gmpo"]}
for name in list(ANNEX)[:-1]:
    start = base.get(name, dapo)
    known = next((n for n in ZOO if ZOO[n] is start), "dapo, edge 1.2")
    print(f"{name} = {known}", *difference(start, ANNEX[name]),
          sep="\n    ")

# %% [markdown]
# *Not verified:* SSPO's exact gate, which changed between versions ("SSPO-style" is all one may
# call this; its later versions are said to use an arctan); λ-GRPO's $r=1/9$ and starting λ, MGPO's
# λ. Clip-Cov's and KL-Cov's numbers are the authors' scripts'.
#
# *One acronym, several papers:* SSPO is soft-sequence
# ([2602.19327](https://arxiv.org/abs/2602.19327)) and subsentence
# ([2511.04256](https://arxiv.org/abs/2511.04256)). DPPO is divergence here, dynamic pruning and
# diffusion policy elsewhere. MGPO and SAPO name unrelated methods, too. Give the arXiv id.
#
# **VESPO** ([2602.10693](https://arxiv.org/abs/2602.10693)) weighs every token of an answer by
# $\phi(W)=W^ke^{\lambda(1-W)}$, $W=\prod_t\rho_t$, with $(k,\lambda)=(2,3)$ for right answers,
# $(3,2)$ for wrong ones. Its peak is at $W=k/\lambda$, not at 1:

# %%
W = torch.tensor([0.1, 0.5, 2 / 3, 1.0, 1.5, 2.0, 3.0])
print("W           ", *(f"{x:5.2f}" for x in W))
for sign, k, lam in (("A > 0", 2, 3), ("A < 0", 3, 2)):
    phi = W**k * (lam * (1 - W)).exp()
    print(f"weight, {sign}", *(f"{x:5.2f}" for x in phi))
    assert W[phi.argmax()] == k / lam
moved = 1.01 ** torch.tensor([10.0, 100.0, 1000.0])
print("every ratio 1.01, T = 10, 100, 1000: weight, A > 0",
      *(f"{x:.3f}" for x in moved**2 * (3 * (1 - moved)).exp()))

# %% [markdown]
# A right answer whose tokens each moved by 1 % counts 0.89 at 10 tokens and 0.04 at 100: the true
# ratio knows the length.

# %% [markdown] tags=["cited:Z17"]
# ### Z17 · learning the length weight
#
# **λ-GRPO** ([2510.06870](https://arxiv.org/abs/2510.06870)) "learns the weight of tokens and
# unites three aggregation rules". As proposed: $f=G\,\mathrm{softmax}(h^\lambda)$ over the answers
# of a group, $h_i=1+rz_i$, $z_i$ the standardised length; λ = 0 is the token mean, λ > 0 favours
# long answers, λ < 0 short ones; it equals only that one of the three. A proposal, not settled
# practice, and λ is a parameter *trained with the policy*. What does that gradient want?

# %%
lengths, A_two = torch.tensor([3.0, 5.0]), torch.tensor([1.0, -1.0])
for lam in (0.0, 1.0, 3.0):
    f = length_preference(lam).factor(lengths[None])[0]
    print(f"λ = {lam}: factors", *(f"{x:.6f}" for x in f))
assert torch.allclose(f, torch.tensor([0.677258, 1.322742]), atol=1e-6)


def loss(lam, A, r=1 / 9):                             # ratio 1, no update
    z = (lengths - lengths.mean()) / lengths.std(correction=0)
    f = 2 * torch.softmax((1 + r * z) ** lam, 0)
    return -(f * lengths * A).sum() / lengths.sum()


for name, a in (("long one wrong", A_two), ("long one right", -A_two)):
    lam = torch.tensor(0.0, requires_grad=True)
    at_first = loss(lam, a).item()
    for _ in range(200):
        g, = torch.autograd.grad(loss(lam, a), lam)
        lam = (lam - 0.5 * g).detach().requires_grad_()
    print(f"{name}: loss {at_first:+.3f} -> {loss(lam, a):+.3f} with the"
          f" policy frozen, λ 0 -> {lam:+.2f}")
    assert loss(lam, a) < at_first - 0.5

# %% [markdown]
# The loss falls and the policy has not changed. λ moves the weight *towards* whatever is being
# rewarded and *away* from what is being punished, so a wrong habit of long answers would be
# corrected less and less. The policy's own loss is the wrong judge of λ: freeze it, or choose it by
# validation.

# %% [markdown] tags=["cited:H09"]
# ### H09 · SimKO and entropy
#
# **SimKO** ([2510.14807](https://arxiv.org/abs/2510.14807)) "adds an entropy bonus": there is no
# entropy term in it. It looks for *fork* tokens (entropy in the top fifth of their answer). In
# right answers it lets the top $K$ candidates share in the gradient, in wrong ones it presses 1.1
# times as hard where the sampled token was the likeliest. Against concentration, so the aim is
# shared; the means are not. Where does the gradient go?

# %%
simko = ANNEX["simko"]
no_fork = simko.replace(ratio=token(), credit=())
b = running_batch(complete=True)
rivals = b.topk_logprobs.detach().requires_grad_()     # (8, 7, 3)
b = b.replace(topk_logprobs=rivals)
own, theirs = torch.autograd.grad(simko(b).loss, (b.logprobs, rivals))
usual, = torch.autograd.grad(no_fork(b).loss, b.logprobs)
A_simko, rho = simko(b).advantages, (b.logprobs - b.old_logprobs).exp()
changed = (own != usual) | (A_simko != no_fork(b).advantages)
for i, t in changed.nonzero().tolist():
    factor = own[i, t] / usual[i, t] if usual[i, t] else torch.tensor(0.0)
    print(f"answer {i}, token {t}, A {A_simko[i, t]:+.2f}, "
          f"ρ {rho[i, t]:.2f}:"
          f" push x {factor:.3f}, on each of the top 3"
          f" {-theirs[i, t, 0] + 0.0:.6f}")
logits = torch.tensor([1.0, 0.8, 0.6, -1.0, -1.5], requires_grad=True)
for alpha in (0.0, 0.01, 0.1):
    lp = logits.log_softmax(0)                         # a right fork token
    worth = (1 - alpha) * lp[0] + alpha * lp[:3].mean()
    push, = torch.autograd.grad(worth, logits)
    print(f"α = {alpha:<4}: push on the logits",
          *(f"{x:+.4f}" for x in push))

# %% [markdown]
# Of eight forks (one an answer) two change. Answer 4's gives 1 % of its push to the three
# likeliest, answer 6's is pressed 10 % more. The clip has already cut answer 7's and the right ones
# of 0 and 1; in the other wrong ones the sampled token was not the likeliest. In the softmax α =
# 0.01 takes the rivals' push from −0.3025 to −0.2992: they are still pressed, a little less.
#
# **Entropy-shaped advantage** ([2506.14758](https://arxiv.org/abs/2506.14758)),
# $A+\min(\alpha H,|A|/\kappa)$, *is* a bonus, detached; κ > 1 keeps every sign. **Clip-Cov** and
# **KL-Cov** ([2505.22617](https://arxiv.org/abs/2505.22617)) act on the few tokens with a high
# covariance of advantage and log-prob: those whose update takes entropy away fastest. They rank the
# tokens *at hand*:

# %%
b = running_batch(complete=True)
shaped = ANNEX["entropy_shaped"]
A_with, A_without = (o(b).advantages[b.mask]
             for o in (shaped, shaped.replace(credit=())))
assert torch.equal(A_with.sign(), A_without.sign())
for name, one in (("right", A_without > 0), ("wrong", A_without < 0)):
    x = (A_with / A_without)[one]
    print(f"entropy-shaped, {name}: A times {x.min():.2f} to {x.max():.2f}")
print("\nloss: whole step, then four micro-batches, at random seeds 0 1 2")
for name in ("dapo", "simko", "kl_cov", "clip_cov"):
    o, row = (ZOO | ANNEX)[name], []
    for seed in range(3):
        b = b.replace(generator=torch.Generator().manual_seed(seed))
        step = o.prepare(b)
        split = sum(o.loss(step.rows(range(k, k + 2))).item()
                    for k in (0, 2, 4, 6))
        row.append((o.loss(step).item(), split))
    print(f"{name:10s}", *(f"{x:9.4f} {y:8.4f}" for x, y in row))
    exact = all(abs(x - y) < 1e-12 for x, y in row)
    assert exact == (name in ("dapo", "simko"))

# %% [markdown]
# A right answer's unsure tokens count up to 1.5 times, a wrong one's down to half: the bonus spares
# mistakes made while unsure. The two covariance rules give another loss in micro-batches, since
# each has its own ranking and chooses at least one token; below 5,000 tokens that floor is more
# than the 0.02 %. Clip-Cov draws at random on top; the micro-batches leave it nothing to choose
# from, hence the constant −0.0348. Report the micro-batch size with the result.

# %% [markdown]
# ## Five more, for the patient
#
# **One term of the series** · 10 minutes. Let $K$ of $G$ answers be right,
# $S_i=\nabla\log\pi(y_i)$, so $\mathbb E[R_iS_i]=\nabla p$. (a) Show that
# $\mathbb E\big[\tfrac1K\sum_{i:\,R_i=1}S_i\big]$, with 0 for $K=0$, is
# $\frac{1-(1-p)^G}{p}\nabla p$. (b) MaxRL subtracts $\frac1G\sum_iS_i$. What if it does so only
# where $K>0$? Solved in [solutions 14](../solutions/14_the_zoo.ipynb).
#
# <details><summary>hint</summary>(a) Given that answer 1 is right, $K=1+n$ with $n$ binomial over the $G-1$ others, and $\mathbb E[\frac1{1+n}]=\frac{1-(1-p)^G}{Gp}$. (b) $\mathbb E[S_1]=0$, so what is $\mathbb E[S_1;K>0]$?</details>
#
# **Ten times the reward** · 5 minutes. Rewards become 0 and 10 instead of 0 and 1. Which methods of
# the zoo, without KL, do not notice? Which by a factor of ten? Which refuse?
#
# <details><summary>answer</summary>Whoever divides by a std does not notice (up to its eps): GRPO, DAPO, GSPO (and its token form), GMPO, CISPO, SAPO, ScaleRL, REINFORCE++. Plain differences grow tenfold: REINFORCE (with a batch mean, too), RLOO, ReMax, Dr. GRPO, DPPO. PPO too, if its critic learns the new scale; with the old values frozen, as here, it is neither. MaxRL and MGPO read the mean as a pass rate and refuse. Run in the solutions.</details>
#
# **Find the silent bug** · 9 minutes. Two filters that stand around many of these losses: groups of
# equal rewards are left out, and a prompt with a pass rate of 0.9 or more leaves the pool. It runs,
# and the pool shrinks more slowly than expected. Write a test that this function fails and the
# right one passes.
#
# <details><summary>hint</summary>What does the history of a prompt look like that is solved every time?</details>

# %%
print(check.silent_bug_the_zoo.source)

# %% tags=["exercise"]
def my_test(retired):
    return ...


check.silent_bug_the_zoo(my_test)

# %% [markdown]
# **Fit the sigmoid** · 15 minutes. From scratch. The check has points with and without noise, all
# well past the midpoint, and allows each number ± 0.005 plus half a per cent from the least-squares
# fit of the same points.
#
# <details><summary>hint</summary>For given $B$ and $C_\text{mid}$, $s=1/(1+(C_\text{mid}/C)^B)$ is known and $R=R_0+(A-R_0)s$ is a line in $s$: slope and intercept by least squares. Put a 9 × 9 grid over $\ln B$ and $\ln C_\text{mid}$, move it to its best point, shrink it by a fifth, sixty times.</details>

# %% tags=["exercise"]
def my_sigmoid_fit(compute, reward):
    """(n,), (n,) -> (4,): ceiling, exponent, midpoint, start"""
    return ...


check.sigmoid_fit(my_sigmoid_fit)

# %% [markdown]
# **MaxRL** · 5 minutes. It divides the centred reward by the group's *mean*: $A=(R-\bar R)/\bar R$.
# Write $A$ for rewards of 0 and 1. A group that is all wrong gets 0. Rewards come flat, one prompt
# after the other.
#
# <details><summary>hint</summary>One prompt a line. Subtract the line's mean, divide by it. When is it 0?</details>

# %% tags=["exercise"]
def my_max_rl_advantages(rewards, num_generations):
    return ...


check.max_rl_advantages(my_max_rl_advantages)
