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
# **After this page** you can derive the policy gradient, write its loss in two lines of code, and
# say who gets the credit and where the noise comes from.
#
# 37 minutes, then 15 in a second sitting · exercises 37 more · after 01 (one scalar loss) ·
# Williams 1992 (REINFORCE, *Machine Learning* 8); Sutton, McAllester, Singh and Mansour 1999
# (policy gradient theorem, NeurIPS 12)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. A model gives each next token a probability. What is the log-probability of a whole answer?</summary>The sum of its tokens' log-probabilities, since the probabilities multiply.</details>
# <details><summary>2. What is the gradient of log π(a) in the logits of a softmax?</summary>1 for a itself, 0 for the others, minus π: up for a, down for every other (01).</details>
# <details><summary>3. Write the mean of f over answers drawn from π as a sum.</summary>Σ π(y) f(y), over all answers y.</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import check
from rlnb.classroom.explorers import one_push, uphill
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import reinforce as pictures
from rlnb.toys import SequencePolicy
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
# How does the reward change when one number of the model changes a little? Our toy model writes at
# most three tokens, each of them 0, 1 or stop: fifteen possible answers. It is a table with three
# logits for each of the seven beginnings. The grader is a program. It pays 1 for an answer with
# exactly one 1 and a stop at the end, and 0 for any other.
#
# To choose a token, the model throws a die, which shows a number between 0 and 1. Each token owns a
# stretch of that range, as long as its probability. We keep the three throws of one answer, and
# turn one knob: the logit of a 1 as the first token.

# %%
dice = torch.rand(1000, 3, generator=torch.Generator().manual_seed(203))
here = policy.logits[0, 1].item()                # the knob as it stands
knobs = torch.linspace(-3, 4, 701)
one = torch.cat([graded(k, dice[:1]) for k in knobs])
pictures.one_draw(knobs, one, here, ("stop", "1, stop"))

# %% [markdown]
# That was one answer. What should go up is the **expected reward** $J$, the mean reward over
# endlessly many answers. $J$ changes smoothly with the knob. So take many answers, and
# differentiate their mean reward. Is that the slope of $J$?

# %% jupyter={"source_hidden": true}
# your guess
predict("reinforce.1", "Take 1,000 answers, each with its own throws. At "
        "the dot, the slope of their mean reward is ...",
        ["the slope of J, give or take some noise",
         "a few per cent of the slope of J", "0"])

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
       "slope of the mean is not. Since the reward jumps, the two may not "
       "be swapped here.** (PyTorch does not even return the 0. A drawn "
       "token is an integer, and `backward()` stops with an error.)",
       pictures.average(
           knobs, mean, torch.tensor([expected(k) for k in knobs]),
           (near, mean_near, torch.tensor([expected(k) for k in near])),
           here),
       instead={
           "the slope of J, give or take some noise":
           "More answers make finer stairs. A slope they do not make.",
           "a few per cent of the slope of J":
           "Only answers near a jump react to a nudge. But a nudge that "
           "is small enough reaches none of them.",
       })

# %% [markdown]
# What does the knob change smoothly, then? Not an answer, but **how often** the answer is written.
# So we differentiate the probabilities, and leave the draws and the grader alone.

# %% [markdown]
# ## Derive it
#
# How do you differentiate how often an answer is written, when all you can do is draw?
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
# The third and fourth line are the **log-derivative trick**. $\nabla\log\pi_\theta(y)$ is called
# the **score** of $y$, and reward times score is the **push** of one drawn answer. The sums run
# over all possible answers, far too many in a real model. The last line needs $N$ of them.
#
# We check it on the knob: from $J$ itself, from all fifteen answers, and from 1,000 draws (after +-
# stands one standard error).

# %%
def slope(x):                                    # dx / d knob
    return torch.autograd.grad(x, policy.logits)[0][0, 1]

def log_pi(y):
    return policy.logprobs()[y].sum()

