# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 · statements: KL
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the long tables of the lesson, [05 · KL](../05_kl.ipynb).

# %% tags=["setup"]
import math
import torch
from rlnb import ZOO, Batch, objective as parts
from rlnb.classroom import explorers, figures
from rlnb.classroom.explorers.kl_estimators import compute
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures import kl as pictures, trpo
from rlnb.objective import Objective, gae, raw_reward
from rlnb.toys import SequencePolicy, estimator_moments, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

ref = torch.tensor([0.1, 0.4, 0.2, 0.3])      # the reference
z = torch.tensor([0.3, -0.5, 1.1, 0.0])       # the policy's logits
pi = z.softmax(0)
old = ((z + ref.log()) / 2).softmax(0)        # half-way back
l = (pi / ref).log()                          # log-ratio of each token
KL = pi @ l

# %%
def k1(l): return l
def k2(l): return l**2 / 2
def k3(l): return torch.expm1(-l) + l         # exp(-l) - 1 without rounding

def show(x):
    """The numbers of a tensor: four decimals, no negative zero."""
    flat = torch.as_tensor(x).detach().flatten().tolist()
    return [round(v, 4) + 0.0 for v in flat]

# %% [markdown]
# ### K01 · k3, never negative
#
# Lesson: "What is the value of each estimate?"

# %%
statement("K01")

# %% tags=["claim:K01"]
for k in (k1, k2, k3):
    print(f"{k.__name__} per token {show(k(l))}  mean {show(pi @ k(l))}")
print("KL(pi || ref)", show(KL))
assert k1(l).min() < 0 and k3(l).min() > 0
assert torch.isclose(pi @ k1(l), KL) and torch.isclose(pi @ k3(l), KL)

grid = torch.arange(-20_000, 20_001) / 1000  # log-ratios
assert k3(grid).min() == 0 and grid[k3(grid) == 0].tolist() == [0.0]

# %%
settle("K01", "true")

# %% [markdown]
# ### K02 · k3, unbiased
#
# Lesson: "What is the value of each estimate?" Fresh samples, old samples, and a reference that can
# say what the policy never draws.

# %%
statement("K02")

# %% tags=["claim:K02"]
rho = pi / old
print("KL", show(KL), " E k3: fresh", show(pi @ k3(l)), " stale",
      show(old @ k3(l)), " stale, weighted", show(old @ (rho * k3(l))))
assert torch.isclose(pi @ k3(l), KL)
assert old @ k3(l) > 1.3 * KL
assert torch.isclose(old @ (rho * k3(l)), KL)

narrow, wide = torch.tensor([0.7, 0.3]), torch.tensor([0.5, 0.3, 0.2])
l_gap = (narrow / wide[:2]).log()           # the third is never drawn
kl_gap, k3_gap = narrow @ l_gap, narrow @ k3(l_gap)
print("pi (0.7, 0.3, 0), support gap of 0.2: KL", show(kl_gap), " E k3",
      show(k3_gap))
assert torch.isclose(kl_gap - k3_gap, torch.tensor(0.2))

# %%
settle("K02", "it depends")

# %% [markdown]
# The gap costs exactly the mass that is missed, because $\mathbb{E}_\pi[\pi_\text{ref}/\pi]$ is
# then 0.8 and not 1.
#
# ### K03 · k3, the quiet one
#
# Lesson: "What is the value of each estimate?" Two Gaussians of width 1, $\mu$ apart:
# $\mathrm{KL}=\mu^2/2$, $\mathrm{Var}\,k_1=\mu^2$, $\mathrm{Var}\,k_3=e^{\mu^2}-1-\mu^2$, by the
# integral. They cross where $e^{\mu^2}=1+2\mu^2$. Then softmaxes over 1,000 tokens.

# %%
statement("K03")

# %%
def std_ratio(log_pi, log_ref):
    """KL, and the std of k3 over that of k1; rows are policies."""
    p, apart = log_pi.exp(), log_pi - log_ref
    def std(k):
        return ((p * k**2).sum(-1) - (p * k).sum(-1)**2).sqrt()
    return (p * apart).sum(-1), std(k3(apart)) / std(apart)

def softmax_crossings(leave):
    """The KL at which k3 becomes the noisier one, ten references."""
    found = []
    for seed in range(10):
        g = torch.Generator().manual_seed(seed)
        logits = 3 * torch.randn(1000, generator=g)
        kl, share = std_ratio(leave(logits).log_softmax(-1),
                              logits.log_softmax(-1))
        found.append(kl[share > 1][0].item())
    return sorted(found)

# %% tags=["claim:K03"]
x = torch.linspace(-15, 25, 40_001)
q = (-x**2 / 2).exp() / (2 * torch.pi) ** 0.5
for mu in (0.5, 1.0, 1.5):
    l_mu = mu * x - mu**2 / 2
    from_mean = (k3(l_mu) - mu**2 / 2) ** 2
    var_k3 = torch.trapezoid(q * l_mu.exp() * from_mean, x).item()
    print(f"mu {mu}: KL {mu**2 / 2:.4f}  var k1 {mu**2:.4f}"
          f"  var k3 {var_k3:.4f}")
    assert math.isclose(var_k3, math.exp(mu**2) - 1 - mu**2)
low, high = 0.5, 2.0
for _ in range(60):                          # bisection
    mid = (low + high) / 2
    above = math.exp(mid**2) > 1 + 2 * mid**2
    low, high = (low, mid) if above else (mid, high)
print(f"crossing at mu {mid:.4f}, KL {mid**2 / 2:.4f} nats per token")
assert round(mid, 4) == 1.1209 and round(mid**2 / 2, 2) == 0.63

