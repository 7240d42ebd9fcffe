# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 19 · Systems: where do the time, the memory and the mismatch come from?
#
# **After this page** you can count what fills a GPU (first sitting), say why it waits (second),
# what changes when another program writes the answers (third), and what to do about it (fourth).
#
# 15 minutes, then 17 in a second sitting, 8 in a third and 15 in a fourth (tired, up to twice that)
# · exercises 34 more ·
# after 04 (importance sampling), 08 (GRPO) · ZeRO:
# [arXiv 1910.02054](https://arxiv.org/abs/1910.02054); AReaL:
# [arXiv 2505.24298](https://arxiv.org/abs/2505.24298)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Which of PPO's models does GRPO not need?</summary>The critic (08).</details>
# <details><summary>2. What is the reference policy for, and is it trained?</summary>The KL is measured from it. It stays as it is (05).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import check
from rlnb.classroom.explorers import full_card, long_answers, stale_queue
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import systems as pictures
from rlnb.classroom.pictures.recorded_runs import final
from rlnb.toys import ring
from rlnb.toys.rollout_queue import simulate
from rlnb.toys.router import RouterPolicy, flipped
from rlnb.toys.router_answers import exact_share
from rlnb.training.studies.cluster_memory import QWEN_7B
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## It fits five times
#
# You have a model with 7.6 <!-- cited: 7.6 --> billion parameters (a Qwen2.5). Each parameter takes
# two bytes in bfloat16, 15 GB in all. Your card has 80 GB: the weights would fit five times. You
# start GRPO with AdamW, and it ends in *out of memory* before the first step is done. What fills
# the card?

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.1", "How many bytes per parameter does training with "
        "AdamW take, in the usual recipe (gradients in bfloat16)?",
        ["8: weights, gradients and two moments, two bytes each",
         "12: weights and gradients in 2 bytes, two moments in float32",
         "16: 2 + 2, and in float32 two moments and a copy of the "
         "weights",
         "20: 2 + 2, and in float32 two moments and copies of weights "
         "and gradients"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
one, tiny = torch.tensor(1.0).bfloat16(), torch.tensor(0.003).bfloat16()
reveal("systems.1",
       "16: 2 + 2, and in float32 two moments and a copy of the weights",
       "The weights take 2 bytes, the gradients 2, the two moments 4 + 4, "
       "and a **master copy** of the weights takes 4. Without the master "
       f"copy, bfloat16 computes 1 + 0.003 = {(one + tiny).item()}: a "
       "weight of 1 would never feel so small an update. 16 bytes a "
       f"parameter are {16 * QWEN_7B.parameters / 1e9:.0f} GB.",
       instead={
           "8: weights, gradients and two moments, two bytes each":
           "The moments add up small changes, and bfloat16 loses some. So "
           "the usual recipe keeps them in float32.",
           "12: weights and gradients in 2 bytes, two moments in float32":
           "This is right about the moments. But where are small updates "
           "collected?",
           "20: 2 + 2, and in float32 two moments and copies of weights "
           "and gradients":
           "Where gradients are summed in float32 it is 18 or 20. The "
           "usual count leaves that out.",
       })

# %% [markdown]
# A frozen model takes 2 bytes: its weights. The answers are written (*generated*) by a separate
# program, the **engine** (vLLM, SGLang). It holds one more copy of the weights: 2 bytes.

# %% jupyter={"source_hidden": true}
# the picture
trained = {"weights": 2, "gradients": 2, "AdamW": 12}
two = {name: 2 * size for name, size in trained.items()}
pictures.bytes_by_method({
    "PPO": two | {"frozen": 4, "engine": 2},
    "GRPO, reward model": trained | {"frozen": 4, "engine": 2},
    "GRPO, verifier": trained | {"frozen": 2, "engine": 2},
    "no KL: DAPO, Dr. GRPO": trained | {"frozen": 0, "engine": 2},
}, caption=("AdamW: master copy and moments. Frozen: reference and reward "
            "model. All models equally large."))

# %% [markdown]
# The critic alone costs 16 of PPO's 38 bytes. **Count 16 bytes for what is trained, and 2 for what
# is not.**
#
# The second large thing is the **KV cache**. While an answer is written, every layer keeps a key
# and a value for each token: here 28 layers, with 4 key-value heads of 128 numbers each, which the
# 28 query heads share (*grouped queries*).

# %% jupyter={"source_hidden": true}
# the cache, printed
per_token = 2 * 28 * 4 * 128 * 2                       # bytes
print(f"2 (key, value) x 28 x 4 x 128 x 2 bytes = {per_token:,} a token")
print(f"512 answers of 8,192 tokens: {512 * 8192 * per_token / 1e9:.0f} GB")

# %% [markdown]
# This is twice what training takes, if every answer has its full length. (Engines hand out cache in
# small blocks as tokens come, so short answers leave room.) **So memory sets how many answers can
# be written at once.**
#
# How do you make it fit? Take several cards, say four, which first write and then train
# (*colocated*). Each computes the gradient of its own answers. **ZeRO** says what it
# keeps: <!-- cited: 122, 53, 42, 30 -->
#
# | stage | each of four cards keeps, to train | GB |
# |---|---|---|
# | 0, plain *data parallelism* | everything | 122 |
# | 1 | of AdamW the part for its quarter of the weights; it updates this quarter and sends it round | 53 |
# | 2 | of the gradients, too, only its quarter | 42 |
# | 3, FSDP | of the weights, too; the others are fetched when they are needed (the reference likewise) | 30 |
#
# The engine stays whole on each card.
#
# **Offloading** moves to main memory, or discards, what this half of the step does not need: the
# trainer and the reference while the answers are written, the engine while the card trains (its
# *sleep mode*; the cache is empty then).

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t1", full_card.full_card_explorer(),
     ("512 answers at once on 4 cards. Make it fit, with the smallest "
      "stage of ZeRO that will do. Say first whether a higher stage "
      "alone would do, or offloading alone.", full_card.smallest_stage))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Neither alone is enough. At its fullest moment the card would hold 213 GB. Offloading alone brings
