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
# **After this page** you can read a KL off samples, say which way a KL penalty pushes, and work out
# what a β allows.
#
# 36 minutes, then 17 in a second sitting · exercises 28 more · after 02 (REINFORCE), 03
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
from rlnb.classroom.explorers import kl_leash, kl_pull
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import kl as pictures, pipeline
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## How far has the policy gone?
#
# Training takes the policy π away from the model it began as, the **reference** $\pi_\text{ref}$.
# To see how far, let the policy write answers and ask both models how surprised they are by each,
# in $-\log$ of its probability. The KL is the extra surprise of the reference, on average:
#
# $$\mathrm{KL}(\pi\,\|\,\pi_\text{ref})=\mathbb E_\pi[-\log\pi_\text{ref}]-\mathbb E_\pi[-\log\pi]=\mathbb E_\pi[\ell],\qquad\ell=\log\pi-\log\pi_\text{ref}$$
#
# So the KL is the mean **log-ratio** $\ell$ of the answers. As an estimate of the KL, $\ell$ is
# called $k_1$.
#
# We log the KL. We also penalise it, with a coefficient β: far from the reference, a learned reward
# model judges answers unlike those it was trained on
# ([arXiv 1909.08593](https://arxiv.org/abs/1909.08593)). The penalty can enter in two places:

# %% jupyter={"source_hidden": true}
# the pipeline
pipeline.pipeline("rewards", "loss", caption=(
    "In the reward the penalty is a number that an answer earns. In the "
    "loss it is a term of its own, and autograd goes through it."))

# %% [markdown]
# **The toy.** One prompt has three possible answers. An update draws 16 and takes a REINFORCE step
# with a leave-one-out baseline (03). We want to stop where reward minus ½ KL is largest.

# %%
ref = torch.tensor([0.1, 0.3, 0.6])          # the reference: where we start
R = torch.tensor([1.0, 0.5, 0.0])            # what the three answers pay

def k1(ell): return ell

def kl(log_pi, log_ref=ref.log()):
    return (log_pi.exp() * (log_pi - log_ref)).sum(-1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# 150 updates, 400 seeds side by side; the penalty goes where `place` says
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
wanted = kl((ref.log() + R / 0.5).log_softmax(0)).item()
free = train(k1, "loss", 0.0)
print(f"wanted: a KL of {wanted:.2f} nats. Without a penalty it ends at "
      f"{free[-1].mean():.2f} (150 updates, mean of 400 seeds).")

# %% [markdown]
# Without a penalty the policy runs far past the goal. So we penalise $k_1$, with β = ½:
#
# ```python
# A = leave_one_out(R - beta * k1.detach());  loss = (-A * log_pi).mean()             # reward
# A = leave_one_out(R);                       loss = (beta * k1 - A * log_pi).mean()  # loss
# ```

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.1", "The second line, k1 in the loss: where does the KL end, "
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
    f"{free[-1].mean():.2f} without. The same number in the reward "
    f"stops the policy at {in_reward[-1].mean():.2f}.",
    pictures.runs({"no penalty": free, "k1 in the loss": in_loss,
                   "k1 in the reward": in_reward}, wanted, caption=(
        "Same estimate, same β, 16 answers an update. A line is the mean "
        "of 400 seeds. In the loss k1 does not hold the policy; in the "
        "reward it does.")),
    instead={
        "near 0.3, where we want it":
        "The value of this loss says so. Its gradient says something "
        "else.",
        "near 1, about half-way":
        "A weak push would do that. Here the mean push is exactly 0.",
        "near 0, back at the reference":
        "β multiplies the push, and on average there is none.",
    })

# %% [markdown]
# We penalised the KL, read off the right samples, and the policy went just as far. **So an estimate
# of the KL has two properties. Its value is what it reads on average. Its push is minus its mean
# gradient.**
#
# ## What does an estimate read?
#
# A KL is never negative, but a single $k_1$ may be. John Schulman's note offers two others:
#
# $$k_1=\ell,\qquad k_2=\tfrac12\ell^2,\qquad k_3=e^{-\ell}-1+\ell$$
#
# We read all three off one policy that has moved away, called the *moved policy* below. Compare the
# last column.

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
# How much does one sample scatter around the KL?

