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
# **After this page** you can estimate pass@k without bias, say what it means when two such curves
# cross, derive what a training step does to entropy, and find the fault behind a sick run.
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
from rlnb.training import data_folder
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
# problems that it could not solve? Count the problems that at least one of its 64 answers solves.
# Before training: 63 of the 64.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.1", "After training, mean of the three seeds?",
        ["64: it can only have gained", "63", "about 61", "about 50"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
found = {name: sum(c > 0 for c in row) for name, row in counts.items()}
reveal("evaluation.1", "about 61",
       ", ".join(f"{n} ({name})" for name, n in found.items())
       + ". The chance that at least one of k answers is right is called "
       "**pass@k**. The trained model is ahead up to k = 4. From k = 8 on "
       "the base is, in two seeds to the end; in the third the last "
       "points meet.",
       pictures.crossing(counts, 64),
       instead={
           "64: it can only have gained":
           "One answer has gained. What of the others?",
           "63":
           "A little lower.",
           "about 50":
           "It does not forget that much.",
       })

# %% [markdown]
# Where did they go? A dot is a problem:

# %%
pictures.problem_by_problem(counts["base"], counts["seed 0"], 64)

# %% [markdown]
# Most problems gained, the easy ones nearly up to 64. Of those that were solved rarely, some are
# not solved at all any more. To **sharpen** is to make likely answers likelier and unlikely ones
# vanish. To **learn**, on this page, is to solve what was out of reach.
#
# Here is a toy in which you decide which of the two happens: 200 problems, each with 40 possible
# answers, one of them right. *Sharpening* multiplies all logits. *New skill* raises the right
# answer's logit on the hardest problems.

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
# Now compare the right panel with the dots of the real run. Pure sharpening puts all dots near one
# curve. The real ones scatter, and one goes from 0 to 22 of 64: training also changed the style,
# from answering at once to searching. So a crossing says that something was lost. It does not say
# that nothing was gained.
# </details>
#
# ## pass@k from n answers
#
# To draw such a curve you need pass@5, say, from the ten answers that you have. Three of them are
# right. The obvious way puts 3/10 in the place of the unknown chance: $1-(1-0.3)^5=0.83$. Call it
# the **plug-in**.

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
       "The plug-in draws five of the ten *with* putting back. It can draw "
       "the same wrong answer twice, and that is a wasted try. So draw "
       f"without: of the {len(fives)} ways to choose five of the ten, "
       f"{hits} contain a right one, {hits / len(fives):.3f}. The picture "
       "has the average of both, for a problem with p = 0.1 and k = 8.",
       pictures.estimates(0.1, 8),
       instead={
           "too high":
           "With putting back, the same wrong answer is drawn twice.",
           "right":
           "Its mean is not (1 − p) to the power k.",
           "high or low, depending on p":
           "For every p between 0 and 1 it is on one side.",
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
# A number called `best@N` in verl's log is the plug-in: it draws with putting back
# ([pull request 7240](https://github.com/verl-project/verl/pull/7240) adds the other).

# %%
def subsets(n, c, k):
    return 1 - comb(n - c, k) / comb(n, k)

print(f"subsets {subsets(10, 3, 5):.4f}, plug-in {1 - 0.7**5:.4f}")
assert subsets(10, 3, 5) == hits / len(fives)

# %% [markdown]
# ## What sharpening is worth
#
# pass@k needs somebody who sees which of the k answers is right. Without one you can still let them
# **vote**: take the answer given most often. Another small model does arithmetic chains, from left
# to right, modulo 10: to 4+3−8=? the answer is 9. One of its answers is right with chance 0.39.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.3", "It votes with 32 answers. On which share of the "
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
# the answer
ones = {name: np.mean(right_counts(digits, lines)) / 32
        for name, lines in chains.items()}
trained = np.mean([ones[f"seed {s}"] for s in (0, 1, 2)])
base_c = right_counts(digits, chains["base"])
passed = [np.mean([subsets(32, c, k) for c in base_c]) for k in ks]
wrong = [line.replace(".", "").replace(digit, "")
         for digit, line in zip(digits, chains["base"])]
worst = np.mean([x.count(vote(x)) / 32 for x in wrong])
reveal("evaluation.3", "about 0.9",
       f"{voted[-1]:.2f}. The right answers meet on one digit. The wrong "
       f"ones scatter: the commonest wrong digit has {worst:.0%} of the "
       "answers on average. A vote sharpens, too, and pays for it at "
       "every question. GRPO paid once: of the trained model *one* answer "
       f"is right with chance {trained:.2f}, mean of three seeds.",
       pictures.votes({"pass@k": passed, "vote": voted}, ks, trained),
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
# So "only sharpened" is no insult. It is a warning: what the base never says, no vote can find, and
# a group without a right answer teaches GRPO nothing.
#
# ## Why training sharpens
#
# How undecided a policy is, its **entropy** says, in nats: $H=-\sum_i\pi_i\log\pi_i$. It is 0 if
# one answer is sure and $\log K$ if $K$ answers are equally likely.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.4", "One prompt. The right answer has a chance of "
        "one in twenty. A small step pushes it up. The entropy",
        ["falls: every step towards the right answer decides something",
         "rises", "stays: what one answer gains the others lose"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
rare, usual = (entropy_step.compute(p, 0.5) for p in (0.05, 0.5))
reveal("evaluation.4", "rises",
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
# 1. A rare right answer and a step of 1 to 3: a chance of 0.05 and a step of 2, for example.
# 2. The same rare answer and a large step. It rises through the even middle and out on the other
#    side. The formula is the first order of a small step. Added up over a whole training, entropy
#    rises first if right answers were rare, and falls in the end.
# </details>
#
# ## Does it hold for a network?
#
# Chains again: 40 steps, three seeds. In every step we measured the entropy on the step's own
# contexts before and after the update, and the covariance from the sampled tokens. A context is the
# prompt and the tokens so far; in each $\mathbb E[\log\pi]=-H$, so one token estimates its
# covariance by $(\log\pi+H)A$.

# %% jupyter={"source_hidden": true}
# your guess
predict("evaluation.5", "In how many of the 120 steps is the covariance, "
        "averaged over the tokens, above 0?",
        ["about 60: rewards know nothing of likelihood", "about 90",
         "all 120"])

# %%
record = law(runs / "entropy_law.json")
steps = [record[f"plain, seed {seed}"] for seed in (0, 1, 2)]
cov, before, after = (np.concatenate([s[key] for s in steps])
                      for key in ("per_token", "before", "after"))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
alike = np.corrcoef(-cov, after - before)[0, 1]
reveal("evaluation.5", "all 120",
       f"Above 0 in {(cov > 0).sum()}, and the entropy fell in "
       f"{(after < before).sum()}. What the model finds likely tends to be "
       "right, from the first step on. The sign is the law's. The size is "
       f"not (correlation {alike:.2f}): the optimizer is Adam, and all "
       "contexts share their weights (measured on the statements page).",
       pictures.law_on_a_run(record),
       instead={
           "about 60: rewards know nothing of likelihood":
           "The reward does not. The model's sureness and its being right "
           "go together.",
           "about 90":
           "More.",
       })

# %% [markdown]
# Where in an answer does this happen? Two answers of the first step, by the base model. The first
# token chooses a style: calculate step by step, or `so` and the digit at once.

# %%
rows = record["tokens"]                           # 16 answers
H = np.concatenate([row["entropy"] for row in rows])
part = np.concatenate([np.add(row["logp"], row["entropy"])
                       * row["advantage"] for row in rows])  # (log π + H)A
H, part = -np.sort(-H), -np.sort(-part)           # largest first
fifth = len(H) // 5
print(f"{len(H)} tokens. A fifth of them holds "
      f"{H[:fifth].sum() / H.sum():.0%} of the entropy, five of them "
      f"sum to {part[:5].sum() / part.sum():.0%} of the covariance.")
pictures.forks([rows[2], rows[1]])

# %% [markdown]
# At the dark tiles the model chooses; the rest is copying. So the known remedies aim at few tokens:
#
# | remedy | touches | how | in a library |
# |---|---|---|---|
# | clip-higher (11) | rare and good | lets them climb further | TRL `epsilon_high` |
# | Clip-Cov, KL-Cov | the few with the largest covariance | no gradient; a KL pull | verl `clip_cov`, `kl_cov` |
# | 80/20 ([2506.01939](https://arxiv.org/abs/2506.01939)) | the forks, a fifth of all tokens | only they get a gradient | TRL `top_entropy_quantile` |
# | entropy bonus | all | adds the gradient of $H$ | verl `entropy_coeff` |
#
# Do they help? Same model, 40 steps, three seeds. (For Clip-Cov we silence 2 % of the tokens, drawn
# among those with a covariance above 0.2. The paper's two in ten thousand would be none of ours.)

# %%
pictures.arms(record, [
    "plain", "Clip-Cov, 2 % of tokens", "2 % of tokens at random",
    "80/20", "entropy bonus 0.01"])

# %% [markdown]
# Clip-Cov keeps three times the entropy, and has learned less in these 40 steps. As many tokens
# silenced at random change neither: the same few carry the loss of entropy and the learning. (Its
# authors report gains in long runs of large models.) The other two hardly move the entropy. **Low
# entropy is no fault by itself.** It is one if the score stands still or pass@k falls.
#
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
# * **B**: only the ratio tells: it leaves 1 although every batch is used once. Answers were eight
#   updates old, and there was no clip.
# * **C**: healthy, and at the end it has the lowest entropy of the five.
# * **D**: ten times the learning rate. The score drops within four steps, entropy *rises*, and only
#   then do answers run into the limit. First in time is the cause.
# * **E**: a limit of 24 tokens. Cut answers count as wrong, so the start is low, and the model
#   learns to answer at once instead of calculating.
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Evaluation | |
# |---|---|
# | sentence | pass@1 up, pass@k down at large k: answers were lost, the model sharpened; pass@1 alone cannot tell |
# | formula | pass@k: $1-\binom{n-c}k/\binom nk$ · entropy: $dH\approx-\eta\,\mathrm{Cov}_\pi(\log\pi,A)$ |
# | picture | two pass@k curves that cross; four corners, two eat entropy |
# | numbers | n = 10, c = 3, k = 5: 0.917, plug-in 0.832 · base 0.39, its vote of 32: 0.86 |
# | derived | both formulas |
# | choice | a logit moves by $\eta A$; Adam does not obey |
# | log | reward *and* held-out score, entropy, length, share cut, gradient norm, ratio, mixed groups |

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
# Compare pass@k of base and trained model up to large k. If pass@1 rises and the curves cross, it
# sharpened. If the trained model stays ahead at large k, it found what the base hardly finds. It is
# open which of the two long training does: 2504.13837 sees crossings, ProRL (2505.24864) reports
# gains. Use many answers, and give the base its best prompt.
# </details>
# <details><summary><b>How do you estimate pass@k?</b></summary>
#
# Draw n answers, count c right ones, average 1 − C(n−c, k)/C(n, k) over problems. Any k of n
# independent answers are k independent draws, so this is unbiased. The plug-in 1 − (1 − c/n)^k
# draws with putting back and is too low. Refuse k above n.
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
# <details><summary><b>Which prompts should a run train on?</b></summary>
#
# Those that are sometimes right. For a 0/1 reward the spread inside a group is p(1 − p), largest at
# one half and 0 at both ends. Dynamic sampling and curricula filter for that. They change what is
# optimised, so I keep the evaluation set unfiltered.
# </details>
#
# What else is said about learning and sharpening, learnability and curricula, best-of-N under a
# budget, test-time scaling: [statements 17](statements/17_evaluation.ipynb). The exercises, solved:
# [solutions 17](solutions/17_evaluation.ipynb).
#
# **Next: [18](18_agents.ipynb).** What changes when an answer has many turns, and a world that answers back?
