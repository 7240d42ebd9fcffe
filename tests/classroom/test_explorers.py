"""The explorer itself and the explorers on it: their pictures and their words."""

from __future__ import annotations

import base64
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ipywidgets
import nbclient
import nbconvert
import nbformat
import numpy as np
import pytest
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from rlnb.classroom import explorers
from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers import clip, gae
from rlnb.objective import cispo, kl_in_reward, vespo, whiten

MAKERS = {
    "answer_ratio": explorers.answer_ratio_explorer,
    "one_pair": explorers.one_pair_explorer,
    "one_push": explorers.one_push_explorer,
    "uphill": explorers.uphill_explorer,
    "three_pushes": explorers.three_pushes_explorer,
    "ways_to_be_right": explorers.ways_to_be_right_explorer,
    "clip": explorers.clip_explorer,
    "composer": explorers.composer_explorer,
    "cooled_base": explorers.cooled_base_explorer,
    "difficulty": explorers.difficulty_explorer,
    "gpu_budget": explorers.gpu_budget_explorer,
    "group_advantage": explorers.group_advantage_explorer,
    "gae": explorers.gae_explorer,
    "gate_zoo": explorers.gate_zoo_explorer,
    "kl": explorers.kl_explorer,
    "kl_estimator": explorers.kl_estimator_explorer,
    "slow_start": explorers.slow_start_explorer,
    "std": explorers.std_explorer,
    "kept_groups": explorers.kept_groups_explorer,
    "rare_token": explorers.rare_token_explorer,
    "rollouts": explorers.rollouts_explorer,
    "token_weights": explorers.token_weights_explorer,
    "scaling_fit": explorers.scaling_fit_explorer,
}
# Far from the default and from each other: what one leaves behind, the next would show.
SETTINGS = {
    "answer_ratio": [
        {"flips": 0.0, "length": 512},
        {"flips": 2.0, "length": 32, "band": "0.2"},
        {"band": "0.01", "length": 8192},
        {"flips": 1.5, "band": "2e-3, 2.5e-3"},
    ],
    "one_pair": [
        {"shared": 2.0, "margin": 8.0, "beta": 0.1},
        {"shared": 0.0, "margin": 1.0},
        {"shared": 1.0, "beta": 2.0},
    ],
    "one_push": [
        {"drawn": "C", "constant": 1.5},
        {"drawn": "B", "constant": -1.0},
        {"drawn": "D", "constant": -1.5},
    ],
    "uphill": [{"constant": 10.0}, {"size": 4096, "constant": 0.0}, {"size": 1, "constant": -2.0}],
    "three_pushes": [
        {"baseline": 1.2, "good": 0.95},
        {"baseline": 0.2, "good": 0.05},
        {"baseline": -1.4, "good": 0.5},
    ],
    "ways_to_be_right": [
        {"p": 0.95, "ways": 50, "size": 16},
        {"p": 0.05, "ways": 1, "size": 2},
        {"p": 0.9, "ways": 2, "size": 4},
    ],
    "clip": [
        {"epsilon_low": 0.05, "epsilon_high": 1.0, "dual": 1.5},
        {"sign": "negative", "epsilon_low": 0.9, "dual": 3.5},
        {"sign": "positive", "epsilon_high": 0.0, "dual": math.inf},
        {"sign": "both"},
    ],
    "composer": [
        {"start": "dppo_topk"},
        {"surrogate": cispo(5.0), "gates": (), "kl": kl_in_reward(0.05)},
        {"surrogate": vespo()},  # cannot run: it takes another ratio
        {"start": "maxrl", "credit": whiten()},
    ],
    "cooled_base": [
        {"temperature": 0.0, "opening": "steps"},
        {"temperature": 0.5},
        {"temperature": 1.2, "opening": "direct"},
    ],
    "gpu_budget": [
        {
            "model": "4B",
            "card": "T4",
            "models": "PPO: critic, reward model, reference",
            "in_flight": 8,
            "answer_tokens": 8192,
        },
        {"optimizer": "sgd", "model": "tiny", "card": "H200 SXM"},
        {"checkpointing": True, "micro_batch": 512},
        {"model": "large", "in_flight": 8, "answer_tokens": 64},
    ],
    "group_advantage": [
        {"rewards": "1, 0", "size": 16, "fill": "last", "std": "population"},
        {"rewards": "4, -4, 3.5, .25", "size": 15, "fill": "list", "std": "none"},
        {"rewards": "1, 1", "size": 2, "std": "bessel"},
        {"rewards": "0, 1, 0, 0, 0, 1, 1", "size": 5, "std": "bessel"},
    ],
    "gae": [
        {"lam": 1.0},
        {"lam": 0.5, "gamma": 0.8},
        {"wrong_critic": False},
        {"lam": 0.95, "gamma": 1.0, "wrong_critic": True},
    ],
    "gate_zoo": [
        {"epsilon": 0.0, "tau": 12.0, "old": 0.99, "ratio": 10.0, "show": "dppo"},
        {"sign": "negative", "ratio": 0.25, "show": "dual", "old": 0.0001},
        {"show": "cispo", "epsilon": 1.0},
        {"show": "all", "sign": "positive", "ratio": 3.0, "tau": 0.5, "old": 0.7},
    ],
    "kl": [
        {"mean": -6.0, "deviation": 0.7, "distance": 5.0},
        {"mean": 3.0, "distance": 0.0},
        {"mean": 6.0, "deviation": 6.0},
    ],
    "slow_start": [
        {"size": 64, "rate": 0.25},
        {"size": 1, "rate": 4.0, "divisor": "right"},
        {"divisor": "right", "size": 16},
    ],
    "difficulty": [
        {"rate": 0.01, "size": 64, "method": "maxrl"},
        {"show": "signal", "rate": 0.99, "size": 2},
        {"method": "mean", "rate": 0.5, "size": 8},
        {"show": "weight", "method": "zscore", "size": 4},
    ],
    "std": [
        {"gap": 1.0, "size": 16, "eps": 0.0, "pattern": "noise"},
        {"gap": 1e-8, "size": 2, "eps": 0.01},
        {"divide": False, "gap": 1e-4, "size": 9, "pattern": "one"},
        {"divide": True, "size": 8, "eps": 1e-8},
    ],
    "kl_estimator": [
        {"distance": 3.0, "samples": "stale"},
        {"distance": 0.0},
        {"samples": "fresh", "distance": 0.35},
        {"distance": 2.2},
    ],
    "rollouts": [
        {"step": 10, "prompt": 2, "answer": 2, "show": "logit"},
        {"answer": 1, "show": "weight"},
        {"step": 20, "prompt": 2, "answer": 8},
        {"step": 1, "prompt": 1, "answer": 2, "show": "logit"},
    ],
    "kept_groups": [{"size": 64, "progress": 6}, {"size": 2}, {"progress": 3}],
    "rare_token": [
        {"p0": 0.001, "updates": 16, "step": 0.2},
        {"updates": 1, "step": 0.01},
        {"p0": 0.9, "updates": 16, "step": 0.3},
        {"p0": 0.1, "updates": 5, "step": 0.1},
    ],
    "token_weights": [
        {"first": 1, "second": 40, "other": 40, "limit": 200, "micro": 1, "divisor": "width"},
        {"first": 40, "second": 1, "other": 1, "micro": 4},
        {"divisor": "limit", "limit": 40, "micro": 2},
        {"first": 10, "second": 10, "other": 10},
    ],
    "scaling_fit": [
        {"seen": 6, "noise": 0.03, "seed": 20},
        {"seen": 100, "noise": 0.002},
        {"seen": 12, "noise": 0.01, "seed": 3},
        {"seen": 41},
    ],
}


