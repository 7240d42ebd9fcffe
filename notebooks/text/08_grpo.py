# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 08 · GRPO: what if the group is the baseline?
#
# **After this page** you can replace the critic by a group of answers, write GRPO's whole loss from
# memory, and say which of its pieces is derived and which are choices.
#
# 38 minutes · exercises 36 more · after 03 (baselines), 05 (KL), 06 (PPO), 07 (critic) ·
# DeepSeekMath, Shao et al. 2024, [arXiv 2402.03300](https://arxiv.org/abs/2402.03300);
# leave-one-out: Ahmadian et al. 2024, [arXiv 2402.14740](https://arxiv.org/abs/2402.14740)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What may you subtract from the reward without changing the expected gradient?</summary>Any number that does not depend on the answer itself (03).</details>
# <details><summary>2. Where did PPO get that number, and what did it cost?</summary>From a critic: a second network, trained beside the policy (07).</details>
# <details><summary>3. Which tokens does PPO's clip silence?</summary>Good ones above 1 + ε and bad ones below 1 − ε (06).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import ZOO, check
from rlnb.classroom.explorers import mixed_groups, one_group
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import grpo as pictures, pipeline, token_grid
from rlnb.objective import difference
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: the prompts, and sweep(rule)
P, K = 16, 20                              # prompts, possible answers
right = (torch.arange(K) < torch.arange(2, 18)[:, None]).double()
start = torch.randn(P, K, generator=torch.Generator().manual_seed(1))
before = (start.softmax(1) * right).sum(1)               # (P,)
hard = before.argmin()                                   # the hardest
rates = (1, 2, 4, 8, 16)

def sweep(rule, low=0.0):
    """Mean chance over the prompts at the end, (rates, runs)."""
    return torch.stack([train(rule, rate, low).mean(1) for rate in rates])

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: train(rule, rate)
def train(rule, rate, low=0.0, n=200, G=4, steps=40):
    """One group of G answers to each of the 16 prompts, 40 times.

    Wrong earns low, right earns low + 1. Returns the chance to be right
    on each prompt at the end, (n runs, P).
    """
    dice = torch.Generator().manual_seed(0)
    z, good = start.repeat(n, 1, 1), right.expand(n, P, K)
    for _ in range(steps):
        pi = z.softmax(2)                                # (n, P, K)
        y = pi.reshape(-1, K).multinomial(G, True, generator=dice)
        y = y.view(n, P, G)
        A = rule(low + good.gather(2, y))
        push = torch.zeros_like(pi).scatter_add(2, y, A)
        z += rate / G * (push - A.sum(2, keepdim=True) * pi)
    return (z.softmax(2) * right).sum(2)

# %% [markdown]
# ## Ask the prompt, not a critic
#
# PPO trains a second network, the critic, only to know what reward to expect from a prompt. GRPO
# throws that network away. It writes $G$ answers to the same prompt and compares them. PPO's four
# models took 36 bytes per parameter (07). GRPO with a program as its grader needs 18.

# %% jupyter={"source_hidden": true}
# the pipeline
pipeline.pipeline("answers", "advantages", caption=(
    "Two boxes make the method: G answers instead of one, and advantages "
    "from comparing them. The loss changes in two details, below."))

# %% [markdown]
# Must it be the mean of the *same* prompt? We test three rules on a toy. **The toy:** sixteen
# prompts from hard to easy have twenty possible answers each. A step draws four answers to every
# prompt, 64 in all, a right answer earns 1, a wrong one 0, and a run is 40 steps at learning rate
# 16.

# %%
def no_baseline(R):                        # R: rewards (runs, 16, 4)
    return R

def batch_mean(R):                         # the mean of all 64
    return R - R.mean((1, 2), keepdim=True)

def group_mean(R):                         # the mean of the prompt's own 4
    return R - R.mean(-1, keepdim=True)

rules = {"no baseline": no_baseline, "mean of the batch": batch_mean,
         "mean of the group": group_mean}
zero_one = {name: sweep(rule) for name, rule in rules.items()}
print(f"chance to be right, at the start: {before.mean():.2f}")
for name, runs in zero_one.items():
    print(f"at the end, {name}: {runs[-1].mean():.3f}")

