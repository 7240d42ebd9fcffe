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
# **After this page** you can derive GSPO's ratio and its gradient, say what its narrow band limits,
# and say what it does and does not do for a mixture of experts.
#
# 29 minutes, then 9 in a second sitting · exercises 32 more · after 04 (importance sampling), 05
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
# the toy, folded: a policy writes 64 answers and takes one step
def z_score(y):
    R = (y < 4).double().mean(1)                 # 4 of the 16 words
    return (R - R.mean()) / R.std(correction=0)

@cache
def step(seed, rate):
    """The policy before and after one step, and its answers (64, 200)."""
    old = RouterPolicy(seed=seed)
    y = old.sample(64, 200, torch.Generator().manual_seed(seed))
    new = old.copy()
    adam = torch.optim.Adam(new.parameters(), lr=rate)
    (-z_score(y)[:, None] * new.logprobs(y)[0]).mean().backward()
    adam.step()
    return old, new, y

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: the ratios that the step leaves
def ratios(old, new, y):
    """Log ratios as routed, with the old experts held; flips; A; words."""
    with torch.no_grad():
        before, routes = old.logprobs(y)
        after, used = new.logprobs(y)
        held = new.logprobs(y, routes)[0]
    return after - before, held - before, flipped(routes, used), \
        z_score(y), y

def one_step(seed, rate=3e-4):
    return ratios(*step(seed, rate))

@cache
def fresh(seed, rate=3e-4, T=200):
    """The same on 64 other answers of the old policy."""
    old, new, _ = step(seed, rate)
    dice = torch.Generator().manual_seed(100 + seed)
    return ratios(old, new, old.sample(64, T, dice))

# %% [markdown]
# ## One step, and some tokens leap
#
# Many large models are mixtures of experts. In every layer a *router* scores several small
# networks, the *experts*, and sends the token only to the best. A small step can change which ones
# are best. Call that a *flip*.
#
# **The toy.** A language model with random weights and 16 words has four layers. In each, the
# router sends a token to one of eight experts. The model writes 64 answers of 200 tokens to one
# prompt. The reward of an answer is its share of four chosen words, and $A$ is the z-score over the
# 64. We take one Adam step and look at the token ratios of one answer:

# %%
gap, held, flips, A, y = one_step(seed=0)      # log rho (64, 200), ...

# %% jupyter={"source_hidden": true}
# folded: the picture
pictures.leaps(
    {"as routed": gap[4].exp(), "old experts held": held[4].exp()},
    "One good answer (A > 0), one line per token. Grey: the band 1 ± 0.2.")

# %% [markdown]
# On the left most tokens have hardly moved, and three have leapt. The right panel has the same new
# weights, but sends every token through its old experts: no leap is left. GRPO's clip looks at each
# token alone:

# %%
def silenced(gap, A, epsilon=0.2):
    """True where the clip takes a token's gradient, (64, 200)."""
    rho, good = gap.exp(), (A > 0)[:, None]
    return torch.where(good, rho > 1 + epsilon, rho < 1 - epsilon)

print(f"of {gap.numel():,} tokens the clip silences "
      f"{int(silenced(gap, A).sum())} as routed, "
      f"{int(silenced(held, A).sum())} with the old experts held")

# %% [markdown]
# So the clip stops only what the router happened to move. 31 of 12,800 is little, and this toy
# learns well without any clip. The authors report more: their large mixtures of experts did not
# converge under GRPO until the flips were undone by *replay* (below). They blame these leaps. One
# thing we can check here. $A$ belongs to a whole answer: does the ratio of one token tell what its
# answer has done?

