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
# 52 minutes, exercises 28 more · after 02 (REINFORCE), 03 (baselines), 04 (importance sampling) ·
# Schulman 2020, *Approximating KL divergence* (joschu.net/blog); Tang & Munos 2025,
# [arXiv 2506.09477](https://arxiv.org/abs/2506.09477)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Samples come from π. What is the mean of ∇log π over them?</summary>0: it is the gradient of the sum of all probabilities, and that sum is always 1 (02).</details>
# <details><summary>2. Each sample earns a reward. Which gradient raises its mean?</summary>The mean of reward × ∇log π, the reward held constant (02).</details>
# <details><summary>3. The samples are from an older policy. What repairs a mean over them?</summary>The ratio ρ = π / π_old in front (04).</details>

# %% tags=["setup"]
import torch
from rlnb import check
from rlnb.classroom.explorers import kl_leash, kl_pull
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import kl as pictures, pipeline, token_grid
from rlnb.objective import k3 as k3_term
from rlnb.toys import SequencePolicy, running_group
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## One number, logged and penalised
#
# Training on a reward takes the policy away from the model it began as. That model is the
# **reference**. We log how far the policy has gone, as a KL. We also penalise it, with a
# coefficient β. The policy then keeps what the reference could do, and it stays away from answers
# that only fool a reward model ([arXiv 2210.10760](https://arxiv.org/abs/2210.10760)).
#
# The penalty can enter in two places:

# %%
pipeline.pipeline("rewards", "loss", caption=(
    "In the reward the penalty is a number that an answer earns. In the "
    "loss it is a term of its own, and autograd goes through it."))

# %% [markdown]
# **The toy of this page.** One prompt has three answers. They pay 1, ½ and 0, and the reference
# gives them with chances 0.1, 0.3 and 0.6. Each update draws 16 answers and takes a REINFORCE step.
#
# Each drawn answer has a **log-ratio** $\ell=\log\pi-\log\pi_\text{ref}$. Its mean over answers
# from $\pi$ is $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$; that is the definition of the KL. Used as
# an estimate, $\ell$ is called $k_1$.

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
        A = reward - reward.mean(1, keepdim=True)
        loss = (beta * penalty - A * log_y).mean(1).sum()
        z = z - lr * torch.autograd.grad(loss, z)[0]
    return torch.stack(path, dim=1)                 # (2, updates + 1, n)

# %% [markdown]
# Without a penalty the policy ends almost entirely on the best answer. We would like to stop on the
# way: the most of reward minus ½ KL lies at 0.30 nats (why: further down).

# %%
wanted = kl((ref.log() + R / 0.5).log_softmax(0)).item()
free = train(k1, "loss", 0.0)
pictures.runs({"no penalty": free[0]}, wanted, logged=free[1, :, 0],
              caption="Thick: the true KL, mean of 400 seeds. Dots: what "
                      "one seed logs, the mean of k1 over 16 answers.")

# %% [markdown]
# The log is right: it scatters, sometimes below 0, and is correct on average.
#
# So we put the logged number into the loss, with β = ½: `loss = 0.5 * k1 - A * log_pi`. Autograd
# does the rest.

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.1", "Where does the KL end, on average?",
        ["near 0.3: that is what the loss asks for",
         "about 1: it helps, but sixteen samples are few",
         "about 2.2, as if there were no penalty",
         "near 0: β = ½ is strong"])

# %%
in_loss, _ = train(k1, "loss", 0.5)
in_reward, _ = train(k1, "reward", 0.5)

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.1", "about 2.2, as if there were no penalty",
    f"{in_loss[-1].mean():.2f} with the penalty, {free[0, -1].mean():.2f} "
    f"without. The same number in the reward: {in_reward[-1].mean():.2f}. "
    "The logged number is right, and its gradient is useless.",
    pictures.runs({"no penalty": free[0], "k1 in the loss": in_loss,
                   "k1 in the reward": in_reward}, wanted, caption=(
        "Same estimate, same β, same 16 answers an update. In the loss it "
        "does nothing; in the reward it lands where it should.")),
    instead={
        "near 0.3: that is what the loss asks for":
        "Its value does. Autograd asks something else.",
        "about 1: it helps, but sixteen samples are few":
        "More samples change nothing here: the mean push is exactly 0.",
        "near 0: β = ½ is strong":
        "β multiplies the push, and there is none.",
    })

