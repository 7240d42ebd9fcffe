# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 · Dr. GRPO: what is left when both divisors are gone?
#
# **After this page** you can say what every token of a batch weighs under GRPO, DAPO and Dr. GRPO,
# derive the weight that the policy gradient asks for, and compute one loss on many GPUs.
#
# 36 minutes, then 16 in a second sitting · exercises 31 more · after 08 (GRPO), 09 (its two
# divisors) · Dr. GRPO, Liu et al. 2025, [arXiv 2503.20783](https://arxiv.org/abs/2503.20783); DAPO,
# Yu et al. 2025, [arXiv 2503.14476](https://arxiv.org/abs/2503.14476)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Which two divisors does GRPO have?</summary>The std $\sigma_R$ of the group's rewards, and the answer's own number of tokens T (08).</details>
# <details><summary>2. Several GPUs read different answers. What happens to their gradients?</summary>They are averaged, and every GPU makes the same step.</details>
# <details><summary>3. Which part of GRPO's advantage is derived, and which is a choice?</summary>Minus the mean is derived, up to one factor. Dividing by $\sigma_R$ is a choice (08).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import micro_batches, shared_divisor
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import dr_grpo as pictures
from rlnb.classroom.pictures import pipeline, token_grid
from rlnb.classroom.pictures.aggregation_rules import stop_drift
from rlnb.classroom.pictures.recorded_runs import curve, final
from rlnb.objective import difference
from rlnb.toys import running_batch, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: train(rows), 32 answers a step, `rows` in a piece
def train(rows, seeds=200, steps=200, rate=0.5, B=32):
    """Mean length of wrong and right answers, (seeds, steps, 2).

    A coin decides whether an answer is right. Then the policy stops
    after each token with a probability of its own for right and for
    wrong answers, 0.1 at the start. rows=None divides by a constant.
    """
    dice = torch.Generator().manual_seed(0)
    z, seen = torch.full((seeds, 2), 0.1).logit(), []
    for _ in range(steps):
        right = (torch.rand(seeds, B, generator=dice) < 0.5).long()
        q = z.sigmoid().gather(1, right)
        T = torch.rand(seeds, B, generator=dice).log() / (-q).log1p()
        T = 1 + T.floor()
        A = right - right.double().mean(1, keepdim=True)
        N = T.view(seeds, -1, rows or B).sum(2) * B / (rows or B)
        N = N.repeat_interleave(rows or B, 1) if rows else B / 0.1
        push = A * (1 - q * T) / N
        z = z + rate * torch.stack([torch.where(right == k, push, 0)
                                    .sum(1) for k in (0, 1)], 1)
        seen.append(1 / z.sigmoid())
    return torch.stack(seen, 1)

# %% [markdown]
# ## One loss, two GPUs
#
# This page is about one box of the loop, the one where a batch of tokens becomes one number.

# %% jupyter={"source_hidden": true}
# the picture
pipeline.pipeline("loss", caption=(
    "Every token brings a loss of its own. How are they averaged?"))

# %% [markdown]
# Two colleagues train the same model. For each step of the optimizer they take 32 answers, and they
# agree on the plainest loss, the mean over all tokens of the step. One of them has a large GPU, and
# all 32 answers go through at once. The GPU of the other holds one answer. So she goes through the
# step in pieces (**micro-batches**), adds up their gradients, and lets the optimizer step once, at
# the end:

# %%
def in_pieces(losses, mask, rows):
    """Mean loss over tokens (B, T), `rows` answers at a time."""
    pieces = list(zip(losses.split(rows), mask.split(rows)))
    total = 0.0
    for x, keep in pieces:               # backward() on each
        total = total + x[keep].mean() / len(pieces)
    return total

# %% [markdown]
# They train a toy. A coin decides whether an answer will be right. The policy only decides, after
# every token, whether to stop: with one probability for right answers and another for wrong ones.
# Both are 0.1 at the start, so answers have ten tokens on average. A right answer earns 1, a wrong
# one 0, and length earns nothing. The advantage is $A=R-\bar R$.

# %% jupyter={"source_hidden": true}
# your guess
predict("dr_grpo.1", "What does the small GPU train, compared with the "
        "large one?",
        ["the same policy: a mean of means is the mean",
         "the same on average, with more noise",
         "another one: all answers get longer",
         "another one: wrong answers get longer, right ones shorter"])

