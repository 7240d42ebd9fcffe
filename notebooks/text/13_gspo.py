# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 13 · GSPO: should a whole answer share one ratio?
#
# **After this page** you can derive GSPO's ratio and its gradient, explain its narrow band, and say
# what a mixture of experts does to it.
#
# 38 minutes, then 1 in a second sitting · exercises 34 more · after 04 (importance sampling), 05
# (KL), 06 (PPO), 08 (GRPO) · GSPO, Zheng et al. 2025,
# [arXiv 2507.18071](https://arxiv.org/abs/2507.18071); GMPO, Zhao et al. 2025,
# [arXiv 2507.20673](https://arxiv.org/abs/2507.20673)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What is the importance ratio of a whole answer, and what is wrong with it?</summary>The product of its token ratios ρ. Its variance explodes with the length (04).</details>
# <details><summary>2. Which line of PPO's derivation is a choice?</summary>Each token keeps its own ratio, instead of the product over the answer (06).</details>
# <details><summary>3. Which tokens does GRPO's clip silence?</summary>Good ones above 1 + ε and bad ones below 1 − ε, as in PPO (06, 08).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
from functools import cache
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import answer_ratio
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import gspo as pictures, token_grid
from rlnb.objective import difference
from rlnb.toys import RouterPolicy, flipped, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: 128 answers; the first 64 take a step
@cache
def step(seed, rate=2e-4):
    """The policy before and after the step, the answers (128, 1000), A."""
    old = RouterPolicy(seed=seed)
    y = old.sample(128, 1000, torch.Generator().manual_seed(seed))
    R = (y < 4).double().mean(1)                 # 4 of the 16 words
    A = (R - R.mean()) / R.std(correction=0)
    new = old.copy()
    adam = torch.optim.Adam(new.parameters(), lr=rate)
    (-A[:64, None] * new.logprobs(y[:64])[0]).mean().backward()
    adam.step()
    return old, new, y, A

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: the ratios that the step leaves
@cache
def mini_batch(which, seed):
    """Log ratios as routed, with the old experts held; flips; A; words."""
    old, new, y, A = step(seed)
    part = slice(0, 64) if which == "first" else slice(64, 128)
    y, A = y[part], A[part]
    with torch.no_grad():
        before, routes = old.logprobs(y)
        after, used = new.logprobs(y)
        held = new.logprobs(y, routes)[0]
    return after - before, held - before, flipped(routes, used), A, y

# %% [markdown]
# ## Which tokens does GRPO's clip silence?
#
# Many large models are mixtures of experts. In every layer a *router* sends each token to one of
# several small networks, the *experts*. After a gradient step the router may choose another expert.
# If it does so in at least one layer, the token is *flipped*.
#
# **The toy, used on the whole page**
#
# * A language model with random weights, 16 words and four layers; in each a router picks one of
#   eight experts. It writes 128 answers of 1,000 tokens to one prompt.
# * The reward is the share of four chosen words in the answer; $A$ is its z-score.
# * The first 64 answers make one Adam step of 2e-4. **The second 64 meet the new weights**, as a
#   second mini-batch does. The toy's numbers are of these 64, from one, three or
#   eight policies, as said at each.
# * The toy shows causes, not sizes.
#
# Here is one good answer ($A>0$) of the second 64, twice. *As routed*: the new router chooses. *Old
# experts held*, or *routing replay*: the same new weights, but every token goes through its old
# experts.

# %%
gap, held, flips, A, y = mini_batch("second", seed=0)   # log rho, ...

# %% jupyter={"source_hidden": true}
# folded: the picture
pictures.leaps(
    {"as routed": gap[23].exp(), "old experts held": held[23].exp()},
    "One good answer of one policy, a line per token. Grey: 1 ± 0.2.")

# %% [markdown]
# Four tokens *leap*: their ratios leave the grey. With the old experts held none does. What does
# GRPO's clip silence in all 64 answers?

# %%
def silenced(gap, A, epsilon=0.2):
    rho, good = gap.exp(), (A > 0)[:, None]          # (64, 1000), (64, 1)
    return torch.where(good, rho > 1 + epsilon, rho < 1 - epsilon)


# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the count
seconds = [mini_batch("second", k) for k in range(3)]    # three policies
cut = silenced(gap, A)
leap, none = ((x.exp() - 1).abs() > 0.2 for x in (gap, held))
assert flips[leap].all() and not none.any()
print(f"one policy: of {gap.numel():,} tokens {int(flips.sum())} are "
      f"flipped, {flips.double().mean():.2%}; {int(leap.sum())} leap, all "
      f"of them flipped;\nthe clip silences {int(cut.sum())}, and "
      f"{int(silenced(held, A).sum())} with the old experts held")

# %% [markdown]
# **In the toy GRPO's clip acts on flipped tokens only.** The boundary: in a large model about a
# tenth of the experts change at an update, the authors report, so nearly every token may be
# flipped.

# %% [markdown]
# ## Does a token's ratio know its answer?
#
# The clip has to decide which tokens have had enough: in a good answer those that rose, in a bad
# one those that fell. Can it read that off a token's ratio?

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.1", "Take the rewarded words where they stand in bad "
        "answers, A < 0. In which share of these places has the word "
        "become likelier?",
        ["about 20 %", "about 40 %", "about 60 %", "about 80 %"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def right_way(log_ratio, A):
    """Share that rose where A > 0 and fell where A < 0."""
    return ((log_ratio > 0) == (A > 0)).double().mean().item()

gaps, As, words = (torch.cat([x[i] for x in seconds]) for i in (0, 3, 4))
rose = [(gaps > 0)[(side[:, None]) & (words < 4)].double().mean().item()
        for side in (As > 0, As < 0)]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.1", "about 80 %",
       f"It is {rose[1]:.0%}, and {rose[0]:.0%} in good answers (three "
       "policies). The step moved *words*, wherever they stand. That is "
       "right credit: the reward pays for the word in a bad answer, too. "
       "But then a token's ratio says next to nothing about its answer: "
       f"{right_way(gaps, As[:, None]):.0%} of all tokens moved the way "
       "their $A$ asks, a coin. **So in this toy a clip on token "
       "ratios cannot tell which answers have had enough.**",
       pictures.where_it_shows(gaps, As, words < 4),
       instead={
           "about 20 %":
           "A < 0 pushes them down there. But a word has common weights, "
           "and good answers, which have more of it, push it up.",
           "about 40 %":
           "That is what the other words do, in good and in bad answers.",
           "about 60 %":
           "A word has the same weights in all answers: the two bars are "
           "level.",
       })

# %% [markdown]
# The authors of GSPO blame the unit: the reward belongs to an answer, the ratio to a token. **GSPO,
# group sequence policy optimization, gives the whole answer one ratio and one clip.**

# %% [markdown]
# ## Which one ratio?
#
# Let the answer $y$ have $T$ tokens with ratios $\rho_t$. Start where PPO started (06), with their
# product, and this time keep it:
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_\text{old}\Big[\textstyle\prod_t\rho_t\;A\,\sum_t\nabla\log\pi_\theta(y_t)\Big]&&\text{importance ratio of the answer (04)}\\
# &=\mathbb E_\text{old}\Big[A\,\nabla\textstyle\prod_t\rho_t\Big]&&\nabla f=f\,\nabla\log f\text{ with }f=\textstyle\prod_t\rho_t\\
# &=\nabla\,\mathbb E_\text{old}\Big[A\textstyle\prod_t\rho_t\Big]&&\pi_\text{old}\text{ and }A\text{ do not depend on }\theta\\
# &\to\nabla\,\mathbb E_\text{old}\big[A\,s\big],\quad s=\Big(\textstyle\prod_t\rho_t\Big)^{1/T}&&\textbf{a choice: the }T\textbf{-th root}\\
# &\to\nabla\,\mathbb E_\text{old}\big[\min\big(sA,\ \mathrm{clip}(s)A\big)\big]&&\text{PPO's clip and min (06), once per answer}
# \end{aligned}$$
#
# **Why the root?** It makes $s$ the geometric mean of the ratios: $\log s=\frac1T\sum_t\log\rho_t$.
# If every token moves by $\delta$ in the log, $\log s$ is $\delta$ at any length. The price: $s$ is
# no longer an importance weight.

# %% [markdown]
# ## What does one clip per answer do?
#
# The running group has two right answers ($A=+1$, good) and two wrong ones ($A=-1$, bad).

