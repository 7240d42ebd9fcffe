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
# **After this page** you can count what fills a GPU, say why it waits and how old its data get,
# what changes when another program writes the answers, and what to do about it.
#
# Ten short sittings of 6, 6, 5, 6, 8, 7, 5, 8, 6 and 6 minutes; two or three make an evening
# (tired, up to twice that) · exercises 34 more · after 04 (importance sampling), 06 (PPO), 08
# (GRPO) · ZeRO: [arXiv 1910.02054](https://arxiv.org/abs/1910.02054); AReaL:
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
from rlnb.classroom.explorers import full_card, long_answers
from rlnb.classroom.explorers import stale_queue, token_rules
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import systems as pictures
from rlnb.classroom.pictures.recorded_runs import final
from rlnb.toys.rollout_queue import simulate
from rlnb.toys.router import RouterPolicy, flipped
from rlnb.toys.router_answers import chance_without
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
    "GRPO with LoRA": {name: 0 for name in trained}
    | {"frozen": 2, "engine": 2},
}, caption=("AdamW: master copy and moments. Frozen: reference and reward "
            "model; with LoRA the base, whose adapter is too small to see. "
            "All models equally large."))

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
# This is twice what training takes, if every answer has its full length. **So memory sets how many
# answers can be written at once.**
#
# **Stop here**, or go on: the sittings of this page are short.

# %% [markdown]
# ## Second sitting: how do you make it fit?
#
# In the first sitting training took 122 GB, and 512 answers at once 241. Take several cards, say
# four, which first write and then train (*colocated*). They share the answers: 128 each, 60 GB of
# cache. Each card computes the gradient of its own answers, and the gradients are summed. Then all
# four would do the same update. With **ZeRO** each updates a quarter of the weights, and sends it
# to the others. So a card need not keep everything: <!-- cited: 7.6, 122, 241, 60, 53, 42, 30 -->
#
# | stage | each of four cards keeps, to train | GB |
# |---|---|---|
# | 0, plain *data parallelism* | everything | 7.6 · 16 = 122 |
# | 1 | of AdamW's numbers only those of its quarter | 7.6 · (4 + 12/4) = 53 |
# | 2 | of the summed gradient, too, only its quarter | 7.6 · (2 + 14/4) = 42 |
# | 3, FSDP | of the weights, too, only its quarter; the others come when their layer computes | 7.6 · 16/4 = 30 |
#
# The engine stays whole on each card.
#
# **Offloading** moves to main memory, or discards, what this half of the step does not need: the
# trainer and the reference while the answers are written, the engine while the card trains (its
# *sleep mode*; the cache is empty then).

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t1", full_card.full_card_explorer(),
     ("512 answers of full length at once on 4 cards. Make it fit, with "
      "the smallest stage of ZeRO that will do. Say first whether a "
      "higher stage alone would do, or offloading alone.",
      full_card.smallest_stage))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Neither alone is enough. At its fullest moment the card would hold 213 GB. Offloading alone brings
# that to 142, stage 3 alone (it splits the reference, too) to 110. Together they do: with
# offloading, writing and training no longer share the card, and stage 1 is enough: 75 GB while it
# writes, 73 while it trains. <!-- cited: 73, 38, 50 --> The price: once a step the weights and
# AdamW's quarter, 38 GB, go to main memory, and come back with the reference's 15. At 50 GB/s that
# takes two seconds.
# </details>
# <details><summary>One level deeper: what does a higher stage cost?</summary>
#
# Traffic between the cards, in *sizes of the model* a step, on many cards, for the policy alone. A
# *micro-batch* is what a card computes the gradient of at one time.
# <!-- cited: 2, 3, 129, 384, 128, 1 -->
#
# | stage | one micro-batch | 128, one answer each |
# |---|---|---|
# | 0, 1 | 2 | 2: a card first adds up its own 128 |
# | 2 | 2 | 129: gradients after each, weights once |
# | 3 | 3 | 384: gradients after each, weights fetched twice for each |
#
# A higher stage is free where its traffic hides behind computing, and dear where it does not: with
# short micro-batches or a slow network
# ([counted, in seconds](statements/19_systems.ipynb#What-ZeRO-sends)).
# </details>

# %%
score("systems.1")

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
# **Stop here**, or do exercises 1 and 4. The next sitting is about time.

