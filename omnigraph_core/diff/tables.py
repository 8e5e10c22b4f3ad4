"""Which tables may differ between two snapshots: catalogs come in, pairs of entries go out.

A table is the same one where its location is, whatever its type is called. Nothing is opened here:
tables of equal versions, and those a filter leaves out, are not among the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.diff.model import ChangeOp
from omnigraph_core.errors import ConfigError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.schema.catalog import NodeType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from omnigraph_core.diff.model import ChangeFilter
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.continuity import Continuity
    from omnigraph_core.schema.reshape import GraphType

_SAME_ROWS: Final = frozenset({TableOperation.COMPACTION, TableOperation.INDEX})


@dataclass(frozen=True, slots=True)
class TypedTable:
    """A table of a snapshot with the type its rows are of there."""

    entry: TableEntry
    type: GraphType


@dataclass(frozen=True, slots=True)
class TablePair:
    """A table before and after; None where a side has none. Named as it is called afterwards."""

    before: TypedTable | None
    after: TypedTable | None
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Earlier property → later property, of all that continue."""

    @property
    def named(self) -> TypedTable:
        """The side that names it."""
        side = self.after or self.before
        assert side is not None
        return side

    @property
    def type(self) -> GraphType:
        return self.named.type

    @property
    def kind(self) -> EntityKind:
        return EntityKind.NODE if isinstance(self.type, NodeType) else EntityKind.EDGE

    @property
    def names(self) -> frozenset[str]:
        """What its type is called on either side."""
        return frozenset(side.type.name for side in (self.before, self.after) if side is not None)


def check_type_names(filter: ChangeFilter, *snapshots: Snapshot) -> None:
    """
    Raises:
        ConfigError: the filter names types that none of the snapshots has, all in one message.
    """
    known = {type.name for snapshot in snapshots for type in _types(snapshot).values()}
    problems = []
    for name in sorted(filter.type_names - known):
        hint = did_you_mean(name, known)
        problems.append(f"no type `{name}`" + (f" ({hint})" if hint else ""))
    if problems:
        raise ConfigError(f"cannot look for changes: {', '.join(problems)}")


def type_names(snapshot: Snapshot) -> dict[str, str]:
    """What the types of a snapshot are called, by the keys of their tables."""
    return {key: type.name for key, type in _types(snapshot).items()}


def match_tables(
    before: Snapshot, after: Snapshot, continuity: Continuity | None
) -> Iterator[tuple[str, str]]:
    """The tables that are on both sides, as the earlier key and the later one."""
    return _matched(_tables(before), _tables(after), continuity)


def pair_tables(
    before: Snapshot | None,
    after: Snapshot,
    continuity: Continuity | None,
    filter: ChangeFilter,
    *,
    is_successive: bool = False,
) -> tuple[TablePair, ...]:
    """The tables that may differ in what the filter asks for: nodes then edges, by type name.

    Args:
        before: None stands for a graph without tables.
        continuity: what continues, None if both have one schema.
        is_successive: `after` is one commit later than `before`, so that what a table's operation
            says is all that happened to it.
    """
    pairs = [
        pair
        for pair in _pairs(before, after, continuity)
        if _is_asked_for(pair, filter) and not _is_same(pair, is_successive=is_successive)
    ]
    # Another type may have taken over the name of one that is gone: its rows go first.
    pairs.sort(
        key=lambda pair: (
            pair.kind is EntityKind.EDGE,
            pair.type.name,
            pair.after is not None,
        )
    )
    return tuple(pairs)


def _types(snapshot: Snapshot) -> dict[str, GraphType]:
    catalog = accepted_catalog(snapshot.schema)
    types: tuple[GraphType, ...] = (*catalog.nodes.values(), *catalog.edges.values())
    return {type.table_key: type for type in types}


def _tables(snapshot: Snapshot) -> dict[str, TypedTable]:
    types = _types(snapshot)
    return {key: TypedTable(entry, types[key]) for key, entry in snapshot.tables.items()}


def _pairs(
    before: Snapshot | None, after: Snapshot, continuity: Continuity | None
) -> Iterator[TablePair]:
    old = {} if before is None else _tables(before)
    new = _tables(after)
    matched = dict(_matched(old, new, continuity))
    for key, table in old.items():
        later = new[matched[key]] if key in matched else None
        yield TablePair(table, later, _renamed(table, later, continuity))
    for key in new.keys() - set(matched.values()):
        yield TablePair(None, new[key])


def _matched(
    old: Mapping[str, TypedTable], new: Mapping[str, TypedTable], continuity: Continuity | None
) -> Iterator[tuple[str, str]]:
    """Earlier key → later key: by location, and what is left by what continues.

    A type that was made again, or by two branches each by itself, has two locations.
    """
    by_location = {table.entry.location: key for key, table in new.items()}
    found = {
        key: by_location[table.entry.location]
        for key, table in old.items()
        if table.entry.location in by_location
    }
    yield from found.items()
    free = new.keys() - set(found.values())
    for key in old.keys() - found.keys():
        later = _continued(key, old[key], continuity)
        if later in free:
            yield key, later


def _continued(key: str, table: TypedTable, continuity: Continuity | None) -> str | None:
    if continuity is None:
        return key
    if isinstance(table.type, NodeType):
        name = continuity.nodes.get(table.type.name)
        return None if name is None else node_table_key(name)
    name = continuity.edges.get(table.type.name)
    return None if name is None else edge_table_key(name)


def _renamed(
    table: TypedTable, later: TypedTable | None, continuity: Continuity | None
) -> Mapping[str, str]:
    if later is None:
        return {}
    key = table.type.table_key
    if continuity is not None and _continued(key, table, continuity) == later.type.table_key:
        kind = "node" if isinstance(table.type, NodeType) else "edge"
        return continuity.properties[kind, table.type.name]
    return {name: name for name in table.type.properties if name in later.type.properties}


def _is_asked_for(pair: TablePair, filter: ChangeFilter) -> bool:
    if filter.kinds and pair.kind not in filter.kinds:
        return False
    if filter.type_names and not filter.type_names & pair.names:
        return False
    return any(map(filter.wants, _possible(pair)))


def _possible(pair: TablePair) -> Iterable[ChangeOp]:
    if pair.before is None:
        return (ChangeOp.INSERT,)
    return (ChangeOp.DELETE,) if pair.after is None else ChangeOp


def _is_same(pair: TablePair, *, is_successive: bool) -> bool:
    """Whether the entries alone say that no row differs."""
    if pair.before is None or pair.after is None:
        return pair.named.entry.row_count == 0
    old, new = pair.before.entry, pair.after.entry
    if old.location != new.location:
        return False
    if old.physical_version == new.physical_version:
        return True
    is_next = is_successive and new.table_version == old.table_version + 1
    return is_next and new.operation in _SAME_ROWS
