# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06 · GRPO: the group is the baseline
#
# **Settles:** what stands in for the critic and what that costs, which std, where the KL sits, and why a
# correct loss reads 0.
#
# 40 minutes · after [05](05_ppo.ipynb) · DeepSeekMath, Shao et al. 2024
# ([2402.03300](https://arxiv.org/abs/2402.03300)); RLOO, Ahmadian et al. 2024
# ([2402.14740](https://arxiv.org/abs/2402.14740)); DeepSeek-R1, 2025
# ([2501.12948](https://arxiv.org/abs/2501.12948)); Dr. GRPO, Liu et al. 2025
# ([2503.20783](https://arxiv.org/abs/2503.20783)).

# %% [markdown]
# > **[03](03_baselines.ipynb) in two lines.** Subtracting a number that does not depend on the answer leaves the expected gradient
# > alone and shrinks its noise. The best simple choice is close to the expected reward of the prompt.
# >
# > **[04](04_importance_sampling.ipynb) in two lines.** Data drawn from $\pi_\text{old}$ is reweighted by $\rho=\pi_\theta/\pi_\text{old}$, which
# > explodes if unchecked. $k_3$ estimates KL($\pi_\theta\Vert\pi_\text{ref}$) from samples; its *gradient* is another story.

# %%
import torch
from rlnb import ZOO, check
from rlnb.toys import running_batch, running_group
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## Four answers instead of a critic
#
# PPO asks a second network, as large as the policy: "how well does this prompt usually go?" GRPO asks the
# policy itself. Sample $G$ answers to the same prompt, reward each with $r_i$, and compare:
#
# $$A_i=\frac{r_i-\bar r}{s+\varepsilon},\qquad \bar r=\frac1G\sum_{j=1}^{G} r_j,\qquad
# s=\sqrt{\tfrac1G\textstyle\sum_j(r_j-\bar r)^2}$$
#
# $\bar r$ is the baseline, $s$ sets the scale, $\varepsilon=10^{-6}$ keeps the division legal. Above the
# group's mean: pushed up. Below: pushed down.

# %%
def four(numbers):
    """Four decimals each, no minus zero."""
    return " ".join(f"{round(float(x), 4) + 0.0:8.4f}" for x in numbers)


def group_advantages(rewards, num_generations, eps=1e-6):
    r = rewards.view(-1, num_generations)             # (P, G)
    centred = r - r.mean(1, keepdim=True)
    std = centred.square().mean(1, keepdim=True).sqrt()
    return (centred / (std + eps)).view(-1)           # (B,)


rewards = torch.tensor([1.0, 1.0, 0.0, 0.0])          # the running group
print("rewards   ", four(rewards))
print("advantages", four(group_advantages(rewards, 4)))

# %% [markdown]
# By hand: mean ½, every deviation ±½, so $s=½$ and $A=±1$. Two answers go up, two go down, and no network
# was asked.

# %%
batch = running_batch()            # the running group and a second prompt
A = group_advantages(batch.rewards, batch.num_generations)
print("rewards   ", four(batch.rewards))
print("advantages", four(A))
theirs = ZOO["grpo"](batch).advantages[:, 0]          # (B, T) -> (B,)
assert torch.allclose(A, theirs, atol=1e-12)
assert A.view(2, 4).sum(1).abs().max() < 1e-12        # zero in each group

# %% [markdown]
# The second prompt has one right answer in four. It gets $\sqrt3=1.7321$ less $\varepsilon$'s share,
# each wrong one $-1/\sqrt3$: the rare side is pushed harder. Every group sums to zero.
#
# ## Move it yourself
#
# Three things to try; guess each one first. Type `1, 0.99` and set G = 2. Type `1, 0`, repeat *the last reward*, and pull G to 16.
# Then make all rewards equal.

# %% tags=["explorer"]
from rlnb.classroom import explorers

explorers.group_advantage_explorer()

# %% [markdown]
# The default and the three tries, as numbers:

# %%
from rlnb.classroom.explorers.group_advantage import compute

tries = {"1, 1, 0, 0": 4, "1, 0.99": 2, "1, 0": 16, "1, 1, 1, 1": 4}
for text, G in tries.items():
    d = compute(rewards=text, size=G, fill="last")
    A = d["advantages"]
    print(f"{text:10s} G={G:2d}  mean {d['mean']:.4f}  "
          f"std {d['divisor']:.4f}  first {A[0]:7.4f}  last {A[-1]:7.4f}")

# %% [markdown]
# With $G=2$ the advantage is ±1 whether the gap is 1 or 0.01 (the missing 0.0002 is $\varepsilon$). With one right
# answer in 16 that answer gets $\sqrt{15}$. Nothing gets more than $\sqrt{G-1}$ (exercise 06.1). Equal rewards: all zero.
#
# Two well-worn examples. Eight graded rewards with mean 0.55 and σ 0.32: all eight advantages usually given are
# right to two decimals. Rewards 3, 1, 2, 0: the extremes get about ±1.34 and the middle two, about ±0.45, are said to be "near zero".
# Both need the *population* std, divided by $G$. `torch.std` divides by $G-1$ (*Bessel*).

# %% tags=["claim:G07", "claim:G08"]
for r, told in (
    ([0.9, 0.2, 0.7, 0.1, 0.85, 0.4, 0.95, 0.3],
     [1.10, -1.10, 0.47, -1.42, 0.95, -0.47, 1.26, -0.79]),
    ([3.0, 1.0, 2.0, 0.0], [1.34, -0.45, 0.45, -1.34]),
):
    r, told = torch.tensor(r), torch.tensor(told)
    centred = r - r.mean()
    s = r.std(correction=0)                            # divide by G
    population, bessel = centred / s, centred / r.std()
    print(f"mean {r.mean():.4f}  std {s:.4f}, Bessel {r.std():.4f}")
    print("population", four(population))
    print("Bessel    ", four(bessel))
    assert (population - told).abs().max() < 0.005
    assert (bessel - told).abs().max() > 0.05
assert four(population[:2]) == "  1.3416  -0.4472"
assert four(bessel[:2]) == "  1.1619  -0.3873"
assert torch.isclose(population[0] / population[2], torch.tensor(3.0))
# "advantages ±1.34 and ±0.45": true
# "Eight rewards with mean 0.55 and σ 0.32": true

