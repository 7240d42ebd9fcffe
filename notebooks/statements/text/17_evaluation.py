# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 17 · statements: evaluation
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements: entropy by other formulas, learnability and curricula, answers under a
# budget, and what libraries log. The lesson is [17 · Evaluation](../17_evaluation.ipynb).

# %% tags=["setup"]
from math import comb
import numpy as np
import torch
from rlnb.classroom.explorers import five_runs, sharpen_or_learn
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures import evaluation as pictures
from rlnb.classroom.pictures import evaluation_entropy as entropy_pictures
from rlnb.classroom.pictures.recorded_runs import evaluations
from rlnb.toys.entropy import entropy, gradient_step, linear_change
from rlnb.training import data_folder, pass_at_k
from rlnb.training.studies.countdown_counts import counted
from rlnb.training.studies.entropy_law import law
from rlnb.training.studies.kept_answers import fisher, kept, right_counts
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)
runs = data_folder() / "runs"
record = law(runs / "entropy_law.json")
digits, chains = kept(runs / "chain_kept_answers.json")
chain = {name: right_counts(digits, row) for name, row in chains.items()}

# %% tags=["setup"]
def mean_pass(counts, k, n=32):
    return float(np.mean([pass_at_k(n, c, k) for c in counts]))

# %% [markdown]
# ## Learning and sharpening

# %% [markdown]
# ### E01 · up at 1, down at k
#
# The toy of the lesson: 200 problems, the base's answers sharpened to the third power (cooled to
# T = 1/3); then new skill on the twentieth that is out of reach instead.

# %%
statement("E01")

# %% tags=["claim:E01"]
sharp = sharpen_or_learn.compute(3.0, 0)
new = sharpen_or_learn.compute(1.0, 5)
ks = sharpen_or_learn.KS
print("k            " + "".join(f"{k:7d}" for k in ks))
for name, row in (("base", sharp["base"]), ("sharpened", sharp["now"]),
                  ("new skill", new["now"])):
    print(f"{name:13s}" + "".join(f"{v:7.3f}" for v in row))
assert sharp["now"][0] > sharp["base"][0] + 0.2 and sharp["crossing"] == 16
assert (sharp["now"][4:] < sharp["base"][4:]).all()
assert (sharp["now"][:4] > sharp["base"][:4]).all()   # 8 do not show it
assert (new["now"] > new["base"]).all()

# %%
settle("E01", "true")

# %% [markdown]
# At large k. With eight answers a problem the sharpened model still leads at every k. And where the
# base already solves everything there is no room to rise: on chains pass@32 of the base is 1, and
# "flat or down" says nothing about new skill.

# %%
for k in (1, 8, 32):
    print(f"chains, pass@{k}: base {mean_pass(chain['base'], k):.3f}, "
          + ", ".join(f"{name} {mean_pass(chain[name], k):.3f}"
                      for name in ("seed 0", "seed 1", "seed 2")))
assert mean_pass(chain["base"], 32) == 1

# %% [markdown]
# ### E02 · a rise at large k
#
# Sixteen answers, three right, and pass@8 by two estimates. Then: how often would sixteen answers
# show a skill of 1 in 50?

# %%
statement("E02")

# %% tags=["claim:E02"]
unbiased, plug_in = pass_at_k(16, 3, 8), 1 - (1 - 3 / 16) ** 8
print(f"n = 16, c = 3, k = 8: {unbiased:.3f} unbiased, "
      f"{plug_in:.3f} plugged in")
for n in (16, 256):
    print(f"p = 0.02, n = {n}: no right answer at all with chance "
          f"{0.98**n:.2f}")
assert round(unbiased, 3) == 0.900 and round(plug_in, 3) == 0.810
wide = sharpen_or_learn.compute(1.0, 20)
gain = wide["now"] - wide["base"]
print("new skill on a fifth, gain at k = 1, 8, 256: "
      + ", ".join(f"{gain[i]:+.3f}" for i in (0, 3, 8)))
