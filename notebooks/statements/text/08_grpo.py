# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 08 · statements: GRPO
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the long tables and the corner cases of the lesson,
# [08 · GRPO](../08_grpo.ipynb).

# %% tags=["setup"]
import warnings
from itertools import product
from math import comb
import torch
from rlnb import ZOO
from rlnb.classroom.explorers.group_advantage import compute
from rlnb.classroom.figures import learning_curves
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures import grpo as pictures, token_grid
from rlnb.classroom.pictures.recorded_runs import final
from rlnb.objective import logprob, token_mean
from rlnb.toys import running_batch, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

group = running_group()                    # lengths 3, 5, 2, 6
grpo = ZOO["grpo"].replace(terms=())       # without the KL term
fresh = running_group().replace(old_logprobs=None)     # on-policy

# %% tags=["setup"]
def four(numbers):
    """Four decimals each, no minus zero."""
    return " ".join(f"{round(float(x), 4) + 0.0:8.4f}" for x in numbers)


def group_advantages(rewards, num_generations, eps=1e-6):
    r = rewards.view(-1, num_generations)             # (P, G)
    centred = r - r.mean(1, keepdim=True)
    std = centred.square().mean(1, keepdim=True).sqrt()
    return (centred / (std + eps)).view(-1)           # (B,)

# %% tags=["setup"]
def k3(logprobs, ref_logprobs):
    d = ref_logprobs - logprobs                        # log(ref / pi)
    return torch.expm1(d) - d

# %% tags=["setup"]
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
# ## The advantage

# %% [markdown]
# ### G07 and G08 · two worked examples
#
# Four graded rewards, and eight. Which std do the given advantages use?

# %%
statement("G07")
statement("G08")

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

# %%
settle("G07", "true")
settle("G08", "true")

# %% [markdown]
# With Bessel the eight would start with 1.03. And a third of the extremes is not near zero.

# %% [markdown]
# ### G09 · the one failure
#
# Fifteen of sixteen right. What does the failure get, and what at eight of sixteen?

# %%
statement("G09")

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

# %%
settle("G09", "true")

# %% [markdown]
# ### G18 · a group of one
#
# One answer to a prompt, under either std.

# %%
statement("G18")

# %% tags=["claim:G18"]
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

# %%
settle("G18", "it depends")

# %% [markdown]
# Zero, or 0 divided by 0. Nothing can be learned either way, so `rlnb` refuses a group of one.

# %% [markdown]
# ### G02 · equal rewards without eps
#
# Eight ones, twelve times 0.7, ten times 0.3: in plain Python, and in torch.

# %%
statement("G02")

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

# %%
settle("G02", "false")

# %% [markdown]
# Twelve rewards of 0.7 do not sum to twelve times 0.7 in binary. The residue is divided by itself
# and all twelve answers are told −1: wrong, and never large. `rlnb` compares the largest with the
# smallest and returns exact zeros.
#
# One variant *does* explode: a leave-one-out mean over a leave-one-out std. In 1, 0, 0, 0 the
# others have std 0 and the numerator is 1.

# %%
lone = torch.tensor([1.0, 0.0, 0.0, 0.0])
rest = lone[1:]                                         # of answer 0
print(f"{(lone[0] - rest.mean()) / (rest.std() + 1e-6):,.0f}")
assert torch.isclose(lone[0] / (rest.std() + 1e-6), torch.tensor(1e6))

# %% [markdown]
# ### C03 · added, not clamped
#
# The small number beside the std.

# %%
statement("C03")

# %% tags=["claim:C03"]
eps = 1e-6
for std in (1e-6, 1e-5, 1e-4):
    pair = torch.tensor([std, -std])                   # has this std
    added = (group_advantages(pair, 2, eps)[0] / std).item()
    clamped = 1 / max(std, eps)
    print(f"std {std:.0e}: gain {added:9,.0f} added,"
          f" {clamped:9,.0f} clamped, {clamped / added - 1:.0%} apart")
    assert abs(added * (std + eps) - 1) < 1e-9 and added < clamped

# %%
settle("C03", "it depends")

# %% [markdown]
# ## What the group's mean stands for

