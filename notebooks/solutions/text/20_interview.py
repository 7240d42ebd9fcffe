# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 20 · Interview: solutions
#
# The whiteboard of [20](../20_interview.ipynb) solved and checked, the broken loss mended, the four
# boards written out, and the numbers of those answers in the question bank that no other page
# computes.

# %%
import math
import torch
from torch.nn.functional import logsigmoid
from rlnb import check
from rlnb.classroom.interview.code_round import symptoms
from rlnb.classroom.interview.derivation import judge, lines
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

def show(*values):
    """Numbers to six digits, tensors as lists of them."""
    flat = [v.detach().flatten().tolist() if torch.is_tensor(v) else v
            for v in values]
    print(*([float(f"{x:.6g}") for x in v] if isinstance(v, list)
            else f"{v:.6g}" for v in flat))

# %% [markdown]
# ## Ten functions

# %% tags=["solution"]
def token_logprobs(logits, tokens):  # (B, T, V), (B, T) -> (B, T)
    scores = logits.log_softmax(-1)  # subtracts the largest first
    return scores.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)

check.token_logprobs(token_logprobs)

# %% tags=["solution"]
def group_advantages(rewards, num_generations):
    r = rewards.view(-1, num_generations)              # (P, G)
    centred = r - r.mean(1, keepdim=True)
    std = r.std(1, keepdim=True, correction=0)         # population
    return (centred / (std + 1e-6)).view(-1)           # (B,)

check.group_advantages(group_advantages)

# %% tags=["solution"]
def baseline_leave_one_out(rewards, num_generations):  # (B,), G -> (B,)
    groups = rewards.view(-1, num_generations)                   # (P, G)
    others = groups.sum(1, keepdim=True) - groups                # (P, G)
    return (others / (num_generations - 1)).view(-1)

check.baseline_leave_one_out(baseline_leave_one_out)

# %% tags=["solution"]
def surrogate_clip(ratio, advantage, epsilon):
    low, high = 1 - epsilon, 1 + epsilon
    risen_good = (advantage > 0) & (ratio > high)
    fallen_bad = (advantage < 0) & (ratio < low)
    value = ratio * advantage
    value = torch.where(risen_good, high * advantage, value)
    return torch.where(fallen_bad, low * advantage, value)

check.surrogate_clip(surrogate_clip)

# %% tags=["solution"]
def gae(rewards, values, gamma, lam):
    delta = rewards + gamma * torch.cat([values[1:], values.new_zeros(1)])
    delta = delta - values
    t = torch.arange(len(delta))
    later = (t - t[:, None]).clamp(min=0)                    # k - t
    counts = ((gamma * lam) ** later).triu().to(delta)       # (T, T)
    return counts @ delta

check.gae(gae)

# %% tags=["solution"]
def k3(logprobs, ref_logprobs):
    d = ref_logprobs - logprobs                        # log(ref / pi)
    return torch.expm1(d) - d

check.k3(k3)

# %% tags=["solution"]
def sequence_ratio(logprobs, old_logprobs, mask):
    zero = torch.zeros_like(logprobs)
    new = torch.where(mask, logprobs, zero)
    old = torch.where(mask, old_logprobs, zero)
    return ((new - old).sum(1) / mask.sum(1).clamp(min=1)).exp()

check.sequence_ratio(sequence_ratio)

# %% tags=["solution"]
def token_mean(per_token, mask):
    return torch.where(mask, per_token, 0).sum() / mask.sum()

check.token_mean(token_mean)

# %% tags=["solution"]
def dpo_loss(logprobs, ref_logprobs, mask, beta):
    per_token = torch.where(mask, logprobs - ref_logprobs, 0)
    h = per_token.sum(1)                               # (2 P,)
    chosen, rejected = h.chunk(2)
    return -logsigmoid(beta * (chosen - rejected)).mean()

check.dpo_loss(dpo_loss)

# %% tags=["solution"]
def pass_at_k(n, c, k):  # page 17 has the product, for all problems at once
    return 1 - math.comb(n - c, k) / math.comb(n, k)

check.pass_at_k(pass_at_k)

# %% [markdown]
# ## The broken loss, mended

# %% tags=["solution"]
def batch_loss(logprobs, sampled, mask, rewards, num_generations):
    epsilon = 0.2
    groups = rewards.view(-1, num_generations)
    baseline = groups.mean(1, keepdim=True)            # of each prompt
    advantage = (groups - baseline).view(-1, 1)
    ratio = (logprobs - sampled).exp()                 # now over drawn
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    objective = torch.minimum(ratio * advantage, clipped * advantage)
    objective = torch.where(mask, objective, 0.0)
    return -objective.sum() / mask.sum()               # real tokens only

