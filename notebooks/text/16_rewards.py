# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 16 · Rewards: what happens when the reward is not what you meant?
#
# **After this page** you can say when training on a flawed reward helps and when it turns into
# harm, measure how hard you push in nats, and name what a KL penalty does about it and what not.
#
# 37 minutes, then 10 in a second sitting · exercises 31 more · after 05 (KL), 08 (GRPO) · Gao et
# al. 2023, [arXiv 2210.10760](https://arxiv.org/abs/2210.10760); heavy tails: Kwa et al. 2024,
# [arXiv 2407.14503](https://arxiv.org/abs/2407.14503); best of N: Beirami et al. 2024,
# [arXiv 2401.01879](https://arxiv.org/abs/2401.01879)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Which policy maximises E[R] − β KL(π‖π_ref)?</summary>π_ref(y) exp(R(y)/β), divided by what makes it sum to 1 (05).</details>
# <details><summary>2. KL(π‖π_ref) is a mean of what, over whose answers?</summary>Of log π(y) − log π_ref(y), over π's own answers; in nats (05).</details>
# <details><summary>3. What does GRPO do with a group in which all rewards are equal?</summary>Nothing: every advantage is 0 (08).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import torch
from rlnb import check
from rlnb.classroom.explorers import capped_reward, rare_glitch
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import rewards as pictures
from rlnb.toys.proxy import (answer_pool, best_of_n_kl, fit_gao,
                             kl_to_uniform)
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Five numbers to sort
#
# A small transformer is to sort: `27,68,66,11,15?` Its grader pays 1 for five numbers in order and
# 0 for anything else, so a right answer is always paid. Training is Dr. GRPO, 40 steps of 64
# answers. How do pay and truth go?

# %%
pictures.paid_and_true()