# that to 142, stage 3 alone to 110. With offloading, writing and training no longer share the card,
# and stage 1 is enough: 75 GB while it writes (tight: the engine, vLLM say, needs
# `gpu_memory_utilization` at 0.95), 73 while it trains. <!-- cited: 73, 38, 53, 50, 0.95, 88 -->
# The price: once a step 38 GB a card go to main memory, and 53 come back, the reference among them.
# At 50 GB/s that takes two seconds. (Many trainers sum the micro-batches' gradients in float32.
# Then stage 1 needs 88 GB, and stage 2 is the smallest that fits.)
# </details>
#
# *(Five minutes are left of this sitting, and they stand on their own. A pause is fine.)*
#
# **What does ZeRO cost?** Traffic between the cards. At stage 0 each card sends its gradient
# to be summed (*reduce-scatter*), and then its part of the sums to the others (*all-gather*): two
# *sizes of the model* a step. A card takes its 128 answers one at a time, each a **micro-batch**,
# and updates the weights after the last.

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.2", "At which stages of ZeRO does the traffic of one "
        "step grow with the number of micro-batches?",
        ["at stages 1, 2 and 3: each of them splits something",
         "at stages 2 and 3: from 2 on the gradient is split",
         "at stage 3 only: it alone splits the weights",
         "at none: the sums are sent once, at the end"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
cards, micro = 4, 128
made_of = ("1 gradient + the sums", "1 gradient + 1 new weights",
           f"{micro} gradients + 1 new weights",
           f"{micro} gradients + 2 · {micro} weights")
rows, whole = "", 2 * QWEN_7B.parameters                # bytes
for stage, what in enumerate(made_of):
    once, sent = (ring.step(stage, cards, micro=m)[1] for m in (1, micro))
    rows += (f"| {stage} | {once * cards / (cards - 1):.0f} | "
             f"{what} = {sent * cards / (cards - 1):.0f} |\n")
computing = 128 * 8192 * 8 * QWEN_7B.parameters / 4e14

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.2", "at stages 2 and 3: from 2 on the gradient is split",
       "At stages 0 and 1 a card adds up its micro-batches in a gradient "
       "of its own. At stage 2 it has room for its own piece only: the "
       "rest leaves after every micro-batch. Stage 3 also fetches the "
       "weights, before each forward and each backward pass."
       f"\n\n| stage | sizes of the model a step, 1 micro-batch | {micro} "
       f"micro-batches |\n|---|---|---|\n{rows}\n"
       "(The policy alone. The first column is why one says that stage 2 "
       "costs nothing.) "
       "Even stage 3 need not cost time: if all "
       "answers have 8,192 tokens, "
       f"{sent * whole / 450e9:.0f} s of traffic hide behind "
       f"{computing:.0f} s of computing.",
       instead={
           "at stages 1, 2 and 3: each of them splits something":
           "Stage 1 splits the optimizer, and that works once a step.",
           "at stage 3 only: it alone splits the weights":
           "It sends most. But what happens at stage 2 to a gradient that "
           "has no room on this card?",
           "at none: the sums are sent once, at the end":
           "This is right at stages 0 and 1. Where would stage 2 keep the "
           "sum of a piece that belongs to another card?",
       })

# %% [markdown]
# **So a higher stage is free where its traffic hides behind computing, and dear where it does not:
# with short micro-batches or a slow network.**
#
# <details><summary>One level deeper: the seconds</summary>
#
# * Computing: 8 operations a parameter and token (2 forward, 4 backward, 2 for layers that are
#   computed anew) · 7.6e9 parameters · 128 · 8,192 tokens, at 4e14 a second (we assume 40 % of an
#   H100's peak): 160 s.
# * Traffic: 384 · 15.2 GB · 3/4 (a card keeps its own quarter), at 450 GB/s inside a box: 10 s.
#   Over a network of 50 GB/s: 88 s.
# * So a micro-batch of stage 3 hides its traffic from 500 tokens on in a box, from 4,500 over the
#   network. If the answers have 1,160 tokens on average, computing takes 23 s: still enough in a
#   box. <!-- cited: 8, 4, 7.6e9, 40, 160, 384, 15.2, 450, 10, 50, 88, 500, 23 -->
# </details>

