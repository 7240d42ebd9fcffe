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
# value for each token: here 28 layers, with 4 heads of 128 numbers each.

# %% jupyter={"source_hidden": true}
# the cache, printed
per_token = 2 * 28 * 4 * 128 * 2                       # bytes
print(f"2 (key, value) x 28 x 4 x 128 x 2 bytes = {per_token:,} a token")
print(f"512 answers of 8,192 tokens: {512 * 8192 * per_token / 1e9:.0f} GB")

# %% [markdown]
# That is twice what training takes. **So the number of answers that are written at once is what you
# trade memory for.**
#
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
# **And the price?** Parking copies bytes to main memory and back, once a step. ZeRO costs traffic
# between the cards. At stage 0 each card sends its gradient to be summed, and its part of the sums
# to all: two *sizes of the model* a step. A card takes its 128 answers one at a time, each a
# **micro-batch**, and updates the weights after the last.

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

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.2", "at stages 2 and 3: from 2 on the gradient is split",
       "At stages 0 and 1 a card has room for a whole gradient, and adds "
       "up its micro-batches there. At stage 2 it has room for its own "
       "piece only: the other pieces must leave after every micro-batch. "
       "Stage 3 also fetches the weights, before each forward and again "
       f"before each backward pass.\n\n| stage, {micro} micro-batches | "
       f"sizes of the model a step | at 50 GB/s |\n|---|---|---|\n{rows}\n"
       f"(Of {cards} cards each keeps its own quarter: the seconds are for "
       "3/4 of that, if nothing hides behind the computing.) **Stage 1 "
       "never sends more than stage 0. Stage 2 sends more as soon as there "
       "are two micro-batches.**",
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
# **So take the smallest stage that fits, and count its traffic per micro-batch**
# ([ZeRO, section 7](https://arxiv.org/abs/1910.02054), counts one).

# %% [markdown]
# ## Who waits for whom
#
# **The queue.** A place for one answer is called a **slot**; we simulate 64. From here on the cards
# are *split*: the trainer has some of its own. It takes 64 answers for a step, and works half as
# long as a mean answer is written. The log of an answer's length is normal; its std is the
# **spread**, here 1. The slots may begin a number of **batches ahead** of the trainer: none at
# first.

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
       "On the right is the repair: a free slot begins another answer at "
       "once, with the old weights, and the trainer takes whichever 64 "
       "are done first. A step then takes "
       f"{ahead.time_per_step:.2f}. **Running ahead makes this queue six "
       "times as fast.**",
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
# ([arXiv 2505.24298](https://arxiv.org/abs/2505.24298)). In our slow queue no slot is refilled, and
# a last answer writes no faster when the others are done.
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
# limit caps the mean age. Nothing caps the oldest:** in this run it is 13. To bound it you must cut
# such answers or drop them, and that hits long answers only. Resuming one later with newer weights
# does not make it younger.

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t2", stale_queue.stale_queue_explorer(),
     ("With a spread of 1 or more, keep the slots 90 % busy, and the mean "
      "age at 0.5 or less.", stale_queue.fresh_and_busy),
     ("You have 128 slots, spread 1. Before you move anything, say by "
      "Little's law how old the answers get if all slots always write, "
      "and how many batches ahead that needs. Then make a step in less "
      "than 0.7, at the lowest mean age that allows it.",
      stale_queue.quick))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Take 16 slots and one batch ahead. Few answers are open, so they are young, and the slots are
#    always busy. But a step takes 3.9 <!-- cited: 3.9, 2.02 -->: **busy is not fast.**
# 2. 128 slots that always write are two open batches: mean age 2 at least, so at least two batches
#    ahead. Two are enough. (The age reads 2.02: it is that of the second half of the run.) With one
#    ahead half of the slots are idle; with three the age is 3, for a step of
#    0.50. <!-- cited: 3, 0.50 -->
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
# At age 8, a fifth of this short run, two of three seeds end far lower. About ages 1 and 4 three
# seeds decide nothing: the best end at age 4 is 0.013 below the worst at age 0, and one evaluation
# has a standard error of 0.015 or more. <!-- cited: 0.013, 0.015 --> **So measure in your own run
# what age costs.**

# %% [markdown]
# ## Another program writes
#
# Suppose no answer is old. The engine's policy $\mu$ still is not the trainer's $\pi$, because the
# engine rounds differently. How far apart are they? The **gap** of a token is log π − log μ. We
# measure it twice, on tokens that the engine wrote.
#
# * **Dense.** Our small model writes in bfloat16, and scores the same tokens in float32.
# * **Mixture of experts.** In each of four layers a *router* picks one of eight small networks, the
#   experts. A copy with rounded weights writes, the unrounded one scores. This is the toy of
#   page 13. Where rounding makes the router pick another expert in some layer, the token is
#   **flipped**.

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
# first replay the experts. And keep the engine's log-prob of every token, so that the gap can be
# seen.

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Systems | |
# |---|---|
# | sentence | memory sets the slots, the longest answer makes them wait, running ahead makes answers old, another engine makes a gap |
# | memory | 16 bytes a trained parameter, 2 a frozen one; cache: 2 · layers · kv heads · head size · bytes a token |
# | traffic | sizes of the model a step, m micro-batches: ZeRO 0 and 1: 2; 2: m + 1; 3: 3m |
# | time | 64 slots, spread 1: busy 13 %; one batch ahead: six times as fast |
# | formula | mean age = open answers at an update / batch |
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
table = ("| tokens | std of log w | effective share |\n"
         "|---|---|---|\n")

