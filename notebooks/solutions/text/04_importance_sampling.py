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
# The exercises of [04](../04_importance_sampling.ipynb), solved and run. Try first; a check that
# names your mistake teaches more than a listing.

# %%
import math
import torch
from rlnb import check
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## 1 Nine ones and a nine
#
# $18^2/(9\cdot1+81)=324/90=3.6$: one large weight costs almost two thirds of the samples.
# Multiplying all weights by 100 multiplies both sides of the fraction by 10,000: still 3.6.

# %%
w = torch.tensor([1.0] * 9 + [9.0])
for scale in (1, 100):
    worth = (scale * w).sum()**2 / (scale * w).square().sum()
    print(f"weights times {scale:3d}: ESS {worth:.4f}")
    assert math.isclose(worth, 3.6)

# %% [markdown]
# ## 2 The weighted estimate

# %% tags=["solution"]
def my_importance_estimate(values, log_p, log_q):
    return ((log_p - log_q).exp() * values).mean()

check.importance_estimate(my_importance_estimate)

# %% [markdown]
# Subtract first. $e^{-800}$ is 0 in float64, and $0/0$ is nan; $e^{-800-(-801)}$ is a number.
# Dividing by the sum of the weights instead of $n$ passes as well, under its own name: it is biased
# by order $1/n$, and exact for a constant $f$, which the ordinary estimate is not.

# %%
def self_normalised(values, log_p, log_q):
    return ((log_p - log_q).softmax(0) * values).sum()

check.importance_estimate(self_normalised)

# %%
log_p, log_q = torch.tensor(-800.0), torch.tensor(-801.0)
print(f"exp first {(log_p.exp() / log_q.exp()).item()}, "
      f"subtract first {(log_p - log_q).exp().item():.4f}")
assert (log_p.exp() / log_q.exp()).isnan()

# %% [markdown]
# ## 3 Effective sample size
#
# A common factor cancels, so let it be one over the sum: that is what `softmax` does, without
# overflow.

# %% tags=["solution"]
def my_effective_sample_size(log_weights):
    share = log_weights.softmax(0)                           # (n,)
    return 1 / share.square().sum()

check.effective_sample_size(my_effective_sample_size)

# %% [markdown]
# ## 4 The variance of a product
#
# $$\begin{aligned}
# \mathbb E\big[\textstyle(\prod_t\rho_t)^2\big]&=\textstyle\prod_t\mathbb E[\rho_t^2]=\prod_t(1+\chi_t^2)&&\text{independent tokens}\\
# \mathbb E\big[\textstyle\prod_t\rho_t\big]&=\textstyle\prod_t1=1&&\text{each ratio has mean 1}\\
# \mathrm{Var}&=\textstyle\prod_t(1+\chi_t^2)-1&&\text{mean of the square minus square of the mean}
# \end{aligned}$$
#
# So $n$ answers are worth $n/(1+\mathrm{Var})=n/\prod_t(1+\chi_t^2)$. With $\chi^2=0.01$ at every
# token and three quarters surviving: $1.01^{-T}=\tfrac34$, so $T=\ln\tfrac43/\ln1.01$. With
# $\chi^2=0.04$ *half* is gone before 18 tokens:

# %%
for chi2, share in ((0.01, 3 / 4), (0.04, 1 / 2)):
    T = -math.log(share) / math.log(1 + chi2)
    n = math.floor(T)
    print(f"chi2 {chi2}: {share} of the samples at T = {T:.1f}; "
          f"at {n} tokens {(1 + chi2)**-n:.4f}, "
          f"at {n + 1} {(1 + chi2)**-(n + 1):.4f}")
    assert (1 + chi2)**-n > share > (1 + chi2)**-(n + 1)

# %% [markdown]
# Counted, for four tokens that differ, with even odds for up and down: all sixteen answers.

# %%
steps = torch.tensor([0.2, 0.1, 0.2, 0.1])
signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * 4)
products = (1 + signs * steps).prod(1)                       # (16,)
print("ratios up", (1 + steps).tolist(), "down", (1 - steps).tolist())
formula = (1 + steps.square()).prod() - 1
print(f"mean {products.mean():.4f}, variance "
      f"{products.var(correction=0):.6f}, formula {formula:.6f}")
assert torch.isclose(products.var(correction=0), formula)
