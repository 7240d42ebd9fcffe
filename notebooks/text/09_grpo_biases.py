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
# **After this page** you can say which answers and which prompts GRPO's two divisors push harder,
# derive both effects, and look for them in a log.
#
# 38 minutes, then 8 in a second sitting · exercises 34 more · after 08 (GRPO) · GRPO:
# [arXiv 2402.03300](https://arxiv.org/abs/2402.03300) · Dr. GRPO, on the two divisors:
# [arXiv 2503.20783](https://arxiv.org/abs/2503.20783)
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
from rlnb.classroom.pictures import grpo_biases as pictures, recorded_runs
from rlnb.objective import difference
from rlnb.training import TASKS, data_folder, load, sample_decisions
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## A run in which length is free
#
# The prompt `44529:1?` asks for three of the five digits whose sum ends in 1. A small transformer
# writes two sums, then a verdict on itself: `:` for hit, `;` for missed.
#
# ```
# 5+2=7,7+4=1:wait7+4=1:       right
# 4+9=3,3+5=8;                 wrong
# ```
#
# Then it stops, or writes `wait` and repeats the last sum, as often as it likes. The grader
# reads nothing behind the verdict. Length is free, from 13 tokens to the limit of 72. At the
# start:

# %% tags=["setup", "nbval-ignore-output"] jupyter={"source_hidden": true}
# 16 batches of 16 prompts, 8 answers each, from the model before RL
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
# Now 80 steps of GRPO: 16 prompts a step, 8 answers each, no KL. A right answer
# earns 1, a wrong one 0.

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
       "On all three seeds wrong answers grow almost to the limit, and "
       "right ones shrink almost to the shortest possible. Without the two "
       "divisions (right panel) they stay within a few tokens of each "
       "other; one seed drifts down, both kinds together. Neither rule "
       "learned to solve more: pass@1 on other problems ends at "
       f"{min(ends):.2f} to {max(ends):.2f}, from "
       f"{recorded_runs.evaluated('GRPO', 'pass@1', min)[0]:.2f}.",
       pictures.length_runs(
           {"GRPO": "GRPO", "Dr. GRPO": "without the two divisions"},
           "One reward, blind to length. Thin lines: three seeds. Thick: "
           "their mean."),
       instead={
           "neither kind: nothing pays for length":
           "The reward pays nothing for it. The update turns out to.",
           "right ones: all their tokens are pushed up, repeats too":
           "All their tokens are pushed up, and yet they shrink.",
           "both alike: the policy has one habit of stopping":
           "It can have two: it writes a verdict before it stops.",
       })

# %% [markdown]
# What did that? On fresh data GRPO pushes each token of answer $i$ up by
#
# $$\frac1G\cdot\frac1{T_i}\cdot\frac{R_i-\bar R}{\sigma_R}$$
#
# The two divisors are the answer's length $T_i$ and the group's std $\sigma_R$. Constants would
# belong to the learning rate. These vary.

# %% [markdown]
# ## The length
#
# Take the simplest policy that has a length. After each token it stops with chance $q$, whose
# logit θ is its one parameter. An answer of $T$ tokens went on $T-1$ times, then stopped:
#
# $$\begin{aligned}
# \log\pi&=(T-1)\log(1-q)+\log q&&\text{one factor a token}\\
# \nabla_\theta\log\pi&=-(T-1)\,q+(1-q)=1-qT&&q=1/(1+e^{-\theta})\text{: }\log(1-q)\text{ has slope }-q\text{, }\log q\text{ has }1-q
# \end{aligned}$$
#
# Take the wrong answers: advantage $A=-1$, and with $q=0.1$ ten tokens on average. An answer
# pushes θ by $A\,(1-qT)$, or by that over $T$.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.2", "Averaged over wrong answers: where does the push on "
        "θ take the length?",
        ["undivided: neither way; divided by T: longer",
         "undivided: shorter; divided by T: neither way",
         "undivided: longer; divided by T: longer still",
         "undivided: shorter; divided by T: longer"])

