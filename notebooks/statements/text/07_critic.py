# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 · statements: the critic
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come the corner cases of the lesson, [07 · the critic](../07_critic.ipynb).

# %% tags=["setup"]
import math
import torch
from rlnb import ZOO, objective as parts
from rlnb.classroom import explorers, figures
from rlnb.classroom.explorers.gae import compute
from rlnb.classroom.explorers.wrong_critic import compute as tokens_later
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures import critic as pictures, token_grid
from rlnb.objective import Batch, gae
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

def show(x):                          # four decimals, no negative zero
    flat = torch.as_tensor(x).flatten().tolist()
    return [round(v, 4) + 0.0 for v in flat]

def surrogate_clip(rho, A, epsilon=0.2):
    return torch.minimum(rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A)

# %% [markdown]
# GAE for a batch of answers, any γ, and the toy with which several statements are decided. It is
# the lesson's in five tokens: the first picks the plan (good with chance 0.4, then right nine times
# in ten; bad, then twice), the last one settles it. The four outcomes are counted exactly. The
# wrong critic says 0.5 after the good plan and 0.7 after the bad one, for one token.

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

# %%
Q, V_wrong = {"good": 0.9, "bad": 0.2}, {"good": 0.5, "bad": 0.7}
branch = ["good", "good", "bad", "bad"]           # right, wrong, right, ...
chance = torch.tensor([0.4 * 0.9, 0.4 * 0.1, 0.6 * 0.2, 0.6 * 0.8])
score = torch.tensor([0.6, 0.6, -0.4, -0.4])                 # d log pi / dz
win = torch.zeros(4, 5)
win[[0, 2], -1] = 1.0

def claimed(V):                                              # (4, 5)
    return torch.tensor([[0.48, V[k], Q[k], Q[k], Q[k]] for k in branch])

def moments(lam, V):
    """Mean and spread of the gradient on the good plan's logit."""
    g = score * gae_rows(win, claimed(V), 1.0, lam)[:, 0]    # (4,)
    mean = (chance * g).sum()
    return mean, (chance * (g - mean) ** 2).sum().sqrt()

# %% [markdown]
# ### B06 · what GAE sums
#
# Lesson: "How long to wait".

# %%
statement("B06")

# %% tags=["claim:B06"]
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

# %%
settle("B06", "true")

# %% [markdown]
# ### B07 · equal weights at λ = 1
#
# Lesson: "How long to wait".

# %%
statement("B07")

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

# %%
settle("B07", "it depends")

# %% [markdown]
# ### B08 · bias and variance
#
# Lesson: "How long to wait".

# %%
statement("B08")

# %% tags=["claim:B08"]
for lam in (0.0, 0.5, 0.95, 1.0):
    mean, std = moments(lam, V_wrong)
    bias = mean - 0.24 * (Q["good"] - Q["bad"])
    print(f"lambda {lam:.2f}: mean", show(mean), " bias", show(bias),
          " std", show(std))
    assert abs(mean - compute(lam)["gradient"]) < 1e-12      # the explorer
    assert (mean < 0) == (lam == 0)
assert show(moments(0.0, V_wrong)[0]) == [-0.048]
assert show(mean) == [0.168] and abs(bias) < 1e-12           # lambda 1
stds = [moments(lam, V_wrong)[1] for lam in (0.0, 0.5, 0.95, 1.0)]
assert stds == sorted(stds) and round(stds[0].item(), 3) == 0.049

# %%
settle("B08", "true")

# %% [markdown]
# λ = 0 pushes the better token *down*. "High bias" is the usual word; a wrong sign is what it can
# mean, and quietly: with the least spread of all. The mean is a straight line in λ. With $Q$ the
# true and $V$ the claimed values after the first token, and $p(1-p)=0.24$:
#
# $$\mathbb{E}\,[\text{gradient}]=p(1-p)\big[(1-\lambda)(V_\text{good}-V_\text{bad})
# +\lambda(Q_\text{good}-Q_\text{bad})\big]$$
#
# It crosses 0 at $-(1-\lambda)\,0.2+0.7\lambda=0$, so at $\lambda=2/9$. If the error lasts $d$
# tokens, $\lambda^d$ takes the place of λ.

# %%
mean, _ = moments(2 / 9, V_wrong)
print(f"lambda 2/9 = {2 / 9:.4f}: mean gradient below 1e-12:",
      abs(mean.item()) < 1e-12)
