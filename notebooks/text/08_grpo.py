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
# memory, and say which of its pieces are derived and which are choices.
#
# 48 minutes, exercises 36 more · after 03 (baselines), 05 (KL), 06 (PPO), 07 (critic) ·
# DeepSeekMath, Shao et al. 2024, [arXiv 2402.03300](https://arxiv.org/abs/2402.03300);
# leave-one-out: Ahmadian et al. 2024, [arXiv 2402.14740](https://arxiv.org/abs/2402.14740)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What may you subtract from the reward without changing the expected gradient?</summary>Any number that does not depend on the answer itself (03).</details>
# <details><summary>2. Where did PPO get that number, and what did it cost?</summary>From a critic: a second network, trained beside the policy (07).</details>
# <details><summary>3. Which tokens does PPO's clip silence?</summary>Good ones above 1 + ε and bad ones below 1 − ε (06).</details>

# %% tags=["setup"]
from itertools import product
from math import comb
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
rates = (1, 2, 4, 8, 16)

def sweep(rule, low=0.0, G=4, rates=rates):
    """Mean chance over the prompts, (rates, seeds)."""
    return torch.stack([train(rule, rate, low, G=G).mean(1)
                        for rate in rates])

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: train(rule, rate)
def train(rule, rate, low=0.0, n=200, G=4, steps=40):
    """64 answers a step in groups of G, each to a prompt of its own.

    Wrong earns low, right earns low + 1. Returns the chance to be right
    on each prompt at the end, (n seeds, P).
    """
    dice, order = (torch.Generator().manual_seed(k) for k in (0, 2))
    z = start.repeat(n, 1, 1)
    for _ in range(steps):
        seen = torch.rand(n, P, generator=order).argsort(1)[:, :64 // G]
        seen = seen.sort(1).values[:, :, None].expand(-1, -1, K)
        pi = z.gather(1, seen).softmax(2)                # (n, 64 / G, K)
        y = pi.reshape(-1, K).multinomial(G, True, generator=dice)
        y = y.view(n, -1, G)
        good = right.expand(n, P, K).gather(1, seen).gather(2, y)
        A = rule(low + good)
        push = torch.zeros_like(pi).scatter_add(2, y, A)
        push -= A.sum(2, keepdim=True) * pi
        z.scatter_add_(1, seen, rate / G * push)
    return (z.softmax(2) * right).sum(2)

# %% [markdown]
# ## Ask the prompt, not a critic
#
# PPO asks a critic what to expect of a prompt. GRPO writes $G$ answers to it and takes the mean of
# their rewards: $A_i=R_i-\bar R$.

# %%
pipeline.pipeline("answers", "advantages", caption=(
    "G answers instead of one, and advantages from comparing them. "
    "The critic of page 07 is gone."))

# %% [markdown]
# Why so many answers? Perhaps no baseline will do, or one number for all prompts. A toy: sixteen
# prompts, from hard to easy, twenty possible answers each. A step is 64 answers, four to every
# prompt; training is 40 steps. Right earns 1, wrong 0, and the advantage is just the reward:

# %%
def no_baseline(R):
    return R

plain = sweep(no_baseline)
print(f"start: {before.min():.2f} on the hardest prompt, "
      f"{before.max():.2f} on the easiest, mean {before.mean():.2f}")
print(f"end, no baseline: mean {plain[-1].mean():.3f} at rate 16")

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.1", "Another grader pays 1 for a wrong answer and 2 for a "
        "right one. The same seeds at rate 16: where do they end?",
        ["about 1.0: a constant drops out", "about 0.95", "about 0.8",
         "about 0.54, where they started"])

# %%
shifted = sweep(no_baseline, low=1.0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.1", "about 0.8",
       f"{shifted[-1].mean():.2f}. And no rate of the five repairs it: "
       f"the best is {shifted.mean(1).max():.2f}. A constant drops out of "
       "the expected gradient (03), not out of the noise. So the first run "
       "had a baseline after all: zero.",
       pictures.rate_sweep(rates, {
           "rewards 0 and 1": {"no baseline": plain},
           "rewards 1 and 2": {"no baseline": shifted}},
           before.mean().item(), (
           "No baseline, two graders that differ by a constant. 200 seeds, "
           "bars: two standard errors.")),
       instead={
           "about 1.0: a constant drops out":
           "From the mean push. A step is not the mean push.",
           "about 0.95":
           "At this rate the noise costs more than that.",
           "about 0.54, where they started":
           "It does learn.",
       })

