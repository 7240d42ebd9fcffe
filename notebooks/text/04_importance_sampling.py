# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Importance sampling: how do you use a batch twice?
#
# **After this page** you can use an old batch for today's policy, tell from a log when that has
# stopped working, and name the one line of PPO's gradient that is a choice.
#
# 36 minutes · exercises 20 more · after 02 (REINFORCE), 03 (baselines)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Whose answers does REINFORCE's gradient average over?</summary>Those of the policy that is being improved, as it is now: ∇J = mean over y ~ π of R(y) ∇log π(y) (02).</details>
# <details><summary>2. An answer has T tokens. What is its log-probability?</summary>The sum of its tokens' log-probabilities. So its probability is their product (02).</details>
# <details><summary>3. What is the advantage A of an answer, and why may one subtract a baseline?</summary>Reward minus baseline. The score ∇log π has mean 0, so a fixed number times it changes nothing on average (03).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports
import json
import torch
from rlnb import check
from rlnb.classroom.explorers import product_weight
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import importance_sampling as pictures
from rlnb.classroom.pictures import pipeline
from rlnb.shipped import data_folder
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Written yesterday, used today
#
# Writing a batch of answers is expensive, and a gradient step is cheap. One would like to take a
# second step on the same batch. But the first step has changed the policy.
#
# Take one prompt with four possible answers. The old policy $\pi_\text{old}$ wrote the batch.
# Today's policy $\pi$ gives the same answers other probabilities.

# %%
old = torch.tensor([0.1, 0.4, 0.2, 0.3])     # wrote the batch
new = torch.tensor([0.4, 0.1, 0.3, 0.2])     # today's policy
R = torch.tensor([1.0, 0.0, 0.5, 0.0])       # reward of each answer

# %% tags=["setup"] jupyter={"source_hidden": true}
# draw(p): six batches of 4,000 answers · so_far(x): running means
def draw(p, n=4000, batches=6):
    """n answers from p for each batch, (batches, n)."""
    dice = [torch.Generator().manual_seed(k) for k in range(batches)]
    return torch.stack([torch.multinomial(
        p, n, replacement=True, generator=g) for g in dice])

def so_far(x):
    """Mean of the first 1, 2, 3, ... numbers of each row."""
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)

# %%
y = draw(old)                                # (6, 4000)
truth = (new @ R).item()
pictures.running({"not weighted": so_far(R[y])}, truth, caption=(
    "Six batches of the old policy. Dashed: what today's policy earns."))

# %% [markdown]
# The mean settles at 0.20, which is what the *old* policy earns. Today's policy earns 0.55, the
# dashed line. More old answers do not help. Can each reward be multiplied by some factor, so that
# the mean comes out right?

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.1",
        "Which factor, for an answer y, makes the mean right?",
        ["π(y)", "π(y) / π_old(y)", "π_old(y) / π(y)",
         "no factor can: these are not π's answers"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
w = new / old                                # weight of each answer
others = [(old @ (factor * R)).item() for factor in (new, old / new)]
assert torch.isclose(old @ (w * R), new @ R)
because = rf"""Today's policy writes the first answer {w[0]:.0f} times as
often as the old one did. So each copy of it counts {w[0]:.0f} times. For
any $f$ whose mean you want:

$$\begin{{aligned}}
\mathbb E_{{y\sim\pi}}[f(y)]&=\textstyle\sum_y\pi(y)\,f(y)
&&\text{{what a mean is}}\\
&=\textstyle\sum_y\pi_\text{{old}}(y)\,
\dfrac{{\pi(y)}}{{\pi_\text{{old}}(y)}}\,f(y)
&&\text{{times and divided by }}\pi_\text{{old}}(y)\\
&=\mathbb E_{{y\sim\pi_\text{{old}}}}[w(y)\,f(y)],\quad w=\dfrac{{\pi}}
{{\pi_\text{{old}}}}&&\text{{what a mean is, read backwards}}
\end{{aligned}}$$"""
both = {"not weighted": so_far(R[y]), "weighted": so_far(w[y] * R[y])}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.1", "π(y) / π_old(y)", because,
       pictures.running(both, truth, caption=(
           "The same six batches. Weighted, the mean goes to 0.55. "
           "No new answer was written.")),
       instead={
           "π(y)": f"It leads to {others[0]:.2f}. It forgets that the "
           "batch already holds y as often as π_old writes it.",
           "π_old(y) / π(y)": f"It leads to {others[1]:.2f}. It is "
           "upside down: what today's policy likes counts less.",
           "no factor can: these are not π's answers":
           "They are not π's answers. But π could have written each of "
           "them.",
       })

# %% [markdown]
# The factor $w$ is the **importance weight**. It works for any mean, so it also works for the mean
# gradient $A\,\nabla\log\pi$. When does it fail? There are two ways.

# %% [markdown]
# ## An answer that the sampler cuts
#
# The first way: let the sampler cut unlikely answers, as top-p sampling does. It never writes our
# first answer, and it writes the other three a little more often. Its batch is weighted as before,
# with the sampler's probabilities as the old ones.

