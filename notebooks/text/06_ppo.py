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
# **After this page** you can derive PPO's objective, say which tokens still get a gradient, and say
# what the clip does not limit.
#
# 37 minutes, then 11 in a second sitting · exercises 34 more · after 04 (importance sampling), 05
# (KL) · [Schulman et al. 2017](https://arxiv.org/abs/1707.06347)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. The old policy wrote the samples. What makes their mean right for the new one?</summary>A factor ρ = new probability / old probability in front of each term (04).</details>
# <details><summary>2. What is ∇ρ, in terms of ∇log π?</summary>∇ρ = ρ ∇log π, because ρ = exp(log π − log π_old) and the old one is a constant.</details>
# <details><summary>3. What happened in 04 to the ratio of a whole answer?</summary>It is a product over tokens. Its variance explodes, and a few answers carry all the weight.</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import ZOO, check
from rlnb.classroom import explorers
from rlnb.classroom.explorers import one_token, reuse, token_gates
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import ppo as pictures
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## One batch, sixty steps
#
# Writing answers is dear. How many gradient steps can we take on one batch of them?
#
# A toy: one prompt, fifty possible answers, and a table of fifty logits as the policy. It writes 64
# answers. A grader gives each a 0 or a 1; answer $i$ is right with chance $q_i$, from 0.30 to 0.70.
# The advantage $A$ is the reward minus the mean of the 64.
#
# Each step, with learning rate 10, raises the mean of $\rho A$ over these 64, where ρ is an
# answer's new probability over its old one (04). This mean is the gain in reward that the batch
# **promises**.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: draw writes and grades answers, climb takes steps
q = torch.linspace(0.3, 0.7, 50)             # chance that answer i is right
start = torch.randn(50, generator=torch.Generator().manual_seed(99))

def draw(z, dice):
    """64 answers per seed and their advantages, (seeds, 64) each."""
    i = torch.stack([torch.multinomial(p, 64, replacement=True, generator=g)
                     for p, g in zip(z.softmax(1), dice)])
    R = torch.stack([torch.bernoulli(q[row], generator=g)
                     for row, g in zip(i, dice)])
    return i, R - R.mean(1, keepdim=True)

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

# %% jupyter={"source_hidden": true}
# 400 seeds, of which the picture shows six
dice = [torch.Generator().manual_seed(seed) for seed in range(400)]
i64, A64 = draw(start.repeat(400, 1), dice)
pi = climb(start.repeat(400, 1), i64, A64, no_clip, 60).softmax(2)
ratio64 = (pi / pi[0]).gather(2, i64.expand(61, 400, 64))
promised = (ratio64 * A64).mean(2)                            # (61, 400)
right0 = (pi[0, 0] @ q).item()                  # chance to be right, before
print(f"right at the start: {right0:.2f}; promised after 60 steps, "
      f"mean of 400 seeds: {promised[-1].mean():+.2f}")
pictures.promises(promised[:, :6], 0.7 - right0)

# %% [markdown]
# The policy starts with a chance of 0.47 to be right, and the best answer has 0.70. So no policy
# can gain more than 0.23, and yet the mean promise is 1.42. What has happened?
#
# We count the **answers in play**: how many equally likely answers have the policy's entropy. At
# the start there are 31.

# %% jupyter={"source_hidden": true}
# your guess
predict("ppo.1", "How many answers are in play after the sixty steps, in "
        "the mean of the 400 seeds?",
        ["about 28", "about 14", "about 9", "about 1"])

# %% jupyter={"source_hidden": true}
# counted
def in_play(p):
    """Exponential of the entropy, over the last dimension."""
    return (-(p * p.clamp(min=1e-300).log()).sum(-1)).exp()

high = promised[-1, :6].argmax().item()         # the seed shown on the left
top = pi[-1, high].argmax().item()              # the answer it ends with
mine = i64[high] == top
drawn, good = mine.sum().item(), (mine & (A64[high] > 0)).sum().item()
alone = drawn / 64 * A64[high].max() / pi[0, high, top]
net, copies, wrong = (torch.zeros(400, 50).scatter_add_(1, i64, x)
                      for x in (A64, torch.ones(400, 64), (A64 < 0) * 1.0))
kinds, liked, clean = (x.sum(1).double().mean() for x in (
    copies > 0, net > 0, (copies > 0) & (wrong == 0)))