steps = torch.linspace(0.01, 1, 150)[:, None]
sharp = softmax_crossings(lambda a: a / (1 - 0.8 * steps))
flat = softmax_crossings(lambda a: a * (1 - 0.9 * steps))
print(f"softmaxes cross at {sharp[0]:.2f} to {sharp[-1]:.2f} nats when "
      f"sharpened, at {flat[0]:.2f} to {flat[-1]:.2f} when flattened")
assert sharp[-1] < 0.63 < flat[0]

# %%
settle("K03", "it depends")

# %% [markdown]
# Three ways to leave, ten references each. Where a line passes 1, $k_3$ is the noisier one. It
# fails through rare tokens: one that the reference likes and the policy hardly ever draws has a
# huge $e^{-\ell}$, and sharpening makes many of those.

# %%
pictures.noise(pictures.roads_away(references=10))

# %% [markdown]
# The other ways to fail: sampling at another temperature, and a rare token that the reference
# likes. There $k_3\approx94$ on one draw in a thousand, and a log shows a spike.

# %%
cold = torch.randn(1000, generator=torch.Generator().manual_seed(0)) * 3
kl_07, share_07 = std_ratio((cold / 0.7).log_softmax(-1),
                            cold.log_softmax(-1))
print(f"sharpened to T = 0.7: KL {kl_07:.4f}, "
      f"std k3 / std k1 {share_07:.4f}")
assert kl_07 < 0.16 and share_07 > 1

rare, liked = torch.tensor([0.999, 0.001]), torch.tensor([0.9, 0.1])
l_rare = (rare / liked).log()
def spread(k):
    return (rare @ k(l_rare)**2 - (rare @ k(l_rare))**2) ** 0.5
print("rare token that the reference likes: KL", show(rare @ l_rare),
      " std k1", show(spread(k1)), " std k3", show(spread(k3)),
      f" k3 there {k3(l_rare)[1]:.1f}")
assert spread(k3) > 10 * spread(k1)

# %% [markdown]
# ### K04 · k3 in the loss
#
# Lesson: "What is the gradient of each estimate?" First the table in words, on four tokens, by
# enumeration. *Loss*: autograd through $k$. *Reward*: $k$ is a number that multiplies
# $\nabla\log\pi$. The ratio $\rho=\pi/\pi_\text{old}$ may be absent, a constant, or differentiated
# too.

# %%
statement("K04")

# %%
def kl_gradient(k, place="loss", sampler=None, weight="none"):
    """Mean gradient of the penalty, (4,), over all four tokens."""
    x = z.clone().requires_grad_()
    lp = x.log_softmax(0)                                    # (4,)
    q = pi if sampler is None else sampler
    rho = (lp - q.log()).exp()
    w = {"none": 1, "detached": rho.detach(), "full": rho}[weight]
    value = k(lp - ref.log())
    if place == "reward":
        value = value.detach() * lp
    return torch.autograd.grad((q * w * value).sum(), x)[0]

def of(function):
    """The gradient of a function of the logits, at z."""
    x = z.clone().requires_grad_()
    return torch.autograd.grad(function(x.log_softmax(0)), x)[0]

reverse = of(lambda lp: (lp.exp() * (lp - ref.log())).sum())
forward = of(lambda lp: (ref * (ref.log() - lp)).sum())
print("grad KL(pi || ref)", show(reverse))
print("grad KL(ref || pi)", show(forward))

# %%
def which(g):
    """The name of a gradient."""
    names = {"0": torch.zeros(4), "KL(pi|ref)": reverse,
             "KL(ref|pi)": forward}
    for name, other in names.items():
        if torch.allclose(g, other, rtol=0, atol=1e-12):
            return name
    return "neither"

ways = [("loss,   fresh", "loss", None, "none"),
        ("reward, fresh", "reward", None, "none"),
        ("loss,   stale, no ratio", "loss", old, "none"),
        ("loss,   stale, ratio detached", "loss", old, "detached"),
        ("loss,   stale, ratio in full", "loss", old, "full"),
        ("reward, stale, no ratio", "reward", old, "none"),
        ("reward, stale, ratio", "reward", old, "detached")]
found = {}
print(f"{'':30s}" + "".join(f"{k.__name__:12s}" for k in (k1, k2, k3)))
for label, place, sampler, weight in ways:
    found[label] = [which(kl_gradient(k, place, sampler, weight))
                    for k in (k1, k2, k3)]
    print(f"{label:30s}" + "".join(f"{n:12s}" for n in found[label]))

# %%
Rv, Fw, N = "KL(pi|ref)", "KL(ref|pi)", "neither"
assert list(found.values()) == [
    ["0", Rv, Fw], [Rv, N, N],               # fresh: loss, reward
    [N, N, N], ["0", Rv, Fw], [Rv, N, Rv],   # stale loss: none, const, full
    [N, N, N], [Rv, N, N]]                   # stale reward: none, ratio
minus = kl_gradient(k3, "reward") - (reverse - forward)
assert minus.abs().max() < 1e-12             # k3 in the reward: Rv minus Fw

def library(term, sampler):
    """The same mean gradient with rlnb's term."""
    x = z.clone().requires_grad_()
    batch = Batch(x.log_softmax(0)[:, None], torch.ones(4, 1),
                  torch.zeros(4), 1, ref_logprobs=ref.log()[:, None],
                  old_logprobs=sampler.log()[:, None])
    mean = (sampler * term(batch)[:, 0]).sum()
    return torch.autograd.grad(mean, x)[0]