symptoms(batch_loss)
check.batch_loss(batch_loss)

# %% [markdown]
# ## The four boards

# %% tags=["solution"]
for board in ("reinforce", "ppo", "grpo", "dpo"):
    for line in lines(board):
        said = judge(line.name, line.right, board).said
        print(f"{line.name:9} = {line.right:45} {said}")

# %% [markdown]
# ## The numbers of the bank
#
# Under each question its own few lines. The answers stand in the drill and, folded, on page 20.

# %% [markdown]
# **one_scalar_loss.11** · Softmax (0.7, 0.2, 0.1); the second token was drawn with A = −1.
# Gradient of the loss in the logits?

# %% tags=["work:one_scalar_loss.11"]
z = torch.tensor([.7, .2, .1]).log().requires_grad_()
loss = 1 * z.log_softmax(0)[1]            # -A log pi, A = -1
loss.backward(); show(z.grad)

# %% [markdown]
# **reinforce.11** · Two actions, reward 1 or 0, success probability p. Variance of one draw's
# gradient in the logit, and the noise-to-signal ratio?

# %% tags=["work:reinforce.11"]
p = .01
show(p * (1 - p)**3, ((1 - p) / p)**.5)

# %% [markdown]
# **reinforce.13** · Policy gradient plateaus when success is rare. Why, in logits?

# %% tags=["work:reinforce.13"]
z = torch.tensor([.001, .999]).log().requires_grad_()
(z.softmax(0) * torch.tensor([1., 0.])).sum().backward()
show(z.grad)

# %% [markdown]
# **baselines.4** · Two of eight answers are right. Leave-one-out advantages?

# %% tags=["work:baselines.4"]
r = torch.tensor([1., 1, 0, 0, 0, 0, 0, 0])
show(r - (r.sum() - r) / 7, r - r.mean())

# %% [markdown]
# **baselines.6** · Which baseline has the least noise? Is it the mean reward?

# %% tags=["work:baselines.6"]
p = torch.tensor([.95, .05])             # right, wrong; the logit of right
R, s = torch.tensor([1., 0]), torch.tensor([.05, -.95])   # d log pi
show((p * R * s**2).sum() / (p * s**2).sum(), (p * R).sum())

# %% [markdown]
# **importance_sampling.2** · Importance weights 4, 1, 1, 1, 1. Effective sample size?

# %% tags=["work:importance_sampling.2"]
w = torch.tensor([4., 1, 1, 1, 1])
cv2 = w.var(correction=0) / w.mean()**2
show(w.sum()**2 / (w**2).sum(), w.mean(), w.var(correction=0), cv2, 1 + cv2)

# %% [markdown]
# **importance_sampling.11** · The mean ratio is 1.00 throughout, yet training explodes. Which
# alarm would have gone off?

# %% tags=["work:importance_sampling.11"]
ratios = torch.tensor([.99] * 1000 + [11.])
show(ratios.mean(), ratios.max())

# %% [markdown]
# **kl.4** · p = (0.5, 0.5), q = (0.9, 0.1): both KL directions?

# %% tags=["work:kl.4"]
p, q = torch.tensor([.5, .5]), torch.tensor([.9, .1])
show((p * (p / q).log()).sum(), (q * (q / p).log()).sum())
show(p * (p / q).log(), q * (q / p).log(), q / p)

# %% [markdown]
# **kl.10** · Full-vocabulary KL or sampled-token KL: how do you choose?

# %% tags=["work:kl.10"]
show(8_000 * 150_000 * 4 / 1e9)

# %% [markdown]
# **critic.3** · Rewards 0, 0, 1; values 0.2, 0.4, 0.6; γ = 1, λ = 0.5. GAE?

# %% tags=["work:critic.3"]
r, v, A = [0, 0, 1], [.2, .4, .6, 0], 0.
for t in (2, 1, 0):
    delta = r[t] + v[t + 1] - v[t]; A = delta + .5 * A
    show(round(delta, 4), round(A, 4), round(A + v[t], 4), 1 - v[0])

# %% [markdown]
# **grpo.5** · Success probability 0.1, G = 8: chance that a group teaches anything?

# %% tags=["work:grpo.5"]
p, G = .1, 8
show(1 - p**G - (1 - p)**G, (1 - p)**G, p * G, math.exp(-.8), 1 - .99**16)

# %% [markdown]
# **grpo.8** · Rewards 3, 1, 2, 0: GRPO's advantages?

# %% tags=["work:grpo.8"]
r = torch.tensor([3., 1, 2, 0])
show((r - r.mean()) / r.std(correction=0), (r - r.mean()) / r.std())
show(r.mean(), r - r.mean(), (4 / 3)**.5)
show(r.var(correction=0))

