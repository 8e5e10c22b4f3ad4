"""Whether a unique group holds in all rows of a table: a view comes in, rows that break it go out.

The first row with a tuple keeps it, every later one is reported. Of a pass the different tuples are
in memory, never all rows that share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.evolve.portions import count_passes, iter_pass
from omnigraph_core.violations import Rule, Violation
from omnigraph_core.write.findings import shortened, shown
from omnigraph_core.write.tuples import TupleCodes, comparable, earlier_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.violations import Violations


def check_group(view: RowView, group: Sequence[str], cause: str, violations: Violations) -> None:
    """Report every row whose values in a unique group an earlier row has.

    Args:
        cause: what messages begin with.
    """
    passes = count_passes(view.table.count_rows())
    columns = tuple(dict.fromkeys(("id", *group)))
    for number in range(passes):
        known = _Known(view, tuple(group), cause, violations)
        for rows in iter_pass(view, columns, group, number, passes):
            known.add(rows)


class _Known:
    """The different tuples of a pass, each with the row that has it."""

    def __init__(
        self, view: RowView, group: tuple[str, ...], cause: str, violations: Violations
    ) -> None:
        self._group = group
        self._type_name = str(view.type.name)
        self._cause = cause
        self._violations = violations
        self._rows: pa.Table | None = None

    def add(self, rows: pa.Table) -> None:
        """Report those of the rows that come too late; the others are known from now on."""
        if self._rows is not None:
            rows = pa.concat_tables([self._rows, rows])
        tuples = TupleCodes([comparable(rows.column(name)) for name in self._group])
        earlier = earlier_rows(tuples.codes, tuples.count)
        is_late = earlier >= 0
        if is_late.any():
            self._report(rows, np.flatnonzero(is_late), earlier)
            rows = rows.filter(pa.array(~is_late))
        self._rows = rows

    def _report(self, rows: pa.Table, late: np.ndarray, earlier: np.ndarray) -> None:
        listed = late[: self._violations.room].tolist()
        for row in listed:
            self._violations.add(self._violation(rows, row, int(earlier[row])))
        self._violations.count(Rule.UNIQUE, len(late) - len(listed))

    def _violation(self, rows: pa.Table, row: int, holder: int) -> Violation:
        names, values = ", ".join(self._group), [shown(rows.column(n)[row]) for n in self._group]
        ids = rows.column("id")
        texts = ", ".join(map(repr, values))
        is_single = len(values) == 1
        where = f"{self._type_name}.{names}" if is_single else f"{self._type_name}.({names})"
        message = (
            f"{self._cause}: @unique violation on {where}: {texts if is_single else f'({texts})'} "
            f"of {shortened(ids[row].as_py())!r} is held by {shortened(ids[holder].as_py())!r}"
        )
        return Violation(
            Rule.UNIQUE,
            message,
            self._type_name,
            names,
            values[0] if is_single else values,
            shortened(ids[row].as_py()),
        )