# %% [markdown]
# ## What does a token's ratio tell?
#
# The clip asks whether a token has moved far enough the way $A$ points: up in a good answer, down
# in a bad one. Begin with the direction, and count all 12,800 tokens.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.1", "What share of all tokens moved the way their advantage "
        "asks?",
        ["about 95 %", "about 75 %", "about 55 %", "about 40 %"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def right_way(log_ratio, A):
    """Share that rose where A > 0 and fell where A < 0."""
    return ((log_ratio > 0) == (A > 0)).double().mean().item()

seeds = [one_step(k) for k in range(3)]
unseen = [fresh(k) for k in range(3)]

def shares(runs):
    return (sum(right_way(x[0], x[3][:, None]) for x in runs) / 3,
            sum(right_way(x[0].mean(1), x[3]) for x in runs) / 3)

by_token, by_answer = shares(seeds)
new_token, new_answer = shares(unseen)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.1", "about 55 %",
       f"It is {by_token:.0%} (three policies). Look at the bars on the "
       "left: the step raises the four rewarded words, in good *and* in "
       "bad answers. That is no mistake, for these words earn the reward. "
       "But it means that a token's ratio follows its **word**, and tells "
       "little about its answer. Now average the log ratios of each "
       f"answer, as on the right. Of these means {by_answer:.0%} moved the "
       "way $A$ points: 200 weak signals add up. (Two things help them "
       "here. The reward is itself a count of words, and these are the "
       f"answers of the step. On 64 fresh ones it is {new_answer:.0%}; of "
       f"their tokens {new_token:.0%}.)",
       pictures.where_it_shows(*(torch.cat(z) for z in zip(*(
           (x[0], x[3], x[4] < 4) for x in seeds)))),
       instead={
           "about 95 %":
           "The step was taken for these answers, but it moves words, and "
           "every word stands in good and in bad answers.",
           "about 75 %":
           "That would need good answers to have many more of the "
           "rewarded words than bad ones. They have a few more.",
           "about 40 %":
           "In bad answers the rewarded words rise, against A. But the "
           "other words mostly fall there, and they are more.",
       })

# %% [markdown]
# **$A$ is a verdict on a whole answer. GSPO, group sequence policy optimization, also asks about
# the whole answer: one ratio, and one clip.** That is a choice; $A$ does not force it.

# %% jupyter={"source_hidden": true}
# what changes, as a picture
pipeline.pipeline(
    "ratio", "loss", words={"ratio": "ratio\nper answer"}, caption=(
        "GRPO has a ratio per token. In GSPO the lit boxes see one number "
        "per answer. Everything else is GRPO."))

# %% [markdown]
# ## Derive it
#
# $y$ is an answer of $T$ tokens, and $\rho_t$ is the ratio of its token $t$. We start where PPO
# started (06), with the product of all the ratios, and this time keep it:
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
# product moves by $T\delta$, and $\log s$ by $\delta$ at any length. So the band on $s$ need not
# grow with the length. The root has a price: $s$ is no longer an importance weight. Read $s$ as a
# distance: how far has this answer moved per token?
#
# <details><summary>One level deeper: the authors' own argument</summary>
#
# The paper says: an importance weight corrects only when one averages over many samples, and GRPO
# has a single token from each next-token distribution. So the token ratio corrects nothing and
# brings noise. Two exact toys say that it depends ([statements](statements/13_gspo.ipynb), Z06).
# Where tokens are independent and the reward is their share of ones, weighting each token by its
# own ratio gives *on average* exactly the gradient at the new policy, and weighting all by $s$ is
# further off than no weight. Where every prefix counts and every answer has a reward of its own,
# both correct little, $s$ a little more. So a token ratio from one sample is noisy, not broken, and
# an answer is one sample as well. What is left of the argument is the unit: the reward judges
# answers.
# </details>

# %% [markdown]
# ## Sixteen tokens
#
# Here is the running group: two right answers, so good with $A=+1$, and two wrong ones, bad with
# $A=-1$.

# %%
batch = running_group()
T, A4 = batch.mask.sum(1), batch.rewards * 2 - 1
log_rho = torch.where(batch.mask, batch.logprobs - batch.old_logprobs, 0)
s4 = (log_rho.sum(1) / T).exp()                          # (4,)
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
# **Why one push per answer?** Take the gradient of an answer that is not clipped:
#
# $$\begin{aligned}
# \nabla s&=s\,\nabla\log s&&\nabla f=f\,\nabla\log f\\
# &=s\cdot\frac1T\sum_t\nabla\log\pi_\theta(y_t)&&\log s=\tfrac1T\textstyle\sum_t(\log\pi_\theta-\log\pi_\text{old})
# \end{aligned}$$
# **Every token of an answer gets the same push, $sA/T$.** In GRPO token $t$ gets $\rho_tA/T$. The
# root has brought a $1/T$ of its own: as in GRPO, the tokens of a long answer get less (09).

