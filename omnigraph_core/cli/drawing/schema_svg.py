"""A schema as a picture: boxes and arrows come in, SVG goes out.

Types stand in columns and edges lead from left to right; one that cannot has its head on the left.
Every edge leaves its box in a line of its own, on which its name is written, so names never meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.cli.drawing import svg
from omnigraph_core.cli.drawing.layers import Bend, Layers, layered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.cli.drawing.layers import Item
    from omnigraph_core.cli.drawing.schema_model import Arrow, Box, Drawing, Line

_EDGE: Final = 24.0
_ROW: Final = 18.0
_PAD: Final = 10.0
_BETWEEN: Final = 28.0
"""From a box to the one below it."""
_TURN: Final = 70.0
"""Width in which lines change their height, and arrow heads stand."""
_LONGEST: Final = 36
"""Letters of a type that are shown."""
_INK: Final = "#57606a"
_MARKERS: Final = (
    '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
    'markerHeight="8" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" '
    f'fill="{_INK}"/></marker><marker id="hollow" viewBox="0 0 10 10" refX="9" refY="5" '
    'markerWidth="10" markerHeight="10" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" '
    f'fill="#ffffff" stroke="{_INK}"/></marker></defs>'
)


def schema_svg(drawing: Drawing, *, title: str) -> str:
    boxes = {box.name: box for box in drawing.boxes}
    layers = layered(tuple(boxes), [(arrow.source, arrow.target) for arrow in drawing.arrows])
    sheet = _place(boxes, drawing.arrows, layers)
    parts = [_MARKERS]
    for place, arrow in enumerate(drawing.arrows):
        parts += _arrow(place, arrow, layers, sheet)
    for name, box in boxes.items():
        parts += _box(box, sheet.frames[name])
    return svg.document(sheet.width, sheet.height, parts, title=title)


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a box or a bend is."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything in its place; links leave and enter boxes at heights of their own."""

    width: float
    height: float
    frames: Mapping[Item, Frame]
    turns: Mapping[Item, float]
    """Right of all names in an item's column: there its links may change their height."""
    leaving: Mapping[int, float]
    entering: Mapping[int, float]


def _place(boxes: Mapping[str, Box], arrows: Sequence[Arrow], layers: Layers) -> Sheet:
    gaps = _gaps(boxes, arrows, layers)
    ports = _port_counts(arrows, layers)
    frames: dict[Item, Frame] = {}
    turns: dict[Item, float] = {}
    x, lowest = _EDGE, 0.0
    stacks = [_stack(column, boxes, ports) for column in layers.columns]
    tallest = max(
        (sum(heights) + _BETWEEN * (len(heights) - 1) for _, heights in stacks), default=0
    )
    for (width, heights), column, gap in zip(stacks, layers.columns, gaps, strict=True):
        taken = sum(heights) + _BETWEEN * (len(heights) - 1)
        y = _EDGE + (tallest - taken) / 2
        for item, height in zip(column, heights, strict=True):
            own = width if isinstance(item, Bend) else _box_width(boxes[item])
            frames[item] = Frame(x, y, own, height)
            turns[item] = x + width + max(gap - _TURN, 0)
            y += height + _BETWEEN
        lowest = max(lowest, y - _BETWEEN)
        x += width + gap
    leaving, entering = _ports(arrows, layers, frames)
    return Sheet(x + _EDGE, lowest + _EDGE, frames, turns, leaving, entering)


def _stack(
    column: Sequence[Item], boxes: Mapping[str, Box], ports: Mapping[str, int]
) -> tuple[float, list[float]]:
    """How wide a column is, and how high each of its items."""
    widths = [_box_width(boxes[item]) for item in column if isinstance(item, str)]
    heights = [
        _ROW if isinstance(item, Bend) else max(_box_height(boxes[item]), _ROW * (ports[item] + 1))
        for item in column
    ]
    return max(widths, default=0.0), heights


def _gaps(boxes: Mapping[str, Box], arrows: Sequence[Arrow], layers: Layers) -> list[float]:
    """Room at the right of each column: for the names written there, and for lines to turn."""
    column_of = {item: number for number, items in enumerate(layers.columns) for item in items}
    gaps = [0.0] * len(layers.columns)
    for place, arrow in enumerate(arrows):
        way = layers.ways.get(place)
        column = column_of[arrow.source if way is None else way[0]]
        gaps[column] = max(gaps[column], svg.text_width(_label(arrow)) + 2 * _PAD + _TURN)
    for column, items in enumerate(layers.columns[:-1]):
        gaps[column] = max(gaps[column], _TURN if items else 0.0)
    return gaps


def _port_counts(arrows: Sequence[Arrow], layers: Layers) -> dict[str, int]:
    """Lines a box needs on its fuller side; an edge to the type it leaves needs two."""
    left = dict.fromkeys((item for column in layers.columns for item in column), 0)
    right = dict(left)
    for place, arrow in enumerate(arrows):
        way = layers.ways.get(place)
        if way is None:
            right[arrow.source] += 2
        else:
            right[way[0]] += 1
            left[way[-1]] += 1
    return {item: max(left[item], right[item]) for item in left if isinstance(item, str)}