# %% tags=["setup"] jupyter={"source_hidden": true}
# the scatter of one sample
for d, where in ((0.5, "near"), (5.0, "far")):     # ref's logits + d * R
    log_pi = (ref.log() + d * R).log_softmax(0)
    spread = [(log_pi.exp() * (k(log_pi - ref.log()) - kl(log_pi))**2
               ).sum().sqrt().item() for k in (k1, k3)]
    print(f"{where:4s} KL {kl(log_pi):.2f}: std of one k1 {spread[0]:.2f}, "
          f"of one k3 {spread[1]:.2f}")

# %% [markdown]
# Near the reference $k_3$ is the quiet one. Far away it can be the noisy one: an answer that the
# reference likes and the policy has almost given up has a large $e^{-\ell}$.
#
# **Log $k_3$, and also $k_1$ summed over each answer.** If the mean of that sum stays below 0, the
# batch is not a plain sample from the policy that scores it. $k_3$, never negative, cannot show
# that.
#
# <details><summary>One level deeper: k3 is a control variate, and what it reads far away</summary>
#
# $k_1+\lambda(e^{-\ell}-1)$ has the right mean for every λ, since the bracket has mean 0 (a
# baseline, 03). $k_3$ is λ = 1. Near the reference $e^{-\ell}-1\approx-\ell$, which cancels
# $k_1$'s noise to first order and leaves $\tfrac12\ell^2$.
#
# <!-- cited: 0.97 -->
# Far away the mean of $k_3$ rests on answers that a batch may miss. In the far policy above, the
# answer that pays 0 is drawn three times in 100. A batch of 16 misses it three times in five, and
# then reads 0.97 on average where the KL is 1.41. How near is near? That depends on how the policy
# left ([statements](statements/05_kl.ipynb), K03).
# </details>
#
# ## Where does an estimate push?
#
# Why did $k_1$ do nothing in the loss? First, the gradient that a penalty should have:
#
# $$\begin{aligned}
# \nabla\,\mathrm{KL}(\pi\,\|\,\pi_\text{ref})&=\nabla\textstyle\sum_y\pi(y)\,\ell(y)&&\text{definition}\\
# &=\textstyle\sum_y\ell\,\nabla\pi+\sum_y\pi\,\nabla\ell&&\text{product rule}\\
# &=\mathbb E_\pi[\ell\,\nabla\log\pi]+\mathbb E_\pi[\nabla\log\pi]&&\nabla\pi=\pi\nabla\log\pi;\ \pi_\text{ref}\text{ is constant}\\
# &=\mathbb E_\pi[\ell\,\nabla\log\pi]&&\mathbb E_\pi[\nabla\log\pi]=0\ (02)
# \end{aligned}$$
#
# *In the reward* a penalty is a number in front of $\nabla\log\pi$. The last line says which number
# it should be: $\ell$. So $k_1$ in the reward is right.
#
# *In the loss* autograd takes the slope of $k(\ell)$ on answers that are drawn already. It does not
# see that another policy would draw other answers. The slope of $k_1$ is $\nabla\log\pi(y)$: it
# makes each drawn answer less likely, whatever the reference says. On average these pushes cancel.

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
    "k3 has the value of one KL and the gradient of the other. Of the "
    "three only k2 has the wanted gradient." + by_slope,
    pictures.which_gradient(
        {"KL(π‖π_ref)": reverse, "k3 in the loss": mean_gradient(k3),
         "KL(π_ref‖π)": forward},
        caption="Slope on each of the three logits, at the moved policy. "
                "The black bar equals the purple one each time."),
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
# How do the two KLs differ as penalties? Look at their slopes on the logit $z_y$ of one answer:
#
# $$\begin{aligned}
# \partial\,\mathrm{KL}(\pi\,\|\,\pi_\text{ref})/\partial z_y&=\pi(y)\,\big(\ell(y)-\mathrm{KL}\big)&&\mathbb E_\pi[\ell\,\nabla\log\pi]\text{, for a softmax}\\
# \partial\,\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)/\partial z_y&=\pi(y)-\pi_\text{ref}(y)&&\text{as for a cross-entropy (01)}
# \end{aligned}$$
#
# * *An answer has grown to 1 %.* If it came from one in 10,000, the first slope is 0.05. If it came
#   from one in a million, the first slope is 0.09. The second slope is 0.01 both times.
# * *The policy has almost given up an answer.* The first slope fades with π(y). The second stays at
#   $-\pi_\text{ref}(y)$.
#
# So the first KL reacts to what is new (*reverse* KL, mode-seeking), the second to what was dropped
# (*forward* KL, mass-covering). Near the reference they agree: $k_3'=1-e^{-\ell}\approx\ell$.
#
# Now all three estimates, in both places. Say first: can a penalty read the right KL and still push
# the policy further away? Near the reference, or far from it?

