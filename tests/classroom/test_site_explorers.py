"""What the site's explorers are made of: settings, parts, definitions, fonts, what is kept."""

from __future__ import annotations

import base64
import gzip
import io
import json
import math
import random
import re
from functools import cache

import pytest
from fontTools.ttLib import TTFont

from rlnb.classroom.explorers.composer import TAUGHT
from rlnb.classroom.explorers.composer_menus import MENUS, choices_of
from rlnb.classroom.site import explorers, grids, parts
from rlnb.classroom.site import placed as site_placed
from rlnb.classroom.site.fonts import FACES, font_faces, font_licence
from rlnb.classroom.site.grids import MOST, ONE_AT_A_TIME, axis, grid
from rlnb.classroom.site.placed import all_placed, made, placed, source_hash

PLACES = all_placed()
DRAWN = [place for place in PLACES if place.name not in explorers.LIVE]
BY_NAME = {place.name: place for place in PLACES}
# a goal that needs more than a page moves: one menu of the budget
BEYOND = {("gpu_budget_explorer", 0)}


@cache
def _made(place):
    return made(place)


@cache
def _grid(place):
    return grid(place.name, _made(place)[0])


def _some(place, count):
    rows = _grid(place).rows
    picked = random.Random(place.id).sample(rows, min(count, len(rows)))
    return [_grid(place).params(row) for row in picked]


# ---- which settings


def test_every_explorer_of_the_course_moves_on_the_site():
    assert len(PLACES) >= 50 and len({place.id for place in PLACES}) == len(PLACES)
    assert {"clip_explorer", "group_advantage_explorer"} == set(explorers.LIVE)


@pytest.mark.parametrize("place", DRAWN, ids=lambda place: place.id)
def test_a_grid_begins_where_the_explorer_does_and_is_not_too_large(place):
    found = _grid(place)
    assert 1 < len(found.rows) <= MOST and len(set(found.rows)) == len(found.rows)
    begin = tuple(axis.at for axis in found.axes)
    assert begin in found.rows
    assert found.params(begin) == _made(place)[0].params


def test_the_goals_above_an_explorer_can_be_reached_on_the_site():
    missed = set()
    for place in DRAWN:
        explorer, goals = _made(place)
        open_goals = dict(enumerate(goals))
        for row in _grid(place).rows:
            if not open_goals:
                break
            try:
                data = explorer.compute(**_grid(place).params(row))
            except ValueError:
                continue
            open_goals = {i: g for i, g in open_goals.items() if not g(data)}
        missed |= {(place.name, i) for i in open_goals}
    assert missed == BEYOND


def test_the_composer_has_every_start_with_each_menu_moved_once():
    place = BY_NAME["composer_explorer"]
    found = _grid(place)
    menus = [axis.name for axis in found.axes[1:]]
    assert list(found.axes[0].values) == list(TAUGHT) and set(menus) == set(MENUS) - {"credit"}
    shown = {tuple(map(repr, found.params(row).values())) for row in found.rows}
    count = 0
    for start in TAUGHT:
        home = choices_of(start)
        for menu in menus:
            for part in found.axes[1 + menus.index(menu)].values:
                moved = {"start": start} | {m: (home | {menu: part})[m] for m in menus}
                assert tuple(map(repr, moved.values())) in shown
                count += 1
    assert count == 10 * sum(len(axis.values) for axis in found.axes[1:]) and ONE_AT_A_TIME[
        "composer_explorer"
    ] == ("start",)


def test_a_value_that_no_control_offers_is_refused():
    control = _made(BY_NAME["token_gates_explorer"])[0].controls["epsilon"]
    assert axis("epsilon", control, [0.1]).values == (0.1, 0.15)  # and where it begins
    with pytest.raises(ValueError, match="'epsilon' does not offer 0.105"):
        axis("epsilon", control, [0.105])


def test_a_grid_of_too_many_settings_is_refused(monkeypatch):
    place = BY_NAME["token_weights_explorer"]
    monkeypatch.delitem(grids.COARSE, place.name)
    with pytest.raises(ValueError, match="61824000 times, 2000 at most"):
        grid(place.name, _made(place)[0])


# ---- parts


@pytest.mark.parametrize("place", DRAWN, ids=lambda place: place.id)
def test_an_artist_that_is_remembered_is_the_one_that_would_be_drawn(place):
    explorer, goals = _made(place)
    rows = _some(place, 5)
    rows += rows[:2]
    kept, _ = parts.drawn(explorer, rows, place.id, goals)
    anew, _ = parts.drawn(explorer, rows, place.id, goals, remember=False)
    assert kept == anew


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.id)
def test_parts_refer_only_to_what_is_defined_and_fonts_that_come_along(place):
    explorer, _ = _made(place)
    rows = list(explorers.LIVE[place.name]) if place.name in explorers.LIVE else _some(place, 3)
    picture = parts.still(explorer, place.id)
    found, defs = parts.drawn(explorer, rows, place.id)
    text = "".join((picture.svg, *(part for row in found for part in row.parts)))
    named = set(re.findall(r'(?:href="#|url\(#)(\w+)', text))
    defined = re.findall(r' id="(\w+)"', "".join(picture.defs + defs))
    assert named <= set(defined) and "<defs>" not in text
    families = set(re.findall(r"'([^']+)'", " ".join(re.findall(r"font[^:]*: [^;\"]*", text))))
    assert families <= {family for family, _, _ in FACES}
    letters = set("".join(re.findall(r">([^<]+)</t", text)))
    missing = {letter for letter in letters if ord(letter) not in _letters_of_the_fonts()}
    assert missing <= set("&;\n"), missing