# %%
batch = running_group()
T, A4 = batch.mask.sum(1), batch.rewards * 2 - 1
log_rho = torch.where(batch.mask, batch.logprobs - batch.old_logprobs, 0)
s4 = (log_rho.sum(1) / T).exp()                          # (4,)

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: s and the token ratios
for i in range(4):
    own = log_rho[i, :T[i]].exp()
    print(f"answer {i}, A {A4[i]:+.0f}: s {s4[i]:.3f}    token ratios",
          *(f"{x:.3f}" for x in own))

# %% [markdown]
# GSPO's paper lets $s$ run from $1-0.0003$ to $1+0.0004$. All four answers are far outside.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.2", "GRPO silences 4 of these 16 tokens. How many does GSPO?",
        ["16: all four answers", "8: two answers", "5: one answer",
         "4: single tokens"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def clip_min(ratio, A, low, high):
    return torch.minimum(ratio * A, ratio.clamp(1 - low, 1 + high) * A)

def push(value):
    """Slope in log pi, token by token, before the 1/T."""
    return torch.autograd.grad(value, batch.logprobs, retain_graph=True)[0]

tokens = clip_min(log_rho.exp(), A4[:, None], 0.2, 0.2)
grids = {"GRPO": push(tokens[batch.mask].sum()),
         "GSPO, no clip": push((T * s4 * A4).sum()),
         "GSPO": push((T * clip_min(s4, A4, 3e-4, 4e-4)).sum())}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.2", "8: two answers",
       "Answers 0 and 1 are good and have risen: they have had enough, and "
       "all their tokens are silent. Answers 2 and 3 are bad, and have "
       "risen too. That is the wrong way, so the min keeps all their "
       "tokens alive. **Outside the band is not yet cut.**",
       token_grid.token_grid(batch, grids, caption=(
           "A number is the token's push: the factor on its ∇ log π, "
           "before 1/T. GRPO decides token by token; under GSPO the tokens "
           "of an answer share one push, and live or die together.")),
       instead={
           "16: all four answers":
           "All four are outside. Two of them went the wrong way, and the "
           "min does not cut those.",
           "5: one answer":
           "Both good answers have risen above the band, not only one.",
           "4: single tokens":
           "GSPO has one ratio per answer, so it cannot cut single tokens.",
       })

# %% [markdown]
# **Why one push for all?** Take the gradient of an answer that is not clipped:
#
# $$\begin{aligned}
# \nabla s&=s\,\nabla\log s&&\nabla f=f\,\nabla\log f\\
# &=s\cdot\frac1T\sum_t\nabla\log\pi_\theta(y_t)&&\log s=\tfrac1T\textstyle\sum_t(\log\pi_\theta-\log\pi_\text{old})
# \end{aligned}$$
# **Every token of an answer gets the same push, $sA$;** in GRPO token $t$ gets $\rho_tA$. Both are
# divided by $T$, so the length bias (10) stays. Inside its narrow band $s$ is 1 to three digits:
# GSPO hardly weighs an answer, it decides who is silent.

# %% [markdown]
# ## Why 3e-4 and not 0.2?
#
# The paper derives no number. Our reading: when an answer reaches the edge, its push stops. By then
# the answer is $s^T$ times as likely as before.

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: where the push stops
print("   tokens    3e-4 below   4e-4 above   with 0.2 above")
for n in (300, 1000, 10_000):
    print(f"{n:9,d} {(1 - 3e-4)**n:13.2f} {(1 + 4e-4)**n:12.2f}"
          f"        10^{n * torch.tensor(1.2).log10():.0f}")

# %% [markdown]
# With 0.2 the push on 1,000 tokens would stop at $10^{79}$ times as likely. (GRPO's 0.2 allows as
# much, but judges each token by itself.) With GSPO's band it stops at 1.49. And one band means
# different things at different lengths: 10,000 tokens may become 55 times as likely. How narrow
# must a band for a mean be? That depends on how far the mean moves.

