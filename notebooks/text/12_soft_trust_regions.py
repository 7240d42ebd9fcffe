# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 12 · Soft trust regions: the gradient at the edge
#
# **Settles:** what a token still gets once its ratio has gone far: nothing (PPO), a capped weight
# (CISPO), a fading one (SAPO), or an answer that depends on how much probability moved (DPPO). And
# what each does, and does not do, to a policy that is pushed many times by one batch.
#
# 40 minutes to read, 45 for the exercises · after [06](06_ppo.ipynb), [08](08_grpo.ipynb) and
# [11](11_dapo.ipynb) · CISPO: MiniMax-M1 2025 ([2506.13585](https://arxiv.org/abs/2506.13585));
# SAPO 2025 ([2511.20347](https://arxiv.org/abs/2511.20347)) and its gates 2026
# ([2602.19345](https://arxiv.org/abs/2602.19345)); DPPO 2026
# ([2602.04879](https://arxiv.org/abs/2602.04879)).

# %% [markdown]
# > **[06](06_ppo.ipynb) in two lines.** $\rho=\pi_\theta/\pi_\text{old}$ says how far a token has
# > moved since its answer was sampled. PPO's clip
# > ends a token's gradient once it has moved far enough the right way: above $1+\epsilon$ for
# > $A>0$, below $1-\epsilon$ for $A\lt0$.
# >
# > **[11](11_dapo.ipynb) in two lines.** Clip-higher moves the upper edge from 1.2 to 1.28. It is
# > an edge, not a wall: it ends the token's own gradient,
# > and momentum and the other tokens carry it on.

# %%
import torch
from rlnb import ZOO, check
from rlnb.toys import running_group
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## One number per token
#
# Every surrogate of this page has a gradient of the form
#
# $$w\,A\,\nabla\log\pi_\theta ,\qquad w=\rho\ \text{ without any clip.}$$
#
# $w$ is the token's *weight*; page 11 called it the gate. Five of the sixteen tokens of the running
# group, under four rules. Unless a header says otherwise CISPO's cap is 5, DPPO's threshold 0.15,
# SAPO's τ 1.0 ($A>0$) and 1.05, PPO's ε 0.2 (it is the clip of GRPO):

# %%
group = running_group()
group = group.replace(sampling_logprobs=group.old_logprobs)
METHODS = ("grpo", "cispo", "sapo", "dppo")
gates = {name: ZOO[name].explain(group).gate + 0.0 for name in METHODS}
q, p = group.old_logprobs.exp(), group.logprobs.detach().exp()


def row(i, t):
    w = [f"{gates[name][i, t]:7.3f}" for name in METHODS]
    return (f"{i}.{t}  {'-' if i > 1 else '+'}  {q[i, t]:6.4f}  "
            f"{p[i, t]:6.4f}  {p[i, t] / q[i, t]:5.2f}   " + " ".join(w))


print("token A     old     now  ratio      PPO CISPO 5    SAPO    DPPO")
for place in ((0, 1), (1, 1), (2, 0), (2, 1), (3, 4)):
    print(row(*place))
assert gates["grpo"][1, 1] == 0 and gates["cispo"][1, 1] == 5
assert gates["grpo"][2, 1] > 0 == gates["dppo"][2, 1]

# %% [markdown]
# Token 1.1 went from 0.02 to 0.12, in the right direction. PPO is done with it. CISPO caps its
# weight at 5, SAPO lets it fade to 0.16, DPPO does not mind at all: only 0.10 of probability moved.
# Token 2.1 is the reverse: from 0.92 to 0.74, a ratio of 0.80 that PPO's band lets through, and
# 0.18 of probability moved, too much for DPPO's 0.15.
#
# Try before you read on, and guess first. Which lines change when *old probability* goes to 0.0001,
# which when it goes to 0.9? Then *A < 0*, old probability 0.1, *read at ratio* 3.5: who bounds the
# pull on a bad token that became three times as likely? Last *A > 0*, ratio 0.5, SAPO's τ at 10:
# what is left of the way back?

# %% tags=["explorer"]
from rlnb.classroom import explorers

explorers.gate_zoo_explorer()

# %% [markdown]
# The default and four tries, as numbers (one ε for all, so CISPO's cap here is 1.2 and DPPO's
# threshold 0.2):

# %%
from rlnb.classroom.explorers.gate_zoo import compute

tries = {"default": {}, "old 0.0001": {"old": 0.0001},
         "A < 0, old 0.9, ratio 0.7": {
             "sign": "negative", "old": 0.9, "ratio": 0.7},
         "A < 0, old 0.1, ratio 3.5": {
             "sign": "negative", "old": 0.1, "ratio": 3.5},
         "A > 0, ratio 0.5, τ 10": {"ratio": 0.5, "tau": 10.0}}
print(" " * 26, "no clip   PPO  dual  CISPO   SAPO   DPPO    moved")
for name, setting in tries.items():
    data = compute(**setting)
    w = data["at"].values()
    print(f"{name:26s}", *(f"{x:6.3f}" for x in w), f"{data['moved']:9.5f}")
assert [round(x, 3) for x in compute()["at"].values()] == [
    1.5, 0, 0, 1.2, 1.41, 1.5]
assert set(compute(ratio=1.0)["at"].values()) == {1.0}

# %% [markdown] tags=["see:M08", "see:M09"]
# The old probability moves DPPO's edge and nothing else: at 0.0001 it leaves the picture, at 0.9
# and $A\lt0$ it stands at 0.78. One ε means two things: a *ratio* for PPO (edge) and CISPO (cap),
# an *amount of probability* for DPPO; SAPO has none. A bad token that rose is being pulled back,
# with weight 3.5 (PPO, DPPO). CISPO and SAPO bound that pull; the dual clip ends it above ρ = 3: it
# gives up the way back for bounded variance. SAPO never asks for the direction: at τ = 10 a right
# answer's token that fell to half keeps 0.013, where PPO keeps 0.5.
#
# **On fresh data none of it matters.** At $\theta=\theta_\text{old}$, and with a sampler that gives
# the trainer's own probabilities, every ratio is 1. So is every weight, for every method of the
# zoo, on both prompts of the running batch:

# %%
from rlnb.toys import running_batch

b = running_batch(complete=True)         # critic, greedy answers, ...
now, candidates = b.logprobs.detach(), b.topk_logprobs.detach()
fresh = b.replace(old_logprobs=now, sampling_logprobs=now,
                  topk_logprobs=candidates, old_topk_logprobs=candidates)
worst = 0.0
for name, objective in ZOO.items():
    gate = objective.explain(fresh).gate[b.mask]
    gate = gate[~gate.isnan()]                         # nan where A is 0
    worst = max(worst, (gate - 1).abs().max().item())
