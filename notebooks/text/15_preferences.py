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
# 28 minutes, exercises 34 more · after 05 (KL) and 08 (GRPO) · DPO: Rafailov et al. 2023,
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
from rlnb.classroom.pictures.recorded_runs import final
from rlnb.objective.preference import Pairs, dpo, dpo_nll, ipo, simpo
from rlnb.toys import descend, descend_on_draws, kl_optimum
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

# %% jupyter={"source_hidden": true}
# the picture: what DPO needs of the usual pipeline
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
         "all on No, which wins most comparisons",
         "the same probabilities, to four digits"])

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
# J&=\mathbb E_{y\sim\pi}\Big[r(y)-\beta\log\frac{\pi(y)}{\pi_{ref}(y)}\Big]&&\textbf{what we choose to want: reward minus β KL (05)}\\
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
# P(w\text{ beats }l)&=\sigma(r_w-r_l)&&\textbf{an assumption about people: Bradley-Terry}\\
# L&=-\log\sigma\big(\beta\,(h_w-h_l)\big)&&\text{minus the log of that chance, }h\text{ of the policy in training}
# \end{aligned}$$
#
# That is DPO. The reward has not been skipped. **It sits in the policy: $\beta h$ is a reward, up
# to one number per prompt, and that number drops out of every comparison.** Road 1 fits $r$ and
# then has to find $\pi^*$; road 2 fits $\beta h$, and when that fits, the policy is $\pi^*$.
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
# times the chance that the model still gives to the wrong order: 0.1 × 0.426. At the start $h$ is 0
# and that chance one half; so every DPO run begins with loss $\log2$, 0.6931, and pushes of β/2.
# $\log\pi$ of an answer is a sum over its tokens: every token of it gets the same
# push. <!-- cited: 0.426 -->