# %% [markdown]
# ## What moves log s?
#
# Besides what is learnt: noise. Let the tokens' log ratios have the standard deviation $\sigma$,
# leaps included. If they are independent, their mean has $\sigma/\sqrt T$.

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the noise, predicted and found in the 64 answers
print("one policy        sigma   sigma/sqrt(1000)   std of log s, found")
for name, x in (("as routed", gap), ("old experts held", held)):
    print(f"{name:16s}  {x.std():.3f}        {x.std() / 1000**0.5:.4f}"
          f"              {x.mean(1).std():.4f}")

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: for the next answer
with torch.no_grad():
    old, new, texts, _ = step(0)
    p = old.distributions(texts[64:])            # (64, 1000, 16), log pi
    routes = old.logprobs(texts[64:])[1]
    kls = [(p.exp() * (p - new.distributions(texts[64:], x))).sum(-1)
           .mean().item() for x in (None, routes)]
halves = [x.var().item() / 2 for x in (gap, held)]
assert 0.7 < kls[0] / halves[0] < 1 and abs(kls[1] / halves[1] - 1) < 0.02

# %% [markdown]
# At 1,000 tokens the prediction fits. The leaps make $\sigma$ five times as large: as routed the
# standard deviation of $\log s$ is three times the upper edge.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.4", "So let the answers get longer and longer. Where does "
        "their log s go?",
        ["to 0", "to a number above 0", "to a number below 0",
         "nowhere, its spread stays"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.4", "to a number below 0",
       "On answers that the step has not seen, the mean log ratio of a "
       r"token is $-\mathrm{KL}(\pi_\text{old}\Vert\pi_\theta)$, by the "
       "definition of the KL (05). The noise shrinks around that number, "
       "not around 0. Ups and downs cancel in ρ, whose mean under the old "
       "policy is 1. The log bends downwards, so the mean of log ρ is "
       "below the log of 1, which is 0. Call this the **drift**.",
       pictures.settling((100, 300, 1000), {
           "as routed": gap, "old experts held": held}, kls),
       instead={
           "to 0": "Up and down cancel in ρ, whose mean under the old "
           "policy is 1. Then the mean of log ρ is below 0.",
           "to a number above 0": "The step raised some words at the cost "
           "of others: under the old policy the mean of ρ is 1.",
           "nowhere, its spread stays":
           "The spread shrinks, about as 1/√T. Look at the middle."})

# %% [markdown]
# **How large is the drift?** Expand $\rho=e^{\log\rho}$ for small moves:
#
# $$1=\mathbb E[\rho]\approx1+\mathbb E[\log\rho]+\tfrac12\mathbb E[(\log\rho)^2],\qquad\text{so}\quad-\mathrm{KL}=\mathbb E[\log\rho]\approx-\tfrac12\sigma^2$$

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: both sides; where drift and noise are equal
print("one policy        sigma^2/2   KL, exact   drift > noise beyond")
for name, x, kl, half in (("as routed", gap, kls[0], halves[0]),
                          ("old experts held", held, kls[1], halves[1])):
    print(f"{name:16s}  {half:.5f}     {kl:.5f}    "
          f"{(x.std() / kl)**2:7,.0f} tokens")

# %% [markdown]
# Leaps are no small moves: as routed $\sigma^2/2$ is a quarter too large. They also make $\log s$
# far from normal, so a band's edges come from quantiles of $\log s$, not from $\sigma$
# ([which fails at 100 and at 300 tokens](statements/13_gspo.ipynb)).
#
# **Besides what is learnt, $\log s$ is moved by noise, about $\sigma/\sqrt T$, which length
# removes, and by drift, about $-\sigma^2/2$, which length does not remove.**

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.6", "No flips. A band keeps 89 % of the answers of 32,768 "
        "tokens inside. Which share of the answers of 128 tokens does the "
        "same band keep?",
        ["about 1 %", "about 10 %", "about 30 %", "about 90 %"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
long, short = (answer_ratio.inside(answer_ratio.compute(
    flips=0.0, length=32768, band="1e-4"))[i] for i in (-1, 1))
assert round(long) == 89

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.6", "about 10 %",
       f"It is {short:.0f} % (the explorer's policy). These answers are "
       "256 times shorter, so their noise is √256 = 16 times as large.",
       instead={
           "about 1 %":
           "That scales the noise by 256. It grows by the root of that.",
           "about 30 %":
           "Then the noise would be 4 times as large. It goes as 1/√T.",
           "about 90 %":
           "s is a mean at both lengths, but one of far fewer tokens."})

