# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 · PPO: several steps on one batch
#
# **Settles:** what the clip does, why there is a `min`, and what neither of them promises; where
# the advantage of a single token comes from; what a critic costs; which models sit in memory.
#
# 40 minutes · after [02](02_reinforce.ipynb), [03](03_baselines.ipynb) and [04](04_importance_sampling.ipynb) · Schulman et al. 2017 (PPO, arXiv 1707.06347), Schulman et al. 2015 (GAE,
# 1506.02438; TRPO, 1502.05477), Ye et al. 2020 (dual clip, 1912.09729), Ziegler et al. 2019 (KL in
# the reward, 1909.08593)
#
# > **[03](03_baselines.ipynb), baselines, in two lines.** Subtract from the reward any number that does not depend on the
# > answer drawn: the mean gradient stays, the noise changes. The result is the *advantage* $A$.
#
# > **[04](04_importance_sampling.ipynb), importance sampling, in two lines.** Samples from $\pi_\text{old}$ speak for $\pi_\theta$
# > once each is weighted by $\pi_\theta/\pi_\text{old}$. Over a whole answer these weights multiply
# > and explode, so everything below keeps one weight per token.

# %%
import torch
from rlnb import ZOO, check
from rlnb.classroom import explorers, figures
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## One line
#
# 8,192 answers of 1,024 tokens are 8.4 million sampled tokens. One gradient step, and they are
# stale: $\pi_\text{old}$ wrote them, we are at $\pi_\theta$. PPO takes several steps anyway. With
# $x$ the prompt and $y_t$ the $t$-th token of the answer,
#
# $$\rho_t=\frac{\pi_\theta(y_t\mid x,y_{\lt t})}{\pi_\text{old}(y_t\mid x,y_{\lt t})},\qquad
# J=\mathbb{E}_t\Big[\min\big(\rho_tA_t,\ \mathrm{clip}(\rho_t,1-\epsilon,1+\epsilon)\,A_t\big)\Big]$$
#
# The **ratio** $\rho_t$ says how far the token has already moved on this batch. The **advantage**
# $A_t$ says which way it should move. $\epsilon$, usually 0.2, is where we stop paying for movement.
# $\mathbb{E}_t$ is the mean over the tokens of the batch. $J$ is maximised; the loss is $-J$.

# %% tags=["claim:A01"]
def surrogate_clip(rho, A, epsilon=0.2):
    clipped = rho.clamp(1 - epsilon, 1 + epsilon)
    return torch.minimum(rho * A, clipped * A)

def show(x):
    """The numbers of a tensor: four decimals, no negative zero."""
    flat = torch.as_tensor(x).flatten().tolist()
    return [round(v, 4) + 0.0 for v in flat]

rho = torch.tensor([0.5, 1.0, 1.5])
print("rho            ", show(rho))
for A, expected in ((1.0, [0.5, 1.0, 1.2]), (-1.0, [-0.8, -1.0, -1.5])):
    J = surrogate_clip(rho, A)
    print(f"A = {A:+.0f}")
    print("  rho * A      ", show(rho * A))
    print("  clip(rho) * A", show(rho.clamp(0.8, 1.2) * A))
    print("  J            ", show(J))
    assert show(J) == expected
# "PPO maximises the smaller of r·A and clip(r, 1±ε)·A": true

# %% [markdown]
# PPO takes the smaller of two terms, token by token: +1.5 counts as 1.2, −1.5 counts in full. TRPO,
# its parent, instead puts a limit on the mean KL between old and new policy and solves for the step
# with conjugate gradients and a line search (arXiv 1502.05477). PPO has no constraint and no solver:
# a `min` and any optimizer.
#
# Move ε, switch the dual clip on, look at one sign at a time. Left is what a token is paid, right
# is the slope, and the slope is all that the optimizer ever sees.

# %% tags=["explorer"]
explorers.clip_explorer()

# %% [markdown]
# ## Four corners, three objectives
#
# Outside the band there are four cases, the four marks of the picture: the token went up or down,
# and that was right or wrong. The slope $dJ/d\rho$ of three objectives in each: no clip, the clip
# alone, clip and `min`.

# %% tags=["claim:A05"]
def slope(objective, rho, A):
    rho = torch.tensor(rho, requires_grad=True)
    objective(rho, torch.tensor(A)).sum().backward()
    return show(rho.grad)

def unclipped(rho, A):
    return rho * A

def clip_only(rho, A):
    return rho.clamp(0.8, 1.2) * A

corners = [1.5, 0.5, 1.5, 0.5], [1.0, 1.0, -1.0, -1.0]     # rho, A
print(f"{'rho':15s}", corners[0])
print(f"{'A':15s}", corners[1])
for objective in (unclipped, clip_only, surrogate_clip):
    print(f"{objective.__name__:15s}", slope(objective, *corners))
assert slope(surrogate_clip, *corners) == [0, 1, -1, 0]
# "The dead zone is symmetric": true

# %% [markdown]
# The last row: a good token that rose (first column) and a bad token that fell (fourth) have
# done their share: dead. A good token that fell and a bad one that rose have moved the wrong way:
# alive, with the slope they would have without any clip. Two dead corners, two live ones.
#
# The row of zeros is why there is a `min`. It is often said that without it the policy would
# over-correct on bad tokens. That holds if "without" means plain $\rho A$. For the clip alone it
# is the other way round:

# %% tags=["claim:A06"]
rho = [0.79, 0.81, 1.0, 1.19, 1.21]
bad = [-1.0] * 5
print("rho      ", rho)
print("clip only", slope(clip_only, rho, bad))
print("with min ", slope(surrogate_clip, rho, bad))
assert slope(clip_only, *corners) == [0, 0, 0, 0]
assert slope(clip_only, rho, bad) == [0, -1, -1, -1, 0]
assert slope(surrogate_clip, rho, bad) == [0, -1, -1, -1, -1]
# "because a bare clip would push bad tokens down too far": wrong

# %% [markdown]
# Inside the band the clip alone corrects as before. Once a bad token has left it upwards (1.21),
# nothing pulls it back. The clip alone *under*-corrects; the `min` restores the pull.
#
# ## Outside the band is not the same as cut
#
# Now the four answers that every page carries: one prompt, rewards 1, 1, 0, 0. Until the critic
# arrives the advantage is the reward minus the group's mean, so ±0.5.

# %%
from rlnb.toys import running_batch, running_group

batch = running_group()
mask = batch.mask                                            # (4, 6)
rho = (batch.logprobs - batch.old_logprobs).exp()            # (4, 6)
A = (batch.rewards - batch.rewards.mean())[:, None].expand_as(rho)
for i in range(4):
    print(f"answer {i}  A {A[i, 0]:+.1f}  rho", show(rho[i][mask[i]]))

# %% [markdown]
# It is often said that any token whose ratio leaves the band has its gradient set to zero, because
# a constant has taken the ratio's place. That holds on the improving side only. Count both, on this
# group and on a batch of two prompts:

# %% tags=["claim:A11", "claim:M09"]
def count(batch, A):
    rho = (batch.logprobs - batch.old_logprobs).exp().detach()
    rho.requires_grad_()
    surrogate_clip(rho, A)[batch.mask].sum().backward()
    outside = batch.mask & ((rho - 1).abs() > 0.2)           # (B, T)
    return outside, outside & (rho.grad == 0)

outside, cut = count(batch, A)
print(f"one prompt:  outside {outside.sum()}, cut {cut.sum()}")
print("outside and alive:", show(rho[outside & ~cut]))
two = running_batch()
A_two = two.grouped(two.rewards) - two.grouped(two.rewards).mean(1, True)
outside2, cut2 = count(two, two.expand(A_two))
print(f"two prompts: outside {outside2.sum()}, cut {cut2.sum()}")
assert outside.sum() == 8 and cut.sum() == 4
assert outside2.sum() > cut2.sum() > 0
four = slope(surrogate_clip, *corners)
print("slope in the corners:", list(zip(*corners, four)))
assert four.count(0.0) == 2 and (four[1], four[2]) == (1, -1)
# "An active clip puts a constant in the ratio's place": conditional
# "Any token whose ratio leaves the band": wrong

# %% [markdown]
# Eight tokens are outside, four are cut. The other four went the wrong way: 0.75 with $A>0$; 3.5,
# 1.24 and 2.0 with $A<0$. A clip fraction that ignores the sign of $A$ reports twice the truth here.
# `rlnb`, TRL and verl count cut tokens.
#
# ## The loss, from scratch
#
# Minus the mean of $J$ over the 16 tokens. The package's PPO takes its advantages from a critic;
# until we have one, `advantages=` hands it ours. Value, gradient and clip fraction must agree:

# %%
stand_in = batch.rewards - batch.rewards.mean()              # (4,)
out = ZOO["ppo"](batch.replace(advantages=stand_in))

loss = -surrogate_clip(rho, A)[mask].sum() / mask.sum()
mine, = torch.autograd.grad(loss, batch.logprobs)            # (4, 6)
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
# ## The ratio, and where it starts
#
# $\rho=2$ means twice as likely as when the token was drawn, $\rho=0.5$ half as likely.
#
# It is sometimes said that a good token's ratio climbs from below 1. On fresh data it starts at
# exactly 1. Below 1 it is only after other updates on the same batch, or when the engine that
# sampled and the trainer disagree about log-probabilities (page 17).

# %% tags=["claim:A02", "claim:A14"]
p_old, p_new = torch.tensor([0.1, 0.1]), torch.tensor([0.2, 0.05])
rho_two = (p_new.log() - p_old.log()).exp()
print("0.1 -> 0.2 and 0.1 -> 0.05:     ", show(rho_two))
assert torch.allclose(rho_two, torch.tensor([2.0, 0.5]))

lp = batch.logprobs.detach()[mask]
fresh_rho = (lp - lp).exp()                                  # (16,)
print("fresh data, running group: all 1", (fresh_rho == 1).all().item())
z = torch.zeros(3)
moved = z + torch.tensor([0.3, 0.0, 0.0])                    # token 0 only
rho3 = (moved.log_softmax(0) - z.log_softmax(0)).exp()
print("after a step on token 0 of 3:   ", show(rho3))
assert (fresh_rho == 1).all() and (rho3[1:] < 1).all()
# "A ratio of 2 means the token has become twice as likely": true
# "For a good token the ratio climbs from below 1": sloppy

# %% [markdown]
# The step on token 0 took the other two below 1: probabilities add up to one.
#
# $\nabla\rho=\rho\,\nabla\log\pi_\theta$, since $\rho=e^{\log\pi_\theta-\log\pi_\text{old}}$. On
# the first step $\rho=1$ for every token, no token is outside any band, and PPO's gradient is
# REINFORCE with a baseline, whatever ε:

# %% tags=["claim:A12"]
from rlnb.objective import clip, logprob

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
# "at the old policy PPO's gradient is REINFORCE": true

# %% [markdown]
# ## A bound on what?
#
# Two sentences are told about PPO and sound alike. The first is true by construction:
# $\min(\rho A,\cdot)\le\rho A$. The surrogate is pessimistic.
#
# The second is that $J$ is a lower bound on the true return. That holds for one-step problems. Take
# two tokens, reward 1 only if both are 1. The first is 1 with probability $a$, the second with $b$.
# From $(a,b)=(0.5,\,0.5)$ we move to $(0.6,\,0.48)$. All ratios stay in $[0.8,\,1.2]$. The exact
# advantages of the old policy: ±0.25 for the first token (the chance of winning goes from 0.25 to
# 0.5 or to 0); ±0.5 for the second after a 1, and 0 after a 0. $J$ is summed over both tokens.

# %% tags=["claim:A09", "claim:A10"]
g = torch.Generator().manual_seed(0)
rho_r = 5 * torch.rand(100_000, generator=g)
A_r = 2 * torch.rand(100_000, generator=g) - 1
above = (surrogate_clip(rho_r, A_r) > rho_r * A_r).sum()
print("J above rho * A in 100,000 random pairs:", above.item())

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
    print("ratios", min(ratios), "to", max(ratios))
    return a * b - 0.25, promised.item()

true, promised = gains(0.6, 0.48)
print(f"return rises by {true:+.4f}, J promises {promised:+.4f}")
assert above == 0 and [round(true, 9), round(promised, 9)] == [0.038, 0.04]
assert abs((promised - true) + (0.6 - 0.5) * (0.48 - 0.5)) < 1e-12
# "it never exceeds the unclipped one": true
# "the true return is at least that": sloppy

# %% [markdown]
# $J$ promised more than came. It weighs the second token by how often $\pi_\text{old}$ reaches it,
# not $\pi_\theta$. Here the gap is exactly $-(a-\tfrac12)(b-\tfrac12)$: half of the square
# $0.4\le a,b\le0.6$ breaks the "bound". PPO's paper claims a lower bound on the *unclipped
# surrogate*, and that is the first sentence.
#
# ## The corner without a floor
#
# It is said that unclipped $\rho A$ is unbounded and that the clip guards against it. It does for
# $A>0$. For $A<0$ and $\rho\gg1$ the `min` keeps $\rho A$, however large. A second clip, the **dual
# clip** with $c>1$, puts a floor there (arXiv 1912.09729):
#
# $$\max\big(\min(\rho A,\ \mathrm{clip}(\rho)A),\ cA\big)\quad\text{where } A<0$$

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
# "Unclipped, r·A is unbounded; the clip guards against that": sloppy

# %% [markdown]
# A token drawn at probability 0.001, judged bad and risen to 0.1 since, would own the batch. verl
# always applies the dual clip, with $c=3$. TRL calls it `delta` and leaves it off.
#
# ## A brake, not a limit
#
# "The clip bounds how far one update can move the policy." As a guarantee that fails at the first
# step: there the clipped and the unclipped gradient are the same vector, and the learning rate
# decides how far it goes. As a brake over several epochs on one batch it holds. Four arms, each
# drawn once, plain gradient ascent on $\sum_i J(\rho_i,A_i)$:

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