# %% [markdown]
# ## What does β do?
#
# β came in as the price of a nat of KL; in the loss it multiplies. Train road 2 with four β, on all
# three pairs, this time without noise: 88 of 100 people prefer No to Yes, the policy at the start
# expects 50 of 100, and the push is β times the difference.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.2", "Trained to the end: with which β is the policy "
        "furthest from the reference?",
        ["β = 0.1", "β = 1", "β = 5", "all alike"])

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
reveal("preferences.2", "β = 0.1",
       "At the end βh must explain the same people: No scores 2 above Yes. "
       "So the gap in $h$ itself comes to 2/β: 20 nats at β = 0.1 "
       f"({gap[0]:.1f} after these 20,000 steps), {gap[3]:.1f} at β = 5. "
       "**A small β lets the policy go far.** Who watches only the first "
       "steps sees the opposite, for a plain gradient step is proportional "
       "to β. (Adam rescales its steps: with it the small β leads from the "
       "start. Statement D03.)",
       pictures.kl_paths(runs, "β = 5 arrives in a step or two and stays "
                               "nearest; β = 0.1 needs thousands."),
       instead={
           "β = 1": "There log-ratios are the people's scores themselves.",
           "β = 5": "It pushes hardest at first. Where does it end?",
           "all alike":
           "What is alike is β times the log-ratio.",
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
        ["about 500", "about 50", "about 10", "about 5.3: it has settled"])

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
# ## And answers are related
#
# Second: the policy is a network, not a table with an entry per answer. Answers share parameters.
# The smallest such network has four numbers: a logit for each answer, and `tone`, which they share.
# "Never" is harsh: its logit gets $-k$ times `tone`. "Yes" gets $+k$ times `tone`, "No" nothing;
# $k=0$ is a table. Plain gradient descent on the four numbers, DPO with β = 0.1, the one pair "No"
# over "Never". This is the log for $k=1.5$:

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
        ["nearly all on No", "No and Yes, 3 to 2 as before",
         "near the start: 2 nats of margin are not much",
         "nearly all on Yes"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
neutral = tone_features(1.5, tone=(0.0, -1.0, 0.0))   # Yes: no tone
paths["k = 1.5, Yes has no tone"] = descend(
    lambda pairs: dpo(pairs, 0.1), neutral, ref, rate=1.0, steps=200)
no = logp[:, 0].exp()
peak, last = int(no.argmax()), int((no > no[0]).nonzero()[-1])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.4", "nearly all on Yes",
       "It is in no pair. But “No over Never” also says *less harsh*, and "
       "Yes is the least harsh. The right panel is the test: take the tone "
       "of Yes away, and the chosen answer wins. This is **likelihood "
       "displacement**: the chosen answer falls while every number in the "
       f"log improves. (No rises until step {peak}, to {no[peak]:.2f}, and "
       f"is above its start until step {last}.) In a table it cannot "
       "happen: there a step moves only the two logits of the pair.",
       pictures.probabilities({k: p.exp() for k, p in paths.items()},
                              "One pair, one loss, three policies."),
       instead={
           "nearly all on No":
           "What else does the pair say about the two answers?",
           "No and Yes, 3 to 2 as before":
           "Nearly, if only Never's own logit moved. All of them move.",
           "near the start: 2 nats of margin are not much":
           "The log's margin is β times the gap: 20 nats of gap.",
       })

# %% [markdown]
# The same world with sliders. They train the policy until the log shows the margin you ask for.

# %% jupyter={"source_hidden": true}
# the explorer
task("preferences.t1", one_pair.one_pair_explorer(),
     ("k = 1.5, β = 0.1. Move the margin until No is as likely as it gets. "
      "What does the log say there?", one_pair.likeliest),
     ("k = 1.5 again, loss below 0.05, and No likelier than at the start.",
      one_pair.strong_and_kept),
     ("β = 0.1 and the margin at 8: trained far. Find the largest k at "
      "which No still ends above 0.9. Why there?",
      one_pair.last_that_holds))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. At a margin of 0.2. <!-- cited: 0.2, 0.60, 0.95 --> The loss is 0.60, hardly below log 2: in
#    the log training has just begun.
# 2. No margin does it at a small β: below 3 the loss is too high, above it the policy is already on
#    its way to Yes. β from three quarters up does: the same margin is then a smaller gap. A larger
#    β is a way to stop earlier.
# 3. k = 0.95, the slider's last step below 1. A step raises the logit of No by 1 and that of Yes by
#    $k\cdot k$: the pair moves `tone` by k, and `tone` moves Yes by k. At k = 1 they rise together
#    and No ends at 0.60; past it Yes rises faster, and far enough along nothing else counts.
# </details>
#
# ## Does another loss help?
#
# Three relatives of DPO, in the same world, $k=1.5$. Every answer here is one token long, $T=1$.
#
# * **IPO** gives the gap a target: $(h_w-h_l-\frac1{2\beta})^2$.
# * **SimPO** drops the reference, takes $\log\pi$ per token and asks for a lead of $\gamma$:
#   $-\log\sigma(\beta(\log\pi_w/T_w-\log\pi_l/T_l)-\gamma)$.
# * **DPO + NLL** adds $-\alpha\log\pi_w/T_w$, which is plain SFT on the chosen answer: an anchor.
#
# Each is stopped where its gap $h_w-h_l$ reaches 4.9 nats.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.5", "Whose policy differs from DPO's there?",
        ["DPO + NLL's alone", "IPO's and DPO + NLL's",
         "SimPO's and DPO + NLL's", "all three, each in its way"])

# %%
losses = {"DPO": (lambda x: dpo(x, 0.1), 1.0),
          "IPO": (lambda x: ipo(x, 0.1), 0.01),
          "SimPO": (lambda x: simpo(x, 1.0, 0.5), 0.1),
          "DPO + NLL, α = 0.1": (lambda x: dpo_nll(x, 0.1, 0.1), 1.0)}

