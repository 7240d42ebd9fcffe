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
# **After this page** you can take any method apart into seven choices, say in a line what separates
# two of them, read what a lab ran, and judge a claim that one method beats another.
#
# 30 minutes, then 17 in a second sitting · exercises 23 more · after 08 (GRPO), 10 (Dr. GRPO), 11
# (DAPO), 12 (soft edges), 13 (GSPO)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What are the ratios on a fresh batch, before the first update?</summary>All 1. New and old policy are the same (04).</details>
# <details><summary>2. Which two divisors does Dr. GRPO drop?</summary>The group's std, and each answer's own length; a constant takes its place (10).</details>
# <details><summary>3. What does CISPO do with the ratio?</summary>It caps it and uses it as a weight without gradient, on A log π (12).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import ZOO, check, from_trl, from_verl
from rlnb.classroom.explorers import composer, race_rates
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import labs, race, token_grid, zoo as pictures
from rlnb.interop.labs import lab
from rlnb.objective import clip, difference, ratio
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
# and leaves everything else at the default.

# %%
teams = {"team 1: TRL, 'grpo'": from_trl(loss_type="grpo").objective,
         "team 2: TRL, 'dapo'": from_trl(loss_type="dapo").objective,
         "team 3: verl, 'grpo'": from_verl(adv_estimator="grpo").objective}
group = running_group()              # rewards 1, 1, 0, 0; 16 tokens
first = fresh(group)                 # no update yet

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.1", "The first step on a fresh batch. Which two teams take "
        "the same one?",
        ["2 and 3: their libraries average alike",
         "1 and 2: one library, and DAPO is GRPO plus a filter",
         "1 and 3: both say GRPO",
         "no two: libraries always differ somewhere"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.1", "2 and 3: their libraries average alike",
       "One says DAPO, the other GRPO, and the pushes agree to three "
       "digits. TRL's word picks the average: `'grpo'` is a mean per "
       "answer, `'dapo'` one mean over all tokens. verl's word "
       "`adv_estimator` picks only the advantage; its average is another "
       "word, `loss_agg_mode`, shipped as one mean over all tokens.",
       token_grid.token_grid(
           first, {name: push(o, first) for name, o in teams.items()},
           count="", caption="Push on each token. Left, short answers "
           "count more per token; middle and right, all alike. (0.87 for "
           "1: both libraries divide the variance by G − 1.)"),
       instead={
           "1 and 3: both say GRPO":
           "The word is the same, the average is not.",
           "1 and 2: one library, and DAPO is GRPO plus a filter":
           "The library is the same, and its two words choose different "
           "averages.",
           "no two: libraries always differ somewhere":
           "Often. Here the difference only shows once ratios have moved.",
       })

# %% [markdown]
# A name tells you who published a method. It does not tell you which loss runs. What does?
#
# ## One loss, seven choices
#
# $\pi_t$ is the probability of token $t$ under the policy, $\rho_t$ its ratio to the old policy,
# $A$ the advantage.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E\Big[\textstyle\sum_t A\,\nabla\log\pi_t\Big]&&\text{reward minus a baseline, times the score (02, 03)}\\
# &\approx\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi_t\Big]&&\text{old answers; }\textbf{a choice: each token by its own ratio}\text{ (04)}\\
# &=\nabla\,\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\Big]&&\nabla\rho=\rho\,\nabla\log\pi\text{ (06)}\\
# &\to\nabla\,\mathbb E_\text{old}\Big[\textstyle\sum_t f(A,\rho_t)\Big]&&\textbf{a choice: what a token is worth}\text{, far from }\rho=1\\
# &\to\nabla\,\mathbb E_\text{old}\Big[\textstyle\sum_t g_t\,f(A,\rho_t)\Big]&&\textbf{a choice: a gate}\text{, a factor that is not differentiated}\\
# &\to\nabla\,\textstyle\sum_{i,t}c_{i,t}\,g_{i,t}\,f(A_i,\rho_{i,t})&&\textbf{a choice: how much token }t\textbf{ of answer }i\textbf{ counts}
# \end{aligned}$$
#
# A loss is minimised, so turn the sign. Then add what pulls beside the reward, such as a KL: terms
# $h$ with coefficients $\beta$.
#
# $$L=-\sum_{i,t}c_{i,t}\;g_{i,t}\;f(A_i,\rho_{i,t})+\sum\beta\,h$$
#
# The formula shows four choices: the weights $c$, the gate $g$, the worth $f$ and the terms $h$.
# Three more are made before it: the shape of the reward (is a length penalty in it?), the advantage
# $A$, and the kind of ratio $\rho$. **A method is these seven choices.**

