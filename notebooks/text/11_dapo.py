# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 11 · DAPO: why do groups stop teaching, and what brings them back?
#
# **After this page** you can say which groups teach nothing, what it costs to replace them, and
# when a higher clip helps a rare token.
#
# 36 minutes · exercises 25 and interview 8 more · after 06 (PPO), 08 (GRPO), 10 (token mean) ·
# DAPO, Yu et al. 2025, [arXiv 2503.14476](https://arxiv.org/abs/2503.14476)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What is the advantage of an answer in GRPO?</summary>Its reward minus the mean of its group, divided by the group's std (08).</details>
# <details><summary>2. When does PPO's clip end the gradient of a good token?</summary>When its ratio, its probability now over its probability when it was sampled, is above 1 + ε (06).</details>
# <details><summary>3. To which policy does GRPO's KL term tie the one we train?</summary>To the reference, where training began; the clip ties it to the policy that sampled (05, 08).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import (
    kept_groups, kept_groups_explorer, rare_token, rare_token_explorer)
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import dapo as pictures
from rlnb.classroom.pictures.recorded_runs import curve
from rlnb.toys import running_batch
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# DAPO is GRPO with four repairs. This page is about two of them: it replaces groups that teach
# nothing, and it raises the upper edge of the clip. The other two are short and come at the end.

# %% [markdown]
# ## A run that learns
#
# A small transformer (0.3 million parameters) learns mental arithmetic. A step is 16 prompts with 8
# answers each; a right answer earns 1, a wrong one 0. We recorded three seeds. Look at the left
# picture: the answers get better.

# %% jupyter={"source_hidden": true}
# the recorded run
pictures.silent_run()

