"""One partition of keys: which rows of the input may break a rule about several rows, and which
committed rows they replace.

All keys with the same hash are in one partition. Suspected rows are looked at again by the checks
of every write, on values, so a suspicion may be wrong; what is not suspected keeps every rule.
What is found is kept beside the graph, and only its size is returned.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.schema.catalog import EdgeType, NodeType
from omnigraph_core.spark.ingest.keys import (
    SIDES,
    claimed_name,
    committed,
    dtype_of,
    end_name,
    graph_type,
    id_name,
    limits_sources,
    loose_name,
    needs_sources,
    owner_name,
    section_names,
    start_name,
    unique_name,
)
from omnigraph_core.violations import Rule
from omnigraph_core.write.load_model import LoadMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.spark.blocks import Received
    from omnigraph_core.spark.ingest.model import Job
    from omnigraph_core.write.batches import GraphType

PART: Final = "part"
ROW: Final = "row"
PLACE: Final = "place"
ADDRESSES: Final = "address"


@dataclass(frozen=True, slots=True)
class Orphans:
    """Committed edges of one type that lose their ends at a side; the first of them by address."""

    node: str
    edge: str
    side: str
    count: int
    first: np.ndarray


@dataclass(slots=True)
class Inspected:
    """What was found in a partition: how much of it, and the object that has it."""

    name: str = ""
    tables: frozenset[str] = frozenset()
    """What is in the object; without any there is none."""
    suspects: Counter[tuple[str, Rule]] = field(default_factory=Counter)
    """By table key and the rule that may be broken, the number of rows."""
    replaced: Counter[str] = field(default_factory=Counter)
    """By table key the rows that a later row of the same id replaces."""
    removed: Counter[str] = field(default_factory=Counter)
    """By table key the committed rows that the input replaces."""
    lost_sources: Counter[str] = field(default_factory=Counter)
    """By edge table, sources that need edges and have none in the input."""
    orphans: tuple[Orphans, ...] = ()


def suspects_name(table_key: str, rule: Rule) -> str:
    """Rows to look at again: part and row."""
    return f"suspects {rule.value} {table_key}"


def suspected_ends_name(table_key: str, rule: Rule, side: str) -> str:
    """Ends whose edges to look at again: part, hash, and how many they are."""
    return f"ends {side} {rule.value} {table_key}"


def related_name(table_key: str) -> str:
    """Hashes of ids: rows of the input that have them decide about suspected rows as well."""
    return f"related {table_key}"


def replaced_name(table_key: str) -> str:
    """Rows that do not stay: part, row and place."""
    return f"replaced {table_key}"


def removed_name(table_key: str) -> str:
    """Addresses of committed rows that do not stay."""
    return f"removed {table_key}"


def lost_name(edge_key: str) -> str:
    """Addresses of committed edges, one for each source that has none left."""
    return f"lost {edge_key}"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What all partitions are looked at by."""

    job: Job
    loaded: tuple[str, ...]
    """The keys of the tables the input has rows for."""
    chosen: tuple[str, ...]
    """Those of them that are looked at."""

    def __call__(self, partition: int, received: Received) -> Inspected:
        """Look at a partition."""
        return _Partition(self, received).run()