# %% [markdown]
# **The first sitting in 60 seconds.** 16 bytes for a trained parameter, 2 for a frozen one, and the
# KV cache: 2 · layers · kv heads · head size · bytes a token. So memory sets how many answers are
# written at once. Offloading keeps the two halves of the step apart, ZeRO splits the 16 among the
# cards. Stages 0 and 1 send the model twice a step; 2 and 3 send after every micro-batch, which
# hides behind computing if that is long.

# %%
score("systems.1", "systems.2")

# %% [markdown]
# **A question of the interview.** A minute, aloud, then unfold.
#
# <details><summary><b>What is in memory when a 7B model trains with GRPO?</b></summary>
#
# 16 bytes for each trained parameter, about 120 GB: weights, gradients, float32 master copy and two
# moments. 2 for a reference, 2 for the engine's copy, and activations, small if layers are computed
# anew (*activation checkpointing*) and logits made in pieces (*chunked loss*). And the KV cache,
# with long answers the largest: 57 KB a token for a Qwen of 7B. ZeRO splits the 16, offloading
# keeps the halves of the step apart. With LoRA only the adapter takes 16, the base takes 2 and
# without the adapter is the reference, and only the adapter must be sent to the engine.
# </details>
#
# **Stop here**, or do exercises 1 and 4. The next sitting takes a fresh head.

# %% [markdown]
# ## Second sitting: who waits for whom?
#
# The answers are written, and then the cards train. Suppose now that the trainer has cards of its
# own. We simulate a queue:
#
# * **64 slots.** A slot is a place for one answer that is being written.
# * **A batch of 64 answers** makes a training step, for which the trainer takes half as long as a
#   mean answer takes to write.
# * **Lengths:** their log is normal, with a std of 1, the **spread**.
# * **Batches ahead,** 0 for now: the slots begin 64 answers, and wait for the update that learns
#   from them. With k batches ahead a slot may begin an answer as long as fewer than 64 · (k + 1)
#   are begun and not yet learned from. An answer keeps the weights it began with.
#
# A slot always writes at the same speed here; on a card, the fewer slots write, the faster each is.
# Times are means over 200 steps. <!-- cited: 200 -->

# %% jupyter={"source_hidden": true}
# the two queues
waits = simulate(slots=64, batch=64, lag=0, tail=1.0, steps=400)
ahead = simulate(slots=64, batch=64, lag=1, tail=1.0, steps=400)

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.3", "All 64 answers are written by the newest weights, "
        "then comes the training, then the next 64. What share of its time "
        "does a slot write?",
        ["about two thirds: the rest is training",
         "about 40 %", "about 25 %", "about 13 %"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.3", "about 13 %",
       "One answer of 64 is long, and 63 slots wait for it. A step takes "
       f"{waits.time_per_step:.2f} mean answers. The repair is to run one "
       "batch ahead: a free slot begins an answer of the next batch at "
       "once, with the old weights, and the trainer takes whichever 64 are "
       "done first. **In this queue a step then takes "
       f"{ahead.time_per_step:.2f}**, and the trainer works "
       f"{50 / ahead.time_per_step:.0f} % of it instead of "
       f"{50 / waits.time_per_step:.0f} %.",
       pictures.two_timelines(
           {"synchronous": waits, "one batch ahead": ahead}, 8.5,
           "Each panel: 16 of the 64 slots, with the longest answer among "
           "them. A bar is an answer, its colour the update that made its "
           "weights (six colours, then again); white is waiting; black is "
           "the trainer. White remains on the right: a slot may begin no "
           "answer beyond the next batch."),
       instead={
           "about two thirds: the rest is training":
           "It would be, if all answers were equally long.",
           "about 40 %": "It would be, at a spread of 0.3.",
           "about 25 %":
           "It would be, if the longest of 64 took 3.5 mean answers. It "
           f"takes {waits.time_per_step - 0.5:.1f}.",
       })

# %% [markdown]
# Why are idle slots dear? A token for one slot takes an H100 4.5 ms, the time to read all weights
# (writing is *memory-bound*). For 64 slots it takes 6.3 ms. **So 64 slots cost 1.4 times as much as
# one, and write 64
# tokens.** <!-- cited: 4.5, 6.3, 1.4, 5.9, 5.3, 3.35, 1160, 1570, 5.8, 1.7, 9.7, 7.6e9, 8, 2.77, 6.8, 3.2 -->
# Our queue gains 6.8 times. A real run gains less (a lone slot writes up to 1.4 times as fast,
# lengths are capped, GRPO waits for whole groups): AReaL measured up to 2.77
# ([arXiv 2505.24298](https://arxiv.org/abs/2505.24298)).
#
# <details><summary>One level deeper: where do these times come from?</summary>
#
# The weights are 15 GB, and memory moves 3.35 TB/s. If the longest of 64 answers has 8,192 tokens,
# the mean has some 1,160, and an answer that is being written holds 1,570 on average (long ones are
# met more often). That is 5.8 GB of cache for 64: 1.7 ms.
#
# Training on one token takes a card 8 · 7.6e9 / 4e14 seconds, on one token of each of 64 answers
# 9.7 ms. Writing these takes 6.3 ms. With three cards training takes 3.2: about half as long, as in
# our queue.
# </details>
#
# What does running ahead cost? The answers get old. The **age** (staleness) of an answer is the
# number of updates between its start and its use.

