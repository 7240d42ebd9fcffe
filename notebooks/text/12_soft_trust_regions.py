# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 12 · CISPO, SAPO, DPPO: what should happen at the edge?
#
# **After this page** you can draw what four methods do to a token that has moved far, derive
# CISPO's and SAPO's weights, and say when the choice matters and when it does not.
#
# 38 minutes, then 10 in a second sitting · exercises 30 more · after 06 (PPO), 08 (GRPO), 11 (DAPO)
# · CISPO: MiniMax-M1 2025, [arXiv 2506.13585](https://arxiv.org/abs/2506.13585); SAPO 2025,
# [arXiv 2511.20347](https://arxiv.org/abs/2511.20347); DPPO 2026,
# [arXiv 2602.04879](https://arxiv.org/abs/2602.04879)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What is the ratio ρ of a token, and when is it 1?</summary>Its probability now over its probability when the answer was sampled (06). It is 1 for all tokens on the first update with a batch.</details>
# <details><summary>2. Which tokens does PPO's clip silence?</summary>Good ones above 1 + ε, bad ones below 1 − ε. Good means A > 0 (06).</details>
# <details><summary>3. What is ∇ρ?</summary>ρ ∇log π, for ρ = exp(log π − log π_old) and the old one is a constant (06).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import four_edges, many_updates
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import pipeline, soft_edges as pictures
from rlnb.classroom.pictures import token_grid
from rlnb.objective import difference
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Two tokens, eight updates
#
# A batch is expensive, so it is used for several updates. In the first update all ratios are 1.
# What does a token get from the second update on?

# %% jupyter={"source_hidden": true}
# the picture
pipeline.pipeline("ratio", "loss", again=True, caption=(
    "The ratio leaves 1 when a batch comes round again. What then?"))

# %% [markdown]
# Take two tokens of right answers, with advantage $+1$. When the answers were sampled, one token
# had probability 0.01, say a surprising "Wait". The other had 0.50. Each has one logit, its own
# against all other tokens together. `climb(rule, start)` makes eight updates with this one batch,
# each time $z\leftarrow z+0.2\,\partial L/\partial z$.

# %% tags=["setup"] jupyter={"source_hidden": true}
# climb, folded: eight gradient steps on one logit
def climb(rule, start, updates=8, rate=0.2):
    """Probability of one token with A = +1, update by update."""
    z, old = torch.tensor(start).logit(), torch.tensor(start).log()
    path = [start]
    for _ in range(updates):
        z = z.detach().requires_grad_()
        logp = torch.nn.functional.logsigmoid(z)
        slope, = torch.autograd.grad(rule(logp, old, torch.tensor(1.0)), z)
        z = z + rate * slope
        path.append(z.sigmoid().item())
    return path

# %% [markdown]
# The plain objective is $\rho A$. It has no clip.

# %%
def no_clip(logp, old, A):
    return (logp - old).exp() * A

free = {"no clip": [climb(no_clip, p) for p in (0.01, 0.5)]}
pictures.climbs(free, "Without a clip, one answer and eight updates turn "
                "the rare token into a near certainty.")

# %% [markdown]
# The push is $\rho A$, so $\rho$ feeds on itself: the more it has grown, the harder it is pushed.
# Something must say *enough*. PPO's clip says it at the edge of a band, with $\epsilon=0.2$.

# %% jupyter={"source_hidden": true}
# your guess
predict("soft.1", "With PPO's clip: in how many of the eight updates does "
        "a token still get a push?",
        ["started at 0.01: one, at 0.50: five",
         "both in one: the advantage is the same",
         "started at 0.01: eight, at 0.50: one. That one moves further",
         "both in all eight: each update is a small step"])

# %%
def ppo(logp, old, A, epsilon=0.2):
    rho = (logp - old).exp()
    return torch.minimum(rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A)

both = {**free, "PPO": [climb(ppo, p) for p in (0.01, 0.5)]}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def pushes(start):
    path = climb(ppo, start)
    return sum(a != b for a, b in zip(path, path[1:]))

