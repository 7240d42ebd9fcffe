# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 · DAPO: four repairs
#
# **Settles:** what a higher upper edge of the clip buys and what it does not, what it costs to train on mixed groups only, which of two
# divisors "token-level loss" means, and what a penalty on length does to a group that is all wrong.
#
# 35 minutes · after [06](06_grpo.ipynb) and pages 07 and 08 · DAPO, Yu et al. 2025
# ([2503.14476](https://arxiv.org/abs/2503.14476)); ScaleRL, Khatri et al. 2025
# ([2510.13786](https://arxiv.org/abs/2510.13786)).

# %% [markdown]
# > **[05](05_ppo.ipynb) in two lines.** $\rho=\pi_\theta/\pi_\text{old}$ says how far a token has moved since its answer was sampled. PPO's clip
# > ends a token's gradient once it has moved far enough the right way: above $1+\epsilon$ for $A>0$, below $1-\epsilon$ for $A\lt0$.
# >
# > **07 and 08 in two lines.** A group whose answers are all right or all wrong has no gradient. Dividing each answer by its own length makes a
# > token of a long answer weigh less; a divisor that many answers share does not.

# %%
import torch
from rlnb import ZOO, check
from rlnb.toys import running_batch, running_group
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## Two lines and two habits
#
# DAPO is said to be four separate fixes, minus the KL. Two of the four are in the loss: a higher upper edge (*clip-higher*) and one mean over tokens.
# The other two are outside it: *dynamic sampling* chooses groups, the *overlong penalty* changes rewards.

# %% tags=["claim:Z20"]
from rlnb.objective import clip, difference, overlong, token_mean

grpo, dapo = ZOO["grpo"], ZOO["dapo"]
print(difference(grpo, dapo))
with_penalty = dapo.replace(shape=overlong(20480, cache=4096))
print(difference(dapo, with_penalty))
by_hand = grpo.replace(surrogate=clip(0.2, high=0.28),
                       weights=token_mean, terms=())
assert by_hand == dapo and len(difference(grpo, dapo)) == 3
assert dapo.advantage == grpo.advantage and dapo.terms == ()

# %% [markdown] tags=["cited:H02"]
# Each can be switched alone. What did *not* change: the advantage is still GRPO's z-score, std included. As published
# ([2503.14476](https://arxiv.org/abs/2503.14476), section 4.1) the band ends at $\epsilon_\text{low}=0.2$ below and $\epsilon_\text{high}=0.28$ above.

# %% [markdown] tags=["cited:H01"]
# The result that made it known: 50 points on AIME 2024 from the Qwen2.5-32B base, "in half the steps of R1-Zero". The comparison in the paper
# ([2503.14476](https://arxiv.org/abs/2503.14476), abstract) is with *DeepSeek-R1-Zero-Qwen-32B*, 47 points, the same 32B base; it is not R1-Zero itself.
#
# ## Clip-higher: the edge of a rare token
#
# A token with $A>0$ stops at $\rho=1+\epsilon_\text{high}$. One at 0.01 goes to 0.0120 under 0.2 and to 0.0128 under 0.28; one at 0.9 cannot even reach
# 1.2, since $1/0.9=1.11$. Then the next batch starts from there (05).
#
# Try three things, and guess first. Pull *updates per batch* to 1. Put it at 4: which edge is reached? Then ε high to 0.50, from 0.0001 to 0.9.

# %% tags=["explorer"]
from rlnb.classroom import explorers

explorers.rare_token_explorer()

# %% [markdown]
# The default and the three tries, as numbers:

# %%
from rlnb.classroom.explorers.rare_token import compute

print("batches to the target:             0.20     as set    no clip")
tries = {"8 updates, 0.01 to 0.5": {}, "1 update": {"updates": 1},
         "4 updates": {"updates": 4},
         "0.0001 to 0.9, ε high 0.50":
             {"p0": 0.0001, "target": 0.9, "epsilon_high": 0.5}}
for name, setting in tries.items():
    rules = compute(**setting)["rules"].values()
    print(f"{name:28s}", *(f"{r.batches:4d} {'held' if r.held else '    '}"
                           for r in rules))
first = compute()["rules"]
assert [0.01 * r.ratio for r in first.values()][:2] == [0.012, 0.0128]
assert [r.batches for r in first.values()][:2] == [22, 16]
ninety = compute(target=0.9)["rules"].values()
assert [r.batches for r in ninety][:2] == [25, 19]

