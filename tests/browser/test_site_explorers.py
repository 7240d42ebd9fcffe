"""The site's explorers in Chromium, from a folder, without a kernel or a network."""

from __future__ import annotations

import functools
import io
import math
import random
import re

import lab_in_chromium
import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from rlnb.classroom.explorers import clip, group_advantage
from rlnb.classroom.figures import CSS_DPI
from rlnb.classroom.site import explorers, grids, parts
from rlnb.classroom.site.grids import ONE_AT_A_TIME, Grid, grid
from rlnb.classroom.site.placed import all_placed, made

PLACES = {place.id: place for place in all_placed()}
BY_NAME = {place.name: place for place in PLACES.values()}
PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>{id}</title>'
    '<body><main>{block}<noscript><img alt="the picture" src="data:,"></noscript></main>'
)
DRAWN_AGAIN = 400  # settings of a compute in JavaScript
CELL = 10  # CSS pixels: pictures are compared in squares, for letters are spaced in another way
OTHER = 40  # of 255: how far the mean of a square may be off
POINT = re.compile(r"[ML](-?[\d.]+) (-?[\d.]+)")
SHARE = 0.01  # of the squares
# At its own size and on a whole pixel.
APART = ".view { position: fixed; left: 0; top: 0; width: 900px; }"


WHOLE = {"token_gates_explorer", "slow_start_explorer"}  # drawn as the site draws them


class Few:
    """The values kept in these tests: of a slider the ends and where it begins."""

    def __init__(self, place):
        self.place = place

    def get(self, name):
        return self.kept.get(name)

    @functools.cached_property
    def kept(self):
        axes = explorers.axes_of(made(self.place)[0])
        if self.place.name in ONE_AT_A_TIME:
            places = sorted({0, axes[0].at, 20 % len(axes[0].values)})
            return {axes[0].name: [axes[0].values[i] for i in places]}
        return {
            a.name: [a.values[i] for i in sorted({0, a.at, len(a.values) - 1})]
            for a in axes
            if a.kind == "range"
        }


@pytest.fixture(scope="module")
def fewer_settings():
    """All settings of all explorers take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        for place in PLACES.values():
            if place.name not in WHOLE | set(explorers.LIVE):
                patch.setitem(grids.COARSE, place.name, Few(place))
        yield


@pytest.fixture(scope="module")
def written(fewer_settings, tmp_path_factory):
    """A function that writes an explorer's page, once, and what it loads; it gives the address."""
    base = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLNB_SITE_CACHE", str(tmp_path_factory.mktemp("drawn")))
        patch.setattr(explorers, "_USED", {})

        def write(identity):
            place = PLACES[identity]
            page = base / "notebooks" / f"{place.page}-{place.cell}.html"
            if not page.exists():
                block = explorers.block(place.name, place.page, place.cell)
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(PAGE.format(id=place.id, block=block), encoding="utf-8")
                explorers.assets(base)
            return page.as_uri()

        yield write


@pytest.fixture(scope="module")
def window(chromium):
    with lab_in_chromium.driver() as playwright:
        running = playwright.chromium.launch(
            executable_path=lab_in_chromium.browser(), args=lab_in_chromium.CHROMIUM_FLAGS
        )
        yield running.new_context(viewport={"width": 1280, "height": 900}, offline=True)
        running.close()


@pytest.fixture
def opened(window, written):
    """Opens an explorer's page. Afterwards: nothing was said on the console, nothing fetched."""
    tab, said = window.new_page(), []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda asked: said.append(asked.url) if _is_far(asked.url) else None)

    def open_page(identity):
        tab.goto(written(identity))
        tab.wait_for_selector(".explorer[data-ready]")
        return tab

    yield open_page
    tab.close()
    assert said == []


def _is_far(address):
    return not address.startswith(("file:", "data:"))


def move(tab, settings, row):
    """Every control to its place in `row`, and one event, as after a move."""
    tab.evaluate(
        """([names, row]) => names.forEach((name, i) => {
          const place = document.querySelector(`[data-control="${name}"]`);
          const radios = place.querySelectorAll("input[type=radio]");
          const field = place.querySelector("input, select");
          if (radios.length) radios[row[i]].checked = true;
          else if (field.type === "checkbox") field.checked = !!row[i];
          else field.value = row[i];
        })""",
        [[a.name for a in settings.axes], list(row)],
    )
    tab.evaluate("document.querySelector('.explorer').dispatchEvent(new Event('rlnb:draw'))")


