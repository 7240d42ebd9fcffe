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
# 34 minutes, then 14 in a second sitting · exercises 23 more · after 08 (GRPO), 10 (Dr. GRPO), 11
# (DAPO), 12 (soft edges), 13 (GSPO)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Which tokens does PPO's clip silence?</summary>Good ones whose ratio is above the band, and bad ones below it (06).</details>
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
# A name says who published a method. It does not say which loss runs. What does?
#
# ## Which choices make a loss?
#
# Let $\pi_t$ be the probability of token $t$ under the policy, $\rho_t$ its ratio to the old
# policy, $A$ the advantage. Start from the policy gradient, and mark where somebody *chose*:
#
# $$\begin{aligned}
# \nabla J&=\mathbb E\Big[\textstyle\sum_t A\,\nabla\log\pi_t\Big]&&\textbf{a choice: the advantage}\text{, its baseline and std (02, 03, 08)}\\
# &\approx\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi_t\Big]&&\text{old answers; }\textbf{a choice: each token by its own ratio}\text{ (04)}\\
# &=\nabla\,\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\Big]&&\nabla\rho=\rho\,\nabla\log\pi\text{ (06)}\\
# &\to\nabla\,\mathbb E_\text{old}\Big[\textstyle\sum_t f(A,\rho_t)\Big]&&\textbf{a choice: the surrogate }f\text{, for ratios far from 1}\\
# &\to\nabla\,\mathbb E_\text{old}\Big[\textstyle\sum_t g_t\,f(A,\rho_t)\Big]&&\textbf{a choice: a gate}\text{, a factor that is not differentiated}\\
# &\to\nabla\,\textstyle\sum_{i,t}c_{i,t}\,g_{i,t}\,f(A_i,\rho_{i,t})&&\textbf{a choice: the weights}\text{, how much token }t\textbf{ of answer }i\text{ counts}
# \end{aligned}$$
#
# A loss is minimised, so turn the sign. Terms $h$, such as a KL, pull beside the reward:
#
# $$L=-\sum_{i,t}c_{i,t}\;g_{i,t}\;f(A_i,\rho_{i,t})+\sum\beta\,h$$
#
# Weights, gate, surrogate and terms stand in this formula. Reward, advantage and the kind of ratio
# go into it. The ratio has a price: exact would be the product of all ratios of the answer (04).
# One ratio per token is biased, and its variance does not grow with the length. **A method is one
# line: an entry for each of seven questions.** Before all seven stands which prompts and answers
# are in the batch; DAPO's dynamic sampling (11) is a choice there.

# %%
pictures.seven_choices()

# %% [markdown]
# Five methods, one line each:

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
slopes = {}
for name, value in mine.items():
    slope, = torch.autograd.grad(value, batch.logprobs, retain_graph=True)
    theirs = -push(plain(name), batch) / mask.sum()
    assert torch.allclose(slope[mask], theirs[mask], rtol=0, atol=1e-9)
    slopes[name] = slope[mask]
print("the package's gradients, all five")

# %% [markdown]
# GRPO's KL and DAPO's length penalty are left out. Differences can now be read off: from DAPO to
# CISPO one entry, from GRPO to GSPO the ratio and its band.
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
# Yes. We put a part where its paper puts it, so the number of entries in which two lines differ
# does not measure how far apart two losses are. It says where to look. **Whether two losses differ
# is decided by their pushes, on the batch at hand.**
#
# ## Which choices act on a fresh batch?
#
# Take seven methods without a KL: the five above; SAPO, with GRPO's advantage and weights; and
# DPPO, with Dr. GRPO's, whose gate drops a token that has moved too far the way $A$ pushes. No
# update has been made on the batch. The *engine*, the program that sampled it, gives every token
# the trainer's probability. Two methods count as one if their pushes are parallel.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.2", "How many different directions do the seven take?",
        ["7: their lines all differ",
         "5: only near relatives agree",
         "3: two choices still act",
         "1: their ratios are all 1"])

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

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.2", "3: two choices still act",
       "; ".join(" = ".join(names) for _, names in families)
       + r". At $\rho=1$ each of these surrogates has slope $A$, and no "
       "gate is shut. GSPO's ratio stands at all T tokens of an answer, "
       "and each copy gives every token a T-th of its slope: together one. "
       "So its weights decide, and they are GRPO's. **Only the advantage "
       "and the weights still act.**",
       instead={
           "7: their lines all differ":
           "The lines do. But a clip, a cap and a soft edge have one "
           "slope at ρ = 1.",
           "5: only near relatives agree":
           "More agree: GSPO, with a ratio per answer, and GRPO.",
           "1: their ratios are all 1":
           "They are, but advantage and weights do not look at ratios. "
           f"The cosine of GRPO's and DAPO's pushes is {split:.3f}.",
       })

