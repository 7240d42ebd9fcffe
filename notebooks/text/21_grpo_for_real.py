# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 21 · GRPO for real
#
# **Settles:** what a whole run does to a real transformer, which curves to look at, and what the
# model knew before it was rewarded for anything.
#
# 40 minutes, and 60 for the exercises · after [08](08_grpo.ipynb) and, for the arguments,
# [10](10_dr_grpo.ipynb) and [11](11_dapo.ipynb) · Dr. GRPO, Liu et al. 2025
# ([2503.20783](https://arxiv.org/abs/2503.20783)); pass@k, Chen et al. 2021
# ([2107.03374](https://arxiv.org/abs/2107.03374)); does RL reach beyond the base model, Yue et al.
# 2025 ([2504.13837](https://arxiv.org/abs/2504.13837)); spurious rewards, Shao et al. 2025
# ([2506.10947](https://arxiv.org/abs/2506.10947)).

# %% [markdown]
# > **08 in two lines.** Dr. GRPO drops GRPO's two divisors: the advantage is $A_i=r_i-\bar r$, and
# > every token weighs the
# > same, $1/(N L_{\max})$ for $N$ answers of at most $L_{\max}$ tokens.
# >
# > **15 in two lines.** pass@k is the chance that $k$ sampled answers contain a right one. If
# > training raises pass@1 and
# > leaves pass@k where it was, it made known answers likelier; it did not find new ones.

# %%
from rlnb import ZOO, check
from rlnb.classroom.live_or_replay import open_page
from rlnb.training import TASKS, Recipe, data_folder, train
page = open_page()             # or open_page("replay"), "cpu", "cuda"

# %% [markdown]
# The large letters say where the numbers below come from; a recorded curve says *recorded* in every
# mode. **No run on a GPU is recorded yet:** all numbers in the text are from CPU runs of a small
# model, and until you run the page you see the outputs of the run it was built with.
#
# ## The task
#
# Arithmetic from left to right, modulo 10, without precedence: `4+3-8=?` is $(4+3-8)\bmod 10=9$.
# Three to eight operators. An answer ends in `so` and one digit, after at most 72 tokens. The
# verifier compares that digit; an answer that was cut off gets 0.

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
# The third one counts: wrong steps, right digit. Steps are not graded, only the end is. `so3*3`
# does not count, because the text is compared, never evaluated: a verifier that calls `eval` on
# what a model wrote runs whatever the model wrote.
#
# ## Watch a run first
#
# A transformer with 308,016 parameters, 40 optimizer steps, 16 problems a step with 8 answers each.
# A *direct* answer is `so` and a digit, no steps. Pull the step to 0 and read the four answers.
# Then go up. Where do answers become long? When do the bars turn? Then press *coin flip*, a run
# whose verifier throws a coin.

# %% tags=["explorer"]
from rlnb.classroom import explorers

explorers.recorded_run_explorer()

# %% [markdown]
# Three of its steps as numbers, shares of the step's 16 groups:

# %%
from rlnb.classroom.explorers.recorded_run import compute

print("step   right  mixed  wrong   length  entropy")
for step in (1, 20, 40):
    d = compute(step)
    right, mixed, wrong = (d["groups"][k][-1] for k in d["groups"])
    m = d["metrics"]
    print(f"{step:4d}   {right:.3f}  {mixed:.3f}  {wrong:.3f}"
          f"   {m['completions/mean_length']:5.1f}    {m['entropy']:.3f}")

# %% [markdown]
# From 39 % to 92 % of unseen problems, answers twice as long, entropy down to a tenth. It looks as
# if the model had learned to reason. Whether it did is the question of this page, and the answer
# has to come from measurements made *before* training.
#
# ## What the base model was taught
#
# It was trained by imitation (SFT, 1000 steps of 128 demonstrations), on a mixture that was made on
# purpose:

# %%
import random

print(f"direct {task.direct}, error {task.error}, repair {task.repair}")
rng = random.Random(57)
for _ in range(6):
    p = task.problem(rng, "train")
    print(p.prompt, task.demo(rng, p), f"   right: {p.answer}")

# %% [markdown]
# 60 % of the demonstrations answer at once, always correctly. 40 % write every step; each step is
# wrong with probability 0.1, and half of the wrong ones are repaired after `wait`. So the popular
# style is the one a small model cannot do (up to eight operations in one forward pass), and the
# style it can do was taught with noise. That leaves something to elicit and something to clean up.
# A pleasing curve was built into this task: keep that in mind below.
#
# One problem in ten is held out, decided by a hash of its text, so no run on any machine trains on
# it:

# %%
from rlnb.training import held_out, is_held_out

model, tokenizer = page.load()
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
# The same 250 unseen problems: sampled at temperature 1, greedy, and both again with the *style
# forced*, that is, the first symbol of the answer written for the model. `so` forces a direct
# answer, the first number of the problem forces steps. Eight answers a problem here, four inside a
# run: the one base model shows as 0.38 here and 0.39 there. From here on numbers depend on the
# machine (another CPU rounds differently and samples differently); those printed are one run on one
# machine, and the asserts hold everywhere.

# %% tags=["trajectory", "nbval-ignore-output"]
from rlnb.training import evaluate

base = page.measure(
    "base", lambda: evaluate(model, tokenizer, task))   # 250 x 8 answers
for name in ("pass@1", "pass@8", "greedy", "forced/steps",
             "forced/steps/greedy", "forced/direct",
             "forced/direct/greedy", "direct", "mean_length", "entropy"):
    print(f"{name:22s}{base[name]:8.3f}")