gain = pi[-1] @ q - right0

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "ppo.1", "about 1",
    f"{in_play(pi[0, 0]):.0f} before, {in_play(pi[-1]).mean():.2f} after. "
    f"The left panel shows one seed. The answer that is left was drawn "
    f"{drawn} times in 64, was right {good} times, and had the probability "
    f"{pi[0, high, top]:.4f}. Now it has nearly all, so its ratio is near "
    f"1/{pi[0, high, top]:.4f}, and with A = {A64[high].max():.2f} it "
    f"promises {drawn}/64 × {A64[high].max():.3f} / "
    f"{pi[0, high, top]:.4f} = {alone:.2f}. In truth it is right with "
    f"{q[top]:.2f}. The right panel has all 400 seeds: on average they "
    f"promise {promised[-1].mean():+.2f} and gain {gain.mean():+.2f}.",
    pictures.corner(q, pi[0, high], pi[-1, high], promised[-1], gain, high,
                    0.7 - right0),
    instead={
        "about 28": "So many different answers are in a batch: "
                    f"{kinds:.0f}. The steps do not keep them all.",
        "about 14": "So many have advantages that add up to more than 0: "
                    f"{liked:.0f}. But they go on to compete.",
        "about 9": "So many were right every time they were drawn: "
                   f"{clean:.0f}. But they go on to compete.",
    })

# %% [markdown]
# Why one answer? Call $c_i$ the sum of $A$ over the copies of answer $i$, divided by
# $64\,\pi_\text{old}(i)$. The promise is $\sum_i\pi(i)\,c_i$, linear in the new probabilities. So
# it is largest in a corner, with all probability on one answer. Our steps end in a corner, though
# not always in the highest. **The objective has no point at which it says *enough*.**
#
# ## Where the objective comes from
#
# Before we brake: why $\rho A$, and why one ratio for each token?
#
# We raise the expected reward $J(\theta)$ of an answer $y$. $\pi(y_t)$ is the probability of token
# $t$ given those before it, and $\rho_t$ its ratio.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_{y\sim\pi_\theta}\Big[A\,\textstyle\sum_t\nabla\log\pi_\theta(y_t)\Big]&&\text{log trick (02), baseline (03)}\\
# &=\mathbb E_{y\sim\pi_\text{old}}\Big[\rho_1\rho_2\cdots\rho_T\;A\,\textstyle\sum_t\nabla\log\pi_\theta(y_t)\Big]&&\text{importance ratio of the answer (04)}\\
# &\approx\mathbb E_{\text{old}}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi_\theta(y_t)\Big]&&\textbf{a choice: each token keeps its own ratio}\\
# &=\nabla\;\mathbb E_{\text{old}}\Big[\textstyle\sum_t\rho_t\,A\Big]&&\rho\,\nabla\log\pi=\nabla\rho\text{, and }\pi_\text{old}\text{ is fixed}
# \end{aligned}$$
#
# PPO climbs the last bracket, the **surrogate**. The bold line is not an identity. For token $t$ it
# drops the ratios *before* it (would the new policy come here?) and *after* it ($A$ was earned by
# the way the old policy went on). The product that exploded in 04 is gone. The price is a bias:
# away from the old policy the gradient is in general wrong, and a larger batch does not repair
# that.
#
# **So there are two reasons to stop early: the batch is noisy, and the surrogate is right only near
# the old policy.** Our toy shows the first alone, since its answers are single tokens.
#
# <details><summary>One level deeper: how wrong can the surrogate be?</summary>
#
# Score each token by its exact advantage under the old policy. The true gain then is a sum over the
# states that the *new* policy visits; the surrogate takes those of the old one. If each token's
# probabilities have moved by at most δ (total variation), states at token $t$ differ by at most
# $(t-1)\delta$. The error over $T$ tokens is at most $2T(T-1)\delta^2\max|A|$. It is second order
# in the step, and grows with the square of the length. TRPO's bound has this form, with a KL for
# $\delta^2$ ([arXiv 1502.05477](https://arxiv.org/abs/1502.05477)).
# </details>
#
# The number in front of $\nabla\log\pi_\theta(y_t)$ is the token's **push**, here $\rho_tA$. The
# rest of the page is about it.
#
# ## The obvious brake
#
# How do we say *enough*? The obvious way is a band from $1-\epsilon$ to $1+\epsilon$, usually with
# $\epsilon=0.2$. Clip each ratio to the band, and climb $\mathrm{clip}(\rho)\,A$ in place of
# $\rho A$. Four tokens have left the band:
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

