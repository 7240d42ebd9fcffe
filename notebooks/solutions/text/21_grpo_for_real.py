# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 21 · GRPO for real: solutions
#
# The exercises of [21](../21_grpo_for_real.ipynb), solved and run. Numbers downstream of sampling
# are one run on one machine.

# %%
import torch
from rlnb import ZOO, check
from rlnb.training import TASKS, Recipe, data_folder, load, train
_ = torch.set_num_threads(1)

# %% [markdown]
# ## 1 The loss of a later update

# %% tags=["solution"]
def later_loss(logp, stored, rewards, mask, num_generations, max_length):
    groups = rewards.view(-1, num_generations)
    A = (groups - groups.mean(1, keepdim=True)).view(-1, 1)
    rho = (logp - stored).exp()
    gain = torch.minimum(rho * A, rho.clamp(0.8, 1.2) * A)
    gain = torch.where(mask, gain, 0.0)
    return -gain.sum() / (len(rewards) * max_length)


check.later_loss(later_loss)

# %% [markdown]
# The page's loop has `logp.detach()` in place of `stored`. Used for a second update that still
# runs: the ratio is 1 in value, its gradient is the unclipped one at the new weights, and no log of
# the clip shows anything.
#
# ## 2 The log

# %% tags=["solution"]
def run_log(rewards, num_generations, finished, mask, sampled, scored):
    groups = rewards.view(-1, num_generations)
    low, high = groups.min(1).values, groups.max(1).values
    shares = [low == 1, high > low, high == 0, ~finished]
    gap = torch.where(mask, sampled - scored, 0.0).abs().max()
    return torch.stack([*(s.to(gap.dtype).mean() for s in shares), gap])


check.run_log(run_log)

# %% [markdown]
# All right and all wrong look alike to the gradient and mean opposite things, so they are logged
# apart. The gap is a maximum: one bad token among thousands vanishes in a mean.
#
# ## 3 The style story
#
# $\partial d/\partial z=d(1-d)$, so
#
# $$\frac{\partial p}{\partial z}=d(1-d)\,(a_\text{direct}-a_\text{steps})<0:$$
#
# the logit of the direct style falls, fastest at $d=\tfrac12$ and ever more slowly as $d\to0$.
# Exploration pays for itself here because both styles are common at the start; at $d=0.999$ the
# same gradient would be 240 times smaller. The ceiling is $d=0$: $p=a_\text{steps}$. With the
# shipped model's numbers:

# %% tags=["solution"]
def style_slope(d, direct, steps):
    return d * (1 - d) * (direct - steps)


check.style_slope(style_slope)

# %%
d, a_direct, a_steps, after = 0.606, 0.227, 0.656, 0.919
p = d * a_direct + (1 - d) * a_steps
slope = d * (1 - d) * (a_direct - a_steps)
rare = 0.999 * 0.001 * (a_direct - a_steps)
print(f"p {p:.4f}, dp/dz {slope:.4f}, at d = 0.999 {rare:.5f}")
print(f"elicited {a_steps - p:.4f} of a gain of {after - p:.4f}")
assert 200 < slope / rare < 260 and a_steps - p < after - p

# %% [markdown]
# About half of the gain. The other half is what the story held fixed: $a_\text{steps}$ itself
# rises, because answers with a slip in them are pushed down. That is the sharpening.
#
# ## 4 Wrong neighbours
#
# Rows $kG,\dots,kG+G-1$ belong to problem $k$: the index is `i // G`. With `i % P` nearly every
# answer is compared with another problem's digit. Rewards become a weak coin, and the page has
# shown what a coin teaches. A third of the groups is all wrong, because the digits seldom meet. The
# test needs no model: hand in the right answers, expect 1 everywhere.

# %% tags=["solution"]
def perfect_answers_earn_one(rewards_of):
    problems = ["3", "7"]
    texts = [f"so{digit}" for digit in problems for _ in range(2)]
    assert rewards_of(problems, texts) == [1.0] * 4


check.silent_bug_grpo_for_real(perfect_answers_earn_one)

# %% [markdown]
# ## The coin, in numbers
#
# Eight coins agree with probability $2\cdot2^{-8}=0.0078$: practically every group is mixed, all
# the way. "Mixed" says that rewards differ, not that they mean something. Entropy stays, because
# nothing is preferred; the share of direct answers walks, up in two seeds and down in one.