@dataclass(frozen=True)
class Stop:
    """What one explorer shows at one setting: all that the tests below look at."""

    params: dict[str, Any]  # of every control
    pixels: np.ndarray  # blitted
    from_scratch: np.ndarray  # every artist drawn anew
    artists: int
    texts: list[tuple[str, float, Bbox]]  # visible ones: words, size in points, box in pixels
    moving_texts: list[tuple[str, Bbox]]
    alt: str


def stop(explorer: Explorer, params: dict[str, Any]) -> Stop:
    explorer.set(**params)
    blitted = explorer.pixels()
    renderer = explorer.figure.canvas.get_renderer()

    def seen(artist) -> bool:
        return isinstance(artist, Text) and bool(artist.get_text()) and artist.get_visible()

    return Stop(
        explorer.params,
        blitted,
        explorer.pixels_from_scratch(),
        len(explorer.figure.findobj()),
        [
            (text.get_text(), text.get_fontsize(), text.get_window_extent(renderer))
            for text in filter(seen, explorer.figure.findobj(Text))
        ],
        [(t.get_text(), t.get_window_extent(renderer)) for t in filter(seen, explorer.moving)],
        explorer.alt_text(),
    )


@dataclass(frozen=True)
class Walk:
    """One explorer, made once and led through its settings; each test looks back on that way."""

    name: str
    explorer: Explorer
    other: Explorer  # a second one, which was
    direct: np.ndarray  # set to the last stop at once: its pixels there
    artists: int  # before anything moved
    committed: bytes  # the picture of the default setting, as a page holds it
    live: bytes  # the same, as a moved control sends it
    stops: list[Stop]  # the default first


