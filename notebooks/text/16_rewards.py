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
# **After this page** you can tell whether the pay or the training loses what you wanted, measure a
# push in nats, and say what a KL penalty does about it.
#
# 34 minutes, then 13 in a second sitting · exercises 31 more · after 05 (KL), 08 (GRPO) · Gao et
# al. 2023, [arXiv 2210.10760](https://arxiv.org/abs/2210.10760)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Which policy maximises E[R] − β KL(π‖π_ref)?</summary>π_ref(y) exp(R(y)/β), divided by what makes it sum to 1 (05).</details>
# <details><summary>2. KL(π‖π_ref) is a mean of what, over whose answers?</summary>Of log π(y) − log π_ref(y), over π's own answers; in nats (05).</details>
# <details><summary>3. What does GRPO do with a group in which all rewards are equal?</summary>Nothing: every advantage is 0 (08).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import json
import torch
from rlnb import check
from rlnb.classroom.explorers import capped_reward, rare_glitch
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import drift, rewards as pictures
from rlnb.shipped import data_folder
from rlnb.toys.proxy import (answer_pool, best_of_n_kl,
                             group_pay, kl_to_uniform)
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Five numbers to sort
#
# **Gold** is what you want. A grader gives an answer a **score**, a proxy for gold. Training
# **pays** the score, or something made of it.
#
# A small transformer is to sort: `27,68,66,11,15?` Gold is the right list. The grader scores 1 for
# any five numbers in order, else 0, and the score is paid. Training is Dr. GRPO with AdamW,
# learning rate 3e-4, 40 steps of 64 answers, three seeds. The test is 100 held-out problems, four
# answers each: a share of 400 independent answers has a
# standard error of about 2.5 points. <!-- cited: 2.5 -->

# %%
pictures.paid_and_true()

# %% [markdown]
# On the left the pay rises, from 0.85 to 0.91. Of 100 answers 47 were right before, and none after.
# One list is right, 91,962,520 are in order, and the grader cannot tell them apart.
# <!-- cited: 0.85, 0.91 -->
#
# What does the trained model write?

# %% jupyter={"source_hidden": true}
# folded: three answers of seed 0, before and after
said = json.loads((data_folder() / "runs"
                   / "sort_is_sorted_answers.json").read_text())["answers"]
last = max(one["step"] for one in said)
before, after = ([one for one in said if one["step"] == step][:3]
                 for step in (0, last))
for old, new in zip(before, after):
    print(f"{old['prompt']:16} before {old['completion']:16} "
          f"after {new['completion']}")

