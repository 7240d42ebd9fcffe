# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06 · statements: PPO, the clip and trust regions
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the long tables and corner cases of the lesson,
# [06 · PPO](../06_ppo.ipynb).

# %% tags=["setup"]
import math
import torch
from rlnb import ZOO, from_trl
from rlnb.classroom import explorers, figures
from rlnb.classroom.explorers import reuse
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures.recorded_runs import curve, final, records
from rlnb.objective import clip, logprob
from rlnb.toys import running_batch, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

def show(x):
    """The numbers of a tensor: four decimals, no negative zero."""
    flat = torch.as_tensor(x).flatten().tolist()
    return [round(v, 4) + 0.0 for v in flat]

# %% [markdown]
# Three rules for what a token is worth, and the *slope* of such a rule in ρ. The lesson counts in
# $\log\pi_\theta$, and its push is ρ times this slope: same sign, and 0 at the same places. Corners
# are (ρ, A) = (1.5, +1), (0.5, +1), (1.5, −1), (0.5, −1).

# %%
def unclipped(rho, A):
    return rho * A

def clip_only(rho, A):
    return rho.clamp(0.8, 1.2) * A

def surrogate_clip(rho, A, epsilon=0.2):
    clipped = rho.clamp(1 - epsilon, 1 + epsilon)
    return torch.minimum(rho * A, clipped * A)

def slope(objective, rho, A):
    rho = torch.tensor(rho, requires_grad=True)
    objective(rho, torch.tensor(A)).sum().backward()
    return show(rho.grad)

corners = [1.5, 0.5, 1.5, 0.5], [1.0, 1.0, -1.0, -1.0]     # rho, A

# %% [markdown]
# The running group: one prompt, four answers, rewards 1, 1, 0, 0, the group's mean as baseline.

# %%
batch = running_group()
mask = batch.mask                                            # (4, 6)
rho = (batch.logprobs - batch.old_logprobs).exp()            # (4, 6)
stand_in = batch.rewards - batch.rewards.mean()              # (4,)
A = stand_in[:, None].expand_as(rho)
for i in range(4):
    print(f"answer {i}  A {A[i, 0]:+.1f}  rho", show(rho[i][mask[i]]))

# %% [markdown]
# ### A02 · twice as likely
#
# Lesson: "Where the objective comes from".

# %%
statement("A02")

# %% tags=["claim:A02"]
p_old, p_new = torch.tensor([0.1, 0.1]), torch.tensor([0.2, 0.05])
rho_two = (p_new.log() - p_old.log()).exp()
print("0.1 -> 0.2 and 0.1 -> 0.05:", show(rho_two))
assert torch.allclose(rho_two, torch.tensor([2.0, 0.5]))

# %%
settle("A02", "true")

# %% [markdown]
# ### A14 · where a ratio starts
#
# Lesson: "Where the objective comes from".

# %%
statement("A14")

# %% tags=["claim:A14"]
lp = batch.logprobs.detach()[mask]
fresh_rho = (lp - lp).exp()                                  # (16,)
print("fresh data, running group: all 1", (fresh_rho == 1).all().item())
z = torch.zeros(3)
moved = z + torch.tensor([0.3, 0.0, 0.0])                    # token 0 only
rho3 = (moved.log_softmax(0) - z.log_softmax(0)).exp()
print("after a step on token 0 of 3:   ", show(rho3))
assert (fresh_rho == 1).all() and (rho3[1:] < 1).all()

# %%
settle("A14", "it depends")

# %% [markdown]
# $\rho=2$ means twice as likely as when the token was drawn, $\rho=0.5$ half as likely. The step on
# token 0 took the other two below 1: probabilities add up to one. So a good token is below 1 only
# after other updates on the same batch, or when the engine that sampled and the trainer disagree
# about log-probabilities:

# %%
logits = torch.tensor([0.3, -0.5, 1.1])
trainer = logits.log_softmax(0)
engine = logits.to(torch.bfloat16).double().log_softmax(0)   # rounded
print("engine in bfloat16, nothing trained yet:",
      show((trainer - engine).exp()))
assert (trainer != engine).any()

# %% [markdown]
# ### A12 · PPO and REINFORCE
#
# Lesson: "Where the objective comes from".

# %%
statement("A12")

# %% tags=["claim:A12"]
z = torch.tensor([0.3, -0.5, 1.1], requires_grad=True)       # logits
log_pi, log_old = z.log_softmax(0), torch.tensor([0.2, 0.5, 0.3]).log()
for t in range(3):
    d_ratio, d_log = (torch.autograd.grad(x[t], z, retain_graph=True)[0]
                      for x in ((log_pi - log_old).exp(), log_pi))
    print(f"token {t}: grad rho / grad log pi", show(d_ratio / d_log))
    assert torch.allclose(d_ratio, (log_pi - log_old)[t].exp() * d_log)

