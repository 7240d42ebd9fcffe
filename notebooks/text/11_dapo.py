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
# **After this page** you can say which groups teach nothing and how many there are, what it costs
# to replace them, and what a higher clip does for a rare token and what it does not.
#
# 47 minutes, exercises 25 more · after 06 (PPO), 08 (GRPO), 10 (token mean) ·
# DAPO, Yu et al. 2025, [arXiv 2503.14476](https://arxiv.org/abs/2503.14476)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What is the advantage of an answer in GRPO?</summary>Its reward minus the mean of its group, divided by the group's std (08).</details>
# <details><summary>2. When does PPO's clip end the gradient of a good token?</summary>When its ratio, its probability now over its probability when it was sampled, is above 1 + ε (06).</details>
# <details><summary>3. To which policy does GRPO's KL term tie the one we train?</summary>To the reference, where training began; the clip ties it to the policy that sampled (05, 08).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports and the toy of the second half, folded
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import (
    kept_groups, kept_groups_explorer, rare_token, rare_token_explorer)
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import dapo as pictures, pipeline
from rlnb.classroom.pictures.recorded_runs import curve, final
from rlnb.toys import running_batch
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy: train(optimizer, rate, edge)
def train(optimizer, rate, edge, seed=0, freeze=False, n=200, G=16):
    """n runs of 50 groups of G answers, 8 updates of PPO's clip on each.
    freeze: no push on logits never drawn. Returns the policies (n, 51, 4),
    and in how many batches the rare answer was before it was lost (n,)."""
    ever, pay = 0.0, torch.tensor((1.0, 0.5, 0.0, 0.0))
    z = torch.tensor((0.01, 0.97, 0.01, 0.01)).log().repeat(n, 1)
    opt, path, seen = optimizer([z.requires_grad_()], lr=rate), [], 0
    dice = torch.Generator().manual_seed(seed)    # the same for every edge
    for _ in range(51):
        old = z.detach().log_softmax(1)
        path.append(old.exp())
        u = torch.rand(n, G, generator=dice)
        drawn = torch.searchsorted(path[-1].cumsum(1), u).clamp(max=3)
        share = torch.nn.functional.one_hot(drawn, 4).double().mean(1)
        seen = seen + ((share[:, 0] > 0) & (path[-1][:, 0] >= 0.001))
        ever = ever + share
        A = pay - (share * pay).sum(1, keepdim=True)
        A = A / ((share * A**2).sum(1, keepdim=True).sqrt() + 1e-6)
        for _ in range(8):
            rho = (z.log_softmax(1) - old).exp()
            gain = share * torch.minimum(rho * A, rho.clamp(0.8, edge) * A)
            opt.zero_grad(), (-gain.sum()).backward()
            z.grad *= (ever > 0) if freeze else 1.0; opt.step()
    return torch.stack(path, 1), seen

# %% [markdown]
# ## A run that learns
#
# A small transformer (0.3 million parameters) learns mental arithmetic, 7 + 4 · 3 and so on from
# left to right, last digit only. A step is 16 prompts with 8 answers each; right earns 1, wrong 0.
# The run (Dr. GRPO of page 10, AdamW) was recorded with three seeds:

# %%
pictures.silent_run()

