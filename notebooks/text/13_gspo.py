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
# **After this page** you can derive GSPO's ratio and its gradient, say why its band is about 600
# times narrower than PPO's, and say what it does and does not do for a mixture of experts.
#
# 52 minutes, exercises 32 more · after 04 (importance sampling), 05 (KL), 06 (PPO), 08 (GRPO) ·
# GSPO, Zheng et al. 2025, [arXiv 2507.18071](https://arxiv.org/abs/2507.18071); GMPO, Zhao et al.
# 2025, [arXiv 2507.20673](https://arxiv.org/abs/2507.20673)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What is the importance ratio of a whole answer, and what is wrong with it?</summary>The product of its token ratios ρ. Its variance explodes with the length (04).</details>
# <details><summary>2. Which line of PPO's derivation is a choice?</summary>Each token keeps its own ratio, instead of the product over the answer (06).</details>
# <details><summary>3. Which tokens does GRPO's clip silence?</summary>Good ones above 1 + ε and bad ones below 1 − ε, as in PPO (06, 08).</details>

# %% tags=["setup"]
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
# the toy, folded: one step, and the ratios it leaves
@cache
def answers(seed, n=64, T=200):
    """A policy and its answers, n of T tokens, to one prompt."""
    old = RouterPolicy(seed=seed)
    return old, old.sample(n, T, torch.Generator().manual_seed(seed))

def one_step(seed, rate=3e-4):
    """Log ratios as routed, with the old experts held; flips; A; words."""
    old, y = answers(seed)
    R = (y < 4).double().mean(1)                 # 4 of the 16 words
    A = (R - R.mean()) / R.std(correction=0)
    new = old.copy()
    adam = torch.optim.Adam(new.parameters(), lr=rate)
    (-A[:, None] * new.logprobs(y)[0]).mean().backward()
    adam.step()
    with torch.no_grad():
        before, routes = old.logprobs(y)
        after, used = new.logprobs(y)
        held = new.logprobs(y, routes)[0]
    return after - before, held - before, flipped(routes, used), A, y

# %% [markdown]
# ## One step, and some tokens leap
#
# Many large models are mixtures of experts. In every layer a *router* scores several small
# networks, the *experts*, and only the best ones work on the token. When a score moves by a hair,
# another expert may take over. Call that a *flip*.
#
# The toy: a language model with random weights, 16 words, four layers of eight experts, one at work
# in each. It writes 64 answers of 200 tokens to one prompt. The reward is the share of four chosen
# words; $A$ is the group's z-score. One Adam step, then the batch is to be used again, as in 06.
# What are the token ratios now?

# %%
gap, held, flips, A, y = one_step(seed=0)      # log rho (64, 200), ...
pictures.leaps({"ratios after one step": gap[4].exp()})

# %% [markdown]
# Most tokens have hardly moved. A few have leapt. GRPO's clip looks at each alone:

# %%
def silenced(gap, A, epsilon=0.2):
    """True where the clip takes a token's gradient, (64, 200)."""
    rho, good = gap.exp(), (A > 0)[:, None]
    return torch.where(good, rho > 1 + epsilon, rho < 1 - epsilon)

cut = silenced(gap, A)
print(f"the clip silences {int(cut.sum())} of {cut.numel():,} tokens; "
      f"{flips.double().mean():.1%} of all tokens have a flip")

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.1", "Keep the new weights, but send every token through the "
        "experts that the old policy used. How many tokens does the clip "
        "silence then?",
        ["31: the experts hardly matter, the step does",
         "about 20: a flip adds to what was learnt",
         "about 10: most leaps need a flip",
         "0: without flips nothing has leapt"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
big = one_step(seed=0, rate=1e-3)
bold = silenced(big[0], big[3])
reveal("gspo.1", "0: without flips nothing has leapt",
       f"{int(silenced(held, A).sum())} of the {int(cut.sum())} are left: "
       f"{int((cut & flips).sum())} had a flip. So here it does not "
       "stop what has learnt enough, it stops what the router happened to "
       "move. (After a step three times as large both kinds are there: "
       f"{(bold & big[2]).sum() / bold.sum():.0%} of {int(bold.sum())} "
       "have a flip.)",
       pictures.leaps({"as routed": gap[4].exp(),
                       "old experts held": held[4].exp()}),
       instead={
           "31: the experts hardly matter, the step does":
           "The step moves all tokens a little. What makes a leap?",
           "about 20: a flip adds to what was learnt":
           "To leap it needs more than what was learnt.",
           "about 10: most leaps need a flip":
           "Most, yes. In this step it is every one.",
       })

# %% [markdown]
# ## What has the step taught?
#
# The clip asks whether a token has moved far enough *the way $A$ points*. Does a single ratio know
# that? Count the tokens
# whose ratio went that way.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.2", "What share of all tokens moved the way their advantage "
        "asks?",
        ["about 95 %", "about 85 %", "about 70 %", "about 55 %"])

