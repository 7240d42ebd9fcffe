# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 14 · The zoo: how many losses are there, really?
#
# **After this page** you can write a method you have never seen as one line of seven choices, say
# which of them act in a run, and judge a claim that one loss beats another.
#
# 34 minutes, then 14 in a second sitting · exercises 18 more · after 08 (GRPO), 10 (Dr. GRPO), 11
# (DAPO), 12 (soft edges), 13 (GSPO)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Which tokens does PPO's clip silence?</summary>Good ones whose ratio is above the band, and bad ones below it (06).</details>
# <details><summary>2. Which two divisors does Dr. GRPO drop?</summary>The group's std, and each answer's own length; a constant takes its place (10).</details>
# <details><summary>3. What does CISPO do with the ratio?</summary>It caps it and uses it as a weight without gradient, on A log π (12).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
from statistics import mean
import torch
from rlnb import ZOO, check, from_trl, from_verl
from rlnb.classroom.explorers import composer, race_rates
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import labs, race, token_grid, zoo as pictures
from rlnb.classroom.explorers.race_rates import in_words
from rlnb.interop.labs import lab
from rlnb.objective import group_zscore, ratio
from rlnb.toys import running_batch, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# helpers, folded: fresh(batch), push(objective, batch), plain(name)
def fresh(batch):
    """The batch before its first update: old policy and engine agree."""
    now = batch.logprobs.detach()
    return batch.replace(old_logprobs=now, sampling_logprobs=now)

def push(objective, batch):
    """-dL/dlog pi of every token, in units of an average token's share."""
    slope, = torch.autograd.grad(objective(batch).loss, batch.logprobs)
    return -slope * batch.mask.sum()

def plain(name):
    """The method without its KL to a reference."""
    return ZOO[name].replace(terms=())

# %% [markdown]
# ## Three teams, one batch
#
# Three teams train on the same four answers. Each team writes one word into its library's settings
# and leaves everything else at the default. A token's *push* is minus the slope of the loss in its
# log-probability: above 0 it makes the token likelier.

# %%
teams = {"team 1: TRL, 'grpo'": from_trl(loss_type="grpo").objective,
         "team 2: TRL, 'dapo'": from_trl(loss_type="dapo").objective,
         "team 3: verl, 'grpo'": from_verl(adv_estimator="grpo").objective}
group = running_group()              # rewards 1, 1, 0, 0; 16 tokens
first = fresh(group)                 # no update yet

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.1", "The first step on this batch. Which teams take the same "
        "one?",
        ["2 and 3: their losses average alike",
         "1 and 2: their library is the same",
         "1 and 3: their method is the same",
         "all three: no ratio has moved yet"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.1", "2 and 3: their losses average alike",
       "One says DAPO, the other GRPO, and their pushes agree to three "
       "digits. TRL's word picks how tokens are averaged: `'grpo'` is a "
       "mean per answer, `'dapo'` one mean over all tokens. verl's "
       "`adv_estimator` picks only the advantage. Its averaging is another "
       "setting, and the default is one mean over all tokens.",
       token_grid.token_grid(
           first, {name: push(o.replace(advantage=group_zscore()), first)
                   for name, o in teams.items()},
           count="", caption="The push on each token, in units of an "
           "average token's share (times 16). Left, a token of a short "
           "answer counts more. Middle and right, all count alike. A is "
           "±1: here a std is always the population's. Both libraries "
           "take the sample's, which makes every push 0.87 times this."),
       instead={
           "1 and 3: their method is the same":
           "The word is the same. The average is not.",
           "1 and 2: their library is the same":
           "The library is. Its two words choose two averages.",
           "all three: no ratio has moved yet":
           "That makes their clips agree. They still average differently.",
       })