# %% [markdown]
# **grpo.15** · Eight wrong answers, one of them formatted (+0.1). Its z-score, and what follows?

# %% tags=["work:grpo.15"]
r = torch.tensor([.1, 0, 0, 0, 0, 0, 0, 0])
show((r - r.mean()) / r.std(correction=0), r.mean(), r.std(correction=0))
show(r - r.mean())

# %% [markdown]
# **grpo_biases.4** · One right in four: advantages with population and with sample std?

# %% tags=["work:grpo_biases.4"]
r = torch.tensor([1., 0, 0, 0])
show((r - r.mean()) / r.std(correction=0), (r - r.mean()) / r.std())
show(r - r.mean(), (4 / 3)**.5)

# %% [markdown]
# **grpo_biases.5** · "z-scoring blows up easy prompts and shrinks hard ones, so easy ones
# dominate." True or false?

# %% tags=["work:grpo_biases.5"]
show(.381 / .234, 3.873 / 15)

# %% [markdown]
# **grpo_biases.13** · Mixed groups only, G = 8: a right answer's mean advantage (no std) at p =
# 0.1 and 0.9 against the true one?

# %% tags=["work:grpo_biases.13"]
for p in (.1, .9):
    w = [math.comb(8, k) * p**k * (1 - p)**(8 - k) for k in range(1, 8)]
    show(p, sum(a * (1 - k / 8) for k, a in zip(range(1, 8), w)) / sum(w))

# %% [markdown]
# **dr_grpo.3** · Answers of length 2 and 6 with token losses 1 and 3: three aggregates?

# %% tags=["work:dr_grpo.3"]
show(20 / 8, (1 + 3) / 2, 20 / (2 * 8))

# %% [markdown]
# **dr_grpo.9** · Micro-batches of 10 and 90 tokens, each averaged over its own tokens. What is the
# error?

# %% tags=["work:dr_grpo.9"]
show((1/20) / (1/100), (1/180) / (1/100))

# %% [markdown]
# **dapo.2** · Success 0.02, G = 16: how many prompts per kept group?

# %% tags=["work:dapo.2"]
m = 1 - .98**16 - .02**16
show(m, 1 / m, 16 / m)

# %% [markdown]
# **dapo.3** · Limit 20k, soft buffer 4k, answer 18k tokens: overlong penalty?

# %% tags=["work:dapo.3"]
show((16 - 18) / 4)

# %% [markdown]
# **soft_trust_regions.8** · Should CISPO's weight have a positive floor?

# %% tags=["work:soft_trust_regions.8"]
show(.8 / .01)

# %% [markdown]
# **soft_trust_regions.9** · Differentiate SAPO's gate: which weight stands on ∇log π?

# %% tags=["work:soft_trust_regions.9"]
show(1 / math.cosh(.25)**2, 1.5 / math.cosh(.25)**2, (1.5 - 1) / 2)

# %% [markdown]
# **gspo.3** · Log-ratios 0.3, −0.3, 0.1: geometric mean ratio and product?

# %% tags=["work:gspo.3"]
l = torch.tensor([.3, -.3, .1])
show(l.mean().exp(), l.sum().exp(), l.exp().mean(), l.sum())

# %% [markdown]
# **gspo.4** · One token at log-ratio +2 among 1,000, the others unchanged, band 4e-4. What
# happens?

# %% tags=["work:gspo.4"]
show(math.exp(.002))

# %% [markdown]
# **gspo.6** · Why is ε 3e-4 and not 0.2?

# %% tags=["work:gspo.6"]
show(1000 * math.log10(1.2), 1.0003**1000, 1.0004**1000)
show(.02 / 5000**.5, .1 / 1000**.5, math.log(1.2))  # sigma / sqrt(T)

# %% [markdown]
# **gspo.10** · What does one outlier token do under GRPO, GSPO and GMPO?

# %% tags=["work:gspo.10"]
show(2 / math.log(1.0004))

# %% [markdown]
# **gspo.13** · ε = 0.2 was inherited from the GRPO config. What shows?

# %% tags=["work:gspo.13"]
show(math.log(1.2))

# %% [markdown]
# **gspo.17** · When is the exact product ratio worth its variance?

# %% tags=["work:gspo.17"]
show(1.001**100 - 1)

# %% [markdown]
# **the_zoo.4** · Rewards 1, 1, 0, 0 under four conventions of advantage?

# %% tags=["work:the_zoo.4"]
r = torch.tensor([1., 1, 0, 0]); d = r - r.mean()
show(d / r.std(correction=0), d / r.std(), r - (r.sum() - r) / 3, d)
show(r.std())