P = policy.probabilities().detach()                          # (15,)
scores = torch.stack([slope(log_pi(y)) for y in range(15)])
# 1,000 draws: each is the number, 0 to 14, of one of the answers
draw = policy.sample(1000, torch.Generator().manual_seed(0))
pushes = (R * scores)[draw]                                  # (1000,)
print(f"differentiate J   {slope((policy.probabilities() * R).sum()):.4f}")
print(f"trick, all 15     {(P * R * scores).sum():.4f}")
print(f"trick, 1000 draws {pushes.mean():.4f} "
      f"+- {pushes.std() / 1000**0.5:.4f}")

# %% [markdown]
# All three agree. An interviewer expects three words here. The draws come from the policy that is
# being trained: they are **on-policy**. Repeat the estimate for ever, and its mean is $\nabla J$:
# it is **unbiased**. How far single estimates scatter around that mean is their **variance**.
#
# <details><summary>One level deeper: what breaks it?</summary>
#
# * **Other draws.** Draw a token at one temperature and score it at another. A logit's mean score
#   is then its token's probability when drawn minus that when scored. It is not 0, so even equal
#   rewards move the policy. For an older policy's draws page 04 has a ratio.
# * **A reward with θ in it.** The second line loses a term, the mean of ∇R. For the penalty
#   −β log(π/π_ref) of the drawn answer that mean is 0, like the mean score (more in 05).
# * **Dividing by the length.** A mean over an answer's tokens follows the gradient of E[R/T]: a
#   short right answer is worth more (09).
# </details>

# %% jupyter={"source_hidden": true}
# one rectangle for each right answer
pictures.areas(["1, stop", "0, 1, stop", "1, 0, stop"], P, scores, R == 1)

# %% [markdown]
# ## The loss
#
# How do you tell autograd? It wants a scalar to differentiate. Take the bold line, drop the
# $\nabla$, and put a minus in front, since an optimiser minimises. The $\log\pi$ of an answer is
# the sum over its $T_i$ tokens:
#
# $$L=-\frac1N\sum_{i=1}^{N}R_i\sum_{t=1}^{T_i}\log\pi_\theta(y_{i,t}\mid y_{i,\lt t})$$
#
# In the words of RL, a **state** $s_t$ is the prompt with the tokens so far, an **action** $a_t$ is
# the next token, and a **trajectory** is a whole answer. In other tasks the world also throws dice.
# Their probabilities contain no $\theta$, so $\nabla\log$ removes them. Here the world only appends
# the token.

# %%
def reinforce_loss(logp, rewards):   # (N, T) with 0 as padding, (N,)
    return -(rewards * logp.sum(1)).mean()

loss = reinforce_loss(policy.logprobs()[draw], R[draw])
print(f"loss {loss.item():.4f}, slope along the knob {-slope(loss):.4f}")

# %% [markdown]
# This is the slope of the 1,000 draws above. In a real run `logp` comes from a forward pass over
# the written tokens.
#
# With rewards 1 and 0 this loss looks like SFT (01) on the model's own right answers. Our model is
# right in 23 of 100 draws. Give both losses the same fresh draws. SFT sees only the right ones, and
# its loss is the mean of their $-\log\pi_\theta(y)$.