def gap(epsilon, batch):      # PPO's gradient against REINFORCE's
    ppo, reinforce = (
        torch.autograd.grad(objective(batch).loss, batch.logprobs)[0]
        for objective in (ZOO["ppo"].replace(surrogate=clip(epsilon)),
                          ZOO["ppo"].replace(surrogate=logprob())))
    return (ppo - reinforce).abs().max().item()

older = batch.replace(advantages=stand_in)
fresh = older.replace(old_logprobs=batch.logprobs.detach())
for epsilon in (0.01, 0.2, 0.9):
    print(f"epsilon {epsilon}: same gradient as REINFORCE, at the old "
          f"policy {gap(epsilon, fresh) < 1e-12}, later "
          f"{gap(epsilon, older) < 1e-12}")
    assert gap(epsilon, fresh) < 1e-12 < 0.01 < gap(epsilon, older)

# %%
settle("A12", "true")

# %% [markdown]
# $\nabla\rho=\rho\,\nabla\log\pi_\theta$, since $\rho=e^{\log\pi_\theta-\log\pi_\text{old}}$. On
# the first step $\rho=1$ for every token and no token is outside any band.

# %% [markdown]
# ### A01 · the smaller of two
#
# Lesson: "The obvious brake".

# %%
statement("A01")

# %% tags=["claim:A01"]
rho_3 = torch.tensor([0.5, 1.0, 1.5])
print("rho            ", show(rho_3))
for a, expected in ((1.0, [0.5, 1.0, 1.2]), (-1.0, [-0.8, -1.0, -1.5])):
    J = surrogate_clip(rho_3, a, epsilon=0.2)
    print(f"A = {a:+.0f}")
    print("  rho * A      ", show(rho_3 * a))
    print("  clip(rho) * A", show(rho_3.clamp(0.8, 1.2) * a))
    print("  J            ", show(J))
    assert show(J) == expected

# %%
settle("A01", "true")

# %% [markdown]
# PPO takes the smaller of two terms, token by token: +1.5 counts as 1.2, −1.5 counts in full. TRPO,
# its parent, instead puts a limit on the mean KL between old and new policy and solves for the step
# with conjugate gradients and a line search (arXiv 1502.05477). PPO has no constraint and no
# solver: a `min` and any optimizer.
#
# Both the value and the slope, with ε, the dual clip and the sign of $A$ in your hand. Left is what
# a token is paid, right is the slope, and the slope is all that the optimizer ever sees:

# %% tags=["explorer"]
explorers.clip_explorer()

# %% [markdown]
# ### A05 · a symmetric dead zone
#
# Lesson: "The obvious brake".

# %%
statement("A05")

# %% tags=["claim:A05"]
print(f"{'rho':15s}", corners[0])
print(f"{'A':15s}", corners[1])
for objective in (unclipped, clip_only, surrogate_clip):
    print(f"{objective.__name__:15s}", slope(objective, *corners))
assert slope(surrogate_clip, *corners) == [0, 1, -1, 0]

# %%
settle("A05", "true")

# %% [markdown]
# The last row: a good token that rose (first column) and a bad token that fell (fourth) have done
# their share: dead. A good token that fell and a bad one that rose have moved the wrong way: alive,
# with the slope they would have without any clip. Two dead corners, two live ones.

# %% [markdown]
# ### A06 · what the min is for
#
# Lesson: "The obvious brake".

# %%
statement("A06")

# %% tags=["claim:A06"]
near = [0.79, 0.81, 1.0, 1.19, 1.21]
bad = [-1.0] * 5
print("rho      ", near)
print("clip only", slope(clip_only, near, bad))
print("with min ", slope(surrogate_clip, near, bad))
print("clip only, four corners", slope(clip_only, *corners))
assert slope(clip_only, *corners) == [0, 0, 0, 0]
assert slope(clip_only, near, bad) == [0, -1, -1, -1, 0]
assert slope(surrogate_clip, near, bad) == [0, -1, -1, -1, -1]

# %%
settle("A06", "false")

# %% [markdown]
# Inside the band the clip alone corrects as before. Once a bad token has left it upwards (1.21),
# nothing pulls it back. The clip alone *under*-corrects; the `min` restores the pull. The sentence
# holds if "without the min" means plain $\rho A$.

# %% [markdown]
# ### A03 · a ratio of 1.5
#
# Lesson: "The obvious brake".

# %%
statement("A03")

# %% tags=["claim:A03"]
at = [1.19, 1.21, 1.5, 2.0]
value = surrogate_clip(torch.tensor(at), torch.ones(4))
print("A = +1, rho", at)
good = slope(surrogate_clip, at, [1.0] * 4)
print("  value", show(value), " slope", good)
risen = 100 * (torch.tensor(at)[2] - 1)
print(f"  a ratio of 1.5 is {risen:.0f} % more likely")
assert good == [1, 0, 0, 0]
assert show(value)[1:] == [1.2, 1.2, 1.2] and show(risen) == [50]