@cache
def _letters_of_the_fonts():
    """Those that every upright sans face has: mathematics and numbers use no others."""
    found = re.findall(r"font-weight: normal; font-style: normal; src: url\([^,]*,([^)]*)\)",
                       font_faces())  # fmt: skip
    codes = [set(TTFont(io.BytesIO(base64.b64decode(one))).getBestCmap()) for one in found]
    return codes[0]


def test_numbers_in_texts_keep_their_digits():
    text = '<text x="1.23456" transform="rotate(-0 1 2)">0.123456 "0.98765" &lt;b&gt;</text>'
    assert parts._short(text) == '<text x="1.23">0.123456 "0.98765" &lt;b&gt;</text>'


def test_rows_become_columns_of_distinct_texts():
    rows = [
        parts.Row(("a", "x"), "one", "1", (False,)),
        parts.Row(problem="no"),
        parts.Row(("a", "y"), "two", "2", (True,)),
    ]
    found = parts.joined(rows, 2)
    assert found.strings[0][found.columns[0][2]] == "a" and len(found.strings[0]) == 2  # and ""
    assert [found.strings[1][i] for i in found.columns[1]] == ["x", "", "y"]
    assert found.problems == {1: "no"} and found.reached == [[0], [], [1]]


def test_the_figure_is_as_before_when_it_has_been_written():
    explorer, _ = made(BY_NAME["slow_start_explorer"])
    before, dpi = explorer.pixels(), explorer.figure.dpi
    parts.still(explorer, "x")
    assert explorer.figure.dpi == dpi and (explorer.pixels() == before).all()


# ---- a block


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("RLNB_SITE_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(explorers, "_USED", {})
    return tmp_path / "kept"


def test_a_block_is_kept_and_its_assets_lie_where_it_looks(kept, tmp_path, monkeypatch):
    place = BY_NAME["slow_start_explorer"]
    block = explorers.block(place.name, place.page, place.cell)
    assert f'id="{place.id}"' in block and 'src="../assets/explorers/' in block
    explorers._USED.clear()
    monkeypatch.setattr(explorers, "_make", lambda place: pytest.fail("drawn twice"))
    assert explorers.block(place.name, place.page, place.cell) == block
    explorers.assets(tmp_path)
    for address in re.findall(r'(?:src|href)="\.\./([^"]+)"', block):
        assert (tmp_path / address).is_file(), address
    assert "Bitstream Vera" in font_licence()
    data = json.loads(gzip.decompress(base64.b64decode(_packed(tmp_path, place))))
    assert len(data["alts"]) == len(_grid(place).rows) == math.prod(data["lengths"])


def _packed(folder, place):
    script = (folder / "assets" / "explorers" / f"{place.id}.js").read_text(encoding="utf-8")
    return re.fullmatch(r'rlnbExplorer\("([^"]+)","([^"]+)"\);\n', script)[2]


def test_pages_of_statements_lie_deeper(kept):
    place = BY_NAME["clip_explorer"]
    block = explorers.block(place.name, place.page, place.cell)
    assert 'src="../../assets/explorers/live_clip.js"' in block and "live_text.js" in block
    assert "Coarser" not in block


def test_a_coarse_grid_says_so():
    place = BY_NAME["token_weights_explorer"]
    told = explorers._coarse(_grid(place))
    assert "answer 1, tokens: 5 of 40 values" in told and "L: 3 of 161 values" in told
    alone = explorers._coarse(_grid(BY_NAME["composer_explorer"]))
    assert "“start from” moves freely" in alone and "one at a time" in alone


def test_a_cell_without_that_explorer_is_refused():
    with pytest.raises(ValueError, match="does not call clip_explorer"):
        placed("clip_explorer", "06_ppo", 0)


def test_what_is_kept_goes_with_its_sources(tmp_path, monkeypatch):
    one, other = BY_NAME["slow_start_explorer"], BY_NAME["clip_explorer"]
    assert source_hash(one) == source_hash(one) != source_hash(other)
    file = tmp_path / "part.py"
    monkeypatch.setattr(site_placed, "PACKAGE", tmp_path)
    monkeypatch.setattr(site_placed, "_behind", lambda place: {file})
    file.write_text("1", encoding="utf-8")
    before = source_hash(one)
    file.write_text("2", encoding="utf-8")
    assert source_hash(one) != before


def test_behind_an_explorer_is_what_it_imports_and_no_other_explorer():
    behind = {
        file.relative_to(site_placed.PACKAGE).as_posix()
        for file in site_placed._behind(BY_NAME["clip_explorer"])
    }
    assert {"classroom/explorers/clip.py", "classroom/explorer.py", "classroom/figures.py"} < behind
    assert {"objective/surrogates.py", "classroom/site/parts.py"} < behind
    assert "classroom/explorers/group_advantage.py" not in behind