for k in (k1, k2, k3):
    for corrected, weight in ((False, "none"), (True, "full"),
                              ("detached", "detached")):
        term = getattr(parts, k.__name__)(1.0, corrected=corrected)
        mine = kl_gradient(k, "loss", old, weight)
        assert torch.allclose(library(term, old), mine, atol=1e-12)
print("nine forms, same gradients as rlnb")

# %% [markdown]
# Two roads lead to $\nabla\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$. One multiplies an *unbiased value*
# by the ratio and differentiates both: $\rho k_1$ and $\rho k_3$ (DeepSeek-V3.2, arXiv 2512.02556,
# and TRL's `use_bias_correction_kl`, do the second). The other takes an estimator whose *slope* is
# right: $k_2$ in the loss, or $k_1$ in the reward, with a constant ratio when samples are stale.
# Hold the ratio of $\rho k_3$ constant and the forward KL is back.
#
# The same on the lesson's three answers. With which settings are value and gradient both right?

# %% tags=["explorer"]
explorers.kl_pull_explorer(old=True)

# %% [markdown]
# How much does it matter? The penalty works: it too is smallest at the reference, and close to it
# the directions agree.

# %% tags=["claim:K04"]
print("k3's gradient against that of KL(pi||ref)")
print("    KL  cosine  length")
for distance in (0.02, 0.044, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0):
    d = compute(distance)
    ratio_of_lengths = d["length"]["k3"] / d["length"]["k2"]
    print(f"{d['kl']:6.4f}  {d['cosine']['k3']:6.4f}  "
          f"{ratio_of_lengths:6.4f}")
near = compute(0.044)
assert round(near["kl"], 4) == 0.0009 and near["cosine"]["k3"] > 0.9999
assert which(kl_gradient(k3)) == Fw and which(kl_gradient(k1)) == "0"
assert which(kl_gradient(k2)) == Rv
at_ref = compute(0.0)
assert at_ref["length"]["k3"] < 1e-12 and at_ref["kl"] < 1e-12

# %%
settle("K04", "it depends")

# %% [markdown]
# At 0.001 nats per token there is nothing to see. At 0.4 the directions differ by 13 degrees, at
# 1.1 by 44, and by then the two KLs want different things: the forward one covers whatever the
# reference does, the reverse one stays where the reference is likely.
#
# ### K05 · reward or loss
#
# Lesson, second sitting: "What changes with many tokens?" Every row of the table above holds *per
# state*: one prefix, one token. An answer is a chain.

# %%
statement("K05")

# %%
def chain(start, after0, after1):
    return SequencePolicy(2, 2, torch.tensor([start, after0, after1]))