NAMELESS = """() => [...document.querySelectorAll(".explorer input, .explorer select")]
  .filter((field) => !field.labels.length).map((field) => field.id)"""


def heard(tab):
    return tab.evaluate("document.querySelector('.view svg').getAttribute('aria-label')")


def seen(tab, explorer):
    """The picture in the browser, in squares."""
    tab.add_style_tag(content=APART)
    return squares(Image.open(io.BytesIO(tab.locator(".view svg").screenshot())), explorer)


def meant(explorer):
    """The picture in JupyterLab, in squares."""
    return squares(Image.fromarray(explorer.pixels()), explorer)


def squares(picture, explorer):
    size = (round(side * CSS_DPI / CELL) for side in explorer.figure.get_size_inches())
    return np.asarray(picture.convert("RGB").resize(tuple(size), Image.Resampling.BOX), dtype=int)


def off(one, other):
    """The share of squares that differ by more than OTHER."""
    return float((np.abs(one - other).max(-1) > OTHER).mean())


@pytest.mark.parametrize("identity", [i for i, p in PLACES.items() if p.name not in explorers.LIVE])
def test_a_setting_shows_what_jupyterlab_shows(opened, identity):
    place = PLACES[identity]
    explorer, _ = made(place)
    settings = grid(place.name, explorer)
    tab = opened(identity)
    assert tab.evaluate(NAMELESS) == [], "a control without a label"
    for row in [None, random.Random(identity).choice(settings.rows)]:
        if row is not None:
            move(tab, settings, row)
            try:
                data = explorer.compute(**settings.params(row))
            except ValueError as error:
                assert tab.inner_text(".problem") == str(error)
                continue
            explorer.update(explorer.artists, data)
            explorer.data = data
        assert heard(tab) == explorer.alt(explorer.data)
        if explorer.readout:
            assert tab.text_content(".readout") == explorer.readout(explorer.data)
        assert off(seen(tab, explorer), meant(explorer)) < SHARE


def test_the_comparison_of_pictures_can_fail(opened):
    place = BY_NAME["token_gates_explorer"]
    explorer, _ = made(place)
    settings = grid(place.name, explorer)
    tab = opened(place.id)
    move(tab, settings, settings.rows[-1])
    assert off(seen(tab, explorer), meant(explorer)) > SHARE


# ---- computed in JavaScript


def ask(tab, name, params):
    """What the script computes at each of these settings, and says of it."""
    return tab.evaluate(
        """([name, settings]) => settings.map((params) => {
          try {
            const data = rlnbLive[name].compute(params);
            return { ...data, alt: rlnbLive[name].alt(data) };
          } catch (error) { return { problem: error.message }; }
        })""",
        [name, params],
    )