def stopped(loss, rate):
    """Probabilities on the way, until the gap is 4.9 nats."""
    path = descend(loss, worlds["shared tone, k = 1.5"], ref, rate=rate,
                   steps=400)
    gone = (path[:, 0] - path[:, 1]) - (ref[0] / ref[1]).log()
    return path[:int((gone < 4.9).sum()) + 1].exp()

ways = {name: stopped(*pair) for name, pair in losses.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def longer(x):
    """SimPO, were No 3 tokens long and Never 6."""
    return simpo(Pairs(x.chosen, x.rejected, x.ref_chosen, x.ref_rejected,
                       torch.tensor([3.0]), torch.tensor([6.0])), 1.0, 0.5)

ways["SimPO, lengths 3 and 6"] = stopped(longer, 0.1)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.5", "DPO + NLL's alone",
       "A loss of the gap alone has the gradient *number* × "
       r"$(\nabla\log\pi_w-\nabla\log\pi_l)$, here one fixed direction. "
       "**With one pair and equal lengths such a loss decides how far to "
       "go, not where.** The anchor also looks at $\\log\\pi_w$ itself. "
       "With lengths 3 and 6 SimPO leaves the road (last row): it no "
       "longer sees this gap. And with many pairs a loss also decides "
       "which of them pull.",
       pictures.triangle(ways, "A point is a policy; in a corner one "
                               "answer has it all. Three roads are one."),
       instead={
           "IPO's and DPO + NLL's":
           "IPO stops at its target, 5 nats for β = 0.1, on the same road.",
           "SimPO's and DPO + NLL's":
           "Right as soon as lengths differ. Here SimPO sees the gap too.",
           "all three, each in its way":
           "Two of them look at nothing but the gap.",
       })

# %% [markdown]
# ## Or is it DPO's fault?
#
# Take road 1 through the same world. A reward model whose scores share the tone as the logits do,
# $k=1.5$, is fitted to the one pair; σ(1), 73 of 100 people, prefer No. Then RL with β = 0.1, to
# the very end: it lands on $\pi^*=\pi_{ref}\,e^{r/\beta}/Z$.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.6", "Where is the probability now?",
        ["mostly on No: RL samples Yes and finds a low score",
         "No and Yes, 3 to 2: nobody has scored Yes",
         "mostly on Yes, as with DPO",
         "spread out: 73 of 100 is a weak reward"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
phi, theta = tone_features(1.5), torch.zeros(4)
for _ in range(3000):                            # fit the gap of the pair
    r = phi @ theta
    wrong = torch.sigmoid(torch.tensor(1.0)) - torch.sigmoid(r[0] - r[1])
    theta = theta + 0.1 * wrong * (phi[0] - phi[1])
by_reward = kl_optimum(ref, r, 0.1)
by_dpo = descend_on_draws(phi, ref, taste, fresh=False,
                          steps=4000)[-1].exp()
assert (by_reward - by_dpo).abs().max() < 1e-4

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.6", "mostly on Yes, as with DPO",
       f"The reward model says No {r[0]:+.2f}, Never {r[1]:+.2f} and Yes "
       f"{r[2]:+.2f}: nobody judged Yes, the shared tone did. RL samples "
       "Yes and is paid for it. **The same labels, the same blind spot**, "
       "and the same end as DPO's, to four digits.",
       pictures.two_roads({"start": ref, "reward model, then RL": by_reward,
                           "DPO": by_dpo}, "One pair, 73 of 100, k = 1.5."),
       instead={
           "mostly on No: RL samples Yes and finds a low score":
           "It samples Yes. Who taught the reward model its score?",
           "No and Yes, 3 to 2: nobody has scored Yes":
           "The tone has: what it says of Never it says of Yes, reversed.",
           "spread out: 73 of 100 is a weak reward":
           "One nat of score, divided by β = 0.1, is ten nats.",
       })

