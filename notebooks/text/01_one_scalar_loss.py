# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · One scalar loss
#
# **Settles:** what fine-tuning on given answers minimises, which of the two KLs that is,
# and why the same recipe stops working the moment the model writes the answers itself.
#
# 35 minutes · after [00](00_start_here.ipynb) · Shannon 1948 (entropy, *Bell System
# Technical Journal* 27); Kullback and Leibler 1951 (*Annals of Mathematical Statistics*
# 22); Ouyang et al. 2022 (SFT, then RL with a KL leash,
# [2203.02155](https://arxiv.org/abs/2203.02155)).

# %%
import torch
from rlnb import check
from rlnb.toys import SequencePolicy, expected_reward, true_gradient
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## One token, one number
#
# All training here is the same move: turn what you want into **one number** $L$, and let
# the chain rule say how every parameter changes it. The parameters are $\theta$; here,
# four **logits** $z_v$, one for each of four words. Softmax makes them probabilities
# $\pi_v$. Somebody hands us the right word $y^\star$, the **gold** token. The loss is its
# negative log-likelihood (NLL):
#
# $$L=-\log\pi_{y^\star}=\log\sum_v e^{z_v}-z_{y^\star},\qquad
# \frac{\partial L}{\partial z_v}=\pi_v-[v=y^\star]$$
#
# The bracket is 1 where it is true and 0 elsewhere: a **onehot** vector.

# %%
def show(name, x):               # 4 decimals, and no "-0.0000"
    x = (x.detach().round(decimals=4) + 0.0).tolist()
    print(f"{name:14s}", " ".join(f"{v:8.4f}" for v in x))

z = torch.tensor([2.0, 1.0, 0.0, -1.0], requires_grad=True)      # (4,)
gold = 1
pi = z.softmax(0)
L = -pi[gold].log()
L.backward()
show("probabilities", pi)
show("gradient", z.grad)
print(f"L = {L.item():.4f}")
onehot = torch.eye(4)[gold]
assert torch.allclose(z.grad, pi - onehot, atol=1e-12)

# %% [markdown]
# The gradient is *what the model says minus what was right*. Descent lowers every other
# logit in proportion to its probability and raises the gold one in proportion to what it
# lacks. The gradient sums to 0, and it fades as $\pi_{y^\star}\to1$.
#
# ## Many gold tokens: two distributions
#
# Given many examples, the gold word is not always the same one. The data are a
# distribution $p$, the model is another, $q$, and "how far apart?" needs one number. The
# usual one is the **Kullback-Leibler divergence**, a mean of log-ratios, in nats:
#
# $$\mathrm{KL}(p\Vert q)=\sum_v p_v\log\frac{p_v}{q_v}$$
#
# The first argument weighs the terms. Swap the two, and it is another number.

# %%
def kl(p, q):                                    # (V,), (V,) -> ()
    return torch.where(p > 0, p * (p / q).log(), 0.0).sum()

p = torch.tensor([0.50, 0.48, 0.02])
q = torch.tensor([0.90, 0.05, 0.05])
print(f"KL(p||q) = {kl(p, q):.4f}, KL(q||p) = {kl(q, p):.4f}")
assert kl(p, q) > kl(q, p) > 0 and kl(p, p) == 0

# %% [markdown]
# The first is larger: $p$ uses the second word half of the time and $q$ hardly has it.
# Weighed by $q$, which rarely goes there, the same gap costs little.
#
# **Move it.** Target $p$: two peaks. Model $q$: one Gaussian, too small for both. Drag its
# mean and deviation until the left bar stands on its black mark. Then the right one.
# You cannot have both.

# %% tags=["explorer"]
from rlnb.classroom import explorers
explorers.kl_explorer()

# %%
from rlnb.classroom.explorers.kl_directions import compute
for mean, deviation in ((1, 2), (0, 3.2), (3, 1), (-3, 1), (0, 1)):
    d = compute(mean=mean, deviation=deviation)
    print(f"mean {mean:+d}, deviation {deviation:.1f}:  "
          f"KL(target||model) {d['forward']:6.4f}   "
          f"KL(model||target) {d['reverse']:6.4f}")

# %% [markdown]
# *Peaks at ±3, each of deviation 1. Sitting on one peak costs 8.31 in one direction and
# 0.69 in the other; covering both with deviation 3.2 costs 0.46 in the one and 0.96 in the
# other. Which is "better" depends on the direction, and nothing else.*
#
# $\mathrm{KL}(\text{target}\Vert\text{model})$ is called **forward**,
# $\mathrm{KL}(\text{model}\Vert\text{target})$ **reverse**. You get forward
# when the examples are given, reverse when the model draws them.
#
# ## An answer, token by token
#
# A language model gives each next token a probability, given the prompt and the tokens so
# far. An answer $y$ of $T$ tokens has the product of them; the log has the sum:
#
# $$-\log\pi_\theta(y)=-\sum_{t=1}^{T}\log\pi_\theta(y_t\mid y_{<t})$$
#
# Here is a policy one can look at completely: two words (0 and 1), a stop token (2), at
# most three tokens, one prompt (left out from here on). Each of the seven prefixes has its
# own row of logits.