# %%
pictures.seven_choices()

# %% [markdown]
# Here is the middle of the map at hand size. Five methods become five lines.

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
mean_only = R - R.mean(1, keepdim=True)
zscore = mean_only / (R.std(1, correction=0, keepdim=True) + 1e-6)
centred, z = (x.view(8, 1).expand_as(gap) for x in (mean_only, zscore))
token = gap.exp()
answer = (gap.sum(1, keepdim=True) / T).exp().expand_as(gap)   # GSPO
per_answer, alike, constant = mask / (8 * T), mask / mask.sum(), mask / 64

# %%
mine = {
    "grpo": loss(z, token, clipped(0.2, 0.2), per_answer),
    "dr_grpo": loss(centred, token, clipped(0.2, 0.2), constant),
    "dapo": loss(z, token, clipped(0.2, 0.28), alike),
    "cispo": loss(z, token, capped(5), alike),
    "gspo": loss(z, answer, clipped(3e-4, 4e-4), per_answer)}
for name, value in mine.items():
    slope, = torch.autograd.grad(value, batch.logprobs, retain_graph=True)
    theirs = -push(plain(name), batch) / mask.sum()
    assert torch.allclose(slope[mask], theirs[mask], rtol=0, atol=1e-9)
    print(f"{name:8s} {plain(name)}")

# %% [markdown]
# Every gradient agrees with the package's. Beside each name stands its spelling in the package:
# advantage, surrogate $f$, weights $c$. What is not spelled out is the usual choice: a ratio per
# token to the old policy, and no gate.
#
# ## What separates two methods
#
# Compare them column by column, and keep what differs. The function `difference` does that. Teams 2
# and 3 took the same first step. Are they the same method?

# %%
print(difference(*list(teams.values())[1:]))

# %% [markdown]
# They are not. The first line is only a small number beside the std. The second line is verl's
# *dual clip*: a bad token stops being pushed down once its ratio has risen above 3. On the fresh
# batch no ratio had moved. A few steps later one has reached 3.5, and there the two teams part.

# %% jupyter={"source_hidden": true}
# the picture
token_grid.token_grid(
    group, {name: push(o, group) for name, o in teams.items()}, count="",
    caption="The same three teams a few steps later. Answer 2, token 0: "
    "ratio 3.5, and only team 3 lets it go.")

# %% [markdown]
# The same comparison, for all the methods you know, starting from GRPO:

# %%
pictures.ways()