# %% [markdown]
# ## Third sitting: who waits for whom?
#
# The answers are written, and then the cards train. Suppose now that the trainer has cards of its
# own. We simulate a queue:
#
# * **64 slots.** A slot is a place for one answer that is being written.
# * **A batch of 64 answers** makes a training step. Writing a mean answer takes 1, training on a
#   batch 0.5.
# * **Lengths:** their log is normal, with a std of 1, the **spread**.
# * **No batch ahead:** the slots begin 64 answers, and no other until the update.

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
       f"{ahead.time_per_step:.2f}.**",
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
           "It would be, if the longest of 64 took 3.5 mean answers. "
           "Lengths are e^(z - 0.5), and of 64 z the largest is about 2.4: "
           f"6.7. Simulated: {waits.time_per_step - 0.5:.1f}.",
       })

# %% [markdown]
# Why are idle slots dear? For each token a card reads the weights, 15.2 GB, once for all slots, and
# the cache of each. Say an answer that is being written holds 2,000 tokens: 64 slots have 7.3 GB.
# So 64 slots read 22.5 GB a token, one slot reads 15.3. Writing waits for memory, hardly for
# arithmetic (*memory-bound*): **64 slots take 1.5 times as long as one, and write 64
# tokens.** <!-- cited: 15.2, 2000, 7.3, 22.5, 15.3, 1.5, 2.77, 6.8 -->
#
# Our queue gains 6.8 times. In real runs AReaL measured up to 2.77
# ([arXiv 2505.24298](https://arxiv.org/abs/2505.24298)).

# %%
score("systems.3")

# %% [markdown]
# **A question of the interview.** A minute, aloud, then unfold.
#
# <details><summary><b>Our GPUs idle during rollout. Why, and what do you do?</b></summary>
#
# The batch waits for its longest answer. If there are more answers than slots, refill free slots
# (continuous batching, the engine's default). Then run one batch ahead (on colocated cards: stop
# writing when a batch is done, train, go on with the open answers, a *partial rollout*); cap the
# length; separate trainer and engine, with cards moved until both take equally long. Watch the
# step time, not utilisation: few slots are always busy and slow.
# </details>
#
# **Stop here.**

# %% [markdown]
# ## Fourth sitting: how old do the answers get?
#
# The queue of the third sitting again: 64 slots, batches of 64. **Batches ahead** says how many
# answers may be on their way: 64 · (1 + batches ahead) are begun and not yet learned from, at most.
# An answer keeps the weights it began with, and newer ones learn from it. The **age** (*staleness*)
# of an answer is the number of updates between its start and its use. An update is the moment at
# which the training on a batch ends. An answer is **open** at an update if it is begun, and used
# only later. Here are six answers, used two at a time:
#
# | | update 1 | update 2 | update 3 | age |
# |---|---|---|---|---|
# | answers 1 and 2 | used | | | 0, 0 |
# | answer 3 | open | used | | 1 |
# | answer 4 | open | open | used | 2 |
# | answer 5 | | used | | 0 |
# | answer 6 | | open | used | 1 |
# | **how often open** | 2 | 2 | 0 | 4 |
#
# Count the word *open*. Row by row it is the ages, column by column the open answers of an update:
# 4 either way. In general, for $n$ answers, $U$ updates of $B$ answers each, and $\bar N$ open
# answers on average: $n\cdot\overline{\text{age}}=U\cdot\bar N$. Each answer is used once, so
# $n=U\cdot B$, and $\overline{\text{age}}=\bar N/B$.
#
# **The mean age is the number of open answers, counted in batches** (**Little's law**). One batch
# ahead, at most 128 answers are on their way. An update uses 64 of them. So at most 64 are open,
# one batch, and the mean age is at most 1.

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t2", stale_queue.stale_queue_explorer(ordered=False),
     ("With a spread of 1 or more, keep the mean age at 0.5 or less, and "
      "find the shortest step. There are two ways to keep fewer answers "
      "open. Say first which you would try.",
      stale_queue.fresh_and_quick))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# A mean age of 0.5 is half a batch of open answers. So let half a batch be begun ahead: with 64
# slots a step takes 1.47. The other way is fewer slots: 16 of them, one batch ahead, have 24
# answers open: 16 being written, and 8 that were done while the trainer worked. They are always
# busy, and a step takes 4.01. <!-- cited: 1.47, 24, 8, 4.01 --> **Busy is not fast.**
# </details>
#
# **Stop here.**

