"""Two authors in one text: the desk, sampling with it, and what the recorded study says."""

from __future__ import annotations

import random

import pytest
import torch

from rlnb.shipped import data_folder
from rlnb.training.errors import BadInput
from rlnb.training.models.loading import load
from rlnb.training.sampling.sampler import Sampling
from rlnb.training.sampling.scoring import token_logprobs
from rlnb.training.sampling.turns import sample_turns
from rlnb.training.studies import agents
from rlnb.training.tasks.desk import CHAIN, Desk, demo, play


@pytest.fixture(scope="module")
def small():
    return load(data_folder() / "model", device="cpu")


def rolled(small, desks, max_new_tokens=40, texts=("4+3*2=?", "9-5*2=?")):
    model, tokenizer = small
    problems = [CHAIN.parse(text) for text in texts]
    generator = torch.Generator().manual_seed(0)
    return agents.roll(model, tokenizer, problems, desks, max_new_tokens, generator)


def test_the_desk_calculates_remembers_and_is_cleared():
    desk = Desk()
    assert [desk.reply(c) for c in ("4+3=", "x=", "so=", "9*9=")] == ["7", "7", "?", "1"]
    desk.reset()
    assert desk.reply("x=") == "0" and desk.calls == 1


def test_a_desk_that_does_not_clear_shows_what_was_there():
    desk = Desk(clears=False, memory="5")
    desk.reset()
    assert desk.reply("x=") == "5"


def test_a_busy_desk_says_wait_about_as_often_as_it_should():
    desk = Desk(busy=0.3)
    waits = sum(desk.reply("1+1=") == "wait" for _ in range(2000)) / 2000
    assert waits == pytest.approx(0.3, abs=0.03)
    with pytest.raises(BadInput, match="busy"):
        Desk(busy=1.0)


def test_demonstrations_that_calculate_are_what_the_desk_would_have_said():
    rng = random.Random(0)
    for _ in range(200):
        problem = CHAIN.problem(rng, "train")
        parts = demo(rng, problem, direct=0.0, recall=0.0, busy=0.0)
        turns = [text for author, text in parts if author == "policy"]
        assert play(Desk(), turns) == parts
        assert CHAIN.verify(problem, turns[-1]) == 1.0


def test_every_token_has_one_author_and_the_desk_speaks_behind_each_call(small):
    model, tokenizer = small
    dialogue = rolled(small, [Desk() for _ in range(16)])
    rollout, own = dialogue.rollout, dialogue.own
    assert (own <= rollout.completion_mask).all()
    call = tokenizer.convert_tokens_to_ids("=")
    ids = rollout.completion_ids
    called = (own & (ids == call))[:, :-1] & rollout.completion_mask[:, 1:]
    theirs = (rollout.completion_mask & ~own)[:, 1:]
    assert (called == theirs).all() and theirs.any()  # an answer is one token here
    assert (dialogue.turn >= 0).equal(rollout.completion_mask)


def test_the_desk_says_the_truth_in_the_text(small):
    _, tokenizer = small
    dialogue = rolled(small, [Desk() for _ in range(16)])
    for ids in dialogue.rollout.completion_ids.tolist():
        text = tokenizer.decode(ids, skip_special_tokens=True)
        for step in text.partition("so")[0].split(","):
            call, _, said = step.partition("=")
            if len(call) == 3 and call[1] in "+-*" and call[0].isdigit() and call[2].isdigit():
                assert said[:1] in ("", Desk().reply(call + "="))


def test_sampled_log_probabilities_are_those_of_teacher_forcing_on_own_tokens(small):
    model, _ = small
    dialogue = rolled(small, [Desk() for _ in range(8)])
    with torch.no_grad():
        forced, _ = token_logprobs(model, dialogue.rollout, temperature=1.0)
    gap = (forced - dialogue.rollout.logprobs)[dialogue.own].abs().max()
    assert gap < 1e-4
    assert (dialogue.rollout.logprobs[~dialogue.own] == 0).all()


