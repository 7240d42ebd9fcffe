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
# derive the weight that the policy gradient asks for, and split a batch into pieces without
# changing the method by accident.
#
# 26 minutes, exercises 31 more · after 08 (GRPO), 09 (its two divisors) · Dr. GRPO, Liu et al.
# 2025, [arXiv 2503.20783](https://arxiv.org/abs/2503.20783); DAPO, Yu et al. 2025,
# [arXiv 2503.14476](https://arxiv.org/abs/2503.14476)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Which two divisors does GRPO have?</summary>The std s of the group's rewards, and the answer's own number of tokens T (08).</details>
# <details><summary>2. What does dividing by T do to the lengths of answers?</summary>Right ones are pushed to stop sooner, wrong ones to go on, though length earns nothing (09).</details>
# <details><summary>3. Which part of GRPO's advantage is derived, and which is a choice?</summary>Minus the mean is derived, up to one factor. Dividing by s is a choice (08).</details>

# %% tags=["setup"]
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import micro_batches, shared_divisor
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import dr_grpo as pictures
from rlnb.classroom.pictures import pipeline, token_grid
from rlnb.classroom.pictures.aggregation_rules import stop_drift
from rlnb.classroom.pictures.recorded_runs import final
from rlnb.objective import difference, token_mean
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
# ## One loss, two cards
#
# Rewards, advantages, ratios: nothing of that moves on this page. It is about one box, the one
# where a batch of tokens becomes one number.

# %%
pipeline.pipeline("loss", caption=(
    "Every token brings a loss of its own. How are they averaged?"))

# %% [markdown]
# Two colleagues agree on the plainest average: the mean over all tokens of the step, 32 answers.
# One has a large card, and all 32 go through at once. The other's card holds one answer. So she
# goes through the batch in pieces (**micro-batches**), and takes the optimizer's step once, at the
# end:

# %%
def in_pieces(losses, mask, rows):
    """Mean loss over tokens (B, T), `rows` answers at a time."""
    pieces = list(zip(losses.split(rows), mask.split(rows)))
    total = 0.0
    for x, keep in pieces:               # backward() on each
        total = total + x[keep].mean() / len(pieces)
    return total

# %% [markdown]
# They train a toy. 32 answers to one prompt; a coin decides whether an answer will be right, the
# policy has no say. It decides only, after every token, whether to stop: with one probability for
# right answers, one for wrong ones, both 0.1 at the start, so ten tokens on average. Right earns 1,
# wrong 0, length nothing; $A=R-\bar R$. Both colleagues have the same seeds and the same learning
# rate.

# %%
predict("dr_grpo.1", "What does the small card train, against the large?",
        ["the same policy: a mean of means is the mean",
         "the same on average, with more noise",
         "the same path, at another speed",
         "another policy"])

# %%
runs = {rows: train(rows) for rows in (32, 4, 2, 1)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.1", "another policy",
       "With one answer in a piece a token is divided by the length of its "
       "own answer, then by 32. That is GRPO's $1/T$, and nobody wrote it. "
       "So right answers shrink and wrong ones grow (09). This happens: in "
       "November 2025 the authors of open-instruct noticed that, with one "
       "answer in a piece, they had trained a per-answer mean "
       "([PR 1137](https://github.com/allenai/open-instruct/pull/1137)).",
       pictures.lengths_by_memory(
           {"32 answers at once": runs[32], "one at a time": runs[1]}, 10.0,
           "The same loss in words, two memories. Thick: the mean of 200 "
           "seeds; thin: twenty of them."))