def count(log_w):
    v = log_w.view(200, batch).exp()
    return (v.sum(1) ** 2 / v.square().sum(1) / batch).mean()

for T in (50, 1000, 8000):
    pick = torch.randint(400, (200 * batch, T // 50), generator=dice)
    log_w = gap.sum(1)[pick].sum(1)
    table += f"| {T:,} | {log_w.std():.2f} | {count(log_w):.0%} |\n"
    if T == 1000:
        s = log_w.std()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.4", "about 170",
       "A third of 512. We join measured answers of 50 tokens at random to "
       "longer ones, so variances add: **the std of log w is the gap times "
       f"√T**, here {s:.2f}.\n\n{table}\nIf log w were normal, e^(−s²) = "
       f"{(-s * s).exp():.0%} would count. But this gap reaches "
       f"{gap.min():.1f} on one side and +{gap.max():.1f} on the other: "
       "the far answers have tiny weights, and cost little.",
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
# So large weights hardly occur in the log, and the effective share cannot say what is missing.
#
# ### What becomes of an answer that the engine seldom writes?
#
# One policy, one prefix where the router flips. There π writes a certain wrong answer in 40 of 100
# tries, the engine in 2, because of one token: $w_t=20$, and so $w=20$. <!-- cited: 40, 20 -->
# A correction multiplies a token's push by a factor:
#
# | name | factor |
# |---|---|
# | no correction | 1 |
# | exact weight | $w$ |
# | TIS (truncated) | $\min(w_t,2)$ |
# | IcePop | $w_t$ inside a band, here [1/2, 2], else 0 |
#
# **The toy.** An answer is four tokens out of four symbols, and a random quarter of the 256 answers
# is right. Sixty policies learn by exact gradients. It is a stress test: the same 20 % of the
# prefixes are flipped for the whole run, with a gap of std 1. (We measured 0.77 % and
# 0.57.) <!-- cited: 1 -->

# %% jupyter={"source_hidden": true}
# sixty policies, 400 steps
rules = {"no correction": "nothing", "exact weight": "weight of the answer",
         "TIS": "truncated at 2", "IcePop": "IcePop [1/2, 2]",
         "IcePop, by sign": "IcePop, by sign"}
runs = {name: train(rule, 0.2, steps=400, draws=60)
        for name, rule in rules.items()}

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.5", "Which rule leaves most policies below a reward of "
        "0.8 at step 60, and where are these at step 400?",
        ["no correction; all are above 0.8 by then",
         "no correction; some are still below 0.8",
         "IcePop; all are above 0.8 by then",
         "IcePop; some are still below 0.8"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
push = {"no correction": 2 * 1, "TIS": 2 * 2, "IcePop": 2 * 0}
shown = {name: runs[name] for name in push}
low = {name: (run.reward < 0.8).sum(0) for name, run in shown.items()}
ends = "".join(f"| {name} | {push[name]} | {n[60]} of 60 | {n[400]} |\n"
               for name, n in low.items())

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.5", "IcePop; some are still below 0.8",
       "Count what pushes our wrong answer down in 100 tries. The exact "
       "weight gives 2 · 20 = 40, as if π had written. The others:\n\n"
       "| | push in 100 tries | below 0.8 at step 60 | at 400 |\n"
       f"|---|---|---|---|\n{ends}\n**A push that is too weak makes a "
       "policy slow. No push leaves it stuck,** unless other pushes happen "
       "to close the gap.",
       pictures.many_policies(shown, (
           "A line is a policy; thick: below 0.8 at step 400.")),
       instead={
           "no correction; all are above 0.8 by then":
           "It is slow, and that is all. Which rule gives the wrong "
           "answer no push?",
           "no correction; some are still below 0.8":
           "Without a correction the push is too weak. But it comes.",
           "IcePop; all are above 0.8 by then":
           "Some are. What else can push the wrong answer down, if its "
           "own pushes count 0?",
       })

# %% [markdown]
# IcePop drops four kinds of push: on tokens above the band ($w_t>2$) or below it, with $A>0$ or
# $A<0$.

# %% jupyter={"source_hidden": true}
# the explorer
task("systems.t3", engine_rules.engine_rules_explorer(),
     ("Give one kind back to IcePop so that no policy ends below 0.8, with "
      "20 % flipped for the whole run. Say first which one, and which of "
      "the others also brings π and μ together.",
      engine_rules.one_back))

# %% [markdown]
# <details><summary>What the task shows</summary>
# Above the band with A < 0: our wrong answer. In the policies below 0.8, at least 95 % of the wrong
# answers hold such a token. Below the band with A > 0 also brings the two together, but it raises
# right answers, and three policies stay below. The other two kinds widen the gap.
# </details>
#
# A mask *by sign* drops a token outside the band only if its push widens the gap. So does DPPO
# (12). Now with far fewer flips, too, about as many as we measured:

# %%
print("below 0.8, of 60  20 % flipped               1 % flipped")
print("at step           60    400   60, 16 drawn   60    lowest")
for name, rule in rules.items():
    many = runs[name].reward
    drawn = train(rule, 0.2, draws=60, answers=16).reward[:, -1]
    few = train(rule, 0.01, draws=60).reward[:, -1]
    print(f"{name:16s}{(many[:, 60] < 0.8).sum():4d}"
          f"{(many[:, 400] < 0.8).sum():7d}{(drawn < 0.8).sum():9d}"
          f"{(few < 0.8).sum():15d}{few.min():10.2f}")

# %% [markdown]
# (*16 drawn*: a step sees 16 answers, not the exact gradient.) **Many lasting flips: IcePop, blind
# to the sign, leaves most below 0.8; the exact weight and the mask by sign leave none or one.** TIS
# is no better than no correction. **1 %: no rule leaves any.** (In ten such draws IcePop leaves 4
# of 600.) <!-- cited: 4, 600 --> So first measure how many tokens are flipped, and for how long.
# Not shown: long answers, for whose noise caps are made. **In practice.** A gap far above rounding
# may be a bug: another temperature, log-probs before top-p instead of after it, a prompt tokenised
# twice, old weights in the engine. Then replay the experts. If you still mask, do it by sign. Log
# the gap, and what is dropped, by sign of A.
#
# <details><summary>One level deeper: repair the cause, and keep two gaps apart</summary>
#
# * Replay the experts (R3, [arXiv 2510.11370](https://arxiv.org/abs/2510.11370)); float32 for the
#   last layer; kernels whose result does not depend on the batch. The
#   [statements page](statements/19_systems.ipynb) measures them, and ten rules.
# * Old answers from another engine: $\pi/\mu=(\pi/\pi_{old})\cdot(\pi_{old}/\mu)$. The first
#   is PPO's ratio and gets the clip, the second the corrections above.
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
# The batch waits for its longest answer. In order: refill free slots; run one batch ahead (on
# colocated cards: stop writing when a batch is done, train, go on with the open answers); cap the
# length; then separate trainer and sampler. Watch the step time and not utilisation: few slots are
# always busy and slow.
# </details>
# <details><summary><b>How stale may data be?</b></summary>
#
# Measure it. In our small model (three seeds, 40 updates) age 8 left two of three far lower; ages 1
# and 4 three seeds cannot tell from 0. Mean age is open answers at an update over batch size, and
# long answers are older than the mean.
# </details>
# <details><summary><b>Sampler and trainer have the same weights. Why do their log-probs differ?</b></summary>
#
# Other number formats, other kernels, other batch sizes, so sums are rounded in another order. In
# our small dense model that was 0.006 nats a token (std). In a mixture of experts a rounding can
# flip the router, and then another network has computed the token. In our toy 0.77 % of the tokens
# are flipped, and the gap of all tokens grows to 0.05.
# </details>
# <details><summary><b>Truncated importance sampling or IcePop?</b></summary>
#
# Both are biased. TIS keeps a token beyond the cap with weight 2, IcePop drops it on both sides. In
# our toy with 20 % flipped prefixes that stayed so, IcePop left seven of sixty policies below 0.8:
# wrong answers that they wrote often and the engine seldom got no push down. With that push back
# (above the band, A < 0) it left none. TIS left three, no correction two. At 1 % none left any.
# So measure the flips, and log what is dropped by sign of A.
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
# model's gap, 0.006, makes 0.18, and nearly the whole batch counts. The router's, 0.05, makes 1.6,
# and a third counts. But an effective share sees only what the engine wrote: answers that it writes
# too seldom are missing.
# </details>
# <details><summary><b>What does ZeRO-3 cost?</b></summary>
#
# Traffic: weights are gathered layer by layer, before the forward and again before the backward
# pass, and gradients are summed, all per micro-batch. With m of them a card sends 3m sizes of the
# model a step. Stages 0 and 1 send 2, because a card can add up its gradients first; stage 2
# cannot, and sends m + 1. Stage 3 divides the weights of all models, the reference's too. It does
# nothing for the cache.
# </details>
#
# Paged caches, batch invariance, FP8, parallel matrix products, and the sentences one hears:
# [statements 19](statements/19_systems.ipynb). The exercises, solved:
# [solutions 19](solutions/19_systems.ipynb).
#
# **Next: [20](20_interview.ipynb).** Can you say all this in 60 seconds each?
