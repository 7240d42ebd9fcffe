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
# **After this page** you can reweight an old batch for today's policy, show why that breaks for
# long answers, and name the line that turns the exact weight into PPO's one ratio per token.
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
import torch
from rlnb import check
from rlnb.classroom.explorers import product_weight
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import importance_sampling as pictures
from rlnb.classroom.pictures import pipeline
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
# batch of *short* answers, the sampler has cut something. (Long answers need another log. It comes
# with guess 3.)
#
# <details><summary>One level deeper: when even this check is blind</summary>
#
# * Many trainers recompute the old log-probabilities with the full softmax. Then the ratio of a
#   policy that has not moved is 1 everywhere and the mean weight is 1, gap or no gap. The check
#   needs the sampler's own probabilities, after truncation. Or sample at top-p 1.
# * Dividing by $\sum w$ instead of $n$ (self-normalising) is often steadier. With a gap it is still
#   wrong, and the mean weight is divided away.
# * The statements page runs both.
# </details>

# %% [markdown]
# ## How many samples are left?
#
# The second way: every answer is covered, but the weights differ, so a few answers count more than
# the rest. Our 1,000 old answers are worth only about 450 fresh ones. Where does such a number come
# from?
#
# Take the weighted mean $\sum wf/\sum w$. How many *equally* weighted values would give a mean as
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

def variance(p, f):
    return p @ f**2 - (p @ f)**2

left = 1000 / (old @ (new / old)**2)
print(f"1,000 old answers count like {left:.0f} fresh ones")
by_n = [1000 * variance(new, R) / variance(old, new / old * (R - b))
        for b in (0, 0.55)]
assert [round(n.item()) for n in by_n] == [122, 462]     # the fold below

# %% [markdown]
# Look at what the formula asks for: the weights, and nothing else. **The ESS never sees the
# rewards.** So it is a warning light for the weights, not an error bar of your mean.
#
# <details><summary>One level deeper: and the weighted mean of our pictures?</summary>
#
# The pictures divide by $n$, not by $\sum w$. When the weights of a batch happen to sum high, such
# a mean is too high. With this noise the 1,000 answers count like 122 <!-- cited: 122 --> only.
# Subtract the mean reward, 0.55, from each reward first, and they count like 462
# <!-- cited: 462 -->. That is a baseline (03) at work.
# </details>

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
        ["about 1: ups and downs cancel", "about 0.1",
         "about one millionth", "about one billionth"])

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
reveal("importance_sampling.3", "about one billionth",
       "An up and a down multiply to 1.2 · 0.8 = 0.96, not to 1. Five "
       f"hundred such pairs give {median[-1]:.1e}. **The mean over all "
       "answers is still 1, but it is made of answers so rare that no "
       "batch here contains one.** The batches' own means fall far below "
       "1, and nothing was cut. So the log of the first half is for short "
       "answers. For long ones log the mean *token* ratio.",
       pictures.batch_means(lengths.tolist(), batches, median.tolist()),
       instead={
           "about 1: ups and downs cancel":
           "They cancel in a sum. In a product an up and a down lose 4 %.",
           "about 0.1": "57 pairs bring the weight to 0.1. There are 500.",
           "about one millionth":
           "338 pairs bring the weight there. There are 500.",
       })

# %% [markdown]
# The variance says the same. Write $\chi^2$ for the variance of *one* token's ratio. For the coins
# it is $\chi^2=0.2^2=0.04$.
#
# $$\begin{aligned}
# \mathbb E[w]&=\textstyle\prod_t\mathbb E[\rho_t]=1&&\text{the mean of a product of independent factors}\\
# \mathbb E[w^2]&=\textstyle\prod_t\mathbb E[\rho_t^2]=(1+\chi^2)^T&&\text{the same for squares; }\mathbb E[\rho^2]=1+\chi^2\\
# \mathrm{Var}[w]&=(1+\chi^2)^T-1&&\text{variance: mean square minus squared mean}
# \end{aligned}$$

# %%
print("variance of the weight\ntokens    ± 20 %      ± 1 %")
for T in (1, 10, 100, 1000, 10000):
    print(f"{T:6d}   {1.04**T - 1:7.3g}   {1.0001**T - 1:8.3g}")

# %% [markdown]
# Look at 1,000 tokens. With ratios of ± 20 % no real batch is large enough. With ± 1 % the variance
# is 0.105, and the weights are harmless. **What counts is the length times a token's variance.**

