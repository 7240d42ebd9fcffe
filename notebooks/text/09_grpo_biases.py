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
# 26 minutes, exercises 34 more · after 08 (GRPO) · GRPO: Shao et al. 2024,
# [arXiv 2402.03300](https://arxiv.org/abs/2402.03300); its two divisors: Liu et al. 2025,
# "Dr. GRPO", [arXiv 2503.20783](https://arxiv.org/abs/2503.20783)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. By what does GRPO divide, and where?</summary>Reward minus mean by the std s of the group; the sum over an answer's tokens by its length T (08).</details>
# <details><summary>2. A share p of a group is right. The advantage of a right and of a wrong answer, divided by s?</summary>√((1−p)/p) and −√(p/(1−p)), for s = √(p(1−p)) (08).</details>
# <details><summary>3. What is the score of an answer, and its mean?</summary>The gradient of log π of the answer; over the policy's own answers its mean is 0 (02).</details>

# %% tags=["setup"]
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import length_drift, prompt_weight
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import grpo_biases as pictures
from rlnb.classroom.pictures import pipeline, recorded_runs, token_grid
from rlnb.objective import difference
from rlnb.toys import running_group
from rlnb.training import (ESTIMATORS, TASKS, CoinFlip, data_folder, load,
                           sample_decisions, stop_push)
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Two runs
#
# A small transformer (0.3 million weights) tries a sum in two steps and ends with its own verdict,
# `:` for reached, `;` for missed. After that it may repeat its last step as often as it likes:
# `5+2=7,7+9=6;wait7+9=6;wait7+9=6;`. The grader looks at the first attempt only. What comes after
# is neither paid nor punished.
#
# Left GRPO, right the same without its two divisions. One start, 80 steps of 128 answers, three
# seeds each:

# %%
pictures.length_runs(
    {"GRPO": "GRPO", "Dr. GRPO": "without the two divisions"},
    "One reward, blind to length. Under GRPO wrong answers grow and right "
    "ones shrink, on every seed; without the divisions they stay together.")

# %% tags=["setup"] jupyter={"source_hidden": true}
# did they learn anything?
for name in ("GRPO", "Dr. GRPO"):
    before, after = (recorded_runs.evaluated(name, "pass@1", when)
                     for when in (min, max))
    print(f"{name:8s} pass@1, 100 held-out problems: {before[0]:.2f}, "
          "after 80 steps", " ".join(f"{x:.2f}" for x in after))

# %% [markdown]
# Nothing was learned on the way: pass@1 moves under neither. (More tokens could not have helped,
# the first attempt decides.) So what lengthens the wrong answers? On fresh data GRPO pushes each
# token of answer $i$ up by
#
# $$\frac1G\cdot\frac1{T_i}\cdot\frac{R_i-\bar R}{s}$$
#
# $s$ is one number per group, $T_i$ one per answer. If they were constants they would belong to the
# learning rate. They are not. This page takes them one at a time.

# %%
pipeline.pipeline("advantages", "loss", caption=(
    "The std acts on the advantages, 1/T in the loss, on the tokens."))

# %% [markdown]
# ## The std, from prompt to prompt
#
# Two prompts, each with one number $z$ of its own: an answer is right with chance
# $p=\sigma(z)$. Groups of sixteen. On one prompt 8 are right, on the other 15; take these shares as
# the prompts' $p$. Divided by the std, the one failure beside fifteen gets the largest advantage of
# all.

# %%
predict("biases.1", "Divided by s: which prompt's z is pushed up more?",
        ["15 of 16: its advantages are the largest",
         "8 of 16: right and wrong answers are balanced",
         "both alike: the std makes groups equal"])

# %%
def advantages(R, divide=True):
    A = R - R.mean(-1, keepdim=True)
    s = R.std(-1, correction=0, keepdim=True) + 1e-6
    return A / s if divide else A