# %%
policy = SequencePolicy(2, 3, torch.sin(torch.arange(21.)).view(7, 3))
gold = (0, 1, policy.stop)
z = policy.logits                                                # (7, 3)
total = 0.0
for t, token in enumerate(gold):
    row = policy.states[gold[:t]]                # which prefix we are in
    lp = z[row].log_softmax(0)[token].item()
    total -= lp
    print(f"after {str(gold[:t]):7s} token {token}: probability "
          f"{torch.tensor(lp).exp():.4f}, -log {-lp:.4f}")
i = policy.outcomes.index(gold)
print(f"NLL {total:.4f}, probability of the answer "
      f"{policy.probabilities()[i].item():.4f}")
assert abs(total + policy.probabilities()[i].log().item()) < 1e-12

# %% [markdown]
# Why the log and not the product? A sum splits over tokens and batches, and the product
# underflows. A thousand tokens at probability 0.5, in float32:

# %%
half = torch.full((1000,), 0.5, dtype=torch.float32)
print(f"product {half.prod().item()}, sum of logs {half.log().sum():.4f}")
assert half.prod() == 0

# %% [markdown]
# Supervised fine-tuning (**SFT**) minimises this sum over given answers. Answers differ in
# length, so a **mask** $m$ says which tokens are real, 1, and which are padding, 0. Two
# gold answers, lengths 3 and 2:

# %%
tokens = torch.tensor([[0, 1, 2], [1, 2, 0]])                    # (2, 3)
mask = torch.tensor([[1, 1, 1], [1, 1, 0]])                      # (2, 3)
rows = torch.tensor([[policy.states[()], policy.states[(0,)],
                      policy.states[(0, 1)]],
                     [policy.states[()], policy.states[(1,)], 0]])
scores = z[rows].log_softmax(-1)                                 # (2, 3, 3)
lp = scores.gather(-1, tokens[..., None])[..., 0]                # (2, 3)
nll = -torch.where(mask.bool(), lp, 0.0)
L = nll.sum() / mask.sum()
print(f"mean over 5 real tokens {L.item():.4f}, over 6 places "
      f"{nll.mean().item():.4f}")
g = torch.autograd.grad(L, z)[0]                                 # (7, 3)

# %% [markdown]
# The second number is the usual slip: averaging over padding shrinks loss and gradient, by
# a factor that depends on who else is in the batch. The gradient is the one-token formula,
# once for each real token, added up:

# %%
by_hand = torch.zeros_like(g)
for i in range(2):
    for t in range(mask[i].sum()):
        row = rows[i, t]
        onehot = torch.eye(3)[tokens[i, t]]
        by_hand[row] += (z[row].detach().softmax(0) - onehot) / 5
for prefix in ((), (0,), (0, 0)):
    show(f"after {prefix}", g[policy.states[prefix]])
assert torch.allclose(g, by_hand, atol=1e-12)

# %% [markdown]
# The prefix (0, 0) is in no gold answer: gradient 0. SFT says nothing about states that the
# teacher never visits (in a network, shared parameters move them all the same). The rest is
# plain differentiation: the tokens are data, $\theta$ sits only inside $\log\pi_\theta$,
# and the loss is a scalar.
#
# ## Entropy: the price of a distribution
#
# $-\log q_v$ is what a word costs a model $q$. Averaged over its own words that is the
# **entropy**, and over the words the data send, the **cross-entropy**:
#
# $$H(p)=-\sum_v p_v\log p_v,\qquad H(p,q)=-\sum_v p_v\log q_v$$
#
# With the natural logarithm the unit is the nat; with $\log_2$, the bit. 1 bit is 0.6931
# nats.

# %%
def cross_entropy(p, q):                         # (V,), (V,) -> ()
    return -torch.where(p > 0, p * q.log(), 0.0).sum()

def entropy(p):
    return cross_entropy(p, p)

p = torch.tensor([1/2, 1/4, 1/8, 1/8])
q = torch.full((4,), 1/4)
bit = torch.tensor(2.0).log()
for name, x in (("H(p)", entropy(p)), ("H(p, q)", cross_entropy(p, q)),
                ("KL(p||q)", kl(p, q))):
    print(f"{name:9s} {x:.4f} nats = {x / bit:.4f} bits")
assert torch.isclose(entropy(p) / bit, torch.tensor(1.75))

# %% [markdown]
# By hand: with a code of 1, 2, 3, 3 bits the four words cost
# $\frac12+\frac24+\frac38+\frac38=1\frac34$ bits on average. A model that believes them equally
# likely pays 2. The quarter bit too much is the KL.
#
# **Perplexity** is $e^{H(p,q)}$ per token, $H$ in nats: at 8 the model is as unsure as
# among 8 equally likely words. A freshly initialised model is nearly uniform, so its first
# loss is about $\log V$ whatever the data (GPT-2 has 50,257 words, Qwen2.5-0.5B 151,936):