# %%
runs = {rows: train(rows) for rows in (32, 4, 2, 1)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.1",
       "another one: wrong answers get longer, right ones shorter",
       "With one answer in a piece, a token is divided by the length of "
       "its own answer. That is GRPO's $1/T$, and nobody wrote it. So "
       "right answers shrink and wrong ones grow, as in 09. It happens to "
       "professionals: open-instruct corrected it at the end of 2025 "
       "([PR 1161](https://github.com/allenai/open-instruct/pull/1161)).",
       pictures.lengths_by_memory(
           {"32 answers at once": runs[32], "one at a time": runs[1]}, 10.0,
           "The same loss in words, two memories. Thick: the mean of 200 "
           "seeds; thin: twenty of them."),
       instead={
           "the same policy: a mean of means is the mean":
           "This holds only if all pieces have the same number of tokens.",
           "the same on average, with more noise":
           "Noise would average out. This does not.",
           "another one: all answers get longer":
           "Each piece has a divisor of its own. What it does depends on "
           "the sign of the advantage.",
       })

# %% [markdown]
# So this is the question of the page: **what does one token weigh, and which answers decide that?**

# %% [markdown]
# ## Which weight does the gradient ask for?
#
# The **weight** $c$ of a token is the number that multiplies its term in the sum; its push is
# $c\,A$. Take one prompt with $G$ answers and start where page 08 ended:
#
# $$\begin{aligned}
# \nabla J&=\tfrac{G}{G-1}\,\mathbb E\Big[\tfrac1G\textstyle\sum_i(R_i-\bar R)\,\nabla\log\pi(y_i)\Big]&&\text{minus the mean (08)}\\
# &=\tfrac{G}{G-1}\,\mathbb E\Big[\tfrac1G\textstyle\sum_i\sum_t(R_i-\bar R)\,\nabla\log\pi(y_{i,t})\Big]&&\text{the log of a product is a sum of logs}\\
# &\;\to\;\mathbb E\Big[\tfrac{1}{G}\textstyle\sum_i\sum_t(R_i-\bar R)\,\nabla\log\pi(y_{i,t})\Big]&&\text{drop a fixed factor: same direction}\\
# &\;\to\;\mathbb E\Big[\tfrac{1}{G\,L_{\max}}\textstyle\sum_i\sum_t(R_i-\bar R)\,\nabla\log\pi(y_{i,t})\Big]&&\textbf{a choice: which fixed number divides}
# \end{aligned}$$
#
# **The policy gradient gives every token the same weight.** Both arrows are allowed for one reason:
# the number is fixed *before* anything is sampled, so it can be taken out of the expectation.
# $\sigma_R$ and $T_i$ come with the answers, so they cannot.
#
# The first row is RLOO (03). The last row is Dr. GRPO ("GRPO done right"). It has no $\sigma_R$,
# and in place of $T_i$ a constant $L_{\max}$, the longest answer that may be written. With the clip
# of page 06, over the $B$ answers of a step, it reads
#
# $$\text{loss}=-\frac1B\sum_i\frac1{L_{\max}}\sum_t\min\big(\rho_{i,t}A_i,\ \mathrm{clip}(\rho_{i,t},1-\epsilon,1+\epsilon)A_i\big),\qquad A_i=R_i-\bar R$$

# %%
def dr_grpo_loss(logp, old_logp, mask, R, G, L_max, epsilon=0.2):
    """log-probs and mask (B, T), rewards (B,). To minimise."""
    R = R.view(-1, G)
    A = (R - R.mean(1, keepdim=True)).view(-1, 1)        # no std
    rho = (logp - old_logp).exp()
    gain = torch.minimum(rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A)
    return -torch.where(mask, gain, 0).sum() / (len(mask) * L_max)

# %%
two = running_batch()                # two prompts, four answers each
# the same number as the package's:
assert torch.allclose(ZOO["dr_grpo"](two).loss, dr_grpo_loss(
    two.logprobs, two.old_logprobs, two.mask, two.rewards, G=4, L_max=8))

# %% [markdown]
# ## Two switches, four losses
#
# What changes for a single token? Take two groups of freshly sampled answers, so that all ratios
# are 1.
#
# * prompt A, the group you know: right with 3 and 5 tokens, wrong with 2 and 6;
# * prompt B: right once, with 4 tokens, wrong with 1, 7 and 2.

