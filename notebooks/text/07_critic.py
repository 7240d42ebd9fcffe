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
# 30 minutes, exercises 25 more · after 03 (baselines), 05 (KL), 06 (PPO) · Schulman et al. 2015
# (GAE), [arXiv 1506.02438](https://arxiv.org/abs/1506.02438)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What may be subtracted from the reward without changing the mean gradient?</summary>Any number that does not depend on the token drawn: the score ∇log π has mean 0 (03).</details>
# <details><summary>2. An answer was right. Which advantage did each of its tokens have in 06?</summary>All the same: reward minus the group's mean.</details>
# <details><summary>3. What is a token's push?</summary>The number in front of ∇log π. With a ratio of 1 it is the advantage (06).</details>

# %% tags=["setup"]
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import wrong_critic
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import critic as pictures, pipeline, token_grid
from rlnb.objective import value_loss
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## One reward, 200 tokens
#
# Until now an answer got one number, and each of its tokens the same. This page changes one box: a
# token gets a number of its own.

# %%
pipeline.pipeline("advantages", caption=(
    "The rewards stay as they are: one per answer. "
    "What changes is how they are spread over its tokens."))

# %% [markdown]
# Why would one want that? A toy answer has 200 tokens, each a choice of two. Two of them decide;
# the other 198 are wording.
#
# * Token 60 picks a **plan**. The good one comes with chance 0.4.
# * Token 140 does the **sum**. After a good plan it comes out right with chance 0.9, after a bad
#   one with 0.2. Right means reward 1.
#
# So an answer is right with chance $0.4\cdot0.9+0.6\cdot0.2=0.48$.

# %% jupyter={"source_hidden": true}
# the toy: draws answers; unfold it if you like
T, PLAN, SUM = 200, 60, 140
logits = torch.zeros(1, T + 1)     # the last: the sum after a good plan
logits[0, [PLAN, SUM, T]] = torch.tensor([0.4, 0.2, 0.9]).logit()

def write(z, n, dice):
    """n answers per row of z: score and state (rows, n, T), reward."""
    p = z.sigmoid()[:, None].repeat(1, n, 1)
    u = torch.rand(len(z), n, T, generator=dice)
    good = u[..., PLAN] < p[..., PLAN]
    p[..., SUM] = torch.where(good, p[..., T], p[..., SUM])
    y = (u < p[..., :T]).double()            # 1 or 0: which of the two
    state = torch.zeros(y.shape, dtype=torch.long)
    state[..., PLAN + 1:SUM + 1] = torch.where(good, 1, 2)[..., None]
    state[..., SUM + 1:] = 4 - y[..., [SUM]].long()
    return y - p[..., :T], state, y[..., SUM]

# %% [markdown]
# The folded cell above draws such answers. `write` returns their scores
# $\partial\log\pi/\partial z=y-p$, with $z$ a token's logit; what has been decided so far (`state`,
# for later); and the reward. Score times advantage is an answer's gradient on the logit. Its mean
# over eight answers, with reward minus the group's mean:

# %%
def dice(seed):
    return torch.Generator().manual_seed(seed)

s8, state8, R8 = write(logits, 8, dice(0))
same = s8 * (R8 - R8.mean())[..., None]       # one number for all tokens
pictures.pushes({"8 answers, one advantage per answer": same[0].mean(0)},
                caption="Two of these 200 bars should be there. Over many "
                        "answers the other 198 average to 0.")

# %% [markdown]
# Over all possible answers the plan has the largest of the 200 gradients.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.1", "In how many of 1,000 such batches of 8 is the plan's "
        "bar the longest?",
        ["about 950", "about 500", "about 150", "about 5"])

# %%
s, _, R = write(logits.expand(1000, -1), 8, dice(0))
bars = (s * (R - R.mean(1, keepdim=True))[..., None]).mean(1).abs()
longest = bars.argmax(1)                                     # (1000,)
found = (longest == PLAN).sum().item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("critic.1", "about 150",
       f"{found}. Luck alone would give 1 in 200, so 5. In the batch "
       "above the plan's bar is "
       f"{same[0].mean(0)[PLAN].abs():.2f} long, the longest "
       f"{same[0].mean(0).abs().max():.2f}.",
       instead={
           "about 950":
           "It moves the reward most. But 199 other bars are drawn from a "
           "hat.",
           "about 500":
           "Still too trusting.",
           "about 5":
           "That is pure luck, 1 in 200. The plan is better than that.",
       })

