# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 21 · GRPO for real: did it learn, or only choose?
#
# **After this page** you can write the training loop from memory, read its log, say what a risen
# curve shows and what it does not, and count whether a run fits a GPU.
#
# 27 minutes, exercises 24 more · after 08 (GRPO), 10 (Dr. GRPO), 11 (DAPO) · Dr. GRPO, Liu et al.
# 2025, [arXiv 2503.20783](https://arxiv.org/abs/2503.20783); does RL reach beyond the base model,
# Yue et al. 2025, [arXiv 2504.13837](https://arxiv.org/abs/2504.13837); spurious rewards, Shao et
# al. 2025, [arXiv 2506.10947](https://arxiv.org/abs/2506.10947)
#
# **Recall.** Say each answer aloud, then unfold.
#
# <details><summary>1. Dr. GRPO's advantage, and what does it divide by?</summary>R minus the group's mean. By no std; and by one constant length for all answers (10).</details>
# <details><summary>2. Which groups teach nothing?</summary>All right or all wrong: every advantage is 0 (08).</details>
# <details><summary>3. One update per batch. What is the ratio ρ, and what does the clip do?</summary>ρ is 1 for every token, so the clip never acts (06).</details>

# %% tags=["setup"]
import random
import torch
from torch.nn.utils import clip_grad_norm_
from rlnb import ZOO, check
from rlnb.classroom.explorers import gpu_budget, rollouts
from rlnb.classroom.lesson import predict, reveal, score, task
from rlnb.classroom.live_or_replay import open_page
from rlnb.classroom.pictures import grpo_for_real as pictures, pipeline
from rlnb.training import (TASKS, Recipe, Sampling, data_folder,
    encode_prompts, evaluate, sample, token_logprobs, train)
from rlnb.training.studies import by_card
from rlnb.training.studies.controls import mixture, reports
from rlnb.training.studies.many_answers import solved
page = open_page()             # or open_page("replay"), "cpu", "cuda"

# %% [markdown]
# The large letters say where numbers marked *live* come from. **No run on a GPU is recorded yet:**
# everything else on this page was recorded on a CPU, from a small model.
#
# ## Six answers
#
# A transformer with 308,016 weights does sums from left to right, modulo 10, without precedence:
# `4+3-8=?` is 9, the last digit of $4+3-8=-1$. An answer ends in `so` and a digit.

# %%
pictures.six_answers()

# %% [markdown]
# There are two styles. **Direct** is `so` and a digit at once: one forward pass has to do all the
# sums. **Steps** is one operation at a time; a `wait` takes the step before it back. The verifier
# reads one symbol, the digit at the end:

# %%
chain = TASKS["chain"]
problem = chain.parse("4+3-8=?")
for text in ("so9", "4+3=7,7-8=9so9", "4+3=1,1-8=9so9", "so8"):
    print(f"{chain.verify(problem, text):.0f}  {text}")

# %% [markdown]
# The third has a wrong step and earns 1. After forty steps of Dr. GRPO on this reward more than
# nine in ten unseen problems are right at the first answer (**pass@1**). Before, it is 0.38. Did
# the model learn to calculate? The curve cannot say. We ask the model *before* training.

# %% jupyter={"source_hidden": true}
# your guess
predict("real.1", "Sampled at temperature 1 the base model is right on "
        "0.38 of unseen problems. Greedy, it takes the likeliest symbol "
        "each time. How much is right then?",
        ["about 0.26", "about 0.38: the likeliest answer is typical",
         "about 0.65: no more unlucky draws", "about 0.95"])

# %%
runs = data_folder() / "runs"
recorded = reports(runs / "chain_controls.json")
base, trained = recorded["base"], recorded["seed 0"]

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.1", "about 0.26",
       "The likeliest first symbol is `so`, so greedy answers directly. "
       "Its direct answers are hardly better than always saying 0. Now "
       "write the first symbol for it, the first digit of the problem: "
       f"{base['forced/steps']:.2f} sampled, and **250 of 250** "
       "greedy.", pictures.styles(base, 55 / 250),
       instead={
           "about 0.38: the likeliest answer is typical":
           "The likeliest first symbol decides, and it skips the steps.",
           "about 0.65: no more unlucky draws":
           "That is what the written steps are worth; it does not write "
           "them.",
           "about 0.95":
           "So it would be if it wrote the steps.",
       })

