# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 21 · statements: GRPO for real
#
# What stands behind the lesson, [21 · GRPO for real](../21_grpo_for_real.ipynb): the tables, the
# controls problem by problem, what the wrong answers are made of, and three experiments to run
# yourself. Numbers that come from sampling now are one run on one machine, and the asserts hold
# everywhere; the others are recorded on a CPU. The runs on a GPU are those of the lesson's last
# section.

# %% tags=["setup"]
import random
import re
from collections import Counter
import torch
from rlnb import ZOO, check
from rlnb.classroom import explorers
from rlnb.classroom.explorers import gpu_budget, recorded_run, rollouts
from rlnb.classroom.live_or_replay import open_page
from rlnb.classroom.pictures import grpo_for_real as pictures
from rlnb.objective import Batch
from rlnb.training import (TASKS, BadInput, Recipe, Sampling, data_folder,
    encode_prompts, evaluate, held_out, is_held_out, pass_rate, read,
    sample, series, token_logprobs, train)
from rlnb.training.studies.controls import mixture, reports, right
from rlnb.training.studies.many_answers import (parts, pass_at, rate,
    solved)
from rlnb.training.studies.gpu_budget import MODELS
page = open_page()             # or open_page("replay"), "cpu", "cuda"

# %% tags=["setup"]
path = data_folder() / "runs" / "chain_controls.json"
found, by_problem = reports(path), right(path)
kept = found["base"]
model, tokenizer = page.load()
ends = dict(eos_id=tokenizer.eos_token_id, pad_id=tokenizer.pad_token_id)
chain, G = TASKS["chain"], 8
unseen = held_out(chain, 250)


def runs(name):
    paths = [data_folder() / "runs" / f"chain_{name}_seed{s}.jsonl"
             for s in range(3)]
    return [read(path) for path in paths]


recorded, coin = runs("dr_grpo"), runs("coin_flip")

# %% [markdown]
# ## The verifier
#
# Three to eight operators, at most 72 tokens. The symbol after the last `so` is compared as text:

# %%
def verify(answer, text):
    _, so, digit = text.rpartition("so")               # the last `so`
    return float(so == "so" and digit == answer)


easy = chain.parse("4+3-8=?")
for text in ("so9", "4+3=7,7-8=9so9", "4+3=1,1-8=9so9", "so8so9",
             "so8", "so9so8", "9", "", "so", "so09", "so9 ", "so3*3",
             "so__import__('os').abort()"):
    reward = verify(easy.answer, text)
    assert reward == chain.verify(easy, text)
    print(f"{reward:.0f}  {text!r}")

# %% [markdown]
# `so3*3` does not count, because the text is never evaluated: a verifier that calls `eval` on what
# a model wrote runs whatever the model wrote.
#
# ## What the base model was taught
#
# By imitation, 1000 steps of 128 demonstrations, on a mixture that was made on purpose:

# %%
print(f"direct {chain.direct}, error {chain.error}, repair {chain.repair}")
dice = random.Random(57)
for _ in range(6):
    p = chain.problem(dice, "train")
    print(p.prompt, chain.demo(dice, p), f"   right: {p.answer}")

# %% [markdown]
# The popular style is the one a small model cannot do (up to eight operations in one forward pass),
# the style it can do was taught with noise; half of the wrong steps are repaired after `wait`. A
# pleasing curve was built into this task.
#
# One problem in ten is held out, decided by a hash of its text, so no run on any machine trains on
# it:

# %%
again = random.Random(0)
seen = [chain.problem(again, "train") for _ in range(5_120)]
print(type(model).__name__, f"{model.num_parameters():,} parameters")
print(f"{len(unseen)} held-out problems, first {unseen[0].prompt}")
assert not {p.prompt for p in unseen} & {p.prompt for p in seen}
assert all(is_held_out(p.prompt) for p in unseen)

# %% [markdown]
# ## A run, step by step
#
# Pull the step to 0 and read the four answers, then go up. Then press *coin flip*.

# %% tags=["explorer"]
explorers.recorded_run_explorer()

# %% [markdown]
# Three of its steps as numbers, shares of the step's 16 groups:

# %%
print("step   right  mixed  wrong   length  entropy")
for step in (1, 20, 40):
    d = recorded_run.compute(step)
    kinds = " ".join(f"{d['groups'][k][-1]:6.3f}" for k in d["groups"])
    m = d["metrics"]
    print(f"{step:4d}  {kinds}"
          f"   {m['completions/mean_length']:5.1f}    {m['entropy']:.3f}")

# %% [markdown]
# ## The base model, before any reward
#
# Eight answers a problem here, four at the evaluations inside a run, 32 in the lesson's number, all
# from the one base model. They agree within their errors, and the lesson quotes the most exact one:

# %%
many = solved(path.with_name("chain_many_answers.json"))
print("32 answers: {:.3f} ± {:.3f}".format(*rate(many["base"])))
print("8 answers:  {:.3f} ± {:.3f}".format(
    *rate(by_problem["base"]["free"], 8)))
print(f"4 answers:  {series(recorded[0], 'pass@1', 'eval')[0]:.3f}")

# %% tags=["trajectory", "nbval-ignore-output"]
base = page.measure(
    "base", lambda: evaluate(model, tokenizer, chain))  # 250 x 8 answers
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
# What is 0.227 in the direct style worth? Digits are not equally frequent, `*` makes zeros:

# %%
third = random.Random(1)
drawn = [chain.problem(third, "train").answer for _ in range(20_000)]
q = {d: n / 20_000 for d, n in sorted(Counter(drawn).items())}
print("train:", *(f"{d} {share:.2f} " for d, share in q.items()))
zeros = sum(p.answer == "0" for p in unseen)
print(f"forced/direct {kept['forced/direct']:.3f};"
      f" always `so0`: {zeros} of 250, {zeros / 250:.3f}")
guessing = {k: sum(1 - (1 - q[p.answer]) ** k for p in unseen) / 250
            for k in (1, 2, 4, 8)}           # k guesses, drawn from q
print("guessing, pass@k:", *(f"{k}: {v:.2f} " for k, v in guessing.items()))
assert zeros == 55 and 0.57 < guessing[8] < 0.62

# %% [markdown]
# No better than always saying 0. And guesses reach 0.59 at pass@8, so the base's pass@8 is a weaker
# witness than the forced style. The mixture $p=d\,a_\text{direct}+(1-d)\,a_\text{steps}$:

# %%
clean = kept | {"forced/steps": kept["forced/steps/greedy"]}
print(f"p {mixture(kept):.3f}, measured {kept['pass@1']:.3f}")
print(f"only d = 0: {mixture(kept | {'direct': 0}):.3f};"
      f" only clean steps: {mixture(clean):.3f};"
      f" both: {mixture(clean | {'direct': 0}):.3f}")
assert abs(mixture(kept) - kept["pass@1"]) < 0.04

# %% [markdown]
# (0.40 against 0.38: a symbol that the model chose itself goes with other problems than one written
# for it.)
#
# ## One group by hand

# %% tags=["trajectory", "nbval-ignore-output"]
one = unseen[3]
group = sample(
    model, encode_prompts(tokenizer, [one.prompt]), G, Sampling(),
    generator=torch.Generator(model.device).manual_seed(5), **ends)
texts = group.texts(tokenizer)
R = torch.tensor([chain.verify(one, t) for t in texts])      # (G,)
A = R - R.mean()                                             # (G,)
print(f"{one.prompt}  right: {one.answer}  mean {R.mean():.3f}")
for i in range(G):
    print(f"R {R[i]:.0f}  A {A[i]:+.3f}  {group.lengths[i]:2d} tokens"
          f"  {texts[i]}")

# %% [markdown]
# In the group this page was built with one of the right answers has a wrong step: 2·9 is not 3.
# Modulo 10, 3·6 and 8·6 end alike: a verifier of ends pays for luck. (The end-of-sequence token
# counts as a token: the policy chose it.) Scored by teacher forcing, in float32, the
# log-probabilities agree to about $10^{-5}$, and the loss is $-\sum A_iT_i/(G L_{\max})$:

# %% tags=["trajectory"]
logprobs, entropies = token_logprobs(model, group, temperature=1.0)
gap = (logprobs - group.logprobs).abs().max()                # (G, T)
page.expect(gap < 1e-4)
batch = Batch(logprobs, group.completion_mask, R.to(logprobs), G,
              max_completion_length=72)
out = ZOO["dr_grpo"](batch)
lengths = group.lengths.to(logprobs)
by_hand = -(A.to(lengths) * lengths).sum() / (G * 72)
assert torch.isclose(out.loss, by_hand, atol=1e-6)
assert out.metrics["ratio/max"] == out.metrics["ratio/mean"] == 1.0

# %% [markdown]
# ## What each token is told
#
# Step 40, prompt 2, answer 1 of the lesson's recorded groups, the only wrong one of its eight:

# %%
told, felt = (rollouts.compute(40, 2, 1, show)
              for show in ("weight", "logit"))
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
# Every token gets $-0.875/(128\cdot72)$. At its own logit it arrives times $1-\pi$: what is left is
# the token the model was not sure of, `8` after `0+7=`. This one is drawn once in a thousand times,
# so it repairs almost nothing. In the mean a logit is pushed by $p(1-p)\,|A|$: what repairs are the
# nine wrong digits of the base, each drawn about once in a hundred, and the right one pushed up.
#
# ## Three seeds and a coin

# %%
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
coins = reports(path, "coin")
styles = ("forced/direct", "forced/steps", "forced/steps/greedy")
print("          direct ", *styles)
for name, r in coins.items():
    print(f"{name:8s} {r['direct']:7.3f}",
          *(f"{r[n]:{len(n)}.3f}" for n in styles))
for kind in ("seed", "coin"):
    far = [r["moved"] for r in reports(path, kind).values() if "moved" in r]
    print(f"weights after 20 steps, distance from the base, {kind}s 0-2:",
          *(f"{d:.2f}" for d in far))
spoilt = [r["forced/steps"] for n, r in coins.items() if n != "base"]
assert max(spoilt) < coins["base"]["forced/steps"] - 0.05

# %% [markdown]
# The share of direct answers wanders both ways; the steps get worse in all three. (Three of three
# is a small sample: a sign test gives one in four.) Do the verifier's seeds differ? The eight
# answers to one problem are not independent, and all models got the same problems, so the count is
# over problems, and paired:

# %%
def mean_and_se(values):                           # one value a problem
    x = torch.tensor(values, dtype=torch.float64)
    return x.mean().item(), (x.std() / len(x) ** 0.5).item()


for name in ("base", "seed 0", "seed 1", "seed 2"):
    free, direct = ([n / 8 for n in by_problem[name][style]]
                    for style in ("free", "direct"))
    (p, dp), (a, da) = mean_and_se(free), mean_and_se(direct)
    print(f"{name:6s}: pass@1 {p:.3f} ± {dp:.3f},"
          f" forced/direct {a:.3f} ± {da:.3f}")
for i, j in ((0, 1), (0, 2), (1, 2)):
    pair = zip(by_problem[f"seed {j}"]["free"],
               by_problem[f"seed {i}"]["free"])
    mean, se = mean_and_se([(x - y) / 8 for x, y in pair])
    print(f"seed {j} - seed {i}: {mean:+.3f} ± {se:.3f}")
    assert abs(mean) < 2 * se

# %% [markdown]
# No difference between seeds exceeds two standard errors.
#
# After 20 steps the coin's seeds are ten points apart in the same setting, so one seed shows
# little. The verifier's gain by then is more than four times that:

# %%
falls = [series(r, "pass@1", "eval") for r in coin]
best, worst = max(f[20] for f in falls), min(f[20] for f in falls)
print(f"coin flip, best and worst seed: {best:.3f}, {worst:.3f}")
rises = [series(r, "pass@1", "eval") for r in recorded]
gains = [f[20] - f[0] for f in rises]
print("verifier, gain per seed:", *(f"{g:.3f}" for g in gains))
assert best - worst > 0.1 and min(gains) > 4 * (best - worst)

