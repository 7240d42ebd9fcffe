# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 · KL: how do you hold a policy near a reference?
#
# **After this page** you can say what k1, k2 and k3 measure, what gradient each has in the reward
# and in the loss, and which one to take where.
#
# 32 minutes, then 14 in a second sitting · exercises 28 more · after 02 (REINFORCE), 03
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
from rlnb.classroom import figures
from rlnb.classroom.explorers import kl_pull
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import kl as pictures, pipeline
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## Can you penalise a KL that you only sample?
#
# Training takes the policy π away from the model it began as, the **reference** $\pi_\text{ref}$. A
# learned reward model then judges answers unlike those it was trained on
# ([arXiv 1909.08593](https://arxiv.org/abs/1909.08593)). So one subtracts a penalty: β times the
# distance between the two models, measured as a KL.
#
# $$\mathrm{KL}(\pi\,\|\,\pi_\text{ref})=\mathbb E_\pi[\ell],\qquad\ell=\log\pi-\log\pi_\text{ref}$$
#
# There are too many answers to sum over, but the policy writes samples. The **log-ratio** ℓ of a
# sampled answer is an estimate of the KL, called $k_1$. It can enter training in two places:

# %% jupyter={"source_hidden": true}
# the pipeline
pipeline.pipeline("rewards", "loss", caption=(
    "In the reward the penalty is a number that an answer earns. In the "
    "loss it is a term of its own, and autograd goes through it."))

# %% [markdown]
# **The toy.** One prompt has three possible answers. An update draws 16 and takes a REINFORCE step
# with a leave-one-out baseline (03).

# %%
ref = torch.tensor([0.1, 0.3, 0.6])          # the reference: where we start
R = torch.tensor([1.0, 0.5, 0.0])            # what the three answers pay

def kl(log_pi, log_ref=ref.log()):
    return (log_pi.exp() * (log_pi - log_ref)).sum(-1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# 150 updates, 400 seeds side by side; the penalty goes where `place` says
def k1(ell): return ell

def train(k, place, beta, n=400, updates=150, lr=0.5):
    """KL(pi || ref) after each update, (updates + 1, n): n seeds."""
    dice = torch.Generator().manual_seed(0)
    z, path = ref.log().repeat(n, 1), []
    for _ in range(updates + 1):
        z = z.detach().requires_grad_()
        log_pi = z.log_softmax(1)
        p = log_pi.detach().exp()
        y = torch.multinomial(p, 16, replacement=True, generator=dice)
        log_y = log_pi.gather(1, y)
        penalty = k(log_y - ref.log()[y])                    # (n, 16)
        path.append(kl(log_pi).detach())
        reward = R[y]
        if place == "reward":
            reward, penalty = reward - beta * penalty.detach(), 0.0
        A = (reward - reward.mean(1, keepdim=True)) * 16 / 15
        loss = (beta * penalty - A * log_y).mean(1).sum()
        z = z - lr * torch.autograd.grad(loss, z)[0]
    return torch.stack(path)

# %% tags=["setup"] jupyter={"source_hidden": true}
# training without a penalty
free = train(k1, "loss", 0.0)
print(f"Without a penalty the KL ends at {free[-1].mean():.2f} nats "
      "(150 updates, mean of 400 seeds).")

# %% [markdown]
# How far *should* it go? Mean reward minus β KL has one best policy, $\pi^*$:
#
# $$\begin{aligned}
# \mathbb E_\pi[R]-\beta\,\mathrm{KL}(\pi\,\|\,\pi_\text{ref})&=-\beta\,\mathbb E_\pi\Big[\log\frac{\pi}{\pi_\text{ref}\,e^{R/\beta}}\Big]&&R=\beta\log e^{R/\beta}\text{, under one mean}\\
# &=-\beta\,\mathrm{KL}(\pi\,\|\,\pi^*)+\beta\log Z&&\pi^*=\pi_\text{ref}\,e^{R/\beta}/Z\text{, with }Z\text{ so that it sums to 1}\\
# &\text{is largest at }\pi=\pi^*&&\text{a KL is at least 0, and 0 only there}
# \end{aligned}$$

# %% tags=["setup"] jupyter={"source_hidden": true}
# the best policy of the toy
wanted = kl((ref.log() + R / 0.5).log_softmax(0)).item()
print(f"at β = ½ the best policy has a KL of {wanted:.2f} nats")

# %% [markdown]
# That is what we want. Now add the penalty:
#
# ```python
# A = leave_one_out(R - beta * ell.detach());  loss = (-A * log_pi).mean()              # reward
# A = leave_one_out(R);                        loss = (beta * ell - A * log_pi).mean()  # loss
# ```

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.1", "The second line, ℓ in the loss: where does the KL end, "
        "on average?",
        ["near 0, back at the reference",
         "near 0.3, where we want it",
         "near 2.2, as without a penalty",
         "near 1, about half-way"])