# %% [markdown]
# Two candidates ignore such a constant and cost nothing extra, the answers are there: the mean of
# the whole batch, 64 rewards, and the mean of the prompt's own group, 4 rewards. Rewards 1 and 2
# again:

# %%
def batch_mean(R):
    return R - R.mean((1, 2), keepdim=True)

def group_mean(R):
    return R - R.mean(-1, keepdim=True)

ends = {}
for name, rule in (("mean of the batch", batch_mean),
                   ("mean of the group", group_mean)):
    ends[name] = train(rule, 16, 1.0)
    print(f"{name}: {ends[name].mean():.3f} at rate 16, at the best of "
          f"five {sweep(rule, 1.0).mean(1).max():.3f}")
pictures.prompt_by_prompt(before, ends)

# %% [markdown]
# In this world four rewards of the prompt itself beat sixty-four of all prompts, because of one
# prompt of sixteen. Now put a fixed number $b$ in the place of the mean, rewards 0 and 1, rate 16,
# and look at the hardest prompt alone. At the start one answer in 25 to it is right.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.2", "Which b fail this prompt?",
        ["those far above its rate: right answers are hardly pushed",
         "those far below its rate: wrong answers are pushed up too",
         "both kinds",
         "neither: a fixed number adds no noise of its own"])

# %%
hard = before.argmin()
fixed = {b: train(lambda R: R - b, 16)[:, hard].mean().item()
         for b in (-1, -0.5, -0.25, 0, 0.04, 0.25, 0.5, 0.9)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.2", "both kinds",
       "The advantage of a right answer is 1 − b, of a wrong one −b. Zero "
       "happens to be near this prompt's rate, 0.04. So a 0/1 verifier "
       "gets away without a baseline, here and on a recorded network "
       "([statements](statements/08_grpo.ipynb)). A grader whose zero "
       "lies far from its rewards does not.",
       pictures.fixed_numbers(fixed, before[hard].item(), 0.04),
       instead={
           "those far above its rate: right answers are hardly pushed":
           "They do. And on the other side?",
           "those far below its rate: wrong answers are pushed up too":
           "They are. And on the other side?",
           "neither: a fixed number adds no noise of its own":
           "It adds none of its own; it multiplies the score's.",
       })

# %% [markdown]
# **Do not ask "was it good?" but "was it good for this prompt?"** A critic learns what the prompt
# usually earns. The group measures it: $G$ answers, no second network.

# %% [markdown]
# ## Is that allowed?
#
# The recall said: the baseline must not depend on the answer. The group's mean contains the
# answer's own reward. Take the smallest case. Three possible answers, groups of two,
# $A_i=R_i-\bar R$.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.3", "The expected gradient with the group's mean, G = 2, "
        "against the true one:",
        ["the same direction, the same length",
         "the same direction, half as long",
         "the same direction, twice as long",
         "another direction"])

# %%
pi3, R3 = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.0, 1.0])

def mean_push(rule, G):
    """Expected gradient on the logits, exact: all 3^G groups."""
    total = torch.zeros(3)
    for y in product(range(3), repeat=G):
        y = torch.tensor(y)
        A = rule(R3[y])
        push = torch.zeros(3).scatter_add(0, y, A) - A.sum() * pi3
        total += pi3[y].prod() * push / G
    return total

# %%
def others(R):
    """Reward minus the mean of the other G - 1."""
    return R - (R.sum(-1, keepdim=True) - R) / (R.shape[-1] - 1)

truth = pi3 * (R3 - pi3 @ R3)                        # page 02
pushes = {"the others, G = 2": mean_push(others, 2).tolist()} | {
    f"group's mean, G = {G}": mean_push(group_mean, G).tolist()
    for G in (2, 4, 8)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.3", "the same direction, half as long",
       "Your own reward pulls the baseline towards itself and takes 1/G of "
       "the push away.", pictures.mean_pushes(truth.tolist(), pushes),
       instead={
           "the same direction, the same length":
           "Your own reward is in the mean.",
           "the same direction, twice as long":
           "The own reward pulls the baseline closer, not further away.",
           "another direction":
           "No: leave-one-out is right, and this is it times (G−1)/G.",
       })

