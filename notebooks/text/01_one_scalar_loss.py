# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · One scalar loss: what if the model writes its own data?
#
# **After this page** you can derive what fine-tuning on given answers does to the logits, turn that
# loop into one that learns from the model's own answers, and say when that loop hardly starts.
#
# 38 minutes, then 17 in a second sitting · exercises 30 more · after [00](00_start_here.ipynb)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. A model gives four logits. How do they become four probabilities?</summary>Softmax: e to each logit, divided by the sum of all four.</details>
# <details><summary>2. An answer has T tokens. What is its probability, and what is the log of it?</summary>The product of the tokens' probabilities, each given the tokens before it. The log is a sum.</details>
# <details><summary>3. What is a reward?</summary>One number for a whole answer, given by a program that reads it (00).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import check
from rlnb.classroom.explorers import kl_directions, slow_start
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import one_scalar_loss as pictures
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## One loop, two authors
#
# Can a model be trained on answers that it wrote itself? In supervised fine-tuning, **SFT**,
# somebody else writes them, and the loss is minus the mean of their log-probabilities. Our toy has
# one prompt, “3 + 4 =”, and four possible answers, each with a logit of its own. Two are right.

# %%
names = "7", "seven", "34", "8"
start = torch.tensor([0.2, 0.1, 0.4, 0.3])     # the model at first
R = torch.tensor([1.0, 1.0, 0.0, 0.0])         # reward: is it right?
teacher = torch.tensor([0.5, 0.5, 0.0, 0.0])   # writes both, equally

# %% [markdown]
# The loop draws eight answers, takes their loss, and makes one gradient step, in 400 runs side by
# side. Two things can be swapped: `author`, who writes the answers, and `loss`, which is told their
# log-probabilities and rewards. `sft` ignores the rewards. The teacher writes first.

# %%
def sft(log_p, r):                         # (runs, n) -> (runs,)
    return -log_p.mean(1)

def train(author, loss=sft, first=start, rate=0.5, steps=100, n=8):
    """Chance of a right answer before and after each step, per run."""
    rng = torch.Generator().manual_seed(0)
    z = first.log().repeat(400, 1).requires_grad_()      # logits
    right = []
    for _ in range(steps + 1):
        log_pi = z.log_softmax(1)
        pi = log_pi.exp().detach()
        right.append(pi @ R)
        y = author(pi).multinomial(n, True, generator=rng)
        L = loss(log_pi.gather(1, y), R[y]).sum()
        z.data -= rate * torch.autograd.grad(L, z)[0]
    return torch.stack(right)                            # (steps + 1, 400)

# %%
def by_teacher(pi): return teacher.expand_as(pi)
def by_model(pi): return pi

given = train(by_teacher)
print(f"chance of a right answer: {given[0].mean():.2f} at first, "
      f"{given[-1].mean():.2f} after 100 steps")

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.1", "Now the model itself writes the answers "
        "that it is trained on. Nothing else changes. What happens to its "
        "chance of a right answer?",
        ["no direction: runs drift apart, up or down by luck",
         "falls: most of what it writes is wrong",
         "rises: what it is surest of gets surer",
         "level in every run: it already says what it says"])

# %%
own = train(by_model)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
error = own[-1].std() / own.shape[1] ** 0.5
reveal("one_scalar_loss.1",
       "no direction: runs drift apart, up or down by luck",
       f"The mean over the runs began at {own[0].mean():.2f} and ends at "
       f"{own[-1].mean():.2f} ± {error:.2f} (a standard error). Single "
       f"runs end anywhere between {own[-1].min():.2f} and "
       f"{own[-1].max():.2f}.",
       pictures.authors({"the teacher writes": given,
                         "the model writes": own}, (
           "One loop, one loss, one learning rate; only the author of the "
           "answers differs. 400 runs each."), single="the model writes"),
       instead={
           "rises: what it is surest of gets surer":
           "Most runs do get surer of one answer. But luck chooses which: "
           "in one run “34”, in another “7”.",
           "falls: most of what it writes is wrong":
           "Most of what it writes is wrong, and pushed up. But it writes "
           "right answers too, in the shares that it has already.",
           "level in every run: it already says what it says":
           "The mean over the runs hardly moves. Look at single runs.",
       })