# %% [markdown]
# ## What moved

# %%
curves = {"groups/all_pass": "all right", "groups/mixed": "mixed",
          "groups/all_fail": "all wrong", "entropy": "entropy",
          "completions/mean_length": "length", "grad_norm": "grad norm"}
print("steps       1-10   11-20   21-30   31-40    mean of 3 seeds")
for key, name in curves.items():
    row = [sum(series(r, key)[t] for r in recorded
               for t in range(a, a + 10)) / 30 for a in (1, 11, 21, 31)]
    print(f"{name:10s}", *(f"{v:7.3f}" for v in row))
    if name == "mixed":
        assert row[0] > 0.9 and row[-1] < 0.4

# %% [markdown]
# In the last ten steps six of ten groups were sampled, verified, and taught nothing. The gradient
# norm does not fall, though fewer groups carry it, and is 30 times below the clip at 1.
#
# The loss goes *up* while the model learns, and one update per batch leaves the clip idle:

# %%
for seed, run in enumerate(recorded):
    loss = torch.tensor(list(series(run, "loss").values()))
    paid = torch.tensor(list(series(run, "reward").values()))
    c = torch.corrcoef(torch.stack([loss, paid]))[0, 1]
    print(f"seed {seed}: loss {loss[:10].mean():+.3f} in steps 1-10,"
          f" {abs(loss[-10:].mean()):.3f} in 31-40, correlation {c:+.2f}")
    assert c > 0.9 and loss[:10].mean() < -0.03
    assert loss[-10:].mean().abs() < 0.002

# %%
ratios = [v for r in recorded for v in series(r, "ratio/max").values()]
cut = [v for r in recorded
       for v in series(r, "clip_ratio/region_mean").values()]
largest_gap = max(v for r in recorded for v in series(
    r, "sampling/logp_difference").values())
print(f"{len(ratios)} steps: largest ratio {max(ratios)},"
      f" largest share cut {max(cut)}")
print(f"sampler and trainer at most {largest_gap:.0e} apart")
assert max(ratios) == 1.0 and max(cut) == 0.0 and largest_gap < 1e-4

# %% [markdown]
# ## What was learned
#
# Three seeds, pass@k without bias from the eight answers of each problem:

# %%
print(f"{'':20s}", *(f"{name:>8s}" for name in found), " guessing")
for name in ("pass@1", "pass@2", "pass@4", "pass@8", "greedy",
             "forced/steps", "forced/steps/greedy", "forced/direct"):
    k = int(name[5:]) if name.startswith("pass@") else None
    print(f"{name:20s}", *(f"{r[name]:8.3f}" for r in found.values()),
          f"    {guessing[k]:.2f}" if k else "")
trained = [found[f"seed {seed}"] for seed in range(3)]
for r in trained:
    assert r["forced/steps"] > kept["forced/steps"] + 0.2
    assert abs(r["forced/direct"] - kept["forced/direct"]) < 0.03

# %% [markdown]
# Steps forced and greedy: 250 of 250 before; after training 8, 2 and 2 problems are lost. Two of
# 250 are within noise, eight are not. The gain, taken apart:

# %%
renamed = {"d": "direct", "a_s": "forced/steps", "a_d": "forced/direct"}
print("changed      seed 0   seed 1   seed 2")
for change in ((), ("d",), ("a_s",), ("a_d",), ("d", "a_s")):
    mixed = [mixture(kept, r, tuple(renamed[c] for c in change))
             for r in trained]
    print(f"{', '.join(change) or 'nothing':10s}",
          *(f"{v:8.3f}" for v in mixed))
print(f"{'measured':10s}", *(f"{r['pass@1']:8.3f}" for r in trained))

# %% [markdown]
# And with 32 answers a problem, where the curves cross:

# %%
print("k       ", *(f"{k:7d}" for k in (1, 2, 4, 8, 16, 32)), " unsolved")
for name, counts in many.items():
    line = [pass_at(k, counts) for k in (1, 2, 4, 8, 16, 32)]
    print(f"{name:8s}", *(f"{v:7.3f}" for v in line),
          f"{counts.count(0):7d}")