# %% [markdown]
# With Bessel the eight would start with 1.03. And a third of the extremes is not near zero.
#
# A single failure among sixteen is said to get about −3.9, four times the −1 of an even split.
# It is $-\sqrt{15}=-3.8730$, the try above turned over; −3.75 with Bessel.

# %% tags=["claim:G09"]
one_wrong = torch.tensor([1.0] * 15 + [0.0])
half_wrong = torch.tensor([1.0] * 8 + [0.0] * 8)
for name, r in (("15 of 16", one_wrong), (" 8 of 16", half_wrong)):
    s = r.std(correction=0)
    failure = r[-1] - r.mean()
    print(f"{name} right: std {s:.4f}, failure {failure / s:.4f},"
          f" with Bessel {r.std():.4f} and {failure / r.std():.4f}")
A = group_advantages(one_wrong, 16, eps=0)
assert torch.isclose(A[-1], -torch.tensor(15.0).sqrt())
assert group_advantages(half_wrong, 16, eps=0)[-1] == -1
# "at 8 of 16 a failure gets -1": true

# %% [markdown] tags=["cited:G31"]
# ## What the group mean estimates
#
# It is often said that $\bar r$ is the baseline a critic would have learned. For one state it is: $\bar r$ estimates
# $V(\text{prompt})$, the expected reward before a word is written, with variance $\sigma^2/G$, where $\sigma^2$ is
# the variance of a single reward (DeepSeekMath, [2402.03300](https://arxiv.org/abs/2402.03300), section 4.1). A critic has a value after every token.
#
# A toy with one fork: half the answers begin with *a* and then succeed with 0.9, half with *b* and succeed with 0.1.
# The group is so large that $\bar r=V(\text{prompt})$, and nothing is divided.

# %%
V_prompt, V_after = 0.5, {"a": 0.9, "b": 0.1}
print("first  reward   critic: fork, rest    group: fork, rest")
for first in "ab":
    for r in (1, 0):
        fork, rest = V_after[first] - V_prompt, r - V_after[first]
        A = r - V_prompt
        print(f"  {first}      {r}           {fork:+.1f}  {rest:+.1f}"
              f"               {A:+.1f}  {A:+.1f}")
        assert abs(fork + rest - A) < 1e-12

# %% [markdown]
# The critic splits the surprise; the group hands all of it to every token. A good ending after the bad word *b* pays
# that word +0.5, where a critic says −0.4. Averaged over many answers *b* gets
# 0.1 · 0.5 − 0.9 · 0.5 = −0.4, the critic's number: the group is right on average and noisy per answer.
#
# It is often said that GRPO gives all tokens of an answer the same advantage. With one reward per answer, yes. The
# same *gradient weight*, only inside one answer and on fresh data: lengths differ from answer to answer, and off-policy
# ratio and clip differ from token to token.

# %% tags=["claim:G32"]
group = running_group()                    # lengths 3, 5, 2, 6
grpo = ZOO["grpo"].replace(terms=())       # no KL for now
out = grpo(group)
for i, T in enumerate(group.lengths.int().tolist()):
    same = out.advantages[i, :T]
    weight = (out.weights * out.advantages)[i, 0]
    print(f"answer {i}: {T} tokens, A {same[0]:+.4f} on each,"
          f" on-policy weight per token {weight:+.4f}")
    assert (same == same[0]).all()
hand = torch.tensor([1 / 12, 1 / 20, -1 / 8, -1 / 24])
ours = (out.weights * out.advantages)[:, 0]
assert torch.allclose(ours, hand, atol=1e-5)
# "GRPO gives every token of an answer the same advantage": true

# %% [markdown]
# ## How large a group?
#
# Two things improve with $G$. The baseline gets quieter: with rewards of variance $\sigma^2$, your reward minus the mean of
# the $G-1$ others has variance $\sigma^2\,(1+\frac1{G-1})$. (GRPO's $r_i-\bar r$ is $\frac{G-1}G$ times that difference.) And a
# group is more often *mixed*, some right and some wrong; only a mixed group teaches anything. With success rate $p$,
#
# $$P(\text{mixed})=1-p^G-(1-p)^G$$

# %%
from itertools import product


def variance_of_surprise(p, G):
    """Exact: all 2^G groups of right (1) and wrong (0)."""
    second = 0.0
    for r in product((0, 1), repeat=G):
        surprise = r[0] - sum(r[1:]) / (G - 1)        # its mean is 0
        second += p**sum(r) * (1 - p)**(G - sum(r)) * surprise**2
    return second


for G in (2, 4, 8):
    factor = variance_of_surprise(0.3, G) / (0.3 * 0.7)
    assert abs(factor - (1 + 1 / (G - 1))) < 1e-12

# %%
def mixed(p, G):
    return 1 - p**G - (1 - p)**G


print("  G  variance   mixed: p=0.5   p=0.1  p=0.01")
for G in (2, 4, 8, 16, 64):
    cells = "  ".join(f"{mixed(p, G):.4f}" for p in (0.5, 0.1, 0.01))
    print(f"{G:3d}    {1 + 1 / (G - 1):.4f}         {cells}")
assert mixed(0.5, 2) == 0.5
assert round(mixed(0.01, 64), 4) == 0.4744

# %% [markdown]
# From 8 to 64 the variance only falls from 1.1429 to 1.0159. What the 56 further answers buy is the hard prompt:
# at $p=0.01$ a group of 8 is mixed 8 % of the time, a group of 64 almost half. The bill is $G$ generated
# answers per prompt, and generation is where the time goes.

# %% [markdown] tags=["cited:H15"]
# "Groups of 8 to 16, learning rate 1e-6, one epoch" is common advice and a fair place to start, not a law. DeepSeekMath
# itself ([2402.03300](https://arxiv.org/abs/2402.03300), section 4.2) used $G=64$, learning rate 1e-6, KL coefficient
# 0.04 and *one* update per batch. With one update every ratio is 1, so in those runs the clip had nothing to do.