# %% [markdown] tags=["cited:G31"]
# ### G31 · what a critic would know
#
# "A critic would have learned what the group mean gives for free." For one state it would: the
# group's mean estimates $V(\text{prompt})$, the expected reward before a word is written, with
# variance $\sigma^2/G$, where $\sigma^2$ is the variance of a single reward (DeepSeekMath,
# [2402.03300](https://arxiv.org/abs/2402.03300), section 4.1). A critic has a value after every
# token. Say instead: it estimates the value of the prompt, not of the states along the answer.
#
# A toy with one fork: half the answers begin with *a* and then succeed with 0.9, half with *b* and
# succeed with 0.1. The group is so large that its mean is the value of the prompt, and nothing is
# divided.

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
# The critic splits the surprise; the group hands all of it to every token. A good ending after the
# bad word *b* pays that word +0.5, where a critic says −0.4. Averaged over many answers *b* gets
# 0.1 · 0.5 − 0.9 · 0.5 = −0.4, the critic's number: the group is right on average and noisy per
# answer.

# %% [markdown]
# ### G32 · one advantage per answer
#
# With one reward per answer. And the gradient weight per token, on fresh data?

# %%
statement("G32")

# %% tags=["claim:G32"]
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

# %%
settle("G32", "true")

# %% [markdown]
# The same *weight* only inside one answer and on fresh data: lengths differ from answer to answer,
# and off-policy ratio and clip differ from token to token.

# %% [markdown]
# ## The loss

# %% [markdown]
# ### M14 · the name of 1/T
#
# A popular lesson calls the average inside each answer "the token-level loss".

# %%
statement("M14")

# %% tags=["claim:M14"]
by_answer = grpo(group).weights[:, 0]                  # (4,)
by_token = grpo.replace(weights=token_mean)(group).weights[:, 0]
print("lengths         ", *(f"{n:8.0f}" for n in group.lengths))
print("sequence mean   ", four(by_answer))
print("token mean      ", four(by_token))
assert torch.allclose(by_answer, 1 / (4 * group.lengths))
assert torch.allclose(by_token, torch.full((4,), 1 / 16))

# %%
settle("M14", "it depends")

# %% [markdown]
# That name belongs to the other rule, one mean over all tokens. Say *sequence mean* for this one;
# TRL writes `loss_type="grpo"`, verl `seq-mean-token-mean`. A token of the two-token answer weighs
# three times a token of the six-token one (page 09).

# %% [markdown]
# ### M07 · the gradient under a KL
#
# With $\beta$ the KL coefficient, what stands in front of $\nabla\log\pi$ on fresh data?

# %%
statement("M07")

# %% tags=["claim:M07"]
beta, A = 0.04, 1.0
for ratio in (1.5, 1.0, 0.5):                          # ref / pi
    lp = torch.tensor(0.3).log().requires_grad_()
    rho = (lp - lp.detach()).exp()                     # 1, with gradient
    ref = lp.detach() + torch.tensor(ratio).log()
    (rho * A - beta * k3(lp, ref)).backward()
    print(f"ref/pi {ratio}: coefficient {lp.grad:.4f}")
    assert torch.isclose(lp.grad, torch.tensor(A + beta * (ratio - 1)))

# %%
settle("M07", "it depends")

# %% [markdown]
# ### C06 · the whole loss in a line
#
# Value and gradient against the package. `anchor_logprobs` is $\log\pi_\text{old}$, or on fresh
# data the current log-probs, detached.

# %%
statement("C06")

# %% tags=["claim:C06"]
def both(b):
    mine = grpo_loss(b.logprobs, b.anchor_logprobs, b.ref_logprobs,
                     b.completion_mask, b.rewards, 4)
    theirs = ZOO["grpo"](b).loss
    grads = [torch.autograd.grad(x, b.logprobs)[0] for x in (mine, theirs)]
    return mine, theirs, (grads[0] - grads[1]).abs().max()


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

# %%
settle("C06", "true")

# %% [markdown]
# ### C04 · A log π plus KL
#
# On fresh data, and on a batch whose ratios have moved.

# %%
statement("C04")

# %% tags=["claim:C04"]
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

# %%
settle("C04", "false")

