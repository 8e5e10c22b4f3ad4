"""What compactions moved where: a record beside each new data file, and rows followed by records.

A compaction writes the live rows of fragments one after another into others. Its record says which
places of a new file hold which places of older ones, through several compactions. It lies beside
the data file it is about, so it stays as long as that. A missing record only costs time.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core import settings
from omnigraph_core.errors import InvariantBroken, StorageError
from omnigraph_core.storage.array_file import pack_arrays, parse_arrays
from omnigraph_core.storage.objects import put, try_get
from omnigraph_core.storage.row_space import live_offsets
from omnigraph_core.storage.runs import Runs, compose, cut, packed, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lance.fragment import FragmentMetadata

    from omnigraph_core.storage.dataset import Table

_log = logging.getLogger(__name__)

LEAST_ROWS: Final = 4_096
"""Of a fragment for its record to be worth a request; fewer rows are as soon read."""

MOST_SOURCES: Final = 1_024
MOST_RUNS: Final = 1 << 20
"""What a record says at most; what lies longest back is left out."""

_PARALLEL: Final = 8
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Rows of a file that came out of a fragment, which had these files then."""

    files: tuple[str, ...]
    runs: Runs
    """From places in the new fragment to places in the old one."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Where the rows of a fragment came from, the latest origins first."""

    files: tuple[str, ...]
    origins: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class Lonely:
    """A fragment of which the other version has no file."""

    id: int
    files: tuple[str, ...]
    physical_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """Rows that are in a fragment of one version and, moved, in one of the other.

    Columns that were moved with them are in these files; others came later.
    """

    before: Lonely
    after: Lonely
    runs: Runs
    before_files: tuple[str, ...]
    after_files: tuple[str, ...]


def record_rewrite(
    table: Table, replaced: Sequence[FragmentMetadata], rewritten: Sequence[FragmentMetadata]
) -> None:
    """Keep where the rows of new fragments come from; nothing fails where that cannot be kept."""
    row_count = sum(int(fragment.physical_rows) for fragment in rewritten)
    if sum(fragment.num_rows for fragment in replaced) != row_count:
        raise InvariantBroken(f"a compaction of `{table.location}` keeps all rows")
    if row_count < LEAST_ROWS or not settings.DERIVED_FILES.read():
        return
    origins = _origins(table, replaced)
    start = 0
    for fragment in rewritten:
        end = start + int(fragment.physical_rows)
        here = [Origin(item.files, cut(item.runs, start, end)) for item in origins]
        record = Record(_files(fragment), _limited(here))
        start = end
        try:
            put(table.store, _path(table, record.files), _packed(record))
        except StorageError as problem:
            _log.info("no record of a compaction of %s is kept: %s", table.uri, problem)


def follow_moves(table: Table, before: Sequence[Lonely], after: Sequence[Lonely]) -> list[Move]:
    """The rows that fragments of two versions have in common by compactions, as far as is known.

    Args:
        table: either version.
    """
    if not _are_worth_it(before) or not _are_worth_it(after) or not settings.DERIVED_FILES.read():
        return []
    lonely = (*before, *after)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        records = list(pool.map(lambda item: _try_load(table, item), lonely))
    if not any(records):
        return []
    places = [_places(item, record) for item, record in zip(lonely, records, strict=True)]
    return _disjoint(_iter_moves(places[: len(before)], places[len(before) :]))


def _origins(table: Table, replaced: Sequence[FragmentMetadata]) -> list[Origin]:
    """Of all rows that were rewritten together: first the fragments themselves, then theirs."""
    direct, earlier = [], []
    start = 0
    for fragment in replaced:
        live = live_offsets(table, fragment.id)
        runs = packed(live, start)
        start += len(live)
        files = _files(fragment)
        direct.append(Origin(files, runs))
        record = _try_load(table, Lonely(fragment.id, files, int(fragment.physical_rows)))
        # Files that came later hold columns which the record knows nothing of.
        if record is not None and record.files == files:
            earlier += [Origin(o.files, compose(runs, o.runs)) for o in record.origins]
    return [*direct, *earlier]


def _limited(origins: Iterable[Origin]) -> tuple[Origin, ...]:
    kept: list[Origin] = []
    runs = 0
    for origin in origins:
        runs += len(origin.runs.length)
        if len(kept) == MOST_SOURCES or runs > MOST_RUNS:
            break
        if len(origin.runs.length):
            kept.append(origin)
    return tuple(kept)


