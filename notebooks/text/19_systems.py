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
# 36 minutes, then 15 in a second sitting · exercises 34 more · after 04 (importance sampling), 08
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
           "Some trainers do sum gradients in float32, because a long sum "
           "in bfloat16 loses small terms, as 1 + 0.003 does. That costs 2 "
           "or 4 bytes more. The usual count leaves it out.",
       })

# %% [markdown]
# A frozen model takes 2 bytes: its weights. The answers are written (*generated*) by a separate
# program, the **engine** (vLLM, SGLang). It holds one more copy of the weights: the **sampler's** 2
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
# is not.** (8-bit Adam: 10 <!-- cited: 10 --> instead of 16. LoRA: 16 for the small adapters only;
# the model under them takes 2, and is the reference too.)
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
# This is a ceiling, with all 512 answers at full length: twice what training takes. **So memory
# sets how many answers can be written at once.**
#
# How do you make it fit? Take several cards, which first write and then train (*colocated*).
# **ZeRO** splits the training bytes among them. Stage 1 splits AdamW's part, stage 2 also the
# gradients, stage 3 also the weights, the reference's too (PyTorch calls this FSDP). Each card
# keeps a whole sampler.
#
# **Offloading** moves to main memory, or discards, what this half of the step does not need: the
# trainer and the reference while the answers are written, the sampler and the cache while the card
# trains.

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t1", full_card.full_card_explorer(),
     ("512 answers at once on 4 cards. Make it fit, with the smallest "
      "stage of ZeRO that will do. Say first whether a higher stage "
      "alone would do, or offloading alone.", full_card.smallest_stage))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Neither alone is enough. At its fullest moment the card would hold 212 GB. Offloading alone brings
# that to 142, stage 3 alone to 110. With offloading, writing and training no longer share the card,
# and stage 1 is enough: 75 GB while it writes, 73 while it trains. With all logits at once the 73
# would be 87. <!-- cited: 73, 87 -->
# </details>
#
# **And the price?** Offloading copies bytes to main memory and back, once a step. ZeRO costs
# traffic between the cards. At stage 0 each card sends its gradient to be summed, and then its part
# of the sums to the others: two *sizes of the model* a step, of 15.2 GB each. A card takes its 128
# answers one at a time, each a **micro-batch**, and updates the weights after the last.

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.2", "At which stages does a step send more between the "
        "cards, if it has more micro-batches?",
        ["at none: the sums are sent once, at the end",
         "at stage 3 only: it alone splits the weights",
         "at stages 2 and 3: from 2 on the gradient is split",
         "at stages 1, 2 and 3: each of them splits something"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
cards, micro = 4, 128
traffic = [ring.step(stage, cards, micro=micro)[1] for stage in range(4)]
made_of = ("1 gradient + the sums", "1 gradient + 1 new weights",
           f"{micro} gradients + 1 new weights",
           f"{micro} gradients + 2 · {micro} weights")
rows = "".join(
    f"| {stage} | {what} = {sent * cards / (cards - 1):.0f} | "
    f"{sent * 2 * QWEN_7B.parameters / 50e9:.1f} s |\n"
    for stage, (what, sent) in enumerate(zip(made_of, traffic)))
rate, per_token = 4e14, 6 * QWEN_7B.parameters         # operations
computing = micro * 8192 * per_token / rate
tokens = [3 / 4 * n * 2 * QWEN_7B.parameters / 50e9 * rate / per_token
          for n in (1, 3)]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.2", "at stages 2 and 3: from 2 on the gradient is split",
       "At stages 0 and 1 a card has room for a whole gradient, and adds "
       "up its micro-batches there. At stage 2 it has room for its own "
       "piece only: the other pieces must leave after every micro-batch. "
       "Stage 3 also fetches the weights, before each forward and again "
       f"before each backward pass.\n\n| stage, {micro} micro-batches | "
       f"sizes of the model a step | at 50 GB/s |\n|---|---|---|\n{rows}\n"
       "(50 GB/s, a network of 400 Gbit/s, is an assumption. A card keeps "
       "its own quarter and sends 3/4 of each size.) **Computing** takes 6 "
       "operations a parameter and token: at an assumed 4e14 a second "
       f"{computing:.0f} s, behind which even stage 3 can hide its "
       "traffic. **With short micro-batches it cannot:** stage 3 needs "
       f"about {tokens[1]:,.0f} tokens in each, stage 2 about "
       f"{tokens[0]:,.0f}.",
       instead={
           "at none: the sums are sent once, at the end":
           "This is right at stages 0 and 1. Where would stage 2 keep the "
           "sum of a piece that belongs to another card?",
           "at stage 3 only: it alone splits the weights":
           "It sends most. But what happens at stage 2 to a gradient that "
           "has no room on this card?",
           "at stages 1, 2 and 3: each of them splits something":
           "Stage 1 splits the optimizer, and that works once a step.",
       })

