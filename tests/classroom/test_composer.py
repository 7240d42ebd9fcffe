"""The composer: every method is one choice per menu, and what it says about a choice is so."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rlnb.classroom.cached_text import CHARACTERS, Letters
from rlnb.classroom.explorers import composer, composer_explorer, composer_picture, composer_row
from rlnb.classroom.explorers.composer import Said, compute, report
from rlnb.classroom.explorers.composer_menus import MENUS, REWARDS, choices_of, compose
from rlnb.classroom.figures import new_figure
from rlnb.objective import (
    ANNEX,
    ZOO,
    batch_zscore,
    cispo,
    clip,
    closest,
    group_center,
    group_zscore,
    k3,
    kl_in_reward,
    leave_one_out,
    neighbours,
    raw_reward,
    sapo,
    sequence_mean,
    token_mean,
    vespo,
)
from rlnb.toys import running_batch

NAMED = ZOO | ANNEX
GRADED, ONE_GROUP = "1 1 0 0 | 1 ½ 0 0", "1 1 0 0 | 0 0 0 0"


def some_compositions(count: int) -> list[dict]:
    draw = random.Random(0)
    return [
        {menu: draw.choice(options)[1] for menu, options in MENUS.items()}
        | {"rewards": draw.choice(list(REWARDS))}
        for _ in range(count)
    ]


# The menus


@pytest.mark.parametrize("name", NAMED)
def test_every_method_is_one_choice_per_menu(name):
    choices = choices_of(name)
    assert compose(**choices) == NAMED[name]
    for menu, part in choices.items():
        assert part in [option for _, option in MENUS[menu]], f"{part!r} is not on menu {menu}"


@pytest.mark.parametrize("menu", MENUS)
def test_a_menu_offers_nothing_twice_and_short_labels(menu):
    labels, parts = zip(*MENUS[menu], strict=True)
    assert len(set(labels)) == len(labels) and max(map(len, labels)) <= 18
    assert all(part not in parts[:i] for i, part in enumerate(parts))


def test_kl_goes_where_it_belongs():
    choices = choices_of("grpo")
    assert compose(**choices | {"kl": k3(0.1)}).terms == (k3(0.1),)
    rewarded = compose(**choices | {"kl": kl_in_reward(0.05)})
    assert rewarded.shape == (kl_in_reward(0.05),) and rewarded.terms == ()
    with pytest.raises(ValueError, match="one KL menu, and this objective has 2 terms and shapes"):
        choices_of(ZOO["grpo"].replace(shape=kl_in_reward(0.05)))


# Names and neighbours


def test_a_change_takes_the_name_away_and_another_gives_the_next_one():
    d = compute("grpo", kl=())
    assert d["name"] is None and d["nearest"][0][0] == "grpo"
    assert str(d["nearest"][0][1]) == str(d["changed"]) == "terms: k3(0.04) -> none"
    d = compute("grpo", kl=(), weights=token_mean(), surrogate=clip(0.2, high=0.28))
    assert d["name"] == "dapo"
    assert "dapo" not in [name for name, _ in d["nearest"]] and len(d["nearest"]) == 3


def test_the_closest_is_the_first_neighbour_and_the_own_name_comes_first():
    for name, objective in NAMED.items():
        (first, gap), *others = neighbours(objective, 4)
        assert first == name and not len(gap)
        assert all(len(gap) for _, gap in others) and len(others) == 3
    for choices in some_compositions(30):
        del choices["rewards"]
        objective = compose(**choices)
        near = neighbours(objective, 29)
        assert str(closest(objective)) == str(near[0])
        assert sorted(name for name, _ in near) == sorted(NAMED)
        assert [name for name, _ in neighbours(objective, 3)] == [name for name, _ in near[:3]]


def test_the_order_of_neighbours_is_the_price_of_the_way():
    # from GRPO without KL: drop a term 2; MGPO's weight 2; DAPO's band 1 and weights 3
    near = [name for name, _ in neighbours(ZOO["grpo"].replace(terms=()), 29)]
    assert near[0] == "grpo"
    assert near.index("mgpo") < near.index("dapo") < near.index("dr_grpo") < near.index("gspo")


# Pushes


def test_pushes_by_hand():
    d = compute("grpo", kl=())
    push = d["push"]
    assert push[2, 0] == pytest.approx(-3.5 / 16, rel=1e-5)  # A -1, ratio 3.5, 1 / (8 answers x 2)
    assert push[0, 0] == pytest.approx(1.1 / 24, rel=1e-5)
    assert push[0, 1] == d["gate"][0, 1] == 0  # ratio 1.25 and A > 0: cut
    assert d["gate"][2, 0] == pytest.approx(3.5)
    assert d["advantages"][4, 0] == pytest.approx(3**0.5, rel=1e-5)
    assert d["answers"][2] == pytest.approx((3.5 + 0.74 / 0.92) / 16, rel=1e-5)
    assert not push[~d["mask"]].any()


@pytest.mark.parametrize("name", NAMED)
def test_pushes_are_the_descent_direction_and_sums_are_their_sizes(name):
    batch = running_batch(complete=True)
    d = compute(name)
    if name != "clip_cov":  # random
        np.testing.assert_array_equal(d["push"], -NAMED[name].explain(batch).gradient.numpy())
    np.testing.assert_array_equal(d["answers"], np.abs(d["push"]).sum(1))
    assert not d["change"].any()  # against itself


def test_the_change_is_against_the_method_one_started_from():
    d = compute("grpo", weights=token_mean())
    np.testing.assert_allclose(d["change"], d["push"] - compute("grpo")["push"], atol=1e-15)
    assert d["start_runs"] and np.abs(d["change"]).max() > 0.01
    assert composer_picture.moved(d).any() and not composer_picture.moved(compute("grpo")).any()
    d = compute("maxrl", advantage=group_center(), rewards=GRADED)
    assert not d["start_runs"]
    assert "than with nothing: maxrl cannot run here" in composer_picture.alt(d)


def test_methods_with_the_same_push_are_found_and_their_factor():
    assert ("gspo_token", 1.0) in compute("gspo")["twins"]
    ((twin, factor),) = compute("rloo", advantage=group_center())["twins"]
    assert twin == "rloo" and factor == pytest.approx(3 / 4)  # (G-1)/G
    assert "0.75 x rloo" in report(compute("rloo", advantage=group_center()))
    assert compute("grpo")["twins"] == ()
    # where one prompt alone has a signal, dividing by its std is a step size
    twins = dict(compute("rloo", advantage=group_zscore(), rewards=ONE_GROUP)["twins"])
    assert twins["rloo"] == pytest.approx(1.5, rel=1e-4)  # 1/0.5 over 4/3
    assert "rloo" not in dict(compute("rloo", advantage=group_zscore())["twins"])


def test_a_batch_without_any_push_has_no_twins_and_no_nan():
    # right answers moved out of GSPO's band, and raw rewards give the wrong ones nothing
    explorer = composer_explorer().set(start="gspo", advantage=raw_reward())
    d = explorer.data
    assert not d["push"].any() and d["twins"] == ()
    assert "nan" not in explorer.alt_text()


# Words


def test_words_of_both_libraries_or_the_sentence_why_not():
    said = compute("dapo")["said"]
    assert said["TRL"].words["loss_type"] == "dapo" and said["TRL"].refused is None
    assert "epsilon=0.2, epsilon_high=0.28" in str(said["TRL"])
    assert said["TRL"].differences == (
        "Its convention: advantage: group_zscore() -> group_zscore('bessel', eps=0.0001).",
    )
    assert "clip_ratio_c=1e+09" in str(said["verl"]) and "dual clip" in str(said["verl"])
    refused = compute("maxrl")["said"]
    for library, version in (("TRL", "TRL 1.16.0"), ("verl", "verl 0.9.1")):
        assert refused[library].words is None
        assert str(refused[library]).startswith(f"{version} has no word for advantage=max_rl()")
    assert str(Said({"a": 1.0, "b": None})) == "a=1."


def test_the_report_keeps_its_width_and_holds_everything():
    text = report(compute("dppo_topk"))
    assert max(map(len, text.splitlines())) <= 76
    for word in (
        "name       dppo_topk",
        "made of    Objective(group_center()",
        "beside it  dppo with",
        "dr_grpo with surrogate: clip(0.2) -> cispo(20.0)",
        "TRL 1.16.0",
        "verl 0.9.1",
    ):
        assert word in text
    assert report(compute("grpo", kl=())).startswith("name       none\n")
    assert "1% of a right answer's fork token" in report(compute("simko"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"start": "grop"}, "there is no method 'grop'. Did you mean 'grpo'"),
        ({"rewards": "1 1"}, "rewards must be one of"),
    ],
)
def test_a_setting_that_makes_no_sense_is_a_sentence(wrong, said):
    with pytest.raises(ValueError, match=said):
        compute(**wrong)


def test_what_cannot_run_says_so_in_the_picture_and_the_last_numbers_are_gone():
    assert "Threshold the reward" in compute("maxrl", rewards=GRADED)["problem"]
    explorer = composer_explorer().set(surrogate=vespo())
    sentence = "vespo() takes ratio=product()"
    assert explorer.problem.value == "" and explorer.data["problem"].startswith(sentence)
    written = " ".join(line[2] for line in explorer.artists["letters"].lines)
    assert sentence in written and "token" not in written.split("nearest")[1].split("TRL")[0]
    assert explorer.artists["veil"].get_visible() and not explorer.artists["cells"].get_visible()
    assert sentence in explorer.alt_text() and "nan" not in explorer.alt_text()
    explorer.set(surrogate=clip(0.2))
    assert not explorer.artists["veil"].get_visible() and explorer.artists["cells"].get_visible()


# The picture


def test_the_first_menu_sets_the_others_and_redraws_once():
    explorer = composer_explorer()
    shown = []
    explorer._handle = type("Handle", (), {"update": staticmethod(shown.append)})()
    explorer.controls["start"].value = "gspo"
    parts = {menu: explorer.params[menu] for menu in MENUS}
    assert parts == choices_of("gspo") and len(shown) == 1
    assert shown[0].data["text/plain"].startswith("The composer: gspo.")
    explorer.controls["kl"].value = k3(0.04)
    assert len(shown) == 2 and explorer.data["name"] is None
    explorer.set(start="dapo", weights=sequence_mean())
    assert explorer.data["code"] == repr(ZOO["dapo"].replace(weights=sequence_mean))


def test_artists_hold_what_compute_says():
    explorer = composer_explorer()
    for params in ({}, {"start": "cispo"}, {"surrogate": sapo()}):
        artists, d = explorer.set(**params).artists, explorer.data
        values = d["push"][d["mask"]]
        numbers = [line for line in artists["letters"].lines if line[4] == "center"]
        assert len(numbers) == len(values) == 30
        for line, value in zip(numbers, values, strict=True):
            assert float(line[2].replace("−", "-")) == pytest.approx(1000 * value, abs=0.051)
        widths = np.array([bar.get_width() for bar in artists["bars"]])
        np.testing.assert_allclose(widths / widths.max(), d["answers"] / d["answers"].max())
        colours = composer_picture._colours(values)
        np.testing.assert_array_equal(artists["cells"].get_facecolor()[:, :3], colours)
        bold = np.array(artists["cells"].get_linewidth()) > 1
        np.testing.assert_array_equal(bold, composer_picture.moved(d)[d["mask"]])
        cut = d["mask"] & (d["gate"] == 0)
        assert len(artists["cut"].get_xdata()) == cut.sum()
        assert artists["title"].get_text().startswith(d["name"] or "no name")


def test_a_menu_for_every_part_and_one_slider_to_start_from():
    explorer = composer_explorer()
    assert set(explorer.controls) == {"start", *MENUS}
    width, height = composer_picture.SIZE
    rows = -(-len(explorer.controls) // explorer.columns)
    assert width <= 900 and height + 36 * rows + 26 <= 520


# What the page's tasks ask for


def test_six_pushes_can_turn_the_direction_further_than_twenty_nine():
    soft = compute("dr_grpo", surrogate=sapo())
    assert composer_picture.moved(soft).sum() == 29
    assert composer_row.cosine(soft) == pytest.approx(composer.SAPO_TURN, abs=6e-4)
    assert not composer.few_pushes(compute("dr_grpo")) and not composer.few_pushes(soft)
    found = {
        (menu, part)
        for menu, (_, known) in composer_row.WORDS.items()
        for part, _ in known
        if composer.few_pushes(compute("dr_grpo", **{menu: part}))
    }
    assert found == {("surrogate", cispo(5.0)), ("surrogate", cispo(20.0))}
    woken = compute("dr_grpo", surrogate=cispo(5.0))
    assert composer_picture.moved(woken).sum() == 6
    largest = np.unravel_index(np.abs(woken["push"]).argmax(), woken["push"].shape)
    assert woken["ratio"][largest] == pytest.approx(6) and composer_picture.moved(woken)[largest]
    alone = {**woken, "change": np.zeros_like(woken["change"])}
    alone["change"][largest] = woken["change"][largest]
    alone["push"] = compute("dr_grpo")["push"] + alone["change"]
    assert composer_row.cosine(alone) < composer_row.cosine(soft)


def test_the_readout_counts_pushes_and_says_how_far_they_turned():
    explorer = composer_explorer(composer.TAUGHT, "dr_grpo")
    start = {menu: choices_of("dr_grpo")[menu] for menu in composer_row.WORDS}
    for params, said in (
        ({}, "Against Dr. GRPO: pushes changed: 0 of 30."),
        ({"surrogate": cispo(5.0)}, "6 of 30; cosine 0.724."),
        ({"advantage": leave_one_out()}, "24 of 30; cosine 1, all times 1.33."),
        ({"kl": k3(0.04)}, "29 of 30; cosine above 0.999."),
        ({"start": "gspo", "advantage": raw_reward()}, "15 of 30; no push is left."),
    ):
        explorer.set(**({} if "start" in params else start) | {"start": "dr_grpo"} | params)
        assert explorer.line.value.endswith(said) and len(explorer.line.value) <= 120
        assert explorer.line.value in explorer.alt_text()
    assert "from Dr. GRPO" in explorer.set(start="dr_grpo", kl=k3(0.04)).alt_text()


@pytest.mark.parametrize("name", composer.TAUGHT)
def test_the_lesson_s_row_says_every_part_in_words_and_fills_what_was_exchanged(name):
    explorer = composer_explorer(composer.TAUGHT)
    for menu, (_, known) in composer_row.WORDS.items():
        assert {part for part, _ in known} == {part for _, part in explorer.controls[menu].options}
    explorer.set(start=name, weights=token_mean())
    lit = composer_row.exchanged(explorer.data)
    assert lit == [] if choices_of(name)["weights"] == token_mean() else lit == ["weights"]
    assert explorer.artists["word", 5].get_text() == "all tokens\nalike"
    count = int(explorer.data["mask"].sum())
    written = [line[2] for line in explorer.artists["letters"].lines if line[4] == "center"]
    for text, value in zip(written, explorer.data["push"][explorer.data["mask"]], strict=True):
        assert float(text.replace("−", "-")) == pytest.approx(count * value, abs=0.0051)


def test_three_other_advantages_are_dr_grpo_s_up_to_a_factor():
    found = [
        part
        for _, part in MENUS["advantage"]
        if "dr_grpo" in dict(compute("dr_grpo", advantage=part)["twins"])
    ]
    assert found == [leave_one_out(), batch_zscore("group"), batch_zscore("group", of="centred")]


def test_a_colour_says_the_sign_white_is_nothing_and_ink_can_be_read():
    colours = composer_picture._colours(np.array([0.0, 0.2, -0.2, -0.1, 0.0]))
    assert colours[0].tolist() == colours[4].tolist() == [1, 1, 1]
    assert colours[1, 2] > colours[1, 0] and colours[2, 0] > colours[2, 2]
    np.testing.assert_allclose(colours[3], (1 + colours[2]) / 2)  # a straight line
    inks = [composer_picture._ink(colour) for colour in colours]
    assert inks == ["#000000", "white", "#000000", "#000000", "#000000"]


def settings():
    mixed = [{menu: c[menu] for menu in MENUS} for c in some_compositions(60)]
    return [{"start": name} for name in NAMED] + mixed


def test_no_line_is_cut_off_runs_into_another_or_has_a_letter_that_is_missing():
    explorer = composer_explorer()
    width, height = explorer.figure.canvas.get_width_height()
    for params in settings():
        letters = explorer.set(**params).artists["letters"]
        boxes = [box for box in letters.boxes() if box[0]]
        for i, (text, left, top, right, bottom) in enumerate(boxes):
            assert left >= 0 and top >= 0 and right <= width and bottom <= height, (params, text)
            assert set(text) <= set(CHARACTERS), text
            for other, l2, t2, r2, b2 in boxes[i + 1 :]:
                apart = right <= l2 or r2 <= left or bottom - 2 <= t2 or b2 - 2 <= top
                assert apart, (params, text, other)


@pytest.mark.parametrize("name", NAMED)
def test_a_named_method_fits_up_to_the_library_s_first_sentence(name):
    """The rest of a refusal is in `report`; words that can be typed are never cut."""
    lines = composer_picture._findings_lines(compute(name))
    said = "".join(line[2] for line in lines).replace(" ", "")
    for library in compute(name)["said"].values():
        first = str(library).split(". ")[0]
        assert first.replace(" ", "") in said
    assert repr(NAMED[name]).replace(" ", "") in said


def test_a_text_that_is_too_long_ends_between_sentences():
    lines = composer_picture._short("TRL", "First one. " + "Second word " * 40 + ". Third.", 2)
    assert lines == ["TRL        First one. …"]
    lines = composer_picture._short("TRL", "word " * 60, 1)
    assert len(lines) == 1 and lines[0].endswith(" …")


# The letters


def drawn(*lines) -> np.ndarray:
    figure = new_figure(60, 30)
    letters = figure.add_artist(Letters())
    letters.lines = list(lines)
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)


def test_a_line_stands_in_its_box_in_its_colour():
    blank = drawn()
    assert (blank == 255).all()
    for align in ("left", "center", "right"):
        letters = Letters()
        letters.lines = [(30, 15, "Aj", "#0072B2", align)]
        ((_, left, top, right, bottom),) = letters.boxes()
        pixels = drawn(*letters.lines)
        inked = np.argwhere((pixels != 255).any(2))
        assert left <= inked[:, 1].min() and inked[:, 1].max() < right
        assert top <= inked[:, 0].min() and inked[:, 0].max() < bottom
        assert inked[:, 1].max() - left > 11  # two letters
    assert (pixels.reshape(-1, 3) == (0, 114, 178)).all(1).any()


def test_each_letter_is_its_own_and_an_unknown_one_is_a_question_mark():
    pictures = {drawn((30, 15, c, "black", "center")).tobytes() for c in CHARACTERS if c != " "}
    assert len(pictures) == len(CHARACTERS) - 1
    unknown, asked = (drawn((30, 15, c, "black", "center")) for c in "漢?")
    assert (unknown == asked).all() and not (asked == drawn()).all()
