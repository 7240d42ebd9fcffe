"""Slides from a lesson's own cells: one idea a slide, one HTML file, no network.

Which cell becomes what:

    a heading            begins a slide; the deck follows the lesson up to its card
    a guess              a slide of its own, with its options
    its answer           the next slide, with its picture; a second picture has a slide of its own;
                         the replies to wrong guesses are notes
    a picture, a task    a slide with its caption or goals; the code is in the notes
    short code           a slide with what it printed
    prose                at most a third of a slide is put before what it leads to
    what is folded       notes

In the browser: arrows or space, Home, End, a number and Enter; S opens the speaker's view (notes,
next slide, a clock and the lesson's minutes), F the full screen. Printed, every slide is a page.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlnb.classroom.course import minutes_said
from rlnb.classroom.paper.lesson import Block, blocks, folds, paragraphs, title_of
from rlnb.classroom.paper.prose import CODE_STYLE, STYLE, code, prose

__all__ = ["Slide", "deck", "slides", "spoken_minutes"]

COLUMNS = 92  # characters of prose in a line of a slide
LINES = 13.0  # lines of prose that fit below a heading
PICTURE = 8.0  # the lines that a picture needs at least
STOP = "**That is the core"
LEAD = 5.0  # prose before a picture or a guess on its own slide
CODE_LINES = 16  # a longer cell stays in the notes


@dataclass
class Slide:
    """One idea: a heading, what is shown, and what only the speaker sees."""

    heading: str
    shown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kind: str = "prose"
    lines: float = 0.0


def slides(page: Path) -> list[Slide]:
    """The deck of a lesson, in order; it ends with the card."""
    found = blocks(page)
    first = next((b.text for b in found if b.kind == "heading"), "")
    out = [Slide(first.lstrip("# "), kind="title")]
    waiting: list[str] = []  # prose that has no slide yet
    heading = ""

    def flush() -> None:
        for part in _portions(waiting):
            out.append(Slide(heading, [prose(text) for text in part], lines=_sum(part)))
        waiting.clear()

    def show(block: Block, kind: str, shown: list[str], notes: list[str], lines: float) -> None:
        lead: list[str] = []
        while waiting and _sum(lead) + _lines(waiting[-1]) <= min(LEAD, LINES - lines):
            lead.insert(0, waiting.pop())
        flush()
        led = [prose(text) for text in lead]
        out.append(Slide(heading, [*led, *shown], notes, kind, lines + _sum(lead)))

    for block in found[1:]:
        if block.kind == "heading":
            flush()
            heading = re.sub(r"^#+\s*", "", block.text)
            if heading.strip() == "Exercises":
                break
        elif block.kind == "fold" or (block.kind == "prose" and "<details>" in block.text):
            flush()
            _add_folds(out, block.text)
        elif block.kind == "prose" and block.text.startswith(STOP):
            continue  # a place to rest for who reads alone; a room has a clock
        elif block.kind == "prose":
            if len(out) == 1 and not heading:
                _on_title(out[0], block.text)
            else:
                waiting.append(block.text)
        elif block.kind == "guess":
            show(block, "guess", [prose(block.text)], [ASK], _lines(block.text))
        elif block.kind == "answer":
            right, wrong = _replies(block.text)
            lines = _lines(right) + (PICTURE if block.pictures else 0)
            notes = [prose(wrong)] if wrong else []
            first, *more = _apart(block)
            show(block, "answer", [prose(right), *_pictures(first)], notes, lines)
            for other in more:
                out.append(Slide(heading, _pictures(other), [], "picture", PICTURE))
        elif block.kind in ("picture", "task"):
            kind = "task" if block.kind == "task" else "picture"
            said = [prose(block.text)] if kind == "task" else []
            notes = [] if kind == "task" else [code(block.text)]
            if block.printed:
                notes.append(_printed(block.printed))
            lines = PICTURE + (_lines(block.text) if said else 0)
            show(block, kind, [*said, *_pictures(block)], notes, lines)
        elif block.kind == "code":
            length = (
                block.text.count("\n") + 1 + (block.printed.count("\n") + 2) * bool(block.printed)
            )
            if length <= CODE_LINES and (block.printed or re.search(r"^def ", block.text, re.M)):
                show(block, "code", [code(block.text), _printed(block.printed)], [], length * 0.72)
            elif block.printed and block.printed.count("\n") < CODE_LINES:
                count = block.printed.count("\n") + 1
                show(block, "code", [_printed(block.printed)], [code(block.text)], count * 0.72)
            else:
                out[-1].notes.append(code(block.text))
        elif block.kind == "card":
            flush()
            out.append(Slide(heading, [prose(block.text)], kind="card", lines=LINES))
            break
    return [slide for slide in out if slide.shown or slide.kind == "title"]


# Minutes that a kind of slide takes beside its words: to guess, to look, to try, to read code.
BESIDE = {"guess": 1.0, "answer": 0.6, "picture": 0.6, "task": 3.0, "code": 0.7, "recall": 1.5}
SPOKEN = 120  # words a minute


def spoken_minutes(slide: Slide) -> float:
    """About how long a slide takes in a room: its words aloud, and what its kind needs beside."""
    shown = "".join(slide.shown)
    prose_only = re.sub(r"<(math|pre|img)\b.*?(</\1>|>)", " ", shown, flags=re.DOTALL)
    words = len(re.sub(r"<[^>]*>", " ", prose_only).split())
    formulas = 0.4 * shown.count('display="block"') + 0.05 * shown.count("<math>")
    return words / SPOKEN + formulas + BESIDE.get(slide.kind, 0.2)


ASK = "<p><em>Everybody commits before the next slide: hands, fingers or paper.</em></p>"


def deck(page: Path) -> str:
    """The slides of a lesson as one HTML page."""
    made = slides(page)
    body = "\n".join(_section(slide, number) for number, slide in enumerate(made, 1))
    said = minutes_said(" ".join("\n".join(b.text for b in blocks(page)).split()))
    # A lecture has the first sitting; all of them where they are short.
    minutes = sum(said) if len(said) > 3 else (said or (30,))[0]
    return PAGE.format(
        title=html.escape(re.sub(r"[`$*]", "", title_of(page))),
        style=STYLE + CODE_STYLE + LOOK,
        body=body,
        script=SCRIPT.replace("MINUTES", str(minutes)),
    )


def _section(slide: Slide, number: int) -> str:
    heading = prose(slide.heading).strip().removeprefix("<p>").removesuffix("</p>")
    tag = "h1" if slide.kind == "title" else "h2"
    top = f"<{tag}>{heading}</{tag}>" if heading else ""
    notes = "".join(slide.notes)
    return (
        f'<section class="slide {slide.kind}" id="s{number}"><div class="fit">{top}'
        f"{''.join(slide.shown)}</div>"
        f'<aside class="notes">{notes}</aside></section>'
    )


def _on_title(slide: Slide, text: str) -> None:
    """What the learner can do afterwards is shown; minutes, papers and recall are notes."""
    (slide.shown if text.startswith("**After this page") else slide.notes).append(prose(text))


def _add_folds(out: list[Slide], text: str) -> None:
    """Recall becomes a slide of questions; any other fold goes to the notes of the last slide."""
    told = folds(text)
    hidden = [prose(f"**{summary}**\n\n{answer}") for summary, answer in told]
    if text.lstrip().startswith("<details>") and out[-1].kind == "title":
        asked = [prose(re.sub(r"^(\d)\. ", r"**\1** · ", summary)) for summary, _ in told]
        out.append(Slide("Recall", asked, hidden, "recall", 2.0 * len(asked)))
    else:
        out[-1].notes += hidden


def _replies(text: str) -> tuple[str, str]:
    """(the answer, the replies to wrong guesses)."""
    at = text.find("- *Had you said")
    return (text, "") if at < 0 else (text[:at].rstrip(), text[at:])


def _pictures(block: Block) -> list[str]:
    shown = [
        f'<img src="data:image/png;base64,{data}" alt="{html.escape(alt)}">'
        for data, alt in block.pictures
    ]
    return [*shown, f'<div class="caption">{prose(block.caption)}</div>'] if shown else []


def _apart(block: Block) -> list[Block]:
    """A block with several pictures as one for each, where every picture has its caption."""
    captions = paragraphs(block.caption)
    if len(captions) != len(block.pictures) or len(captions) < 2:
        return [block]
    told = zip(block.pictures, captions, strict=True)
    return [replace(block, pictures=(picture,), caption=said) for picture, said in told]


def _printed(text: str) -> str:
    return f'<pre class="printed">{html.escape(text)}</pre>' if text else ""


def _lines(text: str) -> float:
    """About how many lines of a slide a markdown text takes."""
    total = 0.0
    for part in re.split(r"(\$\$.*?\$\$)", text, flags=re.DOTALL):
        if part.startswith("$$"):
            total += 1.6 * (1 + part.count("\\\\"))
        else:
            table = part.lstrip().startswith("|")
            for line in re.sub(r"(?<=\S)\n(?=[^\n|*-])", " ", part).split("\n"):
                plain = re.sub(r"\\[a-zA-Z]+|[{}$*`\\]", "", line)
                total += (1.35 if table else 1.0) * -(-len(plain) // COLUMNS)
    return total + 0.4


def _sum(texts: list[str]) -> float:
    return sum(map(_lines, texts))


def _portions(texts: list[str]) -> list[list[str]]:
    """Prose by the slide: never more lines than fit."""
    out: list[list[str]] = []
    for text in texts:
        if out and _sum(out[-1]) + _lines(text) <= LINES:
            out[-1].append(text)
        else:
            out.append([text])
    return out


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{style}</style></head>
<body>
{body}
<div id="bar"><span id="where"></span><span>{title} · S speaker, F full screen</span></div>
<script>{script}</script>
</body></html>
"""
LOOK = """
html, body { margin: 0; height: 100%; background: #fff; color: #1a1a1a;
  font: 26px/1.38 "Source Sans 3", "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif; }
.slide { box-sizing: border-box; width: 100vw; height: 100vh; padding: 4vh 5vw 6vh; display: none;
  overflow: hidden; }
.slide.on { display: block; }
.fit { height: 100%; display: flex; flex-direction: column; gap: 0.5em; min-height: 0; }
.fit > * { flex: none; margin: 0; max-width: 100%; }
.fit > p, .fit > ul, .fit > ol { max-width: 46em; }
.fit > img { flex: 1 1 0; min-height: 240px; object-fit: contain; object-position: left; }
h2 { font-size: 1.25em; border-bottom: 3px solid #0072b2; padding-bottom: 0.15em; }
.title .fit { justify-content: center; } h1 { font-size: 1.9em; line-height: 1.2; }
.guess .fit { background: linear-gradient(#0072b2, #0072b2) left / 6px 100% no-repeat;
  padding-left: 0.8em; } .guess li { margin: 0.35em 0; }
.answer .fit { background: linear-gradient(#009e73, #009e73) left / 6px 100% no-repeat;
  padding-left: 0.8em; }
.caption { font-size: 0.8em; color: #444; } .caption p { margin: 0; }
pre { margin: 0; font-size: 0.74em; line-height: 1.35; }
pre.code { background: #f5f5f5; padding: 0.6em; } pre.printed { border-left: 4px solid #999;
  padding-left: 0.6em; }
.card { font-size: 0.82em; } .card td:first-child { white-space: nowrap; }
table { font-size: 0.86em; } math[display=block] { font-size: 0.9em; } .notes { display: none; }
#bar { position: fixed; bottom: 0; left: 0; right: 0; padding: 0 5vw 4px; font-size: 13px;
  color: #666; display: flex; justify-content: space-between; }
@media print { @page { size: 1366px 768px; margin: 0; }
  .slide { display: block !important; break-after: page; } #bar { display: none; } }
"""
SCRIPT = r"""
const all = [...document.querySelectorAll('.slide')], minutes = MINUTES;
let at = 0, speaker = null, began = null, typed = '';
// A slide that is too full for this screen is drawn smaller, never cut.
function fit(slide) {
  const box = slide.querySelector('.fit');
  box.style.zoom = 1;
  for (let z = 1; z > 0.5; z -= 0.04) {
    box.style.zoom = z;
    if (box.scrollHeight <= box.clientHeight + 1 && box.scrollWidth <= box.clientWidth + 1
        && [...box.children].every(c => c.scrollWidth <= c.clientWidth + 1)) break;
  }
}
function go(to) {
  at = Math.max(0, Math.min(all.length - 1, to));
  all.forEach((s, i) => s.classList.toggle('on', i === at));
  fit(all[at]);
  document.getElementById('where').textContent = (at + 1) + ' / ' + all.length;
  history.replaceState(null, '', '#' + (at + 1));
  tell();
}
function tell() {
  if (!speaker || speaker.closed) return;
  const d = speaker.document, next = all[at + 1];
  d.getElementById('notes').innerHTML = all[at].querySelector('.notes').innerHTML || '<p>–</p>';
  d.getElementById('next').innerHTML = next ? next.querySelector('.fit').innerHTML : '<p>End.</p>';
  d.getElementById('where').textContent = (at + 1) + ' / ' + all.length;
}
function openSpeaker() {
  speaker = window.open('', 'speaker', 'width=900,height=700');
  if (!speaker) return alert('The browser blocked the speaker window: allow it for this file.');
  const look = document.querySelector('style').textContent;
  speaker.document.open();
  speaker.document.write('<title>Speaker</title><style>' + look + `
    html, body { font-size: 18px; } body { padding: 12px; height: auto; }
    #next { border: 1px solid #bbb; padding: 8px; font-size: 12px; max-height: 40vh;
      overflow: hidden; }
    #next img { max-height: 20vh; } #clock { font-size: 30px; }</style>
    <div><span id="where"></span> · <span id="clock">0:00</span> of ${minutes}:00</div>
    <h2>Notes</h2><div id="notes"></div><h2>Next</h2><div id="next"></div>`);
  speaker.document.close();
  speaker.addEventListener('keydown', key);
  began = began || Date.now();
  tell();
}
setInterval(() => {
  if (!speaker || speaker.closed) return;
  const s = Math.floor((Date.now() - began) / 1000);
  const clock = speaker.document.getElementById('clock');
  clock.textContent = Math.floor(s / 60) + ':' + String(s % 60).padStart(2, '0');
  clock.style.color = s > 60 * minutes ? '#d55e00' : '';
}, 500);
function key(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (/^\d$/.test(e.key)) { typed += e.key; return; }  // 1 4 Enter: slide 14
  const number = typed;
  typed = '';
  if (e.key === 'Enter' && number) go(+number - 1);
  else if (['ArrowRight', 'ArrowDown', 'PageDown', ' '].includes(e.key)) go(at + 1);
  else if (['ArrowLeft', 'ArrowUp', 'PageUp'].includes(e.key)) go(at - 1);
  else if (e.key === 'Home') go(0);
  else if (e.key === 'End') go(all.length - 1);
  else if (e.key === 's' || e.key === 'S') openSpeaker();
  else if (e.key === 'f' || e.key === 'F') document.documentElement.requestFullscreen();
  else return;
  e.preventDefault();
}
document.addEventListener('keydown', key);
window.addEventListener('resize', () => fit(all[at]));
window.addEventListener('hashchange', () => go(+location.hash.slice(1) - 1));
go((+location.hash.slice(1) || 1) - 1);
"""
