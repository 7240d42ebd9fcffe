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
# 35 minutes, then 4 in a second sitting · exercises 34 more · after 04 (importance sampling), 05
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
# Many large models are mixtures of experts. In every layer a *router* sends each token to the best
# of several small networks, the *experts*. After a gradient step it may choose another expert. If
# that happens in at least one layer, the token is *flipped*.
#
# **The toy, used on the whole page**
#
# * A language model with random weights, 16 words and four layers; in each a router picks one of
#   eight experts. It writes 128 answers of 1,000 tokens to one prompt.
# * The reward is the share of four chosen words in the answer; $A$ is its z-score.
# * The first 64 answers make one Adam step of 2e-4. **The second 64 meet the new weights**, as a
#   second mini-batch does. All numbers are of these: of one policy, or of three where it says so.
# * GSPO's clip will silence 27 of these 64 (three policies), or 42 %. In the paper's runs it
#   silenced 15 % of the tokens. So read causes and signs off the toy, no sizes.
#
# <!-- cited: 15 % -->
# Here is one good answer ($A>0$) of the second 64:

# %%
gap, held, flips, A, y = mini_batch("second", seed=0)   # log rho, ...

# %% jupyter={"source_hidden": true}
# folded: the picture
pictures.leaps(
    {"as routed": gap[23].exp(), "old experts held": held[23].exp()},
    "One good answer, one line per token. Grey: the band 1 ± 0.2.")

# %% [markdown]
# On the left four tokens have leapt. On the right the weights are the same new ones, but every
# token goes through its old experts: no leap is left. What does GRPO's clip silence in all 64?

# %%
def silenced(gap, A, epsilon=0.2):
    rho, good = gap.exp(), (A > 0)[:, None]          # (64, 1000), (64, 1)
    return torch.where(good, rho > 1 + epsilon, rho < 1 - epsilon)


# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the count
seconds = [mini_batch("second", k) for k in range(3)]    # three policies
cut = silenced(gap, A)
print(f"of {gap.numel():,} tokens {int(flips.sum())} are flipped, "
      f"{flips.double().mean():.2%}; the clip silences {int(cut.sum())},\n"
      f"{int((cut & flips).sum())} of them flipped; with the old experts "
      f"held it silences {int(silenced(held, A).sum())}")

# %% [markdown]
# **In the toy GRPO's clip acts on flipped tokens only.** In a large model flips are no exception:
# about a tenth of the experts change at an update, the authors report, and a token passes several
# in dozens of layers. There one changed expert counts for less.

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
       "But then a ratio says nothing about its answer: "
       f"{right_way(gaps, As[:, None]):.0%} of all tokens moved the way "
       "their $A$ asks, a coin. **So a clip on token ratios cannot tell "
       "which answers have had enough.** (This is about the clip. As a "
       "weight that corrects for old samples a ratio need not agree with "
       "$A$.)",
       pictures.where_it_shows(gaps, As, words < 4),
       instead={
           "about 20 %":
           "A < 0 pushes them down there. But a word has common weights, "
           "and good answers, which have more of it, push it up.",
           "about 40 %":
           "That is what the other words do, in good and in bad answers.",
           "about 60 %":
           "Then the sign of A would still show. A word's places share "
           "their weights, and it does not.",
       })

# %% [markdown]
# The authors of GSPO blame the unit: the reward belongs to an answer, the ratio to a token. **GSPO,
# group sequence policy optimization, gives the whole answer one ratio and one clip.** That is a
# choice.

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
# divided by $T$, so the length bias (10) stays. Inside the band $s$ is 1 to three digits: GSPO
# hardly weighs an answer there. It decides who is silent.

# %% [markdown]
# ## Why 3e-4 and not 0.2?
#
# The paper derives no number. Our reading: at the edge, where its own push stops, an answer is
# $s^T$ times as likely as before.

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: where the push stops
print("   tokens    3e-4 below   4e-4 above   with 0.2 above")
for n in (300, 1000, 10_000):
    print(f"{n:9,d} {(1 - 3e-4)**n:13.2f} {(1 + 4e-4)**n:12.2f}"
          f"        10^{n * torch.tensor(1.2).log10():.0f}")

