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
# **After this page** you can derive what fine-tuning on given answers does to the logits, say where
# its loss stops, and turn the same loop into one that learns from the model's own answers.
#
# 34 minutes, then 13 in a second sitting · exercises 30 more · after [00](00_start_here.ipynb)
#
# Autograd wants one scalar, and follows it downhill. This page is about which one.
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. A model gives four logits. How do they become four probabilities?</summary>Softmax: e to each logit, divided by the sum of all four. A higher logit for one takes probability from the other three.</details>
# <details><summary>2. An answer has T tokens. What is its probability, and what is the log of it?</summary>The product of the tokens' probabilities, each given the tokens before it. The log is a sum.</details>
# <details><summary>3. What is a reward?</summary>One number for a whole answer, given by a program that reads it (00).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import check
from rlnb.classroom.explorers import kl_directions, nudge
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import one_scalar_loss as pictures
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## One loop, two authors
#
# In supervised fine-tuning, **SFT**, somebody else writes the answers, and the loss is minus the
# mean of their log-probabilities. Our toy has one prompt, “3 + 4 =”, and four possible answers,
# each with a logit of its own. Two of them are right.

# %%
names = "7", "seven", "34", "8"
start = torch.tensor([0.2, 0.1, 0.4, 0.3])     # the model at first
R = torch.tensor([1.0, 1.0, 0.0, 0.0])         # reward: is it right?
teacher = torch.tensor([0.5, 0.5, 0.0, 0.0])   # writes both, equally

# %% [markdown]
# The training loop draws eight answers, takes the loss, and makes one gradient step. To see more
# than luck, 400 runs go side by side. Two things can be swapped: `author` says who writes the
# answers, and `loss` is told their log-probabilities and rewards. (`sft` ignores the rewards.)

# %%
def sft(log_p, r):
    """Minus the mean over the answers, (runs, 8) -> (runs,)."""
    return -log_p.mean(1)

def train(author, loss=sft, first=start, rate=0.5, steps=100):
    """Chance of a right answer, (steps, 400 runs)."""
    dice = torch.Generator().manual_seed(0)
    z = first.log().repeat(400, 1).requires_grad_()      # logits
    right = []
    for _ in range(steps):
        log_pi = z.log_softmax(1)
        pi = log_pi.exp().detach()
        y = author(pi).multinomial(8, True, generator=dice)
        L = loss(log_pi.gather(1, y), R[y]).sum()
        z.data -= rate * torch.autograd.grad(L, z)[0]
        right.append(pi @ R)
    return torch.stack(right)

# %% [markdown]
# First the teacher writes.

# %%
def by_teacher(pi): return teacher.expand_as(pi)
def by_model(pi): return pi

given = train(by_teacher)
pictures.authors({"the teacher writes": given}, (
    f"From {given[0].mean():.2f} to {given[-1].mean():.2f} in 100 steps, "
    "mean of 400 runs."))

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.1", "Now the model itself writes the answers "
        "that it is trained on. Nothing else changes. What happens to its "
        "chance to be right?",
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
       f"The mean began at {own[0].mean():.2f} and ends at "
       f"{own[-1].mean():.2f} ± {error:.2f} (a standard error). Single "
       f"runs end anywhere between {own[-1].min():.2f} and "
       f"{own[-1].max():.2f}. Each run does get surer, but luck chooses of "
       "what.",
       pictures.authors({"the teacher writes": given,
                         "the model writes": own}, (
           "One loop, one loss, one learning rate; only the author of the "
           "answers differs. 400 runs each."), single="the model writes"),
       instead={
           "rises: what it is surest of gets surer":
           "It does get surer. But luck decides of what.",
           "falls: most of what it writes is wrong":
           "Wrong and right answers are pushed, each as often as it is "
           "written.",
           "level in every run: it already says what it says":
           "It is level on average. Look at single runs.",
       })

# %% [markdown]
# The code is the same, only the author differs. **Whoever draws the answers decides where training
# goes.** Why?

