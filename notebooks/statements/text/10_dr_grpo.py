# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 · statements: Dr. GRPO, and how tokens are averaged
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the library manual, the parity cells and the corner cases of the lesson,
# [10 · Dr. GRPO](../10_dr_grpo.ipynb).

# %% tags=["setup"]
import torch
import rlnb.objective as parts
from rlnb import ZOO, explain_config, from_trl, rosetta
from rlnb.classroom import explorers
from rlnb.classroom.explorers.token_weights import compute
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures.aggregation_rules import (
    share_and_pressure, stop_drift)
from rlnb.objective import (
    Batch, constant_length, difference, k3, local_token_mean, name_of,
    padded_length, prompt_mean, sequence_mean, token_mean)
from rlnb.objective.batch import Totals
from rlnb.toys import (
    SequencePolicy, estimator_moments, running_batch, running_group)
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"]
dr_grpo = ZOO["dr_grpo"]
grpo = ZOO["grpo"].replace(terms=())                   # without KL
fresh = running_batch().replace(old_logprobs=None)     # on-policy


def four(numbers):
    return " ".join(f"{float(x):.4f}" for x in numbers)


def slope(objective, batch):
    return torch.autograd.grad(objective(batch).loss, batch.logprobs)[0]

# %% tags=["setup"]
# one step: eight answers to one prompt, 100 tokens, 1000 tokens, six of 300
tokens_of = torch.tensor([100.0, 1000.0] + [300.0] * 6)


def per_token(part, lengths, G):                 # c of a token, per answer
    mask = (torch.arange(1000) < lengths[:, None]).double()
    n = len(lengths)
    step = Batch(torch.zeros(n, 1000), mask, torch.zeros(n), G)
    return part(step, Totals.of_groups(step))[:, 0]


seq = per_token(sequence_mean(), tokens_of, 8)
tok = per_token(token_mean(), tokens_of, 8)
const = per_token(constant_length(2048), tokens_of, 8)

# %% [markdown]
# ## What changes
#
# ### C07 · the whole change
#
# Is that all?

# %%
statement("C07")

# %% tags=["claim:C07"]
print(difference(ZOO["grpo"], dr_grpo))
changes = difference(grpo, dr_grpo)
print("without KL:", len(changes), "lines")
assert [c.part for c in changes] == ["advantage", "weights"]
# "divide by a constant instead of the answer's length": true

# %%
settle("C07", "true")

# %% [markdown] tags=["cited:K12"]
# ### K12 · the KL
#
# "Removing the KL is part of Dr. GRPO's fix." The third line above is a setting. The paper
# ([2503.20783](https://arxiv.org/abs/2503.20783), section 3) trains with $\beta=0$, so a
# configuration that copies its experiments has no KL. But the corrections that it derives are the
# std and the length; a KL term may stand beside them.

# %% [markdown]
# ### Token by token
#
# With $A$ the z-scored advantage, GRPO's token weighs $A_i/T_i$ and Dr. GRPO's $\sigma_R\,A_i/L$
# (both over $B$). So Dr. GRPO *is* GRPO with each token multiplied by $\sigma_R\cdot T_i/L$. On
# fresh data, both prompts of the running batch, then three groups for the factor $\sigma_R$ alone:

# %%
a, z = dr_grpo(fresh), grpo(fresh)
sigma = fresh.rewards.view(2, 4).std(1, correction=0)
sigma = sigma.repeat_interleave(4)
print("row    std     T/L   GRPO cA   Dr. GRPO cA")
for i in range(8):
    before = (z.weights * z.advantages)[i, 0]
    after = (a.weights * a.advantages)[i, 0]
    part = fresh.lengths[i] / 8
    print(f"{i}    {sigma[i]:.4f}  {part:.3f}  {before:+.5f}     "
          f"{after:+.5f}")
    assert torch.isclose(after, before * sigma[i] * part, rtol=1e-5)
groups = {"8 of 16 right": [1.0] * 8 + [0.0] * 8,
          "1 of 16 right": [1.0] + [0.0] * 15,
          "0.51 and 0.50": [0.51] * 8 + [0.50] * 8}
for name, rewards in groups.items():
    r = torch.tensor(rewards)
    centred, std = r - r.mean(), r.std(correction=0)
    print(f"{name}: std {std:.3f}   largest |A|: z-score "
          f"{(centred / std).max():.3f}, Dr. GRPO {centred.max():.3f}")

# %% [markdown]
# $\sigma_R\le\frac12$ for rewards of 0 and 1, and $T/L\le1$: every token shrinks. The second
# prompt's lone one-token answer, GRPO's largest weight, loses most. Between prompts, a rare success
# loses half of its lead (3.873 against 1 becomes 0.938 against 0.5), and a near-tie stays as small
# as it is.
#
# What stays as it was:

# %%
tens = fresh.replace(rewards=10 * fresh.rewards)
flat = fresh.replace(rewards=torch.tensor([1.0] * 4 + [0.0] * 4))
wide = running_batch()                                 # off-policy
for name, o in (("GRPO", grpo), ("Dr. GRPO", dr_grpo)):
    g = slope(o, fresh)
    dead = (o.explain(wide).gate == 0) & wide.mask
    print(f"{name:9s} equal groups {slope(o, flat).abs().max():.4f}   "
          f"rewards x10: gradient x"
          f"{slope(o, tens).norm() / g.norm():.2f}   "
          f"clipped tokens {int(dead.sum())}")
    assert slope(o, flat).abs().max() == 0
assert torch.allclose(slope(dr_grpo, tens), 10 * slope(dr_grpo, fresh))

# %%
first, second = torch.tensor([[1.0, 1, 0, 0], [1.0, 0, 1, 0]])
mixed = 10 * first + second
mixed = (mixed - mixed.mean()) / mixed.std(correction=0)
print("z-score of 10 x [1,1,0,0] + [1,0,1,0]: ", four(mixed))
assert torch.isclose((mixed[0] - mixed[2]) / (mixed[0] - mixed[1]),
                     torch.tensor(10.0))