# %% [markdown]
# ## Derive it
#
# Answers $y_1,\dots,y_G$ to one prompt are drawn independently. $R_i$ is the reward of $y_i$,
# $\bar R$ the mean of all $G$.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E\big[R_i\,\nabla\log\pi(y_i)\big]&&\text{log-derivative (02)}\\
# 0&=\mathbb E[R_j]\;\mathbb E[\nabla\log\pi(y_i)]=\mathbb E\big[R_j\,\nabla\log\pi(y_i)\big]&&j\ne i\text{: the score has mean 0; drawn independently}\\
# \nabla J&=\mathbb E\Big[\Big(R_i-\tfrac1{G-1}\textstyle\sum_{j\ne i}R_j\Big)\nabla\log\pi(y_i)\Big]&&\text{first line minus the mean of the second over }j\\
# &=\tfrac{G}{G-1}\,\mathbb E\big[(R_i-\bar R)\,\nabla\log\pi(y_i)\big]&&\text{algebra: the bracket is }\tfrac G{G-1}(R_i-\bar R)\\
# &=\tfrac{G}{G-1}\,\mathbb E\Big[\tfrac1G\textstyle\sum_i(R_i-\bar R)\,\nabla\log\pi(y_i)\Big]&&\text{average over the }G\text{ answers}\\
# &\;\to\;\mathbb E\Big[\tfrac1G\textstyle\sum_i(R_i-\bar R)\,\nabla\log\pi(y_i)\Big]&&\text{drop one factor: a learning rate absorbs it}\\
# &\;\to\;\mathbb E\Big[\tfrac1G\textstyle\sum_i\dfrac{R_i-\bar R}{\sigma_R}\,\nabla\log\pi(y_i)\Big]&&\textbf{a choice: divide by the group's std }\sigma_R
# \end{aligned}$$
#
# The third line has a name, **RLOO**, leave one out. The last is not the gradient of $J$. It is
# GRPO's choice:
#
# $$A_i=\frac{R_i-\bar R}{\sigma_R},\qquad\sigma_R=\sqrt{\tfrac1G\textstyle\sum_j(R_j-\bar R)^2}$$
#
# In code a small number, here $10^{-6}$, is added to $\sigma_R$.
#
# ## What does dividing do?
#
# Sixteen answers. In one group eight are right. There every advantage is $\pm1$. In another a
# single one is right.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.4", "What advantage does the single right answer get?",
        ["1: the std sets the scale", "a little under 2",
         "a little under 4", "15: one against fifteen"])

# %%
def zscore(R):
    std = R.std(-1, correction=0, keepdim=True)      # divide by G
    return group_mean(R) / (std + 1e-6)

lone = zscore(torch.tensor([1.0] + [0.0] * 15))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.4", "a little under 4",
       f"{lone[0]:.2f}, and each of the fifteen wrong ones "
       f"−{-lone[1]:.2f}. By hand: with a share $p$ of right answers "
       r"$\bar R=p$ and $\sigma_R=\sqrt{p(1-p)}$, so a right answer gets "
       r"$(1-p)/\sigma_R=\sqrt{(1-p)/p}$ and a wrong one "
       r"$-p/\sigma_R=-\sqrt{p/(1-p)}$.", pictures.advantages_by_rate(),
       instead={
           "1: the std sets the scale":
           "The std sets it to 1 only when half are right.",
           "a little under 2":
           "That is about right for one of four or five.",
           "15: one against fifteen":
           "One against fifteen, and then the root.",
       })

# %%
task("grpo.t1", one_group.one_group_explorer(),
     ("Give a right answer an advantage above 3 after the division, in the "
      "smallest group that can have one. Try eight first.", one_group.loud),
     ("Left below 0.1, right above 1.5, for a right answer. What does that "
      "say about the size of a reward?", one_group.pay_does_not_matter))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Eleven answers, one right. With eight no setting reaches 3; exercise 1 asks why.
# 2. Less than 4 in 13 right (1 of 4 will do), paid 0.10 or less. The mean alone shrinks with the
#    pay, the z-score does not notice. A difference of 0.05 in a reward model is shouted as loudly
#    as right against wrong. Page 09 follows that up.
# </details>
#
# Inside one group the std is a common factor: the direction stays. A batch has many groups, and
# each has its own. Then the direction changes:

# %%
two = [torch.tensor([1.0] * k + [0.0] * (16 - k)) for k in (8, 1)]
pictures.two_prompts({
    name: [rule(R)[R > 0].sum().item() for R in two]
    for name, rule in (("minus the mean", group_mean),
                       ("divided by the std", zscore))})

# %% [markdown]
# ## Groups that say nothing
#
# All right or all wrong: every reward equals the mean, every advantage is 0. Such a group is
# **silent**. It cost $G$ answers and teaches nothing. With a chance $p$ to be right the share that
# teaches is $1-p^G-(1-p)^G$:

# %%
pictures.mixed_groups()

# %% [markdown]
# So hard prompts seem to call for large groups. Take a prompt that is answered right once in fifty,
# and 128 answers to spend. Count the right answers whose advantage is above 0, however large it is.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.5", "16 groups of 8, or 2 groups of 64: which pushes more "
        "right answers up, in expectation?",
        ["2 of 64: far more of them teach",
         "16 of 8: more groups to teach", "equally many"])

# %%
cuts = {G: mixed_groups.compute(G, 0.02) for G in (8, 64)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def pull(G, rule, p=0.02):
    """Expected sum of the positive advantages of 128 answers."""
    total = 0.0
    for k in range(1, G):
        A = rule(torch.tensor([1.0] * k + [0.0] * (G - k)))
        total += comb(G, k) * p**k * (1 - p)**(G - k) * k * A[0].item()
    return 128 // G * total

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.5", "equally many",
       " ".join(f"{d['groups']} groups of {G}: {100 * d['share']:.0f} % of "
                f"them teach, {d['right']:.2f} right answers are pushed up."
                for G, d in cuts.items())
       + " A larger group finds no more right answers, it only puts more "
       "wrong ones beside each. **Equal in number, not in force:** their "
       "advantages sum to " + " and ".join(
           f"{pull(8, rule):.2f} (G = 8), {pull(64, rule):.2f} (G = 64) "
           f"{name}" for name, rule in (("minus the mean", group_mean),
                                        ("after the division", zscore)))
       + ": the std makes the lone one loud.",
       instead={
           "2 of 64: far more of them teach":
           "More of its groups teach, and there are eight times fewer "
           "groups.",
           "16 of 8: more groups to teach":
           "More groups, and many of them silent.",
       })

# %% [markdown]
# Easy prompts fall silent too:

# %%
task("grpo.t2", mixed_groups.mixed_groups_explorer(),
     ("A pass rate above one half, G at least 8, and fewer than half of "
      "the right answers are pushed.", mixed_groups.easy_loses_right))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# G = 8 at 0.95, for example. On an easy prompt the right answers have nothing to be compared with.
# In a long run prompts become easy, and more and more of the batch falls silent. Page 11 (DAPO)
# throws such groups away and draws again.
# </details>
#
# ## Which G? And does dividing help?
#
# Train it. 64 answers a step as before: 16 prompts with 4 answers each, or 8 with 8, or 4 with 16,
# or 2 with 32. The grader errs one time in five, so that too large a rate hurts.

# %%
def careless(rule):
    """`rule` under a grader that turns a fifth of the rewards round."""
    dice = torch.Generator().manual_seed(1)
    def graded(R):
        errs = torch.rand(R.shape, generator=dice) < 0.2
        return rule(torch.where(errs, 1 - R, R))
    return graded

# %%
many, trained = (2, 4, 8, 16, 32, 64, 128), {}
for name, rule in (("minus the mean", group_mean),
                   ("divided by the std", zscore)):
    trained[name] = {f"G = {G}": sweep(careless(rule), G=G, rates=many)
                     for G in (4, 8, 16, 32)}
    for size, runs in trained[name].items():
        k = runs.mean(1).argmax()
        error = runs[k].std() / len(runs[k]) ** 0.5
        print(f"{name:18s} {size:6s} best rate {many[k]:2d}: "
              f"{runs[k].mean():.3f} +- {error:.4f}")
pictures.rate_sweep(many, trained, before.mean().item(), (
    "Eight ways to spend the same answers, and one height. What moves is "
    "the rate at which it is reached. 200 seeds."))

