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
# 26 minutes, exercises 31 more · after 08 (GRPO), 11 (DAPO) · pass@k: Chen et al. 2021,
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
from rlnb.training import data_folder, pass_at_k
from rlnb.training.studies.entropy_law import law
from rlnb.training.studies.kept_answers import kept, right_counts
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)
runs = data_folder() / "runs"

# %% [markdown]
# ## It got better. At what?
#
# Countdown: reach 35 with 3, 7 and 8, each used once. Answer: (8 − 3) · 7. A small transformer has
# imitated worked examples. Then come 90 steps of GRPO with an exact grader. Before and after, the
# model wrote 64 answers to each of 64 problems that it had never seen, and each was graded:

# %%
graded, answers = kept(runs / "countdown_kept_answers.json")
counts = {name: right_counts(graded, lines)       # right answers of 64,
          for name, lines in answers.items()}     # problem by problem
pictures.gained(counts, 64)

# %% [markdown]
# One answer in three was right, now it is more than one in two. Did the model learn to solve
# problems that it could not solve? Give it more tries: 16 answers to a problem. Before training, at
# least one of the 16 is right on 95 % of the problems. <!-- cited: 95 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.1", "At least one of 16 is right: after training, on "
        "what share of the problems, mean of the three seeds?",
        ["99 %: it can only have gained",
         "95 %: single answers got better, the reach stays", "89 %",
         "75 %"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
at16 = {name: np.mean([pass_at_k(64, c, 16) for c in row])
        for name, row in counts.items()}
seeds = np.mean([[pass_at_k(64, c, 16) for c in counts[f"seed {s}"]]
                 for s in (0, 1, 2)], axis=0)
gap = seeds - [pass_at_k(64, c, 16) for c in counts["base"]]
error = gap.std(ddof=1) / 8

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.1", "89 %",
       ", ".join(f"{v:.2f} ({name})" for name, v in at16.items())
       + ". The chance that at least one of k answers is right is called "
       "**pass@k**. The trained model is ahead up to k = 4. From 8 on the "
       f"base is. At 16 the gap is {gap.mean():.3f}, with a standard error "
       f"of {error:.3f} over the 64 problems: about two of them, so "
       "likely, not certain. At 8 and at 64 it could be chance.",
       pictures.crossing(counts, 64),
       instead={
           "99 %: it can only have gained":
           "One answer has gained. Sixteen have not.",
           "95 %: single answers got better, the reach stays":
           "Some problems that one of 16 answers solved are now missed.",
           "75 %":
           "It loses a few problems, not a fifth.",
       })

# %% [markdown]
# Where did they go? A dot is a problem:

# %%
pictures.problem_by_problem(counts["base"], counts["seed 0"], 64)

# %% [markdown]
# Four problems fell to 0. They had been right 5 to 16 times of 64. But look at the grey strip: of
# the twelve rarest, ten *rose*, one from 0 to 22. So this run lost **and** gained. (In the other
# seeds 8 and 5 of the twelve rose.)
#
# To **sharpen** is to make likely answers likelier and unlikely ones vanish. To **learn**, on this
# page, is to solve what was out of reach. The crossing shows the first. It does not exclude the
# second.
#
# Here is a toy in which you decide which of the two happens: 200 problems, each with 40 possible
# answers, one of them right. *Sharpening* multiplies all logits; that is a lower **temperature**.
# *New skill* raises the right answer's logit on the hardest problems.

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
#
# </details>
#
# ## Is training a lower temperature?
#
# To sample at temperature $T$ is to divide the logits by $T$. In the toy, sampling at 3 undoes a
# sharpening of 3 exactly. Try it on Countdown: the recipe trained again, three new models, with
# pass@16 near 0.8; the base has 0.95. Sample the three hotter, at 1.5.
# <!-- cited: 0.8, 0.95, 1.5 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.2", "pass@16 of the trained models at temperature 1.5",
        ["about 0.95: what was lost is back", "about 0.9: half of it is",
         "no higher than at 1", "far lower, 0.5: hot answers are noise"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
problems, warmed = kept(runs / "countdown_temperature.json")
heat = {}                                        # (who, T): pass@k
for name, lines in warmed.items():
    who, _, T = name.partition(", T = ")
    rows = [[pass_at_k(64, c, k) for k in (1, 2, 4, 8, 16, 32, 64)]
            for c in right_counts(problems, lines)]
    who = "before" if who == "base" else "after"
    heat.setdefault((who, float(T or 1)), []).append(np.mean(rows, axis=0))
heat = {key: np.mean(rows, axis=0) for key, rows in heat.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.2", "no higher than at 1",
       f"{heat['after', 1.0][4]:.2f} at temperature 1, "
       f"{heat['after', 1.5][4]:.2f} at 1.5. Heat does not bring back what "
       "was lost. And the other way round: the *base* at 0.5 has "
       f"pass@1 {heat['before', 0.5][0]:.2f} (at 1: "
       f"{heat['before', 1.0][0]:.2f}; trained: "
       f"{heat['after', 1.0][0]:.2f}) and loses nothing at k = 16: "
       f"{heat['before', 0.5][4]:.2f}. Cooling pushes every token towards "
       "what the model already prefers there; training also changed "
       "*what* it prefers.",
       pictures.heated(heat),
       instead={
           "about 0.95: what was lost is back":
           "In the toy it is. There, training was nothing but a "
           "temperature.",
           "about 0.9: half of it is":
           "Not even half.",
           "far lower, 0.5: hot answers are noise":
           "Single answers do get worse; sixteen tries make up for it.",
       })

# %% [markdown]
# So give each model its own best temperature before you compare, the base above all: a good part of
# the gain in pass@1 was to be had without training.
#
# ## pass@k from n answers
#
# To draw such a curve you need pass@5, say, from the ten answers that you have. Three of them are
# right. The obvious way puts 3/10 in the place of the unknown chance: $1-(1-0.3)^5=0.83$. Call it
# the **plug-in**.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.3", "Repeat: ten new answers, a new count, the "
        "plug-in. On average over many repeats it is",
        ["too high", "right", "too low", "high or low, depending on p"])