assert gain[3] > 2 * gain[0] and gain[8] < 0.07     # and a ceiling

# %%
settle("E02", "it depends")

# %% [markdown]
# On how many answers there are, on the estimate, and on the ceiling: here new skill shows most at
# k = 8, and at 256 the base was nearly at 1 on all that it could reach.

# %% [markdown] tags=["cited:E03"]
# ### E03 · weights and outputs
#
# "RL explores in weights, test-time search in outputs": both explore by sampling outputs. RL stores
# what it finds in the weights, search throws it away after use
# ([2408.03314](https://arxiv.org/abs/2408.03314) on when compute is better spent on answers).

# %% [markdown]
# ### E04 · RL uses up entropy
#
# Ten answers, equally likely at the start, two of them right. Nobody prefers one of the two. GRPO,
# groups of 8, 600 steps, 400 seeds.

# %%
statement("E04")

# %% tags=["claim:E04"]
dice, z = torch.Generator().manual_seed(0), torch.zeros(400, 10)
shares = []
for _ in range(600):
    pi = z.softmax(1)
    y = pi.multinomial(8, True, generator=dice)
    R = (y < 2).double()
    std = R.std(1, correction=0, keepdim=True)
    A = (R - R.mean(1, keepdim=True)) / (std + 1e-6)
    push = torch.zeros_like(z).scatter_add(1, y, A)
    z = z + 2 / 8 * (push - A.sum(1, keepdim=True) * pi)
    shares.append(z.softmax(1)[:, 0] / z.softmax(1)[:, :2].sum(1))
shares = torch.stack(shares)
larger = torch.maximum(shares[-1], 1 - shares[-1])
print(f"entropy {entropy(torch.zeros(10)):.2f} to {entropy(z).mean():.2f}; "
      f"right {z.softmax(1)[:, :2].sum(1).mean():.3f}")
print(f"the larger of the two: {larger.mean():.2f}; above 0.9 in "
      f"{(larger > 0.9).double().mean():.0%} of the seeds")
assert larger.mean() > 0.98 and entropy(z).mean() < 0.1
entropy_pictures.two_arms(shares[:60, :60].numpy())

# %%
settle("E04", "true")

# %% [markdown]
# Even between two right answers. Whichever is drawn more often early is pushed more often. The
# expected gradient keeps two even ones even, and entropy would stop at ln 2:

# %%
even = torch.zeros(10)
for _ in range(3000):
    even = even + gradient_step(even, (torch.arange(10) < 2).double(), 2.0)
print(f"expected gradient: {entropy(even):.3f}, ln 2 = {np.log(2):.3f}")
assert abs(entropy(even).item() - np.log(2)) < 0.02

# %% [markdown] tags=["cited:H14"]
# ### H14 · expands, or only sharpens?
#
# Open. Yue et al. ([2504.13837](https://arxiv.org/abs/2504.13837)) compare base and trained models
# at k up to 1,024 and see the base ahead at large k. ProRL
# ([2505.24864](https://arxiv.org/abs/2505.24864)) trains for long, resets the reference on the way,
# and reports tasks on which the trained model stays ahead. Different models, tasks and training
# lengths.

# %% [markdown] tags=["cited:H18"]
# ### H18 · AceReason-Nemotron
#
# Reported ([2505.16400](https://arxiv.org/abs/2505.16400)): +14.6 and +6.8 points by RL from
# mathematics prompts. One family of models, its own test sets.

# %% [markdown] tags=["cited:M10"]
# ### M10 · R1-Zero and reasoning
#
# Reported by its authors ([2501.12948](https://arxiv.org/abs/2501.12948)), contested: the base
# model already wrote such passages before any RL
# ([2503.20783](https://arxiv.org/abs/2503.20783)).

# %% [markdown]
# ## Choose on some answers, judge on others
#
# Which problems gained most? Take the twelve that the base of the lesson solves most rarely. They
# are chosen by its first 32 answers, and judged by its other 32.