# %% [markdown]
# Each wording token is noise, and there are 198 of them. In a network all tokens share the weights,
# so this noise lands where the plan is learned. More answers help, as one over a square root. Is
# there another way?
#
# ## A guess at every token
#
# Let somebody watch the answer being written and say, before every token, how likely it is to end
# well. That number is the **value** $V_t$, and whoever says it is the **critic**. For now the
# critic knows the truth. It says 0.48 until the plan is picked.

# %%
truth = torch.tensor([0.48, 0.9, 0.2, 1.0, 0.0])      # value in each state
V = truth[state8[0]]                                  # (8, 200)

# %% [markdown]
# Take an answer with a good plan whose sum went wrong. Its reward is 0. In REINFORCE each of its
# 200 tokens gets $0-0.48$. Let instead each token get the change in the chance to be right that it
# brought.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.2", "How many of the 200 tokens of this wrong answer now "
        "get less than 0?",
        ["all 200", "the two that decide", "one",
         "the 140 from the plan on"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
rows = {"good plan, sum wrong": (1, 4), "bad plan, sum right": (2, 3)}
stairs = {}
for name, (plan, end) in rows.items():
    path = torch.tensor([0] * 61 + [plan] * 80 + [end] * 59)
    stairs[name] = (truth[path].tolist(), float(end == 3))
reveal("critic.2", "one",
       "The sum: from 0.9 to 0. The plan gets +0.42, from 0.48 to 0.9; the "
       "wording gets 0. The sum of the credits is −0.48, once; REINFORCE "
       "gave −0.48 to each of the 200.",
       pictures.two_answers(stairs, (PLAN, SUM), caption=(
           "Two answers. Only the steps of the staircase are credit; a "
           "wrong answer can hold a good token.")),
       instead={
           "all 200":
           "So REINFORCE does it.",
           "the two that decide":
           "One of the two was a good choice.",
           "the 140 from the plan on":
           "After the plan the value stays until the sum.",
       })

# %% [markdown]
# The step is called the **TD residual**, or the surprise: $\delta_t=r_t+V_{t+1}-V_t$. Here $r_t$ is
# the reward paid at token $t$ (0 before the last token), and the value after the end is 0. The same
# eight answers once more, the surprise in place of reward minus mean:

# %%
def surprise(V, R):
    """V (..., T), the reward R paid on the last token -> delta."""
    return torch.cat([V[..., 1:], R[..., None]], -1) - V

delta = surprise(V, R8[0])
pictures.pushes({"the same for all": same[0].mean(0),
                 "the surprise": (s8[0] * delta).mean(0)},
                named={"plan": PLAN, "sum": SUM}, caption=(
    "Same answers. A critic that knows leaves no noise on the wording."))

# %% [markdown]
# Is that still the policy gradient? Line by line, with $b$ the baseline, $Q_t$ the mean reward of
# all answers that begin with the tokens up to *and with* $y_t$, and $V_t$ the same without $y_t$.
# (The ratios of 06 stand beside each term and change nothing here.)
#
# $$\begin{aligned}
# \nabla J&=\mathbb E\big[\textstyle\sum_t(R-b)\,\nabla\log\pi(y_t)\big]&&\text{REINFORCE with a baseline (02, 03)}\\
# &=\mathbb E\big[\textstyle\sum_t(R-V_t)\,\nabla\log\pi(y_t)\big]&&V_t\text{ does not depend on }y_t\text{: also a baseline}\\
# &=\mathbb E\big[\textstyle\sum_t(Q_t-V_t)\,\nabla\log\pi(y_t)\big]&&\text{mean over what comes after }y_t\\
# &=\mathbb E\big[\textstyle\sum_t(V_{t+1}-V_t)\,\nabla\log\pi(y_t)\big]&&Q_t\text{ is the value one token later (at the end, }R)\\
# &\approx\mathbb E\big[\textstyle\sum_t(\hat V_{t+1}-\hat V_t)\,\nabla\log\pi(y_t)\big]&&\textbf{a choice: believe a network's guess}
# \end{aligned}$$
#
# A policy and a learned critic side by side are called **actor-critic**. The last line is where it
# can go wrong.
#
# <details><summary>One level deeper: why the third line is allowed</summary>
#
# Group the answers by their beginning up to and with $y_t$. Within a group $V_t$ and
# $\nabla\log\pi(y_t)$ are fixed; only $R$ varies, and its mean is $Q_t$ by definition. The mean of
# the means is the mean. What is lost is only noise: the variance of $R$ within the groups. That is
# why the bars of the wording vanish: for them $Q_t=V_t$.
# </details>
#
# ## A critic that errs
#
# From token 61 to 140 let the critic have the two plans the wrong way round: 0.4 after the good
# one, 0.6 after the bad one. Before and after it knows the truth. Each $\hat V_t$ stands in two
# surprises, with a plus in $\delta_{t-1}$ and with a minus in $\delta_t$.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.3", "The mean gradient over all possible answers. Where "
        "does the error spoil it?",
        ["at the plan and at the sum", "at the plan only",
         "at the sum only", "on all tokens from 60 to 140"])

