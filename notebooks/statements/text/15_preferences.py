# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 15 · statements: preferences
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come what the lesson, [15 · Preferences](../15_preferences.ipynb), has no
# room for: the family, length, fresh pairs, self-judged pairs, and three names that one meets.

# %% tags=["setup"]
import torch
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures import preferences as pictures
from rlnb.objective import preference as losses
from rlnb.objective.preference import Pairs, dpo
from rlnb.toys import descend, descend_on_draws, kl_optimum
from rlnb.toys import tone_features
from rlnb.training.studies.preferences import recorded
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

ref = torch.tensor([0.3, 0.5, 0.2])              # No, Never, Yes
taste = torch.tensor([2.0, 1.0, 0.0])            # hidden scores of people
D = torch.tensor([[1.0, -1, 0], [1, 0, -1], [0, 1, -1]])   # three pairs
chance = torch.sigmoid(D @ taste)                # the first one wins

# %% tags=["setup"]
def push(z, beta):
    """Minus the gradient of DPO's mean loss on the three pairs."""
    wrong = chance - torch.sigmoid(beta * ((z - ref.log()) @ D.T))
    return beta * wrong @ D / 3

def kl(p, q):
    return (p * (p.log() - q.log())).nan_to_num(0).sum().item()

def said(p):
    return ", ".join(f"{x:.3f}" for x in p.tolist())

# %% [markdown]
# ## What DPO is

# %% [markdown]
# ### D01 · the implicit reward
#
# Take the best policy for a known reward, and read its log-ratio.

# %%
statement("D01")

# %% tags=["claim:D01"]
for beta in (0.1, 1.0):
    best = kl_optimum(ref, taste, beta)
    implicit = beta * (best.log() - ref.log())
    log_Z = (ref * (taste / beta).exp()).sum().log()
    print(f"β = {beta:g}: implicit {said(implicit)}, "
          f"β log Z = {beta * log_Z:.3f}")
    assert (implicit - taste).abs().min() > 0.1
    assert torch.allclose(implicit + beta * log_Z, taste, atol=1e-12)

# %%
settle("D01", "it depends")

# %% [markdown]
# ### D02 · Z cancels
#
# Train to the end with four β and multiply the log-ratio gap of No and Yes by β.

# %%
statement("D02")

# %% tags=["claim:D02"]
for beta in (0.1, 0.5, 1.0, 5.0):
    z = ref.log().clone()
    for _ in range(1000):
        z += push(z, beta) / beta**2             # a rate that suits each β
    h = z.log_softmax(0) - ref.log()
    best = kl_optimum(ref, taste, beta)
    print(f"β = {beta:g}: β (h_No - h_Yes) = {beta * (h[0] - h[2]):.3f}")
    assert torch.allclose(z.softmax(0), best, atol=1e-9)

# %%
settle("D02", "true")

# %% [markdown]
# ### D03 · small β, close to the reference?
#
# At the end, and after 20 steps of two optimizers.

# %%
statement("D03")

# %% tags=["claim:D03"]
betas = (0.1, 0.5, 1.0, 5.0)
ends = [kl(kl_optimum(ref, taste, beta), ref) for beta in betas]
early = {}
for name, make in (("SGD", lambda z: torch.optim.SGD([z], lr=0.2)),
                   ("Adam", lambda z: torch.optim.Adam([z], lr=0.05))):
    early[name] = []
    for beta in betas:
        z = ref.log().clone().requires_grad_()
        optimizer = make(z)
        for _ in range(20):
            z.grad = -push(z.detach(), beta)
            optimizer.step()
        early[name].append(kl(z.detach().softmax(0), ref))
for name, row in (*early.items(), ("the end", ends)):
    print(f"{name:8s}", "  ".join(f"{x:.3f}" for x in row))
assert ends == sorted(ends, reverse=True)
assert early["Adam"] == sorted(early["Adam"], reverse=True)
assert early["SGD"][0] < early["SGD"][1] < early["SGD"][2]
assert early["SGD"][2] > early["SGD"][3]

# %%
settle("D03", "false")

# %% [markdown] tags=["cited:D04"]
# ### D04 · one number, two roles
#
# "β scales both the size of the reward and the strength of the KL; use 0.1 to 0.5." It depends. In
# $\beta\,h$ and in the price of the KL it is the same number, and the lesson's derivation shows
# why. The range is habit: the DPO paper used 0.1 and 0.5 for summaries
# ([arXiv 2305.18290](https://arxiv.org/abs/2305.18290)).

