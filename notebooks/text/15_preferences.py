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
# **After this page** you can derive DPO line by line, say what its β does, and say what a perfect
# training log does not show.
#
# 35 minutes, exercises 34 more · after 05 (KL) and 08 (GRPO) · DPO: Rafailov et al. 2023,
# [arXiv 2305.18290](https://arxiv.org/abs/2305.18290)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What does −β KL(π‖π_ref) do in the objective of RL?</summary>It is a price for every nat that the policy moves away from the reference, which is the frozen start (05).</details>
# <details><summary>2. What happens to the gradient when all rewards of a prompt rise by the same number?</summary>Nothing, in expectation: only differences within a prompt count (03).</details>
# <details><summary>3. A logit rises by a little. By how much does the log-probability of its answer rise?</summary>By (1 − π) times as much, for the others pull back through the softmax (02).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports
import torch
from torch.nn.functional import logsigmoid
from rlnb import check
from rlnb.classroom.explorers import one_pair
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import preferences as pictures
from rlnb.objective.preference import Pairs, dpo
from rlnb.toys import kl_optimum, tone_features, win_chances
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

def train(loss, z, rate=1.0, steps=1000):
    """Gradient descent on the numbers z; all of them, (steps, n)."""
    path = []
    for _ in range(steps):
        z = z.detach().requires_grad_()
        z = z - rate * torch.autograd.grad(loss(z), z)[0]
        path.append(z.detach())
    return torch.stack(path)

# %% [markdown]
# ## Two roads
#
# The toy of this page has one prompt: may the agent delete the backup? The model answers "No" with
# probability 0.3, the harsh "Never" with 0.5, and "Yes" with 0.2. Four thousand times a person sees
# two of the answers and chooses one. People have hidden scores: 2 for No, 1 for Never, 0 for Yes.
# They choose an answer with the chance $\sigma(\text{its score}-\text{the other's})$, where
# $\sigma$ is the sigmoid. Two roads lead from these choices to a policy.
#
# * **Road 1** fits a score to each answer that explains the choices: a *reward model*. Then RL
#   raises the expected score minus β times the KL to the start.
# * **Road 2** descends one loss of the policy on the same choices. It fits no scores and draws no
#   samples. It is called **DPO**, *Direct Preference Optimization*.
#
# Both train to the end, with β = 1.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.1", "How far apart do the two roads end, in the "
        "probability of No?",
        ["about 0.2", "about 0.02", "about 0.002", "below 0.00001"])

# %% jupyter={"source_hidden": true}
# the two roads, folded: you derive road 2's loss below
def rl_loss(scores, beta=1.0):
    """z -> -(E[score] - beta KL), exact: no sampling noise."""
    def loss(z):
        logp = z.log_softmax(0)
        return -(logp.exp() * (scores - beta * (logp - ref.log()))).sum()
    return loss

def choices(z):
    logp = z.log_softmax(0)
    return Pairs(logp[w], logp[l], ref.log()[w], ref.log()[l])

