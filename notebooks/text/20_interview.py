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
# 30 minutes an evening, for as many evenings as you have · after any page; each question names its
# own
#
# Knowing an answer and saying it are two skills. An interviewer hears your first sentence, decides
# whether you know, and spends the rest of the minute on checking. So every answer here begins with
# one sentence that stands alone. Then come the reason, the evidence, and where it fails.
#
# | when | what |
# |---|---|
# | an evening, the first 20 minutes | the drill: about ten cards |
# | its last 10 minutes | one function at the whiteboard, or one board, or two rounds of the panel |
# | Sundays | a whole mock interview, then the drill that its report names |
#
# To read instead, without running anything: questions with folded answers stand
# [at the end](#To-read).

# %% tags=["setup"]
import torch
from rlnb.classroom.interview.cards import folded
from rlnb.classroom.interview.derivation import derivation
from rlnb.classroom.interview.drill import drill
from rlnb.classroom.interview.mock import example_report, mock
from rlnb.classroom.interview.whiteboard import hand_in, whiteboard
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## The drill
#
# Set the day of your interview. Press **Next question**, answer aloud, write your first sentence,
# and **Enter** shows the answer beside it. Then **1**, **2** or **3** grades you and asks the next.
#
# | grade | for | comes back |
# |---|---|---|
# | 1 No | anything else | tonight |
# | 2 Partly | the right idea without its reason | tomorrow |
# | 3 I knew it | a first sentence that answers, and the reason | after 1, 3, 7 days, never past the interview |
#
# An evening holds a card for every two minutes. What is due comes first, with a third kept for new
# questions. New are first the 114 of the core: of each page, the first three questions of a phone
# *screen* (facts, one step) and the first three of an *onsite* (derive, diagnose, choose). Then
# come the others and the open *research* questions. Twenty minutes on every evening of three weeks
# see the whole core, half of it twice.

# %%
drill()

# %% [markdown]
# `drill(minutes=20, interview="2027-03-01")` sets both by hand, and later calls remember them.
# `drill("ppo")` asks about one page, `drill(level="research")` at one level, and
# `drill("rewards.10 kl.3")` begins with these two.

# %% [markdown]
# ## A mock interview
#
# Five interviewers, a question and a follow-up each. You have 90 seconds, then the follow-up alone
# and 45 seconds, and only then the key, beside what you wrote. Grade what you said:
#
# | points | 0 | 1 | 2 |
# |---|---|---|---|
# | first sentence | the answer came later | right, needs the next one | answers by itself |
# | mechanism | a name or a slogan | the idea, a step missing | each step with its rule |
# | evidence | none | a case | a number, or the plot |
# | follow-up | nothing new | the direction | the point of its key |
#
# "The plot" is one you would draw, with its two axes. Better still, a friend asks and grades. The
# seed fixes the panel, so both of you see the same one; `mock(seed=21, level="research")` asks
# others.

# %%
mock(seed=20, level="onsite")

# %% [markdown]
# A report looks like this one. Its learner was right most of the time, and rarely gave a number.

# %%
example_report()

# %% [markdown]
# ## Two derivations
#
# Write the lines from memory, as expressions: `log(a) * b` is one, `min` and `minimum`, `clip` and
# `clamp` are the same. Each line is judged alone, with right values for the others: by its value,
# and where it carries one by its gradient, on the four answers that all pages share, with a made-up
# critic. **Hint** says which symbols a line is made of. First PPO, from the critic's surprise to
# the whole loss:

# %%
derivation()

# %% [markdown]
# DPO, from a reward with a KL penalty to a loss on pairs. The first three lines are about all
# answers to one prompt, the others about pairs.

# %%
derivation("dpo")

# %% [markdown]
# ## The whiteboard
#
# Ten functions that are asked for. Choose one, press **Start the clock**, write it in its cell and
# run the cell: it is judged, and the clock stops when it passes. Start again for another try. Until
# you start nothing runs. Torch and math are there; libraries are not.

# %%
whiteboard()

# %% tags=["exercise"]
def token_logprobs(logits, tokens):
    ...

hand_in(token_logprobs)

# %% tags=["exercise"]
def group_advantages(rewards, num_generations):
    ...

hand_in(group_advantages)

# %% tags=["exercise"]
def baseline_leave_one_out(rewards, num_generations):
    ...

hand_in(baseline_leave_one_out)

# %% tags=["exercise"]
def surrogate_clip(ratio, advantage, epsilon):
    ...

hand_in(surrogate_clip)

# %% tags=["exercise"]
def gae(rewards, values, gamma, lam):
    ...

hand_in(gae)

# %% tags=["exercise"]
def k3(logprobs, ref_logprobs):
    ...

hand_in(k3)

# %% tags=["exercise"]
def sequence_ratio(logprobs, old_logprobs, mask):
    ...

hand_in(sequence_ratio)

# %% tags=["exercise"]
def token_mean(per_token, mask):
    ...

hand_in(token_mean)

# %% tags=["exercise"]
def dpo_loss(logprobs, ref_logprobs, mask, beta):
    ...

hand_in(dpo_loss)

# %% tags=["exercise"]
def pass_at_k(n, c, k):
    ...

hand_in(pass_at_k)

# %% [markdown]
# ## The long rounds
#
# **Code, 40 minutes.** A training loop that runs and does not learn is the favourite. Take three
# functions of the [break-it lab](extras/break_it.ipynb) and write the tests that find their bugs.
#
# **Design, 40 minutes, on paper.** "You have 64 GPUs and a 7B model. It shall learn to repair code.
# Design the run." Say, in this order: the reward and how it is cheated, prompts and answers per
# step, what lies in memory, what a step waits for, what you plot, when you stop. Then they push:
#
# <details><summary>"A test suite takes two minutes."</summary>
#
# Rewards are computed beside sampling, on CPUs, and answers are trained on as they come. Then data
# are stale: say how many versions you allow and which ratio corrects it (19, 04). A suite that
# times out is no wrong answer: leave it out, and count how many (18).
#
# </details>
#
# <details><summary>"Half of the GPUs idle."</summary>
#
# First ask during what. The longest answer holds up a synchronous step: cap the length, refill the
# slots, or go asynchronous, in this order of cost (19). The idle share bounds the gain, so compute
# it before you build.
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
# **A run of yours that failed.** Four sentences: what you expected, what the plot showed, which
# experiment told two causes apart, what you changed. Write them tonight.

# %% [markdown]
# ## Flashcards
#
# The questions for Anki, tagged by page and level: run
# `from rlnb.classroom.interview.cards import write_anki`, then `write_anki("rlnb_cards.txt")`, and
# in Anki *File, Import*. A second import updates the cards.

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
# Choose a page, then say yours before you unfold: one question of each level, with a weak answer
# and what is asked next. `folded("06_ppo", everything=True)` shows all of a page.

# %%
folded(*(f"{page:02}" for page in range(1, 20)))
