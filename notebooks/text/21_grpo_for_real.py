# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 21 · GRPO for real: did it learn, or only choose?
#
# **After this page** you can say every line of the training loop, what a risen curve shows and what
# it does not, and take a gain apart.
#
# 38 minutes, then 16 in a second sitting · exercises 35 more · after 08 (GRPO), 10 (Dr. GRPO), 11
# (DAPO) · spurious rewards, Shao et al. 2025,
# [arXiv 2506.10947](https://arxiv.org/abs/2506.10947)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Dr. GRPO's advantage, and what does it divide by?</summary>R minus the group's mean. By no std; and by one constant length for all answers (10).</details>
# <details><summary>2. Which groups teach nothing?</summary>All right or all wrong: every advantage is 0 (08).</details>
# <details><summary>3. One update per batch. What is the ratio ρ, and what does the clip do?</summary>ρ is 1 for every token, so the clip never acts (06).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports
import random
import torch
from torch.nn.utils import clip_grad_norm_
from rlnb import ZOO, check
from rlnb.classroom.explorers import cooled_base, rollouts
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.live_or_replay import open_page
from rlnb.classroom.pictures import grpo_for_real as pictures
from rlnb.classroom.pictures.larger_model import larger
from rlnb.training import (TASKS, Recipe, Sampling, data_folder,
    encode_prompts, evaluate, sample, token_logprobs, train)
from rlnb.training.studies import own_answers
from rlnb.training.studies.controls import reports
from rlnb.training.studies.many_answers import parts, rate, shares, solved
runs = data_folder() / "runs"
many = runs / "chain_many_answers.json"
recorded = runs / "chain_controls.json"

# %%
page = open_page()             # or open_page("replay"), "cpu", "cuda"

# %% [markdown]
# The large letters say how this page runs. Its numbers come from a CPU, those of its last section
# from a GPU.
#
# ## Six answers
#
# A transformer with 308,016 weights does sums from left to right and keeps only the last digit.
# `4+3-8=?` is 9, because $7-8=-1$ is 9 modulo 10. Before any RL it writes:

# %%
pictures.six_answers()

# %% [markdown]
# There are two styles: a **direct** answer writes `so` and a digit at once, the other style writes
# **steps**, one operation at a time. The reward is 1 if the digit after the last `so` is right:

# %%
chain = TASKS["chain"]
problem = chain.parse("4+3-8=?")
for text in ("so9", "4+3=7,7-8=9so9", "4+3=1,1-8=9so9", "so8"):
    print(f"{chain.verify(problem, text):.0f}  {text}")

# %% [markdown]
# The third has two wrong steps and still earns 1.
#
# **How it is measured.** 250 unseen problems, temperature 1. **pass@1** is the share of right
# answers; its ± is over the problems. End values of the base, of GRPO and of *right answers only*
# rest on 32 answers to each problem, all other values on 4 or 8.

# %%
p0, error = rate(solved(many)["base"])
print(f"base: pass@1 {p0:.2f} ± {error:.2f}")

# %% [markdown]
# After forty steps of Dr. GRPO more than nine in ten answers are right. Did the model learn to
# calculate? Question the base *before* training.

