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
# 36 minutes, then 11 in a second sitting · exercises 31 more · after 08 (GRPO), 09 (its two
# divisors) · Dr. GRPO, Liu et al. 2025, [arXiv 2503.20783](https://arxiv.org/abs/2503.20783); DAPO,
# Yu et al. 2025, [arXiv 2503.14476](https://arxiv.org/abs/2503.14476)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What does RLOO compare an answer with, and why not with the whole group's mean?</summary>With the mean of the other answers, so that the baseline knows nothing of this one. The whole mean only shrinks the gradient by (G−1)/G (03, 08).</details>
# <details><summary>2. Which part of GRPO's advantage is derived, and which is a choice?</summary>Minus the mean is derived, up to one factor. Dividing by $\sigma_R$ is a choice (08).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import micro_batches, shared_divisor
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import dr_grpo as pictures
from rlnb.classroom.pictures import pipeline, token_grid
from rlnb.classroom.pictures.aggregation_rules import stop_drift
from rlnb.classroom.pictures.recorded_runs import curve
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
# This page is about one box of the loop, where the tokens of a batch become one number.

# %% jupyter={"source_hidden": true}
# the picture
pipeline.pipeline("loss", caption=(
    "Every token brings a loss of its own. How are they averaged?"))

# %% [markdown]
# Two colleagues train the same model. For each step of the optimizer they take 32 answers, and they
# agree on the plainest loss, the mean over all tokens of the step. One has a large GPU, and all 32
# answers go through at once. The other's GPU holds one answer. So she goes through the step in
# pieces (**micro-batches**), adds up their gradients, and lets the optimizer step once, at the end:

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
# one 0, and length earns nothing. The advantage is $A=R-\bar R$, with the mean over all 32
# answers of the step.

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
       "With one answer in a piece, the mean over its tokens divides by "
       "the length of that answer. That is GRPO's $1/T$, and nobody "
       "meant to write it. Page 09 met the effect. It happens to "
       "professionals: open-instruct corrected it at the end of 2025 "
       "([PR 1161](https://github.com/allenai/open-instruct/pull/1161)).",
       pictures.lengths_by_memory(
           {"32 answers at once": runs[32], "one at a time": runs[1]}, 10.0,
           "The same loss, at two sizes of memory. Thick: the mean of 200 "
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
# The question of this page: **what does one token weigh, and which answers decide that?**

# %% [markdown]
# ## Which weight does the gradient ask for?
#
# The **weight** $c$ of a token is the number that multiplies its term in the sum; its **push** is
# $c\,A$. Take one prompt with $G$ answers and start where page 08 ended:
#
# $$\begin{aligned}
# \nabla J&=\tfrac{G}{G-1}\,\mathbb E\Big[\tfrac1G\textstyle\sum_i(R_i-\bar R)\,\nabla\log\pi(y_i)\Big]&&\text{minus the mean (08)}\\
# &=\tfrac{G}{G-1}\,\mathbb E\Big[\tfrac1G\textstyle\sum_i\sum_t(R_i-\bar R)\,\nabla\log\pi(y_{i,t})\Big]&&\text{the log of a product is a sum of logs}\\
# &\;\to\;\mathbb E\Big[\tfrac{1}{G}\textstyle\sum_i\sum_t(R_i-\bar R)\,\nabla\log\pi(y_{i,t})\Big]&&\text{drop a fixed factor: same direction}\\
# &\;\to\;\mathbb E\Big[\tfrac{1}{G\,L_{\max}}\textstyle\sum_i\sum_t(R_i-\bar R)\,\nabla\log\pi(y_{i,t})\Big]&&\textbf{a choice: which fixed number divides}
# \end{aligned}$$
#
# **The policy gradient gives every token the same weight.** Both arrows are allowed because the
# number is fixed *before* anything is sampled, and is the same for every prompt. $T_i$ and
# $\sigma_R$ come with the answers. (A prompt's true spread, known beforehand, would not do either:
# it would weigh the prompts anew.)
#
# The first row is RLOO (03). The last row is Dr. GRPO ("GRPO done right"). It has no $\sigma_R$,
# and in place of $T_i$ a constant $L_{\max}$, the longest answer that may be written. With the clip
# of page 06, over the $B$ answers of a step, it reads
#
# $$\text{loss}=-\frac1B\sum_i\frac1{L_{\max}}\sum_t\min\big(\rho_{i,t}A_i,\ \mathrm{clip}(\rho_{i,t},1-\epsilon,1+\epsilon)A_i\big),\qquad A_i=R_i-\bar R$$

# %%
def dr_grpo_loss(logp, old_logp, mask, R, G, B, L_max, epsilon=0.2):
    """log-probs and mask (answers, T), rewards (answers,)."""
    R = R.view(-1, G)
    A = (R - R.mean(1, keepdim=True)).view(-1, 1)        # no std
    rho = (logp - old_logp).exp()
    gain = torch.minimum(rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A)
    return -torch.where(mask, gain, 0).sum() / (B * L_max)

# %% jupyter={"source_hidden": true}
# folded: the same number as the package's
two = running_batch()                # two prompts, four answers each
assert torch.allclose(ZOO["dr_grpo"](two).loss, dr_grpo_loss(
    two.logprobs, two.old_logprobs, two.mask, two.rewards, 4, 8, L_max=8))

# %% [markdown]
# ## What did the two divisors do to a token?
#
# Take two groups of freshly sampled answers, so that all ratios are 1.
#
# * prompt A: right with 3 and 5 tokens, wrong with 2 and 6;
# * prompt B: right once, with 4 tokens, wrong with 1, 7 and 2.

# %% jupyter={"source_hidden": true}
# your guess
predict("dr_grpo.2", "Under GRPO, with both divisors, which answer's "
        "tokens are pushed hardest?",
        ["A's right answer of 3 tokens", "A's wrong answer of 2 tokens",
         "B's wrong answer of 1 token", "B's right answer of 4 tokens"])

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
reveal("dr_grpo.2", "B's wrong answer of 1 token",
       "No advantage in the batch is smaller in size, but this one is "
       "divided by 1. Without the divisors it is among the quietest, and "
       "the one rare success is the loudest. Compare the upper row of "
       "the picture with the lower one: **how short an answer happened "
       "to be no longer makes its tokens loud.** From left to right little "
       "changes: the two prompts have nearly the same σ, 0.50 and 0.43.",
       pictures.four_losses(four, two.lengths.int().tolist(),
                            two.rewards.tolist(), caption=(
           "One batch, four losses; σ is the std of the group's rewards. A "
           "number is the push on each token of the row, as a multiple of "
           "that loss's mean push. Bold: the loudest.")),
       instead={
           "A's right answer of 3 tokens":
           "It is short. But others are shorter.",
           "A's wrong answer of 2 tokens":
           "It comes second: the larger advantage, divided by 2.",
           "B's right answer of 4 tokens":
           "The rare success has the largest advantage. Its length "
           "divides that by 4.",
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
# And σ? The lines above show two prompts whose σ differs. The division doubles the pushes of the
# first and makes those of the second four times as large. **So σ gives prompts that are nearly
# solved, or nearly hopeless, more of the step than the gradient does.**

# %% [markdown]
# ## Divide by what?
#
# Without $T_i$ there is still a number to divide by. Two are common: the **token mean** divides by
# the number $N$ of tokens in the step (so TRL and verl run DAPO), Dr. GRPO by the **constant**
# $B\,L_{\max}$.
#
# People say that a token mean favours long answers. Test it on group A alone, with 3, 5, 2 and 6
# tokens and $L_{\max}=8$:

# %% jupyter={"source_hidden": true}
# the picture
one = running_group()                          # group A
own = one.lengths[:, None].expand(4, 6)
rules = {"1/T": 1 / (4 * own), "token mean": torch.ones(4, 6) / 16,
         "constant 8": torch.ones(4, 6) / (4 * 8)}
sign = torch.tensor([1.0, 1, -1, -1])[:, None]          # of A
token_grid.token_grid(
    one, {name: 16 * c * sign for name, c in rules.items()}, count="",
    caption=("Weight of a token, with the sign of its advantage; 1 is the "
             "token mean's. Left: every row has the same sum. In the "
             "others every token has the same weight."))

# %% [markdown]
# The long answer holds 6 of the 16 tokens, so under the token mean it gets 6/16 of the step. Under
# the constant it gets 6/16, too: within one batch the two rules have the same direction. A long
# answer counts more because it has more tokens, and the derivation asks for that.
#
# The rules differ *between* batches. **The token mean's divisor is counted after sampling, and an
# answer's own length is part of the count.**

# %% [markdown]
# ## How much does a counted divisor push on length?
#
# **By hand.** An answer of $T$ tokens stopped once and went on $T-1$ times. If the chance to stop
# is $q$, its log-probability has the slope $(1-q)-(T-1)\,q=1-qT$ in the logit of "stop" (09). Take
# $q=0.1$ and two right answers, of 2 and of 18 tokens. Which way do they move "stop" under a
# constant, and which way under $1/T$?
#
# <details><summary>By hand</summary>
#
# The slopes are +0.8 and −0.8. A constant weighs them alike, so they cancel. Under $1/T$ they count
# 0.8/2 and −0.8/18: together +0.36, stop sooner. The short answer
# wins. <!-- cited: +0.8, -0.8, +0.36, 0.8 -->
# </details>
#
# Now average over all lengths that the policy draws. The expected push of a right answer on the
# logit of "stop" is the **length bias** of a divisor:
#
# $$\mathbb E\big[c\,(1-qT)\big],\qquad c\text{ scaled so that a token of the batch weighs 1 on average}$$
#
# Above 0, right answers learn to stop sooner, and wrong ones, with the opposite sign, to go on.
# Under a constant, $c=1$, it is exactly 0: the expected slope of a log-probability is 0 (03).
#
# Let $n$ answers share one divisor, the count of their tokens. Then $n=1$ is $1/T$, the small GPU,
# and $n=32$ the large one. In the toy, wrong answers went from 10 tokens to 71 with $n=1$, and to
# 11 with $n=32$.

# %% jupyter={"source_hidden": true}
# your guess
predict("dr_grpo.4", "Take a GPU that holds 8 answers, n = 8. How long are "
        "wrong answers at the end?",
        ["about 13 tokens", "about 30 tokens", "about 45 tokens",
         "about 60 tokens"])

# %%
runs[8], runs[0] = train(8), train(None)               # 0: a constant
ends = {k: runs[k][:, -1].mean(0).tolist() for k in (1, 2, 4, 8, 32, 0)}
bias = {k: stop_drift(k) for k in (1, 2, 4, 8, 32)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.4", "about 13 tokens",
       f"They have {ends[8][0]:.1f}. An answer's own tokens are about an "
       "eighth of the divisor, so its length has little say. "
       f"The length bias is {bias[1]:.3f} at n = 1, {bias[8]:.3f} at 8, "
       f"{bias[32]:.3f} at 32. **Share the divisor, and the bias is "
       "diluted.**",
       pictures.who_shares(bias, ends, 10.0, (
           "Left, the length bias at the start, ten tokens on average. "
           "Right, the toy after training: the mean of 200 seeds.")),
       instead={
           "about 30 tokens":
           "Not far from a straight line over log n. The bias falls "
           "faster.",
           "about 45 tokens":
           "This is nearer to n = 2.",
           "about 60 tokens":
           "This is nearer to n = 1.",
       })

# %% [markdown]
# And in a network? Page 09's transformer tries two sums, says whether it hit the target, and may
# then repeat itself; length earns nothing. Every step uses 128 fresh answers once.

# %% jupyter={"source_hidden": true}
# the picture
pictures.recorded_lengths(
    "Mean length of wrong and right answers; a line is a seed, the number "
    "the mean of three over the last ten steps. Recorded on a CPU.")

# %% [markdown]
# Left and middle differ in the length divisor alone; both divide by $\sigma_R$. **Here it is the
# answer's own length as divisor that drives right and wrong apart.** In the middle and the right
# panel one seed each wandered down to 13 to 18 tokens, both kinds together. Where little pushes,
# noise is left, and no reward pulls a length back. <!-- cited: 13, 18 -->

# %% [markdown]
# ## How do you compute it in pieces?
#
# On the small GPU the answers of one piece share a divisor. Would a test have found this bug? Here
# `in_pieces` goes through four answers.

# %% jupyter={"source_hidden": true}
# the explorer
task("dr_grpo.t2", micro_batches.micro_batches_explorer(),
     ("Write down first what must be equal for the bug to hide. Then find "
      "four different lengths, in two pieces of two, with every weight "
      "right.", micro_batches.hidden))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Equal *counts* of tokens hide the bug; equal lengths are not needed. Take 3 and 6 tokens: 3 + 5 =
# 2 + 6. So test with an uneven split.
# </details>
#
# **Count first.** Before the first `backward()`, count the tokens of the whole step, over all
# pieces and all GPUs. Then the pieces' losses can be sums. What do they have to be multiplied by?

# %% jupyter={"source_hidden": true}
# your guess
predict("dr_grpo.6", "Two GPUs: the answers on the first have 6 tokens in "
        "all, on the second 10. Data parallelism averages their gradients. "
        "By what must the first multiply the sum of its losses?",
        ["1/6", "1/8", "1/10", "1/16"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.6", "1/8",
       "There are 16 tokens, so each has to end with 1/16. The average "
       "over two GPUs halves everything; so both multiply by 2/16.",
       instead={
           "1/6": "That is its own mean. Then its tokens weigh 1/12 after "
                  "averaging, and the other GPU's 1/20.",
           "1/10": "The other GPU's count has no special part in it.",
           "1/16": "Then the average leaves 1/32: half a step.",
       })

# %% [markdown]
# In general the loss of each piece is
#
# $$\text{sum over the piece's tokens}\times\frac{D}{N}$$
#
# with $N$ the tokens of the step, and $D$ the number of GPUs that read different answers (the
# data-parallel ranks).
#
# A constant needs no count of tokens, but its $B$, too, belongs to the step, not to the piece. On
# one GPU, with any pieces, this gives the gradient of the whole batch:

# %%
def count_first(losses, mask, rows):
    N = mask.sum()                           # of the whole step
    return sum(x[keep].sum() / N for x, keep in
               zip(losses.split(rows), mask.split(rows)))

# %% jupyter={"source_hidden": true}
# folded: the check, with pieces of 8, 4, 2 and 1 answers
per_token = ZOO["dr_grpo"](two).per_token_loss         # (8, 7)
def gradient(value):
    return torch.autograd.grad(value, two.logprobs, retain_graph=True)[0]
whole = gradient(per_token[two.mask].mean())
for rows in (8, 4, 2, 1):
    assert torch.allclose(
        gradient(count_first(per_token, two.mask, rows)), whole)

# %% [markdown]
# ## Which would you choose?
#
# | divided by | weight of a token | length bias | take it |
# |---|---|---|---|
# | own length (GRPO) | $\frac1{B\,T_i}$ | large | not |
# | tokens of the piece | $\frac1{K\,N_k}$ | depends on your memory | not |
# | tokens of the prompt (DAPO's paper) | $\frac1{P\,N_p}$ | small while a group's answers are alike | if every prompt shall count the same |
# | tokens of the step: the token mean | $\frac1N$ | small | by default: weights sum to 1 |
# | constant (Dr. GRPO) | $\frac1{B\,L_{\max}}$ | none | if you cannot count over all GPUs |
#
# $K$ pieces, $N_k$ tokens in the piece; $P$ prompts, $N_p$ tokens of the prompt's answers. The
# constant has a price of its own: a batch of long answers makes a larger step.
#
# **The std** is a second switch (`scale_rewards` in TRL, `norm_adv_by_std_in_grpo` in verl).
# Without it the pushes are the gradient's own. Keep it if rewards have no natural scale, or differ
# in scale between prompts. A third way divides by the std of the *whole step* (`"batch"` in TRL).
# It, too, is counted after sampling, but it is one number for all prompts, so it favours none.
#
# <details><summary>What TRL and verl call them, and two traps</summary>
#
# | divided by | TRL `loss_type` | verl `loss_agg_mode` |
# |---|---|---|
# | own length | `grpo` | `seq-mean-token-mean` |
# | tokens of the piece | `bnpo` | `token-mean` when nobody passes the count |
# | tokens of the step | `dapo` (default) | `token-mean` (default) |
# | constant | `dr_grpo` | `seq-mean-token-sum-norm` |
#
# * These words set the divisor only, not the std.
# * accelerate and DeepSpeed also divide each piece's loss by the number of pieces $K$. Then
#   multiply by $K$.
# * verl's older FSDP actor did not pass the step's count, so its default had this page's bug
#   ([issue 5625](https://github.com/verl-project/verl/issues/5625)).
# * Which is better? Dr. GRPO's authors report the same accuracy with fewer tokens. ScaleRL prefers
#   the mean per prompt ([arXiv 2510.13786](https://arxiv.org/abs/2510.13786), section 3.2). No
#   paper that we know compares all five at equal gradient norms.
# * A KL term is averaged by the same divisor, but is not scaled by σ. Drop the std at σ = 0.5, and
#   advantages are half as large: the same β holds twice as hard. <!-- cited: 0.5 -->
# </details>

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Dr. GRPO | |
# |---|---|
# | sentence | GRPO without the std, and divided by a constant instead of the answer's own length: every token weighs the same |
# | formula | $A_i=R_i-\bar R$ · weight of a token: GRPO $1/(B\,T_i)$, token mean $1/N$, Dr. GRPO $1/(B\,L_{\max})$ |
# | derived | every token the same weight; which fixed number divides is a choice |
# | relative | RLOO times (G−1)/G, plus clip and 1/L_max |
# | length bias | large under 1/T, diluted if n answers of like length share the divisor (below 1/(n−1)), 0 under a constant |
# | in pieces | count the step's tokens $N$ first; each piece: its sum × (data-parallel GPUs) / $N$ |

# %%
print(difference(ZOO["grpo"].replace(terms=()), ZOO["dr_grpo"]))
score("dr_grpo.1", "dr_grpo.2", "dr_grpo.4", "dr_grpo.6")

# %% [markdown]
# ## Second sitting: long answers, small steps
#
# ### Is a shared divisor always safe?
#
# An answer of mean length 10 shares a divisor with $n-1$ others. While all have the same mean
# length, the bias stays below $1/(n-1)$, at 10 tokens as at 200. Without neighbours it grows with
# the logarithm of the length, and has no bound.
#
# Now lengths that differ. Before you move a slider: which answer escapes the dilution, a long one
# among short ones or a short one among long ones?

# %% jupyter={"source_hidden": true}
# the explorer
task("dr_grpo.t1",
     shared_divisor.shared_divisor_explorer(),
     ("Eight or more share a divisor, so 1/(n − 1) is 0.143 or less. Get a "
      "bias above 1 all the same.", shared_divisor.its_own_divisor))

# %% [markdown]
# <details><summary>What the task shows, and why</summary>
#
# A long one among short ones: with a mean of 200 beside seven of 5, most tokens of the divisor are
# its own, and the bias is 1.06. So the dilution holds at the start, while right and wrong answers
# are alike. Once they have drifted apart, the long kind pushes on its own length again.
#
# The bound, in three lines. Under $1/T$ a token weighs $\frac1{qT}$, so the bias is
#
# $$\mathbb E\Big[\frac{1-qT}{qT}\Big]=\frac1q\,\mathbb E\Big[\frac1T\Big]-1=\frac{\log(1/q)}{1-q}-1$$
#
# Let $n$ answers of the same $q$ share $N$ tokens, $\bar N=n/q$ on average. A token weighs
# $\bar N/N$. Given $N$, each answer owns $N/n$ of them on average, because no answer differs from
# the next beforehand. So $\mathbb E[qT\mid N]=qN/n=N/\bar N$, and
#
# $$\mathbb E\big[\tfrac{\bar N}{N}(1-qT)\big]=\mathbb E\big[\tfrac{\bar N}{N}\big]-1<\tfrac1{n-1}$$
#
# for $n\ge2$, since $\mathbb E[\frac1N]<\mathbb E[\frac1{N-1}]=\frac q{n-1}$.
# <!-- cited: 1.06, 0.30 -->
# </details>
#
# **Sharing dilutes the bias only among answers of like length.** Among 63 of mean length 5 the long
# one still has a bias of 0.30. So watch the lengths of right and wrong apart.
# <!-- cited: 0.30 -->
#
# ### Did Dr. GRPO only take smaller steps?
#
# Why was Dr. GRPO's panel flat in the transformer's runs? Look at the gradient norms:

# %%
for name, run in pictures.RUNS.items():
    norm = torch.tensor([list(curve(run, seed, "grad_norm"))
                         for seed in (0, 1, 2)])
    norm = norm[~norm.isnan()]           # of steps with a mixed group
    print(f"{name:26s} mean {norm.mean():.3f}, from {norm.min():.3f} "
          f"to {norm.max():.2f}")

# %% [markdown]
# Dr. GRPO's gradient is a tenth of the others'. Perhaps its lengths stood still because the policy
# hardly moved.
#
# People say that such a factor does not matter, because the optimizer absorbs it. Test it with
# one weight and made-up gradients: four small ones to one side, then a large one to the other, for
# 40 steps. One run takes them whole, the other a sixteenth of each.

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
        "elsewhere when all gradients are a sixteenth? (Clipped Adam "
        "first cuts the gradient norm to at most 1.)",
        ["SGD only", "clipped Adam only", "SGD and clipped Adam",
         "SGD, Adam and clipped Adam"])

# %%
SGD, Adam = torch.optim.SGD, torch.optim.Adam
paths = {name: tuple(travel(scale, *how) for scale in (1, 1 / 16))
         for name, how in (("SGD", (SGD,)), ("Adam", (Adam,)),
                           ("clipped Adam", (Adam, 1.0)))}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.5", "SGD and clipped Adam",
       "Adam alone hides the factor. With clipping, the rare gradient of 4 "
       "is cut to 1, but a sixteenth of it passes uncut. So the balance of "
       "large and small gradients changes, and the two runs end on "
       "opposite sides.",
       pictures.step_sizes(paths, (
           "One weight, made-up gradients. Only plain Adam makes the two "
           "the same run.")),
       instead={
           "SGD only":
           "Adam hides the factor, unless clipping comes first.",
           "clipped Adam only":
           "SGD's step is the gradient itself.",
           "SGD, Adam and clipped Adam":
           "Adam alone divides the factor away.",
       })

# %% [markdown]
# Back to the transformer. Its runs used Adam and a threshold of 1, and no norm of any step was
# above 0.79. So nothing was clipped, and Adam divides most of a common factor away: **the small
# gradient does not explain the flat panel.** Nor did the policy stand still: it wandered, in one
# seed to 14 tokens. <!-- cited: 0.79, 14 -->
#
# With a threshold of 0.1 it would have been another story: GRPO's norm was above that at every
# step, Dr. GRPO's at none. When you switch, keep the learning rate under Adam, and scale the clip
# threshold by the ratio of the two norms. Under SGD scale the learning rate. <!-- cited: 0.1 -->

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
# they bend it. Prompts are no longer reweighted by 1/σ_R, and the length bias is gone. Clip, group
# and silent groups stay.
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
# under a constant exactly as much. Pressure on length comes from a weight that depends on the
# answer's own length: large under 1/T; small if many answers share the divisor (0.03 of an average
# token's weight at 32 in our toy); none under a constant.
# </details>
# <details><summary><b>The gradient asks for a constant. Why would you divide by a sampled N?</b></summary>
#
# For a step that keeps its size when lengths change: under a constant a batch of long answers makes
# a large step, and Adam does not undo what changes from batch to batch. The price is a small length
# bias, in our toy below 1/(n−1) for n answers. And a token mean needs no guess of a constant.
# </details>
# <details><summary><b>Does Dr. GRPO make answers longer?</b></summary>
#
# Not by itself. If reward ignores length, its expected push is zero; a single run can still wander,
# as one of our seeds did. Where longer answers are right more often they grow, as they should. Part
# of the growth in R1-style runs may come from 1/T on wrong answers. So plot right and wrong apart.
# </details>
# <details><summary><b>I turned on gradient accumulation and results got worse. Why?</b></summary>
#
# Look at the divisor first. If each micro-batch averages over its own tokens, tokens beside short
# answers weigh more; with one answer a piece it is GRPO's 1/T. Count the step's tokens N first,
# over all GPUs. Each piece's loss is its sum times D over N, D the data-parallel ranks (FSDP shards
# count, tensor-parallel ones do not), because gradients are averaged.
# </details>
#
# The sentences that one hears about averaging tokens, true or not:
# [statements 10](statements/10_dr_grpo.ipynb). The exercises, solved:
# [solutions 10](solutions/10_dr_grpo.ipynb).
#
# **Next: [11](11_dapo.ipynb).** Why do groups stop teaching, and what brings them back?