# %% [markdown]
# A name does not say which loss runs. What does?
#
# ## Which choices make a loss?
#
# Let $\pi_t$ be the probability of token $t$ under the policy, $\rho_t$ its ratio to the old
# policy, $R$ the reward of the answer. Start from the policy gradient. An arrow marks a step that
# somebody *chose*:
#
# $$\begin{aligned}
# \nabla J&=\mathbb E\Big[\textstyle\sum_t R\,\nabla\log\pi_t\Big]&&\text{REINFORCE (02)}\\
# &\to\mathbb E\Big[\textstyle\sum_t A\,\nabla\log\pi_t\Big]&&\textbf{the advantage}\text{: a baseline keeps the mean's direction (03), a std per prompt does not (09)}\\
# &\to\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi_t\Big]&&\textbf{the ratio}\text{, for old answers: each token by its own (04)}\\
# &=\nabla\,\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\Big]&&\text{no choice: }\nabla\rho=\rho\,\nabla\log\pi\text{ (06)}\\
# &\to\nabla\,\mathbb E_\text{old}\Big[\textstyle\sum_t f(A,\rho_t)\Big]&&\textbf{the surrogate }f\text{, for ratios far from 1}\\
# &\to\nabla\,\mathbb E_\text{old}\Big[\textstyle\sum_t g_t\,f(A,\rho_t)\Big]&&\textbf{a gate}\text{ for tokens one does not trust: a factor without gradient}\\
# &\to\nabla\,\textstyle\sum_{i,t}c_{i,t}\,g_{i,t}\,f(A_i,\rho_{i,t})&&\textbf{the weights}\text{: how much token }t\text{ of answer }i\text{ counts}
# \end{aligned}$$
#
# A loss is minimised, so turn the sign. **Terms** $h$, such as a KL, pull beside the reward:
#
# $$L=-\sum_{i,t}c_{i,t}\;g_{i,t}\;f(A_i,\rho_{i,t})+\sum\beta\,h$$
#
# With the **reward** these are seven choices. **A method is one line: an entry for each of them.**
# Outside stands what is sampled: DAPO's dynamic sampling (11) chooses the batch, not the loss.
#
# For the ratio, only the product over all tokens of an answer is exact (04), and its variance
# grows with the length. Two approximations are in use: one ratio *per token*, and GSPO's *per
# answer*, the exponential of the answer's mean log-ratio.

# %%
pictures.seven_choices()

# %% [markdown]
# As code, five methods take one line each:

# %%
def loss(A, rho, f, c, gate=1.0):
    """To minimise. A, rho, c, gate: (answers, tokens)."""
    return -(c * gate * f(A, rho)).sum()

def clipped(low, high):
    return lambda A, rho: torch.minimum(
        rho * A, rho.clamp(1 - low, 1 + high) * A)

def capped(cap):                     # log rho has the slope of log pi
    return lambda A, rho: rho.clamp(max=cap).detach() * A * rho.log()

# %% tags=["setup"] jupyter={"source_hidden": true}
# the batch from here on, folded: two prompts of four answers, used for
# some steps; two advantages, two ratios, three averages by hand
batch = running_batch(complete=True)
mask, T = batch.mask, batch.mask.sum(1, keepdim=True)
gap = (batch.logprobs - batch.old_logprobs).where(mask, 0)   # log rho
R = batch.rewards.view(2, 4)
assert R.sum(1).tolist() == [2, 1]
mean_only = R - R.mean(1, keepdim=True)
zscore = mean_only / (R.std(1, correction=0, keepdim=True) + 1e-6)
centred, z = (x.view(8, 1).expand_as(gap) for x in (mean_only, zscore))
token = gap.exp()
answer = (gap.sum(1, keepdim=True) / T).exp().expand_as(gap)   # GSPO
per_answer, alike, constant = mask / (8 * T), mask / mask.sum(), mask / 64

# %% [markdown]
# `z` is the advantage with std, `centred` without; `token` and `answer` are the two ratios;
# `per_answer`, `alike` and `constant` are three averages.

# %%
mine = {
    "grpo": loss(z, token, clipped(0.2, 0.2), per_answer),
    "dr_grpo": loss(centred, token, clipped(0.2, 0.2), constant),
    "dapo": loss(z, token, clipped(0.2, 0.28), alike),
    "cispo": loss(z, token, capped(5), alike),
    "gspo": loss(z, answer, clipped(3e-4, 4e-4), per_answer)}

# %% tags=["setup"] jupyter={"source_hidden": true}
# the check, folded: these are the package's methods of the same names
slopes = {}
for name, value in mine.items():
    slope, = torch.autograd.grad(value, batch.logprobs, retain_graph=True)
    theirs = -push(plain(name), batch) / mask.sum()
    assert torch.allclose(slope[mask], theirs[mask], rtol=0, atol=1e-9)
    slopes[name] = slope[mask]

