# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06 · PPO: what does the clip do to a gradient?
#
# **After this page** you can derive PPO's objective from the policy gradient, say which tokens
# still move, and say why there is a `min`.
#
# 38 minutes, then 15 in a second sitting · exercises 34 more · after 02 (REINFORCE), 03
# (baselines), 04 (importance sampling), 05 (KL) · Schulman et al. 2017,
# [arXiv 1707.06347](https://arxiv.org/abs/1707.06347)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. The old policy wrote the samples. What makes their mean right for the new one?</summary>A factor ρ = new probability / old probability in front of each term (04).</details>
# <details><summary>2. What is ∇ρ, in terms of ∇log π?</summary>∇ρ = ρ ∇log π, because ρ = exp(log π − log π_old) and the old one is a constant.</details>
# <details><summary>3. What happened in 04 to the ratio of a whole answer?</summary>It is a product over tokens. Its variance explodes, and a few answers carry all the weight.</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import math
import torch
from rlnb import ZOO, check
from rlnb.classroom import explorers
from rlnb.classroom.explorers import one_token, reuse, token_gates
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import pipeline, ppo as pictures, token_grid
from rlnb.classroom.pictures.recorded_runs import curve
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## One batch, sixty steps
#
# Writing answers is the expensive part of RL for language models. So we want many gradient steps
# out of each batch. What happens if we simply take them?

# %% jupyter={"source_hidden": true}
# the pipeline
pipeline.pipeline("ratio", "loss", again=True, caption=(
    "Left of the ratio everything is done once per batch. "
    "The arrow back is what this page is about."))

# %% [markdown]
# We try it on a toy. There is one prompt with fifty possible answers, and the policy is a table of
# fifty logits, random at the start. It writes 64 answers. A grader gives each a 0 or a 1: answer
# $i$ is right with chance $q_i$, from 0.30 to 0.70. The advantage $A$ is the reward minus the mean
# of the 64 rewards.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: draw(z, dice) writes and grades 64 answers for each seed
q = torch.linspace(0.3, 0.7, 50)             # chance that answer i is right
start = torch.randn(50, generator=torch.Generator().manual_seed(99))

def draw(z, dice):
    """64 answers per seed and their advantages, (seeds, 64) each."""
    i = torch.stack([torch.multinomial(p, 64, replacement=True, generator=g)
                     for p, g in zip(z.softmax(1), dice)])
    R = torch.stack([torch.bernoulli(q[row], generator=g)
                     for row, g in zip(i, dice)])
    return i, R - R.mean(1, keepdim=True)

def seeds(n):
    return [torch.Generator().manual_seed(seed) for seed in range(n)]

# %% [markdown]
# `climb` takes many gradient steps on these 64 answers. Each step raises the mean of a `rule`. The
# first rule is $\rho A$, where ρ is the new probability of the answer over the old one (04).

# %%
def climb(z, i, A, rule, steps, lr=10.0):
    """Steps on one batch; the logits after each, (steps + 1, seeds, 50)."""
    old, path = z.log_softmax(1), [z]
    for _ in range(steps):
        z = z.detach().requires_grad_()
        rho = (z.log_softmax(1) - old).exp().gather(1, i)      # (seeds, 64)
        slope, = torch.autograd.grad(rule(rho, A).mean(1).sum(), z)
        z = (z + lr * slope).detach()
        path.append(z)
    return torch.stack(path)

def no_clip(rho, A):
    return rho * A

# %% [markdown]
# After every step, the mean of $\rho A$ over the 64 answers says how much reward the batch believes
# we have gained. We call this number the **promise**.

# %% jupyter={"source_hidden": true}
# 400 seeds, of which the picture shows six
i64, A64 = draw(start.repeat(400, 1), seeds(400))
pi = climb(start.repeat(400, 1), i64, A64, no_clip, 60).softmax(2)
ratio64 = (pi / pi[0]).gather(2, i64.expand(61, 400, 64))
promised = (ratio64 * A64).mean(2)                            # (61, 400)
print(f"400 seeds: mean promise {promised[-1].mean():+.2f}, "
      f"mean ratio {ratio64[-1].mean():.2f}")
pictures.promises(promised[:, :6])

# %% [markdown]
# Look at the vertical axis. The policy starts with a chance of 0.47 to be right, and the best of
# the fifty answers is right with 0.70. So no policy can gain more than 0.23. Yet the highest curve
# promises 2.07.

# %% jupyter={"source_hidden": true}
# your guess
predict("ppo.1", "What has the seed with the highest promise gained in "
        "truth?",
        ["about +0.2: nearly all there is to gain",
         "about +0.1: half of it is luck",
         "it has lost"])

# %% jupyter={"source_hidden": true}
# the truth beside the promise
real = pi @ q - pi[0] @ q                                     # (61, 400)
most = 0.7 - (pi[0] @ q)[0].item()
high, order = promised[-1, :6].argmax(), promised[-1].argsort()
lost = [(real[-1, part] < 0).sum().item()
        for part in (order[:100], order[-100:])]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "ppo.1", "it has lost",
        f"Its true gain is {real[-1, high]:+.2f}. One seed is an anecdote, "
        f"so the right panel has all 400. Their mean promise is "
        f"{promised[-1].mean():+.2f}, their mean gain "
        f"{real[-1].mean():+.2f}, and the one says hardly anything about "
        f"the other. Of the hundred highest promises {lost[1]} have lost, "
        f"of the hundred lowest {lost[0]}.",
    pictures.gains(promised, real, most),
       instead={
           "about +0.2: nearly all there is to gain":
           "No seed of the six comes near that.",
           "about +0.1: half of it is luck":
           "That is the mean gain of 400 seeds. It is near +0.1 whatever "
           "the promise.",
       })

