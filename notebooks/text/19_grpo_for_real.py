# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 19 · GRPO for real
#
# **Settles:** what a whole run does to a real transformer, which curves to look at, and what the model knew
# before it was rewarded for anything.
#
# 40 minutes · after [06](06_grpo.ipynb) · Dr. GRPO, Liu et al. 2025 ([2503.20783](https://arxiv.org/abs/2503.20783));
# pass@k, Chen et al. 2021 ([2107.03374](https://arxiv.org/abs/2107.03374)); does RL reach beyond the base model,
# Yue et al. 2025 ([2504.13837](https://arxiv.org/abs/2504.13837)); spurious rewards, Shao et al. 2025
# ([2506.10947](https://arxiv.org/abs/2506.10947)).

# %% [markdown]
# > **08 in two lines.** Dr. GRPO drops GRPO's two divisors: the advantage is $A_i=r_i-\bar r$, and every token weighs the
# > same, $1/(N L_{\max})$ for $N$ answers of at most $L_{\max}$ tokens.
# >
# > **15 in two lines.** pass@k is the chance that $k$ sampled answers contain a right one. If training raises pass@1 and
# > leaves pass@k where it was, it made known answers likelier; it did not find new ones.

# %%
import torch
from rlnb import ZOO, check
from rlnb.training import TASKS, Recipe, data_folder, load, train
_ = torch.set_num_threads(1)

# %% [markdown]
# ## The task
#
# Arithmetic from left to right, modulo 10, without precedence: `4+3-8=?` is $(4+3-8)\bmod 10=9$. Three to eight operators.
# An answer ends in `so` and one digit. The verifier compares that digit and does nothing else.

# %%
def verify(answer, text):
    _, so, digit = text.rpartition("so")               # the last `so`
    return float(so == "so" and digit == answer)


task = TASKS["chain"]
problem = task.parse("4+3-8=?")
for text in ("so9", "4+3=7,7-8=9so9", "4+3=1,1-8=9so9", "so8so9",
             "so8", "so9so8", "9", "", "so", "so09", "so9 ", "so3*3",
             "so__import__('os').abort()"):
    reward = verify(problem.answer, text)
    assert reward == task.verify(problem, text)
    print(f"{reward:.0f}  {text!r}")

# %% [markdown]
# The third one counts: wrong steps, right digit. Steps are not graded, only the end is. `so3*3` does not count, because the text
# is compared, never evaluated: a verifier that calls `eval` on what a model wrote runs whatever the model wrote.
#
# ## Watch a run first
#
# A transformer with 308,016 parameters, 40 optimizer steps, 16 problems a step with 8 answers each. A *direct* answer is `so` and a
# digit, no steps. Pull the step to 0 and read the four answers. Then go up. Where do answers become long? When do the bars turn?
# Then press *coin flip*, a run whose verifier throws a coin.

# %% tags=["explorer"]
from rlnb.classroom import explorers

explorers.recorded_run_explorer()

# %% [markdown]
# Five of its steps as numbers (shares of the step's 16 groups; pass@1 is from the newest evaluation on problems that
# training never sees):

# %%
from rlnb.classroom.explorers.recorded_run import compute

print("step  pass@1  direct   right  mixed  wrong   length  entropy")
for step in (1, 10, 20, 30, 40):
    d = compute(step)
    right, mixed, wrong = (d["groups"][k][-1] for k in d["groups"])
    m = d["metrics"]
    print(f"{step:4d}  {list(d['pass@1'].values())[-1]:.3f}"
          f"   {list(d['direct'].values())[-1]:.3f}"
          f"   {right:.3f}  {mixed:.3f}  {wrong:.3f}"
          f"   {m['completions/mean_length']:5.1f}    {m['entropy']:.3f}")

# %% [markdown]
# From 39 % to 92 % of unseen problems, answers twice as long, entropy down to a tenth. It looks as if the model had learned to
# reason. Whether it did is the question of this page, and the answer has to come from measurements made *before* training.
#
# ## What the base model was taught
#
# It was trained by imitation (SFT, 1000 steps of 128 demonstrations), on a mixture that was made on purpose:

# %%
import random

print(f"direct {task.direct}, error {task.error}, repair {task.repair}")
rng = random.Random(57)
for _ in range(6):
    p = task.problem(rng, "train")
    print(p.prompt, task.demo(rng, p), f"   right: {p.answer}")