# %% [markdown] tags=["cited:H04"]
# The run that made the method famous, DeepSeek-R1 ([2501.12948](https://arxiv.org/abs/2501.12948)), reports four
# stages: a supervised cold start, RL on reasoning with GRPO, rejection sampling with fine-tuning on about 800,000
# samples, and RL again.
#
# ## Which std?
#
# The paper says "std" and leaves two things open: divide by $G$ or by $G-1$, and how large $\varepsilon$ is. Hence the same four
# rewards, 1, 1, 0, 0, give different numbers in well-known code:

# %%
r = torch.tensor([1.0, 1.0, 0.0, 0.0])
centred, others = r - r.mean(), (r.sum() - r) / 3
table = {
    "TRL             Bessel + 1e-4": centred / (r.std() + 1e-4),
    "verl            Bessel + 1e-6": centred / (r.std() + 1e-6),
    "GRPO-Zero       population + 1e-4":
        centred / (r.std(correction=0) + 1e-4),
    "this course     population + 1e-6": group_advantages(r, 4),
    "Dr. GRPO        no division": centred,
    "RLOO            mean of the others": r - others,
}
for name, A in table.items():
    print(f"{name:36s} {A[0]:+.4f} {A[-1]:+.4f}")
first = [round(float(A[0]), 4) for A in table.values()]
assert first == [0.8659, 0.8660, 0.9998, 1.0, 0.5, 0.6667]

# %% [markdown]
# Bessel against population is one constant, $\sqrt{G/(G-1)}=1.1547$ at $G=4$: a learning rate
# and, against a KL term, another $\beta$. Dr. GRPO and RLOO differ from *each other* by a constant, $G/(G-1)$. The step
# from the last two rows to the others is not a constant: $s$ depends on the prompt. Pages [07](07_grpo_biases.ipynb) and [08](08_dr_grpo.ipynb) follow that up.
#
# ## Each answer counts once
#
# $T_i$ is the number of tokens in answer $i$, $m_{i,t}\in\{0,1\}$ the mask: 1 on tokens the policy wrote, 0 on padding.
# GRPO averages inside each answer first, then over the answers:
#
# $$L=-\frac1G\sum_{i=1}^{G}\frac1{T_i}\sum_t m_{i,t}\,\big(\text{what token } t \text{ is worth}\big)$$
#
# A popular lesson calls this $1/T_i$ average "the token-level loss". That name belongs to the other rule, one mean
# over all tokens. Say *sequence mean* for this one; TRL writes `loss_type="grpo"`, verl `seq-mean-token-mean`.

# %% tags=["claim:M14"]
from rlnb.objective import token_mean

by_answer = grpo(group).weights[:, 0]                  # (4,)
by_token = grpo.replace(weights=token_mean)(group).weights[:, 0]
print("lengths         ", *(f"{n:8.0f}" for n in group.lengths))
print("sequence mean   ", four(by_answer))
print("token mean      ", four(by_token))
assert torch.allclose(by_answer, 1 / (4 * group.lengths))
assert torch.allclose(by_token, torch.full((4,), 1 / 16))
# "is the token-level loss": sloppy

# %% [markdown]
# A token of the two-token answer weighs three times a token of the six-token one. What that does to the length of
# answers is page [07](07_grpo_biases.ipynb).
#
# ## KL in the loss
#
# PPO for language models pays the KL in the reward (05). Here it would pass through the group's mean and std.
# The paper leaves the advantage alone and adds it to the loss, per token, as $k_3$:
#
# $$k_3=\frac{\pi_\text{ref}}{\pi_\theta}-1-\log\frac{\pi_\text{ref}}{\pi_\theta}\ \ge 0,\qquad
# \frac{\partial k_3}{\partial\log\pi_\theta}=1-\frac{\pi_\text{ref}}{\pi_\theta}$$

# %%
def k3(logprobs, ref_logprobs):
    d = ref_logprobs - logprobs                        # log(ref / pi)
    return torch.expm1(d) - d


ratio = torch.tensor([0.25, 0.5, 1.0, 1.5, 4.0])       # ref / pi
logprobs = torch.full((5,), 0.2).log().requires_grad_()
value = k3(logprobs, logprobs.detach() + ratio.log())
value.sum().backward()
print("ref / pi     ", four(ratio))
print("k3           ", four(value.detach()))
print("slope        ", four(logprobs.grad))
assert (value >= 0).all() and value[2] == 0
assert torch.allclose(logprobs.grad, 1 - ratio)

# %% [markdown]
# Zero where the two agree, positive on both sides. Descent goes against the slope: a token the reference
# likes four times better is pulled up with −3, one it likes four times less is pushed down with 0.75, and never with more
# than 1. The value estimates KL($\pi_\theta\Vert\pi_\text{ref}$), the gradient follows KL($\pi_\text{ref}\Vert\pi_\theta$); page 04
# has that story.
#
# Why `expm1`? In float32, near the reference:

# %%
d = torch.tensor([1e-2, 1e-4], dtype=torch.float32)
exact = torch.expm1(d.double()) - d.double()
rules = {"exp(d) - 1 - d": d.exp() - 1 - d,
         "expm1(d) - d": torch.expm1(d) - d}
for name, value in rules.items():
    good = (value - exact).abs() < 0.1 * exact         # within 10 %
    for one_d, one_exact, fine in zip(d, exact, good):
        print(f"{name:14s} at d = {one_d:.0e}, k3 = {one_exact:.0e}: "
              f"{'right' if fine else 'rounding noise'}")
assert (rules["expm1(d) - d"] / exact - 1).abs().max() < 0.01
assert (rules["exp(d) - 1 - d"] / exact - 1).abs()[1] > 1

# %% [markdown]
# A lesson prints GRPO's gradient as $A\,\nabla\log\pi$ under an objective that has a KL term. The policy part, yes. On-policy
# the whole coefficient of $\nabla\log\pi$ is $A+\beta\,(\pi_\text{ref}/\pi_\theta-1)$, with $\beta$ the KL coefficient.

# %% tags=["claim:M07"]
beta, A = 0.04, 1.0
for ratio in (1.5, 1.0, 0.5):                          # ref / pi
    lp = torch.tensor(0.3).log().requires_grad_()
    rho = (lp - lp.detach()).exp()                     # 1, with gradient
    ref = lp.detach() + torch.tensor(ratio).log()
    (rho * A - beta * k3(lp, ref)).backward()
    print(f"ref/pi {ratio}: coefficient {lp.grad:.4f}")
    assert torch.isclose(lp.grad, torch.tensor(A + beta * (ratio - 1)))