# %% [markdown]
# *Held* means that the edge set the pace. With one update a batch the ratio is 1 when the gradient is taken, nobody is held, and all three rules are the
# same method. At four updates of 5 % the symmetric edge is reached and 1.28 is not. To 0.9 instead of 0.5 it takes 25 and 19 batches.
#
# Where both edges hold, the share saved is $1-\log1.2/\log1.28=26\,\%$, from any start to any target. That is all the change *can* give.
#
# ## With a real optimizer
#
# The explorer pushes one token by hand. Now PPO's clip, a softmax, and an optimizer: four arms, of which the rare one (0.01) pays 1 and the
# usual one (0.97) pays ½. Every arm is counted with its probability, as in a batch without end, so no seed is involved. The four rows
# of `theta` are four runs side by side, one per upper edge.

# %%
HIGH = torch.tensor([0.2, 0.28, 0.5, torch.inf])[:, None]     # four runs
START, RARE_BEST = (0.01, 0.97, 0.01, 0.01), (1.0, 0.5, 0.0, 0.0)


def train(optimizer, lr, pay=RARE_BEST, batches=40, updates=8):
    theta = torch.tensor(START).log().repeat(4, 1).requires_grad_()
    pay, opt, trace = torch.tensor(pay), optimizer([theta], lr=lr), []
    for _ in range(batches + 1):
        old = theta.detach().log_softmax(1)            # (4 runs, 4 arms)
        p = old.exp()
        A = pay - (p * pay).sum(1, keepdim=True)
        A = A / (p * A**2).sum(1, keepdim=True).sqrt()        # z-score
        cut = torch.zeros(4)
        for _ in range(updates):
            rho = (theta.log_softmax(1) - old).exp()
            cut += ((rho > 1 + HIGH) & (A > 0))[:, 0]  # the rare arm
            clipped = torch.minimum(rho.clamp(min=0.8), 1 + HIGH)
            loss = -(p * torch.minimum(rho * A, clipped * A)).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
        trace.append((p[:, 0], -(p * old).sum(1), cut))
    return [torch.stack(x, 1) for x in zip(*trace)]    # p, entropy, cut

# %% [markdown]
# The common statement: a symmetric clip holds rare useful tokens down, and a higher edge lets them rise. Often with the remark that this needs
# Adam. So: both optimizers, at three speeds each. *Cut* counts the updates in which the clip silenced the rare arm while it
# was still below 0.05.

# %% tags=["claim:A17"]
print("                 batches to 0.5              cut below 0.05")
print("ε high       0.20  0.28  0.50  none    0.20  0.28  0.50  none")
runs, speed = {}, {}
for name, lr, batches in (
        ("Adam", 0.005, 50), ("Adam", 0.02, 40), ("Adam", 0.05, 40),
        ("SGD", 0.02, 125), ("SGD", 0.05, 55), ("SGD", 0.2, 40)):
    p, entropy, cut = runs[name, lr] = train(
        getattr(torch.optim, name), lr, batches=batches)
    speed[name, lr] = (p > 0.5).int().argmax(1).tolist()
    held = (cut * (p < 0.05)).sum(1).int().tolist()
    print(f"{name:4s} {lr:<6.3f}", *(f"{n:5d}" for n in speed[name, lr]),
          "  ", *(f"{n:5d}" for n in held))
assert speed["Adam", 0.05] == [9, 8, 7, 6]
assert speed["Adam", 0.02] == [15, 14, 13, 13]
assert speed["SGD", 0.2] == [19, 17, 14, 12]
assert len(set(speed["Adam", 0.005])) == len(set(speed["SGD", 0.02])) == 1

# %% [markdown]
# It is true under a condition, and the condition is not the optimizer. It is the one of the explorer: would the ratio pass 1.2 *within one batch*? With short
# steps the clip never meets the rare arm, under Adam or SGD, and all four runs agree to the batch. With long steps it does, under either. What Adam changes is *when*: it
# moves a rare token as fast as a likely one from the first update, while a softmax under SGD moves a token in proportion to its own
# probability.
#
# Gains here: 15 to 14 or 9 to 8 batches with Adam, 19 to 17 with SGD. Less than the explorer's quarter, since the edge binds only part of the way. With one
# update per batch (TRL's default) the gain is zero.
#
# ## Entropy falls without any clip
#
# *Entropy collapse*: the policy becomes so sure that all its answers are alike, groups stop being mixed, learning ends. A common account: the symmetric clip
# causes it, clip-higher prevents it. First without sampling and without any clip: ten arms paying 0 to 1, the exact gradient of the expected reward.

# %%
def exact_ascent(steps, lr=2.0, arms=10):
    pay, theta, entropy = torch.linspace(0, 1, arms), torch.zeros(arms), []
    for _ in range(steps + 1):
        p = theta.softmax(0)
        entropy.append(-(p * p.log()).sum().item())
        theta = theta + lr * p * (pay - (p * pay).sum())
    return entropy