assert (pushes(0.01), pushes(0.5)) == (1, 5)
wider = climb(lambda *x: ppo(*x, epsilon=0.28), 0.01)[-1]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("soft.1", "started at 0.01: one, at 0.50: five",
       f"The rare token stops at {both['PPO'][0][-1]:.4f} and has hardly "
       f"moved. The common one stops at {both['PPO'][1][-1]:.2f}. The "
       "logit moves by (1 − p) times the rate, and log p by (1 − p) times "
       "that: 0.98 of the rate at 0.01, a quarter at 0.50. So **a rare "
       "token uses up its ratio first.** DAPO's wider edge of 1.28 (11) "
       f"would give it a second push, to {wider:.4f}. The edge is still a "
       "ratio.",
       pictures.climbs(both, "PPO's edge is a ratio. It is reached first "
                       "by the token that has moved least."),
       instead={
           "both in all eight: each update is a small step":
           "A small step of the logit can be a large step of the ratio.",
           "both in one: the advantage is the same":
           "The advantage is the same. The room below ratio 1.2 is not.",
           "started at 0.01: eight, at 0.50: one. That one moves further":
           "It is the other way round. Which of them reaches ratio 1.2 "
           "first?",
       })

# %% [markdown]
# MiniMax saw words such as "However" and "Wait" fall silent after the first update, and these words
# open new ways of reasoning. Without an edge such a token runs away; PPO's edge stops it at once.
# Where else could one draw the line? Three methods answer.
#
# (The toy's token feels its own push again and again, as in several *epochs* on a batch. In
# *minibatches* it is pushed once; before that its ratio has moved by what others pushed, since
# tokens share weights.)

# %% [markdown]
# ## One number per token
#
# How can one compare such rules? They all have the same gradient, up to one number:
#
# $$\nabla L=w\;A\;\nabla\log\pi_\theta$$
#
# $w$ is the token's **weight**. **At $\rho=1$ the weight is 1 in all of them, so there they are one
# method.** Autograd reads the weight off any rule:

# %% tags=["setup"] jupyter={"source_hidden": true}
# weight, folded: what autograd puts in front
def weight(rule, rho, A=1.0, old=0.1):
    """The number in front of A grad log pi."""
    rho = torch.as_tensor(rho)
    before = torch.full_like(rho, old).log()
    logp = (before + rho.log()).requires_grad_()
    L = rule(logp, before, torch.full_like(rho, A))
    return torch.autograd.grad(L.sum(), logp)[0] / A + 0.0

# %%
print("PPO, good token at 1.19 and 1.21:",
      [round(w, 2) for w in weight(ppo, [1.19, 1.21]).tolist()])
pictures.weight_curves("PPO", caption=(
    "PPO: the weight is the ratio, and falls to 0 where a good token has "
    "risen above 1.2 or a bad one has fallen below 0.8. A bad one that "
    "rises has no end; a dual clip (06) sets one."))

# %% [markdown]
# ## CISPO: keep the gradient, cap the weight
#
# We want no token silenced, and no token with a huge weight. A cap on the *objective*,
# $\min(\rho,5)\,A$, does not help: beyond 5 it is a constant, and a constant has no slope. The cap
# must be on the *weight*.
#
# How does one cap a weight? Hold it constant. Write $\mathrm{sg}[\cdot]$, *stop-gradient*, for a
# number that is computed and then held fixed (`detach()`).
#
# $$\begin{aligned}
# \nabla\;\rho A&=A\,\nabla\rho=\rho\,A\,\nabla\log\pi_\theta&&\text{log trick backwards (06)}\\
# &=\nabla\big(\mathrm{sg}[\rho]\;A\,\log\pi_\theta\big)&&\text{a held factor passes through }\nabla\\
# &\;\to\;\nabla\big(\mathrm{sg}[\min(\rho,c)]\;A\,\log\pi_\theta\big)&&\textbf{a choice: cap the held factor}\\
# &=\min(\rho,c)\,A\,\nabla\log\pi_\theta&&\text{so }w=\min(\rho,c)\text{, never 0}
# \end{aligned}$$
#
# This is **CISPO** from MiniMax, *Clipped Importance-Sampling-weight Policy Optimization*. The
# ratio is an importance weight (04), cut off at $c$: bounded, and biased. What is missing is
# $(\rho-c)\,A\,\nabla\log\pi$ on tokens with $\rho>c$, those that became much likelier. And the
# objective behind it? Below the cap $\rho A$; above it $c\,(1+\log\frac\rho c)\,A$, whose slope in
# $\log\pi$ is $cA$. It grows without end, but only as a logarithm. The larger $c$, the less bias,
# and the more one token can weigh.