# %% [markdown]
# ## What a given answer does to the logits
#
# $\pi_v$ is the model's probability of answer $v$, $z_v$ its logit. The bracket $[v=y]$ is 1 if $v$
# is the given answer $y$, else 0.
#
# $$\begin{aligned}
# \log\pi_y&=z_y-\log\textstyle\sum_u e^{z_u}&&\text{softmax, and the log of a quotient}\\
# \frac{\partial}{\partial z_v}\log\textstyle\sum_u e^{z_u}&=\frac{e^{z_v}}{\sum_u e^{z_u}}=\pi_v&&\text{chain rule}\\
# \frac{\partial\log\pi_y}{\partial z_v}&=[v=y]-\pi_v&&\text{first line, with the second}\\
# L&=-\textstyle\sum_y p_y\log\pi_y&&\textbf{a choice: all given answers count alike; } p_y\text{ is the share of }y\\
# -\frac{\partial L}{\partial z_v}&=p_v-\pi_v&&\text{the mean of }[v=y]\text{ over the data is }p_v
# \end{aligned}$$
#
# The **push** on a logit is *data minus model*. For “seven” and this teacher it is 0.50 − 0.10.

# %%
z = start.log().requires_grad_()

def push(loss):
    """Minus the gradient on the four logits."""
    return -torch.autograd.grad(loss, z)[0]

from_teacher = push(-(teacher * z.log_softmax(0)).sum())
from_itself = push(-(start * z.log_softmax(0)).sum())
assert torch.allclose(from_teacher, teacher - start)
assert torch.allclose(from_itself, torch.zeros(4))
pictures.data_minus_model(names, start, {
    "the teacher writes": teacher, "the model writes": start}, (
    "Bars: the model. Arrows: the mean push, to the share in the data. If "
    "model and data are the same, nothing is left."))

# %% [markdown]
# With its own answers, the mean push on every *logit* is zero. What moved the single runs was the
# luck of eight draws.
#
# <details><summary>One level deeper: longer answers, and a small creep</summary>
#
# * **Tokens.** A longer answer has a softmax at every token, and since log π(y) is a sum, each
#   token gets this push at its own place. The prompt's tokens, and the padding behind a short
#   answer, get none: in PyTorch they carry the label −100, which `F.cross_entropy` skips; in TRL's
#   `SFTTrainer` the option is `completion_only_loss`.
# * **The choice in bold, in practice.** Libraries count *tokens* alike, not answers (exercise 2). A
#   long answer then weighs more.
# * **The creep.** Zero mean push on the logits does not hold the mean *probability* still, for
#   softmax is curved. In 20,000 runs it is 0.34 after 1,000 steps. <!-- cited: 0.34 -->
# </details>

# %% [markdown]
# ## Where does the loss stop?
#
# A teacher pulls the model to its own shares. Does the loss then end at 0?

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.2", "The teacher says “7” and “seven” equally "
        "often. SFT goes on until nothing is left to learn. What is its "
        "loss then, in nats?",
        ["0: the model then knows everything the teacher knows",
         "0.69, log 2", "1.39, log 4",
         "it has no end: log π goes on growing"])

# %%
curve, logits = [], start.log()
for _ in range(120):
    pi = logits.softmax(0)
    curve.append(-(teacher * pi.log()).sum().item())
    logits = logits + 0.5 * (teacher - pi)          # the push

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("one_scalar_loss.2", "0.69, log 2",
       f"After 120 steps it is {curve[-1]:.3f}, on the way to "
       f"{torch.tensor(2.0).log():.3f}. Nobody can know which of two "
       "wordings comes next. Add and subtract the same sum:\n\n"
       r"$$L=-\sum_y p_y\log\pi_y=\underbrace{-\sum_y p_y\log p_y}"
       r"_{\text{entropy of the data}}+\underbrace{\sum_y p_y\log"
       r"\frac{p_y}{\pi_y}}_{\mathrm{KL}(p\Vert\pi)}$$"
       "\n\nThe entropy does not depend on the model. Only the "
       "**Kullback-Leibler divergence** does: the mean log-ratio, never "
       "negative, 0 only where the two agree.",
       pictures.floor(curve, torch.tensor(2.0).log().item()),
       instead={
           "0: the model then knows everything the teacher knows":
           "The teacher tosses a coin between two wordings. Knowing this "
           "does not tell which comes next.",
           "1.39, log 4":
           "That would be for four equally likely answers.",
           "it has no end: log π goes on growing":
           "Log π cannot go up for both: their chances add up to 1.",
       })