# %% [markdown]
# Now set the share of flips (one policy, moved at random: nothing was learnt).

# %% jupyter={"source_hidden": true}
# the explorer
task("gspo.t1", answer_ratio.answer_ratio_explorer(),
     ("Set 0.35 % of flips, as above. −KL then lies well below the band. "
      "Predict first: which of the six lengths keeps the largest share "
      "inside? Set it (within a point of the largest counts, too).",
      answer_ratio.most_inside),
     ("No flips, T = 32,768. Find a band that keeps at least 85 % inside "
      "and whose push stops before 1,000 times as likely. Work out first: "
      "how far above 1 may its edge lie?",
      answer_ratio.long_answers_bounded))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# <!-- cited: 28 %, 24 %, 15 %, 21 %, 8 %, 0.009, 0.0016, 1.0025, 2e-3, 2.5e-3 -->
# 1. At 32, 128, 512, 2,048, 8,192, 32,768 tokens: 15, 24, 28, 28, 21, 8 %. Of the answers of 32
#    tokens nine in ten have no flip; the other tokens' $\sigma$, here 0.009, is enough:
#    $0.009/\sqrt{32}=0.0016$ throws them out on both sides. The long ones leave by drift, below.
# 2. $\log(1000)/32{,}768=0.0002$. Of the slider's bands only 1e-4 lies below. The band 2e-3, 2.5e-3
#    keeps nearly all answers of 128 tokens, but at 32,768 its push stops at $1.0025^{32768}$, about
#    $10^{35}$ times as likely. Of these bands none serves both.
# </details>

# %% [markdown]
# ## Whom does GSPO's clip silence?
#
# Back to the toy and its second 64 answers.

# %%
def silent_answers(gap, A, low=3e-4, high=4e-4):
    s = gap.mean(1).exp()
    return torch.where(A > 0, s > 1 + high, s < 1 - low)   # (64,)

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the count, three policies
per_policy = [int(silent_answers(x[0], x[3]).sum()) for x in seconds]
print(f"three policies: GSPO silences {per_policy} of 64 answers, "
      f"{sum(per_policy) / 3:.0f} in the mean")

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.3", "Deal the same 64 advantages to the 64 answers anew, by "
        "lot. How many answers does GSPO's clip silence then (mean of "
        "three policies)?",
        ["about 27", "about 20", "about 13", "about 5"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def shuffled(silent, x, A):
    """The mean over all ways to shuffle A."""
    good = (A > 0).double().mean()
    up, down = (silent(x, sign + 0 * A).sum() for sign in (1, -1))
    return good * up + (1 - good) * down

by_chance, calm_cut = (
    sum(f(x).item() for x in seconds) / 3 for f in (
        lambda x: shuffled(silent_answers, x[0], x[3]),
        lambda x: silent_answers(x[1], x[3]).sum()))
silent = [(silent_answers(x[0], x[3]), x[3] > 0) for x in seconds]
good = sum(int((a & b).sum()) for a, b in silent)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.3", "about 27",
       f"It is {by_chance:.0f} (mean over all shuffles). Noise and drift "
       "put an answer outside, whatever its reward. Drift pushes down, "
       "and below the band the clip silences bad answers: they are "
       f"{sum(per_policy) - good} of the {sum(per_policy)} silent ones of "
       "the three policies. The cause is the flips: with the old experts "
       f"held {calm_cut:.1f} of 64 are silent. There the clip does read "
       "the reward: over eight policies 9.2 are silent and 6.1 with A "
       "shuffled, 3.2 ± 0.5 fewer (one standard error). **The count of the "
       "silent is no measure of learning. Compare it with the shuffle.**",
       instead={
           "about 20":
           "Then a fourth of the silent would owe it to what was learnt. "
           "As routed the noise, 0.0013, hides what one step teaches.",
           "about 13":
           "Then half of the silent would owe it to what was learnt. "
           "Far more lie outside by noise and drift.",
           "about 5":
           "That is close to the count with the old experts held, where "
           "σ is five times smaller. The shuffle leaves σ as it is.",
       })