# %% [markdown]
# ### C02 · where the baseline enters
#
# A comment in a popular lesson, next to the mean over the group in the loss. Try it: leave the
# average out and divide the learning rate by $G$.

# %%
statement("C02")

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

# %%
settle("C02", "false")

# %% [markdown]
# The baseline is the *subtraction*. Without it the largest push goes to arm 2, drawn nine times in
# 16, and not to arm 3, the best.
#
# ## A bandit, and a network

# %% [markdown]
# ### C01 · solved from comparisons
#
# A bandit with four arms, plain torch, no critic, and no arm ever told its true value: only
# comparisons inside groups of 16 draws. 200 seeds side by side. `divide` is the z-score; without it
# only the mean is subtracted. `shuffle` is the control: the same rewards handed to the wrong draws.

# %%
statement("C01")

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
# Four arms of the experiment. The numbers are sampled.

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

# %%
settle("C01", "true")

# %%
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
# *Relative rewards alone find the best arm on every seed; at the same learning rate the z-score
# (GRPO) gets there in about a fifth of the steps of mean-only (Dr. GRPO's advantage), and with the
# rewards shuffled nobody arrives. 20 of the 200 seeds are drawn.* The grey seeds wander all the
# same: advantages of size one move a policy even when they mean nothing.
#
# Read the third line of the table before you conclude anything. In this toy no std exceeds 0.4, so
# dividing by it is a larger step: with five times the learning rate the mean-only rule is as fast.
# Within a group both point the same way; only the length of the step differs. And it is a toy: one
# prompt, no noise in the rewards.
#
# **Does a transformer need the baseline?** The recorded model with 0.3 million weights, 40 steps of
# 8 × 8 answers, rewards 0 and 1, AdamW at one learning rate: REINFORCE without a baseline against
# leave-one-out, six seeds each, held-out pass@1.

# %%
for label, run in (("no baseline", "chain_no_baseline"),
                   ("leave one out", "chain_rloo")):
    for step_number in (20, 40):
        print(f"{label:14s} step {step_number}",
              *(f"{x:.2f}" for x in final(run, step=step_number)))
assert min(final("chain_no_baseline")) > max(final("chain_rloo")) - 0.01
pictures.recorded_baselines()

# %% [markdown]
# Not here: it does at least as well without. In the lesson's toy no baseline does as well too, with
# rewards 0 and 1: what goes there is the variety of the right answers. (With 1 and 2 it fails.) On
# the network other rewards and other learning rates were not run. A baseline can lower the
# *variance*, and it can raise it (page 03 has both exactly); one easy task is no test of what that
# buys.
#
# ## Memory and recipes

# %% [markdown]
# ### S03 and S08 · what is in memory
#
# The counting of page 07: a trained parameter costs 16 bytes (bf16 weight 2, gradient 2, float32
# copy 4, Adam's two moments 8), a frozen one 2. All models are of one size; activations and KV
# cache come on top.

# %%
statement("S03")
statement("S08")

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

# %%
settle("S03", "it depends")
settle("S08", "it depends")

# %% [markdown]
# "Half the memory" is fair: 44 to 56 %. Four times is not: 36/16 = 2.25. Compute is not halved
# either: the critic's forward and backward pass go, generation stays, at $G$ answers per prompt.
# Only the first line of savings is GRPO. Its first paper
# ([2402.03300](https://arxiv.org/abs/2402.03300)) trained against a learned reward model; a *rule*
# that checks the answer is what removes that, and dropping KL removes the reference.

# %% [markdown] tags=["cited:H15"]
# ### H15 · groups of 8 to 16
#
# "Groups of 8 to 16, learning rate 1e-6, one epoch" is common advice and a fair place to start, not
# a law. DeepSeekMath itself ([2402.03300](https://arxiv.org/abs/2402.03300), section 4.2) used
# $G=64$, learning rate 1e-6, KL coefficient 0.04 and *one* update per batch. With one update every
# ratio is 1, so in those runs the clip had nothing to do.

# %% [markdown] tags=["cited:H04"]
# ### H04 · how R1 was trained
#
# The run that made the method famous, DeepSeek-R1 ([2501.12948](https://arxiv.org/abs/2501.12948)),
# reports four stages: a supervised cold start, RL on reasoning with GRPO, rejection sampling with
# fine-tuning on about 800,000 samples, and RL again.