# %% [markdown]
# ## Fifth sitting: and the oldest?

# %% jupyter={"source_hidden": true}
# the ages, printed
print(f"age, one batch ahead: mean {ahead.staleness.mean():.2f}, "
      f"oldest of {len(ahead.staleness):,}: {ahead.staleness.max()}")

# %% [markdown]
# The mean has a cap, the oldest has none: the trainer takes whichever 64 are done first, and a long
# answer is overtaken again and again.
#
# How do you get rid of the very old ones? Let the trainer take the answers **in the order they were
# begun**: the first 64 belong to the first step, the next 64 to the second.

# %% jupyter={"source_hidden": true}
# the queue in order
lags = {lag: simulate(slots=64, batch=64, lag=lag, tail=1.0, steps=400,
                      in_order=True) for lag in (0, 1)}
order = lags[1]
more = ("| batches ahead, in order | mean age | oldest | step "
        f"| {waits.time_per_step:.1f} / (k + 1) |\n"
        "|---|---|---|---|---|\n")
for name, run in (lags | {"1, as they are done": ahead}).items():
    ages = run.staleness
    least = "" if run is ahead else waits.time_per_step / (name + 1)
    more += (f"| {name} | {ages.mean():.1f} | {ages.max()} | "
             f"{run.time_per_step:.1f} | {least and f'{least:.1f}'} |\n")

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
       "waiting** for the slowest of a step's own 64. Its 7.1 and the "
       "training's 0.5 must fit into k + 1 steps, with k batches ahead. So "
       f"a step takes {waits.time_per_step:.1f} / (k + 1) at least, the "
       "last column. (It takes more, for a slow batch holds up the next.)"
       f"\n\n{more}\nThe last row is the queue that is not in order. So "
       "take them in order only if very old answers do harm.",
       instead={
           "oldest 1, a step about 1.1":
           "Right about the age. But who waits for the slowest of the "
           "step's own 64?",
           "oldest 1, a step about 2.5":
           "The slowest of a step's own 64 takes 7.1, the training 0.5. "
           "In two steps: 3.8 at least.",
           "oldest 26, a step about 1.1":
           "An answer cannot be overtaken any more. So how many updates "
           "can pass until its own?",
       })

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t5", stale_queue.stale_queue_explorer(),
     ("With a spread of 1, no answer may be older than two updates. Find "
      "the shortest step.",
      stale_queue.none_too_old))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# In order, two batches ahead: 3.22. Not in order the oldest is far older as soon as anything is
# begun ahead. <!-- cited: 3.22 -->
# </details>
#
# Does age hurt? We trained the course's small model on answers of one age, without a clip. Right
# answers at the end, by seed ([S12](statements/19_systems.ipynb#S12-%C2%B7-how-old-may-data-be)):

# %% jupyter={"source_hidden": true}
# the ends, recorded
runs = {0: "chain_stale_0"} | {
    age: f"chain_stale_{age}_no_clip" for age in (1, 4, 8)}
for age, run in runs.items():
    print(f"age {age}:", *(f"{x:.2f}" for x in final(run)))

# %% [markdown]
# At age 8 two of three end far lower. The other ages differ by no more than three seeds can show.
# **Measure in your own run what age costs.**

# %%
score("systems.9")

# %% [markdown]
# **A question of the interview.** A minute, aloud, then unfold.
#
# <details><summary><b>How stale may data be?</b></summary>
#
# Measure it. In our small model (three seeds, 40 updates, no clip) two of three at age 8 ended far
# lower. [AReaL's example](https://inclusionai.github.io/AReaL/algorithms/async.html) allows 4
# batches ahead. Mean age is open answers at an update over batch size. If the trainer takes what is
# done first, long answers get far older. If it takes them in the order they were begun, no age
# exceeds the batches ahead, and steps wait.
# </details>
#
# **Stop here.**