ref2 = chain([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
pi2 = chain([-0.2, 0.2, 0.0], [2.0, -1.0, 0.0], [0.0, 0.3, 0.0])

def chain_gradients(pi2, ref2):
    """Gradients with respect to pi2's logits, (3, 3) each."""
    l = pi2.logprobs() - ref2.logprobs().detach()            # (N, T)
    p, q = pi2.probabilities(), ref2.probabilities().detach()
    now, mask, whole = p.detach(), pi2.mask, l.sum(1)
    scalars = {"reverse": (p * whole).sum(),
               "forward": -(q * whole).sum()}
    for k in (k1, k2, k3):
        scalars[f"{k.__name__} per token"] = (
            now * (k(l) * mask).sum(1)).sum()
        scalars[f"{k.__name__} of the sum"] = (now * k(whole)).sum()
    scalars["k1 in reward"] = (now * whole.detach()
                               * pi2.logprobs().sum(1)).sum()
    return {name: torch.autograd.grad(v, pi2.logits, retain_graph=True)[0]
            for name, v in scalars.items()}

# %%
def cosine(a, b):
    return float((a * b).sum() / (a.norm() * b.norm()))

chain_g = chain_gradients(pi2, ref2)
pairs = [("k1 in reward", "reverse"), ("k2 of the sum", "reverse"),
         ("k3 of the sum", "forward"), ("k2 per token", "reverse"),
         ("k3 per token", "forward"), ("k3 per token", "reverse")]
for mine, target in pairs:
    a, b = chain_g[mine], chain_g[target]
    print(f"{mine:13s} against grad of the {target} sequence KL: cosine "
          f"{cosine(a, b):.4f}, largest difference "
          f"{(a - b).abs().max():.4f}")
assert chain_g["k1 per token"].abs().max() < 1e-12
for mine, target in pairs[:3]:
    assert torch.allclose(chain_g[mine], chain_g[target], atol=1e-12)
for mine, target in pairs[3:]:
    assert cosine(chain_g[mine], chain_g[target]) < 0.999

# %% [markdown]
# The identities survive for the log-ratio of the *whole answer*. They break when $k_2$ or $k_3$ are
# taken token by token and added up, which is how trainers do it: each token then answers for its
# own KL and not for the KL it leads to. Eight random chains, near the reference and far:

# %%
for size in (0.05, 1.0):
    cosines = {pair: [] for pair in pairs[3:]}
    for seed in range(8):
        gen = torch.Generator().manual_seed(seed)
        base = torch.randn(3, 3, generator=gen)
        step = size * torch.randn(3, 3, generator=gen)
        g8 = chain_gradients(SequencePolicy(2, 2, base + step),
                             SequencePolicy(2, 2, base))
        for pair in cosines:
            cosines[pair].append(cosine(g8[pair[0]], g8[pair[1]]))
    for (mine, target), found8 in cosines.items():
        print(f"step {size:4}: {mine} against {target}: "
              f"from {min(found8):.4f} to {max(found8):.4f}")

# %% [markdown]
# What the per-token loss saves is noise. Here the variance of one answer's gradient, exactly,
# summed over the logits; $k_1$ in the loss is nothing but noise:

# %%
nothing = Objective(raw_reward, parts.logprob(), parts.sequence_sum)
forms = {"k1 in the reward": nothing.replace(shape=parts.kl_in_reward(1.0)),
         "k2 per token, in the loss": nothing.replace(terms=parts.k2(1.0)),
         "k1 in the loss": nothing.replace(terms=parts.k1(1.0))}
for name, form in forms.items():
    m = estimator_moments(pi2, lambda y: 0.0, form, 1, ref_policy=ref2)
    print(f"{name:26s}variance {m.trace:.2f}, mean {m.mean.norm():.4f}")

# %% [markdown]
# In these chains of two tokens the choice costs next to nothing near the reference. Far from it a
# random chain loses less than ours, which was built to show it: at worst 0.94 for $k_2$, where ours
# has 0.50. In a long answer it can cost much near the reference too. A first word answers for all
# that it leads to, and the lesson has one that leads to 1,000 tokens at 0.02 nats each.
#
# In the reward, $k_1$ is the gradient of the sequence KL exactly. In the loss, per token, the first
# word below is pushed the other way.

# %% tags=["claim:K05"]
beta = 0.1
policy_kl = Objective(raw_reward, parts.logprob(), parts.sequence_sum,
                      shape=parts.kl_in_reward(beta))
in_reward = estimator_moments(pi2, lambda y: 0.0, policy_kl, 1,
                              ref_policy=ref2)
in_loss = estimator_moments(pi2, lambda y: 0.0, policy_kl.replace(
    shape=(), terms=parts.k2(beta)), 1, ref_policy=ref2)
print("first token's logits, minus the gradient of beta * KL:")
print("  sequence KL          ", show(-beta * chain_g["reverse"][0]))
print("  k1 in the reward     ", show(in_reward.mean[0]))
print("  k2 per token, in loss", show(in_loss.mean[0]))
assert torch.allclose(in_reward.mean, -beta * chain_g["reverse"],
                      atol=1e-12)
assert torch.allclose(in_loss.mean, -beta * chain_g["k2 per token"],
                      atol=1e-12)
assert in_reward.mean[0, 0] < 0 < in_loss.mean[0, 0]

# %%
settle("K05", "true")

# %%
pictures.first_word(pi2.logits.softmax(-1).tolist(), {
    "KL of the answer": (-chain_g["reverse"][0]).tolist(),
    "k1 in the reward": (-chain_g["k1 in reward"][0]).tolist(),
    "k2 per token, in the loss": (-chain_g["k2 per token"][0]).tolist()})

# %% [markdown]
# Word 0 is rarer than under the reference, and after it the policy is far from the reference. Its
# own log-ratio asks for more of it; the KL of an answer charges it for what it leads to.
#
# Is $k_1$ in the reward not too noisy, with its sum of 1,000 log-ratios? We hold the std of one
# answer's gradient against that of the reward term, $A=\pm1$, for the 1,000 tokens after the
# lesson's word 0. The exact formula is checked on three tokens, by enumeration.

# %%
far3 = torch.tensor([0.1, 0.3, 0.6]).log()             # the lesson's toy
near3 = (far3 + 0.563 * torch.tensor([1.0, 0.5, 0.0])).log_softmax(0)
p_tok, centred = near3.exp(), near3 - far3
kl_tok = p_tok @ centred
centred = centred - kl_tok                             # with a baseline
S = torch.eye(3) - p_tok                               # rows: grad log pi
step, size = (p_tok * centred) @ S, p_tok @ S.square().sum(1)
alone = (p_tok * centred**2) @ S.square().sum(1) - step @ step

def noise(n):
    """Std over n tokens: k1 in the reward, k2 per token, the reward."""
    pairs = n * (n - 1) / 2 * (p_tok @ centred**2) * size
    squares = n * alone + pairs, n * alone, n * size
    return [(square**0.5).item() for square in squares]

y = torch.cartesian_prod(*[torch.arange(3)] * 3)
after = centred[y].flip(1).cumsum(1).flip(1)
for pays, std, mean in zip((after, centred[y], torch.ones(27, 3)),
                           noise(3), (3 * step, 3 * step, 0 * step)):
    g = (pays[..., None] * S[y]).sum(1)
    off = p_tok[y].prod(1) @ (g - mean).square().sum(1)
    assert math.isclose(off.sqrt(), std)

# %%
for name, std in zip(("k1 in the reward", "k2 per token"), noise(1000)):
    print(f"β = 0.04, {name:16s}: {0.04 * std / noise(1000)[2]:.3f} of "
          "the reward's noise")
print(f"β √KL: {0.04 * (1000 * kl_tok).sqrt():.3f}")
for beta in (0.04, 0.0004):
    r = 1 - beta * torch.tensor([18.0, 20.0, 21.0, 21.0])
    print(f"four right answers, 1 − βℓ over their std, β = {beta}:",
          show((r - r.mean()) / r.std(correction=0)))

# %% [markdown]
# Small, and about $\beta\sqrt{\mathrm{KL}}$ with the KL of the answer: near the reference the
# variance of a token's ℓ is about twice its KL, and on average half of the tokens are still to
# come. The last lines: where all answers of a group are right, the std cancels β.

# %% [markdown]
# ### K06 · reward minus β KL
#
# Lesson: "How do you hold a policy near a reference?" On average, and one answer at a time.

# %%
statement("K06")

# %% tags=["claim:K06"]
three, start3 = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.4, 0.4, 0.2])
l3 = (three / start3).log()                                  # per sample
kl3 = (three * l3).sum()
reward3 = torch.tensor([1.0, 0.0, 0.5])
shaped3 = (three * (reward3 - 0.1 * l3)).sum()
print("log-ratio of each answer", show(l3), " mean", show(kl3))
print("E[r - beta k1]", show(shaped3), " E[r] - beta KL",
      show((three * reward3).sum() - 0.1 * kl3))