# %% [markdown]
# All-right and all-wrong groups still teach nothing. The clip cuts the same tokens. The mean still
# contains the own reward, a factor $(G-1)/G$ ([03](../03_baselines.ipynb)). One thing is *new*: the
# scale of the reward has become part of the gradient. Rewards of 0 to 10 give ten times the
# gradient: ten times the step under SGD, none under Adam until clipping or a second loss term comes
# in (below). Under the z-score the overall scale drops out. The proportion of two mixed rewards
# does not: in the last line it is still 10 to 1, unless each is normalised on its own.

# %% [markdown]
# ## Share of the gradient
#
# What an answer gets of the step's weight is $cT$. The eight answers of the set-up: 100 tokens,
# 1000 tokens, six of 300.
#
# ### L13 · GRPO's loss in code
#
# One meets $1/|o_i|$ in the formula and a masked mean over all tokens in the code below it.

# %%
statement("L13")

# %% tags=["claim:L13"]
by_formula = grpo
by_code = grpo.replace(weights=token_mean)
for name, o in (("mean of means", by_formula), ("one mean", by_code)):
    out = o(fresh)
    print(f"{name:14s} value {out.loss + 0.0:8.4f}   weight of a token "
          f"{out.weights[6, 0]:.4f} (7 tokens) {out.weights[5, 0]:.4f} (1)")
equal = running_batch().replace(
    old_logprobs=None, completion_mask=torch.ones(8, 7))
assert torch.isclose(by_formula(equal).loss, by_code(equal).loss)
assert abs(by_formula(fresh).loss - by_code(fresh).loss) > 0.03
# "GRPO's loss is a masked mean over all tokens": sloppy

# %%
settle("L13", "it depends")

# %% [markdown]
# ### L07, L03 and L05 · what a token-level loss does
#
# Three sentences on one batch.

# %%
statement("L07")
statement("L03")
statement("L05")

# %% tags=["claim:L07", "claim:L03", "claim:L05"]
three = {"sequence mean": seq, "token mean": tok,
         "constant, L = 2048": const}
print("                     c: 100      1000    share: 100   1000")
for name, c in three.items():
    part_of = c * tokens_of / (c * tokens_of).sum()
    print(f"{name:19s} {c[0]:.2e}  {c[1]:.2e}         "
          f"{part_of[0]:.4f} {part_of[1]:.4f}")
assert torch.isclose(seq[0] / seq[1], torch.tensor(10.0))  # (1)
assert torch.allclose(const / tok, (const / tok)[0])       # (2) a scalar
assert tok[0] == tok[1]                                    # (3)
for G in (2, 8, 16, 512):                        # two prompts
    rest = [500.0] * (G - 1)
    both = torch.tensor([100.0, *rest, 1000.0, *rest])
    printed, one_mean = (per_token(part, both, G)
                         for part in (prompt_mean(), token_mean()))
    print(f"prompt mean, G = {G:3d}: c, short answer's prompt over the "
          f"other's {printed[0] / printed[G]:.3f}")
    assert one_mean[0] == one_mean[G]                # nothing remains
    assert G != 8 or abs(printed[0] / printed[G] - 1.25) < 1e-12
# "A token-level loss keeps long answers from being diluted": true
# "a constant divisor removes the short bias": conditional
# "gives short right answers larger gradients per token": wrong

# %%
settle("L07", "true")
settle("L03", "it depends")
settle("L05", "false")

# %% [markdown]
# L07 is true. A token of the long answer counts as much as any, where the sequence mean gives it a
# tenth.
#
# L03. As a share of the gradient, yes, and DAPO says so of itself
# ([2503.14476](https://arxiv.org/abs/2503.14476), section 3.3): 1 to 10, like the lengths. But the
# constant divisor has the *same* shares. Within a batch the two are one direction, and cannot be
# contrasted.
#
# L05. No: all tokens get 3.45e-4. The description fits the sequence mean (1.25e-3 against 1.25e-4).
# A remainder of it lives *between* prompts under DAPO's printed divisor, which is per prompt: with
# one answer of 100 tokens in one group, of 1000 in another and 500 for all the rest, 1.25 times at
# $G=8$.

# %% [markdown]
# ### L06 · fewer tokens, larger gradient
#
# Whose tokens?

# %%
statement("L06")

# %% tags=["claim:L06"]
halved, cut = tokens_of / 2, tokens_of.clone()
cut[1] = 100.0                                         # the long one
for name, now, times in (("all halved", halved, 2.0),
                         ("1000 cut to 100", cut, 2900 / 2000)):
    c = per_token(token_mean(), now, 8) / tok          # against before
    own = per_token(sequence_mean(), now, 8) / seq
    print(f"{name:15s} c of every token {c[0]:.2f} times; sequence mean: "
          f"its own {own[1]:.2f}, its neighbour's {own[0]:.2f} times")
    assert torch.allclose(c, torch.tensor(times))      # everybody's alike
assert torch.allclose(own[:2], torch.tensor([1.0, 10.0]))  # not alike
# "fewer tokens mean a larger gradient": sloppy

# %%
settle("L06", "it depends")

# %% [markdown]
# ### L08 · one mean per prompt
#
# Prompts count alike. Their tokens?

# %%
statement("L08")

# %% tags=["claim:L08"]
inside = torch.tensor([1.0, 9.0])                      # one prompt, tokens
inner = inside / inside.sum()
wordy, terse = 1000.0, 100.0                           # N_p of two
by_prompt = 1 / (2 * torch.tensor([wordy, terse]))
print(f"answers of 1 and 9 tokens: shares {inner[0]:.1f} {inner[1]:.1f}")
print(f"two prompts of 1000 and 100 tokens: c {by_prompt[0]:.0e} "
      f"and {by_prompt[1]:.0e}, "
      f"shares {by_prompt[0] * wordy:.1f} {by_prompt[1] * terse:.1f}")
assert inner.tolist() == [0.1, 0.9]
assert torch.isclose(by_prompt[1] / by_prompt[0], torch.tensor(10.0))
assert by_prompt[0] * wordy == by_prompt[1] * terse == 0.5
# "Averaging per prompt has no length bias": sloppy

# %%
settle("L08", "it depends")