# %% [markdown]
# A group whose answers are all right, or all wrong, is **silent**: every advantage in it is 0, so
# it teaches nothing. Every other group is **mixed**.

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.1", "In the last ten steps 91 to 94 % of the answers are "
        "right. How many of the groups are still mixed?",
        ["about nine in ten, as at the start", "about seven in ten",
         "about four in ten", "fewer than one in ten"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
def mean(numbers):
    return f"{sum(numbers) / len(numbers):.2f}"

teach = [curve("chain_dr_grpo", seed, "groups/mixed") for seed in range(3)]
first, last = (mean([x[part].mean() for x in teach])
               for part in (slice(10), slice(-10, None)))
reveal("dapo.1", "about four in ten",
       f"{last}, in all three seeds alike. Over the first ten steps it was "
       f"{first}. **Success silences**: eight answers at 92 % are often "
       "all right.", pictures.silent_run(answered=True), instead={
           "about nine in ten, as at the start":
           "One wrong answer in a group of eight is no longer the rule.",
           "about seven in ten":
           "Eight right answers in a row have the chance 0.92 to the power "
           "of 8, about one half; on easy prompts more.",
           "fewer than one in ten":
           "One answer in twelve is still wrong, and a group has eight.",
       })

# %% [markdown]
# ## How many groups are silent, and what does a new one cost?
#
# Take one prompt that is solved with chance $p$, and $G$ independent answers to it. $R_i$ is the
# reward of answer $i$, and $\bar R$ is their mean. $P$ is the chance that the group is mixed. $N$
# is the number of groups that we draw until one is mixed.
#
# $$\begin{aligned}
# R_1=\dots=R_G\;&\Rightarrow\;R_i-\bar R=0&&\text{each equals the mean: no gradient}\\
# \Pr(\text{all right})&=p^G&&\text{independent: multiply}\\
# \Pr(\text{all wrong})&=(1-p)^G&&\text{the same}\\
# P&=1-p^G-(1-p)^G&&\text{the two exclude each other: add}\\
# \text{silent}&\to\text{draw another prompt}&&\textbf{a choice: train on mixed groups only}\\
# \mathbb E[N]&=1+(1-P)\,\mathbb E[N]&&\text{one draw; if silent, start anew}\\
# \mathbb E[N]&=1/P&&\text{solve}
# \end{aligned}$$
#
# The choice is called **dynamic sampling**. Its price is $1/P$ groups for each group that we keep.
# Before you run the cell: which of these prompts is the dearest?

# %%
for p in (0.01, 0.5, 0.95):
    P = 1 - p**8 - (1 - p)**8
    print(f"p = {p:4.2f}: {P:.3f} of the groups of 8 are mixed, "
          f"a kept one costs {1 / P:5.2f} groups")

# %% [markdown]
# The hard prompt costs thirteen groups, or 104 answers, for one that teaches. Training walks over
# the hill below from left to right: all wrong, mixed, all right.

# %% jupyter={"source_hidden": true}
# the hill
pictures.hill()

# %% [markdown]
# Would a larger group come cheaper? The explorer has four kinds of prompt. *Progress* makes all of
# them easier, as training does.

# %% jupyter={"source_hidden": true}
# the explorer
task("dapo.t1", kept_groups_explorer(),
     ("Progress 6, and fewer than 3 groups are drawn for a kept one.",
      kept_groups.cheap_in_groups),
     ("Progress 6, and fewer than 35 answers are written for a kept group.",
      kept_groups.cheap_in_answers))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Take G = 32 or 64.
# 2. Take G = 2 or 4. At either end of the hill a mixed group waits for one rare answer. If that
#    answer has chance $q$, a kept group costs about $1/q$ answers, as long as $Gq$ is well below 1.
# </details>
#
# **The group that needs the fewest draws needs the most answers.**
#
# <details><summary>One level deeper: which prompts train</summary>
#
# In practice a silent prompt is replaced by *another* one. Then the price is 1 over the *mean* of
# $P$ over the prompts. Each prompt enters in proportion to its own $P$, so the kept prompts are no
# longer those of the pool: one that is solved half the time enters 13 times as often as one at
# 0.01.
# </details>

# %% [markdown]
# ## Does a full batch pay?
#
# We train the same transformer in two ways, with 8 groups a step. *Plain* takes the 8 groups that
# come. *Refilled* draws further rounds of 8 groups, at most four, until 8 are mixed; it throws away
# what is over. Both write the same number of answers in total, and both try four learning rates.

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.2", "After 2,560 answers, each at its best rate: which is "
        "ahead on held-out problems?",
        ["plain: it makes more updates from the same answers",
         "refilled, a little: full batches make steadier steps",
         "level: a silent group costs both of them the same",
         "refilled, clearly: every group in its batch teaches"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ends = [mean(pictures.at_answers(runs[1], 2560))
        for runs in pictures.ARMS.values()]
bill = mean([curve("chain_refill", k, "generated").mean() / 64
             for k in range(3)])
reveal("dapo.2", "plain: it makes more updates from the same answers",
       f"It solves {ends[0]} of the problems against {ends[1]}, and is "
       f"ahead "
       "in every seed. Step for step the two are level, but a refilled "
       "step "
       f"writes {bill} times the answers. **So ask of every such curve: "
       "does the axis count steps or answers?** (At the two largest rates "
       "plain collapses and refilled holds up better. It also makes fewer "
       "updates there, so this run cannot say why.)",
       pictures.refill_race(), instead={
           "refilled, clearly: every group in its batch teaches":
           "The groups that do not teach were written, too, and the axis "
           "counts answers.",
           "refilled, a little: full batches make steadier steps":
           "They may be steadier. But there are fewer of them for the same "
           "answers.",
           "level: a silent group costs both of them the same":
           "Plain pays for one group, refilled for a round of eight.",
       })

# %% [markdown]
# <details><summary>One level deeper: the bill, and a base with more silent groups</summary>
#
# Count the groups that refilled wrote in the three seeds: 1,016. Of these 839 were mixed and 576
# were trained on. So about three in ten mixed groups were thrown away. Replaced one by one, instead
# of in rounds, the same batches would have cost 1.21 groups per kept group: 1,016
# over 839. <!-- cited: 1.21 -->
#
# Page 14 tried a base where every second group is silent. Per answer, refilled was not ahead there
# either. The authors have another motive: with few mixed groups a step's gradient is noisy. And
# they count steps with a reason (section 3.2): the whole batch waits for its longest answer anyway,
# so a few more answers cost little time.
# </details>

# %% [markdown]
# ## The edge of a rare token
#
# Now take a hard prompt. The token that leads to its right answer is rare, and when it is drawn its
# advantage $A$ is large. PPO's clip *silences* it early: its gradient becomes 0. With
# $\rho=\pi_\theta/\pi_\text{old}$, the token's probability now over that at sampling:
#
# $$\begin{aligned}
# J&=\min\big(\rho A,\ \mathrm{clip}(\rho,1-\epsilon,1+\epsilon)A\big)&&\text{one token's gain in PPO, page 06}\\
# \rho>1+\epsilon,\ A>0\;&\Rightarrow\;\partial J/\partial\rho=0&&\text{the clipped value is the smaller, and flat}\\
# \epsilon_\text{high}&=0.28,\quad\epsilon_\text{low}=0.2&&\textbf{a choice: raise the upper edge only}
# \end{aligned}$$
#
# The choice is called **clip-higher**. A token at 0.01 is silenced at 0.012 under the old edge, and
# at 0.0128 under the new one. <!-- cited: 0.012, 0.0128 --> The authors leave the
# lower edge: a wider one, they say, would push tokens to zero.
#
# A clip ends the *gradient*; the update in which the token crosses the edge is still made in full.
# In the explorer every update adds a fixed step to the token's logit, as long as its gradient
# lives. Look at the left picture first: it is one batch.

# %% jupyter={"source_hidden": true}
# the explorer
task("dapo.t2", rare_token_explorer(),
     ("A token that starts at 0.01 or less, and both edges silence it. Yet "
      "the first batch takes it equally far under 1.20 and 1.28.",
      rare_token.equal_though_silenced),
     ("A token that starts at 0.01. Under 1.28 it reaches 0.95 at least 7 "
      "batches sooner than under 1.20.", rare_token.wide_saves))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. A step of 0.15, say, with 4 updates: one update takes the token from inside both bands to
#    beyond both. <!-- cited: 0.15, 0.24 -->
# 2. A step of 0.24 saves 8 batches. Its first update lands between the edges, so 1.28 allows one
#    more full update. The largest step saves at most 3, small ones at most 6.
# </details>
#
# **What 1.28 buys depends on the size of the steps.**

# %% [markdown]
# DAPO does not make many updates on one batch. It cuts a batch of 8,192 answers into 16 parts and
# makes one update on each, so every answer is used once.

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.3", "In which of the 16 parts can a token's ratio differ "
        "from 1, so that an edge could act?",
        ["in none: no answer is used a second time",
         "in parts 2 to 16: the policy has moved by then",
         "only where a token occurs in two parts: it was pushed before",
         "in all 16: one old policy has sampled them all"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
late = {}
for run in ("chain_stale_0", "chain_stale_1_clip", "chain_stale_8_clip"):
    top = [curve(run, k, "ratio/max")[10:] for k in range(3)]
    late[run] = mean([torch.tensor(x).median().item() for x in top])
none, one, eight = late.values()
reveal("dapo.3", "in parts 2 to 16: the policy has moved by then",
       "**What moves a ratio is the number of updates since sampling, not "
       "reuse.** Our transformer uses every answer once. Its largest ratio "
       f"in a typical step is {none} if it trains at once, {one} one "
       f"update late and {eight} eight updates late. So one update late no "
       "edge acts yet; eight updates late both do. DAPO's rate is smaller "
       "than ours, so its parts may drift less. TRL's default makes one "
       "update per batch: there the edge does nothing.", instead={
           "in none: no answer is used a second time":
           "The first part's are 1. But the policy moves between parts.",
           "only where a token occurs in two parts: it was pushed before":
           "The weights are shared: an update on one token moves others.",
           "in all 16: one old policy has sampled them all":
           "In the first part the policy is still the one that sampled.",
       })

# %% [markdown]
# A wider edge can speed up a token that was *drawn*. A token that was not drawn has no term in $J$;
# an edge can help it only by the way, through shared weights. The authors' argument is about rare
# tokens that are drawn: one at 0.01 may go to 0.012, one at 0.9 would have to pass 1 before the
# edge binds. <!-- cited: 0.012, 0.9, 0.97 -->
#
# <details><summary>One level deeper: that claim on a toy, and entropy</summary>
#
# One prompt has four possible answers with a logit each. The usual one (chance 0.97) earns half
# marks and a rare one (0.01) full marks. We train 200 runs with groups of 16. In some runs the rare
# answer sinks below 1 in 1,000 and is lost. With Adam at rate 0.05 this happens in 41 runs under
# *every* edge, also without a clip. With SGD at 0.2 nothing is lost, and there 1.28 finds the rare
# answer much sooner. Frozen logits for answers never drawn save nearly all of the 41, so Adam had
# moved tokens that no answer contained. At rate 0.02 Adam loses few as well.
#
# DAPO's own motive is *entropy*, how undecided the policy is: with 1.20 it collapsed, with 1.28 it
# stayed up (their figure 2). But entropy also falls when a prompt is solved, so log the reward
# beside it. All of this is run on
# [statements, A18](statements/11_dapo.ipynb). <!-- cited: 0.97, 0.05, 0.2, 0.02 -->
# </details>

# %% [markdown]
# ## The whole method
#
# | what goes wrong | repair |
# |---|---|
# | whole groups are silent | *dynamic sampling*: keep mixed groups only |
# | a rare good token is cut off early | *clip-higher*: the upper edge is 1.28 |
# | a token of a 1,000-token answer weighs a tenth of one of a 100-token answer (GRPO) | *token mean*: one mean over all tokens of the batch (page 10) |
# | a good answer that is cut at the length limit counts as wrong | *overlong penalty*: warn before the limit |
#
# In the loss, $i$ runs over all answers of the batch and $t$ over the $T_i$ tokens of answer $i$:
#
# $$L=-\frac{1}{\sum_iT_i}\sum_i\sum_t\min\big(\rho_{i,t}A_i,\ \mathrm{clip}(\rho_{i,t},0.8,1.28)A_i\big),\qquad0\lt\#\text{right}\lt G\text{ in each group}$$
#
# GRPO's advantage $A_i$ stays, std included. The KL term goes: a policy that learns long reasoning
# *should* move far from where it began (section 2.3).
#
# The penalty is added to the reward of an answer with $T$ tokens. It starts at 16,384 tokens and
# falls to −1 at the limit, 20,480:
#
# $$-\mathrm{clip}\Big(\frac{T-16384}{4096},\,0,\,1\Big)$$
#
# Take a group of four wrong answers with 16,000, 16,424, 15,000 and 9,000 tokens. One is 40 tokens
# over, and pays 0.01. Nobody filtered the group.

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.4", "What is the advantage of the answer that is 40 tokens "
        "over?", ["0: it is as wrong as the other three",
                  "about −0.01: it pays this, the others nothing",
                  "about −0.75: it is one against three",
                  "about −1.7: as if it alone were wrong"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
T = torch.tensor([16000.0, 16424.0, 15000.0, 9000.0])
penalty = -((T - 16384) / 4096).clamp(0, 1)
warned = (penalty - penalty.mean()) / (penalty.std(correction=0) + 1e-6)
bessel = (penalty - penalty.mean()) / (penalty.std() + 1e-4)      # TRL
reveal("dapo.4", "about −1.7: as if it alone were wrong",
       f"−{-warned[1]:.2f} with the std of page 08, −{-bessel[1]:.2f} with "
       "TRL's sample std. The std of the group is as tiny as the penalty, "
       "so dividing makes it full size (09). **The silent group speaks "
       "again, and it teaches length and nothing else.** What has to be "
       "done about it is exercise 3.",
       pictures.overlong_trap(T, penalty, warned), instead={
           "0: it is as wrong as the other three":
           "So it was before the penalty. Now its reward is 0.01 lower.",
           "about −0.01: it pays this, the others nothing":
           "That is its reward minus the others'. What comes next in GRPO?",
           "about −0.75: it is one against three":
           "The distance to the mean is three quarters of 0.01. Then it is "
           "divided.",
       })

# %% [markdown]
# This is the loss as code. The penalty is already in the rewards `R`, and the filter has run.

# %%
def dapo_loss(logp, old_logp, mask, R, low=0.2, high=0.28):
    """Mixed groups: rewards (N, G); the rest (N, G, T). To minimise."""
    A = R - R.mean(1, keepdim=True)
    A = (A / (R.std(1, keepdim=True, correction=0) + 1e-6))[..., None]
    rho = (logp - old_logp.detach()).exp()
    gain = torch.minimum(rho * A, rho.clamp(1 - low, 1 + high) * A)
    return -torch.where(mask, gain, 0.0).sum() / mask.sum()   # token mean

# %% tags=["setup"] jupyter={"source_hidden": true}
# checked: the same number as the course's own DAPO loss
two = running_batch()                                 # two prompts
mine = dapo_loss(*(x.view(2, 4, *x.shape[1:]) for x in (
    two.logprobs, two.old_logprobs, two.mask, two.rewards)))
assert torch.allclose(mine, ZOO["dapo"](two).loss, rtol=0, atol=1e-12)

# %% [markdown]
# Log four things: the share of mixed groups, the mean reward *before* the filter, answers written
# per step, and the share of tokens cut at the upper edge (TRL: `clip_ratio/high_mean`). If the last
# is 0, clip-higher did nothing. And cap the rounds: a pool of hopeless prompts is never mixed. In
# verl the cap is `max_num_gen_batches`, and its default 0 means none.
#
# What did each repair buy? Look at the paper's table: it adds one after the other.

# %% jupyter={"source_hidden": true}
# the paper's table 1
pictures.ladder()

# %% [markdown]
# Dynamic sampling comes last and lifts the score from 42 to 50. A reproduction in verl has 52 with
# it and 50 without. DeepSeek's R1-Zero recipe on the same base had 47, after twice the steps.
#
# <details><summary>One level deeper: mixtures of prompts, the printed formula, the libraries</summary>
#
# * The recorded run lies below the hill because its prompts are not equally hard. The hill bends
#   down everywhere, so a mixture of prompts has fewer mixed groups than one prompt at their mean
#   rate (Jensen).
# * In a plain step silent answers add nothing to the sum, but their tokens stay in the divisor
#   $\sum_iT_i$. So the filter also makes the gradient larger, by about $1/P$. AdamW undoes most of
#   this, SGD does not.
# * The paper prints the token mean inside each prompt, then a mean over prompts; TRL and verl
#   divide by all tokens. They differ when prompts differ in length:
#   [statements](statements/11_dapo.ipynb).
# * TRL's `loss_type="dapo"`, its default, is the token mean only. The edge is `epsilon_high=0.28`,
#   a distance: 1.28 there would mean a band up to 2.28. <!-- cited: 2.28 --> Dynamic sampling is
#   not in it.
# * DAPO itself: 512 prompts, 16 answers each, learning rate 1e-6 (section 4.1); our runs have 3e-4.
# * Instead of refilling: drop prompts whose pass rate, measured beforehand, is 0 or 1; choose them
#   by their last pass rate (a curriculum); or generate without pause and train on whatever mixed
#   groups are ready (asynchronous).
# * *Overlong filtering* gives a cut answer mask 0 instead of a penalty.
# </details>

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | DAPO | |
# |---|---|
# | sentence | GRPO on mixed groups only, with a higher upper edge, one mean over all tokens, a warning before the length limit, and no KL |
# | formula | $P=1-p^G-(1-p)^G$ · price of a kept group: $1/P$ groups · band 0.8 to 1.28 |
# | silent | groups all right or all wrong are replaced; good tokens above 1.28, bad ones below 0.8 |
# | picture | a hill: groups teach in the middle, too hard and too easy ones are silent |
# | numbers | at G = 8 and p = 0.95, 34 % of the groups teach · at p = 0.01 a kept group costs 104 answers |
# | measured | at equal numbers of answers plain beat refilled, 0.90 to 0.85, in every seed · with a length penalty a silent group speaks again: −1.7 for 40 tokens |
# | matters when | groups are often silent · several updates lie between sampling and training |
# | derived | which groups are silent, and the price |
# | choices | draw another prompt; 0.28; the token mean; the ramp |

# %%
score("dapo.1", "dapo.2", "dapo.3", "dapo.4")

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 8 minutes. Somebody logs the mean reward of the *kept* groups. What does the log
# say for a prompt solved with chance $p$? Return it for a tensor of rates.
#
# <details><summary>hint</summary>Split E[mean reward] = p into all right, all wrong and mixed. What do the first two contribute?</details>

# %% tags=["exercise"]
def my_logged_reward(p, G):
    return ...

check.kept_reward(my_logged_reward)

# %% [markdown]
# **2 Implement** · 10 minutes. A real sampler works in rounds: a round is $N$ prompts at once, and
# rounds are drawn until `wanted` mixed groups are together. What is over is thrown away, latest
# first. Given all rewards in the order in which they would be drawn, return the fate of each group:
# 0 never generated, 1 generated in vain, 2 trained on.
#
# <details><summary>hint</summary>Count the mixed groups up to and including each group with cumsum. A round is generated when fewer than `wanted` were there before it.</details>

# %% tags=["exercise"]
def my_fates(rewards, wanted):
    """rewards (rounds, N, G) -> (rounds, N)"""
    return ...

check.refill_fates(my_fates)

# %% [markdown]
# **3 Find the silent bug** · 7 minutes. Penalty and filter in one function. It runs, many groups
# are kept, and answers get shorter:

# %%
print(check.silent_bug_dapo.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>Which groups must never be kept? Give their answers lengths on both sides of the edge.</details>

# %% tags=["exercise"]
def my_test(mixed_groups):
    return ...

check.silent_bug_dapo(my_test)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>What are DAPO's four changes?</b></summary>
#
# Two are in the loss, one in the sampler, one in the reward. Loss: the upper edge of the clip is
# 1.28, and one mean runs over all tokens. Sampler: only mixed groups train. Reward: a penalty that
# grows over the last 4,096 tokens. There is no KL. The advantage stays GRPO's, std included.
# </details>
# <details><summary><b>Why dynamic sampling, and what does it cost?</b></summary>
#
# Groups with equal rewards have no gradient. With chance p to be right a share of 1 − p^G − (1−p)^G
# teaches; a kept group costs one over that, and on hard prompts about 1/p answers while Gp is well
# below 1. It favours prompts of middle difficulty and needs a cap on the rounds.
# </details>
# <details><summary><b>A wider edge is faster. Why not remove the clip?</b></summary>
#
# Because one batch is luck in part. A group's advantages are right on average only; the band limits
# how far the policy goes on one of them. With few small updates it makes no difference: no ratio
# reaches the edge. After 50 updates on one batch of a toy, no clip multiplied a token by 9, clip-
# higher by 1.3 (statement A25).
# </details>
# <details><summary><b>What does clip-higher do, exactly?</b></summary>
#
# A good token keeps its gradient up to a ratio of 1.28. It matters only if updates between sampling
# and training carry the ratio past 1.2; with one update per batch it does nothing. Tokens above
# 0.83 never reach the edge. <!-- cited: 0.83 --> The clip ends the gradient, not the motion: a long
# step goes past both edges. It cannot help a token that was not drawn.
# </details>
# <details><summary><b>Which of the four mattered most?</b></summary>
#
# The paper's table does not say. It adds one repair after the other, a single run a row, so the
# gains depend on the order: the last one, dynamic sampling, from 42 to 50. A reproduction in verl
# has 52 with it and 50 without.
# </details>
#
# The other three can wait for another evening.
#
# <details><summary><b>Their curve reaches the score in half the steps. Convinced?</b></summary>
#
# Not before I see answers on the axis. A refilled step writes more. In our recorded run it was
# level step for step and behind per answer, in every seed, at the best of four rates. Part of that
# bill was coarse rounds; finer ones cost less. If generation waits for the longest answer anyway,
# wall-clock time may still favour it.
# </details>
# <details><summary><b>Does it prevent entropy collapse?</b></summary>
#
# Not by itself. Entropy also falls because a prompt is solved, so low entropy alone is no alarm. In
# our toy a wider edge had more entropy early and less later, for it solved the prompt sooner, and
# the number of runs that lost the rare answer hardly moved. The paper reports higher entropy with
# 0.28 in its own run.
# </details>
# <details><summary><b>After you add the overlong penalty, answers get shorter and shorter. Why?</b></summary>
#
# Perhaps the filter looks at shaped rewards. Then groups that are all wrong pass as mixed, and the
# std blows up a tiny difference in length to full size. Filter on right and wrong first, then add
# the penalty: in verl `filter_groups.metric: acc`; `seq_reward` holds the penalty.
# </details>
#
# The sentences that one hears about DAPO, true or not: [statements 11](statements/11_dapo.ipynb).
# The exercises, solved: [solutions 11](solutions/11_dapo.ipynb).
#
# **Next: [12](12_soft_trust_regions.ipynb).** Beyond 1.28 a good token is still dead. What should
# happen at the edge instead of a cliff?
