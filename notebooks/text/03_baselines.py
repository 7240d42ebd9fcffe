# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 · Baselines: why may you subtract a number, and which number is best?
#
# **After this page** you can prove what a baseline does on average, compute the best fixed one, and
# say what a group of answers gives in its place.
#
# 32 minutes, then 14 in a second sitting · exercises 36 more · after 02 (REINFORCE) · Greensmith,
# Bartlett and Baxter 2004, *JMLR* 5 (the best baseline); Ahmadian et al. 2024,
# [arXiv 2402.14740](https://arxiv.org/abs/2402.14740) (leave-one-out)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. REINFORCE draws an answer y and earns R. How does it push?</summary>Along R ∇log π(y). Averaged over the draws that is the gradient of the expected reward, ∇J (02).</details>
# <details><summary>2. What is ∇log π(y) called, and what is it for a softmax over whole answers?</summary>The score. On the logits: 1 − π on the drawn answer, −π on each other one (02).</details>
# <details><summary>3. One grader pays 1 and 0, another 11 and 10. What do their pushes share, what not?</summary>The mean push is the same. Single pushes are not: under the second grader each draw pushes itself up by 10 or 11 (02).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
from itertools import product
import torch
from rlnb import check
from rlnb.classroom.explorers import three_pushes, ways_to_be_right
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import baselines as pictures
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: draw 4 answers, push the logits, 40 times, 400 seeds
start, earns = torch.tensor([0.3, 0.3, 0.4]), torch.tensor([1.0, 0.2, 0.0])
y4 = torch.cartesian_prod(*[torch.arange(3)] * 4)       # all 81 first draws
chance = start[y4].prod(1)
rates = [2.0 ** k for k in range(-4, 6)]