# %% [markdown] tags=["cited:L09"]
# ### L09 · does it matter for the score?
#
# One paper is quoted on both sides. ScaleRL ([2510.13786](https://arxiv.org/abs/2510.13786)) finds
# the prompt average best when it compares aggregations (section 3.2). Its abstract, and section 4,
# where single choices of the final recipe are undone, say that such choices mostly change
# efficiency: the runs end at about the same ceiling. Quote the experiment with the sentence.

# %% [markdown]
# ## Pressure on length
#
# A policy writes a token, then stops with probability $q=\sigma(z)$ or goes on, so its mean length
# is $1/q$. After $T$ tokens
#
# $$\log P(T)=(T-1)\log(1-q)+\log q,\qquad \frac{\partial\log P(T)}{\partial z}=1-qT$$
#
# Reward does not depend on length at all: a first token has settled right or wrong, and right and
# wrong answers have a stop logit $z$ *of their own*. Then the true gradient on both is 0. What an
# aggregation $c$ puts there instead is $A\,\mathbb E[c\,(1-qT)]$: a *drift*, positive for stopping
# earlier when $A\gt0$.

# %%
q = 0.1                                                # mean length 10
T = torch.arange(1, 601.0)
P_T = q * (1 - q) ** (T - 1)                           # sums to 1 - 3e-28
z = torch.tensor(q).logit().requires_grad_()
log_P = (T - 1) * (-z.sigmoid()).log1p() + z.sigmoid().log()
slope_7, = torch.autograd.grad(log_P[6], z)
push = 1 - q * T
assert torch.isclose(slope_7, push[6])

constant = (P_T * push).sum()                          # c = 1
own = (P_T * push / T).sum() / q                       # c = (1/q) / T
print(f"c = 1: {abs(constant):.6f}    c = (1/q)/T: {own:.6f}")
closed = -torch.tensor(q).log() / (1 - q) - 1
assert torch.isclose(own, closed) and abs(constant) < 1e-12

# %% [markdown]
# Zero, exactly, for any rule whose weight is fixed before sampling. With $1/T$, scaled so that an
# average token has weight 1, it is $\mathbb E[1/T]/q-1=\frac{\ln(1/q)}{1-q}-1=1.558$, and positive
# for every $q$, since $\mathbb E[1/T]\gt1/\mathbb E[T]$. Right answers get shorter, wrong ones
# longer. It grows with length: 5.9 at a mean of 1000 tokens.
#
# And a token mean? Let $n$ be *the number of answers that share a divisor*: 1 in the sequence mean,
# $G$ in the prompt mean, $B$ in the token mean. In the same scale a token weighs
# $c=\frac{n/q}{T+S}$, with $S$ the tokens of the other $n-1$ answers. Write $T+S=(n/q)(1+\delta)$;
# then $c\approx1-\delta$, only the own $T$ in $\delta$ goes with $qT$, and the drift is about
# $\mathrm{cov}(\delta,qT)=\frac{q^2}n\mathrm{var}(T)=\frac{1-q}n$. `stop_drift` sums it exactly. In
# its last column the divisor is not the total but the longest of the $n$: verl's padded width,
# below.

# %%
print("          shared total   (1 - q)/n   longest of n")
for n in (1, 2, 4, 8, 64):
    print(f"n = {n:2d}:      {stop_drift(n):.4f}      {0.9 / n:.4f}"
          f"        {stop_drift(n, divisor='longest'):.4f}")
assert abs(stop_drift(1) - own) < 1e-9
assert stop_drift(2) > stop_drift(8) > stop_drift(64) > 0
assert abs(64 * stop_drift(64) - 0.9) < 0.02
assert abs(stop_drift(1, q=1e-3, up_to=40000) - 5.9) < 0.02

# %% [markdown]
# It falls like $(1-q)/n$ once $n$ is large; one answer alone is above that, and a token mean over
# 64 answers has under 1 % of GRPO's. The sign is GRPO's: right answers shorter, wrong ones longer,
# only weaker. No pull of *all* answers towards length.

# %% [markdown]
# ### L04 · the reverse bias
#
# Left what a long and a short answer get of the step, right the push on length.

# %%
mask = (torch.arange(1000) < tokens_of[:, None]).double()
step = Batch(torch.zeros(8, 1000), mask, torch.zeros(8), 8)
ruled = {"sequence_mean\nn = 1": (sequence_mean(), stop_drift(1)),
        "padded width\nn = 8": (padded_length(),
                                stop_drift(8, divisor="longest")),
        "prompt_mean\nn = 8": (prompt_mean(), stop_drift(8)),
        "token_mean\nn = 64": (token_mean(), stop_drift(64)),
        "constant_length\nand the sums": (constant_length(2048), 0.0)}
share, pressure = {}, {}
for name, (part, pressure[name]) in ruled.items():
    c = part(step, Totals.of_groups(step))[:, 0]
    share[name] = float(c[1] * 1000 / (c[0] * 100 + c[1] * 1000))

# %%
statement("L04")

# %% tags=["claim:L04"]
fixed, single = "constant_length\nand the sums", "sequence_mean\nn = 1"
ladder = (torch.arange(600) < T[:, None]).double()     # 1 to 600 tokens
every = Batch(torch.zeros(600, 600), ladder, torch.zeros(600), 600)
for name in (single, fixed):                           # P_T, push: above
    c = ruled[name][0](every, Totals.of_groups(every))[:, 0]
    value = (P_T * c * push).sum() / (P_T * c * T).sum() / q
    pressure[name] = round(value.item(), 12) + 0.0
    print(f"{pressure[name]:.6f}  {name.splitlines()[0]}")
assert pressure[fixed] == 0 and abs(pressure[single] - own) < 1e-9
assert abs(share[fixed] - share["token_mean\nn = 64"]) < 1e-12
share_and_pressure(
    list(pressure), share, pressure, lengths=(100, 1000),
    caption="Share and pressure are different things: the one rule that"
            " gives a long and a short answer to one prompt the same share"
            " pushes most on length. Right: mean length 10, average token"
            " weight 1, n answers share a divisor. Exact sums, no seeds.")
# "Dr. GRPO brings the reverse bias": wrong

# %%
settle("L04", "false")