# %% jupyter={"source_hidden": true}
# your guess
predict("soft.3", "Someone forgets the stop-gradient and writes "
        "L = min(ρ, 5)·A·log π. What happens to a good token with ρ = 1.1 "
        "and log π = −2?",
        ["it is pushed up with weight 1.1, the cap does not act here",
         "it is pushed down, with weight 1.1",
         "it is pushed up, about twice as hard",
         "it is pushed up, but more weakly"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
def forgotten(logp, old, A, cap=5.0):
    return (logp - old).exp().clamp(max=cap) * A * logp

sampled = torch.tensor(-2.0).exp().item() / 1.1
wrong = weight(forgotten, [1.1], old=sampled).item()
reveal("soft.3", "it is pushed down, with weight 1.1",
       f"The weight is −{-wrong:.1f}. The product rule adds a term, and "
       f"the "
       r"weight becomes $\rho(1+\log\pi)$. It is negative for every token "
       f"below a probability of {torch.tensor(-1.0).exp().item():.2f}. "
       "Right answers lose their unlikely tokens, and nothing crashes.",
       instead={
           "it is pushed up with weight 1.1, the cap does not act here":
           "The cap does not act. But ρ is differentiated as well.",
           "it is pushed up, but more weakly":
           "Write out the product rule: the second term is larger than the "
           "first.",
           "it is pushed up, about twice as hard":
           "ρ log π has the sign of log π.",
       })

# %% [markdown]
# Here is CISPO as code, with its pushes on the sixteen tokens of the running group. There $A=\pm1$,
# so a cell shows the weight with the sign of $A$.

# %%
def cispo(logp, old, A, cap=5.0):
    w = (logp - old).exp().clamp(max=cap).detach()
    return w * A * logp

batch = running_group()
A4 = batch.rewards * 2 - 1                       # z-scores: 1, 1, -1, -1

def push(rule):
    L = rule(batch.logprobs, batch.old_logprobs,
             A4[:, None].expand_as(batch.logprobs))
    return torch.autograd.grad(L[batch.mask].sum(), batch.logprobs)[0]

token_grid.token_grid(batch, {"PPO": push(ppo), "CISPO": push(cispo)},
                      caption=("PPO silences four tokens, one of them at "
                               "ratio 6. CISPO gives that one its cap, 5."))

# %% [markdown]
# CISPO has a price. **A bounded weight is not a bounded policy:** no update tells a token to stop.

# %% [markdown]
# ## SAPO: let it fade
#
# Can a token be told to stop without a cliff? PPO's cliff comes from an objective that is a
# straight line and then flat. SAPO, *Soft Adaptive Policy Optimization*, bends it slowly. Call the
# objective $f(\rho)A$. We want the slope $f'$ to be 1 at $\rho=1$, and less further away.
#
# The slope of a sigmoid $\sigma$ is such a hill: $\sigma'=\sigma(1-\sigma)$, with height
# $\frac14$. Move the hill to $\rho=1$, and set its width by a temperature $\tau$. (Below, $\sigma$
# is taken at $\tau(\rho-1)$.)
#
# $$\begin{aligned}
# f(\rho)&=\tfrac4\tau\,\sigma&&\textbf{a choice: the shape}\\
# f'(\rho)&=4\,\sigma(1-\sigma)&&\text{chain rule; 1 at }\rho=1\text{ for every }\tau\\
# \nabla f(\rho)A&=f'(\rho)\,\rho\;A\,\nabla\log\pi_\theta&&\nabla\rho=\rho\,\nabla\log\pi_\theta\\
# w&=\rho\cdot4\,\sigma(1-\sigma)
# \end{aligned}$$
#
# The paper takes $\tau=1.0$ for good tokens and 1.05 for bad ones.

# %%
def sapo(logp, old, A, tau=1.0, tau_bad=1.05):
    rho = (logp - old).exp()
    t = torch.where(A > 0, tau, tau_bad)
    return 4 / t * torch.sigmoid(t * (rho - 1)) * A

# %% jupyter={"source_hidden": true}
# your guess
predict("soft.4", "SAPO with τ = 1. A good token has doubled, ρ = 2. "
        "What is its weight?", ["about 0.4", "about 0.8", "exactly 1",
                          "about 1.6"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
at = torch.tensor([1.5, 2.0, 3.5, 6.0])
w = weight(sapo, at)
reveal("soft.4", "about 1.6",
       f"It is {w[1]:.2f}. The slope has fallen to {w[1] / 2:.2f}, but it "
       "is multiplied by ρ = 2. So the soft edge first pushes *harder* "
       "than at ρ = 1, if less than no clip, which gives 2. The weight is "
       f"{w[2]:.2f} at ρ = 3.5 and {w[3]:.2f} at ρ = 6.",
       instead={
           "about 0.4":
           "That is close to half its slope.",
           "about 0.8":
           "That is the slope f'. The weight is ρ times it.",
           "exactly 1":
           "That is its weight at ρ = 1.",
       })

# %% [markdown]
# The weight is largest near $\rho=2$ and then fades. **SAPO has no cliff, and yet far tokens get
# next to nothing.**
#
# <details><summary>One level deeper: why two temperatures?</summary>
#
# Pushing a token down raises all others, and most of them nobody sampled. The authors take this for
# a source of instability, and want bad tokens to fade sooner. But a bad token that is pushed down
# meets hardly any edge: the hill is wide, and $\rho$ cannot fall more than 1 below 1. Where SAPO
# acts is on bad tokens that *rose*.
# </details>

# %% [markdown]
# ## DPPO: measure something else
#
# Is the ratio the right thing to measure at all? Here are two tokens. A good one has gone from
# 0.0001 to 0.0002. A bad one has gone from 0.99 to 0.80.

# %%
for old, now, A in (0.0001, 0.0002, 1.0), (0.99, 0.80, -1.0):
    print(f"{old} to {now}: moved {abs(now - old):.4f}, ratio "
          f"{now / old:.2f}, PPO's weight "
          f"{weight(ppo, [now / old], A, old).item():.2f}")

# %% [markdown]
# PPO silences the one that hardly moved. **A ratio is not a distance.** The error of PPO's
# surrogate is bounded by the *total variation* of the two policies (06): half the sum of
# $|p_\text{now}-p_\text{old}|$ over all tokens. What the written token gained the others lost, so
# its own $|p_\text{now}-p_\text{old}|$ is a lower bound: cheap, and blind to moves among the
# others.
#
# **DPPO**, *Divergence PPO*, keeps the weight $\rho$ and changes what is measured. A token falls
# silent once more than $\delta=0.15$ of probability has moved *in the direction in which $A$
# pushes*. (0.15 is the value in verl's script `examples/dppo_trainer`.)

# %%
def dppo(logp, old, A, delta=0.15):
    moved = logp.exp() - old.exp()
    too_far = moved * A.sign() > delta       # in the direction A pushes
    return torch.where(too_far, 0.0, (logp - old).exp() * A)

pictures.edge_map(batch)

# %% [markdown]
# ## Four edges
#
# Back to the two tokens of the beginning, with eight updates under every rule.

# %% jupyter={"source_hidden": true}
# your guess
predict("soft.5", "DPPO's edge is at 0.15 of probability. The rare token "
        "began at 0.01. Where is it after the eight updates?",
        ["near 0.012, where PPO left it", "near 0.16, at its edge",
         "near 0.65, far beyond its edge", "near 1, as without a clip"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
five = both | {name: [climb(rule, p) for p in (0.01, 0.5)] for name, rule
               in (("CISPO", cispo), ("SAPO", sapo), ("DPPO", dppo))}
rare = five["DPPO"][0]
last = next(k for k, p in enumerate(rare) if p > 0.16)
reveal("soft.5", "near 0.65, far beyond its edge",
       f"It stands at {rare[-1]:.2f}. After {last - 1} updates it is at "
       f"{rare[last - 1]:.3f}, not yet too far, with a ratio of "
       f"{rare[last - 1] / 0.01:.0f}. The next push has that weight, "
       "and is made in full. An edge looks at where a token *is*, and "
       "decides about the next update. **A cliff does not bound a single "
       "step.**",
       pictures.climbs(five, "The common token gains 0.12 under PPO, 0.16 "
                       "to 0.18 under the others; on the rare one they "
                       "part."),
       instead={
           "near 0.012, where PPO left it":
           "PPO stops it at ratio 1.2. DPPO does not look at the ratio.",
           "near 0.16, at its edge":
           "That is where it falls silent, if it ever is there.",
           "near 1, as without a clip":
           "It does fall silent, one update too late.",
       })

# %% [markdown]
# Why do they part on the rare token? The next picture has all four weights, for a token of your
# choice.

# %% jupyter={"source_hidden": true}
# the explorer
task("soft.t1", four_edges.four_edges_explorer(),
     ("One rule hardly pulls a token back that all others pull back. Find "
      "a token that none of them silences, and that SAPO gives less than a "
      "fifth of PPO's weight. Say first: good or bad, risen or fallen?",
      four_edges.sapo_lets_go))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# A *bad* token that became nearly four times likelier, or more. It went the wrong way, and wants to
# be pushed *back*. PPO, CISPO and DPPO do so. SAPO lets go far above 1, whatever the sign of A, so
# its push back fades, too. (A good token that fell it pushes back nearly as PPO does.)
# </details>
#
# **DPPO tests the movement and not the weight. CISPO caps the weight and not the movement. SAPO
# pushes harder up to a ratio of about 2, then lets go, whether the token is good or bad.**

# %% [markdown]
# ## In a real run
#
# MiniMax says that CISPO reached DAPO's score in half the steps on a 32B model, with 16 rounds of
# updates on a batch. DPPO's authors say that CISPO collapsed where engine and trainer disagreed
# ([arXiv 2602.04879](https://arxiv.org/abs/2602.04879)).
#
# Two things decide what such a report means for you: how often a batch is used, and **which `old`**
# stands in the ratio. PPO, CISPO and SAPO take the trainer's own record, made before the first
# update (08): on a fresh batch every weight is 1. DPPO takes the inference engine's. With that
# `old` weights differ before any update. Two tokens, and what each rule would make of them:

# %% jupyter={"source_hidden": true}
# engine and trainer disagree: the weights on a fresh batch
print("engine  trainer   A    PPO  CISPO  SAPO  DPPO")
for mu, p, sign in ((0.01, 0.013, 1.0), (0.9, 0.74, -1.0)):
    row = [weight(rule, [p / mu], A=sign, old=mu).item()
           for rule in (ppo, cispo, sapo, dppo)]
    print(f"{mu:6.2f} {p:8.3f} {sign:+4.0f}  "
          + "".join(f"{x:6.2f}" for x in row))

# %% [markdown]
# A ratio clip silences the rare token, though next to nothing has moved, and lets the common one
# pass. DPPO does the opposite.
#
# **What to log:** the share of silent tokens, by the sign of $A$ where you can (TRL:
# `clip_ratio/low_mean`, `high_mean`; verl's `actor/pg_clipfrac` is one number), and the largest
# change of a probability.

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | CISPO, SAPO, DPPO | |
# |---|---|
# | sentence | of the good tokens PPO silences the unlikely ones first; CISPO caps their weight, SAPO lets it fade beyond a ratio of 2, DPPO measures probability instead of the ratio |
# | formula | gradient $wA\nabla\log\pi$ · CISPO $w=\min(\rho,c)$ · SAPO $w=4\rho\,\sigma(1-\sigma)$ · DPPO $w=\rho$, or 0 after $\delta$ in A's direction |
# | silent | PPO: outside the band on A's side · CISPO: nobody · SAPO: nobody quite · DPPO: whoever moved 0.15 on A's side |
# | picture | weight over ratio: a cliff, a plateau, a hill, a cliff that stands elsewhere for each token |
# | numbers | ρ = 1: all weights 1 · SAPO at 2: 1.57 · 0.0001 → 0.0002 is ratio 2, 0.99 → 0.80 is 0.81 |
# | derived | $\nabla\rho A=\nabla\,\mathrm{sg}[\rho]A\log\pi$ |
# | when | ratios away from 1: many updates per batch, stale or misread `old` |
# | choices | the cap, the shape, the measure |

# %%
print(difference(ZOO["dapo"], ZOO["cispo"]))
score("soft.1", "soft.3", "soft.4", "soft.5")

# %% [markdown]
# ## Second sitting: does one of them win?
#
# The four rules give different weights. Does that change what is learnt?
#
# ### Which one wins?
#
# Here is a small world to train in. It has sixteen prompts with twenty possible answers each, and
# an answer is *one* token. Groups have four answers, and the advantages are GRPO's. The grader errs
# one time in five, each time anew. Every rule gets twenty batches, and uses each batch for eight
# gradient steps. At learning rate 0.25 the chance to be right ends at

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: the prompts, and sweep(rule)
P, K, G = 16, 20, 4                        # prompts, answers, group size
right = (torch.arange(K) < torch.arange(2, 18)[:, None]).double()
start = torch.randn(P, K, generator=torch.Generator().manual_seed(1))
rates = (0.125, 0.25, 0.5, 1, 2, 4, 8)

def sweep(rule, rates=rates, **world):
    """Mean chance to be right at the end, (rates, seeds)."""
    return torch.stack([train(rule, rate, **world) for rate in rates])

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: train(rule, rate)
def train(rule, rate, errs=0.2, uses=8, n=40):
    """20 batches of 16 prompts with 4 answers, each used `uses` times."""
    dice = torch.Generator().manual_seed(0)
    def rand(*shape):
        return torch.rand(*shape, generator=dice)
    z = start.repeat(n, 1, 1)
    for _ in range(20):
        torch.randn(z.shape, generator=dice)     # the statements' dice
        now = z.log_softmax(2)
        y = now.exp().view(-1, K).multinomial(G, True, generator=dice)
        y = y.view(n, P, G)
        R = right.expand(n, P, K).gather(2, y)
        R = torch.where(rand(R.shape) < errs, 1 - R, R)
        A = (R - R.mean(2, True)) / (R.std(2, correction=0, keepdim=True)
                                     + 1e-6)
        rand(y.shape)
        old = now.gather(2, y)
        for _ in range(uses):
            z = z + rate / G * slope_in_z(rule, z, y, old, A)
    return (z.softmax(2) * right).sum(2).mean(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: one gradient
def slope_in_z(rule, z, y, old, A):
    logp = z.log_softmax(2)
    own = logp.gather(2, y).requires_grad_()
    w, = torch.autograd.grad(rule(own, old, A).sum(), own)
    push = torch.zeros_like(z).scatter_add(2, y, w)
    return push - w.sum(2, keepdim=True) * logp.exp()

# %%
rules = {"no clip": no_clip, "PPO": ppo, "CISPO": cispo, "SAPO": sapo,
         "DPPO": dppo}
noisy = {name: sweep(rule) for name, rule in rules.items()}
for name, runs in noisy.items():
    print(f"{name:8s} {runs[1].mean():.3f}")

# %% jupyter={"source_hidden": true}
# your guess
predict("soft.6", "Now each rule gets its own best rate, from 0.125 to "
        "8. Which one leads?",
        ["CISPO: it never loses a token", "SAPO: no jump anywhere",
         "DPPO: it measures the right "
         "thing", "no clip: it gets most out of a batch",
         "PPO: it stops first"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
exact = {name: sweep(rule, errs=0.0, n=20)
         for name, rule in rules.items()}
arms = {"PPO, ε = 0.2": noisy["PPO"]}
for e in (0.05, 0.5):
    arms[f"PPO, ε = {e}"] = sweep(lambda *x: ppo(*x, epsilon=e), rates[4:])
arms["SAPO, τ = 10"] = sweep(
    lambda *x: sapo(*x, tau=10.0, tau_bad=10.0), rates[4:])
arms["SAPO, τ = 1"] = noisy["SAPO"]
arms["no clip, each batch used 8 ×"] = noisy["no clip"]
for uses in (4, 2, 1):
    arms[f"no clip, each batch used {uses} ×"] = sweep(
        no_clip, (0.5, 1, 2, 4), uses=uses)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
flat = noisy["SAPO"].mean(1)[2:6]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("soft.6", "PPO: it stops first",
       f"At its best rate, 4, it ends at {noisy['PPO'].mean(1).max():.3f}. "
       "So do a SAPO with a narrow hill (τ = 10) and, level with them, no "
       "clip at all with one update per batch (second picture). **Where "
       "grades are wrong, to use them less often is what helps here.** "
       "Where grades are exact, all five end at "
       f"{min(r.mean(1).max() for r in exact.values()):.2f} or above. So "
       "ask how often a batch is used, how often the grader errs, and who "
       "was tuned.",
       pictures.race(rates, {"grader errs": noisy, "exact grader": exact},
                     "40 seeds left, 20 right; bars: two standard errors. "
                     "PPO wants a larger rate than the others."),
       pictures.tightness(arms, (
           "The grader errs, each arm at its best rate, 40 seeds, two "
           "standard errors. At that rate PPO's ε from 0.05 to 0.5 makes "
           "no difference; to use a batch once or twice does.")),
       instead={
           "CISPO: it never loses a token": "Not those with wrong grades.",
           "SAPO: no jump anywhere":
           f"{flat.min():.2f} to {flat.max():.2f} from rate 0.5 to 4.",
           "DPPO: it measures the right thing":
           "It does. But measuring well does not repair a wrong grade.",
           "no clip: it gets most out of a batch": "With right grades.",
       })

# %% [markdown]
# ### The same tokens, more updates
#
# The rare or common token again, with as many updates as you like.

# %% jupyter={"source_hidden": true}
# the explorer
task("soft.t2", many_updates.many_updates_explorer(),
     ("From 0.01, as in the picture: find a rate at which DPPO stops, and "
      "stops below 0.25. Say first whether it takes a smaller rate or a "
      "larger one.", many_updates.dppo_lands),
     ("Back to 0.01 and rate 0.2. Let CISPO end 0.1 above DPPO. Guess the "
      "number of updates first.", many_updates.cispo_ahead))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Either: 0.05 (after 22 updates), 0.5 or 3. What counts is not the rate but where the last step
#    starts. At 0.2 it starts at 0.14, just inside the edge, with a weight of 14, and lands at 0.65.
#    **A cliff does not bound a single step.** (verl caps this weight; at its default of 3 such a
#    step is short.)
# 2. Go on to twelve updates or more. DPPO has stopped for good, and CISPO has no place where it
#    stops.
# </details>
#
# <details><summary>One level deeper: names and traps in the libraries</summary>
#
# * TRL, `loss_type="cispo"`: `epsilon_high` is the cap *itself*. Its default is `epsilon`, 0.2, so
#   nearly every token gets the weight 0.2. Write 5.0. MiniMax never printed its cap.
# * verl, `loss_mode="cispo"`: the cap is 1 + `clip_ratio_high`, and by default there is a floor of
#   0.8 too.
# * SAPO: `loss_type="sapo"` with `sapo_temperature_pos` and `_neg` in TRL; `loss_mode="sapo"` in
#   verl. A later study found 10 and 12 better than 1.0 and 1.05
#   ([arXiv 2602.19345](https://arxiv.org/abs/2602.19345)).
# * DPPO: `loss_mode="dppo_tv"` in verl. A safety cap on the weight is 10,000 in verl's
#   `examples/dppo_trainer`, and 3 by default. TRL had a trainer for it from March to July 2026.
# </details>

# %%
score("soft.6")

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 8 minutes. CISPO's loss, to be minimised. `logprobs`, `old_logprobs`, `mask` are
# (B, T), the mask boolean, `advantages` (B,). One mean over all unmasked tokens. Under the mask
# stands anything, NaN too, and it must reach neither value nor gradient.
#
# <details><summary>hint</summary>What is held, what carries the gradient? Replace before exp, not after.</details>

# %% tags=["exercise"]
def my_cispo_loss(logprobs, old_logprobs, mask, advantages, cap):
    return ...

check.cispo_loss(my_cispo_loss)

# %% [markdown]
# **2 Implement** · 5 minutes. SAPO's gate $f(\rho)$, element by element, before it is multiplied by
# the advantage, whose sign only picks the temperature. The result has the dtype of the input.
#
# <details><summary>hint</summary>torch.where of two Python numbers has the default dtype. What are f(1) and f'(1)?</details>

# %% tags=["exercise"]
def my_sapo_gate(ratio, advantage, tau_pos, tau_neg):
    return ...

check.sapo_gate(my_sapo_gate)

# %% [markdown]
# **3 Implement** · 6 minutes. DPPO's mask, True keeps a token. No autograd, three tensors of one
# shape, two thresholds: `high` for $A>0$, `low` otherwise.
#
# <details><summary>hint</summary>Which two of the four sign cases can be dropped at all? You need no absolute value.</details>

# %% tags=["exercise"]
def my_dppo_mask(logprobs, old_logprobs, advantages, low, high):
    return ...

check.dppo_mask(my_dppo_mask)

# %% [markdown]
# **4 Find the silent bug** · 8 minutes. DPPO on one batch. It runs, it learns, and its log says
# that no token is ever masked:

# %%
print(check.silent_bug_soft_trust_regions.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>What should fifty updates with one batch not be able to do?</details>

# %% tags=["exercise"]
def my_test(train_on_batch):
    ...

check.silent_bug_soft_trust_regions(my_test)

# %% [markdown]
# **5 Name this method** · 3 minutes. Seven tokens: probability when sampled, now, sign of $A$,
# weight.
#
#        old     now    A   weight
#       0.01    0.06    +    6.000
#       0.50    0.40    +    0.800
#       0.60    0.30    −    0.000
#       0.95    0.78    −    0.000
#       0.90    0.76    −    0.844
#       0.30    0.60    −    2.000
#       0.20    0.45    +    0.000
#
# <details><summary>hint</summary>Sort the lines by the ratio: is there a band? Then sort them by what moved.</details>

# %% tags=["exercise"]
my_answer = ...
check.name_this_soft_trust_regions(my_answer)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>PPO's clip kills gradients. What do CISPO, SAPO and DPPO do instead?</b></summary>
#
# All four have the gradient w A ∇log π and differ in w. PPO: the ratio, or 0 once a token is past 1
# ± ε in A's direction. CISPO: min(ρ, c), never 0. SAPO: ρ times a wide hill around 1, fading above
# 1 and hardly below. DPPO: the ratio, or 0 once more than 0.15 of probability has moved in A's
# direction.
# </details>
# <details><summary><b>When do they differ at all?</b></summary>
#
# Only when ratios have left 1. That needs several updates per batch, stale data, or an engine with
# other probabilities. Look at the share of tokens outside the band and at the largest change of a
# probability, not at the number of updates.
# </details>
# <details><summary><b>Why the stop-gradient in CISPO?</b></summary>
#
# Because the term is multiplied by log π. The ratio stands in front as a number; if it is
# differentiated as well, the product rule adds ρ log π, the coefficient is ρ(1 + log π), and every
# right token below probability 1/e is pushed down. (Without log π one would differentiate ρ itself:
# ∇ρA and sg[ρ]A∇log π are the same gradient.)
# </details>
# <details><summary><b>Why measure probability instead of the ratio?</b></summary>
#
# A ratio is strict on rare tokens and lax on likely ones. From 0.0001 to 0.0002 the ratio is 2 and
# nothing has moved; from 0.99 to 0.80 it is 0.81, inside the clip, and 0.19 has moved.
# </details>
# <details><summary><b>Which one would you take?</b></summary>
#
# None before I have seen the share of silent tokens. If it is near zero and no probability has
# moved far, another edge changes little. If it is large, I tune the rate for each and add an arm
# with one update per batch. With noisy rewards I would rather reuse less. For unlikely tokens in
# batches that are used often, CISPO has a report. Where engine and trainer disagree, I first ask
# which of them wrote the `old` of the ratio.
# </details>
#
# The other two can wait for another evening.
#
# <details><summary><b>Some systems drop far tokens whatever the sign of A. A bug?</b></summary>
#
# Perhaps a bandage. It drops tokens whose record is wrong, if they look far, and gives up the push
# back. I would ask what is measured, ratio or probability, and log how often a token that is being
# pushed back is dropped.
# </details>
# <details><summary><b>SAPO's weight: ever above 1? And why two temperatures?</b></summary>
#
# Yes, up to 1.57 near ratio 2 at τ = 1, because ρ grows faster than the slope falls. Bad tokens
# are to fade sooner, since pushing them down raises tokens that nobody sampled. At 1.05 they hardly
# do: halved, one keeps nearly all of the slope. What fades is the way back, a bad token that rose.
# </details>
#
# The sentences that one hears about these methods, true or not:
# [statements 12](statements/12_soft_trust_regions.ipynb). The exercises, solved:
# [solutions 12](solutions/12_soft_trust_regions.ipynb).
#
# [Next: 13](13_gspo.ipynb). One ratio for a whole answer: what does that repair?
