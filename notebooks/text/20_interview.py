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
# Knowing an answer and saying it are two skills. An interviewer hears your first sentence and
# decides whether you know. The rest of the minute is for checking. So every key here begins with
# one sentence that stands alone. Then come the reason, the evidence, and where it fails.
#
# | part | what it is | takes |
# |---|---|---|
# | [the drill](#The-drill) | one question, one minute, the key | 20 minutes, every evening |
# | [the mock interview](#A-mock-interview) | five interviewers, graded | 25 minutes, on Sundays |
# | [three derivations](#Three-derivations) | a loss from memory, a line at a time | 10 minutes each |
# | [the whiteboard](#The-whiteboard) | a function against the clock | 2 to 6 minutes each |
# | [the long rounds](#The-long-rounds) | code and design | 40 minutes each |
#
# An evening is the drill, and with more time one more part; a long round takes an evening of its
# own. You can also only read: questions with folded answers stand [at the end](#To-read).

# %% tags=["setup"]
import torch
from rlnb.classroom.interview.cards import folded
from rlnb.classroom.interview.derivation import derivation
from rlnb.classroom.interview.drill import drill
from rlnb.classroom.interview.mock import example_report, mock
from rlnb.classroom.interview.plan import coverage
from rlnb.classroom.interview.whiteboard import hand_in, whiteboard
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## The drill
#
# The drill asks one question at a time, and takes about 20 minutes an evening.
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
# | 3 I knew it | a first sentence that answers, and the reason | after 1, 3, 7 days |
#
# Nothing comes back later than the day of the interview. A card is **known** after a 3 on two
# different days: one good evening may be luck.

# %%
drill()

# %% [markdown]
# What will you meet? 114 questions are the core: three *screen* questions (facts, one step) and
# three *onsite* questions (derive, diagnose, choose) of each page. An evening takes one card for
# every two minutes. A third of them is new, more of them as the interview comes near; the rest is
# what is due. This table plays the drill's own schedule for
# somebody who knows half of the new questions and four in five of the old:

# %%
coverage()

# %% [markdown]
# Met is not known. Three weeks bring 33 of 114 to known at 20 minutes an evening, and 86 at 45.
# With 20 minutes, choose what the 33 shall be: name the pages that your interview is about, six or
# seven of them, for example `drill("02 04 06 08 10 17")`. With two interviews, set the nearer
# day, and the other one after it.
#
# `drill(minutes=45, interview="2027-03-01")` sets both by hand, and later calls remember them.
# `drill(level="research")` asks open questions. `drill("rewards.10 kl.3")` begins with these two.

# %% [markdown]
# ## A mock interview
#
# Five interviewers ask a question and a follow-up each; it takes about 25 minutes with the grading.
#
# You have 90 seconds for the answer, and 45 for the follow-up. Only then the key appears, sentence
# by sentence. Tick what you said aloud. The ticks give the points for reasons and evidence; the
# first sentence and the follow-up you grade yourself:
#
# | points | 0 | 1 | 2 |
# |---|---|---|---|
# | first sentence | none, wrong, or late | right, needs the next one | answers by itself |
# | reasons | none ticked | some ticked | two in three, or more |
# | evidence | none | a case without a number | a number of the key, or a plot |
# | follow-up | nothing, or wrong | the direction | the point of its key |
#
# A full mark after a few seconds is doubted, and the report says so. It is
# harder, and better, when a friend asks and ticks. The seed fixes the panel, so that both of you
# see the same one; `mock(seed=21, level="research")` asks others.

# %%
mock(seed=20, level="onsite")

# %% [markdown]
# A report looks like this one. Its learner was often right and rarely gave a number. In one round
# they ticked every reason after six seconds.

# %%
example_report()

# %% [markdown]
# ## Three derivations
#
# You write a loss from memory, line by line, and each line is judged at once; a board takes about
# 10 minutes.
#
# A line is an expression, such as `log(a) * b`. `min` and `minimum` are the same, and so are `clip`
# and `clamp`. Each line is judged by its value, and by its gradient where it has one. A wrong line
# does not spoil the next: that one gets the right values. **Hint** says which symbols a line is
# made of.
#
# First REINFORCE: the log-derivative, why a baseline is unbiased, which one is best, and the
# reward-to-go.