# %%
cut = old * torch.tensor([0.0, 1.0, 1.0, 1.0])
cut = cut / cut.sum()                        # this sampler wrote the batch

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.2", "Today's policy still earns 0.55. Each "
        "reward in the new batch is multiplied by its weight. What does "
        "the mean do?",
        ["goes to 0.55, with more noise",
         "goes to 0.25, as if scaled up to full size",
         "goes to 0.15, with little noise",
         "is nan: 0.4 is divided by 0"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
w_cut = new / cut                            # inf where nothing is drawn
y_cut = draw(cut)
covered = w_cut[y_cut].mean().item()
missing = rf"""Only the third answer still pays: today's policy writes it
with probability 0.3, and 0.3 · 0.5 = 0.15. The first answer would add 0.4,
but it never comes up. No sample looks odd and nothing is noisy, so nobody
is warned. What is lost is **support**: answers that $\pi$ can write and the
sampler cannot. The mean of the weights shows it:

$$\mathbb E_\text{{old}}[w]=\sum_{{y:\,\pi_\text{{old}}(y)>0}}
\pi_\text{{old}}(y)\,\frac{{\pi(y)}}{{\pi_\text{{old}}(y)}}
=\text{{the share of }}\pi
\text{{ that }}\pi_\text{{old}}\text{{ covers}}$$

It should be 1. In this batch it is {covered:.2f}."""
two = {"weighted": so_far(w[y] * R[y]),
       "weighted, first answer cut": so_far(w_cut[y_cut] * R[y_cut])}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.2", "goes to 0.15, with little noise", missing,
       pictures.running(two, truth, low=0.15, caption=(
           "Six batches each. The wrong mean, below, is the calm one.")),
       instead={
           "goes to 0.55, with more noise":
           "That needs the first answer at least now and then.",
           "goes to 0.25, as if scaled up to full size":
           "That is 0.15 divided by the mean weight. The plain mean does "
           "not divide by it.",
           "is nan: 0.4 is divided by 0":
           "Only answers that were drawn are divided, and the first never "
           "is.",
       })

# %% [markdown]
# **So log the mean weight before you trust any other mean.** If it is clearly below 1 in a large
# batch of *short* answers, the sampler has cut something. (Long answers need another log: guess 3.)
#
# <details><summary>One level deeper: when even this check is blind</summary>
#
# * Many trainers recompute the old log-probabilities with the full softmax. Then the ratio of a
#   policy that has not moved is 1 everywhere and the mean weight is 1, gap or no gap. The check
#   needs the sampler's own probabilities, after truncation. Or sample at top-p 1.
# * One may divide the weighted rewards by $\sum w$ instead of $n$ (*self-normalising*). Then the
#   weights sum to 1 whatever was cut. The mean here is 0.25, option b, and the warning is gone.
# * The statements page runs both.
# </details>

# %% [markdown]
# ## How many samples are left?
#
# The second way: every answer is covered, but the weights differ, so a few answers count more than
# the rest. How many answers is such a batch worth?
#
# Divide the weighted rewards by $\sum w$. How many *equally* weighted values would give a mean as
# good? Let the values $f_i$ be independent of each other and of the weights, each with variance
# $\sigma^2$.
#
# $$\begin{aligned}
# \mathrm{Var}\Big[\frac{\sum_iw_if_i}{\sum_iw_i}\Big]&=\sigma^2\,\frac{\sum_iw_i^2}{(\sum_iw_i)^2}&&\text{variances of independent terms add}\\
# \frac{\sigma^2}{m}&=\sigma^2\,\frac{\sum_iw_i^2}{(\sum_iw_i)^2}&&\text{a plain mean of }m\text{ values, asked to be as good}\\
# m&=\frac{(\sum_iw_i)^2}{\sum_iw_i^2}=:\mathrm{ESS}&&\text{solved for }m
# \end{aligned}$$
#
# This $m$ is the **effective sample size**, ESS. It is $n$ when all weights are equal, and 1 when
# one sample has all the weight. The mean weight is 1, so in a very large batch
# $\mathrm{ESS}\approx n/\mathbb E_\text{old}[w^2]=n/(1+\mathrm{Var}[w])$, the *large-batch
# formula*.

# %%
def ess(w):
    return w.sum()**2 / (w**2).sum()

# %% tags=["setup"] jupyter={"source_hidden": true}
# our 1,000 answers, folded: the formula, and the two means exactly
weight = new / old

def variance(p, f):
    return p @ f**2 - (p @ f)**2

left = 1000 / (old @ weight**2)
print(f"large-batch formula         {left:.0f} of 1,000")
# divided by Σw, a large batch is off by the mean of w (R - 0.55)
for name, b in ("n ", 0), ("Σw", 0.55):
    worth = variance(new, R) / variance(old, weight * (R - b))
    print(f"our rewards, divided by {name}  {1000 * worth:.0f}")

