"""The site as a double-click opens it: from a folder, without a network, in both themes, narrow."""

from __future__ import annotations

import lab_in_chromium
import pytest

from rlnb.classroom.site.build import build
from rlnb.classroom.site.front import HEADLINES

NARROW, WIDE = {"width": 380, "height": 800}, {"width": 1280, "height": 900}
LUMINANCE = """(selector) => {
  const c = getComputedStyle(document.querySelector(selector)).backgroundColor.match(/[\\d.]+/g);
  return (0.21 * c[0] + 0.72 * c[1] + 0.07 * c[2]) / 255;
}"""
# What stands out on the right of a narrow window; what scrolls by itself may.
TOO_WIDE = """() => [...document.querySelectorAll('main *')].filter(x => {
  const box = x.getBoundingClientRect();
  for (let up = x; up; up = up.parentElement)
    if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(up).overflowX)) return false;
  return box.width && box.right > innerWidth + 1;
}).map(x => x.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """All pages; of the explorers those that the first page names: all 51 take minutes."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLNB_SITE_CACHE", str(tmp_path_factory.mktemp("drawn")))
        build(folder, moving=HEADLINES, workers=1)
    return folder


@pytest.fixture(scope="module")
def window(chromium):
    with lab_in_chromium.driver() as playwright:
        running = playwright.chromium.launch(
            executable_path=lab_in_chromium.browser(), args=lab_in_chromium.CHROMIUM_FLAGS
        )
        yield running
        running.close()


class Watched:
    """A tab that remembers every complaint of its console and every address it asked for."""

    def __init__(self, window, folder, **settings):
        self.context = window.new_context(**{"viewport": WIDE, "offline": True} | settings)
        self.tab, self.folder = self.context.new_page(), folder
        self.complaints, self.asked = [], []
        self.tab.on("console", lambda said: self.hear(said))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))

    def hear(self, said):
        if said.type in ("error", "warning"):
            self.complaints.append(said.text)

    def open(self, address):
        self.tab.goto(f"{self.folder.as_uri()}/{address}")
        return self.tab

    def assert_quiet(self):
        assert self.complaints == []
        elsewhere = [url for url in self.asked if not url.startswith(("file:", "data:", "blob:"))]
        assert elsewhere == []


@pytest.fixture
def watched(window, site):
    """Opens a watched tab; at the end of the test nothing may have been said or fetched."""
    made = []

    def make(**settings):
        made.append(Watched(window, site, **settings))
        return made[-1]

    yield make
    for one in made:
        one.context.close()
        one.assert_quiet()


def test_every_page_opens_without_a_word_and_without_a_network(watched, site):
    one = watched()
    addresses = sorted(file.relative_to(site).as_posix() for file in site.rglob("*.html"))
    for address in addresses:
        tab = one.open(address)
        assert tab.locator("main h1").count() == 1, address
        broken = tab.evaluate(
            "() => [...document.images].filter(x => !x.naturalWidth).map(x => x.src)"
        )
        assert broken == [], address
        one.assert_quiet()
    assert len(addresses) > 70


def test_the_watch_sees_an_error_and_a_request(window, tmp_path):
    page = "<script>fetch('https://example.org/x').catch(() => 0); nothing.here()</script>"
    (tmp_path / "a.html").write_text(page)
    one = Watched(window, tmp_path)
    one.open("a.html").wait_for_timeout(100)
    one.context.close()
    assert any("nothing is not defined" in said for said in one.complaints)
    assert "https://example.org/x" in one.asked
    with pytest.raises(AssertionError):
        one.assert_quiet()


def test_the_first_page_leads_to_explorers_that_move(watched):
    one = watched()
    tab = one.open("index.html")
    ways = tab.locator("#move + ul a").evaluate_all("all => all.map(x => x.href)")
    assert len(ways) == len(HEADLINES)
    for way in ways:
        tab.goto(way)
        box = tab.locator(f"[id='{way.partition('#')[2]}']")
        box.locator("svg").wait_for()
        box.locator("input[type=range]").first.focus()
        shown = []
        for key in ("Home", "End"):
            tab.keyboard.press(key)
            tab.wait_for_timeout(200)
            shown.append(box.locator("svg").inner_html())
        assert shown[0] != shown[1], way


def test_no_page_is_wider_than_a_phone(watched, site):
    one = watched(viewport=NARROW)
    for file in sorted(site.rglob("*.html")):
        address = file.relative_to(site).as_posix()
        tab = one.open(address)
        assert tab.evaluate(TOO_WIDE) == [], address
        assert tab.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], address