# %% [markdown]
# ## Tables and corner cases
#
# **Which std?** The paper leaves two things open: divide by $G$ or by $G-1$, and how large the
# added number is. The same four rewards, 1, 1, 0, 0, in well-known code:

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
# Bessel against population is one constant, $\sqrt{G/(G-1)}=1.1547$ at $G=4$: a learning rate and,
# against a KL term, another $\beta$. Dr. GRPO and RLOO differ from *each other* by a constant,
# $G/(G-1)$. The step from the last two rows to the others is not a constant: $\sigma_R$ depends on
# the prompt.
#
# **Two prompts.** One right answer in four gets $\sqrt3=1.7321$ less the added number's share, each
# wrong one $-1/\sqrt3$. Every group sums to zero.

# %%
two_prompts = running_batch() # the running group and a second prompt
A = group_advantages(two_prompts.rewards, two_prompts.num_generations)
print("rewards   ", four(two_prompts.rewards))
print("advantages", four(A))
theirs = ZOO["grpo"](two_prompts).advantages[:, 0]          # (B, T) -> (B,)
assert torch.allclose(A, theirs, atol=1e-12)
assert A.view(2, 4).sum(1).abs().max() < 1e-12        # zero in each group

# %% [markdown]
# **Corner groups.** With $G=2$ the advantage is ±1 whether the gap is 1 or 0.01. Equal rewards: all
# zero.

# %%
tries = {"1, 1, 0, 0": 4, "1, 0.99": 2, "1, 0": 16, "1, 1, 1, 1": 4}
for text, G in tries.items():
    d = compute(rewards=text, size=G, fill="last")
    A = d["advantages"]
    print(f"{text:10s} G={G:2d}  mean {d['mean']:.4f}  "
          f"std {d['divisor']:.4f}  first {A[0]:7.4f}  last {A[-1]:7.4f}")

# %% [markdown]
# **Variance of the baseline.** Your reward minus the mean of the $G-1$ others has variance
# $\sigma^2(1+\frac1{G-1})$, counted over all groups. And how often a group is mixed:

# %%
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
# From 8 to 64 the variance only falls from 1.1429 to 1.0159. At $p=0.01$ a group of 8 is mixed 8 %
# of the time, a group of 64 almost half, at eight times the answers; the lesson compares at equal
# numbers of answers.
#
# **Shift, scale, a half.** What happens to the advantages if you add 5 to all rewards, multiply by
# 10, or turn one 0 into 0.5? A shift leaves both methods alone. A factor cancels in the z-score and
# multiplies Dr. GRPO's advantages. The half moves everyone: there is only one mean.

# %%
base = torch.tensor([1.0, 1.0, 0.0, 0.0])
for name, r in (("as they are", base), ("plus 5", base + 5),
                ("times 10", base * 10),
                ("a half", torch.tensor([1.0, 1.0, 0.5, 0.0]))):
    b = running_group().replace(rewards=r)
    row = [" ".join(f"{a:7.4f}" for a in
                    ZOO[m].replace(terms=())(b).advantages[:, 0].tolist())
           for m in ("grpo", "dr_grpo")]
    print(f"{name:12s} GRPO {row[0]}   Dr. GRPO {row[1]}")

# %% [markdown]
# **A loss on paper.** One prompt, $G=2$, rewards 1 and 0, lengths 3 and 5. Three conventions, three
# numbers.

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
# By hand, first line ($A=±1$): the ratios after clip and min average (1.1 + 1.2 + 1.025)/3 = 1.1083
# and (0.8 + 1.2 + 0.9778 + 0.8 + 1.0286)/5 = 0.9613; minus half the difference is −0.0735. Bessel
# divides that by $\sqrt2$.
#
# **Which token is dead, and why.** `explain` shows one line per token: advantage, ratio, the gate
# (what is left of the ratio after the clip), the aggregation weight, and the gradient of the loss
# with respect to that token's log-probability. First without KL.