# %% [markdown]
# With 0.2 the push on 1,000 tokens would stop at $10^{79}$ times as likely: never. With GSPO's band
# it stops at 1.49. **A mean moves far less than one token, so its band is narrow; and one band
# stops short answers early, long ones late.**

# %% [markdown]
# ## What moves log s?
#
# Besides what is learnt: noise. Let the tokens' log ratios have the standard deviation $\sigma$,
# leaps included. If they are independent, their mean has $\sigma/\sqrt T$.

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the noise, predicted and found in the 64 answers
print("                  sigma   sigma/sqrt(1000)   std of log s, found")
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
# The rule holds. The leaps make $\sigma$ five times as large, and a mean over 1,000 tokens does not
# hide them: as routed the noise is three times the upper edge. In longer answers it is smaller.

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
       "policy is 1. The log bends downwards, so in log ρ the downs weigh "
       "more. Call this the **drift**.",
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
# folded: both sides, and where drift and noise are equal
print("                  sigma^2/2   KL, exact   noise = drift at")
for name, x, kl, half in (("as routed", gap, kls[0], halves[0]),
                          ("old experts held", held, kls[1], halves[1])):
    print(f"{name:16s}  {half:.5f}     {kl:.5f}    "
          f"{(x.std() / kl)**2:7,.0f} tokens")

# %% [markdown]
# Without leaps the two agree; leaps are no small moves, and $\sigma^2/2$ is a quarter too large.
# From the length in the last column on the drift is larger than the noise.
#
# **So one number, $\sigma$, moves $\log s$ twice: by noise, $\sigma/\sqrt T$, which length removes,
# and by drift, about $-\sigma^2/2$, which it does not.** At a $\sigma$ of
# $\sqrt{2\cdot0.0003}=0.024$ the drift reaches the lower edge of GSPO's band.
#
# Now set the share of flipped tokens yourself. Here the weights moved at random, so nothing was
# learnt, and tokens are drawn independently from answers of the toy.

# %% jupyter={"source_hidden": true}
# the explorer
task("gspo.t1", answer_ratio.answer_ratio_explorer(),
     ("Set 0.35 % of flips, as above. −KL then lies well below the band. "
      "Predict first: which answers stay inside most often, short, "
      "middling or long? Set a length that keeps over a quarter inside.",
      answer_ratio.most_inside),
     ("No flips, T = 32,768. Find a band that keeps at least 85 % inside "
      "and whose push stops before 1,000 times as likely. Predict first: "
      "which share of answers of 128 tokens will it keep inside?",
      answer_ratio.long_answers_bounded))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# <!-- cited: 28 %, 15 %, 8 %, 0.35, 89 %, 9 %, 1.0025, 2e-3, 2.5e-3 -->
# 1. The middling ones: 28 % at 512 and at 2,048 tokens, but 15 % at 32 and 8 % at 32,768. Short
#    answers leave by noise, on both sides; long ones by drift, below.
# 2. At most $\log(1000)/32{,}768=0.0002$, so 1e-4. It keeps 89 % of the long answers, but 9 % of
#    those of 128 tokens. The band 2e-3, 2.5e-3 keeps nearly all of these, but at 32,768 tokens its
#    push stops at $1.0025^{32768}$, about $10^{35}$ times as likely. No one band serves both.
# </details>