# %%
ten = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]              # 1: right
fives = list(combinations(ten, 5))
hits = sum(any(five) for five in fives)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.3", "too low",
       "1 − (1 − x)^k bends downwards in x, so chance in the count x = c/n "
       "costs more below than it brings above. In other words: the plug-in "
       "draws five of the ten *with* putting back, and a draw that repeats "
       "an answer is a wasted try. Draw without: of the "
       f"{len(fives)} ways to choose five of the ten, {hits} contain a "
       f"right one, {hits / len(fives):.3f}. The picture has the average "
       "of both, for a problem with p = 0.1 and k = 8.",
       pictures.estimates(0.1, 8),
       instead={
           "too high":
           "A lucky count lifts it less than an unlucky one lowers it.",
           "right":
           "Its mean is not (1 − p) to the power k.",
           "high or low, depending on p":
           "The curve bends one way everywhere, so one side for all p.",
       })

# %% [markdown]
# Why counting subsets is right on average, line by line. $p$ is the chance that one answer to this
# problem is right; $n$ answers were drawn independently, $c$ of them are right.
#
# $$\begin{aligned}
# \text{pass@}k&=P(\text{at least one of }k\text{ is right})&&\text{definition}\\
# &=1-P(\text{all }k\text{ are wrong})&&\text{complement}\\
# &=1-P(\text{these }k\text{ of my }n\text{ are wrong})&&\text{any }k\text{ of them are }k\text{ independent draws}\\
# &=1-\mathbb E\big[\text{share of all-wrong subsets of size }k\big]&&\text{true of every subset, so of their mean}\\
# &=\mathbb E\left[1-\binom{n-c}{k}\Big/\binom nk\right]&&\text{such subsets are chosen from the }n-c\text{ wrong ones}
# \end{aligned}$$
#
# No line is a choice. It needs $n\ge k$, and few answers make it noisy: take $n$ several times $k$.
# Yue et al. go up to k = 1,024; a training log that evaluates 8 answers a problem ends at 8.
# `best@N` in verl's log is the plug-in.

# %%
def subsets(n, c, k):
    return 1 - comb(n - c, k) / comb(n, k)

print(f"subsets {subsets(10, 3, 5):.4f}, plug-in {1 - 0.7**5:.4f}")
assert subsets(10, 3, 5) == hits / len(fives)

# %% [markdown]
# ## Is it more than a vote?
#
# If training only makes likely answers likelier, it does what a **vote** does: sample many answers,
# take the one given most often. So compare. Another small model does arithmetic chains, from left
# to right, modulo 10: to 4+3−8=? the answer is 9, one of ten digits. One answer of the base is
# right with chance 0.39.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.4", "It votes with 32 answers. On which share of the "
        "problems does the vote come out right?",
        ["about 0.4: most votes are wrong", "about 0.6", "about 0.9",
         "1: one of the 32 is always right"])