print(f"{len(ZOO)} methods; every weight is within 1e-12 of 1:",
      worst < 1e-12)
assert worst < 1e-12 and len(ZOO) >= 13

# %% [markdown]
# So with one optimizer step per batch these methods differ in advantage, aggregation and extra
# terms (KL) only, and several are twins: CISPO has DAPO's gradient, SAPO that of GRPO without KL,
# DPPO Dr. GRPO's. (Provided CISPO's cap is at least 1. And DPPO's ratio is to the *sampler*: where
# the engine's probabilities differ from the trainer's, it is not 1 even here.)

# %%
def slope(objective):
    return torch.autograd.grad(objective(fresh).loss, fresh.logprobs)[0]


grpo = ZOO["grpo"].replace(terms=())
for new, old in (("cispo", ZOO["dapo"]), ("sapo", grpo),
                 ("dppo", ZOO["dr_grpo"])):
    gap = (slope(ZOO[new]) - slope(old)).abs().max()
    print(f"{new:6s} differs by less than 1e-12:", bool(gap < 1e-12))
    assert gap < 1e-12

# %% [markdown]
# What follows is about the second step and later, or about data from an older policy.
#
# ## Which tokens reach the edge
#
# MiniMax's reason for CISPO ([2506.13585](https://arxiv.org/abs/2506.13585)): words that turn an
# argument around ("However", "Wait", "Recheck") are rare, their ratios jump, and the clip removes
# them after the first update. Take a logit that one update raises by 0.1, *whoever it is*, and
# freeze the token once it is cut (no momentum, no other tokens to carry it on):

# %% tags=["claim:M15"]
from math import exp


def raised(p, by):                       # softmax after one logit rose
    return p * exp(by) / (1 - p + p * exp(by))


print("      p   ratio after one update of 0.1, after four")
for p0 in (0.0001, 0.01, 0.5, 0.9):
    one, four = raised(p0, 0.1) / p0, raised(p0, 0.4) / p0
    print(f"{p0:7.4f}   {one:.3f}                     {four:.3f}")
prob, alive = 0.01, []
for batch in range(3):
    start = prob
    for update in range(4):
        alive.append(prob / start <= 1.2)
        prob = raised(prob, 0.1) if alive[-1] else prob
    print(f"batch {batch}: alive in updates", *map(int, alive[-4:]),
          f"  p {start:.4f} -> {prob:.4f}")
assert raised(0.0001, 0.4) / 0.0001 > 1.49 > 1.08 > raised(0.9, 0.4) / 0.9
assert alive == [True, True, False, False] * 3 and prob > 0.018
# "once clipped they never contribute": sloppy

# %% [markdown]
# A high ratio says that the token was *rare*: the same four pushes give a ratio of 1.49 at 0.0001
# and 1.03 at 0.9, whatever the word means. And it is cut for the rest of *this batch*; in the next
# the ratio is 1 again and it goes on, 0.0100 to 0.0181 in three batches here. The clip costs most
# where a batch is used often.

# %% [markdown] tags=["cited:H05", "cited:H06", "cited:H07"]
# *Reported* (MiniMax-M1, [2506.13585](https://arxiv.org/abs/2506.13585)): 16 rounds of off-policy
# updates per generation batch, which is where a clip costs most; DAPO's score in half the *steps*
# on Qwen2.5-32B, one base model. (512 is their number of H800 cards, for three weeks and 534,700
# dollars; not a length of rollouts.)
#
# ## CISPO: the ratio as a weight
#
# $$J=\frac{1}{\sum_iT_i}\sum_{i,t}\ \mathrm{sg}\big[\min(\rho_{i,t},\,c)\big]\;A_i\,\log\pi_\theta(y_{i,t})$$
#
# $\mathrm{sg}$, *stop-gradient*, is `detach()`: REINFORCE, with an importance weight that is capped
# at $c$ and never differentiated. The advantage is GRPO's z-score, the mean runs over tokens, no
# KL. To read weights off any surrogate, autograd:

# %%
from types import SimpleNamespace


def weight(surrogate, rho, A=1.0, old=0.01):
    """The number in front of A grad log pi, at each ratio."""
    rho = torch.as_tensor(rho)
    before = torch.full_like(rho, old).log()
    logp = (before + rho.log()).requires_grad_()
    a = torch.full_like(rho, A)
    token = SimpleNamespace(logprobs=logp, anchor_logprobs=before)
    value = surrogate(token, a, logp - before)
    return torch.autograd.grad(value.sum(), logp)[0] / a


def my_cispo(cap):
    def surrogate(token, A, log_ratio):
        w = log_ratio.exp().clamp(max=cap).detach()
        return w * A * token.logprobs
    return surrogate


# %% [markdown]
# Every token keeps a gradient, and a bounded one. Cap 1.28, beside PPO's clip with the same upper
# edge:

# %% tags=["claim:Z08"]
from rlnb.objective import cispo, clip

rho = torch.tensor([0.01, 0.5, 1.0, 1.2, 1.5, 10.0])


def show(w):
    return " ".join(f"{x + 0.0:6.3f}" for x in w.tolist())


print("ratio            ", show(rho))
for A in (1.0, -1.0):
    mine = weight(my_cispo(1.28), rho, A)
    ppo = weight(clip(0.2, high=0.28), rho, A)
    print(f"A = {A:+.0f}   cap 1.28 {show(mine)}")
    print(f"         PPO 1.28 {show(ppo)}")
    assert torch.equal(mine, weight(cispo(1.28), rho, A))
    assert torch.allclose(mine, rho.clamp(max=1.28)) and (mine > 0).all()
    inside = (rho > 0.8) & (rho < 1.28)
    assert torch.allclose(mine[inside], ppo[inside])
# "every token keeps a bounded gradient": true

# %% [markdown]
# Inside the band the two are one. Outside, CISPO is sign-blind: it caps a good token that rose
# (PPO: dead) and a bad one that rose (PPO: 10) alike, and a bad one that fell keeps its small ratio
# (PPO: dead).
#
# "CISPO is log π times the clipped ratio" leaves out two things. One of them turns the gradient
# around:

# %% tags=["claim:Z09"]
logp = torch.tensor(-2.0, requires_grad=True)
before = logp.detach() - torch.tensor(1.1).log()       # ratio 1.1
for name, keep in (("detached", False), ("not detached", True)):
    w = (logp - before).exp().clamp(max=1.28)
    value = (w if keep else w.detach()) * logp         # A = +1
    g, = torch.autograd.grad(value, logp)
    print(f"{name:13s} coefficient on grad log pi {g:+.2f}")
    assert round(g.item(), 2) == (-1.1 if keep else 1.1)
# "CISPO is log π times the clipped ratio": sloppy