# %% [markdown]
# Each at its own best rate, all eight end within 0.01 of each other (after +-: one standard error).
# With the mean alone twice the group wants twice the rate; a prompt then comes up half as often.
# The std wants a smaller one: all it buys here is a larger step. In this toy prompts share nothing,
# so it does not tell which $G$ is best for a network. It tells that a comparison at one rate
# compares rates.
#
# ## Sixteen tokens
#
# The running group: rewards 1, 1, 0, 0, and the batch has been used for some steps (06). Three
# steps to GRPO, one change each, and the push before anything is averaged:

# %%
batch = running_group()
ratio = (batch.logprobs - batch.old_logprobs).exp()         # (4, 6)

def push(per_answer, epsilon=None):
    """Slope in log pi of ρA, or with epsilon of PPO's clip and min."""
    A = per_answer[:, None].expand_as(ratio)
    L = ratio * A if epsilon is None else torch.minimum(
        ratio * A, ratio.clamp(1 - epsilon, 1 + epsilon) * A)
    return torch.autograd.grad(L[batch.mask].sum(), batch.logprobs,
                               retain_graph=True)[0]

# %%
R = batch.rewards
token_grid.token_grid(batch, {
    "minus the mean": push(group_mean(R)),
    "divided by the std": push(zscore(R)),
    "GRPO, clipped too": push(zscore(R), epsilon=0.2)}, caption=(
    "Dividing doubles all, for σ_R is one half here. The clip silences "
    "what has already moved far enough."))

# %% [markdown]
# All tokens of an answer have one advantage: that is what giving up the critic costs. (The paper's
# other form, process supervision, grades the steps inside an answer; a token's advantage is then
# the sum of the group-normalised rewards of the steps from there on. "GRPO" alone means the one
# here, outcome supervision.)
#
# ## The whole loss
#
# PPO's clip and min (06), $k_3$ to the reference per token (05), each answer averaged over its own
# $T_i$ tokens, then a mean over answers:
#
# $$L=-\frac1G\sum_i\frac1{T_i}\sum_t\Big[\min\big(\rho_{i,t}A_i,\ \mathrm{clip}(\rho_{i,t},1-\epsilon,1+\epsilon)A_i\big)-\beta\,k_{3,i,t}\Big]$$
#
# | piece | derived? |
# |---|---|
# | minus $\bar R$ | yes, up to one factor |
# | $/\sigma_R$ | choice |
# | $1/T_i$ | choice: $\log\pi(y_i)$ is a *sum* over tokens, so this bends the gradient (09) |
# | clip and min | choice: how far to trust an old batch (06) |
# | $k_3$ in the loss | choice: which KL, and where (05) |

# %%
def grpo_loss(logp, old_logp, ref_logp, mask, R, epsilon=0.2, beta=0.04):
    """One group: log-probs and mask (G, T), rewards (G,). To minimise."""
    A = zscore(R)[:, None]
    rho = (logp - old_logp.detach()).exp()
    gain = torch.minimum(rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A)
    d = ref_logp - logp
    per_token = gain - beta * (torch.expm1(d) - d)           # k3
    per_token = torch.where(mask, per_token, 0.0)
    return -(per_token.sum(1) / mask.sum(1)).mean()

mine = grpo_loss(batch.logprobs, batch.old_logprobs, batch.ref_logprobs,
                 batch.mask, R)
theirs = ZOO["grpo"](batch).loss
print(f"mine {mine:.6f}, rlnb's {theirs:.6f}")
assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)

# %% [markdown]
# Where the inputs come from: `ref_logp` is one forward pass of a frozen copy, `R` is the grader's.
# `old_logp` is a trap. The sampler (vLLM) has log-probs too, but from other kernels, and they
# differ a little from the trainer's at the same weights. Take the trainer's, from a forward pass
# before the first step; with one step per batch that is `logp.detach()`, which is what TRL uses.
# The gap to the sampler remains, and is a weight of its own (04).
#
# Why is the KL here and not in the reward, as in 05? In the reward it would pass through the
# group's mean and std and end as one number per answer. In the loss every token keeps its own pull,
# also those that the clip silences.
#
# Start training. The batch is fresh, all ratios are 1, $\beta=0$. You look at the first line of the
# log.

# %% jupyter={"source_hidden": true}
# your guess
predict("grpo.6", "The running group: value of the loss, and its gradient?",
        ["−1, and the gradient is not 0", "0, and the gradient is 0",
         "0, and the gradient is not 0",
         "it depends on how long the answers are"])

