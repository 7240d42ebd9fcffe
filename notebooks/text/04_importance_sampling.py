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
# **After this page** you can reweight yesterday's answers for today's policy, name three ways in which that fails, and say which
# line turns an exact weight into the one ratio per token that PPO uses.
#
# 30 minutes, exercises 20 more · after 02 (REINFORCE), 03 (baselines)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Whose answers does REINFORCE's gradient average over?</summary>Those of the policy that is being improved, as it is now: ∇J = mean over y ~ π of R(y) ∇log π(y) (02).</details>
# <details><summary>2. An answer has T tokens. What is its log-probability?</summary>The sum of its tokens' log-probabilities. So its probability is their product (02).</details>
# <details><summary>3. What is the advantage A of an answer, and why may one subtract a baseline?</summary>Reward minus baseline. The score ∇log π has mean 0, so a fixed number times it changes nothing on average (03).</details>

# %% tags=["setup"]
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import drift, product_weight
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import importance_sampling as pictures
from rlnb.classroom.pictures import pipeline
from rlnb.objective import difference, ratio
from rlnb.toys import SequencePolicy, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Drawn yesterday, judged today
#
# A batch of answers is expensive, a gradient step is cheap. But after the first step the policy has changed, and the batch is another policy's. May we use it
# again?
#
# One prompt, four possible answers. The old policy wrote the batch; call it $\pi_\text{old}$. Today's policy is $\pi$.

# %%
old = torch.tensor([0.1, 0.4, 0.2, 0.3])     # wrote the batch
new = torch.tensor([0.4, 0.1, 0.3, 0.2])     # today's policy
R = torch.tensor([1.0, 0.0, 1.0, 0.0])       # reward of each answer

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
# More answers make the mean surer, and no truer. It is sure of 0.30, the old policy's reward. We would like to read 0.70 off the same batches, by
# multiplying each reward with some factor before we take the mean.

# %%
predict("importance_sampling.1",
        "Which factor, for an answer y, makes the mean right?",
        ["π(y)", "π(y) / π_old(y)", "π_old(y) / π(y)",
         "no factor can: these are not π's answers"])

# %%
w = new / old                                # weight of each answer
weighted = so_far(w[y] * R[y])
others = [(old @ (factor * R)).item() for factor in (new, old / new)]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.1", "π(y) / π_old(y)",
       f"The first and the third would lead to {others[0]:.2f} and "
       f"{others[1]:.2f}. π(y) alone forgets that the batch already "
       "contains y as often as π_old wrote it.",
       pictures.running({"not weighted": so_far(R[y]),
                         "weighted": weighted}, truth, caption=(
           "The same six batches. Each reward times π(y)/π_old(y), and the "
           "mean goes to today's 0.70. No new answer was written.")))

# %% [markdown]
# It is three lines, and each is an identity. Let $f(y)$ be whatever you want the mean of.
#
# $$\begin{aligned}
# \mathbb E_{y\sim\pi}\big[f(y)\big]&=\textstyle\sum_y\pi(y)\,f(y)&&\text{what a mean is}\\
# &=\textstyle\sum_y\pi_\text{old}(y)\,\dfrac{\pi(y)}{\pi_\text{old}(y)}\,f(y)&&\text{times and divided by }\pi_\text{old}(y)\\
# &=\mathbb E_{y\sim\pi_\text{old}}\big[w(y)\,f(y)\big],\quad w=\dfrac{\pi}{\pi_\text{old}}&&\text{what a mean is, read backwards}
# \end{aligned}$$
#
# The number $w$ is the **importance weight**. An answer that today's policy writes four times as often counts four times:

# %%
print("weights", w.round(decimals=4).tolist())
print(f"old policy's mean of w R: {old @ (w * R):.4f}")
print(f"new policy's mean of R:   {new @ R:.4f}")

# %% [markdown]
# $f$ may be a gradient as well, $f=A\,\nabla\log\pi$. So we could reuse a batch for as many steps as we like, if nothing went wrong. Three things do.
#
# ## First failure: what is never written
#
# Three answers, worth 1, 1 and 3 points. Today's policy earns 1.4 on average. Two samplers have each written a batch. One writes the third answer half as often
# as it should. The other never does; top-p sampling, which cuts off unlikely tokens, is such a sampler.