without_clip = exact_ascent(3000)
for step in (0, 10, 100, 1000, 3000):
    print(f"step {step:4d}: entropy {without_clip[step]:.4f}")
assert without_clip[-1] < 0.01 < 2.3 < without_clip[0]

# %% [markdown]
# From $\ln10=2.3026$ to 0.0046, and no clip in sight. Where one answer pays most, the policy that earns most says only that one: this is what was
# asked for. Now the four runs of Adam at 0.05 from above, looked at after 5 batches, after 10, and at the end; and the same with the usual arm as the best one.

# %% tags=["claim:A18"]
usual_best = train(torch.optim.Adam, 0.05, pay=(0.5, 1.0, 0.0, 0.0))
seen = {"rare arm best": runs["Adam", 0.05][1],
        "usual arm best": usual_best[1]}
print("entropy, ε high               0.20    0.28    0.50    none")
for name, entropy in seen.items():
    for batch in (0, 5, 10, 40):
        row = " ".join(f"{x:7.4f}" for x in entropy[:, batch].tolist())
        print(f"{name:14s} batch {batch:2d}  {row}")
rare, usual = seen.values()
assert (rare[:, 5].diff() > 0).all()         # the wider, the more ...
assert (rare[:, 10].diff() < 0).all()        # ... and the less
assert rare[:, 40].max() < 0.003 and rare[:, 40].std() < 1e-3
assert (usual == usual[:1]).all() and usual_best[2].sum() == 0
assert without_clip[-1] < 0.01               # and with no clip at all

# %%
from rlnb.classroom.figures import line_figure

line_figure(
    range(25), {"ε high 0.20": rare[0, :25], "no upper edge": rare[3, :25],
                "ε high 0.28": rare[1, :25]},
    xlabel="batches", ylabel="entropy (nats)", ylim=(-0.03, 0.8),
    alt="Entropy over 24 batches for three upper edges. Each curve rises "
        "from 0.17 to about 0.71 while the rare arm overtakes the usual "
        "one, and falls to almost 0. Without an edge the peak comes at "
        "batch 6, with 0.28 and 0.20 about batch 8, 0.20 being the last "
        "to come down.",
    caption="The edge is a clock: all three climb the same hill, as the "
            "rare arm passes the usual one, and come down on the far side.")

# %% [markdown]
# After 5 batches the widest band has the most entropy, 0.70 against 0.29. After 10 it has the least, 0.18 against 0.51. Both are the same journey at another speed, and both
# end at 0.002. So a plot in which clip-higher "keeps entropy up" may be true at the step where it stops. Where the usual answer is the right one, nothing
# is ever clipped above ($1/0.97\lt1.2$) and the four runs are equal to the last bit.
#
# This is a toy with one prompt and no noise. It shows that the clip is not needed for the collapse and that the edge need not stop it. It does not show
# that DAPO's authors saw nothing: in their figure 2 entropy stays higher with 0.28.
#
# ## Dynamic sampling: what a mixed group costs
#
# DAPO trains on groups with at least one right and at least one wrong answer. Those that fail are thrown away and other prompts drawn until the batch is full.
# A prompt that is solved with probability $p$ gives a mixed group with
#
# $$P=1-p^G-(1-p)^G,\qquad \text{groups generated per group kept}=\sum_{n\ge1} n\,P(1-P)^{n-1}=\frac1P$$

# %% [markdown]
# Merely dropping the silent groups leaves a smaller batch; drawing replacements keeps it full. So it is said, and so it is; the bill is in the last two columns.

# %% tags=["claim:G29"]
def mixed(p, G):
    return 1 - p**G - (1 - p)**G


G = 16
print("    p   silent   of 512 groups left   drawn per group  answers")
for p in (0.01, 0.1, 0.5, 0.9, 0.99):
    P = mixed(p, G)
    tries = sum(n * P * (1 - P)**(n - 1) for n in range(1, 2000))
    assert abs(tries - 1 / P) < 1e-6
    print(f"{p:5.2f}  {1 - P:.5f}          {512 * P:5.1f}            "
          f"{1 / P:5.2f}        {G / P:6.1f}")
silent = [1 - mixed(p, G) for p in (0.01, 0.5, 0.99)]
assert [round(x, 5) for x in silent] == [0.85146, 0.00003, 0.85146]
assert round(1 / mixed(0.01, G), 1) == 6.7

# %% [markdown]
# At $p=0.01$ one kept group costs 6.7 groups, 108 answers. A bigger $G$ hardly helps with that bill:

# %%
print("answers generated per group kept, p = 0.01")
for size in (4, 8, 16, 32, 64):
    print(f"G = {size:2d}: {1 / mixed(0.01, size):5.1f} groups, "
          f"{size / mixed(0.01, size):6.1f} answers")
    assert 100 <= size / mixed(0.01, size) < 140

# %% [markdown]
# About $1/p=100$ answers, whatever $G$: somebody has to wait for the one success (exercise 09.1).
#
# **Against filtering and retirement.** A pool holds prompts of seven difficulties, equally many of each, two of them hopeless ($p=0$) and solved ($p=1$). *Filtering* trains on the
# mixed groups that happen to come. *Retirement* takes prompts that stay solved, or never succeed, out of the pool: they are not even generated.

# %%
pool = torch.tensor([0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0])
retired = pool[(pool > 0) & (pool < 1)]
print("512 groups a step            generated    live   generated per live")
for name, prompts, refill in (
        ("keep all, or filter", pool, False),
        ("refill (dynamic sampling)", pool, True),
        ("retire", retired, False), ("retire and refill", retired, True)):
    P = mixed(prompts, G).mean()
    generated = 512 / P if refill else torch.tensor(512.0)
    live = generated * P                               # mixed groups
    print(f"{name:28s} {generated:8.0f} {live:8.0f}   "
          f"{generated / live:10.2f}")
    assert generated / live > (2 if prompts is pool else 1.7)
share = mixed(pool, G) / mixed(pool, G).sum()
print("share of the batch by p: ", *(f"{x:.3f}" for x in share))
assert abs(share.sum() - 1) < 1e-12 and share[3] > 6 * share[1]

# %% [markdown]
# *Keeping all* and *filtering* train on the same 214 live groups: a silent group has no gradient, and leaving it out only changes the divisor (07). *Refilling*
# has 512 live groups for 2.4 times the generation: a larger batch at the old price per live group. *Retirement* alone lowers that price, from 2.39 groups to
# 1.71, and it alone has a memory: a retired prompt that is unlearned goes unnoticed unless somebody asks again.
#
# The batch is no longer a sample of the pool. Prompts enter in proportion to $P$: at $p=0.5$ almost seven times as often as at 0.01.
#
# Two practical points. If every prompt is hopeless the loop never ends, so libraries cap the number of rounds (verl: `max_num_gen_batches`).
# And the reward curve changes its meaning:

# %%
print("   p   mean reward of all groups   of the kept, G = 8")
for p in (0.01, 0.1, 0.5, 0.9, 0.95):
    kept = (p - p**8) / mixed(p, 8)       # E[mean reward; mixed] / P
    print(f"{p:5.2f}          {p:.4f}                  {kept:.4f}")
assert round((0.95 - 0.95**8) / mixed(0.95, 8), 4) == 0.8514

# %% [markdown]
# The kept groups are pulled to the middle. Logged after the filter, a policy at 0.95 reads 0.85 and one at 0.01 reads 0.13. Log the pass rate before.
#
# ## Token-level loss, twice
#
# GRPO weighs a token by $1/T_i$ of its own answer. DAPO gives all tokens that share a divisor the same weight. *Which* tokens share it is where the
# paper and the popular code part. As printed, the divisor is inside the expectation over prompts:
#
# $$\text{printed: }\ \frac1P\sum_{p=1}^{P}\frac{1}{\sum_{i\in p}T_i}\sum_{i\in p}\sum_t(\cdot)\qquad\qquad
# \text{TRL, verl: }\ \frac{1}{\sum_{j}T_j}\sum_{j}\sum_t(\cdot)$$
#
# with $P$ prompts. The first is the *prompt mean*, the second the *token mean*. The whole loss, both ways:

# %%
def dapo_loss(logprobs, old_logprobs, mask, rewards, num_generations,
              low=0.2, high=0.28, printed=False, eps=1e-6):
    mask = mask.bool()                                 # (B, T)
    lp, old = (torch.where(mask, x, 0.0) for x in (logprobs, old_logprobs))
    r = rewards.view(-1, num_generations)              # (P, G)
    A = r - r.mean(1, keepdim=True)
    A = A / (r.std(1, keepdim=True, correction=0) + eps)
    A = A.view(-1, 1)                                  # (B, 1)

    rho = (lp - old).exp()                             # (B, T)
    clipped = rho.clamp(1 - low, 1 + high)             # clip-higher
    worth = torch.minimum(rho * A, clipped * A)
    worth = torch.where(mask, worth, 0.0)
    if not printed:
        return -worth.sum() / mask.sum()               # token mean
    rows = num_generations * mask.shape[1]             # numbers per prompt
    total = worth.view(-1, rows).sum(1)
    return -(total / mask.view(-1, rows).sum(1)).mean()       # prompt mean