# %%
def right_way(log_ratio, A):
    """Share that rose where A > 0 and fell where A < 0."""
    return ((log_ratio > 0) == (A > 0)).double().mean().item()

seeds = [(gap, held, flips, A, y), one_step(1), one_step(2)]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def shares(of):
    return ", ".join(f"{of(*x):.0%}" for x in seeds)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.2", "about 55 %",
       "By token " + shares(lambda g, h, f, A, y: right_way(g, A[:, None]))
       + " (three policies), and the flips are not why: with the old "
       "experts held "
       + shares(lambda g, h, f, A, y: right_way(h, A[:, None]))
       + ". Nor is it noise: the step raises the four rewarded words and "
       "lowers the others, in good *and* in bad answers. A token's ratio "
       "follows its **word**. Add up the log ratios of an answer and look "
       "once per answer: "
       + shares(lambda g, h, f, A, y: right_way(g.mean(1), A))
       + ". Only the sum follows the **answer**, and the reward judged the "
       "sum.",
       pictures.where_it_shows(*(torch.cat(z) for z in zip(*(
           (x[0], x[3], x[4] < 4) for x in seeds)))),
       instead={
           "about 95 %":
           "So one would hope: the step was taken for these answers.",
           "about 85 %":
           "Still too hopeful.",
           "about 70 %":
           "Still too hopeful: a word stands in good and in bad answers.",
       })

# %% [markdown]
# **The reward is given to a whole answer. So give the answer one ratio, and decide once.** That is
# GSPO, group sequence policy optimization.

# %%
pipeline.pipeline(
    "ratio", "loss", words={"ratio": "ratio\nper answer"}, caption=(
        "GRPO has a ratio per token. In GSPO the lit boxes see one number "
        "per answer; everything else is GRPO."))

# %% [markdown]
# ## Derive it
#
# $y$ is an answer of $T$ tokens, $\rho_t$ the ratio of its token $t$. Start where PPO started (06).
# PPO then replaced the product by each token's own ratio. Here the product stays:
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_\text{old}\Big[\textstyle\prod_t\rho_t\;A\,\sum_t\nabla\log\pi_\theta(y_t)\Big]&&\text{importance ratio of the answer (04)}\\
# &=\mathbb E_\text{old}\Big[A\,\nabla\textstyle\prod_t\rho_t\Big]&&\nabla f=f\,\nabla\log f\text{ with }f=\textstyle\prod_t\rho_t\\
# &=\nabla\,\mathbb E_\text{old}\Big[A\textstyle\prod_t\rho_t\Big]&&\pi_\text{old}\text{ and }A\text{ do not depend on }\theta\\
# &\to\nabla\,\mathbb E_\text{old}\big[A\,s\big],\quad s=\Big(\textstyle\prod_t\rho_t\Big)^{1/T}&&\textbf{a choice: the }T\textbf{-th root}\\
# &\to\nabla\,\mathbb E_\text{old}\big[\min\big(sA,\ \mathrm{clip}(s)A\big)\big]&&\text{PPO's clip and min (06), once per answer}
# \end{aligned}$$
#
# With a group of $G$ answers, each with its own $s_i$, $A_i$ and $T_i$, that is the whole
# objective:
#
# $$J=\mathbb E\Big[\frac1G\sum_{i=1}^G\min\big(s_iA_i,\ \mathrm{clip}(s_i,1-\epsilon,1+\epsilon_\text{high})A_i\big)\Big]$$
#
# **Why the root?** It makes $s$ the geometric mean of the token ratios:
# $\log s=\frac1T\sum_t\log\rho_t$. Ask how far the step parted good answers from bad ones, in
# logs, when we cut all answers after $T$ tokens:

# %%
learnt = {}                             # good minus bad, in log s
for n in (25, 50, 100, 200):
    parts = [x[0][:, :n].mean(1) for x in seeds]
    learnt[n] = sum((m[x[3] > 0].mean() - m[x[3] < 0].mean()).item()
                    for m, x in zip(parts, seeds)) / 3
    print(f"T = {n:3d}: log of the product {learnt[n] * n:.2f} apart, "
          f"log s {learnt[n]:.4f} apart")

# %% [markdown]
# What is learnt adds up along the answer, so the product needs another band at every length. The
# mean keeps it at about the same size.
#
# The root has a price: $s$ is no longer an importance weight. If an answer of 1,000 tokens has
# become 1.49 times likelier, its weight should be 1.49; $s=1.49^{1/1000}=1.0004$, a weight of
# one. <!-- cited: 1.49, 1.0004 --> Read $s$ as a distance: has this answer moved far enough?
#
# Now the gradient of an answer that is not clipped:
#
# $$\begin{aligned}
# \nabla s&=s\,\nabla\log s&&\nabla f=f\,\nabla\log f\\
# &=s\cdot\frac1T\sum_t\nabla\log\pi_\theta(y_t)&&\log s=\tfrac1T\textstyle\sum_t(\log\pi_\theta-\log\pi_\text{old})
# \end{aligned}$$
#
# **Every token of an answer gets the same push, $sA$.** In GRPO token $t$ gets $\rho_tA$. The
# factor $1/T$ stands in both: GRPO chose it, here the root brings it along.
#
# <details><summary>One level deeper: the authors' own argument</summary>
#
# The paper says: an importance weight corrects only when one averages over many samples, and GRPO
# has a single token from each next-token distribution. So the token ratio corrects nothing and
# brings noise. Judge for yourself: in an exact toy the tokens' own ratios correct the gradient *on
# average*, at any length, and one shared $s$ does not ([statements](statements/13_gspo.ipynb),
# Z06). A token ratio from one sample is noisy, not broken. What is left of the argument is the
# unit: the reward judges answers.
# </details>
#
# ## Sixteen tokens
#
# The running group. The z-scores are $\pm1$.

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
# GSPO's paper lets $s$ run from $1-0.0003$ to $1+0.0004$; why so narrow, comes later. All four
# answers are far outside.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.3", "GRPO silences 4 of these 16 tokens. How many does GSPO?",
        ["16: all answers are outside", "8: two of the answers",
         "5: one of the answers", "4: the same"])

# %%
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
reveal("gspo.3", "8: two of the answers",
       "The two good answers rose, so they have had enough: all their "
       "tokens are silent, the one at 0.75 too, which GRPO would bring "
       "back. The two bad answers rose as well. That is the wrong way, and "
       "the min keeps them alive, the one at 0.70 included, which GRPO "
       "had silenced. **Outside is not cut, for answers as for tokens.**",
       token_grid.token_grid(batch, grids, caption=(
           "GRPO decides token by token. GSPO gives all tokens of an "
           "answer one push, and they live or die together.")),
       instead={
           "16: all answers are outside":
           "All four are outside. Two of them went the wrong way.",
           "5: one of the answers":
           "One of the good ones would be five.",
           "4: the same":
           "It counts answers, not tokens.",
       })

# %% [markdown]
# ## What does the band cost?
#
# Back to the first step of this page, and its 64 answers. GSPO's clip, as one line:

# %%
def silent_answers(gap, A, low=3e-4, high=4e-4):
    s = gap.mean(1).exp()
    return int(torch.where(A > 0, s > 1 + high, s < 1 - low).sum())

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.4", "GRPO silenced 31 of 12,800 tokens. How many of the 64 "
        "answers does GSPO silence, before the batch's second step?",
        ["none: the mean takes the leaps away",
         "about 5: those in which a token leapt",
         "about 15: the good ones that moved most",
         "about 45: most of those that moved the right way"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def counts(runs, k=0):
    return ", ".join(str(silent_answers(x[k], x[3])) for x in runs)

slow = counts([one_step(0, rate=3e-5)])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.4", "about 45: most of those that moved the right way",
       f"{counts(seeds)} (three policies). And without flips? GRPO's 31 "
       f"became 0; here it is **{counts(seeds, 1)}**, more. This clip "
       "stops *learning*: one step parted good from bad by "
       f"{learnt[200]:.4f} in log s, seven times the band. So the "
       "band is a limit on the step; with a tenth of the learning rate "
       f"{slow} of the first 64 are silent.\n\n"
       "A real run pays as well: the paper reports 15 % of the tokens "
       "clipped under GSPO, 0.13 % under GRPO, and GSPO learns faster all "
       "the same. Its authors take that as a sign that GRPO's token "
       "gradients are noisy. No run of theirs separates this from other "
       "causes, and our toy cannot: the question is open.",
       instead={
           "none: the mean takes the leaps away":
           "The leaps, yes. What was learnt is left, and the band is "
           "narrow.",
           "about 5: those in which a token leapt":
           "A leap is diluted by its 200 tokens.",
           "about 15: the good ones that moved most":
           "The right kind, and too few.",
       })

