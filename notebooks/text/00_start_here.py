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
# **Settles:** what a course on RL for language models is about, what the number called loss means
# there, and how these pages work.
#
# 14 minutes · needs: you can fine-tune a model, and know what a gradient is · the two papers to
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
from rlnb.classroom.explorers import loss_and_gradient
from rlnb.classroom.lesson import predict, reveal, task
from rlnb.classroom.pictures import method_map, pipeline, start_here
from rlnb.classroom.pictures.token_grid import token_grid
from rlnb.objective import difference
from rlnb.toys import running_group
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## A model that teaches itself sums
#
# A small transformer writes eight answers to each of sixteen sums. A program checks every answer,
# and one step of training makes the right ones likelier. Here are forty such steps.

# %%
start_here.reward_and_loss()

# %% [markdown]
# The left panel says that the model learns. The middle panel is what you would have watched while
# fine-tuning: the loss *rises*, from a little below 0 to 0. Why does a model get better while its
# loss goes up? By the end of this page you will know, and you will know what the right panel says.
#
# ## One step
#
# Take the smallest case. There is one prompt, and the model has written four answers to it, with 3,
# 5, 2 and 6 tokens. Two answers are right and earn 1, and two are wrong and earn 0. This is the
# **running group**; it comes back on every page.
#
# How good is an answer? Compare its reward with the reward that was to be expected, a **baseline**.
# The method GRPO uses the mean reward of the group, here 1/2, as the baseline. It divides the
# difference by the spread of the rewards, here also 1/2. So a right answer gets the **advantage**
# $A=+1$, and a wrong one gets $-1$.
#
# If you had only right answers, you would fine-tune on them, with minus the mean log-probability of
# their tokens as the loss. GRPO's loss is a relative of that. Every answer counts with its
# advantage:
#
# $$\text{loss}=-\frac14\sum_{i=1}^4\frac{1}{T_i}\sum_{t=1}^{T_i}\rho_{i,t}\,A_i,\qquad
# \rho_{i,t}=\frac{\text{probability of the token now}}{\text{its probability when it was written}}$$
#
# $T_i$ is the length of answer $i$. Where fine-tuning has $\log\pi$, GRPO has the ratio $\rho$; you
# will see in a moment that both pull alike. The answers are fresh: the model has not changed since
# it wrote them.

# %% jupyter={"source_hidden": true}
# your guess
predict("start_here.1", "Fresh answers, so every ratio is 1. What are "
        "the loss and its gradient?",
        ["both 0: there is nothing to learn yet",
         "the loss is −1: the right answers' advantage",
         "loss 0; right answers are pushed up, wrong ones down",
         "loss 0; only the right answers are pushed, wrong ones earn 0"])

# %%
group = running_group()
logp, mask, R = group.logprobs, group.mask, group.rewards   # logp (4, 6)
A = (R - R.mean()) / R.std(correction=0)                    # +1 +1 -1 -1
ratio = (logp - logp.detach()).exp()               # value 1, slope 1
gain = torch.where(mask, ratio * A[:, None], 0).sum(1) / mask.sum(1)
loss = -gain.mean()
(gradient,) = torch.autograd.grad(loss, logp)

fresh = group.replace(old_logprobs=None)          # the package agrees
grpo = ZOO["grpo"].replace(terms=())               # KL: a later page
assert torch.allclose(grpo(fresh).loss, loss)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("start_here.1",
       "loss 0; right answers are pushed up, wrong ones down",
       f"The loss is {abs(loss.item()):.4f}: "
       r"$-\frac14(1+1-1-1)=0$, because advantages around a mean add up "
       r"to zero. But $\rho$ still depends on the model. At $\rho=1$ its "
       r"slope in $\log\pi$ is 1, the same as in fine-tuning. So each "
       r"token is pushed by $A_i/(4\,T_i)$: up in a right answer, down in "
       r"a wrong one.",
       token_grid(group, {"GRPO's push, times 4": -4 * gradient}, count="",
                  caption=(
           "Each row is an answer, each cell a token. Blue tokens are made "
           "likelier, orange ones less likely. Tokens of long answers are "
           "pushed less; page 09 is about that.")),
       instead={
           "both 0: there is nothing to learn yet":
           "The value is 0. Is a slope 0 where a value is?",
           "the loss is −1: the right answers' advantage":
           "That is their part. The wrong ones' part cancels it.",
           "loss 0; only the right answers are pushed, wrong ones earn 0":
           "Rewards are compared with the group's mean, so 0 counts as "
           "below it.",
       })

# %% [markdown]
# A loss that is made for its gradient, and whose value means nothing, is called a **surrogate**.
# Below are the same four answers. Move the sliders until the page says that you are done.

# %% jupyter={"source_hidden": true}
# the explorer and its tasks
task("start_here.t", loss_and_gradient.loss_and_gradient_explorer(),
     ("Two right answers, and yet a loss that is not 0.",
      loss_and_gradient.loss_moves),
     ("A gradient of exactly 0: this model learns nothing.",
      loss_and_gradient.gradient_stops))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Once the policy has moved, the ratios are no longer 1, and the sum is no longer 0. This happens