# %% jupyter={"source_hidden": true}
# your guess
predict("reinforce.2", "REINFORCE's expected gradient, against SFT's:",
        ["the same direction, equally long",
         "another direction, equally long",
         "the same direction, 4.3 times as long",
         "the same direction, 0.23 times as long"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: both gradients on every logit
def gradient(x):                                 # of a scalar, (7, 3)
    return torch.autograd.grad(x, policy.logits)[0]

truth = gradient((policy.probabilities() * R).sum())         # REINFORCE
own_right = P * R / (P * R).sum()                # pi, given "right"
sft = gradient((own_right * policy.logprobs().sum(1)).sum())
log_J = (policy.probabilities() * R).sum().log()
assert torch.allclose(gradient(log_J), sft)      # SFT climbs log J
ratio = (truth / sft)[sft.abs() > 1e-9]          # where SFT pushes at all

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
rare, even, easy = (j * (1 - j) for j in (0.001, 0.5, 0.9))
reveal("reinforce.2", "the same direction, 0.23 times as long",
       f"On every logit the factor is {ratio.max():.4f}, the success rate "
       "J. Wrong answers push nothing, so the direction is the same. But "
       "they still count in N. In a formula, summed over the right "
       r"answers, SFT follows $\sum\frac{\pi}{J}\nabla\log\pi"
       r"=\frac1J\sum\nabla\pi=\frac{\nabla J}{J}$: each is drawn with "
       r"$\pi/J$ once the wrong ones are left out. "
       "So a prompt that is answered right once "
       "in a thousand times gets a thousandth of SFT's gradient. With one "
       "right answer in one softmax, SFT pushes its logit by 1 − J and "
       f"REINFORCE by J(1 − J): {rare:.3f} at J = 0.001, {even:.2f} at "
       f"0.5, {easy:.2f} at 0.9. **There, REINFORCE moves little on what "
       "it rarely gets right, and on what it nearly always gets right.**",
       instead={
           "the same direction, equally long":
           "Wrong answers push nothing, but they count in N.",
           "the same direction, 4.3 times as long":
           "It is the other way round: SFT's gradient is the longer one.",
           "another direction, equally long":
           "SFT does not see the wrong answers. But with reward 0 they "
           "have weight 0 here, too.",
       })

# %% [markdown]
# <details><summary>One level deeper: does Adam undo the factor?</summary>
#
# With a single prompt, nearly. Adam divides each parameter's step by the usual size of its
# gradient, and a constant factor drops out. In a batch it rescales the sum
# $\sum_x J_x\,\nabla\log J_x$ and does not know what each prompt $x$ put in. With one right answer
# in a softmax, a prompt solved nine times in ten pushes its logit 90 times as hard as one solved
# once in a thousand ([statements 02](statements/02_reinforce.ipynb)).
# </details>

# %% [markdown]
# ## What one answer pushes
#
# What does a single draw do? Take a smaller toy with four possible answers of one token each, of
# which A and B are right. Draw answer $a$. By Recall 2 its push moves its own logit by
# $R_a(1-\pi_a)$, and every other logit $k$ by $-R_a\,\pi_k$.

# %% jupyter={"source_hidden": true}
# the explorer
task("reinforce.t1", one_push.one_push_explorer(),
     ("A wrong answer is drawn, and it pushes both right ones down. Say "
      "first whether that can happen, and what the mean on the right "
      "then does. Then find it.",
      one_push.wrong_draw_hits_the_right))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Draw C or D, and add something above 0. A wrong draw then pushes itself up, and all others pay,
# the right ones too. (Add nothing and draw B: then A pays, though both are right.)
# </details>
#
# One panel never moved: the mean over all draws. If you add a constant $c$ to all rewards, the mean
# push gains
#
# $$\textstyle\mathbb E[c\,\nabla\log\pi]=c\sum_y\nabla\pi(y)=c\,\nabla\sum_y\pi(y)=c\,\nabla 1=0.$$
#
# **A constant changes what single draws do, and nothing in the mean.**

# %% [markdown]
# ## How far does a step stray?
#
# The mean of many steps is the true gradient. How far does one step stray from it? Take the fifteen
# answers again. A step is the mean push of 16 draws. Call it **uphill** if it points less than 90°
# away from the true gradient: then a small enough step raises $J$. We count over twenty thousand
# steps, all from the same model.

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: how far each answer's score points along the true gradient
all_scores = torch.stack([gradient(log_pi(y)) for y in range(15)])
along = (all_scores * truth).sum((1, 2))         # (15,)
assert (along[R == 1] > 0).all()                 # right ones: all uphill
J0 = (P @ R).item()                              # 0.23

def needed(constant):        # answers until the error is as long as truth
    every = (R + constant)[:, None, None] * all_scores
    square = P @ (every**2).sum((1, 2)) - (truth**2).sum()
    return (square / (truth**2).sum()).item()

error = (
    "\n\n"
    r"$$\tfrac1N\Big(\mathbb E\big[(R+c)^2\,"
    r"\lVert\nabla\log\pi\rVert^2\big]"
    r"-\lVert\nabla J\rVert^2\Big)$$"
    "\n\n")

# %%
def share_uphill(constant, N=16, steps=20_000):
    """Of the steps, when `constant` is added to all rewards."""
    y = policy.sample(steps * N, torch.Generator().manual_seed(1))
    # along: how far an answer's score points along the true gradient
    step = ((R + constant) * along)[y].view(steps, N).mean(1)
    return (step > 0).double().mean().item()

print(f"rewards 0 and 1: {100 * share_uphill(0.0):.1f} % uphill")
print(f"16 draws without a right answer: {100 * (1 - J0)**16:.1f} %")

# %% [markdown]
# Nearly all go uphill. The others have no right answer among their 16, and do not move.

# %% jupyter={"source_hidden": true}
# your guess
predict("reinforce.5", "Another grader pays 10 for wrong and 11 for "
        "right. Of its steps of 16 answers, how many go uphill?",
        ["about 55 %", "about 75 %", "about 90 %"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
quiet, noisy = (100 * share_uphill(c) for c in (0.0, 10.0))
reveal("reinforce.5", "about 55 %",
       f"{noisy:.0f} % do, little better than a coin. Each draw now pushes "
       "itself up, with weight 10 or 11. So it matters more which answers "
       "happened to be drawn than which of them were right. With c added "
       "to all rewards, the mean squared error of N answers is" + error +
       "The error is as long as the true gradient at "
       f"{needed(0.0):.0f} answers for c = 0, at {needed(10.0):,.0f} for "
       "c = 10. **The mean is the same. To see it takes hundreds of "
       "times as many answers.**",
       pictures.clouds({
           f"rewards {c:.0f} and {c + 1:.0f}: {share:.1f} % uphill":
           uphill.compute(16, c)["dots"][:400]
           for c, share in ((0.0, quiet), (10.0, noisy))}),
       instead={
           "about 90 %":
           "The mean is the same. But ten points on each draw do not "
           "cancel in 16 draws: what was drawn is still luck.",
           "about 75 %":
           "Even this is too kind. The squared error grows with the square "
           "of the rewards, and 16 answers divide it by 16 only.",
       })

# %% [markdown]
# ## Who gets the credit?
#
# Which token earned the reward? The loss does not ask. $R_i$ stands before *every* token of answer
# $i$, as the **credit** of each. Take a 0 as the first token. It is written in 17 of 100 draws, and
# 13 % of those end right: there its credit is 1, in the rest 0.

# %% jupyter={"source_hidden": true}
# your guess
predict("reinforce.4", "The credit of that first 0 is never negative. In "
        "the mean over all draws, how does its logit move?",
        ["down, by 0.17 × 0.23", "down, by 0.17 × 0.10",
         "up, by 0.17 × 0.13", "up, by 0.17 × 1"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the chance to end right, and the two parts of the mean push
def chance(prefix):
    n = len(prefix)
    here = torch.tensor([y[:n] == prefix for y in answers])
    return ((P * R)[here].sum() / P[here].sum()).item()

p0, V0, Q0 = P[[y[0] == 0 for y in answers]].sum(), chance(()), chance((0,))
own, every = p0 * Q0, -p0 * V0
assert torch.allclose(own + every, truth[0, 0])
halves = (
    "\n\n"
    r"$$\begin{aligned}\text{the }R\text{ of draws with the 0}&&p\,Q&\\"
    r"\text{the }-R\,p\text{ of all draws}&&-p\,V&\\"
    r"\text{together}&&p\,(Q-V)&\end{aligned}$$"
    "\n\n")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("reinforce.4", "down, by 0.17 × 0.10",
       rf"Let $p$ = {p0:.2f} be the probability of the 0, $Q$ = {Q0:.2f} "
       rf"the chance to end right after it, $V$ = {V0:.2f} the chance "
       r"before. By Recall 2 every draw moves this logit by $-R\,p$, and "
       "a draw with the 0 adds $R$. In the mean:" + halves +
       f"That is {p0:.2f} × ({Q0:.2f} − {V0:.2f}). **In the mean each "
       "first token is compared with $V$, the policy's average. A token "
       "below it is pushed up in a lucky draw, and down in the mean.**",
       pictures.credit(["0", "1", "stop"],
                       [chance((0, 1, 2)[:n]) for n in range(4)]),
       instead={
           "up, by 0.17 × 1":
           "This is the credit in those that end right. But only 13 in 100 "
           "do, and other draws push this logit, too.",
           "up, by 0.17 × 0.13":
           "This is the credit of its own draws. But whenever another "
           "first token is rewarded, this logit falls.",
           "down, by 0.17 × 0.23":
           "This is what every reward takes from it. Its own draws give "
           "some of it back.",
       })

# %% [markdown]
# Does this comparison hold at every token, and for any network? Let the policy write on from a
# state. The mean reward that it then earns is the state's **value** $V(s_t)$; once token $a_t$ is
# written as well, the mean reward is $Q(s_t,a_t)$. In the picture $V$ is the point before a token
# and $Q$ the point after it.
#
# $$\begin{aligned}
# \nabla J&=\textstyle\mathbb E\big[\sum_t R\;\nabla\log\pi_\theta(a_t\mid s_t)\big]&&\text{as derived, for any network}\\
# &=\textstyle\mathbb E\big[\sum_t Q(s_t,a_t)\,\nabla\log\pi_\theta(a_t\mid s_t)\big]&&\text{state and token given, the mean of }R\text{ is }Q\\
# &=\textstyle\mathbb E\big[\sum_t \big(Q(s_t,a_t)-V(s_t)\big)\nabla\log\pi_\theta(a_t\mid s_t)\big]&&\text{state given, }V\text{ is a constant: its mean push is 0}
# \end{aligned}$$
#
# This is the **policy gradient theorem**. $A=Q-V$ is the **advantage**: −0.10, +0.43 and +0.44 in
# the picture. REINFORCE puts $R$ in its place, which is right in the mean and noisy. Pages 03 and
# 07 come closer to $A$.
#
# <details><summary>One level deeper: rewards on the way</summary>
#
# If reward $r_t$ arrives with token $t$, no later token caused it. Give token $t$ the **return to
# go** $R_{\ge t}=\sum_{t'\ge t}r_{t'}$ in place of $R=\sum_t r_t$. The mean gradient stays: what
# was paid before is a constant in state $s_t$. It is usually less noisy.
# </details>
#
# <details><summary>One level deeper: what becomes of B, which is right but rarer than A?</summary>
#
# In the toy of four answers $Q-V$ is $1-J$ for both, so the mean push on A is $\pi_A(1-J)$, on B
# $\pi_B(1-J)$. The likelier right answer rises faster, and the softmax makes B pay. Along 60 exact
# steps of rate 1, A rises from 40 % to 97 %, and B falls from 10 % to 2 %
# ([statements 02](statements/02_reinforce.ipynb)). Rewarding variety (entropy) or closeness to the
# first model (KL, 05) works against this.
# </details>

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | REINFORCE | |
# |---|---|
# | sentence | differentiate how often the answer is written, not the draw and not the grader; weigh it with the reward |
# | formula | $\nabla J=\mathbb E[R\,\nabla\log\pi(y)]$ · $L=-\frac1N\sum_i R_i\sum_t\log\pi(y_{i,t})$ |
# | theorem | $\nabla J=\mathbb E[\sum_t A(s_t,a_t)\,\nabla\log\pi(a_t\mid s_t)]$, with $A=Q-V$; REINFORCE puts $R$ for $A$ |
# | choice | $N$ fresh answers in place of all: on-policy, unbiased, high variance |
# | rewards 1 and 0 | $J$ times SFT on fresh own right answers (here 0.23): reward 0 pushes nothing, but counts in $N$ |

# %%
score("reinforce.1", "reinforce.2", "reinforce.5", "reinforce.4")

# %% [markdown]
# ## Second sitting: can an unbiased step go wrong, and what does the loss say?
#
# ### Downhill
#
# The mean of all steps is the true gradient, whatever constant is added. So say first: can it
# happen that *most* of them go downhill? Then look for it. The explorer starts with rewards 0 and 1
# and 16 answers a step.

# %% jupyter={"source_hidden": true}
# the explorer
task("reinforce.t2", uphill.uphill_explorer(),
     ("Let at least 55 % of the steps go downhill.",
      uphill.mostly_downhill),
     ("For 95 % uphill, rewards 0 and 1 need 12 answers a step, rewards "
      "10 and 11 more than 1,024. Find a constant for which 4 are enough.",
      uphill.few_answers))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Add anything above 0, and take one answer a step. Whatever is drawn then pushes itself up, and
#    most draws are answers whose push points downhill. The steps uphill are fewer and longer.
#    **Unbiased tells where the steps lie on average, not where most of them go.** With rewards 0
#    and 1 this toy cannot do it: its right answers push uphill, wrong ones push nothing. (Others
#    can: [statements 02](statements/02_reinforce.ipynb).)
# 2. Add −0.5 or −0.2. Now right answers push themselves up, wrong ones down, and each draw tells
#    something. (At −1, right answers are silent.) A number subtracted from the reward is called a
#    **baseline**. What it saves depends on what you compare with, and on the measure:
#
# | added | error as long as the gradient | share uphill, 4 answers a step |
# |---|---|---|
# | 10 | at 3,076 answers | 50 % |
# | 0 | at 6 | 65 %, the rest stand still |
# | −0.2 | at 4 | 98 % |
# | −0.5 | at 6 | 98 % |
#
# </details>
#
# Does the noise slow training down? The fifteen-answer model was trained by plain gradient steps: 4
# answers a step, 60 steps, a hundred seeds, each grader at the best of six learning rates from 0.03
# to 10. In the mean over the seeds, rewards 0 and 1 end at $J$ = 1.00, rewards 1 and 2 at 0.97,
# rewards 10 and 11 at 0.37 (standard error 0.03). The last are slow, not stuck: at a rate of 0.01
# and after 8,000 steps every one of the hundred seeds is above 0.9
# ([statements 02](statements/02_reinforce.ipynb)).
# <!-- cited: 65, 98, 50, 1.00, 0.97, 0.37, 0.03, 0.01, 0.9 -->
#
# **A constant slows this training much when it is large next to the gap between right and wrong.**
# A reward model is learned from comparisons, where any constant cancels, so its zero may lie
# anywhere.

# %% [markdown]
# ### What the loss prints
#
# What do you see in the log while this trains? Train the fifteen-answer model, and keep the noise
# out: use all answers with their probabilities instead of draws. Grader one pays 1 and 0, grader
# two pays 0 and −1. A constant changes nothing in the mean, so both take exactly the same steps.

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
top = climb(0.0)[2].exp().max()
kept = -(P * R * logp5).sum()
reveal("reinforce.3", "lower with 1 and 0, higher with 0 and −1",
       f"The first goes from {L[0]:.2f} to {L[-1]:.2f}, the second from "
       f"{L_minus[0]:.2f} to {L_minus[-1]:.2f}, ".replace("-", "−") +
       "by the same steps. Here both come near 0: one right answer takes "
       f"{100 * top:.0f} % of the draws, and its log π is near 0. After a "
       "step the model draws other answers, so the next loss is another "
       "function. Keep the answers and weights of step 0, and that loss "
       f"does fall: after five steps to {kept:.2f}. The printed one has "
       f"risen to {L[5]:.2f}. **The loss has the right slope where the "
       "answers were drawn. Its value does not tell whether J rises.** "
       "Log the mean reward and the norm of the gradient.",
       pictures.climb(J, {"rewards 1 and 0": L,
                          "rewards 0 and −1": L_minus}),
       instead={
           "lower with both graders":
           "Each step descends. But it descends a new loss each time.",
           "higher with 1 and 0, lower with 0 and −1":
           "The signs are turned: see what weights log π.",
           "higher with both":
           "This is true of the second grader only.",
       })

# %%
score("reinforce.3")

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 8 minutes. One softmax over $K$ answers. Work out the sum over draws: by what is
# logit $k$ pushed in the mean? Return the $K$ pushes, without autograd.
#
# <details><summary>hint</summary>First one answer's push on logit k, by Recall 2. Then its mean over draws.</details>

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
# **3 Make it survive** · 6 minutes. The page's loss, with a mask. Where the mask is False,
# `logprobs` may be anything, infinity and NaN included. A row may have no token at all. The check
# lets `x * mask` pass with a warning; get rid of the warning.
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
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>Derive the policy gradient.</b></summary>
#
# Write J as a sum over answers, then multiply and divide by π. Only π depends on θ, so ∇J is the
# sum of R∇π. Since ∇π = π∇log π, that is the mean of R∇log π over π's own draws. Estimate it with N
# fresh answers. log π(y) is a sum over tokens. The transition, appending a token, has no parameters
# and drops out.
# </details>
# <details><summary><b>State the policy gradient theorem. Where is the gradient of the states?</b></summary>
#
# ∇J is the mean, over own draws, of the sum over tokens of A(s, a)∇log π(a|s), with A = Q − V. From
# R∇log π: given state and token, R averages to Q; given the state, V is a constant and has mean
# push 0. The parameters also change which states come later. That is counted already: an earlier
# token's Q holds all that follows. It holds for any network.
# </details>
# <details><summary><b>Why not backpropagate through the sampling?</b></summary>
#
# Its gradient is 0 almost everywhere. A small change of the parameters leaves the drawn token as it
# is; at some points it jumps. So gradient and mean may not be swapped. J has a slope, but a real
# model's sum over answers cannot be written out.
# </details>
# <details><summary><b>One reward at the end, 500 tokens. Who gets the credit?</b></summary>
#
# All tokens get the same credit, and still the mean gradient is right. In one softmax the mean push
# on a token's logit is π(Q − V). The price is noise. Let the first of T coin flips decide alone,
# each flip with its own logits. The error is then as long as the gradient at 2T − 1 answers: 999
# for 500 tokens. A baseline of one half makes it 499; the exact Q − V leaves no error.
# </details>
# <details><summary><b>How does it differ from SFT on your own right answers?</b></summary>
#
# With rewards 1 and 0 only by a factor. The expected gradient is the success rate J times that of
# SFT on fresh own right answers: reward 0 pushes nothing, but counts in N. With one prompt Adam
# nearly undoes the factor. In a batch each prompt has its own, so rarely solved ones count little.
# With a baseline, a wrong answer pushes itself down. With rewards between 0 and 1 the directions
# differ, too.
# </details>
# <details><summary><b>Why is REINFORCE so noisy, and what helps?</b></summary>
#
# Each push carries the whole reward. A constant in it leaves the mean alone and enters the variance
# squared. In this page's toy the error is as long as the gradient at 6 answers
# with rewards 0 and 1, 4 with 0.2 subtracted, and 3,076 with 10 and 11. Cheapest first: subtract a
# baseline, use the return to go, draw more answers, learn V (07).
# <!-- cited: 0.2 -->
# </details>
# <details><summary><b>Your RL loss rises. Is training broken?</b></summary>
#
# You cannot tell from the loss. It is made to have the right gradient where the answers were drawn;
# its value moves with the answers. A constant added to all rewards changes its course and not the
# expected gradient. Look at the mean reward on held-out prompts, the gradient norm, the distance
# from the first model (KL, 05), and how varied the answers are (entropy).
# </details>
#
# The sentences that one hears about REINFORCE, true or not:
# [statements 02](statements/02_reinforce.ipynb). The exercises, solved:
# [solutions 02](solutions/02_reinforce.ipynb).
#
# **Next: [03 · Baselines](03_baselines.ipynb).** Why may you subtract a number, and which number is
# best?
