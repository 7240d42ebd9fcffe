"""The lesson on systems: tasks with a dead end and a way, pictures, the numbers that matter."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom import left_behind
from rlnb.classroom.exercises import systems as exercises
from rlnb.classroom.explorers import (
    engine_rules,
    full_card,
    long_answers,
    stale_queue,
    token_rules,
    which_rule,
)
from rlnb.classroom.pictures import systems as pictures
from rlnb.objective.gates import engine_ratio
from rlnb.toys import router_answers, two_engines
from rlnb.toys.rollout_queue import simulate
from rlnb.toys.router import RouterPolicy
from rlnb.toys.two_engines import engines, judge, train
from rlnb.training.models.presets import Preset
from rlnb.training.studies import cluster_memory

GOALS = (
    (full_card, full_card.smallest_stage),
    (stale_queue, stale_queue.fresh_and_quick),
    (long_answers, long_answers.half_of_the_flipped),
    (token_rules, token_rules.icepop_exact),
    (stale_queue, stale_queue.none_too_old),
)


def test_no_goal_is_met_at_the_start():
    for module, goal in GOALS:
        assert not goal(module.compute())


def test_stage_three_alone_fits_on_eight_cards_and_parking_alone_on_four():
    cards = [(g, s, p) for g in full_card.GPUS for s in range(4) for p in (False, True)]
    found = {c: full_card.compute(*c) for c in cards}
    assert [c for c in cards if found[c]["gpus"] == 8 and found[c]["fits"] and not c[2]] == [
        (8, 3, False)
    ]
    assert [c for c in cards if c[0] == 4 and found[c]["fits"]] == [(4, s, True) for s in (1, 2, 3)]
    assert [c for c in cards if full_card.smallest_stage(found[c])] == [(4, 1, True)]
    assert not any(found[2, s, p]["fits"] for s in range(4) for p in (False, True))


def test_busy_slots_are_not_a_fast_step():
    grid = [(n, lag, tail, order) for n in stale_queue.SLOTS for lag in (0, 0.5, 1, 4)
            for tail in (1.0, 1.2) for order in (False, True)]  # fmt: skip
    found = {g: stale_queue.compute(*g) for g in grid}
    fresh = {g: data["time"] for g, data in found.items() if round(data["staleness"], 2) <= 0.5}
    done = {g for g in grid if stale_queue.fresh_and_quick(found[g])}
    assert done == {(64, 0.5, tail, False) for tail in (1.0, 1.2)}
    assert max(fresh[g] for g in done) < min(fresh[g] for g in set(fresh) - done)
    capped = {g for g in grid if stale_queue.none_too_old(found[g])}
    assert not capped and stale_queue.none_too_old(stale_queue.compute(64, 2, 1.0, True))
    assert stale_queue.compute(64, 2, 1.0, True)["time"] == pytest.approx(3.22, abs=0.005)
    half, few = found[64, 0.5, 1.0, False], found[16, 1, 1.0, False]
    assert half["time"] == pytest.approx(1.47, abs=0.005)
    assert half["open"] == pytest.approx(32, abs=0.1)  # half a batch
    assert few["time"] == pytest.approx(4.01, abs=0.005) and few["busy"] > 0.99
    assert few["staleness"] == pytest.approx(0.37, abs=0.005)
    assert found[64, 0, 1.0, False]["busy"] == pytest.approx(0.13, abs=0.005)
    longest = np.exp(np.random.default_rng(0).standard_normal((100_000, 64)) - 0.5).max(1).mean()
    assert found[64, 0, 1.0, False]["time"] == pytest.approx(
        longest + 0.5, abs=0.1
    )  # no lucky draw


def test_the_open_answers_are_counted_as_the_timeline_counts_them():
    for slots, lag in ((21, 1), (64, 0), (128, 2)):
        run = simulate(slots, 64, lag, 1.0, steps=400)
        assert stale_queue.compute(slots, lag)["open"] == pytest.approx(run.unused)


def test_one_kind_of_push_saves_every_policy():
    found = {r: engine_rules.compute(r, 0.2) for r in engine_rules.CHOICES}
    done = {r for r, data in found.items() if not data["lost"]}
    assert done == {"IcePop, back: above, A < 0"}
    assert {r: data["lost"] for r, data in found.items()} == {
        "no correction": 2, "TIS, cap 2": 3, "IcePop [1/2, 2]": 7,
        "IcePop, back: above, A > 0": 6, "IcePop, back: above, A < 0": 0,
        "IcePop, back: below, A > 0": 3, "IcePop, back: below, A < 0": 5,
    }  # fmt: skip


def test_flips_drawn_anew_halfway_leave_far_fewer_policies_behind():
    lost = {n: sum((train("IcePop [1/2, 2]", 0.2, draws=60, lasts=n, seed=s).reward[:, -1]
                    < 0.8).sum() for s in range(5)) for n in (30, 60)}  # fmt: skip
    assert lost == {30: 3, 60: 31}


@pytest.mark.parametrize(
    ("make", "moved"),
    [
        (full_card.full_card_explorer, {"stage": 3}),
        (stale_queue.stale_queue_explorer, {"lag": 1}),
        (stale_queue.stale_queue_explorer, {"in_order": True, "lag": 1}),
        (long_answers.long_answers_explorer, {"length": 100}),
        (long_answers.long_answers_explorer, {"replayed": True, "answers": 64}),
        (long_answers.long_answers_explorer, {"revealed": True, "length": 100}),
        (token_rules.token_rules_explorer, {"w": 6.0}),
        (token_rules.token_rules_explorer, {"w": 3.0, "right": False, "cap": 3.0}),
        (engine_rules.engine_rules_explorer, {"rule": "no correction"}),
        (which_rule.which_rule_explorer, {"engine": "all flipped"}),
    ],
)
def test_explorers_draw_and_say_what_they_show(make, moved):
    explorer = make()
    start, said = explorer.pixels(), explorer.alt_text()
    explorer.set(**moved)
    assert (explorer.pixels() != start).any() and explorer.alt_text() != said
    assert (explorer.pixels() == explorer.pixels_from_scratch()).all()


def test_the_rules_give_the_factors_of_the_objective():
    w = torch.tensor([[*token_rules.WEIGHTS]], dtype=torch.float64)
    batch = SimpleNamespace(
        anchor_logprobs=w.log(), required=lambda *names: torch.zeros_like(w), lengths=None
    )
    tis = engine_ratio(level="token", kind="truncate", high=2.0)(batch, None, None)[0]
    icepop = engine_ratio(level="token", low=0.5, high=5.0)(batch, None, None)[0]
    for k, x in enumerate(token_rules.WEIGHTS):
        found = token_rules.compute(x, cap=2.0)["factors"]
        assert found["TIS"] == pytest.approx(tis[k].item())
        assert found["IcePop"] == pytest.approx(icepop[k].item())
        assert found["none"] == 1.0 and found["its own w"] == x
    done = [(x, right) for x in token_rules.WEIGHTS for right in (True, False)
            if token_rules.icepop_exact(token_rules.compute(x, right))]  # fmt: skip
    assert done == [(x, right) for x in (3.0, 4.0) for right in (True, False)]
    assert not token_rules.icepop_exact(token_rules.compute(3.0, cap=4.0))


def test_the_truth_about_long_answers_shows_only_when_it_is_asked_for():
    hidden, shown = (long_answers.compute(80, revealed=r) for r in (False, True))
    assert not long_answers.half_of_the_flipped(hidden) and long_answers.half_of_the_flipped(shown)
    assert not long_answers.half_of_the_flipped(long_answers.compute(90, revealed=True))
    assert "over all answers" not in long_answers.readout(hidden)
    assert "over all answers: 51 %" in long_answers.readout(shown)
    assert "51 %" not in long_answers.alt(hidden)


def test_every_step_in_the_picture_shows_whom_it_waited_for():
    data = stale_queue.compute(64, 1, 1.0, in_order=True)
    ends = {round(begin + width, 6) for _, begin, width, _ in data["bars"]}
    starts = [round(low, 6) for low, _ in data["training"] if low > 0]
    assert len(starts) == 2 and set(starts) <= ends


def test_the_numbers_that_the_lesson_says_of_batches_slots_and_gain():
    data = long_answers.compute()
    for name, said in (("worst", 140), ("formula", 300), ("best", 580)):
        last = np.flatnonzero(data[name] >= 0.5).max()
        x, y = np.log(long_answers.LENGTHS[last : last + 2]), data[name][last : last + 2]
        crossing = np.exp(x[0] + (y[0] - 0.5) / (y[0] - y[1]) * (x[1] - x[0]))
        assert crossing == pytest.approx(said, rel=0.03)
    layout = cluster_memory.QWEN_7B
    weights, token = 2 * layout.parameters, cluster_memory.kv_bytes_per_token(layout.layout)
    many, one = weights + 64 * 2000 * token, weights + 2000 * token
    assert many / 1e9 == pytest.approx(22.5, abs=0.1) and one / 1e9 == pytest.approx(15.3, abs=0.1)
    assert many / one == pytest.approx(1.5, abs=0.05)
    steps = [simulate(64, 64, lag, 1.0, steps=400).time_per_step for lag in (0, 1)]
    assert steps[0] / steps[1] == pytest.approx(6.8, abs=0.05)


def test_the_slot_that_all_wait_for_is_shown():
    data = stale_queue.compute(64, 0, 1.0)
    assert max(width for _, _, width, _ in data["bars"]) > 3
    assert {row for row, *_ in data["bars"]} <= set(range(stale_queue.ROWS))


def test_pictures_draw_and_say_their_numbers():
    table = {"PPO": {"weights": 4, "frozen": 4}, "GRPO": {"weights": 2, "engine": 2}}
    assert "together 8" in pictures.bytes_by_method(table, "c").alt
    run = simulate(8, 8, 0, 1.0, steps=6)
    assert "busy" in pictures.two_timelines({"one": run}, 4.0, "c").alt
    assert "age 8: 0.6" in pictures.learning_by_time("c").alt
    some = pictures.gaps({"a": [0.5, 0.5], "b": [0.1]}, "c").alt
    assert "root mean square 0.5000" in some
    assert "b: 1 tokens, root mean square 0.1000" in some
    one = judge(engines(0.1, draws=2), "DPPO")
    assert "DPPO" in pictures.bias_and_noise({"DPPO": one}, "c").alt


def test_the_exercise_counts_like_the_package():
    for stage in range(4):
        mine = exercises.memory_bytes(torch.tensor([3.0]), 2, 1, 8, stage)
        assert mine.item() == pytest.approx(cluster_memory.memory_bytes(3.0, 2, 1, 8, stage))


def test_the_silent_bug_shows_only_with_grouped_queries():
    bug = check.silent_bug_systems
    assert bug(lambda f: f(1, 8, 2, 4, 1) == 32)
    assert not bug(lambda f: f(1, 8, 8, 4, 1) == 128)
    layout = cluster_memory.QWEN_7B.layout
    right = cluster_memory.kv_bytes_per_token(layout)
    broken = exercises.cache_bytes(layout.layers, layout.heads, layout.kv_heads, layout.head_dim, 1)
    assert broken == 7 * right


def test_the_lost_policies_write_wrong_answers_that_the_engine_hardly_ever_writes(monkeypatch):
    """The page's reason: these hold a token above the band, and IcePop gives it factor 0."""
    seen = []
    made = two_engines._both

    def kept(logits, moved):
        seen.append(made(logits, moved))
        return seen[-1]

    monkeypatch.setattr(two_engines, "_both", kept)
    lost = train("IcePop [1/2, 2]", 0.2, draws=60).reward[:, -1] < 0.8
    last = seen[-1]
    wrong, above = last.rewards == 0, (last.ratio > 2).any(2)
    policy, engine = np.exp(last.trainer.sum(2)), np.exp(last.engine.sum(2))
    share = (policy * (wrong & above)).sum(1) / (policy * wrong).sum(1)
    often, seldom = ((p * (wrong & above)).sum(1)[lost] for p in (policy, engine))
    assert lost.sum() == 7 and share[lost].min() > 0.95
    assert (often > 0.2).all() and (seldom < 0.12).all()