# %%
settle("A03", "false")

# %% [markdown]
# The 1.2 is right, as a value. The slope has been 0 since 1.2.

# %% [markdown]
# ### A04 · the stronger gradient
#
# Lesson: "The obvious brake".

# %%
statement("A04")

# %% tags=["claim:A04"]
tenth, bad = torch.tensor(0.1), torch.tensor(-1.0)
for J in (surrogate_clip, unclipped):
    value = J(tenth, bad).item()
    print(f"A = -1, rho 0.1, {J.__name__:14s}: value {value:.4f}",
          " slope", slope(J, 0.1, -1.0))
assert show(surrogate_clip(tenth, bad)) == [-0.8]
assert slope(surrogate_clip, 0.1, -1.0) == [0]
assert slope(unclipped, 0.1, -1.0) == [-1]

# %%
settle("A04", "false")

# %% [markdown]
# Right as a statement on values. The slope is what trains, and both improving directions are gated.

# %% [markdown]
# ### M08 · whose gradient is zero
#
# Lesson: "The obvious brake".

# %%
statement("M08")

# %% tags=["claim:M08"]
log_rho = torch.tensor(1.5).log().requires_grad_()
d_clip, = torch.autograd.grad(log_rho.exp().clamp(0.8, 1.2), log_rho)
d_rho, = torch.autograd.grad(log_rho.exp(), log_rho)
print("rho 1.5: d clip(rho)", show(d_clip), " d rho", show(d_rho))
assert d_clip == 0 and abs(d_rho - 1.5) < 1e-12

# %%
settle("M08", "it depends")

# %% [markdown]
# ### A11 · a constant in the ratio's place
#
# Lesson: "Sixteen tokens". The same count in the four corners, on the running group, and on a batch
# of two prompts.

# %%
statement("A11")

# %%
def count(batch, A):
    """Which tokens are outside the band, and which of them are cut."""
    rho = (batch.logprobs - batch.old_logprobs).exp().detach()
    rho.requires_grad_()
    surrogate_clip(rho, A)[batch.mask].sum().backward()
    outside = batch.mask & ((rho - 1).abs() > 0.2)           # (B, T)
    return outside, outside & (rho.grad == 0)

two = running_batch()
A_two = two.grouped(two.rewards) - two.grouped(two.rewards).mean(1, True)

# %% tags=["claim:A11"]
four = slope(surrogate_clip, *corners)
print(f"corners:     outside {len(four)}, cut {four.count(0.0)}")
outside, cut = count(batch, A)
print(f"one prompt:  outside {outside.sum()}, cut {cut.sum()}")
print("outside and alive:", show(rho[outside & ~cut]))
outside2, cut2 = count(two, two.expand(A_two))
print(f"two prompts: outside {outside2.sum()}, cut {cut2.sum()}")
assert len(four) == 4 and four.count(0.0) == 2
assert outside.sum() == 8 and cut.sum() == 4
assert outside2.sum() > cut2.sum() > 0

# %%
settle("A11", "it depends")

# %% [markdown]
# Eight tokens of the running group are outside, four are cut. The other four went the wrong way:
# 0.75 with $A>0$; 3.5, 1.24 and 2.0 with $A<0$. A clip fraction that ignores the sign of $A$
# reports twice the truth here. `rlnb`, TRL and verl count cut tokens.
#
# A corner case. Negate every advantage: how many are cut now?

# %%
outside_n, cut_n = count(batch, -A)
print(f"advantages negated: outside {outside_n.sum()}, cut {cut_n.sum()}, "
      f"of them cut before: {(cut_n & cut).sum()}")
assert torch.equal(cut_n, outside & ~cut)

# %% [markdown]
# Outside the band a token is either dead or alive, and negating $A$ exchanges the two. With no
# $A=0$ the two counts add up to the number of tokens outside.

# %% [markdown]
# ### M09 · any token outside the band
#
# Lesson: "Sixteen tokens".

# %%
statement("M09")

# %% tags=["claim:M09"]
four = slope(surrogate_clip, *corners)
print("slope in the corners (rho, A, slope):", list(zip(*corners, four)))
alive_outside = sum(s != 0 for s in four)
beyond, silent = count(batch, A)
print(f"alive outside the band: {alive_outside} corners of 4, "
      f"{(beyond & ~silent).sum()} tokens of {beyond.sum()}")
assert alive_outside == 2 and (four[1], four[2]) == (1, -1)
assert (beyond & ~silent).sum() == 4

# %%
settle("M09", "false")

# %% [markdown]
# ### A08 · unbounded
#
# Lesson: "How hard can one token push?".

