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
# 34 minutes, then 8 in a second sitting · exercises 34 more · after 08 (GRPO) · GRPO: Shao et al.
# 2024, [arXiv 2402.03300](https://arxiv.org/abs/2402.03300); its two divisors: Liu et al. 2025,
# "Dr. GRPO", [arXiv 2503.20783](https://arxiv.org/abs/2503.20783)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. By what does GRPO divide, and where?</summary>Reward minus mean by the std σ_R of the group's rewards; the sum over an answer's tokens by its length T (08).</details>
# <details><summary>2. A share p of a group is right. The advantage of a right and of a wrong answer, divided by the std?</summary>√((1−p)/p) and −√(p/(1−p)), for the std is √(p(1−p)) (08).</details>
# <details><summary>3. How is the gradient of E[R] written as a mean?</summary>E[R ∇ log π(y)]: reward times the answer's score, which is ∇ log π(y) (02).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
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
# ## A run in which length is free
#
# The prompt `44529:1?` gives five digits and a target. The task is to choose three digits that add
# up to 1, where only the last digit of a sum counts, so 7 + 4 is 1. A small transformer writes two
# sums. Then it says whether it hit the target: `:` for yes, `;` for no.
#
# ```
# 5+2=7,7+4=1:wait7+4=1:       right, and it says so; then it repeats itself
# 4+9=3,3+5=8;                 wrong, and it says so
# ```
#
# After its verdict it may stop, or it may write `wait` and repeat the last sum, as often as it
# likes. The grader reads nothing behind the verdict. So length is free: an answer has at least 13
# tokens, and is cut off at 72. This is the model before any training with rewards:

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
# Now it is trained with 80 steps of GRPO, 128 answers a step and no KL term. A right answer earns
# 1, a wrong one 0.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.1", "After the 80 steps: which answers have become longer?",
        ["neither kind: nothing pays for length",
         "wrong ones: they grow, right ones do not",
         "right ones: all their tokens are pushed up, repeats too",
         "both alike: the policy has one habit of stopping"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ends = [x for name in ("GRPO", "Dr. GRPO")
        for x in recorded_runs.evaluated(name, "pass@1")]
reveal("biases.1", "wrong ones: they grow, right ones do not",
       "On every seed wrong answers grow almost to the limit, and right "
       "ones shrink almost to the shortest there is. Without GRPO's two "
       "divisions (right panel) the two stay together. Neither run learned "
       "to solve more: pass@1 on other problems ends at "
       f"{min(ends):.2f} to {max(ends):.2f}, from "
       f"{recorded_runs.evaluated('GRPO', 'pass@1', min)[0]:.2f}.",
       pictures.length_runs(
           {"GRPO": "GRPO", "Dr. GRPO": "without the two divisions"},
           "One reward, blind to length. Thin lines are the three seeds."),
       instead={
           "neither kind: nothing pays for length":
           "Nothing pays for length. It happened all the same.",
           "right ones: all their tokens are pushed up, repeats too":
           "They are pushed up, and yet they shrink. Remember this.",
           "both alike: the policy has one habit of stopping":
           "It can have two: it writes a verdict before it stops.",
       })

# %% [markdown]
# What did that? Look at the formula. On fresh data GRPO pushes each token of answer $i$ up by
#
# $$\frac1G\cdot\frac1{T_i}\cdot\frac{R_i-\bar R}{\sigma_R}$$
#
# There are two divisors: the length $T_i$ of the answer, and the std $\sigma_R$ of the group. If
# they were constants, they would belong to the learning rate. They are not constant. We begin with
# the length.

# %% [markdown]
# ## The length
#
# Take the simplest policy that has a length. After each token it stops with chance $q$. It has one
# parameter, the logit of stopping: $q=1/(1+e^{-\theta})$. An answer of $T$ tokens went on $T-1$
# times, and then stopped:
#
# $$\begin{aligned}
# \log\pi&=(T-1)\log(1-q)+\log q&&\text{one factor a token}\\
# \nabla_\theta\log\pi&=-(T-1)\,q+(1-q)=1-qT&&\text{in }\theta\text{ the slope of }\log(1-q)\text{ is }-q\text{, of }\log q\text{ is }1-q
# \end{aligned}$$
#
# Look only at the wrong answers of a mixed group. They all have the same advantage, say $A=-1$,
# however long they are. With $q=0.1$ they have ten tokens on average. We begin without the
# division.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.2", "The push is not divided by T. Which way is the "
        "decision to stop pushed, on average?",
        ["neither: short and long answers cancel",
         "to go on longer: every answer that stopped was wrong",
         "to stop sooner: a long answer is pushed down at more tokens"])