# %% [markdown]
# How can a batch promise more than 1? The mean of its 64 ratios should be 1, and after sixty steps
# it is 2.89 (mean of the 400 seeds). The steps have raised the ratios of exactly those answers that
# are in the batch and were lucky. The batch does not lie. It answers another question: which policy
# looks best *on these 64 answers*? **Nothing in the objective says *enough*.**
#
# <details><summary>One level deeper: is self-normalising the cure?</summary>
#
# Divide by the mean ratio (04), and no promise can pass 1. It stays wrong. Importance weights are
# right for a policy that was fixed before the batch was drawn, and ours was chosen by looking at
# the batch. No reweighting repairs a choice that was made on the same data. More data does, and so
# do fewer steps.
# </details>
#
# ## Where the objective comes from
#
# Before we brake: why does PPO climb $\rho A$, with one ratio for each token?
#
# We want to raise $J(\theta)$, the expected reward of an answer $y=(y_1,\dots,y_T)$. Here
# $\pi(y_t)$ is short for the probability of token $t$, given all that stands before it, and
# $\rho_t$ is its ratio, new over old. $A$ is the reward minus a baseline.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_{y\sim\pi_\theta}\Big[A\,\textstyle\sum_t\nabla\log\pi_\theta(y_t)\Big]&&\text{log trick (02), baseline (03)}\\
# &=\mathbb E_{y\sim\pi_\text{old}}\Big[\rho_1\rho_2\cdots\rho_T\;A\,\textstyle\sum_t\nabla\log\pi_\theta(y_t)\Big]&&\text{importance ratio of the answer (04)}\\
# &\approx\mathbb E_{\text{old}}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi_\theta(y_t)\Big]&&\textbf{a choice: each token keeps its own ratio}\\
# &=\mathbb E_{\text{old}}\Big[\textstyle\sum_tA\,\nabla\rho_t\Big]&&\nabla\rho=\rho\,\nabla\log\pi\text{, log trick backwards}\\
# &=\nabla\;\mathbb E_{\text{old}}\Big[\textstyle\sum_t\rho_t\,A\Big]&&\pi_\text{old}\text{ does not depend on }\theta
# \end{aligned}$$
#
# PPO climbs the last bracket, the **surrogate** $\mathbb E_\text{old}[\sum_t\rho_tA]$. The bold
# line is not an identity, and an interviewer will ask about it. For each token $t$ it drops two
# kinds of ratio:
#
# * The ratios of the tokens *before* $t$. They say how often the new policy would come to this
#   place at all.
# * The ratios of the tokens *after* $t$. They say how the new policy would go on from here. But $A$
#   was earned by the way the old policy went on.
#
# Its own ratio stays, because it puts the token itself right (04). We gain that the product of
# ratios, which exploded in 04, is gone. We pay with a bias: the gradient is exact only at the old
# policy, where every ratio is 1 and it is REINFORCE. A larger batch does not repair that.
#
# **So there are two reasons to stop early: the batch is noisy, and the surrogate is right only near
# the old policy.** Our toy shows the first alone. Its answers are single tokens, and with one token
# nothing is dropped.
#
# The gradient of one token is now $\rho_tA\,\nabla\log\pi_\theta(y_t)$. The number in front of
# $\nabla\log\pi_\theta$ is the token's **push**, here $\rho_tA$. The rest of the page is about that
# number.
#
# ## The obvious brake
#
# How do we say *enough*? The obvious way is a band: from $1-\epsilon$ to $1+\epsilon$, usually with
# $\epsilon=0.2$. Replace the ratio by $\mathrm{clip}(\rho,1-\epsilon,1+\epsilon)$: inside the band
# this is the ratio itself, outside it is the nearer edge. Here are four tokens outside the band:
#
# | | it rose, ρ = 1.5 | it fell, ρ = 0.5 |
# |---|---|---|
# | good token, A = +1 | right way | wrong way |
# | bad token, A = −1 | wrong way | right way |

# %% jupyter={"source_hidden": true}
# your guess
predict("ppo.2", "Which of the four still get a push from clip(ρ)·A?",
        ["none of them", "the two that went the right way",
         "the two that went the wrong way", "all four"])

# %%
def clip_alone(rho, A, epsilon=0.2):
    return rho.clamp(1 - epsilon, 1 + epsilon) * A

# %% tags=["setup"] jupyter={"source_hidden": true}
# corners(rule): its push on the four tokens
def corners(rule):
    """Good and rose, good and fell, bad and rose, bad and fell."""
    log_rho = torch.tensor([1.5, 0.5, 1.5, 0.5]).log().requires_grad_()
    value = rule(log_rho.exp(), torch.tensor([1.0, 1.0, -1.0, -1.0]))
    slope, = torch.autograd.grad(value.sum(), log_rho)
    return [round(x, 4) + 0.0 for x in slope.tolist()]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("ppo.2", "none of them",
       f"The four pushes are {corners(clip_alone)}. Outside the band the "
       "clipped ratio is a constant, and a constant has no slope. For the "
       "two that went the right way this is what we want. The other two "
       "went the wrong way because other tokens pushed them: all tokens "
       "share one softmax and one network. With the clip alone, nothing "
       "brings these two back.",
       instead={
           "the two that went the right way":
           "A constant has no slope, and outside the band the clipped "
           "ratio is constant.",
           "the two that went the wrong way":
           "Those are the ones we would like to push. But the clip alone "
           "does not look at the direction.",
           "all four":
           "The clip replaces the ratio of all four by a constant.",
       })

