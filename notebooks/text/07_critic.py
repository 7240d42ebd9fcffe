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
# **After this page** you can say what a value is, derive GAE line by line, tell what a wrong critic
# does to a gradient, and count the four models of PPO in memory.
#
# 33 minutes, then 11 in a second sitting · exercises 25 more · after 03 (baselines), 05 (KL), 06
# (PPO) · Schulman et al. 2015 (GAE), [arXiv 1506.02438](https://arxiv.org/abs/1506.02438)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What may be subtracted from the reward without changing the mean gradient?</summary>Any number that does not depend on the token drawn: the score ∇log π has mean 0 (03).</details>
# <details><summary>2. An answer was right. Which advantage did each of its tokens have in 06?</summary>All the same: reward minus the group's mean.</details>
# <details><summary>3. What is a token's push?</summary>The number in front of ∇log π. With a ratio of 1 it is the advantage (06).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from torch.nn.functional import pad
from rlnb import ZOO, check
from rlnb.classroom.explorers import wrong_critic
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import critic as pictures, pipeline, token_grid
from rlnb.toys import running_group
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
# Can each token of an answer have an advantage of its own?

# %% jupyter={"source_hidden": true}
# the picture
pipeline.pipeline("advantages", caption=(
    "The rewards stay as they are: one per answer. "
    "What changes is how they are spread over its tokens."))

# %% [markdown]
# **The toy.** An answer has 200 tokens, and each token is a choice of two. Two tokens decide. The
# other 198 are wording.
#
# * Token 60 picks a **plan**. The good plan comes with chance 0.4.
# * Token 140 writes the **result**. It comes out right with chance 0.9 after the good plan, and
#   with chance 0.2 after the bad plan. A right result earns the reward 1.
#
# So an answer is right with chance $0.4\cdot0.9+0.6\cdot0.2=0.48$.
#
# The policy writes eight answers. A token's gradient is its score times the advantage, which is the
# reward minus the group's mean. Look at the mean of the eight:

# %%
s8, state8, R8 = write(logits, 8, dice(0))    # score, state, reward
same = s8 * (R8 - R8.mean())[..., None]       # one number for all tokens

# %% jupyter={"source_hidden": true}
# the picture
pictures.pushes({"8 answers, one advantage per answer": same[0].mean(0)},
                named={"plan": PLAN, "result": RESULT},
                caption="The mean gradient on each token's logit.")