# %% jupyter={"source_hidden": true}
# the ages, printed
print(f"age, one batch ahead: mean {ahead.staleness.mean():.2f}, "
      f"oldest of {len(ahead.staleness):,}: {ahead.staleness.max()}")

# %% [markdown]
# Why is the mean 1? At every update, put a mark on each *open* answer: begun, and not yet taken by
# the trainer. In the end an answer has as many marks as its age. There are $n$ answers and $U$
# updates, each of $B$ answers.
#
# $$\begin{aligned}
# \text{marks}&=n\cdot\overline{\text{age}}&&\text{answer by answer}\\
# \text{marks}&=U\cdot\bar N&&\text{update by update: on average }\bar N\text{ answers are open}\\
# n&=U\cdot B&&\textbf{assumed: each answer is used once}\\
# \overline{\text{age}}&=\bar N/B&&\text{divide}
# \end{aligned}$$
# So **the mean age is the number of open answers at an update, counted in batches.** (This is
# **Little's law**, L = λW, with time counted in updates.)
#
# With one batch ahead at most 128 answers are begun and not yet learned from. When an update ends,
# 64 of them have just been learned from. So at most 64 are open, one batch, and the mean age is at
# most 1. (Our slots use the whole limit: it is 1.) **The number of batches ahead caps the mean age.
# It does not cap the oldest,** in this run 26, for no answer has a limit here: the trainer takes
# whichever 64 are done first, and a long answer is overtaken again and again.

# %% [markdown]
# How do you get rid of the very old ones? Let the trainer take the answers **in the order they were
# begun**: the first 64 belong to the first step, the next 64 to the second.

# %% jupyter={"source_hidden": true}
# the queue in order
lags = {lag: simulate(slots=64, batch=64, lag=lag, tail=1.0, steps=400,
                      in_order=True) for lag in (0, 1, 2, 4)}
order = lags[1]
more = ("| batches ahead, in order | mean age | oldest | step |\n"
        "|---|---|---|---|\n")
for lag, run in lags.items():
    ages = run.staleness
    more += (f"| {lag} | {ages.mean():.1f} | {ages.max()} | "
             f"{run.time_per_step:.1f} |\n")

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.9", "One batch ahead, in order, in our queue. How old is "
        "the oldest, and how long does a step take?",
        ["oldest 1, a step about 1.1", "oldest 1, a step about 2.5",
         "oldest 1, a step about 4.3", "oldest 26, a step about 1.1"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.9", "oldest 1, a step about 4.3",
       "Now **the number of batches ahead caps every age. The price is "
       "waiting** for the slowest of a step's own 64. To write it takes "
       f"{waits.time_per_step - 0.5:.1f}, to train 0.5, together "
       f"{waits.time_per_step:.1f}. Two batches are on their way at a "
       "time, so a step takes half of that at least, "
       f"{waits.time_per_step / 2:.1f}. It takes "
       f"{order.time_per_step:.1f}: one that is done early does not make "
       "up for one that is late."
       f"\n\n{more}\nMore batches ahead buy speed with age.",
       instead={
           "oldest 1, a step about 1.1":
           "Right about the age. But who waits for the slowest of the "
           "step's own 64?",
           "oldest 1, a step about 2.5":
           "The trainer waits for the slowest of a step's own 64. How much "
           "time does that one have, with one batch ahead?",
           "oldest 26, a step about 1.1":
           "An answer cannot be overtaken any more. So how many updates "
           "can pass until its own?",
       })

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t2", stale_queue.stale_queue_explorer(),
     ("With a spread of 1 or more, keep the mean age at 0.5 or less, and "
      "find the shortest step. Reckon first: how many answers may be open "
      "at an update, and how many slots is that?",
      stale_queue.fresh_and_quick))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# A mean age of 0.5 is half a batch: 32 open answers. With S slots, always busy, S answers are being
# written at an update. And while the trainer worked, for half a mean answer, S/2 more were done,
# which now wait. So 1.5 S are open, at most 32, and S is 21. With 21 slots, one batch ahead, a step
# takes 3.06. <!-- cited: 1.5, 21, 3.06, 1.11 --> The slots are always busy; yet 64 slots, busy 90 %
# of the time, take 1.11: **busy is not fast.**
# </details>
#
# Does age hurt? We trained the course's small model for 40 updates on answers of age 0, 1, 4 or 8,
# three seeds each. Each token is weighted by its ratio to the policy that wrote it, without a clip:
# this is the age together with the noise of these weights.

# %% jupyter={"source_hidden": true}
# the ends, recorded
runs = {0: "chain_stale_0"} | {
    age: f"chain_stale_{age}_no_clip" for age in (1, 4, 8)}
for age, run in runs.items():
    print(f"age {age}: pass@1 after 2,560 answers",
          *(f"{x:.2f}" for x in final(run)))

# %% [markdown]
# At age 8 two of three seeds end far lower, at age 4 all three a little. Age 1 is not clear. (All
# answers of a run have one age here; what a few very old ones do, it does not say. The curves:
# [S12](statements/19_systems.ipynb#S12-%C2%B7-how-old-may-data-be).) **So measure in your own run
# what age costs.**

