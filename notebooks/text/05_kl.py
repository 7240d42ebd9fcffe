# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 · KL: how far may the policy go?
#
# **After this page** you can read a KL off samples, say which way each form of the penalty pushes,
# and choose a β.
#
# 29 minutes, then 19 in a second sitting · exercises 28 more · after 02 (REINFORCE), 03
# (baselines), 04 (importance sampling) · Schulman 2020, *Approximating KL divergence*
# (joschu.net/blog); Tang & Munos 2025, [arXiv 2506.09477](https://arxiv.org/abs/2506.09477)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. KL(p‖q) is a mean of what, over whose samples?</summary>Of log p − log q, over samples of p; in nats (01).</details>
# <details><summary>2. Each sample earns a reward. Which gradient raises its mean?</summary>The mean of reward × ∇log π, the reward held constant (02).</details>
# <details><summary>3. The samples are from an older policy. What repairs a mean over them?</summary>The ratio ρ = π / π_old in front (04).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
import math
import torch
from rlnb import check
from rlnb.classroom.explorers import kl_leash, kl_pull
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import kl as pictures, pipeline
from rlnb.toys import SequencePolicy
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## One number, logged and penalised
#
# Training takes the policy π away from the model it began as, the **reference** $\pi_\text{ref}$.
# How far has it gone? The KL says it. Let the policy write an answer, and ask both models how
# surprised they are by it, in $-\log$ of its probability. The KL is the extra surprise of the
# reference, on average:
#
# $$\mathrm{KL}(\pi\,\|\,\pi_\text{ref})=\underbrace{\mathbb E_\pi[-\log\pi_\text{ref}]}_{\text{cross-entropy}}-\underbrace{\mathbb E_\pi[-\log\pi]}_{\text{entropy of }\pi}=\mathbb E_\pi[\ell],\qquad\ell=\log\pi-\log\pi_\text{ref}$$
#
# So each drawn answer has a **log-ratio** $\ell$, and its mean is the KL. As an estimate of the KL,
# $\ell$ is called $k_1$.
#
# We log this number. We also penalise it with a coefficient β, so that the policy stays away from
# answers that only fool a reward model ([arXiv 2210.10760](https://arxiv.org/abs/2210.10760)). The
# penalty can enter in two places:

# %% jupyter={"source_hidden": true}
# the pipeline
pipeline.pipeline("rewards", "loss", caption=(
    "In the reward the penalty is a number that an answer earns. In the "
    "loss it is a term of its own, and autograd goes through it."))

# %% [markdown]
# **The toy.** Three answers pay 1, ½ and 0, and the reference gives them with chances 0.1, 0.3 and
# 0.6. Each update draws 16 answers and takes a REINFORCE step with a leave-one-out baseline (03).

# %%
ref = torch.tensor([0.1, 0.3, 0.6])          # the reference: where we start
R = torch.tensor([1.0, 0.5, 0.0])            # what the three answers pay

def k1(ell): return ell

def kl(log_pi, log_ref=ref.log()):
    return (log_pi.exp() * (log_pi - log_ref)).sum(-1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# 150 updates, 400 seeds side by side; the penalty goes where `place` says
def train(k, place, beta, n=400, updates=150, lr=0.5):
    """Per update: KL(pi || ref), and the batch's mean of k; n seeds."""
    dice = torch.Generator().manual_seed(0)
    z, path = ref.log().repeat(n, 1), []
    for _ in range(updates + 1):
        z = z.detach().requires_grad_()
        log_pi = z.log_softmax(1)
        p = log_pi.detach().exp()
        y = torch.multinomial(p, 16, replacement=True, generator=dice)
        log_y = log_pi.gather(1, y)
        penalty = k(log_y - ref.log()[y])                    # (n, 16)
        path.append(torch.stack([kl(log_pi), penalty.mean(1)]).detach())
        reward = R[y]
        if place == "reward":
            reward, penalty = reward - beta * penalty.detach(), 0.0
        A = (reward - reward.mean(1, keepdim=True)) * 16 / 15
        loss = (beta * penalty - A * log_y).mean(1).sum()
        z = z - lr * torch.autograd.grad(loss, z)[0]
    return torch.stack(path, dim=1)                 # (2, updates + 1, n)

# %% [markdown]
# First we train without a penalty. We would like to stop on the way, at 0.30 nats: there reward
# minus ½ KL is largest.

# %% jupyter={"source_hidden": true}
# training without a penalty
wanted = kl((ref.log() + R / 0.5).log_softmax(0)).item()
free = train(k1, "loss", 0.0)
pictures.runs({"no penalty": free[0]}, wanted, logged=free[1, :, 0],
              caption="Thick: the true KL, mean of 400 seeds. Dots: what "
                      "one seed logs, the mean of k1 over 16 answers.")

# %% [markdown]
# The policy runs far past 0.30. Now we penalise the logged number, with β = ½. In the reward it is
# held constant. In the loss autograd goes through it:
#
# ```python
# A = leave_one_out(R - beta * k1.detach());  loss = (-A * log_pi).mean()             # reward
# A = leave_one_out(R);                       loss = (beta * k1 - A * log_pi).mean()  # loss
# ```
#
# First we try the second line, $k_1$ in the loss.

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.1", "Where does the KL end, on average?",
        ["near 0, back at the reference",
         "near 0.3, where we want it",
         "near 2.2, as without a penalty",
         "near 1, about half-way"])