# %% [markdown]
# What brings these two back? PPO takes the **smaller** of two numbers, without the clip and with
# it:
#
# $$L_t=\min\big(\rho_tA,\ \mathrm{clip}(\rho_t,1-\epsilon,1+\epsilon)\,A\big)$$
#
# Find out what that does before you read on. The explorer shows one token under $L_t$.

# %% jupyter={"source_hidden": true}
# the explorer
task("ppo.t1", explorers.one_token_explorer(),
     ("Predict first: at which ratio is a *good* token pushed hardest? "
      "Leave it there.", one_token.pushed_hardest),
     ("Two went the *wrong* way: a bad token is now twice as likely, a "
      "good one half as likely. Predict which gets the weaker push, and "
      "leave that one on the screen.", one_token.comes_back_slowly))

# %% [markdown]
# A good token is pushed hardest just inside the edge, at 1.2, and right of it not at all: the push
# does not fade, it is switched off. A bad token is silent left of 0.8. To the right there is no
# wall: at ratio 2 it gets −2. At ratio 1/2 a good token gets only +1/2, because the push is
# $\rho A$. **A good token that fell far comes back slowly.**
#
# Here are the three rules side by side, with their pushes on the four tokens.

# %%
def clip_and_min(rho, A, epsilon=0.2):
    return torch.minimum(rho * A, clip_alone(rho, A, epsilon))

# %% jupyter={"source_hidden": true}
# the pushes of the three rules, and their shapes
rules = {"no clip": no_clip, "clip alone": clip_alone,
         "clip and min": clip_and_min}
print(" " * 14 + "good, rose   good, fell   bad, rose   bad, fell")
for name, rule in rules.items():
    cells = (f"{push:+.1f}" if push else "0" for push in corners(rule))
    print(f"{name:12s}" + "".join(f"{text:>12s}" for text in cells))
pictures.shapes()

# %% [markdown]
# **The clip silences every token that has moved far. The `min` gives the gradient back to those
# that moved the wrong way, and only to them.** That is the sentence for the interview.
#
# ## Sixteen tokens
#
# What does this rule do to a whole batch? Here are the four answers that every page carries, with
# rewards 1, 1, 0, 0. With the group's mean as baseline, $A=\pm\frac12$. The batch has already been
# used for some steps.

# %% jupyter={"source_hidden": true}
# the running group, its ratios and advantages
batch = running_group()
ratio = (batch.logprobs - batch.old_logprobs).exp()          # (4, 6)
A4 = batch.rewards - batch.rewards.mean()
A16 = A4[:, None].expand_as(ratio)
outside = batch.mask & ((ratio - 1).abs() > 0.2 + 1e-9)
token_grid.probability_grid(batch, outside=outside, caption=(
    "Bold: the eight tokens whose ratio has left the band, 0.8 to 1.2."))

# %% jupyter={"source_hidden": true}
# your guess
predict("ppo.3", "Eight of sixteen tokens are outside the band. "
        "How many does PPO, min included, silence?", ["8", "6", "4", "2"])

# %% jupyter={"source_hidden": true}
# the push of each rule on each token
def push(rule):
    """Slope of the rule in log pi, token by token; 0 on padding."""
    J = rule(ratio, A16)[batch.mask].sum()
    return torch.autograd.grad(J, batch.logprobs, retain_graph=True)[0]

pushes = {name: push(rule) for name, rule in rules.items()}
strongest = pushes["clip and min"].min().item()
alone = (pushes["clip alone"][batch.mask] == 0).sum().item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("ppo.3", "4",
       "Three good tokens that rose and one bad token that fell are "
       "silent. The other four outside went the wrong way and keep their "
       "push. The strongest push that is left, "
       f"{strongest:.2f}, is on the bad token at 3.50. The clip alone "
       f"would silence {alone}.",
       pictures.map_of_silence(batch, ratio, A16),
       instead={
           "8":
           "Outside is not the same as cut: half of them went the wrong "
           "way.",
           "6":
           "Count only good ones above and bad ones below.",
           "2":
           "Both signs have some.",
       })

# %% [markdown]
# **Outside the band is not the same as cut.** A clip fraction that counts $|\rho-1|>\epsilon$ would
# report twice the truth here. TRL and verl count the tokens that are cut.
#
# ## Does it help?
#
# The rule treats tokens well. Does it make a better policy? Back to the fifty answers, and to the
# sixty steps on one batch.

# %% jupyter={"source_hidden": true}
# the same batches under PPO's rule
braked = climb(start.repeat(400, 1), i64, A64, clip_and_min, 60).softmax(2)
print(f"true gain, mean of 400 seeds: no clip {real[-1].mean():+.2f}, "
      f"clip and min {(braked[-1] @ q - pi[0] @ q).mean():+.2f}")

