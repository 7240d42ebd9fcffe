# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 20 · Interview: can you say it in 60 seconds?
#
# **After this page** you have said the course aloud: one question at a time against a clock, then
# before a panel, then at a board.
#
# 20 to 45 minutes an evening, for as many evenings as you have · after any page; each question
# names its own
#
# Knowing an answer and saying it are two skills. An interviewer hears your first sentence and may
# have decided. The rest of the minute is for checking. So every key here begins with the answer,
# and the reason follows. Bring a number as well: the key's, or one that you measured.
#
# | part | what it is | takes |
# |---|---|---|
# | [the drill](#The-drill) | one question, one minute, the key | 20 minutes, every evening |
# | [the mock interview](#A-mock-interview) | five interviewers, graded | 25 minutes, on Sundays |
# | [four derivations](#Four-derivations) | a loss from memory, a line at a time | 10 minutes each |
# | [the whiteboard](#The-whiteboard) | a function against the clock | 2 to 6 minutes each |
# | [the long rounds](#The-long-rounds) | a broken loss; a design | 20 and 40 minutes |
#
# Tonight, in 30 minutes: 20 minutes of the drill, then the PPO board. Later evenings: the drill,
# and with more time one more part. A long round takes an evening of its own. Questions to read
# stand [at the end](#To-read).

# %% tags=["setup"]
import torch
from rlnb.classroom.interview.cards import folded
from rlnb.classroom.interview.code_round import symptoms
from rlnb.classroom.interview.derivation import derivation
from rlnb.classroom.interview.drill import drill
from rlnb.classroom.interview.mock import example_report, mock
from rlnb.classroom.interview.plan import coverage
from rlnb.classroom.interview.whiteboard import hand_in, whiteboard
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## The drill
#
# 1. Set the day of your interview. The line above the button then counts what you will meet.
# 2. Press **Next question**. Answer aloud, and write your first sentence.
# 3. **Enter** shows the key beside it.
# 4. Type **1**, **2** or **3**. That grades you and asks the next question.
#
# | grade | for | comes back |
# |---|---|---|
# | 1 No | a wrong answer, or none | tonight |
# | 2 Partly | the right idea without its reason | tomorrow |
# | 3 I knew it | a first sentence that answers, the reason, the key's number if it has one | after 1, 3, 7 days |
#
# Nothing comes back later than the day of the interview. A card is **known** after a 3 on two
# different days: one good evening may be luck.

# %%
drill()

# %% [markdown]
# What will you meet? 114 questions are the core: three *screen* questions (facts, one step) and
# three *onsite* questions (derive, diagnose, choose) of each page. An evening has one card for
# every two minutes. The first evening is all new. Later a third is new, or up to two thirds if the
# days are few. The rest is due, the longest overdue first.
# This table plays that schedule for somebody who knows half of the new questions and
# four in five of the old:

# %%
coverage()

# %% [markdown]
# **Short of time? Name the pages that your interview is about**, for instance
# `drill("02 04 06 08 10 17")`. Compare the first two rows at 21 evenings. Six pages: 34 of 36 cards
# known. All pages: 33 of 114 known, but all 114 met once, and half of those answered. So six pages
# are better only if the questions come from them. The learner is made up; a row is the mean of
# eight.
#
# <details><summary>Other calls, and two interviews</summary>
#
# `drill(minutes=45, interview="2027-03-01")` sets both by hand, and later calls remember them.
# `drill(level="research")` asks open questions. `drill("rewards.10 kl.3")` begins with these two.
# With two interviews, set the nearer day, and the other one after it.
#
# </details>

# %% [markdown]
# ## A mock interview
#
# Five interviewers ask a question and a follow-up each. You have 90 seconds for the answer, and 45
# for the follow-up. Only then the key appears, sentence by sentence. Tick what you said aloud. The
# ticks give the points for reasons and evidence; the first sentence and the follow-up you grade
# yourself:
#
# | points | 0 | 1 | 2 |
# |---|---|---|---|
# | first sentence | none, wrong, or late | right, needs the next one | answers by itself |
# | reasons | none ticked | some ticked | two in three, or more |
# | evidence | none | a case without a number | a number, or a plot |
# | follow-up | nothing, or wrong | the direction | the point of its key |
#
# Ticks after a few seconds are doubted in the report; the points stay. It is harder, and better,
# when a friend asks and ticks. The seed fixes the panel; `mock(seed=21, level="research")` asks
# others.

# %%
mock(seed=20, level="onsite")

# %% [markdown]
# A report. Its learner was often right, gave few numbers, and once ticked every reason after six
# seconds.

# %%
example_report()