# %%
q, T = 0.1, torch.arange(1.0, 3001.0)
chance = q * (1 - q) ** (T - 1)                  # of length T
undivided = -(chance * (1 - q * T)).sum()
divided = -(chance * (1 - q * T) / T).sum()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("biases.2", "undivided: neither way; divided by T: longer",
       f"Undivided, the mean push is {abs(undivided):.3f}: short answers "
       "are more frequent, long ones have larger scores. They balance "
       "(left), since the mean length is 1/q. Divided by T, long answers "
       f"hardly count (right), and the mean score is {-divided:.3f}. Times "
       "A = −1, stopping is pushed down. **The policy goes on longer.**",
       pictures.score_by_length(), instead={
           "undivided: shorter; divided by T: neither way":
           "A long answer does push down more tokens. But short ones are "
           "more frequent, and they chose to stop. Undivided that balances "
           "already.",
           "undivided: longer; divided by T: longer still":
           "Every decision to stop was part of a wrong answer. So was "
           "every decision to go on.",
           "undivided: shorter; divided by T: longer":
           "The second half is true. Undivided, frequent short answers "
           "balance rare long ones.",
       })

# %% [markdown]
# Which goal does the divided push climb? By the log-derivative trick (02), pushing each answer by a
# fixed number climbs the mean of that number. For one prompt, with the group mean $b$ held fixed:
#
# $$\begin{aligned}
# \mathbb E\big[(R-b)\,\nabla\log\pi\big]&=\nabla\,\mathbb E[R-b]=\nabla\,\mathbb E[R]&&\text{undivided: a fixed }b\text{ drops out (03)}\\
# \to\ \mathbb E\Big[\frac{R-b}T\,\nabla\log\pi\Big]&=\nabla\,\mathbb E\Big[\frac{R-b}T\Big]&&\textbf{a choice: divide by the answer's own length}
# \end{aligned}$$
#
# **Divided by $T$, the update climbs the advantage per token** (the *length bias*). A right answer
# has more of it when it is short. A wrong one loses less when it is long. In the toy, with $A=R-b$:
#
# $$\mathbb E\Big[A\,\frac{1-qT}{T}\Big]=A\,\big(\mathbb E[\tfrac1T]-q\big),\qquad\mathbb E[\tfrac1T]>\frac1{\mathbb E[T]}=q\quad\text{(Jensen: }1/T\text{ is convex)}$$
#
# So right answers push towards stopping, wrong ones towards going on.

# %% [markdown]
# A group's advantages sum to 0. So if right and wrong answers take the same decision to stop, their
# pushes cancel. **Where the decision to stop is all that differs, they part only if the model can
# tell, before it stops, that it failed.**
#
# The toy now writes `:` or `;` first. A slider says how often this verdict is true. It stops
# with one chance after `:`, with another after `;`. Only these two learn.

# %% jupyter={"source_hidden": true}
# the explorer
task("biases.t1", length_drift.length_drift_explorer(),
     ("Hide the drift: wrong answers end at 30 tokens or more, the mean of "
      "all at 10 or less. Predict first: are few answers right, or many?",
      length_drift.hidden_growth),
     ("Every right answer pushes towards stopping. Yet end with right "
      "answers at 10 tokens or more and wrong ones at 20 or more. Predict "
      "first: what could keep right answers long?",
      length_drift.held_up))

# %% [markdown]
# <details><summary>What these two tasks show</summary>
#
# 1. Many: 90 % right, a verdict true in 90 of 100 or more. Few wrong answers hardly lift the
#    mean.
# 2. A verdict that is often false: half of the answers right, true in 75 of 100. A quarter of the
#    right answers say `;`, and share its decision to stop with most wrong ones. At the end `:`
#    stands for 2 tokens, `;` for 36, so right answers average ¾ · 2 + ¼ · 36. At 50 of 100 the
#    verdict is a coin, and no length moves.
# </details>

# %% [markdown]
# ## Which divisor was it?
#
# The transformer stops behind its own verdict, so it can tell. Its run again, with each divisor on
# or off:

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
# With $1/T$ the lengths end fifty tokens apart, without it at most five. **In this run $1/T$ drives
# the lengths apart, with the std or without.**
#
# Length was free here. Elsewhere hard prompts may have longer answers and more wrong ones. So
# compare right with wrong within each prompt's group, and with a run that divides by a constant.