# %% [markdown]
# So do not ask "which mean?" Ask: **what does one token weigh, and who decides it?**
#
# ## Which weight does the gradient ask for?
#
# The **weight** $c$ of a token is the number its term gets in the sum: push $=c\,A$. For one prompt
# with $G$ answers, from 08's derivation:
#
# $$\begin{aligned}
# \nabla J&=\tfrac{G}{G-1}\,\mathbb E\Big[\tfrac1G\textstyle\sum_i(R_i-\bar R)\,\nabla\log\pi(y_i)\Big]&&\text{minus the mean (08)}\\
# &=\tfrac{G}{G-1}\,\mathbb E\Big[\tfrac1G\textstyle\sum_i\sum_t(R_i-\bar R)\,\nabla\log\pi(y_{i,t})\Big]&&\text{the log of a product is a sum of logs}\\
# &\;\to\;\mathbb E\Big[\tfrac{1}{G}\textstyle\sum_i\sum_t(R_i-\bar R)\,\nabla\log\pi(y_{i,t})\Big]&&\text{drop one factor: a learning rate absorbs it}\\
# &\;\to\;\mathbb E\Big[\tfrac{1}{G\,L_{\max}}\textstyle\sum_i\sum_t(R_i-\bar R)\,\nabla\log\pi(y_{i,t})\Big]&&\textbf{a choice: which fixed number divides}
# \end{aligned}$$
#
# Every token weighs the same. Both arrows are allowed for one reason: the number is fixed *before*
# anything is sampled, so it can be taken out of the expectation. Neither $s$ nor $T_i$ can: they
# come with the answers.
#
# That is Dr. GRPO ("GRPO done right"): no $s$, and in place of $T_i$ a constant $L_{\max}$, the
# longest answer that may be written. With 06's clip, over the $B$ answers of a step:
#
# $$\text{loss}=-\frac1B\sum_i\frac1{L_{\max}}\sum_t\min\big(\rho_{i,t}A_i,\ \mathrm{clip}(\rho_{i,t},1-\epsilon,1+\epsilon)A_i\big),\qquad A_i=R_i-\bar R$$

# %%
def dr_grpo_loss(logp, old_logp, mask, R, G, L_max, epsilon=0.2):
    """log-probs and mask (B, T), rewards (B,). To minimise."""
    R = R.view(-1, G)
    A = (R - R.mean(1, keepdim=True)).view(-1, 1)        # no s
    rho = (logp - old_logp).exp()
    gain = torch.minimum(rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A)
    return -torch.where(mask, gain, 0).sum() / (len(mask) * L_max)

# %%
two = running_batch()                # two prompts, four answers each
mine = dr_grpo_loss(two.logprobs, two.old_logprobs, two.mask,
                    two.rewards, G=4, L_max=8)
theirs = ZOO["dr_grpo"](two).loss
print(f"mine {mine:.6f}, rlnb's {theirs:.6f}")
assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)

# %% [markdown]
# ## Two switches, four losses
#
# That batch: prompt A, the group you know, is right twice in four answers; prompt B once, in an
# answer of four tokens. B's wrong answers have 1, 7 and 2 tokens. Take a fresh batch, all ratios 1.

# %%
predict("dr_grpo.2", "Under GRPO, with both divisors, whose tokens are "
        "pushed hardest?",
        ["B's lone right answer: the std makes rare ones loud",
         "A's short right answer, 3 tokens",
         "B's wrong answer of one token",
         "B's wrong answer of seven tokens"])

# %%
R, T = two.rewards.view(2, 4), two.lengths
A = R - R.mean(1, keepdim=True)
Z = A / R.std(1, correction=0, keepdim=True)
four = {"divided by s and T: GRPO": Z.flatten() / T,
        "divided by T": A.flatten() / T,
        "divided by s": Z.flatten(),
        "by neither: Dr. GRPO": A.flatten()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.2", "B's wrong answer of one token",
       "Its length of 1 beats the std. With both gone it is among the "
       "quietest, and the one rare success is the loudest. Which short "
       "answer happened to be sampled no longer matters.",
       pictures.four_losses(four, two.lengths.int().tolist(),
                            two.rewards.tolist(), caption=(
           "One batch, four losses. A number is the push on each token of "
           "the row, as a multiple of that loss's mean push. Upper row: "
           "divided by T. Left column: divided by s.")))

