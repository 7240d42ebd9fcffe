# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 · Two divisors: what do the std and the length do?
#
# **After this page** you can say which prompts and which answers each of GRPO's two divisions
# pushes harder, derive both effects in a few lines, and spot them in a log.
#
# 27 minutes, exercises 34 more · after 08 (GRPO) · GRPO: Shao et al. 2024,
# [arXiv 2402.03300](https://arxiv.org/abs/2402.03300); its two divisors: Liu et al. 2025,
# "Dr. GRPO", [arXiv 2503.20783](https://arxiv.org/abs/2503.20783)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. By what does GRPO divide, and where?</summary>Reward minus mean by the std σ_R of the group's rewards; the sum over an answer's tokens by its length T (08).</details>
# <details><summary>2. A share p of a group is right. The advantage of a right and of a wrong answer, divided by the std?</summary>√((1−p)/p) and −√(p/(1−p)), for the std is √(p(1−p)) (08).</details>
# <details><summary>3. How is the gradient of E[R] written as a mean?</summary>E[R ∇ log π(y)]: reward times the answer's score, which is ∇ log π(y) (02).</details>

# %% tags=["setup"]
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import length_drift, prompt_weight
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import grpo_biases as pictures
from rlnb.classroom.pictures import recorded_runs, token_grid
from rlnb.objective import difference
from rlnb.toys import running_group
from rlnb.training import (ESTIMATORS, TASKS, CoinFlip, data_folder, load,
                           sample_decisions, stop_push)
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Two runs
#
# The prompt `44529:1?` gives five digits and a target: choose three that add up to 1. Of a sum only
# the last digit counts, so 7 + 4 is 1. A small transformer writes two sums, then says whether it
# hit the target: `:` for yes, `;` for no.
#
# ```
# 5+2=7,7+4=1:                 right, and it says so
# 4+9=3,3+5=8;wait3+5=8;       wrong, and it says so; then it repeats itself
# ```
#
# After its verdict it may stop, or write `wait` and repeat the last sum, as often as it likes. The
# grader reads nothing behind the verdict. So length is free: at least 13 tokens, cut off at 72.
# The model imitates examples that picked their digits blindly. Before any training with rewards:

# %% tags=["setup", "nbval-ignore-output"] jupyter={"source_hidden": true}
# 16 batches of 16 prompts, 8 answers each, from the untrained model
torch.set_default_dtype(torch.float32)         # as the model is
model, tokenizer = load(data_folder() / "model_pick", device="cpu")
sampled = sample_decisions(model, tokenizer, TASKS["pick"], batches=16,
                           prompts=16, num_generations=8, seed=0)
torch.set_default_dtype(torch.float64)
true = sum((text.partition("wait")[0][-1:] == ":") == bool(right)
           for text, right in zip(sampled.texts, sampled.right))
size = torch.tensor([len(text.replace("wait", "w")) + 1.0
                     for text in sampled.texts])
print(f"{len(size):,} answers: {sampled.right.double().mean():.0%} right, "
      f"verdict true in {true / len(size):.0%}, tokens: right "
      f"{size[sampled.right > 0].mean():.0f}, "
      f"wrong {size[sampled.right == 0].mean():.0f}")