# %% [markdown]
# ## Why 3e-4 and not 0.2?
#
# **First reading: what may become of the whole answer.** Its own ratio is $s^T$. Take $s$ at the
# edge of a band:

# %%
for n in (1000, 4000):
    print(f"{n} tokens, 3e-4 and 4e-4: {(1 - 3e-4)**n:.2f} to "
          f"{(1 + 4e-4)**n:.2f}")
print(f"1000 tokens, 0.2: up to {1.2**1000:.0e}")

# %% [markdown]
# With 0.2 an answer of 1,000 tokens may become $10^{79}$ times likelier: no limit at all. With
# GSPO's band it stays between 0.74 and 1.49. At 4,000 tokens that is already 0.30 to 4.95.
#
# **Second reading: noise.** To see what is noise we need a change with no learning in it. So take
# the step away and add a little noise of mean zero to every score of the router. First without
# flips: every token keeps its old experts.

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: 64 answers of 512 tokens, noise on the router, old experts held
with torch.no_grad():
    old, dice = RouterPolicy(seed=0), torch.Generator().manual_seed(0)
    words = old.sample(64, 512, dice)
    noise = 0.03 * torch.randn(64, 512, 4, 8, generator=dice)
    logp, routes = old.logprobs(words)
    calm = old.logprobs(words, routes, noise)[0] - logp      # log ratios
lengths = (8, 32, 128, 512)

# %%
spreads = [calm[:, :n].mean(1).std().item() for n in lengths]
pictures.spread_by_length(lengths, spreads, calm.std().item(), learnt)

# %% [markdown]
# Without flips the tokens' log ratios are small, of either sign, and nearly independent. The mean
# of $T$ such numbers has spread $\sigma_\rho/\sqrt T$, where $\sigma_\rho$ is the spread of one of
# them (not $\sigma_R$, the rewards'). So both are true: what is learnt stays, noise shrinks. Long
# answers are easier to read, and a fixed band silences more *short* ones by accident. In this toy
# noise comes down to GSPO's band at about 2,000 tokens. PPO's 0.2 it never meets.
#
# Two readings of ours: the paper gives the numbers, and no derivation that we found.
#
# ## Do the flips average out?
#
# Same noise, and now let the router choose.

# %%
with torch.no_grad():
    after, used = old.logprobs(words, None, noise)
