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
# **After this page** you can derive PPO's objective from the policy gradient, say which tokens still move, and say why there is a `min`.
#
# 35 minutes, exercises 25 more · after 02 (REINFORCE), 03 (baselines), 04 (importance sampling), 05 (KL) · Schulman et al. 2017,
# [arXiv 1707.06347](https://arxiv.org/abs/1707.06347)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. The old policy wrote the samples. What makes their mean right for the new one?</summary>A factor ρ = new probability / old probability in front of each term (04).</details>
# <details><summary>2. What is ∇ρ, in terms of ∇log π?</summary>∇ρ = ρ ∇log π, because ρ = exp(log π − log π_old) and the old one is a constant.</details>
# <details><summary>3. What happened in 04 to the ratio of a whole answer?</summary>It is a product over tokens. Its variance explodes, and a few answers carry all the weight.</details>

# %% tags=["setup"]
import torch
from rlnb import ZOO, check
from rlnb.classroom import explorers
from rlnb.classroom.explorers import one_token, token_gates
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import pipeline, ppo as pictures, token_grid
from rlnb.objective import difference
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## One batch, sixty steps
#
# Writing answers is the expensive part of RL for language models. So we want many gradient steps out of each batch.

# %%
pipeline.pipeline("ratio", "loss", again=True, caption=(
    "Left of the ratio everything is done once per batch. "
    "The arrow back is what this page is about."))

# %% [markdown]
# Try it with nothing to stop us. One prompt, fifty possible answers. Answer $a$ is right with chance $q_a$, from 0.30 to 0.70. The policy writes 64
# answers, a grader says 0 or 1 to each, and the advantage is reward minus mean. Then `climb` takes as many steps on those 64 as we like.

# %%
q = torch.linspace(0.3, 0.7, 50)             # chance that answer a is right
start = torch.randn(50, generator=torch.Generator().manual_seed(99))

def draw(z, dice):
    """64 answers per seed and their advantages, (seeds, 64) each."""
    a = torch.stack([torch.multinomial(p, 64, replacement=True, generator=g)
                     for p, g in zip(z.softmax(1), dice)])
    R = torch.stack([torch.bernoulli(q[row], generator=g)
                     for row, g in zip(a, dice)])
    return a, R - R.mean(1, keepdim=True)

def seeds(n):
    return [torch.Generator().manual_seed(seed) for seed in range(n)]

# %%
def climb(z, a, A, rule, steps, lr=10.0):
    """Steps on one batch; the logits after each, (steps + 1, seeds, 50)."""
    old, path = z.log_softmax(1), [z]
    for _ in range(steps):
        z = z.detach().requires_grad_()
        rho = (z.log_softmax(1) - old).exp().gather(1, a)      # (seeds, 64)
        slope, = torch.autograd.grad(rule(rho, A).mean(1).sum(), z)
        z = (z + lr * slope).detach()
        path.append(z)
    return torch.stack(path)

def no_clip(rho, A):
    return rho * A

# %% [markdown]
# After every step the batch tells us what it believes we have gained: the mean of $\rho A$ over its 64 answers. Six seeds:

# %%
a64, A64 = draw(start.repeat(6, 1), seeds(6))
pi = climb(start.repeat(6, 1), a64, A64, no_clip, 60).softmax(2)
ratio64 = (pi / pi[0]).gather(2, a64.expand(61, 6, 64))       # (61, 6, 64)
promised = (ratio64 * A64).mean(2)                            # (61, 6)
pictures.promises(promised)

# %% [markdown]
# Look at the vertical axis. A reward is 0 or 1, the policy starts at a chance of 0.47, and the six seeds are promised +1.12 on average.

# %%
predict("ppo.1", "What have the six seeds gained in truth, on average?",
        ["about +0.9, a bit less than promised", "about +0.4",
         "+0.23, the most there is to gain", "about +0.04"])

