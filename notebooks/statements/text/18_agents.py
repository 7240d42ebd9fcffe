# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 18 · statements: agents
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements: three ways in which a world misleads its policy, each made, measured and
# mended; what long trajectories cost; the words of the libraries. The lesson is
# [18 · agents](../18_agents.ipynb).

# %% tags=["setup"]
from itertools import product
from math import comb
import torch
from rlnb.classroom.lesson import settle, statement
from rlnb.objective import ZOO, Batch
from rlnb.objective.turns import observation_mask, turn_advantages
from rlnb.toys import Bandit, true_gradient
from rlnb.toys.turns import enough_trajectories
from rlnb.training import data_folder
from rlnb.training.models.loading import load
from rlnb.training.studies.agents import records
from rlnb.training.tasks.desk import CHAIN, Desk, play
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

def last(arm, name, when="evals"):
    """The last held-out number of each recorded seed."""
    runs = [run[when] for run in records()[arm].values()]
    return [(r[-1] if when == "evals" else r)[name] for r in runs]

# %% [markdown]
# ## Three statements

# %% [markdown]
# ### E06 · one reward for many steps
#
# One terminal reward over many steps has a high variance, and credit per step lowers it. The task:
# independent turns, each right with probability ½, the reward is the number of right ones. The push
# on the first turn, exactly:

# %%
statement("E06")

# %% tags=["claim:E06"]
def push_moments(T, own_turn_only):
    """Mean and variance of credit (a - 1/2), the other turns enumerated."""
    mean = square = 0.0
    for a in (0, 1):
        for others in range(T):                   # right ones among T - 1
            p = 0.5 * comb(T - 1, others) / 2 ** (T - 1)
            credit = a - 0.5
            if not own_turn_only:
                credit += others - (T - 1) / 2
            mean += p * credit * (a - 0.5)
            square += p * (credit * (a - 0.5)) ** 2
    return mean, square - mean ** 2

for T in (2, 8, 32, 128):
    (m, v), (m1, v1) = push_moments(T, False), push_moments(T, True)
    print(f"{T:3d} steps: mean {m:.2f} and {m1:.2f}, variance by the final "
          f"reward {v:.4f}, by the step's own {abs(v1):.1f}")
    assert abs(m - 0.25) < 1e-9 and abs(m1 - 0.25) < 1e-9
    assert abs(v - (T - 1) / 16) < 1e-9 and abs(v1) < 1e-9

# %%
settle("E06", "true")

# %% [markdown]
# In tasks that add up. Where *all* turns must be right, the final reward is nearly always 0: its
# variance even falls, and the signal falls faster. Trajectories needed for the sign of the push,
# and with a reward for each turn:

# %%
for T in (2, 4, 8, 16):
    P = 0.5 ** T                             # all right
    mean, var = P / 2, P * (1 - P) / 4 - P * P / 4
    n = enough_trajectories(mean, var)
    print(f"{T:2d} turns: variance {var:.6f}, trajectories {n:9,.0f}; "
          f"additive {4 * (T - 1)}")
    assert abs(n - 4 * (2 ** T - 2)) < 1e-6

# %% [markdown]
# ### E07 · masked, and data
#
# Mask observations; and what a tool returns is data, not an instruction. The first half is
# arithmetic. The second has to be made true.

# %%
statement("E07")

# %% tags=["claim:E07"]
role = torch.tensor([[1, 2, 2, 3, 3, 2, 0]]).repeat(2, 1)
mask = observation_mask(role, torch.tensor([1, 1]))
logp = torch.full((2, 6), -1.0)
logp[:, 2] = torch.nan                       # under the mask
logp.requires_grad_()
step = Batch(logp, mask, torch.tensor([1.0, 0.0]), 2,
             max_completion_length=6)
ZOO["dr_grpo"](step).loss.backward()
print("gradient on a row", [round(x, 4) for x in logp.grad[0].tolist()])
assert (logp.grad[~mask] == 0).all() and (logp.grad[mask] != 0).all()

clean, noted = (last("masked", "pass@1", w) for w in ("evals", "noted"))
print("trained with the mask:", clean, "and beside a note", noted)
print("stopped at the note  :", last("masked", "stopped", "noted"))
print("RL with notes        :", last("notes", "pass@1", "noted"))
print("shown, then RL without:", last("shown, 400", "pass@1", "noted"))
print("shown, then RL with  :", last("both, 400", "pass@1", "noted"))
assert min(clean) > 0.5 and max(noted) < 0.05
assert min(last("masked", "stopped", "noted")) > 0.8
assert max(last("notes", "pass@1", "noted")) < 0.1
assert max(last("notes, 400", "pass@1", "noted")) < 0.1
assert min(last("both, 400", "pass@1", "noted")) > 0.5

# %%
settle("E07", "true")

# %% [markdown]
# The mask removes the tool's gradient. It does not stop the model from continuing
# what it reads.