# %% [markdown]
# **The second sitting in 60 seconds.** All slots wait for the longest answer. Running one batch
# ahead fills them, and makes answers old: the mean age is the open answers at an update, in
# batches. Taken as they are done, a few get very old. Taken in order, no age exceeds the batches
# ahead, and the steps wait. Log the step time and the ages, the oldest too. **Stop here.**

# %%
score("systems.3", "systems.9")

# %% [markdown]
# **Two questions of the interview.** A minute each, aloud, then unfold.
#
# <details><summary><b>Our GPUs idle during rollout. Why, and what do you do?</b></summary>
#
# The batch waits for its longest answer. If there are more answers than slots, refill free slots
# (continuous batching, the engine's default). Then run one batch ahead (on colocated cards: stop
# writing when a batch is done, train, go on with the open answers, a *partial rollout*); cap the
# length; separate trainer and engine, with cards moved until both take equally long. Watch the
# step time, not utilisation: few slots are always busy and slow.
# </details>
# <details><summary><b>How stale may data be?</b></summary>
#
# Measure it. In our small model (three seeds, 40 updates, no clip) two of three at age 8 ended far
# lower. [AReaL's example](https://inclusionai.github.io/AReaL/algorithms/async.html) allows 4
# batches ahead. Mean age is open answers at an update over batch size. If the trainer takes what is
# done first, long answers get far older. If it takes them in the order they were begun, no age
# exceeds the batches ahead, and steps wait.
# </details>

# %% [markdown]
# ## Third sitting: another program writes
#
# Suppose no answer is old. The engine's policy $\mu$ still is not the trainer's $\pi$, because the
# engine rounds differently. The **gap** of a token is log π − log μ, on tokens that the engine
# wrote.
#
# In a **mixture of experts** rounding can do more. A *router* picks in each layer a few of many
# small networks, the experts. Where it picks another one, the token is **flipped**. The trainer can
# be told which experts the engine used, and use the same (*routing replay*, R3).
#
# [Ma et al.](https://arxiv.org/abs/2510.11370) report the KL of a token between the two. While gaps
# are small, it is about std²/2 in either direction (05), so we read the std of the gap off it.

# %% jupyter={"source_hidden": true}
# published, printed
PUBLISHED = {"Qwen3-8B, dense": 0.00064, "Qwen3-30B-A3B, mixture": 0.0015,
             "  its experts replayed": 0.00075}
print("                         KL a token   std of the gap")
for name, kl in PUBLISHED.items():
    print(f"{name:24s}   {kl:8.5f}   {(2 * kl) ** 0.5:14.3f}")

# %% [markdown]
# Replay halves the KL: flips make about half of it. What does a flip do to a single token? We look
# at a small mixture of our own, random and untrained: in four layers each token uses one of eight
# experts. A copy whose weights were rounded to bfloat16 writes, the unrounded one scores.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the measurement, folded
pi = RouterPolicy(seed=0)
mu = pi.rounded()                              # bfloat16 and back
with torch.no_grad():
    y = mu.sample(400, 50, torch.Generator().manual_seed(1))
    log_mu, experts = mu.logprobs(y)
    log_pi, own = pi.logprobs(y)