def test_the_option_of_a_guess_opens_its_answer_and_no_other(watched):
    tab = watched().open("notebooks/06_ppo.html")
    answers = tab.locator("details.answer")
    assert answers.evaluate_all("all => all.filter(x => x.open).length") == 0
    button = tab.locator("[data-guess='ppo.3'] button").nth(1)
    button.focus()
    tab.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert tab.locator("[data-answer='ppo.3']").evaluate("x => x.open")
    assert answers.evaluate_all("all => all.filter(x => x.open).length") == 1
    assert "The answer is open" in tab.locator("[data-guess='ppo.3'] [role=status]").inner_text()
    assert tab.locator("[data-guess='ppo.3'] button").nth(0).is_disabled()
    reply = tab.locator("[data-answer='ppo.3'] li.yours")
    assert reply.inner_text().startswith("Had you said b, 6?") and reply.is_visible()


def test_a_statement_opens_its_cell_and_its_verdict(watched):
    tab = watched().open("notebooks/statements/08_grpo.html")
    tab.locator("[data-guess=G08] button", has_text="it depends").click()
    opened = tab.locator("details.answer[open]").evaluate_all("all => all.map(x => x.innerText)")
    assert [text.split("\n")[0] for text in opened] == [
        "The cell that decides G07, G08",
        "The verdict on G08",
    ]


def test_a_number_is_asked_for_before_its_answer_opens(watched, site):
    asked = 'data-number="1"'
    lesson = next(
        file for file in sorted((site / "notebooks").glob("*.html")) if asked in file.read_text()
    )
    tab = watched().open(f"notebooks/{lesson.name}")
    box = tab.locator(".guess:has([data-number])").first
    answer = tab.locator(f"[data-answer='{box.get_attribute('data-guess')}']")
    box.locator("button").click()
    assert not answer.evaluate("x => x.open")
    box.locator("input").fill("0.25")
    box.locator("button").click()
    assert answer.evaluate("x => x.open")
    assert "You said: 0.25." in box.inner_text()


def test_the_search_finds_a_section_and_leads_to_it(watched):
    one = watched()
    tab = one.open("notebooks/solutions/06_ppo.html")
    tab.keyboard.press("/")
    tab.keyboard.type("sixteen tokens")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#hits li")
    assert "search.html?q=sixteen+tokens" in tab.url
    first = tab.locator("#hits li a").first
    assert first.inner_text() == "Sixteen tokens"
    first.click()
    tab.wait_for_selector("h2#Sixteen-tokens")
    top = tab.locator("h2#Sixteen-tokens").evaluate("x => x.getBoundingClientRect().top")
    assert 0 <= top < 300
    tab = one.open("search.html?q=nosuchwordanywhere")
    assert "Nothing has all these words" in tab.locator("#found").inner_text()
    tab.fill("#words", "z-score<b>")
    assert tab.locator("#hits b").count() == 0


def test_a_link_into_a_fold_opens_it(watched):
    tab = watched().open("notebooks/06_ppo.html")
    tab.evaluate("document.querySelector('[data-answer=\"ppo.2\"] p').id = 'inside'")
    tab.evaluate("location.hash = 'inside'")
    tab.wait_for_selector("#inside")
    assert tab.locator("[data-answer='ppo.2']").evaluate("x => x.open")


def test_the_theme_is_the_systems_until_the_button_is_pressed(watched):
    one = watched(color_scheme="dark")
    tab = one.open("index.html")
    assert tab.evaluate(LUMINANCE, "body") < 0.2
    tab.click("#theme")
    assert tab.evaluate(LUMINANCE, "body") > 0.9
    assert watched(color_scheme="light").open("index.html").evaluate(LUMINANCE, "body") > 0.9


def test_print_opens_every_fold_and_closes_it_again(watched):
    tab = watched().open("notebooks/06_ppo.html")
    closed = "document.querySelectorAll('main details:not([open])').length"
    before = tab.evaluate(closed)
    assert before > 10
    tab.evaluate(f"addEventListener('beforeprint', () => {{ window.atPrint = {closed}; }})")
    tab.pdf()
    assert tab.evaluate("window.atPrint") == 0
    tab.wait_for_function(f"{closed} === {before}")


def test_unfold_all_and_back(watched):
    tab = watched().open("notebooks/06_ppo.html")
    tab.click("#unfold")
    assert tab.locator("main details:not([open])").count() == 0
    tab.click("#unfold")
    assert tab.locator("main details[open]").count() == 0


def test_without_a_script_everything_can_be_read(watched):
    tab = watched(java_script_enabled=False).open("notebooks/06_ppo.html")
    assert tab.locator("#theme").is_hidden()
    tab.locator("[data-answer='ppo.3'] summary").first.click()
    assert tab.locator("[data-answer='ppo.3'] img").first.is_visible()
    assert tab.locator(".task ~ noscript img, .task ~ img").count() >= 1
