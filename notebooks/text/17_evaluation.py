# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 17 · Evaluation: did it learn, or only sharpen?
#
# **After this page** you can estimate pass@k without bias, say what crossing curves show and what
# they do not, derive what a training step does to entropy, and find the fault behind a sick run.
#
# 44 minutes, exercises 31 more · after 08 (GRPO), 11 (DAPO) · pass@k: Chen et al. 2021,
# [arXiv 2107.03374](https://arxiv.org/abs/2107.03374); the crossing: Yue et al. 2025,
# [arXiv 2504.13837](https://arxiv.org/abs/2504.13837); entropy: Cui et al. 2025,
# [arXiv 2505.22617](https://arxiv.org/abs/2505.22617)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Which groups teach GRPO nothing?</summary>Those that are all right or all wrong: every advantage is 0 (08).</details>
# <details><summary>2. A logit of a softmax moves by dz. What happens to the probabilities?</summary>dπᵢ = πᵢ(dzᵢ − the mean of dz under π) (02).</details>
# <details><summary>3. What does the upper edge of the clip stop?</summary>A good token that has already become likelier: it gets no further push (06, 11).</details>

# %% tags=["setup"]
from itertools import combinations
from math import comb
import numpy as np
import torch
from rlnb import check
from rlnb.classroom.explorers import (
    entropy_step, five_runs, sharpen_or_learn)
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import evaluation as pictures
from rlnb.classroom.pictures import evaluation_entropy as entropy_pictures
from rlnb.training import data_folder, pass_at_k
from rlnb.training.studies.controls import reports
from rlnb.training.studies.entropy_law import law
from rlnb.training.studies.kept_answers import fisher, kept, right_counts
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)
runs = data_folder() / "runs"

# %% [markdown]
# ## It got better. At what?
#
# A small transformer plays Countdown: it must reach 35 with 3, 7 and 8, each used once; (8 − 3) · 7
# is right. GRPO with an exact grader trains it for 90 steps. Before and after, it wrote 64 answers
# to each of 64 new problems.

# %%
graded, answers = kept(runs / "countdown_kept_answers.json")
counts = {name: right_counts(graded, lines)       # right answers of 64,
          for name, lines in answers.items()}     # problem by problem
pictures.gained(counts, 64)

# %% [markdown]
# Before, one answer in three was right. After, it is more than one in two. Now ask for more tries:
# 16 answers to each problem. Before training, at least one of the 16 is right on 95 % of the
# problems. <!-- cited: 95 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.1", "After training (mean of three seeds), on what "
        "share of the problems is at least one of 16 right?",
        ["99 %: single answers got better, so do sixteen",
         "95 %: the same problems, solved more often",
         "89 %: some problems are lost", "75 %: many problems are lost"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def gap_at_16(path):
    """After minus before at k = 16: the mean, and its standard error."""
    right, rows = kept(runs / path)
    at = {name: np.array([pass_at_k(64, c, 16)
                          for c in right_counts(right, rows[name])])
          for name in ("base", "seed 0", "seed 1", "seed 2")}
    before = at.pop("base")
    gap = np.mean(list(at.values()), axis=0) - before
    return before.mean() + gap.mean(), gap.mean(), gap.std(ddof=1) / 8

after16, gap, error = gap_at_16("countdown_kept_answers.json")
_, again, error_again = gap_at_16("countdown_temperature.json")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.1", "89 %: some problems are lost",
       f"{after16:.2f}. The chance that at least one of k answers is right "
       "is called **pass@k**. The trained model is ahead up to k = 4; from "
       f"8 on the base is. The difference at 16 is {gap:+.2f}, with a "
       f"standard error of {error:.2f} over the 64 problems. That is "
       "likely, not certain. So we repeated everything, with a new base: "
       f"{again:+.2f}, error {error_again:.2f}. The loss is real.",
       pictures.crossing(counts, 64),
       instead={
           "99 %: single answers got better, so do sixteen":
           "One answer has gained. Sixteen have not.",
           "95 %: the same problems, solved more often":
           "Some problems that one of 16 answers solved are now missed.",
           "75 %: many problems are lost":
           "It loses a few problems, not a fifth.",
       })