# %% [markdown]
# With rewards 0 and 1 no baseline seems to be needed. Now another grader pays 1 for a wrong answer
# and 2 for a right one. Everything else stays the same.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.1", "Rewards 1 and 2, no baseline, learning rate 16: where "
        "does the chance to be right end?",
        ["about 1.0: a constant drops out",
         "about 0.95: one point costs a little",
         "about 0.8: one point costs much",
         "about 0.54: it learns nothing"])

# %%
one_two = {name: sweep(rule, low=1.0) for name, rule in rules.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
lost = one_two["no baseline"]
reveal("grpo.1", "about 0.8: one point costs much",
       f"It ends at {lost[-1].mean():.2f}. A constant drops out of the "
       "*expected* gradient (03), but every single step now also pushes "
       "wrong answers up. With 0 and 1 the zero stands just where it does "
       "no harm: a wrong answer gets no push. A reward model has no such "
       "zero. **A baseline makes training independent of the zero.**",
       pictures.rate_sweep(rates, {"rewards 0 and 1": zero_one,
                                   "rewards 1 and 2": one_two},
           before.mean().item(), (
           "From rate 4 on, adding 1 to every reward ruins training "
           "without a baseline. Neither mean notices it. 200 runs.")),
       instead={
           "about 1.0: a constant drops out":
           "It drops out of the mean of all steps. A run takes single "
           "steps.",
           "about 0.95: one point costs a little":
           "The best of five learning rates gets there. At 16 the noise "
           "costs more.",
           "about 0.54: it learns nothing":
           "On average the push is still the true gradient, so it learns.",
       })

# %% [markdown]
# Now compare the two means. They use the same 64 rewards, and still the mean of the batch ended
# lower in the list above. Why?

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.2", "At learning rate 16, on which of the sixteen prompts "
        "does the batch's mean lose against the mean of the group?",
        ["on all, a little: one number fits none of them",
         "on the easiest: right answers are hardly pushed up",
         "on both ends: there the number is furthest off",
         "on the hardest: wrong answers are pushed down hard"])

# %%
ends = {"mean of the batch": train(batch_mean, 16),
        "mean of the group": train(group_mean, 16),
        "batch, 16 × the answers": train(batch_mean, 16, n=50, G=64)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
stuck = (ends["mean of the batch"][:, hard] < 0.01).double().mean()
reveal("grpo.2", "on the hardest: wrong answers are pushed down hard",
       "Nearly all answers there are wrong, and each is pushed down by "
       "half a point or more. What the pushed answer loses goes mostly to "
       "the *commonest* one, which is wrong too. A rare right answer can "
       "even lose: say the common one has 0.60, the right one 0.04. A step "
       "pushes down another wrong answer. The common one grows to 0.68, "
       "and the right one shrinks to 0.03. Repeat that, and in "
       f"{100 * stuck:.0f} of 100 runs the right answers are gone. (It is "
       "noise. With sixteen times as many answers the same mean succeeds, "
       "green.)",
       pictures.prompt_by_prompt(before, ends),
       instead={
           "on all, a little: one number fits none of them":
           "It fits none of them. But on fifteen of them this is harmless "
           "here.",
           "on the easiest: right answers are hardly pushed up":
           "They are hardly pushed, and hardly need it.",
           "on both ends: there the number is furthest off":
           "It is furthest off at both. On the easy end nearly every "
           "answer is right already.",
       })

# %% [markdown]
# **Idea 1. Do not ask "was it good?" but "was it good for this prompt?"** A critic learns what the
# prompt usually earns. A group measures it, with no second network.

# %% [markdown]
# ## Is that allowed?
#
# A baseline must not depend on the answer itself. The group's mean breaks this rule: it contains
# the answer's own reward. So first take the mean of the *others*, which is legal.
#
# $G$ answers $y_1,\dots,y_G$ to one prompt are drawn independently. $R_i$ is the reward of $y_i$,
# and $\bar R$ is the mean of all $G$ rewards.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E\big[R_i\,\nabla\log\pi(y_i)\big]&&\text{1 · log-derivative (02)}\\
# 0&=\mathbb E\big[R_j\,\nabla\log\pi(y_i)\big]&&\text{2 · for }j\ne i\text{: the reward of another answer is a legal baseline (03)}\\
# \nabla J&=\mathbb E\Big[\Big(R_i-\tfrac1{G-1}\textstyle\sum_{j\ne i}R_j\Big)\nabla\log\pi(y_i)\Big]&&\text{3 · line 1 minus the mean of line 2 over the others}\\
# &=\tfrac{G}{G-1}\,\mathbb E\big[(R_i-\bar R)\,\nabla\log\pi(y_i)\big]&&\text{4 · algebra: the bracket is }\tfrac G{G-1}(R_i-\bar R)\\
# &\;\to\;\mathbb E\big[(R_i-\bar R)\,\nabla\log\pi(y_i)\big]&&\text{5 · drop the factor: a learning rate absorbs it}\\
# &\;\to\;\mathbb E\Big[\dfrac{R_i-\bar R}{\sigma_R}\,\nabla\log\pi(y_i)\Big]&&\textbf{6 · a choice: divide by the group's std }\sigma_R
# \end{aligned}$$
#
# Try line 4 with rewards 1, 0, 0, 0. The right answer is 1 above the mean of the others and 3/4
# above the mean of all. A wrong one is 1/3 below the others and 1/4 below all. Both shrink to three
# quarters, so only the length of the push changes.
#
# Line 3 is a method of its own, **RLOO** (leave one out). The last line is **GRPO**. It is no
# longer the gradient of $J$:
#
# $$A_i=\frac{R_i-\bar R}{\sigma_R},\qquad\sigma_R=\sqrt{\tfrac1G\textstyle\sum_j(R_j-\bar R)^2}$$

# %% [markdown]
# ## What does dividing do?
#
# Take groups of sixteen answers. If eight are right, every advantage is $+1$ or $-1$. Now a single
# one is right.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.3", "What advantage does the single right answer get?",
        ["1", "a little under 2", "a little under 4", "15"])

