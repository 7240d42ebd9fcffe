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
# **After this page** you can prove what a baseline does on average, compute the best one, and say
# when the usual one makes things worse.
#
# 29 minutes, then 9 in a second sitting · exercises 36 more · after 02 (REINFORCE) · Greensmith,
# Bartlett and Baxter 2004, *JMLR* 5 (the best baseline); Ahmadian et al. 2024,
# [arXiv 2402.14740](https://arxiv.org/abs/2402.14740) (leave-one-out)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. REINFORCE draws an answer y and earns R. How does it push?</summary>Along R ∇log π(y). Averaged over the draws that is the gradient of the expected reward, ∇J (02).</details>
# <details><summary>2. What is ∇log π(y) called, and what is it for a softmax over whole answers?</summary>The score. On the logits: 1 − π on the drawn answer, −π on each other one (02).</details>
# <details><summary>3. With rewards 1 and 0, what does REINFORCE do when it draws a wrong answer?</summary>Nothing: it pushes with weight 0 (02).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
from itertools import product
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import three_pushes, ways_to_be_right
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import baselines as pictures
from rlnb.objective import difference
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: draw 4 answers, push the logits, 40 times, 400 seeds
start, earns = torch.tensor([0.3, 0.3, 0.4]), torch.tensor([1.0, 0.2, 0.0])
rates = [2.0 ** k for k in range(-4, 6)]

def train(b, rate, G=4, steps=40, seeds=400):
    """Final probabilities (seeds, 3) with the fixed baseline b."""
    dice = torch.Generator().manual_seed(1)
    z = start.log().repeat(seeds, 1)
    for _ in range(steps):
        p = z.softmax(1)
        y = p.multinomial(G, True, generator=dice)          # (seeds, G)
        A = earns[y] - b
        push = torch.zeros_like(p).scatter_add(1, y, A)
        z = z + rate / G * (push - A.sum(1, keepdim=True) * p)
    return z.softmax(1)

def sweep(b):
    """Mean reward at the end, (rates, seeds)."""
    return torch.stack([train(b, rate) @ earns for rate in rates])

# %% [markdown]
# ## Ten points for everybody
#
# There is one prompt with three possible answers. The good answer earns 1, the poor one 0.2, the
# wrong one 0. The policy is a softmax over three logits, and starts at probabilities 0.3, 0.3, 0.4.
# A step draws four answers, averages $R\,\nabla\log\pi(y)$ over them, and moves the logits along
# that average. A run is 40 steps.
#
# Now a second grader gives every answer ten points more: 11, 10.2, 10. The gaps between the answers
# are the same. We train with both graders, at ten learning rates each.

# %%
graders = {"rewards 1, 0.2, 0": sweep(0),
           "rewards 11, 10.2, 10": sweep(-10)}
pictures.rate_lines(rates, {"": graders}, (start @ earns).item(), (
    "The ten points are taken off again before plotting. 400 seeds; bars, "
    "where they can be seen, are two standard errors."))

# %% [markdown]
# No learning rate rescues the second grader. Why do ten points for everybody ruin the training?

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.1", "Take the first step, averaged over all answers "
        "that could be drawn. Where does the second grader push?",
        ["the same way, ten times as far: rewards are ten times as large",
         "exactly where the first one does: the gaps are the same",
         "all three up, by nearly the same: all earn about 10",
         "nowhere in particular: the ten points drown the gaps"])

# %%
pi, R = torch.tensor([0.3, 0.3, 0.4]), torch.tensor([1.0, 0.2, 0.0])
scores = torch.eye(3) - pi                  # row y: the score of answer y

def pushes(b):
    """Row y: the push when y is drawn and b is subtracted."""
    return (R - b)[:, None] * scores

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def first_steps(b):
    """All 81 draws of four: how far along the mean push, and the chance."""
    y = torch.cartesian_prod(*[torch.arange(3)] * 4)        # (81, 4)
    mean = pi @ pushes(b)
    return pushes(b)[y].mean(1) @ mean / (mean @ mean), pi[y].prod(1)