# %% [markdown]
# **Does $s$ know its answer better than a token's ratio does?** With the old experts held, yes: the
# correlation with $A$ is 0.46 ± 0.06 for $\log s$, and 0.01 for a single token's $\log\rho$. The
# mean adds up what single tokens hardly show. As routed the leaps hide it: 0.11 ± 0.05 (eight
# policies, ± one standard error, [statements page](statements/13_gspo.ipynb)). The reward counts
# words, so $\log s$ and $A$ share a cause; with another reward the correlation may be smaller.
# <!-- cited: 0.46, 0.06, 0.01, 0.11, 0.05, 3.2, 0.5, 9.2, 6.1 -->

# %% [markdown]
# ## So, should a whole answer share one ratio?
#
# Perhaps. The toy cannot say what is better.
#
# | | for it | against it |
# |---|---|---|
# | the push | no wild token outweighs the others' push | $s$ is no importance weight |
# | the silence | $\log s$ knows its answer if no experts flip | flips hide it; one leap to 2.74 can silence 1,000 tokens |
# | the band | $s^T$ says how far the answer went | none suits all lengths |
#
# **In the paper's runs** GRPO, its clip tuned to 0.2 and 0.27, did not converge properly without
# routing replay. GSPO did without
# replay and learnt faster, with 15 % of the tokens clipped against GRPO's 0.13 %. Ratio, band and
# routing changed together, so the runs do not say which did it.
# <!-- cited: 0.2, 0.3, 1.5, 0.875, 0.27, 0.13 %, 15 % -->
#
# <details><summary>One level deeper: the authors' argument against token ratios</summary>
#
# An importance weight works on average over many draws, they say, and a token's ratio is taken on
# the *one* token drawn there, so it only adds noise. Let a token have 0.2 under the
# old policy and 0.3 under the new one. Drawn, its ratio is 1.5, and the others' is 0.7/0.8 = 0.875:
# noisy. But over a batch
# $0.2\cdot1.5\,f_1+0.8\cdot0.875\,f_2=0.3f_1+0.7f_2$, the new policy's mean of any $f$. The
# ratio corrects its own token, not the prefix before it; $s$ corrects neither (Z06 on the
# [statements page](statements/13_gspo.ipynb)).
# </details>
# <details><summary>One level deeper: what to log, TRL, verl</summary>
#
# * **Which ε?** Measure $\log s$ over a second mini-batch: its quantiles say how many answers a
#   band keeps, its mean is the drift. Later mini-batches of a
#   rollout are not measured here.
# * **Log** the share of answers silenced, good and bad apart, and the same with $A$ shuffled. If
#   nearly all the silent are bad, suspect too large a step, or flips; hold the experts to tell.
# * **TRL:** `importance_sampling_level="sequence"`, `loss_type="grpo"`, `beta=0`, `epsilon=3e-4`,
#   `epsilon_high=4e-4`, `steps_per_generation=4`, `gradient_accumulation_steps=1`. With four
#   accumulation steps a batch makes one optimizer step: every $s$ is 1, nothing is clipped.
# * **verl:** `loss_mode="gspo"`, and set `clip_ratio_low` and `clip_ratio_high`, which otherwise
#   stay at 0.2.
# </details>

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | GSPO | |
# |---|---|
# | sentence | the reward is per answer, so is the ratio: the geometric mean of the token ratios, clipped once per answer |
# | formula | $s=(\prod_t\rho_t)^{1/T}$ · $\nabla s=s\cdot\frac1T\sum_t\nabla\log\pi_\theta(y_t)$ |
# | silent | whole answers: good ones with $s$ above $1+\epsilon_\text{high}$, bad ones below $1-\epsilon$ |
# | band | 3e-4 and 4e-4: at 1,000 tokens the push stops at 0.74 and 1.49 times as likely. With 0.2: $10^{79}$ |
# | acts | from the second mini-batch of a rollout on; at the first every $s$ is 1 |
# | what moves $\log s$ | noise, $\sigma/\sqrt T$, leaps included; drift, $-\mathrm{KL}\approx-\sigma^2/2$, at any length |
# | flips | make $\sigma$ large; routing replay removes them, $s$ only averages them |

# %%
print("GRPO -> GSPO")
print(difference(ZOO["grpo"].replace(terms=()), ZOO["gspo"]))
score("gspo.1", "gspo.2", "gspo.4", "gspo.6", "gspo.3")

# %% [markdown]
# Now try [the interview](#In-the-interview).