# %% jupyter={"source_hidden": true}
# training with k1 in the loss, and with k1 in the reward
in_loss = train(k1, "loss", 0.5)
in_reward = train(k1, "reward", 0.5)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.1", "near 2.2, as without a penalty",
    f"It ends at {in_loss[-1].mean():.2f} with the penalty and at "
    f"{free[-1].mean():.2f} without. The penalty pushes each sample by "
    "β ∇log π, whatever its ℓ; on average that is 0, and only noise "
    "is left. The same number in the reward stops the policy at "
    f"{in_reward[-1].mean():.2f}.",
    pictures.runs({"no penalty": free, "k1 in the loss": in_loss,
                   "k1 in the reward": in_reward}, wanted, caption=(
        "16 answers an update. Lines: mean of 400 seeds; pale bands: the "
        "middle 80 % of them. In the loss k1 does not hold the policy; "
        "in the reward it does.")),
    instead={
        "near 0.3, where we want it":
        "The value of this loss says so. Its gradient says something "
        "else.",
        "near 1, about half-way":
        "A weak gradient would do that. Here the mean gradient is 0.",
        "near 0, back at the reference":
        "β multiplies the gradient of ℓ, and on average that is 0.",
    })

# %% [markdown]
# The samples were right, their mean was the KL, and the policy went just as far. So ask two
# questions of an estimate $k$. **Its value: is its mean the KL? Its gradient: does training with it
# follow the KL's gradient, on average?**
#
# ## What is the value of each estimate?
#
# A KL is never negative, but a single ℓ may be. John Schulman's note offers two others:
#
# $$k_1=\ell,\qquad k_2=\tfrac12\ell^2,\qquad k_3=e^{-\ell}-1+\ell$$
#
# Take one policy that has moved away, the **moved policy**. Compare the last column.

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
# $k_1$ and $k_3$ have the right mean: they are **unbiased**. Here $k_2$ is a quarter too large.
#
# * $k_3$ is right because the part added to ℓ has mean 0:
#   $\mathbb E_\pi[e^{-\ell}]=\sum_y\pi(y)\frac{\pi_\text{ref}(y)}{\pi(y)}=1$.
# * $k_3$ is never negative because the exponential lies above its tangent: $e^{-\ell}\ge1-\ell$.
#
# How much does a single sample scatter? Take the toy's policy at a KL of 0.02 and at one of 1.41
# (logits of the reference plus ½R, or plus 5R).

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.8", "Draw one answer. Which estimate has the larger standard "
        "deviation?",
        ["at 0.02 k3, at 1.41 k1",
         "at 0.02 k3, at 1.41 k3",
         "at 0.02 k1, at 1.41 k1",
         "at 0.02 k1, at 1.41 k3"])