def test_only_a_blind_mask_is_still_stuck_after_six_times_as_many_steps():
    def lost(rule):
        return (train(rule, 0.2, steps=400, draws=60).reward[:, -1] < 0.8).sum()

    assert lost("IcePop [1/2, 2]") == 4
    assert not lost("nothing") and not lost("truncated at 2")


def test_in_ten_other_draws_too_only_that_push_saves_all():
    lost = {rule: sum((train(rule, 0.2, seed=seed).reward[:, -1] < 0.8).sum() for seed in range(10))
            for rule in ("IcePop [1/2, 2]", *two_engines.ONE_BACK)}  # fmt: skip
    assert lost.pop("IcePop [1/2, 2]") == 18 and lost.pop("back: above, A < 0") == 0
    assert min(lost.values()) >= 10


def test_the_band_that_other_libraries_take_loses_policies_too(monkeypatch):
    def wide(w, gap, A):
        return np.where((w >= 0.5) & (w <= 5), w, 0.0)

    monkeypatch.setitem(two_engines._ALL, "IcePop [1/2, 5]", wide)
    assert (train("IcePop [1/2, 5]", 0.2, draws=60).reward[:, -1] < 0.8).sum() == 6


def test_the_record_is_what_the_toy_gives():
    name, how = "mild: 20 % flipped", "the whole run"
    kept = left_behind.recorded()[name][how]
    for rule in ("IcePop [1/2, 2]", "exact weight"):
        found = left_behind.measure(rule, name, how)
        assert found["lost"] == pytest.approx(kept[rule]["lost"], abs=2)


