# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 · Start here: what is the map, how do I study, and what does my loss say?
#
# **After this page** you know what one step of RL does to a language model, what the number called
# loss says there, which curves to watch instead, and how these pages work.
#
# 30 minutes · needs: you can fine-tune a model, and know what a gradient is · the two papers to
# have at hand: PPO, Schulman et al. 2017 ([arXiv 1707.06347](https://arxiv.org/abs/1707.06347)),
# and GRPO, Shao et al. 2024 ([arXiv 2402.03300](https://arxiv.org/abs/2402.03300))
#
# **At the end of the course** you can write REINFORCE, PPO, GRPO and their successors on a
# whiteboard, read a training log, say what a configuration really runs, and defend each in an
# interview.
#
# **Shift-Enter** runs a cell and goes to the next. Begin with the one below. Or go to
# [the pages](#The-pages), [how to study](#How-to-study), [notation](#Notation).

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import ZOO, check
from rlnb.classroom.course import course, course_map
from rlnb.classroom.environment import environment_check, gpu_check
from rlnb.classroom.explorers import loss_and_gradient
from rlnb.classroom.lesson import predict, reveal, task
from rlnb.classroom.pictures import method_map, start_here
from rlnb.classroom.pictures.token_grid import token_grid
from rlnb.objective import difference
from rlnb.toys import running_group
from rlnb.training.studies import loss_value
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## A model that gets better at sums
#
# A transformer of 308,016 parameters writes eight answers to each of sixteen sums, such as
# `4+3-8=?`, last digit only. Some answers guess at once (`so8`), others calculate
# (`4+3=7,7-8=9so9`). A program checks every answer, and one step of training makes the right ones
# likelier. Then the model writes new answers. Here are forty such steps.

# %% jupyter={"source_hidden": true}
# the picture
start_here.reward_and_loss()

# %% [markdown]
# Left, the model learns. In the middle is the curve that you would watch while fine-tuning: its
# loss. It *rises*, from a little below 0 to 0. Right is the share of sums whose eight answers did
# not all get the same grade. It rises a little, then it falls.
#
# **Why does a model get better while its loss goes up?** Begin with a single step.
#
# ## One step
#
# Take the smallest case. There is one prompt, and the model has written four answers to it, with 3,
# 5, 2 and 6 tokens. The first two are right and earn 1; the other two earn 0. This is the **running
# group**; it comes back on every page.
#
# How good is an answer? Compare its reward with the reward that was to be expected, a **baseline**.
# GRPO, the method of page 08, takes the mean reward of the group, here 1/2. It divides the
# difference by the spread of the rewards, the standard deviation, here also 1/2. The result is the
# answer's **advantage**: $A=+1$ for the right ones, $A=-1$ for the wrong ones.
#
# Every answer enters the loss with its advantage:
#
# $$\text{loss}=-\frac14\sum_{i=1}^4\frac{1}{T_i}\sum_{t=1}^{T_i}\rho_{i,t}\,A_i,\qquad
# \rho_{i,t}=\frac{\text{probability of the token now}}{\text{its probability when it was written}}$$
#
# $T_i$ is the length of answer $i$; what the model gives a token, its probability, is written π.
# The answers are fresh: the model has not changed since it wrote them.

# %% jupyter={"source_hidden": true}
# your guess
predict("start_here.1", "What are the loss and its gradient?",
        ["the loss is 0, and so is the gradient",
         "the loss is 0, the gradient is not",
         "the loss is above 0, the gradient is not 0",
         "the loss is below 0, the gradient is not 0"])

# %%
group = running_group()
logp, mask, R = group.logprobs, group.mask, group.rewards   # logp (4, 6)
A = (R - R.mean()) / (R.std(correction=0) + 1e-6)     # 1e-6: never 0/0
rho = (logp - logp.detach()).exp()                          # page 04
gain = torch.where(mask, rho * A[:, None], 0).sum(1) / mask.sum(1)
loss = -gain.mean()
(gradient,) = torch.autograd.grad(loss, logp)