# %% [markdown]
# Without the clip the one batch gained ten times as much, in truth. Is the brake a mistake? We
# train on, batch after batch. Each new one comes from the policy as it is by then. On each we take
# 1, 2, 4, 8 or 30 steps at rate 10, 40 seeds for each of these numbers.

# %% jupyter={"source_hidden": true}
# your guess
predict("ppo.4", "Each rule with its own best number of steps: who is "
        "ahead after 30 batches, and who after 300?",
        ["PPO, both times", "PPO, then no clip",
         "no clip, both times", "no clip, then PPO"])

# %% jupyter={"source_hidden": true}
# write 64 answers, climb on them, write the next 64: about ten seconds
counts = (1, 2, 4, 8, 30)

def train(rule, steps, batches=300, draw=draw, lr=10.0):
    """The policy at the start and after each batch, 40 seeds each."""
    z, dice = start.repeat(40, 1), seeds(40)
    path = [z.softmax(1)]
    for _ in range(batches):
        z = climb(z, *draw(z, dice), rule, steps, lr)[-1]
        path.append(z.softmax(1))
    return torch.stack(path)                        # (batches + 1, 40, 50)

runs = {"no clip": [train(no_clip, k) for k in counts],
        "clip and min": [train(clip_and_min, k) for k in counts]}
after = {b: {name: torch.stack([path[b] @ q for path in paths])
             for name, paths in runs.items()} for b in (30, 300)}
mean = {b: {name: x.mean(1) for name, x in after[b].items()} for b in after}

# %% tags=["answer", "nbval-ignore-output"] jupyter={"source_hidden": true}
# the answer
reveal(
    "ppo.4", "no clip, then PPO",
    f"After 30 batches no clip leads a little, with four steps: "
    f"{mean[30]['no clip'].max():.2f} against "
    f"{mean[30]['clip and min'].max():.2f}. After 300 it has "
    f"{mean[300]['no clip'].max():.2f}, and PPO, with eight steps, "
    f"{mean[300]['clip and min'].max():.2f}. With thirty steps no clip is "
    f"ruined, {mean[300]['no clip'][-1]:.2f}, and PPO stands at "
    f"{mean[300]['clip and min'][-1]:.2f}.",
    pictures.reuse_sweep(counts, {f"after {b} batches": after[b]
                                  for b in after}, (
        "40 seeds, learning rate 10; bars: two standard errors. The best "
        "answer would give 0.70.")),
       instead={
           "PPO, both times":
           "In the end, yes. But braking costs speed: after 30 batches "
           "four steps without a clip have come further.",
           "PPO, then no clip":
           "The other way round: no clip is the fast starter.",
           "no clip, both times":
           "It starts faster. Then it has only one answer left to write.",
       })

# %% [markdown]
# Why does the fast one stop? Look at the first batch after four steps, and at the answers that were
# graded well in it.

# %% jupyter={"source_hidden": true}
# who rises in the first batch, and how many answers are left later
net, drawn = (torch.zeros(400, 50).scatter_add_(1, i64, x)
              for x in (A64, torch.ones(400, 64)))
print("answers graded well: middle ratio after four steps")
for name, rule in (("no clip", no_clip), ("clip and min", clip_and_min)):
    four = climb(start.repeat(400, 1), i64, A64, rule, 4).softmax(2)
    rose = (four[-1] / four[0])
    once, often = (rose[(net > 0.4) & which].quantile(0.5)
                   for which in (drawn == 1, drawn >= 7))
    p = runs[name][2][30]
    left = (-(p * p.clamp(min=1e-300).log()).sum(1)).exp().mean()
    print(f"{name:12s} drawn once {once:.2f}, drawn 7 times or more "
          f"{often:.2f}; after 30 batches {left:.0f} answers in play")

# %% [markdown]
# Without a clip an answer that was drawn often doubles, and one drawn once rises by a quarter. The
# frequent ones crowd out the rare, and after 30 batches two answers are in play. (We count the
# equally likely answers that have the policy's entropy.) What is no longer written cannot be
# learned. The clip stops both kinds at about the same place, so a rare good answer keeps pace. **In
# this toy the clip costs speed and buys time: rare answers stay in play until the grader has told
# them apart.**
#
# All this was at rate 10. Here is every rate, live.

# %% jupyter={"source_hidden": true}
# the explorer
task("ppo.t3", explorers.reuse_explorer(),
     ("With thirty steps, let *no clip* end at 0.65 or more. Predict the "
      "rate first: in the picture above, four steps at rate 10 did it.",
      reuse.saved_without),
     ("Still thirty steps, now PPO. At how many times that rate does it "
      "still end at 0.65 or more? Predict, then leave the largest rate.",
      reuse.largest_that_holds))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# <!-- cited: 0.25, 0.61, 0.5 -->
# 1. Rate 1. Without a clip it is steps times rate that counts, roughly: four at 10, thirty at 1.
#    Gentler is no better. At 0.25 the frequent answers win slowly instead of fast, and the end is
#    0.61.
# 2. Rate 40, so forty times. PPO bears every rate from 0.5 to 40, no clip one rate of the slider.
#    At 80 PPO too is down to one answer after 30 batches.
# </details>
#
# **With many steps on a batch, the clip turned one good learning rate into a wide range of them.**
# It is a brake and no bound: at rate 80 something lets go. The second sitting shows what.
#
# And a real network? Here are eight steps per batch, and a single one.