# %% tags=["trajectory"]
page.expect(                 # asserts, where the model is the shipped one
    0.33 < base["pass@1"] < 0.43, base["pass@8"] > 0.9,
    base["greedy"] < base["pass@1"] - 0.05,
    base["forced/steps/greedy"] > 0.97,
    0.58 < base["forced/steps"] < 0.73,
    base["forced/direct"] < 0.30)

# %% [markdown]
# Read it slowly, it decides the page. Sampled: 0.38. Greedy: 0.26, *worse*, because the likeliest
# first symbol is `so` and greedy takes it: the same 0.256 as with `so` forced. With one symbol
# written for it: 0.66 sampled, and **1.000 greedy**. The base model can already do the whole task.
# It does not choose to, and its sampling is noisy. And what is 0.227 in the direct style worth?
# Digits are not equally frequent, because `*` makes zeros:
#
# %%
from collections import Counter

rng = random.Random(1)
drawn = [task.problem(rng, "train").answer for _ in range(20_000)]
q = {d: n / 20_000 for d, n in sorted(Counter(drawn).items())}
print("train:", *(f"{d} {share:.2f} " for d, share in q.items()))
zeros = sum(p.answer == "0" for p in unseen)
print(f"always `so0`: {zeros} of 250 held out, {zeros / 250:.3f}")
guessing = {k: sum(1 - (1 - q[p.answer]) ** k for p in unseen) / 250
            for k in (1, 2, 4, 8)}           # k guesses, drawn from q
print("guessing, pass@k:", *(f"{k}: {v:.2f} " for k, v in guessing.items()))
assert zeros == 55 and 0.57 < guessing[8] < 0.62

# %% [markdown]
# The direct style is no better than always saying 0 (0.220). And guesses reach 0.59 at pass@8, so
# pass@8 of 0.96 is a weaker witness than the forced style.
#
# With $d$ the share of direct answers and $a$ the accuracy of each style,
# $p=d\,a_\text{direct}+(1-d)\,a_\text{steps}$:

# %%
from rlnb.training.studies.controls import mixture, reports

path = data_folder() / "runs" / "chain_controls.json"
kept = reports(path)["base"]           # the same report, recorded
clean = kept | {"forced/steps": kept["forced/steps/greedy"]}
print(f"p {mixture(kept):.3f}, measured {kept['pass@1']:.3f}")
print(f"only d = 0: {mixture(kept | {'direct': 0}):.3f};"
      f" only clean steps: {mixture(clean):.3f};"
      f" both: {mixture(clean | {'direct': 0}):.3f}")
assert abs(mixture(kept) - kept["pass@1"]) < 0.04

# %% [markdown]
# Two ways up, then, 0.66 and 0.53, and 1.00 together; neither needs new knowledge. (0.40 against
# 0.38: a symbol that the model chose itself goes with other problems than one written for it.)
#
# ## One group by hand
#
# One problem, eight answers. This is page 08's group, only that a transformer wrote it.

# %% tags=["trajectory", "nbval-ignore-output"]
import torch
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
# In the group this page was built with, one of the right answers has a wrong step: 2·9 is not 3.
# Modulo 10, 3·6 and 8·6 end alike, so the end is right and the reward is 1. A verifier of ends pays
# for luck. (The end-of-sequence token counts as a token: the policy chose it.)
#
# Now the same tokens are scored by teacher forcing: one forward pass over prompt and answer. In
# float32 the sampler's log-probabilities and these agree to about $10^{-5}$.

# %% tags=["trajectory"]
from rlnb.objective import Batch
from rlnb.training import token_logprobs

logprobs, entropies = token_logprobs(model, rollout, temperature=1.0)
gap = (logprobs - rollout.logprobs).abs().max()              # (G, T)
page.expect(gap < 1e-4)
batch = Batch(logprobs, rollout.completion_mask, r.to(logprobs), G,
              max_completion_length=72)
out = ZOO["dr_grpo"](batch)
lengths = rollout.lengths.to(logprobs)
by_hand = -(A.to(lengths) * lengths).sum() / (G * 72)
assert torch.isclose(out.loss, by_hand, atol=1e-6)
assert out.metrics["ratio/max"] == out.metrics["ratio/mean"] == 1.0

# %% [markdown]
# No `old_logprobs` is given, so $\pi_\text{old}$ is $\pi_\theta$ and every ratio is exactly 1: one
# update per rollout, nothing to clip. The loss is then
#
# $$L=-\frac1{N L_{\max}}\sum_i A_i\,T_i=-\frac{\operatorname{cov}(A,T)}{L_{\max}}$$
#
# with $T_i$ the length of answer $i$, $L_{\max}=72$ and $\bar A=0$. Its *value* knows nothing about
# learning: it says whether right answers are longer than wrong ones. Its gradient is the policy
# gradient.
#
# ## What each token is told
#
# Page 08 had one group of numbers; here are ten groups of a real run, two at each of five steps,
# recorded token by token. Go to step 40, prompt 2, answer 1, the only wrong one of its eight. First
# look at the push on $\log\pi$, then press *push on the token's own logit*. Which token gets the
# blame?

# %% tags=["explorer"]
explorers.rollouts_explorer()

# %%
from rlnb.classroom.explorers.rollouts import compute as pushes

told, felt = (pushes(40, 2, 1, show) for show in ("weight", "logit"))
print("".join(told["tokens"][:-1]), f" A {told['advantage']:+.3f}")
print("push on log pi in 0.00001:", sorted({
    round(w * 1e5, 1) for w in told["push"].tolist()}))
