"""The same training loop on three samplers: samples per second, and the ratio to `generate`.

    python tests/benchmarks/vs_generate.py                              # CPU, the shipped model
    python tests/benchmarks/vs_generate.py --device cuda --json gpu.json

The shipped model on `chain` with natural lengths; on a GPU also the 25M preset with random weights,
whose answers all have full length. Everything but the sampler is the same: recipe, objective,
verifier. They take turns, a step each. Not yet run on a GPU.

    auto        what the loop takes on this device: `sample` on a CPU, `Decoder` on CUDA
    sample      rlnb.training.sampling.sampler.sample
    generate    transformers' `generate`
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable

import torch
from bench import ROOT, Values, device_name, in_pieces, make, show, title, wait
from generate_sampler import sample_by_generate

from rlnb.objective import ZOO
from rlnb.training import TASKS, Recipe, load, sample
from rlnb.training.sampling.graph_decoder import sampler_for
from rlnb.training.step import start, step

# prompts, answers, longest answer
SHAPES = {"shipped": (16, 8, 72), "large": (512, 16, 100)}


def piece(shape: str, prompts: int, device: str, steps: int, toy: bool) -> Values:
    """Seconds of a step and of its sampling by sampler, means over the steps after the first."""
    _, size, new = (0, 2, 8) if toy else SHAPES[shape]
    samplers: dict[str, Callable] = {"auto": sampler_for(device), "generate": sample_by_generate}
    if device != "cpu":
        samplers["sample"] = sample
    recipe = Recipe(
        prompts=prompts, num_generations=size, max_completion_length=new,
        micro_batch=64 if device == "cpu" else 512, tf32=True,
    )  # fmt: skip
    spent = {name: [0.0, 0.0, 0.0] for name in samplers}  # wall, CPU, wall of sampling

    def timed(name: str, draw: Callable) -> Callable:
        def sampler(*args, **options):
            wait(device)
            clock = time.perf_counter()
            rollout = draw(*args, **options)
            wait(device)
            spent[name][2] += time.perf_counter() - clock
            return rollout

        return sampler

    runs = {}
    for name, draw in samplers.items():
        torch.manual_seed(0)
        model, tokenizer = load(ROOT / "data" / "model", device=device)
        if shape != "shipped":
            model = make(shape, device, toy)
        runs[name] = start(
            model, tokenizer, TASKS["chain"], ZOO["dr_grpo"], recipe, sampler=timed(name, draw)
        )
    for number in range(steps + 1):
        for name, run in runs.items():
            if number == 1:
                spent[name] = [0.0, 0.0, 0.0]
            wait(device)
            clock, cpu = time.perf_counter(), time.process_time()
            step(run)
            wait(device)
            spent[name][0] += time.perf_counter() - clock
            spent[name][1] += time.process_time() - cpu
    rows, out = prompts * size, {}
    for name, (wall, cpu, drawn) in spent.items():
        out[name] = {
            "step_s": wall / steps, "step_cpu_s": cpu / steps, "sampling_s": drawn / steps,
            "samples_per_s": rows * steps / wall, "x_generate": spent["generate"][0] / wall,
            "cpu_x_generate": spent["generate"][1] / cpu,
            "sampling_x_generate": spent["generate"][2] / drawn,
        }  # fmt: skip
    return out


def main(arguments: list[str] | None = None) -> dict[str, Values]:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--prompts", type=int, nargs="*", help="of the shipped model; 16 and 64")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1, help="of a CPU")
    parser.add_argument("--json", help="a file for the numbers; what it has is not measured again")
    parser.add_argument("--budget", type=float, default=480, help="seconds before it stops")
    parser.add_argument("--dry-run", action="store_true", help="2 prompts x 2 answers, on the CPU")
    args = parser.parse_args(arguments)
    if args.dry_run:
        args.device, args.prompts, args.steps = "cpu", [2], 1
    if args.device == "cpu":
        torch.set_num_threads(args.threads)
    sizes = [("shipped", n) for n in args.prompts or (16, 64)]
    if args.device == "cuda" or args.dry_run:
        sizes.append(("large", 2 if args.dry_run else SHAPES["large"][0]))
    pieces = {
        f"{shape} {n}": functools.partial(piece, shape, n, args.device, args.steps, args.dry_run)
        for shape, n in sizes
    }
    header = {"device": device_name(args.device), "script": "vs_generate", "steps": args.steps,
              "threads": args.threads, "toy": args.dry_run}  # fmt: skip
    found = in_pieces(args.json, pieces, args.budget, header)
    title(header)
    show([{"piece": n, "sampler": name, **line} for n, r in found.items() if "error" not in r
          for name, line in r.items()])  # fmt: skip
    return found


if __name__ == "__main__":
    main()