# %% [markdown]
# <details><summary>One level deeper: this loss in a real run</summary>
#
# * **The first value.** A model that knows nothing gives all V tokens of its vocabulary the same
#   probability, and pays log V for each: 10.8 nats for GPT-2's 50,257. A first loss far above that
#   means labels shifted by one place, or logits of a wild scale. <!-- cited: 10.8 -->
# * **The last value.** Levelling off above 0 is no failure. A loss near 0 on the training set means
#   that it has been memorised; look at held-out answers.
# * **Perplexity** is e to the loss per token: among how many equally likely tokens the model seems
#   to choose. It depends on how the text is cut into tokens.
# * **A low loss is not a right answer.** It says how likely the teacher's wording is. A model that
#   always says “7” is always right and has an infinite loss on “seven”.
# </details>

# %% [markdown]
# ## Can a reward be differentiated?
#
# From here on there is no teacher. The model writes, a program grades, and the mean reward is to
# rise. Which way is up? A slope can be *measured*: move the logit of “7” by a little **nudge**, and
# divide the change of the mean reward by the nudge.
#
# Luck must not change in between. So throw twenty dice once and keep them. Each die is a number $u$
# between 0 and 1, and its draw is right when $u$ lies below the chance to be right.

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.3", "Keep the same 20 dice, and make the nudge "
        "smaller and smaller. Where does the measured slope go?",
        ["to the true slope, as a derivative should",
         "near the true slope: 20 draws leave some noise",
         "nowhere: it jumps, ever wilder", "to 0"])

# %% jupyter={"source_hidden": true}
# the explorer
task("one_scalar_loss.t1", nudge.nudge_explorer(),
     ("Take 20 draws first, and shrink the nudge. Then find a slope that "
      "is within 10 % of the true one, with a nudge of 0.1 or less.",
      nudge.small_and_right))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
few = {h: nudge.compute(20, h)["measured"] for h in (1.0, 0.2, 0.1)}
many = nudge.compute(10_000, 0.1)
gap = 0.1 * many["true"]
reveal("one_scalar_loss.3", "to 0",
       f"With 20 dice it is {few[1.0]:.2f} at nudge 1, {few[0.2]:.2f} at "
       f"0.2, and {few[0.1]:.2f} from 0.1 on. The true slope is "
       f"{many['true']:.2f}. A reward jumps at most once a die and is flat "
       "in between, so a small nudge catches no jump. (`multinomial` in "
       "PyTorch returns integers, without a gradient.)\n\n"
       "More draws help, but it takes some "
       f"{round(100 / gap, -2):,.0f} of them to get within 10 % at a nudge "
       "of 0.1. That was one logit, and a model has a billion weights.",
       instead={
           "to the true slope, as a derivative should":
           "The slope of a smooth function would. A count of 20 dice is "
           "not smooth.",
           "near the true slope: 20 draws leave some noise":
           "Noise would leave it somewhere near. But a tiny nudge changes "
           "none of the 20 draws.",
       })