assert show(kl3) == [0.0253] and l3.min() < 0 < kl3
assert torch.isclose(shaped3, (three * reward3).sum() - 0.1 * kl3)

ends, ends_ref = torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])
l_end, tokens = (ends / ends_ref).log(), torch.tensor([1.0, 10.0])
print("stops at once, or after ten tokens: KL", show(ends @ l_end),
      " mean of k1 per token", show(ends @ (l_end / tokens)))
assert (ends @ (l_end / tokens)).round(decimals=2) == -0.19

# %%
settle("K06", "true")

# %% [markdown]
# The last line: the sum of $k_1$ over an answer has the KL as its mean. First divided by the length
# of the answer it has not, and can be negative on fresh samples. Here the policy stops at once more
# rarely than the reference does, and each of those answers counts as much as a long one.
#
# With a critic that says ½ everywhere and λ = 1 (07), answer 0 of the running group, β = 0.1: each
# token pays for its own KL and for all the KL that follows it.

# %%
group = running_group()
values = torch.full_like(group.logprobs, 0.5).detach()
l_old = (group.old_logprobs - group.ref_logprobs)[0, :3]
ppo = ZOO["ppo"].replace(advantage=gae(gamma=1.0, lam=1.0))
plain, with_kl = (
    objective.prepare(group.replace(values=values)).advantages[0, :3]
    for objective in (ppo, ppo.replace(shape=parts.kl_in_reward(0.1))))
print("log pi_old - log ref", show(l_old))
print("A without KL        ", show(plain))
print("A with KL           ", show(with_kl))
later = l_old.flip(0).cumsum(0).flip(0)         # from t to the end
assert torch.allclose(with_kl, plain - 0.1 * later)

# %% [markdown]
# ### K07 · the penalty holds it back
#
# Lesson: "How do you hold a policy near a reference?" Which policy earns the most of
# $\sum_y\pi R-\beta\sum_y\pi\ell$? Where the slope in π(y) differs between two answers, moving
# chance from one to the other gains. So at the best policy it is the same for all:
#
# $$\begin{aligned}
# R(y)-\beta\,(\ell(y)+1)&=\text{the same for every }y&&\text{the slope in }\pi(y)\\
# \ell(y)&=R(y)/\beta+\text{const}&&\text{solve for }\ell\\
# \pi(y)&\propto\pi_\text{ref}(y)\,e^{R(y)/\beta}&&\ell=\log\pi-\log\pi_\text{ref}
# \end{aligned}$$
#
# An answer that pays 1 then has $e^{1/\beta}$ times its old odds against one that pays 0. Below:
# right or wrong, starting from one in 10,000; $k_3$ in the loss rests where
# $p(1-p)=\beta(p-p_0)$.

# %%
statement("K07")

# %% tags=["claim:K07"]
p0 = 1e-4
def optimum(beta):
    odds = p0 / (1 - p0) * math.exp(1 / beta)
    return odds / (1 + odds)

def optimum_k3(beta):
    """Where p (1 - p) = beta (p - p0): reward against k3 in the loss."""
    b = 1 - beta
    return (b + math.sqrt(b**2 + 4 * beta * p0)) / 2

for b in (0.04, 0.1, 0.2):
    print(f"beta {b}: odds times {math.exp(1 / b):.1e}, p at the "
          f"optimum {optimum(b):.4f}; with k3 in the loss "
          f"{optimum_k3(b):.4f}")
assert [round(optimum(b), 3) for b in (0.04, 0.1, 0.2)] \
    == [1.0, 0.688, 0.015]
assert [round(optimum_k3(b), 3) for b in (0.04, 0.1, 0.2)] \
    == [0.96, 0.9, 0.8]

# %%
settle("K07", "it depends")

# %% [markdown]
# At β = 0.2 $k_3$ lets the answer rise to 80 %, and the KL holds it below 2 %. At which β does the
# order turn?

# %% tags=["explorer"]
explorers.kl_leash_explorer()

# %% [markdown]
# At 0.08 and below $k_3$ holds it lower <!-- cited: 0.08 -->: $e^{1/\beta}$ is soon more than
# 10,000, and $k_3$ stops near $1-\beta$ however rare the answer was.
#
# Both are resting points; how fast a run gets there is another question. Gradient ascent reaches
# them, from the reference:

# %%
def settle_down(beta, form, steps=20_000, lr=1.0):
    """Exact gradients in the log-odds x of the right answer."""
    x0 = math.log(p0 / (1 - p0))
    x = torch.tensor(x0)
    for _ in range(steps):
        p = x.sigmoid()
        pull = {"reverse": beta * (x - x0) * p * (1 - p),
                "k3": beta * (p - p0)}[form]
        x = x + lr * (p * (1 - p) - pull)
    return x.sigmoid().item()

for form, target in (("reverse", optimum(0.2)), ("k3", optimum_k3(0.2))):
    end = settle_down(0.2, form)
    print(f"beta 0.2, {form:7s}: ascent ends at {end:.4f}")
    assert math.isclose(end, target, rel_tol=1e-3)

# %% [markdown]
# GRPO divides the reward by the std of its group, and not the penalty. The mean push on the
# log-odds is then the mean std: $\tfrac1G\sum_iA_i(r_i-p)$ is the group's covariance of $r$ with
# itself, over its std. For a large group that is $\sqrt{p(1-p)}$; in small ones more groups are all
# wrong and silent. The climb from $p_0$ ends where a penalty first takes all of the push:

# %%
x = torch.linspace(math.log(p0 / (1 - p0)), 16, 20_001)
p = x.sigmoid()

def mean_std(G):
    """Mean std of G rewards that are 1 with chance p, else 0."""
    k = torch.arange(G + 1)
    chances = torch.distributions.Binomial(G, p[:, None]).log_prob(k).exp()
    return chances @ (k / G * (1 - k / G)).sqrt()

pushes = {"as it is": p * (1 - p), "over the std, large group":
          (p * (1 - p)).sqrt(), "over the std, groups of 8": mean_std(8)}
for b in (0.04, 0.2):
    for name, push in pushes.items():
        ends = []
        for pull in ((x - x[0]) * p * (1 - p), p - p0):
            held = (b * pull >= push).nonzero()
            ends.append(f"{p[held[0]].item():.3f}" if len(held) else
                        "not held")
        print(f"beta {b:4}, reward {name:26s}: KL {ends[0]:8s}  "
              f"k3 {ends[1]}")
top = ((x - x[0]) * (p * (1 - p)).sqrt()).max()
print(f"over the std of a large group the KL holds from beta "
      f"{1 / top:.3f} on")

# %% [markdown]
# At β = 0.2 the exact KL is much the firmer one with the reward as it is. Over the std of a large
# group it does not hold at all, and $k_3$ does; in groups of 8 it just holds, at about a half. The
# KL's share of the push rises to a top and falls again (the std divides the reward, so its push
# fades more slowly near 0 and 1). A policy that has got past the top is not held any more.
#
# ### K08 and K09 · drop it; and then the reward falls
#
# Both hang on one thing, the tail of the reward's error.

# %%
statement("K08")

# %%
statement("K09")

# %% [markdown]
# Take the best of $N$ answers by a proxy = truth + error, truth of mean 0 and deviation 1. More
# pressure is a larger $N$: the best of $N$ is at most $\log N-\frac{N-1}{N}$ nats away (arXiv
# 2401.01879). Integrated, not sampled:

# %% tags=["claim:K08", "claim:K09"]
proxy = torch.sinh(torch.linspace(-14, 14, 4001))      # (Z,)
g = torch.linspace(-8, 8, 401)                         # the truth (g,)
w = torch.exp(-g**2 / 2) / math.sqrt(2 * math.pi) * (g[1] - g[0])
tails = {"light (normal)": torch.special.ndtr,
         "heavy (t, 2 df)": lambda e: 0.5 + e / (2 * (2 + e**2).sqrt())}
sizes = (1, 4, 16, 256, 4096, 16384)
nats = [math.log(N) - (N - 1) / N for N in sizes]
print("N                ", *(f"{N:7d}" for N in sizes))
print("KL, at most      ", *(f"{v:7.2f}" for v in nats))
true = {}
for name, cdf in tails.items():
    below = cdf(proxy[:, None] - g)                    # (Z, g)
    F = below @ w                                      # P(proxy <= z)
    mean = (below.diff(dim=0) @ (w * g)) / F.diff()    # E[truth | z]
    true[name] = [((F**N).diff() * mean).nansum().item() for N in sizes]
    print(f"truth, {name:15s}"[:24],
          *(f"{abs(v):6.2f}" for v in true[name]))
light, heavy = true.values()
assert light == sorted(light) and light[-1] > 2.7
assert max(heavy) == heavy[2] and heavy[-1] < 0.05

# %%
settle("K08", "it depends")
settle("K09", "it depends")

# %% [markdown]
# A light tail: the truth still rises at $N=16384$, 8.7 nats out. A heavy one: it peaks near 16 and
# is gone, because the largest proxy is then an error. So: with *this* reward, what do the largest
# errors look like? A verifier that can be tricked may have a heavy tail too.
#
# ### K10 and M16 · no reference; long chains of thought
#
# K10 counts bytes. M16 asks what training can reach: if the reference could not do a thing at all,
# neither could the policy, which starts there.

# %%
statement("K10")

# %%
statement("M16")

# %% tags=["claim:K10", "claim:M16"]
memory = {"weights, gradients": 2 + 2, "fp32 master copy": 4,
          "Adam": 4 + 4, "bf16 reference": 2}
total = sum(memory.values())
print(f"bytes a parameter: {total} with a reference, "
      f"{total - memory['bf16 reference']} without")
assert (total, total - memory["bf16 reference"]) == (18, 16)

def climb(p, steps=100, lr=200.0):
    """Exact policy gradient on two answers, rewards 1 and 0."""
    x = torch.tensor([p, 1 - p]).log()
    for _ in range(steps):
        prob = x.softmax(0)
        x = x + lr * prob * (torch.tensor([1.0, 0.0]) - prob[0])
    return x.softmax(0)[0].item()

print(f"start at 1e-4: {climb(1e-4):.4f}   start at 0: {climb(0.0):.4f}")
assert climb(1e-4) > 0.99 and climb(0.0) == 0

# %%
settle("K10", "true")
settle("M16", "it depends")

# %% [markdown]
# An answer at exactly 0 stays there under any learning rate, as in the support gap of K02.
#
# ## Value and gradient, far from the reference
#
# Drag the policy away from the reference: distance 0 is `ref`, 1 is `pi`, on a straight line in
# logits. Left: what each estimator says on average. Middle: how much a single sample scatters.
# Right: the gradient of its mean as a *loss*, beside that of the true KL (black). Then let an older
# policy, half the distance out, do the sampling.

# %% tags=["explorer"]
explorers.kl_estimator_explorer()