free = after - logp
print(f"{flipped(routes, used).double().mean():.1%} of the tokens flip; "
      f"spread of one token's log ratio {calm.std():.3f} without flips, "
      f"{free.std():.3f} with")

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.5", "The noise has mean zero, nothing was learnt. Longer and "
        "longer answers: where does s go?",
        ["to 1: the flips average out",
         "to a number below 1",
         "to a number above 1",
         "nowhere: its spread stays"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
with torch.no_grad():
    p = old.distributions(words)          # (64, 512, 16), log pi
    q = old.distributions(words, None, noise)
kl = (p.exp() * (p - q)).sum(-1).mean().item()
reveal("gspo.5", "to a number below 1",
       f"Mean of log s {free.mean():.4f}; the exact KL per token "
       f"is {kl:.4f}. Mean zero in the router is not mean zero in log ρ: "
       r"$\mathbb E_\text{old}[\log\rho_t]=-\mathrm{KL}"
       r"(\pi_\text{old}\Vert\pi_\theta)\le0$, by the definition of the KL "
       r"(05). So $\log s$ goes to minus the KL per token, roughly "
       rf"$\sigma_\rho^2/2={free.std()**2 / 2:.3f}$. The spikes "
       "average away, their cost does not. Below the band *bad* answers "
       "are silent, although nothing was learnt.",
       pictures.settling(lengths, {"router free": free,
                                   "old experts held": calm}, kl),
       instead={
           "to 1: the flips average out":
           "Mean zero in the router is not mean zero in log ρ.",
           "to a number above 1":
           "The mean of ρ is 1. The mean of its log is below that of 1.",
           "nowhere: its spread stays":
           "The spread shrinks with length. Look at the middle.",
       })

# %% [markdown]
# The same toy to play with; here you set the share of flipped tokens yourself.

# %%
task("gspo.t1", answer_ratio.answer_ratio_explorer(),
     ("ε = 0.2: get an answer outside.", answer_ratio.wide_band_cuts),
     ("At least 1 % of flips, ε = 2e-3, 2.5e-3: get 60 % of the answers "
      "inside.", answer_ratio.best_length),
     ("GSPO's band: more than 95 % of the answers below it, fewer than 5 % "
      "above.", answer_ratio.one_sided))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Eight or sixteen tokens and many flips, 6 % for example. In a longer answer no token can move
#    the mean so far.
# 2. 32 or 64 tokens, neither fewer nor more: noise is smaller in long answers, but fewer of them
#    are free of flips.
# 3. Flips *and* long answers, 6 % and 512 for example: nearly every bad answer would be silent,
#    hardly a good one.
# </details>
#
# | moves a token's ratio | in the log of the product | in $\log s$ |
# |---|---|---|
# | what was learnt | grows with $T$ | stays |
# | noise | grows with $\sqrt T$ | shrinks, $\sigma_\rho/\sqrt T$ |
# | flips | fall with $T$ | stay, at minus the KL |
#
# So GSPO treats a symptom of the flips. **Routing replay** treats the cause: the new policy uses
# the old one's experts. Its price: routes must be stored, and the new router's own choice is not
# what is trained. Back to the first step, the share of *answers* that moved the way their advantage
# asks:

# %%
for name, k in (("as routed", 0), ("old experts held", 1)):
    print(f"{name:17s}", *(f"{right_way(x[k].mean(1), x[3]):.0%}"
                           for x in seeds))

# %% [markdown]
# The paper's mixture of experts needed replay under GRPO, and not under GSPO. One gradient step
# changes about 10 % of its experts, in 48 layers
# ([arXiv 2507.18071](https://arxiv.org/abs/2507.18071), section 5.3). What a flip costs there is
# not reported; our random experts are strangers to each other, so take the sign from the toy and
# not the size.
#
# ## GMPO: clip first, then average
#
# Under GSPO one token can silence its whole answer. **GMPO** keeps the geometric mean, but cuts
# every token's $\log\rho_t$ *before* the mean: at $+0.4$ if $A>0$, at $-0.4$ if $A<0$. A token that
# was cut gets no gradient; the others share the mean. In ratios the edges are 1.49 and
# 0.67. <!-- cited: 1.49, 0.67 --> The sixteen tokens once more:

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.6", "GRPO silences 4, GSPO 8. And GMPO?",
        ["8: it has one mean per answer, too",
         "4: it clips tokens, too",
         "1: only one has gone too far the way it is pushed",
         "0: the mean takes care of all"])

# %%
cut4 = torch.where(A4[:, None] > 0, log_rho.clamp(max=0.4),
                   log_rho.clamp(min=-0.4))
gmpo = push((T * (cut4.sum(1) / T).exp() * A4).sum())

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.6",
       "1: only one has gone too far the way it is pushed",
       "Only the token at 6.00. 1.40 and 0.70 are inside GMPO's edges, "
       "and 3.50 has moved the wrong way. The four others of answer 1 live "
       f"on and share one push, {gmpo[1, 0]:.2f}: the token at 6.00 "
       "counts in their mean, as 1.49.",
       token_grid.token_grid(batch, {"GSPO": grids["GSPO"], "GMPO": gmpo},
                             caption=(
           "GMPO has one push per answer as GSPO has, and silences single "
           "tokens as GRPO does.")),
       instead={
           "8: it has one mean per answer, too":
           "One mean, but it clips tokens first.",
           "4: it clips tokens, too":
           "Tokens, but its edges are at e^−0.4 and e^0.4.",
           "0: the mean takes care of all":
           "The mean does not bring back a token that was cut.",
       })