# %% jupyter={"source_hidden": true}
# your guess
predict("dr_grpo.2", "Under GRPO, with both divisors, which answer's "
        "tokens are pushed hardest?",
        ["B's lone right answer: the std makes rare ones loud",
         "A's short right answer, 3 tokens",
         "B's wrong answer of one token",
         "B's wrong answer of seven tokens"])

# %%
R, T = two.rewards.view(2, 4), two.lengths
A = R - R.mean(1, keepdim=True)
Z = A / R.std(1, correction=0, keepdim=True)
four = {"divided by σ and T: GRPO": Z.flatten() / T,
        "divided by T": A.flatten() / T,
        "divided by σ": Z.flatten(),
        "by neither: Dr. GRPO": A.flatten()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.2", "B's wrong answer of one token",
       "Its length of 1 beats everything. Without the divisors it is among "
       "the quietest, and the one rare success is the loudest. Compare the "
       "upper row with the lower one: **how short an answer happened to be "
       "no longer makes it loud.** From left to right little changes "
       "here, because both prompts have nearly the same std, 0.50 and "
       "0.43. The next lines show where σ acts.",
       pictures.four_losses(four, two.lengths.int().tolist(),
                            two.rewards.tolist(), caption=(
           "One batch, four losses; σ is the std of the group's rewards. A "
           "number is the push on each token of the row, as a multiple of "
           "that loss's mean push. Bold: the loudest.")),
       instead={
           "B's lone right answer: the std makes rare ones loud":
           "The std makes it loud. But its length divides it again.",
           "A's short right answer, 3 tokens":
           "It is short. But one answer is shorter.",
           "B's wrong answer of seven tokens":
           "It is long, so it is among the quietest.",
       })

# %% jupyter={"source_hidden": true}
# folded: the pushes of two prompts with 16 answers each, and after σ
for k in (8, 15):
    sixteen = (torch.arange(16) < k).double()
    minus = sixteen - sixteen.mean()
    after = minus / sixteen.std(correction=0)
    print(f"{k:2d} of 16 right: right {minus[0]:+.2f}, wrong "
          f"{minus[-1]:+.2f}; divided by σ: right {after[0]:+.2f}, wrong "
          f"{after[-1]:+.2f}")

# %% [markdown]
# The division doubles all pushes of the first prompt, and makes those of the second four times as
# large. **σ enlarges most what comes from prompts that are nearly solved, or nearly hopeless.**

# %% [markdown]
# ## Divide by what?
#
# Without $T_i$ there is still a number to divide by. Which one? Two are common:
#
# * DAPO takes the **token mean**: the number of tokens in the step. (So both libraries run it; its
#   printed formula counts the tokens of each prompt.)
# * Dr. GRPO takes the **constant** $B\,L_{\max}$.
#
# People say that a token mean favours long answers. Test it on group A, with its 3, 5, 2 and 6
# tokens and $L_{\max}=8$. Scale each rule's weights so that they sum to 1 over the batch. Under
# $1/T$ every answer then holds a quarter of the weight. (How large the weights are in all does not
# matter here, only the shares.)