# %% [markdown]
# ## Why 3e-4 and not 0.2?
#
# The ratio of the whole answer is the product, $s^T$. Take $s$ at the edges of its band and look at
# what the answer may become. Beside it stands a noise: if the log ratios of tokens spread by
# $\sigma$, say 0.02, their mean spreads by $\sigma/\sqrt T$. <!-- cited: 0.02 -->

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: s at the edges of a band, to the power of T; noise; one leap
print("GSPO's band, s from 1 - 3e-4 to 1 + 4e-4:")
for n in (300, 1000, 30_000):
    print(f"{n:8,d} tokens: {(1 - 3e-4)**n:7.2g} to {(1 + 4e-4)**n:8.3g} "
          f"times as likely; log s spreads by {0.02 / n**0.5:.4f}")
print(f"a band of 0.2, 1,000 tokens: up to {1.2**1000:.1e} times")
leap, edge = gap[4].max(), torch.tensor(4e-4).log1p()
print(f"the leap of {leap.exp():.2f} alone: log s = {leap:.2f} / 200 = "
      f"{leap / 200:.4f}; inside from {leap / edge:,.0f} tokens on")

# %% [markdown]
# A band of 0.2 on $s$ is no limit at all. GSPO's acts at 1,000 tokens like a wide PPO band on the
# whole answer, and at 30,000 it is no limit either. At 300 tokens that noise is three times as wide
# as the band. **One band is strict with short answers and lax with long ones.** These readings are
# ours; the paper gives the numbers and, as far as we found, no derivation.
#
# The last line goes back to the first picture. The mean does not make a leap harmless: in 200
# tokens this one alone puts $s$ twelve times as far out as the edge. (Exercise 1 asks for the
# rule.)
#
# ## Whom does it silence?
#
# Count the silent in the three toy policies, after the same step:

# %%
def silent_answers(gap, A, low=3e-4, high=4e-4):
    s = gap.mean(1).exp()
    return torch.where(A > 0, s > 1 + high, s < 1 - low)   # (64,)

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: both clips, counted
for k in range(3):
    x, A_k = one_step(k)[0], one_step(k)[3]
    print(f"policy {k}: GRPO {int(silenced(x, A_k).sum())} of 12,800 "
          f"tokens, GSPO {int(silent_answers(x, A_k).sum())} of 64 answers")

# %% [markdown]
# Have these answers learnt enough? For a control, shuffle the 64 advantages among the answers. The
# answers and the new weights stay as they are.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.3", "GSPO silenced about 47 of the 64. How many does it "
        "silence with A shuffled?",
        ["about 5", "about 15", "about 30", "about 45"])

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

slow = [one_step(k, 3e-5) for k in range(3)]
rows = {"GSPO, of 64 answers": both(silent_answers, seeds),
        "the same, old experts held": both(silent_answers, seeds, 1),
        "64 fresh answers, as routed": both(silent_answers, unseen),
        "a tenth of the learning rate": both(silent_answers, slow),
        "GRPO, of 12,800 tokens": both(silenced, seeds)}
table = "| means of three policies | silent | A shuffled | surplus |\n"
table += "|---|---|---|---|\n" + "".join(
    f"| {name} | {a:.1f} | {b:.1f} | {a - b:.1f} |\n"
    for name, (a, b) in rows.items())