# %% [markdown]
# ## Sixth sitting: another program writes
#
# Suppose no answer is old. The engine's policy $\mu$ still is not the trainer's $\pi$, because the
# engine rounds differently. The **gap** of a token is log π − log μ, on tokens that the engine
# wrote.
#
# In a **mixture of experts** rounding can do more. A *router* picks in each layer a few of many
# small networks, the experts. Where the engine's picks another one than the trainer's, the token is
# **flipped**. The trainer can be told which experts the engine used, and use the same (*routing
# replay*, R3).
#
# [Ma et al.](https://arxiv.org/abs/2510.11370) measured the gaps of a mixture with 30 billion
# parameters, as the KL of a token between the two: 0.0015. 94 % of its tokens were flipped in at
# least one layer. In a dense model of 8 billion the KL was
# 0.00064. <!-- cited: 0.0015, 94, 0.00075, 0.00064 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.17", "Then they replayed the engine's experts, so that "
        "only the rounding was left. What became of the KL of 0.0015?",
        ["0.0001: flips made nearly all of it",
         "0.0008: flips made half of it",
         "0.0014: rounding made nearly all of it"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
PUBLISHED = {"Qwen3-8B, dense": 0.00064, "Qwen3-30B-A3B, mixture": 0.0015,
             "Qwen3-30B-A3B, replayed": 0.00075}
table = "| | KL a token | std of the gap |\n|---|---|---|\n"
for name, kl in PUBLISHED.items():
    table += f"| {name} | {kl:.5f} | {(2 * kl) ** 0.5:.4f} |\n"
reveal("systems.17", "0.0008: flips made half of it",
       "About half is left: the rounding, as in the dense model."
       f"\n\n{table}\n"
       "The last column is read off the KL, which is std²/2 while gaps are "
       "small (05). Nearly all tokens are flipped somewhere, so a flip is "
       "small on average. A few gaps are extreme, the authors report, and "
       "replay makes these fewer.",
       instead={
           "0.0001: flips made nearly all of it":
           "Then the rounding of 48 layers would be nothing.",
           "0.0014: rounding made nearly all of it":
           "Then flips in 94 % of the tokens would cost nothing.",
       })

# %% [markdown]
# **So keep the engine's log-prob of every token, and log the gap of fresh answers** (age 0): its
# std, and its tail.

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
       "It is the cheapest test, and the picture fits: from one step on "
       "the gap of fresh answers grows. The trainer moves on, and the "
       "engine still writes with the weights of step 290, so the reward of "
       "its answers stays. If the gap drops after sending, that was it."
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
           "These count as fresh. Age shows between old and fresh.",
           "replay the experts":
           "It makes a gap smaller. But flips were there before step 290. "
           "What is new?",
           "compare the sampling settings of the two":
           "Another temperature would make the gap at the first step, not "
           "from step 290 on.",
       })

# %%
score("systems.17", "systems.8")

# %% [markdown]
# **A question of the interview.** A minute, aloud, then unfold.
#
# <details><summary><b>The engine has a copy of the trainer's weights. Why do their log-probs differ?</b></summary>
#
# Other number formats, other kernels, other batch sizes: sums are rounded in another order. In a
# mixture of experts a rounding can flip a router, and another network computes the token.
# In a published 30B mixture that makes half of the KL. What makes the gap smaller:
# the engine's experts; a last layer in float32, which is cheap; float16 in place of bfloat16;
# kernels whose sums do not depend on the batch, which are
# slower.
# </details>
#
# **Stop here.**