# %%
from rlnb.objective import prompt_mean

b = running_batch()                                    # 16 and 14 tokens
for printed, theirs in ((False, dapo),
                        (True, dapo.replace(weights=prompt_mean))):
    mine = dapo_loss(b.logprobs, b.old_logprobs, b.completion_mask,
                     b.rewards, 4, printed=printed)
    out = theirs(b)
    c = out.weights[:, 0]
    print("printed" if printed else "code   ", f"loss {mine:.6f}, tokens"
          f" of prompt 0: 1/{1 / c[0]:.0f}, of prompt 1: 1/{1 / c[4]:.0f}")
    assert abs(mine - out.loss) < 1e-12
    g, g_theirs = (torch.autograd.grad(loss, b.logprobs)[0]
                   for loss in (mine, out.loss))
    assert torch.allclose(g, g_theirs, atol=1e-12)

# %% [markdown]
# With 16 and 14 tokens hardly anything. Let one prompt need 100 tokens in all and another 1000: printed, a token of the first weighs $1/200$ and of the second
# $1/2000$, ten times less; in the code both weigh $1/1100$. ScaleRL calls the printed rule "prompt average" and takes it over. When a paper says "token-level
# as in DAPO", ask which. Pressure on the length of answers is page 08.
#
# Off-policy, what does 1.28 change in the running group? One token.

# %%
group = running_group()
narrow = dapo.replace(surrogate=clip(0.2))
gates = [o.explain(group).gate for o in (narrow, dapo)]
other = (gates[0] != gates[1]) & group.completion_mask.bool()
for i, t in other.nonzero().tolist():
    ratio = (group.logprobs - group.old_logprobs)[i, t].exp()
    print(f"answer {i}, token {t}: ratio {ratio:.2f}, gate "
          f"{abs(gates[0][i, t]):.2f} -> {gates[1][i, t]:.2f}")
assert other.nonzero().tolist() == [[0, 1]]
high = (group.logprobs - group.old_logprobs).exp() > 1.28
print("above 1.28 and right, still dead:", high[:2].sum().item())
assert (gates[1][:2][high[:2]] == 0).all()

# %% [markdown]
# ## Overlong answers
#
# Generation stops at $L_\text{max}$ tokens. An answer cut there is graded as wrong, although its reasoning may have been fine. DAPO's *soft overlong punishment* adds to
# the reward, for an answer of $T$ tokens and a cache of $L_c$:
#
# $$R_\text{len}(T)=\begin{cases}0&T\le L_\text{max}-L_c\\[2pt]
# \dfrac{(L_\text{max}-L_c)-T}{L_c}&L_\text{max}-L_c\lt T\le L_\text{max}\\[2pt] -1&T>L_\text{max}\end{cases}$$
#
# "A soft penalty on length" is a fair name: zero, a straight ramp, a floor.

# %% tags=["claim:L14"]
penalty = overlong(20480, cache=4096).penalty          # the paper's numbers
lengths = torch.tensor([12000.0, 16384, 17408, 18432, 20480, 30000])
for T, r in zip(lengths, penalty(lengths)):
    print(f"T = {T:5.0f}: {r:+.2f}")
assert penalty(lengths).tolist() == [0, 0, -0.25, -0.5, -1, -1]
ramp = penalty(torch.arange(16384.0, 20481.0))
assert torch.allclose(ramp.diff(), torch.tensor(-1 / 4096))
assert penalty(torch.arange(16385.0)).abs().max() == 0

# %%
at = torch.arange(14000.0, 22001.0, 10)
line_figure(
    at, {"soft, cache 4096": penalty(at),
         "hard limit": -(at >= 20480.0).double()},
    xlabel="length T (tokens)", ylabel="added to the reward",
    ylim=(-1.1, 0.1), size=(900, 280),
    alt="The penalty against the length. Soft: 0 up to 16384 tokens, then "
        "a straight line to -1 at 20480. Hard: 0 until 20480, then -1.",
    caption="The ramp speaks before the limit: an answer learns that it is "
            "getting long while it can still finish.")

# %% [markdown]
# Now the part that surprises. It is a *reward*, so the group's z-score sees it. The running group with limit 6 and cache 4, lengths 3, 5, 2, 6; then the same
# lengths all wrong; then all wrong with one answer a single token over, in the paper's numbers.

# %%
def advantages(rewards):
    return dapo(running_group().replace(rewards=rewards)).advantages[:, 0]


