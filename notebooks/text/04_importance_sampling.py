# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Importance sampling: how do you use a batch twice?
#
# **After this page** you can let an old batch speak for today's policy, choose among three ratios,
# derive PPO's, and say what to log about it.
#
# 32 minutes, then 11 in a second sitting · exercises 20 more · after 02 (REINFORCE), 03 (baselines)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Whose answers does REINFORCE's gradient average over?</summary>Those of the policy that is being improved, as it is now: ∇J = mean over y ~ π of R(y) ∇log π(y) (02).</details>
# <details><summary>2. An answer has T tokens. What is its log-probability?</summary>The sum of its tokens' log-probabilities. So its probability is their product (02).</details>
# <details><summary>3. What is the advantage A of an answer, and why may one subtract a baseline?</summary>Reward minus baseline. The score ∇log π has mean 0, so a fixed number times it changes nothing on average (03).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports
import json
import torch
from rlnb import check
from rlnb.classroom.explorers import product_weight
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import importance_sampling as pictures
from rlnb.shipped import data_folder
from rlnb.toys import running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Can yesterday's answers tell what today's policy earns?
#
# Writing a batch of answers often costs more than a gradient step on it, so one would like a second
# step. But the first step has changed the policy.
#
# Take one prompt with four possible answers. The old policy $\pi_\text{old}$ wrote the batch. What
# does today's policy $\pi$ earn?

# %%
old = torch.tensor([0.1, 0.4, 0.2, 0.3])     # wrote the batch
new = torch.tensor([0.4, 0.1, 0.3, 0.2])     # today's policy
R = torch.tensor([1.0, 0.0, 0.5, 0.0])       # reward of each answer
w = new / old                                # a weight for each answer

# %% tags=["setup"] jupyter={"source_hidden": true}
# draw(p): six batches of 4,000 answers · so_far(x): running means
def draw(p, n=4000, batches=6):
    """n answers from p for each batch, (batches, n)."""
    dice = [torch.Generator().manual_seed(k) for k in range(batches)]
    return torch.stack([torch.multinomial(
        p, n, replacement=True, generator=g) for g in dice])

def so_far(x):
    """Mean of the first 1, 2, 3, ... numbers of each row."""
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)

# %%
y = draw(old)                                # (6, 4000)
truth = (new @ R).item()
pictures.running({"not weighted": so_far(R[y]),
                  "weighted": so_far(w[y] * R[y])}, truth, caption=(
    "Six batches of the old policy. Dashed: what today's policy earns."))

# %% [markdown]
# Without weights the mean goes to 0.20, which is what the *old* policy earns. But today's policy
# writes the first answer four times as often as the old one did. So count each copy of it four
# times, and every answer $y$ likewise $w(y)=\pi(y)/\pi_\text{old}(y)$ times. The mean goes to the
# right value, 0.55. Why this factor? For any $f$ whose mean you want:
#
# $$\begin{aligned}
# \mathbb E_{y\sim\pi}[f(y)]&=\textstyle\sum_y\pi(y)\,f(y)&&\text{what a mean is}\\
# &=\textstyle\sum_y\pi_\text{old}(y)\,\dfrac{\pi(y)}{\pi_\text{old}(y)}\,f(y)&&\text{times and divided by }\pi_\text{old}(y)\\
# &=\mathbb E_{y\sim\pi_\text{old}}[w(y)\,f(y)],\quad w=\dfrac{\pi}{\pi_\text{old}}&&\text{what a mean is, read backwards}
# \end{aligned}$$
#
# The factor $w$ is the **importance weight**. Its own mean is 1: put $f=1$.

# %% [markdown]
# ## What if the old policy cannot write an answer?
#
# The second line divides by $\pi_\text{old}(y)$. Let a sampler leave out the first answer, as top-p
# sampling leaves out unlikely tokens, and write the others a little more often. Its batch is
# weighted with the sampler's probabilities as the old ones.

# %%
cut = old * torch.tensor([0.0, 1.0, 1.0, 1.0])
cut = cut / cut.sum()                        # this sampler wrote the batch

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.2", "Today's policy still earns 0.55. Each "
        "reward in the new batch is multiplied by its weight. Where does "
        "the mean go?",
        ["0.55, with more noise than before",
         "0.25, with less noise than before",
         "0.15, with less noise than before",
         "nowhere: 0.4 / 0 makes it nan"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
w_cut = new / cut                            # inf where nothing is drawn
y_cut = draw(cut)
covered = w_cut[y_cut].mean().item()
missing = rf"""Only the third answer still pays: today's policy writes it
with probability 0.3, and 0.3 · 0.5 = 0.15. The first answer would add 0.4,
but it is never drawn, and no single answer looks odd. What is missing
is **support**: answers that $\pi$ can write and the sampler cannot. The
mean weight shows it:

$$\mathbb E_\text{{old}}[w]=\sum_{{y:\,\pi_\text{{old}}(y)>0}}
\pi_\text{{old}}(y)\,\frac{{\pi(y)}}{{\pi_\text{{old}}(y)}}
=\text{{the share of }}\pi
\text{{ that }}\pi_\text{{old}}\text{{ covers}}$$

It should be 1. In this batch it is {covered:.2f}."""
two = {"weighted": so_far(w[y] * R[y]),
       "weighted, first answer cut": so_far(w_cut[y_cut] * R[y_cut])}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.2", "0.15, with less noise than before",
       missing,
       pictures.running(two, truth, low=0.15, caption=(
           "Six batches each. The wrong mean, below, is the calm one.")),
       instead={
           "0.55, with more noise than before":
           "That needs the first answer at least now and then.",
           "0.25, with less noise than before":
           "That is 0.15 divided by the mean weight, 0.60. A mean divided "
           "by the sum of the weights would go there (more below).",
           "nowhere: 0.4 / 0 makes it nan":
           "Only answers that were drawn are divided, and the first never "
           "is.",
       })