# "GRPO's gradient is the mean of A times the gradient": sloppy

# %% [markdown]
# ## The whole loss
#
# Everything so far, with PPO's ratio $\rho_{i,t}=\pi_\theta/\pi_\text{old}$, clip and min from 05:
#
# $$L=-\frac1G\sum_i\frac1{T_i}\sum_t m_{i,t}\Big[\min\big(\rho_{i,t}A_i,\ \mathrm{clip}(\rho_{i,t},1-\epsilon,1+\epsilon)A_i\big)
# -\beta\,k_{3\,i,t}\Big]$$
#
# ($\epsilon$ is the width of the clip, 0.2; the $\varepsilon$ beside the std is another number.)

# %%
def grpo_loss(logprobs, old_logprobs, ref_logprobs, mask, rewards,
              num_generations, epsilon=0.2, beta=0.04, eps=1e-6,
              correction=0):
    mask = mask.bool()                                 # (B, T)
    lp, old, ref = (torch.where(mask, x, 0.0) for x in
                    (logprobs, old_logprobs, ref_logprobs))

    r = rewards.view(-1, num_generations)              # (P, G)
    std = r.std(1, keepdim=True, correction=correction)
    A = (r - r.mean(1, keepdim=True)) / (std + eps)
    A = A.view(-1, 1)                                  # (B, 1)

    rho = (lp - old).exp()                             # (B, T)
    clipped = rho.clamp(1 - epsilon, 1 + epsilon)
    policy = torch.minimum(rho * A, clipped * A)

    d = ref - lp
    kl = torch.expm1(d) - d                            # k3, (B, T)

    per_token = torch.where(mask, policy - beta * kl, 0.0)
    per_answer = per_token.sum(1) / mask.sum(1).clamp(min=1)   # 1 / T_i
    return -per_answer.mean()

# %% [markdown]
# The three `where` on the *inputs* come first on purpose: a NaN that reaches `exp` comes back through the
# gradient even if its value is masked afterwards.
#
# "z-score in the group, clip, $k_3$, mean over tokens, mean over answers": a popular one-line summary, and a
# correct one. Value and gradient against the package, where `anchor_logprobs` is
# $\log\pi_\text{old}$, or on fresh data the current log-probs, detached:

# %% tags=["claim:C06"]
def both(b):
    mine = grpo_loss(b.logprobs, b.anchor_logprobs, b.ref_logprobs,
                     b.completion_mask, b.rewards, 4)
    theirs = ZOO["grpo"](b).loss
    grads = [torch.autograd.grad(x, b.logprobs)[0] for x in (mine, theirs)]
    return mine, theirs, (grads[0] - grads[1]).abs().max()


fresh = running_group().replace(old_logprobs=None)     # on-policy
for name, b in (("running group", running_group()),
                ("running batch", running_batch()), ("on-policy", fresh)):
    mine, theirs, gap = both(b)
    print(f"{name:14s} mine {mine:.6f}  rlnb {theirs:.6f}")
    assert abs(mine - theirs) < 1e-12 and gap < 1e-12
assert abs(grpo(fresh).loss) < 1e-12                   # 0 without KL
r = running_group().rewards                            # Bessel: a factor
bessel, factor = (r - r.mean()) / r.std(), (4 / 3) ** 0.5
print("with Bessel", four(bessel), f" factor {factor:.4f}")
assert torch.allclose(factor * bessel, group_advantages(r, 4), atol=1e-5)
# "z-score in the group, clip, k3, mean over each answer": true

# %% [markdown]
# A second example, small enough for paper: one prompt, $G=2$, rewards 1 and 0, lengths 3 and 5. Three
# conventions, three numbers.

# %%
def logs(*rows):
    return torch.tensor([[*r, *[1.0] * (5 - len(r))] for r in rows]).log()


old = logs((.50, .10, .80), (.60, .05, .90, .30, .70))
new = logs((.55, .14, .82), (.45, .06, .88, .15, .72))
ref = logs((.50, .12, .78), (.58, .05, .91, .25, .70))
mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
data = (new, old, ref, mask, torch.tensor([1.0, 0.0]), 2)

for name, options, hand in (
    ("population, no KL  ", dict(beta=0), -0.073532),
    ("Bessel, no KL      ", dict(beta=0, correction=1), -0.051995),
    ("Bessel, 0.04 k3    ", dict(correction=1), -0.051052),
):
    loss = grpo_loss(*data, eps=0, **options)
    print(f"{name} {loss:.6f}")
    assert round(float(loss), 6) == hand

# %% [markdown]
# By hand, first line ($A=±1$): the ratios after clip and min average (1.1 + 1.2 + 1.025)/3 = 1.1083 and
# (0.8 + 1.2 + 0.9778 + 0.8 + 1.0286)/5 = 0.9613; minus half the difference is −0.0735. Bessel divides that by $\sqrt2$.
#
# ## Which token is dead, and why
#
# `explain` shows one line per token: advantage, ratio, the gate (what is left of the ratio after the clip), the
# aggregation weight, and the gradient of the loss with respect to that token's log-probability. First without KL.

# %%
table = grpo.explain(group)
print(table)
dead = (table.gate == 0) & table.mask
assert dead.nonzero().tolist() == [[0, 1], [1, 1], [1, 3], [3, 0]]

# %% [markdown]
# Four of 16 are dead, each already moved the way it should: three good tokens above 1.2, one bad token below
# 0.8. Row 1 token 0 is outside the band too (0.75) and alive: a good token that *fell*. Row 2 token 0 is the other
# mistake: bad, and up 3.5 times. Its 0.4375 is the largest push in the table, and the clip leaves it alone.
#
# Now with $0.04\,k_3$: the dead tokens move again, a little, towards the reference.

# %%
with_kl = ZOO["grpo"].explain(group)
for row, t in dead.nonzero().tolist():
    ratio = (group.ref_logprobs - group.logprobs)[row, t].exp()
    print(f"row {row} token {t}: ref/pi {ratio:.4f}, dL/dlogp "
          f"{table.gradient[row, t] + 0.0:.4f} -> "
          f"{with_kl.gradient[row, t]:+.6f}")
    by_hand = 0.04 * (1 - ratio) * with_kl.weights[row, t]
    assert torch.isclose(with_kl.gradient[row, t], by_hand)

