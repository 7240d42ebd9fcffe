# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 17 · Evaluation: what did training change?
#
# **After this page** you can estimate pass@k without bias and say what training changed; after the
# second sitting, find the fault behind a sick run and derive what a step does to entropy.
#
# 38 minutes, then 24 in a second sitting · exercises 31 more · after 08 (GRPO), 11 (DAPO) · pass@k:
# Chen et al. 2021, [arXiv 2107.03374](https://arxiv.org/abs/2107.03374); the question: Yue et al.
# 2025, [arXiv 2504.13837](https://arxiv.org/abs/2504.13837); entropy: Cui et al. 2025,
# [arXiv 2505.22617](https://arxiv.org/abs/2505.22617)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Which groups teach GRPO nothing?</summary>Those that are all right or all wrong: every advantage is 0 (08).</details>
# <details><summary>2. A logit of a softmax moves by dz. What happens to the probabilities?</summary>dπᵢ = πᵢ(dzᵢ − the mean of dz under π) (02).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
from itertools import combinations
import numpy as np
import torch
from rlnb import check
from rlnb.classroom.explorers import (
    entropy_step, five_runs, sharpen_or_learn)
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import evaluation as pictures
from rlnb.classroom.pictures import evaluation_entropy as entropy_pictures
from rlnb.training import data_folder, pass_at_k
from rlnb.training.studies.countdown_counts import counted
from rlnb.training.studies.first_steps import (
    by_problem, leading_steps, needs_product, settled)
from rlnb.training.studies.kept_answers import fisher, kept, right_counts
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)
runs = data_folder() / "runs"

# %% [markdown]
# ## A model before and after training
#
# A small transformer plays Countdown. To reach 35 with 3, 7 and 8, each used once, it may write (8
# − 3) · 7. An answer may drop an attempt and write another. The model has imitated written
# solutions: it is the **base**. Now GRPO with an exact grader trains it, with three seeds: 90 steps
# of 24 groups of 8, one update each, no KL term. Before and after, it wrote 1,024 answers, of at
# most 80 tokens, to each of 64 new problems. <!-- cited: 80 -->

# %% jupyter={"source_hidden": true}
# the recorded counts
seeds = ("seed 0", "seed 1", "seed 2")
record = counted(runs / "countdown_counts.json")
right = {name: record[name]["right"] for name in ("base", *seeds)}
ones = {name: np.mean(right[name]) / 1024 for name in right}
print("share of answers that are right: before "
      f"{ones['base']:.2f}, after "
      + ", ".join(f"{ones[s]:.2f}" for s in seeds))

# %% [markdown]
# Before training, at least one of 16 tries is right on 96 % of the problems. <!-- cited: 96 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.1", "After training (mean of three seeds), on what "
        "share of the problems is at least one of 16 right?",
        ["99 %: single answers got better, so do sixteen",
         "96 %: the same problems, solved more often",
         "89 %: some problems are missed now",
         "75 %: many problems are missed now"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def gap_at(before, after, n, k):
    """After minus before, mean of the seeds: each problem's pass@k."""
    base, *trained = (np.array([pass_at_k(n, c, k) for c in row])
                      for row in (before, *after))
    return np.mean(trained, axis=0) - base

def loss(gap):
    """The mean over the problems, with two standard errors."""
    two = 2 * gap.std(ddof=1) / len(gap) ** 0.5
    return f"{-gap.mean():.2f} ± {two:.2f}"

gap = gap_at(right["base"], [right[s] for s in seeds], 1024, 16)
done = {name: [pass_at_k(1024 - cut, c, 16) for c, cut
               in zip(record[name]["right"], record[name]["cut"])]
        for name in ("base", *seeds)}             # answers that ended
ended = np.mean([done[s] for s in seeds], axis=0) - done["base"]
graded, second = kept(runs / "countdown_temperature.json")
again = gap_at(*[right_counts(graded, second["base"]),
                 [right_counts(graded, second[s]) for s in seeds]], 64, 16)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.1", "89 %: some problems are missed now",
       "The chance that at least one of k answers is right is called "
       "**pass@k**. In the right panel the trained models are ahead at "
       f"k = 1 and 2, and behind at 16, by {loss(gap)}. At 4 and 8 the "
       "bars touch 0.\n\nAn answer cut at 80 tokens counts as wrong. Is "
       "that the cause? No: without the cut answers the trained models are "
       f"still behind, by {loss(ended)}. A second base, trained in the "
       f"same way, lost {loss(again)}. The rest of the page stays with the "
       "first.",
       pictures.crossing(right, 1024, 16),
       instead={
           "99 %: single answers got better, so do sixteen":
           "One answer has gained. Sixteen have not.",
           "96 %: the same problems, solved more often":
           "Some problems that 16 tries used to solve are now missed.",
           "75 %: many problems are missed now":
           "That would be a fifth of the problems. It is one in fourteen.",
       })