# %% jupyter={"source_hidden": true}
# the recorded runs
pictures.answers_used()

# %% [markdown]
# **Reuse saves answers.** After 512 of them, eight steps with the clip stand at 0.83 to 0.86, and
# no single-step arm is above 0.79. Without the clip the eight steps end lower, at the one rate that
# was tried; the toy says that a smaller one may do as well. Three seeds are a hint, no more.

# %% [markdown]
# ## In code
#
# What do you write on the whiteboard? First the loss. It is minimised, so both terms change sign
# and the smaller becomes the larger: `maximum` of the negatives.

# %%
def ppo_loss(logp, old_logp, A, mask, epsilon=0.2):
    """All (B, T); mask is True on tokens the policy wrote."""
    rho = (logp - old_logp.detach()).exp()
    clipped = rho.clamp(1 - epsilon, 1 + epsilon)
    per_token = torch.maximum(-rho * A, -clipped * A)
    return per_token[mask].mean()

# %% jupyter={"source_hidden": true}
# the sixteen tokens, and the same number from rlnb
mine = ppo_loss(batch.logprobs, batch.old_logprobs, A16, batch.mask)
theirs = ZOO["ppo"](batch.replace(advantages=A4))
print(f"loss {mine.item():.4f}, rlnb's {theirs.loss.item():.4f}; cut: "
      f"{theirs.metrics['clip_ratio/region_mean'] * 16:.0f} of 16 tokens")
assert torch.allclose(mine, theirs.loss, rtol=0, atol=1e-12)

# %% [markdown]
# In a run, log the share of cut tokens, the KL from old to new, and the extreme ratios. What do
# they look like when all is well? Here are the runs of the picture above, all but their KL, which
# was not recorded.

# %% jupyter={"source_hidden": true}
# cut tokens and ratios of the recorded runs: three seeds, 20 batches
def recorded(run, name):
    return torch.tensor([curve(run, seed, name).tolist()
                         for seed in range(3)])               # (3, 20)

up, down = (100 * recorded("chain_reuse_8_clip", f"clip_ratio/{side}_mean")
            for side in ("high", "low"))
share = up + down
print(f"with the clip, first batch: {up[:, 0].mean():.1f} % of the tokens "
      f"cut above, {down[:, 0].mean():.1f} % below;\n"
      f"batches 11 to 20: {share[:, 10:].mean():.1f} % in all")
for name, run in (("clip and min", "chain_reuse_8_clip"),
                  ("no clip", "chain_reuse_8_no_clip")):
    least, most_ = (recorded(run, f"ratio/{end}").flatten()
                    for end in ("min", "max"))
    print(f"{name:12s} middle of 60 batches: smallest ratio "
          f"{least.quantile(0.5):.3f}, largest {most_.quantile(0.5):.1f}; "
          f"largest of all {most_.max():.0f}")

# %% [markdown]
# Few tokens are cut, three in a hundred at first. Yet in a typical batch some token has fallen to a
# twentieth, with the clip in force. The share speaks of all tokens, an extreme of one: worry when
# the *share* climbs.
#
# TRL's GRPO uses a batch for one optimizer step by default (`num_iterations=1`); then the clip
# never acts. The whole training loop is in the second sitting.
#
# <details><summary>One level deeper: means, minibatches, and "pessimistic"</summary>
#
# * The derivation sums over an answer's tokens. The code takes the mean over all tokens of the
#   batch. That is one more choice (09 and 10).
# * "With one epoch all ratios are 1" holds only for the first optimizer step. Cut the batch into
#   four minibatches, and from the second on the ratios have moved.
# * If the sampling engine's probabilities differ from the trainer's, ratios are not 1 at the first
#   step either (19).
# <!-- cited: 0.0001, 0.0002, 0.99, 0.80 -->
# * A ratio is relative. From 0.0001 to 0.0002 leaves the band; from 0.99 to 0.80 does not. Rare
#   tokens are cut first (12).
# * $L_t\le\rho_tA$: PPO is pessimistic about the *surrogate*. It is no lower bound on the return;
#   the statements page has the counterexample.
# * Two more things are called PPO in RLHF and are not the clip: a critic for $A$ (07), and a KL to
#   the *reference* model (05), which is not the KL from old to new.
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | PPO | |
# |---|---|
# | sentence | use a batch many times; the clip stops tokens that have moved far enough the right way, the min lets the others come back |
# | formula | $\min(\rho A,\ \mathrm{clip}(\rho,1-\epsilon,1+\epsilon)A)$ |
# | the line that is a choice | one ratio per token, where the answer's ratio is a product |
# | silent | $A>0$ and $\rho>1+\epsilon$; $A<0$ and $\rho<1-\epsilon$ |
# | picture | ratio against advantage: two silent quadrants out of four |
# | numbers | without a brake one batch promised +2.07 and gained −0.07 · 8 tokens outside, 4 silent |
# | does it help? | in our toy: a little behind after 30 batches, ahead after 300, because rare answers stay in play; and thirty steps are safe at many rates |
# | what it is not | a trust region: it never measures how far a step went |