assert all(pass_at(32, many["base"]) > pass_at(32, counts)
           for name, counts in many.items() if name != "base")

# %% [markdown]
# With ten possible digits a blind guesser gets far as well, so count only answers in which every
# step is right (a step taken back with `wait` aside). And the six problems that seed 0 lost:

# %%
part = parts(path.with_name("chain_many_answers.json"))
ks = (1, 2, 4, 8, 16, 32)
print("guesser ", *(f"{1 - 0.9**k:7.3f}" for k in ks))
for name, kinds in part.items():
    line = [pass_at(k, kinds["clean"]) for k in ks]
    print(f"{name:8s}", *(f"{v:7.3f}" for v in line),
          f"{kinds['clean'].count(0):7d}")
gone = [i for i, n in enumerate(many["seed 0"]) if n == 0]
print("on the six, clean answers of 32:",
      *(f"{part['base']['clean'][i]}" for i in gone))
assert [k["clean"].count(0) for k in part.values()] == [1, 6, 1, 1]
assert sum(part["base"]["clean"][i] for i in gone) == 36
assert not any(part["seed 0"]["clean"][i] for i in gone)

# %% [markdown]
# So the base's 32 tries are skill and not luck: one problem of 250 is left. Seeds 1 and 2 are level
# with it, and one lost problem may be chance. Seed 0's six are not: in 36 of 192 answers the base
# solved them step by step, seed 0 in none.
#
# ## What the wrong answers are made of
#
# "Better steps" is a rest, and a new skill would land in it too. So count: a **slip** (2·9=3),
# steps that are not those of the **problem** (an operand or operator is changed or left out, a
# wrong number is carried over), an **end** that is not the last result.

# %%
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
student, _ = page.load()
records = page.measure("run", lambda: train(
    student, tokenizer, chain, ZOO["dr_grpo"], page.recipe,
    watch=page.watch(), progress=False))
page.show_run(records)