# %% [markdown]
# Over all possible answers only two bars remain. The plan's is the longer one.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.1", "We draw 1,000 such batches of 8. In how many is the "
        "plan's bar the longest of the 200?",
        ["about 950", "about 500", "about 150", "about 5"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
s, _, R = write(logits.expand(1000, -1), 8, dice(0))
bars = (s * (R - R.mean(1, keepdim=True))[..., None]).mean(1).abs()
longest = bars.argmax(1)                                     # (1000,)
found = (longest == PLAN).sum().item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("critic.1", "about 150",
       f"It is {found}. Each wording token is noise, and there are 198 of "
       "them. In a network all tokens share the weights: a push on a "
       "wording token moves the plan's logit as well. Four times as many "
       "answers only halve this noise.",
       instead={
           "about 950":
           "Its mean is the largest. A batch of 8 is far from the mean.",
           "about 500":
           "It would, with a few rivals. But it has 199.",
           "about 5":
           "That is pure luck, 1 in 200. The plan is better than that.",
       })

# %% [markdown]
# ## A guess at every token
#
# Somebody watches the answer being written. Before every token they say how likely it is to end
# right. That number is the **value** $V_t$, and whoever says it is the **critic**. For now the
# critic knows the truth: it says 0.48 until the plan is picked.
#
# Take an answer with a good plan and a wrong result. Its reward is 0. In REINFORCE each of its 200
# tokens gets $0-0.48$. Now let each token get the change in the value that it brought.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.2", "How many of the 200 tokens of this wrong answer now "
        "get less than 0?",
        ["1", "2", "140", "200"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
rows = {"good plan, result wrong": (1, 4),
        "bad plan, result right": (2, 3)}
truth = torch.tensor([0.48, 0.9, 0.2, 1.0, 0.0])      # value in each state
stairs = {}
for name, (plan, end) in rows.items():
    path = torch.tensor([0] * 61 + [plan] * 80 + [end] * 59)
    stairs[name] = (truth[path].tolist(), float(end == 3))
reveal("critic.2", "1",
       "It is the result, which took the value from 0.9 to 0. The plan "
       "gets +0.42, because it raised the value. The wording changed "
       "nothing and gets 0. **A wrong answer can hold a good token.**",
       pictures.two_answers(stairs, (PLAN, RESULT), caption=(
           "Two answers. Only the steps of the staircase are credit.")),
       instead={
           "2":
           "Two tokens decide, but one of them was a good choice.",
           "140":
           "From the plan on? After it the value stays, up to the result.",
           "200":
           "This is what REINFORCE does.",
       })

# %% [markdown]
# This change is the **surprise**, or TD residual (temporal difference):
#
# $$\delta_t=r_t+V_{t+1}-V_t$$
#
# Here $r_t$ is the reward paid at token $t$. It is 0 before the last token, and the value after the
# end is 0. Look at the same eight answers:

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
# **By hand.** Add up all surprises of one answer. What comes out?
#
# <details><summary>The sum of the surprises</summary>
#
# $R-V_0$. Every value in between occurs twice, once with a plus and once with a minus. In the toy
# that is $ $, whatever the critic says in between. What an error there gives to one token it
# takes from another.
# </details>
#
# Is that still the policy gradient? In the lines below $b$ is any baseline. $V_t$ is the mean
# reward of the answers that this policy writes after the tokens before $y_t$.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E\big[\textstyle\sum_t(R-b)\,\nabla\log\pi(y_t)\big]&&\text{REINFORCE with a baseline (02, 03)}\\
# &=\mathbb E\big[\textstyle\sum_t(R-V_t)\,\nabla\log\pi(y_t)\big]&&V_t\text{ does not depend on }y_t\text{: also a baseline}\\
# &=\mathbb E\big[\textstyle\sum_t(r_t+V_{t+1}-V_t)\,\nabla\log\pi(y_t)\big]&&\text{mean over what comes after }y_t\text{: }R\text{ becomes }r_t+V_{t+1}\\
# &\approx\mathbb E\big[\textstyle\sum_t(r_t+\hat V_{t+1}-\hat V_t)\,\nabla\log\pi(y_t)\big]&&\textbf{a choice: believe a network's guess }\hat V
# \end{aligned}$$
#
# In an interviewer's words: $r_t+V_{t+1}$ is the action's value $Q_t$, so the surprise is the
# **advantage** $A=Q-V$. To believe $\hat V_{t+1}$ in place of the rewards to come is to
# **bootstrap**. A policy with a learned critic beside it is an **actor-critic**.
#
# <details><summary>One level deeper: why the third line is allowed</summary>
#
# Group the answers by their beginning up to and with $y_t$. Within a group $V_t$ and
# $\nabla\log\pi(y_t)$ are fixed. Only $R$ varies, and its mean is $V_{t+1}$ by definition. The
# mean of the means is the mean. What is lost is the variance of $R$ within the
# groups, which is noise. For a wording token $V_{t+1}=V_t$, so its bar vanishes.
# </details>

# %% [markdown]
# ## A critic that errs
#
# Now the critic is wrong for a while: in the 80 values after the plan, up to the result, it has the
# plans the wrong way round. It says 0.5 after the good one and 0.7 after the bad one. Elsewhere it
# knows the truth. Each token gets its surprise.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.3", "Take the mean gradient over all possible answers. "
        "Where does the error spoil it?",
        ["at the plan and at the result", "at the plan only",
         "at the result only", "on all tokens from 60 to 140"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
chance = torch.tensor([0.36, 0.04, 0.12, 0.48])     # the four outcomes
plan_score = torch.tensor([0.6, 0.6, -0.4, -0.4])
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
reveal("critic.3", "at the plan only",
       "There the gradient turns its sign: the better plan becomes rarer. "
       "The result's surprise *subtracts* a wrong value. That value was "
       "known before the token was drawn, so it is a baseline. The plan's "
       "surprise *believes* a wrong value. **An error in what you subtract "
       "changes the noise. An error in what you believe can change the "
       "direction.** (Not if both plans are wrong by the same: then it "
       "is a baseline again.)",
       pictures.credit(means,
                       ("token 60, the plan", "token 140, the result"),
                       caption="Believed, a wrong value is bias. "
                               "Subtracted, it is a baseline."),
       instead={
           "at the plan and at the result":
           "At the result the wrong value is known before the token is "
           "drawn: a baseline.",
           "at the result only":
           "There the wrong value is only a baseline.",
           "on all tokens from 60 to 140":
           "Between the two both values of a surprise are wrong by the "
           "same, and the error cancels.",
       })

# %% [markdown]
# <details><summary><b>So far, in two lines.</b> Say yours, then unfold.</summary>
#
# A token's credit is the change in the value. A wrong value that is believed can turn the sign of
# the gradient; one that is subtracted cannot.
# </details>

# %% [markdown]
# ## How long to wait
#
# The surprise asks the critic one token later. Wait $n$ tokens instead: collect the rewards on the
# way, then ask. The values in between cancel, which is called telescoping:
#
# $$A^{(n)}_t=r_t+\dots+r_{t+n-1}+\hat V_{t+n}-\hat V_t=\delta_t+\delta_{t+1}+\dots+\delta_{t+n-1}$$
#
# With $n$ past the end the critic is not asked any more. This is $R_{\ge t}-\hat V_t$, where
# $R_{\ge t}$ is the return to go, the rewards from token $t$ on.
#
# Which $n$? **Generalised advantage estimation**, GAE, takes a mean over all of them.
#
# $$\begin{aligned}
# A_t&=(1-\lambda)\big[A^{(1)}_t+\lambda A^{(2)}_t+\lambda^2A^{(3)}_t+\dots\big]&&\textbf{a choice: each longer wait counts }\lambda\textbf{ times as much}\\
# &=(1-\lambda)\big[\delta_t(1+\lambda+\lambda^2+\dots)+\delta_{t+1}(\lambda+\lambda^2+\dots)+\dots\big]&&\text{telescoped; collected by }\delta\\
# &=\delta_t+\lambda\,\delta_{t+1}+\lambda^2\delta_{t+2}+\dots&&1+\lambda+\lambda^2+\dots=1/(1-\lambda)\\
# &=\delta_t+\lambda A_{t+1}&&\text{from the second term on it is }\lambda A_{t+1}
# \end{aligned}$$
#
# With a discount $\gamma$ per token, $\delta_t=r_t+\gamma\hat V_{t+1}-\hat V_t$ and
# $A_t=\delta_t+\gamma\lambda A_{t+1}$. For language models $\gamma$ is usually 1.
#
# <details><summary>One level deeper: the answer ends, the series does not</summary>
#
# The weights $(1-\lambda)\lambda^{n-1}$ sum to 1. Let $m$ tokens be left, $y_t$ included. Behind
# the end all surprises are 0, and every wait of $m$ or more gives the same $R_{\ge t}-V_t$. The
# weights of these waits sum to $\lambda^{m-1}$. So the last surprise counts $\lambda^{m-1}$, as in
# the third line. At λ = 1 the first line is 0 times infinity: read the third line instead.
# </details>
#
# The last line is a loop from the end to the start. Here are three tokens with values 0.2, 0.5 and
# 0.7, and the reward 1 at the end:

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
# Read it from the right: the last is $1-0.7=0.3$, then $0.2+0.95\cdot0.3=0.485$, then
# $0.3+0.95\cdot0.485=0.7608$.
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
# So λ says whom to believe: at 0 the critic, one token later, with all its errors; at 1 only the
# reward, with all the noise of what comes later. **λ trades bias against variance.**
#
# Back to the critic with the plans the wrong way round. How much waiting gives the right sign?

# %% jupyter={"source_hidden": true}
# the explorer
task("critic.t1", wrong_critic.wrong_critic_explorer(),
     ("Let the error last one token. Say first: is λ = 0.5 enough? Then "
      "find the smallest λ at which the good plan becomes likelier.",
      wrong_critic.smallest_right),
     ("Now λ = 0.95. How many tokens must the error last to turn the sign "
      "again? Work it out, then find the first.",
      wrong_critic.turned_at_95),
     ("The error lasts 10 tokens. Which λ leaves a batch of 8 least off: "
      "0.95, 1, or neither? Say first, then find it.",
      wrong_critic.least_off))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. The sign is right from 0.23 on. The plan is first credited with the claimed lead of the good
#    plan, 0.5 − 0.7 = −0.2. The true lead is 0.9 − 0.2 = 0.7. So one token later the surprise
#    brings a correction of 0.9, and GAE counts it λ. The gradient goes with −0.2 + 0.9 λ, which is
#    0 at λ = 2/9.
# 2. 30 tokens. The same correction comes $d$ tokens later and counts $\lambda^d$. $0.95^{30}$ is
#    the first below 2/9.
# 3. Neither: 0.99, off by 0.041. <!-- cited: 0.041, 0.089, 0.064, 0.02, 0.90, 0.45 --> The wait
#    must be long against the error, 10 tokens away, and short against the luck of the result, 80
#    tokens away: $0.99^{10}$ is 0.90, $0.99^{80}$ is 0.45. At 0.95 bias puts it off by 0.089, at 1
#    the luck counts in full, 0.064. The noise of about 0.02 at every λ is the plan's own draw. Once
#    the error lasts 30 tokens, 1 is best.
# </details>
#
# **λ counts tokens.** 0.95 is a long wait against an error of one token, and a short one against an
# error that lasts a paragraph.

# %% [markdown]
# ## Train both
#
# Now both learn. The **policy** has eight weights. Each token has a fixed list of eight random
# numbers, and its logit moves by the product of list and weights. So a push on one token moves all,
# as in a network.
#
# The **critic** is a table with a value for each of five states: no plan yet, good plan, bad plan,
# right, wrong. Weights and values start at 0. As the policy improves the true values move, and the
# table has to follow.
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
def train(lam, lr, n=8, start=0.0, rounds=1, seeds=200, batches=20):
    """Chance to be right at the end, (seeds,). lam None: no critic."""
    g = dice(0)
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
    return values((features @ w)[..., 0] + logits)[:, 0]

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
# λ = 1 hardly differs from no critic: up to the plan V is one number. λ = 0.95 carries a surprise
# only some 20 tokens back and spares most of the wording. λ = 0 spares all of it, and comes last.

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
         "λ = 0.95, for comparison": arms["λ = 0.95"]}
best = [runs.mean(1).max().item() for runs in tried.values()]
assert max(best[:4]) < best[5] - 0.03 < best[5] < best[4]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("critic.5", "40 fits per batch, each to new targets",
       "After a good plan come 80 tokens in one state. At λ = 0 the target "
       "of 79 of them is that state's own old value. So one fit, however "
       "exact, moves the value by 1/80 of the way. Made anew, the targets "
       "have moved, and the next fit goes on: 40 fits on the same 8 "
       "answers suffice. λ = 0.95 looks some 20 tokens ahead and needs no "
       "second fit. **λ = 0 is as good as its critic.** This is no ranking "
       "of λ.",
       pictures.best_of(tried, caption=(
           "Right at the end, at the best of six rates; 200 seeds, bars "
           "two standard errors.")),
       instead={
           "16 answers per batch, not 8":
           "The push is quieter, which helps. But the values move as "
           "slowly as before.",
           "V = 0.48 at the start, not 0":
           "That sets the level, which helps. What is missing is the gap "
           "between the two plans.",
           "40 fits per batch, all to the same targets":
           "The table reaches these targets in one fit. (PPO's epochs are "
           "of this kind: advantages and targets are made once per batch.)",
       })

# %% [markdown]
# ## The price
#
# A real critic reads tokens and has to find out what a good plan looks like. So it is a second
# network, with one number per token as its output. Often it is as large as the policy;
# InstructGPT had 6 <!-- cited: 6, 175 --> billion parameters beside 175.
#
# RLHF adds the **reference** of 05 and a **reward model**. A model in training costs 16
# bytes per parameter: weight 2, gradient 2, float32 copy 4, Adam's moments 8. A frozen one costs 2.

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
    "Four models of one size. The critic is the only large block that can "
    "go without changing what is rewarded."))

