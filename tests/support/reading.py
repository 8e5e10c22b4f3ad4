"""A small schema with a property of every kind, and reading data by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.violations import Violations
from omnigraph_core.write.batches import LINE, SOURCE, batch_schema
from omnigraph_core.write.records import read_batches
from omnigraph_core.write.sources import open_sources, places_of

if TYPE_CHECKING:
    from omnigraph_core.violations import Violation
    from omnigraph_core.write.batches import Batch
    from omnigraph_core.write.sources import Given

CATALOG = compile_schema("""
node Part {
  name: String?
  kind: enum(nut, bolt)?
  is_open: Bool?
  small: I32?
  stock: I64?
  few: U32?
  big: U64?
  weight: F32?
  price: F64?
  made: Date?
  seen: DateTime?
  shape: Vector(3)?
  drawing: Blob?
  tags: [String]?
  counts: [I64]?
  sizes: [F32]?
  days: [Date]?
  times: [DateTime]?
  flags: [Bool]?
  colour: String? @default("grey")
  rank: I64? @default(3)
  type: String? @default("plain")
}
node Bin { label: String }
edge Holds: Bin -> Part {
  since: Date?
  note: String? @default("none")
}
""")
PART = CATALOG.nodes["Part"]


@dataclass(frozen=True)
class Outcome:
    batches: tuple[Batch, ...]
    violations: Violations

    @property
    def listed(self) -> tuple[Violation, ...]:
        return self.violations.listed

    @property
    def problems(self) -> list[tuple[int | None, str]]:
        """Lines and rules, in order."""
        return [(found.line, str(found.rule)) for found in self.listed]

    @property
    def messages(self) -> list[str]:
        return [found.message for found in self.listed]

    def rows(self) -> list[dict[str, Any]]:
        """All rows by place, without what is null; DateTimes in milliseconds."""
        found = [row for batch in self.batches for row in _rows(batch.rows)]
        return sorted(found, key=lambda row: (row[SOURCE], row[LINE]))

    def row(self) -> dict[str, Any]:
        """The only row, without its place."""
        (row,) = self.rows()
        return {name: value for name, value in row.items() if name not in (SOURCE, LINE)}


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = {
        name: column.combine_chunks().view(pa.int64()) if column.type == pa.date64() else column
        for name, column in zip(table.schema.names, table.columns, strict=True)
    }
    if "times" in columns:
        columns["times"] = (
            columns["times"].cast(pa.list_(pa.timestamp("ms"))).cast(pa.list_(pa.int64()))
        )
    rows = pa.table(columns).to_pylist()
    return [{n: value for n, value in row.items() if value is not None} for row in rows]


def read(given: Given, *, limit: int = 1000, **options: Any) -> Outcome:
    """Everything that comes of some input."""
    sources = open_sources(given, **options)
    violations = Violations(limit)
    batches = tuple(read_batches(sources, CATALOG, places_of(sources), violations))
    for batch in batches:
        assert batch.rows.schema == batch_schema(batch.type)
        # Arrow wants whole days of a date64 when it looks closely; ours hold times of day.
        batch.rows.drop_columns(
            [n for n in ("seen", "times") if n in batch.rows.schema.names]
        ).validate(full=True)
    return Outcome(batches, violations)
