# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 19 · statements: systems
#
# True, false, or does it depend? Press before you run the cell below a sentence. In any order.
# After the statements come what did not fit the lesson, [19 · Systems](../19_systems.ipynb):
# caches, number formats, the corrections side by side, a cluster in small.

# %% tags=["setup"]
import copy
import torch
from transformers import DynamicCache
from rlnb.classroom import explorers
from rlnb.classroom.lesson import settle, statement
from rlnb.classroom.pictures import systems as pictures
from rlnb.classroom.pictures.recorded_runs import final, records
from rlnb.shipped import data_folder
from rlnb.toys import serving, split, two_workers
from rlnb.toys.rollout_queue import lengths, simulate
from rlnb.toys.two_engines import RULES, engines, judge, learn
from rlnb.training.models.loading import load
from rlnb.training.studies import cluster_memory, engine_gap
torch.set_default_dtype(torch.float64); torch.set_num_threads(1)
recorded = engine_gap.recorded()

# %% [markdown]
# ## Memory

# %% [markdown]
# ### S04 · how many models without KL
#
# Full copies in memory, and their bytes per parameter. A popular table says two for all four
# methods.

# %%
statement("S04")

# %% tags=["claim:S04"]
table = {"PPO, reward model": (2, 2), "GRPO, reward model": (1, 2),
         "GRPO, verifier": (1, 1), "no KL, reward model": (1, 1),
         "no KL, verifier": (1, 0)}
for name, (trained, frozen) in table.items():
    size = cluster_memory.memory_bytes(1, trained, frozen)
    print(f"{name:20s} models {trained + frozen}, bytes {size:2.0f}, "
          f"with the sampler's copy {size + 2:2.0f}, "
          f"7B: {7 * size:3.0f} GB")
sizes = [cluster_memory.memory_bytes(1, *m) for m in table.values()]
assert sizes == [36, 20, 18, 18, 16]

# %%
settle("S04", "false")

# %% [markdown]
# The same table corrected, method by method. "Two" is fair for GSPO run with a KL: its paper leaves
# the term out "for brevity", and a public configuration has one.
#
# | | policy | critic | reference | reward model | old policy |
# |---|---|---|---|---|---|
# | PPO (RLHF) | trained | trained | frozen | frozen | log-probs only |
# | GRPO, first paper | trained | – | frozen | frozen | log-probs only |
# | GRPO, verifier | trained | – | frozen if β > 0 | – | log-probs only |
# | Dr. GRPO, DAPO, CISPO | trained | – | – | – or frozen | log-probs only |
# | GSPO | trained | – | frozen if β > 0 | – or frozen | log-probs only |
#
# What is often counted as a fifth model is the sampler's copy, 2 bytes, not a π_old of its own.

# %% [markdown]
# ### S07 · AdamW's two moments
#
# Beside which copy of the parameters?

# %%
statement("S07")

# %% tags=["claim:S07"]
for kind, master in ((torch.float32, 0), (torch.bfloat16, 4)):
    w = torch.zeros(1000, dtype=kind, requires_grad=True)
    kept = torch.zeros(1000, dtype=torch.float32, requires_grad=True)
    adam = torch.optim.AdamW([kept])
    kept.grad = torch.ones_like(kept)
    adam.step()
    moments = sum(adam.state[kept][k].nbytes
                  for k in ("exp_avg", "exp_avg_sq"))
    times = moments / w.nbytes
    total = (2 * w.nbytes + moments) // 1000 + master
    print(f"{str(kind)[6:]:9s} moments {moments // 1000} bytes, "
          f"{times:.0f} times the weights; all of it {total}")
    assert (moments, total) == (8000, 16)

# %%
settle("S07", "it depends")

# %% [markdown]
# ## What ZeRO sends
#
# Four cards, 128 micro-batches a step, in *sizes of the model*. At stage 0 a card sends its
# gradient to be summed (*reduce-scatter*), and then its part of the sums to the others
# (*all-gather*). At stages 0 and 1 it adds up its micro-batches in a gradient of its own. At stage
# 2 it has room for its own piece only: the rest leaves after every micro-batch. Stage 3 also
# fetches the weights, before each forward and each backward pass. Counted on a ring of cards that
# add up.

# %%
from rlnb.toys import ring

cards, micro, whole = 4, 128, 2 * cluster_memory.QWEN_7B.parameters
print(f"stage   1 micro-batch   {micro} micro-batches")
for stage in range(4):
    once, sent = (ring.step(stage, cards, micro=m)[1] for m in (1, micro))
    print(f"{stage}     {once * cards / (cards - 1):10.0f}"
          f"{sent * cards / (cards - 1):18.0f}")