# %%
statement("A08")

# %% tags=["claim:A08"]
def dual(rho, A):
    return clip(0.2, dual=3.0)(None, A, rho.log())    # rlnb: A, log rho

for name, J in (("clip", surrogate_clip), ("dual clip, c = 3", dual)):
    for r, a in ((100.0, 1.0), (2.0, -1.0), (100.0, -1.0)):
        value = J(torch.tensor(r), torch.tensor(a)).item()
        print(f"{name:17s} rho {r:5.0f}  A {a:+.0f}  J {value:8.1f}"
              f"  slope {slope(J, r, a)[0]:+.0f}")
assert slope(surrogate_clip, 100.0, -1.0) == [-1]
assert surrogate_clip(torch.tensor(100.0), torch.tensor(-1.0)) == -100
assert slope(dual, 100.0, -1.0) == [0] and slope(dual, 2.0, -1.0) == [-1]
assert dual(torch.tensor(100.0), torch.tensor(-1.0)) == -3

# %%
settle("A08", "it depends")

# %% [markdown]
# For $A<0$ and $\rho\gg1$ the `min` keeps $\rho A$, however large. A token drawn at probability
# 0.001, judged bad and risen to 0.1 since, has a ratio of 100 and would own the batch. The **dual
# clip** with $c>1$ puts a floor there (arXiv 1912.09729):
# $\max\big(\min(\rho A,\ \mathrm{clip}(\rho)A),\ cA\big)$ where $A<0$. verl's standard loss does
# so, by default with $c=3$. TRL calls it `delta` and leaves it off.

# %% [markdown]
# ### A09 · pessimistic about the surrogate
#
# Lesson: "In code", one level deeper. This one and the next sound alike.

# %%
statement("A09")

# %% tags=["claim:A09"]
g = torch.Generator().manual_seed(0)
rho_r = 5 * torch.rand(100_000, generator=g)
A_r = 2 * torch.rand(100_000, generator=g) - 1
above = (surrogate_clip(rho_r, A_r) > rho_r * A_r).sum()
print("J above rho * A in 100,000 random pairs:", above.item())
assert above == 0

# %%
settle("A09", "true")

# %% [markdown]
# ### A10 · a lower bound on the return
#
# Lesson: "In code", one level deeper. The lesson's two tokens, reward 1 only if both are 1. The
# first is 1 with probability $a$, the second with $b$. From $(a,b)=(0.5,\,0.5)$ we move to
# $(0.6,\,0.48)$. All ratios stay in $[0.8,\,1.2]$. The advantages are the old policy's exact ones,
# per token: ±0.25 for the first (the chance of winning goes from 0.25 to 0.5 or to 0); ±0.5 for the
# second after a 1, and 0 after a 0. $J$ is summed over both tokens.

# %%
statement("A10")

# %% tags=["claim:A10"]
def gains(a, b):
    """(true gain in return, gain promised by J), from a = b = 0.5."""
    promised, ratios = 0.0, []
    for first, second in ((1, 1), (1, 0), (0, 1), (0, 0)):
        rho = 2 * torch.tensor([a if first else 1 - a,
                                b if second else 1 - b])
        A = torch.tensor([0.25 if first else -0.25,
                          first * (0.5 if second else -0.5)])
        ratios.extend(show(rho))
        promised += 0.25 * surrogate_clip(rho, A).sum()
        assert torch.equal(surrogate_clip(rho, A), rho * A)  # no clip acts
    print("ratios", min(ratios), "to", max(ratios), "in [0.8, 1.2]")
    assert 0.8 <= min(ratios) and max(ratios) <= 1.2
    return a * b - 0.25, promised.item()

true, promised = gains(0.6, 0.48)
print(f"return rises by {true:+.4f}, J promises {promised:+.4f}")
assert [round(true, 9), round(promised, 9)] == [0.038, 0.04]
assert abs((promised - true) + (0.6 - 0.5) * (0.48 - 0.5)) < 1e-12

# %%
settle("A10", "it depends")

# %% [markdown]
# $J$ promised more than came. It weighs the second token by how often $\pi_\text{old}$ reaches it,
# not $\pi_\theta$. Here the gap is exactly $-(a-\tfrac12)(b-\tfrac12)$: half of the square
# $0.4\le a,b\le0.6$ breaks the "bound". For one-step problems the sentence holds. PPO's paper
# claims a lower bound on the *unclipped surrogate*, and that is A09.

# %% [markdown]
# ### A07 · a bound on one update
#
# Lesson: "How far can one step go?". Four arms, each drawn once, plain gradient ascent on
# $\sum_i J(\rho_i,A_i)$.

# %%
statement("A07")

