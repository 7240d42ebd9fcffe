# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 15 · Preferences: can you skip the reward?
#
# **After this page** you can derive DPO line by line, say what its β does, and name what a perfect
# training log does not show.
#
# 25 minutes, exercises 34 more · after 05 (KL) and 08 (GRPO) · DPO: Rafailov et al. 2023,
# [arXiv 2305.18290](https://arxiv.org/abs/2305.18290); likelihood displacement: Razin et al. 2024,
# [arXiv 2410.08847](https://arxiv.org/abs/2410.08847)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What does −β KL(π‖π_ref) do in the objective of RL?</summary>It is a price for every nat that the policy moves away from the reference: the start, frozen (05).</details>
# <details><summary>2. What happens to the gradient when all rewards of a prompt rise by the same number?</summary>Nothing, in expectation: only differences within a prompt count (03).</details>
# <details><summary>3. A logit rises by a little. By how much does the log-probability of its answer rise?</summary>By (1 − π) times as much, for the others pull back through the softmax (02).</details>

# %% tags=["setup"]
import torch
from torch.nn.functional import logsigmoid
from rlnb import check
from rlnb.classroom.explorers import one_pair
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import pipeline, preferences as pictures
from rlnb.classroom.pictures import token_grid
from rlnb.objective.preference import dpo, dpo_nll, ipo, simpo
from rlnb.toys import descend, descend_on_draws, running_group
from rlnb.toys import tone_features, win_chances
from rlnb.training.studies.preferences import recorded
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: 4,000 comparisons, and train(loss)
ref = torch.tensor([0.3, 0.5, 0.2])              # No, Never, Yes
taste = torch.tensor([2.0, 1.0, 0.0])            # hidden scores of people
dice = torch.Generator().manual_seed(0)
pair = torch.tensor([[0, 1], [0, 2], [1, 2]])[
    torch.randint(3, (4000,), generator=dice)]   # two answers each
first_wins = torch.rand(4000, generator=dice) < win_chances(taste)[
    pair[:, 0], pair[:, 1]]
w = torch.where(first_wins, pair[:, 0], pair[:, 1])      # preferred
l = torch.where(first_wins, pair[:, 1], pair[:, 0])

def train(loss, z, rate=1.0, steps=2000):
    """Gradient descent on three numbers z; all of them, (steps, 3)."""
    path = []
    for _ in range(steps):
        z = z.detach().requires_grad_()
        z = z - rate * torch.autograd.grad(loss(z), z)[0]
        path.append(z.detach())
    return torch.stack(path)

# %% [markdown]
# ## Two roads
#
# What one can collect from people is seldom a score. It is a choice: *which of these two answers do
# you prefer?* A model is asked whether to delete the backup. It says "No" with probability 0.3, the
# harsh "Never" with 0.5 and "Yes" with 0.2. Four thousand times somebody compares two of the three.
# (A toy: people hold hidden scores 2, 1, 0, and prefer one answer to another with the chance
# $\sigma(\text{difference of scores})$, $\sigma$ the sigmoid.)
#
# * **Road 1.** Fit a score to each answer, so that it explains the choices: a *reward model*. Then
#   RL: raise the expected score minus β times the KL to the model at the start.
# * **Road 2.** No scores, no samples, no RL. One loss on the policy itself, descended on the same
#   choices. It is called **DPO**, *Direct Preference Optimization*.

# %%
pipeline.pipeline("answers", "rewards", "ratio", words={
    "answers": "2 answers,\ngiven", "rewards": "one is\npreferred",
    "advantages": "no\nadvantage", "ratio": "π over\nπ_ref"},
    caption="Road 2 samples nothing: its pairs lie in a file.")

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.1", "Both train to the end on the same 4,000 choices, "
        "with the same β = 1. Road 2 arrives at",
        ["the same order of the answers, other probabilities",
         "about the same probabilities, up to sampling noise",
         "the same probabilities, to four digits",
         "all on No, which wins most comparisons"])