computing = 128 * 8192 * 8 * cluster_memory.QWEN_7B.parameters / 4e14
print(f"\nstage 3: computing {computing:.0f} s; traffic in a box "
      f"{sent * whole / 450e9:.0f} s, over a network "
      f"{sent * whole / 50e9:.0f} s")

# %% [markdown]
# The first column is why one says that stage 2 costs nothing.
#
# * Computing: 8 operations a parameter and token (2 forward, 4 backward, 2 for layers that are
#   computed anew) · 7.6e9 parameters · 128 answers of 8,192 tokens, at 4e14 a second (we assume
#   40 % of an H100's peak).
# * Traffic: 384 · 15.2 GB · 3/4 (a card keeps its own quarter), at 450 GB/s inside a box, 50 GB/s
#   over a network.
# * So a micro-batch of stage 3 hides its traffic from 500 tokens on in a box, from 4,500 over the
#   network. If the answers have 1,160 tokens on average, computing takes 23 s: still enough in a
#   box.
#   <!-- cited: 8, 4, 7.6e9, 40, 384, 15.2, 450, 50, 500, 4500, 1160, 23, 88 -->
# * Many trainers sum the micro-batches' gradients in float32. Then stage 1 needs 88 GB on each of
#   the four cards, and in the lesson's task stage 2 is the smallest that fits.

# %% [markdown]
# ## Gradients that are scaled

# %% [markdown]
# ### S05 · one all-reduce too many
#
# Two processes, gloo. Losses w and 2w: the gradient that both should use is 1.5.

# %%
statement("S05")

# %% tags=["claim:S05"]
found = two_workers.measure()
for name, value in found.items():
    print(f"{name:38s} {value:.1f}")
assert found["a second mean"] == found["once, mean"] == 1.5
assert found["a sum too many"] == 3.0 and found["two sums too many"] == 6.0
assert found["loss summed inside the graph"] == 3.0
assert found["a detached loss summed for the log"] == 1.5

# %%
settle("S05", "it depends")

# %% [markdown]
# ### S06 · a gradient that is 64 times too large
#
# The same least-squares problem with the loss as it is, and 64 times as large. How far apart do the
# weights get on the way?

# %%
statement("S06")

# %% tags=["setup"]
def way(scale, kind, clip=None):
    """(steps, 3) weights on the way, minibatches of 8."""
    dice = torch.Generator().manual_seed(0)
    w = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    step = (torch.optim.AdamW([w], lr=0.02, weight_decay=0.0)
            if kind == "AdamW" else torch.optim.SGD([w], lr=0.02))
    seen = []
    for _ in range(40):
        X = torch.randn(8, 3, generator=dice)
        y = X @ torch.tensor([0.3, 0.7, -1.0])
        step.zero_grad()
        (scale * (X @ w - y).square().mean() / 8).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_([w], clip)
        step.step()
        seen.append(w.detach().clone())
    return torch.stack(seen)

# %% tags=["claim:S06"]
apart = {}
for kind, clip in (("AdamW", None), ("AdamW", 1.0), ("SGD", None)):
    far = (way(1, kind, clip) - way(64, kind, clip)).abs().max().item()
    apart[kind, clip] = far
    word = f"{far:.0e}" if far < 1e-3 else f"{far:.3f}"
    print(f"{kind}, clipped at {clip}: {word if far < 100 else 'diverges'}")
assert apart["AdamW", None] < 1e-6
assert 0.01 < apart["AdamW", 1.0] < 0.5
assert apart["SGD", None] > 0.5

# %%
settle("S06", "it depends")

# %% [markdown]
# AdamW divides by the size of what it has seen, so the factor cancels, up to its eps. Norm clipping
# comes before that: at 64 times it binds on every batch, at 1 only on the large ones.

# %% [markdown]
# ## Numbers

# %% [markdown]
# ### S10 · the order of a sum

# %%
statement("S10")

# %% tags=["claim:S10"]
large = torch.tensor(1e8, dtype=torch.float32)
one = torch.tensor(1.0, dtype=torch.float32)
left, right = (0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3)
print("(0.1 + 0.2) + 0.3 =", left, "and 0.1 + (0.2 + 0.3) =", right)
print("float32: 1e8 + 1 - 1e8 =", int((large + one) - large))
print("         1e8 - 1e8 + 1 =", int((large - large) + one))
def in_order(x):
    """float32, one term after the other, along the last axis."""
    total = torch.zeros(x.shape[:-1], dtype=torch.float32)
    for term in x.unbind(-1):
        total = total + term
    return total

dice = torch.Generator().manual_seed(0)
x = torch.randn(300, generator=dice, dtype=torch.float32)
orders = {in_order(x[torch.randperm(300, generator=dice)]).item()
          for _ in range(50)}
print(f"one sum in 50 orders: more than 10 results: {len(orders) > 10}")
assert left != right and (large + one) - large == 0 and len(orders) > 10

# %%
settle("S10", "true")

