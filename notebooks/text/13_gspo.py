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
# networks, the *experts*, and only the best ones work on the token. A small step can change which
# ones are best. Call that a *flip*.
#
# **The toy.** A language model with random weights and 16 words has four layers of eight experts,
# of which one works. It writes 64 answers of 200 tokens to one prompt. The reward of an answer is
# its share of four chosen words, and $A$ is the z-score over the 64. We take one Adam step and look
# at the token ratios of one answer:

# %%
gap, held, flips, A, y = one_step(seed=0)      # log rho (64, 200), ...
pictures.leaps(
    {"as routed": gap[4].exp(), "old experts held": held[4].exp()},
    "One good answer (A > 0), a line a token. Grey: the band 1 ± 0.2.")

# %% [markdown]
# On the left most tokens have hardly moved, and three have leapt. The right panel has the same new
# weights, but every token goes through its old experts: no leap is left. GRPO's clip looks at each
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
# So in this step the clip stops only what the router happened to move. 31 of 12,800 is little, and
# this toy learns well without any clip. The authors report more: their large mixtures of experts
# did not converge under GRPO until the flips were undone by *replay* (below). They blame these
# leaps. What we can check is the clip's question: does one token's ratio tell whether its answer
# has moved far enough?

# %% [markdown]
# ## What does a token's ratio tell?
#
# Far enough means: far *the way $A$ points*, up in a good answer and down in a bad one. So ask for
# the direction first. Leave the leaps aside and count *all* tokens.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.1", "What share of all tokens moved the way their advantage "
        "asks?",
        ["about 95 %", "about 85 %", "about 70 %", "about 55 %"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def right_way(log_ratio, A):
    """Share that rose where A > 0 and fell where A < 0."""
    return ((log_ratio > 0) == (A > 0)).double().mean().item()

seeds = [one_step(k) for k in range(3)]
by_token = sum(right_way(x[0], x[3][:, None]) for x in seeds) / 3
by_answer = sum(right_way(x[0].mean(1), x[3]) for x in seeds) / 3

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.1", "about 55 %",
       f"It is {by_token:.0%} (three policies). Look at the bars on the "
       "left: the step raises the four rewarded words, in good *and* in "
       "bad answers. That is no mistake, for these words earn the reward. "
       "But it means that a token's ratio follows its **word**, and does "
       "not tell how far its answer has moved. Now average the log ratios "
       f"of each answer, as on the right. Of these means {by_answer:.0%} "
       "moved the way $A$ points. (A mean of 200 weak signals is a strong "
       "one; and here the reward is itself a count of words.)",
       pictures.where_it_shows(*(torch.cat(z) for z in zip(*(
           (x[0], x[3], x[4] < 4) for x in seeds)))),
       instead={
           "about 95 %":
           "The step was taken for these answers, but it moves words, and "
           "every word stands in good and in bad answers.",
           "about 85 %":
           "That would need good and bad answers to share few words. They "
           "share all 16.",
           "about 70 %":
           "Good answers have only a few more of the rewarded words than "
           "bad ones. That is too little for 70 %.",
       })

# %% [markdown]
# **$A$ is a verdict on a whole answer. GSPO, group sequence policy optimization, also asks about
# the whole answer: one ratio, and one clip.** That is a choice. It does not follow from $A$ alone.

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
# started (06). PPO then replaced the product by each token's own ratio. Here the product stays:
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
# $\log s=\frac1T\sum_t\log\rho_t$. The log of the product grows with the length of the answer; its
# mean does not. So one band can serve answers of any length. The root has a price: $s$ is no longer
# an importance weight. Read $s$ as a distance: how far has this answer moved per token?
#
# <details><summary>One level deeper: the authors' own argument</summary>
#
# The paper says: an importance weight corrects only when one averages over many samples, and GRPO
# has a single token from each next-token distribution. So the token ratio corrects nothing and
# brings noise. Judge for yourself ([statements](statements/13_gspo.ipynb), Z06, both exact): where
# tokens are independent and the reward is their share of ones, the tokens' own ratios correct the
# gradient fully, *on average*, and one shared $s$ does not at all. Where every prefix counts and
# every answer has a reward of its own, both correct little, $s$ a little more. So a token ratio
# from one sample is noisy, not broken. What is left of the argument is the unit: the reward judges
# answers.
# </details>