# %% [markdown]
# ## pass@k from n answers
#
# How is such a curve made? Suppose you have ten answers to a problem, three of them right, and want
# pass@5. The obvious way takes 3/10 for the unknown chance: $1-(1-0.3)^5=0.83$. This is the
# **plug-in**.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.2", "Repeat: ten new answers, a new count, the "
        "plug-in. On average over many repeats it is",
        ["too high", "right", "too low", "high or low, depending on p"])

# %%
ten = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]              # 1: right
fives = list(combinations(ten, 5))
hits = sum(any(five) for five in fives)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.2", "too low",
       "The curve 1 − (1 − x)^k bends downwards: an unlucky count costs "
       "more than a lucky one brings. Seen otherwise: the plug-in draws "
       "five of the ten *with* putting back, and a repeated answer is a "
       "wasted try. So draw without: of the "
       f"{len(fives)} ways to choose five of the ten, {hits} contain a "
       f"right one, {hits / len(fives):.3f}. Look at the average of both, "
       "for a problem with p = 0.1 and k = 8.",
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
# Counting subsets is right on average. Here is why, line by line. $p$ is the chance that one answer
# to this problem is right; $n$ answers were drawn independently, $c$ of them are right.
#
# $$\begin{aligned}
# \text{pass@}k&=P(\text{at least one of }k\text{ is right})&&\text{definition}\\
# &=1-P(\text{all }k\text{ are wrong})&&\text{complement}\\
# &=1-P(\text{these }k\text{ of my }n\text{ are wrong})&&\text{any }k\text{ of them are }k\text{ independent draws}\\
# &=1-\mathbb E\big[\text{share of all-wrong subsets of size }k\big]&&\text{true of every subset, so of their mean}\\
# &=\mathbb E\left[1-\binom{n-c}{k}\Big/\binom nk\right]&&\text{such subsets are chosen from the }n-c\text{ wrong ones}
# \end{aligned}$$
#
# No line is a choice. It needs $n\ge k$, and is noisy for $n$ near $k$: take $n$ several times $k$.
# (`best@N` in verl's log is the plug-in.)

# %%
def subsets(n, c, k):
    return 1 - comb(n - c, k) / comb(n, k)

print(f"subsets {subsets(10, 3, 5):.4f}, plug-in {1 - 0.7**5:.4f}")
assert subsets(10, 3, 5) == hits / len(fives)

# %% [markdown]
# ## Lost and gained, problem by problem
#
# A curve is a mean. So test every problem by itself: could its two counts come from one and the
# same chance? (Fisher's exact test. There are 64 tests, so each must reach 0.05/64.)

# %%
before, after = counts["base"], counts["seed 0"]
sure = [fisher(b, a, 64) < 0.05 / 64 for b, a in zip(before, after)]
pictures.problem_by_problem(before, after, sure, 64)

# %% [markdown]
# This run lost **and** gained. Three problems fell to 0; they had been right 11, 13 and 16 times of
# 64. One rose from 0 to 22.
#
# To **sharpen** is to make likely answers likelier, so that unlikely ones vanish. To **learn**, on
# this page, is to solve what was out of reach. A crossing beyond its error bars shows a loss. It
# does not exclude a gain.
#
# In the next toy you decide which of the two happens. It has 200 problems with 40 possible answers
# each, one of them right. *Sharpening* multiplies all logits. *New skill* raises the right answer's
# logit on the hardest problems.

# %%
task("evaluation.t1", sharpen_or_learn.sharpen_or_learn_explorer(),
     ("Raise pass@1 by 0.25, by sharpening alone.",
      sharpen_or_learn.sharpened),
     ("Again +0.25 at least, with new skill on at most 10 % of the "
      "problems, and the base ahead nowhere. Start from your first "
      "solution.", sharpen_or_learn.little_skill))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. The base is ahead from k = 16. At k = 8 the sharpened model still leads. With 8 answers a
