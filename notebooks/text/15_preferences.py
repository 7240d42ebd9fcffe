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
# **After this page** you can derive DPO line by line, say what its β does, and say when you would
# still fit a reward model.
#
# 37 minutes, then 9 in a second sitting · exercises 34 more · after 05 (KL) and 08 (GRPO) · DPO:
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
# the toy, folded: eight files of 40 pairs, and train(loss)
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
# Can a policy learn from people's choices if nobody fits a reward to them?
#
# Our toy has one prompt: may the agent delete the backup? The model answers "No" with probability
# 0.3, the harsh "Never" with 0.5, and "Yes" with 0.2. Forty times a person sees a *pair* of answers
# and chooses one: the *label*. People have hidden scores, 2 for No, 1 for Never, 0 for Yes, and
# choose an answer with the chance $\sigma(\text{its score}-\text{the other's})$, $\sigma$ the
# sigmoid. Two roads lead to a policy.
#
# * **Road 1** fits a *reward model*, a score for each answer, to the labels. Then RL raises the
#   expected score minus β times the KL to the start.
# * **Road 2** is **DPO**, *Direct Preference Optimization*. It descends one loss of the policy on
#   the labels. It fits no scores and draws no samples.
#
# The aim is what RL would find with the true scores. With forty noisy labels either road misses it.
# We try eight files of forty, with β = 1, and train to the end.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.1", "Which road ends further from the aim?",
        ["road 1, on average", "road 2, on average",
         "neither: equal on every file",
         "neither: equal only on average"])

# %% jupyter={"source_hidden": true}
# the two roads, folded: you derive road 2's loss below
def gap_of(x):
    """Chosen minus rejected of each pair, (8, 40)."""
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
           "Nothing seems to smooth its labels. But its loss has scores "
           "in it, as you will see.",
           "neither: equal only on average":
           "Two estimators with errors of their own would do this.",
       })

# %% [markdown]
# ## Derive it
#
# Which policy does road 1 look for? Take its aim for one prompt:
#
# $$\begin{aligned}
# J&=\mathbb E_{y\sim\pi}\Big[r(y)-\beta\log\frac{\pi(y)}{\pi_{ref}(y)}\Big]&&\textbf{what we choose to want: reward minus β KL (05)}\\
# &=-\beta\;\mathbb E_{y\sim\pi}\Big[\log\frac{\pi(y)}{\pi_{ref}(y)\,e^{r(y)/\beta}}\Big]&&\text{write }r\text{ as }\beta\log e^{r/\beta}\\
# &=-\beta\;\mathbb E_{y\sim\pi}\Big[\log\frac{\pi(y)}{\pi^*(y)}\Big]+\beta\log Z&&\pi^*=\pi_{ref}\,e^{r/\beta}/Z\text{; }Z\text{ makes it sum to 1}
# \end{aligned}$$
#
# The last expectation is the KL from $\pi$ to $\pi^*$: 0 at $\pi=\pi^*$, above 0 elsewhere. So
# **the best policy is $\pi^*$, the reference times $e^{r/\beta}$ over $Z$.** For a language model
# $Z$ sums over all possible answers: too many to compute.
#
# **By hand.** What is $\pi^*$ for the scores 2, 1, 0 and β = 1? Then unfold.
#
# <details><summary>π* by hand</summary>
#
# 0.3 e² = 2.217, 0.5 e = 1.359 and
# 0.2. <!-- cited: 2.217, 1.359, 3.776, 0.587, 0.360, 0.053, 0.2 --> Their sum is Z = 3.776, so π*
# is 0.587, 0.360 and 0.053. This is the aim in the picture.
# </details>
#
# Now backwards: for which reward is a given policy the best? Call $h=\log\pi/\pi_{ref}$ the
# *log-ratio* of an answer, and $h^*$ that of $\pi^*$.
#
# $$\begin{aligned}
# r(y)&=\beta\,h^*(y)+\beta\log Z&&\text{take the log of }\pi^*\text{ and solve for }r\\
# r_w-r_l&=\beta\,(h^*_w-h^*_l)&&w\text{ chosen, }l\text{ rejected; one prompt has one }Z\text{, so it cancels}\\
# P(w\text{ beats }l)&=\sigma(r_w-r_l)&&\textbf{an assumption about people: Bradley-Terry}
# \end{aligned}$$
#
# So a policy $\pi_\theta$ is the best one for the reward $\beta h$. Instead of a reward we can
# search for the policy under which the labels are likeliest:
#
# $$L=-\log\sigma\big(\beta\,(h_w-h_l)\big)\qquad h=\log\frac{\pi_\theta}{\pi_{ref}}\text{: minus the log-probability of the label}$$
#
# This is DPO for one pair; a file has the mean over its pairs. **DPO does not skip the reward. The
# reward sits in the policy: it is $\beta h$, up to one number per prompt, which cancels in every
# pair.**
#
# So $\beta h$ of road 2 must be road 1's score minus a constant. We train DPO on the first file.
# Look at the last column.