# %% [markdown] tags=["cited:D09"]
# ### D09 · no sampling, no reward model, no critic
#
# True of the training loop ([arXiv 2305.18290](https://arxiv.org/abs/2305.18290)). Somebody sampled
# the pairs, and somebody judged them.

# %% [markdown]
# ## What becomes of the chosen answer

# %% [markdown]
# ### D05 · the chosen answer falls
#
# "No" preferred to "Never"; "Yes" is in no pair. A table, and a policy whose answers share a tone.

# %%
statement("D05")

# %% tags=["claim:D05"]
ways = {}
for name, k in (("table", 0.0), ("shared", 1.5)):
    ways[name] = descend(dpo, tone_features(k), ref, rate=1.0, steps=200)
    print(f"{name:6s} log π: start {said(ways[name][0])}, "
          f"end {said(ways[name][-1])}")
assert bool((ways["table"][:, 0].diff() > 0).all())
assert ways["shared"][-1, 0] < ways["shared"][0, 0] - 3
assert ways["shared"][-1, 2].exp() > 0.99

# %%
settle("D05", "it depends")

# %% [markdown]
# ### D08 · only the answers it was shown
#
# The same run: what did the answer that is in no pair gain?

# %%
statement("D08")

# %% tags=["claim:D08"]
start, end = ways["shared"][[0, -1]].exp()
print(f"Yes: from {start[2]:.3f} to {end[2]:.3f}")
assert end[2] > 0.99 > start[2] + 0.7

# %%
settle("D08", "it depends")

# %% [markdown]
# ### D06 · the rejected answer to minus infinity
#
# The slopes of the loss in the two *probabilities*, at 0.2 and 0.001; then the margin of a table
# with one label per pair.

# %%
statement("D06")

# %% tags=["claim:D06"]
p = torch.tensor([0.2, 0.001], requires_grad=True)   # chosen, rejected
one = torch.full((1,), 0.1).log()
dpo(Pairs(p[:1].log(), p[1:].log(), one, one)).sum().backward()
print(f"pull on the rejected one, over the chosen one's: "
      f"{-p.grad[1] / p.grad[0]:.0f}")
assert torch.isclose(-p.grad[1] / p.grad[0], torch.tensor(200.0))

z, margins = torch.zeros(2), []                  # a table of two answers
for step in range(1, 10_001):
    z += torch.sigmoid(z[1] - z[0]) * torch.tensor([1.0, -1.0])   # β = 1
    if step in (1, 10, 100, 1000, 10_000):
        margins.append((z[0] - z[1]).item())
print("margin after 1, 10, 100 ... steps:",
      " ".join(f"{m:.2f}" for m in margins))
assert min(b - a for a, b in zip(margins[1:], margins[2:])) > 2

# %%
settle("D06", "true")

# %% [markdown]
# It never stops: ten times the steps add about 2.3, the log of ten. With labels that are wrong one
# time in ten there is an end:

# %%
x = torch.zeros(())
for _ in range(2000):
    x = x.detach().requires_grad_()
    zero = torch.zeros(1)
    pair = Pairs(x[None], zero, zero, zero)
    x = x - torch.autograd.grad(
        losses.conservative_dpo(pair, 1.0, 0.1).sum(), x)[0]
print(f"conservative DPO stops at a margin of {x:.4f} = log 9")
assert torch.isclose(x, torch.tensor(9.0).log())

# %% [markdown]
# ### D12 · what repairs it
#
# One world (k = 1.5), 2,000 steps each. Log-probability of the chosen answer.

# %%
statement("D12")

# %% tags=["claim:D12"]
arms = {
    "DPO": (dpo, 1.0),
    "DPO + NLL": (lambda x: losses.dpo_nll(x, 0.1, 0.1), 1.0),
    "IPO": (losses.ipo, 0.01),
    "SimPO": (losses.simpo, 0.4),
    "DPO, length norm": (losses.normalized_dpo, 1.0),
    "DPO-Shift, f = 0.75": (lambda x: losses.dpo_shift(x, 0.1, 0.75), 1.0),
    "DPO-Shift, f = 0.5": (lambda x: losses.dpo_shift(x, 0.1, 0.5), 1.0)}
