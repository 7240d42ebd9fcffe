# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 · REINFORCE: how can a reward move a network when the answer is drawn?
#
# **After this page** you can derive the policy gradient line by line, write its loss in two lines
# of code, and say who gets the credit and where the noise comes from.
#
# 34 minutes, then 8 in a second sitting · exercises 42 more · after 01 (one scalar loss) · Williams
# 1992 (REINFORCE, *Machine Learning* 8); Sutton, McAllester, Singh and Mansour 1999 (policy
# gradient theorem, NeurIPS 12)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. A model gives each next token a probability. What is the log-probability of a whole answer?</summary>The sum of its tokens' log-probabilities, since the probabilities multiply.</details>
# <details><summary>2. What is the gradient of log π(a) in the logits of a softmax?</summary>1 for a itself, 0 for the others, minus π: up for a, down for every other (01).</details>
# <details><summary>3. Write the mean of f over answers drawn from π as a sum.</summary>Σ π(y) f(y), over all answers y.</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import one_push, uphill
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import pipeline, token_grid
from rlnb.classroom.pictures import reinforce as pictures
from rlnb.objective import difference
from rlnb.toys import SequencePolicy, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: a policy, a grader, and the expected reward
policy = SequencePolicy(2, 3, torch.sin(torch.arange(21.)).view(7, 3))
answers = policy.outcomes                        # 15 tuples; 2 is stop
R = torch.tensor([float(y.count(1) == 1 and y[-1] == 2)
                  for y in answers])             # (15,)

def expected(knob):
    """J when the logit of a 1 as the first token is `knob`."""
    turned = policy.copy()
    turned.logits.data[0, 1] = knob
    return (turned.probabilities() * R).sum().item()

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: graded(knob, dice)
def graded(knob, dice):
    """Rewards (n,) of the answers that the dice (n, 3) give."""
    logits = policy.logits.detach().clone()
    logits[0, 1] = knob
    edges = logits.softmax(1).cumsum(1)          # a row per prefix, (7, 3)
    row = torch.zeros(len(dice)).long()
    count, right = torch.zeros_like(row), torch.zeros_like(row).bool()
    going = ~right
    for t in range(3):
        token = (dice[:, t:t + 1] > edges[row]).sum(1)
        count = count + (going & (token == 1))
        right = right | (going & (token == 2) & (count == 1))
        going = going & (token != 2)
        row = (2 * row + 1 + token).clamp(max=6)
    return right.double()

# %% [markdown]
# ## Turn one knob
#
# The toy model writes at most three tokens, each of them 0, 1 or stop. That makes fifteen possible
# answers. The model is a table with three logits for each of the seven beginnings. The grader is a
# program: it pays 1 for an answer with exactly one 1 and a stop at the end, and 0 for every other
# answer.
#
# To choose a token, the model throws a die. We write down the three throws of one answer. Then we
# use the same throws again and again, while we turn one knob: the logit of a 1 as the first token.

# %%
dice = torch.rand(1000, 3, generator=torch.Generator().manual_seed(203))
here = policy.logits[0, 1].item()                # the knob as it stands
knobs = torch.linspace(-3, 4, 701)
one = torch.cat([graded(k, dice[:1]) for k in knobs])
pictures.one_draw(knobs, one, here, ("stop", "1, stop"))

# %% [markdown]
# That was one answer, and its reward jumps. What should go up is the **expected reward** $J$, the
# mean reward over endlessly many answers. It changes smoothly with the knob. So take many answers,
# and let `backward()` find the slope of their mean. Does that work?