# %% [markdown]
# The formula's 453 is not true of our pictures. They divide by $n$, and there 1,000 old answers are
# worth 122 fresh ones: when the weights of a batch happen to sum high, its mean is too high.
# Dividing by $\sum w$ takes that part away. (So does a baseline near the mean, 03.)
#
# Look at what the formula asks for: the weights, and nothing else. **The ESS never sees the
# rewards.** It is a warning light for the weights, not an error bar of your mean.

# %% [markdown]
# ## Many tokens
#
# What happens to the weights of a real answer, with $T$ tokens? Write $\rho_t$ for the ratio of
# token $t$, today's probability over the old one. Probabilities of tokens multiply, so their ratios
# multiply:
#
# $$w=\rho_1\rho_2\cdots\rho_T$$
#
# Take coins for tokens. Each ratio is 1.2 or 0.8, by the toss of a fair coin, so its mean is 1. The
# tosses are independent, so the mean of $w$ is 1 as well.

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.3", "Take answers of 1,000 tokens. The mean "
        "weight is 1. Half of the answers weigh less than ...?",
        ["about 10⁻¹⁸", "about 10⁻⁹", "about 10⁻³", "about 1"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
lengths = torch.tensor([10, 50, 100, 200, 300, 500, 700, 1000])

def mean_weight(T, batch, n=1000):
    """Mean weight of n answers of T tokens, some of them up."""
    g = torch.Generator().manual_seed(batch)
    ups = torch.binomial(torch.full((n,), float(T)),
                         torch.full((n,), 0.5), generator=g)
    return (1.2**ups * 0.8**(T - ups)).mean()

batches = torch.tensor([[mean_weight(int(T), k) for T in lengths]
                        for k in range(8)])                  # (8, 8)
median = (1.2 * 0.8) ** (lengths / 2)        # as many ups as downs

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.3", "about 10⁻⁹",
       "An up and a down multiply to 1.2 · 0.8 = 0.96, not to 1. Five "
       f"hundred such pairs give {median[-1]:.1e}. **The mean over all "
       "answers is still 1, but it is made of answers so rare that no "
       "batch here contains one.** The batches' own means fall far below "
       "1, and nothing was cut. So the mean weight is a check for short "
       "answers. For long ones log the mean *token* ratio.",
       pictures.batch_means(lengths.tolist(), batches, median.tolist()),
       instead={
           "about 10⁻¹⁸": "That takes 1,000 pairs. 1,000 tokens make 500.",
           "about 10⁻³": "169 pairs bring the weight there. There are 500.",
           "about 1": "Ups and downs cancel in a sum. In a product each "
           "pair loses 4 %.",
       })

# %% [markdown]
# The variance says the same. Write $\chi^2$ for the variance of *one* token's ratio, for the coins
# $0.2^2=0.04$.
#
# $$\begin{aligned}
# \mathbb E[w]&=\textstyle\prod_t\mathbb E[\rho_t]=1&&\text{the mean of a product of independent factors}\\
# \mathbb E[w^2]&=\textstyle\prod_t\mathbb E[\rho_t^2]=(1+\chi^2)^T&&\text{the same for squares; }\mathbb E[\rho^2]=1+\chi^2\\
# \mathrm{Var}[w]&=(1+\chi^2)^T-1&&\text{variance: mean square minus squared mean}
# \end{aligned}$$

# %% [markdown]
# So 1,000 answers of $T$ tokens are worth $1000/1.04^T$, by the large-batch formula. Would a log
# tell you?

# %% jupyter={"source_hidden": true}
# the explorer
task("importance_sampling.t1", product_weight.product_weight_explorer(),
     ("A log reports an effective sample size of 60 of 1,000. What does "
      "the formula leave: 60, 30 or 5? Say one. Then, at 1 ± 0.20, find "
      "answers so long that a typical batch reports 50 to 70.",
      product_weight.reports_sixty),
     ("Now answers of 800 tokens or more. How far may a ratio move if the "
      "formula is to leave half of the answers, 450 to 550: ± 0.1, ± 0.03 "
      "or ± 0.003? Say one, then find it.",
      product_weight.half_of_long_answers))

# %% [markdown]
# <details><summary>What the two tasks show</summary>
#
# * At 95 tokens a batch reports about 60, and the formula leaves 24. At 177 tokens it is 16 against
#   less than one. Why? The formula divides by the mean of $w^2$, the blue hump. Most of that lies
#   beyond the dashed line, where 1,000 answers have one, and a batch knows only the weights it
#   holds. So a small ESS means trouble, and a large one is no all-clear.
# * About ± 0.03: half is left when $T\chi^2$ is near $\ln2$. Ten times the tokens need a tenth of
#   $\chi^2$, so the ± shrinks by $\sqrt{10}$ only.
# </details>
#
# **What counts is the length times a token's variance.** How large is that in a real run? The small
# transformer of this course writes 512 answers of some 28 tokens. Then it trains on, and after 1,
# 2, 4 and 8 updates it scores the old answers again. (Twelve batches, three seeds: the middle one.)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the table, folded: weights of a recorded run
found = json.loads((data_folder() / "runs/engine_gap.json").read_text())
print("updates  effective share  as if 1 ± ...  share at 1,000 tokens")
for k in "1248":
    runs = [run for i in range(3) for run in found[f"lags, seed {i}"][k]]
    run = sorted(runs, key=lambda run: run["effective share"])[6]
    share, T = run["effective share"], run["tokens"] / run["answers"]
    like = (share**(-1 / T) - 1)**0.5        # share = 1 / (1 + like²)^T
    long = share**(1000 / T)
    print(f"{k:>7}{100 * share:15.0f} %{like:15.3f}{100 * long:21.0f} %")