# %%
for samples in ("fresh", "stale"):
    d = compute(1.0, samples)
    print(f"{samples} samples, KL {d['kl']:.4f}")
    for name in d["value"]:
        none = d["length"][name] < 1e-12
        said = "no gradient" if none else f"cosine {d['cosine'][name]:+.4f}"
        print(f"  {name:9s} mean {d['value'][name]:.4f}"
              f"  std {d['spread'][name]:.4f}  {said}")
assert abs(compute()["kl"] - KL) < 1e-12

# %% [markdown]
# On fresh samples $k_1$ and $k_3$ have the right mean, $k_2$ nearly; as a loss $k_1$ has no
# gradient on average, $k_2$ the right one, $k_3$ another. On stale samples only the ratio-corrected
# form is right, and $k_1$ in a loss pushes *away* from the reference, cosine −0.99.
#
# ## Conventions: where libraries put it, and what they clamp
#
# | | where | form | by default |
# |---|---|---|---|
# | PPO of InstructGPT ([2203.02155](https://arxiv.org/abs/2203.02155)) | reward | $k_1$ per token | on |
# | TRL RLOO 1.16 | reward | $k_1$, summed over the answer | `beta=0.05` |
# | TRL GRPO 1.16 | loss | ρ$k_3$ (`use_bias_correction_kl`, on by default) | `beta=0.0`: off, no reference loaded |
# | verl | loss | `low_var_kl`: $k_3$; `k3+`: its value with $k_2$'s gradient | `use_kl_loss=False` |
#
# GRPO's paper writes $r=\pi_\text{ref}/\pi$ and $r-\log r-1$; code writes $d=-\ell$ and $e^d-1-d$.
# All three are $k_3$. `ref_logp` comes from a second, frozen model: one more forward pass, at the
# same temperature and without dropout. With the full distribution over the vocabulary at each place
# the KL of one step is exact; it needs all V probabilities of both models at every token.
#
#
# With $d=\log\pi_\text{ref}-\log\pi$, $k_3=e^d-1-d$. verl clamps $d$ to ±20 and the result to ±10;
# others clamp $d$ at 5 or 10. It guards against overflow. Where a clamp acts the gradient is 0, and
# the mean is too small. On the rare token of K03 $d$ is 4.6: a clamp of $d$ at 5 does not act yet,
# one of $k_3$ at 10 does.

# %%
d_rare = -l_rare
for name, value in (("no clamp", torch.expm1(d_rare) - d_rare),
                    ("d at most 5", torch.expm1(d_rare.clamp(max=5))
                     - d_rare.clamp(max=5)),
                    ("k3 at most 10", k3(l_rare).clamp(max=10))):
    print(f"{name:13s}: k3 {show(value)}, mean {show(rare @ value)}, "
          f"KL {show(rare @ l_rare)}")

# %% [markdown]
# ## TRPO, step by step
#
# $\max_\theta\mathbb{E}_\text{old}[\rho\,A]$ subject to
# $\mathrm{KL}(\pi_\text{old}\,\|\,\pi_\theta)\le\delta$. To second order in the step $\Delta$ the
# constraint is $\tfrac12\Delta^\top F\Delta\le\delta$, with $F$ the Hessian of the KL at the old
# policy, the Fisher matrix. Then $\Delta=\sqrt{2\delta/(s^\top Fs)}\;s$ with $Fs=g$, the gradient
# of the surrogate. Nobody builds $F$: conjugate gradient only asks for products $Fv$, and those are
# two backward passes. Five arms; the best one is rare:

# %%
start = torch.tensor([0.01, 0.24, 0.25, 0.20, 0.30]).log()
reward = torch.tensor([1.0, 0.0, 0.5, 0.2, 0.0])
A = reward - (start.exp() * reward).sum()                    # exact

def kl_old_new(x):
    return (start.exp() * (start - x.log_softmax(0))).sum()

def surrogate(x):                                            # E_old[rho A]
    return (start.exp() * (x.log_softmax(0) - start).exp() * A).sum()

def fisher_times(v):
    x = start.clone().requires_grad_()
    slope, = torch.autograd.grad(kl_old_new(x), x, create_graph=True)
    return torch.autograd.grad((slope * v).sum(), x)[0]

# %%
def conjugate_gradient(times, b, steps=10):
    x, residual, direction = torch.zeros_like(b), b.clone(), b.clone()
    for _ in range(steps):
        if residual @ residual < 1e-20:
            break
        image = times(direction)
        alpha = residual @ residual / (direction @ image)
        x, before = x + alpha * direction, residual
        residual = residual - alpha * image
        direction = residual + (residual @ residual) / (
            before @ before) * direction
    return x

at = start.clone().requires_grad_()
gradient, = torch.autograd.grad(surrogate(at), at)
s = conjugate_gradient(fisher_times, gradient)
print("gradient g        ", show(gradient))
print("s, with F s = g   ", show(s - s.mean()))
print("advantages, centred", show(A - A.mean()))
assert torch.allclose(fisher_times(s), gradient, atol=1e-10)
assert torch.allclose(s - s.mean(), A - A.mean(), atol=1e-8)

# %% [markdown]
# For a softmax table the natural step is the advantage itself, per logit. (A constant added to all
# logits changes nothing, hence "centred".) The quadratic model is a model. TRPO checks the KL it
# got and halves the step until the KL holds and the surrogate has risen:

# %%
def trpo_step(delta, most=10):
    full = (2 * delta / (s @ fisher_times(s))).sqrt() * s
    for halvings in range(most + 1):
        x = start + 0.5**halvings * full
        if kl_old_new(x) <= delta and surrogate(x) > 0:
            return full, x, halvings
    return full, start, None                 # keep the old policy