# %% [markdown]
# **One try got better, and sixteen tries got worse.**
#
# ## pass@k from n answers
#
# You have ten answers to a problem, three of them right, and want pass@5. The obvious way takes
# 3/10 for the unknown chance: $1-(1-0.3)^5=0.83$. This is the **plug-in**.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.2", "Repeat: ten new answers, a new count, the "
        "plug-in. On average over many repeats it is",
        ["too low", "right", "too high", "high or low, depending on p"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
ten = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]              # 1: right
fives = list(combinations(ten, 5))
hits = sum(any(five) for five in fives)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.2", "too low",
       "The curve 1 − (1 − x)^k bends downwards, so an unlucky count costs "
       "more than a lucky one brings. In other words: the plug-in draws "
       "five of the ten *with* putting back, and a repeated answer is a "
       "wasted try. So draw without putting back. Of the "
       f"{len(fives)} ways to choose five of the ten, {hits} contain a "
       f"right one. That is {hits / len(fives):.3f}, not "
       f"{1 - 0.7**5:.3f}.",
       pictures.estimates(0.1, 8),
       instead={
           "too high":
           "A lucky count lifts it less than an unlucky one lowers it.",
           "right":
           "The count is right on average; a bent function of it is not.",
           "high or low, depending on p":
           "The curve bends one way everywhere, so one side for all p.",
       })

# %% [markdown]
# Chen et al. ask which share of all choices of $k$ of the $n$ answers contains a right one. Why is
# this unbiased? The $n$ answers were drawn independently, and $c$ of them are right.
#
# $$\begin{aligned}
# \text{pass@}k&=P(\text{at least one of }k\text{ is right})&&\text{definition}\\
# &=1-P(\text{all }k\text{ are wrong})&&\text{complement}\\
# &=1-P(\text{these }k\text{ of my }n\text{ are wrong})&&\text{any }k\text{ of them are }k\text{ independent draws}\\
# &=1-\mathbb E\big[\text{share of all-wrong subsets of size }k\big]&&\text{true of every subset, so of their mean}\\
# &=\mathbb E\left[1-\binom{n-c}{k}\Big/\binom nk\right]&&\text{such subsets are chosen from the }n-c\text{ wrong ones}
# \end{aligned}$$

# %% [markdown]
# In the last picture's problem the estimate has a standard deviation of 0.50 at $n=8$, where it is
# 0 or 1, and of 0.21 at 32. **Draw more answers than $k$, and count the subsets that contain a
# right one.** <!-- cited: 0.50, 0.21 -->
#
# ## Problem by problem
#
# Look at each problem alone, first with 64 answers.

# %%
graded, answers = kept(runs / "countdown_kept_answers.json")
before, after = (right_counts(graded, answers[name])
                 for name in ("base", "seed 0"))
sure = [fisher(b, a, 64) < 0.05 / 64 for b, a in zip(before, after)]
pictures.problem_by_problem(before, after, sure, 64)

# %% [markdown]
# Three problems fell to 0 beyond chance, and one rose from 0 to 22.
#
# To **learn**, on this page, is to solve a problem that the base practically never solves: less
# than once in 1,000 answers. To **sharpen** is to make likelier what the base does more often than
# that. <!-- cited: 1,000 -->
#
# The problem that rose from 0 looks like learning. What do 64 wrong answers say of $p$, the base's
# chance there? We picked one of 64 problems, so call a $p$ excluded if it gives 64 wrong answers
# with a chance below 0.05/64.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.3", "0 of 64 were right. By that standard, which p are "
        "still possible?",
        ["all up to 0.016, 1 in 64",
         "all up to 0.05, 3 in 64",
         "all up to 0.11, 7 in 64",
         "all up to 0.25, 16 in 64"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
rose = before.index(0)
fell = [right["seed 0"][i] for i in range(64) if sure[i] and after[i] == 0]
chance = np.array(right["base"]) / 1024
p0, alone, picked = chance[rose], *(1 - q ** (1 / 64)
                                    for q in (0.05, 0.05 / 64))
# by 1,024 answers each: 1 rose, -1 fell, 0 could be chance
beyond = {name: np.array([
    np.sign(a - b) * (fisher(b, a, 1024) < 0.05 / 64)
    for b, a in zip(right["base"], right[name])]) for name in seeds}
up, down = (np.sum(beyond["seed 0"] == sign) for sign in (1, -1))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.3", "all up to 0.11, 7 in 64",
       f"(1 − p)^64 falls to 0.05/64 at p = {picked:.2f}. For one problem, "
       f"named beforehand, one asks for 0.05 only: p = {alone:.2f}, about "
       "3/64, the **rule of three**.\n\nThe 1,024 other answers settle it: "
       f"{right['base'][rose]} are right, so p is about {p0:.2f}. Training "
       "made a right answer four times likelier: it sharpened. And of the "
       "three problems that fell to 0, each still has "
       f"{min(fell)} to {max(fell)} right answers of 1,024.\n\nNo problem "
       "is harder for the base, so all 64 are within its reach. **Then "
       "this test cannot show learning.** It takes 3,000 wrong answers of "
       "3,000 to exclude every p above 0.001.\n\nBy 1,024 answers each, "
       f"{up} problems rose beyond chance and {down} fell (seed 0).",
       instead={
           "all up to 0.016, 1 in 64":
           "At 1 in 64, 64 wrong answers have a chance of "
           f"{(1 - 1 / 64) ** 64:.2f}: nothing unusual.",
           "all up to 0.05, 3 in 64":
           "That is the bound at 0.05, for one problem named beforehand. "
           "Among 64 problems such an accident is expected.",
           "all up to 0.25, 16 in 64":
           "At 0.25 that happens once in "
           f"{0.75**-64 / 1e6:.0f} million times.",
       })