# %% [markdown]
# ## Second sitting: what does the clip not do?
#
# The card says that PPO is no trust region. Where else does it let go?
#
# ### How far can one step go?
#
# At rate 80 the first step on a batch already goes too far. No clip can see that coming: on a fresh
# batch every ratio is 1, no token is outside, and PPO's first step is the step without a clip, at
# every rate.
#
# What happens after it? Take four tokens, equally likely, with advantages 1, −1, 0, 0, and climb
# the *sum* of their $L_t$. One step at rate 3 carries the good token to a ratio of 3.63, far out of
# the band.

# %% jupyter={"source_hidden": true}
# your guess
predict("ppo.5", "One step at rate 3 has carried a good token to 3.63. "
        "Where is it after 29 more PPO steps on the same batch?",
        ["near 4: it goes on as without a clip",
         "at 3.63: it stays where it was put",
         "near 2: it comes half of the way back",
         "at 1.2: it comes back to the band"])

# %% jupyter={"source_hidden": true}
# steps on four tokens
def largest(rule, lr, steps):
    """The largest of four ratios before and after each step."""
    A = torch.tensor([1.0, -1.0, 0.0, 0.0])
    z, tops = torch.zeros(4), [1.0]
    for _ in range(steps):
        z = z.detach().requires_grad_()
        L = rule(4 * z.softmax(0), A).sum()              # old: 1/4 each
        z = z + lr * torch.autograd.grad(L, z)[0]
        tops.append(4 * z.softmax(0).max().item())
    return tops

two = {"no clip": no_clip, "clip and min": clip_and_min}
paths = {f"learning rate {lr:g}": {name: largest(rule, lr, 30)
                                   for name, rule in two.items()}
         for lr in (0.05, 3.0)}
small, bold = (paths[name]["clip and min"] for name in paths)
assert bold[1] == paths["learning rate 3"]["no clip"][1] == bold[-1]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("ppo.5", "at 3.63: it stays where it was put",
       f"{bold[1]:.2f} after one step, {bold[-1]:.2f} after thirty. The "
       "good token has risen and is silent, the bad one has fallen and is "
       "silent. Silent means no push on, and none back either. The min "
       "calls back those that went the wrong way; this one went the right "
       "way, too far.",
       pictures.first_batch(paths),
       instead={
           "near 4: it goes on as without a clip":
           "Without a clip it does. Here its push is 0 from the second "
           "step on.",
           "near 2: it comes half of the way back":
           "Who would bring it back? Its own push is 0.",
           "at 1.2: it comes back to the band":
           "The min calls back tokens that went the wrong way. This one "
           "went the right way, too far.",
       })

# %% [markdown]
# With small steps, the left panel, the clip does hold, though a little late. The fourth step
# carries the token out of the band, to 1.22, and from then on its own push is 0. But the bad token
# is still pushed down; what it loses goes to the others, and carries this one on to 1.23.
# <!-- cited: 1.22, 1.23 -->
#
# TRPO measures the mean KL between old and new policy after the step, and goes back if it is too
# large (05). **PPO measures nothing. It takes away the incentive to go on.**
#
# ### How far can an answer go with nothing cut?
#
# Now the other way round: no token of a long answer ever leaves the band. How far has the policy
# moved at most? For one token the KL from old to new (05) is largest when half of the probability
# sits at each edge. Along an answer the tokens' KLs add up.

# %%
edges = torch.tensor([0.8, 1.2])       # half of the old mass each: mean 1
token_kl = -edges.log().mean()         # KL from old to new, in nats
print(f"at most {token_kl:.4f} nats a token, {1000 * token_kl:.0f} nats "
      f"in an answer of 1,000; k3 in the band at most "
      f"{(edges - 1 - edges.log()).max():.4f}")

# %% [markdown]
# Twenty nats: a typical answer of the old policy can become $e^{20}$ times less likely, and the
# clip fraction says 0. **The clip limits tokens, not answers.** So one logs the KL beside the clip
# fraction; GSPO (13) puts the band around the answer's ratio.
#
# ### How hard can one token push?
#
# The rule has one open corner: a bad token that rose. At a ratio of 3.50 its push is −1.75, and at
# 100 it would be −50. Is that dangerous? At rate 80, where PPO broke, take the toy's first
# batch and the answers that the first step has raised above a ratio of 3. Many have a copy that was
# graded wrong. To that copy the rise is the wrong way, and it pushes down.

# %% jupyter={"source_hidden": true}
# answers above 3 after one step at rate 80, and after two; 400 seeds
def dual_clip(rho, A, c=3.0):
    low = clip_and_min(rho, A)
    return torch.where(A < 0, torch.maximum(low, c * A), low)

wrong, drawn = (torch.zeros(400, 50).scatter_add_(1, i64, x)
                for x in ((A64 < 0).double(), torch.ones(400, 64)))
for name, rule in (("clip and min", clip_and_min),
                   ("dual clip, c = 3", dual_clip)):
    p = climb(start.repeat(400, 1), i64, A64, rule, 2, 80.0).softmax(2)
    rho = p / p[0]                                          # (3, 400, 50)
    up = (drawn > 0) & (rho[1] > 3)
    print(f"{name:17s}", "; ".join(
        f"{label} {rho[1][which].quantile(0.5):.1f}, then "
        f"{rho[2][which].quantile(0.5):.2f}"
        for label, which in (("all copies right:", up & (wrong == 0)),
                             ("one or more wrong:", up & (wrong > 0)))))