# %% [markdown]
# The pay rises. (At this learning rate even the right pay, on the right, teaches little.) Of 100
# held-out problems 47 were solved before, and none after. One list is right, but 91,962,520 are in
# order, and the grader cannot tell them apart.
#
# Did the pay teach the model to forget the given numbers? The test is a *coin*: it pays four of
# five answers, whatever they say.

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.1", "Same base, same 40 steps, but paid by the coin. How "
        "many of 100 problems are solved after it?",
        ["about 60: it was unlearning that hurt",
         "about 47: a coin teaches nothing",
         "about 25: it forgets at half the speed",
         "none: it forgets all the same"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("rewards.1", "none: it forgets all the same",
       "In all three seeds. On average a coin's step is 0, but no single "
       "step is: in a group some answers are paid and some are not, and "
       "every step moves the weights. What the steps have in common is "
       "that nothing holds the skill. Of the three pays only that for the "
       "right list does. "
       "In steps of a tenth (right) the "
       "model paid for the right list improves; the other two still "
       "forget.",
       pictures.three_pays(),
       instead={
           "about 60: it was unlearning that hurt":
           "The coin does not care for right answers either.",
           "about 47: a coin teaches nothing":
           "It teaches nothing, and yet it moves the weights.",
           "about 25: it forgets at half the speed":
           "It forgets even faster: nothing pulls back.",
       })

# %% [markdown]
# What you want is called **gold**. What you can compute and pay is a **proxy**. A proxy fails in
# two ways. It can leave gold *unprotected*, as here: gold drifts away, and the pay does not notice.
# Or its error is *exploited*: what is wrong is paid better, and training goes there. Most of the
# page is about the second. A 4B model was paid when its code passed a function `run_tests`, and in
# every run it learned to write that function anew
# ([a public study](https://www.alignmentforum.org/posts/R5MdWGKsuvdPwGFBG/steering-rl-training-benchmarking-interventions-against)).

# %% [markdown]
# **The reward can rise while what you wanted is lost. And the reward need not be what loses it.**
#
# ## Which grader would you buy?
#
# The sorter's check was plainly bad. Reward models are right most of the time. How right is right
# enough?
#
# The toy of this page has 128 prompts with 4,096 possible answers each, all equally likely at the
# start. Gold is normal with std 1. Two graders see gold plus an error.
#
# * **A** is careless: its error has std 1 on every answer.
# * **B** is sharp: its error has std 0.2. But on two answers of a hundred B *glitches*, and there
#   its error has std 10.

# %%
P, K = 128, 4096                       # prompts, answers to each
dice = torch.Generator().manual_seed(0)

def normal():
    return torch.randn(P, K, generator=dice)

gold = normal()
A = gold + normal()
glitches = torch.rand(P, K, generator=dice) < 0.02
B = gold + torch.where(glitches, 10.0, 0.2) * normal()

# %% [markdown]
# Reward models are usually compared on pairs: how often does the better answer score higher?

# %% jupyter={"source_hidden": true}
# folded: on how many of 2,048 pairs a prompt the better one scores higher
def on_pairs(scores):
    better = gold[:, ::2] > gold[:, 1::2]
    agrees = better == (scores[:, ::2] > scores[:, 1::2])
    return agrees.double().mean()

print(f"right on pairs: A {on_pairs(A):.3f}, B {on_pairs(B):.3f}")

# %% [markdown]
# On pairs B is far ahead. Now use both. The simplest push is **best of N**: draw $N$ answers and
# keep the one with the highest score.
#
# Sort the $K$ answers by score, the lowest first. All $N$ draws lie among the first $k$ with chance
# $(k/K)^N$. The same for $k-1$, subtracted, leaves the chance that answer $k$ is the best:

# %%
def best_of(N, scores):
    """(P, K): how often each answer is the best of N draws."""
    rank = scores.argsort(1).argsort(1) + 1      # 1 ... K
    return (rank / K) ** N - ((rank - 1) / K) ** N

# %% [markdown]
# When A chooses from 256 answers, its pick has gold 1.98 on average.

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.2", "B chooses from 256 answers. Gold of what it picks?",
        ["about 0.5: it mostly picks a glitch",
         "about 2.7: it sees better than A",
         "about 2: two glitches in 100 hardly matter",
         "about 1.5: it picks a glitch now and then"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: gold and score of best of 1, 2, 4 ... 1024 under A and under B
def mean(weights, values):
    return (weights * values).sum(1).mean().item()

draws = [2**k for k in range(11)]
picks = {name: [best_of(N, scores) for N in draws]
         for name, scores in (("A", A), ("B", B))}
goldA, goldB = ([mean(w, gold) for w in picks[name]] for name in "AB")
scoreA = [mean(w, A) for w in picks["A"]]
scoreB = [mean(w, B) for w in picks["B"]]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("rewards.2",
       "about 0.5: it mostly picks a glitch",
       f"{goldB[8]:.2f}, where A has {goldA[8]:.2f}. Of 256 answers about "
       "five glitch, and about half of those upwards. One of them mostly "
       "has the highest score. With four answers B was the "
       "better grader. Its gold is highest at N = 32, and then it falls. "
       "This fall is called **over-optimisation**.",
       pictures.score_and_gold(
           draws, {"A": (scoreA, goldA), "B": (scoreB, goldB)}),
       instead={
           "about 2.7: it sees better than A":
           "On most pairs it does. Best of 256 does not ask about most "
           "pairs.",
           "about 2: two glitches in 100 hardly matter":
           "In 100 answers taken at random they do not. Here 256 are "
           "searched for the highest score.",
           "about 1.5: it picks a glitch now and then":
           "Count them: how many of 256 answers glitch?",
       })

# %% [markdown]
# **The grader that is right more often can be the worse one to search with.**
#
# ## What does a score tell?
#
# Why does gold turn under B and not under A? Fix a score $r$ and ask how much gold $g$ to expect
# behind it. The error $e$ has variance $s^2$, and gold has variance 1:
#
# $$\begin{aligned}
# r&=g+e&&\text{what the grader sees. }\textbf{Assumed: both normal, independent}\\
# \mathrm{Cov}(g,r)&=\mathrm{Var}(g)=1&&e\text{ is independent of }g\\
# \mathrm{Var}(r)&=1+s^2&&\text{variances add}\\
# \mathbb E[g\mid r]&=\frac{\mathrm{Cov}(g,r)}{\mathrm{Var}(r)}\,r=\frac{r}{1+s^2}&&\text{for normal numbers: the regression line}
# \end{aligned}$$
#
# For A the result is $r/2$: half of any score is luck. Yet a higher score always promises more
# gold, so a harder push always pays.
#
# For B the expectation is a mean over "glitch" and "no glitch", weighted by how likely each is at
# that score:

# %% jupyter={"source_hidden": true}
# folded: gold to expect under B, and how many of its winners are glitches
grader = rare_glitch.Grader()
at = torch.tensor([2.0, 3.0, 5.0, 8.0])
for r, g in zip(at.tolist(), grader.worth(at).tolist()):
    print(f"score {r:.0f}: gold {g:.2f} to expect")
for k in (4, 8):
    caught = mean(picks["B"][k], glitches.double())
    print(f"best of {draws[k]}: {100 * caught:.0f} of 100 winners glitch")

# %% [markdown]
# Up to about 3 the score means what it says. A score of 8 means nothing: a gold of 8 is eight stds
# out, an error of 8 an ordinary glitch. The more answers compete, the more winners come from up
# there. **Beyond some score, what is added is error only.**
#
# Errors like B's are called **heavy-tailed**: large ones are rare, but far more frequent than a
# normal distribution allows.
#
# Could a test on pairs have warned you?

# %% jupyter={"source_hidden": true}
# the explorer
task("rewards.t1", rare_glitch.rare_glitch_explorer(),
     ("Build a grader that is right on more pairs than B, on at least "
      "93.2 %, and yet so bad to search with that its best of 1,024 has "
      "less gold than its best of 4. Say first: fewer glitches, or smaller "
      "ones?",
      rare_glitch.accurate_and_ruinous))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Fewer, but as large: one in two hundred answers, of size 10. Smaller ones at 2 % are harmless at
# size 1, as wide as gold itself; at size 3 gold already turns. Without any glitch the grader would
# be right on 93.7 % <!-- cited: 93.7 % --> of pairs.
# </details>
#
# **The test on pairs cannot see what ruins you:** it never looks at the top of 1,024.
#
# <details><summary>One level deeper: are B's tails heavy?</summary>
#
# Strictly, no. B is a mix of two normals, and very far out gold would rise again. Over the scores
# that we reach it acts like a heavy tail. For heavy tails Kwa et al. prove that the proxy can rise
# without limit, at hardly any KL, while gold stays where it began
# ([statements](statements/16_rewards.ipynb)).
# </details>
#
# ## How hard was that push?
#
# Best of $N$ pushes with $N$, and RL pushes with $\beta$. What measures both? The KL to the
# starting policy. For best of $N$ it can be derived. Let $u$ be the share of the policy's answers
# that score lower.
#
# $$\begin{aligned}
# \Pr(u\le x)&=x&&\text{one draw: }u\text{ is uniform. }\textbf{Assumed: each answer is rare, no two score alike}\\
# \Pr(u_{\text{best}}\le x)&=x^N&&\text{all }N\text{ draws must be below, independently}\\
# \frac{\pi_{\text{best}}}{\pi}&=N\,u^{N-1}&&\text{differentiate both lines, divide}\\
# \mathrm{KL}&=\mathbb E_{\text{best}}\big[\log N+(N-1)\log u\big]&&\text{mean of the log-ratio, over best's own answers}\\
# &=\log N-\frac{N-1}{N}&&\textstyle\int_0^1 N u^{N-1}\log u\,du=-\frac1N\text{, by parts}
# \end{aligned}$$
#
# If answers tie or are not rare, the formula is an upper bound. And no N brings the KL above
# $-\log\pi(\text{best answer})$, where all probability is on that answer. In the toy an
# answer has probability 1/4,096, so that end is at 8.3 nats:

# %% jupyter={"source_hidden": true}
# folded: the formula against the toy
for N in (32, 64, 256, 1024, 10**6):
    exact = kl_to_uniform(best_of(N, B)).mean().item()
    print(f"best of {N:9,d}: formula {best_of_n_kl(N):5.2f}, "
          f"toy {exact:5.2f} nats")

# %% [markdown]
# **Each doubling of $N$ adds at most $\log 2$ nats, so KL grows like $\log N$.** Little, but not
# harmless: the best of 256 that ruined gold is 4.5 nats from the start.
#
# ## Does a KL penalty protect you?
#
# Let RL be paid the raw score. Its exact optimum
# is $\pi_\beta\propto\pi_{\text{ref}}\,e^{R/\beta}$ (recall 1), $R$ the score:

# %%
def leashed(beta, scores):
    """Maximises E[score] - beta KL, for a uniform start."""
    return (scores / beta).softmax(1)

# %% [markdown]
# At equal KL no other policy has a higher mean score. Take grader B and allow 2.5 nats. Best of 32
# costs just that and reaches gold 1.57, the top of its curve.

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.5", "The RL optimum with 2.5 nats under B: its gold?",
        ["about 0.25: it spends them on glitches",
         "about 1.0: it finds somewhat more glitches",
         "about 1.57: equal nats buy equal gold",
         "above 1.57: it is the best use of 2.5 nats"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: KL and gold of best of N and of the RL optimum, under A and B
def path(weights):
    """KL and gold of each policy of a list."""
    return ([kl_to_uniform(w).mean().item() for w in weights],
            [mean(w, gold) for w in weights])

betas = (10, 5, 4, 3.4, 3, 2.5, 2, 1.5, 1, 0.7, 0.5, 0.35)
paths = {name: {"best of N": path(picks[name]),
                "RL": path([leashed(b, s) for b in betas])}
         for name, s in (("A", A), ("B", B))}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
for name, s in (("A", A), ("B", B)):
    rank = s.argsort(1).argsort(1) / K
    paths[name]["RL, paid the rank"] = path(
        [leashed(b, rank) for b in (1, 0.3, 0.1, 0.05, 0.03, 0.01)])
worth = paths["B"]["RL"][1]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("rewards.5",
       "about 0.25: it spends them on glitches",
       f"{worth[3]:.2f}, and no β brings more. A prompt's highest scores, "
       "up to 25, are glitches, and e^(R/β) goes by how high a score is. "
       "Best of N only asks which one is first. "
       "**Equal nats are not equal harm.**",
       pictures.one_ruler(paths),
       instead={
           "about 1.0: it finds somewhat more glitches":
           "Look at how it weighs what it finds: e^(R/β).",
           "about 1.57: equal nats buy equal gold":
           "Equal nats say how far a policy goes, not where to.",
           "above 1.57: it is the best use of 2.5 nats":
           "It is the best in score.",
       })

# %% [markdown]
# Why so little? The error $e$ of either grader is independent of gold, so the weight splits:
# $e^{(g+e)/\beta}=e^{g/\beta}\,e^{e/\beta}$. The first factor moves the mean of gold from 0 to
# $1/\beta$. The second moves the error alone. So at a $\beta$ that is not small both graders have
# about the same gold, and differ in the nats that they burn for it:

# %% jupyter={"source_hidden": true}
# folded: what a β costs, and which β 2.5 nats pay for
cost, got = zip(*(path([leashed(5, s)]) for s in (A, B)))
print(f"β = 5: gold {got[0][0]:.2f} for {cost[0][0]:.2f} nats under A, "
      f"{got[1][0]:.2f} for {cost[1][0]:.2f} under B")
cost, got = path([leashed(0.63, A), leashed(3.4, B)])
print(f"{cost[0]:.1f} nats under A: β = 0.63, gold {got[0]:.2f}")
print(f"{cost[1]:.1f} nats under B: β = 3.4,  gold {got[1]:.2f}")

# %% [markdown]
# Large errors are dear: under B the nats are gone before $\beta$ is small. **β chooses where on the
# curve of your pay you stop. It does not lift that curve.** In the toy that is so by construction.
# Gao et al. measured it: runs with and without a penalty lay on one curve.
#
# That was exploitation. And the first failure, the sorter that drifted?

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.9", "The coin once more, now with a KL penalty (β = 1, k3 "
        "in the loss). It begins at 47 of 100. How many are solved after "
        "the 40 steps?",
        ["none: a penalty adds nothing that is right",
         "about 20: it slows the drift down",
         "about 40: it holds nearly all",
         "about 60: held there, it learns"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
kept = pictures.leashed_pays()
reveal("rewards.9", "about 40: it holds nearly all",
       "The penalty pays for staying where the skill was. "
       + "; ".join(f"β = {beta:g}: {rows}" for beta, rows in kept.items())
       + ". **A KL penalty can hold what drift would lose. It does not "
       "cure a wrong pay.** (At this rate even the right pay teaches "
       "little, so what β = 1 costs a run that learns is not shown here.)",
       instead={
           "none: a penalty adds nothing that is right":
           "It adds nothing, but it keeps: the reference was right on 47.",
           "about 20: it slows the drift down":
           "So about it is at β = 0.1, where it is weaker.",
           "about 60: held there, it learns":
           "From a coin there is nothing to learn.",
       })

# %% [markdown]
# <details><summary>One level deeper: real reward models, and a list that ends</summary>
#
# Those that Kwa et al. measured looked light-tailed. Gold turns in Gao's runs, of other reward
# models, all the same: so heavy tails are probably not the whole story. A likely part: the error
# was small on answers like those that the model learned from, and training leaves them. Against
# that one labels fresh answers of the trained policy, and trains the reward model again.
#
# In the toy gold falls at last: the list of answers ends, and a tiny β puts all probability on the
# one with the highest score, a glitch with ordinary gold.
# </details>
# <details><summary>One level deeper: best of N is RL, too</summary>
#
# Look at the third line of the derivation: $N u^{N-1}=N e^{(N-1)\log u}$. That is
# $\pi_{\text{ref}}\,e^{R/\beta}$ with the pay $\log u$ and $\beta=1/(N-1)$. Best of $N$ is RL that
# is paid by rank, which forgets how large an error is. Paid the rank $u$ itself, RL comes close to
# its curve (triangles).
# </details>
#
# ## You run GRPO. Which curve is yours?
#
# We do not run GRPO here. We take what it pays an answer beside seven of the starting policy, and
# go to the optimum of that pay: the z-score in a group of eight, at most √7, about 2.6, however
# high a glitch scores. Often the grader only says pass or fail. Let B pass all scores above 2: then
# 26 in 100 passes are glitches. <!-- cited: 2.6, 26 -->

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.8", "GRPO, paid 1 for a pass and 0 for a fail, and β goes "
        "to 0: you push as hard as you can. What does gold do?",
        ["it rises, then falls: the false passes spread",
         "it rises and stays: the false passes keep their share",
         "it rises, then falls to 0: one glitch takes all",
         "it hardly rises: the false passes eat the nats"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: what GRPO pays an answer, and the RL optimum for that pay
def group_pay(rewards):
    """Mean z-score of each answer, beside 7 of the starting policy's."""
    seats = torch.Generator().manual_seed(3)
    pay = torch.zeros(P, K)
    for _ in range(48):
        others = rewards.gather(
            1, torch.randint(K, (P, 7), generator=seats))
        mid = (others.sum(1, keepdim=True) + rewards) / 8
        square = (others**2).sum(1, keepdim=True) + rewards**2
        std = (square / 8 - mid**2).clamp_min(0).sqrt()
        pay += (rewards - mid) / (std + 1e-4) / 48
    return pay

passed = (B > 2).double()
grpo = {name: path([leashed(b, group_pay(pay)) for b in
                    (4, 2, 1.5, 1, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1)])
        for name, pay in (("z-score, pass or fail", passed),
                          ("z-score of the score", B))}
grpo["the raw score"] = paths["B"]["RL"]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ends, turns = grpo["z-score, pass or fail"], grpo["z-score of the score"]
top = turns[1].index(max(turns[1]))
share = (passed * glitches).sum() / passed.sum()
reveal("rewards.8",
       "it rises and stays: the false passes keep their share",
       "Every pass is paid alike, so no β moves probability from a true "
       f"pass to a false one: {100 * share:.0f} in 100 are false at the "
       "start, and at the end. Gold climbs to the mean of what passes, "
       f"{ends[1][-1]:.2f}. If the z-score is taken of the *score*, gold "
       f"turns: {turns[1][top]:.1f} at {turns[0][top]:.1f} nats is its "
       "highest. A glitch's pay is bounded now, but still above an "
       "honest answer's.",
       pictures.at_equal_nats(
           grpo, "z-scores beside seven answers of the starting policy. "
           "The blue line ends where all probability is on passes."),
       instead={
           "it rises, then falls: the false passes spread":
           "At whose cost? A true pass is paid as much.",
           "it rises, then falls to 0: one glitch takes all":
           "So it is on raw scores. Here it is one pass among many.",
           "it hardly rises: the false passes eat the nats":
           "A false pass is paid 1, and not 25.",
       })

# %% [markdown]
# **Pay that cannot tell two answers apart cannot prefer the worse one.** So with pass or fail the
# *optimum* does not turn. A run may all the same: if a false pass is easier to learn than a true
# one, as one trick for all prompts is (`run_tests`); or if its steps lose what the pay does not
# protect, as the sorter's did. Graded scores gave the dashed curve here: better at
# first, and it turns. Dr. GRPO does not divide by the std; its pay is the raw score, shifted and
# scaled: the dotted curve.
#
# **Judge a grader by its gold at the nats and under the pay that you will use, and not by pairs:**
# at 2.5 nats B gave best of N 1.57, and RL on raw scores 0.26. <!-- cited: 2.5, 1.57, 0.26 --> In a
# real run, plot gold (held-out tests, a grader never trained on) at every checkpoint beside score
# and KL. And read the answers with the *highest* scores: in a random sample two glitches in 100
# look like nothing.

# %% jupyter={"source_hidden": true}
# your guesses so far
toy = answer_pool()
assert all(torch.equal(x, y) for x, y in zip(toy, (gold, A, B)))
score("rewards.1", "rewards.2", "rewards.5", "rewards.9", "rewards.8")

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Rewards | |
# |---|---|
# | sentence | you train on a proxy; gold follows it until the new winners have less gold than those they replace, then it turns, and nothing in the loss shows it |
# | formula | one normal error: $\mathbb E[g\mid r]=r/(1+s^2)$, never turns · best of N: $\mathrm{KL}\le\log N-(N-1)/N$, equal while each answer is rare · RL: $\pi_{\text{ref}}e^{R/\beta}$ |
# | numbers | B, right on 92 % of pairs: gold 1.57 at N = 32, 0.50 at 256; A, right on 75 %: 1.98 at 256. At 2.5 nats under B: best of N 1.57, RL 0.26 |
# | the KL penalty | β chooses where on the curve of your pay you stop; it does not lift it. Against drift it helps: the sorter kept 40 of 47 |
# | GRPO | at the optimum: pass or fail climbs to what passes; graded scores turn. A run may also drift, or learn the easier pass |
# | what lifts it | another pay: the rank instead of the score; a cap where glitches are outnumbered |
# | which grader | the one with the most gold at the nats, and under the pay, that you will use |

# %% [markdown]
# ## Second sitting: what can a few gold labels buy?
#
# You own B. Gold exists, but each label costs. Two uses: to change the pay, and to stop in time.
#
# ### A cap
#
# Change what is paid: a score beyond the cap, above or below, is cut to it. All answers up there
# earn the same.

# %% jupyter={"source_hidden": true}
# the explorer
task("rewards.t2", capped_reward.capped_reward_explorer(),
     ("Best of N reached gold 1.57 under B. Reach 1.65 with a cap. Say "
      "first, with a reason: does the cap belong as high as gold goes, "
      "near 3.5, or lower? And once it is right, can a small β still do "
      "harm?", capped_reward.capped_well))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Lower, at 2. Answers above the cap tie, so what counts is *their* mean gold: 1.7 above 2, but 0.6
# above 3, where 82 in 100 are glitches. With the cap at 2 a small β is safe: as with pass or fail,
# gold climbs to what is up there, and stays. With the cap at 3 it turns: a small β leaves the
# honest answers between 2 and 3 for those that tie at 3. <!-- cited: 1.7, 0.6, 82 -->
# </details>
#
# How do you find that cap *without* looking at gold? You cannot: B's scores do not say which of
# them are glitches. But it is cheap. Label thirty of the starting policy's answers above each
# possible cap, and take the cap with the highest mean:

# %% jupyter={"source_hidden": true}
# folded: mean gold above each cap, and 2,000 tries with 30 labels each
caps, again = (1, 2, 3, 4), torch.Generator().manual_seed(1)
above = [gold[B > cap] for cap in caps]
tries = torch.stack([g[torch.randint(len(g), (2000, 30),
                                     generator=again)].mean(1)
                     for g in above])
for cap, g, n in zip(caps, above, tries.argmax(0).bincount(minlength=4)):
    print(f"above {cap}: mean gold {g.mean():.1f}, "
          f"chosen in {100 * n / 2000:.0f} of 100 tries")

# %% [markdown]
# So which grader would you buy? Plot gold *against* nats, and compare there:

# %% jupyter={"source_hidden": true}
# folded: RL under A, under B and under B capped at 2, at equal nats
capped = path([leashed(b, B.clamp(-2, 2)) for b in
               (10, 3, 1, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05)])
pictures.at_equal_nats(
    {"A": paths["A"]["RL"], "B": paths["B"]["RL"],
     "B, capped at 2": capped},
    "The capped grader is ahead up to about 3 nats, and there its line "
    "ends. A is careless and goes on.")

# %% [markdown]
# If you push up to about 3 nats, buy B and 120 labels for its cap. Beyond that buy A: the best
# answers of capped B all tie, so it has nothing left to choose from. (For a scale: Ziegler et al.
# steer β towards a few nats an answer, [statements 05](statements/05_kl.ipynb).)
#
# ### Can you see the turn coming?
#
# The other use is to stop in time. For best of N Gao et al. describe gold by $d\,(a-b\,d)$, with
# $d=\sqrt{\mathrm{KL}}$, $a$ and $b$ fitted. (Why a root? Under A gold is $1/\beta$ and the KL
# $1/\beta^2$.) The formula peaks at $d=a/2b$. You have labelled best of 2, 4, 8 and 16 under B,
# where gold still rises, and you fit.

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.7", "Gold peaks at 2.5 nats, N = 32. Where does the fit "
        "to N = 2 ... 16 put the peak?",
        ["near 1.5 nats: too early", "near 2.5 nats: about right",
         "near 3.5 nats: a little late", "beyond 10 nats: much too late"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: the formula fitted to N = 2 ... 16, and to N = 2 ... 64
nats = torch.tensor(paths["B"]["best of N"][0][1:])      # N = 2 ...
d, g = nats.sqrt(), torch.tensor(goldB[1:])
fits = {}
for last in (4, 6):
    a, b = fit_gao(d[:last], g[:last])
    fits[f"fitted up to N = {2**last}"] = (a, b, nats[last - 1].item())

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
peaks = [(a / (2 * b)) ** 2 for a, b, _ in fits.values()]
reveal("rewards.7", "beyond 10 nats: much too late",
       f"{peaks[0]:.0f} nats, since the points before the turn hardly "
       "bend. With N = 32 and 64 added, one of them beyond the top, the "
       f"fit says {peaks[1]:.1f}. In this toy the glitches are too rare to "
       "show before the turn. (Gao et al. report fits that held somewhat "
       "beyond their points.)",
       pictures.gao_fits(nats.tolist(), g.tolist(), fits),
       instead={
           "near 1.5 nats: too early":
           "Gold still rises there, and the points say so.",
           "near 2.5 nats: about right":
           "For that the points would have to bend before the top. They "
           "hardly do.",
           "near 3.5 nats: a little late":
           "Only once a point beyond the top is in.",
       })

# %% [markdown]
# **In this toy the turn cannot be extrapolated: keep labelling at every checkpoint, and stop when
# gold stops.**
#
# <details><summary>One level deeper: practice, and the toy's limits</summary>
#
# * **Three graders like B, paid their median.** If they glitch on different answers, two outvote
#   the third: best of 256 has gold 2.7, where one B has 0.5. If they share 30 of 100 glitches, 1.6,
#   and 0.5 at 1,024: shared glitches are rarer, and a harder search finds them
#   ([statements](statements/16_rewards.ipynb)). Several reward models: Coste et al. 2023,
#   [arXiv 2310.02743](https://arxiv.org/abs/2310.02743); that they share mistakes: Eisenstein et
#   al. 2023, [arXiv 2312.09244](https://arxiv.org/abs/2312.09244). <!-- cited: 2.7, 0.5, 1.6 -->
# * **In libraries.** TRL's GRPO takes `reward_funcs` (a list) and `reward_weights`; verl a
#   `compute_score` function. Neither knows gold. Best of N is a loop of your own.
# * **What the toy is not.** Its errors are drawn once and do not depend on gold. A policy that
#   *learns* can find whole families of glitches, so gold can fall below its start.
#   Here it falls back to the start at worst.
# </details>

# %%
score("rewards.7")

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 5 minutes. Without looking back: the KL of best of n for a tensor of sizes.
#
# <details><summary>hint</summary>The density of the best is n u^(n−1). Mean of its log.</details>

# %% tags=["exercise"]
def my_kl(n):
    return ...

check.best_of_n_kl(my_kl)

# %% [markdown]
# **2 Implement** · 8 minutes. *Rejection-sampling fine-tuning*: write N answers to each prompt,
# keep the best, train on it as in SFT. `rewards` (P, N). Return a 1 for each kept answer, else 0:
# from every prompt the highest reward, the first one if several share it, and none where even that
# is below `least`.
#
# <details><summary>hint</summary>argmax along a row gives the first of equals. What does it give where all are 0?</details>

# %% tags=["exercise"]
def my_keep_best(rewards, least):
    return ...

check.keep_best(my_keep_best)

# %% [markdown]
# **3 Several rewards** · 10 minutes. Right, short, polite: K rewards for an answer, `rewards` (P,
# G, K). GRPO sums them and takes the z-score. Then (right, rude) and (wrong, polite) have the same
# advantage in every group, and a reward with a large spread drowns the others. GDPO
# ([arXiv 2601.05242](https://arxiv.org/abs/2601.05242)) takes the z-score of *each* reward in its
# group and sums those. Return them, (P, G). (Its last step, one z-score over the batch, left out.)
#
# <details><summary>hint</summary>Which dimension are the answers to one prompt? What if all have the same reward?</details>

# %% tags=["exercise"]
def my_advantages(rewards):
    return ...

check.several_rewards(my_advantages)

# %% [markdown]
# **4 Find the silent bug** · 8 minutes. You have K *sampled* answers to one prompt, with gold and
# score, and want the mean gold of best of n for every n up to K, without drawing more. This passes
# its tests: n = 1 gives the mean, the weights sum to 1.

# %%
print(check.silent_bug_rewards.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>On this page the 4,096 answers were all there are. Here they are a sample. What must come out for n = K?</details>

# %% tags=["exercise"]
def my_test(estimate):
    return ...

check.silent_bug_rewards(my_test)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>What is reward over-optimisation, and how do you notice it?</b></summary>
#
# Past some point pushing on a proxy lowers what you want: the answers that a harder push adds win
# by errors. The training log cannot show it, since it only holds the proxy. Keep a gold measure,
# held-out tests, human labels or an untouched grader, plot it against KL at every checkpoint, and
# read the top-scored answers.
# </details>
# <details><summary><b>Does a KL penalty prevent reward hacking?</b></summary>
#
# It helps against drift: our sorter kept 40 of 47 problems with it, and none without. Against a pay
# whose errors are exploited it only decides how far you go: 2.5 nats bought glitches and gold 0.26
# in our toy. Gao et al. saw a penalty act like early stopping.
# </details>
# <details><summary><b>Derive the KL of best of N.</b></summary>
#
# It is log N − (N−1)/N. The rank u of one answer is uniform, that of the best has density
# N u^(N−1). The mean of the log of that is log N + (N−1) E[log u], and E[log u] = −1/N. Exact
# while every single answer is rare and scores do not tie, else an upper bound: with two equally
# likely answers the KL never passes log 2.
# </details>
# <details><summary><b>Reward model X is right on 92 % of pairs, Y on 75 %. Which?</b></summary>
#
# Unknown: pairs test the middle, training lives at the top. Ask for gold of best of N at the N, or
# the KL, you will train to, and for what its highest-scored answers look like.
# </details>
# <details><summary><b>Our reward is verifiable. Can it be hacked?</b></summary>
#
# Yes, where the check is not the wish. A model paid for passing run_tests learned to rewrite
# run_tests. Pass or fail alone does not prefer a false pass: it keeps its share of the passes while
# it is no easier to learn than a true one. But on a hard prompt that share can be most, and where a
# false pass is easier (hard-coded tests), training finds it.
# </details>
#
# <details><summary><b>Best of N, rejection-sampling fine-tuning, RL: what differs?</b></summary>
#
# Where the selection happens. Best of N pays at every request. Fine-tuning on the picks moves it
# into the weights, once. RL repeats it, with wrong answers pushed down too, and follows the size of
# the reward unless it is normalised or cut. None teaches what is never sampled.
# </details>
#
# Judges, distillation, several rewards, and the sentences one hears:
# [statements 16](statements/16_rewards.ipynb). The exercises, solved:
# [solutions 16](solutions/16_rewards.ipynb).
#
# **Next: [17](17_evaluation.ipynb).** What did training change?