# %% [markdown]
# ## Seventh sitting: how many answers still count?
#
# Say each answer aloud, then unfold.
#
# <details><summary>1. Answers were written by μ, you want a mean under π. What do you multiply by?</summary>The weight w = π/μ, of the whole answer (04).</details>
# <details><summary>2. How many answers of a weighted batch still count?</summary>The effective sample size, (Σw)² / Σw² (04).</details>
#
# The engine $\mu$ writes, and we want the mean push under $\pi$. As on page 04,
# $\mathbb E_\pi[\text{push}]=\mathbb E_\mu[w\,\text{push}]$ with $w=\prod_t w_t$,
# $w_t=\pi(y_t\mid y_{<t})/\mu(y_t\mid y_{<t})$. This **exact weight** (*sequence-level importance
# sampling*) has no bias. Its price is noise. Say log w is normal, with mean $m$ and std $s$. How
# many answers still count?
#
# $$\begin{aligned}
# 1=\mathbb E[w]&=e^{m+s^2/2}&&\text{mean of }e^x\text{, x normal: so }m=-s^2/2\\
# \mathbb E[w^2]&=e^{2m+2s^2}=e^{s^2}&&\text{the same for }2x\\
# \mathbb E[w]^2/\mathbb E[w^2]&=e^{-s^2}&&\text{divide: the share that counts}
# \end{aligned}$$
# If the gaps of the $T$ tokens are independent, their variances add: $s^2=\text{std}^2\,T$. **So
# exp(−std² · T) count.**

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.18", "In the dense 8B model the std of the gap is 0.0358. "
        "At which length do half of the answers still count?",
        ["50 tokens", "500 tokens", "5,000 tokens"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
half = {name: int(torch.tensor(2.0).log() / (2 * kl))
        for name, kl in PUBLISHED.items()}
at_4000 = torch.tensor(-2 * 0.00064 * 4000).exp()
reveal("systems.18", "500 tokens",
       "exp(-0.0358² · 500) = 0.53. It is a half at "
       f"{half['Qwen3-8B, dense']} tokens, in the 30B mixture at "
       f"{half['Qwen3-30B-A3B, mixture']}, if its few extreme gaps do no "
       f"harm. At 4,000 tokens of the 8B model {100 * at_4000:.1f} % "
       "count, 3 of 512. **Answers of thousands of tokens are too long for "
       "the exact weight.**",
       instead={
           "50 tokens": "exp(-0.0358² · 50) is 0.94.",
           "5,000 tokens": "exp(-0.0358² · 5,000) is 0.002.",
           
       })

# %%
score("systems.18")

# %% [markdown]
# **Stop here.**

# %% [markdown]
# ## Eighth sitting: is the formula right?
#
# What do a few extreme gaps do? We look at a small mixture of our own, random and untrained: four
# layers, eight experts. A copy whose weights were rounded to bfloat16 writes, the unrounded one
# scores.

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
# the picture
pictures.gaps({"all tokens": gap.flatten(), "flipped": gap[flip]},
              "Our small mixture, 20,000 tokens, on a log axis; the dotted "
              "lines are π/μ = 1/2 and 2. A weight of 20 would be at 3.")


# %% jupyter={"source_hidden": true}
# the flips, printed
share = gap[flip].square().sum() / gap.square().sum()
print(f"flipped: {100 * flip.double().mean():.1f} % of the tokens, "
      f"{100 * share:.1f} % of the squared gaps")

# %% [markdown]
# It is an extreme case: flips are rare and large. And it is small, so that one can count over all
# answers that its engine may write, not only those of a batch.

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t3", long_answers.long_answers_explorer(),
     ("With flips. How long may your answers be, if half are to count? "
      "Choose a length by what the batches and the formula say. Then "
      "count over all answers, and find the longest of which half count.",
      long_answers.half_of_the_flipped))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# 80 tokens <!-- cited: 80, 140, 300, 580, 92, 60, 83, 51 -->. The worst batch says 140, the formula