class _Partition:
    def __init__(self, inspection: Inspection, received: Received) -> None:
        self._job = inspection.job
        self._loaded = inspection.loaded
        self._types = {key: graph_type(self._job, key) for key in inspection.chosen}
        self._keys = _Keys(self._job, received)
        self._found = Inspected()
        self._tables: dict[str, list[pa.Table]] = defaultdict(list)

    def run(self) -> Inspected:
        for key, type in self._types.items():
            self._look_at_ids(key, type)
            if needs_sources(type) and self._job.mode is LoadMode.MERGE:
                self._look_at_moves(key)
            if isinstance(type, EdgeType):
                self._look_at_ends(key, type)
            if limits_sources(type):
                self._look_at_sources(key, type)
            for number in range(len(type.unique)):
                self._look_at_tuples(key, number)
        if self._is_overwrite:
            self._found.orphans = tuple(self._orphans())
        if self._tables:
            whole = {name: pa.concat_tables(parts) for name, parts in self._tables.items()}
            self._found.name = self._job.scratch.put_tables("found", whole)
            self._found.tables = frozenset(whole)
        return self._found

    @property
    def _is_overwrite(self) -> bool:
        return self._job.mode is LoadMode.OVERWRITE

    def _keep(self, name: str, **columns: np.ndarray) -> None:
        self._tables[name].append(pa.table(columns))

    def _suspect(self, key: str, rule: Rule, name: str, is_suspect: np.ndarray) -> None:
        if is_suspect.any():
            keys, parts = self._keys.of(name)[is_suspect], self._keys.parts(name)[is_suspect]
            self._found.suspects[key, rule] += len(keys)
            self._keep(suspects_name(key, rule), **{PART: parts, ROW: keys["row"]})

    def _suspect_ends(self, key: str, rule: Rule, side: str, is_suspect: np.ndarray) -> None:
        if is_suspect.any():
            name = end_name(key, side)
            ends, parts = self._keys.of(name)[is_suspect], self._keys.parts(name)[is_suspect]
            self._found.suspects[key, rule] += int(ends["count"].sum(dtype=np.int64))
            columns = {column: ends[column] for column in ("h1", "h2", "count")}
            self._keep(suspected_ends_name(key, rule, side), **{PART: parts, **columns})

    def _relate(self, key: str, committed_keys: np.ndarray) -> None:
        """Have rows of the input looked at that replace these committed ones."""
        if self._job.mode is LoadMode.MERGE and len(committed_keys):
            columns = {"h1": committed_keys["o1"], "h2": committed_keys["o2"]}
            self._keep(related_name(key), **columns)

    def _look_at_ids(self, key: str, type: GraphType) -> None:
        name = id_name(key)
        if not len(self._keys.of(name)):
            return
        (codes, there), count = unified(self._keys.of(name), self._keys.of(committed(name)))
        is_repeated = np.bincount(codes, minlength=count)[codes] > 1
        has_key = isinstance(type, NodeType) and type.key is not None
        if self._job.mode is LoadMode.MERGE and not has_key:
            self._note_replaced(key, codes, is_repeated, count)
        else:
            self._suspect(key, Rule.KEY, name, is_repeated)
        if self._job.mode is LoadMode.APPEND:
            self._suspect(key, Rule.KEY, name, _marked(there, count)[codes])
        elif self._job.mode is LoadMode.MERGE:
            is_replaced = _marked(codes, count)[there]
            # The same row may have been found by several parts.
            addresses = np.unique(self._keys.of(committed(name))["address"][is_replaced])
            if len(addresses):
                self._found.removed[key] += len(addresses)
                self._keep(removed_name(key), **{ADDRESSES: addresses})

    def _note_replaced(
        self, key: str, codes: np.ndarray, is_repeated: np.ndarray, count: int
    ) -> None:
        """Of rows with one id the last one of the input counts."""
        if not is_repeated.any():
            return
        rows, parts = self._keys.of(id_name(key)), self._keys.parts(id_name(key))
        order = np.lexsort((rows["row"], parts))
        last = np.full(count, -1)
        last[codes[order]] = order  # of several, the last one assigned stays
        is_out = last[codes] != np.arange(len(codes))
        self._found.replaced[key] += int(is_out.sum())
        gone = rows[is_out]
        columns = {PART: parts[is_out], ROW: gone["row"], PLACE: gone["place"]}
        self._keep(replaced_name(key), **columns)

    def _look_at_moves(self, key: str) -> None:
        """Edges that start elsewhere than committed ones, or other rows, of their ids."""
        name = start_name(key)
        given, before = self._keys.of(name), self._keys.of(committed(name))
        (codes, there), count = unified(given, before)
        at = np.full(count, -1)
        at[there] = np.arange(len(there))
        old = at[codes]
        is_moved = old >= 0
        if is_moved.any():
            is_moved &= _differ(given, before[old])
        first = np.full(count, -1)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        is_moved |= _marked(codes[_differ(given, given[first[codes]])], count)[codes]
        self._suspect(key, Rule.CARDINALITY, name, is_moved)

    def _look_at_ends(self, key: str, edge: EdgeType) -> None:
        for side, node in (("src", edge.source), ("dst", edge.target)):
            if not len(self._keys.of(end_name(key, side))):
                continue
            node_key = self._job.catalog.nodes[node].table_key
            names = [id_name(node_key), claimed_name(node_key)]
            if not (self._is_overwrite and node_key in self._loaded):
                names.append(committed(id_name(node_key)))
            has_node = self._is_among(end_name(key, side), names)
            self._suspect_ends(key, Rule.ENDPOINT, side, ~has_node)

    def _look_at_sources(self, key: str, edge: GraphType) -> None:
        assert isinstance(edge, EdgeType)  # only edges have sources
        names = (
            end_name(key, "src"),
            owner_name(key),
            loose_name(key),
            committed(end_name(key, "src")),
        )
        given, owned, loose, before = (self._keys.of(name) for name in names)
        if self._is_overwrite and edge.cardinality.minimum:
            self._note_lost_sources(key, edge)
        if not len(given):
            return
        (codes, owners, loosely, kept), count = unified(given, owned, loose, before)
        total = np.bincount(loosely, loose["count"], count).astype(np.int64)
        (edges, replaced), edge_count = unified(owned, before, other=True)
        total += _distinct_counts(owners, edges, count)
        if not self._is_overwrite and len(before):
            # An edge that starts elsewhere now may be bad, and stay where it was.
            again = np.isin(kept * edge_count + replaced, owners * edge_count + edges)
            total += _distinct_counts(kept[~again], replaced[~again], count)
        limits = edge.cardinality
        is_wrong = total < limits.minimum
        if limits.maximum is not None:
            is_wrong |= total > limits.maximum
        self._suspect_ends(key, Rule.CARDINALITY, "src", is_wrong[codes])
        self._relate(key, before[(is_wrong & _marked(codes, count))[kept]])

    def _note_lost_sources(self, key: str, edge: EdgeType) -> None:
        """Sources that had edges, need some and have none now, unless they are gone themselves."""
        name = committed(end_name(key, "src"))
        before = self._keys.of(name)
        if not len(before):
            return
        is_lost = ~self._is_among(name, [end_name(key, "src")])
        node_key = self._job.catalog.nodes[edge.source].table_key
        if node_key in self._loaded:
            is_lost &= self._is_among(name, [id_name(node_key), claimed_name(node_key)])
        if is_lost.any():
            lost = np.sort(before[is_lost], order="address")
            (codes,), _ = unified(lost)
            _, first = np.unique(codes, return_index=True)
            self._found.lost_sources[key] += len(first)
            self._keep(lost_name(key), **{ADDRESSES: lost["address"][first]})

    def _look_at_tuples(self, key: str, number: int) -> None:
        name = unique_name(key, number)
        given, before = self._keys.of(name), self._keys.of(committed(name))
        if not len(given):
            return
        (codes, there), count = unified(given, before)
        is_wrong = np.bincount(codes, minlength=count)[codes] > 1
        if not self._is_overwrite and len(before):
            # With several holders of a tuple one of them is another row than its own.
            (own, owner), _ = unified(given, before, other=True)
            least, most = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
            np.minimum.at(least, there, owner)
            np.maximum.at(most, there, owner)
            is_held = (most[codes] >= 0) & ((least[codes] != own) | (most[codes] != own))
            is_wrong |= is_held
            self._relate(key, before[_marked(codes[is_held], count)[there]])
        self._suspect(key, Rule.UNIQUE, name, is_wrong)

    def _orphans(self) -> Iterator[Orphans]:
        """Committed edges at nodes that the load does not bring again."""
        for node_key, node in self._types.items():
            if not isinstance(node, NodeType):
                continue
            for edge in self._job.catalog.edges.values():
                for side, end in zip(SIDES, (edge.source, edge.target), strict=True):
                    name = committed(end_name(edge.table_key, side))
                    edges = self._keys.of(name)
                    if edge.table_key in self._loaded or end != node.name or not len(edges):
                        continue
                    stays = self._is_among(name, [id_name(node_key), claimed_name(node_key)])
                    lost = np.sort(edges["address"][~stays])
                    if len(lost):
                        first = lost[: self._job.listed]
                        yield Orphans(node.name, edge.name, side, len(lost), first)

    def _is_among(self, name: str, others: list[str]) -> np.ndarray:
        """Which keys of a section are among those of others."""
        (codes, *rest), count = unified(*(self._keys.of(one) for one in (name, *others)))
        is_among: np.ndarray = _marked(np.concatenate(rest), count)[codes]
        return is_among