# %% [markdown]
# A control: a *coin* pays four of five answers, whatever they say.

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.1", "The same model, the same 40 steps, but paid by the "
        "coin. How many answers of 100 are right after it?",
        ["about 60: it was unlearning that hurt",
         "about 47: a coin teaches nothing",
         "about 25: it forgets at half the speed",
         "none: it forgets all the same"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("rewards.1", "none: it forgets all the same",
       "In all three seeds (left). A coin's gradient is 0 on average, but "
       "not in a single step: some answers of a group are paid, others "
       "are not. AdamW cancels the scale of a gradient, so a step made "
       "only of noise is not a small step. The weights move, and nothing "
       "leads them back. Pay for the right list has a direction. Steps in "
       "one direction add up, random steps partly cancel. In smaller and "
       "more steps pay for the right list teaches (right).",
       drift.three_pays(),
       instead={
           "about 60: it was unlearning that hurt":
           "The coin does not care for right answers either.",
           "about 47: a coin teaches nothing":
           "It teaches nothing, and yet it moves the weights.",
           "about 25: it forgets at half the speed":
           "After ten steps, a quarter of them, 3 to 5 of 100 are left.",
       })

# %% [markdown]
# So noise alone *can* take all gold. Add a KL penalty (k3 in the loss, 05), β = 1, to the coin's
# run.

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.9", "Paid by the coin, with the penalty. What happens to "
        "the 47 of 100 right answers?",
        ["lost as before: a coin has no pull to resist",
         "lost more slowly: it makes each step smaller",
         "mostly held: each step away meets a pull back",
         "raised: its pull is the only signal left"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
kept, gain = drift.penalty_ends(), drift.gained(3e-5)
reveal("rewards.9", "mostly held: each step away meets a pull back",
       f"{kept['coin', 1.0]} of 100 are right at the end, and hardly any "
       "are lost after step 10. The noise has no direction, the penalty's "
       "pull has one: back to the start. The run paid for any list in "
       "order is held as well. The price: paid for the right list, in "
       f"small steps, the model gains {gain[1.0]} of 100 with this "
       f"penalty and {gain[0.0]} without (far right).",
       drift.penalised_pays(),
       instead={
           "lost as before: a coin has no pull to resist":
           "The penalty does not act on the pay. It acts on where the "
           "policy is.",
           "lost more slowly: it makes each step smaller":
           "Then the loss would go on to step 40. It ends by step 10.",
           "raised: its pull is the only signal left":
           "It pulls to the start, which had 47.",
       })

# %% [markdown]
# Does the penalty preserve the skill itself? Compare runs at equal KL to the start:

# %%
drift.right_and_nats()

# %% [markdown]
# At equal KL, runs with a penalty have about as many right answers as runs without. **The penalty
# held these runs near the start. It did not change what a given KL costs.**
#
# Did these two pays *ask* for the loss? With a KL penalty, however small, a pay's optimum is the
# starting policy reweighted by $e^{R/\beta}$ (05). The coin pays all answers alike: 47 of 100 stay
# right. Of the start's answers 85 in 100 were in order, the 47 right ones among them. Pay for order
# can at most drop the 15 others: then about
# $47/85$, or 55 in 100, are right. The runs ended at 0. So
# neither pay asked for the loss. <!-- cited: 47, 85, 15, 55 -->
#
# * **The training loses gold** that the pay's optimum keeps. Noise can do it, as the coin shows:
#   the policy **drifts**. An easier way to be paid can do it, too: a 4B model, paid when its code
#   passed `run_tests`, learned in every run to rewrite that function
#   ([a public study](https://www.alignmentforum.org/posts/R5MdWGKsuvdPwGFBG/steering-rl-training-benchmarking-interventions-against)).
# * **The pay loses gold**: wrong answers are paid *more* than right ones, so the optimum itself
#   moves to them. This is **over-optimisation**, the subject from here on.
#
# <details><summary>One level deeper: random rewards that raised a score</summary>
#
# Shao et al. 2025 ([arXiv 2506.10947](https://arxiv.org/abs/2506.10947)) paid at random, and
# Qwen2.5-Math-7B gained 21 points on MATH-500; the right reward gave 29. Llama 3 and OLMo 2 often
# gained nothing. <!-- cited: 21, 29, 65, 90 --> Their account: the clip favours what the policy
# does often already. In this model that was reasoning in code, from 65 % to over 90 % of its
# answers, and such answers are more often right. Our sorter uses each batch once: its clip never
# acts, and noise is left. What random pay moves depends on base, optimiser, batch and learning
# rate: of a second base, with 49 of 100 right, 400 steps a tenth as large on the coin left at most
# 16. So run the coin as a control at yours. <!-- cited: 49, 16 -->
# </details>
#
# ## Which grader would you buy?
#
# Now the pay alone. This toy does not train: 128 prompts with 4,096 answers each, all
# equally likely at the start. Gold is normal with std 1. Two graders score gold plus an error:
#
# * **A** is careless: its error has std 1 on every answer.
# * **B** is sharp: its error has std 0.2. But two answers of a hundred are glitches, and there its
#   error has std 10.

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
# Reward models are compared on pairs: how often does the better answer score higher?

# %% jupyter={"source_hidden": true}
# folded: on how many of 2,048 pairs a prompt the better one scores higher
def on_pairs(scores):
    better = gold[:, ::2] > gold[:, 1::2]
    agrees = better == (scores[:, ::2] > scores[:, 1::2])
    return agrees.double().mean()

print(f"right on pairs: A {on_pairs(A):.3f}, B {on_pairs(B):.3f}")

# %% [markdown]
# The simplest way to push is **best of N**: draw $N$ answers, keep the one with the highest score.

# %%
def best_of(N, scores):
    """(P, K): how often each answer is the best of N draws."""
    rank = scores.argsort(1).argsort(1) + 1      # 1 ... K
    # all N among the lowest k: (k / K)^N; less the same for k - 1
    return (rank / K) ** N - ((rank - 1) / K) ** N

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.2", "B chooses from 256 answers. A grader without error "
        "would pick gold 2.8. What does B pick?",
        ["about 2.7: most of its scores are sharp",
         "about 2: two glitches in 100 cost little",
         "about 1.5: it picks a glitch now and then",
         "about 0.5: it mostly picks a glitch"])

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
       f"{goldB[8]:.2f}, where careless A has {goldA[8]:.2f}. Of 256 about "
       "five glitch, and about half of those upwards. One of them mostly "
       "has the highest score. Under B gold is highest at N = 32, and "
       "then it falls. This fall is "
       "called **over-optimisation**.",
       pictures.score_and_gold(
           draws, {"A": (scoreA, goldA), "B": (scoreB, goldB)}),
       instead={
           "about 2.7: most of its scores are sharp":
           "Most are. But the winner is the highest score, not most "
           "scores.",
           "about 2: two glitches in 100 cost little":
           "In 100 answers taken at random they do not. Here 256 are "
           "searched for the highest score.",
           "about 1.5: it picks a glitch now and then":
           "Count them: how many of 256 answers glitch?",
       })