# %% jupyter={"source_hidden": true}
# the explorer
task("kl.t1", kl_pull.kl_pull_explorer(),
     ("Find a penalty that reads the right KL and whose push makes the KL "
      "rise.", kl_pull.right_and_rising))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# <!-- cited: 4.3 -->
# $k_3$ in the reward, from a distance of 4.3. In the reward a charge makes an answer rarer. But
# $k_3$ also charges an answer for being *too* rare. One that the policy has given up has the
# largest $k_3$ of all, and is pushed down further. As a formula: $k_3=\ell-(1-e^{-\ell})$, so its
# push in the reward is that of $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ minus that of
# $\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)$. Near the reference the two nearly cancel. Far out, on this
# road, the second wins.
# </details>
#
# | estimate | its value | its push in the reward | its push in the loss |
# |---|---|---|---|
# | $k_1$ | right | **right** | none |
# | $k_2$ | nearly right near the reference | wrong | **right** |
# | $k_3$ | right | wrong, may raise the KL | nearly right near the reference |
#
# ## What changes with many tokens?
#
# If an answer is one decision, the two bold fields are the same mean push. A real answer is a chain
# of decisions. Here the first word decides how the answer goes on:

# %% jupyter={"source_hidden": true}
# two ways to begin an answer
T = 1000
token = (ref.log() + 0.563 * R).log_softmax(0)   # after word 0: each token
each = round(kl(token).item(), 4)
words = [(0.4, 0.5, each), (0.6, 0.5, 0.0)]      # chance, reference, KL
pictures.styles(words, T)

# %% [markdown]
# One penalty is the $\ell$ of the whole answer, in the reward. The other is the $k_2$ of each
# token, added up in the loss. Each of them pushes the first word.

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.5", "Which way is word 0 pushed, on average?",
        ["reward: down; loss: up",
         "reward: down; loss: down",
         "reward: up; loss: down",
         "reward: up; loss: up"])

# %% jupyter={"source_hidden": true}
# the push of each penalty on word 0's logit
x = torch.tensor([0.4, 0.6]).log().requires_grad_()
first = x.log_softmax(0)
own = first - math.log(0.5)                       # of the first word
later = torch.tensor([T * each, 0.0])             # KL of what follows
follows = (first.exp() * (own + later)).sum()
itself = (first.exp().detach() * k2(own)).sum()
pushes = [-torch.autograd.grad(value, x, retain_graph=True)[0][0].item()
          for value in (follows, itself)]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.5", "reward: down; loss: up",
    "In the loss, autograd goes through the k2 of word 0 itself, and word "
    "0 is too rare: it pushes up. The k2 of the later tokens moves only "
    "those tokens. The reward is credited to word 0 as well, with all "
    f"{later[0]:.0f} nats that come after it: it pushes down.",
    instead={
        "reward: up; loss: up":
        "The log-ratio of word 0 says up. But the reward counts the whole "
        "answer, and word 0 leads far away.",
        "reward: up; loss: down":
        "The other way round: the reward is the one that counts what "
        "comes after word 0.",
        "reward: down; loss: down":
        "The sum in the loss is large after word 0, as you say. But "
        "autograd takes the tokens as drawn: it does not see that word 0 "
        "leads to them.",
    })

# %% [markdown]
# Write $\ell_t$ for the log-ratio of token $t$. For a whole answer:
#
# $$\begin{aligned}
# \nabla\,\mathrm{KL}&=\mathbb E\Big[\textstyle\sum_t\ell_t\cdot\sum_s\nabla\log\pi(y_s)\Big]&&\text{as before}\\
# &=\mathbb E\Big[\textstyle\sum_s\nabla\log\pi(y_s)\sum_{t\ge s}\ell_t\Big]&&\text{a token cannot change what came before it (02)}\\
# \text{instead}&\quad\mathbb E\Big[\textstyle\sum_s\nabla\log\pi(y_s)\;\ell_s\Big]&&\textbf{a choice, not an identity: no later }\ell_t
# \end{aligned}$$
#
# Line 2 is $k_1$ in the reward: **a token pays for all that it leads to.** Line 3 is $k_2$ in the
# loss, token by token: **it pays only for itself.** Is line 2 not too noisy, with its sum of 1,000
# log-ratios? We hold its noise against that of the reward term, $A=\pm1$.

