"""The fixed set of prompts, and how mastered ones leave it."""

from __future__ import annotations

import copy
import dataclasses
import json
import random

import pytest
import torch

from rlnb.objective import ZOO
from rlnb.training import BadInput, PromptPool, is_held_out, read, replay, series, train
from rlnb.training.__main__ import main
from rlnb.training.metrics_file import CLOCKS
from rlnb.training.step import start, step

DIGITS = [digit for digit in range(10) if not is_held_out(f"4+{digit}=?")][:4]


@pytest.fixture
def problems(chain):
    return [chain.parse(f"4+{digit}=?") for digit in DIGITS]


def prompts(problems):
    return [problem.prompt for problem in problems]


def test_one_task_and_seed_give_one_pool_of_training_prompts(chain):
    pool, again, other = (PromptPool.drawn(chain, 50, seed) for seed in (3, 3, 4))
    assert pool.problems == again.problems != other.problems
    assert len(set(prompts(pool.problems))) == 50
    assert not any(map(is_held_out, prompts(pool.problems)))


def test_a_step_draws_different_prompts_that_are_still_in(problems):
    pool = PromptPool(problems, retire=0.9)
    pool.record(problems[:1], [8], 8)
    seen = [pool.draw(random.Random(seed), 2) for seed in range(40)]
    assert all(len(set(prompts(two))) == 2 for two in seen)
    assert {prompt for two in seen for prompt in prompts(two)} == set(prompts(problems[1:]))


def test_a_prompt_leaves_at_the_threshold_and_not_below_it(problems):
    pool = PromptPool(problems, retire=0.9)
    pool.record(problems[:2], [9, 10], 10)  # 9/10 is 0.9
    assert pool.remaining == problems[2:]
    pool = PromptPool(problems, retire=0.9)
    pool.record(problems[:2], [89, 90], 100)
    assert pool.remaining == [problems[0], *problems[2:]]


def test_all_visits_count_or_only_the_last_ones(problems):
    # Passed of 8: 0, 8, 8. All visits: 16/24 = 0.67; the last two: 1; the last one: 1.
    left = {}
    for visits in (None, 1, 2, 3):
        pool = PromptPool(problems, retire=0.9, visits=visits)
        left[visits] = next(
            (n for n, passed in enumerate([0, 8, 8], 1)
             if pool.record(problems[:1], [passed], 8) or pool.retired), None)  # fmt: skip
    assert left == {None: None, 1: 2, 2: 3, 3: None}


def test_a_prompt_seen_fewer_times_than_visits_stays(problems):
    pool = PromptPool(problems, retire=0.9, visits=2)
    pool.record(problems[:1], [8], 8)
    assert not pool.retired
    pool.record(problems[:1], [8], 8)
    assert pool.retired == {problems[0].prompt}


def test_nobody_leaves_without_a_threshold(problems):
    pool = PromptPool(problems)
    pool.record(problems[:2], [8, 8], 8)
    assert pool.remaining == problems


def test_a_step_keeps_its_size_and_the_best_leave_first(problems):
    pool = PromptPool(problems, retire=0.5)
    pool.record(problems[:3], [6, 8, 7], 8)  # all due, but a step draws 3 and 4 are in
    assert pool.retired == {problems[1].prompt}
    pool.record([p for p in problems if p != problems[1]], [8, 8, 8], 8)
    assert pool.retired == {problems[1].prompt}  # the pool is as small as a step


def test_its_state_survives_json(problems):
    pool, again = (
        PromptPool(problems, retire=0.9, visits=1),
        PromptPool(problems, retire=0.9, visits=1),
    )
    pool.record(problems[:2], [8, 3], 8)
    again.setstate(json.loads(json.dumps(pool.getstate())))
    assert (again.history, again.retired) == (pool.history, pool.retired)
    assert again.remaining == problems[1:]


@pytest.mark.parametrize(
    "options, message",
    [({"retire": 0.0}, "retire: got 0.0, expected a pass rate above 0, at most 1"),
     ({"retire": 1.5}, "retire: got 1.5"), ({"visits": 0}, "visits: got 0, expected 1 or more")],
)  # fmt: skip
def test_an_impossible_pool_names_its_field(problems, options, message):
    with pytest.raises(BadInput, match=message):
        PromptPool(problems, **options)


def test_a_prompt_given_twice_or_held_out_is_refused(chain, problems):
    with pytest.raises(BadInput, match=f"'4.{DIGITS[0]}=.' is in it twice"):
        PromptPool([*problems, problems[0]])
    with pytest.raises(BadInput, match="is a held-out prompt"):
        PromptPool([*problems, chain.problem(random.Random(0), "test")])
    with pytest.raises(BadInput, match="got no problem"):
        PromptPool([])
    with pytest.raises(BadInput, match="got 0, expected a size of 1 or more"):
        PromptPool.drawn(chain, 0)


def test_a_task_with_too_few_prompts(problems):
    class Two:
        name = "two"

        def problem(self, rng, split):
            return rng.choice(problems[:2])

    assert len(PromptPool.drawn(Two(), 2).problems) == 2
    with pytest.raises(BadInput, match="draws from 'two' gave 2 different prompts, not 3"):
        PromptPool.drawn(Two(), 3)


def test_a_pool_smaller_than_a_step(fresh, chain, tiny):
    with pytest.raises(BadInput, match="it has 3 prompts, but a step takes 4"):
        start(*fresh, chain, ZOO["dr_grpo"], tiny, pool=PromptPool.drawn(chain, 3))