# %%
def dpo_on_labels(z, beta=1.0):
    h = z.log_softmax(0) - ref.log()
    return -logsigmoid(beta * (h[w] - h[l])).mean()

beta_h = train(dpo_on_labels, ref.log())[-1].log_softmax(0) - ref.log()
fit = scores[0]
print("answer   β h     score of road 1   score − β h")
for name, b, r in zip(("No", "Never", "Yes"), beta_h, fit):
    print(f"{name:6s} {b:+.4f}   {r:+.4f}          {r - b:.4f}")
print(f"β log Z: {(ref * fit.exp()).sum().log():.4f}")

# %% [markdown]
# The constant is $\beta\log Z$. So, **from the same labels, the two roads end at the same policy if
# three things hold**: the labels settle every score, up to a constant; reward model and policy can
# express the same scores; both train to the end.
#
# **What does one step do?** The reference is a constant, so $\nabla h=\nabla\log\pi_\theta$:
#
# $$\nabla L=-\,\underbrace{\beta\,\sigma\big(-\beta(h_w-h_l)\big)}_{\text{how wrong the order still is}}\;\underbrace{\big(\nabla\log\pi_\theta(y_w)-\nabla\log\pi_\theta(y_l)\big)}_{\text{up the chosen, down the rejected}}$$
#
# The weight is β times the chance that the model still gives to the wrong order: one half at the
# start, where the loss is $\log2$.
#
# ## What does β do?
#
# In the objective β is the price of a nat of KL. In the loss β multiplies the gap $h_w-h_l$. So
# does a larger β hold the policy back, or push it further? We train DPO on all three pairs by
# 20,000 plain gradient steps of size 0.2, with β = 0.1 and with β = 5. The labels have the exact
# chances of people: no noise.

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.2", "Which of the two is further from the "
        "reference, after ten steps and at the end?",
        ["first β = 5, at the end β = 0.1",
         "first β = 0.1, at the end β = 5",
         "β = 0.1 both times", "β = 5 both times"])

# %% jupyter={"source_hidden": true}
# DPO on the three pairs, folded: dpo_path(β, labels, pairs, features)
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
betas = torch.tensor([0.1, 5.0])[:, None]        # a row per beta
h = dpo_path(betas, torch.sigmoid(D @ taste),
             lambda p: torch.full((3,), 1 / 3), rate=0.2, steps=20_000)
logp = (ref.log() + h).log_softmax(-1)
kls = (logp.exp() * (logp - ref.log())).sum(-1)
runs = dict(zip(betas[:, 0].tolist(), kls.T))
gap = (h[-1, :, 0] - h[-1, :, 2]).tolist()       # No against Yes
assert kls[9, 1] > 10 * kls[9, 0] and kls[-1, 0] > 10 * kls[-1, 1]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.2", "first β = 5, at the end β = 0.1",
       "The push has the factor β, so the small β starts slowly. At the "
       "end β$h$ must explain the same people: No scores 2 above Yes, so "
       "the gap in $h$ is 2/β. For β = 0.1 that is 20 nats "
       f"({gap[0]:.1f} after all these steps), for β = 5 it is "
       f"{gap[1]:.1f}. **A small β lets the policy go far. Plain gradient "
       "steps of one size make it look the other way round at first.** "
       "Adam divides the factor β out: with it β = 0.1 leads after 20 "
       "steps already (statements page).",
       pictures.kl_paths(runs, "Distance from the reference; both axes "
                               "are logarithmic. β = 5 is nearly there "
                               "after one step."),
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
# **And if labels never err?** In many files a pair has one label. For the loss No then beats Never
# *always*, and no finite gap gives a chance of 1. We train on this pair alone, by steps of size 1:

# %% jupyter={"source_hidden": true}
# how far the gap goes, folded
print("gap, nats, after   10   100  1,000  10,000 steps")
for beta in (1.0, 0.1):
    margin, grown = 0.0, []                      # the margin is β · gap
    for step in range(1, 10_001):
        margin += 2 * beta**2 / (1 + torch.tensor(margin).exp().item())
        if step in (10, 100, 1000, 10_000):
            grown.append(margin / beta)
    print(f"β = {beta:<4g}      " + "".join(f"{x:7.1f}" for x in grown))

# %% [markdown]
# Neither β gives the gap an end. At β = 1 ten times the steps add about 2.3 nats, the log of ten.
# From here on labels never err, so where to stop is your decision.
#
# ## Answers share parameters
#
# What does a pair do to an answer that is not in it?
#
# So far each answer had a number of its own. In a network answers share parameters. Our smallest
# network trains four numbers: one for each answer, and a shared *tone*. The logit of Never gets
# $-k$ times the tone, that of Yes $+k$ times, that of No none. These factors, by which the trained
# numbers move a logit, are an answer's *features*. With $k=0$ nothing is shared.
#
# We train DPO on the pair "No over Never": 200 steps, β = 0.1, $k=1.5$. Here are three lines of the
# log, as the library TRL names them. (A margin is $\beta(h_w-h_l)$, the accuracy is the share of
# pairs in the right order.)

# %% jupyter={"source_hidden": true}
# the training log
always = torch.ones(3)                           # labels never err
def one(p):
    return torch.tensor([1.0, 0, 0])             # only No and Never

shared, plain = tone_features(1.5), tone_features(0.0)
worlds = {"nothing shared, k = 0": plain, "shared tone, k = 1.5": shared}
paths = {name: dpo_path(0.1, always, one, features)
         for name, features in worlds.items()}
nats = paths["shared tone, k = 1.5"] @ D[0]
print("step                 1     50    100    200")
for name, line in {"loss": -logsigmoid(0.1 * nats),
                   "rewards/margins": 0.1 * nats,
                   "rewards/accuracies": (nats > 0).double()}.items():
    print(f"{name:18s}" + "".join(f"{line[n - 1]:7.2f}"
                                  for n in (1, 50, 100, 200)))

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
fourth = 0.1 * (policies["shared tone, k = 1.5"][-1, 0] / ref[0]).log()

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.4", "nearly all on Yes",
       "The step that lifts No over Never also moves the tone, away from "
       "Never and so towards Yes. The right panel tests this: take the "
       "tone of Yes away, and No wins. This is **likelihood displacement** "
       "(Razin et al., [arXiv 2410.08847](https://arxiv.org/abs/2410.08847)"
       "; the three answers are theirs): the chosen answer becomes less "
       "likely while the loss falls. TRL also prints `rewards/chosen`, the "
       f"$\\beta h$ of the chosen answer: −{-fourth:.2f} at the end. "
       "Does that line give the alarm in time? Task 2 asks.",
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
# The sliders train the policy until the log shows the margin you ask for. Before each task write
# down what you expect.

# %% jupyter={"source_hidden": true}
# the explorer
task("preferences.t1", one_pair.one_pair_explorer(),
     ("β = 0.1 and the margin at 8: trained far. Find the largest k at "
      "which No still ends above 0.9. Why there?",
      one_pair.last_that_holds),
     ("k = 1.5. Get the loss below 0.05 and rewards/chosen above 0. Which "
      "answer leads? Go on until No leads. What did that cost?",
      one_pair.strong_and_kept))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. At k = 0.95, the slider's last step below 1. The reason is