#    problem you would have called it learning.
# 2. You have to take sharpening *back*, to about 2. Keep it at 3 and the rare answers to the other
#    problems die. A model that learns and sharpens at once can look like one that only sharpens.
# </details>
# <details><summary>One level deeper: is training a lower temperature?</summary>
#
# To sample at temperature $T$ is to divide each token's logits by $T$. In the second run the loss
# at k = 16 is 0.13. Sampling the trained models at 1.5 brings back 0.02 ± 0.01 of it. So no
# temperature that we tried undoes training. (Sharpening whole answers is another thing; this does
# not exclude it.) Cooling the *base* to 0.5 lifts its pass@1 from 0.34 to 0.46; trained models
# reach 0.54 at 0.5. So give each model its own best temperature before you compare. Curves and
# error bars: [statements page](statements/17_evaluation.ipynb).
# <!-- cited: 0.13, 0.02, 0.01, 1.5, 0.5, 0.34, 0.46, 0.54 -->
# </details>
#
# ## Is it more than a vote?
#
# From here on a smaller task: arithmetic chains, from left to right, modulo 10. To 4+3−8=? the
# answer is 9. One answer of the base is right with chance 0.39, of the trained model with 0.93.
# <!-- cited: 0.39, 0.93 -->
#
# Without training there is the **vote**: sample many answers, take the digit given most often. A
# vote of 32 answers of the base is right on 216 of 250 problems. It is wrong on 34.

# %%
def vote(line):
    """The digit said most often; a dot could not be read."""
    said = line.replace(".", "")
    return max(said, key=said.count) if said else "."

digits, chains = kept(runs / "chain_kept_answers.json")
lost = np.array([vote(line) != digit
                 for digit, line in zip(digits, chains["base"])])
print(f"the vote is right on {(~lost).sum()}, wrong on {lost.sum()}")

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.3", "On these 34 problems the base writes 32 fresh "
        "answers. Their vote is wrong again on",
        ["34: there a wrong digit is the likelier one",
         "about 30: nearly all of them", "about 12: a third of them",
         "about 5: as on all 250 problems"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
_, fresh = kept(runs / "chain_fresh_answers.json")
fresh = fresh["base"]                             # 288 more answers each
twice = [vote(line[:32]) != d for d, line in zip(digits, fresh)]
large = np.array([vote(line) != d for d, line in zip(digits, fresh)])
twice = int((lost & np.array(twice)).sum())
chosen, judged = (np.mean([line.count(d) / len(line) for d, line, bad
                           in zip(digits, lines, lost) if bad])
                  for lines in (chains["base"], fresh))
ks = (1, 2, 4, 8, 16, 32, 96, 288)
voted = [np.mean([vote(line[i:i + k]) == d for d, line
                  in zip(digits, fresh) for i in range(0, 288, k)])
         for k in ks]
trained = np.mean([np.array(right_counts(digits, chains[f"seed {s}"])) / 32
                   for s in (0, 1, 2)])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.3", "about 12: a third of them",
       f"{twice}. Most of the 34 were bad luck: two digits close together, "
       "and 32 answers too few. The answers that chose these problems say "
       f"that the right digit has {chosen:.2f}; fresh ones say "
       f"{judged:.2f}. **Choose on some answers, judge on others.** "
       f"With 288 fresh answers {int((lost & large).sum())} of the 34 stay "
       f"wrong, and the vote on all 250 problems reaches {voted[-1]:.2f}: "
       "a large vote of the base beats one trained answer.",
       pictures.votes(voted, ks, trained),
       instead={
           "34: there a wrong digit is the likelier one":
           "A vote of 32 can lose although the right digit is likelier.",
           "about 30: nearly all of them":
           "That takes a clear lead of the wrong digit. Few have one.",
           "about 5: as on all 250 problems":
           "They are harder than the rest, so more than 14 % of them are "
           "lost again.",
       })