# 300, the best batch 580. At 80 batches say 60 to 92 %, and the truth is 51. With the experts
# replayed they all agree.
# </details>
# %% jupyter={"source_hidden": true}
# your guess
predict("systems.13", "From 80 tokens on all these batches say too much. "
        "Which answers do they miss?",
        ["none: it is chance, other batches say too little",
         "those that the engine writes far more often than π",
         "those that π writes far more often than the engine"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
rare = pi.table() - mu.table() > torch.tensor(20.0).log()  # of a token
held = {of: 1 - chance_without(policy.table(), rare, 1000)
        for of, policy in (("π", pi), ("engine", mu))}
batches = 1 / (1 - (1 - held["engine"]) ** 512)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.13", "those that π writes far more often than the engine",
       "Take answers of 1,000 tokens, and tokens with a weight above 20. "
       f"Of π's answers {100 * held['π']:.0f} % hold one, of the engine's "
       f"{100 * held['engine']:.3f} %: one batch of 512 in "
       f"{batches:.0f}. The other batches look healthy: on the right of "
       "the histogram of gaps hardly anything is seen. But these answers "
       "count by the square of their weights. **A batch shows only what "
       "the engine wrote: it flatters.**",
       instead={
           "none: it is chance, other batches say too little":
           "By chance a batch meets a few of them. But the usual one meets "
           "none, and says too much.",
           "those that the engine writes far more often than π":
           "These have small weights, and batches are full of them.",
       })

# %% [markdown]
# What carries over: a batch with few large weights does not prove that there are few. And a cap of
# 20 on a token's weight would change one of π's answers in a hundred, and take away these squares.
#
# <details><summary>One level deeper: how does one count over all answers?</summary>
#
# A token of this mixture depends on the four before it, so there are only 17⁴ contexts. What E[w²]
# grows by after each of them is computed backwards, token by token
# ([more on it](statements/19_systems.ipynb#What-a-batch-misses)).
# </details>

# %%
score("systems.13")

# %% [markdown]
# **Stop here.**

# %% [markdown]
# ## Ninth sitting: what do you do about the gap?
#
# The exact weight has no bias and, in long answers, too much noise. Three rules work token by token
# instead: a token gets a weight of its own, or none. <!-- cited: 2, 5, 0, 1 -->
#
# | weight of a token | | price |
# |---|---|---|
# | **TIS**, truncated importance sampling ([its authors](https://fengyao.notion.site/off-policy-rl)) | min($w_t$, 2) | bias: the words before, and the cap |
# | **IcePop** ([arXiv 2510.18855](https://arxiv.org/abs/2510.18855)) | $w_t$, but 0 outside [1/2, 5] | bias: the words before, and lost pushes |
# | none | 1 | bias: the whole gap |
#
# *The words before* a token are taken as the engine wrote them, as PPO's ratio does, too (06).
#

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t4", token_rules.token_rules_explorer(),
     ("A token is due its own w pushes. Find one that IcePop pushes as "
      "is due, while TIS, with its cap of 2, does not. Then look where "
      "IcePop does worst.", token_rules.icepop_exact))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Between 2 and 5 IcePop gives what is due, and TIS is capped. Beyond 5 IcePop distrusts the weight
# and gives none: at w = 20 the policy writes the token twenty times as often as the engine, twenty
# pushes are due, TIS gives two, IcePop none. At w = 1/20 it is the rule without a weight that errs:
# it pushes twenty times too hard. <!-- cited: 20 -->
# </details>
#
# Where the gaps are as small as in the dense 8B model, hardly a token meets the cap, and the rules
# hardly differ. Where they are not, [one comparison](https://www.llmdata.com/blog/mismatch-praxis)
# on large models found TIS the most robust. **Start with TIS, and log how many tokens meet the cap.
# If they are many, look for the cause.**
# ([Ten rules in a toy](statements/19_systems.ipynb#The-corrections-side-by-side).)

# %% [markdown]
# **Stop here.**