# %% [markdown]
# The batch has two prompts. With one there would be two directions: its std would be a single
# factor, so Dr. GRPO's push would be parallel to DAPO's.
#
# ## When do the other choices act?
#
# Use the batch again. Let its log-probabilities go in a straight line from the old policy to the
# *running batch*, which is some updates old, and compare methods of one family on the way.

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
# GSPO leaves GRPO at once: its band ends at 1.0004, and half of the tokens fall silent. Then it
# comes nearer again: GRPO's clip silences some of the same tokens, and GRPO's largest push, which
# both keep, grows. The others stay close until a token's ratio leaves the band of 0.2. In general:
#
# | choice | acts |
# |---|---|
# | reward, advantage, weights | from the first update |
# | ratio, surrogate | once ρ is not 1: from the second update, or the first if ρ is to an engine that differs |
# | gate | once a probability has moved, or the engine differs |
# | KL term | once the policy has left the reference |
#
# **So ask of any recipe: how many updates does a batch get, and do engine and trainer agree?**
#
# ## How far does one exchange turn the push?
#
# Exchange entries of a method, on the running batch. A line counts the pushes that changed and
# gives the cosine of new and old pushes; 1 is the same direction. Two gates need a word: `TV .15`
# drops a token whose probability has moved by 0.15 <!-- cited: 0.15 --> (DPPO's), `engine ratio, 3`
# weighs an answer by its ratio of old policy to engine, and drops it above 3.

# %% jupyter={"source_hidden": true}
# the explorer
task("zoo.t", composer.composer_explorer(composer.TAUGHT, "dr_grpo"),
     ("Start from `dr_grpo`. SAPO's surrogate changes 29 pushes. Predict "
      "which one exchange changes six at most and turns the direction "
      "further. Then find it.", composer.few_pushes),
     ("Start from `dr_grpo`. Predict which other advantage multiplies all "
      "pushes by one factor. Then take it.", composer.another_baseline))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. CISPO's, with a cosine of 0.724; SAPO's is 0.784. It wakes the six silent tokens. One is six
#    times as likely as it was, and its push becomes the largest of all: alone it gives 0.769. (In
#    picture 3 the order is the other way, for there each starts from another line.)
# 2. Leave one out: all pushes times $G/(G-1)=4/3$ (08). The z-score does not do it. It divides each
#    prompt by its own std, and the two prompts have different ones.
#
# Two exchanges change no push at all, the ratio to the engine and the gate to the engine: on this
# batch it agreed with the old policy. A part that did not act explains no difference between two
# runs.
#
# And what does a cosine of 0.72 mean for the weights? Parallel pushes give parallel gradients, up
# to their length. Other angles need not survive: the gradient is the pushes times the model's
# Jacobian, and Adam rescales each weight on top. So 1 is a proof, and 0.72 a reason to
# look. <!-- cited: 0.724, 0.784, 0.769, 0.72 -->
# </details>
#
# ## What did the labs run?
#
# The same seven columns, for published losses. "Unsaid": we found it printed nowhere.

# %%
labs.labs()

# %% [markdown]
# *Engine ratio* is $\omega=\pi_\text{old}/\pi_\text{engine}$: the engine may hold older weights
# than the trainer. DAPO and MiniMax-M1 average over one prompt's answers; libraries, and our line
# above, over the whole batch. R1's ε is 10, so its band is −9 to 11: no bad token is ever silenced.
# Sources, their grades and more rows: [statements page](statements/14_the_zoo.ipynb).

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
# A part can be printed to three digits and never act. GRPO's own row has one update a batch: its
# clip never acted there, either. At DAPO's sixteen the same kind of clip acts.
#
# **Where would you start?** With one update a batch and an engine beside the trainer, OLMo 3's row
# is a line in which each part has a reason: the mean without std, one mean over all tokens, a
# capped engine ratio, no KL. Log the share of silent tokens, the gap to the engine, and a held-out
# score.
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | the zoo | |
# |---|---|
# | sentence | a method is one line of seven choices; on a fresh batch advantage and weights tell methods apart |
# | formula | $L=-\sum c\,g\,f(A,\rho)+\sum\beta h$ |
# | seven choices | reward, advantage, ratio, surrogate, gate, weights, terms |
# | derived | the policy gradient, the ratio as a weight; all else is chosen |
# | number | fresh batch, engine = trainer: 7 methods, 3 directions |
# | boundary | more updates wake ratio and surrogate; an engine that differs wakes the gate |
# | read a paper | write both lines; ask which parts acted; ask who tuned the rival |

