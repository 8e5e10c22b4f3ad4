"""Table versions that catalogs name: each opens, has its files, and is what the catalog says.

One listing per table. In depth rows say which files of blobs they need, and indexes are asked. What
is missing of a version that cleanup takes meanwhile is no finding.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.engine.verifying.model import (
    Checked,
    Code,
    Finding,
    Part,
    Severity,
    error,
    unreadable,
)
from omnigraph_core.errors import ConfigError, StorageError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.settings import MAINTENANCE_CONCURRENCY
from omnigraph_core.storage import objects
from omnigraph_core.storage.audit import (
    BlobFiles,
    expected_files,
    found_sizes,
    index_problems,
    is_wrong_size,
    lookup_problems,
)
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.indexes import index_coverage
from omnigraph_core.storage.sweep import PERMANENT, list_files, reachable_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from omnigraph_core.engine.roots import Pin
    from omnigraph_core.engine.verifying.catalogs import Seen
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.storage.audit import ExpectedFile
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store
    from omnigraph_core.storage.sweep import TableFile
    from omnigraph_core.write.batches import GraphType


_UNFIT: Final = (
    Code.TABLE_UNREADABLE,
    Code.TABLE_COLUMNS,
    Code.FILE_MISSING,
    Code.FILE_SIZE,
    Code.INDEX_DAMAGED,
)
"""What keeps the rows of a table from being checked: reading them would fail or mislead."""

_FILES: Final = (Code.FILE_MISSING, Code.FILE_SIZE)


@dataclass(frozen=True, slots=True)
class _Named:
    """A table version, and where it is named under which key: where people would look first."""

    pin: Pin
    entries: tuple[tuple[Seen, TableEntry], ...]

    @property
    def place(self) -> str:
        seen, entry = self.entries[0]
        return f"{seen.place} {entry.table_key}"

    @property
    def is_head(self) -> bool:
        return any(seen.is_head for seen, _ in self.entries)


@dataclass(frozen=True, slots=True)
class _Files:
    """Bytes of a table's files by path; which of them have blobs, if that is to be read."""

    sizes: Mapping[str, int]
    blobs: BlobFiles | None


def types_by_key(catalog: Catalog) -> dict[str, GraphType]:
    """Every type by the key of its table, nodes first."""
    types: list[GraphType] = [*catalog.nodes.values(), *catalog.edges.values()]
    return {type.table_key: type for type in types}


def check_tables(
    store: Store, seen: Sequence[Seen], *, is_deep: bool
) -> tuple[Part, frozenset[Pin]]:
    """Check every table version that these catalog versions name, each once.

    Returns:
        What was found, and the versions whose rows are better not looked at.
    """
    by_location: dict[str, list[_Named]] = defaultdict(list)
    for named in _named(_by_interest(seen)):
        by_location[named.pin[0]].append(named)
    with ThreadPoolExecutor(MAINTENANCE_CONCURRENCY.read()) as pool:
        parts = tuple(
            pool.map(
                lambda item: _check_location(store, *item, is_deep=is_deep), by_location.items()
            )
        )
    checked = Checked()
    for part, _ in parts:
        checked = checked.plus(part.checked)
    types = [finding for item in seen for finding in _check_types(item)]
    found = (*types, *(finding for part, _ in parts for finding in part.findings))
    return Part(found, checked), frozenset(pin for _, pins in parts for pin in pins)


def find_garbage(
    store: Store, seen: Iterable[Seen], listed: Mapping[str, Sequence[TableFile]]
) -> Part:
    """Files no version needs: how many, and their bytes.

    Args:
        seen: every version of every catalog.
        listed: taken before those were read, so that what is written meanwhile is not counted.
    """
    needed: dict[str, set[str]] = defaultdict(lambda: set(PERMANENT))
    for named in _named(seen):
        location, version = named.pin
        try:
            needed[location] |= reachable_files(open_table(store, location, version))
        except StorageError:
            return Part()  # what it needs is not known; that it cannot be read is told elsewhere
    unused = [
        file
        for location, files in listed.items()
        for file in files
        if file.unit not in needed[location]
    ]
    if not unused:
        return Part()
    message = f"{len(unused)} files of {sum(file.size for file in unused)} bytes are not needed"
    hint = "cleanup removes them once they are older than its grace period"
    return Part((Finding(Severity.INFO, Code.GARBAGE, "tables", message, hint),))


def _by_interest(seen: Sequence[Seen]) -> list[Seen]:
    """Branches in the order they came in, the newest version of each first."""
    order: dict[str, int] = {}
    for item in seen:
        order.setdefault(item.ref.incarnation, len(order))
    return sorted(
        seen, key=lambda item: (order[item.ref.incarnation], -item.snapshot.manifest_version)
    )


def _named(seen: Iterable[Seen]) -> list[_Named]:
    found: dict[Pin, list[tuple[Seen, TableEntry]]] = defaultdict(list)
    for item in seen:
        for entry in item.snapshot.tables.values():
            found[entry.location, entry.physical_version].append((item, entry))
    return [_Named(pin, tuple(entries)) for pin, entries in found.items()]