class _Keys:
    """The keys of a partition by section, with the part that each came from."""

    def __init__(self, job: Job, received: Received) -> None:
        names = section_names(job.catalog)
        self._blocks = {names[section]: blocks for section, blocks in received.items()}
        self._keys: dict[str, np.ndarray] = {}

    def of(self, name: str) -> np.ndarray:
        if name not in self._keys:
            blocks = self._blocks.get(name, ())
            parts = [np.frombuffer(content, dtype_of(name)) for _, content in blocks]
            self._keys[name] = np.concatenate(parts) if parts else np.zeros(0, dtype_of(name))
        return self._keys[name]

    def parts(self, name: str) -> np.ndarray:
        """The tasks that emitted parts of the input come first, in their order."""
        blocks = self._blocks.get(name, ())
        sizes = [len(content) // dtype_of(name).itemsize for _, content in blocks]
        return np.repeat(np.array([writer for writer, _ in blocks], np.int32), sizes)


def unified(*sections: np.ndarray, other: bool = False) -> tuple[list[np.ndarray], int]:
    """A code for each key, the same for equal hashes; and how many codes there are.

    Args:
        other: the other hash of each key is meant.
    """
    names = ("o1", "o2") if other else ("h1", "h2")
    h1, h2 = (np.concatenate([keys[name] for keys in sections]) for name in names)
    order = np.argsort(h1, kind="stable")
    one, two = h1[order], h2[order]
    if ((one[1:] == one[:-1]) & (two[1:] != two[:-1])).any():  # they share half of their hash
        order = np.lexsort((h2, h1))
        one, two = h1[order], h2[order]
    is_next = np.ones(len(order), np.int64)
    is_next[1:] = (one[1:] != one[:-1]) | (two[1:] != two[:-1])
    codes = np.empty(len(order), np.int64)
    codes[order] = np.cumsum(is_next) - 1
    ends = np.cumsum([len(keys) for keys in sections])[:-1]
    return np.split(codes, ends), int(is_next.sum())


def _differ(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Whether the other hashes of keys differ, key by key."""
    found: np.ndarray = (one["o1"] != two["o1"]) | (one["o2"] != two["o2"])
    return found


def _marked(codes: np.ndarray, count: int) -> np.ndarray:
    found = np.zeros(count, np.bool_)
    found[codes] = True
    return found


def _distinct_counts(groups: np.ndarray, members: np.ndarray, count: int) -> np.ndarray:
    """How many different members each of so many groups has."""
    pairs = np.unique(np.stack([groups, members], axis=1), axis=0)
    return np.bincount(pairs[:, 0], minlength=count)
