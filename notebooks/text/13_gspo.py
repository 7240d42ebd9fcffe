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
# 36 minutes, then 8 in a second sitting · exercises 34 more · after 04 (importance sampling), 05
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
from rlnb.classroom.explorers import answer_ratio, one_outlier
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import gspo as pictures, pipeline, token_grid
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
# Many large models are mixtures of experts. In every layer a *router* scores several small
# networks, the *experts*, and sends the token only to the best. A gradient step can change which
# ones are best. Call that a *flip*.
#
# **The toy** is a language model with random weights, 16 words and four layers; in each, a router
# picks one of eight experts. It writes 128 answers of 1,000 tokens to one prompt. The reward is the
# share of four chosen words, and $A$ is its z-score. The first 64 answers take one Adam step
# of 2e-4. The second 64 then meet new weights; here is one good answer of theirs:

# %%
gap, held, flips, A, y = mini_batch("second", seed=0)  # (64, 1000), ...

# %% jupyter={"source_hidden": true}
# folded: the picture
pictures.leaps(
    {"as routed": gap[23].exp(), "old experts held": held[23].exp()},
    "One good answer (A > 0), one line per token. Grey: the band 1 ± 0.2.")

# %% [markdown]
# On the left most tokens have hardly moved, and four have leapt. The right panel has the same new
# weights, but sends every token through its old experts: no leap is left. What does GRPO's clip
# silence in all 64?

# %%
def silenced(gap, A, epsilon=0.2):
    rho, good = gap.exp(), (A > 0)[:, None]          # (64, 1000), (64, 1)
    return torch.where(good, rho > 1 + epsilon, rho < 1 - epsilon)


# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the count
cut = silenced(gap, A)
print(f"of {gap.numel():,} tokens the clip silences {int(cut.sum())} as "
      f"routed, {int((cut & flips).sum())} of them flipped;\n"
      f"with the old experts held: {int(silenced(held, A).sum())}")

# %% [markdown]
# The clip acts only on flipped tokens. Here they are few. On a large mixture of experts, GSPO's
# authors report, GRPO did not converge properly until flips were undone. They blame the ratio of
# the single token, for the reward belongs to the whole answer. What does a token's ratio tell about
# its answer?

# %% [markdown]
# ## Does a token move as its answer should?
#
# A good answer should become likelier, a bad one less likely. Take the easiest case: the first 64
# answers, which made the step.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.1", "What share of their tokens moved the way A asks, up in "
        "good answers and down in bad ones?",
        ["90 to 100 %", "70 to 80 %", "50 to 60 %", "30 to 40 %"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def right_way(log_ratio, A):
    """Share that rose where A > 0 and fell where A < 0."""
    return ((log_ratio > 0) == (A > 0)).double().mean().item()

firsts = [mini_batch("first", k) for k in range(3)]
seconds = [mini_batch("second", k) for k in range(3)]

def shares(runs):
    return (sum(right_way(x[0], x[3][:, None]) for x in runs) / 3,
            sum(right_way(x[0].mean(1), x[3]) for x in runs) / 3)

by_token, by_answer = shares(firsts)
new_token, new_answer = shares(seconds)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.1", "50 to 60 %",
       f"It is {by_token:.0%} (three policies). Look at the bars on the "
       "left: the step raised the four rewarded words, in good *and* in "
       "bad answers. That is no mistake, for these words earn the reward. "
       "But every word stands in good and in bad answers, so its ratio "
       "tells little about the answer.\n\nNow average the log ratios of "
       f"each answer, as on the right. Of these means {by_answer:.0%} "
       "moved the way $A$ points: many weak signals add up. In the second "
       f"64, which the step has not seen, it is {new_token:.0%} of the "
       f"tokens and {new_answer:.0%} of the means, about what a coin would "
       "do. Why the means fail there comes below.",
       pictures.where_it_shows(*(torch.cat(z) for z in zip(*(
           (x[0], x[3], x[4] < 4) for x in firsts)))),
       instead={
           "90 to 100 %":
           "The step was made from these answers, but it moves words, and "
           "every word stands in good and in bad answers.",
           "70 to 80 %":
           "That would need good answers to have many more of the "
           "rewarded words than bad ones. They have a few more.",
           "30 to 40 %":
           "In bad answers the rewarded words rise, against A. But the "
           "other words mostly fall there, and they are more.",
       })