#    below. <!-- cited: 0.95, 1.4, 4.2, 2.2, 0.41 -->
# 2. Yes passes No at a gap of 1.4 nats. But `rewards/chosen` is above 0 at every gap below 4.2
#    nats, for what Never loses goes to No and to Yes. Between the two all four lines can be good
#    while Yes leads. A loss below 0.05 needs a margin of 3, so No leads only if β is 2.2 or more.
#    The price: the policy has hardly moved, and No has at most 0.41.
# </details>
#
# **Why is the border at k = 1?** The loss pulls No and Never apart. A plain gradient step raises
# No's own number by some $s$ and lowers Never's by $s$. Never has $-k$ of the tone, so the tone
# rises by $ks$. The logits move:
#
# $$\begin{aligned}
# \text{No:}&\quad +s&&\text{its own number, and none of the tone}\\
# \text{Yes:}&\quad k\cdot ks=k^2s&&\text{its own number has not moved; it has }k\text{ of the tone}
# \end{aligned}$$
#
# Past $k=1$ the logit of Yes rises faster than that of No, though no label speaks of Yes: 2.25
# times as fast at $k=1.5$.
#
# ## Would road 1 have done better?
#
# Take the same pair. Road 1 fits its reward model until the margin is 2, where DPO's log stood.
# Then RL with β = 0.1 trains the policy to the end. The reward model and the policy are built like
# our network, each with the tone ($k=1.5$) or without it ($k=0$).

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.5", "When does road 1 end on Yes?",
        ["only if both have the tone",
         "whenever the policy has it",
         "whenever one of them has it",
         "whenever the reward model has it"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def fitted(features, pairs):
    """A reward model's scores (3,): pairs fitted up to a margin of 2."""
    theta = torch.zeros(4)
    while (features @ theta) @ D[0] < 2:
        wrong = torch.sigmoid(-(features @ theta) @ pairs.T)
        theta = theta + 0.005 * (wrong @ pairs @ features) / len(pairs)
    return features @ theta

def rl(scores, features):
    """Policies of RL on these scores, (steps + 1, 3)."""
    loss = rl_loss(scores, beta=0.1)
    z = ref.log() + train(lambda t: loss(ref.log() + features @ t),
                          torch.zeros(4), 0.1, 4000) @ features.T
    path = torch.cat([ref[None], z.softmax(-1)])
    assert (path[-1] - kl_optimum(ref, scores, 0.1)).abs().max() < 4e-3
    return path

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
toned, untoned = fitted(shared, D[:1]), fitted(plain, D[:1])
ways = {"both have the tone": rl(toned, shared),
        "only the reward model has it": rl(toned, plain),
        "only the policy has it": rl(untoned, shared),
        "neither has it": rl(untoned, plain)}
on_yes = [path[-1, 2].item() > 0.99 for path in ways.values()]
on_no = [path[-1, 0].item() > 0.99 for path in ways.values()]
assert on_yes == [True, True, False, False] == [not x for x in on_no]
rises = ways["only the policy has it"][:, 2].max()
# same features, same margin: DPO and road 1 end at one policy
by_dpo, by_rl = policies["shared tone, k = 1.5"], ways["both have the tone"]
assert (by_dpo[-1] - by_rl[-1]).abs().max() < 2e-3

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.5", "whenever the reward model has it",
       "Either policy can express RL's best one, the reference times "
       "$e^{r/\\beta}$ over $Z$. So only the scores count. With the tone "
       f"the reward model says {toned[0]:+.2f} for No and {toned[2]:+.2f} "
       "for Yes, the factor 2.25 again. Without it Yes stays at "
       f"{untoned[2].abs():.0f}, where it began, and No has "
       f"{untoned[0]:+.0f}: Yes is paid less, so RL leaves it. The "
       "policy's own tone shows on the way only. With it Yes first rises "
       f"to {rises:.2f}. **No label speaks of Yes, so the features decide: "
       "the reward model's on road 1, the policy's in DPO.**",
       pictures.triangle(ways, "Four runs of RL. A point is a policy; in "
                               "a corner one answer has all the "
                               "probability.", looks=(5, 6, 7, 8)),
       instead={
           "only if both have the tone":
           "A policy without it still has a number for Yes, and RL raises "
           "that.",
           "whenever the policy has it":
           "Its tone lifts Yes at first. Then the lower pay for Yes wins.",
           "whenever one of them has it":
           "The reward model's tone is enough. The policy's is not.",
       })