# %% [markdown]
# ## Why is the loss zero?
#
# Asked again and again in issue trackers. On fresh data $\rho=1$, so each answer contributes its $A_i$, and
# those sum to zero. The gradient does not.

# %%
loss = grpo(fresh).loss                               # KL-free, on-policy
gradient, = torch.autograd.grad(loss, fresh.logprobs)
print(f"loss {round(loss.item(), 4) + 0.0:.4f}, "
      f"gradient norm {gradient.norm():.4f}")
assert abs(loss) < 1e-12 and gradient.norm() > 0.2

with_kl = ZOO["grpo"](fresh).loss
print(f"with KL the whole value is 0.04 * k3: {with_kl:.4f}")

# %% [markdown]
# So the loss is 0 when all is well, and with a KL term it *rises* from 0 as the policy leaves the reference.
# Watch the reward, the share of mixed groups and the gradient norm instead. Without a KL term a zero *gradient norm* is the
# alarm: every group equal (page 07), or everything masked.
#
# ## All of it in one cell
#
# A bandit with four arms, plain torch, no package, no critic, and no arm ever told its true value: only comparisons
# inside groups of 16 draws. 200 seeds side by side. `divide` is the z-score; without it only the mean is
# subtracted. `shuffle` is the control: the same rewards handed to the wrong draws.

# %%
def solve(divide, lr=0.5, shuffle=False, G=16, seeds=200, steps=120):
    gen = torch.Generator().manual_seed(0)
    value = torch.tensor([0.2, 0.5, 0.8, 1.0])         # arm 3 is the best
    theta = torch.zeros(seeds, 4, requires_grad=True)
    best = []
    for _ in range(steps):
        pi = theta.softmax(1)                          # (seeds, 4)
        best.append(pi[:, 3].detach())
        draws = torch.multinomial(pi, G, True, generator=gen)
        r = value[draws]                               # (seeds, G)
        if shuffle:
            r = r.gather(1, torch.rand(seeds, G, generator=gen).argsort(1))
        A = r - r.mean(1, keepdim=True)
        if divide:
            A = A / (r.std(1, keepdim=True, correction=0) + 1e-6)
        loss = -(A * pi.log().gather(1, draws)).mean(1).sum()
        gradient, = torch.autograd.grad(loss, theta)
        theta = (theta - lr * gradient).detach().requires_grad_()
    return torch.stack(best, 1)                        # (seeds, steps)

# %% [markdown]
# It is said that such a bandit can be solved from relative rewards alone. It can. The numbers below are sampled; the
# assertions hold for all 200 seeds.

# %% tags=["claim:C01", "nbval-ignore-output"]
runs = {"z-score, lr 0.5": solve(True),
        "mean only, lr 0.5": solve(False),
        "mean only, lr 2.5": solve(False, lr=2.5),
        "z-score, shuffled": solve(True, shuffle=True)}
median = {}
for name, curve in runs.items():
    solved = (curve > 0.9).any(1)
    first = (curve > 0.9).int().argmax(1)[solved]
    median[name] = int(first.median()) if len(first) else "-"
    print(f"{name}: {int(solved.sum()):3d} of 200 seeds reach 0.9, "
          f"median step {median[name]}")
    assert solved.all() or "shuffled" in name
z, mean_only, faster, control = median.values()
assert z < mean_only / 3 and abs(faster - z) <= 5
assert (runs["z-score, shuffled"][:, -1] > 0.9).sum() < 20
# "A four-armed bandit can be solved from rewards compared": true

# %%
from rlnb.classroom.figures import learning_curves

learning_curves(
    {name: runs[key][:20, :101:2] for name, key in (
        ("GRPO", "z-score, lr 0.5"), ("Dr. GRPO", "mean only, lr 0.5"),
        ("shuffled", "z-score, shuffled"))},
    base=0.25, control="shuffled", steps=range(0, 101, 2), ylim=(0, 1),
    ylabel="probability of the best arm",
    alt="Probability of the best of four arms over 100 steps, 20 seeds "
        "each. All z-score runs (GRPO) pass 0.9 within 30 steps, all "
        "mean-only runs (Dr. GRPO's advantage) within 100; with shuffled "
        "rewards the seeds scatter around the start, 0.25.")

# %% [markdown]
# *Figure: relative rewards alone find the best arm on every seed; at the same learning rate the z-score (GRPO) gets
# there in about a fifth of the steps of mean-only (Dr. GRPO's advantage), and with the rewards shuffled nobody arrives. 20 of the 200 seeds are drawn.* The grey
# seeds wander all the same: advantages of size one move a policy even when they mean nothing.
#
# Read the third line of the table before you conclude anything. In this toy no std exceeds 0.4, so dividing by it is
# a larger step: with five times the learning rate the mean-only rule is as fast. Within a group both point
# the same way; only the length of the step differs. And it is a toy: one prompt, no noise in the rewards.
#
# **Does a transformer need the baseline?** The 0.3M model of [page 19](19_grpo_for_real.ipynb), 40 steps of 8 × 8 answers, rewards 0 and 1, the same AdamW;
# REINFORCE without a baseline against leave-one-out. Six seeds each, recorded on a CPU; held-out pass@1, start 0.37:

# %%
from rlnb.classroom.pictures.recorded_runs import final

for label, run in (("no baseline", "chain_no_baseline"),
                   ("leave one out", "chain_rloo")):
    for step in (20, 40):
        print(f"{label:14s} step {step}",
              *(f"{x:.2f}" for x in final(run, step=step)))
assert min(final("chain_no_baseline")) > max(final("chain_rloo")) - 0.01

# %% [markdown]
# No: here it does at least as well without. With rewards of 0 and 1 "no baseline" trains on right answers only, and AdamW hides the
# size of a step; which of the two does it we did not isolate. A baseline lowers the *variance* (page [03](03_baselines.ipynb) has it exactly); one easy task is no test of
# what that buys.
#
# ### "Dividing by $G$ is how the baseline enters"
#
# So says a comment in a popular lesson, next to the mean over the group in the loss. The baseline is the *subtraction*.
# The other $1/G$ is an average: leave it out, divide the learning rate by $G$, and the step is the same.