# %% [markdown]
# **So take the smallest stage that fits, and compare its traffic with the computing of one
# micro-batch** ([ZeRO, section 7](https://arxiv.org/abs/1910.02054)).

# %% [markdown]
# ## Who waits for whom
#
# **The queue.** A place for one answer is called a **slot**; we simulate 64. From here on the
# trainer has cards of its own. A training step takes 64 answers, and half the time in which a mean
# answer is written. The log of an answer's length is normal; its std is the **spread**, here 1.
# With 0 **batches ahead** the slots begin only the 64 answers of the next step. With 1 they may
# also begin the 64 after those.

# %% jupyter={"source_hidden": true}
# the two queues
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
       "On the right is the repair, one batch ahead: a free slot begins "
       "another answer at once, with the old weights, and the trainer "
       "takes whichever 64 are done first. **In this queue a step then "
       f"takes {ahead.time_per_step:.2f}.**",
       pictures.two_timelines(
           {"synchronous": waits, "one batch ahead": ahead}, 6.0,
           "16 of the 64 slots, the slowest among them. A bar is an "
           "answer, its colour the update that made its weights (six "
           "colours, then again). White is waiting, black the trainer."),
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
# ([arXiv 2505.24298](https://arxiv.org/abs/2505.24298)). Our synchronous queue is a bad case: it
# has a slot for every answer, so no answer is left to refill a free slot (*continuous batching*).
#
# <details><summary>One level deeper: why are idle slots dear?</summary>
#
# To write one token in every slot, the card reads all weights once: 15 GB at
# 3.35 <!-- cited: 3.35, 4.5 --> TB/s on an H100, which takes 4.5 ms for one slot or for 64. It also
# reads the caches: 64 answers of 8,192 tokens are 30 GB, 9 ms more. So a full round takes three
# times as long as the last slot alone, and writes 64 times as much.
# </details>
#
# What does running ahead cost? The answers get old. The **age** (staleness) of an answer is the
# number of updates between its start and its use.

# %% jupyter={"source_hidden": true}
# the ages, printed
print(f"age, one batch ahead: mean {ahead.staleness.mean():.2f}, "
      f"oldest {ahead.staleness.max()}")

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
# A finished answer that waits is open, too. So **the mean age is the number of open answers at an
# update, counted in batches.** This is **Little's law**.
#
# With one batch ahead, at most one batch is open at an update. So the mean age is at most 1. **The
# number of batches ahead caps the mean age. Here it does not cap the oldest,** which is 13: the
# trainer takes whichever 64 are done first, and a long answer is overtaken again and again.

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t2", stale_queue.stale_queue_explorer(),
     ("With a spread of 1 or more, keep the slots 90 % busy, and the mean "
      "age at 0.5 or less.", stale_queue.fresh_and_busy),
     ("The trainer can also take the answers in the order they were "
      "begun. Say first, for one batch ahead: how old is the oldest "
      "answer then, and does a step still take 1.11? Then, at a spread of "
      "1 or more, let no answer be older than 4 updates, and a step take "
      "less than 2.", stale_queue.none_old))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Take 16 slots and one batch ahead. Few answers are open, so they are young, and the slots are
#    always busy. But a step takes 3.9 <!-- cited: 3.9, 3.70, 1.61, 4.32, 2.21 -->: **busy is not
#    fast.**
# 2. Take them in order, with 64 slots three or four batches ahead. In order, it is fixed in advance
#    which step uses an answer, and an answer may be begun at most that many updates before its
#    step. So **the number of batches ahead now caps every age. The price is waiting** for the
#    slowest of a step's own 64. One ahead, the oldest is 1 instead of 13, and a step takes 3.70
#    instead of 1.11. Four ahead it takes 1.61, with answers about 4 updates old.
#    (One draw of 24 steps; eight others average 4.32 and 2.21.)
# </details>
#
# Does age hurt? We trained the course's small model for 40 updates on answers of age 0, 1, 4 or 8.
# Each token is weighted by its ratio to the policy that wrote it, without a clip.