# %% jupyter={"source_hidden": true}
# the answer, computed
spread = []
for d in (0.5, 5.0):                             # ref's logits + d * R
    log_pi = (ref.log() + d * R).log_softmax(0)
    spread.append([(log_pi.exp() * (k(log_pi - ref.log()) - kl(log_pi))**2
                    ).sum().sqrt().item() for k in (k1, k3)])
    assert f"{kl(log_pi):.2f}" == ("0.02" if d < 1 else "1.41")
(near1, near3), (far1, far3) = spread

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.8", "at 0.02 k1, at 1.41 k3",
    f"Near, a k1 has {near1:.2f} and a k3 {near3:.2f}. Far, a k1 has "
    f"{far1:.2f} and a k3 {far3:.2f}. Near the reference e^(−ℓ) − 1 is "
    "about −ℓ and cancels k1's noise. Far away, an answer that the "
    "reference likes and the policy has almost given up has a huge "
    "e^(−ℓ).",
    instead={
        "at 0.02 k1, at 1.41 k1":
        "k3 is known as the quiet one. That holds near the reference.",
        "at 0.02 k3, at 1.41 k3":
        "Near the reference k3 is about ½ℓ²: where ℓ is small, much "
        "smaller than ℓ.",
        "at 0.02 k3, at 1.41 k1":
        "The other way round: the exponential is what grows far away.",
    })

# %% [markdown]
# <details><summary>One level deeper: k3 is a control variate, and a batch may miss its mean</summary>
#
# $k_1+\lambda(e^{-\ell}-1)$ has the right mean for every λ, since the bracket has mean 0 (a
# baseline, 03). $k_3$ is λ = 1.
#
# <!-- cited: 0.97 -->
# At the KL of 1.41 the answer that pays 0 is drawn three times in 100. A batch of 16 misses it
# three times in five, and its $k_3$ is then 0.97 on average.
# </details>
#
# ## What is the gradient of each estimate?
#
# First, the gradient that a KL penalty should have:
#
# $$\begin{aligned}
# \nabla\,\mathrm{KL}(\pi\,\|\,\pi_\text{ref})&=\nabla\textstyle\sum_y\pi(y)\,\ell(y)&&\text{definition}\\
# &=\textstyle\sum_y\ell\,\nabla\pi+\sum_y\pi\,\nabla\ell&&\text{product rule}\\
# &=\mathbb E_\pi[\ell\,\nabla\log\pi]+\mathbb E_\pi[\nabla\log\pi]&&\nabla\pi=\pi\nabla\log\pi;\ \pi_\text{ref}\text{ is constant}\\
# &=\mathbb E_\pi[\ell\,\nabla\log\pi]&&\mathbb E_\pi[\nabla\log\pi]=0\ (02)
# \end{aligned}$$
#
# **The right weight in front of $\nabla\log\pi$ is ℓ** (plus any constant, which has mean 0). Which
# weight does an estimate $k$ give?
#
# * *In the reward* it is a number in front of $\nabla\log\pi$. The weight is $k$. So $k_1$ is
#   right.
# * *In the loss* autograd differentiates $k(\ell)$ on answers that are drawn already. The weight is
#   the slope $k'(\ell)$. For $k_1$ that is 1: a constant, so the mean is 0.

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.2", "GRPO's paper (arXiv 2402.03300) puts k3 into the loss. "
        "On answers from π itself, what is its mean gradient?",
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
assert torch.allclose(reverse, pi * (ell - pi @ ell))
assert torch.allclose(forward, pi - ref)

for start, slope in ((1e-4, 0.05), (1e-6, 0.09)):    # grown to 1 %
    log_p, log_r = (torch.tensor([c, 1 - c]).log() for c in (0.01, start))
    first = 0.01 * (log_p[0] - log_r[0] - kl(log_p, log_r))
    assert round(first.item(), 2) == slope
    assert round(0.01 - start, 2) == 0.01