# %%
graded, lines = kept(runs / "countdown_kept_answers.json")
first, other = (
    np.array([x[part].count("1") for x in lines["base"]]) / 32
    for part in (slice(32), slice(32, 64)))
rare = np.argsort(first, kind="stable")[:12]
print(f"chosen by {first[rare].mean():.3f}, "
      f"judged {other[rare].mean():.3f}")
for name in ("seed 0", "seed 1", "seed 2"):
    now = np.array(right_counts(graded, lines[name]))[rare] / 64
    gain = now - other[rare]
    print(f"{name}: {now.mean():.3f}, gain {gain.mean():+.3f} "
          f"+- {gain.std(ddof=1) / 12**0.5:.3f}, "
          f"{(gain > 0).sum()} of 12 rose")

# %% [markdown]
# The problems look easier on the answers that did not choose them, before anything was trained.
# Against these no seed gains by two standard errors. So "the rarest problems gained" is not shown
# as a group. Problem by problem it is: Fisher's exact test, each of 64 at 0.05/64.

# %%
old = right_counts(graded, lines["base"])
for name in ("seed 0", "seed 1", "seed 2"):
    pairs = [(b, a) for b, a in zip(old, right_counts(graded, lines[name]))
             if fisher(b, a, 64) < 0.05 / 64]
    print(f"{name}: {sum(a > b for b, a in pairs)} rose, "
          f"{sum(a < b for b, a in pairs)} fell; from at most 10 of 64:",
          [(b, a) for b, a in pairs if b <= 10 and a > b])

# %% [markdown]
# With 1,024 fresh answers of the same models the extremes come back: the problem that was never
# solved in 64 answers has 73 right ones, and none is at 0 after training either.

# %%
many = counted(runs / "countdown_counts.json")
for name, row in many.items():
    least = sorted(row["right"])[:4]
    print(f"{name}: least solved {least} of 1,024, "
          f"cut at 80 tokens {np.mean(row['cut']) / 1024:.1%}")
i = old.index(0)
print(f"never in 64: {many['base']['right'][i]} of 1,024")
assert min(min(row["right"]) for row in many.values()) > 0

# %% [markdown]
# Is the loss at k = 16 only the length limit? Count the finished answers alone:

# %%
def rows(row, finished):
    return np.array([pass_at_k(1024 - finished * u, c, 16)
                     for c, u in zip(row["right"], row["cut"])])

for finished in (False, True):
    gap = np.mean([rows(many[f"seed {s}"], finished) for s in (0, 1, 2)],
                  axis=0) - rows(many["base"], finished)
    print("finished answers" if finished else "all answers",
          f"{gap.mean():+.3f} +- {gap.std(ddof=1) / 8:.3f}")

# %% [markdown]
# Part of it, not all. The same rule for votes. A vote of 32 answers of the chain base is wrong on
# 34 of 250 problems. How many of these does it lose again on 32 fresh answers?

# %%
def vote(line):
    said = line.replace(".", "")
    return max(said, key=said.count) if said else "."

_, again = kept(runs / "chain_fresh_answers.json")
missed, twice, large = (
    np.array([vote(line) != d for d, line in zip(digits, some)])
    for some in (chains["base"], [x[:32] for x in again["base"]],
                 again["base"]))
print(f"lost {missed.sum()}, again on 32 fresh answers "
      f"{(missed & twice).sum()}, on 288 {(missed & large).sum()}")
for name, some in (("that chose them", chains), ("fresh", again)):
    share = np.mean([line.count(d) / len(line) for d, line, bad
                     in zip(digits, some["base"], missed) if bad])
    print(f"share of the right digit, answers {name}: {share:.2f}")

# %% [markdown]
# Most of the 34 were bad luck: two digits close together, and 32 answers too few.

# %% [markdown]
# ## On which first step does it settle?
#
# The lesson takes the commonest first step of a problem's 64 answers. Of the answers that write a
# first step: how many write that one, and how many write one after which the target can be reached?