# %% jupyter={"source_hidden": true}
# training with k1 in the loss, and with k1 in the reward
in_loss, _ = train(k1, "loss", 0.5)
in_reward, _ = train(k1, "reward", 0.5)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.1", "near 2.2, as without a penalty",
    f"It ends at {in_loss[-1].mean():.2f} with the penalty and at "
    f"{free[0, -1].mean():.2f} without. The same number in the reward "
    f"stops the policy at {in_reward[-1].mean():.2f}.",
    pictures.runs({"no penalty": free[0], "k1 in the loss": in_loss,
                   "k1 in the reward": in_reward}, wanted, caption=(
        "Same estimate, same β, same 16 answers an update. In the loss it "
        "does nothing; in the reward it lands where it should.")),
    instead={
        "near 0.3, where we want it":
        "The value of this loss asks for that. Autograd asks something "
        "else.",
        "near 1, about half-way":
        "A weak push would do that. Here the mean push is exactly 0.",
        "near 0, back at the reference":
        "β multiplies the push, and on average there is none.",
    })

# %% [markdown]
# The logged number is right, and its gradient is useless. **So an estimate of the KL has two
# properties: what it measures, and where it moves the policy.** The second we call its **push**:
# minus its gradient.
#
# ## What it measures
#
# Which estimates of $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ are there? A KL is never negative, but a
# single $k_1$ may be. John Schulman's note offers two others:
#
# $$k_1=\ell,\qquad k_2=\tfrac12\ell^2,\qquad k_3=e^{-\ell}-1+\ell$$
#
# We read all three off one policy that has moved from the reference. Compare the last column.

# %%
def k2(ell): return ell**2 / 2
def k3(ell): return torch.expm1(-ell) + ell     # exp(-l) - 1 + l

# %% tags=["setup"] jupyter={"source_hidden": true}
# the moved policy, its three answers read with k1, k2 and k3
away = ref.log() + 3 * R                        # logits of a moved policy
pi, ell = away.softmax(0), away.log_softmax(0) - ref.log()
print("answer pays       1      ½      0")
print("chance now   ", *(f"{x:6.2f}" for x in pi))
for k in (k1, k2, k3):
    print(f"{k.__name__}           ", *(f"{x:6.2f}" for x in k(ell)),
          f"   mean {pi @ k(ell):.2f}")
print(f"the true KL: {kl(away.log_softmax(0)):.2f}")
pictures.estimators(ell, pi)

# %% [markdown]
# $k_1$ and $k_3$ have the right mean. Here $k_2$ reads a quarter too much.
#
# * $k_3$ is right because what it adds to $k_1$ has mean 0:
#   $\mathbb E_\pi[e^{-\ell}]=\sum_y\pi(y)\frac{\pi_\text{ref}(y)}{\pi(y)}=1$.
# * $k_3$ is never negative because the exponential lies above its tangent: $e^{-\ell}\ge1-\ell$.
#
# How much does one sample scatter? We take a policy near the reference and one far away.

# %% tags=["setup"] jupyter={"source_hidden": true}
# the scatter of one sample
for d in (0.5, 5.0):                    # reference logits + d * R
    log_pi = (ref.log() + d * R).log_softmax(0)
    spread = [(log_pi.exp() * (k(log_pi - ref.log()) - kl(log_pi))**2
               ).sum().sqrt().item() for k in (k1, k3)]
    print(f"a policy at KL {kl(log_pi):.2f}: std of one sample, k1 "
          f"{spread[0]:.3f}, k3 {spread[1]:.3f}")