# %% [markdown]
# Undetached, the product rule adds $\rho\log\pi=1.1\cdot(-2)$, and a *right* answer is pushed down
# wherever $\log\pi\lt-1$, $p\lt0.37$. The other omission is $A$, without which wrong answers are
# pushed up.
#
# The **value** of this loss contains $\log\pi$ and means nothing. Compare gradients; do not plot it
# beside PPO's.
#
# ### One name, three caps
#
# The paper prints a band, then says that the lower side was left open and only the upper one tuned;
# it gives no number. The code you run:

# %%
from rlnb import from_trl, from_verl

runs = {
    "TRL, defaults": from_trl(loss_type="cispo").objective,
    "TRL, epsilon_high=5": from_trl(
        loss_type="cispo", epsilon_high=5.0).objective,
    "verl, defaults": from_verl(
        adv_estimator="grpo", loss_mode="cispo").objective,
    "verl, its example": from_verl(
        adv_estimator="grpo", loss_mode="cispo", clip_ratio_low=10.0,
        clip_ratio_high=0.2).objective,
}
rho = torch.tensor([0.1, 0.5, 1.0, 1.5, 10.0])
print(f"{'ratio':43s}", show(rho))
for name, o in runs.items():
    w = weight(o.surrogate, rho)
    print(f"{name:20s} {o.surrogate!r:22s}", show(w))
assert torch.allclose(weight(runs["TRL, defaults"].surrogate, rho[1:]),
                      torch.tensor(0.2))
assert weight(runs["verl, defaults"].surrogate, rho).min() == 0.8

# %% [markdown]
# TRL reads `epsilon_high` as the cap *itself*. Its default, `epsilon`'s 0.2, caps a fresh token at
# 0.2: nearly every token gets the same fifth of a weight. Adam gives the scale back (computed
# [below](#Many-updates-on-one-batch)), plain SGD does not; what is lost in both is the weighting,
# for nothing above 0.2 is told apart. Write 5.0, as TRL's documentation does after ScaleRL. verl
# adds 1 and has a floor: a token that has been pushed down to a tenth keeps 0.8. "We ran CISPO"
# needs two more numbers.
#
# ## SAPO: a weight that fades
#
# $$J=\frac1G\sum_i\frac1{T_i}\sum_t f(\rho_{i,t})\,A_i,\qquad f(x)=\frac4\tau\,\sigma\big(\tau(x-1)\big),\qquad
# \tau=\begin{cases}1.0&A>0\\1.05&A\le0\end{cases}$$
#
# $\sigma$ is the sigmoid. Differentiated, the weight is
# $w=\rho f'(\rho)=\rho\,\mathrm{sech}^2\!\big(\tfrac\tau2(\rho-1)\big)$, where
# $\mathrm{sech}=1/\cosh$. A soft sigmoid gate in place of the hard clip, then:

# %% tags=["claim:Z11"]
from rlnb.objective import sapo


def my_sapo(tau):
    return lambda token, A, log_ratio: (
        4 / tau * torch.sigmoid(tau * (log_ratio.exp() - 1)) * A)


rho = torch.tensor([0.1, 0.5, 1.0, 1.5, 3.0, 10.0])
print("ratio            ", show(rho))
for tau in (0.5, 1.0, 10.0):
    w = weight(my_sapo(tau), rho)
    slope = w / rho                                    # f'
    print(f"τ {tau:4.1f}  weight w ", show(w))
    print("        slope f' ", show(slope))
    part = sapo(tau_pos=tau, tau_neg=tau)
    assert torch.allclose(w, weight(part, rho), atol=1e-14)
    assert torch.allclose(slope, 1 / (tau / 2 * (rho - 1)).cosh()**2)
    assert abs(slope[2] - 1) < 1e-12 and (w[:-1] > 0).all()
    assert (slope[:3].diff() > 0).all() and (slope[2:].diff() < 0).all()
# "SAPO replaces the hard clip by a soft sigmoid gate": true

# %% [markdown]
# $4/\tau$ makes the slope 1 at $\rho=1$ for every $\tau$. It falls off on both sides and is never 0
# (the zeros are rounding; at τ = 10, ρ = 10 the exact weight is of the order $10^{-38}$). τ = 1 is
# far from a clip: its weight *rises* above 1 at first, since $\rho$ grows faster than the slope
# falls, 1.41 at 1.5, where PPO with $A>0$ has 0.
#
# **Why two temperatures?** Pushing a token down raises the logits of the many tokens that were not
# sampled, most of them irrelevant. The authors ([2511.20347](https://arxiv.org/abs/2511.20347))
# take this for a source of instability and let $A\le0$ fade faster. By how much: at ρ = 3.5 the
# weight is 0.981 with τ = 1.0 and 0.882 with 1.05.
#
# ### Other gates, other temperatures
#
# A later study ([2602.19345](https://arxiv.org/abs/2602.19345)) asks of a gate that $f'$ has its
# maximum 1 at $\rho=1$, falls away on both sides, and $\rho f'(\rho)\to0$, and tries three more.
# `sapo(gate=...)` has them:

# %%
fine = torch.arange(0.5, 6, 1e-4)
two = torch.tensor([2.0])
print("gate       f'(x), d = x - 1             w at 2     peak of w, τ = 1"
      "    τ = 10")
for gate, slope in (("sigmoid", "sech²(τd/2)"),
                    ("erf", "exp(-τ²d²/2)"),
                    ("arctan", "1/(1 + τ²d²)"),
                    ("softsign", "(1 + τ²d²)^(-3/2)")):
    peaks = []
    for tau in (1.0, 10.0):
        part = sapo(tau_pos=tau, tau_neg=tau, gate=gate)
        w = weight(part, fine)
        peaks.append((w.max().item(), fine[w.argmax()].item()))
    at_two = weight(sapo(gate=gate), two).item()
    print(f"{gate:10s} {slope:26s} {at_two:8.4f}    {peaks[0][0]:.4f} at "
          f"{peaks[0][1]:.4f}    {peaks[1][0]:.4f}")
    assert 1 < peaks[1][0] < 1.02 and peaks[0][0] < 1.58
    if gate == "sigmoid":
        assert abs(peaks[0][0] - 1.574675) < 1e-6

# %% [markdown]
# In that study's set-up (a 7B model, answers of 512 tokens, two updates per batch) temperatures of
# 10 and 12 did best for *every* gate, the sigmoid included. So SAPO's 1.0 and 1.05 are a choice,
# not a law; at τ = 10 the sigmoid's bump above 1 is under 1 %.
#
# ## DPPO: count the mass, not the ratio
#
# Is a ratio a distance?

