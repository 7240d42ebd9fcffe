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
# **After this page** you can reweight yesterday's answers for today's policy, name three ways in
# which that fails, and say which line turns an exact weight into the one ratio per token that PPO
# uses.
#
# 45 minutes, exercises 20 more · after 02 (REINFORCE), 03 (baselines)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Whose answers does REINFORCE's gradient average over?</summary>Those of the policy that is being improved, as it is now: ∇J = mean over y ~ π of R(y) ∇log π(y) (02).</details>
# <details><summary>2. An answer has T tokens. What is its log-probability?</summary>The sum of its tokens' log-probabilities. So its probability is their product (02).</details>
# <details><summary>3. What is the advantage A of an answer, and why may one subtract a baseline?</summary>Reward minus baseline. The score ∇log π has mean 0, so a fixed number times it changes nothing on average (03).</details>

# %% tags=["setup"]
import torch
from rlnb import check
from rlnb.classroom.explorers import drift, product_weight
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import importance_sampling as pictures
from rlnb.classroom.pictures import pipeline
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Drawn yesterday, judged today
#
# A batch of answers is expensive, a gradient step is cheap. But after the first step the policy has
# changed, and the batch is another policy's. May we use it again?
#
# One prompt, four possible answers. The old policy wrote the batch; call it $\pi_\text{old}$.
# Today's policy is $\pi$.

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
# More answers do not help: the mean settles at 0.30, what the *old* policy earns. Today's policy
# earns 0.70. We would like to read that off the same batches, by multiplying each reward with some
# factor before we take the mean.

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
because = rf"""π(y) alone would lead to {others[0]:.2f}: it forgets
that the batch already holds y as often as π_old wrote it. The third would
lead to {others[1]:.2f}. For any $f$ whose mean you want, three identities:

$$\begin{{aligned}}
\mathbb E_{{y\sim\pi}}[f(y)]&=\textstyle\sum_y\pi(y)\,f(y)
&&\text{{what a mean is}}\\
&=\textstyle\sum_y\pi_\text{{old}}(y)\,
\dfrac{{\pi(y)}}{{\pi_\text{{old}}(y)}}\,f(y)
&&\text{{times and divided by }}\pi_\text{{old}}(y)\\
&=\mathbb E_{{y\sim\pi_\text{{old}}}}[w(y)\,f(y)],\quad w=\dfrac{{\pi}}
{{\pi_\text{{old}}}}&&\text{{what a mean is, read backwards}}
\end{{aligned}}$$

Today's policy writes the first answer {w[0]:.0f} times as often as the old
one did, so each copy of it counts {w[0]:.0f} times."""
both = {"not weighted": so_far(R[y]), "weighted": so_far(w[y] * R[y])}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.1", "π(y) / π_old(y)", because,
       pictures.running(both, truth, caption=(
           "The same six batches. Weighted, the mean goes to today's 0.70. "
           "No new answer was written.")),
       instead={
           "π(y)": "That would be right if the batch held every answer "
           "equally often.",
           "π_old(y) / π(y)": "Upside down: it makes what today's policy "
           "likes count less.",
           "no factor can: these are not π's answers":
           "They are not, but each of them is one that π could have "
           "written.",
       })

# %% [markdown]
# The factor is called the **importance weight**, $w$. It works for the mean of a gradient,
# $A\,\nabla\log\pi$, just as well. So we could reuse a batch for as many steps as we like, if
# nothing went wrong. Three things do go wrong.
#
# ## First failure: what is never written
#
# Three answers, worth 1, 1 and 3 points. Today's policy earns 1.4 on average. Two samplers have
# each written a batch. One writes the third answer half as often as it should. The other never
# does; top-p sampling, which cuts off unlikely tokens, is such a sampler.