# %% [markdown]
# **As a value, $k_3$ is right and never negative, and near the reference it is the quiet one.**
# verl calls it `low_var_kl`. Far away it can be the noisier one: an answer that the policy has
# given up has a large $e^{-\ell}$, and drawing it makes a spike in the log.
#
# **So log $k_3$, and $k_1$ beside it.** A mean $k_1$ that stays below 0 says that the samples are
# not from the policy that scores them. $k_3$ can never show that.
#
# <details><summary>One level deeper: k3 is a control variate</summary>
#
# $k_1+\lambda(e^{-\ell}-1)$ has the right mean for every λ, since the bracket has mean 0 (a
# baseline, as in 03). $k_3$ is λ = 1: never negative, and not tuned for least variance. Near the
# reference $e^{-\ell}-1\approx-\ell$, so λ = 1 cancels $k_1$'s noise to first order and leaves
# $\tfrac12\ell^2$: the nearer, the larger its lead. Far away $e^{-\ell}$ is the larger noise. Where
# the two cross depends on how the policy left ([statements](statements/05_kl.ipynb), K03).
# </details>
#
# ## Where it moves the policy
#
# Why did $k_1$ do nothing in the loss? First the gradient that a penalty should have:
#
# $$\begin{aligned}
# \nabla\,\mathrm{KL}(\pi\,\|\,\pi_\text{ref})&=\nabla\textstyle\sum_y\pi(y)\,\ell(y)&&\text{definition}\\
# &=\textstyle\sum_y\ell\,\nabla\pi+\sum_y\pi\,\nabla\ell&&\text{product rule}\\
# &=\mathbb E_\pi[\ell\,\nabla\log\pi]+\mathbb E_\pi[\nabla\log\pi]&&\nabla\pi=\pi\nabla\log\pi;\ \pi_\text{ref}\text{ is constant}\\
# &=\mathbb E_\pi[\ell\,\nabla\log\pi]&&\mathbb E_\pi[\nabla\log\pi]=0\ (02)
# \end{aligned}$$
#
# In the reward a penalty is a number that multiplies $\nabla\log\pi$. The last line says which
# number it should be: $\ell$. So $k_1$ in the reward is right.
#
# A loss averages $k(\ell)$ over answers that are drawn already. Autograd takes the slope of
# $k(\ell)$. It does not see that another policy would draw other answers. For $k_1$ this slope is
# $\nabla\log\pi(y)$. It makes each drawn answer less likely, whatever the reference says about it.
# Over the draws the mean of that is 0: **as a loss, $k_1$ pushes with noise and no direction.**
#
# GRPO's paper puts $k_3$ into the loss ([arXiv 2402.03300](https://arxiv.org/abs/2402.03300)).

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.2", "The answers come from π itself. As a loss, what is k3's "
        "mean gradient?",
        ["that of KL(π‖π_ref)",
         "that of KL(π_ref‖π), roles exchanged",
         "half that of KL(π‖π_ref)",
         "0, like that of k1"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# exact gradients, by summing over the three answers: mean_gradient(k)
def mean_gradient(k, at=away):
    """Of k as a loss, over all answers drawn from the policy `at`."""
    z = at.clone().requires_grad_()
    return torch.autograd.grad(
        at.softmax(0) @ k(z.log_softmax(0) - ref.log()), z)[0]

def gradient(function, at=away):
    z = at.clone().requires_grad_()
    return torch.autograd.grad(function(z.log_softmax(0)), z)[0]

reverse = gradient(kl)
forward = gradient(lambda log_pi: kl(ref.log(), log_pi))
# %% tags=["setup"] jupyter={"source_hidden": true}
# the derivation that stands in the answer
by_slope = r"""

$$\begin{aligned}
\mathbb E_\pi[\nabla k(\ell)]&=\mathbb E_\pi[k'(\ell)\,\nabla\log\pi]
&&\text{chain rule}\\
k_1'=1:&\qquad0&&\mathbb E_\pi[\nabla\log\pi]=0\\
k_2'=\ell:&\qquad\nabla\,\mathrm{KL}(\pi\,\|\,\pi_\text{ref})
&&\text{the last line above}\\
k_3'=1-\tfrac{\pi_\text{ref}}{\pi}:&\qquad
-\textstyle\sum_y\pi_\text{ref}\nabla\log\pi
=\nabla\,\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)
&&\text{the weight }\pi\text{ cancels}
\end{aligned}$$
"""

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.2", "that of KL(π_ref‖π), roles exchanged",
    "k3 has the value of one KL and the gradient of the other. Of the "
    "three only k2 has the wanted gradient." + by_slope,
    pictures.which_gradient(
        {"KL(π‖π_ref)": reverse, "k3 in the loss": mean_gradient(k3),
         "KL(π_ref‖π)": forward},
        caption="Slope on each of the three logits. The black bar, k3 "
                "averaged over π, equals the purple one each time."),
    instead={
        "that of KL(π‖π_ref)":
        "That is what it measures. But k1 measures it too, and had no "
        "gradient: a right mean promises nothing about the gradient.",
        "0, like that of k1":
        "What k3 adds to k1 has mean 0. The mean of its slope is not 0.",
        "half that of KL(π‖π_ref)":
        "Near the reference k3 is ½ℓ², but the slope of ½ℓ² is ℓ: all of "
        "it, not half.",
    })

# %% [markdown]
# What does the other direction want? Page 01 fitted one bell to two peaks:

# %% jupyter={"source_hidden": true}
# the bell with the least KL, in both directions
pictures.two_directions()

# %% [markdown]
# * $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ charges the policy for saying what the reference would
#   hardly say. It may drop the rest: *mode-seeking*, the reverse KL.
# * $\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)$ charges it for dropping what the reference says. It may
#   add answers of its own: *mass-covering*, the forward KL.
#
# As a penalty we want the first: the policy may not say what the reference would not.

# %% [markdown]
# Does it matter in a run? We train as in the first plot, with β = ½.

# %% tags=["setup"] jupyter={"source_hidden": true}
# two runs; and the slopes where k3 in the loss comes to rest, exactly
k2_loss, _ = train(k2, "loss", 0.5)
k3_loss, _ = train(k3, "loss", 0.5)
at = ref.log()
for _ in range(2000):
    p = at.softmax(0)
    at = at + p * (R - p @ R) - 0.5 * mean_gradient(k3, at)
held, should = mean_gradient(k3, at)[0], gradient(kl, at)[0]
pictures.runs({"k2 in the loss": k2_loss, "k3 in the loss": k3_loss},
              wanted, caption=(
    f"400 seeds, band: the middle 80 %. Where k3 rests, its slope on the "
    f"best answer is {held:.2f}; KL(π‖π_ref) has {should:.2f} there."))

# %% [markdown]
# $k_2$ ends where we want it. $k_3$ ends further out, because there the other KL holds the best
# answer less firmly.
#
# Now all three estimates, in both places. Before you move: can a penalty read the right KL and
# still push the policy further away from the reference?

