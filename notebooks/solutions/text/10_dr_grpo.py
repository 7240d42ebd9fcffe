# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 · Dr. GRPO: solutions
#
# The exercises of [10](../10_dr_grpo.ipynb), solved and run. Try first: reading a solution feels
# like knowing it.

# %%
import torch
from rlnb import check
from rlnb.classroom.explorers.token_weights import compute
_ = torch.set_default_dtype(torch.float64), torch.set_num_threads(1)

# %% [markdown]
# ## 10.1 The drift
#
# (a) The length is geometric, $\mathbb E[T]=1/q$, so $\mathbb E[1-qT]=0$. (It has to be: $1-qT$ is
# a score, and scores average to 0.) And $\mathbb E[\frac1T(1-qT)]=\mathbb E[1/T]-q$. By Jensen,
# $1/T$ being convex, $\mathbb E[1/T]\gt1/\mathbb E[T]=q$. In closed form
# $\mathbb E[1/T]=-\frac{q\ln q}{1-q}$.
#
# (b) Put $\mu=1/q$, $\sum_jT_j=n\mu(1+\delta)$ with $\delta=\sum_j(T_j-\mu)/(n\mu)$. The weight
# $c=1/\sum_jT_j$, scaled by $n\mu$ so that an average token weighs 1, is
# $1/(1+\delta)\approx1-\delta$. Of $\delta$ only the own term $(T-\mu)/(n\mu)$ is correlated with
# the own $T$:
#
# $$\mathbb E[(1-\delta)(1-qT)]=\frac{q}{n\mu}\,\mathrm{var}(T)=\frac{q^2}{n}\cdot\frac{1-q}{q^2}=\frac{1-q}{n}$$
#
# The check sums over all own lengths, first with the own divisor, then with $n-1$ other answers at
# their mean length.

# %%
for q in (0.05, 0.1, 0.3):
    T = torch.arange(1, 2001.0)
    p = q * (1 - q) ** (T - 1)
    own = float((p * (1 - q * T) / T).sum())
    closed = float(-q * torch.tensor(q).log() / (1 - q) - q)
    print(f"q = {q:.2f}: E[1/T] - q = {own:.6f}, closed form {closed:.6f}")
    assert abs(own - closed) < 1e-9 and own > 0
    for n in (8, 64, 512):
        c = n / q / (T + (n - 1) / q)                  # the others fixed
        value = float((p * (1 - q * T) * c).sum())
        print(f"   n = {n:3d}: drift {value:.5f}, "
              f"(1 - q)/n = {(1 - q) / n:.5f}")
        assert abs(n * value / (1 - q) - 1) < 2 / n

# %% [markdown]
# ## 10.2 What is in the denominator
#
# | change | sequence mean | token mean | prompt mean | constant | sums |
# |---|---|---|---|---|---|
# | (i) answer 2 longer | no | yes | yes | no | no |
# | (ii) padded wider | no | no | no | no (verl's default: yes) | no |
# | (iii) a third prompt | yes, $1/B$ | yes | yes, $1/P$ | yes, $1/B$ | mean of sums: yes; plain sum: no |
# | (iv) two halves | no | no | no | no | no |
#
# (iv) holds because denominators are the step's; the local token mean is the exception. It changes
# in (i) too when the two answers share a micro-batch. (iii) is harmless, everybody's weight changes
# alike.

# %%
before = compute(4, 12, 3, micro=2)["weights"]
after = compute(4, 24, 3, micro=2)["weights"]
changed = {n for n in before if abs(before[n][0] - after[n][0]) > 1e-12}
print("(i)  ", sorted(changed))
assert changed == {"token_mean", "local_token_mean", "prompt_mean"}
wide = compute(4, 12, 3, divisor="width")["weights"]
wider = compute(4, 24, 3, divisor="width")["weights"]
print("(ii)  constant rule, by the width",
      wide["constant_length"][0].round(5), "->",
      wider["constant_length"][0].round(5))
halves, whole = (compute(4, 12, 3, micro=m)["weights"] for m in (2, 4))
moved = {n for n in halves if abs(halves[n] - whole[n]).max() > 1e-12}
print("(iv) ", sorted(moved))
assert moved == {"local_token_mean"}

# %% [markdown]
# ## 10.3 The token mean

# %% tags=["solution"]
def token_mean(per_token, mask):
    return torch.where(mask, per_token, 0).sum() / mask.sum()


check.token_mean(token_mean)

# %% [markdown]
# ## 10.4 The constant

# %% tags=["solution"]
def constant_length(per_token, mask, max_length):
    total = torch.where(mask, per_token, 0).sum()
    return total / (len(mask) * max_length)


check.constant_length(constant_length)

# %% [markdown]
# `mask.shape[1]` in place of `max_length` would pass a test on one batch: it *is* a constant there.
#
# ## 10.5 The prompt mean

# %% tags=["solution"]
def prompt_mean(per_token, mask, num_generations):
    clean = torch.where(mask, per_token, 0)
    blocks = (-1, num_generations, mask.shape[1])
    sums = clean.view(blocks).sum((1, 2))              # (P,)
    tokens = mask.view(blocks).sum((1, 2)).clamp(min=1)
    return (sums / tokens).mean()


check.prompt_mean(prompt_mean)

# %% [markdown]
# ## 10.6 A mean of means
#
# Each micro-batch divides by *its* number of tokens; then they are averaged. The weight of a token
# is $1/(k\,N_\text{micro})$, so it depends on its neighbours, and with `rows=1` the token mean has
# turned into the sequence mean. Equal lengths hide it, and so does a test with a single
# micro-batch. What must not matter is `rows`.

# %% tags=["solution"]
def my_test(step_loss):
    per_token = torch.tensor([[1.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
    mask = torch.tensor([[1, 0, 0], [1, 1, 1]]).bool()
    whole = step_loss(per_token, mask, 2)
    assert torch.isclose(whole, torch.tensor(7 / 4)), "4 tokens, sum 7"
    assert torch.isclose(step_loss(per_token, mask, 1), whole), "rows"


check.silent_bug_dr_grpo(my_test)

# %% [markdown]
# The mend: count the tokens of the whole step before the first backward pass, and divide every
# micro-batch's *sum* by that.
#
# ## 10.7 The name
#
# `bnpo` is a token mean inside a micro-batch, averaged over micro-batches. Here a micro-batch is
# one answer, so it is the mean inside each answer, averaged over 64 answers: $1/T_i$. The std is
# divided by, the clip is symmetric, the KL coefficient is 0.04.

# %% tags=["solution"]
check.name_this_dr_grpo("GRPO")

# %%
from rlnb import from_trl
from rlnb.objective import name_of
from rlnb.toys import running_batch

words = dict(beta=0.04, use_bias_correction_kl=False)
theirs = from_trl(loss_type="bnpo", **words).objective
published = from_trl(loss_type="grpo", **words).objective
step = theirs.prepare(running_batch())
for rows in (1, 4):
    parts = [theirs.loss(step.rows(range(i, i + rows)))
             for i in range(0, 8, rows)]
    value = sum(parts) / len(parts)
    print(f"{rows} per device {value:.6f}, GRPO {published.loss(step):.6f}")
    same = abs(value - published.loss(step)) < 1e-12
    assert same == (rows == 1)
assert name_of(published) == "grpo"

# %% [markdown]
# With four rows per device the same file is another method.