gap, flip = log_pi - log_mu, flipped(experts, own)

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.14", "Fewer than 1 % of the tokens are flipped. How much "
        "of the sum of squared gaps is theirs?",
        ["about 1 %", "about 20 %", "about 60 %", "nearly all"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
share = gap[flip].square().sum() / gap.square().sum()
times = (gap[flip].square().mean() / gap[~flip].square().mean()).sqrt()
reveal("systems.14", "nearly all",
       f"{100 * flip.double().mean():.1f} % of the tokens are flipped, and "
       f"they make {100 * share:.0f} % of the sum: their gaps are "
       f"{times:.0f} times as large. **In our mixture a flip is rare "
       "and large, a rounding common and small.**",
       pictures.gaps({"all tokens": gap.flatten(), "flipped": gap[flip]},
                     "Our small mixture. Tokens on a log axis. Outside the "
                     "dotted lines the ratio has left [1/2, 2]."),
       instead={
           "about 1 %":
           "It would be, if a flipped token had a gap like any other.",
           "about 20 %":
           "It would be, if their gaps were 6 times as large as others.",
           "about 60 %":
           "It would be, if their gaps were 14 times as large as others.",
       })

# %% [markdown]
# So a KL alone says little about a mixture. Ours has few flips, and large ones. In the 30B one 94 %
# of the tokens are flipped in some layer; how large their gaps are is not
# published. <!-- cited: 94 --> **Keep the engine's log-prob of
# every token, and log the gap of fresh answers**, those of age 0: its std, and its tail.

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.8", "Since step 290 the reward is flat. In fresh answers "
        "of a mixture the std of the gap was 0.06 before, then 0.08, "
        "0.10, 0.13. What do you try first?",
        ["send the weights to the engine again", "drop the older answers",
         "replay the experts", "compare the sampling settings of the two"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.8", "send the weights to the engine again",
       "It begins at one step and grows from there, in answers that count "
       "as fresh: the trainer moves on, and the engine writes with the "
       "weights of step 290. So its reward stays too. If the gap drops "
       "after sending, that was it."
       "\n\n| gap of fresh answers | suspect | test |\n|---|---|---|\n"
       "| from the first step on | sampling settings, number formats, "
       "experts | it is there at learning rate 0 |\n"
       "| from one step on, growing | weights that do not arrive, an old "
       "prefix cache (keys and values of prompts) | send again, compare "
       "checksums, empty the "
       "cache; if it stays, the policy itself has moved |\n"
       "| small, but large in old answers | age | fewer batches ahead |\n",
       instead={
           "drop the older answers":
           "These are the fresh ones. Age shows between old and fresh.",
           "replay the experts":
           "It makes a gap smaller. But flips were there before step 290. "
           "What is new?",
           "compare the sampling settings of the two":
           "Another temperature would make the gap at the first step, not "
           "from step 290 on.",
       })

# %% [markdown]
# **The third sitting in 60 seconds.** The engine rounds differently, and in a mixture a rounding
# can flip experts: replay them. Keep the engine's log-prob of every token, and log the gap of fresh
# answers. There from the first step: settings, formats, experts. Growing from one step on: the
# weights do not arrive. Only in old answers: age. **Stop here.**

# %%
score("systems.14", "systems.8")

# %% [markdown]
# ## Fourth sitting: what do you do about the gap?
#
# Say each answer aloud, then unfold.
#
# <details><summary>1. Answers were written by μ, you want a mean under π. What do you multiply by?</summary>The weight w = π/μ, of the whole answer (04).</details>
# <details><summary>2. How many answers of a weighted batch still count?</summary>The effective sample size, (Σw)² / Σw² (04).</details>
#
# The engine $\mu$ writes, and we want the mean push under $\pi$:
#
# $$\begin{aligned}
# \mathbb E_\pi[\text{push}]&=\textstyle\sum_y\mu(y)\,\frac{\pi(y)}{\mu(y)}\,\text{push}(y)=\mathbb E_\mu[w\,\text{push}]&&\text{multiply and divide by }\mu\\
# w&=\textstyle\prod_t w_t,\quad w_t=\pi(y_t\mid y_{<t})/\mu(y_t\mid y_{<t})&&\text{chain rule}
# \end{aligned}$$
# This **exact weight** (*sequence-level importance sampling*) has no bias. Its price is noise: if
# the gaps are independent, their variances add, and **the std of log w is that of the gap times
# √T**. How many answers still count? If log w is normal with mean $m$ and std $s$, then
# $\mathbb E[w]^2=e^{2m+s^2}$ and $\mathbb E[w^2]=e^{2m+2s^2}$. The share is their quotient,
# $e^{-s^2}$. In short: **exp(−std² · T)**.
#
# With the gaps of the third sitting half of the answers count at 541 tokens in the dense 8B model,
# and at 231, at most, in the 30B mixture. <!-- cited: 541, 231 --> **Answers of thousands of tokens
# are too long for the exact weight.** And the formula may be too kind.
#
# We try it on 1,000 tokens of our small mixture, twice: with its flips, and with the experts
# replayed, so that only small gaps are left.

# %% jupyter={"source_hidden": true}
# the formula, printed
long = {"experts replayed": long_answers.compute(1000, replayed=True),
        "with flips": long_answers.compute(1000)}
for name, found in long.items():
    print(f"{name:17s} std of the gap {found['std']:.4f}; by the formula "
          f"{100 * found['formula'][-1]:.0f} % count")

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.13", "Our mixture is so small that we can count over all "
        "answers that its engine may write. Is the formula right?",
        ["both times, nearly",
         "replayed yes; with flips far fewer count",
         "replayed yes; with flips far more count",
         "both times far too high"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
shares = ("| 1,000 tokens | formula | all answers | six batches of 512 |\n"
          "|---|---|---|---|\n")
for name, found in long.items():
    formula, every, worst, best = (
        found[of][-1] for of in ("formula", "every", "worst", "best"))
    shares += (f"| {name} | {100 * formula:.0f} % | {100 * every:.2g} % "
               f"| {100 * worst:.0f} to {100 * best:.0f} % |\n")
largest = (pi.table() - mu.table()).max().exp()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.13", "replayed yes; with flips far fewer count",
       f"With small gaps the formula is right:\n\n{shares}\n"
       "With flips it is not. Look at the picture of the flips again: on "
       "the right nothing is far out, for the engine hardly ever writes a "
       "token that π would write "
       "far more often. Such a token has a weight of up to "
       f"{largest:,.0f}; among our three million the largest was "
       f"{long['with flips']['largest']:.0f}. **A batch shows only what "
       "the engine wrote: it flatters.**",
       instead={
           "both times, nearly":
           "It takes log w for normal. With small gaps it is. What if a "
           "few tokens lie much further out?",
           "replayed yes; with flips far more count":
           "So it looks in a batch. Which tokens are missing there?",
           "both times far too high":
           "With small gaps log w is nearly normal.",
       })

# %% [markdown]
# So how long may the answers be?

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t3", long_answers.long_answers_explorer(),
     ("With flips: find the longest answers of which half still count, "
      "over all answers. By the formula it is 300 tokens. Say first what "
      "you expect.",
      long_answers.half_of_the_flipped))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# 80 tokens <!-- cited: 80, 92, 60, 83, 51 -->, a quarter of what the formula allows. There the best