# %%
from rlnb.training.studies.first_steps import (
    agreement, favourites, needs_product, settled)

product = np.array(needs_product())
steps_of = settled(runs / "countdown_first_steps.json")
later = ("seed 0", "seed 1", "seed 2")

def share(names, key, kind):
    return np.mean([np.array(steps_of[one][key])[kind].sum()
                    / np.array(steps_of[one]["written"])[kind].sum()
                    for one in names])

for kind, where in (("sums", ~product), ("products", product)):
    for what, key in (("commonest", "commonest"), ("can reach", "leads")):
        then, now = (share(who, key, where) for who in (("base",), later))
        print(f"{kind:9s} {what:10s} base {then:.2f}   trained {now:.2f}")
first_of = steps_of["base"]["steps"]
same = np.mean([favourites(first_of, steps_of[s]["steps"])[0]
                for s in later])
luck = agreement(first_of)
print(f"the commonest step is the base's in {same:.0%}; by luck alone in "
      f"{luck[1]:.0%} to {luck[0]:.0%}")

# %% [markdown]
# It settles as firmly in both kinds, and often on another step than the base's commonest. That one
# is weak, so a new sample of the base would change it in about half of the problems, too: the two
# figures take the base's shares for exact, and compare a sample with the first one, or two samples
# with each other. More of the sums are solved (0.80) than begin with a step that leads there, since
# an answer may cross out its first step. On products more answers begin well than before, and yet
# pass@1 stood still: what comes after the first step was not looked at. <!-- cited: 0.80 -->

# %% [markdown]
# ## Is training a lower temperature?
#
# The lesson's models at eight temperatures, 64 new answers to each problem:

# %%
_, cooled = kept(runs / "countdown_cooled.json")
heats = (0.0, 0.2, 0.35, 0.5, 0.7, 1.0, 1.25, 1.5)
print("T                 " + "".join(f"{T:7g}" for T in heats))
for k in (1, 16):
    for who, names in (("before", ("base",)), ("after", later)):
        row = [np.mean([mean_pass([x.count("1") for x in cooled[
            name if T == 1 else f"{name}, T = {T}"]], k, 64)
            for name in names]) for T in heats]
        print(f"pass@{k:<3d} {who:8s} " + "".join(f"{v:7.3f}" for v in row))

# %% [markdown]
# The recipe once more, from a second base (another seed of the imitation, in effect: the machine
# rounds differently), sampled at four temperatures.

# %%
problems, warmed = kept(runs / "countdown_temperature.json")
heat = {}                                         # (who, T): pass@k
for name, rows in warmed.items():
    who, _, T = name.partition(", T = ")
    heat.setdefault(("before" if who == "base" else "after", float(T or 1)),
                    []).append(
        [[pass_at_k(64, c, k) for k in (1, 2, 4, 8, 16, 32, 64)]
         for c in right_counts(problems, rows)])
heat = {key: np.mean(rows, axis=0) for key, rows in heat.items()}
pictures.heated(heat)

# %%
def compared(a, b):
    gap = heat[a] - heat[b]
    print(f"{a[0]:6s} {a[1]:.1f} minus {b[0]:6s} {b[1]:.1f}: " + ", ".join(
        f"pass@{2**i} {gap[:, i].mean():+.3f} "
        f"+- {gap[:, i].std(ddof=1) / 8:.3f}" for i in (0, 4)))

compared(("after", 1.0), ("before", 1.0))
compared(("after", 1.5), ("after", 1.0))
compared(("after", 1.5), ("before", 1.0))
compared(("before", 0.5), ("before", 1.0))
compared(("after", 0.5), ("before", 0.5))

# %% [markdown]
# Heating the trained models to 1.5 wins back a seventh of what was lost at k = 16; at 2 they lose.
# No temperature *per token* that was tried undoes training. Sharpening whole answers, π to a power,
# is not a token temperature, and is not excluded. And half of the gain in pass@1 was to be had by
# cooling the second base: with both at 0.5 training is worth 0.08 instead of 0.18.
# <!-- cited: 0.08, 0.18 -->