@pytest.fixture(scope="module", params=MAKERS)
def walk(request) -> Walk:
    name = request.param
    explorer = MAKERS[name]()
    # the background is made here, from the default setting
    committed, live = explorer.png(), explorer.png(quick=True)
    artists = len(explorer.figure.findobj())
    stops = [stop(explorer, params) for params in ({}, *SETTINGS[name])]
    other = MAKERS[name]().set(**stops[-1].params)
    return Walk(name, explorer, other, other.pixels(), artists, committed, live, stops)


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)))


@pytest.fixture(scope="module")
def notebook():
    """A page with the explorers and a static figure, as it would be committed."""
    sources = ["from rlnb.classroom import explorers, figures"]
    sources += [f"explorers.{name}_explorer()" for name in MAKERS]
    sources.append(
        "figures.static_figure(lambda f, d: f.subplots().plot(d), [1, 2],\n"
        "    alt=lambda d: f'a line to {d[-1]}', caption='It rises.')"
    )
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    page = nbformat.v4.new_notebook(cells=cells)
    root = Path(__file__).parents[2]
    nbclient.NotebookClient(page, resources={"metadata": {"path": str(root)}}).execute()
    page.metadata.pop("widgets", None)
    return page


# The pictures


def test_moving_allocates_no_artist_and_changes_the_picture(walk):
    assert {stop.artists for stop in walk.stops} == {walk.artists}
    assert len({stop.pixels.tobytes() for stop in walk.stops}) == 1 + len(SETTINGS[walk.name])


def test_blit_equals_a_full_draw_pixel_by_pixel(walk):
    for stop in walk.stops:
        assert np.array_equal(stop.pixels, stop.from_scratch), stop.params


def test_a_live_picture_has_the_pixels_of_the_committed_one(walk):
    committed, live = (
        np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
        for png in (walk.committed, walk.live)
    )
    # a palette of 256
    assert np.abs(committed - live).max() <= (8 if walk.explorer.colors else 0)


def test_a_picture_is_the_canvas_as_it_was_painted(walk):
    assert np.array_equal(pixels(walk.live), walk.stops[0].pixels[..., :3])


def test_a_way_through_other_settings_leaves_no_trace(walk):
    assert np.array_equal(walk.stops[-1].pixels, walk.direct)


def test_clip_artists_hold_what_compute_says():
    explorer = explorers.clip_explorer()
    for params in SETTINGS["clip"]:
        artists, data = explorer.set(**params).artists, explorer.data
        for band in artists["band"]:
            edges = (band.get_x(), band.get_x() + band.get_width())
            assert edges == pytest.approx(data["band"])
        for sign in (1, -1):
            seen = sign in clip.SHOWN[data["sign"]]
            for name in ("objective", "slope"):
                assert artists[name, sign].get_visible() == seen
                assert np.array_equal(artists[name, sign].get_ydata(), data[name][sign])
                for alive in (True, False):
                    points = artists[name, sign, alive].get_xydata().tolist()
                    assert points == [
                        [c.ratio, getattr(c, name)]
                        for c in data["corners"]
                        if seen and (c.sign, c.alive) == (sign, alive)
                    ]