# %% [markdown]
# "Dr. GRPO brings the reverse bias, a pull towards verbosity", is a warning you will hear. As a
# property of the estimator it is wrong: the push is 0. The paper itself reports answers that grow
# *less*, wrong ones above all ([2503.20783](https://arxiv.org/abs/2503.20783), abstract and figure
# 1). But an expected push of 0 is not a length that stands still. Let it run: one prompt, $G=8$, a
# coin decides right or wrong, mean length 20 at the start, 200 seeds, 300 steps.

# %%
def simulate(rule, own_logits, lr=1.0, seeds=200, steps=300, G=8):
    gen = torch.Generator().manual_seed(0)
    z = torch.full((seeds, 2), 1 / 20).logit()         # wrong, right
    for _ in range(steps):
        right = (torch.rand(seeds, G, generator=gen) < 0.5).long()
        which = right if own_logits else torch.zeros_like(right)
        stop = z.sigmoid().gather(1, which)
        u = torch.rand(seeds, G, generator=gen)
        T = 1 + (u.log() / (-stop).log1p()).floor()    # geometric
        A = right - right.double().mean(1, keepdim=True)
        c = {"sequence_mean": 1 / T,
             "token_mean": G / T.sum(1, keepdim=True) + 0 * T,
             "constant_length": torch.full_like(T, 1 / 20)}[rule] / G
        step = c * A * (1 - stop * T)
        z = z + lr * torch.stack(
            [torch.where(which == k, step, 0).sum(1) for k in (0, 1)], 1)
    return 1 / z.sigmoid()                             # mean lengths

# %% tags=["nbval-ignore-output"]
ends = {}
print("own stop logits: median of the mean length (10 %, 90 % of seeds)")
for rule in ("sequence_mean", "token_mean", "constant_length"):
    L = ends[rule] = simulate(rule, own_logits=True)
    lo, mid, hi = torch.quantile(L, torch.tensor([.1, .5, .9]), dim=0)
    print(f"{rule:16s} right {mid[1]:5.1f} ({lo[1]:.1f}, {hi[1]:.1f})   "
          f"wrong {mid[0]:5.1f} ({lo[0]:.1f}, {hi[0]:.1f})")
print("one stop logit for both")
for rule in ("sequence_mean", "constant_length"):
    L = simulate(rule, own_logits=False)[:, 0]
    lo, mid, hi = torch.quantile(L, torch.tensor([.1, .5, .9]))
    print(f"{rule:16s} all   {mid:5.1f} ({lo:.1f}, {hi:.1f})")
wrong, right = ends["sequence_mean"].unbind(1)
assert (wrong > 100).all() and (right < 2).all()       # each of 200 seeds
middle = ends["constant_length"].median(0).values
assert ((middle - 20).abs() < 1).all()

# %% [markdown]
# Under $1/T$ right answers fall to one token and wrong ones grow past 100, in each of the 200
# seeds. Under the constant both stay at about 20 in the median, and single seeds wander by a tenth
# or so. The token mean over $n=8$ sits in between, on GRPO's side. And with *one* stop logit for
# all answers the opposite pushes cancel: nothing but noise is left, more of it under $1/T$. So a
# mean length that moves in one run says little; plot right and wrong answers apart
# ([09](../09_grpo_biases.ipynb) does, on a real model).

# %% [markdown]
# ### L10 · backwards for reasoning
#
# Where length buys nothing, right answers did collapse. Where it *does* buy something? Two cases:
# one stop logit for all answers; or the policy knows that it is on a good path, has a stop logit
# for it, and all other answers are wrong. Let a fraction $f$ of the answers be on the good path.

# %%
statement("L10")

# %% tags=["claim:L10"]
pays = {"early": 1 - torch.exp(-T / 3), "late": 1 - torch.exp(-T / 30),
        "from 30 tokens on": (T >= 30).double(),
        "not at all": torch.ones_like(T)}              # P(right | T)
print("push on stop, average token weight 1; minus: answers lengthen")
print("                       constant    1/T: one   own, f=1/2  f=1/10")
by_own = {}
for name, gain in pays.items():
    mean = (P_T * gain).sum()
    steady = float((P_T * gain * push).sum()) + 1e-15
    said = by_own[name] = []
    for f in (1.0, 0.5, 0.1):                          # baseline f * mean
        A = gain - f * mean
        said.append(float((P_T * A * push / T).sum() / q) + 1e-15)
    print(f"pays {name:18s} {steady:+.4f}     {said[0]:+.4f}     "
          f"{said[1]:+.4f}   {said[2]:+.4f}")
    assert name == "not at all" or max(steady, *said[:2]) < 0
assert by_own["early"][2] > 0.4 > 0 > by_own["late"][2]
assert abs(by_own["not at all"][1] - own / 2) < 1e-9
# "can collapse chains of thought": conditional

# %%
settle("L10", "it depends")

# %% [markdown]
# The constant lengthens wherever length pays. With one stop logit $1/T$ does too: its push is
# $\mathrm{cov}(A,1/T)/q$, negative whenever longer is better. With a logit of its own, the good
# path's mean advantage is positive and adds $\mathbb E[A]$ times 1.558. If half of the answers are
# on it, length still wins, though by a twelfth of the constant's push in the first row. If one in
# ten is, and length pays early, $1/T$ *shortens* answers that would be better longer: +0.485
# against −0.145. So the sentence is right about a rare good path that the policy recognises, and
# wrong as a general law.

# %% [markdown]
# ### Three slips in reasoning
#
# **Contrasting `dr_grpo` with `dapo` as aggregations.** On one and the same batch they are one
# direction with two norms.

# %%
rule_names = ("constant_length", "token_mean", "sequence_sum",
         "prompt_mean",         "sequence_mean")
base = slope(dr_grpo, fresh).flatten()
for name in rule_names:
    part = getattr(parts, name)
    o = dr_grpo.replace(weights=part())
    g = slope(o, fresh).flatten()
    cosine = torch.cosine_similarity(g, base, dim=0)
    print(f"{name:16s} gradient norm {g.norm():.4f}   cosine {cosine:.4f}")
    same = name in rule_names[:3]
    assert (cosine > 1 - 1e-12) == same