def test_capping_is_worse_only_early_and_under_changing_flips():
    settings = [(e, how) for e in left_behind.ENGINES for how in left_behind.LASTS]
    counts = {at: which_rule.compute(*at)["behind"] for at in settings}
    done = [at for at in settings
            if counts[at]["answer capped at 2"] >= counts[at]["no correction"] + 10]  # fmt: skip
    assert done == [("harsh: all flipped, far", "one step")]
    names = ("no correction", "TIS, cap 2", "answer capped at 2")
    for lasts, said in (("one step", [2, 24, 36]), ("the whole run", [121, 135, 49])):
        behind = which_rule.compute("harsh: all flipped, far", lasts)["behind"]
        assert [behind[name] for name in names] == said
    for engine in left_behind.recorded().values():
        assert all(row["lost"][1] == 0 for row in engine["one step"].values())


def test_a_cap_harms_by_its_lower_side_and_only_by_token(tmp_path, monkeypatch):
    found = left_behind.halves()
    assert found == {"token, above 1": 25, "token, below 1": 69, "answer, above 1": 36,
                     "answer, below 1": 16}  # fmt: skip
    assert left_behind.half("token, below 1", draws=40) > left_behind.half(
        "token, above 1", draws=40
    )
    assert left_behind.longest() == {
        "no correction": [31, 6], "TIS, cap 2": [56, 14], "answer capped at 2": [7, 1],
        "IcePop [1/2, 5]": [207, 181],
    }  # fmt: skip
    early, late = left_behind.long("IcePop [1/2, 5]", draws=10, at=(5, 20))
    assert 0 < late <= early <= 10
    file = tmp_path / "halves.json"
    monkeypatch.setattr(left_behind, "half", lambda rule: 7)
    assert left_behind.main([str(file), "--halves"]) == 0
    monkeypatch.setattr(left_behind, "half", lambda rule: 1 / 0)
    assert left_behind.main([str(file), "--halves"]) == 0
    assert set(file.read_text().split('"')[1::2]) == set(two_engines.HALVES)
    monkeypatch.setattr(left_behind, "long", lambda rule: [2, 1])
    assert left_behind.main([str(tmp_path / "long.json"), "--long"]) == 0
    assert left_behind.LONG[0] in (tmp_path / "long.json").read_text()