# %%
today = torch.tensor([0.4, 0.4, 0.2])
points = torch.tensor([1.0, 1.0, 3.0])
samplers = {"writes all three": torch.tensor([0.5, 0.4, 0.1]),
            "never writes the third": torch.tensor([0.5, 0.5, 0.0])}

# %%
predict("importance_sampling.2", "Every sample of the second batch is "
        "multiplied by its weight. What does the mean do?",
        ["goes to 1.4, with more noise",
         "jumps about: rare samples are heavy",
         "goes to 0.8, calmly", "is nan, from a division by 0"])

# %%
means = {}
for name, sampler in samplers.items():
    weight = today / sampler                 # inf where nothing is drawn
    drawn = draw(sampler)
    means[name] = so_far(weight[drawn] * points[drawn])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.2", "goes to 0.8, calmly",
       "The two answers that it does write have weight 0.8 and 1 point "
       "each. The third would be divided by 0, but it never comes up.",
       pictures.two_samplers(means, (today @ points).item()))

# %% [markdown]
# No sample looks odd, and the wrong mean is the quiet one. What is lost is the **support**: the answers that $\pi$ can write and $\pi_\text{old}$ cannot. One
# number gives it away, the mean of the weights themselves:
#
# $$\mathbb E_\text{old}[w]=\sum_{y:\,\pi_\text{old}(y)>0}\pi_\text{old}(y)\,\frac{\pi(y)}{\pi_\text{old}(y)}=\text{the share of }\pi\text{ that }\pi_\text{old}\text{ covers}$$
#
# It should be 1. Here it is 0.8. Log it.
#
# <details><summary>One level deeper: when even this check is blind</summary>
#
# * Many trainers recompute the old log-probabilities with the full softmax. Then the ratio of a policy that has not moved is 1 everywhere and the mean weight is 1, gap or
#   no gap. The check needs the sampler's own probabilities, after truncation. Or sample at top-p 1.
# * Dividing by $\sum w$ instead of $n$ (self-normalising) is often steadier. With the gap it gives 1.0 instead of 0.8, still wrong, and the mean weight is divided away.
# * The statements page runs both.
# </details>
#
# ## Second failure: few samples count
#
# Suppose everything is covered. The weights still differ, and one heavy sample can count for more than all the others. How many equally weighted samples would do as well? Assume
# that the values $f_i$ do not depend on each other nor on the weights, each with variance $\sigma^2$.
#
# $$\begin{aligned}
# \mathrm{Var}\Big[\frac{\sum_iw_if_i}{\sum_iw_i}\Big]&=\sigma^2\,\frac{\sum_iw_i^2}{(\sum_iw_i)^2}&&\text{variances of independent terms add}\\
# \frac{\sigma^2}{m}&=\sigma^2\,\frac{\sum_iw_i^2}{(\sum_iw_i)^2}&&\text{a plain mean of }m\text{ values, asked to be as good}\\
# m&=\frac{(\sum_iw_i)^2}{\sum_iw_i^2}=:\mathrm{ESS}&&\text{solved for }m
# \end{aligned}$$
#
# This is the **effective sample size**: $n$ when all weights are equal, 1 when one sample has everything. Let $\chi^2$ be the variance of the
# weight. In a large batch $\sum w\approx n$ and $\sum w^2\approx n(1+\chi^2)$, so the ESS is about $n/(1+\chi^2)$; that is what we call a batch's true worth.

# %%
def ess(w):
    return w.sum()**2 / (w**2).sum()

chi2 = old @ w**2 - 1                        # the mean of w is 1
print(f"one of each of the four answers: worth {ess(w):.4f} of 4")
print(f"n from the old policy: worth {1 / (1 + chi2):.4f} n")

# %% [markdown]
# Now let two policies drift apart. An answer is a number $x$ here: the old policy draws it from a bell of width 1 around 0, today's from the same bell around
# $\mu$. Then $w=e^{\mu x-\mu^2/2}$, the ratio of two bells, and $\chi^2=e^{\mu^2}-1$ (the integral is on the statements page), so 1,000 samples are worth $1000\,e^{-\mu^2}$. At $\mu=2$ that is 18. A trainer does not know $\mu$.
# It puts the 1,000 weights of its batch into the formula for the ESS.