# %% [markdown]
# **Taking weights fixed in advance for one choice among many.** They are the policy gradient.
# $\nabla\log\pi(y)=\sum_t\nabla\log\pi(y_t)$ has coefficient 1 on every token of every answer, so a
# rule whose one weight is fixed before sampling (the constant, the sums) estimates $\nabla J$ up to
# a scalar. A token mean has one weight per batch too, but a random one, with the own $T$ in it: a
# bias of order $1/n$. `estimator_moments` ([03](../03_baselines.ipynb)) averages an estimator over
# all possible groups, here of 4 answers, exactly. The policy first chooses right or wrong and then
# when to stop, every prefix its own logits; the truth on "stop" is 0.

# %%
policy = SequencePolicy(vocab=2, max_length=3)
policy.logits.data[0, 2] = -20.0                       # never empty


def first_is_right(answer):
    return float(answer[0] == 0)


stop = policy.stop
state = policy.states
for name in ("sequence_mean", "prompt_mean", "token_mean",
             "constant_length"):
    o = dr_grpo.replace(weights=getattr(parts, name)())
    m = estimator_moments(policy, first_is_right, o, 4)
    drift = [float(m.mean[state[(k,)], stop] / m.mean.norm()) + 1e-12
             for k in (0, 1)]
    print(f"{name:16s} cosine with the truth {m.cosine:.4f}   push on stop"
          f" after right {drift[0]:+.1%}, after wrong {drift[1]:+.1%}")
    assert (abs(m.cosine - 1) < 1e-9) == (name == "constant_length")

# %% [markdown]
# In per cent of the gradient's norm. With one prompt the prompt mean is the token mean.
#
# **Calling the token mean's push a pull towards length.** Its sign is GRPO's: right answers
# shorter, wrong ones longer, only weaker.

# %% [markdown]
# ### The drift of a shared divisor, derived
#
# Lengths are geometric with stop probability $q$. (a) The length's mean is $1/q$, so
# $\mathbb E[1-qT]=0$, and by Jensen $\mathbb E[\frac1T(1-qT)]=\mathbb E[1/T]-q\gt0$. (b) With $n$
# answers sharing a divisor put $\mu=1/q$, $\sum_jT_j=n\mu(1+\delta)$. The weight, scaled so that an
# average token weighs 1, is $1/(1+\delta)\approx1-\delta$. Of $\delta$ only the own term
# $(T-\mu)/(n\mu)$ is correlated with the own $T$:
#
# $$\mathbb E[(1-\delta)(1-qT)]=\frac{q}{n\mu}\,\mathrm{var}(T)=\frac{q^2}{n}\cdot\frac{1-q}{q^2}=\frac{1-q}{n}$$
#
# The check sums over all own lengths, first with the own divisor, then with $n-1$ other answers at
# their mean length.

# %%
for rate in (0.05, 0.1, 0.3):
    N = torch.arange(1, 2001.0)
    p = rate * (1 - rate) ** (N - 1)
    by_sum = float((p * (1 - rate * N) / N).sum())
    form = float(-rate * torch.tensor(rate).log() / (1 - rate) - rate)
    print(f"q = {rate:.2f}: E[1/T] - q = {by_sum:.6f}, "
          f"closed form {form:.6f}")
    assert abs(by_sum - form) < 1e-9 and by_sum > 0
    for n in (8, 64, 512):
        c = n / rate / (N + (n - 1) / rate)            # the others fixed
        value = float((p * (1 - rate * N) * c).sum())
        print(f"   n = {n:3d}: drift {value:.5f}, "
              f"(1 - q)/n = {(1 - rate) / n:.5f}")
        assert abs(n * value / (1 - rate) - 1) < 2 / n

# %% [markdown]
# ## Seven rules, one formula
#
# A loss is $\sum_{i,t}c_i\,\ell_{i,t}$, with $\ell$ the loss of a token. $P$ prompts, and the group
# of a prompt $p$ has $N_p$ tokens in all. Two prompts, two answers each; every token of an answer
# has the same loss, so that it can be checked by hand.

# %%
tiny = torch.tensor([2.0, 6.0, 3.0, 1.0])
each = torch.tensor([1.0, 2.0, 3.0, 5.0])            # of each token
alike = torch.ones(4)
in_prompt = tiny.view(2, 2).sum(1).repeat_interleave(2)     # N_p
six = {
    "sequence mean": 1 / (4 * tiny),
    "token mean": alike / tiny.sum(),
    "prompt mean": 1 / (2 * in_prompt),
    "constant, L = 8": alike / (4 * 8),
    "sequence sum": alike / 4,
    "token sum": alike,
}
for name, c in six.items():
    value = (c * tiny * each).sum()
    print(f"{name:16s} {value:9.6f}   c {four(c)}")
totals = [round(float((c * tiny * each).sum()), 6)
         for c in six.values()]
assert totals == [2.75, 2.333333, 2.625, 0.875, 7.0, 28.0]

# %% [markdown]
# Six numbers from one batch. The seventh rule, TRL's `bnpo`, is a token mean *inside each
# micro-batch*, averaged over micro-batches. With one prompt in each it gives (14/8 + 14/4)/2 =
# 2.625, like the prompt mean; with all four rows the token mean's 2.3333; with one row the sequence
# mean's 2.75: of the seven the one that depends on how much fits into memory. The prompt mean is
# DAPO's formula as printed ([2503.14476](https://arxiv.org/abs/2503.14476), section 3), and
# ScaleRL's choice; TRL and verl run DAPO as the token mean.
#
# The last two, the sums, are REINFORCE and RLOO: $\log\pi(y)$ is a sum over tokens, and they have
# $A\nabla\log\pi(y)$.

# %% [markdown]
# ### Drag the lengths
#
# One step: two answers to one prompt, two to another. On the left $c$ itself; in the middle what
# each answer gets altogether, $cT$; in the last column how the weight of a token of answer 1
# changes if that answer is one token longer. Try: (1) answer 2 grows to 40 tokens: who takes weight
# from answer 1's tokens? (2) The other prompt's answers grow to 40: who now? (3) A micro-batch
# holds one prompt instead of one row, then everything: what does `bnpo` turn into?

# %% tags=["explorer"]
explorers.token_weights_explorer()

# %%
start = compute()["weights"]
tries = {"(1) answer 2 of 40 tokens": dict(second=40),
         "(2) other prompt, 40 each": dict(other=40)}