# %%
def zscore(R):
    std = R.std(-1, correction=0, keepdim=True)      # divide by G
    return group_mean(R) / (std + 1e-6)              # never 0 / 0

lone = zscore(torch.tensor([1.0] + [0.0] * 15))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.3", "a little under 4",
       f"{lone[0]:.2f}. By hand: if a share $p$ of the group is right, "
       r"then $\bar R=p$ and $\sigma_R=\sqrt{p(1-p)}$. So a right answer "
       r"gets $(1-p)/\sigma_R=\sqrt{(1-p)/p}$ and a wrong one "
       r"$-p/\sigma_R=-\sqrt{p/(1-p)}$.", pictures.advantages_by_rate(),
       instead={
           "1":
           "The std sets the mean square to 1. The rare answer gets more, "
           "the others less.",
           "a little under 2":
           "That is about right for one of four or five.",
           "15":
           "Those are the odds against it. The advantage is their root.",
       })

# %% [markdown]
# Now try it. Blue bars are right answers, orange bars wrong ones. The left panel only subtracts the
# mean, the right panel also divides.

# %% jupyter={"source_hidden": true}
# the explorer
task("grpo.t1", one_group.one_group_explorer(),
     ("Give a right answer an advantage above 3 after the division, in the "
      "smallest group that can have one. Try eight first.", one_group.loud),
     ("Give a right answer less than 0.1 on the left and more than 1.5 on "
      "the right. What does that say about the size of a reward?",
      one_group.pay_does_not_matter))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Eleven answers, one right. With eight no setting reaches 3; exercise 1 asks why.
# 2. Less than 4 in 13 right (1 of 4 will do), paid 0.10 or less. The division makes the size of a
#    reward disappear.
# </details>
#
# Does it help? Take the sixteen prompts again, once paid 1 and once paid 0.1.

# %% jupyter={"source_hidden": true}
# two rules, two pays, three rates
print("chance to be right, at rates          4    16   160")
for rule in (group_mean, zscore):
    for pay in (1, 0.1):
        said = {group_mean: "minus the mean", zscore: "divided, too"}[rule]
        print(f"{said:15s} right answers pay {pay:<3g}", *(
            f"{train(lambda R: rule(pay * R), rate).mean():5.2f}"
            for rate in (4, 16, 160)))

