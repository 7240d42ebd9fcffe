"""The commands: two files compared, JSON, exit codes, fixes as a patch, many files checked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from interop.test_explanation import TRL_CASES, VERL_CASES, trl, verl

from rlnb.interop import compare_configs, explain_config
from rlnb.interop.__main__ import main
from rlnb.interop.patch import fix_of, patch
from rlnb.interop.traps import SEVERITIES, severity
from rlnb.interop.traps_others import OPENRLHF_TRAPS, SLIME_TRAPS
from rlnb.interop.traps_trl import TRL_TRAPS
from rlnb.interop.traps_verl import VERL_TRAPS

ROOT = Path(__file__).resolve().parents[2]
GRPO = (
    "from trl import GRPOConfig\n\nargs = GRPOConfig(\n    loss_type='dr_grpo',\n    beta=0.0,\n)\n"
)


# ---- two configurations


def test_two_configurations_differ_in_words_parts_and_traps():
    told = compare_configs(
        {"loss_type": "grpo", "beta": 0.04, "learning_rate": 1e-6},
        {"loss_type": "dr_grpo", "beta": 0.0, "learning_rate": 2e-6},
    )
    assert told.words == (("loss_type", "'grpo'", "'dr_grpo'"), ("beta", "0.04", "0.0"))
    assert told.others == ("learning_rate",)
    assert {c.part for c in told.parts} == {"weights", "terms"}
    assert [n for n, _ in told.new] == ["dr_grpo_std"] and told.gone == ("kl_corrected",)
    text = str(told)
    assert "loss_type: 'grpo' -> 'dr_grpo'" in text and max(map(len, text.splitlines())) <= 76


def test_a_default_and_an_unread_word_are_told_apart():
    told = compare_configs("GRPOConfig(loss_type='grpo')", "GRPOConfig(loss_type='grpo', beta=b)")
    assert told.words == (("beta", "0.0 (default)", "b, not bound to a literal (not read)"),)
    assert "the same" in str(compare_configs({"loss_type": "grpo"}, {"loss_type": "grpo"}))


# ---- fixes


@pytest.mark.parametrize(
    "cases, build, rules", [(TRL_CASES, trl, TRL_TRAPS), (VERL_CASES, verl, VERL_TRAPS)]
)
def test_what_a_sentence_says_to_write_silences_it(cases, build, rules):
    """Wherever the sentence has words to write, writing them is enough."""
    tried = 0
    for rule in rules:
        for words in cases[rule.name][0]:
            if words.get("adv_estimator") == "" or "entry" in words:
                continue
            fix = fix_of(dict(build(**words).traps)[rule.name])
            leaves = {w.rpartition(".")[2]: v.strip("'") for w, v in fix.items()}
            if not leaves:
                continue
            renamed = {"enable": "filter", "use_v1": "v1", "use_dynamic_bsz": "dynamic"}
            new = {renamed.get(w, w): yaml.safe_load(v) for w, v in leaves.items()}
            if "n" in new or not set(new) & {"trainer"}:
                after = build(**{**words, **new})
                assert rule.name not in dict(after.traps), (rule.name, words, fix)
                tried += 1
    assert tried > 20


@pytest.mark.parametrize(
    "text, name, line",
    [
        (GRPO, "train.py", "+    scale_rewards='none',"),
        ("loss_type: dr_grpo\nbeta: 0.0\n", "a.yaml", "+scale_rewards: none"),
        (
            "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\\n"
            "    actor_rollout_ref.actor.use_kl_loss=True \\\n"
            "    actor_rollout_ref.actor.kl_loss_type=kl \\\n    trainer.nnodes=1\n",
            "run.sh",
            "+    actor_rollout_ref.actor.kl_loss_type=low_var_kl \\",
        ),
    ],
)
def test_the_fix_is_a_diff_that_applies_and_mends(tmp_path, text, name, line):
    diff, mended, _ = patch(text, name, {"dr_grpo_std", "kl_no_gradient"})
    assert line in diff.splitlines() and len(mended) == 1
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    subprocess.run(["git", "apply", "-p1", "-"], input=diff, text=True, cwd=tmp_path, check=True)
    after = explain_config(file.read_text(encoding="utf-8"))
    assert mended[0] not in dict(after.traps)


def test_a_note_is_a_choice_and_is_mended_only_when_asked(tmp_path, capsys):
    path = tmp_path / "a.yaml"
    path.write_text("loss_type: grpo\nbeta: 0.0\ntop_p: 0.9\ntemperature: 0.7\n", encoding="utf-8")
    assert main(["explain", "--patch", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "+top_p: 1.0" in out and "+temperature" not in out and "mended: cut_distribution" in err
    assert main(["explain", "--patch", "--only", "temperature", str(path)]) == 0
    assert "+temperature: 1.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        GRPO + "other = GRPOConfig(loss_type='dr_grpo')\n",  # which of the two?
        "args = GRPOConfig(**{'loss_type': 'dr_grpo'})\nprint('loss_type=1', 'loss_type=2')\n",
    ],
)
def test_what_cannot_be_edited_safely_is_left(text):
    diff, mended, left = patch(text, "train.py", {"dr_grpo_std"})
    assert (mended == [] and diff == "" and left == ["dr_grpo_std"]) or mended == ["dr_grpo_std"]
    if "other" in text:
        assert mended == []


# ---- the commands


def test_json_has_what_the_page_has(tmp_path, capsys):
    path = tmp_path / "a.yaml"
    path.write_text("loss_type: dr_grpo\nbeta: 0.0\n", encoding="utf-8")
    assert main(["explain", "--json", str(path)]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["nearest"] == "dr_grpo" and report["method"] is None
    (trap,) = report["traps"]
    assert trap["name"] == "dr_grpo_std" and trap["fix"] == {"scale_rewards": "'none'"}


@pytest.mark.parametrize(
    "text, status",
    [
        ("loss_type: dapo\nnum_iterations: 2\nepsilon_high: 0.28\n", 0),
        ("loss_type: dapo\nepsilon_high: 0.28\n", 3),
        ("loss_type: dr_grpo\n", 4),
        ("loss_type: dr_grpo\nnum_generations: 1\n", 5),
    ],
)
def test_exit_codes_by_severity(tmp_path, capsys, text, status):
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(["explain", str(path)]) == 0
    assert main(["explain", "--exit-code", str(path)]) == status


def test_every_trap_has_a_severity():
    named = [*TRL_TRAPS, *VERL_TRAPS, *OPENRLHF_TRAPS, *SLIME_TRAPS]
    assert {severity(t.name) for t in named} == set(SEVERITIES[1:])


def test_check_fails_on_a_named_trap_and_passes_over_other_files(tmp_path, capsys):
    bad, other = tmp_path / "bad.yaml", tmp_path / "other.py"
    bad.write_text("loss_type: dr_grpo\nbeta: 0.0\n", encoding="utf-8")
    other.write_text("print(1)\n", encoding="utf-8")
    files = [str(bad), str(other)]
    assert main(["check", *files]) == 0  # a warning is no error
    assert main(["check", "--fail-on", "cispo_cap", *files]) == 0
    capsys.readouterr()
    assert main(["check", "--fail-on", "dr_grpo_std", *files]) == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"{bad}: YAML: warning [dr_grpo_std]") and out.count("\n") == 1
    assert "passed over" in err
    assert main(["check", "--fail-on", "warning", *files]) == 1


def test_two_files_on_the_command_line_are_compared(tmp_path, capsys):
    for name, beta in (("a", 0.0), ("b", 0.04)):
        (tmp_path / f"{name}.yaml").write_text(f"loss_type: grpo\nbeta: {beta}\n", encoding="utf-8")
    assert main(["explain", str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")]) == 0
    assert "beta: 0.0 -> 0.04" in capsys.readouterr().out


def test_an_unknown_version_is_a_sentence(tmp_path, capsys):
    path = tmp_path / "a.yaml"
    path.write_text("loss_type: grpo\n", encoding="utf-8")
    assert main(["explain", "--trl", "7.7", str(path)]) == 2
    assert "is not known here" in capsys.readouterr().err


def test_the_reading_needs_no_torch(tmp_path):
    """Seconds are no test; that nothing of torch was loaded is."""
    path = tmp_path / "a.yaml"
    path.write_text("loss_type: grpo\nbeta: 0.04\n", encoding="utf-8")
    code = (
        "import sys; from rlnb.interop.__main__ import main; "
        f"main(['explain', {str(path)!r}]); assert 'torch.nn' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert done.returncode == 0 and "nearest of 29 is grpo" in done.stdout, done.stderr


def test_the_hook_and_the_action_call_commands_that_exist():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["entry"].split()[:2] == ["rlnb", "check"] and hook["language"] == "python"
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    steps = " ".join(str(step.get("run", "")) for step in action["runs"]["steps"])
    assert "rlnb check --fail-on" in steps and set(action["inputs"]) == {"files", "fail-on", "trl"}
    from rlnb.__main__ import COMMANDS

    assert COMMANDS["check"] == ("rlnb.interop", "check")