chance = rows["GSPO, of 64 answers"][1]
out = sum(int(silent_answers(x[0], sign + 0 * x[3]).sum())
          for x in seeds for sign in (1, -1)) / 3        # either side

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.3", "about 30",
       f"It is {chance:.0f}. The band is so narrow that {out:.0f} of the "
       "64 answers lie outside, and a random A cuts half of those. **The "
       "count of the silent is no measure of learning: only its surplus "
       "over the shuffle knows A.**\n\n" + table +
       "\nWithout flips GSPO's surplus is larger: leaps blur s. On answers "
       "that the step has not seen most of it is gone. GRPO has next to "
       "none: its clip cuts leaps, and leaps do not know A. A smaller step "
       "silences fewer, so choose band and learning rate together.",
       instead={
           "about 5":
           "Shuffled, A says nothing about an answer. But the clip only "
           "asks for a side of the band, and chance often finds it.",
           "about 15":
           "Chance finds the right side half the time. But count first how "
           "many answers lie outside the band.",
           "about 45":
           "Then A would play no part. It does: the true A meets the right "
           "side more often than a random one.",
       })

# %% [markdown]
# **Which of the two trains better, this toy cannot say.** Its reward is so easy that it needs no
# clip, and GSPO's band acts as a smaller step ([statements](statements/13_gspo.ipynb)). The
# evidence for GSPO is the paper's runs.
#
# ## Longer answers
#
# In 200 tokens one leap can decide. In longer answers there are many, up and down. The paper cuts a
# batch into four mini-batches, so three of four meet weights that have moved on other answers. Do
# the same: take 64 fresh answers of the old policy, and let them grow to 1,024 tokens.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.4", "Leaps go up and down. As the answers get longer, where "
        "does their s go?",
        ["to 1", "to a number above 1", "nowhere, its spread stays",
         "to a number below 1"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
long = fresh(0, T=1024)
with torch.no_grad():
    old, new, _ = step(0, 3e-4)
    p = old.distributions(long[4])               # (64, 1024, 16), log pi
    routes = old.logprobs(long[4])[1]
    kls = [(p.exp() * (p - new.distributions(long[4], x))).sum(-1).mean()
           .item() for x in (None, routes)]

def inside(x, T):
    s = x[:, :T].mean(1).exp()
    return int(((s > 1 - 3e-4) & (s < 1 + 4e-4)).sum())

at = {k: f"{inside(long[k], 1024)} of the 64" for k in (0, 1)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.4", "to a number below 1",
       "By the definition of the KL (05), the mean of a token's log ratio "
       r"under the old policy is $\mathbb E_\text{old}[\log\rho_t]="
       r"-\mathrm{KL}(\pi_\text{old}\Vert\pi_\theta)\le0$. "
       f"Here the KL per token is {kls[0]:.4f}, and the mean of log s is "
       f"−{-long[0].mean():.4f}. The spread closes in on −KL, not on 0, "
       f"and −KL is below GSPO's band: at 1,024 tokens {at[0]} are "
       "inside. A *bad* answer below is silent, whether the step or the "
       f"router moved it. With the old experts held the KL is {kls[1]:.4f},"
       " inside the band, and length does help: "
       f"{inside(long[1], 32)} are inside at 32 tokens, {at[1]} at 1,024.",
       pictures.settling((32, 128, 512, 1024), {
           "as routed": long[0], "old experts held": long[1]}, kls),
       instead={
           "to 1":
           "The leaps do average out. But the mean of ρ is 1, and then "
           "the mean of log ρ is below 0.",
           "to a number above 1":
           "The step raised what earns reward at the cost of other words. "
           "Under the old policy the mean of ρ stays 1.",
           "nowhere, its spread stays":
           "The spread shrinks, about as 1/√T. Look at the middle."})

# %% [markdown]
# Now set the share of flips yourself. In this explorer the weights moved at random: nothing was
# learnt, and nobody *should* fall silent. Predict before you move a slider.

# %% jupyter={"source_hidden": true}
# the explorer
task("gspo.t1", answer_ratio.answer_ratio_explorer(),
     ("3 % of the tokens flip, and answers have 512 tokens. Which is the "
      "narrowest band that leaves at least 58 of the 64 alone? And how "
      "much may it let a whole answer grow?", answer_ratio.narrowest_band),
     ("Put T on a length with ten answers fewer inside, or more, than some "
      "shorter length *and* than some longer one. What is wrong with the "
      "middle?",
      answer_ratio.worst_in_the_middle))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# <!-- cited: 0.03, 0.04, 1.04, 0.01, 0.97, 1.2, 0.0004, 0.005 -->
# 1. 0.03, 0.04 leaves all 64 alone. But $1.04^{512}$ is 5e8: it lets an answer become half a
#    billion times as likely. To hold it near PPO's 1.2, ε must be about 0.2/512 = 0.0004, and the
#    KL of these flips is 0.005 per token. No width does both: GSPO's leaves 2 of the 64 alone.
# 2. With 0.01 and 3 %, answers of 32 tokens: 40 inside, but 49 at 8 tokens and 52 at 512. Most
#    answers of 8 tokens have no flip at all ($0.97^8$ is 78 %). Most of 32 tokens have one, and a
#    leap divided by 32 still leads outside. In 512 the leaps average.
# </details>
#
# **GSPO averages leaps where the answer is long, and leaves their KL.** *Routing replay* removes
# the cause: the new policy uses the old one's experts. The price: all routes are stored, and the
# new router's own choice is not what is trained.

# %% [markdown]
# ## In a real run
#
# * **When it matters.** From the second gradient step on one rollout batch on. In the first every
#   $s$ is 1, and GSPO's gradient is GRPO's.
# * **What it cost and gave.** The paper reports 15 % of the tokens clipped under GSPO and 0.13
#   % <!-- cited: 0.13 % --> under GRPO. GSPO learns faster all the same, and needs no replay. No
#   run separates the causes.
# * **What to log.** The share of *answers* that the clip silences, good and bad apart. Beside it
#   what a shuffled A gives: share good × share above + share bad × share below. If nearly all of
#   the silent are bad, $s$ has sunk by −KL: too large a step, or flips. Hold the experts to tell
#   which.
#
# <details><summary>One level deeper: TRL and verl, inputs, advantages per token, the size of a flip</summary>
#
# * **TRL:** `importance_sampling_level="sequence"`, `loss_type="grpo"`, `beta=0`, `epsilon=3e-4`,
#   `epsilon_high=4e-4`, `steps_per_generation=4`, `gradient_accumulation_steps=1`. With four
#   accumulation steps a batch makes one optimizer step, every $s$ is 1, and GSPO does nothing.
# * **verl:** `loss_mode="gspo"`, and set both `clip_ratio`s, which otherwise stay at 0.2.
# * **Inputs.** `old_logprobs` come from the trainer, before the first step, as in 08. Log-probs
#   from the sampler would put the gap between the two engines into $s$, and the band is narrow.
# * **GSPO-token** gives token $t$ the ratio $\mathrm{sg}[s]\cdot\pi_t/\mathrm{sg}[\pi_t]$; sg stops
#   the gradient. Its value is $s$, its gradient the token's own. With one advantage per answer it
#   equals GSPO; with an advantage per token the credit stays where it belongs. verl's `gspo` is
#   this form.
# * **How large is a flip's cost?** One gradient step changes about 10 % of the experts of the
#   paper's model ([arXiv 2507.18071](https://arxiv.org/abs/2507.18071), section 5.3). What that
#   costs is not reported. Our random experts are strangers to each other, so take the sign from the
#   toy and not the size.
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
# | derived | the product; the equal push on all tokens |
# | choices | the $T$-th root, clip and min, the band |
# | in $\log s$ | what all tokens share stays, noise shrinks as $1/\sqrt T$, flips leave $-\mathrm{KL}$ |
# | one leap | of 1 in the log silences a good answer of up to 2,500 tokens |
# | flips | routing replay removes them; GSPO averages the leaps of long answers |

# %%
print("GRPO -> GSPO")
print(difference(ZOO["grpo"].replace(terms=()), ZOO["gspo"]))
score("gspo.1", "gspo.2", "gspo.3", "gspo.4")

# %% [markdown]
# Now say the first five questions of [the interview](#In-the-interview). They need nothing more.

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
# before any is cut. Compare the three rules on an answer in which a single token has moved. Guess
# first: which band is the stricter one for that token, 0.2 on it alone or 4e-4 on the mean?

# %% jupyter={"source_hidden": true}
# the explorer
task("gspo.t2", one_outlier.one_outlier_explorer(),
     ("Find the longest answer that GSPO silences whole while GRPO and "
      "GMPO silence nothing.", one_outlier.long_and_gspo_only),
     ("Now the reverse: the shortest answer in which GRPO silences the "
      "one token, and GSPO nothing.", one_outlier.short_and_grpo_only))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# <!-- cited: 0.20, 0.8, -0.22, 0.15, 1.2, 0.18 -->
# 1. A *bad* answer of 512 tokens with log ρ = −0.20. GRPO's lower edge is at log 0.8 = −0.22, and
#    0.20/512 is more than GSPO's lower 3e-4. Good answers get to 256 only, with 0.15: both upper
#    edges are worse for this, log 1.2 = 0.18 and 4e-4.
# 2. A *good* answer of 512 tokens with log ρ = 0.20, for 0.20/512 is less than 4e-4.
#
# So neither band is the stricter one. For a single token they meet at log 1.2 / 4e-4 = 456 tokens
# in a good answer, and at 744 in a bad one. In shorter answers GSPO is stricter, in longer ones
# GRPO.
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
# **4 Name this method** · 4 minutes. Two answers of four tokens; below the token ratios stands the
# size of each token's push:
#
#     A = +1   ratios    1.10   0.60   1.80   1.05
#              pushes    1.01   1.01   0      1.01
#     A = -1   ratios    0.50   0.90   1.30   2.00
#              pushes    0      1.12   1.12   1.12
#
# <details><summary>hint</summary>What do the living tokens of an answer have in common? And do they die together?</details>

# %% tags=["exercise"]
check.name_this_gspo("")

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>What does GSPO change against GRPO?</b></summary>
#
# One ratio per answer instead of one per token. It is the geometric mean of the token ratios,
# clipped once, with a band of 3e-4 and 4e-4. Advantage and mean per answer stay. An answer that is
# not clipped gives all its tokens the push s·A, times 1/T.
# </details>
# <details><summary><b>Derive the gradient.</b></summary>
#
# s is the exp of the mean log ratio, so ∇s is s times the mean of the tokens' ∇log π. Start from
# the importance ratio of the answer, the product of ρ; ∇f = f∇log f moves the gradient outside; the
# T-th root is the choice.
# </details>
# <details><summary><b>Why is ε 3e-4 and not 0.2?</b></summary>
#
# Because s is a geometric mean over the answer's tokens, it stays near 1: a band of 0.2 would
# practically never clip. At its edge an answer of 1,000 tokens would have the ratio 1.2 to the
# power of 1,000, which is 10^79; the paper's upper edge, 4e-4, gives 1.49, near a PPO band. And s
# strays by σ/√T without any learning, with σ the spread of a token's log-ratio: 0.02 at 5,000
# tokens is 0.0003. <!-- cited: 0.02, 0.0003, 1.0004 -->
# </details>
# <details><summary><b>Why does GRPO struggle with mixtures of experts, and does GSPO fix it?</b></summary>
#
# Router flips make single ratios leap, and the token clip then silences by accident. GSPO divides a
# leap by T: one of 1 in the log still silences a good answer of up to 2,500 tokens, and in longer
# answers leaps average out. What stays is a drop of log s by the KL that flips cost, at any length;
# below the band bad answers fall silent. Routing replay removes the cause.
# </details>
# <details><summary><b>Is s the correct importance weight?</b></summary>
#
# No, the product is, with a variance that explodes. Its T-th root corrects almost
# nothing: <!-- cited: 1.49, 1.0004 --> 1.49 at 1,000 tokens becomes 1.0004. It is a distance that
# decides whether an answer may still push, once for all its tokens, as its reward was given.
# </details>
#
# The other nine can wait for another evening.
#
# <details><summary><b>Why not clip the product, with a band that grows with T?</b></summary>
#
# One could: it silences the same answers. s above 1 + ε is the product above (1 + ε)^T. What the
# root changes is the push on the living answers. It is s, near 1, instead of the product, which
# explodes with the length, and it carries a 1/T.
# </details>
# <details><summary><b>My batch has answers of 300 and of 30,000 tokens. Whom does one ε silence?</b></summary>
#
# Mostly the short ones. By noise: log s spreads by σ/√T, which with σ = 0.02 is 0.0012 at 300
# tokens, three times the band, and 0.0001 at 30,000. By the limit: 1.0004^T is 1.13 at 300 and
# 1.6e5 at 30,000, so the long ones are hardly held. Flips are the exception: where −KL is below the
# band, a long bad answer is the surest to be cut. To choose, log the mean and the spread of log s
# by length. A band in proportion to 1/√T cuts noise alike everywhere; one in proportion to 1/T
# limits whole answers alike, and is a clip on the product. One ε is a compromise: set it for the
# lengths that carry most of the batch. <!-- cited: 0.02, 0.0012, 0.0001, 1.0004, 1.13 -->
# </details>
# <details><summary><b>Does GSPO keep GRPO's length bias?</b></summary>
#
# Yes. Every living token has the push s·A/T, so a long bad answer is pushed down less per token
# than a short one, as in GRPO. Dr. GRPO's objection holds (10). The root makes s comparable across
# lengths, not the gradient.
# </details>
# <details><summary><b>GSPO clips a hundred times more than GRPO. Why does it not learn less?</b></summary>
#
# Nobody has separated it. Clipping 15 % of the tokens costs data; the paper reports faster learning
# all the same and reads it as less noise per token that is used. The band is a limit on the step
# too, so an honest rival needs its own learning rate and its own ε. One can split the count itself:
# shuffle A for the part that is chance, hold the experts for the flips. In our toy 30 of 47 are
# chance.
# </details>
# <details><summary><b>GSPO, DAPO or CISPO?</b></summary>
#
# Three answers to one question: what decides that a token has had enough? DAPO keeps the token
# ratio and raises its upper edge (11). CISPO caps the token's weight and silences nobody (12). GSPO
# decides once per answer. With one step per batch the three ratios are all 1; what still differs is
# how tokens are averaged.
# </details>
# <details><summary><b>Is GSPO of use for a dense model?</b></summary>
#
# It runs, and the case is weaker. No router, no flips: single ratios leap less. What stays is the
# match of reward and ratio, and the cost of the band. The paper's runs are of one mixture of
# experts, Qwen3-30B-A3B.
# </details>
# <details><summary><b>What does one outlier token do under GRPO, GSPO and GMPO?</b></summary>
#
# GRPO silences that token, if it moved the right way. GSPO shifts log s by its log ratio over T: a
# log ratio of 2 silences a whole good answer of up to 5,000 tokens. GMPO cuts it at 0.4 before the
# mean and silences it alone.
# </details>
# <details><summary><b>Sampler and trainer disagree. Does GSPO, or routing replay, or R3 help?</b></summary>
#
# Two gaps. Old to new policy: routing replay, or GSPO in its place. Inference engine to trainer, at
# the same weights: R3 replays the engine's experts. GSPO's authors expect s to tolerate that gap as
# well, without an experiment; R3's report doing better than GSPO.
# </details>
# <details><summary><b>I set loss_mode=gspo in verl and nothing else. What runs?</b></summary>
#
# A band of 0.2, which practically never clips a long answer. Release 0.9.1 then also averages over
# all tokens, so long answers weigh more. Set both clip ratios and `seq-mean-token-mean`.
# </details>
#
# The sentences that one hears about GSPO, true or not: [statements 13](statements/13_gspo.ipynb).
# The exercises, solved: [solutions 13](solutions/13_gspo.ipynb).
#
# **Next: [14](14_the_zoo.ipynb).** All methods on the same axes, and one that you compose yourself.
