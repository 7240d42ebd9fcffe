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
# **After this page** you can count what fills a GPU, say why it waits and how old its answers get,
# and choose a correction for an engine that is not quite the policy that learns.
#
# 26 minutes, exercises 34 more · after 04 (importance sampling), 08 (GRPO), 12 (DPPO) · ZeRO:
# [arXiv 1910.02054](https://arxiv.org/abs/1910.02054); AReaL:
# [arXiv 2505.24298](https://arxiv.org/abs/2505.24298)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Answers were written by μ, you want a mean under π. What do you multiply by?</summary>The weight w = π/μ, of the whole answer (04).</details>
# <details><summary>2. Which of PPO's models does GRPO not need?</summary>The critic (08).</details>
# <details><summary>3. Which tokens does DPPO drop?</summary>Those whose probability has moved far and would be pushed further; never a way back (12).</details>

# %% tags=["setup"]
import torch
from rlnb import check
from rlnb.classroom.explorers import engine_rules, full_card, stale_queue
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import systems as pictures, token_grid
from rlnb.toys import running_group
from rlnb.toys.rollout_queue import simulate
from rlnb.toys.router import RouterPolicy, flipped
from rlnb.toys.two_engines import learn
from rlnb.training.studies.cluster_memory import QWEN_7B
from rlnb.training.studies.engine_gap import EDGES, recorded
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## It fits five times
#
# A language model of 7.6 <!-- cited: 7.6 --> billion parameters (a Qwen2.5), two bytes each
# (bfloat16), on a card of 80 GB:

# %%
pictures.one_bar(2 * QWEN_7B.parameters / 1e9, 80, (
    "The weights would fit five times."))

# %% [markdown]
# You start GRPO with AdamW. The first optimizer step ends in *out of memory*.

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.1", "Bytes per parameter, to train with AdamW?",
        ["4: weights and gradients, two each",
         "8: and AdamW's two moments, two each",
         "12: the moments in float32, four each", "16"])

# %%
one, tiny = torch.tensor(1.0).bfloat16(), torch.tensor(0.003).bfloat16()
print("bfloat16: 1 + 0.003 =", (one + tiny).item())

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.1", "16",
       "Weights 2, gradients 2, moments 4 + 4, and a **master copy** of "
       "the weights in float32, 4. The master copy is a choice. The line "
       "above shows why it is made: bfloat16 has 8 bits of digits, "
       "and a weight of 1 would never feel an update of 0.003. "
       f"16 bytes are {16 * QWEN_7B.parameters / 1e9:.0f} GB.",
       instead={
           "4: weights and gradients, two each":
           "That is plain SGD, without a memory of its own.",
           "8: and AdamW's two moments, two each":
           "The moments average small numbers: they are kept in float32.",
           "12: the moments in float32, four each":
           "Right about the moments. Where are small updates collected?",
       })

# %% [markdown]
# Not every model in the room is trained. A frozen one has its weights only, 2 bytes. If a separate
# program writes the answers (vLLM, SGLang), it holds one more copy, the **sampler's**.

# %%
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
# GRPO halves the bytes because the critic was a *trained* model. Dropping the KL saves the
# reference: 2 of 20.
#
# There is a second tenant. While an answer is written, every layer keeps a key and a value for each
# of its tokens, so that the next token need not compute them again: the **cache**. For this model
# 28 layers, 4 heads with 128 numbers, a key and a value, two bytes each.

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.2", "512 answers of 8,192 tokens are being written at "
        "once. Their cache?",
        ["2 GB", "24 GB: more than the weights",
         "240 GB: twice what training the policy takes", "2,400 GB"])

# %%
layers, kv_heads, size = 28, 4, 128
per_token = 2 * layers * kv_heads * size * 2          # bytes
cache = 512 * 8192 * per_token / 1e9

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.2", "240 GB: twice what training the policy takes",
       f"{per_token:,} bytes a token, {cache:.0f} GB. It grows with the "
       "number of answers *in flight*. That number is what you trade "
       "memory for.",
       instead={
           "2 GB": "That is four answers.",
           "24 GB: more than the weights": "That is fifty answers.",
           "2,400 GB": "With as many heads of keys as of queries it "
           "would be 1,684: that is why they are shared.",
       })

# %% [markdown]
# Several cards share the load. Each writes its part of the answers. And instead of all cards
# holding the same 16 bytes, **ZeRO** splits them: stage 1 AdamW's part, 2 the gradients too, 3 the
# weights too. The cards take turns: all write, then all train.

