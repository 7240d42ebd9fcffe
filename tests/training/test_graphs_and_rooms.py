"""The GPU decoder's graphs, by stand-ins that fail as CUDA does; and its memory, by bytes.

A stand-in graph notes the token that is captured in place of running it, and runs it when it is
replayed. A failed capture leaves its generators capturing, as CUDA's do: whoever draws from such a
one afterwards, or replays a graph that shares it, is told.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import random
import warnings

import pytest
import torch
from chat_models import random_model
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from rlnb.training import BadInput, Sampling, encode_prompts, sample
from rlnb.training.sampling import graph_decoder
from rlnb.training.sampling.capture import capture
from rlnb.training.sampling.graph_decoder import Decoder, make_way
from rlnb.training.sampling.one_token import NAME
from rlnb.training.sampling.room_size import room_bytes
from rlnb.training.sampling.rooms import Room

ENDS = {"eos_id": 2, "pad_id": 0}
GREEDY = Sampling(temperature=0.0)
FIELDS = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "finished", "logprobs")


def same(one, other):
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


@pytest.fixture
def prompts(shipped, chain):
    rng = random.Random(0)
    problems = [chain.problem(rng, "test") for _ in range(8)]
    openings = [chain.openings(p)["steps"] if i % 2 else "" for i, p in enumerate(problems)]
    return encode_prompts(shipped[1], [p.prompt for p in problems], openings=openings)


class State:
    """What graphs and a generator share: whether it is being captured."""

    def __init__(self):
        self.capturing = False


class Generator(torch.Generator):
    """A CPU generator that can be captured, and fails as CUDA's does when that went wrong."""

    def __new__(cls, device="cpu"):
        found = super().__new__(cls)
        found.shared = State()
        return found

    def clone_state(self):
        return State(), self.get_state()

    def graphsafe_set_state(self, state):
        self.shared = state[0]
        self.set_state(state[1])


class Cuda:
    """CUDA as far as capturing goes. fail: (n, window) of a token -> how to fail, or None."""

    def __init__(self, monkeypatch, fail=lambda work: None):
        if torch.cuda.is_available():
            torch.cuda.init()  # now, or what it sets later would be undone with the stand-ins
        self.stream, self.graph, self.log, self.fail = "main", None, [], fail
        self.default = Generator()
        cuda, advance = self, Room.advance

        class Stream:
            def wait_stream(self, other):
                pass

        @contextlib.contextmanager
        def stream(side):
            before, cuda.stream = cuda.stream, side
            try:
                yield
            finally:
                cuda.stream = before

        class Graph:
            def register_generator_state(self, generator):
                self.states = [generator.shared, cuda.default.shared]

            def capture_begin(self, pool, capture_error_mode):
                assert capture_error_mode == "thread_local" and cuda.stream != "main"
                assert not any(state.capturing for state in self.states)
                cuda.graph = self
                for state in self.states:
                    state.capturing = True

            def capture_end(self):
                cuda.graph = None
                if getattr(self, "broken", None):
                    raise RuntimeError("operation failed due to a previous error during capture")
                for state in self.states:
                    state.capturing = False

            def pool(self):
                return (0, 1)

            def replay(self):
                assert not any(state.capturing for state in self.states)
                cuda.log.append(("replay", *self.work[2:]))
                advance(*self.work)

        def captured(room, *work):
            if cuda.graph is None:
                assert not room.generator.shared.capturing and not cuda.default.shared.capturing
                cuda.log.append(("eager", *work[1:]))
                advance(room, *work)
                return
            cuda.log.append(("capture", *work[1:]))
            cuda.graph.work = (room, *work)
            if error := cuda.fail(work[1:]):
                cuda.graph.broken = True
                raise error

        for name, value in {
            "CUDAGraph": Graph, "Stream": Stream, "stream": stream,
            "current_stream": Stream, "current_device": lambda: 0,
            "default_generators": [self.default],
        }.items():  # fmt: skip
            monkeypatch.setattr(torch.cuda, name, value)
        monkeypatch.setattr(torch, "Generator", Generator)
        monkeypatch.setattr(Room, "advance", captured)

    def taken(self, kind):
        found = [entry[1:] for entry in self.log if entry[0] == kind]
        self.log = [entry for entry in self.log if entry[0] != kind]
        return found


