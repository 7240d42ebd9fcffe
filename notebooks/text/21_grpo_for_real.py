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
# 29 minutes, exercises 29 more · after 08 (GRPO), 10 (Dr. GRPO), 11 (DAPO) · Dr. GRPO, Liu et al.
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
# Two styles: **direct**, `so` and a digit at once, or **steps**, one operation at a time. The third
# answer slips in its first step. The verifier reads one symbol:

# %%
chain = TASKS["chain"]
problem = chain.parse("4+3-8=?")
for text in ("so9", "4+3=7,7-8=9so9", "4+3=1,1-8=9so9", "so8"):
    print(f"{chain.verify(problem, text):.0f}  {text}")

# %% [markdown]
# The third has a wrong step and earns 1. After forty steps of Dr. GRPO on this reward more than
# nine in ten unseen problems are right at the first answer (**pass@1**); before, 0.38. Did it learn
# to calculate? That cannot be seen from the curve. It can be asked of the model *before* training.

# %% jupyter={"source_hidden": true}
# your guess
predict("real.1", "Sampled at temperature 1 the base model is right on "
        "0.38 of unseen problems. And greedy, always the likeliest symbol?",
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
# built that in: of the demonstrations it imitated, 60 % are direct and always right, 40 % show
# steps, and one step in ten is wrong. (Live, the same measurement.)

# %% tags=["trajectory", "nbval-ignore-output"]
model, tokenizer = page.load()
before = page.measure(
    "base", lambda: evaluate(model, tokenizer, chain))  # 250 x 8 answers
for name in ("pass@1", "greedy", "forced/steps", "forced/steps/greedy"):
    print(f"{name:20s} {before[name]:.3f}")
page.expect(0.33 < before["pass@1"] < 0.43,
            before["greedy"] < before["pass@1"] - 0.05,
            before["forced/steps/greedy"] > 0.97,
            0.58 < before["forced/steps"] < 0.73)

# %% [markdown]
# ## The loop, in two cells
#
# All seven boxes of the course, once, on a real network:

# %%
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
# Where the inputs come from: `sample` keeps the cache and returns symbols; `token_logprobs` reads
# prompt and answer in *one* forward pass and has a gradient. `logp.detach()` stands for $\pi_{old}$
# as long as a batch is used once. One step of ours, and one of the package's trainer, from the same
# seed:

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
# What `train` adds is bookkeeping: evaluation, a log, checkpoints, micro-batches. A real run keeps
# the boxes: DeepSeek-R1 reports 512 questions a round with 16 answers each, 16 updates on them, a
# learning rate of 3e-6 (later version of [arXiv 2501.12948](https://arxiv.org/abs/2501.12948)).
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
# Now run it; live, this is half a minute on a CPU.

# %% tags=["trajectory", "nbval-ignore-output"]
student, _ = page.load()
records = page.measure("run", lambda: train(
    student, tokenizer, chain, ZOO["dr_grpo"], page.recipe,
    watch=page.watch(), progress=False))
page.show_run(records)

# %% tags=["trajectory"]
last = [e for e in records if e["record"] == "eval"][-1]
page.expect(last["pass@1"] > 0.80, last["direct"] < 0.05,
            last["mean_length"] > 30, last["entropy"] < 0.10)
assert records[0]["objective"] == repr(ZOO["dr_grpo"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.2", "the share of direct answers",
       "Of its whole way it has gone three quarters; entropy two thirds, "
       "pass@1 a little over half, mixed groups nothing. So the first ten "
       "steps mostly *choose*. Length doubles meanwhile, unpaid: steps are "
       "longer than `so7`.", pictures.first_steps(),
       instead={
           "pass@1 on unseen problems: that is what is paid":
           "It follows, a little later.",
           "entropy: choices become sure before they become right":
           "It falls early too, but not first.",
           "the share of mixed groups: easy problems come first":
           "Those only begin to vanish when answers are right.",
       })

# %% [markdown]
# What to log, and what a healthy run looks like:
#
# | log | TRL's name | here |
# |---|---|---|
# | right on unseen problems | an evaluation of your own | up, then flat |
# | groups all right, mixed, all wrong, **apart** | `frac_reward_zero_std` (lumps two) | mixed, then all right |
# | length, share cut off | `completions/mean_length`, `completions/clipped_ratio` | doubles; 0 cut off |
# | entropy | `entropy` | falls with the choice of style |
# | gradient norm | `grad_norm` | no trend, no jump |
# | gap between sampler and trainer | `sampling/sampling_logp_difference` | below 1e-4 |

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
# $N$ answers, $A_i$ the advantage and $T_i$ the length of answer $i$:
#
# $$\begin{aligned}
# L&=-\frac1N\sum_i\frac1{L_{\max}}\sum_t\rho_{i,t}A_i&&\textbf{a choice: one constant for all lengths (10)}\\
# &=-\frac1{N\,L_{\max}}\sum_i A_i\,T_i&&\text{one update per batch: every }\rho\text{ is }1\\
# &=-\operatorname{cov}(A,T)/L_{\max}&&\text{the mean of }A\text{ is }0
# \end{aligned}$$
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
# Put the trained values into the base model's formula, one after the other:

# %%
def changed(*names):
    return mixture(base, trained, names)

pictures.two_ways_up({
    "style first": (changed(), changed("direct"),
                    changed("direct", "forced/steps")),
    "steps first": (changed(), changed("forced/steps"),
                    changed("direct", "forced/steps"))})

# %% [markdown]
# Between a half and four fifths of the gain, depending on the order in which one counts, is
# choosing a style that was there (**elicited**). The rest is cleaner steps (**sharpened**). Direct
# answers did not improve: forced, 0.23 before and 0.24 after. Nor do they when only *they* are
# paid: the model then stops writing steps and guesses as badly as before
# ([statements](statements/21_grpo_for_real.ipynb)). And what did the gain cost?

# %% jupyter={"source_hidden": true}
# your guess
predict("real.5", "pass@32: is one of 32 sampled answers right? Base "
        "against trained, 250 unseen problems:",
        ["trained far ahead: it is at 0.93 with one answer",
         "trained slightly ahead", "both solve all 250",
         "base slightly ahead"])

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.5", "base slightly ahead",
       "With 32 answers the base solves 250 of 250, the trained models "
       "244, 249 and 249. The curves cross near 11 answers (seed 0) and "
       "near 16. Six lost problems are not noise, one may be. What "
       "one answer now does, eight did before.",
       pictures.many_answers(solved(runs / "chain_many_answers.json")),
       instead={
           "trained far ahead: it is at 0.93 with one answer":
           "With 32 tries the base has caught up.",
           "trained slightly ahead":
           "It has learnt to be right at once, and to vary less.",
           "both solve all 250":
           "Very nearly, and not quite.",
       })

# %% [markdown]
# The debate in small: Yue et al. find the base ahead at large $k$ on real models; with longer runs
# and other data ProRL (Liu et al. 2025, [arXiv 2505.24864](https://arxiv.org/abs/2505.24864))
# finds the opposite. **To claim a new skill, show problems that the base fails at every $k$ you
# can afford.** Ours has none: the base with one written symbol had them all. The model you trained
# above, live:

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
# A task that the base fails is not among them.
#
# ## Read the answers
#
# Ten groups of a recorded run, token by token. The colour is the push of the update. On $\log\pi$
# every token of an answer gets the same, $A/(N L_{\max})$. On the token's *own logit* it arrives
# times $1-\pi$ (02): here nearly all of it on the slip, the 8; a sure token hardly feels it.

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
# | signature | first suspicion | then look at |
# |---|---|---|
# | paid up, right down | reward is not what you meant | the answers paid best |
# | mixed and right both down | rate too large | all-wrong groups, half the rate |
# | always mixed, nothing learned | reward is noise, or pairs wrong | perfect answers: do all earn 1? |
# | ratios far from 1 | old answers, two engines | age of the batch, log-prob gap |
# | longer and not better | divisor $1/T_i$, length paid | length of wrong answers (09) |
#
# ## Does it fit my GPU?
#
# Trained in bfloat16, a parameter takes 2 bytes (weight), 2 (gradient), 4 (a float32 copy, the
# *master*) and 8 (AdamW's two moments): 16. On top, while it decodes, the **cache**: keys and
# values of every token. While it trains, the **activations**, kept for the backward pass;
# **gradient checkpointing** computes them a second time instead.

# %% jupyter={"source_hidden": true}
# your guess
predict("real.7", "0.5B weights on an L4 (24 GB), 512 answers of 300 "
        "tokens a step. Which change slows the step most?",
        ["answers twice as long", "64 answers decoded at once, not 512",
         "gradient checkpointing", "float32 in place of bfloat16",
         "a reference model for the KL"])

# %%
settings = {"as it is": {}, "twice as long": dict(answer_tokens=600),
            "64 at once": dict(in_flight=64),
            "checkpointing": dict(checkpointing=True),
            "float32": dict(mixed=False),
            "reference": dict(models="verifier, reference")}
least = {name: sum(gpu_budget.compute(**change)["seconds"].values())
         for name, change in settings.items()}

# %% tags=["answer"] jupyter={"source_hidden": true}
# the answer
reveal("real.7", "float32 in place of bfloat16",
       "At least " + ", ".join(f"{s:.0f} s ({name})"
                               for name, s in least.items())
       + ". Training is bound by operations, and the card does four times "
       "fewer of them in float32. Decoding is bound by bytes: every token "
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
     ("1.7B, 300 tokens, 24 GB: make it fit. Then try 4B.",
      gpu_budget.larger_model_fits))

# %% [markdown]
# <details><summary>What the tasks show</summary>
#
# 1. Two bars burst, cache and activations, and each has its own cure: 128 or fewer decoded at once,
#    and checkpointing, or one answer trained at a time. Curing one alone shows nothing, the fullest
#    moment is the larger of the two.
# 2. No batch setting helps: 16 bytes times 1.7 billion is more than 24 GB. An optimizer with 8-bit
#    moments does, with few answers at once. 4B never fits: even SGD keeps 8 bytes a parameter, 32
#    GB. There one freezes the weights and trains a small factor beside them: LoRA, as below.
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
# | numbers | greedy 0.26, one symbol written: 1.00 · style alone 0.40 → 0.66 · pass@32: 250 of 250 before, 244 to 249 after |
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
# **3 Find the silent bug** · 10 minutes. It pairs answers with problems. Training runs, the loss is
# small, all groups are mixed, nothing is learned:

# %%
print(check.silent_bug_grpo_for_real.source)

# %% [markdown]
# Write a test that this function fails and the right one passes.
#
# <details><summary>hint</summary>For which texts do you know every reward?</details>

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
# affordable k. Here style alone gave 0.66, and the base with one written symbol had 1.00.
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
# <details><summary><b>Why a wrong-verifier control?</b></summary>
#
# It shows what is gained without information. With rewards independent of the answer the expected
# gradient is 0, so any systematic gain comes from elsewhere: a bug, clipping, a habit of the base.
# Here all three seeds fell.
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