# %% [markdown]
# **Choose on some answers, judge on others.**
#
# ## Which problems changed?
#
# In 36 of the 64 problems adding and subtracting can reach the target. The other 28 need a
# multiplication, as `2,2,9:14` does: (9 − 2) · 2.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.7", "In which kind of problem did pass@16 fall?",
        ["in both kinds about alike",
         "in both, more where the base was weaker",
         "only where a product is needed; pass@1 rose there, too",
         "only where a product is needed; pass@1 stood still there"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
product = np.array(needs_product())
gained, lost = (np.sum(beyond["seed 0"][product] == sign)
                for sign in (1, -1))
# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.7",
       "only where a product is needed; pass@1 stood still there",
       "In the mean the gain is on the left, and the loss is on the right. "
       "Where a product is needed, some problems rose "
       f"({gained} beyond chance, seed 0) and others fell ({lost}): no "
       "better at one try, and worse at sixteen. Products were the harder "
       "problems before, too; so look closer.",
       pictures.two_kinds(right, product.tolist(), 1024, 64),
       instead={
           "in both kinds about alike":
           "The two panels could hardly differ more.",
           "in both, more where the base was weaker":
           "The base was weaker at products. But the sums did not fall.",
           "only where a product is needed; pass@1 rose there, too":
           "Its gain there is within its bar.",
       })

# %% [markdown]
# Look at the first step of an answer. On `2,2,9:14` 16 % of the base's answers were right. After
# training (seed 0) the commonest first step was `9+2=11`. It cannot reach 14, and 0.3 % were
# right. <!-- cited: 16 %, 0.3 % -->
#
# Is that the rule? Take each trained model's commonest first step on each problem, by 64 answers.
# Can it reach the target? 1,024 other answers judge pass@k. A pair is a problem and a seed. ± is
# two standard errors over problems.

# %% jupyter={"source_hidden": true}
# the first steps, computed
first, leads = settled(runs / "countdown_first_steps.json"), leading_steps()
commonest = {s: [max(steps, key=steps.get) for steps in first[s]["steps"]]
             for s in seeds}
passed = {(name, k): [pass_at_k(1024, c, k) for c in right[name]]
          for name in right for k in (1, 16)}
pairs = {}                       # (product, reachable) -> seed and problem
for s in seeds:
    for i in range(64):
        where = bool(product[i]), commonest[s][i] in leads[i]
        pairs.setdefault(where, []).append((s, i))

def began(models, these):
    """Share of the answers that begin with the trained model's step."""
    return np.mean([first[m]["steps"][i].get(commonest[s][i], 0)
                    / first[m]["written"][i]
                    for m, (s, i) in zip(models, these)])

# %% jupyter={"source_hidden": true}
# the table, folded
print("                          pass@1         pass@16\n"
      "target          pairs  before after   before after  change")
for where in ((0, 1), (0, 0), (1, 1), (1, 0)):
    these = pairs[where]
    one, sixteen = (np.array([(passed["base", k][i], passed[s, k][i])
                              for s, i in these]) for k in (1, 16))
    change, two = by_problem(np.diff(sixteen).ravel(),
                             [i for _, i in these])
    (b1, a1), (b16, a16) = one.mean(0), sixteen.mean(0)
    print(f"{('sums', 'products')[where[0]]:9}"
          f"{('not', 'reachable')[where[1]]:9}{len(these):4d}"
          f"{b1:7.2f}{a1:6.2f}{b16:9.2f}{a16:6.2f}"
          f"   {round(change, 2) + 0.0:5.2f} ± {two:.2f}")