# %% [markdown]
# **$A$ is a verdict on a whole answer. GSPO, group sequence policy optimization, also gives the
# whole answer one ratio and one clip.** That is a choice; $A$ does not force it.

# %% jupyter={"source_hidden": true}
# what changes, as a picture
pipeline.pipeline(
    "ratio", "loss", words={"ratio": "ratio\nper answer"}, caption=(
        "GRPO has a ratio per token. In GSPO the lit boxes see one number "
        "per answer. The grey boxes are GRPO's."))

# %% [markdown]
# ## Which one ratio?
#
# Let the answer $y$ have $T$ tokens with ratios $\rho_t$. We start where PPO started (06), with the
# product of all of them, and this time keep it:
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_\text{old}\Big[\textstyle\prod_t\rho_t\;A\,\sum_t\nabla\log\pi_\theta(y_t)\Big]&&\text{importance ratio of the answer (04)}\\
# &=\mathbb E_\text{old}\Big[A\,\nabla\textstyle\prod_t\rho_t\Big]&&\nabla f=f\,\nabla\log f\text{ with }f=\textstyle\prod_t\rho_t\\
# &=\nabla\,\mathbb E_\text{old}\Big[A\textstyle\prod_t\rho_t\Big]&&\pi_\text{old}\text{ and }A\text{ do not depend on }\theta\\
# &\to\nabla\,\mathbb E_\text{old}\big[A\,s\big],\quad s=\Big(\textstyle\prod_t\rho_t\Big)^{1/T}&&\textbf{a choice: the }T\textbf{-th root}\\
# &\to\nabla\,\mathbb E_\text{old}\big[\min\big(sA,\ \mathrm{clip}(s)A\big)\big]&&\text{PPO's clip and min (06), once per answer}
# \end{aligned}$$
#
# **Why the root?** It makes $s$ the geometric mean of the token ratios,
# $\log s=\frac1T\sum_t\log\rho_t$. If every token moves by $\delta$ in the log, the log of the
# product moves by $T\delta$, and $\log s$ by $\delta$ at any length. The price: $s$ is no longer an
# importance weight. Read $s$ as a distance: how far has this answer moved per token?
#
# <details><summary>One level deeper: the authors' own argument</summary>
#
# The paper says: an importance weight corrects only on average over many samples, and GRPO has one
# token from each next-token distribution. So the token ratio brings noise and corrects nothing. Two
# exact toys say that it depends ([statements](statements/13_gspo.ipynb), Z06). In
# one, tokens are independent and the reward counts ones: there each token's own ratio is right on
# average, and $s$ is further off than no weight. In the other, each answer has a random reward of
# its own: there neither corrects much. An answer is a single sample as well.
# </details>

# %% [markdown]
# ## What does one clip per answer do?
#
# The running group has two right answers, good with $A=+1$, and two wrong ones, bad with $A=-1$.

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
# **Why do all tokens of an answer share one push?** Take the gradient of an answer that is not
# clipped:
#
# $$\begin{aligned}
# \nabla s&=s\,\nabla\log s&&\nabla f=f\,\nabla\log f\\
# &=s\cdot\frac1T\sum_t\nabla\log\pi_\theta(y_t)&&\log s=\tfrac1T\textstyle\sum_t(\log\pi_\theta-\log\pi_\text{old})
# \end{aligned}$$
# **Every token of an answer gets the push $sA$, times $1/T$.** In GRPO token $t$ gets $\rho_tA$,
# times $1/T$. Inside the band $s$ is 1 to three digits, so GSPO hardly weighs an answer there. It
# decides who is silent.

# %% [markdown]
# ## Why 3e-4 and not 0.2?
#
# Two things are of the band's size. The *limit*: an answer whose $s$ is at an edge has become $s^T$
# times as likely. The *noise*: if the log ratios of tokens are independent and spread by $\sigma$,
# their mean spreads by $\sigma/\sqrt T$. In the toy, old experts held, $\sigma$ is 0.008.

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: what the edges allow an answer, and how far noise moves log s
calm, wild = held.std().item(), gap.std().item()
print(f"spread of log rho: {calm:.3f} with the old experts held, "
      f"{wild:.3f} as routed")
print("GSPO's band, s from 1 - 3e-4 to 1 + 4e-4, and the calm noise:")
for n in (300, 1000, 30_000):
    print(f"{n:8,d} tokens: {(1 - 3e-4)**n:7.2g} to {(1 + 4e-4)**n:8.3g} "
          f"times as likely; log s spreads by {calm / n**0.5:.5f}")
