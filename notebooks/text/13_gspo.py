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
# **After this page** you can derive GSPO's ratio and its gradient, say why its band is a thousand
# times narrower than PPO's, and say what it does and does not do for a mixture of experts.
#
# 26 minutes, exercises 32 more · after 04 (importance sampling), 05 (KL), 06 (PPO), 08 (GRPO) ·
# GSPO, Zheng et al. 2025, [arXiv 2507.18071](https://arxiv.org/abs/2507.18071); GMPO, Zhao et al.
# 2025, [arXiv 2507.20673](https://arxiv.org/abs/2507.20673)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What is the importance ratio of a whole answer, and what is wrong with it?</summary>The product of its token ratios ρ. Its variance explodes with the length (04).</details>
# <details><summary>2. Which line of PPO's derivation is a choice?</summary>Each token keeps its own ratio, instead of the product over the answer (06).</details>
# <details><summary>3. Which tokens does GRPO's clip silence?</summary>Good ones above 1 + ε and bad ones below 1 − ε, as in PPO (06, 08).</details>

# %% tags=["setup"]
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
def one_step(seed, rate=3e-4, n=64, T=200):
    """Log ratios as routed, the same with old experts held, flips, A, y.

    64 answers to one prompt, to be used again after one Adam step.
    """
    old = RouterPolicy(seed=seed)
    y = old.sample(n, T, torch.Generator().manual_seed(seed))
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
gap, held, flips, A, words = one_step(seed=0)     # log rho (64, 200)
pictures.leaps({"ratios after one step": gap[4].exp()})

# %% [markdown]
# Most tokens have hardly moved. A few have leapt. GRPO's clip looks at each alone:

# %%
def silenced(gap, A, epsilon=0.2):
    """True where the clip takes a token's gradient, (64, 200)."""
    rho, good = gap.exp(), (A > 0)[:, None]
    return torch.where(good, rho > 1 + epsilon, rho < 1 - epsilon)

cut = silenced(gap, A)
print(f"the clip silences {int(cut.sum())} of {cut.numel():,} tokens")

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.1", "Same new weights, but send every token through the "
        "experts that the old policy used. How many of the 31 does the "
        "clip silence then?",
        ["31: the experts hardly matter, the step does",
         "about 20: a flip adds to what was learnt",
         "about 10: most leaps need a flip",
         "none: without flips nothing has leapt"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
big = one_step(seed=0, rate=1e-3)
bold = silenced(big[0], big[3])
reveal("gspo.1", "none: without flips nothing has leapt",
       f"**{int(silenced(held, A).sum())}**. A flip is rare, "
       f"{flips.double().mean():.1%} of the tokens, but it is in "
       f"{int((cut & flips).sum())} of the {int(cut.sum())}. So here the "
       "clip does not stop what has learnt enough, it stops what the "
       "router happened to move. "
       "(After a step three times as large both kinds are there: "
       f"{(bold & big[2]).sum() / bold.sum():.0%} of {int(bold.sum())} "
       "have a flip.)",
       pictures.leaps({"as routed": gap[4].exp(),
                       "old experts held": held[4].exp()}))

# %% [markdown]
# Learning should raise the tokens of good answers and lower those of bad ones. Count the tokens for
# which the ratio went that way.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.2", "What share of all tokens moved the way their advantage "
        "asks?",
        ["about 95 %", "about 85 %", "about 70 %", "about 55 %"])

# %%
def right_way(log_ratio, A):
    """Share that rose where A > 0 and fell where A < 0."""
    return ((log_ratio > 0) == (A > 0)).double().mean().item()

seeds = [(gap, held, flips, A, words), one_step(1), one_step(2)]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
by_token = [right_way(x[0], x[3][:, None]) for x in seeds]
by_answer = [right_way(x[0].mean(1), x[3]) for x in seeds]

def rose(chosen):
    """Share of the chosen words, or of the others, that rose."""
    return torch.cat([(x[0] > 0)[(x[4] < 4) == chosen]
                      for x in seeds]).double().mean().item()

reveal("gspo.2", "about 55 %",
       "By token " + ", ".join(f"{x:.0%}" for x in by_token)
       + " (three policies). Add up the log ratios of an answer and look "
       "once per answer: "
       + ", ".join(f"**{x:.0%}**" for x in by_answer)
       + ". That is not noise. The step raises the four chosen words "
       f"({rose(True):.0%} of them rose) and lowers the rest "
       f"({rose(False):.0%} rose), in good and in bad answers alike. A "
       "token's ratio follows its word. Only the sum follows the answer.",
       pictures.where_it_shows(torch.cat([x[0] for x in seeds]),
                               torch.cat([x[3] for x in seeds])))

