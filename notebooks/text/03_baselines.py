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
# say when the usual one makes things worse.
#
# 38 minutes, then 16 in a second sitting · exercises 36 more · after 02 (REINFORCE) · Greensmith,
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
    """Final probabilities (seeds, 3) with the fixed baseline b."""
    dice = torch.Generator().manual_seed(1)
    z = start.log().repeat(seeds, 1)
    for _ in range(steps):
        p = z.softmax(1)
        y = p.multinomial(G, True, generator=dice)          # (seeds, G)
        A = earns[y] - b
        push = torch.zeros_like(p).scatter_add(1, y, A)
        step = (push - A.sum(1, keepdim=True) * p) / G
        z = z + rate * (step if optimiser is None else optimiser(step))
    return z.softmax(1)

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
# In 40 steps, none of these rates rescues the second grader. How does a single run end?

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.1", "Look at the 400 runs of the second grader at "
        "learning rate 1. After 40 steps, a typical run is ...",
        ["unsure: the steps cancel, the chances stay near the start",
         "sure of one answer, and that may be any of the three",
         "sure of the good or the wrong answer, hardly ever of the poor",
         "restless: sure of one answer, a few steps later of another"])

# %%
pi, R = torch.tensor([0.3, 0.3, 0.4]), torch.tensor([1.0, 0.2, 0.0])
scores = torch.eye(3) - pi                  # row y: the score of answer y

def pushes(b):
    """Row y: the push when y is drawn and b is subtracted."""
    return (R - b)[:, None] * scores

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
sure = {name: torch.stack([(train(b, rate) > 0.9).double().mean(0)
                           for rate in rates])
        for name, b in graders.items()}
at_one = 100 * sure["rewards 11, 10.2, 10"][rates.index(1.0)]
slow = (train(-10, 1 / 256, steps=10_000) @ earns).mean().item()

along = pushes(-10)[y4].mean(1) @ (pi @ pushes(-10))
away = 100 * chance[along < 0].sum().item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.1",
       "sure of one answer, and that may be any of the three",
       f"In {at_one.sum():.0f} % of the runs one answer ends above 0.9: "
       "the good one in {:.0f} %, the poor one in {:.0f} %, the wrong one "
       "in {:.0f} %. ".format(*at_one.tolist()) + "The first step goes "
       f"*against* the mean push in {away:.0f} % of the cases, so luck "
       "decides which answer gains. And a sure policy draws hardly "
       "anything but one answer, whose score is nearly 0: it stays where "
       "it is. **In the log, entropy falls and the reward hardly rises.** "
       "The second grader is slow, not biased: at rate 1/256 and 10,000 "
       f"steps it reaches {slow:.2f}.", pictures.ends(rates, sure, (
           "Which answer has more than 0.9 at the end. With the second "
           "grader it may be any of the three.")),
       instead={
           "unsure: the steps cancel, the chances stay near the start":
           "Luck cancels in the mean of many runs. In one run it adds up, "
           "like a random walk.",
           "sure of the good or the wrong answer, hardly ever of the poor":
           "For that, steps would have to tell 10.2 from 10.",
           "restless: sure of one answer, a few steps later of another":
           "To change, a policy must draw another answer. A sure one "
           "hardly does."})

# %% [markdown]
# If adding ten points ruins a run, which number should one subtract? And which numbers may one?

# %% [markdown]
# ## What subtracting does on average
#
# Which numbers leave the mean push alone? Subtracting a fixed number $b$ takes
# $b\,\nabla\log\pi(y)$ from the push of answer $y$. On average that is
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
# at this answer.** It may depend on the prompt, on other answers drawn independently, and for a
# token on the tokens before it. (With those given, the same lines hold for the next token.)
#
# Here are the pushes for three baselines: a row for each answer drawn, a column for each logit.

# %% jupyter={"source_hidden": true}
# the picture
pictures.push_table({f"b = {b:g}": pushes(b) for b in (0, 0.36, 1)},
                    pi.tolist(), (
    "Blue raises a logit, orange lowers it. The single pushes change with "
    "b; their mean, framed, does not."))

# %% [markdown]
# With $b=0$, drawing the wrong answer does nothing. With $b=1$, drawing the good one does nothing.