# %% [markdown]
# Now 80 steps of GRPO, 128 answers a step, no KL term. 1 for a right answer, 0 for a wrong one.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.1", "After the 80 steps: which answers have become longer?",
        ["neither kind: nothing pays for length",
         "right ones: all their tokens are pushed up, repeats too",
         "wrong ones: they grow, right ones do not",
         "both alike: the policy has one habit of stopping"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
told = "; ".join(
    f"{name} " + ", ".join(f"{x:.2f}" for x in recorded_runs.evaluated(
        name, "pass@1")) for name in ("GRPO", "Dr. GRPO"))
reveal("biases.1", "wrong ones: they grow, right ones do not",
       "On every seed wrong answers grow almost to the limit, and right "
       "ones shrink to the shortest there is. The same run without GRPO's "
       "two divisions (right) keeps them together. Nothing was learned on "
       "the way: pass@1 on 100 held-out problems was "
       f"{recorded_runs.evaluated('GRPO', 'pass@1', min)[0]:.2f} and is, "
       f"a number a seed, {told}. (A change below 0.07 could be chance.)",
       pictures.length_runs(
           {"GRPO": "GRPO", "Dr. GRPO": "without the two divisions"},
           "One reward, blind to length. Thin lines are the three seeds."))

# %% [markdown]
# What did that? On fresh data GRPO pushes each token of answer $i$ up by
#
# $$\frac1G\cdot\frac1{T_i}\cdot\frac{R_i-\bar R}{\sigma_R}$$
#
# The std $\sigma_R$ is one number per group, the length $T_i$ one per answer. If they were
# constants they would belong to the learning rate. They are not. First the std.
#
# ## The std, from prompt to prompt
#
# Two prompts, each with one number $z$ of its own, a logit: an answer is right with chance
# $p=1/(1+e^{-z})$. Groups of sixteen. On one prompt 8 are right, on the other 15; take these shares
# as the prompts' $p$. Divided by the std, the one failure beside fifteen gets the largest advantage
# of all.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.2", "Divided by the std: which prompt's z is pushed more?",
        ["15 of 16: its advantages are the largest",
         "8 of 16: right and wrong answers are balanced",
         "both alike: the std makes groups equal"])

# %%
def advantages(R, divide=True):
    A = R - R.mean(-1, keepdim=True)
    sigma_R = R.std(-1, correction=0, keepdim=True) + 1e-6
    return A / sigma_R if divide else A

def push_on_z(right, divide, G=16):
    """Mean over the group of advantage times score; p = right / G."""
    R = (torch.arange(G) < right).double()
    score_in_z = R - R.mean()                    # 1 - p or -p
    return (advantages(R, divide) * score_in_z).mean().item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
groups = {f"{k} of 16": ((k / (16 - k)) ** 0.5, push_on_z(k, False),
                         push_on_z(k, True)) for k in (8, 15)}
reveal("biases.2", "8 of 16: right and wrong answers are balanced",
       r"A right answer's score in $z$ is $1-p$, a wrong one's $-p$: in "
       r"short $R-p$. So the push is the mean of $(R-p)^2$, which is "
       r"$\sigma_R^2$. Divided by $\sigma_R$ it is $\sigma_R$, and that is "
       "largest at one half. Dividing lifts the easy prompt from a quarter "
       "of the other's push to a half, not past it.",
       pictures.odd_one_out(groups))

# %% [markdown]
# A network has no $z$ of its own for each prompt. But each prompt has its chance $p$ of a right
# answer, and $\nabla p$ is the direction in the weights that raises it. What do right answers push?
#
# $$\begin{aligned}
# \nabla p&=\textstyle\sum_{y\ \text{right}}\nabla\pi(y)&&p\text{ is the sum of the right answers' chances}\\
# &=\textstyle\sum_{y\ \text{right}}\pi(y)\,\nabla\log\pi(y)&&\text{log-derivative (02)}\\
# &=p\;\mathbb E[\nabla\log\pi\mid\text{right}]&&\text{a mean among right answers: each has chance }\pi(y)/p
# \end{aligned}$$
#
# So a right answer carries $\nabla p/p$ on average, and by the same steps a wrong one
# $-\nabla p/(1-p)$. In a large group a share $p$ is right. Give those the advantage $A_+$, the rest
# $A_-$:
#
# $$\begin{aligned}
# \text{push}&=p\,A_+\,\frac{\nabla p}p-(1-p)\,A_-\,\frac{\nabla p}{1-p}&&\text{shares times advantage times mean score}\\
# &=(A_+-A_-)\,\nabla p&&\text{cancel}\\
# &=\nabla p&&\text{minus the mean only: }A_+=1-p,\ A_-=-p\\
# &\;\to\;\frac1{\sigma_R}\,\nabla p=\frac{\nabla p}{\sqrt{p(1-p)}}&&\textbf{a choice: divide by the group's std}
# \end{aligned}$$
#
# **The std weighs each prompt by $1/\sqrt{p(1-p)}$**: easy and hard prompts alike, the medium ones
# least. A valley.
#
# And the guess, where the medium prompt led? There $\nabla p=p(1-p)\nabla z$: at both ends the
# gradient itself is small. Weight times gradient is $\sqrt{p(1-p)}\,\nabla z$. An arch: still
# highest in the middle, only flatter than $p(1-p)$ without the std.
#
# In a small group the number of right answers varies by chance, and the weight is a mean over that.
# Prompt B is yours. Its rival is a medium prompt, right half of the time. The dashed line is the
# mean only: the same for all prompts, a little below 1 because an answer's own reward sits in the
# mean (08).