print(f"a band of 0.2, 1,000 tokens: up to {1.2**1000:.1e} times")

# %% [markdown]
# A band of 0.2 on $s$ would let 1,000 tokens become $10^{79}$ times as likely: no limit. GSPO's
# band acts at 1,000 tokens like a wide PPO band on the whole answer; at 30,000 it allows a factor
# of 160,000. The noise is wider than either edge at 300 tokens, and narrower at 1,000. **By limit
# and by noise, one band is stricter with short answers.** A third effect, below, hits long ones.
# (Both readings are ours; the paper derives no number.)

# %% [markdown]
# ## Whom does GSPO's clip silence?
#
# How many of the toy's second 64 answers are silent?

# %%
def silent_answers(gap, A, low=3e-4, high=4e-4):
    s = gap.mean(1).exp()
    return torch.where(A > 0, s > 1 + high, s < 1 - low)   # (64,)

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the count, three policies
per_policy = [int(silent_answers(x[0], x[3]).sum()) for x in
              (mini_batch("second", k) for k in range(3))]
print(f"three policies: GSPO silences {per_policy} of 64 answers, "
      f"{sum(per_policy) / 3:.0f} in the mean")

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.3", "Keep the new weights, but send every token through its "
        "old experts. How many of the 64 does GSPO's clip silence now?",
        ["about 5", "about 13", "about 20", "about 27"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def shuffled(silent, x, A):
    """The mean over all ways to shuffle A."""
    good = (A > 0).double().mean()
    up, down = (silent(x, sign + 0 * A).sum() for sign in (1, -1))
    return good * up + (1 - good) * down

def both(silent, runs, k=0):
    """Silent with the true A and with A shuffled, of three policies."""
    return tuple(sum(f(x[k], x[3]) for x in runs).item() / 3 for f in (
        lambda *z: silent(*z).sum(), lambda *z: shuffled(silent, *z)))

rows = {"GSPO, second 64": both(silent_answers, seconds),
        "the same, old experts held": both(silent_answers, seconds, 1),
        "GRPO, their 64,000 tokens": both(silenced, seconds),
        "GSPO, the 64 of the step": both(silent_answers, firsts)}
table = "| means of three policies | silent | with A shuffled |\n"
table += "|---|---|---|\n" + "".join(
    f"| {name} | {a:.1f} | {b:.1f} |\n" for name, (a, b) in rows.items())
leap, edge = gap[23].max(), torch.tensor(4e-4).log1p()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.3", "about 5",
       "So most of what GSPO's clip silences here was moved by flips, as "
       "under GRPO. A mean over 1,000 tokens does not hide a leap: the one "
       f"to {leap.exp():.2f} in the first picture moves log s by "
       f"{leap:.2f}/1000, {leap / 1000 / edge:.1f} times the upper edge. "
       "One token has silenced a thousand.\n\n" + table +
       "\nIn the right column the 64 advantages are shuffled among the "
       "answers, at the same weights. In the second 64 that changes the "
       "count little, under either method: who is silent has little to do "
       "with A. Among the answers that made the step A counts more. (Two "
       "other step sizes: [statements](statements/13_gspo.ipynb).)\n\n"
       "**The count of the silent is no measure of learning: only its "
       "surplus over the shuffle depends on A.**",
       instead={
           "about 13":
           "Then noise and learning would silence as many as flips do. "
           "But without flips the noise is narrower than the band.",
           "about 20":
           "That is the hope, that a mean over 1,000 tokens hides most "
           "flips. One leap is enough to leave so narrow a band.",
           "about 27":
           "Then flips would play no part. The band is narrow enough for "
           "one leap in 1,000 tokens to lead out of it.",
       })