# %% [markdown]
# **The reward judged the sum. So clip the sum: one ratio per answer, one decision.** That is GSPO,
# group sequence policy optimization. Its authors' own argument is older: a ratio corrects a
# *distribution*, and from each token's distribution there is one sample only.

# %%
pipeline.pipeline("ratio", "loss", caption=(
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
# The root makes $s$ the geometric mean of the token ratios: $\log s=\frac1T\sum_t\log\rho_t$. Why
# take it? Ask how far the step parted good answers from bad ones, in logs, when we cut all answers
# after $T$ tokens:

# %%
for n in (25, 50, 100, 200):
    apart = 0.0                         # good minus bad, mean of 3 policies
    for log_ratio, _, _, adv, _ in seeds:
        total = log_ratio[:, :n].sum(1)
        apart += (total[adv > 0].mean() - total[adv < 0].mean()).item() / 3
    print(f"T = {n:3d}: log of the product {apart:.2f} apart, "
          f"log s {apart / n:.4f} apart")

# %% [markdown]
# What is learnt adds up along the answer, so the product needs another band at every length; per
# token, in $\log s$, it stays about the same. The root has a price: $s$ is no longer the importance
# weight. An answer of 1,000 tokens that became 1.49 times likelier has
# $s=1.0004$ <!-- cited: 1.49, 1.0004 --> and counts as if nothing had happened. Read $s$ as a
# distance: has this answer moved far enough?
#
# Now the gradient of an answer that is not clipped:
#
# $$\begin{aligned}
# \nabla s&=s\,\nabla\log s&&\nabla f=f\,\nabla\log f\\
# &=s\cdot\frac1T\sum_t\nabla\log\pi_\theta(y_t)&&\log s=\tfrac1T\textstyle\sum_t(\log\pi_\theta-\log\pi_\text{old})
# \end{aligned}$$
#
# **Every token of an answer gets the same push, $sA$.** In GRPO token $t$ gets $\rho_tA$. The
# factor $1/T$ stands in both: GRPO chose it, here the root brings it along. The whole objective:
#
# $$J=\frac1G\sum_{i=1}^G\min\big(s_iA_i,\ \mathrm{clip}(s_i,1-\epsilon_\text{low},1+\epsilon_\text{high})A_i\big)$$
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
    print(f"answer {i}, A {A4[i]:+.0f}: s {s4[i]:.2f}    token ratios",
          *(f"{x:.2f}" for x in own))

# %% [markdown]
# GSPO's paper lets $s$ run from $1-0.0003$ to $1+0.0004$; why so narrow, comes next. All four
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
           "answer one push, and they live or die together.")))

# %% [markdown]
# And on the toy of the opening? There GRPO silences 31 of 12,800 tokens after one step.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.7", "How many of its 64 answers does GSPO silence after that "
        "step?",
        ["none: a mean over 200 tokens hardly moves",
         "about 5: those with many flips",
         "about 20, a third",
         "about 45: most of those that moved the right way"])

# %%
def silent_answers(gap, A, low=3e-4, high=4e-4):
    s = gap.mean(1).exp()                                    # (64,)
    return torch.where(A > 0, s > 1 + high, s < 1 - low)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.7", "about 45: most of those that moved the right way",
       ", ".join(f"**{int(silent_answers(x[0], x[3]).sum())}**"
                 for x in seeds)
       + " of 64 (three policies). One step is already ten times the band. "
       "So GSPO's band says: one step in this direction, then stop. The "
       "paper has it milder and still striking: GSPO clipped 15 % of the "
       "tokens, GRPO 0.13 %, and GSPO learnt faster. Why, is not settled.")

# %% [markdown]
# ## Why 3e-4 and not 0.2?
#
# Put PPO's band on $s$. A good answer of 1,000 tokens becomes likelier step by step, until $s=1.2$
# and the clip silences it.