# %%
def one_batch(objective, lr, steps, start=None, A=None):
    """Ascent on one batch -> ratios after each step, (steps, 4)."""
    A = torch.tensor([1.0, -1.0, 0.0, 0.0]) if A is None else A
    z = torch.zeros(4) if start is None else start
    old, path = z.log_softmax(0), []
    for step in range(steps):
        z = z.detach().requires_grad_()
        rho = (z.log_softmax(0) - old).exp()                 # (4,)
        g, = torch.autograd.grad(objective(rho, A).sum(), z)
        z = (z + lr * g).detach()
        path.append((z.log_softmax(0) - old).exp())
    return torch.stack(path)

def largest(*setting):
    both = [show(one_batch(J, *setting).max())[0]
            for J in (surrogate_clip, unclipped)]
    assert both[0] < both[1]
    return "{:.4f} with clip, {:.4f} without".format(*both)

# %% tags=["claim:A07"]
for lr in (0.05, 0.5, 3.0):
    first = one_batch(surrogate_clip, lr, 1)
    print(f"1 step,   lr {lr:4}:", show(first))
    assert torch.equal(first, one_batch(unclipped, lr, 1))
assert show(first.max()) == [3.6296]

print("40 steps, lr 0.05: largest ratio", largest(0.05, 40))
assert largest(0.05, 40) == "1.2305 with clip, 3.3449 without"

# %%
settle("A07", "it depends")

# %% [markdown]
# Other starts and other advantages. `largest` asserts that the clip's ratio is the smaller one:

# %%
for seed in range(5):
    g = torch.Generator().manual_seed(seed)
    start = 2 * torch.rand(4, generator=g) - 1
    A_s = 2 * torch.rand(4, generator=g) - 1
    print(f"  random start {seed}, lr 0.1:  ",
          largest(0.1, 40, start, A_s - A_s.mean()))

# %% [markdown]
# The first three lines of the deciding cell are identical with and without the clip, to the bit. At
# a learning rate of 3 one *clipped* step takes a ratio to 3.63. Over 40 steps the clip holds the
# largest ratio near the band: 1.23 against 3.34, and from five random starts with random advantages
# 1.24 to 1.47 against 2.14 to 7.53. A brake every time, a limit never. What bounds a step is the
# learning rate, the gradient-norm clip and the number of epochs.

# %%
steps = range(41)
objectives = {"PPO": surrogate_clip, "no clip": unclipped}
series = {name: [1.0] + one_batch(J, 0.05, 40).amax(1).tolist()
          for name, J in objectives.items()}
figures.line_figure(
    steps, series, xlabel="gradient steps on one batch",
    ylabel="largest ratio", ylim=(0.9, 3.5), size=(900, 300),
    alt="Largest ratio over 40 steps on one batch. Both curves start at 1 "
        "and agree until 1.2; then PPO's stays near 1.23 and the "
        "unclipped one climbs to 3.34.",
    caption="Up to the edge of the band PPO and no clip are the same "
            "curve; from there on the clip takes the incentive away (4 "
            "arms, gradient ascent, learning rate 0.05, no randomness).")

# %% [markdown]
# **And on a transformer?** A model of 0.3 million parameters on chains of small sums
# ([21](../21_grpo_for_real.ipynb)), Dr. GRPO, AdamW. Two runs with eight optimizer steps on each
# rollout, two without any reuse, where the ratio is 1 and no clip can act. Recorded on a CPU, one
# thread; the set-up is what the files say of themselves:

# %%
runs = {"8 updates, clip 0.2": "chain_8_updates_clip",
        "8 updates, no clip": "chain_8_updates_no_clip",
        "1 update, lr 3e-4": "chain_dr_grpo",
        "1 update, lr 1e-3": "chain_lr_1e-3"}
for label, run in runs.items():
    r = records(run, 0)[0]["recipe"]
    print(f"{label:20s} {r['steps']} rollouts of {r['prompts']} x "
          f"{r['num_generations']}, minibatches {r['minibatches']}, "
          f"epochs {r['num_iterations']}, lr {r['learning_rate']}, "
          f"tested on {r['eval_prompts']} x {r['eval_generations']}")

# %%
ended = {label: final(run) for label, run in runs.items()}
for label, run in runs.items():
    ends, begin = ended[label], final(run, step=0)
    top = [max(1.0, *curve(run, seed, "ratio/max")) for seed in range(3)]
    print(f"{label:20s} pass@1 from {begin[0]:.2f} to",
          *(f"{x:.2f}" for x in ends),
          "  largest ratio", *(f"{x:.0f}" for x in top))
clipped = [sum(curve("chain_8_updates_clip", seed, "clip_ratio/" + side)
               for side in ("low_mean", "high_mean")) for seed in range(3)]
print("tokens cut, in %, seeds 0 1 2:",
      *(f"{100 * share.mean():.1f}" for share in clipped))