# %% jupyter={"source_hidden": true}
# the picture
pictures.learning_by_time(
    "A line is a seed. Right: pass@1 at the end, seeds 0, 1, 2, each from "
    "400 answers to 100 held-out problems.")

# %% [markdown]
# At age 8, two of three seeds end far lower. About ages 1 and 4 three seeds decide nothing: one
# evaluation has a standard error of 0.015 <!-- cited: 0.015 --> or more. **So measure in your own
# run what age costs.**

# %% [markdown]
# ## Another program writes
#
# Suppose no answer is old. The engine's policy $\mu$ still is not the trainer's $\pi$, because the
# engine rounds differently. The **gap** of a token is log π − log μ. We
# measure it twice, on tokens that the engine wrote.
#
# * **Dense.** Our small model writes in bfloat16, and scores the same tokens in float32.
# * **Mixture of experts.** In each of four layers a *router* picks one of eight small networks, the
#   experts. A copy with rounded weights writes, the unrounded one scores. Where rounding makes the
#   router pick another expert in some layer, the token is **flipped**.

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
print(f"dense: std {dense['std token']:.4f}")
print(f"router, tokens not flipped: std {gap[~other].std():.4f}")
print(f"router, the {other.double().mean():.2%} that are flipped: "
      f"std {gap[other].std():.2f}")
print(f"router, all tokens: std {gap.std():.2f}; flipped ones make "
      f"{gap[other].square().sum() / gap.square().sum():.0%} of the "
      "mean square")

# %% [markdown]
# Few tokens are flipped, and they make nearly all of the gap. In the third panel the trainer uses
# the *engine's* experts (routing replay, R3).

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
# **Rounding alone makes a small gap here; rounding that flips the router makes a large one.** So
# replay the experts, and keep the engine's log-prob of every token.

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Systems | |
# |---|---|
# | sentence | memory sets the slots, the longest answer makes them wait, running ahead makes answers old, another engine makes a gap |
# | memory | 16 bytes a trained parameter, 2 a frozen one; KV cache: 2 · layers · kv heads · head size · bytes a token |
# | traffic | sizes of the model a step, m micro-batches: ZeRO 0 and 1: 2; 2: m + 1; 3: 3m; long micro-batches hide it |
# | time | our 64 slots, spread 1: busy 13 %, a step 7.28; one batch ahead: 89 %, 1.11 |
# | age | mean = open answers at an update / batch; the oldest has a cap if answers are taken in the order they were begun |
# | gap | router, std a token: 0.05 nats, that is 0.57 on the 0.77 % flipped, 0.0065 on the others |
# | log | bytes in cache, slots busy, age, gap by token |
# | against the gap | replay the experts; keep the engine's log-probs |

# %%
score("systems.1", "systems.2", "systems.3")