# %% jupyter={"source_hidden": true}
# your guess
predict("dr_grpo.3", "Which share of the weight does the answer of 6 "
        "tokens hold under the token mean, and which under the constant?",
        ["3/8 and 1/4", "3/8 and 3/8", "3/8 and 3/16", "1/4 and 3/8"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
one = running_group()
own = one.lengths[:, None].expand(4, 6)
weights = {"1/T": 1 / (4 * own),
           "token mean": torch.ones(4, 6) / 16,
           "constant 8": torch.ones(4, 6) / (4 * 8)}
sign = torch.tensor([1.0, 1, -1, -1])[:, None]          # of A

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.3", "3/8 and 3/8",
       "It holds 6 of 16 tokens under both. Within one batch the two rules "
       "give the same direction. Long answers do get more of the step, and "
       "should: they are more decisions. The rules differ *between* "
       "batches. **The token mean's divisor is counted after sampling, and "
       "an answer's own length is part of the count.** The constant was "
       "there before.",
       token_grid.token_grid(one, {name: 16 * c * sign
                                   for name, c in weights.items()},
                             count="", caption=(
           "Weight of a token, times the sign of its advantage; 1 is the "
           "token mean's weight. Left, all rows have one sum. In the other "
           "two all tokens have one size: the same shares, half the "
           "size.")),
       instead={
           "3/8 and 1/4":
           "The constant, too, gives each token the same share.",
           "3/8 and 3/16":
           "A common divisor does not change a share.",
           "1/4 and 3/8":
           "Both rules give each token the same share.",
       })

# %% [markdown]
# ## Back to the small GPU
#
# So for every variant one asks: *which answers share the divisor?* On the small GPU they are those
# of one piece.
#
# **The fix: count first.** Before the first `backward()`, count the tokens $N$ of the whole step,
# over all pieces and all GPUs (an all-reduce). Then the loss of each piece is
#
# $$\text{sum over the piece's tokens}\times\frac{\text{number of GPUs}}{N}$$
#
# The number of GPUs stands there because data parallelism *averages* their gradients. So it counts
# the GPUs that read different answers, also where FSDP or ZeRO shares the weights out among them.
# Tensor- and pipeline-parallel GPUs read the same answers, and count once. A constant needs no
# count of tokens. But it contains $B$: take the answers of the step, not of the piece.

# %%
def count_first(losses, mask, rows):
    N = mask.sum()                           # of the whole step
    return sum(x[keep].sum() / N for x, keep in
               zip(losses.split(rows), mask.split(rows)))

# %% jupyter={"source_hidden": true}
# folded: the gradients in pieces of 8, 4, 2, 1 are that of the whole
per_token = ZOO["dr_grpo"](two).per_token_loss         # (8, 7)
def gradient(value):
    return torch.autograd.grad(value, two.logprobs,
                               retain_graph=True)[0].flatten()
whole = gradient(per_token[two.mask].mean())
for rows in (8, 4, 2, 1):
    same = gradient(count_first(per_token, two.mask, rows))
    assert torch.allclose(same, whole)
print("count_first: every split gives the gradient of the whole batch")

# %% [markdown]
# Test it with an *uneven* split: pieces of 3 + 5 and 2 + 6 tokens have equal counts and hide the
# bug. (Hugging Face's Trainer had the same bug in supervised fine-tuning until October 2024,
# [PR 34191](https://github.com/huggingface/transformers/pull/34191).)

# %% [markdown]
# ## What a divisor does to length
#
# Why did the lengths on the small GPU drift apart, and how much does a shared divisor help? Watch
# one number: how far a right answer moves the logit of "stop", on average. This is the **drift**.
# Above 0, right answers learn to stop sooner. Wrong ones have all signs turned, and learn to go on.
#
# An answer of $T$ tokens stopped once and went on $T-1$ times. With stop chance $q$ its slope in
# that logit is $1-qT$ (09). Take $q=0.1$ and two right answers:
#
# | | $T=2$ | $T=18$ | together |
# |---|---|---|---|
# | slope $1-qT$ | +0.8 | −0.8 | 0 |
# | divided by a constant | +0.8 | −0.8 | 0: they cancel |
# | divided by $T$ | +0.8 / 2 = +0.40 | −0.8 / 18 = −0.04 | +0.36: stop sooner |
#
# <!-- cited: -0.8, +0.8, +0.40, +0.36 -->
# So it is for all lengths, each as often as the policy writes it (an average token weighing 1):

# %% jupyter={"source_hidden": true}
# the drift over all lengths
q = 0.1
length = torch.arange(1.0, 1000.0)
chance = q * (1 - q) ** (length - 1)                   # of each length
slope = 1 - q * length               # of log π(answer) in "stop" (09)
share = length * q                   # of the mean length, 1/q tokens
for name, c in (("constant", 1 + 0 * length), ("1/T", 1 / share)):
    moved = (chance * c * slope).sum().item()
    print(f"{name:8s} drift {round(moved, 3) + 0.0:+.3f}")

# %% [markdown]
# A token mean has the answer's own $T$ in its divisor, too, among others. Does the drift come back?
# Let $n$ answers share one divisor. Then $n=1$ is $1/T$, and $n=32$ is the large GPU. In the toy,
# wrong answers went from 10 tokens to 71 with $n=1$, and to 11 with $n=32$.

# %% jupyter={"source_hidden": true}
# your guess
predict("dr_grpo.4", "Take a GPU that holds 8 answers, n = 8. How long are "
        "wrong answers at the end?",
        ["about 13 tokens", "about 30 tokens", "about 45 tokens",
         "about 60 tokens"])

# %%
runs[8], runs[0] = train(8), train(None)               # 0: a constant
ends = {k: runs[k][:, -1].mean(0).tolist() for k in (1, 2, 4, 8, 32, 0)}
drift = {k: stop_drift(k) for k in (1, 2, 4, 8, 32)}
assert abs(ends[32][0] - 10.6) < 0.1 and abs(ends[32][1] - 9.4) < 0.1

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.4", "about 13 tokens",
       f"They have {ends[8][0]:.1f} tokens. Each of n answers owns about "
       f"one "
       "part in n of the divisor, so its own length has little say. "
       f"The drift is {drift[1]:.3f} at n = 1, {drift[8]:.3f} at 8, "
       f"{drift[32]:.3f} at 32, and exactly 0 under a constant.",
       pictures.who_shares(drift, ends, 10.0, (
           "Left, the drift of 'stop' for a right answer (wrong: the "
           "opposite), ten tokens on average, an average token weighing 1. "
           "Right, the toy, mean of 200 seeds.")),
       instead={
           "about 30 tokens":
           "Only an eighth of the divisor is an answer's own length.",
           "about 45 tokens":
           "This is nearer to n = 2.",
           "about 60 tokens":
           "This is nearer to GRPO, n = 1.",
       })