def test_a_lasting_gap_orders_the_rules_by_what_they_push():
    """Behind after 240 steps, harsh: what the statements page prints."""
    rows = left_behind.recorded()["harsh: all flipped, far"]["the whole run"]
    order = sorted(rows, key=lambda rule: rows[rule]["lost"][1])
    assert order == ["exact weight", "answer capped at 2", "token weight", "no correction",
                     "TIS, cap 2", "answer masked [1/2, 2]", "IcePop [1/2, 5]",
                     "IcePop [1/2, 2]"]  # fmt: skip
    moving = left_behind.recorded()["harsh: all flipped, far"]["one step"]
    masks = ("IcePop [1/2, 2]", "answer masked [1/2, 2]")
    assert rows[masks[0]]["lost"][1] == 249 and [moving[m]["lost"][0] for m in masks] == [187, 237]


def test_the_record_is_whole_and_is_completed(tmp_path, monkeypatch):
    found = left_behind.recorded()
    assert list(found) == list(left_behind.ENGINES)
    for rows in (rows for engine in found.values() for rows in engine.values()):
        assert list(rows) == list(left_behind.RULES)
    file = tmp_path / "record.json"
    monkeypatch.setattr(left_behind, "measure", lambda *a: {"lost": list(a)})
    left_behind.main([str(file)])
    text = file.read_text()
    monkeypatch.setattr(left_behind, "measure", lambda *a: 1 / 0)
    assert left_behind.main([str(file)]) == 0 and file.read_text() == text