# %% jupyter={"source_hidden": true}
# your guess
predict("gspo.4", "How many times likelier has the whole answer become?",
        ["1.2 times: that is what the band says",
         "about 200 times: 0.2 for each of 1,000 tokens",
         "about 10^79 times: 1.2 for each of 1,000 tokens",
         "it depends on which tokens rose"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("gspo.4", "about 10^79 times: 1.2 for each of 1,000 tokens",
       r"The answer's own ratio is $s^T=1.2^{1000}$, "
       f"{1.2**1000:.0e}, whichever tokens rose: no limit at all. With "
       f"GSPO's band it is {(1 - 3e-4)**1000:.2f} to "
       f"{(1 + 4e-4)**1000:.2f} at 1,000 tokens; at 4,000 it is "
       f"{(1 - 3e-4)**4000:.2f} to {(1 + 4e-4)**4000:.2f}. That is one "
       "reading of 3e-4 and 4e-4, about 600 times narrower than PPO's. The "
       "paper gives the numbers, and no derivation that we found.")

# %% [markdown]
# A second reading: a band should be wider than what $s$ does by chance. To see chance alone we need
# a change with no learning in it. So no step: a little noise of mean zero on every score of the
# router, in longer answers, 512 tokens. First without flips, every token keeps its old experts.

# %%
with torch.no_grad():
    old, dice = RouterPolicy(seed=0), torch.Generator().manual_seed(0)
    y = old.sample(128, 512, dice)
    noise = 0.03 * torch.randn(128, 512, 4, 8, generator=dice)
    logp, routes = old.logprobs(y)
    calm = old.logprobs(y, routes, noise)[0] - logp      # log ratios
lengths = (8, 32, 128, 512)
spreads = [calm[:, :n].mean(1).std().item() for n in lengths]
pictures.spread_by_length(lengths, spreads, calm.std().item())

# %% [markdown]
# What is learnt adds up; chance cancels: a mean of $T$ nearly independent numbers of mean zero
# shrinks as $1/\sqrt T$. So the natural width of a band on $s$ is $\sigma/\sqrt T$, where $\sigma$
# is the spread of one token's log ratio. In this toy the line meets GSPO's band at about 2,000
# tokens; another $\sigma$ would put it elsewhere. A band of 0.2 it never meets. And under one band
# for all lengths, short answers are silenced by chance first.
#
# ## Do the flips average out?
#
# Now let the router choose.

# %%
with torch.no_grad():
    after, used = old.logprobs(y, None, noise)
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
    p = old.distributions(y[:64])              # (64, 512, 16), log pi
    q = old.distributions(y[:64], None, noise[:64])
kl = (p.exp() * (p - q)).sum(-1).mean().item()
reveal("gspo.5", "to a number below 1",
       f"Mean of log s {free.mean():.4f}; the exact KL per token "
       f"is {kl:.4f}. Mean zero in the router is not mean zero in log ρ: "
       r"$\mathbb E_\text{old}[\log\rho_t]=-\mathrm{KL}"
       r"(\pi_\text{old}\Vert\pi_\theta)\le0$, by the definition of the KL "
       r"(05). So $\log s$ goes to minus the KL per token. The spikes "
       "average away, their cost does not. Below the band *bad* answers "
       "are silent, although nothing was learnt.",
       pictures.settling(lengths, {"router free": free,
                                   "old experts held": calm}, kl))

# %% [markdown]
# The same toy to play with; here you set the share of flipped tokens yourself.

# %%
task("gspo.t1", answer_ratio.answer_ratio_explorer(),
     ("Take ε = 0.2 and get an answer outside. Try longer answers first.",
      answer_ratio.wide_band_cuts),
     ("GSPO's band: bring half of the answers inside.",
      answer_ratio.half_inside),
     ("GSPO's band: more than 95 % of the answers below it, fewer than 5 % "
      "above.", answer_ratio.one_sided))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Eight or sixteen tokens and many flips, 6 % for example. In a longer answer no token can move
#    the mean so far.
# 2. No flips at all and 512 tokens. Half a per cent of flips spoils it at every length.
# 3. Flips *and* long answers, 6 % and 512 for example: nearly every bad answer would be silent,
#    hardly a good one.
# </details>
#
# So there are three things that one can do about flips:
#
# | | what happens to a flipped token | what remains |
# |---|---|---|
# | GRPO | its own clip may silence it | tokens fall silent by accident |
# | GSPO | averaged with its whole answer | $\log s$ is too low by the KL of the flips |
# | routing replay | the new policy uses the old experts: no flip | routes must be stored, and the router's new choices are never used |
#
# GSPO treats the symptom, replay the cause. Back to the first step of the page: the share of
# answers that moved the way their advantage asks, three policies.

# %%
for name, k in (("as routed", 0), ("old experts held", 1)):
    print(f"{name:17s}", *(f"{right_way(x[k].mean(1), x[3]):.0%}"
                           for x in seeds))

# %% [markdown]
# The paper trained its mixture of experts with GRPO only
# with routing replay, and with GSPO without it. It reports that one gradient step changes about 10
# % of the experts in a 48-layer model ([arXiv 2507.18071](https://arxiv.org/abs/2507.18071),
# section 5.3). How much a flip costs there is not reported; our random experts are strangers to
# each other, so take the sign from the toy and not the size.
#
# ## GMPO: clip first, then average
#
# Under GSPO a single token can still silence its whole answer. **GMPO** keeps the geometric mean,
# but cuts every token's $\log\rho_t$ *before* the mean: at $+0.4$ if $A>0$, at $-0.4$ if $A<0$. A
# token that was cut gets no gradient; the others share the mean. In ratios the edges are $e^{0.4}$
# and $e^{-0.4}$, 1.49 and 0.67 <!-- cited: 1.49, 0.67 -->. The sixteen tokens once more:

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
gate = ZOO["gmpo"].explain(batch).gate.abs() * A4[:, None]
assert torch.allclose(gmpo[batch.mask], gate[batch.mask])

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
           "tokens as GRPO does.")))