scores = train(lambda s: -logsigmoid(s[w] - s[l]).mean(), torch.zeros(3))
road_1 = train(rl_loss(scores[-1]), ref.log())[-1].softmax(0)
road_2 = train(lambda z: dpo(choices(z), 1.0).mean(),
               ref.log())[-1].softmax(0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
assert (road_1 - road_2).abs().max() < 1e-6
reveal("preferences.1", "below 0.00001",
       "The two policies are the same. How can a loss that never fitted a "
       "score do this?",
       pictures.two_roads({"start": ref, "road 1: scores, then RL": road_1,
                           "road 2: one loss": road_2},
                          "Two trainings. Only one of them has a reward."),
       instead={
           "about 0.2":
           "That would be a method that loses what the scores say.",
           "about 0.02":
           "4,000 choices have some noise, and both roads hear the same.",
           "about 0.002":
           "Two good approximations would differ so. These are not two.",
       })

# %% [markdown]
# ## Derive it
#
# Begin with what road 1 wants, for one prompt, and rewrite it.
#
# $$\begin{aligned}
# J&=\mathbb E_{y\sim\pi}\Big[r(y)-\beta\log\frac{\pi(y)}{\pi_{ref}(y)}\Big]&&\textbf{what we choose to want: reward minus β KL (05)}\\
# &=-\beta\;\mathbb E_{y\sim\pi}\Big[\log\frac{\pi(y)}{\pi_{ref}(y)\,e^{r(y)/\beta}}\Big]&&\text{write }r\text{ as }\beta\log e^{r/\beta}\\
# &=-\beta\;\mathbb E_{y\sim\pi}\Big[\log\frac{\pi(y)}{\pi^*(y)}\Big]+\beta\log Z&&\pi^*=\pi_{ref}\,e^{r/\beta}/Z\text{; }Z\text{ makes it sum to 1}
# \end{aligned}$$
#
# The last expectation is the KL from $\pi$ to $\pi^*$. It is 0 at $\pi=\pi^*$ and above 0
# elsewhere. So **the best policy is $\pi^*$: the reference times $e^{r/\beta}$.** We cannot compute
# it for a language model, because $Z$ is a sum over all possible answers. In the toy we can.
#
# **By hand.** The scores are 2, 1, 0 and β = 1. What is $\pi^*$ of No, Never and Yes? Then unfold.
#
# <details><summary>π* by hand</summary>
#
# 0.3 e² = 2.217, 0.5 e = 1.359 and
# 0.2. <!-- cited: 2.217, 1.359, 3.776, 0.587, 0.360, 0.053, 0.2 --> Their sum is Z = 3.776, so π*
# is 0.587, 0.360 and 0.053. The two roads arrived close to it. The difference is the noise of 4,000
# choices.
# </details>
#
# We read the formula backwards. Call $h=\log\pi/\pi_{ref}$ the *log-ratio* of an answer, and $h^*$
# that of $\pi^*$.
#
# $$\begin{aligned}
# r(y)&=\beta\,h^*(y)+\beta\log Z&&\text{take the log of }\pi^*\text{ and solve for }r\\
# r_w-r_l&=\beta\,(h^*_w-h^*_l)&&w\text{ chosen, }l\text{ rejected; one prompt has one }Z\text{, so it cancels}\\
# P(w\text{ beats }l)&=\sigma(r_w-r_l)&&\textbf{an assumption about people: Bradley-Terry}
# \end{aligned}$$
#
# So every policy $\pi_\theta$ is the best one for some reward, namely
# $\beta\log\pi_\theta/\pi_{ref}$. We can search over policies instead of rewards:
#
# $$L=-\log\sigma\big(\beta\,(h_w-h_l)\big)\qquad h=\log\frac{\pi_\theta}{\pi_{ref}}\text{: minus the log-probability of the choice}$$
#
# That is DPO, for one pair. It is logistic regression on pairs, with $\beta h$ as the score. The
# loss is the mean of this over all pairs $(x,y_w,y_l)$ of the file. **It does not skip the reward.
# The reward sits in the policy: it is $\beta h$, up to one number per prompt, and that number
# cancels in every comparison.**
#
# Then $\beta h$ of road 2 must be the score of road 1 minus a constant. Here is DPO in two lines,
# trained on the 4,000 choices. Look at the last column.

# %%
def dpo_on_choices(z, beta=1.0):
    h = z.log_softmax(0) - ref.log()
    return -logsigmoid(beta * (h[w] - h[l])).mean()

beta_h = train(dpo_on_choices, ref.log())[-1].log_softmax(0) - ref.log()
fit = scores[-1]
print("answer   β h     score of road 1   score − β h")
for name, b, r in zip(("No", "Never", "Yes"), beta_h, fit):
    print(f"{name:6s} {b:+.4f}   {r:+.4f}          {r - b:.4f}")
print(f"β log Z: {(ref * fit.exp()).sum().log():.4f}")

# %% [markdown]
# The constant is $\beta\log Z$, the same for all three answers. So a policy trained with DPO can
# grade two answers to the same prompt.
#
# Now one pair by hand, with β = 0.1. Against the reference, the chosen answer has gained 2 nats and
# the rejected one has lost 1.

# %%
h_w, h_l = (torch.tensor(x, requires_grad=True) for x in (2.0, -1.0))
loss = -logsigmoid(0.1 * (h_w - h_l))
slopes = torch.autograd.grad(loss, (h_w, h_l))
print(f"loss {loss:.4f}, slopes {slopes[0]:+.4f} and {slopes[1]:+.4f}; "
      f"loss at h = 0: {torch.tensor(2.0).log():.4f}")

# %% [markdown]
# The reference is a constant, so $\nabla h=\nabla\log\pi_\theta$, and this is DPO's gradient:
#
# $$\nabla L=-\,\underbrace{\beta\,\sigma\big(-\beta(h_w-h_l)\big)}_{\text{how wrong the order still is}}\;\underbrace{\big(\nabla\log\pi_\theta(y_w)-\nabla\log\pi_\theta(y_l)\big)}_{\text{up the chosen, down the rejected}}$$
#
# The weight is β times the chance that the model still gives to the wrong order. At the start this
# chance is one half, and the loss is $\log2=0.6931$.
#
# **Try it.** Guess the slopes at β = 1. Then put 1 for 0.1 into the cell and run it.
#
# <details><summary>What you see</summary>
#
# About the same slopes, 0.0474. <!-- cited: 0.0474, 0.43, 0.05 --> β is ten times as large. But the
# chance of the wrong order has fallen from 0.43 to 0.05.
# </details>
#
# ## What does β do?
#
# In the objective β is the price of a nat of KL. In the loss β multiplies the gap $h_w-h_l$. We
# train DPO on all three pairs with four β. We use the exact chances of people, so there is no
# sampling noise.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.2", "Trained to the end: with which β is the policy "
        "furthest from the reference?",
        ["β = 0.1", "β = 1", "β = 5", "all alike"])