# %% [markdown]
# ## Sixteen tokens
#
# Here is the running group of four answers. The z-scores are $\pm1$.

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
           "GRPO decides token by token. GSPO gives all tokens of an "
           "answer one push, and they live or die together.")),
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
# grids above show the pushes before the $1/T$, which the root has brought: in GSPO as in GRPO the
# tokens of a long answer get less (09).

# %% [markdown]
# ## Why 3e-4 and not 0.2?
#
# The ratio of the whole answer is the product, $s^T$. Take $s$ at the edge of a band and look at
# what the answer may become:

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: s at the edges of a band, to the power of T
for n in (1000, 10_000):
    print(f"band 3e-4, 4e-4, {n:6,d} tokens: the answer becomes "
          f"{(1 - 3e-4)**n:.2f} to {(1 + 4e-4)**n:.2f} times as likely")
print(f"band 0.2,         1,000 tokens: up to {1.2**1000:.0e} times")

# %% [markdown]
# So a band of 0.2 on $s$ is no limit at all. GSPO's band acts at 1,000 tokens like a wide PPO band
# on the whole answer, and at 10,000 it is loose.
#
# A second reason is noise. If log ratios of tokens spread by $\sigma$, their mean spreads by
# $\sigma/\sqrt T$: with $\sigma=0.02$ at 5,000 tokens by 0.0003. A narrower band would cut noise.
# Both are our readings: the paper gives the numbers, and no derivation that we found.
# <!-- cited: 0.02, 0.0003 -->
#
# What does such a band silence? Go back to the toy and its step.

# %%
def silent_answers(gap, A, low=3e-4, high=4e-4):
    s = gap.mean(1).exp()
    return int(torch.where(A > 0, s > 1 + high, s < 1 - low).sum())

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.3", "GRPO's clip silenced 31 of the 12,800 tokens. How many "
        "of the 64 answers does GSPO's clip silence?",
        ["0", "about 5", "about 15", "about 45"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def silent(runs, k=0):
    return sum(silent_answers(x[k], x[3]) for x in runs) / 3

slow = silent([one_step(k, 3e-5) for k in range(3)])
held_right = sum(right_way(x[1].mean(1), x[3]) for x in seeds) / 3
assert silent(seeds, 1) > silent(seeds)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.3", "about 45",
       f"It is {silent(seeds):.0f} (mean of three policies): nearly all "
       "answers that moved as A asks. Most of them have learnt enough for "
       "this band. Which of 64 are silent depends on the step:\n\n"
       "| | of 64 silent |\n|---|---|\n"
       f"| as routed | {silent(seeds):.0f} |\n"
       f"| old experts held | {silent(seeds, 1):.0f} |\n"
       f"| a tenth of the learning rate | {slow:.0f} |\n\n"
       f"Leaps blur s: with them {by_answer:.0%} of the answers moved as A "
       f"asks, with the old experts held {held_right:.0%}, so even more "
       "are silent. What this clip limits is *the step*. The band has to "
       "be chosen together with the learning rate.",
       instead={
           "0":
           "The mean takes the leaps away. But what was learnt is left, "
           "and it is larger than the band.",
           "about 5":
           "That many answers hold a leap. But a leap is divided by 200. "
           "What counts is the sum of many small moves.",
           "about 15":
           "The band is narrow: a small move is enough, and bad answers "
           "that fell are cut as well.",
       })