# %% [markdown]
# **By hand.** Each model has 7 billion parameters. How many gigabytes is that?
#
# <details><summary>Gigabytes</summary>
#
# 36 times 7 is 252 GB, without activations. Four models are 2.25 <!-- cited: 2.25 --> times the
# policy alone, not four times. The old policy of 06 is no fifth model: it is one stored
# log-probability per sampled token.
# </details>

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | the critic | |
# |---|---|
# | sentence | a critic says at every token how well the answer will end; a token gets the change, and λ says how long to wait before believing it |
# | formula | $\delta_t=r_t+\gamma V_{t+1}-V_t$, $\;A_t=\delta_t+\gamma\lambda A_{t+1}$ |
# | ends | λ = 0: the surprise, bias of the critic in full · λ = 1: $R_{\ge t}-V_t$, no bias, most noise |
# | picture | the staircase: only its steps are credit |
# | numbers | sign right from λ = 2/9 on if the critic errs for one token · PPO 36 bytes a parameter, 16 of them the critic |
# | since 06 | the advantage: from one per answer to one per token |

# %%
score("critic.1", "critic.2", "critic.3", "critic.5")

# %% [markdown]
# ## Second sitting: how is it done on long answers?
#
# The toy's critic was a table, and it learned in 20 batches. What does λ do on a long answer when
# the critic knows nothing yet? And what does a network's critic learn from?
#
# ### Long answers
#
# Suppose the critic is new and says 0 everywhere. A right answer has its plan at token 60, and the
# reward of 1 comes 139 tokens later. At λ = 0.95 the plan gets $0.95^{139}$, which is 0.0008.