# %%
real = pi @ q - pi[0] @ q                                     # (61, 6)
most = 0.7 - (pi[0] @ q)[0].item()
gain, top = real[-1].tolist(), promised[-1].argmax()

# %% tags=["answer"] jupyter={"source_hidden": true}
reveal("ppo.1", "about +0.04",
       f"Promised {promised[-1].mean():+.2f}, true {real[-1].mean():+.2f}. "
       f"The seed with the largest promise, {promised[-1].max():+.2f}, "
       f"gained {gain[top]:+.2f}.", pictures.promises(promised, real, most))

# %% [markdown]
# How can a batch promise more than 1? Its ratios no longer average to 1: the steps raise the ratio of just those answers that are in the batch and were
# lucky. The batch does not lie. It answers another question: *on these 64*, which policy looks best? Something must say **enough**.
#
# <details><summary>One level deeper: is self-normalising the cure?</summary>
#
# Divide by the mean ratio (04) and no promise can pass 1. It stays wrong: the weights are right for a policy that was fixed before the batch was drawn. Ours was
# chosen by looking at the batch. No reweighting repairs a choice made on the same data; more data, or fewer steps, does.
# </details>
#
# ## Where the objective comes from
#
# We want to raise $J(\theta)$, the expected reward of an answer $y=(y_1,\dots,y_T)$. Let $\rho_t$ be the ratio of token $t$, and $A$ reward minus baseline.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_{y\sim\pi_\theta}\Big[A\,\textstyle\sum_t\nabla\log\pi_\theta(y_t)\Big]&&\text{log trick (02), baseline (03)}\\
# &=\mathbb E_{y\sim\pi_\text{old}}\Big[\rho_1\rho_2\cdots\rho_T\;A\,\textstyle\sum_t\nabla\log\pi_\theta(y_t)\Big]&&\text{importance ratio of the answer (04)}\\
# &\approx\mathbb E_{\text{old}}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi_\theta(y_t)\Big]&&\textbf{a choice: each token keeps its own ratio}\\
# &=\mathbb E_{\text{old}}\Big[\textstyle\sum_tA\,\nabla\rho_t\Big]&&\nabla\rho=\rho\,\nabla\log\pi\text{, log trick backwards}\\
# &=\nabla\;\mathbb E_{\text{old}}\Big[\textstyle\sum_t\rho_t\,A\Big]&&\pi_\text{old}\text{ does not depend on }\theta
# \end{aligned}$$
#
# So we climb the **surrogate** $\mathbb E_\text{old}[\sum_t\rho_tA]$. One line is not an identity, and an interviewer will ask which. It throws away two
# things for each token $t$:
#
# * the ratios *before* it, $\rho_1\cdots\rho_{t-1}$: how often the new policy would get here at all;
# * the ratios *after* it: how the new policy would go on from here, while $A$ was earned by the old one's continuation.
#
# What it buys: the product that exploded in 04 is gone. What it costs shows on two tokens. They are right with chances $a$ and $b$, and the answer is right
# if both are: the truth is $ab$.

# %%
def slopes(a, b):
    """Slopes in (a, b): of the truth a b, and of the surrogate."""
    at = torch.tensor([a, b], requires_grad=True)
    L = 0.0
    for y in ((1, 1), (1, 0), (0, 1), (0, 0)):          # four answers, 1/4 each
        rho = torch.stack([2 * (p if bit else 1 - p)
                           for p, bit in zip(at, y)])
        L = L + 0.25 * rho.sum() * (min(y) - 0.25)      # reward minus its mean
    return [torch.autograd.grad(f, at)[0].tolist()
            for f in (at.prod(), L)]

for place in ((0.5, 0.5), (0.9, 0.2)):
    true, ours = slopes(*place)
    print(f"at {place}: truth {true}, ours {[round(x, 4) for x in ours]}")
pictures.arrows(slopes)