# %% [markdown]
# All 128 answers of a step are paid for. Not all are used: a group whose answers are all right, or
# all wrong, is **silent**. At the start about nine groups in ten teach.

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.1", "In the last ten steps 91 to 94 % of the answers are "
        "right. How many of the groups still teach?",
        ["about nine in ten, as at the start", "about seven in ten",
         "about four in ten", "fewer than one in ten"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
teach = [curve("chain_dr_grpo", seed, "groups/mixed") for seed in range(3)]
first, last = (", ".join(f"{x[part].mean():.2f}" for x in teach)
               for part in (slice(10), slice(-10, None)))
reveal("dapo.1", "about four in ten",
       f"{last} (three seeds); over the first ten it was {first}. Success "
       "silences: eight answers at 92 % are often all right. The orange "
       "line is a formula, derived next: what the success rates on the "
       "left would give if all prompts were equally hard.",
       pictures.silent_run(answered=True))

# %% [markdown]
# On prompts that are too hard, groups are silent too: every answer is wrong. DAPO is GRPO with four
# repairs. The first two get most of this page.
#
# | what goes wrong | repair |
# |---|---|
# | whole groups are silent | throw them away, draw others: *dynamic sampling* |
# | a rare good token rises slowly | a higher upper edge: *clip-higher* |
# | a token of a long answer weighs less | one mean over all tokens (page 10) |
# | a cut answer counts as wrong | a penalty before the limit |
#
# As one formula, to minimise:
#
# $$L=-\frac{1}{\sum_iT_i}\sum_i\sum_t\min\big(\rho_{i,t}A_i,\ \mathrm{clip}(\rho_{i,t},0.8,1.28)A_i\big),\qquad0\lt\#\text{right}\lt G\text{ in each group}$$
#
# The condition on the right is the first repair, 1.28 the second, the divisor $\sum_iT_i$ the
# third; the fourth is inside the rewards. GRPO's advantage stays, std included; the KL term goes.
# The authors' reason (section 2.3): a policy that learns long reasoning *should* move far from
# where it began. And a checker of answers, unlike a learned reward model, has little to exploit.

# %% jupyter={"source_hidden": true}
# the pipeline
pipeline.pipeline("answers", "rewards", "loss", caption=(
    "One repair changes which answers train, one the rewards, two the "
    "loss. The advantage is GRPO's."))

# %% [markdown]
# ## How many groups are silent, and what does a new one cost?
#
# One prompt, solved with chance $p$; $G$ answers, drawn independently; $R_i$ the reward of answer
# $i$, $\bar R$ the group's mean, $P$ the chance that a group teaches, $N$ the number of groups
# drawn until one teaches.
#
# $$\begin{aligned}
# R_1=\dots=R_G\;&\Rightarrow\;R_i-\bar R=0&&\text{each equals the mean: no gradient}\\
# \Pr(\text{all right})&=p^G&&\text{independent: multiply}\\
# \Pr(\text{all wrong})&=(1-p)^G&&\text{the same}\\
# P&=1-p^G-(1-p)^G&&\text{the two exclude each other: add}\\
# \text{silent}&\to\text{draw again}&&\textbf{a choice: train on mixed groups only}\\
# \mathbb E[N]&=1+(1-P)\,\mathbb E[N]&&\text{one draw; if silent, start anew}\\
# \mathbb E[N]&=1/P&&\text{solve}
# \end{aligned}$$
#
# The choice, as code. `draw()` writes one group and returns its rewards:

# %%
def fill(draw, wanted):
    """Draw until `wanted` groups are mixed."""
    kept, drawn = [], 0
    while len(kept) < wanted:
        R = draw()
        drawn += 1
        if R.max() > R.min():
            kept.append(R)
    return torch.stack(kept), drawn

# %%
for p in (0.01, 0.5, 0.95):
    P = 1 - p**8 - (1 - p)**8
    print(f"p = {p:4.2f}: {P:.3f} of the groups of 8 teach, "
          f"a kept one costs {1 / P:5.2f} groups")

# %% [markdown]
# At $p=0.01$ a kept group costs thirteen groups, or 104 answers.

# %%
pictures.hill()

# %% [markdown]
# Training walks over this hill from left to right: all wrong, mixed, all right. In practice a
# silent prompt is replaced by *another*, and then the price is 1 over the *mean* of $P$. The kept
# prompts are no longer those of the pool: each enters in proportion to its $P$, so one solved half
# the time enters 13 times as often as one at 0.01.
#
# Would a larger group come cheaper? Four kinds of prompt. *Progress* makes all of them easier, as
# training does:

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
# 1. G = 32 or 64. 2. G = 2 or 4. The group that needs the fewest draws needs the most answers. On
# either foot of the hill a mixed group waits for one rare answer, a right one on the left, a wrong
# one on the right. If that answer has chance $q$, then $P\approx Gq$ for small $q$: about $1/q$
# answers whatever $G$ is. A large group adds answers of the usual kind on top. This does not make
# small groups better: learning per answer counts, and there page 08 found G from 4 to 32 level.
# </details>
#
# ## Does a full batch pay?
#
# Train the same transformer twice (Dr. GRPO and AdamW again), now with 8 groups a step. *Plain*
# takes what comes. *Refilled* draws again, 8 groups at a time and at most four times, until 8 are
# mixed; what is over is thrown away. Both get the same number of answers in total, and four
# learning rates each. At first nine of ten groups are mixed by themselves.

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.2", "After 2,560 answers, each at its best rate: which is "
        "ahead on held-out problems?",
        ["refilled, clearly: none of its batch is wasted",
         "refilled, a little: full batches make steadier steps",
         "level: a silent group costs both the same",
         "plain: it makes more updates from the same answers"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
def mean(*numbers):
    return f"{sum(numbers) / len(numbers):.2f}"

ends = [mean(*pictures.at_answers(runs[1], 2560))
        for runs in pictures.ARMS.values()]
steps = [mean(*final(run, step=20))
         for run in ("chain_stale_0", "chain_refill")]
drawn = [curve("chain_refill", k, "generated") for k in range(3)]
share = [curve("chain_refill", k, "groups/mixed") for k in range(3)]
bill = mean(*(n.mean() / 64 for n in drawn))
single = mean(*(n.sum() / (n * m).sum() for n, m in zip(drawn, share)))
fresh = mean(*(curve("chain_stale_0", k, "groups/mixed")[:20].mean()
               for k in range(3)))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dapo.2", "plain: it makes more updates from the same answers",
       f"{ends[0]} against {ends[1]}, ahead in every seed; both are best "
       "at the second rate. **Step for step the two are level** (after 20 "
       f"steps {steps[0]} and {steps[1]}): {fresh} of plain's groups were "
       "mixed by themselves, so a full batch adds little. **And a refilled "
       f"step writes {bill} times the answers.** One silent group costs a "
       "whole round of eight. Had it been replaced singly, the bill were "
       f"{single} times.", pictures.refill_race(), instead={
           "refilled, clearly: none of its batch is wasted":
           "What it waits for is paid for too: the axis counts answers.",
           "refilled, a little: full batches make steadier steps":
           "It takes fewer of them from the same answers.",
           "level: a silent group costs both the same":
           "Plain pays for one group, refilled for a round of eight.",
       })

# %% [markdown]
# And where more groups are silent? The race of page 14 tried a base where every second one is:
# refilled was not ahead there either, per answer. Follow the answers: whatever the share,
# *the same mixed groups* reach both runs. Refilling gathers them into fewer, fuller steps. That is
# the authors' motive: with few groups that teach, a step's gradient is noisy. It also makes steps
# longer, for silent tokens stay in the divisor $\sum_iT_i$ of a plain step.
#
# So ask of every such curve: *is the axis steps or answers?* DAPO's authors count steps, with a
# reason (section 3.2): the whole batch waits for the longest answer anyway, so a few more cost
# little time. Their table adds one repair after the other, a single run a row; dynamic sampling
# comes last and lifts AIME 2024 from 42 to 50. A reproduction in verl has 52 with it and 50
# without.

# %%
pictures.ladder()

# %% [markdown]
# Two things to know before you switch it on:
#
# * **Log the mean reward before the filter.** Kept groups are never all right, so the mean after
#   the filter cannot reach 1 (exercise 1).
# * **Cap the rounds.** A pool of hopeless prompts is never mixed, and the loop never ends. In verl
#   the cap is `max_num_gen_batches`, and 0, the default, means none.
#
# ## The edge of a rare token
#
# Now the other end: a hard prompt. Its groups teach only when a right answer turns up. The token
# that leads to it is rare, its advantage is large, and PPO's clip lets it rise only so far in a
# batch:
#
# $$\begin{aligned}
# L&=\min\big(\rho A,\ \mathrm{clip}(\rho,1-\epsilon,1+\epsilon)A\big)&&\text{PPO, page 06}\\
# \rho>1+\epsilon,\ A>0\;&\Rightarrow\;\partial L/\partial\rho=0&&\text{the clipped value is the smaller, and flat}\\
# \pi_\theta&>(1+\epsilon)\,\pi_\text{old}&&\text{the same in probabilities, }\rho=\pi_\theta/\pi_\text{old}\\
# \epsilon_\text{high}&=0.28,\quad\epsilon_\text{low}=0.2&&\textbf{a choice: raise the upper edge only}
# \end{aligned}$$
#
# From 0.01 a token falls silent at 0.012, or 0.0128 after the
# change. <!-- cited: 0.012, 0.0128 --> The lower edge stays, so that no token is pushed to zero.
#
# But a clip ends the *gradient*; it does not cut a step short. The last step before silence goes
# where it goes. Here an update adds a fixed step to the token's logit while its gradient lives:

# %% jupyter={"source_hidden": true}
# the explorer
task("dapo.t2", rare_token_explorer(),
     ("A token that starts at 0.01 or less, and both edges silence it. Yet "
      "the first batch takes it equally far under 1.20 and 1.28.",
      rare_token.equal_though_silenced),
     ("16 updates per batch, the largest step, and no edge silences "
      "anything.", rare_token.never_silenced))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. A step of 0.15, say, with 4 updates: the second update starts inside both bands and
#    lands <!-- cited: 0.15 --> beyond both. How much 1.28 buys depends on the size of the steps.
# 2. Only a start at 0.85 or above: 0.85 · 1.2 is more than 1. The edge is a matter of rare tokens.
# </details>
#
# Eight or sixteen updates on one batch are many. DAPO itself cuts a batch of 8,192 answers into 16
# parts and makes one update on each.

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.3", "So every answer is used exactly once. Can the upper "
        "edge silence a token?",
        ["no: without reuse every ratio is 1",
         "only a token that occurs in two parts",
         "yes, from the second part on", "yes, in every part alike"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
late = {}
for run in ("chain_stale_0", "chain_stale_1_clip", "chain_stale_8_clip"):
    top = [curve(run, k, "ratio/max")[10:] for k in range(3)]
    late[run] = ", ".join(f"{torch.tensor(x).median():.2f}" for x in top)
none, one, eight = late.values()
reveal("dapo.3", "yes, from the second part on",
       "**What moves a ratio is optimizer steps since sampling, not "
       "reuse.** The first part meets the policy that wrote it; the last "
       "meets one that is 15 updates on. Recorded on the transformer, "
       "every answer used once, the largest ratio of a step (median, "
       f"three seeds): trained at once {none}; one update late {one}; "
       f"eight updates late {eight}, beyond the edge. TRL's default is "
       "one update per batch: there the edge does nothing.", instead={
           "no: without reuse every ratio is 1":
           "The first part's are. But the policy moves between the parts.",
           "only a token that occurs in two parts":
           "The weights are shared: an update on one token moves others.",
           "yes, in every part alike":
           "On the first part the policy is still the one that sampled.",
       })

# %% [markdown]
# ## Can a higher edge save a rare answer?
#
# Let the answers be sampled. The toy: one prompt, four possible answers, a logit for each. The
# usual one (chance 0.97) earns half marks, a rare one (0.01) full marks, two others nothing. A
# batch is a group of 16, used for 8 updates. 200 runs with SGD and 200 with Adam. In some the rare
# answer gets *lost*: it falls below 1 in 1,000.

# %%
edges = {"1.20": 1.2, "1.28": 1.28, "no clip": torch.inf}
SGD, ADAM = torch.optim.SGD, torch.optim.Adam
paths, seen = {}, {}
for name, optimizer, rate in (("SGD", SGD, 0.2), ("Adam", ADAM, 0.05)):
    for edge, top in edges.items():
        paths[name, edge], seen[name, edge] = train(optimizer, rate, top)

def lost(path):
    """How many runs have lost the rare answer after 50 batches?"""
    return (path[:, 50, 0] < 0.001).sum().item()

for name in ("SGD", "Adam"):
    print(f"{name}, edge 1.20: {lost(paths[name, '1.20'])} of 200 lost it")

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.4", "Adam, the same dice, the edge at 1.28: how many lose "
        "the rare answer?",
        ["about 20: it rises in time", "about 30: a few are saved",
         "about 40: the edge plays no part",
         "about 50: lucky wrong answers are pushed further too"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
more = [[lost(train(ADAM, 0.05, top, seed)[0]) for top in edges.values()]
        for seed in (1, 2, 3)]
now = [lost(paths["Adam", edge]) for edge in edges]
gone = paths["Adam", "1.28"][:, 50, 0] < 0.001
reveal("dapo.4", "about 40: the edge plays no part",
       f"{now[1]}, and {now[2]} without any clip. With other seeds, "
       "the same three edges: " + "; ".join(
           ", ".join(map(str, row)) for row in more) + ". Before these "
       f"runs lost it, the rare answer had been drawn "
       f"{seen['Adam', '1.28'][gone].sum()} times. No edge helps what is "
       "not in the batch. Where it *is* drawn, a wider edge finds it "
       "sooner (picture). **Clip-higher speeds up what was sampled; it "
       "does not find what was not.**", pictures.found(paths), instead={
           "about 20: it rises in time":
           "It cannot rise where it was never drawn.",
           "about 30: a few are saved":
           "The count moves by a few either way, from seed to seed.",
           "about 50: lucky wrong answers are pushed further too":
           "A fair thought; the seeds show no such sign.",
       })

# %% [markdown]
# One riddle is left. Those runs never drew the rare answer, so no token of it was ever pushed. Yet
# its probability fell from 1 in 100 below 1 in 1,000. As a control, *freeze* the logits of answers
# not drawn so far: they get no push at all.

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.5", "Adam, with that freeze. How many of 200 lose the rare "
        "answer now?",
        ["about 40 as before: what one answer gains, others must lose",
         "about 20: the freeze helps half of the runs",
         "fewer than 10"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
frozen = [lost(train(ADAM, 0.05, 1.2, seed, freeze=True)[0])
          for seed in range(4)]
reveal("dapo.5", "fewer than 10",
       f"{', '.join(map(str, frozen))} (four seeds). So it was the "
       "optimizer. Once the usual answer has risen, softmax passes a tiny "
       "downward push to every other logit, drawn or not. Adam divides "
       "each logit's push by that logit's own usual size: **a tiny push "
       "becomes a full step.** A language model shares its weights among "
       "all tokens, so do not carry the count over. Carry the question: "
       "*who moves a token that is not in the batch?*", instead={
           "about 40 as before: what one answer gains, others must lose":
           "They lose, but slowly: SGD lost none of 200.",
           "about 20: the freeze helps half of the runs":
           "It helps nearly all of them.",
       })

# %% [markdown]
# DAPO's motive for the wider edge was *entropy*, how undecided the policy is: with 1.20 it
# collapsed, with 1.28 it stayed up (their figure 2). The toy says how to read such a curve:

# %%
pictures.entropies({edge: paths["Adam", edge] for edge in edges})

# %% [markdown]
# It ends near zero in both panels, once because the prompt is solved, once because the best answer
# is gone. Where it is solved, 1.28 even has the lower entropy later: it got there sooner. Entropy
# says *decided*, not *for what*: log the reward beside it.

# %% [markdown]
# ## Answers that are too long
#
# Generation stops at a limit, and an answer cut there counts as wrong, however good its reasoning.
# So DAPO warns earlier. With $T$ tokens, limit 20,480 and a last stretch of 4,096, it adds to the
# reward
#
# $$-\mathrm{clip}\Big(\frac{T-16384}{4096},\,0,\,1\Big)$$
#
# DAPO's rewards are +1 and −1. With 1 and 0 a right answer at the limit would earn 1 − 1 = 0, as
# much as a short wrong one.
#
# A group, all four wrong, lengths 16,000, 16,424, 15,000 and 9,000. One answer is 40 tokens over,
# and pays 0.01.

# %% jupyter={"source_hidden": true}
# your guess
predict("dapo.6", "What is the advantage of the answer that is 40 tokens "
        "over?", ["0: it is as wrong as the others",
                  "about −0.01: the others pay nothing",
                  "about −0.75: one against three",
                  "−1.5 or more: as if it were the only wrong one"])

# %%
T = torch.tensor([16000.0, 16424.0, 15000.0, 9000.0])
penalty = -((T - 16384) / 4096).clamp(0, 1)
warned = (penalty - penalty.mean()) / (penalty.std(correction=0) + 1e-6)
bessel = (penalty - penalty.mean()) / (penalty.std() + 1e-4)      # TRL

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("dapo.6", "−1.5 or more: as if it were the only wrong one",
       f"−{-warned[1]:.2f}, or −{-bessel[1]:.2f} with TRL's sample std. "
       "The std of the group is as tiny as the "
       "penalty, and dividing makes any difference full size (09). A "
       "silent group speaks again, and teaches length and nothing else. "
       "What has to be done about it is exercise 3.",
       pictures.overlong_trap(T, penalty, warned), instead={
           "0: it is as wrong as the others":
           "So it was before the penalty. Now its reward is 0.01 lower.",
           "about −0.01: the others pay nothing":
           "That is its reward minus the others'. What comes next in GRPO?",
           "about −0.75: one against three":
           "The distance to the mean is three quarters of 0.01. Then it is "
           "divided.",
       })

# %% [markdown]
# ## The whole loss
#
# The formula of the beginning, as code:

# %%
def dapo_loss(logp, old_logp, mask, R, low=0.2, high=0.28):
    """Mixed groups: rewards (N, G); the rest (N, G, T). To minimise."""
    A = R - R.mean(1, keepdim=True)
    A = (A / (R.std(1, keepdim=True, correction=0) + 1e-6))[..., None]
    rho = (logp - old_logp.detach()).exp()
    gain = torch.minimum(rho * A, rho.clamp(1 - low, 1 + high) * A)
    return -torch.where(mask, gain, 0.0).sum() / mask.sum()   # token mean

two = running_batch()                                 # two prompts
mine = dapo_loss(*(x.view(2, 4, *x.shape[1:]) for x in (
    two.logprobs, two.old_logprobs, two.mask, two.rewards)))
assert torch.allclose(mine, ZOO["dapo"](two).loss, rtol=0, atol=1e-12)

# %% [markdown]
# `R` holds the penalty, the filter has run before. Log four things: the share of mixed groups, the
# mean reward before the filter, answers generated per step, and the share of tokens cut at the
# *upper* edge (TRL: `clip_ratio/high_mean`). If the last is 0, clip-higher did nothing.
#
# <details><summary>One level deeper: mixtures of prompts, the printed formula, the libraries</summary>
#
# * The recorded run lies mostly below the orange line, and below the hill, because its prompts are
#   not equally hard: the hill bends down everywhere, so a mixture of prompts has fewer mixed groups
#   than one prompt at their mean rate (Jensen).
# * The paper prints the token mean inside each prompt, then a mean over prompts; TRL and verl
#   divide by all tokens. They differ when prompts differ in length:
#   [statements](statements/11_dapo.ipynb).
# * TRL's `loss_type="dapo"`, its default, is the token mean only. The edge is `epsilon_high=0.28`,
#   a distance: 1.28 there would mean a band up to 2.28. <!-- cited: 2.28 --> Dynamic sampling is
#   not in it.
# * DAPO itself: 512 prompts, 16 answers each, learning rate 1e-6 (section 4.1), so its late parts
#   drift less than our runs at 3e-4.
# * Instead of refilling: drop prompts whose pass rate, measured beforehand, is 0 or 1; choose them
#   by their last pass rate (a curriculum); or generate without pause and train on whatever mixed
#   groups are ready (asynchronous).
# * *Overlong filtering* gives a cut answer mask 0 instead of a penalty.
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | DAPO | |
# |---|---|
# | sentence | GRPO on mixed groups only, with a higher upper edge, one mean over all tokens, a warning before the length limit, and no KL |
# | formula | $P=1-p^G-(1-p)^G$ · price of a kept group: $1/P$ groups · band 0.8 to 1.28 |
# | silent | groups all right or all wrong are replaced; good tokens above 1.28, bad ones below 0.8 |
# | picture | the better the policy, the fewer groups teach |
# | numbers | G = 8, p = 0.95: 34 % of the groups teach; in our run, 91 to 94 % right, 38 or 39 % · p = 0.01: 104 answers per kept group |
# | matters when | groups are often silent · several updates lie between sampling and training |
# | derived | which groups are silent, and the price |
# | choices | draw again; 0.28; the token mean; the ramp |

# %%
score("dapo.1", "dapo.2", "dapo.3", "dapo.X", "dapo.5", "dapo.6")

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
# teaches; a kept group costs one over that, and on hard prompts about 1/p answers whatever G is. It
# favours prompts of middle difficulty and needs a cap on the rounds.
# </details>
# <details><summary><b>Their curve reaches the score in half the steps. Convinced?</b></summary>
#
# Not before I see answers on the axis. A refilled step writes more. In our recorded run it was
# level step for step and behind per answer, in every seed, at the best of four rates. Part of that
# bill was coarse rounds; finer ones cost less. If generation waits for the longest answer anyway,
# wall-clock time may still favour it.
# </details>
# <details><summary><b>What does clip-higher do, exactly?</b></summary>
#
# A good token keeps its gradient up to a ratio of 1.28. It matters only if updates between sampling
# and training carry the ratio past 1.2; with one update per batch it does nothing. Tokens above
# 0.83 never reach the edge. <!-- cited: 0.83 --> The clip ends the gradient, not the motion: a long
# step goes past both edges. It cannot help a token that was not drawn.
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
# <details><summary><b>Which of the four mattered most?</b></summary>
#
# The paper's table does not say. It adds one repair after the other, a single run a row, so the
# gains depend on the order: the last one, dynamic sampling, from 42 to 50. A reproduction in verl
# has 52 with it and 50 without.
# </details>
#
# The sentences that one hears about DAPO, true or not: [statements 11](statements/11_dapo.ipynb).
# The exercises, solved: [solutions 11](solutions/11_dapo.ipynb).
#
# **Next: [12](12_soft_trust_regions.ipynb).** Beyond 1.28 a good token is still dead. What should
# happen at the edge instead of a cliff?