# %% tags=["setup"] jupyter={"source_hidden": true}
# std of one answer's gradient after word 0: lines 2 and 3 over the reward's
p, log_ratio = token.exp(), token - ref.log()
a, S = log_ratio - p @ log_ratio, torch.eye(3) - p   # rows: grad log pi
mean, size = (p * a) @ S, p @ S.square().sum(1)
alone = (p * a**2) @ S.square().sum(1) - mean @ mean

def noise(n):
    """Exact, for n tokens: lines 2 and 3 with a baseline; the reward."""
    pairs = n * (n - 1) / 2 * (p @ a**2) * size
    squares = (n * alone + pairs, n * alone, n * size)
    return [(square**0.5).item() for square in squares]

y = torch.cartesian_prod(*[torch.arange(3)] * 3)     # by enumeration, n = 3
after = a[y].flip(1).cumsum(1).flip(1)
for pays, std in zip((after, a[y], torch.ones(27, 3)), noise(3)):
    g = (pays[..., None] * S[y]).sum(1)
    centre = 0 if std == noise(3)[2] else 3 * mean
    off = p[y].prod(1) @ (g - centre).square().sum(1)
    assert math.isclose(off.sqrt(), std)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the two lines side by side; and a group whose answers are all right
print("answers that begin with word 0, at β = 0.04")
print(f"{'':20s} push on word 0   noise ÷ reward's noise")
for name, push, std in zip(("line 2, what follows", "line 3, only itself"),
                           pushes, noise(T)):
    beside = 0.04 * std / noise(T)[2]
    print(f"{name:20s} {0.04 * push:+10.3f} {beside:19.3f}")
print("\nfour right answers, reward 1 − βℓ, as advantages over their std")
for beta in (0.04, 0.0004):
    r = 1 - beta * torch.tensor([18.0, 20.0, 21.0, 21.0])
    z = (r - r.mean()) / r.std(correction=0)
    print(f"β = {beta:<6}",
          *(f"{v + 0.0:5.2f}" for v in z.round(decimals=4)))

# %% [markdown]
# Here line 2 pushes word 0 the right way, and its noise is small beside the reward's. What, then,
# speaks for the loss? GRPO divides rewards by the std of their group (08). If all answers of a
# group are right, a penalty in the reward is the only difference left: the std cancels β, and the
# penalty pushes with full strength.
#
# <details><summary>One level deeper: how the noise of line 2 grows</summary>
#
# Beside the reward's noise it is about $\beta\sqrt{\mathrm{KL}}$, with the KL of the answer, here
# 20 nats. Near the reference the variance of a token's $\ell$ is about twice its KL, and on average
# half of the tokens are still to come. So at β = 0.04 it takes hundreds of nats until line 2 is as
# noisy as the reward. Between the lines stand a discount on the later $\ell_t$, and a critic that
# predicts their sum.
# </details>
#
# ## What does a β allow?
#
# Which policy earns the most of $\sum_y\pi R-\beta\sum_y\pi\ell$? One for which a little more
# chance is worth the same on every answer. Otherwise it would gain by moving chance to another
# answer.
#
# $$\begin{aligned}
# R(y)-\beta\,(\ell(y)+1)&=\text{the same for every }y&&\text{the slope in }\pi(y)\\
# \ell(y)&=R(y)/\beta+\text{const}&&\text{solve for }\ell\\
# \pi(y)&\propto\pi_\text{ref}(y)\,e^{R(y)/\beta}&&\ell=\log\pi-\log\pi_\text{ref}
# \end{aligned}$$
#
# **At rest, an answer that pays 1 has $e^{1/\beta}$ times its old odds against one that pays 0.**
# (Solved for $R$, the second line gives DPO its loss, 15.)
#
# Say a flawed reward model pays 1 for an answer that the reference gives once in 10,000 times, and
# 0 for all others. Which β keeps that answer below 2 %?

# %%
def odds(p): return p / (1 - p)

growth = odds(0.02) / odds(1e-4)             # how far the odds may grow
print(f"factor {growth:.0f}: β at least {1 / math.log(growth):.2f}")
print(f"at β = 0.04 the factor is e^25, which is {math.exp(25):.0e}")