def test_every_shape_a_rollout_can_meet_is_captured_after_one_token(shipped, prompts, monkeypatch):
    want = sample(shipped[0], prompts, 2, GREEDY, **ENDS)
    cuda = Cuda(monkeypatch)
    decoder = Decoder(graphs=True, check_every=8, window=32)
    assert same(decoder(shipped[0], prompts, 2, GREEDY, **ENDS), want)
    assert [entry[0] for entry in cuda.log[:2]] == ["eager", "capture"]
    assert len(cuda.taken("eager")) == 1
    places = want.prompt_ids.shape[1]
    windows = {-(-(places + t) // 32) * 32 for t in range(1, 72)}
    captured = cuda.taken("capture")
    assert sorted(captured) == sorted((n, w) for n in (16, 8) for w in windows)
    assert set(cuda.taken("replay")) <= set(captured)

    assert same(decoder(shipped[0], prompts[:4], 2, GREEDY, **ENDS),
                sample(shipped[0], prompts[:4], 2, GREEDY, **ENDS))  # fmt: skip
    assert not cuda.taken("capture") and not cuda.taken("eager") and len(decoder.rooms) == 1
    decoder(shipped[0], prompts, 2, Sampling(), **ENDS)
    assert len(cuda.taken("capture")) == len(captured)  # drawn otherwise, in the same memory
    assert len(decoder.rooms) == 1


BROKEN = (RuntimeError("this kernel cannot be captured"), torch.OutOfMemoryError("no bytes left"))


@pytest.mark.parametrize("error", BROKEN, ids=["refused", "out of memory"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_failed_capture_is_mended_tried_again_and_costs_one_shape(
    shipped, prompts, monkeypatch, error, times
):
    left = {(8, 64): times}

    def fail(work):
        if left.get(work, 0):
            left[work] -= 1
            return error
        return None

    want = sample(shipped[0], prompts, 2, GREEDY, **ENDS)
    cuda = Cuda(monkeypatch, fail)
    emptied = []
    monkeypatch.setattr("rlnb.training.sampling.capture._settle", lambda: emptied.append(1))
    decoder = Decoder(graphs=True, check_every=8, window=32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = decoder(shipped[0], prompts, 2, GREEDY, **ENDS)
    assert same(got, want) and cuda.stream == "main" and len(emptied) == 1 + times
    (room,) = decoder.rooms.values()
    assert not room.generator.shared.capturing and not cuda.default.shared.capturing
    lost = [key[1:] for key, graph in room.graphs.items() if graph is None]
    assert lost == ([(8, 64)] if times == 2 else [])
    assert len(room.graphs) == len({key[1:] for key in room.graphs}) > 3
    assert len(caught) == times - 1
    if caught:
        said = str(caught[0].message)
        assert "1 of " in said and str(error) in said and "kernel by kernel" in said
    cuda.log.clear()
    assert same(decoder(shipped[0], prompts, 2, GREEDY, **ENDS), want)
    assert not cuda.taken("capture") and set(cuda.taken("eager")) <= {(8, 64)}


def test_graphs_of_other_rooms_that_share_a_spoiled_state_are_captured_again(
    shipped, prompts, monkeypatch
):
    broken = []
    cuda = Cuda(monkeypatch, lambda work: broken.pop() if broken else None)
    other, short = copy.deepcopy(shipped[0]), Sampling(0.0, max_new_tokens=12)
    decoder = Decoder(graphs=True)
    decoder(other, prompts, 1, short, **ENDS)
    before = cuda.taken("capture")
    broken.append(RuntimeError("once"))
    decoder(shipped[0], prompts, 1, short, **ENDS)
    cuda.log.clear()
    decoder(other, prompts, 1, short, **ENDS)  # a stale graph would be refused by its stand-in
    assert cuda.taken("capture") == before


def test_a_capture_that_fails_leaves_stream_and_generators_as_they_were(monkeypatch):
    cuda = Cuda(monkeypatch)
    generator = Generator().manual_seed(3)
    state = generator.get_state()

    def work():
        torch.rand(4, generator=generator)
        cuda.graph.broken = True

    with pytest.raises(RuntimeError, match="previous error during capture"):
        capture(work, None, generator)
    assert cuda.stream == "main" and torch.equal(generator.get_state(), state)
    assert not generator.shared.capturing and not cuda.default.shared.capturing


def test_where_there_is_no_cuda_one_sentence_says_so(shipped, prompts):
    if torch.cuda.is_available():
        pytest.skip("here there is")
    decoder = Decoder(graphs=True)
    with pytest.warns(UserWarning, match="CUDA graphs cannot be captured here") as caught:
        got = decoder(shipped[0], prompts, 2, GREEDY, **ENDS)
        again = decoder(shipped[0], prompts, 2, GREEDY, **ENDS)
    want = sample(shipped[0], prompts, 2, GREEDY, **ENDS)
    assert len(caught) == 1 and same(got, want) and same(again, want)


# ---- memory


@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_room_holds_the_bytes_that_are_counted(kind, dtype):
    model = random_model(kind, vocabulary=64).to(dtype)
    decoder = Decoder(window=64)
    decoder(model, [[5, 6, 7], [8] * 30], 3, Sampling(0.0, max_new_tokens=40), **ENDS)
    (room,) = decoder.rooms.values()
    layers, config = room.memory, model.config
    size = getattr(config, "head_dim", config.hidden_size // config.num_attention_heads)
    numbers = 2 * len(layers) * config.num_key_value_heads * size
    assert room.places == 128  # 70 rounded up
    assert room.nbytes == room_bytes(6, 70, 40, numbers, dtype.itemsize)
    keys = sum(x.untyped_storage().nbytes() for pair in layers for x in pair)
    assert keys == 6 * 128 * numbers * dtype.itemsize


def test_bytes_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="^rows: got 0, expected 1 or more"):
        room_bytes(0, 1, 1, 1, 1)


def test_prompts_around_a_window_do_not_take_turns(shipped, monkeypatch):
    made, make = [], Room.make.__func__
    monkeypatch.setattr(Room, "make", classmethod(lambda *a, **k: made.append(1) or make(*a, **k)))
    short, decoder = Sampling(0.0, max_new_tokens=4), Decoder(window=16)
    for width in (11, 13, 11, 13, 12, 20, 13, 20):
        decoder(shipped[0], [[5] * width], 2, short, **ENDS)
    assert len(made) == 2 and len(decoder.rooms) == 1  # 16 places, 32, and never back
    decoder = Decoder(window=16)
    decoder.expect(20)
    for width in (11, 13, 20, 11):
        decoder(shipped[0], [[5] * width], 2, short, **ENDS)
    assert len(made) == 3


def test_a_room_that_grows_keeps_its_other_side(shipped):
    decoder, short = Decoder(window=16), Sampling(0.0, max_new_tokens=4)
    decoder(shipped[0], [[5] * 5], 8, short, **ENDS)
    decoder(shipped[0], [[5] * 40], 2, short, **ENDS)
    (room,) = decoder.rooms.values()
    assert (len(room.rows), room.places) == (8, 48)


def test_rooms_are_given_up_by_bytes_the_oldest_first(shipped, prompts):
    models, short = [copy.deepcopy(shipped[0]) for _ in range(3)], Sampling(0.0, max_new_tokens=2)
    decoder = Decoder()
    decoder(models[0], prompts, 1, short, **ENDS)
    each = next(iter(decoder.rooms.values())).nbytes
    decoder.limit = 2 * each
    for model in (models[1], models[0], models[2]):
        decoder(model, prompts, 1, short, **ENDS)
    assert [room.model() for room in decoder.rooms.values()] == [models[0], models[2]]
    decoder.limit = 0
    decoder(models[1], prompts, 1, short, **ENDS)
    assert [room.model() for room in decoder.rooms.values()] == [models[1]]
    decoder(models[0], prompts, 1, short, **ENDS)
    assert [room.model() for room in decoder.rooms.values()] == [models[0]]  # the last one stays


def test_way_is_made_until_enough_is_free_and_no_further(shipped, prompts, monkeypatch):
    models, short = [copy.deepcopy(shipped[0]) for _ in range(3)], Sampling(0.0, max_new_tokens=2)
    decoder = Decoder()
    for model in models:
        decoder(model, prompts, 1, short, **ENDS)
    each = next(iter(decoder.rooms.values())).nbytes
    total = 4 * each
    monkeypatch.setattr(graph_decoder, "_decoder", lambda: decoder)
    monkeypatch.setattr(
        graph_decoder, "free_bytes", lambda device: total - each * len(decoder.rooms)
    )
    assert make_way("cpu", 1e30) == 0 and len(decoder.rooms) == 3
    assert make_way("cuda", each) == 0
    assert make_way("cuda", 2 * each) == each
    assert [room.model() for room in decoder.rooms.values()] == models[1:]
    assert decoder.release() == 2 * each and not decoder.rooms


def test_a_model_that_is_gone_takes_its_room_along(shipped, prompts):
    decoder, model = Decoder(), copy.deepcopy(shipped[0])
    decoder(model, prompts, 1, Sampling(0.0, max_new_tokens=2), **ENDS)
    assert len(decoder.rooms) == 1
    del model
    gc.collect()
    assert not decoder.rooms


def test_weights_that_moved_get_a_room_of_their_own(fresh, prompts):
    model, decoder, short = fresh[0], Decoder(), Sampling(0.0, max_new_tokens=2)
    decoder(model, prompts, 1, short, **ENDS)
    with torch.no_grad():
        model.model.norm.weight.mul_(1.5)  # in place: graphs see it
    decoder(model, prompts, 1, short, **ENDS)
    assert len(decoder.rooms) == 1
    model.model.norm.weight.data = model.model.norm.weight.data.clone()
    decoder(model, prompts, 1, short, **ENDS)
    assert len(decoder.rooms) == 2


def test_where_a_room_does_not_fit_the_others_make_way_for_it(shipped, prompts, monkeypatch):
    decoder, make, calls = Decoder(), Room.make.__func__, []

    def full(*args, **options):
        calls.append(len(decoder.rooms))
        if decoder.rooms:
            raise torch.OutOfMemoryError("no bytes left")
        return make(*args, **options)

    monkeypatch.setattr(Room, "make", classmethod(full))
    short, other = Sampling(0.0, max_new_tokens=2), copy.deepcopy(shipped[0])
    for model in (shipped[0], other):
        decoder(model, prompts, 1, short, **ENDS)
    assert calls == [0, 1, 0] and len(decoder.rooms) == 1


def test_an_overflow_does_not_come_back_in_later_rollouts(shipped, prompts):
    decoder, want = Decoder(), sample(shipped[0], prompts, 2, GREEDY, **ENDS)
    decoder(shipped[0], prompts, 2, GREEDY, **ENDS)
    (room,) = decoder.rooms.values()
    for pair in room.memory:
        for x in pair:
            x.fill_(torch.nan)  # what an inf of float16 leaves
    assert same(decoder(shipped[0], prompts, 2, GREEDY, **ENDS), want)


def test_attention_gets_one_bias_of_its_own_type(shipped, prompts, monkeypatch):
    seen, plain = [], ALL_ATTENTION_FUNCTIONS[NAME]

    def note(module, query, key, value, attention_mask, **options):
        seen.append((query.shape[2], attention_mask.dtype, attention_mask.data_ptr()))
        return plain(module, query, key, value, attention_mask, **options)

    decoder, model = Decoder(), copy.deepcopy(shipped[0]).to(torch.bfloat16)
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, NAME, note)
    decoder(model, prompts, 2, Sampling(0.0, max_new_tokens=5), **ENDS)
    (room,) = decoder.rooms.values()
    assert seen and set(seen) == {(1, torch.bfloat16, room.bias.data_ptr())}