# %% [markdown]
# ## Entropy by other formulas
#
# One step from the same policy of five answers: the change in truth, by the covariance with $\eta
# A$, and by the covariance with the plain gradient's own step.

# %%
z5 = torch.tensor([0.3, -0.7, 1.4, 0.0, -2.0])
A5 = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0])
A5 = A5 - z5.softmax(0) @ A5
for eta in (0.1, 1.0):
    for name, step in (("eta A", eta * A5),
                       ("gradient", gradient_step(z5, A5, eta))):
        true = entropy(z5 + step) - entropy(z5)
        print(f"eta {eta}, {name:8s}: in truth {true:+.4f}, to first order "
              f"{linear_change(z5, step):+.4f}")
exact = linear_change(z5, gradient_step(z5, A5, 1e-3))
true = entropy(z5 + gradient_step(z5, A5, 1e-3)) - entropy(z5)
assert abs(exact - true) < 1e-6

# %% [markdown]
# On the network the same question has three answers: the covariance per context, the covariance
# over all tokens of the batch (what Clip-Cov takes), and the exact first order, gradient of the
# mean entropy times the step of the weights. Correlation with the measured change, seed by seed:

# %%
for name in ("per_token", "in_batch", "linear"):
    row = []
    for seed in (0, 1, 2):
        s = record[f"plain, seed {seed}"]
        change = np.subtract(s["after"], s["before"])
        sign = 1 if name == "linear" else -1
        row.append(sign * np.corrcoef(s[name], change)[0, 1])
    print(f"{name:10s}", *(f"{x:.2f}" for x in row))
    assert min(row) > 0.4

# %% [markdown]
# Even the exact first order leaves something: a step is not small. What the covariances lose
# against it lies in between: one token for a context, weights that all contexts share, Adam. In
# training the covariance was above 0 in all 120 steps, so its sign was never put to the test. And
# the number of the step alone, with no law at all, ranks the changes as well:

# %%
def rank(x):
    return np.argsort(np.argsort(x))

for seed in (0, 1, 2):
    s = record[f"plain, seed {seed}"]
    change = rank(np.subtract(s["after"], s["before"]))
    law_says = np.corrcoef(rank(-np.array(s["per_token"])), change)[0, 1]
    positive = np.sum(np.array(s["per_token"]) > 0)
    print(f"seed {seed}: positive {positive} of 40, rank correlation "
          f"of the law {law_says:.2f}, of the step number "
          f"{np.corrcoef(np.arange(40), change)[0, 1]:.2f}")

# %% [markdown]
# Single steps from the base, one prompt each, at a tenth of the rate: there the sign does change.

# %%
steps = record["alone, a tenth of the rate"]
change = np.subtract(steps["after"], steps["before"])
sign = np.sign(steps["per_token"]) == -np.sign(change)
print(f"right about the sign: the law {np.mean(sign):.0%}, "
      f"always 'falls' {np.mean(change < 0):.0%}")
for name, x in (("law", -np.array(steps["per_token"])),
                ("gradient of H times the true step", steps["linear"])):
    print(f"rank correlation with the change, {name}: "
          f"{np.corrcoef(rank(x), rank(change))[0, 1]:.2f}")
entropy_pictures.law_on_a_run(steps)

# %% [markdown]
# **Which tokens?** Two answers of the first step, by the base. The first token chooses a way:
# calculate step by step, or `so` and the digit at once.

# %%
rows = record["tokens"]                           # 16 answers
H = np.concatenate([row["entropy"] for row in rows])
part = np.concatenate([np.add(row["logp"], row["entropy"])
                       * row["advantage"] for row in rows])  # (log π + H)A