def test_group_artists_hold_what_compute_says():
    explorer = explorers.group_advantage_explorer()
    for params in SETTINGS["group_advantage"]:
        artists, data = explorer.set(**params).artists, explorer.data
        bars = [bar for bar in artists["bars"] if bar.get_visible()]
        assert [bar.get_height() for bar in bars] == data["advantages"].tolist()
        assert artists["rewards"].get_ydata().tolist() == data["rewards"].tolist()
        centres = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        assert artists["rewards"].get_xdata() == pytest.approx(centres)
        assert artists["mean"].get_ydata() == [data["mean"]] * 2
        assert [line.get_visible() for line in artists["bounds"]] == [data["bound"] is not None] * 2
        if data["bound"]:
            assert [line.get_ydata()[0] for line in artists["bounds"]] == pytest.approx(
                [data["bound"], -data["bound"]]
            )


def test_gae_artists_hold_what_compute_says():
    explorer = explorers.gae_explorer()
    for params in SETTINGS["gae"]:
        artists, data = explorer.set(**params).artists, explorer.data
        for branch in gae.BRANCHES:
            heights = [bar.get_height() for bar in artists["bars"][branch]]
            assert heights == data["advantages"][branch].tolist()
            assert np.array_equal(artists["values"][branch].get_ydata(), data["values"][branch])
        assert np.array_equal(artists["curve"].get_ydata(), data["curve"])
        assert artists["here"].get_xydata().tolist() == [[data["lam"], data["gradient"]]]


def test_every_control_moves_the_picture(walk):
    explorer = walk.explorer.set(**walk.stops[0].params)
    if walk.name == "group_advantage":
        explorer.set(rewards="1, 0", size=5)  # `fill` matters only when the list is short
    before, words = explorer.pixels(), explorer.alt_text()
    for control in explorer.controls.values():
        control.value = _other(control)
        assert explorer.problem.value == ""
        after, said = explorer.pixels(), explorer.alt_text()
        assert not np.array_equal(after, before), control.description
        assert said != words, control.description
        before, words = after, said


def _other(control):
    if isinstance(control, ipywidgets.Checkbox):
        return not control.value
    if isinstance(control, ipywidgets.Text):
        return "1, 0, 0.5"
    if hasattr(control, "options"):
        values = [value for _, value in control.options]
        return values[(values.index(control.value) + 1) % len(values)]
    down = control.value - control.step
    return down if down >= control.min else control.value + control.step


def test_no_text_is_cut_off_or_smaller_than_nine_points(walk):
    width, height = walk.explorer.figure.canvas.get_width_height()
    for stop in walk.stops:
        assert stop.texts
        for text, size, box in stop.texts:
            inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
            assert inside, (stop.params, text, box)
            assert size >= 9, text


def test_readout_lines_do_not_overlap(walk):
    for stop in walk.stops:
        for i, (one, box) in enumerate(stop.moving_texts):
            for other, another in stop.moving_texts[i + 1 :]:
                assert not box.overlaps(another), (stop.params, one, other)


# What a reader without a kernel gets


def test_committed_page_holds_controls_in_words_then_the_picture_then_a_caption(walk, notebook):
    cell = next(cell for cell in notebook.cells if f"{walk.name}_explorer" in cell.source)
    controls, picture, caption = cell.outputs
    assert {out.output_type for out in cell.outputs} == {"display_data"}
    assert "application/vnd.jupyter.widget-view+json" in controls.data
    assert "image/png" not in controls.data
    assert controls.data["text/plain"].startswith("[controls: ")
    assert "run the notebook" in controls.data["text/plain"]
    assert set(picture.data) == {"image/png", "text/plain"}
    words = picture.metadata["image/png"]
    assert picture.data["text/plain"] == words["alt"] == walk.stops[0].alt
    assert words["width"] == 900
    png = base64.b64decode(picture.data["image/png"])
    assert np.array_equal(pixels(png), pixels(walk.committed))
    assert pixels(png).shape[1] == 1350
    assert len(png) < 100_000
    assert caption.data["text/markdown"].strip("*") == walk.explorer.caption