# %% [markdown]
# So there are two things to know about such a number: **what it measures**, and **where it moves
# the policy**. We call the second its **push**: minus its gradient.
#
# ## What it measures
#
# Here are the sixteen tokens of the running group: the chance that the reference gave each, and the
# chance that the policy gives it now.

# %%
batch = running_group()
mask = batch.mask
ell16 = (batch.logprobs - batch.ref_logprobs).detach()       # (4, 6)
token_grid.probability_grid(
    batch.replace(old_logprobs=batch.ref_logprobs),
    outside=mask & (ell16 < 0),
    caption="Reference → policy, and π/π_ref. Bold: the six tokens that "
            "the reference liked better. Their k1 is negative.")

# %% [markdown]
# A KL is never negative, but a sample of $k_1$ may be. John Schulman's note of 2020 offers two
# others:
#
# $$k_1=\ell,\qquad k_2=\tfrac12\ell^2,\qquad k_3=e^{-\ell}-1+\ell$$
#
# * $k_2$ has a wrong mean, the more the further away. Near the reference one hardly sees it.
# * $k_3$ has the right mean, because what it adds to $k_1$ has mean 0:
#   $\mathbb E_\pi[e^{-\ell}]=\sum_y\pi(y)\frac{\pi_\text{ref}(y)}{\pi(y)}=1$.
# * $k_3$ is never negative, because the exponential lies above its tangent: $e^{-\ell}\ge1-\ell$.

# %%
def k2(ell): return ell**2 / 2
def k3(ell): return torch.expm1(-ell) + ell     # exp(-l) - 1 + l

print("mean over the sixteen tokens:", *[
    f"{k.__name__} {k(ell16[mask]).mean():.3f}" for k in (k1, k2, k3)])
for d in (0.5, 5.0):                    # reference logits + d * R
    log_pi = (ref.log() + d * R).log_softmax(0)
    spread = [(log_pi.exp() * (k(log_pi - ref.log()) - kl(log_pi))**2
               ).sum().sqrt().item() for k in (k1, k3)]
    print(f"a policy at KL {kl(log_pi):.2f}: std of one sample, "
          f"k1 {spread[0]:.2f}, k3 {spread[1]:.2f}")
pictures.estimators(ell16[mask])