# %% [markdown]
# So the trained model's score does not show that it has learned more than a vote knows. What did
# training change? An answer opens in one of two **ways**. The base calculates step by step in four
# of ten answers; in the others it says a digit at once. Change that without any training: write the
# first token of the calculation for the base, and let it continue, always with its likeliest token.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.4", "The base, made to calculate, likeliest token "
        "each time. It is right on",
        ["about 40 %: the same weights know no more",
         "about 65 %: each step can still go wrong",
         "about 93 %: as good as the trained model",
         "100 %: better than the trained model"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
base = reports(runs / "chain_controls.json")["base"]
reveal("evaluation.4", "100 %: better than the trained model",
       "All 250 problems. Sampled at temperature 1 the forced way gives "
       f"{base['forced/steps']:.2f}; the rest is slips of a model that "
       "knows better. So on this task training taught nothing "
       "that the base could not do. It made the model choose the better "
       "way, and slip less on it. What it sharpened is a *way*, which all "
       "problems share.",
       pictures.ways({
           "base, one answer": voted[0],
           "base, made to calculate": base["forced/steps"],
           "trained, one answer": trained,
           "base, made to calculate, likeliest":
           base["forced/steps/greedy"]}),
       instead={
           "about 40 %: the same weights know no more":
           "They know more than one sampled answer shows.",
           "about 65 %: each step can still go wrong":
           "So it is when it *samples*. The likeliest token was right in "
           "every step.",
           "about 93 %: as good as the trained model":
           "The trained model still samples, and slips now and then.",
       })

# %% [markdown]
# **So far:** pass@k is a mean over subsets, and a crossing shows a loss, not the lack of a gain.
# Whether training taught something new, ask with fresh answers and against the best use of the
# base.
#
# ## Why training sharpens
#
# A policy's **entropy** says how undecided it is: $H=-\sum_i\pi_i\log\pi_i$, in nats. It is 0 if
# one answer is sure, and $\log K$ if $K$ answers are equally likely. Now take two policies. In both
# the right answer has a chance of 0.05.
#
# * **A**: five answers; the wrong ones have 0.64, 0.21, 0.07, 0.02.
# * **B**: forty answers; the wrong ones share the rest
#   evenly. <!-- cited: 0.64, 0.21, 0.07, 0.02 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.5", "A small step pushes the right answer up. "
        "The entropy",
        ["falls in both: the policy gets more decided",
         "rises in both: a rare answer catches up",
         "rises in A, falls in B", "falls in A, rises in B"])

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
       f"A: from {few[0]:.3f} to {few[1]:.3f}. B: from {many[0]:.3f} to "
       f"{many[1]:.3f}. Pushing an answer up raises the entropy only while "
       f"its chance is below e^(−H). That is {few[2]:.2f} in A and "
       f"{many[2]:.3f} in B: in B, 0.05 is not rare, but the likeliest "
       "answer of all. Where the edge comes from is derived next.",
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
# Derive it. The logits $z_i$ move by small $dz_i$; $\overline{dz}=\sum_j\pi_j\,dz_j$ is their mean.
# A **covariance** under $\pi$ is the mean product of two deviations, each answer weighed by its
# chance. It is above 0 where the two go together.
#
# $$\begin{aligned}
# dH&=-\sum_i d\pi_i\,\log\pi_i-\sum_i d\pi_i&&\text{product rule, and }\pi\,d\log\pi=d\pi\\
# &=-\sum_i d\pi_i\,\log\pi_i&&\text{probabilities sum to 1: }\textstyle\sum_id\pi_i=0\\
# &=-\sum_i\pi_i\,(dz_i-\overline{dz})\,\log\pi_i&&\text{softmax (02)}\\
# &=-\mathrm{Cov}_{\pi}(\log\pi,\ dz)&&\text{definition of a covariance under }\pi\\
# &\to-\eta\,\mathrm{Cov}_{\pi}(\log\pi,\ A)&&\textbf{a choice: each logit moves by }\eta A
# \end{aligned}$$
#
# In words: **entropy falls when what is likely is also what is good.** If only logit $i$ moves, by
# $\eta$, the fourth line is $dH=-\eta\,\pi_i(\log\pi_i+H)$. This is above 0 only if
# $\pi_i<e^{-H}$: that is what *rare* means.

# %%
entropy_pictures.quadrants()

# %%
task("evaluation.t2", entropy_step.entropy_step_explorer(),
     ("At least double the chance of the right answer, and gain 0.1 nats "
      "of entropy.", entropy_step.more_of_both),
     ("The covariance promises +0.2 or more, and the entropy falls.",
      entropy_step.broken_promise))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. A rare right answer and a step of middling size: a chance of 0.05 and a step of 2, for
#    example.
# 2. The same rare answer and a large step. It rises through the even middle and out on the other
#    side. The formula is the first order of a small step.
# </details>
#
# ### Does it hold for a network?
#
# There π is over the next token. We take single steps from the base
# of the chains, one prompt each, and compare the sign of the covariance with what the entropy did.
# One token $y$ estimates the covariance of its context by $(\log\pi(y)+H)\,A$; we average that over
# the step's tokens.