# %% jupyter={"source_hidden": true}
# DPO on the three pairs, folded: dpo_path(β, choices, pairs, features)
D = torch.tensor([[1.0, -1, 0], [1, 0, -1], [0, 1, -1]])   # three pairs

def dpo_path(beta, chance, share, features=torch.eye(3), rate=1.0,
             steps=200):
    """h after each step, up to a constant.

    chance (3,): how often the first answer of a pair is chosen.
    share(p) (3,): how often each pair comes while the policy is p."""
    theta, path = torch.zeros(features.shape[1]), []
    for _ in range(steps):
        h = theta @ features.T
        p = (ref.log() + h).softmax(-1)
        wrong = chance - torch.sigmoid(beta * (h @ D.T))
        theta = theta + rate * beta * (share(p) * wrong) @ D @ features
        path.append(theta @ features.T)
    return torch.stack(path)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
betas = torch.tensor([0.1, 0.5, 1.0, 5.0])[:, None]      # a row per beta
h = dpo_path(betas, torch.sigmoid(D @ taste),
             lambda p: torch.full((3,), 1 / 3), rate=0.2, steps=20_000)
logp = (ref.log() + h).log_softmax(-1)
kls = (logp.exp() * (logp - ref.log())).sum(-1)
runs = dict(zip(betas[:, 0].tolist(), kls.T))
gap = (h[-1, :, 0] - h[-1, :, 2]).tolist()       # No against Yes

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.2", "β = 0.1",
       "At the end β$h$ must explain the same people: No scores 2 above "
       "Yes. So the gap in $h$ itself is 2/β. For β = 0.1 that is 20 nats "
       f"({gap[0]:.1f} after these 20,000 steps), for β = 5 it is "
       f"{gap[3]:.1f}. **A small β lets the policy go far.**",
       pictures.kl_paths(runs, "The first steps show the opposite order: a "
                               "plain gradient step is proportional to β. "
                               "With Adam it is not."),
       instead={
           "β = 1": "There the log-ratios are the people's scores. A "
                    "smaller β stretches them.",
           "β = 5": "It pushes hardest at first, and soon explains the "
                    "people. There it ends.",
           "all alike":
           "What is alike is β times the gap.",
       })