# %% [markdown]
# **With this loss, whoever writes the answers decides where training goes.**
#
# ## What does a given answer do to the logits?
#
# Why does one author give a direction, and the other none? Take one answer $y$, and differentiate
# its log-probability. $\pi_v$ is the model's probability of answer $v$, and $z_v$ its logit. The
# bracket $[v=y]$ is 1 if $v$ is $y$, else 0.
#
# $$\begin{aligned}
# \log\pi_y&=z_y-\log\textstyle\sum_u e^{z_u}&&\text{softmax, and the log of a quotient}\\
# \frac{\partial\log\pi_y}{\partial z_v}&=[v=y]-\frac{e^{z_v}}{\sum_u e^{z_u}}=[v=y]-\pi_v&&\text{chain rule on the log of the sum}\\
# L&=-\textstyle\sum_y p_y\log\pi_y&&\textbf{a choice: all given answers count alike; } p_y\text{ is the share of }y\\
# -\frac{\partial L}{\partial z_v}&=\textstyle\sum_y p_y\big([v=y]-\pi_v\big)=p_v-\pi_v&&\text{the shares add up to 1}
# \end{aligned}$$
#
# The **push** on a logit, minus the slope of the loss, is *data minus model*. For “seven” and this
# teacher it is 0.50 − 0.10.

# %%
z = start.log().requires_grad_()

def push(loss):                            # on the four logits
    return -torch.autograd.grad(loss, z)[0]

# %% jupyter={"source_hidden": true}
# the formula against autograd, and the picture
for data in (teacher, start):              # ... and its own answers
    mean_loss = -(data * z.log_softmax(0)).sum()
    assert torch.allclose(push(mean_loss), data - start)

pictures.data_minus_model(names, start, {
    "the teacher writes": teacher, "the model writes": start}, (
    "Bars: what the model says. Arrows: the mean push, from the model's "
    "share to the share in the data. Where both agree, it is 0."))

# %% [markdown]
# A model that writes its own answers is its own data: the mean push on the logits is 0. What moved
# the single runs was the luck of eight draws.
#
# Luck does not even out, since nothing brings a run back: after 1,000 steps its favourite answer
# has probability 0.85 (mean of the runs). (Draws at temperature 0.7 are sharper than the model.
# They do push, here towards “34”.)
#
# <!-- cited: 0.7, 0.85 -->