# %% [markdown]
# ## Four derivations
#
# You write a loss from memory. A line is an expression, such as `log(a) * b`: `+ - * / **`, `exp`,
# `log`, `abs`, `sigmoid`, `clamp` (or `clip`), `minimum`, `maximum`, `where`, and the names that
# the board gives. After the last line say why: why the minimum, why no std, why the constant. Each
# line is judged by its value and, where it has one, its gradient, for two or three sets of numbers.
# A wrong line does not spoil the next: that one gets the right values. **Hint** says which symbols
# a line is made of.
#
# First REINFORCE: the log-derivative, why a baseline is unbiased, which one is best, and the
# reward-to-go.

# %%
derivation("reinforce")

# %% [markdown]
# PPO, from the critic's surprise to the whole loss.

# %%
derivation()

# %% [markdown]
# GRPO, from the group's baseline to the loss: then the two places where it is biased, and the loss
# without them, Dr. GRPO's.

# %%
derivation("grpo")

# %% [markdown]
# DPO, from a reward with a KL penalty to a loss on pairs. The first three lines are about all
# answers to one prompt, the others about pairs. (Why is the second line the best policy? The mean
# reward less $\beta$ KL to the reference is $\beta\log Z$ less $\beta$ KL to that policy, and a KL
# is 0 at least.)

# %%
derivation("dpo")

# %% [markdown]
# ## The whiteboard
#
# You write one of ten functions against the clock.
#
# 1. Choose a function and press **Start the clock**. Shapes, an example and the seconds stand right
#    above the cell.
# 2. Write it in the cell, under the name of the function you chose; `hand_in` takes that name too.
# 3. Run the cell. It is judged, and the clock stops when it passes.
#
# Use torch and math only.

# %%
whiteboard()

# %% tags=["exercise"]
def token_logprobs(logits, tokens):  # or the function you chose
    ...

hand_in(token_logprobs)

# %% [markdown]
# ## The long rounds
#
# ### Code
#
# Twenty minutes. A colleague was asked for *Dr. GRPO's advantage, PPO's clip at 0.2, DAPO's mean,
# two updates a batch*. The loss below runs. It has four faults.
#
# 1. Start the clock. Run the cell with the loss and read the log below it.
# 2. Say aloud which numbers a right loss would not give, which line makes each so, and why.
# 3. Mend the lines and run the cell again. Then hand in.

# %%
whiteboard("batch_loss")

# %% tags=["exercise"]
def batch_loss(logprobs, sampled, mask, rewards, num_generations):
    # logprobs (B, T): now; sampled (B, T): when the answers were drawn
    # mask (B, T): real tokens; rewards (B,): groups side by side
    epsilon = 0.2
    groups = rewards.view(-1, num_generations)
    baseline = groups.mean()
    advantage = (groups - baseline).view(-1, 1)
    old = logprobs.detach()
    ratio = (old - logprobs).exp()
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    objective = torch.minimum(ratio * advantage, clipped * advantage)
    objective = torch.where(mask, objective, 0.0)
    return -objective.mean()

symptoms(batch_loss)

# %% tags=["exercise"]
hand_in(batch_loss)

