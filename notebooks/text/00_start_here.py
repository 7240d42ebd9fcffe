# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 · Start here
#
# **Settles:** what the methods have in common, why the loss is 0, which pages exist, how to
# study them, and whether this machine can run them.
#
# 20 minutes · needs nothing · Schulman et al. 2017 (PPO, arXiv 1707.06347) and Shao et
# al. 2024 (GRPO, arXiv 2402.03300) are the two papers to have at hand.
#
# **Shift-Enter** runs a cell and goes to the next. Begin with the one below. Or go to
# [the pages](#The-pages), [how to study](#How-to-study), [notation](#Notation).

# %%
import torch
from rlnb import ZOO
from rlnb.classroom import explorers
torch.set_num_threads(1); torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## The course in one sentence
#
# A language model writes answers, a program grades them, and the model is changed so that
# good answers become likelier. Most of what is published on the last step is one line:
#
# $$\text{update}\;\propto\;\sum_{\text{answers } i}\;\sum_{\text{tokens } t}
# c_{i,t}\cdot\underbrace{w_{i,t}}_{\text{tame the ratio}}\cdot
# \underbrace{A_{i,t}}_{\text{reward}-\text{baseline}}\cdot\nabla\log\pi_{i,t}$$
#
# * $A$, the **advantage**: how much better than expected. The **baseline** is what was
#   expected.
# * $\rho$, the **importance ratio**: the token's probability now, over its probability when
#   it was written; 1 on fresh answers. $w$, made from $\rho$, is how much the token counts.
# * $c$, the **weight** of a token in the average; $\nabla\log\pi$, the direction that makes
#   the token likelier.
#
# > **Every method is a choice of baseline and a way to tame the importance ratio.**
#
# Two smaller choices come with it: the weights $c$, and whether a KL term is added.
#
# The best-known way to tame $\rho$ is PPO's clip: $w=\rho$, until the token has gone more
# than $\epsilon$ where its $A$ sends it; from there $w=0$, and it stops learning. Run the
# next cell and drag an $\epsilon$. On the right, each sign of $A$ has one side at slope 0.

# %% tags=["explorer"]
explorers.clip_explorer()

# %% [markdown]
# The four marked tokens, with the $w$ they get. Two have $\rho=1.5$, and only one of them
# is cut: the clip looks at where the token went *and* where it should go. Page 06 derives
# this.

# %%
from rlnb.classroom.explorers.clip import compute
for corner in compute()["corners"]:
    should = "rise" if corner.sign > 0 else "fall"
    rho, state = corner.ratio, "alive" if corner.alive else "dead"
    went = "rose" if rho > 1 else "fell"
    print(f"A {corner.sign:+d}, should {should}, {went} to ratio {rho}: "
          f"w {rho * corner.alive:.1f}, {state}")

# %% [markdown]
# ## The map

# %%
from rlnb.classroom.pictures.method_map import method_map
written = {f"{n:02d}" for n in range(15)} | {"21"}
method_map(written)

# %% [markdown]
# Up the rows the baseline gets more specific, and costs more: nothing, the batch, one
# greedy answer, $G$ answers to the same prompt, a second network. To the right: no ratio,
# a cut, something gentler than a cut, one ratio for the whole answer.
#
# In the package behind the course a method is a few named parts. Here are seven of its
# twenty; page 14 has them all, and a composer to make your own:

# %%
some = "reinforce", "rloo", "ppo", "grpo", "dr_grpo", "dapo", "cispo"
for name in some:
    method = ZOO[name]
    print(f"{name:9s} {method.advantage!r:24s} {method.surrogate!r:20s} "
          f"{method.weights!r}")
    for what in ("shape", "credit", "terms"):
        for part in getattr(method, what):
            print(f"{'':9s} + {what}: {part!r}")

# %% [markdown]
# Columns: baseline, what is done with the ratio (`logprob` has none), the weights $c$; after
# a `+`, what is added. "What does Dr. GRPO change?" has an answer one can print:

# %%
from rlnb.objective import difference
print(difference(ZOO["grpo"], ZOO["dr_grpo"]))

# %% [markdown]
# Two divisors go, the group's std (in the first line) and the answer's length (in the
# second), and the KL term. The ratio is not on the list: both clip it alike.
#
# ## Why is my loss 0?
#
# Start GRPO with one update per batch and no KL term, and the log says loss 0. It is not a
# bug. Here are four answers to one prompt, rewards 1, 1, 0, 0, lengths 3, 5, 2, 6: the
# **running group** of every page. The answers are fresh, so each ratio is 1. The gradient
# is taken with respect to the tokens' log-probabilities.