# %% [markdown]
# After one update the weights are as unequal as with coins of ± 0.03. With 28 tokens that does no
# harm. With 1,000 it would cost half of the answers, and four updates nearly all. (The last column
# is the formula, for independent tokens that move as far.)

# %% [markdown]
# ## Forty steps on one batch
#
# Which weight should a trainer use? A policy has three words, 0, 1 and 2, and draws each word given
# the word before it. The reward is the share of 1s in the answer. It writes 64 answers of 64 words,
# once. Then a trainer takes forty gradient steps on these 64 answers.
#
# There are three trainers. They differ in what stands in front of a word's $A\,\nabla\log\pi$:
# nothing (ratios ignored), the ratio of that word alone, or the whole answer's $w$.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: gradient(..., rule, b)
def log_probability(z, y):
    """log pi of each word of y, (n, T), given the word before it."""
    before = torch.cat([0 * y[:, :1], y[:, :-1]], 1)
    return z.log_softmax(-1)[before, y]

rules = {                                    # weights from log rho, (n, T)
    "ratios ignored": torch.ones_like,
    "one ratio per token": torch.exp,
    "whole-answer ratio": lambda x: x.sum(1, True).exp(),
    "whole answer, divided by Σw":
    lambda x: len(x) * x.sum(1, True).softmax(0),
    "whole answer, capped at 2":
    lambda x: x.sum(1, True).exp().clamp(max=2.0)}

def gradient(z, z_old, y, rule, b):
    """Mean over the answers y of weight x (R - b) x grad log pi."""
    z = z.clone().requires_grad_()           # logits (3, 3)
    log_pi = log_probability(z, y)
    log_rho = (log_pi - log_probability(z_old, y)).detach()
    R = (y == 1).double().mean(1)
    total = ((R - b) / len(y)) @ (rules[rule](log_rho) * log_pi).sum(1)
    return torch.autograd.grad(total, z)[0]

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.4", "Who has earned most after forty steps, "
        "and who least? (Mean of 20 policies, a batch each.)", [
            "per token, ignored, whole answer: better none than all",
            "per token, whole answer, ignored: any ratio beats none",
            "whole answer, per token, ignored: exact comes first",
            "ignored, per token, whole answer: no ratio, no noise"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 1: 20 policies, what they earn and write
policies = [torch.randn(
    2, 3, 3, generator=torch.Generator().manual_seed(k))[0]
    for k in range(20)]                      # logits

def earned(z, T=64):
    """The mean share of word 1 in answers of T words; z (..., 3, 3)."""
    chance, total = torch.eye(3)[:1].expand(*z.shape[:-2], 1, 3), 0
    for _ in range(T):
        chance = chance @ z.softmax(-1)
        total = total + chance[..., 0, 1]
    return total / T

def written(z, seed, n=64, T=64):
    """n answers of T words."""
    g = torch.Generator().manual_seed(seed)
    words, cut = [torch.zeros(n, dtype=torch.long)], z.softmax(-1).cumsum(1)
    for _ in range(T):
        u = torch.rand(n, 1, generator=g)
        words.append((u > cut[words[-1], :2]).sum(1))
    return torch.stack(words[1:], 1)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 2: forty steps for each rule and policy
seen = [written(z, i) for i, z in enumerate(policies)]
shares = torch.stack([(y == 1).double().mean(1) for y in seen])
path = {rule: torch.zeros(20, 41, 3, 3) for rule in rules}
for rule in rules:
    for i, z in enumerate(policies):
        for k in range(40):
            path[rule][i, k] = z
            z = z + gradient(z, policies[i], seen[i], rule,
                             shares[i].mean())
        path[rule][i, 40] = z
climbed = {rule: earned(path[rule]) for rule in rules}   # (20, 41) each

def log_ratios(rule, k):
    """Of the words of each policy's batch after k steps, (20, 64, 64)."""
    return torch.stack([log_probability(path[rule][i, k], seen[i])
                        - log_probability(policies[i], seen[i])
                        for i in range(20)])

def heaviest(rule, k):
    """Percent of the weight on the heaviest of 64 answers, typically."""
    x = log_ratios(rule, k).sum(2).softmax(1)
    return 100 * x.max(1).values.quantile(0.5)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 3: what is told
plain, token, answer, normal, capped = (
    climbed[rule][:, -1] for rule in rules)
assert (answer < torch.minimum(plain, token)).sum() == 17
assert (token > plain).sum() == 15
assert torch.maximum(normal, capped).lt(torch.minimum(plain, token)).all()
best = shares.max(1).values.mean()           # of a batch's 64 answers
product, normed = list(rules)[2:4]
stuck = (log_ratios(product, 40).sum(2).exp().mean(1) < 0.01).sum()
first = log_ratios(normed, 40).sum(2).argmax(1)
copied = shares.gather(1, first[:, None])[:, 0]      # the heaviest's
assert (normal - copied).abs().quantile(0.5) < 0.01
CAPTION = ("Mean of 20 policies, one batch of 64 answers each; learning "
           "rate 1. Bars: two standard errors.")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.4",
       "per token, ignored, whole answer: better none than all",
       f"{token.mean():.2f}, {plain.mean():.2f} and {answer.mean():.2f}. "
       "After five steps the heaviest of the 64 answers typically has "
       f"{heaviest(product, 5):.0f} % of the weight. Then a step goes too "
       f"far, and with {stuck} of the 20 policies the mean weight ends "
       "below 0.01: the trainer hardly moves any more.\n\n"
       "Are only the steps too small? Divide by Σw, and they keep their "
       f"size. It ends at {normal.mean():.2f}: one answer has "
       f"{heaviest(normed, 40):.0f} % of the weight, and the policy copies "
       f"it. (The best of 64 earns {best:.2f}.) Cap each weight at 2, and "
       f"none dominates. It ends at {capped.mean():.2f}: an answer that "
       "should count a hundred times counts twice. The mean is wrong.",
       pictures.climbs(climbed, best, caption=CAPTION), instead={
           "whole answer, per token, ignored: exact comes first":
           "It is exact on average. It has one batch of 64 answers, and "
           "the weights are products of 64 ratios.",
           "per token, whole answer, ignored: any ratio beats none":
           "A ratio helps only if its noise is small.",
           "ignored, per token, whole answer: no ratio, no noise":
           "No noise, but a wrong mean, more wrong with every step.",
       })

