"""Lanes of commits as characters: places come in, rows of cells go out, for any terminal.

A cell knows its lane, so that whoever prints it can give each lane a colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from omnigraph_core.cli.drawing.lanes import Place

Cell = tuple[str, int]
"""A character, and the lane it belongs to."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the picture; with the commit it shows, if it shows one."""

    cells: tuple[Cell, ...]
    place: Place | None = None

    @property
    def text(self) -> str:
        return "".join(character for character, _ in self.cells)


@dataclass(frozen=True, slots=True)
class Strokes:
    """The characters of a picture. Pairs are for lanes to the right and to the left."""

    commit: str
    lane: str
    more: str
    across: str
    at: tuple[str, str]
    ends: tuple[str, str]
    begins: tuple[str, str]
    meets: tuple[str, str]
    slopes: tuple[str, str] | None = None
    """For connections that have no corners: those that begin; ended ones have the other one."""


BOXES: Final = Strokes(
    commit="●",
    lane="│",
    more="┊",
    across="─",
    at=("├", "┤"),
    ends=("╯", "╰"),
    begins=("╮", "╭"),
    meets=("┤", "├"),
)
PLAIN: Final = Strokes(
    commit="*",
    lane="|",
    more=":",
    across="-",
    at=("|", "|"),
    ends=(" ", " "),
    begins=(" ", " "),
    meets=("|", "|"),
    slopes=("\\", "/"),
)


def history_rows(places: Sequence[Place], strokes: Strokes) -> Iterator[Row]:
    """The rows of a picture from top to bottom; lanes that go on below are told by a last one."""
    for place in places:
        alive = set(place.above)
        for lane in place.joining:
            yield _connection(alive, place.lane, lane, strokes, strokes.ends, is_ending=True)
            alive.discard(lane)
        yield Row(_upright(alive | {place.lane}, strokes, place.lane), place)
        if place.leaving is not None:
            corners = strokes.begins if place.is_leaving_begun else strokes.meets
            below = set(place.below)
            yield _connection(below, place.lane, place.leaving, strokes, corners, is_ending=False)
    if places and places[-1].below:
        yield Row(_upright(set(places[-1].below), strokes, None, strokes.more))


def _upright(
    alive: Iterable[int], strokes: Strokes, commit: int | None, stroke: str | None = None
) -> tuple[Cell, ...]:
    lanes = set(alive)
    cells: list[Cell] = []
    for lane in range(max(lanes) + 1):
        mark = strokes.commit if lane == commit else stroke or strokes.lane
        cells += [(mark if lane in lanes else " ", lane), (" ", lane)]
    return tuple(cells)


def _connection(
    alive: set[int],
    at: int,
    to: int,
    strokes: Strokes,
    corners: tuple[str, str],
    *,
    is_ending: bool,
) -> Row:
    """A line from a commit's lane to another one, across those between them."""
    is_left = to < at
    low, high = sorted((at, to))
    cells: list[Cell] = []
    for lane in range(max(alive | {at, to}) + 1):
        if lane in (at, to):
            mark = (strokes.at if lane == at else corners)[is_left]
        elif lane in alive:
            mark = strokes.lane
        else:
            mark = strokes.across if low < lane < high else " "
        gap = strokes.across if low <= lane < high else " "
        if strokes.slopes is not None and lane == (to if is_left else to - 1):
            gap = strokes.slopes[is_left != is_ending]
        cells += [(mark, to if low < lane < high or lane == to else lane), (gap, to)]
    return Row(tuple(cells))