# %% jupyter={"source_hidden": true}
# the explorer
task("biases.t1", prompt_weight.prompt_weight_explorer(),
     ("B is right at most one time in twenty. Find a group size with which "
      "the std gives it exactly the medium prompt's weight.",
      prompt_weight.treated_alike),
     ("B shall have 1.7 times the medium prompt's weight and half of its "
      "net push. Start with G = 16: what gets in the way?",
      prompt_weight.heavy_and_heard))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. G = 2, or 3. Then every group that is not silent has one answer against the rest, and its std
#    is always the same: a constant.
# 2. G = 32 and B right in 8 of 100, for example. What B gains in weight it loses in gradient: the
#    two ratios multiply to 1 in large groups and to less in small ones. And no weight passes
#    $\sqrt{G-1}$ (proof in the solutions, exercise 1).
# </details>
#
# Does it show? A transformer practised seven types of sums. At the start it solves 11 % of the
# hardest and nearly all of the easiest. $G=8$, 28 prompts a step, 40 steps of AdamW at one learning
# rate, three seeds, with the std and without. Per type: the mean of pass@1 at steps 10, 20, 30 and
# 40.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.3", "Pass@1 with the std minus pass@1 without: what do the "
        "seven types show, averaged over the seeds?",
        ["the hardest up by 0.05 or more",
         "hard and easy up, medium down, by about 0.03",
         "medium up by about 0.03: theirs is the largest push",
         "no type moves by more than 0.02"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
with_std, without = (torch.stack([
    torch.from_numpy(recorded_runs.by_difficulty(rule, step))
    for step in (10, 20, 30, 40)]) for rule in ("z-score", "mean only"))
apart = (with_std - without).mean(0)             # (seeds, types)
k = int(apart.mean(0).abs().argmax())
ratio = prompt_weight.compute(0.11, 8)["ratio"]
reveal("biases.3", "no type moves by more than 0.02",
       f"The largest of seven: {apart[:, k].mean():+.3f}, standard error "
       f"{apart[:, k].std() / 3 ** 0.5:.3f}, all three seeds from "
       f"{apart[:, k].min():+.3f} to {apart[:, k].max():+.3f}. One would "
       "not expect much: Adam divides by the size of recent gradients, so "
       "a factor common to all prompts cancels. Left is how prompts weigh "
       "against each other, and in groups of eight a prompt at 11 % has "
       f"only {ratio:.2f} times a medium one's weight. An "
       "effect of a hundredth is not ruled out, and large groups "
       "were not tried.", pictures.by_type())

# %% [markdown]
# ## A bonus of a hundredth
#
# So far right or wrong. Now each `wait` in an answer earns 0.01 more, at most ten of them, right or
# wrong. Groups of eight, one of them with one `wait`. Compare it with a neighbour that is just as
# right or wrong but lacks the word: by how much is its advantage larger? The std is on.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.4", "In which group does the word gain most?",
        ["one right, seven wrong: the largest advantages",
         "four right, four wrong: the largest std, the most signal",
         "all alike, right or wrong: where 0/1 rewards teach nothing",
         "the same in all: 0.01 is 0.01"])

# %%
def word_gains(right, divide=True):
    """Eight answers, the last with one wait, against its neighbour."""
    R = (torch.arange(8) < right).double()
    R[-1] += 0.01
    A = advantages(R, divide)
    return (A[-1] - A[-2]).item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
