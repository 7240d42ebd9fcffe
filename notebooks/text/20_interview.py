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
# before a panel, then at a board. What you did not know comes back until you do.
#
# 30 minutes a sitting, as many sittings as you like · after any page; each question names its own
#
# Knowing an answer and saying it are two skills. An interviewer hears your first sentence, decides
# whether you know, and spends the rest of the minute on checking. So every answer here begins with
# one sentence that stands alone. Then come the reason, a number, and where it fails.

# %% tags=["setup"]
from collections import Counter
from rlnb.classroom.interview.cards import anki, folded
from rlnb.classroom.interview.derivation import derivation, judge
from rlnb.classroom.interview.drill import drill
from rlnb.classroom.interview.mock import RUBRIC, Interview, mock, panel
from rlnb.classroom.interview.whiteboard import hand_in, whiteboard
from rlnb.classroom.questions import bank

# %% [markdown]
# ## The drill
#
# Press **Next question** and answer aloud. **Show the answer** stops the clock. Then grade
# yourself, and be strict: "partly" is for a right idea without its reason. A question that you knew
# rests for a day, then 3, 7, 16, 35 and 80; one that you did not know is due at once. Tab moves
# between the controls, Space presses.

# %%
drill()

# %%
print(len(bank()), "questions:", dict(Counter(q.level for q in bank())))

# %% [markdown]
# `drill("ppo")` asks about one page, `drill(level="research")` at one level, and `drill(seed=3)`
# draws in an order that a study partner can repeat.

# %% [markdown]
# ## To read
#
# One question of each level for every page, answers folded. Say yours first. To read all of a page,
# run `folded("06_ppo", everything=True)`.
#
# ### Foundations

# %%
folded("01", "02", "03", "04", "05")

# %% [markdown]
# ### PPO, GRPO and their averages

# %%
folded("06", "07", "08", "09", "10")

# %% [markdown]
# ### Variants

# %%
folded("11", "12", "13", "14")

# %% [markdown]
# ### Preferences, rewards, evaluation, agents

# %%
folded("15", "16", "17", "18")

# %% [markdown]
# ### Systems and practice

# %%
folded("19", "21")

# %% [markdown]
# ## A mock interview
#
# Five interviewers, a question and a follow-up each. After each answer you give yourself 0, 1 or 2
# points for each of four things:

# %%
for criterion, means in RUBRIC.items():
    print(f"{criterion}: {means}")

# %% [markdown]
# Better still: a friend reads the questions and grades. The seed fixes the panel, so both of you
# see the same one. `mock(seed=21, level="research")` asks others.

# %%
mock(seed=20, level="onsite")

# %% [markdown]
# A report looks like this one. Its learner was right most of the time, and rarely gave a number.

# %%
example = Interview(panel(20, "onsite"), "onsite", 20)
for points in ("2112", "2211", "1101", "2222", "1210"):
    first, mechanism, evidence, follow_up = map(int, points)
    example.grade(first_sentence=first, mechanism=mechanism,
                  evidence=evidence, follow_up=follow_up)
example

# %% [markdown]
# ## The derivation board
#
# Write PPO's objective from memory, a line at a time. A line is an expression over all tokens, as
# in `exp(logp - old)`; `mean` is the mean over the unmasked ones. Each line is judged alone, by its
# value and its gradient on the running batch, against `rlnb.objective`.

# %%
derivation()

# %% [markdown]
# The same in code. Change the lines until all eight are right; the solutions have one version.

# %%
mine = {"delta": "...", "ratio": "...", "unclipped": "...",
        "clipped": "...", "surrogate": "...", "policy": "...",
        "value": "...", "loss": "..."}
for name, written in mine.items():
    print(f"{name:9} {judge(name, written).said}")

# %% [markdown]
# ## The whiteboard
#
# Ten functions that are asked for. The first run of a cell starts its clock, the run that passes
# stops it and tells you the usual slip. Torch is there; libraries are not.

# %%
import torch
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

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
# ## Flashcards
#
# For Anki: write the file, then *File, Import*. The questions arrive in a deck of their own, tagged
# by page and level; a second import updates them.
#
#     from rlnb.classroom.interview.cards import write_anki
#     write_anki("rlnb_cards.txt")
#
# The file begins like this:

# %%
print(anki(bank()[:1])[:300])

# %% [markdown] tags=["cited:H16"]
# ## Dates, in case they ask
#
# The first four digits of an arXiv number are year and month: PPO 1707.06347, DPO 2305.18290,
# DeepSeekMath with GRPO 2402.03300, DAPO 2503.14476, Dr. GRPO 2503.20783, CISPO in MiniMax-M1
# 2506.13585, GSPO 2507.18071, SAPO 2511.20347. Say what a method changes first and when it appeared
# last.

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
# The functions, the board and the numbers of the bank are worked out in
# [solutions 20](solutions/20_interview.ipynb). **Next:**
# [21 · GRPO for real](21_grpo_for_real.ipynb), where all of it runs.
