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
# **After this page** you can write GRPO's loss from memory, and say which of its pieces are derived
# and which are choices.
#
# 37 minutes, then 11 in a second sitting · exercises 36 more · after 03 (baselines), 05 (KL), 06
# (PPO), 07 (critic) · DeepSeekMath, Shao et al. 2024,
# [arXiv 2402.03300](https://arxiv.org/abs/2402.03300); leave-one-out: Ahmadian et al. 2024,
# [arXiv 2402.14740](https://arxiv.org/abs/2402.14740)
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
from rlnb.classroom.explorers import group_size, one_group
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import grpo as pictures
from rlnb.objective import difference
from rlnb.toys import running_group
from rlnb.training.studies import group_noise
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: the prompts
P, K = 16, 20                              # prompts, possible answers
right = (torch.arange(K) < torch.arange(2, 18)[:, None]).double()
start = torch.randn(P, K, generator=torch.Generator().manual_seed(1))
rates = (1, 2, 4, 8, 16)

def share(pi):
    """The chance to be right, (..., P)."""
    return (pi * right).sum(-1)

before = share(start.softmax(1))
easy, hard = before.argmax(), before.argmin()

def kept(pi):
    """The easiest prompt's right answers with a chance above 1 %."""
    return ((pi * right)[..., easy, :] > 0.01).double().sum(-1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: train(rule, rate)
def train(rule, rate, low=0.0, n=200, G=4, steps=40):
    """One group of G answers to each of the 16 prompts, in every step.

    Wrong earns low, right earns low + 1. Returns the policy at the end,
    (n runs, P, K).
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
    return z.softmax(2)

def exactly(rate, steps=40):
    """The same with the mean push of all answers: no draws, no noise."""
    z = start.clone()
    for _ in range(steps):
        pi = z.softmax(1)
        z += rate * pi * (right - share(pi)[:, None])
    return z.softmax(1)

# %% [markdown]
# ## Must the answers belong to one prompt?
#
# PPO trains a second network, the critic, to say which reward to expect. GRPO asks the policy: it
# writes $G$ answers to one prompt, a **group**, and compares their rewards.
#
# Why *one* prompt? We try three rules on a toy. Sixteen prompts have twenty possible answers each,
# and the policy is a table of logits. A step draws four answers to every prompt, 64 in all. A right
# answer earns 1, a wrong one 0. A run is 40 steps at learning rate 16.

# %%
def no_baseline(R):                        # R: rewards (runs, 16, 4)
    return R

def batch_mean(R):                         # minus the mean of all 64
    return R - R.mean((1, 2), keepdim=True)

def group_mean(R):                         # minus the prompt's own mean
    return R - R.mean(-1, keepdim=True)

# %% jupyter={"source_hidden": true}
# 200 runs with each rule at five learning rates; printed: rate 16
rules = {"no baseline": no_baseline, "mean of the batch": batch_mean,
         "mean of the group": group_mean}
ends = {name: [train(rule, rate) for rate in rates]
        for name, rule in rules.items()}
print(f"chance to be right at the start {before.mean():.3f}")
print("after 40 steps")
for name, runs in ends.items():
    print(f"    {name:27s} {share(runs[-1]).mean():.3f}")
# %% [markdown]
# With rewards 0 and 1 no baseline ends highest. So why subtract anything?
#
# Look at the easiest prompt. Seventeen of its twenty answers are right, thirteen of them with a
# chance above 1 % at the start.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.1", "Without a baseline: how many of the easiest prompt's "
        "right answers have a chance above 1 % after 40 steps?",
        ["about 1", "about 4", "about 8", "about 11"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
none, own = (kept(ends[name][-1]).mean().item()
             for name in ("no baseline", "mean of the group"))
measured = ({k: [share(pi).mean(1) for pi in v] for k, v in ends.items()},
            {k: [kept(pi) for pi in runs] for k, runs in ends.items()})
at_start = (before.mean().item(), kept(start.softmax(1)).item())
noiseless = [kept(exactly(rate)).item() for rate in rates]
alike = (ends["no baseline"][1], ends["mean of the group"][2])  # 2 and 4
assert abs(share(alike[0]).mean() - share(alike[1]).mean()) < 0.01
assert [round(kept(pi).mean().item()) for pi in alike] == [5, 12]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.1", "about 1",
       f"{none:.2f}, the mean of 200 runs. Say all four draws are right: "
       "A was drawn three times, B once. All earn 1, so A rises most, and "
       "the next steps draw A more often still. That is the luck of four "
       "draws; the mean push, without luck, leaves eleven (grey). And an "
       "answer that has become rare is hardly drawn again. **With the "
       "group's mean, four right "
       f"answers get four zeros:** {own:.1f} stay.",
       pictures.two_measures(rates, *measured, noiseless, at_start, (
           "After 40 steps, mean of 200 runs. Right panel: how many right "
           "answers noise has cost. Grey: the mean push over all "
           "draws, so no noise. Left, at small rates: the group's mean is "
           "behind; its mean push is 3/4 as long (next section).")),
       instead={
           "about 4": "Fewer. 40 steps are enough for one to take all.",
           "about 8": "Close to what the group's mean keeps.",
           "about 11":
           "The mean push alone leaves 11. But a step has four draws.",
       })

# %% [markdown]
# So without a baseline the toy loses no reward. It loses the variety of its right answers. That is
# not the large rate alone: at rate 2, where it is right as often as the group's mean at rate 4, it
# has 5 answers left, and the group's mean 12.
#
# Now the two means. At rate 4 they are level; at 16 the batch's mean ended lower.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.2", "Rate 16: on which of the sixteen prompts does the "
        "batch's mean end with a lower chance to be right?",
        ["on all, a little: one number fits none of them",
         "on the hardest: wrong answers are pushed down hard",
         "on both ends: there the number is furthest off",
         "on the easiest: right answers are hardly pushed up"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
means = {"mean of the batch": ends["mean of the batch"][-1],
         "mean of the group": ends["mean of the group"][-1],
         "batch, 16 × the answers": train(batch_mean, 16, n=50, G=64)}
sunk = {name: (share(train(rules[name], 16, steps=5))[:, hard] < 0.01)
        .double().mean().item() for name in list(means)[:2]}
level = share(train(batch_mean, 16, steps=1)).mean().item()
assert sunk["mean of the group"] == 0

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.2", "on the hardest: wrong answers are pushed down hard",
       "Noise again. The other prompts are learned fast: after one step "
       f"the batch's mean is {level:.1f}. Four wrong answers to the "
       f"hardest prompt then get −{level:.1f} each. Most of what they lose "
       "goes to the commonest answer not drawn, nearly always a wrong one. "
       "The right ones shrink: after five steps they are below 0.01 in "
       f"{100 * sunk['mean of the batch']:.0f} % of the runs. With the "
       "group's mean four wrong answers get no push. **The prompt waits "
       "for its first right answer.**",
       pictures.prompt_by_prompt(before, {name: share(pi)
                                          for name, pi in means.items()}),
       instead={
           "on all, a little: one number fits none of them":
           "It fits none of them. But on fifteen of them the chance still "
           "ends near 1.",
           "on the easiest: right answers are hardly pushed up":
           "They are hardly pushed, and hardly need it.",
           "on both ends: there the number is furthest off":
           "It is far off at both. On the easy end nearly every answer is "
           "right already.",
       })

# %% [markdown]
# Both failures are noise: what a baseline that does not fit adds to a push is 0 in the mean, but
# not in a step. How much does it add? With rewards 0 and 1, a chance $p$ to be right and a baseline
# $b$, the mean squared advantage is $\mathbb E[(R-b)^2]=p(1-p)+(b-p)^2$:

# %% jupyter={"source_hidden": true}
# the two terms, for two wrong baselines
for name, x, b in (("easiest prompt, b = 0", easy, 0.0),
                   ("hardest prompt, b = 0.8", hard, 0.8)):
    p = before[x].item()
    print(f"{name:24s} {p * (1 - p):.2f} + {(b - p) ** 2:.2f}")

# %% [markdown]
# The second term is the misfit. **The baseline that fits a prompt is what this prompt usually
# earns.** A critic learns that number, a group measures it.

# %% [markdown]
# ## Is that allowed?
#
# A baseline must not depend on the answer itself, and the group's mean contains the answer's own
# reward. So first take the mean of the *others*. The $G$ answers $y_i$ to a prompt are drawn
# independently, $R_i$ is the reward of $y_i$, and $\bar R$ is the mean of all $G$ rewards.
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
# Line 4 with rewards 1, 0, 0, 0: the right answer is 1 above the mean of the others, and 3/4 above
# the mean of all. **Your own reward in the mean shortens the push and does not turn it.**
#
# Line 3 is its own method, **RLOO** (leave one out). Line 6 is **GRPO**, with
# $\sigma_R^2=\frac1G\sum_j(R_j-\bar R)^2$. Is it still the gradient of $J$? No, for two reasons:
#
# * $\sigma_R$ contains $R_i$, so line 2 does not cover it. With rewards 0 and 1 the mean push on
#   *one* prompt keeps its direction, because only two advantages occur. With graded rewards it can
#   turn (03: the poor answer went up).
# * Each prompt has a $\sigma_R$ of its own. In large groups one that is right half of the time gets
#   its gradient times 2, one that is right once in fifty times 7. The sum over prompts is the
#   gradient of something else (09 says of what). <!-- cited: 7 -->

# %% [markdown]
# ## What does dividing do?
#
# GRPO's advantage is $A_i=(R_i-\bar R)/\sigma_R$. If a share $p$ of the group is right, then
# $\bar R=p$ and $\sigma_R=\sqrt{p(1-p)}$. A right answer gets $\sqrt{(1-p)/p}$, a wrong one
# $-\sqrt{p/(1-p)}$. With eight of sixteen right that is +1 and −1. And with one?

# %%
def zscore(R):
    std = R.std(-1, correction=0, keepdim=True)      # divide by G
    return group_mean(R) / (std + 1e-6)              # never 0 / 0

lone = torch.tensor([1.0] + [0.0] * 15)              # one of sixteen
for pay in (1, 0.1):
    print(f"paid {pay}: {zscore(pay * lone)[0]:.2f}")

# %% jupyter={"source_hidden": true}
# the picture
pictures.advantages_by_rate()

# %% [markdown]
# The size of the reward has dropped out. So a learning rate that suits one grader suits another
# that pays a tenth. (Adam, too, hides a factor that all prompts share, but not one that differs
# from prompt to prompt.) Does it train differently? The toy again:

# %% jupyter={"source_hidden": true}
# the toy with GRPO's advantage, folded
def paid(rule):                    # every second prompt pays a tenth
    tenth = torch.where(torch.arange(P) % 2 == 0, 1.0, 0.1)
    return lambda R: rule(R * tenth[:, None])

print("                     rate   right   answers left")
for name, rule, rate in (("mean of the group", group_mean, 8),
                         ("divided by the std", zscore, 4)):
    pi = train(rule, rate)
    print(f"{name:20s} {rate:4d}   {share(pi).mean():.3f}   "
          f"{kept(pi).mean():8.1f}")
print("every second prompt pays a tenth: right where 1 is paid, and 0.1")
for name, rule in (("mean of the group", group_mean),
                   ("divided by the std", zscore)):
    rate = 4 if rule is group_mean else 2
    s = share(train(paid(rule), rate)).mean(0)
    print(f"{name:20s} {rate:4d}   {s[::2].mean():.3f}   "
          f"{s[1::2].mean():.3f}")

# %% [markdown]
# **With one scale of reward the division here is a larger step on the same way. With several scales
# it lets all prompts learn at one pace,** where otherwise those that pay a tenth are ten times
# slower. What is the price? In the explorer you set the reward of one answer. The others earn 1
# (right, blue) or 0 (wrong, orange).

# %% jupyter={"source_hidden": true}
# the explorer
task("grpo.t1", one_group.one_group_explorer(),
     ("How many answers must a group have, before yours can get more than "
      "3 after the division? Say a number, then show the smallest group.",
      one_group.loud),
     ("Your answer is nearly perfect and earns 0.9. What must the others "
      "be, for it to get less than −2.5 after the division?",
      one_group.nearly_right_and_sunk))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Eleven, and all the others alike. The most that $G$ answers allow is $\sqrt{G-1}$ (exercise 1).
#    Any reward will do for yours: 0.1 among zeros is as loud as 1.
# 2. All right, seven or more of them. Yours is 0.09 below the mean. <!-- cited: 0.09, -2.65 -->
#    Divided that is −2.65, what a complete failure would get.
# </details>
#
# **Dividing is a choice. In a group with two different rewards it keeps how many earned each, and
# forgets how far apart they are.**

# %% [markdown]
# ## When does a group teach?
#
# If all rewards of a group are equal, every advantage is 0: the group is **silent**. It adds no
# noise, but it costs $G$ answers and teaches nothing. At a chance $p$ to be right, a group teaches
# with chance $1-p^G-(1-p)^G$:

# %% jupyter={"source_hidden": true}
# the share of groups that teach
pictures.mixed_groups()

# %% [markdown]
# At the left edge a larger group teaches far more often. Spend 128 answers on a prompt that is
# right once in fifty.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.4", "16 groups of 8, or 2 groups of 64: in which do more "
        "right answers get an advantage above 0, in expectation?",
        ["2 of 64: a far larger share of them teaches",
         "16 of 8: there are more groups that can teach",
         "equally many: both draw 128 answers"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed: share of groups that teach, right answers heard
p = 0.02
teach = {G: 1 - p**G - (1 - p)**G for G in (8, 64)}
heard = {G: 128 * p * (1 - p**(G - 1)) for G in (8, 64)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.4", "equally many: both draw 128 answers",
       f"In both it is {heard[8]:.2f}. A right answer gets 0 only if its "
       "whole group is right, which hardly happens here. Of "
       f"the groups of 8 {100 * teach[8]:.0f} % teach, of those of 64 "
       f"{100 * teach[64]:.0f} %, but there are eight times fewer of them. "
       "**For the same answers a larger group finds no more right ones. It "
       "puts more wrong ones beside each.** Divided, a lone right answer "
       f"then gets {63 ** 0.5:.2f} in place of {7 ** 0.5:.2f}.",
       instead={
           "2 of 64: a far larger share of them teaches":
           "The share is larger, but the number of groups is far "
           "smaller.",
           "16 of 8: there are more groups that can teach":
           "There are more groups, but most of them are silent.",
       })

# %% [markdown]
# **A group of equal rewards is silent.** (A KL term still pulls.) When training makes prompts easy,
# more groups fall silent; page 11 draws others in their place.

# %% [markdown]
# ## What is optimised in the end?
#
# GRPO puts $A_i$ into PPO's clip (06), the same for every token of answer $i$. It subtracts $k_3$,
# the KL to the reference per token (05). It averages each answer over its own $T_i$ tokens, and
# then over the answers:
#
# $$L=-\frac1G\sum_i\frac1{T_i}\sum_t\Big[\min\big(\rho_{i,t}A_i,\ \mathrm{clip}(\rho_{i,t},1-\epsilon,1+\epsilon)A_i\big)-\beta\,k_{3,i,t}\Big]$$
#
# Only $-\bar R$ was derived. The rest are choices:
#
# * $\sigma_R$: one learning rate for graders of any scale.
# * $1/T_i$: a long answer counts like a short one (the price: 09).
# * The clip: several steps on one batch (06).
# * $k_3$ in the loss: in the reward, $\sigma_R$ would rescale it. In an all-right group, small KL
#   differences would become advantages of size one, whatever β is.

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

# %% jupyter={"source_hidden": true}
# compared with this course's library on four answers, rewards 1 1 0 0
batch = running_group()
mine = grpo_loss(batch.logprobs, batch.old_logprobs, batch.ref_logprobs,
                 batch.mask, batch.rewards)
print(f"mine {mine:.6f}, rlnb's {ZOO['grpo'](batch).loss:.6f}")

# %% [markdown]
# Now train: the first step on a fresh batch, so all ratios are 1. Set $\beta=0$.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.5", "Two right and two wrong answers of different lengths: "
        "what are the value of the loss and its gradient?",
        ["0, and the gradient is 0",
         "−1, and the gradient is not 0",
         "set by the lengths, and the gradient is not 0",
         "0, and the gradient is not 0"])

# %%
fresh = batch.logprobs.detach().requires_grad_()
first = grpo_loss(fresh, fresh, batch.ref_logprobs, batch.mask,
                  batch.rewards, beta=0.0)
slope, = torch.autograd.grad(first, fresh)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.5", "0, and the gradient is not 0",
       f"The value is {abs(first.item()):.4f}, the norm of the gradient "
       f"{slope.norm():.4f}. Averaged over its own tokens, each answer "
       "contributes its advantage, and a group's advantages sum to 0. So "
       "watch the mean reward, the share of silent groups and the "
       "gradient's norm instead.\n\n**A trap:** is the value still exactly "
       "0 at the *second* step on that batch? Then see whether `old_logp` "
       "is computed anew at every step. If so, the ratios stay 1 and the "
       "clip never acts.",
       instead={
           "−1, and the gradient is not 0":
           "Right and wrong answers stand in it with opposite signs.",
           "0, and the gradient is 0":
           "Advantages that sum to 0 still push single answers up and "
           "down.",
           "set by the lengths, and the gradient is not 0":
           "Each answer is averaged over its own length first.",
       })

# %% [markdown]
# <details><summary>One level deeper: the loop</summary>
#
# ```python
# for prompt in data:                                  # one group a step
#     answers, mask = sample(policy, prompt, G)
#     R = grade(answers)                               # a verifier
#     old_logp = logp_of(policy, answers).detach()     # once per batch
#     ref_logp = logp_of(reference, answers).detach()  # a frozen copy
#     for _ in range(steps_per_batch):
#         loss = grpo_loss(logp_of(policy, answers), old_logp, ref_logp, mask, R)
#         step(loss)
# ```
# </details>
#
# <details><summary>One level deeper: what papers and libraries do</summary>
#
# * The paper says "std". In TRL and verl it has $G-1$ under the root: all advantages shrink by
#   $\sqrt{(G-1)/G}$.
# * TRL's default loss is no longer "grpo" (pages 10 and 11), and its β is 0.
# * TRL uses a batch for one step by default, and so did DeepSeekMath (section 4.2): the clip
#   then never acts.
# * "GRPO" alone means one reward for the whole answer. In the paper's other form, process
#   supervision, a token gets the sum of the normalised rewards of the steps from there on.
# </details>

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | GRPO | |
# |---|---|
# | sentence | write G answers to one prompt; their mean is the baseline, their std the scale; then PPO's clip, without a critic |
# | formula | $A_i=(R_i-\bar R)/\sigma_R$ · right $\sqrt{(1-p)/p}$, wrong $-\sqrt{p/(1-p)}$ |
# | why the prompt's own mean | $\mathbb E[(R-b)^2]=p(1-p)+(b-p)^2$: a misfit is noise |
# | own reward in the mean | times $(G-1)/G$, no turn |
# | silent groups | all right or all wrong |
# | numbers | one right of sixteen: 3.87 · first loss, β = 0: 0 |
# | derived, chosen | minus the mean · $/\sigma_R$, $1/T_i$, clip, $k_3$ in the loss |

# %%
print("PPO -> GRPO\n" + str(difference(ZOO["ppo"], ZOO["grpo"])))
score("grpo.1", "grpo.2", "grpo.4", "grpo.5")

# %% [markdown]
# ## Second sitting: how large a group?
#
# A step can afford $N$ answers. Larger groups find no more right ones. What else do they change?
# The step sees fewer prompts, and each baseline is a mean of more answers.
#
# We measured the noise of a step: its mean squared distance from the mean gradient. The model is a
# small transformer (0.3 million weights, sums with a verifier, before any training with rewards).
# The baseline is the mean of the others, and nothing is divided.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.6", "The same number of answers a step: which group size "
        "gives the least noise?", ["2", "4", "16", "32"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
tables = [group_noise.noise(one) for one in group_noise.shipped()]
mean = torch.tensor(tables).mean(0)
beside = dict(zip(group_noise.SIZES, (mean / mean[1]).tolist()))
assert all(1.2 < row[3] / row[1] and 1.9 < row[4] / row[1]
           and row[0] > 1.1 * row[1] for row in tables)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.6", "4",
       "Groups of 2 have "
       f"{beside[2]:.1f} times the noise of groups of 4, groups of 8 "
       f"{beside[8]:.1f} times, of 16 {beside[16]:.1f} times and of 32 "
       f"{beside[32]:.1f} times. (Three seeds with 512 prompts each.)",
       instead={
           "2": "Most prompts, but the baseline is a single other answer.",
           "16": "A better baseline, but a quarter of the prompts.",
           "32": "The best baseline. But 64 answers are then two prompts.",
       })

# %% [markdown]
# Why so small? Let $\tau^2$ be the mean squared distance of a single prompt's gradient from the
# mean over prompts. Within a prompt, let the noise per answer be $v$ with the exact mean reward as
# the baseline, and $v+c$ in groups of two.
#
# $$\begin{aligned}
# N\,\mathrm{Var}&=G\cdot\mathrm{Var}(\text{one group's gradient})&&N/G\text{ prompts, drawn independently}\\
# &=G\,\tau^2+G\cdot(\text{noise within a group})&&\text{law of total variance}\\
# &=G\,\tau^2+v+\tfrac c{G-1}&&\text{a mean of }G\text{ answers; a baseline of }G-1\text{ others (03)}\\
# 0&=\tau^2-\tfrac c{(G-1)^2}\quad\Longrightarrow\quad G=1+\sqrt c/\tau&&\text{slope in }G\text{: 0 at the bottom}
# \end{aligned}$$

# %% jupyter={"source_hidden": true}
# the best size, in the toy by counting and in the transformer as measured
pi = start.softmax(1)
g = pi * (right - before[:, None])                   # (P, K)
square = (pi * (1 - 2 * pi + (pi**2).sum(1, keepdim=True))).sum(1)
c = (before * (1 - before) * square + (g**2).sum(1)).mean()
tau2 = (g**2).sum(1).mean() * (1 - 1 / P)            # own logits each
best = [group_noise.best_size(one) for one in group_noise.shipped()]
print(f"best G, toy, prompts drawn at random: {1 + (c / tau2).sqrt():.1f}")
print("best G, transformer, three seeds:", *(f"{x:.1f}" for x in best))

# %% [markdown]
# What if answers are noisier than that? In the explorer $v=c$, and the slider counts both in units
# of $\tau^2$.

# %% jupyter={"source_hidden": true}
# the explorer
task("grpo.t2", group_size.group_size_explorer(),
     ("At noise 16 the best G is 5. Answers become four times as noisy, "
      "64. Say the new best G before you move. Then show it.",
      group_size.best_at_64))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Nine, not twenty. $G-1$ grows with the root of the noise, from 4 to 8. And the bottom is flat:
# from 6 to 14 the noise is within 3 % of the least.
# </details>
#
# **In this count a larger group pays until its baseline is good enough. After that, more prompts
# pay better.** Where this stops:
#
# * Less noise need not train better (03). In the toy on the
#   [statements page](statements/08_grpo.ipynb), with a grader that errs, G = 4 to 32 ended level,
#   each at its own best rate.
# * Nothing was divided here. Divided, a lone answer's advantage grows with the group, up to
#   $\sqrt{G-1}$.
# * A large model may have another $c/\tau^2$. DeepSeekMath took 64, TRL's default is 8.

# %%
score("grpo.6")

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
# <!-- cited: 0.9 -->
# A minute each, aloud, then unfold.
#
# <details><summary><b>How does GRPO drop the critic, and what does it cost?</b></summary>
#
# It takes the mean reward of G answers to the same prompt as the baseline. So no second network is
# trained, which saves 16 bytes a parameter. The price: prompts must be asked G times, all tokens of
# an answer share one advantage, and groups all right or all wrong give no signal. With rewards on
# the way a critic can pay.
# </details>
# <details><summary><b>My verifier pays 0 or 1. Why subtract anything?</b></summary>
#
# For the mean reward you may not have to: in this page's toy and in a small transformer
# ([statements](statements/08_grpo.ipynb)) no baseline does at least as well. But then solved
# prompts are pushed at full strength too. In the toy that noise leaves 1 of 13 right answers; with
# the group's mean 7 stay. With one right answer per prompt there is no variety to lose.
# </details>
# <details><summary><b>What does dividing by the std do?</b></summary>
#
# It removes the size of the reward. One right of sixteen gets 3.87, paid 1 or 0.1: with two
# different rewards only their counts matter. So one learning rate fits graders of any scale. The
# price: 0.9 among ones is punished like a complete failure. A drawn group's push only changes its
# length; the mean push over groups can turn (03, 09).
# </details>
# <details><summary><b>Write the loss on the whiteboard.</b></summary>
#
# It is minus the mean over answers of each answer's token mean of min(ρA, clip(ρ, 1−ε, 1+ε)A) − β
# k3. A is the reward's z-score in its group, the same for all tokens; ρ is π over π_old per token;
# k3 is π_ref/π − 1 − log(π_ref/π). Old log-probs carry no gradient. Padding is replaced before any
# exp (exercise 4).
# </details>
# <details><summary><b>The group's mean contains your own reward. Is the gradient biased?</b></summary>
#
# Only in length. R minus the mean is (G − 1)/G times R minus the mean of the others, and the others
# are a legal baseline. With one group size a learning rate absorbs the factor. The std is another
# matter: divided by it, the mean push is in general no longer the gradient of the reward, and 1/T
# changes it too (09).
# </details>
# <details><summary><b>My loss is 0 from the first step. Is it broken?</b></summary>
#
# No, if each answer is averaged over its own length. On a fresh batch every ratio is 1 and a
# group's advantages sum to 0; the gradient need not be 0. (A KL term is 0 at the very first step,
# and only there.) Be alarmed by a gradient norm of 0 (all silent, or all masked), or by a value
# that stays exactly 0 at later steps on one batch (is old_logp recomputed?).
# </details>
# <details><summary><b>Which group size?</b></summary>
#
# Large enough for a usable baseline, small enough for many prompts. At N answers a step the
# variance is (Gτ² + v + c/(G−1))/N, least at G = 1 + √c/τ: 4 to 5 in a small transformer. Larger
# groups find no more right answers. Your c/τ² may differ: watch the share of silent groups, and
# tune the rate with G.
# </details>
#
# The sentences that one hears about GRPO, true or not: [statements 08](statements/08_grpo.ipynb).
# The exercises, solved: [solutions 08](solutions/08_grpo.ipynb).
#
# **Next: 09.** What do the two divisors, $\sigma_R$ and $T_i$, do to easy prompts and long answers?