# %%
from rlnb.training import read, series

print("seed   mixed   entropy at 1, 20   direct at 0, 20   pass@1")
for seed in range(3):
    name = f"chain_coin_flip_seed{seed}.jsonl"
    run = read(data_folder() / "runs" / name)
    mixed = series(run, "groups/mixed").values()
    H, direct = series(run, "entropy"), series(run, "direct", "eval")
    print(f"{seed:4d}   {sum(mixed) / len(mixed):.3f}"
          f"   {H[1]:.3f} {H[20]:.3f}        {direct[0]:.3f}"
          f" {direct[20]:.3f}      {series(run, 'pass@1', 'eval')[20]:.3f}")
    assert sum(mixed) / len(mixed) > 0.98 and abs(H[20] - H[1]) < 0.06
    assert series(run, "pass@1", "eval")[20] < 0.389

# %% [markdown]
# ## Experiment: one rollout, three objectives
#
# RLOO's advantage is $\tfrac{8}{7}$ of Dr. GRPO's and its token weight $1/N$ in place of $1/(72N)$:
# a factor $\tfrac{8}{7}\cdot72=82.29$, the same direction. GRPO is another direction: it divides by
# each group's std and each answer's length.

# %% tags=["trajectory", "nbval-ignore-output"]
import random
from rlnb.objective import Batch
from rlnb.training import Sampling, encode_prompts, sample, token_logprobs

task, (model, tokenizer) = TASKS["chain"], load(data_folder() / "model")
rng = random.Random(0)
asked = [task.problem(rng, "train") for _ in range(16)]
rollout = sample(
    model, encode_prompts(tokenizer, [p.prompt for p in asked]), 8,
    Sampling(), eos_id=tokenizer.eos_token_id,
    pad_id=tokenizer.pad_token_id,
    generator=torch.Generator(model.device).manual_seed(0))