# %% [markdown]
# **The grader that is right on more pairs can be the worse one to push with.**
#
# ## What does a score tell?
#
# How much gold $g$ is to be expected behind a score $r$? The error $e$ has variance $s^2$, gold has
# variance 1:
#
# $$\begin{aligned}
# r&=g+e&&\text{what the grader sees. }\textbf{Assumed: both normal, independent}\\
# \mathrm{Cov}(g,r)&=\mathrm{Var}(g)=1&&e\text{ is independent of }g\\
# \mathrm{Var}(r)&=1+s^2&&\text{variances add}\\
# \mathbb E[g\mid r]&=\frac{\mathrm{Cov}(g,r)}{\mathrm{Var}(r)}\,r=\frac{r}{1+s^2}&&\text{for normal numbers: the regression line}
# \end{aligned}$$
#
# For A this is $r/2$: a higher score always promises more gold, and gold never turns. For B,
# average over "glitch" and "no glitch", by their chances at that score:

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
# A gold of 8 is eight stds out, an error of 8 an ordinary glitch. **Under B, from a score of about
# 3 on, a higher score is mostly a larger error.**

# %% jupyter={"source_hidden": true}
# the explorer
task("rewards.t1", rare_glitch.rare_glitch_explorer(),
     ("Build a grader that is right on more pairs than B, on at least "
      "93.2 %, and yet so bad to push with that its best of 1,024 has "
      "less gold than its best of 4. Say first: fewer glitches, or smaller "
      "ones?",
      rare_glitch.accurate_and_ruinous))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Fewer, but as large: one in two hundred answers. Smaller ones at 2 % are harmless at size 1, as
# wide as gold itself; at size 3 gold already turns.
# </details>
#
# **A test on pairs cannot see this:** it compares typical answers, never the best of 1,024.
#
# <details><summary>One level deeper: B's tails, and real reward models</summary>
#
# Errors that are large far more often than normal ones are **heavy-tailed**. For such errors Kwa et
# al. 2024 ([arXiv 2407.14503](https://arxiv.org/abs/2407.14503)) prove that the score can rise
# without limit, at hardly any KL, while gold stays where it began. The reward models they measured
# looked light-tailed. Gao et al. measured other ones, and there gold turned. A likely further
# cause: the error was small on answers like those the reward model learned from, and training
# leaves them. Then label answers of the trained policy and train the reward model again.
# </details>
#
# ## How hard was that push?
#
# The KL to the starting policy measures any push. For best of $N$, let an answer's **rank** $u$ be
# the share of the policy's answers that score lower:
#
# $$\begin{aligned}
# \Pr(u\le x)&=x&&\text{one draw: }u\text{ is uniform. }\textbf{Assumed: each answer is rare, no two score alike}\\
# \Pr(u_{\text{best}}\le x)&=x^N&&\text{all }N\text{ draws must be below, independently}\\
# \frac{\pi_{\text{best}}}{\pi}&=N\,u^{N-1}&&\text{differentiate both lines, divide}\\
# \mathrm{KL}&=\mathbb E_{\text{best}}\big[\log N+(N-1)\log u\big]&&\text{mean of the log-ratio, over best's own answers}\\
# &=\log N-\frac{N-1}{N}&&\textstyle\int_0^1 N u^{N-1}\log u\,du=-\frac1N\text{, by parts}
# \end{aligned}$$
#
# With ties, or frequent answers, it is an upper bound. The toy ends at $\log 4{,}096$:

# %% jupyter={"source_hidden": true}
# folded: the formula against the toy
for N in (32, 256, 10**6):
    exact = kl_to_uniform(best_of(N, B)).mean().item()
    print(f"best of {N:9,d}: formula {best_of_n_kl(N):5.2f}, "
          f"toy {exact:5.2f} nats")

