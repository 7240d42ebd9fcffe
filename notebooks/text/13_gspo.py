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
# Many large models are mixtures of experts. In every layer a *router* sends each token to the best
# of several small networks, the *experts*. After a gradient step it may choose another expert. If
# that happens in at least one layer, the token is *flipped*.
#
# **The toy** is a language model with random weights, 16 words and four layers; in each, a router
# picks one of eight experts. It writes 128 answers of 1,000 tokens to one prompt. The reward is the
# share of four chosen words, and $A$ is its z-score. The first 64 answers make one Adam step
# of 2e-4. The second 64 then meet the new weights. Here is one good answer of theirs:

# %%
gap, held, flips, A, y = mini_batch("second", seed=0)   # log rho, ...

# %% jupyter={"source_hidden": true}
# folded: the picture
pictures.leaps(
    {"as routed": gap[23].exp(), "old experts held": held[23].exp()},
    "One good answer (A > 0), one line per token. Grey: the band 1 ± 0.2.")

# %% [markdown]
# On the left four tokens have leapt. On the right the weights are the same new ones, but every
# token goes through its old experts: no leap is left. What does GRPO's clip silence in all 64?

# %%
def silenced(gap, A, epsilon=0.2):
    rho, good = gap.exp(), (A > 0)[:, None]          # (64, 1000), (64, 1)
    return torch.where(good, rho > 1 + epsilon, rho < 1 - epsilon)


# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the count
cut = silenced(gap, A)
print(f"of {gap.numel():,} tokens {int(flips.sum())} are flipped, "
      f"{flips.double().mean():.2%}; the clip silences {int(cut.sum())},\n"
      f"{int((cut & flips).sum())} of them flipped; with the old experts "
      f"held it silences {int(silenced(held, A).sum())}")

# %% [markdown]
# Here the clip acts on flipped tokens only. (The toy is small: four layers and one expert per layer
# and token. In a large mixture of experts a token takes several, in dozens of layers, and about a
# tenth of the experts change after one update, the authors report. There flips are not rare, and
# one of several experts costs less than our only one; how much, we have not measured.)
#
# GRPO did not converge properly on such a model, they report, until flips were undone. They blame
# the ratio of the single token, for the reward belongs to the whole answer. What does a token's
# ratio tell about its answer?

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

def shares(runs, which=0):               # 0: as routed, 1: experts held
    return (sum(right_way(x[which], x[3][:, None]) for x in runs) / 3,
            sum(right_way(x[which].mean(1), x[3]) for x in runs) / 3)

by_token, by_answer = shares(firsts)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.1", "50 to 60 %",
       f"It is {by_token:.0%} (three seeds). On the left: the step raised "
       "the four rewarded words, in good *and* in bad answers. They do "
       "earn the reward. But every word stands in good and in bad "
       "answers, so its ratio tells little about the answer. The mean log "
       "ratio of an answer adds up many weak signs, and tells more: "
       f"{by_answer:.0%} of the means moved the way $A$ points.",
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
# **$A$ judges a whole answer. GSPO, group sequence policy optimization, also gives the whole answer
# one ratio and one clip.** That is a choice; $A$ does not force it.

# %% jupyter={"source_hidden": true}
# what changes, as a picture
pipeline.pipeline(
    "ratio", "loss", words={"ratio": "ratio\nper answer"}, caption=(
        "GRPO has a ratio per token. In GSPO the lit boxes see one number "
        "per answer. The grey boxes are GRPO's."))

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
# **Why the root?** It makes $s$ the geometric mean of the token ratios,
# $\log s=\frac1T\sum_t\log\rho_t$. If every token moves by $\delta$ in the log, the log of the
# product moves by $T\delta$, and $\log s$ by $\delta$ at any length. The price: $s$ is no longer an
# importance weight. Read $\log s$ as the mean shift of the tokens.

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
# divided by $T$, here by the root and in GRPO by its mean, so the length bias (10) stays. Inside
# the band $s$ is 1 to three digits: GSPO hardly weighs an answer there. It decides who is silent.

# %% [markdown]
# ## Why 3e-4 and not 0.2?
#
# Two readings, both ours; the paper derives no number. The *stop*: at the edge, where the push
# ends, the answer is $s^T$ times as likely as before. The *noise*: if the log ratios of the tokens
# are independent with standard deviation $\sigma$, their mean has $\sigma/\sqrt T$. Take the calm
# case, with the old experts held.

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: where the push stops, and how far noise moves log s
calm = held.std().item()
print(f"sigma of log rho, old experts held: {calm:.3f}")
for n in (300, 1000):
    print(f"{n:8,d} tokens: the push stops at {(1 - 3e-4)**n:.2f} and "
          f"{(1 + 4e-4)**n:.2f} times as likely; noise {calm / n**0.5:.5f}")