# %% [markdown]
# At β = 0.04, the value in GRPO's paper, this KL would not keep the answer out.
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | KL | |
# |---|---|
# | sentence | a KL estimate has a value and a push; a right value does not make a right push |
# | value | $\mathbb E_\pi[k_1]=\mathbb E_\pi[k_3]=\mathrm{KL}(\pi\Vert\pi_\text{ref})$; near the reference $k_3$ is quieter |
# | push | right: $\mathbb E_\pi[\ell\,\nabla\log\pi]$, as $k_1$ in the reward or $k_2$ in the loss; $k_3$ in the loss follows $\mathrm{KL}(\pi_\text{ref}\Vert\pi)$ |
# | toy, β = ½ | no penalty 2.17 nats, k1 in the loss 2.17, k1 in the reward 0.30 |
# | many tokens | in the reward a token pays for all it leads to; per token in the loss, only for itself |
# | best policy | $\pi\propto\pi_\text{ref}\,e^{R/\beta}$: a reward of 1, odds times $e^{1/\beta}$ |
# | new since 04 | a frozen reference; a price β for a nat |

# %% [markdown]
# ## Second sitting: old answers, and how firmly k3 holds
#
# ### What does a k1 in the reward do on old answers?
#
# PPO computes the rewards once, when the batch is drawn. Its penalty therefore contains
# $\ell_\text{old}=\log\pi_\text{old}-\log\pi_\text{ref}$. Later updates on the batch put
# $\rho=\pi/\pi_\text{old}$ in front (04). To see the penalty alone we leave out what the answers
# pay. The moved policy of the first sitting draws the batch, and we take 150 updates on it, each
# along the mean gradient.

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.7", "Where does the policy end?",
        ["back at the reference",
         "at the policy that drew the batch",
         "between that policy and the reference",
         "at one single answer"])

# %% jupyter={"source_hidden": true}
# many updates on one batch, exact: the price fixed, or read anew
def one_batch(again, updates=150, lr=0.5):
    z, path = away.clone(), []
    for _ in range(updates + 1):
        log_pi = z.log_softmax(0)
        path.append(kl(log_pi).item())
        price = log_pi - ref.log() if again else ell
        p = log_pi.exp()
        z = z - lr * p * (price - p @ price)     # rho: draws from p
    return path, z.softmax(0)

fixed, last = one_batch(False)
anew, _ = one_batch(True)
assert last[ell.argmin()] > 0.99
passed = (
    "ρ corrects who drew the answers. It does not correct the price of an "
    "answer, which stays ℓ_old. So the policy passes the reference and "
    "goes on to the answer with the lowest price, the one that pays 0.")
seen = (
    "KL to the reference over 150 updates on one batch. With the fixed "
    f"price it falls from {fixed[0]:.2f} to {min(fixed):.2f} and rises to "
    f"{fixed[-1]:.2f}; read anew it goes to 0.")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.7", "at one single answer",
    passed + " It follows E_π[ℓ_old] = KL(π‖π_ref) − KL(π‖π_old).",
    figures.line_figure(
        range(151), {"k1 in the reward, fixed": fixed,
                    "ℓ read anew each time": anew},
        xlabel="updates on one batch", ylabel="KL(π‖π_ref) in nats",
        size=(900, 240),
        alt=seen, caption="Lower is nearer to the reference. With the "
                          "fixed price the KL falls, then rises again."),
    instead={
        "back at the reference":
        "That is where it ends when ℓ is read anew at each update. Here ℓ "
        "was computed once.",
        "at the policy that drew the batch":
        "There the push is that of the KL, away from that policy.",
        "between that policy and the reference":
        "It goes through there, and nothing stops it: no price changes on "
        "the way.",
    })

# %% [markdown]
# The first update pushes right. PPO's clip, and its few updates per batch, are meant to keep the
# policy near the beginning of this road (06).
#
# ### What does ρ do to a penalty in the loss?
#
# In the loss $\ell$ is read anew. But ρ can be a constant there, or autograd can differentiate it:
#
# $$\begin{aligned}
# \rho\text{ constant:}&\quad\rho\,\nabla k=\rho\;k'\,\nabla\log\pi&&\text{right if }k'=\ell\\
# \rho\text{ differentiated:}&\quad\nabla(\rho k)=\rho\,(k'+k)\,\nabla\log\pi&&\text{product rule; right if }k'+k=\ell+\text{const}
# \end{aligned}$$
#
# On fresh answers ρ is 1, but its slope is $\nabla\log\pi$. So if autograd differentiates ρ, as in
# TRL's GRPO, **ρ$k_3$ has the value of $k_3$ and another gradient.**
#
# The explorer has nine settings: three estimates, and no ρ, ρ constant or ρ differentiated. Before
# you move: which of the nine read the right KL and push right?