# %% [markdown] tags=["cited:E05"]
# ### E05 · environments, not algorithms
#
# "Environments, not algorithms, are the bottleneck." An opinion, which no cell decides. A report
# that acts on it, DeepSeek-V3.2 (arXiv 2512.02556), synthesises tasks and environments by the
# thousand for its agents.

# %% [markdown]
# ## An instruction in the tool's output
#
# **Made.** Behind every result the desk writes `so` and a digit. **Measured** above: the policy
# stops there. Rewards alone do not mend it: notes in half of the training trajectories, and it
# still stops, for it hardly ever tried anything else. Examples that ignore notes, and then rewards
# with notes, mend it. **Mended** more surely in the harness, which knows what a calculator may say:
# one digit, or `wait`.

# %%
def checked(reply):
    return reply if reply in ("wait", "?") else reply[:1]

desk, noted_desk = Desk(), Desk(note="so3")
for call in ("4+3=", ",7*2="):
    print("clean", desk.reply(call), "| noted", reply := noted_desk.reply(
        call), "| checked", checked(reply))

# %% [markdown]
# What is checked is what the clean desk would have said, so pass@1 is that of the clean desk. A
# wrong digit would still come through: the form can be checked, the truth cannot.
#
# There is a second door. A grader that reads the whole text takes the desk's word for the policy's:

# %%
problem = CHAIN.parse("4+3*2=?")
turns = play(Desk(note="so4"), ["4+3=", ",7*2="])   # no answer of its own
for name, who in (("whole text", ("policy", "desk")),
                  ("own tokens", ("policy",))):
    text = "".join(t for author, t in turns if author in who)
    print(f"{name}: {text:20s} reward {CHAIN.verify(problem, text)}")

# %% [markdown]
# Read the policy's tokens only, and know them by the mask, not by parsing tags: whoever writes the
# tool's output can write tags as well.
#
# ## A reset that leaks
#
# **Made.** The desk's memory still holds the answer, because whoever made the task has calculated
# it there. **Measured**, three seeds; `x=` is the key that shows the memory. **Mended**: `reset`
# empties it. The coin is the control: a reward that knows nothing.

# %%
for arm in ("leak", "masked", "coin"):
    runs = records()[arm].values()
    train = [sum(run["reward"][-10:]) / 10 for run in runs]
    print(f"{arm:7s}", *(f"{title} " + " ".join(f"{x:.2f}" for x in numbers)
          for title, numbers in (("training", train),
                                 ("| cleared desk", last(arm, "pass@1")),
                                 ("| asks memory", last(arm, "recalls")))))

# %% [markdown]
# The coin's runs drift as well, and end below the start: twenty steps of noise are not nothing.
# That a leak inside the group shows in the reward by place is computed in the lesson.
#
# ## A test that can be passed without solving
#
# A coding agent is paid for the public tests. It can solve the task (passes them six times in ten,
# the hidden ones five times), write the expected outputs down (public always, hidden never), or
# give up. **Made** and **measured** by exact gradient ascent from a policy that cheats one time in
# twenty. **Mended**: pay for hidden tests; or audit, and take the reward back twice over.

# %%
ways = ("solve", "write down", "give up")
public, hidden = (torch.tensor(x) for x in ([0.6, 1.0, 0], [0.5, 0, 0]))

def trained(reward, steps=300, rate=0.5):
    policy = Bandit(torch.tensor([0.55, 0.05, 0.40]).log())
    for _ in range(steps):
        push = true_gradient(policy, reward)
        with torch.no_grad():
            policy.logits += rate * push
    return policy.probabilities().detach()

cheat = torch.tensor([0.0, 1.0, 0.0])
rare, often = (public - share * 2 * cheat for share in (0.10, 0.25))
for name, reward, steps in (
        ("public tests", public, 300), ("hidden tests", hidden, 300),
        ("audit 1 in 10", rare, 300), ("audit 1 in 10", rare, 2000),
        ("audit 1 in 4", often, 2000)):
    pi = trained(reward, steps)
    said = ", ".join(f"{w} {p:.2f}" for w, p in zip(ways, pi, strict=True))
    print(f"{name:13s} {steps:4d} steps: {said}; "
          f"passes the hidden {pi @ hidden:.2f}")

# %% [markdown]
# Audited one time in ten, cheating still earns 0.80, more than the 0.60 of honest work. For a long
# time nothing shows; then it wins. A penalty must make the shortcut worth less than solving, not
# only less than before.
#
# **Paid for calling.** The same for a turn reward that pays 0.10 for every call, beside 1 for the
# right answer. Three habits: one call, twelve calls, none.

# %%
final = torch.tensor([0.9, 0.5, 0.2])
calls = torch.tensor([1.0, 12.0, 0.0])
for bonus in (0.0, 0.10):
    pi = trained(final + bonus * calls)
    print(f"bonus {bonus:.2f}: {pi @ calls:4.1f} calls on average, "
          f"right {pi @ final:.2f}")