# %% [markdown]
# ## Can the grader show the way?
#
# Without a teacher, a program can still grade what the model writes: reward 1 or 0. Which change of
# the logits raises the mean reward? *Measure* it: draw 20 answers, add a small **nudge** to the
# logit of “7”, draw again with the same 20 random numbers, so that luck is the same, and divide the
# change of the mean reward by the nudge.

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.3", "Keep the same 20 random numbers, and make "
        "the nudge smaller and smaller. Where does the measured slope go?",
        ["to the true slope", "to 0 in the end",
         "near the true slope", "up and down without end"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
numbers = torch.rand(20, generator=torch.Generator().manual_seed(21))

def chance(by):                            # of a right answer
    seven = start[0] * torch.as_tensor(by).exp()
    return (seven + start[1]) / (seven + 1 - start[0])

def mean_reward(by):                       # right: below the chance
    return (numbers < chance(by)[..., None]).double().mean(-1)

few = {h: (mean_reward(h) - mean_reward(0.0)).item() / h
       for h in (1.0, 0.2, 0.1)}
true_slope = (start[0] * (1 - start[:2].sum())).item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
by = torch.linspace(-0.5, 1.5, 801)
reveal("one_scalar_loss.3", "to 0 in the end",
       f"With these 20 numbers it is {few[1.0]:.2f} at nudge 1, "
       f"{few[0.2]:.2f} at 0.2, and {few[0.1]:.2f} from 0.1 on. The true "
       f"slope is {true_slope:.2f}. A draw is an integer. The mean reward "
       "jumps where one of the 20 answers changes from wrong to right, and "
       "is flat in between. A small nudge catches no jump. With other "
       "random numbers it may catch one, and then the reading is far too "
       "large. A slope that needs no nudge would be better.",
       pictures.staircase(by, mean_reward(by), chance(by), few),
       instead={
           "to the true slope":
           "The slope of a smooth function would. The mean reward of 20 "
           "draws is not smooth.",
           "near the true slope":
           "Noise alone would leave it near. But a tiny nudge changes none "
           "of the 20 answers.",
           "up and down without end":
           "It does jump at first. But 20 answers make 20 jumps, and a "
           "nudge that is small enough contains none.",
       })

# %% [markdown]
# ## What has a slope, if a draw has none?
#
# The dashed curve in the picture is smooth. It is the **expected reward** $J=\sum_y\pi_yR_y$, the
# mean over all possible answers, each with its probability. Nothing in $J$ is drawn, and a
# probability has a slope.
#
# $$\begin{aligned}
# \frac{\partial\pi_y}{\partial z_v}&=\pi_y\,\frac{\partial\log\pi_y}{\partial z_v}&&\text{derivative of a log, turned round}\\
# \frac{\partial J}{\partial z_v}&=\textstyle\sum_y\pi_y\,R_y\,\frac{\partial\log\pi_y}{\partial z_v}&&\text{term by term: a mean over the model's own draws}\\
# &=\textstyle\sum_y\pi_y\,R_y\,\big([v=y]-\pi_v\big)&&\text{the push of one given answer, from above}\\
# &=\pi_vR_v-\pi_vJ=J\,\Big(\frac{\pi_vR_v}{J}-\pi_v\Big)&&\text{as }\textstyle\sum_y\pi_yR_y=J\text{; then take }J\text{ out}
# \end{aligned}$$
#
# The first line is the **log-derivative trick**. It turns a sum over all answers, too many to list
# in a real model, into a mean over draws. Why the log? Frequent answers are drawn often, and
# $\partial\log\pi=\partial\pi/\pi$ divides that out again.
#
# In the last bracket, $\pi_vR_v$ is the chance that the model says $v$ and is right. Divided
# by $J$ it is $p^+_v$, the **share of $v$ among its own right answers**. So $p^+_v-\pi_v$ is data
# minus model again, and the factor $J$ sets the length of the step.

# %% jupyter={"source_hidden": true}
# J, its slope by autograd, and the picture
J = (z.softmax(0) * R).sum()
slope, = torch.autograd.grad(J, z)
kept = (start * R / J).detach()            # shares of its right answers
assert torch.allclose(slope, J * (kept - start))

pictures.data_minus_model(names, start, {
    "SFT on the teacher's answers": teacher,
    "SFT on its own right answers": kept}, (
    f"Right: of its own right answers {kept[0]:.2f} are “7” and "
    f"{kept[1]:.2f} “seven”. The slope of J is the arrows on the right, "
    f"times J, here {J:.2f}."))

# %% [markdown]
# **To raise the expected reward, do SFT on your own right answers**, freshly drawn at every step.
# In code, multiply each log-probability by its reward. `graded` divides by the number of
# all answers, and its mean push is the slope of $J$. `right_only` divides by the number of right
# ones. If there are any, its mean push is $p^+-\pi$ without the factor, the slope of $\log J$ (as
# $\partial\log J=\partial J/J$).

# %%
def graded(log_p, r):
    return -(r * log_p).mean(1)

def right_only(log_p, r):                  # no right one: 0
    return -(r * log_p).sum(1) / r.sum(1).clamp(min=1)

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.4", "Eight draws gave “34” seven times and “7” "
        "once. Take one step with `graded`. Which logits fall?",
        ["none: wrong answers have reward 0 and drop out",
         "only that of “34”, the wrong answer that was drawn",
         "those of “34” and “8”, the two wrong ones",
         "those of “34”, “8” and “seven”, all but “7”"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
y = torch.tensor([[2, 2, 2, 2, 2, 2, 2, 0]])          # seven “34”, one “7”
one_step = push(graded(z.log_softmax(0)[y], R[y]).sum())

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("one_scalar_loss.4", "those of “34”, “8” and “seven”, all but “7”",
       "The pushes: " + ", ".join(
           f"“{n}” {v:+.4f}".replace("-", "−")
           for n, v in zip(names, one_step.tolist()))
       + ". Only “7” is in the loss. The others fall because softmax takes "
       "from each its share, also from “seven”, which is right but was not "
       "drawn. (Over many batches its logit rises. Its share need not: the "
       "second sitting shows who crowds it out.)\n\n"
       "**With reward 0, a wrong answer falls only because right ones "
       "rise.** Would reward −1 help? On average it only doubles the push: "
       "2R − 1 is twice R, minus 1 for every answer alike, and that part "
       "has mean push 0, as with `sft` on its own answers. (What changes "
       "is the noise: 03.)",
       instead={
           "none: wrong answers have reward 0 and drop out":
           "They have no push of their own. But they share a softmax with "
           "“7”.",
           "only that of “34”, the wrong answer that was drawn":
           "It falls. Is it the only one that pays for the rise of “7”?",
           "those of “34” and “8”, the two wrong ones":
           "Right answers that were not drawn pay, too.",
       })

# %%
learnt = {loss: train(by_model, loss) for loss in (graded, right_only)}

# %% jupyter={"source_hidden": true}
# the picture
pictures.authors({
    "the teacher writes, sft": given, "the model writes, sft": own,
    "the model writes, graded": learnt[graded],
    "the model writes, right_only": learnt[right_only]}, (
    "The model's own answers do as data, once they are graded. Means of "
    "400 runs, eight answers a step, rate 0.5."))

# %% [markdown]
# Graded, its own answers take the model as far as the teacher's, to 0.98. Only the start of
# `graded` is slower, by the factor J.
#
# <details><summary>One level deeper: what the ungraded loop left out</summary>
#
# On its own answers the model had the loss $-\log\pi$. Its mean is the entropy of π, whose slope is
# not 0. Why was the mean push 0? A mean over own draws changes in two ways:
#
# $$\frac{\partial}{\partial z_v}\sum_y\pi_yf_y=\underbrace{\textstyle\sum_y\frac{\partial\pi_y}{\partial z_v}f_y}_{\text{the draws change}}+\underbrace{\textstyle\sum_y\pi_y\frac{\partial f_y}{\partial z_v}}_{f\text{ changes}}$$
#
# Autograd is handed integers and sees only the second part. For $f=-\log\pi$ that part is 0. With
# the first part, 100 exact steps at rate 0.5 lower the entropy and end on “34”, right with
# probability 0.002.
# </details>
#
# <!-- cited: 0.002 -->

# %% [markdown]
# ## What if right answers are rare?
#
# Now take a model that is right once in a hundred.

# %%
hard = torch.tensor([0.006, 0.004, 0.5, 0.49])
alone = train(by_model, graded, hard)
print(f"graded, after 100 steps: {alone[-1].mean():.2f}")
print(f"first batches without a right answer: {100 * 0.99**8:.0f} %")

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.5", "Own answers, graded, end at 0.02. Here are "
        "four changes, each made alone. Three of them end above 0.9. Which "
        "one does not?",
        ["rate 4 instead of 0.5", "`right_only` instead of `graded`",
         "64 answers a step instead of 8", "800 steps instead of 100"])

# %% jupyter={"source_hidden": true}
# the runs
rate_4 = train(by_model, graded, hard, rate=4)
only = train(by_model, right_only, hard)
many = train(by_model, graded, hard, n=64)
fast = train(by_model, graded, hard, n=64, rate=4)
steps_800 = train(by_model, graded, hard, steps=800)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("one_scalar_loss.5", "64 answers a step instead of 8",
       f"It ends at {many[-1].mean():.2f} as well. Fewer first batches are "
       f"empty, {100 * 0.99**64:.0f} % instead of {100 * 0.99**8:.0f} %. "
       "But `graded` divides by 64, so a right answer moves the logits an "
       "eighth as far. The mean push is J times p⁺ − π, however many "
       "answers there are. **With `graded`, more answers make the push "
       "less noisy, not longer.** What the quiet buys is a larger rate: at "
       f"rate 4 they end at {fast[-1].mean():.2f}.",
       instead={
           "rate 4 instead of 0.5":
           "An empty batch stays empty. But all other steps are eight "
           f"times as long. It ends at {rate_4[-1].mean():.2f}.",
           "`right_only` instead of `graded`":
           "An empty batch stays empty. But a single right answer counts "
           f"1, not 1/8. It ends at {only[-1].mean():.2f}.",
           "800 steps instead of 100":
           "Slow at first, but the push grows with J. It ends at "
           f"{steps_800[-1].mean():.3f}.",
       })

# %% [markdown]
# Two things count: how *often* a right answer is met, and how *far* it moves the logits. What do
# they cost, in answers and in steps?

# %% jupyter={"source_hidden": true}
# the explorer
task("one_scalar_loss.t1", slow_start.slow_start_explorer(),
     ("Get the mean chance to 0.9 with at most 300 own answers, in at most "
      "25 steps. Say first: how many answers does even the best setting "
      "need?", slow_start.frugal))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# About 230: before that, more than one run in ten has met no right answer, as $0.99^{230}=0.1$.
# Divide by the right ones, with 16 answers at rate 2 or 4, or 32 at rate 4. Then a first right
# answer moves the logits far. `graded` meets right answers as early, and then crawls. (Large rates
# are safe here: no wrong answer is ever paid, and no other prompt shares the logits.)
# </details>

# %% [markdown]
# **Until the first right answer nothing moves a run, whatever the setting.** It takes 1/J answers
# on average; a teacher saves this search. So a model must be right now and then before `graded` can
# move it. SFT is one way to get there. DeepSeek-R1-Zero did without: its base model already had
# 15.6 % on AIME 2024 ([arXiv 2501.12948](https://arxiv.org/abs/2501.12948)). In a run, log the
# share of prompts without any right answer.

# %% [markdown]
# ## What changes in a language model?
#
# Here an answer had one logit. A language model has a row of logits $z_t$ for each place $t$, and
# draws the token $y_t$ from their softmax $\pi_t$, the tokens before being given. Where does the
# reward of the answer go?
#
# $$\begin{aligned}
# \log\pi_y&=\textstyle\sum_t\log\pi_{t,y_t}&&\text{an answer's probability is the product of its tokens'}\\
# \frac{\partial\log\pi_y}{\partial z_{t,v}}&=[v=y_t]-\pi_{t,v}&&z_t\text{ stands in one term only; then as above}
# \end{aligned}$$
#
# **At every place, the push is the reward of the whole answer times drawn token minus $\pi_t$.**
# The grader does not say which token earned it (07).
#
# **A choice** is the divisor. Take two right answers, of 2 and 6 tokens:
#
# | divide by | weight of a token | on average |
# |---|---|---|
# | answers (`graded`) | 1/2 in both | the slope of $J$ |
# | all 8 tokens | 1/8 in both | in large batches the direction of $J$'s slope |
# | each answer's own tokens | 1/4 and 1/12 | the slope of the mean of R/T: being right *and short* pays |
#
# With several prompts, `graded` follows the mean of their $J$, while `right_only`, prompt by
# prompt, gives hard prompts more weight: up to $1/J$ times as much.
#

# %% jupyter={"source_hidden": true}
# drawn at temperature 0.7, scored at 1: mean push on the four logits
sharper = (start.log() / 0.7).softmax(0)
off = sharper * R - (sharper @ R) * start
print(f"mean push on “seven”: {slope[1]:.3f} if the model draws, "
      f"{off[1]:.3f} if it draws at 0.7")

# %% [markdown]
# **Score the distribution that draws.** If an engine samples at temperature 0.7 and the trainer
# scores at 1, `graded` pulls the model to the right answers of the *sharper* model, and rare right
# answers get less than the slope of $J$ asks for.
#
# <details><summary>One level deeper: how much more weight?</summary>
#
# With $n$ answers a prompt, the mean push of `right_only` is $1-(1-J)^n$ times $p^+-\pi$, as a
# batch without right answers is empty. Next to `graded` this is a weight of $(1-(1-J)^n)/J$. At
# $n=8$ it is 7.7 for one right answer in a hundred, 2.0 for one in two. Pool the right answers of
# all prompts and divide by their number, and in large batches the prompts weigh as in the mean of
# $J$.
# </details>
#
# <!-- cited: 7.7, 2.0, 0.7 -->

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | one scalar loss | |
# |---|---|
# | sentence | SFT moves the model to the data; its own answers work as data too, if they are graded 0 or 1 and drawn anew at every step |
# | formula | push of SFT: $p_v-\pi_v$ · of $J$: $\pi_v(R_v-J)=J\,(p^+_v-\pi_v)$ · at place $t$: $R\,([v=y_t]-\pi_{t,v})$ |
# | trick | $\partial\pi=\pi\,\partial\log\pi$ turns the slope of a sum over all answers into a mean over draws |
# | picture | four lines: teacher, own, own graded and divided by all or by the right ones |
# | numbers | own answers, ungraded: mean push 0 · right once in a hundred: 92 % of batches of 8 push nothing; 64 answers take `graded` no further |
# | not when | another temperature draws: then own answers push without a grade · no answer is right |
# | choices | the divisor: answers, all tokens, each answer's tokens, or right answers |

# %%
score("one_scalar_loss.1", "one_scalar_loss.3", "one_scalar_loss.4",
      "one_scalar_loss.5")

# %% [markdown]
# ## Second sitting: keep or draw again, and two KLs
#
# SFT on your own right answers raised the reward. Must they be drawn anew at every step?
#
# ### Keep them, or draw again?
#
# Go back to the first model, which is right three times in ten. **Keep** draws once, keeps the
# right answers (2/3 “7” and 1/3 “seven”), and trains on them to the end. **Draw again** draws anew
# after every step. We compare them with infinitely many draws, and steps of equal length.

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.6", "Where do the two recipes end?",
        ["only drawing again becomes nearly always right",
         "both right; drawing again says almost only “7”",
         "both right; both say “7” two times in three",
         "both right; drawing again evens the two out"])