# %% [markdown]
# Only SAPO is one box away from GRPO: it softens the clip's edge. DAPO and Dr. GRPO exchange two
# boxes each. GSPO exchanges the ratio, and needs another band because a mean over tokens moves
# little. CISPO, as libraries ship it, is DAPO with one box exchanged. **Read a new paper the same
# way: which boxes does it exchange?**
#
# ## How many methods are left on a fresh batch?
#
# Take eight methods without a KL: GRPO, Dr. GRPO, DAPO, GSPO, GMPO, CISPO, SAPO and DPPO. (*GMPO*
# clips each token's ratio and then takes GSPO's mean. *DPPO* drops a token whose *probability* has
# already moved by 0.15.) The batch is fresh. Two methods count as one if their pushes point the
# same way.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.2", "How many different directions do the eight take?",
        ["8: each has its own formula",
         "6: the closest relatives fall together",
         "3: few of the seven choices are left",
         "1: with all ratios 1 they are all policy gradient"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed: methods with parallel pushes become one family
eight = "grpo dr_grpo dapo gspo gmpo cispo sapo dppo".split()
families = []                                  # (push, names)
for name in eight:
    g = push(plain(name), fresh(batch))[mask]
    for other, names in families:
        if torch.cosine_similarity(g, other, 0) > 1 - 1e-9:
            names.append(name)
            break
    else:
        families.append((g, [name]))
assert len(families) == 3
(grpo, _), (dr, _), (dapo, _) = families
near, split = (torch.cosine_similarity(x, dapo, 0) for x in (dr, grpo))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.2", "3: few of the seven choices are left",
       "; ".join(" = ".join(names) for _, names in families)
       + r". At $\rho=1$ every surrogate has slope $A$ and no gate drops a "
       "token. A ratio per answer gives each of its tokens 1/T, which is "
       "GRPO's average. **Only the advantage and the average are left.** "
       "The ratio and the surrogate wake at the second update.",
       token_grid.token_grid(
           first, {"GRPO, GSPO, GMPO, SAPO": push(plain("grpo"), first),
                   "DAPO, CISPO": push(plain("dapo"), first),
                   "Dr. GRPO, DPPO": push(plain("dr_grpo"), first)},
           count="", caption="One push each. Over the two prompts, cosine "
           f"of the pushes: DAPO to GRPO {split:.3f}, to Dr. GRPO "
           f"{near:.3f} (in this one group those two are parallel)."),
       instead={
           "8: each has its own formula":
           "Formulas, yes. At ρ = 1 most of them have the same slope.",
           "6: the closest relatives fall together":
           "More fall together than relatives.",
           "1: with all ratios 1 they are all policy gradient":
           "All are. But they weigh answers differently.",
       })

# %% [markdown]
# What happens when the batch is used again? Let the policy walk away from the old one in twenty
# steps. At each step, compare every method's pushes with those of its relative on the fresh batch.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the walk, folded
beside = {"SAPO": "GRPO", "GMPO": "GRPO", "GSPO": "GRPO",
          "CISPO": "DAPO", "DPPO": "Dr. GRPO"}
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
# GSPO parts from GRPO at once, because its band is very narrow. The others wait until a token has
# left the band. **So the first question about a recipe is how many updates a batch gets.**
#
# ## Build one
#
# Start from any method and exchange its parts. The menus are the columns of the map, and the
# letters are the pushes on eight answers to two prompts (times 1000). *Engine* is the program that
# sampled the answers. *Same push* lists the methods that push alike here, up to a factor.

# %% jupyter={"source_hidden": true}
# the explorer
task("zoo.t", composer.composer_explorer(),
     ("Start from `grpo`. Exchange two parts, and let not one push change.",
      composer.idle_parts),
     ("Start from `dr_grpo`. Exchange the advantage, and keep all its "
      "pushes up to one factor. Find a way; there are three.",
      composer.another_baseline))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Take the ratio to the engine, and a gate on the engine's ratio or V3.2's mask. In this batch
#    engine and trainer agree, so neither part does anything. Log how often a part acts, or you do
#    not know which loss you ran.
# 2. Leave one out: it multiplies all pushes by $G/(G-1)=4/3$ (08). Both stds of the whole batch do
#    it too, since one number for all groups is only a step size. The group's own std does not,
#    because the two prompts have different ones.
# </details>
#
# ## What did the labs run?
#
# Here are published losses, each told by the boxes in which it differs from GRPO. "Unsaid" means
# that we found it printed nowhere.

# %%
labs.labs()