# %% tags=["claim:Z12"]
print("   old      now   ratio   inside 0.8 to 1.2   probability moved")
for old, new, A in ((0.0001, 0.0002, 1.0), (0.99, 0.80, -1.0)):
    ratio_ = new / old
    inside = 0.8 <= ratio_ <= 1.2
    print(f"{old:6.4f}   {new:6.4f}   {ratio_:.4f}   {inside!s:17s}   "
          f"{abs(new - old):.4f}")
    for band in (0.2, 0.28, 0.9):                  # does J move it?
        assert (weight(clip(band), [ratio_], A) != 0) == inside
# "From 0.0001 to 0.0002 a token leaves every clip range": true

# %% [markdown]
# DPPO (*Divergence* PPO) keeps the ratio $\rho=\pi_\theta/\mu$, where $\mu$ is the policy that
# sampled, as the inference engine saw it, and drops a token when the *divergence* $D$ between then
# and now is too large **and** its advantage pushes it further:
#
# $$J=\frac1{GL}\sum_{i,t}M_{i,t}\;\mathrm{sg}\big[\min(\rho_{i,t},C)\big]\,A_i\,\log\pi_\theta(y_{i,t}),\qquad
# M=0\iff\big(A>0,\ p>q,\ D>\delta_\text{high}\big)\ \text{ or }\ \big(A\le0,\ p\lt q,\ D>\delta_\text{low}\big)$$
#
# with $A_i=r_i-\bar r$, $L$ a constant length, and a token of probability $q$ then, $p$ now.
# $D=|p-q|$ is the *two-way total variation*: the token against all others together. The two-way KL,
# $q\log\frac qp+(1-q)\log\frac{1-q}{1-p}$, is the other choice. The
# [authors' scripts](https://github.com/sail-sg/Stable-RL) have δ = 0.15 and 0.05.

# %%
verl = from_verl(adv_estimator="grpo", loss_mode="dppo_tv").objective
for name, o in (("DPPO", ZOO["dppo"]), ("verl, defaults", verl)):
    print(f"{name:15s}", o.surrogate, *o.gates)
assert verl.surrogate.cap == 3.0 and verl.gates[0].low == 0.2

# %% [markdown]
# $C$ is numerical safety: 10000 in the authors' script, 20 in TRL's experimental trainer (added in
# [#5117](https://github.com/huggingface/trl/pull/5117), March 2026, removed in
# [#6402](https://github.com/huggingface/trl/pull/6402), July). In verl 0.9.1 it is `clip_ratio_c`,
# whose default 3 binds far more often, the thresholds are the clip's 0.2 until you set them, and
# the anchor is the trainer's old policy unless `rollout_correction.bypass_mode=True` makes it the
# engine's.
#
# Divergence instead of ratio, on eight tokens, $A=+1$ for a to c, −1 for d to h:

# %% tags=["claim:Z19"]
from rlnb.objective import divergence_mask

old = torch.tensor([.50, .10, .80, .60, .10, .90, .30, .70])
new = torch.tensor([.55, .14, .82, .445, .01, .74, .14, .72])
A = torch.tensor([1.0] * 3 + [-1] * 5)
tokens = SimpleNamespace(logprobs=new.log(), anchor_logprobs=old.log())
tv, kl = divergence_mask(0.15), divergence_mask(0.05, kind="kl")
kept = {"PPO 0.2": ~torch.where(A > 0, new / old > 1.2, new / old < 0.8),
        "DPPO TV 0.15": tv(tokens, A, None).bool(),
        "DPPO KL 0.05": kl(tokens, A, None).bool()}
print("token       ", " ".join(f"{x:>6s}" for x in "abcdefgh"))
rows = {"old": old, "ratio": new / old, "moved": new - old,
        "two-way KL": kl.divergence(tokens)}
for name, row_ in rows.items():
    print(f"{name:12s}", " ".join(f"{x:6.3f}" for x in row_.tolist()))
for name, keep in kept.items():
    words = ("ok" if k else "0" for k in keep)
    print(f"{name:12s}", " ".join(f"{word:>6s}" for word in words))
dropped = ["".join("abcdefgh"[i] for i in (~keep).nonzero())
           for keep in kept.values()]
assert dropped == ["bdeg", "dfg", "efg"]
# "DPPO decides by a divergence": true

# %% [markdown]
# PPO cuts b, which rose from 0.10 to 0.14; DPPO does not: 0.04. PPO lets f pass, ratio 0.82; DPPO
# does not: 0.16. And KL against TV: moving about 0.16 costs 0.048 nats at $q=0.6$ and 0.08 at 0.3
# or 0.9, so d passes; and e has lost only 0.09 but nine tenths of itself, 0.14 nats.
#
# Why the direction? Mask "tokens whose probability moved by more than δ", and see what is lost:

# %% tags=["claim:M01"]
old, new = torch.full((4,), 0.4), torch.tensor([0.6, 0.2, 0.6, 0.2])
A = torch.tensor([1.0, 1, -1, -1])
tokens = SimpleNamespace(logprobs=new.log(), anchor_logprobs=old.log())
paper = divergence_mask(0.15)(tokens, A, None).bool()
careless = (new - old).abs() <= 0.15
for a, x, y, s, k in zip(A, old, new, careless, paper):
    s, k = ("keeps" if kept else "drops" for kept in (s, k))
    print(f"A {a:+.0f}  {x:.1f} -> {y:.1f}   careless {s}   DPPO {k}")
assert not careless.any() and paper.tolist() == [False, True, True, False]
# "DPPO masks out tokens whose probability moved by more": wrong

# %% [markdown]
# The careless mask drops all four. DPPO keeps the two whose gradient points *back* to the old
# policy, as PPO's `min` does: a mask that removes the way back makes a bad move permanent.
#
# ### What the two-way view misses
#
# The total variation over the whole vocabulary, $\frac12\sum_v|p_v-q_v|$, lies in $[0,1]$. "$|p-q|$
# of the sampled token approximates it." It is a **lower bound**, since lumping tokens together can
# only cancel. How much does it see? 2000 pairs of distributions over 20 tokens, made in three ways;
# and DPPO's *top-K* variant, the five likeliest tokens of the old policy **and the sampled one**
# one by one, the rest as one bucket:

# %% tags=["claim:Z14"]
gen = torch.Generator().manual_seed(0)
n, V, seen = 2000, 20, []                              # V tokens
q = -torch.rand(n, V, generator=gen).log()
q = q / q.sum(1, keepdim=True)                         # Dirichlet(1)
u = torch.rand(n, 1, generator=gen)
y = torch.searchsorted(q.cumsum(1), u).clamp(max=V - 1)      # sampled
r = -torch.rand(n, V, generator=gen).log()
own = torch.zeros(n, V).scatter(1, y, 0.5)             # its logit alone
noise = 0.3 * torch.randn(n, V, generator=gen)         # all logits
print("share of the whole seen, on average      two-way   top-5")
for name, p in (("only its own logit moved", (q.log() + own).softmax(1)),
                ("every logit moved a bit", (q.log() + noise).softmax(1)),
                ("two unrelated ones", r / r.sum(1, keepdim=True))):
    gap, likeliest = p - q, q.topk(5).indices
    whole = gap.abs().sum(1) / 2
    two_way = gap.gather(1, y).abs().squeeze(1)
    alone = torch.zeros(n, V).scatter(1, likeliest, 1).scatter(1, y, 1)
    six = gap * alone                                  # or five
    top5 = (six.abs().sum(1) + six.sum(1).abs()) / 2
    seen += [(two_way / whole).mean(), (top5 / whole).mean()]
    print(f"{name:38s}   {seen[-2]:.2f}     {seen[-1]:.2f}")
    assert (0 < whole).all() and (whole <= 1).all()
    assert (two_way - 1e-12 <= top5).all() and (top5 <= whole + 1e-12).all()