# %%
table = grpo.explain(group)
print(table)
dead = (table.gate == 0) & table.mask
assert dead.nonzero().tolist() == [[0, 1], [1, 1], [1, 3], [3, 0]]

# %%
A = group_advantages(group.rewards, 4)[:, None]
A = A.expand_as(table.gate)                            # (4, 6)
token_grid.token_grid(group, {
    "A: one number per answer": A.where(table.mask, 0),
    "the push: A times the gate": (A * table.gate).where(table.mask, 0)},
    caption="All tokens of an answer share one A. The ratio and the clip "
            "then differ from token to token.")

# %% [markdown]
# Four of 16 are dead, each already moved the way it should: three good tokens above 1.2, one bad
# token below 0.8. Row 1 token 0 is outside the band too (0.75) and alive: a good token that *fell*.
# Row 2 token 0 is the other mistake: bad, and up 3.5 times. Its 0.4375 is the largest push in the
# table, and the clip leaves it alone.

# %% [markdown]
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
# **Why is the loss zero?** On fresh data $\rho=1$, so each answer contributes its $A_i$, and those
# sum to zero. The gradient does not.

# %%
loss = grpo(fresh).loss                               # KL-free, on-policy
gradient, = torch.autograd.grad(loss, fresh.logprobs)
print(f"loss {round(loss.item(), 4) + 0.0:.4f}, "
      f"gradient norm {gradient.norm():.4f}")
assert abs(loss) < 1e-12 and gradient.norm() > 0.2

penalty = ZOO["grpo"](fresh).loss
print(f"with KL the whole value is 0.04 * k3: {penalty:.4f}")

# %% [markdown]
# Under the *token mean* the value need not be 0: answer $i$ contributes $T_iA_i/\sum_jT_j$. The
# first prompt still cancels, only because $3+5=2+6$. The second does not.

# %%
both_fresh = running_batch().replace(old_logprobs=None)
answer_mean = grpo(both_fresh).loss
all_tokens = grpo.replace(weights=token_mean)(both_fresh).loss
print(f"sequence mean {round(answer_mean.item(), 4) + 0.0:.4f}")
print(f"token mean    {all_tokens:.4f}")
hand = -(3**0.5 * 4 - (1 + 7 + 2) / 3**0.5) / 30
assert abs(answer_mean) < 1e-12
assert abs(all_tokens - hand) < 1e-5

# %% [markdown]
# **The mean over padding.** `mean(1)` in place of $1/T_i$ divides by the padded width: the weight
# of an answer then depends on its longest neighbour in the batch. Ten columns of padding must not
# change the loss:

# %%
def padded_mean(per_token, mask):
    return (per_token * mask).mean(1)


def own_mean(per_token, mask):
    return (per_token * mask).sum(1) / mask.sum(1)


paper_mask = group.completion_mask                           # (4, 6)
A = group_advantages(group.rewards, 4)[:, None].expand_as(paper_mask)
wider = [torch.nn.functional.pad(x, (0, 10)) for x in (A, paper_mask)]
for name, rule in (("mean(1)", padded_mean), ("1 / T_i", own_mean)):
    before, after = rule(A, paper_mask), rule(*wider)
    print(name, [round(x, 4) for x in before.tolist()], "->",
          [round(x, 4) for x in after.tolist()])
    assert torch.allclose(before, after) == (rule is own_mean)

# %% [markdown]
# **$k_3$ by value and slope.** Zero where the two agree, positive on both sides. Descent goes
# against the slope: a token the reference likes four times better is pulled up with −3, one it
# likes four times less is pushed down with 0.75, and never with more than 1.

# %%
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
# **The largest advantage.** One against the rest reaches $\sqrt{G-1}$, with Bessel $(G-1)/\sqrt G$,
# and ten thousand random groups never pass it.

# %%
gen = torch.Generator().manual_seed(0)
for G in (2, 4, 8, 16, 64):
    r = torch.rand(10_000, G, generator=gen) ** 4      # skewed on purpose
    A = (r - r.mean(1, keepdim=True)) / r.std(1, keepdim=True, correction=0)
    one = torch.zeros(G)
    one[0] = 1.0
    extreme = (one - one.mean())[0] / one.std(correction=0)
    bessel = (one - one.mean())[0] / one.std()
    print(f"G={G:2d}: one against the rest {extreme:.4f},"
          f" with Bessel {bessel:.4f}")
    assert A.abs().max() <= (G - 1) ** 0.5 + 1e-9
    assert torch.isclose(extreme, torch.tensor(G - 1.0).sqrt())
    assert torch.isclose(bessel, torch.tensor((G - 1) / G**0.5))

