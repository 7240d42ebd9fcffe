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
# two of them, read what a lab ran, and choose for your own run.
#
# 25 minutes, exercises 32 more · after 08 (GRPO), 10 (Dr. GRPO), 11 (DAPO), 12 (soft edges), 13
# (GSPO)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What are the ratios on a fresh batch, before the first update?</summary>All 1. New and old policy are the same (04).</details>
# <details><summary>2. Which two divisors does Dr. GRPO drop?</summary>The group's std, and each answer's own length; a constant takes its place (10).</details>
# <details><summary>3. What does CISPO do with the ratio?</summary>It caps it and uses it as a weight without gradient, on A log π (12).</details>

# %% tags=["setup"]
import torch
from rlnb import ZOO, check, from_trl, from_verl
from rlnb.classroom.explorers import composer
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import pipeline, token_grid, zoo as pictures
from rlnb.interop.labs import lab
from rlnb.objective import clip, difference
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
# Three teams train on the same answers. Each writes one word into its library's settings and leaves
# the rest as shipped:

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
        ["1 and 3: both say GRPO",
         "1 and 2: one library, and DAPO is GRPO plus a filter",
         "2 and 3: their libraries average alike",
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
           "count more per token; middle and right, all alike."),
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
# A name tells who published something. It does not tell what runs. What does?
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
# Turn the sign, and add what pulls beside the reward, terms $h$ with coefficients $\beta$:
#
# $$L=-\sum_{i,t}c_{i,t}\;g_{i,t}\;f(A_i,\rho_{i,t})+\sum\beta\,h$$
#
# With the reward's shape (is a length penalty or a KL in it?), the advantage and the kind of ratio,
# that makes seven choices:

# %%
pictures.seven_choices()

# %% [markdown]
# At hand size, without the first and the last column:

# %%
def loss(A, rho, f, c, gate=1.0):
    """To minimise. A, rho, c, gate: (answers, tokens)."""
    return -(c * gate * f(A, rho)).sum()

def clipped(low, high):
    return lambda A, rho: torch.minimum(
        rho * A, rho.clamp(1 - low, 1 + high) * A)

def capped(cap):                     # log rho has the slope of log pi
    return lambda A, rho: rho.clamp(max=cap).detach() * A * rho.log()

# %% [markdown]
# The batch from here on has two prompts of four answers, right are 1, 1, 0, 0 and 1, 0, 0, 0, and
# it has been used for some steps. Two advantages, two ratios, three averages:

# %%
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
# Five methods, a line each, and every gradient agrees with `rlnb`'s. Beside each stands its
# spelling in `rlnb`: advantage, surrogate $f$, weights $c$; what is not said is the usual, a ratio
# per token to the old policy and no gate. (Dr. GRPO's constant is a length, 8 here.)
#
# ## What separates two methods
#
# Compare column by column and keep what differs. `difference` does that. Teams 2 and 3:

# %%
print(difference(*list(teams.values())[1:]))

# %% [markdown]
# The first line is a small number beside the std, a convention. The second is verl's *dual clip*: a
# bad token stops being pushed down once its ratio has risen above 3. On the fresh batch no ratio
# had moved. A few steps later one has, 3.5, and there the two teams part:

# %%
token_grid.token_grid(
    group, {name: push(o, group) for name, o in teams.items()}, count="",
    caption="The same three teams a few steps later. Answer 2, token 0: "
    "ratio 3.5, and only team 3 lets it go.")

# %% [markdown]
# Now the six methods you know, from GRPO outwards. Leave the KL term aside.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.2", "Which of these differs from GRPO in one single choice?",
        ["DAPO: the clip's upper edge", "Dr. GRPO: no std",
         "GSPO: one ratio per answer", "SAPO: a soft edge"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.2", "SAPO: a soft edge",
       "The others need a second one. DAPO also counts all tokens alike "
       "(its filter of silent groups is outside the loss). Dr. GRPO drops "
       "the answer's length too. GSPO's ratio is a mean and moves little, "
       "so a band of 0.2 would hardly act: it needs its own.",
       pictures.ways(),
       instead={
           "DAPO: the clip's upper edge":
           "Also the average, as its authors have it.",
           "Dr. GRPO: no std":
           "And no 1/T.",
           "GSPO: one ratio per answer":
           "And a band of its own.",
       })

