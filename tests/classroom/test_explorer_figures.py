"""The house style, and the static figures of the pages."""

from __future__ import annotations

import pytest

from rlnb.classroom import figures
from rlnb.objective import ZOO


def test_every_method_of_the_zoo_has_its_own_colour_and_dashes():
    assert set(figures.METHOD_COLORS) == set(figures.METHOD_LINES)
    looks = [(color, figures.METHOD_LINES[name]) for name, color in figures.METHOD_COLORS.items()]
    assert len(set(looks)) == len(looks)
    assert set(ZOO) - set(figures.METHOD_COLORS) == set(), "give the new method a colour"
    assert figures.series_style("Dr. GRPO", 0) == figures.series_style("dr_grpo", 3)


def test_static_figure_without_words_is_refused():
    with pytest.raises(ValueError, match="alt is empty"):
        figures.static_figure(lambda figure, data: None, alt=" ")


def test_ready_plots_draw():
    lines = figures.line_figure([0, 1], {"grpo": [0, 1]}, xlabel="x", ylabel="y", alt="up")
    bars = figures.bar_figure(["a", "b"], {"grpo": [0, 1], "dapo": [1, 0]}, ylabel="y", alt="two")
    assert lines.size == bars.size == (900, 340)
    assert lines.png != bars.png


def test_spread_curves_show_the_spread_of_the_seeds():
    words = {"xlabel": "x", "ylabel": "y", "ylim": (0.01, 10), "alt": "two panels"}
    wide = figures.spread_curves({"a": {"PPO": [[0.1, 0.2], [0.3, 0.6]]}}, **words)
    narrow = figures.spread_curves({"a": {"PPO": [[0.2, 0.4], [0.2, 0.4]]}}, **words)
    assert wide.png != narrow.png  # the same mean, other seeds


def test_learning_curves_show_every_seed_and_refuse_what_does_not_fit():
    runs = {"grpo": [[0.1, 0.2, 0.3], [0.1, 0.3, 0.5]], "random": [[0.1, 0.1, 0.1]]}
    words = {"base": 0.1, "alt": "grpo rises"}
    both = figures.learning_curves(runs, control="random", **words)
    mean = figures.learning_curves(
        runs | {"grpo": [[0.1, 0.25, 0.4]] * 2}, control="random", **words
    )
    assert both.png != mean.png  # the same mean, other seeds
    with pytest.raises(ValueError, match="control='none'"):
        figures.learning_curves(runs, control="none", **words)
    with pytest.raises(ValueError, match="same number of points"):
        figures.learning_curves({"grpo": [[1, 2], [1]]}, **words)
    with pytest.raises(ValueError, match="one x value per point"):
        figures.learning_curves(runs, steps=[0, 1], **words)