last = {}
print(f"at the start         log π(No) {ref[0].log():7.3f}")
for name, (loss, rate) in arms.items():
    last[name] = descend(loss, tone_features(1.5), ref, rate=rate,
                         steps=2000)[-1]
    print(f"{name:20s} log π(No) {last[name][0]:7.3f}   "
          f"No, Never, Yes {said(last[name].exp())}")
fell = {name for name, end in last.items() if end[0] < ref[0].log()}
assert fell == set(arms) - {"DPO + NLL", "DPO-Shift, f = 0.5"}

# %%
settle("D12", "it depends")

# %% [markdown]
# One token each, so that the length norm is DPO itself here. (IPO has stopped, SimPO nearly has,
# DPO has not.) KTO sees answers, not pairs: the same world, "No" marked good and "Never" bad,
# reference point 0 or the batch's own:

# %%
def kto(pair, point):
    logp = torch.cat([pair.chosen, pair.rejected])
    start = torch.cat([pair.ref_chosen, pair.ref_rejected])
    z0 = losses.kto_reference_point(logp, start) if point else 0.0
    return losses.kto(logp, start, torch.tensor([True, False]), z0)

for point in (False, True):
    end = descend(lambda x: kto(x, point), tone_features(1.5), ref,
                  rate=1.0, steps=2000)[-1]
    print("batch's own" if point else "0          ", said(end.exp()))
    assert end[0] > ref[0].log()

# %% [markdown]
# KTO keeps it: the good answer is pushed for its own sake, not only against the bad one.
#
# ## Equal gaps, other losses
#
# The same world and the same pair. Each loss is stopped where its gap $h_w-h_l$ reaches 4.9 nats.
# A loss of the gap alone has the gradient *number* times
# $\nabla\log\pi_w-\nabla\log\pi_l$, here one fixed direction. So DPO, IPO, and SimPO with equal
# lengths walk one road. The anchor also looks at $\log\pi_w$ itself. SimPO with other lengths looks
# at another gap.

# %%
def simpo_with(chosen, rejected):
    """SimPO, were No and Never so many tokens long."""
    T = torch.tensor([[chosen], [rejected]])
    return lambda x: losses.simpo(Pairs(
        x.chosen, x.rejected, x.ref_chosen, x.ref_rejected, *T), 1.0, 0.5)

arms = {"DPO": (dpo, 1.0), "IPO": (losses.ipo, 0.01),
        "SimPO, lengths 1 and 1": (simpo_with(1.0, 1.0), 0.1),
        "SimPO, lengths 3 and 6": (simpo_with(3.0, 6.0), 0.1),
        "SimPO, lengths 6 and 3": (simpo_with(6.0, 3.0), 0.1),
        "anchor, α = 0.1": (lambda x: losses.dpo_nll(x, 0.1, 0.1), 1.0),
        "anchor, α = 1": (lambda x: losses.dpo_nll(x, 0.1, 1.0), 0.1)}

# %%
ends = {}
for name, (loss, rate) in arms.items():
    path = descend(loss, tone_features(1.5), ref, rate=rate, steps=600)
    gap = (path[:, 0] - path[:, 1]) - (ref[0] / ref[1]).log()
    stop = int((gap < 4.9).sum())
    assert stop < len(path)
    ends[name] = path[stop].exp()
    print(f"{name:24s} gap {gap[stop]:.2f}   No, Never, Yes "
          f"{said(ends[name])}")
assert (ends["DPO"] - ends["IPO"]).abs().max() < 0.05

# %% [markdown]
# Dividing by the length helps or harms, as the lengths happen to be: No keeps most with 3 and 6,
# and loses nearly all with 6 and 3.

# %% [markdown] tags=["cited:D07"]
# ### D07 · is it reward hacking?
#
# In spirit. No reward model is being fooled, for there is none; a proxy is pushed too far. Call it
# over-optimisation: for reward models Gao et al. measured it
# ([arXiv 2210.10760](https://arxiv.org/abs/2210.10760)), for DPO the lesson's recorded run shows
# it: the margin grows on while the share of right answers falls.

# %% [markdown]
# ## Bradley-Terry

# %% [markdown]
# ### D10 · scale and offset
#
# Scores 0, 1.5 and 4.5 explain 4,000 noisy comparisons; fit them again. Then the same with labels
# that never err.

# %%
statement("D10")

# %% tags=["claim:D10"]
dice = torch.Generator().manual_seed(0)
true = torch.tensor([0.0, 1.5, 4.5])
a = torch.randint(3, (4000,), generator=dice)
b = (a + 1 + torch.randint(2, (4000,), generator=dice)) % 3
noisy = torch.rand(4000, generator=dice) < torch.sigmoid(true[a] - true[b])