# %% jupyter={"source_hidden": true}
# the explorer
task("kl.t1", kl_pull.kl_pull_explorer(),
     ("Find one that reads the right KL and pushes uphill, more than 90° "
      "from downhill.", kl_pull.right_and_uphill))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# <!-- cited: 4.3 -->
# $k_3$ in the reward, from a distance of 4.3. In the reward every charge makes an answer rarer. But
# $k_3$ also charges an answer for being *too* rare. One that the policy has given up has the
# largest $k_3$ of all, and is pushed down further. As a formula: $k_3=\ell-(1-e^{-\ell})$, so its
# push in the reward is that of $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ minus that of
# $\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)$. Near the reference the two cancel; far out the second
# wins.
#
# Put it back into the loss and go near: at a distance of 0.6 it is within 5° of downhill. Near the
# reference the two KLs push the same way, since $k_3'=1-e^{-\ell}\approx\ell=k_2'$.
# </details>
#
# | estimate | its value | its push in the reward | its push in the loss |
# |---|---|---|---|
# | $k_1$ | right | **right** | none |
# | $k_2$ | right near the reference | wrong | **right** |
# | $k_3$ | right | wrong, even uphill | right near the reference |
#
# ## Answers of many tokens
#
# The two bold fields are the same mean push, for an answer of one step. Now an answer may have two
# words:

# %% jupyter={"source_hidden": true}
# two words, each with its chance under the policy and under the reference
def chain(*logits):
    return SequencePolicy(2, 2, torch.tensor(logits))