# %%
q, T = 0.1, torch.arange(1.0, 3001.0)
chance = q * (1 - q) ** (T - 1)                  # of length T
undivided = -(chance * (1 - q * T)).sum()
divided = -(chance * (1 - q * T) / T).sum()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("biases.2", "neither: short and long answers cancel",
       f"The mean push is {abs(undivided):.3f}. Short answers are more "
       "frequent, long ones have larger scores, and over all lengths the "
       "two balance (left). That is so because the mean length is 1/q. "
       "**Divided by T** the long ones hardly count (right): the mean "
       f"score is {-divided:.3f}. Times A = −1, stopping is pushed down. "
       "**The policy goes on longer.**", pictures.score_by_length(),
       instead={
           "to stop sooner: a long answer is pushed down at more tokens":
           "A long answer is pushed down at more tokens. But short answers "
           "are more frequent, and they chose to stop.",
           "to go on longer: every answer that stopped was wrong":
           "Every answer that went on was wrong, too.",
       })

# %% [markdown]
# Which goal does the divided push climb? Read the log-derivative trick backwards. ($A$ differs from
# answer to answer, but it is not differentiated.)
#
# $$\begin{aligned}
# \mathbb E\big[A\,\nabla\log\pi\big]&=\nabla\,\mathbb E[A]&&\text{undivided: advantage per answer}\\
# \to\ \mathbb E\Big[\frac AT\,\nabla\log\pi\Big]&=\nabla\,\mathbb E\Big[\frac AT\Big]&&\textbf{a choice: divide by the answer's own length}
# \end{aligned}$$
#
# **Divided by $T$, the policy climbs the advantage per token.** A right answer has more of it per
# token when it is short, and a wrong answer loses less per token when it is long. For the toy this
# reads
#
# $$\begin{aligned}
# \mathbb E\Big[A\,\frac{1-qT}{T}\Big]&=A\,\big(\mathbb E[\tfrac1T]-q\big)&&\text{the bracket, term by term}\\
# \mathbb E[\tfrac1T]&>\frac1{\mathbb E[T]}=q&&\text{Jensen: }1/T\text{ is convex; the mean length is }1/q
# \end{aligned}$$
#
# The bracket is positive. So right answers are pushed to stop sooner, and wrong ones to go on
# longer. **Short when right, long when wrong, though nobody asked about length.**
#
# Why would anyone divide by $T$? It gives every answer one vote, however long it is. What you just
# derived is the price. Here it is on the running group, with rewards 1, 1, 0, 0.

# %%
group = running_group()
A = (group.rewards - 0.5) / 0.5                  # mean and std are 0.5
A = A[:, None] * group.mask                      # (4, 6)
token_grid.token_grid(group, {
    "divided by the mean length, 4": A / 4,
    "divided by its own length": A / group.lengths[:, None]}, caption=(
    "A token of the long wrong answer is pushed down a third as hard as a "
    "token of the short wrong one."),
    count="")

# %% [markdown]
# Right and wrong answers come from one policy, and the advantages of a group sum to 0. Why do their
# pushes not cancel? They do cancel if right and wrong answers share one decision to stop: then the
# push is the bracket times the mean advantage, which is 0. They do not if the model can tell,
# before it stops, that it failed.
#
# So our toy gets a verdict. It first writes `:` or `;` about its answer, and a slider says how
# often this verdict is true. After `:` it stops with one chance, after `;` with another, both 0.1
# at the start. Only these two chances learn, by the push just derived.