# %% jupyter={"source_hidden": true}
# the two roads, folded: you derive road 2's loss below
def rl_loss(scores, beta=1.0):
    """z -> -(E[score] - beta KL), exact: no sampling noise."""
    def loss(z):
        logp = z.log_softmax(0)
        return -(logp.exp() * (scores - beta * (logp - ref.log()))).sum()
    return loss

def dpo_on_choices(z, beta=1.0):
    h = z.log_softmax(0) - ref.log()
    return -logsigmoid(beta * (h[w] - h[l])).mean()

scores = train(lambda s: -logsigmoid(s[w] - s[l]).mean(), torch.zeros(3))
road_1 = train(rl_loss(scores[-1]), ref.log())[-1].softmax(0)
road_2 = train(dpo_on_choices, ref.log())[-1].softmax(0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
assert (road_1 - road_2).abs().max() < 1e-6
reveal("preferences.1", "the same probabilities, to four digits",
       "Not about the same: the same. Both carry the same noise of the "
       "4,000 choices. How can a loss that never saw a score do this?",
       pictures.two_roads({"start": ref, "road 1: scores, then RL": road_1,
                           "road 2: one loss": road_2},
                          "Two trainings, one of them with a reward."),
       instead={
           "the same order of the answers, other probabilities":
           "So one would expect of a method that never saw a score.",
           "about the same probabilities, up to sampling noise":
           "Both have the noise of the same choices.",
           "all on No, which wins most comparisons":
           "β holds it near the reference.",
       })

# %% [markdown]
# ## Derive it
#
# One prompt. Begin with what road 1 wants, and rewrite it:
#
# $$\begin{aligned}
# J&=\mathbb E_{y\sim\pi}\Big[r(y)-\beta\log\frac{\pi(y)}{\pi_{ref}(y)}\Big]&&\textbf{a choice: reward minus β KL (05)}\\
# &=-\beta\;\mathbb E_{y\sim\pi}\Big[\log\frac{\pi(y)}{\pi_{ref}(y)\,e^{r(y)/\beta}}\Big]&&\text{write }r\text{ as }\beta\log e^{r/\beta}\\
# &=-\beta\;\mathbb E_{y\sim\pi}\Big[\log\frac{\pi(y)}{\pi^*(y)}\Big]+\beta\log Z&&\pi^*=\pi_{ref}\,e^{r/\beta}/Z\text{; }Z\text{ makes it sum to 1}
# \end{aligned}$$
#
# The last expectation is a KL, from $\pi$ to $\pi^*$. It is 0 at $\pi=\pi^*$ and above 0 elsewhere.
# So **the best policy is $\pi^*$: the reference, times $e^{r/\beta}$.** Nobody has to search for
# it; but $Z$ is a sum over all answers there are, and that cannot be computed. Now read it
# backwards. Write $h=\log\pi/\pi_{ref}$ for the *log-ratio* of an answer, $w$ for the preferred
# answer (chosen), $l$ for the other (rejected):
#
# $$\begin{aligned}
# r(y)&=\beta\,h(y)+\beta\log Z&&\text{take the log of }\pi^*\text{, solve for }r\\
# r_w-r_l&=\beta\,(h_w-h_l)&&\text{subtract: one prompt, one }Z\\
# P(w\text{ beats }l)&=\sigma(r_w-r_l)&&\textbf{an assumption: Bradley-Terry, a model of people}\\
# L&=-\log\sigma\big(\beta\,(h_w-h_l)\big)&&\text{negative log-likelihood of what was preferred}
# \end{aligned}$$
#
# That is DPO. The reward has not been skipped. **It sits in the policy: $\beta h$ is a reward, up
# to one number per prompt, and that number drops out of every comparison.** Road 1 fits $r$ and
# then computes $\pi^*$; road 2 fits $\beta h$, and the fitted policy *is* $\pi^*$.
#
# Is it true of road 2? It never saw a score. Read its log-ratios, times β = 1:

# %%
beta_h = road_2.log() - ref.log()
fit = scores[-1]
log_Z = (ref * fit.exp()).sum().log()            # beta = 1
print("answer   β h     score of road 1   score − β h")
for i, name in enumerate(("No", "Never", "Yes")):
    print(f"{name:6s} {beta_h[i]:+.4f}   {fit[i]:+.4f}          "
          f"{fit[i] - beta_h[i]:.4f}")
print(f"β log Z, from the scores: {log_Z:.4f}")

# %% [markdown]
# One number lies between them, for all three answers, and it is $\beta\log Z$. A policy that was
# trained with DPO can grade answers, as long as they answer the same prompt.
#
# By hand: the policy gives the chosen answer 2 nats more than the reference did, the rejected one 1
# nat less, and β = 0.1.

# %%
h_w, h_l = (torch.tensor(x, requires_grad=True) for x in (2.0, -1.0))
loss = -logsigmoid(0.1 * (h_w - h_l))
slopes = torch.autograd.grad(loss, (h_w, h_l))
print(f"loss {loss:.4f}, slopes {slopes[0]:+.4f} and {slopes[1]:+.4f}; "
      f"at h = 0: {torch.tensor(2.0).log():.4f}")

# %% [markdown]
# Two pushes of one size: chosen up, rejected down. The size is $\beta\,\sigma(-\beta(h_w-h_l))$, β
# times the chance that the model still gives to the wrong order. At the start $h$ is 0, so every
# DPO run begins with loss $\log2$, 0.6931, and pushes of β/2.
#
# On the course's four answers (0 and 1 right, 2 and 3 wrong) take two pairs: 0 over 2, and 1
# over 3. An answer's $\log\pi$ is the *sum* over its tokens:

# %%
batch = running_group()
d = (batch.logprobs - batch.ref_logprobs).where(batch.mask, 0)
h = d.sum(1)                                          # (4,) answers
L = -logsigmoid(0.1 * (h[:2] - h[2:]))                # two pairs
push = -torch.autograd.grad(L.sum(), batch.logprobs)[0] / 0.1
token_grid.token_grid(batch, {"DPO's push, over β": push}, count="",
                      caption=(
    "Every token of an answer is pushed alike, above 1/2 where the pair is "
    "in the wrong order. No clip, no division by length."))

# %% [markdown]
# ## What does β do?
#
# β came in as the price of a nat of KL; in the loss it multiplies. Train road 2 with four β, on all
# three pairs, by plain gradient descent. Nobody is sampled: each pair counts with the exact chance
# that people prefer the first answer.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.2", "Trained to the end: with which β is the policy "
        "furthest from the reference?",
        ["β = 5: it multiplies every push",
         "β = 0.1: it must go far to explain the choices",
         "all alike: the same choices, the same policy",
         "β = 1, where the scores are those of people"])