for d in (1, 10, 30, 80):
    at_95 = tokens_later(0.95, d)["gradient"]
    print(f"the error lasts {d:2d} tokens: right sign from lambda "
          f"{(2 / 9) ** (1 / d):.4f} on; at 0.95 the mean is {at_95:+.4f}")
assert abs(mean) < 1e-12
assert tokens_later(0.95, 29)["right_sign"]
assert not tokens_later(0.95, 30)["right_sign"]

# %% tags=["explorer"]
explorers.gae_explorer()

# %% [markdown]
# ### B11 · a badly fitted critic
#
# Lesson: "A critic that errs".

# %%
statement("B11")

# %% tags=["claim:B11"]
for lam in (0.0, 0.5, 0.95, 1.0):
    bias = moments(lam, V_wrong)[0] - moments(lam, Q)[0]
    errors = (V_wrong["good"] - Q["good"]) - (V_wrong["bad"] - Q["bad"])
    print(f"lambda {lam:.2f}: bias", show(bias), " 0.24 (1 - lambda) times",
          round(errors, 4))
    assert abs(bias - 0.24 * (1 - lam) * errors) < 1e-12
    assert abs(moments(lam, Q)[0] - 0.168) < 1e-12

# %%
settle("B11", "true")

# %% [markdown]
# At λ = 1 the first token does not see the error; an error at the start would cost variance, never
# bias.
#
# At the token that settles the answer the wrong value is only subtracted. The mean stays, and here
# the noise even falls. The true value is not the quietest baseline: that one weighs each outcome
# with the square of its score (03). After a good plan the sum is right nine times in ten, so the
# rare wrong one has the large score, and a baseline nearer to its reward, 0, is quieter.

# %%
last_score = torch.tensor([0.1, -0.9, 0.8, -0.2])
for name, V in (("true", Q), ("wrong", V_wrong)):
    value = torch.tensor([V[k] for k in branch])
    g = last_score * (win[:, -1] - value)
    mean = (chance * g).sum()
    std = (chance * (g - mean) ** 2).sum().sqrt()
    print(f"{name} value subtracted: mean {mean:.3f}, std {std:.2f}")
    assert abs(mean - 0.132) < 1e-12

# %% [markdown]
# ### B09 · λ near 0.95
#
# Lesson: "How long to wait". A thousand tokens, first with a critic that knows nothing,
# then with one that knows the end as soon as it has seen the first token.

# %%
statement("B09")

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

# %%
settle("B09", "it depends")

# %% [markdown]
# Long-answer recipes therefore train the critic with λ = 1 (VAPO, arXiv 2504.05118). TRL's PPO
# defaults to 0.95, verl and OpenRLHF to 1.
#
# The same on the lesson's answer of 200 tokens, right, with a good plan at token 60:

# %%
blank, one = torch.zeros(1, 200), torch.zeros(1, 200)
one[0, -1] = 1.0
knows = torch.tensor([[0.48] * 61 + [0.9] * 80 + [1.0] * 59])
curves = {f"V = 0, λ = {lam:g}": gae_rows(one, blank, 1.0, lam)[0].tolist()
          for lam in (0.95, 0.99, 1.0)}
curves["true V, λ = 0.95"] = gae_rows(one, knows, 1.0, 0.95)[0].tolist()
pictures.fade(curves, 60, caption=(
    "Where the critic knows nothing, λ decides how far back the reward "
    "reaches. A critic that knows carries it."))

# %% [markdown]
# ### B10 · what δ points at
#
# Lesson: "A guess at every token".

# %%
statement("B10")

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
    assert (mean[0, 0] > mean[1, 0]) == (V is Q)
    assert (mean[1, 0] > 0) == (V is not Q)

# %%
settle("B10", "it depends")

# %% [markdown]
# With exact values δ of the first token is its advantage, +0.42 or −0.28, and from then on δ
# averages to 0. The wrong critic gives +0.02 and +0.22, so both plans beat its expectations and the
# bad one by more. The correction goes to token 2, which did nothing. Whatever the critic, all δ of
# an answer add up to the return minus $V(\text{start})$: it can misplace credit, not invent it.

# %% [markdown]
# ### S01 · four models
#
# Lesson: "The price". Mixed precision with Adam costs 16 bytes a parameter: bf16 weights 2, bf16
# gradients 2, fp32 master weights 4, Adam's two fp32 moments 4 + 4. A frozen bf16 model costs 2.
# Activations and the KV cache come on top and are not counted.

# %%
statement("S01")

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

# %%
settle("S01", "it depends")