# %% [markdown]
# **So can you skip the reward?** You can skip fitting a separate one. Under the three conditions
# the end is the same. Where labels are silent, a separate reward model may judge better than the
# policy, or worse. (Real RL stops earlier; there the policy's features count too.)
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | DPO | |
# |---|---|
# | sentence | the best policy is the reference times $e^{r/\beta}$ over $Z$, so the reward is $\beta$ times its log-ratio, up to a constant; fit that to labels by Bradley-Terry |
# | formula | $L=-\log\sigma\big(\beta(h_w-h_l)\big)$, $h=\log\pi_\theta/\pi_{ref}$ summed over tokens |
# | push | $\pm\beta\,\sigma(-\beta(h_w-h_l))$ on every token of the pair |
# | β | the best gap in $h$ is the gap in scores over β; no end if labels never err |
# | same as road 1 | if labels settle every score, both express the same scores and train to the end |
# | silent labels | in the toy the features decide: the policy's in DPO, the reward model's on road 1 |
# | against GRPO | given pairs and labels, not own samples and rewards; no ratio to clip, no group |

# %%
score(*(f"preferences.{i}" for i in (1, 2, 4, 5)))

# %% [markdown]
# ## Second sitting: what could tell DPO about Yes?
#
# DPO again, with $k=1.5$ and β = 0.1. Only the pairs change.
#
# * **A full file**: all three pairs, read again and again.
# * **Fresh pairs**: before every step the policy, as it is now, draws pairs, and they are labelled.
#   This is **on-policy DPO**. (The toy takes the exact share of each pair.)

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.6", "With which of the two does DPO end on No?",
        ["with the full file alone", "with both",
         "with fresh pairs alone", "with neither"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def drawn(p):
    """How often two different answers of the policy are each pair."""
    both = torch.stack([p[0] * p[1], p[0] * p[2], p[1] * p[2]])
    return both / both.sum()

def dpo_on(share):
    h = dpo_path(0.1, always, share, shared, steps=1000)
    return torch.cat([ref[None], (ref.log() + h).softmax(-1)])

told = {"DPO, the full file": dpo_on(lambda p: torch.full((3,), 1 / 3)),
        "DPO, fresh pairs": dpo_on(drawn)}
assert all(path[-1, 0] > 0.99 for path in told.values())

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.6", "with both",
       "Both bring labels on Yes, and No is above Yes in all of them. The "
       "full file makes a detour: two of its pairs push Yes down, and the "
       "tone that lowers Yes lifts Never, until the pair No over Never "
       "brings it back. The more often the policy says Yes, the more fresh "
       "pairs ask about it.",
       pictures.triangle(told, "Two ways to No.", looks=(0, 1)),
       instead={
           "with the full file alone":
           "The policy does say Yes, so fresh pairs contain it.",
           "with fresh pairs alone":
           "They find by themselves which answer needs a label. Here the "
           "file has that label already.",
           "with neither":
           "The tone still pulls towards Yes. Labels on Yes pull back.",
       })

# %% [markdown]
# ### Does it happen in a transformer?
#
# These runs were recorded on the course's small model (0.3M parameters), which answers sums such as
# `4+3-8=?`. A right and a wrong answer of the starting model to one sum make a pair. DPO: β = 0.1,
# AdamW at 3e-4, 40 steps of 64 pairs, three seeds. We take 2,560 pairs and read each once, so that
# the log measures every pair before the model trains on it. The share of right answers to new sums:

# %% jupyter={"source_hidden": true}
# the recorded runs
file = recorded()
graded = file["header"]["graded"]

def share_right(arm, step):
    runs = torch.tensor([run["pass@1"] for run in file[arm]])
    return runs[:, graded.index(step)].mean().item()

print(f"share right: {file['header']['pass@1']:.2f} at the start, "
      + ", ".join(f"{share_right('DPO, 2,560 pairs', n):.2f} after step {n}"
                  for n in (20, 40)))