for label, change in tries.items():
    now = compute(**change)["weights"]
    moved = [f"{n} {now[n][0] / c[0]:.2f}x" for n, c in start.items()
             if abs(now[n][0] - c[0]) > 1e-12]
    print(label, *moved, sep="   ")
for rows in (1, 2, 4):
    w = compute(micro=rows)["weights"]
    same = [n for n in w if n != "local_token_mean"
            and abs(w[n] - w["local_token_mean"]).max() < 1e-12]
    print(f"(3) local_token_mean by {rows} rows is", *same)

# %% [markdown]
# Four changes to a step, and under which rules the weight of a token of *answer 1* changes:
#
# | change | sequence mean | token mean | prompt mean | constant | sums |
# |---|---|---|---|---|---|
# | answer 2 longer | no | yes | yes | no | no |
# | padded wider | no | no | no | no (verl's default: yes) | no |
# | a third prompt | yes, $1/B$ | yes | yes, $1/P$ | yes, $1/B$ | mean of sums: yes; plain sum: no |
# | two halves | no | no | no | no | no |
#
# The last line holds because denominators are the step's; the local token mean is the exception.

# %%
short = compute(4, 12, 3, micro=2)["weights"]
grown = compute(4, 24, 3, micro=2)["weights"]
changed = {n for n in short if abs(short[n][0] - grown[n][0]) > 1e-12}
print("(i)  ", sorted(changed))
assert changed == {"token_mean", "local_token_mean", "prompt_mean"}
wide = compute(4, 12, 3, divisor="width")["weights"]
wider = compute(4, 24, 3, divisor="width")["weights"]
print("(ii)  constant rule, by the width",
      wide["constant_length"][0].round(5), "->",
      wider["constant_length"][0].round(5))
parted, entire = (compute(4, 12, 3, micro=k)["weights"] for k in (2, 4))
shifts = {n for n in parted if abs(parted[n] - entire[n]).max() > 1e-12}
print("(iv) ", sorted(shifts))
assert shifts == {"local_token_mean"}

# %% [markdown]
# ## Retune the learning rate
#
# On average Dr. GRPO's weights are $\bar T/L$ times a token mean's: an eighth for 256 tokens under
# a limit of 2048, and another factor $\sigma_R\le\frac12$, the std again. Whether that matters
# depends on the optimizer. A sequence of made-up gradients, whole and an eighth, the same learning
# rate:

# %%
def travel(scale, optimizer, clip=None, steps=40):
    x = torch.zeros(3, requires_grad=True)
    opt = optimizer([x])
    for t in range(steps):
        size = 4.0 if t % 5 == 0 else 0.5              # now and then large
        angle = torch.tensor([0.3 * t, 1.0 * t, 0.1 * t + 1])
        x.grad = scale * size * torch.sin(angle)
        if clip:
            torch.nn.utils.clip_grad_norm_([x], clip)
        opt.step()
    return x.detach()


def sgd(p): return torch.optim.SGD(p, lr=0.01)
def adam(p): return torch.optim.Adam(p, lr=0.01)

# %%
for name, opt, clip in (("SGD", sgd, None), ("Adam", adam, None),
                        ("Adam, clip 1.0", adam, 1.0)):
    whole, eighth = travel(1.0, opt, clip), travel(1 / 8, opt, clip)
    gap = (whole - eighth).norm() / whole.norm()
    print(f"{name:15s} how far apart they end: {gap:.1%} of the way")
    assert (gap > 0.1) == (name != "Adam")

# %% [markdown]
# SGD covers an eighth of the way. Adam divides by the gradient's own size and notices nothing,
# which is why the change looks harmless. Gradient clipping gives it away: at full size it cuts the
# large gradients down, at an eighth it never binds, so the rare large steps keep their dominance.
# If the gradient norm moves across your clipping threshold, it is another run.
#
# Nor does Adam hide a second term in the loss. The same $\beta=0.04$, the KL's gradient against the
# policy's:

# %%
def kl_share(objective, kl):
    g = slope(objective, fresh)
    return (slope(objective.replace(terms=kl), fresh) - g).norm() / g.norm()


apart = k3(0.04, weights=sequence_mean())
for name, o, kl in (("GRPO", grpo, k3(0.04)),
                    ("Dr. GRPO", dr_grpo, k3(0.04)),
                    ("Dr. GRPO, KL as before", dr_grpo, apart)):
    print(f"{name:23s} KL {kl_share(o, kl):.4f} of the policy's gradient")
assert kl_share(dr_grpo, apart) > 4 * kl_share(grpo, k3(0.04))

# %% [markdown]
# Without the std the KL weighs about twice as much. If its aggregation stays behind, the factor is
# about $L/(\sigma_RT)$: five on these short answers, 16 at 256 tokens of 2048 and
# $\sigma_R=\frac12$.

# %% [markdown]
# ## Micro-batches
#
# A step's rows rarely fit into memory at once. Losses of parts must then add up to the loss of the
# whole, so denominators must be those of the *step*. The package carries them along (`prepare`).

# %%
two = running_batch()
for part in (sequence_mean, token_mean, prompt_mean, constant_length(8),
             local_token_mean):
    o = dr_grpo.replace(weights=part)
    batch = o.prepare(two)
    whole, said = o.loss(batch), []
    for split in ([range(4), range(4, 8)], [range(i, i + 1)
                                            for i in range(8)]):
        pieces = sum(o.loss(batch.rows(i)) for i in split)
        if part is local_token_mean:
            pieces = pieces / len(split)                 # as TRL's bnpo
        exact = abs(pieces - whole) < 1e-12
        said.append("equal" if exact else f"{pieces - whole:+.4f}")
    name = str(getattr(part, "__name__", part))
    print(f"{name:18s} whole {whole:+.4f}   in 2 parts {said[0]:8s}"
          f"in 8 parts {said[1]}")
    assert (set(said) == {"equal"}) == (part is not local_token_mean)

# %% [markdown]
# `local_token_mean` is TRL's `bnpo`. The eighth rule, `padded_length`, is verl's
# `seq-mean-token-sum-norm` when `loss_scale_factor` is not set: it divides by the width of the
# tensor at hand. Trim each micro-batch to its longest answer, and it shows:

# %%
padded = dr_grpo.replace(weights=padded_length)
for start_row in (0, 4):                                   # the two prompts
    rows = two.rows(range(start_row, start_row + 4))
    width = int(rows.lengths.max())
    trimmed = {k: getattr(rows, k)[:, :width] for k in
           ("logprobs", "old_logprobs", "ref_logprobs", "completion_mask")}
    weight = padded(rows.replace(**trimmed)).weights[0, 0]
    print(f"prompt {start_row // 4}: longest answer {width}, "
          f"weight of a token {weight:.5f}")
    assert torch.isclose(weight, torch.tensor(1 / (4 * width)))

# %% [markdown]
# One long neighbour, and every token's step shrinks. That is no constant: it pushes on length as
# much as a prompt mean of the same $n$ (0.130 against 0.125 at $n=8$, above).
#
# TRL's `dapo` divides by the tokens of everything that was *generated together*, $N$. With $a$ =
# `gradient_accumulation_steps` and $k$ = `steps_per_generation`, the divisor of each optimizer step
# is $N\,a/k$ (TRL 1.16). It is the step's own count only when one generation feeds one step, $a=k$.

# %%
generated = torch.tensor([2.0, 6.0, 3.0, 1.0])     # two optimizer steps
tokens = generated.view(2, 2).sum(1)                     # 8 and 4
trl = generated.sum() * 1 / 2                            # a = 1, k = 2
print("own tokens:", four(1 / tokens), "   TRL:", four(1 / trl.repeat(2)))
assert trl == 6 and tokens.tolist() == [8, 4]

# %% [markdown]
# So all tokens of a generation weigh the same, and the step with fewer tokens is the smaller step.
#
# ### C08 · whose tokens?
#
# Say a tool wrote tokens 2 and 3 of row 3.

# %%
statement("C08")

# %% tags=["claim:C08"]
tool = torch.zeros_like(fresh.completion_mask)
tool[3, 2:4] = 1
masked = fresh.replace(completion_mask=fresh.completion_mask - tool)
for name, o in (("GRPO", grpo), ("Dr. GRPO", dr_grpo)):
    for label, data in (("unmasked", fresh), ("masked", masked)):
        g = slope(o, data)[3]
        print(f"{name:9s} {label:9s} tool tokens {four(g[2:4])}   "
              f"own tokens of row 3 {g[0]:.4f}")
        assert (g[2:4] == 0).all() == (label == "masked")
# "Mask prompts, tool outputs and observations": true

# %%
settle("C08", "true")

# %% [markdown]
# Yes, always: unmasked, the policy is trained on what it did not write. And $T$ counts what is
# left: under $1/T$ the row's own four tokens rise from 1/6 to 1/4, under a constant nothing else
# moves.

# %% [markdown]
# ## The Rosetta table
#
# The same words mean different things, and different words the same: what runs if you say nothing,
# who divides by the std, who by what. The rows of this page; `print(rosetta())` has all of them,
# `rosetta("trl")` one column.

# %%
table = rosetta()
topics = ("What runs", "Leaving the std", "Averaging")
rows = tuple(row for row in table if row.question.startswith(topics))
print(type(table)(rows, table.libraries))
assert len(rows) == 5

# %% [markdown] tags=["cited:C05"]
# ### C05 · lines 196 to 225
#
# Three to remember of the table. With nothing set TRL runs DAPO's token mean and verl runs PPO.
# Where it is divided by, the std is Bessel's in all three libraries, plus 1e-4, 1e-6 or 1e-9.
# verl's constant is the padded width until you set it.
#
# The head says which versions, the cells name options. A walkthrough that says "lines 196 to 225 do
# the work" of an example with some 45 lines points into another file, and after the next release
# into nothing. Cite a function by its name.

# %% [markdown]
# ### C09 · which log-probs stand below the ratio
#
# No word in the table changes this. At the first step of an update nothing has moved. The rollout
# engine as the trainer itself, as one that rounds log-probs to bfloat16, and as one that is 0.25
# nats off on one token.

# %%
statement("C09")

# %% tags=["claim:C09"]
now = fresh.logprobs.detach()
shifted = now.clone()
shifted[1, 1] -= 0.25                                      # A > 0
engines = {"same numerics": now, "bfloat16": now.bfloat16().double(),
           "0.25 nats off": shifted}
for name, rollout in engines.items():
    first = fresh.replace(old_logprobs=rollout)
    rho = (now - rollout).exp()[first.mask]
    dead = (dr_grpo.explain(first).gate == 0) & first.mask
    print(f"{name:14s} ratio {rho.min():.4f} to {rho.max():.4f}   "
          f"clipped before any update: {int(dead.sum())}")
    assert bool((rho == 1).all()) == (name == "same numerics")
    assert int(dead.sum()) == (name == "0.25 nats off")
# "e to the new log-probability minus the one from rollout": sloppy

# %%
settle("C09", "it depends")

# %% [markdown]
# So that is right with one engine; with two, the gap between them enters the ratio and spends the
# clip. Let the trainer recompute the old log-probs, and give the gap a weight of its own
# (`engine_ratio`). TRL recomputes them only when needed: if a generation feeds more than one
# optimizer step, or vLLM wrote it and its correction is on (the default). Else it takes the current
# ones, detached, and the ratio is exactly 1.

# %% [markdown]
# ### Half of Dr. GRPO
#
# TRL's `dr_grpo` is the divisor without the std's removal; OpenRLHF's `dr_grpo` is the std's
# removal without the divisor.

# %%
half = from_trl(loss_type="dr_grpo", max_completion_length=512).objective
full = from_trl(loss_type="dr_grpo", scale_rewards="none",
                max_completion_length=512).objective
for label, o in (("half", half), ("full", full)):
    print(f"{label}: {o}\n      is named {name_of(o)}")
want = dr_grpo.replace(weights=constant_length(512))
print(difference(half, want))
assert [c.part for c in difference(half, want)] == ["advantage"]
assert full == want and name_of(full) == "dr_grpo" != name_of(half)

# %% [markdown]
# The first one has no name. Dr. GRPO in TRL takes two settings, `loss_type` and
# `scale_rewards="none"`. In verl it takes three: `loss_agg_mode="seq-mean-token-sum-norm"`,
# `loss_scale_factor`, and `norm_adv_by_std_in_grpo=False`.