# %% [markdown]
# <details><summary>One level deeper: noise or bias?</summary>
#
# * Give the trainers 512 answers instead of 64. With the cap the run ends at 0.44 again: more
#   answers do not remove a bias. Divided by $\sum w$ it ends at 0.52. That was noise, and it still
#   copies: the best of 512 answers earns 0.54.
# * On the coins the bias of a cap can be counted. Of the mean weight, 1, a cap of 2 keeps 0.85 at
#   20 tokens, 0.43 at 100 and 0.002 at 1,000. So caps are used
#   where weights are near 1 anyway, one token at a time (19).
# * How sure is the order? The whole-answer ratio is last of the three with 17 of the 20 policies,
#   one ratio per token is ahead of none with 15. With a third of the learning rate and three times
#   the steps the first two earn the same, and the whole-answer ratio is last with all 20.
#   <!-- cited: 0.44, 0.52, 0.54, 0.85, 0.43, 0.002 -->
# </details>

# %% [markdown]
# ## One ratio per token
#
# The winner is the rule of PPO and GRPO, and it is not the exact weight. Where does it come from?
# $A$ is the advantage of the answer, and $\pi(y_t)$ is short for the probability of token $t$ given
# everything before it.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_{\pi}\Big[A\,\textstyle\sum_t\nabla\log\pi(y_t)\Big]&&\text{log trick (02), baseline (03)}\\
# &=\mathbb E_\text{old}\Big[w\,A\,\textstyle\sum_t\nabla\log\pi(y_t)\Big]&&\text{importance weight of the answer (guess 1)}\\
# &=\mathbb E_\text{old}\Big[\textstyle\sum_t(\rho_1\cdots\rho_{t-1})\;\rho_t\;(\rho_{t+1}\cdots\rho_T)\,A\,\nabla\log\pi(y_t)\Big]&&\text{the product, sorted around token }t\\
# &\approx\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi(y_t)\Big]&&\textbf{a choice: each token keeps only its own ratio}
# \end{aligned}$$
#
# Every line but the last is exact. And what does the last one compute? The batch holds the old
# policy's tokens, and $\rho_t$ turns one of them into today's. **So each token is judged as if
# today's policy chose it, and the old policy everything before and after it.** At the old policy
# that is exact. The further the other tokens have moved, the less it is true.
#
# What does that buy? Weights that stay alike, however long the answer. And what does it cost?
# Compare its gradient with the true one: over all answers that the old policy can write, and in a
# fresh batch of 64.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the price, folded, part 1: the token rule over all old answers
def over_all(z, z_old, T=64):
    """Mean over all old answers of the sum of rho_t R grad log pi."""
    z = z.clone().requires_grad_()
    old, new = z_old.softmax(-1), z.softmax(-1)
    words = [torch.eye(3)[0]]                # chances of the word before
    for _ in range(T - 1):
        words.append(words[-1] @ old)
    later, total = torch.zeros(3), 0.0       # 1s to come, by old
    for word in reversed(words):
        worth = torch.eye(3)[1] + later
        total = total + word @ new @ worth   # one word by new
        later = old @ worth
    return torch.autograd.grad(total / T, z)[0]