assert seen[0] > 0.999 and seen[2] < 0.2 and seen[4] < 0.2  # no stand-in
# "of the sampled token approximates it": conditional

# %% [markdown]
# Exact where only the token's own logit moved, for then all others shrink in proportion. Less than
# a fifth of the whole where every logit moved; there top-5 sees 0.7 of it. Top-K contains the
# sampled token, so it refines the two-way view and never sees less. What DPPO drops has moved at
# least that far; what it keeps may have moved further.

# %% [markdown] tags=["cited:Z15"]
# *Reported, not run.* In one study of DPPO's authors
# ([2602.04879](https://arxiv.org/abs/2602.04879)) fewer than half a percent of the updates, mostly
# of wrong answers pushed down too far, were enough to destabilise a run, and masking those was
# enough to calm it. One set-up, their models, their mismatch between trainer and inference engine;
# they also report that CISPO collapsed there. No CPU settles it.
#
# *Which DPPO?* The letters also stand for Diffusion Policy Policy Optimization (robotics,
# [2409.00588](https://arxiv.org/abs/2409.00588)), and SAPO also for Swarm sAmpling Policy
# Optimization ([2509.08721](https://arxiv.org/abs/2509.08721)). Ask, or give the number.
#
# ## Many updates on one batch
#
# A weight is what a token gets in *one* update. What becomes of the policy when the batch is used
# 50 times? A table of logits: 8 prompts, 16 possible answers each, 3 in 10 of them right; 8 answers
# per prompt are sampled *once*, then only updated. Five seeds, all drawn at once.

# %%
from rlnb.objective import ratio


def tau(t):
    return sapo(tau_pos=t, tau_neg=1.05 * t)


RULES = {"no clip": (ratio(), None), "PPO": (clip(0.2), None),
         "CISPO 5": (cispo(5.0), None), "CISPO 1.28": (cispo(1.28), None),
         "CISPO 0.2": (cispo(0.2), None),
         "SAPO 1": (tau(1.0), None), "SAPO 10": (tau(10.0), None),
         "DPPO 0.15": (ratio(), divergence_mask(0.15)),
         "DPPO 0.0125": (ratio(), divergence_mask(0.2 / 16))}


def judge(rule, logp, old, y, A):
    surrogate, mask = RULES[rule]
    tokens = SimpleNamespace(logprobs=logp.gather(-1, y),
                             anchor_logprobs=old.gather(-1, y))
    gap = tokens.logprobs - tokens.anchor_logprobs
    worth = surrogate(tokens, A, gap)
    worth = worth if mask is None else worth * mask(tokens, A, gap)
    return worth, tokens.logprobs, gap.detach().exp()


# %%
def world(seeds=5, prompts=8, arms=16, G=8):
    gen = torch.Generator().manual_seed(0)
    start = torch.randn(seeds, prompts, arms, generator=gen)
    right = (torch.rand(start.shape, generator=gen) < 0.3).double()
    u = torch.rand(seeds, prompts, G, generator=gen)
    sums = start.softmax(-1).cumsum(-1)
    y = torch.searchsorted(sums, u).clamp(max=arms - 1)
    r = right.gather(-1, y)
    A = r - r.mean(-1, keepdim=True)
    return start, right, y, A / (r.std(-1, keepdim=True, correction=0)
                                 + 1e-6)


# %%
def push(rule, optimizer, lr, updates=400):
    start, right, y, A = world()
    old, theta = start.log_softmax(-1), start.clone().requires_grad_()
    opt, kl, out = getattr(torch.optim, optimizer)([theta], lr=lr), [], []
    for step in range(updates + 1):
        logp = theta.log_softmax(-1)
        worth, own, rho = judge(rule, logp, old, y, A)
        kl.append((old.exp() * (old - logp.detach())).sum(-1).mean(-1))
        out.append(((rho - 1).abs() > 0.2)[A != 0].double().mean().item())
        if step == 50:
            g, = torch.autograd.grad(worth.sum(), own, retain_graph=True)
            dead = [(g[s] == 0).double().mean() for s in (A > 0, A < 0)]
            then = (logp.detach().exp() * right).sum(-1).mean()
        opt.zero_grad()
        (-worth.mean((-1, -2)).sum()).backward()
        opt.step()
    return SimpleNamespace(kl=torch.stack(kl, 1), out=out, dead=dead,
                           then=then)


# %% [markdown]
# First, how soon is there anything to differ about? The share of tokens outside PPO's band, without
# any clip:

# %%
print("update          1    2    4    5   10   16   50")
for lr in (0.02, 0.1):
    out = push("no clip", "Adam", lr, updates=50).out
    print(f"Adam {lr:4.2f}   ",
          " ".join(f"{out[k]:4.2f}" for k in (1, 2, 4, 5, 10, 16, 50)))
    assert (out[4] == 0 < out[5]) if lr == 0.02 else (out[1] == 0 < out[2])

# %% [markdown]
# Adam moves a logit by about its step size per update. "CISPO keeps the trust region through its
# bounded weight." $\mathrm{KL}(\pi_\text{old}\|\pi_\theta)$ in nats per prompt, the mean of five
# seeds after 4, 16, 50 and 400 updates; after 50 every seed, the share of *dead* tokens (weight 0)
# by the sign of $A$, and the share of right answers.