# %% [markdown]
# With all copies right the answer stays where it was put. With a wrong copy among them the second
# step throws it from 4.4 to 0.15, though on balance it was graded well.
#
# Some libraries put an edge there, the **dual clip**
# ([arXiv 1912.09729](https://arxiv.org/abs/1912.09729)). For $A<0$ the objective becomes
# $\max(L_t,\ cA)$, so a bad token with a ratio above $c$ is silent too. verl does this by default,
# with $c=3$; TRL calls it `delta` and leaves it off. In the toy it holds
# such an answer at 1.97.

# %% jupyter={"source_hidden": true}
# the explorer
task("ppo.t2", explorers.token_gates_explorer(),
     ("Silence the good tokens at 6.00 and 1.40 and the bad one at 0.70, "
      "and no other.", token_gates.brings_back_one),
     ("Silence the bad token at 3.50 but not the bad one at 2.00. "
      "Try ε alone first.", token_gates.closes_the_door))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# <!-- cited: 0.25, 0.29, 0.30, 0.70 -->
# 1. ε from 0.25 to 0.29. At 0.30 the *bad* token at 0.70 comes back as well. To move only the upper
#    edge one needs two numbers, ε low and ε high. That is an idea of DAPO (11).
# 2. No ε does it: the token stands in the corner that the min keeps alive. Only $c$ does, from 2 up
#    to, but not including, 3.5.
# </details>

# %% [markdown]
# ### The whole loop, with a second brake
#
# Here is the loop around the loss, on the fifty answers. The old log-probs are numbers, kept when
# the batch is written; a loop that recomputes them at every step has all ratios at 1, for ever. The
# second brake, which many trainers use: the loop leaves the batch when the KL from old to new, read
# with $k_3$ (05) and averaged over the tokens, passes a limit.

# %%
def ppo(seed, epsilon=0.2, limit=math.inf, batches=30, steps=30, lr=10.0):
    z, dice = start[None], [torch.Generator().manual_seed(seed)]
    for _ in range(batches):
        i, A = draw(z, dice)                      # write and grade: once
        old = z.log_softmax(1).gather(1, i)       # kept as numbers
        for _ in range(steps):                    # the same batch again
            z = z.detach().requires_grad_()
            logp = z.log_softmax(1).gather(1, i)
            moved = (logp - old).detach()
            if (moved.expm1() - moved).mean() > limit:   # k3, old to new
                break
            loss = ppo_loss(logp, old, A, i >= 0, epsilon)
            z = z - lr * torch.autograd.grad(loss, z)[0]
        z = z.detach()
    return (z.softmax(1) @ q).item()

# %% jupyter={"source_hidden": true}
# the KL stop with and without the clip: mean of 40 seeds
print("at most 30 steps a batch, stop at 0.05 nats:")
for name, epsilon in (("no clip", math.inf), ("clip and min", 0.2)):
    end = sum(ppo(seed, epsilon, limit=0.05) for seed in range(40)) / 40
    print(f"{name:12s} chance to be right {end:.2f}")

# %% [markdown]
# Thirty steps at rate 10 without a clip ruined the policy above. With the stop they do not:
# **either brake is enough here.** The limit of 0.05 is more than any token inside the band can
# give, so it acts only when tokens have left it.

# %% [markdown]
# ### What does the `min` cost?
#
# One rule is missing in all this: the clip alone. What does the `min` add to it, four steps a
# batch? We change two things of the toy: the size of the steps, and the grader, who may pay $q_i$
# itself instead of throwing dice.

# %% tags=["nbval-ignore-output"] jupyter={"source_hidden": true}
# what the min adds to the clip alone, in four worlds, 40 seeds
def exact(z, dice):
    """As `draw`, but the reward of answer i is q_i."""
    i, _ = draw(z, dice)
    return i, q[i] - q[i].mean(1, keepdim=True)

print("min minus clip alone, and two standard errors"
      "\n                       after 30 batches     after 300")
for grader, kind in (("dice", draw), ("exact", exact)):
    for lr in (10, 80):
        world = {"draw": kind, "lr": lr}
        gap = (train(clip_and_min, 4, **world)
               - train(clip_alone, 4, **world)) @ q           # (301, 40)
        cells = [f"{gap[b].mean():+.3f} ± {2 * gap[b].std() / 40**0.5:.3f}"
                 for b in (30, 300)]
        print(f"{grader:5s} grader, rate {lr:2d}  "
              + "      ".join(cells))

# %% [markdown]
# With an exact grader and large steps the `min` gains. With dice it is behind after 30 batches:
# there two copies of one answer can disagree, one graded right and one wrong. They share one ratio.
# Once it is above 1.2 the right copy is silent, and the wrong copy still pushes down. At rate 10
# that is a delay, made up by batch 300; at rate 80 it is not.
#
# **The `min` is insurance against large steps. It trusts the sign of the advantage, and pays for
# that where copies of one answer disagree.** Which of these worlds a language model lives in, the
# toy does not say.

# %%
score("ppo.1", "ppo.2", "ppo.3", "ppo.4", "ppo.5")

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 8 minutes. The push on each token, $\partial L_t/\partial\log\pi_\theta$: no `min`,
# no `clamp`, no autograd; `torch.where` may help. Both arguments have the same shape.
#
# <details><summary>hint</summary>Which term is the smaller, in each of three regions and for each sign? Does that term contain θ?</details>