# %% [markdown]
# Divided, the pay makes no difference. Undivided, a tenth of the pay is a tenth of the learning
# rate, and a rate ten times as large repairs it. So in this toy dividing saves you a search for the
# rate, and wins nothing else. It has a price: a tiny difference in a reward model counts as much as
# right against wrong.
#
# **Idea 2. Dividing is a choice: it makes the rare answer loud.** Every group has its own
# $\sigma_R$, so a batch leans towards its uneven groups (page 09).

# %% [markdown]
# ## Groups that say nothing
#
# If all answers are right, or all wrong, every reward equals the mean and every advantage is 0.
# Such a group is **silent**: it costs $G$ answers and teaches nothing. A prompt is answered right
# with chance $p$. Then a group teaches with chance $1-p^G-(1-p)^G$, that is one minus all right
# minus all wrong:

# %% jupyter={"source_hidden": true}
# the share of groups that teach
pictures.mixed_groups()

# %% [markdown]
# Look at the left edge: there a larger group teaches far more often. So hard prompts seem to call
# for large groups. Take a prompt that is answered right once in fifty, and 128 answers to spend.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.4", "16 groups of 8, or 2 groups of 64: in which do more "
        "right answers get an advantage above 0, in expectation?",
        ["2 of 64: a far larger share of them teaches",
         "16 of 8: there are more groups that can teach",
         "equally many: both draw 128 answers"])

# %%
cuts = {G: mixed_groups.compute(G, 0.02) for G in (8, 64)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.4", "equally many: both draw 128 answers",
       f"In both it is {cuts[8]['right']:.2f} right answers. Of the groups "
       f"of 8 {100 * cuts[8]['share']:.0f} % teach, of the groups of 64 "
       f"{100 * cuts[64]['share']:.0f} %. But there are eight times fewer "
       "of those. **A larger group finds no more right answers. It puts "
       "more wrong ones beside each.**",
       instead={
           "2 of 64: a far larger share of them teaches":
           "The share is larger, but the number of groups is far "
           "smaller.",
           "16 of 8: there are more groups that can teach":
           "There are more groups, but most of them are silent.",
       })

# %% [markdown]
# So which G? Play with it before you set it.

# %% jupyter={"source_hidden": true}
# the explorer
task("grpo.t2", mixed_groups.mixed_groups_explorer(),
     ("Stay with the hard prompt, pass rate 0.02. Make 80 of 100 groups "
      "teach. What does it do to the right answers?",
      mixed_groups.hard_and_heard))

# %% [markdown]
# <details><summary>What it shows</summary>
#
# G = 128. There are still 2.56 right answers to push up. But a lone one now gets an advantage of
# 11.3, where it had 2.65 in a group of 8. It is louder, not more
# frequent. <!-- cited: 11.3, 2.65 -->
# </details>
#
# A larger G costs prompts and finds no more right answers. On the
# [statements page](statements/08_grpo.ipynb) G = 4 to 32 end level, each at its own rate. Most runs
# take 8 or 16.
#
# **Idea 3. A group of equal rewards is silent.** (A KL term, if there is one, still pulls.) So
# learning happens on prompts that are neither too hard nor too easy. In a long run prompts become
# easy, and more and more of the batch falls silent. Page 11 draws again.

# %% [markdown]
# ## The whole loss
#
# GRPO puts its $A_i$ into PPO's clip (06), the same for every token of answer $i$. It subtracts
# $k_3$, the KL to the reference per token (05). It averages each answer over its own $T_i$ tokens,
# and then over the answers:
#
# $$L=-\frac1G\sum_i\frac1{T_i}\sum_t\Big[\min\big(\rho_{i,t}A_i,\ \mathrm{clip}(\rho_{i,t},1-\epsilon,1+\epsilon)A_i\big)-\beta\,k_{3,i,t}\Big]$$
#
# Only $-\bar R$ was derived. The rest are choices: $\sigma_R$ for one rate on every grader, $1/T_i$
# so that a long answer counts like a short one, the clip for many steps on a batch, and $k_3$ in
# the loss, because inside the reward the group's mean would average it away. Here it is in code for
# one group, and compared with this course's own library:

# %%
def grpo_loss(logp, old_logp, ref_logp, mask, R, epsilon=0.2, beta=0.04):
    """Log-probs and mask (G, T), rewards R (G,). To minimise."""
    A = zscore(R)[:, None]                                   # (G, 1)
    rho = (logp - old_logp.detach()).exp()
    gain = torch.minimum(rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A)
    d = ref_logp - logp
    per_token = gain - beta * (torch.expm1(d) - d)           # k3
    per_token = torch.where(mask, per_token, 0.0)
    return -(per_token.sum(1) / mask.sum(1)).mean()

batch = running_group()
mine = grpo_loss(batch.logprobs, batch.old_logprobs, batch.ref_logprobs,
                 batch.mask, batch.rewards)
theirs = ZOO["grpo"](batch).loss
print(f"mine {mine:.6f}, rlnb's {theirs:.6f}")
assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the push on each token
ratio = (batch.logprobs - batch.old_logprobs).exp()         # (4, 6)

def push(per_answer, epsilon=None):
    """Slope in log pi of ρA, or with epsilon of PPO's clip and min."""
    A = per_answer[:, None].expand_as(ratio)
    L = ratio * A if epsilon is None else torch.minimum(
        ratio * A, ratio.clamp(1 - epsilon, 1 + epsilon) * A)
    return torch.autograd.grad(L[batch.mask].sum(), batch.logprobs,
                               retain_graph=True)[0]

# %% [markdown]
# The running group has two right and two wrong answers, and the batch has been used for some steps
# (06). All tokens of an answer share one advantage, left. What then differs from token to token is
# the ratio and the clip, right.

# %% jupyter={"source_hidden": true}
# the push on every token
token_grid.token_grid(batch, {
    "A: one number per answer": zscore(batch.rewards)[:, None]
        .expand_as(ratio).where(batch.mask, 0),
    "the push: times ρ, and PPO's clip":
        push(zscore(batch.rewards), epsilon=0.2)}, caption=(
    "Blue is pushed up, orange down. The clip silences the hatched tokens: "
    "they have moved far enough already."))

# %% [markdown]
# Around the loss stands this loop:
#
# ```python
# for prompt in data:                                  # one group a step
#     answers, mask = sample(policy, prompt, G)        # G answers
#     R = grade(answers)                               # a verifier
#     old_logp = logp_of(policy, answers).detach()     # once per batch
#     ref_logp = logp_of(reference, answers).detach()  # a frozen copy
#     for _ in range(steps_per_batch):
#         loss = grpo_loss(logp_of(policy, answers), old_logp, ref_logp, mask, R)
#         step(loss)
# ```
#
# With several prompts a step, `zscore` needs one row per prompt. Otherwise it takes the mean over
# all of them, and says nothing: exercise 2.
#
# Start training. It is the first step on a fresh batch, so all ratios are 1. Set $\beta=0$ and look
# at the first line of the log.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.5", "For the running group, what are the value of the loss "
        "and its gradient?",
        ["0, and the gradient is not 0", "0, and the gradient is 0",
         "−1, and the gradient is not 0",
         "it depends on how long the answers are"])

# %%
fresh = batch.logprobs.detach().requires_grad_()
first = grpo_loss(fresh, fresh, batch.ref_logprobs, batch.mask,
                  batch.rewards, beta=0.0)
slope, = torch.autograd.grad(first, fresh)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.5", "0, and the gradient is not 0",
       f"The value is {abs(first.item()):.4f}, the norm of the gradient "
       f"{slope.norm():.4f}. Each answer contributes its advantage, and a "
       "group's advantages sum to 0. So do not watch the loss. Log the "
       "mean reward, the share of silent groups and the gradient's "
       "norm.\n\n**A trap:** is the value still 0 at the *second* step on "
       "that batch? Then `old_logp` is computed anew before every step, "
       "all ratios stay 1, and the clip never acts.",
       instead={
           "−1, and the gradient is not 0":
           "Right and wrong answers stand in it with opposite signs.",
           "0, and the gradient is 0":
           "Advantages that sum to 0 still push single answers up and "
           "down.",
           "it depends on how long the answers are":
           "Each answer is averaged over its own length first.",
       })