runs = {"z-score": "With the std", "mean only": "Without it"}
told = " ".join(
    f"{name} an answer ends with {min(x):.2f} to {max(x):.2f} of them, "
    f"pass@1 at {min(y):.2f} to {max(y):.2f}."
    for name, x, y in ((name, recorded_runs.waits(rule)[:, -10:].mean(1),
                        recorded_runs.evaluated(rule, "pass@1"))
                       for rule, name in runs.items()))
full = [100 * recorded_runs.all_right(rule)[:, -10:].mean()
        for rule in runs]
reveal("biases.4", "all alike, right or wrong: where 0/1 rewards teach "
       "nothing",
       f"One right: {word_gains(1):.2f}. Four: {word_gains(4):.2f}. None "
       f"or all: {word_gains(8):.2f}. **There the word is the only "
       "difference, and the std makes it full size.** With the mean alone "
       f"it is {word_gains(8, False):.2f} everywhere.\n\nA model takes it. "
       "Sums of a few steps, 50 steps at one learning rate, three seeds: "
       f"{told} At the end {full[0]:.0f} % of the groups are all right "
       f"with the std, {full[1]:.0f} % without: that run has more of "
       "them, and ignores them.\n\nWhat to log: the std of the rewards "
       "inside the groups that are all right.", pictures.bonus_runs())

# %% [markdown]
# In a real run the hundredth is a format bonus, a length penalty, the last digits of a reward
# model. Keep the std where rewards of unknown scale meet: then one learning rate serves them all
# (shown in the [statements](statements/09_grpo_biases.ipynb)).
#
# ## The length
#
# None of this explains the first picture: $\sigma_R$ does not know how long an answer is. So to
# $1/T$. Take the simplest policy with a length: after each token it stops, with chance
# $q=1/(1+e^{-\theta})$.
#
# $$\begin{aligned}
# \log\pi&=(T-1)\log(1-q)+\log q&&T-1\text{ times on, then stop}\\
# \nabla_\theta\log\pi&=-(T-1)\,q+(1-q)=1-qT&&\text{in }\theta\text{ the slope of }\log(1-q)\text{ is }-q\text{, of }\log q\text{ is }1-q
# \end{aligned}$$
#
# Undivided first. Let all answers be wrong, each with $A=-1$ however long it is; $q=0.1$, so ten
# tokens on average.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.5", "Not divided by T. Which way is the decision to stop "
        "pushed, on average?",
        ["to stop sooner: a long answer is pushed down at more tokens",
         "to go on longer: every answer that stopped was wrong",
         "neither"])

# %%
q, T = 0.1, torch.arange(1.0, 3001.0)
chance = q * (1 - q) ** (T - 1)                  # of length T
undivided = -(chance * (1 - q * T)).sum()
divided = -(chance * (1 - q * T) / T).sum()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("biases.5", "neither",
       f"Mean push {abs(undivided):.3f}. It is A times the mean score, and "
       "that is 0: the score is above 0 for answers shorter than 1/q = 10 "
       "and below 0 for longer ones, and they balance. At T = 2 it is 0.8, "
       "at T = 18 it is −0.8. **Divided by T** they are "
       f"{0.8 / 2:.3f} and −{0.8 / 18:.3f}: the short answer counts nine "
       f"times as much. The mean push is now −{-divided:.3f}: with A = −1 "
       "stopping is pushed down, so **to go on longer**.")