# %% jupyter={"source_hidden": true}
# the picture
blank, one = torch.zeros(T), pad(torch.ones(1), (T - 1, 0))
knows = torch.tensor([0.48] * 61 + [0.9] * 80 + [1.0] * 59)
curves = {f"V = 0, λ = {lam:g}": gae(blank, one, lam).tolist()
          for lam in (0.95, 0.99, 1.0)}
curves["true V, λ = 0.95"] = gae(knows, one, 0.95).tolist()
halves = torch.tensor(0.5).log() / torch.tensor(0.95).log()
pictures.fade(curves, PLAN, caption=(
    "One right answer with a good plan. Where the critic knows nothing, λ "
    "decides how far back the reward reaches: at 0.95 it halves every "
    f"{halves:.1f} tokens. A critic that knows carries it."))

# %% [markdown]
# **A small λ needs a critic that is already good.**
#
# What does a large λ cost? Here are the eight answers again, with the critic that knows. At λ = 0
# only the plan and the result had bars. Look at the others now.

# %% jupyter={"source_hidden": true}
# the picture
pictures.pushes({f"λ = {lam:g}": (s8[0] * gae(V8, r8, lam)).mean(0)
                 for lam in (0.95, 1)},
                named={"plan": PLAN, "result": RESULT},
                caption=(
    "The larger λ is, the further back a surprise reaches: to tokens that "
    "had no part in it. The noise comes back."))