# %% jupyter={"source_hidden": true}
# the explorer
task("kl.t3", kl_pull.kl_pull_explorer(old=True),
     ("On older samples, in the loss: read the right KL, and push exactly "
      "right.", kl_pull.right_on_old))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# $k_3$ or $k_1$, ρ differentiated: $k_3+k_3'=\ell$ and $k_1+k_1'=\ell+1$, and a constant has mean
# push 0. $k_2$ with ρ constant also pushes right, but reads too much. So with ρ differentiated a
# right *value* is enough. With ρ constant the *slope* must be right.
# </details>
#
# ### How firmly does k3 hold?
#
# Take the answer that pays 1 where all others pay 0, with chance $p_0=10^{-4}$ under the reference.
# On its logit the reward pushes up by $p(1-p)$, the slope of $p$. In the loss $k_3$ pushes back by
# $\beta(p-p_0)$, the slope of $\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)$. The two balance near
# $p=1-\beta$. At β = 0.2 the answer rises to 80 %, where $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$
# holds it below 2 %.
#
# Is $k_3$ always the weaker hold? The explorer starts at this β. Say first whether β must go up or
# down.

# %% jupyter={"source_hidden": true}
# the explorer
task("kl.t2", kl_leash.kl_leash_explorer(),
     ("Leave the reference's chance at 0.0001 and the reward as it is. "
      "Find a β at which k3 in the loss holds the answer lower than "
      "KL(π‖π_ref) does.", kl_leash.k3_holds_lower))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# <!-- cited: 0.08, 0.2, 0.01 -->
# Down, to 0.08 or less. $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ lets the odds grow by $e^{1/\beta}$,
# which soon is more than 10,000. $k_3$ in the loss stops near $1-\beta$, however rare the answer
# was.
#
# GRPO divides the reward by the std of its group, and not the penalty. At $p=10^{-4}$ the std of a
# 0/1 reward is 0.01, so the reward pushes 100 times as hard. Try it: at β = 0.2
# $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ then does not hold this answer at all, and $k_3$ rests at
# $1/(1+\beta^2)$, which is 96 %. In small groups both hold more firmly
# ([statements](statements/05_kl.ipynb), K07).
# </details>
#
# So one β means two things. A fair comparison is at the same KL, here in the three-answer toy:

# %% tags=["setup"] jupyter={"source_hidden": true}
# where k3 in the loss rests, exactly, and at which beta it rests at 0.30
def rest(beta):
    """The best policy of mean reward minus beta KL(ref || pi)."""
    low, high = 1.0, 1.0 + 2 * beta + 1          # sum of pi = 1
    for _ in range(100):
        mid = (low + high) / 2
        low, high = (mid, high) if (beta * ref / (mid - R)).sum() > 1 else (
            low, mid)
    return beta * ref / (mid - R)

goal = (ref.log() + R / 0.5).log_softmax(0)
low, high = 0.5, 1.0
for _ in range(60):
    beta = (low + high) / 2
    far = kl(rest(beta).log()) > wanted
    low, high = (beta, high) if far else (low, beta)
print(f"KL(π‖π_ref), β = 0.50: KL {kl(goal):.2f}, reward "
      f"{goal.exp() @ R:.3f}")
for b in (0.5, beta):
    print(f"k3 in loss,  β = {b:.2f}: KL {kl(rest(b).log()):.2f}, reward "
          f"{rest(b) @ R:.3f}")
at = rest(0.5)
assert torch.allclose(at * (R - at @ R), 0.5 * mean_gradient(k3, at.log()))

# %% [markdown]
# At the same β $k_3$ goes further. At the same KL it earns a little less, and no penalty can earn
# more there than the first.
#
# ### Which penalty, then?
#
# | rewards | penalty | its weak spot |
# |---|---|---|
# | not divided by a std | $k_1$ of the answer, in the reward | the price is fixed while the batch is in use |
# | divided by a std | ρ$k_3$ per token in the loss, ρ differentiated | a token pays only for itself |
#
# On fresh answers $k_2$ per token has the push of the second row. How large a β? Choose the nats
# that you allow; raise β while the KL is above, lower it below
# ([arXiv 1909.08593](https://arxiv.org/abs/1909.08593)). Mind the unit: 0.02 nats per token are 20
# nats for an answer of 1,000 tokens.