# %% [markdown]
# **the_zoo.15** · Differentiate pass@k: what is the weight per prompt?

# %% tags=["work:the_zoo.15"]
show(8 * .5**7)

# %% [markdown]
# **preferences.5** · β = 0.1, log-ratios +2 (chosen) and −3 (rejected): DPO loss?

# %% tags=["work:preferences.5"]
m = torch.tensor(.5)
show(-m.sigmoid().log(), m.sigmoid(), 1 - m.sigmoid())
show(-torch.tensor(0.).sigmoid().log())
show(-torch.tensor(5.).sigmoid().log(), .1 * 5)

# %% [markdown]
# **preferences.6** · DPO starts at a loss of ln 2. Is there any gradient?

# %% tags=["work:preferences.6"]
show(math.log(2), 1 - .5)

# %% [markdown]
# **preferences.14** · Raters prefer A to B, B to C and C to A. What does Bradley-Terry do?

# %% tags=["work:preferences.14"]
u = torch.zeros(3, requires_grad=True)
pairs = ((0, 1), (1, 2), (2, 0))
loss = -sum((u[i] - u[j]).sigmoid().log() for i, j in pairs) / 3
loss.backward(); show(loss.detach(), u.grad)

# %% [markdown]
# **preferences.16** · A fifth of the labels is flipped. Which loss, and how do you know the rate?

# %% tags=["work:preferences.16"]
e = .2; show(1 - 2 * e, 2 * e * (1 - e))

# %% [markdown]
# **rewards.12** · A verifier has 5 % false positives and 20 % false negatives, independent of the
# answer. Effect on the gradient?

# %% tags=["work:rewards.12"]
show(1 - .05 - .20)

# %% [markdown]
# **rewards.18** · How much KL can best-of-16 cost at most?

# %% tags=["work:rewards.18"]
show(math.log(16) - 15 / 16, math.log(16), 15 / 16)

# %% [markdown]
# **evaluation.4** · Thirty problems, half right, one run. Standard error?

# %% tags=["work:evaluation.4"]
show((.25 / 30)**.5, .25 / .01**2)

# %% [markdown]
# **evaluation.5** · Three of ten answers are right: unbiased pass@4, and the plug-in?

# %% tags=["work:evaluation.5"]
show(1 - math.comb(7, 4) / math.comb(10, 4), 1 - .7**4, math.comb(7, 4))
show(math.comb(10, 4))

# %% [markdown]
# **evaluation.15** · You took the best of 20 checkpoints by test score, and they were all equal.
# How optimistic is the number?

# %% tags=["work:evaluation.15"]
g = torch.linspace(-8, 8, 16001)
f = torch.exp(-g**2 / 2) / (2 * math.pi)**.5
F = torch.special.ndtr(g)
for N in (20, 5): show(N, torch.trapezoid(g * N * f * F**(N - 1), g))

# %% [markdown]
# **agents.10** · Two successes of two turns, two failures of one turn; the baseline is a mean over
# turns. What goes wrong?

# %% tags=["work:agents.10"]
show(4 / 6, 1 - 4 / 6, -4 / 6, 2 / 4)

# %% [markdown]
# **systems.1** · A 7B model in bf16, 50 GB/s: how long does one weight sync take?

# %% tags=["work:systems.1"]
show(7e9 * 2 / 1e9, 14 / 50)

# %% [markdown]
# **systems.2** · 32 layers, 8 KV heads, head width 128, bf16: KV cache per token?

# %% tags=["work:systems.2"]
b = 2 * 32 * 8 * 128 * 2
show(b, b / 1024, b * 8192 / 2**30)

# %% [markdown]
# **systems.3** · Generation is 80 % of a step. What is the most that overlap can give?

# %% tags=["work:systems.3"]
show(1 / .8, 1 / .2)

# %% [markdown]
# **systems.22** · What does ZeRO-3 save, what does it cost, and what does it not touch?

# %% tags=["work:systems.22"]
show(7e9 * 16 / 1e9, 7e9 * 16 / 1e9 / 8)

# %% [markdown]
# **systems.24** · fp16 or bf16 for RL?

# %% tags=["work:systems.24"]
show(2**-11, 2**-8, 2**-24)

# %% [markdown]
# **systems.26** · Prefill and decode on different machines: what travels, and when is it worth it?

# %% tags=["work:systems.26"]
show(2 * 32 * 8 * 128 * 2 / 1024, 2 * 32 * 8 * 128 * 2 * 8192 / 2**30)

# %% [markdown]
# **grpo_for_real.5** · Raw logits are passed to multinomial sampling. What happens?

# %% tags=["work:grpo_for_real.5"]
show(math.exp(2))