# %% [markdown]
# ## Second sitting: what do you do about the gap?
#
# ### Which weight makes up for it?
#
# An answer with advantage $A$ gives the push $A\,\nabla\log\pi$. The engine $\mu$ writes, but we
# want the mean under $\pi$:
#
# $$\begin{aligned}
# \mathbb E_\pi[\text{push}]&=\textstyle\sum_y\mu(y)\,\frac{\pi(y)}{\mu(y)}\,\text{push}(y)=\mathbb E_\mu[w\,\text{push}]&&\text{multiply and divide by }\mu\\
# w&=\textstyle\prod_t w_t,\quad w_t=\pi(y_t\mid y_{<t})/\mu(y_t\mid y_{<t})&&\text{chain rule}
# \end{aligned}$$
# So the exact weight is a product over all tokens.

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.4", "512 answers of 1,000 tokens, the router's gap (std "
        "0.05 a token). What is their effective share, in answers?",
        ["about 490", "about 170", "about 40", "about 7"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
batch = 512
dice = torch.Generator().manual_seed(0)
table = ("| tokens | std of log w | share of 512 | of endlessly many |\n"
         "|---|---|---|---|\n")
piece = gap.sum(1).exp()                       # 50 tokens
alone = piece.mean() ** 2 / piece.square().mean()

def count(log_w):
    v = log_w.view(200, batch).exp()
    return (v.sum(1) ** 2 / v.square().sum(1) / batch).mean()

for T in (50, 1000, 8000):
    pick = torch.randint(400, (200 * batch, T // 50), generator=dice)
    log_w = gap.sum(1)[pick].sum(1)
    endless = alone ** (T // 50)               # a product
    table += (f"| {T:,} | {log_w.std():.2f} | {count(log_w):.0%} | "
              f"{endless:.{0 if T < 8000 else 2}%} |\n")
    if T == 1000:
        s = log_w.std()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.4", "about 170",
       "A third of 512. We join measured answers of 50 tokens at random to "
       "longer ones. They are independent, so variances add: **the std of "
       f"log w is the gap times √T**, here {s:.2f}. With endlessly many "
       f"answers the shares of the pieces multiply.\n\n{table}\n"
       "(512 answers cannot show less than 1 in 512.) If log w were "
       f"normal, e^(−s²) = {(-s * s).exp():.0%} would count. But this gap "
       "reaches "
       f"{gap.min():.1f} on one side and +{gap.max():.1f} on the other: "
       "the far answers have tiny weights, and cost little.",
       instead={
           "about 490":
           "At 50 tokens, yes. The std of a sum of 1,000 gaps is √1000 = "
           "32 times that of one.",
           "about 40":
           "That would be right if log w were normal. In "
           "the router's picture, are both sides equally long?",
           "about 7":
           "At 8,000 tokens, yes.",
       })

# %% [markdown]
# Why does the gap reach further to the left? The engine wrote these tokens, and seldom writes one
# that π likes much better. Let π write:

# %% jupyter={"source_hidden": true}
# the other side, printed
with torch.no_grad():
    y = pi.sample(400, 50, torch.Generator().manual_seed(1))
    far = (pi.logprobs(y)[0] - mu.logprobs(y)[0]).max()
print(f"largest gap of 20,000 tokens: +{gap.max():.1f} if the engine "
      f"writes, +{far:.1f} if the trainer does")

# %% [markdown]
# So large weights hardly occur in the log. The effective share counts only what the engine wrote,
# and cannot show which answers are missing.
#
# ### What does a less noisy factor cost?
#
# Two common corrections multiply a token's push by a factor less noisy than $w$. **TIS** (truncated
# importance sampling, [Yao et al., 2025](https://fengyao.notion.site/off-policy-rl)) takes
# $\min(w_t,2)$. **IcePop** ([arXiv 2510.18855](https://arxiv.org/abs/2510.18855)) takes $w_t$
# inside a band, here [1/2, 2], and drops a token outside it. Both are biased.
#
# **The toy.** An answer is four tokens out of four symbols, and a random quarter of the 256 answers
# is right. Sixty policies learn by exact gradients, each with an engine of its own. The same
# prefixes are flipped for the whole run, with a gap of std 1. First we flip 1 % of them, about as
# many as we measured (0.77 %, with a std of 0.57): <!-- cited: 1 -->

# %% jupyter={"source_hidden": true}
# 1 % flipped, printed
rules = {"no correction": "nothing", "exact weight": "weight of the answer",
         "TIS": "truncated at 2", "IcePop": "IcePop [1/2, 2]"}
final = [train(rule, 0.01, draws=60).reward[:, -1]
         for rule in rules.values()]
print("1 % flipped, step 60, policies below a reward of 0.8, by rule:",
      *((end < 0.8).sum() for end in final))
print(f"the lowest reward of all: {min(end.min() for end in final):.2f}")

# %% [markdown]
# **At this share none of the four rules leaves a policy behind.** What is to be feared if flips
# become many? We now flip 20 %.

# %% jupyter={"source_hidden": true}
# sixty policies, 20 % flipped, 400 steps
runs = {name: train(rule, 0.2, steps=400, draws=60)
        for name, rule in rules.items()}

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.5", "Which rule leaves most policies below a reward of "
        "0.8 at step 60, and where are these at step 400?",
        ["no correction; some are still below 0.8",
         "TIS; all are above 0.8 by then",
         "IcePop; all are above 0.8 by then",
         "IcePop; some are still below 0.8"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
push = {"no correction": 1, "exact weight": 20, "TIS": 2, "IcePop": 0}
low = {name: (run.reward < 0.8).sum(0) for name, run in runs.items()}
ends = "".join(f"| {name} | 2 · {push[name]} = {2 * push[name]} | {n[60]} "
               f"of 60 | {n[400]} |\n" for name, n in low.items())
shown = {name: runs[name] for name in ("no correction", "TIS", "IcePop")}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.5", "IcePop; some are still below 0.8",
       "Suppose the policy writes a certain wrong answer in 40 of 100 "
       "tries and the engine in 2, because of one token: w_t = 20, and so "
       "w = 20. Count what pushes this answer down in 100 tries of the "
       "engine. Without a gap it would be 40.\n\n"
       "| | push in 100 | below 0.8 at step 60 | at 400 |\n"
       f"|---|---|---|---|\n{ends}\n**A push that is too weak makes a "
       "policy slow. If the push is dropped, a policy can stay behind.** "
       "(One of the last four still rises at step 400: pushes on its "
       "other answers slowly close the gap.)",
       pictures.many_policies(shown, (
           "20 % flipped. A line is a policy; thick: below 0.8 at step "
           "400.")),
       instead={
           "no correction; some are still below 0.8":
           "Without a correction the push on such an answer is too weak. "
           "But it comes, at every step.",
           "TIS; all are above 0.8 by then":
           "TIS is slow where w_t is far above 2. Which rule gives such a "
           "token no push at all?",
           "IcePop; all are above 0.8 by then":
           "Some are. What else can push a wrong answer down, if its own "
           "pushes are dropped?",
       })

# %% [markdown]
# IcePop drops four kinds of push: on tokens above the band ($w_t>2$) or below it, with $A>0$ or
# $A<0$.

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t3", engine_rules.engine_rules_explorer(),
     ("Give one kind back to IcePop so that no policy ends below 0.8, with "
      "20 % flipped. Say first which one.", engine_rules.one_back))

# %% [markdown]
# <details><summary>What the task shows</summary>
# Above the band with A < 0: the wrong answer of the last guess. In the policies below 0.8, at least
# 95 % of the wrong answers hold such a token. Below the band with A > 0 is a push that also brings
# π and μ together. But it raises right answers, and three policies stay below 0.8. The other two
# kinds push π and μ further apart.
# </details>
#
# A mask *by sign* drops a token outside the band only if its push moves π and μ further apart. DPPO
# does so (12).

# %% jupyter={"source_hidden": true}
# IcePop by sign, printed
many = train("IcePop, by sign", 0.2, steps=400, draws=60).reward
few = train("IcePop, by sign", 0.01, draws=60).reward[:, -1]
left = [(run < 0.8).sum() for run in (many[:, 60], many[:, 400], few)]
print("IcePop by sign, below 0.8: 20 % flipped: "
      f"{left[0]} at step 60, {left[1]} at 400; 1 % flipped: {left[2]}")

# %% [markdown]
# **Finding.** With 20 % flipped for the whole run, IcePop leaves policies behind and the mask by
# sign leaves none; near the measured share the choice hardly matters (in ten draws at 1 % IcePop
# leaves 4 of 600 below 0.8, the others none). **Scope.** This is a toy without the noise of long
# answers, for which caps and masks are made, and its flips last: drawn anew halfway, they leave 3
# of 300 of IcePop's policies below 0.8 instead of 31. <!-- cited: 4, 600, 3, 300, 31 -->
# **Advice.** First look for a bug (another temperature, log-probs before top-p, a prompt tokenised
# twice, old weights in the engine), then replay the experts, and if you still mask, log what is
# dropped by the sign of A.
#
# <details><summary>One level deeper: what repairs the cause?</summary>
#
# Replay the experts (R3, [arXiv 2510.11370](https://arxiv.org/abs/2510.11370)); float32 for the
# last layer; kernels whose result does not depend on the batch. The
# [statements page](statements/19_systems.ipynb) measures them, and ten rules.
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
# by the trainer, and the times of m `updates`. Return the mean age. Count the updates after
# an answer was begun, up to the moment it is taken: one at that moment counts, one at the moment it
# is begun does not.
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
# 16 bytes for each trained parameter, about 120 GB: weights, gradients, float32 master copy and two
# moments. 2 for a reference, 2 for the sampler's copy. And the KV cache, which often is the
# largest: 57 KB a token for a Qwen of 7B. ZeRO splits the 16, offloading keeps the halves of the
# step apart.
# </details>
# <details><summary><b>Our GPUs idle during rollout. Why, and what do you do?</b></summary>
#
# The batch waits for its longest answer. In order: refill free slots (continuous batching); run one
# batch ahead (on colocated cards: stop writing when a batch is done, train, go on with the open
# answers, a *partial rollout*); cap the length; then separate trainer and sampler. Watch the step
# time and not utilisation: few slots are always busy and slow.
# </details>
# <details><summary><b>How stale may data be?</b></summary>
#
# Measure it. In our small model (three seeds, 40 updates) age 8 left two of three far lower; ages 1
# and 4 three seeds cannot tell from 0. Mean age is open answers at an update over batch size. If
# the trainer takes what is done first, long answers get far older: 13 in our queue, one batch
# ahead. If it takes them in the order they were begun, no age exceeds the batches ahead, and steps
# wait.
# </details>
# <details><summary><b>Sampler and trainer have the same weights. Why do their log-probs differ?</b></summary>
#
# Other number formats, other kernels, other batch sizes: sums are rounded in another order. In our
# small dense model that was 0.006 nats a token (std). In a mixture of experts a rounding can flip
# the router, and another network computes the token. In our toy 0.77 % of the tokens are flipped,
# and the gap of all tokens grows to 0.05.
# </details>
# <details><summary><b>Truncated importance sampling or IcePop?</b></summary>
#
# Both are biased. TIS keeps a token beyond the cap with weight 2, IcePop drops it on both sides. In
# our toy at 1 % flipped neither left a policy behind. With 20 % flipped for the whole run IcePop
# left seven of sixty below 0.8, TIS three: IcePop gave no push down to wrong answers that the
# policy wrote often and the engine seldom. So measure the flips, and log what is dropped by the
# sign of A.
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
# The logits: tokens times vocabulary times 4 bytes. 8,192 tokens and 152,064 words are 5.0 GB, and
# loss and backward pass may hold three such. <!-- cited: 5.0, 0.18, 0.8, 1.6, 2.1, 441 --> Compute
# the log-probs in pieces: of 441 tokens, three take 0.8 GB. That is in the page's 4.6 GB of
# activations. The rest are the layers' inputs (1.6) and one layer computed anew (2.1).
# </details>
# <details><summary><b>Why not the exact weight?</b></summary>
#
# It may be too noisy: with independent gaps, log w has a std of gap · √T. At 1,000 tokens a dense
# model's gap, 0.006, makes 0.18, and nearly the whole batch counts. The router's, 0.05, makes 1.6,
# and a third counts. But an effective share sees only what the engine wrote: answers that it writes
# too seldom are missing.
# </details>
# <details><summary><b>The data are old and the engine differs. Write the loss.</b></summary>
#
# $$\frac{\pi}{\mu}=\frac{\pi}{\pi_{old}}\cdot\frac{\pi_{old}}{\mu},\qquad
# L=-\operatorname{mean}_t\; m\Big(\frac{\pi_{old}}{\mu}\Big)\,
# \min\big(\rho A,\ \operatorname{clip}(\rho,1\pm\varepsilon)A\big),\quad
# \rho=\frac{\pi}{\pi_{old}}$$
# $\pi_{old}$: the trainer's weights at the start of the step. Their log-probs take one extra
# forward pass over the batch, without a gradient; $\mu$'s were stored. So $\rho$ holds only what
# this step has moved, and gets the clip. The constant $\pi_{old}/\mu$ holds the age and the
# engine's gap; $m$ caps or masks it. Without the extra pass $\rho=\pi/\mu$, and the clip also cuts
# what only the engine did. AReaL calls this decoupled.
# </details>
#
# Paged caches, batch invariance, FP8, parallel matrix products, and the sentences one hears:
# [statements 19](statements/19_systems.ipynb). The exercises, solved:
# [solutions 19](solutions/19_systems.ipynb).
#
# **Next: [20](20_interview.ipynb).** Can you say all this in 60 seconds each?