# %% tags=["claim:Z23"]
start, right = world()[:2]
print(f"right before: {(start.softmax(-1) * right).sum(-1).mean():.3f}")
far = {}
for optimizer, lr in (("Adam", 0.02), ("SGD", 1.0)):
    print(f"\n{optimizer:11s}     4     16     50    400 | after 50: each"
          " seed           dead +  −  right")
    for rule in RULES:
        run = far[optimizer, rule] = push(rule, optimizer, lr)
        means = run.kl.mean(0)[[4, 16, 50, 400]].tolist()
        seeds = " ".join(f"{x:.3f}" for x in run.kl[:, 50].tolist())
        print(f"{rule:11s}", *(f"{x:.4f}" for x in means), f"| {seeds}",
              f" {run.dead[0]:.2f} {run.dead[1]:.2f}  {run.then:.3f}")
    kl = {rule: far[optimizer, rule].kl for rule in RULES}
    for rule in set(RULES) - {"CISPO 0.2"}:            # one update: equal
        assert (kl[rule] - kl["no clip"])[:, 1].abs().max() < 1e-12
    assert (kl["PPO"][:, 400] - kl["PPO"][:, 200]).abs().max() < 1e-6
    for rule in set(RULES) - {"PPO", "DPPO 0.0125"}:
        assert (kl[rule][:, 400] > 1.15 * kl[rule][:, 200]).all()
    assert (kl["DPPO 0.0125"][:, 50] < kl["PPO"][:, 50]).all()
# "CISPO keeps the trust region": sloppy

# %%
from rlnb.classroom.figures import spread_curves

shown = [rule for rule in RULES if rule != "CISPO 0.2"]
panels = {title: {rule: far[optimizer, rule].kl[:, 1:].tolist()
                  for rule in shown}
          for title, optimizer in (("Adam 0.02", "Adam"),
                                   ("SGD 1.0", "SGD"))}
spread_curves(
    panels, control="no clip", ylim=(3e-5, 10),
    xlabel="updates on one batch", ylabel="KL(old, now), nats per prompt",
    alt="KL between the old and the present policy against the number of "
        "updates on one batch, both axes logarithmic. Adam after 400: "
        + ", ".join(f"{rule} {far['Adam', rule].kl[:, -1].mean():.3f}"
                    for rule in shown)
        + ". PPO is flat from 200 on, the others still rise.",
    caption="PPO has stopped; the others still rise, a strict DPPO hardly. "
            "Line: mean of five seeds; band: lowest to highest; labels: "
            "after 400 updates.")

# %% [markdown]
# **The weight is bounded, the movement is not.** PPO has stopped: after 50 Adam updates all
# its tokens are dead, and its KL stays at 0.05. Every other rule but the strict DPPO still
# rises at 400. After 50, CISPO 1.28 is at 0.27 of the 0.31 without any clip with Adam, and
# at 0.30 of 1.01 with SGD; PPO at 0.05 and 0.015. DPPO 0.15 masks two thirds of the good
# tokens and 2 % of the bad: a wrong answer that started below 0.15 has not so much to lose.
#
# **The order is the thresholds'.** DPPO 0.0125, which is PPO's ε for a token of 1/16, ends below
# PPO; SAPO at τ = 10 is at 0.08 instead of 0.26. The rule's own is the shape, flat or rising. TRL's
# CISPO 0.2: 0.19 with Adam, which undoes much of any scale, 0.015 with SGD, whose step it divides
# by five.
#
# **They differ once ratios leave the band,** here after 5 updates of 0.02. Read your clip share,
# not your update count.
#
# **Old answers instead of many updates.** The 0.3M model of [page 21](21_grpo_for_real.ipynb),
# answers drawn from the weights of $k$ steps ago, 40 steps of 8 × 8, one update each; only the
# surrogate differs. Held-out pass@1, start 0.37, every seed, recorded on a CPU:

# %%
from rlnb.classroom.pictures.recorded_runs import final

print("k = 0, all one:", *(f"{x:.2f}" for x in final("chain_stale_0")))
for k in (4, 8):
    for label in ("clip", "cispo", "no_clip"):
        ends = final(f"chain_stale_{k}_{label}")
        print(f"k = {k}, {label:8s}", *(f"{x:.2f}" for x in ends))
assert min(final("chain_stale_4_clip")) > 0.8
assert min(final("chain_stale_4_cispo")) < 0.5

# %% [markdown]
# Three seeds, and no ranking survives both rows. At $k=4$ the clip and no clip cannot be told
# apart, and CISPO (cap 1.28) lost one seed. At $k=8$ the clip is the most even, no clip scatters
# from 0.65 to 0.89, and CISPO ends above the clip three times. What holds in both: clipped runs lie
# within 0.04 of each other, the others scatter. Learning rates were not tuned for each.
#
# **What this toy cannot say:** that moving far is bad. Look at the last column: farther is *better*
# here, because the reward is exact, answers are not thrown off by other prompts (a table shares no
# weights), and no inference engine disagrees with the trainer. Where those fail, distance is a
# risk.
#
# ## Where people go wrong
#
# In short:
#
# * *Reflection tokens have high ratios because they matter; clipped, they never contribute*:
#   because they are rare; until the next batch.
# * *CISPO is log π times the clipped ratio*: with $A$, and with a stop-gradient, or the sign may
#   turn.
# * *SAPO's loss fell below GRPO's, so it is doing better*: at ratio 1 and $A=1$ the values are
#   $2/\tau$ and 1 (CISPO: $\log\pi$) with one gradient. Read weights, clip shares and rewards, not
#   losses.
# * *CISPO keeps the trust region*: its weight is bounded; its KL after 50 updates is 5 times PPO's
#   with Adam, 20 times with SGD.
#
# And three more. **"SAPO weights a token with $\mathrm{sg}[\sigma(-\tau|\log\rho|)]$." "CISPO and
# SAPO both multiply a detached weight." "Neither weight has a jump."** What is left of each when
# its ratio is detached, and the largest jump between ratios 0.001 apart:

# %% tags=["claim:Z10", "claim:Z16", "claim:Z22"]
rho = torch.tensor([0.1, 0.5, 1.0, 1.5, 3.0, 10.0])
stated, paper = torch.sigmoid(-rho.log().abs()), weight(sapo(), rho)
print("ratio                       ", show(rho))
print("stated weight, τ = 1        ", show(stated))
print("SAPO                        ", show(paper))
assert stated[2] == 0.5 and abs(stated[0] - stated[5]) < 1e-12
assert paper[2] == 1 and round(paper[3].item(), 3) == 1.410


def frozen(surrogate):        # nothing but an explicit log pi may carry
    return lambda token, A, log_ratio: surrogate(
        token, A, log_ratio.detach()) + 0 * token.logprobs


fine = torch.arange(0.1, 4, 1e-3)
for name, part in (("PPO", clip(0.2)), ("CISPO 1.28", cispo(1.28)),
                   ("SAPO", sapo())):
    cut, jump = weight(frozen(part), rho), weight(part, fine).diff()
    print(f"{name:10s} ratio detached   ", show(cut),
          f"  jump {jump.abs().max():.3f}")
    assert cut.any() == (name == "CISPO 1.28")
    assert (jump.abs().max() > 1.19) == (name == "PPO")
# "SAPO weights tokens with a detached σ(-τ|log r|)": wrong
# "CISPO and SAPO both multiply a detached weight": sloppy
# "CISPO and SAPO have no jump in their weight": true