# %% [markdown]
# ## From scratch, value and gradient

# %%
def dr_grpo_loss(logprobs, old_logprobs, mask, rewards, G, L, eps=0.2):
    mask = mask.bool()                                 # (B, T)
    zero = torch.zeros_like(logprobs)
    log_ratio = torch.where(mask, logprobs - old_logprobs, zero)
    rho = log_ratio.exp()
    r = rewards.view(-1, G)
    A = (r - r.mean(1, keepdim=True)).view(-1, 1)      # no std
    value = torch.min(rho * A, rho.clamp(1 - eps, 1 + eps) * A)
    return -torch.where(mask, value, zero).sum() / (len(mask) * L)

# %%
whole = running_batch()                                # L = 8
mine = dr_grpo_loss(whole.logprobs, whole.old_logprobs,
                    whole.completion_mask, whole.rewards, 4,
                    whole.max_completion_length)
theirs = dr_grpo(whole).loss
slopes = [torch.autograd.grad(x, whole.logprobs)[0] for x in (mine, theirs)]
print(f"from scratch {mine:.6f}   rlnb {theirs:.6f}")
assert abs(mine - theirs) < 1e-12
assert (slopes[0] - slopes[1]).abs().max() < 1e-12

# %% [markdown]
# ## Ours minus TRL
#
# TRL's lines for the four words, written out (grpo_trainer, TRL 1.16), on the losses of the running
# batch, as one micro-batch and as two that gradients are added up over.

# %%
def trl_lines(word, x, mask, L_max, all_tokens, accumulated):
    """The loss of one micro-batch, as TRL's trainer computes it."""
    if word == "grpo":
        rows = (x * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)
        return rows.mean() / accumulated
    if word == "bnpo":
        local = (x * mask).sum() / mask.sum().clamp(min=1.0)
        return local / accumulated
    if word == "dr_grpo":
        return (x * mask).sum() / (len(x) * L_max) / accumulated
    return (x * mask).sum() / all_tokens               # "dapo"

# %%
both = running_batch()
each_loss, real = dr_grpo(both).per_token_loss, both.completion_mask
for word, rule in (("grpo", sequence_mean), ("dapo", token_mean),
                   ("dr_grpo", constant_length), ("bnpo", token_mean)):
    ours, apart = dr_grpo.replace(weights=rule())(both).loss, []
    for size in (8, 4):
        theirs = sum(trl_lines(word, each_loss[i:i + size],
                               real[i:i + size], 8, real.sum(), 8 // size)
                     for i in range(0, 8, size))
        apart.append(abs((ours - theirs).item()))
    said = ["0" if gap < 1e-12 else f"{gap:.4f}" for gap in apart]
    print(f"{word:8s} |ours - TRL's|: one piece {said[0]}, two {said[1]}")
    assert apart[0] < 1e-12
    assert (apart[1] < 1e-12) == (word != "bnpo")

# %% [markdown]
# `bnpo` is the one that asks how much fits into memory. It equals the token mean in one piece only.

# %% [markdown]
# ## What am I running?
#
# Nobody remembers all that. `explain_config` takes a `GRPOConfig`, its keywords, or the text of a
# script, a YAML file or a launch command of TRL or verl (from a terminal:
# `python -m rlnb.interop explain FILE`). The text is read, never run. A colleague "does GSPO":

# %%
colleague = dict(loss_type="grpo", importance_sampling_level="sequence",
                 beta=0.0, epsilon=0.2, learning_rate=1e-6)
report = explain_config(colleague)
print(report)
assert report.name is None and report.nearest == "gspo"
assert "learning_rate" in report.ignored

# %% [markdown]
# Why the band has to shrink with the unit. Three answers, every token moved by a factor of
# $e^{\pm0.1}$:

# %%
moves = [[.1, .1, .1, .1, -.1, -.1], [.1, .1, .1, -.1, -.1],
         [.1, .1, -.1, -.1]]
token_ratio = torch.tensor(sum(moves, [])).exp()
answer_ratio = torch.tensor([sum(m) / len(m) for m in moves]).exp()


def outside(ratio, low, high):
    return int(((ratio < 1 - low) | (ratio > 1 + high)).sum())


print("token ratios  ",
      f"{token_ratio.min():.4f} to {token_ratio.max():.4f}")
print("answer ratios ", *(f"{r:.6f}" for r in answer_ratio))
for low, high in ((0.2, 0.2), (3e-4, 4e-4)):
    print(f"outside -{low} +{high}: {outside(token_ratio, low, high)} of 15"
          f" tokens, {outside(answer_ratio, low, high)} of 3 answers")
assert outside(token_ratio, .2, .2) == outside(answer_ratio, .2, .2) == 0
assert outside(answer_ratio, 3e-4, 4e-4) == 2

# %% [markdown]
# The answer's ratio is a geometric mean: moves of opposite sign cancel, and in the third answer
# they cancel exactly. GRPO's band never touches it. (Outside the band is not yet cut: the
# advantage's sign decides.)

# %% [markdown]
# ## The recap row
#
# The running group and its neighbour on fresh data: the advantage of each answer, and what one of
# its tokens weighs in the gradient, $cA$. `half` is what `loss_type` alone gives ($L=8$, Bessel).

# %%
def recap(b, label):
    b = b.replace(old_logprobs=None)
    rows = {name: ZOO[name] for name in ("rloo", "grpo", "dr_grpo")}
    rows["half"] = half.replace(weights=constant_length(8))
    print(label)
    for name, o in rows.items():
        o = o.replace(terms=())
        out = o(b)
        A, c = out.advantages[:, 0], out.weights[:, 0]
        print(f"{name:8s} A " + " ".join(f"{x:8.4f}" for x in A.tolist()))
        print("        cA " + " ".join(f"{x:8.4f}"
                                        for x in (c * A).tolist()))


recap(running_group(), "one prompt: rewards 1 1 0 0, lengths 3 5 2 6")
print()
recap(running_batch(), "and a second: rewards 1 0 0 0, lengths 4 1 7 2")

# %% [markdown]
# Back to the lesson, [10 · Dr. GRPO](../10_dr_grpo.ipynb).
