"""Bytes and seconds of the plans that page 21 offers on this card, beside what is counted of them.

    python tests/benchmarks/gpu_memory.py --json memory.json     # again, until all is done

Random weights, rewards of a coin, every answer of full length (`gpu_step.whole_steps`): a real run
takes less. `counted_GB` has the decoder's room beside the backward pass, `way_GB` has it given up;
`plans_for` chooses by these two.
"""

from __future__ import annotations

import argparse
import functools
from dataclasses import replace

import torch
from bench import Values, device_name, in_pieces, show, title
from gpu_step import whole_steps

from rlnb.training import build_model
from rlnb.training.studies.gpu_plans import GPU, need, plans_for
from rlnb.training.studies.gpu_time import card_named


def piece(preset: str, device: str, toy: bool) -> Values:
    """Two steps of the plan with this preset, after one that does not count."""
    if toy:
        plan = replace(GPU[-1], recipe=replace(GPU[-1].recipe, prompts=2, num_generations=2))
    else:
        free, total = torch.cuda.mem_get_info()
        card = card_named(torch.cuda.get_device_name(), total)
        plan = next(p for p in plans_for(free, card) if p.preset == preset)
    model = build_model(0, plan.preset).to(device)
    found = whole_steps(model, plan.recipe, device, 1 if toy else 2)
    return found | {"way_GB": need(plan) / 1e9, "kept_GB": need(plan, kept=True) / 1e9}


def main(arguments: list[str] | None = None) -> dict[str, Values]:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", help="a file for the numbers; what it has is not measured again")
    parser.add_argument("--budget", type=float, default=480, help="seconds before it stops")
    parser.add_argument("--dry-run", action="store_true", help="toy sizes, on the CPU")
    args = parser.parse_args(arguments)
    device = "cpu" if args.dry_run else "cuda"
    names = ("tiny", "small") if args.dry_run else [plan.preset for plan in reversed(GPU)]
    pieces = {name: functools.partial(piece, name, device, args.dry_run) for name in names}
    header = {"device": device_name(device), "script": "gpu_memory", "toy": args.dry_run}
    found = in_pieces(args.json, pieces, args.budget, header)
    title(header)
    columns = ("seconds", "estimate_s", "memory_GB", "counted_GB", "way_GB", "first_s")
    show([{"piece": n, **{k: r.get(k, r.get("error")) for k in columns}} for n, r in found.items()])
    return found


if __name__ == "__main__":
    main()
