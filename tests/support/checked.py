"""One check of set rules over rows in memory: deltas come in, what was found and asked goes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.violations import Violations
from omnigraph_core.write.batches import Places
from omnigraph_core.write.integrity import check_delta
from tests.support.committed import MemoryView, Row, delta, graph_type, memory_view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.violations import Violation
    from omnigraph_core.write.integrity import TableDelta

SCHEMA = """
node Part {
    code: String @key
    serial: String? @unique
    maker: String?
    size: F64?
    made: DateTime?
    @unique(maker, size)
    @unique(made)
}
node Bin { label: String? }
node Screw {
    length: I32
    thread: String
    @key(length, thread)
}
edge Fits: Part -> Part { grade: I32?
    @unique(src, dst, grade)
}
edge Holds: Bin -> Part @card(0..2)
edge Needs: Part -> Bin @card(1..)
edge Sits: Part -> Bin @card(1..1)
"""
CATALOG = compile_schema(SCHEMA)
PLACES = Places(("rows.jsonl",), ("line",))


class Checked:
    """What a check found: violations, bad rows by type and the lookups it made."""

    def __init__(
        self,
        deltas: Sequence[TableDelta],
        committed: Mapping[str, Sequence[Row]] | None = None,
        limit: int = 100,
    ) -> None:
        self.view: MemoryView = memory_view(CATALOG, committed)
        self.violations = Violations(limit)
        by_key = {item.type.table_key: item for item in deltas}
        masks = check_delta(by_key, CATALOG, self.view, PLACES, self.violations)  # type: ignore[arg-type]
        self.bad = {
            key.split(":")[1]: [row for row, is_bad in enumerate(mask.to_pylist()) if is_bad]
            for key, mask in masks.items()
        }

    @property
    def messages(self) -> list[str]:
        return [violation.render() for violation in self.violations.listed]

    @property
    def one(self) -> Violation:
        (violation,) = self.violations.listed
        return violation

    @property
    def is_clean(self) -> bool:
        return not self.violations.total and not self.bad


def of(name: str, *rows: Row, **options: Any) -> TableDelta:
    return delta(graph_type(CATALOG, name), rows, **options)


def part(code: str, **values: Any) -> Row:
    return {"id": code, "code": code, **values}


def node(id: str) -> Row:
    return {"id": id}


def edge(id: str, src: str | None, dst: str | None, **values: Any) -> Row:
    return {"id": id, "src": src, "dst": dst, **values}


NODES = {"Part": [part("p1"), part("p2")], "Bin": [node("b1"), node("b2")]}