def test_the_activations_are_layers_computed_anew_and_logits_in_pieces():
    """1.6 + 2.1 + 0.8 GB; with three whole copies of the logits the task's card would overflow."""
    model, cluster = cluster_memory.QWEN_7B, cluster_memory.Cluster(gpus=4, stage=1, parked=True)
    parts = cluster_memory.on_one_gpu(model, cluster)
    inputs = 8192 * 28 * 3584 * 2 / 1e9
    pieces = 12 * 2**26 / 1e9
    assert [round(x, 1) for x in (inputs, parts["activations"] - inputs - pieces, pieces)] == [
        1.6, 2.1, 0.8,
    ]  # fmt: skip
    assert 2**26 // model.vocabulary == 441
    held = parts["trainer"] + parts["frozen models"] + parts["activations"]
    whole = held - pieces + 12 * 8192 * model.vocabulary / 1e9
    assert round(held) == 73 and round(whole) == 87
    summed = cluster_memory.on_one_gpu(model, cluster)["trainer"] + 2 * model.parameters / 1e9
    assert round(summed + parts["frozen models"] + parts["activations"]) == 88  # float32 gradients


def test_the_toy_s_flips_are_about_twice_as_large_as_the_router_s():
    both, still = engines(0.2, draws=60), engines(0.0, draws=60)
    flipped = abs(both.trainer - both.engine) > 0.1
    assert abs(still.trainer - still.engine).max() < 0.1
    weight = np.exp(both.engine.sum(2))[..., None] * flipped
    gap = both.trainer - both.engine
    mean = (weight * gap).sum() / weight.sum()
    assert np.sqrt((weight * (gap - mean) ** 2).sum() / weight.sum()) == pytest.approx(1.0, abs=0.1)


def test_a_log_of_the_engine_s_tokens_does_not_show_what_the_engine_seldom_writes():
    pi = RouterPolicy(seed=0)
    mu = pi.rounded()
    with torch.no_grad():
        largest = [
            float((pi.logprobs(y)[0] - mu.logprobs(y)[0]).max())
            for y in (p.sample(400, 50, torch.Generator().manual_seed(1)) for p in (mu, pi))
        ]
    assert largest == pytest.approx([1.01, 7.29], abs=0.01)


def test_in_order_the_batches_ahead_cap_every_age_and_the_step_waits():
    found = {lag: stale_queue.compute(64, lag, 1.0, True) for lag in (1, 2, 3, 4)}
    assert [round(found[lag]["time"], 2) for lag in found] == [4.31, 3.22, 2.59, 2.20]
    assert [found[lag]["oldest"] for lag in found] == [1, 2, 3, 4]
    assert stale_queue.compute(64, 1, 1.0)["oldest"] == 26


def test_in_eight_other_draws_too_the_order_costs_about_as_much():
    step = [np.mean([simulate(64, 64, lag, 1.0, seed=s, in_order=True).time_per_step
                     for s in range(1, 9)]) for lag in (1, 4)]  # fmt: skip
    assert step == pytest.approx([4.32, 2.21], abs=0.01)


def test_all_answers_show_what_six_batches_do_not():
    """The page's guess: batches say a fifth, the formula 10 %, all answers 0.009 %."""
    pi = RouterPolicy(seed=0)
    log_pi, log_mu = pi.table(), pi.rounded().table()
    exact = router_answers.exact_share(log_pi, log_mu, (81, 82, 1000))
    assert exact[81] > 0.5 > exact[82]
    replayed = pi.table(routes_of=pi.rounded())
    assert router_answers.exact_share(replayed, log_mu, [1000])[1000] == pytest.approx(
        0.958, abs=1e-3
    )
    assert exact[1000] == pytest.approx(9.2e-5, abs=1e-6)
    draws = torch.Generator().manual_seed(0)
    places = router_answers.draw_places(log_mu, 6 * 512, 1000, draws)
    gaps = (log_pi - log_mu).flatten()[places]
    assert float((-gaps.var() * 1000).exp()) == pytest.approx(0.10, abs=0.01)
    w = gaps.sum(1).exp().view(6, 512)
    shares = w.sum(1).square() / w.square().sum(1) / 512
    assert shares.min() > 0.01 and shares.max() < 0.5
    gap, met = log_pi - log_mu, torch.zeros(log_mu.shape[:-1])
    assert float(gap.max()) == pytest.approx(7.29, abs=0.01) and gaps.max() < 3.5
    met[(16,) * 4], large = 1.0, 0.0  # how often a context is met, and a weight above 100
    for _ in range(1000):
        written = met[..., None] * log_mu.exp()
        large += float(written[gap > np.log(100)].sum())
        met = torch.zeros_like(met)
        met[:16] = written.sum(3).movedim(3, 0)
    assert 1 / (512 * large) == pytest.approx(103, abs=2)  # batches