# %%
today = torch.tensor([0.4, 0.4, 0.2])
points = torch.tensor([1.0, 1.0, 3.0])
samplers = {"writes all three": torch.tensor([0.5, 0.4, 0.1]),
            "never writes the third": torch.tensor([0.5, 0.5, 0.0])}

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.2", "Every sample of the second batch is "
        "multiplied by its weight. What does the mean do?",
        ["goes to 1.4, with more noise",
         "jumps about: rare samples are heavy",
         "goes to 0.8, calmly", "is nan, from a division by 0"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
means, covered = {}, {}
for name, sampler in samplers.items():
    weight = today / sampler                 # inf where nothing is drawn
    drawn = draw(sampler)
    means[name] = so_far(weight[drawn] * points[drawn])
    covered[name] = weight[drawn].mean().item()
missing = rf"""The two answers that it does write have weight 0.8 and 1
point each. The third would be divided by 0, but it never comes up. No
sample looks odd, and the wrong mean is the quiet one. What is lost is the
**support**, what $\pi$ can write and the sampler cannot. The mean of the
weights tells:

$$\mathbb E_\text{{old}}[w]=\sum_{{y:\,\pi_\text{{old}}(y)>0}}
\pi_\text{{old}}(y)\,\frac{{\pi(y)}}{{\pi_\text{{old}}(y)}}
=\text{{the share of }}\pi
\text{{ that }}\pi_\text{{old}}\text{{ covers}}$$

It should be 1. In the two batches it is {covered["writes all three"]:.2f}
and {covered["never writes the third"]:.2f}."""

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.2", "goes to 0.8, calmly", missing,
       pictures.two_samplers(means, (today @ points).item()), instead={
           "goes to 1.4, with more noise":
           "That is the other sampler, which writes it at times.",
           "jumps about: rare samples are heavy":
           "A rare sample would be. Never is rarer than rare.",
           "is nan, from a division by 0":
           "Only samples are divided, and the third is never one.",
       })

# %% [markdown]
# Log the mean of the weights before you trust any other mean. In a trainer log it for single
# *tokens*. For whole answers it is noise, as the third failure will show.
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
#
# ## Second failure: few samples count
#
# Suppose everything is covered. The weights still differ, and one heavy sample can count for more
# than all the others. How many equally weighted samples would do as well? Assume that the values
# $f_i$ are independent of each other and of the weights, each with variance $\sigma^2$.
#
# $$\begin{aligned}
# \mathrm{Var}\Big[\frac{\sum_iw_if_i}{\sum_iw_i}\Big]&=\sigma^2\,\frac{\sum_iw_i^2}{(\sum_iw_i)^2}&&\text{variances of independent terms add}\\
# \frac{\sigma^2}{m}&=\sigma^2\,\frac{\sum_iw_i^2}{(\sum_iw_i)^2}&&\text{a plain mean of }m\text{ values, asked to be as good}\\
# m&=\frac{(\sum_iw_i)^2}{\sum_iw_i^2}=:\mathrm{ESS}&&\text{solved for }m
# \end{aligned}$$
#
# This is the **effective sample size**: $n$ when all weights are equal, 1 when one sample has
# everything. In a very large batch $\sum w\approx n$ and
# $\sum w^2\approx n\,\mathbb E_\text{old}[w^2]$. With $\chi^2$ for the variance of the weight that
# gives the large-batch formula $\mathrm{ESS}\approx n/(1+\chi^2)$.

# %%
def ess(w):
    return w.sum()**2 / (w**2).sum()

print(f"our four answers: {1 / (old @ (new / old)**2):.4f} n")

# %% [markdown]
# So 1,000 of our answers are worth 453 of today's. <!-- cited: 453 --> That is mild. It gets worse
# as the policies drift apart, and much worse as answers get longer.
#
# ## Third failure: many tokens
#
# An answer is not one draw but $T$ of them. Write $\rho_t$ for the ratio of token $t$, new
# probability over old. Probabilities of tokens multiply, so their ratios do:
#
# $$w=\rho_1\rho_2\cdots\rho_T$$
#
# Take a harsh case: each token's ratio is 1.2 or 0.8, by the toss of a fair coin. (There PPO, page
# 06, begins to clip.) Its mean is 1, and the variance of one token's ratio is $\chi^2=0.04$. In a
# mild case the ratios are 1 ± 1 %. All tokens are independent:
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

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.4", "Answers of 1,000 tokens, ± 20 %. The "
        "mean weight is 1. Half of the answers weigh less than ...?",
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
reveal("importance_sampling.4", "about one billionth",
       "An up and a down multiply to 1.2 · 0.8 = 0.96, not to 1. Five "
       f"hundred such pairs: {median[-1]:.1e}. The mean is still 1, but "
       "made of answers that no batch contains. So the mean weight of a "
       "batch of long answers is far below 1 without any gap in the "
       "support: log the mean token ratio instead.",
       pictures.batch_means(lengths.tolist(), batches, median.tolist()),
       instead={
           "about 1: ups and downs cancel":
           "They cancel in a sum. In a product an up and a down lose 4 %.",
           "about 0.1": "4 % a pair, and there are five hundred pairs.",
           "about one millionth": "The right idea, and still too large.",
       })