# %% [markdown]
# Does it hold for a network? Take page 09's transformer. It tries two sums, says whether it hit the
# target, and may then repeat itself, so length is free. Every optimizer step uses 128 fresh answers
# once, so the three losses differ in their divisors alone.

# %% jupyter={"source_hidden": true}
# the picture
pictures.recorded_lengths(
    "Mean length of wrong and right answers; a line is a seed, the number "
    "the mean of three over the last ten steps. Recorded on a CPU.")

# %% [markdown]
# The middle panel is the control. It has DAPO's divisor and nothing else of DAPO: it divides by
# $\sigma_R$ as GRPO does, and GRPO's gap is not there. **So it is the length divisor that makes the
# difference.** (Single seeds of the two right panels wander too: a drift that is 0 on average is
# not 0 in one run. And the share of right answers moved under none of the three.)

# %% [markdown]
# ## In a real run
#
# | divided by | weight of a token | who shares it | TRL `loss_type` | verl `loss_agg_mode` |
# |---|---|---|---|---|
# | own length (GRPO) | $\frac1{B\,T_i}$ | one answer | `grpo` | `seq-mean-token-mean` |
# | tokens of the piece | $\frac1{K\,N_k}$, $K$ pieces | the piece | `bnpo` | `token-mean` when nobody passes the count |
# | tokens of the step (DAPO) | $\frac1N$ | the step | `dapo` (default) | `token-mean` (default) |
# | constant (Dr. GRPO) | $\frac1{B\,L_{\max}}$ | nobody | `dr_grpo` | `seq-mean-token-sum-norm` |
#
# These words set the divisor only. For Dr. GRPO the std must go as well: `scale_rewards="none"` in
# TRL, `norm_adv_by_std_in_grpo=False` in verl.
#
# <details><summary>Traps, by library</summary>
#
# * Some frameworks divide the loss of a piece by the number of accumulation steps $K$ as well
#   (accelerate, DeepSpeed). If yours does, multiply by $K$. And $N$ is counted per step of the
#   *optimizer*, not per rollout, without tool and prompt tokens.
# * verl's `agg_loss` takes the *piece's* own count unless it is handed the step's
#   (`batch_num_tokens`). Its engines pass it; the older FSDP actor did not, and so had this page's
#   bug under a default ([issue 5625](https://github.com/verl-project/verl/issues/5625), March 2026;
#   the code: [7321](https://github.com/verl-project/verl/issues/7321)).
# * verl's constant is the padded width of the piece until you set `loss_scale_factor`.
# * Both libraries divide a KL term by the same length number, but not by $\sigma_R$. So a KL weighs
#   more against the reward once the std is gone.
# </details>
#
# **Which would you choose?** The constant is unbiased, and a batch of long answers takes a longer
# step under it. The token mean keeps its step size, and pays with a small bias: its count varies
# with the answers. At 32 answers wrong ones went from 10 tokens to 10.6 in 200 steps, right ones to
# 9.4, and real steps have hundreds. Under Adam a common factor of a step counts little. So both are
# used; I take the token mean over the step, counted first, and the constant where nobody counts
# over all GPUs. The piece's own count is the bug of this page. <!-- cited: 10.6, 9.4 -->
#
# **What to log:** the mean length of right and of wrong answers apart, the share of answers cut at
# $L_{\max}$, and the gradient norm.
#
# <details><summary>One level deeper: is one of them better?</summary>
#
# * Dr. GRPO's authors report the same accuracy with fewer tokens, wrong answers above all
#   ([arXiv 2503.20783](https://arxiv.org/abs/2503.20783)).
# * ScaleRL compares three token counts and prefers the prompt's
#   ([arXiv 2510.13786](https://arxiv.org/abs/2510.13786), section 3.2). It says of such choices
#   that they mostly change efficiency.
# * If the reward's size changes, so does the push without $\sigma_R$: rewards of 0 and 10 give ten
#   times the gradient.
# * Seven rules with their weights on one batch, and every library's words:
#   [statements 10](statements/10_dr_grpo.ipynb).
# </details>

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Dr. GRPO | |
# |---|---|
# | sentence | GRPO without the std, and divided by a constant instead of the answer's own length: every token weighs the same |
# | formula | $A_i=R_i-\bar R$ · weight of a token: GRPO $1/(B\,T_i)$, DAPO $1/N$, Dr. GRPO $1/(B\,L_{\max})$ |
# | silent | as in GRPO: groups all right or all wrong, clipped tokens |
# | picture | two switches, four losses; the short answer is no longer the loudest |
# | in pieces | count the step's tokens $N$ first; each piece: its sum × (data-parallel GPUs) / $N$ |
# | numbers | drift of "stop", ten tokens on average: 1.558 under 1/T, 0.029 if 32 answers share the divisor, 0 under a constant |
# | relative | RLOO times (G−1)/G, plus clip and 1/L_max |
# | derived | every token the same weight |
# | choices | which constant; the clip |