H, part = -np.sort(-H), -np.sort(-part)           # largest first
fifth, above = len(H) // 5, part[part > 0]
print(f"{len(H)} tokens. A fifth of them holds "
      f"{H[:fifth].sum() / H.sum():.0%} of the entropy, five of them "
      f"{above[:5].sum() / above.sum():.0%} of the positive part of the "
      "covariance.")
entropy_pictures.forks([rows[2], rows[1]])

# %% [markdown]
# **Remedies at few tokens.** The same model, 40 steps, three seeds. The first arm after "plain" is
# in the manner of Clip-Cov, and is not Clip-Cov: up to 2 % of the tokens lose their gradient, drawn
# from those with a covariance above 0.2. verl's `clip_cov` draws 0.02 %, between 1 and 5; of our
# one or two thousand tokens a step that is one. Its control draws as many from all tokens. 80/20:
# only the fifth of the tokens with the highest entropy gets a gradient. Bonus: $0.01\,H$ is added
# to the objective.

# %%
share = np.mean([record[f"plain, seed {seed}"]["above"]
                 for seed in (0, 1, 2)], axis=0)
print("tokens with a covariance above 0.2, plain run, steps 1, 10, 20, 40: "
      + ", ".join(f"{share[k - 1]:.1%}" for k in (1, 10, 20, 40)))
entropy_pictures.arms(record, [
    "plain", "2 % of tokens, covariance above 0.2",
    "2 % of tokens at random", "80/20", "entropy bonus 0.01"])

# %% [markdown]
# In the plain run fewer than 2 % of the tokens lie above 0.2 in the second half, so there the arm
# can silence them all. It keeps about three times the entropy, and has learned less in these 40
# steps. The control changes neither: the same few tokens carry the loss of entropy and the
# learning. The other two keep no more entropy than plain. This is a verdict on this arm, not on
# Clip-Cov; its authors report gains in long runs of large models.
#
# **An entropy term with the wrong sign.** A bug that is easily made: the bonus is subtracted from
# the loss with the sign of a loss. Coefficient −0.1, all else as in the healthy run, three seeds:

# %%
for name, said in (("dash_healthy", "healthy"),
                   ("dash_entropy", "wrong sign")):
    at, held = evaluations(name)
    _, H = evaluations(name, "entropy")
    print(f"{said:10s} entropy " + " ".join(f"{x:.3f}" for x in H[:, -1])
          + "   held-out score "
          + " ".join(f"{x:.3f}" for x in held[:, -1]))

# %% [markdown]
# Less than half of the entropy is left. Two seeds score higher than the healthy ones, one lower. On
# this task, in 40 steps, deciding early was no clear loss. So the dashboard's diagnosis "presses
# the entropy out" needs a score that stands still.
#
# **A law between the two.** Cui et al. fit $R=-a\,e^{H}+b$: score against entropy, along a run. On
# the eleven evaluations of the healthy runs:

# %%
def fit(name):
    _, H = evaluations(name, "entropy")
    _, R = evaluations(name)
    slope, top = np.polyfit(np.exp(H).ravel(), R.ravel(), 1)
    return slope, top, np.corrcoef(np.exp(H).ravel(), R.ravel())[0, 1]

a, b, r = fit("dash_healthy")
print(f"R = {a:.2f} exp(H) + {b:.2f}, correlation {r:.3f}; "
      f"ceiling at H = 0: {a + b:.2f}")
for arm in ("2 % of tokens, covariance above 0.2", "plain"):
    for seed in (0, 1, 2):
        end = record[f"{arm}, seed {seed}"]["end"]
        said = a * np.exp(end["entropy"]) + b
        print(f"{arm:36s} score {end['pass@1']:.2f}, "
              f"the fit says {said:.2f}")
assert r < -0.95