# %%
import math
for V in (3, 50_257, 151_936):
    data = torch.rand(V, generator=torch.Generator().manual_seed(0))
    data, uniform = data / data.sum(), torch.full((V,), 1 / V)
    H = cross_entropy(data, uniform).item()
    print(f"V = {V:7,d}: first loss {H:7.4f}, perplexity "
          f"{math.exp(H):,.0f}")
    assert abs(H - math.log(V)) < 1e-9

# %% [markdown]
# > **It is often said** that cross-entropy is entropy plus KL, and that maximum likelihood
# > therefore minimises the KL from data to model. True, as an identity
# > (put $\log q_v=\log p_v-\log\frac{p_v}{q_v}$ into the first sum):
#
# $$\underbrace{-\sum_v p_v\log q_v}_{H(p,q)}
# =\underbrace{-\sum_v p_v\log p_v}_{H(p)}
# +\underbrace{\sum_v p_v\log\tfrac{p_v}{q_v}}_{\mathrm{KL}(p\Vert q)}$$
#
# Below, $N=1000$ answers by a teacher, their shares $\hat p$ as data, and the mean NLL of
# those answers under the policy. It is $H(\hat p,\pi)$; only the KL in it depends on
# $\theta$.

# %% tags=["claim:B12"]
teacher = SequencePolicy(2, 3, torch.cos(torch.arange(21.)).view(7, 3))
given = teacher.sample(1000, torch.Generator().manual_seed(0))   # (1000,)
p_hat = torch.bincount(given, minlength=15) / 1000               # (15,)
student = policy.copy()
mean_nll = -student.logprobs().sum(1)[given].mean()
pi = student.probabilities()                                     # (15,)
print(f"mean NLL {mean_nll.item():.4f} = H {entropy(p_hat):.4f} "
      f"+ KL {kl(p_hat, pi).item():.4f}")
assert torch.isclose(mean_nll, entropy(p_hat) + kl(p_hat, pi))
grads = [torch.autograd.grad(x, student.logits, retain_graph=True)[0]
         for x in (mean_nll, kl(p_hat, pi))]
assert torch.allclose(*grads, atol=1e-12)        # same gradient
for seed in range(100):
    a, b = torch.rand(2, 6, generator=torch.Generator().manual_seed(seed))
    a, b = a / a.sum(), b / b.sum()
    gap = cross_entropy(a, b) - entropy(a) - kl(a, b)
    assert gap.abs() < 1e-12 and kl(a, b) > 0
# "Cross-entropy is entropy plus KL": true

# %% [markdown]
# So the loss has a floor, and the floor is not 0. Train the student on those answers and
# watch what goes where:

# %%
for step in range(1001):
    pi = student.probabilities()
    L = cross_entropy(p_hat, pi)
    if step in (0, 10, 100, 1000):
        print(f"step {step:4d}: loss {L.item():.4f}, of it KL to the data "
              f"{abs(kl(p_hat, pi).item()):.4f}")
    student.logits.data -= torch.autograd.grad(L, student.logits)[0]
p_true = teacher.probabilities().detach()
print(f"floor H(data) {entropy(p_hat):.4f}; KL(teacher||student) "
      f"{kl(p_true, pi).item():.4f}")
assert abs(L.item() - entropy(p_hat)) < 1e-3

# %% [markdown]
# A loss of 2.30 with nothing left to learn: what remains is the variety of the answers.
# The last number, 0.0091, is what 1000 of them could not tell about the teacher.
#
# ## Forward and reverse
#
# Two facts first. **KL is never negative**: $\log x\le x-1$ gives
# $-\mathrm{KL}=\sum p\log\frac qp\le\sum p\,(\frac qp-1)\le0$. And **it can be infinite**:
# where $p>0$ and $q=0$, a single such word is enough.

# %%
p = torch.tensor([0.5, 0.5, 0.0])
q = torch.tensor([1.0, 0.0, 0.0])
print(f"KL(p||q) = {kl(p, q)}, KL(q||p) = {kl(q, p):.4f}")
print("0 * log 0 in floating point:", (p * p.log())[2].item())
assert kl(p, q) == math.inf and torch.isclose(kl(q, p), bit)

# %% [markdown]
# Forward KL cannot forgive a missing word; reverse KL charges $\log2$ for leaving half of
# the target out. (And $0\log0$ counts as 0 but computes to nan: hence the `where` above.)
#
# What does the *best* small model look like? Forward: only $H(p,q)$ depends on $q$. For a
# Gaussian $q$ with mean $\mu$ and deviation $\sigma$, set both derivatives to 0:
#
# $$H(p,q)=\log(\sigma\sqrt{2\pi})+\frac{\mathbb{E}_p[(x-\mu)^2]}{2\sigma^2}
# \quad\Rightarrow\quad \mu=\mathbb{E}_p[x],\quad \sigma^2=\mathrm{Var}_p[x]$$
#
# (here $\pi$ is 3.14). It matches the moments. Peaks at ±3 of deviation 1: mean 0,
# variance $3^2+1$. Reverse:
#
# $$\mathrm{KL}(q\Vert p)=-H(q)-\mathbb{E}_{x\sim q}[\log p(x)]$$
#
# Be wide (first term), but only where $p$ is not small (second). Between the peaks
# $\log p$ is deep, so crossing the gap costs more than the width gains.
#
# > **It is often said** that KL is not symmetric: one direction covers all modes, the other
# > picks one. True when the model is too small for the target, *and* the modes are far
# > enough apart.