# %% [markdown]
# The rows differ much, the columns little: here $s$ is 0.50 and 0.43. It matters where prompts are
# uneven. One right of 16 has $s$ = 0.24, and dividing doubles that prompt against an even one.

# %%
for k in (8, 4, 1):
    p = k / 16
    print(f"{k} of 16 right: s = {(p * (1 - p)) ** 0.5:.2f}")

# %% [markdown]
# ## Divide by what?
#
# Without $T_i$ there is still a number to divide by. Two are common. DAPO takes the **token mean**:
# the number of tokens in the step. Dr. GRPO takes the **constant** $B\,L_{\max}$. People say that a
# token-level mean favours long answers and that a constant cures it.
#
# The running group has 3, 5, 2 and 6 tokens. Under $1/T$ every answer has a quarter of the step's
# weight.

# %%
predict("dr_grpo.3", "What share does the answer of 6 tokens get under the "
        "token mean, and under the constant?",
        ["3/8 and 1/4", "3/8 and 3/8", "3/8 and less than 1/4",
         "1/4 and 3/8"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
one = running_group()
own = one.lengths[:, None].expand(4, 6)
weights = {"1/T": 1 / (4 * own),
           "token mean": torch.ones(4, 6) / 16,
           "constant 8": torch.ones(4, 6) / (4 * 8)}
sign = torch.tensor([1.0, 1, -1, -1])[:, None]          # of A
reveal("dr_grpo.3", "3/8 and 3/8",
       "6 of 16 tokens, twice. Within a batch token mean and constant are "
       "one direction with two lengths of step. Under both, long answers "
       "get more of the step, and that is the policy gradient: they are "
       "more decisions. The difference is *between* steps: the token "
       "mean's divisor is counted after sampling, and your own length is "
       "part of the count. The constant was there before.",
       token_grid.token_grid(one, {name: 16 * c * sign
                                   for name, c in weights.items()},
                             caption=(
           "The running group: a token's weight, in units of the token "
           "mean's, with the sign of its advantage. Left, all rows have "
           "one sum; in the others all tokens have one size.")))

# %% [markdown]
# Which weights push on length? Take one answer that may stop after every token, with probability
# $q$. The slope of $\log\pi(y)$ in the logit of "stop" is $1-qT$ (09): above 0 for answers shorter
# than the mean $1/q$, below for longer ones. Weigh it with $c$ and average over all lengths:

# %%
q = 0.1
length = torch.arange(1.0, 1000.0)
chance = q * (1 - q) ** (length - 1)                   # of each length
for name, c in (("constant", q), ("1/T", 1 / length)):
    push = (chance * c * (1 - q * length)).sum() / q
    print(f"{name:8s} push on 'stop', times A: {abs(push):.3f}")

# %% [markdown]
# (Divided by $q$, so that an average token weighs 1.) Under a constant, short and long cancel
# exactly: a right answer is not told to be shorter. Under $1/T$ the short ones are louder.
#
# How much of that comes back in a token mean? Let $n$ answers share one divisor: $n=1$ is GRPO,
# $n=32$ the large card. In the toy, wrong answers started at 10 tokens and ended at 71 for $n=1$,
# at 11 for $n=32$.

# %%
predict("dr_grpo.4", "A card that holds 8 answers. Where do wrong answers "
        "end?",
        ["about 13 tokens", "about 25 tokens", "about 40 tokens",
         "about 60 tokens"])

# %%
runs[8], runs[0] = train(8), train(None)               # 0: a constant
ends = {k: runs[k][:, -1].mean(0).tolist() for k in (1, 2, 4, 8, 32, 0)}
drift = {k: stop_drift(k) for k in (1, 2, 4, 8, 32)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.4", "about 13 tokens",
       f"{ends[8][0]:.1f}; with 32 it was {ends[32][0]:.1f}, with 1 "
       f"{ends[1][0]:.1f}. Of a divisor that n answers share, about one "
       "part in n is your own length. So the push on length falls like 1/n "
       f"once n is large: {drift[8]:.3f} for 8, {drift[32]:.3f} for 32, "
       "exactly 0 for a constant.",
       pictures.who_shares(drift, ends, 10.0, (
           "Left, the expected push on 'stop' of a right answer, A = 1, "
           "ten tokens on average, an average token weighing 1; wrong: the "
           "opposite. Right, the toy, mean of 200 seeds.")))

# %% [markdown]
# Real answers have hundreds of tokens. Does that make it better or worse?

# %%
task("dr_grpo.t1",
     shared_divisor.shared_divisor_explorer(),
     ("Own length only (1 shares): a push above 3.",
      shared_divisor.doubled),
     ("Answers of 100 tokens or more, a push below 0.1, and as few answers "
      "as possible that share.", shared_divisor.fewest))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. A mean of 100 tokens: longer answers, more push, though only with the logarithm of the length.
# 2. Sixteen. Once many share, the length hardly matters any more.
# </details>
#
# <details><summary>One level deeper: why 1/n</summary>
#
# Write the divisor as $N=T+S$, with $S$ the tokens of the other $n-1$ answers and $\bar N=n/q$ its
# mean. To first order $\frac1N\approx\frac1{\bar N}\big(1-\frac{N-\bar N}{\bar N}\big)$. Only the
# own $T$ in $N$ moves with $1-qT$. In units of $1/\bar N$ the push is therefore
# $\mathbb E\big[-\frac{T}{\bar N}(1-qT)\big]=\frac{q}{\bar N}\mathrm{var}(T)=\frac{1-q}{n}$, since
# $\mathrm{var}(T)=(1-q)/q^2$. At $n=32$ that is $0.9/32$, the exact sum gives 0.029. At $n=1$ the
# first order is too small.
# </details>
#
# And on a network? Page 09's transformer, 0.3 million weights: length earns nothing, the model
# writes its own verdict and then may go on. Every step is one update on 128 fresh answers, so all
# ratios are 1 and no clip acts. GRPO and DAPO both divide by $s$ there: they differ in the divisor
# alone.

# %%
pictures.recorded_gaps(
    "How much longer wrong answers are than right ones. Three seeds each, "
    "80 steps, same learning rate; the numbers are the last ten steps. "
    "Recorded on a CPU.")

# %%
for name, (run, *_) in pictures.RUNS.items():
    print(f"{name:25s} pass@1 at the start {final(run, step=0)[0]:.2f}, "
          "at the end", *(f"{x:.2f}" for x in final(run)))

# %% [markdown]
# Token mean and constant cannot be told apart with three seeds. Both are far from $1/T$. Pass@1
# (the chance that one answer is right) moved under none of the three, and length could not help in
# this task. So it does not follow that Dr. GRPO scores better, only that wrong answers no longer
# grow.
#
# ## Back to the small card
#
# One question settles every variant: *how many answers share the divisor?* Move two lengths and the
# size of a piece under `in_pieces`.

# %%
task("dr_grpo.t2", micro_batches.micro_batches_explorer(),
     ("Make a token weigh more than three times what it should.",
      micro_batches.heavy),
     ("Two answers in a piece, four different lengths, and every weight is "
      "right: a test on this batch would pass.", micro_batches.hidden))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# 1. One token in answer 0, one answer in a piece: four times, with 8 tokens in the last. With two
#    in a piece you never get there, the neighbour's tokens are in the divisor.
# 2. 3 and 6 tokens: 3 + 5 = 2 + 6. That is the running group of this course. Equal *counts* hide
#    the bug, equal lengths are not needed. Test with an uneven split.
# </details>
#
# **The mend** is to count first: the number of tokens of the whole step, over all pieces and all
# GPUs, before the first `backward()`. Each piece's *sum* is divided by that. The constant needs no
# count. Exercise 2 does it.

# %%
loss = ZOO["dr_grpo"].replace(weights=token_mean)(two).per_token_loss
for rows in (8, 4, 2, 1):
    counted = sum(x[keep].sum() / two.mask.sum() for x, keep in
                  zip(loss.split(rows), two.mask.split(rows)))
    print(f"{rows} answers a piece: in_pieces "
          f"{in_pieces(loss, two.mask, rows):+.4f}, counted {counted:+.4f}")
    assert torch.allclose(counted, loss[two.mask].mean())

# %% [markdown]
# Under `in_pieces` even the sign of the loss depends on the card. Counted first, nothing does.
#
# GPUs are pieces too. Say one GPU has an answer of 10 tokens and another one of 1000. Each takes
# its own mean, then gradients are averaged, as data parallelism does. What the two answers get of
# the step, and what a token mean gives them:

# %%
tokens = torch.tensor([10.0, 1000.0])                   # on each GPU
for name, c in (("means, averaged", 1 / (2 * tokens)),
                ("counted first", torch.ones(2) / tokens.sum())):
    print(f"{name:16s} shares {(c * tokens)[0]:.2f} and "
          f"{(c * tokens)[1]:.2f}; a token of the short answer weighs "
          f"{c[0] / c[1]:.0f} times one of the long")

# %% [markdown]
# ## The same learning rate?
#
# Token for token, Dr. GRPO's push is GRPO's times $s\,T_i/L_{\max}$. With 256 tokens of 2048 and
# $s=1/2$ that is a sixteenth. A direction is what counts, one hears, a size is a learning rate. Try
# it on one weight with made-up gradients: four small ones to one side, then a large one to the
# other, 40 steps. Whole, and a sixteenth of each.

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

# %%
predict("dr_grpo.5", "At the same learning rate, which optimizers end "
        "elsewhere with a sixteenth?",
        ["SGD only: Adam divides by the gradient's own size",
         "SGD, and Adam with the gradient norm clipped at 1",
         "all: SGD, Adam, and Adam with clipping", "none of them"])

# %%
SGD, Adam = torch.optim.SGD, torch.optim.Adam
paths = {name: tuple(travel(scale, *how) for scale in (1, 1 / 16))
         for name, how in (("SGD", (SGD,)), ("Adam", (Adam,)),
                           ("Adam, norm clipped at 1", (Adam, 1.0)))}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dr_grpo.5", "SGD, and Adam with the gradient norm clipped at 1",
       "Adam alone hides the factor. Clipping cuts the whole gradient's "
       "rare large steps to size 1, and a sixteenth of them never: "
       "the two end on opposite sides. So after the switch look where the "
       "gradient norm lies against the threshold. A KL term beside the "
       "loss does not shrink either, and weighs more.",
       pictures.step_sizes(paths, (
           "One weight, made-up gradients. Only plain Adam makes the two "
           "the same run.")))

# %% [markdown]
# ## In a real run
#
# | divided by | who shares it | TRL `loss_type` | verl `loss_agg_mode` |
# |---|---|---|---|
# | own length $T_i$ | one answer | `grpo` | `seq-mean-token-mean` |
# | tokens of the piece | the piece | `bnpo` | – |
# | tokens of the step | the step | `dapo` (default) | `token-mean` (default) |
# | constant | nobody | `dr_grpo` | `seq-mean-token-sum-norm` |
#
# Two traps. TRL's `loss_type="dr_grpo"` changes the divisor only; the std goes with
# `scale_rewards="none"`. verl's constant is the padded width of the piece until you set
# `loss_scale_factor`.
#
# **Log** the mean length of right and of wrong answers apart, the share of answers cut at
# $L_{\max}$, and the gradient norm.
#
# <details><summary>One level deeper: is one of them better?</summary>
#
# * Dr. GRPO's authors report the same accuracy with fewer tokens, wrong answers above all
#   ([arXiv 2503.20783](https://arxiv.org/abs/2503.20783)).
# * DAPO's formula, as printed, divides by the tokens of each *prompt*; both libraries run the step.
#   ScaleRL compares three and prefers the prompt's
#   ([arXiv 2510.13786](https://arxiv.org/abs/2510.13786), section 3.2), and says of such choices
#   that they mostly change efficiency.
# * If the reward's size changes, so does the push without $s$: rewards of 0 and 10 give ten times
#   the gradient.
# * Seven rules with their weights on one batch, and every library's words:
#   [statements 10](statements/10_dr_grpo.ipynb).
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Dr. GRPO | |
# |---|---|
# | sentence | GRPO without the std, and divided by a constant instead of the answer's own length: every token weighs the same |
# | formula | $A_i=R_i-\bar R$ · weight of a token $1/(B\,L_{\max})$ |
# | silent | as in GRPO: groups all right or all wrong, clipped tokens |
# | picture | two switches, four losses; the short answer is no longer the loudest |
# | numbers | n answers share a divisor: push on length 1.558 (n = 1), 0.275 (4), 0.029 (32), 0 (constant) |
# | derived | every token the same weight |
# | choices | which constant; the clip |

# %%
print("GRPO without KL -> Dr. GRPO\n" + str(difference(
    ZOO["grpo"].replace(terms=()), ZOO["dr_grpo"])))
print("push on length:", ", ".join(f"{x:.3f}" for x in drift.values()))
score("dr_grpo.1", "dr_grpo.2", "dr_grpo.3", "dr_grpo.4", "dr_grpo.5")

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
# More practice, five minutes each: `check.token_mean`, `check.constant_length`,
# `check.prompt_mean`; their arguments are on the [solutions page](solutions/10_dr_grpo.ipynb).
#
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>What does Dr. GRPO change, and why?</b></summary>
#
# It drops the std and divides by a constant instead of the answer's length. The policy gradient has
# one weight for all tokens, up to a number fixed before sampling; std and length are sampled, so
# they bend it. Prompts are no longer reweighted by 1/s, and the push on length is gone. Clip, group
# and silent groups stay; the KL is a separate setting.
# </details>
# <details><summary><b>Does a token mean favour long answers?</b></summary>
#
# In share yes, in pressure hardly. A long answer gets more of the step because it has more tokens,
# under the constant exactly as much. Pressure to change length comes from a weight that knows its
# own answer's length: full under 1/T, about 1/n of that when n answers share the divisor, none
# under a constant.
# </details>
# <details><summary><b>Does Dr. GRPO make answers longer?</b></summary>
#
# Not by itself. If reward ignores length, its expected push on length is exactly zero. Where longer
# answers are right more often they grow, as they should. The paper reports fewer tokens than GRPO,
# above all in wrong answers.
# </details>
# <details><summary><b>I turned on gradient accumulation and results got worse. Why?</b></summary>
#
# Look at the divisor first. If each micro-batch averages over its own tokens and those means are
# averaged, tokens beside short answers weigh more; with one answer a piece it is GRPO's 1/T. Count
# the tokens of the whole step first, and divide every piece's sum by that. The same holds across
# GPUs.
# </details>
# <details><summary><b>I set loss_type="dr_grpo" in TRL. What do I get?</b></summary>
#
# Half of it: the constant divisor. The std stays until `scale_rewards="none"`. The constant is
# `max_completion_length`, so runs with different limits take different steps.
# </details>
# <details><summary><b>Same learning rate after the switch?</b></summary>
#
# No, unless Adam hides it. The push shrinks by s T/L_max, often ten times and more. Adam rescales
# it; clipping of the gradient norm and a KL term do not.
# </details>
#
# The sentences that one hears about averaging tokens, true or not:
# [statements 10](statements/10_dr_grpo.ipynb). The exercises, solved:
# [solutions 10](solutions/10_dr_grpo.ipynb).
#
# **Next: [11](11_dapo.ipynb).** Why do groups stop teaching, and what brings them back?
