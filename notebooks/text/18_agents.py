# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 18 · Agents: what changes when the world answers back?
#
# **After this page** you can write the gradient of a trajectory with many turns, say whose tokens
# belong in the loss and what happens if you forget, and choose which turn gets the credit.
#
# 37 minutes, then 17 in a second sitting · exercises 34 more · after 02 (REINFORCE), 07 (critic),
# 08 (GRPO) · Search-R1, Jin et al. 2025, [arXiv 2503.09516](https://arxiv.org/abs/2503.09516);
# turn-level credit: Zeng et al. 2025, [arXiv 2505.11821](https://arxiv.org/abs/2505.11821)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. What is the gradient of the expected reward, for one sampled answer?</summary>Reward times the gradient of log π(answer), which is a sum over its tokens (02).</details>
# <details><summary>2. What must the baseline of a group not depend on?</summary>On the answer itself. All answers of a group start from the same prompt (03, 08).</details>
# <details><summary>3. Which rewards can a token not have caused?</summary>Those that came before it (07).</details>

# %% tags=["setup"] jupyter={"source_hidden": true}
# imports, folded
from itertools import product
import torch
from rlnb import check
from rlnb.classroom.explorers import turn_credit, two_authors
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.pictures import agents as pictures
from rlnb.toys.turns import additive_push, author_path
from rlnb.training.studies.agents import records
from rlnb.training.tasks.desk import CHAIN, Desk
from rlnb.training.tasks.task import held_out
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)

# %% tags=["setup"] jupyter={"source_hidden": true}
# folded: four trajectories to 4+3*2=?, brackets are the desk's
def tokens(text):
    return [("desk", t[1:-1]) if t[0] == "[" else ("policy", t)
            for t in text.split()]

rows = {name: tokens(text + " end") for name, text in (
    ("1, right", "4 + 3 = [7] , 7 * 2 = [4] so 4"),
    ("2, right", "4 + 3 = [wait] 4 + 3 = [7] , 7 * 2 = [4] so 4"),
    ("3, wrong", "4 + 3 = [wait] so 1"),
    ("4, wrong", "so 8"))}
width = max(len(row) for row in rows.values())
authors = [[a for a, _ in row] + [""] * (width - len(row))
           for row in rows.values()]
own = torch.tensor([[a == "policy" for a in row] for row in authors])
there = torch.tensor([[a != "" for a in row] for row in authors])

def recorded(arm, name, when="evals"):
    """Last held-out number of each of three recorded seeds."""
    last = [run[when][-1] if when == "evals" else run[when]
            for run in records()[arm].values()]
    return ", ".join(f"{x[name]:.2f}".replace("-", "−") for x in last)

# %% [markdown]
# ## A text with two authors
#
# An agent writes, the world answers, and the agent writes on. In this lesson the world is a desk
# with a calculator. The task `4+3*2=?` is worked from left to right, modulo 10. Whenever the policy
# writes `=`, the desk writes the next token. Here is one group: four trajectories for the same
# task.

# %% jupyter={"source_hidden": true}
# the picture
pictures.transcript(rows, caption=(
    "A turn is what the policy writes until the desk answers. The desk "
    "is busy three times in ten and says wait."))

# %% [markdown]
# The digit that the policy writes behind `so` is its answer. A right answer earns 1, a wrong one 0.
# The desk has one more key, `x=`. It shows the desk's memory, which is the last result that was
# calculated.

# %%
desk = Desk()
desk.reset()
for call in ("4+3=", "7*2=", "x="):
    print(f"{call:5s} {desk.reply(call)}")

# %% [markdown]
# The policy is this course's small transformer. It has seen 100 supervised steps on examples of
# using the desk; in some of them the policy only presses `x=` and repeats what it shows. Then it is
# trained with GRPO (without the std) for 40 steps, each with 8 new tasks and 8 trajectories a task.

# %% [markdown]
# ## Nine in ten: how good is it?
#
# Here is one such run, with three seeds.

# %% jupyter={"source_hidden": true}
# the picture
pictures.first_run(caption="Reward of the training trajectories, one line "
                   "for each seed. At the end nine in ten are right.")