# %% [markdown]
# Now DPO with other pairs. Before every step two different answers are drawn from the policy *as it
# is now*, and people with the hidden scores 2, 1, 0 compare them. This is **on-policy DPO**; it
# pays for what road 2 had saved, samples and a judge.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.7", "The same world, k = 1.5, β = 0.1. It ends",
        ["all on Yes: the tone is still shared",
         "all on No",
         "between No and Yes: β = 0.1 keeps both",
         "in a circle: Yes rises, is judged, falls, rises"])

# %%
drawn = {name: descend_on_draws(tone_features(1.5), ref, taste,
                                fresh=fresh, steps=1000).exp()
         for name, fresh in (("given pairs: No, Never", False),
                             ("fresh pairs", True))}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.7", "all on No",
       "Now Yes is drawn, compared, and loses, the oftener the likelier it "
       "is. **A loss of the gap, a reward model: neither learned what "
       "people think of Yes. Labels on what the policy says now cure "
       "displacement.**",
       pictures.triangle(drawn, "One loss, two sources of pairs. In both "
                                "people err now and then."),
       instead={
           "all on Yes: the tone is still shared":
           "It is. But now Yes is judged, and loses.",
           "between No and Yes: β = 0.1 keeps both":
           "At this β a nat of score is ten nats of log-ratio.",
           "in a circle: Yes rises, is judged, falls, rises":
           "Yes is judged from the first step on, and falls at once.",
       })

# %% [markdown]
# **When are the roads the same?** If reward model and policy can express the same functions, share
# the labels, and both train to the end ([arXiv 2503.01067](https://arxiv.org/abs/2503.01067)).
# A real reward model is another network, RL stops long before the end, and labels can be bought for
# its new samples. There the roads part, and there PPO and GRPO earn their price.
#
# ## And on a transformer?
#
# Recorded: the course's small model (pages 06 to 14) on its sums. Of its own answers 256 pairs were
# made, a right one over a wrong one to the same prompt. Then 40 steps of 64 pairs, so that each
# pair is seen ten times; β = 0.1, learning rate 3e-4, three seeds. All the way the loss falls and
# the margin grows. Before training 35 % of its answers to new prompts are right.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.8", "The share of right answers to new prompts, in "
        "these 40 steps?",
        ["it rises, then falls back part of the way",
         "it rises all the way, as the margin does",
         "it falls below 35 %, as in the toy",
         "it stays: its own answers teach it nothing new"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
file = recorded()
before, grpo = (sum(final("chain_dr_grpo", step=n)[i] for i in range(3)) / 3
                for n in (0, 40))
arms = {"DPO": "DPO, 256 pairs", "DPO + NLL": "with an anchor, α = 1",
        "DPO, 2,560 pairs": "2,560 pairs, each once",
        "DPO, beta 1": "β = 1", "DPO, fresh pairs": "fresh pairs"}
table = ["| arm | right, best | at the end | gap, nats | chosen, nats "
         "| answers drawn |", "|---|---|---|---|---|---|"]
for arm, said in arms.items():
    graded = torch.tensor([run["pass@1"] for run in file[arm]])
    up, down = (torch.tensor([run[side][-5:] for run in file[arm]]).mean()
                for side in ("chosen", "rejected"))
    table.append(
        f"| {said} | {graded.mean(0).max():.2f} | "
        f"{graded[:, -1].mean():.2f} ± {graded[:, -1].std() / 3**0.5:.2f} "
        f"| {up - down:.1f} | {up:+.1f} "
        f"| {file[arm][0]['answers']:,} |")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.8", "it rises, then falls back part of the way",
       "The log shows no turn. Means of three seeds, the end ± a standard "
       "error; gap and chosen are $h_w-h_l$ and $h_w$ there:\n\n"
       + "\n".join(table) + "\n\n"
       "2,560 pairs, each seen once, turn too: the model has not learned "
       "its pairs by heart. With β = 1 the gap stays small, as in task 2. "
       "The anchor does not turn, and learns little. Fresh pairs go on. "
       f"(Dr. GRPO, page 10: {grpo:.2f} with 5,120 answers, on problems "
       f"where the start was {before:.2f}.)",
       pictures.on_a_network(file, [a for a in arms if a != "DPO + NLL"],
                             "A line a seed. The log-ratios of fresh pairs "
                             "are of each step's own new pairs."),
       instead={
           "it rises all the way, as the margin does": "The margin does.",
           "it falls below 35 %, as in the toy":
           "It falls after it has risen, as No did.",
           "it stays: its own answers teach it nothing new":
           "They come with a judgement: that is new.",
       })

