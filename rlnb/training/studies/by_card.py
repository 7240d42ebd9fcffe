"""One command for each size of card: what to train on it, its bytes and its minutes.

    print(table())      card, GB counted, minutes estimated, and what to type

Bytes are counted (`gpu_budget`), minutes are estimated (`gpu_time`) with every answer as long as
may be, so that most runs take less. None of these was run on a GPU; a 25M model on an H100 took
nearly twice its estimate (`gpu_time`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlnb.training.models.presets import Preset
from rlnb.training.recipe import Recipe
from rlnb.training.recipe_by_size import recipe_for
from rlnb.training.studies.gpu_budget import GB, Load, Precision, Shape, memory, of_recipe, peak
from rlnb.training.studies.gpu_time import CARDS, estimate

__all__ = ["CHOICES", "COMMAND", "Choice", "minutes", "needed", "table"]

COMMAND = "python -m rlnb.training grpo --task countdown_text --out runs/mine"
PROMPT = 160  # tokens of countdown_text in Qwen's template, its system line included
SHAPES = {
    "Qwen/Qwen2.5-0.5B-Instruct": Shape(Preset(896, 24, 14, 2, 64, 4864), 151_936),
    "Qwen/Qwen2.5-1.5B-Instruct": Shape(Preset(1536, 28, 12, 2, 128, 8960), 151_936),
    "Qwen/Qwen3-4B-Instruct-2507": Shape(Preset(2560, 36, 32, 8, 128, 9728), 151_936),
}


@dataclass(frozen=True)
class Choice:
    """What to type on a card: the slowest common one of its size. typed: beside the recipe that
    the model's size gives (`recipe_for`)."""

    gigabytes: int
    card: str
    model: str
    typed: tuple[tuple[str, Any], ...] = ()

    @property
    def recipe(self) -> Recipe:
        """The whole recipe of the run."""
        lower = "bfloat16" if CARDS[self.card].bfloat16 else "float16"
        return recipe_for(SHAPES[self.model].parameters, lower, **dict(self.typed))

    @property
    def flags(self) -> str:
        """What to type behind COMMAND."""
        typed = (f"--{name.replace('_', '-')} {value}" for name, value in self.typed)
        return " ".join((f"--model {self.model}", *typed))


CHOICES = (
    Choice(8, "RTX 4060", "Qwen/Qwen2.5-0.5B-Instruct", (("lora_r", 32), ("micro_batch", 4))),
    Choice(16, "T4", "Qwen/Qwen2.5-0.5B-Instruct", (("lora_r", 32),)),
    Choice(24, "L4", "Qwen/Qwen2.5-1.5B-Instruct", (("max_completion_length", 256),)),
    Choice(80, "A100 80 GB", "Qwen/Qwen3-4B-Instruct-2507", (("micro_batch", 16),)),
)


def needed(choice: Choice) -> float:
    """Bytes at the fullest moment, decoder's room given up for the backward pass."""
    return peak(memory(SHAPES[choice.model], *of_recipe(choice.recipe, PROMPT)))


def minutes(choice: Choice) -> float:
    """An estimate of the whole run, evaluations included. Not a measurement."""
    shape, recipe, card = SHAPES[choice.model], choice.recipe, CARDS[choice.card]
    load, precision = of_recipe(recipe, PROMPT)
    step = sum(estimate(shape, load, precision, card, recipe.torch_compile).values())
    asked = recipe.eval_prompts
    held_out = Load(asked, recipe.eval_generations + 1, PROMPT, recipe.max_completion_length,
                    in_flight=asked * (recipe.eval_generations + 1))  # fmt: skip
    drawn = Precision(mixed=precision.mixed, lora=precision.lora, float16=precision.float16)
    look = sum(
        seconds for kind, seconds in estimate(shape, held_out, drawn, card).items()
        if kind.startswith(("decode", "host"))
    )  # fmt: skip
    looks = 1 + recipe.steps // recipe.eval_every
    return (recipe.steps * step + looks * look) / 60


def table() -> str:
    """COMMAND, a line for each choice (counted bytes, estimated minutes, flags), what all share."""
    lines = [COMMAND, "card               counted  about   and"]
    for choice in CHOICES:
        lines.append(
            f"{choice.gigabytes:2d} GB {choice.card:12s} {needed(choice) / GB:4.1f} GB  "
            f"{minutes(choice):3.0f} min  {choice.flags}"
        )
    shared = {
        f"all: LoRA of rank {r.lora_r} on frozen weights of 2 bytes, learning rate "
        f"{r.learning_rate:g}, {r.steps} steps of {r.prompts} x {r.num_generations} answers"
        for r in (choice.recipe for choice in CHOICES)
    }
    lines += sorted(shared)
    return "\n".join(lines)