# %%
def vote(line):
    """The digit said most often; a dot could not be read."""
    said = line.replace(".", "")
    return max(said, key=said.count) if said else "."

digits, chains = kept(runs / "chain_kept_answers.json")
ks, voted = (1, 2, 4, 8, 16, 32), []
for k in ks:                                      # blocks of k answers
    wins = [vote(line[i:i + k]) == digit
            for digit, line in zip(digits, chains["base"])
            for i in range(0, 32, k)]
    voted.append(np.mean(wins))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
ones = {name: np.array(right_counts(digits, lines)) / 32
        for name, lines in chains.items()}
trained = np.mean([ones[f"seed {s}"] for s in (0, 1, 2)])
wrong = [line.replace(".", "").replace(digit, "")
         for digit, line in zip(digits, chains["base"])]
worst = np.mean([x.count(vote(x)) / 32 for x in wrong])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("evaluation.4", "about 0.9",
       f"{voted[-1]:.2f}. The right answers meet on one digit. The wrong "
       f"ones scatter: the commonest wrong digit has {worst:.0%} of the "
       "answers on average. The vote pays 32 answers for every question. "
       "GRPO paid once: of the trained model *one* answer is right with "
       f"chance {trained:.2f}.",
       pictures.votes(voted, ks, trained),
       instead={
           "about 0.4: most votes are wrong":
           "A right answer at 0.4 needs no majority, only more votes than "
           "any other.",
           "about 0.6":
           "Wrong answers do not agree with each other.",
           "1: one of the 32 is always right":
           "One right vote of 32 does not win.",
       })