wrote = chain([-0.2, 0.2, 0.0], [2.0, -1.0, 0.0], [0.0, 0.3, 0.0])
began = chain([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
chances = wrote.logits.softmax(-1).tolist()
pictures.first_word(chances)

# %% [markdown]
# One penalty is the $\ell$ of the whole answer, in the reward. The other is the $k_2$ of each word,
# added up in the loss.

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.5", "Which way do the two penalties push word 0 as the first "
        "word?",
        ["reward: down; loss: up",
         "reward: up; loss: down",
         "reward: up; loss: up",
         "reward: down; loss: down"])

# %% jupyter={"source_hidden": true}
# the push of each penalty on the first word, by enumeration
ells = wrote.logprobs() - began.logprobs().detach()          # (N, T)
chance, whole = wrote.probabilities(), ells.sum(1)
fixed = chance.detach()
scalars = {
    "KL of the answer": (chance * whole).sum(),
    "k1 in the reward":
        (fixed * whole.detach() * wrote.logprobs().sum(1)).sum(),
    "k2 per token, in the loss":
        (fixed * (k2(ells) * wrote.mask).sum(1)).sum()}
first = {name: (-torch.autograd.grad(value, wrote.logits,
                                     retain_graph=True)[0][0]).tolist()
         for name, value in scalars.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.5", "reward: down; loss: up",
    f"Word 0 itself is too rare: {chances[0][0]:.2f} against 0.33. So its "
    "own log-ratio asks for more of it, and the loss hears only that. But "
    "after word 0 the policy is far from the reference: the KL of the "
    "whole answer falls when word 0 is said less often.",
    pictures.first_word(chances, first),
    instead={
        "reward: up; loss: up":
        "So says the log-ratio of word 0. But the answer does not end "
        "there, and the reward counts all of it.",
        "reward: up; loss: down":
        "The other way round: the reward is the one that sees what comes "
        "after word 0.",
        "reward: down; loss: down":
        "In the loss the second word's penalty moves only the second "
        "word: autograd does not see that word 0 leads there.",
    })

# %% [markdown]
# Write $\ell_t$ for the log-ratio of token $t$. For a whole answer:
#
# $$\begin{aligned}
# \nabla\,\mathrm{KL}&=\mathbb E\Big[\textstyle\sum_t\ell_t\cdot\sum_s\nabla\log\pi(y_s)\Big]&&\text{as before}\\
# &=\mathbb E\Big[\textstyle\sum_s\nabla\log\pi(y_s)\sum_{t\ge s}\ell_t\Big]&&\text{a token cannot change what came before it (02)}\\
# &\approx\mathbb E\Big[\textstyle\sum_s\ell_s\,\nabla\log\pi(y_s)\Big]&&\textbf{a choice: each token is charged only its own }\ell_s
# \end{aligned}$$
#
# Lines 1 and 2 are $k_1$ in the reward, because a reward is credited to every token that came
# before it. Line 3 is $k_2$ in the loss, token by token. The place is not the cause: one
# $\tfrac12(\sum_t\ell_t)^2$ for the whole answer in the loss has line 1 as its gradient. **What
# matters is what a token pays for: for all that it leads to, which is exact, or for itself.**
#
# What speaks for line 3? Look at the noise. Say an answer is $T$ tokens that do not
# depend on each other, each drawn by the moved policy above. Then all three lines are exact. How
# much does the gradient of one answer scatter, as a multiple of its mean?

# %% tags=["setup"] jupyter={"source_hidden": true}
# std of one answer's gradient over its mean's length, with baselines
a, S = ell - pi @ ell, torch.eye(3) - pi    # centred ell; rows: grad log pi
mean = (pi * a) @ S                         # of one token
alone = (pi * a**2) @ S.square().sum(1) - mean @ mean
cross = (pi @ a**2) * (pi @ S.square().sum(1))

def noise(T):
    """Exact, for lines 1, 2 and 3."""
    pairs = T * (T - 1)
    return [((T * alone + pairs * more).sqrt() / (T * mean.norm())).item()
            for more in (cross + mean @ mean, cross / 2, 0 * cross)]

# the same by enumeration, for three tokens
y = torch.cartesian_prod(*[torch.arange(3)] * 3)             # (27, 3)
follows = a[y].flip(1).cumsum(1).flip(1)
for line, pays in enumerate((follows[:, :1], follows, a[y])):
    g = (pays[..., None] * S[y]).sum(1)
    off = pi[y].prod(1) @ (g - 3 * mean).square().sum(1)
    assert math.isclose(off.sqrt() / (3 * mean.norm()), noise(3)[line])

# %% tags=["setup"] jupyter={"source_hidden": true}
# the noise of the three lines, by the length of the answer
lengths = (1, 10, 100, 1000)
print("tokens in an answer        ", *(f"{T:6d}" for T in lengths))
for line, name in enumerate(("the whole answer", "what follows",
                             "only itself")):
    print(f"line {line + 1}, {name:18s} ",
          *(f"{noise(T)[line]:6.2f}" for T in lengths))
print(f"at 1,000 tokens line 2 is {noise(1000)[1] / noise(1000)[2]:.0f} "
      "times as noisy as line 3")

# %% [markdown]
# In line 3 a longer answer is more samples, so its noise averages away. In line 2 it does not. Each
# token is multiplied by a sum of up to 1,000 log-ratios, and here it caused only one of them. To
# average away 25 times the noise takes about 600 times as many answers. **Line 3 is a trade: it
# accepts a bias, which can turn a sign, and gets rid of a noise.**
#
# ## How large is β?
#
# What does the size of the penalty do? We want the policy with the most of
# $\sum_y\pi R-\beta\sum_y\pi\ell$. There a little more chance is worth the same on every answer.
# Otherwise we would move chance from one answer to another and gain.
#
# $$\begin{aligned}
# R(y)-\beta\,(\ell(y)+1)&=\text{the same for every }y&&\text{the slope in }\pi(y)\\
# \ell(y)&=R(y)/\beta+\text{const}&&\text{solve for }\ell\\
# \pi(y)&\propto\pi_\text{ref}(y)\,e^{R(y)/\beta}&&\ell=\log\pi-\log\pi_\text{ref}
# \end{aligned}$$
#
# **At rest, a reward of 1 has multiplied the odds by $e^{1/\beta}$.** Solved for the reward, the
# line says $R=\beta\,\ell+\text{const}$, and DPO puts this $R$ into a preference loss (15).
#
# **A worked β.** A flawed reward model pays 1 for an answer that the reference gives once in 10,000
# times, and 0 for all others. We want that answer to stay below 2 %. Which β does it take?

# %%
def odds(p): return p / (1 - p)

growth = odds(0.02) / odds(1e-4)             # how far the odds may grow
print(f"factor {growth:.0f}, so β must be at least "
      f"1 / log {growth:.0f} = {1 / math.log(growth):.2f}")
print(f"with β = 0.04 the factor is e^25, which is {math.exp(25):.0e}")

# %% [markdown]
# So the usual small β, 0.04 in GRPO's paper, slows this policy down and hardly bounds it. Does
# $k_3$ in the loss bound it better? That opens the second sitting.
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | KL | |
# |---|---|
# | sentence | a KL estimate has a value and a push, and they are separate |
# | value | $\mathbb E_\pi[k_1]=\mathbb E_\pi[k_3]=\mathrm{KL}(\pi\Vert\pi_\text{ref})$; near the reference $k_3$ is the quieter one; log both |
# | push | $\nabla\mathrm{KL}(\pi\Vert\pi_\text{ref})=\mathbb E_\pi[\ell\,\nabla\log\pi]$: $k_1$ in the reward, $k_2$ in the loss; a loss $k$ gives $\mathbb E_\pi[k'(\ell)\nabla\log\pi]$ |
# | numbers, β = ½ | no penalty 2.17 nats, k1 in the loss 2.17, k1 in the reward 0.30, k3 in the loss 0.49 |
# | many tokens | exact: a token pays for all that it leads to, with much noise; per token: only for itself, with a bias |
# | best policy | $\pi\propto\pi_\text{ref}\,e^{R/\beta}$: a reward of 1 multiplies the odds by $e^{1/\beta}$ |
# | new since 04 | a second, frozen model, the reference; a price β for each nat away from it |

# %% [markdown]
# ## Second sitting: how firmly does it hold, and what does ρ change?
#
# ### How firmly does k3 in the loss hold?
#
# We go back to the answer that pays 1, where all others pay 0, and that has $p_0=10^{-4}$ under the
# reference. At β = 0.2, $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ holds it below 2 %. In the loss
# $k_3$ has the gradient of $\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)$. Two pushes then act on the
# answer's logit $z$, and $\partial p/\partial z=p(1-p)$ is the slope of a softmax:
#
# $$\begin{aligned}
# \text{up:}&\quad\tfrac{\partial}{\partial z}\,p\cdot1=p\,(1-p)&&\text{the mean reward is }p\\
# \text{back:}&\quad\beta\,\tfrac{\partial}{\partial z}\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)=\beta\,(p-p_0)&&\text{cross-entropy: what }\pi\text{ gives minus what it should}
# \end{aligned}$$
#
# With $p_0$ near 0 they balance at $p(1-p)=\beta p$, which is $p=1-\beta$. **So at β = 0.2 the
# answer rises to 80 %**: the push of $k_3$ in the loss does not know how rare the answer was.
#
# Is it always the weaker hold? The explorer starts at this β. Say first, for each task, whether β
# has to go up or down.

# %% jupyter={"source_hidden": true}
# the explorer
task("kl.t2", kl_leash.kl_leash_explorer(),
     ("Leave the reference's chance at 0.0001 and the reward as it is. "
      "Find a β at which k3 in the loss holds the answer lower than "
      "KL(π‖π_ref) does.", kl_leash.k3_holds_lower),
     ("GRPO divides the reward by the std of its group (08). Do that. "
      "What is now the smallest β at which KL(π‖π_ref) holds the answer "
      "at all?", kl_leash.just_held))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# <!-- cited: 0.08, 0.22, 0.01, 0.2 -->
# 1. Down, to 0.08 or less. $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ lets the odds grow by
#    $e^{1/\beta}$, which soon is more than 10,000. $k_3$ in the loss always stops at $1-\beta$.
# 2. Up, to 0.22. The std of a 0/1 reward is $\sqrt{p(1-p)}$. It divides the reward and not the
#    penalty, so β is worth only β · std: at $p=10^{-4}$ a hundredth of β, and at most half. The
#    hump of $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ then stays below the reward for every smaller β.
#    $k_3$ in the loss does hold, where $\sqrt{p(1-p)}=\beta p$, which is $p=1/(1+\beta^2)$.
#
# This std is that of a large group. In groups of 8 more groups are all wrong and silent: at β = 0.2
# the two then rest at 52 % and 92 % ([statements](statements/05_kl.ipynb), K07).
# </details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# where the answer rests, for two sizes of beta and both rewards
print(f"{'reward':20s}   β   {'KL(π‖π_ref)':>12s}  k3 in the loss")
for reward in kl_leash.REWARDS:
    for beta in (0.04, 0.2):
        found = kl_leash.compute(beta, reward=reward)
        rests = ["not held" if found[name] == 1 else
                 f"{100 * found[name]:.1f} %" for name in ("reverse", "k3")]
        print(f"{reward:20s} {beta:.2f} {rests[0]:>12s} {rests[1]:>14s}")

# %% [markdown]
# **Which of the two holds more firmly depends on β and on how the reward is scaled.** At β = 0.04,
# as in GRPO's paper, neither keeps this answer out.
#
# ### What does ρ change?
#
# In training the answers are often a few updates old, and the ratio ρ of page 04 stands in front of
# $k$. TRL's GRPO writes ρ$k_3$ and lets autograd go through both. We first take fresh answers:
# $\pi_\text{old}=\pi$ and ρ = 1.

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.6", "Fresh answers, in the loss: what does ρ in front of k3, "
        "differentiated too, change?",
        ["nothing",
         "the value, not the gradient",
         "the value and the gradient",
         "the gradient, not the value"])

