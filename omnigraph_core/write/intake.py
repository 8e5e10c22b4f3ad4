"""What every reader shares: one source on its way in, and where its problems go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.violations import Rule, Violation
from omnigraph_core.write.json_values import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import Batch, GraphType, Places
    from omnigraph_core.write.sources import Source


@dataclass(frozen=True, slots=True)
class Intake:
    """A source, the types it may hold, and the collector of what is wrong with it."""

    index: int
    source: Source
    catalog: Catalog
    places: Places
    violations: Violations
    on_read: Callable[[int], None] | None = None
    on_refused: Callable[[Batch], None] | None = None
    """Told the rows that were reported, as far as they could be read."""
    only: Collection[str] | None = None
    """The table keys of the types to read; records of the others are passed over."""

    def is_wanted(self, type: GraphType) -> bool:
        return self.only is None or type.table_key in self.only

    def report(
        self,
        rule: Rule,
        line: int | None,
        message: Callable[[], str] | str,
        *,
        type_name: str | None = None,
        property: str | None = None,
        value: object = None,
    ) -> None:
        """Add a violation; one that will not be listed is only counted, its message not made."""
        if not self.violations.room:
            self.violations.count(rule, 1)
            return
        text = message if isinstance(message, str) else message()
        found = Violation(rule, text, type_name, property, shortened(value))
        if line is None:
            self.violations.add(replace(found, file=self.places.names[self.index]))
        else:
            self.violations.add(self.places.at(found, self.index, line))

    def refuse(self, rows: Batch) -> None:
        if self.on_refused is not None and rows.rows.num_rows:
            self.on_refused(rows)

    def count_read(self, rows: int) -> None:
        if self.on_read is not None and rows:
            self.on_read(rows)

    def place_columns(self, lines: np.ndarray | Sequence[int]) -> tuple[pa.Array, pa.Array]:
        """The working columns of rows that stand at these lines."""
        at = np.asarray(lines, dtype=np.int64)
        return pa.array(np.full(len(at), self.index, dtype=np.int32)), pa.array(at)


def suggestion(word: str, candidates: Sequence[str]) -> str:
    """The end of a message about an unknown name: `; did you mean …?`, or nothing."""
    return _suggestion(word, tuple(candidates))


@lru_cache(maxsize=1024)
def _suggestion(word: str, candidates: tuple[str, ...]) -> str:
    hint = did_you_mean(word, candidates)
    return f"; {hint}" if hint else ""