# %% [markdown]
# ## Whom does GSPO's clip silence?
#
# Back to the toy, its second 64 answers of 1,000 tokens.

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
        "lot. How many answers does GSPO's clip silence then?",
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
       "put an answer outside, whatever its reward. The drift gives the "
       f"silent a sign: of the {sum(per_policy)} of the three policies "
       f"{sum(per_policy) - good} are *bad*. And the cause is the flips: "
       f"with the old experts held {calm_cut:.1f} of 64 are silent. **The "
       "count of the silent is no measure of learning. Compare it with "
       "the shuffle.**",
       instead={
           "about 20":
           "Then a fourth of the silent would owe it to what was learnt. "
           "One step teaches log s far less than its noise, 0.0013.",
           "about 13":
           "Then half of the silent would owe it to what was learnt. "
           "Here log s hardly knows A.",
           "about 5":
           "That is close to the count with the old experts held, where "
           "σ is five times smaller. The shuffle leaves σ as it is.",
       })

# %% [markdown]
# **Does the clip do its work, then?** It silences answers that moved as $A$ asks, so those whose
# push points along the step just made. Of the gradient's part along that step 0.05 is left, against
# 0.56 if as many answers are dropped by lot (answers of 200 tokens, three policies,
# [statements page](statements/13_gspo.ipynb)). So the clip is a brake.
# <!-- cited: 0.05, 0.56 -->

# %% [markdown]
# ## So, should a whole answer share one ratio?
#
# Perhaps: the toy shows what changes, and not that it is better.
#
# | | for it | against it |
# |---|---|---|
# | the push | no wild token outweighs its answer | $s$ is no importance weight |
# | the silence | it depends on how far the answer went | noise and flips move it there, and it goes silent whole |
# | the band | $s^T$ says how far the answer went | none suits all lengths |
#
# **In the paper's runs** GRPO, its clip tuned to 0.2 and 0.27, did not converge properly without
# *routing replay*, which sends the new policy through the old one's experts. GSPO did without
# replay and learnt faster, with 15 % of the tokens clipped against 0.13 %. Ratio, band and routing
# changed together, so the runs do not say which of them did it.
# <!-- cited: 0.2, 0.3, 1.5, 0.875, 0.27, 0.13 %, 15 % -->
#
# <details><summary>One level deeper: the authors' argument against token ratios</summary>
#
# An importance weight works on average over many draws, they say, and a token's ratio is taken on
# the *one* token drawn there, so it only adds noise. Take a place where a token has 0.2 under the
# old policy and 0.3 under the new one. Drawn, its ratio is 1.5, and the others' is 0.7/0.8 = 0.875:
# one draw is noisy, yes. But over a batch
# $0.2\cdot1.5\,f_1+0.8\cdot0.875\,f_2=0.3f_1+0.7f_2$, the new policy's mean of any $f$. The
# ratio does correct its own token. It does not correct the tokens before it, and $s$ corrects
# neither (Z06 on the [statements page](statements/13_gspo.ipynb)).
# </details>
# <details><summary>One level deeper: what to log, TRL, verl</summary>
#
# * **Which ε for 30,000 tokens?** The stop wants ε to shrink as 1/T, the noise only as 1/√T, so no
#   formula serves both. Measure mean and standard deviation of $\log s$ over a second mini-batch.
#   The deviation says how wide the band must be, the mean is the drift; then look at $s^T$ there.
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
score("gspo.1", "gspo.2", "gspo.3", "gspo.4")

# %% [markdown]
# Now try [the interview](#In-the-interview).