# %% [markdown]
# See where the weights lie, and what their mean is made of:

# %%
task("importance_sampling.t2", product_weight.product_weight_explorer(),
     ("Leave the ratios at 1 ± 0.20. How long must answers be until the "
      "large-batch formula gives 1,000 of them less than one effective "
      "sample? (within 5 tokens; a batch would still report at least 1)",
      product_weight.less_than_one),
     ("Twenty tokens at ± 0.20 leave 456. Make the answers ten times as "
      "long, 200. To keep 415 to 500, is a tenth of the ± needed?",
      product_weight.as_many_at_ten_times))

# %% [markdown]
# <details><summary>What the two tasks show</summary>
#
# $1000/1.04^T$ falls below one at 177 tokens. What counts is $T$ times the variance: ten times the
# tokens need a tenth of $\chi^2$, so the ± shrinks by $\sqrt{10}$ only, to about
# 0.063 <!-- cited: 0.063 -->.
# </details>
#
# **So far:** a weight makes old answers count for today's policy. It fails in silence where the
# sampler never writes, where a few samples carry everything, and always for long answers.
#
# ## What people do instead
#
# The weight of a whole answer is right. But it is useless once answers are long and the policy has
# moved. Start from it, and see what can be left out. $A$ is the advantage of the answer, and
# $\pi(y_t)$ is short for the probability of token $t$ given everything before it.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_{\pi}\Big[A\,\textstyle\sum_t\nabla\log\pi(y_t)\Big]&&\text{log trick (02), baseline (03)}\\
# &=\mathbb E_\text{old}\Big[w\,A\,\textstyle\sum_t\nabla\log\pi(y_t)\Big]&&\text{importance weight of the answer (guess 1)}\\
# &=\mathbb E_\text{old}\Big[\textstyle\sum_t(\rho_1\cdots\rho_{t-1})\;\rho_t\;(\rho_{t+1}\cdots\rho_T)\,A\,\nabla\log\pi(y_t)\Big]&&\text{the product, sorted around token }t\\
# &\approx\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi(y_t)\Big]&&\textbf{a choice: each token keeps only its own ratio}
# \end{aligned}$$
#
# Every line but the last is exact. The last one drops the ratios *before* the token (would today's
# policy have got here?) and those *after* it (would it go on like this?). One factor per token is
# left. In the harsh case its variance is 0.04, however long the answer is.
#
# Below are both rules on the four answers that go through the whole course. Two are right and two
# are wrong. With the mean as baseline, $A=\pm\frac12$.

# %%
batch = running_group()
rho = (batch.logprobs - batch.old_logprobs).exp().detach()      # (4, 6)
A = (batch.rewards - batch.rewards.mean())[:, None].expand_as(rho)
whole = rho.where(batch.mask, 1.0).prod(1, keepdim=True)
print("whole-answer ratios  ", [round(v, 2) for v in whole[:, 0].tolist()])
print("token ratios, answer 1", [round(v, 2) for v in rho[1, :5].tolist()])
pictures.pushes(batch, {"whole-answer ratio": whole * A,
                        "one ratio per token": rho * A}, caption=(
    "The push on each token, weight times A. On the left one token of "
    "answer 1, whose ratio is 6, lifts all five."))

# %% [markdown]
# On the right each token is pushed by its own ratio. One push, +3.00, is still the largest of all.
# Page 06 deals with it.
#
# What does the choice cost? Take a toy that can be summed exactly. An answer has four words, each
# of them 0, 1 or 2, drawn given the word before it. The reward is the share of word 1. An old
# policy wrote the answers, and today's policy is some way off. Three rules try to find today's
# gradient from the old answers: ignore the ratios, one ratio per token, the whole answer's ratio.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy: mean_gradient(..., rule, b), exact over all answers
def log_probability(z, y):
    """log pi of each word of y, (n, T), given the word before it."""
    before = torch.cat([0 * y[:, :1], y[:, :-1]], 1)
    return z.log_softmax(-1)[before, y]