# %%
print(difference(ZOO["grpo"].replace(terms=()), ZOO["dr_grpo"]))
score("dr_grpo.1", "dr_grpo.2", "dr_grpo.3", "dr_grpo.4")

# %% [markdown]
# ## Second sitting: what changes when you switch the method?
#
# ### Would a test have found the bug?
#
# Here `in_pieces` goes through four answers. Move two of the lengths, and the size of a piece.

# %% jupyter={"source_hidden": true}
# the explorer
task("dr_grpo.t2", micro_batches.micro_batches_explorer(),
     ("Two answers in a piece, four different lengths, and every weight is "
      "right: a test on this batch would pass.", micro_batches.hidden))

# %% [markdown]
# <details><summary>One way</summary>
#
# Take 3 and 6 tokens: 3 + 5 = 2 + 6. This is the running group of the course.
# </details>
#
# ### How many neighbours make up for the length?
#
# Real answers have hundreds of tokens. Under $1/T$ the drift grows with the length.

# %% jupyter={"source_hidden": true}
# the explorer
task("dr_grpo.t1",
     shared_divisor.shared_divisor_explorer(),
     ("It opens with answers of 5 tokens under 1/T: a drift of 1.012. "
      "Take answers of 200 tokens, and see what that does. How many must "
      "share a divisor to get below 1.012 again: 2, 8 or 40? Say yours, "
      "then find the smallest number.",
      shared_divisor.diluted))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# It takes two. The answers are forty times as long, and a single neighbour makes up for it.