# %%
record = law(runs / "entropy_law.json")
entropy_pictures.law_on_a_run(record["alone, a tenth of the rate"])

# %% jupyter={"source_hidden": true}
alone = record["alone, a tenth of the rate"]
change = np.subtract(alone["after"], alone["before"])
def rank(x):
    return np.argsort(np.argsort(x))
def rank_correlation(x):
    return np.corrcoef(rank(x), rank(change))[0, 1]
print(f"of all steps entropy rose in {np.mean(change > 0):.0%}, "
      f"fell in {np.mean(change < 0):.0%}")
print("rank correlation with the change: law "
      f"{rank_correlation(-np.array(alone['per_token'])):.2f}, "
      f"exact first order {rank_correlation(alone['linear']):.2f}")

# %% [markdown]
# Compare with all steps. When the law says "rises", it is right in 59 %; of all steps 16 % rise.
# When it says "falls", it is right in 89 %; of all steps 83 % fall. So the law is a signal, and a
# weak one: its rank correlation with the change is 0.40.
#
# The steps are small enough, because the gradient of $H$ times the true step gives 0.97. The rest
# is lost in between: one token stands for a whole context, all contexts share the weights, and Adam
# rescales. We did not separate these three.
#
# <details><summary>One level deeper: which tokens carry it, and remedies</summary>
#
# A few tokens hold most of it: those where the model chooses a way or works out a digit.
# **Clip-Cov** and **KL-Cov** aim at them: verl's `clip_cov` draws 0.02 % of all tokens at random
# from a band of covariance 1 to 5 and stops their gradient. With our few tokens that is one token a
# step. So we tested another arm: up to 2 % of tokens, drawn from all those above 0.2. They are 4.7
# % of the tokens in the first step, and 1.0 % in the twentieth. It keeps three times the entropy
# and has learned less after 40 steps. As many tokens drawn anywhere change neither. That is no
# verdict on Clip-Cov. Pictures and arms: [statements page](statements/17_evaluation.ipynb).
# <!-- cited: 0.02 %, 0.2, 4.7 %, 1.0 % -->
# </details>
# <details><summary>In a library</summary>
#
# verl: `clip_cov`, `kl_cov`, bonus `entropy_coeff`. TRL: `top_entropy_quantile` (only the tokens of
# highest entropy get a gradient, [2506.01939](https://arxiv.org/abs/2506.01939)), clip-higher
# `epsilon_high` (11).
# </details>

# %% [markdown]
# **That is the core; the rest is practice.**
#
# ## Find the fault
#
# Five runs of the chain model, 40 steps each. One is healthy, four were made sick on purpose. The
# reward is what the run was paid; the held-out score ◆ is graded exactly, on new problems. Each
# batch serves one update. One cause can have two symptoms: look which comes first. Try A and C
# freely; B, D and E are the tasks.

# %%
task("evaluation.t3", five_runs.five_runs_explorer(),
     *((f"Diagnose run {run}.", five_runs.named(run)) for run in "BDE"))

# %% [markdown]
# <details><summary>The five, and what gave them away</summary>
#
# * **A**: reward far above the held-out score. The grader accepts the right digit *anywhere*.
# * **B**: the ratio leaves 1 although every batch is used once: answers were eight updates old, and
#   there was no clip. The rest follows: rewards below the held-out score, because older weights
#   earned them, spikes in the gradient, a slow start.
# * **C**: healthy, and at the end it has the lowest entropy of the five. **Low entropy is no fault
#   by itself**; it is one if the score stands still or pass@k falls.
# * **D**: ten times the learning rate. The score drops within four steps, entropy *rises*, and only
#   then do answers run into the limit. First in time is the cause. At the end the gradient is 0:
#   all groups are wrong.
# * **E**: a limit of 24 tokens. Cut answers count as wrong, so the start is low, and the model
#   learns to answer at once. Entropy rises: a guess among ten digits is undecided.
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Evaluation | |
# |---|---|
# | sentence | curves that cross beyond their error bars: something was lost; what was gained, test problem by problem |
# | formula | pass@k: $1-\binom{n-c}k/\binom nk$ · entropy: $dH\approx-\eta\,\mathrm{Cov}_\pi(\log\pi,A)$, rare: $\pi<e^{-H}$ |
# | picture | two pass@k curves that cross; four corners, two eat entropy |
# | numbers | n = 10, c = 3, k = 5: 0.917, plug-in 0.832 · of 34 lost votes 12 are lost again on fresh answers |
# | choice | a logit moves by $\eta A$; in a network a weak signal, rank correlation 0.40 |
# | log | reward *and* held-out score with an error bar, entropy, length, share cut, gradient norm, ratio, mixed groups |