# %% [markdown]
# It holds when critic and reward model are as large as the policy and a reference is kept. A
# smaller or shared critic, or a rule in place of the reward model, makes it less; a separate
# rollout engine adds a copy. Four models are 2.25 times the 16 bytes, not four times.

# %% [markdown]
# ### S02 · a fifth model
#
# Lesson: "The price".

# %%
statement("S02")

# %% tags=["claim:S02"]
tokens = 8192 * 1024
stored, weights = tokens * 4, 7e9 * 2      # float32 numbers, bf16 weights
print(f"{tokens / 1e6:.1f} M tokens: {stored / 1e6:.1f} MB of log-probs, "
      f"{weights / 1e9:.0f} GB of 7 B weights, factor "
      f"{weights / stored:.0f}")
batch = running_group()
print("old_logprobs of a Batch:", tuple(batch.old_logprobs.shape),
      "requires grad:", batch.old_logprobs.requires_grad)
assert round(stored / 1e6, 1) == 33.6 and round(weights / stored) == 417
assert batch.old_logprobs.shape == batch.logprobs.shape

# %%
settle("S02", "false")

# %% [markdown]
# It keeps one stored number per sampled token. Where a second copy of the weights does exist it is
# the sampler's, or a lagged one kept to recompute these numbers.

# %% [markdown]
# ### M13 · the value head
#
# Lesson: "The price".

# %%
statement("M13")

# %% tags=["claim:M13"]
head = sum(p.numel() for p in torch.nn.Linear(4096, 1).parameters())
print(f"value head at width 4096: {head} parameters, "
      f"{head / 7e9:.1e} of a 7 B model")
assert head == 4097

# %%
settle("M13", "it depends")

# %% [markdown]
# The value *model* may be that large, when it has a trunk of its own. Its head is one linear layer.
# If policy and critic share the trunk, memory is saved and the two losses pull on the same weights.
# So the critic's loss then counts little, 0.1 for example.

# %% [markdown] tags=["cited:H11"]
# ### H11 · 2017 and the four models
#
# "PPO in 2017 introduced the four-model set-up." It did not. Its paper has an actor and a critic
# (arXiv 1707.06347). The frozen reference and the reward model came with RLHF on language models
# (Ziegler et al. 2019, arXiv 1909.08593; InstructGPT, 2022, arXiv 2203.02155).

# %% [markdown]
# ### The reward minus β KL, on the running group
#
# The statement K06 is decided on [the page on KL](05_kl.ipynb). Lesson: "A guess at every
# token". Ziegler et al. (arXiv 1909.08593) put the reference into the reward of every token:
# $r_t\leftarrow r_t-\beta\,(\log\pi_\text{old}-\log\pi_\text{ref})(y_t)$.

# %% tags=["see:K06"]
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

# %% [markdown]
# On average that is the reward minus β times the KL. A single sample can be paid: the second
# log-ratio is negative.
#
# On the running group, answer 0 with β = 0.1, $V=0.5$ and λ = 1:

# %%
batch = running_group()
mask, V_half = batch.mask, torch.full((4, 6), 0.5) * batch.mask
r_end = torch.zeros(4, 6)
r_end[range(4), batch.lengths.long() - 1] = batch.rewards
A_one = gae_rows(r_end, V_half, gamma=1.0, lam=1.0)
k1 = (batch.old_logprobs - batch.ref_logprobs)[0, :3]
shaped = ZOO["ppo"].replace(shape=parts.kl_in_reward(0.1),
                            advantage=gae(gamma=1.0, lam=1.0))
A_kl = shaped.prepare(batch.replace(values=V_half)).advantages[0, :3]
print("log pi_old - log ref", show(k1))
print("A without KL        ", show(A_one[0, :3]))
print("A with KL           ", show(A_kl))
later = k1.flip(0).cumsum(0).flip(0)            # from t to the end
assert torch.allclose(A_kl, A_one[0, :3] - 0.1 * later)

# %% [markdown]
# Each token pays for its own KL and for all the KL that follows it, since what follows depends on
# it. That is what a penalty in the reward does and a penalty in the loss does not (05). A critic
# then has to predict the KL to come as well.

# %% [markdown]
# ### A22 · two anchors
#
# Lesson: "The price", the reference. Clip and reference look at different policies: one at the
# last, the other at the first. Ten arms, rewards 0 to 1, exact expectations, 60 batches of 4
# clipped steps each.

# %%
statement("A22")

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