# %% jupyter={"source_hidden": true}
# the explorer
task("biases.t1", length_drift.length_drift_explorer(),
     ("Hide the drift from the log: wrong answers end three times as long "
      "as they began, and the mean over all answers does not rise.",
      length_drift.hidden_growth),
     ("Every token still divided by T: make right and wrong answers end "
      "equally long. Does the share of right answers do it?",
      length_drift.no_drift))

# %% [markdown]
# <details><summary>What these two tasks show</summary>
#
# 1. Take 90 % right answers, and a verdict that is nearly always true. The wrong answers are too
#    few to lift the mean. So log the lengths of right and of wrong answers apart.
# 2. Make the verdict a coin, 50. Then right and wrong answers share each decision, and their pushes
#    cancel. No share of right answers does it. The drift needs a model that knows it is wrong while
#    it can still stop.
# </details>

# %% [markdown]
# ## Which divisor was it?
#
# The toy says that $1/T$ did it. Does the transformer agree? Take its 2,048 answers from before
# training. Behind the verdict it may go on or stop. We add up by how much the right answers and the
# wrong answers push "go on".
#
# We do this with both divisions, with each one alone, and with neither. As a control we take both
# divisions, but let a coin instead of the grader say who earns 1.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.3", "In the control a coin pays. Which way do the wrong "
        "answers push 'go on' under GRPO?",
        ["longer: 1/T acts on every negative advantage",
         "longer, half as far: half of them are paid now",
         "shorter: half of them are paid, and 1/T shortens those",
         "neither way: the coin pays right and wrong alike"])

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
reveal("biases.3", "neither way: the coin pays right and wrong alike",
       "The coin does not know which answers are wrong, so their "
       "advantages are as often positive as negative. After 30 steps of "
       "training with the coin, wrong answers are longer than right ones "
       "by "
       + ", ".join(f"{x:+.1f}" for x in gap).replace("-", "−")
       + " tokens (a number a seed).", pictures.stop_pushes(found),
       instead={
           "longer: 1/T acts on every negative advantage":
           "It does. But the coin pays half of the wrong answers, so their "
           "advantages are no longer all negative.",
           "longer, half as far: half of them are paid now":
           "The paid half is pushed the other way, as hard.",
           "shorter: half of them are paid, and 1/T shortens those":
           "And it lengthens the unpaid half, as hard.",
       })

# %% [markdown]
# In the rows with $1/T$ right and wrong answers pull apart, with the std or without it. For the
# rows without $1/T$ the derivation says 0. They lean the other way by about two standard errors,
# and they share one set of answers, so that is one accident and not two.
#
# Is it the same after 80 steps of training?

# %% tags=["setup"] jupyter={"source_hidden": true}
# four recorded runs
print("wrong minus right, tokens, steps 71 to 80, a number a seed")
for name, run in (("std and 1/T (GRPO)", "pick_grpo"),
                  ("only 1/T", "pick_mean_only"),
                  ("only the std (as in DAPO)", "pick_dapo"),
                  ("neither (Dr. GRPO)", "pick_dr_grpo")):
    wrong, right = (torch.tensor([
        recorded_runs.curve(run, seed, f"completions/mean_length_{side}")
        .tolist()[70:80] for seed in (0, 1, 2)])
        for side in ("wrong", "right"))
    gaps = wrong.nanmean(1) - right.nanmean(1)
    print(f"{name:36s}", "  ".join(f"{gap:+.1f}" for gap in gaps))

# %% [markdown]
# The lengths are fifty tokens apart with $1/T$, and at most five without. **$1/T$ drives the
# lengths apart, and it does so alone.** Three things made it easy to see: length was free, the
# model had just judged itself, and it learned nothing else. In a run that learns, with lengths that
# matter, we have not tried it. Dr. GRPO reports the same sign on models of real size, as curves.