# %% [markdown]
# It fits the runs that it was made from. Where silenced tokens held the entropy up, the score is
# 0.1 higher than the fit says: entropy is not a currency that buys score at a fixed rate. The
# authors state the law for runs without a remedy.
#
# ## Which prompts teach
#
# A 0/1 reward, a prompt with pass rate $p$, groups of $G$. The positive advantages of a group sum
# to about $G\,p(1-p)$ when the mean is subtracted, and to $G\sqrt{p(1-p)}$ after the division by
# the std. Exact, G = 8, silent groups counted:

# %%
p = np.linspace(0.005, 0.995, 199)
G, pull = 8, {"minus the mean": 0 * p, "divided by the std": 0 * p}
for c in range(1, G):
    chance = comb(G, c) * p**c * (1 - p) ** (G - c)
    pull["minus the mean"] += chance * c * (1 - c / G)
    pull["divided by the std"] += chance * (c * (G - c)) ** 0.5
shape = p * (1 - p)
assert np.allclose(pull["minus the mean"], (G - 1) * shape)
pictures.learnability(p, {
    **{name: row / row.max() for name, row in pull.items()},
    "p(1 − p)": shape / shape.max()})

# %% [markdown]
# Minus the mean it *is* $(G-1)\,p(1-p)$; the two curves lie on each other. **Learnability**
# ([2502.12272](https://arxiv.org/abs/2502.12272) draws prompts by it;
# [2504.03380](https://arxiv.org/abs/2504.03380) keeps the middle by balanced filtering) is that
# number. As a curriculum, in a toy where prompts share nothing: a prompt is a logit $x$ with
# $p=\sigma(x)$, and a visit moves $x$ by $\eta\,p(1-p)$, the exact gradient.

# %%
start = torch.randn(200, generator=torch.Generator().manual_seed(1)) * 2 - 2
rules = {
    "every prompt alike": lambda p: torch.ones_like(p),
    "in proportion to p(1 - p)": lambda p: p * (1 - p),
    "easiest unsolved first": lambda p: (p < 0.9) * p**8,
    "hardest first": lambda p: (1 - p) ** 8,
}
print(f"start: mean {start.sigmoid().mean():.3f}")
print("mean after rounds              25    100    400   below 0.5")
for name, rule in rules.items():
    x, row = start.clone(), []
    for turn in range(1, 401):                 # 200 visits a round, shared
        q = x.sigmoid()
        x = x + 0.4 * 200 * rule(q) / rule(q).sum() * q * (1 - q)
        row += [x.sigmoid().mean().item()] * (turn in (25, 100, 400))
    print(f"{name:26s}" + "".join(f"{v:7.3f}" for v in row)
          + f"   {(x < 0).sum().item():6d}")

# %% [markdown]
# All spend the same number of visits. $p(1-p)$ leads early and ends level with no curriculum at
# all; both crude orders overtake it. The largest signal now is not the best order for a whole
# budget. And in this toy prompts share nothing, so it cannot test that easy ones teach the hard
# ones.
#
# ## Answers under a budget
#
# Best-of-N asks a grader, a vote asks nobody, training asks once. The chain model's answers are not
# equally long: before training 17 tokens on average, after it 35. So count tokens, too.

# %%
def maj(lines, k):
    wins = []
    for digit, line in zip(digits, lines):
        for i in range(0, 32, k):
            said = line[i:i + k].replace(".", "")
            wins.append(bool(said) and max(said, key=said.count) == digit)
    return float(np.mean(wins))

_, length = evaluations("dash_healthy", "mean_length")
short, long = length[:, 0].mean(), length[:, -1].mean()
print(" answers  tokens  best-of-N  vote")
for k in (1, 2, 4, 8, 16, 32):
    best = mean_pass(chain["base"], k)
    print(f"base {k:3d}  {k * short:6.0f}  {best:9.3f}"
          f"  {maj(chains['base'], k):.3f}")
one = [mean_pass(chain[f"seed {s}"], 1) for s in (0, 1, 2)]
print(f"trained 1 {long:6.0f}  {np.mean(one):9.3f}  {np.mean(one):.3f}")
assert maj(chains["base"], 32) < np.mean(one) < mean_pass(chain["base"], 8)