# %% jupyter={"source_hidden": true}
# the explorer
task("importance_sampling.t1", product_weight.product_weight_explorer(),
     ("Leave the ratios at 1 ± 0.20. Make the answers longer until the "
      "large-batch formula first gives less than one sample, within 5 "
      "tokens. What does a typical batch report there?",
      product_weight.less_than_one),
     ("Twenty tokens at ± 0.20 leave 456. Make the answers ten times as "
      "long, 200. To keep 415 to 500, is a tenth of the ± needed?",
      product_weight.as_many_at_ten_times))

# %% [markdown]
# <details><summary>What the two tasks show</summary>
#
# * The formula falls below one at 177 tokens. A typical batch of 1,000 still reports 16 or 17. It
#   computes the ESS from the weights that it holds, and the rare heavy ones are not among them. So
#   a small ESS means trouble, and a large one is no all-clear.
# * What counts is $T$ times the variance. Ten times the tokens need a tenth of $\chi^2$. So the ±
#   shrinks by $\sqrt{10}$ only, to about 0.063 <!-- cited: 0.063 -->.
# </details>

# %% [markdown]
# ## One ratio per token
#
# The weight of a whole answer is right on average and useless in a batch. What can be left out of
# it? $A$ is the advantage of the answer, and $\pi(y_t)$ is short for the probability of token $t$
# given everything before it.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_{\pi}\Big[A\,\textstyle\sum_t\nabla\log\pi(y_t)\Big]&&\text{log trick (02), baseline (03)}\\
# &=\mathbb E_\text{old}\Big[w\,A\,\textstyle\sum_t\nabla\log\pi(y_t)\Big]&&\text{importance weight of the answer (guess 1)}\\
# &=\mathbb E_\text{old}\Big[\textstyle\sum_t(\rho_1\cdots\rho_{t-1})\;\rho_t\;(\rho_{t+1}\cdots\rho_T)\,A\,\nabla\log\pi(y_t)\Big]&&\text{the product, sorted around token }t\\
# &\approx\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi(y_t)\Big]&&\textbf{a choice: each token keeps only its own ratio}
# \end{aligned}$$
#
# Every line but the last is exact. The last line drops the ratios *before* the token, which ask
# whether today's policy would have come to this point. It also drops the ratios *after* it, which
# ask whether today's policy would go on like this.
#
# Why does the own ratio stay? Because it puts the token itself right. Given the words before it,
# $\mathbb E_\text{old}[\rho_t\nabla\log\pi(y_t)]=\sum\nabla\pi=0$, as it is under today's policy,
# and without $\rho_t$ it is not 0. And it costs little: **its variance does not grow with the
# length.**
#
# At the old policy all ratios are 1, and the last line is exact, too. The error grows with the
# move.

# %% [markdown]
# ## Forty steps on one batch
#
# Does it work? Take a policy with three words, 0, 1 and 2, which draws each word given the word
# before it. The reward is the share of 1s in the answer. The policy writes 64 answers of 64 words,
# once. Then a trainer takes forty gradient steps on these 64 answers.
#
# There are three trainers. One ignores the ratios, one uses a ratio per token, and one uses the
# whole answer's ratio.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: gradient(..., rule, b) and 20 pairs of policies
rules = ("ratios ignored", "one ratio per token", "whole-answer ratio")

def log_probability(z, y):
    """log pi of each word of y, (n, T), given the word before it."""
    before = torch.cat([0 * y[:, :1], y[:, :-1]], 1)
    return z.log_softmax(-1)[before, y]

def gradient(z, z_old, y, share, rule, b):
    """Sum over answers y of: share x weight x (R - b) x grad log pi."""
    z = z.clone().requires_grad_()           # logits (3, 3)
    log_pi = log_probability(z, y)
    rho = (log_pi - log_probability(z_old, y)).exp().detach()
    weight = dict(zip(rules, (torch.ones_like(rho), rho,
                              rho.prod(1, keepdim=True))))[rule]
    R = (y == 1).double().mean(1)
    total = (share * (R - b)) @ (weight * log_pi).sum(1)
    return torch.autograd.grad(total, z)[0]

draws = [torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(k))
         for k in range(20)]