# %% tags=["claim:C02"]
def step(theta, draws, A, lr, average):
    theta = theta.clone().requires_grad_()
    total = (A * theta.log_softmax(0)[draws]).sum()
    (total / len(A) if average else total).backward()
    return theta.detach() + lr * theta.grad


theta, draws = torch.zeros(4), torch.tensor([0, 1, 2, 3] * 4)
draws[:6] = 2                                          # an uneven sample
r = torch.tensor([0.2, 0.5, 0.8, 1.0])[draws]
averaged = step(theta, draws, r - r.mean(), 0.5, True)
summed = step(theta, draws, r - r.mean(), 0.5 / 16, False)
no_baseline = step(theta, draws, r, 0.5, True)
print("mean, lr 0.5      ", four(averaged))
print("sum,  lr 0.5/16   ", four(summed))
print("no subtraction    ", four(no_baseline))
assert torch.allclose(averaged, summed, atol=1e-12)
assert (averaged - no_baseline).abs().max() > 0.05
# "how the group-mean baseline enters": wrong

# %% [markdown]
# Without the subtraction the largest push goes to arm 2, drawn nine times in 16, and not to arm 3, the best.
#
# ## What is in memory
#
# The counting of page 05: a trained parameter costs 16 bytes (bf16 weight 2, gradient 2, float32 copy 4, Adam's two moments
# 8), a frozen one 2. All models are of one size; activations and KV cache come on top.
#
# Two statements to hold against it: GRPO halves PPO's memory *and compute*, PPO needs *four times* the memory; and GRPO
# removes the critic *and the reward model*.

# %% tags=["claim:S03", "claim:S08"]
trained, frozen = 16, 2                                # bytes a parameter
setups = {
    "PPO: policy, critic, reference, reward model":
        2 * trained + 2 * frozen,
    "GRPO: the critic goes": trained + 2 * frozen,
    "a verifier replaces the reward model": trained + frozen,
    "no KL: the reference goes": trained,
}
for name, size in setups.items():
    print(f"{name:46s} {size} B   7B model: {7 * size:3d} GB"
          f"   saved {1 - size / 36:.1%}")
ppo, critic_free, verified, alone = setups.values()
assert (ppo, critic_free, verified, alone) == (36, 20, 18, 16)
assert ppo / alone == 2.25 and 4 * alone > ppo         # not four times
copy = [size + frozen for size in setups.values()]     # for the sampler
print(f"with a bf16 copy {copy}: {copy[0] / copy[-1]:.2f} times, not 4")
assert ppo - critic_free == trained                    # GRPO's own doing
assert critic_free - verified == verified - alone == frozen
# "GRPO keeps two or three models against PPO's four": conditional
# "GRPO removes the critic and the reward model": sloppy

# %% [markdown]
# "Half the memory" is fair: 44 to 56 %. Four times is not: 36/16 = 2.25. Compute is not halved either: the critic's
# forward and backward pass go, generation stays, at $G$ answers per prompt.
#
# Only the first line of savings is GRPO. Its first paper ([2402.03300](https://arxiv.org/abs/2402.03300)) trained against a
# learned reward model; a *rule* that checks the answer is what removes that, and dropping KL removes the reference.
#
# ## Where people go wrong
#
# **"Without ε, dividing by the std of equal rewards explodes."** It fails, but not that way: the numerator is zero too.

# %% tags=["claim:G02"]
def plain(r):                                          # no eps, no torch
    total = square = 0.0
    for x in r:                # not sum(): it rounds better since 3.12
        total += x
    for x in r:
        square += (x - total / len(r)) ** 2
    s = (square / len(r)) ** 0.5
    return [(x - total / len(r)) / s for x in r]

try:
    plain([1.0] * 8)
except ZeroDivisionError as error:
    print("[1.0] * 8  ", type(error).__name__)
for r in ([0.7] * 12, [0.3] * 10):
    print(f"[{r[0]}] * {len(r)} ", sorted(set(plain(r))))
ones = torch.ones(8)
in_torch = (ones - ones.mean()) / ones.std(correction=0)
print("torch      ", in_torch[:2].tolist(), "with eps",
      group_advantages(ones, 8)[:2].tolist())
assert in_torch.isnan().all() and set(plain([0.7] * 12)) == {-1.0}
assert set(plain([0.3] * 10)) == {1.0}
assert (group_advantages(ones, 8) == 0).all()
flat = running_group().replace(rewards=torch.full((4,), 0.7))
assert (grpo(flat).advantages == 0).all()
# "Without eps, dividing by the std of equal rewards explodes": wrong

# %% [markdown]
# Twelve rewards of 0.7 do not sum to 8.4 in binary. The residue is divided by itself and all twelve answers are told −1:
# wrong, and never large. `rlnb` compares max with min and returns exact zeros. The full story is page [07](07_grpo_biases.ipynb).
#
# One variant *does* explode: a leave-one-out mean over a leave-one-out std. In 1, 0, 0, 0 the others have std 0 and the
# numerator is 1, so the advantage is $1/\varepsilon$.

# %%
r = torch.tensor([1.0, 0.0, 0.0, 0.0])
others = r[1:]                                         # of answer 0
print(f"{(r[0] - others.mean()) / (others.std() + 1e-6):,.0f}")
assert torch.isclose(r[0] / (others.std() + 1e-6), torch.tensor(1e6))

# %% [markdown]
# **"ε clamps the std to at least 1e-6."** It is added. "The denominator is never below 1e-6" holds for both, and
# the difference only shows where the std is about ε.

# %% tags=["claim:C03"]
eps = 1e-6
for std in (1e-6, 1e-5, 1e-4):
    pair = torch.tensor([std, -std])                   # has this std
    added = (group_advantages(pair, 2, eps)[0] / std).item()
    clamped = 1 / max(std, eps)
    print(f"std {std:.0e}: gain {added:9,.0f} added,"
          f" {clamped:9,.0f} clamped, {clamped / added - 1:.0%} apart")
    assert abs(added * (std + eps) - 1) < 1e-9 and added < clamped
# "eps clamps the std": sloppy

# %% [markdown]
# **"With one answer per prompt the advantage is zero and there is no gradient."** With the population std and an ε, yes. With
# `torch.std` as it comes, one answer divides 0 by 0 and the whole batch is NaN. Nothing can be learned either way, so `rlnb`
# refuses.