# %% [markdown]
# So far training looks like a cheap vote. Now take only the 34 problems on which the vote of 32 is
# *wrong*. There a wrong digit was the likelier one, and one answer of the base is right with chance
# 0.22. <!-- cited: 0.22 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.5", "On these 34 problems, one answer of the trained "
        "model is right with chance",
        ["about 0.05: what is outvoted dies out",
         "about 0.2: nothing to sharpen there", "about 0.5",
         "about 0.9: as everywhere"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
lost = np.array([vote(line) != digit
                 for digit, line in zip(digits, chains["base"])])
there = {name: row[lost].mean() for name, row in ones.items()}
reveal("evaluation.5", "about 0.9: as everywhere",
       "Not a vote on digits, then. An answer is a path: the base either "
       "calculates step by step, or says a digit at once, and guesses. "
       "Training made the first *way* likelier. The rule is the same on "
       "all problems, so it also helps where the right digit was outvoted. "
       "What is sharpened is a habit.",
       pictures.outvoted(there, int(lost.sum())),
       instead={
           "about 0.05: what is outvoted dies out":
           "So it would be if each problem had its own logits, as in the "
           "toy.",
           "about 0.2: nothing to sharpen there":
           "The way to calculate is shared by all problems.",
           "about 0.5":
           "It is nearly as good there as anywhere.",
       })

# %% [markdown]
# A warning remains. A group without a right answer teaches GRPO nothing. And with answers of one
# digit, pass@32 shows nothing: blind guessing reaches $1-0.9^{32}=0.97$. <!-- cited: 0.97 -->
#
# ## Why training sharpens
#
# How undecided a policy is, its **entropy** says, in nats: $H=-\sum_i\pi_i\log\pi_i$. It is 0 if
# one answer is sure and $\log K$ if $K$ answers are equally likely.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.6", "One prompt. The right answer has a chance of "
        "one in twenty. A small step pushes it up. The entropy",
        ["falls: every step towards the right answer decides something",
         "rises", "stays: what one answer gains the others lose"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
rare, usual = (entropy_step.compute(p, 0.5) for p in (0.05, 0.5))
reveal("evaluation.6", "rises",
       f"From {rare['start']:.3f} to {rare['end']:.3f} nats, in the toy "
       "below: the answers get more even. The same step at a chance of one "
       f"half: from {usual['start']:.3f} to {usual['end']:.3f}. So it "
       "depends on what is pushed, and how likely that already is.",
       instead={
           "falls: every step towards the right answer decides something":
           "Towards an answer that is rare, it makes things more even "
           "first.",
           "stays: what one answer gains the others lose":
           "They gain and lose. The entropy is not the sum.",
       })

# %% [markdown]
# Derive it. The logits $z_i$ move by small $dz_i$; $\overline{dz}=\sum_j\pi_j\,dz_j$ is their mean.
# A **covariance** under $\pi$ is the mean product of two deviations, each answer weighed by its
# chance: above 0 where the two go together.
#
# $$\begin{aligned}
# dH&=-\sum_i d\pi_i\,\log\pi_i-\sum_i d\pi_i&&\text{product rule, and }\pi\,d\log\pi=d\pi\\
# &=-\sum_i d\pi_i\,\log\pi_i&&\text{probabilities sum to 1: }\textstyle\sum_id\pi_i=0\\
# &=-\sum_i\pi_i\,(dz_i-\overline{dz})\,\log\pi_i&&\text{softmax (02)}\\
# &=-\mathrm{Cov}_{\pi}(\log\pi,\ dz)&&\text{definition of a covariance under }\pi\\
# &\to-\eta\,\mathrm{Cov}_{\pi}(\log\pi,\ A)&&\textbf{a choice: each logit moves by }\eta A
# \end{aligned}$$
#
# The last line is a model of a step. (The plain gradient of page 02 moves a logit by
# $\eta\,\pi_i(A_i-\bar A)$; put that in the place of $dz$ and the line before still holds.) In
# words: **entropy falls when what is likely is also what is good.**

# %%
pictures.quadrants()

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
#    side. The formula is the first order of a small step. Added up over a whole training, entropy
#    rises first if right answers were rare, and falls in the end.
# </details>
#
# ## Does it hold for a network?
#
# From here on π is over the next **token**, in the context of the prompt and the tokens so far. One
# token $y$ estimates the covariance of its context by $(\log\pi(y)+H)\,A$: its deviation from the
# mean of log π, which is −H, times its advantage. We average that over a step's tokens, and measure
# the entropy on the same contexts before and after the update. Left, 40 steps of three seeds.

# %%
record = law(runs / "entropy_law.json")
steps = [record[f"plain, seed {seed}"] for seed in (0, 1, 2)]
for name, runs_of in (("training", steps),
                      ("alone", [record["alone, a tenth of the rate"]])):
    cov, change, exact = (np.concatenate(x) for x in zip(*(
        (s["per_token"], np.subtract(s["after"], s["before"]), s["linear"])
        for s in runs_of)))
    up = cov < 0                                  # the law says: it rises
    print(f"{name}: 'falls' {(~up).sum()}, fell {(change[~up] < 0).sum()}; "
          f"'rises' {up.sum()}, rose {(change[up] > 0).sum()}; exact first "
          f"order right in {(exact * change > 0).sum()}")
pictures.law_on_a_run(record)

# %% [markdown]
# In training the covariance is above 0 in every step: what the model finds likely tends to be
# right. A rule that always says "falls" cannot fail, so the right panel is the test: single steps
# from the base, one prompt each, a tenth of the learning rate. Now both signs occur. Where the
# covariance says "falls", it fell in nine of ten; where it says "rises", it rose in six of ten.
# <!-- cited: 0.9 -->
#
# What breaks it? Not the first order: the gradient of $H$ times the step really made is right in
# 263 of 272. It is **the line in bold**. Contexts share their weights and Adam rescales each one,
# so no logit moves by just $\eta A$. Use the law for the direction of a run, not for one step.
#
# Where in an answer does this happen? Two answers of the first step, by the base model. The first
# token chooses a style: calculate step by step, or `so` and the digit at once.

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
pictures.forks([rows[2], rows[1]])

# %% [markdown]
# At the dark tiles the model chooses; the rest is copying. So remedies can aim at few tokens. Three
# of them, and a control, on the same model, 40 steps, three seeds:
#
# * **Clip-Cov**: the few tokens with the largest covariance get no gradient (here 2 % of them).
# * The control: as many tokens, drawn at random, get none.
# * **80/20**: only the fifth of the tokens with the highest entropy gets a gradient.
# * **Entropy bonus**: add $0.01\,H$ to the objective.

# %%
pictures.arms(record, [
    "plain", "Clip-Cov, 2 % of tokens", "2 % of tokens at random",
    "80/20", "entropy bonus 0.01"])

# %% [markdown]
# Clip-Cov keeps three times the entropy, and has learned less in these 40 steps. The control
# changes neither: the same few tokens carry the loss of entropy and the learning. The other two
# keep no more entropy than plain, and in some seeds both scores end lower. None gains at k = 8:
# there was nothing left to gain. (The authors report gains in long runs of large models.) **Low
# entropy is no fault by itself.** It is one if the score stands still or pass@k falls.
#
# <details><summary>In a library</summary>
#
# Clip-Cov: verl `clip_cov`, and its sister `kl_cov`, a KL pull on the same tokens. 80/20
# ([2506.01939](https://arxiv.org/abs/2506.01939)): TRL `top_entropy_quantile`. Bonus: verl
# `entropy_coeff`. Clip-higher (11): TRL `epsilon_high`; with one update a batch no ratio leaves 1
# and it does nothing, so it is not among the arms.
# </details>
# <details><summary>One level deeper: is entropy a budget that buys score?</summary>
#
# Cui et al. fit score = −a exp(H) + b along runs without a remedy: spend the entropy and the
# ceiling is b − a. On our healthy runs the fit is good. Under Clip-Cov the same entropy comes with
# a score 0.1 higher than the fit says, and an entropy term with the wrong sign, which should have
# ruined a run, halved the entropy and left the score about where it was. Both are computed on the
# [statements page](statements/17_evaluation.ipynb). <!-- cited: 0.1 -->
# </details>
#
# ## Find the fault
#
# Five runs of the chain model, 40 steps each. One is healthy. The others were made sick on purpose.
# The held-out score is pass@1 on new problems by an exact grader; the reward is what the run was
# paid. A batch serves one update. (TRL logs these panels as `reward`, `entropy`,
# `completions/mean_length`, `completions/clipped_ratio` and `grad_norm`; of the ratio it logs what
# the clip cut.) Look before you press: each symptom has more than one cause.

# %%
task("evaluation.t3", five_runs.five_runs_explorer(),
     *((f"Diagnose run {run}.", five_runs.named(run)) for run in "ABCDE"))

# %% [markdown]
# <details><summary>The five, and what gave them away</summary>
#
# * **A**: reward far above the held-out score. The grader accepts the right digit *anywhere*.
# * **B**: the ratio leaves 1 although every batch is used once: answers were eight updates old, and
#   there was no clip. The rest follows: rewards below the held-out score, because older weights
#   earned them, spikes in the gradient, a slow start.
# * **C**: healthy, and at the end it has the lowest entropy of the five.
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
# | sentence | curves cross: something was lost; whether something was gained, count problem by problem |
# | formula | pass@k: $1-\binom{n-c}k/\binom nk$ · entropy: $dH\approx-\eta\,\mathrm{Cov}_\pi(\log\pi,A)$ |
# | picture | two pass@k curves that cross; four corners, two eat entropy |
# | numbers | n = 10, c = 3, k = 5: 0.917, plug-in 0.832 · base 0.39, its vote of 32: 0.86, trained 0.93 |
# | choice | a logit moves by $\eta A$; true in direction over a run, not step by step |
# | log | reward *and* held-out score with an error bar, entropy, length, share cut, gradient norm, ratio, mixed groups |

# %%
score(*(f"evaluation.{i}" for i in range(1, 7)))

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
# large k, each model at its best temperature, with error bars, and make sure that blind guessing
# cannot pass. Then problem by problem: which rose from near 0, which fell to 0? Open for long
# training: 2504.13837 sees crossings, ProRL (2505.24864) gains. To widen reach for sure, distil a
# stronger model.
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
# right, pass@32 whether any is. pass@32 is never below maj@32 on the same answers. maj@32 can lie
# below avg@32: where the commonest answer is wrong, voting makes it worse.
# </details>
# <details><summary><b>The reward climbs, the held-out score does not. What now?</b></summary>
#
# The grader pays for something else. I read twenty answers with reward 1, regrade them by an exact
# or human check, and look for the shortcut. If graders agree, I compare the prompts: the training
# set may be easier, or leaked.
# </details>
# <details><summary><b>63 of 64 problems solved before, 60 after. Is that a loss?</b></summary>
#
# Not by itself. The unit is the problem: 64 of them give a standard error of a few points, so I
# pair by problem, use several seeds and give the error of the difference. And 0 of 64 answers does
# not mean impossible: a chance below 0.05 is compatible with it (0.95 to the power 64 is 0.04).
# <!-- cited: 0.05, 0.95, 0.04 -->
# </details>
#
# What else is said about learning and sharpening, learnability and curricula, best-of-N under a
# budget, test-time scaling: [statements 17](statements/17_evaluation.ipynb). The exercises, solved:
# [solutions 17](solutions/17_evaluation.ipynb).
#
# **Next: [18](18_agents.ipynb).** What changes when an answer has many turns, and a world that
# answers back?