# %% [markdown]
# So the weight is exact on average under two conditions: $\pi_\text{old}$ can write whatever $\pi$
# can, and $\pi$ was fixed before the batch was drawn. Training breaks the second: from the second
# step on, $\pi$ has been chosen by looking at this very batch.
#
# ## Which ratio should a trainer use?
#
# Write $\rho_t$ for the ratio of token $t$: its probability today over its old one, given the
# tokens before it. An answer's probability is the product over its tokens, so its weight is a
# product as well: $w=\rho_1\rho_2\cdots\rho_T$.
#
# Now train. A policy has three words, 0, 1 and 2, and draws each word given the word before it. The
# reward is the share of 1s. The policy writes 64 answers of 64 words, once, and takes forty
# gradient steps on them. Three trainers differ in the number in front of a word's
# $A\,\nabla\log\pi$: the **whole-answer ratio** $w$, the word's own $\rho_t$ (**one ratio per
# token**), or 1 (**ratios ignored**).

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: gradient(..., rule, b)
def log_probability(z, y):
    """log pi of each word of y, (n, T), given the word before it."""
    before = torch.cat([0 * y[:, :1], y[:, :-1]], 1)
    return z.log_softmax(-1)[before, y]

rules = {                                    # weights from log rho, (n, T)
    "whole-answer ratio": lambda x: x.sum(1, True).exp(),
    "one ratio per token": torch.exp,
    "ratios ignored": torch.ones_like}
WHOLE, TOKEN, NONE = rules