# %% [markdown]
# 47 of 64 answers silent, where GRPO silenced 31 of 12,800 tokens: is that better? **This toy
# cannot say which of the two trains better.** Its reward is so easy that it needs no clip, and
# GSPO's band acts as a smaller step ([statements](statements/13_gspo.ipynb)). The evidence for GSPO
# is the paper's runs.
#
# ## Longer answers
#
# The leaps themselves average out. Does anything of the flips stay in $s$? The paper uses each
# answer once: it cuts a batch into four mini-batches, and the later ones meet weights that have
# already moved. So take 64 fresh answers of the old policy, which the step has not seen, and let
# them grow to 1,024 tokens.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.4", "Leaps go up and down. As the answers get longer, where "
        "does their s go?",
        ["to a number below 1", "to 1", "to a number above 1",
         "nowhere, its spread stays"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
long = fresh(0, T=1024)
with torch.no_grad():
    old, new, _ = step(0, 3e-4)
    p = old.distributions(long[4])               # (64, 1024, 16), log pi
    q = new.distributions(long[4])
kl = (p.exp() * (p - q)).sum(-1).mean().item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.4", "to a number below 1",
       "By the definition of the KL (05), the mean of a token's log ratio "
       r"under the old policy is $\mathbb E_\text{old}[\log\rho_t]="
       r"-\mathrm{KL}(\pi_\text{old}\Vert\pi_\theta)\le0$. "
       f"The exact KL per token is {kl:.4f}; the mean of log s here is "
       f"−{-long[0].mean():.4f}. So the leaps average away and their cost "
       "stays. Look at the left panel: that cost lies below GSPO's band. A "
       "*bad* answer down there is silent, whether the step or the router "
       "moved it. On the right, with the old experts held, the KL is small "
       "enough to stay inside.",
       pictures.settling((32, 128, 512, 1024), {
           "as routed": long[0], "old experts held": long[1]}, kl),
       instead={
           "to 1":
           "The leaps do average out. But the mean of ρ is 1, and then "
           "the mean of log ρ is below 0.",
           "to a number above 1":
           "The step raised what earns reward, and took it from other "
           "words. Under the old policy the mean of ρ stays 1.",
           "nowhere, its spread stays":
           "The spread shrinks, about with the square root of the length. "
           "Look at the middle.",
       })

# %% [markdown]
# Now set the share of flipped tokens yourself. The policy is the same, but its weights moved at
# random: nothing was learnt. Without flips the longest answers stay inside the band best, as you
# see. With flips?

# %% jupyter={"source_hidden": true}
# the explorer
task("gspo.t1", answer_ratio.answer_ratio_explorer(),
     ("Keep the band, and let 3 % of the tokens flip. Which length keeps "
      "most answers inside? Say why not the longest, and why not the "
      "shortest.", answer_ratio.best_length),
     ("Now GSPO's band, 3e-4, 4e-4, and 512 tokens. Take all 64 answers "
      "for bad ones. How small a share of flips silences more than half "
      "of them?", answer_ratio.half_of_the_bad))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. 16 tokens, with 26 of 64 inside. Shorter answers scatter around 0: a mean of few tokens is
#    noisy. Longer ones gather around −KL, and at 3 % that lies below the band.
#    <!-- cited: 16, 26, 64, 0.5, 39, 17 -->
# 2. One token in 200: 39 of 64, and 17 without flips. What only the router has moved looks
#    like a bad answer that has had enough.
# </details>
#
# **GSPO averages the leaps and leaves their KL.** *Routing replay* removes the cause: the new
# policy uses the old one's experts. Its price is that all routes must be stored, and that the new
# router's own choice is not what is trained.