# %% [markdown]
# ## Where does s go as answers get longer?
#
# Longer answers have more leaps, up and down, and each is divided by a larger $T$.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.4", "As the answers of the second 64 get longer, where does "
        "their s go?",
        ["to 1", "to a number above 1", "nowhere, its spread stays",
         "to a number below 1"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
with torch.no_grad():
    old, new, words, _ = step(0)
    p = old.distributions(words[64:])            # (64, 1000, 16), log pi
    routes = old.logprobs(words[64:])[1]
    kls = [(p.exp() * (p - new.distributions(words[64:], x))).sum(-1)
           .mean().item() for x in (None, routes)]

def inside(x, T):
    s = x[:, :T].mean(1).exp()
    return int(((s > 1 - 3e-4) & (s < 1 + 4e-4)).sum())

silent = [(silent_answers(x[0], x[3]), x[3] > 0) for x in seconds]
good = sum(int((a & b).sum()) for a, b in silent)
held_way = sum(right_way(x[1].mean(1), x[3]) for x in seconds) / 3

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.4", "to a number below 1",
       "By the definition of the KL (05), the mean of a token's log ratio "
       r"under the old policy is $-\mathrm{KL}(\pi_\text{old}\Vert"
       rf"\pi_\theta)$. Here the KL per token is {kls[0]:.4f}; the mean of "
       f"log s is −{-gap.mean():.4f}.\n\nThe spread closes in on −KL, "
       f"not on 0, and here −KL lies below GSPO's band: "
       f"{inside(gap, 100)} answers are inside at 100 tokens, "
       f"{inside(gap, 1000)} at 1,000. With the old experts held the KL is "
       f"{kls[1]:.5f}, a tenth of the lower edge, and length helps: "
       f"{inside(held, 100)}, then {inside(held, 1000)}.\n\nBelow the band "
       f"only *bad* answers fall silent: of the {sum(per_policy)} silent "
       f"ones of three policies {good} are good. Flips also hid what the "
       f"means know: with the old experts held {held_way:.0%} of them move "
       f"the way A points, not {new_answer:.0%}.",
       pictures.settling((100, 300, 1000), {
           "as routed": gap, "old experts held": held}, kls),
       instead={
           "to 1": "Up and down cancel in ρ, whose mean under the old "
           "policy is 1. Then the mean of log ρ is below 0.",
           "to a number above 1": "The step raised some words at the cost "
           "of others: under the old policy the mean of ρ is 1.",
           "nowhere, its spread stays":
           "The spread shrinks, about as 1/√T. Look at the middle."})

# %% [markdown]
# Set the share of flips yourself. Here the weights moved at random, so every silent answer is an
# accident. (Long answers are made of tokens drawn anew from the toy's.)

# %% jupyter={"source_hidden": true}
# the explorer
task("gspo.t1", answer_ratio.answer_ratio_explorer(),
     ("A flip costs a KL of 0.18 on average. At which share of flips does "
      "−KL meet the lower edge of GSPO's band? Work it out, then search "
      "near there for a T with at least ten more answers inside than at 32 "
      "tokens *and* ten more than at 32,768.",
      answer_ratio.best_in_the_middle),
     ("At 1 % of flips, find the narrowest band that keeps 58 or more of "
      "the 64 inside at *every* length. Predict first how many times as "
      "likely this band lets 32,768 tokens become: 2, 1,000, or more?",
      answer_ratio.narrowest_band))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# <!-- cited: 0.17 %, 0.18, 0.2 %, 0.01, 1.01 -->
# 1. −KL meets the edge at 3e-4/0.18, 0.17 %: one flip in 600 tokens. At 0.2 %, 33 answers are
#    inside at 2,048 tokens, but 14 at 32 and 17 at 32,768. Short answers leave by noise, on both
#    sides; long ones by −KL, below.
# 2. 0.01. It lets 32,768 tokens become $1.01^{32768}$, about $10^{141}$ times as likely. A band
#    that forgives flips in short answers limits nothing in long ones.
# </details>

