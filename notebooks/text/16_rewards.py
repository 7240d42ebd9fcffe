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
# 35 minutes, then 13 in a second sitting · exercises 31 more · after 05 (KL), 08 (GRPO) · Gao et
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
from rlnb.classroom.pictures import pipeline, rewards as pictures
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
# The pay rises. (At this learning rate even the right pay, on the right, teaches little.) Before
# training 47 of 100 held-out problems were solved, and after it none. For
# each prompt one list is right, but 91,962,520 lists are in order, and the grader cannot tell them
# apart.
#
# Did the pay teach the model to forget the given numbers? The test is a *coin*: it pays four of
# five answers, whatever they say.

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.1", "Same model, same 40 steps, but paid by the coin. How "
        "many of 100 problems are solved after it?",
        ["about 60: it was unlearning that hurt",
         "about 47: a coin teaches nothing",
         "about 25: it forgets at half the speed",
         "none: it forgets all the same"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("rewards.1", "none: it forgets all the same",
       "In all three seeds, and sooner than under the grader. In a group "
       "some answers are paid and some are not, so there are advantages, "
       "and every step moves the weights. Only a pay that notices the loss "
       "pulls it back. In small steps (right) the right list is learned, "
       "and the other two still lose.",
       pictures.three_pays(),
       instead={
           "about 60: it was unlearning that hurt":
           "The coin does not care for right answers either.",
           "about 47: a coin teaches nothing":
           "It teaches nothing, and yet it moves the weights.",
           "about 25: it forgets at half the speed":
           "It forgets at least as fast: nothing pulls back.",
       })

# %% [markdown]
# What you want is called **gold**. What you can compute and pay is a **proxy**. A proxy fails in
# two ways. It can leave gold *unprotected*, as here: gold drifts away, and the pay does not notice.
# (A KL penalty could help, as it charges for every change; not run here.) Or its error is
# *exploited*: what is wrong is paid better, and training goes there. The rest of the page is about
# the second. Larger models show it: a 4B model was paid when its code passed a function
# `run_tests`, and in every run it learned to write that function anew
# ([a public study](https://www.alignmentforum.org/posts/R5MdWGKsuvdPwGFBG/steering-rl-training-benchmarking-interventions-against)).

# %% jupyter={"source_hidden": true}
# the picture
pipeline.pipeline("rewards", caption=(
    "This page changes one box. The boxes behind it see only a number."))

# %% [markdown]
# **The reward can rise while the thing that you wanted disappears.**
#
# ## Which grader would you buy?
#
# The sorter's check was plainly bad. Reward models and judges are right most of the time. How right
# is right enough?
#
# The toy of this page has 128 prompts with 4,096 possible answers each, all equally likely at the
# start. Gold is normal with std 1. Two graders see gold plus an error, so a score is read on gold's
# scale: 1 is one std of gold.
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
# On pairs B is far ahead. Now use both graders. The simplest push is **best of N**: draw $N$
# answers and keep the one with the highest score.
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
# Up to about 3 the score means what it says. A score of 8 means nothing: a gold of 8 would be eight
# stds out, and an error of 8 is an ordinary glitch. The more answers compete, the more winners come
# from up there: few at $N=16$, most at $N=256$. **Beyond some score, a higher score
# means a larger error.**
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
# &=\log N+(N-1)\cdot\Big(-\frac1N\Big)&&\textstyle\int_0^1 N u^{N-1}\log u\,du=-\frac1N\text{, by parts}\\
# \mathrm{KL}&=\log N-\frac{N-1}{N}
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
# **Each doubling of $N$ adds at most $\log 2$ nats, so KL grows like $\log N$.** That is little,
# but it is not harmless: the best of 256 that ruined gold is 4.5 nats from the start.
#
# ## Does a KL penalty protect you?
#
# Does the KL penalty of RL keep gold from falling? On raw scores RL's exact optimum is
# $\pi_\beta\propto\pi_{\text{ref}}\,e^{R/\beta}$ (recall 1), with the score as $R$:

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
        ["above 1.57: it is the best one can do with 2.5 nats",
         "about 1.57: equal nats, equal gold",
         "about 1.0: it finds somewhat more glitches",
         "about 0.25: the glitches eat the nats"])

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
kl, worth = paths["B"]["RL"]
spent = leashed(3.4, B)
on_them = mean(spent, glitches.double())
honest = mean(spent, gold * ~glitches) / (1 - on_them)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("rewards.5",
       "about 0.25: the glitches eat the nats",
       f"{worth[3]:.2f}, and no β brings more. 2.5 nats mean β = 3.4. "
       "A prompt's highest scores, up to 25, are glitches, and each weighs "
       f"e^(R/β). In the mean over prompts {100 * on_them:.0f} % of the "
       "probability moves to them, and that is what the nats are "
       f"spent on. The other answers hardly move: gold {honest:.2f}. "
       "**Equal nats are not equal harm.**",
       pictures.one_ruler(paths),
       instead={
           "above 1.57: it is the best one can do with 2.5 nats":
           "It is the best in score.",
           "about 1.57: equal nats, equal gold":
           "Equal nats say how far a policy goes, not where to.",
           "about 1.0: it finds somewhat more glitches":
           "Look at how it weighs what it finds: e^(R/β).",
       })