# %% tags=["claim:A07"]
for lr in (0.05, 0.5, 3.0):
    first = one_batch(surrogate_clip, lr, 1)
    print(f"1 step,   lr {lr:4}:", show(first))
    assert torch.equal(first, one_batch(unclipped, lr, 1))
assert show(first.max()) == [3.6296]

def largest(*setting):
    both = [show(one_batch(J, *setting).max())[0]
            for J in (surrogate_clip, unclipped)]
    assert both[0] < both[1]
    return "{:.4f} with clip, {:.4f} without".format(*both)

print("40 steps, lr 0.05: largest ratio", largest(0.05, 40))
assert largest(0.05, 40) == "1.2305 with clip, 3.3449 without"
for seed in range(5):
    g = torch.Generator().manual_seed(seed)
    start = 2 * torch.rand(4, generator=g) - 1
    A_s = 2 * torch.rand(4, generator=g) - 1
    print(f"  random start {seed}, lr 0.1:  ",
          largest(0.1, 40, start, A_s - A_s.mean()))
# "The clip bounds how far one update can move the policy": sloppy

# %% [markdown]
# The first three lines are identical with and without the clip, to the bit. At a learning rate of 3
# one *clipped* step takes a ratio to 3.63. Over 40 steps the clip holds the largest ratio near the
# band: 1.23 against 3.34, and from five random starts with random advantages 1.24 to 1.47 against
# 2.14 to 7.53. A brake every time, a limit never. What bounds a step is the learning rate, the
# gradient-norm clip and the number of epochs.

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
# **And on a transformer?** The 0.3M-parameter model of [page 19](19_grpo_for_real.ipynb), 20 rollouts of 64 answers, eight optimizer
# steps on each (Dr. GRPO, AdamW 2e-4). And once without any reuse, where the ratio is 1 and no clip can act, at two learning
# rates. Held-out pass@1, start 0.37 to 0.39, three seeds, recorded on a CPU:

# %%
from rlnb.classroom.pictures.recorded_runs import curve, final

for label, run in (("8 updates, clip 0.2", "chain_8_updates_clip"),
                   ("8 updates, no clip", "chain_8_updates_no_clip"),
                   ("1 update, lr 3e-4", "chain_dr_grpo"),
                   ("1 update, lr 1e-3", "chain_lr_1e-3")):
    ends = final(run)
    top = [max(1.0, *curve(run, seed, "ratio/max")) for seed in range(3)]
    print(f"{label:20s}", *(f"{x:.2f}" for x in ends),
          "  largest ratio", *(f"{x:.0f}" for x in top))
assert min(final("chain_8_updates_clip")) > \
    max(final("chain_8_updates_no_clip"))

# %% [markdown]
# With the clip every seed ends above every seed without it; nobody collapses. The largest ratios overlap: a limit it is
# not. What ruins runs is the last line, and there a clip has nothing to say.

# %% [markdown] tags=["cited:A20", "cited:A21", "cited:A24", "cited:M11"]
# **How often is a batch reused?** Some say two to four epochs, some say one. There is no default. The
# tables of the PPO paper (arXiv 1707.06347) use 3 to 15 for control and Atari; recipes for language
# models lean towards 1, with the batch cut into minibatches, so that data is at most a few optimizer
# steps old.
#
# **Three things called a trust region.** They share a worry, and none implies another.
#
# | | limits | by | does not promise |
# |---|---|---|---|
# | TRPO (arXiv 1502.05477) | the mean KL from old to new | a quadratic model, then a line search on the measured KL: a checked approximation, not an exact constraint | that every state stays close |
# | PPO's clip (arXiv 1707.06347) | the incentive to go on, per token | a `min` | a small step, or a higher return: see the cells above |
# | staleness bound (AReaL, arXiv 2505.24298) | the age of the data, in versions | refusing old samples | that a young policy is a close one |
#
# The monotonic-improvement theory belongs to TRPO's derivation. PPO's clip is cheap and comes without
# a guarantee.
#
# ## What the band means in probability
#
# A ratio is relative. $\epsilon=0.2$ allows a token at 0.01 the way to 0.012, and it is often added
# that this is all it *can* rise. On this batch that is where its own incentive ends. The next batch
# starts afresh from there (the second line is the wider upper edge of page 09):

# %% tags=["claim:A13"]
import math

def one_batch(p, high, lr=0.002, goal=0.9):
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
        path.append(one_batch(path[-1], high))
    n = [sum(p < goal for p in path) for goal in (0.5, 0.9)]
    print(f"band up to {1 + high:.2f}: 0.01 -> {path[1]:.4f} in one batch; "
          f"past 0.5 after {n[0]}, past 0.9 after {n[1]}")
    assert n == counts and abs(path[1] - 0.01 * (1 + high)) < 5e-5
print(f"in one large step, lr 2: {one_batch(0.01, 0.2, lr=2.0):.4f}")
assert one_batch(0.01, 0.2, lr=2.0) > 5 * 0.012     # past the edge
# "can only rise to 0.012 before it is clipped": conditional

# %% [markdown]
# Likely tokens, on the other hand, hardly ever feel the upper clip: a probability cannot pass 1, so
# the largest ratio is $1/\pi_\text{old}$. And the way down for a likely token is wider than the way
# up for a rare one, in probability. In $\log\rho$ the two edges are similar, −0.22 and +0.18.
#
# "The most informative tokens are the ones the clip removes first." If informative means rare and
# rising, yes. The clip removes the largest *relative* change, and that can be a tiny move: last two
# lines.

# %% tags=["claim:A15", "claim:A16", "claim:A19"]
def alive(old, A):             # the new probabilities that J still moves
    rho = torch.arange(1, 400_001) / 1e5
    rho = rho[rho <= 1 / old].requires_grad_()       # p stops at 1
    surrogate_clip(rho, torch.tensor(A)).sum().backward()
    return old * rho.detach()[rho.grad != 0]

old = torch.arange(0.8, 0.9, 1e-5)                   # each risen to 1:
free = torch.tensor(slope(surrogate_clip, (1 / old).tolist(), [1.0])) > 0
top = alive(0.9, 1.0).max()
print(f"at 0.9 alive up to {top:.4f}, ratio {top / 0.9:.4f}; "
      f"never cut upwards from {old[free].min():.4f} on")
down, up = alive(0.9, -1.0).min(), alive(0.01, 1.0).max()
print(f"at the edge 0.9 can lose {0.9 - down:.4f}, 0.01 can gain "
      f"{up - 0.01:.4f}; log-ratios {(down / 0.9).log():.4f} and "
      f"{(up / 0.01).log():.4f}")
left = {}
for p, q, A in ((0.0001, 0.0002, 1.0), (0.99, 0.80, -1.0)):
    left[p], = slope(surrogate_clip, [q / p], [A])
    print(f"{p} -> {q}: ratio {q / p:.4f}, mass moved {abs(q - p):.4f}, "
          f"slope {left[p]:.0f}")