# %% [markdown]
# ## So, should a whole answer share one ratio?
#
# **For it:** the reward judges whole answers, and no token gets a weight of its own that could run
# away. **Against it:** answers fall silent whole, and flips still reach $s$.
#
# **The paper's runs.** GRPO, its clip tuned to 0.2 and 0.27, <!-- cited: 0.2, 0.27, 0.13 % --> did
# not converge properly there without *routing replay*, which sends the new policy through the old
# one's experts. GSPO trained without replay and learnt faster, with 15 % of the tokens clipped
# against 0.13 % under GRPO. So on that model GSPO paid. Ratio, band and routing changed together;
# the runs do not say which of them did it.
#
# **The toy's limits.** It does not show that leaps hurt: as weights they leave its next gradient as
# good as no weights do ([statements](statements/13_gspo.ipynb)). And its flips are dear. In the
# paper one step changes about 10 % of the active experts, yet 15 % of the tokens are clipped; a
# flip there should cost far less.
#
# <details><summary>One level deeper: what to log, TRL, verl</summary>
#
# * **Log** the share of answers silenced, good and bad apart, and what a shuffled A gives: share
#   good × share above + share bad × share below. If nearly all of the silent are bad, $s$ has sunk:
#   too large a step, or flips. Hold the experts to tell which.
# * **TRL:** `importance_sampling_level="sequence"`, `loss_type="grpo"`, `beta=0`, `epsilon=3e-4`,
#   `epsilon_high=4e-4`, `steps_per_generation=4`, `gradient_accumulation_steps=1`. With four
#   accumulation steps a batch makes one optimizer step, every $s$ is 1, and GSPO does nothing.
# * **verl:** `loss_mode="gspo"`, and set both `clip_ratio`s, which otherwise stay at 0.2.
# * **Old log-probs** come from the trainer, before the first step (08). Those of the sampler would
#   put the gap between the two engines into $s$.
# </details>

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | GSPO | |
# |---|---|
# | sentence | the reward is per answer, so is the ratio: the geometric mean of the token ratios, clipped once per answer |
# | formula | $s=(\prod_t\rho_t)^{1/T}$ · $\nabla s=s\cdot\frac1T\sum_t\nabla\log\pi_\theta(y_t)$ |
# | silent | whole answers: good ones with $s$ above $1+\epsilon_\text{high}$, bad ones below $1-\epsilon$ |
# | numbers | band 3e-4 and 4e-4 · $1.2^{1000}\approx10^{79}$ · in the paper 15 % of the tokens clipped |
# | derived | the product; the equal push on all tokens. Choices: the root, clip and min, the band |
# | acts | from the second gradient step on one batch on; in the first every $s$ is 1 |
# | noise | moves $\log s$ by $\sigma/\sqrt T$: short answers leave the band |
# | one leap | moves it by leap$/T$: a leap of 1 alone silences a good answer of up to 2,500 tokens |
# | drift | $-\mathrm{KL}$ per token, at any length; below the band bad answers fall silent |
# | flips | feed all three; replay removes them, $s$ only averages their leaps |

# %%
print("GRPO -> GSPO")
print(difference(ZOO["grpo"].replace(terms=()), ZOO["gspo"]))
score("gspo.1", "gspo.2", "gspo.3", "gspo.4")

# %% [markdown]
# Now try [the interview](#In-the-interview). It needs nothing more.

# %% [markdown]
# ## Second sitting: what if one clips first, and then averages?
#
# Under GSPO one token can silence its whole answer. **GMPO** keeps the geometric mean, but first
# cuts every token's $\log\rho_t$, at $+0.4$ if $A>0$ and at $-0.4$ if $A<0$. A token that was cut
# gets no gradient. In ratios the edges are 1.49 and 0.67. <!-- cited: 1.49, 0.67 --> Go back to the
# sixteen tokens and their ratios:

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.5", "GRPO silences 4 tokens and GSPO 8. How many does GMPO "
        "silence?", ["0", "1", "4", "8"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
cut4 = torch.where(A4[:, None] > 0, log_rho.clamp(max=0.4),
                   log_rho.clamp(min=-0.4))
gmpo = push((T * (cut4.sum(1) / T).exp() * A4).sum())

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.5", "1",
       "It silences only the token at 6.00. The ratios 1.40 and 0.70 are "
       "inside GMPO's edges, and 3.50 has moved the wrong way. The other "
       "tokens of answer 1 live on and share one push, "
       f"{gmpo[1, 0]:.2f}.",
       token_grid.token_grid(batch, {"GSPO": grids["GSPO"], "GMPO": gmpo},
                             caption=(
           "GMPO has one push per answer as GSPO has, and silences single "
           "tokens as GRPO does.")),
       instead={
           "8": "GMPO has one mean per answer, but it clips tokens first.",
           "4": "It clips tokens as GRPO does, but its edges are wider.",
           "0": "The mean does not bring back a token that was cut.",
       })

# %% [markdown]
# What does GMPO give up? A band on the answer: all 1,000 tokens of one may rise by 0.4 in the log
# before any is cut. Compare the three rules on an answer in which a single token has moved.