# %% [markdown]
# All three rules on an answer in which a single token has moved:

# %%
task("gspo.t2", one_outlier.one_outlier_explorer(),
     ("GRPO silences the token that leapt, GSPO nothing. How small must "
      "the leap be, how long the answer?", one_outlier.grpo_only),
     ("One token silences an answer of 4,096 tokens under GSPO.",
      one_outlier.long_and_silent),
     ("|log ρ| of 2 or more, and nothing is silent under any rule.",
      one_outlier.nobody))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# <!-- cited: 0.25, 1.75, 0.13 % -->
# 1. A log ratio of 0.25 in 1,024 tokens, for example: $s$ moves by 0.25/1,024, less than 4e-4.
#    Short answers never do it.
# 2. A log ratio of 1.75 or more in a good answer. GMPO silences one token and leaves 4,095.
# 3. The wrong way: a good token that fell, a bad one that rose. The min spares it in all three.
# </details>
#
# ## In a real run
#
# * **When it matters.** From the second gradient step on a rollout batch on (the paper cuts its
#   batch in four; each answer is used once). On the first step every $s$ is 1 and GSPO's gradient
#   is GRPO's. The paper takes four steps per batch.
# * **Inputs.** `old_logprobs` from the trainer, before the first step, as in 08; then one masked
#   mean per row. Log-probs from the sampler would put the gap between the two engines into $s$, and
#   the band is narrow: that is a weight of its own (04).
# * **What to log.** The share of *answers* that the clip silences, for good and bad ones apart, and
#   by length. Nearly all of them bad: look for flips or old samples. Nearly all answers after one
#   step: the band is small for your learning rate.
# * **TRL:** `importance_sampling_level="sequence"`, `loss_type="grpo"`, `epsilon=3e-4`,
#   `epsilon_high=4e-4`, `steps_per_generation=4`. **verl:** `loss_mode="gspo"`, and the two
#   `clip_ratio`s: they stay at 0.2 unless you set them.
#
# <details><summary>One level deeper: advantages per token, two replays, does it train better?</summary>
#
# * **GSPO-token** gives token $t$ the ratio $\mathrm{sg}[s]\cdot\pi_t/\mathrm{sg}[\pi_t]$; sg stops
#   the gradient. Its value is $s$, its gradient the token's own. With one advantage per answer it
#   equals GSPO; with an advantage per token the credit stays where it belongs. verl's `gspo` is
#   this form.
# * **Two replays.** Routing replay: new weights, the *old policy's* experts. R3, rollout routing
#   replay: the trainer uses the experts that the *inference engine* chose, at the same weights
#   ([arXiv 2510.11370](https://arxiv.org/abs/2510.11370)). GSPO is offered in place of the first.
# * **Does it train better?** This toy cannot say. Its reward is so easy that it needs no clip, and
#   GSPO's band acts as a smaller step ([statements](statements/13_gspo.ipynb)). The evidence for
#   GSPO is the paper's runs.
# </details>
#
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
# | in $\log s$ | what is learnt stays, noise shrinks as $\sigma_\rho/\sqrt T$, flips leave $-\mathrm{KL}$ |
# | flips | replay removes them, GMPO clips before the mean |

# %%
print("GRPO -> GSPO")
print(difference(ZOO["grpo"].replace(terms=()), ZOO["gspo"]))
score("gspo.1", "gspo.2", "gspo.3", "gspo.4", "gspo.5",
      "gspo.6")

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
# **3 Find the silent bug** · 8 minutes. GSPO-token's ratio: $s$ of the answer on every token, with
# the token's own gradient. All its values are right, losses agree to the last digit, and models
# train:

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
# <details><summary><b>Is s the correct importance weight?</b></summary>
#
# No, the product is, with a variance that explodes. Its T-th root corrects almost
# nothing: <!-- cited: 1.49, 1.0004 --> 1.49 at 1,000 tokens becomes 1.0004. It is a distance that
# decides whether an answer may still push, once for all its tokens, as its reward was given.
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
# <details><summary><b>Why does GRPO struggle with mixtures of experts, and does GSPO fix it?</b></summary>
#
# Router flips make single ratios leap, and the token clip then silences by accident. GSPO averages
# the leaps, so no flipped token decides alone. What stays is a drop of log s by the KL that flips
# cost, at any length; below the band bad answers fall silent. Routing replay removes the cause.
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