# </details>
#
# Under $1/T$ the drift can be written down. An answer's weight is $\frac1{qT}$, so
#
# $$\mathbb E\Big[\frac{1-qT}{qT}\Big]=\frac1q\,\mathbb E\Big[\frac1T\Big]-1=\frac{\log(1/q)}{1-q}-1$$
#
# since $\sum_T\frac1T(1-q)^{T}=\log\frac1q$. Here $1/q$ is the mean length: 1.012 at 5 tokens,
# 4.325 at
# 200. <!-- cited: 1.012, 4.325 --> **Alone, the drift grows with the logarithm of the length. If n
#      ≥ 2 share the divisor it stays below $1/(n-1)$, however long the answers are.**
#
# <details><summary>One level deeper: why never more than 1/(n − 1)</summary>
#
# Let $N$ be the tokens of the $n$ answers that share a divisor, and $\bar N=n/q$ its mean. A token
# weighs $\bar N/N$, so the drift of one answer is $\mathbb E[\frac{\bar N}{N}(1-qT)]$. All $n$
# answers are alike, so given $N$ each owns $N/n$ of the tokens on average. Put $N/n$ in place of
# $T$:
#
# $$\text{drift}=\mathbb E\big[\tfrac{\bar N}{N}\big]-\tfrac{q\bar N}{n}=\mathbb E\big[\tfrac{\bar N}{N}\big]-1$$
#
# What is left is how much $1/N$ varies (Jensen's inequality). For $n\ge2$ it is below
# $1/(n-1)$, because $\mathbb E[1/(N-1)]=q/(n-1)$, however long the answers are.
# </details>
#
# ### The same learning rate?
#
# Is the right panel of the transformer's runs flat only because Dr. GRPO takes smaller steps? Look
# at the gradient norms:

# %%
for name, run in pictures.RUNS.items():
    norm = torch.tensor([list(curve(run, seed, "grad_norm"))
                         for seed in (0, 1, 2)])
    first, last = sum(final(run, step=0)) / 3, sum(final(run)) / 3
    print(f"{name:25s} norm: mean {norm.nanmean():.3f}, largest "
          f"{norm[~norm.isnan()].max():.2f};   share right: "
          f"{first:.2f}, at the end {last:.2f}")

# %% [markdown]
# Dr. GRPO's gradient is a tenth of the others'. But DAPO's divisor has nearly GRPO's norm, and is
# flat too: small steps are not the reason. In a real run, answers of 256 tokens with $L_{\max}$ =
# 2048 and $\sigma_R=1/2$ push a sixteenth as hard (exercise 1). People say that this does not
# matter, because the learning rate absorbs it.
#
# Test it with one weight and made-up gradients: four small ones to one side, then a large one to
# the other, for 40 steps. One run takes them whole, the other a sixteenth of each.

# %%
def travel(scale, optimizer, clip=None):
    w = torch.zeros(1, requires_grad=True)
    opt, path = optimizer([w], lr=0.01), []
    for t in range(40):
        w.grad = torch.tensor([4.0 if t % 5 == 4 else -0.5]) * scale
        if clip:
            torch.nn.utils.clip_grad_norm_([w], clip)
        opt.step()
        path.append(w.item())
    return torch.tensor(path)

# %% jupyter={"source_hidden": true}
# your guess
predict("dr_grpo.5", "At the same learning rate, which optimizers end "
        "elsewhere when all gradients are a sixteenth?",
        ["SGD only: Adam divides by the gradient's own size",
         "none of them",
         "all: SGD, Adam, and Adam with "
         "clipping", "SGD, and Adam with the gradient norm clipped at 1"])

# %%
SGD, Adam = torch.optim.SGD, torch.optim.Adam
paths = {name: tuple(travel(scale, *how) for scale in (1, 1 / 16))
         for name, how in (("SGD", (SGD,)), ("Adam", (Adam,)),
                           ("Adam, norm clipped at 1", (Adam, 1.0)))}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.5", "SGD, and Adam with the gradient norm clipped at 1",
       "Adam alone hides the factor. With clipping, the rare gradient of 4 "
       "is cut to 1, but a sixteenth of it passes uncut. So the balance of "
       "large and small gradients changes, and the two runs end on "
       "opposite sides. **After a switch, compare the gradient norm with "
       "the threshold.**",
       pictures.step_sizes(paths, (
           "One weight, made-up gradients. Only plain Adam makes the two "
           "the same run.")),
       instead={
           "SGD only: Adam divides by the gradient's own size":
           "Adam hides it, until something else measures the gradient "
           "first.",
           "all: SGD, Adam, and Adam with clipping":
           "Adam alone divides it away.",
           "none of them":
           "SGD's step is the gradient itself.",
       })

# %%
score("dr_grpo.5")

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 6 minutes. One group, fresh data. By which factor does the weight-times-advantage
# of each answer's tokens change when you switch from GRPO to Dr. GRPO? Rewards and lengths have
# shape (G,). Return (G,).
#
# <details><summary>hint</summary>Write both as fractions over 1/G, then divide the second by the first.</details>

# %% tags=["exercise"]
def my_factor(rewards, lengths, max_length):
    return ...