def test_committed_page_has_every_picture_when_converted_without_a_kernel(notebook):
    html, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    pictures = re.findall(r'<img[^>]*src="data:image/png;base64,', html)
    assert len(pictures) == len(MAKERS) + 1
    assert "Error displaying widget" not in html


def test_static_figure_shows_picture_alt_and_caption(notebook):
    picture, caption = notebook.cells[-1].outputs
    assert picture.data["text/plain"] == "a line to 2"
    assert picture.metadata["image/png"]["alt"] == "a line to 2"
    assert caption.data["text/markdown"] == "*It rises.*"


def test_alt_text_is_the_same_every_time(walk):
    for stop in walk.stops:
        assert walk.other.set(**stop.params).alt_text() == stop.alt
    assert "  " not in walk.stops[0].alt


def test_alt_texts_hold_the_key_numbers():
    assert "down at ratio 0.50: slope 0, dead" in explorers.clip_explorer().alt_text()
    words = explorers.group_advantage_explorer().alt_text()
    for number in ("+1.0000", "±0.8660", "±0.5000", "1.7321"):
        assert number in words
    words = explorers.gae_explorer().alt_text()
    assert "−0.0480, true +0.1680: wrong sign" in words


def test_controls_say_what_they_are(walk):
    for control in walk.explorer.controls.values():
        assert control.description
        assert control.tooltip
        if hasattr(control, "continuous_update"):
            assert control.continuous_update


# The explorer as such


@pytest.fixture(scope="module")
def group_explorer():
    return explorers.group_advantage_explorer()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1, x, 0", "“x” is not a number"),
        ("__import__('os')", "is not a number"),
        ("", "empty"),
        (" , ,", "empty"),
        ("nan, 1", "nan is outside −4 to 4"),
        ("1e9", "1e9 is outside −4 to 4"),
        ("1, -", "“-” is not a number"),
    ],
)
def test_group_bad_text_is_a_sentence_and_the_picture_stays(text, said, group_explorer):
    explorer = group_explorer
    explorer.controls["rewards"].value = "1, 1, 0, 0"
    before, words = explorer.pixels(), explorer.alt_text()
    explorer.controls["rewards"].value = text  # as the browser does: through the observer
    assert said in explorer.problem.value
    assert explorer.problem.value.endswith(".")
    assert np.array_equal(explorer.pixels(), before)
    assert explorer.alt_text() == words
    explorer.controls["rewards"].value = "1, 0,"
    assert explorer.problem.value == ""
    assert explorer.alt_text() != words


def tiny() -> Explorer:
    def compute(height):
        if height > 3:
            raise ValueError("height is above 3.")
        return height

    def build(figure, _):
        return {"line": figure.add_axes((0, 0, 1, 1)).plot([0, 1], [0, 1])[0]}

    return Explorer(
        compute,
        build,
        lambda artists, height: artists["line"].set_ydata([0, height / 4]),
        {"height": slider(1.0, 0.0, 4.0, 0.5, "height", "how high")},
        alt=lambda height: f"a line up to {height}",
        size=(90, 60),
    )


def test_set_refuses_an_unknown_control():
    with pytest.raises(ValueError, match="No control named 'width'"):
        tiny().set(width=2)


def test_set_redraws_once_for_several_controls():
    explorer = explorers.clip_explorer()
    calls = []
    explorer.compute = lambda **params: calls.append(params) or clip.compute(**params)
    explorer.set(epsilon_low=0.1, epsilon_high=0.3, sign="negative")
    assert len(calls) == 1


def test_a_displayed_explorer_updates_its_picture_in_place_and_keeps_it_on_an_error():
    explorer = tiny()
    updates = []
    explorer._handle = type("Handle", (), {"update": staticmethod(updates.append)})()
    explorer.controls["height"].value = 2.0
    explorer.controls["height"].value = 3.5
    assert len(updates) == 1
    assert updates[0].data["text/plain"] == "a line up to 2.0"
    assert explorer.problem.value == "height is above 3."
