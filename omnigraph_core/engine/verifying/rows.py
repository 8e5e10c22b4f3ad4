"""Rows against the rules of their schema, by the checks that every write goes through.

Rules of single rows see some rows at a time; for those that rows keep together the key columns of
one table are in memory. Each table version is checked once, however many branches share it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.engine.verifying.model import Checked, Code, Finding, Part, error, unreadable
from omnigraph_core.engine.verifying.tables import types_by_key
from omnigraph_core.errors import StorageError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.schema.catalog import EdgeType, NodeType
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.lookup import iter_rows
from omnigraph_core.violations import Rule, Violation, Violations
from omnigraph_core.write.batches import FRESH, LINE, SOURCE, Batch, Places, batch_schema
from omnigraph_core.write.constraints import check_rows
from omnigraph_core.write.delta import TableDelta, key_columns
from omnigraph_core.write.identity import assign_ids
from omnigraph_core.write.integrity import check_delta
from omnigraph_core.write.view import CommittedView

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from omnigraph_core.engine.roots import Pin
    from omnigraph_core.engine.verifying.catalogs import Seen
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store
    from omnigraph_core.write.batches import GraphType

_LISTED: Final = 20
"""Broken rules that are spelled out for one table."""

_HINT: Final = "correct the rows with a change or a load, or go back to a commit before them"


def check_contents(store: Store, seen: Iterable[Seen], unfit: Collection[Pin]) -> Part:
    """Check the rows of these snapshots.

    Args:
        unfit: table versions that cannot be read, or have other columns than their type.
    """
    known: set[tuple[object, ...]] = set()
    findings: list[Finding] = []
    rows = 0
    for item in seen:
        catalog = accepted_catalog(item.snapshot.schema)
        for type in types_by_key(catalog).values():
            pins = tuple(_pins(item, catalog, type))
            content = (item.snapshot.schema.hash, type.table_key, *pins)
            if content in known or any(pin is None or pin in unfit for pin in pins):
                continue
            known.add(content)
            found, count = _check_table(store, item, catalog, type)
            rows += count
            if found and item.is_there(store):
                findings += found
    return Part(tuple(findings), Checked(rows=rows))


def _pins(seen: Seen, catalog: Catalog, type: GraphType) -> Iterator[Pin | None]:
    """What the rules of a type look at: its table, and those of its ends."""
    keys = [type.table_key]
    if isinstance(type, EdgeType):
        keys += [catalog.nodes[name].table_key for name in (type.source, type.target)]
    for key in keys:
        entry = seen.snapshot.tables.get(key)
        yield None if entry is None else (entry.location, entry.physical_version)


def _check_table(
    store: Store, seen: Seen, catalog: Catalog, type: GraphType
) -> tuple[list[Finding], int]:
    @cache
    def opened(table_key: str) -> Table:
        entry = seen.snapshot.table(table_key)
        return open_table(store, entry.location, entry.physical_version)

    place = f"{seen.place} {type.table_key}"
    places = Places((type.table_key,), ("row",))
    violations = Violations(_LISTED)
    count = 0
    try:
        count = _check_each(opened(type.table_key), type, places, violations)
        _check_together(opened, catalog, type, places, violations)
    except StorageError as problem:
        return [unreadable(Code.TABLE_UNREADABLE, place, problem)], count
    return [*_findings(violations, seen.place, place)], count


def _check_each(table: Table, type: GraphType, places: Places, violations: Violations) -> int:
    """The rules a row keeps by itself, some rows at a time."""
    expected = batch_schema(type)
    names = [name for name in expected.names if name not in (SOURCE, LINE)]
    count = 0
    for batch in iter_rows(table, names):
        rows = _placed(pa.Table.from_batches([batch]), count).cast(expected)
        count += rows.num_rows
        _report_missing_ids(rows, type, violations)
        check_rows(assign_ids(Batch(type, rows), places, violations), places, violations)
    return count


def _placed(rows: pa.Table, first: int) -> pa.Table:
    lines = np.arange(first + 1, first + 1 + rows.num_rows, dtype=np.int64)
    sources = pa.array(np.zeros(rows.num_rows, dtype=np.int32))
    return rows.append_column(SOURCE, sources).append_column(LINE, pa.array(lines))


def _report_missing_ids(rows: pa.Table, type: GraphType, violations: Violations) -> None:
    missing = rows.column("id").null_count
    if missing:
        message = f"{missing} rows of {type.name} have no id"
        violations.add(Violation(Rule.KEY, message, type.name, "id"))


def _check_together(
    opened: Callable[[str], Table],
    catalog: Catalog,
    type: GraphType,
    places: Places,
    violations: Violations,
) -> None:
    """The rules rows keep together, as if all of them were written at once."""
    keys = _placed(opened(type.table_key).read(key_columns(type)), 0)
    rows = keys.append_column(FRESH, pa.array(np.zeros(keys.num_rows, dtype=bool)))
    delta = TableDelta(type, rows, pa.array([], pa.utf8()), is_overwrite=True)
    if isinstance(type, NodeType):
        # Whether edges have their ends is asked from the side of the edges.
        catalog = replace(catalog, edges={})
    check_delta({type.table_key: delta}, catalog, CommittedView(opened), places, violations)


def _findings(violations: Violations, version: str, place: str) -> Iterator[Finding]:
    for violation in violations.listed:
        where = violation.place()
        at = place if where is None else f"{version} {where}"
        yield error(f"rows.{violation.rule}", at, violation.message, _HINT)
    unlisted = violations.total - len(violations.listed)
    if unlisted:
        told = ", ".join(f"{count} of {rule}" for rule, count in violations.counts.items())
        message = f"{unlisted} more broken rules; in all {told}"
        yield error("rows.more", place, message, _HINT)