# %% [markdown]
# ## The std
#
# Dividing by $\sigma_R$ turns rewards of any scale into advantages of one scale. What else does it
# do?
#
# Take two prompts, each with its own logit $z$: an answer is right with chance $p=1/(1+e^{-z})$. In
# groups of sixteen, 8 are right on the first, 15 on the second.

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
# A network has no $z$ for each prompt. But $\nabla p$ is the direction in its weights that raises
# the chance $p$ of a right answer:
#
# $$\nabla p=\sum_{y\ \text{right}}\nabla\pi(y)=\sum_{y\ \text{right}}\pi(y)\,\nabla\log\pi(y)=p\;\mathbb E[\nabla\log\pi\mid\text{right}]$$
#
# So a right answer's mean score is $\nabla p/p$. Likewise a wrong one's is $-\nabla p/(1-p)$. In a
# large group a share $p$ is right, with advantage $A_+$, the rest $A_-$:
#
# $$\begin{aligned}
# \text{push}&=p\,A_+\,\frac{\nabla p}p-(1-p)\,A_-\,\frac{\nabla p}{1-p}&&\text{shares times advantage times mean score}\\
# &=(A_+-A_-)\,\nabla p&&\text{cancel}\\
# &=\nabla p&&\text{minus the mean only: }A_+=1-p,\ A_-=-p\\
# &\;\to\;\frac1{\sigma_R}\,\nabla p=\frac{\nabla p}{\sqrt{p(1-p)}}&&\textbf{a choice: divide by the group's std}
# \end{aligned}$$
#
# **The std weighs each prompt by $1/\sqrt{p(1-p)}$** (the *difficulty bias*): easy and hard ones
# most, medium ones least. But $\nabla p=p(1-p)\nabla z$ is small at both ends. Weight times
# gradient, the *net push* on $z$, is $\sqrt{p(1-p)}$: largest in the middle, as without the std,
# only flatter.

# %% jupyter={"source_hidden": true}
# the picture
pictures.valley_and_arch()

# %% [markdown]
# For one prompt this is only a step size. Across prompts it is another goal: the sum not of $p$,
# but of $2\arcsin\sqrt p$, whose slope is the weight. *Biased* means: **with either divisor the
# push is no longer the gradient of $\mathbb E[R]$.**