assert top > 0.9999 and abs(old[free].min() - 1 / 1.2) < 2e-5
assert 0.9 - down > 80 * (up - 0.01) and left == {0.0001: 0, 0.99: -1}
# "Likely tokens hardly ever feel the upper clip": true
# "is wider than the way up for an unlikely one": conditional
# "The most informative tokens are the ones the clip removes": sloppy

# %% [markdown]
# ## Where $A_t$ comes from: a critic
#
# PPO's paper takes $A_t$ from a second network. The **critic** $V_t$ predicts the reward still to
# come, given the prompt and the tokens before $t$. With per-token rewards $r_t$ (for language
# models usually 0 until the last token) and a discount $\gamma$ (for language models usually 1), the
# surprise at token $t$ is
#
# $$\delta_t=r_t+\gamma V_{t+1}-V_t,\qquad V_{T+1}=0\text{ after the last token.}$$
#
# **Generalised advantage estimation** adds up the surprises from $t$ on, fading by $\gamma\lambda$:
#
# $$A_t=\sum_{l\ge0}(\gamma\lambda)^l\,\delta_{t+l}\qquad\Longleftrightarrow\qquad
# A_t=\delta_t+\gamma\lambda A_{t+1}$$
#
# The right form runs backwards once and costs nothing.

# %%
def residuals(rewards, values, gamma):
    """(B, T) rewards and values, 0 on padding -> delta (B, T)."""
    after = torch.cat([values[:, 1:], torch.zeros(len(values), 1)], 1)
    return rewards + gamma * after - values

def gae_rows(rewards, values, gamma=1.0, lam=0.95):
    delta = residuals(rewards, values, gamma)                # (B, T)
    A, running = torch.zeros_like(delta), torch.zeros(len(delta))
    for t in reversed(range(delta.shape[1])):
        running = delta[:, t] + gamma * lam * running        # (B,)
        A[:, t] = running
    return A

r, V = torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.2, 0.5, 0.7]])
print("delta", show(residuals(r, V, 1.0)))
print("A    ", [f"{a:.6f}" for a in gae_rows(r, V).flatten()])
assert torch.allclose(gae_rows(r, V), torch.tensor([[0.76075, 0.485, 0.3]]))

# %% [markdown]
# By hand: $A_3=1-0.7=0.3$, $A_2=0.2+0.95\cdot0.3=0.485$, $A_1=0.3+0.95\cdot0.485=0.76075$.
#
# λ only mixes. At λ = 0 what is left is $\delta_t$. At λ = 1 the values in between cancel and
# what is left is the discounted return minus $V_t$. Both are exact for any critic, good or random:

# %% tags=["claim:B06"]
from rlnb.objective import Batch, gae

g = torch.Generator().manual_seed(1)
r, V = torch.rand(2, 8, generator=g), torch.rand(2, 8, generator=g)
gamma, lam, T = 0.9, 0.8, 8
delta = residuals(r, V, gamma)
double_sum = torch.stack([
    sum((gamma * lam) ** (k - t) * delta[:, k] for k in range(t, T))
    for t in range(T)], 1)                                   # (B, T)
to_go = torch.stack([sum(gamma ** (k - t) * r[:, k] for k in range(t, T))
                     for t in range(T)], 1)
rows = Batch(torch.zeros(2, T), torch.ones(2, T), r.sum(1), 1, values=V)
ours = gae_rows(r, V, gamma, lam)
gaps = {"recursion - double sum": ours - double_sum,
        "lambda 0 - delta": gae_rows(r, V, gamma, 0.0) - delta,
        "lambda 1 - (return - V)": gae_rows(r, V, gamma, 1.0) - (to_go - V),
        "recursion - rlnb": ours - gae(gamma, lam)(rows, r)}
for name, gap in gaps.items():
    print(f"{name:24s} below 1e-12: {gap.abs().max().item() < 1e-12}")
    assert gap.abs().max() < 1e-12
# "GAE is the (γλ)-weighted sum of TD residuals": true

# %% [markdown]
# ## What λ trades
#
# λ = 0 believes the critic after one token: little noise, and every error of the critic goes
# straight into the gradient. λ = 1 waits for the reward: no bias, all the noise of the rest of the
# answer.
#
# In the explorer the first of five tokens decides. The *good* one, drawn with probability $p=0.4$,
# leads to a right answer nine times in ten, the bad one twice in ten. After that token the critic says
# 0.4 and 0.6: the wrong way round. Everywhere else it is right. Move λ until the sign is right.

# %% tags=["explorer"]
explorers.gae_explorer()

# %% [markdown]
# The curve is a straight line. The score $\partial\log\pi/\partial z$ of the good token's logit $z$
# is $1-p$ for the good token and $-p$ for the bad one. Summing over the four outcomes, with $Q$ the
# true and $V$ the claimed values after the first token:
#
# $$\mathbb{E}\,[\text{gradient}]=p(1-p)\big[(1-\lambda)(V_\text{good}-V_\text{bad})
# +\lambda(Q_\text{good}-Q_\text{bad})\big]$$
#
# "With a wrong critic λ = 0 has low variance and high bias; λ = 1 is unbiased" is how it is usually
# said, and "a badly fitted critic quietly poisons every advantage". Both hold. How much poison: the
# bias is $0.24\,(1-\lambda)$ times the difference of the critic's errors, here
# $(0.4-0.9)-(0.6-0.2)=-0.9$.

# %% tags=["claim:B08", "claim:B11"]
from rlnb.classroom.explorers.gae import compute

Q, V_wrong = {"good": 0.9, "bad": 0.2}, {"good": 0.4, "bad": 0.6}
branch = ["good", "good", "bad", "bad"]           # right, wrong, right, ...
chance = torch.tensor([0.4 * 0.9, 0.4 * 0.1, 0.6 * 0.2, 0.6 * 0.8])
score = torch.tensor([0.6, 0.6, -0.4, -0.4])                 # d log pi / dz
win = torch.zeros(4, 5)
win[[0, 2], -1] = 1.0

def claimed(V):                                              # (4, 5)
    return torch.tensor([[0.48, V[k], Q[k], Q[k], Q[k]] for k in branch])

for lam in (0.0, 0.5, 0.9, 0.95, 1.0):
    A = gae_rows(win, claimed(V_wrong), 1.0, lam)            # (4, 5)
    g = score * A[:, 0]
    mean = (chance * g).sum()
    std = (chance * (g - mean) ** 2).sum().sqrt()
    bias = mean - 0.24 * (Q["good"] - Q["bad"])
    print(f"lambda {lam:.2f}: mean", show(mean), " bias", show(bias),
          " std", show(std))
    assert abs(mean - compute(lam)["gradient"]) < 1e-12      # the explorer
    assert abs(bias - 0.24 * (1 - lam) * (-0.5 - 0.4)) < 1e-12
    assert (mean < 0) == (lam == 0)
# "With a wrong critic λ = 0 has low variance and high bias": true
# "A badly fitted critic quietly poisons every advantage": true