# %% tags=["claim:B13"]
x = torch.arange(-40.0, 40.0, 0.1)

def log_normal(x, m, s):
    return -0.5 * ((x - m) / s) ** 2 - (s * math.sqrt(2 * math.pi)).log()

def best_gaussian(direction, at, start):         # descent on both KLs
    one, a = torch.tensor(1.0), torch.tensor(at)
    log_p = torch.logaddexp(log_normal(x, -a, one), log_normal(x, a, one))
    log_p = log_p - math.log(2)                  # two peaks, 1/2 each
    w = torch.tensor([start, 0.0], requires_grad=True)  # mean, log sd
    for _ in range(1500):
        log_q = log_normal(x, w[0], w[1].exp())
        a, b = (log_p, log_q) if direction == "forward" else (log_q, log_p)
        value = (a.exp() * (a - b)).sum() * 0.1
        w.data -= 0.1 * torch.autograd.grad(value, w)[0]
    return round(w[0].item(), 9) + 0.0, w[1].exp().item(), value.item()

fits = [best_gaussian("forward", 3.0, 0.5)]
fits += [best_gaussian("reverse", 3.0, at) for at in (2.0, -2.0, 0.5)]
for way, (m, s, value) in zip(["forward"] + 3 * ["reverse"], fits):
    print(f"{way}: mean {m:+.4f}, deviation {s:.4f}, KL {value:.4f}")
assert abs(fits[0][0]) < 1e-4 and abs(fits[0][1] - 10**0.5) < 1e-4
assert abs(fits[1][0] - 3) < 0.02 and abs(fits[1][1] - 1) < 0.03
assert abs(fits[1][0] + fits[2][0]) < 1e-4       # which peak: the start
# "KL is not symmetric": true

# %% [markdown]
# Forward: mean 0, deviation $\sqrt{10}=3.1623$. It *covers*, gap and all. Reverse: one
# peak, deviation 1.02, half of the target ignored, and which half depends on where the
# descent began: it *seeks* a mode. Its price, 0.6888, is nearly $\log 2=0.6931$: minus the
# log of the share it kept. The last row is a trap in the middle, a local minimum that
# covers and costs more, 0.8406. The best one picks; a descent need not find it.
#
# The two conditions matter. Nearer peaks, or a model that is large enough:

# %%
middle = x.abs() < 1.5
cover = log_normal(x, 0.0, torch.tensor(10.0).sqrt()).exp()
peaks = sum(log_normal(x, m, torch.tensor(1.0)).exp() for m in (-3, 3)) / 2
for name, density in (("forward fit", cover), ("target", peaks)):
    print(f"mass within 1.5 of 0: {name} {density[middle].sum() * 0.1:.2f}")
for at in (0, 1, 2, 2.8, 2.9, 4):
    best = compute(distance=at)["best"]
    line = "   ".join(f"{way} mean {abs(m):.2f}, deviation {s:.2f}"
                      for way, (m, s, _) in best.items())
    print(f"peaks at ±{at:<3}: {line}")
two = SequencePolicy(2, 3)                       # any 15 shares
for step in range(1000):
    reverse = kl(two.probabilities(), p_true)
    two.logits.data -= torch.autograd.grad(reverse, two.logits)[0]
print(f"reverse KL of a large enough model: {abs(reverse.item()):.4f}")
assert abs(reverse) < 1e-4

# %% [markdown]
# In the gap the forward fit has 0.36 of its mass, the target 0.07. Up to ±2.8 reverse KL
# covers as well; then the best model jumps to a peak. And a policy
# that *can* be the teacher becomes the teacher under either direction. "Mode-seeking" is
# about what a model does when it cannot.
#
# ## Who draws, decides
#
# Look at what stands under the mean. ($r(y)$ is the grader's number for an answer, the
# reward. In distillation the teacher is a model.)
#
# $$\text{SFT, distillation on a teacher's answers:}\quad
# \mathbb{E}_{y\sim p}\,[-\log\pi_\theta(y)]\qquad
# \text{RL:}\quad \mathbb{E}_{y\sim\pi_\theta}\,[\,r(y)\,]$$
#
# Left, $\theta$ is inside the bracket only. The gradient walks in: $\nabla\mathbb{E}_p[f_\theta]
# =\mathbb{E}_p[\nabla f_\theta]$, and a batch of given answers estimates it. Right,
# $\theta$ decides *which* answers are averaged, and inside the bracket there is nothing
# to differentiate.
#
# | loss | drawn from | KL |
# |---|---|---|
# | pre-training, SFT | data | KL(data ‖ model), forward |
# | distillation on a teacher's answers | teacher | KL(teacher ‖ student), forward |
# | distillation on the student's own answers | student | usually KL(student ‖ teacher), reverse |
# | the leash in RLHF | policy | KL(policy ‖ reference), reverse |
#
# The last row, a penalty for leaving a reference model, makes RL itself a reverse KL. Take
# $\mathbb{E}_\pi[r]-\beta\,\mathrm{KL}(\pi\Vert\pi_\text{ref})$ with the leash's weight
# $\beta>0$, and the target $\pi^\star(y)=\pi_\text{ref}(y)\,e^{r(y)/\beta}/Z$, with $Z$ so
# that it sums to 1:
#
# $$\mathbb{E}_\pi[r]-\beta\,\mathrm{KL}(\pi\Vert\pi_\text{ref})
# =\beta\log Z-\beta\,\mathrm{KL}(\pi\Vert\pi^\star)$$