# %%
D = torch.tensor([[1.0, -1, 0], [1, 0, -1], [0, 1, -1]])   # three pairs
chance = torch.sigmoid(D @ taste)                # the first one wins
beta = torch.tensor([0.1, 0.5, 1.0, 5.0])[:, None]

z, kls = ref.log().expand(4, 3).clone(), []      # a row per beta
for _ in range(20_000):
    kls.append((z.softmax(1) * (z.log_softmax(1) - ref.log())).sum(1))
    h = z - ref.log()                            # up to a constant
    z += 0.2 * beta * (chance - torch.sigmoid(beta * (h @ D.T))) @ D / 3

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
gap = (h[:, 0] - h[:, 2]).tolist()               # No against Yes
runs = dict(zip(beta[:, 0].tolist(), torch.stack(kls[1:]).T))
reveal("preferences.2", "β = 0.1: it must go far to explain the choices",
       "At the end βh must explain the same choices: No scores 2 above "
       "Yes. So the gap in $h$ between the two becomes 2/β, "
       f"{gap[0]:.1f} nats at β = 0.1 and {gap[3]:.1f} at β = 5. **A small "
       "β lets the policy go far.** Who watches the first steps of plain "
       "gradient descent sees the opposite: there the push grows with β. "
       "(Adam takes most of that away.)",
       pictures.kl_paths(runs, "The large β starts fastest and stays "
                               "nearest. Plain gradient descent."),
       instead={
           "β = 5: it multiplies every push":
           "In the first steps it does. Where does it end?",
           "all alike: the same choices, the same policy":
           "The same choices are explained by β times the log-ratio.",
           "β = 1, where the scores are those of people":
           "That is the β at which log-ratios are scores.",
       })