# %% [markdown]
# <details><summary>One level deeper: which std, which libraries</summary>
#
# * The paper says "std". TRL and verl take Bessel's, over $G-1$: all advantages are smaller by
#   $\sqrt{(G-1)/G}$, one constant. TRL adds 1e-4 to it, verl 1e-6.
# * TRL calls the divisions `scale_rewards="group"` and `loss_type="grpo"`, verl
#   `norm_adv_by_std_in_grpo` and `seq-mean-token-mean`. TRL's default for the latter is no longer
#   "grpo" (pages 10 and 11), and its $\beta$ is 0.
# * TRL uses a batch for one optimizer step by default: all ratios are 1 and the clip never acts.
# * The sampler (vLLM) has log-probs too, but from other kernels, and they differ a little from the
#   trainer's at the same weights. Take the trainer's for `old_logp`. The gap to the sampler
#   remains, and is a weight of its own (04).
# * Never leave one out in the std as well: of 1, 0, 0, 0 the others have std 0, and the advantage
#   is one over the small number.
# * "GRPO" alone means one reward for the whole answer. The paper's other form, process supervision,
#   grades steps inside it; a token's advantage is then the sum of the group-normalised rewards of
#   the steps from there on.
# * DeepSeekMath itself: $G=64$, learning rate 1e-6, $\beta$ = 0.04, one update per batch
#   ([arXiv 2402.03300](https://arxiv.org/abs/2402.03300), section 4.2).
# * Which $G$ trains best, with and without the division? Eight ways on one toy, and the memory that
#   the critic took, are on the [statements page](statements/08_grpo.ipynb).
# </details>

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | GRPO | |
# |---|---|
# | sentence | write G answers to one prompt; their mean is the baseline, their std the scale; the rest is PPO without a critic |
# | formula | $A_i=(R_i-\bar R)/\sigma_R$ · right $\sqrt{(1-p)/p}$, wrong $-\sqrt{p/(1-p)}$ |
# | silent | groups all right or all wrong; and PPO's clipped tokens |
# | picture | the share of groups that teach: an arch, 0 at both ends |
# | numbers | own reward in the mean: times (G − 1)/G · one right of sixteen: 3.87 · loss at the start, β = 0: 0 |
# | derived | minus the mean |
# | choices | $/\sigma_R$, $1/T_i$, clip, $k_3$ in the loss |

# %%
print("PPO -> GRPO\n" + str(difference(ZOO["ppo"], ZOO["grpo"])))
score("grpo.1", "grpo.2", "grpo.3", "grpo.4", "grpo.5")

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 10 minutes. Any rewards, not only 0 and 1. How large can an advantage be in a group
# of $G$? Return the bound for a tensor of sizes.
#
# <details><summary>hint</summary>Call yours x. The others sum to −x, and all squares together are G. When is their share of the squares smallest?</details>

# %% tags=["exercise"]
def my_bound(size):
    return ...

check.largest_advantage(my_bound)

# %% [markdown]
# **2 Implement** · 6 minutes. Many prompts at once: rewards come flat, `num_generations` rows to a
# prompt, one prompt after the other. Return flat z-scores.
#
# <details><summary>hint</summary>One prompt a line. What does torch.std divide by when you say nothing?</details>

# %% tags=["exercise"]
def my_group_advantages(rewards, num_generations):
    return ...

check.group_advantages(my_group_advantages)

# %% [markdown]
# **3 Find the silent bug** · 8 minutes. This function passes its test on the running group. It
# returns the right shape and no NaN:

# %%
print(check.silent_bug_grpo.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>One prompt cannot show it. What must be true inside every group?</details>

# %% tags=["exercise"]
def my_test(advantages):
    return ...

check.silent_bug_grpo(my_test)

# %% [markdown]
# **4 Make it survive** · 12 minutes. In a real batch the loss above takes one mean over several
# prompts, and dies of a row without a single token and of padding that holds NaN or infinity. A NaN
# under the mask must reach neither the value nor the gradient.
#
# <details><summary>hint</summary>A where after exp is too late for the gradient. What can you replace before?</details>

# %% tags=["exercise"]
def my_grpo_loss(logprobs, old_logprobs, ref_logprobs, mask, rewards,
                 num_generations, epsilon, beta):
    return ...

check.grpo_loss(my_grpo_loss)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>How does GRPO drop the critic, and what does it cost?</b></summary>
#
# It uses the mean reward of G answers to the same prompt as the baseline. That saves a second
# trained network. It costs G answers per prompt, gives one advantage to all tokens of an answer,
# needs a prompt that can be asked G times, and learns nothing from groups that are all right or all
# wrong.
# </details>
# <details><summary><b>What does dividing by the std do?</b></summary>
#
# It makes the rare side loud. A right answer gets √((1−p)/p), a wrong one −√(p/(1−p)). Inside a
# group only the length changes. Across groups the direction of the batch's gradient turns towards
# uneven groups, and near-equal rewards are blown up to size one.
# </details>
# <details><summary><b>Write the loss on the whiteboard.</b></summary>
#
# Minus the mean over answers of the mean over each answer's own tokens of min(ρA, clip(ρ, 1−ε,
# 1+ε)A) − β k3. A is the group's z-score, the same for all tokens of an answer; ρ is π over π_old
# per token; k3 is π_ref/π − 1 − log(π_ref/π). Say aloud: mask before exp, old log-probs carry no
# gradient.
# </details>
# <details><summary><b>The group's mean contains your own reward. Is the gradient biased?</b></summary>
#
# Only in length. R minus the mean is (G − 1)/G times R minus the mean of the others, and the others
# are a legal baseline. So the direction is exact, and a learning rate absorbs the factor. Dividing
# by the std is a choice, and so is the mean over each answer's own tokens.
# </details>
# <details><summary><b>My loss is 0 from the first step. Is it broken?</b></summary>
#
# No, if β is 0 and each answer is averaged over its own length. On a fresh batch every ratio is 1
# and the advantages of a group sum to zero; the gradient is not zero. Broken is a gradient norm of
# 0: all groups silent, or everything masked.
# </details>
#
# The other seven can wait for another evening.
#
# <details><summary><b>Dividing is not derived. Why do people do it?</b></summary>
#
# It removes the size of the reward. One learning rate then fits every grader, and tasks with
# different pay pull equally hard in one batch. The price: a tiny difference counts like right
# against wrong, and the batch leans towards uneven groups. Inside one group it only changes the
# length of the step.
# </details>
# <details><summary><b>Why not the mean of the whole batch?</b></summary>
#
# It suits no prompt. Its gradient is right on average, but on a hard prompt nearly every draw is a
# wrong answer with a large push. That noise can destroy the prompt before its right answers are
# seen. The group's own mean is, with some noise, what that prompt earns.
# </details>
# <details><summary><b>Why is the KL in the loss, and why k3?</b></summary>
#
# In the reward it would pass through the group's mean and std and end as one number per answer. k3
# is per token, never negative, and its mean is the KL from the policy to the reference. As a loss
# its gradient follows the other direction of the KL (05); near the reference the difference is
# small.
# </details>
# <details><summary><b>What is in memory for PPO, for GRPO, for GRPO with a verifier?</b></summary>
#
# In bytes per parameter, at 16 for a trained model and 2 for a frozen one. PPO: policy, critic,
# reward model, reference: 36. GRPO: no critic, 20. With a verifier: 18; without a reference: 16.
# Activations and the sampler come on top.
# </details>
# <details><summary><b>You recompute old_logp before every step. What breaks?</b></summary>
#
# The trust region. Every ratio is 1, so the clip never acts, however far the policy has left the
# one that sampled the batch. Nothing crashes: the gradient is still A times the score, and the
# value of the loss stays 0. Compute it once per batch, before the first step, and detach it.
# </details>
# <details><summary><b>Which group size?</b></summary>
#
# Start at 8 to 16, look at the share of silent groups, and tune the rate with it. One answer has
# nothing to be compared with. Two give ±1 whatever the gap. At a fixed number of answers a larger
# group costs prompts and finds no more right answers. In a toy on the statements page 4 to 32 ended
# level, each at its own learning rate; the start at 8 to 16 is custom.
# </details>
# <details><summary><b>When would you still take PPO with a critic?</b></summary>
#
# When credit inside the answer matters: long horizons, many turns, rewards on the way; or when a
# state cannot be visited G times.
# </details>
#
# The sentences that one hears about GRPO, true or not: [statements 08](statements/08_grpo.ipynb).
# The exercises, solved: [solutions 08](solutions/08_grpo.ipynb).
#
# **Next: 09.** What do the two divisors, $\sigma_R$ and $T_i$, do to easy prompts and long answers?