# %% [markdown]
# 60 % of the demonstrations answer at once, always correctly. 40 % write every step; each step is wrong with probability 0.1,
# and half of the wrong ones are repaired after `wait`. So the popular style is the one a small model cannot do (up to
# eight operations in one forward pass), and the style it can do was taught with noise. That leaves something to elicit and
# something to clean up. A pleasing curve was built into this task: keep that in mind below.
#
# One problem in ten is held out, decided by a hash of its text, so no run on any machine trains on it:

# %%
from rlnb.training import held_out, is_held_out

model, tokenizer = load(data_folder() / "model")       # CUDA if present
unseen = held_out(task, 250)
rng = random.Random(0)
seen = [task.problem(rng, "train") for _ in range(5_120)]
print(type(model).__name__, f"{model.num_parameters():,} parameters")
print(f"{len(unseen)} held-out problems, first {unseen[0].prompt}")
assert not {p.prompt for p in unseen} & {p.prompt for p in seen}
assert all(is_held_out(p.prompt) for p in unseen)

# %% [markdown]
# ## The controls, before any reward
#
# The same 250 unseen problems: sampled at temperature 1, greedy, and both again with the *style forced*, that is, the first
# symbol of the answer written for the model. `so` forces a direct answer, the first number of the problem forces steps. Eight answers a
# problem here, four inside a run: the one base model shows as 0.38 here and 0.39 there. From here on numbers depend on the machine (another CPU rounds differently and samples differently); those
# printed are one run on one machine, and the asserts hold everywhere.

# %% tags=["trajectory", "nbval-ignore-output"]
from rlnb.training import evaluate

base = evaluate(model, tokenizer, task)       # 250 problems x 8 answers
print("device", model.device.type)
for name in ("pass@1", "pass@8", "greedy", "forced/steps",
             "forced/steps/greedy", "forced/direct",
             "forced/direct/greedy", "direct", "mean_length", "entropy"):
    print(f"{name:22s}{base[name]:8.3f}")

# %% tags=["trajectory"]
assert 0.33 < base["pass@1"] < 0.43 and base["pass@8"] > 0.9
assert base["greedy"] < base["pass@1"] - 0.05
assert base["forced/steps/greedy"] > 0.97
assert 0.58 < base["forced/steps"] < 0.73
assert base["forced/direct"] < 0.30

# %% [markdown]
# Read it slowly, it decides the page. Sampled: 0.38. Greedy: 0.26, *worse*, because the likeliest first symbol is `so` and greedy
# takes it: the same 0.256 as with `so` forced. With one symbol written for it: 0.66 sampled, and **1.000 greedy**. The base model can already do the whole
# task. It does not choose to, and its sampling is noisy. (pass@8 of 0.96 says so less clearly: there are ten digits, and guessing
# alone gets $1-0.9^8=0.57$.)
#
# With $d$ the share of direct answers and $a$ the accuracy of each style, $p=d\,a_\text{direct}+(1-d)\,a_\text{steps}$:

# %% tags=["trajectory"]
mixture = (base["direct"] * base["forced/direct"]
           + (1 - base["direct"]) * base["forced/steps"])
assert abs(mixture - base["pass@1"]) < 0.04           # 0.40 and 0.38

# %% [markdown]
# Two ways up, then. Change $d$ from 0.6 to 0: pass@1 becomes 0.66. Take the noise out of the steps: 1.00. Neither needs new
# knowledge.
#
# ## One group by hand
#
# One problem, eight answers. This is page 06's group, only that a transformer wrote it.

# %% tags=["trajectory", "nbval-ignore-output"]
from rlnb.training import Sampling, encode_prompts, sample

G, problem = 8, unseen[3]
ends = dict(eos_id=tokenizer.eos_token_id, pad_id=tokenizer.pad_token_id)
rollout = sample(
    model, encode_prompts(tokenizer, [problem.prompt]), G, Sampling(),
    generator=torch.Generator(model.device).manual_seed(5), **ends)
texts = rollout.texts(tokenizer)
r = torch.tensor([task.verify(problem, t) for t in texts])   # (G,)
A = r - r.mean()                                             # (G,)
print(f"{problem.prompt}  right: {problem.answer}  mean {r.mean():.3f}")
for i in range(G):
    print(f"r {r[i]:.0f}  A {A[i]:+.3f}  {rollout.lengths[i]:2d} tokens"
          f"  {texts[i]}")