# %% [markdown]
# ## A bonus of a hundredth
#
# Now each `wait` in an answer, up to ten, earns 0.01 more, like a format bonus. In a group
# of eight, divided by the std, one answer holds one `wait`. Compare its advantage with that of a
# neighbour, just as right or wrong, without it.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.5", "In which group does the word gain most?",
        ["one right, seven wrong: the largest advantages",
         "four right, four wrong: the most signal",
         "the same in every group: 0.01 is 0.01",
         "all eight right: the smallest spread of rewards"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# the word's gain, folded
def word_gains(right, divide=True):
    """Eight answers, the last with one wait, against its neighbour."""
    R = (torch.arange(8) < right).double()
    R[-1] += 0.01
    A = advantages(R, divide)
    return (A[-1] - A[-2]).item()

# %% tags=["setup"] jupyter={"source_hidden": true}
# six recorded runs, read
waits = {rule: recorded_runs.waits(rule)[:, -10:].mean(1)
         for rule in ("z-score", "mean only")}
half = advantages((torch.arange(8) < 4).double())

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("biases.5", "all eight right: the smallest spread of rewards",
       f"With four right the word gains {word_gains(4):.2f}, with one "
       f"{word_gains(1):.2f}, with all {word_gains(8):.2f}. (Right against "
       f"wrong, among four and four, gains {half[0] - half[-1]:.2f}.) "
       "**Where only the word differs, the std is as small as the bonus.** "
       "In training another model ends, on three seeds each, with "
       f"{waits['z-score'].min():.2f} to {waits['z-score'].max():.2f} "
       f"`wait` an answer with the std, {waits['mean only'].min():.2f} to "
       f"{waits['mean only'].max():.2f} without.",
       pictures.bonus_runs(), instead={
           "one right, seven wrong: the largest advantages":
           "Right against wrong makes these advantages large. The word is "
           "a hundredth of that.",
           "four right, four wrong: the most signal":
           "There the std is largest, and the word is divided by it.",
           "the same in every group: 0.01 is 0.01":
           f"Without the std it is: {word_gains(8, False):.2f} everywhere.",
       })

# %% [markdown]
# So keep the std where reward scales are unknown or differ between prompts. Beware of it where a
# small bonus rides on a 0/1 reward.
#
# By default TRL 1.16.0 and verl 0.9.1 divide by the std, not by $T$: they take one mean over all
# tokens of a step. So an answer's length is a small part of its divisor, and a small part of the
# bias is left (10). TRL's `loss_type="grpo"` brings $1/T$ back.

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | GRPO's two divisors | |
# |---|---|
# | sentence | 1/T pushes wrong answers longer, right ones shorter; the std weighs easy and hard prompts most |
# | formula | push on the stop decision $A\,(\mathbb E[1/T]-q)$ · weight of a prompt $1/\sqrt{p(1-p)}$ |
# | climbs | 1/T: advantage per token; the std: $2\arcsin\sqrt p$; neither $\mathbb E[R]$ |
# | numbers | wrong answers 65 tokens, right 14 · 15 of 16 against 8: push 0.06 to 0.25, with the std 0.24 to 0.50 |
# | needs | 1/T: a model that can tell in time that it failed |
# | log | lengths of right and wrong answers within groups; groups that differ only by a bonus |

# %%
print("GRPO -> Dr. GRPO, as their papers have them. (No run on this page "
      "had the KL term.)\n" + str(difference(ZOO["grpo"], ZOO["dr_grpo"])))
score(*(f"biases.{k}" for k in (1, 2, 4, 5)))

# %% [markdown]
# ## Second sitting: what is left of the weight in small groups?
#
# The weight $1/\sqrt{p(1-p)}$ is for large groups. Take a prompt with $p=0.01$, divided by the std.
# In large groups it weighs 5.0 times as much as a medium prompt, $p=0.5$. In groups of eight most
# of its groups are **silent**: all answers are wrong, and nothing is pushed.

# %% jupyter={"source_hidden": true}
# your guess
predict("biases.6", "Groups of eight. How much does the prompt with "
        "p = 0.01 weigh, against a medium one?",
        ["about 5.0 times as much", "about 2.6 times as much",
         "about 1.4 times as much", "about 0.4 times as much"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
rare = prompt_weight.compute(0.01, 8)
assert abs(0.5 / (0.01 * 0.99)**0.5 - 5.03) < 0.01
reveal("biases.6", "about 1.4 times as much",
       f"Exactly {rare['ratio']:.2f}. Nearly every group that is not "
       "silent has one right answer against seven, however small p is. So "
       f"the weight is {rare['weight']['divided']:.2f}, just under √7. The "
       f"medium prompt has {rare['medium']['divided']:.2f}. **No weight "
       "passes √(G−1).**", instead={
           "about 5.0 times as much":
           "That needs groups in which a share p is right. In eight "
           "answers the smallest share is an eighth.",
           "about 2.6 times as much":
           "That is its weight. The medium prompt has one, too.",
           "about 0.4 times as much":
           "Silent groups cost both rules alike: without the std the "
           "weight is 7/8 at every p.",
       })

# %% [markdown]
# In the explorer you choose a prompt B; its rival is right half of the time. The dashed line is the
# rule without the std, one weight for all prompts.

# %% jupyter={"source_hidden": true}
# the explorer
task("biases.t2", prompt_weight.prompt_weight_explorer(),
     ("Divided by the std, give B at least 1.5 times the medium prompt's "
      "weight and at least half of its net push. Predict first: does it "
      "take a harder prompt, a larger group, or both?",
      prompt_weight.heavy_and_pushed))

# %% [markdown]
# <details><summary>What this task shows</summary>
#
# Both, and not too hard a prompt: p = 0.1 with G = 32 does it. A harder prompt has less push, and
# from G = 4 on more weight. A larger group lifts its weight, since one right answer can stand
# against more wrong ones. With 16 answers or fewer no prompt does it.
# </details>
#
# Does the weight show in training? A model learned seven types of sums at once. At the start it
# solved 11 % of the hardest type, and nearly all of the easiest. It had $G=8$, 40 steps of AdamW
# and three seeds, with the std and without. AdamW rescales each parameter's step, which takes out
# most of a factor common to all prompts. What can show is the ratio between prompts.

# %% tags=["setup"]
# pass@1 per type, with the std minus without, mean of steps 10 to 40
with_std, without = (torch.stack([
    torch.from_numpy(recorded_runs.by_difficulty(rule, step))
    for step in (10, 20, 30, 40)]) for rule in ("z-score", "mean only"))
apart = (with_std - without).mean((0, 1))        # (types,)
ratio = prompt_weight.compute(0.11, 8)["ratio"]
print("hardest to easiest:", *(f"{x:+.3f}" for x in apart))
print(f"weight at 11 %, against a medium prompt: {ratio:.2f} at G = 8, "
      f"{0.5 / (0.11 * 0.89)**0.5:.2f} in large groups")

# %% [markdown]
# Averaged over the three seeds and four evaluations, no type's pass@1 differed by 0.02. A ratio of
# 1.24 leaves little to see. Large groups would give 1.60; we have not run them. **On this page
# the length bias shows in a run, the difficulty bias only in the formula.**
# Every seed is on the [statements page](statements/09_grpo_biases.ipynb).

# %%
score("biases.6")

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
# graded, negative, or twelve times `700.1` in float32.
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
# It climbs something else than the expected reward. Dividing by T climbs advantage per token.
# Dividing by the std climbs 2 arcsin √p of each prompt, with 0/1 rewards in large groups; for one
# prompt that is only a step size. Not every bias hurts: the answer's own reward in the group mean
# costs a factor (G−1)/G.
# </details>
# <details><summary><b>Why do wrong answers get longer under GRPO?</b></summary>
#
# Dividing by its own length punishes a long wrong answer less per token. The push on the stop
# decision is A(E[1/T] − q), and E[1/T] > q: stop sooner when right, go on when wrong. It needs a
# model that can tell it is wrong before it stops. In our run wrong answers reached 65 tokens, right
# ones 14.
# </details>
# <details><summary><b>Answers grow during training. Proof of reasoning?</b></summary>
#
# No: 1/T alone lengthens wrong answers. Compare right with wrong within each group, for hard
# prompts may be both longer and more often wrong. Then compare with a run that divides by a
# constant. If right answers grow there too, and held-out pass@1 rises with them, that speaks for
# reasoning.
# </details>
# <details><summary><b>What does dividing by the std do to easy and hard prompts?</b></summary>
#
# It weighs each prompt's gradient by 1/√(p(1−p)), easy and hard alike. A right answer carries ∇p/p,
# a wrong one −∇p/(1−p), so the push is (A₊ − A₋)∇p: ∇p without the division, ∇p/σ_R with it. On its
# logit the medium prompt is still pushed most. In small groups the weight stops at √(G−1).
# </details>
#
# The other three can wait for another evening.
#
# <details><summary><b>How large must G be before the std's weighting matters?</b></summary>
#
# Eight was too few to see it in our run. There a prompt at 11 % weighs 1.24 times a medium one, and
# no type's pass@1 moved by 0.02. Large groups would give 1.60; we have not run them. Rarer
# prompts gain more, but no weight passes √(G−1), and their gradient is
# small. <!-- cited: 1.24, 1.60, 0.02 -->
# </details>
# <details><summary><b>When would you keep the std?</b></summary>
#
# When reward scales differ between prompts or are unknown: one learning rate then serves them all.
# Drop it with small bonuses or noisy scorers. With 0/1 rewards at G = 8 it made no visible
# difference in our run.
# </details>
# <details><summary><b>Does a small std blow up the gradient?</b></summary>
#
# No: no advantage passes √(G−1). But in a group that is all right a bonus of 0.01 becomes as large
# as right against wrong elsewhere. Our model
# learned to write the word that earned it, on three seeds of three; without the std on none.
# </details>
#
# The sentences that one hears about the two divisors, true or not:
# [statements 09](statements/09_grpo_biases.ipynb). The exercises, solved:
# [solutions 09](solutions/09_grpo_biases.ipynb).
#
# **Next: [10](10_dr_grpo.ipynb).** Take both divisors out. What is left, and how should tokens be
# averaged then?