# %%
score("zoo.1", "zoo.2", "zoo.3")

# %% [markdown]
# ## Second sitting: does a part that acts help?
#
# The pushes say that two losses differ. They do not say which one learns more, so we raced them.
#
# **The race.** A small policy answers 32 prompts with four words each; two of 256 possible answers
# are right. Both sides of a comparison generate equally many answers, each at the learning rate
# that was best for it on five other seeds, and run on 20 seeds. The measure is pass@1 at the end.
#
# **The rule**, written down before the first run. Differences below $s=0.03$ do not matter. Take
# the 99 % interval of the mean difference over the 20 seeds. Inside $\pm s$: *no difference* that
# matters. If not, and beside 0: *better* or *worse*. Otherwise: *inconclusive*.
#
# First, old answers: the policy has made $k$ updates since it wrote them. A batch gets one update,
# and ρ is taken to the policy that wrote it, the *sampler*; so here, unlike in OLMo's loss, the
# clip sees the age. At $k=4$ it silences 11 % of the tokens, and a run without it ends lower. At
# $k=16$ it silences 25 %, and the best rate without it is a third of the rate with it.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.6", "And with answers that are 16 updates old?",
        ["no clip loses, by more", "no clip wins", "no difference",
         "neither learns anything"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
seen = {k: race.recorded("stale")["arms"][f"GRPO, k = {k}"]["seen"]["cut"]
        for k in (4, 16)}
silent = {k: f"{sum(x) / len(x):.0%}" for k, x in seen.items()}
assert silent == {4: "11%", 16: "25%"}
reveal("zoo.6", "no clip wins",
       "A silent token brings neither noise nor a lesson, and at k = 16 "
       "one in four is silent. **In this race the clip helps at k = 4 and "
       "harms at k = 16.** How far we know why comes below.",
       race.race("stale", only=[f"{name}, k = {k}" for k in (4, 16)
                                for name in ("GRPO", "no clip")],
                 caption="A dot per seed, a bar at the mean. Beside 'no "
                 "clip': its difference to GRPO, with the clip, at the "
                 "same k, and the 99 % interval."),
       instead={
           "no clip loses, by more":
           "Its ratios are wilder and its rate is lower. It is ahead "
           "nevertheless.",
           "no difference":
           "Both rates are tuned, and 0.09 remains.",
           "neither learns anything":
           "Both end above three times the base's pass@1 of 0.16.",
       })

# %% [markdown]
# What if nobody tunes the rival? Here are runs with and without a clip, five seeds a rate.

# %% jupyter={"source_hidden": true}
# the explorer
task("zoo.t2", race_rates.race_rates_explorer(),
     ("At 32 updates, with one rate for both, the clip can lead by 0.4. "
      "Predict on which side of that rate it looks harmful. Then find a "
      "rate where it does.", race_rates.looks_harmful),
     ("At 32 updates, predict what is left of the lead when each has its "
      "own best rate. Then set the two rates.", race_rates.tuned))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# At a rate of 0.003 the clip leads by 0.43. <!-- cited: 0.43 --> At 0.0003 and 0.0006, where ratios
# move less, no clip looks a little better. So whoever sets one rate for both can pick the winner.
# With each at its best rate these five seeds show no lead.
# </details>
#
# Now 20 seeds, each side tuned, at two numbers of updates:

# %% jupyter={"source_hidden": true}
# two verdicts of the rule, printed
for c in race.results("clip")[1:]:
    print(c)
cut = race.recorded("clip")["arms"]["clip, 32 updates"]["seen"]["cut"]
print(f"silent, clip, 32 updates: {sum(cut) / len(cut):.0%} of the tokens")

# %% [markdown]
# At 8 updates the clip is better. At 32 the verdict is *inconclusive*. That is not *no difference*:
# 20 seeds could not tell.
#
# **Why can the clip harm at lag 16, and show no harm at 32 updates?** Those 32 are eight passes: in
# the first a ratio is near 1, and a token teaches before it falls silent. An old answer's token may
# be silent in its only update. But so it may be at $k=4$, where the clip helps. What we see differ
# is the share, 25 % silent and not 11 %. No run varies that share alone: the cause stays open.
#
# **What this does not show.** These policies learn 32 prompts by heart. Larger models, new prompts
# and long answers may turn any result around. What carries over is the order of questions: which
# entries differ, which of them acted, who tuned the rival, how wide is the interval.
#
# **What does not fit the line?** DPO has pairs and no samples (15). Kimi k1.5 minimises
# $\frac12(R-b-\tau\ell)^2$, where ℓ is the log-ratio of the whole answer. As a formula that is no
# line. But its push is $\tau(R-b-\tau\ell)$ on every token of the answer: a penalty $\tau\ell$ in
# the reward (05). Look at pushes.
#
# For your own settings, `python -m rlnb.interop explain train_grpo.py` in a shell prints the line,
# defaults included.

# %%
score("zoo.6")

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
# **2 Implement** · 5 minutes. MaxRL divides the centred reward by the group's *mean*:
# $A=(R-\bar R)/\bar R$. So it climbs, roughly (the mean is of the same few answers), $\log p$
# instead of the chance of success $p$, since $\nabla\log p=\frac1p\nabla p$. Write $A$ for rewards
# of 0 and 1. A group that is all wrong gets
# 0. Rewards come flat, one prompt after the other.
#
# <details><summary>hint</summary>One prompt a line. Subtract the line's mean, divide by it. When is it 0?</details>

# %% tags=["exercise"]
def my_max_rl_advantages(rewards, num_generations):
    return ...

check.max_rl_advantages(my_max_rl_advantages)

# %% [markdown]
# **3 Name this method** · 6 minutes. Rows are answers, `r` is (prompts, answers), `engine` holds
# the engine's log-probs. Write its line, entry by entry. Whose loss is it?
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
# capped weight, soft edge); a gate; how tokens are averaged; extra terms such as a KL. DPO is
# outside: pairs, and no samples.
# </details>
# <details><summary><b>Is that decomposition unique?</b></summary>
#
# No. PPO's clip has the gradient of ρA with a gate, and CISPO's cap is a gate on A log π. So the
# number of entries that differ is no distance: one entry can change every push, or none. It is a
# checklist. Compare pushes per token on one batch to know whether two losses differ.
# </details>
# <details><summary><b>We make one update per batch. GRPO, GSPO or SAPO?</b></summary>
#
# It does not matter for the gradient, if engine and trainer agree. At ratio 1 the three have the
# same push: z-score, mean per answer. Advantage, average and KL are left to choose. It matters
# again when a batch is split into several updates, or when the engine's log-probs stand in the
# ratio.
# </details>
# <details><summary><b>Two runs both say "GRPO" and behave differently. What do you check?</b></summary>
#
# First how tokens are averaged: TRL's "grpo" takes a mean per answer, verl's default one mean over
# all tokens. Then std or none, dual clip, KL coefficient and updates per batch. Then the correction
# to the engine: TRL has it on by default when vLLM samples. Last, feed one batch to both losses and
# compare gradients.
# </details>
# <details><summary><b>Engine and trainer disagree. Which correction, and what does it cost?</b></summary>
#
# The product of ω over an answer is unbiased, and its variance grows with length. One ω per token
# is calmer and biased: it ignores that the earlier tokens came from the engine too. A cap is biased
# by what it cuts; dropping loses tokens. Whether either helps is
# a question for a run of yours: page 19 has a toy in which a mask loses what a cap keeps.
# </details>
# <details><summary><b>A new paper claims a better loss. How do you read it?</b></summary>
#
# I write its line beside its rival's, and ask which entries acted in the run: updates per batch,
# engine lag, share of gated tokens. Then whether both were tuned, with equal answers, several seeds
# and an interval. In our toy a lead of 0.43 at one shared rate shrank, with each at its best, to
# what 20 seeds cannot tell from 0.
# <!-- cited: 0.43 -->
# </details>
#
# The sentences that one hears about these methods, true or not, and the full tables:
# [statements 14](statements/14_the_zoo.ipynb). The exercises, solved:
# [solutions 14](solutions/14_the_zoo.ipynb).
#
# **Next: [15](15_preferences.ipynb).** Can you skip the reward, and learn from which of two answers
# people prefer?