# %% tags=["setup"] jupyter={"source_hidden": true}
# the derivation that stands in the answer
by_slope = r"""

$$\begin{aligned}
\mathbb E_\pi[\nabla k(\ell)]&=\mathbb E_\pi[k'(\ell)\,\nabla\log\pi]
&&\text{chain rule}\\
k_1'=1:&\qquad0&&\mathbb E_\pi[\nabla\log\pi]=0\\
k_2'=\ell:&\qquad\nabla\,\mathrm{KL}(\pi\,\|\,\pi_\text{ref})
&&\text{the right gradient}\\
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
    "k3 has the value of one KL and the gradient of the other. In the "
    "loss only k2 has the right gradient." + by_slope,
    pictures.which_gradient(
        {"KL(π‖π_ref)": reverse, "k3 in the loss": mean_gradient(k3),
         "KL(π_ref‖π)": forward},
        caption="Gradient on the three logits, at the moved policy. "
                "The black bar equals the purple one each time."),
    instead={
        "that of KL(π‖π_ref)":
        "That is its value. But k1 has that value too, and its mean "
        "gradient is 0: a right value does not make a right gradient.",
        "0, like that of k1":
        "What k3 adds to k1 has mean 0. The mean of its slope is not 0.",
        "half that of KL(π‖π_ref)":
        "Near the reference k3 is ½ℓ², but the slope of ½ℓ² is ℓ: all of "
        "it, not half.",
    })

# %% [markdown]
# **An unbiased estimate of the KL may be a biased estimate of its gradient:** autograd does not see
# that another policy would draw other answers. How does the other KL differ as a penalty? With the
# policy first, $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$, it is called the *reverse* KL, with the
# reference first the *forward* KL. Their gradients on the logit $z_y$ of one answer:
#
# $$\begin{aligned}
# \partial\,\mathrm{KL}(\pi\,\|\,\pi_\text{ref})/\partial z_y&=\pi(y)\,\big(\ell(y)-\mathrm{KL}\big)&&\mathbb E_\pi[\ell\,\nabla\log\pi]\text{, for a softmax}\\
# \partial\,\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)/\partial z_y&=\pi(y)-\pi_\text{ref}(y)&&\text{as for a cross-entropy (01)}
# \end{aligned}$$
#
# | the answer $y$ has | reverse KL | forward KL |
# |---|---|---|
# | grown from one in 10,000 to 1 % | 0.05 | 0.01 |
# | grown from one in a million to 1 % | 0.09 | 0.01 |
# | almost died out | fades with π(y) | stays at $-\pi_\text{ref}(y)$ |
#
# (The KL itself is still near 0 in the first two rows.) The reverse KL reacts to what is new
# ("mode-seeking"), the forward KL to what was dropped ("mass-covering"). Near the reference they
# agree: $k_3'=1-e^{-\ell}\approx\ell$.
#
# ## Which estimate, in which place?
#
# Three estimates in two places make six penalties. Sort them before you move: which have the right
# value, which the right gradient? Which could even make the KL rise, and where?

# %% jupyter={"source_hidden": true}
# the explorer
task("kl.t1", kl_pull.kl_pull_explorer(),
     ("Say first which of the six do this. At a KL of at most 0.02, find a "
      "penalty that is never negative, and that hardly holds: its step "
      "lowers the KL by less than a tenth of what the KL's own gradient "
      "does.", kl_pull.never_negative_and_weak),
     ("Find a penalty whose value is the KL, while a step against its "
      "gradient makes the KL rise.", kl_pull.right_and_rising))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# <!-- cited: 4.3, 0.04, 0.5 -->
# In the reward: first $k_2$ or $k_3$, then $k_3$. At distance 0.5, $k_3$ lowers the KL 0.04 times
# as fast. The weight should be ℓ, and near the reference $k_3\approx\tfrac12\ell^2$ is much
# smaller. From 4.3 on the KL rises. A penalty in the reward makes an answer rarer, and the policy's
# rarest answer here has the largest $k_3$: it becomes rarer still. As a formula,
# $k_3=\ell-(1-e^{-\ell})$: the reverse KL's weight minus the forward one's.
# </details>
#
# For a single token, or an answer that is drawn as one piece:
#
# | you want | take | reason | mind |
# |---|---|---|---|
# | to log the KL | $k_3$ | right mean, little noise near the reference | log $k_1$ too: its mean per answer below 0 says that others than this policy drew; $k_3$ cannot show it |
# | a penalty in the reward | $k_1$ | its value ℓ is the right weight | $k_2$ and $k_3$ hardly hold near the reference |
# | a penalty in the loss | $k_2$ | its slope ℓ is the right weight | its value is not the KL |
# | the same, as in GRPO's paper | $k_3$ | its slope $1-e^{-\ell}$ is the forward KL's weight | nearly ℓ near the reference |
#
# So what do the two losses do to the toy at β = ½?

# %% jupyter={"source_hidden": true}
# k2 and k3 in the loss, trained
for k in (k2, k3):
    print(f"{k.__name__} in the loss: the KL ends at "
          f"{train(k, 'loss', 0.5)[-1].mean():.2f} nats; "
          f"wanted {wanted:.2f}")

# %% [markdown]
# <details><summary>One level deeper: reward or loss, where GRPO divides by a std</summary>
#
# Take a group of four right answers with log-ratios 1, 2, 3 and 6. In the reward they earn 1 − β,
# 1 − 2β, 1 − 3β and 1 − 6β. Minus the mean, over the std (08), that is 1.07, 0.53, 0 and −1.60, at
# β = 0.04 and at β = 0.4 alike: where all are right, β has no say. In the loss it has. With many
# tokens there is another difference (second sitting).
# <!-- cited: 1.07, 0.53, -1.60, 0.04, 0.4 -->
# </details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# checked: the four advantages, at two values of β
for b in (0.04, 0.4):
    paid = 1 - b * torch.tensor([1.0, 2.0, 3.0, 6.0])
    A4 = (paid - paid.mean()) / paid.std(correction=0)
    assert [f"{x:.2f}" for x in A4[[0, 1, 3]]] == ["1.07", "0.53", "-1.60"]

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | KL | |
# |---|---|
# | sentence | a KL estimate has a value and a gradient; a right value does not make a right gradient |
# | value | $\mathbb E_\pi[k_1]=\mathbb E_\pi[k_3]=\mathrm{KL}(\pi\Vert\pi_\text{ref})$; near the reference $k_3$ is quieter |
# | gradient | right: $\mathbb E_\pi[\ell\,\nabla\log\pi]$. Weight in the reward: $k$. Weight in the loss: $k'$ |
# | so, for one token | $k_1$ in the reward or $k_2$ in the loss; $k_3$ in the loss has the gradient of $\mathrm{KL}(\pi_\text{ref}\Vert\pi)$; $k_1$ in the loss only noise |
# | toy, β = ½ | no penalty 2.17 nats, k1 in the loss 2.17, k1 in the reward 0.30 |
# | best policy | $\pi\propto\pi_\text{ref}\,e^{R/\beta}$ |
# | new since 04 | a frozen reference, and β |

# %% [markdown]
# Now try [the interview questions](#In-the-interview) that are not marked.

# %% [markdown]
# ## Second sitting: old answers and many tokens
#
# ### Which loss is right on old answers?
#
# A batch serves several updates (04). Then the answers come from $\pi_\text{old}$, and
# $\rho=\pi/\pi_\text{old}$ in front repairs a mean. In code ρ can be detached, or autograd can go
# through it.

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.9", "Old answers of one token. Which loss has the value of "
        "KL(π‖π_ref) and its gradient?",
        ["ρ·k1, ρ detached",
         "ρ·k3, ρ detached",
         "ρ·k3, ρ differentiated",
         "ρ·k2, ρ differentiated"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.9", "ρ·k3, ρ differentiated",
    "The mean of ρ·k3 over old answers is the mean of k3 under π, the KL, "
    "whatever π is. And the old answers stay where they are when π moves. "
    "So autograd through ρ and k3 misses nothing: **a right value is then "
    "enough.** As weights: k3 + k3' = ℓ. (So ρ·k1 with ρ differentiated "
    "would do as well: ℓ + 1, and a constant averages out.)",
    instead={
        "ρ·k2, ρ differentiated":
        "Autograd misses nothing here, so the gradient is that of the "
        "value. And the value is the mean of ½ℓ², not the KL.",
        "ρ·k3, ρ detached":
        "Right value. The weight is the slope k3' again, so the gradient "
        "is that of KL(π_ref‖π).",
        "ρ·k1, ρ detached":
        "Right value. The weight is 1, so the mean gradient is 0.",
    })

# %%
def kl_loss(logp, ref_logp, old_logp):
    """rho * k3 per token; autograd goes through rho."""
    ell = logp - ref_logp.detach()
    rho = (logp - old_logp.detach()).exp()
    return rho * (torch.expm1(-ell) + ell)

# %% tags=["setup"] jupyter={"source_hidden": true}
# a check on fresh answers, and on those of the policy half-way back
log_half = (ref.log() + 1.5 * R).log_softmax(0)
for log_old, who in ((away.log_softmax(0), "fresh"), (log_half, "old")):
    z = away.clone().requires_grad_()
    value = log_old.exp() @ kl_loss(z.log_softmax(0), ref.log(), log_old)
    assert torch.allclose(torch.autograd.grad(value, z)[0], reverse)
    assert torch.isclose(value, kl(away.log_softmax(0)))
    z = away.clone().requires_grad_()        # detached: a sum over pi again
    lost = pi @ k3(z.log_softmax(0) - ref.log())
    assert torch.allclose(torch.autograd.grad(lost, z)[0], forward)

# %% [markdown]
# TRL calls this `use_bias_correction_kl`. On fresh answers ρ is 1, but its
# gradient is $\nabla\log\pi$: there too ρ$k_3$ and $k_3$ have different gradients.
#
# ### What does a penalty in the reward do on old answers?
#
# PPO computes the rewards once, when the batch is drawn. So they contain
# $\ell_\text{old}=\log\pi_\text{old}-\log\pi_\text{ref}$, and later updates put ρ in front. Take
# the penalty alone: the moved policy draws the batch, and 150 updates follow the mean gradient.

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.7", "Where does the policy end?",
        ["back at the reference",
         "at the policy that drew the batch",
         "between that policy and the reference",
         "at one single answer"])

# %% jupyter={"source_hidden": true}
# many updates on one batch, exact: l of the old policy, or read anew
def one_batch(again, updates=150, lr=0.5):
    z, path = away.clone(), []
    for _ in range(updates + 1):
        log_pi = z.log_softmax(0)
        path.append(kl(log_pi).item())
        weight = log_pi - ref.log() if again else ell
        p = log_pi.exp()
        z = z - lr * p * (weight - p @ weight)     # rho: draws from p
    return path, z.softmax(0)

fixed, last = one_batch(False)
anew, _ = one_batch(True)
assert last[ell.argmin()] > 0.99
passed = (
    "ρ corrects who drew the answers. It does not correct their ℓ_old, "
    "which stays as it was. So this policy passes the reference and goes "
    "on to the answer with the lowest ℓ_old.")
seen = (
    "KL to the reference over 150 updates on one batch. With the old ℓ "
    f"it falls from {fixed[0]:.2f} to {min(fixed):.2f} and rises to "
    f"{fixed[-1]:.2f}; with ℓ computed anew it goes to 0.")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.7", "at one single answer",
    passed + " It descends E_π[ℓ_old] = KL(π‖π_ref) − KL(π‖π_old).",
    figures.line_figure(
        range(151), {"ℓ of the old policy": fixed,
                    "ℓ computed anew": anew},
        xlabel="updates on one batch", ylabel="KL(π‖π_ref) in nats",
        size=(900, 240),
        alt=seen, caption="Lower is nearer to the reference. With the old "
                          "ℓ the KL falls, then rises again."),
    instead={
        "back at the reference":
        "That is where it ends when ℓ is computed anew at each update.",
        "at the policy that drew the batch":
        "It starts there, and the first update already leads away.",
        "between that policy and the reference":
        "It goes through there, and nothing stops it: no ℓ_old changes on "
        "the way.",
    })

# %% [markdown]
# The first update is right. PPO takes few updates per batch, and its clip ends a push that has
# carried a token far from $\pi_\text{old}$ (06).
#
# ### What changes with many tokens?
#
# An answer's ℓ is the sum of its tokens' $\ell_t$. So $k_1$ or $k_3$ summed over the tokens still
# has the answer's KL as its mean. ($k_3$ of the whole answer too, but at ℓ = −20 it would be about
# $e^{20}$.) The gradient is another matter. Here the first word decides how the answer goes on:

# %% jupyter={"source_hidden": true}
# two ways to begin an answer
T = 1000
token = (ref.log() + 0.563 * R).log_softmax(0)   # after word 0: each token
each = round(kl(token).item(), 4)
words = [(0.4, 0.5, each), (0.6, 0.5, 0.0)]      # chance, reference, KL
pictures.styles(words, T)

# %% [markdown]
# One penalty is the ℓ of the whole answer, in the reward. The other is the $k_2$ of each token,
# summed in the loss.

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.5", "Does word 0 become likelier or rarer, by the mean update?",
        ["reward: rarer; loss: likelier",
         "reward: rarer; loss: rarer",
         "reward: likelier; loss: rarer",
         "reward: likelier; loss: likelier"])

# %% jupyter={"source_hidden": true}
# minus the gradient of each penalty on word 0's logit
x = torch.tensor([0.4, 0.6]).log().requires_grad_()
first = x.log_softmax(0)
own = first - math.log(0.5)                       # of the first word
later = torch.tensor([T * each, 0.0])             # KL of what follows
follows = (first.exp() * (own + later)).sum()
itself = (first.exp().detach() * k2(own)).sum()
pushes = [-torch.autograd.grad(value, x, retain_graph=True)[0][0].item()
          for value in (follows, itself)]
assert pushes[0] < 0 < pushes[1]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.5", "reward: rarer; loss: likelier",
    "In the loss, autograd goes through the k2 of word 0 itself, and word "
    "0 is rarer than the reference wants. The k2 of the later tokens "
    "moves only those tokens. The reward counts for word 0 as well, with "
    f"all {later[0]:.0f} nats that come after it.",
    instead={
        "reward: likelier; loss: likelier":
        "Word 0's own log-ratio says so. But the reward counts the whole "
        "answer, and word 0 leads far away.",
        "reward: likelier; loss: rarer":
        "The other way round: the reward is the one that counts what "
        "comes after word 0.",
        "reward: rarer; loss: rarer":
        "The sum in the loss is large after word 0, as you say. But "
        "autograd takes the tokens as drawn: it does not see that word 0 "
        "leads to them.",
    })

# %% [markdown]
# $$\begin{aligned}
# \nabla\,\mathrm{KL}&=\mathbb E\Big[\textstyle\sum_t\ell_t\cdot\sum_s\nabla\log\pi(y_s)\Big]&&\text{as before}\\
# &=\mathbb E\Big[\textstyle\sum_s\nabla\log\pi(y_s)\sum_{t\ge s}\ell_t\Big]&&\text{a token cannot change what came before it (02)}\\
# \text{instead}&\quad\mathbb E\Big[\textstyle\sum_s\nabla\log\pi(y_s)\;\ell_s\Big]&&\textbf{a choice, not an identity: no later }\ell_t
# \end{aligned}$$
#
# | penalty | weight of a token | counts what it leads to? |
# |---|---|---|
# | $k_1$ in the reward | its $\ell$ and all later ones | yes |
# | $k_2$ per token in the loss, or ρ$k_3$ on fresh answers | its own $\ell$ | no |
# | $k_3$ per token in the loss, as GRPO has it | its own $1-e^{-\ell}$ | no |
# | the exact KL over the vocabulary at each token | its own $\ell$, averaged over all tokens it could have been | no |
#
# On old answers a token's own ρ does not correct how the tokens before it were drawn.

# %%
score("kl.1", "kl.8", "kl.2", "kl.9", "kl.7", "kl.5")

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
# <!-- cited: -0.19, 0.22, 0.04, 0.2, 1.5 -->
# A minute each, aloud, then unfold.
#
# <details><summary><b>Compare k1, k2, k3.</b></summary>
#
# k1 and k3 have the right mean; as a loss on one token, only k2 has the right gradient. With ℓ =
# log π − log π_ref: k1 = ℓ may be negative, and as a loss its mean gradient is 0. k2 = ℓ²/2 has a
# biased value. k3 = e^(−ℓ) − 1 + ℓ is never negative, quiet near the reference, and as a loss
# follows KL(π_ref‖π).
# </details>
# <details><summary><b>Is GRPO's KL term wrong? (second sitting)</b></summary>
#
# Its value is right; its gradient is the other KL's. On fresh samples without ρ its mean is
# KL(π‖π_ref), and its mean gradient at each token that of KL(π_ref‖π). Near the reference the two
# agree. Far away β means something else: at β = 0.2 an answer that pays 1, and had one chance in
# 10,000, ends at 80 % instead of 1.5 % (statement K07). ρ in front, differentiated, gives the
# gradient of KL(π‖π_ref), token by token.
# </details>
# <details><summary><b>KL in the reward or in the loss? (second sitting)</b></summary>
#
# In the reward a token is weighted by all that it leads to; per token in the loss, by itself only.
# The first is the gradient of the answer's KL. GRPO's std divides it too: among equal rewards β
# cancels. The second avoids that, and may move an early token the wrong way.
# </details>
# <details><summary><b>You have the logits. Why sample the KL? (second sitting)</b></summary>
#
# Over whole answers no sum is possible; at one token it is. The sum over the vocabulary has no
# noise from the token drawn, and needs all V probabilities of both models at every token. Its
# gradient, with the tokens before held as drawn, is the mean of k2's at that token. So it too
# leaves out what a token leads to.
# </details>
# <details><summary><b>With verifiable rewards, do you keep the KL?</b></summary>
#
# Often not, as in DAPO or Dr. GRPO; I would still log it. A small β bounds little: the best policy
# multiplies odds by e^(1/β) per unit of reward (undivided, with the exact KL), at 0.04 by e^25. And
# the term costs a frozen model and a forward pass. With a learned reward model I keep it: far from
# the reference that model judges what it was not trained on.
# </details>
# <details><summary><b>Your logged KL is negative. Noise or bug?</b></summary>
#
# One batch below 0 may be noise; a mean that stays there is not. First ask what is averaged. The
# sum of k1 over an answer has the KL as its mean. Divided by each answer's length it has not: short
# answers then weigh more (−0.19 at a KL of 0.22 in statement K06). Then ask who drew: an engine
# with other numbers, top-p or another temperature, old samples without ρ, dropout.
# </details>
# <details><summary><b>How do you choose β, and what if the KL runs away?</b></summary>
#
# By a KL, not by β: I choose how far the model may go, log k1 and k3, and adapt. PPO's paper
# has such a rule for the KL to the old policy: double β above 1.5 times the target, halve it below
# the target over 1.5.
# Before I raise β I look at what the reward pays for: if held-out quality rises with the KL, the
# distance is not the fault. Long runs also replace the reference by the policy of now (ProRL).
# </details>
#
# **True, false, or it depends?** Eleven statements about KL, with the cells that decide them:
# [statements page](statements/05_kl.ipynb).
#
# **Next: 06.** PPO: no solver, no measured KL, and a `min`.