# %% jupyter={"source_hidden": true}
# the clip alone
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
       "were moved the wrong way by other tokens: all share one softmax "
       "and one network. With the clip alone, their own advantage no "
       "longer pulls them back.",
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
# How do the two get their push back? PPO takes the **smaller** of two numbers:
#
# $$L_t=\min\big(\rho_tA,\ \mathrm{clip}(\rho_t,1-\epsilon,1+\epsilon)\,A\big)$$

# %% jupyter={"source_hidden": true}
# the explorer
task("ppo.t1", explorers.one_token_explorer(),
     ("Two went the *wrong* way: a bad token is now twice as likely, a "
      "good one half as likely. Predict which of them gets the weaker "
      "push, and leave that one on the screen.",
      one_token.comes_back_slowly))

# %% [markdown]
# At ratio 2 the bad token gets −2. At ratio 1/2 the good one gets only +1/2, because the push is
# $\rho A$: **a good token that fell far comes back slowly.**

# %% jupyter={"source_hidden": true}
# PPO's rule
def clip_and_min(rho, A, epsilon=0.2):
    return torch.minimum(rho * A, clip_alone(rho, A, epsilon))

# %% jupyter={"source_hidden": true}
# the pushes of the three rules
rules = {"no clip": no_clip, "clip alone": clip_alone,
         "clip and min": clip_and_min}
print(" " * 14 + "good, rose   good, fell   bad, rose   bad, fell")
for name, rule in rules.items():
    cells = (f"{push:+.1f}" if push else "0" for push in corners(rule))
    print(f"{name:12s}" + "".join(f"{text:>12s}" for text in cells))

# %% [markdown]
# **The clip silences every token outside the band. The `min` gives the push back to those that went
# the wrong way, and only to them.**
#
# ## Sixteen tokens
#
# What does this rule do to a batch? Here are the four answers that every page carries, after some
# steps on them: their advantages and ratios.

# %% jupyter={"source_hidden": true}
# the running group: its ratios and advantages
batch = running_group()
ratio = (batch.logprobs - batch.old_logprobs).exp()          # (4, 6)
A4 = batch.rewards - batch.rewards.mean()
A16 = A4[:, None].expand_as(ratio)
outside = (batch.mask & ((ratio - 1).abs() > 0.2 + 1e-9)).sum()
for i in range(4):
    print(f"answer {i}, A = {A4[i]:+.1f}:", "  ".join(
        f"{r:.2f}" for r in ratio[i][batch.mask[i]].tolist()))
print(f"outside the band: {outside} of {batch.mask.sum()}")

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

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("ppo.3", "4",
       "Three good tokens that rose and one bad token that fell are "
       "silent. The other four outside went the wrong way and keep their "
       f"push. The strongest of all, {strongest:.2f}, is on one of them: "
       "the bad token at 3.50.",
       pictures.map_of_silence(batch, ratio, A16),
       instead={
           "8":
           "That is the clip alone. With the min the four that went the "
           "wrong way keep their push.",
           "6":
           "Count only good ones above 1.2 and bad ones below 0.8.",
           "2":
           "Three good ones rose above 1.2, and one bad one fell below "
           "0.8.",
       })

# %% [markdown]
# **Outside the band is not the same as cut.** A clip fraction that counts $|\rho-1|>\epsilon$ says
# 8 of 16 here. TRL and verl count the 4.
#
# ## How far can one step go?
#
# A silent token no longer pushes. Does that keep ratios in the band? Take four tokens, equally
# likely, with advantages 1, −1, 0, 0, and climb the sum of their $L_t$. At first every ratio is 1
# and nothing is silent. One step at rate 3 carries the good token to 3.63.

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
       "silent, the other two have A = 0. Silent means no push on, and "
       "none back either.",
       pictures.first_batch(paths),
       instead={
           "near 4: it goes on as without a clip":
           "Without a clip it does. Here its push is 0 from the second "
           "step on.",
           "near 2: it comes half of the way back":
           "Its own push is 0, and no other token pushes it down.",
           "at 1.2: it comes back to the band":
           "The min calls back tokens that went the wrong way. This one "
           "went the right way, too far.",
       })