# batch says 92 %, the worst 60, the formula 83, and the truth is 51: what a batch has not met, it
# cannot show. With the experts replayed all lines are one.
# </details>
# <details><summary>One level deeper: how does one count over all answers?</summary>
#
# A token of this mixture depends on the four before it, so there are only 17⁴ contexts. What E[w²]
# grows by after each of them is computed backwards, token by token.
# </details>
#
# What does a batch miss? Let us leave out every token with a weight above 20.

# %% jupyter={"source_hidden": true}
# what the batches miss, printed
log_pi, log_mu = pi.table(), mu.table()
rare = log_pi - log_mu > torch.tensor(20.0).log()
without = {"pi": log_pi, "mu": log_mu}
kept = {of: table.masked_fill(rare, -torch.inf)
        for of, table in without.items()}
mass = {of: 1 / exact_share(kept[of], table, [1000])[1000]
        for of, table in without.items()}
left = mass["pi"]**2 * exact_share(kept["pi"], log_mu, [1000])[1000]
print("answers of 1,000 tokens that hold such a token:")
print(f"  {100 * (1 - mass['pi']):.1f} % of pi's, "
      f"{100 * (1 - mass['mu']):.3f} % of the engine's")
print(f"without them {100 * left:.0f} % would count")

# %% [markdown]
# One of π's answers in a hundred makes nearly all of E[w²] (almost all of that those with three
# such tokens or more, which nobody will ever meet). Most batches of 512 hold none of them and look
# calm; now and then one rules a batch. Without them the formula is about right. **Giving such
# tokens less weight costs little.** (This is our mixture; the flips of a large one may be smaller.)
#
# Three ways out. None multiplies over the answer: each looks at one token, and takes the words
# before it as μ wrote them. That is their first bias.
#
# * **TIS**, truncated importance sampling: weight min($w_t$, 2)
#   ([its authors](https://fengyao.notion.site/off-policy-rl))
# * **IcePop:** weight $w_t$, but 0 outside [1/2, 5] <!-- cited: 2, 5, 0 -->
#   ([arXiv 2510.18855](https://arxiv.org/abs/2510.18855))
# * **no weight at all**

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.15", "A token of a wrong answer: the policy writes it "
        "often, the engine seldom, w is 20. It should be pushed down 20 "
        "times. Which of the three pushes it least?",
        ["TIS", "no weight at all", "IcePop", "TIS and IcePop alike"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.15", "IcePop",
       "IcePop drops it, so the policy goes on writing it.\n\n"
       "| weight | at w = 20 | at w = 1/20 | price |\n|---|---|---|---|\n"
       "| exact | 20, times the others | 1/20, times the others | noise "
       "that grows with length |\n"
       "| TIS | 2 | 1/20 | bias: words before it, and the cap |\n"
       "| IcePop | 0 | 0 | bias: words before it, and lost pushes |\n"
       "| none | 1 | 1 | bias: the whole gap |\n",
       instead={
           "TIS": "TIS caps: it still pushes twice as hard as at w = 1.",
           "no weight at all": "It pushes once, of 20 times. One of the "
           "three pushes less.",
           "TIS and IcePop alike": "Both hold it back. But at 20 TIS gives "
           "2. And IcePop?",
       })

# %% [markdown]
# Which bias is smallest depends on the gap. On large models TIS was the most robust, in
# [one comparison](https://www.llmdata.com/blog/mismatch-praxis);
# [statements 19](statements/19_systems.ipynb#The-corrections-side-by-side) counts ten rules in a
# toy.
#
# So in long answers take TIS, and log how many tokens meet the cap. If they are many, look for the
# cause.

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Systems | |
# |---|---|
# | sentence | memory sets the slots, the longest answer makes them wait, running ahead makes answers old, and another program rounds otherwise |
# | memory | 16 bytes a trained parameter, 2 a frozen one, and the KV cache: 2 · layers · kv heads · head size · bytes a token |
# | traffic | ZeRO 0 and 1 send the model twice a step; 2 and 3 grow with the m micro-batches, m + 1 and 3m, and hide behind computing if these are long |
# | age | its mean is the open answers at an update, in batches; the oldest has a cap if they are taken in order, and steps wait |
# | engine | its rounding, and experts flipped by it, make a gap log π − log μ; replay the experts |
# | weight | exact: no bias, but a share of exp(−std² · T) counts, or far fewer; TIS: min(w, 2) token by token, some bias |
# | log | step time, age, the gap and its tail, tokens at the cap |

# %%
score("systems.13", "systems.15")

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 8 minutes, after the first sitting. Bytes on each GPU: `trained` and `frozen`
# models of `parameters` each, on `gpus` cards, ZeRO `stage` 0 to 3. `parameters` is a tensor.
#
# <details><summary>hint</summary>2, 2 and 12. From which stage on is each divided? What does stage 3 do to a frozen model?</details>

# %% tags=["exercise"]
def my_memory(parameters, trained, frozen, gpus, stage):
    return ...

check.memory_bytes(my_memory)

# %% [markdown]
# **2 Measure** · 8 minutes, after the second. A log has, for n answers, when each was `begun` and
# when it was `taken` by the trainer, and the times of m `updates`. Return the mean age. Count the
# updates after an answer was begun, up to the moment it is taken: one at that moment counts, one at
# the moment it is begun does not.
#
# <details><summary>hint</summary>A table (n, m) of yes and no.</details>