steps = {name: first_steps(b) for name, b in zip(graders, (0, -10))}
(x, _), (far, chance) = steps.values()
away = 100 * chance[far < 0].sum().item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.1",
       "exactly where the first one does: the gaps are the same",
       "On average both push the logits of good, poor and wrong by "
       + ", ".join(f"{g:+.3f}" for g in (pi @ pushes(-10)).tolist())
       + ". A single step is another matter. With the second grader "
       f"{away:.0f} % of the steps go *against* that direction, by up to "
       f"{-far.min():.0f} mean steps. With the first grader only "
       f"{100 * chance[x < 0].sum():.0f} % do, by at most "
       f"{-x.min():.2f} of one. So two things need an explanation: why the "
       "mean stays the same, and why the steps scatter.",
       pictures.first_steps(steps, [
           (x @ chance).item() for x, chance in steps.values()], (
           "A bar is a possible first step from four answers, its height "
           "the chance of it. The second grader's go far, either way.")),
       instead={
           "the same way, ten times as far: rewards are ten times as large":
           "The ten points push every answer up. In the mean over draws "
           "these pushes add up to 0.",
           "all three up, by nearly the same: all earn about 10":
           "This is true of a single draw. On average, what one logit "
           "gains the others lose.",
           "nowhere in particular: the ten points drown the gaps":
           "They drown them in single steps. On average the gaps remain.",
       })

# %% [markdown]
# ## What subtracting does on average
#
# Let $b$ be any fixed number. Subtracting it adds $-b\,\nabla\log\pi(y)$ to each push. On average
# that is
#
# $$\begin{aligned}
# \mathbb E\big[b\,\nabla\log\pi(y)\big]&=\textstyle\sum_y\pi(y)\;b\;\nabla\log\pi(y)&&\text{a mean over the policy's own draws}\\
# &=b\,\textstyle\sum_y\pi(y)\,\nabla\log\pi(y)&&\text{the one condition: }b\text{ is the same whatever }y\text{ is drawn}\\
# &=b\,\textstyle\sum_y\nabla\pi(y)&&\nabla\log\pi=\nabla\pi/\pi\ (02)\\
# &=b\,\nabla\textstyle\sum_y\pi(y)&&\text{a sum of gradients is the gradient of the sum}\\
# &=b\,\nabla1=0&&\text{probabilities sum to one}\\[4pt]
# \nabla J&=\mathbb E\big[(R-b)\,\nabla\log\pi(y)\big]&&\textbf{a choice: which } b
# \end{aligned}$$
#
# $b$ is the **baseline**, and $A=R-b$ is the **advantage** of the answer. The estimate stays
# **unbiased**. In statistics such a $b$ is called a **control variate**.
#
# The second line holds the condition. **The baseline may depend on anything except this answer:**
# on the prompt, on other answers, and for a token on the tokens before it. (For a token the same
# five lines hold with those tokens given: the chances of the next one sum to 1.)
#
# Here are the pushes for three baselines. Each row is an answer that can be drawn, each column is a
# logit.

# %% jupyter={"source_hidden": true}
# the picture
pictures.push_table({f"b = {b:g}": pushes(b) for b in (0, 0.36, 1)},
                    pi.tolist(), (
    "Blue raises a logit, orange lowers it. Every single push changes with "
    "b; their mean, framed, does not."))

# %% [markdown]
# The mean stays, but a baseline changes *who* is pushed. With $b=0$, drawing a wrong answer does
# nothing. With $b=1$, drawing the good answer does nothing.

# %% [markdown]
# ## What it does to a single step
#
# Why do the steps scatter? Measure how far a single push strays from the mean push: square that
# distance, average it over the draws, and divide by the squared length of the mean push. We call
# this number the **noise** of one answer. Averaging $N$ independent answers divides it by $N$. So
# noise 3 means that with three answers the error is as long as the signal.

# %%
def noise(b):
    """Of one answer: mean squared distance over squared mean push."""
    push = pushes(b)                                        # (3, 3)
    mean = pi @ push
    return (pi @ (push - mean).square().sum(1) / (mean @ mean)).item()

print(f"first grader {noise(0):.2f}, second grader {noise(-10):.0f}")

# %% [markdown]
# Three answers with the first grader are worth over a thousand with the second.

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
best = 0.4036
reveal("baselines.2", "0.36, 0, 1: a bar can be too high",
       f"{noise(0.36):.2f}, {noise(0):.2f}, {noise(1):.2f}. A baseline can "
       "*raise* the noise. And \"no baseline\" does not exist: it is the "
       "baseline 0, which is good or bad like any other.",
       pictures.noise_parabola({"0": 0.0, "mean reward": 0.36, "1": 1.0}),
       instead={
           "1, 0.36, 0: the higher the bar, the less is left over":
           "Less is left of good rewards, more of bad ones, below the bar.",
           "0.36, 1, 0: any baseline beats b = 0":
           "b = 1 is further from the best than 0 is.",
           "0, 0.36, 1: what you subtract adds noise":
           "It can also take noise away: the part that all rewards share.",
       })