# %% [markdown]
# An atomic addition takes its operands in the order of arrival. So it is one way in which an order,
# and with it the result, can change.

# %% [markdown]
# ### S11 · the same call twice, the same row in another batch
#
# A matrix product of a row: called again; and alone against in a batch of 64.

# %%
statement("S11")

# %% tags=["claim:S11"]
dice = torch.Generator().manual_seed(0)
X = torch.randn(64, 512, generator=dice, dtype=torch.float32)
W = torch.randn(512, 512, generator=dice, dtype=torch.float32)

def fixed_order(X):
    """The sum over k one term after the other, whatever the batch."""
    out = torch.zeros(len(X), 512, dtype=torch.float32)
    for k in range(512):
        out += X[:, k, None] * W[k]
    return out

alone = torch.cat([X[i:i + 1] @ W for i in range(64)])
again = all(torch.equal(X @ W, X @ W) for _ in range(20))
gap = (alone - X @ W).abs().max().item()
steady = torch.equal(fixed_order(X), torch.cat(
    [fixed_order(X[i:i + 1]) for i in range(64)]))
print("21 calls alike, bit for bit:", again)
print("alone against in a batch of 64, at most 0.001 apart:", gap < 1e-3)
print("a kernel with a fixed order, bit for bit:", steady)
assert again and steady and gap < 1e-3

# %%
settle("S11", "it depends")

# %% [markdown]
# The library picks its kernel by the shape, so a row's sum may be taken in another order when the
# batch is another (on most machines the gap above is not zero; how large depends on the machine). A
# server's batch is whoever asks at that moment. Batch-invariant kernels cost speed and remove it.

# %% [markdown]
# ### S16 · is it the scheduler?
#
# One row's sum, in float32. The batch it stands in has 1 to 32 rows, as under continuous batching.
# One kernel splits the sum into more pieces when the batch is small, the other always into 8.

# %%
statement("S16")

# %% tags=["claim:S16"]
def log_probs(rows, pieces):
    """log softmax of the first of 16 logits; sums in pieces."""
    parts = (rows[:, None] * head).view(len(rows), 16, pieces, -1)
    logits = in_order(in_order(parts))
    return logits.double().log_softmax(1)[:, 0]