fresh = group.replace(old_logprobs=None)          # the package agrees
grpo = ZOO["grpo"].replace(terms=())               # KL: page 05
assert torch.allclose(grpo(fresh).loss, loss)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("start_here.1", "the loss is 0, the gradient is not",
       f"Every ratio is 1, so the loss is $-\\frac14(1+1-1-1)="
       f"{abs(loss.item()):.0f}$: advantages around a mean add up to zero. "
       "But each ratio still depends on the model: "
       r"$\nabla\rho=\rho\,\nabla\log\pi$, and $\rho$ is 1. So the "
       "gradient is that of fine-tuning on each answer, times its "
       "advantage: right answers are pushed up, wrong ones down, each "
       r"token by $A_i/(4\,T_i)$.",
       token_grid(group, {"GRPO's push, times 4": -4 * gradient}, count="",
                  caption=(
           "Each row is an answer, each cell a token. Blue tokens are made "
           "likelier, orange ones less likely. Tokens of long answers are "
           "pushed less; page 09 is about that.")),
       instead={
           "the loss is 0, and so is the gradient":
           "The value is 0. Is a slope 0 where a value is?",
           "the loss is above 0, the gradient is not 0":
           "So it is in fine-tuning, where minus a log-probability is "
           "above 0. Here ratios stand in its place, with both signs.",
           "the loss is below 0, the gradient is not 0":
           "The right answers' part is below 0. The wrong ones' part "
           "cancels it.",
       })