# %%
fresh = batch.logprobs.detach().requires_grad_()
first = grpo_loss(fresh, fresh, batch.ref_logprobs, batch.mask, R, beta=0.0)
slope, = torch.autograd.grad(first, fresh)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("grpo.6", "0, and the gradient is not 0",
       f"Value {abs(first.item()):.4f}, norm of the gradient "
       f"{slope.norm():.4f}. Each answer's mean over its tokens is its "
       "advantage, whatever its length, and a group's advantages sum to 0. "
       "So do not watch the loss. Log the mean reward, the share of silent "
       r"groups, and the norm of the gradient. With $\beta>0$ the value "
       "starts at 0 and *rises* as the policy leaves the reference.",
       instead={
           "−1, and the gradient is not 0":
           "Right and wrong answers stand in it with opposite signs.",
           "0, and the gradient is 0":
           "Its value is 0. What about its slope?",
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
#   "grpo" (page 10 and 11), and its $\beta$ is 0.
# * TRL uses a batch for one optimizer step by default: all ratios are 1 and the clip never acts.
# * Never leave one out in the std as well: of 1, 0, 0, 0 the others have std 0, and the advantage
#   is one over the small number.
# * DeepSeekMath itself: $G=64$, learning rate 1e-6, $\beta$ = 0.04, one update per batch
#   ([arXiv 2402.03300](https://arxiv.org/abs/2402.03300), section 4.2).
# * What the missing critic saves in memory, byte by byte, is counted on the
#   [statements page](statements/08_grpo.ipynb).
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | GRPO | |
# |---|---|
# | sentence | write G answers to one prompt; their mean is the baseline, their std the scale; the rest is PPO without a critic |
# | formula | $A_i=(R_i-\bar R)/\sigma_R$ · right $\sqrt{(1-p)/p}$, wrong $-\sqrt{p/(1-p)}$ |
# | silent | groups all right or all wrong; and PPO's clipped tokens |
# | picture | the share of groups that teach: an arch, 0 at both ends |
# | numbers | own reward in the mean: times (G − 1)/G · one right of sixteen: 3.87 · loss at the start: 0 |
# | derived | minus the mean |
# | choices | $/\sigma_R$, $1/T_i$, clip, $k_3$ in the loss |

# %%
print("PPO -> GRPO\n" + str(difference(ZOO["ppo"], ZOO["grpo"])))
score("grpo.1", "grpo.2", "grpo.3", "grpo.4", "grpo.5", "grpo.6")

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
# **3 Find the silent bug** · 8 minutes. It passes its test on the running group, and the advantages
# of the whole batch sum to zero:

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
# **4 Make it survive** · 12 minutes. The loss above dies in a real batch: several prompts, a row
# without a single token, and padding that holds NaN or infinity. A NaN under the mask must reach
# neither the value nor the gradient.
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
# <details><summary><b>The group's mean contains your own reward. Is the gradient biased?</b></summary>
#
# Only in length. R minus the mean is (G − 1)/G times R minus the mean of the others, and the others
# are a legal baseline. So the direction is exact, and a learning rate absorbs the factor. Dividing
# by the std is a choice, and so is the mean over each answer's own tokens.
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
# <details><summary><b>Why is the KL in the loss, and why k3?</b></summary>
#
# In the reward it would pass through the group's mean and std and end as one number per answer. k3
# is per token, never negative, and its mean is the KL from the policy to the reference. As a loss
# its gradient follows the other direction of the KL (05); near the reference the difference is
# small.
# </details>
# <details><summary><b>What is in memory for PPO, for GRPO, for GRPO with a verifier?</b></summary>
#
# In bytes per parameter, at 16 for a trained model and 2 for a frozen one: 36, 20, 18, and 16
# without a reference. Activations and the sampler come on top.
# </details>
# <details><summary><b>My loss is 0 from the first step. Is it broken?</b></summary>
#
# No. On a fresh batch every ratio is 1 and the advantages of a group sum to zero; the gradient is
# not zero. Broken is a gradient norm of 0: all groups silent, or everything masked.
# </details>
# <details><summary><b>Which group size?</b></summary>
#
# Start at 8 to 16, look at the share of silent groups, and tune the rate with it. One answer has
# nothing to be compared with. Two give ±1 whatever the gap. At a fixed number of answers a larger
# group costs prompts and finds no more right answers. In this page's toy 4 to 32 ended level, each
# at its own rate; the start at 8 to 16 is custom.
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