short = overlong(6, cache=4).penalty(group.lengths)
for name, r in (
        ("right, right, wrong, wrong", group.rewards + short),
        ("all wrong", short),
        ("all wrong, one at 16385", penalty(
            torch.tensor([16000.0, 16385, 15000, 9000])))):
    print(f"{name:27s} rewards", *(f"{x:7.4f}" for x in r),
          "  A", *(f"{x:7.4f}" for x in advantages(r)))
A = advantages(penalty(torch.tensor([16000.0, 16385, 15000, 9000])))
assert (A - torch.tensor([1, -3, 1, 1]) / 3**0.5).abs().max() < 0.02
assert round(A[1].item(), 2) == -1.72

# %% [markdown]
# One token too many is a reward of $-0.0002$. In a group that has nothing else to tell its answers apart it becomes $-1.72$, what the only failure among three successes
# gets ($-\sqrt3$, less ε's share). It is page 07's near-equal rewards again. The penalty is not a cap, it is a reward, and in silent groups it is the only one. Dynamic sampling prevents this *if it looks at right and wrong
# before the penalty is added* (exercise 09.4).
#
# How much may length cost? DAPO's rewards are +1 and −1:

# %%
for right, wrong in ((1.0, -1.0), (1.0, 0.0)):
    longest = right + penalty(torch.tensor(20480.0))
    print(f"rewards {right:+.0f} / {wrong:+.0f}: right at the limit "
          f"{longest:+.1f}, wrong and short {wrong:+.1f}")
    assert (longest > wrong) == (wrong == -1.0)

# %% [markdown]
# With ±1 a right answer always beats a wrong one. With 1 and 0, copied without thinking, the right answer at the limit *ties* with a short wrong one.
#
# The alternative is **overlong filtering**: an answer that was cut gets mask 0 and trains nothing. It still counts in its group's mean and std, and that
# leaves a trace. Answer 3 of the running group is cut off:

# %%
mask = group.completion_mask.clone()
mask[3] = 0
for name, m in (("all four", group.completion_mask), ("3 filtered", mask)):
    out = dapo(group.replace(completion_mask=m, old_logprobs=None))
    push = (out.weights * out.advantages * m).sum(1)   # per answer
    print(f"{name:11s} A", *(f"{x:7.4f}" for x in out.advantages[:, 0]),
          "  weight of a token", f"1/{1 / out.weights[0, 0]:.0f}",
          f"  sum of the pushes {round(push.sum().item(), 4) + 0.0:.4f}")
assert abs(push.sum() - 0.6) < 1e-5

# %% [markdown]
# Unfiltered the pushes cancel, 3 + 5 tokens up against 2 + 6 down. Filtered, 8 tokens go up against 2 down, each with weight $1/10$: $+0.6$. The wrong answers that ran
# into the limit no longer hold the others down. Nothing pushes long answers down either, so filter and penalty are different policies about length.
#
# ## Where people go wrong
#
# **"Train on prompts with pass rate 0.2 to 0.8: that is exactly DAPO's dynamic sampling."** The same idea, another rule. DAPO drops 0 of $G$ and $G$ of $G$ and
# nothing else; it is the loosest band there is.

# %% tags=["claim:G27"]
from math import comb


def kept_by_band(p, G, low, high):
    return sum(comb(G, k) * p**k * (1 - p)**(G - k) for k in range(G + 1)
               if low <= k / G <= high)


print("    p   DAPO's rule   band 0.2 to 0.8 on the group's own rate")
for p in (0.05, 0.2, 0.5, 0.9):
    print(f"{p:5.2f}     {mixed(p, 16):.4f}        "
          f"{kept_by_band(p, 16, 0.2, 0.8):.4f}")
    loosest = kept_by_band(p, 16, 1 / 16, 15 / 16)
    assert abs(loosest - mixed(p, 16)) < 1e-12
assert round(mixed(0.05, 16), 3) == 0.560
assert round(kept_by_band(0.05, 16, 0.2, 0.8), 3) == 0.007

# %% [markdown]
# At $p=0.05$ DAPO keeps 56 % of the groups and the band 0.7 %: eighty times fewer of the hard prompts.
#
# **"Set ε_high to 1.28."** It is a distance from 1. `clip(0.2, high=1.28)` is a band up to 2.28, and it runs without a word. For CISPO, TRL 1.16
# reads the same keyword as the ratio itself, so look twice.