# %% [markdown]
# <details><summary>hint</summary>Take one number of the log at a time, and ask which line could make it so. (`check.batch_loss` judges what you hand in.)</details>
#
# <details><summary>The four faults and your points (after the clock)</summary>
#
# A point each for the line, its number and the reason: 9 of 12, with a loss that passes, is good.
#
# | line | its number | a strong answer says |
# |---|---|---|
# | `groups.mean()` | a group all right is pushed | `mean(1, keepdim=True)`: a baseline for each prompt. The batch's mean changes the gradient's mean by a factor only, but adds noise: easy prompts are pushed whatever they answer. |
# | `logprobs.detach()` | no token is clipped | `sampled`: the ratio is 1 at every update, so the second is neither corrected nor clipped. |
# | `old - logprobs` | pass rates fall | `logprobs - old`: at ratio 1 the value is right and the gradient has the wrong sign. |
# | `.mean()` | the norm halves | `.sum() / mask.sum()`: padding counts, so one long answer shrinks every push. |
#
# </details>
#
# More of this kind: the [break-it lab](extras/break_it.ipynb), where you write the tests.
#
# ### Design
#
# "You have 64 GPUs of 80 GB and a 7B model. It shall learn to repair code. Design the run." Say, in
# this order: the reward and how it is cheated, the loss and why, prompts and answers per step, what
# lies in memory, what a step waits for, what you plot, rate and cost, when you stop. A point for
# each of the eight, and one for each that has a number: 13 of 16 is a pass.
#
# <details><summary>A skeleton with numbers (write yours first)</summary>
#
# - **Reward.** <!-- cited: 1.28, 3.35, 4.5e17, 2.6, 1.2, 1e-6 --> Ten or more hidden tests a task
#   pass, in a sandbox. It is cheated by editing tests, so those lie elsewhere, and by special cases
#   for the visible ones, so these are others.
# - **Loss.** Group mean without the std, which would favour prompts whose answers nearly agree. One
#   mean over the tokens of the batch, so that length does not dilute a token's push. Clip at 0.8
#   and 1.28, the batch split over two updates, answers at most one batch old. No KL
#   at first; add one if answers begin to game the tests.
#
# - **Prompts and answers.** 64 prompts with 16 answers are 1,024, or 16 a card. If 80 of 100 groups
#   are all wrong: easier repositories first, then more answers a prompt.
# - **Memory.** Weights, gradients and Adam take 16 bytes a weight: 112 GB, sharded under 2 GB a
#   card. The bf16 copy that samples takes 14 GB. At 128 KB a token an answer of 8,000 tokens holds
#   1 GB of cache, so 40 GB hold 40 answers: room for the next batch beside this one.
# - **Time.** At 40 tokens a second an answer of 8,000 takes 200 seconds (reading 14 GB of weights
#   and 16 of cache at 3.35 TB/s allows about 110). Training on 8 million tokens with recomputed
#   activations is 8 · 7e9 · 8e6, about 4.5e17 operations: 18 seconds on 64 H100s at 4e14 each.
#   So a step is sampling, and the longest answer sets its end.
# - **Plots.** Every 10 steps the pass rate on 300 tasks from after the cut-off; at every step mixed
#   groups, length, timeouts.
# - **Rate and cost.** 1e-6 to begin with, half of it if groups turn all wrong. A step takes about
#   220 seconds, so 300 steps are 18 hours of 64 cards. Two seeds before I claim anything.
# - **Stop** when the mean of ten readings is no better than that of the ten before. At 30 % one
#   reading of 300 tasks is ±2.6 points; on the same tasks each time, the difference of two such
#   means is ±1.2 at most.
#
# The token rates, the bytes of cache and the number of prompts are assumptions; say which are
# yours. Prompts are left out: a repository of 8,000 tokens doubles cache and training.
#
# </details>
#
# Then they push:
#
# <details><summary>"A test suite takes two minutes."</summary>
#
# Rewards are computed beside sampling, on CPUs: 1,024 answers times 120 seconds in a step of 200
# are 614 cores. Answers trained on as they come are stale: say how many versions you allow and
# which ratio corrects it (19, 04). A patch that loops for ever is wrong, a crashed sandbox is not
# (18).
#
# </details>
#
# <details><summary>"Half of the GPUs idle."</summary>
#
# First ask during what. If one long answer holds up the step: refill the slots, run one batch
# ahead, cap the length, and only then split the fleet (19). The idle share bounds the gain.
#
# </details>
#
# <details><summary>"After a week reward is up, and users see no difference."</summary>
#
# Read fifty answers that pass. Agents edit tests and special-case inputs (16, 18). Then held-out
# suites the policy never saw, pass@1 beside pass@k, and the base model with the same number of
# samples (17).
#
# </details>
#
# <details><summary>"Make it an agent of many turns: who samples, who trains, how do weights travel?"</summary>
#
# - **Samples:** an engine on its own cards with the bf16 copy; sandboxes on CPUs. A slot whose tool
#   runs serves another task. What tools return is masked out of the loss (18).
# - **Trains:** the other cards, sharded. Activations are recomputed, and logits come in pieces:
#   8,000 tokens × 150,000 words in float32 are about 5 GB.
# - **Weights:** after a step 14 GB from card to card, under a third of a second at 50 GB/s. Each
#   token keeps its engine's log-prob and version, for the ratio and the age limit (19).
#
# </details>
#
# ### A run of yours that failed
#
# Four sentences: what you expected, what the plot showed, which experiment told two causes apart,
# what you changed. Write them tonight. No run of your own? Take run D of [17](17_evaluation.ipynb),
# *Find the fault*, and say that it is a recorded one: you expected a run like C, whose score rises;
# within four steps the score fell and the answers grew. The length limit or the rate? Hardly an
# answer was cut by then, and the same settings at a tenth of the rate gave C.

# %% [markdown]
# ## On the day
#
# - The first sentence is the answer. Then why. Then a number. Then when it fails.
# - A formula: say each symbol once, say which line is a choice.
# - "I do not know; I would measure ..." is an answer. Name the plot.
# - A claim somebody quotes: ask under which reading. Many
#   [statements](statements/06_ppo.ipynb) of this course are right under one and wrong under
#   another.
# - Asked to choose a method: ask about updates per batch, staleness and the reward first.
#
# The functions, the boards and the numbers of the bank are worked out in
# [solutions 20](solutions/20_interview.ipynb). **Next:**
# [21 · GRPO for real](21_grpo_for_real.ipynb), where all of it runs.

# %% [markdown]
# ## To read
#
# `folded("06_ppo")` prints a page's questions, one of each level, with folded keys;
# `everything=True` prints all of them. Say your answer before you unfold the key.
#
# For Anki, run `from rlnb.classroom.interview.cards import write_anki` and
# `write_anki("rlnb_cards.txt")`; then *File, Import*.

# %%
folded("06_ppo")
