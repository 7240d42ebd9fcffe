"""TeX as the lessons write it, into MathML, which browsers draw themselves.

Only what the course uses: a command that is not in the tables raises, so that a formula is never
half shown. tests/classroom/test_mathml.py converts every formula of every page.
"""

from __future__ import annotations

import html
import re

__all__ = ["UnknownTeX", "mathml"]

GREEK = {
    name: chr(code)
    for names, first in (
        ("alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi", 0x3B1),
        ("pi rho", 0x3C0),
        ("sigma tau upsilon varphi chi psi omega", 0x3C3),
    )
    for code, name in enumerate(names.split(), first)
} | {"epsilon": "ϵ", "phi": "ϕ", "ell": "ℓ", "partial": "∂", "nabla": "∇", "infty": "∞"}
CAPITALS = dict(Gamma="Γ", Delta="Δ", Theta="Θ", Lambda="Λ", Sigma="Σ", Phi="Φ", Psi="Ψ", Omega="Ω")
OPERATORS = dict(
    cdot="⋅", times="×", pm="±", mp="∓", le="≤", leq="≤", ge="≥", geq="≥", ne="≠", neq="≠",
    approx="≈", equiv="≡", sim="∼", propto="∝", to="→", rightarrow="→", leftarrow="←", mapsto="↦",
    Rightarrow="⇒", iff="⟺", Longleftrightarrow="⟺", Longrightarrow="⟹",
    gg="≫", ll="≪", lt="<", gt=">", mid="|", dots="…", ldots="…",
    cdots="⋯", star="⋆", top="⊤", cap="∩", cup="∪", setminus="∖", circ="∘", colon=":", forall="∀",
    exists="∃", prime="′",
) | {"in": "∈", "notin": "∉"}  # fmt: skip
FENCES = dict(
    lVert="‖", rVert="‖", Vert="‖", lvert="|", rvert="|", vert="|", langle="⟨", rangle="⟩",
    lbrace="{", rbrace="}", lfloor="⌊", rfloor="⌋", lceil="⌈", rceil="⌉",
) | {"{": "{", "}": "}", "|": "‖"}  # fmt: skip
LARGE = dict(sum="∑", prod="∏", int="∫")
WORDS = (
    "log ln exp min max sup inf lim Pr arg det tanh cosh sinh sin cos arcsin arccos sgn KL".split()
)
UNDER = {"min", "max", "sup", "inf", "lim", "sum", "prod"}  # their limits stand above and below
SPACES = {",": 0.17, ":": 0.22, ";": 0.28, "!": -0.17, " ": 0.28, "quad": 1.0, "qquad": 2.0}
HEIGHTS = {"big": 1.2, "Big": 1.8, "bigg": 2.4, "Bigg": 3.0}  # em
SIZES = {f"{size}{side}": height for size, height in HEIGHTS.items() for side in ("", *"lrm")}
DOUBLED = dict(E="𝔼", R="ℝ", P="ℙ", V="𝕍") | {"1": "𝟙"}
ACCENTS = dict(bar="‾", overline="‾", hat="^", tilde="~")
TEXTS = {"text", "textbf", "textit", "mathrm", "mathbf", "operatorname", "textrm", "mathit"}
END_OF_CELL = ("&", "\\\\", "\\end")
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}^_&~']|\d+(?:[.,]\d+)*|\s+|.", re.DOTALL)


class UnknownTeX(ValueError):
    """A formula uses a command that the tables do not have, or its braces do not close."""


def mathml(tex: str, *, display: bool = False) -> str:
    r"""One formula, without its dollars, as a <math> element; `display` for one on a line.

    Raises UnknownTeX for a command that is not known.

    >>> mathml(r"\rho_t \le 2")
    '<math><msub><mi>ρ</mi><mi>t</mi></msub><mo>≤</mo><mn>2</mn></math>'
    """
    reader = _Reader(tex)
    body = reader.row(stop=())
    reader.finish()
    return f'<math display="block">{body}</math>' if display else f"<math>{body}</math>"