hardest = sorted(range(50), key=lambda i: felt["push"][i])[:3]
for i in hardest:
    print(f"token {i + 1:2d} {felt['tokens'][i]!r} after"
          f" {''.join(felt['tokens'][:i])[-4:]!r}:"
          f"  p {felt['p'][i]:.3f}  push {felt['push'][i] * 1e5:+.1f}")
assert told["tokens"][hardest[0]] == "8" and felt["p"][hardest[0]] < 0.01

# %% [markdown]
# The objective says the same to all 50 tokens:
# $A/(N L_{\max})=-0.875/(128\cdot72)=-9.5\cdot10^{-5}$ each, the harmless ones included. Nobody
# told it where the slip was. But $\partial\log\pi/\partial z=1-\pi$ at the token's own logit $z$:
# where the model was sure, little arrives. What is left is the token it was *not* sure of, `8`
# after `0+7=`, with probability 0.001.
#
# This one is drawn once in a thousand times, so it repairs almost nothing. In the mean a token's
# logit is pushed by $p(1-p)\,|A|$: what repairs are the nine wrong digits of the base model, each
# with $p\approx0.01$, drawn in one step of ten, and the right one, at $p\approx0.9$, pushed up.
#
# The other group of step 40 is all right: advantage 0, no colour, nothing learned.
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
# Sample, verify, score, loss, backward, step. What `train` adds is bookkeeping: evaluation,
# records, checkpoints, micro-batches, and leaving out the rows whose advantage is 0. The first step
# of both, from the same seed:

# %% tags=["trajectory", "nbval-ignore-output"]
adamw = dict(lr=3e-4, betas=(0.9, 0.95), weight_decay=0.0)
optimizer = torch.optim.AdamW(model.parameters(), **adamw)
generator = torch.Generator(model.device).manual_seed(0)
mine = step_by_hand(model, optimizer, ZOO["dr_grpo"],
                    random.Random(0), generator)

fresh, _ = page.load()
record = train(fresh, tokenizer, task, ZOO["dr_grpo"],
               Recipe(steps=1, eval_every=0), progress=False)[-1]
theirs = [record[k] for k in ("reward", "loss", "grad_norm")]
print("            reward     loss  gradient norm")
for name, row in (("by hand", mine), ("train()", theirs)):
    print(f"{name}     {row[0]:.4f}  {row[1]:.4f}  {row[2]:.4f}")
page.expect(*(abs(a - b) < 1e-4 for a, b in zip(mine, theirs)))

# %% [markdown]
# ## The run
#
# Forty such steps (`page.recipe`). The plot grows while it runs, and its title says whether it is
# live. Held-out problems are measured before, after 20 steps and after 40 (four answers each). The
# page runs live on CUDA where torch sees a GPU (then a base model of up to 25 million parameters is
# trained first; never timed), else on the CPU, with the shipped 308,016; `open_page("replay")`
# computes nothing long and marks each recorded value.

# %% tags=["trajectory", "nbval-ignore-output"]
model, tokenizer = page.load()
records = page.measure("run", lambda: train(
    model, tokenizer, task, ZOO["dr_grpo"], page.recipe,
    watch=page.watch(), progress=False))
page.show_run(records)

# %% tags=["trajectory"]
last = [e for e in records if e["record"] == "eval"][-1]
page.expect(last["pass@1"] > 0.80, last["direct"] < 0.05,
            last["mean_length"] > 30, last["entropy"] < 0.10)
assert records[0]["objective"] == repr(ZOO["dr_grpo"])

# %% [markdown]
# A real transformer, a real reward, and, unless the letters say replay, your own machine. One seed
# does not show that the reward did it.
#
# ## Three seeds and a coin
#
# Six recorded runs: the verifier with three seeds, and a coin in place of the verifier with three
# seeds. Base model, objective and recipe are the same; the coin's runs stop at step 20.

# %%
from rlnb.training import read, series


def runs(name):
    paths = [data_folder() / "runs" / f"chain_{name}_seed{s}.jsonl"
             for s in range(3)]
    return [read(path) for path in paths]


recorded, coin = runs("dr_grpo"), runs("coin_flip")
print("pass@1 at step      0     10     20     30     40   entropy")
for name, three in (("verifier", recorded), ("coin", coin)):
    for seed, run in enumerate(three):
        values = series(run, "pass@1", "eval").values()
        line = " ".join(f"{v:.3f} " for v in values)
        H = list(series(run, "entropy").values())
        print(f"{name:9s} seed {seed} {line:36s}{H[0]:.2f} to {H[-1]:.2f}")
assert all(series(r, "pass@1", "eval")[40] >= 0.85 for r in recorded)
assert all(series(r, "pass@1", "eval")[20] < 0.389 for r in coin)

# %%
from rlnb.classroom.figures import learning_curves

nan = float("nan")
curves = {
    "true verifier": [list(series(r, "pass@1", "eval").values())
                      for r in recorded],
    "coin": [[*series(r, "pass@1", "eval").values(), nan, nan]
             for r in coin]}
learning_curves(
    curves, base=0.389, control="coin", steps=[0, 10, 20, 30, 40],
    ylabel="pass@1 on 250 unseen problems", ylim=(0, 1),
    alt="Dr. GRPO: pass@1 from 0.389 to 0.923, 0.936 and 0.943 in 40 "
        "steps, three seeds. Coin flip: down to 0.357, 0.304 and 0.253 "
        "in 20 steps.",
    caption="With the true verifier all three seeds pass 0.9 after 40 "
            "steps; with a coin in its place all three fall, and were "
            "stopped at step 20. Thin: seeds, thick: their mean. Recorded "
            "on a CPU from one base model.")