# %% [markdown]
# What is such a policy after? Read the log-derivative backwards, $A$ held fixed:
#
# $$\begin{aligned}
# \mathbb E\big[A\,\nabla\log\pi\big]&=\nabla\,\mathbb E[A]&&\text{undivided: advantage per answer}\\
# \to\ \mathbb E\Big[\frac AT\,\nabla\log\pi\Big]&=\nabla\,\mathbb E\Big[\frac AT\Big]&&\textbf{a choice: divide by the answer's own length}
# \end{aligned}$$
#
# **Divided by $T$, the policy climbs advantage per token.** A right answer has more per token when
# it is short, a wrong one loses less per token when it is long. For the toy:
#
# $$\begin{aligned}
# \mathbb E\Big[A\,\frac{1-qT}{T}\Big]&=A\,\big(\mathbb E[\tfrac1T]-q\big)&&\text{the bracket, term by term}\\
# \mathbb E[\tfrac1T]&>\frac1{\mathbb E[T]}=q&&\text{Jensen: }1/T\text{ is convex; the mean length is }1/q
# \end{aligned}$$
#
# The bracket is positive. So $A>0$: stop sooner. $A<0$: go on longer. **Short when right, long when
# wrong, though nobody asked about length.**
#
# This is what "biased" means here. Plain REINFORCE climbs $\mathbb E[R]$. In large groups the std
# climbs $2\arcsin\sqrt p$ instead (its slope is $1/\sqrt{p(1-p)}$), and $1/T$ climbs $A/T$. Neither
# is $\mathbb E[R]$.
#
# On the running group, rewards 1, 1, 0, 0:

# %%
group = running_group()
A = advantages(group.rewards)[:, None] * group.mask      # (4, 6)
token_grid.token_grid(group, {
    "divided by the mean length, 4": A / 4,
    "divided by its own length": A / group.lengths[:, None]}, caption=(
    "A token of the long wrong answer is punished a third as hard as one "
    "of the short wrong answer. Right, the short one's tokens gain most."),
    count="")

# %% [markdown]
# But right and wrong answers come from one policy. How can their lengths part? The next toy writes
# a verdict on its answer first, `:` or `;`, true in so many cases of a hundred. Then it stops with
# one chance after `:`, with another after `;`. Only these two chances learn, by the expected push
# above. (A right answer with an untrue `;` grows with the wrong ones.)

# %% jupyter={"source_hidden": true}
# the explorer
task("biases.t2", length_drift.length_drift_explorer(),
     ("Wrong answers end three times as long as they began, and the mean "
      "over all answers, the number in your log, does not rise.",
      length_drift.hidden_growth),
     ("Every token still divided by T: make right and wrong answers end "
      "equally long. Does the share of right answers do it?",
      length_drift.no_drift))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. 90 % right and a verdict that is nearly always true. The wrong ones are too few to lift the