assert min(ended["8 updates, clip 0.2"]) > \
    max(ended["8 updates, no clip"])

# %% [markdown]
# With the clip every seed ends above every seed without it, and nobody collapses: three seeds of
# one learning rate do not say that nobody would. The largest ratios overlap: a limit it is not.
# What ruins runs is the last line, and there a clip has nothing to say. Commands and longer tables:
# `data/runs/README.md`.

# %% [markdown]
# ### A13 · from 0.01 to 0.012
#
# Lesson: "In code", one level deeper: a ratio is relative.

# %%
statement("A13")

# %% tags=["claim:A13"]
def climb(p, high, lr=0.002, goal=0.9):
    """Ascend J on a good token at p until its slope is 0 (or p > goal)."""
    z = torch.tensor(math.log(p / (1 - p)), requires_grad=True)
    while z.sigmoid() < goal:
        rho = z.sigmoid() / p
        J = torch.min(rho, rho.clamp(1 - 0.2, 1 + high))
        dz, = torch.autograd.grad(J, z)
        if dz == 0:
            break
        z.data += lr * dz
    return z.sigmoid().item()

for high, counts in ((0.2, [22, 25]), (0.28, [16, 19])):
    path = [0.01]
    while path[-1] < 0.9:
        path.append(climb(path[-1], high))
    n = [sum(p < goal for p in path) for goal in (0.5, 0.9)]
    print(f"band up to {1 + high:.2f}: 0.01 -> {path[1]:.4f} in one batch; "
          f"past 0.5 after {n[0]}, past 0.9 after {n[1]}")
    assert n == counts and abs(path[1] - 0.01 * (1 + high)) < 5e-5
print(f"in one large step, lr 2: {climb(0.01, 0.2, lr=2.0):.4f}")
assert climb(0.01, 0.2, lr=2.0) > 5 * 0.012         # past the edge

# %%
settle("A13", "it depends")

# %% [markdown]
# On one batch 0.012 is where the token's own incentive ends. The next batch starts afresh from
# there. The second line has the wider upper edge of [11](../11_dapo.ipynb).

# %% [markdown]
# ### A15 · likely tokens and the upper clip
#
# Lesson: "In code", one level deeper.

# %%
statement("A15")

# %%
def alive(old, A):             # the new probabilities that J still moves
    rho = torch.arange(1, 400_001) / 1e5
    rho = rho[rho <= 1 / old].requires_grad_()       # p stops at 1
    surrogate_clip(rho, torch.tensor(A)).sum().backward()
    return old * rho.detach()[rho.grad != 0]

# %% tags=["claim:A15"]
old = torch.arange(0.8, 0.9, 1e-5)                   # each risen to 1:
free = torch.tensor(slope(surrogate_clip, (1 / old).tolist(), [1.0])) > 0
top = alive(0.9, 1.0).max()
print(f"at 0.9 alive up to {top:.4f}, ratio {top / 0.9:.4f}; "
      f"never cut upwards from {old[free].min():.4f} on, "
      f"1 / 1.2 = {1 / 1.2:.4f}")
assert top > 0.9999 and abs(old[free].min() - 1 / 1.2) < 2e-5

# %%
settle("A15", "true")

# %% [markdown]
# A probability cannot pass 1, so the largest ratio is $1/\pi_\text{old}$.

# %% [markdown]
# ### A16 · the way down and the way up
#
# Lesson: "In code", one level deeper.

# %%
statement("A16")

# %% tags=["claim:A16"]
down, up = alive(0.9, -1.0).min(), alive(0.01, 1.0).max()
print(f"at the edge 0.9 can lose {0.9 - down:.4f}, 0.01 can gain "
      f"{up - 0.01:.4f}; log-ratios ln {down / 0.9:.1f} = "
      f"{(down / 0.9).log():.4f} and ln {up / 0.01:.1f} = "
      f"{(up / 0.01).log():.4f}")
assert 0.9 - down > 80 * (up - 0.01)
assert abs((up / 0.01).log()) < abs((down / 0.9).log()) < 0.23

# %%
settle("A16", "it depends")

# %% [markdown]
# In probability the way down for a likely token is wider than the way up for a rare one. In
# $\log\rho$ the two edges are similar, −0.22 and +0.18.

# %% [markdown]
# ### A19 · the most informative tokens
#
# Lesson: "In code", one level deeper.

# %%
statement("A19")

# %% tags=["claim:A19"]
left = {}
for p, q, a in ((0.0001, 0.0002, 1.0), (0.99, 0.80, -1.0)):
    left[p], = slope(surrogate_clip, [q / p], [a])
    print(f"{p} -> {q}: ratio {q / p:.4f}, mass moved {abs(q - p):.4f}, "
          f"slope {left[p]:.0f}")
assert left == {0.0001: 0, 0.99: -1}

# %%
settle("A19", "it depends")