# %% [markdown]
# The gates use a second ratio, $\omega=\pi_\text{old}/\pi_\text{engine}$. It compares the trainer
# with the program that sampled (vLLM, say), which may hold older weights. OLMo's samplers run up to
# eight steps behind. Thirty more rows and all sources are on the
# [statements page](statements/14_the_zoo.ipynb).

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.3", "OLMo makes one update per batch, and its clip's edge is "
        "printed to three digits. How often does that clip act?",
        ["often: the samplers are up to eight steps behind",
         "never: its ratio is 1",
         "rarely: on rare tokens that rose above 1.272",
         "only on bad tokens: the lower edge is nearer"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
olmo = lab("OLMo 3 Think").objective
late = group.replace(logprobs=first.logprobs,      # one update: old = now
                     old_logprobs=first.old_logprobs,
                     sampling_logprobs=group.old_logprobs)
with_clip, without, ungated = (
    push(o, late) for o in (olmo, olmo.replace(surrogate=ratio()),
                            olmo.replace(gates=())))
assert torch.equal(with_clip[late.mask], without[late.mask])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.3", "never: its ratio is 1",
       r"The clip looks at $\rho=\pi_\theta/\pi_\text{old}$, and *old* is "
       "the trainer just before its one update, so the ratio is 1. The "
       r"lag sits in the other ratio, $\omega$, and the gate cuts that at "
       "2. This is called *decoupled* PPO. DAPO makes sixteen updates per "
       "batch, and there the same kind of clip works.",
       token_grid.token_grid(
           late, {"OLMo": with_clip, "OLMo, no clip": without,
                  "OLMo, no gate": ungated}, count="",
           caption="The engine is some steps behind. The clip changes "
           "nothing, the gate much."),
       instead={
           "often: the samplers are up to eight steps behind":
           "They are. But the clip does not compare with the sampler.",
           "rarely: on rare tokens that rose above 1.272":
           "They have had no update in which to rise.",
           "only on bad tokens: the lower edge is nearer":
           "Neither edge is reached from 1.",
       })

