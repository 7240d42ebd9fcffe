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
# **After this page** you can count what fills a GPU, say why it waits, and choose a correction when
# another program writes the answers.
#
# 35 minutes, then 15 in a second sitting · exercises 34 more · after 04 (importance sampling), 08
# (GRPO), 12 (DPPO) · ZeRO: [arXiv 1910.02054](https://arxiv.org/abs/1910.02054); AReaL:
# [arXiv 2505.24298](https://arxiv.org/abs/2505.24298)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Answers were written by μ, you want a mean under π. What do you multiply by?</summary>The weight w = π/μ, of the whole answer (04).</details>
# <details><summary>2. Which of PPO's models does GRPO not need?</summary>The critic (08).</details>
# <details><summary>3. What is the effective share of a weighted batch?</summary>(Σw)² / Σw², divided by the number of answers: how many of them still count (04).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import check
from rlnb.classroom.explorers import engine_rules, full_card, stale_queue
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import systems as pictures
from rlnb.toys import ring
from rlnb.toys.rollout_queue import simulate
from rlnb.toys.router import RouterPolicy, flipped
from rlnb.toys.two_engines import train
from rlnb.training.studies.cluster_memory import QWEN_7B
from rlnb.training.studies.engine_gap import EDGES, recorded
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## It fits five times
#
# You have a model with 7.6 <!-- cited: 7.6 --> billion parameters (a Qwen2.5). Each parameter takes
# two bytes in bfloat16. Your card has 80 GB.

# %% jupyter={"source_hidden": true}
# the picture
pictures.one_bar(2 * QWEN_7B.parameters / 1e9, 80, (
    "The weights would fit five times."))

# %% [markdown]
# You start GRPO with AdamW, and the first optimizer step ends in *out of memory*. What fills the
# card?

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.1", "How many bytes per parameter does training with "
        "AdamW take, in the usual bfloat16 recipe?",
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
           "A gradient is used once and thrown away. Some trainers do "
           "sum it in float32, but the update works without.",
       })

# %% [markdown]
# A frozen model needs only 2 bytes, for its weights. And the answers are written by a separate
# program, the engine (vLLM, SGLang), which holds one more copy of the weights: the **sampler's** 2
# bytes.

# %% jupyter={"source_hidden": true}
# the picture
trained = {"weights": 2, "gradients": 2, "AdamW": 12}
two = {name: 2 * size for name, size in trained.items()}
pictures.bytes_by_method({
    "PPO": two | {"frozen": 4, "sampler": 2},
    "GRPO, reward model": trained | {"frozen": 4, "sampler": 2},
    "GRPO, verifier": trained | {"frozen": 2, "sampler": 2},
    "no KL: DAPO, Dr. GRPO": trained | {"frozen": 0, "sampler": 2},
}, caption=("AdamW: master copy and moments. Frozen: reference and reward "
            "model. All models equally large."))

# %% [markdown]
# The critic alone costs 16 of PPO's 38 bytes. **Count 16 bytes for what is trained, and 2 for what
# is not.**
#
# The second large thing is the **cache**. While an answer is written, every layer keeps a key and a
# value for each token. This model has 28 layers, with 4 heads of 128 numbers each for keys and
# values.

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.2", "512 answers are being written at once, up to 8,192 "
        "tokens each. How large is their cache at most?",
        ["2 GB", "240 GB: twice what training the policy takes",
         "24 GB: more than the weights", "2,400 GB"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
per_token = 2 * 28 * 4 * 128 * 2          # bytes
cache = 512 * 8192 * per_token / 1e9
reveal("systems.2", "240 GB: twice what training the policy takes",
       "Multiply key and value · layers · heads · numbers · bytes: that is "
       f"{per_token:,} bytes a token, {cache:.0f} GB if all answers were "
       "at full length at once. That is the peak. An engine with less "
       "room lets answers wait. **So the number of answers that are "
       "written at once is what you trade memory for.**",
       instead={
           "2 GB": "That would be enough for four answers.",
           "24 GB: more than the weights":
           "That would be enough for fifty answers.",
           "2,400 GB": "With as many heads of keys as of queries it "
           "would be 1,684: that is why they are shared.",
       })

# %% [markdown]
# How do you make it fit? Take several cards, which first write and then train (*colocated*).
# **ZeRO** splits the training bytes among the cards. Stage 1 splits AdamW's part, stage 2 also the
# gradients, stage 3 also the weights, the reference's too (PyTorch calls this FSDP). Each card
# keeps a whole sampler.
#
# *Parking* moves to the machine's main memory, or discards, what this half of the step does not
# need. While the answers are written, trainer and reference leave the card; while it trains,
# sampler and cache leave.

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t1", full_card.full_card_explorer(),
     ("512 answers at once on 4 cards. Make it fit, with the smallest "
      "stage of ZeRO that will do. Say first which helps more here, a "
      "higher stage or parking.", full_card.smallest_stage))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# At its fullest moment the card would hold 212 GB. Parking alone brings that to 142, stage 1 alone