def test_the_loop_asks_only_the_pool_and_retires_what_it_is_rewarded_for(fresh, chain, roomy):
    pool = PromptPool.drawn(chain, 10, retire=0.9)
    mastered = set(prompts(pool.problems[:5]))
    asked = []

    def reward(problem, text):
        asked.append(problem.prompt)
        return float(problem.prompt in mastered)

    run = start(*fresh, chain, ZOO["dr_grpo"], roomy, pool=pool, reward=reward)
    for number in range(1, 9):
        metrics = step(run)
        seen = set(asked) & mastered
        assert pool.retired == seen and metrics["pool/retired"] == len(seen)
        assert metrics["pool/size"] == 10 - len(seen)
        assert len(asked) == number * 16
    assert set(asked) <= set(prompts(pool.problems))
    counts = {prompt: asked.count(prompt) for prompt in mastered}
    assert set(counts.values()) <= {0, 4}  # one visit of 4 answers, and never again
    assert len(seen) >= 3


def test_answers_of_a_dropped_group_are_counted(fresh, chain, roomy):
    pool = PromptPool.drawn(chain, 4)
    run = start(
        *fresh, chain, ZOO["dr_grpo"], roomy, pool=pool, reward=lambda p, t: 1.0,
        keep=lambda batch: torch.tensor([]).long(),
    )  # fmt: skip
    metrics = step(run)
    assert metrics["groups/kept"] == 0 and metrics["reward"] == 1.0  # nothing was cut off
    assert pool.history == {prompt: [(4, 4)] for prompt in prompts(pool.problems)}


class Killed(Exception):
    """The run ends here, as if its process had been killed."""


def test_a_killed_run_resumes_with_the_pool_it_had(shipped, chain, roomy, tmp_path):
    recipe = dataclasses.replace(roomy, steps=6, eval_every=6)

    def run(folder, reward=None, **options):
        model, pool = copy.deepcopy(shipped[0]), PromptPool.drawn(chain, 12, retire=0.7, visits=1)
        records = train(model, shipped[1], chain, ZOO["dr_grpo"], recipe, out=tmp_path / folder,
                        pool=pool, reward=reward, progress=False, **options)  # fmt: skip
        return [{k: v for k, v in r.items() if k not in CLOCKS} for r in records], pool

    def verify(problem, text):
        return chain.verify(problem, text)

    class Stops:
        name, calls = "verify", 0

        def __call__(self, problem, text):
            self.calls += 1
            if self.calls > 4 * 16 + 5:  # inside step 5, after the checkpoint of step 4
                raise Killed
            return verify(problem, text)

    whole, pool = run("a", verify)
    with pytest.raises(Killed):
        run("b", Stops())
    rest, again = run("b", verify, resume=True)
    assert rest == whole and again.getstate() == pool.getstate()
    retired = series(whole, "pool/retired")
    assert 0 < retired[4] <= retired[6] < 12  # or nothing is tested


def test_resuming_with_another_pool_names_it(fresh, chain, tiny, tmp_path):
    recipe = dataclasses.replace(tiny, steps=1, eval_every=0)

    def run(pool, **options):
        train(*fresh, chain, ZOO["dr_grpo"], recipe, out=tmp_path, pool=pool, progress=False,
              **options)  # fmt: skip

    run(PromptPool.drawn(chain, 6, retire=0.9))
    for other in (
        PromptPool.drawn(chain, 6, retire=0.8),
        PromptPool.drawn(chain, 6, 1, retire=0.9),
        None,
    ):
        with pytest.raises(BadInput, match="has pool="):
            run(other, resume=True)


def test_the_pool_is_flags_and_the_replay_shows_it(model_folder, tmp_path, capsys):
    line = ["grpo", "--model", str(model_folder), "--prompts", "2", "--num-generations", "4",
            "--eval-every", "0", "--device", "cpu", "--steps", "2"]  # fmt: skip
    out = tmp_path / "run"
    assert main([*line, "--out", str(out), "--pool", "6", "--retire", "0.9", "--visits", "1",
                 "--seed", "3", "--keep", "mixed"]) == 0  # fmt: skip
    text = capsys.readouterr().out
    assert "pool of 6 prompts, retired at 0.9 over the last visit" in text
    records = read(out)
    assert records[0]["pool"]["size"] == 6 and len(series(records, "pool/size")) == 2

    def header(**changes):
        return {"record": "header", "pool": records[0]["pool"] | changes}

    assert "over the last 3 visits" in replay([header(visits=3)])
    assert "over all visits" in replay([header(visits=None)])
    assert "none retires" in replay([header(retire=None)])


@pytest.mark.parametrize(
    "flags, message",
    [(["--retire", "0.9"], "add --pool N"), (["--visits", "1"], "add --retire 0.9"),
     (["--pool", "0"], "pool: got 0"), (["--pool", "9", "--retire", "2"], "retire: got 2.0"),
     (["--pool", "3"], "it has 3 prompts, but a step takes 16")],
)  # fmt: skip
def test_bad_pool_flags_are_one_sentence(model_folder, tmp_path, capsys, flags, message):
    line = ["grpo", "--model", str(model_folder), "--out", str(tmp_path / "run"), "--device", "cpu"]
    assert main([*line, *flags]) == 2
    printed = capsys.readouterr().err
    assert message in printed and len(printed.strip().splitlines()) == 1
