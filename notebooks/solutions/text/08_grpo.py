# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 08 · GRPO: solutions
#
# The exercises of [08](../08_grpo.ipynb), solved and run. Try first: reading a solution feels like knowing it.

# %%
import torch
from rlnb import ZOO, check
from rlnb.toys import running_batch, running_group
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## 08.1 The bound
#
# With the population std and $\varepsilon=0$ the advantages satisfy $\sum_j A_j=0$ and $\sum_j A_j^2=G$. Fix $A_1=x$. The others
# sum to $-x$, and $G-1$ numbers with a given sum have the smallest sum of squares when they are equal:
#
# $$G = x^2+\sum_{j>1}A_j^2\ \ge\ x^2+\frac{x^2}{G-1}=x^2\,\frac{G}{G-1}\quad\Longrightarrow\quad |x|\le\sqrt{G-1}.$$
#
# Equality: all the others are equal, that is one answer against $G-1$. Bessel's std is larger by
# $\sqrt{G/(G-1)}$, so its bound is $(G-1)/\sqrt G$. The check below tries 10,000 random groups and the extreme one.

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
# ## 08.2 Shift, scale, a half
#
# A shift leaves both methods alone: both subtract the mean. A factor of 10 cancels in the z-score (up to $\varepsilon$) and multiplies
# Dr. GRPO's advantages, so with Dr. GRPO the scale of the reward is part of the learning rate. The half moves everyone: there is
# only one mean.

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
# ## 08.3 Zero under one average, not under the other
#
# Sequence mean: each answer contributes $A_i/B$, whatever its length, and groups sum to zero: the value is 0. Token mean: answer
# $i$ contributes $T_iA_i/\sum_jT_j$. The first prompt still cancels, only because $3+5=2+6$. The second does not: the right answer
# has 4 tokens, the wrong ones 1, 7 and 2.

# %%
from rlnb.objective import token_mean

fresh = running_batch().replace(old_logprobs=None)
grpo = ZOO["grpo"].replace(terms=())
by_answer = grpo(fresh).loss
by_token = grpo.replace(weights=token_mean)(fresh).loss
print(f"sequence mean {round(by_answer.item(), 4) + 0.0:.4f}")
print(f"token mean    {by_token:.4f}")
hand = -(3**0.5 * 4 - (1 + 7 + 2) / 3**0.5) / 30
assert abs(by_answer) < 1e-12
assert abs(by_token - hand) < 1e-5

# %% [markdown]
# So "the loss must be 0 on-policy" is a fact about the sequence mean, not about GRPO's advantages.
#
# ## 08.4 The z-score

# %% tags=["solution"]
def group_advantages(rewards, num_generations):
    r = rewards.view(-1, num_generations)              # (P, G)
    centred = r - r.mean(1, keepdim=True)
    std = r.std(1, keepdim=True, correction=0)         # population
    return (centred / (std + 1e-6)).view(-1)           # (B,)


check.group_advantages(group_advantages)

# %% [markdown]
# With `r.std(1, keepdim=True)` the check accepts it too, and says whose convention it is.
#
# ## 08.5 k3

# %% tags=["solution"]
def k3(logprobs, ref_logprobs):
    d = ref_logprobs - logprobs                        # log(ref / pi)
    return torch.expm1(d) - d


check.k3(k3)

# %% [markdown]
# ## 08.6 The whole loss

# %% tags=["solution"]
def grpo_loss(logprobs, old_logprobs, ref_logprobs, mask, rewards,
              num_generations, epsilon, beta):
    lp, old, ref = (torch.where(mask, x, 0.0) for x in
                    (logprobs, old_logprobs, ref_logprobs))
    A = group_advantages(rewards, num_generations)[:, None]   # (B, 1)
    rho = (lp - old).exp()                             # (B, T)
    clipped = rho.clamp(1 - epsilon, 1 + epsilon)
    worth = torch.minimum(rho * A, clipped * A) - beta * k3(lp, ref)
    worth = torch.where(mask, worth, 0.0)
    return -(worth.sum(1) / mask.sum(1).clamp(min=1)).mean()


check.grpo_loss(grpo_loss)

# %% [markdown]
# Three lines carry the edge cases. `where` on the inputs: what lies under the mask reaches neither value nor gradient.
# `clamp(min=1)`: a row without tokens is 0, not 0/0. The ε in the std: equal rewards give 0.

# %%
b = running_batch()
mine = grpo_loss(b.logprobs, b.old_logprobs, b.ref_logprobs, b.mask,
                 b.rewards, 4, 0.2, 0.04)
theirs = ZOO["grpo"](b).loss
print(f"mine {mine:.6f}, rlnb {theirs:.6f}")
assert abs(mine - theirs) < 1e-12

# %% [markdown]
# ## 08.7 `repeat` is not `repeat_interleave`
#
# `mean.repeat(4)` lays out $\bar r_1,\bar r_2,\bar r_1,\bar r_2,\dots$; the rows come as four answers of prompt 1, then four of prompt 2.
# With one prompt there is nothing to mix up. With two, right answers are measured against the wrong prompt. What must hold
# in every group is that the advantages sum to zero.

# %%
def suspicious_advantages(rewards, num_generations, eps=1e-6):
    r = rewards.view(-1, num_generations)
    mean = r.mean(1).repeat(num_generations)
    std = r.std(1, correction=0).repeat(num_generations)
    return (rewards - mean) / (std + eps)


def exposes(advantages):
    """True when some group's advantages do not sum to zero."""
    A = advantages(running_batch().rewards, 4)
    return bool((A.view(-1, 4).sum(1).abs() > 1e-9).any())


sums = suspicious_advantages(running_batch().rewards, 4).view(-1, 4).sum(1)
print("sum in each group", [round(x, 4) for x in sums.tolist()])
assert exposes(suspicious_advantages) and not exposes(group_advantages)

# %% [markdown]
# The mend is `repeat_interleave`, or better no repeating at all: stay in shape (P, G) and let broadcasting do it. The sum over the *whole*
# batch would not have caught it: 1.1547 − 1.1547 = 0.
#
# ## 08.8 A mean over padding
#
# `mean(1)` divides by the padded width: 6 on the running group, more when a neighbour in the batch is longer. The weight of a token is no
# longer $1/T_i$ but one over whatever the longest answer happened to be. On fresh data the value is still 0, because each answer's share
# becomes $T_iA_i/T_{\max}$ and $3+5=2+6$. The assertion: padding must not change the loss.

# %%
def padded_mean(per_token, mask):
    return (per_token * mask).mean(1)


def own_mean(per_token, mask):
    return (per_token * mask).sum(1) / mask.sum(1)


group = running_group()
mask = group.completion_mask                           # (4, 6)
A = group_advantages(group.rewards, 4)[:, None].expand_as(mask)
wider = [torch.nn.functional.pad(x, (0, 10)) for x in (A, mask)]
for name, rule in (("mean(1)", padded_mean), ("1 / T_i", own_mean)):
    before, after = rule(A, mask), rule(*wider)
    print(name, [round(x, 4) for x in before.tolist()], "->",
          [round(x, 4) for x in after.tolist()])
    assert torch.allclose(before, after) == (rule is own_mean)

# %% [markdown]
# A *fixed* constant in the place of $T_i$ is a method of its own (Dr. GRPO, page 10). The padded width is not a constant.
