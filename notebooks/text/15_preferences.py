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
# **After this page** you can derive DPO line by line, say what its β does, and say what its
# training log does not show.
#
# 35 minutes, then 8 in a second sitting · exercises 34 more · after 05 (KL) and 08 (GRPO) · DPO:
# Rafailov et al. 2023, [arXiv 2305.18290](https://arxiv.org/abs/2305.18290)
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
from rlnb.toys import kl_optimum, tone_features, win_chances
from rlnb.training.studies.preferences import recorded
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the toy, folded: eight files of 40 comparisons, and train(loss)
ref = torch.tensor([0.3, 0.5, 0.2])              # No, Never, Yes
taste = torch.tensor([2.0, 1.0, 0.0])            # hidden scores of people
dice = torch.Generator().manual_seed(0)
a, b = torch.tensor([[0, 1], [0, 2], [1, 2]])[
    torch.randint(3, (8, 40), generator=dice)].unbind(-1)
a_wins = torch.rand(8, 40, generator=dice) < win_chances(taste)[a, b]
chosen = torch.where(a_wins, a, b)               # (8, 40): eight files
rejected = torch.where(a_wins, b, a)
w, l = chosen[0], rejected[0]                    # the first file

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
# probability 0.3, the harsh "Never" with 0.5, and "Yes" with 0.2. Forty times a person sees two of
# the answers and chooses one. People have hidden scores: 2 for No, 1 for Never, 0 for Yes. They
# choose an answer with the chance $\sigma(\text{its score}-\text{the other's})$, where $\sigma$ is
# the sigmoid. Two roads lead from these choices to a policy.
#
# * **Road 1** fits a score to each answer that explains the choices: a *reward model*. Then RL
#   raises the expected score minus β times the KL to the start.
# * **Road 2** descends one loss of the policy on the same choices. It fits no scores and draws no
#   samples. It is called **DPO**, *Direct Preference Optimization*.
#
# The aim is the policy that RL would find with the true scores. Forty choices are few and noisy, so
# both roads miss it. We try eight files of forty, with β = 1, and train to the end.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.1", "Which road ends further from the aim?",
        ["road 1, on average", "road 2, on average",
         "neither: equal on every file",
         "neither: equal only on average"])

# %% jupyter={"source_hidden": true}
# the two roads, folded: you derive road 2's loss below
def gap_of(x):
    """Chosen minus rejected of each choice, (8, 40)."""
    return x.gather(1, chosen) - x.gather(1, rejected)

def rl_loss(scores, beta=1.0):
    """z -> -(E[score] - beta KL), exact: no sampling noise."""
    def loss(z):
        logp = z.log_softmax(-1)
        return -(logp.exp() * (scores - beta * (logp - ref.log()))).sum()
    return loss

start = ref.log().expand(8, 3)
scores = train(lambda s: -logsigmoid(gap_of(s)).mean(1).sum(),
               torch.zeros(8, 3))[-1]
road_1 = train(rl_loss(scores), start)[-1].softmax(1)
road_2 = train(lambda z: -logsigmoid(gap_of(
    z.log_softmax(1) - ref.log())).mean(1).sum(), start)[-1].softmax(1)