# %% [markdown]
# **A falling chosen log-probability is a question: where did the mass go?** Only samples of the
# policy answer it. On unsafe prompts Razin et al. saw Llama-3-8B-Instruct fall from refusing
# 74.4 % to 33.4 % ([arXiv 2410.08847](https://arxiv.org/abs/2410.08847)): the mass went from
# preferred refusals to harmful answers. "No", "Never" and "Yes" are theirs.
#
# **In a real run.** TRL's `DPOTrainer` starts from β = 0.1 and learning rate 1e-6, with the SFT
# model as policy and reference. Tune β, learning rate and number of steps together: all three
# decide how far the gap goes. Log `logps/chosen` beside `rewards/margins`, sample from the policy
# every few hundred steps, grade the samples, and stop by the grades.
#
# <details><summary>One level deeper: which pairs displace, labels, lengths</summary>
#
# * *Which pairs.* On one pair the logit of $w$ rises by $\phi_w\cdot(\phi_w-\phi_l)$ a step, $\phi$
#   the features of an answer; any $y$ with a larger $\phi_y\cdot(\phi_w-\phi_l)$ overtakes it (in
#   the toy 1 against $k^2$). With the last hidden states as $\phi$, summed over tokens, Razin et
#   al. call $\phi_w\cdot\phi_l-\|\phi_w\|^2$ the CHES score: high for a pair whose two answers
#   look alike to the model. Dropping the highest repaired their runs.
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
# | picture | the triangle: on one pair of equal lengths the loss decides how far, not where; labels decide where |
# | numbers | start: loss 0.6931, push β/2 · end: the gap in $h$ is the gap in scores over β |
# | assumed | KL as the leash, Bradley-Terry as the people |
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
# A larger β keeps the policy closer to the reference. At the optimum the gap in log-ratios is the
# reward gap over β, so a small β moves further. In the first steps of plain gradient descent it
# looks the other way round, for the push has a factor β; Adam takes most of that away.
# </details>
# <details><summary><b>Is DPO's implicit reward β log π/π_ref?</b></summary>
#
# Up to β log Z of the prompt. So compare it between answers to one prompt, never between prompts.
# </details>
# <details><summary><b>My DPO loss falls, and so does the chosen log-probability. Is it broken?</b></summary>
#
# Not necessarily: the loss sees only the gap. With shared parameters a push on the pair moves
# other answers, and one of them can rise faster than the chosen one. Find out where the mass went:
# sample and grade. If it went wrong: fresh pairs; else a larger β or an earlier stop; drop pairs
# whose answers are nearly alike; last an anchor with NLL, which also slows the learning.
# </details>
# <details><summary><b>IPO, SimPO, KTO: one sentence each.</b></summary>
#
# IPO: a squared loss, so that the gap has a target, 1/(2β). SimPO: no reference, the mean
# log-probability per token, a margin. KTO: single answers marked good or bad, each against a
# reference point.
# </details>
# <details><summary><b>DPO and RLHF have the same optimum. Why does anybody still run PPO or GRPO?</b></summary>
#
# Because the optimum is the same only for the same labels, the same functions, and training to
# the end. Online RL can buy labels for what the policy says now; a verifier gives them away. DPO
# moves answers outside its pairs and hears nothing about them. So: good pairs and no cheap grader,
# DPO, two forward passes and no sampling; answers that can be graded, online RL; on-policy DPO lies
# between.
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