def push_on_z(right, divide, G=16):
    """Mean over the group of advantage times score; p = right / G."""
    R = (torch.arange(G) < right).double()
    score_in_z = R - R.mean()                    # 1 - p or -p
    return (advantages(R, divide) * score_in_z).mean().item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
groups = {f"{k} of 16": ((k / (16 - k)) ** 0.5, push_on_z(k, False),
                         push_on_z(k, True)) for k in (8, 15)}
reveal("biases.1", "8 of 16: right and wrong answers are balanced",
       r"A right answer's score in $z$ is $1-p$, a wrong one's $-p$: in "
       r"short $R-p$. So the push is the mean of $(R-p)^2$, which is "
       r"$s^2$. Divided by $s$ it is $s$, and $s$ is largest at one half. "
       "Dividing lifts the easy prompt from a quarter of the other's push "
       "to a half, not past it.", pictures.odd_one_out(groups))

# %% [markdown]
# A network has no $z$ per prompt. What can be said there? Call $\nabla p$ the gradient of the
# chance that this prompt is answered right.
#
# $$\begin{aligned}
# \nabla p&=\textstyle\sum_{y\ \text{right}}\nabla\pi(y)&&p\text{ is the sum of the right answers' chances}\\
# &=\textstyle\sum_{y\ \text{right}}\pi(y)\,\nabla\log\pi(y)&&\text{log-derivative (02)}\\
# &=p\;\mathbb E[\nabla\log\pi\mid\text{right}]&&\text{a mean among right answers: each has chance }\pi(y)/p\\
# \mathbb E[\nabla\log\pi\mid\text{right}]&=\nabla p/p&&\text{divide by }p\\
# \mathbb E[\nabla\log\pi\mid\text{wrong}]&=-\nabla p/(1-p)&&\text{the same; wrong has chance }1-p
# \end{aligned}$$
#
# So a right answer, on average, carries $\nabla p/p$. Let a share $p$ of a large group be right,
# and give the right ones the advantage $A_+$, the wrong ones $A_-$:
#
# $$\begin{aligned}
# \text{push}&=p\,A_+\,\frac{\nabla p}p-(1-p)\,A_-\,\frac{\nabla p}{1-p}&&\text{shares times advantage times mean score}\\
# &=(A_+-A_-)\,\nabla p&&\text{cancel}\\
# &=\nabla p&&\text{minus the mean only: }A_+=1-p,\ A_-=-p\\
# &\;\to\;\frac1s\,\nabla p=\frac{\nabla p}{\sqrt{p(1-p)}}&&\textbf{a choice: divide by the group's std}
# \end{aligned}$$
#
# **The std weighs each prompt by $1/\sqrt{p(1-p)}$:** easy and hard prompts alike, the medium ones
# least. Now the number: ten possible answers, all as likely, the first few right. How many times
# $\nabla p$ is the mean push of sampled groups?

# %%
def mean_push(right, G, groups=40_000):
    """GRPO's push on the ten logits, mean over sampled groups."""
    dice = torch.Generator().manual_seed(0)
    y = torch.randint(10, (groups, G), generator=dice)
    A = advantages((y < right).double())         # (groups, G)
    # score: one at the answer, minus pi; a group's A sum to 0, pi drops out
    return torch.zeros(groups, 10).scatter_add(1, y, A).mean(0) / G

for right in (1, 5, 9):
    p, good = right / 10, (torch.arange(10) < right).double()
    grad_p = 0.1 * (good - p)                            # on the logits
    small, large = (mean_push(right, G) @ grad_p / (grad_p @ grad_p)
                    for G in (16, 64))
    print(f"p = {p}: weight {small:.2f} at G = 16, {large:.2f} at G = 64, "
          f"formula {(p * (1 - p)) ** -0.5:.2f}")

# %% [markdown]
# Easy and hard weigh the same: five thirds of the medium prompt by the formula, less in small
# groups. And the guess? In terms of its logit $z$, $\nabla p$ itself is $p(1-p)\nabla z$. Weight
# times that is $\sqrt{p(1-p)}$: a heavier weight on a smaller gradient, and the medium prompt
# leads.
#
# In a small group the number of right answers varies by chance, and the weight is a mean over that:

# %%
task("biases.t1", prompt_weight.prompt_weight_explorer(),
     ("B is right at most one time in twenty. Find a group size with which "
      "the std gives it exactly the medium prompt's weight.",
      prompt_weight.treated_alike),
     ("Give B at least twice the medium prompt's weight. Try G = 16 "
      "first: how far does it get?", prompt_weight.twice_the_weight))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. G = 2, or 3. Then every group that is not silent has one answer against the rest, and its std
#    is always the same: a constant.
# 2. G = 32 and p = 1/20, for example. With 16 it stops just short. A weight never passes
#    $\sqrt{G-1}$ (the largest advantage, 08), and small groups are never very uneven.
# </details>
#
# <details><summary>One level deeper: what is being maximised?</summary>
#
# $1/\sqrt{p(1-p)}$ is the derivative of $2\arcsin\sqrt p$. With large groups GRPO climbs the mean
# of that over the prompts, the mean alone climbs the mean of $p$. Dividing by $\bar R$ instead of
# $s$ ("MaxRL", [arXiv 2602.02710](https://arxiv.org/abs/2602.02710)) gives $1/p$, so $\log p$: that
# one does prefer hard prompts.
# </details>
#
# Does it show? A small transformer practised seven types of sums. At the start it solves 11 % of
# the hardest and nearly all of the easiest. $G=8$, 28 prompts a step, 40 steps of AdamW at one
# rate, three seeds, with the std and without. At 11 % a prompt weighs a quarter more than a medium
# one.