# %%
rho = torch.tensor([1.25, 1.5, 2.0]).log().requires_grad_()
for high in (0.28, 1.28):
    value = clip(0.2, high=high)(None, torch.ones(3), rho)
    slope, = torch.autograd.grad(value.sum(), rho)
    print(f"high={high}: ratios 1.25, 1.5, 2.0 alive?",
          (slope != 0).tolist())
    assert (slope != 0).sum() == (1 if high == 0.28 else 3)

# %% [markdown]
# **"`loss_type="dapo"` runs DAPO."** In TRL it is one of the four: the aggregation. The edge (`epsilon_high`), the penalty (a reward function) and the masking of
# cut answers are switches of their own, and dynamic sampling is not there. The other way round, TRL's default `loss_type` *is* `"dapo"`, so a run that is called GRPO may have it.

# %%
from rlnb.objective import Objective

by_word = Objective.from_trl(loss_type="dapo", beta=0.0)
print(difference(dapo.canonical(), by_word.canonical()))
assert by_word.canonical() == narrow.canonical()

# %% [markdown]
# ## Exercises
#
# **09.1 Derive** · 10 minutes · ●●○. (a) Show that refilling generates $1/P$ groups for each group kept. (b) Show that for small $p$ this is about $1/p$
# *answers*, whatever $G$. (c) What does it cost at $p=\tfrac12$?
#
# <details><summary>hint</summary>
#
# (a) Whether the $n$-th group is the first mixed one: $P(1-P)^{n-1}$. (b) For small $p$, $1-(1-p)^G\approx Gp$.
# </details>
#
# <details><summary>answer</summary>
#
# (a) $\sum_n nP(1-P)^{n-1}=P\cdot\frac1{P^2}=\frac1P$. (b) $P\approx Gp$ while $Gp\ll1$, so $\frac GP\approx\frac1p$: 103 answers at $G=8$, 108 at 16, for $p=0.01$. Larger groups save
# nothing on the wait; they use the one success better or worse. (c) $G/(1-2^{1-G})$: 16.0005 at $G=16$, nothing is wasted.
# </details>
#
# **09.2 Predict, then run** · 5 minutes · ●●○. One optimizer step per batch, no KL. How many numbers of the gradient change when ε_high goes from 0.2 to 0.28?
# And when the same answers are used for a second step, can a token that was *punished* ($A\lt0$) be affected?
#
# <details><summary>hint</summary>
#
# What is $\rho$ at the first step? And which edge of the band ends the gradient for $A\lt0$?
# </details>

# %% tags=["exercise"]
fresh = running_batch().replace(old_logprobs=None)     # first step
changed = ...   # compare the gradients of ZOO["dapo"] and `narrow`

# %% [markdown]
# **09.3 Implement** · 6 minutes · ●○○. The overlong penalty, for a whole tensor of lengths at once. It is added to the reward.
#
# <details><summary>hint</summary>
#
# Which share of the cache is used up? A share lies between 0 and 1, whatever the length.
# </details>

# %% tags=["exercise"]
def my_overlong_penalty(lengths, max_length, cache):
    """lengths (B,), two whole numbers -> (B,)"""
    return ...


check.overlong_penalty(my_overlong_penalty)

# %% [markdown]
# **09.4 Find the silent bug** · 8 minutes · ●●○. Overlong penalty and dynamic sampling in one function. It runs, the share of groups kept is pleasantly high, and answers get shorter.
# Write a test that fails here and passes on the right code: it gets the function and asserts something.

# %% tags=["exercise"]
print(check.silent_bug_09.source)


def my_test(mixed_groups):
    ...


check.silent_bug_09(my_test)

# %% [markdown]
# <details><summary>hint</summary>
#
# Which groups must never be kept? Give their answers lengths on both sides of the edge.
# </details>
#
# **09.5 Name this method** · 3 minutes · ●●○. A colleague's loss, prompts × answers × tokens. Which published method is it?
#
#     def loss(ratio, rewards, mask):        # (P, G, T), (P, G), (P, G, T)
#         A = rewards - rewards.mean(1, keepdim=True)
#         A = (A / (rewards.std(1, keepdim=True) + 1e-6)).unsqueeze(-1)
#         worth = torch.minimum(ratio * A, ratio.clamp(0.8, 1.28) * A)
#         share = (worth * mask).sum((1, 2)) / mask.sum((1, 2))
#         return -share.mean()

# %% tags=["exercise"]
check.name_this_09("")