# %% tags=["exercise"]
def my_age(begun, taken, updates):
    return ...

check.queue_age(my_age)

# %% [markdown]
# **3 Implement** · 10 minutes, after the fourth. REINFORCE on the engine's answers with
# truncated weights: mean over all tokens of −min(w_t, cap) A log π. Where the mask is 0, log-probs
# may be −inf. Its gradient is checked too.
#
# <details><summary>hint</summary>Should the weight have a gradient? Which policy is on top?</details>

# %% tags=["exercise"]
def my_loss(logprobs, engine_logprobs, mask, advantages, cap):
    return ...

check.corrected_loss(my_loss)

# %% [markdown]
# **4 Find the silent bug** · 8 minutes, after the first. It plans the cache, and has been right for
# years:

# %%
print(check.silent_bug_systems.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>Its models were older than grouped queries.</details>

# %% tags=["exercise"]
def my_test(cache_bytes):
    return ...

check.silent_bug_systems(my_test)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold. The first three stand at the ends of the first two sittings.
#
# <details><summary><b>The engine has a copy of the trainer's weights. Why do their log-probs differ?</b></summary>
#
# Other number formats, other kernels, other batch sizes: sums are rounded in another order. In a
# mixture of experts a rounding can flip a router, and another network computes the token.
# Published: a KL of 0.00064 a token in a dense 8B model, 0.0015 in a 30B mixture, about half of it
# flips: 94 % of the tokens have another expert in one of 48 layers at least. What makes it smaller:
# the engine's experts; a last layer in float32, which is cheap; float16 in place of bfloat16;
# kernels whose sums do not depend on the batch, which are
# slower. <!-- cited: 94, 48, 72.7, 1163, 36, 145, 82, 53, 90, 5.0, 0.8, 1.6, 2.1, 0.00064, 0.0015 -->
# </details>
# <details><summary><b>Truncated importance sampling or IcePop?</b></summary>
#
# Not the exact weight of the whole answer: the share of answers that count falls exponentially with
# length, and if a few gaps are large, a batch does not show it. A token's own weight has less noise
# and some bias. TIS keeps a token beyond the cap with weight 2, IcePop drops it on both sides of
# its band. It matters for a wrong token that the policy writes often and the engine seldom: its
# push down should count 20 times, say. TIS gives 2, IcePop none. In one comparison on large models
# TIS was the most robust. Log the tokens beyond the cap, by the sign of A.
# </details>
#
# The other four can wait for another evening.
#
# <details><summary><b>How do new weights reach the engine, and what about open answers?</b></summary>
#
# They are sent after each update: 2 bytes a parameter, regrouped from the trainer's shards to the
# engine's. Open answers can be finished with the old weights, be thrown away, or go on with the new
# ones. In the last case one answer has several authors. Store every token's log-prob and version,
# and decide whether the KV cache is kept or computed anew.
# </details>
# <details><summary><b>The model fits, and the loss runs out of memory. Why?</b></summary>
#
# The logits: tokens times vocabulary times 4 bytes. 8,192 tokens and 152,064 words are 5.0 GB,
# and loss and backward pass may hold three such. Compute the log-probs in pieces of a few hundred
# tokens. Then the explorer's activations are 0.8 GB for the logits, 1.6 for the layers' inputs
# and 2.1 for one layer computed anew, each rounded.
# </details>
# <details><summary><b>Now the model has 72B parameters. What changes?</b></summary>
#
# Training takes 16 · 72.7 = 1,163 GB: with ZeRO 3 on 32 cards 36 GB each. The engine's copy, 145
# GB, no longer fits a card. So four cards share it (*tensor parallel*): each keeps a quarter of
# every matrix and of the KV heads, 36 GB and 82 KB a token, and they add up their results twice a
# layer, over NVLink. If the engine may use 90 % of the cards, while the trainer is offloaded, 53
# answers of 8,192 tokens fit on the four. When the cache is full, the engine stops the newest
# answer, frees its cache and computes it anew later (*preemption*): put that in the log.
# </details>
# <details><summary><b>The data are old and the engine differs. Write the loss.</b></summary>
#
# Split π/μ into π/π_old, what this step has moved, and π_old/μ, age and gap. The first gets PPO's
# clip. The second is a constant factor, capped or masked. It takes one extra forward pass over the
# batch, without a gradient; μ's log-probs were stored. With π/μ in the clip, the clip would also
# cut what only the engine did:
#
# $$L=-\operatorname{mean}_t\; c\Big(\frac{\pi_{old}}{\mu}\Big)\,
# \min\big(\rho A,\ \operatorname{clip}(\rho,1\pm\varepsilon)A\big),\qquad
# \rho=\frac{\pi}{\pi_{old}}$$
#
# $c$ is a rule of the fourth sitting. AReaL calls this loss *decoupled*.
# </details>
#
# Paged caches, batch invariance, FP8, parallel matrix products, and the sentences one hears:
# [statements 19](statements/19_systems.ipynb). The exercises, solved:
# [solutions 19](solutions/19_systems.ipynb).
#
# **Next: [20](20_interview.ipynb).** Can you say all this in 60 seconds each?