# %% [markdown]
# At the old policy every ratio is 1 and the two agree: the first step *is* REINFORCE. At (0.9, 0.2) the truth cares 4.5 times as much for the second token as
# for the first; the surrogate still weighs them alike. That is a second reason to stop early, and a larger batch does not cure it.
#
# The gradient of one token is now $\rho_tA\,\nabla\log\pi_\theta$. We call the number $\rho_tA$ its **push**. The rest of the page is about that number.
#
# ## The obvious brake
#
# Say *enough* at a distance. Inside a band from $1-\epsilon$ to $1+\epsilon$ pay $\rho A$, outside pay a constant. That is
# $\mathrm{clip}(\rho,1-\epsilon,1+\epsilon)\,A$, usually with $\epsilon=0.2$. Four tokens have left the band:
#
# | | ρ = 1.5 | ρ = 0.5 |
# |---|---|---|
# | good, A = +1 | w | x |
# | bad, A = −1 | y | z |

# %%
predict("ppo.2", "Which of the four still feel a gradient from clip(ρ)·A?",
        ["none of them", "w and z, which went the right way",
         "x and y, which went the wrong way", "all four"])

# %%
def clip_alone(rho, A, epsilon=0.2):
    return rho.clamp(1 - epsilon, 1 + epsilon) * A

def slope(rule, rho, A):
    rho = torch.tensor(rho, requires_grad=True)
    value = rule(rho, torch.tensor(A)).sum()
    return [s + 0.0 for s in torch.autograd.grad(value, rho)[0].tolist()]

four = [1.5, 0.5, 1.5, 0.5], [1.0, 1.0, -1.0, -1.0]         # w, x, y, z

# %% tags=["answer"] jupyter={"source_hidden": true}
reveal("ppo.2", "none of them",
       f"Slopes in w, x, y, z: {slope(clip_alone, *four)}. A constant has "
       "no slope, on either side and for either sign.")

# %% [markdown]
# w and z have done what they should; let them rest. But x is a good token that became half as likely, and y a bad one that became likelier. Other tokens'
# updates dragged them there: they share one softmax and one network. Now the clip holds them there.
#
# PPO's repair is one word. Take the **smaller** of the two:
#
# $$J_t=\min\big(\rho_tA,\ \mathrm{clip}(\rho_t,1-\epsilon,1+\epsilon)\,A\big)$$
#
# Before you read on, find out what it does. This is one token under $J_t$.

# %%
task("ppo.t1", explorers.one_token_explorer(),
     ("Make the bad token silent: no arrow.", one_token.bad_and_silent),
     ("Give the bad token a push of at least 2, downwards.",
      one_token.largest_bad))

# %% [markdown]
# <details><summary>What the two tasks show</summary>
#
# A bad token is silent only left of 0.8, where it has already become less likely. To the right there is no wall: the further it went wrong, the harder it is
# pushed back. Good tokens are the mirror image.
# </details>

# %%
def clip_and_min(rho, A, epsilon=0.2):
    return torch.minimum(rho * A, clip_alone(rho, A, epsilon))

print("slope in w, x, y, z:", slope(clip_and_min, *four))
pictures.shapes()

# %% [markdown]
# **The clip silences every token that has moved far. The `min` gives the gradient back to those that moved the wrong way, and only to them.** That is the
# sentence for the interview.
#
# ## Sixteen tokens
#
# Corners are clean, batches are not. Here are the four answers that every page carries, rewards 1, 1, 0, 0. With the group's mean as baseline $A=\pm\frac12$.
# The batch has been used for some steps already.

# %%
batch = running_group()
ratio = (batch.logprobs - batch.old_logprobs).exp()          # (4, 6)
A4 = batch.rewards - batch.rewards.mean()
A16 = A4[:, None].expand_as(ratio)
outside = batch.mask & ((ratio - 1).abs() > 0.2 + 1e-9)
token_grid.probability_grid(batch, outside=outside, caption=(
    "Bold: the eight tokens whose ratio has left the band, 0.8 to 1.2."))