# %% [markdown]
# In the words of RL, λ = 0 is **TD** (temporal difference), and λ = 1 is **Monte Carlo**.

# %% [markdown]
# ### In code, on the running group
#
# `said` is what a critic said before every token of the four answers. On padding value and reward
# are 0, so our `gae` needs no mask. A 0 in the grid can have two causes. The critic was not
# surprised, or PPO's clip silences the token, because its ratio has moved too far (06: token 1 of
# answer 1). Look at answer 1:

# %%
batch = running_group()
said = torch.tensor([[0.5, 0.6, 0.8, 0.0, 0.0, 0.0],
                     [0.5, 0.6, 0.9, 0.3, 0.7, 0.0],
                     [0.5, 0.1, 0.0, 0.0, 0.0, 0.0],
                     [0.5, 0.5, 0.7, 0.4, 0.4, 0.2]])
end_of = batch.lengths.long()[:, None] - 1
r = torch.zeros(4, 6).scatter(1, end_of, batch.rewards[:, None])

grids = {}
for lam in (0.0, 0.95):
    A = gae(said, r, lam)
    explained = ZOO["ppo"].explain(batch.replace(advantages=A))
    # the loss is minus a mean over 16 tokens: back to one token's push
    grids[f"λ = {lam:g}"] = -16 * explained.gradient