def fitted(first_wins, steps, offset=0.0):
    w, l = torch.where(first_wins, a, b), torch.where(first_wins, b, a)
    wins = torch.zeros(3, 3).index_put((w, l), torch.tensor(1.0), True)
    s = torch.full((3,), offset)
    for _ in range(steps):
        wrong = wins * torch.sigmoid(s[None] - s[:, None])
        s = s + 4 * (wrong.sum(1) - wrong.sum(0)) / len(w)
    return s - s[0] if not offset else s

print("noisy labels, gaps", said(fitted(noisy, 3000)[1:]))
print("started at 10     ", said(fitted(noisy, 3000, offset=10.0)))
clean = [fitted(true[a] > true[b], n)[2].item()
         for n in (100, 1000, 10_000)]
print("clean labels, after 100, 1,000, 10,000 steps",
      " ".join(f"{x:.2f}" for x in clean))
assert (fitted(noisy, 3000) - true).abs().max() < 0.2
assert clean[0] < clean[1] - 1 < clean[2] - 2

# %%
settle("D10", "it depends")

# %% [markdown]
# The offset stays where it started. TRL pulls it to 0 with `center_rewards_coefficient`, a small
# multiple of $(r_w+r_l)^2$.

# %% [markdown]
# ### D11 · so GRPO must standardise
#
# Add 7 to every reward of a group.

# %%
statement("D11")

# %% tags=["claim:D11"]
R = torch.tensor([0.2, 0.9, 0.4, 0.5])
for name, rule in (("the reward itself", lambda R: R),
                   ("minus the mean", lambda R: R - R.mean()),
                   ("z-score", lambda R: (R - R.mean()) / R.std())):
    same = torch.allclose(rule(R), rule(R + 7))
    print(f"{name:18s} {'unchanged' if same else 'changed'}")
    assert same == (name != "the reward itself")

# %%
settle("D11", "it depends")

# %% [markdown]
# ## Names that one meets

# %% [markdown] tags=["cited:H17"]
# ### H17 · POWER, PG-DPO, DPO-Shift
#
# "They bound the preference score." What could be verified:
#
# * **POWER** ([arXiv 2412.09544](https://arxiv.org/abs/2412.09544)): preference optimisation with
#   weighted-entropy robust rewards. It names two kinds of reward hacking, poor answers that look
#   good and decent ones that look bad by the luck of a sparse data set; against the first stands a
#   weighted entropy, against the second (POWER-DL) labels that drift towards what the model has
#   learned, so that pairs it does not trust lose their gradient. The abstract says so; we found no
#   public code, and do not print a loss that we could not check.
# * **DPO-Shift** ([arXiv 2502.07599](https://arxiv.org/abs/2502.07599)): a factor below 1 on the
#   rejected log-ratio. Checked against the authors' code; it is `dpo_shift`, and D12 above runs it.
#   Its gradient is $f$ times DPO's plus $(1-f)$ times an anchor's on the chosen answer: a built-in
#   NLL that fades with the margin.
# * **PG-DPO**: we found no preference method under this name. It is Pontryagin-Guided Direct Policy
#   Optimization, for portfolios ([arXiv 2504.11116](https://arxiv.org/abs/2504.11116)). In a list
#   beside DPO-Positive somebody may have meant that one
#   ([arXiv 2402.13228](https://arxiv.org/abs/2402.13228)): DPO with a penalty where the chosen
#   answer falls below the reference.

# %% [markdown]
# DPO-Shift's gradient, as said:

# %%
logp = torch.tensor([-1.0, -2.0], requires_grad=True)
zero = torch.zeros(1)
pair = Pairs(logp[:1], logp[1:], zero - 1.2, zero - 1.7)
shift, = torch.autograd.grad(losses.dpo_shift(pair, 0.1, 0.6).sum(), logp)
size = -shift[0]                     # beta times the chance of being wrong
parts = size * (0.6 * torch.tensor([-1.0, 1.0])
                + 0.4 * torch.tensor([-1.0, 0.0]))
print("slopes", said(shift), "= 0.6 DPO + 0.4 anchor", said(parts))
assert torch.allclose(shift, parts)