# %% [markdown]
# ## One pair, labelled once
#
# Two things are different in practice. First: in a data set a pair stands once, with one label. For
# the loss "No" beats "Never" *always*. Two answers, a table, β = 1, steps of size 1:

# %%
margin, grown = 0.0, {}
for step in range(1, 10_001):
    margin += 2 * torch.sigmoid(torch.tensor(-margin)).item()
    grown[step] = margin
print("margin:", ", ".join(f"{grown[n]:.2f} after {n}" for n in (10, 100)))

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.3", "And after 10,000 steps?",
        ["about 5.3: it has settled", "about 10", "about 50", "about 500"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.3", "about 10",
       f"{grown[1000]:.2f} after 1,000, {grown[10_000]:.2f} after 10,000: "
       "each ten times as many steps add log 10. The push fades and never "
       "ends, for no gap is large enough. **The best policy of such a data "
       "set lies infinitely far away; how far you go is decided by when "
       "you stop.**",
       instead={
           "about 5.3: it has settled":
           "Its push shrinks. It never becomes 0.",
           "about 50":
           "Ten times the steps are not ten times the way.",
           "about 500":
           "That would be a push that does not fade.",
       })

# %% [markdown]
# Second: the policy is a network, not a table with an entry per answer. Answers share parameters.
# The smallest such network: each answer has a logit of its own, and all share one number, `tone`.
# It counts with −1 for "Never", 0 for "No", +1 for "Yes", times a strength $k$.
# $k=0$ is a table. `descend` is plain gradient descent on these four numbers, with DPO, β = 0.1, on
# the one pair "No" over "Never". The log for $k=1.5$:

# %%
worlds = {
    "a table": tone_features(0.0),
    "shared tone, k = 1.5": tone_features(1.5)}
paths = {name: descend(lambda pairs: dpo(pairs, 0.1), features, ref,
                       rate=1.0, steps=200)
         for name, features in worlds.items()}

logp = paths["shared tone, k = 1.5"]
gap = (logp[:, 0] - logp[:, 1]) - (ref[0] / ref[1]).log()
pictures.what_the_log_says(
    -logsigmoid(0.1 * gap), 0.1 * gap, (gap > 0).double(),
    "Loss, margin β(h_w − h_l), share of pairs in the right order.")

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.4", "Where is the probability now?",
        ["nearly all on No: that is what was asked for",
         "No and Yes, 3 to 2 as before: only Never has been pushed down",
         "nearly all on Yes, which is in no pair",
         "near the start: a margin of a few β is not much"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
neutral = tone_features(1.5, tone=(0.0, -1.0, 0.0))   # Yes: no tone
paths["k = 1.5, Yes has no tone"] = descend(
    lambda pairs: dpo(pairs, 0.1), neutral, ref, rate=1.0, steps=200)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.4", "nearly all on Yes, which is in no pair",
       "“No over Never” also says *gentler*, and Yes is the gentlest. "
       "The right panel is the test: take the tone of Yes away, and the "
       "chosen answer wins. This is **likelihood displacement**: the "
       "chosen answer falls while every number in the log improves. (For "
       "some twenty steps it stood above its start: who stops early sees "
       "nothing.)",
       pictures.probabilities({k: p.exp() for k, p in paths.items()},
                              "One pair, one loss, three policies."),
       instead={
           "nearly all on No: that is what was asked for":
           "Look at what else the pair says about the two answers.",
           "No and Yes, 3 to 2 as before: only Never has been pushed down":
           "That would be so without shared features.",
           "near the start: a margin of a few β is not much":
           "The margin is what the loss sees. Where the probability goes "
           "it does not see.",
       })