# %% [markdown]
# R1's row has a strange number, too.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.4", "R1's clip has ε = 10. Which tokens can it ever silence?",
        ["none",
         "good ones above 11, bad ones below 1/11",
         "good ones above 10, bad ones below "
         "0.1", "good ones above 11, and no bad one"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
r1 = plain("grpo").replace(surrogate=clip(10.0))
reveal("zoo.4", "good ones above 11, and no bad one",
       "The band runs from 1 − 10 to 1 + 10, and no ratio is below 0. "
       "Sixteen updates (so a library's copy of its settings), and "
       "practically no clip.",
       token_grid.token_grid(
           group, {"GRPO, ε = 0.2": push(plain("grpo"), group),
                   "R1, ε = 10": push(r1, group)},
           caption="The running group. With ε = 10 nothing is silent."),
       instead={
           "good ones above 11, bad ones below 1/11":
           "The lower edge is 1 − 10.",
           "good ones above 10, bad ones below 0.1":
           "The upper edge is 1 + 10, the lower 1 − 10.",
           "none":
           "Sixteen updates can, in principle, lift a rare token that far.",
       })

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | the zoo | |
# |---|---|
# | sentence | a method is seven choices: shape, advantage, ratio, surrogate, gate, weights, terms |
# | formula | $L=-\sum c\,g\,f(A,\rho)+\sum\beta h$ |
# | picture | GRPO in the middle, one or two exchanged boxes on each way out |
# | numbers | fresh batch: 8 methods, 3 directions · R1: ε = 10, 16 updates · OLMo: 1 update, its clip sleeps |
# | first questions | how many updates does a batch get? who tuned the rival? |
# | derived | the policy gradient, the ratio as a weight |
# | choices | everything else |

# %%
print("DAPO -> CISPO\n" + str(difference(ZOO["dapo"], ZOO["cispo"])))
score("zoo.1", "zoo.2", "zoo.3", "zoo.4")

# %% [markdown]
# ## Second sitting: does a better loss win?
#
# The map says how methods differ. It does not say which one learns more. We look at one more
# gate, and then at a race.
#
# ### Per answer or per token?
#
# The engine's ratio $\omega$ should be 1, and is not quite. OLMo and GLM gate one token at a time.
# TRL's shipped rule multiplies the $\omega$ of all tokens of an answer, and drops the answer if the
# product is above 3. Suppose the engine is off by one per cent, always in the same direction:
# $\omega$ = 1.01 at every token.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.5", "An answer of 1,000 tokens. What does TRL's shipped rule "
        "do?",
        ["drops it: the product is far above 3",
         "keeps it: the geometric mean is 1.01",
         "keeps it with ten times the weight",
         "keeps it: no token is near 3"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
omega = torch.tensor([1.5, 3.0, 0.2])
rules = {"TRL, per answer": omega.prod().expand(3),
         "OLMo, cut at 2": omega.clamp(max=2),
         "GLM, 0.5 to 2 or nothing": omega.where(
             (omega >= 0.5) & (omega <= 2), 0)}
reveal("zoo.5", "drops it: the product is far above 3",
       f"1.01 to the power of 1,000 is {1.01**1000:,.0f}, and past 110 "
       "tokens it is above 3. So a product per answer silences long "
       "answers first. Log the share dropped, by length. Three tokens "
       "with ω = 1.5, 3.0 and 0.2 pass, since their product is 0.90. "
       "Their weights: "
       + "; ".join(f"{name} " + ", ".join(f"{x:.2f}" for x in w)
                   for name, w in rules.items())
       + ". Three losses, all called an engine correction.",
       instead={
           "keeps it: no token is near 3":
           "Its limit of 3 is for the whole answer.",
           "keeps it: the geometric mean is 1.01":
           "A geometric mean (GSPO's) would. TRL multiplies.",
           "keeps it with ten times the weight":
           "Ten is the sum of the thousand gaps, the product's logarithm.",
       })

# %% [markdown]
# ### Not quite on the map
#
# "Every method is a baseline and a way to tame the ratio." Most are. These three are not:
#
# * **Mirror descent** (Kimi k1.5): it squares the log-ratio of a whole answer. A sum inside a
#   square is not a sum over tokens.
# * **DPO**: pairs of answers, no sampling, no advantage to estimate (page 15).
# * **MaxRL** fits all seven columns and climbs another hill. It divides by the group's *mean*,
#   $A=(R-\bar R)/\bar R$, and so climbs $\log p$ instead of $p$, the chance of success:
#   $\frac1p\nabla p=\nabla\log p$ (proved, with its limits, on the
#   [statements page](statements/14_the_zoo.ipynb)).
#
# ### Who wins?
#
# Gradients on one batch do not say who learns most, so the methods raced. A policy of three
# thousand weights answers 32 prompts with four words each, and two of the 256 possible answers are
# right. All methods of one question generate equally many answers. Each gets the learning rate that
# was best for it on five other seeds, and then runs on 20 seeds.
#
# The rule was written down before the first run. A difference of pass@1 below $s=0.03$ does not
# matter. If the 99 % interval of the difference lies inside $\pm s$, the verdict is **no
# difference that matters**. If it lies beside 0, the verdict is better or worse. Otherwise it is
# inconclusive.
#
# The first question is about stale answers, $k$ updates old. At $k=4$, a run without any clip ends
# below the run with a clip at 0.2.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.6", "And with answers that are 16 updates old?",
        ["no clip loses by more: ratios are wilder",
         "no clip wins",
         "no difference: both are tuned",
         "neither learns anything"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.6", "no clip wins",
       "GRPO ends last of all seven arms. At k = 16 more than half of the "
       "tokens lie outside the band, and the clip silences every fourth "
       "token. DPPO asks how far the probability has moved, not its ratio, "
       "and is ahead. **'The clip stabilises' is a sentence about small "
       "k.**",
       race.race("stale", only=[f"{name}, k = {k}" for k in (4, 16)
                                for name in ("GRPO", "no clip", "DPPO")],
                 caption="A dot per seed, a bar at the mean; beside an arm "
                 "its difference to GRPO at the same k, with interval."),
       instead={
           "no clip loses by more: ratios are wilder":
           "They are, and its best rate is a third of GRPO's. It is ahead "
           "nevertheless.",
           "no difference: both are tuned":
           "A rate cannot bring silenced tokens back.",
           "neither learns anything":
           "Both treble the base's pass@1 of 0.16.",
       })

# %% [markdown]
# In the race every method had its own best learning rate. What if only one of two is tuned? Here
# are runs with and without a clip, at 32, 8 or 2 updates per batch.

# %% jupyter={"source_hidden": true}
# the explorer
task("zoo.t2", race_rates.race_rates_explorer(),
     ("One learning rate for both. Let the clip win by 0.3.",
      race_rates.wins),
     ("Again one rate for both, and let the clip lose by 0.03.",
      race_rates.loses),
     ("At 32 updates, give each its own best rate.", race_rates.tuned))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# With one rate for both methods you can write either paper. With 32 updates at a rate of 0.003 the
# clip is far ahead. At 0.0006 it is behind. With each at its best rate, five seeds show no
# difference. Most of what the clip buys here is the freedom to choose too large a learning rate.
# </details>
#
# These are the verdicts on the questions that learners ask most:

# %% jupyter={"source_hidden": true}
# the picture
race.board(race.ASKED, caption="Each line against the same without it; "
    "MaxRL against GRPO. "
    "In units of s; an arrow: further out. pass@1 unless said.")

# %% [markdown]
# Further right means more. Two effects are large and expected: 1/T lengthens wrong answers, and the
# std makes a tiny bonus large. Three go against what one often hears: a higher edge leaves the
# entropy alone, the refill costs more answers than it is worth, and a moderate KL *helps*. Where
# the verdict is inconclusive, nobody won.
#
# **What this does not show.** These policies learn 32 prompts by heart. A large model, new prompts
# and long answers may turn any line around. What carries over is the way to ask. All arms, all
# seeds, and the command that reruns a line are on the
# [statements page](statements/14_the_zoo.ipynb).
#
# ### Which for my run?
#
# | ask | if yes | what to log | page |
# |---|---|---|---|
# | more than one update per batch? | choose an edge; if no, any of a family will do | share clipped | this one |
# | engine far from trainer, or a mixture of experts? | a gate on the engine's ratio; one ratio per answer, or replay | the engine's ratio: mean, largest, share dropped by length | 13 |
# | answers many updates old? | DPPO or a wide band per answer did best in the race; a clip at 0.2 did worst | share outside the band | 11, 12 |
# | lengths very uneven? | a constant or all tokens alike | length of right and of wrong answers | 10 |
# | many groups silent? | a filter; it is outside the loss | share of mixed groups | 11 |
# | must it stay near its start? | KL, $\beta$ 0.001 to 0.04 <!-- cited: 0.001, 0.04 --> | KL to the reference | 05: costs one frozen model |
#
# Otherwise start plain, and exchange one box at a time. At scale, few methods were compared at
# equal compute; ScaleRL (2510.13786) compared some, in its own code.
#
# For your own settings file, run `python -m rlnb.interop explain train_grpo.py` in a shell. It
# names the method, and the defaults that you did not know you chose.

# %%
score("zoo.5", "zoo.6")

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
# **2 Implement** · 5 minutes. MaxRL's advantage, for rewards of 0 and 1. A group that is all wrong
# gets 0. Rewards come flat, one prompt after the other.
#
# <details><summary>hint</summary>One prompt a line. Subtract the line's mean, divide by it. When is it 0?</details>

# %% tags=["exercise"]
def my_max_rl_advantages(rewards, num_generations):
    return ...

check.max_rl_advantages(my_max_rl_advantages)

# %% [markdown]
# **3 Name this method** · 6 minutes. Rows are answers, `r` is (prompts, answers), `engine` holds
# the sampler's log-probs. Take it apart column by column. Whose loss is it?
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
# All are one loss with seven choices. Shape of the reward; advantage (critic, group mean, with or
# without std); ratio (per token, per answer, to the engine); surrogate (clip, capped weight, soft
# edge); gate; how tokens are averaged; extra terms such as a KL. GRPO is one box in each column,
# the others exchange one to three.
# </details>
# <details><summary><b>How does CISPO differ from DAPO?</b></summary>
#
# As libraries ship it, in one choice, the surrogate. DAPO's clip gives tokens outside the band no
# gradient. CISPO keeps them all: the ratio, capped and without gradient, weighs A log π. Advantage
# and average are the same, and so is the first step on a fresh batch.
# </details>
# <details><summary><b>We make one update per batch. GRPO, GSPO or SAPO?</b></summary>
#
# It does not matter for the gradient. At ratio 1 the three are the same: group z-score, mean per
# answer. What is left to choose is advantage, average and KL. It matters again once a batch is
# split into several steps, or the sampler's log-probs stand in the ratio.
# </details>
# <details><summary><b>Two runs both say "GRPO" and behave differently. What do you check?</b></summary>
#
# First how tokens are averaged, and over what (answer, prompt, micro-batch, whole step): per answer
# in TRL's "grpo", over all tokens in both libraries' defaults (TRL's word for it is "dapo").
# Then std or none, dual clip, KL coefficient, updates per batch, and the
# correction to the engine, which TRL switches on by default. Two libraries' defaults for one name
# are two losses.
# </details>
# <details><summary><b>A new paper claims a better loss. How do you read it?</b></summary>
#
# Write its seven choices beside its baseline's. Often one box differs in the formula and three in
# the experiment. Then ask for updates per batch, equal numbers of answers, a learning rate tuned
# for both, and several seeds. A part that never acted in the run explains nothing.
# </details>
#
# The other four can wait for another evening.
#
# <details><summary><b>What do the labs run?</b></summary>
#
# Mostly GRPO with a few boxes exchanged. DAPO: upper edge 0.28, no KL. MiniMax-M1: CISPO. Qwen:
# GSPO. OLMo 3: no std, engine weight cut at 2. GLM-5: GRPO with tokens dropped where trainer and
# engine differ by a factor of 2. Kimi k1.5 is outside: a squared log-ratio per answer. Reports
# leave numbers out, so say "as reported".
# </details>
# <details><summary><b>R1 used a clip of 10. What does that mean?</b></summary>
#
# Practically no clip. The band is −9 to 11: no bad token is ever silenced, a good one only above
# 11. With sixteen updates per batch it is importance-weighted policy gradient with a KL of 0.001.
# </details>
# <details><summary><b>What does MaxRL optimise?</b></summary>
#
# The log of the success probability instead of the probability. Dividing the centred reward by the
# group's mean weighs a prompt by 1/p, so hard prompts count most. With G answers it is exact for
# the first G − 1 terms of a series in pass@k. Rewards must be 0 and 1.
# </details>
# <details><summary><b>OLMo makes one update per batch and prints a clip of 1.272. Does it matter?</b></summary>
#
# No. With one update the ratio to the old policy is 1 when the gradient is taken. What acts is the
# gate on the other ratio, trainer over sampler, cut at 2: the samplers run several steps behind.
# </details>
#
# The sentences that one hears about these methods, true or not, and the full tables:
# [statements 14](statements/14_the_zoo.ipynb). The exercises, solved:
# [solutions 14](solutions/14_the_zoo.ipynb).
#
# **Next: [15](15_preferences.ipynb).** Can you skip the reward, and learn from which of two answers
# people prefer?