# %% [markdown]
# In the group this page was built with, one of the right answers has a wrong step: 2·9 is not 3. Modulo 10, 3·6 and 8·6 end alike, so the end is
# right and the reward is 1. A verifier of ends pays for luck. (The end-of-sequence token counts as a token: the policy chose it.)
#
# Now the same tokens are scored by teacher forcing: one forward
# pass over prompt and answer. In float32 the sampler's log-probabilities and these agree to about $10^{-5}$. In large systems, where
# sampler and trainer are two programs, this gap is the first thing to log.

# %% tags=["trajectory"]
from rlnb.objective import Batch
from rlnb.training import token_logprobs

logprobs, entropies = token_logprobs(model, rollout, temperature=1.0)
gap = (logprobs - rollout.logprobs).abs().max()              # (G, T)
assert gap < 1e-4
batch = Batch(logprobs, rollout.completion_mask, r.to(logprobs), G,
              max_completion_length=72)
out = ZOO["dr_grpo"](batch)
lengths = rollout.lengths.to(logprobs)
by_hand = -(A.to(lengths) * lengths).sum() / (G * 72)
assert torch.isclose(out.loss, by_hand, atol=1e-6)
assert out.metrics["ratio/max"] == out.metrics["ratio/mean"] == 1.0

# %% [markdown]
# No `old_logprobs` is given, so $\pi_\text{old}$ is $\pi_\theta$ and every ratio is exactly 1: one update per rollout, nothing to clip.
# The loss is then
#
# $$L=-\frac1{N L_{\max}}\sum_i A_i\,T_i=-\frac{\operatorname{cov}(A,T)}{L_{\max}}$$
#
# with $T_i$ the length of answer $i$, $L_{\max}=72$ and $\bar A=0$. Its *value* knows nothing about learning: it says whether right answers are
# longer than wrong ones. Its gradient is the policy gradient.
#
# ## The whole trainer in one cell
#
# The objective is three parts:

# %%
print(ZOO["dr_grpo"])

# %%
from torch.nn.utils import clip_grad_norm_