# %% [markdown]
# No task came twice, so nothing could be learned by heart. Now we evaluate on 100 new tasks, at a
# freshly started desk. Before training the policy solved 39 % of them.

# %% jupyter={"source_hidden": true}
# your guess
predict("agents.1", "How many does it solve after training?",
        ["about 90 %, as in training", "about 65 %: some of it was luck",
         "about 40 %, as before", "about 15 %, worse than before"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
zeros = sum(p.answer == "0" for p in held_out(CHAIN, 100))
why = (f"{recorded('leak', 'pass@1')}. It has learnt to write `x=` "
       "first and to copy. Whoever made the training tasks had calculated "
       "each answer on the same desk, and `reset` left the memory full. "
       f"A fresh desk shows 0, which is the answer to {zeros} of the 100 "
       "tasks. With the memory emptied, the same run reaches "
       f"{recorded('masked', 'pass@1')} (black). In a repository such a "
       "leak is the fixing commit, or a test file that nobody deleted. "
       "**Evaluate in a world that somebody else has started.**")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("agents.1", "about 15 %, worse than before", why,
       pictures.two_panels(["leak", "masked"], caption=(
           "In training the run that learned to copy looks better than the "
           "one that learned to calculate.")),
       instead={
           "about 90 %, as in training":
           "The tasks are new. But is the desk the same as in training?",
           "about 65 %: some of it was luck":
           "Luck would not last for forty steps of new tasks.",
           "about 40 %, as before":
           "Training has replaced what it could do before.",
       })

# %% [markdown]
# GRPO's baseline (recall 2) needs $G$ trajectories from the same start. With a prompt this was
# free. A world has to be built $G$ times, and each time it must be reset. **Idea 1: a trajectory
# starts where its siblings start, and finds no answer there.** (Where a group shares one desk
# without a reset, its later trajectories find what the earlier ones left. Log the reward by place
# in the group: it must be flat.)

# %% [markdown]
# ## The world writes: whose tokens?
#
# The desk is clean now. Its words stand in the text. Do they belong in the loss? Call turn $k$ of
# the policy $u_k$, the world's answer $o_k$, and all that stands before them $h_k$. The world
# answers with a probability $P$ of its own.
#
# $$\begin{aligned}
# p_\theta(\tau)&=\prod_k\pi_\theta(u_k\mid h_k)\;P(o_k\mid h_k,u_k)&&\text{chain rule: each author in turn}\\
# \nabla\log p_\theta(\tau)&=\sum_k\nabla\log\pi_\theta(u_k\mid h_k)+0&&\text{the world's }P\text{ contains no }\theta\\
# \nabla J&=\mathbb E\Big[R(\tau)\sum_{\text{own tokens }t}\nabla\log\pi_\theta(y_t\mid y_{<t})\Big]&&\text{log-derivative (02); chain rule inside a turn}\\
# &\approx\mathbb E\Big[A(\tau)\sum_{\text{own tokens }t}\nabla\log\pi_\theta(y_t\mid y_{<t})\Big]&&\text{minus the group's mean, up to }(G-1)/G\text{ (08)}
# \end{aligned}$$
#
# There is a trap: the policy gives a probability to the world's tokens, too, though they were drawn
# from $P$. In code this is a mask: later tokens read the world's tokens, the loss leaves them out.

# %%
def agent_loss(logp, trained, R):
    """One group: logp, trained (G, L), rewards (G,). To minimise."""
    A = (R - R.mean())[:, None]
    return -torch.where(trained, A * logp, 0.0).sum(1).mean()

R = torch.tensor([1.0, 1.0, 0.0, 0.0])
print("own tokens", own.sum().item(), "of", there.sum().item())

# %% jupyter={"source_hidden": true}
# the push of agent_loss on each log π, times 4, as colours
logp = torch.full(own.shape, -1.0, requires_grad=True)
panels = {}
for title, trained in (("own tokens only", own), ("mask forgotten", there)):
    slope, = torch.autograd.grad(agent_loss(logp, trained, R), logp)
    panels[title] = {name: (-len(R) * slope[i, :len(row)]).tolist()
                     for i, (name, row) in enumerate(rows.items())}
pictures.pushes(rows, panels, caption=(
    "Pushes, times 4. Without the mask the policy is paid for words it "
    "did not choose. "
    "(The pushes on these two wait cancel. In training they will not.)"))

# %% [markdown]
# What does such a push do over time? Take the smallest case. At one place of a text stands `ok` or
# `error`. After `ok` the reward is 1, after `error` it is 0, and `error` comes three times in ten.
# The policy has one logit for `error`, and starts at the true probability, 0.3.
#
# We follow 1,000 expected updates, at learning rate 1, twice: once the policy writes this token,
# and once the world writes it and the mask is forgotten.

# %% jupyter={"source_hidden": true}
# your guess
predict("agents.3", "log π(error) starts at −1.2. Where does it end?",
        ["both near −7",
         "its own token's near −7, the world's near −200",
         "its own token's near −7, the world's near −1.2",
         "both near −200"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ends = {who: author_path(who, 0.3, steps=1000)[-1]
        for who in ("policy", "world")}
reveal("agents.3", "its own token's near −7, the world's near −200",
       f"They end at −{-ends['policy']:.1f} and −{-ends['world']:.1f}. The "
       "policy's own token becomes rare, so it is pushed less and less. "
       "The world says error as often as before, whatever the policy "
       "thinks of it, so the push never ends.",
       instead={
           "both near −7":
           "For its own token the push fades. Does it fade for the world's "
           "token?",
           "its own token's near −7, the world's near −1.2":
           "The world goes on as before. But the policy's model of the "
           "world is pushed.",
           "both near −200":
           "Its own token becomes rare and is hardly pushed any more.",
       })

# %% [markdown]
# Try other tokens. What one *costs* is the reward without it minus the reward with it; above, 1.

# %% jupyter={"source_hidden": true}
# the explorer
task("agents.t1", two_authors.two_authors_explorer(),
     ("Let the token cost 1.00. Is a frequent failure pushed hardest? Say "
      "at which frequency the world's token is driven furthest down, then "
      "look.", two_authors.driven_furthest),
     ("Now let it cost next to nothing, 0.05. Say whether the world's "
      "token still falls without end. Then find a frequency at which it "
      "ends 8 nats below the policy's own.", two_authors.cheap_and_driven))

# %% [markdown]
# Why is that so? Let $q$ be how often `error` stands there. Its push on the logit is
# $A(1[\text{error}]-\pi)$, and on average this is
#
# $$\begin{aligned}
# \mathbb E\big[A\,(1[\text{error}]-\pi)\big]&=\mathbb E\big[A\,1[\text{error}]\big]-\pi\,\mathbb E[A]&&\text{linearity}\\
# &=q\,A_{\text{error}}=-q(1-q)&&\mathbb E[A]=0;\ A_{\text{error}}=0-(1-q)
# \end{aligned}$$
#
# The policy's own probability $\pi$ is gone. If the policy writes the token, $q=\pi$, and the push
# dies out with it. If the world writes it, the push never ends, unless the token tells nothing
# about success. It is largest at one half, where $q(1-q)$ is (task 1). A small cost makes it
# slower, not shorter (task 2). And words that go with *success*, the result of a test that passed,
# cost less than nothing: they are driven up.
#
# Behind a history $h$ that went well the mean advantage is not 0. Then the first line leaves
# $q\,A_\text{error}-\pi\,\mathbb E[A\mid h]$, and the push can stop: with $q=0.3$ and advantages of
# 0.1 (error) and 0.5 (ok) at $\pi=0.03/0.38=0.08$. <!-- cited: 0.3, 0.1, 0.5, 0.03, 0.38, 0.08 -->
#
# So a forgotten mask does not teach the policy to predict its world. **It bends the policy's
# picture of the world, towards success and away from failure.**
#
# How bad is this for a real policy, which shares all its weights between the desk's words and its
# own? We repeat the training above with the memory emptied, with the mask and without it.

# %% jupyter={"source_hidden": true}
# your guess
predict("agents.4", "After forty steps with the mask forgotten, pass@1 is, "
        "compared with the run with the mask,",
        ["within 0.1 of it, and as early",
         "within 0.1 of it, but reached later",
         "lower by 0.2 or more: weights are shared",
         "higher by 0.2 or more: it knows the desk"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("agents.4", "within 0.1 of it, and as early",
       f"It is {recorded('masked', 'pass@1')} with the mask and "
       f"{recorded('unmasked', 'pass@1')} without. The trace is elsewhere. "
       "log π of the desk's *wait* stands at "
       f"{recorded('masked', 'wait')} with the mask and at "
       f"{recorded('unmasked', 'wait')} without, and it is still falling. "
       "**The reward need not show a forgotten mask.** (*wait* is so "
       "unlikely from the start because the supervised examples were "
       "masked, too.)",
       pictures.desk_runs(caption=(
           "Three seeds each. In this world and in 40 steps the forgotten "
           "mask costs nothing that three seeds can show.")),
       instead={
           "lower by 0.2 or more: weights are shared":
           "They are shared. But in forty steps of this world it does not "
           "show.",
           "within 0.1 of it, but reached later":
           "The curves at steps 10 and 20 do not differ visibly, either.",
           "higher by 0.2 or more: it knows the desk":
           "It is pushed by reward, not taught to predict.",
       })

# %% [markdown]
# In a larger world it can matter. Search-R1 lets a 7B model read passages from a search engine.
# With the mask it answers 0.43 of the questions, without it 0.34 <!-- cited: 0.43, 0.34 --> (one
# run each). Our desk writes 6 of the 44 tokens in the picture, a search engine most of the text:
# there, most of the push falls on words that the policy did not choose.
#
# The same mask belongs in five places:
#
# * *The loss*, as above.
# * *The ratio and its clip share* (06), token by token, turns or not: $\pi_{\text{old}}$ never drew
#   the world's tokens. Counted in, they hide how much of the policy's own text is clipped.
# * *The KL* to the reference. On the world's tokens it would be a price for expecting other tool
#   outputs than the reference does.
# * *The length*, where a loss divides by it: with a tool output of 2,000 tokens in the divisor, the
#   push on a call of 10 tokens is 200 times smaller.
# * *The critic and GAE* (07). Step from own token to own token. If λ below 1 counted 2,000 tool
#   tokens, the final reward would hardly reach a call before them.
#
# And log the share of tokens that are trained, here 38 of 44. **Idea 2: the world's tokens are
# read, and never targets.** (Own tokens behind them read them. So the gradient does train *how*
# they are read.)

# %% [markdown]
# ## Many turns, one number
#
# Look again at trajectory 3 in the picture of the pushes. Its call `4+3=` was right, and it is as
# orange as its wrong answer. With thirty turns, good and bad turns share one number. What does that
# cost?
#
# Here is a toy with $T$ turns, each right with probability ½. A right turn earns 1, and the reward
# is the sum. The policy has one logit for each turn. With $a_1=1$ for a right first turn, else 0,
# the score of that turn is $a_1-½$ (02), and the push on it is its credit times $(a_1-½)$. With two
# turns there are four cases:

# %%
for a in product((0, 1), repeat=2):
    total = sum(a) - 1                 # the sum, minus its mean
    turn = a[0] - 0.5                  # this turn's reward, minus its mean
    print(f"turns {a}: push by the sum "
          f"{total * (a[0] - .5) + 0.0:.1f}, by the turn's own reward "
          f"{turn * (a[0] - .5):.2f}")

# %% [markdown]
# Both have the mean ¼. But with the sum the push is 0.5 or 0, depending on the other turn, and its
# variance is 0.0625. The turn's own reward has no variance here.

# %% jupyter={"source_hidden": true}
# your guess
predict("agents.7", "Take 32 turns instead of 2. The variance of the push "
        "by the sum becomes",
        ["the same: the mean is subtracted",
         "16 times as large, like the turns",
         "31 times as large", "256 times as large, as 16 squared"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
spread = {T: additive_push(T)[1] for T in (2, 8, 32, 128)}
reveal("agents.7", "31 times as large",
       "; ".join(f"{T} turns {v:.4f}" for T, v in spread.items())
       + ". At T = 2 one other turn makes the noise, at T = 32 there are "
       "31 of them.",
       instead={
           "the same: the mean is subtracted":
           "The mean is subtracted. The noise of all other turns is not.",
           "16 times as large, like the turns":
           "It is only the other turns that make the noise.",
           "256 times as large, as 16 squared":
           "Variances of independent turns add up.",
       })

# %% [markdown]
# <details><summary>By hand, in two lines</summary>
#
# $$\begin{aligned}
# (a_1-\tfrac12)\sum_j(a_j-\tfrac12)&=\underbrace{(a_1-\tfrac12)^2}_{\text{always }1/4}+\underbrace{(a_1-\tfrac12)\sum_{j\ne1}(a_j-\tfrac12)}_{\text{mean }0}&&\text{split off }j=1\\
# \mathrm{Var}&=(T-1)\cdot\tfrac14\cdot\tfrac14=\frac{T-1}{16}&&\text{independent turns}
# \end{aligned}$$
# </details>
#
# **Idea 3: with one number for all turns, the other turns are noise on this one.** A turn's own
# reward has none of it, and is blind to what the turn makes possible later.
#
# Where does this stop being true? The toy has a logit for each turn, as if each turn were a skill
# of its own. If all turns shared *one* logit, every turn would teach the same thing, and the other
# turns would help as much as they disturb. How many trajectories show the sign of a push,
# $n=4\,\mathrm{Var}/\mathrm{mean}^2$ (so that its mean is two spreads from 0)? With a logit a turn
# it is $4(T-1)$, with one shared logit $8-8/T$, never more than 8. A network stands between the
# two. So long agents can be trained with few trajectories, and rare kinds of turns still drown.

# %% [markdown]
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | agents | |
# |---|---|
# | sentence | the world keeps state, writes into the text and makes it long: reset it, mask it, share out the credit |
# | formula | $g=\mathbb E\big[\sum_{\text{own }t}A\,\nabla\log\pi_\theta(y_t)\big]$, $A$ the trajectory's advantage, or its turn's (second sitting) |
# | mask forgotten | push $q\,A_{\text{token}}$ on the world's token ($-q(1-q)$ if it decides success): where the mean advantage is 0, it does not contain π and never ends |
# | mask where | loss, ratio, KL, length, critic; log the share of trained tokens |
# | credit | one number for $T$ turns: the noise on a turn grows like $T-1$, if turns share no skill |
# | derived | own tokens only; no credit for the past (recall 3) |
# | does it hurt? | not visibly at our desk (6 of 44 tokens); with a search engine, where most tokens are the world's, it did |
# | choices (second sitting) | which turns' rewards count for a turn; who pays for a turn: a critic, siblings, a grader |

# %%
score("agents.1", "agents.3", "agents.4", "agents.7")

# %% [markdown]
# ## Second sitting: whose text, and whose credit?
#
# ### The tool's text: an injected note
#
# The world's words are no targets. Take the run with the mask, and let somebody
# write `so` and any digit behind every result of the desk, as in `7so3`.

# %% jupyter={"source_hidden": true}
# your guess
predict("agents.5", "Without the notes it solved two tasks of three. How "
        "many does it solve now?",
        ["two of three: such tokens were never trained",
         "hardly any: it goes on as if it had written the note",
         "about one of two: strange text disturbs it"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer, computed
noted = (f"pass@1 is {recorded('masked', 'pass@1', 'noted')}. The policy "
         "stops behind the note, without an answer of its own. In its "
         "examples *so* and a digit were always followed by *end*, and it "
         "continues the pattern, whoever began it.")

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("agents.5", "hardly any: it goes on as if it had written the note",
       noted,
       pictures.transcript({
           "clean desk": rows["1, right"],
           "with a note": tokens("4 + 3 = [7] [so] [3] end")}, caption=(
           "The policy's own text goes on with *so* only at the end. Here "
           "somebody else wrote it.")),
       instead={
           "two of three: such tokens were never trained":
           "They were not trained. But the policy reads them.",
           "about one of two: strange text disturbs it":
           "To the policy this text is not strange at all.",
       })

# %% [markdown]
# **A mask keeps a text out of the loss. It does not keep it out of the context.** A
# calculator's harness can let only one digit or *wait* through. A search engine's cannot know what
# a page may say, so the policy must learn to ignore the note. We start once more, with 400
# supervised steps instead of 100, and try three ways:
#
# 1. GRPO at a desk that writes notes in half of the trajectories;
# 2. first examples: behind half of the results stands a note, and the example goes on as if it were
#    not there. Then GRPO as above, without notes;
# 3. both: these examples, then GRPO with notes.

# %% jupyter={"source_hidden": true}
# your guess
predict("agents.6", "After which of them does the policy solve most tasks "
        "in spite of the notes?",
        ["all three", "2 and 3: it has been shown how", "only 3",
         "1 and 3: it is rewarded for it"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
ways = ("notes, 400", "shown, 400", "both, 400")
with_notes = [recorded(way, "pass@1", "noted") for way in ways]
without = [recorded(way, "pass@1") for way in ways]
before = records()["shown, 400"][0]["noted_before"]["pass@1"]
reveal("agents.6", "only 3",
       "Three seeds, pass@1 with notes (and without):\n\n"
       + "\n".join(f"{k}. {a} ({b})" for k, (a, b) in enumerate(
           zip(with_notes, without, strict=True), 1))
       + "\n\n1: it hardly ever ignores a note, and what is not sampled is "
       "not rewarded. 2: it had learnt to "
       "(" + f"{before:.2f}" + " before GRPO), but "
       "where no note ever comes, nothing rewards it, and two of three "
       "seeds unlearn it. 3: the examples put the "
       "behaviour into the samples, and the reward keeps it there.",
       instead={
           "all three":
           "Rewards can only choose among what is sampled.",
           "2 and 3: it has been shown how":
           "It was shown. What keeps it, when GRPO never meets a note?",
           "1 and 3: it is rewarded for it":
           "It would be rewarded, if it ever did it.",
       })

# %% [markdown]
# **Examples bring a behaviour into the samples. Where no reward asks for it, it can fade.**

# %% [markdown]
# ### Which rewards count for a turn?
#
# Must a turn be credited with all rewards of its trajectory? Turn $j$ earns $r_j$. **There is one
# choice: the set $S_k$ of turns whose rewards count for turn $k$.**
#
# $$A_k=\sum_{j\in S_k}r_j-\text{the mean of this over the trajectories that have a turn }k$$
#
# Three choices are usual. *All turns* is GRPO's.
#
# **From this turn on** leaves out what a turn cannot have caused, its past. The last turn loses all
# its noise and the first loses none, so half of the noise goes on average. **This turn only** loses
# all of it, and is blind to what a turn makes possible later (in this toy nothing).

# %% jupyter={"source_hidden": true}
# your guess
predict("agents.8", "Now nothing is paid along the way. The same sum comes "
        "once, after the last turn. How much of the noise does 'from this "
        "turn on' save now?",
        ["nothing", "half, averaged over the turns, as before",
         "all of it: one reward, one source of noise",
         "half for the last turn, nothing for the first"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
a = torch.tensor([[1, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 0]])
late = torch.zeros_like(a)
late[:, -1] = a.sum(1)                  # the sum, paid at the end
to_go = late.flip(1).cumsum(1).flip(1)  # from each turn on
assert (to_go == a.sum(1, keepdim=True)).all()
reveal("agents.8", "nothing",
       "Every turn gets the whole sum, as with all turns. A reward at the "
       "end stands in the future of every turn, so there is no past to "
       "leave out. **Something else must tell the turns apart:** a critic "
       "(07), siblings that pass through the same state, or a grader of "
       "turns.",
       instead={
           "half, averaged over the turns, as before":
           "That needs rewards along the way. Which past is left out now?",
           "all of it: one reward, one source of noise":
           "The one reward still holds the luck of all turns.",
           "half for the last turn, nothing for the first":
           "The last turn, too, is paid for the luck of all others.",
       })

# %% [markdown]
# How good must a grader of turns be? With one reward for the sum of $T$ turns, the sign of a turn's
# push takes $4(T-1)$ trajectories (first sitting). Now a grader gives each turn a verdict, ½ or −½,
# and is wrong in a share $e$ of them, at random. Its push is ¼ or −¼: mean $(1-2e)/4$, variance
# $e(1-e)/4$, so its $n$ is $16e(1-e)/(1-2e)^2$.

# %% jupyter={"source_hidden": true}
# the explorer
task("agents.t2", turn_credit.turn_credit_explorer(),
     ("32 turns. Make the grader of turns as careless as you can while it "
      "still needs fewer trajectories. Guess its share of errors first.",
      turn_credit.careless_and_still_better))

# %% [markdown]
# <details><summary>What the task shows</summary>
#
# It may be wrong in 41 % of its verdicts, hardly better than a coin. Its errors are random, but the
# other 31 turns are random, too.
# </details>
#
# **Grade turns if you can, and check the final success.** A grader that errs at random is cheap.
# One that pays a point for every call has no noise, and another goal
# ([statements](statements/18_agents.ipynb)).
#
# <details><summary>One level deeper: siblings, uneven lengths, and success that needs all turns</summary>
#
# * If success needs *all* turns to be right, each with chance ½, the final reward needs
#   $4(2^T-2)$ trajectories: a quarter of a million at 16 turns.
# * Siblings as graders: GiGPO ([arXiv 2505.10978](https://arxiv.org/abs/2505.10978)) finds the
#   turns of a group that begin in the same state and compares what each earned from there on. That
#   needs no critic, but where a state occurs once there is nothing to compare.
# * At turn 5 siblings are in different states. A mean by turn number is still a fair baseline:
#   whether a sibling has a turn 5, and what it earned, does not depend on what *this* one writes
#   there. It only removes less noise, since part of the difference is the state's. A lone survivor
#   gets 0, and learns nothing.
# * The world's own luck (*wait*, three times in ten) is noise, too. Giving all siblings the same
#   dice takes it out of the comparison as long as they make the same calls, and costs nothing.
# * In practice turn rewards are checks along the way, beside the final reward: Zeng et al. reward
#   single tool calls; for code it could be the tests after each edit.
# </details>
# <details><summary>One level deeper: what a real run adds</summary>
#
# * Train on the token ids that were sampled. Text that is parsed and tokenised again need not give
#   the same ids; then you push on tokens nobody drew.
# * The same for the history. If thinking is stripped or the context is compacted between turns,
#   log π must be computed behind what each turn really read: one training row per context.
# * Two masks: attention sees both authors, the loss only one. One mask for both cuts the policy off
#   from the world's answers (TRL [issue 4974](https://github.com/huggingface/trl/issues/4974)).
# * The mask is `tool_mask` in TRL (`env_mask` in a rollout function), `response_mask` in verl,
#   `loss_mask` in SkyRL.
# * A trajectory that runs out of turns gets reward 0, and its siblings wait for it. Both are
#   measured on the [statements page](statements/18_agents.ipynb). Long trajectories are also old
#   when they end (19), and whole groups fail: start with shorter tasks.
# * Log: turns, share cut off, share of failed calls, share of tokens trained.
# </details>

# %%
score("agents.5", "agents.6", "agents.8")

# %% [markdown]
# ## Exercises
#
# **1 Implement** · 8 minutes. Whole conversations as roles: 0 padding, 1 user, 2 assistant, 3 tool,
# (B, L). The first `prompt_length` tokens were given to the policy, assistant turns among them
# (examples). Return (B, L − 1), true where the prediction of the *next* token is trained.
#
# <details><summary>hint</summary>Two conditions on a token: its author, and its place. Then: which column does its prediction stand in?</details>

# %% tags=["exercise"]
def my_observation_mask(role, prompt_length):
    return ...

check.observation_mask(my_observation_mask)

# %% [markdown]
# **2 Implement** · 12 minutes. Credit by turn. `rewards` (B, K) of each turn, `turn` (B, L) the
# turn of each token and −1 where it is not the policy's. A token's advantage is what its trajectory
# earned from its turn on, minus the mean of that over those of its group that have this turn.
#
# <details><summary>hint</summary>A sum from the back, a mean inside each group, a gather. What does an index of −1 do?</details>

# %% tags=["exercise"]
def my_turn_advantages(rewards, turn, num_generations):
    return ...

check.turn_advantages(my_turn_advantages)

# %% [markdown]
# **3 Find the silent bug** · 6 minutes. A desk for a whole group. On one trajectory it passes every
# test:

# %%
print(check.silent_bug_agents.source)

# %% [markdown]
# Write a test that it fails and the right one passes.
#
# <details><summary>hint</summary>Two trajectories. Which call reveals what was there before?</details>

# %% tags=["exercise"]
def my_test(replies):
    return ...

check.silent_bug_agents(my_test)

# %% [markdown]
# **4 Derive** · 8 minutes. The grader of turns is wrong in a share e of its verdicts. For which e
# does it need as many trajectories as the sum of T turns? Return e for a tensor of T.
#
# <details><summary>hint</summary>Its push is ¼ or −¼. So its mean is (1 − 2e)/4, and its square is always 1/16.</details>

# %% tags=["exercise"]
def my_break_even(turns):
    return ...

check.break_even_error(my_break_even)

# %% [markdown]
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>Why are tool outputs masked?</b></summary>
#
# Because the policy did not choose them. The probability of a trajectory is a product over two
# authors, and the world's factor contains no θ, so the score is a sum over the policy's own tokens.
# Leave them in and you train on the tool's text, weighted by the advantage.
# </details>
# <details><summary><b>Somebody forgot the mask. What goes wrong, and would you see it?</b></summary>
#
# Perhaps nothing that the reward shows. A token of the world that goes with failure is pushed down
# on and on, since it keeps coming however unlikely the policy finds it. The push is its frequency
# times its advantage. In our small run pass@1 showed nothing in three seeds, and log π of the
# tool's `wait` fell by three nats more than with the mask. In Search-R1 it cost a fifth of the
# accuracy (one run each). I would log the share of trained tokens.
# </details>
# <details><summary><b>One reward at the end of fifty turns. Why is that hard, and what helps?</b></summary>
#
# The other forty-nine turns are noise on this one. If the turns add up and share no skill, about
# four trajectories per turn show the sign of its push; if they all need the same skill, eight do;
# if all must be right, each with chance ½, the number doubles with every turn. With only a final
# reward there is no past to leave out, so something must tell turns apart: a critic, siblings from
# the same state, tests along the way. Even a grader that errs often helps, if it errs at random.
# </details>
# <details><summary><b>Is turn-level reward always better?</b></summary>
#
# No. It removes noise and may change the goal. A turn's own reward alone forgets what the turn made
# possible, and a grader that pays for calls gets calls. Take the sum from the turn on, and check
# the final success.
# </details>
# <details><summary><b>Nine in ten right in training, one in six in evaluation. First suspicion?</b></summary>
#
# The environment. Something in the training sandbox gives the answer away: state that was not
# reset, a file, a cache, the tests themselves. Read ten trajectories, and run the evaluation in
# fresh worlds.
# </details>
# <details><summary><b>Does masking protect against prompt injection?</b></summary>
#
# No. The mask removes a text from the loss, not from the context. Our masked policy continued a
# note in the tool's output in nearly every trajectory. RL with notes did not cure it, for it hardly
# ever tried to ignore one. Examples of ignoring faded in two of three seeds of RL without notes.
# Both together held, in three seeds of a small model, with notes of one kind. So let the harness
# check what a tool may say where it can.
# </details>
# <details><summary><b>The sandbox crashed in the middle of a trajectory. Reward 0?</b></summary>
#
# No, if the policy did not cause it. Replay the same tokens in a new sandbox if you can. Drawing
# anew, or leaving it out of mean and loss, is not free: if long trajectories crash more often,
# short ones are favoured. So log how many, by length. If the policy can cause the crash, by a
# program that eats the memory, 0 is right: else crashing is free.
# </details>
#
# The sentences that one hears, true or not: [statements 18](statements/18_agents.ipynb). The
# exercises, solved: [solutions 18](solutions/18_agents.ipynb).
#
# **Next: [19](19_systems.ipynb).** Where do a step's time and memory go?