# to 144, stage 3 alone to 110. So stage 3 helps most, and is not enough. With parking, writing and
# training no longer share the card, and each half fits from stage 1 on: 75 GB.
# </details>
#
# **And the price?** Parking copies bytes to main memory and back, once a step. A stage costs
# traffic between the cards. What each card sends in one step, in *sizes of the model* (all weights
# once; the gradients are as large):
#
# | stage | what is sent | sizes |
# |---|---|---|
# | 0 | gradients to be summed; the sums, to all | 1 + 1 |
# | 1, 2 | gradients to be summed; the new weights, to all | 1 + 1 |
# | 3 | weights before the forward pass; again before the backward pass; gradients to be summed | 1 + 1 + 1 |

# %% jupyter={"source_hidden": true}
# the same, counted on a ring of cards
cards = 8
steps = [ring.step(stage, cards) for stage in range(4)]
assert all(abs(new - steps[0][0]).max() < 1e-12 for new, _ in steps)
print(f"stages 0 to 3 on a ring of {cards}: a card sends "
      f"{cards - 1}/{cards} of "
      + ", ".join(f"{sent * cards / (cards - 1):.0f}" for _, sent in steps)
      + "\n(its own piece stays); all four end with the same weights")

# %% [markdown]
# Stages 1 and 2 send no more than plain data parallelism, and stage 3 half as much again
# ([ZeRO, section 7](https://arxiv.org/abs/1910.02054)). **With one backward pass a step,
# stages 1 and 2 cost nothing extra; take 3 only if you must.**
#
# <details><summary>One level deeper: 70 billion parameters, other sums of 16, activations</summary>
#
# With 70 billion parameters training alone fills 14 cards (16 · 70 = 1,120 GB). The sampler's copy,
# 140 GB, is larger than a card, so the engine cuts every matrix into pieces on several cards
# (*tensor parallelism*).
#
# A reference that is split, too, is gathered once more. With micro-batches, stage 3 gathers for
# each.
#
# FSDP with mixed precision usually keeps its shards in float32: 4 + 4 + 8, again 16, and gathers
# one layer at a time in bfloat16. Megatron sums gradients in float32, which makes
# 18. <!-- cited: 18 -->
#
# The bar of the **activations**, what the backward pass needs, is small here (one answer of 8,192
# tokens at a time) because the layers are computed twice and the logits come in pieces.
# </details>

# %% [markdown]
# ## Who waits for whom
#
# A place for one answer is called a **slot**. Are the slots at least always busy? We simulate 64 of
# them. From here on the cards are *split*: the
# trainer has some of its own. It takes 64 answers for a step, and needs half the time of a mean
# answer. The lengths are spread out: the log of a length is normal with std 1 (`tail`). `lag` is
# how many batches the sampler may run ahead.

# %%
waits = simulate(slots=64, batch=64, lag=0, tail=1.0, train=0.5)
ahead = simulate(slots=64, batch=64, lag=1, tail=1.0, train=0.5)

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
       f"{waits.time_per_step:.2f} mean answers on average. "
       "On the right is the repair: a free slot begins another answer at "
       "once, with the old weights, and the trainer takes whichever 64 "
       "are done first. A step then takes "
       f"{ahead.time_per_step:.2f}. **Running ahead makes this queue six "
       "times as fast.**",
       pictures.two_timelines(
           {"synchronous": waits, "one batch ahead": ahead}, 6.0,
           "16 of the 64 slots, the slowest among them. A bar is an "
           "answer, its colour the version of the weights that began it "
           "(six colours, then again)."),
       instead={
           "about two thirds: the rest is training":
           "It would be, if all answers were equally long.",
           "about 40 %": "It would be, at a spread of 0.3.",
           "about 25 %":
           "It would be, if the longest of 64 took 3.5 mean answers. It "
           f"takes {waits.time_per_step - 0.5:.1f}.",
       })

