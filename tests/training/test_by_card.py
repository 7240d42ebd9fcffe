"""What is recommended for a card fits it, is what the command does, and stands in the README."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlnb.training.__main__ import given, parser, start_of
from rlnb.training.recipe_by_size import parameters_of, recipe_for
from rlnb.training.studies.by_card import CHOICES, COMMAND, SHAPES, minutes, needed, table
from rlnb.training.studies.gpu_plans import SHARE
from rlnb.training.studies.gpu_time import CARDS

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.parametrize("choice", CHOICES, ids=lambda c: c.card)
def test_a_choice_fits_its_card(choice):
    assert CARDS[choice.card].memory == choice.gigabytes
    assert needed(choice) <= SHARE * choice.gigabytes * 1e9
    assert 5 < minutes(choice) < 120


@pytest.mark.parametrize("choice", CHOICES, ids=lambda c: c.card)
def test_typing_it_gives_its_recipe(choice):
    line = f"{COMMAND} {choice.flags}".split()[3:]
    args = parser().parse_args(line)
    assert args.task == "countdown_text" and start_of(args) == choice.model
    lower = "bfloat16" if CARDS[choice.card].bfloat16 else "float16"
    assert recipe_for(parameters_of(args.model), lower, **given(args)) == choice.recipe


def test_a_larger_model_or_the_default_would_not_fit_where_flags_are_typed():
    eight, sixteen, card, _ = CHOICES
    for choice in (eight, sixteen):  # all weights, as the size alone would have it
        whole = replace(choice, typed=())
        assert needed(whole) > SHARE * choice.gigabytes * 1e9
    larger = replace(card, model="Qwen/Qwen3-4B-Instruct-2507")
    assert needed(larger) <= SHARE * 24e9  # 1.5B to 4B on 24 GB
    assert needed(replace(larger, typed=())) > SHARE * 24e9  # with 512 tokens it does not


def test_public_layouts_have_their_parameters():
    counts = {name: shape.parameters for name, shape in SHAPES.items()}
    assert counts == {
        "Qwen/Qwen2.5-0.5B-Instruct": pytest.approx(494.0e6, rel=1e-3),
        "Qwen/Qwen2.5-1.5B-Instruct": pytest.approx(1543.7e6, rel=1e-3),
        "Qwen/Qwen3-4B-Instruct-2507": pytest.approx(4022.5e6, rel=1e-3),
    }


def test_the_table_says_that_all_rows_are_lora_and_at_which_rate():
    *_, last = table().splitlines()
    assert last.startswith("all: LoRA of rank 32") and "learning rate 1e-05" in last
    assert table().count("all: ") == 1  # one sentence holds for every row


def test_the_readme_has_the_table():
    text = README.read_text(encoding="utf-8")
    for line in table().splitlines():
        assert f"    {line}\n" in text


def test_the_cell_for_colab_runs_and_goes_on(tmp_path, monkeypatch, capsys):
    """As it stands in the README, but for the three words above it and what pip would install."""
    text = README.read_text(encoding="utf-8")
    part = text.split("**Colab and Kaggle.**")[1].split("**Your own task")[0]
    cell = "\n".join(line[4:] for line in part.splitlines() if line.startswith("    ") or not line)
    what = ("--task chain --device cpu --prompts 2 --num-generations 2 --eval-every 0 "
            "--checkpoint-every 1 --max-completion-length 24 --steps ")  # fmt: skip
    own = {"COURSE": README.parent, "RUN": tmp_path / "run"}
    lines = [
        f"{line.split()[0]} = {str(own[line.split()[0]])!r}" if line.split()[:1] and
        line.split()[0] in own else line
        for line in cell.splitlines()
    ]  # fmt: skip
    assert '"pip", "install"' in cell and "[training]" in cell
    for steps, said in ((1, "1 steps"), (2, "2 steps")):
        source = "\n".join(
            f"WHAT = {what + str(steps)!r}" if line.startswith("WHAT") else line
            for line in lines
            if '"pip"' not in line
        )
        assert "pip" not in source and "drive.mount" in source
        monkeypatch.setenv("PYTHONPATH", str(README.parent))
        exec(compile(source, "cell", "exec"), {})
        out = capsys.readouterr().out
        assert "CPU, slow" in out and said in out
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()
    assert len(max(cell.splitlines(), key=len)) <= 88