# %%
score(*(f"evaluation.{i}" for i in range(1, 6)))

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
# **2 Implement** · 8 minutes. The vote for many problems: `answers` (P, n) holds whole numbers as
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
# A minute each, aloud, then unfold.
#
# <details><summary><b>Did RL teach the model something new?</b></summary>
#
# A crossing shows that something was lost, not that nothing was gained. I compare pass@k up to
# large k, each model at its best temperature and prompt, with error bars. Then problem by problem,
# chosen on some answers and judged on others. At large k a lucky guess passes: one digit gives
# 1 − 0.9³² = 0.97. So I read the reasoning, too. Open for long training: 2504.13837 sees crossings,
# ProRL (2505.24864) gains. <!-- cited: 0.97, 0.25, 0.091, 0.05 -->
# </details>
# <details><summary><b>How do you estimate pass@k?</b></summary>
#
# Draw n answers, count c right ones, average 1 − C(n−c, k)/C(n, k) over problems. Any k of n
# independent answers are k independent draws, so this is unbiased. The plug-in 1 − (1 − c/n)^k
# is concave in c/n, so too low. Refuse k above n.
# </details>
# <details><summary><b>Why does entropy collapse in RL?</b></summary>
#
# Because likely answers are usually the good ones. A small step changes entropy by minus the
# covariance, under the policy, of log-probability and logit change. Pushing up what is likely and
# pushing down what is rare both lower it. Pushing up rare right answers raises it.
# </details>
# <details><summary><b>Entropy fell by a factor of ten. Do you stop the run?</b></summary>
#
# Not for that alone. I look at the held-out score, at the share of mixed groups and at pass@k. If
# the score rises, deciding is what learning looks like. If it stands still and groups are silent,
# the run has stopped exploring.
# </details>
# <details><summary><b>pass@1, avg@32, maj@32, pass@32: what is what?</b></summary>
#
# The first two have one mean; avg@32 has less noise. maj@32 asks whether the commonest answer is
# right, pass@32 whether any is; pass^32 asks for all, which is what reliability means. maj@32 can
# lie below avg@32: where the commonest answer is wrong, voting makes it worse. Greedy is one answer
# and another policy: never compare it with a sampled score.
# </details>
# <details><summary><b>The reward climbs, the held-out score does not. What now?</b></summary>
#
# The grader pays for something else. I read twenty answers with reward 1, regrade them by an exact
# or human check, and look for the shortcut. If graders agree, I compare the prompts: the training
# set may be easier, or leaked.
# </details>
# <details><summary><b>A benchmark of 30 problems, half solved. How sure is the score?</b></summary>
#
# Nine points: √(0.25/30) = 0.091. avg@32 cuts the noise of sampling, not of which 30 problems they
# are. So I compare two models paired by problem, with several seeds. And 0 of 64 answers does not
# mean impossible: a chance of 0.05 gives that once in 27 times.
# </details>
# <details><summary><b>Random rewards raised the score. How?</b></summary>
#
# Not by information in the reward. Either training strengthened a way that the base preferred
# already, or the base has seen the test: reported for Qwen models on MATH. I add a random-reward
# arm, test on problems newer than the model, change the numbers in old ones, and see whether the
# gain stays.
# </details>
#
# What else is said about learning and sharpening, temperature, learnability and curricula,
# best-of-N under a budget, test-time scaling: [statements 17](statements/17_evaluation.ipynb). The
# exercises, solved: [solutions 17](solutions/17_evaluation.ipynb).
#
# **Next: [18](18_agents.ipynb).** What changes when an answer has many turns, and a world that
# answers back?