# %% [markdown]
# Real hardware gains less: AReaL measured up to 2.77 times
# ([arXiv 2505.24298](https://arxiv.org/abs/2505.24298)). Our slow queue is the worst case: a slot
# for every answer, so none is refilled; a trainer whose cards wait, too; and a last answer that
# writes no faster when its card is otherwise empty.
#
# <details><summary>One level deeper: why are idle slots dear?</summary>
#
# To write one token in every slot, the card reads all weights once: 15 GB at
# 3.35 <!-- cited: 3.35, 4.5 --> TB/s on an H100, which takes 4.5 ms for one slot or for 64. It also
# reads the caches: 64 answers of 8,192 tokens are 30 GB, 9 ms more. So a full round takes three
# times as long as the last slot alone, and writes 64 times as much.
# </details>
#
# What does running ahead cost? The answers get old. The **age** of an answer is the number of
# updates between its start and its use.

# %% jupyter={"source_hidden": true}
# the ages, printed
print(f"age, one batch ahead: mean {ahead.staleness.mean():.2f}, "
      f"oldest {ahead.staleness.max()}")

# %% [markdown]
# Where does the mean come from? At every update, put a mark on each answer that is *open*: begun,
# and not yet taken by the trainer. In the end an answer has as many marks as its age. So the marks
# can be counted by answers or by updates. There are $n$ answers and $U$ updates, and an update uses
# $B$ answers.
#
# $$\begin{aligned}
# \text{marks}&=n\cdot\overline{\text{age}}&&\text{answer by answer}\\
# \text{marks}&=U\cdot\bar N&&\text{update by update: on average }\bar N\text{ answers are open}\\
# n&=U\cdot B&&\textbf{assumed: each answer is used once}\\
# \overline{\text{age}}&=\bar N/B&&\text{divide}
# \end{aligned}$$
#
# A finished answer that waits for the trainer is open, too. So **the mean age is the number of open
# answers at an update, counted in batches.** This is **Little's law**.
#
# With `lag` 1, at an update the slots have begun at most one batch more than the trainer has taken.
# So at most one batch is open, and over a whole run the mean age is at most 1. **The limit caps the
# mean age. Nothing caps the oldest:** in this run it is 13 updates old. To bound it you must cut
# such answers or drop them, and that hits long answers only.

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t2", stale_queue.stale_queue_explorer(),
     ("With a spread of 1 or more, keep the slots 90 % busy, and the mean "
      "age at 0.5 or less.", stale_queue.fresh_and_busy),
     ("With a spread of 1 or more, make a step in less than 0.7, with a "
      "mean age of 2 (at most 2.1).",
      stale_queue.quick))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Take 16 slots and one batch ahead. Few answers are open, so they are young, and the slots are
#    always busy. But a step takes 3.9 <!-- cited: 3.9, 2.02 -->.
# 2. Take 128 slots and two batches ahead. One batch ahead leaves half of the 128 slots idle,
#    because the limit stops them. The price of the second batch is a mean age of 2. (The readout,
#    2.02, begins to count in the middle of the run.)
# </details>
#
# **Busy is not fast.** How many of your cards should write? Neither side waits if writing a batch
# takes as long as training on it. On equally many cards the two take 1 and 0.5 here, so two thirds
# of the cards should write.

# %% [markdown]
# Does age hurt? We trained the course's small model for 40 steps on answers that are all 0, 1, 4 or
# 8 updates old. Each token is weighted by its ratio to the policy that wrote it, without a clip.

# %% jupyter={"source_hidden": true}
# the picture
pictures.learning_by_time(
    "A line is a seed. Right: pass@1 at the end, seeds 0, 1, 2.")

# %% [markdown]
# At age 8 two of three seeds end far lower. Age 4 costs some points, too: all three end below the
# worst of age 0. Ages 1 and 4 three seeds cannot tell apart: their worst end at 0.830 and
# 0.825. <!-- cited: 0.830, 0.825 --> **So watch the age, and find out what it costs you.**
#
# <details><summary>One level deeper: what the queue leaves out</summary>
#
# * *Groups.* GRPO waits for all answers to a prompt. This queue takes single answers.
# * *Weight sync.* After each update 15 GB go to every engine. At 50 GB/s that takes
#   0.3 <!-- cited: 0.3 --> s, plus the time to regroup the shards.
# * *Colocated cards* can run ahead, too: stop writing when a batch is done, train, and go on with
#   the open answers (*partial rollouts*).
# </details>