# %% [markdown]
# Why do the answers without a glitch gain so little? Under B, 2.5 nats means $\beta=3.4$. Weighting
# a normal of std 1 by $e^{g/\beta}$ moves its mean to $1/\beta$, and $1/3.4$ is 0.29.
#
# Why is best of $N$ safer? It asks who comes first, and not by how much. Pay RL the rank $u$ of an
# answer, the share that scores lower, and RL comes close to the curve of best of $N$ (triangles).
#
# **β chooses where on the curve of your pay you stop. It does not lift that curve.** In this toy
# that is so by construction, as β is all that moves. Gao et al. measured it on trained reward
# models: runs with and without a penalty lay on one curve.
#
# Are real reward models heavy-tailed? Those that Kwa et al. measured looked light-tailed, and yet
# gold turns in Gao's runs. A trained reward model has a second way to fail: its error was small on
# answers like those it learned from, and training leaves them. Then what counts is the error where
# the policy goes, not the error at the start.
#
# <details><summary>One level deeper: best of N is RL, too; and GRPO's z-score</summary>
#
# Look at the third line of the derivation: $N u^{N-1}=N e^{(N-1)\log u}$. That is
# $\pi_{\text{ref}}\,e^{R/\beta}$ with the pay $\log u$ and $\beta=1/(N-1)$. Best of $N$ is RL that
# is paid by rank.
#
# GRPO's z-score bounds the pay: in a group of eight a glitch of 30 gets at most √7, about 2.6, and
# $e^{R/\beta}$ is bounded with it. So the 0.26 belongs to raw scores. Paid the mean z-score that an
# answer has among seven others of the starting policy, RL under B reaches gold 0.9 at 2.5 nats, and
# turns at 1.3 nats: between score and rank ([statements](statements/16_rewards.ipynb)). Dr. GRPO
# does not divide by the std, and there the glitch gets 26. <!-- cited: 2.6, 26, 0.9, 1.3 -->
# </details>
#
# What does lift it? Another pay: the rank, a cap (second sitting), a better grader.
#
# **Judge a grader by its gold at the nats you will spend, and not by pairs.** In a real run, plot
# gold at every checkpoint beside score and KL: held-out tests, or a grader that is never trained
# on. And read the answers with the *highest* scores: in a random sample two glitches in 100 look
# like nothing.