check.switch_factor(my_factor)

# %% [markdown]
# **2 Implement** · 12 minutes. The token mean on several GPUs. The B answers are dealt in blocks, B
# / `workers` to each GPU; each goes through its block `rows` at a time and calls `backward()` on
# every piece. Then the gradients are *averaged* over GPUs. Return the losses of all pieces in
# order, shape (B / rows,), so that the averaged gradient is that of the mean over all tokens. What
# lies under the mask may be NaN.
#
# <details><summary>hint</summary>Which number must all GPUs agree on before the first backward? And what does the last averaging do to it?</details>

# %% tags=["exercise"]
def my_losses(per_token, mask, rows, workers):
    return ...

check.worker_losses(my_losses)

# %% [markdown]
# **3 Find the silent bug** · 8 minutes. It agreed with the formula on its author's batch, and it
# trains:

# %%
print(check.silent_bug_dr_grpo.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>What may change about a batch without changing its tokens?</details>

# %% tags=["exercise"]
def my_test(aggregate):             # aggregate(per_token, mask, max_length)
    return ...

check.silent_bug_dr_grpo(my_test)

# %% [markdown]
# **4 Name this method** · 5 minutes. A colleague's settings for TRL. Which published method runs,
# whatever the word says?

# %%
config = dict(
    loss_type="bnpo", per_device_train_batch_size=1,
    gradient_accumulation_steps=64, num_generations=16,
    scale_rewards="group", epsilon=0.2, epsilon_high=0.2,
    beta=0.04, use_bias_correction_kl=False,           # plain k3
)

# %% tags=["exercise"]
my_answer = ...
check.name_this_dr_grpo(my_answer)

# %% [markdown]
# <details><summary>More practice, five minutes each</summary>
#
# `check.token_mean`, `check.constant_length`, `check.prompt_mean`; their arguments are on the
# [solutions page](solutions/10_dr_grpo.ipynb).
# </details>

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>What does Dr. GRPO change, and why?</b></summary>
#
# It drops the std and divides by a constant instead of the answer's length. The policy gradient has
# one weight for all tokens, up to a number fixed before sampling; std and length are sampled, so
# they bend it. Prompts are no longer reweighted by 1/σ_R, and the drift of lengths is gone. Clip,
# group and silent groups stay; the KL is a separate setting.
# </details>
# <details><summary><b>How does Dr. GRPO differ from RLOO?</b></summary>
#
# By a factor and a clip. RLOO's leave-one-out advantage is G/(G−1) times reward minus mean, and it
# sums log-probabilities over tokens: every token weighs the same. Dr. GRPO has the same direction
# on fresh data, smaller by (G−1)/G and 1/L_max, and adds PPO's clip for reused data.
# </details>
# <details><summary><b>Does a token mean favour long answers?</b></summary>
#
# In share yes, in pressure hardly. A long answer gets more of the step because it has more tokens,
# under a constant exactly as much. Pressure on length comes from a weight that knows its own
# answer's length: large under 1/T and growing with log length; below 1/(n − 1) of an average
# token's weight once n share the divisor (0.03 at 32); none under a constant.
# </details>
# <details><summary><b>Does Dr. GRPO make answers longer?</b></summary>
#
# Not by itself. If reward ignores length, its expected drift is zero. Where longer answers
# are right more often they grow, as they should. Part of the growth in R1-style runs may be the
# work of 1/T on wrong answers; the paper reports fewer tokens without it. So plot right and wrong
# apart.
# </details>
# <details><summary><b>I turned on gradient accumulation and results got worse. Why?</b></summary>
#
# Look at the divisor first. If each micro-batch averages over its own tokens, tokens beside short
# answers weigh more; with one answer a piece it is GRPO's 1/T. Count the step's tokens N first,
# over all GPUs. Each piece's loss is its sum times D over N, with D the data-parallel ranks (FSDP
# and ZeRO shards are such; tensor- and pipeline-parallel ranks are not): data parallelism averages
# gradients, so without the factor 1/D is left.
# </details>
#
# The sentences that one hears about averaging tokens, true or not:
# [statements 10](statements/10_dr_grpo.ipynb). The exercises, solved:
# [solutions 10](solutions/10_dr_grpo.ipynb).
#
# **Next: [11](11_dapo.ipynb).** Why do groups stop teaching, and what brings them back?