# %% [markdown]
# ## What it does to a single step
#
# All these $b$ share one mean push. How far do single pushes stray from it? Page 02 counted the
# answers it takes until the error of their average is as long as the mean push itself. We call this
# number the **noise** of one answer: the mean squared distance of a push from the mean push, over
# the squared length of the mean push.

# %%
def noise(b):
    """Of one answer: mean squared distance over squared mean push."""
    push = pushes(b)                                        # (3, 3)
    mean = pi @ push
    return (pi @ (push - mean).square().sum(1) / (mean @ mean)).item()

print(f"first grader {noise(0):.2f}, second grader {noise(-10):.0f}")

# %% [markdown]
# One answer under the first grader is worth some four hundred under the second.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.2", "Stay with the first grader. Order these "
        "baselines by their noise, least first: 0, the mean reward 0.36, "
        "the best reward 1.",
        ["1, 0.36, 0: the higher the bar, the less is left over",
         "0.36, 1, 0: any baseline beats b = 0",
         "0.36, 0, 1: a bar can be too high",
         "0, 0.36, 1: what you subtract adds noise"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.2", "0.36, 0, 1: a bar can be too high",
       f"{noise(0.36):.2f}, {noise(0):.2f}, {noise(1):.2f}. A baseline can "
       "*raise* the noise. And \"no baseline\" does not exist: it is the "
       "baseline 0, which is good or bad like any other.",
       pictures.noise_parabola({"0": 0.0, "mean reward": 0.36, "1": 1.0}),
       instead={
           "1, 0.36, 0: the higher the bar, the less is left over":
           "A high bar leaves little of good rewards, but turns bad ones "
           "into large penalties.",
           "0.36, 1, 0: any baseline beats b = 0":
           "b = 0 is a baseline like any other, and b = 1 is further off.",
           "0, 0.36, 1: what you subtract adds noise":
           "It can also take noise away: the part that all rewards share.",
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
# **The best fixed baseline is the mean reward in which each answer also counts by the squared
# length of its score.** If all scores are equally long, it *is* the mean reward. Here the two
# nearly agree: 0.40 and 0.36.
#
# Now let training go on, until the good answer has 0.8 and the other two share the rest, 3 to 4.
# The mean reward has risen to 0.82.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.6", "Where is the best baseline now? It was 0.40, and "
        "the rewards are still 1, 0.2 and 0.",
        ["about 0.2: the rare answers count more",
         "about 0.4: the rewards are what they were",
         "about 0.6: half way to the new mean reward",
         "about 0.8: close to the mean, as before"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
late = three_pushes.compute(good=0.8)
size = (torch.eye(3) - torch.tensor(late["probabilities"])).square().sum(1)
reveal("baselines.6", "about 0.2: the rare answers count more",
       f"{late['best']:.2f}. A sure policy hardly moves when it draws the "
       "good answer, for nothing is left to raise: the squared score is "
       f"{size[0]:.2f}. The rare failures have {size[1]:.2f} and "
       f"{size[2]:.2f}. So *their* rewards, 0.2 and 0, decide the best b. "
       "With b = 0 these failures push with weights 0.2 and 0; with b on "
       f"the mean reward {late['mean_reward']:.2f} they push with −0.62 "
       "and −0.82 along long scores. That makes the noise "
       f"{late['at_mean']:.2f}, six times the {late['none']:.2f} of b = 0.",
       pictures.best_and_mean([k / 40 for k in range(2, 39)], (0.3, 0.8)),
       instead={
           "about 0.4: the rewards are what they were":
           "The rewards are. Their weights, chance and length of the "
           "score, are not.",
           "about 0.6: half way to the new mean reward":
           "It goes the other way: compare the lengths of the scores.",
           "about 0.8: close to the mean, as before":
           "It was close because the scores were about equally long. Now "
           "the good answer's score is short.",
       })

# %% [markdown]
# Is the mean reward that bad for every sure policy? The third slider gives the same points to all
# answers. Predict first: can that change which is less noisy, the mean reward or b = 0?

# %% jupyter={"source_hidden": true}
# the explorer
task("baselines.t1", three_pushes.three_pushes_explorer(),
     ("Keep π(good) ≥ 0.8, and make the mean reward less noisy than b = 0.",
      three_pushes.mean_reward_beats_none_for_a_sure_policy),
     ("Keep π(good) ≥ 0.8, and let b = 0 be the best baseline (± 0.03).",
      three_pushes.zero_is_best_for_a_sure_policy))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Add 1 to all rewards, or subtract 1. The mean reward and the best b move along, and keep their
#    noise. Only b = 0 stays behind. (With ten points more, its noise is 1,077.)
# 2. Take 0.2 away, at π(good) = 0.8. Now failures earn about 0 on average.
#    <!-- cited: 0.8 -->
# </details>
#
# **When a softmax policy is sure of one answer, the best b lies near what its failures earn.** If
# they earn about 0, as with rewards 0 and 1, the mean reward is then worse than b = 0.
#
# Why is the mean the usual choice, then? $b^\star$ needs the squared gradient of every single
# answer, one backward pass each; a mean of rewards costs nothing. And with many different right
# answers the mean can be nearly best (second sitting).

# %% [markdown]
# ## Who knows the mean reward?
#
# Nobody: it has to be estimated. Draw $G$ answers to the same prompt, a **group**. As its baseline,
# give each answer the mean reward of the *other* $G-1$ answers. This is **leave-one-out** (RLOO).
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
# What does estimating cost? A group makes one step of $G$ answers. To compare, we multiply the
# noise of that step by $G$ and call it noise **per answer**. (Two independent answers of noise 4
# make a step of noise 2, and $2\times2=4$ again.)

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.3", "Noise per answer: 1.08 with the mean reward, 2.85 "
        "with b = 0, 4.98 with b = 1. And with the smallest group, G = 2, "
        "where b is the reward of the other answer?",
        ["about 1.1: on average, b is the mean reward",
         "about 2.2: two noisy rewards in place of one",
         "about 2.7: a poor estimate, but better than 0",
         "about 4.1: one reward is a poor guess of the mean"])

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
reveal("baselines.3", "about 4.1: one reward is a poor guess of the mean",
       f"{found[0][1]:.2f}. On average the baseline is the mean reward, "
       "but in each pair it is 1, 0.2 or 0. The mean noise of these three "
       f"is {spread:.2f}. The other {found[0][1] - spread:.2f} comes from "
       "the pair: each answer is the other's baseline, so their two pushes "
       "are not independent. In this toy the group pays from G = 3 on.",
       pictures.group_sizes(sizes, [n for _, n in found]),
       instead={
           "about 1.1: on average, b is the mean reward":
           "It is, on average. But the noise grows with the square of its "
           "error.",
           "about 2.2: two noisy rewards in place of one":
           "That doubles the mean squared push. The noise, which is this "
           "minus the squared mean push, more than doubles.",
           "about 2.7: a poor estimate, but better than 0":
           "It can be worse than 0, as b = 1 was.",
       })

# %% [markdown]
# <details><summary>One level deeper: the price of not knowing the mean</summary>
#
# Write $\mu$ for the mean reward and $d=R-\mu$. Leave-one-out has noise per answer
#
# $$\text{noise}(\mu)+\frac1{G-1}\Big(\frac{\mathrm{Var}(R)\;\mathbb E\lVert\nabla\log\pi\rVert^2}{\lVert\nabla J\rVert^2}+1\Big).$$
#
# The first part of the price is the variance of $b$, $\mathrm{Var}(R)/(G-1)$, times the mean
# squared score. The +1 is easiest seen at $G=2$, with scores $s_1,s_2$ and advantages $d_1-d_2$,
# $d_2-d_1$. The two pushes have the product $-(d_1-d_2)^2\,s_1\!\cdot s_2$. On average only its
# part $2d_1d_2\,s_1\!\cdot s_2$ remains, which is $2\lVert\nabla J\rVert^2$. Independent pushes
# would have $\lVert\nabla J\rVert^2$, one less.
# </details>
# <details><summary>One level deeper: why not estimate the best number from the group?</summary>
#
# Weigh each reward of the group by its squared score. If the answer's own reward is among them, $b$
# looks at $y$, and the mean push turns a little: at $G=4$ its three components are 0.74, 0.67 and
# 0.76 of the truth. Without it the estimate is unbiased, but not always quieter. At $G=4$ it has
# noise 2.12, plain leave-one-out 2.08. For the policy with π(good) = 0.8 it is 5.08 against 4.64,
# and at $G=8$ 2.74 against 4.19. The failures decide $b^\star$, and half of the time three other
# answers of that policy hold none ([statements 03](statements/03_baselines.ipynb)).
# <!-- cited: 0.74, 0.67, 0.76, 2.12, 2.08, 0.8, 5.08, 4.64, 2.74, 4.19 -->
# </details>
#
# **A group estimates its prompt's mean reward without a second model. The price falls like
# $1/(G-1)$.**

# %% [markdown]
# ## In a real run
#
# All tokens of an answer get the same advantage. The RLOO paper runs $G=2$ and 4, DeepSeekMath
# ([2402.03300](https://arxiv.org/abs/2402.03300)) 64. Log each group's mean reward, the share of
# groups with equal rewards (their advantages are 0), and the entropy.
#
# Does Adam, or clipping the gradient, make the baseline unnecessary? We train with ten points
# again, 40 steps, at the best of sixteen learning rates, and subtract nothing, then the best
# number.

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

print("mean reward     nothing  the best number")
for name, new in (("plain steps", lambda: None), ("Adam", Adam),
                  ("clipped at 0.1", lambda: clipped)):
    best_of = [max((train(b, 2.0**k, optimiser=new()) @ earns).mean()
                   for k in range(-8, 8)) for b in (-10, 0.40)]
    print(f"{name:15s} {best_of[0]:7.1f} {best_of[1]:8.1f}")
unit = torch.nn.functional.normalize(pushes(-10)[y4].mean(1), dim=1)
turned = torch.cosine_similarity(chance @ unit, pi @ pushes(-10), 0)
print(f"all steps clipped to one length: cosine of their mean {turned:.2f}")

# %% [markdown]
# Neither helps here: both rescale steps, and neither takes the ten points out of them. Clipping
# even loses the right mean: clip all 81 possible first steps to one length, and their mean points
# slightly away from $\nabla J$. **The case to fear is a reward model whose zero is
# arbitrary, used without a baseline.**

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | baseline | |
# |---|---|
# | sentence | subtract any number that is settled without looking at the answer: the mean push stays, the noise does not |
# | formula | $\mathbb E[b\,\nabla\log\pi]=b\,\nabla\sum\pi=0$ |
# | best fixed one | $b^\star=\mathbb E[\lVert\nabla\log\pi\rVert^2R]\,/\,\mathbb E\lVert\nabla\log\pi\rVert^2$ |
# | picture | a parabola: less noise than b = 0 only between 0 and $2b^\star$ |
# | numbers (toy) | noise 2.85 with b = 0, 1.08 with the mean reward, 1194 with ten points for all |
# | far off (toy) | runs grow sure of an answer that luck chose; Adam or a clip does not help |
# | sure policy | best b near what failures earn; if about 0, the mean reward is worse than b = 0 |
# | estimate | leave-one-out: right on average; the price falls like 1/(G − 1) |
# | choices | which $b$; own reward in the mean; dividing by the std (second sitting) |

# %%
score("baselines.1", "baselines.2", "baselines.6", "baselines.3")

# %% [markdown]
# ## Second sitting: training, groups, and the std
#
# Three questions, each for itself.
#
# ### Equal noise
#
# Back to fixed baselines. The baselines −1 and 1.81 lie equally far from the best b. By the
# parabola they have the same noise, and by the proof the same mean push.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.4", "Train with b = −1 and with b = 1.81, noise 22.8 "
        "each at the start. Each gets its own best learning rate. Which "
        "ends higher?",
        ["neither: they share the mean push and the noise",
         "b = 1.81: what is drawn goes down, and others get a turn",
         "b = −1: what is drawn goes up, and a lead is used at once"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
best = three_pushes.compute()["best"]
pairs = {"noise 22.8 at the start": (-1, 2 * best + 1),
         "noise 2.9 at the start, and the best b": (0, 2 * best, best)}
runs = {title: {f"b = {b:.2f}".replace("-", "−"): sweep(b) for b in bs}
        for title, bs in pairs.items()}
ends = []                           # at its own best rate: mean, two errors
for b in (-1, 2 * best + 1):
    run = max(sweep(b), key=lambda rewards: rewards.mean())
    ends += [run.mean().item(), 2 * run.std().item() / len(run)**0.5]
stuck = [100 * (train(b, 4)[:, 1:] > 0.5).any(1).double().mean().item()
         for b in (-1, 2 * best + 1)]
later = [three_pushes.compute(b, 0.8)["noise"] for b in (-1, 2 * best + 1)]
assert later[1] > later[0]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.4",
       "b = 1.81: what is drawn goes down, and others get a turn",
       "The mean reward ends at {:.3f} ± {:.3f} with b = −1 and at "
       "{:.3f} ± {:.3f} with b = 1.81 (two standard errors). A baseline "
       "below all rewards pushes up whatever is drawn, so it is drawn "
       "again. At rate 4 a poor or wrong answer ends above one half in "
       "{:.0f} % of the seeds. A baseline above all rewards pushes down "
       "what is drawn, and there it is {:.0f} %. (It is not quieter all "
       "the way: once the good answer has 0.8, b = 1.81 is the noisier of "
       "the two.)".format(*ends, *stuck),
       pictures.rate_lines(rates, runs, (start @ earns).item(), (
           "Left: equal noise, two ends. Right: 0.81 ends level with the "
           "best b, though it is nearly three times as noisy.")),
       instead={
           "neither: they share the mean push and the noise":
           "They are equal at the start. After that the two runs go "
           "different ways.",
           "b = −1: what is drawn goes up, and a lead is used at once":
           "A lead that was luck is used at once, too.",
       })

# %% [markdown]
# **Do not be far off.** In both pictures the higher of two equally noisy baselines ends level or
# better. On the right all three agree up to rate 4. Beyond that only $b=0$ falls, the one that
# never pushes down what it drew. (More in Chung et al. 2021,
# [arXiv 2008.13773](https://arxiv.org/abs/2008.13773).)

# %% [markdown]
# ### When does a group help?
#
# A language model has many wordings for a right answer. So here is a second toy. Several right
# answers share the chance $p$, and twenty wrong answers share the rest. A right answer earns 1, a
# wrong one 0. As the sliders stand, leave-one-out beats $b=0$. Predict two places where it does
# not, then look.

# %% jupyter={"source_hidden": true}
# the explorer
task("baselines.t2", ways_to_be_right.ways_to_be_right_explorer(),
     ("A policy that is right at least eight times in ten, and yet "
      "leave-one-out is noisier than b = 0.",
      ways_to_be_right.hurts_a_sure_policy),
     ("Ten right answers or more and G = 8 or more, and yet leave-one-out "
      "is noisier than b = 0.", ways_to_be_right.hurts_all_the_same))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Let one right answer have all of p, as in the first sitting. A larger G comes closer to the
#    mean reward, which is itself noisier than b = 0 here. A second right wording helps: now drawing
#    a right answer still moves the policy, from one wording to the other, so the right answers'
#    scores are no longer short.
# 2. Take p below 1/G. With scores of equal length, the mean squared push is proportional to $p$ at
#    b = 0, and nearly to $p(1-p)\frac G{G-1}$ with leave-one-out. That is less once $p\gt1/G$.
# </details>
#
# **With many right wordings, a group of $G$ lowers the noise once $p$ is above about $1/G$**: once
# the group may expect a right answer. With a single right string (a letter, say) a group of 8 is
# noisier than b = 0 at every $p$ of this toy.

# %% [markdown]
# ### What does GRPO's std do?
#
# GRPO also divides a group's advantages by the std of its rewards. The std looks at the answer's
# own reward, so the proof does not cover it. Go back to the rewards 1, 0.2 and 0 at 0.3, 0.3 and
# 0.4. The poor answer earns less than the mean 0.36, and its true mean push is −0.05.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.5", "G = 2, minus the mean of both, over their std. The "
        "mean push on the poor answer's logit?",
        ["−0.10", "−0.05", "−0.02", "+0.03"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def all_of_group(R):
    return R - R.mean()

def zscore(R):
    return all_of_group(R) / (R.std(correction=0) + 1e-6)

truth, one_right = pi @ pushes(0), torch.tensor([1.0, 0.0, 0.0])
(shorter, _), (divided, _) = (group_push(f, 2)
                              for f in (all_of_group, zscore))
turn = [torch.cosine_similarity(truth, group_push(zscore, G)[0], 0)
        for G in (2, 8)]
binary = torch.cosine_similarity(pi * (one_right - pi @ one_right),
                                 group_push(zscore, 2, one_right)[0], 0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.5", "+0.03",
       "Two unequal rewards become +1 and −1, so at G = 2 it only counts "
       "who won. The poor answer beats the wrong one more often than it "
       "loses to the good one, so it goes *up*. The turn shrinks with G: "
       "the cosine with the truth is "
       f"{turn[0]:.3f} at G = 2 and {turn[1]:.3f} at G = 8. With rewards 0 "
       "and 1 and one prompt there is no turn: the advantages average to "
       "some $a_+$ for a right answer, whichever it is, and to some $a_-$ "
       "for a wrong one, so the mean push is $(a_+-a_-)\\nabla J$ "
       f"(cosine {binary:.3f}).", pictures.mean_pushes({
           "true gradient": truth.tolist(),
           "minus the mean, G = 2": shorter.tolist(),
           "divided by the std, too": divided.tolist()}, (
           "Minus the mean: half as long. Divided: poor turns round.")),
       instead={
           "−0.10":
           "The std is at most 0.5 here, so each advantage does grow. But "
           "not all by the same factor.",
           "−0.05":
           "Dividing by a number that depends on the draw is no common "
           "factor.",
           "−0.02":
           "That is the push before the division.",
       })

# %%
score("baselines.4", "baselines.5")

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
# The score has mean zero. E[b ∇log π] = b Σ π ∇log π = b Σ ∇π = b ∇1 = 0. So b may depend on
# anything settled without looking at this answer: the prompt, other independent answers, an
# estimate from earlier steps; for a token, on the tokens before it. "Free" means the mean. The
# noise is a parabola in b, lower than at b = 0 only between 0 and twice the best one.
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
# It needs the squared gradient of every answer by itself, one backward pass each. From the same
# group it must leave out the answer itself, or it is biased. In our toy it was no quieter at
# $G=4$: the failures that decide it are often missing from the group. The mean of the others is
# free, and nearly as good where scores are about equally long.
# </details>
# <details><summary><b>We have Adam and gradient clipping. Why a baseline?</b></summary>
#
# They rescale steps, and do not take the common part out of the rewards. With ten points for
# everybody, our toy reached a mean reward of about 0.5 with plain steps, with Adam and with
# clipping, and 1.0 once the best number was subtracted. Clipping noisy steps also gives up
# unbiasedness: the mean of all clipped first steps even pointed away from the gradient.
# </details>
# <details><summary><b>Where does the number come from in practice?</b></summary>
#
# From other answers to the same prompt. Leave-one-out averages their rewards; it is right on
# average, and its price falls like 1/(G − 1). Or from a critic, a network trained to predict the
# reward, which can also change within an answer (07). Or from the greedy answer's reward (ReMax),
# at the price of one more answer.
# </details>
# <details><summary><b>GRPO's mean contains your own reward. Is it biased? And the std?</b></summary>
#
# The mean only shortens the push, by (G − 1)/G, at equal noise. The std is harmless with 0/1
# rewards and one prompt: it changes the length. With graded rewards it turns the push: at G = 2
# only who won counts, and an answer below average can go up. In our toy that shrinks as G grows.
# Across prompts it re-weights them (08, 09).
# </details>
# <details><summary><b>Two baselines with equal noise: do they learn equally well?</b></summary>
#
# Not necessarily. Below all rewards, everything that is drawn is pushed up, and early luck is
# reinforced. Above, what is drawn is pushed down and others get their turn. Noise describes one
# step; training is many. In our toy, each at its best rate, they ended at 0.956 and 0.977.
# </details>
#
# The sentences that one hears about baselines, true or not:
# [statements 03](statements/03_baselines.ipynb). The exercises, solved:
# [solutions 03](solutions/03_baselines.ipynb).
#
# **Next:** [04 · Importance sampling](04_importance_sampling.ipynb). The answers were drawn by an
# older policy. What then?
