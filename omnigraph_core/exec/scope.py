"""What a step of a running match knows of its surroundings.

Steps are chained: each is a function that takes rows, makes rows of them and hands those on, in
portions. A False coming back means that nobody wants more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.exec.frame import Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.plan.steps import Steps

Sink: TypeAlias = Callable[[Frame], bool]
Chain: TypeAlias = "Callable[[Steps, Scope, Sink], Sink]"
"""Makes one taker of rows out of steps and whoever takes what they make."""

PORTION_ROWS: Final = 2**18
"""Rows made at once: few enough for the processor's caches, many enough to forget the overhead."""
_FIRST_ROWS: Final = 2**10
_GROWTH: Final = 8


class Pace:
    """How many rows to make at once: few at first where a few may be enough."""

    __slots__ = ("rows",)

    def __init__(self, enough: int | None = None) -> None:
        self.rows = PORTION_ROWS
        if enough is not None:
            self.rows = min(max(2 * enough, _FIRST_ROWS), PORTION_ROWS)

    def limits(self) -> Iterator[int]:
        """Rows per portion, more with each one that was not enough, without end."""
        while True:
            yield self.rows
            self.rows = min(self.rows * _GROWTH, PORTION_ROWS)


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds where a step stands."""

    pace: Pace
    carried: frozenset[str] = frozenset()
    """Hidden variables that every row keeps: the place of its outer row."""
    nullable: frozenset[str] = frozenset()
    """Variables that may be null here."""
    is_merging: bool = False
    """Equal rows may be added up as weights, and more expands follow that gain from it."""

    def kept(self, needed: frozenset[str]) -> frozenset[str]:
        """The variables that rows keep when a step needs these afterwards."""
        return needed | self.carried if self.carried else needed