# %%
def grade(y):                                    # one 1, and it stops
    return float(y.count(1) == 1 and y[-1] == policy.stop)

R = torch.tensor([grade(y) for y in policy.outcomes])            # (15,)
beta = 0.5
ref = teacher.probabilities().detach()                           # (15,)
tilted = ref * (R / beta).exp()
Z, target = tilted.sum(), tilted / tilted.sum()
pi = policy.probabilities().detach()
left = (pi * R).sum() - beta * kl(pi, ref)
right = beta * Z.log() - beta * kl(pi, target)
best = (target * R).sum() - beta * kl(target, ref)
print(f"leashed reward {left:.4f} = {right:.4f}; of the target "
      f"{best:.4f} = beta log Z")
assert torch.isclose(left, right) and torch.isclose(best, beta * Z.log())

# %% [markdown]
# Maximising a leashed reward is minimising a reverse KL to the tilted reference. No policy
# gets above $\beta\log Z=0.3363$: a KL is never negative. Page 15 starts from the same
# target.
#
# ## Sampling has no gradient
#
# A draw is an integer. Autograd has nothing to hold on to:

# %%
z = torch.tensor([2.0, 1.0, 0.0, -1.0], requires_grad=True)
token = torch.multinomial(z.softmax(0), 1,
                          generator=torch.Generator().manual_seed(0))
for name, x in (("drawn", token), ("argmax", z.argmax())):
    print(f"{name}: {x.dtype}, requires grad: {x.requires_grad}")
reward = (token == 1).double().sum()
try:
    reward.backward()
except RuntimeError as error:
    print(str(error).split(" and ")[0])

# %% [markdown]
# That is not a gap in the library. Fix the randomness (one number $u$ per draw, compared
# with the cumulative probabilities) and move one logit by hand: the drawn word stays the
# same, and stays the same, and jumps. Wherever the slope exists, it is 0.

# %%
u = torch.rand(20, generator=torch.Generator().manual_seed(0))   # (20,)
grid = torch.linspace(-3, 5, 161)  # logit of word 1

def probabilities(logit):                        # (N,) -> (N, 4)
    return torch.stack([torch.full_like(logit, 2.0), logit,
        torch.full_like(logit, 0.0),
        torch.full_like(logit, -1.0)], 1).softmax(1)

edges = probabilities(grid).cumsum(1)                            # (161, 4)
word = (u[None, :, None] > edges[:, None, :]).sum(-1)            # (161, 20)
hit = (word == 1).double()                       # reward 1 for word 1
smooth = probabilities(grid)[:, 1]                               # (161,)
moved = hit[1:] != hit[:-1]                                      # (160, 20)
print(f"{moved.numel()} nudges of 0.05, {moved.sum()} of them change "
      "the reward")
assert (moved.sum(0) <= 1).all()                 # a draw jumps once

# %%
from rlnb.classroom.figures import line_figure
line_figure(
    grid.tolist(), {"one draw": hit[:, 0].tolist(),
    "mean of 20 draws": hit.mean(1).tolist(),
    "expected reward": smooth.tolist()},
    xlabel="logit of word 1", ylabel="reward", ylim=(-0.05, 1.05),
    alt="Reward against a logit. One draw is a single step from 0 to 1, the"
        " mean of 20 draws a staircase, the expectation a smooth curve.",
    caption="A sampled reward is a staircase, flat almost everywhere; only"
            " its expectation has a slope.")

# %% [markdown]
# More draws make smaller steps. They do not make a slope.
#
# A tempting repair: differentiate the loss where it *can* be differentiated. Draw $y$ from
# the policy, and minimise the mean of $\log\pi_\theta(y)-\log p(y)$ ($p$ the teacher's), an
# honest estimate of the reverse KL. The expected gradient of that, over all fifteen answers:

# %%
pi = policy.probabilities()                                      # (15,)
log_pi = policy.logprobs().sum(1)                                # (15,)
truth = torch.autograd.grad(kl(pi, p_true), policy.logits,
                            retain_graph=True)[0]                # (7, 3)
inside = (pi.detach() * (log_pi - p_true.log())).sum()
naive = torch.autograd.grad(inside, policy.logits)[0]
print(f"value {inside.item():.4f}, KL {kl(pi, p_true).item():.4f}")
print(f"norm of the true gradient {truth.norm():.4f}, "
      f"of this one {naive.norm():.4f}")
assert naive.abs().max() < 1e-12 < truth.abs().max()