# %% jupyter={"source_hidden": true}
# your guess
predict("preferences.7", "From step 20 to step 40, what does the accuracy "
        "in the log do, on these unread pairs?",
        ["it falls as much as the share", "it falls half as much",
         "it stays level", "it rises half as much"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
def logged(arm, column, step):
    """Mean of five steps up to this one, (seeds,)."""
    return torch.tensor([run[column][step - 5:step]
                         for run in file[arm]]).mean(1)

names = {"DPO": "256 pairs, ten times", "DPO, 2,560 pairs":
         "2,560 pairs, once", "DPO, fresh pairs": "fresh pairs"}
then, late = (logged("DPO, 2,560 pairs", "accuracy", n).mean()
              for n in (20, 40))
fresh = [logged("DPO, fresh pairs", "accuracy", n).mean()
         for n in (15, 40)]
sunk = [[bool(logged(arm, "chosen", n)[seed] < 0) for n in range(5, 41)]
        for arm in list(names)[:2] for seed in range(3)]
first = [5 + run.index(True) for run in sunk]    # below 0 from here on
assert min(first) == 8 and max(first) == 13
assert all(all(run[n - 5:]) for run, n in zip(sunk, first))
means = {arm: {n: share_right(arm, n) for n in graded} for arm in names}
tops = {arm: max(means[arm], key=means[arm].get) for arm in names}
assert list(tops.values()) == [15, 20, 40]
cost = [sum(run["answers"] for run in file[arm]) // 3
        for arm in list(names)[1:]]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("preferences.7", "it stays level",
       f"It goes from {then:.2f} to {late:.2f}, a mean of three seeds and "
       "five steps. A pair asks how two answers of the *starting* model "
       "are ordered. The share right depends on what the model says now. "
       "The picture has two more runs. With 256 pairs, read ten times, "
       f"the share falls from {means['DPO'][15]:.2f} to "
       f"{means['DPO'][40]:.2f}. With 64 fresh pairs before every step it "
       "does not turn in these 40 steps and reaches "
       f"{means['DPO, fresh pairs'][40]:.2f}, and there the accuracy falls "
       f"after step 15, from {fresh[0]:.2f} to {fresh[1]:.2f}. (They cost "
       f"{cost[1]:,} drawn answers a seed, the 2,560 pairs {cost[0]:,}.)",
       pictures.on_a_network(
           {said: file[arm] for arm, said in names.items()}, file["header"],
           "Above: two lines of the log, a line per seed. Below: dots, the "
           "share right; dashed, the log's accuracy, mean of the seeds."),
       instead={
           "it falls as much as the share":
           "It would, if the model still gave the answers in the pairs.",
           "it falls half as much":
           "It does not fall: these pairs are answers of the old model.",
           "it rises half as much":
           "It rose before. From step 20 on it hardly moves.",
       })

# %% [markdown]
# **Is `rewards/chosen` the alarm, then?** Below 0 it says that the typical chosen answer, too, has
# become rarer. Where both answers of a pair lose, others gain. In all six runs on stored pairs its
# mean of five steps falls below 0 between step 8 and step 13, and stays there. The share right,
# mean of the seeds, is best at step 15 with 256 pairs and at step 20 with 2,560. So here the line
# warned early. In the toy it warned too late. In a real run grade samples while you train, and stop
# by the grades.
#
# **At scale.** Razin et al. trained Llama-3-8B-Instruct to *refuse* unsafe prompts. Its refusals
# fell from 74.4 % to 33.4 %, and probability went to harmful answers
# ([arXiv 2410.08847](https://arxiv.org/abs/2410.08847)).
#
# <details><summary>One level deeper: which pairs displace, Adam, other judges</summary>
#
# * *Which pairs.* On one pair the logit of an answer $y$ rises by $\phi_y\cdot(\phi_w-\phi_l)$ a
#   plain gradient step, up to a factor; $\phi$ are the features. If this is larger for $y$ than for
#   $w$, then $y$ overtakes $w$ in the end. Razin et al. take the last hidden states, summed over
#   tokens, as $\phi$ and call $\phi_w\cdot\phi_l-\|\phi_w\|^2$ the CHES score. It is high for a
#   pair whose answers look alike to the model. Dropping such pairs helped in their runs.
# * *Where this stops.* Features must stay put, and steps be plain. In a network features move.
#   Adam's first step has one size for all numbers: the tone rises by $s$, Yes by $k\,s$. The border
#   is at $k=1$ again.
# * *Other judges.* Lin et al. trained a reward model and DPO on the same pairs. Under five shifts
#   of the data DPO's log-ratio was 3 % less accurate on average, 7 % at most
#   ([arXiv 2409.03650](https://arxiv.org/abs/2409.03650)). One cause that Razin et al. found: the
#   log-ratio leans more on single tokens, the reward model on the hidden state
#   ([arXiv 2507.07981](https://arxiv.org/abs/2507.07981)).
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
# Write the reward as the policy's own log-ratio, and fit that to the labels. The best policy under
# reward minus β KL is the reference times e^(r/β), over Z. Take logs: the reward is β times the
# log-ratio, plus β log Z. In a difference of two answers to one prompt Z cancels. Put the
# difference into Bradley-Terry and minimise the negative log-likelihood of the label.
# </details>
# <details><summary><b>What does β do, and where is the KL in the loss?</b></summary>
#
# A larger β makes the best gap in log-ratios smaller: it is the gap in scores over β. The KL is in
# the derivation only; no term of the loss holds an answer outside the pairs. If labels never err,
# the gap has no end at any β: β, rate and steps decide how far it goes. In the first plain gradient
# steps a small β is slower.
# </details>
# <details><summary><b>What is DPO's gradient, and why the weight?</b></summary>
#
# Up the chosen log-probability, down the rejected one, times β σ(−margin). The weight is β times
# the chance that the model still gives to the wrong order: β/2 at the start, 0.12 β at a margin of
# 2. <!-- cited: 0.12 --> Without the weight the loss would be linear in the gap, and pairs long in
# order would be pushed on at full strength.
# </details>
# <details><summary><b>My DPO loss falls, and so does the chosen log-probability. Is it broken?</b></summary>
#
# Not necessarily, but find out where the probability went: sample and grade. The loss sees only the
# gap. Answers share features, so a push on a pair moves answers in no pair too: in our toy Yes
# rises by k², the chosen one by 1. Cures: labels on what rises (fresh pairs), an earlier stop, no
# pairs of look-alike answers, or an anchor, −log π of the chosen answer.
# </details>
# <details><summary><b>DPO and RLHF have the same optimum. Why does anybody still run PPO or GRPO?</b></summary>
#
# The optimum is the same if labels settle every score. Where they are silent, DPO judges by the
# policy's features; under shift its log-ratio was 3 % less accurate than a reward model
# ([arXiv 2409.03650](https://arxiv.org/abs/2409.03650)). One proposed reason: judging is often
# simpler than writing, so it takes fewer labels
# ([arXiv 2503.01067](https://arxiv.org/abs/2503.01067)). And online RL is graded on what the policy
# says now. With good pairs and no grader: DPO.
# </details>
# <details><summary><b>What if people are not Bradley-Terry? And what is IPO for?</b></summary>
#
# Then no scores fit. For a cycle, A over B over C over A, the best fit is three equal scores. IPO
# starts from the chance of winning instead ([arXiv 2310.12036](https://arxiv.org/abs/2310.12036)).
# Its loss, (h_w − h_l − 1/(2β))², has a finite best gap even if labels never err. It does not cure
# displacement: in our toy, k = 1.5 and β = 0.1, No ends at 0.26. <!-- cited: 0.26 -->
# </details>
# <details><summary><b>Why do DPO models write longer, and what do you do about it?</b></summary>
#
# Often because the chosen answers are longer, and DPO fits that taste too. The loss need not have a
# taste of its own: in our toy with separate answers (statements page) a fair judge leaves the
# length as it was. Cures: pairs balanced by length; $\alpha(T_w-T_l)$ inside σ, so that h need not
# explain what length explains ([arXiv 2403.19159](https://arxiv.org/abs/2403.19159)); grading that
# controls for length.
# </details>
#
# The sentences that one hears about preferences, true or not, and the whole family:
# [statements 15](statements/15_preferences.ipynb). The exercises, solved:
# [solutions 15](solutions/15_preferences.ipynb).
#
# **Next: [16](16_rewards.ipynb).** Road 1 keeps a reward that one can push on. What happens when it
# is not what you meant?