# %% [markdown]
# ## The std, from prompt to prompt
#
# The other divisor, the std, differs from prompt to prompt. Why divide by it at all? It makes steps
# of one size from rewards of any scale. Its side effect is called *difficulty bias*, as that of
# $1/T$ is called *length bias*.
#
# Take two prompts. Each has one number $z$ of its own, a logit: an answer is right with chance
# $p=1/(1+e^{-z})$. In a group of sixteen, 8 are right on the first prompt, and 15 on the second.
# Divided by the std, the one failure beside fifteen right answers gets the largest advantage of
# all.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.4", "Both are divided by the std. Which prompt's z is "
        "pushed more?",
        ["15 of 16: its advantages are the largest",
         "both alike: the std makes groups equal",
         "8 of 16: right and wrong answers are balanced"])

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
reveal("biases.4", "8 of 16: right and wrong answers are balanced",
       r"A right answer's score in $z$ is $1-p$, a wrong one's is $-p$, so "
       r"both are $R-p$. The push is the mean of $(R-p)^2$, which is "
       r"$\sigma_R^2$. Divided by $\sigma_R$ it is $\sigma_R$, and that is "
       "largest at one half. **The division lifts the easy prompt from a "
       "quarter of the other's push to a half, not past it.**",
       pictures.odd_one_out(groups), instead={
           "15 of 16: its advantages are the largest":
           "One of its advantages is. The other fifteen are small, and "
           "their scores are small, too.",
           "both alike: the std makes groups equal":
           "It makes their advantages equally large. The scores still "
           "differ.",
       })

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
# **The std weighs each prompt by $1/\sqrt{p(1-p)}$.** Easy and hard prompts get a large weight,
# medium ones the smallest. The weight is a valley.
#
# What arrives is another matter. Since $\nabla p=p(1-p)\nabla z$, the gradient itself is small at
# both ends. Weight times gradient, the **net push** on $z$, is $\sqrt{p(1-p)}$. The net push is an
# arch: still highest in the middle, only flatter than $p(1-p)$ without the std.

# %% jupyter={"source_hidden": true}
# the picture
pictures.valley_and_arch()

# %% [markdown]
# For one prompt this is only another step size. Across prompts it is another goal: not the sum of
# the $p$, but the sum of $2\arcsin\sqrt p$, whose slope is $1/\sqrt{p(1-p)}$. This is what
# **biased** means here: **with either divisor the push is no longer the gradient of
# $\mathbb E[R]$.**

# %% [markdown]
# ## In a real run
#
# Which divisor do you get without asking? These are the defaults of TRL 1.16.0 and verl 0.9.1:
#
# | | std | 1/T |
# |---|---|---|
# | TRL | on: `scale_rewards="group"` | off; on with `loss_type="grpo"` |
# | verl | on: `norm_adv_by_std_in_grpo=True` | off; on with `loss_agg_mode="seq-mean-token-mean"` |
#
# Both take one mean over all tokens instead of $1/T$. Page 10 is about that choice. Keep the std
# where rewards of unknown scale meet: one learning rate then serves them all
# ([statements](statements/09_grpo_biases.ipynb)).
#
# What to look for in a log: the mean length of right and of wrong answers *apart*. For the std, how
# often groups that are all right collect a small bonus. The second sitting shows why.

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | GRPO's two divisors | |
# |---|---|
# | sentence | the std decides how prompts weigh against each other, 1/T how tokens of short and long answers do |
# | formula | weight of a prompt $1/\sqrt{p(1-p)}$ · push on the stop decision $A\,(\mathbb E[1/T]-q)$ |
# | climbs | the std $2\arcsin\sqrt p$, 1/T advantage per token; neither $\mathbb E[R]$ |
# | picture | a valley (weight) and an arch (net push); right and wrong lengths that part |
# | numbers | 15 of 16 right against 8: a quarter of the push, with the std a half · wrong answers 65 tokens, right 14 |
# | needs | 1/T: a model that knows it is wrong before it stops |
# | log | lengths of right and of wrong answers apart |

# %%
print("GRPO -> Dr. GRPO, as their papers have them. (No run on this page "
      "had the KL term.)\n" + str(difference(ZOO["grpo"], ZOO["dr_grpo"])))