# %% [markdown]
# The value is right and the expected gradient is *exactly zero*: it is
# $\sum_y\pi\,\nabla\log\pi=\sum_y\nabla\pi=\nabla 1=0$. Whoever trains on that follows noise.
# A right value is no promise of a right gradient; page 04 returns to it.
#
# ## The sum that would do it
#
# The expectation *is* differentiable. Written out, $J(\theta)=\sum_y\pi_\theta(y)\,r(y)$
# has no draw in it, and autograd is content:

# %%
J = (policy.probabilities() * R).sum()
g = torch.autograd.grad(J, policy.logits)[0]                     # (7, 3)
print(f"J = {J.item():.4f} over {len(policy)} answers")
show("first token", g[0])
nudged = policy.copy()
nudged.logits.data[0, 1] += 1e-5
slope = (expected_reward(nudged, grade) - J).item() / 1e-5
print(f"by finite difference, word 1: {slope:.4f}")
assert torch.equal(g, true_gradient(policy, grade))
assert abs(slope - g[0, 1].item()) < 1e-5

# %% [markdown]
# All it takes is a list of every answer. With $V$ words, a stop token and at most $T$
# tokens there are $1+V+\dots+V^{T-1}$ that stop and $V^T$ that run into the end:
# $1+2+4+8=15$ here. A vocabulary of 151,936 and a thousand tokens:

# %%
def answers(V, T):
    return sum(V**t for t in range(T)) + V**T    # exact integers

for V, T in ((2, 3), (2, 20), (151_936, 2), (151_936, 1000)):
    n = answers(V, T)
    digits = int(math.log10(n)) + 1
    said = f"{n:,}" if digits < 15 else f"a number of {digits} digits"
    print(f"V = {V:7,d}, T = {T:4d}: {said}")
assert answers(2, 3) == len(policy) == 15
assert 10**5181 <= answers(151_936, 1000) < 10**5182

# %% [markdown]
# Two tokens are already 23 billion answers. The value of $J$ can be estimated from draws
# like any mean, its gradient exists, and neither obvious way to it (differentiate the draw;
# write out the sum) is open. Page 02 finds a third.
#
# What SFT has and RL has not is the **teacher's answer**. How much that is worth, on the
# same policy, with the same step size and exact gradients on both sides:

# %%
teach = R * policy.probabilities().detach()
teach = teach / teach.sum()      # a teacher who is always right
for name in ("SFT", "RL"):
    s, line = policy.copy(), []
    for step in range(31):
        J = expected_reward(s, grade)
        if step in (0, 3, 10, 30):
            line.append(f"step {step} {J.item():.4f}")
        nll = cross_entropy(teach, s.probabilities())
        up = -nll if name == "SFT" else J
        s.logits.data += torch.autograd.grad(up, s.logits)[0]
    share = (s.probabilities() * R).detach().sort().values[-3:] / J.item()
    print(f"{name:4s} expected reward:", ", ".join(line))
    show("right answers", share)
show("the teacher's", teach.sort().values[-3:])

# %% [markdown]
# After three steps the one who was shown is far ahead: 0.64 against 0.38. After thirty the
# other has passed. SFT has to copy the teacher's shares, 0.03, 0.10 and 0.87; RL only has to
# be right, and puts 0.9973 of its right answers on one wording. (Both had exact gradients.
# From draws, RL would first have to stumble on a right answer.)
#
# ## Where people go wrong
#
# **"The loss should go to 0."** On data with more than one right continuation it cannot:
# the floor is the entropy of the data, 2.30 nats per answer in the run above. If every prompt
# occurs once, that entropy is 0 on the training set, and a loss near 0 means memorised
# examples; on fresh prompts the floor is back.
#
# **"KL is a distance."** It is not symmetric, and a detour can be shorter:

# %%
def coin(a):
    return torch.tensor([a, 1 - a])

direct = kl(coin(0.5), coin(0.01))
detour = kl(coin(0.5), coin(0.1)) + kl(coin(0.1), coin(0.01))
print(f"direct {direct:.4f}, through a third coin {detour:.4f}")
assert direct > detour

# %% [markdown]
# **`F.kl_div(p, q)`.** Three traps in one call: the first argument has to be
# *log*-probabilities; the result is KL(second ‖ first); and the default `reduction="mean"`
# divides by the number of *elements*.

# %%
import warnings
import torch.nn.functional as F
p = torch.tensor([[0.50, 0.48, 0.02]])
q = torch.tensor([[0.90, 0.05, 0.05]])
print(f"wanted: KL(p||q) {kl(p, q):.4f}")
calls = {"p, q, sum": (p, q, "sum"),
         "log p, q, sum": (p.log(), q, "sum"),
         "log q, p, mean": (q.log(), p, "mean"),
         "log q, p, batchmean": (q.log(), p, "batchmean")}
got = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")              # torch warns of "mean"
    for name, (a, b, how) in calls.items():
        got.append(F.kl_div(a, b, reduction=how))
        print(f"kl_div of {name:20s} {got[-1]:7.4f}")
assert got[0] < 0 and torch.isclose(got[1], kl(q, p))
assert torch.isclose(got[3], kl(p, q))

