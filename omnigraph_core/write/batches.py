"""Typed rows on their way in: the form every reader produces and every check takes.

Rows have the columns of the type's table (`schema.arrow.table_schema`), of exactly those types, and
two working columns that say where each row came from. Nothing is checked yet but the types: nulls
may stand anywhere, and `id` is null where one is still to be made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.catalog import EdgeType, NodeType

if TYPE_CHECKING:
    from omnigraph_core.violations import Violation

GraphType: TypeAlias = NodeType | EdgeType

SOURCE: Final = "#source"
"""Working column: which of the inputs a row came from, counted from 0."""
LINE: Final = "#line"
"""Working column: the line, row or statement of that input, counted from 1."""
FRESH: Final = "#fresh"
"""Working column: the id was made just now, so nobody can have it. Added with the ids."""
PLACE_FIELDS: Final = (
    pa.field(SOURCE, pa.int32(), nullable=False),
    pa.field(LINE, pa.int64(), nullable=False),
)


def batch_schema(type: GraphType) -> pa.Schema:
    """The columns of a batch: the table's, all nullable, and the working ones."""
    columns = [field.with_nullable(True) for field in table_schema(type)]
    return pa.schema([*columns, *PLACE_FIELDS])


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one type, with `batch_schema(type)`."""

    type: GraphType
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Places:
    """How working columns read in messages: a name per source, None for one without a name."""

    names: tuple[str | None, ...] = (None,)
    units: tuple[str, ...] = ("line",)

    def at(self, violation: Violation, source: int, line: int) -> Violation:
        """The violation with its place."""
        return replace(violation, file=self.names[source], line=line, unit=self.units[source])


STATEMENTS: Final = Places((None,), ("statement",))
"""Places of rows that statements of a mutation made."""