def _packed(record: Record) -> bytes:
    """All runs one after another, in three arrays."""
    none = np.zeros(0, np.int64)
    runs = [origin.runs for origin in record.origins]
    arrays = {
        "here": np.concatenate([none, *(item.here for item in runs)]).astype(np.uint32),
        "there": np.concatenate([none, *(item.there for item in runs)]).astype(np.uint32),
        "length": np.concatenate([none, *(item.length for item in runs)]).astype(np.uint32),
    }
    about = {
        "format": _FORMAT,
        "files": record.files,
        "origins": [[origin.files, len(origin.runs.length)] for origin in record.origins],
    }
    return b"".join(bytes(piece) for piece in pack_arrays(arrays, about))


def _path(table: Table, files: Sequence[str]) -> str:
    """Files below the name of a data file are kept and swept with it."""
    return f"{table.location}/data/{files[0].removesuffix('.lance')}/moved.arrays"


def _files(fragment: FragmentMetadata) -> tuple[str, ...]:
    return tuple(file.path for file in fragment.files)


def _are_worth_it(fragments: Iterable[Lonely]) -> bool:
    return any(item.physical_rows >= LEAST_ROWS for item in fragments)


def _try_load(table: Table, fragment: Lonely) -> Record | None:
    """The record of a fragment; None if there is no sound one."""
    if fragment.physical_rows < LEAST_ROWS:
        return None
    try:
        content = try_get(table.store, _path(table, fragment.files))
        found = None if content is None else parse_arrays(content)
        return None if found is None else _parsed(found.about, found.arrays, fragment)
    except (StorageError, KeyError, TypeError, ValueError):
        return None


def _parsed(
    about: Mapping[str, object], arrays: Mapping[str, np.ndarray], fragment: Lonely
) -> Record | None:
    files, origins = about["files"], about["origins"]
    if about["format"] != _FORMAT or not isinstance(files, list) or not isinstance(origins, list):
        return None
    here, there, length = (arrays[name].astype(np.int64) for name in ("here", "there", "length"))
    if len(here) and int((here + length).max()) > fragment.physical_rows:
        return None
    found = []
    start = 0
    for source, count in origins:
        part = slice(start, start + count)
        found.append(Origin(tuple(source), Runs(here[part], there[part], length[part])))
        start += count
    return Record(tuple(files), tuple(found))


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Rows of a fragment as places in a file that is or was: in its own, or in an origin's."""

    fragment: Lonely
    origin: tuple[str, ...]
    runs: Runs
    moved_files: tuple[str, ...] | None
    """Those of the fragment that the rows were moved into; None: they were not moved."""


def _places(fragment: Lonely, record: Record | None) -> list[_Place]:
    own = _Place(fragment, fragment.files, whole(fragment.physical_rows), None)
    if record is None or not set(record.files) <= set(fragment.files):
        return [own]
    moved = [_Place(fragment, o.files, o.runs, record.files) for o in record.origins]
    return [own, *moved]


def _iter_moves(
    before: Sequence[Sequence[_Place]], after: Sequence[Sequence[_Place]]
) -> Iterator[Move]:
    by_file: dict[str, list[_Place]] = {}
    for place in (place for places in after for place in places):
        by_file.setdefault(place.origin[0], []).append(place)
    for mine in (place for places in before for place in places):
        for other in by_file.get(mine.origin[0], []):
            files = _common_files(mine, other)
            if files is not None:
                runs = compose(mine.runs, other.runs.turned())
                yield Move(mine.fragment, other.fragment, runs, *files)


def _common_files(mine: _Place, other: _Place) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """In which files of each the columns are that both have from there; None if nobody knows."""
    if mine.moved_files is not None and other.moved_files is not None:
        is_same = mine.origin == other.origin
        return (mine.moved_files, other.moved_files) if is_same else None
    if mine.moved_files is None and other.moved_files is not None:
        is_same = set(other.origin) <= set(mine.origin)
        return (other.origin, other.moved_files) if is_same else None
    if mine.moved_files is not None and other.moved_files is None:
        is_same = set(mine.origin) <= set(other.origin)
        return (mine.moved_files, mine.origin) if is_same else None
    raise InvariantBroken("a file that both versions have is not followed")


def _disjoint(moves: Iterable[Move]) -> list[Move]:
    """Without those that say again, by older files, what others say of the same rows."""
    known: dict[int, np.ndarray] = {}
    kept = []
    for move in sorted(moves, key=lambda move: -move.runs.count):
        told = known.setdefault(move.before.id, np.zeros(move.before.physical_rows, np.bool_))
        places = move.runs.here_places()
        if len(places) and not told[places].any():
            told[places] = True
            kept.append(move)
    return kept