def plain_step(kl):
    """Along the gradient, to the same KL, by bisection."""
    low, high = 0.0, 1e4
    for _ in range(100):
        mid = (low + high) / 2
        inside = kl_old_new(start + mid * gradient) < kl
        low, high = (mid, high) if inside else (low, mid)
    return start + low * gradient

# %%
for delta in (0.01, 0.1, 1.0):
    full, new, halvings = trpo_step(delta)
    kl = kl_old_new(new)
    by_gradient = plain_step(kl)
    print(f"delta {delta:4}: full step KL {kl_old_new(start + full):.4f},"
          f" after {halvings} halving KL {kl:.4f}")
    for name, x5 in (("natural", new), ("plain gradient", by_gradient)):
        print(f"    {name:15s} surrogate {surrogate(x5):.4f}, "
              f"rare arm 0.01 -> {x5.softmax(0)[0]:.4f}")
    assert torch.isclose(full @ fisher_times(full) / 2,
                         torch.tensor(delta))
    assert kl <= delta and surrogate(new) > surrogate(by_gradient) > 0

# %% [markdown]
# $\tfrac12\Delta^\top F\Delta=\delta$ as asserted, and the true KL is 5 to 44 % larger. Without the
# line search the constraint would be violated every time here. At the same KL the natural step
# gains more (0.0164 against 0.0152 at δ = 0.01), and at δ = 1 it lifts the rare arm tenfold where
# the plain one lowers it. The price is second-order products on every step; TRL, verl and OpenRLHF
# offer no TRPO.
#
# One step of each kind, drawn: three answers that pay 1, ½ and 0, and the best one is rare. Both
# steps measure exactly the limit. The plain one follows $g_y=\pi(y)A(y)$, a small push on a rare
# answer; the natural one follows $A$.

# %%
three = torch.tensor([0.05, 0.35, 0.6])
pays = torch.tensor([1.0, 0.5, 0.0])
gain = pays - three @ pays
fisher = three.diag() - three.outer(three)
assert torch.allclose(fisher @ gain, three * gain)   # so F^-1 g is A
trpo.trust_region(three, pays, fisher, 0.2, {
    "plain gradient": three * gain, "natural gradient": gain})

# %% [markdown]
# ## A controller for β, and its units
#
# Ziegler et al. (arXiv 1909.08593) do not choose β, they choose a KL and let β follow. With $n$
# samples per update and a horizon, usually 10,000:
#
# $$e=\mathrm{clip}\Big(\frac{\mathrm{KL}}{\mathrm{KL}_\text{target}}-1,\ \pm0.2\Big),\qquad
# \beta\leftarrow\beta\,\Big(1+e\,\frac{n}{\text{horizon}}\Big)$$
#
# It compares two numbers, so they need the same unit, and there are two in use: the KL of a whole
# answer (a *sum* over its tokens; Ziegler's target is a few nats) and the *mean* per token (verl
# feeds that, with 0.1 as default target). A toy run: answers of 200 tokens, a policy that is always
# at its optimum $\pi\propto\pi_\text{ref}\,e^{R/\beta}$, four tokens, one of them worth 0.1:

# %%
T, gain = 200, torch.tensor([0.1, 0.0, 0.0, 0.0])

def token_kl(beta):
    """KL per token of the policy that is optimal at this beta."""
    tilted = (ref.log() + gain / beta).log_softmax(0)
    return (tilted.exp() * (tilted - ref.log())).sum().item()

def controlled(target, unit, beta=0.2, n=256, horizon=10_000):
    """The KL of an answer, in nats, over 2,000 updates; the last beta."""
    path = []
    for _ in range(2000):
        measured = token_kl(beta) * (T if unit == "sum" else 1)
        e = min(max(measured / target - 1, -0.2), 0.2)
        beta *= 1 + e * n / horizon
        path.append(T * token_kl(beta))
    return path, beta

# %%
feeds = {"sum, target 6": (6.0, "sum"), "mean, target 0.03": (0.03, "mean"),
         "mean, target 6": (6.0, "mean"), "sum, target 0.1": (0.1, "sum")}
paths = {}
for name, (target, unit) in feeds.items():
    paths[name], last = controlled(target, unit)
    print(f"fed with {name:18s}: beta {last:.1e}, an answer is "
          f"{paths[name][-1]:.4f} nats from the reference")
assert abs(paths["sum, target 6"][-1] - 6) < 0.05
assert abs(paths["mean, target 0.03"][-1] - 6) < 0.05
assert paths["mean, target 6"][-1] > 400
assert paths["sum, target 0.1"][-1] < 0.15

# %%
shown = range(0, 2000, 20)
figures.line_figure(
    shown, {name: [path[i] for i in shown] for name, path in paths.items()},
    xlabel="update", ylabel="KL of an answer (nats)", ylim=(0, 20),
    size=(900, 300),
    alt="KL of a 200-token answer over 2,000 updates. Fed with the sum and "
        "target 6, or the mean and 0.03, it settles at 6. Fed with the "
        "mean and 6 it leaves the picture; with the sum and 0.1 it goes "
        "to 0.1.",
    caption="A target in the wrong unit is off by the length of the "
            "answer: one way the penalty vanishes (the line that leaves, "
            "to 460 nats), the other way nothing moves.")

# %% [markdown]
# Nothing crashes in the third run. The measured number stays below 6, as asked, and β sinks for
# ever. A fixed β has no such unit: GRPO averages over tokens where RLOO sums, but it averages the
# advantage along with the penalty, and $T$ cancels.