# %% [markdown]
# ## The best number
#
# As $b$ grows, the noise falls and then rises again. Where is the bottom? Write the noise out.
#
# $$\begin{aligned}
# \text{noise}\cdot\lVert\nabla J\rVert^2&=\mathbb E\lVert(R-b)\nabla\log\pi\rVert^2-\lVert\nabla J\rVert^2&&\text{mean squared distance = mean square − square of the mean}\\
# &=b^2\,\mathbb E\lVert\nabla\log\pi\rVert^2-2b\,\mathbb E\big[R\lVert\nabla\log\pi\rVert^2\big]+\text{const}&&\text{multiply out; }\nabla J\text{ has no }b\text{ in it}\\
# 0&=2b^\star\,\mathbb E\lVert\nabla\log\pi\rVert^2-2\,\mathbb E\big[R\lVert\nabla\log\pi\rVert^2\big]&&\text{a parabola: slope 0 at its bottom}\\
# b^\star&=\frac{\mathbb E\big[\lVert\nabla\log\pi\rVert^2R\big]}{\mathbb E\lVert\nabla\log\pi\rVert^2}&&\text{solve}
# \end{aligned}$$
#
# **The best baseline is the mean reward in which each answer counts by the squared length of its
# score.** If all scores are equally long, it *is* the mean reward. Here the two nearly agree: 0.40
# and 0.36. Do they always agree?
#
# In the explorer, the arrows on the left are the three pushes, thicker where the draw is likelier
# (at b = 0 the wrong answer has none).
# The curve on the right is the noise for every $b$, the parabola on a logarithmic axis. The second
# slider changes the policy, and with it the mean reward.

# %% jupyter={"source_hidden": true}
# the explorer
task("baselines.t1", three_pushes.three_pushes_explorer(),
     ("Find a policy for which the mean reward is noisier than b = 0, and "
      "put b on its mean reward (within 0.02).",
      three_pushes.mean_reward_is_worse_than_none))

# %% [markdown]
# <details><summary>One way</summary>
#
# Take π(good) = 0.80 and b = 0.82, <!-- cited: 0.80, 0.82 --> for example: six times the noise of
# b = 0.
# </details>
#
# Why? A policy that is sure of the good answer hardly moves when it draws it, because nothing is
# left to raise. The rare poor and wrong draws push far. They make the noise, so the best b lies
# near *their* rewards, while the mean reward climbs to 1. **The usual baseline is worse than none
# for a policy that is sure of one answer.**
#
# Why is it the usual one, then? $b^\star$ needs the squared gradient of every single answer, which
# is one backward pass each. A mean of rewards costs nothing. It is nearly as good where scores are
# about equally long. (For a language model they also grow with the length of the answer.)

# %% [markdown]
# ## Who knows the mean reward?
#
# Nobody knows it, but it can be estimated. Draw $G$ answers to the same prompt, a **group**. As its
# baseline, give each answer the mean reward of the *other* $G-1$ answers. This is **leave-one-out**
# (RLOO). Two right and two wrong answers get these advantages:

# %%
def leave_one_out(R):
    return R - (R.sum() - R) / (len(R) - 1)

print(leave_one_out(torch.tensor([1.0, 1.0, 0.0, 0.0])))