# %% [markdown]
# **KL grows like $\log N$**, and under B few nats ruin gold: best of 256 is at 4.55.
# <!-- cited: 4.55 -->
#
# ## Does a KL penalty help here too?
#
# Pay RL a number $R$, with a KL penalty. Its optimum is
# $\pi_\beta\propto\pi_{\text{ref}}\,e^{R/\beta}$ (recall 1). We let $R$ be B's score or, for
# comparison, the score's rank $u$: which answer is better, not by how much.

# %%
def leashed(beta, scores):
    """Maximises E[score] - beta KL, for a uniform start."""
    return (scores / beta).softmax(1)

# %% [markdown]
# Best of 32 under B costs 2.5 nats and has gold 1.57, the peak of its curve. Give RL, paid the
# score, the same 2.5 nats.

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.5", "RL, paid B's score, at 2.5 nats: what gold has its "
        "optimum?",
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
                "RL, paid the score": path([leashed(b, s) for b in betas])}
         for name, s in (("A", A), ("B", B))}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
for name, s in (("A", A), ("B", B)):
    rank = s.argsort(1).argsort(1) / K
    paths[name]["RL, paid the rank"] = path(
        [leashed(b, rank) for b in (1, 0.3, 0.1, 0.05, 0.03, 0.01)])
worth = paths["B"]["RL, paid the score"][1]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("rewards.5",
       "about 0.25: it spends them on glitches",
       f"{worth[3]:.2f}, and no β brings more. A prompt's highest score "
       f"is a glitch, on average {B.max(1).values.mean():.0f}, and "
       "the weight e^(R/β) grows with the size of a score. Best of N uses "
       "only ranks. RL paid the rank (triangles) "
       "lies on its curve. **At equal nats gold depends on the pay.**",
       pictures.one_ruler(paths),
       instead={
           "about 1.0: it finds somewhat more glitches":
           "Look at how it weighs what it finds: e^(R/β).",
           "about 1.57: equal nats buy equal gold":
           "Equal nats say how far a policy goes, not where to.",
           "above 1.57: it is the best use of 2.5 nats":
           "No policy at 2.5 nats has a higher mean score. Gold is not the "
           "score.",
       })

# %% [markdown]
# **At the optimum β chooses where on the curve of your pay you stop. It does not lift the curve.**
# Under A a penalty only costs gold. Under B no β helps much: gold is 0.26 at best.
# <!-- cited: 0.26 -->
#
# ## Your pay goes up and gold down: which is it?
#
# Draw answers from the *starting* policy, weigh them by $e^{R/\beta}$, and find the β with the nats
# of your run. Their gold is what your pay asks for, without training. Reweighting reaches at most
# $-\log$ of the share with the highest pay: 0.16 nats for lists in order, 85 in 100. A run that has
# gone further is compared with that end. <!-- cited: 0.16, 85, 47, 55, 0.26, 2.5, 1.57 -->
#
# | the run's gold is | verdict | what helps | on this page |
# |---|---|---|---|
# | well below | the training loses it | a KL penalty, another learning rate or batch; if it found a hack, a better check | the sorter: 0, where its pays ask for 47 (coin) to about 55 (in order) |
# | level with it, and low | the pay loses it | another pay, fewer nats | grader B: 0.26 at 2.5 nats, where the rank has 1.57 |
#
# **Another pay can lift the curve. At the optimum a penalty cannot.** Which curve has GRPO, which
# pays a z-score? That is the second sitting.

# %% jupyter={"source_hidden": true}
# your guesses so far
toy = answer_pool()
assert all(torch.equal(x, y) for x, y in zip(toy, (gold, A, B)))
score("rewards.1", "rewards.9", "rewards.2", "rewards.5")

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Rewards | |
# |---|---|
# | sentence | gold is lost by the pay, or by the training; the start's answers, reweighted by the pay to the run's nats, tell which |
# | formula | $\mathbb E[g\mid r]=r/(1+s^2)$ · best of N: $\mathrm{KL}\le\log N-\frac{N-1}N$ |
# | numbers | best of 256: gold 0.50 under B (right on 92 % of pairs), 1.98 under A (75 %) |
# | KL penalty | holds you near the start, on the curve of your pay; sorter paid by a coin: 40 of 100 right, from 47, without it none |
# | which grader | the most gold at your nats, under your pay |

# %% [markdown]
# ## Second sitting: pass or fail, and a few gold labels
#
# ### You run GRPO. Which curve is yours?
#
# GRPO pays an answer its z-score in its group. Or let B pass all scores above 2 and fail the rest;
# a glitch that passes is a **false pass**. One group of eight, with a glitch that scores 18:

# %% jupyter={"source_hidden": true}
# folded: the pay of one group, by its score and by pass or fail
scores = torch.tensor([18.0, 2.3, 1.1, 0.6, 0.2, -0.3, -0.8, -1.4])
for name, r in (("score", scores), ("passes", (scores > 2).double())):
    z = (r - r.mean()) / r.std(correction=0)
    print(f"z of the {name:7}", *(f"{x:5.1f}" for x in z))

# %% [markdown]
# Which pay does an answer get on average? Here $R$ is its mean z-score beside seven answers of the
# *starting* policy. These opponents stay fixed, so the optimum is $e^{R/\beta}$ as before.

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.8", "GRPO on pass or fail. β goes to 0: the push grows "
        "without limit. What does gold do?",
        ["it rises, then falls: the false passes spread",
         "it rises and stays: the false passes keep their share",
         "it rises, then falls to 0: one glitch takes all",
         "it hardly rises: the false passes eat the nats"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: what GRPO pays an answer, and the RL optimum for that pay
fresh, even = torch.Generator().manual_seed(3), torch.full((P, K), 1 / K)
passed = (B > 2).double()
pay = group_pay(passed, even, fresh, groups=48)
graded = group_pay(B, even, fresh, groups=16)
strengths = (4, 2, 1.5, 1, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1)
grpo = {"GRPO's z-score of pass or fail": path(
            [leashed(b, pay) for b in strengths]),
        "GRPO's z-score of the score": path(
            [leashed(b, graded) for b in strengths]),
        "the score itself": paths["B"]["RL, paid the score"]}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
turn = grpo["GRPO's z-score of the score"]
share = (passed * glitches).sum() / passed.sum()
reveal("rewards.8",
       "it rises and stays: the false passes keep their share",
       "Every pass is paid alike, so no β moves probability from a true "
       f"pass to a false one: {100 * share:.0f} in 100 passes are false at "
       "the start, and at the end. Gold climbs to the mean of what "
       "passes. **GRPO on B's score** (black): gold turns at about "
       f"{max(turn[1]):.1f}, between the score itself (0.26) and its rank "
       "(1.57). A z-score among eight is at most √7, so a huge glitch is "
       "paid little more than a large one. That lifts the curve. But a "
       "glitch is still paid more than a good answer, and so it turns.",
       pictures.at_equal_nats(
           grpo, "Grader B. The blue line ends where all probability is on "
           "passes."),
       instead={
           "it rises, then falls: the false passes spread":
           "For that they would have to be paid more than true passes.",
           "it rises, then falls to 0: one glitch takes all":
           "So it is when the score itself is paid. Here a glitch is one "
           "pass among many.",
           "it hardly rises: the false passes eat the nats":
           "Three of four passes are true, at every β.",
       })

# %% [markdown]
# In a real group the opponents come from the current policy. Passes are still paid alike then, and
# under the score gold still turns ([statements](statements/16_rewards.ipynb)).
#
# **At the optimum, pay that cannot tell two answers apart cannot prefer the worse one.** Up to
# about 1.3 nats the graded score has more gold; after that pass or fail has. <!-- cited: 1.3 -->
#
# You own B. Gold labels exist, and each costs. Two uses: to change the pay, and to stop in time.
#
# ### A cap
#
# A score beyond the cap, above or below, is cut to it and then paid. All answers up there earn the
# same.

# %% jupyter={"source_hidden": true}
# the explorer
task("rewards.t2", capped_reward.capped_reward_explorer(),
     ("With β at its smallest, which cap has the most gold? Say first, "
      "with a reason. Then find it.",
      capped_reward.best_cap_at_no_leash))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# A cap at 2: gold 1.73, against 0.78 at a cap of 3. All scores above the cap are paid alike. So as
# β goes to 0, gold tends to the *mean* gold above the cap, 1.72 and 0.64, and what a score *at* the
# cap promises does not count. Above 3, 82 in 100 answers are glitches; above 2, 26.
# <!-- cited: 1.73, 0.78, 1.72, 0.64, 82, 26 -->
# </details>
#
# How do you find that cap? B's scores do not say from where on glitches outnumber good answers.
# Gold labels do. Label thirty of the starting policy's answers above each possible cap, and take
# the cap with the highest mean:

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
# So which grader would you buy? Compare gold at equal nats:

# %% jupyter={"source_hidden": true}
# folded: RL under A, under B and under B capped at 2, at equal nats
capped = path([leashed(b, B.clamp(-2, 2)) for b in
               (10, 3, 1, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.01)])
pictures.at_equal_nats(
    {"A": paths["A"]["RL, paid the score"],
     "B": paths["B"]["RL, paid the score"], "B, capped at 2": capped},
    "The capped grader is ahead up to about 3 nats. Its line ends at 3.4, "
    "where all probability is above the cap. A goes on.")

# %% [markdown]
# Up to about 3 nats, buy B and 120 labels for its cap. Beyond that, A: the best answers of capped B
# all tie, so it has nothing left to choose from.
#
# **What was measured on trained reward models.** Gao et al.: gold of best of N follows
# $d\,(a-b\,d)$ with $d=\sqrt{\mathrm{KL}}$, of RL $d\,(a-b\log d)$; larger reward models reach more
# gold before they turn; RL spends far more KL than best of N for the same gold. Under A RL spends
# no more here, because its *optimum* is drawn. A run also spends nats that buy nothing, as the
# coin's did.
#
# One limit of the toy: its errors do not depend on gold. A policy that *learns* can find whole
# families of glitches, and gold can fall below its start.

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
# **3 Several rewards** · 10 minutes. Pay may be made of several scores: `rewards` (P, G, K), K for
# each of the G answers to a prompt. Say right and polite, 1 or 0: (1, 0), (0, 1), (1, 1), (0, 0).
# GRPO sums first: 1, 1, 2, 0. If one reward has a large spread, it drowns the others. GDPO
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
# Past some point a harder push on the score lowers what you want: the answers it adds win by
# errors. The training log cannot show it, since it holds only the score. Keep a gold measure,
# held-out tests, human labels or an untouched grader, plot it against KL at every checkpoint, and
# read the top-scored answers. Gao et al. 2023 fit gold with d the root of the KL: d (a − b d) for
# best of N, d (a − b log d) for RL; larger reward models reach more gold before they turn.
# </details>
# <details><summary><b>Does a KL penalty prevent reward hacking?</b></summary>
#
# No. It chooses where on the curve of your pay you stop, and it does not lift the curve. So it
# helps only where gold falls with KL: past the peak if the pay is at fault, from the start if the
# training drifts. A small sorter paid by a coin kept 40 of 100 right with β = 1, from 47, and none
# without; at equal KL it was no better. The price: the penalty slows learning from a right pay too.
# Gao et al. saw a penalty act like early stopping.
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
# Unknown: pairs compare typical answers, training searches for the highest scores. Take the one
# with the most gold at your nats, under your pay. In a toy, the grader right on 92 % of pairs
# glitched on two answers of a hundred, and its best of 256 was worth a quarter of the other's.
# Cheapest first look: the highest-scored answers.
# </details>
# <details><summary><b>Which hacks do you expect from a learned reward model, and what do you do?</b></summary>
#
# Length ([2310.03716](https://arxiv.org/abs/2310.03716)), agreeing with the user
# ([2310.13548](https://arxiv.org/abs/2310.13548)), lists and a confident tone, and phrases nobody
# thought of. Look: score against length, the top-scored answers, a little gold. Then: a penalty or
# matched pairs for a hack you can name; several reward models, paying a low or middle score
# ([2310.02743](https://arxiv.org/abs/2310.02743)), which helps as far as they err apart; new labels
# on the policy's own answers, and train the reward model again. Each hack closed makes the next
# one worth finding, so keep measuring.
# </details>
# <details><summary><b>Our reward is verifiable. Can it be hacked?</b></summary>
#
# Yes, where the check is not the wish. A model paid for passing run_tests learned to rewrite
# run_tests: wrong answers were paid as much as right ones and were easier to reach. Pass or fail
# alone does not prefer a false pass: at the optimum false passes keep their share of all passes.
# But on a hard prompt that share can be most, and a run finds first what is easier to reach.
# </details>
#
# <details><summary><b>Best of N, rejection-sampling fine-tuning, RL: what differs?</b></summary>
#
# Where the selection happens. Best of N costs N answers at every request. Fine-tuning on the picks
# moves it into the weights, once. RL repeats it, with wrong answers pushed down too, and follows
# the size of the reward unless it is normalised or cut. None teaches what is never sampled.
# </details>
#
# Judges, distillation, several rewards, and the sentences one hears:
# [statements 16](statements/16_rewards.ipynb). The exercises, solved:
# [solutions 16](solutions/16_rewards.ipynb).
#
# **Next: [17](17_evaluation.ipynb).** What did training change?