# %% [markdown]
# ## One pair, one label
#
# So far many people judged every pair, and some chose the worse answer. In a data set a pair has
# one label: for the loss, No beats Never *always*. From here on all labels are like that. Train
# on this one pair with β = 1 and steps of size 1.

# %%
margin, grown = 0.0, {}
for step in range(1, 10_001):
    margin += 2 * torch.sigmoid(torch.tensor(-margin)).item()
    grown[step] = margin
print("margin:", ", ".join(f"{grown[n]:.2f} after {n}" for n in (10, 100)))

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.3", "The margin is β(h_w − h_l). And after 10,000 "
        "steps?",
        ["about 500", "about 50", "about 10", "about 5.3: it has settled"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
small = 0.0                                      # the margin at β = 0.1
for _ in range(10_000):
    small += 2 * 0.1**2 * torch.sigmoid(torch.tensor(-small)).item()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.3", "about 10",
       f"It is {grown[10_000]:.2f}. Ten times as many steps add log 10. "
       "The push fades and never becomes 0, for no gap is large enough. "
       "No β gives it an end. A small β still goes further: after the same "
       f"steps the gap in h is {small / 0.1:.0f} nats at β = 0.1 and "
       f"{grown[10_000]:.0f} at β = 1. **The best policy lies infinitely "
       "far away. How far you go, β, rate and steps decide together.**",
       instead={
           "about 5.3: it has settled":
           "Its push shrinks. It never becomes 0.",
           "about 50":
           "A hundred times the steps, ten times the way: no, the push "
           "shrinks faster than that.",
           "about 500":
           "That is the way of a push that keeps its first size.",
       })

# %% [markdown]
# <details><summary><b>So far, in two lines.</b> Say yours, then unfold.</summary>
#
# The policy's βh is a reward. If labels sometimes err, the gap in h ends at the gap in scores over
# β. If each pair has one label, the gap has no end.
# </details>
#
# ## Answers share parameters
#
# So far each answer had one number of its own. In a network, answers share parameters. Our smallest
# network has four numbers to train: one for each answer, and one that is shared, the `tone`. The
# logit of Never gets $-k$ times the tone, the logit of Yes $+k$ times, and No gets none. With $k=0$
# nothing is shared.
#
# Train DPO on the pair "No over Never", with β = 0.1 and $k=1.5$. Look at its log: the loss falls,
# and the margin grows.

# %% jupyter={"source_hidden": true}
# the training log
always = torch.ones(3)                           # labels never err
def one(p):
    return torch.tensor([1.0, 0, 0])             # only No and Never

shared = tone_features(1.5)
worlds = {"nothing shared, k = 0": tone_features(0.0),
          "shared tone, k = 1.5": shared}
paths = {name: dpo_path(0.1, always, one, features)
         for name, features in worlds.items()}