# %% [markdown]
# TRPO, PPO's parent, measures the KL after a step and goes back if it is too large (05). **PPO sets
# no such limit. It takes away a token's reward for going on.** Under Adam, momentum moves a silent
# token further for a few steps.
#
# ## Does it help?
#
# What does the brake do to a whole training? Back to the fifty answers, for 300 batches. The policy
# of the moment writes each, and thirty steps are taken on it.

# %% jupyter={"source_hidden": true}
# the explorer
task("ppo.t3", explorers.reuse_explorer(),
     ("At rate 10 *no clip* is ruined. Save it by the rate alone, still "
      "with thirty steps: let it end at 0.65 or more. Predict first how "
      "much smaller the rate must be.", reuse.saved_without),
     ("For *no clip* four steps a batch allow ten times the rate that "
      "thirty allow. And for *PPO*? Find the largest rate at which it "
      "ends at 0.65 or more, with thirty steps, then with four. Leave "
      "the one for four.", reuse.largest_that_holds))

# %% [markdown]
# One starting policy may be an accident. Here are six.

# %% tags=["nbval-ignore-output"] jupyter={"source_hidden": true}
# six starting policies at every rate: about fifteen seconds
def sweep(rule, steps=30):
    """Mean of the seeds, (rates, starts)."""
    return torch.tensor([
        reuse.six_starts(rule, steps, rate).mean(1).tolist()
        for rate in reuse.RATES]).numpy()

arms = {"no clip": ("no clip", 30), "clip and min": ("clip and min", 30),
        "single step": ("no clip", 1)}
ends = {name: sweep(*arm) for name, arm in arms.items()}
print("mean of six starting policies, best rate for each number:")
for name, chance in ends.items():
    best = chance.mean(1).argmax()
    rule, steps = arms[name]
    print(f"{name:12s} ends at {chance.mean(1).max():.2f} (rate "
          f"{reuse.RATES[best]:g}); passes 0.65 after "
          f"{reuse.soonest(rule, steps)} batches")
pictures.rates(reuse.RATES, ends)

# %% [markdown]
# **What the clip buys in this toy is room: with thirty steps a batch rates up to 40 end well,
# without a clip only up to 1.** (PPO's largest rate is 40 with four steps, too: task 2.) It does
# not buy speed, and a single step a batch is a rival: it ends as well (0.67, 0.68 and 0.69 are
# close), and at its own fastest rate passes 0.65 after 9 batches; no clip takes 15, PPO 30.
# <!-- cited: 0.67, 0.68, 0.65, 40 -->
#
# So how often can one use a batch? PPO's paper takes 3 to 10 epochs over a batch, at ε = 0.1 or
# 0.2; TRL's GRPO and verl by default use an answer once. One stops early when the KL to
# $\pi_\text{old}$ jumps. Reuse pays where an answer costs far more than a step on it, and where a
# step cannot be made as large as one likes. The toy has neither. In the network of the second
# sitting eight uses with a clip were ahead. <!-- cited: 0.1, 0.2 -->
#
# Why room? Without a clip the steps on a batch add up, and at rate 10 they run into a corner: one
# answer in play. With the clip a good token's own push ends at the edge, so at these rates further
# steps hardly count. The size of a step still does.
# <!-- cited: 40 -->

# %% [markdown]
# ## In code
#
# What do you write on the whiteboard? The loss is minimised, so both terms change sign and the
# smaller becomes the larger.

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
# `old_logp` is kept when the batch is written. A loop that recomputes it at every step has all
# ratios at 1. So has TRL's GRPO by default: one optimizer step a batch, and the clip never acts.
#
# <details><summary>One level deeper: means, minibatches, and "pessimistic"</summary>
#
# * The derivation sums over an answer's tokens, the code takes the mean over all tokens of the
#   batch. That is one more choice (09 and 10).
# * Cut the batch into four minibatches, and from the second on the ratios have moved, also in the
#   first epoch.
# * If the sampling engine's probabilities differ from the trainer's, ratios are not 1 at the first
#   step either (19).
# <!-- cited: 0.0001, 0.0002, 0.99, 0.80 -->
# * A ratio is relative. From 0.0001 to 0.0002 leaves the band; from 0.99 to 0.80 does not (12).
# * $L_t\le\rho_tA$: PPO is pessimistic about the *surrogate*. It is no lower bound on the return;
#   the statements page has the counterexample.
# * Two more things are called PPO in RLHF and are not the clip: a critic for $A$ (07), and a KL to
#   the *reference* model (05).
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | PPO | |
# |---|---|
# | sentence | use a batch many times; the clip silences tokens outside the band, the min gives those that went the wrong way their push back |
# | formula | $\min(\rho A,\ \mathrm{clip}(\rho,1-\epsilon,1+\epsilon)A)$ |
# | a choice | one ratio per token, where the answer's ratio is a product |
# | silent | $A>0,\ \rho>1+\epsilon$; $A<0,\ \rho<1-\epsilon$ |
# | numbers | sixty steps on one batch, no brake: +1.42 promised, +0.09 gained · 8 tokens outside, 4 silent |
# | does it help? | in our toy it buys room, not speed: thirty steps a batch end well at rates up to 40, without a clip up to 1 |
# | what it is not | a trust region: one step can go to 3.63 and stay there |