# %% tags=["claim:G18"]
import warnings

one = torch.tensor([1.0])
print("population", group_advantages(one, 1).tolist())
with warnings.catch_warnings():
    warnings.simplefilter("ignore")                    # torch warns too
    nan = (one - one.mean()) / (one.std() + 1e-6)
print("Bessel    ", nan.tolist())
assert group_advantages(one, 1) == 0 and nan.isnan().all()
try:
    grpo(running_group().replace(num_generations=1))
except ValueError as sentence:
    print(sentence)
# "With one answer per prompt the advantage is zero": conditional

# %% [markdown]
# **"The full loss is $A\log\pi$ plus KL; ratio and clip give that same loss."** The same *gradient*, on fresh data. Off-policy
# each token is scaled by its ratio, or cut.

# %% tags=["claim:C04"]
from rlnb.objective import logprob

plain_log = grpo.replace(surrogate=logprob())          # A log pi
for name, b in (("on-policy ", fresh), ("off-policy", group)):
    g = [torch.autograd.grad(o(b).loss, b.logprobs)[0].flatten()
         for o in (grpo, plain_log)]
    cosine = torch.cosine_similarity(*g, dim=0)
    print(f"{name} largest difference {(g[0] - g[1]).abs().max():.4f},"
          f" cosine {cosine:.4f}")
    assert torch.allclose(*g, atol=1e-12) == (b is fresh)
for ratio in (1.1, 1.5):
    rho = torch.tensor(ratio, requires_grad=True)
    torch.minimum(rho, rho.clamp(0.8, 1.2)).backward()  # A = 1
    weight = (rho.grad * rho).item()                    # d / d log pi
    print(f"ratio {ratio}: weight {weight:.1f}, under A log pi 1.0")
    assert round(weight, 6) == (1.1 if ratio == 1.1 else 0.0)
# "adding ratio and clip gives that same loss": wrong

# %% [markdown]
# ## Exercises
#
# **06.1 Derive** · 10 minutes · ●●○. Show that $|A_i|\le\sqrt{G-1}$ for any rewards (population std, $\varepsilon=0$), and say
# when it is reached. What is the bound with Bessel?
#
# <details><summary>hint</summary>
#
# Put $A_1=x$. The other $G-1$ advantages sum to $-x$, and all squares together are $G$. What is the smallest
# sum of squares that $G-1$ numbers with a given sum can have?
# </details>
#
# **06.2 Predict, then run** · 3 minutes · ●○○. Rewards 1, 1, 0, 0. What happens to GRPO's advantages if you add 5 to
# all rewards? Multiply all by 10? Turn one 0 into 0.5? And to Dr. GRPO's?
#
# <details><summary>hint</summary>
#
# Which of the three changes survive subtracting the mean? Which of those survive dividing by the std?
# </details>
#
# **06.3 Predict, then run** · 5 minutes · ●●○. `running_batch()`, fresh data, no KL. What is the value of the loss under
# the sequence mean? Under the token mean, with lengths 3, 5, 2, 6 and 4, 1, 7, 2?
#
# <details><summary>hint</summary>
#
# On-policy the loss is $-\sum_{i,t}c_{i,t}A_i$. Do the advantages of a group cancel when the long answers count more?
# </details>
#
# **06.4 Implement** · 8 minutes · ●○○. The group's z-score, flat in, flat out, any number of prompts. Without scrolling up.
#
# <details><summary>hint</summary>
#
# One prompt a line: `view(-1, num_generations)`, and `keepdim=True` so that the line's mean and std broadcast. What does
# `torch.std` divide by when you say nothing?
# </details>

# %% tags=["exercise"]
def my_group_advantages(rewards, num_generations):
    """rewards (B,), rows kG ... kG+G-1 answer one prompt -> (B,)"""
    return ...


check.group_advantages(my_group_advantages)

# %% [markdown]
# **06.5 Implement** · 5 minutes · ●○○. $k_3$ per token. Mind which policy stands on top.
#
# <details><summary>hint</summary>
#
# Write $d=\log\pi_\text{ref}-\log\pi_\theta$ once and use the same $d$ twice. At $d=0$ the value and its slope are 0.
# </details>

# %% tags=["exercise"]
def my_k3(logprobs, ref_logprobs):
    """log-probabilities of the sampled tokens, any shape -> same shape"""
    return ...


check.k3(my_k3)

# %% [markdown]
# **06.6 Implement** · 20 minutes · ●●●. The whole loss, to be minimised. Rewards may be all equal, what lies under the mask
# may be anything, a row may have no token at all.
#
# <details><summary>hint</summary>
#
# Five steps: clean the padding, advantages per group, ratio with clip and min, $k_3$, mean inside each answer and then over
# answers. `check.grpo_loss.hint` has a little more.
# </details>

# %% tags=["exercise"]
def my_grpo_loss(logprobs, old_logprobs, ref_logprobs, mask, rewards,
                 num_generations, epsilon, beta):
    """(B, T) log-probabilities, (B, T) bool mask, (B,) rewards -> 0-d"""
    return ...


check.grpo_loss(my_grpo_loss)

# %% [markdown]
# **06.7 Find the bug** · 8 minutes · ●●○. This passed its test on the running group, and in training the loss curve looked fine.
# One assertion about the advantages exposes it. Which?

# %% tags=["exercise"]
def suspicious_advantages(rewards, num_generations, eps=1e-6):
    r = rewards.view(-1, num_generations)
    mean = r.mean(1).repeat(num_generations)
    std = r.std(1, correction=0).repeat(num_generations)
    return (rewards - mean) / (std + eps)


print(four(suspicious_advantages(running_group().rewards, 4)))

