"""The benchmark scripts run, at toy sizes on a CPU; what they measure there says nothing."""

from __future__ import annotations

import json
from pathlib import Path

import bench
import cpu_beside_trl
import gpu_decode
import gpu_memory
import gpu_step
import pytest
import torch
import vs_generate
from generate_sampler import sample_by_generate

from rlnb.training import Sampling, encode_prompts, load, sample, token_logprobs


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("script", [gpu_decode, gpu_memory, gpu_step, vs_generate])
def test_a_script_runs_in_pieces_and_resumes(script, tmp_path, capsys, monkeypatch):
    file = tmp_path / "found.json"
    command = ["--dry-run", "--json", str(file)]
    assert len(script.main([*command, "--budget", "0"])) == 1
    assert "1 of" in capsys.readouterr().out and len(json.loads(file.read_text())["results"]) == 1
    found = script.main(command)
    assert len(found) > 1 and not any("error" in result for result in found.values())
    monkeypatch.setattr(script, "piece", lambda *_: pytest.fail("measured again"))
    assert script.main(command) == found
    text = capsys.readouterr().out
    assert "CPU: " in text and "torch" in text and len(file.read_text()) < 10_000


def test_results_of_another_device_are_not_mixed(tmp_path):
    file = tmp_path / "found.json"
    bench.in_pieces(str(file), {"a": lambda: {"x": 1.0}}, 9, {"device": "one"})
    with pytest.raises(SystemExit, match="another device"):
        bench.in_pieces(str(file), {}, 9, {"device": "two"})


def test_a_piece_that_fails_is_kept_with_its_error(tmp_path):
    def fails():
        raise RuntimeError("CUDA out of memory\nand much more")

    found = bench.in_pieces(None, {"a": fails, "b": lambda: {"x": 1.0}}, 9, {})
    assert found == {"a": {"error": "CUDA out of memory"}, "b": {"x": 1.0}}


def test_the_bound_of_decoding_by_hand():
    # 2 weights of 4 bytes; 1 layer, 1 head of 3 numbers: 24 bytes of cache for a token.
    class Model:
        class config:
            num_hidden_layers, num_key_value_heads, head_dim = 1, 1, 3

        def parameters(self):
            return [torch.zeros(2)]

    peak = {"bandwidth": 100.0, "flops": 1.0}
    found = bench.decode_bound(Model(), 5, 2, 4, 4, peak)
    assert found["bytes"] == 4 * (8 + 5 * (2 + 2) * 24)
    assert found["bound_bytes_s"] == found["bytes"] / 100
    assert found["bound_s"] == found["bound_flops_s"] == 4 * 2 * 2 * 5


def test_the_rival_on_generate_is_a_sampler_like_ours():
    model, tokenizer = load(bench.ROOT / "data" / "model", device="cpu")
    prompts = encode_prompts(tokenizer, ["4+3-8=?", "1+2+3+4+5=?"])
    ends = {"eos_id": (2,), "pad_id": 0}
    greedy = Sampling(temperature=0.0)
    ours = sample(model, prompts, 2, greedy, **ends)
    theirs = sample_by_generate(model, prompts, 2, greedy, **ends)
    for name in ("completion_ids", "completion_mask", "finished", "prompt_ids"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name)), name
    torch.manual_seed(0)
    drawn = sample_by_generate(model, prompts, 8, Sampling(temperature=0.8), **ends)
    with torch.no_grad():
        again, _ = token_logprobs(model, drawn, temperature=0.8)
    assert (again - drawn.logprobs).abs().max() < 1e-4 and drawn.lengths.float().std() > 0


def test_beside_trl_runs(tmp_path):
    pytest.importorskip("trl", reason="TRL is not installed: pip install -e .[parity]")
    file = tmp_path / "found.json"
    lines = cpu_beside_trl.main(
        ["--dry-run", "--contestants", "ours", "generate", "trl_fp32", "--json", str(file)]
    )
    assert {line["what"] for line in lines} == {"ours", "generate", "trl_fp32"}
    assert all(line["cpu_s"] > 0 and 2 < line["tokens"] <= 72 for line in lines)
    assert [line["cpu_x"] for line in lines[:3]] == [1.0, 1.0, 1.0]
    assert Path(file).stat().st_size < 10_000