print("\nlast row, share of that first step among all first steps:\n"
      f"before {began(['base'] * len(these), these):.2f}, "
      f"after {began([s for s, _ in these], these):.2f}")
same = sum(commonest[s][i] == max(first["base"]["steps"][i],
                                  key=first["base"]["steps"][i].get)
           for s, i in these)
s, i = max(these, key=lambda pair: right[pair[0]][pair[1]])
print(f"it was the base's commonest already: {same} of {len(these)} pairs\n"
      f"the pair with most right answers: {right[s][i] / 1024:.2f} right, "
      f"{first[s]['leads'][i] / 64:.2f} begin with a step\n"
      "from which the target can be reached")

# %% [markdown]
# **The loss lies among the products whose commonest first step is a dead end**: it cannot reach the
# target. Training made these dead ends commoner: 0.16 of the first steps before, 0.54
# after. <!-- cited: 0.16, 0.54 -->
#
# How can that be, with an exact grader? It grades whole answers, and one that drops a dead end and
# then succeeds is paid in full: in one pair 0.57 of the answers are right, and only 0.22 begin with
# a step that can reach the target. Also, these problems are new: none of their answers was graded.
# How often a dead end was paid on training problems we did not measure. <!-- cited: 0.57, 0.22 -->
#
# ## How can one try stand still, and sixteen fall?
#
# In the last row pass@1 hardly fell, and pass@16 fell by 0.25. For one problem both depend on $p$
# alone, the chance that an answer is right: <!-- cited: 0.25 -->
# <!-- cited: 0.17, 0.14, 0.91, 0.64, 0.89, 0.07, 0.02 -->
#
# $$\begin{aligned}
# f(p)&=1-(1-p)^{16}&&\text{pass@16 of one problem}\\
# f''(p)&=-240\,(1-p)^{14}\le0&&\text{the curve bends downwards}\\
# \text{mean of }f(p)&\le f(\text{mean of }p)&&\text{Jensen; equal if all }p\text{ are equal}
# \end{aligned}$$
#
# With $p=0.14$ in all 52 pairs pass@16 would be 0.91.

# %% jupyter={"source_hidden": true}
# the picture
last = {"before": [right["base"][i] / 1024 for _, i in pairs[1, 0]],
        "after": [right[s][i] / 1024 for s, i in pairs[1, 0]]}
pictures.spread(last, 16)