# %% [markdown]
# λ = 0 pushes the better token *down*. "High bias" is the usual word; a wrong sign is what it can
# mean. Quietly, too: here without any noise. At λ = 1 the first token does not see the error; an
# error at the start would cost variance, never bias.
#
# ## The critic is trained too
#
# Its target is $R_t=A_t+V_t$, computed once per batch (where a recipe whitens $A$, mean 0 and std 1
# over all tokens, then before that). Its loss is a squared error, often clipped the same pessimistic
# way as the policy: with $V_\text{old}$ the value at the start of the batch and a width of 0.2,
#
# $$L_V=\tfrac12\max\big\{(V-R)^2,\ (\mathrm{clip}(V,V_\text{old}\pm0.2)-R)^2\big\}$$

# %%
def value_loss(V, R, V_old, width=0.2):
    near = V_old + (V - V_old).clamp(-width, width)
    return torch.maximum((V - R) ** 2, (near - R) ** 2) / 2

V_old, R = torch.full((3,), 0.5), torch.ones(3)
V = torch.tensor([0.6, 0.9, 0.2], requires_grad=True)
value_loss(V, R, V_old).sum().backward()
print("V moved from 0.5 to", show(V.detach()), "with target 1")
print("loss ", show(value_loss(V, R, V_old).detach()))
print("slope", show(V.grad))
assert show(V.grad) == [-0.4, 0, -0.8]

# %% [markdown]
# The same two rules: a value that has moved 0.4 towards its target waits for the next batch; one
# that moved away is pulled back.
#
# Now the whole of PPO on the running group, critic included. Let the critic say 0.5 at every token
# of every answer, which is the mean reward of the group. The critic's loss counts a tenth.

# %%
from rlnb import objective as parts

V = torch.full((4, 6), 0.5) * mask
r = torch.zeros(4, 6)
r[range(4), batch.lengths.long() - 1] = batch.rewards   # on the last token
A_gae = gae_rows(r, V, gamma=1.0, lam=0.95)
policy = -surrogate_clip(rho, A_gae)[mask].mean()
critic = value_loss(V, A_gae + V, V)[mask].mean()
whole = policy + 0.1 * critic

ppo = ZOO["ppo"].replace(terms=parts.value_loss(0.1))
out = ppo(batch.replace(values=V))
print(f"policy {policy.item():.4f}, critic {critic.item():.4f}, "
      f"loss {whole.item():.4f}, rlnb {out.loss.item():.4f}")
assert torch.allclose(whole, out.loss, rtol=0, atol=1e-12)

# %%
for lam in (0.95, 1.0):
    A_lam = gae_rows(r, V, gamma=1.0, lam=lam)
    print(f"lambda {lam}:", *[f"\n  answer {i} {show(A_lam[i][mask[i]])}"
                              for i in range(4)])
group_mean = stand_in[:, None].expand(4, 6)
assert torch.allclose(A_lam[mask], group_mean[mask])         # lam = 1

# %% [markdown]
# At λ = 0.95 the first token of the six-token answer gets $-0.5\cdot0.95^5=-0.3869$. At λ = 1 a
# critic that says the group's mean everywhere gives exactly the ±0.5 used above. That is how page
# 06 gets rid of the critic: a group mean is a critic with one number per prompt.
#
# ## KL in the reward
#
# The clip looks at $\pi_\text{old}$, the policy of this batch. RLHF also wants to stay near a frozen
# **reference** $\pi_\text{ref}$, usually the policy before RL. Ziegler et al. (arXiv 1909.08593) put
# that into the reward of every token, with a coefficient β:
#
# $$r_t\ \leftarrow\ r_t-\beta\,\big(\log\pi_\text{old}-\log\pi_\text{ref}\big)(y_t)$$
#
# "The reward minus β times the KL" is what is maximised *on average*. A single sample can be paid:

# %% tags=["claim:K06"]
pi, ref = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.4, 0.4, 0.2])
k1 = (pi / ref).log()                                        # per sample
KL = (pi * k1).sum()
reward, beta = torch.tensor([1.0, 0.0, 0.5]), 0.1
shaped = (pi * (reward - beta * k1)).sum()
print("log-ratio of each answer", show(k1), " mean", show(KL))
print("E[r - beta k1]", show(shaped), " E[r] - beta KL",
      show((pi * reward).sum() - beta * KL))
assert show(KL) == [0.0253] and k1.min() < 0 < KL
assert torch.isclose(shaped, (pi * reward).sum() - beta * KL)
# "the reward minus β times the KL to the reference": true

# %% [markdown]
# On the running group, answer 0 with β = 0.1, $V=0.5$ and λ = 1:

# %%
k1 = (batch.old_logprobs - batch.ref_logprobs)[0, :3]
shaped = ppo.replace(shape=parts.kl_in_reward(0.1),
                     advantage=gae(gamma=1.0, lam=1.0))
A_kl = shaped.prepare(batch.replace(values=V)).advantages[0, :3]
print("log pi_old - log ref", show(k1))
print("A without KL        ", show(A_lam[0, :3]))
print("A with KL           ", show(A_kl))
later = k1.flip(0).cumsum(0).flip(0)            # from t to the end
assert torch.allclose(A_kl, A_lam[0, :3] - 0.1 * later)

# %% [markdown]
# Each token pays for its own KL and for all the KL that follows it, since what follows depends on
# it. That is what a penalty in the reward does and a penalty in the loss does not (page 06).
#
# ## Two anchors
#
# Clip and reference solve different problems: one looks at the last policy, the other at the first.
# Ten arms, rewards 0 to 1, exact expectations, 60 batches of 4 clipped steps each:

# %%
def many_batches(beta, lr=4.0, epochs=4):
    """60 batches -> KL(old||new) of each, KL(new||ref) after each."""
    rewards, z = torch.linspace(0, 1, 10), torch.zeros(10)
    ref, step_kl, total_kl = z.log_softmax(0), [], []
    for _ in range(60):
        old = z.log_softmax(0)
        p, reward = old.exp(), rewards - beta * (old - ref)
        A = reward - (p * reward).sum()                      # exact critic
        for _ in range(epochs):
            z = z.detach().requires_grad_()
            rho = (z.log_softmax(0) - old).exp()
            J = (p * surrogate_clip(rho, A)).sum()
            z = (z + lr * torch.autograd.grad(J, z)[0]).detach()
        new = z.log_softmax(0)
        step_kl.append((p * (old - new)).sum().item())
        total_kl.append((new.exp() * (new - ref)).sum().item())
    return step_kl, total_kl

# %% tags=["claim:A22"]
runs = {(beta, lr): many_batches(beta, lr)
        for lr in (1.0, 2.0, 4.0) for beta in (0.0, 0.3)}
for (beta, lr), (step_kl, total_kl) in runs.items():
    print(f"lr {lr:.0f}  beta {beta}: "
          f"largest KL of a batch {max(step_kl):.4f}, "
          f"KL to the reference {total_kl[-1]:.4f}")
for lr in (1.0, 2.0, 4.0):
    assert runs[0.3, lr][1][-1] < 0.25 * runs[0.0, lr][1][-1]
    assert max(runs[0.0, lr][0]) < 0.05