# %% [markdown]
# The coin's expected gradient is zero, $\mathbb E[A\mid\text{answer}]=0$. Why, then, does it fall?
# Look at both styles of the three models at step 20 (`python -m rlnb.training.studies.controls`),
# beside the base:

# %%
from rlnb.training.studies.controls import right

coins = reports(path, "coin")
names = ("forced/direct", "forced/steps", "forced/steps/greedy")
print("          direct ", *names)
for name, r in coins.items():
    print(f"{name:8s} {r['direct']:7.3f}",
          *(f"{r[n]:{len(n)}.3f}" for n in names))
for kind in ("seed", "coin"):
    far = [r["moved"] for r in reports(path, kind).values() if "moved" in r]
    print(f"weights after 20 steps, distance from the base, {kind}s 0-2:",
          *(f"{d:.2f}" for d in far))
tossed = [r["forced/steps"] for n, r in coins.items() if n != "base"]
assert max(tossed) < coins["base"]["forced/steps"] - 0.05

# %% [markdown]
# The share of direct answers wanders both ways; the steps get *worse* in all three. A zero mean
# does not make small moves: AdamW divides each gradient by its own running size, so the coin moved
# the weights more than half as far as the verifier did, in no useful direction, and a chain of up
# to eight steps bears little damage. (Three of three is a small sample: a sign test gives
# $p=0.25$.) The control matters because it could have gone otherwise. For some base models random
# rewards *raised* benchmark scores by a lot, through a habit the model already had (Shao et al.
# 2025).
#
# Do the verifier's seeds differ? The eight answers to one problem are not independent, and all
# models got the same problems, so the count is over problems, and paired:

# %%
solved = right(path)


def mean_and_se(values):                           # one value a problem
    x = torch.tensor(values, dtype=torch.float64)
    return x.mean().item(), (x.std() / len(x) ** 0.5).item()


for name in ("base", "seed 0", "seed 1", "seed 2"):
    free, direct = ([n / 8 for n in solved[name][style]]
                    for style in ("free", "direct"))
    (p, dp), (a, da) = mean_and_se(free), mean_and_se(direct)
    print(f"{name:6s}: pass@1 {p:.3f} ± {dp:.3f},"
          f" forced/direct {a:.3f} ± {da:.3f}")
for a, b in ((0, 1), (0, 2), (1, 2)):
    pair = zip(solved[f"seed {b}"]["free"], solved[f"seed {a}"]["free"])
    mean, se = mean_and_se([(x - y) / 8 for x, y in pair])
    print(f"seed {b} - seed {a}: {mean:+.3f} ± {se:.3f}")
    assert abs(mean) < 2 * se

# %% [markdown]
# No difference between seeds exceeds two standard errors. (Eight answers to a problem here and four
# inside a run: seed 2 is 0.943 there and 0.923 here, and the order of the seeds changes.)
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
# * **Groups.** At first more than nine in ten are mixed. In the last ten steps fewer than four: six
#   of ten groups were sampled, verified, and taught nothing. DAPO's *dynamic sampling* (page 11)
#   draws others in their place; here the run is simply stopped.
# * **Length** doubles from the base's 17 tokens, and nobody paid for length. Written steps are
#   longer than `so7`, and they are right more often.
# * **Entropy** per token falls from the base's 0.21 to 0.03; per answer, length included, from 3.5
#   nats to about 1. The coin's did not fall (table above): it is the choice of what pays that
#   lowers it. Which style, which digit to guess, whether to slip in a step: each of these
#   uncertainties cost reward.
# * **Gradient norm** does not fall, though fewer groups carry it; at 0.03 it is 30 times below the
#   clip at 1, so that clip does not act.
#
# ## What it learned
#
# The same report as before training, on the model of this run (some seconds):

# %% tags=["trajectory", "nbval-ignore-output"]
after = page.measure("after",
                     lambda: evaluate(model, tokenizer, task))
print(f"{'':22s}  base  trained")
for name in ("pass@1", "forced/direct/greedy", "direct",
             "mean_length", "entropy"):
    print(f"{name:22s}{base[name]:6.3f}   {after[name]:6.3f}")
page.expect(
    after["pass@1"] > 0.80, after["greedy"] > 0.80,
    after["forced/steps"] > base["forced/steps"] + 0.1,
    abs(after["forced/direct"] - base["forced/direct"]) < 0.08,
    after["forced/steps/greedy"] < base["forced/steps/greedy"] + 0.01)

# %% [markdown]
# One seed again. Recorded for three, with pass@k without bias from the eight answers of each
# problem:

# %%
found = reports(path)
print(f"{'':20s}", *(f"{name:>8s}" for name in found), " guessing")
for name in ("pass@1", "pass@2", "pass@4", "pass@8", "greedy",
             "forced/steps", "forced/steps/greedy", "forced/direct"):
    k = int(name[5:]) if name.startswith("pass@") else None
    print(f"{name:20s}", *(f"{r[name]:8.3f}" for r in found.values()),
          f"    {guessing[k]:.2f}" if k else "")
before, *trained = found.values()
for r in trained:
    assert r["forced/steps"] > before["forced/steps"] + 0.2
    assert abs(r["forced/direct"] - before["forced/direct"]) < 0.03

# %% [markdown]
# * **Direct answers forced: 0.23 before, 0.24 after,** a difference within the standard error of
#   0.02, and both about what always saying 0 gets.
# * **Steps forced, sampled: 0.66 → 0.92 to 0.95.** The style it could do became cleaner.
# * **Steps forced, greedy: 250 of 250 before;** after training 8, 2 and 2 problems are lost. Two of
#   250 are within noise. Eight are not.
# * **pass@8: 0.96 before, 0.98 to 1.00 after.** What one answer now does, eight answers did before.
#
# How much of the gain is the choice of style, and how much better steps?
# $p=d\,a_\text{direct}+(1-d)\,a_\text{steps}$ answers it: put the trained numbers in, one by one.