def train(b, rate, G=4, steps=40, seeds=400, optimiser=None):
    """Final probabilities (seeds, 3). b: a number, or a rule of p and r."""
    dice = torch.Generator().manual_seed(1)
    z = start.log().repeat(seeds, 1)
    for _ in range(steps):
        p = z.softmax(1)
        y = p.multinomial(G, True, generator=dice)          # (seeds, G)
        r = earns[y]
        A = r - (b(p, r) if callable(b) else b)
        push = torch.zeros_like(p).scatter_add(1, y, A)
        step = (push - A.sum(1, keepdim=True) * p) / G
        z = z + rate * (step if optimiser is None else optimiser(step))
    return z.softmax(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: a sweep of learning rates
def sweep(b):
    """Mean reward at the end, (rates, seeds)."""
    return torch.stack([train(b, rate) @ earns for rate in rates])

# %% [markdown]
# ## Ten points for everybody
#
# One prompt has three possible answers. The good one earns 1, the poor one 0.2, the wrong one 0.
# The policy is a softmax over three logits, and starts at probabilities 0.3, 0.3, 0.4. A step draws
# four answers and moves the logits along the average of $R\,\nabla\log\pi(y)$. A run is 40 steps.
#
# A second grader gives every answer ten points more: 11, 10.2, 10. Its mean push is the same (02).
# We train with both, at ten learning rates.

# %% jupyter={"source_hidden": true}
# the picture
graders = {"rewards 1, 0.2, 0": 0, "rewards 11, 10.2, 10": -10}
lines = {name: sweep(b) for name, b in graders.items()}
pictures.rate_lines(rates, {"": lines}, (start @ earns).item(), (
    "The ten points are taken off again before plotting. 400 seeds; bars, "
    "where they can be seen, are two standard errors."))

# %% [markdown]
# In these 40 steps the second grader ends below at every rate, at most of them far below. How does
# a single run end?

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.1", "Look at the 400 runs of the second grader at "
        "learning rate 1. After 40 steps, a typical run is ...",
        ["unsure: the steps cancel, the chances stay near the start",
         "sure of one answer, and that may be any of the three",
         "sure of the good or the wrong answer, hardly ever of the poor",
         "restless: sure of one answer, a few steps later of another"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
at_one = 100 * (train(-10, 1.0) > 0.9).double().mean(0)
slow = (train(-10, 1 / 256, steps=10_000) @ earns).mean().item()

score_of = torch.eye(3) - start                  # row y: of answer y
push_of = (earns + 10)[:, None] * score_of
along = push_of[y4].mean(1) @ (start @ push_of)
away = 100 * chance[along < 0].sum().item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.1",
       "sure of one answer, and that may be any of the three",
       f"In {at_one.sum():.0f} % of the runs one answer ends above 0.9: "
       "the good one in {:.0f} %, the poor one in {:.0f} %, the wrong one "
       "in {:.0f} %. ".format(*at_one.tolist()) + "Half of the first "
       f"steps, {away:.0f} %, lead away from where the mean push points, "
       "so luck decides which answer gains. A sure policy draws hardly "
       "any other answer, and its own score is nearly 0: it stays. **In "
       "the log, entropy falls and the reward hardly rises.** With rate "
       f"1/256 and 10,000 steps the mean reward reaches {slow:.2f}: noisy, "
       "not biased.",
       instead={
           "unsure: the steps cancel, the chances stay near the start":
           "Luck cancels in the mean of many runs. In one run it adds up, "
           "like a random walk.",
           "sure of the good or the wrong answer, hardly ever of the poor":
           "For that, a few steps would have to tell 10.2 from 10.",
           "restless: sure of one answer, a few steps later of another":
           "To change, a policy must draw another answer. A sure one "
           "hardly does."})

# %% [markdown]
# If adding ten points ruins a run, which number may one subtract, and which should one?

# %% [markdown]
# ## What subtracting does on average
#
# Subtracting a fixed number $b$ takes $b\,\nabla\log\pi(y)$ from the push of answer $y$. On average
# that is
#
# $$\begin{aligned}
# \mathbb E\big[b\,\nabla\log\pi(y)\big]&=\textstyle\sum_y\pi(y)\;b\;\nabla\log\pi(y)&&\text{a mean over the policy's own draws}\\
# &=b\,\textstyle\sum_y\pi(y)\,\nabla\log\pi(y)&&\text{the one condition: }b\text{ is the same whatever }y\text{ is drawn}\\
# &=b\,\textstyle\sum_y\nabla\pi(y)&&\nabla\log\pi=\nabla\pi/\pi\ (02)\\
# &=b\,\nabla\textstyle\sum_y\pi(y)=b\,\nabla1=0&&\text{probabilities sum to one}\\[4pt]
# \nabla J&=\mathbb E\big[(R-b)\,\nabla\log\pi(y)\big]&&\textbf{a choice: which } b
# \end{aligned}$$
#
# $b$ is the **baseline**, $A=R-b$ the **advantage** of the answer, and the estimate stays
# **unbiased**. The second line holds the condition: **the baseline must be settled without looking
# at this answer.** It may depend on the prompt and on other answers drawn independently.
#
# **And for a single token?** Fix the tokens before it. Then a $b$ that depends on them is one
# number, the same four lines hold for the next token's score, and the mean is 0 for every such
# beginning. So a token's baseline may use its prefix, as V does (07).
#
# Here are the pushes for three baselines: a row for each answer drawn, a column for each logit.

# %%
pi, R = torch.tensor([0.3, 0.3, 0.4]), torch.tensor([1.0, 0.2, 0.0])
scores = torch.eye(3) - pi                  # row y: the score of answer y

def pushes(b):
    """Row y: the push when y is drawn and b is subtracted."""
    return (R - b)[:, None] * scores

# %% jupyter={"source_hidden": true}
# the picture
pictures.push_table({f"b = {b:g}": pushes(b) for b in (0, 0.36, 1)},
                    pi.tolist(), (
    "Blue raises a logit, orange lowers it. The single pushes change with "
    "b; their mean, framed, does not."))

# %% [markdown]
# ## What it does to a single step
#
# All these $b$ share one mean push. How far do single pushes stray from it? The **noise** of one
# answer is the mean squared distance of a push from the mean push, over the squared length of the
# mean push. At noise 3, one must average three answers until their typical error is as long as the
# mean push itself (02).

# %%
def noise(b):
    """Of one answer: mean squared distance over squared mean push."""
    push = pushes(b)                                        # (3, 3)
    mean = pi @ push
    return (pi @ (push - mean).square().sum(1) / (mean @ mean)).item()

# ten points more, nothing subtracted: R + 10 is R - (-10)
print(f"first grader {noise(0):.2f}, second grader {noise(-10):.0f}")

# %% [markdown]
# One answer under the first grader is worth some four hundred under the second.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.2", "Stay with the first grader. Order these "
        "baselines by their noise, least first: 0, the mean reward 0.36, "
        "0.7, and the best reward, 1.",
        ["0.36, 0.7, 0, 1", "0.36, 0, 0.7, 1", "1, 0.7, 0.36, 0",
         "0, 0.36, 0.7, 1"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.2", "0.36, 0.7, 0, 1",
       f"{noise(0.36):.2f}, {noise(0.7):.2f}, {noise(0):.2f}, "
       f"{noise(1):.2f}. A baseline can *raise* the noise, as 1 does. And "
       "\"no baseline\" does not exist: it is the baseline 0, which is "
       "good or bad like any other. Even 0.7, too high by far, is better.",
       pictures.noise_parabola(
           {"0": 0.0, "mean reward": 0.36, "0.7": 0.7, "1": 1.0}),
       instead={
           "0.36, 0, 0.7, 1":
           "0.7 misses the mean reward by as much as 0 does, and yet it is "
           "the quieter: the bottom lies a little above the mean.",
           "1, 0.7, 0.36, 0":
           "A high b leaves little of good rewards, but turns bad ones "
           "into large penalties.",
           "0, 0.36, 0.7, 1":
           "Subtracting can also take noise away: the part that all "
           "rewards share.",
       })

# %% [markdown]
# ## The best number
#
# Where is the bottom of this parabola? ($\nabla J$ has no $b$ in it.)
#
# $$\begin{aligned}
# \text{noise}\cdot\lVert\nabla J\rVert^2&=\mathbb E\lVert(R-b)\nabla\log\pi\rVert^2-\lVert\nabla J\rVert^2&&\text{mean squared distance = mean square − square of the mean}\\
# &=b^2\,\mathbb E\lVert\nabla\log\pi\rVert^2-2b\,\mathbb E\big[R\lVert\nabla\log\pi\rVert^2\big]+\text{const}&&\text{multiply out}\\
# b^\star&=\frac{\mathbb E\big[\lVert\nabla\log\pi\rVert^2R\big]}{\mathbb E\lVert\nabla\log\pi\rVert^2}&&\text{set the slope in }b\text{ to 0}
# \end{aligned}$$
#
# **The best fixed baseline is a weighted mean of the rewards: an answer's weight is its chance
# times the squared length of its score.** If all scores are equally long, it *is* the mean reward.
# Here the two nearly agree: 0.40 and 0.36.
#
# Now let training go on, until the good answer has 0.8 and the other two share the rest, 3 to 4.
# The mean reward has risen to 0.82. <!-- cited: 0.8, 0.82 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.6", "Where is the best baseline now? It was 0.40, and "
        "the rewards are still 1, 0.2 and 0.",
        ["about 0.2: it falls while the mean reward rises",
         "about 0.4: it stays, as the three rewards do",
         "about 0.6: it follows the mean reward, at half the pace",
         "about 0.8: it follows the mean reward all the way"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def weights(good):
    """Chance times squared score, adding to 1; and the squared scores."""
    p = torch.tensor(three_pushes.compute(good=good)["probabilities"])
    size = (torch.eye(3) - p).square().sum(1)
    return (p * size / (p @ size)).tolist(), size.tolist()

late = three_pushes.compute(good=0.8)
(at_first, _), (now, size) = weights(0.3), weights(0.8)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.6", "about 0.2: it falls while the mean reward rises",
       "A sure policy hardly moves when it draws the good answer: the "
       f"squared length of that score is {size[0]:.2f}, against "
       f"{size[1]:.2f} and {size[2]:.2f} for the failures. So the weights "
       "of good, poor and wrong, {:.2f}, {:.2f} and {:.2f} at the start, "
       "are now {:.2f}, {:.2f} and {:.2f}, and ".format(*at_first, *now)
       + f"{now[0]:.2f} · 1 + {now[1]:.2f} · 0.2 + {now[2]:.2f} · 0 = "
       f"{late['best']:.2f}. The mean reward has noise "
       f"{late['at_mean']:.2f}, six times the {late['none']:.2f} of b = 0.",
       instead={
           "about 0.4: it stays, as the three rewards do":
           "The rewards stay, but their weights change.",
           "about 0.6: it follows the mean reward, at half the pace":
           "It would rise only if the good answer's weight did. That "
           f"weight falls, from {at_first[0]:.2f} to {now[0]:.2f}.",
           "about 0.8: it follows the mean reward all the way":
           "It was close because the scores were about equally long. Now "
           "the good answer's score is short.",
       })

# %% [markdown]
# **The surer this policy is of its one good answer, the closer $b^\star$ comes to the mean reward
# of its failures**: 0.12 at π(good) = 0.95, where failures earn 0.09 on average.
# <!-- cited: 0.95, 0.12, 0.09 -->

# %% jupyter={"source_hidden": true}
# the explorer
task("baselines.t1", three_pushes.three_pushes_explorer(),
     ("Set a b at least 0.1 above the mean reward that is less noisy than "
      "the mean reward. Predict first: for which policies is there one?",
      three_pushes.above_the_mean_and_quieter))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# A policy that seldom draws the good answer. Now that score is the long one: at π(good) = 0.15 the
# good answer has the weight 0.27, and $b^\star$ lies above the mean reward.
# <!-- cited: 0.15, 0.27 -->
# </details>
#
# Whether b = 0 beats the mean reward depends on where the grader's zero is. With 0.4 points more
# for everybody it no longer does at π(good) = 0.8. <!-- cited: 0.4, 0.8 -->
#
# Why is the mean the usual choice? $b^\star$ needs the squared gradient of every single answer, one
# backward pass each; a mean of rewards costs nothing.

# %% [markdown]
# ## Who knows the mean reward?
#
# It has to be estimated. Draw $G$ answers to the same prompt, a **group**. As its baseline, give
# each answer the mean reward of the *other* $G-1$ answers. This is **leave-one-out** (RLOO).
# Two right and two wrong answers get these advantages:

# %%
def leave_one_out(R):
    return R - (R.sum() - R) / (len(R) - 1)

print(leave_one_out(torch.tensor([1.0, 1.0, 0.0, 0.0])))

# %% [markdown]
# The three others of a right answer earned 1, 0 and 0, so its $b$ is a third. This $b$ is drawn by
# chance, but without looking at $y$:
#
# $$\mathbb E\big[b\,\nabla\log\pi(y)\big]=\mathbb E[b]\;\mathbb E\big[\nabla\log\pi(y)\big]=0\qquad\text{the others are drawn independently of }y$$
#
# (GRPO subtracts the mean of *all* $G$ rewards. That gives the same advantages, times
# $\frac{G-1}G$: here 0.5 in place of 0.6667.)
#
# What does estimating cost? A step averages $G$ pushes. To compare groups of different size, we
# count the noise **per answer**: a step's noise times $G$.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.3", "Noise per answer: 1.08 with the mean reward, 2.85 "
        "with b = 0, 4.98 with b = 1. And with the smallest group, G = 2, "
        "where b is the reward of the other answer?",
        ["about 1.1: on average, b is the mean reward",
         "about 2.2: twice, as two rewards are noisy in place of one",
         "about 3.1: the mean of the noises at b = 1, 0.2 and 0",
         "about 4.1: more than with b = 0"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def group_push(rule, G, R=R):
    """All 3^G groups: the mean push, and the noise per answer."""
    mean, square = torch.zeros(3), 0.0
    for y in product(range(3), repeat=G):
        y = torch.tensor(y)
        push = (rule(R[y])[:, None] * scores[y]).mean(0)
        mean = mean + pi[y].prod() * push
        square = square + pi[y].prod() * (push @ push)
    return mean, (G * (square / (mean @ mean) - 1)).item()

sizes = (2, 3, 4, 6, 8)
found = [group_push(leave_one_out, G) for G in sizes]
assert all(torch.allclose(mean, pi @ pushes(0)) for mean, _ in found)
spread = sum(p * noise(b) for p, b in zip(pi.tolist(), R.tolist()))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.3", "about 4.1: more than with b = 0",
       f"With the mean reward known it is {noise(0.36):.2f}. That b is 1, "
       f"0.2 or 0 from pair to pair adds {spread - noise(0.36):.2f}. And "
       "the two pushes are $(R_1-R_2)\\nabla\\log\\pi(y_1)$ and "
       "$(R_2-R_1)\\nabla\\log\\pi(y_2)$: one difference in both, so they "
       "do not average out as independent ones would. That adds "
       f"{found[0][1] - spread:.2f}. Together {found[0][1]:.2f}. In this "
       "toy the group beats b = 0 from G = 3 on. (With ten points more for "
       f"all, a pair still has {found[0][1]:.2f}, and b = 0 has "
       f"{noise(-10):.0f}.)",
       pictures.group_sizes(sizes, [n for _, n in found]),
       instead={
           "about 1.1: on average, b is the mean reward":
           "It is, on average. But the noise grows with the square of its "
           "error.",
           "about 2.2: twice, as two rewards are noisy in place of one":
           "The other reward is not added to a push. It is in b, which "
           "multiplies the whole score.",
           "about 3.1: the mean of the noises at b = 1, 0.2 and 0":
           "So it would be with a b drawn on its own. Here the two answers "
           "are each other's baseline, and that costs one more.",
       })

# %% [markdown]
# <details><summary>One level deeper: the price of not knowing the mean</summary>
#
# Write $\mu$ for the mean reward. Leave-one-out has noise per answer
#
# $$\text{noise}(\mu)+\frac1{G-1}\Big(\frac{\mathrm{Var}(R)\;\mathbb E\lVert\nabla\log\pi\rVert^2}{\lVert\nabla J\rVert^2}+1\Big).$$
#
# The first part of the price is the variance of $b$, which is $\mathrm{Var}(R)/(G-1)$, times the
# mean squared score. The +1 is there because each answer is in the others' baselines. At $G=2$ the
# two pushes have the mean product $2\lVert\nabla J\rVert^2$; independent ones would have
# $\lVert\nabla J\rVert^2$, one less.
# </details>
#
# **A group estimates its prompt's mean reward without a second model. The price falls like
# $1/(G-1)$.**

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | baseline | |
# |---|---|
# | sentence | subtract a number settled without looking at the answer: the mean push stays, the noise does not |
# | formula | $\mathbb E[b\,\nabla\log\pi]=b\,\nabla\sum\pi=0$ |
# | best fixed one | $b^\star=\mathbb E[\lVert\nabla\log\pi\rVert^2R]\,/\,\mathbb E\lVert\nabla\log\pi\rVert^2$ |
# | picture | a parabola: less noise than b = 0 only between 0 and $2b^\star$ |
# | far off (toy) | ten points for all: noise 1194, not 2.85; runs grow sure of an answer that luck chose |
# | sure policy, one right string | the good answer's score is short, so $b^\star$ goes to what failures earn |
# | estimate | leave-one-out: right on average; the price falls like 1/(G − 1) |

# %%
score("baselines.1", "baselines.2", "baselines.6", "baselines.3")

# %% [markdown]
# ## Second sitting: GRPO's std, many right answers, and does less noise train better?
#
# ### What does GRPO's std do?
#
# GRPO also divides a group's advantages by the std of its rewards. The std looks at the answer's
# own reward, so the proof does not cover it. Go back to the rewards 1, 0.2 and 0 at 0.3, 0.3 and
# 0.4. There the true mean push on the poor answer is −0.05; with $G=2$ and the mean of both
# subtracted it is half as long, −0.02.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.5", "Now divide by the std of the two rewards, which "
        "is half their distance. The mean push on the poor answer's logit?",
        ["−0.10", "−0.05", "+0.03", "+0.10"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def all_of_group(R):
    return R - R.mean()

def zscore(R):
    return all_of_group(R) / (R.std(correction=0) + 1e-6)

truth, one_right = pi @ pushes(0), torch.tensor([1.0, 0.0, 0.0])
(shorter, _), (divided, _) = (group_push(f, 2)
                              for f in (all_of_group, zscore))
assert round(shorter[1].item(), 3) == -0.024
assert round(divided[1].item(), 2) == 0.03
turn = [torch.cosine_similarity(truth, group_push(zscore, G)[0], 0)
        for G in (2, 8)]
binary = torch.cosine_similarity(pi * (one_right - pi @ one_right),
                                 group_push(zscore, 2, one_right)[0], 0)
assert binary > 1 - 1e-9

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.5", "+0.03",
       "Two unequal rewards become +1 and −1, so at G = 2 it only counts "
       "who won. Poor beats wrong more often than it loses to "
       "good, so it goes *up*. The turn shrinks with G: the cosine with "
       f"the gradient is {turn[0]:.3f} at G = 2, {turn[1]:.3f} at G = 8. "
       "With rewards 0 and 1 and one prompt there is no turn: a right "
       "answer's advantage averages to some $a_+$, a wrong one's to some "
       "$a_-$, and the mean push is $(a_+-a_-)\\nabla J$.",
       instead={
           "−0.10":
           "Each advantage does grow, as the std is at most 0.5. But "
           "poor's wins over wrong grow most.",
           "−0.05":
           "That is −0.02 over a std of 0.5. Between poor and wrong the "
           "std is only 0.1.",
           "+0.10":
           "The sign is right. But poor also loses to good: in 18 % of the "
           "pairs, against 24 % in which it beats wrong.",
       })

# %% [markdown]
# **The group's mean is covered by the proof, up to the factor (G − 1)/G. The std is not.** What it
# does across prompts: 08 and 09.
#
# <details><summary>One level deeper: answers of many tokens, and groups of equal rewards</summary>
#
# * A long answer's score is a sum over its tokens, so its squared length grows with the number of
#   tokens. In $b^\star$ long answers then weigh more. Nobody computes that; the mean reward stands
#   in for it.
# * All $G$ rewards equal: every advantage is 0, with leave-one-out as with the group's mean. The
#   answers were paid for and teach nothing (11). With the std it would be 0/0, so a small number
#   (1e-6) is added to it.
# </details>

# %% [markdown]
# ### When does a group help?
#
# A language model has many wordings for a right answer. So here is a second toy. Several right
# answers share the chance $p$, and twenty wrong answers share the rest. A right answer earns 1, a
# wrong one 0. As the sliders stand, leave-one-out beats $b=0$.

# %% jupyter={"source_hidden": true}
# the explorer
task("baselines.t2", ways_to_be_right.ways_to_be_right_explorer(),
     ("Ten right answers or more and G = 8 or more, and yet leave-one-out "
      "is noisier than b = 0. Predict first: at a high p, or at a low one?",
      ways_to_be_right.hurts_all_the_same))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Take p below 1/G. With scores of equal length, the mean squared push is proportional to $p$ at
# b = 0, and nearly to $p(1-p)\frac G{G-1}$ with leave-one-out. That is less once $p\gt1/G$.
# </details>
#
# **With many right wordings, a group of $G$ lowers the noise once $p$ is above about $1/G$**: once
# the group may expect a right answer. Even a sure policy then still moves when it draws a right
# answer, from one wording to another, so that score is not short. With a single right string
# among twenty wrong ones a group of 8 is noisier than b = 0 at every $p$. (Among few wrong ones it
# need not be: in the first toy it was not, at the start.)

# %% [markdown]
# ### Which baseline trains better?
#
# Back to three answers. Train from 0.3, 0.3, 0.4 with b = 0, and with the policy's own mean reward,
# computed anew at each step: quieter at first, six times as noisy late.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.4", "Train with b = 0 and with the mean reward, at ten "
        "learning rates from low to high. Compare the ends.",
        ["level at low rates, then b = 0 ends higher",
         "b = 0 ends higher at low rates, then level",
         "the mean reward ends higher at low rates, then level",
         "level at low rates, then the mean reward ends higher"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def mean_reward(p, r):
    return (p @ earns)[:, None]

rules = {"b = 0": 0, "mean reward": mean_reward}
runs = {name: sweep(b) for name, b in rules.items()}
poor = [100 * (train(b, 32.0)[:, 1] > 0.9).double().mean().item()
        for b in (0, mean_reward)]

def uphill(b, good):
    """Each draw's push along the mean push, which counts as 1."""
    data = three_pushes.compute(b, good)
    push, mean = (torch.tensor(data[k]) for k in ("push", "expected"))
    return push @ mean / (mean @ mean)

ways = {"b = 0": uphill(0, 0.3), "mean reward": uphill(0.36, 0.3)}
assert ways["b = 0"][1] < 0 < ways["mean reward"].min()
lost = train(0, 32.0)[:, 1] > 0.9                # by step 3 they are
assert (train(0, 32.0, steps=3)[lost, 0] < 0.05).all()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.4",
       "level at low rates, then the mean reward ends higher",
       "From rate 16 on some runs with b = 0 are lost: at 32 {:.0f} % end "
       "sure of the poor answer, with the mean reward {:.0f} %. All of "
       "them were lost in their first three steps. There the mean reward "
       "is the quieter one.".format(*poor),
       pictures.rate_lines(
           rates, {"": runs}, (start @ earns).item(),
           "All ten rates, 400 seeds."),
       instead={
           "level at low rates, then b = 0 ends higher":
           "So the late noise says. But by then the run is decided.",
           "b = 0 ends higher at low rates, then level":
           "Low rates average over many draws: only the mean push counts.",
           "the mean reward ends higher at low rates, then level":
           "At low rates the noise averages out, early and late.",
       })

# %% [markdown]
# How much of the mean push is in each single push, at the start?

# %% jupyter={"source_hidden": true}
# how far each push points uphill, folded
print("push along the mean push, which is 1; negative is downhill")
print("drawn           good   poor  wrong")
for name, way in ways.items():
    print(f"{name:12s}" + "".join(f"{x:7.2f}" for x in way))

# %% [markdown]
# With the mean reward each push leads uphill. With b = 0 the poor answer leads downhill, and at a
# rate of 32 a few such draws, without a good one, make that final. Late in training the mean
# reward's noise is six times as large, and does no harm. **Noise counts where runs are decided.
# Here that is the start.** (Nor is noise all: Chung et al. 2021,
# [arXiv 2008.13773](https://arxiv.org/abs/2008.13773), show baselines of equal noise that learn
# differently.)

# %% [markdown]
# ### Does Adam, or clipping the gradient, replace the baseline?
#
# Ten points more for everybody, once more: we subtract nothing, and then 10.40, each at the best of
# sixteen rates.

# %% jupyter={"source_hidden": true}
# the run, folded
def clipped(step):
    return step / (step.norm(dim=1, keepdim=True) / 0.1).clamp(min=1)

class Adam:
    m, v, t = 0.0, 0.0, 0
    def __call__(self, g):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.999 * self.v + 0.001 * g**2
        m, v = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
        return m / (v.sqrt() + 1e-8)

print("mean reward     nothing    10.40")
for name, new in (("plain steps", lambda: None), ("Adam", Adam),
                  ("clipped at 0.1", lambda: clipped)):
    best_of = [max((train(b, 2.0**k, optimiser=new()) @ earns).mean()
                   for k in range(-8, 8)) for b in (-10, 0.40)]
    print(f"{name:15s} {best_of[0]:7.1f} {best_of[1]:8.1f}")

# %% [markdown]
# Neither does here: both rescale steps, and neither takes the ten points out of them. **The case
# to fear is a reward model whose zero is arbitrary, used without a baseline.**

# %%
score("baselines.5", "baselines.4")

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 6 minutes. The best baseline from any table: `scores` (N, D) holds the score of
# each of $N$ answers over $D$ parameters, `rewards` and `probs` are (N,). One number comes back.
#
# <details><summary>hint</summary>Two expectations over answers, one divided by the other. The squared length is a sum over the D parameters, done first.</details>

# %% tags=["exercise"]
def my_optimal_baseline(scores, rewards, probs):
    return ...

check.optimal_baseline(my_optimal_baseline)

# %% [markdown]
# **2 Implement** · 10 minutes. Measure the noise in a real run, where nobody knows the mean push.
# You have the gradients of $N$ independent answers, (N, D). Beware twice: distances from *their*
# mean are too small on average, and the squared length of their mean is too large, by the variance
# of that mean. (This noise is the *simple noise scale* of
# [1812.06162](https://arxiv.org/abs/1812.06162).)
#
# <details><summary>hint</summary>Total variance: squared strays from the sample mean, over N − 1. The mean of N answers has an N-th of it.</details>

# %% tags=["exercise"]
def my_noise(gradients):
    return ...

check.noise_scale(my_noise)

# %% [markdown]
# **3 Derive** · 12 minutes. The second toy with so many wrong answers that each is negligible: $k$
# right answers share the chance $p$. Find the best baseline. What is it for $k=1$, and for many?
#
# <details><summary>hint</summary>The score of an answer has 1 − π at its own place and −π at every other. Square and add: once for a right answer, once for a wrong one.</details>

# %% tags=["exercise"]
def my_best(p, k):
    return ...

check.shared_baseline(my_best)

# %% [markdown]
# **4 Find the silent bug** · 8 minutes. Leave-one-out for one group. All signs are right, ten
# points for everybody change nothing, equal rewards give 0, and it trains:

# %%
print(check.silent_bug_baselines.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>The proof has one condition. Which number must not move when only your own reward changes?</details>

# %% tags=["exercise"]
def my_test(advantages):
    return ...

check.silent_bug_baselines(my_test)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>Prove that a baseline is free. What may it depend on?</b></summary>
#
# The score has mean zero: E[b ∇log π] = b Σ π ∇log π = b Σ ∇π = b ∇1 = 0. So b may depend on
# anything settled without looking at this answer: the prompt, other independent answers; for a
# token, on the tokens before it. "Free" means the mean. The noise is a parabola in b, lower than at
# b = 0 only between 0 and twice the best one.
# </details>
# <details><summary><b>Which baseline has the least noise? Is it the mean reward?</b></summary>
#
# The mean reward with each answer weighted by its squared score. It is the mean reward if all
# scores are equally long. If a policy is sure of one answer, that answer's score is short, and the
# best number lies near what failures earn. In our toy the mean reward then had six times the noise
# of b = 0, since failures earned about 0.
# </details>
# <details><summary><b>Then why not estimate the best one?</b></summary>
#
# It is dear, and a small group estimates it badly. It needs the squared gradient of every answer by
# itself, one backward pass each. From the same group it must leave out the answer itself, or it is
# biased. And once a policy is sure, the failures, which have most of the weight, are often missing
# from the group.
# </details>
# <details><summary><b>64 answers: 8 prompts × 8, or 32 × 2? Group mean, or batch mean?</b></summary>
#
# Within a prompt, not knowing the mean costs 1/(G − 1) of Var(R) times the squared score: all of it
# at 2, a seventh at 8. More prompts average out the differences between prompts instead. A batch
# mean has hardly any such price, but its b is too low for easy prompts and too high for hard ones:
# that spread, squared, goes into the noise. So I take groups where prompts differ much.
# </details>
# <details><summary><b>Where does the number come from in practice?</b></summary>
#
# From other answers to the same prompt. Leave-one-out averages their rewards; its price falls like
# 1/(G − 1). Or from a critic, a network trained to predict the reward (07). Or from the greedy
# answer's reward (ReMax), one more answer. The mean of a batch of prompts is valid, too (with the
# answer in it the push only shrinks by 1/N), but the spread between easy and hard prompts stays in
# the noise.
# </details>
# <details><summary><b>GRPO's mean contains your own reward. Is it biased? And the std?</b></summary>
#
# The mean only shortens the push, by (G − 1)/G, at equal noise. The std is harmless with 0/1
# rewards and one prompt: it changes the length. With graded rewards it turns the push: at G = 2
# only who won counts, and an answer below average can go up. In our toy that shrinks as G grows.
# Across prompts it re-weights them (08, 09).
# </details>
# <details><summary><b>Late in training the mean reward can be noisier than b = 0. Why use it?</b></summary>
#
# It moves with the grader's zero; b = 0 does not, so with ten points more b = 0 is hundreds of
# times noisier. And noise counts where runs are decided. In our toy that was the start, where the
# mean reward was the quieter one: all runs that b = 0 lost, at rates beyond the best, it lost in
# the first three steps. Its late noise did no harm.
# </details>
#
# The sentences that one hears about baselines, true or not:
# [statements 03](statements/03_baselines.ipynb). The exercises, solved:
# [solutions 03](solutions/03_baselines.ipynb).
#
# **Next:** [04 · Importance sampling](04_importance_sampling.ipynb). The answers were drawn by an
# older policy. What then?
