"""`rlnb COMMAND` is the module's own command, with the module's own flags and exit status."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from rlnb.__main__ import COMMANDS, main


@pytest.fixture(autouse=True)
def own_arguments(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rlnb"])


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_stands_in_the_list_and_names_a_module_that_is_there(command, capsys):
    assert main(["--help"]) == 0
    assert any(row.split()[:2] == ["rlnb", command] for row in capsys.readouterr().out.splitlines())
    assert importlib.util.find_spec(COMMANDS[command][0])


@pytest.mark.parametrize("command", ["train", "base", "eval", "replay", "explain", "rosetta"])
def test_flags_reach_the_command_of_the_module(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"{COMMANDS[command][1]} [-h]" in capsys.readouterr().out


def test_a_configuration_is_explained(tmp_path, capsys):
    config = tmp_path / "train.py"
    config.write_text("from trl import GRPOConfig\nGRPOConfig(loss_type='dr_grpo', beta=0.04)\n")
    with pytest.raises(SystemExit) as ended:
        main(["explain", str(config)])
    assert ended.value.code == 0 and "0.04" in capsys.readouterr().out


def test_the_modules_exit_status_is_the_commands(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["replay", "nowhere"])
    assert ended.value.code == 2 and "there is no recorded run" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["trian"]])
def test_no_command_and_an_unknown_one_list_them_all(arguments, capsys):
    assert main(arguments) == 2
    assert "rlnb train FLAGS" in capsys.readouterr().err
