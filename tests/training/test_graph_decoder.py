"""The decoder for a GPU, in its eager form on a CPU, against `sample`.

Its graphs and rooms: test_graphs_and_rooms.py.
"""

from __future__ import annotations

import random

import pytest
import torch
from chat_models import random_model

from rlnb.training import BadInput, Sampling, encode_prompts, sample, token_logprobs
from rlnb.training.sampling.graph_decoder import Decoder, sampler_for
from rlnb.training.sampling.rooms import Room

ENDS = {"eos_id": 2, "pad_id": 0}
GREEDY = Sampling(temperature=0.0)
FIELDS = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "finished", "logprobs")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def prompts(shipped, chain):
    """Eight; the greedy answers to every other one are worked out, and so longer."""
    rng = random.Random(0)
    problems = [chain.problem(rng, "test") for _ in range(8)]
    openings = [chain.openings(p)["steps"] if i % 2 else "" for i, p in enumerate(problems)]
    return encode_prompts(shipped[1], [p.prompt for p in problems], openings=openings)


def same(one, other):
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


@pytest.mark.parametrize(
    "options",
    [{}, {"check_every": 1, "window": 1, "smallest": 1}, {"check_every": 3, "window": 7}],
    ids=["default", "every token", "odd"],
)
def test_greedy_tokens_are_those_of_sample(shipped, prompts, options):
    # Twice with one decoder: what an earlier rollout left in memory must not be seen.
    want, decoder = sample(shipped[0], prompts, 2, GREEDY, **ENDS), Decoder(**options)
    short = want.lengths.min() + 8 < want.lengths.max()
    assert short and len(set(want.prompt_mask.sum(1).tolist())) > 2  # rows drop out, padding
    turned = prompts[::-1]
    found = [decoder(shipped[0], p, 2, GREEDY, **ENDS) for p in (prompts, turned, prompts, turned)]
    assert same(found[0], want) and same(found[2], want)  # nor may a later one change it
    assert len(decoder.rooms) == 1


def test_rows_are_packed_where_half_are_done(shipped, prompts, monkeypatch):
    sizes, advance = [], Room.advance

    def note(room, sampling, n, window):
        sizes.append((n, window))
        advance(room, sampling, n, window)

    monkeypatch.setattr(Room, "advance", note)
    rollout = Decoder(check_every=4, window=16, smallest=2)(
        shipped[0], prompts, 8, Sampling(), **ENDS, generator=seeded()
    )
    rows = [n for n, _ in sizes]
    assert rows[0] == 64 and rows == sorted(rows, reverse=True) and len(set(rows)) >= 3
    assert all(n & (n - 1) == 0 for n in rows)
    open_ = [int((rollout.lengths > t + 1).sum()) for t in range(len(rows))]
    assert all(n >= k for n, k in zip(rows, open_, strict=True))
    assert all(n < 2 * max(k, 2) for n, k in zip(rows[3::4], open_[3::4], strict=True))
    places = rollout.prompt_ids.shape[1]
    assert [w for _, w in sizes] == [-(-(places + t) // 16) * 16 for t in range(1, len(rows) + 1)]


def test_without_packing_a_seed_gives_the_tokens_that_sample_gives(shipped, prompts):
    for seed in range(3):
        want = sample(
            shipped[0], prompts, 4, Sampling(), **ENDS, generator=seeded(seed), drop_below=0.0
        )
        decoder = Decoder(smallest=1000)
        got = decoder(shipped[0], prompts, 4, Sampling(), **ENDS, generator=seeded(seed))
        assert torch.equal(got.completion_ids, want.completion_ids)
        assert (got.logprobs - want.logprobs).abs().max() < 1e-4
        assert (got.entropies - want.entropies).abs().max() < 1e-4


def test_logprobs_are_those_of_teacher_forcing(shipped, prompts):
    decoder = Decoder(check_every=2, window=8, smallest=1)
    rollout = decoder(shipped[0], prompts, 6, Sampling(0.7), **ENDS, generator=seeded(1))
    assert not torch.equal(rollout.lengths, rollout.lengths.max().expand(48))
    with torch.no_grad():
        logprobs, entropies = token_logprobs(shipped[0], rollout, temperature=0.7)
    assert (logprobs - rollout.logprobs).abs().max() < 1e-4
    assert (entropies - rollout.entropies)[rollout.completion_mask].abs().max() < 1e-4
    assert (rollout.logprobs[~rollout.completion_mask] == 0).all()
    assert (rollout.completion_ids[~rollout.completion_mask] == 0).all()


def test_packed_rows_draw_from_the_models_distribution(shipped):
    """The second token given the first, after a packing at every token."""
    model, tokenizer = shipped
    n, prompt = 4000, encode_prompts(tokenizer, ["4+3-8+6=?"])
    ends = {"eos_id": range(12), "pad_id": 0}  # many tokens end an answer: rows drop out at once
    decoder = Decoder(check_every=1, smallest=1)
    rollout = decoder(
        model, prompt, n, Sampling(1.5, max_new_tokens=2), **ends, generator=seeded(2)
    )
    first = rollout.completion_ids[:, 0]
    likely = int(first[first >= 12].mode().values)
    with torch.no_grad():
        logits = model(torch.tensor([prompt[0] + [likely]])).logits[0, -2:] / 1.5
    for p, seen in zip(
        logits.softmax(-1), (first, rollout.completion_ids[first == likely, 1]), strict=True
    ):
        share = torch.bincount(seen, minlength=32) / len(seen)
        assert len(seen) > 500 and p.max() < 0.98
        assert ((share - p).abs() < 5 * (p * (1 - p) / len(seen)).sqrt() + 2e-3).all()


@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
def test_other_models_several_ends_and_lower_precision(kind):
    model = random_model(kind, vocabulary=64)
    prompts, ends = [[5, 6, 7], [8, 9, 10, 11, 12, 13], [20]], {"eos_id": (3, 9, 30), "pad_id": 3}
    greedy = Sampling(temperature=0.0, max_new_tokens=24)
    decoder = Decoder(check_every=2, window=4, smallest=1)
    want = sample(model, prompts, 2, greedy, **ends)
    assert same(decoder(model, prompts, 2, greedy, **ends), want)
    lower = model.to(torch.bfloat16)
    rollout = decoder(lower, prompts, 8, Sampling(max_new_tokens=24), **ends, generator=seeded())
    logprobs, _ = token_logprobs(lower, rollout, temperature=1.0)
    assert rollout.logprobs.dtype == torch.float32
    assert (logprobs - rollout.logprobs)[rollout.completion_mask].abs().mean() < 0.02


def test_a_sliding_window_is_left_to_sample(shipped, prompts):
    model = random_model("qwen2", vocabulary=64)
    model.config._attn_implementation = "eager"
    decoder = Decoder()
    got = decoder(model, [[5, 6], [7]], 2, GREEDY, **ENDS)
    assert same(got, sample(model, [[5, 6], [7]], 2, GREEDY, **ENDS)) and not decoder.rooms


def test_the_cpu_keeps_sample():
    assert sampler_for("cpu") is sample
    assert isinstance(sampler_for("cuda"), Decoder) and sampler_for("cuda:0") is sampler_for("cuda")


@pytest.mark.parametrize("name", ["check_every", "window", "smallest"])
def test_an_impossible_decoder_names_its_field(name):
    with pytest.raises(BadInput, match=f"^{name}: got 0"):
        Decoder(**{name: 0})
    with pytest.raises(BadInput, match="^limit: got -1, expected 0 bytes or more"):
        Decoder(limit=-1)