# %% [markdown]
# If informative means rare and rising, yes. The clip removes the largest *relative* change, and
# that can be a tiny move.

# %% [markdown]
# ## From papers
#
# These no cell can decide.

# %% [markdown] tags=["cited:A20"]
# ### A20 · two to four epochs, or one
#
# How often is a batch reused? Some say two to four epochs, some say one. There is no default. The
# tables of the PPO paper (arXiv 1707.06347) use 3 to 15 for control and Atari; recipes for language
# models lean towards 1, with the batch cut into minibatches, so that data is at most a few
# optimizer steps old.

# %% [markdown] tags=["cited:A21"]
# ### A21 · three trust regions
#
# "TRPO, PPO's clip and the staleness bound of asynchronous training are one idea." They share a
# worry, and none implies another.
#
# | | limits | by | does not promise |
# |---|---|---|---|
# | TRPO (arXiv 1502.05477) | the mean KL from old to new | a quadratic model, then a line search on the measured KL: a checked approximation, not an exact constraint | that every state stays close |
# | PPO's clip (arXiv 1707.06347) | the incentive to go on, per token | a `min` | a small step, or a higher return: see A07 and A10 |
# | staleness bound (AReaL, arXiv 2505.24298) | the age of the data, in versions | refusing old samples | that a young policy is a close one |

# %% [markdown] tags=["cited:A24"]
# ### A24 · cheap, no guarantee
#
# "PPO's trust region is cheap and comes without a guarantee." So it is. The monotonic-improvement
# theory belongs to TRPO's derivation (arXiv 1502.05477); the clip (arXiv 1707.06347) removes an
# incentive at the cost of a `min`.

# %% [markdown] tags=["cited:M11"]
# ### M11 · TRPO's constraint
#
# "TRPO enforces its KL constraint exactly." The formulation does. The solver (arXiv 1502.05477)
# uses a quadratic model of the mean KL over samples, then a line search on the measured mean KL,
# and takes the first step that passes: a checked approximation.

# %% [markdown]
# ## Two tokens: what the surrogate leaves out
#
# The lesson's bold line gives each token its own ratio. Two tokens, right with chances $a$ and $b$;
# the answer is right if both are, so the truth is $ab$:

# %%
from rlnb.classroom.pictures import ppo as pictures

def slopes(a, b):
    """Slopes in (a, b): of the truth a b, and of the surrogate."""
    at = torch.tensor([a, b], requires_grad=True)
    L = 0.0
    for y in ((1, 1), (1, 0), (0, 1), (0, 0)):      # four answers, 1/4 each
        both = torch.stack([2 * (p if bit else 1 - p)
                            for p, bit in zip(at, y)])
        L = L + 0.25 * both.sum() * (min(y) - 0.25)  # reward minus mean
    return [torch.autograd.grad(f, at)[0].tolist()
            for f in (at.prod(), L)]

for place in ((0.5, 0.5), (0.9, 0.2)):
    true, ours = slopes(*place)
    print(f"at {place}: truth {true}, ours {show(ours)}, "
          f"true proportion {true[1] / true[0]:.1f}")
pictures.arrows(slopes)

# %% [markdown]
# At the old policy the two agree. At (0.9, 0.2) the truth cares 4.5 times as much for the second
# token as for the first; the surrogate still weighs them alike.
#
# ## What the min costs, and where it helps
#
# In the lesson the `min` costs most at a large rate. Copies of one answer, graded right and wrong,
# share one ratio: past 1.2 the right copy is silent, and the wrong one keeps pushing. If that is
# the reason, the cost must go when copies cannot disagree: when they share their mean advantage, or
# when the grader pays $q_i$ itself.

# %% tags=["nbval-ignore-output"]
print("thirty steps a batch, after 300 batches; six starts, 10 seeds each:"
      "\n                  clip alone   clip and min   difference")
for grader in reuse.GRADERS:
    for rate in (10, 80, 160):
        alone, both = (reuse.six_starts(rule, 30, rate, grader=grader)
                       for rule in ("clip alone", "clip and min"))
        gap = both - alone
        print(f"{grader:8s} rate {rate:3d}   {alone.mean():9.2f}"
              f"   {both.mean():12.2f}    {gap.mean():+.3f} ± "
              f"{2 * gap.std(ddof=1) / gap.size**0.5:.3f}")

# %% [markdown]
# So it is, in this toy. The clip alone has the same numbers with dice and with averaged copies: its
# gate looks at the ratio only, and copies share that. With an exact grader the `min` gains a little
# at the large rates. In a group of answers to one prompt both occur: the first tokens are shared by
# right and wrong answers, the late tokens of an answer are mostly its own.
#
# ## The whole loop, with a second brake
#
# The loop around the loss, on the lesson's fifty answers. The second brake, which many trainers
# use: the loop leaves the batch when the KL from old to new, read with $k_3$ (05), passes a limit.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the lesson's toy, folded: fifty answers, 64 draws a batch
q = torch.linspace(0.3, 0.7, 50)             # chance that answer i is right
start = torch.randn(50, generator=torch.Generator().manual_seed(99))