score(*(f"biases.{k}" for k in range(1, 5)))

# %% [markdown]
# ## Second sitting: does the std show in practice?
#
# The valley and the arch are for large groups. What is left of them in small ones, and in training?
# And what does the std make of a tiny bonus?
#
# ### In small groups
#
# In a small group the number of right answers varies by chance, and some groups are **silent**: all
# answers are alike, and nothing is pushed. In the explorer you choose a prompt B; its rival is
# right half of the time. The dashed line is the rule without the std, one weight for all prompts.

# %% jupyter={"source_hidden": true}
# the explorer
task("biases.t2", prompt_weight.prompt_weight_explorer(),
     ("B is right at most one time in twenty. Find a group size with which "
      "the std gives it exactly the medium prompt's weight.",
      prompt_weight.treated_alike))

# %% [markdown]
# <details><summary>What this task shows</summary>
#
# Take G = 2 or 3. Then every group that is not silent has one answer against the rest, and its std
# is always the same constant. **In small groups the std hardly knows what is difficult.** (No
# weight can pass $\sqrt{G-1}$; exercise 1 asks why.)
# </details>
#
# Does it show in training? A model learned seven types of sums at once, from types of which it
# solved 11 % at the start to types that it solved nearly always. It had $G=8$, 40 steps of AdamW
# and three seeds, with the std and without.

# %% tags=["setup"] jupyter={"source_hidden": true}
# pass@1 per type, with the std minus without, mean of steps 10 to 40
with_std, without = (torch.stack([
    torch.from_numpy(recorded_runs.by_difficulty(rule, step))
    for step in (10, 20, 30, 40)]) for rule in ("z-score", "mean only"))
apart = (with_std - without).mean((0, 1))        # (types,)
ratio = prompt_weight.compute(0.11, 8)["ratio"]
print("hardest to easiest:", *(f"{x:+.3f}" for x in apart))
print(f"theory, G = 8: {ratio:.2f} times a medium prompt's weight at 11 %")

# %% [markdown]
# No type's pass@1 differed by 0.02. One would not expect much: in groups of eight the hard prompt
# weighs only 1.24 times a medium one. (Large groups were not tried. Every seed and curve is on the
# [statements page](statements/09_grpo_biases.ipynb).) **The length bias is in our formula and in
# our run. The difficulty bias is in the formula.**

# %% [markdown]
# ### A bonus of a hundredth
#
# So far an answer was right or wrong. Now each `wait` in an answer earns 0.01 more, for at most ten
# of them, whether the answer is right or wrong. In real runs such a hundredth is a format bonus, a
# length penalty, or the last digits of a reward model.
#
# Take groups of eight, divided by the std. One answer holds one `wait`. Compare its advantage with
# that of a neighbour that is just as right or wrong, but lacks the word.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.5", "In which group does the word gain most?",
        ["one right, seven wrong: the largest advantages",
         "all alike, right or wrong: where 0/1 rewards teach nothing",
         "four right, four wrong: the largest std, the most signal",
         "the same in all: 0.01 is 0.01"])

# %%
def word_gains(right, divide=True):
    """Eight answers, the last with one wait, against its neighbour."""
    R = (torch.arange(8) < right).double()
    R[-1] += 0.01
    A = advantages(R, divide)
    return (A[-1] - A[-2]).item()

# %% tags=["setup"] jupyter={"source_hidden": true}
# six recorded runs, read
runs = {"z-score": "With the std", "mean only": "Without it"}
kept = " ".join(
    f"{name} it ends with {min(x):.2f} to {max(x):.2f} `wait`s an answer "
    f"and solves {min(y):.2f} to {max(y):.2f}."
    for name, x, y in ((name, recorded_runs.waits(rule)[:, -10:].mean(1),
                        recorded_runs.evaluated(rule, "pass@1"))
                       for rule, name in runs.items()))