# %% [markdown]
# So the base model can do the whole task. It does not choose to, and when it samples it slips. We
# built that in: of the demonstrations that it imitated, 60 % are direct and right, 40 % show steps,
# and one step in ten is wrong. Here is the one base number of this page, measured live:

# %% tags=["trajectory", "nbval-ignore-output"]
model, tokenizer = page.load()
before = page.measure(
    "base", lambda: evaluate(model, tokenizer, chain))  # 250 x 8 answers
print(f"pass@1 of the base {before['pass@1']:.3f}, plus or minus 0.011")
page.expect(0.33 < before["pass@1"] < 0.43,
            before["greedy"] < before["pass@1"] - 0.05,
            before["forced/steps/greedy"] > 0.97,
            0.58 < before["forced/steps"] < 0.73)

# %% [markdown]
# ## The loop, in two cells
#
# All seven boxes of the course, once, on a real network:

# %% jupyter={"source_hidden": true}
# the pipeline
pipeline.pipeline(*pipeline.STAGES, caption=(
    "One step: 16 problems, 8 answers each, one update. "
    "Forty of them are the whole training."))

# %%
P, G, L_max = 16, 8, 72            # problems, answers to each, tokens
ends = dict(eos_id=tokenizer.eos_token_id, pad_id=tokenizer.pad_token_id)