# %%
chance = torch.tensor([0.36, 0.04, 0.12, 0.48])     # the four outcomes
plan_score = torch.tensor([0.6, 0.6, -0.4, -0.4])
sum_score = torch.tensor([0.1, -0.9, 0.8, -0.2])
end = torch.tensor([1.0, 0.0, 1.0, 0.0])
means, spread = {}, {}
for name, after in (("a critic that knows", [0.9, 0.9, 0.2, 0.2]),
                    ("wrong way round", [0.4, 0.4, 0.6, 0.6])):
    middle = torch.tensor(after)
    at_plan = plan_score * (middle - 0.48)            # λ = 0
    at_sum = sum_score * (end - middle)
    means[name] = [(chance * g).sum().item() for g in (at_plan, at_sum)]
    noise = (chance * at_sum**2).sum() - means[name][1] ** 2
    spread[name] = noise.sqrt().item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("critic.3", "at the plan only",
       "And there it turns the sign: the better plan becomes rarer. "
       "Between plan and sum both values of a surprise are wrong by the "
       "same, and it cancels. In "
       "the surprise of the sum the wrong value is only a baseline: known "
       "before the token is drawn. It changes the spread, from "
       f"{spread['a critic that knows']:.2f} to "
       f"{spread['wrong way round']:.2f}, and not the mean.",
       pictures.credit(means, ("token 60, the plan", "token 140, the sum"),
                       caption="Believed, a wrong value is bias. "
                               "Subtracted, it is a baseline."),
       instead={
           "at the plan and at the sum":
           "At the sum the wrong value is known before the token is drawn: "
           "a baseline.",
           "at the sum only":
           "There it is only a baseline. Where is it a target?",
           "on all tokens from 60 to 140":
           "Between the two it is wrong on both sides of each difference.",
       })

