"""The letters of the pictures: a part of DejaVu, inside a style sheet, the same on every machine.

A page opened from a folder may not load a font file beside it in every browser; one written into
the style sheet it may.
"""

from __future__ import annotations

import base64
import io
from functools import cache
from pathlib import Path

import matplotlib

__all__ = ["FACES", "font_faces", "font_licence"]

# (family, weight, style) -> file
FACES = {
    ("DejaVu Sans", "normal", "normal"): "DejaVuSans.ttf",
    ("DejaVu Sans", "bold", "normal"): "DejaVuSans-Bold.ttf",
    ("DejaVu Sans", "normal", "italic"): "DejaVuSans-Oblique.ttf",
    ("DejaVu Sans Mono", "normal", "normal"): "DejaVuSansMono.ttf",
}
# Basic Latin, Latin-1, Greek, punctuation, super- and subscripts, letterlike, arrows, operators,
# technical and geometric signs, marks
RANGES = (
    (0x20, 0x7F), (0xA0, 0x100), (0x2C6, 0x2DE), (0x300, 0x310), (0x370, 0x400), (0x2010, 0x2044),
    (0x2070, 0x209F), (0x2100, 0x2150), (0x2150, 0x2190), (0x2190, 0x2200), (0x2200, 0x2300),
    (0x2308, 0x230C), (0x25A0, 0x2600), (0x2713, 0x2718), (0x27E8, 0x27EC),
)  # fmt: skip


def _folder() -> Path:
    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"


@cache
def font_faces() -> str:
    """The @font-face rules, each with its font inside."""
    return "".join(
        f"@font-face {{ font-family: '{family}'; font-weight: {weight}; font-style: {style}; "
        f"src: url(data:font/woff;base64,{_woff(file)}) format('woff'); }}\n"
        for (family, weight, style), file in FACES.items()
    )


def font_licence() -> str:
    """DejaVu's licence, which goes where the font goes."""
    return (_folder() / "LICENSE_DEJAVU").read_text(encoding="utf-8")


def _woff(file: str) -> str:
    from fontTools import subset

    options = subset.Options(flavor="woff", layout_features=[], hinting=False, notdef_outline=True)
    options.drop_tables += ["FFTM"]  # a time stamp
    font = subset.load_font(str(_folder() / file), options)
    some = subset.Subsetter(options)
    some.populate(unicodes=[code for low, high in RANGES for code in range(low, high)])
    some.subset(font)
    out = io.BytesIO()
    subset.save_font(font, out, options)
    return base64.b64encode(out.getvalue()).decode()
