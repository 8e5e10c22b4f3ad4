"""Links as files beside the graph: arrays and the versions they were made from go in and out.

A file is found by the versions of its three tables. Where there is none, another one of the same
edge table may serve as a base: it tells which fragments it was made from. Numbers in a file are
places in the scan order of its versions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.query.checked import Direction
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.row_space import FragmentState
from omnigraph_core.topology.link_arrays import LinkArrays, TableVersion, Versions
from omnigraph_core.topology.neighbours import Neighbours
from omnigraph_core.topology.patches import PatchedArray
from omnigraph_core.topology.rebase import LEAST_OVERLAP, overlap
from omnigraph_core.topology.row_numbers import numbered_anew

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.derived import DerivedArrays, DerivedFiles
    from omnigraph_core.storage.session import Store
    from omnigraph_core.topology.link_arrays import Tables

KIND: Final = "links"
_FORMAT: Final = 1
_TABLES: Final = ("edges", "sources", "targets")
_DIRECTIONS: Final = (Direction.OUT, Direction.IN)
_CANDIDATES: Final = 4
"""Files, the newest first, that are asked what they were made from."""


@dataclass(frozen=True, slots=True)
class LinkTables:
    """The tables of an edge type; those of the nodes may be one and the same."""

    edges: Table
    sources: Table
    targets: Table

    @property
    def all(self) -> tuple[Table, Table, Table]:
        return self.edges, self.sources, self.targets

    @property
    def key(self) -> str:
        """The name of their file."""
        return _key([(table.location, table.physical_version) for table in self.all])


def load_links(files: DerivedFiles, tables: Tables) -> LinkArrays | None:
    """The links of exactly these tables."""
    found = _load(files, _key_of(tables.versions), tables)
    is_same = found is not None and found.versions.names == tables.versions.names
    return found if is_same else None


def load_similar(files: DerivedFiles, tables: Tables) -> LinkArrays | None:
    """The links of other versions of these tables that share the most edges with them."""
    best: tuple[float, str] = (0.0, "")
    for key in files.list(KIND, _prefix(tables.versions.edges.location))[:_CANDIDATES]:
        about = files.about(KIND, key)
        versions = None if about is None else _versions(about, tables)
        if versions is not None:
            best = max(best, (overlap(versions, tables), key))
    return _load(files, best[1], tables) if best[0] >= LEAST_OVERLAP else None


def save_links(files: DerivedFiles, links: LinkArrays, tables: Tables) -> None:
    """Keep links whose two directions are there, and whose numbers have no gaps."""
    arrays = {"sources": links.sources.whole(), "targets": links.targets.whole()}
    for direction in _DIRECTIONS:
        found = links.neighbours[direction]
        arrays |= {
            f"{direction}.offsets": found.offsets,
            f"{direction}.targets": found.targets,
            f"{direction}.edges": found.edges,
        }
    versions = links.versions
    about = about_links(
        versions.names, [links.neighbours[direction].is_simple for direction in _DIRECTIONS]
    )
    read = (tables.edges.table, tables.sources.table, tables.targets.table)
    files.save(KIND, _key_of(versions), arrays, about, read)


def about_links(
    names: Iterable[tuple[str, int, Sequence[FragmentState]]], is_simple: Sequence[bool]
) -> dict[str, object]:
    """What a file says of itself.

    Args:
        names: location, version and fragments of the edges, of the sources and of the targets.
        is_simple: out and in.
    """
    told = [
        {
            "location": location,
            "version": str(version),
            "fragments": [[item.id, item.files, item.deletion, item.rows] for item in states],
        }
        for location, version, states in names
    ]
    return {"format": _FORMAT, **dict(zip(_TABLES, told, strict=True)), "is_simple": is_simple}


def _prefix(location: str) -> str:
    return location.replace("/", "_") + "."


def _key(made_from: Sequence[tuple[str, int]]) -> str:
    text = "\n".join(f"{location}@{version}" for location, version in made_from)
    digest = hashlib.sha256(f"{_FORMAT}\n{text}".encode()).hexdigest()
    return _prefix(made_from[0][0]) + digest[:32]


def _key_of(versions: Versions) -> str:
    return _key([(item.location, item.version) for item in versions.all])


def _load(files: DerivedFiles, key: str, tables: Tables) -> LinkArrays | None:
    found = files.load(KIND, key)
    versions = None if found is None else _versions(found.about, tables)
    if found is None or versions is None:
        return None
    try:
        return _checked(found, versions)
    except (KeyError, TypeError, ValueError):
        return None  # written by something else


def _checked(found: DerivedArrays, versions: Versions) -> LinkArrays | None:
    arrays = found.arrays
    counts = (versions.sources.rows.count, versions.targets.rows.count)
    neighbours = {
        direction: Neighbours(
            arrays[f"{direction}.offsets"],
            arrays[f"{direction}.targets"],
            arrays[f"{direction}.edges"],
            bool(is_simple),
        )
        for direction, is_simple in zip(_DIRECTIONS, found.about["is_simple"], strict=True)
    }
    sources, targets = arrays["sources"], arrays["targets"]
    is_sound = len(sources) == len(targets) == versions.edges.rows.count and all(
        _is_sound(neighbours[direction], count)
        for direction, count in zip(_DIRECTIONS, counts, strict=True)
    )
    if not is_sound:
        return None
    ends = PatchedArray.of(sources), PatchedArray.of(targets)
    return LinkArrays(versions, *ends, neighbours, drift=0)


def _is_sound(neighbours: Neighbours, node_count: int) -> bool:
    offsets = neighbours.offsets
    length = len(neighbours.targets)
    return (
        len(offsets) == node_count + 1
        and int(offsets[0]) == 0
        and int(offsets[-1]) == length == len(neighbours.edges)
    )


def _versions(about: Mapping[str, Any], tables: Tables) -> Versions | None:
    store = tables.edges.table.store
    try:
        if about["format"] != _FORMAT:
            return None
        told = (about[name] for name in _TABLES)
        return Versions(*(_version(item, store) for item in told))
    except (KeyError, TypeError, ValueError):
        return None


def _version(told: Mapping[str, Any], store: Store) -> TableVersion:
    location, version = str(told["location"]), int(told["version"])
    fragments = tuple(
        FragmentState(id, tuple(files), deletion, rows)
        for id, files, deletion, rows in told["fragments"]
    )
    rows = numbered_anew(lambda: open_table(store, location, version), fragments)
    return TableVersion(location, version, rows)