# %% jupyter={"source_hidden": true}
# the explorer
task("gspo.t2", one_outlier.one_outlier_explorer(),
     ("Find the longest answer that GSPO silences whole while GRPO and "
      "GMPO silence nothing. Guess first: a good one or a bad one?",
      one_outlier.long_and_gspo_only))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# <!-- cited: 0.20, 0.8, -0.22, 0.15 -->
# A *bad* answer of 512 tokens with log ρ = −0.20. GRPO's lower edge is at log 0.8 = −0.22, and
# 0.20/512 is more than GSPO's lower 3e-4. Good answers get to 256 only, with 0.15. For a
# single token GSPO is stricter up to 744 tokens in a bad answer, up to 456 in a good one.
# </details>

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
# **3 Find the silent bug** · 8 minutes. GSPO-token gives token $t$ the ratio
# $\mathrm{sg}[s]\cdot\pi_t/\mathrm{sg}[\pi_t]$, where sg stops the gradient: $s$ of the answer on
# every token, with the token's own gradient. All its values are right, losses agree to the last
# digit, and models train:

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
# <!-- cited: 1.49, 0.008, 0.00025, 1.0004, 0.0005, 0.00005, 0.13 % -->
#
# <details><summary><b>What does GSPO change against GRPO?</b></summary>
#
# It has one ratio per answer instead of one per token. The ratio is the geometric mean of the token
# ratios, clipped once, with a band of 3e-4 and 4e-4. Advantage and mean per answer stay. An answer
# that is not clipped gives all its tokens the push s·A, times 1/T. Inside the band s is 1 to three
# digits: GSPO hardly weighs, it decides who is silent.
# </details>
# <details><summary><b>Derive the gradient.</b></summary>
#
# Differentiate s as the exp of the mean log ratio. So ∇s is s times the mean of the tokens' ∇log π.
# Before that: start from the importance ratio of the answer, the product of the ρ; ∇f = f∇log f
# takes the gradient outside; replacing the product by its T-th root is a choice, not an identity.
# </details>
# <details><summary><b>Why is ε 3e-4 and not 0.2?</b></summary>
#
# Because s is a mean over the answer's tokens, it moves far less than one token. At a band of 0.2
# an answer of 1,000 tokens could become 1.2 to the power of 1,000, that is 10^79, times as likely;
# the paper's upper edge, 4e-4, gives 1.49. And noise: if token logs spread by
# 0.008, log s spreads by 0.00025 at 1,000 tokens. Both readings are
# ours, not the paper's.
# </details>
# <details><summary><b>Why does GRPO struggle with mixtures of experts, and does GSPO fix it?</b></summary>
#
# Router flips make single token ratios leap; the authors' GRPO needed routing replay to converge
# properly, their GSPO did not. But s only averages a leap: one of 1 in the log silences a good
# answer of up to 2,500 tokens. In longer answers leaps average to −KL per token, not to zero; if
# that is below −3e-4, long bad answers fall silent. Replay removes the cause.
# </details>
# <details><summary><b>Is s the correct importance weight?</b></summary>
#
# No, the product is, with a variance that explodes. Its T-th root corrects almost nothing: 1.49 at
# 1,000 tokens becomes 1.0004. It is a distance that decides whether an
# answer may still push, once for all its tokens, as its reward was given.
# </details>
# <details><summary><b>My batch has answers of 300 and of 30,000 tokens. Whom does one ε silence?</b></summary>
#
# The short ones by noise, the long ones by drift. Noise moves log s by σ/√T: with σ = 0.008 by
# 0.0005 at 300 tokens, more than either edge, by 0.00005 at 30,000. Drift is −KL at any length: in
# our toy one flip in 600 tokens brings it to the lower edge, and half of the long bad answers are
# silent. A band like 1/√T evens out noise only.
# </details>
# <details><summary><b>GSPO clips a hundred times more than GRPO. Why does it not learn less?</b></summary>
#
# The paper's runs do not separate the causes. It has 15 % of the tokens clipped against 0.13 %, and
# reads its faster learning as less noise per token used. But its GRPO needed
# replay, and ratio and band changed together. The count says little by itself: in our toy 27 of 64
# answers are silent, and 26 with A shuffled. A fair rival has its own learning rate.
# </details>
#
# The sentences that one hears about GSPO, true or not: [statements 13](statements/13_gspo.ipynb).
# The exercises, solved: [solutions 13](solutions/13_gspo.ipynb).
#
# **Next: [14](14_the_zoo.ipynb).** All methods on the same axes, and one that you compose yourself.