# %% [markdown]
# ## In a real run
#
# * **When it matters.** It matters from the second gradient step on one rollout batch on. In the
#   first step every $s$ is 1, and GSPO's gradient is GRPO's.
# * **What it cost and gave.** The paper reports 15 % of the tokens clipped under GSPO and 0.13
#   % <!-- cited: 0.13 % --> under GRPO. GSPO learns faster all the same, and needs no replay. No
#   run separates the causes.
# * **What to log.** Log the share of *answers* that the clip silences, for good and bad ones apart.
#   If nearly all of them are bad, $s$ has sunk by −KL: too large a step, or flips. Hold the experts
#   to tell which.
# * **TRL:** `importance_sampling_level="sequence"`, `loss_type="grpo"`, `beta=0`, `epsilon=3e-4`,
#   `epsilon_high=4e-4`, `steps_per_generation=4`, `gradient_accumulation_steps=1`. With four
#   accumulation steps a batch makes one optimizer step, every $s$ is 1, and GSPO does nothing.
# * **verl:** `loss_mode="gspo"`, and set both `clip_ratio`s, which otherwise stay at 0.2.
#
# <details><summary>One level deeper: inputs, advantages per token, two replays</summary>
#
# * **Inputs.** `old_logprobs` come from the trainer, before the first step, as in 08. Log-probs
#   from the sampler would put the gap between the two engines into $s$, and the band is narrow.
# * **GSPO-token** gives token $t$ the ratio $\mathrm{sg}[s]\cdot\pi_t/\mathrm{sg}[\pi_t]$; sg stops
#   the gradient. Its value is $s$, its gradient the token's own. With one advantage per answer it
#   equals GSPO; with an advantage per token the credit stays where it belongs. verl's `gspo` is
#   this form.
# * **Two replays.** Routing replay: new weights, the *old policy's* experts. R3, rollout routing
#   replay: the trainer uses the experts that the *inference engine* chose, at the same weights
#   ([arXiv 2510.11370](https://arxiv.org/abs/2510.11370)). GSPO is offered in place of the first.
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
# | picture | rows of the token grid live or die together |
# | numbers | band 3e-4 and 4e-4 · $1.2^{1000}\approx10^{79}$ · in the paper 15 % of the tokens clipped |
# | derived | the product; the equal push on all tokens |
# | choices | the $T$-th root, clip and min, the band |
# | in $\log s$ | what is learnt stays, noise shrinks as $1/\sqrt T$, flips leave $-\mathrm{KL}$ |
# | flips | routing replay removes them, GSPO only averages the leaps |

# %%
print("GRPO -> GSPO")
print(difference(ZOO["grpo"].replace(terms=()), ZOO["gspo"]))
score("gspo.1", "gspo.2", "gspo.3", "gspo.4")

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
        "silence?", ["8", "4", "1", "0"])

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
# Compare the three rules on an answer in which a single token has moved:

# %% jupyter={"source_hidden": true}
# the explorer
task("gspo.t2", one_outlier.one_outlier_explorer(),
     ("Let one token silence an answer of 4,096 tokens under GSPO.",
      one_outlier.long_and_silent),
     ("Move log ρ of the token by 2 or more, up or down. Nothing shall be "
      "silent under any rule.", one_outlier.nobody))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# <!-- cited: 1.75, 0.13 % -->
# 1. Take a log ratio of 1.75 or more in a good answer. GMPO silences one token and leaves 4,095.
# 2. Let the token move the wrong way: a good token that fell, a bad one that rose. The min spares
#    it in all three.
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
# Router flips make single ratios leap, and the token clip then silences by accident. GSPO averages
# the leaps, so no flipped token decides alone. What stays is a drop of log s by the KL that flips
# cost, at any length; below the band bad answers fall silent. Routing replay removes the cause.
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
# <details><summary><b>The authors call a token's ratio ill-posed. Are they right?</b></summary>
#
# Only in part. They say that a ratio needs many samples of its distribution and a token gives one.
# But an answer gives one sample as well. If tokens are independent and rewards add up, token ratios
# correct the gradient exactly on average. Otherwise they leave the prefix uncorrected, and s is no
# worse. What holds is the unit: the reward judges answers.
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
# too, so an honest rival needs its own learning rate and its own ε.
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
# A band of 0.2, which practically never clips a long answer. In release 0.9.1 also a mean over all
# tokens, so long answers weigh more; neighbouring tags and main hard-code the mean per answer. Set
# both clip ratios and `seq-mean-token-mean`.
# </details>
#
# The sentences that one hears about GSPO, true or not: [statements 13](statements/13_gspo.ipynb).
# The exercises, solved: [solutions 13](solutions/13_gspo.ipynb).
#
# **Next: [14](14_the_zoo.ipynb).** All methods on the same axes, and one that you compose yourself.