def test_one_world_per_row_or_a_sentence(small):
    model, tokenizer = small
    with pytest.raises(BadInput, match="worlds"):
        sample_turns(
            model, [[1, 2]], 2, Sampling(max_new_tokens=3), [lambda said: []],
            eos_id=tokenizer.eos_token_id, call_id=5, pad_id=tokenizer.pad_token_id,
        )  # fmt: skip


def test_a_world_may_say_nothing_or_many_tokens(small):
    model, tokenizer = small
    prompt = tokenizer("4+3*2=?")["input_ids"]
    call = tokenizer.convert_tokens_to_ids("=")
    for answer in ([], [5, 6, 7]):
        dialogue = sample_turns(
            model, [prompt], 6, Sampling(max_new_tokens=24), [lambda said, a=answer: a] * 6,
            eos_id=tokenizer.eos_token_id, call_id=call, pad_id=tokenizer.pad_token_id,
            generator=torch.Generator().manual_seed(1),
        )  # fmt: skip
        theirs = dialogue.rollout.completion_ids[dialogue.rollout.completion_mask & ~dialogue.own]
        assert set(theirs.tolist()) <= set(answer)


def test_the_grader_reads_what_the_policy_wrote(small):
    _, tokenizer = small
    dialogue = rolled(small, [Desk(note="so4") for _ in range(16)])
    texts = agents.own_texts(tokenizer, dialogue)
    for text, ids in zip(texts, dialogue.rollout.completion_ids.tolist(), strict=True):
        whole = tokenizer.decode(ids, skip_special_tokens=True)
        assert len(whole) - len(text) >= whole.count("so4") - text.count("so4")


def test_two_steps_of_an_arm_are_the_same_twice(small):
    from copy import deepcopy
    from dataclasses import replace

    model, tokenizer = small
    arm = replace(agents.Arm(), steps=1, prompts=2, num_generations=4, eval_prompts=4,
                  eval_generations=2, eval_every=1, max_new_tokens=16)  # fmt: skip
    first, second = (agents.train_arm(deepcopy(model), tokenizer, arm, 3) for _ in range(2))
    assert first == second and len(first["reward"]) == 1 and len(first["evals"]) == 2


def last(arm, name, when="evals"):
    runs = agents.records()[arm].values()
    return [(r[when][-1] if when == "evals" else r[when])[name] for r in runs]


def test_the_recorded_arms_are_those_of_the_study():
    found = agents.records()
    assert set(found) == set(agents.ARMS)
    for arm, runs in found.items():
        assert sorted(runs) == [0, 1, 2]
        for run in runs.values():
            assert run["recipe"] == vars(agents.ARMS[arm])


def test_recorded_the_leak_teaches_to_peek_and_the_reset_cures_it():
    for run in agents.records()["leak"].values():
        assert sum(run["reward"][-10:]) / 10 > 0.85
    assert max(last("leak", "pass@1")) < 0.2 and min(last("leak", "recalls")) > 0.8
    assert min(last("masked", "pass@1")) > 0.5 and max(last("masked", "recalls")) < 0.1


def test_recorded_a_forgotten_mask_shows_in_the_worlds_tokens_and_not_in_pass_at_1():
    start = [run["evals"][0]["wait"] for run in agents.records()["masked"].values()][0]
    assert all(abs(x - start) < 1 for x in last("masked", "wait"))
    assert all(x < start - 2 for x in last("unmasked", "wait"))
    mean = {arm: sum(last(arm, "pass@1")) / 3 for arm in ("masked", "unmasked")}
    assert abs(mean["masked"] - mean["unmasked"]) < 0.08


def test_recorded_a_note_is_obeyed_with_the_mask_and_after_training_with_notes():
    assert max(last("masked", "pass@1", "noted")) < 0.05
    assert max(last("notes", "pass@1", "noted")) < 0.1  # what is never sampled is never rewarded