def test_what_is_left_of_the_gain_on_a_card():
    """The lesson's milliseconds, and a synchronous step whose slots speed up as they empty."""
    model = cluster_memory.QWEN_7B
    weights = 2 * model.parameters / 3.35e12
    mean = 8192 / (simulate(64, 64, 0, 1.0, steps=400).time_per_step - 0.5)
    held = mean * np.e / 2  # E[L^2] / 2 E[L] of a log-normal length with a spread of 1
    caches = 64 * held * cluster_memory.kv_bytes_per_token(model.layout) / 3.35e12
    training = 8 * 7.6e9 * 64 / 4e14  # as the page writes it
    assert [round(1e3 * x, 1) for x in (weights, weights + caches, training)] == [4.5, 6.3, 9.7]
    assert round(mean, -1) == 1160 and round(held, -1) == 1570
    assert training / 3 / (weights + caches) == pytest.approx(0.5, abs=0.03)
    lengths = np.exp(np.random.default_rng(0).standard_normal((100_000, 64)) - 0.5)
    open_slots = np.arange(64, 0, -1) / 64
    pace = (weights + caches * open_slots) / (weights + caches)
    waits = np.diff(np.sort(lengths, axis=1), axis=1, prepend=0)
    step = (waits * pace).sum(1).mean() + 0.5
    assert step == pytest.approx(5.9, abs=0.1)
    assert step / simulate(64, 64, 1, 1.0, steps=400).time_per_step == pytest.approx(5.3, abs=0.1)


def test_the_72b_answer_counts_right():
    """Qwen2.5-72B: 80 layers, 64 heads of 128, 8 of them for keys and values."""
    trained, copy = cluster_memory.memory_bytes(72.7e9), 2 * 72.7e9 / 1e9
    assert round(trained / 1e9) == 1163 and round(copy) == 145
    split = cluster_memory.memory_bytes(72.7e9, gpus=32, stage=3) / 1e9
    each = cluster_memory.kv_bytes_per_token(Preset(8192, 80, 64, 8, 128, 29568)) / 4
    assert round(split) == round(copy / 4) == 36 and round(each / 1e3) == 82
    room = 0.9 * 80e9 - copy / 4 * 1e9
    assert round(room / 1e9) == 36 and int(room / (8192 * each)) == 53


def test_the_root_of_twice_the_kl_is_nearly_the_std_of_the_mixture_s_gap():
    pi = RouterPolicy(seed=0)
    mu = pi.rounded()
    with torch.no_grad():
        y = mu.sample(400, 50, torch.Generator().manual_seed(1))
        gap = pi.logprobs(y)[0] - mu.logprobs(y)[0]
    kl = (gap.exp() - 1 - gap).mean()  # k3 on tokens of the engine
    assert float((2 * kl).sqrt()) == pytest.approx(0.044, abs=0.0005)
    assert float(gap.std()) == pytest.approx(0.052, abs=0.0005)


def test_the_limit_caps_the_mean_age_of_a_whole_run_and_not_of_a_window():
    for slots, lag in ((64, 1), (128, 1), (128, 2)):
        run = simulate(slots, 64, lag, 1.0)
        ages = [v - a.version for v, batch in enumerate(run.trained) for a in batch]
        assert np.mean(ages) <= lag
    assert run.staleness.mean() > lag


def test_two_thirds_of_the_cards_write_if_the_limit_lets_them():
    def seconds(writers, lag):
        return simulate(2 * writers, 64, lag, 1.0, train=16 / (64 - writers)).time_per_step

    best = {lag: min(range(16, 60), key=lambda s: seconds(s, lag)) for lag in (1, 2)}
    assert best == {1: 38, 2: 42}