# %% [markdown]
# ## The family
#
# $h$ is the log-ratio, summed over tokens; $T$ a length. `rlnb.objective.preference` has them all.
# Value and gradient equal those of the installed TRL 1.16 to 1e-12 on 382 recorded batches
# (`tests/parity/test_trl_preference.py`: DPO, KTO, CPO and reward trainers).
#
# | loss | per pair | TRL's words |
# |---|---|---|
# | Bradley-Terry | $-\log\sigma(r_w-r_l-m)$ | `RewardTrainer`, column `margin` |
# | DPO | $-\log\sigma(\beta(h_w-h_l))$ | `loss_type="sigmoid"` |
# | conservative | $(1-e)$ DPO $+\,e$ DPO of the pair turned round | in CPO: `label_smoothing` |
# | robust | $((1-e)\ldots-e\ldots)/(1-2e)$ | `"robust"` |
# | IPO | $(h_w-h_l-\frac1{2\beta})^2$ | CPO's `"ipo"`; DPO's divides $h$ by $T$ |
# | length norm | $-\log\sigma(\beta(h_w/T_w-h_l/T_l))$ | `"sigmoid_norm"` |
# | DPO + NLL (RPO) | DPO $-\,\alpha\log\pi_w/T_w$ | `["sigmoid", "sft"]`: one mean over the batch's tokens |
# | DPO-Shift | $-\log\sigma(\beta(h_w-fh_l))$ | none |
# | SimPO | $-\log\sigma(\beta(\log\pi_w/T_w-\log\pi_l/T_l)-\gamma)$ | CPO, `"simpo"`, `cpo_alpha=0` |
# | KTO | good: $1-\sigma(\beta(h-z_0))$, bad: $1-\sigma(\beta(z_0-h))$ | `KTOTrainer` |

# %%
pair = Pairs(*torch.tensor([[-6.0], [-9.0], [-8.0], [-8.0], [4.0], [5.0]]))
for name, loss in {                              # h = 2 and -1, beta 0.1
        "DPO": dpo, "conservative 0.1": losses.conservative_dpo,
        "robust 0.1": losses.robust_dpo, "IPO": losses.ipo,
        "IPO, per token": losses.normalized_ipo,
        "length norm": losses.normalized_dpo, "DPO + NLL": losses.dpo_nll,
        "DPO-Shift 0.75": losses.dpo_shift, "SimPO": losses.simpo}.items():
    print(f"{name:18s} {loss(pair).item():9.6f}")

# %% [markdown]
# ## Length
#
# Answers are good or bad and 1 to 8 tokens long; the reference takes all alike. A judge scores 2
# for good, and 0.3 per token if it likes length. 4,000 steps on exact chances, β = 1: mean length,
# and chance to be good.

# %%
good, size = torch.meshgrid(torch.tensor([1.0, 0.0]),
                            torch.arange(1.0, 9.0), indexing="ij")
good, size = good.flatten(), size.flatten()      # 16 kinds of answers
flat = torch.full((16,), 1 / 16)
pick = torch.combinations(torch.arange(16))

def trained(score, per_token=False, penalty=0.0, steps=4000):
    """DPO on all 120 pairs with exact chances; the policy at the end."""
    i, j = pick.T
    T, rate = (size, 4) if per_token else (torch.ones(16), 16)
    chance = torch.sigmoid(score[i] - score[j])
    z = torch.zeros(16)
    for _ in range(steps):
        h = z.log_softmax(0) - flat.log()
        x = h[i] / T[i] - h[j] / T[j] + penalty * (size[i] - size[j])
        wrong = (chance - torch.sigmoid(x)) / 120 * rate
        up = torch.zeros(16).index_add(0, i, wrong / T[i])
        up = up.index_add(0, j, -wrong / T[j])
        z = z + up - up.sum() * z.softmax(0)
    return z.softmax(0)

# %%
fair, likes_length = 2 * good, 2 * good + 0.3 * size
for name, policy in {
        "start": flat,
        "DPO, fair judge": trained(fair),
        "DPO, judge likes length": trained(likes_length),
        "the same, margin 0.3 a token": trained(likes_length, penalty=0.3),
        "length norm, fair judge": trained(fair, True),
        "length norm, judge likes length": trained(likes_length, True)
        }.items():
    print(f"{name:32s} length {(policy * size).sum():.2f}   "
          f"good {(policy * good).sum():.2f}")