# %%
settle("A22", "true")

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
# ## The whole of PPO, critic included
#
# The critic's target is $R_t=A_t+V_t$, computed once per batch (where a recipe whitens $A$, mean 0
# and std 1 over all tokens, then before that). Its loss is a squared error, often clipped the same
# pessimistic way as the policy: with $V_\text{old}$ the value at the start of the batch and a width
# of 0.2,
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
# Let the critic say 0.5 at every token of every answer of the running group, which is the group's
# mean reward. The critic's loss counts a tenth.

# %%
rho = (batch.logprobs - batch.old_logprobs).exp()
A_gae = gae_rows(r_end, V_half, gamma=1.0, lam=0.95)
policy = -surrogate_clip(rho, A_gae)[mask].mean()
critic = value_loss(V_half, A_gae + V_half, V_half)[mask].mean()
whole = policy + 0.1 * critic

ppo = ZOO["ppo"].replace(terms=parts.value_loss(0.1))
out = ppo(batch.replace(values=V_half))
print(f"policy {policy.item():.4f}, critic {critic.item():.4f}, "
      f"loss {whole.item():.4f}, rlnb {out.loss.item():.4f}")
assert torch.allclose(whole, out.loss, rtol=0, atol=1e-12)

# %%
stand_in = batch.rewards - batch.rewards.mean()              # (4,)
for lam in (0.95, 1.0):
    A_lam = gae_rows(r_end, V_half, gamma=1.0, lam=lam)
    print(f"lambda {lam}:", *[f"\n  answer {i} {show(A_lam[i][mask[i]])}"
                              for i in range(4)])
group_mean = stand_in[:, None].expand(4, 6)
assert torch.allclose(A_lam[mask], group_mean[mask])         # lam = 1

# %% [markdown]
# At λ = 0.95 the first token of the six-token answer gets $-0.5\cdot0.95^5=-0.3869$. At λ = 1 a
# critic that says the group's mean everywhere gives exactly ±0.5. That is how 08 gets rid of the
# critic: a group mean is a critic with one number per prompt.
#
# ## The running group under the methods so far
#
# First the advantage of each answer, then the push $-\partial L/\partial\log\pi$ on each of its
# tokens, per method. `reinforce` and `rloo` do not know $\pi_\text{old}$. For `ppo` the group's
# mean stands in for a critic.

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
A_group = group_mean.clone()
slope, = torch.autograd.grad(surrogate_clip(rho, A_group)[mask].sum(),
                             batch.logprobs)
assert torch.equal(told.gradient == 0, (slope == 0) | ~mask)

# %% [markdown]
# REINFORCE and RLOO divide by 4 answers, PPO by 16 tokens. Four zeros in PPO's rows: the cut
# tokens. REINFORCE's zeros are whole answers, for want of a baseline. And the token of answer 1
# that went from 0.02 to 0.12 has no push at all, while the bad one of answer 2 at 3.5 times its old
# probability has the largest (a dual clip with $c=3$ would cut it).
#
# ## GAE through PPO's clip
#
# Now a made-up critic speaks before every token of the four answers. On padding value and reward
# are 0, so GAE needs no mask. A 0 in the grid can have two causes. The critic was not surprised, or
# PPO's clip silences the token, because its ratio has moved too far. Look at answer 1:

# %%
said = torch.tensor([[0.5, 0.6, 0.8, 0.0, 0.0, 0.0],
                     [0.5, 0.6, 0.9, 0.3, 0.7, 0.0],
                     [0.5, 0.1, 0.0, 0.0, 0.0, 0.0],
                     [0.5, 0.5, 0.7, 0.4, 0.4, 0.2]])
grids = {}
for lam in (0.0, 0.95):
    A = gae_rows(r_end, said, 1.0, lam)
    explained = ZOO["ppo"].explain(batch.replace(advantages=A))
    # the loss is minus a mean over 16 tokens: back to one token's push
    grids[f"λ = {lam:g}"] = -16 * explained.gradient
token_grid.token_grid(batch, grids, caption=(
    "PPO's push on each token, clip included."))

# %% [markdown]
# Answer 1 is right. Tokens 1 and 3 have zeros: the clip. At its token 2 the critic fell from 0.9 to
# 0.3, so λ = 0 pushes this token down. At λ = 0.95 the good end outweighs the fall.
#
# **By hand.** From which λ on is token 2 of answer 1 pushed up? The surprises from there on are
# −0.6, 0.4 and 0.3.
#
# <details><summary>From which λ on</summary>
#
# Its advantage is −0.6 + 0.4 λ + 0.3 λ², which is 0 at λ =
# 0.90. <!-- cited: 0.90, 0.6, 0.4, 0.3 -->
# </details>