aim = kl_optimum(ref, taste, 1.0)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
assert (road_1 - road_2).abs().max() < 1e-9
reveal("preferences.1", "neither: equal on every file",
       "The noise moves both to the same place: on the second file to "
       f"{road_2[1, 0]:.3f}, where {aim[0]:.3f} would be right. How can a "
       "loss that never fitted a score make the same mistake?",
       pictures.same_files(road_1[:, 0], road_2[:, 0], aim[0].item(),
                           ref[0].item(), "Circle: road 1. Cross: road 2."),
       instead={
           "road 1, on average":
           "It has two fits. But the second one, RL, is exact here and "
           "adds no noise.",
           "road 2, on average":
           "Nothing seems to smooth its choices. But its loss has scores "
           "in it, as you will see.",
           "neither: equal only on average":
           "Two estimators with errors of their own would do this.",
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
# is 0.587, 0.360 and 0.053. This is the aim in the picture.
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
# trained on the first file. Look at the last column.

# %%
def dpo_on_choices(z, beta=1.0):
    h = z.log_softmax(0) - ref.log()
    return -logsigmoid(beta * (h[w] - h[l])).mean()

beta_h = train(dpo_on_choices, ref.log())[-1].log_softmax(0) - ref.log()
fit = scores[0]
print("answer   β h     score of road 1   score − β h")
for name, b, r in zip(("No", "Never", "Yes"), beta_h, fit):
    print(f"{name:6s} {b:+.4f}   {r:+.4f}          {r - b:.4f}")
print(f"β log Z: {(ref * fit.exp()).sum().log():.4f}")

# %% [markdown]
# The constant is $\beta\log Z$, the same for all three answers. So a policy trained with DPO can
# grade two answers to the same prompt. And the two roads are one as long as three things hold: they
# have the same labels, scores and policy are built alike, and both train to the end.
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
# ## What does β do?
#
# In the objective β is the price of a nat of KL. In the loss β multiplies the gap $h_w-h_l$. We
# train DPO on all three pairs, once with β = 0.1 and once with β = 5, by 20,000 plain gradient
# steps of size 0.2. We use the exact chances of people, so there is no sampling noise.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.2", "Which of the two is further from the "
        "reference, after ten steps and at the end?",
        ["first β = 5, at the end β = 0.1",
         "first β = 0.1, at the end β = 5",
         "β = 0.1 both times", "β = 5 both times"])

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
betas = torch.tensor([0.1, 1.0, 5.0])[:, None]   # a row per beta
h = dpo_path(betas, torch.sigmoid(D @ taste),
             lambda p: torch.full((3,), 1 / 3), rate=0.2, steps=20_000)
logp = (ref.log() + h).log_softmax(-1)
kls = (logp.exp() * (logp - ref.log())).sum(-1)
runs = dict(zip(betas[:, 0].tolist(), kls.T))
gap = (h[-1, :, 0] - h[-1, :, 2]).tolist()       # No against Yes
assert kls[9, 2] > 10 * kls[9, 0] and kls[-1, 0] > 10 * kls[-1, 2]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.2", "first β = 5, at the end β = 0.1",
       "The first push is β/2, so a small β starts slowly. At the end "
       "β$h$ must explain the same people: No scores 2 above Yes, so the "
       "gap in $h$ is 2/β. For β = 0.1 that is 20 nats "
       f"({gap[0]:.1f} after all these steps), for β = 5 it is "
       f"{gap[2]:.1f}. **A small β lets the policy go far. Plain gradient "
       "steps make it look the other way round at first.** (With Adam the "
       "small β leads from the start: statements page.)",
       pictures.kl_paths(runs, "Distance from the reference. β = 5 has "
                               "arrived after its first step."),
       instead={
           "first β = 0.1, at the end β = 5":
           "Both are the other way round: β multiplies the push and "
           "divides the end.",
           "β = 0.1 both times":
           "At the end, yes. But its first push is fifty times smaller.",
           "β = 5 both times":
           "It starts fast, soon explains the people, and stops there.",
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
        ["about 500", "about 50", "about 10", "about 5"])

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
       "No β gives it an end. A small β still goes further: after the "
       f"same steps the gap in h is {small / 0.1:.0f} nats at β = 0.1 and "
       f"{grown[10_000]:.0f} at β = 1. **The best policy lies infinitely "
       "far away. How far you go, β, rate and steps decide together.**",
       instead={
           "about 5":
           "Its push shrinks. It never becomes 0, so nothing settles.",
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
# Train DPO on the pair "No over Never" for 200 steps, with β = 0.1 and $k=1.5$. Here is the log,
# under the names that the library TRL prints: the loss, the mean of β(h_w − h_l), and the share of
# pairs in the right order.

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
    "The log of 200 steps.")

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.4", "Where is the probability after these 200 steps?",
        ["nearly all on No", "nearly all on Yes",
         "on No and Yes, 3 to 2", "on all three, as at the start"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
neutral = tone_features(1.5, tone=(0.0, -1.0, 0.0))   # Yes: no tone
paths["k = 1.5, but Yes has no tone"] = dpo_path(0.1, always, one, neutral)
policies = {name: torch.cat([ref[None], (ref.log() + h).softmax(-1)])
            for name, h in paths.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.4", "nearly all on Yes",
       "The step that lifts No over Never also moves the tone, away from "
       "Never and so towards Yes. The right panel tests this: take the "
       "tone of Yes away, and No wins. This is **likelihood displacement** "
       "([arXiv 2410.08847](https://arxiv.org/abs/2410.08847)): the chosen "
       "answer falls while the loss falls, the margin grows and every pair "
       "is in order. TRL also prints `logps/chosen`, and that falls.",
       pictures.probabilities(policies,
                              "One pair, one loss, three policies."),
       instead={
           "nearly all on No":
           "It would be, if the pair said nothing about Yes.",
           "on No and Yes, 3 to 2":
           "That is their ratio at the start. It would stay, if only the "
           "logit of Never moved.",
           "on all three, as at the start":
           "A margin of 2 looks small. It is β times the gap, and the gap "
           "is 20 nats.",
       })

# %% [markdown]
# The sliders train the policy until the log shows the margin you ask for. They begin where the run
# ended. Before each task write down what you expect.

# %% jupyter={"source_hidden": true}
# the explorer
task("preferences.t1", one_pair.one_pair_explorer(),
     ("k = 1.5, β = 0.1: at which margin is No as likely as it gets? What "
      "does the log say there?", one_pair.likeliest),
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
# 2. At k = 0.95, the slider's last step below 1. The reason is below.
# 3. At β = 0.1 no margin does it. Yes passes No at a gap of 1.4 nats. A loss below 0.05 needs a
#    margin of 3, so β must be 2.2 or more: then a margin of 3 is a gap small enough. The price: the
#    policy has hardly moved, and No has at most 0.41. A larger β is a way to stop earlier.
# </details>
#
# **Why is the border at k = 1?** The loss pulls No and Never apart. A plain gradient step raises
# No's own number by some $s$ and lowers Never's by $s$. The tone rises by $ks$, because Never has
# $-k$ of it. So the logits move:
#
# $$\begin{aligned}
# \text{No:}&\quad +s&&\text{its own number, and none of the tone}\\
# \text{Yes:}&\quad k\cdot ks=k^2s&&\text{no number of its own has moved; it has }k\text{ of the tone}
# \end{aligned}$$
#
# Past $k=1$ Yes rises faster than No, though nobody judged it. At $k=1.5$ it is 2.25 to 1. The
# logit of No rises all the time, and its probability falls.
#
# ## The same pair, another method
#
# Keep the pair, $k=1.5$ and β = 0.1. Change the method.
#
# * **IPO** is DPO with a target for the gap: its loss is $(h_w-h_l-\frac1{2\beta})^2$. Here the
#   target is 5 nats.
# * **Road 1** fits a reward model to the pair. It is built like the policy: a score is the answer's
#   own number plus its part of a tone, with the same $k$. The fit stops at a margin of 2, where
#   DPO's log stood. Then RL trains to the end. It tries all three answers.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.5", "In which of the two does No end above Yes?",
        ["in both", "in IPO", "in road 1", "in neither"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def judge(features, pairs):
    """Scores (3,) of a reward model: pairs fitted up to a margin of 2."""
    theta = torch.zeros(4)
    while (features @ theta) @ D[0] < 2:
        wrong = torch.sigmoid(-(features @ theta) @ pairs.T)
        theta = theta + 0.005 * (wrong @ pairs @ features) / len(pairs)
    return features @ theta

def rl(scores, features=shared):
    """Logits after each step of RL on these scores, (steps, 3)."""
    loss = rl_loss(scores, beta=0.1)
    path = ref.log() + train(lambda t: loss(ref.log() + features @ t),
                             torch.zeros(4), 0.1, 4000) @ features.T
    best = kl_optimum(ref, scores, 0.1)
    assert (path[-1].softmax(0) - best).abs().max() < 4e-3
    return path

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
r = judge(shared, D[:1])
by_rl, by_dpo = rl(r), ref.log() + paths["shared tone, k = 1.5"]
assert (by_rl[-1].softmax(0) - by_dpo[-1].softmax(0)).abs().max() < 2e-3
target = train(lambda t: (D[0] @ shared @ t - 5) ** 2, torch.zeros(4),
               rate=0.002) @ shared.T

def ways(logits):
    return {name: torch.cat([ref[None], z.softmax(-1)])
            for name, z in logits.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.5", "in neither",
       "IPO takes DPO's way and stops at 5 nats. Yes passed No at 1.4. RL "
       "tries Yes and is paid for it: the reward model says "
       f"{r[0]:+.2f} for No and {r[2]:+.2f} for Yes. It is the factor 2.25 "
       "again, for the same steps fitted its scores. **Same labels, same "
       "features, same margin: the two roads end at the same policy, also "
       "when it is wrong.**",
       pictures.triangle(ways({"DPO": by_dpo, "IPO": ref.log() + target,
                               "reward model, then RL": by_rl}),
                         "A point is a policy. In a corner one answer has "
                         "all the probability."),
       instead={
           "in both":
           "Both have only this pair, and it lifts Yes by 2.25 where it "
           "lifts No by 1.",
           "in IPO":
           "It does stop, and keeps some of No. It stops too late.",
           "in road 1":
           "RL does try Yes. But what it is paid there comes from the same "
           "pair.",
       })

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | DPO | |
# |---|---|
# | sentence | the best policy under reward minus β KL is the reference times $e^{r/\beta}$, so its log-ratio is the reward; put it into Bradley-Terry and fit it to choices |
# | formula | $L=-\log\sigma\big(\beta(h_w-h_l)\big)$, $h=\log\pi_\theta/\pi_{ref}$ summed over tokens |
# | push | $\pm\beta\,\sigma(-\beta(h_w-h_l))$ on every token of the pair |
# | picture | the triangle: with fixed features and plain gradient steps, a loss of the gap decides how far, not where; the features of the two answers decide where |
# | numbers | start: loss 0.6931, push β/2 · end: the gap in $h$ is the gap in scores over β; infinite with one label per pair |
# | assumed | KL as the leash, Bradley-Terry as the people |
# | against GRPO | given pairs for own samples, a preference for a reward, no ratio to clip, no group |

# %%
score(*(f"preferences.{i}" for i in range(1, 6)))

# %% [markdown]
# ## Second sitting: what could tell it about Yes?
#
# Change one thing at a time, with $k=1.5$ and β = 0.1 in the policy as before.
#
# * **A full file**: DPO on all three pairs, read again and again.
# * **Fresh pairs**: DPO on the pairs that the policy would draw as it is now, labelled, at every
#   step. This is **on-policy DPO**. (The toy takes their exact shares.)
# * **A plain judge**: road 1 on the one pair "No over Never". Its reward model has no tone: a score
#   is one number for each answer.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.6", "Which of the three end on No?",
        ["all three", "the full file and fresh pairs",
         "fresh pairs and the plain judge", "fresh pairs alone"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def drawn(p):
    """How often two different answers of the policy are each pair."""
    both = torch.stack([p[0] * p[1], p[0] * p[2], p[1] * p[2]])
    return both / both.sum()

def dpo_on(share):
    return ref.log() + dpo_path(0.1, always, share, shared, steps=1000)

table = tone_features(0.0)                       # nothing shared
plain = judge(table, D[:1])
told = {"DPO, the full file": dpo_on(lambda p: torch.full((3,), 1 / 3)),
        "DPO, fresh pairs": dpo_on(drawn),
        "plain judge, then RL": rl(plain)}
assert all(z[-1].softmax(0)[0] > 0.99 for z in told.values())
# two controls: a judge with a tone that has read the full file, and a
# policy without a tone whose judge has one
assert kl_optimum(ref, judge(shared, D), 0.1)[0] > 0.99
turned = rl(r, table)[-1].softmax(0)
assert turned[2] > 0.99 < policies["nothing shared, k = 0"][-1, 0]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.6", "all three",
       "The full file and fresh pairs bring a label on Yes. (Road 1 with "
       "the full file ends on No, too.) The plain judge has no label on "
       f"Yes: its score stays at {plain[2].abs():.0f}, where it began, and "
       f"No has {plain[0]:+.0f}. RL tries Yes, is paid less for it, and "
       "leaves it. The other way round, a policy without a tone and a "
       f"judge with one, RL ends on Yes ({turned[2]:.2f}) and DPO on No. "
       "**On one pair DPO goes where the policy's features point, and road "
       "1 where the judge's do. Labels on Yes overrule both.**",
       pictures.triangle(ways(told), "Three ways to No.", looks=(3, 4, 2)),
       instead={
           "the full file and fresh pairs":
           "They have the labels. But a judge that knows nothing of Yes "
           "does not have to like it.",
           "fresh pairs and the plain judge":
           "Both look at what the policy draws. The full file is old, and "
           "it has a label on Yes. That is enough.",
           "fresh pairs alone":
           "They find by themselves which answer needs a label. A file "
           "that has it does as well, and a judge without tone needs none.",
       })

# %% [markdown]
# Look at the line of the full file. Two of its pairs push Yes down, and the tone that lowers Yes
# lifts Never. So the policy makes a detour towards Never, until the pair "No over Never" brings it
# back.
#
# **Here the roads part.** DPO's reward is the policy's log-ratio, so it judges an answer that
# nobody compared by the features that the policy has. A reward model may be built in another way,
# and may judge better or worse.
#
# ### Does it happen in a transformer?
#
# These runs were recorded on the course's small model (0.3M parameters), which answers sums such as
# `4+3-8=?`. A right and a wrong answer of the model to the same sum make a pair. DPO trains on
# them: β = 0.1, AdamW at 3e-4, 40 steps of 64 pairs, three seeds. With 256 pairs, each read ten
# times, the share of right answers to new sums rises from 0.35 to 0.72, and then falls to 0.53. Is
# it because they were read ten times? We take 2,560 pairs and read each once.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.7", "What does the share of right answers do now?",
        ["it rises higher and stays there",
         "it rises higher and falls again",
         "it rises as high and stays there",
         "it rises as high and falls again"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
file = recorded()
names = {"DPO": "256 pairs, β = 0.1",
         "DPO, 2,560 pairs": "2,560 pairs, β = 0.1",
         "DPO, beta 1": "256 pairs, β = 1",
         "DPO, fresh pairs": "fresh pairs, β = 0.1"}
arms = {said: file[arm] for arm, said in names.items()}
graded = torch.tensor(file["header"]["graded"])
shares = {said: torch.tensor([run["pass@1"] for run in runs])
          for said, runs in arms.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def log_at(said, step):
    """The log's margin and accuracy, mean of 5 steps up to this one."""
    b = 1.0 if said.endswith("= 1") else 0.1
    up, down, order = (torch.tensor([run[column][step - 5:step]
                                     for run in arms[said]]).mean()
                       for column in ("chosen", "rejected", "accuracy"))
    return b * (up - down), order

rows = ""
for said, share in shares.items():
    mean = share.mean(0)
    best, error = int(mean.argmax()), share[:, -1].std() / 3**0.5
    (m, a), (M, A) = log_at(said, int(graded[best])), log_at(said, 40)
    rows += (f"| {said} | {mean[best]:.2f}, step {graded[best]} | "
             f"{mean[-1]:.2f} ± {error:.2f} | {m:.2f} → {M:.2f} | "
             f"{a:.2f} → {A:.2f} | {arms[said][0]['answers']:,} |\n")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.7", "it rises higher and falls again",
       "So it falls without repetition, too. Two more runs are shown "
       "with it: a larger β, and 64 fresh pairs before every step, drawn "
       "from the model as it is then. The start is "
       f"{file['header']['pass@1']:.2f}. The numbers are means of three "
       "seeds, ± the standard error; margin and accuracy come from the "
       "log, at the best step and at the end."
       "\n\n| | share right, best | at the end | margin | accuracy | "
       "answers drawn |\n|---|---|---|---|---|---|\n" + rows,
       pictures.on_a_network(
           {"header": file["header"], **arms}, list(arms),
           "Above: log-ratios of the pairs. Below: share of right answers "
           "to new sums. A line per seed."),
       instead={
           "it rises higher and stays there":
           "More pairs help. They are still all answers of the model that "
           "began.",
           "it rises as high and stays there":
           "That would be the case if ten readings were the trouble, and "
           "256 pairs had taught all there was.",
           "it rises as high and falls again":
           "It falls again. Before that it gains from more pairs.",
       })

# %% [markdown]
# **The log does not show the turn.** From its best step to the end, the first run's margin grows
# from 0.41 to 1.28 and its accuracy from 0.87 to 0.91, while the share of right answers falls from
# 0.72 to 0.53. A likely reason: at −15 nats a rejected answer is three million times less likely
# than at the start. To push it further down teaches nothing, and it still moves all other answers
# through the shared parameters. Fresh pairs are answers that the model gives now. Their run does
# not turn in these 40 steps. It drew twice the answers of the run with 2,560 pairs.
#
# **In a real run** grade samples while you train, and stop by the grades. `logps/chosen` is a cheap
# alarm, and not a sure one: at β = 1 the share slips from 0.77 to 0.72 while the chosen log-ratio
# stays near 0. TRL's `DPOTrainer` starts from β = 0.1 and learning rate 1e-6. Tune β, learning rate
# and steps together, for all three decide how far the gap goes.
#
# **It happens at scale.** Razin et al. trained Llama-3-8B-Instruct *to refuse* unsafe prompts, and
# its refusals fell from 74.4 % to 33.4 % ([arXiv 2410.08847](https://arxiv.org/abs/2410.08847)).
# The probability went to harmful answers.
#
# **When does a reward model of its own pay?** When it judges new answers better than the policy's
# log-ratio does. Lin et al. trained both on the same pairs and tested five shifts of data: the
# log-ratio's accuracy was 3 % lower on average, 7 % at most
# ([arXiv 2409.03650](https://arxiv.org/abs/2409.03650)). Razin et al. find a cause: the log-ratio
# leans more on the single tokens of an answer, a reward model on the hidden state
# ([arXiv 2507.07981](https://arxiv.org/abs/2507.07981)). It is our toy's lesson: other features,
# other judgement.
#
# <details><summary>One level deeper: which pairs displace, Adam, noisy labels</summary>
#
# * *Which pairs.* On one pair the logit of an answer $y$ rises by $\phi_y\cdot(\phi_w-\phi_l)$ a
#   step, $\phi$ the features of an answer. Any $y$ for which this is larger than for $w$ overtakes
#   it. With the last hidden states as $\phi$, summed over tokens, Razin et al. call
#   $\phi_w\cdot\phi_l-\|\phi_w\|^2$ the CHES score. It is high for a pair whose two answers look
#   alike to the model. Dropping the highest repaired their runs.
# * *Where the two equations stop.* They need features that stay put and plain gradient steps. In a
#   network the features move. Adam's first step has the same size for every number, so the tone
#   rises by $s$ and Yes by $k\,s$: another way, with the border again at $k=1$.
# * *Noisy labels* make the best gap finite again. Conservative DPO assumes a share of wrong labels.
# * *Other losses* at equal gaps (SimPO, an anchor on the chosen answer), and all arms of the
#   recorded run: statements page.
# </details>

# %%
score("preferences.6", "preferences.7")

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
# squared loss is smallest at the finite gap 1/(2β), and it stops there. It moves the same features
# as DPO on the way: displacement stays possible.
# </details>
#
# The other seven can wait for another evening.
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
# Else stop earlier, or drop pairs whose answers are nearly alike. An anchor adds −log π of the
# chosen answer to the loss and holds that answer up.
# </details>
# <details><summary><b>IPO, SimPO, KTO: one sentence each.</b></summary>
#
# Three relatives of DPO. IPO: a squared loss, so that the gap has a target, 1/(2β). SimPO: no
# reference, the mean log-probability per token, a margin. KTO: single answers marked good or bad,
# each against a reference point.
# </details>
# <details><summary><b>DPO and RLHF have the same optimum. Why does anybody still run PPO or GRPO?</b></summary>
#
# Because online RL gets a judgement on what the policy says now. The optimum is the same only for
# the same labels, a reward and a policy built alike, and training to the end
# ([arXiv 2503.01067](https://arxiv.org/abs/2503.01067)). DPO moves answers outside its pairs and
# judges them by the policy's own features. A separate reward model has others, and has been
# measured to judge new answers better. With good pairs and no cheap grader: DPO, which needs no
# sampling. With a verifier: online RL. On-policy DPO lies between.
# </details>
# <details><summary><b>Why do DPO models write longer, and what do you do about it?</b></summary>
#
# Because the chosen answers of many files are a little longer, and DPO learns this taste with
# everything else. With one label per pair the taste has no end. And h is a sum over tokens, so that
# a long answer needs less push on each token. In our exact toy (statements page) a
# fair judge leaves the length as it was: the loss itself has no such taste. Cures: balance the
# pairs by length; or add $\alpha(T_w-T_l)$ inside σ, so that h need not explain what length
# explains ([arXiv 2403.19159](https://arxiv.org/abs/2403.19159)); and grade with a judge that
# controls for length. Dividing by the length (SimPO) is no neutral cure: it asks for a reward per
# token.
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