pairs = [(start, start + 0.5 * step) for start, step in draws]

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.4", "Who has earned most after forty steps, "
        "and who least? (Mean of 20 policies, a batch each.)", [
            "per token, ignored, whole answer: better none than all",
            "per token, whole answer, ignored: any ratio beats none",
            "whole answer, per token, ignored: exact comes first",
            "ignored, per token, whole answer: no ratio, no noise"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 1: what is earned, and forty steps on one batch
def earned(z, T):
    """The mean share of word 1 in answers of T words; z (..., 3, 3)."""
    chance, total = torch.eye(3)[:1].expand(*z.shape[:-2], 1, 3), 0
    for _ in range(T):
        chance = chance @ z.softmax(-1)
        total = total + chance[..., 0, 1]
    return total / T

def written(z, n, T, g):
    """n answers of T words."""
    words, cut = [torch.zeros(n, dtype=torch.long)], z.softmax(-1).cumsum(1)
    for _ in range(T):
        u = torch.rand(n, 1, generator=g)
        words.append((u > cut[words[-1], :2]).sum(1))
    return torch.stack(words[1:], 1)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 2: forty steps for each rule and policy
each = torch.ones(64) / 64
seen = [written(z, 64, 64, torch.Generator().manual_seed(i))
        for i, (z, _) in enumerate(pairs)]
path = torch.zeros(3, 20, 41, 3, 3)          # rule, policy, step, logits
for r, rule in enumerate(rules):
    for i, (z_old, _) in enumerate(pairs):
        path[r, i, 0] = z = z_old
        b = (seen[i] == 1).double().mean()
        for k in range(40):
            z = z + gradient(z, z_old, seen[i], each, rule, b)
            path[r, i, k + 1] = z
climbed = dict(zip(rules, earned(path, 64)))             # (20, 41) each

def log_ratios(r, k):
    """Of the words of each policy's batch after k steps, (20, 64, 64)."""
    return torch.stack([log_probability(path[r, i, k], seen[i])
                        - log_probability(path[r, i, 0], seen[i])
                        for i in range(20)])

weights = log_ratios(2, 5).sum(2).softmax(1)     # shares of the weight
heaviest = weights.max(1).values.quantile(0.5)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 3: four words, the mean over all answers
every = torch.cartesian_prod(*[torch.arange(3)] * 4)         # (81, 4)
far = torch.zeros(20, 6)
error = {rule: torch.zeros(20, 6) for rule in rules}
for i, (z_old, z_last) in enumerate(pairs):
    share = log_probability(z_old, every).sum(1).exp()
    b = share @ (every == 1).double().mean(1)
    for k in range(6):
        z = (z_old + k / 5 * (z_last - z_old)).requires_grad_()
        right, = torch.autograd.grad(earned(z, 4), z)
        z = z.detach()
        log_rho = log_probability(z, every) - log_probability(z_old, every)
        far[i, k] = share @ (log_rho.exp() - 1).abs().mean(1)
        for rule in rules:
            got = gradient(z, z_old, every, share, rule, b)
            error[rule][i, k] = (got - right).norm() / right.norm()
            if rule != "ratios ignored":     # the baseline changes nothing
                assert torch.allclose(got, gradient(
                    z, z_old, every, share, rule, 0.0))
assert error["whole-answer ratio"].max() < 1e-12

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 4: what is told
ends = [climbed[r][:, -1] for r in rules]
plain, token, answer = (end.mean() for end in ends)
assert (ends[2] < torch.minimum(ends[0], ends[1])).sum() == 17
assert (ends[1] > ends[0]).sum() == 15
left_over = error["one ratio per token"][:, -1].quantile(0.5)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.4",
       "per token, ignored, whole answer: better none than all",
       f"{token:.2f}, {plain:.2f} and {answer:.2f} (left). After five "
       "steps the heaviest of the 64 answers typically has "
       f"{100 * heaviest:.0f} % of the weight. So the trainer whose "
       "weight is exact on average listens to one answer.\n\n"
       "The right panel shows the price of one ratio per token: an error "
       "that no batch size removes. It grows with the move, here to "
       f"{100 * left_over:.0f} %.",
       pictures.used_again(climbed, far, error), instead={
           "whole answer, per token, ignored: exact comes first":
           "It is exact on average. It has one batch of 64 answers, and "
           "the weights are products of 64 ratios.",
           "per token, whole answer, ignored: any ratio beats none":
           "A ratio helps only if its noise is small.",
           "ignored, per token, whole answer: no ratio, no noise":
           "No noise, but a wrong mean, more wrong with every step.",
       })