# %% [markdown]
# ## Second sitting: what if one clips first, and then averages?
#
# **GMPO**, geometric-mean policy optimization, keeps the geometric mean, but first cuts every
# token's $\log\rho_t$, at $+0.4$ if $A>0$ and at $-0.4$ if $A<0$. A token that was cut gets no
# gradient; the others share one push. Its authors report calmer ratios than GRPO's, and up to
# 4.1 % more average Pass@1 than GRPO's in mathematics, with a model of 7B. <!-- cited: 4.1 % -->

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.5", "In the toy (three policies) GRPO silences 74 of 64,000 "
        "tokens, GSPO 27,000. How many does GMPO silence?",
        ["about 27,000", "about 5,000", "about 500", "about 50"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def counted(low, high):
    """Tokens that a clip at these log ratios silences, mean of three."""
    return sum(int(torch.where(x[3][:, None] > 0, x[0] > high,
                               x[0] < low).sum()) for x in seconds) / 3

by_grpo = counted(*torch.tensor([0.8, 1.2]).log())
assert round(by_grpo) == 74 and round(sum(per_policy) / 3) == 27
powers = 1000 * torch.tensor(0.9).log10()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.5", "about 50",
       f"It is {counted(-0.4, 0.4):.0f}. GMPO weighs by the mean, but it "
       "clips tokens, and its edges are wider than GRPO's: it silences "
       "leaps and nothing else. **The price: no one looks at how far the "
       "answer went.** If every token of a bad answer of 1,000 falls to a "
       "ratio of 0.9, no token is at GRPO's or GMPO's edge, and the answer "
       f"is 10^{powers:.0f} times as likely. GSPO silences it.",
       instead={
           "about 500":
           "More than GRPO? Its edges are 0.67 and 1.49, wider than 0.8 "
           "and 1.2, and they too are held against single tokens.",
           "about 5,000":
           "There are few tokens so far out: in the toy less than half a "
           "per cent are flipped at all.",
           "about 27,000":
           "That would need a clip on the mean. GMPO clips before it "
           "takes the mean.",
       })

# %%
score("gspo.5")

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
# <!-- cited: 1.49, 0.008, 0.00045, 1.0004, 0.00005, 0.0006, 0.13 %, 0.37, 0.21, 0.28 -->
#
# <details><summary><b>What does GSPO change against GRPO?</b></summary>
#
# It has one ratio per answer instead of one per token. The ratio is the geometric mean of the token
# ratios, clipped once, at 3e-4 below and 4e-4 above 1. Advantage and mean per answer stay. In an
# unclipped answer every token has the push s·A, over T. Inside the band s is 1 to three digits:
# GSPO hardly weighs, it decides who is silent.
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
# Because s is a mean over the answer's tokens, it moves far less than one token. With 0.2 the push
# on an answer of 1,000 tokens would stop at 1.2^1000, that is 10^79, times as likely; with 4e-4 it
# stops at 1.49. The paper derives no number; this reading is ours.
# </details>
# <details><summary><b>Does GSPO fix GRPO's trouble with mixtures of experts? And for a dense model?</b></summary>
#
# In our toy router flips make single token ratios leap; the authors' GRPO needed routing replay to
# converge properly, their GSPO did not. But s only averages the leaps: they raise σ, so noise σ/√T
# and drift −KL, about −σ²/2, grow. Below −3e-4 long bad answers fall silent. Replay removes the
# cause. A dense model has no flips, and the paper has no run of one. Nearest is our toy with its
# experts held: σ a fifth, drift a tenth of the edge. There the case from leaps is gone; one
# decision per answer stays, and its cost, one band for all lengths.
# </details>
# <details><summary><b>My batch has answers of 300 and of 30,000 tokens. Whom does one ε silence?</b></summary>
#
# The short ones by noise, the long ones by drift. Noise moves log s by σ/√T: without flips, σ =
# 0.008 in our toy, by 0.00045 at 300 tokens, more than either edge, and by 0.00005 at 30,000. Drift
# is −KL of a token, however long the answer: with the toy's flips 0.0006, twice the lower edge, so
# nearly all long bad answers are silent.
# </details>
# <details><summary><b>If s corrects almost nothing, how wrong is GSPO's gradient off-policy?</b></summary>
#
# After one step in our toy the weight does not matter: with s, with ρ or with none the gradient of
# 64 stale answers points to the fresh one alike, cosine 0.37, and 64 fresh answers do no better.
# GSPO's clip matters: 0.21, against 0.28 if as many answers are dropped by lot. It takes out nearly
# the whole part that would continue the step just made. So it is a brake, and no correction
# (answers of 200 tokens, three policies; statements page).
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
