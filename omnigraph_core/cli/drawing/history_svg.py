"""Commits as a picture: places come in, SVG goes out, the newest at the top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.cli.drawing import svg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from omnigraph_core.cli.drawing.lanes import Place

_ROW: Final = 26.0
_LANE: Final = 18.0
_EDGE: Final = 20.0
_RADIUS: Final = 4.5
_COLOURS: Final = (
    "#0969da",
    "#1a7f37",
    "#8250df",
    "#bc4c00",
    "#bf3989",
    "#1b7c83",
    "#9a6700",
    "#cf222e",
)


def history_svg(
    places: Sequence[Place], described: Callable[[Place], tuple[str, str]], *, title: str
) -> str:
    """
    Args:
        described: what is written beside a commit, first in bold, then in grey.
    """
    lanes = 1 + max((lane for place in places for lane in _lanes(place)), default=0)
    left = 2 * _EDGE + lanes * _LANE
    labels = [described(place) for place in places]
    widest = max((svg.text_width(f"{bold} {soft}") for bold, soft in labels), default=0)
    height = 2 * _EDGE + max(len(places), 1) * _ROW
    parts = [*_lines(places, height), *_dots(places)]
    for row, (bold, soft) in enumerate(labels):
        baseline = _y(row) + svg.SIZE / 3
        parts.append(svg.text(left, baseline, bold, kind="strong"))
        parts.append(svg.text(left + svg.text_width(f"{bold} "), baseline, soft, kind="soft"))
    return svg.document(left + widest + _EDGE, height, parts, title=title)


def _lanes(place: Place) -> tuple[int, ...]:
    return (place.lane, *place.above, *place.below)


def _lines(places: Sequence[Place], bottom: float) -> Iterator[str]:
    """From each commit to its parents; to the bottom if they are not shown."""
    rows = {place.commit.graph_commit_id: row for row, place in enumerate(places)}
    for row, place in enumerate(places):
        commit = place.commit
        ways = [(commit.parent_commit_id, place.lane)]
        if place.leaving is not None:
            ways.append((commit.merged_parent_commit_id, place.leaving))
        for parent, lane in ways:
            if parent is None:
                continue
            end = rows.get(parent)
            goal = None if end is None else (places[end].lane, end)
            yield _line((place.lane, row), lane, goal, bottom)


def _line(start: tuple[int, int], lane: int, goal: tuple[int, int] | None, bottom: float) -> str:
    """Out of a commit into a lane, down it, and out of it into the parent."""
    (own, row), x = start, _x(lane)
    steps = svg.move(_x(own), _y(row))
    below = row
    if lane != own:
        below = row + 1
        steps += _bend((_x(own), _y(row)), (x, _y(below)))
    if goal is None:
        steps += svg.straight(x, bottom)
    else:
        into, end = goal
        turn = end - 1 if into != lane else end
        if turn > below:
            steps += svg.straight(x, _y(turn))
        if into != lane:
            steps += _bend((x, _y(max(turn, below))), (_x(into), _y(end)))
    return svg.path(steps, stroke=_COLOURS[lane % len(_COLOURS)], stroke_width="2")


def _bend(start: tuple[float, float], end: tuple[float, float]) -> str:
    middle = (start[1] + end[1]) / 2
    return svg.curve((start[0], middle, end[0], middle, *end))


def _dots(places: Sequence[Place]) -> Iterator[str]:
    for row, place in enumerate(places):
        colour = _COLOURS[place.lane % len(_COLOURS)]
        yield svg.circle(
            _x(place.lane), _y(row), _RADIUS, fill="#ffffff", stroke=colour, stroke_width="2.5"
        )


def _x(lane: int) -> float:
    return _EDGE + lane * _LANE


def _y(row: int) -> float:
    return _EDGE + (row + 0.5) * _ROW
