"""Where checks of rows report: wrong rows come in; marks for all, violations for the first go out.

Only rows that will be listed are described one by one, so a check of millions of wrong rows stays
as fast as one of right ones.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.values import to_json
from omnigraph_core.violations import Rule, Violation
from omnigraph_core.write.batches import FRESH, LINE, SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import Places

_SHOWN_LETTERS: Final = 80
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Findings:
    """What is found wrong with rows of one type that have working columns."""

    __slots__ = ("_bad", "_places", "_rows", "_type_name", "_violations")

    def __init__(
        self, type_name: str, rows: pa.Table, places: Places, violations: Violations
    ) -> None:
        self._type_name = type_name
        self._rows = rows
        self._places = places
        self._violations = violations
        self._bad: np.ndarray | None = None

    @property
    def bad(self) -> np.ndarray | None:
        """True for every row that was marked; None when none was."""
        return self._bad

    def report(
        self,
        rule: Rule,
        wrong: np.ndarray,
        describe: Callable[[int], tuple[str, object]],
        *,
        property: str | None = None,
    ) -> None:
        """One violation for each of these rows, which are marked.

        Args:
            wrong: row numbers.
            describe: the message and the value of a row.
        """
        if not len(wrong):
            return
        self.mark(wrong)
        shown = wrong[: self._violations.room].tolist()
        for row in shown:
            message, value = describe(row)
            self.add(rule, row, message, property=property, value=value, id=self.given_id(row))
        if len(wrong) > len(shown):
            self._violations.count(rule, len(wrong) - len(shown))

    def mark(self, wrong: np.ndarray) -> None:
        """Have these rows counted as bad."""
        if self._bad is None and len(wrong):
            self._bad = np.zeros(self._rows.num_rows, dtype=bool)
        if self._bad is not None:
            self._bad[wrong] = True

    def add(
        self,
        rule: Rule,
        row: int,
        message: str,
        *,
        property: str | None = None,
        value: object = None,
        id: str | None = None,
    ) -> None:
        """One violation at the place of a row, which is not marked by this."""
        violation = Violation(rule, message, self._type_name, property, value, id)
        self._violations.add(self._placed(violation, row))

    def place(self, row: int) -> str:
        """Where a row stands, as messages say it."""
        return self._placed(Violation(Rule.KEY, ""), row).place() or ""

    def given_id(self, row: int) -> str | None:
        """The id of a row unless it was made just now: that one says nothing to anybody."""
        if FRESH in self._rows.column_names and self._rows.column(FRESH)[row].as_py():
            return None
        id = self._rows.column("id")[row].as_py()
        return None if id is None else str(id)

    def _placed(self, violation: Violation, row: int) -> Violation:
        source, line = (self._rows.column(name)[row].as_py() for name in (SOURCE, LINE))
        return self._places.at(violation, source, line)


def shown(scalar: pa.Scalar) -> object:
    """A value as violations carry it: in its wire form, long texts cut."""
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_date64(kind):  # Arrow would drop the time of the day
        return to_json(_EPOCH + dt.timedelta(milliseconds=pc.cast(scalar, pa.int64()).as_py()))
    if pa.types.is_float32(kind):  # the shortest text of 32 bits, not that of 64
        return to_json(float(str(np.float32(scalar.as_py()))))
    value = scalar.as_py()
    return shortened(value) if isinstance(value, str) else to_json(value)


def shortened(text: str) -> str:
    """
    >>> shortened("a" * 100) == "a" * 79 + "…"
    True
    """
    return text if len(text) <= _SHOWN_LETTERS else text[: _SHOWN_LETTERS - 1] + "…"