# %% [markdown]
# ## Second sitting: what does the clip not do?
#
# ### Which part let go?
#
# At rate 80 thirty steps of PPO failed, though *one* step a batch ends at 0.66. Which part of the
# rule let go? The same six starting policies:

# %% jupyter={"source_hidden": true}
# your guess
predict("ppo.6", "At rate 80, thirty steps a batch, no clip ends at 0.57 "
        "and PPO at 0.62. Where does the clip alone end, without the min?",
        ["at 0.52", "at 0.57", "at 0.62", "at 0.67"])

# %% jupyter={"source_hidden": true}
# rules and graders at rate 80, the same six starts: some seconds
def at_80(rule, steps=30, grader="dice"):
    return reuse.six_starts(rule, steps, 80, grader=grader)

names = ("no clip", "clip alone", "clip and min")
lines = "\n".join(f"| {name} | {at_80(name).mean():.2f} | "
                  f"{at_80(name, grader='averaged').mean():.2f} |"
                  for name in names)

# %% tags=["answer", "nbval-ignore-output"] jupyter={"source_hidden": true}
# the answer
reveal("ppo.6", "at 0.67",
       f"Without the min PPO ends at {at_80('clip alone').mean():.2f}, "
       f"with it at {at_80('clip and min').mean():.2f}. The grader throws "
       "dice, so copies of one answer are graded right and wrong, and "
       "share one ratio. Once that ratio is above 1.2, PPO silences the "
       "copies graded right; those graded wrong still push down. (Below "
       "0.8 it is the other way round.) The clip alone silences both. The "
       "test: give "
       "all copies of an answer their mean advantage, and the "
       "difference is gone.\n\n| rate 80, thirty steps | copies as "
       f"graded | copies averaged |\n|---|---|---|\n{lines}",
       instead={
           "at 0.52":
           "It is not that it brakes too little: the clip alone silences "
           "more tokens than PPO does.",
           "at 0.57":
           "No clip has no brake. The clip alone has more of it than PPO.",
           "at 0.62":
           "Then the min would change nothing. At this rate it does.",
       })

# %% [markdown]
# **The `min` trusts the sign of each advantage. It pays for that where one choice is graded both
# ways.** With averaged copies the `min` is not behind, and with a grader that pays $q_i$ itself it
# is ahead at large rates ([statements page](statements/06_ppo.ipynb)). In a group of answers to one
# prompt the first tokens are shared by right and wrong answers, the later ones seldom. What that
# costs a language model, the toy does not say.
#
# ### How far can an answer move inside the band?
#
# Suppose no token of the vocabulary leaves the band, at any position of a long answer. How far can
# the policy have moved? For one token the KL from old to new (05) is largest when half of the
# probability sits at each edge. Along an answer the tokens' KLs add up.

# %%
edges = torch.tensor([0.8, 1.2])       # half of the old mass each: mean 1
token_kl = -edges.log().mean()         # KL from old to new, in nats
print(f"at most {token_kl:.4f} nats a token, {1000 * token_kl:.0f} nats "
      f"in an answer of 1,000")

# %% [markdown]
# Twenty nats: a typical answer of the old policy has become about $e^{20}$ times less likely, with
# every token inside. And a clip fraction of 0 promises less than that: it leaves out bad tokens
# that rose and good ones that fell. **The clip works on tokens, not on answers.** So one logs the
# KL beside the clip fraction; GSPO (13) puts the band around the answer's ratio.
#
# ### How hard can one token push?
#
# A bad token that rose has no edge. At a ratio of 3.50 its push is −1.75; at 100 it would be −50.
# Some libraries put an edge there, the **dual clip**
# ([arXiv 1912.09729](https://arxiv.org/abs/1912.09729)): for $A<0$ the objective becomes
# $\max(L_t,\ cA)$, and above the ratio $c$ a bad token is silent too. verl does this by default,
# with $c=3$; TRL calls it `delta` and leaves it off.