# %% [markdown]
# The first is negative, the second the other KL, the third a third of the right one.
#
# **"Perplexity compares models."** Per *token*: a tokeniser with longer tokens has fewer of
# them and a higher loss on each. The same answer of NLL 12 nats, as 6 tokens or as 4:

# %%
for T in (6, 4):
    print(f"{T} tokens: {12 / T:.4f} nats each, "
          f"perplexity {math.exp(12 / T):.2f}")

# %% [markdown]
# **"Low NLL, so the policy is good at the task."** NLL asks how likely the teacher's
# wording is, $J$ how often the answer is right. One policy nearly always writes *another*
# right answer, (1, stop); one writes the gold one four times in ten and else gives up:

# %%
def writes(favourite, probability):              # first token decides
    table = torch.full((7, 3), 1e-4)
    for t, token in enumerate(favourite):
        table[policy.states[favourite[:t]], token] = 1.0
    table[0, favourite[0]] = probability / (1 - probability)
    table[0, policy.stop] = 1.0
    return SequencePolicy(2, 3, table.log())

gold = (0, 1, policy.stop)
for name, other in (("other wording", writes((1, 2), 0.99)),
                    ("gold, 4 in 10", writes(gold, 0.4))):
    nll = -other.probabilities()[policy.outcomes.index(gold)].log()
    J = expected_reward(other, grade)
    print(f"{name}: NLL {nll.item():.4f}, J {J.item():.4f}")

# %% [markdown]
# The lower NLL has the lower $J$.
#
# ## Exercises
#
# **01.1 Derive** · 8 minutes · ●●○. (a) $\partial L/\partial z_v=\pi_v-[v=y^\star]$ for
# $L=-\log\pi_{y^\star}$. (b) From memory: $\mathrm{KL}(p\Vert q)\ge0$.
# Then what is not above: when is it 0?
# <details><summary>hint</summary>
#
# (a) Write $L$ with the log-sum-exp. What is the derivative of $\log\sum_v e^{z_v}$? (b)
# $\log x\le x-1$, equal only at $x=1$. Mind the words with $p_v=0$.
# </details>

# %% [markdown]
# **01.2 Predict, then run** · 6 minutes · ●●○. Peaks at ±3 of deviation 1, but the right
# one has weight 0.8. Mean, deviation and KL of the best Gaussian in the reverse direction;
# mean and deviation in the forward one. On paper, then in the cell or the explorer.
# <details><summary>hint</summary>
#
# Forward: moments of a mixture; the variance is $\mathbb{E}[x^2]-\mathbb{E}[x]^2$. Reverse:
# which peak, and the log of which share?
# </details>

# %% tags=["exercise"]
mine = {"forward": (..., ...), "reverse": (..., ..., ...)}  # your numbers

# for way, numbers in compute(weight=0.8)["best"].items():
#     print(way, [round(v, 4) for v in numbers])

# %% [markdown]
# **01.3 Derive** · 8 minutes · ●●●. The identity of the leashed reward:
# $\mathbb{E}_\pi[r]-\beta\,\mathrm{KL}(\pi\Vert\pi_\text{ref})=\beta\log Z-\beta\,
# \mathrm{KL}(\pi\Vert\pi^\star)$. Which policy is best, then? What happens to it for
# $\beta\to0$ and $\beta\to\infty$?
# <details><summary>hint</summary>
#
# Take the logarithm of the definition of $\pi^\star$, solve it for $r$, and put that into
# the left side.
# </details>

# %% [markdown]
# **01.4 Implement** · 6 minutes · ●○○. From memory: KL between two distributions in nats.
# A word that $p$ never uses costs nothing; a word that only $q$ never uses costs everything.
# <details><summary>hint</summary>
#
# Which argument weighs, and which stands on top of the fraction? Try p = (½, ½, 0).
# </details>

# %% tags=["exercise"]
def my_kl_divergence(p, q):                      # (V,), (V,) -> ()
    return ...

check.kl_divergence(my_kl_divergence)

# %% [markdown]
# **01.5 Implement** · 4 minutes · ●○○. From memory: cross-entropy of data $p$ under a
# model $q$, in nats; both are probabilities.
# <details><summary>hint</summary>
#
# `F.cross_entropy` wants logits. The formula is shorter.
# </details>

# %% tags=["exercise"]
def my_cross_entropy(p, q):                      # (V,), (V,) -> ()
    return ...

check.cross_entropy(my_cross_entropy)

# %% [markdown]
# **01.6 Find the silent bug** · 8 minutes · ●●○. A penalty that keeps a policy near a reference. It
# is 0 where the two agree, positive elsewhere, and it trains. Write a test that the right
# implementation passes and this one fails; `check.silent_bug_one_scalar_loss` runs it on both.

# %%
print(check.silent_bug_one_scalar_loss.source)

# %% tags=["exercise"]
def my_test(kl_to_reference):
    return ...   # call it, then assert

check.silent_bug_one_scalar_loss(my_test)