print(f"a band of 0.2, 1,000 tokens: at {1.2**1000:.1e} times as likely")

# %% [markdown]
# With 0.2 the push on an answer of 1,000 tokens would end at $10^{79}$ times as likely: never. With
# GSPO's band it ends at 1.49. The noise is wider than either edge at 300 tokens, narrower at 1,000.
# **By both readings, one band is stricter with short answers.**

# %% [markdown]
# ## Whom does GSPO's clip silence?
#
# How many of the toy's second 64 answers are silent?

# %%
def silent_answers(gap, A, low=3e-4, high=4e-4):
    s = gap.mean(1).exp()
    return torch.where(A > 0, s > 1 + high, s < 1 - low)   # (64,)

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the count, three seeds
per_policy = [int(silent_answers(x[0], x[3]).sum()) for x in
              (mini_batch("second", k) for k in range(3))]
print(f"three seeds: GSPO silences {per_policy} of 64 answers, "
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

cut, by_chance, calm_cut, calm_chance = (
    sum(f(x).item() for x in seconds) / 3 for f in (
        lambda x: silent_answers(x[0], x[3]).sum(),
        lambda x: shuffled(silent_answers, x[0], x[3]),
        lambda x: silent_answers(x[1], x[3]).sum(),
        lambda x: shuffled(silent_answers, x[1], x[3])))
leap, edge = gap[23].max(), torch.tensor(4e-4).log1p()
rest = (gap[23].sum() - leap) / 1000
assert abs(rest) < 3e-4 and f"{gap.std():.3f}" == "0.039"

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.3", "about 5",
       f"It is {calm_cut:.1f} (three seeds): most of what GSPO's clip "
       "silences here was moved by flips. A mean over 1,000 tokens does "
       f"not hide a leap. The one to {leap.exp():.2f} in the first picture "
       f"moves log s by {leap / 1000 / edge:.1f} times the upper edge; "
       f"without it log s would be −{-rest:.5f}.\n\nNow shuffle the 64 "
       f"advantages, as routed: {by_chance:.0f} are silent, against "
       f"{cut:.0f} (old experts held: {calm_chance:.1f} against "
       f"{calm_cut:.1f}). **So the count of the silent is no measure of "
       "learning. Compare it with the shuffle.** And the direction? In "
       f"these second 64 {shares(seconds)[1]:.0%} of the means moved as "
       "$A$ asks, a coin within the ±7 points of 192 answers; with the "
       f"old experts held it is {shares(seconds, 1)[1]:.0%}.",
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
        "their log s go?",
        ["to 0", "to a number above 0", "nowhere, its spread stays",
         "to a number below 0"])

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

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.4", "to a number below 0",
       "For answers that the step has not seen, the mean log ratio of a "
       r"token is $-\mathrm{KL}(\pi_\text{old}\Vert\pi_\theta)$, by the "
       "definition of the KL (05). The spread shrinks around that, and not "
       "around 0. Ups and downs cancel in ρ, whose mean under the old "
       "policy is 1. The log bends downwards, so in log ρ the downs weigh "
       "more. Hence the silent have a sign: of the three seeds' "
       f"{sum(per_policy)} together {sum(per_policy) - good} are "
       "*bad* answers. The clip mostly ends pushes *down*, on answers "
       "that have drifted down. (What that does to a long training, the "
       "toy does not say.)",
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
# So beside what is learnt, three things move $\log s$: the noise of the tokens, $\sigma/\sqrt T$; a
# single leap, leap$/T$; and the drift, $-\mathrm{KL}$ per token. **Length tames noise and leaps. It
# does nothing about the drift.**
#
# Set the share of flipped tokens yourself; above it was 0.35 %. Here the weights moved at random:
# nothing was learnt. (An answer's tokens are drawn from 64 answers of the toy.)

# %% jupyter={"source_hidden": true}
# the explorer
task("gspo.t1", answer_ratio.answer_ratio_explorer(),
     ("A flipped token costs a KL of 0.18 on average, any other 0.00003. "
      "At which share of flips does −KL meet the lower edge of GSPO's "
      "band? Work it out, and set this share. Predict which answers are "
      "mostly inside now: short, middling or long. Set such a length.",
      answer_ratio.best_in_the_middle),
     ("No flips, T = 32,768. Find a band that keeps at least 55 of the 64 "
      "inside and lets none of them become 1,000 times as likely. Predict "
      "first: of 64 answers of 128 tokens, how many will it keep inside?",
      answer_ratio.long_answers_bounded))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# <!-- cited: 0.15 %, 0.18, 0.00003, 1.0025, 2e-3, 2.5e-3 -->
