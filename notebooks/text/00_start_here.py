# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 · Start here: what is the map, how do I study, and why is my loss zero?
#
# **Settles:** how a model learns from graded answers, why the loss says 0 while it learns, what the
# pages are and how to work with them, and whether this machine can run them.
#
# 16 minutes · needs nothing · the two papers to have at hand: PPO, Schulman et al. 2017
# ([arXiv 1707.06347](https://arxiv.org/abs/1707.06347)), and GRPO, Shao et al. 2024
# ([arXiv 2402.03300](https://arxiv.org/abs/2402.03300))
#
# **Shift-Enter** runs a cell and goes to the next. Begin with the one below. Or go to
# [the pages](#The-pages), [how to study](#How-to-study), [notation](#Notation).

# %% tags=["setup"]
import torch
from rlnb import ZOO, check
from rlnb.classroom.course import course_map
from rlnb.classroom.explorers import loss_and_gradient
from rlnb.classroom.lesson import predict, reveal, task
from rlnb.classroom.pictures import method_map, pipeline, token_grid
from rlnb.objective import difference
from rlnb.toys import running_group
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## One step, in a picture
#
# A language model writes a few answers to a prompt. A program grades them. The model is changed so
# that good answers become likelier. That is the whole of reinforcement learning on a language
# model:

# %%
pipeline.pipeline(caption=(
    "One step. Grading asks no gradient of the grader: it may be any "
    "program. The pages light up the box they change."))

# %% [markdown]
# Here is the smallest case, and it will be with you on every page. One prompt, four answers. Two
# are right and earn 1, two are wrong and earn 0. They have 3, 5, 2 and 6 tokens. We call it the
# **running group**.
#
# How good is an answer? Better or worse than *expected*: its reward minus a **baseline**. Take the
# mean reward of the group, 1/2, and divide by the spread of the rewards, 1/2, as the method GRPO
# does. Right answers get the **advantage** +1, wrong ones −1. Every token of an answer is pushed
# by its answer's advantage:

# %%
group = running_group().replace(old_logprobs=None)      # fresh answers
grpo = ZOO["grpo"].replace(terms=())    # without the extra KL term
loss = grpo(group).loss
(gradient,) = torch.autograd.grad(loss, group.logprobs)
token_grid.token_grid(group, {"GRPO": -4 * gradient}, caption=(
    "A row is an answer, a cell a token. The number is the push on the "
    "token's log-probability, times 4. Blue goes up, orange down."))

# %% [markdown]
# (Long answers are pushed less per token. That is GRPO's doing, and page 09's question.)
#
# ## Why is my loss zero?
#
# You start such a training for the first time. The first line of the log says `loss 0.0000`. Before
# you look anything up: press a button. On every page you guess first. A wrong guess is what you
# will remember.

