"""How near decoding comes to the memory's speed: seconds per rollout beside a computed bound.

    python tests/benchmarks/gpu_decode.py --json decode.json     # again, until all is done

Random weights; every row writes the full length, so nothing is won by rows
that end early. The bound is bytes / bandwidth or operations / peak, both measured on this device
just before; `of_bandwidth` is the share of the bandwidth that was used, the target is 0.5.

    graphs, eager    rlnb.training.sampling.graph_decoder.Decoder with and without CUDA graphs
    sample           rlnb.training.sampling.sampler.sample
    generate         transformers' `generate`
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable

import torch
from bench import Values, decode_bound, device_name, in_pieces, make, peaks, seconds, show, title
from generate_sampler import sample_by_generate

from rlnb.training import Sampling, sample
from rlnb.training.models.precision import sampler_copy
from rlnb.training.sampling.graph_decoder import Decoder

# prompts, answers, tokens of a prompt, new tokens
SHAPES = {"large": (512, 16, 20, 100), "0.5B": (64, 8, 100, 300)}
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}
SAMPLERS: dict[str, Callable] = {
    "graphs": lambda: Decoder(), "eager": lambda: Decoder(graphs=False),
    "sample": lambda: sample, "generate": lambda: sample_by_generate,
}  # fmt: skip


def piece(shape: str, dtype: str, sampler: str, device: str, toy: bool) -> Values:
    """One rollout, timed: the quickest of three."""
    prompts, size, length, new = (2, 2, 5, 6) if toy else SHAPES[shape]
    peak = peaks(device, DTYPES[dtype], small=toy)
    model = sampler_copy(make(shape, device, toy), DTYPES[dtype])
    words = model.config.vocab_size
    asked = torch.randint(3, words, (prompts, length)).tolist()
    never = words  # an end token that is not in the vocabulary: nothing ends early
    draw = SAMPLERS[sampler]()
    run = functools.partial(
        draw, model, asked, size, Sampling(max_new_tokens=new), eos_id=never, pad_id=0
    )
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    taken = seconds(run, device, 1 if toy else 3)
    bound = decode_bound(model, prompts * size, length, new, DTYPES[dtype].itemsize, peak)
    return {
        "seconds": taken, "tokens_per_s": prompts * size * new / taken, **bound,
        "x_bound": taken / bound["bound_s"],
        "of_bandwidth": bound["bytes"] / taken / peak["bandwidth"],
        "memory_GB": torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else None,
        "GB_per_s": peak["bandwidth"] / 1e9, "TFLOP_per_s": peak["flops"] / 1e12,
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> dict[str, Values]:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", help="a file for the numbers; what it has is not measured again")
    parser.add_argument("--budget", type=float, default=480, help="seconds before it stops")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--dry-run", action="store_true", help="toy sizes, on the CPU")
    args = parser.parse_args(arguments)
    toy, device = args.dry_run, "cpu" if args.dry_run else "cuda"
    pieces = {
        f"{shape} {dtype} {name}": functools.partial(piece, shape, dtype, name, device, toy)
        for shape in args.shapes for dtype in args.dtypes for name in args.samplers
        if not (toy and name == "graphs")
    }  # fmt: skip
    header = {"device": device_name(device), "script": "gpu_decode", "toy": toy}
    found = in_pieces(args.json, pieces, args.budget, header)
    title(header)
    columns = ("seconds", "tokens_per_s", "bound_s", "x_bound", "of_bandwidth", "memory_GB")
    show([{"piece": n, **{k: r.get(k, r.get("error")) for k in columns}} for n, r in found.items()])
    return found


if __name__ == "__main__":
    main()