# %%
def follow(again, first=start, steps=60):
    """Chance to be right, and the share of "7" in it, at each step."""
    z, right, sevens = first.log(), [], []
    for _ in range(steps + 1):
        pi = z.softmax(0)
        right.append((pi @ R).item())
        sevens.append((pi[0] / (pi @ R)).item())
        p = pi * R / (pi @ R) if again else first * R / (first @ R)
        z = z + 0.1 * (p - pi) / (p - pi).norm()
    return right, sevens

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
ways = {"keep": follow(False), "draw again": follow(True)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, in words
why = (
    "What is kept is a teacher, and SFT ends at its shares. Drawing again "
    "only asks for right answers: “7” is drawn more often, so it is pushed "
    "more, so it is drawn more often still. (Equal steps make this look "
    "quick: the steps of `graded` shrink as J nears 1.)")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("one_scalar_loss.6",
       "both right; drawing again says almost only “7”",
       "Among the right answers “7” ends at "
       + ", ".join(f"{share[-1]:.2f} ({name})"
                   for name, (right, share) in ways.items())
       + ". " + why,
       pictures.copy_or_draw_again(ways),
       instead={
           "only drawing again becomes nearly always right":
           "Keeping what is right is enough for being right, here where "
           "the kept batch has right answers.",
           "both right; both say “7” two times in three":
           "What is kept never changes. But what is drawn again changes "
           "with the model.",
           "both right; drawing again evens the two out":
           "It does the opposite. What is frequent is drawn more often, "
           "and pushed more often.",
       })

# %% [markdown]
# Kept answers are **off-policy**: another model wrote them, a teacher or an older self. Answers
# drawn anew at every step are **on-policy**, and `graded` on them is the simplest policy gradient,
# REINFORCE (02). The model that is trained is called the **policy**. Keeping is
# **rejection-sampling fine-tuning** ([arXiv 2308.01825](https://arxiv.org/abs/2308.01825)). RAFT
# ([arXiv 2304.06767](https://arxiv.org/abs/2304.06767)) stands between: it draws anew once a round,
# and trains on the best.
#
# Why draw again at all, if keeping was enough? Here the kept batch held both wordings. A batch of
# eight from the model that is right once in a hundred mostly holds none.

# %% [markdown]
# ### Where does the loss of SFT stop?
#
# Back to the first loop: the teacher writes, now without luck. How low can the loss get?

# %% jupyter={"source_hidden": true}
# the loss of SFT, exact shares
losses, logits = [], start.log()
for _ in range(120):
    pi = logits.softmax(0)
    losses.append(-(teacher * pi.log()).sum().item())
    logits = logits + 0.5 * (teacher - pi)          # the push
print("loss, nats:", ", ".join(
    f"{losses[k]:.2f}" for k in (0, 40, 80, 119)))

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.2", "This is the loss at first and after 40, 80 "
        "and 119 steps. Somebody wants it below 0.3. Which of these gets "
        "it there?",
        ["a thousand more steps", "a model with more logits",
         "a teacher that always says “7”", "a model that always says “7”"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def last_loss(data, steps):
    logits = start.log()
    for _ in range(steps):
        logits = logits + 0.5 * (data - logits.softmax(0))
    return -(data * logits.log_softmax(0)).sum().item()

longer = last_loss(teacher, 1120)
one_word = last_loss(torch.tensor([1.0, 0.0, 0.0, 0.0]), 120)
floor = torch.tensor(2.0).log().item()
split = (r"$$L=-\sum_y p_y\log\pi_y=\underbrace{-\sum_y p_y\log p_y}"
         r"_{\text{entropy of the data}}+\underbrace{\sum_y p_y\log"
         r"\frac{p_y}{\pi_y}}_{\mathrm{KL}(p\Vert\pi)}$$")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("one_scalar_loss.2", "a teacher that always says “7”",
       f"Then 120 steps end at {one_word:.2f}, on the way to 0. With two "
       "wordings nobody can know which comes next, and this part of the "
       "loss stays. Add and subtract the same sum:\n\n" + split +
       "\n\nTraining can remove only the second part, the "
       "**Kullback-Leibler divergence**: the mean log-ratio, never "
       "negative, 0 only where the two agree. The floor is the entropy, "
       f"here log 2 = {floor:.2f}. **A loss that levels off above 0 need "
       "not be a failure.**",
       pictures.floor(losses, floor),
       instead={
           "a thousand more steps":
           f"They bring it to {longer:.3f}. The teacher tosses a coin "
           "between two wordings, and no training foresees a coin.",
           "a model with more logits":
           "Four logits already come as near as you like to any four "
           "shares, the teacher's as well.",
           "a model that always says “7”":
           "It is always right. But half of the teacher's answers are "
           "“seven”: it gives them probability 0, and the loss is "
           "infinite. A low loss is not a right answer, nor the reverse.",
       })

# %% [markdown]
# The floor of a real data set is not known: one sees entropy plus KL, in one number. But if two
# models are compared on the same data, the difference of their losses is that of their KLs.

# %% [markdown]
# ### Two KLs: who draws?
#
# Above the floor stands KL(p‖π), a mean over the teacher's answers. If the model draws, the mean
# runs over the model's answers:
#
# $$\underbrace{\mathrm{KL}(p\Vert\pi)=\sum_y p_y\log\frac{p_y}{\pi_y}}_{\textbf{forward}}\qquad\qquad\underbrace{\mathrm{KL}(\pi\Vert p)=\sum_y\pi_y\log\frac{\pi_y}{p_y}}_{\textbf{reverse}}$$
#
# Both are 0 when $\pi=p$, so a model that can be the teacher is best there under either. Take a
# model that is too small. Answers are points on a line, the teacher answers around −2 or around +2,
# and the model is a single bell.

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.7", "The peaks are at ±2. The model draws, so we "
        "take KL(model‖teacher). Where does the best bell stand?",
        ["in the middle, as wide as both peaks together",
         "in the middle, as wide as a single peak",
         "on one peak, as wide as a single peak",
         "on one peak, as wide as both peaks together"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
best = kl_directions.compute(distance=2.0)["best"]["reverse"]
on_two, on_three, between = (
    kl_directions.compute(*bell)         # distance, weight, mean, width
    for bell in ((2, 0.5, 2, 1), (3, 0.5, 3, 1), (3, 0.5, 0, 2.7)))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("one_scalar_loss.7",
       "in the middle, as wide as both peaks together",
       f"With width {best[1]:.2f} it pays {best[2]:.2f}. A bell of width 1 "
       f"on a peak pays {on_two['reverse']:.2f}. Why? On one peak the "
       "model is about twice as dense as the teacher wherever it speaks. "
       "So it pays about log 2, however far away the other peak is: what "
       "the model never says costs it nothing. In the middle it pays for "
       "the valley, which is shallow at ±2. At ±3 it is deep: the middle "
       f"costs {between['reverse']:.2f}, a peak {on_three['reverse']:.2f}. "
       "Forward would ask "
       f"{on_three['forward']:.2f} for that peak. **Forward covers. "
       "Reverse picks, if the model is too small and the valley deep.**",
       instead={
           "in the middle, as wide as a single peak":
           "Then almost all it says lies in the valley.",
           "on one peak, as wide as a single peak":
           "So the rule of thumb says: reverse picks. With these peaks it "
           "is not yet true.",
           "on one peak, as wide as both peaks together":
           "Half of that bell lies where the teacher says nothing.",
       })

# %% jupyter={"source_hidden": true}
# the explorer
task("one_scalar_loss.t2", kl_directions.kl_explorer(),
     ("From which distance on is a peak as good as the middle, for "
      "KL(model‖teacher)? Say it first. Leave the smallest distance at "
      "which a bell on a peak comes within 0.02 of its black line.",
      kl_directions.last_good_peak))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# ±2.8. A bell on a peak pays about log 2 at any distance. The middle pays more and more, as the
# valley deepens: 0.42 at ±2.4, 0.61 at ±2.7. Peaks of width 1 must be nearly six widths apart
# before "reverse picks" is true.
# </details>
#
# <!-- cited: 2.8, 0.42, 2.4, 0.61, 2.7 -->

# %%
score("one_scalar_loss.6", "one_scalar_loss.2", "one_scalar_loss.7")

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 10 minutes. The model draws, and its loss is $\mathrm{KL}(\pi\Vert p)$. Derive the
# push on the logits, minus the gradient, and return it. No autograd.
#
# <details><summary>hint</summary>Write −KL(π‖p) like J. What plays the reward? It depends on z as well: what does that part add up to?</details>

# %% tags=["exercise"]
def my_reverse_push(z, p):                 # logits, teacher: (V,), (V,)
    return ...

check.reverse_kl_push(my_reverse_push)

# %% [markdown]
# **2 Implement** · 8 minutes. SFT as it is shipped. A transformer returns `logits` (B, T, V), and
# those at place t predict the token at t + 1. `mask` (B, T) is 1 on the answer's tokens and 0 on
# prompt and padding. Every token of the answers counts alike.
#
# <details><summary>hint</summary>Which place has nothing to predict? Which token does nobody predict? Cut first, then gather.</details>

# %% tags=["exercise"]
def my_sft_loss(logits, tokens, mask):
    return ...

check.sft_loss(my_sft_loss)

# %% [markdown]
# **3 Find the silent bug** · 8 minutes. At the start, all logits equal, it gives log V, as it
# should. Training with it lowers it, and the answers get better:

# %%
print(check.silent_bug_one_scalar_loss.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>Equal logits show nothing. What do you know of the loss of a certain model, or of the push?</details>

# %% tags=["exercise"]
def my_test(mean_nll):
    return ...

check.silent_bug_one_scalar_loss(my_test)

# %% [markdown]
# **4 Make it survive** · 4 minutes. KL of two distributions in nats, with zeros in them: an answer
# that p never gives costs nothing, one that only q never gives costs everything.
#
# <details><summary>hint</summary>What is 0 times log 0 in floating point? Which branch may it stand in?</details>

# %% tags=["exercise"]
def my_kl(p, q):                           # (V,), (V,) -> ()
    return ...

check.kl_divergence(my_kl)

# %% [markdown]
# <details><summary>Extra</summary>The cross-entropy with zeros goes alike: write `cross_entropy(p, q)` and hand it to `check.cross_entropy`.</details>

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>What is the gradient of the loss with respect to the logits?</b></summary>
#
# Model minus data. For one gold token it is π minus one-hot, because softmax is the derivative of
# log-sum-exp. It sums to 0, each entry lies between −1 and 1, and it fades as the gold token
# becomes certain. In RL the drawn token takes the gold one's place, and the vector is multiplied by
# the reward of the whole answer, the same at every place.
# </details>
# <details><summary><b>A model trains on its own ungraded answers. What happens?</b></summary>
#
# On average the logits get no push, and yet single runs lose their variety. The mean push is data
# minus model, and the model is the data. But each batch has its luck: on a toy of four answers,
# luck chose a favourite, which had probability 0.85 after 1,000 steps. Not so at temperature 0.7:
# such draws are sharper than the model, and push its favourite up. <!-- cited: 0.85, 0.7, 2.8 -->
# </details>
# <details><summary><b>Why is SFT plain backpropagation and RL not?</b></summary>
#
# In RL the parameters decide which answers are drawn. A draw is an integer: a small change of the
# logits mostly leaves it, and its reward, as they were. The mean reward over all answers has a
# slope, but they are too many to list. The log-derivative trick, ∂π = π ∂log π, makes that slope a
# mean over draws: SFT, each answer weighted by its reward.
# </details>
# <details><summary><b>Is fine-tuning on your own right answers reinforcement learning?</b></summary>
#
# Its first step is. For rewards 0 and 1, on one prompt, the SFT gradient on them is the gradient of
# log J, that is 1/J times that of J. If you go on with the same answers you copy an older model. If
# you draw again after each step it is a policy gradient, REINFORCE (02). Over several prompts the
# divisor decides between log J and J.
# </details>
# <details><summary><b>Why does diversity fall in RL?</b></summary>
#
# A reward for being right does not ask for it. Among equally right answers the more frequent one is
# drawn more often and pushed more. Of two equally frequent ones the luck of the draws picks one: by
# the exact gradient they would stay level. SFT on kept answers copies their shares.
# </details>
# <details><summary><b>How do cross-entropy, KL and maximum likelihood hang together?</b></summary>
#
# Cross-entropy is entropy plus KL. The mean negative log-likelihood of a data set is the
# cross-entropy of data and model. The data's entropy does not depend on the model, so all three
# have the same gradient and the same optimum. The floor is the entropy, not 0.
# </details>
# <details><summary><b>Forward or reverse KL: what is the difference, and where does each occur?</b></summary>
#
# Who draws. Forward, KL(data‖model), is paid where the data are: SFT, distillation on a teacher's
# text. Reverse, KL(model‖target), is paid where the model goes: the penalty in RLHF, most
# distillation on own text. A model that is too small covers under the first and picks under the
# second, if the peaks are far apart: two peaks of width 1 from about ±2.8 on.
# </details>
#
# The sentences that one hears about KL, true or not, and the long tables:
# [statements 01](statements/01_one_scalar_loss.ipynb). The exercises, solved:
# [solutions 01](solutions/01_one_scalar_loss.ipynb).
#
# **Next: [02 · REINFORCE](02_reinforce.ipynb).** Rewards that are not 0 and 1, and a gradient that
# has to be read off a few draws.