# %% [markdown]
# In a table it cannot happen. A step raises the logit of $w$ by $s$ and lowers that of $l$ by $s$;
# through the softmax $\log\pi_w$ changes by $s-s\,(\pi_w-\pi_l)$, and that is above 0. Shared
# parameters add a step to answers that nobody compared.

# %%
task("preferences.t1", one_pair.one_pair_explorer(),
     ("k = 1.5, loss below 0.05, and No likelier than at the start.",
      one_pair.strong_and_kept),
     ("Keep β = 0.1, take the margin to its end. Find the largest k at "
      "which No still ends above 0.9. Why there?",
      one_pair.last_that_holds))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. No margin does it at a small β: below 3 the loss is too high, above it the policy is already on
#    its way to Yes. β from three quarters up does: the same margin at a smaller gap.
# 2. k = 0.95, the last place below 1. <!-- cited: 0.95 --> A step raises the logit of No by 1 and
#    that of Yes by k². Past k = 1 Yes rises faster, and far enough along nothing else counts.
# </details>
#
# ## Which loss helps?
#
# Three relatives of DPO, in the toy, where an answer is one token ($T=1$). **IPO** gives the gap a
# target: $(h_w-h_l-\frac1{2\beta})^2$. **SimPO** drops the reference, takes $\log\pi$ per token and
# asks for a lead of $\gamma$: $-\log\sigma(\beta(\log\pi_w/T_w-\log\pi_l/T_l)-\gamma)$. **DPO +
# NLL** adds an anchor, $-\alpha\log\pi_w/T_w$: plain SFT on the chosen answer. All in the world
# with $k=1.5$; each stopped where its gap $h_w-h_l$ reaches 4.9 nats.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.5", "Whose policy differs from DPO's there?",
        ["DPO + NLL's alone: only it looks at the chosen answer itself",
         "IPO's and DPO + NLL's: IPO has a target",
         "SimPO's and DPO + NLL's: SimPO has no reference",
         "all three, each in its way"])

# %%
losses = {"DPO": (lambda x: dpo(x, 0.1), 1.0),
          "IPO": (lambda x: ipo(x, 0.1), 0.01),
          "SimPO": (lambda x: simpo(x, 1.0, 0.5), 0.1),
          "DPO + NLL, α = 0.1": (lambda x: dpo_nll(x, 0.1, 0.1), 1.0)}
ways = {}
for name, (loss, rate) in losses.items():
    logp = descend(loss, worlds["shared tone, k = 1.5"], ref, rate=rate,
                   steps=400)
    gone = (logp[:, 0] - logp[:, 1]) - (ref[0] / ref[1]).log()
    ways[name] = logp[:int((gone < 4.9).sum()) + 1].exp()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.5",
       "DPO + NLL's alone: only it looks at the chosen answer itself",
       "Any loss of the gap alone has the gradient *number* × "
       r"$(\nabla\log\pi_w-\nabla\log\pi_l)$. In this toy that is one "
       "fixed direction: **such a loss chooses how far to go, not where.** "
       "(One pair, equal lengths. With many pairs it also decides which "
       "of them pull.) IPO stops at 5 nats, SimPO slows down; the road is "
       "DPO's. Only the anchor looks at $\\log\\pi_w$ itself.",
       pictures.triangle(ways, "A point is a policy; in a corner one "
                               "answer has it all. Three roads are one."),
       instead={
           "IPO's and DPO + NLL's: IPO has a target":
           "IPO stops earlier on the same road.",
           "SimPO's and DPO + NLL's: SimPO has no reference":
           "With one token an answer it takes the same road, more slowly. "
           "With unequal lengths you would be right.",
           "all three, each in its way":
           "Two of them look at the gap alone.",
       })

