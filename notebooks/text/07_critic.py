# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 · The critic: who says how good a token was?
#
# **After this page** you can derive GAE line by line, say what a wrong critic does to a gradient,
# and count the four models of PPO in memory.
#
# 38 minutes, then 10 in a second sitting · exercises 25 more · after 03 (baselines), 05 (KL), 06
# (PPO) · Schulman et al. 2015 (GAE), [arXiv 1506.02438](https://arxiv.org/abs/1506.02438)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What may be subtracted from the reward without changing the mean gradient?</summary>Any number that does not depend on the token drawn: the score ∇log π has mean 0 (03).</details>
# <details><summary>2. An answer was right. Which advantage did each of its tokens have in 06?</summary>All the same: reward minus the group's mean.</details>
# <details><summary>3. A token is a choice of two, and one of them has chance p. What is the score on its logit?</summary>1 − p when it was drawn, −p when it was not (02).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from torch.nn.functional import pad
from rlnb import check
from rlnb.classroom.explorers import wrong_critic
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import critic as pictures
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy: draws answers; unfold it if you like
T, PLAN, RESULT = 200, 60, 140
logits = torch.zeros(1, T + 1)  # the last: the result after a good plan
logits[0, [PLAN, RESULT, T]] = torch.tensor([0.4, 0.2, 0.9]).logit()

def dice(seed):
    return torch.Generator().manual_seed(seed)

def write(z, n, dice):
    """n answers per row of z: score and state (rows, n, T), reward."""
    p = z.sigmoid()[:, None].repeat(1, n, 1)
    u = torch.rand(len(z), n, T, generator=dice)
    good = u[..., PLAN] < p[..., PLAN]
    p[..., RESULT] = torch.where(good, p[..., T], p[..., RESULT])
    y = (u < p[..., :T]).double()            # 1 or 0: which of the two
    state = torch.zeros(y.shape, dtype=torch.long)
    state[..., PLAN + 1:RESULT + 1] = torch.where(good, 1, 2)[..., None]
    state[..., RESULT + 1:] = 4 - y[..., [RESULT]].long()
    return y - p[..., :T], state, y[..., RESULT]

# %% [markdown]
# ## One reward, 200 tokens
#
# An answer has 200 tokens and one reward. Does the reward say which of them were good?
#
# **The toy.** Each token is a choice of two. Two tokens decide:
#
# * Token 60 picks a **plan**. The good plan comes with chance 0.4.
# * Token 140 writes the **result**. It is right with chance 0.9 after the good plan, and 0.2 after
#   the bad one. Right earns 1, wrong 0.
#
# So an answer is right with chance $0.4\cdot0.9+0.6\cdot0.2=0.48$. The other 198 tokens are wording
# and change nothing.
#
# The policy writes eight answers. The tokens of an answer share one advantage: its reward minus the
# mean of the eight. A token's gradient is its score times this advantage, here averaged over the
# eight:

# %%
s8, state8, R8 = write(logits, 8, dice(0))    # score, state, reward
same = s8 * (R8 - R8.mean())[..., None]       # one number for all tokens

# %% jupyter={"source_hidden": true}
# the picture
pictures.pushes({"8 answers, one advantage per answer": same[0].mean(0)},
                named={"plan": PLAN, "result": RESULT},
                caption=(
    "The mean gradient on each token's logit. At the two named tokens, up "
    "is towards the good plan and towards the right result."))