# %%
predict("importance_sampling.3",
        "μ = 2, truly worth 18. What does a typical batch of 1,000 say?",
        ["about 4", "about 18", "about 55", "about 550"])

# %%
drifts = (0.5, 1.0, 1.5, 2.0, 2.5)
x = torch.stack([torch.randn(1000, generator=torch.Generator()
                             .manual_seed(k)) for k in range(200)])
true = [1000 * torch.tensor(-mu**2).exp().item() for mu in drifts]
claimed = torch.tensor([[ess((mu * row - mu**2 / 2).exp()) for mu in drifts]
                        for row in x])                     # (200, 5)
print("true worth:", [round(value, 1) for value in true])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
at2 = claimed[:, 3]
reveal("importance_sampling.3", "about 55",
       f"The median of 200 batches is {at2.median():.0f}; "
       f"{(at2 > 2 * true[3]).sum()} of them claim more than twice what "
       "they are worth.", pictures.worth(drifts, claimed))

# %% [markdown]
# Why too much? Look for yourself where the samples end and where today's policy lives.

# %%
task("importance_sampling.t1", drift.drift_explorer(),
     ("Find a drift at which 1,000 samples are truly worth about half "
      "(480 to 520).", drift.half_is_left),
     ("At drift 2, find one of the twenty batches that says too little. "
      "What does it have that the others lack?", drift.says_too_little))

# %% [markdown]
# <details><summary>What the two tasks show</summary>
#
# Half is gone at μ = 0.85. At μ = 2 a sample near 4 weighs $e^{2\cdot4-2}\approx400$, and such samples make up the true $\sum w^2$. Most batches have none: their samples end near 3, so the
# weights that *were* drawn look alike. Batch 8 has one, at 4.4. It carries half of all the weight.
# </details>
#
# **A small ESS means trouble. A large ESS does not mean there is none:** the batch cannot weigh the samples it does not have.
#
# ## Third failure: many tokens
#
# An answer is not one draw but $T$ of them. Write $\rho_t$ for the ratio of token $t$, new probability over old. Probabilities of tokens multiply, so their
# ratios do:
#
# $$w=\rho_1\rho_2\cdots\rho_T$$
#
# Take the mildest case: each token's ratio is 1.2 or 0.8, by the toss of a fair coin. Its mean is 1 and its variance, now per
# token, is $\chi^2=0.04$. Tokens independent:
#
# $$\begin{aligned}
# \mathbb E[w]&=\textstyle\prod_t\mathbb E[\rho_t]=1&&\text{the mean of a product of independent factors}\\
# \mathbb E[w^2]&=\textstyle\prod_t\mathbb E[\rho_t^2]=(1+\chi^2)^T&&\text{the same for squares; }\mathbb E[\rho^2]=1+\chi^2\\
# \mathrm{Var}[w]&=(1+\chi^2)^T-1&&\text{variance: mean square minus squared mean}
# \end{aligned}$$

# %%
print("tokens, variance of the weight")
for T in (1, 10, 100, 1000):
    print(f"{T:5d}   {1.04**T - 1:.3g}")

# %%
predict("importance_sampling.4", "Answers of 1,000 tokens. Their mean "
        "weight is 1. Half of the answers weigh less than ...?",
        ["about 1: ups and downs cancel", "about 0.1",
         "about one millionth", "about one billionth"])

# %%
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
reveal("importance_sampling.4", "about one billionth",
       "An up and a down multiply to 1.2 · 0.8 = 0.96, not to 1. Five "
       f"hundred such pairs: {median[-1]:.1e}.",
       pictures.batch_means(lengths.tolist(), batches, median.tolist()))

# %% [markdown]
# The weight is still exact, and its mean is still 1. That mean is made of answers that no batch contains. See where they are:

# %%
task("importance_sampling.t2", product_weight.product_weight_explorer(),
     ("Leave the ratios at 1 ± 0.20. Find the shortest answers of which "
      "1,000 are worth less than one.", product_weight.worth_less_than_one),
     ("Answers of 1,000 tokens: let 1,000 of them be worth 500 or more. "
      "How far may a token move?", product_weight.long_and_alive))