def step_by_hand(model, optimizer, objective, rng, generator):
    problems = [task.problem(rng, "train") for _ in range(16)]
    ids = encode_prompts(tokenizer, [p.prompt for p in problems])
    rollout = sample(model, ids, G, Sampling(), generator=generator,
                     **ends)
    rewards = torch.tensor(                            # (B,) = (128,)
        [task.verify(problems[i // G], text)
         for i, text in enumerate(rollout.texts(tokenizer))],
        device=model.device) * rollout.finished        # cut off: 0
    logprobs, _ = token_logprobs(model, rollout, temperature=1.0)
    out = objective(Batch(logprobs, rollout.completion_mask, rewards, G,
                          max_completion_length=72))
    optimizer.zero_grad()
    out.loss.backward()
    norm = clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return rewards.mean().item(), out.loss.item(), norm.item()

# %% [markdown]
# Sample, verify, score, loss, backward, step. What `train` adds is bookkeeping: evaluation, records, checkpoints, micro-batches, and
# leaving out the rows whose advantage is 0. The first step of both, from the same seed:

# %% tags=["trajectory", "nbval-ignore-output"]
adamw = dict(lr=3e-4, betas=(0.9, 0.95), weight_decay=0.0)
optimizer = torch.optim.AdamW(model.parameters(), **adamw)
generator = torch.Generator(model.device).manual_seed(0)
mine = step_by_hand(model, optimizer, ZOO["dr_grpo"],
                    random.Random(0), generator)

fresh, _ = load(data_folder() / "model")
record = train(fresh, tokenizer, task, ZOO["dr_grpo"],
               Recipe(steps=1, eval_every=0), progress=False)[-1]
theirs = [record[k] for k in ("reward", "loss", "grad_norm")]
print("            reward     loss  gradient norm")
for name, row in (("by hand", mine), ("train()", theirs)):
    print(f"{name}     {row[0]:.4f}  {row[1]:.4f}  {row[2]:.4f}")
assert all(abs(a - b) < 1e-4 for a, b in zip(mine, theirs))

# %% [markdown]
# ## The run
#
# Forty such steps, live. Well under a minute on a laptop's CPU; on a machine with CUDA the same cell uses it. While it runs a bar shows
# the training reward; held-out problems are measured before, after 20 steps and after 40.

# %% tags=["trajectory", "nbval-ignore-output"]
model, tokenizer = load(data_folder() / "model")
records = train(model, tokenizer, task, ZOO["dr_grpo"],
                Recipe(steps=40, seed=0, eval_every=20))

# %% tags=["trajectory", "nbval-ignore-output"]
print("step  pass@1  direct  length  entropy")
for e in (e for e in records if e["record"] == "eval"):
    print(f"{e['step']:4d}   {e['pass@1']:.3f}   {e['direct']:.3f}"
          f"   {e['mean_length']:5.1f}    {e['entropy']:.3f}")
last = [e for e in records if e["record"] == "eval"][-1]
assert last["pass@1"] > 0.80 and last["direct"] < 0.05
assert last["mean_length"] > 30 and last["entropy"] < 0.10
assert records[0]["objective"] == repr(ZOO["dr_grpo"])

# %% [markdown]
# A real transformer, a real reward, and your own machine. One seed shows that it can happen, though, not that the reward did it.
#
# ## Three seeds and a coin
#
# Six recorded runs: the verifier with three seeds, and a coin in place of the verifier with three seeds. Base model,
# objective and recipe are the same; the coin's runs stop at step 20.

# %%
from rlnb.training import read, series


def runs(name):
    paths = [data_folder() / "runs" / f"chain_{name}_seed{s}.jsonl"
             for s in range(3)]
    return [read(path) for path in paths]


recorded, coin = runs("dr_grpo"), runs("coin_flip")
print("pass@1 at step      0     10     20     30     40")
for name, three in (("verifier", recorded), ("coin", coin)):
    for seed, run in enumerate(three):
        values = series(run, "pass@1", "eval").values()
        print(f"{name:9s} seed {seed}", *(f"{v:.3f} " for v in values))
print("coin, direct answers at step 20:",
      *(f"{series(r, 'direct', 'eval')[20]:.3f}" for r in coin))
assert all(series(r, "pass@1", "eval")[40] >= 0.85 for r in recorded)
assert all(series(r, "pass@1", "eval")[20] < 0.389 for r in coin)

# %%
from rlnb.classroom.figures import learning_curves

nan = float("nan")
curves = {
    "dr_grpo": [list(series(r, "pass@1", "eval").values())
                for r in recorded],
    "coin flip": [[*series(r, "pass@1", "eval").values(), nan, nan]
                  for r in coin]}
learning_curves(
    curves, base=0.389, control="coin flip", steps=[0, 10, 20, 30, 40],
    ylabel="pass@1 on 250 unseen problems", ylim=(0, 1),
    alt="Dr. GRPO: pass@1 from 0.389 to 0.923, 0.936 and 0.943 in 40 "
        "steps, three seeds. Coin flip: down to 0.357, 0.304 and 0.253 "
        "in 20 steps.",
    caption="With the true verifier all three seeds pass 0.92 after 40 "
            "steps; with a coin in its place all three fall. Recorded on "
            "a CPU; one base model, so the seeds vary the training only.")

# %% [markdown]
# The coin's expected gradient is zero, $\mathbb E[A\mid\text{answer}]=0$, so its runs wander. The share of direct answers went from
# 0.588 both ways. Pass@1 went down each time, even where more steps were written: noise in the weights costs accuracy. The control matters because it could have
# gone otherwise. For some base models random rewards *raised* benchmark scores by a lot, through a habit the model already had
# (Shao et al. 2025). Without the control a curve that rises says little about the reward.
#
# Between the seeds, 0.923, 0.936 and 0.943 cannot be told apart: with 1000 answers each, a standard error is about
# 0.01.
#
# ## What moved

# %%
names = {"groups/all_pass": "all right", "groups/mixed": "mixed",
         "groups/all_fail": "all wrong", "entropy": "entropy",
         "completions/mean_length": "length", "grad_norm": "grad norm"}
print("steps       1-10   11-20   21-30   31-40    mean of 3 seeds")
for key, name in names.items():
    row = [sum(series(r, key)[t] for r in recorded
               for t in range(a, a + 10)) / 30 for a in (1, 11, 21, 31)]
    print(f"{name:10s}", *(f"{v:7.3f}" for v in row))
    if name == "mixed":
        assert row[0] > 0.9 and row[-1] < 0.4

# %% [markdown]
# * **Groups.** At first more than nine in ten are mixed. In the last ten steps fewer than four: six of ten groups were sampled, verified, and taught nothing.
#   DAPO's *dynamic sampling* (page 09) draws others in their place; here the run is simply done.
# * **Length** doubles from the base's 17 tokens, and nobody paid for length. Written steps are longer than `so7`, and they are right more often.
# * **Entropy** per token falls from the base's 0.21 to 0.03; per answer, length included, from 3.5 nats to about 1. Maximising reward does that by
#   itself. Which style, which digit to guess, whether to slip in a step: each of these uncertainties cost reward.
# * **Gradient norm** does not fall, though fewer and fewer groups carry it.
#
# ## What it learned
#
# The same report as before training, on the model you have just trained (some seconds):

# %% tags=["trajectory", "nbval-ignore-output"]
after = evaluate(model, tokenizer, task)
print(f"{'':22s}  base  trained")
for name in ("pass@1", "pass@8", "greedy", "forced/steps",
             "forced/steps/greedy", "forced/direct",
             "forced/direct/greedy", "direct", "mean_length", "entropy"):
    print(f"{name:22s}{base[name]:6.3f}   {after[name]:6.3f}")
assert after["pass@1"] > 0.80 and after["greedy"] > 0.80
assert after["forced/steps"] > base["forced/steps"] + 0.1
assert abs(after["forced/direct"] - base["forced/direct"]) < 0.08
assert after["forced/steps/greedy"] < base["forced/steps/greedy"] + 0.01

# %% [markdown]
# Four lines decide it.
#
# * **Direct answers forced: 0.23 before, about 0.25 after.** In the style it could not do, it is as bad as it was.
# * **Steps forced, sampled: 0.66 → about 0.92.** The style it could do became cleaner.
# * **Steps forced, greedy: 1.000 before.** Nothing was left to learn there; after training it is slightly *lower* (0.968, 0.992, 0.992
#   with seeds 0, 1, 2 where this page was written). One written symbol and greedy decoding, no training at all, beats the trained model.
# * **pass@8: 0.96 before, about 0.97 after.** What one answer now does, eight answers did before.
#
# So the gain from 0.38 to 0.92 has two parts: 0.38 → 0.66 by *eliciting* the better style, 0.66 → 0.92 by *sharpening* it. The
# shares depend on that order: sharpen first, at the old $d$, and it is 0.38 → 0.50 → 0.92. Sharpening can be counted, step by step:

# %% tags=["trajectory", "nbval-ignore-output"]
import re
from rlnb.training import pass_rate

STEP = re.compile(r"(\d)([-+*])(\d)=(\d)")
rule = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


def habits(model):
    texts = pass_rate(model, tokenizer, task, prompts=125,
                      style="steps").texts
    steps = [m.groups() for text in texts for m in STEP.finditer(text)]
    wrong = sum(rule[o](int(a), int(b)) % 10 != int(c)
                for a, o, b, c in steps) / len(steps)
    return wrong, sum("wait" in text for text in texts) / len(texts)


fresh, _ = load(data_folder() / "model")
print("steps forced   wrong steps   answers with `wait`")
rows = {"base": habits(fresh), "trained": habits(model)}
for name, (wrong, wait) in rows.items():
    print(f"{name:12s}   {wrong:.4f}        {wait:.3f}")
assert rows["base"][0] > 0.06 and rows["trained"][0] < 0.04

# %% [markdown]
# (Wrong steps that were repaired are counted.) The demonstrations got one step in ten wrong, and the base model very
# nearly does. Reward removes nine in ten of these slips. `wait` falls by about the same factor, because there is less to repair: the run
# did not teach self-correction, it made it less necessary.
#
# ## Pay for the other style
#
# The sharpest control for "it learned to calculate": pay only for right answers *without* steps. Same model, same objective,
# 20 steps, which brought most of the gain above. If reinforcement could teach this model to calculate in its head, here it would have to.

# %% tags=["trajectory", "nbval-ignore-output"]
def no_steps(problem, text):
    return task.verify(problem, text) * text.startswith("so")


other, _ = load(data_folder() / "model")
_ = train(other, tokenizer, task, ZOO["dr_grpo"],
          Recipe(steps=20, eval_every=0), reward=no_steps)
free = pass_rate(other, tokenizer, task)
forced = pass_rate(other, tokenizer, task, style="direct")
share = sum(t.startswith("so") for t in free.texts) / len(free.texts)
print(f"free {free.right.mean():.3f}, share of direct answers {share:.3f}")
print(f"direct answers forced {forced.right.mean():.3f}")
assert share > 0.9 and free.right.mean() < base["pass@1"]
assert forced.right.mean() < base["forced/direct"] + 0.1

# %% [markdown]
# It stops writing steps, as it was paid to, and its direct answers stay where they were. Pass@1 *falls* below the base model's. The
# method is the same, the verifier is honest, and there was nothing to elicit. (One seed, 20 steps, 308,016 parameters: not a
# law about all models.)
#
# **In plain words.** Reinforcement chose between things the model could do, by trying them and keeping what paid. It made the
# better habit common and clean. It taught no new arithmetic. On large models the same two measurements, forced styles and
# pass@k at large $k$, are what the debate about "new skills" is fought with: Yue et al. (2025) find the base model
# ahead at large $k$; with longer runs and other data ProRL (Liu et al. 2025, [2505.24864](https://arxiv.org/abs/2505.24864)) finds the opposite. To claim a new skill you would need base
# models that fail at *every* k you can afford, several base checkpoints, and held-out problems of a kind that was not trained.
#
# **What this page does not show.** One task of our own making, one base checkpoint, three seeds, a CPU. No result on a GPU is
# reported here; `load` picks CUDA where there is one, and the numbers will be other numbers.
#
# ## Where people go wrong
#
# **"The loss goes down when it learns."** In these three runs it goes *up*, from −0.04 to 0, and its correlation with the reward is
# above +0.9.

# %%
for seed, run in enumerate(recorded):
    loss = torch.tensor(list(series(run, "loss").values()))
    reward = torch.tensor(list(series(run, "reward").values()))
    c = torch.corrcoef(torch.stack([loss, reward]))[0, 1]
    print(f"seed {seed}: loss {loss[:10].mean():+.3f} in steps 1-10,"
          f" {abs(loss[-10:].mean()):.3f} in 31-40, correlation {c:+.2f}")
    assert c > 0.9 and loss[:10].mean() < -0.03
    assert loss[-10:].mean().abs() < 0.002

# %% [markdown]
# $-\operatorname{cov}(A,T)/L_{\max}$ again: at first the right answers are the long ones, so the covariance is positive and the loss negative. When
# everyone writes steps, length no longer tells right from wrong, and the loss is 0. Under GRPO's sequence mean without KL it would have been 0 all along.
# Plot reward, not loss.
#
# **"Reward went up, so it has learned a new skill."** It is one of three stories: elicited, sharpened, new. Forced styles and pass@k, measured
# *before* training, tell them apart, and above they say: elicited and sharpened.
#
# **"Greedy 0.26 → 0.97: RL nearly quadrupled the accuracy."** True, and it compares the base model at its worst decoder. With one written symbol the base
# was at 1.00. Always give the base model its best prompt.
#
# **"One seed shows that it works."** After 20 steps the coin's seeds are ten points apart, in the same setting. The verifier's gain
# by then is more than four times that:

# %%
falls = [series(r, "pass@1", "eval") for r in coin]
best, worst = max(f[20] for f in falls), min(f[20] for f in falls)
print(f"coin flip, best and worst seed: {best:.3f}, {worst:.3f}")
rises = [series(r, "pass@1", "eval") for r in recorded]
gains = [f[20] - f[0] for f in rises]
print("verifier, gain per seed:", *(f"{g:.3f}" for g in gains))
assert best - worst > 0.1 and min(gains) > 4 * (best - worst)

# %% [markdown]
# **"Groups without a gradient mean that something is broken."** All wrong from the start: yes, the task is too hard or the verifier too strict.
# All right at the end: that is success, and a bill for samples that teach nothing. Log the two apart; TRL's `frac_reward_zero_std` alone
# cannot tell them apart.
#
# **"The clip keeps this run stable."** With one update per rollout it never acted:

# %%
ratios = [v for r in recorded for v in series(r, "ratio/max").values()]
cut = [v for r in recorded
       for v in series(r, "clip_ratio/region_mean").values()]
gap = max(v for r in recorded
          for v in series(r, "sampling/logp_difference").values())
print(f"{len(ratios)} steps: largest ratio {max(ratios)},"
      f" largest share cut {max(cut)}")
print(f"sampler and trainer at most {gap:.0e} apart")
assert max(ratios) == 1.0 and max(cut) == 0.0 and gap < 1e-4

# %% [markdown]
# ## Exercises
#
# **19.1 Derive** · 10 minutes · ●●○. Let one logit $z$ decide the style, $d=\sigma(z)$ the share of direct answers, and let the styles'
# accuracies $a_\text{direct}$, $a_\text{steps}$ be fixed. What is $\partial p/\partial z$ for $p=d\,a_\text{direct}+(1-d)\,a_\text{steps}$? Where is it largest,
# and what happens to it at the end of the run? What is the ceiling of this story, and which part of the gain does it leave unexplained?
#
# <details><summary>hint</summary>
#
# $\partial d/\partial z=d(1-d)$. The ceiling is $d=0$.
# </details>
#
# **19.2 Predict, then look** · 5 minutes · ●○○. Without scrolling up to the explorer: under the coin, what happens in 20 steps to the share of mixed groups
# and to the entropy? Does a high share of mixed groups say that the reward means something?
#
# <details><summary>hint</summary>
#
# What is the chance that eight coins agree? Entropy falls when something is preferred: what does a coin prefer?
# </details>
#
# **19.3 Predict, then run** · 8 minutes · ●●○. One rollout, three objectives: `dr_grpo`, `rloo`, and `grpo` without its KL term. For each pair, is the gradient
# the same, the same up to a factor, or another direction? Does a factor matter under AdamW? Under clipping at norm 1?
#
# <details><summary>hint</summary>
#
# RLOO's advantage is $\frac{G}{G-1}$ times Dr. GRPO's, and its weight is a constant too. GRPO divides by $s$ and by $T_i$, which differ from group to group
# and from answer to answer. To run it: the rollout of `step_by_hand`, `ZOO["grpo"].replace(terms=())`, `torch.autograd.grad`, a cosine.
# </details>
#
# **19.4 Implement** · 5 minutes · ●○○. What `token_logprobs` does behind the model: from logits to the log-probability of each token that was
# written.
#
# <details><summary>hint</summary>
#
# `log_softmax` over the vocabulary, then `gather` with an index that has as many axes as the logits.
# </details>

# %% tags=["exercise"]
def my_token_logprobs(logits, tokens):
    """(B, T, V) logits and (B, T) token ids -> (B, T)"""
    return ...


check.token_logprobs(my_token_logprobs)

# %% [markdown]
# **19.5 Break it** · 15 minutes · ●●○. Write a reward that sounds sensible and can be gamed, train 20 steps on it, and say which recorded
# number gives it away. Two to start from: "the right digit appears in the answer" and "a bonus of 0.5 for reflecting", that is, for writing `wait`.

# %% tags=["exercise"]
def my_reward(problem, text):
    """-> number; `task.verify(problem, text)` is the honest one"""
    return ...


# train(load(data_folder() / "model")[0], tokenizer, task,
#       ZOO["dr_grpo"], Recipe(steps=20), reward=my_reward)

# %% [markdown]
# <details><summary>hint</summary>
#
# The records carry `reward`, what you paid, and `rewards/verify/mean`, what was right, side by side. Watch the distance. And read answers.
# </details>
#
# **19.6 Find the bug** · 8 minutes · ●●○. To get cleaner data somebody samples at temperature 0.7 and leaves the rest alone. The loop refuses:

# %% tags=["exercise"]
from rlnb.training import BadInput

cool = sample(model, encode_prompts(tokenizer, [problem.prompt]), G,
              Sampling(temperature=0.7), **ends)
try:
    token_logprobs(model, cool, temperature=1.0)
except BadInput as sentence:
    print(sentence)

# %% [markdown]
# In a trainer without that check, what would the ratio be, when would anybody notice, and which assertion would have caught it at once?
#
# <details><summary>hint</summary>
#
# On-policy the ratio must be 1 before the first update. Compare the log-probabilities of the sampler with those of the trainer.
# </details>
#
# **19.7 Find the bug** · 8 minutes · ●●○. Another trainer pairs answers with problems like this. It runs, the loss is small, nothing is learned:

# %% tags=["exercise"]
def rewards_of(problems, texts):
    return [task.verify(problems[i % len(problems)], text)
            for i, text in enumerate(texts)]

# %% [markdown]
# <details><summary>hint</summary>
#
# Rows $kG,\dots,kG+G-1$ answer problem $k$. Which texts must score 1.0 everywhere?
# </details>
#
# All solved and run in [solutions/19_grpo_for_real.ipynb](solutions/19_grpo_for_real.ipynb).
#
# ## In the interview
#
# **Walk me through one step of GRPO training.**
# <details><summary>answer</summary>
#
# Draw P prompts; sample G answers each from the current policy at temperature 1, full vocabulary, and keep the log-probs. Verify: one reward per answer,
# truncated ones get 0. Advantage inside each group. Recompute the log-probs with gradient by teacher forcing; compare with the sampler's. Ratio, clip, mask,
# average, backward, clip the gradient norm, optimizer step. With one update per rollout the ratio is 1 and the clip is idle. Then log groups, length, entropy, and the gap between
# sampler and trainer.
# </details>
#
# **Reward went from 0.4 to 0.9. What did the model learn?**
# <details><summary>answer</summary>
#
# I cannot say yet. I want the base model under its best prompt and decoder, pass@k of the base at large k, and a control with random rewards. If the forced
# style already solves it, it is elicitation; if pass@k was high and pass@1 caught up, sharpening; a new skill needs problems the base fails at every affordable k.
# In this toy: 0.38 to 0.92, and the base with one symbol written for it and greedy decoding was at 1.00.
# </details>
#
# **Which curves do you look at first?**
# <details><summary>answer</summary>
#
# Held-out pass@1 against the base and a control; all-right, mixed and all-wrong groups apart; length with the share cut off; entropy; gradient norm;
# sampler-trainer gap; clip share if there is more than one update. Then read samples. Not the loss: on-policy its value is minus a covariance of advantage and length, or 0.
# </details>
#
# **Most of your groups are all right. What now?**
# <details><summary>answer</summary>
#
# They cost samples and carry no gradient. Either stop, or draw harder prompts (curriculum), or filter and resample (dynamic sampling), or drop prompts that stay solved.
# Dropping alone does not change a Dr. GRPO gradient's direction; it changes the normaliser and saves the forward pass. And I would check that "all right" is not "all hacked".
# </details>
#
# **Entropy fell by a factor of ten. Is that a problem?**
# <details><summary>answer</summary>
#
# Maximising reward lowers entropy by itself. It is a problem if groups become constant while pass@1 is still low, or if pass@k falls. Here it fell because a
# choice of style was made and pass@8 stayed. Remedies where it hurts: harder or fresh prompts, clip-higher, KL to a reference, a larger group; none is a cure.
# </details>
#
# **Why a wrong-verifier control, and what do you expect?**
# <details><summary>answer</summary>
#
# With rewards independent of the answer the expected gradient is 0, so any systematic gain comes from elsewhere: a bug, clipping bias, a prior of the base model.
# Here a coin makes it worse (0.39 to 0.25-0.36 in 20 steps). Published runs on some base models gained with random rewards; without the control those gains would be credited to the verifier.
# </details>
#
# **Sampler and trainer disagree on log-probs. How much is fine?**
# <details><summary>answer</summary>
#
# Same program, float32: 1e-5, and 1e-4 is an alarm. Two engines in low precision: orders of magnitude more, so measure it from the first step; then the ratio is not 1 on-policy, long answers multiply it, and one
# corrects with a truncated importance weight or by matching precision. A gap that is large at once means other temperature, other truncation, other tokenisation, or stale weights.
# </details>
#
# **How would you make this verifier exploitable?**
# <details><summary>answer</summary>
#
# Accept the digit anywhere in the answer: training then writes many digits. Call eval on the answer: then code runs. Pay for `wait`: it reflects on every right step. Ungraded steps are already a hole: wrong
# steps with a right end get 1. The defence is a second, unrewarded check, logged beside the reward, and reading the top-reward answers.
# </details>
#
# ## Recap
#
# The objective of this page's runs, and how it differs from page 06's:

# %%
from rlnb.objective import difference

print(recorded[0][0]["objective"])
print(difference(ZOO["grpo"], ZOO["dr_grpo"]))

# %% [markdown]
# * One step is: sample, verify, centre, score, weigh, step. Twenty lines, and the rest is bookkeeping.
# * Measure before you train: pass@k, greedy, forced styles. They decide what a rising curve means.
# * Here 0.38 → 0.66 is elicited, 0.66 → 0.92 is sharpened, and nothing new was taught; greedy with one written symbol had 1.00.
# * A coin for a verifier, three seeds, and a base level belong beside every curve.
# * The loss went up while the model learned. Look at reward, groups, length, entropy, and answers.
#
# More of the same, from the command line in the course's folder; the second line shows the run again:
#
# ```
# python -m rlnb.training grpo --objective grpo --steps 40 --seed 1 --out my_run
# python -m rlnb.training replay my_run
# ```
#
# The map of all pages is [00](00_start_here.ipynb).