# %% jupyter={"source_hidden": true}
# the mean gradient of rho k3, both differentiated, on fresh answers
def rho_k3(log_pi):
    rho = (log_pi - log_pi.detach()).exp()                # 1, with a slope
    return log_pi.detach().exp() @ (rho * k3(log_pi - ref.log()))

with_rho = gradient(rho_k3)
assert torch.allclose(with_rho, reverse)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.6", "the gradient, not the value",
    "ρ is 1, but it has a slope: ∇ρ = ρ ∇log π. With it the loss sees that "
    "another policy would draw other answers, and the gradient becomes "
    "that of KL(π‖π_ref).",
    pictures.which_gradient(
        {"KL(π‖π_ref)": reverse, "ρ k3 in the loss": with_rho,
         "k3 in the loss": mean_gradient(k3)},
        caption="Slope on each of the three logits, at the moved policy "
                "above. With ρ, orange, k3 has the wanted gradient."),
    instead={
        "nothing":
        "Multiplying by 1 changes no value. But autograd differentiates "
        "the 1.",
        "the value, not the gradient":
        "The value is multiplied by 1. It is the slope of ρ that counts.",
        "the value and the gradient":
        "The gradient, yes. But the value is multiplied by 1.",
    })

# %% [markdown]
# On old answers ρ is no longer 1, and one can still hold it constant or differentiate it:
#
# $$\begin{aligned}
# \rho\text{ held constant:}&\quad\rho\,\nabla k=\rho\;k'\,\nabla\log\pi&&\text{on average as on fresh samples}\\
# \rho\text{ differentiated:}&\quad\nabla(\rho k)=\rho\,(k'+k)\,\nabla\log\pi&&\text{product rule}
# \end{aligned}$$
#
# In the loss that makes nine settings: three estimates, and no ρ, ρ constant or ρ differentiated.
# Before you move: which of the nine have the wanted $\ell$ in front of $\nabla\log\pi$, up to a
# constant?

# %% jupyter={"source_hidden": true}
# the explorer
task("kl.t3", kl_pull.kl_pull_explorer(old=True),
     ("In the loss, on older samples: read the right KL, and go exactly "
      "downhill, 0°.", kl_pull.right_on_old),
     ("In the loss, on older samples: one of the nine pushes uphill. "
      "Find it.", kl_pull.uphill_on_old))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# 1. $k_3$ or $k_1$, ρ differentiated: $k_3+k_3'=\ell$ and $k_1+k_1'=\ell+1$, and a constant has
