# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The break-it lab: can your tests see the bugs?
#
# **After this page** you can write a test for a loss that fails when the loss is wrong.
#
# 60 minutes, or ten at a time · after 08 (GRPO), some functions after 07, 12, 13, 15, 17
#
# Nineteen small functions of a training loop. Each is right here, and each has been written wrongly
# by somebody: 85 bugs, from the field's courses, books and libraries and from learners' habits.
# Such code runs, and often it trains. Write tests until no bug survives.

# %% tags=["setup"]
import torch
from rlnb.classroom.breaking.lab import benches, break_it, code_of
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% [markdown]
# ## How it works
#
# A test is a function with one parameter. The parameter's name says which function it tests, as in
# pytest. It passes when it returns, and it kills a bug when it raises there.

# %%
def takes_no_side(clipped_surrogate):
    r, A = torch.tensor([1.0, 1.1]), torch.tensor([1.0, -1.0])
    assert torch.allclose(clipped_surrogate(r, A, 0.2), r * A)

break_it(takes_no_side)

# %% [markdown]
# It looks at ratios inside the band, where all five bugs are right. Two lines more, and look at the
# corners of page 06:

# %%
def corners(clipped_surrogate):
    r = torch.tensor([1.5, 0.5, 1.5, 0.5], requires_grad=True)
    A = torch.tensor([1.0, 1.0, -1.0, -1.0])
    clipped_surrogate(r, A, 0.2).sum().backward()
    assert r.grad.tolist() == [0, 1, -1, 0]        # two silent, two live

break_it(takes_no_side, corners)

# %% [markdown]
# One still lives. It has the right slope everywhere in these four corners. What differs is where
# the band ends, and a value says that. Which one?
#
# <details><summary>Which test kills it</summary>
#
# A value below the band: at A = −1 and r = 0.5 the term is −0.8, and −1/1.2 with the band that is
# even in the log.
# </details>
#
# ## The functions
#
# What you may rely on is in the docstring. `code_of("gae")` prints a function, `code_of("gae", 2)`
# the function with its second bug, when you would rather look than guess.

# %%
for name, bench in benches().items():
    said = bench.function.__doc__.split(": ")[0].split(". ")[0]
    print(f"{name:18} {len(bench.bugs)} bugs   {said[:44]}")

# %%
print(code_of("group_advantages"))

# %% [markdown]
# ## Yours
#
# Five habits that kill most of them: a hand-computed number; the gradient, not only the value; two
# groups that differ; a ragged mask with NaN under it; the same step cut into pieces.
#
# <details><summary>hint: the smallest batch that can show a bug in an average</summary>Two answers of different lengths, padded to more than either, with different values.</details>
# <details><summary>hint: when nothing in float64 tells two functions apart</summary>float32 does: what is left of exp(d) − 1 − d at d = 1e-4?</details>

# %% tags=["exercise"]
def my_test(k3):
    return ...

break_it(my_test)

# %% [markdown]
# A set of tests that kills all 85, and nothing else: [solved](break_it_solved.ipynb).
#
# ## Where they are from
#
# The sentence in brackets says where a bug was seen: courses and books as they were read in 2025
# and 2026, threads by their number. Several were mended since, often after a reader's question.
# They are here because each of them passed somebody's eye. *A habit of learners* is the slip that
# the formula invites; the checks of the exercises know most of them.