# %%
def kl_penalty(logp, ref_logp, old_logp):
    """rho * k3 per token, rho differentiated; on fresh answers too."""
    ell = logp - ref_logp.detach()
    rho = (logp - old_logp.detach()).exp()        # keep its gradient
    return rho * (torch.expm1(-ell) + ell)

# %% tags=["setup"] jupyter={"source_hidden": true}
# a check: one-step answers, fresh, and of the policy half-way back
log_half = (ref.log() + 1.5 * R).log_softmax(0)
for log_old, who in ((away.log_softmax(0), "fresh"), (log_half, "old")):
    z = away.clone().requires_grad_()
    value = log_old.exp() @ kl_penalty(z.log_softmax(0), ref.log(), log_old)
    assert torch.allclose(torch.autograd.grad(value, z)[0], reverse)
    print(f"{who:5s} samples: value {value.item():.2f}, right push")

# %%
score("kl.1", "kl.2", "kl.5", "kl.7")

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
# <!-- cited: 0.04, -0.19, 0.22 -->
# A minute each, aloud, then unfold.
#
# <details><summary><b>Compare k1, k2, k3.</b></summary>
#
# k1 and k3 read the KL right on average; of the three only k2 pushes right as a loss. With ℓ = log
# π − log π_ref: k1 = ℓ may be negative on a sample, and its mean gradient is 0. k2 = ℓ²/2 is
# biased. k3 = e^(−ℓ) − 1 + ℓ is never negative, quiet near the reference, and as a loss follows
# KL(π_ref‖π).
# </details>
# <details><summary><b>Is GRPO's KL term wrong?</b></summary>
#
# It reads one KL and pushes along the other. Without ρ, on fresh samples, its value is KL(π‖π_ref),
# its gradient that of KL(π_ref‖π). Near the reference they push alike. Far away β means another
# thing: at 0.2, with no std, an answer that pays 1 rises from one in 10,000 to 80 % instead of
# 1.5 %; at 0.04 the order turns. The repair: ρ in front, differentiated.
# </details>
# <details><summary><b>KL in the reward or in the loss?</b></summary>
#
# In the reward a token pays for all that it leads to; per token in the loss, only for itself. The
# first is the gradient of the answer's KL, with a noise of about β√KL of the reward's near the
# reference. But GRPO's std divides it too: in a group of equal rewards β cancels. The second avoids
# that, and may push an early token the wrong way.
# </details>
# <details><summary><b>With verifiable rewards, do you keep the KL?</b></summary>
#
# Often not, as in DAPO or Dr. GRPO; I would still log it. A small β bounds little: at 0.04 a right
# answer may grow from one in 10,000 to above 95 %, with either penalty. And the term costs a frozen
# model and a forward pass. With a learned reward model I keep it: far from the reference that model
# judges what it was not trained on.
# </details>
# <details><summary><b>What has the KL penalty to do with DPO?</b></summary>
#
# DPO turns the best policy under the penalty into a loss. That policy is π ∝ π_ref e^(R/β), so R =
# β log (π/π_ref) + a constant of the prompt. Put this R into the chance that one answer is
# preferred to another. The constant cancels, and a loss on two log-ratios is left.
# </details>
# <details><summary><b>Your logged KL is negative. Noise or bug?</b></summary>
#
# One batch below 0 may be noise; a mean that stays there is not. First ask what is averaged. The
# sum of k1 over an answer has the KL as its mean. Divided by each answer's length it has not: short
# answers then weigh more, and it can read −0.19 at a KL of 0.22. Then look for another temperature,
# old samples without ρ, dropout, filtered answers.
# </details>
# <details><summary><b>On fresh samples ρ = 1. Is ρ k3 the same loss as k3?</b></summary>
#
# No: the value is the same, the gradient is not. ρ is 1, but its slope is ∇log π. So ρ k3 has k3' +
# k3 = ℓ in front of ∇log π, as k2 has. k3 alone has 1 − e^(−ℓ) there, the other KL. Whoever
# computes ρ and detaches it is back at k3.
# </details>
#
# **True, false, or it depends?** Eleven statements about KL, with the cells that decide them:
# [statements page](statements/05_kl.ipynb).
#
# **Next: 06.** PPO: no solver, no measured KL, and a `min`.