#    mean push 0. $k_2$ with ρ constant also goes downhill, but reads too much. So with ρ
#    differentiated a right *value* is enough; with ρ constant the *slope* must be right.
# 2. $k_1$ without ρ. It makes every sample less likely, and the older policy wrote them. So it
#    pushes away from the older policy, and from the reference behind it.
# </details>
#
# Look at one sample. $k_2$ with ρ constant, ρ$k_3$ with ρ differentiated, and ρ$k_1$ in the reward
# all push by $\rho\,\ell\,\nabla\log\pi$: **three spellings of one push.** They differ in what they
# log. (TRL names DeepSeek-V3.2 as the source of its ρ$k_3$.)
#
# With ρ and $\ell$ of one token it is line 3 of the first sitting: each token pays only for itself.
# The beginnings of the answers are still the older policy's.
#
# ### Which penalty, then?
#
# | answers | penalty | ρ in front | it costs |
# |---|---|---|---|
# | fresh, short | $k_1$ of the answer, in the reward | none | little |
# | fresh, long | $k_2$ per token, in the loss | none | a token pays only for itself |
# | old, short | $k_1$ of the answer, in the reward | of the answer, constant | the noise of ρ (04) |
# | old, long | $k_3$ per token, in the loss | of the token, differentiated | a token pays only for itself; the beginnings are still the older policy's |
#
# If you want only one, take the last: it is right for fresh answers too, and logs the right value.
# $k_3$ in the loss with ρ constant or absent follows the other KL, which matters far from the
# reference. $k_3$ in the reward is a mistake, and so is $k_1$ in the loss where nothing
# differentiates ρ.
#
# ### In a real run
#
# How does one choose β?
#
# * *A checker decides right and wrong:* start with β = 0, and log the KL all the same.
# * *A learned reward model:* choose how many nats you allow. Raise β while the KL is above, lower
#   it below ([arXiv 1909.08593](https://arxiv.org/abs/1909.08593)).
# * *The unit:* GRPO divides reward term and penalty both by the answer's length. So β prices a nat
#   of the whole answer, while the log shows nats per token.

# %%
def kl_penalty(logp, ref_logp, old_logp):
    """rho * k3 per token, rho differentiated."""
    ell = logp - ref_logp.detach()
    rho = (logp - old_logp.detach()).exp()        # keep its gradient
    return rho * (torch.expm1(-ell) + ell)

# %% tags=["setup"] jupyter={"source_hidden": true}
# a check: one-step answers, written by the policy half-way back
log_old = (ref.log() + 1.5 * R).log_softmax(0)
z = away.clone().requires_grad_()
mean = log_old.exp() @ kl_penalty(z.log_softmax(0), ref.log(), log_old)
assert torch.allclose(torch.autograd.grad(mean, z)[0], reverse)
print(f"on old samples: value {mean.item():.2f}, push of KL(π‖π_ref)")

# %% [markdown]
# <!-- cited: 1.16 -->
# `ref_logp` comes from a second, frozen model: one more forward pass, at the same temperature and
# without dropout. With LoRA no second model is needed: the reference is the base model with the
# adapter switched off.
#
# <details><summary>One level deeper: what libraries do, and an answer with no chance</summary>
#
# | | where | form | by default |
# |---|---|---|---|
# | PPO of InstructGPT ([2203.02155](https://arxiv.org/abs/2203.02155)) | reward | $k_1$ per token | on |
# | TRL RLOO 1.16 | reward | $k_1$, summed over the answer | `beta=0.05` |
# | TRL GRPO 1.16 | loss | ρ$k_3$ (`use_bias_correction_kl`, on by default) | `beta=0.0`: off, no reference loaded |
# | verl | loss | `low_var_kl`: $k_3$; `k3+`: its value with $k_2$'s gradient | `use_kl_loss=False` |
#
# * GRPO's paper writes $r=\pi_\text{ref}/\pi$ and $r-\log r-1$; code writes $d=-\ell$ and
#   $e^d-1-d$. All three are $k_3$.
# * With the full distribution over the vocabulary at each place the KL of one step is exact. It
#   needs all V probabilities of both models at every token.
# * Where π gives an answer no chance at all, $k_1$ is still right and $k_3$ is not. For π = (0.7,
#   0.3, 0) against (0.5, 0.3, 0.2) the bracket that $k_3$ adds has mean −0.2 instead of 0.
# </details>

# %%
score("kl.1", "kl.2", "kl.5", "kl.6")

# %% [markdown]
# ## Exercises
#
# **1 Derive** · 6 minutes. You want a loss whose mean gradient, on fresh samples, is that of
# $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})+\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)$. Which slope
# $k'(\ell)$ must it have? It shall be 0 where the two agree.
#
# <details><summary>hint</summary>Gradients add. Which estimate gives which KL, and what are their slopes?</details>

# %% tags=["exercise"]
def my_slope(log_ratio):
    return ...

check.kl_slope(my_slope)