# %% jupyter={"source_hidden": true}
# your guess
predict("real.1", "Sampled at temperature 1 the base model is right on "
        "0.39 of unseen problems. And greedy, always the likeliest symbol?",
        ["about 0.26", "about 0.39",
         "about 0.65", "about 0.95"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
base = reports(recorded)["base"]
reveal("real.1", "about 0.26",
       "The likeliest first symbol is `so`, so greedy answers directly. "
       "That is hardly better than always saying 0, which is right on "
       "0.22.",
       instead={
           "about 0.39":
           "The likeliest first symbol decides, and it skips the steps.",
           "about 0.65":
           "That is about what written steps are worth. Greedy does not "
           "write them.",
           "about 0.95":
           "It would be at least that if it wrote the steps.",
       })

# %% [markdown]
# The share of right answers is a mixture of the two styles:
#
# $$p=d\,a_\text{direct}+(1-d)\,a_\text{steps}\qquad\text{total probability}$$
#
# For the base $d$, the share of direct answers, is 0.61; $a_\text{direct}$ and $a_\text{steps}$,
# the shares of right ones in each style, are 0.23 and 0.64. It was made so, by imitating
# demonstrations. 60 % were direct and always right. In the others one step in ten was wrong, and
# half of the wrong ones were taken back with the word `wait`. <!-- cited: 0.61, 0.23, 0.64 -->
#
# You have two handles that need no training: the temperature, and the first symbol. To **force** a
# style, we write that symbol for the model: `so`, or the first number of the problem.

# %% jupyter={"source_hidden": true}
# the explorer
task("real.t3", cooled_base.cooled_base_explorer(),
     ("Get the base above 0.9 at the highest temperature you can. Say "
      "first what cooling does to each of the two parts.",
      cooled_base.above_nine_tenths))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Cooling makes the steps cleaner, for a slip is seldom the likeliest symbol. It also makes the base
# surer of its direct answers: left to itself it stays below 0.50 at every temperature. So it takes
# both handles: steps forced, at $T=0.7$, right on 0.93. (At $T=1$ forced steps are right on 0.66,
# those that it chose itself on 0.64.) <!-- cited: 0.7, 0.93, 0.50, 0.64, 0.66 -->
# </details>
#
# With the steps forced and greedy the base solves **250 of 250**. So it can do the whole task. It
# does not choose to, and it slips when it samples. Only a direct answer that is right could be a
# new skill here.
#
# What, then, does training change?
#
# ## The loop, in two cells
#
# One step draws 16 problems, writes 8 answers to each, and updates the weights once. Training is
# forty steps.

# %%
P, G, L_max = 16, 8, 72            # problems, answers to each, tokens

def draw(model, rng, generator):
    """128 answers and their rewards; one that was cut off gets 0."""
    problems = [chain.problem(rng, "train") for _ in range(P)]
    prompts = encode_prompts(tokenizer, [p.prompt for p in problems])
    answers = sample(model, prompts, G, Sampling(),
                     generator=generator, **ends)
    R = torch.tensor([chain.verify(problems[i // G], text) for i, text
                      in enumerate(answers.texts(tokenizer))])
    return answers, R.to(model.device) * answers.finished

# %%
def one_step(model, optimizer, rng, generator):
    answers, R = draw(model, rng, generator)
    groups = R.view(P, G)
    A = (groups - groups.mean(1, keepdim=True)).view(-1, 1)
    logp, _ = token_logprobs(model, answers, temperature=1.0)
    rho = (logp - logp.detach()).exp()           # (128, T), all 1
    gain = torch.where(answers.completion_mask, rho * A, 0.0)
    loss = -gain.sum() / (P * G * L_max)         # Dr. GRPO
    optimizer.zero_grad()
    loss.backward()
    norm = clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return R.mean().item(), loss.item(), norm.item()

# %% tags=["setup", "trajectory", "nbval-ignore-output"] jupyter={"source_hidden": true}
# the same step by the package's trainer
model, tokenizer = page.load()
ends = dict(eos_id=tokenizer.eos_token_id, pad_id=tokenizer.pad_token_id)
adamw = torch.optim.AdamW(model.parameters(), lr=3e-4,
                          betas=(0.9, 0.95), weight_decay=0.0)
dice = torch.Generator(model.device).manual_seed(0)
mine = one_step(model, adamw, random.Random(0), dice)
record = train(page.load()[0], tokenizer, chain, ZOO["dr_grpo"],
               Recipe(steps=1, eval_every=0), progress=False)[-1]
theirs = [record[name] for name in ("reward", "loss", "grad_norm")]
same = [abs(a - b) < 1e-4 for a, b in zip(mine, theirs)]
page.expect(*same)
print("one_step and train():", "the same reward, loss and gradient norm"
      if all(same) else "other answers, drawn by another sampler")

# %% [markdown]
# `token_logprobs` scores the answers in *one* forward pass, with a gradient. `logp.detach()` stands
# for $\pi_{old}$ **as long as the weights have not moved since the draw**: ρ is 1, and the step is
# REINFORCE with the group's mean as its baseline. From a second update on, ρ leaves 1: the old
# log-probabilities must be stored, and the clip acts (exercise 1). The loop:
#
#     optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
#     for step in range(40):
#         reward, loss, norm = one_step(model, optimizer, rng, dice)
#
# ## Forty steps
#
# Three runs are recorded, seeds 0, 1 and 2, from the same base. Seed 0 is run once more: green if
# it runs now, purple if replayed.

# %% jupyter={"source_hidden": true}
# your guess
predict("real.2", "After ten steps only 0.17 of the answers are direct, "
        "and pass@1 is 0.70. Are written steps right more often by then, "
        "too?",
        ["no, about 0.64 as before: only the style has changed",
         "a little: about 0.70, like all answers together",
         "yes: about 0.80, half of the way",
         "yes: about 0.93, as at the end"])

# %% tags=["trajectory", "nbval-ignore-output"]
student, _ = page.load()
records = page.measure("run", lambda: train(
    student, tokenizer, chain, ZOO["dr_grpo"], page.recipe,
    watch=page.watch(), progress=False))
page.show_run(records)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.2", "yes: about 0.80, half of the way",
       "Solve $0.70=0.17\\cdot0.23+0.83\\,a_\\text{steps}$: 0.80. Counted "
       "it is 0.79, from 0.64, and it ends at 0.93. So both change from "
       "the first steps on. After ten steps the share of direct answers "
       "has gone seven tenths of its way, the steps half.",
       pictures.style_and_steps(),
       instead={
           "no, about 0.64 as before: only the style has changed":
           "Then pass@1 would be 0.17 · 0.23 + 0.83 · 0.64 = 0.57.",
           "a little: about 0.70, like all answers together":
           "All answers together contain the direct ones, which are "
           "mostly wrong. So those with steps must be above 0.70.",
           "yes: about 0.93, as at the end":
           "Then pass@1 would be 0.17 · 0.23 + 0.83 · 0.93 = 0.81.",
       })

# %% tags=["setup", "trajectory"] jupyter={"source_hidden": true}
# what holds of this run on every machine
last = [e for e in records if e["record"] == "eval"][-1]
page.expect(last["pass@1"] > 0.80, last["direct"] < 0.05,
            last["mean_length"] > 30, last["entropy"] < 0.10)
assert records[0]["objective"] == repr(ZOO["dr_grpo"])

# %% [markdown]
# The loss rises from below 0 to 0 in such a run (00). It is negative while right answers are longer
# than wrong ones of the same group. It does not measure learning.
#
# <details><summary>One level deeper: why, in three lines; and a loss that prints 0</summary>
#
# $N$ answers, $A_i$ the advantage and $T_i$ the length of answer $i$:
#
# $$\begin{aligned}
# L&=-\frac1N\sum_i\frac1{L_{\max}}\sum_t\rho_{i,t}A_i&&\textbf{a choice: one constant for all lengths (10)}\\
# &=-\frac1{N\,L_{\max}}\sum_i A_i\,T_i&&\text{one update per batch: every }\rho\text{ is }1\\
# &=-\operatorname{cov}(A,T)/L_{\max}&&\text{the mean of }A\text{ is }0
# \end{aligned}$$
#
# With the classic GRPO each answer is divided by its own $T_i$. Then the second line is minus the
# mean of $A$: the loss prints 0 at every first update, and that is no bug.
# </details>
#
# **So far:** training changed both, from the first steps on.
#
# ## Was it the reward?
#
# Put a fair coin in place of the verifier. The advantage then has mean 0, whatever the answer.

# %% jupyter={"source_hidden": true}
# your guess
predict("real.4", "Twenty steps on the coin, three seeds. pass@1 ...",
        ["stays where it is",
         "rises in some seeds, falls in others",
         "rises a little in all three",
         "falls in all three"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
coins = [reports(recorded, "coin")[f"coin {seed}"] for seed in range(3)]
reveal("real.4", "falls in all three",
       "A mean of 0 is not a step of 0. Each batch has its luck, nearly "
       "every group is mixed, and AdamW makes full-sized steps of "
       "whatever is left.\n\n"
       "* Style: the share of direct answers went from "
       f"{base['direct']:.2f} to "
       + ", ".join(f"{c['direct']:.2f}" for c in coins) + ".\n"
       "* Steps: forced, they were right on "
       f"{base['forced/steps']:.2f}, now on "
       + ", ".join(f"{c['forced/steps']:.2f}" for c in coins) + ".\n\n"
       "The style moved either way, the steps got worse each time. A "
       "likely reason, not tested here: imitation had tuned the weights "
       "for the steps. So the gain needed the verifier.", pictures.coin(),
       instead={
           "stays where it is":
           "The expected gradient is 0. The steps made are not.",
           "rises in some seeds, falls in others":
           "So the style did. The steps fell in each seed.",
           "rises a little in all three":
           "What would pay for it? A coin pays all answers alike.",
       })

# %% [markdown]
# What would the log of a run have shown? Beside pass@1 on unseen problems:

# %%
pictures.two_logs()

# %% [markdown]
# Under the verifier the mixed groups go and the entropy falls. Under the coin both stay, and the
# reward stays at one half. Do not read the gradient's norm or the loss for this.
#
# Run this control whenever you can. Some base models *gain* on benchmarks under random rewards. For
# Qwen2.5-Math Shao et al. name the clip, which favours what the policy does often already, and a
# habit that helped: to reason in code, in 65 % of the answers before and over 90 % after. In our
# runs, with one update a batch, the clip never acts.
#
# ## Did it need RL?
#
# Everything that GRPO rewarded was written by the model itself. So take the shortest way: draw as
# many answers from the base as GRPO drew, 5,120, keep the right ones, and imitate them, with as
# many updates and the same learning rate (*rejection-sampling fine-tuning*).

# %% jupyter={"source_hidden": true}
# your guess
predict("real.6", "GRPO ended at 0.93 (mean of three seeds). And the "
        "imitation of the base's own right answers?",
        ["about 0.40: it knows these answers already",
         "about 0.65: a part of the way",
         "about 0.85: most of the way",
         "about 0.93: the same answers were rewarded"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
once = [one[0] for one in own_answers.reports(
    runs / "chain_own_answers.json")]
parts_of_four = own_answers.reports(runs / "chain_own_answers_four.json")
won = sum(one["pass@1"] for one in once) / 3
direct_now = sum(one["direct"] for one in once) / 3
steps_now = sum(one["forced/steps"] for one in once) / 3
bayes = base["direct"] * base["forced/direct"] / base["pass@1"]
forced_direct = sum(one["forced/direct"] for one in once) / 3
mixed = direct_now * forced_direct + (1 - direct_now) * steps_now

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.6", "about 0.65: a part of the way",
       f"It ends at {won:.2f} (mean of three seeds). Why not at 1.00? It "
       "cannot know which direct digit was right. It copies the style of "
       "the right answers, not their luck.\n\n"
       r"* Style: of the base's right answers $d\,a_\text{direct}/p$ = "
       f"{bayes:.2f} are direct (Bayes). Of the new model's answers "
       f"{direct_now:.2f} are.\n"
       "* Steps: a slip mostly ends wrong and is dropped. Forced steps are "
       f"now right on {steps_now:.2f}, before on "
       f"{base['forced/steps']:.2f}.\n\n"
       f"Together {direct_now:.2f} · {forced_direct:.2f} + "
       f"{1 - direct_now:.2f} · {steps_now:.2f} = {mixed:.2f}.",
       instead={
           "about 0.40: it knows these answers already":
           "It knows them, and writes others as well. Those are dropped.",
           "about 0.85: most of the way":
           "Direct answers that are right by luck are imitated, too.",
           "about 0.93: the same answers were rewarded":
           "As many were drawn. Were they the same, from the second step "
           "on?",
       })

# %% [markdown]
# GRPO does two things more. It draws anew at every step, and it pushes wrong answers down. Take the
# two apart, each arm with 5,120 answers, forty updates and three seeds:
#
# * **Filter in four parts.** Draw 1,280 answers, imitate the right ones in ten updates, draw the
#   next 1,280 from the result. Wrong
#   answers are still only dropped. (Expert iteration, ReST.)
# * **Right answers only.** GRPO's loop with the reward in place of the advantage: REINFORCE without
#   a baseline, so a wrong answer has no push.

# %% jupyter={"source_hidden": true}
# your guess
predict("real.7", "Where does filtering in four parts end?",
        ["about 0.65: a filter cannot push wrong answers down",
         "about 0.75: a little is gained",
         "about 0.85: forty draws are better than four",
         "about 0.95: as good as GRPO"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ended = ", ".join(f"{one[-1]['pass@1']:.2f}" for one in parts_of_four)
reveal("real.7", "about 0.95: as good as GRPO",
       f"It ends at {ended}, a little ahead of GRPO's 0.92, 0.94, 0.93; "
       "right answers only at 0.93, 0.93, 0.95. The first part, 1,280 "
       "answers and ten updates, already reaches the 0.65 of filtering "
       "once: more of the same draw adds nothing. Each later part is drawn "
       "from a better model. So a few fresh draws made the difference, and "
       "a push on wrong answers was not needed.",
       pictures.filtering(once, parts_of_four),
       instead={
           "about 0.65: a filter cannot push wrong answers down":
           "To make right ones likelier takes probability from wrong ones "
           "anyway.",
           "about 0.75: a little is gained":
           "Four rounds of Bayes: each starts where the last one ended.",
           "about 0.85: forty draws are better than four":
           "Here four were enough.",
       })

# %% [markdown]
# And greedy, the likeliest symbol at each step?

# %% jupyter={"source_hidden": true}
# means over three seeds
trained = [reports(recorded)[f"seed {k}"] for k in range(3)]
print("                       sampled  greedy")
for name, arm in (("base", [base]), ("filtered once", once),
                  ("filtered in four parts",
                   [seed[-1] for seed in parts_of_four]),
                  ("GRPO", trained)):
    sampled, greedy = (sum(one[key] for one in arm) / len(arm)
                       for key in ("pass@1", "greedy"))
    print(f"{name:22} {sampled if arm != [base] else p0:7.2f} "
          f"{greedy:7.2f}")

# %% [markdown]
# Greedy, one filter is enough: direct answers have fallen below one half, so the likeliest first
# symbol begins the steps, and greedy steps do not slip. What fresh draws add here, GRPO's or a
# filter's, is seen only when the model samples.
#
# **One draw, filtered, gives the style and the steps of the base's right answers. A fresh draw goes
# on from there.** Our base is right on 0.39 of its answers. Where right answers are rare, a filter
# keeps little and groups are silent, and the arms may end otherwise. <!-- cited: 0.39 -->
#
# ## What is the gain made of?
#
# Seed 0 went from 0.39 to 0.92. At direct answers it got no better, and it hardly writes them. So
# only $d$ and $a_\text{steps}$ matter. A prime marks the trained model:
# <!-- cited: 0.39, 0.92 -->
#
# $$p'-p=\underbrace{(d-d')(a_\text{steps}-a_\text{direct})}_\text{style alone}+\underbrace{(1-d)(a'_\text{steps}-a_\text{steps})}_\text{steps alone}+\underbrace{(d-d')(a'_\text{steps}-a_\text{steps})}_\text{needs both}$$

# %% tags=["setup"] jupyter={"source_hidden": true}
# the three parts
old, new = shares(many, "base"), shares(many, "seed 0")
fewer = old["d"] - new["d"]
better = new["steps"] - old["steps"]
pictures.three_parts(p0, {
    "style alone": fewer * (old["steps"] - old["direct"]),
    "steps alone": (1 - old["d"]) * better,
    "needs both": fewer * better})

# %% [markdown]
# **Style** alone brings
# 0.25 <!-- cited: 0.25, 0.11, 0.17, 0.61, 0.02, 0.7 -->: it was there and
# not chosen, it was **elicited**. Cleaner **steps** alone bring 0.11: they were **sharpened**. And
# 0.17 needs both: the 0.61 of the answers that changed style got the cleaner steps as well. So "how
# much was only choosing?" has no single number. Seeds 1 and 2: within 0.02.
#
# Would a lower temperature have done it? For the steps, yes: $T=0.7$ made them as clean. For the
# style, no: no temperature chose it.
#
# And what became the default? The style free and forced, before and after:

# %% tags=["trajectory", "nbval-ignore-output"]
untouched, _ = page.load()
before = page.measure("base", lambda: evaluate(untouched, tokenizer, chain))
after = page.measure("after", lambda: evaluate(student, tokenizer, chain))
for name in ("greedy", "forced/steps", "forced/steps/greedy",
             "forced/direct"):
    print(f"{name:20s} {before[name]:.2f} before  {after[name]:.2f} after")

# %% tags=["setup", "trajectory"] jupyter={"source_hidden": true}
# what holds of both on every machine
page.expect(
    0.33 < before["pass@1"] < 0.43,
    before["greedy"] < before["pass@1"] - 0.05,
    before["forced/steps/greedy"] > 0.97,
    0.58 < before["forced/steps"] < 0.73,
    after["pass@1"] > 0.80, after["greedy"] > 0.80,
    after["forced/steps"] > before["forced/steps"] + 0.1,
    abs(after["forced/direct"] - before["forced/direct"]) < 0.08,
    max(after["greedy"], after["forced/steps/greedy"])
    < before["forced/steps/greedy"] + 0.01)

# %% [markdown]
# The default rose: greedy from 0.26 to 0.97. Forced direct answers are as bad as before: no new
# skill. The best way, steps and greedy, *fell* from 250 of 250 to 242; in the other seeds to 248,
# which may be chance. **No new skill that this test could show. It made its best way the default,
# and slipped less when sampling.** Did it lose anything? That is the second sitting.
# <!-- cited: 0.26, 0.97 -->
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | GRPO for real | |
# |---|---|
# | sentence | sample, verify, centre, score, weigh, step; what a risen curve means is decided by what the base could do before |
# | formula | $p=d\,a_\text{direct}+(1-d)\,a_\text{steps}$ · on-policy $L=-\operatorname{cov}(A,T)/L_{\max}$ |
# | controls | the base under its best prompt, three seeds, a coin, pass@k with every step judged |
# | numbers | base 0.39 ± 0.01, steps forced and greedy 1.00 · imitating its right answers 0.65, in four fresh parts 0.95, GRPO 0.93 · gain: style 0.25, steps 0.11, both 0.17 |
# | log | reward, mixed groups, entropy; not the loss |

# %%
score("real.1", "real.2", "real.4", "real.6", "real.7")

# %% [markdown]
# ## Second sitting: what did it cost?
#
# Give each model 32 tries at each problem. Solved means: one try is
# right in *every step* (a direct answer has none and does not count), because by the last digit a
# blind guesser would solve 0.97. The base leaves one problem
# unsolved. <!-- cited: 0.97 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("real.5", "How many of the 250 do the trained models leave "
        "unsolved in 32 tries, seeds 0, 1 and 2?",
        ["0, 0, 0",
         "6, 1, 1",
         "9, 11, 8",
         "26, 19, 21"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
strict = {name: part["clean"] for name, part in parts(many).items()}
assert [row.count(0) for row in strict.values()] == [1, 6, 1, 1]
reveal("real.5", "6, 1, 1",
       "Two seeds are level with the base: a problem more or less is "
       "chance. Seed 0 lost six, more than chance would: the base had "
       "been right in 36 of its 192 tries at these. If each try were right "
       "with 0.9, whatever the others did, none would fail 32 times. But "
       "tries at one problem are alike. The runs with right answers only "
       "leave 3, 3 and 0 unsolved.",
       pictures.unsolved(strict),
       instead={
           "0, 0, 0":
           "So it would be if each try were right with 0.9, independently "
           "of the others.",
           "9, 11, 8":
           "Several problems in each seed: that happened in one of three.",
           "26, 19, 21":
           "That is one try. Most of its slips do not come again.",
       })

# %% [markdown]
# On real models both outcomes were found: the base ahead at large $k$ (Yue et al.), and after
# longer runs the trained model (ProRL, Liu et al. 2025,
# [arXiv 2505.24864](https://arxiv.org/abs/2505.24864)). **To claim a new skill, show problems that
# the base fails at every $k$ you can afford.**
#
# ## Read the answers
#
# Ten groups of seed 0, token by token. The colour is the gradient's push on the token's *own
# logit*, before Adam: $A/(N L_{\max})$ times $1-\pi$ (02), with $N$ = 128 answers in a step. A
# token the model was sure of hardly feels it.

# %% jupyter={"source_hidden": true}
# a task
task("real.t1", rollouts.rollouts_explorer(),
     ("Here the slip takes nearly all the push. Say first whether it "
      "must. Then find, at step 10, a wrong answer with steps in which a "
      "token that did no harm is pushed as hard as the slip, within a "
      "tenth.", rollouts.harmless_blamed),
     ("At step 30: a wrong answer in which every step is calculated "
      "right. Find it, and say where it went wrong.",
      rollouts.right_steps_wrong_end))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Prompt 2, answer 2: `wait`. It took back a step that was right, wrote it again, and cost
#    nothing. The slip came much later. But the update does not know where the slip is. All tokens
#    of the answer get the same advantage, and at the logits it hits whatever was *unlikely*. Only
#    over many answers can that average out.
# 2. Prompt 2, answer 4. It read `5+3` where the problem says `5+5`. Of 500 answers of seed 0 after
#    training 43 were wrong: 26 leave the problem like this one, 19 have a slip, some have both
#    ([statements](statements/21_grpo_for_real.ipynb)). No curve tells that.
# </details>

# %% [markdown]
# ## Does it hold on a larger model?
#
# 25 million weights, 82 times as many, trained from nothing on the same demonstrations, then with
# Dr. GRPO on one GPU, an H100: sixty steps of 2,048 answers, learning rate 1e-4, three
# seeds. <!-- cited: 25, 82, 2,048, 1e-4 -->

# %% jupyter={"source_hidden": true}
# the picture
larger()

# %% [markdown]
# It ends at 0.99 in each seed, and the verdict is the same: steps forced and greedy solved 250 of
# 250 before, and forced direct answers are right on 0.26, before on 0.24. **No new skill.** Could
# RL teach it at all? The small model was paid for right direct answers alone, ten times as long,
# 51,200 answers. It wrote nothing else, and was right on 0.23, 0.24 and 0.25; before on
# 0.23. <!-- cited: 0.99, 250, 0.26, 0.24, 51,200, 0.23, 0.24, 0.25, 0.23 -->
#
# **The coin hardly hurt the large model**: 0.44, 0.48 and 0.47 after twenty steps, from 0.46. Its
# steps had 16 times as many answers and a third of the learning rate. Each change was then tried
# alone on the small model, which the coin had taken from 0.39 to 0.35, 0.30 and
# 0.23. <!-- cited: 0.44, 0.48, 0.47, 0.46, 16, 0.39, 0.35, 0.30, 0.23 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("real.8", "Which change alone protects the small model from "
        "the coin?",
        ["more answers: the noise of a step is a quarter",
         "the lower rate: each step is a third as long",
         "either one: both make the noise in the weights smaller",
         "neither: it is the larger model that is robust"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
def after_coin(name):
    found = reports(runs / name, "coin")
    return [", ".join(f"{found[f'coin {seed}'][key]:.2f}"
                      for seed in range(3)) for key in ("pass@1", "moved")]

_, as_far = after_coin("chain_controls.json")
low, near = after_coin("chain_coin_lr_1e-4.json")
more, far = after_coin("chain_coin_2048.json")
high, _ = after_coin("chain_coin_lr_9e-4.json")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.8", "the lower rate: each step is a third as long",
       f"At a third of the rate it ends at {low}, with 16 times the "
       f"answers at {more}: no better. **AdamW divides the gradient by "
       "its own running size.** A coin's gradient is nothing but noise; "
       "make it four times smaller, and it is divided by a number four "
       "times smaller. So the weights moved as far as with few answers "
       f"({far}; with few {as_far}), and a third as far at the lower rate "
       f"({near}). At three times the rate pass@1 falls to {high}. More "
       "answers help where the noise hides a signal.",
       instead={
           "more answers: the noise of a step is a quarter":
           "It is, in the gradient. What does AdamW divide it by?",
           "either one: both make the noise in the weights smaller":
           "In plain gradient descent, yes. What does AdamW divide by?",
           "neither: it is the larger model that is robust":
           "It may be. But one of the two was enough for the small model.",
       })

# %% [markdown]
# To replay this page from the GPU: mode `replay`, file `data/runs/page_21_h100.json`
# ([statements](statements/21_grpo_for_real.ipynb)).

# %%
score("real.5", "real.8")

# %% [markdown]
# ## Exercises
#
# **1 Write the loss of a later update** · 10 minutes. The batch is used again: `stored` holds the
# log-probabilities from when the answers were drawn, `logp` those of now. Dr. GRPO, clipped to
# $1\pm0.2$. Rows of a prompt lie together; return one number. <!-- cited: 0.2 -->
#
# <details><summary>hint</summary>Five lines: A, ρ, gain (the smaller of two), mask, divisor. Which constant divides?</details>

# %% tags=["exercise"]
def my_later_loss(logp, stored, rewards, mask, num_generations, max_length):
    return ...

check.later_loss(my_later_loss)

# %% [markdown]
# **2 Implement the log** · 10 minutes. Five numbers a step: the shares of groups all right, mixed,
# all wrong; the share of answers cut off; the largest gap between the sampler's and the trainer's
# log-probabilities. Rewards are 0 or 1; `finished` and `mask` are boolean. Return one tensor.
#
# <details><summary>hint</summary>The smallest and the largest reward of a group say which kind it is. And padding holds anything.</details>

# %% tags=["exercise"]
def my_run_log(rewards, num_generations, finished, mask, sampled, scored):
    return ...

check.run_log(my_run_log)

# %% [markdown]
# **3 Derive** · 7 minutes. One logit $z$ decides the style, $d=\sigma(z)$; the accuracies are
# fixed. What is $\partial p/\partial z$? Then say aloud: where is it largest, and what would have
# happened to this run from a base with $d=0.999$? <!-- cited: 0.999 -->
#
# <details><summary>hint</summary>The derivative of σ is σ(1 − σ).</details>

# %% tags=["exercise"]
def my_style_slope(d, direct, steps):
    return ...

check.style_slope(my_style_slope)

# %% [markdown]
# **4 Find the silent bug** · 8 minutes. It grades the answers. Training runs, the loss is small,
# two thirds of the groups are mixed, and the model does not learn to calculate:

# %%
print(check.silent_bug_grpo_for_real.source)

# %% [markdown]
# Write a test: call `rewards_of(problems, texts)` and `assert` what must hold. The function above
# must fail it, the right one must pass.
#
# <details><summary>hint</summary>For which texts do you know every reward?</details>

# %% tags=["exercise"]
def my_test(rewards_of):
    return ...

check.silent_bug_grpo_for_real(my_test)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>Walk me through one step of GRPO training.</b></summary>
#
# Sample, verify, centre, score, weigh, step. P prompts, G answers each from the current policy, at
# temperature 1 over the full vocabulary. One reward per answer, cut-off ones get 0. Minus the
# group's mean; classic GRPO also divides by the std. Log-probabilities again with gradient, in one
# pass. Ratio, clip, mask, then divide by a constant length (Dr. GRPO) or by each answer's own
# (GRPO). Backward, clip the norm, step. With one update per batch the ratio is 1.
# </details>
# <details><summary><b>And with several updates on a batch?</b></summary>
#
# Store the log-probabilities of the first pass. From the second update on the ratio is not 1, so
# it must be the new one over the stored one, and the clip starts to act. Detaching the current
# value instead runs without an error and silently removes the clip. Log the share of clipped
# tokens. DeepSeek-R1, for example, draws 8,192 answers, 16 to each of 512 questions, splits them
# into 16 mini-batches and uses each for one update (later version of
# [arXiv 2501.12948](https://arxiv.org/abs/2501.12948)).
# </details>
# <details><summary><b>Why RL, and not fine-tuning on the model's own right answers?</b></summary>
#
# One round is bounded by what was drawn: the model answers as it did where it was right. In our run
# 0.65, where GRPO with as many answers and updates reached 0.93. But filtering in four fresh parts,
# same budget, reached 0.95, and REINFORCE on right answers only 0.94. So fresh draws mattered, a
# push on wrong answers did not. Decoded greedily one filter had 0.99, GRPO 0.98. That base was
# right on 0.39: with rare successes I would measure again. Filtering needs no ratio and no clip,
# and is a fair first arm of any comparison.
# </details>
# <details><summary><b>Reward went from 0.4 to 0.9. What did the model learn?</b></summary>
#
# I cannot say yet. I want the base under its best prompt and decoder (few-shot, cooled, best of
# several prompts), pass@k of both at large k, and a random-reward control. What a forced style
# already solves was elicited; what became likelier within a style was sharpened; both can hold at
# once: here style alone gave 0.25, cleaner steps alone 0.11, and 0.17 needed both. A new skill
# needs problems the base fails at every affordable k. Here the forced style gave 0.66 sampled and
# 1.00 greedy before any training.
# </details>
# <details><summary><b>pass@32 of the base is 1. Does that show it can do the task?</b></summary>
#
# Not by itself. With ten possible answers a blind guesser reaches 0.97. I count only answers whose
# steps are right, or draw the guesser's curve beside it. Here that left 249 of 250, so it was
# skill.
# </details>
# <details><summary><b>How do you choose rate, G, temperature and prompts?</b></summary>
#
# By the share of mixed groups. Take prompts the base solves sometimes; G large enough that most
# groups are mixed, 8 to 16; temperature 1, so that sampler and trainer mean one policy; a rate near
# 1e-6 for all weights of a large model (our small one took 3e-4), about ten times that for LoRA.
# Halve it if groups turn all wrong. KL only if the model must stay near the base.
# </details>
# <details><summary><b>Why a random-reward control?</b></summary>
#
# It shows what is gained without information. With rewards independent of the answer the expected
# gradient is 0, so a gain comes from elsewhere: a bug, clipping, a habit of the base that luck
# strengthens. Here all three seeds fell: noise moved the weights as well, and the written steps got
# worse in each.
# </details>
# <details><summary><b>Sampler and trainer disagree on log-probabilities. How much is fine?</b></summary>
#
# In one program at float32 about 1e-5; I would look into 1e-4. Two engines in low precision differ
# more: measure it at the first step, and correct with a capped importance weight (19). A gap that
# is large at once means another temperature, another tokenisation, or stale weights.
# </details>
#
# Five runs that went wrong and their logs, the controls problem by problem, what the wrong answers
# are made of, and three experiments of your own: [statements
# 21](statements/21_grpo_for_real.ipynb). The exercises, solved:
# [solutions 21](solutions/21_grpo_for_real.ipynb).
#
# To train on a card of your own: [does it fit, and what to
# type](statements/21_grpo_for_real.ipynb#Does-it-fit-your-card%3F).
#
# **Next:** this is the last page. The map of all pages is [00](00_start_here.ipynb).