def true_gradient(z):
    z = z.clone().requires_grad_()
    return torch.autograd.grad(earned(z), z)[0]

for z in policies:                           # exact at the old policy
    assert torch.allclose(over_all(z, z), true_gradient(z))

# %% tags=["setup"] jupyter={"source_hidden": true}
# the price, folded, part 2: along the way of the per-token trainer
by_token, by_answer = list(rules)[1:3]
steps = [0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40]
bias, cosine = torch.zeros(2, 20, len(steps))
batch_of = torch.zeros(2, 20, 4, len(steps))     # rule, policy, batch
for i, z_old in enumerate(policies):
    fresh = [written(z_old, 100 + 4 * i + j) for j in range(4)]
    for k, step in enumerate(steps):
        z = path[by_token][i, step]
        right, got = true_gradient(z), over_all(z, z_old)
        bias[i, k] = (got - right).norm() / right.norm()
        cosine[i, k] = (got * right).sum() / got.norm() / right.norm()
        for j, ys in enumerate(fresh):
            for r, rule in enumerate((by_token, by_answer)):
                miss = gradient(z, z_old, ys, rule, earned(z_old)) - right
                batch_of[r, i, j, k] = miss.norm() / right.norm()
moved = [(log_ratios(by_token, k).exp() - 1).abs().mean().item()
         for k in steps]

def typical_ess(log_w):                      # of each row
    return (1 / log_w.softmax(1).square().sum(1)).quantile(0.5)

# %% jupyter={"source_hidden": true}
# what is bought, and the picture of the price
x = log_ratios(by_token, 5)                  # after five steps
print("after 5 steps, effective: "
      f"{typical_ess(x.sum(2)):.0f} of 64 answers, "
      f"{typical_ess(x.flatten(1)):,.0f} of {64 * 64:,} words")
print("after 40 steps, the token rule over all answers and the true "
      f"gradient: cosine {cosine[:, -1].quantile(0.5):.2f}")
pictures.missed(steps, moved, {
    by_token: (bias, batch_of[0].flatten(0, 1)),
    by_answer: (0 * bias, batch_of[1].flatten(0, 1))}, caption=(
    "Medians over 20 policies, at the places that the per-token trainer "
    "passes. A gradient of 0 would be off by 100 %."))

# %% [markdown]
# After five steps one ratio per token is off by a third, whatever the batch size. That is its
# price, and a batch of 64 is hardly worse. The exact weight is right on average, but in a batch it
# is off by more than the whole gradient. **A steady bias beats an exact mean that no batch shows.**
#
# But the price grows with the move. After forty steps the error is nearly as large as the gradient,
# and only the direction is still roughly right. So the policy must stay near: page 05 measures how
# far it has gone, and PPO (06) holds it back.
#
# <details><summary>One level deeper: which of the two dropped factors matters?</summary>
#
# The factors after token $t$ turn the old policy's continuations into today's. If $A$ were the
# exact advantage of token $t$ under today's policy, they would average out and only the prefix
# would be missing. TRPO's bound ([arXiv 1502.05477](https://arxiv.org/abs/1502.05477)) is about
# that prefix: the states are the old policy's.
#
# With a reward $r_t$ per token part of it is free: given the tokens so far, the later ratios
# average to 1, so $r_t$ needs $\rho_1\cdots\rho_t$ only (**per-decision** importance sampling,
# exact). With one reward at the end nothing drops out.
#
# There is another choice. Take the geometric mean of the ratios: length is out of it, and it is no
# importance weight any more (13, GSPO).
# </details>

# %% [markdown]
# ## In code
#
# Take both rules on the running group. Two answers are right and
# two are wrong, so with the mean as baseline $A=\pm\frac12$.

# %%
batch = running_group()
rho = (batch.logprobs - batch.old_logprobs).exp().detach()      # (4, 6)
A = (batch.rewards - batch.rewards.mean())[:, None].expand_as(rho)
whole = rho.where(batch.mask, 1.0).prod(1, keepdim=True)

# %% jupyter={"source_hidden": true}
# the picture: weight times A
pictures.pushes(batch, {"whole-answer ratio": whole * A,
                        "one ratio per token": rho * A}, caption=(
    "The push on each token is its weight times A. One token of answer 1 "
    "has ratio 6. On the left it lifts all five tokens, on the right one."))

# %% [markdown]
# A trainer wants a loss whose gradient is the right-hand picture. The old policy is a constant, so
# $\rho=e^{\log\pi-\log\pi_\text{old}}$ has the slope $\nabla\rho=\rho\,\nabla\log\pi$. The loss
# is minus $\rho_tA$, summed over the tokens of an answer and averaged over the answers.

