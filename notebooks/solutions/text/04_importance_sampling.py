# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Importance sampling: solutions
#
# Every exercise of page 04, solved and run. Try first; a check that names your mistake teaches more
# than a listing.

# %%
import math
import torch
from rlnb import check
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 Nine ones and a nine
#
# $18^2/(9\cdot1+81)=324/90=3.6$: one large weight costs almost two thirds of the samples. Multiplying all
# weights by 100 multiplies both sides of the fraction by 10,000: still 3.6.

# %%
w = torch.tensor([1.0] * 9 + [9.0])
for scale in (1, 100):
    print(f"weights times {scale:3d}: "
          f"ESS {(scale * w).sum()**2 / (scale * w).square().sum():.4f}")
assert math.isclose(w.sum()**2 / w.square().sum(), 3.6)

# %% [markdown]
# ## 2 The weighted mean

# %% tags=["solution"]
def my_importance_estimate(values, log_p, log_q):
    return ((log_p - log_q).exp() * values).mean()

check.importance_estimate(my_importance_estimate)

# %% [markdown]
# Subtract first. $e^{-800}$ is 0 in float64, and $0/0$ is nan; $e^{-800-(-801)}$ is 2.718. Dividing by the sum
# of the weights instead of $n$ passes as well, under its own name: it is biased by order $1/n$, and exact
# for a constant $f$, which the ordinary estimate is not.

# %%
def self_normalised(values, log_p, log_q):
    return ((log_p - log_q).softmax(0) * values).sum()

check.importance_estimate(self_normalised)

# %% [markdown]
# ## 3 Effective sample size
#
# A common factor cancels, so let it be one over the sum: that is what `softmax` does, without overflow.

# %% tags=["solution"]
def my_effective_sample_size(log_weights):
    share = log_weights.softmax(0)                           # (n,)
    return 1 / share.square().sum()

check.effective_sample_size(my_effective_sample_size)

# %% [markdown]
# ## 4 The variance of a product
#
# $\mathbb{E}\big[(\prod_t\rho_t)^2\big]=\prod_t\mathbb{E}[\rho_t^2]=\prod_t(1+\chi_t^2)$ by independence, and
# $\mathbb{E}[\prod_t\rho_t]=\prod_t1=1$. The variance is the first minus the square of the second.
#
# $\mathrm{ESS}/n=1/(1+\mathrm{Var})=1.01^{-T}$ in a large batch, which is three quarters at $T=\ln\tfrac43/\ln1.01$.

# %%
T = math.log(4 / 3) / math.log(1.01)
print(f"three quarters of the samples are left at T = {T:.4f}")
print(f"at 28 tokens {1.01**-28:.4f}, at 29 {1.01**-29:.4f}")
assert 1.01**-28 > 0.75 > 1.01**-29