print(f"all mass on one arm would be ln 10 = {math.log(10):.4f}")
assert show(runs[0.0, 4.0][1][-1]) == [2.2728]
assert show(runs[0.3, 4.0][1][-1]) == [0.4219]
# "The clip and the KL to the reference solve different": true

# %%
figures.line_figure(
    range(1, 61), {"PPO": runs[0.0, 4.0][1],
                   "PPO, KL 0.3": runs[0.3, 4.0][1]},
    xlabel="batch", ylabel="KL to the reference (nats)", ylim=(0, 2.45),
    size=(900, 300),
    alt="KL to the reference over 60 batches: with the clip only it climbs "
        "to 2.27 nats, with a KL of 0.3 in the reward it stops at 0.42.",
    caption="Small steps add up: no batch moved more than 0.05 nats, and "
            "the clip alone still ends 2.27 nats from the reference; a KL "
            "in the reward holds it at 0.42 (10 arms, exact, learning rate "
            "4).")

# %% [markdown]
# At learning rates 1 and 2 the steps are smaller, and the ends within 0.07 of these.
#
# ## What is in memory
#
# Mixed-precision training with Adam costs 16 bytes a parameter: bf16 weights 2, bf16 gradients 2,
# fp32 master weights 4, Adam's two fp32 moments 4 + 4. A frozen bf16 model costs 2. Activations and
# the KV cache come on top and are not counted here.

# %% tags=["claim:S01"]
size = {"policy": 2 + 2 + 4 + 4 + 4, "critic": 2 + 2 + 4 + 4 + 4,
        "reference": 2, "reward model": 2}
for name, number in size.items():
    print(f"{name:13s} {number:3d} bytes per parameter"
          f"  {number * 7:4d} GB at 7 billion")
total = sum(size.values())
print(f"{'together':13s} {total:3d} bytes per parameter  {total * 7:4d} GB")
print(f"with a bf16 copy in a separate sampler: {total + 2}")
assert total == 36 and total * 7 == 252
# "PPO for language models keeps four models in memory": conditional

# %% [markdown] tags=["cited:H11"]
# "PPO keeps four models in memory" holds when critic and reward model are as large as the policy and
# a reference is kept. A smaller or shared critic, or a rule in place of the reward model, makes it
# less; a separate rollout engine adds a copy. Four models are 2.25 times the 16 bytes, not four
# times.
#
# > PPO in 2017 did not introduce that set-up. Its paper has an actor and a critic (arXiv
# > 1707.06347). The frozen reference and the reward model came with RLHF on language models (Ziegler
# > et al. 2019, arXiv 1909.08593; InstructGPT, 2022, arXiv 2203.02155).
#
# ## Where people go wrong
#
# **Value and slope.** "A ratio of 1.5 is 30 % more likely; the objective counts 1.2; and if it went
# on to 2, the gradient would flatten." The 1.2 is right, as a value. It is 50 %, and the slope has
# been 0 since 1.2.
#
# "At $A=-1$, $\rho=0.1$ the `min` picks −0.8 over −0.1, so the clipped gradient is the stronger one;
# only the good direction is gated." Right as a statement on values. The slope is what trains, and
# both improving directions are gated.
#
# "When the clip is active the gradient of the ratio is zero." That of the *clipped* ratio is.
# $\rho$ itself moves, and the `min` may still choose it.

# %% tags=["claim:A03", "claim:A04", "claim:M08"]
at = [1.19, 1.21, 1.5, 2.0]
value = surrogate_clip(torch.tensor(at), torch.ones(4))
print("A = +1, rho", at)
good = slope(surrogate_clip, at, [1.0] * 4)
print("  value", show(value), " slope", good)
assert good == [1, 0, 0, 0]
assert show(value)[1:] == [1.2, 1.2, 1.2] and 1.5 / 1 - 1 == 0.5

tenth, bad = torch.tensor(0.1), torch.tensor(-1.0)
for J in (surrogate_clip, unclipped):
    print(f"A = -1, rho 0.1, {J.__name__:14s}: value", show(J(tenth, bad)),
          " slope", slope(J, 0.1, -1.0))
assert show(surrogate_clip(tenth, bad)) == [-0.8]
assert slope(surrogate_clip, 0.1, -1.0) == [0]
assert slope(unclipped, 0.1, -1.0) == [-1]

lp = torch.tensor(1.5).log().requires_grad_()                # log rho
d_clip, = torch.autograd.grad(lp.exp().clamp(0.8, 1.2), lp)
d_rho, = torch.autograd.grad(lp.exp(), lp)
print("rho 1.5: d clip(rho)", show(d_clip), " d rho", show(d_rho))
assert d_clip == 0 and abs(d_rho - 1.5) < 1e-12
# "A ratio of 1.5 is 30 % more likely": wrong
# "the clipped gradient is the stronger one": wrong
# "When the clip is active the gradient of the ratio is zero": sloppy

# %% [markdown]
# **How far a reward travels.** "At λ = 1 GAE adds all the residuals equally and gives the reward
# minus V." Equal weights need γ = 1 as well.
#
# "λ near 0.95 is the sweet spot, and the reward at the end still travels back." With a good critic,
# yes: the critic carries it. Where the critic knows nothing the reward fades by half every 13.5
# tokens. Reward 1 on the last token:

# %% tags=["claim:B07"]
r = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
V_4 = torch.tensor([[0.3, 0.6, 0.2, 0.7]])
for gamma in (1.0, 0.9):
    A_4, delta = gae_rows(r, V_4, gamma, lam=1.0), residuals(r, V_4, gamma)
    print(f"4 tokens, lambda 1, gamma {gamma}: A + V =", show(A_4 + V_4),
          f"sum of residuals {delta.sum():.4f}, A of the first "
          f"{A_4[0, 0]:.4f}")
    assert torch.isclose(delta.sum(), A_4[0, 0]) == (gamma == 1)
    to_go = gamma ** torch.arange(3.0, -1, -1)       # R, discounted
    assert torch.allclose(A_4 + V_4, to_go)
    assert torch.isclose((gamma ** torch.arange(4.0) * delta).sum(),
                         A_4[0, 0])                  # unequal weights
# "At λ = 1 GAE adds all the residuals equally": conditional

# %% [markdown]
# A thousand tokens, first with a critic that knows nothing, then with one that knows the end as soon
# as it has seen the first token:

# %% tags=["claim:B09"]
r, nothing = torch.zeros(1, 1000), torch.zeros(1, 1000)
r[0, -1] = 1.0
knows = torch.ones(1, 1000)                          # 1 from token 1 on
knows[0, 0] = 0.0
print("of the last token's 1 the first sees, V = 0 and with a good critic")
for lam, share in ((0.95, "5.6e-23"), (0.99, "4.4e-05"), (1.0, "1.0e+00")):
    alone, carried = (gae_rows(r, critic, 1.0, lam)[0, 0].item()
                      for critic in (nothing, knows))
    print(f"lambda {lam}: {alone:.1e} and {carried:.1e}")
    assert f"{alone:.1e}" == share and math.isclose(alone, lam**999)
    assert abs(carried - 1) < 1e-12