# %% [markdown]
# ## Another program writes
#
# Suppose no answer is old. The engine's policy $\mu$ still is not the trainer's $\pi$, because the
# engine rounds differently. How far apart are they? The **gap** of a token is log π − log μ. We
# measure it twice.
#
# * **Dense.** Our small model writes in bfloat16, and scores the same tokens in float32.
# * **Mixture of experts.** In each of four layers a *router* picks one of eight small networks. A
#   copy with rounded weights writes, the unrounded one scores. This is the toy of page 13.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the two measurements, folded
dense = recorded()["formats"]["bfloat16"]
pi = RouterPolicy(seed=0)
mu = pi.rounded()                              # bfloat16 and back
with torch.no_grad():
    y = mu.sample(400, 50, torch.Generator().manual_seed(1))
    log_mu, experts = mu.logprobs(y)
    log_pi, own = pi.logprobs(y)
    replayed, _ = pi.logprobs(y, routes=experts)
gap, other = log_pi - log_mu, flipped(experts, own)

# %% jupyter={"source_hidden": true}
# their spread, printed
print(f"dense: std of the gap {dense['std token']:.4f}")
print(f"router, same experts: {gap[~other].std():.4f}")
print(f"router, another expert somewhere: {gap[other].std():.2f}, "
      f"that is {other.double().mean():.2%} of the tokens")

# %% [markdown]
# A flip touches fewer than 1 in 100 tokens. But the mean *square* counts, and 0.0077 · 0.57² is
# nearly all of it: over all tokens the std is 0.05. <!-- cited: 0.0077, 0.57, 0.05 --> In the third
# panel the trainer uses the *engine's* experts (routing replay, R3).

# %% jupyter={"source_hidden": true}
# the picture
middle = [(a + b) / 2 for a, b in zip(EDGES, EDGES[1:])]
small = [m for m, n in zip(middle, dense["histogram"]) for _ in range(n)]
pictures.gaps({"dense, 0.3M": small, "router": gap.flatten(),
               "experts replayed": (replayed - log_mu).flatten()},
              "Tokens on a log axis. Outside the dotted lines the "
              "ratio has left [1/2, 2].",
              {"dense, 0.3M": dense["std token"]})

# %% [markdown]
# **Rounding alone is small here. A choice that rounding tips over is not.** So first remove the
# cause: replay the experts. And keep the engine's log-prob of every token, so that the gap can be
# seen.

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Systems | |
# |---|---|
# | sentence | memory sets the slots, the longest answer makes them wait, running ahead makes answers old, another engine makes them off-policy |
# | memory | 16 bytes a trained parameter, 2 a frozen one; cache: 2 · layers · kv heads · head size · bytes a token |
# | time | 64 slots, spread 1: busy 13 %; one batch ahead: six times as fast in our queue |
# | formula | mean age = open answers at an update / batch |
# | gap | std a token: rounding alone 0.0065 nats; with a router 0.05, nearly all of it from the 0.77 % that flip, 0.57 each |
# | choices | stage of ZeRO (3 sends half as much again), parking; batches ahead; cards that write |
# | log | bytes in cache, slots busy, age, gap by token |
# | against the gap | replay the experts; keep the engine's log-probs |

# %%
score("systems.1", "systems.2", "systems.3")