# %% jupyter={"source_hidden": true}
# the explorer
task("ppo.t2", explorers.token_gates_explorer(),
     ("Silence four tokens and no other: the good ones at 6.00 and 1.40, "
      "the bad ones at 0.70 and 3.50. Say first which of the four ε cannot "
      "silence, however you choose it.", token_gates.four_and_no_other))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# <!-- cited: 0.25, 0.29, 0.30, 0.70, 3.25 -->
# ε from 0.25 to 0.29, and c from 2.00 to 3.25. No ε silences the bad token at 3.50: it went the
# wrong way, and the min takes its side. At ε = 0.30 the *bad* token at 0.70 pushes again. To move
# only the upper edge one needs two numbers, ε low and ε high. That is an idea of DAPO (11).
# </details>
#
# ### And a real network?
#
# Does reuse save answers on a small transformer, where a step cannot be made as large as we like?

# %% jupyter={"source_hidden": true}
# the recorded runs
pictures.answers_used()

# %% [markdown]
# With the clip, eight steps stand at 0.83 to 0.86 after 512 answers. Without it they stand at 0.71
# to 0.79, and one step at 2 or 4 times the rate at 0.53 to 0.79. At the end, 0.87 to 0.91 against
# 0.79 to 0.82 and 0.77 to 0.88. In between, after 1,024, the clip's three seeds are at 0.75 to
# 0.90. Each point has a standard error near 0.04 (100 problems). So: a hint that reuse with a clip
# saves answers early, from three seeds. (No clip was run at one rate only; a smaller one may save
# it, as in the toy.)
# <!-- cited: 0.83, 0.86, 0.71, 0.79, 0.53, 0.87, 0.91, 0.82, 0.77, 0.88, 0.75, 0.90, 0.04 -->

# %%
score("ppo.1", "ppo.2", "ppo.3", "ppo.5", "ppo.6")

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
# It is the policy gradient on the old policy's samples, with one ratio per token. Log trick and
# baseline; importance ratio of the answer, a product over tokens; keep each token's own ratio:
# inexact, right in general only at the old policy; then ρ∇log π = ∇ρ makes it the gradient of the
# sum of ρA. The clip and the min are put on top, not derived.
# </details>
# <details><summary><b>Why the min, when there is already a clip?</b></summary>
#
# Because the clip alone is flat on both sides, so a token that went the wrong way would have no
# push back. With the min the pushes in the four corners (ρ = 1.5 and 0.5, A = ±1) are 0, +0.5,
# −1.5, 0. It trusts the sign of A: in our toy, where copies of one answer were graded both ways, it
# cost some of the reward at a large rate.
# </details>
# <details><summary><b>Which tokens have no gradient?</b></summary>
#
# Good ones above 1 + ε and bad ones below 1 − ε. With dual clip also bad ones above c, and with
# every rule those with A = 0. On the first step after sampling none is cut, if the old log-probs
# are the trainer's own.
# </details>
# <details><summary><b>Does the clip bound the update?</b></summary>
#
# No, it only takes away a token's reward for going on. The first step is the unclipped one, and a
# token that it carries to 3.63 can stay there. Cut tokens move with their neighbours. And the clip
# works on tokens: with all of them inside, the KL of an answer of 1,000 tokens can be 20 nats. What
# limits one step is the learning rate.
# </details>
# <details><summary><b>Your clip fraction is 0.4 and the KL rises. What do you change?</b></summary>
#
# First a smaller learning rate: with the clip, the size of a step does more here than their number.
# Then I look at the first minibatch
# alone: tokens cut there, before any update, mean that the old log-probs are not those of the
# trainer's current policy, for example from another engine or temperature. A wider band lowers the
# number and lets tokens go further.
# </details>
# <details><summary><b>One ratio per token, or one per answer? And the whole of PPO in one line?</b></summary>
#
# It is bias against variance. The product over the answer is unbiased, but over hundreds of tokens
# its variance usually makes it useless; the token's own ratio is calm, and biased away from the old
# policy. GSPO (13) takes a middle. The whole: clipped surrogate, plus a value loss for the critic
# (07), plus an entropy bonus.
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