# %% [markdown]
# SAPO is 1 on fresh data, not ½, and not symmetric in log ρ. Detach the ratio and CISPO does not
# notice, for its gradient flows through $\log\pi$; nothing is left of SAPO, whose weight is the
# gate's *derivative* times ρ. And PPO jumps from 1.2 to 0, CISPO has a kink at the cap, SAPO is
# smooth.
#
# **"A drop from 0.8 to 0.6 stays inside the clip."**

# %% tags=["claim:Z13"]
for before, after in ((0.8, 0.6), (0.99, 0.80)):
    inside = bool(weight(clip(0.2), [after / before], -1.0) != 0)
    print(f"{before:.2f} -> {after:.2f}: ratio {after / before:.4f}, "
          f"moved {before - after:.2f}, inside 0.8 to 1.2: {inside}")
    assert inside == (before == 0.99)          # though it moved as far
# "A drop from 0.8 to 0.6 stays inside the clip range": wrong

# %% [markdown]
# It does not: 0.75. (With $A>0$ it is not cut, since it moved the wrong way.) 0.99 to 0.80 does.
#
# ## Exercises
#
# **12.1 Derive** · 10 minutes · ●●○. (a) From $f(x)=\frac4\tau\sigma(\tau(x-1))$ derive the weight
# $\rho\,\mathrm{sech}^2(\frac\tau2(\rho-1))$. (b) Where is its maximum? Give the equation, and
# check $\rho=2.06$ at $\tau=1$. (c) A token had probability $q$. At which *ratios* does DPPO with
# threshold δ drop it, for either sign? For which $q$ is PPO with ε = 0.2 stricter than DPPO with δ
# = 0.15?
#
# <details><summary>hint</summary>
#
# (a) $\sigma'=\sigma(1-\sigma)$ and $4\sigma(x)\sigma(-x)=\mathrm{sech}^2(x/2)$. (c)
# $p-q=q(\rho-1)$.
# </details>
#
# <details><summary>answer</summary>
#
# (a) $\nabla f(\rho)=f'(\rho)\,\rho\,\nabla\log\pi$ and
# $f'=4\sigma(1-\sigma)=\mathrm{sech}^2(\frac\tau2(\rho-1))$. (b) Take the log and differentiate:
# $\frac1\rho=\tau\tanh(\frac\tau2(\rho-1))$. At $\tau=1$, $\rho=2.06$: $0.4854$ on the left,
# $\tanh(0.53)=0.4854$ on the right. (c) Above $1+\delta/q$ for $A>0$ (never, if $q>1-\delta=0.85$:
# $p\le1$), below $1-\delta/q$ for $A\le0$ (never, if $q\lt\delta$). PPO is stricter where
# $0.2\lt0.15/q$, that is below $q=0.75$. Above it DPPO is, but for $A>0$ only up to 0.85; and 1.2
# itself is out of reach above $q=0.833$.
# </details>
#
# **12.2 Predict, then run** · 5 minutes · ●○○. A token with $A\lt0$ has fallen to 0.7 of what it
# was. Which of PPO, CISPO, SAPO and DPPO (ε = 0.2 for all) still push it down, if it started at
# 0.3? At 0.9? And the same for $A>0$?
#
# <details><summary>hint</summary>
#
# 0.3 → 0.21 and 0.9 → 0.63. `compute(sign="negative", ratio=0.7, old=...)["at"]` has the weights.
# </details>
#
# <details><summary>answer</summary>
#
# From 0.3: CISPO, SAPO and DPPO (0.09 moved); PPO is done. From 0.9: CISPO and SAPO, 0.27 is too
# much for DPPO. With $A>0$ all four push it back up: it moved the wrong way.
# </details>

# %% tags=["exercise"]
prediction = ...        # names of the methods that still push, for 0.3
now = compute(sign="negative", ratio=1.0, old=0.3)["at"]     # edit

# %% [markdown]
# **12.3 Implement** · 8 minutes · ●●○. CISPO's loss, to be minimised. `logprobs`, `old_logprobs`,
# `mask` are (B, T), the mask boolean, `advantages` (B,), `cap` the bound on the ratio itself; one
# mean over all unmasked tokens. What lies under the mask may be anything, nan included. Value and
# gradient are compared.
#
# <details><summary>hint</summary>
#
# `check.cispo_loss.hint`. What is the weight, what carries the gradient?
# </details>

# %% tags=["exercise"]
def my_cispo_loss(logprobs, old_logprobs, mask, advantages, cap):
    return ...


check.cispo_loss(my_cispo_loss)

# %% [markdown]
# **12.4 Implement** · 5 minutes · ●○○. SAPO's gate $f(\rho)$, element by element, *before* it is
# multiplied by the advantage, whose sign only picks the temperature. The result has the dtype of
# the input (`torch.where(condition, a, b)` of two Python numbers has the default one).
#
# <details><summary>hint</summary>
#
# `check.sapo_gate.hint`. What is $f(1)$, and what is $f'(1)$?
# </details>

# %% tags=["exercise"]
def my_sapo_gate(ratio, advantage, tau_pos, tau_neg):
    return ...


check.sapo_gate(my_sapo_gate)

# %% [markdown]
# **12.5 Implement** · 6 minutes · ●●○. DPPO's mask with two-way total variation: True keeps a
# token. Three tensors of one shape and two thresholds: $A\le0$ uses `low`, $A>0$ uses `high`.
#
# <details><summary>hint</summary>
#
# `check.dppo_mask.hint`. Which two of the four sign cases can be dropped at all?
# </details>

# %% tags=["exercise"]
def my_dppo_mask(logprobs, old_logprobs, advantages, low, high):
    return ...


check.dppo_mask(my_dppo_mask)

# %% [markdown]
# **12.6 Find the silent bug** · 8 minutes · ●●○. DPPO on one batch, a bandit of $K$ arms. It runs,
# learns, and its log says that no token is ever masked. Write a test that fails for this
# implementation and passes for the right one.
#
# <details><summary>hint</summary>
#
# `check.silent_bug_soft_trust_regions.hint`. What should fifty updates not be able to do?
# </details>

# %%
print(check.silent_bug_soft_trust_regions.source)

# %% tags=["exercise"]
def my_test(train_on_batch):
    ...


check.silent_bug_soft_trust_regions(my_test)

# %% [markdown]
# **12.7 Name this method** · 5 minutes · ●●○. Seven tokens of a run: probability when sampled, now,
# the sign of the advantage, and the weight on $A\nabla\log\pi$. Which method is it?
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
# <details><summary>hint</summary>
#
# Weights are the ratio or 0. Sort the lines by the ratio: is there a band? Then sort them by what
# moved.
# </details>

# %% tags=["exercise"]
my_answer = ...
check.name_this_soft_trust_regions(my_answer)

