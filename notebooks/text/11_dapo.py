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
# **After this page** you can name DAPO's four changes to GRPO: replace the groups that teach
# nothing, clip higher, warn before the length limit, and one mean over all tokens (that one is page
# 10's). You can say what the first costs, when the second acts, and where the third goes wrong.
#
# 37 minutes, then 3 in a second sitting · exercises 25 and interview 7 more · after 06 (PPO), 08
# (GRPO), 10 (token mean) · DAPO, Yu et al. 2025,
# [arXiv 2503.14476](https://arxiv.org/abs/2503.14476)
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
# ## A run that learns
#
# A small transformer (0.3 million parameters) learns mental arithmetic. A step is 16 prompts with 8
# answers each; a right answer earns 1, a wrong one 0. The answers get better:

# %% jupyter={"source_hidden": true}
# the recorded run
pictures.silent_run()

# %% [markdown]
# A group whose answers are all right, or all wrong, is **silent**: every reward equals the group's
# mean, every advantage is 0, and the group teaches nothing. (DAPO has no KL term that could still
# pull at it.) Every other group is **mixed**.

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

last = mean([curve("chain_dr_grpo", seed, "groups/mixed")[-10:].mean()
             for seed in range(3)])
reveal("dapo.1", "about four in ten",
       f"{last}, the mean of three seeds that hardly differ. **As prompts "
       "become easy, groups fall silent:** eight answers at 92 % are often "
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
# ## First change: which groups are silent, and what does a new one cost?
#
# A prompt is solved with chance $p$; its $G$ answers are independent. $P(p)$ is the chance that the
# group is mixed. With few mixed groups a gradient is noisy, the authors say. So they replace a
# silent group by one of *another* prompt, drawn at random. $N$ is the number of groups we draw
# until one is mixed, $\bar P$ the mean of $P(p)$ over all prompts.
#
# $$\begin{aligned}
# P(p)&=1-p^G-(1-p)^G&&\text{neither all right nor all wrong}\\
# \text{silent}&\to\text{draw another prompt}&&\textbf{a choice: train on mixed groups only}\\
# \mathbb E[N]&=1+(1-\bar P)\,\mathbb E[N]&&\text{one draw; if silent, start anew}\\
# \mathbb E[N]&=1/\bar P&&\text{solve}
# \end{aligned}$$
#
# The choice is called **dynamic sampling**. A kept group costs $1/\bar P$
# groups. This is $P(p)$:

# %% jupyter={"source_hidden": true}
# the hill
pictures.hill()

# %% [markdown]
# Let equally many prompts be at 0.01, 0.5 and 0.95. Before you run the cell: what share of the kept
# groups comes from the hard third?

# %%
p = torch.tensor([0.01, 0.5, 0.95])
P = 1 - p**8 - (1 - p)**8
price = 1 / P.mean()
print("mixed:", *(f"{x:.3f}" for x in P))
print(f"a kept group costs {price:.2f} groups, {8 * price:.0f} answers")
print("of the kept groups:", *(f"{x:.0%}" for x in P / P.sum()))

# %% [markdown]
# The hard third gives 5 % of the kept groups: most of its groups are silent and are skipped. But
# its share of the mixed groups in a plain batch is 5 %, too. **So the mean gradient keeps its
# direction. Replacing silent groups by more answers makes it less noisy.**
#
# Would a larger group come cheaper? In the explorer, *progress* makes all prompts easier.

# %% jupyter={"source_hidden": true}
# the explorer
task("dapo.t1", kept_groups_explorer(),
     ("Set progress to 6. A kept group costs fewer than 35 answers. "
      "Say first: with larger groups, or with smaller ones?",
      kept_groups.cheap_in_answers))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Smaller: G = 2 or 4. A group is kept when a rare answer has come, and that costs about $1/q$
# answers if its chance is $q$, in one large group or in many small ones. Once $Gq$ is near 1, a
# group mostly has its rare answer, and further answers only make it larger: at 64 a kept group has
# cost 138.
# </details>
#
# **You pay for the rare answer: about one over its chance, in one group or in many, until a group
# has one almost surely.** Beyond that a group only gets larger. So from 2 to 8 the price hardly
# rises, from 32 answers to 40.

# %% [markdown]
# ## Does a full batch pay?
#
# Go on from the end of that run, where six groups of ten are silent, in three ways. *Plain* makes
# its updates on 8 groups as they come. *Refilled* draws rounds of 8 until 8 groups are mixed.
# *Wide* takes 32 groups as they come: about as many answers as refilled writes. Each has four
# learning rates and three seeds.

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.2", "After 36 updates, each at its best rate: which is ahead "
        "on 250 held-out problems?",
        ["refilled: each of its groups teaches",
         "wide: it trains on the most answers",
         "refilled and wide alike, plain is behind",
         "none: the mean gradient is the same for all"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def best(arm, by, where):
    """pass@1 at the best of the four rates, mean of three seeds."""
    return pictures.late_at(arm, by, where).mean(1).max().item()

done = {arm: best(arm, "updates", 36) for arm in pictures.LATE}
paid = {arm: best(arm, "rounds", 5120) for arm in pictures.LATE}
drawn = sum(pictures.late_answers(36)) / 3 / (36 * 8)
assert done["plain"] < 0.96 < min(done["refilled"], done["wide"])
assert max(paid.values()) - min(paid.values()) < 0.012

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dapo.2", "refilled and wide alike, plain is behind",
       f"{done['refilled']:.3f} and {done['wide']:.3f}, plain "
       f"{done['plain']:.3f}, and plain lags at every rate (left). Silent "
       "groups add nothing to a sum, so 32 groups with eight or more mixed "
       "ones estimate what 8 mixed groups estimate. (As the policies "
       "improve, fewer groups are mixed: refilled had to draw "
       f"{drawn:.0f} for its 8.) **Dynamic sampling is a larger batch.** "
       "And it is paid for: after as many *answers* (right) the three have "
       + ", ".join(f"{x:.3f}" for x in paid.values())
       + ", and the order changes from rate to rate. **Ask of every such "
       "curve: does the axis count updates or answers?**",
       pictures.late_race(), instead={
           "refilled: each of its groups teaches":
           "So do the mixed groups of the wide batch, and it has as many.",
           "wide: it trains on the most answers":
           "Most of them are silent, and add nothing.",
           "none: the mean gradient is the same for all":
           "Its direction is. Its noise is not: plain has two or three "
           "mixed groups an update, the others eight or more.",
       })

# %% tags=["setup"] jupyter={"source_hidden": true}
# checked: early in training
early = [mean(pictures.at_answers(runs[1], 2560))
         for runs in pictures.ARMS.values()]
assert early == ["0.90", "0.85"]
made, share = ([curve("chain_refill", k, name) for k in range(3)]
               for name in ("generated", "groups/mixed"))
mixed = sum((n * m).sum() for n, m in zip(made, share)) / 8
assert round(1 - 3 * len(made[0]) * 8 / mixed, 1) == 0.3

# %% [markdown]
# What refilling does better than a wide batch: it holds the *number* of mixed groups steady while
# prompts become easy. What it does worse: early in training most groups are mixed, and rounds of 8
# threw three mixed groups of ten away. There, after 2,560 answers, refilled had 0.85 and plain
# 0.90. Before you refill, look at the share of mixed groups, and at the mixed groups thrown
# away. <!-- cited: 0.85, 0.90 -->
#
# (Here the price is answers. On a cluster, where a step waits for its longest answer anyway,
# further groups may cost little time. But if you keep the groups that are *ready first*, you keep
# short answers.)

# %% [markdown]
# ## Second change: how far may a rare token go?
#
# Groups also fall silent when the answers become alike. In the authors' first runs the policy's
# **entropy**, how undecided it is about the next token, fell fast, and in some groups the answers
# were nearly the same. They blame the upper edge of PPO's clip: it holds back rare tokens. With
# $\rho=\pi_\theta/\pi_\text{old}$, a token's probability now over that at sampling, and its
# advantage $A$:
#
# $$\begin{aligned}
# J&=\min\big(\rho A,\ \mathrm{clip}(\rho,1-\epsilon,1+\epsilon)A\big)&&\text{one token's gain in PPO, page 06}\\
# \rho>1+\epsilon,\ A>0\;&\Rightarrow\;\partial J/\partial\rho=0&&\text{the clipped value is the smaller, and flat}\\
# \epsilon_\text{high}&=0.28,\quad\epsilon_\text{low}=0.2&&\textbf{a choice: raise the upper edge only}
# \end{aligned}$$
#
# The choice is called **clip-higher**. A good token ($A>0$) at 0.01 is
# clipped beyond 0.012 under the old edge, beyond 0.0128 under the new
# one. <!-- cited: 0.012, 0.0128 --> The lower edge stays: a wider one, the authors say, would push
# tokens to zero.
#
# In the explorer the token is in every batch, and every update adds a fixed step to its logit until
# it is clipped.

# %% jupyter={"source_hidden": true}
# the explorer
task("dapo.t2", rare_token_explorer(),
     ("Start at 0.01 or less. Both edges clip, and yet the first batch "
      "takes the token equally far. Say first how that can be.",
      rare_token.equal_though_silenced))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# A step of 0.15, say, with 4 updates: one update takes the token from inside both bands to beyond
# both. A clip ends the *gradient*; the update that crosses the edge is still made in full. (And
# from 0.85 on neither edge ever clips a good token: no probability passes 1, so the ratio stays
# below 1.18.)
# <!-- cited: 0.15, 0.85, 1.18, 0.83, 1.28, 0.78, 1.8, 0.8, 0.18, 0.01 -->
# </details>
#
# **An edge of 1.2 acts only on tokens below 1/1.2 = 0.83** (1.28: below 0.78). The rarer the token,
# the less may its logit rise: by 1.8 at 0.8, by 0.18 at 0.01. So it holds back the less likely
# ones, as the authors argue; with 1.28 their entropy stayed higher (the paper's figure 2). It is no
# cure: a token that was not drawn has no term in $J$, and entropy also falls when prompts are
# solved.

# %% [markdown]
# ## When can an edge act at all?
#
# DAPO cuts a batch of 8,192 answers into 16 parts and makes one update on each: every answer is
# used once.

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
for run in ("chain_stale_0", "chain_stale_8_clip"):
    top = [curve(run, k, "ratio/max")[10:] for k in range(3)]
    late[run] = mean([torch.tensor(x).median().item() for x in top])
none, eight = late.values()
reveal("dapo.3", "in parts 2 to 16: the policy has moved by then",
       "**What moves a ratio is the number of updates since sampling, not "
       "reuse.** Our transformer, too, uses every answer once. When it "
       f"trains on fresh answers, its largest ratio is {none}. When eight "
       "updates lie between sampling and training, the largest ratio of a "
       f"typical step is {eight}: past both edges. TRL's default makes one "
       "update per batch, so there the edge does nothing.", instead={
           "in none: no answer is used a second time":
           "The first part's are 1. But the policy moves between parts.",
           "only where a token occurs in two parts: it was pushed before":
           "The weights are shared: an update on one token moves others.",
           "in all 16: one old policy has sampled them all":
           "In the first part the policy is still the one that sampled, if "
           "the trainer has scored the answers itself. An engine's numbers "
           "differ a little (19).",
       })

# %% [markdown]
# ## Third change: a penalty of a hundredth
#
# An answer that is cut at the length limit has no result. To score it as wrong is noise: it may
# have been on its way to a right one. So DAPO first leaves such answers out of the loss (overlong
# filtering), and then warns before the limit, by a penalty on an answer with $T$ tokens. It starts
# at 16,384 tokens and falls to −1 at the limit, 20,480:
#
# $$-\mathrm{clip}\Big(\frac{T-16384}{4096},\,0,\,1\Big)$$
#
# Take a group of four wrong answers with 16,000, 16,424, 15,000 and 9,000 tokens. One is 40 tokens
# over and pays 0.01. A filter on right and wrong drops this group. A filter on the reward *with*
# the penalty keeps it, for its rewards differ. Then it gets into the loss.

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
reveal("dapo.4", "about −1.7: as if it alone were wrong",
       f"−{-warned[1]:.2f}, minus the root of 3. The (population) "
       "std of the four is as tiny as the penalty, and dividing by it "
       "removes the size: 4 tokens over or 400 get the same. **The silent "
       "group speaks again, and it teaches length and nothing else.**",
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

# %% [markdown]
# ## What else does DAPO change?
#
# The paper's table ([2503.14476](https://arxiv.org/abs/2503.14476)) adds one change after the other
# to GRPO: Qwen2.5-32B, AIME 2024, mean of 32 answers. One run a row, so nobody can tell luck
# from gain in a single row, and the order counts.
#
# | added | score | what it is |
# |---|---|---|
# | (GRPO without KL) | 30 | a policy that learns long reasoning may move far from where it began |
# | overlong filtering | 36 | an answer cut at the limit is left out of the loss |
# | clip-higher | 38 | 1.28 for good tokens |
# | overlong penalty | 41 | from 4,096 tokens before the limit on, the reward falls from 0 to −1 |
# | token mean | 42 | one mean over all tokens of the batch (10) |
# | dynamic sampling | 50 | silent groups are replaced |
#
# GRPO's advantage stays, std included. <!-- cited: 1.28 -->

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | DAPO | |
# |---|---|
# | sentence | GRPO on mixed groups only, with a higher upper edge, a token mean, a warning before the length limit, and no KL |
# | formula | $P(p)=1-p^G-(1-p)^G$ · a kept group costs $1/\bar P$ groups · band 0.8 to 1.28 |
# | picture | a hill: groups are mixed in the middle, silent at both ends |
# | number | p = 0.95 and G = 8: 34 % of the groups are mixed |
# | measured, one toy, three seeds | late, 8 mixed groups did what 32 groups as they come did, at the same price; per answer no gain |
# | the edge acts | after updates since sampling, on tokens below $1/1.28$ |

# %%
score("dapo.1", "dapo.2", "dapo.3", "dapo.4")

# %% [markdown]
# ## Second sitting: the whole loss, and the filter
#
# In the loss, $i$ runs over all answers of the batch and $t$ over the $T_i$ tokens of answer $i$:
#
# $$L=-\frac{1}{\sum_iT_i}\sum_i\sum_t\min\big(\rho_{i,t}A_i,\ \mathrm{clip}(\rho_{i,t},0.8,1.28)A_i\big),\qquad0\lt\#\text{right}\lt G\text{ in each group}$$
#
# As code; the groups are already filtered:

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

# %% [markdown]
# Where should the filter of mixed groups stand, before the overlong penalty or behind it? That is
# exercise 3.
#
# In a run, log four things: the share of mixed groups, the mean reward *before* the filter, the
# answers written per step, and the share of good tokens whose ratio is above 1.2. If the last is 0,
# clip-higher did nothing. (TRL's `clip_ratio/high_mean` counts those above 1.28 only.) And cap the
# rounds: a pool of hopeless prompts is never mixed. In verl the cap is `max_num_gen_batches`; its
# default, 0, means none.
#
# <details><summary>One level deeper: the divisor, and the libraries</summary>
#
# * Silent answers add nothing to the sum, but their tokens stay in the divisor $\sum_iT_i$. So
#   replacing them makes the gradient larger, by about $1/\bar P$. AdamW undoes most of this, SGD
#   does not.
# * The paper prints the token mean inside each prompt, then a mean over prompts; TRL and verl
#   divide by all tokens: [statements](statements/11_dapo.ipynb).
# * TRL's `loss_type="dapo"`, its default, is the token mean only. The edge is `epsilon_high=0.28`,
#   a distance. Dynamic sampling is not in it.
# </details>

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
# Without a KL term groups with equal rewards have no gradient. With chance p to be right a share of
# 1 − p^G − (1−p)^G is mixed; a kept group costs one over the mean of that over the prompts. It buys
# a less noisy gradient of the same mean direction, as a larger batch would: hard prompts stay as
# rare among the mixed groups as before. It needs a cap on the rounds.
# </details>
# <details><summary><b>What does clip-higher do, exactly?</b></summary>
#
# A good token keeps its gradient up to a ratio of 1.28, so that rare tokens can grow and entropy,
# the authors say, falls less. It matters only if updates between sampling and training carry the
# ratio past 1.2; with one update per batch it does nothing. Tokens above 0.83 never reach
# 1.2. <!-- cited: 0.83 --> It cannot help a token that was not drawn.
# </details>
# <details><summary><b>Which of the four mattered most?</b></summary>
#
# The paper's table does not say. It adds one change after the other, a single run a row, so the
# gains depend on the order: the last one, dynamic sampling, from 42 to 50 on AIME 2024. A
# reproduction in verl has 52 with it and 50 without.
# </details>
#
# The other three can wait for another evening.
#
# <details><summary><b>Their curve reaches the score in half the steps. Convinced?</b></summary>
#
# Not before I see answers on the axis. A refilled step writes more. In our toy, late in training,
# it was ahead per update, level with a plain batch of four times as many groups, and level with all
# per answer; early it was behind. If generation waits for the longest answer anyway, wall-clock
# time may favour it.
# </details>
# <details><summary><b>Does clip-higher prevent entropy collapse?</b></summary>
#
# Not by itself. Entropy also falls because a prompt is solved, so low entropy alone is no alarm. In
# a toy of four answers a wider edge had more entropy early and less later, for it solved the prompt
# sooner (statement A18). The paper reports higher entropy with 0.28 in its own run.
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
# **Next: [12](12_soft_trust_regions.ipynb).** Beyond 1.28 a good token has no gradient. What should
# happen at the edge instead of a cliff?