token_grid.token_grid(batch, grids, caption=(
    "PPO's push on each token, clip included."))

# %% [markdown]
# Answer 1 is right. Tokens 1 and 3 have zeros: the clip. At its token 2 the critic fell from 0.9 to
# 0.3, so λ = 0 pushes this token down. At λ = 0.95 the good end outweighs the fall.
#
# **By hand.** From which λ on is token 2 of answer 1 pushed up? The surprises from there on are
# −0.6, 0.4 and 0.3.
#
# <details><summary>From which λ on</summary>
#
# Its advantage is −0.6 + 0.4 λ + 0.3 λ², which is 0 at λ =
# 0.90. <!-- cited: 0.90, 0.6, 0.4, 0.3 -->
# </details>

# %% [markdown]
# ### What the critic learns from
#
# The critic's loss is the squared distance to its target. At λ < 1 the target contains what the
# critic itself says later. Libraries hold it fixed: no gradient flows through it. Must one?

# %%
def critic_loss(V, r, held=True):
    """V and r (..., T) -> the squared error to the target, λ = 0."""
    target = surprise(V, r) + V
    if held:
        target = target.detach()
    return ((V - target) ** 2).sum(-1) / 2

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.4", "The toy's table is trained to the end on all "
        "answers, with held=False. What does it say after a good plan, "
        "where 0.90 is true?",
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
       "move a value to the mean of what follows. Not held, it can also "
       "make what follows alike, which is easier to predict. **It flattens "
       "the staircase, and the steps were the credit.**",
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
           "With a single possible answer, yes: both ways end at R. Here "
           "what follows is open.",
       })

# %% [markdown]
# At λ = 1 the target is the return, and there is nothing to hold.
#
# **In a real run** log the critic's explained variance, $1-\mathrm{Var}(R-V)/\mathrm{Var}(R)$. A
# constant has 0, and below 0 the critic is worse than a constant. (It does not see a constant
# offset.) Even the true critic has less than 1: in the toy nobody can know the result before it is
# written. TRL's PPO has λ = 0.95 by default, verl and OpenRLHF 1.
#
# <details><summary>One level deeper: four details they may ask for</summary>
#
# * PPO's epochs: values, advantages and targets are made once per batch and kept. Many codes also
#   clip the new value near the kept one (statements page). Andrychowicz et al. 2020
#   ([arXiv 2006.05990](https://arxiv.org/abs/2006.05990)) advise to make the advantages anew at
#   each pass.
# * VAPO ([arXiv 2504.05118](https://arxiv.org/abs/2504.05118)) uses two λ: 1 for the critic's
#   target, so that the reward reaches it undimmed, and a smaller one for the policy.
# * The start: the critic often begins as a copy of the reward model or of the policy, and is
#   trained alone for a while (warm-up) before the policy moves.
# * An answer cut at the maximal length has not ended. V after it is 0 if the cut counts as failure;
#   else one bootstraps: the critic's own guess stands for the rest.
# </details>

