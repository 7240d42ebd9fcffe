"""What the benchmark scripts share: device names, bounds, pieces that resume, tables, JSON."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from rlnb.training import build_model

ROOT = Path(__file__).parents[2]
Values = dict[str, Any]


def device_name(device: str | torch.device) -> str:
    """What the numbers were measured on, in words."""
    if torch.device(device).type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    found = Path("/proc/cpuinfo")
    lines = found.read_text().splitlines() if found.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"CPU: {names[0] if names else 'unknown'} x {os.cpu_count()}, torch {torch.__version__}"


def wait(device: str | torch.device) -> None:
    """Until the device has done all it was given."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def seconds(work: Callable[[], Any], device: str | torch.device, repeats: int = 3) -> float:
    """The quickest of some runs, after one that does not count."""
    best = float("inf")
    for i in range(repeats + 1):
        wait(device)
        clock = time.perf_counter()
        work()
        wait(device)
        if i:
            best = min(best, time.perf_counter() - clock)
    return best


def peaks(device: str, dtype: torch.dtype, *, small: bool = False) -> Values:
    """Measured here: bytes/s of a copy (read and written both count), FLOP/s of a square matmul."""
    large = torch.device(device).type == "cuda" and not small
    source = torch.empty(2**30 if large else 2**22, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copied = seconds(lambda: target.copy_(source), device, 10)
    n = 8192 if large else 256
    a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    multiplied = seconds(lambda: a @ b, device, 10)
    return {"bandwidth": 2 * len(source) / copied, "flops": 2 * n**3 / multiplied}


def half_billion(toy: bool = False) -> Qwen2ForCausalLM:
    """Qwen2.5-0.5B's shape, randomly initialised; toy: the same with little of everything."""
    width, layers, heads, words = (28, 2, 14, 512) if toy else (896, 24, 14, 151_936)
    config = Qwen2Config(
        vocab_size=words, hidden_size=width, intermediate_size=width * 38 // 7,
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=2,
        tie_word_embeddings=True, max_position_embeddings=4096, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        dtype="float32",
    )  # fmt: skip
    return Qwen2ForCausalLM(config)


def make(shape: str, device: str, toy: bool) -> PreTrainedModel:
    """A random model: "large" is the 25M preset, "0.5B" Qwen2.5-0.5B's shape."""
    torch.manual_seed(0)
    model = half_billion(toy) if shape == "0.5B" else build_model(0, "tiny" if toy else shape)
    return model.to(device).eval()


def cache_bytes(model: PreTrainedModel, itemsize: int) -> int:
    """Keys and values of one token, in all layers."""
    config = model.config
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return 2 * config.num_hidden_layers * config.num_key_value_heads * size * itemsize


def decode_bound(
    model: PreTrainedModel, rows: int, prompt: int, new: int, itemsize: int, peak: Values
) -> Values:
    """The least seconds `new` tokens of `rows` rows can take, from bytes and operations.

    Each token reads all weights once, and each row its keys and values so far; 2 operations per
    weight and row. The slower of the two counts, token by token on average.
    """
    weights = sum(p.numel() for p in model.parameters())
    read = new * (weights * itemsize + rows * (prompt + new / 2) * cache_bytes(model, itemsize))
    done = new * 2 * weights * rows
    by_bytes, by_flops = read / peak["bandwidth"], done / peak["flops"]
    return {"bytes": read, "bound_s": max(by_bytes, by_flops), "bound_bytes_s": by_bytes,
            "bound_flops_s": by_flops}  # fmt: skip


def in_pieces(
    path: str | None, pieces: dict[str, Callable[[], Values]], budget: float, header: Values
) -> dict[str, Values]:
    """Measures what the file does not have yet, and stops between two pieces after `budget` s.
    At least one piece is measured in each call.

    The file is written after each piece, so a script that was stopped goes on where it was. A piece
    that fails is kept with its error. Results of another header (device, options) are not mixed.
    """
    started, found, new = time.perf_counter(), {}, 0
    if path and Path(path).exists():
        old = json.loads(Path(path).read_text())
        if {k: old.get(k) for k in header} != json.loads(json.dumps(header)):
            raise SystemExit(f"{path}: it is of another device or setting; give a new file")
        found = old["results"]
    for name, work in pieces.items():
        if name in found:
            continue
        if new and time.perf_counter() - started > budget:
            print(f"{len(found)} of {len(pieces)} pieces done; the same command does the others")
            break
        try:
            found[name] = work()
        except (RuntimeError, ValueError) as error:
            found[name] = {"error": str(error).partition("\n")[0][:200]}
        new += 1
        print(name, found[name], flush=True)
        if path:
            write_json(path, {**header, "results": found})
    return found


def title(header: Values) -> None:
    """The line above a table: on what it was measured."""
    toy = " (a dry run: toy sizes, these numbers say nothing)" if header["toy"] else ""
    print(header["device"] + toy)


def show(lines: Sequence[Values]) -> None:
    """Rows of one table, columns as in the first row; numbers with three digits."""
    if not lines:
        return
    cells = [list(lines[0])] + [[_text(line.get(k)) for k in lines[0]] for line in lines]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        print("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def fields_of(thing: Any, names: Sequence[str]) -> dict[str, list[float]]:
    return {name: [round(x, 4) for x in getattr(thing, name)] for name in names}


def write_json(path: str | Path, values: Values) -> None:
    """Written beside and renamed, so that a script that is killed leaves the last good file."""
    path = Path(path)
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(values, indent=1) + "\n")
    beside.replace(path)