r = torch.tensor([task.verify(asked[i // 8], text) for i, text
                  in enumerate(rollout.texts(tokenizer))])      # (128,)
g = {}
for name in ("dr_grpo", "rloo", "grpo"):
    lp, _ = token_logprobs(model, rollout, temperature=1.0)     # (128, T)
    loss = ZOO[name].replace(terms=())(Batch(
        lp, rollout.completion_mask, r.to(lp), 8,
        max_completion_length=72)).loss
    flat = torch.autograd.grad(loss, list(model.parameters()))
    g[name] = torch.cat([x.flatten() for x in flat]).double().cpu()
    cosine = torch.cosine_similarity(g["dr_grpo"], g[name], dim=0)
    print(f"{name:8s} norm {g[name].norm():.4f}  cosine {cosine:.4f}")

# %% tags=["trajectory"]
factor = g["rloo"].norm() / g["dr_grpo"].norm()
assert abs(factor / (72 * 8 / 7) - 1) < 1e-3
assert torch.cosine_similarity(g["dr_grpo"], g["rloo"], dim=0) > 0.9999
assert torch.cosine_similarity(g["dr_grpo"], g["grpo"], dim=0) < 0.95

# %% [markdown]
# AdamW divides by the gradient's own running size, so a *constant* factor cancels:

# %%
steps = []
for scale in (1.0, 72 * 8 / 7):
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.AdamW([w], lr=3e-4, weight_decay=0.0)
    for t in range(5):
        w.grad = scale * torch.tensor([1.0, -2.0, 0.5 * t]).double()
        optimizer.step()
    steps.append(w.detach())
print("largest difference after 5 steps below 1e-9:",
      bool((steps[0] - steps[1]).abs().max() < 1e-9))
assert torch.allclose(*steps, atol=1e-9)

# %% [markdown]
# Clipping at norm 1 breaks the tie. Dr. GRPO's norms, 0.005 to 0.2 in the recorded runs, are never
# cut. Multiplied by 82, 87 % of them would be, and each cut one has length 1: steps with a strong
# signal are scaled down against the others. Not a constant factor any more. So a comparison of the
# two "methods" at one `max_grad_norm` also compares two clipping rules.
#
# ## Experiment: two rewards with a hole
#
# Watch what was paid (`reward`) against what was right (`rewards/verify/mean`), and read an answer.

# %% tags=["trajectory", "nbval-ignore-output"]
def somewhere(problem, text):                  # the digit, anywhere
    return float(problem.answer in text)


def reflective(problem, text):                 # right, and a bonus
    return task.verify(problem, text) + 0.5 * ("wait" in text)


def try_reward(reward):
    model, _ = load(data_folder() / "model")
    run = train(model, tokenizer, task, ZOO["dr_grpo"],
                Recipe(steps=20, eval_every=20, eval_prompts=50),
                reward=reward)
    for t in (1, 10, 20):
        paid, right = (series(run, k)[t]
                       for k in ("reward", "rewards/verify/mean"))
        print(f"step {t:2d}: paid {paid:.3f}, right {right:.3f}")
    answer = [s for s in run if s["record"] == "sample"][-3]
    print(answer["prompt"], answer["completion"])
    return paid, right

# %% tags=["trajectory", "nbval-ignore-output"]
paid, right = try_reward(somewhere)
assert paid > right + 0.05

# %% tags=["trajectory", "nbval-ignore-output"]
paid, right = try_reward(reflective)
assert paid > right + 0.2

# %% [markdown]
# The first one teaches to write steps, as the honest verifier does, because steps contain many
# digits; then it has no reason to get the last one right, and the two numbers part. The answer
# printed above was paid: a 0 stands in `8-0`, the end is `so2`. The second one is the more
# instructive: the model learns to write `wait` behind steps that are *right* and to repeat them. It
# looks like reflection and is a toll. Pass@1 still rises: a reward can be gamed and useful at once,
# which is why the distance between paid and right has to be logged, not guessed from the samples.
#
# ## From logits to log-probabilities

# %% tags=["solution"]
def token_logprobs_of(logits, tokens):
    index = tokens.unsqueeze(-1)                            # (B, T, 1)
    return logits.log_softmax(-1).gather(-1, index).squeeze(-1)


check.token_logprobs(token_logprobs_of)

# %% [markdown]
# ## Experiment: another temperature
#
# Tokens are drawn from $q=\pi^{1/0.7}/Z$ and scored under $\pi$. The ratio is not 1 before the
# first update, and the clip cuts fresh data.

# %% tags=["trajectory", "nbval-ignore-output"]
from rlnb.training.sampling.scoring import teacher_forced_logits

cool = sample(
    model, encode_prompts(tokenizer, [p.prompt for p in asked]), 8,
    Sampling(temperature=0.7), eos_id=tokenizer.eos_token_id,
    pad_id=tokenizer.pad_token_id,
    generator=torch.Generator(model.device).manual_seed(0))
with torch.no_grad():
    logits = teacher_forced_logits(
        model, cool, torch.arange(128, device=model.device))
tokens = cool.completion_ids[:, :logits.shape[1]]
scored = token_logprobs_of(logits, tokens)
mask = cool.completion_mask[:, :logits.shape[1]]
log_ratio = (scored - cool.logprobs[:, :logits.shape[1]])[mask]
rho = log_ratio.exp()
cut = ((rho < 0.8) | (rho > 1.2)).double().mean()
print(f"mean ratio {rho.mean():.3f}, largest gap"
      f" {log_ratio.abs().max():.3f}, outside the band {cut:.3f}")
assert abs(rho.mean() - 1) < 0.1 and log_ratio.abs().max() > 0.5

# %% [markdown]
# The trap is the mean: $\mathbb E_q[\pi/q]=1$ for any two policies, so a plot of `ratio/mean` looks
# healthy. The loss looks healthy too. What shows it at once is the largest gap between the
# sampler's and the trainer's log-probability before the first update: `sampling/logp_difference`,
# 1e-5 in a sound run. Assert that it is below 1e-4.
#
# ## The silent bug on real answers

# %%
def rewards_of(problems, texts):                       # as on the page
    return [task.verify(problems[i % len(problems)], text)
            for i, text in enumerate(texts)]


def repaired(problems, texts):
    G = len(texts) // len(problems)
    return [task.verify(problems[i // G], text)
            for i, text in enumerate(texts)]


perfect = [f"so{p.answer}" for p in asked for _ in range(8)]
for name, rule in (("i % P", rewards_of), ("i // G", repaired)):
    print(f"{name:6s} mean reward of perfect answers"
          f" {sum(rule(asked, perfect)) / 128:.4f}")
assert all(repaired(asked, perfect))
assert not all(rewards_of(asked, perfect))