# 1. At (0.0003 − 0.00003)/0.18 = 0.15 %, one flip in 670 tokens. The middling ones: of 64 answers
#    of 8,192 tokens 37 are inside, but 14 at 32 tokens and 27 at 32,768. Short answers leave by
#    noise, on both sides; long ones by drift, below.
# 2. 1e-4. It keeps 57 of the long answers, but 5 of those of 128 tokens. The band 2e-3, 2.5e-3
#    keeps all of these, but lets 32,768 tokens become $1.0025^{32768}$, about $10^{35}$ times as
#    likely.
# </details>

# %% [markdown]
# ## So, should a whole answer share one ratio?
#
# Perhaps: the toy shows what changes, and not that it is better. What speaks for one ratio, and
# what against it?
#
# | | for it | against it |
# |---|---|---|
# | the push | one wild token does not weigh more than the others of its answer | $s$ is no importance weight, it corrects almost nothing |
# | the silence | an answer falls silent by how far it has gone itself | it falls silent whole, and one leap can do that |
# | the band | $s^T$ says how far the whole answer has gone | no one band suits all lengths, and drift gets in |
#
# **In the paper's runs** GRPO, its clip tuned to 0.2 and 0.27, did not converge properly without
# *routing replay*, which sends the new policy through the old one's experts. GSPO trained without
# replay and learnt faster, with 15 % of the tokens clipped against 0.13 % under GRPO. Ratio, band
# and routing changed together, so the runs do not say which of them did it. Two more runs would:
# GSPO with replay beside GRPO with replay, and a token's ratio with a band that silences 15 %.
# <!-- cited: 0.2, 0.3, 1.5, 0.875, 0.27, 0.13 %, 15 %, 0.008, 0.039 -->
#
# **And a dense model?** It has no router. The nearest that we have is the toy with its experts
# held: $\log\rho$ is five times calmer (0.008 for 0.039), no token leaps, and at this step size the
# drift is a tenth of the edge. What is left there is the question of the
# band.
#
# <details><summary>One level deeper: the authors' argument against token ratios</summary>
#
# An importance weight works on average over many draws, and a token's
# ratio is taken on the *one* token that was drawn there. So it only adds noise. Take a place where
# a token has 0.2 under the old policy and 0.3 under the new one. Drawn, its ratio is 1.5, and the
# others' is 0.7/0.8 = 0.875: one draw is noisy, yes. But over a batch
# $0.2\cdot1.5\,f_1+0.8\cdot0.875\,f_2=0.3f_1+0.7f_2$, the new policy's mean of any $f$. The
# ratio does correct its own token. It does not correct the tokens before it, and $s$ corrects
# neither (Z06 on the [statements page](statements/13_gspo.ipynb)).
# </details>
# <details><summary>One level deeper: what to log, TRL, verl</summary>
#
# * **Which ε for 30,000 tokens?** The stop wants ε to shrink as 1/T, the noise only as 1/√T, so no
#   formula serves both. Measure: take the std of log s over a second mini-batch, set the edges at
#   one or two of it, and look at $s^T$ there.
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
# | band | 3e-4 and 4e-4: at 1,000 tokens 0.74 to 1.49 times as likely. With 0.2: $10^{79}$ |
# | acts | from the second mini-batch of a rollout on; at the first every $s$ is 1 |
# | what moves $\log s$ | noise, $\sigma/\sqrt T$; one leap, leap$/T$; drift, $-\mathrm{KL}$ per token |
# | flips | bring leaps and KL; routing replay removes them, $s$ only averages the leaps |

# %%
print("GRPO -> GSPO")
print(difference(ZOO["grpo"].replace(terms=()), ZOO["gspo"]))
score("gspo.1", "gspo.2", "gspo.3", "gspo.4")

# %% [markdown]
# Now try [the interview](#In-the-interview).