# %% [markdown]
# ## The mean has a slope
#
# The dashed curve in the explorer was smooth. It is the **expected reward** $J=\sum_y\pi_yR_y$, and
# nothing in it is drawn. A draw cannot be differentiated, but the probability of an answer can. So
# take that slope, and rewrite the sum as a mean over draws.
#
# $$\begin{aligned}
# \frac{\partial\pi_y}{\partial z_v}&=\pi_y\,\frac{\partial\log\pi_y}{\partial z_v}&&\text{derivative of a log, turned round}\\
# \frac{\partial J}{\partial z_v}&=\textstyle\sum_y\pi_y\,R_y\,\frac{\partial\log\pi_y}{\partial z_v}&&\text{term by term: a mean over the model's own draws}\\
# &=\textstyle\sum_y\pi_y\,R_y\,\big([v=y]-\pi_v\big)&&\text{the push of one given answer, from above}\\
# &=\pi_vR_v-\pi_vJ&&\text{only }y=v\text{ is left of the bracket; the rest is }J\\
# &=J\,\Big(\frac{\pi_vR_v}{J}-\pi_v\Big)&&\text{take }J\text{ out}
# \end{aligned}$$
#
# The first line is the **log-derivative trick**. Because of it the second line is a mean over
# draws. A draw has no slope, and it needs none, because $\log\pi$ has one.
#
# Look at the fraction in the last line. $\pi_vR_v$ is the chance that the model says $v$ and is
# right. Divided by $J$ it is the **share of $v$ among its own right answers**, $p^+_v$. So the
# bracket is data minus model again. The factor $J$ in front only sets the length of the step;
# without it, this is the slope of $\log J$.

# %%
J = (z.softmax(0) * R).sum()
slope, = torch.autograd.grad(J, z)
kept = (start * R / J).detach()            # shares of its right answers
print(f"J = {J:.2f}; of its right answers {kept[0]:.2f} are “7”, "
      f"{kept[1]:.2f} “seven”")
assert torch.allclose(slope, J * (kept - start))
pictures.data_minus_model(names, start, {
    "SFT on the teacher's": teacher,
    "SFT on its own right ones": kept}, (
    "Right: the gradient of log J. That of J is the same arrows, times J, "
    "here 0.30."))

# %% [markdown]
# **To raise the expected reward, do SFT on your own right answers.** In the loop, multiply each
# log-probability by its reward. Wrong answers drop out, and right ones become SFT data. Divided by
# all eight, this is on average the slope of $J$. Divided by the number of right ones, it has the
# direction of $\log J$.

# %%
def graded(log_p, r):                      # J
    return -(r * log_p).sum(1) / 8

def right_only(log_p, r):                  # log J; no right one: 0
    return -(r * log_p).sum(1) / r.sum(1).clamp(min=1)

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.4", "Eight draws gave “34” seven times and “7” "
        "once. Take one step with `graded`. Which logits fall?",
        ["none: wrong answers have reward 0 and drop out",
         "only that of “34”, the wrong answer that was drawn",
         "those of “34” and “8”, the two wrong ones",
         "those of “34”, “8” and “seven”"])

# %%
y = torch.tensor([[2, 2, 2, 2, 2, 2, 2, 0]])          # seven “34”, one “7”
one_step = push(graded(z.log_softmax(0)[y], R[y]).sum())

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("one_scalar_loss.4", "those of “34”, “8” and “seven”",
       "The pushes: " + ", ".join(
           f"“{n}” {v:+.4f}".replace("-", "−")
           for n, v in zip(names, one_step.tolist()))
       + ". Only “7” is in the loss. All others fall because softmax takes "
       "from each its share, also from “seven”, which is right but was not "
       "drawn. **`graded` has no push of its own against an error.** "
       "(“seven” gets its turn when it is drawn; on average it rises.)",
       instead={
           "none: wrong answers have reward 0 and drop out":
           "They have no push of their own. But they share a softmax with "
           "“7”.",
           "only that of “34”, the wrong answer that was drawn":
           "It falls. Is it the only one that pays for the rise of “7”?",
           "those of “34” and “8”, the two wrong ones":
           "Right answers that were not drawn pay, too.",
       })

# %% [markdown]
# Now take 100 steps of it, in the loop of the first picture.