# %% tags=["exercise"]
def my_push(ratio, advantage, epsilon):
    return ...

check.surrogate_push(my_push)

# %% [markdown]
# **2 Implement** · 6 minutes. What TRL and verl log as the clip fraction: the share of tokens
# under the mask that the clip has silenced. All arguments are (B, T), the result is one number.
#
# <details><summary>hint</summary>Two corners of four are silent. Padding is no token, neither above nor below the line.</details>

# %% tags=["exercise"]
def my_clip_fraction(ratio, advantage, mask, epsilon):
    return ...

check.clip_fraction(my_clip_fraction)

# %% [markdown]
# **3 Implement** · 12 minutes. The inner loop. One prompt, V possible answers, a logit each.
# `answers` (N,) were drawn from these logits; each has its advantage. Take `epochs` steps uphill on
# the mean of $L_t$, step size `lr`, all on this one batch, and return the logits (V,).
#
# <details><summary>hint</summary>What is computed once, before the loop, and what anew in each step? `torch.autograd.grad` gives the slope; begin each step with fresh logits that require a gradient.</details>

# %% tags=["exercise"]
def my_reuse(logits, answers, advantages, epochs, lr, epsilon):
    return ...

check.reuse_batch(my_reuse)

# %% [markdown]
# **4 Find the silent bug** · 8 minutes. A colleague writes: "For bad tokens the pessimist takes the
# larger term." It trains, and the reward curve looks fine:

# %%
print(check.silent_bug_ppo.source)

# %% [markdown]
# Write a test that this function fails and the right one passes: use `assert`, or return True where
# the surrogate is right.
#
# <details><summary>hint</summary>A reward curve averages over tokens that are fine. Ask for one number in one corner.</details>

# %% tags=["exercise"]
def my_test(surrogate):
    return ...

check.silent_bug_ppo(my_test)

# %% [markdown]
# **Extra** · 6 minutes. The dual clip, per element, to be maximised. At $A=-1$, $\rho=5$,
# $c=3$: value −3, slope 0.
#
# <details><summary>hint</summary>What would the max with cA do to a good token? So where must it not act?</details>

# %% tags=["exercise"]
def my_dual_clip(ratio, advantage, epsilon, c):
    return ...

check.dual_clip(my_dual_clip)

# %% [markdown]
# **Extra** · 5 minutes. The other line of the log: the entropy of the next token, in nats, from
# logits (B, T, V) to (B, T).
#
# <details><summary>hint</summary>A logit of −inf is a token that may not be written. What is 0 times infinity?</details>

# %% tags=["exercise"]
def my_token_entropy(logits):
    return ...

check.token_entropy(my_token_entropy)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>Derive PPO's objective. Which line is not exact?</b></summary>
#
# It is the policy gradient on the old policy's samples, with one ratio per token instead of one per
# answer. Log trick and baseline; importance ratio of the answer, a product over tokens; keep each
# token's own ratio, the inexact line, right only at the old policy; then ρ∇log π = ∇ρ makes it the
# gradient of the sum of ρA. The clip and the min are put on top: engineering, not derived.
# </details>
# <details><summary><b>Why the min, when there is already a clip?</b></summary>
#
# Because the clip alone is flat on both sides for both signs, so a token that went the wrong way
# could not come back. With the min the pushes in the four corners (ρ = 1.5 and 0.5, A = ±1) are 0,
# +0.5, −1.5, 0. It is insurance against large steps; where the grader is noisy it slows the start.
# </details>
# <details><summary><b>Which tokens have no gradient?</b></summary>
#
# Good ones above 1 + ε and bad ones below 1 − ε. With dual clip also bad ones above c. And all with
# A = 0. On the first step after sampling none is cut.
# </details>
# <details><summary><b>Does the clip bound the update?</b></summary>
#
# No. The first step is the unclipped one, cut tokens move with their neighbours, and one corner is
# open. And it limits tokens, not answers: with nothing cut the KL of an answer of 1,000 tokens can
# be 20 nats. It is a brake over many steps. What bounds a step is the learning rate first, then the
# number of steps per batch.
# </details>
# <details><summary><b>Your clip fraction is 0.4 and the KL rises. What do you change?</b></summary>
#
# First fewer steps per batch, then a smaller learning rate. Then I check that old log-probs come
# from the policy that sampled, at the same temperature: a mismatch cuts tokens before any update. A
# wider band only hides it.
# </details>
# <details><summary><b>One ratio per token, or one per answer? And the whole of PPO in one line?</b></summary>
#
# Bias against variance. The product over the answer is unbiased, and with a thousand tokens no
# batch is large enough for it; the token's own ratio is biased away from the old policy and calm.
# GSPO (13) takes a middle. The whole: clipped surrogate, plus a value loss for the critic (07),
# plus an entropy bonus.
# </details>
# <details><summary><b>Your clip fraction is 0. Is something broken?</b></summary>
#
# Not if each batch is used for one optimizer step: then all ratios are 1. With several steps it
# means steps too small to reach the band, or old log-probs that are recomputed at every step, which
# makes every ratio 1.
# </details>
#
# **True, false, or it depends?** [The statements on PPO](statements/06_ppo.ipynb), each decided by
# a cell. All exercises solved: [solutions](solutions/06_ppo.ipynb). **Next:
# [07](07_critic.ipynb).** Who says how good a *token* was?