# %%
derivation("reinforce")

# %% [markdown]
# PPO, from the critic's surprise to the whole loss. The numbers are the four answers that all pages
# share, with a made-up critic.

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
# You write one of ten functions against the clock, in 2 to 6 minutes.
#
# 1. Choose a function and press **Start the clock**. Shapes, an example and the seconds stand right
#    above the cell.
# 2. Write it in the cell; the first line says another function's name if you chose another.
# 3. Run the cell. It is judged, and the clock stops when it passes.
#
# Torch and math are there; libraries are not.

# %%
whiteboard()

# %% tags=["exercise"]
def token_logprobs(logits, tokens):  # or the function you chose
    ...

hand_in(token_logprobs)

# %% [markdown]
# ## The long rounds
#
# Two rounds on paper and in an editor, 40 minutes each, and a story to have ready.
#
# ### Code
#
# A training loop that runs and does not learn is the favourite. Take three
# functions of the [break-it lab](extras/break_it.ipynb) and write the tests that find their bugs.
#
# ### Design
#
# "You have 64 GPUs of 80 GB and a 7B model. It shall learn to repair code. Design the run." Say, in
# this order: the reward and how it is cheated, the loss and why, prompts and answers per step, what
# lies in memory, what a step waits for, what you plot, when you stop. A point for each of the
# seven, and one for each that has a number: 11 of 14 is a pass.
#
# <details><summary>A skeleton with numbers (write yours first)</summary>
#
# - **Reward.** Ten or more hidden tests a task pass, in a sandbox. It is cheated by editing tests,
#   so those lie elsewhere, and by special cases for the visible ones, so these are others.
# - **Loss.** Group mean without the std, one mean over the tokens of the batch, clip at 0.8 and
#   1.28, two updates a batch, answers at most one batch old. No KL, as the checker is exact.
#   <!-- cited: 0.8, 1.28 -->
# - **Prompts and answers.** 64 prompts with 16 answers are 1,024, or 16 a card. If 80 of 100 groups
#   are all wrong: easier repositories first, then more answers a prompt.
# - **Memory.** Weights, gradients and Adam take 16 bytes a weight: 112 GB, sharded under 2 GB a
#   card. The bf16 copy that samples takes 14 GB. At 128 KB a token an answer of 8,000 tokens holds
#   1 GB of cache, so 40 GB hold 40 answers: room for the next batch beside this one.
# - **Time.** At 40 tokens a second an answer of 8,000 takes 200 seconds. Training on 8 million
#   tokens is 6 · 7e9 · 8e6, about 3e17 operations: 13 seconds on 64 H100s at 4e14 a second each. So
#   a step is sampling, and it waits for its longest answer.
# - **Plots.** Every 10 steps the pass rate on 300 tasks from after the cut-off; at every step mixed
#   groups, length, timeouts.
# - **Stop** when that held-out rate has not risen for 100 steps.
#
# The token rates and the prompts are assumptions; say which are yours.
#
# </details>
#
# Then they push:
#
# <details><summary>"A test suite takes two minutes."</summary>
#
# Rewards are computed beside sampling, on CPUs, and answers are trained on as they come. Then data
# are stale: say how many versions you allow and which ratio corrects it (19, 04). A suite that
# times out is graded by its cause: a patch that loops for ever is wrong, a crashed sandbox is not
# (18). Count both.
#
# </details>
#
# <details><summary>"Half of the GPUs idle."</summary>
#
# First ask during what. The longest answer holds up a synchronous step: refill the slots, run one
# batch ahead, cap the length, and only then split the fleet (19). The idle share bounds the gain,
# so compute it before you build.
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
# ### A run of yours that failed
#
# Four sentences: what you expected, what the plot showed, which experiment told two causes apart,
# what you changed. Write them tonight. No run of your own? Take one of the five of
# [17](17_evaluation.ipynb), second sitting.

# %% [markdown]
# ## On the day
#
# Five rules, one minute to read.
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