full = 100 * recorded_runs.all_right("z-score")[:, -10:].mean()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("biases.5", "all alike, right or wrong: where 0/1 rewards teach "
       "nothing",
       f"With one right answer the word gains {word_gains(1):.2f}, with "
       f"four {word_gains(4):.2f}, with none or all {word_gains(8):.2f}. "
       "**There the word is the only difference, and the std makes it full "
       f"size.** Without the std it is {word_gains(8, False):.2f} "
       "everywhere.\n\nDoes a model take it? Another one adds up a few "
       f"numbers and may write `wait`; it has 50 steps and three seeds. "
       f"{kept} The more it solves, the more groups are all right "
       f"({full:.0f} % at the end with the std), and there only the word "
       f"is "
       "left to learn. It also solves less; whether the word or the std is "
       "to blame, these runs do not tell.",
       pictures.bonus_runs(), instead={
           "one right, seven wrong: the largest advantages":
           "Right against wrong makes these advantages large. The word is "
           "a hundredth of that.",
           "four right, four wrong: the largest std, the most signal":
           "The std is what the word is divided by.",
           "the same in all: 0.01 is 0.01":
           "It is the same in all without the std.",
       })

# %%
score("biases.5")

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
# Write one test. This function must fail it, and a function that keeps the promise must pass.
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
# <details><summary><b>"GRPO is biased." In what sense?</b></summary>
#
# It climbs something else than the expected reward. Plain REINFORCE climbs E[R]. Dividing by the
# std climbs 2 arcsin √p of each prompt, in large groups; dividing by T climbs advantage per token.
# For one prompt with 0/1 rewards the std only changes the step size. Not every bias hurts: the mean
# over the group costs only a factor (G−1)/G.
# </details>
# <details><summary><b>Why do wrong answers get longer under GRPO?</b></summary>
#
# Dividing by its own length punishes a long wrong answer less per token. The push on the stop
# decision is A(E[1/T] − q): stop sooner when right, go on when wrong. It needs a model that knows
# it is wrong before it stops. In our run wrong answers reached 65 tokens and right ones 14; pass@1
# moved under neither GRPO nor Dr. GRPO, and by construction length could not have helped.
# </details>
# <details><summary><b>What does dividing by the std do to easy and hard prompts?</b></summary>
#
# It weighs each prompt's gradient by 1/√(p(1−p)), easy and hard alike. A right answer carries ∇p/p,
# a wrong one −∇p/(1−p), so the push is (A₊ − A₋)∇p: ∇p without the division, ∇p/σ_R with it. With
# finite groups the weight stops at √(G−1). In net push the medium prompt still leads. Adam
# cancels what all prompts share; at G = 8 no type of ours moved by more than 0.02.
# </details>
# <details><summary><b>When would you keep the std?</b></summary>
#
# When reward scales differ between prompts or are unknown: one learning rate then serves them all.
# Drop it with small bonuses or noisy scorers. With 0/1 rewards at G = 8 it made no visible
# difference in our run.
# </details>
# <details><summary><b>Do TRL and verl have the two divisors?</b></summary>
#
# The std yes, 1/T no, unless asked for. Both take one mean over all tokens by default. "We use
# GRPO" does not say which; ask for `loss_type` and `scale_rewards`.
# </details>
#
# The other three can wait for another evening.
#
# <details><summary><b>Does a small std blow up the gradient?</b></summary>
#
# No: it blows up the meaning, not the size. No advantage passes √(G−1). But in a group that is all
# right a bonus of 0.01 counts as much as right against wrong elsewhere, and no limit on the
# gradient norm notices. Our model learned to write the word that earned it, on three seeds of
# three; without the std on none.
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
# Test the largest against the smallest reward, not the std: the rounded mean of twelve equal
# rewards need not equal them.
# </details>
#
# The sentences that one hears about the two divisors, true or not:
# [statements 09](statements/09_grpo_biases.ipynb). The exercises, solved:
# [solutions 09](solutions/09_grpo_biases.ipynb).
#
# **Next: [10](10_dr_grpo.ipynb).** Take both divisors out. What is left, and how should tokens be
# averaged then?