# %% [markdown]
# All solved and run in
# [solutions/12_soft_trust_regions.ipynb](solutions/12_soft_trust_regions.ipynb).
#
# ## In the interview
#
# Answer aloud, 60 seconds each, then unfold.
#
# **PPO's clip kills gradients. What do CISPO, SAPO and DPPO do instead?**
# <details><summary>answer</summary>
#
# All have a gradient $wA\nabla\log\pi$ and $w=\rho$ near 1. PPO: 0 once the token has passed
# $1\pm\epsilon$ the way $A$ pushes. CISPO: $\min(\rho,c)$, detached, never 0. SAPO:
# $\rho\,\mathrm{sech}^2(\frac\tau2(\rho-1))$, smooth, fading on both sides. DPPO: $\min(\rho,C)$
# with a large $C$, or 0 where $|p-q|>0.15$ the way $A$ pushes: an amount of probability, not a
# ratio.
# </details>
#
# **When do they differ at all?**
# <details><summary>answer</summary>
#
# Only off-policy: several updates per batch, stale data, or an inference engine whose probabilities
# differ. At ratio 1 every weight is 1. After that, once ratios leave the band: in our table after 5
# Adam updates of 0.02, or 2 of 0.1. Read the share outside, not the number of updates.
# </details>
#
# **Why the stop-gradient in CISPO?**
# <details><summary>answer</summary>
#
# Without it the product rule adds $\rho\log\pi$: the coefficient becomes $\rho(1+\log\pi)$,
# negative below $p=1/e$. At ρ = 1.1, log π = −2 it is −1.1 instead of +1.1, and above the cap it
# would be the cap again. The ratio is a weight, not a thing to improve.
# </details>
#
# **Does CISPO have a trust region?**
# <details><summary>answer</summary>
#
# A bounded weight, not a bounded policy. Nothing ever stops a token. After 50 updates on one batch
# KL 0.27 of 0.31 without clip (Adam, cap 1.28), 0.30 of 1.01 (SGD); PPO 0.05 and 0.015. At 400 PPO
# is flat, CISPO still rises. And it does not protect wrong answers pushed down: their weight only
# shrinks with ρ.
# </details>
#
# **`loss_type="cispo"` in TRL with defaults: what do you get?**
# <details><summary>answer</summary>
#
# A cap of 0.2, because `epsilon_high` is the cap itself and defaults to `epsilon`: practically
# every token gets weight 0.2. Adam gives the scale back, the weighting is gone. Write 5.0. verl
# adds 1 and has a floor, 0.8 by default; its example opens the floor and caps at 1.2. The paper
# tunes the upper side only and gives no number.
# </details>
#
# **Why measure probability instead of the ratio?**
# <details><summary>answer</summary>
#
# 0.0001 → 0.0002 has ratio 2 and moves nothing; 0.99 → 0.80 has ratio 0.81, inside the clip, and
# moves 0.19. A ratio clip is strict on rare tokens and lax on likely ones: in ratio terms DPPO's
# edge is $1\pm\delta/q$, the same as PPO's only at $q=\delta/\epsilon=0.75$.
# </details>
#
# **What is two-way TV to the real TV?**
# <details><summary>answer</summary>
#
# A lower bound, by lumping all other tokens together. Exact if only the token's own logit moved;
# 0.14 and 0.18 of the whole, on average, in our two random cases, where top-5 saw 0.7. Top-K
# includes the sampled token by definition, so it refines the two-way view and never sees less.
# </details>
#
# **How does DPPO's mask differ from "drop what moved too far"?**
# <details><summary>answer</summary>
#
# It also asks for direction: too far *and* pushed further. At |Δp| = 0.2 the careless mask drops
# all four sign cases, DPPO two. The other two are the way back.
# </details>
#
# **SAPO's weight: ever above 1? And why two temperatures?**
# <details><summary>answer</summary>
#
# Yes, at τ = 1 up to 1.57 at ρ = 2.06: ρ grows faster than the slope falls. At τ = 10 the bump is
# under 1 %. τ is higher for $A\le0$ because pushing a token down raises the logits of many
# unsampled ones, where the authors see instability; 1.05 against 1.0 is 0.882 against 0.981 at ρ =
# 3.5. And it is blind to direction: the way back fades as well.
# </details>
#
# **Which one would you take?**
# <details><summary>answer</summary>
#
# First log the share of tokens outside the band and the masked share, by the sign of $A$. For the
# first update on a batch with matched engines they are equal, and then as equal as that share is
# small: look at advantage and aggregation first. Where it is large (many updates, stale data): a
# mask, PPO's clip or DPPO's, with a threshold set by its masked share, not by its name. CISPO's
# case is rare tokens in a batch used many times, and it is MiniMax's report, not our run.
# </details>
#
# ## Recap
#
# The running group, all sixteen tokens (answers 0 and 1 right, 2 and 3 wrong): the weight each puts
# on $A\nabla\log\pi$. PPO is the clip of GRPO too; DAPO's upper edge is 1.28. On fresh data every
# number would be 1.

# %%
gates["dapo"] = ZOO["dapo"].explain(group).gate + 0.0
order = ("grpo", "dapo", "cispo", "sapo", "dppo")
ratio_now = (group.logprobs - group.old_logprobs).detach().exp()
print("token     old  ratio      PPO   DAPO CISPO5   SAPO   DPPO")
for i, t in group.mask.nonzero().tolist():
    w = [f"{gates[name][i, t]:6.3f}" for name in order]
    q = group.old_logprobs[i, t].exp()
    print(f"{i}.{t}    {q:6.4f}  {ratio_now[i, t]:5.2f}   ", *w)
dead = {n: int((gates[n][group.mask] == 0).sum()) for n in order}
print("weight 0              ", *(f"{dead[n]:6d}" for n in order))
assert dead["cispo"] == dead["sapo"] == 0 < dead["dppo"] < dead["grpo"]

# %% [markdown]
# * One number per token, $w$ in $wA\nabla\log\pi$: CISPO $\min(\rho,c)$, SAPO
#   $\rho\,\mathrm{sech}^2$; PPO and DPPO ρ, or 0 where $A$ pushes further a token that has gone too
#   far, by ratio or by probability moved.
# * At ratio 1 they are one method (CISPO's cap at least 1): advantage, aggregation and KL are then
#   the only differences. Later, what counts is the share outside the band.
# * A ratio is not a distance: 2.0 may be 0.0001 of probability, 0.81 may be 0.19.
# * A bounded weight is not a bounded policy. PPO's edge stopped this one; DPPO's mask stops only
#   what can move δ; a cap or a fading gate only slows.
# * One name, several codes: TRL's cap is `epsilon_high` itself, verl's CISPO has a floor, verl's
#   DPPO a cap of 3.
#
# Next, [13](13_gspo.ipynb): one ratio for a whole answer.