hundred = gae_rows(r[:, -101:], nothing[:, :101], 1.0, 0.95)[0]
half_life = 100 * math.log(0.5) / hundred[0].log().item()
print(f"half-life at 0.95: {half_life:.2f} tokens")
assert round(half_life, 2) == 13.51
# "λ near 0.95 is the practical sweet spot": conditional

# %% [markdown]
# Long-answer recipes therefore train the critic with λ = 1 (VAPO, arXiv 2504.05118). TRL's PPO
# defaults to 0.95, verl and OpenRLHF to 1.
#
# **What δ points at.** "A positive residual means the token was better than expected; δ marks the
# step that mattered." With the exact values, yes. With a wrong critic it marks the critic's errors:

# %% tags=["claim:B10"]
given = chance.view(2, 2) / chance.view(2, 2).sum(1, True)
for name, V in (("exact", Q), ("wrong", V_wrong)):
    delta = residuals(win, claimed(V), 1.0)                  # (4, 5)
    mean = (given[..., None] * delta.view(2, 2, 5)).sum(1)   # (2, 5)
    print(f"{name} critic, mean delta: good", show(mean[0]),
          " bad", show(mean[1]))
    assert torch.allclose(delta.sum(1), win.sum(1) - 0.48)
    at_start = 0.4 * mean[0, 0] + 0.6 * mean[1, 0]
    all_zero = mean[:, 1:].abs().max() < 1e-12 and abs(at_start) < 1e-12
    assert all_zero == (V is Q)
    assert (mean[0, 0] > 0) == (V is Q)
# "δ finds the step that mattered": conditional

# %% [markdown]
# With exact values δ of the first token is its advantage, +0.42 or −0.28, and from then on δ averages
# to 0. The wrong critic gives −0.08 and +0.12, and the correction goes to token 2, which did nothing.
# Whatever the critic, all δ of an answer add up to the return minus $V(\text{start})$: it can
# misplace credit, not invent it.
#
# **Two sizes.** "PPO also keeps a fifth model, the old policy." It keeps one stored number per
# sampled token. Where a second copy of the weights does exist it is the sampler's, or a lagged one
# kept to recompute these numbers.
#
# "PPO needs a value head the size of the policy." The value *model* may be that large, when it has a
# trunk of its own. Its head is one linear layer.

# %% tags=["claim:S02", "claim:M13"]
tokens = 8192 * 1024
stored, weights = tokens * 4, 7e9 * 2      # float32 numbers, bf16 weights
print(f"{tokens / 1e6:.1f} M tokens: {stored / 1e6:.1f} MB of log-probs, "
      f"{weights / 1e9:.0f} GB of weights, factor {weights / stored:.0f}")
print("old_logprobs of a Batch:", tuple(batch.old_logprobs.shape),
      "requires grad:", batch.old_logprobs.requires_grad)
assert round(stored / 1e6, 1) == 33.6 and round(weights / stored) == 417
assert batch.old_logprobs.shape == batch.logprobs.shape

head = sum(p.numel() for p in torch.nn.Linear(4096, 1).parameters())
print(f"value head at width 4096: {head} parameters, "
      f"{head / 7e9:.1e} of a 7 B model")
assert head == 4097
# "There is a fifth model, the old policy": wrong
# "PPO needs a value head as big as the policy": sloppy

# %% [markdown]
# ## Exercises
#
# **05.1 Derive** · 8 minutes · ●●○. Show that the gradient of $\min(\rho A,\mathrm{clip}(\rho)A)$ is
# $\rho A\,\nabla\log\pi_\theta$ times an indicator, and write the indicator down for each sign of
# $A$. What is left of it on the first step?
#
# <details><summary>hint</summary>
#
# Three regions of ρ, two signs. In each ask which of the two terms is smaller, and whether that
# term contains θ.
# </details>
#
# **05.2 Predict, then run** · 3 minutes · ●○○. On the running group 8 of 16 tokens are outside the
# band and 4 are cut. Negate every advantage. How many are cut now? Say a number, then run
# `ZOO["ppo"](batch.replace(advantages=-stand_in))` and read `clip_ratio/region_mean`, a fraction of
# 16, in its `.metrics`.
#
# <details><summary>hint</summary>
#
# Every token outside the band sits in one of four corners. What does negating $A$ do to a dead one?
# </details>
#
# **05.3 Predict** · 3 minutes · ●○○. A 200-token answer, reward 1 at the end, a critic that says
# 0 everywhere, λ = 0.95. How many tokens get an advantage above one half?
#
# <details><summary>hint</summary>
#
# The half-life is 13.5 tokens, and the last token is at distance 0.
# </details>
#
# **05.4 Implement** · 8 minutes · ●●○. The surrogate again, this time without `minimum`: use your
# indicator of 05.1 and `torch.where`. `ratio` and `advantage` have the same shape; return the value
# per element, to be maximised. Value and gradient are checked.
#
# <details><summary>hint</summary>
#
# Where a token is cut, the value is a constant times $A$: which constant, for which sign?
# </details>

# %% tags=["exercise"]
def my_surrogate_clip(ratio, advantage, epsilon):
    return ...

check.surrogate_clip(my_surrogate_clip)

# %% [markdown]
# **05.5 Implement** · 5 minutes · ●●○. The dual clip, per element. At $A=-1$, $\rho=5$, $c=3$ it is
# −3 with slope 0.
#
# <details><summary>hint</summary>
#
# `print(check.dual_clip.hint)`
# </details>

# %% tags=["exercise"]
def my_dual_clip(ratio, advantage, epsilon, c):
    return ...

check.dual_clip(my_dual_clip)

# %% [markdown]
# **05.6 Implement** · 8 minutes · ●●○. GAE for one answer: `rewards` and `values` of shape (T,), both
# given, value 0 after the last token. From memory; then compare with the cell above.
#
# <details><summary>hint</summary>
#
# All the residuals first, then one walk backwards. `print(check.gae.hint)` says it in full.
# </details>

# %% tags=["exercise"]
def my_gae(rewards, values, gamma, lam):
    return ...

check.gae(my_gae)

# %% [markdown]
# **05.7 Derive** · 6 minutes · ●●○. From the sum, derive $A_t=\delta_t+\gamma\lambda A_{t+1}$. Then
# show that at λ = 1 all values but $V_t$ cancel. Which line of the proof needs $V_{T+1}=0$?
#
# <details><summary>hint</summary>
#
# Take the $l=0$ term out of the sum and rename $l$. For the second part write two neighbouring
# residuals under each other.
# </details>
#
# **05.8 Find the silent bug** · 10 minutes · ●●●. A colleague reasons that for bad tokens the
# pessimist takes the larger term. It trains, and the reward curve looks fine:

# %% tags=["exercise"]
def colleague(rho, A, epsilon=0.2):
    raw, clipped = rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A
    return torch.where(A >= 0, torch.minimum(raw, clipped),
                       torch.maximum(raw, clipped))