# %% [markdown]
# GRPO's KL and DAPO's length penalty are left out. From DAPO to CISPO one entry
# changes, from GRPO to GSPO the ratio and its band.
#
# ## Can one loss have two lines?
#
# Write DAPO without a clip, and shut a gate on the tokens that its clip silences:

# %%
shut = (z > 0) & (token > 1.28) | (z < 0) & (token < 0.8)
gated = loss(z, token, lambda A, rho: rho * A, alike, gate=1.0 * ~shut)
slope, = torch.autograd.grad(gated, batch.logprobs, retain_graph=True)
assert torch.allclose(slope[mask], slopes["dapo"], rtol=0, atol=1e-12)
print(f"tokens shut: {int(shut[mask].sum())} of {int(mask.sum())}, "
      "and the gradient is DAPO's")

# %% [markdown]
# Yes. So counting the entries in which two lines differ does not tell how far apart two losses
# are. **Whether two losses differ is decided by their pushes, on the batch at hand.**
#
# ## Which choices act on a fresh batch?
#
# The batch has two prompts with four answers each. Of the first prompt's two are right, of the
# second's one. No update has been made on it, and the *engine*, the program that sampled it, gives
# every token the trainer's probability.
#
# Take the five methods above and two more: SAPO, with GRPO's advantage and weights; and DPPO, with
# Dr. GRPO's. DPPO has a capped weight in place of the clip, and a gate. The gate drops a token
# whose probability has moved by more than 0.15 since the engine sampled it, in the direction in
# which $A$ pushes. <!-- cited: 0.15 --> Two methods count as one if their pushes are parallel.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.2", "How many different directions do the seven take?",
        ["seven", "four", "three", "two"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed: methods with parallel pushes become one family
seven = {"grpo": "GRPO", "gspo": "GSPO", "sapo": "SAPO", "dapo": "DAPO",
         "cispo": "CISPO", "dr_grpo": "Dr. GRPO", "dppo": "DPPO"}
families = []                                  # (push, names)
for name, written in seven.items():
    g = push(plain(name), fresh(batch))[mask]
    for other, names in families:
        if torch.cosine_similarity(g, other, 0) > 1 - 1e-9:
            names.append(written)
            break
    else:
        families.append((g, [written]))
assert len(families) == 3
split = torch.cosine_similarity(families[0][0], families[1][0], 0)
close = torch.cosine_similarity(families[1][0], families[2][0], 0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.2", "three",
       "; ".join(" = ".join(names) for _, names in families)
       + r". At $\rho=1$ each of these surrogates has slope $A$, and no "
       "gate is shut. GSPO's log-ratio is a mean over the T tokens of an "
       "answer: one token's log-probability moves it by 1/T. But this "
       "ratio stands at all T tokens of the answer, and T · (1/T) = 1. "
       "**Only the advantage and the weights still tell the seven "
       "apart.**",
       instead={
           "seven":
           "The lines do differ. But a clip, a cap and a soft edge have "
           "one slope at ρ = 1.",
           "four":
           "It is three if you counted GSPO apart: at ρ = 1 a ratio per "
           "answer gives the pushes of a ratio per token.",
           "two":
           "So it is with one prompt. Here the two prompts have different "
           "stds. And the average counts too: the cosine of GRPO's and "
           f"DAPO's pushes is {split:.3f}. (DAPO and Dr. GRPO are close "
           f"here: {close:.3f}.)",
       })

# %% [markdown]
# Pushes that are parallel on a batch give parallel gradients there, in any model: a gradient is a
# linear function of the pushes.
#
# ## When do the other choices act?
#
# Use the batch again. The policy now moves away from the old one, each log-probability along a
# straight line, to where it is some updates later: the *running batch*. Compare methods of one
# family on the way.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the walk, folded
beside = {"SAPO": "GRPO", "GSPO": "GRPO", "CISPO": "DAPO",
          "DPPO": "Dr. GRPO"}
drift = torch.linspace(0, 1, 21)
old, now = batch.old_logprobs, batch.logprobs.detach()
cosines = {name: [] for name in beside}
for share in drift:
    aged = batch.replace(
        logprobs=(old + share * (now - old)).requires_grad_())
    for name, relative in beside.items():
        a, b = (push(plain(x.lower().replace(". ", "_")), aged)[mask]
                for x in (name, relative))
        cosines[name].append(torch.cosine_similarity(a, b, 0).item())

# %%
pictures.ageing(drift.tolist(), cosines, beside)

# %% [markdown]
# GSPO leaves GRPO at once: GSPO's band ends at 1.0004, and half of its tokens fall silent. Later
# GRPO's clip silences six tokens, five of them silent under GSPO too: the two come nearer again.
# SAPO, CISPO and DPPO stay close to their relative until a ratio leaves the relative's band. In
# general:
#
# | choice | acts |
# |---|---|
# | reward, advantage, weights, an entropy term | from the first update |
# | ratio, surrogate | once ρ is not 1: from the second update, or the first if ρ is to an engine that differs |
# | gate | once a probability has moved, or the engine differs |
# | KL to the reference (k3) | once the policy has left the reference |
#
# **So ask of any recipe: how many updates does a batch get, and do engine and trainer agree?**
#
# ## How far does one exchange turn the push?
#
# Exchange entries of a method, on the running batch. A line counts the pushes that changed and
# gives the cosine of new and old pushes. `TV .15` is DPPO's gate. `engine ratio` is a gate that
# weighs a token by $\omega=\pi_\text{old}/\pi_\text{engine}$, capped at 2 (truncated importance
# sampling, TIS).

# %% jupyter={"source_hidden": true}
# the explorer
task("zoo.t", composer.composer_explorer(composer.TAUGHT, "dr_grpo"),
     ("Start from `dr_grpo`. SAPO's surrogate changes 29 pushes, cosine "
      "0.784. Predict a single exchange that changes six at most and turns "
      "the direction further. Then try it.", composer.few_pushes))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# CISPO's surrogate, with a cosine of 0.724. It wakes the six silent tokens. One of them is six
# times as likely as it was, and its push becomes the largest of all. <!-- cited: 0.724 -->
#
# The ratio to the engine changes no push, nor does `engine ratio`: here the engine gave every token
# the old policy's probability. **A part that did not act explains no difference between two
# runs.**
# </details>
#
# ## What did the labs run?
#
# The same seven columns, for published losses. "Unsaid": we found it printed nowhere.

# %%
labs.labs()

# %% [markdown]
# *Engine ratio* is $\omega$ again: the engine may hold older weights than the trainer. *Mean per
# prompt*: one mean over the tokens of a prompt's answers, then
# over prompts, as in DAPO's paper; the libraries' `dapo`, and our line above, take one mean over
# the batch. R1's band, −9 to 11, silences no bad token. Sources and more rows:
# [statements page](statements/14_the_zoo.ipynb).

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.3", "OLMo 3 makes one update per batch. Its engine may be "
        "eight updates behind the trainer. Which of two parts can you "
        "delete without changing a push?",
        ["only the gate", "only the clip", "both of them",
         "neither of them"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
olmo = lab("OLMo 3 Think").objective
late = group.replace(logprobs=first.logprobs,      # one update: old = now
                     old_logprobs=first.old_logprobs,
                     sampling_logprobs=group.old_logprobs)
with_clip, no_clip, no_gate = (
    push(o, late)[late.mask] for o in (
        olmo, olmo.replace(surrogate=ratio()), olmo.replace(gates=())))
assert torch.equal(with_clip, no_clip)
changed = int((with_clip != no_gate).sum())

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.3", "only the clip",
       r"The clip looks at $\rho=\pi_\theta/\pi_\text{old}$, and *old* is "
       "the trainer just before its one update: every ratio is 1. The lag "
       r"is in $\omega$, and only the gate looks there. On our four "
       f"answers, sampled some updates earlier, it changes {changed} of "
       f"{int(late.mask.sum())} pushes. This is *decoupled* PPO: one "
       "ratio, to the old policy, for the clip, and another, to the "
       "engine, as a weight.",
       instead={
           "only the gate":
           "The gate is the only part that sees the engine.",
           "both of them":
           "The clip, yes. But the gate weighs a token by how far the "
           "engine is off.",
           "neither of them":
           "Eight updates of lag would move a ratio. It is not the ratio "
           "that this clip looks at.",
       })

# %% [markdown]
# A part can be printed to three digits and never act. GRPO's own paper made one update a batch, so
# its clip never acted there, either.
#
# **Where would you start?** With one update a batch, from OLMo 3's row without its clip: no prompt
# is divided by its std, a token counts the same in every answer, and the gate sees the engine. This
# is a default; no race has chosen it. From the second update on a clip can act. Does it help then?
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | the zoo | |
# |---|---|
# | sentence | a method is one line of seven choices; on a fresh batch reward, advantage and weights tell methods apart |
# | formula | $L=-\sum c\,g\,f(A,\rho)+\sum\beta h$ |
# | seven choices | reward, advantage, ratio, surrogate, gate, weights, terms |
# | derived | only the policy gradient; all else is chosen |
# | number | fresh batch, engine = trainer: 7 methods, 3 directions |
# | boundary | more updates wake ratio and surrogate; an engine that differs wakes the gate |
# | read a paper | write both lines; ask which parts acted, and at which learning rate the rival ran |

# %%
score("zoo.1", "zoo.2", "zoo.3")

# %% [markdown]
# ## Second sitting: does a part that acts help?
#
# Pushes do not say which loss learns more. Race PPO's clip against the same loss without a clip, at
# 32 updates a batch. A team finds the clip's best learning rate, 0.001, and takes it for the
# unclipped runs (*no clip*) too. On five seeds the clip's pass@1 ends 0.19 higher. The
# team reports: the clip helps.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.7", "The unclipped runs now get their own best rate, on the "
        "same five seeds. Who leads?",
        ["the clip, by about 0.2", "the clip, by about 0.1",
         "neither: about 0.0", "no clip, by about 0.1"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
copied = race_rates.compute(32, 0.001, 0.001)
own = race_rates.compute(32, 0.001, 0.0006)
gained = own["means"]["no clip"] - copied["means"]["no clip"]
assert own["chosen"] == own["best"]
assert round(copied["found"][0], 2) == 0.19
lead, low, high = own["found"]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.7", "neither: about 0.0",
       f"The clip's lead is −{-lead:.3f} [−{-low:.2f}, {high:.2f}]. "
       "Unclipped runs do best one rate lower, at 0.0006, and end there "
       f"{gained:.2f} higher than at 0.001. **On the same five seeds, the "
       "lead of 0.19 came from the rate that the rival was given.** A "
       "likely reason: a lower rate, too, limits how far one batch moves "
       "the policy. So it does part of the clip's work.",
       instead={
           "the clip, by about 0.2":
           "Then 0.001 would be the best rate without a clip, too.",
           "the clip, by about 0.1":
           f"The unclipped runs gain {gained:.2f} from their own rate: the "
           "whole lead, not half of it.",
           "no clip, by about 0.1":
           f"The unclipped runs gain {gained:.2f} from their own rate. "
           "That is the lead, and no more.",
       })

# %% [markdown]
# So which rates does each side get, and who judges?
#
# **The toy.** A small policy answers 32 prompts; two of a prompt's 256 answers are right. Its
# starts were trained on examples to a pass@1 of 0.16. A run is 40 batches of 64 answers, with Adam
# and the gradient's norm clipped at 1. At 2 updates a batch each half of it is used once; 8 are two
# passes over four parts, 32 eight. The two lines:
# <!-- cited: 0.16, 40, 64 -->
#
# | reward | advantage | ratio | surrogate | gate | weights | terms |
# |---|---|---|---|---|---|---|
# | right: 1 | group's mean and std | per token, to π_old | clip, 0.8 to 1.2, or none | none | all tokens alike | none |
#
# **The rule**, stated before the first run. Each side takes the best of eight rates by its mean on
# five seeds. 20 *other* seeds judge: their differences give a 99 % interval. If it lies within
# $\pm s$, with $s=0.03$: *no difference that matters*. Otherwise, if it leaves out 0: *better* or
# *worse*. Otherwise: *cannot tell*.
#
# The explorer shows the five seeds at every rate, with an interval by Student's t.

# %% jupyter={"source_hidden": true}
# the explorer
task("zoo.t2", race_rates.race_rates_explorer(),
     ("32 updates, one rate for both sides. Predict: does the clip's lead "
      "grow with the rate all the way? Then find the rate at which it is "
      "largest.", race_rates.largest_shared_lead))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# No. At the lowest rate the clip is behind by 0.027: unclipped runs do not break down, so the clip
# has nothing to prevent and still silences pushes. The lead is largest at 0.003, 0.43, where
# unclipped runs have broken down. At 0.01 and 0.018 clipped runs break down as well.
# **The shared rate decides how large a lead looks.** <!-- cited: 0.027, 0.43 -->
# </details>
#
# At 2 updates the best rates are 0.01 with the clip, 0.0055 without. The clip is ahead by 0.08 on
# the five seeds that chose the rates, and behind by 0.04 on the 20 others. One rate higher, at
# 0.018, clipped runs end at 0.17 on average. <!-- cited: 0.08, 0.04, 0.17 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.8", "Same code, same rates, other seeds. Where did the lead "
        "of 0.08 go?",
        ["a few clipped runs collapsed", "most clipped runs ended lower",
         "most unclipped runs ended higher",
         "both sides moved, about equally"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
tuned = race_rates.compute(2, 0.01, 0.0055)
assert tuned["chosen"] == tuned["best"]
assert round(tuned["found"][0], 2) == 0.08
cliff = race_rates.compute(2, 0.018, 0.0055)["means"]["clip"]
assert round(cliff, 2) == 0.17
again = race.results("clip")[0]
assert round(again.difference, 2) == -0.04
assert in_words(again.verdict) == "cannot tell"
five, others = race.both_seeds("clip, 2 updates")
no_five, no_others = race.both_seeds("no clip, 2 updates")
below = sum(x < min(five) for x in others)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.8", "most clipped runs ended lower",
       f"The clip's mean falls from {mean(five):.2f} to {mean(others):.2f}."
       f" Without a clip it stays at {mean(no_others):.2f}. No clipped run "
       f"collapsed: the lowest of the 20 ends at {min(others):.2f}. But "
       f"{below} of the 20 lie below all five. The five were lucky ones, "
       "and so their rate was chosen. **Choose on some seeds, judge on "
       "others.** Whether the clip at another rate would be ahead of no "
       "clip here, these runs do not say.",
       race.held_out(("clip, 2 updates", "no clip, 2 updates"), caption=(
           "A dot is a run, a bar the mean, printed at the right. "
           "Dashed: the start.")),
       instead={
           "a few clipped runs collapsed":
           "The next rate makes one expect it. But no run is near the "
           "start, and the mean falls because most runs are lower.",
           "most unclipped runs ended higher":
           f"Their mean was {mean(no_five):.2f} and is "
           f"{mean(no_others):.2f}.",
           "both sides moved, about equally":
           "Both rates were chosen on the five seeds. But only the clip's "
           "five runs were lucky.",
       })

# %% [markdown]
# The 20 seeds' verdicts, clip minus no clip, each side at its own rate:

# %% jupyter={"source_hidden": true}
# three verdicts of the rule, printed
for c in race.results("clip"):
    updates = c.arm.split(", ")[1]
    print(f"{updates:10}: {c.difference:+.3f} [{c.low:+.3f}, "
          f"{c.high:+.3f}], {in_words(c.verdict)}")

# %% [markdown]
# Only at 8 is the clip better. The seeds share three starts, so this holds for new runs from these;
# for new starts n is 3. The other comparisons of the race: [statements
# page](statements/14_the_zoo.ipynb).
#
# **What this does not show.** These policies learn 32 prompts by heart; larger models may turn any
# result around.

# %%
score("zoo.7", "zoo.8")

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 12 minutes. GLM-5's reasoning loss has two ratios.
# $\rho=\pi_\theta/\pi_\text{old}$ goes through PPO's min and clip with the band 0.8 to 1.28.
# $\omega=\pi_\text{old}/\pi_\text{engine}$ is the gate: the token's weight where it lies in 0.5 to
# 2, else 0. Each answer is averaged over all its tokens, then the answers. Log-probs and mask are
# (B, T), advantages (B,). Padding may hold nan.
#
# <details><summary>hint</summary>Clean all three log-probs first. The gate multiplies after the min.</details>

# %% tags=["exercise"]
def my_two_ratios(logprobs, old_logprobs, engine_logprobs, mask,
                  advantages):
    return ...

check.two_ratios(my_two_ratios)

# %% [markdown]
# **2 Name this method** · 6 minutes. Rows are answers, `r` is (prompts, answers), `engine` holds
# the engine's log-probs. Write its line, entry by entry. Then tell by the line whose loss it is:
# GLM-5's, MiniMax-M1's, OLMo 3's or DeepSeek-V3.2's.
#
#     def loss(lp, old, engine, ref, r, mask):
#         A = (r - r.mean(1, keepdim=True)).view(-1, 1)
#         rho, T = (lp - old).exp(), mask.sum(1, keepdim=True)
#         gap = ((engine - lp).detach() * mask).sum(1, keepdim=True) / T
#         worth = torch.minimum(rho * A, rho.clamp(0.8, 1.2) * A)
#         worth = torch.where((A < 0) & (gap > 0.5), 0.0, worth)
#         pull = rho * ((ref - lp).exp() - (ref - lp) - 1)
#         return (((0.04 * pull - worth) * mask).sum(1) / T[:, 0]).mean()

# %% tags=["exercise"]
check.name_this_the_zoo("")

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>Give me the map of the methods in one minute.</b></summary>
#
# Nearly all are one loss with seven choices. What is paid; the advantage (critic, or group mean
# with or without std); the ratio (per token, per answer, to which policy); the surrogate (clip,
# capped weight, soft edge); a gate; how tokens are averaged; extra terms such as a KL. Outside are
# the choice of the batch, such as dynamic sampling, and DPO: pairs, and no samples.
# </details>
# <details><summary><b>Is that decomposition unique?</b></summary>
#
# No. PPO's clip has the gradient of ρA with a gate, and CISPO's cap is a gate on A log π. So the
# number of entries that differ is no distance: one entry can change every push, or none. It is a
# checklist. Compare pushes per token on one batch to know whether two losses differ.
# </details>
# <details><summary><b>We make one update per batch. GRPO, GSPO or SAPO?</b></summary>
#
# For the gradient it does not matter while the ratio is to the old policy: with one update it is 1,
# whatever the engine does, and the three have the same push: z-score, mean per answer. Advantage,
# average and KL are left to choose. It matters when a batch is split into several updates, or when
# the ratio is to an engine that differs.
# </details>
# <details><summary><b>Two runs both say "GRPO" and behave differently. What do you check?</b></summary>
#
# First how tokens are averaged: TRL's "grpo" takes a mean per answer, verl's default one mean over
# all tokens; and whether "all" means those of a micro-batch or of the step. Then std or none, KL
# coefficient, updates per batch, and verl's extra cap for bad tokens (dual clip). Then the
# correction to the engine: TRL has it on by default when vLLM samples. Last, feed one batch to both
# losses and compare gradients.
# </details>
# <details><summary><b>Token mean, gradient accumulation, 8 GPUs: a mean over what?</b></summary>
#
# Over all tokens of the optimiser step, on all GPUs, if the loss is to be what the formula says. A
# mean per micro-batch, then over pieces, lets a token count more in a piece with few tokens, and
# the loss depends on how the batch is cut. So count the step's tokens first, divide every piece's
# sum by that count, and undo the division that averages gradients over GPUs. With equally many
# answers in every piece, a mean per answer or a constant length does not depend on the cut.
# </details>
# <details><summary><b>Engine and trainer disagree. Which correction, and what does it cost?</b></summary>
#
# The product of ω over an answer is unbiased, and its variance grows with length. One ω per token
# is calmer and biased: it ignores that the earlier tokens came from the engine too. A cap is biased
# by what it cuts; dropping loses tokens. Page 19 has a toy in which a mask loses what a cap keeps.
# </details>
# <details><summary><b>A new paper claims a better loss. How do you read it?</b></summary>
#
# I write its line beside its rival's, and ask which entries acted in the run: updates per batch,
# engine lag, share of gated tokens. Then whether both were tuned, with equal answers, several seeds
# and an interval. In our toy, at 32 updates, a clip leads by 0.19 on five seeds when the unclipped
# rival runs at the clip's rate. With each at its own best rate, the same seeds give −0.004, and 20
# others cannot tell. <!-- cited: 0.19, 0.004 -->
# </details>
#
# The sentences that one hears about these methods, true or not, and the full tables:
# [statements 14](statements/14_the_zoo.ipynb). The exercises, solved:
# [solutions 14](solutions/14_the_zoo.ipynb).
#
# **Next: [15](15_preferences.ipynb).** Can you skip the reward, and learn from which of two answers
# people prefer?