# %%
learnt = {loss: train(by_model, loss) for loss in (graded, right_only)}
pictures.authors({
    "the teacher writes, sft": given, "the model writes, sft": own,
    "the model writes, graded": learnt[graded],
    "the model writes, right_only": learnt[right_only]}, (
    "The model's own answers do as data, once they are graded. Means of "
    "400 runs."))

# %% [markdown]
# The model's own answers, once graded, end where the teacher's do, at 0.98. **A model may write its
# own data, if somebody grades them.**

# %% [markdown]
# ## Begin at one in a hundred
#
# That model was right three times in ten. What if it is right once in a hundred? First the teacher
# writes again.

# %%
hard = torch.tensor([0.006, 0.004, 0.5, 0.49])
taught = train(by_teacher, first=hard)
print(f"the teacher writes: {taught[0].mean():.2f} at first, "
      f"{taught[-1].mean():.2f} after 100 steps")

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.5", "Now the model writes, and the loss is "
        "`graded`, with the same rate and number of answers. What is its "
        "chance to be right after 100 steps?",
        ["about 0.98 too, it only starts later", "about 0.5",
         "about 0.02, it has hardly moved"])

# %%
alone = train(by_model, graded, hard)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
large = train(by_model, graded, hard, rate=4)
sure = train(by_model, right_only, hard)
logits = hard.log()
for _ in range(20):                        # log J, summed exactly
    pi = logits.softmax(0)
    logits = logits + 0.5 * (pi * R / (pi @ R) - pi)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("one_scalar_loss.5", "about 0.02, it has hardly moved",
       f"It ends at {alone[-1].mean():.3f}. There are two reasons. First, "
       f"{100 * 0.99**8:.0f} % of the first batches hold no right answer "
       "and push nothing. Second, a hit counts 1/8 in `graded`, where it "
       "counts 1 in `right_only`. The second can be bought by a larger "
       f"rate: at rate 4 `graded` ends at {large[-1].mean():.2f}.\n\n"
       "The first cannot be bought. After 20 steps `right_only` is at "
       f"{sure[20].mean():.2f}, and SFT on the teacher's answers at "
       f"{taught[20].mean():.2f}. With log J summed exactly, so that "
       "nothing has to be found, the same 20 steps end at "
       f"{(logits.softmax(0) @ R).item():.2f}. **The difference is the "
       "search.**",
       pictures.authors({
           "the teacher writes, sft": taught,
           "the model writes, graded": alone,
           "the model writes, right_only": sure,
           "the model writes, graded, rate 4": large}, (
           "Right once in a hundred at first. Rate 0.5 or as named, 8 "
           "answers a step, means of 400 runs.")), instead={
           "about 0.98 too, it only starts later":
           "It may, in the end. But how often does a batch hold a right "
           "answer at all?",
           "about 0.5": "At this rate it does not even get there.",
       })

# %% [markdown]
# A teacher saves the search. This is why RL begins with a model that SFT has brought far enough, as
# in InstructGPT ([Ouyang et al. 2022](https://arxiv.org/abs/2203.02155)). So log the share of
# prompts whose answers are all wrong or all right. (TRL's GRPO calls it `frac_reward_zero_std`.)

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | one scalar loss | |
# |---|---|
# | sentence | SFT moves the model to the data, and its own right answers will do as data, drawn again at every step |
# | formula | push of SFT: $p_v-\pi_v$ · of $J$: $\pi_v(R_v-J)=J\,(p^+_v-\pi_v)$ |
# | trick | $\partial\pi=\pi\,\partial\log\pi$: the slope of a mean is a mean of slopes |
# | floor | the entropy of the data; above it KL(data‖model) |
# | picture | four lines: teacher, own, own graded by 8 or by the right ones |
# | numbers | own answers, ungraded: mean push 0 · two equal wordings: loss 0.69 · right once in a hundred: 92 % of batches of 8 push nothing |
# | choices | given answers count alike; J or log J (its slope is that of J, over J) |