# %% [markdown]
# DPO learns the judge's taste for length and nothing of its own: with a fair judge the length
# stays. A margin per token takes the taste out exactly, if one knows it. The norm does not: it asks
# for a reward *per token*, $h=T\,r/\beta$, and so ties the policy to length with either judge.
#
# ## Fresh pairs: on-policy DPO
#
# The lesson's world, k = 1.5. Before each step two different answers are drawn from the policy as
# it is now, and people with scores 2, 1, 0 compare them (exact means over both draws).

# %%
found = {name: descend_on_draws(tone_features(1.5), ref, taste,
                                fresh=name == "fresh pairs").exp()
         for name in ("given pairs: No, Never", "fresh pairs")}
for name, path in found.items():
    print(f"{name:24s} {said(path[-1])}")
pictures.triangle(found, "Fresh pairs bring Yes into a comparison as "
                         "soon as it rises, and it loses.")

# %% [markdown]
# Here people also err, so the given pair has a finite optimum too, and it lies far along the road
# to Yes. On the small model, share of right answers to new prompts (all arms: 40 steps of 64
# pairs):

# %%
file = recorded()
print(f"pass@1 at the start {file['header']['pass@1']:.2f}; after "
      f"{file['header']['graded']} steps, mean of three seeds:")
for name, arm in file.items():
    if name != "header":
        rates = torch.tensor([run["pass@1"] for run in arm]).mean(0)
        print(f"{name:18s}", " ".join(f"{x:.2f}" for x in rates.tolist()),
              f"  answers drawn: {arm[0]['answers']:,}")

# %% [markdown]
# More given pairs rise higher and still turn; fresh ones do not. SFT on the right answers alone
# teaches nothing here: they are the model's own. So what DPO + NLL gained came from the pairs.
#
# ## In practice
#
# The reference costs a frozen copy and one more forward pass; its log-probabilities can be computed
# once and cached, for pairs and reference do not change. SFT on the chosen answers comes first when
# another model wrote the pairs: else the reference finds both answers unlikely, and their log-ratio
# says little. TRL's `DPOTrainer` starts from β = 0.1 and learning rate 1e-6.
#
# ## The policy as its own judge
#
# *Self-rewarding* ([arXiv 2401.10020](https://arxiv.org/abs/2401.10020)): the model judges its own
# answers. The smallest such judge prefers what the model finds likelier. Sixteen prompts, five
# answers each, one right; rounds of exact DPO, β = 2, the reference is the round before:

# %%
dice = torch.Generator().manual_seed(3)
z0 = torch.randn(16, 5, generator=dice)          # answer 0 is the right one
for judge in ("its own log-probability", "the truth, right in 70 %"):
    logp = z0.log_softmax(1)
    shares = [logp[:, 0].exp().mean().item()]
    for _ in range(6):
        if judge.startswith("its"):
            score = logp
        else:                                    # sigma(r) = 0.7
            score = torch.tensor([0.8473, 0, 0, 0, 0]).expand(16, 5)
        logp = (logp + score / 2).log_softmax(1)
        shares.append(logp[:, 0].exp().mean().item())
    print(f"{judge:26s}", " ".join(f"{s:.2f}" for s in shares))
likeliest = (z0.argmax(1) == 0).double().mean()
print(f"prompts where the right answer was the likeliest: {likeliest:.2f}")

# %% [markdown]
# Judging by its own taste, the model sharpens: it ends at the share of prompts on which it was
# right in the first place. A weak judge that knows something is another matter. Self-rewarding
# works as far as judging is easier than answering.
#
# ## SPIN: the model against the data
#
# *Self-play fine-tuning* ([arXiv 2401.01335](https://arxiv.org/abs/2401.01335)): the chosen answer
# is a demonstration, the rejected one is the model's own. Each round is DPO with the round before
# as the reference. Its optimum is $\pi_{t+1}\propto\pi_t\,(p_{data}/\pi_t)^{1/\beta}$:

# %%
data = torch.tensor([0.7, 0.2, 0.1])
for beta in (0.4, 0.5, 1.0, 2.0, 5.0):
    p, row = ref, []
    for _ in range(6):
        row.append(kl(data, p))
        p = (p.log() + (data.log() - p.log()) / beta).softmax(0)
    print(f"β = {beta:g}: KL(data, model)",
          " ".join(f"{x:.3f}" for x in row))

# %% [markdown]
# At the data the two answers of a pair have one distribution, nothing can be learned, and it stops:
# SPIN cannot pass its demonstrations. β = 1 arrives in one round, a larger β approaches, β = 0.5
# swings from side to side, and a smaller one leaves for good.