def mean_gradient(z, z_old, y, share, rule, b):
    """Sum over answers y of: share x weight x (R - b) x grad log pi."""
    R = (y == 1).double().mean(1)
    z = z.clone().requires_grad_()           # logits (3, 3)
    log_pi = log_probability(z, y)
    rho = (log_pi - log_probability(z_old, y)).exp().detach()
    weight = {"ratios ignored": torch.ones_like(rho),
              "one ratio per token": rho,
              "whole-answer ratio": rho.prod(1, keepdim=True)}[rule]
    total = (share * (R - b)) @ (weight * log_pi).sum(1)
    return torch.autograd.grad(total, z)[0]

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.5", "The old policy wrote the answers. You "
        "subtract its mean reward, b, from every R. Which of the three "
        "mean gradients change?", [
            "none: a constant baseline changes nothing on average",
            "only the one that ignores the ratios",
            "only the one with one ratio per token",
            "both that are not exact"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 1: four words, exact
rules = ("ratios ignored", "one ratio per token", "whole-answer ratio")
every = torch.cartesian_prod(*[torch.arange(3)] * 4)         # (81, 4)
far = torch.zeros(40, 6)
raw, error = ({rule: torch.zeros(40, 6) for rule in rules} for _ in "ab")
pairs = []
for seed in range(40):
    g = torch.Generator().manual_seed(seed)
    z_old, step = torch.randn(2, 3, 3, generator=g)
    pairs.append((z_old, z_old + 0.5 * step))
    share = log_probability(z_old, every).sum(1).exp()
    b = share @ (every == 1).double().mean(1)
    for k in range(6):
        z = z_old + 0.1 * k * step
        log_rho = log_probability(z, every) - log_probability(z_old, every)
        far[seed, k] = share @ (log_rho.exp() - 1).abs().mean(1)
        today_s = share * log_rho.sum(1).exp()
        right = mean_gradient(z, z, every, today_s, "ratios ignored", 0)
        for kept, base in ((raw, 0), (error, b)):
            for rule in rules:
                got = mean_gradient(z, z_old, every, share, rule, base)
                kept[rule][seed, k] = (got - right).norm() / right.norm()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 2: batches of 64 answers, also long ones
def written(z, n, T, g):
    """n answers of T words."""
    words, cut = [torch.zeros(n, dtype=torch.long)], z.softmax(-1).cumsum(1)
    for _ in range(T):
        u = torch.rand(n, 1, generator=g)
        words.append((u > cut[words[-1], :2]).sum(1))
    return torch.stack(words[1:], 1)

def true_gradient(z, T):
    """Of the mean share of word 1, from the chances of each word."""
    z = z.clone().requires_grad_()
    chance = [torch.tensor([1.0, 0.0, 0.0])]
    for _ in range(T):
        chance.append(chance[-1] @ z.softmax(-1))
    return torch.autograd.grad(sum(c[1] for c in chance[1:]) / T, z)[0]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 3: their errors
words = (4, 16, 64, 256)
noisy = {rule: torch.zeros(80, 4) for rule in rules}
for j, T in enumerate(words):
    for i in range(80):
        z_old, z = pairs[i // 2]
        seen = written(z_old, 64, T, torch.Generator().manual_seed(i))
        right, b = true_gradient(z, T), (seen == 1).double().mean()
        for rule in rules:
            got = mean_gradient(z, z_old, seen,
                                torch.ones(64) / 64, rule, b)
            noisy[rule][i, j] = (got - right).norm() / right.norm()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def percent(table, column):
    return [f"{100 * table[rule][:, column].quantile(0.5):.0f} %"
            for rule in rules]

assert error["whole-answer ratio"].max() < 1e-12
assert torch.allclose(raw[rules[1]], error[rules[1]])
after = percent(error, -1)
short, long = percent(noisy, 0), percent(noisy, 3)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.5", "only the one that ignores the ratios",
       "A baseline is free where the score has mean 0: under the policy "
       "that draws. Each token's own ratio makes that today's policy "
       "(given the words before it, the mean of ρ∇log π is 0).\n\nHow far "
       f"off is each rule? Ignoring the ratios: {after[0]} of the true "
       f"gradient. One ratio per token: {after[1]}. The whole answer's: "
       "nothing, on average. But a *batch* is not an average. With 64 "
       f"answers of 256 words the whole-answer ratio is off by {long[2]}, "
       f"one ratio per token by {long[1]}. Only at four words is the "
       f"former better, {short[2]} against {short[1]}.",
       pictures.bias_and_noise(far, error, words, noisy), instead={
           "none: a constant baseline changes nothing on average":
           "True for answers of today's policy (03). These are not.",
           "only the one with one ratio per token":
           "Its ratio is just what keeps the baseline free.",
           "both that are not exact":
           "Not exact, yes. But one ratio per token is enough for this.",
       })

# %% [markdown]
# At the old policy itself all ratios are 1 and every rule is right. So: **no weight is a product
# any more, and in return the policy must not go far.** Page 05 measures how far it has gone, with
# the KL divergence. Page 06, PPO, holds it back.
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
#
# ## In code
#
# A trainer wants a loss, not a gradient. Since $\rho=e^{\log\pi-\log\pi_\text{old}}$ and the old
# policy is a constant, $\nabla\rho=\rho\,\nabla\log\pi$. So the sum of $\rho_tA$ has exactly the
# gradient we chose. `old_logprobs` are numbers, stored when the batch was written.

# %%
def reuse_loss(logprobs, old_logprobs, A, mask):
    """To be minimised, (B, T) each; mask is True on the answer's tokens."""
    log_rho = torch.where(mask, logprobs - old_logprobs, 0.0)
    value = log_rho.exp() * A
    return -torch.where(mask, value, 0.0).sum() / len(value)

def push(old_logprobs):
    loss = reuse_loss(batch.logprobs, old_logprobs, A, batch.mask)
    slope, = torch.autograd.grad(loss, batch.logprobs, retain_graph=True)
    return -len(A) * slope

assert torch.allclose(push(batch.old_logprobs), rho * A * batch.mask)
r = rho[batch.mask]
print(f"log these: mean token ratio {r.mean():.2f} (should be 1), "
      f"largest {r.max():.2f}")

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.6", "A bug: before each step the trainer "
        "recomputes `old_logprobs` from the present policy, so every ratio "
        "is exactly 1. Its gradient on the reused batch is ...?", [
            "0: a constant has no slope", "right: the ratios cancel",
            "REINFORCE's, with no correction",
            "right in direction, too short"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
assert torch.allclose(push(batch.logprobs.detach()), A * batch.mask)
reveal("importance_sampling.6", "REINFORCE's, with no correction",
       "The value of ρ is 1, its slope is ∇log π. On the first step that "
       "is right: nothing has moved, and the gradient is REINFORCE's. From "
       "the second on the correction is silently gone, the gradient is "
       "not. The log shows it: a ratio of exactly 1 at every step.",
       instead={
           "0: a constant has no slope": "Its denominator is constant. Its "
           "numerator is the policy.",
           "right: the ratios cancel": "Which ratio would you need now, "
           "and which stands there?",
           "right in direction, too short": "Tokens whose ratio should be "
           "3 and 0.3 are pushed alike.",
       })

# %% [markdown]
# **When does a trainer need a ratio?** From the second step on the same answers. Also when
# generation runs ahead of training (*asynchronous*): then even a first step meets answers that are
# some updates old. And strictly, always. A fast engine writes the answers, and the trainer scores
# them again with slightly different numbers (precision, kernels, top-p). The $\pi_\text{old}$ of
# this page is the policy that *wrote* the answers: the engine. Keep its log-probabilities, or split
# the ratio:
#
# $$\rho=\frac{\pi_\text{now}}{\pi_\text{engine}}=\underbrace{\frac{\pi_\text{now}}{\pi_\text{trainer, then}}}_{\text{drift: PPO's ratio}}\cdot\underbrace{\frac{\pi_\text{trainer, then}}{\pi_\text{engine}}}_{\text{mismatch: often cut at a number }c}$$

# %%
pipeline.pipeline("ratio", again=True, caption=(
    "This page is the highlighted box: what makes a second step on the "
    "same answers nearly right."))

# %% [markdown]
# **That is the core; the rest is practice.**
#
# ## Can a batch see its own ESS?
#
# The ESS is computed from the weights of the batch. Let two policies drift apart: bells of width 1,
# the old one around 0, today's around $\mu$. Their ratio is $w=e^{\mu x-\mu^2/2}$.
#
# $$\mathbb E_\text{old}[w^2]=e^{-\mu^2}\,\mathbb E_\text{old}[e^{2\mu x}]=e^{-\mu^2}e^{2\mu^2}=e^{\mu^2}\qquad\text{a bell's mean of }e^{ax}\text{ is }e^{a^2/2}$$
#
# So of 1,000 samples the large-batch formula leaves $1000\,e^{-\mu^2}$; at $\mu=2$ that is 18. A
# trainer does not know $\mu$. It puts the 1,000 weights of its batch into the ESS.

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.3", "μ = 2, the large-batch formula gives 18. "
        "What does a typical batch of 1,000 report?",
        ["about 4", "about 18", "about 55", "about 550"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
drifts = (0.5, 1.0, 1.5, 2.0, 2.5)
x = torch.stack([torch.randn(1000, generator=torch.Generator()
                             .manual_seed(k)) for k in range(200)])
formula = 1000 * torch.tensor(-4.0).exp().item()
reported = torch.tensor([
    [ess((mu * row - mu**2 / 2).exp()) for mu in drifts]
    for row in x])                                         # (200, 5)
at2 = reported[:, 3]
reveal("importance_sampling.3", "about 55",
       f"The median of 200 batches is {at2.median():.0f}; "
       f"{(at2 > 2 * formula).sum()} of them report more than twice "
       f"{formula:.1f}. The formula is the large-batch value. A finite "
       "batch usually reports more, because the rare heavy samples that χ² "
       "counts are not in it.", pictures.worth(drifts, reported),
       instead={
           "about 4": "Now and then, when a very heavy sample came up.",
           "about 18": "So it would if a batch held the heavy samples in "
           "proportion.",
           "about 550": "That far it does not flatter.",
       })

# %% [markdown]
# Look where the samples end, and where today's policy lives.

# %%
task("importance_sampling.t1", drift.drift_explorer(),
     ("At drift 2, find one of the twenty batches that reports less than "
      "the formula. What does it have that the others lack?",
      drift.reports_too_little))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# At μ = 2 a sample near 4 weighs $e^{2\cdot4-2}\approx400$, and such samples make up most of
# $\mathbb E[w^2]$. Most batches have none: their samples end near 3, so the weights that *were*
# drawn look alike. Batch 8 has one, at 4.4 <!-- cited: 4.4 -->. It carries half of all the weight.
# </details>
#
# **A small ESS means trouble. A large ESS does not mean there is none:** the batch cannot weigh the
# samples it does not have.
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | importance sampling | |
# |---|---|
# | sentence | weight each old sample by new probability over old; exact wherever old covers new; noisy when weights are unequal; hopeless when answers are long |
# | formula | $\mathbb E_\pi[f]=\mathbb E_\text{old}[wf]$, $w=\prod_t\rho_t$; $\mathrm{ESS}=(\sum w)^2/\sum w^2$; $\mathrm{Var}\,w=(1+\chi^2)^T-1$ |
# | the choice | $\rho_t$ per token instead of the product |
# | picture | two humps that part: what a batch holds, and what the mean is made of |
# | numbers | a gap in the support: 0.8 for 1.4 · formula 18, a batch reports 55 · 1,000 tokens at ± 0.20: mean 1, median 10⁻⁹ |
# | since REINFORCE | each token's term: from $A\log\pi$ to $\rho A$, with $\log\pi_\text{old}$ kept from when the batch was written |

# %%
score(*(f"importance_sampling.{k}" for k in range(1, 7)))

# %% [markdown]
# ## Exercises
#
# **1 By hand** · 3 minutes. Ten samples. Nine have weight 1, the last has weight 9.

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.7", "How many effective samples? (And "
        "after all weights are multiplied by 100?)", unit="samples")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ten = torch.tensor([1.0] * 9 + [9.0])
assert torch.isclose(ess(ten), ess(100 * ten))
reveal("importance_sampling.7", round(ess(ten).item(), 4),
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
predict("importance_sampling.8", "What is the longest answer, in whole "
        "tokens, that leaves three quarters of the samples or more?",
        unit="tokens", close=0.0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
longest = torch.tensor(4 / 3).log() / torch.tensor(1.01).log()
assert 1.01**longest.item() < 4 / 3 + 1e-12
reveal("importance_sampling.8", int(longest),
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
# sampler covers the other's support; a gap is lost silently, and only a mean weight below 1
# shows it. It is useful only while weights are alike: in a large batch the effective sample
# size is n/(1 + χ²). With a reward per token, each reward needs the ratios up to it only
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
# As an alarm yes, as a count no. It is computed from the samples you have. With two bells two
# widths apart a typical batch says 55 where the large-batch value is 18: the rare sample with the
# huge weight is not in the batch.
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
# ratios start at 1, so nothing looks odd; only the sampler's own probabilities show a mean weight
# below 1. Score under the truncation you sampled with, or sample without one.
# </details>
#
# Statements one hears, decided by running them:
# [04 · statements](statements/04_importance_sampling.ipynb). **Next: 05.** How far is far? KL.