# %% jupyter={"source_hidden": true}
# your guess
predict("start_here.1", "Is something broken?",
        ["yes: a loss of 0 has no gradient",
         "yes: all answers must have had the same reward",
         "no: the loss starts at 0 and rises as the model learns",
         "no: the loss is 0 and the gradient is not"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("start_here.1", "no: the loss is 0 and the gradient is not",
       f"Loss {abs(loss.item()):.4f}, length of the gradient "
       f"{gradient.norm():.4f}: the grid above is this gradient. The "
       "*value* adds up advantages that were centred a moment ago: "
       r"$-\frac14(1+1-1-1)=0$. The *gradient* multiplies each with "
       "another direction, and directions do not cancel.")

# %% [markdown]
# So the loss is no progress bar. It is made for its gradient; people call it a **surrogate**. Move
# the sliders until the page says that you are done:

# %%
task("start_here.t", loss_and_gradient.loss_and_gradient_explorer(),
     ("Two right answers, and yet a loss that is not 0.",
      loss_and_gradient.loss_moves),
     ("A gradient of exactly 0: this model learns nothing.",
      loss_and_gradient.gradient_stops))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. As soon as the policy has moved, the tokens are no longer as likely as when they were written.
#    Their ratio is not 1, and the sum not 0. That happens on the second step over the same answers.
#    (The hatched token has moved too far: PPO's clip has silenced it. Page 06.)
# 2. All right, or all wrong: nobody is better than expected. **This** is the zero to worry about,
#    and the loss does not show it. Watch the length of the gradient, and the share of such groups.
# </details>
#
# ## The course in one line
#
# Nearly everything published on the last step of the pipeline has this shape:
#
# $$\text{update}\;\propto\;\sum_{\text{answers } i}\;\sum_{\text{tokens } t}
# c_{i,t}\cdot\underbrace{w_{i,t}}_{\text{tame the ratio}}\cdot
# \underbrace{A_{i,t}}_{\text{reward}-\text{baseline}}\cdot\nabla\log\pi_{i,t}$$
#
# * $A$, the **advantage**: how much better than expected.
# * $w$ is made from the **importance ratio** $\rho$: the token's probability now, over its
#   probability when it was written. On fresh answers both are 1.
# * $c$, the **weight** of a token in the average. $\nabla\log\pi$, the direction that makes the
#   token likelier.
#
# > **A method is a choice of baseline and a way to tame the importance ratio.** Some choose the
# > weights, too, or add a KL term that holds the model near where it began. A few do not fit; page
# > 14 names them.
#
# Here are those who do:

# %%
method_map.method_map({f"{n:02d}" for n in range(15)} | {"21"})

# %% [markdown]
# Up the rows the baseline gets more specific and costs more: nothing, the batch, one greedy answer,
# several answers to the same prompt, a second network. To the right: no ratio, a hard cut,
# something gentler than a cut, one ratio for the whole answer.
#
# GRPO and Dr. GRPO ("GRPO done right", 2025) stand in the same column.

# %% jupyter={"source_hidden": true}
# your guess
predict("start_here.2", "What does Dr. GRPO change in GRPO?",
        ["how the ratio is clipped",
         "two divisions, and a term it drops",
         "it trains a critic again",
         "the reward"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("start_here.2", "two divisions, and a term it drops",
       "In the package behind this course a method is a few named parts, "
       "so one can ask for `difference(ZOO['grpo'], ZOO['dr_grpo'])`:"
       f"\n\n```\n{difference(ZOO['grpo'], ZOO['dr_grpo'])}\n```\n\n"
       "The division by the group's std goes (first line), the division "
       "by the answer's length (second), the KL term (third).")

# %% [markdown]
# ## The pages
#
# How far you have come, page by page. Run the cell again when you come back. Guesses, tasks and
# passed exercises are kept in one small file on this machine and go nowhere else. (For a teacher:
# `rlnb progress export ada.json --name Ada` writes them to a file that you can hand over.)

# %%
course_map()

# %% [markdown]
# Pages 15 to 20 follow: preferences, rewards, evaluation, agents, systems, and a drill for
# interviews. In a hurry: 02, 06, 08, 21, and back to 01, 03 or 04 when a step felt too quick.
#
# ## How to study
#
# * **A lesson** asks one question. It takes about half an hour, its exercises as long again.
# * **Statements** are the sentences one hears in interviews. True, false, or it depends? You say,
#   and a cell decides. Five minutes at a time, in any order, after the lesson.
# * **You are in your own copy.** `make lab` opens copies of the pages in `work/`. Change anything.
#   An upgrade of the course never touches them; `make fresh NB=02` fetches a new page 02 and keeps
#   the old one beside it.
# * **The answers wait for your guess.** "Run all cells" spoils nothing.
# * **Exercises are checked**, and a check knows the usual mistakes. This is what it says of an
#   empty stub, and of a slip:

# %%
def mine(logprobs, mask, rewards):
    return ...

print(check.reinforce_loss(mine))

def slip(logprobs, mask, rewards):
    return -(rewards * (logprobs * mask).sum(1)).sum()

print(check.reinforce_loss(slip))

# %% [markdown]
# * **Before an interview**: the folded questions at the end of each page, aloud, with a clock. The
#   60-second cards are what should be left in your head.
#
# ## Can this machine run it?

# %%
from rlnb.classroom.environment import environment_check, gpu_check
environment_check()

# %% [markdown]
# No page needs a GPU. Page 21 uses one if it is there; on a CPU its training run takes well under a
# minute.

# %% tags=["nbval-ignore-output"]
gpu_check()

# %% [markdown]
# **Next: [01 · One scalar loss](01_one_scalar_loss.ipynb).** Below: the letters and the words, to
# come back to.

# %% [markdown]
# ## Notation
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
# | $\pi_\text{old}$ | the policy at the start of the update | `old_per_token_logps` | `old_log_probs` |
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
#
# ## Glossary
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
# | **surrogate** | a loss made for its gradient; its value means nothing |
# | **trust region** | how far one update may move the policy |
# | **verifier** | a program that decides whether an answer is right |
# | **zero-gradient group** | a group whose rewards are all equal |