def gradient(z, z_old, y, rule, b):
    """Mean over the answers y of weight x (R - b) x grad log pi."""
    z = z.clone().requires_grad_()           # logits (3, 3)
    log_pi = log_probability(z, y)
    log_rho = (log_pi - log_probability(z_old, y)).detach()
    R = (y == 1).double().mean(1)
    total = ((R - b) / len(y)) @ (rules[rule](log_rho) * log_pi).sum(1)
    return torch.autograd.grad(total, z)[0]

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.4", "Who earns most after forty steps, and "
        "who least? (Mean of 20 policies, each with a batch of its own.)",
        ["whole answer, then per token, then ignored",
         "per token, then whole answer, then ignored",
         "ignored, then per token, then whole answer",
         "per token, then ignored, then whole answer"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 1: 20 policies, what they earn and write
policies = [torch.randn(
    2, 3, 3, generator=torch.Generator().manual_seed(k))[0]
    for k in range(20)]                      # logits

def earned(z, T=64):
    """The mean share of word 1 in answers of T words; z (..., 3, 3)."""
    chance, total = torch.eye(3)[:1].expand(*z.shape[:-2], 1, 3), 0
    for _ in range(T):
        chance = chance @ z.softmax(-1)
        total = total + chance[..., 0, 1]
    return total / T

def written(z, seed, n=64, T=64):
    """n answers of T words."""
    g = torch.Generator().manual_seed(seed)
    words, cut = [torch.zeros(n, dtype=torch.long)], z.softmax(-1).cumsum(1)
    for _ in range(T):
        u = torch.rand(n, 1, generator=g)
        words.append((u > cut[words[-1], :2]).sum(1))
    return torch.stack(words[1:], 1)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 2: forty steps for each rule and policy
def forty_steps(rule, batch):
    """Policies after 0 to 40 steps; batch(i, k, z): answers, author."""
    found = torch.zeros(20, 41, 3, 3)
    for i, z in enumerate(policies):
        for k in range(40):
            found[i, k] = z
            y, author = batch(i, k, z)
            b = (y == 1).double().mean()     # what they earn on average
            z = z + gradient(z, author, y, rule, b)
        found[i, 40] = z
    return found

seen = [written(z, i) for i, z in enumerate(policies)]
path = {rule: forty_steps(rule, lambda i, k, z: (seen[i], policies[i]))
        for rule in (WHOLE, TOKEN, NONE)}
climbed = {rule: earned(path[rule]) for rule in path}    # (20, 41) each
FRESH = "new answers at each step"
fresh = earned(forty_steps(
    NONE, lambda i, k, z: (written(z, 5000 + 100 * i + k), z)))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 3: a control, no old answer is used twice
other = {rule: earned(forty_steps(rule, lambda i, k, z: (
    written(policies[i], 1000 + 100 * i + k), policies[i])))[:, -1]
    for rule in (TOKEN, NONE, WHOLE)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, another control: A against the weighted mean, not the old one
def weighted_mean(z, z_old, y):
    R = (y == 1).double().mean(1)
    w = (log_probability(z, y) - log_probability(z_old, y)).sum(1).exp()
    return (w * R).sum() / w.sum()

def anew(rule):
    ends = []
    for z_old, y in zip(policies, seen):
        z = z_old
        for _ in range(40):
            z = z + gradient(z, z_old, y, rule, weighted_mean(z, z_old, y))
        ends.append(earned(z))
    return torch.stack(ends).mean()

assert round(anew(TOKEN).item(), 2) == 0.83
assert round(anew(WHOLE).item(), 2) == 0.56

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, part 4: what is told
answer, token, plain = (ends[:, -1] for ends in climbed.values())
assert (answer < torch.minimum(plain, token)).sum() == 17
ahead = token - plain                        # policy by policy
behind = plain - answer

def give_or_take(x):
    """Mean, with two standard errors."""
    return f"{x.mean():.2f} ± {2 * x.std() / len(x)**0.5:.2f}"

told = f"""They end at {token.mean():.2f}, {plain.mean():.2f} and
{answer.mean():.2f}. One ratio per token is ahead of no ratio on
{(ahead > 0).sum()} of the 20 policies (by {give_or_take(ahead)} on
average, two standard errors); the whole-answer ratio is behind it (by
{give_or_take(behind)}).

Is the reuse to blame? No: with 64 *other* answers of the old policy at
each step, none used twice, the ends are {other[TOKEN].mean():.2f},
{other[NONE].mean():.2f} and {other[WHOLE].mean():.2f}."""

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.4",
       "per token, then ignored, then whole answer",
       told,
       pictures.climbs(
           {FRESH: fresh, TOKEN: climbed[TOKEN], NONE: climbed[NONE],
            WHOLE: climbed[WHOLE]}, against=NONE, caption=(
               "Left: mean of 20 policies; learning rate 1; grey: new "
               "answers of the present policy. Right: what each of the 20 "
               "ended with, compared with ratios ignored.")),
       instead={
           "whole answer, then per token, then ignored":
           "The exact weight comes last. Exact on average says little "
           "about one batch.",
           "per token, then whole answer, then ignored":
           "In one batch $w$ does worse than no ratio at all. The next "
           "sections show why.",
           "ignored, then per token, then whole answer":
           "Ignoring comes second. Its gradient is wrong even on average: "
           "a later picture measures how wrong.",
       })

# %% [markdown]
# ## What happens to the weight of a long answer?
#
# Take coins for words. The old policy writes heads or tails with probability 0.5 each. Today's
# policy writes heads with 0.6, tails with 0.4. So $\rho_t$ is 1.2 or 0.8. An answer is $T$ tosses.

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.3", "The old policy writes answers of 1,000 "
        "tosses. Their mean weight is 1. Half of them weigh less "
        "than ...?",
        ["about 10⁻¹⁸", "about 10⁻⁹", "about 10⁻³", "about 1"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
lengths = torch.tensor([10, 50, 100, 200, 300, 500, 700, 1000])

def tossed(T, batch, n=1000):
    """How many heads n answers of T tosses have."""
    g = torch.Generator().manual_seed(batch)
    return torch.binomial(torch.full((n,), float(T)),
                          torch.full((n,), 0.5), generator=g)

def weights(heads, T):
    return 1.2**heads * 0.8**(T - heads)

batches = torch.tensor([[weights(tossed(int(T), k), T).mean()
                         for T in lengths] for k in range(8)])   # (8, 8)
median = weights(lengths / 2, lengths)       # as many heads as tails
tokens = [1.2 * x + 0.8 * (1 - x) for x in (
    tossed(1000, k).mean() / 1000 for k in range(8))]    # mean ratios
assert batches[:, -1].max() < 0.15

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.3", "about 10⁻⁹",
       "A head and a tail multiply to 1.2 · 0.8 = 0.96, not to 1. Five "
       f"hundred such pairs give {median[-1]:.1e}. **The mean over all "
       "answers is still 1, but nearly all of it comes from answers so "
       "rare that none of these eight batches contains one.** So the mean "
       "weight of a batch falls far below 1, although nothing was cut. To "
       "look for a gap in the support of long answers, take the mean "
       f"*token* ratio: here {min(tokens):.4f} to {max(tokens):.4f}.",
       pictures.batch_means(lengths.tolist(), batches, median.tolist()),
       instead={
           "about 10⁻¹⁸": "That takes 1,000 pairs. 1,000 tosses make 500.",
           "about 10⁻³": "169 pairs bring the weight there. There are 500.",
           "about 1": "Heads and tails cancel in a sum. In a product each "
           "pair loses 4 %.",
       })

# %% [markdown]
# How fast do the weights become unequal? Write $\chi^2$ for the variance of *one* ratio $\rho_t$,
# for the coins $0.2^2=0.04$. For independent tokens the mean of a product is the product of the
# means:
#
# $$\mathbb E[w^2]=\textstyle\prod_t\mathbb E[\rho_t^2]=(1+\chi^2)^T,\qquad\mathrm{Var}[w]=(1+\chi^2)^T-1$$
#
# **What counts is $T\chi^2$, length times how far a token has moved.** Coins of ±20 % are far. The
# course's small transformer after one update has a $\chi^2$ near 0.0006: $(1+\chi^2)^{1000}$ is 2
# then, not $10^{17}$. <!-- cited: 0.0006 -->
#
# ## What does one ratio per token compute?
#
# The trainer that won the race, with one ratio per token, is PPO's and GRPO's without their clip
# (06). To derive its gradient, let $A$ be the advantage of the answer, and $\pi(y_t)$ the
# probability of token $t$ given all before it.
#
# $$\begin{aligned}
# \nabla J&=\mathbb E_{\pi}\Big[A\,\textstyle\sum_t\nabla\log\pi(y_t)\Big]&&\text{log trick (02), baseline (03)}\\
# &=\mathbb E_\text{old}\Big[w\,A\,\textstyle\sum_t\nabla\log\pi(y_t)\Big]&&\text{importance weight of the answer}\\
# &=\mathbb E_\text{old}\Big[\textstyle\sum_t(\rho_1\cdots\rho_{t-1})\;\rho_t\;(\rho_{t+1}\cdots\rho_T)\,A\,\nabla\log\pi(y_t)\Big]&&\text{the product, sorted around token }t\\
# &\approx\mathbb E_\text{old}\Big[\textstyle\sum_t\rho_t\,A\,\nabla\log\pi(y_t)\Big]&&\textbf{a choice: each token keeps only its own ratio}
# \end{aligned}$$
#
# Every line but the last is exact. **In the last, each token is judged as if today's policy chose
# it, and the old policy everything before and after it.** The further those others have moved, the
# more it is wrong. What does that cost, and what does the exact weight $w$ cost in one batch?
#
# We go along the path of *one* trainer, the per-token one, and stop after each step. There every
# rule computes its gradient from old answers, with $A=R-{}$the old mean, and we take the angle to
# the true gradient. At 0° it is right; beyond 90° a step leads back.

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.9", "After five steps, in a batch of 64: by "
        "what angle does the whole-answer ratio miss the true gradient?",
        ["about 20°, as with one ratio per token",
         "about 45°, halfway between right and useless",
         "about 80°, so nearly no help at all",
         "more than 90°, so it leads back"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy's ratios, folded
def log_ratios(rule, k):
    """Of the words of each policy's batch after k steps, (20, 64, 64)."""
    return torch.stack([log_probability(path[rule][i, k], seen[i])
                        - log_probability(policies[i], seen[i])
                        for i in range(20)])

# %% tags=["setup"] jupyter={"source_hidden": true}
# the price, folded, part 1: one ratio per token over all old answers
def over_all(z, z_old, T=64):
    """Mean over all old answers of the sum of rho_t R grad log pi."""
    z = z.clone().requires_grad_()
    old, new = z_old.softmax(-1), z.softmax(-1)
    words = [torch.eye(3)[0]]                # chances of the word before
    for _ in range(T - 1):
        words.append(words[-1] @ old)
    later, total = torch.zeros(3), 0.0       # 1s to come, by old
    for word in reversed(words):
        worth = torch.eye(3)[1] + later
        total = total + word @ new @ worth   # one word by new
        later = old @ worth
    return torch.autograd.grad(total / T, z)[0]

def true_gradient(z):
    z = z.clone().requires_grad_()
    return torch.autograd.grad(earned(z), z)[0]

for z in policies:                           # exact at the old policy
    assert torch.allclose(over_all(z, z), true_gradient(z))

# %% tags=["setup"] jupyter={"source_hidden": true}
# the price, folded, part 2: no ratio over all old answers
def over_all_ignored(z, z_old, T=64):
    """Mean over all old answers of (R - b) grad log pi, b their mean R."""
    z = z.clone().requires_grad_()
    old, log_pi, one = z_old.softmax(-1), z.log_softmax(-1), torch.eye(3)[1]
    # by last word: chance, and means of 1s so far, log pi, and both
    chance, ones = torch.eye(3)[0], torch.zeros(3)
    logs, both = torch.zeros(3), torch.zeros(3)
    for _ in range(T):
        logs, both = (
            logs @ old + chance @ (old * log_pi),
            both @ old + ones @ (old * log_pi))
        chance, ones = chance @ old, ones @ old
        ones, both = ones + one * chance, both + one * logs
    total = both.sum() / T - earned(z_old, T) * logs.sum()
    return torch.autograd.grad(total, z)[0]

for z in policies:
    assert torch.allclose(over_all_ignored(z, z), true_gradient(z))

# %% tags=["setup"] jupyter={"source_hidden": true}
# the price, folded, part 3: along the way of the per-token trainer
def angle(got, right):
    cosine = (got * right).sum() / got.norm() / right.norm()
    return cosine.clamp(-1, 1).acos().rad2deg()

def in_batches(rule, k, batches=4, n=64, today=False):
    """Angles in fresh batches of the old policy, (20 * batches,)."""
    found = []
    for i, old in enumerate(policies):
        z = path[TOKEN][i, k]
        b = earned(z if today else old)
        found += [angle(gradient(z, old, written(old, 100 + 4 * i + j, n),
                                 rule, b), true_gradient(z))
                  for j in range(batches)]
    return torch.stack(found)

steps = range(11)
mean = {rule: torch.stack([torch.stack([
    angle(over(path[TOKEN][i, k], policies[i]),
          true_gradient(path[TOKEN][i, k])) for i in range(20)])
    for k in steps], 1) for rule, over in (
        (NONE, over_all_ignored), (TOKEN, over_all))}
mean[WHOLE] = torch.zeros(20, 11)            # exact: the second line
batch64 = {rule: torch.stack([in_batches(rule, k) for k in steps], 1)
           for rule in (WHOLE, NONE, TOKEN)}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
middle = {k: v.quantile(0.5, dim=0) for k, v in mean.items()}
noisy = {k: v.quantile(0.5, dim=0) for k, v in batch64.items()}
best_seen = torch.stack([(y == 1).double().mean(1).max() for y in seen])
assert (noisy[WHOLE][5:] > 90).all()
assert abs(earned(path[TOKEN][:, 5]).mean() - best_seen.mean()) < 0.01
far = (log_ratios(TOKEN, 5).exp() - 1).abs().mean()
today = {rule: in_batches(rule, 5, today=True).quantile(0.5)
         for rule in (WHOLE, TOKEN)}
assert [round(x.item()) for x in (*today.values(), noisy[TOKEN][5])] == [
    26, 30, 19]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.9", "more than 90°, so it leads back",
       f"It is {noisy[WHOLE][5]:.0f}° off (one ratio per token: "
       f"{noisy[TOKEN][5]:.0f}°). A few answers have nearly all of $w$. "
       "Against the *old* mean they look good, so the step makes just "
       f"these likelier. But today's policy earns "
       f"{earned(path[TOKEN][:, 5]).mean():.2f}, as much as the best "
       f"answer of a batch ({best_seen.mean():.2f}): no gain. **In "
       "one batch the exact weight leaves a handful of answers.**",
       pictures.turned(steps, mean, batch64, caption=(
           "Medians over 20 policies; lower is better. This toy moves "
           f"fast: after 5 steps a word's ratio is on average {far:.2f} "
           "away from 1.")),
       instead={
           "about 20°, as with one ratio per token":
           "So it is with one ratio per token, and not with 64 of them.",
           "about 45°, halfway between right and useless":
           "There it was after three steps.",
           "about 80°, so nearly no help at all":
           "Noise alone would end near 90°. Something pushes beyond.",
       })

# %% [markdown]
# The left panel is the other side. Averaged over all answers that the old policy can write, $w$ is
# exact, and one ratio per token is 27° off after ten steps. Without a ratio it is 52°, with the old
# mean as baseline.
#
# Both errors grow as the policy moves. So it must stay near the old one: page 05 measures how far
# it has gone, and PPO (06) holds it back.
#
# <details><summary>One level deeper: is it the baseline?</summary>
#
# Half of it. On average over all batches a baseline changes nothing; where a few answers have all
# the weight it decides. Against *today's* mean the whole answer's ratio misses by 26°, and one
# ratio per token by 30° instead of 19°: its answers come from the old policy, so against today's
# mean nearly all of them look bad, and that is noise.
#
# Then why does a baseline of today not save the race? There each trainer walks a way of its own.
# The whole answer's is slow from the first steps on, because so few answers count, and never comes
# to where the old mean misleads it. With the batch's *weighted* mean as baseline it ends at 0.56,
# and per token at 0.83. <!-- cited: 26, 30, 19, 0.56, 0.83 -->
# </details>

# %% [markdown]
# ## Which loss has this gradient?
#
# The loss is minus $\rho_tA$, summed over the tokens of an answer and averaged over the answers.

# %%
def reuse_loss(logprobs, old_logprobs, A, mask):
    """(B, T) each; old_logprobs were stored with the batch."""
    log_rho = torch.where(mask, logprobs - old_logprobs, 0.0)
    value = log_rho.exp() * A
    return -torch.where(mask, value, 0.0).sum() / len(value)

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.5", "Here is a bug. Before each step the "
        "trainer recomputes `old_logprobs` from the present policy, under "
        "`torch.no_grad()`. What is its gradient on the reused batch?", [
            "that of REINFORCE, uncorrected", "0, that of a constant",
            "the right one, as the ratios cancel",
            "the right one, but too short"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
batch = running_group()
rho = (batch.logprobs - batch.old_logprobs).exp().detach()      # (4, 6)
A = (batch.rewards - batch.rewards.mean())[:, None].expand_as(rho)

def push(old_logprobs):
    loss = reuse_loss(batch.logprobs, old_logprobs, A, batch.mask)
    slope, = torch.autograd.grad(loss, batch.logprobs, retain_graph=True)
    return -len(A) * slope

assert torch.allclose(push(batch.old_logprobs), rho * A * batch.mask)
assert torch.allclose(push(batch.logprobs.detach()), A * batch.mask)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("importance_sampling.5", "that of REINFORCE, uncorrected",
       "Now every ratio is 1. But its slope is not 0: $\\nabla\\rho="
       "\\rho\\,\\nabla\\log\\pi$, as only the numerator depends on the "
       "policy. So the push is $A\\,\\nabla\\log\\pi$. On the first step "
       "that is right. From the second step on the correction is missing "
       "and nothing crashes. The log shows it: the ratio is exactly 1 at "
       "every step.",
       instead={
           "0, that of a constant": "Only the denominator is "
           "constant. The numerator still depends on the policy.",
           "the right one, as the ratios cancel": "They are 1 by mistake. "
           "The policy has moved since the batch was written.",
           "the right one, but too short": "Tokens whose ratio should be "
           "3 and 0.3 are pushed alike.",
       })

# %% [markdown]
# ## When does a trainer need a ratio?
#
# Whenever another policy wrote the answers than the one that is trained.
#
# | the step | are all ratios 1? |
# |---|---|
# | first on fresh answers | yes, none is needed |
# | second on the same answers | no |
# | second minibatch of a fresh batch | no: the first has moved the policy |
# | answers some updates old (*asynchronous*) | no, from the first step on |
# | answers of an inference engine | only if its probabilities are the trainer's |
#
# An engine has the trainer's parameters, but often other kernels, precision, or a top-p. So keep
# its log-probabilities: $\pi_\text{old}$ is the policy that *wrote* the answers. If the trainer
# scores them anew instead, the ratio starts at 1 and hides the difference.

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | importance sampling | |
# |---|---|
# | sentence | weight each old answer by new probability over old: exact on average where old covers new, and of little use where a few answers have all the weight |
# | formula | $\mathbb E_\pi[f]=\mathbb E_\text{old}[wf]$, $w=\prod_t\rho_t$; $\mathrm{Var}\,w=(1+\chi^2)^T-1$ for independent tokens, $\chi^2=\mathrm{Var}\,\rho_t$ |
# | the choice | $\rho_t$ per token instead of the product: a bias that grows with the move, for much less noise |
# | picture | in a batch of 64, far from the old policy: $w$ misses by 100°, one ratio per token by 19° |
# | numbers | a gap in the support: 0.15 for 0.55 · 1,000 tosses: mean weight 1, median 10⁻⁹ · one batch, forty steps: per token 0.82, ignored 0.72, whole answer 0.55 |
# | since REINFORCE | each token's term: from $A\log\pi$ to $\rho A$, with $\log\pi_\text{old}$ kept from the writing |

# %%
score(*(f"importance_sampling.{k}" for k in (2, 4, 3, 9, 5)))

# %% [markdown]
# ## Second sitting: how many answers still count, and what do you plot?
#
# A batch with unequal weights is worth fewer answers than it has. How many, and does the log know?
#
# ### What does an effective sample size say?
#
# It belongs to the weighted mean that is divided by $\sum w$, the
# sum of the weights, instead of $n$ (**self-normalised**; a small bias, often much less noise). The
# **effective sample size**, ESS, is $n$ when all weights are equal, and 1 when one answer has all
# the weight:

# %%
def ess(w):
    return w.sum()**2 / (w**2).sum()

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy's weights, folded
def heaviest(rule, k):
    """Percent of the weight on the heaviest of 64 answers, typically."""
    x = log_ratios(rule, k).sum(2).softmax(1)
    return 100 * x.max(1).values.quantile(0.5)

def typical_ess(rule, k):
    return torch.stack([ess(one.softmax(0)) for one in log_ratios(
        rule, k).sum(2)]).quantile(0.5)

print("whole-answer trainer after 5 steps, median of 20 policies:")
print(f"  the heaviest of 64 answers has {heaviest(WHOLE, 5):.0f} % of the "
      f"weight, ESS {typical_ess(WHOLE, 5):.1f}")

# %% [markdown]
# So half of the weight is soon on one answer. Can you trust an ESS that a log reports? Test it on
# the coins, with the share of heads as reward: draw many batches, and see by how much their
# self-normalised mean misses 0.6. *Measured* is how many fresh answers of today's policy give a
# plain mean that misses by as much.

# %% jupyter={"source_hidden": true}
# the explorer
task("importance_sampling.t1", product_weight.product_weight_explorer(),
     ("Ratios 1 ± 0.20. Find answers so long that a typical batch of 1,000 "
      "reports an ESS of 50 to 70. Say first what will be measured: 60, 40 "
      "or 15?", product_weight.reports_sixty),
     ("Now answers of 850 tosses or more, about ten times as long. By what "
      "factor must the ± shrink to bring the report back to 50 to 70: by "
      "10, by 3 or by 2? Say why, then find it.",
      product_weight.sixty_of_long_answers))

# %% [markdown]
# <details><summary>What the two tasks show</summary>
#
# * About 15. The ESS knows only the answers that were drawn, and the heaviest are rare: a batch has
#   about one beyond the dashed line, where most of the mean of $w^2$ lies. And it takes rewards to
#   be unrelated to the weights; here the heaviest answers have the most heads. **A small ESS is an
#   alarm. A large one is no all-clear.**
# * By about 3. What counts is $T\chi^2$, and $\chi^2$ is the square of the ±. Ten times the tosses
#   need a tenth of $\chi^2$, so the ± shrinks by $\sqrt{10}$.
# </details>
# <details><summary>One level deeper: where the ESS comes from</summary>
#
# Divide the weighted values by $\sum w$ and hold the weights fixed. Let the values be independent
# of each other and of the weights, each with variance $\sigma^2$. Then the weighted mean has the
# variance $\sigma^2\sum w^2/(\sum w)^2$. A plain mean of $m$ values has $\sigma^2/m$. The two are
# equal at $m=\mathrm{ESS}$.
# </details>
#
# ### What do you plot, and when is a batch too old?
#
# A trainer with one ratio per token does not use $w$, so the ESS is not its number. What can it
# log? Two things are cheap: how far its ratios are from 1 on average, and how many tokens are far
# out. Here they stand beside what one cannot log, the angle to the true gradient:

# %% jupyter={"source_hidden": true}
# the table: along the per-token trainer
x = torch.stack([log_ratios(TOKEN, k).exp() for k in (1, 2, 5, 10)])
print("toy      mean of    tokens outside   angle,      angle,")
print("step    |ρ − 1|     1/2 to 2        all         one batch")
for row, k in zip(x, (1, 2, 5, 10)):
    out = 100 * ((row < 0.5) | (row > 2)).double().mean()
    print(f"{k:>4}{(row - 1).abs().mean():11.2f}{out:11.1f} %"
          f"{middle[TOKEN][k]:14.0f}°{noisy[TOKEN][k]:12.0f}°")

# %% [markdown]
# |ρ − 1| rises with the angle from the first step on; the share outside comes later. Where to stop
# depends on the task; no number is right for all. Beside it a real batch. The small transformer of
# this course writes 512 answers of some 28 tokens, trains on, and scores the old answers again
# after 1, 2, 4 and 8 updates (median of twelve batches, three seeds):

# %% tags=["setup"] jupyter={"source_hidden": true}
# the table, folded: a recorded run
found = json.loads((data_folder() / "runs/engine_gap.json").read_text())
print("transformer   tokens outside    ESS of w, of 512")
print("updates        1/2 to 2         median    one batch")
for k in "1248":
    runs = [run for i in range(3) for run in found[f"lags, seed {i}"][k]]
    sizes = [512 * run["effective share"] for run in runs]
    out = sorted(100 * run["outside [1/2, 2]"] for run in runs)[6]
    print(f"{k:>4}{out:18.2f} %{sorted(sizes)[6]:17.0f}{sizes[7]:12.0f}")

# %% [markdown]
# By its share of tokens far out, eight updates of this run lie between the toy's second and fifth
# step. Its answers are short, so even the exact weight still has an ESS of 367. With answers of
# 1,000 independent tokens the same move would make $512/(1+\chi^2)^T$ smaller than 1: such a batch
# would be far too small.
#
# One batch falls to 235 and recovers. One of its answers had become 26 times as likely, and one
# such weight takes an ESS from 500 down to 240. Look at the largest weight, too.

# %% [markdown]
# ## Exercises
#
# **1 By hand** · 3 minutes. Ten samples. Nine have weight 1, the last has weight 9.

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.6", "How many effective samples? (And "
        "after all weights are multiplied by 100?)", unit="samples")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ten = torch.tensor([1.0] * 9 + [9.0])
assert torch.isclose(ess(ten), ess(100 * ten))
reveal("importance_sampling.6", round(ess(ten).item(), 4),
       "18² / (9 + 81). One large weight costs almost two thirds of the "
       "samples. A common factor cancels.")

# %% [markdown]
# **2 Implement** · 5 minutes. The weighted estimate, from `values`, `log_p` (the policy you ask
# about) and `log_q` (the one that wrote the samples), each (n,). Divide by $n$. The logs may be
# those of whole answers, −800 and less.
#
# <details><summary>hint</summary>exp(−800) is 0 in a computer, and 0/0 is no number. What can you do before the exp?</details>

# %% tags=["exercise"]
def my_importance_estimate(values, log_p, log_q):
    return ...

check.importance_estimate(my_importance_estimate)

# %% [markdown]
# **3 Implement** · 6 minutes. The effective sample size from log-weights (n,). Asked is the
# *number* of samples, from 1 to $n$. Training logs often show the share ESS/$n$ instead; that is
# fine there, multiply by $n$ here. Log-weights of 800 and of −800 are among the tests.
#
# <details><summary>hint</summary>Exercise 1: a common factor of all weights cancels. Choose it well.</details>

# %% tags=["exercise"]
def my_effective_sample_size(log_weights):
    return ...

check.effective_sample_size(my_effective_sample_size)

# %% [markdown]
# **4 Derive** · 6 minutes. Independent tokens, but each with its own $\chi_t^2$. What is the
# variance of the product, and how many effective samples are left of $n$? Then a number:
# $\chi^2=0.01$ at every token.

# %% jupyter={"source_hidden": true}
# your guess
predict("importance_sampling.7", "What is the longest answer, in whole "
        "tokens, that leaves three quarters of the samples or more?",
        unit="tokens", close=0.0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
longest = torch.tensor(4 / 3).log() / torch.tensor(1.01).log()
assert 1.01**longest.item() < 4 / 3 + 1e-12
reveal("importance_sampling.7", int(longest),
       "Var = Π(1 + χ_t²) − 1, left are n / Π(1 + χ_t²). With 1.01^T = "
       f"4/3: T = ln(4/3) / ln 1.01 = {longest.item():.1f}.")

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>What is importance sampling, and when does it fail?</b></summary>
#
# Samples of one policy, each weighted by p/q, give another policy's mean. It fails in two ways.
# What p can write and q cannot is lost; then the mean token ratio falls below 1. And if the weights
# differ much, few samples count: in a large batch the effective sample size is n/(1 + Var w). Also,
# p must be fixed before the samples are drawn.
# </details>
# <details><summary><b>Why not use the ratio of the whole answer?</b></summary>
#
# It is right on average and noisy in a single batch. As a product of T independent token ratios it
# has the variance (1 + χ²)^T − 1: at χ² = 0.04 that is about 50 at 100 tokens and 10¹⁷ at 1,000. A
# few answers then have all the weight, and with a stale baseline a step copies them. Near the old
# policy, or in a large batch, it can be as good as a ratio per token.
# <!-- cited: 0.04 -->
# </details>
# <details><summary><b>Derive the gradient that PPO uses. Which line is not exact?</b></summary>
#
# The last one, where each token keeps only its own ratio. Log trick and baseline; importance weight
# of the answer; the product sorted around token t; then drop the ratios before and after it. So
# each token is judged as if today's policy chose it and the old policy all others. Away from the
# old policy it is biased: in our toy it points 27° off after ten steps.
# </details>
# <details><summary><b>Your effective sample size is 60 of 1,000. Can you trust it?</b></summary>
#
# As an alarm yes, as a count no. It is computed from the weights that were drawn, and the rare
# heavy ones are missing. And it assumes that rewards have nothing to do with the weights. With
# coins for tokens, where a batch reports 60, the mean divided by Σw is as good as that of 15 fresh
# answers.
# </details>
# <details><summary><b>How many updates may one batch serve?</b></summary>
#
# There is no such number: what counts is how far the policy has moved. Each update adds bias to
# token ratios and noise to whole-answer ratios, so log the ratios and stop or clip by them. Recipes
# differ: one update on a batch ([DeepSeekMath](https://arxiv.org/abs/2402.03300)), four
# ([GSPO](https://arxiv.org/abs/2507.18071)) or sixteen ([DAPO](https://arxiv.org/abs/2503.14476))
# that share it out, so that each answer is used once.
# </details>
# <details><summary><b>GSPO has one ratio for a whole answer, and works. Did you not say that fails?</b></summary>
#
# It is another number: the T-th root of the product, the geometric mean of the token ratios (13).
# It stays near 1 at any length, so no answer takes all the weight. But it is no importance weight
# any more, not even on average: it decides which answers are clipped, and hardly weighs them.
# </details>
# <details><summary><b>The engine that writes your answers is not quite your trainer's policy. So what?</b></summary>
#
# Then the data are off-policy before the first step. The engine wrote them, so its probabilities
# belong in the denominator. If you store the trainer's old ones too, the ratio has two factors,
# $\frac{\pi_\text{now}}{\pi_\text{engine}}=\frac{\pi_\text{now}}{\pi_\text{trainer, then}}\cdot\frac{\pi_\text{trainer, then}}{\pi_\text{engine}}$,
# drift and mismatch. The clip (06) acts on the first; the second is capped (19). I also ask *which*
# probabilities the engine reports: those after temperature and top-p wrote the answers, those
# before did not. What top-p cut off no weight brings back.
# </details>
#
# Statements one hears, decided by running them:
# [04 · statements](statements/04_importance_sampling.ipynb). **Next: 05.** How far is far? KL.