# %% [markdown]
# All three rules on an answer in which a single token has moved:

# %%
task("gspo.t2", one_outlier.one_outlier_explorer(),
     ("GRPO silences the token that leapt, GSPO nothing. How small must "
      "the leap be, how long the answer?", one_outlier.grpo_only),
     ("One token silences an answer of 4,096 tokens under GSPO.",
      one_outlier.long_and_silent),
     ("A |log ρ| of 2 or more, and nothing is silent under any rule.",
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
# * **When it matters.** Only when a batch is used more than once. On the first step every $s$ is 1
#   and GSPO's gradient is GRPO's. The paper takes four steps per batch.
# * **Inputs.** `old_logprobs` from the trainer, before the first step, as in 08; then one masked
#   mean per row.
# * **What to log.** The share of *answers* that the clip silences, for good and bad ones apart. If
#   nearly all of them are bad, look for flips or old samples.
# * **Dense models.** No flips there, so this page's first argument falls away; the second, one
#   decision for what the reward judged, stays. The paper's runs are with mixtures.
# * **TRL:** `importance_sampling_level="sequence"`, `loss_type="grpo"`, `epsilon=3e-4`,
#   `epsilon_high=4e-4`, `steps_per_generation=4`. **verl:** `loss_mode="gspo"`, and the two
#   `clip_ratio`s: they stay at 0.2 unless you set them.
# * **A trap.** Set `loss_agg_mode=seq-mean-token-mean` in verl: versions differ in whether GSPO
#   obeys it.
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
# | silent | whole answers: good ones with $s$ above $1+\epsilon$, bad ones below |
# | picture | rows of the token grid live or die together |
# | numbers | band 3e-4 and 4e-4 · $1.2^{1000}\approx10^{79}$ · one step of the toy: 45 to 50 of 64 answers silent |
# | derived | the product; the equal push on all tokens |
# | choices | the $T$-th root, clip and min, the band |
# | flips | $\log s\to-\mathrm{KL}$ per token, not 0; replay removes them, GMPO clips before the mean |

# %%
print("GRPO -> GSPO")
print(difference(ZOO["grpo"].replace(terms=()), ZOO["gspo"]))
score("gspo.1", "gspo.2", "gspo.3", "gspo.4", "gspo.5",
      "gspo.6", "gspo.7")

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
# moved. `advantages` is (B,), the band runs from $1-$`epsilon` to $1+$`epsilon_high`.
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
# Because s is a rate per token. <!-- cited: 1.0004 --> 1.2 to the power of 1,000 is 10^79; 1.0004
# to the same power is 1.49, a PPO-like band for the whole answer. And without any learning s strays
# by σ/√T, a few 1e-4 at some hundred tokens. Both are readings: the paper gives the numbers.
# </details>
# <details><summary><b>Is s the correct importance weight?</b></summary>
#
# No, the product is, with a variance that explodes. Its T-th root corrects almost nothing. It is a
# distance that decides whether an answer may still push, once for all its tokens, as its reward was
# given.
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
# <details><summary><b>Routing replay or R3?</b></summary>
#
# Two names, two gaps. Routing replay: the new policy uses the old policy's experts. R3: the trainer
# uses the experts of the inference engine. GSPO is offered in place of the first. R3's authors
# report doing better than GSPO.
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