def test_fewer_or_smaller_flips_lose_fewer_policies(monkeypatch):
    """The page calls its toy a worst case."""
    few = two_engines.train("IcePop [1/2, 2]", 0.05, draws=60)
    assert (few.reward[:, -1] < 0.8).sum() == 2
    monkeypatch.setattr(two_engines, "JUMP", 0.6)
    small = two_engines.train("IcePop [1/2, 2]", 0.2, draws=60)
    assert small.reward[:, -1].min() > 0.8


def test_drawn_answers_change_the_verdict_little():
    rules = ("nothing", "truncated at 2", "IcePop [1/2, 2]", "IcePop, by sign", "DPPO")
    end = {r: train(r, 0.2, draws=60, answers=16).reward[:, -1] for r in rules}
    assert [int((end[r] < 0.8).sum()) for r in rules] == [3, 3, 7, 1, 0]


def test_half_of_the_answers_count_at_a_quarter_of_the_formula_s_length():
    grid = [(n, r, b) for n in long_answers.LENGTHS for r in (False, True)
            for b in long_answers.BATCHES]  # fmt: skip
    found = {g: long_answers.compute(*g, revealed=True) for g in grid}
    assert {g[:2] for g in grid if long_answers.half_of_the_flipped(found[g])} == {(80, False)}
    here = found[80, False, 512]
    said = [here[of][here["at"]] for of in ("best", "worst", "formula", "every")]
    assert said == pytest.approx([0.92, 0.60, 0.83, 0.51], abs=0.006)
    assert np.log(2) / here["std"] ** 2 == pytest.approx(300, abs=8)
    large = found[1000, False, 3072]
    assert large["worst"][-1] == large["best"][-1] > 500 * large["every"][-1]
    for n in long_answers.BATCHES:  # replayed, all four agree
        even = found[1000, True, n]
        ends = [even[of][-1] for of in ("best", "worst", "formula", "every")]
        assert ends == pytest.approx([0.96] * 4, abs=0.015)


def test_one_answer_in_a_hundred_makes_nearly_all_of_the_noise():
    """The lesson's cell, and its share of pi's answers counted forwards instead of backwards."""
    pi = RouterPolicy(seed=0)
    log_pi, log_mu = pi.table(), pi.rounded().table()
    kept = log_pi.masked_fill(log_pi - log_mu > np.log(20), -torch.inf)
    mass = 1 / router_answers.exact_share(kept, log_pi, [1000])[1000]
    forwards = torch.zeros(log_pi.shape[:-1], dtype=torch.float64)
    forwards[(16,) * 4] = 1.0
    for _ in range(1000):
        written = forwards[..., None] * kept.exp()
        forwards = torch.zeros_like(forwards)
        forwards[:16] = written.sum(3).movedim(3, 0)
    assert mass == pytest.approx(float(forwards.sum()), rel=1e-9)
    assert mass == pytest.approx(0.99, abs=0.002)
    left = mass**2 * router_answers.exact_share(kept, log_mu, [1000])[1000]
    assert left == pytest.approx(0.093, abs=0.002)
    squared, rare = (2 * log_pi - log_mu).exp(), kept.isinf()
    means = [torch.ones(log_pi.shape[:-1], dtype=torch.float64)]  # E[w^2], by such tokens: 0, 1, 2
    means += [torch.zeros_like(means[0]) for _ in range(2)]
    for _ in range(1000):
        means = [
            sum(
                torch.einsum("abcdy,yabc->abcd", squared * at, means[k][:16])
                for k, at in ((few, ~rare), (few - 1, rare))
                if k >= 0
            )
            for few in range(3)
        ]
    few = sum(float(mean[(16,) * 4]) for mean in means)
    assert few * router_answers.exact_share(log_pi, log_mu, [1000])[1000] == pytest.approx(
        0.028, abs=0.001
    )


def test_the_exact_weight_wins_only_in_a_large_batch():
    toy = engines(0.2, draws=60)
    rules = ("weight of the answer", "truncated at 2", "IcePop [1/2, 5]", "nothing")
    small, large = ({r: judge(toy, r).error(n) for r in rules} for n in (64, 4096))
    assert max(small, key=lambda rule: small[rule]) == rules[0]
    assert min(large, key=lambda rule: large[rule]) == rules[0]