# %% [markdown]
# With one ratio per token no weight is a product, so the noise stays small. **The price is an error
# that grows as the policy leaves the old one.** So the policy must stay near: page 05 measures how
# far it has gone, and PPO (06) holds it back.
#
# <details><summary>One level deeper: how sure is this, and does the error grow with the length?</summary>
#
# The whole-answer ratio is last with 17 of the 20 policies, and one ratio per token ends ahead of
# no ratio with 15. <!-- cited: 17, 15 -->
#
# The right panel runs over all answers of four words, where one can list them. The same sums for 64
# words go from word to word, because a word depends on the one before it only. At the largest move
# the error is 32 <!-- cited: 32 --> % there. So in this toy the length adds little.
# </details>
#
# <details><summary>One level deeper: the baseline is still free</summary>
#
# Given the tokens before it, the mean of $\rho_t\nabla\log\pi(y_t)$ is 0, as shown above.
# So a constant baseline changes neither rule with ratios on average. It does change the rule that
# ignores them, because the score of $\pi$ has mean 0 under $\pi$, not under $\pi_\text{old}$.
# </details>
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
# There are other choices. Truncate the weight at a number $c$: less noise, and heavy samples count
# too little (19). Take the geometric mean of the ratios: length is out of it, and it is no
# importance weight any more (13, GSPO).
# </details>

# %% [markdown]
# ## In code
#
# What does it look like in a loss? Take both rules on the running group. Two answers are right and
# two are wrong, so with the mean as baseline $A=\pm\frac12$.

# %%
batch = running_group()
rho = (batch.logprobs - batch.old_logprobs).exp().detach()      # (4, 6)
A = (batch.rewards - batch.rewards.mean())[:, None].expand_as(rho)
whole = rho.where(batch.mask, 1.0).prod(1, keepdim=True)
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
#
# <details><summary>One level deeper: one ratio, two causes</summary>
#
# $$\rho=\frac{\pi_\text{now}}{\pi_\text{engine}}=\underbrace{\frac{\pi_\text{now}}{\pi_\text{trainer, then}}}_{\text{drift: PPO's ratio}}\cdot\underbrace{\frac{\pi_\text{trainer, then}}{\pi_\text{engine}}}_{\text{mismatch: often cut at a number }c}$$
# </details>

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
# | sentence | weight each old sample by new probability over old; exact wherever old covers new; noisy when weights are unequal, so useless for long answers once the policy has moved |
# | formula | $\mathbb E_\pi[f]=\mathbb E_\text{old}[wf]$, $w=\prod_t\rho_t$; $\mathrm{ESS}=(\sum w)^2/\sum w^2$; $\mathrm{Var}\,w=(1+\chi^2)^T-1$ with $\chi^2=\mathrm{Var}\,\rho_t$ |
# | the choice | $\rho_t$ per token instead of the product |
# | picture | two humps that part: what a batch holds, and what the mean is made of |
# | numbers | a gap in the support: 0.15 for 0.55 · 177 tokens at ± 0.20: large-batch ESS below 1, a batch reports about 17 · 1,000 tokens: mean weight 1, median 10⁻⁹ |
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
# sampler covers the other's support; a gap is lost silently, and only a mean ratio below 1
# shows it. It is useful only while weights are alike: in a large batch the effective sample
# size is n/(1 + Var w). With a reward per token, each reward needs the ratios up to it only
# (per-decision).
# </details>
# <details><summary><b>Why not use the ratio of the whole answer?</b></summary>
#
# Right on average, far off in any one batch. It is a product of T token ratios and its variance is
# (1 + χ²)^T − 1. At χ² = 0.04 that is 49 at 100 tokens and 10¹⁷ at 1,000. The mean is still 1, but
# it sits in answers that no batch contains; the median answer weighs 10⁻⁹.
# </details>
# <details><summary><b>Derive the gradient that PPO uses. Which line is not exact?</b></summary>
#
# The one where each token keeps only its own ratio. Log trick and baseline; importance weight of
# the answer; the product sorted around token t; then drop the ratios before and after it. Exact at
# the old policy, and worse with distance.
# </details>
# <details><summary><b>Your effective sample size is 60 of 1,000. Can you trust it?</b></summary>
#
# As an alarm yes, as a count no. It is computed from the samples you have. With answers of 177
# tokens at ± 20 % a typical batch of 1,000 says 16, and the large-batch value is below 1. The rare
# answer with the huge weight is not in the batch.
# </details>
# <details><summary><b>Your log shows a KL of 0.001 nats per token, and answers have 1,000 tokens. How unequal are the whole-answer weights?</b></summary>
#
# Quite unequal already: 1,000 answers count like 136. For a small move a token's χ² is about twice
# its KL. With independent tokens the mean of w² is then (1 + χ²)^T, about 7. At ten times the KL
# less than one answer is left, by the large-batch formula.
# </details>
# <details><summary><b>The trainer's log-probabilities differ from the inference engine's. So what?</b></summary>
#
# Then the data are off-policy before the first step. The engine wrote the answers, so its
# probabilities belong below the line. Split the ratio into drift and mismatch and cut the second at
# a number (19), or train on the engine's log-probabilities. Recomputing old log-probabilities in
# the trainer hides the mismatch: the ratio starts at 1.
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