# %% [markdown]
# <details><summary>What the two tasks show</summary>
#
# At ± 0.20 a batch of 1,000 is worth less than one sample from 200 tokens on (worth is $n/(1+\chi^2)$, as above). At 1,000 tokens each ratio may move by 2 %, which is hardly
# a step.
# </details>
#
# ## What people do instead
#
# So the weight of a whole answer is right and useless. Start from it and see what can be left out. $A$ is the advantage of the answer, $\pi(y_t)$ short for
# the probability of token $t$ given everything before it.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_{\pi}\Big[A\,\textstyle\sum_t\nabla\log\pi(y_t)\Big]&&\text{log trick (02), baseline (03)}\\
# &=\mathbb E_\text{old}\Big[w\,A\,\textstyle\sum_t\nabla\log\pi(y_t)\Big]&&\text{the three lines above}\\
# &=\mathbb E_\text{old}\Big[\textstyle\sum_t(\rho_1\cdots\rho_{t-1})\;\rho_t\;(\rho_{t+1}\cdots\rho_T)\,A\,\nabla\log\pi(y_t)\Big]&&\text{the product, sorted around token }t\\
# &\approx\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi(y_t)\Big]&&\textbf{a choice: each token keeps only its own ratio}
# \end{aligned}$$
#
# Every line but the last is exact. The last one drops the ratios *before* the token (would today's policy have got here?) and those *after* it (would it go on like
# this?). What is left is one factor per token; its variance in the
# example is 0.04 at any length. Here are both rules on four answers that will follow you through the
# course. Two are right and two wrong; with the mean as baseline, $A=\pm\frac12$.

# %%
batch = running_group()
rho = (batch.logprobs - batch.old_logprobs).exp().detach()      # (4, 6)
A = (batch.rewards - batch.rewards.mean())[:, None].expand_as(rho)
whole = rho.where(batch.mask, 1.0).prod(1, keepdim=True)
print("product of each answer", [round(v, 2) for v in whole[:, 0].tolist()])
print("token ratios, answer 1", [round(v, 2) for v in rho[1, :5].tolist()])
pictures.pushes(batch, {"product of the answer": whole * A,
                        "one ratio per token": rho * A}, caption=(
    "The push on each token, weight times A. On the left one token of "
    "answer 1, whose ratio is 6, lifts all five."))

# %% [markdown]
# On the right only that token is pushed harder. Its push, +3.00, is still the largest of all; page 06 deals with it.
#
# How much does the choice cost? Random policies over two words and an end sign, answers of up to four tokens: few enough to add up the mean gradient exactly, over
# every answer there is. The reward is the share of word 1.

# %%
def mean_gradient(policy, sampler, rule):
    """Exact mean of: weight x R x grad log pi, over sampler's answers."""
    R = torch.tensor([y.count(1) / len(y) for y in policy.outcomes])
    log_pi = policy.logprobs()               # (answers, 4), 0 on padding
    rho = (log_pi - sampler.logprobs()).exp().detach()
    weight = {"ratios ignored": torch.ones_like(rho),
              "one ratio per token": rho,
              "product of the answer": rho.prod(1, keepdim=True)}[rule]
    p = sampler.probabilities().detach()
    mean = (p * R) @ (weight * log_pi).sum(1)
    return torch.autograd.grad(mean, policy.logits)[0]

# %%
predict("importance_sampling.5", "Forty such policies take a large step. "
        "If the ratios are ignored, the mean gradient is wrong by 59 % of "
        "its size (median). And with one ratio per token?",
        ["under 1 %", "about 15 %", "about 30 %",
         "60 % or more: the rest of the product is missing"])

# %%
def distance(policy, sampler):
    """Mean |rho - 1| of a token, over sampler's answers."""
    gap = (policy.logprobs() - sampler.logprobs()).exp() - 1
    p = sampler.probabilities() / sampler.lengths
    return (p @ (gap.abs() * sampler.mask).sum(1)).item()

# %%
rules = ("ratios ignored", "one ratio per token", "product of the answer")
far = torch.zeros(40, 6)
error = {rule: torch.zeros(40, 6) for rule in rules}
for seed in range(40):
    g = torch.Generator().manual_seed(seed)
    base = torch.randn(15, 3, generator=g)                   # logits
    step = torch.randn(15, 3, generator=g)
    before = SequencePolicy(2, 4, base)
    for k in range(6):
        after = SequencePolicy(2, 4, base + 0.1 * k * step)
        far[seed, k] = distance(after, before)
        right = mean_gradient(after, after, "ratios ignored")
        for rule in rules:
            off = mean_gradient(after, before, rule) - right
            error[rule][seed, k] = off.norm() / right.norm()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ignored, token, exact = (error[rule][:, -1] for rule in rules)