# %%
names = {"d": "direct", "a_s": "forced/steps", "a_d": "forced/direct"}
print("changed      seed 0   seed 1   seed 2")
for change in ((), ("d",), ("a_s",), ("a_d",), ("d", "a_s")):
    p = [mixture(before, r, tuple(names[c] for c in change))
         for r in trained]
    print(f"{', '.join(change) or 'nothing':10s}",
          *(f"{v:8.3f}" for v in p))
print(f"{'measured':10s}", *(f"{r['pass@1']:8.3f}" for r in trained))

# %% [markdown]
# Style first: 0.40 → 0.66 → 0.92. Steps first: 0.40 → 0.50 → 0.92. The two multiply, so there is no
# one right split; in the first order about half of the gain is *elicited*, a number fixed by the
# base model alone, and the rest is better steps. $a_\text{direct}$ adds 0.01. "Better steps" is a
# rest, and a new skill would land in it too. So count what is wrong in the wrong answers: a
# **slip** (2·9=3), steps that are not those of the **problem** (an operand or operator is changed
# or left out, a wrong number is carried over), an **end** that is not the last result.

# %%
import re
from rlnb.training import pass_rate

STEP = re.compile(r"(\d)([-+*])(\d)=(\d)(wait)?")
rule = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


def slipped(a, op, b, c):
    return rule[op](int(a), int(b)) % 10 != int(c)


def faults(problem, text):
    """What is wrong in it: slip, problem, end."""
    body, _, end = re.sub(r"\d[-+*]\d=\dwait", "", text).rpartition("so")
    steps = [s[:4] for s in STEP.findall(body)]
    asked = problem.prompt.removesuffix("=?")
    results = [asked[0], *(c for *_, c in steps)]
    copied = asked[0] + "".join(op + b for _, op, b, _ in steps)
    follows = copied == asked and all(
        s[0] == r for s, r in zip(steps, results))
    return {"slip": any(slipped(*s) for s in steps),
            "problem": not follows, "end": end != results[-1]}