# %%
def reuse_loss(logprobs, old_logprobs, A, mask):
    """(B, T) each; old_logprobs were stored with the batch."""
    log_rho = torch.where(mask, logprobs - old_logprobs, 0.0)
    value = log_rho.exp() * A
    return -torch.where(mask, value, 0.0).sum() / len(value)

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.5", "Here is a bug. Before each step the "
        "trainer recomputes `old_logprobs` from the present policy, under "
        "`torch.no_grad()`, so every ratio is 1. What is its gradient on "
        "the reused batch?", [
            "0: a constant has no slope", "right: the ratios cancel",
            "right in direction, too short",
            "REINFORCE's, with no correction"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
def push(old_logprobs):
    loss = reuse_loss(batch.logprobs, old_logprobs, A, batch.mask)
    slope, = torch.autograd.grad(loss, batch.logprobs, retain_graph=True)
    return -len(A) * slope

assert torch.allclose(push(batch.old_logprobs), rho * A * batch.mask)
assert torch.allclose(push(batch.logprobs.detach()), A * batch.mask)
reveal("importance_sampling.5", "REINFORCE's, with no correction",
       "The value of ρ is 1 and its slope is ∇log π. On the first step "
       "that is right, because the policy has not moved. From the second "
       "step on the correction is missing and nothing crashes. The log "
       "shows it: the ratio is exactly 1 at every step. (Without no_grad "
       "the slopes would cancel, and the gradient would be 0.)",
       instead={
           "0: a constant has no slope": "Only the denominator is "
           "constant. The numerator still depends on the policy.",
           "right: the ratios cancel": "They are 1 by mistake. The policy "
           "has moved since the batch was written.",
           "right in direction, too short": "Tokens whose ratio should be "
           "3 and 0.3 are pushed alike.",
       })

# %% [markdown]
# **When does a trainer need a ratio?**
#
# | the step | the ratio |
# |---|---|
# | first step on fresh answers | not needed, every $\rho_t$ is 1 |
# | second step on the same answers | needed |
# | second minibatch of a fresh batch | needed: the first one has moved the policy |
# | answers some updates old (*asynchronous* training) | needed on the first step too |
# | answers of a fast inference engine | needed if its probabilities differ from the trainer's |
#
# The last row is common: the engine has the same parameters, but other kernels or another
# precision. $\pi_\text{old}$ is the policy that *wrote* the answers, so keep the engine's
# log-probabilities. Log the mean token ratio, which is near 1 over many tokens, and the largest
# one.
# %% jupyter={"source_hidden": true}
# the pipeline
pipeline.pipeline("ratio", again=True, caption=(
    "This page is the highlighted box: what makes a second step on the "
    "same answers nearly right."))

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | importance sampling | |
# |---|---|
# | sentence | weight each old sample by new probability over old: exact wherever old covers new, useless where a few samples get all the weight, as long answers do |
# | formula | $\mathbb E_\pi[f]=\mathbb E_\text{old}[wf]$, $w=\prod_t\rho_t$; $\mathrm{ESS}=(\sum w)^2/\sum w^2$; $\mathrm{Var}\,w=(1+\chi^2)^T-1$ with $\chi^2=\mathrm{Var}\,\rho_t$ |
# | the choice | $\rho_t$ per token instead of the product |
# | picture | three humps that part: what a batch holds, what the mean of $w$ is made of, and that of $w^2$ |
# | numbers | a gap in the support: 0.15 for 0.55 · a batch reports an ESS of 60 where the formula leaves 24 · 1,000 tokens: mean weight 1, median 10⁻⁹ · one batch used forty times: per token 0.82, ignored 0.72, whole answer 0.55 |
# | since REINFORCE | each token's term: from $A\log\pi$ to $\rho A$, with $\log\pi_\text{old}$ kept from when the batch was written |

# %%
score(*(f"importance_sampling.{k}" for k in range(1, 6)))

# %% [markdown]
# ## Exercises
#
# **1 By hand** · 3 minutes. Ten samples. Nine have weight 1, the last has weight 9.

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.6", "How many effective samples? (And "
        "after all weights are multiplied by 100?)", unit="samples")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ten = torch.tensor([1.0] * 9 + [9.0])
assert torch.isclose(ess(ten), ess(100 * ten))
reveal("importance_sampling.6", round(ess(ten).item(), 4),
       "18² / (9 + 81). One large weight costs almost two thirds of the "
       "samples. A common factor cancels.")

# %% [markdown]
# **2 Implement** · 5 minutes. The weighted estimate, from `values`, `log_p` (the policy you ask
# about) and `log_q` (the one that wrote the samples), each (n,). Divide by $n$. The logs may be
# those of whole answers, −800 and less.
#
# <details><summary>hint</summary>exp(−800) is 0 in a computer, and 0/0 is no number. What can you do before the exp?</details>

# %% tags=["exercise"]
def my_importance_estimate(values, log_p, log_q):
    return ...

check.importance_estimate(my_importance_estimate)

# %% [markdown]
# **3 Implement** · 6 minutes. The effective sample size from log-weights (n,). Asked is the
# *number* of samples, from 1 to $n$. Training logs often show the share ESS/$n$ instead; that is
# fine there, multiply by $n$ here. Log-weights of 800 and of −800 are among the tests.
#
# <details><summary>hint</summary>Exercise 1: a common factor of all weights cancels. Choose it well.</details>

# %% tags=["exercise"]
def my_effective_sample_size(log_weights):
    return ...

check.effective_sample_size(my_effective_sample_size)

# %% [markdown]
# **4 Derive** · 6 minutes. Independent tokens, but each with its own $\chi_t^2$. What is the
# variance of the product, and how many effective samples are left of $n$? Then a number:
# $\chi^2=0.01$ at every token.

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.7", "What is the longest answer, in whole "
        "tokens, that leaves three quarters of the samples or more?",
        unit="tokens", close=0.0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
longest = torch.tensor(4 / 3).log() / torch.tensor(1.01).log()
assert 1.01**longest.item() < 4 / 3 + 1e-12
reveal("importance_sampling.7", int(longest),
       "Var = Π(1 + χ_t²) − 1, left are n / Π(1 + χ_t²). With 1.01^T = "
       f"4/3: T = ln(4/3) / ln 1.01 = {longest.item():.1f}.")

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>What is importance sampling, and when does it fail?</b></summary>
#
# Samples of one policy, each weighted by p/q, give another policy's mean. It is exact if the
# sampler covers the other's support; a gap is lost silently, and only the sampler's own
# probabilities show it, by a mean token ratio below 1. It is useful only while weights are alike:
# in a large batch the effective sample size is n/(1 + Var w). With a reward per token, each reward
# needs the ratios up to it only (per-decision).
# </details>
# <details><summary><b>Why not use the ratio of the whole answer?</b></summary>
#
# Right on average, far off in any one batch. It is a product of T token ratios and its variance is
# (1 + χ²)^T − 1. At χ² = 0.04 <!-- cited: 0.04 --> that is 49 at 100 tokens and 10¹⁷ at 1,000. The
# mean is still 1, but it sits in answers that no batch contains; the median answer weighs 10⁻⁹.
# </details>
# <details><summary><b>Derive the gradient that PPO uses. Which line is not exact?</b></summary>
#
# The one where each token keeps only its own ratio. Log trick and baseline; importance weight of
# the answer; the product sorted around token t; then drop the ratios before and after it. So each
# token is judged as if today's policy chose it and the old policy all the others. Exact at the old
# policy, and worse with distance.
# </details>
# <details><summary><b>Your effective sample size is 60 of 1,000. Can you trust it?</b></summary>
#
# As an alarm yes, as a count no. It is computed from the samples you have, and the rare answer with
# the huge weight is not among them. With tokens at ± 20 % a typical batch of 1,000 reports 60 at 95
# tokens, where the large-batch value is 24, and 16 at 177, where it is below 1.
# </details>
# <details><summary><b>How many updates may one batch serve?</b></summary>
#
# There is no such number: what counts is how far the tokens have moved, and for whole-answer
# weights the length as well. In our small model one update moved a token's ratio by about 3 %. At
# 1,000 tokens that would cost half of the effective answers. One ratio per token pays in bias
# instead, which grows with the move. So log ratios, and stop or clip by them. Published recipes
# differ: one update on a batch ([DeepSeekMath](https://arxiv.org/abs/2402.03300)), four minibatches
# ([GSPO](https://arxiv.org/abs/2507.18071)), sixteen
# ([DeepSeek-R1](https://arxiv.org/abs/2501.12948), [DAPO](https://arxiv.org/abs/2503.14476)).
# </details>
# <details><summary><b>The trainer's log-probabilities differ from the inference engine's. So what?</b></summary>
#
# Then the data are off-policy before the first step. The engine wrote the answers, so its
# probabilities belong in the denominator. The ratio has two factors,
# $\frac{\pi_\text{now}}{\pi_\text{engine}}=\frac{\pi_\text{now}}{\pi_\text{trainer, then}}\cdot\frac{\pi_\text{trainer, then}}{\pi_\text{engine}}$,
# drift and mismatch. The clip (06) acts on the first, and the second is capped at a number (19). Or
# train on the engine's log-probabilities. Recomputing old log-probabilities in the trainer hides
# the mismatch: the ratio starts at 1.
# </details>
# <details><summary><b>You sample with top-p and train with the full softmax. What happens?</b></summary>
#
# Tokens that were cut are never seen, and no weight brings them back. Against the full softmax the
# ratios start at 1, so nothing looks odd; only the sampler's own probabilities show a mean token
# ratio below 1. Score under the truncation you sampled with, or sample without one.
# </details>
#
# Statements one hears, decided by running them:
# [04 · statements](statements/04_importance_sampling.ipynb). **Next: 05.** How far is far? KL.