coin = torch.Generator().manual_seed(2)
head = torch.randn(16, 512, generator=coin, dtype=torch.float32)
rows = torch.randn(50, 512, generator=coin, dtype=torch.float32)
kinds = {"by the batch": lambda n: 32 // n, "always 8": lambda n: 8}
spread = {}
for name, pieces in kinds.items():
    seen = torch.stack([log_probs(rows, pieces(n))
                        for n in (1, 2, 4, 8, 16, 32)])
    spread[name] = (seen.max(0).values - seen.min(0).values).max().item()
    print(f"pieces {name}: log-probs differ: {spread[name] > 0}")
assert 0 < spread["by the batch"] < 1e-3 and spread["always 8"] == 0

# %%
settle("S16", "it depends")

# %% [markdown]
# ### S09 · INT8 or FP8
#
# One scale per tensor, the largest value to the end of the range. Relative error on Gaussian
# numbers; share set to zero of numbers whose size spreads over many powers of ten, like gradients.

# %%
statement("S09")

# %% tags=["setup"]
def rounded(x, kind):
    if kind == "INT8":
        scale = x.abs().max() / 127
        return (x / scale).round() * scale
    form = {"E4M3": torch.float8_e4m3fn, "E5M2": torch.float8_e5m2}[kind]
    scale = x.abs().max() / torch.finfo(form).max
    return (x / scale).to(form).float() * scale

def apart(x, kind):
    return ((rounded(x, kind) - x).norm() / x.norm()).item()

# %% tags=["claim:S09"]
dice = torch.Generator().manual_seed(0)
gauss = torch.randn(100_000, generator=dice).float()
heavy = gauss * (3 * torch.randn(100_000, generator=dice)).exp().float()
spike = gauss.clone()
spike[0] = 20.0
errors, zeros = {}, {}
for kind in ("INT8", "E4M3", "E5M2"):
    errors[kind] = apart(gauss, kind)
    zeros[kind] = (rounded(heavy, kind) == 0).double().mean().item()
    print(f"{kind}: error {errors[kind]:.3f}, with one value of 20 "
          f"{apart(spike, kind):.3f}, heavy tails set to zero "
          f"{100 * zeros[kind]:.1f} %")
blocks = torch.cat([rounded(part, "INT8") for part in heavy.split(32)])
share = 100 * (blocks == 0).double().mean()
print(f"INT8, a scale for every 32 numbers: {share:.0f} % set to zero")
assert errors["INT8"] < errors["E4M3"] < errors["E5M2"]
assert zeros["INT8"] > 0.9 > zeros["E4M3"] > 0.3 and zeros["E5M2"] < 0.01

# %%
settle("S09", "it depends")

# %% [markdown]
# ## Time

# %% [markdown]
# ### S14 · the slowest answer
#
# 256 answers at once, lognormal lengths with mean 1, 400 draws. Share of the slots' time that is
# used.

# %%
statement("S14")

# %% tags=["claim:S14"]
use = {}
for tail in (0.3, 1.0):
    drawn = [sorted(lengths(256, tail, seed)) for seed in range(400)]
    longest = sum(d[-1] for d in drawn) / 400
    use[tail] = sum(sum(d) / 256 / d[-1] for d in drawn) / 400
    print(f"std of log {tail}: longest {longest:.1f}, "
          f"used {100 * use[tail]:.0f} %")
cut = [[min(x, d[-4]) for x in d] for d in drawn]       # 3 of 256
used = sum(sum(d) / 256 / d[-1] for d in cut) / 400
print(f"the longest 1 % cut: {100 * used:.0f} %")
assert use[1.0] < 0.12 < use[0.3] and used > 1.5 * use[1.0]

# %%
settle("S14", "true")

# %% [markdown]
# ### S12 · how old may data be
#
# The small model along a training run: the version of step s writes 512 answers, those of 1, 2, 4
# and 8 steps later score them. Effective share of the answers' weights, twelve measurements each.
# And what training on answers of that age gave.

# %%
statement("S12")

# %% tags=["claim:S12"]
middle = {}
for lag in engine_gap.LAGS:
    shares = sorted(x["effective share"] for seed in engine_gap.SEEDS
                    for x in recorded[f"lags, seed {seed}"][str(lag)])
    middle[lag] = shares[len(shares) // 2]
    print(f"{lag} steps: lowest {shares[0]:.2f}, median {middle[lag]:.2f}")
ends = {0: final("chain_stale_0")} | {
    lag: final(f"chain_stale_{lag}_no_clip") for lag in (1, 4, 8)}
for lag, values in ends.items():
    print(f"trained {lag} steps late: pass@1", values)
assert middle[1] > middle[2] > middle[4] > middle[8] > 0.5
assert max(ends[4] + ends[8]) < min(ends[0])

# %%
settle("S12", "it depends")

# %%
pictures.learning_by_time(
    "A line is a seed. Right: pass@1 at the end, seeds 0, 1, 2, each from "
    "400 answers to 100 held-out problems.")

# %% [markdown]
# Now and then one answer has most of the weight: the lowest share at 1 step. Longer answers and
# larger rates move all of these numbers; published recipes run from 1 step (the default of
# prime-rl's trainer config) to 8 (OLMo 3, in the open-instruct scripts of December 2025).

# %% [markdown]
# ### S13 · a cache from old weights
#
# The small model and a slightly disturbed copy, "the next version". Half an answer is read by the
# old one; the new one goes on with that cache. Log-probs of the second half.

# %%
statement("S13")

# %% tags=["setup"]
torch.set_default_dtype(torch.float32)
old, tokenizer = load(data_folder() / "model")
torch.set_default_dtype(torch.float64)
new, dice = copy.deepcopy(old), torch.Generator().manual_seed(0)
with torch.no_grad():
    for p in (p for p in new.parameters() if p.dim() == 2):
        noise = torch.randn(p.shape, generator=dice, dtype=torch.float32)
        p.add_(0.02 * p.std() * noise)
text = "6+4*7-4=?4*7=28,6+28=34"
ids = torch.tensor([tokenizer(text).input_ids])

@torch.no_grad()
def second_half(reads, writes):
    cache, half = DynamicCache(config=old.config), ids.shape[1] // 2
    reads(ids[:, :half], past_key_values=cache, use_cache=True)
    out = writes(ids[:, half:], past_key_values=cache, use_cache=True)
    every = out.logits.double().log_softmax(-1)[0, :-1]
    return every.gather(1, ids[0, half + 1:, None])[:, 0]

# %% tags=["claim:S13"]
pure_old, pure_new = second_half(old, old), second_half(new, new)
mixed = second_half(old, new)
to_old, to_new = ((mixed - p).abs().max().item()
                  for p in (pure_old, pure_new))
print(f"mixed against old {to_old:.2f}, against new {to_new:.2f}, "
      f"old against new {(pure_old - pure_new).abs().max():.2f}")
assert to_old > 0.05 and to_new > 0.05
assert (second_half(new, new) - pure_new).abs().max() == 0

# %%
settle("S13", "true")

# %% [markdown]
# ### S15 · what each buys
#
# 1,024 answers, mean 92 tokens, longest 1,000. First slots, then memory, then a shared prompt.

# %%
statement("S15")

# %% tags=["claim:S15"]
sizes = [int(x) for x in (lengths(1024, 1.0) * 100).round().clip(1, 1000)]
waiting = serving.in_batches(sizes, 64)
refilled = serving.serve(sizes, 10**9, page=16, slots=64).steps
print(f"64 slots: in batches {waiting}, free slots refilled {refilled}")
whole = serving.serve(sizes, 8192, longest=1000)
paged = serving.serve(sizes, 8192, page=16, slots=64)
print(f"room for 8,192 tokens: reserved {whole.steps} steps, "
      f"{whole.in_flight:.0f} in flight; paged {paged.steps}, "
      f"{paged.in_flight:.0f}; written twice {paged.recomputed}")
group = [[("prompt", k) for k in range(200)] + [(g, k) for k in range(n)]
         for g, n in enumerate(sizes[:16])]
plain, tree = sum(map(len, group)), serving.tree_tokens(group)
print(f"16 answers to one prompt of 200: {plain} tokens, as a tree {tree}")
assert refilled < waiting / 3 and paged.steps < whole.steps / 3
assert plain - tree == 15 * 200

# %%
settle("S15", "true")

# %% [markdown]
# Pages of 1 token waste nothing and need a longer table; pages of 256 waste the end of every
# answer. If too many answers begin, some must give their pages back and write again:

# %%
for page in (1, 16, 64, 256):
    for slots in (64, 10**6):
        one = serving.serve(sizes, 8192, page=page, slots=slots)
        limit = "64 slots" if slots == 64 else "no limit"
        print(f"page {page:3d}, {limit}: "
              f"{one.steps:5d} steps, memory used {one.used:.0%}, "
              f"written twice {one.recomputed:,}")

# %% [markdown]
# ### How many cards should write?
#
# So many that writing takes as long as training. The lesson's 7B model: a card writes 64 answers of
# 8,192 tokens in 74 s, 512 of them take 592 card-seconds. Training on them takes 639, without a
# reference. Of sixteen H100s eight write, 74 s, and eight train, 80 s. Sending the new weights, 15
# GB at 50 GB/s, takes 0.3 s. Writing is counted at the memory's full speed, training at 40 % of the
# peak. All answers are full here; with the lesson's lengths, most of them short, the caches are
# smaller and writing is faster, two cards to three. So measure yours, and give the slower side
# cards.
# <!-- cited: 7, 74, 592, 639, 80, 15, 50, 0.3, 40 -->

# %% [markdown]
# ## Splitting a model

# %% [markdown]
# ### S20 · which axis each one splits
#
# A two-layer network on 8 tokens, whole, and cut five ways. Plus attention over a context cut in
# two.

# %%
statement("S20")

# %% tags=["setup"]
dice = torch.Generator().manual_seed(0)
def draw(*shape):
    return torch.randn(*shape, generator=dice)

x, up, down = draw(8, 16), draw(16, 32), draw(32, 16)
q, k, v = draw(4, 16), draw(10, 16), draw(10, 16)
expert = torch.tensor([0, 1, 0, 1, 1, 0, 0, 1])   # who works on a token

def by_experts():
    """Tokens sent to their expert, computed there, and put back."""
    back = torch.empty(8, 16)
    for e, second in enumerate((down, -down)):
        back[expert == e] = (x[expert == e] @ up).relu() @ second
    return back

def by_context():
    """Attention over the first and the last five, joined."""
    parts = [((q @ a.T).logsumexp(1), (q @ a.T).softmax(1) @ b)
             for a, b in zip(k.split(5), v.split(5))]
    share = torch.stack([p[0] for p in parts]).softmax(0)
    return sum(s[:, None] * p[1] for s, p in zip(share, parts))

# %% tags=["claim:S20"]
whole = (x @ up).relu() @ down
middle_layer = (x @ up).relu()                    # sent to the next GPU
pairs = {
    "data: rows of x": (whole, torch.cat(
        [(part @ up).relu() @ down for part in x.split(4)])),
    "tensor: columns, then rows": (whole, sum(
        (x @ c).relu() @ r
        for c, r in zip(up.split(16, 1), down.split(16, 0)))),
    "pipeline: layers": (whole, torch.cat(
        [part @ down for part in middle_layer.split(2)])),
    "expert: tokens by router": (
        torch.where(expert[:, None] == 0, whole, -whole), by_experts()),
    "context: keys and values": ((q @ k.T).softmax(1) @ v, by_context()),
}
for name, (one_piece, in_parts) in pairs.items():
    gap = (one_piece - in_parts).abs().max()
    print(f"{name:28s} equal to the whole: {bool(gap < 1e-12)}")
    assert gap < 1e-12

# %%
settle("S20", "true")

# %% [markdown]
# What each one sends: data parallel the gradients (once a step), tensor parallel two activations
# per layer and direction, pipeline one activation between stages, context parallel keys and values,
# expert parallel tokens to their experts and back (all-to-all). ZeRO is data parallel with the
# state cut up.

# %% [markdown]
# ### The queue in milliseconds
#
# What a token costs a card in the lesson's queue, 7.6e9 parameters on an H100:
# <!-- cited: 7.6e9, 15, 3.35, 4.5, 1160, 1570, 5.8, 1.7, 6.3, 8, 9.7, 3.2, 1.4 -->
#
# * The weights are 15 GB, and memory moves 3.35 TB/s: 4.5 ms a token for one slot.
# * If the longest of 64 answers has 8,192 tokens, the mean has some 1,160, and an answer that is
#   being written holds 1,570 on average (long ones are met more often). That is 5.8 GB of cache for
#   64 slots, 1.7 ms: together 6.3 ms, 1.4 times as much as for one.
# * Training on one token takes a card 8 · 7.6e9 / 4e14 seconds, on one token of each of 64 answers
#   9.7 ms. With three cards it takes 3.2: about half as long as writing, as in the queue.

# %% [markdown]
# ### 72 billion parameters
#
# Training takes 16 · 72.7 = 1,163 GB: with ZeRO 3 on 32 cards 36 GB each. The engine's copy, 145
# GB, no longer fits a card. So four cards share it (*tensor parallel*): each keeps a quarter of
# every matrix and of the KV heads, 36 GB and 82 KB a token, and they add up their results twice a
# layer, over NVLink. If the engine may use 90 % of the cards, while the trainer is offloaded, 53
# answers of 8,192 tokens fit on the four. When the cache is full, the engine stops the newest
# answer, frees its cache and computes it anew later (*preemption*): put that in the
# log. <!-- cited: 16, 72.7, 1163, 32, 36, 145, 82, 90, 53 -->

# %% [markdown] tags=["cited:S19"]
# ### S19 · which framework when
#
# A report, not something a cell can decide; read the versions you pin.
#
# | | strength | look elsewhere when |
# |---|---|---|
# | TRL | one GPU to a node, every method as an option, short code | hundreds of GPUs, own rollout services |
# | Unsloth | one small GPU, adapters, few bytes | full fine-tuning on many nodes |
# | verl | many nodes, FSDP or Megatron, vLLM or SGLang, HybridFlow ([arXiv 2409.19256](https://arxiv.org/abs/2409.19256)) | a first experiment |
# | AReaL | fully asynchronous with a limit on age ([arXiv 2505.24298](https://arxiv.org/abs/2505.24298)) | you must stay on-policy |
# | slime | Megatron and SGLang joined, large mixtures of experts | other backends |
#
# Choose by scale, by synchronous or not, and by the backend that your model already runs on.

# %% [markdown]
# ## The corrections side by side
#
# The lesson's toy, exact: bias and noise of one answer's gradient in lengths of the true one,
# tokens dropped by the sign of A, root mean square error of a batch of 64, 512 and 16,384.

# %%
both = engines(0.2)
verdicts = {rule: judge(both, rule) for rule in RULES}
print("20 % of the prefixes   bias  noise  dropped A>0, A<=0"
      "    64   512 16,384")
for rule, one in verdicts.items():
    print(f"{rule:23s} {one.bias:.3f} {one.noise:5.2f}"
          f" {one.dropped_good:9.1%} {one.dropped_bad:6.1%}"
          f" {one.error(64):9.3f} {one.error(512):.3f}"
          f" {one.error(16384):.3f}")
assert verdicts["weight of the answer"].bias < 1e-12
assert min(verdicts, key=lambda r: verdicts[r].error(16384)) \
    == "weight of the answer"

# %%
pictures.bias_and_noise(verdicts, "Left is unbiased, low is quiet. Nothing "
                        "is in the lower left corner.")

# %% [markdown]
# Trained for 60 exact steps: mean reward at the end, mean of twenty policies and its standard
# error, three learning rates. The gap stays on the same prefixes, or is drawn anew.

# %%
for lasting in (True, False):
    print("same prefixes" if lasting else "new ones every step")
    for rule in RULES if lasting else list(RULES)[:7]:
        ends = [learn(rule, 0.2, rate=r, draws=10, lasting=lasting)[:, -1]
                for r in (2.0, 4.0, 8.0)]
        print(f"  {rule:23s}" + "  ".join(
            f"{e.mean():.2f} +- {e.std() / 10 ** 0.5:.2f}" for e in ends))

# %% [markdown]
# * **Keeps:** TIS every token, cut at 2. IcePop and the band those near 1. DPPO and prime-rl also
#   those far off whose push brings the two together. TRL's default whole answers.
# * **Drops:** as the table counts. The masks by sign drop far fewer good tokens than bad ones.
# * **Biases:** all but the weight of the answer. A token's own weight repairs the choice of the
#   token and not how often its prefix was reached.
# * A sequence mask in the sense of DeepSeek-V3.2 drops an answer with A < 0 whose mean log gap is
#   too large; it is the part `sequence_mask` of the composer (page 14).

# %% [markdown]
# IcePop drops four kinds of push: on tokens above the band or below it, with A > 0 or A < 0. Sixty
# policies by exact gradients; which kind, given back, leaves none below 0.8?

# %% tags=["explorer"]
explorers.engine_rules_explorer()

# %% [markdown]
# Above the band with A < 0: wrong answers that the policy writes often and the engine seldom. In
# the policies left behind, at least 95 % <!-- cited: 95 --> of the wrong answers hold such a token.

# %% [markdown]
# ### What a batch misses
#
# The lesson's small mixture, with flips, answers of 1,000 tokens: which answers make E[w²], where
# hardly any counts? Leave out every token with a weight above 20, over all answers.

# %%
from rlnb.toys.router import RouterPolicy
from rlnb.toys.router_answers import chance_without, exact_share

router = RouterPolicy(seed=0)
log_pi, log_mu = router.table(), router.rounded().table()
rare = log_pi - log_mu > torch.tensor(20.0).log()
mass = {of: chance_without(table, rare, 1000)
        for of, table in (("pi", log_pi), ("mu", log_mu))}
kept = log_pi.masked_fill(rare, -torch.inf)
left = mass["pi"]**2 * exact_share(kept, log_mu, [1000])[1000]
print("answers of 1,000 tokens that hold such a token:")
print(f"  {100 * (1 - mass['pi']):.1f} % of pi's, "
      f"{100 * (1 - mass['mu']):.3f} % of the engine's")
print(f"all answers, share that counts: with them "
      f"{exact_share(log_pi, log_mu, [1000])[1000]:.4%}, "
      f"without them {left:.0%}")

# %% [markdown]
# One of π's answers in a hundred makes nearly all of E[w²], and almost all of that is made by
# answers with three such tokens or more, which no run will meet. About one batch of 512 in fourteen
# holds one such answer, which then rules it; the others look calm. Giving such tokens less weight
# costs little here. (The flips of a large mixture may be smaller.) <!-- cited: 14 -->

# %% [markdown]
# ### Who is left behind?
#
# 300 policies of the same toy learn by gradient ascent for 240 steps of 16 answers, each from its
# own engine. A *mild* engine flips 20 % of the prefixes: their logits move by a std of 1.5. A
# *harsh* one flips all, by a std of 2.5. The flips last for the whole run. Behind: a reward below
# 0.8 at the end.

# %%
from rlnb.classroom import left_behind

kept = left_behind.recorded()
mild, harsh = (kept[name]["the whole run"] for name in
               ("mild: 20 % flipped", "harsh: all flipped, far"))
print("behind, of 300          mild  harsh")
for rule in left_behind.RULES:
    print(f"{rule:24s}{mild[rule]['lost'][1]:4d}"
          f"{harsh[rule]['lost'][1]:7d}")
print("\nharsh, one side of a cap at 2 alone:")
for rule, count in left_behind.halves().items():
    print(f"{rule:24s}{count:11d}")
print("\nharsh, after 240 and 2,000 steps:")
for rule, counts in left_behind.longest().items():
    print(f"{rule:24s}{counts[0]:4d}{counts[1]:7d}")

# %% [markdown]
# * With the mild engine no correction was needed.
# * A cap by token harms by what it lets through below 1. If every prefix is flipped, an answer that
#   the engine seldom writes may have the weights 1/4, 8, 1/2 and 20; their product is 20, so each
#   token is due 20 times the push. TIS gives 1/4, 2, 1/2, 2, the capped answer 2 to each, IcePop 0,
#   0, 1/2, 0. <!-- cited: 4, 8, 20, 0 -->
# * After 2,000 steps most have caught up. IcePop shuts policies out.
# * The exact weight leaves nobody behind, however noisy: a quarter of all answers is right, and
#   finding one is enough. A network whose weights all answers share would feel the noise.
#
# All rules have one learning rate, chosen for none of them. By chance a count of 31 varies by 5,
# one of 120 by 8. Do the flips have to last? Find a setting in which the capped answer leaves more
# behind than no correction. <!-- cited: 5, 8, 120 -->

# %% tags=["explorer"]
explorers.which_rule_explorer()

# %% [markdown]
# With the harsh engine drawn anew in every step: no correction 2, TIS 24, the capped answer 36,
# after 60 steps; after 240 nobody under any rule. An answer that one step's engine seldom writes,
# another step's engine writes often. <!-- cited: 2, 24, 36 -->

# %% [markdown]
# ### The last layer in float32
#
# Of the gap between a bfloat16 engine and a float32 scorer, how much is made by the last rounding
# alone? The small model in float32; only its logits are rounded.

# %%
torch.set_default_dtype(torch.float32)
from rlnb.training.sampling import scoring, prompts, sampler
from rlnb.training.tasks import TASKS
from rlnb.training.tasks.task import held_out
texts = [p.prompt for p in held_out(TASKS["chain"], 32)]
rollout = sampler.sample(
    old, prompts.encode_prompts(tokenizer, texts, task=TASKS["chain"]), 16,
    sampler.Sampling(), eos_id=tokenizer.eos_token_id,
    pad_id=tokenizer.pad_token_id,
    generator=torch.Generator().manual_seed(0))
with torch.no_grad():
    logits = scoring.teacher_forced_logits(old, rollout, torch.arange(512))
torch.set_default_dtype(torch.float64)
chosen = rollout.completion_ids[:, :logits.shape[1], None]
mask = rollout.completion_mask[:, :logits.shape[1]]
def of_token(z):
    return z.double().log_softmax(-1).gather(-1, chosen)[..., 0][mask]
head = (of_token(logits.bfloat16()) - of_token(logits)).std()
whole = recorded["formats"]["bfloat16"]["std token"]
print(f"all in bfloat16: {whole:.4f}; only the logits: {head:.4f}, "
      f"that is {100 * (head / whole) ** 2:.0f} % of the variance")

# %% [markdown]
# So a float32 last layer removes a good part, and it is cheap. MiniMax-M1 reports such a head as
# the fix of its mismatch ([arXiv 2506.13585](https://arxiv.org/abs/2506.13585)). All formats,
# recorded:

# %%
for form, row in recorded["formats"].items():
    print(f"{form:12s} std a token {row['std token']:.1e}, largest "
          f"{row['largest token']:.3f}, std an answer "
          f"{row['std answer']:.1e}, outside [1/2, 2] "
          f"{row['outside [1/2, 2]']:.2%}")

# %% [markdown]
# FP8 here: weights rounded to E4M3 with one scale a row, products in float32.

# %% [markdown]
# ## A cluster in small
#
# **A model, not a measurement.** How many of N GPUs should write? Seconds come from the data sheet
# of an H100 for 4 billion parameters (weights 8 GB, bandwidth 3,350 GB/s, 40 % of 989 TFLOP/s).
# From recordings come the spread of the lengths (the small model's answers) and what age costs
# (S12). No network, no verifier, no moving of weights: real systems are slower, and more so the
# larger they are.

# %%
told = [r for r in records("chain_rollouts", 0) if r["record"] == "rollout"]
logs = torch.tensor([float(len(r["tokens"])) for r in told]).log()
spread = logs.std().item()
P, mean, B = 4e9, 4000.0, 2048
cache = 147_456 * mean / 2                     # bytes an answer, half way
rates = split.Rates(
    load=2 * P / 3.35e12, each=max(cache / 3.35e12, 2 * P / 0.4 / 989e12),
    train=6 * P / 0.4 / 989e12, mean=mean,
    longest=32_768)                            # where answers are cut
tail = sum(lengths(B, spread, s).max() for s in range(50)) / 50
print(f"spread {spread:.2f}: the longest of {B} would be {tail:.1f} times "
      f"the mean; cut at {rates.longest / mean:.1f} times")

# %%
print("   GPUs   sync   async  writers    age   times as fast")
for gpus in (8, 32, 128, 512, 2048, 8192):
    slow = split.synchronous(rates, gpus, B)
    fast = split.best_split(rates, gpus, B, oldest=2.0)
    print(f"{gpus:7d} {slow.seconds:6.0f} {fast.seconds:7.1f}"
          f" {fast.writers:8d} {fast.age:6.2f}"
          f" {slow.seconds / fast.seconds:10.1f}")

# %% [markdown]
# Synchronous, the step stops shrinking: a single answer of 32,768 tokens takes so long on however
# many GPUs. Asynchronous hides that tail and goes on gaining, until open answers may not be more
# than two batches (the age limit): then most GPUs hold one or two answers and read all weights for
# them. More GPUs want a larger batch. The factors are an upper bound: a synchronous system can
# refill, overlap and cut more, and AReaL reports up to 2.77 times
# ([arXiv 2505.24298](https://arxiv.org/abs/2505.24298)).

# %%
for B_now in (2048, 8192, 32768):
    one = split.best_split(rates, 8192, B_now, oldest=2.0)
    print(f"8,192 GPUs, batch {B_now:6d}: {B_now / one.seconds:6.0f} "
          f"answers a second, {one.in_flight:.0f} in flight on a writer")
check = simulate(64, 64, 1, spread)
print(f"the event simulation with this spread: synchronous "
      f"{simulate(64, 64, 0, spread).time_per_step:.2f}, one ahead "
      f"{check.time_per_step:.2f}")