# %%
score("one_scalar_loss.1", "one_scalar_loss.2", "one_scalar_loss.3",
      "one_scalar_loss.4", "one_scalar_loss.5")

# %% [markdown]
# ## Second sitting: why draw again, and which KL is that?
#
# Fine-tuning on your own right answers climbs the reward. Does it matter whether you draw them
# once, or again at every step?
#
# ### Keep them, or draw again?
#
# Go back to the first model, which is right three times in ten. There are two recipes. **Keep**
# draws once, keeps the right answers (2/3 “7” and 1/3 “seven”), and trains on them to the end.
# **Draw again** draws anew after every step. We compare them with infinitely many draws, and steps
# of equal length.

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
# the answer
ways = {"keep": follow(False), "draw again": follow(True)}
level = follow(True, torch.tensor([0.15, 0.15, 0.4, 0.3]))[1][-1]
reveal("one_scalar_loss.6",
       "both right; drawing again says almost only “7”",
       "Among the right answers “7” ends at "
       + ", ".join(f"{share[-1]:.2f} ({name})"
                   for name, (right, share) in ways.items())
       + ". What is kept is a teacher, and SFT copies its shares. Drawing "
       "again only asks for right answers: “7” is drawn more often, so it "
       "is pushed more, so it is drawn more often still. (If both wordings "
       f"start level, nothing tips: “7” ends at {level:.2f}.)",
       pictures.copy_or_draw_again(ways),
       instead={
           "only drawing again becomes nearly always right":
           "Keeping what is right is enough for being right.",
           "both right; both say “7” two times in three":
           "What is kept never changes. But what is drawn again changes "
           "with the model.",
           "both right; drawing again evens the two out":
           "It does the opposite. What is frequent is drawn more often, "
           "and pushed more often.",
       })

# %% [markdown]
# Kept answers are **off-policy**: another model wrote them, a teacher or an older self. The recipe
# is called **rejection-sampling fine-tuning** (RAFT,
# [arXiv 2304.06767](https://arxiv.org/abs/2304.06767)). Answers drawn anew at every step are
# **on-policy**, and that loop is **reinforcement learning**. Its model is called the **policy**.
# Log the share of right answers, and how many *different* right ones there are.
#
# Why draw again at all, if keeping is enough? If the kept batch holds no right answer, there is
# nothing to train on. Drawing again finds one in a later batch. And after each step the model finds
# what it could not find before.

# %% [markdown]
# ### One last look at the loss: two KLs
#
# Above the floor of SFT's loss stood KL(p‖π), a mean over the teacher's answers. If the model
# draws, the mean runs over the model's answers:
#
# $$\underbrace{\mathrm{KL}(p\Vert\pi)=\sum_y p_y\log\frac{p_y}{\pi_y}}_{\textbf{forward}}\qquad\qquad\underbrace{\mathrm{KL}(\pi\Vert p)=\sum_y\pi_y\log\frac{\pi_y}{p_y}}_{\textbf{reverse}}$$
#
# Both are 0 when $\pi=p$, and elsewhere they differ. A model that can be the teacher ends there
# under either. But take a model that is too small. Answers are points on a line, the teacher
# answers near −3 or near +3, and the model is a single bell.

# %% jupyter={"source_hidden": true}
# your guess
predict("one_scalar_loss.7", "The model draws, so we take "
        "KL(model‖teacher). Where does the best bell stand?",
        ["in the middle, wide enough for both peaks",
         "in the middle, narrower than that", "on one of the peaks"])

# %% jupyter={"source_hidden": true}
# the explorer
task("one_scalar_loss.t2", kl_directions.kl_explorer(),
     ("Leave the peaks at ±3 and bring KL(model‖teacher) below 0.70.",
      kl_directions.reverse_below_070),
     ("Put the peaks at ±2 or further apart, and find one bell that is "
      "best both ways: both bars at most 0.02 above their marks.",
      kl_directions.best_for_both))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