# %% [markdown]
# **2 Implement** · 4 minutes. $k_3$ per token, from log-probabilities of the sampled tokens. Mind
# which policy stands on top.
#
# <details><summary>hint</summary>Write d = log π_ref − log π once and use the same d twice. At d = 0 the value and its slope are 0.</details>

# %% tags=["exercise"]
def my_k3(logprobs, ref_logprobs):
    return ...

check.k3(my_k3)

# %% [markdown]
# **3 Implement** · 8 minutes. The KL in the reward, token by token: $-\beta\,\ell$ on every real
# token, plus the scalar reward (B,) on the *last real token* of its answer; (B, T). `mask` is
# boolean. A tool's output in the middle of an answer is False, and what stands under the mask may
# be nan.
#
# <details><summary>hint</summary>`torch.where` before the product. The last True of a row is not always `mask.sum(1) - 1`.</details>

# %% tags=["exercise"]
def my_kl_in_reward(rewards, logprobs, ref_logprobs, mask, beta):
    return ...

check.kl_in_reward(my_kl_in_reward)

# %% [markdown]
# **4 Find the silent bug** · 10 minutes. Sampling runs at temperature 0.7, so the policy is scored
# at 0.7. This penalty trains and is never negative:

# %%
print(check.silent_bug_kl.source)

# %% [markdown]
# Write a test that takes such a function. It raises an `AssertionError` on this one and returns on
# a right one.
#
# <details><summary>hint</summary>What must a penalty be on the first step of a run, where policy and reference are one model?</details>

# %% tags=["exercise"]
def my_test(kl_penalty):
    return ...

check.silent_bug_kl(my_test)

# %% [markdown]
# ## In the interview
#
# <!-- cited: 0.04 -->
# A minute each, aloud, then unfold.
#
# <details><summary><b>Compare k1, k2, k3.</b></summary>
#
# As values k1 and k3 are right on average; as losses only k2 follows KL(π‖π_ref). With ℓ = log π −
# log π_ref: k1 = ℓ can be negative on a sample and has no mean gradient in a loss. k2 = ℓ²/2 is
# biased and has the right slope. k3 = e^(−ℓ) − 1 + ℓ is never negative, quiet near the reference,
# and as a loss follows KL(π_ref‖π).
# </details>
# <details><summary><b>Is GRPO's KL term wrong?</b></summary>
#
# Without ρ, on fresh samples, its value is KL(π‖π_ref) and its gradient that of KL(π_ref‖π). It
# still holds the policy, and near the reference it pushes the same way. Far away it is another
# penalty. Reward 1, β = 0.2, an answer that starts at one in 10,000: it rests at 80 %, where
# KL(π‖π_ref) rests at 1.5 %. With the reward divided by the std of a large group it rests at 96 %,
# and KL(π‖π_ref) does not hold at all. Fixes: k2 in the loss, k1 in the reward, or ρ k3 with ρ
# differentiated.
# </details>
# <details><summary><b>KL in the reward or in the loss? If the reward is exact, why do many take the loss?</b></summary>
#
# What matters is what a token pays for. k1 in the reward charges it for all that it leads to: the
# exact gradient of the answer's KL. Its noise does not average away over the tokens, and in GRPO it
# also passes through the group's std. Per token in the loss each token pays only for itself: quiet,
# and biased far from the reference. ½ (the sum of ℓ)² in the loss would be exact, and noisy, too.
# </details>
# <details><summary><b>With verifiable rewards, do you keep the KL?</b></summary>
#
# Often not: it costs a frozen model and a forward pass. And at β = 0.04 it hardly bounds anything:
# a right answer may grow from one in 10,000 to above 95 %, with either penalty. It slows drift and
# protects other abilities. With a learned reward model one keeps it, since a free policy finds the
# reward's largest errors.
# </details>
# <details><summary><b>What has the KL penalty to do with DPO?</b></summary>
#
# DPO is its best policy, solved for the reward. That policy is π ∝ π_ref e^(R/β), so R = β log
# (π/π_ref) + a constant of the prompt. Put this R into the chance that one answer is preferred to
# another. The constant cancels, and a loss on two log-ratios is left.
# </details>
#
# The other three can wait for another evening.
#
# <details><summary><b>Your logged KL is negative. Noise or bug?</b></summary>
#
# A batch of k1 may be below 0 for a step; staying there means the samples are not from the policy
# that scores them. Look for another temperature, another engine, stale samples without ρ, dropout
# in one of the two models. A log of k3 alone hides it, since k3 is never negative.
# </details>
# <details><summary><b>The reference is reset every N steps. What bounds the drift?</b></summary>
#
# Nothing global. Each stage starts at distance zero and may go as far as β allows; N stages add up.
# What is bounded is the speed, which is often what one wanted. Log the KL to the first model too.
# </details>
# <details><summary><b>On fresh samples ρ = 1. Is ρ k3 the same loss as k3?</b></summary>
#
# The same value, another gradient. ρ is 1, but its slope is ∇log π. So ρ k3 has k3' + k3 = ℓ in
# front of ∇log π, which is the push of k2 and of k1 in the reward. k3 alone has 1 − e^(−ℓ), the
# other KL. Whoever computes ρ and detaches it is back at k3.
# </details>
#
# **True, false, or it depends?** Eleven statements about KL, with the cells that decide them:
# [statements page](statements/05_kl.ipynb).
#
# **Next: 06.** PPO: no solver, no measured KL, and a `min`.