def near(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_the_clip_in_javascript_is_the_clip_in_python(opened):
    tab, rng = opened(BY_NAME["clip_explorer"].id), random.Random(0)
    settings = [
        {
            "epsilon_low": rng.choice((rng.randrange(91) / 100, rng.uniform(0, 0.9))),
            "epsilon_high": rng.choice((rng.randrange(101) / 100, rng.uniform(0, 1))),
            "dual": rng.choice((None, 1.5 + 0.25 * rng.randrange(9))),
            "sign": rng.choice(("both", "positive", "negative")),
        }
        for _ in range(DRAWN_AGAIN)
    ]
    for params, found in zip(settings, ask(tab, "clip_explorer", settings), strict=True):
        data = clip.compute(**params)
        assert found["alt"] == clip.alt(data), params
        for sign in clip.SIGNS:
            near(found["objective"][str(sign)], data["objective"][sign])
            near(found["slope"][str(sign)], data["slope"][sign])
        assert len(found["corners"]) == len(data["corners"])
        for one, other in zip(found["corners"], data["corners"], strict=True):
            assert (one["sign"], one["moved"]) == (other.sign, other.moved)
            near([one[k] for k in ("ratio", "objective", "slope")],
                 [other.ratio, other.objective, other.slope])  # fmt: skip


def rewards_at_random(rng):
    """A list as someone may type it, now and then one that cannot be read."""
    count = rng.randrange(1, 20)
    kind = rng.randrange(5)
    if kind == 0:
        values = [rng.choice("01") for _ in range(count)]
    elif kind == 1:
        values = [f"{rng.uniform(-4, 4):.{rng.randrange(7)}f}" for _ in range(count)]
    elif kind == 2:
        values = [rng.choice(("0.5", "−1", "+2", ".25", "1e-5", "3.", "1_0e-1"))] * count
    elif kind == 3:
        values = [repr(rng.uniform(-4, 4)) for _ in range(count)]
    else:
        values = [rng.choice(("1", "0", "4.0001", "x", "inf", "nan", "--1", "1e9", "½"))
                  for _ in range(count)]  # fmt: skip
    return rng.choice((", ", ",", " ", " ; ", ",,")).join(values) if rng.randrange(30) else " , "


def test_group_advantages_in_javascript_are_those_in_python(opened):
    tab, rng = opened(BY_NAME["group_advantage_explorer"].id), random.Random(0)
    settings = [
        {
            "rewards": rewards_at_random(rng),
            "size": rng.randrange(2, 17),
            "fill": rng.choice(("list", "last")),
            "std": rng.choice(("population", "bessel", "none")),
        }
        for _ in range(DRAWN_AGAIN)
    ]
    refused = 0
    for params, found in zip(settings, ask(tab, "group_advantage_explorer", settings), strict=True):
        try:
            data = group_advantage.compute(**params)
        except ValueError as error:
            assert found == {"problem": str(error)}, params
            refused += 1
            continue
        assert found["alt"] == group_advantage.alt(data), params
        for name in ("rewards", "advantages", "mean", "std_of_rewards", "divisor", "largest"):
            near(found[name], data[name])
        assert found["equal"] == data["equal"] and len(found["given"]) == len(data["given"])
        assert (found["bound"] is None) == (data["bound"] is None)
        if data["bound"] is not None:
            near(found["bound"], data["bound"])
    assert 20 < refused < DRAWN_AGAIN / 2


CASES = {
    "clip_explorer": [
        {"epsilon_low": 0.2, "epsilon_high": 0.28, "dual": 3.0, "sign": "both"},
        {"epsilon_low": 0.55, "epsilon_high": 0.9, "dual": None, "sign": "negative"},
        {"epsilon_low": 0.0, "epsilon_high": 0.03, "dual": 1.5, "sign": "positive"},
    ],
    "group_advantage_explorer": [
        {"rewards": "1, 0, 0.25, −2", "size": 16, "fill": "list", "std": "bessel"},
        {"rewards": "2 1", "size": 7, "fill": "last", "std": "none"},
        {"rewards": "1", "size": 3, "fill": "list", "std": "population"},
    ],
}


def extent(svg):
    """Left, right, upper and lower end of a drawing, in points; None where nothing is drawn."""
    pairs = [pair for d in re.findall(r' d="([^"]*)"', svg) for pair in POINT.findall(d)]
    if "<use" in svg or "<text" in svg:
        pairs = re.findall(r' x="([^"]*)"[^>]* y="([^"]*)"', svg)
    if not pairs:
        return None
    x, y = np.array(pairs, dtype=float).T
    return [x.min(), x.max(), y.min(), y.max()]


def same_places(tab, explorer, params, size):
    """Every artist where Python draws it, unless it leaves the canvas, where Python cuts it."""
    (row,), _ = parts.drawn(explorer, [params], "x")
    shown = tab.evaluate(
        "[...document.querySelectorAll('.view svg > g')].slice(1).map((g) => g.innerHTML)"
    )
    compared = 0
    for mine, theirs in zip(shown, row.parts, strict=True):
        here, there = extent(mine), extent(theirs)
        inside = here and min(here) >= 0 and here[1] <= size[0] and here[3] <= size[1]
        if inside and "display: none" not in mine:
            assert there is not None and np.abs(np.subtract(here, there)).max() < 0.2, theirs
            compared += 1
        elif not here:
            assert there is None
    assert compared > 5


@pytest.mark.parametrize("name", explorers.LIVE)
def test_what_javascript_draws_is_what_python_draws(opened, name):
    explorer, _ = made(BY_NAME[name])
    tab = opened(BY_NAME[name].id)
    for params in CASES[name]:
        axes = explorers.axes_of(explorer)
        given = params | ({"dual": math.inf} if params.get("dual", 0) is None else {})
        row = [given[a.name] if a.kind == "text" else a.values.index(given[a.name]) for a in axes]
        move(tab, Grid(axes, ()), row)
        explorer.data = explorer.compute(**params)
        explorer.update(explorer.artists, explorer.data)
        assert heard(tab) == explorer.alt(explorer.data)
        assert tab.inner_text(".problem") == ""
        assert off(seen(tab, explorer), meant(explorer)) < SHARE
        same_places(tab, explorer, params, explorer.figure.get_size_inches() * 72)
        shown = {text for text in tab.locator(".view svg text").all_text_contents() if text}
        for artist in explorer.moving:
            if isinstance(artist, Text) and artist.get_visible():
                assert artist.get_text() in shown | {""}


# ---- by hand


def test_arrows_and_home_move_a_slider_and_the_picture_is_spoken(opened):
    tab = opened(BY_NAME["token_gates_explorer"].id)
    slider = tab.locator("[data-control=epsilon] input")
    slider.focus()
    tab.wait_for_timeout(1000)
    assert tab.text_content(".heard") == ""  # nothing has moved
    before = heard(tab)
    tab.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "0.20"
    assert tab.text_content("[data-control=epsilon] output") == "0.20"
    assert heard(tab) != before
    tab.keyboard.press("Home")
    assert slider.get_attribute("aria-valuetext") == "0.00"
    tab.wait_for_function("document.querySelector('.heard').textContent !== ''")
    assert tab.text_content(".heard") == heard(tab)


def test_a_reward_that_cannot_be_read_is_told_and_the_picture_stays(opened):
    tab = opened(BY_NAME["group_advantage_explorer"].id)
    before = heard(tab)
    tab.fill("[data-control=rewards] input", "1, two")
    assert "“two” is not a number" in tab.inner_text(".problem")
    assert tab.get_attribute(".problem", "role") == "alert" and heard(tab) == before
    tab.fill("[data-control=rewards] input", "1, 2")
    assert tab.inner_text(".problem") == "" and heard(tab) != before


def test_the_start_of_the_composer_sets_every_menu_and_a_second_menu_resets_the_first(opened):
    tab = opened(BY_NAME["composer_explorer"].id)
    start = tab.locator("[data-control=start] input")

    def told(name):
        return tab.evaluate(
            f"document.querySelector('[data-control={name}] select').selectedOptions[0].text"
        )

    start.focus()
    tab.keyboard.press("Home")
    assert told("advantage") == "r, no baseline" and told("kl") == "none"
    tab.locator("[data-control=weights] select").select_option(label="token mean")
    assert told("weights") == "token mean" and "weights all tokens alike" in heard(tab)
    tab.locator("[data-control=kl] select").select_option(label="k3 .04")
    assert told("kl") == "k3 .04" and told("weights") != "token mean"
    assert ONE_AT_A_TIME["composer_explorer"] == ("start",)


def test_a_goal_is_marked_when_it_is_reached_and_stays_marked(opened):
    place = BY_NAME["slow_start_explorer"]
    explorer, goals = made(place)
    settings = grid(place.name, explorer)
    tab = opened(place.id)
    assert tab.inner_text("[data-goal]").endswith("not yet ○")
    done = next(r for r in settings.rows if goals[0](explorer.compute(**settings.params(r))))
    move(tab, settings, done)
    assert "that's it ✔" in tab.inner_text("[data-goal]")
    move(tab, settings, [axis.at for axis in settings.axes])
    assert "that's it ✔" in tab.inner_text("[data-goal]")


def test_on_a_narrow_screen_the_picture_scrolls_and_the_page_does_not(opened):
    tab = opened(BY_NAME["clip_explorer"].id)
    tab.set_viewport_size({"width": 360, "height": 700})
    tab.wait_for_function("document.querySelector('.view').tabIndex === 0")
    wide = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