def reward_curve(objective, lr=2.0, epochs=4):
    rewards, z, curve = torch.linspace(0, 1, 10), torch.zeros(10), []
    for _ in range(40):
        old = z.log_softmax(0)
        p, A = old.exp(), rewards - (old.exp() * rewards).sum()
        for _ in range(epochs):
            z = z.detach().requires_grad_()
            rho = (z.log_softmax(0) - old).exp()
            J = (p * objective(rho, A)).sum()
            z = (z + lr * torch.autograd.grad(J, z)[0]).detach()
        curve.append((z.softmax(0) * rewards).sum().item())
    return curve[::10] + curve[-1:]          # batches 1, 11, 21, 31, 40

print("colleague", [round(x, 4) for x in reward_curve(colleague)])
print("PPO      ", [round(x, 4) for x in reward_curve(surrogate_clip)])

# %% [markdown]
# Write the one assertion that this function fails and `surrogate_clip` passes.
#
# <details><summary>hint</summary>
#
# A reward curve averages over tokens that are fine. Ask for four numbers instead of one.
# </details>
#
# All solved, with outputs, in `solutions/05_ppo.ipynb`.
#
# ## In the interview
#
# A minute each. Say the answer aloud before unfolding.
#
# **Derive the clipped objective. Why the `min`?**
# <details><summary>answer</summary>
#
# Samples come from the old policy, so the policy gradient's surrogate is ρA. Maximising it without
# limit moves the policy far from where the samples speak for it. Clip ρ to [1 − ε, 1 + ε] and the
# incentive ends at the edge. But the clip alone is flat in all four outside corners, so a token that
# moved the wrong way is never pulled back. The min of ρA and clip(ρ)A keeps those: flat for A > 0
# above and A < 0 below, alive in the two other corners. It never exceeds ρA, so it is a pessimistic
# bound on the surrogate, not on the return.
# </details>
#
# **Which tokens have zero gradient?**
# <details><summary>answer</summary>
#
# A > 0 with ρ > 1 + ε, and A < 0 with ρ < 1 − ε: tokens that have already moved as they should. With
# dual clip also A < 0 with ρ > c. And all tokens with A = 0. On the first step, with ρ = 1, none is
# clipped, and the gradient is REINFORCE's.
# </details>
#
# **Does the clip bound the update?**
# <details><summary>answer</summary>
#
# No. The first step has the unclipped gradient, and one large step can overshoot any band: at
# learning rate 3 our four-arm toy goes to a ratio of 3.6. As a brake over many steps on one batch it
# works: 1.23 instead of 3.34. What bounds a step is the learning rate, gradient-norm clipping and
# the number of epochs.
# </details>
#
# **Why must a clip fraction know the sign of $A$?**
# <details><summary>answer</summary>
#
# Half of the corners outside the band are alive. Counting |ρ − 1| > ε counts tokens that still get
# their full gradient; on the running group it says 8 where 4 are cut. Log the low and the high side
# apart: high is good tokens that rose, low is bad tokens that fell.
# </details>
#
# **What is the dual clip for?**
# <details><summary>answer</summary>
#
# The corner A < 0, ρ ≫ 1, where the min keeps ρA without a floor. A rare bad token whose ratio is
# 100 weighs as much as a hundred others. The dual clip takes the max with cA where A < 0, c about 3:
# beyond ρ = c the token has no gradient. The price: the worst mistakes are no longer corrected on
# this batch.
# </details>
#
# **What does λ in GAE trade?**
# <details><summary>answer</summary>
#
# Trust in the critic against noise. A is the (γλ)-weighted sum of TD residuals. λ = 0 is one
# residual: little variance, and the critic's error goes into the gradient in full; it can flip the
# sign. λ = 1 is the discounted return minus V: unbiased for any critic, noisy. The bias is
# proportional to (1 − λ) times the critic's error in our toy. With a reward at the end only and an
# untrained critic, 0.95 halves the signal every 13.5 tokens; long-answer recipes go to 1.
# </details>
#
# **Which models are in memory, and what do they cost?**
# <details><summary>answer</summary>
#
# Policy and critic trained, 16 bytes a parameter each (bf16 weights and gradients, fp32 master
# weights, two Adam moments). Reference and reward model frozen, 2 each. 36 bytes, 252 GB at 7 B
# without activations. The old policy is not a model: one log-prob per sampled token, 34 MB for 8.4 M
# tokens. A separate sampler adds 2 bytes. Verifiable rewards drop the reward model, β = 0 drops the
# reference, a group baseline drops the critic.
# </details>
#
# **KL in the reward or in the loss?**
# <details><summary>answer</summary>
#
# In the reward (PPO for RLHF, RLOO) the per-token log-ratio is subtracted before advantages are
# computed: its gradient is that of the sequence KL, and every token answers for the KL that follows
# it. In the loss (GRPO) it is differentiated token by token beside the policy term, and which KL the
# gradient follows depends on the estimator. Page 06 measures that.
# </details>
#
# ## Recap
#
# The running group under the methods so far. First the advantage of each answer, then the push
# $-\partial L/\partial\log\pi$ on each of its tokens, per method. `reinforce` and `rloo` do not know
# $\pi_\text{old}$. For `ppo` the group's mean stands in for a critic, so ±0.5 as above.

# %%
def row(name, batch):
    told = ZOO[name].explain(batch)
    print(name)
    for i, length in enumerate(batch.lengths.int().tolist()):
        push = -told.gradient[i, :length]
        print(f"  A {told.advantages[i, 0].item() + 0.0:+.4f}  push",
              *[f"{x + 0.0:+.4f}" for x in push.tolist()])
    return told

row("reinforce", running_group())
row("rloo", running_group())
told = row("ppo", running_group().replace(advantages=stand_in))
assert torch.equal(told.gradient == 0, cut | ~mask)

# %% [markdown]
# REINFORCE and RLOO divide by 4 answers, PPO by 16 tokens. Four zeros in PPO's rows: the cut tokens. REINFORCE's zeros are whole answers, for want of a
# baseline. And the token of answer 1 that went from 0.02 to 0.12 has no push at all, while the bad
# one of answer 2 at 3.5 times its old probability has the largest (a dual clip with $c=3$ would cut
# it).
#
# 1. PPO reuses a batch by weighing each token with $\rho=\pi_\theta/\pi_\text{old}$.
# 2. The clip ends the incentive at $1\pm\epsilon$; the `min` keeps mistakes correctable. Slopes in the
#    corners: 0, 1, −1, 0.
# 3. It is a brake and not a limit, pessimistic about the surrogate and not about the return.
# 4. GAE spreads the reward over tokens through a critic; a wrong critic biases the gradient, in full
#    at λ = 0 and not at all at λ = 1.
# 5. The reference is another anchor, in the reward. With it and a reward model: 36 bytes a parameter.
#
# **Next: 06 · GRPO.** The critic is 16 of those 36 bytes. A group of answers to the same prompt can
# stand in for it.