# %% [markdown]
# A loss that is made for its gradient is called a **surrogate**. It stands for the mean reward
# $J=\mathbb E[R]$ of all answers that the model may write. Page 02 derives
# $\nabla J=\mathbb E[(R-b)\,\nabla\log\pi]$ for any constant $b$, with the π of the whole answer;
# minus the gradient of a surrogate shall estimate that. GRPO's loss does so with liberties: a mean
# that contains the answer's own reward, a spread and a length to divide by. What these change is
# the matter of 03, 09 and 10.
#
# Now use the same four answers for many steps. The model moves, so ρ leaves 1. PPO and GRPO put a
# **clip** on it: $\min\big(\rho A,\ \mathrm{clip}(\rho,0.8,1.2)\,A\big)$ stands where $\rho A$
# stood. Step until every token of a right answer is above 1.2, and every token of a wrong one below
# 0.8. <!-- cited: 0.8, 1.2 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("start_here.4", "What are loss and gradient now?",
        ["the loss is 0, and so is the gradient",
         "the loss is 0, the gradient is not",
         "the loss is −0.2, the gradient is not 0",
         "the loss is −0.2, the gradient is 0"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
edge = torch.tensor([1.2, 1.2, 0.8, 0.8]) * A
undetached = (logp - logp).exp().sum()             # a constant, see below
assert not torch.autograd.grad(undetached, logp)[0].any()
reveal("start_here.4", "the loss is −0.2, the gradient is 0",
       "The min takes 1.2 for a right answer and −0.8 for a wrong one: "
       f"the loss is $-\\frac14(1.2+1.2-0.8-0.8)={-edge.mean():.1f}$. "
       "These are constants, whatever ρ does beyond the edge. They count "
       "in the value and have no slope.",
       instead={
           "the loss is 0, and so is the gradient":
           "The slopes are gone, yes. But 1.2 and 0.8 do not cancel.",
           "the loss is 0, the gradient is not":
           "So it was on fresh answers, with every ratio at 1.",
           "the loss is −0.2, the gradient is not 0":
           "Move a ratio from 1.3 to 1.4: does the min change?",
       })

# %% [markdown]
# Value and gradient are two things, so there are four cases:
#
# | | gradient not 0 | gradient exactly 0 |
# |---|---|---|
# | **loss 0** | the fresh group | four equal rewards: every advantage is 0 |
# | **loss not 0** | a later step on the same answers | the clip has stopped every token |
#
# Top right is the zero to worry about: all right or all wrong, no answer is better than expected,
# and nothing is learnt from the group.

# %% [markdown]
# <details><summary>One level deeper: gradient 0 in a log. Dead groups, the clip, or a bug?</summary>
#
# * **Dead groups**: no group has unequal rewards. Log their share.
# * **The clip**: only if the model has stepped since the answers were written. That is also so when
#   a batch is used once, in several mini-batches (`ppo_epochs=1` in verl, and a mini-batch smaller
#   than the batch): from the second on. Log the share of clipped tokens; in mixed groups it is near
#   1.
# * **A bug**: unequal groups, first step, and still 0. Then ρ may have been formed as
#   exp(logp − logp) without a `detach`: a constant.
#
# And does a clipped token stand still? In the toy it does. In a network the tokens share weights,
# and the optimizer carries on what it has begun: a clipped token is no longer pushed, but others
# can still move it (06).
# </details>
#
# ## The run again
#
# In the run above each batch was used for one step. So the answers were fresh there, too. But the
# advantage is only $R-\bar R$, not divided by the spread, and every token counts alike: instead of
# its own length $T_i$, each of the 128 answers has the constant 72, the longest answer that may be
# written (page 10):
#
# $$\text{loss}=-\frac1{128}\sum_{i=1}^{128}\frac1{72}\sum_{t=1}^{T_i}\rho_{i,t}\,(R_i-\bar R)$$

# %% jupyter={"source_hidden": true}
# your guess
predict("start_here.3", "Why does that loss begin below 0?",
        ["most answers are wrong in the beginning",
         "wrong answers are longer than right ones",
         "right answers are longer than wrong ones",
         "the first answers were lucky: many are right"])

# %% jupyter={"source_hidden": true}
# loss and lengths of the first step, three seeds
rows = loss_value.kept().values()
first = {name: sum(run[name][0] for run in rows) / 3
         for name in ("loss", "right", "wrong")}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("start_here.3", "right answers are longer than wrong ones",
       "Now an answer counts once per token: the loss is minus the mean of "
       "$A\\,T$, over 72. In the first step right answers have "
       f"{first['right']:.0f} tokens and wrong ones {first['wrong']:.0f}. "
       "If half of a group is right, A is ½ and −½, and that makes "
       f"−¼ · ({first['right']:.0f} − {first['wrong']:.0f})/72 = "
       f"−{(round(first['right']) - round(first['wrong'])) / 288:.3f}. "
       f"Over all groups it is {first['loss']:.3f} (mean of three seeds). "
       "Guesses are short and mostly wrong. They die out, and the lengths "
       "meet.",
       start_here.lengths_and_loss(),
       instead={
           "most answers are wrong in the beginning":
           "Each group's advantages add up to 0, however few are right.",
           "wrong answers are longer than right ones":
           "Then the wrong ones' part, which is above 0, would win.",
           "the first answers were lucky: many are right":
           "Luck raises a group's mean as well: advantages are what is "
           "left over, and add up to 0.",
       })

# %% [markdown]
# For a group with a share $p$ of right answers, of $T_r$ and $T_w$ tokens on average, the sum is
#
# $$\text{loss}=-\,p(1-p)\,\frac{T_r-T_w}{72}$$
#
# It is 0 where the lengths agree, and where $p$ is 0 or 1. In this run the lengths were near each
# other by step 20, and ever more groups were all right. And each point of the curve belongs to new
# answers: forty different functions, each read before its step. Within one batch a loss does fall,
# as from 0 to −0.2 above; the next batch begins anew. <!-- cited: -0.2 --> **The middle curve never
# said how well the model does sums.**

# %% jupyter={"source_hidden": true}
# the explorer and its tasks
task("start_here.t", loss_and_gradient.loss_and_gradient_explorer(),
     ("Fresh answers, and a loss above 0. Say first how many of the four "
      "must be right (3, 5, 2 and 6 tokens; the first ones are right).",
      loss_and_gradient.above_zero),
     ("Answers alike: a loss that is not 0, and a gradient of exactly 0, "
      "with one right answer. Say first whether it takes more or fewer "
      "steps than with two.",
      loss_and_gradient.one_right_and_only_the_loss))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Count each token alike, and one or three right. With two the loss is 0 by accident: 3 + 5 = 2 +
#    6. (Here the sum over the tokens is divided by all 16.)
# 2. Eleven steps, with two right answers six. With one right, its A is 1.73 and the wrong ones have
#    −0.58. A token of the last answer is then pushed by 0.58/(4 · 6) = 0.024 a step, less as ρ
#    falls, and has log 0.8 = −0.22 to go.
#    <!-- cited: 0.8, 1.73, -0.58, 0.024, -0.22 -->
# </details>
#
# What moves a logged loss away from 0, with no harm done:
#
# * an average that counts tokens, with right and wrong answers of different length;
# * a step since the answers were written;
# * advantages that do not add up to 0 in a group;
# * further terms: a critic's loss (07), an entropy bonus, a KL. With a KL term the log contains β
#   times the KL, and climbs as the model leaves its start (05); whether it leaves too far, the KL's
#   own curve says.
#
# If none of these is there and a fresh loss is far from 0, look for answers that were left out of
# the sum after the advantages were computed, and for a ratio that is formed with the inference
# engine's probabilities, which are not quite the trainer's (19).
#
# **What should you watch instead?**
#
# | curve | why | look closer when |
# |---|---|---|
# | right answers on held-out problems | it is the goal | the training reward rises and this does not (16) |
# | groups all right, mixed, all wrong | only mixed ones teach | the mixed go and most are wrong (11) |
# | length of the gradient | one odd batch can throw a model | it jumps |
# | ratio, share of clipped tokens | how far one batch has moved the model | it jumps (06) |
# | entropy, the spread of the next token | equal answers get equal rewards | it falls to 0 early (17) |
# | lengths of right and of wrong answers | averages lean on them | only the wrong ones grow (09) |
#
# ## In the interview
#
# Every lesson ends with such questions. Say each answer aloud, then unfold.
#
# <details><summary><b>Why the ratio, and not A · log π?</b></summary>
#
# On fresh answers the gradients are the same, since ∇ρ = ∇log π where ρ is 1. The logged values
# differ: ρA sums to 0 in a group; −A · log π is the log-probability of the wrong answers minus that
# of the right ones. Once the model has stepped, the answers come from an older policy, and the
# ratio corrects for that, token by token (how far that goes: 04).
# </details>
# <details><summary><b>My loss is flat at 0. Is training broken?</b></summary>
#
# A loss of 0 does not say so. With advantages around the group's mean, fresh answers, each answer
# counted alike and no further term, it must be 0. I look at the gradient's norm, the share of mixed
# groups and a held-out score.
# </details>
# <details><summary><b>And if it is flat at 0 with a gradient of 0?</b></summary>
#
# Then no group has unequal rewards, or the old log-probabilities were not detached, so that ρ is a
# constant. The clip would leave a loss that is not 0, apart from accidents.
# </details>

# %% [markdown]
# ## The map
#
# The methods of this course differ mostly in two things:
#
# > **with what is a reward compared**, and how is the difference scaled; and **how is the
# > importance
# > ratio** $\rho$ **tamed** when answers are no longer fresh.
#
# Smaller choices come on top: how much each token counts, whether a KL term holds the model near
# its start. Seven of some thirty methods, by the two large ones:

# %% jupyter={"source_hidden": true}
# the picture
method_map.method_map(
    {f"{n:02d}" for n in range(22)},
    only=("REINFORCE", "RLOO", "PPO", "GRPO", "Dr. GRPO", "CISPO", "GSPO"))

# %% [markdown]
# In the package behind the course a method is a handful of named parts. So the question "what does
# Dr. GRPO change in GRPO?" has an answer that you can print.

# %%
print(difference(ZOO["grpo"], ZOO["dr_grpo"]))

# %% [markdown]
# So Dr. GRPO does not divide by the spread, which is its row on the map. The rest are smaller
# choices: a constant in the place of each answer's length (which is what moved our loss), and no KL
# term, here called k3 (05). The run above was Dr. GRPO's.
#
# ## How to study
#
# * **A lesson** asks one question. Guess when it asks; a wrong guess is what you will remember. The
#   answers wait for you, also when you run all cells. After the card "Say it in 60 seconds" you may
#   stop for the evening.
# * **Statements** are sentences one hears in interviews. True, false, or it depends? You say, and a
#   cell decides. Five minutes at a time, after the lesson.
# * **Something odd in a log?** [The ledger](extras/ledger.ipynb) has an index of symptoms. In
#   [the break-it lab](extras/break_it.ipynb) your tests hunt bugs, many from real libraries.
# * **Before an interview**: the folded questions at the end of each page, aloud, with a clock.
# * **Exercises are checked**, and a check knows the usual mistakes. This is what it says of an
#   empty stub, and of a slip:

# %%
def mine(logprobs, mask, rewards):
    return ...

def slip(logprobs, mask, rewards):
    return -(rewards * (logprobs * mask).sum(1)).sum()

verdict = check.reinforce_loss                     # page 02 asks for it
print(verdict(mine)); print(verdict(slip))

# %% [markdown]
# **Next: [01 · One scalar loss](01_one_scalar_loss.ipynb).** Below, to come back to: the
# pages, the set-up, the letters and the words.

# %% [markdown]
# ## The pages
#
# This table shows how far you have come. Run the cell again when you come back. "30 + 17" minutes
# means that a page ends after 30 minutes, and that a second sitting goes deeper. Guesses, tasks and
# passed exercises are kept in one small file on this machine and go nowhere else.

# %%
course_map()

# %% jupyter={"source_hidden": true}
minutes = {page.number: page.minutes for page in course()}
later = sum(sum(page.later) for page in course())
hurry = sum(minutes[number] for number in ("02", "04", "06", "08", "20"))
print(f"First sittings {sum(minutes.values()) / 60:.0f} hours, later "
      f"ones {later / 60:.0f}, all exercises about 10.")
print(f"In a hurry, 02, 04, 06, 08 and 20: {hurry / 60:.1f} hours.")

# %% [markdown]
# The pages up to 14 are about the loss, 15 to 19 about what stands around it, 20 is a drill for
# interviews, and 21 trains a model.
#
# ## The set-up
#
# This is your own copy of the pages: change anything, an upgrade of the course never touches it.
# Does everything run here? No page needs a GPU.

# %% tags=["nbval-ignore-output"]
environment_check(); gpu_check()

# %% [markdown]
# <details><summary>More: a new copy of a page, and what a teacher sees</summary>
#
# `make fresh NB=02` fetches a new page 02 and keeps yours beside it. `rlnb progress export ada.json
# --name Ada` writes your progress to a file that you can hand over; nothing is sent.
# </details>

# %% [markdown]
# ## Notation
#
# <details><summary>The letters, and what TRL and verl call them</summary>
#
# The same letters on every page. The right-hand columns say what TRL and verl, the two
# libraries most people meet, call the same thing; the package uses TRL's name for data and
# verl's where TRL has none.
#
# | symbol | meaning | TRL | verl |
# |---|---|---|---|
# | $x$ | prompt | `prompt_ids` | `prompts` |
# | $y_i,\ i=1..G$ | the $i$-th answer to a prompt | `completion_ids` | `responses` |
# | $G$ | answers per prompt, the group size | `num_generations` | `rollout.n` |
# | $T_i$ | number of tokens of answer $i$ | `completion_mask.sum(1)` | `response_mask.sum(-1)` |
# | $m_{i,t}$ | mask: 1 on tokens the policy wrote | `completion_mask` | `response_mask` |
# | $\pi_\theta$ | the policy being trained | `per_token_logps` | `log_prob` |
# | $\pi_\text{old}$ | the policy that wrote the answers, scored by the trainer before the update | `old_per_token_logps` | `old_log_probs` |
# | $\mu$ | the sampler, as the inference engine scored it | `sampling_per_token_logps` | `rollout_log_probs` |
# | $\pi_\text{ref}$ | frozen reference, for a KL term | `ref_per_token_logps` | `ref_log_prob` |
# | $\rho_{i,t}$ | token ratio $\pi_\theta/\pi_\text{old}$ | `coef_1` | `ratio` |
# | $s_i$ | answer's ratio: geometric mean of its $\rho_{i,t}$ | `coef_1` (`"sequence"`) | `seq_importance_ratio` |
# | $R_i$ | reward of answer $i$, one number | `rewards` | `token_level_scores`, summed |
# | $\bar R,\ \sigma_R$ | mean and std of the group's rewards | | |
# | $A_i,\ A_{i,t}$ | advantage | `advantages` | `advantages` |
# | $R_{\ge t}$ | return: rewards from token $t$ on | `returns` | `returns` |
# | $V_\phi$ | critic, a learnt baseline | `values` | `values` |
# | $w_{i,t}$ | what the method makes of $\rho_{i,t}$ in the gradient | | `loss_mode` |
# | $c_{i,t}$ | weight of a token in the average | `loss_type` | `loss_agg_mode` |
# | $\beta$ | strength of the KL term | `beta` | `kl_loss_coef` |
# | $\epsilon_\text{low}$ | the clip's band starts at $1-\epsilon_\text{low}$ | `epsilon` | `clip_ratio_low` |
# | $\epsilon_\text{high}$ | and ends at $1+\epsilon_\text{high}$ | `epsilon_high` | `clip_ratio_high` |
# | $C$ | second bound of a dual clip, for $A<0$ | `delta` | `clip_ratio_c` |
# | $B$ | rows of a batch: prompts times $G$ | | |
#
# $\log\pi$ is in nats; KL is per token unless "per answer" stands beside it; "std" is the
# population's, with 1e-6 added, unless said otherwise.
# </details>
#
# ## Glossary
#
# <details><summary>The words</summary>
#
# | word | meaning |
# |---|---|
# | **advantage** | reward minus baseline: how much better than expected |
# | **baseline** | what was to be expected; subtracting it leaves the expected gradient alone and changes its noise, down for a good one, up for a bad one |
# | **clip** | stop a token's gradient once its ratio has left a band on the side it should go |
# | **completion** | an answer, in TRL's words |
# | **credit assignment** | which token caused the reward |
# | **critic** | a network that predicts, token by token, the reward to come |
# | **dual clip** | a second bound, for bad tokens that became much likelier |
# | **entropy** | how spread out the next-token distribution is; when it collapses, every answer is the same |
# | **GAE** | generalised advantage estimation: a dial $\lambda$ from trusting the critic to waiting for the reward |
# | **group** | the $G$ answers to one prompt |
# | **importance ratio** | probability of a token now, over its probability when it was written |
# | **KL** | Kullback-Leibler divergence: how different two distributions are |
# | **k1, k2, k3** | three estimators of the KL from samples |
# | **leave-one-out** | the mean reward of the *other* answers as baseline; RLOO |
# | **mask** | which tokens count |
# | **micro-batch** | the rows that fit into memory at once |
# | **off-policy, on-policy** | the answers came from an older policy; from the present one |
# | **outcome reward** | one number, at the end of the answer |
# | **policy** | the model, seen as a distribution over answers |
# | **process reward** | numbers along the way, one per step of the answer |
# | **reference** | the frozen model that a KL term pulls towards |
# | **RLHF** | reward from a model of human preference |
# | **RLVR** | reward from a verifier |
# | **rollout** | one drawn answer, or the drawing |
# | **score** | $\nabla\log\pi(y)$ |
# | **SFT** | supervised fine-tuning: imitate given answers |
# | **staleness** | how many updates old the answers are |
# | **surrogate** | a loss made for its gradient; its value is no measure of progress |
# | **trust region** | how far one update may move the policy |
# | **verifier** | a program that decides whether an answer is right |
# | **zero-gradient group** | a group whose rewards are all equal |
# </details>