# %% [markdown]
# All solved and run in [solutions/09_dapo.ipynb](solutions/09_dapo.ipynb).
#
# ## In the interview
#
# **What are DAPO's four changes, and which are in the loss?**
# <details><summary>answer</summary>
#
# Clip-higher (band 0.8 to 1.28) and the token-level mean are in the loss. Dynamic sampling is in the sampler, the overlong penalty in the reward. Also no KL. The
# advantage stays GRPO's z-score, std included.
# </details>
#
# **What does clip-higher do, exactly?**
# <details><summary>answer</summary>
#
# A token with A > 0 keeps its gradient up to ρ = 1.28 instead of 1.2. At 0.01 that is 0.0128 instead of 0.0120 per batch; 16 batches to one half instead of 22 if the edge is what holds it. It matters only if
# several updates (or stale data) carry ratios past 1.2 within a batch. With one update per batch it does nothing, and tokens above 0.83 can never reach the edge.
# </details>
#
# **Does it prevent entropy collapse?**
# <details><summary>answer</summary>
#
# Maximising reward takes entropy away without any clip: ten arms, exact gradient, 2.30 to 0.005. A wider edge changes the speed. In a toy where a rare arm is best, entropy is higher early, lower a little later, and the same at the end. What
# keeps entropy up is a term that pays for it, fresh or harder prompts, or stopping.
# </details>
#
# **Why dynamic sampling, and what does it cost?**
# <details><summary>answer</summary>
#
# Groups with equal rewards have no gradient: 85 % at p = 0.01 and G = 16. Refilling keeps the number of live groups constant. It costs 1/P groups per live group, about 1/p answers on hard prompts at any G; it changes the prompt distribution
# towards p = ½, never ends on a hopeless pool, and makes the logged reward meaningless unless it is taken before the filter.
# </details>
#
# **Filtering, refilling, retiring: when which?**
# <details><summary>answer</summary>
#
# Filtering costs nothing and, up to the divisor, changes nothing. Refilling when updates are dear or the batch must stay full. Retirement when much of the pool is solved: the only one that saves generation; look at retired
# prompts now and then.
# </details>
#
# **Is it a curriculum?**
# <details><summary>answer</summary>
#
# A weak one: prompts enter in proportion to 1 − p^G − (1−p)^G, flat over the middle. At G = 16 it keeps 56 % of the groups at p = 0.05, a band from 0.2 to 0.8 keeps 0.7 %.
# </details>
#
# **"Token-level loss": what is the denominator?**
# <details><summary>answer</summary>
#
# In the paper the tokens of the prompt's group, averaged over prompts (ScaleRL's prompt average). In TRL's and verl's DAPO the tokens of the whole batch. They differ as soon as prompts differ in total length: 100 against 1000 tokens, a factor
# of 10 per token.
# </details>
#
# **Your model learns to stop early after you add the overlong penalty. Why?**
# <details><summary>answer</summary>
#
# The penalty is a reward. In all-wrong (or all-right) groups it is the only difference, and the z-score blows it up to full size: one token over the edge, −0.0002, becomes −1.72 in a group of four. Filter groups on right and wrong before adding it, use ±1 rewards so
# that right always beats wrong, widen the free zone, or mask cut answers instead.
# </details>
#
# ## Recap
#
# The running group and its neighbour: the advantage of each answer, and below it what one of its tokens weighs on fresh data ($c\cdot A$). New: DAPO, with the code's divisor and the printed one.

# %%
def four(numbers):
    return " ".join(f"{round(float(x), 4) + 0.0:8.4f}" for x in numbers)


def recap(b, label):
    b = b.replace(old_logprobs=None, max_completion_length=8)
    rows = {name: ZOO[name].replace(terms=())
            for name in ("rloo", "grpo", "dr_grpo", "dapo")}
    rows["printed"] = dapo.replace(weights=prompt_mean)
    print(label)
    for name, objective in rows.items():
        out = objective(b)
        A, c = out.advantages[:, 0], out.weights[:, 0]
        print(f"{name:8s} A {four(A)}\n{'':7s} cA {four(c * A)}")


recap(running_group(), "one prompt: rewards 1 1 0 0, lengths 3 5 2 6")
print()
recap(running_batch(), "and a second: rewards 1 0 0 0, lengths 4 1 7 2")

# %% [markdown]
# * DAPO is GRPO's advantage, a band from 0.8 to 1.28, one mean over tokens, no KL; plus a filter and a penalty outside the loss.
# * Clip-higher acts where one batch's updates would carry the ratio past 1.2, under any optimizer, and nowhere else. Entropy falls with it and without it.
# * A live group costs $1/P$ groups, about $1/p$ answers when $p$ is small. Only retirement lowers the price.
# * Printed: per prompt. Coded: per batch.
# * A penalty on length is a reward. Decide what is mixed before you add it.
#
# Next, page 10: beyond 1.28 a token is still dead. What if the edge were soft, or there were none?
