"""Seconds per training step of two sizes, beside a bound computed from bytes and operations.

    python tests/benchmarks/gpu_step.py --json step.json     # again, until all is done

Random weights, rewards of a coin, every answer of full length and in a group whose rewards differ:
no row ends early and none is skipped, so a real run is quicker. Targets, on an H200-class GPU:
"large" (25M parameters, 512 x 16 x 100 tokens) 2 s; "0.5B" (64 x 8 x 300) 8 s within 24 GB.
Sampling is in bfloat16, training in bfloat16 autocast over float32 weights, with the layers kernel
by kernel (plain) or through torch.compile (compiled).

Beside the measured seconds and bytes stand what was written down before: `estimate_s`, by class of
kernel (`gpu_time.estimate`, an estimate), and `counted_GB`, the bytes that plans and the explorer
count (`gpu_budget.memory`, with the decoder's room beside the backward pass).
"""

from __future__ import annotations

import argparse
import functools
import random
import statistics
from dataclasses import replace

import torch
from bench import Values, decode_bound, device_name, in_pieces, make, peaks, show, title
from transformers import AutoTokenizer

from rlnb.objective import ZOO
from rlnb.training import TASKS, Recipe, data_folder
from rlnb.training.sampling.graph_decoder import sampler_for
from rlnb.training.step import start, step
from rlnb.training.studies.gpu_budget import memory, of_recipe, peak, shape_of
from rlnb.training.studies.gpu_time import card_named, estimate

# prompts, answers, new tokens, rows of a micro-batch, layers recomputed
SHAPES = {"large": (512, 16, 100, 512, False), "0.5B": (64, 8, 300, 32, True)}
TARGETS = {"large": 2.0, "0.5B": 8.0}


FORMS = {"plain": False, "compiled": True}


def piece(shape: str, form: str, device: str, toy: bool) -> Values:
    """`whole_steps` of a shape, beside its bound and its target."""
    prompts, size, new, rows, recomputed = (2, 4, 6, 4, True) if toy else SHAPES[shape]
    peak = peaks(device, torch.bfloat16, small=toy)
    model = make(shape, device, toy)
    recipe = Recipe(
        prompts=prompts, num_generations=size, max_completion_length=new, micro_batch=rows,
        sampler_dtype="bfloat16", autocast="bfloat16", gradient_checkpointing=recomputed, tf32=True,
        torch_compile=FORMS[form] and not toy,
    )  # fmt: skip
    found = whole_steps(model, recipe, device, 1 if toy else 3)
    weights = sum(p.numel() for p in model.parameters())
    sampling = decode_bound(model, prompts * size, found["prompt"], new, 2, peak)["bound_s"]
    # Forward 2, backward 4; 2 for layers that are recomputed. On-policy nothing is scored before.
    operations = 6 + 2 * recomputed
    training = operations * weights * found["tokens"] / peak["flops"]
    return found | {
        "bound_s": sampling + training, "bound_sampling_s": sampling,
        "bound_training_s": training, "x_bound": found["seconds"] / (sampling + training),
        "target_s": TARGETS[shape],
    }  # fmt: skip


def whole_steps(model, recipe: Recipe, device: str, steps: int) -> Values:
    """The median of so many steps, after one that does not count (and compiles), and the bytes.

    Rewards of a coin; every answer has full length and none is skipped.
    """
    coin, drawn = random.Random(0), sampler_for(device)

    def whole(*args, **options):
        rollout = drawn(*args, **options | {"eos_id": model.config.vocab_size})
        return replace(rollout, finished=torch.ones_like(rollout.finished))

    run = start(
        model, AutoTokenizer.from_pretrained(data_folder() / "model"), TASKS["chain"],
        ZOO["dr_grpo"], recipe, reward=lambda problem, text: float(coin.random() < 0.5),
        sampler=whole,
    )  # fmt: skip
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    took = [step(run) for _ in range(1 + steps)]
    taken = statistics.median(metrics["step_time"] for metrics in took[1:])
    rows = recipe.prompts * recipe.num_generations
    tokens = run.num_tokens / len(took)  # of a step, prompts and answers
    prompt = round(tokens / rows - recipe.max_completion_length)
    return {
        "seconds": taken, "first_s": took[0]["step_time"], "samples_per_s": rows / taken,
        "memory_GB": torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else None,
        "logp_difference": took[-1]["sampling/logp_difference"], "prompt": prompt,
        "tokens": tokens, "micro_batch": run.recipe.micro_batch,
    } | expectation(model, recipe, prompt, device, recipe.torch_compile)  # fmt: skip


def expectation(model, recipe: Recipe, prompt: int, device: str, compiled: bool) -> Values:
    """What was written down before measuring: bytes counted, seconds estimated by kernel class."""
    name, bytes_ = ("NVIDIA H200", 141e9)
    if device == "cuda":
        name, bytes_ = torch.cuda.get_device_name(), torch.cuda.mem_get_info()[1]
    counted = shape_of(model.config), *of_recipe(recipe, prompt)
    classes = estimate(*counted, card_named(name, bytes_), compiled)
    return {
        "estimate_s": sum(classes.values()), "estimate_by_class_s": classes,
        "counted_GB": peak(memory(*counted), kept=True) / 1e9,
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> dict[str, Values]:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", help="a file for the numbers; what it has is not measured again")
    parser.add_argument("--budget", type=float, default=480, help="seconds before it stops")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--dry-run", action="store_true", help="toy sizes, on the CPU")
    args = parser.parse_args(arguments)
    device = "cpu" if args.dry_run else "cuda"
    pieces = {
        f"{shape} {form}": functools.partial(piece, shape, form, device, args.dry_run)
        for shape in args.shapes for form in FORMS
    }  # fmt: skip
    header = {"device": device_name(device), "script": "gpu_step", "toy": args.dry_run}
    found = in_pieces(args.json, pieces, args.budget, header)
    title(header)
    columns = ("seconds", "target_s", "estimate_s", "bound_s", "x_bound", "samples_per_s",
               "memory_GB", "counted_GB")  # fmt: skip
    show([{"piece": n, **{k: r.get(k, r.get("error")) for k in columns}} for n, r in found.items()])
    return found


if __name__ == "__main__":
    main()