#    in the second step over the same answers. (The hatched token has moved too far, and PPO's clip
#    has silenced it; see page 06.) A mean over tokens also moves the loss away from 0 when right
#    and wrong answers differ in length. That is what you saw in the run above.
# 2. Make all four right, or all four wrong. Then no answer is better than expected, and nothing is
#    learnt. **This** is the zero to worry about.
# </details>

# %% jupyter={"source_hidden": true}
# your guess
predict("start_here.2", "Now only one of the four answers is right. How "
        "hard is it pushed, compared with each of the two before?",
        ["1.7 times as hard: it stands out from its group",
         "as hard: it earned its 1 like the others",
         "half as hard: half the reward came in",
         "twice as hard: it has the push to itself"])

# %%
alone = grpo(fresh.replace(rewards=torch.tensor([1.0, 0, 0, 0])))
before, after = grpo(fresh).advantages[0, 0], alone.advantages[0, 0]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("start_here.2", "1.7 times as hard: it stands out from its group",
       f"Its advantage is now {after:.2f}, and was {before:.2f}. The mean "
       "has fallen to 1/4, and the spread is smaller, too. A push says "
       "how an answer compares with its group, not what it earned. In "
       "GRPO a rare right answer gets a hard push. Page 09 asks whether "
       "that is wise.",
       instead={
           "half as hard: half the reward came in":
           "A push does not share out what came in.",
           "as hard: it earned its 1 like the others":
           "Its reward is the same. What changed is what it is compared "
           "with.",
           "twice as hard: it has the push to itself":
           "The right thought, a little too far: the spread shrinks as "
           "well.",
       })

# %% [markdown]
# **So a loss of zero has two meanings.** If the pushes cancel in the sum, it is harmless. If the
# groups have no pushes, there is nothing to learn. The right panel at the top shows the second
# kind: by the end, about two groups in three teach nothing.
#
# **What should you watch instead?** Watch the share of right answers, and the share of groups in
# which all rewards are equal. Watch the norm of the gradient, the entropy, and the lengths. Do not
# watch the loss.
#
# The course follows one step of training through these boxes. Each page lights up the boxes that it
# changes.

# %% jupyter={"source_hidden": true}
# the picture
pipeline.pipeline(caption=(
    "Answers are graded, grades become advantages, advantages push tokens. "
    "The ratio matters when the answers are no longer fresh."))

# %% [markdown]
# ## The map
#
# The whole course is built on one sentence:
#
# > **A method is a choice of baseline and a way to tame the importance ratio** $\rho$**.**
#
# Some methods also choose how much each token counts, or add a KL term that holds the model near
# its start. A few do not fit; page 14 names them.

# %% jupyter={"source_hidden": true}
# the picture
method_map.method_map(
    {f"{n:02d}" for n in range(22)},
    only=("REINFORCE", "RLOO", "PPO", "GRPO", "Dr. GRPO", "CISPO", "GSPO"))

# %% [markdown]
# These are seven of some thirty methods. In the package behind the course a method is a handful of
# named parts. So the question "what does Dr. GRPO change in GRPO?" has an answer that you can
# print.

# %%
print(difference(ZOO["grpo"], ZOO["dr_grpo"]))

# %% [markdown]
# Dr. GRPO does not divide by the spread, puts a constant in the place of each answer's length, and
# has no KL term. The ratio is not on the list, because both methods clip it alike.
#
# ## The pages
#
# This table shows how far you have come. Run the cell again when you come back. "30 + 17" minutes
# means that a page ends after 30 minutes, and that a second sitting goes deeper. Guesses, tasks and
# passed exercises are kept in one small file on this machine and go nowhere else.

# %%
course_map()

# %%
minutes = {page.number: page.minutes for page in course()}
second = sum(page.second for page in course())
hurry = sum(minutes[number] for number in ("02", "06", "08", "21"))
print(f"First sittings {sum(minutes.values()) / 60:.0f} hours, second "
      f"ones {second / 60:.0f}, all exercises about 10.")
print(f"In a hurry, 02, 06, 08 and 21: {hurry / 60:.1f} hours.")

# %% [markdown]
# Page 14 completes what stands in a loss. The pages after it are about what stands around the loss:
# [preferences](15_preferences.ipynb), [rewards](16_rewards.ipynb),
# [evaluation](17_evaluation.ipynb), [agents](18_agents.ipynb), [systems](19_systems.ipynb);
# [20](20_interview.ipynb) is a drill for interviews, and 21 trains a model.
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
# * **You are in your own copy.** Change anything: an upgrade of the course never touches it.
# * **Before an interview**: the folded questions at the end of each page, aloud, with a clock.
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
# <details><summary>More: a new copy of a page, and what a teacher sees</summary>
#
# `make fresh NB=02` fetches a new page 02 and keeps yours beside it. `rlnb progress export ada.json
# --name Ada` writes your progress to a file that you can hand over; nothing is sent.
# </details>
#
# **Can this machine run it?** No page needs a GPU.

# %%
from rlnb.classroom.environment import environment_check, gpu_check
environment_check()

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
# | **surrogate** | a loss made for its gradient; its value is no measure of progress |
# | **trust region** | how far one update may move the policy |
# | **verifier** | a program that decides whether an answer is right |
# | **zero-gradient group** | a group whose rewards are all equal |