def _check_types(seen: Seen) -> Iterator[Finding]:
    """Every type has a table, and every table a type."""
    try:
        catalog = accepted_catalog(seen.snapshot.schema)
    except (ValueError, ConfigError):
        return  # told with the catalog
    types = types_by_key(catalog).keys()
    tables = seen.snapshot.tables.keys()
    for key in sorted(types - tables):
        yield error(Code.TABLE_COLUMNS, f"{seen.place} {key}", "the type has no table")
    for key in sorted(tables - types):
        yield error(Code.TABLE_COLUMNS, f"{seen.place} {key}", "the schema has no such type")


def _check_location(
    store: Store, location: str, versions: Sequence[_Named], *, is_deep: bool
) -> tuple[Part, list[Pin]]:
    # Listed after the catalogs were read: what a version needs was written before it was named.
    listed = list_files(store, location)
    files = _Files(found_sizes(listed), BlobFiles() if is_deep else None)
    findings: list[Finding] = []
    unfit: list[Pin] = []
    indexes = 0
    told: set[tuple[str, str]] = set()
    for named in versions:  # what several need is told of the first
        found, count = _check_version(store, named, files)
        indexes += count
        if any(finding.code in _UNFIT for finding in found):
            unfit.append(named.pin)
        fresh = [item for item in found if (item.code, item.message) not in told]
        if fresh and _is_there(store, named):
            findings += fresh
            told.update((item.code, item.message) for item in fresh)
    checked = Checked(table_versions=len(versions), files=len(listed), indexes=indexes)
    return Part(tuple(findings), checked), unfit


def _check_version(store: Store, named: _Named, files: _Files) -> tuple[list[Finding], int]:
    """What is wrong with one version, and how many indexes it has."""
    found: list[Finding] = []
    try:
        table = open_table(store, *named.pin)
        found += _check_entries(table, named)
        found += _check_files(store, table, named, expected_files(table), files.sizes)
        if files.blobs is not None and not any(item.code in _FILES for item in found):
            found += _check_files(store, table, named, files.blobs.of(table), files.sizes)
        is_asked = files.blobs is not None and named.is_head and not found
        found += _check_indexes(table, named, is_asked=is_asked)
        return found, len(index_coverage(table))
    except StorageError as problem:
        return [*found, unreadable(Code.TABLE_UNREADABLE, named.place, problem)], 0


def _is_there(store: Store, named: _Named) -> bool:
    """Whether a version that names it is still kept."""
    return any(seen.is_there(store) for seen, _ in named.entries)


def _check_entries(table: Table, named: _Named) -> Iterator[Finding]:
    rows, fragments = table.count_rows(), table.count_fragments()
    told: set[tuple[object, ...]] = set()
    for seen, entry in named.entries:
        place = f"{seen.place} {entry.table_key}"
        said = (entry.row_count, entry.fragment_count)
        if said != (rows, fragments) and said not in told:
            told.add(said)
            message = (
                f"the catalog says {said[0]} rows in {said[1]} fragments, "
                f"the table has {rows} in {fragments}"
            )
            yield error(Code.TABLE_COUNTS, place, message)
        shape = (entry.table_key, seen.snapshot.schema.hash)
        if shape not in told:
            told.add(shape)
            for problem in _check_columns(table, seen, entry):
                yield error(Code.TABLE_COLUMNS, place, problem)


def _check_columns(table: Table, seen: Seen, entry: TableEntry) -> Iterator[str]:
    try:
        catalog = accepted_catalog(seen.snapshot.schema)
    except (ValueError, ConfigError):
        return  # told with the catalog
    type = types_by_key(catalog).get(entry.table_key)
    if type is None:
        return
    expected = {field.name: field for field in table_schema(type)}
    found = {field.name: field for field in table.schema}
    for name in sorted(expected.keys() - found.keys()):
        yield f"the column `{name}` is missing"
    for name in sorted(found.keys() - expected.keys()):
        yield f"the column `{name}` is not of the schema"
    for name in sorted(expected.keys() & found.keys()):
        if not found[name].equals(expected[name]):
            yield f"the column `{name}` is {_shown(found[name])}, expected {_shown(expected[name])}"


def _shown(field: object) -> str:
    return str(field).partition(": ")[2]


def _check_files(
    store: Store,
    table: Table,
    named: _Named,
    expected: Iterable[ExpectedFile],
    sizes: Mapping[str, int],
) -> Iterator[Finding]:
    for file in expected:
        where = f"{table.location}/{file.unit}"
        hint = "build the index again, or restore it from a copy" if file.is_index else None
        if file.unit not in sizes:
            if not file.is_index and objects.exists(store, where):
                continue  # the listing was behind
            message = f"{where} is missing"
        elif is_wrong_size(file, sizes):
            message = f"{where} has {sizes[file.unit]} bytes, {_expected(file)}"
        else:
            continue
        code = Code.FILE_SIZE if file.unit in sizes else Code.FILE_MISSING
        yield error(code, named.place, message, hint or "restore it from a copy of the graph")


def _expected(file: ExpectedFile) -> str:
    if file.is_least:
        return "too few for what it is to hold"  # how many differs from version to version
    return f"expected {'some' if file.size is None else file.size}"


def _check_indexes(table: Table, named: _Named, *, is_asked: bool) -> Iterator[Finding]:
    hint = "drop the index and build it again"
    for name, problem in index_problems(table):
        yield error(Code.INDEX_DAMAGED, named.place, f"index `{name}`: {problem}", hint)
    if is_asked:
        for name, problem in lookup_problems(table):
            yield error(Code.INDEX_DAMAGED, named.place, f"index `{name}`: {problem}", hint)