# %% tags=["trajectory", "nbval-ignore-output"]
def habits(model):
    answers = pass_rate(model, tokenizer, task, prompts=125, style="steps")
    wrong = [faults(answers.problems[i // 4], text)
             for i, text in enumerate(answers.texts)
             if not answers.right.flatten()[i]]
    out = {"wrong": len(wrong)} | {
        name: sum(f[name] for f in wrong)
        for name in ("slip", "problem", "end")}
    steps = [m for t in answers.texts for m in STEP.findall(t)]
    for name, here in (("right steps", False), ("wrong steps", True)):
        kind = [m for m in steps if slipped(*m[:4]) == here]
        out[name], out[f"{name}, wait"] = len(kind), sum(
            m[4] != "" for m in kind)
    return out


fresh, _ = page.load()
rows = page.measure("habits", lambda: {
    "base": habits(fresh), "trained": habits(model)})
for name in rows["base"]:
    print(f"{name:17s} {rows['base'][name]:6d}{rows['trained'][name]:6d}")
page.expect(rows["base"]["slip"] > 0.8 * rows["base"]["wrong"],
            rows["trained"]["slip"] < 0.4 * rows["base"]["slip"])

# %% [markdown]
# 500 answers each, base left, trained (seed 0) right; then their steps. Slips: 169 wrong answers
# before, 19 after; that is the sharpening. But answers that do not follow the *problem* went from 7
# to 26 and are now most of what is wrong (an answer can have two faults). And `wait` never was
# self-correction: the base wrote it after 6 of 252 wrong steps and after 117 of 2563 right ones.
# The run did not teach it and did not use it.
#
# Which problems does seed 0 fail in all eight answers, though the base solves each of them with
# greedy steps?

# %% tags=["trajectory", "nbval-ignore-output"]
never = [i for i, n in enumerate(solved["seed 0"]["free"]) if n == 0]
print(len(never), "problems, seeds 1 and 2:",
      *(solved[f"seed {s}"]["free"].count(0) for s in (1, 2)))


def greedy(model):
    return pass_rate(model, tokenizer, task, num_generations=1,
                     sampling=Sampling(temperature=0.0),
                     style="steps", prompts=never[0] + 1).texts[-1]


shown = page.measure("lost", lambda: [greedy(fresh), greedy(model)])
lost = unseen[never[0]]
print(f"{lost.prompt}  right: {lost.answer}")
for name, text in zip(("base", "trained"), shown):
    print(f"{name:8s} {text}")
assert all(solved["base"]["steps/greedy"][i] for i in never)

# %% [markdown]
# No slip, but `*1` for `+1`: another problem was solved, correctly. Where the base had several
# answers, this model has one, and it is wrong: pass@4 and pass@8 of seed 0 stop at 0.97 and 0.98.
# That is the loss of diversity that Yue et al. describe, in small, and in one seed of three.
#
# ## Pay for the other style
#
# A control for "it learned to calculate": pay only for right answers *without* steps. Same model,
# same objective, 20 steps, which brought most of the gain above.

# %%
def no_steps(problem, text):
    return task.verify(problem, text) * text.startswith("so")


def pay_for_no_steps():
    other, _ = page.load()
    found = []

    def look(record):                   # forced/direct, mean and its se
        if record["record"] == "header" or record["step"] in (10, 20):
            right = pass_rate(other, tokenizer, task, style="direct").right
            found.append(mean_and_se(right.mean(1).tolist()))

    train(other, tokenizer, task, ZOO["dr_grpo"], Recipe(
        steps=20, eval_every=0), reward=no_steps, progress=False,
        watch=look)
    free = pass_rate(other, tokenizer, task)
    direct = sum(t.startswith("so") for t in free.texts)
    return [free.right.mean().item(), direct / len(free.texts), found]

# %% tags=["trajectory", "nbval-ignore-output"]
free, share, forced = page.measure("no steps", pay_for_no_steps)
print(f"pass@1 {free:.3f}, share of direct answers {share:.3f}")
for step, (mean, se) in zip((0, 10, 20), forced):
    print(f"forced/direct after {step:2d} steps: {mean:.3f} ± {se:.3f}")
page.expect(share > 0.9, free < base["pass@1"],
            forced[-1][0] < forced[0][0] + 0.1)

# %% [markdown]
# It stops writing steps, as it was paid to, and its direct answers stay where they were: twenty
# steps that were enough for the other style move this one by nothing. Pass@1 *falls* below the base
# model's. (One seed. Whether any training would raise it, this does not say; 1000 steps of
# imitation, 60 % of them direct, had not.)
#
# **In plain words.** Reinforcement chose between things the model could do, by trying them and
# keeping what paid. It made the better habit common and cleaner, and, in the seed we read,
# miscopying the problem more common. We saw no new arithmetic. On large models pass@k at large $k$
# is what the debate about "new skills" is fought with; forced styles are this page's addition. Yue
# et al. (2025) find the base model ahead at large $k$; with longer runs and other data ProRL (Liu
# et al. 2025, [2505.24864](https://arxiv.org/abs/2505.24864)) finds the opposite. To claim a new
# skill you would need base models that fail at *every* k you can afford, several base checkpoints,
# and held-out problems of a kind that was not trained.
#
# **What this page shows, and what not.** It shows one task of our own making, one base checkpoint,
# three seeds, on a CPU. It does not show a task that the base fails, a second base, off-policy
# updates, or a GPU.
#
# ## Your own GPU
#
# What does a larger model cost? Two counts answer most of it: bytes that must be held, and bytes
# and operations that a step cannot do without. The numbers of a card are those of its data sheet.
# Put the answers to 8192 tokens: which two bars burst? Bring them back with *decoded at once* and
# *gradient checkpointing*, and watch what the time says to that.
#
# (*Cache*: keys and values of every token, kept while an answer is written. *Activations*: what the
# layers keep for the backward pass, unless they are computed again, which is gradient
# checkpointing. *Logits*: one number per token and vocabulary entry. *Master copy*: float32 weights
# beside bfloat16 ones, in which small steps would be rounded away. *Frozen models*: a reference, a
# reward model. *large* is our 25 million, 0.5B and more are public layouts.)
#
# Prompts count 100 tokens. Decoding moves at least the weights once per token and wave, and each
# answer's cache, half full on average; bytes over bandwidth. Training does 6 FLOPs a parameter and
# token (2 forward, 4 backward), 8 with checkpointing, plus attention; over the rate. L4: 300 GB/s,
# 121 TFLOP/s in bfloat16; H200: 4800 and 989 (NVIDIA's data sheets, dense).

# %% tags=["explorer"]
explorers.gpu_budget_explorer()

# %%
from rlnb.classroom.explorers.gpu_budget import compute as budget
from rlnb.training.studies.gpu_budget import MODELS

for held in MODELS:
    print(f"{budget(models=held)['each']} bytes per parameter: {held}")
assert [budget(models=m)["each"] for m in MODELS] == [16, 18, 20, 36]
print("\n0.5B on an L4 unless said; 512 answers a step")
print("bound from data sheet numbers, not a measurement")
print(f"{'':26s}cache GB  activ. GB  fullest GB  decode s  train s")
long = dict(answer_tokens=8192)
for name, settings in (
        ("300 tokens", {}), ("8192 tokens", long),
        ("8192, 128 at once, again", dict(
            long, in_flight=128, checkpointing=True)),
        ("4B, 300 tokens", dict(model="4B")),
        ("4B, 300, H200", dict(model="4B", card="H200 SXM"))):
    d = budget(**settings)
    GB = {k: v / 1e9 for k, v in d["memory"].items()}
    times = " ".join(f"{d['seconds'][k]:8.1f}" for k in ("decode", "train"))
    print(f"{name:26s}{GB['cache']:8.1f} {GB['activations']:10.1f}"
          f" {d['peak'] / 1e9:11.1f} "
          f"{times if d['peak'] <= d['room'] else 'does not fit'}")

# %% [markdown]
# Weights, gradients, AdamW's two moments and a master copy: 16 bytes a parameter before the first
# token (page 06 counts PPO's 36). What the *batch* needs comes on top and can be traded for time.
# Long answers do not fit at first; with 128 decoded at once instead of 512, and layers computed
# *again*, they do: the weights are read four times as often, and a training step is four passes in
# place of three. The bound is from below; how much slower a real step is, only a run can tell.
#
# **Waiting for a GPU.** No GPU run is recorded yet. These commands are written, and tried on a CPU
# at toy size; on a GPU nobody has run them:
#
# ```
# RLNB_MODE=cuda RLNB_RECORD=page_19_cuda.json python notebooks/text/21_grpo_for_real.py
# RLNB_REPLAY=page_19_cuda.json RLNB_MODE=replay python notebooks/text/21_grpo_for_real.py
# python -m rlnb.training base --preset large --out base_large
# python -m rlnb.training grpo --model base_large --prompts 512 --num-generations 16 --micro-batch 256 --steps 100 --out run_large
# ```
#
# The first is this page as a plain script, without Jupyter; it writes every value it measures to
# one file, and the second replays that file.
#
# ## Where people go wrong
#
# **"The loss goes down when it learns."** In these three runs it goes *up*, from −0.04 to 0, and
# its correlation with the reward is above +0.9.

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
# $-\operatorname{cov}(A,T)/L_{\max}$ again: at first the right answers are the long ones, so the
# covariance is positive and the loss negative. When everyone writes steps, length no longer tells
# right from wrong, and the loss is 0. Under GRPO's sequence mean without KL it would have been 0
# all along. Plot reward, not loss.
#
# **"Greedy 0.26 → 0.97: RL nearly quadrupled the accuracy."** True, and it compares the base model
# at its worst decoder. With one written symbol the base was at 1.00. Always give the base model its
# best prompt.
#
# **"One seed shows that it works."** After 20 steps the coin's seeds are ten points apart, in the
# same setting. The verifier's gain by then is more than four times that:

# %%
falls = [series(r, "pass@1", "eval") for r in coin]
best, worst = max(f[20] for f in falls), min(f[20] for f in falls)
print(f"coin flip, best and worst seed: {best:.3f}, {worst:.3f}")
rises = [series(r, "pass@1", "eval") for r in recorded]
gains = [f[20] - f[0] for f in rises]
print("verifier, gain per seed:", *(f"{g:.3f}" for g in gains))
assert best - worst > 0.1 and min(gains) > 4 * (best - worst)

# %% [markdown]
# **"Groups without a gradient mean that something is broken."** All wrong from the start: yes, the
# task is too hard or the verifier too strict. All right at the end: that is success, and a bill for
# samples that teach nothing. Log the two apart; TRL's `frac_reward_zero_std` alone cannot tell them
# apart.
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
# **21.1 Derive** · 10 minutes · ●●○. Let one logit $z$ decide the style, $d=\sigma(z)$ the share of
# direct answers, and let the styles' accuracies $a_\text{direct}$, $a_\text{steps}$ be fixed. What
# is $\partial p/\partial z$ for $p=d\,a_\text{direct}+(1-d)\,a_\text{steps}$? Where is it largest,
# and what happens to it at the end of the run? What is the ceiling of this story, and which part of
# the gain does it leave unexplained?
#
# <details><summary>hint</summary>
#
# $\partial d/\partial z=d(1-d)$. The ceiling is $d=0$.
# </details>
#
# **21.2 Predict, then look** · 5 minutes · ●○○. Without scrolling up to the explorer: under the
# coin, what happens in 20 steps to the share of mixed groups and to the entropy? Does a high share
# of mixed groups say that the reward means something?
#
# <details><summary>hint</summary>
#
# What is the chance that eight coins agree? Entropy falls when something is preferred: what does a
# coin prefer?
# </details>
#
# **21.3 Predict, then run** · 8 minutes · ●●○. One rollout, three objectives: `dr_grpo`, `rloo`,
# and `grpo` without its KL term. For each pair, is the gradient the same, the same up to a factor,
# or another direction? Does a factor matter under AdamW? Under clipping at norm 1?
#
# <details><summary>hint</summary>
#
# RLOO's advantage is $\frac{G}{G-1}$ times Dr. GRPO's, and its weight is a constant too. GRPO
# divides by $s$ and by $T_i$, which differ from group to group and from answer to answer. To run
# it: the rollout of `step_by_hand`, `ZOO["grpo"].replace(terms=())`, `torch.autograd.grad`, a
# cosine.
# </details>
#
# **21.4 Implement** · 5 minutes · ●○○. What `token_logprobs` does behind the model: from logits to
# the log-probability of each token that was written.
#
# <details><summary>hint</summary>
#
# `log_softmax` over the vocabulary, then `gather` with an index that has as many axes as the
# logits.
# </details>

# %% tags=["exercise"]
def my_token_logprobs(logits, tokens):
    """(B, T, V) logits and (B, T) token ids -> (B, T)"""
    return ...


check.token_logprobs(my_token_logprobs)

# %% [markdown]
# **21.5 Break it** · 15 minutes · ●●○. Write a reward that sounds sensible and can be gamed, train
# 20 steps on it, and say which recorded number gives it away. Two to start from: "the right digit
# appears in the answer" and "a bonus of 0.5 for reflecting", that is, for writing `wait`.

# %% tags=["exercise"]
def my_reward(problem, text):
    """-> number; `task.verify(problem, text)` is the honest one"""
    return ...


# train(page.load()[0], tokenizer, task,
#       ZOO["dr_grpo"], Recipe(steps=20), reward=my_reward)

# %% [markdown]
# <details><summary>hint</summary>
#
# The records carry `reward`, what you paid, and `rewards/verify/mean`, what was right, side by
# side. Watch the distance. And read answers.
# </details>
#
# **21.6 Find the bug** · 8 minutes · ●●○. To get cleaner data somebody samples at temperature 0.7
# and leaves the rest alone. The loop refuses:

# %% tags=["exercise"]
from rlnb.training import BadInput

cool = sample(model, encode_prompts(tokenizer, [problem.prompt]), G,
              Sampling(temperature=0.7), **ends)
try:
    token_logprobs(model, cool, temperature=1.0)
except BadInput as sentence:
    print(sentence)

# %% [markdown]
# In a trainer without that check, what would the ratio be, when would anybody notice, and which
# assertion would have caught it at once?
#
# <details><summary>hint</summary>
#
# On-policy the ratio must be 1 before the first update. Compare the log-probabilities of the
# sampler with those of the trainer.
# </details>
#
# **21.7 Find the bug** · 8 minutes · ●●○. Another trainer pairs answers with problems like this. It
# runs, the loss is small, nothing is learned:

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
# All solved and run in [solutions/21_grpo_for_real.ipynb](solutions/21_grpo_for_real.ipynb).
#
# ## In the interview
#
# **Walk me through one step of GRPO training.**
# <details><summary>answer</summary>
#
# Draw P prompts; sample G answers each from the current policy at temperature 1, full vocabulary,
# and keep the log-probs. Verify: one reward per answer, truncated ones get 0. Advantage inside each
# group. Recompute the log-probs with gradient by teacher forcing; compare with the sampler's.
# Ratio, clip, mask, average, backward, clip the gradient norm, optimizer step. With one update per
# rollout the ratio is 1 and the clip is idle. Then log groups, length, entropy, and the gap between
# sampler and trainer.
# </details>
#
# **Reward went from 0.4 to 0.9. What did the model learn?**
# <details><summary>answer</summary>
#
# I cannot say yet. I want the base model under its best prompt and decoder, pass@k of the base at
# large k, and a control with random rewards. If the forced style already solves it, it is
# elicitation; if pass@k was high and pass@1 caught up, sharpening; a new skill needs problems the
# base fails at every affordable k. In this toy: 0.38 to 0.92; the style alone gives 0.66, measured
# on the base; the rest is slips, 169 wrong answers in 500 down to 19; and the base with one symbol
# written for it and greedy decoding was at 1.00. The trained model even miscopies the problem more
# often than the base.
# </details>
#
# **Which curves do you look at first?**
# <details><summary>answer</summary>
#
# Held-out pass@1 against the base and a control; all-right, mixed and all-wrong groups apart;
# length with the share cut off; entropy; gradient norm; sampler-trainer gap; clip share if there is
# more than one update. Then read samples. Not the loss: on-policy its value is minus a covariance
# of advantage and length, or 0.
# </details>
#
# **Most of your groups are all right. What now?**
# <details><summary>answer</summary>
#
# They cost samples and carry no gradient. Either stop, or draw harder prompts (curriculum), or
# filter and resample (dynamic sampling), or drop prompts that stay solved. Dropping alone saves the
# forward pass and leaves a Dr. GRPO gradient as it is if $N$ stays the number that was sampled, as
# `train` does; otherwise it rescales it. And I would check that "all right" is not "all hacked".
# </details>
#
# **Entropy fell by a factor of ten. Is that a problem?**
# <details><summary>answer</summary>
#
# Choosing what pays lowers entropy (a coin's runs kept theirs). It is a problem if groups become
# constant while pass@1 is still low, or if pass@k falls or flattens. Here a choice of style was
# made; pass@8 rose from 0.96 to 0.98-1.00, but in one seed of three it flattened at 0.976: six
# problems failed in all eight answers. Remedies where it hurts: harder or fresh prompts,
# clip-higher, KL to a reference, a larger group; none is a cure.
# </details>
#
# **Why a wrong-verifier control, and what do you expect?**
# <details><summary>answer</summary>
#
# With rewards independent of the answer the expected gradient is 0, so any systematic gain comes
# from elsewhere: a bug, clipping bias, a prior of the base model. Here a coin makes it worse (0.39
# to 0.25-0.36 in 20 steps), although the mean gradient is 0: AdamW rescales noise to full-sized
# steps, and they spoil the written steps. Published runs on some base models gained with random
# rewards; without the control those gains would be credited to the verifier.
# </details>
#
# **Sampler and trainer disagree on log-probs. How much is fine?**
# <details><summary>answer</summary>
#
# Same program, float32: at most 4e-5 in these runs, so I would look into 1e-4. Two engines in low
# precision: expect more, and measure it from the first step; then the ratio is not 1 on-policy,
# long answers multiply it, and one corrects with a truncated importance weight or by matching
# precision. A gap that is large at once means other temperature, other truncation, other
# tokenisation, or stale weights.
# </details>
#
# **How would you make this verifier exploitable?**
# <details><summary>answer</summary>
#
# Accept the digit anywhere in the answer: training then writes many digits. Call eval on the
# answer: then code runs. Pay for `wait`: it reflects on every right step. Ungraded steps are
# already a hole: wrong steps with a right end get 1. The defence is a second, unrewarded check,
# logged beside the reward, and reading the top-reward answers.
# </details>
#
# ## Recap
#
# The objective of this page's runs, and how it differs from page 08's:

# %%
from rlnb.objective import difference

print(recorded[0][0]["objective"])
print(difference(ZOO["grpo"], ZOO["dr_grpo"]))

# %% [markdown]
# * One step is: sample, verify, centre, score, weigh, step. Twenty lines, and the rest is
#   bookkeeping.
# * Measure before you train: pass@k, greedy, forced styles. They decide what a rising curve means.
# * Here choosing the style gives 0.40 → 0.66 and cleaner steps 0.66 → 0.92 (in the other order 0.50
#   comes between); greedy with one written symbol had 1.00.
# * The remaining errors are of another kind than the first ones. Read wrong answers before you name
#   a cause.
# * A coin for a verifier, three seeds, and a base level belong beside every curve.
# * The loss went up while the model learned. Look at reward, groups, length, entropy, and answers.
#
# More of the same, from the command line in the course's folder; the second line shows the run
# again:
#
# ```
# python -m rlnb.training grpo --objective grpo --steps 40 --seed 1 --out my_run
# python -m rlnb.training replay my_run
# ```
#
# The map of all pages is [00](00_start_here.ipynb).