# %% [markdown]
# ## Second sitting: what if one clips first, and then averages?
#
# **GMPO**, geometric-mean policy optimization, keeps the geometric mean, but first cuts every
# token's $\log\rho_t$, at $+0.4$ if $A>0$ and at $-0.4$ if $A<0$. A token that was cut gets no
# gradient; the others share one push. Its authors report up to
# 4.1 % more average Pass@1 than GRPO's in mathematics, with a model of 7B. <!-- cited: 4.1 % -->

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: a bad answer of 1,000 tokens, each fallen to 0.9
fallen = torch.full((1000,), 0.9).log()
clips = {"GRPO": (fallen < torch.tensor(0.8).log()).any(),
         "GMPO": (fallen < -0.4).any(),
         "GSPO": fallen.mean().exp() < 1 - 3e-4}
assert [name for name, cuts in clips.items() if cuts] == ["GSPO"]
print("a bad answer, 1,000 tokens at ratio 0.9: 10^"
      f"{fallen.sum() / torch.tensor(10.0).log():.0f} times as likely; "
      "silenced by GSPO alone\nlower edge of a token: GMPO e^-0.4 = "
      f"{torch.tensor(-0.4).exp():.2f}, GRPO 0.80")

# %% [markdown]
# No token here has fallen far. **GMPO cuts single tokens. It does not ask how far the answer
# went.**

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 6 minutes. In a good answer one token has the log ratio `leap` > 0, all others 0.
# From which length on does GSPO's clip, with `epsilon` above 1, leave the answer alone? Return that
# length, not rounded, for tensors.
#
# <details><summary>hint</summary>What is log s? Where is the edge, in logs?</details>

# %% tags=["exercise"]
def my_length(leap, epsilon):
    return ...

check.outlier_length(my_length)

# %% [markdown]
# **2 Implement** · 14 minutes. GSPO for real batches: first the ratio, then the loss, to minimise.
# What lies under the boolean `mask` may be anything, nan included; an answer without tokens has not
# moved. `advantages` is (B,), the band runs from 1 − `epsilon` to 1 + `epsilon_high`.
#
# <details><summary>hint</summary>torch.where on both inputs, before the subtraction; exp last. Where is the 1/T? You need it once.</details>

# %% tags=["exercise"]
def my_sequence_ratio(logprobs, old_logprobs, mask):
    """(B, T), (B, T), (B, T) -> (B,)"""
    return ...

check.sequence_ratio(my_sequence_ratio)

# %% tags=["exercise"]
def my_gspo_loss(logprobs, old_logprobs, mask, advantages,
                 epsilon, epsilon_high):
    return ...

check.gspo_loss(my_gspo_loss)

# %% [markdown]
# **3 Find the silent bug** · 8 minutes. If every token has an advantage of its own, GSPO spreads it
# over the answer. GSPO-token leaves it where it belongs: token $t$ gets the ratio
# $\mathrm{sg}[s]\cdot\pi_t/\mathrm{sg}[\pi_t]$, where sg stops the gradient. In this version all
# values are right, losses agree to the last digit, and models train:

# %%
print(check.silent_bug_gspo.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>Every value is right. What does one token's ratio owe to another token?</details>

# %% tags=["exercise"]
def my_test(gspo_token_ratio):     # (logprobs, old_logprobs, mask)
    return ...

check.silent_bug_gspo(my_test)

# %% [markdown]
# <!-- cited: 1.01 -->
# **4 Name this method** · 6 minutes. Two answers of four tokens; below the token ratios stands the
# size of each token's push. Which method is it? And where must its upper edge lie, if the push 1.01
# tells?
#
#     A = +1   ratios    1.10   0.60   1.80   1.05
#              pushes    1.01   1.01   0      1.01
#     A = -1   ratios    0.50   0.90   1.30   2.00
#              pushes    0      1.12   1.12   1.12
#
# <details><summary>hint</summary>Do the tokens of an answer die together? Then: 1.01 is the exp of a mean of four logs, and you know three of them.</details>

# %% tags=["exercise"]
check.name_this_gspo("")

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
# <!-- cited: 1.49, 0.008, 0.039, 0.00045, 0.0023, 0.00023, 1.0004, 0.00005, 0.00003, 0.0006, 0.13 % -->
#
# <details><summary><b>What does GSPO change against GRPO?</b></summary>
#
# It has one ratio per answer instead of one per token. The ratio is the geometric mean of the token
# ratios, clipped once, at 3e-4 below and 4e-4 above 1. Advantage and mean per answer stay. In an
# unclipped answer every token has the push s·A, over T. Inside the band s is about 1: GSPO decides
# who is silent.
# </details>
# <details><summary><b>Derive the gradient. Is s an importance weight?</b></summary>
#
# Differentiate s as the exp of the mean log ratio. So ∇s is s times the mean of the tokens' ∇log π;
# the 1/T keeps GRPO's length bias. The importance weight of an answer is the product of its ρ; ∇f =
# f∇log f takes the gradient outside. Its T-th root is a choice and corrects almost nothing: 1.49 at
# 1,000 tokens becomes 1.0004.
# </details>
# <details><summary><b>Why is ε 3e-4 and not 0.2?</b></summary>
#
# Because s is a mean over the answer's tokens: their noise averages out, so it moves far less than
# one token. With 0.2 the push on an answer of 1,000 tokens would stop at 1.2^1000, that is 10^79,
# times as likely; with 4e-4 it stops at 1.49. This reading is ours.
# </details>
# <details><summary><b>Does GSPO fix GRPO's trouble with mixtures of experts? And for a dense model?</b></summary>
#
# In our toy router flips make single token ratios leap; the authors' GRPO needed routing replay to
# converge properly, their GSPO did not. But s only averages the leaps: they raise σ, so noise σ/√T
# and drift −KL, about −σ²/2, grow. Below −3e-4 long bad answers fall silent: in the toy 68 of the
# 82 silent answers are bad. Their negative pushes are lost; what that does to training is not
# measured here. Replay removes the cause. A dense model has no flips, so this case for GSPO is
# gone; the paper has no run of one. One decision per answer stays, and its cost, one band for all
# lengths.
# </details>
# <details><summary><b>My batch has answers of 300 and of 30,000 tokens. Whom does one ε silence?</b></summary>
#
# Measure σ and drift. In our toy *without flips* (σ 0.008, drift 0.00003)
# the short ones, by noise: σ/√T is 0.00045 at 300 tokens, more than either edge. At 30,000 it is
# 0.00005, the drift is a tenth of the lower edge, and nearly all stay inside. *With flips* (σ
# 0.039, drift 0.0006) both: the short ones by a noise of 0.0023, on both sides, the long ones by
# drift, twice the lower edge. Their noise is 0.00023, so about nine in ten long bad answers are
# silent.
# </details>
#
# The other three can wait for another evening.
#
# <details><summary><b>Why not a band that depends on T?</b></summary>
#
# Noise falls as σ/√T, drift sits at −σ²/2 whatever T. So a band of ±cσ/√T around the drift keeps
# about an equal share at each length, and its limit s^T, e^(cσ√T), loosens more slowly than a fixed
# band's e^(εT). The price: σ changes with every update, so the band must be measured on the way. We
# have not tried it.
# </details>
# <details><summary><b>My engine samples, my trainer trains. May GSPO use the engine's log-probs?</b></summary>
#
# GSPO's authors think so: an answer's likelihood tolerates differences in precision better than a
# token's, so one may skip the recomputation. They show no experiment. Noise averages out, as σ/√T;
# the drift does not, and a router may flip by rounding. So
# it must be measured: mean and quantiles of log s at equal weights, before the first step.
# </details>
# <details><summary><b>GSPO clips a hundred times more than GRPO. Why does it not learn less?</b></summary>
#
# The paper's runs do not separate the causes. It has 15 % of the tokens clipped against 0.13 %, and
# reads its faster learning as less noise per token used. But its GRPO needed replay, and ratio and
# band changed together. The count says little by itself: in our toy 27 of 64 answers are silent,
# and 26 with A shuffled. Two more runs would tell: both methods with replay, and token ratios with
# a band that silences 15 %.
# </details>
#
# The sentences that one hears about GSPO, true or not: [statements 13](statements/13_gspo.ipynb).
# The exercises, solved: [solutions 13](solutions/13_gspo.ipynb).
#
# **Next: [14](14_the_zoo.ipynb).** All methods on the same axes, and one that you compose yourself.