# %%
from rlnb.toys import running_batch, running_group
group = running_group().replace(old_logprobs=None)      # on-policy
grpo = ZOO["grpo"].replace(terms=())                    # no KL

def loss_and_gradient(objective, batch):
    loss = objective(batch).loss                        # ()
    grad = torch.autograd.grad(loss, batch.logprobs)[0] # (answers, T)
    return round(loss.item(), 4) + 0.0, grad.norm().item()

loss, norm = loss_and_gradient(grpo, group)
print(f"loss {loss:.4f}   gradient norm {norm:.4f}")
assert loss == 0 and norm > 0.2

# %% [markdown]
# The *value* at ratio 1 is $-\frac1G\sum_i A_i$ over the $G$ answers, the mean of numbers
# that were centred a moment ago. The *gradient* multiplies each $A_i$ with another
# direction, and those do not cancel. The push on each token of answer $i$, which has $T_i$
# of them, is $A_i/(G\,T_i)$:

# %%
table = grpo.explain(group)
for i, T in enumerate((3, 5, 2, 6)):
    print(f"answer {i}: A {table.advantages[i, 0]:+.4f}, {T} tokens, "
          f"push per token {-table.gradient[i, 0]:+.4f}")

# %% [markdown]
# $1/(4\cdot3)$ for the first. (Equally right, the longer answer is pushed less per token: page
# [09](09_grpo_biases.ipynb).) So the loss is not a progress bar. It is 0 because of how it is
# built, and four things can make it something else:

# %%
from rlnb.objective import logprob, token_mean
two = running_batch().replace(old_logprobs=None)        # a second prompt
by_token = grpo.replace(weights=token_mean)
by_logprob = grpo.replace(surrogate=logprob())
cases = {
    "older answers (ratio not 1)": (grpo, running_group()),
    "a KL term": (ZOO["grpo"], group),
    "token mean, running group": (by_token, group),
    "token mean, two prompts": (by_token, two),
    "Dr. GRPO, two prompts": (ZOO["dr_grpo"], two),
    "log-prob form, same gradient": (by_logprob, group),
}
for name, (objective, batch) in cases.items():
    loss, norm = loss_and_gradient(objective, batch)
    print(f"{name:30s} loss {loss:+.4f}   gradient norm {norm:.4f}")

# %% [markdown]
# * **Older answers.** From the second step over a batch on, the ratios differ from 1.
# * **A KL term** has a value of its own, once the model has left the reference.
# * **Other weights.** When tokens and not answers count equally, long answers weigh more,
#   and the advantages need not cancel. In the running group they do: 3 + 5 right tokens,
#   2 + 6 wrong ones. The second prompt (rewards 1, 0, 0, 0, lengths 4, 1, 7, 2) does not:
#   its $A$ are $\sqrt3$ and three times $-1/\sqrt3$, the two prompts have 30 tokens, and
#   $-(4\sqrt3-10/\sqrt3)/30=-0.0385$. Dr. GRPO, too, weighs tokens alike.
# * **The log-prob form** $-\frac1G\sum_i\frac{A_i}{T_i}\sum_t\log\pi_{i,t}$ has, on fresh
#   answers, the same gradient as the ratio form, and another value.
#
# There is one 0 to worry about, and only the gradient can tell:

# %%
same = group.replace(rewards=torch.ones(4))             # all right
loss, norm = loss_and_gradient(grpo, same)
print(f"equal rewards: loss {loss:.4f}   gradient norm {norm:.4f}")
assert norm == 0