# %% [markdown]
# CISPO, as libraries ship it, is DAPO with one box exchanged. (MiniMax's own formula averages per
# prompt, a second.) Saying it this way is the answer to
# "what is new in ...?" in an interview, and the first thing to do with a new paper.
#
# ## How many on a fresh batch?
#
# Eight methods: GRPO, Dr. GRPO, DAPO, GSPO, GMPO, CISPO, SAPO, DPPO. No KL. The batch is fresh, and
# engine and trainer agree. Two methods count as one if their gradients point the same way.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.3", "How many different directions do the eight take?",
        ["8: each has its own formula",
         "6: the closest relatives fall together",
         "3: few of the seven choices are left",
         "1: with all ratios 1 they are all policy gradient"])

# %%
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

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
assert len(families) == 3
(_, _), (dr, _), (dapo, _) = families
near = torch.cosine_similarity(dr, dapo, 0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("zoo.3", "3: few of the seven choices are left",
       "; ".join(" = ".join(names) for _, names in families)
       + r". At $\rho=1$ every surrogate has slope $A$, no gate drops "
       "anything, and a ratio per answer hands each of its tokens 1/T: "
       "GRPO's average. What is left is the advantage and the average. "
       "Ratio to the old policy and surrogate wake at the second update. "
       "A gate on the engine works from the first.",
       token_grid.token_grid(
           first, {"GRPO, GSPO, GMPO, SAPO": push(plain("grpo"), first),
                   "DAPO, CISPO": push(plain("dapo"), first),
                   "Dr. GRPO, DPPO": push(plain("dr_grpo"), first)},
           count="", caption="One push each. In this one group the last "
           "two are parallel. Over two prompts Dr. GRPO, without the std, "
           f"turns away: cosine {near:.3f}."),
       instead={
           "8: each has its own formula":
           "Formulas, yes. At ρ = 1 most of them have the same slope.",
           "6: the closest relatives fall together":
           "More fall together than relatives.",
           "1: with all ratios 1 they are all policy gradient":
           "All are. But they weigh answers differently.",
       })

# %% [markdown]
# Then the batch is used again. Let the policy walk from the old one to the present one, in twenty
# steps, and compare each method with its relative:

# %%
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
# So the first thing to ask about a recipe is how many updates a batch gets. DeepSeekMath made one:
# its clip never acted. DAPO, MiniMax-M1 and DeepSeek-R1 report sixteen, GSPO four. (GSPO parts from
# GRPO at once: its band is narrower than the first step of this walk. The others wait until a token
# has left the band.)
#
# ## Build one
#
# Eight answers, two prompts, rewards as above; start from any method and exchange its parts.
# *Credit* is what happens to an advantage afterwards. *Engine* is the program that sampled.
# *Same push* lists the methods whose gradient is the same here, up to a factor.

# %%
task("zoo.t", composer.composer_explorer(),
     ("Start from `grpo`. Exchange two parts, and let not one push change.",
      composer.idle_parts),
     ("Start from `dr_grpo`. Exchange the advantage, and keep all its "
      "pushes up to one factor. Find a way; there are three.",
      composer.another_baseline))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. The ratio to the engine, and a gate on the engine's ratio or V3.2's mask. In this batch engine
#    and trainer agree, so both say nothing. A part that is idle today is insurance: log how often
#    it acts (share of tokens clipped, gated, masked), or you do not know which loss you ran.
# 2. Leave one out: times 4/3, which is $G/(G-1)$ (08). And both stds of the whole batch: one number
#    for all groups is only a step size. The group's own std is not, for the two prompts have
#    different ones.
# </details>
#
# ## What the labs ran
#
# Published losses as compositions. *A*: from the authors' text or code. *B*: from a library's.

# %%
for who in ("DeepSeek-R1", "MiniMax-M1", "OLMo 3 Think", "GLM-5 reasoning",
            "prime-rl default", "Kimi k1.5"):
    row = lab(who)
    print(f"{who} ({row.letter}, updates per batch: "
          f"{row.updates or 'not printed'})")
    if row.objective is None:
        print("    no composition:", row.why_not)
        continue
    print(f"    {row.near} with")
    for change in difference(ZOO[row.near], row.objective):
        print("       ", change)

# %% [markdown]
# How to read it. MiniMax averages per prompt, and never printed its cap. OLMo and GLM weigh each
# token by trainer over engine: OLMo cuts that weight at 2, GLM drops the token outside 0.5 to 2.
# (OLMo's samplers run up to eight steps behind, and the lag sits in this weight too.) prime-rl has
# one ratio only, straight to the engine (`sampling`), no clip (`ratio()`), and a small penalty on
# the square of its logarithm.
# Sources, eleven more rows and their words in TRL and verl:
# [statements](statements/14_the_zoo.ipynb).
#
# The first row has a strange number.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.4", "R1's clip has ε = 10. Which tokens can it ever silence?",
        ["good ones above 11, and no bad one",
         "good ones above 11, bad ones below 1/11",
         "good ones above 10, bad ones below 0.1", "none"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
r1 = plain("grpo").replace(surrogate=clip(10.0))
reveal("zoo.4", "good ones above 11, and no bad one",
       "The band runs from 1 − 10 to 1 + 10, and no ratio is below 0. "
       "Sixteen updates, and practically no clip. What 0.2 would have "
       "done there, nobody outside can say.",
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
# ## The second ratio
#
# OLMo, GLM and TRL's defaults look at $\omega=\pi_\text{old}/\pi_\text{engine}$. The same weights,
# two programs: the trainer, and the sampler (vLLM, say) with faster arithmetic. $\omega$ should be
# 1, and is not quite. It stands in the gate. TRL's shipped rule takes one $\omega$ per answer and
# drops the answer if that is above 3. An answer of three tokens has $\omega$ = 1.5, 3.0 and 0.2.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.5", "What does TRL's shipped rule do with it?",
        ["drops it: a token has reached 3",
         "drops the second and third token",
         "keeps it: the mean of the three is 1.57",
         "keeps it: their product is 0.90"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
omega = torch.tensor([1.5, 3.0, 0.2])
rules = {"TRL, per answer": omega.prod().expand(3),
         "OLMo, cut at 2": omega.clamp(max=2),
         "GLM, far ones dropped": omega.where(
             (omega >= 0.5) & (omega <= 2), 0)}
reveal("zoo.5", "keeps it: their product is 0.90",
       "Two tokens are far off, in opposite directions, and the answer "
       "passes with weight 0.90 on all three. The tokens' weights: "
       + "; ".join(f"{name} " + ", ".join(f"{x:.2f}" for x in w)
                   for name, w in rules.items())
       + ". One word, engine ratio, and three different weights: per "
       "answer or per token, cut or dropped, where?",
       instead={
           "drops it: a token has reached 3":
           "Its limit of 3 is for the whole answer.",
           "drops the second and third token":
           "It does not look at single tokens.",
           "keeps it: the mean of the three is 1.57":
           "Kept, but what it multiplies is not the mean.",
       })

# %% [markdown]
# ## Not quite on the map
#
# * **Kimi k1.5** squares the log-ratio of a whole answer (*mirror descent*: climb the reward, and
#   pay for the squared distance to the sampler). A sum inside a square is not a sum over tokens.
# * **DPO** samples nothing. It has pairs of answers, and no advantage to estimate (page 15).
# * **MaxRL** fits all seven columns and climbs another hill.
#
# Look at MaxRL. A prompt that is solved with probability $p$ pulls on the shared weights with
# $w\,\nabla p$. The mean reward asks for $w=1$. GRPO's std makes it about $1/\sqrt{p(1-p)}$ (09).
# MaxRL divides by the group's *mean*, $A=(R-\bar R)/\bar R$, hence $w=1/p$, and
# $\frac1p\nabla p=\nabla\log p$: **it climbs the log of the success probability.** That holds for
# large groups. Take groups of 16, with advantage 0 where all are wrong.

# %% jupyter={"source_hidden": true}
# your guess
predict("zoo.6", "A prompt solved once in fifty against an even one: how "
        "many times heavier under MaxRL?",
        ["twice", "about 6 times", "about 13 times", "25 times"])

# %%
def weight(divisor, p, G=16):
    """w in w grad p, exact: every number K of right answers."""
    w = 0.0
    for K in range(1, G):
        chance = torch.distributions.Binomial(
            G, p).log_prob(torch.tensor(float(K))).exp()
        k = torch.tensor(K / G)
        A, B = ((1 - k) / divisor(k), -k / divisor(k))    # right, wrong
        w = w + chance * (k * A / p - (1 - k) * B / (1 - p))
    return w

divisors = {"mean only": lambda k: 1.0,
            "÷ std (GRPO)": lambda k: (k * (1 - k)).sqrt(),
            "÷ mean (MaxRL)": lambda k: k}
rate = torch.linspace(0.01, 0.99, 99)
weights = {name: torch.stack([weight(d, p) for p in rate])
           for name, d in divisors.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
rare, even = (weight(divisors["÷ mean (MaxRL)"], torch.tensor(p))
              for p in (0.02, 0.5))
grpo_rare, grpo_even = (weight(divisors["÷ std (GRPO)"], torch.tensor(p))
                        for p in (0.02, 0.5))
reveal("zoo.6", "about 6 times",
       f"{rare:.1f} against {even:.1f}, {rare / even:.1f} times; under "
       f"GRPO {grpo_rare / grpo_even:.1f} times. Three groups in four of "
       "the hard prompt have no right answer and say nothing, so 1/p is "
       r"never reached: exactly, $w=(1-(1-p)^{G-1})/p$. That is the "
       r"gradient of $\sum_{k<G}\text{pass@}k/k$ ([statements](statements/"
       "14_the_zoo.ipynb)).", pictures.prompt_weights(rate, weights),
       instead={
           "twice":
           "That is GRPO's: a root.",
           "about 13 times":
           "That would be so if no group were silent.",
           "25 times":
           "1/p against 1/p, without the silent groups.",
       })

# %% [markdown]
# ## Which for my run?
#
# | ask | if yes | what to log | page |
# |---|---|---|---|
# | more than one update per batch? | choose an edge; if no, any of a family will do | share clipped | this one: 8 are 3 |
# | engine far from trainer, or a mixture of experts? | a gate on the engine's ratio; one ratio per answer, or replay | the engine's ratio: mean, largest | 13: all 31 silenced tokens had a flip |
# | lengths very uneven? | a constant or all tokens alike | length of right and of wrong answers | 10: 1/T hides long wrong ones |
# | many groups silent? | a filter; it is outside the loss | share of mixed groups | 11 |
# | must it stay near its start? | KL, $\beta$ 0.001 to 0.04 <!-- cited: 0.001, 0.04 --> | KL to the reference | 05: costs one frozen model |
#
# Otherwise start plain, and exchange one box at a time. **What this page's evidence is:** exact
# gradients on one batch. It shows which choices change a step. It does not show who learns most:
# that takes equal budgets and a tuned rival, and few recipes were raced so (ScaleRL compares some,
# with its own code and model).
#
# For your own settings file, in a shell: `python -m rlnb.interop explain train_grpo.py` names the
# method and the defaults you did not know you chose.

# %%
pipeline.pipeline("rewards", "advantages", "ratio", "loss", caption=(
    "Where the seven choices live: shape at the rewards, advantage, ratio, "
    "and four in the loss. Filters sit between answers and rewards."))

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | the zoo | |
# |---|---|
# | sentence | a method is seven choices: shape, advantage, ratio, surrogate, gate, weights, terms |
# | formula | $L=-\sum c\,g\,f(A,\rho)+\sum\beta h$ |
# | picture | GRPO in the middle, one or two exchanged boxes on each way out |
# | numbers | fresh batch: 8 methods, 3 directions · CISPO is DAPO with one box exchanged · R1: ε = 10, 16 updates |
# | first question | how many updates does a batch get? |
# | derived | the policy gradient, the ratio as a weight |
# | choices | everything else |

# %%
print("DAPO -> CISPO\n" + str(difference(ZOO["dapo"], ZOO["cispo"])))
score("zoo.1", "zoo.2", "zoo.3", "zoo.4", "zoo.5", "zoo.6")

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
# **3 Find the silent bug** · 9 minutes. Two filters that stand around many of these losses: groups
# of equal rewards are left out, and a prompt with a pass rate of 0.9 or more leaves the pool. It
# runs, and the pool shrinks more slowly than expected.

# %%
print(check.silent_bug_the_zoo.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>What does the history of a prompt look like that is solved every time?</details>

# %% tags=["exercise"]
def my_test(retired):
    return ...

check.silent_bug_the_zoo(my_test)

# %% [markdown]
# **4 Name this method** · 6 minutes. Rows are answers, `r` is (prompts, answers), `engine` holds
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
# edge); gate; how tokens are averaged; extra terms such as a KL. GRPO is one column each, the
# others exchange one to three.
# </details>
# <details><summary><b>How does CISPO differ from DAPO?</b></summary>
#
# In one choice, the surrogate. DAPO's clip gives tokens outside the band no gradient. CISPO keeps
# them all: the ratio, capped and without gradient, weighs A log π. Advantage and average are the
# same, and so is the first step on a fresh batch.
# </details>
# <details><summary><b>We make one update per batch. GRPO, GSPO or SAPO?</b></summary>
#
# It does not matter for the gradient. At ratio 1 the three are the same: group z-score, mean per
# answer. What is left to choose is advantage, average and KL. It matters again once a batch is
# split into several steps, or the sampler's log-probs stand in the ratio.
# </details>
# <details><summary><b>Two runs both say "GRPO" and behave differently. What do you check?</b></summary>
#
# First how tokens are averaged: a mean per answer in TRL's "grpo", one mean over all tokens in
# verl's default. Then std or none, dual clip, KL coefficient, updates per batch, and the
# correction to the engine, which TRL switches on by default. Two libraries' defaults for one name
# are two losses.
# </details>
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
# 11. With sixteen updates per batch it is importance-weighted policy gradient with a KL of 0.001
# and a small learning rate.
# </details>
# <details><summary><b>What does MaxRL optimise?</b></summary>
#
# The log of the success probability instead of the probability. Dividing the centred reward by the
# group's mean weighs a prompt by 1/p, so hard prompts count most. With G answers it is exact for
# the first G − 1 terms of a series in pass@k. Rewards must be 0 and 1.
# </details>
# <details><summary><b>A new paper claims a better loss. How do you read it?</b></summary>
#
# Write its seven choices beside its baseline's. Often one box differs in the formula and three in
# the experiment. Then ask for updates per batch, equal numbers of answers, a learning rate tuned
# for both, and several seeds. A part that never acted in the run explains nothing.
# </details>
#
# The sentences that one hears about these methods, true or not, and the full tables:
# [statements 14](statements/14_the_zoo.ipynb). The exercises, solved:
# [solutions 14](solutions/14_the_zoo.ipynb).
#
# **Next: [15](15_preferences.ipynb).** Can you skip the reward, and learn from which of two answers people prefer?