seen = {bell: kl_directions.compute(mean=bell[0], deviation=bell[1])
        for bell in ((0, 3.2), (0, 2.7), (3, 1))}
reveal("one_scalar_loss.7", "on one of the peaks",
       f"There it pays {seen[3, 1]['reverse']:.2f}, and in the middle at "
       f"best {seen[0, 2.7]['reverse']:.2f}. The mean runs over the "
       f"model's "
       "answers, and none of them lies near the other peak: what the model "
       "never says is never held against it. The teacher's mean runs over "
       "both peaks, and there the same bell costs "
       f"{seen[3, 1]['forward']:.2f}. **Forward covers, reverse picks**, "
       f"if "
       "the model is too small *and* the peaks are far apart. (At ±2, in "
       "task 2, reverse covers, too.)",
       instead={
           "in the middle, wide enough for both peaks":
           "That bell covers both peaks, and pays for all it says in "
           "between.",
           "in the middle, narrower than that":
           "Narrower in the middle: almost everything it says lies where "
           "the teacher says nothing.",
       })

# %% [markdown]
# <details><summary>One level deeper: which KL occurs where</summary>
#
# | what is trained | who draws | KL |
# |---|---|---|
# | pre-training, SFT, distillation (a small model copies a large one) on the large one's answers | data, teacher | forward |
# | distillation on the small model's own answers | student | reverse, as a rule |
# | the penalty that keeps RL near its first model, the reference | policy | reverse, KL(π‖π_ref) (05) |
#
# TRL's `GKDTrainer` has a knob for each: `lmbda` is the share of answers that the student writes,
# `beta` goes from forward, 0, to reverse, 1.
# </details>

# %%
score("one_scalar_loss.6", "one_scalar_loss.7")

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
# log-sum-exp. It sums to 0, is bounded, and fades as the gold token becomes certain. RL has the
# same vector for the drawn token, times its reward.
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
# text. Reverse, KL(model‖target), is paid where the model goes: the penalty in RLHF, distillation
# on own text. A model that is too small covers under the first and picks under the second, if the
# peaks are far apart.
# </details>
# <details><summary><b>Why is SFT plain backpropagation and RL not?</b></summary>
#
# In RL the parameters decide which answers are drawn. A draw is an integer, and the reward is flat
# wherever it can be differentiated. The mean has a slope, but one term per possible answer. The
# log-derivative trick, ∂π = π ∂log π, turns that sum into a mean over draws: SFT, each answer
# weighted by its reward.
# </details>
# <details><summary><b>Is fine-tuning on your own right answers reinforcement learning?</b></summary>
#
# Its first step is. For rewards 0 and 1 the SFT gradient on them is the gradient of log J, that is
# 1/J times that of J. If you go on with the same answers you copy an old model. If you draw again
# after each step it is plain policy gradient, REINFORCE (02).
# </details>
# <details><summary><b>Why does diversity fall in RL?</b></summary>
#
# The reward does not ask for it. Among equally right answers the more frequent one is drawn more
# often and pushed more, so it wins. Of two equally frequent ones luck picks: both at 0.15 at first,
# eight own answers a step, and after 100 steps of `graded` the rarer one has 0.14 of the right
# answers, not 0.5. SFT on kept answers copies their shares. <!-- cited: 0.15, 0.14, 0.5 -->
# </details>
# <details><summary><b>J or log J: does the factor matter?</b></summary>
#
# Not on one prompt: a learning rate absorbs it. In a batch every prompt has its own J, and log J
# gives a hard prompt, with a small J, much more weight. MaxRL makes that choice (14).
# </details>
#
# The sentences that one hears about KL, true or not, and the long tables:
# [statements 01](statements/01_one_scalar_loss.ipynb). The exercises, solved:
# [solutions 01](solutions/01_one_scalar_loss.ipynb).
#
# **Next: [02 · REINFORCE](02_reinforce.ipynb).** Rewards that are not 0 and 1, and a gradient that
# has to be read off a few draws.