# %% [markdown]
# All four right (or all four wrong): nothing to prefer, nothing is learnt. Watch the
# gradient norm and the share of such groups, not the loss.
#
# ## The pages
#
# Written: **00 to 14, and 21**. The others follow. Minutes are for reading and running;
# the exercises take as long again. 04 to 08 are lessons of the second edition: one question
# each, guesses, tasks. Statements one hears in interviews stand on pages of their own there,
# in `statements/`, true, false, or it depends. The other pages follow.
#
# | # | page | it settles | minutes |
# |---|---|---|---|
# | 00 | start here | the map, the notation, why the loss is 0 | 20 |
# | [01](01_one_scalar_loss.ipynb) | one scalar loss | SFT is differentiable, sampling is not; KL, entropy | 35 |
# | [02](02_reinforce.ipynb) | REINFORCE | the log-derivative trick, variance, credit | 35 |
# | [03](03_baselines.ipynb) | baselines | why a baseline is free, and what each one costs | 40 |
# | [04](04_importance_sampling.ipynb) | importance sampling | how to use a batch twice, and when that breaks | 30 |
# | [05](05_kl.ipynb) | KL | how far the policy may go; k1, k2, k3; in the reward or in the loss | 35 |
# | [06](06_ppo.ipynb) | PPO | what the clip does to a gradient, and the min | 35 |
# | [07](07_critic.ipynb) | the critic | who says how good a token was: values, GAE, four models in memory | 30 |
# | [08](08_grpo.ipynb) | GRPO | what if the group is the baseline? | 30 |
# | [09](09_grpo_biases.ipynb) | biases of GRPO | equal rewards, difficulty, length: the two divisors | 40 |
# | [10](10_dr_grpo.ipynb) | Dr. GRPO | what removing the two divisors does; TRL and verl | 40 |
# | [11](11_dapo.ipynb) | DAPO | clip-higher, dynamic sampling, token-level loss | 40 |
# | [12](12_soft_trust_regions.ipynb) | soft trust regions | CISPO, SAPO, DPPO: the gradient at the edge | 40 |
# | [13](13_gspo.ipynb) | GSPO | one ratio per answer; mixtures of experts | 40 |
# | [14](14_the_zoo.ipynb) | the zoo | all methods, and a composer for your own | 40 |
# | 15 | preferences | Bradley-Terry, DPO and its family | to follow |
# | 16 | rewards | verifiers, hacking, the KL leash | to follow |
# | 17 | evaluation | pass@k, what to log | to follow |
# | 18 | agents | many turns, masks, credit | to follow |
# | 19 | systems | memory, staleness, precision | to follow |
# | 20 | interview | the timed drill over everything | to follow |
# | [21](21_grpo_for_real.ipynb) | GRPO for real | a small transformer, trained on this machine | 40 |
#
# In a hurry: 02, 06, 08, 21, and back to 01, 03 or 04 when a step felt too quick.
#
# ## How to study
#
# * **You are in your own copy.** `make lab` opens copies of the pages in `work/`. Change
#   anything. An upgrade of the course never touches them, and `make fresh NB=02` fetches
#   a new page 02 and keeps the old one beside it.
# * **Guess before you look.** Where a page asks, press one of the buttons; the answer opens
#   when you have. Elsewhere say the number, or its sign, before Shift-Enter. A wrong guess
#   is what you remember. Guesses and finished tasks are kept in one small file on this
#   machine and go nowhere else.
# * **Figures stand still until you run their cell.** Then the controls above them move
#   them; arrow keys work.
# * **Exercises** carry minutes and difficulty (●○○ to ●●●). The code ones are checked:
#   `check.reinforce_loss(mine)` names the common mistakes, and answers any other with an
#   input on which it shows. Hints are folded; solutions are pages in `solutions/`.
# * **In the interview:** at the end of each page. Answer aloud, with a clock, before
#   unfolding. Page 20 will drill all of them.
#
# This is what a check says of an empty stub, and of a typical slip:

# %%
from rlnb import check

def mine(logprobs, mask, rewards):
    return ...

print(check.reinforce_loss(mine))

def slip(logprobs, mask, rewards):
    return -(rewards * (logprobs * mask).sum(1)).sum()

print(check.reinforce_loss(slip))

# %% [markdown]
# ## Can this machine run it?

# %%
from rlnb.classroom.environment import environment_check, gpu_check
environment_check()

# %% [markdown]
# No page needs a GPU. Page 21 uses one if it is there; on a CPU its training run takes well
# under a minute.

# %% tags=["nbval-ignore-output"]
gpu_check()

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
# | $r_i$ | reward of answer $i$, one number | `rewards` | `token_level_scores`, summed |
# | $\bar r$ | mean reward of the group | | |
# | $A_i,\ A_{i,t}$ | advantage | `advantages` | `advantages` |
# | $R_t$ | return: rewards from token $t$ on | `returns` | `returns` |
# | $V_\phi$ | critic, a learnt baseline | `values` | `values` |
# | $w_{i,t}$ | gate: what the method makes of $\rho_{i,t}$ in the gradient | | `loss_mode` |
# | $c_{i,t}$ | weight of a token in the average | `loss_type` | `loss_agg_mode` |
# | $\beta$ | strength of the KL term | `beta` | `kl_loss_coef` |
# | $\epsilon_\text{low}$ | the clip's band starts at $1-\epsilon_\text{low}$ | `epsilon` | `clip_ratio_low` |
# | $\epsilon_\text{high}$ | and ends at $1+\epsilon_\text{high}$ | `epsilon_high` | `clip_ratio_high` |
# | $c$ (dual clip) | second bound, for $A<0$ | `delta` | `clip_ratio_c` |
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
# | **baseline** | what was to be expected; subtracting it lowers the noise |
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
#
# Next: [02 · REINFORCE](02_reinforce.ipynb).