# %% jupyter={"source_hidden": true}
# your guess
predict("reinforce.1", "Take 1,000 answers, each with its own throws. At "
        "the dot, the slope of their mean reward is ...",
        ["0",
         "a few per cent of it: only answers near a jump react",
         "the slope of J, up to some noise"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
near = torch.linspace(here - 0.035, here + 0.035, 701)
mean, mean_near = (torch.stack([graded(k, dice).mean() for k in x])
                   for x in (knobs, near))
reveal("reinforce.1", "0",
       "A mean of staircases is a finer staircase. It looks smooth from "
       "afar. But a derivative only sees the dot itself, and at the dot "
       "none of the 1,000 rewards jumps. More answers make the stairs "
       "smaller, but never sloped. **The mean of the slopes is 0, the "
       "slope of the mean is not. Where there are jumps, the two may not "
       "be swapped.**",
       pictures.average(
           knobs, mean, torch.tensor([expected(k) for k in knobs]),
           (near, mean_near, torch.tensor([expected(k) for k in near])),
           here),
       instead={
           "the slope of J, up to some noise":
           "More answers make finer stairs. A slope they do not make.",
           "a few per cent of it: only answers near a jump react":
           "A nudge that is small enough reaches none of them.",
       })

# %% [markdown]
# What does the knob change, then? It does not change an answer a little. It changes **how often**
# the answer is written. So we differentiate the probabilities, and leave the draws and the grader
# alone.

# %% jupyter={"source_hidden": true}
# the loop
pipeline.pipeline("answers", "rewards", "loss", "step", caption=(
    "The loop of every page from here on. The gradient starts at the loss; "
    "none passes back through answers or rewards. Advantages come with "
    "page 03, the ratio with page 04. The number of answers G is called N "
    "on this page."))

# %% [markdown]
# ## Derive it
#
# $\pi_\theta(y)$ is the probability of answer $y$, $\theta$ are the parameters, $R(y)$ is the
# reward. (With a prompt $x$, read $\pi_\theta(y\mid x)$.)
#
# $$\begin{aligned}
# J&=\textstyle\sum_y \pi_\theta(y)\,R(y)&&\text{expected reward, written as a sum}\\
# \nabla J&=\textstyle\sum_y R(y)\,\nabla\pi_\theta(y)&&R\text{ does not depend on }\theta\\
# &=\textstyle\sum_y \pi_\theta(y)\,R(y)\,\dfrac{\nabla\pi_\theta(y)}{\pi_\theta(y)}&&\text{multiply and divide by }\pi_\theta(y)\\
# &=\textstyle\sum_y \pi_\theta(y)\,R(y)\,\nabla\log\pi_\theta(y)&&\text{chain rule: }\nabla\log u=\nabla u/u\\
# &=\mathbb E_{y\sim\pi_\theta}\big[R(y)\,\nabla\log\pi_\theta(y)\big]&&\text{a sum with weights }\pi_\theta\text{ is a mean over its draws}\\
# &\;\approx\;\tfrac1N\textstyle\sum_{i=1}^N R_i\,\nabla\log\pi_\theta(y_i)&&\textbf{a choice: }N\textbf{ answers, drawn from }\pi_\theta\textbf{ itself, in place of all}
# \end{aligned}$$
#
# The fourth line is the **log-derivative trick**. $\nabla\log\pi_\theta(y)$ is called the **score**
# of $y$, and reward times score is the **push** of one drawn answer. The sums run over all possible
# answers, far too many in a real model. The last line needs only $N$ of them.
#
# We check it on the knob in three ways: differentiate $J$ itself, use the trick with all fifteen
# answers, and use it with 1,000 draws (after +- stands one standard error).

# %%
def slope(x):                                    # dx / d knob
    return torch.autograd.grad(x, policy.logits)[0][0, 1]

def log_pi(y):
    return policy.logprobs()[y].sum()

P = policy.probabilities().detach()                          # (15,)
scores = torch.stack([slope(log_pi(y)) for y in range(15)])
draw = policy.sample(1000, torch.Generator().manual_seed(0))
pushes = (R * scores)[draw]                                  # (1000,)
print(f"differentiate J   {slope((policy.probabilities() * R).sum()):.4f}")
print(f"trick, all 15     {(P * R * scores).sum():.4f}")
print(f"trick, 1000 draws {pushes.mean():.4f} "
      f"+- {pushes.std() / 1000**0.5:.4f}")

# %% [markdown]
# All three agree. An interviewer expects three words here. The draws come from the policy that is
# being trained, so they are **on-policy**. If you repeat the estimate for ever, its mean is
# $\nabla J$, so it is **unbiased**. A single estimate scatters around the mean; this is its
# **variance**.

# %% jupyter={"source_hidden": true}
# one rectangle for each right answer
pictures.areas(["1, stop", "0, 1, stop", "1, 0, stop"], P, scores, R == 1)

# %% [markdown]
# Look at "1, stop" and "1, 0, stop". When they are drawn, both push this knob equally hard. The
# first is drawn far more often, and that is the whole difference between their areas.

# %% [markdown]
# ## The loss
#
# How do you tell autograd? It wants a scalar to differentiate. Take the bold line, drop the
# $\nabla$, and put a minus in front, since an optimiser minimises. An answer has $T_i$ tokens
# $y_{i,t}$, and its $\log\pi$ is the sum over them:
#
# $$L=-\frac1N\sum_{i=1}^{N}R_i\sum_{t=1}^{T_i}\log\pi_\theta(y_{i,t}\mid y_{i,\lt t})$$
#
# In the words of RL, a **state** is the prompt with the tokens so far, an **action** is the next
# token, and a **trajectory** is a whole answer. The world only appends the token, so nothing but
# $\pi$ is left in the trajectory's probability.

# %%
def reinforce_loss(logp, rewards):   # (N, T) with 0 as padding, (N,)
    return -(rewards * logp.sum(1)).mean()

loss = reinforce_loss(policy.logprobs()[draw], R[draw])
print(f"loss {loss.item():.4f}, slope along the knob {-slope(loss):.4f}")

# %% [markdown]
# This is the slope of the 1,000 draws above. In a real run `logp` comes from a forward pass over
# the written tokens, and `rewards` are plain numbers.
#
# You have seen this loss before. With rewards 1 and 0 it looks like SFT (01) on the model's own
# right answers. Our model is right in 23 of 100 draws. Both methods draw fresh answers from it, but
# SFT throws the wrong ones away and averages over the rest.

# %% jupyter={"source_hidden": true}
# your guess
predict("reinforce.2", "REINFORCE's expected gradient, against SFT's:",
        ["the same", "another direction: SFT never sees the wrong answers",
         "the same direction, 4.3 times as long",
         "the same direction, 0.23 times as long"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
def gradient(x):                                 # of a scalar, (7, 3)
    return torch.autograd.grad(x, policy.logits)[0]

truth = gradient((policy.probabilities() * R).sum())         # REINFORCE
own_right = P * R / (P * R).sum()                # pi, given "right"
sft = gradient((own_right * policy.logprobs().sum(1)).sum())
ratio = (truth / sft)[sft.abs() > 1e-9]          # where SFT pushes at all
reveal("reinforce.2", "the same direction, 0.23 times as long",
       f"On every logit the factor is {ratio.max():.4f}, the success rate "
       f"J. "
       "Wrong answers push nothing, so the direction is the same. But they "
       "still count in N. So a prompt that is answered right once in a "
       "thousand times gets a thousandth of SFT's gradient. **REINFORCE "
       "hardly moves on what it rarely gets right.**",
       instead={
           "the same":
           "Wrong answers push nothing, but they count in N.",
           "the same direction, 4.3 times as long":
           "It is the other way round: SFT's gradient is the longer one.",
           "another direction: SFT never sees the wrong answers":
           "SFT does not see them. But with reward 0 they have weight 0 "
           "here, too.",
       })

# %% [markdown]
# ## What one answer pushes
#
# What does a single draw do? Take a smaller toy with four possible answers of one token each, of
# which A and B are right. Draw answer $a$. By Recall 2 its push moves its own logit by
# $R_a(1-\pi_a)$, and every other logit $k$ by $-R_a\,\pi_k$.

# %% jupyter={"source_hidden": true}
# the explorer
task("reinforce.t1", one_push.one_push_explorer(),
     ("Add nothing to the rewards. Push A down, although it is right.",
      one_push.right_one_falls),
     ("Draw a right answer, and nothing moves.",
      one_push.right_draw_is_silent))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Draw B. A wrong answer does not do it, because with reward 0 it pushes nothing. Answers fall
#    only because others rise.
# 2. Add −1. Now only the wrong answers push, and they push themselves down. If you add something
#    above 0 instead, whatever is drawn is pushed up, also a wrong answer.
# </details>
#
# One panel never moved: the mean over all draws. If you add a constant $c$ to all rewards, the mean
# push gains
#
# $$\textstyle\mathbb E[c\,\nabla\log\pi]=c\sum_y\nabla\pi(y)=c\,\nabla\sum_y\pi(y)=c\,\nabla 1=0.$$
#
# **A constant changes what single draws do, and nothing in the mean.**

# %% [markdown]
# ## What the loss prints
#
# What do you see in the log while this trains? Train the fifteen-answer model, and keep the noise
# out: use all answers with their probabilities instead of draws. Grader one pays 1 and 0, grader
# two pays 0 and −1. By the line above, both take exactly the same steps.

# %%
def climb(constant, steps=60):
    """J and the loss at each step; `constant` is added to all rewards."""
    model, J, L = policy.copy(), [], []
    for _ in range(steps + 1):
        p, logp = model.probabilities(), model.logprobs().sum(1)
        J.append((p * R).sum().item())
        loss = -(p.detach() * (R + constant) * logp).sum()
        L.append(loss.item())
        grad, = torch.autograd.grad(loss, model.logits)
        model.logits.data -= grad
    return J, L, logp

J, L, _ = climb(0.0)
_, L_minus, _ = climb(-1.0)
print(f"J {J[0]:.2f} at the start, {J[-1]:.2f} after 60 steps")

# %% jupyter={"source_hidden": true}
# your guess
predict("reinforce.3", "Each run descends its own loss. Compared with its "
        "start, the loss that is printed after 60 steps is ...",
        ["lower with both graders",
         "lower with 1 and 0, higher with 0 and −1",
         "higher with 1 and 0, lower with 0 and −1",
         "higher with both"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
_, _, logp5 = climb(0.0, steps=5)
kept = -(P * R * logp5).sum()
reveal("reinforce.3", "lower with 1 and 0, higher with 0 and −1",
       f"The first goes from {L[0]:.2f} to {L[-1]:.2f}, the second from "
       f"{L_minus[0]:.2f} to {L_minus[-1]:.2f}, ".replace("-", "−") +
       "by the same steps. Each step weighs the answers anew, so each step "
       "has a loss of its own. (With the weights of step 0 kept, five "
       f"steps do lower it, to {kept:.2f}.) **The loss has the right slope "
       "where the answers were drawn, and a value that says nothing.** Log "
       "the mean reward and the norm of the gradient.",
       pictures.climb(J, {"rewards 1 and 0": L,
                          "rewards 0 and −1": L_minus}),
       instead={
           "lower with both graders":
           "Each step descends. But it descends a new loss each time.",
           "higher with 1 and 0, lower with 0 and −1":
           "The signs are turned: look at what weights the "
           "log-probabilities.",
           "higher with both":
           "This is true of the second grader only.",
       })

# %% [markdown]
# ## Who gets the credit?
#
# In the loss, $R_i$ stands before *every* token of answer $i$. We call the number before a token's
# $\log\pi$ its **credit**. Here is the running group of this course: one prompt, $G=4$ answers of
# 3, 5, 2 and 6 tokens, of which two are right.

# %%
group = running_group()
logp = torch.where(group.mask, group.logprobs, 0.0)
total = 4 * reinforce_loss(logp, group.rewards)              # no 1/N
credit = -torch.autograd.grad(total, group.logprobs)[0]      # (4, 6)
token_grid.token_grid(group, {"credit of each token": credit}, count="",
                      caption="Every token of an answer gets the answer's "
                      "reward. Hatched: credit 0.")

# %% [markdown]
# Is that fair? Go back to the fifteen answers and take the right answer 0, 1, stop. After each of
# its tokens, how likely is the model to end right?

# %%
def chance(prefix):
    n = len(prefix)
    here = torch.tensor([y[:n] == prefix for y in answers])
    return ((P * R)[here].sum() / P[here].sum()).item()

pictures.credit(["0", "1", "stop"],
                [chance((0, 1, 2)[:n]) for n in range(4)])

# %% jupyter={"source_hidden": true}
# your guess
predict("reinforce.4", "The first 0 is a mistake, and this lucky draw "
        "pushes its logit up. No reward is below 0. In the mean over all "
        "draws, the logit of that 0 goes ...",
        ["up: no reward ever pushes it down",
         "nowhere: good and bad luck cancel", "down"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
all_scores = torch.stack([gradient(log_pi(y)) for y in range(15)])
first = P * R * all_scores[:, 0, 0]              # logit of the first 0
with_0 = torch.tensor([y[0] == 0 for y in answers])
often, change = P[with_0].sum(), chance((0,)) - chance(())
assert abs(often * change - truth[0, 0]) < 1e-12
reveal("reinforce.4", "down",
       "Right answers that begin with 1 push the 1 up, and so they push "
       "the "
       f"0 down. They outvote the lucky ones, {-first[~with_0].sum():.3f} "
       f"against {first[with_0].sum():.3f}. The difference is exactly "
       f"{often:.2f} × {-change:.2f}: how often the 0 is written, times "
       "what it took from the chance in the picture. **In the mean, "
       "REINFORCE gives each token the credit of the picture. Wrong credit "
       "in a single draw is noise, not a wrong gradient.**",
       instead={
           "up: no reward ever pushes it down":
           "Nothing pushes it down directly. But when the logit of 1 is "
           "pushed up, the softmax pushes the 0 down.",
           "nowhere: good and bad luck cancel":
           "They do not cancel: one of them is larger.",
       })

# %% [markdown]
# For a table of logits this is the **policy gradient theorem**. The slope of a token's logit is a
# product of three numbers: how often its state is visited, how likely the token is there, and how
# much better it is than the average there. The last number is called the **advantage**. Pages 03
# and 07 estimate it.
#
# <details><summary>Rewards on the way</summary>
#
# If reward $r_t$ arrives with token $t$, a token cannot have caused the rewards before it. Drop
# them: token $t$ gets the **return to go** $R_{\ge t}=\sum_{t'\ge t}r_{t'}$ in place of
# $R=\sum_t r_t$. The mean gradient is the same, since what was paid before is a constant for this
# token. It is usually less noisy. With one reward at the end, the usual case for language models,
# $R_{\ge t}=R$ and nothing is gained.
# </details>
# <details><summary>Sum or mean over an answer's tokens?</summary>
#
# The sum is $\log\pi(y)$, so it is the one that was derived. Divide by $T_i$, as many losses do,
# and you follow the gradient of $\mathbb E[R/T]$: short right answers are worth more. verl calls
# the sum `loss_agg_mode="seq-mean-token-sum"`, and it is not its default. Page 09 follows that up.
# </details>

# %% [markdown]
# ## In a real run
#
# The estimate is right on average, and noisy. So real runs average over many answers: DeepSeekMath
# takes 1,024 in a step ([arXiv 2402.03300](https://arxiv.org/abs/2402.03300), section 4.2), DAPO
# 512 prompts with 16 answers each ([arXiv 2503.14476](https://arxiv.org/abs/2503.14476)). They also
# subtract a baseline, which is the subject of page 03. TRL's nearest trainer is `RLOOTrainer`: with
# one update per batch and `beta=0` its gradient is that of this page, with a baseline.

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | REINFORCE | |
# |---|---|
# | sentence | differentiate how likely the answer was, not the draw and not the grader; weigh it with the reward |
# | formula | $\nabla J=\mathbb E[R\,\nabla\log\pi(y)]$ · $L=-\frac1N\sum_i R_i\sum_t\log\pi(y_{i,t})$ |
# | words | on-policy, unbiased, high variance |
# | silent | every token of an answer with reward 0 |
# | picture | a staircase: flat wherever you differentiate it |
# | numbers | the slope of a mean of 1,000 staircases: 0 · against SFT on own right answers: J times as long, here 0.23 |
# | derived | everything up to the mean over draws |
# | choice | $N$ fresh answers in place of all |
# | against SFT (01) | the model's own answers instead of given ones, and $R$ in front |

# %%
print("next page:\n" + str(difference(ZOO["reinforce"], ZOO["rloo"])))
score("reinforce.1", "reinforce.2", "reinforce.3", "reinforce.4")

# %% [markdown]
# ## Second sitting: how noisy is a step?
#
# The estimate is right on average. How far does a single one stray?
#
# Call a step **uphill** if its estimate points less than 90° away from the true gradient. Then a
# small enough step raises $J$. We take twenty thousand estimates of 16 answers each and count.
# (`along` says how far each answer's score points along the true gradient.)

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: how far each answer's score points along the true gradient
along = (all_scores * truth).sum((1, 2))         # (15,)

# %%
def share_uphill(N, constant, steps=20_000):
    y = policy.sample(steps * N, torch.Generator().manual_seed(1))
    estimate = ((R + constant) * along)[y].view(steps, N).mean(1)
    return (estimate > 0).double().mean().item()

print(f"rewards 0 and 1, 16 answers: {share_uphill(16, 0.0):.0%} uphill")

# %% jupyter={"source_hidden": true}
# your guess
predict("reinforce.5", "Another grader pays 10 for wrong and 11 for right. "
        "The mean gradient is the same. Of its steps of 16 answers ...",
        ["hardly more than half go uphill",
         "nine in ten go uphill: ten is a lot, 16 answers average it out",
         "about as many go uphill: the mean is what counts"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
def variance(constant):                          # of one draw's push
    every = (R + constant)[:, None, None] * all_scores
    return (P @ (every**2).sum((1, 2)) - (truth**2).sum()).item()

reveal("reinforce.5", "hardly more than half go uphill",
       f"{share_uphill(16, 10.0):.0%} do, little better than a coin. Every "
       "draw now pushes itself up by 10 or 11, so it matters more which "
       "answers happened to be drawn than which were right. The variance "
       f"of a single push has grown from {variance(0.0):.2f} to "
       f"{variance(10.0):.0f}, and 16 answers divide it by 16 only.",
       instead={
           "about as many go uphill: the mean is what counts":
           "The mean counts in the long run. A single step sees 16 "
           "answers.",
           "nine in ten go uphill: ten is a lot, 16 answers average it out":
           "The ten points go to whatever was drawn. That is noise, and 16 "
           "answers divide it by 16 only.",
       })

# %% jupyter={"source_hidden": true}
# the explorer
task("reinforce.t2", uphill.uphill_explorer(constant=10.0),
     ("Keep that grader, 10 and 11. Say first how many answers a step it "
      "will take, then bring 95 % of the steps uphill.",
      uphill.loud_constant),
     ("Now you may pay for 4 answers a step only. 95 % again.",
      uphill.few_answers))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. It takes thousands of answers a step: 1,024 are too few, and 4,096 are enough. It takes four
#    times as many answers to halve the noise.
# 2. Add −0.5 or −0.2. A number subtracted from the reward has saved hundreds of times as many
#    answers. It is called a **baseline**.
# </details>
#
# Does the noise matter for training? The fifteen-answer model was trained with 4 answers a step and
# a hundred seeds, each grader at its best learning rate. Rewards 10 and 11 hardly move in 60 steps;
# with a small rate and 2,000 steps they get there as well
# ([statements 02](statements/02_reinforce.ipynb)). They are slow, not wrong. **What hurts is a
# constant that is large next to the gap between right and wrong.** A reward model is learned from
# comparisons, where any constant cancels, so its zero may lie anywhere.

# %%
score("reinforce.5")

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 8 minutes. One softmax over $K$ answers. Work out the sum over draws: by what is
# logit $k$ pushed in the mean? Return the $K$ pushes, without autograd.
#
# <details><summary>hint</summary>Answer a pushes logit k by R(a) times (1 if k is a, else 0) minus π(k). Weigh with π(a), sum over a, take π(k) out.</details>

# %% tags=["exercise"]
def my_push(logits, rewards):            # (K,), (K,) -> (K,)
    return ...

check.logit_push(my_push)

# %% [markdown]
# **2 Implement** · 5 + 10 minutes. From a real model's output to the loss. First the
# log-probability of each token, when `logits` at $t$ are about the token at $t$:
#
# <details><summary>hint</summary>log_softmax over the last axis. gather wants an index with as many axes as its input.</details>

# %% tags=["exercise"]
def my_token_logprobs(logits, tokens):   # (B, T, V), (B, T) -> (B, T)
    return ...

check.token_logprobs(my_token_logprobs)

# %% [markdown]
# A real model's `logits` at $t$ are about the token at $t+1$. `written` is True on the tokens the
# policy wrote, False on prompt and padding:
#
# <details><summary>hint</summary>Cut once: all but the last logits, all but the first tokens and the first of the mask. Then the function above, where, sum, times R, minus the mean.</details>

# %% tags=["exercise"]
def my_step_loss(logits, tokens, written, rewards):
    ...     # (B, L, V), (B, L), (B, L), (B,) -> one number

check.step_loss(my_step_loss)

# %% [markdown]
# **3 Make it survive** · 6 minutes. The page's loss, with a mask. Under it may stand anything,
# infinity and NaN included, and a row may have no token at all. The check lets `x * mask` pass with
# a warning; get rid of the warning.
#
# <details><summary>hint</summary>Infinity times 0 is NaN. What can replace the product?</details>

# %% tags=["exercise"]
def my_reinforce_loss(logprobs, mask, rewards):  # (B, T), (B, T), (B,)
    return ...

check.reinforce_loss(my_reinforce_loss)

# %% [markdown]
# **4 Find the silent bug** · 8 minutes. It trains, the sign is right, and in every single batch the
# gradient points where it should:

# %%
print(check.silent_bug_reinforce.source)

# %% [markdown]
# Write a test that this function fails and the right one passes: change something in a batch that
# must not change the gradient.
#
# <details><summary>hint</summary>Make a wrong answer, reward 0, longer than all others. What should happen to the push on the others?</details>

# %% tags=["exercise"]
def my_test(loss):       # loss(logprobs, mask, rewards) -> one number
    return ...

check.silent_bug_reinforce(my_test)

# %% [markdown]
# **Extra, for page 03** · 5 minutes. What would the number in task 2 be for a real prompt? One
# proposal: the mean reward of the *other* answers to it. The first $G$ rows answer the first
# prompt, the next $G$ the second; $G$ is `num_generations`.
#
# <details><summary>hint</summary>Reshape to (prompts, G). The sum of the others is the sum of all minus one's own.</details>

# %% tags=["exercise"]
def my_leave_one_out(rewards, num_generations):  # (B,), G -> (B,)
    return ...

check.baseline_leave_one_out(my_leave_one_out)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>Derive the policy gradient.</b></summary>
#
# Write J as a sum, then multiply and divide by π. J is the sum of π(y)R(y). Only π depends on θ, so
# ∇J is the sum of R∇π. Since ∇π = π∇log π, that is the sum of πR∇log π, the mean of R∇log π over
# π's own draws. Estimate it with N fresh answers. log π(y) is a sum over tokens. The transition,
# appending a token, has no parameters and drops out, like prompt and grader.
# </details>
# <details><summary><b>Why not backpropagate through the sampling?</b></summary>
#
# Its gradient is 0 almost everywhere. A draw jumps in the parameters, so gradient and expectation
# may not be swapped: the mean of the slopes is 0, the slope of the mean is not. The expected reward
# has a slope, but a real model's sum over answers cannot be written out. Relaxations such as
# Gumbel-softmax exist; they are biased and need a reward that accepts soft tokens.
# </details>
# <details><summary><b>Your RL loss rises. Is training broken?</b></summary>
#
# You cannot tell from the loss. It is made to have the right gradient where the answers were drawn;
# its value moves with the answers. A constant added to all rewards changes its course and not the
# expected gradient. Look at the mean reward on held-out prompts, the gradient norm, KL and entropy.
# </details>
# <details><summary><b>One reward at the end, 500 tokens. Who gets the credit?</b></summary>
#
# All tokens get the same. That is unbiased: a mistake that got lucky is outvoted by draws in which
# it fails or something better wins. But it is noisy. To do better you need information from the
# middle: a critic's values, rewards for steps, or fresh continuations from a prefix.
# </details>
# <details><summary><b>Why is REINFORCE so noisy, and what helps?</b></summary>
#
# Each push carries the whole reward, and each token the luck of all the others. A constant in the
# reward leaves the mean alone and changes the variance: 0.23 per push in this page's toy at rewards
# 0 and 1, 0.17 with 0.2 subtracted, 121 at 10 and 11. In order of price: subtract a baseline, draw
# more answers, use the return to go where rewards arrive on the way, learn a critic.
# </details>
# <details><summary><b>How does it differ from SFT on your own right answers?</b></summary>
#
# With rewards 1 and 0 only by a factor. The expected gradient is the success rate times that of SFT
# on the policy's own right answers, drawn fresh at every step. It differs once rewards are graded
# or a baseline makes wrong answers push down.
# </details>
# <details><summary><b>What happens to an answer with reward 0?</b></summary>
#
# Nothing, as if it had not been drawn. It sinks only because others rise. Only with a baseline, or
# a negative reward, is it pushed down.
# </details>
#
# The sentences that one hears about REINFORCE, true or not:
# [statements 02](statements/02_reinforce.ipynb). The exercises, solved:
# [solutions 02](solutions/02_reinforce.ipynb).
#
# **Next: [03 · Baselines](03_baselines.ipynb).** Why may you subtract a number, and which number is
# best?