def draw(model, rng, generator):
    """128 answers and their rewards; one that was cut off gets 0."""
    problems = [chain.problem(rng, "train") for _ in range(P)]
    prompts = encode_prompts(tokenizer, [p.prompt for p in problems])
    answers = sample(model, prompts, G, Sampling(),
                     generator=generator, **ends)
    R = torch.tensor([chain.verify(problems[i // G], text) for i, text
                      in enumerate(answers.texts(tokenizer))])
    return answers, R.to(model.device) * answers.finished

# %%
def one_step(model, optimizer, rng, generator):
    answers, R = draw(model, rng, generator)
    groups = R.view(P, G)
    A = (groups - groups.mean(1, keepdim=True)).view(-1, 1)
    logp, _ = token_logprobs(model, answers, temperature=1.0)
    rho = (logp - logp.detach()).exp()           # (128, T), all 1
    gain = torch.where(answers.completion_mask, rho * A, 0.0)
    loss = -gain.sum() / (P * G * L_max)         # Dr. GRPO
    optimizer.zero_grad()
    loss.backward()
    norm = clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return R.mean().item(), loss.item(), norm.item()

# %% [markdown]
# `sample` writes answers symbol by symbol. `token_logprobs` then reads prompt and answer in *one*
# forward pass, with a gradient. Is that really all? One step of ours beside one of the package's
# trainer, same seed:

# %% tags=["trajectory", "nbval-ignore-output"]
adamw = torch.optim.AdamW(model.parameters(), lr=3e-4,
                          betas=(0.9, 0.95), weight_decay=0.0)
dice = torch.Generator(model.device).manual_seed(0)
mine = one_step(model, adamw, random.Random(0), dice)
record = train(page.load()[0], tokenizer, chain, ZOO["dr_grpo"],
               Recipe(steps=1, eval_every=0), progress=False)[-1]
theirs = [record[name] for name in ("reward", "loss", "grad_norm")]
print("ours    reward {:.4f}, loss {:.4f}, norm {:.4f}".format(*mine))
print("train() reward {:.4f}, loss {:.4f}, norm {:.4f}".format(*theirs))
page.expect(*(abs(a - b) < 1e-4 for a, b in zip(mine, theirs)))

# %% [markdown]
# It is. `train` adds evaluation, a log, checkpoints and micro-batches.
#
# **In a larger run two boxes wake up.** DeepSeek-R1 reports 512 questions a round, 16 answers each
# and 16 updates on them (later version of [arXiv 2501.12948](https://arxiv.org/abs/2501.12948)).
# From the second update on ρ is not 1. Then $\pi_\text{old}$ is no longer `logp.detach()`: one
# keeps the log-probabilities from the time of sampling, and the clip begins to act (06).
#
# ## Forty steps

# %% jupyter={"source_hidden": true}
# your guess
predict("real.2", "After 10 of the 40 steps, which has gone furthest "
        "towards the value it ends at?",
        ["pass@1 on unseen problems: that is what is paid",
         "entropy: choices become sure before they become right",
         "the share of direct answers",
         "the share of mixed groups: easy problems come first"])

# %% [markdown]
# Now run it, seed 0; live, this is half a minute on a CPU. Seeds 1 and 2 are recorded, and wherever
# this page shows three curves they are these three.

# %% tags=["trajectory", "nbval-ignore-output"]
student, _ = page.load()
records = page.measure("run", lambda: train(
    student, tokenizer, chain, ZOO["dr_grpo"], page.recipe,
    watch=page.watch(), progress=False))
page.show_run(records)

# %% tags=["trajectory", "setup"] jupyter={"source_hidden": true}
# what must hold, wherever it runs
last = [e for e in records if e["record"] == "eval"][-1]
page.expect(last["pass@1"] > 0.80, last["direct"] < 0.05,
            last["mean_length"] > 30, last["entropy"] < 0.10)
assert records[0]["objective"] == repr(ZOO["dr_grpo"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.2", "the share of direct answers",
       "It has gone three quarters of its way, entropy two thirds, pass@1 "
       "a little over half, mixed groups nothing. Length doubles, "
       "unpaid: steps are longer than `so7`.", pictures.first_steps(),
       instead={
           "pass@1 on unseen problems: that is what is paid":
           "It follows, a little later.",
           "entropy: choices become sure before they become right":
           "It falls early too, but not first.",
           "the share of mixed groups: easy problems come first":
           "Those only begin to vanish when answers are right.",
       })

# %% [markdown]
# <details><summary>What to log, with TRL's names</summary>
#
# | log | TRL's name | here |
# |---|---|---|
# | right on unseen problems | an evaluation of your own | up, then flat |
# | groups all right, mixed, all wrong, **apart** | `frac_reward_zero_std` (lumps two) | mixed, then all right |
# | length, share cut off | `completions/mean_length`, `completions/clipped_ratio` | doubles; 0 cut off |
# | entropy | `entropy` | falls with the choice of style |
# | gradient norm | `grad_norm` | no trend, no jump |
# | gap between sampler and trainer | `sampling/sampling_logp_difference` | below 1e-4 |
# </details>

# %% jupyter={"source_hidden": true}
# your guess
predict("real.3", "And the loss of these 40 steps, one update per batch?",
        ["it falls while the reward rises",
         "it is 0 from the first step to the last",
         "it rises from below 0 up to 0",
         "it wanders around 0 without a trend"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.3", "it rises from below 0 up to 0",
       "Its value says whether right answers are longer than wrong ones. "
       "At first they are; when all answers show steps they no longer are. "
       "It does not measure learning. Its *gradient* does the work.",
       pictures.loss_and_reward(),
       instead={
           "it falls while the reward rises":
           "A loss that falls is what one is used to. Here its value is no "
           "goal.",
           "it is 0 from the first step to the last":
           "It would be, if right and wrong answers were equally long.",
           "it wanders around 0 without a trend":
           "There is a trend, and it is not learning.",
       })

# %% [markdown]
# <details><summary>Why, in three lines (open it after your guess)</summary>
#
# $N$ answers, $A_i$ the advantage and $T_i$ the length of answer $i$:
#
# $$\begin{aligned}
# L&=-\frac1N\sum_i\frac1{L_{\max}}\sum_t\rho_{i,t}A_i&&\textbf{a choice: one constant for all lengths (10)}\\
# &=-\frac1{N\,L_{\max}}\sum_i A_i\,T_i&&\text{one update per batch: every }\rho\text{ is }1\\
# &=-\operatorname{cov}(A,T)/L_{\max}&&\text{the mean of }A\text{ is }0
# \end{aligned}$$
# </details>
#
# ## Was it the reward?
#
# A control: a coin in place of the verifier. The advantage then has mean 0 whatever the answer.

# %% jupyter={"source_hidden": true}
# your guess
predict("real.4", "Twenty steps on the coin, three seeds. pass@1 ...",
        ["stays: the expected gradient is 0",
         "wanders: up in some seeds, down in others",
         "rises a little: training sharpens what is likely",
         "falls in all three"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
tossed = reports(runs / "chain_controls.json", "coin")
coins = [tossed[f"coin {seed}"] for seed in range(3)]
reveal("real.4", "falls in all three",
       "A mean of 0 is not a step of 0. The weights moved "
       + ", ".join(f"{c['moved']:.2f}" for c in coins)
       + f" from the base; under the verifier, in as many steps, "
       f"{trained['moved']:.2f} (seed 0). What broke is the written steps: "
       f"forced, {base['forced/steps']:.2f} before and "
       + ", ".join(f"{c['forced/steps']:.2f}" for c in coins)
       + " after. AdamW makes small gradients large; that this is the "
       "reason we did not test.", pictures.coin(),
       instead={
           "stays: the expected gradient is 0":
           "The expected one. The steps themselves are not 0.",
           "wanders: up in some seeds, down in others":
           "Fair for a random walk. But a walk away from good weights goes "
           "down.",
           "rises a little: training sharpens what is likely":
           "Sharpening what is likely: direct answers are likely.",
       })

# %% [markdown]
# The control could have gone otherwise. Some base models *gain* on benchmarks under random rewards,
# through a habit they had (Shao et al.). Without a control, such a gain is credited to the
# verifier.
#
# ## What the gain is made of
#
# $d$ is the share of direct answers, $a$ the accuracy of each style:
#
# $$\begin{aligned}
# p&=d\;P(\text{right}\mid\text{direct})+(1-d)\,P(\text{right}\mid\text{steps})&&\text{total probability}\\
# &\approx d\,a_\text{direct}+(1-d)\,a_\text{steps}&&\textbf{a choice: measure }a\textbf{ with the style forced}
# \end{aligned}$$
#
# Put the trained values into the base model's formula, one after the other. (The formula gives 0.40
# for the measured 0.38; that is its ≈.)

# %% tags=["setup"] jupyter={"source_hidden": true}
# the formula, with the trained values of these names
def changed(*names):
    return mixture(base, trained, names)

# %% jupyter={"source_hidden": true}
# the two orders
pictures.two_ways_up({
    "style first": (changed(), changed("direct"),
                    changed("direct", "forced/steps")),
    "steps first": (changed(), changed("forced/steps"),
                    changed("direct", "forced/steps"))})

# %% [markdown]
# Choosing a style that was there makes half to four fifths of the gain, depending on the order of
# counting (**elicited**). The rest is cleaner steps (**sharpened**). Direct answers did not
# improve: forced, 0.23 before and 0.24 after.
#
# **pass@k** asks for one right answer among $k$. A warning: ten digits are soon guessed. A blind
# guesser is right once in 32 tries with chance $1-0.9^{32}=0.97$. <!-- cited: 0.97 --> So we count
# twice: answers that *end* right, and answers that are *written out*, with every step right.

# %% jupyter={"source_hidden": true}
# your guess
predict("real.5", "32 answers to each of 250 unseen problems. Who has a "
        "right one for more problems?",
        ["trained, far ahead: one answer is right nine times in ten",
         "trained, slightly: it slips less",
         "base, far ahead: it varies more",
         "base, slightly: it could do them all"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.5", "base, slightly: it could do them all",
       "Ending right: the base solves 250 of 250, the trained models 244, "
       "249 and 249. That could be luck with ten digits. Written out: the "
       "base has 249, the trained models again 244, 249 and 249. So it is "
       "not luck. Seed 0 has lost a few problems; the other two are level "
       "with the base. What one answer now does, about ten did before.",
       pictures.many_answers(*(
           solved(runs / "chain_many_answers.json", written)
           for written in (False, True))),
       instead={
           "trained, far ahead: one answer is right nine times in ten":
           "With 32 tries the base has caught up.",
           "trained, slightly: it slips less":
           "It slips less and varies less. At 32 tries the second counts.",
           "base, far ahead: it varies more":
           "The trained models still have 244 to 249.",
       })

# %% [markdown]
# Yue et al. find the base ahead at large $k$ on real models. With longer runs and other data ProRL
# (Liu et al. 2025, [arXiv 2505.24864](https://arxiv.org/abs/2505.24864)) finds the opposite. **To
# claim a new skill, show problems that the base fails at every $k$ you can afford**, and count
# written-out answers. The model you trained above, live:

# %% tags=["trajectory", "nbval-ignore-output"]
after = page.measure("after",
                     lambda: evaluate(student, tokenizer, chain))
for name in ("pass@1", "greedy", "forced/steps", "forced/direct"):
    print(f"{name:15s} {before[name]:.3f} before  {after[name]:.3f} after")
page.expect(
    after["pass@1"] > 0.80, after["greedy"] > 0.80,
    after["forced/steps"] > before["forced/steps"] + 0.1,
    abs(after["forced/direct"] - before["forced/direct"]) < 0.08,
    after["forced/steps/greedy"] < before["forced/steps/greedy"] + 0.01)

# %% [markdown]
# **In plain words:** it chose between things it could do, and made the better one common and clean.
# We saw no new arithmetic. That is one task of our own making, one base model, three seeds, a CPU.
#
# **That is the core of the page.** What follows is practice: reading answers, reading logs, and
# fitting a run on a card.
#
# ## Read the answers
#
# Ten groups of a recorded run, token by token. The colour is the push of the update. On $\log\pi$
# every token of an answer gets the same push, $A/(N L_{\max})$. On a token's *own logit* the push
# arrives times $1-\pi$ (02), so a sure token hardly feels it.

# %%
task("real.t1", rollouts.rollouts_explorer(),
     ("A wrong answer that writes steps, and every step is right.",
      rollouts.right_steps_wrong_end),
     ("Push on its own logit: a wrong answer in which a harmless `wait` is "
      "blamed as hard as the slip.", rollouts.harmless_blamed))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Step 30, prompt 2, answer 4. It read `5+3` where the problem says `5+5`, and solved that one
#    without a slip. Of seed 0's wrong answers after training most are such copies gone wrong
#    ([statements](statements/21_grpo_for_real.ipynb)). A curve would never have told.
# 2. Step 10, prompt 2, answer 2. The update does not know where the slip is. At the logits it hits
#    whatever was *unlikely*: the slip, and a `wait` after a right step. Repair comes from the mean
#    over many answers.
# </details>
#
# ## When it goes wrong
#
# Five recorded runs of this course that failed or limped, each for another reason.

# %%
pictures.five_logs()

# %% jupyter={"source_hidden": true}
# your guess
predict("real.6", "In one of them the learning rate is four times too "
        "large. Which?", ["A", "B", "C", "D", "E"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.6", "B",
       "Mixed groups vanish *while the answers are wrong*: the policy has "
       "settled on something wrong. A grades another thing than it means "
       "(\"is it sorted?\", never \"is it the same list?\"). C tosses the "
       "coin: always mixed. D trains on answers eight steps old, without a "
       "clip. E is GRPO's 1/T: long wrong answers are blamed less a token.",
       instead={
           "A":
           "A's reward rises while pass@1 does not: its grader asks the "
           "wrong question.",
           "C":
           "C never gets anywhere and stays mixed: its reward is a coin.",
           "D":
           "D works for a while on stale answers.",
           "E":
           "E's wrong answers grow.",
       })

# %% [markdown]
# <details><summary>Signatures and suspicions (open it after your guess)</summary>
#
# | signature | first suspicion | then look at |
# |---|---|---|
# | paid up, right down | reward is not what you meant | the answers paid best |
# | mixed and right both down | rate too large | all-wrong groups, half the rate |
# | as mixed at the end as at the start | reward is noise, or pairs wrong | perfect answers: do all earn 1? |
# | ratios far from 1 | old answers, two engines | age of the batch, log-prob gap |
# | longer and not better | divisor $1/T_i$, length paid | length of wrong answers (09) |
# </details>
#
# ## Does it fit my GPU?
#
# Trained in bfloat16, a parameter takes 16 bytes: 2 for the weight, 2 for the gradient, 4 for a
# float32 copy and 8 for AdamW's two moments. While it decodes, the **cache** comes on top: keys and
# values of every token. While it trains, the **activations** do. They are kept for the backward
# pass; **gradient checkpointing** computes them a second time instead.

# %% jupyter={"source_hidden": true}
# your guess
predict("real.7", "0.5B weights on an L4 (24 GB), 512 answers of 300 "
        "tokens a step. Which change slows the step most?",
        ["answers twice as long", "64 answers decoded at once, not 512",
         "gradient checkpointing", "float32 (without TF32), not bfloat16",
         "a reference model for the KL"])

# %% tags=["setup"] jupyter={"source_hidden": true}
# the lower bounds of a step, setting by setting
settings = {"as it is": {}, "twice as long": dict(answer_tokens=600),
            "64 at once": dict(in_flight=64),
            "checkpointing": dict(checkpointing=True),
            "float32": dict(mixed=False),
            "reference": dict(models="verifier, reference")}
least = {name: sum(gpu_budget.compute(**change)["seconds"].values())
         for name, change in settings.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.7", "float32 (without TF32), not bfloat16",
       "At least " + ", ".join(f"{s:.0f} s ({name})"
                               for name, s in least.items())
       + ". Training is bound by operations, and the card does four times "
       "fewer of them in full float32. "
       "Decoding is bound by bytes: every token "
       "reads all weights again, so eight waves read them eight times. "
       "Bounds from data sheets, not measurements.",
       instead={
           "answers twice as long":
           "About twice the work, not more.",
           "64 answers decoded at once, not 512":
           "Eight waves of decoding; training is the larger part.",
           "gradient checkpointing":
           "One more forward pass of four.",
           "a reference model for the KL":
           "One more forward pass, nothing to store.",
       })

# %%
task("real.t2", gpu_budget.gpu_budget_explorer(),
     ("0.5B, answers of 8192 tokens, on a card of 24 GB: make it fit.",
      gpu_budget.long_answers_fit),
     ("1.7B, 300 tokens, 24 GB: make it fit.",
      gpu_budget.larger_model_fits))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Two bars burst, cache and activations, and each has its own cure: 128 or fewer decoded at once,
#    and checkpointing, or one answer trained at a time. Curing one alone shows nothing, the fullest
#    moment is the larger of the two.
# 2. No batch setting helps: 16 bytes times 1.7 billion is more than 24 GB. An optimizer with 8-bit
#    moments does, with few answers at once. For 4B none of these options is enough: even SGD keeps
#    8 bytes a parameter, 32 GB. There one freezes the weights and trains a small factor beside
#    them: LoRA, as below.
# </details>
#
# **What to type on your card**, counted by the same functions; minutes are estimates, not measured:

# %%
print(by_card.table())

# %% [markdown]
# <details><summary>One level deeper: this page on a GPU, and a larger run</summary>
#
# Nobody has run these on a GPU yet; they were tried on a CPU at toy size. On CUDA the page takes
# its plan **by bytes and minutes**: of four presets, up to 25 million weights, the largest that
# takes at most four fifths of the free bytes (counted) and a quarter of an hour (estimated). It
# trains that base first, and falls back to the next plan if bytes run out. The banner says which,
# and why. The first line is this page as a plain script, without Jupyter; the second replays what
# it wrote.
#
# ```
# RLNB_MODE=cuda RLNB_RECORD=page_21_cuda.json python notebooks/text/21_grpo_for_real.py
# RLNB_REPLAY=page_21_cuda.json RLNB_MODE=replay python notebooks/text/21_grpo_for_real.py
# python -m rlnb.training base --preset large --out base_large
# python -m rlnb.training grpo --model base_large --prompts 512 --num-generations 16 --micro-batch 256 --steps 100 --out run_large
# ```
#
# `python -m rlnb.training replay run_large` shows a run again.
# </details>
#
# ## Say it in 60 seconds

# %% [markdown] tags=["card"]
# | GRPO for real | |
# |---|---|
# | sentence | sample, verify, centre, score, weigh, step; what a risen curve means is decided by what the base could do before |
# | formula | $p=d\,a_\text{direct}+(1-d)\,a_\text{steps}$ · on-policy $L=-\operatorname{cov}(A,T)/L_{\max}$ |
# | before training | pass@k, greedy, best prompt, the style forced |
# | beside the curve | three seeds, the base, a coin |
# | picture | pass@k before and after: the lines cross |
# | numbers | greedy 0.26, one symbol written: 1.00 · the style is half to four fifths of the gain · of 250, in 32 written-out answers: 249 before, 244 to 249 after |
# | log | groups in three kinds, length, entropy, gap; never the loss |

# %%
score("real.1", "real.2", "real.3", "real.4", "real.5", "real.6", "real.7")

# %% [markdown]
# ## Exercises
#
# **1 Implement the log** · 12 minutes. Five numbers a step: the shares of groups all right, mixed,
# all wrong; the share of answers cut off; the largest gap between the sampler's and the trainer's
# log-probabilities. Rewards are 0 or 1; `finished` and `mask` are boolean. Return one tensor.
#
# <details><summary>hint</summary>The smallest and the largest reward of a group say which kind it is. And padding holds anything.</details>

# %% tags=["exercise"]
def my_run_log(rewards, num_generations, finished, mask, sampled, scored):
    return ...

check.run_log(my_run_log)

# %% [markdown]
# **2 Derive** · 7 minutes. One logit $z$ decides the style, $d=\sigma(z)$; the accuracies are
# fixed. What is $\partial p/\partial z$? Then say aloud: where is it largest, and what would have
# happened to this run from a base with $d=0.999$? <!-- cited: 0.999 -->
#
# <details><summary>hint</summary>The derivative of σ is σ(1 − σ).</details>

# %% tags=["exercise"]
def my_style_slope(d, direct, steps):
    return ...

check.style_slope(my_style_slope)

# %% [markdown]
# **3 Find the silent bug** · 5 minutes. It pairs answers with problems. Training runs, the loss is
# small, nothing is learned:

# %%
print(check.silent_bug_grpo_for_real.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>For which texts do you know every reward? Call `rewards_of` with them and compare.</details>

# %% tags=["exercise"]
def my_test(rewards_of):
    return ...

check.silent_bug_grpo_for_real(my_test)

# %% [markdown]
# Three experiments to run yourself (a reward that can be gamed, one batch under three objectives,
# sampling at another temperature) are on the [statements page](statements/21_grpo_for_real.ipynb).
#
# ## In the interview
#
# A minute each, aloud, then unfold.
#
# <details><summary><b>Walk me through one step of GRPO training.</b></summary>
#
# Sample, verify, centre, score, weigh, step. P prompts, G answers each from the current policy, at
# temperature 1 over the full vocabulary. One reward per answer, cut-off ones get 0. Minus the
# group's mean. Log-probabilities again with gradient, in one pass. Ratio, clip, mask, average,
# backward, clip the norm, step. With one update per batch the ratio is 1.
# </details>
# <details><summary><b>Reward went from 0.4 to 0.9. What did the model learn?</b></summary>
#
# I cannot say yet. I want the base under its best prompt and decoder, pass@k of both at large k,
# and a random-reward control. If a forced style already solves it, it was elicited; if pass@k was
# high and pass@1 caught up, sharpened; a new skill needs problems the base fails at every
# affordable k. Here the style alone was half to four fifths of the gain, and the base with one
# written symbol had 1.00.
# </details>
# <details><summary><b>Which curves do you look at first?</b></summary>
#
# Held-out accuracy against the base and a control. Then groups all right, mixed and all wrong,
# apart; length and the share cut off; entropy; gradient norm; the gap between sampler and trainer;
# the clipped share if there is more than one update. Then I read answers. Not the loss.
# </details>
# <details><summary><b>Most of your groups are all right. What now?</b></summary>
#
# Stop, or find harder prompts. Such groups cost samples and carry no gradient. Curriculum, filter
# and draw again (11), or drop prompts that stay solved. And check that "all right" is not "all
# hacked".
# </details>
# <details><summary><b>Entropy fell by a factor of eight. Is that a problem?</b></summary>
#
# Not by itself. Choosing what pays lowers it. It is one if groups fall silent while accuracy is
# low, or if pass@k falls. Here accuracy rose, and pass@32 fell a little.
# </details>
# <details><summary><b>Why a control with a random reward?</b></summary>
#
# It shows what is gained without information. With rewards independent of the answer the expected
# gradient is 0, so any systematic gain comes from elsewhere: a bug, clipping, a habit of the base.
# Here all three seeds fell.
# </details>
# <details><summary><b>pass@32 rose to 0.97. What could that be?</b></summary>
#
# Guessing. With ten possible answers a blind guesser has 0.97 at 32 tries. I would count answers
# whose steps are right as well, or plot one minus the guesser's chance beside the curve, and say
# how many different answers the task has.
# </details>
# <details><summary><b>Sampler and trainer disagree on log-probabilities. How much is fine?</b></summary>
#
# In one program at float32 about 1e-5; I would look into 1e-4. Two engines in low precision differ
# more: measure it at the first step, and correct with a truncated weight. A gap that is large at
# once means another temperature, another tokenisation, or stale weights.
# </details>
#
# The long tables, the controls problem by problem, and what the wrong answers are made of:
# [statements 21](statements/21_grpo_for_real.ipynb). The exercises, solved:
# [solutions 21](solutions/21_grpo_for_real.ipynb).
#
# **Next:** this is the last page. The map of all pages is [00](00_start_here.ipynb).
