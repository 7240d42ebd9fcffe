"""data/configs as accelerate and TRL themselves read it. Nothing is launched."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest
import yaml

from rlnb.objective import ZOO
from rlnb.shipped import data_folder

FOLDER = data_folder() / "configs"


@pytest.mark.parametrize(
    "name, variables",
    [
        ("accelerate_fsdp2.yaml", {
            "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2",
            "FSDP_RESHARD_AFTER_FORWARD": "true", "ACCELERATE_MIXED_PRECISION": "bf16",
        }),
        ("accelerate_zero3.yaml", {
            "ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3",
            "ACCELERATE_MIXED_PRECISION": "bf16",
        }),
    ],
)  # fmt: skip
def test_accelerate_takes_every_word_of_its_files(name, variables):
    launch = pytest.importorskip("accelerate.commands.launch")
    from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

    given = ["--config_file", str(FOLDER / name), "train.py"]
    args, defaults, _ = launch._validate_launch_command(
        launch.launch_command_parser().parse_args(given)
    )
    written = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    assert args.num_processes == defaults.num_processes == written["num_processes"] == 8
    if "zero3" in name:
        args.deepspeed_fields_from_accelerate_config = ",".join(defaults.deepspeed_config)
        environment = prepare_deepspeed_cmd_env(args)[1]
    else:
        environment = prepare_multi_gpu_env(args)
    assert {key: environment.get(key) for key in variables} == variables


@pytest.mark.parametrize("name", ["trl_vllm_colocate.yaml", "trl_vllm_server.yaml"])
def test_trl_takes_every_word_of_its_files(name, tmp_path):
    trl = pytest.importorskip("trl")
    from rlnb.interop.trl_fit import refuse_words

    (args,) = trl.TrlParser(trl.GRPOConfig).parse_args_and_config([
        "--config", str(FOLDER / name), "--output_dir", str(tmp_path), "--bf16", "false",
        "--use_cpu", "true",
    ])  # fmt: skip
    words = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    said = {key: getattr(args, key) for key in words if key != "bf16"}
    assert said == {key: value for key, value in words.items() if key != "bf16"}
    refuse_words(ZOO["dapo"], args)  # no word of the loss among them


def test_the_script_beside_them_trains(tmp_path):
    pytest.importorskip("trl")
    warnings.simplefilter("ignore")
    done = subprocess.run(
        [sys.executable, str(FOLDER / "train.py"), "--objective", "maxrl", "--output_dir",
         str(tmp_path), "--use_cpu", "true", "--bf16", "false", "--max_steps", "1",
         "--problems", "8", "--max_completion_length", "8", "--report_to", "none",
         "--save_strategy", "no", "--logging_steps", "1"],
        env={**os.environ, "PYTHONPATH": str(data_folder().parent), "HF_HUB_OFFLINE": "1"},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "'reward'" in done.stdout
