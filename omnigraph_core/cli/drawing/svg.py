"""SVG by its elements: texts and numbers come in, well-formed markup goes out.

All text is escaped, and what XML cannot hold is replaced. Letters have one width, so that the size
of a text is known without a font.
"""

from __future__ import annotations

import re
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from omnigraph_core.cli.formats import display_width

LETTER: Final = 7.3
"""Width of a letter of the size below."""
SIZE: Final = 12
_UNFIT: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE: Final = (
    f"text{{font:{SIZE}px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}}"
    ".soft{fill:#656d76}.strong{font-weight:bold}"
)


def document(width: float, height: float, parts: list[str], *, title: str) -> str:
    """A whole picture on white ground."""
    size = f'width="{_number(width)}" height="{_number(height)}"'
    box = f'viewBox="0 0 {_number(width)} {_number(height)}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img">'
    head = [f"<title>{clean(title)}</title>", f"<style>{_STYLE}</style>"]
    ground = rect(0, 0, width, height, fill="#ffffff")
    return "\n".join([opening, *head, ground, *parts, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, **attributes: str) -> str:
    """
    >>> text(1, 2.25, "a < b", kind="soft")
    '<text x="1" y="2.25" class="soft">a &lt; b</text>'
    """
    return f"<text{_attributes(x=x, y=y, **attributes)}>{clean(words)}</text>"


def rect(x: float, y: float, width: float, height: float, **attributes: str) -> str:
    return f"<rect{_attributes(x=x, y=y, width=width, height=height, **attributes)}/>"


def circle(x: float, y: float, radius: float, **attributes: str) -> str:
    return f"<circle{_attributes(cx=x, cy=y, r=radius, **attributes)}/>"


def line(x1: float, y1: float, x2: float, y2: float, **attributes: str) -> str:
    return f"<line{_attributes(x1=x1, y1=y1, x2=x2, y2=y2, **attributes)}/>"


def path(steps: str, **attributes: str) -> str:
    """A line that is not filled; steps as `move`, `curve` and `across` write them."""
    return f"<path{_attributes(d=steps, fill='none', **attributes)}/>"


def move(x: float, y: float) -> str:
    return f"M{_number(x)} {_number(y)}"


def straight(x: float, y: float) -> str:
    return f"L{_number(x)} {_number(y)}"


def curve(points: tuple[float, float, float, float, float, float]) -> str:
    """To the last of three points, bent by the others."""
    return "C" + " ".join(map(_number, points))


def text_width(words: str) -> float:
    return display_width(words) * LETTER


def clean(words: str) -> str:
    """As text of an element.

    >>> clean("a&b" + chr(7))
    'a&amp;b\\ufffd'
    """
    return escape(_UNFIT.sub("\ufffd", words))


def _attributes(**given: float | str) -> str:
    """`kind` is the class: that word is taken in Python; others have `-` for `_`."""
    pairs = []
    for name, value in given.items():
        shown = value if isinstance(value, str) else _number(value)
        named = "class" if name == "kind" else name.replace("_", "-")
        pairs.append(f" {named}={quoteattr(_UNFIT.sub(chr(0xFFFD), shown))}")
    return "".join(pairs)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