# %%
predict("ppo.3", "Eight of sixteen tokens are outside the band. "
        "How many does PPO, min included, silence?", ["8", "6", "4", "2"])

# %%
def push(rule):
    """Slope of the rule in log pi, token by token; 0 on padding."""
    J = rule(ratio, A16)[batch.mask].sum()
    return torch.autograd.grad(J, batch.logprobs, retain_graph=True)[0]

rules = {"no clip": no_clip, "clip alone": clip_alone,
         "clip and min": clip_and_min}
pushes = {name: push(rule) for name, rule in rules.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
reveal("ppo.3", "4",
       "Three good tokens that rose (1.25, 6.00, 1.40) and a bad one that "
       "fell (0.70).",
       token_grid.token_grid(batch, pushes, outside=outside, caption=(
           "The clip alone silences all eight outside. The min gives four "
           "of them back.")))

# %% [markdown]
# So "outside" is not "cut". A clip fraction that counts $|\rho-1|>\epsilon$ would report 8 of 16 here, twice the truth. The same tokens on a map:

# %%
pictures.map_of_silence(batch, ratio, A16)

# %% [markdown]
# Look at the bottom right of the right panel. That door has no end. The bad token at 3.50 gets the largest push of the batch, −1.75; at a ratio of 100 it
# would own the batch. Some libraries close the door far out with a number $c$, the **dual clip** ([arXiv 1912.09729](https://arxiv.org/abs/1912.09729)):
# for $A<0$ the objective becomes $\max(J_t,\ cA)$, and a bad token beyond $c$ is silent too. verl always does this, with $c=3$. TRL calls it `delta` and
# leaves it off.

# %%
task("ppo.t2", explorers.token_gates_explorer(),
     ("Give the good token at 1.25 its push back. Those at 6.00, 1.40 and "
      "0.70 stay silent, all others alive.", token_gates.brings_back_one),
     ("Silence the bad token at 3.50 but not the bad one at 2.00. "
      "Try ε alone first.", token_gates.closes_the_door))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# 1. ε from 0.25 to 0.29. At 0.30 the *bad* token at 0.70 comes back as well. Whoever wants to move only the upper edge needs two numbers, ε low and ε high.
#    That is an idea of DAPO (11).
# 2. No ε does it: the token stands in the corner that the min keeps open. Only $c$ does, from 2 up to, but not including, 3.5.
# </details>
#
# ## Does it help?
#
# Back to the fifty answers. Now thirty batches in a row, each written by the policy of the moment. Each is used for thirty steps; one rival takes four.

# %%
def train(rule, steps, n=6, batches=30):
    """Chance to be right after each batch, (batches + 1, n)."""
    z, dice = start.repeat(n, 1), seeds(n)
    chance = [z.softmax(1) @ q]
    for _ in range(batches):
        z = climb(z, *draw(z, dice), rule, steps)[-1]
        chance.append(z.softmax(1) @ q)
    return torch.stack(chance)

arms = {"no clip, 30 steps": train(no_clip, 30),
        "clip and min, 30 steps": train(clip_and_min, 30),
        "no clip, 4 steps": train(no_clip, 4)}
pictures.training(arms, control=train(no_clip, 1), best=0.7)

# %% [markdown]
# Without a clip and with thirty steps, seeds freeze on one answer that was lucky early: with all probability in one place nothing else is ever tried. With
# PPO all six climb. But so they do with four steps and no clip at all. What, then, does the clip buy?

# %%
predict("ppo.4", "Same learning rate, 1 to 30 steps per batch. How does the "
        "result depend on that, without a clip and with PPO?",
        ["both get better with more steps",
         "without: a peak, then a fall; PPO: nearly flat",
         "without: always below PPO", "both peak at the same place"])

# %%
counts = (1, 2, 4, 8, 14, 30)
ends = {name: [train(rule, k, n=40)[-1].mean().item() for k in counts]
        for name, rule in rules.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
reveal("ppo.4", "without: a peak, then a fall; PPO: nearly flat",
       f"With four steps no clip reaches {max(ends['no clip']):.2f} and "
       f"beats PPO's best, {max(ends['clip and min']):.2f}. But you must "
       "know the four. With the clip you need not.",
       pictures.reuse_sweep(counts, ends, seeds=40))

# %% [markdown]
# And the `min`? In this toy the clip alone ends a little higher still. One prompt and fifty answers leave few tokens on the wrong side; the corner that the
# `min` opens matters more where tokens share weights. Here is such a case, a transformer with 0.3 million weights that adds up small numbers. Every arm reads the
# same number of answers:

# %%
pictures.answers_used()

# %% [markdown]
# * **Reuse pays.** Eight steps a batch and the clip: 0.87 to 0.91. One step a batch: 0.71 to 0.80, from as many answers.
# * **The clip adds to it.** Without: 0.79 to 0.82, each seed below each seed with it.
# * **A larger learning rate is not the same as more steps.** One step at eight times the rate ruins all three seeds.
#
# ## A brake, not a limit
#
# "The clip keeps the new policy near the old one." Test it. Four tokens with advantages 1, −1, 0, 0, equally likely, and a bold learning rate.

# %%
predict("ppo.5", "ONE step with learning rate 3. Without a clip the "
        "largest ratio comes to 3.63. And with PPO, ε = 0.2?",
        ["1.20", "a little above 1.2", "about 2", "3.63"])

# %%
def largest(rule, lr, steps):
    """The largest of four ratios after each step."""
    A = torch.tensor([1.0, -1.0, 0.0, 0.0])
    z, tops = torch.zeros(4), [1.0]
    for _ in range(steps):
        z = z.detach().requires_grad_()
        J = rule(4 * z.softmax(0), A).sum()              # old: 1/4 each
        z = z + lr * torch.autograd.grad(J, z)[0]
        tops.append(4 * z.softmax(0).max().item())
    return tops

two = {"no clip": no_clip, "clip and min": clip_and_min}
rates = [0.05 * i for i in range(1, 61)]
one = {name: [largest(rule, lr, 1)[-1] for lr in rates]
       for name, rule in two.items()}
many = {name: largest(rule, 0.05, 40) for name, rule in two.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
reveal("ppo.5", "3.63",
       "At the first step every ratio is 1, nobody is outside, and the two "
       "gradients are the same vector.",
       pictures.overshoot(rates, one, many))

# %% [markdown]
# On the right, forty small steps: here the clip does hold.

# %%
print("largest ratio with PPO after 3, 4 and 40 small steps:",
      [round(many["clip and min"][k], 4) for k in (3, 4, 40)])

# %% [markdown]
# A clip looks at where a token *is*, never at where the next step will put it. So it is no trust region:
#
# * **The first step is free.** The learning rate alone decides how far it goes.
# * **A silent token was late.** The fourth small step carried the good token from 1.16 to 1.22, past the edge, on its own push. Then its push is 0.
# * **A silent token still moves.** Its neighbours push, and they share a softmax: from 1.22 on to 1.23. In a network they share all weights, and the
#   optimizer's momentum carries on too.
# * **One corner is open on purpose.** Bad tokens that rise meet no wall.
#
# TRPO instead limits the mean KL between old and new policy, measures it after the step, and goes back if it is too large (05). PPO measures nothing. It
# takes away the *incentive* to go on.
#
# <details><summary>One level deeper: minibatches, epochs, and "pessimistic"</summary>
#
# * "With one epoch all ratios are 1" holds only for the first optimizer step. Cut the batch into four minibatches and from the second on they have moved.
# * If the sampling engine's probabilities differ from the trainer's, ratios are not 1 at the first step either (19).
# * A ratio is relative. From 0.0001 to 0.0002 leaves the band; from 0.99 to 0.80 does not. Rare tokens are cut first (12).
# * $J_t\le\rho_tA$: PPO is pessimistic about the *surrogate*. It is no lower bound on the return; statements page, A09 and A10, with a counterexample.
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | PPO | |
# |---|---|
# | sentence | use a batch many times; the clip stops tokens that have moved far enough the right way, the min lets the others come back |
# | formula | $\min(\rho A,\ \mathrm{clip}(\rho,1-\epsilon,1+\epsilon)A)$ |
# | silent | $A>0$ and $\rho>1+\epsilon$; $A<0$ and $\rho<1-\epsilon$ |
# | picture | the map: two silent quadrants out of four |
# | numbers | 8 tokens outside, 4 silent · one bold step goes to 3.63 with and without · forty small ones to 1.23 instead of 3.34 |
# | against REINFORCE | the surrogate is this page; the advantage comes in 07, the weights in 10 |

# %%
print(difference(ZOO["reinforce"], ZOO["ppo"]))
theirs = ZOO["ppo"](batch.replace(advantages=A4)).loss
ours = -clip_and_min(ratio, A16)[batch.mask].mean()
assert torch.allclose(theirs, ours, rtol=0, atol=1e-12)  # rlnb's PPO
score("ppo.1", "ppo.2", "ppo.3", "ppo.4", "ppo.5")

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 8 minutes. The push of one token, $\partial J_t/\partial\log\pi_\theta$: no `min`, no `clamp`, no autograd. Arguments are numbers; return one.
#
# <details><summary>hint</summary>Which term is the smaller, in each of three regions and for each sign? Does that term contain θ?</details>

# %%
def my_push(rho, A, epsilon):
    return ...

my_push(1.5, 1.0, 0.2)

# %% [markdown]
# **2 Implement** · 6 minutes. PPO's surrogate per element, to be maximised.
#
# <details><summary>hint</summary>Two products, then the smaller. Nothing depends on the sign by hand.</details>

# %%
def my_surrogate_clip(ratio, advantage, epsilon):
    return ...

check.surrogate_clip(my_surrogate_clip)

# %% [markdown]
# **3 Implement** · 6 minutes. The dual clip, per element. At $A=-1$, $\rho=5$, $c=3$: value −3, slope 0.
#
# <details><summary>hint</summary>What would the max with cA do to a good token? So where must it not act?</details>

# %%
def my_dual_clip(ratio, advantage, epsilon, c):
    return ...

check.dual_clip(my_dual_clip)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>Derive PPO's objective. Which line is not exact?</b></summary>
#
# It is the policy gradient on the old policy's samples, with one ratio per token instead of one per answer. Log trick and baseline; importance ratio of the
# answer, a product over tokens; keep each token's own ratio, the inexact line, right only at the old policy; then ρ∇log π = ∇ρ makes it the gradient of the sum
# of ρA. The clip and the min are put on top: engineering, not derived.
# </details>
# <details><summary><b>Why the min, when there is already a clip?</b></summary>
#
# Because the clip alone is flat on both sides for both signs, so a token that went the wrong way could not come back. With the min the slopes in the four
# corners are 0, 1, −1, 0.
# </details>
# <details><summary><b>Which tokens have no gradient?</b></summary>
#
# Good ones above 1 + ε and bad ones below 1 − ε. With dual clip also bad ones above c. And all with A = 0. On the first step after sampling none is cut.
# </details>
# <details><summary><b>Does the clip bound the update?</b></summary>
#
# No. The first step is the unclipped one, cut tokens move with their neighbours, and one corner is open. It is a brake over many steps. What bounds a step is the
# learning rate, gradient-norm clipping and the number of epochs.
# </details>
# <details><summary><b>Your clip fraction is 0. Is something broken?</b></summary>
#
# Not if each batch is used for one optimizer step: then all ratios are 1. With several steps it means steps too small to reach the band, or old log-probs that are
# recomputed at every step, which makes every ratio 1.
# </details>
#
# **Next: 07.** Who says how good a *token* was?