def write_and_grade(z, g):
    """64 answers and their advantages, (64,) each."""
    i = torch.multinomial(z.softmax(0), 64, replacement=True, generator=g)
    R = torch.bernoulli(q[i], generator=g)
    return i, R - R.mean()

# %%
def ppo(seed, epsilon=0.2, limit=math.inf, batches=30, steps=30, lr=10.0):
    z, dice = start, torch.Generator().manual_seed(seed)
    for _ in range(batches):
        i, A_i = write_and_grade(z, dice)         # once
        old = z.log_softmax(0)[i]                 # kept as numbers
        for _ in range(steps):                    # the same batch again
            z = z.detach().requires_grad_()
            moved = z.log_softmax(0)[i] - old     # log rho
            if (moved.expm1() - moved).mean() > limit:   # k3, old to new
                break
            J = surrogate_clip(moved.exp(), A_i, epsilon).mean()
            z = z + lr * torch.autograd.grad(J, z)[0]
        z = z.detach()
    return (z.softmax(0) @ q).item()

# %% tags=["nbval-ignore-output"]
for limit in (math.inf, 0.05):
    for name, epsilon in (("no clip", math.inf), ("clip and min", 0.2)):
        end = sum(ppo(seed, epsilon, limit) for seed in range(20)) / 20
        print(f"stop at {limit} nats, {name:12s} right with {end:.2f}")

# %% [markdown]
# Thirty steps at rate 10 without a clip ruin this policy. With the stop they do not, with or
# without a clip. $k_3$ of one token at the edge of the band is at most 0.0231, so a limit of 0.05
# acts only when tokens have left it. This is one toy, one rate and 30 batches.

# %%
at_the_edge = torch.tensor([0.8, 1.2])
print(f"k3 in the band at most "
      f"{(at_the_edge - 1 - at_the_edge.log()).max():.4f}")

# %% [markdown]
# ## The loss, beside two libraries
#
# Minus the mean of $J$ over the 16 tokens. The package's PPO takes its advantages from a critic;
# `advantages=` hands it ours. Value, gradient and clip fraction must agree:

# %%
out = ZOO["ppo"](batch.replace(advantages=stand_in))
loss = -surrogate_clip(rho, A)[mask].sum() / mask.sum()
mine, = torch.autograd.grad(loss, batch.logprobs, retain_graph=True)
theirs, = torch.autograd.grad(out.loss, batch.logprobs)
print(f"from scratch {loss.item():.4f}, rlnb {out.loss.item():.4f}")
for side in ("low", "high", "region"):
    name = f"clip_ratio/{side}_mean"
    print(f"{name:23s} {out.metrics[name]:.4f}")
assert torch.allclose(loss, out.loss, rtol=0, atol=1e-12)
assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)
assert out.metrics["clip_ratio/region_mean"] == 4 / 16

# %% [markdown]
# Of 16 tokens one is cut low (bad, fallen to 0.7) and three high (good, risen): a quarter.
#
# TRL 1.16 has no PPO trainer. Its GRPO trainer holds the same clip: with `loss_type="bnpo"` the
# mean is over the tokens of the batch, without KL and without division by the std nothing else is
# left. Below is `rlnb`'s reading of that configuration:

# %%
as_trl = from_trl(loss_type="bnpo", beta=0.0,
                  scale_rewards="none").objective
print(as_trl)
reading = as_trl(batch).loss
same, = torch.autograd.grad(reading, batch.logprobs)
print("ours minus TRL's: loss", round((loss - reading).item(), 9) + 0.0,
      " largest difference of a gradient",
      round((mine - same).abs().max().item(), 9))
assert torch.allclose(loss, reading, rtol=0, atol=1e-12)
assert torch.allclose(mine, same, rtol=0, atol=1e-12)

# %% [markdown]
# No TRL is needed to run this page, so the cell compares with the reading, not with TRL. That the
# reading is right is tested elsewhere, beside TRL as installed, loss and gradient, setting by
# setting: `tests/parity/test_trl.py`. verl's recorded numbers: `tests/parity/test_verl.py`.

# %% [markdown]
# ### Practice · the value without `minimum`
#
# 5 minutes. The value of $L_t$ per element: say with `torch.where` where the constant stands, and
# which one. Solved on the [solutions page](../solutions/06_ppo.ipynb).

# %% tags=["exercise"]
from rlnb import check

def my_surrogate_clip(ratio, advantage, epsilon):
    return ...

check.surrogate_clip(my_surrogate_clip)