nats = paths["shared tone, k = 1.5"] @ D[0]
pictures.what_the_log_says(
    -logsigmoid(0.1 * nats), 0.1 * nats, (nats > 0).double(),
    "Loss, margin β(h_w − h_l), and the share of pairs in the right order.")

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.4", "Where is the probability after these 200 steps?",
        ["nearly all on No", "nearly all on Yes",
         "near the start: 2 nats of margin are little",
         "on No and Yes, 3 to 2 as at the start"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
neutral = tone_features(1.5, tone=(0.0, -1.0, 0.0))   # Yes: no tone
paths["k = 1.5, but Yes has no tone"] = dpo_path(0.1, always, one, neutral)
policies = {name: torch.cat([ref[None], (ref.log() + h).softmax(-1)])
            for name, h in paths.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.4", "nearly all on Yes",
       "The pair “No over Never” also says *less harsh*, and Yes is the "
       "least harsh of all. The right panel tests this: take the tone of "
       "Yes away, and No wins. This is **likelihood displacement** "
       "([arXiv 2410.08847](https://arxiv.org/abs/2410.08847)): the chosen "
       "answer falls while the loss falls, the margin grows, and accuracy "
       "stays perfect. TRL also prints `logps/chosen`, and that falls.",
       pictures.probabilities(policies,
                              "One pair, one loss, three policies."),
       instead={
           "nearly all on No":
           "It would be, if the pair said nothing about Yes.",
           "on No and Yes, 3 to 2 as at the start":
           "It would be, if only the logit of Never had moved.",
           "near the start: 2 nats of margin are little":
           "The margin is β times the gap. The gap is 20 nats.",
       })

# %% [markdown]
# The sliders train the policy until the log shows the margin you ask for. β and the margin fix the
# gap, margin / β: they move you along one curve, and $k$ bends it.

# %% jupyter={"source_hidden": true}
# the explorer
task("preferences.t1", one_pair.one_pair_explorer(),
     ("k = 1.5, β = 0.1. Move the margin until No is as likely as it gets. "
      "What does the log say there?", one_pair.likeliest),
     ("β = 0.1 and the margin at 8: trained far. Find the largest k at "
      "which No still ends above 0.9. Why there?",
      one_pair.last_that_holds),
     ("k = 1.5 again. Get the loss below 0.05 with No the likeliest of the "
      "three. What did it cost?", one_pair.strong_and_kept))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. At a margin of 0.2. <!-- cited: 0.2, 0.60, 0.95, 1.4, 2.2, 0.41 --> The loss is 0.60, hardly
#    below log 2. In the log, training has just begun. Yes already leads there.
# 2. At k = 0.95, the slider's last step below 1. One step raises the logit of No by 1. It moves the
#    tone by k, and the tone moves Yes by k, so Yes rises by $k\cdot k$. Past k = 1 Yes rises faster
#    than No.
# 3. At β = 0.1 no margin does it. Yes passes No at a gap of 1.4 nats, so β must be 2.2 or more:
#    then a margin of 3 is a gap small enough. The price: the policy has hardly moved, and No has at
#    most 0.41. A larger β is a way to stop earlier. It does not change the road.
# </details>
#
# ## Four things to change
#
# Keep $k=1.5$ and β = 0.1. Change one thing at a time.
#
# * **IPO** is another loss on the same pair. It gives the gap a target:
#   $(h_w-h_l-\frac1{2\beta})^2$.
# * **Road 1** fits a reward model to the same pair. Its scores share the tone as the logits do. One
#   pair has no end, so we stop the fit when No scores 2 above Never. Then RL trains to the end.
# * **A full file** has all three pairs. DPO reads it again and again.
# * **Fresh pairs**: every step uses the pairs that the policy would draw as it is now, labelled.
#   This is **on-policy DPO**. (The toy takes their exact shares.)

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.5", "Which of the four end on No?",
        ["all four", "the full file and fresh pairs",
         "road 1 and fresh pairs: both sample the "
         "policy", "fresh pairs alone"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
reward = torch.zeros(4)
while (shared @ reward) @ D[0] < 2:              # one pair, always
    wrong = torch.sigmoid(-(shared @ reward) @ D[0])
    reward = reward + 0.001 * wrong * D[0] @ shared
r = shared @ reward
rl = rl_loss(r, beta=0.1)
by_rl = ref.log() + train(lambda t: rl(ref.log() + shared @ t),
                          torch.zeros(4), rate=0.1, steps=4000) @ shared.T
assert (by_rl[-1].softmax(0) - kl_optimum(ref, r, 0.1)).abs().max() < 1e-3
target = train(lambda t: (D[0] @ shared @ t - 5) ** 2, torch.zeros(4),
               rate=0.002) @ shared.T            # IPO: 1 / (2 beta) is 5
all_three = torch.zeros(4)                       # road 1, the full file
for _ in range(2000):
    wrong = torch.sigmoid(-(shared @ all_three) @ D.T)
    all_three = all_three + 0.1 * (wrong @ D @ shared) / 3
assert kl_optimum(ref, shared @ all_three, 0.1)[0] > 0.99    # ends on No

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def drawn(p):
    """How often two different answers of the policy are each pair."""
    both = torch.stack([p[0] * p[1], p[0] * p[2], p[1] * p[2]])
    return both / both.sum()

logits = {
    "DPO, the one pair": ref.log() + paths["shared tone, k = 1.5"],
    "IPO, the one pair": ref.log() + target,
    "reward model, then RL": by_rl,
    "DPO, the full file": ref.log() + dpo_path(
        0.1, always, lambda p: torch.full((3,), 1 / 3), shared, steps=1000),
    "DPO, fresh pairs": ref.log() + dpo_path(
        0.1, always, drawn, shared, steps=1000)}
few = ref.log() + dpo_path(0.1, always, lambda p: torch.tensor(
    [0.98, 0.01, 0.01]), shared, steps=20_000)
rare = few[999].softmax(0)[2], few[-1].softmax(0)[0]    # Yes, then No
ways = {name: torch.cat([ref[None], z.softmax(-1)])
        for name, z in logits.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.5", "the full file and fresh pairs",
       "IPO walks the same road and stops earlier: a loss of the gap "
       "decides how far, not where. RL samples Yes and is paid for it, "
       f"because the reward model says {r[2]:+.2f} for Yes and {r[0]:+.2f} "
       "for No. No person judged Yes; the shared tone did. **The cure is a "
       "label on Yes, and enough of them.** If only 1 % of the pairs have "
       f"one, Yes still has {rare[0]:.2f} after 1,000 steps, and No wins "
       f"late ({rare[1]:.2f} after 20,000). Fresh pairs find by themselves "
       "which answer needs a label.",
       pictures.triangle(ways, "A point is a policy. In a corner one "
                               "answer has all the probability."),
       instead={
           "all four":
           "IPO and road 1 hear nothing about Yes but its tone.",
           "road 1 and fresh pairs: both sample the policy":
           "Samples alone do not help. Road 1 grades them with what one "
           "pair taught it.",
           "fresh pairs alone":
           "The full file is old, and it has a label on Yes. That is "
           "enough.",
       })

# %% [markdown]
# Look at the line of the full file. It makes a detour towards Never, because two of its pairs push
# Yes down, and the tone that lowers Yes lifts Never. The pair "No over Never" brings it back. With
# these three labels road 1 ends on No as well. **The labels cure it, not the method.**
#
# ## On a transformer
#
# These runs were recorded on the course's small model of 0.3M parameters and its sums (AdamW,
# 3e-4). A pair is a right and a wrong answer of the model to the same prompt. Every run takes 40
# steps of 64 pairs, so 256 pairs are seen ten times. The loss falls in all runs. Look at the lower
# row.

# %% jupyter={"source_hidden": true}
# the picture
file = recorded()
names = {"DPO": "256 pairs, β = 0.1", "DPO, beta 1": "256 pairs, β = 1",
         "DPO, 2,560 pairs": "2,560 pairs, β = 0.1",
         "DPO, fresh pairs": "fresh pairs, β = 0.1"}
arms = {said: file[arm] for arm, said in names.items()}
pictures.on_a_network(
    {"header": file["header"], **arms}, list(arms),
    "Above: log-ratios of the pairs. Below: share of right answers to new "
    "prompts. A line per seed.")

# %% jupyter={"source_hidden": true}
# the numbers
print("share right             best    at the end    margin there"
      "   answers drawn")
beta = {"256 pairs, β = 1": 1.0}                 # else 0.1
for said, kept in arms.items():
    graded = torch.tensor([run["pass@1"] for run in kept])
    up, down = (torch.tensor([run[side][-5:] for run in kept]).mean()
                for side in ("chosen", "rejected"))
    print(f"{said:22s}  {graded.mean(0).max():.2f}    "
          f"{graded[:, -1].mean():.2f} ± {graded[:, -1].std() / 3**0.5:.2f}"
          f"   {beta.get(said, 0.1) * (up - down):12.2f}   "
          f"{kept[0]['answers']:,}")

# %% [markdown]
# At β = 0.1 given pairs first teach the model and then spoil it, even when each pair is seen only
# once. At β = 1 the model slips too, while its chosen log-ratio hardly falls. Fresh pairs go on to
# 0.97, with twice the answers of 2,560 given pairs. **The margin in the log does not rank the
# models:** the smallest margin belongs to the best one. So grade samples in any case.
#
# **In a real run.** TRL's `DPOTrainer` starts from β = 0.1 and learning rate 1e-6. Tune β, learning
# rate and steps together, for all three decide how far the gap goes. Watch `logps/chosen`. When it
# falls, sample from the policy, grade the samples, and stop by the grades. It happens at scale,
# too: Razin et al. trained Llama-3-8B-Instruct *to refuse* unsafe prompts, and its refusals fell
# from 74.4 % to 33.4 % ([arXiv 2410.08847](https://arxiv.org/abs/2410.08847)). The probability went
# to harmful answers.
#
# <details><summary>One level deeper: which pairs displace, labels, lengths</summary>
#
# * *Which pairs.* On one pair the logit of $w$ rises by $\phi_w\cdot(\phi_w-\phi_l)$ a step, $\phi$
#   the features of an answer. Any $y$ with a larger $\phi_y\cdot(\phi_w-\phi_l)$ overtakes it. With
#   the last hidden states as $\phi$, summed over tokens, Razin et al. call
#   $\phi_w\cdot\phi_l-\|\phi_w\|^2$ the CHES score. It is high for a pair whose two answers look
#   alike to the model. Dropping the highest repaired their runs.
# * *Noisy labels* make the best gap finite again. Conservative DPO assumes a share of wrong labels.
# * *Lengths.* $h$ is a sum over tokens. If people prefer long answers, so does the optimum.
# * *Other losses* at equal gaps (SimPO, an anchor on the chosen answer), and all arms of the
#   recorded run: statements page.
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | DPO | |
# |---|---|
# | sentence | the best policy under reward minus β KL is the reference times $e^{r/\beta}$, so its log-ratio is the reward; put it into Bradley-Terry and fit it to choices |
# | formula | $L=-\log\sigma\big(\beta(h_w-h_l)\big)$, $h=\log\pi_\theta/\pi_{ref}$ summed over tokens |
# | push | $\pm\beta\,\sigma(-\beta(h_w-h_l))$ on every token of the pair |
# | picture | the triangle: on one pair a loss of the gap decides how far, not where; a label on the answer that rises decides where |
# | numbers | start: loss 0.6931, push β/2 · end: the gap in $h$ is the gap in scores over β; infinite with one label per pair |
# | assumed | KL as the leash, Bradley-Terry as the people |
# | against GRPO | given pairs for own samples, a preference for a reward, no ratio to clip, no group |

# %%
score(*(f"preferences.{i}" for i in range(1, 6)))

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 12 minutes. DPO as a library has it, from tokens. The first half of the rows are
# the chosen answers, the second half the rejected ones, in the same order. Return the mean over
# pairs. Two traps: where the mask is 0 the numbers may be NaN, and a gap may be very negative.
#
# <details><summary>hint</summary>Per token, then per answer, then per pair. Where does the where go, and why is log(sigmoid(x)) not good enough?</details>

# %% tags=["exercise"]
def my_dpo_loss(logprobs, ref_logprobs, mask, beta):
    return ...

check.dpo_loss(my_dpo_loss)

# %% [markdown]
# **2 Two relatives** · 8 minutes. IPO: $(h_w-h_l-\frac1{2\beta})^2$, from log-probabilities of
# whole answers. SimPO has no reference, divides by the lengths $T$ and asks for a lead of $\gamma$:
# $-\log\sigma(\beta(\log\pi_w/T_w-\log\pi_l/T_l)-\gamma)$. Means over pairs.

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
# looks the other way round, for the push has a factor β; Adam takes most of that away. With one
# label per pair there is no optimum: β, rate and steps decide together how far it goes. Usual: 0.1.
# </details>
# <details><summary><b>What is DPO's gradient, and why the weight?</b></summary>
#
# The gradient of log π of the chosen answer minus that of the rejected one, times β σ(−margin). The
# weight is the chance the model still gives to the wrong order. Without it every pair would be
# pushed for ever at full strength, also those that are in order, and likelihoods would run away
# sooner.
# </details>
# <details><summary><b>Where is the KL in DPO?</b></summary>
#
# It is nowhere explicit; it is in the derivation. The reference enters through the log-ratios of
# the pair's two answers. No term holds an answer outside the pairs. With one label per pair the
# loss even drives the policy infinitely far, for every β; only the stop ends it.
# </details>
# <details><summary><b>Why does IPO exist?</b></summary>
#
# It gives the gap an end. With labels that never err, DPO's best gap is infinite at every β. IPO's
# squared loss is smallest at the finite gap 1/(2β). It stops there, on the same road: displacement
# stays possible.
# </details>
#
# The other six can wait for another evening.
#
# <details><summary><b>What does the reference cost, and when do you need SFT first?</b></summary>
#
# It costs a frozen copy and one more forward pass. Its log-probabilities can be computed once and
# cached, for pairs and reference do not change. SFT on the chosen answers comes first when another
# model wrote the pairs: else the reference finds both answers unlikely, and their log-ratio says
# little.
# </details>
# <details><summary><b>Is DPO's implicit reward β log π/π_ref?</b></summary>
#
# Up to β log Z of the prompt. So compare it between answers to one prompt, never between prompts.
# </details>
# <details><summary><b>My DPO loss falls, and so does the chosen log-probability. Is it broken?</b></summary>
#
# Not necessarily: the loss sees only the gap. With shared parameters a push on the pair moves other
# answers, and one of them can rise faster than the chosen one. Find out where the mass went: sample
# and grade. The cure is a label on the answer that rises: fresh pairs, or a file that contains it.
# Else stop earlier, or drop pairs whose answers are nearly alike. An anchor with NLL on the chosen
# answer holds it up, and slowed learning in our one run with it.
# </details>
# <details><summary><b>IPO, SimPO, KTO: one sentence each.</b></summary>
#
# Three relatives of DPO. IPO: a squared loss, so that the gap has a target, 1/(2β). SimPO: no
# reference, the mean log-probability per token, a margin. KTO: single answers marked good or bad,
# each against a reference point.
# </details>
# <details><summary><b>DPO and RLHF have the same optimum. Why does anybody still run PPO or GRPO?</b></summary>
#
# Because online RL gets labels on what the policy says now. The optimum is the same only for the
# same labels, the same functions and training to the end
# ([arXiv 2503.01067](https://arxiv.org/abs/2503.01067)). DPO moves answers outside its pairs and
# hears nothing about them. With good pairs and no cheap grader: DPO, which needs no sampling. With
# a verifier: online RL. On-policy DPO lies between.
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