# %% [markdown]
# **An error in what you subtract changes the noise. An error in what you believe changes the
# direction.** So believe later: wait a few tokens, let the answer show more, and ask the critic
# then.
#
# <details><summary>One level deeper: the wrong value was even the quieter baseline</summary>
#
# The true value is not the baseline with the least noise. That one weighs each outcome with the
# square of its score (03). After a good plan the sum is right nine times in ten, so the rare wrong
# one has the large score, and a baseline nearer to *its* reward, 0, is quieter: 0.4 beats 0.9.
# Nobody aims at that; a value is wanted to be believed.
# </details>
#
# ## How long to wait
#
# Wait $n$ tokens, then ask. The values in between cancel, which is called telescoping (our rewards
# are 0 until the end):
#
# $$A^{(n)}_t=r_t+\dots+r_{t+n-1}+\hat V_{t+n}-\hat V_t=\delta_t+\delta_{t+1}+\dots+\delta_{t+n-1}$$
#
# $n=1$ is the surprise. Past the end it is $R-\hat V_t$: no belief left. Which $n$? **Generalised
# advantage estimation** takes all of them.
#
# $$\begin{aligned}
# A_t&=(1-\lambda)\big[A^{(1)}_t+\lambda A^{(2)}_t+\lambda^2A^{(3)}_t+\dots\big]&&\textbf{a choice: each longer wait counts }\lambda\textbf{ times as much}\\
# &=(1-\lambda)\big[\delta_t(1+\lambda+\lambda^2+\dots)+\delta_{t+1}(\lambda+\lambda^2+\dots)+\dots\big]&&\text{telescoped; collected by }\delta\\
# &=\delta_t+\lambda\,\delta_{t+1}+\lambda^2\delta_{t+2}+\dots&&1+\lambda+\lambda^2+\dots=1/(1-\lambda)\\
# &=\delta_t+\lambda A_{t+1}&&\text{from the second term on it is }\lambda A_{t+1}
# \end{aligned}$$
#
# The weights $(1-\lambda)\lambda^{n-1}$ sum to 1. With a discount $\gamma$ per token,
# $\delta_t=r_t+\gamma\hat V_{t+1}-\hat V_t$. The choice in the first line stays; in the third and
# fourth $\lambda$ becomes $\gamma\lambda$. For language models $\gamma$ is usually 1.
#
# <details><summary>One level deeper: the answer ends, the series does not</summary>
#
# Let $m$ tokens be left, $y_t$ included. Behind the end all values are 0, so all surprises are 0,
# and every wait of $m$ or more gives the same $R-V_t$. Their weights
# $(1-\lambda)(\lambda^{m-1}+\lambda^m+\dots)$ sum to $\lambda^{m-1}$. So the last surprise counts
# $\lambda^{m-1}$, as in the third line. At λ = 1 the factor $1-\lambda$ is 0 and the series
# infinite: read the third line instead.
# </details>

# %%
def gae(V, R, lam):
    """V (..., T), R paid on the last token -> advantages (..., T)."""
    A, backwards = 0.0, []
    for d in reversed(surprise(V, R).unbind(-1)):
        A = d + lam * A
        backwards.append(A)
    return torch.stack(backwards[::-1], -1)

hand = torch.tensor([0.2, 0.5, 0.7]), torch.tensor(1.0)
for lam in (0.0, 0.95, 1.0):
    print(f"lambda {lam:4}: A =", [round(a, 4) for a in
                                   gae(*hand, lam).tolist()])
pictures.weights((0.0, 0.95, 1.0), caption=(
    "What a surprise l tokens later counts for this token."))

# %% [markdown]
# By hand, for λ = 0.95: $A_3=1-0.7=0.3$, then $0.2+0.95\cdot0.3=0.485$, then
# $0.3+0.95\cdot0.485=0.7608$. At λ = 1 each is $1-V_t$.
#
# Back to the critic that errs. How much waiting does the right sign need?

# %%
task("critic.t1", wrong_critic.wrong_critic_explorer(),
     ("The critic errs for one token. Find the smallest λ at which the "
      "good plan becomes likelier.", wrong_critic.smallest_right),
     ("λ = 0.95, the usual default. How many tokens must the error last "
      "to turn the sign again? Find the first.", wrong_critic.turned_at_95))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. From 0.23 on; exactly, from 2/9. The critic's lead for the good plan is 0.4 − 0.6 = −0.2, the
#    true one 0.9 − 0.2 = 0.7. The correction comes one token later and counts λ: the gradient is
#    proportional to (1 − λ)(−0.2) + λ · 0.7, which is 0 at λ = 2/9.
# 2. 30 tokens. A correction that comes $d$ tokens later has faded to $\lambda^d$, and $0.95^{30}$
#    is the first below 2/9. λ counts *tokens*: 0.95 is long against an error of one token and short
#    against a wrong idea that lasts a paragraph.
# </details>
#
# ## What a long answer does to λ
#
# The same fading hits the reward itself. A critic at the start of training says 0 everywhere. Take
# a right answer: the reward is 1, at token 199.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.4", "V = 0 everywhere, γ = 1, λ = 0.95. What advantage "
        "does the plan at token 60 get?",
        ["1: with γ = 1 nothing is lost", "about 0.5", "about 0.05",
         "less than 0.001"])