# %% [markdown]
# ## Tenth sitting: old answers from another engine
#
# Suppose the answers are old, too. Then there are three policies:
#
# * **μ** wrote the answer, in the engine, with older weights. Its log-probs were stored.
# * **π_old** is the trainer at the start of this step: one forward pass.
# * **π** is the trainer now.
#
# So π/μ = (π/π_old) · (π_old/μ), say 3.3 = 1.1 · 3. The first factor, ρ, moves in this step: it
# gets PPO's clip. The second does not: it is a constant weight $c$.
#
# $$L=-\operatorname{mean}_t\; c\Big(\frac{\pi_{old}}{\mu}\Big)\,
# \min\big(\rho A,\ \operatorname{clip}(\rho,1\pm\varepsilon)A\big)$$
# This is AReaL's **decoupled** loss. We take TIS' cap, c(w) = min(w, 2), and ε =
# 0.2. <!-- cited: 0.2 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.16", "A token of a right answer, A = 1. The engine "
        "writes it a third as often as π_old: π_old/μ = 3. This step has "
        "moved it by ρ = 1.1. How hard is it pushed?",
        ["not at all: π/μ = 3.3 is outside the clip",
         "1.1: the clip sees ρ alone, and the engine does not count",
         "2.2: ρ times the capped weight", "3.3: the whole ratio"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
logp = torch.tensor(1.1).log().requires_grad_()  # π_old = 1, μ = 1/3
rho, c = logp.exp(), torch.tensor(3.0).clamp(max=2)
push = torch.autograd.grad(c * torch.min(rho, rho.clamp(0.8, 1.2)), logp)[0]
both = 3 * logp.exp()
whole = torch.autograd.grad(torch.min(both, both.clamp(0.8, 1.2)), logp)[0]
reveal("systems.16", "2.2: ρ times the capped weight",
       f"The push, the gradient of -L by log π, is {push:.1f}. With π/μ "
       f"in the clip it is {abs(whole):.0f}: 3.3 lies outside, though the "
       "policy has hardly moved. **The clip is for what this step does, "
       "the weight for what was before: age and engine.**",
       instead={
           "not at all: π/μ = 3.3 is outside the clip":
           "This is what happens with π/μ in the clip. Here the clip sees "
           "ρ = 1.1 only.",
           "1.1: the clip sees ρ alone, and the engine does not count":
           "Right about the clip. The engine counts through c.",
           "3.3: the whole ratio":
           "Without a cap it would be. How large may c be?",
       })

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Systems | |
# |---|---|
# | sentence | memory sets the slots, the longest answer makes them wait, running ahead makes answers old, and another program rounds differently |
# | memory | 16 bytes a trained parameter, 2 a frozen one, and the KV cache: 2 · layers · kv heads · head size · bytes a token |
# | ZeRO | splits the 16: AdamW's numbers, the gradients, the weights; the higher the stage, the more is sent |
# | age | its mean is the open answers at an update, in batches; the oldest has a cap if they are taken in order, and steps wait |
# | engine | its rounding, and experts flipped by it, make a gap log π − log μ; replay the experts |
# | weight | exact: no bias, but a share of exp(−std² · T) counts, far less if a few gaps are large; TIS: min(w, 2) token by token, some bias |
# | log | step time, age, the gap and its tail, tokens at the cap |

# %%
score("systems.16")

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 8 minutes, after the second sitting. Bytes on each GPU: `trained` and `frozen`
# models of `parameters` each, on `gpus` cards, ZeRO `stage` 0 to 3. `parameters` is a tensor.
#
# <details><summary>hint</summary>2, 2 and 12. From which stage on is each divided? What does stage 3 do to a frozen model?</details>

# %% tags=["exercise"]
def my_memory(parameters, trained, frozen, gpus, stage):
    return ...

check.memory_bytes(my_memory)

# %% [markdown]
# **2 Measure** · 8 minutes, after the fourth sitting. A log has, for n answers, when each was
# `begun` and when it was `taken` by the trainer, and the times of m `updates`. Return the mean age.
# Count the updates after an answer was begun, up to the moment it is taken: one at that moment
# counts, one at the moment it is begun does not. (It is taken when the training on its batch
# begins, so that batch's own update comes later.)
#
# <details><summary>hint</summary>A table (n, m) of yes and no.</details>

# %% tags=["exercise"]
def my_age(begun, taken, updates):
    return ...

check.queue_age(my_age)

# %% [markdown]
# **3 Implement** · 10 minutes, after the ninth sitting. REINFORCE on the engine's answers with
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
# A minute each, aloud, then unfold. Four more stand at the ends of the sittings.
#
# <details><summary><b>Truncated importance sampling or IcePop?</b></summary>
#
# Not the exact weight: the share of answers that count falls exponentially with length. A token's
# own weight has less noise and some bias. TIS keeps a token beyond the cap with weight 2, IcePop
# drops it, however hard it should be pushed. Log the tokens beyond the cap, by the sign of A. If
# the data are old, too: the decoupled loss.
# </details>
# <details><summary><b>How do new weights reach the engine, and what about open answers?</b></summary>
#
# They are sent after each update: 2 bytes a parameter, regrouped from the trainer's shards to the
# engine's. Open answers can be finished with the old weights, be thrown away, or go on with the new
# ones. In the last case one answer has several authors. Store every token's log-prob and version,
# and decide whether the KV cache is kept or computed anew.
# </details>
# <details><summary><b>The model fits, and the loss runs out of memory. Why?</b></summary>
#
# <!-- cited: 5.0 --> The logits: tokens times vocabulary times 4 bytes. 8,192 tokens and 152,064 words are 5.0 GB,
# and loss and backward pass may hold three such. Compute the log-probs in pieces of a few hundred
# tokens.
# </details>
#
# Paged caches, batch invariance, FP8, parallel matrix products:
# [statements 19](statements/19_systems.ipynb). The exercises, solved:
# [solutions 19](solutions/19_systems.ipynb).
#
# **Next: [20](20_interview.ipynb).** Can you say all this in 60 seconds each?