# %% [markdown]
# ## Second sitting: what if one clips first, and then averages?
#
# Under GSPO one token can silence its whole answer. **GMPO** keeps the geometric mean, but first
# cuts every token's $\log\rho_t$, at $+0.4$ if $A>0$ and at $-0.4$ if $A<0$. A token that was cut
# gets no gradient; the others share one push. Of the sixteen tokens above, GMPO silences only the
# one at 6.00. What does it give up for that?

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.5", "Every token of a bad answer of 1,000 tokens has "
        "fallen to a ratio of 0.9. Which clips silence this answer?",
        ["GRPO, GSPO and GMPO", "GSPO alone", "GSPO and GMPO",
         "GRPO and GSPO"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
fallen = torch.full((1000,), 0.9).log()
powers = fallen.sum() / torch.tensor(10.0).log()
assert (fallen > torch.tensor(0.8).log()).all() and (fallen > -0.4).all()
assert fallen.mean().exp() < 1 - 3e-4
cut4 = torch.where(A4[:, None] > 0, log_rho.clamp(max=0.4),
                   log_rho.clamp(min=-0.4))
gmpo = push((T * (cut4.sum(1) / T).exp() * A4).sum())
assert ((gmpo == 0) & batch.mask).nonzero().tolist() == [[1, 1]]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.5", "GSPO alone",
       "No token has reached GRPO's lower edge, 0.8, or GMPO's, exp(−0.4) "
       "= 0.67. Yet "
       f"the answer has become 0.9^1000, that is 10^{powers:.0f}, times as "
       "likely. GSPO's band is on the mean, and s is 0.9. **A clip on "
       "tokens, GRPO's or GMPO's, does not see how far the answer went.**",
       instead={
           "GRPO, GSPO and GMPO":
           "GRPO and GMPO clip tokens, and no token is beyond its edge.",
           "GSPO and GMPO":
           "GMPO takes the mean too, but it clips before the mean.",
           "GRPO and GSPO":
           "GRPO's lower edge is 0.8. No token has fallen that far.",
       })

# %% [markdown]
# A single token is the opposite case. Compare the three rules on an answer in which one token has
# moved.

# %% jupyter={"source_hidden": true}
# the explorer
task("gspo.t2", one_outlier.one_outlier_explorer(),
     ("Find the longest answer on the slider that GSPO silences whole "
      "while GRPO and GMPO silence nothing. Guess first: good or bad?",
      one_outlier.long_and_gspo_only))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# <!-- cited: 0.20, 0.8, -0.22, 0.15 -->
# A *bad* answer of 512 tokens with log ρ = −0.20. GRPO's lower edge is at log 0.8 = −0.22, and
# 0.20/512 is more than GSPO's lower 3e-4. Good answers get to 256 only, with 0.15. For a
# single token GSPO is stricter up to 743 tokens in a bad answer, up to 455 in a good one.
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
# <!-- cited: 1.49, 0.008, 0.00025, 1.0004, 0.00045, 0.00005, 0.13 %, 0.15 % -->
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
# Because s is a mean over the answer's tokens, it moves far less than one token. At a band of 0.2
# an answer of 1,000 tokens could become 1.2^1000, that is 10^79, times as likely; at 4e-4 it is
# 1.49. And noise: if token logs spread by 0.008, log s spreads by 0.00025 at 1,000 tokens. Both
# readings are ours, not the paper's.
# </details>
# <details><summary><b>Why does GRPO struggle with mixtures of experts, and does GSPO fix it?</b></summary>
#
# In our toy router flips make single token ratios leap; the authors' GRPO needed routing replay to
# converge properly, their GSPO did not. But s only averages a leap: one of 1 in the log silences a
# good answer of up to 2,500 tokens. In longer answers leaps average to −KL per token, not to zero;
# below −3e-4 long bad answers fall silent. Replay removes the cause.
# </details>
# <details><summary><b>My batch has answers of 300 and of 30,000 tokens. Whom does one ε silence?</b></summary>
#
# The short ones by noise, the long ones by drift. Noise moves log s by σ/√T: without flips, σ =
# 0.008 in our toy, by 0.00045 at 300 tokens, more than either edge, and by 0.00005 at 30,000. Drift
# is −KL of a token, however long the answer: there 0.15 % of flipped tokens bring it to the lower
# edge, and about half of the long bad answers are silent.
# </details>
# <details><summary><b>Can I skip the recompute and use the log-probs of vLLM?</b></summary>
#
# Only after measuring the gap. The paper expects s, a mean, to tolerate it, without an
# experiment. Noise between two engines shrinks as 1/√T. Their KL does not: it shifts log s down at
# every length, and 3e-4 per token is the whole lower edge. In our toy, written with bfloat16
# weights, it is three times that; sent through the sampler's experts, next to nothing (page 19).
# </details>
# <details><summary><b>GSPO clips a hundred times more than GRPO. Why does it not learn less?</b></summary>
#
# The paper's runs do not separate the causes. It has 15 % of the tokens clipped against 0.13 %, and
# reads its faster learning as less noise per token used. But its GRPO needed replay, and ratio and
# band changed together. The count says little by itself: in our toy 27 of 64 answers are silent,
# and 26 with A shuffled.
# </details>
#
# The sentences that one hears about GSPO, true or not: [statements 13](statements/13_gspo.ipynb).
# The exercises, solved: [solutions 13](solutions/13_gspo.ipynb).
#
# **Next: [14](14_the_zoo.ipynb).** All methods on the same axes, and one that you compose yourself.