# %% [markdown]
# The three others of a right answer earned 1, 0 and 0, so its $b$ is a third. This $b$ is itself
# drawn by chance, so the proof needs one more line:
#
# $$\mathbb E\big[b\,\nabla\log\pi(y)\big]=\mathbb E[b]\;\mathbb E\big[\nabla\log\pi(y)\big]=0\qquad\text{the others were drawn without looking at }y$$
#
# Take the smallest group, $G=2$. Each answer's baseline is the reward of the other answer: 1, 0.2
# or 0. We count the noise *per answer*: a pair whose push has noise 2 counts as 4. So a large group
# gets no credit for having more answers.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.3", "Noise per answer: 1.08 with the mean reward, 2.85 "
        "with b = 0, 4.98 with b = 1. With the other answer's reward, "
        "G = 2?",
        ["about 1.1: on average it is the mean reward",
         "about 2.2: two noisy rewards in place of one",
         "just below 2.85: a poor estimate is better than nothing",
         "above 2.85: one reward is a poor guess of the mean"])

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
reveal("baselines.3", "above 2.85: one reward is a poor guess of the mean",
       f"{found[0][1]:.2f}. The baseline is right on average, but in each "
       "group it is 1, 0.2 or 0, and the mean noise of these three is "
       f"{spread:.2f}. (The other {found[0][1] - spread:.2f} is there "
       "because the two answers share their rewards. So their pushes are "
       "not independent.) From G = 3 on the group pays.",
       pictures.group_sizes(sizes, [n for _, n in found]),
       instead={
           "about 1.1: on average it is the mean reward":
           "It is, on average. But the noise grows with the square of its "
           "error.",
           "about 2.2: two noisy rewards in place of one":
           "Its error is not added once; it multiplies the score.",
           "just below 2.85: a poor estimate is better than nothing":
           "It can be worse than nothing, as b = 1 was.",
       })

# %% [markdown]
# <details><summary>One level deeper: the price of not knowing the mean</summary>
#
# Write $\mu$ for the mean reward. Leave-one-out has noise
#
# $$\text{noise}(\mu)+\frac1{G-1}\Big(\frac{\mathrm{Var}(R)\;\mathbb E\lVert\nabla\log\pi\rVert^2}{\lVert\nabla J\rVert^2}+1\Big).$$
#
# Multiply out $(R_i-b_i)(R_j-b_j)$ with $b_i-\mu=\frac1{G-1}\sum_{k\ne i}(R_k-\mu)$: all terms but
# these have a factor of mean zero. The price falls like $1/(G-1)$, so most of it is gone early. (In
# a library you may keep $G$ small and average over many prompts, but each prompt needs its own $b$:
# the mean of the whole batch is off for every prompt, and that is noise,
# [statements 03](statements/03_baselines.ipynb).)
# </details>
#
# **A group of answers to one prompt estimates the mean reward without a second model. The price
# falls like $1/(G-1)$.**

# %% [markdown]
# ## What GRPO does with it
#
# GRPO changes leave-one-out in two ways. It subtracts the mean of *all* $G$ rewards, the answer's
# own reward included. Then it divides by their std, $\sigma_R$. Both steps look at the answer
# itself, so the proof covers neither of them. The rewards are still 1, 0.2 and 0.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.5", "Which of the two steps turns the mean push into "
        "another direction?",
        ["only the std: the mean merely shortens the push",
         "only the mean: it breaks the proof's condition; the std rescales",
         "both: both look at the answer's own reward",
         "neither: on average both only rescale"])

# %%
def all_of_group(R):
    return R - R.mean()

def zscore(R):
    return all_of_group(R) / (R.std(correction=0) + 1e-6)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
truth, one_right = pi @ pushes(0), torch.tensor([1.0, 0.0, 0.0])
(shorter, _), (divided, _) = (group_push(f, 2)
                                for f in (all_of_group, zscore))
turn = [torch.cosine_similarity(truth, group_push(zscore, G)[0], 0)
        for G in (2, 8)]