# %% jupyter={"source_hidden": true}
# your guesses so far
toy = answer_pool()
assert all(torch.equal(x, y) for x, y in zip(toy, (gold, A, B)))
score("rewards.1", "rewards.2", "rewards.5")

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | Rewards | |
# |---|---|
# | sentence | you train on a proxy; gold follows it until the new winners have less gold than those they replace, then it turns, and nothing in the loss shows it |
# | formula | one normal error: $\mathbb E[g\mid r]=r/(1+s^2)$, never turns · best of N: $\mathrm{KL}\le\log N-(N-1)/N$, equal while each answer is rare · RL: $\pi_{\text{ref}}e^{R/\beta}$ |
# | picture | gold against KL rises, turns and falls; the score only rises |
# | numbers | B, right on 92 % of pairs: gold 1.57 at N = 32, 0.50 at 256; A, right on 75 %: 1.98 at 256. At 2.5 nats under B: best of N 1.57, RL 0.26 |
# | the KL penalty | β chooses where on the curve of your pay you stop; it does not lift it |
# | what lifts it | another pay: the rank instead of the score; a cap where glitches are outnumbered |
# | which grader | the one with the most gold at the nats you will spend |

# %% [markdown]
# ## Second sitting: can you buy safety, or see the turn coming?
#
# ### What lifts the curve?
#
# Change what is paid. The simplest change is a *cap*: a score beyond ± the cap is cut to it, so all
# answers up there earn the same. Where would you put it?

# %% jupyter={"source_hidden": true}
# the explorer
task("rewards.t2", capped_reward.capped_reward_explorer(),
     ("Best of N reached gold 1.57 under B. Reach 1.65 with a cap. Say "
      "first where the cap belongs: as high as gold goes, near 3.5, or "
      "lower?", capped_reward.capped_well))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# Lower: a cap of 2 and β of 0.2 or less. All answers above the cap tie, so ask who is up there.
# Above 2, 26 in 100 are glitches, and their mean gold is 1.7. Above 3, 82 in 100 are, and it is
# 0.6. A cap helps where the glitches are still outnumbered. <!-- cited: 26, 1.7, 82, 0.6, 0.09 -->
# </details>
#
# So which grader would you buy? Plot gold *against* nats, and compare there. (At equal $\beta$ the
# nats differ: $\beta=3.4$ spends 2.5 under B and 0.09 under A.)

# %% jupyter={"source_hidden": true}
# folded: RL under A, under B and under B capped at 2, at equal nats
capped = path([leashed(b, B.clamp(-2, 2)) for b in
               (10, 3, 1, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05)])
pictures.which_to_buy({"A": paths["A"]["RL"], "B": paths["B"]["RL"],
                       "B, capped at 2": capped})

# %% [markdown]
# If you push little, buy B and cap it. Beyond about 3 nats buy A: the best answers of capped B all
# tie, so it has nothing left to choose from.
#
# ### Would three graders help?
#
# Buy three graders like B and pay the *median* of their scores. If they glitch on different
# answers, two outvote the third. But graders trained on the same comparisons err alike. Say that 30
# of 100 glitches are shared: there all three see the same wrong number.

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: three graders like B, and the median of their scores
def median_of_three(shared):
    """(P, K) scores; `shared` of the glitches hit all three alike."""
    own = torch.Generator().manual_seed(1)
    def draw(share, size, *shape):
        at = torch.rand(*shape, P, K, generator=own) < share
        return at, size * torch.randn(*shape, P, K, generator=own)
    alone, e = draw(0.02 * (1 - shared), 10.0, 3)
    small = 0.2 * torch.randn(3, P, K, generator=own)
    common, same = draw(0.02 * shared, 10.0)
    errors = torch.where(common, same, torch.where(alone, e, small))
    return gold + errors.median(0).values