# %% [markdown]
# Or keep DPO's loss and change the pairs. Before every step two different answers are drawn from
# the policy *as it is now*, and people with the hidden scores 2, 1, 0 choose. This is **on-policy
# DPO**; it costs what road 2 had saved, samples and a judge.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.6", "The same world, k = 1.5, β = 0.1. It ends",
        ["all on Yes: the shared tone is still there",
         "all on No", "between No and Yes: they go on competing"])

# %%
drawn = {name: descend_on_draws(tone_features(1.5), ref, taste,
                                fresh=fresh, steps=1000).exp()
         for name, fresh in (("given pairs: No, Never", False),
                             ("fresh pairs", True))}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.6", "all on No",
       "Now Yes is drawn, compared, and loses, the oftener the likelier it "
       "is. **What given pairs lack is not a better loss but a word about "
       "the other answers.**",
       pictures.triangle(drawn, "One loss, two sources of pairs. In both "
                                "people err now and then."),
       instead={
           "all on Yes: the shared tone is still there":
           "It is. But now Yes is drawn and judged.",
           "between No and Yes: they go on competing":
           "They would, were both never compared with the third.",
       })

# %% [markdown]
# So was road 1 the better one? Take it in this world: a reward model whose scores share the tone in
# the same way, fitted to the one pair, No over Never (preferred with chance σ(1)). Then RL, to the
# end, β = 0.1.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.7", "Road 1, with that reward model. It ends",
        ["nearly all on No: a reward model sees the pair, not the mass",
         "nearly all on Yes, like DPO on the given pair",
         "near the start: one pair says little about scores"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
X = tone_features(1.5)                           # (3, 4)
step = X[0] - X[1]                               # No minus Never
fitted = X @ step / (step @ step)                # gap 1, as σ(1) asks
rl = (ref * (fitted / 0.1).exp()).double()
rl = rl / rl.sum()
reveal("preferences.7", "nearly all on Yes, like DPO on the given pair",
       f"Scores: No {fitted[0]:+.2f}, Never {fitted[1]:+.2f}, Yes "
       f"{fitted[2]:+.2f}. RL puts {rl[2]:.2f} on Yes. The same optimum, "
       "the same blind spot: **fresh labels cure it, not a reward.** The "
       "two roads agree when policy and scores can hold every answer, "
       "every answer is compared, and both train to the end. In practice "
       "none of this holds; that is why labs still run PPO and GRPO, "
       "which grade what the policy says now.", instead={
           "nearly all on No: a reward model sees the pair, not the mass":
           "It sees the pair through the same shared tone.",
           "near the start: one pair says little about scores":
           "It says a gap of 1, and β = 0.1 makes 10 nats of it.",
       })

# %% [markdown]
# ## And on a transformer?
#
# Recorded: the course's small model (pages 06 to 14) on its sums. Of its own answers 256 pairs were
# made, a right one over a wrong one to the same prompt. Then 40 steps of 64 pairs, so each is seen
# ten times; β = 0.1, learning rate 3e-4, three seeds. All the way the loss falls and the margin
# grows.
#
# Before training 35 % of its answers to new prompts are right.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.8", "The share of right answers to new prompts, in "
        "these 40 steps?",
        ["it rises all the way, as the margin does",
         "it rises, then falls back part of the way",
         "it falls below 35 %: right texts have become unlikely",
         "it stays: its own answers teach it nothing new"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
file = recorded()
arms = ("DPO", "DPO + NLL", "DPO, beta 1", "DPO, fresh pairs")
rate = {arm: torch.tensor([run["pass@1"] for run in file[arm]])
        for arm in arms}                         # (seeds, graded steps)
top = rate["DPO"].mean(0).argmax()
many = torch.tensor([run["pass@1"] for run in file["DPO, 2,560 pairs"]]
                    ).mean(0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.8", "it rises, then falls back part of the way",
       f"From {file['header']['pass@1']:.2f} to "
       f"{rate['DPO'].mean(0)[top]:.2f} after "
       f"{file['header']['graded'][top]} steps, and back to "
       f"{rate['DPO'].mean(0)[-1]:.2f}, while chosen answers lose 4 nats. "
       "Loss and margin show no turn. At the end, ± one standard error: "
       + ", ".join(
           f"{r[:, -1].mean():.2f} ± {r[:, -1].std() / 3**0.5:.2f} ({arm})"
           for arm, r in rate.items()) + ". Task 1 again: **with β = 1 "
       "the road is shorter, and little is lost.** The anchor keeps the "
       "chosen answers too, and learns least: it is mostly SFT. Ten times "
       "as many given pairs, each seen once, reach "
       f"{many.max():.2f} and turn too ({many[-1]:.2f}); fresh ones do not "
       "turn.",
       pictures.on_a_network(file, arms, (
           "Fresh pairs are drawn from the policy before every step, and "
           "cost {:,} answers instead of {:,}.".format(*(
               file[arm][0]["answers"] for arm in (arms[3], arms[0]))))),
       instead={
           "it rises all the way, as the margin does": "The margin does.",
           "it stays: its own answers teach it nothing new":
           "They teach it at first.",
       })

# %% [markdown]
# **A falling chosen log-probability is a question: where did the mass go?** Only samples of the
# policy answer it. On unsafe prompts Razin et al. saw Llama-3-8B-Instruct fall from refusing
# 74.4 % to 33.4 % ([arXiv 2410.08847](https://arxiv.org/abs/2410.08847)): the mass went from
# preferred refusals to harmful answers. "No", "Never" and "Yes" are theirs.
#
# **In a real run.** TRL's `DPOTrainer` starts from β = 0.1 and learning rate 1e-6, with the SFT
# model as policy and reference. `ref_logps` need one pass over the data and can be kept. Log
# `logps/chosen` beside `rewards/margins`, sample from the policy, and grade the samples.
#
# <details><summary>One level deeper: labels, lengths, the family</summary>
#
# * *Noisy labels* make the best gap finite again. Conservative DPO assumes a share of wrong labels.
# * $h$ is a sum over tokens. If people prefer long answers, so does the optimum; dividing by the
#   length is another objective, not a correction.
# * All of these, KTO, DPO-Shift and the libraries' words for them: statements page.
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | DPO | |
# |---|---|
# | sentence | the best policy under reward minus β KL is the reference times $e^{r/\beta}$, so its log-ratio is the reward; put it into Bradley-Terry and fit it to choices |
# | formula | $L=-\log\sigma\big(\beta(h_w-h_l)\big)$, $h=\log\pi/\pi_{ref}$ summed over tokens |
# | push | $\pm\beta\,\sigma(-\beta(h_w-h_l))$ on every token of the pair |
# | picture | the triangle: one pair, equal lengths, and all losses of the gap walk one road |
# | numbers | start: loss 0.6931, push β/2 · end: the gap in $h$ is (score gap)/β |
# | choices | KL as the leash, Bradley-Terry as the people |
# | against GRPO | given pairs for own samples, a preference for a reward, no ratio to clip, no group |

# %%
score(*(f"preferences.{i}" for i in range(1, 9)))

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 12 minutes. DPO as a library has it, from tokens. Rows: first all chosen
# answers, then in the same order the rejected ones. Mean over pairs; what stands under a mask of 0
# may be NaN, a pair may be badly wrong.
#
# <details><summary>hint</summary>Per token, then per answer, then per pair. Where does the where go, and why is log(sigmoid(x)) not good enough?</details>

# %% tags=["exercise"]
def my_dpo_loss(logprobs, ref_logprobs, mask, beta):
    return ...

check.dpo_loss(my_dpo_loss)

# %% [markdown]
# **2 Two relatives** · 8 minutes. IPO from log-probabilities of whole answers; SimPO with the
# answers' lengths. Means over pairs. Mind where β stands in each.

# %% tags=["exercise"]
def my_ipo_loss(chosen, rejected, ref_chosen, ref_rejected, beta):
    return ...

check.ipo_loss(my_ipo_loss)

# %% tags=["exercise"]
def my_simpo_loss(chosen, rejected, chosen_length, rejected_length,
                  beta, gamma):
    return ...

check.simpo_loss(my_simpo_loss)

# %% [markdown]
# **3 Find the silent bug** · 8 minutes. Pairs from a batch of graded answers, `num_generations`
# rows to a prompt. It runs, and DPO's loss falls on what it returns:

# %%
print(check.silent_bug_preferences.source)

# %% [markdown]
# Write a test that it fails and a right one passes.
#
# <details><summary>hint</summary>Which line of the derivation needs both answers to have the same prompt?</details>

# %% tags=["exercise"]
def my_test(make_pairs):
    return ...

check.silent_bug_preferences(my_test)

# %% [markdown]
# **4 Road 1** · 6 minutes. The reward model's loss, with a margin per pair: people also said *how
# much* better, and the chosen score has to lead by that.
#
# <details><summary>hint</summary>The margin makes the task harder.</details>

# %% tags=["exercise"]
def my_bradley_terry(chosen, rejected, margin):
    return ...

check.bradley_terry(my_bradley_terry)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>Derive DPO.</b></summary>
#
# The best policy under reward minus β KL is the reference times e^(r/β), over Z. Take logs: the
# reward is β times the policy's log-ratio, plus β log Z. In a difference of two answers to one
# prompt Z cancels. Put the difference into Bradley-Terry, the sigmoid of the reward gap, and
# minimise the negative log-likelihood of the label.
# </details>
# <details><summary><b>What does β do?</b></summary>
#
# A larger β keeps the policy closer to the reference. At the optimum the log-ratios are the reward
# gaps over β, so a small β moves further. Early in training it can look the other way round under
# plain gradient descent, where the push grows with β; Adam takes most of that away.
# </details>
# <details><summary><b>Is DPO's implicit reward β log π/π_ref?</b></summary>
#
# Up to β log Z of the prompt. So compare it between answers to one prompt, never between prompts.
# </details>
# <details><summary><b>My DPO loss falls, and so does the chosen log-probability. Is it broken?</b></summary>
#
# Not necessarily: the loss sees only the gap. With shared parameters a push on the pair moves
# other answers, and one of them can rise faster than the chosen one. Find out where the mass went:
# sample and grade. If it went wrong: fresh pairs; else a larger β or an earlier stop; an NLL anchor
# keeps the chosen answers and learned least in our run.
# </details>
# <details><summary><b>IPO, SimPO, KTO: one sentence each.</b></summary>
#
# IPO: a squared loss, so that the gap has a target, 1/(2β). SimPO: no reference, the mean
# log-probability per token, a margin. KTO: single answers marked good or bad, each against a
# reference point.
# </details>
# <details><summary><b>DPO or online RL?</b></summary>
#
# DPO when there are good pairs and no cheap grader: two forward passes, no sampling, stable. Online
# RL when answers can be graded: it gets feedback on what the policy says now. DPO gets none on
# answers outside its pairs, though it moves them. On-policy DPO lies between.
# </details>
# <details><summary><b>Must I mask the prompt in DPO?</b></summary>
#
# With sums it cancels: prompt tokens are the same in both answers, under both models. Mask them all
# the same, for with a division by the length they no longer do.
# </details>
#
# The sentences that one hears about preferences, true or not, and the whole family:
# [statements 15](statements/15_preferences.ipynb). The exercises, solved:
# [solutions 15](solutions/15_preferences.ipynb).
#
# **Next: [16](16_rewards.ipynb).** Road 1 keeps a reward that one can push on. What happens when it
# is not what you meant?