# %% [markdown]
# Before training every $p$ was above 0.07. After it 14 of the 52 are below 0.02, where the curve is
# steep; 21 rose, mostly where it is flat. **Mean pass@1 can rise while mean pass@16 falls only if
# the dotted gap grows: the problems' $p$ spread.** <!-- cited: 0.07, 0.02 -->
#
# ## Would a lower temperature do the same?
#
# To cool, divide the logits of each token by a temperature $T$ below 1 when you sample. (So far $T$
# was 1.) By 64 fresh answers for each $T$, the base's pass@1 rises from 0.32 to 0.49 at $T=0.35$.
# Training brings it to 0.53. <!-- cited: 0.32, 0.49, 0.53, 0.96, 0.88 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.6", "pass@16 was 0.96 before training and 0.88 after "
        "it. The base, cooled to T = 0.35, has",
        ["0.82: cooling is blinder than training",
         "0.88: as much gain, so as much loss",
         "0.93: most of the gain for half of the price",
         "0.97: most of the gain, none of the price"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# problems with at most 3 right answers of 64
tried, warmed = kept(runs / "countdown_cooled.json")
rare = {row: sum(line.count("1") <= 3 for line in warmed[row])
        for row in ("base, T = 0.35", *seeds)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
heats = (0.0, 0.2, 0.35, 0.5, 0.7, 1.0, 1.25, 1.5)

def rates(name, T, part=slice(None)):
    """pass@1 and pass@16 of each problem, from a part of 64 answers."""
    rows = warmed[name if T == 1 else f"{name}, T = {T}"]
    return np.array([[pass_at_k(len(row), row.count("1"), k)
                      for k in (1, 16)] for row in (r[part] for r in rows)])

def best(name, k):
    """Of each problem: T is chosen by 32 answers, the other 32 judge."""
    halves = slice(32), slice(32, 64)
    T = max(heats, key=lambda T: rates(name, T, halves[0])[:, k].mean())
    return rates(name, T, halves[1])[:, k]

heat = {("before", T): rates("base", T) for T in heats} | {
    ("after", T): np.mean([rates(s, T) for s in seeds], 0) for T in heats}
ahead = [np.mean([best(s, k) for s in seeds], 0) - best("base", k)
         for k in (0, 1)]
err = [2 * gap.std(ddof=1) / 8 for gap in ahead]
warm = (heat["after", 1.0] - heat["before", 1.0])[:, 0]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.6", "0.97: most of the gain, none of the price",
       "Cooled this far, the base has hardly any p near 0. At most 3 of 64 "
       f"answers are right on {rare['base, T = 0.35']} problem; after "
       f"training (T = 1) on {rare['seed 0']}, {rare['seed 1']} and "
       f"{rare['seed 2']}.\n\nCompare best with best: each model at its "
       "own best T for this k, chosen by 32 answers and judged by the "
       "other 32. At k = 1 the trained models are ahead by "
       f"{ahead[0].mean():.2f} ± {err[0]:.2f} (with both at T = 1 by "
       f"{warm.mean():.2f}). At k = 16 they are behind by "
       f"{-ahead[1].mean():.2f} ± {err[1]:.2f}. **A part of the gain at "
       "one try is left. None of eight temperatures wins back what sixteen "
       "tries lost.**",
       pictures.over_temperature(heat),
       instead={
           "0.82: cooling is blinder than training":
           "It knows no reward, and it loses nothing. Training did.",
           "0.88: as much gain, so as much loss":
           "The gain in mean p does not say how p spread.",
           "0.93: most of the gain for half of the price":
           "What lowers pass@16 is p near 0. Cooling made hardly any.",
       })

# %% [markdown]
# **Give each model its best temperature, for the k that you will use, before you compare.**
#
# <details><summary>One level deeper: what do larger models do?</summary>
#
# Yue et al. compared base models and their RL versions on mathematics, code and images: the RL
# version led at small k, its base at large k. ProRL
# ([arXiv 2505.24864](https://arxiv.org/abs/2505.24864)) trained a 1.5B model for more than 2,000
# steps, with a KL term and a reference that is reset. It reports problems on which the base fails
# at every k and the trained model does not. How much long runs learn is open.
# <!-- cited: 1.5, 2,000 -->
# </details>
#
# ## What if something is out of reach?
#
# On Countdown nothing was, so that test cannot tell whether GRPO teaches anything new. A toy can.
# It has 200 problems with 40 possible answers each, one of them right. Ten are out of the base's
# reach, with a chance near one in 100,000. *New skill* gives the right answer a large logit, on the
# hardest problems first. *Cooling* divides all logits by $T$; where a wrong answer leads, it makes
# the right one rarer.
#
# Before you move a slider: can a model learn all that was out of reach, and still be overtaken? Can
# its curve be ahead at every k while many problems got worse?

# %% jupyter={"source_hidden": true}
task("evaluation.t1", sharpen_or_learn.sharpen_or_learn_explorer(),
     ("All that was out of reach is learned, and yet the base is ahead by "
      "0.05 somewhere.", sharpen_or_learn.learned_and_behind),
     ("The base is ahead nowhere, and yet 15 problems have lost half of "
      "their chance or more.", sharpen_or_learn.ahead_with_losses))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. For example 1/T = 3 and new skill on 5 %. The points on the far left rose to the top; the
#    larger crowd of other hard problems sank.
# 2. For example 1/T = 3 and new skill on 15 %. In the mean the gains outweigh the losses.
# </details>
#
# **A crossing shows that something became rare. It does not show that nothing was learned.** Curves
# that do not cross can hide losses.

# %%
score(*(f"evaluation.{i}" for i in (1, 2, 3, 7, 6)))

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Evaluation | |
# |---|---|
# | sentence | Mean pass@1 rose, yet mean pass@16 fell: pass@16 is concave in p, and the problems' p spread, as some products, with a dead end as commonest first step, came near 0 |
# | formula | pass@k: $1-\binom{n-c}k/\binom nk$ · entropy (second sitting): $dH\approx-\eta\,\mathrm{Cov}_\pi(\log\pi,A)$, if each logit moves by $\eta A$ |
# | picture | two pass@k curves that cross |
# | numbers | n = 10, c = 3, k = 5: 0.917, plug-in 0.832 · those products: pass@16 from 0.89 to 0.64, and 0.91 if all had p = 0.14 · each at its best T: trained ahead by 0.09 ± 0.07 at k = 1, behind by 0.06 ± 0.05 at 16 |
# | rule | choose on some answers, judge on others; give each model its best temperature |
# | log | the reward *and* a held-out score with an error bar, and the entropy |

# %% [markdown]
# ## Second sitting: which run is sick, and why does entropy fall?
#
# ### New task, new model: find the fault
#
# A small model learns arithmetic chains (page 21): five runs of 40 steps, one update a batch. One
# run is healthy, and we spoiled four on purpose. The reward is what the run was paid. The held-out
# score, in orange, is graded exactly on new problems.

# %% jupyter={"source_hidden": true}
task("evaluation.t3", five_runs.five_runs_explorer(),
     ("Run B: say which two panels together decide it, then diagnose.",
      five_runs.named("B")),
     ("Run D: say which panel shows the cause first, then diagnose.",
      five_runs.named("D")))

# %% [markdown]
# <details><summary>The five, and what gave them away</summary>
#
# * **A** is paid far more than its held-out score: its grader accepts the right digit *anywhere*.
# * **B** has a ratio that leaves 1, although each batch serves one update: old weights wrote the
#   answers, or the sampler computes other probabilities than the trainer. The latter would show at
#   step 1, and there B's ratio is 1. Until about step 24 the reward trails the held-out score, as
#   that of an older model would (here eight updates older).
# * **C** is healthy, and it ends with the lowest entropy of the five. **Low entropy is no fault by
#   itself**; it is one if the score stands still or pass@k falls.
# * **D** had ten times the learning rate. Its held-out score drops within four steps, before
#   answers are cut. From step 20 on all earn 0: no advantages, so the gradient norm is 0.
# * **E** had a limit of 24 tokens. Many answers are cut at step 1 already, and the model learns to
#   answer at once.
# </details>
#
# ### Why does entropy fall?
#
# A policy's **entropy** says how undecided it is: $H=-\sum_i\pi_i\log\pi_i$, in nats. It is 0 if
# one answer is sure, and $\log K$ if $K$ answers are equally likely. A network has one entropy for
# each next token.

# %%
entropy_pictures.along_the_run(record["base"],
                               [record[s] for s in seeds])

# %% [markdown]
# In all three seeds entropy and pass@16 end lower than they began, and pass@1 ends higher. In
# larger models Cui et al. find that few tokens cause most of the fall, and propose to hold these
# back: **Clip-Cov** drops the gradient of some of them, **KL-Cov** puts a KL penalty on them.
#
# What makes entropy fall? Take two policies. In both the right answer has a chance of 0.05.
#
# * **A** has five answers. The wrong ones have 0.641, 0.214, 0.071 and 0.024.
# * **B** has forty answers. The wrong ones share the rest evenly.
#   <!-- cited: 0.641, 0.214, 0.071, 0.024 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.5", "A step adds 0.5 to the right answer's "
        "logit. The entropy",
        ["falls in both: the policy gets more decided",
         "rises in A, falls in B",
         "rises in both: a rare answer catches "
         "up", "falls in A, rises in B"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
def entropies(wrong, eta=0.5):
    pi = np.array([0.05, *wrong])
    new = pi * np.exp(eta * (np.arange(len(pi)) == 0))
    H = [-(p * np.log(p)).sum() for p in (pi, new / new.sum())]
    return (*H, np.exp(-H[0]))

few = entropies(0.95 * 3.0**-np.arange(1, 5) / sum(3.0**-np.arange(1, 5)))
many = entropies(np.full(39, 0.95 / 39))
reveal("evaluation.5", "rises in A, falls in B",
       f"A goes from {few[0]:.3f} to {few[1]:.3f}, and B from "
       f"{many[0]:.3f} to {many[1]:.3f}. Pushing an answer up raises the "
       "entropy only while its chance is below e^(−H), as derived next. "
       f"That edge is {few[2]:.2f} in A and {many[2]:.3f} in B. In B, 0.05 "
       "is not rare: it is the likeliest answer of all.",
       instead={
           "falls in both: the policy gets more decided":
           "In A one wrong answer dominates. Pushing another makes the "
           "chances more even.",
           "rises in both: a rare answer catches up":
           "In B it is ahead of every other answer already.",
           "falls in A, rises in B":
           "Compare 0.05 with the other chances: far behind in A, ahead "
           "in B.",
       })

# %% [markdown]
# When does a small step lower the entropy? The logits $z_i$ move by small $dz_i$, and
# $\overline{dz}=\sum_j\pi_j\,dz_j$ is their mean. A **covariance** under $\pi$ is the mean product
# of two deviations, each answer weighed by its chance. It is above 0 where the two go together.
#
# $$\begin{aligned}
# dH&=-\sum_i d\pi_i\,\log\pi_i-\sum_i d\pi_i&&\text{product rule, and }\pi\,d\log\pi=d\pi\\
# &=-\sum_i d\pi_i\,\log\pi_i&&\text{probabilities sum to 1: }\textstyle\sum_id\pi_i=0\\
# &=-\sum_i\pi_i\,(dz_i-\overline{dz})\,\log\pi_i&&\text{softmax (02)}\\
# &=-\mathrm{Cov}_{\pi}(\log\pi,\ dz)&&\text{definition of a covariance under }\pi\\
# &\to-\eta\,\mathrm{Cov}_{\pi}(\log\pi,\ A)&&\textbf{a choice: each logit moves by }\eta\textbf{ times its advantage}
# \end{aligned}$$
#
# In words: **entropy falls when what is likely is also what is good.**
#
# <details><summary>One level deeper: is that choice justified?</summary>
#
# It is the natural gradient's step, $\pi'\propto\pi\,e^{\eta A}$, which gains most reward per KL.
# The plain gradient (02) moves $dz_i=\eta\,\pi_i(A_i-\bar A)$, with $\bar A$ the mean under $\pi$.
# Then $dH=-\eta\sum_i\pi_i^2\,(A_i-\bar A)(\log\pi_i+H)$: the same products, weighed by $\pi_i^2$.
# In a network answers share weights: on single steps of page 21's model the covariance explained
# little (rank correlation 0.40, [statements](statements/17_evaluation.ipynb)). <!-- cited: 0.40 -->
# </details>
#
# Now let only logit $i$ move, by $\eta$. Then $\overline{dz}=\eta\,\pi_i$. The mean of $\log\pi$
# under $\pi$ is $-H$. So the fourth line is $dH=-\eta\,\pi_i\big(\log\pi_i-(-H)\big)$, and this is
# above 0 only if $\log\pi_i$ is below its mean: $\pi_i<e^{-H}$. That is what *rare* means.

# %%
entropy_pictures.quadrants()

# %% [markdown]
# Can you have both: a right answer that becomes far likelier, and more entropy?

# %% jupyter={"source_hidden": true}
task("evaluation.t2", entropy_step.entropy_step_explorer(),
     ("At least double the chance of the right answer, and gain 0.1 nats "
      "of entropy.", entropy_step.more_of_both),
     ("Now find a step for which the covariance promises more entropy, and "
      "the entropy falls.", entropy_step.promised_and_lost))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. It takes a rare right answer and a middling step, for example 0.05 and a step of 2.
# 2. Keep the chance and make the step large: the formula holds for a small step only.
# </details>
#
# Where a model is mostly right when it is sure, entropy falls. (In our Countdown runs the
# covariance was not measured.) All this speaks of prompts that are trained on. On new prompts, as
# in the table of first steps, no reward pushes a likely bad step down.

# %%
score("evaluation.5")

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 8 minutes. pass@k for many problems at once: `c` is a float tensor of counts,
# `n` and `k` are numbers. With `n` = 1,000 the binomials are huge; use a product.
#
# <details><summary>hint</summary>The first of k draws is wrong with chance (n − c)/n, the second then with (n − c − 1)/(n − 1).</details>

# %% tags=["exercise"]
def my_pass_at_k(n, c, k):
    return ...

check.pass_at_k(my_pass_at_k)

# %% [markdown]
# **2 Implement** · 8 minutes. Without a grader that finds the right one of k answers one takes the
# commonest: the **majority vote**. For many problems: `answers` (P, n) holds whole numbers as
# floats, −1 where nothing could be read. Return the winner of each row, −1 where nobody voted.
#
# <details><summary>hint</summary>Compare every answer of a row with every other, and count. Should −1 be allowed to win?</details>

# %% tags=["exercise"]
def my_majority_vote(answers):
    return ...

check.majority_vote(my_majority_vote)

# %% [markdown]
# **3 Derive and implement** · 7 minutes. What a step that moves each logit by `eta` times its
# advantage does to the entropy, to first order. One prompt, `logits` and `advantages` (K,).
#
# <details><summary>hint</summary>A mean under π is (p * x).sum(). The advantages need not have mean 0 under π.</details>

# %% tags=["exercise"]
def my_entropy_change(logits, advantages, eta):
    return ...

check.entropy_change(my_entropy_change)

# %% [markdown]
# **4 Find the silent bug** · 8 minutes. A team's pass@1 rises from 0.50 to 0.62 while its answers
# get longer and longer. <!-- cited: 0.50, 0.62 -->

# %%
print(check.silent_bug_evaluation.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>What is an answer that ran into the length limit worth?</details>

# %% tags=["exercise"]
def my_test(pass_at_1):
    return ...

check.silent_bug_evaluation(my_test)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold. The five most asked come first.
#
# <details><summary><b>Did RL teach the model something new?</b></summary>
#
# I compare pass@k up to large k, each model at its best temperature and prompt, with error bars. A
# crossing shows that something became rare, not that nothing was gained. Then problem by problem,
# chosen on some answers and judged on others: was any practically out of the base's reach? If none
# was, the test cannot tell. At large k a lucky guess passes: one digit gives 1 − 0.9³² = 0.97. So I
# read the reasoning, too. For long training the question is open: 2504.13837 sees crossings, and
# ProRL (2505.24864) sees
# gains. <!-- cited: 0.97, 0.25, 0.091, 0.05, 0.40 -->
# </details>
# <details><summary><b>How do you estimate pass@k?</b></summary>
#
# Draw n answers, count c right ones, average 1 − C(n−c, k)/C(n, k) over problems. Any k of n
# independent answers are k independent draws, so this is unbiased. The plug-in 1 − (1 − c/n)^k
# is concave in c/n, so too low. Refuse k above n. For two models I take the
# difference on each problem: the error is the std of these differences over the square root of the
# number of problems.
# </details>
# <details><summary><b>Why does entropy collapse in RL?</b></summary>
#
# In one softmax: because pushing up what is likely, and down what is rare, lowers it. A small step
# changes entropy by minus the covariance, under the policy, of log-probability and logit change.
# Where the likely answers are the good ones, that covariance is positive. Pushing up rare right
# answers raises entropy. Cui et al. hold back the few tokens that cause most of the fall. The
# covariance with the advantage holds for a natural-gradient step; a plain step weighs each answer
# by π². In our small network it explains single steps weakly: rank correlation 0.40.
# </details>
# <details><summary><b>Entropy fell by a factor of ten. Do you stop the run?</b></summary>
#
# Not for that alone. I look at the held-out score, at the share of mixed groups and at pass@k. If
# the score rises, deciding is what learning looks like. If it stands still and most groups are all
# right or all wrong, the run has stopped exploring.
# </details>
# <details><summary><b>pass@1, avg@32, maj@32, pass@32: what is what?</b></summary>
#
# avg@32 is the mean of 32 answers and estimates pass@1, with less noise than one answer. maj@32
# asks whether the commonest answer is right, pass@32 whether any is; pass^32 asks for all, which is
# what reliability means. maj@32 can lie below avg@32: where the commonest answer is wrong, voting
# makes it worse. Greedy is another policy: compare it with greedy, never with a sampled score.
# </details>
#
# The other four can wait for another evening.
#
# <details><summary><b>The reward climbs, the held-out score does not. What now?</b></summary>
#
# The grader pays for something else. I read twenty answers with reward 1, regrade them by an exact
# or human check, and look for the shortcut. If graders agree, I compare the prompts: the training
# set may be easier, or leaked.
# </details>
# <details><summary><b>A benchmark of 30 problems, half solved. How sure is the score?</b></summary>
#
# To a standard error of nine points: √(0.25/30) = 0.091. avg@32 cuts the noise of sampling, not of
# which 30 problems they are. So I compare two models paired by problem, with several seeds. And 0
# of 64 answers does not mean impossible: a chance of 0.05 gives that once in 27 times.
# </details>
# <details><summary><b>Entropy collapses and pass@k falls. What do you change, and what does it cost?</b></summary>
#
# An exact grader does not prevent it: it grades whole answers on training problems. A dead end is
# paid if the answer recovers later. (How often that happened in our run was not measured.) First I
# check that pass@1 still rises; if not, I stop earlier. What follows I have not measured, cheapest
# first: sample training answers hotter (more slips, and the weights must use the same temperature),
# raise the upper clip edge (11; it acts only from the second update of a batch on), add harder
# prompts (more rollouts), a KL term (holds back all learning alike), an entropy bonus (pays for
# noise, too). I change one of them and watch pass@k, since entropy by itself can be bought with
# rubbish.
# </details>
# <details><summary><b>Random rewards raised the score. How?</b></summary>
#
# Not by information in the reward: the mean push is 0. But luck makes a run surer of what it
# samples most (01), and if the base's favourite way is a good one, the score rises; clipping can
# add a bias. Or the base has seen the test: both were reported for Qwen models on MATH. I add a
# random-reward arm, test on problems newer than the model, change the numbers in old ones, and see
# whether the gain stays.
# </details>
#
# What else is said about learning and sharpening, temperature, learnability and curricula,
# best-of-N under a budget, test-time scaling: [statements 17](statements/17_evaluation.ipynb). The
# exercises, solved: [solutions 17](solutions/17_evaluation.ipynb).
#
# **Next: [18](18_agents.ipynb).** What changes when an answer has many turns, and a world that
# answers back?