# %% [markdown]
# **Five methods side by side.** The running group and its neighbour, on fresh data: the advantage
# of each answer, and below it what one of its tokens weighs in the gradient ($c\cdot A$, with $c$
# the aggregation weight; the last token, where PPO's GAE is one step). PPO is given a critic that
# says ½ everywhere. Dr. GRPO has $L_{\max}=8$.

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
# ## Which G? And does dividing help?
#
# Sixteen prompts of twenty possible answers each, as in the lesson, and 64 answers a step: 16
# prompts with 4 answers each, or 8 with 8, or 4 with 16, or 2 with 32. The grader errs one time in
# five, so that too large a rate hurts.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded
P, K = 16, 20                              # prompts, possible answers
right = (torch.arange(K) < torch.arange(2, 18)[:, None]).double()
start = torch.randn(P, K, generator=torch.Generator().manual_seed(1))
chance = (start.softmax(1) * right).sum(1)               # (P,)

def sweep(rule, low=0.0, G=4, rates=(1, 2, 4, 8, 16)):
    """Mean chance over the prompts, (rates, seeds)."""
    return torch.stack([train(rule, rate, low, G=G).mean(1)
                        for rate in rates])

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: train(rule, rate)
def train(rule, rate, low=0.0, n=200, G=4, steps=40, N=64):
    """N answers a step in groups of G, each to a prompt of its own.

    Wrong earns low, right earns low + 1. Returns the chance to be right
    on each prompt at the end, (n seeds, P).
    """
    dice, order = (torch.Generator().manual_seed(k) for k in (0, 2))
    z = start.repeat(n, 1, 1)
    for _ in range(steps):
        seen = torch.rand(n, P, generator=order).argsort(1)[:, :N // G]
        seen = seen.sort(1).values[:, :, None].expand(-1, -1, K)
        pi = z.gather(1, seen).softmax(2)                # (n, groups, K)
        y = pi.reshape(-1, K).multinomial(G, True, generator=dice)
        y = y.view(n, -1, G)
        good = right.expand(n, P, K).gather(1, seen).gather(2, y)
        A = rule(low + good)
        push = torch.zeros_like(pi).scatter_add(2, y, A)
        push -= A.sum(2, keepdim=True) * pi
        z.scatter_add_(1, seen, rate / G * push)
    return (z.softmax(2) * right).sum(2)

# %%
def minus_mean(R):
    return R - R.mean(-1, keepdim=True)

def divided(R):
    return minus_mean(R) / (R.std(-1, correction=0, keepdim=True) + 1e-6)

# %%
def careless(rule):
    """`rule` under a grader that turns a fifth of the rewards round."""
    dice = torch.Generator().manual_seed(1)
    def graded(R):
        errs = torch.rand(R.shape, generator=dice) < 0.2
        return rule(torch.where(errs, 1 - R, R))
    return graded

# %%
many, trained = (2, 4, 8, 16, 32, 64, 128), {}
for name, rule in (("minus the mean", minus_mean),
                   ("divided by the std", divided)):
    trained[name] = {f"G = {G}": sweep(careless(rule), G=G, rates=many)
                     for G in (4, 8, 16, 32)}
    for size, arm in trained[name].items():
        k = arm.mean(1).argmax()
        error = arm[k].std() / len(arm[k]) ** 0.5
        print(f"{name:18s} {size:6s} best rate {many[k]:2d}: "
              f"{arm[k].mean():.3f} +- {error:.4f}")
pictures.rate_sweep(many, trained, chance.mean().item(), (
    "Eight ways to spend the same answers, and one height. What moves is "
    "the rate at which it is reached. 200 seeds."))

# %% [markdown]
# Each at its own best rate, all eight end within 0.01 of each other (after +-: one standard error).
# With the mean alone twice the group wants twice the rate; a prompt then comes up half as often.
# The std wants a smaller one: all it buys here is a larger step. In this toy prompts share nothing,
# so it does not tell which $G$ is best for a network. It tells that a comparison at one rate
# compares rates.

# %% [markdown]
# **A fixed number for a baseline.** Rewards 0 and 1, a number $b$ in the place of the mean, the
# hardest prompt alone. Every $b$ has the same expected gradient.

# %%
hard = chance.argmin()
fixed = {b: train(lambda R: R - b, 16)[:, hard].mean().item()
         for b in (-1, -0.5, -0.25, 0, 0.04, 0.25, 0.5, 0.9)}
for b in (-1, 0.9):
    more = train(lambda R: R - b, 16, n=50, G=64, N=1024)
    print(f"b = {b}, 16 times the answers: {more[:, hard].mean():.2f}")
pictures.fixed_numbers(fixed, chance[hard].item(), 0.04)

# %% [markdown]
# Both kinds fail by noise: with 16 times the answers they come back. Far below the pass rate every
# answer that is drawn is pushed up, nearly all of them wrong. Far above it every wrong answer that
# is drawn is pushed down. The number 0 happens to lie near this prompt's rate, so a 0/1 verifier
# gets away without a baseline.
#
# **The expected gradient, counted.** Three possible answers, all $3^G$ groups: with the mean of the
# others it is the true one, with the group's own mean $(G-1)/G$ of it.

# %%
pi3, R3 = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.0, 1.0])