# %%
score("critic.4")

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
# `claimed` < 0; its true lead is `true` > 0. This error does not end at a stroke: with every
# further token it shrinks to the share `keeps` of what it was. γ = 1, and the answer is long. At
# which λ does the plan's mean gradient change its sign?
#
# <details><summary>hint</summary>The surprise at the plan is the claimed lead. The k-th token after it corrects 1 − keeps of the error still left. GAE multiplies that by λ^k. Sum the series.</details>

# %% tags=["exercise"]
def my_tipping_lambda(claimed, true, keeps):
    return ...

check.tipping_lambda(my_tipping_lambda)

# %% [markdown]
# **3 Find the silent bug** · 9 minutes. Whoever looks at the advantages finds nothing:

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
# A minute each, aloud, then unfold.
#
# <details><summary><b>Derive GAE. Which line is a choice?</b></summary>
#
# It is a mean of the n-step advantages over all waiting times, with weights (1 − λ)λⁿ⁻¹, written as
# a sum of surprises. Waiting n tokens telescopes to n surprises. Weights (1 − λ)λ^(n−1) are the
# choice. Collect by δ, sum the geometric series: Σ(γλ)^l δ, which is δ + γλ times the next
# advantage.
# </details>
# <details><summary><b>What does λ trade?</b></summary>
#
# Belief in the critic against noise. At 0 the critic's errors enter in full and can turn the sign;
# at 1 there is no bias for any critic, and all later noise. λ counts tokens: 0.95 halves every
# 13.5, so long answers with a young critic need a λ near 1.
# </details>
# <details><summary><b>A critic is wrong at one state. Which gradients are biased?</b></summary>
#
# At λ = 0 that of the token that leads into the state, unless the states it could have led to are
# wrong by the same. At λ above 0 every earlier token that changes the chance of getting there,
# with weight $(1-\lambda)\lambda^d$ for $d$ tokens between; at λ = 1 none. For the token drawn in
# the state the value is a baseline and changes no mean.
# </details>
# <details><summary><b>Which models are in memory, and what do they cost?</b></summary>
#
# Policy and critic trained, 16 bytes a parameter each; reference and reward model frozen, 2 each.
# 36 bytes, 252 GB at 7 billion, without activations. The old policy is one number per token. A
# program as grader, no KL, and a group as baseline drop three of the four.
# </details>
# <details><summary><b>Why do most RL recipes for language models drop the critic?</b></summary>
#
# It costs a second model and has to be right before it helps. With one reward at the end, the mean
# of G answers to the same prompt is a baseline that no state can fool. It is not free: it costs G
# answers and says nothing about tokens. In this page's toy a learned critic at λ = 0.95 beats it,
# 0.982 to 0.938. <!-- cited: 0.982, 0.938 -->
# </details>
# <details><summary><b>Why is the critic's target held fixed?</b></summary>
#
# The target contains the critic's next value, and the squared surprise contains that value's
# spread. With a gradient through it the critic also lowers the spread: it moves the values of good
# and bad next states together, away from the truth. An unbiased gradient of the squared mean would
# need two independent continuations of one prefix (double sampling). At λ = 1 the question does
# not arise.
# </details>
# <details><summary><b>How good are critics of language models? Why not write on from the prefix?</b></summary>
#
# VinePPO ([arXiv 2410.01679](https://arxiv.org/abs/2410.01679)) tested PPO's critics on maths:
# asked which of several next steps is better, they hardly beat chance. K fresh continuations from
# the prefix give an unbiased value with std $\sqrt{V(1-V)/K}$. Nine of them have 0.1 at V = 0.9.
# <!-- cited: 0.1, 0.9 --> They cost K answers wherever one asks, so one asks per step and not per
# token, and the state must be one that can be restored. A prefix can; a data base that was written
# to may not.
# </details>
#
# The [statements page](statements/07_critic.ipynb) decides twelve sentences one hears about this.
# **Next: 08.** What if the group is the critic?