assert exact.max() < 1e-12
reveal("importance_sampling.5", "about 15 %",
       f"{100 * token.quantile(0.5):.0f} % instead of "
       f"{100 * ignored.quantile(0.5):.0f} %. Of the error of ignoring, "
       f"{100 * (token / ignored).min():.0f} to "
       f"{100 * (token / ignored).max():.0f} % is left, depending on the "
       "policy.", pictures.bias(far, error))

# %% [markdown]
# What is left grows with the distance. At the old policy itself all ratios are 1 and nothing is wrong. So: **no weight is a product any more, and in return the
# policy must not go far.** Page 05 measures how far it has gone, with the KL divergence. Page 06, PPO, holds it back.
#
# <details><summary>One level deeper: which of the two dropped factors matters?</summary>
#
# The factors after token $t$ turn the old policy's continuations into today's. If $A$ were the exact advantage of token $t$ under today's policy, they would average
# out and only the prefix would be missing. TRPO's bound ([arXiv 1502.05477](https://arxiv.org/abs/1502.05477)) is about that prefix: the states are the old policy's.
#
# There are other choices. Truncate the weight at a number $c$: less noise, and heavy samples count too little (19). Take the geometric mean of the ratios: length is out of
# it, and it is no importance weight any more (13, GSPO).
# </details>
#
# ## In code
#
# A trainer wants a loss, not a gradient. Since $\rho=e^{\log\pi-\log\pi_\text{old}}$ and the old policy is a constant, $\nabla\rho=\rho\,\nabla\log\pi$. So the
# sum of $\rho_tA$ has exactly the gradient we chose. `old_logprobs` are numbers, stored when the batch was written; recompute them after a step and every ratio
# is 1.

# %%
def reuse_loss(logprobs, old_logprobs, A, mask):
    """To be minimised, (B, T) each; mask is True on the answer's tokens."""
    log_rho = torch.where(mask, logprobs - old_logprobs, 0.0)
    value = log_rho.exp() * A
    return -torch.where(mask, value, 0.0).sum() / len(value)

inputs = batch.old_logprobs, A, batch.mask
slope, = torch.autograd.grad(reuse_loss(batch.logprobs, *inputs),
                             batch.logprobs)
assert torch.allclose(-4 * slope, rho * A * batch.mask, atol=1e-12)
print("log these: mean token ratio "
      f"{rho[batch.mask].mean():.2f}, mean answer weight "
      f"{whole.mean():.2f}, ESS {ess(whole):.2f} of 4")

# %%
pipeline.pipeline("ratio", again=True, caption=(
    "This page is the box in the middle: what makes a second step on the "
    "same answers nearly right."))

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | importance sampling | |
# |---|---|
# | sentence | weight each old sample by new probability over old; exact, until samples are missing, unequal, or long |
# | formula | $\mathbb E_\pi[f]=\mathbb E_\text{old}[wf]$, $w=\prod_t\rho_t$; $\mathrm{ESS}=(\sum w)^2/\sum w^2$; $\mathrm{Var}\,w=(1+\chi^2)^T-1$ |
# | the choice | $\rho_t$ per token instead of the product |
# | picture | two humps that part: what a batch holds, and what the mean is made of |
# | numbers | a gap in the support: 0.8 for 1.4 · worth 18, says 55 · 1,000 tokens at ± 0.20: mean 1, median 10⁻⁹ |
# | since REINFORCE | the token's worth: from $A\log\pi$ to $\rho A$, with $\log\pi_\text{old}$ kept from when the batch was written |

# %%
reused = ZOO["reinforce"].replace(surrogate=ratio())
print(difference(ZOO["reinforce"], reused))
assert torch.allclose(reused(batch.replace(advantages=A)).loss,
                      reuse_loss(batch.logprobs, *inputs))
score(*(f"importance_sampling.{k}" for k in (1, 2, 3, 4, 5)))