# %%
predict("biases.2", "What does dividing by s do to the seven learning "
        "curves?",
        ["hard and easy types learn faster", "only the hard ones do",
         "medium types learn faster: they have the largest push",
         "nothing that three seeds can show"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
with_s, without = (torch.stack([
    torch.from_numpy(recorded_runs.by_difficulty(rule, step))
    for step in (10, 20, 30, 40)]) for rule in ("z-score", "mean only"))
seeds = max((t[:, i] - t[:, j]).abs().max() for t in (with_s, without)
            for i, j in ((0, 1), (0, 2), (1, 2)))
reveal("biases.2", "nothing that three seeds can show",
       "On no seed, type or step are the two rules more than "
       f"{(with_s - without).abs().max():.2f} apart; two seeds of one rule "
       f"are, by up to {seeds:.2f}. A small effect is not ruled out, and a "
       "large group was not tried.", pictures.by_type())

# %% [markdown]
# ## A bonus of a hundredth
#
# So far right or wrong. Now pay a little extra: each `wait` in an answer earns 0.01, at most ten of
# them, beside 1 for being right. Two runs on sums of a few steps, with the std and without, three
# seeds, 50 steps at the same learning rate; all else alike. At the start 37 % of the answers are
# right.

# %%
predict("biases.3", "Which run learns to write the word?",
        ["neither: 0.01 drowns beside 1",
         "both: it is paid in both", "only the one with the std",
         "only the one without: the std evens rewards out"])

# %%
def first_and_second(right, divide):
    """Advantages of eight answers, the first of them with one wait."""
    R = (torch.arange(8) < right).double()
    R[0] += 0.01
    return advantages(R, divide)[:2].tolist()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
runs = {"z-score": "With the std", "mean only": "Without it"}
told = " ".join(
    f"{name} an answer holds {min(x):.2f} to {max(x):.2f} of them, and "
    f"pass@1 ends at {min(y):.2f} to {max(y):.2f}."
    for name, x, y in ((name, recorded_runs.waits(rule)[:, -10:].mean(1),
                        recorded_runs.evaluated(rule, "pass@1"))
                       for rule, name in runs.items()))
(a, b), (c, d), (e, f) = (first_and_second(*at) for at in (
    (4, True), (8, True), (8, False)))
full = [100 * recorded_runs.all_right(rule)[:, -10:].mean()
        for rule in runs]
reveal("biases.3", "only the one with the std", told + (
    "\n\nWhy? Eight answers, the first with one `wait`. Half of them "
    f"right: it gets {a:+.2f}, a right one without {b:+.2f}. All of them "
    f"right: {c:+.2f} and {d:+.2f}. **In a group that is all right the "
    "word is the only difference, and the std makes it full size**; with "
    f"the mean alone it stays {e - f:.2f}. Such groups grow to "
    f"{full[0]:.0f} % with the std, to {full[1]:.0f} % without: that run "
    "has more of them, and ignores them.").replace("-", "−"),
    pictures.bonus_runs())

# %% [markdown]
# In a real run the hundredth is a format bonus, a length penalty, the last digits of a reward
# model. Log the std of the rewards inside the groups that are all right. Keep the std where rewards
# of unknown scale meet: then one learning rate serves them all
# ([statements](statements/09_grpo_biases.ipynb), G24).
#
# ## The length
#
# None of this explains the first picture: $s$ does not know how long an answer is. So $1/T$. Take
# the simplest policy with a length. After each token it stops, with chance $q=\sigma(\theta)$.
#
# $$\begin{aligned}
# \log\pi&=(T-1)\log(1-q)+\log q&&T-1\text{ times on, then stop}\\
# \nabla_\theta\log\pi&=-(T-1)\,q+(1-q)=1-qT&&\text{in }\theta\text{ the slope of }\log(1-q)\text{ is }-q\text{, of }\log q\text{ is }1-q
# \end{aligned}$$
#
# Undivided first. Let all answers be wrong, each with $A=-1$ however long it is; $q=0.1$, so ten
# tokens on average.

# %%
predict("biases.4", "Not divided by T. Which way is the decision to stop "
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
reveal("biases.4", "neither",
       f"Mean push {abs(undivided):.3f}. It is A times the mean score, and "
       "that is 0: the score is above 0 for answers shorter than 1/q = 10 "
       "and below 0 for longer ones, and they balance. At T = 2 it is 0.8, "
       "at T = 18 it is −0.8. **Divided by T** they are "
       f"{0.8 / 2:.2f} and −{0.8 / 18:.2f}: the short answer counts nine "
       f"times as much. The mean push is now −{-divided:.3f}: with A = −1 "
       "stopping is pushed down, so **to go on longer**.")

# %% [markdown]
# Divided by $T$, what the short answers say counts more:
#
# $$\begin{aligned}
# \mathbb E\big[A\,(1-qT)\big]&=0&&\text{a score has mean 0 (02)}\\
# \to\ \mathbb E\Big[A\,\frac{1-qT}{T}\Big]&=A\,\big(\mathbb E[\tfrac1T]-q\big)&&\textbf{a choice: divide by the answer's own length}\\
# \mathbb E[\tfrac1T]&>\frac1{\mathbb E[T]}=q&&\text{Jensen, }1/T\text{ is convex; the mean length is }1/q
# \end{aligned}$$
#
# The bracket is positive. So $A>0$: stop sooner. $A<0$: go on longer. **Short when right, long when
# wrong, though nobody asked about length.** On the running group, rewards 1, 1, 0, 0:

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
# But right and wrong answers come from one policy. The next toy first writes a verdict on its
# answer, `:` or `;`, true in so many cases of a hundred. Then it stops with one chance after `:`
# and another after `;`. Only these two chances learn, by the expected push above:

# %%
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
# Back to the transformer of the first picture, at its start. Sample 2,048 answers once. Then
# compute, for each way to divide, what the right and what the wrong answers push the decision "go
# on" by. The unit is the mean size of a token's push. The last row is a control: both divisions,
# but a coin pays instead of the grader.

# %%
predict("biases.5", "A coin pays. Which way do the wrong answers push 'go "
        "on' under GRPO?",
        ["longer: 1/T acts on every negative advantage",
         "longer, half as far: half of them are paid now",
         "on average neither way"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# 16 batches of 16 prompts, 8 answers each, from the untrained model
torch.set_default_dtype(torch.float32)         # as the model is
model, tokenizer = load(data_folder() / "model_pick", device="cpu")
sampled = sample_decisions(model, tokenizer, TASKS["pick"], batches=16,
                           prompts=16, num_generations=8, seed=0)
torch.set_default_dtype(torch.float64)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the push on "go on" under five rules, a number a batch and side
rules = {"s and 1/T (GRPO)": ("grpo", None),
         "only 1/T": ("mean_only", None),
         "only s": ("zscore_constant", None), "neither": ("dr_grpo", None),
         "s and 1/T, a coin pays": ("grpo", CoinFlip(0))}
found = {}
for name, (rule, coin) in rules.items():
    both = stop_push(sampled, ESTIMATORS[rule], *([coin] if coin else []))
    found[name] = tuple(side.batches.double().numpy()
                        for side in (both.right, both.wrong))

# %% tags=["answer", "nbval-ignore-output"] jupyter={"source_hidden": true}
# the answer
gap = recorded_runs.length_gap("GRPO, coin flip", 21, 30)
reveal("biases.5", "on average neither way",
       "The coin does not know which answers are wrong: their advantages "
       "are as often positive as negative. Trained with the coin for 30 "
       "steps, three seeds, wrong answers end " + ", ".join(
           f"{x:+.1f}" for x in gap).replace("-", "−")
       + " tokens longer than right ones.", pictures.stop_pushes(found))

# %% [markdown]
# With $1/T$ the pushes stand apart, with the std or without it. Without $1/T$ they lean a little
# the other way, about two standard errors; both rows share one sample, so that is one draw, not
# two. And trained? One more recorded run keeps the std but takes one mean over all tokens:

# %% tags=["setup"] jupyter={"source_hidden": true}
# three recorded runs
print("wrong minus right, tokens, steps 71 to 80, a number a seed")
for name, run in (("s and 1/T (GRPO)", "pick_grpo"),
                  ("s, one mean over all tokens (DAPO)", "pick_dapo"),
                  ("neither (Dr. GRPO)", "pick_dr_grpo")):
    wrong, right = (torch.tensor([
        recorded_runs.curve(run, seed, f"completions/mean_length_{side}")
        .tolist()[70:80] for seed in (0, 1, 2)])
        for side in ("wrong", "right"))
    gaps = wrong.nanmean(1) - right.nanmean(1)
    print(f"{name:36s}", "  ".join(f"{gap:+.1f}" for gap in gaps))

# %% [markdown]
# **$1/T$ drives the lengths apart. The std weighs prompts, and enlarges small differences inside a
# group.**
#
# Two things were arranged for this drift: length was free, and the model had just judged itself.
# Dr. GRPO reports longer wrong answers under GRPO on models of real size
# ([arXiv 2503.20783](https://arxiv.org/abs/2503.20783)). Which divisor do you get without asking?
# The defaults of TRL 1.16.0 and verl 0.9.1:
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
# | picture | a valley (weight) and an arch (net push); right and wrong lengths that part |
# | numbers | 15 of 16 right against 8: a quarter of the push, with the std a half · one `wait` in an all-right group: +2.64 · wrong answers 65 tokens, right 13 |
# | derived | both effects |
# | choices | both divisions |
# | needs | the std: graded rewards (with 0/1 and G = 8 we saw no effect); 1/T: a model that knows it is wrong before it stops |

# %%
print("GRPO -> Dr. GRPO, which drops both\n"
      + str(difference(ZOO["grpo"], ZOO["dr_grpo"])))
score("biases.1", "biases.2", "biases.3", "biases.4", "biases.5")

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
# a wrong one −∇p/(1−p), so the push is (A₊ − A₋)∇p: 1 without the division, 1/s with it. With
# finite groups the weight stops at √(G−1). In net push the medium prompt still leads. In our small
# run at G = 8 nothing of it was to be seen.
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