# %%
blank, one = torch.zeros(T), torch.tensor(1.0)
plan_gets = gae(blank, one, 0.95)[PLAN]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
knows = torch.tensor([0.48] * 61 + [0.9] * 80 + [1.0] * 59)
curves = {f"V = 0, λ = {lam:g}": gae(blank, one, lam).tolist()
          for lam in (0.95, 0.99, 1.0)}
curves["true V, λ = 0.95"] = gae(knows, one, 0.95).tolist()
reveal("critic.4", "less than 0.001",
       f"0.95 to the power 139 is {plan_gets:.5f}. The signal halves every "
       "13.5 tokens. γ = 1 does not help: λ fades too.",
       pictures.fade(curves, PLAN, caption=(
           "One right answer with a good plan. Where the critic knows "
           "nothing, λ decides how far back the reward reaches. A critic "
           "that knows carries it.")),
       instead={
           "1: with γ = 1 nothing is lost":
           "γ keeps it. λ fades as well.",
           "about 0.5":
           "0.95 a token, and there are 139 of them.",
           "about 0.05":
           "A few more halvings.",
       })

# %% [markdown]
# So a small λ needs a critic that is already good. And a large one? Our eight answers again, with
# the critic that knows:

# %%
pictures.pushes({f"λ = {lam:g}": (s8[0] * gae(V, R8[0], lam)).mean(0)
                 for lam in (0, 0.95, 1)}, caption=(
    "The plan keeps its bar. As λ grows, the tokens before each decision "
    "are credited with what they could not know: noise comes back."))

# %% [markdown]
# That is the trade. **λ = 0 believes the critic one token later, errors in full. λ = 1 believes
# only the reward, with the noise of all that comes later.**
#
# ## Does it help?
#
# First: what should the critic aim at? At $A_t+V_t$. At λ = 1 that is $R$; at λ = 0 it is
# $V_{t+1}$, the critic's own next guess. The target is held fixed, otherwise the critic would chase
# itself.
#
# Now train both at once. All 201 choices of the toy share eight weights, so noise anywhere disturbs
# the plan. The critic is a table, 0 in all five states at first.
#
#     20 times:
#         write 8 answers
#         A = gae(V, R, λ)                 (none: reward minus mean)
#         V = mean of A + V, in each state        one sweep
#         weights += rate · mean of score · A
#
# 200 seeds, six learning rates for everybody. `told` hands λ = 0 the true values instead.

# %% jupyter={"source_hidden": true}
# the critic's side: true values, and further sweeps of V to r + V_next
def values(z):
    """True value in each of the five states, (rows, 5)."""
    plan, bad, good = z[:, [PLAN, SUM, T]].sigmoid().unbind(1)
    start = plan * good + (1 - plan) * bad
    return torch.stack([start, good, bad, good * 0 + 1, good * 0], 1)

def sweeps_more(V, state, R, times):
    """`times` sweeps at λ = 0, from the counted moves between states."""
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

# %% jupyter={"source_hidden": true}
# the loop above, for all seeds at once
def train(lam, lr, told=False, sweeps=1, seeds=200, batches=20):
    """Chance to be right at the end, (seeds,). lam None: no critic."""
    g = dice(0)
    features = torch.randn(seeds, T + 1, 8, generator=g) / 8**0.5
    w, V = torch.zeros(seeds, 8, 1), torch.zeros(seeds, 5)
    for _ in range(batches):
        z = (features @ w)[..., 0] + logits
        s, state, R = write(z, 8, g)
        A = (R - R.mean(1, keepdim=True))[..., None].expand_as(s)
        if lam is not None:
            at, V = state.flatten(1), values(z) if told else V
            A = gae(V.gather(1, at).view_as(s), R, lam)
            V = V.scatter_reduce(1, at, A.flatten(1) + V.gather(1, at),
                                 "mean", include_self=False)
            if sweeps > 1:                                   # λ = 0 only
                V = sweeps_more(V, state, R, sweeps - 1)
        after_good = (state[..., [SUM]] == 1) * (s * A)[..., [SUM]]
        push = torch.cat([s * A, after_good], -1)
        push[..., [SUM]] -= after_good       # two logits for the sum
        w = w + lr * (push.mean(1)[:, None] @ features).mT
    return values((features @ w)[..., 0] + logits)[:, 0]