# %% [markdown]
# <details><summary>hint</summary>
#
# One prompt cannot show it. Take `running_batch()` and think of what must be true inside every group.
# </details>
#
# **06.8 Find the bug** · 5 minutes · ●●○. In place of $1/T_i$ somebody wrote `per_answer = (per_token * mask).mean(1)`. On the
# running group the value is even 0, as it should be on fresh data. What is wrong, and why does the same answer weigh differently in another batch?
#
# <details><summary>hint</summary>
#
# What does `mean` divide by? Add ten columns of padding and compute again.
# </details>
#
# All solved and run in [solutions/06_grpo.ipynb](solutions/06_grpo.ipynb).
#
# ## In the interview
#
# **How does GRPO drop the critic, and what does it cost?**
# <details><summary>answer</summary>
#
# Sample G answers per prompt and use their mean reward as the baseline: an estimate of V(prompt) with variance σ²/G. It saves a
# second trained model, 16 bytes a parameter, and the critic's own learning problem. It costs G generated answers per prompt, gives
# one advantage to all tokens of an answer (no credit inside it), needs an environment that can be asked the same prompt G times,
# and learns nothing from groups that are all right or all wrong.
# </details>
#
# **Write the loss on the whiteboard.**
# <details><summary>answer</summary>
#
# Minus the mean over answers, of the mean over each answer's own tokens, of min(ρA, clip(ρ, 1−ε, 1+ε)A) − β·k3. A is the group's z-score,
# the same for all tokens; ρ = π/π_old per token; k3 = π_ref/π − 1 − log(π_ref/π). Say aloud: mask before exp, old log-probs carry no gradient,
# with one update per batch ρ is 1 and the clip does nothing.
# </details>
#
# **My loss is 0 from the first step. Is it broken?**
# <details><summary>answer</summary>
#
# No. On-policy ρ = 1, and the advantages of a group sum to zero, so under the sequence mean the value is 0 while the gradient is not.
# With KL the value starts at 0 and rises. Watch reward, share of mixed groups, gradient norm. If the gradient norm is 0: all groups have equal
# rewards, or everything is masked.
# </details>
#
# **Which std, and does it matter?**
# <details><summary>answer</summary>
#
# The papers do not say. TRL and verl use Bessel (G−1), with ε 1e-4 and 1e-6; others the population std. The two differ by √(G/(G−1)), 1.15 at G = 4:
# one constant, so it only shifts the balance with KL and entropy terms. Whether to divide at all is the real choice: it weights prompts by how
# uneven they are. And Bessel at G = 1 is NaN.
# </details>
#
# **GRPO's mean or RLOO's leave-one-out?**
# <details><summary>answer</summary>
#
# r − mean = (G−1)/G · (r − mean of the others). Own reward included, the expected gradient shrinks by (G−1)/G and keeps its direction: a learning
# rate. What really separates the two methods is the std, the clip, and the average over tokens. Never take the std of the others too:
# in 1, 0, 0, 0 it is 0 and the advantage is 1/ε.
# </details>
#
# **Group size: 1, 2, very large?**
# <details><summary>answer</summary>
#
# 1: no comparison; 0, or NaN with Bessel. 2: a pairwise comparison, A = ±1 whatever the gap, mixed at most half of the time. Large: the baseline becomes
# V(prompt), its noise factor 1 + 1/(G−1) is 1.14 at 8 and 1.02 at 64; what a large group really buys is a mixed group on hard prompts
# (p = 0.01: 8 % at G = 8, 47 % at 64). Cost grows linearly. Start at 8 to 16; DeepSeekMath used 64.
# </details>
#
# **Why k3, and why in the loss?**
# <details><summary>answer</summary>
#
# Per token, never negative, mean equal to KL(π‖ref), small variance near the reference. In the loss because in the reward it would pass
# through the group's mean and std and end up as one number per answer. The catch: unbiased as a value, but its gradient on samples of π is 1 − ref/π, which in expectation follows KL(ref‖π).
# Close to the reference the difference is small. Many current recipes drop the term.
# </details>
#
# **What is in memory for PPO, GRPO, GRPO with a verifier?**
# <details><summary>answer</summary>
#
# At 16 bytes per trained and 2 per frozen parameter: PPO 36 (policy, critic, reference, reward model); GRPO 20; with a rule instead of a reward model 18;
# without reference 16. 2.25 times from first to last, not four. The old policy is stored as log-probs, not weights. Add the sampler's copy and
# activations.
# </details>
#
# **What does the 1/T in each answer do?**
# <details><summary>answer</summary>
#
# Each answer counts once, so a token of a long answer weighs less: a long wrong answer is punished less per token than a short one. Page 07
# measures it, page 08 removes it.
# </details>
#
# **When would you still take PPO?**
# <details><summary>answer</summary>
#
# Long horizons where intermediate states are informative (the critic gives credit per token or turn), dense or graded rewards, few samples per prompt,
# or an environment that cannot be reset to the same state G times.
# </details>
#
# ## Recap
#
# The running group and its neighbour, on fresh data: the advantage of each answer, and below it what one of its tokens weighs in the
# gradient ($c\cdot A$, with $c$ the aggregation weight; the last token, where PPO's GAE is one step). PPO is given a critic that says ½ everywhere. Dr. GRPO, with $L_{\max}=8$, is a preview.

# %%
def recap(b, label):
    lengths = b.lengths.long()
    last = (torch.arange(len(lengths)), lengths - 1)   # (row, token)
    b = b.replace(old_logprobs=None,
                  values=torch.full_like(b.completion_mask, 0.5))
    print(label)
    for name in ("reinforce", "rloo", "ppo", "grpo", "dr_grpo"):
        out = ZOO[name](b)
        A, c = out.advantages[last], out.weights[last]
        print(f"{name:10s} A {four(A)}\n{'':9s} cA {four(c * A)}")


recap(running_group(), "one prompt: rewards 1 1 0 0, lengths 3 5 2 6")
print()
recap(running_batch(), "and a second: rewards 1 0 0 0, lengths 4 1 7 2")

# %% [markdown]
# * The mean reward of $G$ answers replaces the critic. It knows the prompt, not the states after it.
# * The std is a convention until you ask whether to divide at all; $|A|\le\sqrt{G-1}$; equal rewards teach nothing.
# * $k_3$ sits in the loss, per token; the answer's mean comes before the group's.
# * On fresh data, without KL, the loss is 0 and the gradient is not.
# * 36 bytes a parameter become 20; a verifier and no KL make it 16; the price is $G$ answers per prompt.
#
# Next, [07](07_grpo_biases.ipynb): what the two divisors $s$ and $T_i$ do to easy prompts, near-equal rewards and long answers. The last two methods
# of the table differ in exactly those, and in the KL:

# %%
from rlnb.objective import difference

print(difference(ZOO["grpo"], ZOO["dr_grpo"]))