class _Reader:
    """A formula read from left to right, once."""

    def __init__(self, tex: str) -> None:
        self.tex = tex
        self.tokens = TOKEN.findall(tex)
        self.at = 0

    def peek(self) -> str:
        self.skip()
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def skip(self) -> None:
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise UnknownTeX(
                f"formula {self.tex!r}: {expected or 'more'} was expected, {token or 'the end'!r} "
                "came"
            )
        self.at += 1
        return token

    def finish(self) -> None:
        if token := self.peek():
            raise UnknownTeX(f"formula {self.tex!r}: {token!r} stands where nothing opens it")

    def row(self, stop: tuple[str, ...]) -> str:
        """Everything up to a token of `stop`, which is left standing."""
        parts: list[str] = []
        while (token := self.peek()) and token not in stop and token != "}":
            parts.append(self.scripted())
        return "".join(parts)

    def group(self) -> str:
        """An argument: a group in braces, or one token."""
        token = self.peek()
        if token[:1].isdigit() and len(token) > 1:  # \frac12 is a half
            self.tokens[self.at : self.at + 1] = [token[0], token[1:]]
        if token != "{":
            return self.atom()
        self.take("{")
        body = self.row(stop=())
        self.take("}")
        return _mrow(body)

    def words(self) -> str:
        """The letters of \\text{...}, blanks included; of one token without braces."""
        if self.peek() != "{":
            return self.take()
        self.take("{")
        depth, letters = 1, []
        while depth:
            if self.at >= len(self.tokens):
                raise UnknownTeX(f"formula {self.tex!r}: a brace is not closed")
            token = self.tokens[self.at]
            self.at += 1
            depth += (token == "{") - (token == "}")
            if depth:
                letters.append({"\\,": " ", "~": " ", "$": ""}.get(token, token))
        text = re.sub(r"\\([%&_#{}])", r"\1", "".join(letters))
        text = re.sub(r"\\([a-zA-Z]+)\s?", lambda m: _symbol_text(m[1], self.tex), text)
        return re.sub(r"[{}]|_(?=\{)", "", text)

    def scripted(self) -> str:
        """An atom with what stands above and below it."""
        name = self.peek().lstrip("\\")
        base = self.atom()
        lower = upper = ""
        while self.peek() in ("_", "^", "'"):
            sign = self.take()
            if sign == "_":
                lower = self.group()
            elif sign == "^":
                upper = self.group()
            else:
                upper += "<mo>′</mo>"
        if upper.count("<mo>′</mo>") and not upper.startswith("<mrow"):
            upper = _mrow(upper)
        over = name in UNDER or name == "underbrace"
        if lower and upper:
            tag = "munderover" if over else "msubsup"
            return f"<{tag}>{base}{lower}{upper}</{tag}>"
        if lower:
            return f"<{'munder' if over else 'msub'}>{base}{lower}</{'munder' if over else 'msub'}>"
        if upper:
            return f"<{'mover' if over else 'msup'}>{base}{upper}</{'mover' if over else 'msup'}>"
        return base

    def atom(self) -> str:
        token = self.take()
        if token == "{":
            body = self.row(stop=())
            self.take("}")
            return _mrow(body)
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token == "~":
            return _space(0.28)
        if token.isalpha():
            return f"<mi>{token}</mi>"
        if token in "&^_":
            raise UnknownTeX(f"formula {self.tex!r}: {token!r} stands where nothing opens it")
        sign = {"-": "−", "*": "∗"}.get(token, token)
        return f"<mo{_unstretched(sign)}>{html.escape(sign)}</mo>"

    def command(self, name: str) -> str:
        if name in GREEK:
            return f"<mi>{GREEK[name]}</mi>"
        if name in CAPITALS:
            return f'<mi mathvariant="normal">{CAPITALS[name]}</mi>'
        if name in OPERATORS:
            return f"<mo>{html.escape(OPERATORS[name])}</mo>"
        if name in FENCES:
            return f'<mo stretchy="false">{FENCES[name]}</mo>'
        if name in LARGE:
            return f"<mo>{LARGE[name]}</mo>"
        if name in WORDS:
            return f"<mi>{name}</mi>" + ("" if self.peek() in ("(", "_", "^") else _space(0.17))
        if name in SPACES:
            return _space(SPACES[name])
        if name in "%&_#$" and len(name) == 1:
            return f"<mo>{html.escape(name)}</mo>"
        if name in TEXTS:
            kind = "mi" if name.startswith(("math", "operator")) else "mtext"
            bold = ' style="font-weight:bold"' if name.endswith("bf") else ""
            normal = ' mathvariant="normal"' if kind == "mi" else ""
            text = self.words().replace(" ", "\u00a0")
            return f"<{kind}{normal}{bold}>{html.escape(text)}</{kind}>"
        if name == "mathbb":
            letter = self.words() if self.peek() == "{" else self.take()
            if letter not in DOUBLED:
                raise UnknownTeX(f"formula {self.tex!r}: no \\mathbb letter {letter!r}; add it")
            return f"<mi>{DOUBLED[letter]}</mi>"
        if name in ("frac", "tfrac", "dfrac"):
            fraction = f"<mfrac>{self.group()}{self.group()}</mfrac>"
            style = {"tfrac": "false", "dfrac": "true"}.get(name)
            return f'<mstyle displaystyle="{style}">{fraction}</mstyle>' if style else fraction
        if name == "binom":
            inner = f'<mfrac linethickness="0">{self.group()}{self.group()}</mfrac>'
            return f"<mrow><mo>(</mo>{inner}<mo>)</mo></mrow>"
        if name == "sqrt":
            return f"<msqrt>{self.group()}</msqrt>"
        if name in ACCENTS:
            body = self.group()
            if name in ("bar", "overline"):  # a drawn line: not every font has the sign
                return f'<mrow style="border-top:0.07em solid;padding-top:0.07em">{body}</mrow>'
            return f'<mover accent="true">{body}<mo stretchy="false">{ACCENTS[name]}</mo></mover>'
        if name == "underbrace":
            return f'<munder>{self.group()}<mo stretchy="true">⏟</mo></munder>'
        if name in SIZES:
            return self.sized(SIZES[name])
        if name in ("textstyle", "displaystyle"):
            flag = "true" if name == "displaystyle" else "false"
            return f'<mstyle displaystyle="{flag}">{self.row(stop=END_OF_CELL)}</mstyle>'
        if name in ("left", "right"):
            sign = self.take().lstrip("\\")
            return "" if sign == "." else f"<mo>{html.escape(FENCES.get(sign, sign))}</mo>"
        if name == "begin":
            return self.table(self.words())
        raise UnknownTeX(f"formula {self.tex!r}: \\{name} is not known; add it to mathml.py")

    def sized(self, height: float) -> str:
        token = self.take()
        sign = FENCES.get(token.lstrip("\\"), token)
        if sign == "\\Vert":
            sign = "‖"
        attributes = f'stretchy="true" minsize="{height}em" maxsize="{height}em"'
        return f"<mo {attributes}>{html.escape(sign)}</mo>"

    def table(self, kind: str) -> str:
        """aligned, cases or a matrix: rows by \\\\, cells by &."""
        rows: list[list[str]] = [[""]]
        while True:
            rows[-1][-1] += self.row(stop=END_OF_CELL)
            token = self.take()
            if token == "&":
                rows[-1].append("")
            elif token == "\\\\":
                rows.append([""])
            elif token == "\\end":
                self.words()
                break
            else:
                raise UnknownTeX(f"formula {self.tex!r}: {kind} does not end")
        rows = [row for row in rows if any(row)]
        body = "".join(
            "<mtr>" + "".join(f"<mtd>{_mrow(cell)}</mtd>" for cell in row) + "</mtr>"
            for row in rows
        )
        table = f'<mtable class="{kind.rstrip("*")}" displaystyle="true">{body}</mtable>'
        return f"<mrow><mo>{{</mo>{table}</mrow>" if kind == "cases" else table


def _mrow(body: str) -> str:
    return f"<mrow>{body}</mrow>"


def _space(width: float) -> str:
    return f'<mspace width="{width}em"></mspace>'


def _unstretched(sign: str) -> str:
    """Brackets grow only where the author said \\left, \\Big."""
    return ' stretchy="false"' if sign in "()[]|/" else ""


def _symbol_text(name: str, tex: str) -> str:
    """A letter inside \\text."""
    for table in (GREEK, CAPITALS, OPERATORS):
        if name in table:
            return table[name]
    raise UnknownTeX(f"formula {tex!r}: \\{name} inside \\text is not known; add it to mathml.py")