# %% [markdown]
# ## Exercises
#
# **1 By hand** · 3 minutes. Ten samples. Nine have weight 1, the last has weight 9.

# %%
predict("importance_sampling.6", "How many samples are they worth? (And "
        "after all weights are multiplied by 100?)", unit="samples")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ten = torch.tensor([1.0] * 9 + [9.0])
assert torch.isclose(ess(ten), ess(100 * ten))
reveal("importance_sampling.6", round(ess(ten).item(), 4),
       "18² / (9 + 81). One large weight costs almost two thirds of the "
       "samples. A common factor cancels.")

# %% [markdown]
# **2 Implement** · 5 minutes. The weighted estimate, from `values`, `log_p` (the policy you ask about) and `log_q` (the one that wrote the samples), each (n,).
# Divide by $n$. The logs may be those of whole answers, −800 and less.
#
# <details><summary>hint</summary>exp(−800) is 0 in a computer, and 0/0 is no number. What can you do before the exp?</details>

# %% tags=["exercise"]
def my_importance_estimate(values, log_p, log_q):
    return ...

check.importance_estimate(my_importance_estimate)

# %% [markdown]
# **3 Implement** · 6 minutes. The effective sample size from log-weights (n,). Asked is the *number* of samples, from 1 to $n$. Training logs often show the share
# ESS/$n$ instead; that is fine there, multiply by $n$ here. Log-weights of 800 and of −800 are among the tests.
#
# <details><summary>hint</summary>Exercise 1: a common factor of all weights cancels. Choose it well.</details>

# %% tags=["exercise"]
def my_effective_sample_size(log_weights):
    return ...

check.effective_sample_size(my_effective_sample_size)

# %% [markdown]
# **4 Derive** · 6 minutes. Independent tokens, but each with its own $\chi_t^2$. What is the variance of the product, and how many of $n$ answers are they worth? Then a
# number: $\chi^2=0.01$ at every token.

# %%
predict("importance_sampling.7", "How long may an answer be, if three "
        "quarters of the samples shall survive?", unit="tokens")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
longest = torch.tensor(4 / 3).log() / torch.tensor(1.01).log()
assert 1.01**longest.item() < 4 / 3 + 1e-12
reveal("importance_sampling.7", round(longest.item(), 1),
       "Var = Π(1 + χ_t²) − 1, worth n / Π(1 + χ_t²). With 1.01^T = 4/3: "
       "T = ln(4/3) / ln 1.01.")

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>What is importance sampling, and when does it fail?</b></summary>
#
# Samples of one policy, each weighted by p/q, give another policy's mean. It is exact if the sampler covers the other's support; a gap is lost silently, and only a
# mean weight below 1 shows it. It is useful only while weights are alike: the effective sample size is about n/(1 + χ²). Rejection sampling uses the same ratio to keep or
# drop samples and needs a bound on it.
# </details>
# <details><summary><b>Why not use the ratio of the whole answer?</b></summary>
#
# Because it is a product of T token ratios and its variance is (1 + χ²)^T − 1. At χ² = 0.04 that is 49 at 100 tokens and 10¹⁷ at 1,000. The mean is still 1, but it
# sits in answers that no batch contains; the median answer weighs 10⁻⁹.
# </details>
# <details><summary><b>Derive the gradient that PPO uses. Which line is not exact?</b></summary>
#
# The one where each token keeps only its own ratio. Log trick and baseline; importance weight of the answer; the product sorted around token t; then drop the ratios
# before and after it. Exact at the old policy, and worse with distance.
# </details>
# <details><summary><b>Your effective sample size is 60 of 1,000. Can you trust it?</b></summary>
#
# As an alarm yes, as a count no. It is computed from the samples you have. With two bells two widths apart a typical batch says 55 where the truth is 18: the rare sample with
# the huge weight is not in the batch.
# </details>
# <details><summary><b>You sample with top-p 0.9 and train with the full softmax. What happens?</b></summary>
#
# Tokens that were cut are never seen, and no weight brings them back. Against the full softmax the ratios start at 1, so nothing looks odd; only the sampler's own
# probabilities show a mean weight below 1. Score under the truncation you sampled with, or sample without one.
# </details>
#
# Statements one hears, decided by running them: [04 · statements](statements/04_importance_sampling.ipynb). **Next: 05.** How far is far? KL.