def _ports(
    arrows: Sequence[Arrow], layers: Layers, frames: Mapping[Item, Frame]
) -> tuple[dict[int, float], dict[int, float]]:
    """Links leave and enter a box in the order of what they lead to, so that they do not cross."""
    out: dict[Item, list[tuple[float, int, int]]] = {}
    into: dict[Item, list[tuple[float, int, int]]] = {}
    for place, arrow in enumerate(arrows):
        way = layers.ways.get(place)
        if way is None:  # both ends at the bottom of the right side
            out.setdefault(arrow.source, []).extend([(float("inf"), place, 0)])
            out[arrow.source].append((float("inf"), place, 1))
        else:
            out.setdefault(way[0], []).append((frames[way[1]].middle, place, 0))
            into.setdefault(way[-1], []).append((frames[way[-2]].middle, place, 1))
    leaving: dict[int, float] = {}
    entering: dict[int, float] = {}
    for side in (out, into):
        for item, ends in side.items():
            frame = frames[item]
            step = frame.height / (len(ends) + 1)
            for number, (_, place, end) in enumerate(sorted(ends), start=1):
                (entering if end else leaving)[place] = frame.y + number * step
    return leaving, entering


def _arrow(place: int, arrow: Arrow, layers: Layers, sheet: Sheet) -> list[str]:
    way = layers.ways.get(place, (arrow.source,))
    start, end = sheet.leaving[place], sheet.entering[place]
    x, turn = sheet.frames[way[0]].right, sheet.turns[way[0]]
    steps = svg.move(x, start) + svg.straight(turn, start)
    if len(way) == 1:
        far = turn + _TURN / 2
        steps += svg.curve((far, start, far, end, turn, end)) + svg.straight(x, end)
    else:
        steps += _onward((turn, start), way[1:-1], sheet)
        last = sheet.frames[way[-1]]
        height = start if len(way) == 2 else sheet.frames[way[-2]].middle
        steps += _bow((sheet.turns[way[-2]], height), (last.x, end))
    head = "url(#hollow)" if arrow.cardinality is None else "url(#head)"
    ends = {"marker_start" if place in layers.turned else "marker_end": head}
    dash = {"stroke_dasharray": "5 4"} if arrow.cardinality is None else {}
    name = svg.text(x + _PAD, start - 4, _label(arrow), kind="soft")
    return [svg.path(steps, stroke=_INK, stroke_width="1.3", **dash, **ends), name]


def _label(arrow: Arrow) -> str:
    if arrow.cardinality is None:
        return ""
    low, high = arrow.cardinality.minimum, arrow.cardinality.maximum
    bounds = "" if (low, high) == (0, None) else f" {low}..{'' if high is None else high}"
    names = _short(", ".join(line.name for line in arrow.lines))
    return f"{arrow.name}{bounds}{f' ({names})' if names else ''}"


def _short(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _onward(start: tuple[float, float], bends: Sequence[Item], sheet: Sheet) -> str:
    """Past columns in between, where there is room for it."""
    steps, point = "", start
    for bend in bends:
        frame = sheet.frames[bend]
        point, before = (sheet.turns[bend], frame.middle), point
        steps += _bow(before, (frame.x, frame.middle)) + svg.straight(*point)
    return steps


def _bow(start: tuple[float, float], end: tuple[float, float]) -> str:
    half = (start[0] + end[0]) / 2
    return svg.curve((half, start[1], half, end[1], *end))


def _box(box: Box, frame: Frame) -> Iterator[str]:
    dash = {"stroke_dasharray": "5 4"} if box.is_interface else {}
    yield svg.rect(
        frame.x, frame.y, frame.width, frame.height, rx="6", fill="#f6f8fa", stroke=_INK, **dash
    )
    x, baseline = frame.x + _PAD, frame.y + _ROW
    yield svg.text(x, baseline, _title(box), kind="strong")
    if box.lines:
        rule = frame.y + 1.5 * _ROW
        yield svg.line(frame.x, rule, frame.right, rule, stroke=_INK, stroke_width="0.7")
    for number, line in enumerate(box.lines):
        y = baseline + (number + 1.25) * _ROW
        kind = {"kind": "strong"} if line.is_key else {}
        yield svg.text(x, y, _words(line), **kind)


def _title(box: Box) -> str:
    return f"«interface» {box.name}" if box.is_interface else box.name


def _words(line: Line) -> str:
    mark = " key" if line.is_key else " unique" if line.is_unique else ""
    return f"{line.name}: {_short(str(line.type))}{mark}"


def _box_width(box: Box) -> float:
    texts = (_title(box), *map(_words, box.lines))
    return max(map(svg.text_width, texts)) + 2 * _PAD


def _box_height(box: Box) -> float:
    rows = len(box.lines)
    return _ROW * (1.75 + (rows + 0.5 if rows else 0))