# %% [markdown]
# ## Second sitting: what do you do about the mismatch?
#
# ### Does a gap of 0.05 matter?
#
# An answer with advantage $A$ gives the push $A\,\nabla\log\pi$. The engine $\mu$ writes, but we
# want the mean under $\pi$:
#
# $$\begin{aligned}
# \mathbb E_\pi[\text{push}]&=\textstyle\sum_y\mu(y)\,\frac{\pi(y)}{\mu(y)}\,\text{push}(y)=\mathbb E_\mu[w\,\text{push}]&&\text{multiply and divide by }\mu\\
# w&=\textstyle\prod_t w_t,\quad w_t=\pi(y_t\mid y_{<t})/\mu(y_t\mid y_{<t})&&\text{chain rule}
# \end{aligned}$$
#
# So the exact weight is a product over all tokens.

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.4", "512 answers of 1,000 tokens, the router's gap (std "
        "0.05 a token). How many answers still count, by the effective "
        "share?",
        ["about 490", "about 170", "about 40", "about 7"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
batch = 512
dice = torch.Generator().manual_seed(0)
table = ("| tokens | std of log w | share that counts |\n"
         "|---|---|---|\n")

def count(log_w):
    v = log_w.view(200, batch).exp()
    return (v.sum(1) ** 2 / v.square().sum(1) / batch).mean()

for T in (50, 1000, 8000):
    pick = torch.randint(400, (200 * batch, T // 50), generator=dice)
    log_w = gap.sum(1)[pick].sum(1)
    table += f"| {T:,} | {log_w.std():.2f} | {count(log_w):.0%} |\n"
    if T == 1000:
        s, mirrored = log_w.std(), count(-log_w)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.4", "about 170",
       "A third of 512. The answers are joined at random, so their parts "
       "are independent, and variances add: **the std of log w is the gap "
       "times √T**, here "
       f"{s:.2f}.\n\n{table}\nThe std alone does not fix the share. If log "
       f"w were normal, e^(−s²) = {(-s * s).exp():.0%} would count. "
       f"But this gap is skewed: it goes from {gap.min():.1f} to "
       f"+{gap.max():.1f}, so the far answers have tiny weights, and these "
       "cost little. The same gap with its sign turned round leaves "
       f"{mirrored:.0%}. So ask for the gap, the length and the tail.",
       instead={
           "about 490":
           "At 50 tokens, yes. The std of a sum of 1,000 gaps is √1000 = "
           "32 times that of one.",
           "about 40":
           "That would be right if log w were normal. In "
           "the router's picture, to which side does the gap reach on?",
           "about 7":
           "That many are left of answers of 8,000 tokens.",
       })

# %% [markdown]
# Without the weight one gets the mean push over the engine's answers, which is not the gradient of
# $J$ at π. With it, two thirds of these answers stop counting. So one makes two choices:
#
# $$\begin{aligned}
# w&\to w_t&&\textbf{choice: each token its own factor; its prefix still comes from }\mu\\
# w_t&\to f(w_t)&&\textbf{choice: cap it, or drop the token}
# \end{aligned}$$
#
# | name | factor on a token's push |
# |---|---|
# | TIS (truncated) | $\min(w_t,2)$ |
# | IcePop | $w_t$ inside a band [α, β], here [1/2, 2], else 0 |
#
# What do they cost? Take a toy in which an answer has four tokens out of four symbols, and a random
# quarter of the 256 answers is right. The
# engine's logits are off by a little, and by a lot where it has *flipped*, at 20 % of the prefixes
# for the whole run: far more than we measured above, to make the cost visible. Sixty policies learn
# for 60 exact gradient steps.

# %% jupyter={"source_hidden": true}
# the picture
rules = {"none": "nothing", "TIS": "truncated at 2",
         "IcePop": "IcePop [1/2, 2]"}
runs = {name: train(rule, 0.2, draws=60) for name, rule in rules.items()}
pictures.many_policies(runs, (
    "Above: each line a policy; thick: it ends below 0.8. Below: share of "
    "tokens dropped, mean of the policies."))

# %% [markdown]
# IcePop loses most. It drops four kinds of push: on tokens above the band (π more than twice μ) or
# below it, with A > 0 or A < 0.

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.5", "Which of the four would have closed the gap?",
        ["above with A > 0, below with A < 0",
         "below with A > 0, above with A < 0",
         "both below the band", "none: outside the band all widen it"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.5", "below with A > 0, above with A < 0",
       "Below the band π is too small, and A > 0 pushes it up. Above it π "
       "is too large, and A < 0 pushes it down. The band drops these two "
       "with the others.",
       instead={
           "above with A > 0, below with A < 0":
           "Above the band π is too large already. A > 0 makes it larger.",
           "both below the band":
           "Below the band π is too small. What does A < 0 do to it?",
           "none: outside the band all widen it":
           "A push has a sign. Which sign brings a small π up?",
       })

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t3", engine_rules.engine_rules_explorer(),
     ("Two of the four kinds close the gap. Give one kind back to IcePop "
      "and lose no policy, with 20 % flipped for the whole run. Say first "
      "which one, and why the other is not enough.",
      engine_rules.one_back))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Above the band with A < 0, and no other kind. Think of one wrong answer that the policy writes in
# 40 of 100 tries, and the engine in 2, because at its first token the engine's router takes another
# expert. Its exact weight is 20: the engine brings it up seldom, and when it does, the push down
# should count twenty times. IcePop gives it no push, so the policy cannot unlearn it. Of the lost
# policies' wrong answers 95 % or more hold a token *above* the band. The other closing kind (below,
# A > 0) raises tokens of right answers, and three policies stay lost. <!-- cited: 40, 20, 0.15 -->
#
# Without correction and with TIS the push comes, but too weak: it counts once, or twice.
# </details>
#
# A mask *by sign* drops a token outside the band only if its push widens the gap. So does DPPO
# (12), which asks whether $\pi-\mu$ is beyond ±0.15. But exact gradients have no noise, and noise
# is what caps and masks are for. So here also with 16 answers drawn in each
# step:

# %%
print("of 60: lost, mean        exact  16 drawn")
for rule in ("nothing", "weight of the answer", "truncated at 2",
             "IcePop [1/2, 2]", "IcePop, by sign", "DPPO"):
    ends = [train(rule, 0.2, draws=60, answers=n).reward[:, -1]
            for n in (None, 16)]
    print(f"{rule:20s}" + "".join(
        f"{(end < 0.8).sum():6d}, {end.mean():.2f}" for end in ends))

# %% [markdown]
# **Blind to the sign, the mask loses most; by sign it loses none or one**, like the exact weight of
# the answer. Four tokens are short: over 1,000 that weight leaves a third of the answers (above).
# And no setting that we tried shows what caps are for, a run that collapses without one. Where a
# flip moves on to other prefixes within 30 steps, plain IcePop loses none either.
#
# **In practice.** Is the gap far above rounding? Then look for a bug first: another temperature,
# log-probs before top-p where they should be after it (or the reverse), a prompt that is tokenised
# twice, weights that were not synchronised. Where it is as small as our dense model's and answers
# are short, take the exact weight. For a mixture of experts, replay the experts first. If you mask,
# do it by sign: so says this toy. Keep the engine's log-prob of every token. Log the mean and the
# largest gap (in TRL `sampling/sampling_logp_difference`), and the share of tokens dropped *by sign
# of A*.
#
# <details><summary>One level deeper: repair the cause, not the loss</summary>
#
# * Replay the experts (R3, [arXiv 2510.11370](https://arxiv.org/abs/2510.11370)); float32 for the
#   last layer; kernels whose result does not depend on the batch. The
#   [statements page](statements/19_systems.ipynb) measures them, and bias and noise of ten rules.
# * Age and engine are two gaps: $\pi/\mu=(\pi/\pi_{old})\cdot(\pi_{old}/\mu)$. The first is PPO's
#   ratio and gets the clip, the second the corrections above.
# * The presets of verl and OpenRLHF have the band [1/2, 5]. In the toy it loses six of the sixty.
# </details>

# %%
score("systems.4", "systems.5")

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 8 minutes. Bytes on each GPU: `trained` and `frozen` models of `parameters`
# each, on `gpus` cards, ZeRO `stage` 0 to 3. `parameters` is a tensor.
#
# <details><summary>hint</summary>2, 2 and 12. From which stage on is each divided? What does stage 3 do to a frozen model?</details>

# %% tags=["exercise"]
def my_memory(parameters, trained, frozen, gpus, stage):
    return ...

check.memory_bytes(my_memory)

# %% [markdown]
# **2 Measure** · 8 minutes. A log has, for n answers, when each was `begun` and when it was `taken`
# by the trainer, and the times of m `updates`. Return the mean age. An update at the moment an
# answer is begun has already written it; one at the moment it is taken counts.
#
# <details><summary>hint</summary>A table (n, m) of yes and no.</details>

# %% tags=["exercise"]
def my_age(begun, taken, updates):
    return ...

check.queue_age(my_age)

# %% [markdown]
# **3 Implement** · 10 minutes. REINFORCE on the engine's answers with truncated weights: mean over
# all tokens of −min(w_t, cap) A log π. Where the mask is 0, log-probs may be −inf. Its gradient is
# checked too.
#
# <details><summary>hint</summary>Should the weight have a gradient? Which policy is on top?</details>

# %% tags=["exercise"]
def my_loss(logprobs, engine_logprobs, mask, advantages, cap):
    return ...

check.corrected_loss(my_loss)

# %% [markdown]
# **4 Find the silent bug** · 8 minutes. It plans the cache, and has been right for years:

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
# A minute each, aloud, then unfold.
#
# <details><summary><b>What is in memory when a 7B model trains with GRPO?</b></summary>
#
# 16 bytes for each trained parameter, about 120 GB. That is weights, gradients, float32 master copy
# and two moments. Add 2 for a reference, 2 for the sampler's copy, and the cache, which often is
# the largest: 57 KB a token for a Qwen of 7B. ZeRO splits the 16, parking keeps the halves of the
# step apart.
# </details>
# <details><summary><b>Our GPUs idle during rollout. Why, and what do you do?</b></summary>
#
# The batch waits for its longest answer. In order: refill free slots, give the next batch a head
# start of one (on colocated cards by partial rollouts), cap the length, then separate trainer
# and sampler. Watch the step time and not
# utilisation: few slots are always busy and slow.
# </details>
# <details><summary><b>How stale may data be?</b></summary>
#
# Measure it. In our small model (three seeds) four updates late cost some points, one cannot be
# told from none or from four, and at eight two of three ended far lower. Mean age is open answers
# at an update over batch size, and long answers are older than the mean. Published recipes run from
# 1 (prime-rl's default) to 8 (OLMo 3).
# </details>
# <details><summary><b>Sampler and trainer have the same weights. Why do their log-probs differ?</b></summary>
#
# Other number formats, other kernels, other batch sizes, so sums are rounded in another order. In
# our small dense model that was little. In a mixture of experts a rounding can tip the router, and
# then another network has computed the token.
# </details>
# <details><summary><b>Truncated importance sampling or IcePop?</b></summary>
#
# Both are biased. TIS keeps a token beyond the cap with weight 2, IcePop drops it on both sides. In
# our toy, where the gap stayed on the same prefixes, TIS lost three of sixty policies and IcePop
# seven: wrong answers that they wrote often and the engine seldom got no push down. With that kind
# of push back (above the band, A < 0) none was lost. So log what is dropped by sign of A.
# </details>
#
# The other four can wait for another evening.
#
# <details><summary><b>How do new weights reach the engine, and what about open answers?</b></summary>
#
# They are sent after each update: 2 bytes a parameter, regrouped from the trainer's shards to the
# engine's. Open answers can be finished with the old weights, be thrown away, or go on with the new
# ones. In the last case one answer has several authors. Store every token's log-prob and version,
# and decide whether the cache is kept or written again.
# </details>
# <details><summary><b>The model fits, and the loss runs out of memory. Why?</b></summary>
#
# The logits. Tokens times vocabulary times 4 bytes, and the backward pass wants them more than
# once. 8,192 tokens and 152,064 words are 5.0 GB. <!-- cited: 5.0, 0.18 --> Compute the log-probs
# in pieces, keep only those of the chosen tokens, and recompute layers to save activations.
# </details>
# <details><summary><b>Why not the exact weight?</b></summary>
#
# It may be too noisy: with independent gaps, log w has a std of gap · √T. At 1,000 tokens a dense
# model's gap, 0.006, makes 0.18, and nearly the whole batch counts. The router's, 0.05, makes 1.6.
# A normal log w would then leave 7 %; ours leaves a third, because its long tail is on the side of
# small weights. Ask for gap, length and tail first.
# </details>
# <details><summary><b>What does ZeRO-3 cost?</b></summary>
#
# Traffic: weights are gathered layer by layer, before the forward and again before the backward
# pass. So a card sends 3 sizes of the model a step; stages 1 and 2 send 2, like plain data
# parallelism. It divides the weights of all models, the reference's too. It does nothing for the
# cache.
# </details>
#
# Paged caches, batch invariance, FP8, parallel matrix products, and the sentences one hears:
# [statements 19](statements/19_systems.ipynb). The exercises, solved:
# [solutions 19](solutions/19_systems.ipynb).
#
# **Next: [20](20_interview.ipynb).** Can you say all this in 60 seconds each?