# %%
def habits(model):
    answers = pass_rate(model, tokenizer, chain, prompts=125, style="steps")
    wrong = [faults(answers.problems[i // 4], text)
             for i, text in enumerate(answers.texts)
             if not answers.right.flatten()[i]]
    tally = {"wrong": len(wrong)} | {
        name: sum(f[name] for f in wrong)
        for name in ("slip", "problem", "end")}
    steps = [m for t in answers.texts for m in STEP.findall(t)]
    for name, here in (("right steps", False), ("wrong steps", True)):
        kind = [m for m in steps if slipped(*m[:4]) == here]
        tally[name], tally[f"{name}, wait"] = len(kind), sum(
            m[4] != "" for m in kind)
    return tally

# %% tags=["trajectory", "nbval-ignore-output"]
rows = page.measure("habits", lambda: {
    "base": habits(model), "trained": habits(student)})
for name in rows["base"]:
    print(f"{name:17s} {rows['base'][name]:6d}{rows['trained'][name]:6d}")
page.expect(rows["base"]["slip"] > 0.8 * rows["base"]["wrong"],
            rows["trained"]["slip"] < 0.4 * rows["base"]["slip"])

# %% [markdown]
# 500 answers each, base left, trained (seed 0) right. Slips: 169 wrong answers before, 19 after.
# Answers that do not follow the *problem* went from 7 to 26 and are now most of what is wrong. And
# `wait` never was self-correction: the base wrote it after 6 of 252 wrong steps and after 117 of
# 2563 right ones.
#
# A problem that seed 0 fails in all eight answers, though the base solves it with greedy steps:

# %% tags=["trajectory", "nbval-ignore-output"]
never = [i for i, n in enumerate(by_problem["seed 0"]["free"]) if n == 0]
print(len(never), "problems, seeds 1 and 2:",
      *(by_problem[f"seed {s}"]["free"].count(0) for s in (1, 2)))


def greedy(model):
    return pass_rate(model, tokenizer, chain, num_generations=1,
                     sampling=Sampling(temperature=0.0),
                     style="steps", prompts=never[0] + 1).texts[-1]


shown = page.measure("lost", lambda: [greedy(model), greedy(student)])
lost = unseen[never[0]]
print(f"{lost.prompt}  right: {lost.answer}")
for name, text in zip(("base", "trained"), shown):
    print(f"{name:8s} {text}")
assert all(by_problem["base"]["steps/greedy"][i] for i in never)

# %% [markdown]
# No slip, but `*1` for `+1`: another problem was solved, correctly. Where the base had several
# answers, this model has one, and it is wrong: the loss of diversity that Yue et al.
# ([2504.13837](https://arxiv.org/abs/2504.13837)) describe, in small.
#
# ## Pay for the other style
#
# A control for "it learned to calculate": pay only for right answers *without* steps. Same model,
# same objective, 20 steps, which brought most of the gain above.

# %%
def no_steps(problem, text):
    return chain.verify(problem, text) * text.startswith("so")


def pay_for_no_steps():
    other, _ = page.load()
    seen_at = []

    def look(record):                   # forced/direct, mean and its se
        if record["record"] == "header" or record["step"] in (10, 20):
            hits = pass_rate(other, tokenizer, chain, style="direct").right
            seen_at.append(mean_and_se(hits.mean(1).tolist()))

    train(other, tokenizer, chain, ZOO["dr_grpo"], Recipe(
        steps=20, eval_every=0), reward=no_steps, progress=False,
        watch=look)
    free = pass_rate(other, tokenizer, chain)
    direct = sum(t.startswith("so") for t in free.texts)
    return [free.right.mean().item(), direct / len(free.texts), seen_at]

# %% tags=["trajectory", "nbval-ignore-output"]
unpaid, share, forced = page.measure("no steps", pay_for_no_steps)
print(f"pass@1 {unpaid:.3f}, share of direct answers {share:.3f}")
for step, (mean, se) in zip((0, 10, 20), forced):
    print(f"forced/direct after {step:2d} steps: {mean:.3f} ± {se:.3f}")
page.expect(share > 0.9, unpaid < base["pass@1"],
            forced[-1][0] < forced[0][0] + 0.1)

# %% [markdown]
# It stops writing steps, as it was paid to, and its direct answers stay where they were; pass@1
# falls below the base model's. Recorded with three seeds for twenty times as long, right forced
# direct answers by step:

# %%
from rlnb.training.studies import direct_only

rows_of = direct_only.reports(data_folder() / "runs"
                              / "chain_direct_only.json")
print("step   " + "  ".join(f"{step:5d}" for step in direct_only.STEPS))
for seed, rows in enumerate(rows_of):
    print(f"seed {seed}  " + "  ".join(
        f"{row['forced/direct']:.3f}" for row in rows))
    assert all(abs(row["forced/direct"] - 0.227) < 0.025 for row in rows)

# %% [markdown]
# So 51,200 answers of its own did not teach it. Other training might: 1000 steps of imitation, 60 %
# of them direct, had not. <!-- cited: 51,200 -->
#
# ## Five runs that went wrong
#
# Recorded runs of this course that failed or limped, each for another reason.

# %%
pictures.five_logs()

# %% [markdown]
# A grades another thing than it means ("is it sorted?", never "is it the same list?"). B's learning
# rate is four times too large: mixed groups vanish *while the answers are wrong*. C tosses the
# coin. D trains on answers eight steps old, without a clip. E is GRPO's 1/T: long wrong answers are
# blamed less a token.
#
# | signature | first suspicion | then look at |
# |---|---|---|
# | paid up, right down | reward is not what you meant | the answers paid best |
# | mixed and right both down | rate too large | all-wrong groups, half the rate |
# | nearly all mixed, nothing learned | reward is noise | perfect answers: do all earn 1? |
# | a third all wrong at once, nothing learned | answers paired with wrong problems | the same |
# | ratios far from 1 | old answers, two engines | age of the batch, log-prob gap |
# | longer and not better | divisor $1/T_i$, length paid | length of wrong answers (09) |
#
# What wrong pairs look like, ten batches of the base, 16 problems with 8 answers each:

# %% tags=["trajectory", "nbval-ignore-output"]
def kinds_of_groups(pair, batches=10):
    """Shares of groups all right, mixed, all wrong."""
    rng, dice = random.Random(0), torch.Generator(model.device)
    dice.manual_seed(0)
    found = []
    for _ in range(batches):
        asked = [chain.problem(rng, "train") for _ in range(16)]
        texts = sample(
            model, encode_prompts(tokenizer, [p.prompt for p in asked]),
            G, Sampling(), generator=dice, **ends).texts(tokenizer)
        found += [chain.verify(asked[pair(i)], text)
                  for i, text in enumerate(texts)]
    right = torch.tensor(found).view(-1, G).sum(1)
    return [share.double().mean().item() for share in (
        right == G, (right > 0) & (right < G), right == 0)]


pairs = {"i // G": kinds_of_groups(lambda i: i // G),
         "i % P": kinds_of_groups(lambda i: i % 16)}
for name, row in pairs.items():
    print(f"{name:7s} all right {row[0]:.2f}, mixed {row[1]:.2f},"
          f" all wrong {row[2]:.2f}")
page.expect(pairs["i % P"][0] < 0.02, 0.55 < pairs["i % P"][1] < 0.8,
            pairs["i // G"][1] > 0.85)

# %% [markdown]
# ## Does it fit your card?
#
# Trained in bfloat16 with AdamW, a parameter takes 16 bytes (19). On top comes the **cache** while
# it writes, and the **activations** while it trains. **Checkpointing** computes these again instead
# of keeping them.

# %%
from rlnb.classroom.lesson import task

task("real.t2", gpu_budget.gpu_budget_explorer(),
     ("0.5B, AdamW, the policy alone, on a card of 24 GB: make answers of "
      "8192 tokens fit. Leave optimizer and models as they are. Say first "
      "which is too large: the cache or the activations.",
      gpu_budget.long_answers_fit))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Both are, and each has its own cure. For the cache: write 128 or fewer answers at once. For the
# activations: checkpointing, or one answer trained at a time. One cure alone does not make it fit,
# because the fullest moment is the larger of the two. For 1.7B no such setting helps with AdamW: 16
# bytes times 1.7 billion is more than 24 GB. There one takes an optimizer with smaller moments, or
# freezes the weights and trains a small factor beside them (LoRA). <!-- cited: 1.7 -->
# </details>
#
# **What to type on your card.** The bytes are counted, the minutes are estimates:

# %%
from rlnb.training.studies import by_card

print(by_card.table())

# %% [markdown]
# <details><summary>One level deeper: the lesson on a GPU, and the recipe in TRL</summary>
#
# On CUDA the lesson takes the largest of four presets, up to 25 million weights, that fits four
# fifths of the free bytes and a quarter of an hour. It trains that base first. The banner says
# which, and why. If bytes run out it falls back to the next plan. The second line replays what the
# first wrote.
#
# ```
# RLNB_MODE=cuda RLNB_RECORD=mine.json python notebooks/text/21_grpo_for_real.py
# RLNB_REPLAY=mine.json RLNB_MODE=replay python notebooks/text/21_grpo_for_real.py
# RLNB_REPLAY=data/runs/page_21_h100.json RLNB_MODE=replay python notebooks/text/21_grpo_for_real.py
# python -m rlnb.training base --preset large --out base_large
# python -m rlnb.training grpo --model base_large --prompts 128 --num-generations 16 --micro-batch 512 --sampler-dtype bfloat16 --autocast bfloat16 --tf32 --learning-rate 1e-4 --steps 60 --out run_large
# ```
#
# The third line replays what an H100 did. Its base took 166 s beside another training. Alone on the
# card, a step of 8,192 answers of 100 tokens took 4.9 s: 2.8 of it to write them in bfloat16, where
# transformers' `generate` took 1.2. So our decoder is correct and not fast
# (`tests/benchmarks/README.md`). <!-- cited: 166, 8,192, 100, 4.9, 2.8, 1.2 -->
#
# The same objective for a model of 0.5B in TRL. The rate is one to start from. To log:
# `frac_reward_zero_std` (all right and all wrong in one), `completions/mean_length`,
# `completions/clipped_ratio`, `entropy`; with vLLM also `sampling/sampling_logp_difference`, the
# gap between sampler and trainer, which should not grow from step 1 on.
#
# ```
# GRPOConfig(
#     per_device_train_batch_size=32, gradient_accumulation_steps=4,  # P G = 128 answers
#     num_generations=8,            # G
#     max_completion_length=512,    # L_max
#     loss_type="dr_grpo",          # 1 / L_max, the same for all answers
#     scale_rewards="none",         # no std
#     beta=0.0,                     # no KL, no reference model
#     num_iterations=1,             # one update per batch: rho is 1
#     temperature=1.0,              # sample from the policy that is scored
#     learning_rate=1e-6)
# ```
# </details>

# %% [markdown]
# ## The calculator's counts
#
# Prompts count 100 tokens. Decoding moves at least the weights once per token and wave, and each
# answer's cache, half full on average; bytes over bandwidth. Training does 6 FLOPs a parameter and
# token (2 forward, 4 backward), 8 with checkpointing, plus attention; over the rate. L4: 300 GB/s,
# 121 TFLOP/s in bfloat16; H200: 4800 and 989 (NVIDIA's data sheets, dense). *large* is our 25
# million, 0.5B and more are public layouts. Logits: one float per token and vocabulary entry, at
# most $2^{26}$ at a time. <!-- cited: 0.5 -->

# %%
budget = gpu_budget.compute
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
# With 128 decoded at once instead of 512, and layers computed *again*, long answers fit: the
# weights are read four times as often, and a training step is four passes in place of three.
#
# What slows a step of 0.5B on an L4 most, at 300 tokens? At least so many
# seconds: <!-- cited: 0.5 -->

# %%
for name, change in (
        ("as it is", {}),
        ("answers twice as long", dict(answer_tokens=600)),
        ("64 decoded at once", dict(in_flight=64)),
        ("checkpointing", dict(checkpointing=True)),
        ("float32 in place of bfloat16", dict(mixed=False)),
        ("a reference model", dict(models="verifier, reference"))):
    print(f"{sum(budget(**change)['seconds'].values()):5.1f}  {name}")

# %% [markdown]
# Training is bound by operations, and in float32 the card does four times fewer of them (without
# TF32; with it half as many, and longer answers are slower). Decoding is bound by bytes: every
# token reads all weights again.
#
# ## Three experiments
#
# Each is solved and run in [solutions 21](../solutions/21_grpo_for_real.ipynb).
#
# **One rollout, three objectives** · 8 minutes. `dr_grpo`, `rloo`, and `grpo` without its KL term:
# for each pair, is the gradient the same, the same up to a factor, or another direction? Does a
# factor matter under AdamW? Under clipping at norm 1?
#
# **Break it** · 15 minutes. Write a reward that sounds sensible and can be gamed, train 20 steps on
# it, and say which recorded number gives it away. Two to start from: "the right digit appears in
# the answer", and a bonus of one half for writing `wait`.

# %% tags=["exercise"]
def my_reward(problem, text):
    """-> number; `chain.verify(problem, text)` is the honest one"""
    return ...


# train(page.load()[0], tokenizer, chain,
#       ZOO["dr_grpo"], Recipe(steps=20), reward=my_reward)

# %% [markdown]
# <details><summary>hint</summary>
#
# The records carry `reward`, what you paid, and `rewards/verify/mean`, what was right, side by
# side. Watch the distance. And read answers.
# </details>
#
# **Another temperature** · 8 minutes. To get cleaner data somebody samples at temperature 0.7 and
# leaves the rest alone. The loop refuses. In a trainer without that check, what would the ratio be,
# when would anybody notice, and which assertion would have caught it at once?

# %%
cool = sample(model, encode_prompts(tokenizer, [one.prompt]), G,
              Sampling(temperature=0.7), **ends)
try:
    token_logprobs(model, cool, temperature=1.0)
except BadInput as sentence:
    print(sentence)

# %% [markdown]
# **From logits to log-probabilities** · 5 minutes. What `token_logprobs` does behind the model.
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