#    mean. Log the length of right and of wrong answers apart.
# 2. A verdict that is a coin, 50. Then right and wrong answers share each decision, and their
#    pushes cancel. No share of right answers does it. The drift needs a model that knows it is
#    wrong while it can still stop.
# </details>
#
# ## Which divisor was it?
#
# Back to the transformer and its 2,048 answers from before training. For each way to divide: what
# do the right and what do the wrong answers push "go on" by, at the spot where the model may write
# `wait`? So that rules compare, each push is divided by the mean size of what its rule pushes a
# token by.
#
# The rules: both divisions, one, the other, neither. And both once more, where not the grader but a
# coin says who earns 1.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.6", "A coin pays. Which way do the wrong answers push 'go "
        "on' under GRPO?",
        ["longer: 1/T acts on every negative advantage",
         "longer, half as far: half of them are paid now",
         "on average neither way"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# the push on "go on" under five rules, per batch, right and wrong apart
rules = {"std and 1/T (GRPO)": ("grpo", None),
         "only 1/T": ("mean_only", None),
         "only the std": ("zscore_constant", None),
         "neither": ("dr_grpo", None),
         "std and 1/T, a coin pays": ("grpo", CoinFlip(0))}
found = {}
for name, (rule, coin) in rules.items():
    both = stop_push(sampled, ESTIMATORS[rule], *([coin] if coin else []))
    found[name] = tuple(side.batches.double().numpy()
                        for side in (both.right, both.wrong))

# %% tags=["answer", "nbval-ignore-output"] jupyter={"source_hidden": true}
# the answer
gap = recorded_runs.length_gap("GRPO, coin flip", 21, 30)
reveal("biases.6", "on average neither way",
       "The coin does not know which answers are wrong: their advantages "
       "are as often positive as negative. Trained with the coin for 30 "
       "steps, three seeds, wrong answers end " + ", ".join(
           f"{x:+.1f}" for x in gap).replace("-", "−")
       + " tokens longer than right ones.", pictures.stop_pushes(found))

# %% [markdown]
# With $1/T$ the pushes stand apart, with the std or without it. Without $1/T$ they lean a little
# the other way, by about two standard errors; both rows share one sample, so that is one draw, not
# two. And when each rule is trained for the 80 steps?

# %% tags=["setup"] jupyter={"source_hidden": true}
# four recorded runs
print("wrong minus right, tokens, steps 71 to 80, a number a seed")
for name, run in (("std and 1/T (GRPO)", "pick_grpo"),
                  ("only 1/T", "pick_mean_only"),
                  ("std, one mean over all tokens (DAPO)", "pick_dapo"),
                  ("neither (Dr. GRPO)", "pick_dr_grpo")):
    wrong, right = (torch.tensor([
        recorded_runs.curve(run, seed, f"completions/mean_length_{side}")
        .tolist()[70:80] for seed in (0, 1, 2)])
        for side in ("wrong", "right"))
    gaps = wrong.nanmean(1) - right.nanmean(1)
    print(f"{name:36s}", "  ".join(f"{gap:+.1f}" for gap in gaps))

# %% [markdown]
# **$1/T$ drives the lengths apart, and it does so alone. The std weighs prompts, and enlarges small
# differences inside a group.**
#
# Two things were arranged for this drift: length was free, and the model had just judged itself. On
# models of real size Dr. GRPO reports the same sign, longer wrong answers under GRPO. Which divisor
# do you get without asking? The defaults of TRL 1.16.0 and verl 0.9.1:
#
# | | std | 1/T |
# |---|---|---|
# | TRL | on: `scale_rewards="group"` | off; on with `loss_type="grpo"` |
# | verl | on: `norm_adv_by_std_in_grpo=True` | off; on with `loss_agg_mode="seq-mean-token-mean"` |
#
# Both take one mean over all tokens instead of $1/T$; page 10 is about that choice.
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | GRPO's two divisors | |
# |---|---|
# | sentence | the std decides how prompts weigh against each other, 1/T how tokens of short and long answers do |
# | formula | weight of a prompt $1/\sqrt{p(1-p)}$ · push on the stop decision $A\,(\mathbb E[1/T]-q)$ |
# | climbs | the std $2\arcsin\sqrt p$, 1/T advantage per token; neither $\mathbb E[R]$ |
# | picture | a valley (weight) and an arch (net push); right and wrong lengths that part |
# | numbers | 15 of 16 right against 8: a quarter of the push, with the std a half · a bonus of 0.01 alone in its group: full size · wrong answers 65 tokens, right 13 |
# | needs | the std: graded rewards (with 0/1 and G = 8 we saw no effect); 1/T: a model that knows it is wrong before it stops |

# %%
print("GRPO -> Dr. GRPO, as their papers have them. (No run on this page "
      "had the KL term.)\n" + str(difference(ZOO["grpo"], ZOO["dr_grpo"])))
score(*(f"biases.{k}" for k in range(1, 7)))

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 10 minutes. The exact weight of a prompt in groups of `size`, divided by the
# std, rewards 0 or 1: the factor on $\nabla p$. `rate` is a tensor of pass rates. A group that is
# all right or all wrong pushes by 0.
#
# <details><summary>hint</summary>The derivation has a share p of right answers. What stands there with k of G, and how likely is k?</details>

# %% tags=["exercise"]
def my_weight(rate, size):
    return ...

check.prompt_weight(my_weight)

# %% [markdown]
# **2 Derive** · 8 minutes. $T$ is the length of an answer that stops with chance $q$. Return
# $\mathbb E[1/T]-q$ for a tensor of stop chances, as a formula without a sum.
#
# <details><summary>hint</summary>The sum over T of x^T / T is −log(1 − x).</details>

# %% tags=["exercise"]
def my_stop_push(q):
    return ...

check.stop_push(my_stop_push)

# %% [markdown]
# **3 Implement** · 8 minutes. Which groups have a signal? One yes or no per group. Rewards may be
# graded, negative, sixteen times 0.7, or twelve times `700.1` in float32.
#
# <details><summary>hint</summary>A std needs a mean, and a mean is rounded. Which question about the rewards needs no arithmetic?</details>

# %% tags=["exercise"]
def my_keep_informative(rewards, num_generations):
    """rewards (B,), one prompt after the other -> (P,) bool"""
    return ...

check.keep_informative(my_keep_informative)

# %% [markdown]
# **4 Find the silent bug** · 8 minutes. Answers get a bonus of at most 0.01 for being brief, "so
# small that it only breaks ties between equally good answers". The code runs, and mixed groups look
# right to two digits:

# %%
print(check.silent_bug_grpo_biases.source)

# %% [markdown]
# Write a test that this function fails and one that keeps the promise passes.
#
# <details><summary>hint</summary>In which group does the bonus decide alone? How large may an advantage be there?</details>

# %% tags=["exercise"]
def my_test(advantages):         # advantages(correct, bonus, G) -> (B,)
    ...

check.silent_bug_grpo_biases(my_test)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>What does dividing by the std do to easy and hard prompts?</b></summary>
#
# It weighs each prompt's gradient by 1/√(p(1−p)), easy and hard alike. A right answer carries ∇p/p,
# a wrong one −∇p/(1−p), so the push is (A₊ − A₋)∇p: ∇p without the division, ∇p/σ_R with it. With
# finite groups the weight stops at √(G−1). In net push the medium prompt still leads. Adam
# cancels what all prompts share; at G = 8 no type of ours moved by more than 0.02.
# </details>
# <details><summary><b>"GRPO is biased." In what sense?</b></summary>
#
# It climbs something else than the expected reward. Plain REINFORCE climbs E[R]. Dividing by the
# std climbs 2 arcsin √p of each prompt, in large groups; dividing by T climbs advantage per token.
# Not every bias hurts: the mean over the group costs only a factor (G−1)/G.
# </details>
# <details><summary><b>Does a small std blow up the gradient?</b></summary>
#
# No: it blows up the meaning, not the size. No advantage passes √(G−1). But in a group that is all
# right a bonus of 0.01 counts as much as right against wrong elsewhere, and no limit on the
# gradient norm notices. Our model learned to write the word that earned it, on three seeds of
# three; without the std on none.
# </details>
# <details><summary><b>When would you keep the std?</b></summary>
#
# When reward scales differ between prompts or are unknown: one learning rate then serves them all.
# Drop it with small bonuses or noisy scorers. With 0/1 rewards at G = 8 it made no visible
# difference in our run.
# </details>
# <details><summary><b>Why do wrong answers get longer under GRPO?</b></summary>
#
# Dividing by its own length punishes a long wrong answer less per token. The push on the stop
# decision is A(E[1/T] − q): stop sooner when right, go on when wrong. It needs a model that knows
# it is wrong before it stops. In our run wrong answers reached 65 tokens and right ones 13; pass@1
# moved under neither GRPO nor Dr. GRPO, and by construction length could not have helped.
# </details>
# <details><summary><b>Answers grow during training. Proof of reasoning?</b></summary>
#
# No. 1/T alone lengthens wrong answers under a reward that ignores length. Plot right and wrong
# apart, beside a run with a constant divisor and a control whose reward is a coin. Only growth of
# right answers that comes with a better pass@1 would be a hint.
# </details>
# <details><summary><b>All eight answers have the same reward. What happens?</b></summary>
#
# Nothing: numerator and std are both 0, and with ε the advantages are 0. A KL term still pulls.
# Test the largest against the smallest reward, not the std: the rounded mean of twelve times 0.7 is
# not 0.7.
# </details>
# <details><summary><b>Do TRL and verl have the two divisors?</b></summary>
#
# The std yes, 1/T no, unless asked for. Both take one mean over all tokens by default. "We use
# GRPO" does not say which; ask for `loss_type` and `scale_rewards`.
# </details>
#
# The sentences that one hears about the two divisors, true or not:
# [statements 09](statements/09_grpo_biases.ipynb). The exercises, solved:
# [solutions 09](solutions/09_grpo_biases.ipynb).
#
# **Next: [10](10_dr_grpo.ipynb).** Take both divisors out. What is left, and how should tokens be
# averaged then?