# %% [markdown]
# Near the reference $k_3$ is ten times quieter. That is why libraries call it the *low-variance*
# estimate (`low_var_kl`). Far away it is the noisier one: on the left of the picture, where the
# reference liked a token more, it grows like an exponential. Then one rare token makes a spike in
# the log. Where the two cross depends on how the policy left
# ([statements](statements/05_kl.ipynb), K03).
#
# <details><summary>One level deeper: k3 is a control variate</summary>
#
# $k_1+\lambda(e^{-\ell}-1)$ has the right mean for every λ, since the bracket has mean 0 (a
# baseline, as in 03). $k_3$ is λ = 1: never negative, and not tuned for least variance. Near the
# reference $e^{-\ell}-1\approx-\ell$, so λ = 1 cancels $k_1$'s noise to first order and leaves
# $\tfrac12\ell^2$. Far away $e^{-\ell}$ is the larger noise, and a smaller λ would do better.
# </details>
#
# ## Where it moves the policy
#
# $k_3$ has the right mean and is quiet. GRPO's paper puts it into the loss
# ([arXiv 2402.03300](https://arxiv.org/abs/2402.03300)).

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.2", "On fresh samples, what is k3's mean gradient as a loss?",
        ["that of KL(π‖π_ref): its mean is right",
         "that of KL(π_ref‖π): the arguments swapped",
         "0: like k1, it has the right mean and no push",
         "half of KL(π‖π_ref)'s: the −1 in k3 cancels the rest"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# exact gradients, by summing over the three answers: mean_gradient(k)
away = ref.log() + 3 * R                      # logits of a moved policy

def mean_gradient(k, place="loss", q=None, ratio="none", z=away):
    """Over all answers, weighted by the chance q that each was written."""
    z = z.clone().requires_grad_()
    log_pi = z.log_softmax(0)
    q = log_pi.detach().exp() if q is None else q
    rho = (log_pi - q.log()).exp()
    weight = {"none": 1, "constant": rho.detach(), "full": rho}[ratio]
    penalty = k(log_pi - ref.log())
    if place == "reward":                     # a number times grad log pi
        penalty = penalty.detach() * log_pi
    return torch.autograd.grad((q * weight * penalty).sum(), z)[0]

def gradient(function, z=away):
    z = z.clone().requires_grad_()
    return torch.autograd.grad(function(z.log_softmax(0)), z)[0]

reverse = gradient(kl)
forward = gradient(lambda log_pi: kl(ref.log(), log_pi))

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal(
    "kl.2", "that of KL(π_ref‖π): the arguments swapped",
    "The value of one KL, and the gradient of the other.",
    pictures.which_gradient(
        {"KL(π‖π_ref)": reverse, "k3 in the loss": mean_gradient(k3),
         "KL(π_ref‖π)": forward},
        caption="Slope on each of the three logits. The black bar, k3 "
                "averaged over π, equals the purple one each time."),
    instead={
        "that of KL(π‖π_ref): its mean is right":
        "So was k1's. A right mean promises nothing about the gradient.",
        "0: like k1, it has the right mean and no push":
        "k1 had no push because its slope in ℓ is 1 everywhere.",
        "half of KL(π‖π_ref)'s: the −1 in k3 cancels the rest":
        "The −1 is a constant; it has no gradient.",
    })

# %% [markdown]
# Why? First the true gradient, line by line.
#
# $$\begin{aligned}
# \nabla\,\mathrm{KL}(\pi\,\|\,\pi_\text{ref})&=\nabla\textstyle\sum_y\pi(y)\,\ell(y)&&\text{definition}\\
# &=\textstyle\sum_y\ell\,\nabla\pi+\sum_y\pi\,\nabla\ell&&\text{product rule}\\
# &=\mathbb E_\pi[\ell\,\nabla\log\pi]+\mathbb E_\pi[\nabla\log\pi]&&\nabla\pi=\pi\nabla\log\pi;\ \pi_\text{ref}\text{ is constant}\\
# &=\mathbb E_\pi[\ell\,\nabla\log\pi]&&\mathbb E_\pi[\nabla\log\pi]=0\ (02)
# \end{aligned}$$
#
# The whole gradient comes from the first sum: from *which* answers are drawn.
#
# Now the loss. It averages $k(\ell)$ over answers that are drawn already, so autograd sees only
# $\ell$:
#
# $$\begin{aligned}
# \mathbb E_\pi[\nabla k(\ell)]&=\mathbb E_\pi[k'(\ell)\,\nabla\log\pi]&&\text{chain rule}\\
# k_1'=1:&\qquad0&&\text{only the second sum, the empty one}\\
# k_2'=\ell:&\qquad\nabla\,\mathrm{KL}(\pi\,\|\,\pi_\text{ref})&&\text{the line above}\\
# k_3'=1-\tfrac{\pi_\text{ref}}{\pi}:&\qquad0-\textstyle\sum_y\pi_\text{ref}\nabla\log\pi=\nabla\,\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)&&\text{the weight }\pi\text{ cancels}
# \end{aligned}$$
#
# In the reward there is no chain rule. The penalty is a number that multiplies $\nabla\log\pi$, and
# the first derivation says which number: $\ell$, so $k_1$. **On fresh samples: in the loss use
# $k_2$, in the reward use $k_1$.**
#
# The two directions want different things (01). $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ is large
# where the policy says what the reference would not; it is called *mode-seeking*.
# $\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)$ is large where the policy no longer says what the
# reference did; it is called *mass-covering*.
#
# ## Older samples
#
# So far: the samples came from the policy itself. In training they are often a few updates old.
# Then the ratio ρ of page 04 stands in front, as ρ times $k$. One can hold ρ constant, or let
# autograd differentiate it too.
#
# In the explorer the samples may come from a policy half-way back. The orange arrow is your
# penalty's push, the green one points downhill on $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$.

# %%
task("kl.t1", kl_pull.kl_pull_explorer(),
     ("Make k1 in the loss push the policy away from the reference.",
      kl_pull.pushes_away),
     ("Older samples, ρ constant, a penalty in the loss: go exactly "
      "downhill, 0°.", kl_pull.home_with_constant),
     ("The same with ρ differentiated. Which penalties are right now?",
      kl_pull.home_with_full))

# %% [markdown]
# <details><summary>One way, and why the right answers swap</summary>
#
# 1. k1 in the loss, older policy, no ρ. It pushes every sample down alike, and the older policy
#    wrote them. So it pushes away from the older policy, and from the reference behind it.
# 2. k2, as on fresh samples. A constant ρ only turns the mean over old samples into the mean over
#    π.
# 3. k1 and k3 are right, and k2 is not. A differentiated ρ adds $k\,\nabla\log\pi$, so $k+k'$
#    counts: $\nabla(\rho k_3)=\rho\,(k_3+k_3')\,\nabla\log\pi=\rho\,\ell\,\nabla\log\pi$. Both sums
#    of the product rule are there, and a right *value* is enough.
# </details>
#
# **For an answer of one step there is a third way, on old samples too: ρ$k_3$ with ρ
# differentiated.** DeepSeek-V3.2 does that, and TRL's GRPO when β > 0.
#
# ## How large is β?
#
# GRPO's plain $k_3$ follows the other KL. Near the reference the two agree. And far away?
#
# Suppose a flawed reward model pays 1 for one kind of answer and 0 for the rest. The reference
# gives that answer once in 10,000 times: its chance begins at $p_0=10^{-4}$. We *want* it to stay
# rare. Where does its chance $p$ come to rest?
#
# **With $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$.** We want the most of
# $\sum_y\pi R-\beta\sum_y\pi\ell$.
#
# $$\begin{aligned}
# R(y)-\beta\,(\ell(y)+1)&=\text{the same number for every }y&&\text{else move chance from }y\text{ to a better one}\\
# \ell(y)&=R(y)/\beta+\text{const}&&\text{solve for }\ell\\
# \pi(y)&\propto\pi_\text{ref}(y)\,e^{R(y)/\beta}&&\ell=\log\pi-\log\pi_\text{ref}
# \end{aligned}$$
#
# A reward of 1 multiplies the odds by $e^{1/\beta}$. For β = 0.2 that is 148. (At the top of the
# page β was 0.5: the policy that this formula gives has 0.30 nats.) Solved for $R$ the same line
# says $R=\beta\,\ell+\text{const}$: that is what DPO trains on (15).

# %%
p0 = 1e-4

def rest(beta):
    """KL(pi || ref): the odds are multiplied by exp(1 / beta)."""
    odds = p0 / (1 - p0) * torch.exp(torch.as_tensor(1 / beta))
    return (odds / (1 + odds)).item()

print(f"β = 0.2, KL(π‖π_ref): at rest p = {rest(0.2):.4f}")

# %% [markdown]
# **With $k_3$ in the loss.** Two pushes act on that answer's logit $z$. We use
# $\partial\pi/\partial z=p(1-p)$, the slope of a softmax:
#
# $$\begin{aligned}
# \text{up:}&\quad\tfrac{\partial}{\partial z}\,p\cdot1=p\,(1-p)&&\text{the mean reward is }p\\
# \text{back:}&\quad\beta\,\tfrac{\partial}{\partial z}\mathrm{KL}(\pi_\text{ref}\,\|\,\pi)=\beta\,(p-p_0)&&\text{cross-entropy: what }\pi\text{ gives minus what it should}
# \end{aligned}$$

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.3", "The same β = 0.2, with k3 in the loss: where do reward "
        "and penalty balance?",
        ["about 1.5 % too", "about 5 %", "about 20 %", "about 80 %"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
def rest_k3(beta):
    """The p at which p (1 - p) = beta (p - p0)."""
    b = 1 - beta
    return (b + (b * b + 4 * beta * p0) ** 0.5) / 2

betas = [k / 100 for k in range(2, 101)]
reveal(
    "kl.3", "about 80 %",
    f"{rest_k3(0.2):.2f} against {rest(0.2):.4f}. Set the two pushes "
    "equal with p₀ near 0: p (1 − p) = β p, so p = 1 − β. The penalty "
    "keeps a share β for the reference and lets the rest go anywhere.",
    pictures.resting_points(betas, {
        "KL(π‖π_ref)": [rest(b) for b in betas],
        "k3 in the loss": [rest_k3(b) for b in betas]}),
    instead={
        "about 1.5 % too": "The push back differs: β(p − p₀) hardly acts "
        "while p is small.",
        "about 5 %": "At 5 % the push up is 0.05 · 0.95, the push back "
        "0.2 · 0.05: still far from balance.",
        "about 20 %": "At 20 % up is 0.16, back is 0.04. Solve "
        "p (1 − p) = 0.2 p.",
    })

# %% [markdown]
# In the explorer all pushes are divided by $p(1-p)$. The answer rests where a penalty's line meets
# the reward's.

# %%
task("kl.t2", kl_leash.kl_leash_explorer(),
     ("Start at 0.0001. Find the largest β at which KL(π‖π_ref) still "
      "lets the answer come to 90 %.", kl_leash.nine_in_ten),
     ("Now an answer that starts at one in a million, 1e-06. Hold it at "
      "one half with k3 in the loss.", kl_leash.half_with_k3))

# %% [markdown]
# <details><summary>One way, and what it shows</summary>
#
# 1. <!-- cited: 0.08 -->β = 0.08. Each step in log-odds costs
#    $\mathrm{KL}(\pi\,\|\,\pi_\text{ref})$ the same. A rarer answer has further to climb, so a
#    smaller β holds it.
# 2. β = 0.50, as from any rare start. The purple push does not know how rare the answer was: it is
#    flat at β until the answer is common.
# </details>
#
# GRPO also divides its advantages by the group's std, here $\sqrt{p(1-p)}$. The push up is then
# $\sqrt{p(1-p)}$, and the balance with plain $k_3$ moves up again:

# %%
def rest_grpo(beta):
    """The p at which sqrt(p (1 - p)) = beta p, for p0 near 0."""
    return 1 / (1 + beta**2)

for beta in (0.2, 0.04):
    print(f"β {beta}: KL(π‖π_ref) {rest(beta):.4f}, k3 in the loss "
          f"{rest_k3(beta):.2f}, and with GRPO's std {rest_grpo(beta):.3f}")

# %% [markdown]
# At β = 0.04, DeepSeekMath's value, nothing holds: every form lets the answer take over. There the
# true KL is even the looser one (1.00 against 0.96); the two cross near β = 0.09.
#
# **Choosing β.** A resting point says where a run would end, not when. In practice:
#
# * A checker decides right and wrong: start with β = 0, and log the KL all the same. TRL's GRPO
#   does so by default.
# * A learned reward model: keep a KL. Choose how many nats you allow and let β follow: raise it
#   while the KL is above, lower it below (Ziegler et al.,
#   [arXiv 1909.08593](https://arxiv.org/abs/1909.08593)).
# * Mind the unit. Their target is a *sum* over the answer; libraries often log a *mean* per token.
#
# **That is the core of the page.** Two short questions are left: what changes when an answer has
# many tokens, and what if one sets a limit instead of a price.
#
# ## Many tokens
#
# Take the smallest case, answers of two tokens. The first is word 0, word 1 or stop; after a word
# comes one more. The reference gives every choice ⅓. The policy:

# %%
ref2 = SequencePolicy(2, 2, torch.zeros(3, 3))
pi2 = SequencePolicy(2, 2, torch.tensor(
    [[-0.2, 0.2, 0.0], [2.0, -1.0, 0.0], [0.0, 0.3, 0.0]]))
for state, p in zip(("first token", "after word 0", "after word 1"),
                    pi2.logits.softmax(1).tolist()):
    print(f"{state:13s}", *(f"{x:.2f}" for x in p))

# %% jupyter={"source_hidden": true}
# your guess
predict("kl.4", "Word 0 is rarer than under the reference, 0.27 against "
        "0.33. Which way does k1 in the reward move it, on average?",
        ["up, towards 0.33", "down, further from 0.33", "not at all"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ell = pi2.logprobs() - ref2.logprobs().detach()              # (answers, 2)
chance, fixed = pi2.probabilities(), pi2.probabilities().detach()
penalties = {
    "KL of the answer": chance * ell.sum(1),
    "k1 in the reward":
        fixed * ell.sum(1).detach() * pi2.logprobs().sum(1),
    "k2 per token, in the loss": fixed * (k2(ell) * pi2.mask).sum(1)}
pushes = {name: -torch.autograd.grad(x.sum(), pi2.logits,
                                     retain_graph=True)[0][0]
          for name, x in penalties.items()}      # on the first token
first = pi2.logits[0].softmax(0).tolist()
exact, _, own = (v.tolist() for v in pushes.values())
reveal("kl.4", "down, further from 0.33",
       f"Push on word 0: {exact[0]:+.4f}. Token by token, in the loss, it "
       f"is {own[0]:+.4f}: the wrong way. After word 0 the policy is far "
       "from the reference, and the KL of an answer charges the first word "
       "for what it leads to.",
       pictures.first_word(first, {n: v.tolist()
                                   for n, v in pushes.items()}),
       instead={
           "up, towards 0.33": "Its own log-ratio asks for that. The KL of "
           "an answer also counts what follows word 0.",
           "not at all": "0.27 against 0.33 is a gap, and what follows "
           "word 0 is a larger one."})

# %% [markdown]
# Write $\ell_t$ for the log-ratio of token $t$. For a whole answer:
#
# $$\begin{aligned}
# \nabla\,\mathrm{KL}&=\mathbb E\Big[\textstyle\sum_t\ell_t\cdot\sum_s\nabla\log\pi(y_s)\Big]&&\text{as before}\\
# &=\mathbb E\Big[\textstyle\sum_s\nabla\log\pi(y_s)\sum_{t\ge s}\ell_t\Big]&&\text{a word cannot change what came before it (02)}\\
# &\approx\mathbb E\Big[\textstyle\sum_s\ell_s\,\nabla\log\pi(y_s)\Big]&&\textbf{a choice: each token is charged only its own }\ell_s
# \end{aligned}$$
#
# The second line is $k_1$ in the reward, and it is exact. The third is what $k_2$ and ρ$k_3$ do per
# token; plain $k_3$ has $1-e^{-\ell_s}$ there, which is near $\ell_s$ near the reference. It is
# less noisy, and near the reference it costs little (statements page). On old samples a ρ per token
# also leaves the words before it the old policy's.
#
# ## A limit instead of a price
#
# β puts a price on each nat. TRPO ([arXiv 1502.05477](https://arxiv.org/abs/1502.05477)) sets a
# limit δ for one update, measured from the *old* policy that wrote the batch:
#
# $$\max_\pi\ \mathbb E_\text{old}[\rho A]\quad\text{subject to}\quad\mathrm{KL}(\pi_\text{old}\,\|\,\pi)\le\delta$$
#
# Its solver needs second-order products and a line search, and TRL and verl ship none. They ship
# **PPO**, whose loss measures no KL at all: page 06.
#
# <details><summary>One level deeper: the natural gradient</summary>
#
# For a small step Δ of the logits the gain is $g^\top\!\Delta$, $g$ the policy gradient. The KL is
# $\tfrac12\Delta^\top F\Delta$, with the Fisher matrix $F$ as its second derivative. Maximise
# $g^\top\!\Delta-\lambda(\tfrac12\Delta^\top F\Delta-\delta)$: the step is
# $\Delta=F^{-1}g/\lambda$. For a softmax $g_y=\pi(y)A(y)$, so a rare answer gets a small push,
# however good it is. $F^{-1}$ takes the factor π out, and the natural step is $A$ itself. Run and
# drawn on the [statements page](statements/05_kl.ipynb).
# </details>
#
# ## In code

# %%
def kl_penalty(logp, ref_logp, old_logp, mask):
    """The mean over tokens of rho * k3, rho differentiated."""
    ell = logp - ref_logp.detach()
    rho = (logp - old_logp.detach()).exp()        # keep its gradient
    return (rho * (torch.expm1(-ell) + ell))[mask].mean()

# as on the first step after sampling: every rho is 1
fresh = batch.replace(old_logprobs=batch.logprobs.detach())
mine = kl_penalty(fresh.logprobs, fresh.ref_logprobs,
                  fresh.old_logprobs, mask)
theirs = k3_term(1.0, corrected=True)(fresh)[mask].mean()
assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)
slope = torch.autograd.grad(mine, batch.logprobs, retain_graph=True)[0]
assert torch.allclose(slope[mask] * mask.sum(), ell16[mask])  # k2's
print(f"penalty {mine.item():.3f}: k3's value, k2's slope")

# %% [markdown]
# <!-- cited: 1.16 -->
# `ref_logp` comes from a second, frozen model: one more forward pass, the same temperature, no
# dropout. Log the plain mean of $k_1$ or $k_3$ on fresh samples.
#
# | library | where | form | KL by default |
# |---|---|---|---|
# | TRL GRPO 1.16 | loss | ρ$k_3$ (`use_bias_correction_kl`, on by default) | `beta=0.0`: off, no reference loaded |
# | TRL RLOO 1.16 | reward | $k_1$, summed over the answer | `beta=0.05` |
# | verl | loss | `low_var_kl`: $k_3$, clamped to 10 | `use_kl_loss=False` |
# | verl | reward | `kl`: $k_1$ | `use_kl_in_reward=False` |
#
# <details><summary>One level deeper: conventions, zero support, stale values</summary>
#
# * GRPO's paper writes $r=\pi_\text{ref}/\pi$ and $r-\log r-1$; code writes $d=-\ell$ and
#   $e^d-1-d$. All three are $k_3$. Clamping $d$ or $k_3$, at 5 or 10, is a convention against
#   overflow; where it acts the slope is 0.
# * With the full distribution over the vocabulary at each place the KL of one step is exact: no
#   sampling noise, and its slope is right. It needs all V probabilities of both models at every
#   token.
# * What π never draws no estimate can see. π = (0.7, 0.3, 0) against (0.5, 0.3, 0.2): the mean of
#   $k_3$ is 0.2 too small, silently (statements page).
# * On older samples without ρ even $k_3$'s mean is wrong.
# * A z-score after a KL in the reward rescales β (09).
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | KL | |
# |---|---|
# | sentence | a KL estimate has a value and a push, and they are separate: k1 and k3 have the right value, k2 in the loss and k1 in the reward the right push |
# | formula | $\nabla\mathrm{KL}(\pi\Vert\pi_\text{ref})=\mathbb E_\pi[\ell\,\nabla\log\pi]$; a loss $k$ gives $\mathbb E_\pi[k'(\ell)\nabla\log\pi]$ |
# | picture | three bars of k3 beside those of both KLs |
# | numbers | k1 in the loss 2.16 nats, no penalty 2.16, k1 in the reward 0.30 · β = 0.2, reward 1: 1.5 % with KL(π‖π_ref), 80 % with k3 in the loss |
# | trust region | KL(π_old‖π) ≤ δ per update: another policy, another direction, a limit and not a price |
# | in TRL and DeepSeek-V3.2 | ρ k3, the ratio differentiated: the right value and push for a one-step answer, on old samples too |
# | since 04 | a reference model; β |

# %%
score("kl.1", "kl.2", "kl.3", "kl.4")

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
# Write a test that takes such a function, that this one fails and the right one passes.
#
# <details><summary>hint</summary>What must a penalty be on the first step of a run, where policy and reference are one model?</details>

# %% tags=["exercise"]
def my_test(kl_penalty):
    return ...

check.silent_bug_kl(my_test)

# %% [markdown]
# ## In the interview
#
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
# On fresh samples its value is KL(π‖π_ref), its gradient that of KL(π_ref‖π). As a penalty it
# works: the same minimum, and near the reference the same direction. Far away it is another
# penalty: with a reward of 1 and β = 0.2 an answer that starts at one in 10,000 comes to rest at 80
# % instead of 1.5 %; with GRPO's std at 96 %. Fixes: k2 in the loss, k1 in the reward, or ρ times
# k3 with ρ differentiated.
# </details>
# <details><summary><b>KL in the reward or in the loss?</b></summary>
#
# In the reward it is exact for the whole answer; in the loss each token pays only for itself. In
# the reward it also passes through baselines and z-scores, and it comes with the policy gradient's
# noise.
# </details>
# <details><summary><b>Your logged KL is negative. Noise or bug?</b></summary>
#
# A batch of k1 may be below 0 for a step; staying there means the samples are not from the policy
# that scores them. Look for another temperature, another engine, stale samples without ρ, dropout
# in one of the two models.
# </details>
# <details><summary><b>What does TRPO do, step by step?</b></summary>
#
# It climbs E_old[ρA] under KL(π_old‖π) ≤ δ. Natural gradient by conjugate gradient, a step by the
# quadratic model, then halved until the measured KL holds and E_old[ρA] has grown. Each step costs
# second-order products and several measurements; PPO's clip needs neither.
# </details>
# <details><summary><b>With verifiable rewards, do you keep the KL?</b></summary>
#
# Often not: it costs a frozen model and a forward pass, and at β = 0.04 it hardly limits where the
# policy ends. It slows drift and protects other abilities; with a learned reward model one keeps
# it, since the reward's largest errors are what a free policy finds.
# </details>
#
# **True, false, or it depends?** Eleven statements about KL, with the cells that decide them:
# [statements page](statements/05_kl.ipynb).
#
# **Next: 06.** PPO: no solver, no measured KL, and a `min`.