# %%
task("systems.t1", full_card.full_card_explorer(),
     ("8 cards, nothing parked: make it fit.", full_card.eight),
     ("4 cards: make it fit.", full_card.four))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Only stage 3 does it. Stage 1 removes most of the trainer's bytes, and the reference and the
#    weights still stand on every card.
# 2. No stage is enough: the cache has doubled. Parking works, then from stage 1 on, because the two
#    halves of a step no longer share the card. On 2 cards nothing works: the cache alone is too
#    large, and you must write fewer answers at once. Real systems park by offloading (verl) or by
#    putting the engine to sleep (vLLM).
# </details>
#
# ## Who waits for whom
#
# So memory sets how many answers are written at once. Call these places **slots**. 64 slots, 64
# answers for every step. Lengths differ as in reasoning: the log of the length is normal with std
# 1, so the median is 0.6 of the mean and now and then an answer takes ten. Training on them takes
# half as long as a mean answer. A simulation, in which nothing is written ahead of the newest
# weights (`lag=0`):

# %%
waits = simulate(slots=64, batch=64, lag=0, tail=1.0, train=0.5)

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.3", "All 64 are written by the newest weights, then comes "
        "the training, then the next 64. How much of its time does a slot "
        "write?",
        ["about two thirds: the rest is training",
         "about 40 %", "about 25 %", "about 13 %"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("systems.3", "about 13 %",
       f"{waits.busy:.0%}. One answer of 64 is long, and 63 slots wait "
       f"for it. A step takes {waits.time_per_step:.1f} mean answers.",
       pictures.two_timelines({"synchronous": waits}, 9.0, (
           "16 of the 64 slots, the slowest among them. A bar is an "
           "answer, its colour the version of the weights that began it.")),
       instead={
           "about two thirds: the rest is training":
           "So it would be if all answers were equally long.",
           "about 40 %": "That is a spread of 0.3.",
           "about 25 %": "The longest of 64 is longer than you think.",
       })

# %% [markdown]
# The obvious repair: a free slot does not wait for the new weights. It begins an answer of the next
# batch with the old ones. Let it run at most one batch ahead:

# %%
ahead = simulate(slots=64, batch=64, lag=1, tail=1.0, train=0.5)
print(f"a step takes {waits.time_per_step:.2f}, one batch ahead "
      f"{ahead.time_per_step:.2f}")
print(f"age of the answers: mean {ahead.staleness.mean():.2f}, "
      f"oldest {ahead.staleness.max()}")
pictures.two_timelines({"synchronous": waits, "one batch ahead": ahead},
                       6.0, "The same slots, the same lengths.")

# %% [markdown]
# More than six times as fast. The price is **age**: how many times the weights have changed between
# an answer's begin and its use. The limit holds for the mean. The longest answers, perhaps the ones
# on hard problems, are far older.
#
# What sets the mean age? Count pairs (answer, update that falls between its begin and its use),
# twice:
#
# $$\begin{aligned}
# \text{pairs}&=n\cdot\overline{\text{age}}&&\text{answer by answer: each has as many as its age}\\
# \text{pairs}&=U\cdot\bar N&&\text{update by update: }\bar N\text{ answers are begun and not yet used}\\
# n&=U\cdot B&&\textbf{assumed: an update uses }B\textbf{ answers, each once}\\
# \overline{\text{age}}&=\bar N/B&&\text{divide}
# \end{aligned}$$

# %%
long = simulate(slots=64, batch=64, lag=1, tail=1.0, train=0.5, steps=96)
print(f"mean age {long.staleness.mean():.3f}, "
      f"begun and unused / 64 = {long.unused / 64:.3f}")

# %% [markdown]
# So age is not a mystery of the network. It is the number of open answers, in batches.

# %%
task("systems.t2", stale_queue.stale_queue_explorer(),
     ("Spread 1 or more: slots busy 90 %, mean age at most 0.5.",
      stale_queue.fresh_and_busy),
     ("Spread 1 or more: a step in 1.2 or less, mean age at most 1.1.",
      stale_queue.quick))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. 16 slots, one batch ahead. Few open answers, so they are young, and always busy. And slow: a
#    step takes 3.9 <!-- cited: 3.9 -->. **Busy is not fast.**
# 2. 64 or 128 slots and one batch ahead. With 128 half of them idle, for the limit stops them.
# </details>
#
# Does age hurt? Our small model (0.3M parameters, page 21's task), recorded: 40 steps of 64 answers
# that are all 0, 1, 4 or 8 steps old. Loss: ratio times advantage, no clip. Three seeds each.

# %%
pictures.learning_by_time(
    "Equal answers, equal learning rate. Thin: seeds; thick: their mean.")

# %% [markdown]
# One step old: no clear difference. Four and eight: every seed ends below every fresh one. Put
# beside the simulation: one batch ahead, no clear loss in three seeds, and six times as fast in a
# queue with its own trainer, free transfer of weights and constant speed per slot. The next batches
# ahead buy little time. Recipes differ: prime-rl runs one step asynchronous by default,
# OLMo 3 eight. AReaL reports up to 2.77 times the speed of a synchronous system
# ([arXiv 2505.24298](https://arxiv.org/abs/2505.24298)).
#
# ## Same weights, other numbers
#
# Suppose nothing is old. The answer is still written by another program: bfloat16, other kernels
# (the GPU's ready-made routines), a cache. So even with the *same weights* $\pi$ of the trainer and
# $\mu$ of the engine differ. Measured: the small model writes 512 answers in bfloat16, and in
# float32 scores the same tokens.

# %%
dense = recorded()["formats"]["bfloat16"]
print(f"gap log π − log μ: std {dense['std token']:.4f} a token, "
      f"largest {dense['largest token']:.2f} of {dense['tokens']:,}")

# %% [markdown]
# Small. Now a mixture of experts. In each layer a *router* scores eight small networks and only
# the best one works. The toy of page 13: four such layers. Round all its weights to bfloat16, let
# the rounded copy write 400 answers of 50 tokens, score them with the unrounded one.

# %%
pi = RouterPolicy(seed=0)
mu = pi.copy()
with torch.no_grad():
    for weight in mu.parameters():
        weight.copy_(weight.bfloat16().double())
    y = mu.sample(400, 50, torch.Generator().manual_seed(1))
    log_mu, experts = mu.logprobs(y)
    log_pi, own = pi.logprobs(y)
    replayed, _ = pi.logprobs(y, routes=experts)

# %%
other = flipped(experts, own)
gap = log_pi - log_mu
print(f"another expert in some layer: {other.double().mean():.2%}")
print(f"std of the gap where none changed: {gap[~other].std():.4f}")

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.4", "And the std over all tokens?",
        ["about 0.0065: fewer than 1 in 100 tokens are touched",
         "about 0.01", "about 0.05", "about 0.5"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
middle = [(a + b) / 2 for a, b in zip(EDGES, EDGES[1:])]
small = [m for m, n in zip(middle, dense["histogram"]) for _ in range(n)]
reveal("systems.4", "about 0.05",
       f"{gap.std():.3f}: where an expert changed, the gap has std "
       f"{gap[other].std():.2f}. The third panel is the proof: let the "
       "trainer use the *engine's* experts (routing replay, R3), and the "
       f"std is {(replayed - log_mu).std():.4f}. Rounding is not the "
       "problem. A choice that rounding tips over is.",
       pictures.gaps({"dense, 0.3M": small, "router": gap.flatten(),
                      "experts replayed": (replayed - log_mu).flatten()},
                     "Tokens on a log axis. Outside the dotted lines the "
                     "ratio has left [1/2, 2].",
                     {"dense, 0.3M": dense["std token"]}),
       instead={
           "about 0.0065: fewer than 1 in 100 tokens are touched":
           "Few, and each is off by a hundred times as much. Squares add.",
           "about 0.01": "Squares add: 0.0077 · 0.57² is far more.",
           "about 0.5": "That is the touched tokens alone.",
       })

# %% [markdown]
# ## What to do about it
#
# The advantage of an answer is $A$, its push $A\,\nabla\log\pi$. The engine writes, $\pi$ is meant:
#
# $$\begin{aligned}
# \mathbb E_\pi[\text{push}]&=\textstyle\sum_y\pi(y)\,\text{push}(y)&&\text{definition}\\
# &=\textstyle\sum_y\mu(y)\,\frac{\pi(y)}{\mu(y)}\,\text{push}(y)=\mathbb E_\mu[w\,\text{push}]&&\text{multiply and divide}\\
# w&=\textstyle\prod_t w_t,\quad w_t=\pi(y_t)/\mu(y_t)&&\text{chain rule}\\
# w&\to w_t&&\textbf{choice: each token its own factor}\\
# w_t&\to f(w_t)&&\textbf{choice: cap it, or drop the token}
# \end{aligned}$$
#
# The product is exact and as noisy as all its tokens together. Every choice trades bias for noise:
#
# | name | factor on a token's push |
# |---|---|
# | truncated (TIS) | $\min(w_t,2)$ |
# | IcePop | $w_t$ inside [1/2, 2], else 0 |
# | GLM-5's agentic loss | $w_t$ inside 1 ± ε, else 0, whatever the sign of A |
# | prime-rl, DPPO | 0 where $\pi(y_t)-\mu(y_t)$ is beyond 0.2 or 0.15 <!-- cited: 0.2, 0.15 --> and the push widens it, else $w_t$ |
# | TRL's default | the whole product; answer dropped above 3 |
#
# GLM-5 does not print its ε; we take 0.2. The running group, as if the engine had written it:

# %%
batch = running_group()
A = (batch.rewards - batch.rewards.mean())[:, None]
w = (batch.logprobs - batch.old_logprobs).detach().exp()
far = torch.where(A > 0, w - 1, 1 - w) >= 0.2      # and pushed further
token_grid.token_grid(batch, {
    "truncated at 2": w.clamp(max=2) * A,
    "1 ± 0.2, both signs": w * A * ((w - 1).abs() < 0.2),
    "1 ± 0.2, by sign": w * A * ~far}, caption=(
    "What multiplies ∇ log π of each token. By sign, a token that is far "
    "off stays if its push brings the two together."))

# %% [markdown]
# The explorer counts them exactly on a toy: answers of four tokens, four symbols, a table for a
# policy; a random quarter of the 256 answers is right. The engine's logits are the
# trainer's plus a small random vector, and at a share of the prefixes plus a large one, as if
# another expert had worked: these are *flipped*. The vectors stay fixed, so the engine moves with
# the trainer. **Bias** is how far the mean push is
# from the true one, **noise** the std of a batch's mean, **error** both together.

# %%
task("systems.t3", engine_rules.engine_rules_explorer(),
     ("20 % flipped, 64 answers: an error below 0.8.",
      engine_rules.small_batch),
     ("20 % flipped, 16,384 answers: an error below 0.15.",
      engine_rules.large_batch))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Dropping whole answers above 3. At 64 answers the exact weight is the *worst*: noise.
# 2. Only the exact weight. Noise falls with the batch, bias stays. (The
#    answers here are short: the noise of a product grows with every token.)
# </details>
#
# One gradient is not a run. Now train that toy, exact gradient steps, the engine always with the
# newest weights. The flipped prefixes stay the same ones throughout.

# %% jupyter={"source_hidden": true}
# your guess
predict("systems.5", "20 % flipped, 60 steps. Which ends lowest?",
        ["no correction: its bias is largest",
         "the exact weight: it is the noisiest",
         "1 ± 0.2, else dropped, whatever the sign",
         "1 ± 0.2, else dropped, only if the push widens the gap"])

# %%
rules = {"nothing": "no correction", "weight of the answer": "exact weight",
         "GLM-5 band, both signs": "1 ± 0.2, both signs",
         "the same band, by sign": "1 ± 0.2, by sign"}
panels = {title: {word: learn(rule, 0.2, lasting=lasting)
                  for rule, word in rules.items()}
          for title, lasting in (("the same prefixes", True),
                                 ("new ones every step", False))}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
last = {word: run[:, -1].mean()
        for word, run in panels["the same prefixes"].items()}
reveal("systems.5", "1 ± 0.2, else dropped, whatever the sign",
       f"{last['1 ± 0.2, both signs']:.2f}; without any correction "
       f"{last['no correction']:.2f}. A token outside the band is dropped "
       "whichever way it would go, also when the push would bring trainer "
       "and engine together. So it is never mended. The same band by sign: "
       f"{last['1 ± 0.2, by sign']:.2f}. Right panel, the control: if the "
       "flips move on, no two rules end more than 0.02 apart.",
       pictures.lasting_gap(panels, (
           "Twenty policies, mean and two standard errors. Left the sign "
           "decides, right nothing does.")),
       instead={
           "no correction: its bias is largest":
           "At one step it is about as biased as the masks. But it drops "
           "nothing.",
           "the exact weight: it is the noisiest":
           "In a batch. These steps are exact means.",
           "1 ± 0.2, else dropped, only if the push widens the gap":
           "It drops fewer tokens. Which does it keep?",
       })

# %% [markdown]
# A toy's warning, not a verdict: a real gap neither stays put nor moves on every step. **In
# practice** keep the engine's log-probs of every token, log the mean and the largest gap (TRL:
# `sampling/sampling_logp_difference`), and the share of tokens dropped *by sign of A*. The team
# behind IcePop shows that gap widening as a run decays, while its mask drops fewer and fewer tokens
# ([2026](https://ringtech.notion.site/kpop)).
#
# <details><summary>One level deeper: repair the cause, not the loss</summary>
#
# * Replay the experts (R3, [arXiv 2510.11370](https://arxiv.org/abs/2510.11370)); float32 for the
#   last layer; kernels whose result does not depend on the batch. Each is measured on the
#   [statements page](statements/19_systems.ipynb).
# * Age and engine are two gaps: $\pi/\mu=(\pi/\pi_{old})\cdot(\pi_{old}/\mu)$. The first is PPO's
#   ratio and gets the clip, the second the corrections above. GLM-5's agentic loss and prime-rl
#   take one ratio for both.
# * TRL (`vllm_importance_sampling_mode`) drops answers above 3 by default; slime's TIS caps at 2
#   and is off by default.
# </details>

# %%
score(*(f"systems.{k}" for k in range(1, 6)))

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Systems | |
# |---|---|
# | sentence | memory sets the slots, long answers make slots wait, not waiting makes answers old, and another engine makes them someone else's |
# | memory | 16 bytes a trained parameter, 2 a frozen one; cache: 2 · layers · kv heads · head size · bytes a token |
# | time | 64 slots, spread 1: busy 13 %; one batch ahead: 89 %, six times as fast |
# | formula | mean age = open answers / batch |
# | mismatch | $\mathbb E_\pi=\mathbb E_\mu[w\,\cdot]$; a cap or a mask trades bias for noise |
# | choices | master copy; batches ahead; token or answer weight; cap, mask, sign |
# | log | bytes in cache, slots busy, age, gap by token, tokens dropped by sign |

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
# all tokens of −min(w_t, cap) A log π. Under the mask may stand −inf. Its gradient is checked too.
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
# start of one, cap the length, then separate trainer and sampler. Watch the step time and not
# utilisation: few slots are always busy and slow.
# </details>
# <details><summary><b>How stale may data be?</b></summary>
#
# Measure it; one step is usually free. Mean age is open answers over batch size, and long answers
# are older than the mean. Our small model lost nothing at 1 and pass@1 at 4 and 8. Published
# recipes run from 1 to 8.
# </details>
# <details><summary><b>Sampler and trainer have the same weights. Why do their log-probs differ?</b></summary>
#
# Other number formats, other kernels, other batch sizes, so sums are rounded in another order. In a
# dense model that is small. In a mixture of experts a rounding can tip the router, and then another
# network has computed the token.
# </details>
# <details><summary><b>Truncated importance sampling or IcePop?</b></summary>
#
# Both are biased. TIS keeps a token beyond the cap with weight 2, IcePop drops it, on both sides.
# At one step the difference was small in our toy. If the gap stays on the same tokens, a mask that
# ignores the sign never lets them be mended; DPPO and prime-rl keep the way back.
# </details>
# <details><summary><b>Why not the exact weight?</b></summary>
#
# It is a product over all tokens, so its noise grows with length: log w has a std of about gap ·
# √T.
# <!-- cited: 0.006, 0.18, 0.05, 1.6 -->
# With a dense model's gap, 0.006, that is 0.18 at 1,000 tokens, and nearly the whole batch still
# counts. With the router's, 0.05, it is 1.6, and little is left. Ask for gap and length first; caps
# and token weights are for the second case.
# </details>
# <details><summary><b>What does ZeRO-3 cost?</b></summary>
#
# Communication: weights are gathered for every layer, forward and backward. It divides the
# trainer's state by the number of cards and does nothing for the cache.
# </details>
#
# Paged caches, batch invariance, FP8, parallel matrix products, and the sentences one hears:
# [statements 19](statements/19_systems.ipynb). The exercises, solved:
# [solutions 19](solutions/19_systems.ipynb).
#
# **Next: [20](20_interview.ipynb).** Can you say all this in 60 seconds each?