# %% [markdown]
# <details><summary>hint</summary>
#
# What does `F.kl_div(input, target)` compute? Two words, one row, numbers for which the
# two directions differ, and the right value by hand. (Mirrored pairs like (0.7, 0.3) and
# (0.3, 0.7) give the same in both directions.)
# </details>
#
# Solved, with every check passing: [solutions](solutions/01_one_scalar_loss.ipynb).
#
# ## In the interview
#
# Answer aloud, 60 seconds each, then unfold.
#
# **How do cross-entropy, KL and maximum likelihood hang together?**
# <details><summary>answer</summary>
#
# H(p, q) = H(p) + KL(p‖q). The mean NLL of a data set is the cross-entropy between the
# empirical distribution and the model. The data's entropy does not depend on the model,
# so minimising NLL, minimising cross-entropy and minimising KL(data‖model) have the same
# gradient and the same optimum. The floor of the loss is H(data), not 0.
# </details>
#
# **Forward or reverse KL: what is the difference, and where does each occur?**
# <details><summary>answer</summary>
#
# The first argument weighs the terms. Forward, KL(data‖model): paid wherever the data are
# and the model is not; infinite if it gives a seen token probability 0. A model that is
# too small covers. It is SFT and distillation on the teacher's text. Reverse,
# KL(model‖target): paid where the model is and the target is not; a model that is too
# small picks modes. It is the leash of RLHF and distillation on the student's own text,
# because there the model draws. With enough capacity both have the same optimum.
# </details>
#
# **Why is SFT plain backpropagation and RL not?**
# <details><summary>answer</summary>
#
# In SFT the answers come from a fixed distribution, and θ occurs only in log π(y): the
# gradient of the mean is the mean of the gradients. In RL θ decides which answers are
# drawn. The draw is an integer, piecewise constant in the logits; the reward is a program
# with no derivative. The exact expectation is differentiable but has about V^T terms, a
# 5182-digit number for 151,936 words and 1000 tokens. The score function is the way out.
# </details>
#
# **What is the gradient of the NLL with respect to the logits?**
# <details><summary>answer</summary>
#
# π − onehot(gold): softmax is the derivative of log-sum-exp. Bounded, sums to 0, vanishes
# as the gold token becomes certain. Per token, zero for prefixes that do not occur in
# the data. REINFORCE has the same vector times an advantage, with the drawn token in the
# place of the gold one.
# </details>
#
# **Your model starts with a loss of 14 on a vocabulary of 50,257. What do you say?**
# <details><summary>answer</summary>
#
# A uniform model has log 50,257 = 10.82 nats. 14 is worse than knowing nothing: logits of
# too large a scale at initialisation, labels shifted or misaligned, or padding scored as
# targets. Clearly below 10.82 at step 0 would be as suspicious: leaked labels, or a mean over
# padding.
# </details>
#
# **RL with a KL penalty: what distribution is it heading for?**
# <details><summary>answer</summary>
#
# π*(y) ∝ π_ref(y) e^{r(y)/β}. The leashed objective is β log Z − β KL(π‖π*), so training is
# a reverse KL to the tilted reference. β → ∞: the reference. β → 0: all mass on the best
# answers the reference can produce at all; an answer with reference probability 0 stays
# at 0. DPO starts from the same formula.
# </details>
#
# **How would you compute KL(π‖ref) in PyTorch? What can go wrong?**
# <details><summary>answer</summary>
#
# From full distributions: (π · (log π − log ref)).sum(-1), or F.kl_div(ref_logp, pi_logp,
# log_target=True, reduction="batchmean"): the target is the distribution that weighs. Wrong
# order gives the other KL, probabilities in the first place give nonsense, "mean" divides
# by the vocabulary. From samples: log π − log ref on tokens drawn from π is unbiased as a
# value, but its expected gradient as a loss is 0.
# </details>
#
# ## Recap
#
# From page 02 on, one group of four answers goes through every method: rewards 1, 1, 0, 0,
# lengths 3, 5, 2, 6. The simplest use of a grader is SFT on the two right ones, as the mean
# over their 8 tokens (rejection-sampling fine-tuning). `A` is the factor of each answer's
# log-probability, here the reward; `token` is the push on each of its tokens, $A/8$.

# %%
from rlnb.toys import running_group
group = running_group()
right = (group.rewards == 1)[:, None] & group.mask               # (4, T)
sft = -torch.where(right, group.logprobs, 0.0).sum() / right.sum()
push = -torch.autograd.grad(sft, group.logprobs)[0][:, 0]        # (4,)
show("A", group.rewards)
show("token", push)
assert torch.allclose(push, group.rewards / 8)

# %% [markdown]
# * One scalar, one chain rule. For a gold token the gradient is $\pi-\text{onehot}$.
# * $H(p,q)=H(p)+\mathrm{KL}(p\Vert q)$: maximum likelihood is forward KL, with the
#   entropy of the data as floor.
# * Forward covers, reverse picks, *if* the model is too small and the modes are apart.
# * Examples given: forward, and the gradient goes inside the mean. Examples drawn by the
#   model: it does not, and the KL that leashes them is reverse.
# * A draw has no slope; its expectation has one, and some $V^T$ terms.
#
# Next: [02 · REINFORCE](02_reinforce.ipynb), which gets the gradient of that expectation
# from draws alone.