# %% [markdown]
# Over all possible answers only the two named bars remain.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.1", "How many answers must a batch have, if the plan's "
        "bar is to be longer than all 198 wording bars in nine batches out "
        "of ten?",
        ["about 12", "about 20", "about 40", "about 200"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
words = [t for t in range(T) if t not in (PLAN, RESULT)]
def longest(n):
    """The share of 1,000 batches of n in which the plan beats wording."""
    found = 0
    for seed in range(10):
        s, _, R = write(logits.expand(100, -1), n, dice(seed))
        A = (R - R.mean(1, keepdim=True))[..., None]
        bars = (s * A).mean(1).abs()
        others = bars[:, words].max(1).values
        found += (bars[:, PLAN] > others + 1e-9).sum().item()
    return found / 1000

won = {n: longest(n) for n in (8, 12, 20, 40)}
assert won[8] < 0.08 and won[20] < 0.6 and 0.9 < won[40] < 0.94

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("critic.1", "about 40",
       f"With 40 it is so in {won[40]:.0%} of 1,000 batches, with 8 in "
       f"{won[8]:.0%}. Every wording token shares the advantage, so its "
       "bar is noise, and four times as many answers only halve it. And in "
       "a network all tokens share the weights: a push on a wording token "
       "moves the plan as well.",
       instead={
           "about 12":
           "Most wording bars are shorter by then. The longest of the 198 "
           f"is shorter in {won[12]:.0%} of the batches.",
           "about 20":
           f"Then it is so in {won[20]:.0%} of the batches.",
           "about 200":
           "Fewer will do: at 40 the noise of a bar is already less than "
           "half of that at 8.",
       })

# %% [markdown]
# ## A guess at every token
#
# Can each token get an advantage of its own? Somebody, the **critic**, watches the answer being
# written and says before every token which reward to expect: the **value** $V_t$.
#
# In the toy the value is the chance to end right. For now the critic knows it: 0.48 before the
# plan, then 0.9 or 0.2, after the result 1 or 0. Give each token the change it brought:

# %% jupyter={"source_hidden": true}
# the picture
rows = {"good plan, result wrong": (1, 4),
        "bad plan, result right": (2, 3)}
truth = torch.tensor([0.48, 0.9, 0.2, 1.0, 0.0])      # value in each state
stairs = {}
for name, (plan, end) in rows.items():
    path = torch.tensor([0] * 61 + [plan] * 80 + [end] * 59)
    stairs[name] = (truth[path].tolist(), float(end == 3))
pictures.two_answers(stairs, (PLAN, RESULT), caption=(
    "The value along two answers. Each step is the credit of the token "
    "that made it. Wording makes no step."))

# %% [markdown]
# **A wrong answer can hold a good token:** on the left the plan gets +0.42. The change in the value
# is the **surprise**, or TD residual (temporal difference):
#
# $$\delta_t=r_t+V_{t+1}-V_t$$
#
# Here $r_t$ is the reward paid at token $t$, in the toy 0 before the last. The value after the end
# is 0. RLHF often pays the KL (05) here, at every token; $V$ then has to expect it too.

# %%
def surprise(V, r):
    """V and r (..., T): value before, reward at each token -> delta."""
    return r + pad(V[..., 1:], (0, 1)) - V

V8 = torch.tensor([0.48, 0.9, 0.2, 1.0, 0.0])[state8[0]]     # (8, 200)
r8 = pad(R8[0][:, None], (T - 1, 0))          # R on the last token, else 0

# %% jupyter={"source_hidden": true}
# the picture
pictures.pushes({"the same 8 answers, advantage = surprise":
                 (s8[0] * surprise(V8, r8)).mean(0)},
                named={"plan": PLAN, "result": RESULT},
                caption="A critic that knows leaves no noise on wording.")

# %% [markdown]
# What becomes of the plan's mean? With one advantage per answer, $ $, either plan gets +0.52
# or −0.48. With the surprise a good plan gets +0.42, whatever the result, and a bad one −0.28.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.2", "Over all possible answers, the mean gradient on the "
        "plan is 0.168 with R − 0.48. What is it with the surprise?",
        ["0.204", "0.168", "0.136", "0.084"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
chance = torch.tensor([0.36, 0.04, 0.12, 0.48])     # the four outcomes
plan_score = torch.tensor([0.6, 0.6, -0.4, -0.4])
push = chance * plan_score
each = push * torch.tensor([0.52, -0.48, 0.52, -0.48])      # R - 0.48
now = (push * torch.tensor([0.42, 0.42, -0.28, -0.28])).sum()
assert torch.isclose(each.sum(), torch.tensor(0.168))
assert torch.isclose(now, torch.tensor(0.168))
assert abs(each[[0, 3]].sum() - 0.204) < 0.001       # no lucky ones

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("critic.2", "0.168",
       "The same. After a good plan the result is right 9 times in 10, "
       "and 0.9 · 0.52 − 0.1 · 0.48 = 0.42. So its surprise is the mean "
       "of what it got before. **The luck of later tokens is "
       "averaged out, and the mean stays.**",
       instead={
           "0.204":
           "That leaves out the right result after a bad plan and the "
           "wrong one after a good plan. +0.42 and −0.28 are means over "
           "both results.",
           "0.136":
           "+0.42 is less than +0.52. But the −0.48 after a wrong result "
           "is gone as well.",
           "0.084":
           "The two tokens do not share one credit. The result's part in "
           "the plan's advantage was luck, and its mean was 0.",
       })

# %% [markdown]
# Is that so in general? Let $b$ be any constant and $R_{\ge t}$ the return to go, the rewards from
# token $t$ on. $V_t$ is its mean over the answers this policy writes after the tokens before $y_t$.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E\big[\textstyle\sum_t(R-b)\,\nabla\log\pi(y_t)\big]&&\text{REINFORCE with a baseline (02, 03)}\\
# &=\mathbb E\big[\textstyle\sum_t(R_{\ge t}-V_t)\,\nabla\log\pi(y_t)\big]&&V_t\text{ and rewards before }y_t\text{ do not depend on }y_t\text{: also baselines}\\
# &=\mathbb E\big[\textstyle\sum_t(r_t+V_{t+1}-V_t)\,\nabla\log\pi(y_t)\big]&&\text{mean over what comes after }y_t\text{: }R_{\ge t}\text{ becomes }r_t+V_{t+1}\\
# &\approx\mathbb E\big[\textstyle\sum_t(r_t+\hat V_{t+1}-\hat V_t)\,\nabla\log\pi(y_t)\big]&&\textbf{a choice: believe a network's guess }\hat V
# \end{aligned}$$
#
# $r_t+V_{t+1}$ is the action's value $Q_t$, so the surprise is the
# **advantage** $A=Q-V$. To believe $\hat V_{t+1}$ in place of the rewards to come is to
# **bootstrap**; a method that does so is an **actor-critic**.
#
# <details><summary>One level deeper: why the third line is allowed</summary>
#
# Take all answers that agree up to and with $y_t$. Among them $V_t$ and $\nabla\log\pi(y_t)$ are
# fixed. Only $R_{\ge t}$ varies, and its mean is $r_t+V_{t+1}$ by definition. Put in its place, it
# changes no mean over all answers. What goes is the spread of $R_{\ge t}$: noise.
# </details>

# %% [markdown]
# ## A critic that errs
#
# What does a wrong value do to the gradient? In the 80 values from the plan to the result, the
# critic now has the plans the wrong way round: 0.5 after the good one, 0.7 after the bad one.
# Elsewhere it knows the truth. Each token gets its surprise.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.3", "Take the mean gradient over all possible answers. "
        "Where does the error spoil it?",
        ["at the plan", "at the result", "at the plan and the result",
         "at every token from 60 to 140"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
result_score = torch.tensor([0.1, -0.9, 0.8, -0.2])
end = torch.tensor([1.0, 0.0, 1.0, 0.0])
means = {}
for name, after in (("a critic that knows", [0.9, 0.9, 0.2, 0.2]),
                    ("wrong way round", [0.5, 0.5, 0.7, 0.7])):
    middle = torch.tensor(after)
    at_plan = plan_score * (middle - 0.48)            # λ = 0
    at_result = result_score * (end - middle)
    means[name] = [(chance * g).sum().item()
                   for g in (at_plan, at_result)]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("critic.3", "at the plan",
       "There it turns the sign: the better plan becomes rarer. The plan's "
       "surprise *believes* a wrong value. The result's surprise "
       "*subtracts* a wrong value, which was known before the token was "
       "drawn: a baseline. **An error in what you subtract changes the "
       "noise. An error in what you believe can change the direction.** "
       "(It does not if both plans are wrong by the same. Then it is a "
       "baseline again.)",
       pictures.credit(means,
                       ("token 60, the plan", "token 140, the result"),
                       caption="The mean over all answers. Up is towards "
                               "the good plan and the right result."),
       instead={
           "at the result":
           "There the wrong value is only subtracted: a baseline.",
           "at the plan and the result":
           "The plan, yes. The result gains and loses nothing in the mean.",
           "at every token from 60 to 140":
           "Between the two, both values of a surprise are wrong by the "
           "same, and the error cancels.",
       })

# %% [markdown]
# ## How long to wait
#
# Can one believe the critic less? The surprise believes it after one token. Wait $n$ tokens
# instead. The values in between cancel (they telescope):
#
# $$A^{(n)}_t=r_t+\dots+r_{t+n-1}+\hat V_{t+n}-\hat V_t=\delta_t+\delta_{t+1}+\dots+\delta_{t+n-1}$$
#
# With $n$ past the end this is $R_{\ge t}-\hat V_t$, and no value is believed.
#
# Which $n$? **Generalised advantage estimation**, GAE, is a weighted mean over all of them.
#
# $$\begin{aligned}
# A_t&=(1-\lambda)\big[A^{(1)}_t+\lambda A^{(2)}_t+\lambda^2A^{(3)}_t+\dots\big]&&\textbf{a choice: one more token of waiting counts }\lambda\textbf{ times as much}\\
# &=(1-\lambda)\big[\delta_t(1+\lambda+\lambda^2+\dots)+\delta_{t+1}(\lambda+\lambda^2+\dots)+\dots\big]&&\text{telescoped; collected by }\delta\\
# &=\delta_t+\lambda\,\delta_{t+1}+\lambda^2\delta_{t+2}+\dots&&1+\lambda+\lambda^2+\dots=1/(1-\lambda)\\
# &=\delta_t+\lambda A_{t+1}&&\text{from the second term on it is }\lambda A_{t+1}
# \end{aligned}$$
#
# The last line is a loop from the end to the start. With a discount $\gamma$ per
# token, $\delta_t=r_t+\gamma\hat V_{t+1}-\hat V_t$ and $A_t=\delta_t+\gamma\lambda A_{t+1}$. For
# language models $\gamma$ is usually 1: below 1, the longer answer gets less for the same reward.
#
# <details><summary>One level deeper: the answer ends, the series does not</summary>
#
# Let $m$ tokens be left, $y_t$ included. Every wait of $m$ or more gives $R_{\ge t}-\hat V_t$, and
# the weights of these waits sum to $\lambda^{m-1}$. So the last surprise counts $\lambda^{m-1}$, as
# in the third line. At λ = 1 the first line is 0 times infinity: take the third.
# </details>

# %%
def gae(V, r, lam):
    """V and r (..., T) -> advantages (..., T)."""
    A, backwards = 0.0, []
    for delta in reversed(surprise(V, r).unbind(-1)):
        A = delta + lam * A
        backwards.append(A)
    return torch.stack(backwards[::-1], -1)

V3, r3 = torch.tensor([0.2, 0.5, 0.7]), torch.tensor([0.0, 0.0, 1.0])
print([round(a, 4) for a in gae(V3, r3, 0.95).tolist()])

# %% [markdown]
# From the right: $1-0.7=0.3$, then $0.2+0.95\cdot0.3=0.485$, then $0.3+0.95\cdot0.485=0.7608$.
#
# **Try it.** What are the three numbers at λ = 0, and at λ = 1? Say them, then put the λ into the
# cell.
#
# <details><summary>What you see</summary>
#
# At λ = 0 they are the surprises: 0.3, 0.2 and 0.3. At λ = 1 each is 1 minus the value: 0.8, 0.5
# and 0.3. <!-- cited: 0.3, 0.2, 0.8, 0.5 -->
# </details>
#
# So λ = 1 believes only the reward. What does waiting cost?
# Take the same eight answers and the critic that knows. At λ = 0 wording had no bars.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.6", "Which wording tokens get noise at λ = 1?",
        ["none of them", "the 79 between plan and result",
         "the 139 before the result", "all 198"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
at_1 = gae(V8, r8, 1.0).abs().amax(0)          # the largest of the eight
noisy = [t for t in words if at_1[t] > 1e-9]
assert noisy == [t for t in words if t < RESULT] and len(noisy) == 139
reveal("critic.6", "the 139 before the result",
       "At λ = 1 a wording token gets R − V: the luck of all that comes "
       "after it, the result's and before token 60 the plan's too. Once "
       "the result is written, V = R and no luck is left. At λ = 0.95 the "
       "luck reaches back some 1/(1 − λ) = 20 tokens. **λ trades the "
       "critic's bias against the noise of later tokens.**",
       pictures.pushes({f"λ = {lam:g}": (s8[0] * gae(V8, r8, lam)).mean(0)
                        for lam in (0.95, 1)},
                       named={"plan": PLAN, "result": RESULT},
                       caption="The same eight answers, the critic that "
                               "knows, two more λ."),
       instead={
           "none of them":
           "That is λ = 0, where the critic is believed. At λ = 1 it is "
           "only subtracted.",
           "the 79 between plan and result":
           "Those too. The tokens before the plan get the result's luck "
           "and the plan's.",
           "all 198":
           "Without a critic, yes. Here V = R after the result.",
       })

# %% [markdown]
# How long must one wait with the critic that has the plans the wrong way round?

# %% jupyter={"source_hidden": true}
# the explorer
task("critic.t1", wrong_critic.wrong_critic_explorer(),
     ("λ = 0.95. Say first: if the error lasts 40 tokens, does the good "
      "plan become likelier? Then find the shortest error that turns the "
      "sign.",
      wrong_critic.turned_at_95),
     ("The error lasts 10 tokens. At which λ is the plan's gradient, from "
      "a batch of 8, least off? Say first: below 0.95, above it, or 1? "
      "Then find it.",
      wrong_critic.least_off))

# %% [markdown]
# **Why?** The plan's surprise favours the good plan by the lead that the critic claims, 0.5 − 0.7 =
# −0.2. The true lead is 0.9 − 0.2 = 0.7. When the error ends, $d$ tokens later, the surprise there
# adds the missing 0.9, and GAE counts it $\lambda^d$. So the mean gradient is
# $0.4\cdot0.6\,(-0.2+0.9\lambda^d)$, and above λ = 2/9 an error of one token is outvoted. **λ
# counts tokens:** 0.95 is a long wait against that error, a short one against an error of a
# paragraph.
#
# <details><summary>What the tasks show</summary>
#
# 1. No: 30 turn the sign. $0.95^{30}$ is the first power below 2/9.
# 2. 0.99, off by 0.041. <!-- cited: 0.041, 0.089, 0.064, 0.996, 0.0008, 0.42 --> The missing 0.9
#    comes after 10 tokens and counts $0.99^{10}=0.90$; the result's luck comes after 80 and counts
#    $0.99^{80}=0.45$. At 0.95 the bias leaves it off by 0.089; at 1 the luck counts in full, 0.064.
#    More answers lower the noise, not the bias: with 64 the best λ is 0.996. Here it stays below 1:
#    a small step ε down from 1 adds bias² of order ε², and saves noise² of order ε.
# </details>
#
# **By hand.** A new critic says 0 everywhere. What does the plan of a right answer get at λ = 0.95?
#
# <details><summary>What the plan gets</summary>
#
# The only surprise is 1, at the last token, 139 tokens later. So the plan gets $0.95^{139}$, which
# is 0.0008. The critic that knows gives it 0.42. First the critic has to learn.
# </details>

# %% [markdown]
# ## The price
#
# What does a critic cost? A real one has to read the plan from the tokens. Usually it is a second
# network, begun as a copy of the policy or reward model. It may be smaller: InstructGPT had
# 6 <!-- cited: 6, 175 --> billion parameters beside 175. A head on the policy saves the network,
# but then two losses pull on one.
#
# RLHF adds the **reference** of 05 and a **reward model**. In mixed precision a model in training
# costs 16 bytes per parameter: weight 2, gradient 2, float32 copy 4, Adam's moments 8. A frozen one
# costs 2.

# %% jupyter={"source_hidden": true}
# the picture
four = {"policy": 16, "critic": 16, "reference": 2, "reward model": 2}
def without(*names):
    return {k: v for k, v in four.items() if k not in names}

pictures.memory({"PPO, four models": four,
                 "grader is a program": without("reward model"),
                 "and no KL": without("reward model", "reference"),
                 "and no critic": without("reward model", "reference",
                                          "critic")},
                ("policy", "critic"), caption=(
    "Four models of one size, without activations. Of what can go, the "
    "critic is the largest."))

# %% [markdown]
# **By hand.** Each model has 7 billion parameters. How many gigabytes is that?
#
# <details><summary>Gigabytes</summary>
#
# 36 times 7 is 252 GB, 2.25 <!-- cited: 2.25 --> times the policy alone. The old
# policy of 06 is no fifth model: it is one stored log-probability per sampled token.
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | the critic | |
# |---|---|
# | sentence | a critic says before every token which reward to expect; a token gets the change; λ says how long to wait before believing |
# | formula | $\delta_t=r_t+\gamma V_{t+1}-V_t$, $\;A_t=\delta_t+\gamma\lambda A_{t+1}$ |
# | ends | λ = 0: the surprise, the critic's errors in full · λ = 1: $R_{\ge t}-V_t$, no bias, all later luck |
# | picture | the staircase: only its steps are credit |
# | numbers | toy: 0.95 outvotes an error of 29 tokens, not of 30 · PPO: 36 bytes a parameter, 16 of them the critic |
# | since 06 | the advantage: from one per answer to one per token |

# %%
score("critic.1", "critic.2", "critic.3", "critic.6")

# %% [markdown]
# ## Second sitting: how does the critic learn?
#
# So far somebody handed us the values. Now the critic learns beside the policy, from the same eight
# answers. Does it pay?
#
# ### Train both
#
# The **policy** has eight weights. Each token has a fixed list of eight random numbers, and its
# logit moves by the dot product of list and weights. So a push on one token moves all.
#
# The **critic** is a table with a value for each of five states: no plan yet, good plan, bad plan,
# right, wrong. (It is told the state. A real critic must read it from the text.) Weights and values
# start at 0.
#
#     20 times:
#         write 8 answers
#         A = gae(V, r, λ)               no critic: reward minus mean
#         V = mean of A + V in each state       the critic's fit
#         weights += rate · mean of score · A
#
# $A_t+V_t$ is the critic's **target**. Four rules, each at six learning rates:

# %% tags=["setup"] jupyter={"source_hidden": true}
# the critic's side: true values, and its line repeated
def values(z):
    """True value in each of the five states, (rows, 5)."""
    plan, bad, good = z[:, [PLAN, RESULT, T]].sigmoid().unbind(1)
    start = plan * good + (1 - plan) * bad
    return torch.stack([start, good, bad, good * 0 + 1, good * 0], 1)

def rounds_more(V, state, R, times):
    """Fits to new targets at λ = 0, from the counted moves of states."""
    move = (5 * state[..., :-1] + state[..., 1:]).flatten(1)
    moves = torch.zeros(len(V), 25).scatter_add(
        1, move, torch.ones(move.shape)).view(-1, 5, 5)
    end = state[..., -1]
    paid = torch.zeros_like(V).scatter_add(1, end, R)
    seen = torch.zeros_like(V).scatter_add(1, end, torch.ones_like(R))
    seen = seen + moves.sum(2)
    for _ in range(times):
        target = (paid + (moves @ V[..., None])[..., 0]) / seen.clamp(min=1)
        V = torch.where(seen > 0, target, V)
    return V

# %% tags=["setup"] jupyter={"source_hidden": true}
# the loop above, for all seeds at once
def train(lam, lr, n=8, start=0.0, rounds=1, batches=20, leads=False):
    """Chance to be right at the end, (seeds,), or all values with the
    critic's (leads). lam None: no critic."""
    g, seeds = dice(0), 200
    features = torch.randn(seeds, T + 1, 8, generator=g) / 8**0.5
    w, V = torch.zeros(seeds, 8, 1), torch.full((seeds, 5), start)
    for _ in range(batches):
        s, state, R = write((features @ w)[..., 0] + logits, n, g)
        A = (R - R.mean(1, keepdim=True))[..., None].expand_as(s)
        if lam is not None:
            at, r = state.flatten(1), pad(R[..., None], (T - 1, 0))
            before = V.gather(1, at).view_as(s)
            A = gae(before, r, lam) if lam else surprise(before, r)
            V = V.scatter_reduce(1, at, A.flatten(1) + V.gather(1, at),
                                 "mean", include_self=False)
            if rounds > 1:                                   # λ = 0 only
                V = rounds_more(V, state, R, rounds - 1)
        after_good = (state[..., [RESULT]] == 1) * (s * A)[..., [RESULT]]
        push = torch.cat([s * A, after_good], -1)
        push[..., [RESULT]] -= after_good    # two logits for the result
        w = w + lr * (push.mean(1)[:, None] @ features).mT
    truth = values((features @ w)[..., 0] + logits)
    return (V, truth) if leads else truth[:, 0]

# %% jupyter={"source_hidden": true}
# the picture
rates = (2, 4, 8, 16, 32, 64)
rules = {"no critic": None, "λ = 0": 0.0, "λ = 0.95": 0.95, "λ = 1": 1.0}
arms = {name: torch.stack([train(lam, lr) for lr in rates])
        for name, lam in rules.items()}
pictures.rates_sweep(rates, arms, caption=(
    "After 20 batches of 8 answers; mean of 200 seeds, bars two standard "
    "errors."))

# %% [markdown]
# Each at its best rate, λ = 0.95 beats no critic, λ = 1 does as well as none, and λ = 0 ends last.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.5", "Which change takes λ = 0 past λ = 0.95, each at its "
        "best rate?",
        ["16 answers per batch, not 8",
         "V = 0.48 at the start, not 0",
         "40 fits per batch, all to the same targets",
         "40 fits per batch, each to new targets"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def changed(**change):
    return torch.stack([train(0.0, lr, **change) for lr in rates])

tried = {"λ = 0 as it was": arms["λ = 0"],
         "16 answers": changed(n=16),
         "V starts at 0.48": changed(start=0.48),
         "40 fits, same targets": arms["λ = 0"],   # the first is exact
         "40 fits, new targets": changed(rounds=40),
         "λ = 0.95, one fit": arms["λ = 0.95"]}
ahead = (1 - 0.95**80) / (1 - 0.95) / 80     # mean of 0.95^k, k < 80
best = [runs.mean(1).max().item() for runs in tried.values()]
assert max(best[:4]) < best[5] - 0.03 < best[5] < best[4]
(said, true), (slow, _) = (
    [(v[:, 1] - v[:, 2]).mean().item()          # good minus bad plan
     for v in train(lam, lr, batches=8, leads=True)]
    for lam, lr in ((0.95, 8), (0.0, 32)))
assert abs(said - true) < 0.05 and abs(slow) < 0.005

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("critic.5", "40 fits per batch, each to new targets",
       "After a good plan come 80 tokens in one state. At λ = 0 the target "
       "of 79 of them is that state's own old value. So one fit, however "
       "exact, moves the value by 1/80 of the way. Made anew, the targets "
       "have moved, and the next fit goes on. At λ = 0.95 each target "
       f"looks further ahead, and one fit moves the value by {ahead:.2f} "
       "of the way. After 8 batches at its best rate the critic gives the "
       f"good plan a lead of {said:.2f} ({true:.2f} is true); at λ = 0, "
       f"{slow:.2f}. **With a small λ a critic learns slowly.** (One toy, "
       "a table told its state: no ranking of λ for language models.)",
       pictures.best_of(tried, caption=(
           "Right at the end, at the best of six rates; 200 seeds, bars "
           "two standard errors.")),
       instead={
           "16 answers per batch, not 8":
           "Less noise. But the values move as slowly as before.",
           "V = 0.48 at the start, not 0":
           "That sets the level. What is missing is the gap between the "
           "two plans.",
           "40 fits per batch, all to the same targets":
           "The table reaches these targets in one fit. (PPO's epochs keep "
           "the targets too; a network needs several to reach them.)",
       })

# %% [markdown]
# ### What the critic learns from
#
# A network's critic descends the squared distance to its target. At λ < 1 the target contains what
# the critic itself says later. Libraries hold the target fixed: no gradient flows through it. Must
# one?

# %%
def critic_loss(V, r, held=True):
    """V and r (..., T) -> the squared error to the target, λ = 0."""
    target = surprise(V, r) + V
    if held:
        target = target.detach()
    return ((V - target) ** 2).sum(-1) / 2

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.4", "The policy stays, and the toy's table is trained to "
        "the end on all answers, with held=False. What does it say after "
        "a good plan, where 0.90 is true?",
        ["0.00", "0.48", "0.60", "0.90"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
paths = torch.tensor([[0] * 61 + [plan] * 80 + [end] * 59
                      for plan, end in ((1, 3), (1, 4), (2, 3), (2, 4))])
paid = pad(torch.tensor([[1.0], [0.0], [1.0], [0.0]]), (T - 1, 0))

def trained(held):
    V = torch.zeros(5, requires_grad=True)
    for _ in range(1000):
        error = (chance * critic_loss(V[paths], paid, held)).sum()
        slope, = torch.autograd.grad(error, V)
        V = (V - 0.5 * slope).detach().requires_grad_()
    return V.detach()

ends = {name: trained(held) for name, held in
        (("target held fixed", True), ("not held fixed", False))}
good, bad = ends["not held fixed"][1:3].tolist()
assert round(good, 2) == 0.60
assert abs(ends["target held fixed"][1] - 0.9) < 1e-9

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("critic.4", "0.60",
       f"And {bad:.2f} after a bad plan: a lead of {good - bad:.2f} in "
       "place of 0.70. What comes next is open, so no critic can bring the "
       "squared surprise to 0. With the target held fixed, it can only "
       "move a value to the mean of what follows. Not held, it also moves "
       "the later values towards the earlier one, the good plan's and the "
       "bad plan's alike. **That flattens the staircase, and the steps "
       "were the credit.**",
       pictures.two_answers(
           {name: (V[paths[0]].tolist(), 1.0) for name, V in ends.items()},
           (PLAN, RESULT), caption=(
               "A right answer with a good plan, two critics trained to "
               "the end.")),
       instead={
           "0.00":
           "The reward at the end is not the critic's own word, so 0 "
           "everywhere is surprised there.",
           "0.48":
           "One number everywhere is surprised once, at the end. But then "
           "by about a half.",
           "0.90":
           "If only one answer were possible, V would be R, held or not. "
           "Here what follows is open.",
       })

# %% [markdown]
# At λ = 1 the target is the return, and there is nothing to hold.
#
# **In a real run** log the critic's explained variance, $1-\mathrm{Var}(R-V)/\mathrm{Var}(R)$. A
# constant has 0, and below 0 the critic is worse than a constant. Even the true critic has less
# than 1. An error that is the same everywhere does not show: log the mean of $R-V$ too.
#
# <details><summary>One level deeper: three details they may ask for</summary>
#
# * PPO keeps values, advantages and targets for all epochs of a batch. Andrychowicz et al. 2020
#   ([arXiv 2006.05990](https://arxiv.org/abs/2006.05990)) advise new advantages at each pass.
# * VAPO ([arXiv 2504.05118](https://arxiv.org/abs/2504.05118)) trains the critic alone first, takes
#   λ = 1 for its target, and for the policy $\lambda=1-1/(0.05\cdot\text{length})$.
# * An answer cut at the maximal length: V after it is 0 if the cut counts as failure. Else the
#   critic's guess stands for the rest.
# </details>

# %%
score("critic.5", "critic.4")

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 8 minutes. GAE for one answer without a loop over its tokens: the third line of
# the derivation, all t at once. `rewards` and `values` have shape (T,), any token may carry a
# reward, and the value after the last one is 0.
#
# <details><summary>hint</summary>A (T, T) matrix whose entry (t, k) is what the surprise at k counts for t. Zero where k is before t; mind 0 to a negative power.</details>

# %% tags=["exercise"]
def my_gae(rewards, values, gamma, lam):
    return ...

check.gae(my_gae)

# %% [markdown]
# **2 Derive** · 8 minutes. After the plan the critic gives the better of two plans a lead of
# `claimed` < 0; its true lead is `true` > 0. The error fades: each further token leaves only the
# share `keeps` of it. γ = 1, and the answer is long. At
# which λ does the plan's mean gradient change its sign?
#
# <details><summary>hint</summary>The surprise at the plan is the claimed lead. The k-th token after it corrects 1 − keeps of the error still left. GAE multiplies that by λ^k. Sum the series.</details>

# %% tags=["exercise"]
def my_tipping_lambda(claimed, true, keeps):
    return ...

check.tipping_lambda(my_tipping_lambda)

# %% [markdown]
# **3 Find the silent bug** · 9 minutes. The advantages are whitened (mean 0, std 1), and they
# are right:

# %%
print(check.silent_bug_critic.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>The advantages are as wanted. What should the second result be at λ = 1, γ = 1?</details>

# %% tags=["exercise"]
def my_test(advantages_and_targets):
    return ...

check.silent_bug_critic(my_test)

# %% [markdown]
# ## In the interview
#
# <!-- cited: 13.5, 0.982, 0.938, 0.1 -->
# A minute each, aloud, then unfold.
#
# <details><summary><b>Derive GAE. Which line is a choice?</b></summary>
#
# It is a weighted mean of the n-step advantages over all waiting times n. Waiting n tokens
# telescopes to the sum of n surprises. The weights (1 − λ)λ^(n−1) are the choice: they make the
# result a recursion. Collect by δ and sum the geometric series: Σ(γλ)^l δ, which is δ + γλ times
# the next advantage.
# </details>
# <details><summary><b>What does λ trade?</b></summary>
#
# It trades the critic's bias against the noise of later tokens. At 0 the critic's errors enter in
# full and can turn the sign; at 1 there is no bias for any critic, and all later luck. λ counts
# tokens: 0.95 halves every 13.5, so until the critic has learned, a reward far ahead hardly reaches
# an early token. More answers per batch favour a larger λ: they lower noise, not bias.
# </details>
# <details><summary><b>A critic is wrong at one state. Which gradients are biased?</b></summary>
#
# At λ = 0 only that of the token that leads into the state (one prefix). If the critic errs by the
# same after every choice of that token, not even that. Above 0 every earlier token that changes the
# chance of getting there, with weight $(1-\lambda)\lambda^d$ for $d$ tokens between; at λ = 1 none.
# For the token drawn in the state the value is a baseline.
# </details>
# <details><summary><b>Which models are in memory, and what do they cost?</b></summary>
#
# Policy and critic are trained, reference and reward model are frozen. With Adam in mixed precision
# a trained one costs 16 bytes a parameter, a frozen one 2. That is 36 bytes, 252 GB at 7 billion
# each, without activations. The old policy is one number per token. A program as grader, no KL, and
# a group as baseline drop three of the four.
# </details>
# <details><summary><b>Why do many RL recipes for language models drop the critic?</b></summary>
#
# It usually costs a second model, and has to learn before its steps are credit. With one reward at
# the end, the mean of G answers to one prompt needs no training. It is not free: it costs G answers
# and says nothing about single tokens. In this page's toy a critic learned at λ = 0.95 beats it,
# 0.982 to 0.938, but that critic is told the state: five numbers to learn.
# </details>
# <details><summary><b>Why is the critic's target held fixed?</b></summary>
#
# Otherwise the critic makes its own next values alike instead of right. The target contains the
# next value, so the squared surprise contains that value's spread, and a gradient through it lowers
# the spread. In the toy a lead of 0.70 shrinks to 0.20. The square of the mean surprise would need
# two independent continuations of one prefix (double sampling). At λ = 1 the question does not
# arise.
# </details>
# <details><summary><b>How good are critics of language models? Why not write on from the prefix?</b></summary>
#
# In one test they ranked next steps hardly better than chance: VinePPO, on maths
# ([arXiv 2410.01679](https://arxiv.org/abs/2410.01679)). K fresh continuations from the prefix give
# an unbiased value with std $\sqrt{V(1-V)/K}$: 0.1 with nine of them at V = 0.9. They cost K
# answers wherever one asks, so one asks per step, not per token. And the state must be one that can
# be restored.
# </details>
#
# The [statements page](statements/07_critic.ipynb) decides twelve sentences one hears about this,
# and runs GAE through PPO's clip on the running group. **Next: 08.** What if the group is the
# critic?