# %% [markdown]
# One trained answer for the price of two of the base beats a vote of 32, and loses to the best of
# eight *if* a perfect grader picks it. **Test-time scaling** means to walk down this table: more
# answers, or longer ones. Where does the vote end? With ever more answers it returns each problem's
# commonest digit. The 32 answers cannot say on which problems that is wrong; 288 fresh ones do
# better. The problems on which a wrong digit leads, by the one and by the other:

# %%
_, fresh = kept(runs / "chain_fresh_answers.json")

def beaten(lines):
    return {i for i, (d, line) in enumerate(zip(digits, lines))
            if max(line.count(x) for x in set("0123456789") - {d})
            > line.count(d)}

by_32, by_288 = beaten(chains["base"]), beaten(fresh["base"])
print(f"32 answers: {len(by_32)}, 288 fresh ones: {len(by_288)}, "
      f"both: {len(by_32 & by_288)}, of {len(digits)}")
assert len(by_288) < len(by_32) / 3

# %% [markdown]
# Most of the first were ties and bad luck: a large vote keeps on getting better, and passes one
# trained answer.

# %% [markdown]
# **How sure?** Error bars of pass@1 come from the problems, not from the answers: 250 problems with
# 32 answers each are 250 draws. Paired by problem, base against seed 0:

# %%
before, after = (np.array(chain[name]) / 32 for name in ("base", "seed 0"))
naive = np.sqrt(before.mean() * (1 - before.mean()) / before.size / 32)
by_problem = before.std(ddof=1) / np.sqrt(before.size)
gap = after - before
print(f"base {before.mean():.3f}: +- {naive:.4f} over 8,000 answers, "
      f"+- {by_problem:.4f} over 250 problems")
print(f"gain {gap.mean():.3f} +- {gap.std(ddof=1) / np.sqrt(gap.size):.4f}")
assert by_problem > 1.4 * naive

# %% [markdown]
# ## What libraries log
#
# * verl: `mean@N`, `best@N`, `maj@N`. `best@N` draws N of the answers *with* putting back; one
#   right of four gives best@4 = 0.684 where pass@4 of these four is 1
#   ([pull request 7240](https://github.com/verl-project/verl/pull/7240)).
# * human-eval's function returns 1 when fewer than k answers are wrong, also when there are fewer
#   than k answers and none is right
#   ([pull request 68](https://github.com/openai/human-eval/pull/68)).
# * One project fed the number of problems and of solved problems into n and c
#   ([pull request 2118](https://github.com/paiml/aprender/pull/2118)): 50 of 164 became a pass@10
#   of 97.7 % from one greedy answer each. <!-- cited: 97.7 -->

# %%
print(f"best@4 of one right in four: {1 - (3 / 4) ** 4:.3f}, "
      f"pass@4: {pass_at_k(4, 1, 4):.0f}")
print(f"50 of 164 as n and c, k = 10: {pass_at_k(164, 50, 10):.3f}")

# %% [markdown]
# **pass^k** is another question: all k right, $\binom ck/\binom nk$. It is what a user of an agent
# meets, who tries once and every day. Chains, k = 8:

# %%
def all_right(counts, k, n=32):
    return np.mean([comb(c, k) / comb(n, k) for c in counts])

for name in ("base", "seed 0"):
    print(f"{name}: pass@8 {mean_pass(chain[name], 8):.3f}, "
          f"pass^8 {all_right(chain[name], 8):.3f}")

# %% [markdown]
# ## The five dashboards, every seed
#
# The lesson shows seed 0. The rules by which the page judges a diagnosis, on all fifteen runs:

# %%
for name, truth in sorted(five_runs.RUNS.values()):
    fits = [[key for key, sign in
             five_runs.signs(five_runs.recorded(name, seed)).items()
             if sign[0]] for seed in (0, 1, 2)]
    print(f"{name:14s} fits", fits)
    assert fits == [[truth]] * 3