def mean_push(rule, G):
    """Expected gradient on the logits, exact: all 3^G groups."""
    total = torch.zeros(3)
    for y in product(range(3), repeat=G):
        y = torch.tensor(y)
        A = rule(R3[y])
        pushed = torch.zeros(3).scatter_add(0, y, A) - A.sum() * pi3
        total += pi3[y].prod() * pushed / G
    return total

def minus_others(R):
    return R - (R.sum(-1, keepdim=True) - R) / (R.shape[-1] - 1)

# %%
truth = pi3 * (R3 - pi3 @ R3)                        # page 02
pushes = {"the others, G = 2": mean_push(minus_others, 2)} | {
    f"group's mean, G = {G}": mean_push(minus_mean, G) for G in (2, 4)}
assert torch.allclose(pushes["the others, G = 2"], truth)
for G in (2, 4):
    assert torch.allclose(pushes[f"group's mean, G = {G}"],
                          truth * (G - 1) / G)
pictures.mean_pushes(truth.tolist(), {
    name: values.tolist() for name, values in pushes.items()})

# %% [markdown]
# **Two prompts in one batch.** Inside one group the std is a common factor and the direction stays.
# Two groups have two stds, and the direction of their sum turns:

# %%
pair = [torch.tensor([1.0] * k + [0.0] * (16 - k)) for k in (8, 1)]
pictures.two_prompts({
    name: [rule(R)[R > 0].sum().item() for R in pair]
    for name, rule in (("minus the mean", minus_mean),
                       ("divided by the std", divided))})

# %% [markdown]
# **Equal in number, not in force.** 128 answers to a prompt answered right once in fifty, in groups
# of 8 or of 64. Equally many right answers are pushed; the sum of their advantages is:

# %%
def force(G, rule, p=0.02):
    """Expected sum of the positive advantages of 128 answers."""
    total = 0.0
    for k in range(1, G):
        A = rule(torch.tensor([1.0] * k + [0.0] * (G - k)))
        total += comb(G, k) * p**k * (1 - p)**(G - k) * k * A[0].item()
    return 128 // G * total

for name, rule in (("minus the mean", minus_mean),
                   ("divided by the std", divided)):
    print(f"{name}: {force(8, rule):.2f} in groups of 8, "
          f"{force(64, rule):.2f} in groups of 64")

# %% [markdown]
# Back to the lesson, [08 · GRPO](../08_grpo.ipynb).

# %% [markdown]
# ## The group in more sizes
#
# Every answer of a group as a bar: how many are right, how large the group is, what the std adds.

# %% tags=["explorer"]
from rlnb.classroom import explorers
explorers.group_advantage_explorer()