# %% [markdown]
# ## Credit by turn, with a group
#
# Return from the turn on, minus its mean over the siblings that have the turn. Like the mean of
# GRPO it contains one's own reward, and like there it only shortens the gradient, by $(G-1)/G$. All
# groups of two trajectories with two turns:

# %%
turn = torch.tensor([[0, 1], [0, 1]])
total, kept = torch.zeros(2), torch.zeros(2)
for right in product((0.0, 1.0), repeat=4):
    a = torch.tensor(right).view(2, 2)
    A = turn_advantages(a, turn, 2)
    total += (A * (a - 0.5)).mean(0) / 16
    later = a.flip(1).cumsum(1).flip(1)
    kept += (later * (a - 0.5)).mean(0) / 16
print("with the mean   ", total.tolist())
print("without baseline", kept.tolist())
assert torch.allclose(total, kept / 2)

# %% [markdown]
# What others do about credit, from their papers:
#
# | method | credit of a turn | paper |
# |---|---|---|
# | GRPO over trajectories | the whole reward, group-normalised | arXiv 2402.03300 |
# | MT-GRPO | a turn reward beside the outcome, each normalised in its group | arXiv 2505.11821 |
# | GiGPO | groups of steps that start in the same state, beside the trajectory's | arXiv 2505.10978 |
# | PPO | GAE from a critic of states (07) | arXiv 1506.02438 |
#
# ## Long tails
#
# A trajectory ends after each turn with probability 1/8: eight turns on average. A step of training
# waits for its longest. Mean of the longest of n, and what share of the time a slot works:

# %%
def longest(n, p=1 / 8, cap=2000):
    """Expected maximum of n geometric lengths, cut at cap."""
    return sum(1 - (1 - (1 - p) ** k) ** n for k in range(cap))

for n in (1, 8, 64, 512):
    full, cut = longest(n), longest(n, cap=24)
    mean = longest(1, cap=24)
    print(f"{n:3d} trajectories: longest {full:5.1f} turns, busy "
          f"{8 / full:4.0%}; cut at 24: {cut:4.1f}, busy {mean / cut:4.0%}")
print(f"cut off at 24 turns: {(7 / 8) ** 24:.1%} of the trajectories")

# %% [markdown]
# Cutting buys time and is not neutral. Two habits: quick (right 0.4, four turns on average) and
# careful (right 0.7, twelve turns). Reward 0 for a cut trajectory, or leave it out of the loss:

# %%
for cap in (8, 16, 32, 10_000):
    said = []
    for name, right, mean in (("quick", 0.4, 4), ("careful", 0.7, 12)):
        done = 1 - (1 - 1 / mean) ** cap
        said.append(f"{name} earns {right * done:.2f}")
    print(f"budget {cap:5d}: {', '.join(said)}; left out of the loss "
          "0.40 and 0.70")

# %% [markdown]
# With a small budget reward 0 teaches to be quick, and that may be what one wants: the budget is
# part of the task. Leaving cut trajectories out compares the habits as if time were free, and says
# nothing against a policy that never ends.
#
# ## Two masks
#
# The loss must not see the world's tokens, the attention must. With one mask for both the policy
# writes blindly. The shipped model, the last digit of `4+3=7,7*2=4,4-1=3so3`:

# %%
model, tokenizer = load(data_folder() / "model", device="cpu")
text = "4+3*2-1=?4+3=7,7*2=4,4-1=3so3"
ids = tokenizer(text, return_tensors="pt")["input_ids"]
visible = torch.ones_like(ids)
hidden_too = visible.clone()
for k, sign in enumerate(text[:-3]):
    if text[k - 1] == "=" and sign != "?":
        hidden_too[0, k + 1] = 0             # <bos> stands in front
for name, attention in (("sees the desk", visible),
                        ("one mask for both", hidden_too)):
    with torch.no_grad():
        logits = model(ids, attention_mask=attention).logits
    p = logits[0, -2].softmax(-1)[ids[0, -1]]
    print(f"{name:17s} π of the right digit {p.item():.2f}")

# %% [markdown]
# ## Words and known bugs
#
# | library | the mask is called | what went wrong once |
# |---|---|---|
# | TRL | `tool_mask`; `env_mask` in a `rollout_func` | the fused loss ignored it ([4975](https://github.com/huggingface/trl/pull/4975)); used for attention too ([4974](https://github.com/huggingface/trl/issues/4974)) |
# | verl | `response_mask` | |
# | SkyRL | `loss_mask` | |
# | NeMo-RL | token loss mask | assistant turns of the prompt were trained ([2176](https://github.com/NVIDIA-NeMo/RL/pull/2176)) |
# | ms-swift | `loss_mask` | only the last turn was trained ([7838](https://github.com/modelscope/ms-swift/pull/7838)) |
# | RAGEN | `state_mask` | upside down ([71](https://github.com/mll-lab-nu/RAGEN/issues/71)) |
#
# Exercise 1 of the lesson knows all of these. In TRL 1.16 the loss mask is
# `completion_mask * tool_mask`, and the attention mask is not touched by it.