binary = torch.cosine_similarity(pi * (one_right - pi @ one_right),
                                 group_push(zscore, 2, one_right)[0], 0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("baselines.5", "only the std: the mean merely shortens the push",
       r"For every group $R_i-\bar R=\frac{G-1}G(R_i-\text{mean of the "
       r"others})$: leave-one-out, only shorter. The std turns the push. "
       "At G = 2 two unequal rewards become +1 and −1, so it only counts "
       "who won. The poor answer beats the wrong one more often than it "
       "loses to the good one, so it goes *up*. The turn shrinks with G: "
       "the cosine with the truth is "
       f"{turn[0]:.3f} at G = 2 and {turn[1]:.3f} at G = 8. With rewards 0 "
       "and 1 and one prompt there is none "
       f"({binary:.3f}).", pictures.mean_pushes({
           "true gradient": truth.tolist(),
           "minus the mean, G = 2": shorter.tolist(),
           "divided by the std, too": divided.tolist()}, (
           "Minus the mean: half as long. Divided: poor turns round.")),
       instead={
           "both: both look at the answer's own reward":
           "Both steps do look. But one of them only shortens the push.",
           "only the mean: it breaks the proof's condition; the std "
           "rescales":
           "The own reward in the mean makes a factor (G−1)/G, the same "
           "for all.",
           "neither: on average both only rescale":
           "The mean, yes. Dividing by a random std is no common factor.",
       })

# %% [markdown]
# Pages 08 and 09 ask what the division by the std is good for.

# %% [markdown]
# ## In a real run
#
# The baseline comes from the rewards of the same prompt's group, in one line of code and without a
# second model. (If $b$ does come from a network, `detach` it.) With many tokens nothing changes:
# all tokens of an answer get the same advantage. The RLOO paper runs $G=2$ and 4, DeepSeekMath
# ([2402.03300](https://arxiv.org/abs/2402.03300)) 64. (The setting is `num_generations` in TRL.)
#
# Log the mean reward of each group, the share of groups whose rewards are all equal (they teach
# nothing), and the norm of the gradient. **The case to fear is the second grader: a reward model
# whose zero means nothing, used without a baseline.**
#
# <details><summary>One level deeper: the simple noise scale</summary>
#
# This page's noise is known as the *simple noise scale* (McCandlish et al. 2018,
# [1812.06162](https://arxiv.org/abs/1812.06162)). It says roughly up to which batch size more
# answers pay. Exercise 2 measures it in a real run.
# </details>

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | baseline | |
# |---|---|
# | sentence | subtract any number that does not look at the answer: the mean push stays, the noise does not |
# | formula | $\mathbb E[b\,\nabla\log\pi]=b\,\nabla\sum\pi=0$ |
# | best | $b^\star=\mathbb E[\lVert\nabla\log\pi\rVert^2R]\,/\,\mathbb E\lVert\nabla\log\pi\rVert^2$ |
# | picture | a parabola: less noise than b = 0 only between 0 and $2b^\star$ |
# | numbers | noise 2.85 with b = 0, 1.08 with the mean reward, 1194 with ten points for everybody |
# | estimate | leave-one-out: right on average, its own noise falls like 1/(G − 1) |
# | worse than none | the mean reward, for a policy that is sure of one answer |
# | choices | which $b$; own reward in the mean (shortens); dividing by the std (turns graded rewards) |

# %%
print("REINFORCE -> RLOO")
print(difference(ZOO["reinforce"], ZOO["rloo"]))
score("baselines.1", "baselines.2", "baselines.3", "baselines.5")

# %% [markdown]
# ## Second sitting: is the quietest baseline the best one?
#
# You know which baseline has the least noise. Does less noise also mean better training? And does a
# group always help?
#
# ### Does less noise learn more?
#
# Go back to the three answers and to fixed baselines. The baselines −1 and 1.81 lie equally far
# from the best b. By the parabola they have the same noise, and by the proof the same mean push.

# %% jupyter={"source_hidden": true}
# your guess
predict("baselines.4", "Train with b = −1 and with b = 1.81, noise 22.8 "
        "each at the start. Each gets its own best learning rate. Which "
        "ends higher?",
        ["equally high: same mean push, same noise",
         "b = 1.81: what was drawn is discouraged, so others get a turn",
         "b = −1: what was drawn is encouraged, so learning is fast"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
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
       "b = 1.81: what was drawn is discouraged, so others get a turn",
       "The mean reward ends at {:.3f} ± {:.3f} with b = −1 and at "
       "{:.3f} ± {:.3f} with b = 1.81 (two standard errors). A baseline "
       "below all rewards pushes up whatever is drawn, so it is drawn "
       "again. At rate 4 a poor or wrong answer ends above one half in "
       "{:.0f} % of the seeds. A baseline above all rewards pushes down "
       "what is drawn, so the other answers get a turn ({:.0f} %). This is "
       "not a matter of noise: once the good answer has 0.8, b = 1.81 is "
       "the noisier of the two.".format(*ends, *stuck),
       pictures.rate_lines(rates, runs, (start @ earns).item(), (
           "Left: equal noise, two ends. Right: 0.81 ends level with the "
           "best b, though it is nearly three times as noisy.")),
       instead={
           "equally high: same mean push, same noise":
           "They are equal at the start. After that the two runs go "
           "different ways.",
           "b = −1: what was drawn is encouraged, so learning is fast":
           "Encouraging whatever was drawn also freezes what was drawn by "
           "luck.",
       })

# %% [markdown]
# **The practical rule: do not be far off.** In the right-hand picture all three baselines do
# equally well up to rate 4. Beyond that only $b=0$ falls, and it is the one that never pushes down
# what it drew. (Chung et al. 2021, [arXiv 2008.13773](https://arxiv.org/abs/2008.13773), have more
# on what a baseline changes beside the noise.)

# %% [markdown]
# ### When does a group help?
#
# A language model has many wordings for a right answer. So here is a second toy. Several right
# answers share the chance $p$, and twenty wrong answers share the rest. A right answer earns 1, a
# wrong one 0. As the sliders stand, leave-one-out beats $b=0$. Find two places where it does not.

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
# 1. Let one right answer have all of p. This is the sure policy of the first task, and a larger G
#    does not help. A second right wording does help, because drawing one of the two still pushes
#    it, against the other.
# 2. Take a hard prompt, with p below 1/G. The mean reward is near 0, so b = 0 is already good, and
#    an estimate of it only adds noise.
# </details>
#
# **With many right wordings, a group of $G$ answers lowers the noise once $p$ is above about
# $1/G$**, that is, once the group may expect a right answer. With a single right string (a letter,
# say) a group of 8 is noisier than no baseline at every $p$ of this toy.

# %%
score("baselines.4")

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
# You have the gradients of $N$ independent answers, (N, D). Beware: the squared length of *their*
# mean is too large on average, by the variance of that mean. Correct both parts.
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
# **4 Find the silent bug** · 8 minutes. Leave-one-out for one group. The signs of the advantages
# are right, ten points for everybody change nothing, and it trains:

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
# anything fixed without looking at this answer: the prompt, other answers, an older critic; for a
# token, on the tokens before it. "Free" means the mean. The noise is a parabola in b, and a bad b
# costs as much as you like.
# </details>
# <details><summary><b>Which baseline has the least noise? Is it the mean reward?</b></summary>
#
# The mean reward with each answer weighted by its squared score. It is the mean reward if all
# scores are equally long. A policy that is sure of one string is the opposite case: the noise comes
# from the rare failures, and the best b is near their reward. In a language model scores also grow
# with the length of the answer, so nobody promises that the mean is best.
# </details>
# <details><summary><b>Then why does nobody use the best one?</b></summary>
#
# It needs the squared gradient of every answer by itself, so one backward pass per answer. The mean
# of a group's rewards is free. The two differ where scores differ much, as for a policy that is
# sure of one string; there a group has little to learn anyway.
# </details>
# <details><summary><b>Does a baseline always lower the variance?</b></summary>
#
# No, only between 0 and twice the best one. Zero is itself a baseline. With rewards 0 and 1 it is a
# good one on hard prompts; with a reward model whose zero is arbitrary it can be hopeless.
# </details>
# <details><summary><b>Where does the number come from in practice?</b></summary>
#
# From other answers to the same prompt. Leave-one-out averages their rewards; it is right on
# average, and its own noise falls like 1/(G − 1). Or from a critic, which can also change within an
# answer, or from the greedy answer (ReMax), at the price of one more answer.
# </details>
#
# The other three can wait for another evening.
#
# <details><summary><b>Two baselines with equal noise: do they learn equally well?</b></summary>
#
# Not necessarily. Below all rewards, everything that is drawn is pushed up, and early luck is
# reinforced. Above, what is drawn is pushed down and others get their turn. Noise describes one
# step; training is many.
# </details>
# <details><summary><b>GRPO's mean contains your own reward. Is it biased? And the std?</b></summary>
#
# The mean only shortens the push, by (G − 1)/G, at equal noise. The std is harmless with 0/1
# rewards and one prompt: it changes the length. With graded rewards it turns the push: at G = 2
# only who won counts, and an answer below average can go up. That shrinks as G grows. Across
# prompts it re-weights them (08, 09).
# </details>
# <details><summary><b>Why a baseline per prompt, and not the batch's mean?</b></summary>
#
# The batch's mean is too high for hard prompts and too low for easy ones. An offset costs nothing
# on average, but it is noise: the second grader in small. With equal prompts it would be a little
# better, as it averages more rewards.
# </details>
#
# The sentences that one hears about baselines, true or not:
# [statements 03](statements/03_baselines.ipynb). The exercises, solved:
# [solutions 03](solutions/03_baselines.ipynb).
#
# **Next:** [04 · Importance sampling](04_importance_sampling.ipynb). The answers were drawn by an
# older policy. What then?