# %%
rates = (2, 4, 8, 16, 32, 64)
rules = {"same for all": (None,), "λ = 0": (0.0,), "λ = 0.95": (0.95,),
         "λ = 1": (1.0,), "λ = 0, told": (0.0, True)}
arms = {name: torch.stack([train(lam, lr, *more) for lr in rates])
        for name, (lam, *more) in rules.items()}
for name, runs in arms.items():
    print(f"{name:13} best rate: {runs.mean(1).max():.3f} right at the end")

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.5", "λ = 0 is last, and first once it is told the true "
        "values. What brings the one that learns level, with λ left at 0?",
        ["nothing: a learned critic is biased",
         "smaller steps of the policy",
         "more sweeps of the critic over the same answers",
         "a critic that starts at 0.5 instead of 0"])

# %%
arms["λ = 0, 40 sweeps"] = torch.stack(
    [train(0.0, lr, sweeps=40) for lr in rates])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
best = {name: runs[runs.mean(1).argmax()] for name, runs in arms.items()}
lead = best["λ = 0, 40 sweeps"] - best["λ = 0.95"]
ruined = {name: int((runs < 0.5).sum()) for name, runs in best.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("critic.5", "more sweeps of the critic over the same answers",
       "After a good plan come 80 tokens in one state. At λ = 0, 79 of "
       "their 80 targets are that state's own old value, so one sweep "
       "moves it by 1/80 of the way. λ = 0 is only as good as its critic: "
       "one sweep per batch leaves it 80 tokens behind; forty sweeps bring "
       f"it level, from {best['λ = 0'].mean():.3f} to "
       f"{best['λ = 0, 40 sweeps'].mean():.3f} (ahead of λ = 0.95 by "
       f"{lead.mean():.3f} ± {lead.std() / 200**0.5:.3f}, one standard "
       "error).\n\nOf 200 seeds, ruined (below one half at the end): "
       f"{ruined['λ = 0.95']} with λ = 0.95, "
       f"{ruined['λ = 1']} with λ = 1, "
       f"{ruined['same for all']} with no critic.",
       pictures.rates_sweep(rates, arms, caption=(
           "After 20 batches of 8 answers; mean of 200 seeds, bars two "
           "standard errors. Sweeps or λ: either carries the news back.")),
       instead={
           "nothing: a learned critic is biased":
           "It is. But how badly depends on how often it was fitted.",
           "smaller steps of the policy":
           "They leave the critic more time, and learn less.",
           "a critic that starts at 0.5 instead of 0":
           "A better start, and the same slow walk.",
       })

# %% [markdown]
# So this is no ranking of λ. A larger λ spreads the reward over many tokens in one sweep, and that
# is worth most where the critic is fitted in few steps, as in PPO. λ = 1 needs no belief and pays
# with noise: it loses a few seeds for good, as does the rule without a critic.
#
# A warning about the toy: its critic is a table of five numbers. A real one is handed tokens and
# has to find out what a good plan looks like.
#
# ## The price
#
# So the critic is usually a second network as large as the policy, with a linear layer on top that
# gives one number per token. And RLHF brings two more: the **reference** of 05 and a **reward
# model**. Say all four have the same size. Weights are kept in bf16; training is by Adam, in mixed
# precision.

# %% jupyter={"source_hidden": true}
# your guess
predict("critic.6", "How many times the memory of training the policy "
        "alone does PPO need? Activations and caches not counted.",
        ["four times", "about three times", "a bit more than twice",
         "about one and a half times"])

# %%
trained = 2 + 2 + 4 + 4 + 4   # weight, gradient, fp32 copy, Adam's moments
frozen = 2                    # the weight
four = {"policy": trained, "critic": trained, "reference": frozen,
        "reward model": frozen}
gigabytes = sum(four.values()) * 7

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
def without(*names):
    return {k: v for k, v in four.items() if k not in names}

setups = {"PPO, four models": four,
          "grader is a program": without("reward model"),
          "and no KL": without("reward model", "reference"),
          "and no critic": without("reward model", "reference", "critic")}
reveal("critic.6", "a bit more than twice",
       "A trained parameter costs 16 bytes, a frozen one 2. "
       f"16 + 16 + 2 + 2 = {sum(four.values())} bytes, "
       f"{sum(four.values()) / trained:g} "
       f"times 16. With 7 billion parameters each: {gigabytes} GB.",
       pictures.memory(setups, ("policy", "critic"), caption=(
           "The critic is the only large block that can go without "
           "changing what is rewarded.")),
       instead={
           "four times":
           "Four models, but two of them are frozen.",
           "about three times":
           "Two trained ones and two frozen. A frozen one is cheap.",
           "about one and a half times":
           "There is a second model with an optimizer.",
       })

# %% [markdown]
# The old policy of 06 is not a fifth model: it is one stored log-probability per sampled token.
#
# ## In code, on the running group
#
# A critic has read the four answers and said, before every token:

# %%
batch = running_group()
said = torch.tensor([[0.5, 0.6, 0.8, 0.0, 0.0, 0.0],
                     [0.5, 0.6, 0.9, 0.3, 0.7, 0.0],
                     [0.5, 0.1, 0.0, 0.0, 0.0, 0.0],
                     [0.5, 0.5, 0.7, 0.4, 0.4, 0.2]])
mask, last = batch.mask, batch.lengths.long() - 1
r = torch.zeros(4, 6).scatter(1, last[:, None], batch.rewards[:, None])

def advantages(r, V, mask, gamma=1.0, lam=0.95):
    """All (B, T); V is 0 on padding, so it is 0 after the end."""
    A, after = torch.zeros_like(V), torch.zeros(len(V))
    for t in reversed(range(V.shape[1])):
        V_next = V[:, t + 1] if t + 1 < V.shape[1] else 0.0
        after = r[:, t] + gamma * V_next - V[:, t] + gamma * lam * after
        A[:, t] = after
    return A * mask

# %%
grids = {}
for lam in (0.0, 0.95):
    A = advantages(r, said, mask, lam=lam)
    explained = ZOO["ppo"].explain(batch.replace(advantages=A))
    # the loss is minus a mean over 16 tokens: back to one token's push
    grids[f"λ = {lam:g}"] = -16 * explained.gradient
token_grid.token_grid(batch, grids, caption=(
    "PPO's push on each token, clip included. At λ = 0 a token of a right "
    "answer is pushed down, and one of a wrong answer up."))

# %% [markdown]
# Answer 1 is right, yet at its token 2 the critic fell from 0.9 to 0.3, and λ = 0 pushes that token
# down. At λ = 0.95 the good end outweighs it. At λ = 1 the advantage is $R-V_t$: then no token of a
# right answer has $A\lt0$, whatever a critic between 0 and 1 says. A 0 has two causes. At λ = 0,
# token 1 of answer 1 is clipped (its ratio is 6); token 3 of answer 3 brought no surprise (0.4
# before, 0.4 after).
#
# The critic is trained on the same batch, on a squared error to $A_t+V_t$, computed once. The whole
# loss:

# %%
A = advantages(r, said, mask)
rho = (batch.logprobs - batch.old_logprobs).exp()
policy = -torch.minimum(rho * A, rho.clamp(0.8, 1.2) * A)[mask].mean()
V_new = said.clone().requires_grad_()          # the critic's new output
critic = ((V_new - (A + said)) ** 2 / 2)[mask].mean()
whole = policy + 0.1 * critic

ppo = ZOO["ppo"].replace(terms=value_loss(0.1))
ours = ppo(batch.replace(values=said)).loss
print(f"policy {policy:.4f}, critic {critic:.4f}, loss {whole:.4f}, "
      f"rlnb {ours:.4f}")
assert torch.allclose(whole, ours, rtol=0, atol=1e-12)

# %% [markdown]
# Log the critic's **explained variance**, $1-\mathrm{Var}(R-V)/\mathrm{Var}(R)$: 1 is perfect, 0 is
# no better than a constant, below 0 worse. TRL's PPO has λ = 0.95 by default, verl and OpenRLHF
# have 1.
#
# <details><summary>One level deeper: eight details they may ask for</summary>
#
# * Many codes clip the value as PPO clips the ratio: the larger of two squared errors, one with $V$
#   kept within 0.2 of its old self (statements page).
# * Whitening makes the advantages of a batch mean 0 and standard deviation 1. It comes after the
#   targets are computed (exercise 3).
# * VAPO ([arXiv 2504.05118](https://arxiv.org/abs/2504.05118)) uses two λ: 1 for the critic's
#   target, so that the reward reaches it undimmed, and a smaller one for the policy.
# * If actor and critic share a network and only the head differs, memory is saved and the two
#   losses pull on the same weights: hence the 0.1.
# * The start: the critic often begins as a copy of the reward model or of the policy, and is
#   trained alone for a while (warm-up) before the policy moves.
# * An answer cut at the maximal length has not ended. V after it is 0 if the cut counts as failure;
#   else one bootstraps: the critic's own guess stands for the rest.
# * γ below 1 is a second bias: even with the true critic the gradient is that of a discounted
#   reward.
# * A KL in the reward (05) is a reward on every token. The critic then also predicts the KL to
#   come.
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | the critic | |
# |---|---|
# | sentence | a critic says at every token how well the answer will end; a token gets the change, and λ says how long to wait before believing it |
# | formula | $\delta_t=r_t+\gamma V_{t+1}-V_t$, $\;A_t=\delta_t+\gamma\lambda A_{t+1}$ |
# | ends | λ = 0: the surprise, bias of the critic in full · λ = 1: $R-V_t$, no bias, most noise |
# | picture | the staircase: only its steps are credit |
# | numbers | sign right from λ = 2/9 on if the critic errs for one token · half-life 13.5 tokens at 0.95 · 36 bytes a parameter, 16 of them the critic |
# | since 06 | the advantage: from one per answer to one per token |

# %%
score(*(f"critic.{k}" for k in range(1, 7)))

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
# **2 Derive** · 8 minutes. The critic gives the better of two tokens a lead of `claimed` < 0; its
# true lead is `true` > 0. The error lasts for `lasts` tokens, then it is corrected. γ = 1. At which
# λ does the mean gradient change its sign?
#
# <details><summary>hint</summary>The surprise now is the claimed lead. The correction, true minus claimed, comes `lasts` tokens later. What does GAE multiply it by?</details>

# %% tags=["exercise"]
def my_tipping_lambda(claimed, true, lasts):
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
# It is the geometric mean over all waiting times of the n-step advantage, written as a sum of
# surprises. Waiting n tokens telescopes to n surprises. Weights (1 − λ)λ^(n−1) are the choice.
# Collect by δ, sum the geometric series: Σ(γλ)^l δ, which is δ + γλ times the next advantage.
# </details>
# <details><summary><b>What does λ trade?</b></summary>
#
# Belief in the critic against noise. At 0 the critic's errors enter in full and can turn the sign;
# at 1 there is no bias for any critic, and all later noise. λ counts tokens: 0.95 halves every
# 13.5, so long answers with a young critic need a λ near 1.
# </details>
# <details><summary><b>A critic is wrong at one state. Which gradients are biased?</b></summary>
#
# That of the token that leads into the state. For the token drawn in it, the value is a baseline
# and changes no mean.
# </details>
# <details><summary><b>Which models are in memory, and what do they cost?</b></summary>
#
# Policy and critic trained, 16 bytes a parameter each; reference and reward model frozen, 2 each.
# 36 bytes, 252 GB at 7 billion, without activations. The old policy is one number per token. A
# program as grader, no KL, and a group as baseline drop three of the four.
# </details>
# <details><summary><b>Why do most RL recipes for language models drop the critic?</b></summary>
#
# It costs a second model and has to be right before it helps. With one reward at the end and many
# answers to the same prompt, the group's mean is a critic for free: one number per prompt, with no
# way to be fooled by a state.
# </details>
#
# The [statements page](statements/07_critic.ipynb) decides twelve sentences one hears about this.
# **Next: 08.** What if the group is the critic?