# %% jupyter={"source_hidden": true}
# your guess
predict("rewards.6", "Best of 256. One grader B: 0.5. The median of three "
        "that share nothing: 2.7. And if they share 30 of 100 glitches?",
        ["about 2.5: most glitches are outvoted",
         "about 2.0: 30 of 100 of the gain is lost",
         "about 1.6: half of the gain is lost",
         "about 0.5: all of the gain is lost"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: gold of the best of N by the median
thirds = {"one grader B": goldB}
for shared, name in ((0.0, "median of three, none shared"),
                     (0.3, "30 of 100 glitches shared")):
    scores = median_of_three(shared)
    thirds[name] = [mean(best_of(N, scores), gold) for N in draws]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
one, none, some = thirds.values()
reveal("rewards.6",
       "about 1.6: half of the gain is lost",
       f"{some[8]:.2f}, and at 1,024 only {some[10]:.2f}. The shared "
       "glitches are rarer than one grader's own, so the top of the curve "
       "moves further out. But they stay to be found, and a search finds "
       "them.",
       pictures.medians(draws, thirds),
       instead={
           "about 2.5: most glitches are outvoted":
           "Most are. The search finds those that are not.",
           "about 2.0: 30 of 100 of the gain is lost":
           "Close. A search does not average, it picks.",
           "about 0.5: all of the gain is lost":
           "Not yet at 256: shared ones are rarer than one grader's own.",
       })

# %% [markdown]
# **Several graders help only as far as they err apart.**
#
# ### Can you see the turn coming?
#
# Gold costs labels, so you have few points. Gao et al. describe them by two formulas. In these $d$
# is $\sqrt{\mathrm{KL}}$, and $a$ and $b$ are fitted:
#
# $$\text{best of N: }\;d\,(a-b\,d)\qquad\qquad\text{RL: }\;d\,(a-b\log d)$$
#
# The first peaks at $d=a/2b$. You have labelled best of 2, 4, 8 and 16 under B, where gold still
# rises, and you fit.

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
# * **What else lifts the curve.** New comparisons on the policy's own answers; fixing the checker.
#   Several reward models: Coste et al. 2023, [arXiv 2310.02743](https://arxiv.org/abs/2310.02743);
#   that they share mistakes: Eisenstein et al. 2023,
#   [arXiv 2312.09244](https://arxiv.org/abs/2312.09244).
# * **In libraries.** TRL's GRPO takes `reward_funcs` (a list) and `reward_weights`; verl a
#   `compute_score` function. Neither knows gold. Best of N is a loop of your own.
# * **What the toy is not.** Its errors are drawn once and do not depend on gold. A policy that
#   *learns* can find whole families of glitches, so gold can fall below its start.
#   Here it falls back to the start at worst.
# </details>

# %%
score("rewards.6", "rewards.7")

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
# No, it decides how far you go. Where errors are small everywhere that helps. Where rare errors are
# large a little KL already buys them: 2.5 nats gave gold 0.26 in our toy. Gao et al. saw a penalty
# act like early stopping.
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
# run_tests. Unit tests get hard-coded, formats satisfied. A verifier shrinks the attack surface. A
# false pass keeps its share among the passes while it is as hard to write as a true one; where it
# is easier, training finds it.
# </details>
#
# <details><summary><b>Best of N, rejection-sampling fine-tuning, RL: what differs?</b></summary>
#
# Where the selection happens. Best of N pays at every request. Fine-tuning on the picks moves it
# into the weights, once. RL repeats it, with wrong answers pushed down too, and follows the size of
# the reward unless it is normalised or cut. None teaches what is never sampled.
# </details>
# <details><summary><b>What is on-policy distillation?</b></summary>
#
# The student writes, the teacher grades every token. The advantage of a token is the teacher's
# log-probability minus the student's. In expectation that descends the reverse KL at each visited
# prefix. The signal is dense and on the student's own states; SFT on the teacher's answers never
# visits the student's mistakes. It needs the teacher's log-probabilities.
# </details>
#
# Judges, distillation, several rewards, and the sentences one hears:
# [statements 16](statements/16_rewards.ipynb). The exercises, solved:
# [solutions 16](solutions/16_rewards.ipynb).
#
# **Next: [17](17_evaluation.ipynb).** Did it learn, or only sharpen?
