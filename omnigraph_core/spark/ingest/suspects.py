"""Suspected rows looked at again: the checks of every write, on as many rows as they need to see.

Rows that share a value with a suspected one are suspected with it. Beside them the checks need the
nodes that suspected edges end at and, where a least number of edges is asked for, all edges of
their sources; then what they find is what they would find in the whole input.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.catalog import EdgeType
from omnigraph_core.spark.ingest.find import (
    Wanted,
    find_hashed_rows,
    find_rows_of_part,
    read_wanted,
)
from omnigraph_core.spark.ingest.inspect import (
    ADDRESSES,
    PART,
    ROW,
    lost_name,
    related_name,
    replaced_name,
    suspected_ends_name,
    suspects_name,
)
from omnigraph_core.spark.ingest.keys import (
    HASH,
    PLACE,
    SIDES,
    end_name,
    graph_type,
    id_name,
    needs_sources,
)
from omnigraph_core.storage.lookup import take_rows
from omnigraph_core.violations import Rule
from omnigraph_core.write.batches import FRESH, LINE, SOURCE
from omnigraph_core.write.collect import NUMBER, no_keys
from omnigraph_core.write.endpoints import report_orphans
from omnigraph_core.write.integrity import TableDelta, check_delta
from omnigraph_core.write.load_model import LoadMode
from omnigraph_core.write.view import CommittedView

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from omnigraph_core.spark.ingest.comparing import Comparison
    from omnigraph_core.spark.ingest.keys import PartKeys
    from omnigraph_core.spark.ingest.model import Job, PartRead
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import GraphType, Places

_MOST_SUSPECTS: Final = 1_000_000
"""Rows that are looked at again; what is beyond is counted as it was suspected."""
_NO_IDS: Final = pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class Input:
    """The parts of the input, once they are read."""

    parts: Sequence[PartRead]
    first_lines: Sequence[int]
    """By part how many lines its source has before it."""
    keys: Sequence[PartKeys]


@dataclass(slots=True)
class _Rows:
    """Rows of tables, as sets of `(part, row)`."""

    numbers: dict[str, dict[int, set[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )

    def add(self, table_key: str, rows: pa.Table) -> None:
        for part, group in _by_part(rows):
            self.numbers[table_key][part].update(group.tolist())

    def without(self, others: _Rows) -> dict[str, dict[int, set[int]]]:
        """Those that are not among others."""
        return {
            key: {part: rows - others.numbers[key][part] for part, rows in parts.items()}
            for key, parts in self.numbers.items()
        }


def check_suspects(
    job: Job,
    input: Input,
    comparison: Comparison,
    view: CommittedView,
    places: Places,
    violations: Violations,
    runner: Runner,
) -> dict[str, pa.Table]:
    """Report what suspected rows really break. Those that are too many are only counted.

    Returns:
        By table key the rows that take part in a problem, as `(part, row, place)`.
    """
    return _Check(job, input, comparison, view, runner).run(places, violations)


class _Check:
    def __init__(
        self,
        job: Job,
        input: Input,
        comparison: Comparison,
        view: CommittedView,
        runner: Runner,
    ) -> None:
        self._job = job
        self._input = input
        self._comparison = comparison
        self._view = view
        self._runner = runner
        self._wanted = _Rows()
        self._have = _Rows()
        self._ends: dict[int, dict[tuple[str, str], list[np.ndarray]]] = {}
        self._keys: dict[str, list[pa.Table]] = defaultdict(list)
        self._claimed: dict[str, list[pa.Array]] = defaultdict(list)
        self._lost_sources: dict[str, pa.Array] = {}
        self._left_sources: dict[str, list[pa.Array]] = defaultdict(list)
        """Where edges start in rows that later ones replace."""

    def run(self, places: Places, violations: Violations) -> dict[str, pa.Table]:
        self._choose(violations)
        self._find_related()
        self._fetch()
        self._add_edges_of_sources()
        self._add_ends()
        deltas = {key: self._delta(key) for key in self._comparison.loaded}
        view = _SuspectedView(self._view, self._lost_sources)
        bad = check_delta(
            deltas,
            self._job.catalog,
            view,
            places,
            violations,
            report_orphans=lambda: self._report_orphans(violations),
        )
        return {key: _refs(deltas[key].rows.filter(mask)) for key, mask in bad.items()}

    def _choose(self, violations: Violations) -> None:
        """What partitions suspect; those that are beyond a limit are counted as suspected."""
        room = _MOST_SUSPECTS
        lost: dict[str, list[np.ndarray]] = defaultdict(list)
        for found in self._comparison.inspected:
            if not found.suspects and not found.lost_sources:
                continue
            tables = self._job.scratch.read_tables(found.name)
            for key, rule in found.suspects:
                rows = tables.get(suspects_name(key, rule))
                if rows is not None:
                    self._wanted.add(key, rows.slice(0, room))
                    violations.count(rule, max(rows.num_rows - room, 0))
                    room = max(room - rows.num_rows, 0)
                for side in SIDES:
                    ends = tables.get(suspected_ends_name(key, rule, side))
                    if ends is not None:
                        room = self._choose_ends(key, rule, side, ends, room, violations)
            for key in found.lost_sources:
                addresses = tables[lost_name(key)].column(ADDRESSES)
                lost[key].append(addresses.slice(0, room).to_numpy())
                violations.count(Rule.CARDINALITY, max(len(addresses) - room, 0))
                room = max(room - len(addresses), 0)
        for key, found_there in lost.items():
            # In the order in which one process would come across them.
            addresses = pa.array(np.sort(np.concatenate(found_there)))
            sources = take_rows(self._view.open(key), addresses, ("src",)).column("src")
            self._lost_sources[key] = pa.concat_arrays([_NO_IDS, *sources.chunks])

    def _choose_ends(
        self, key: str, rule: Rule, side: str, ends: pa.Table, room: int, violations: Violations
    ) -> int:
        """Have the edges at some ends looked at; how many more may be."""
        counts = ends.column("count").to_numpy().astype(np.int64)
        total = np.cumsum(counts)
        chosen = total - counts < room  # also the one that goes beyond it: a hub may be alone
        violations.count(rule, int(counts[~chosen].sum()))
        hashes = np.zeros(int(chosen.sum()), HASH)
        for name in ("h1", "h2"):
            hashes[name] = ends.column(name).to_numpy()[chosen]
        parts = ends.column(PART).to_numpy()[chosen]
        for part in np.unique(parts).tolist():
            found = self._ends.setdefault(part, {}).setdefault((key, side), [])
            found.append(hashes[parts == part])
        return max(room - int(total[-1]), 0)

    def _find_related(self) -> None:
        """Have rows looked at that replace committed ones which suspected rows meet."""
        tables = {}
        for key in self._comparison.loaded:
            name = related_name(key)
            found = [
                self._job.scratch.read_tables(kept)[name] for kept in self._comparison.objects(name)
            ]
            if found:
                tables[key] = pa.concat_tables(found)
        if tables:
            name = self._job.scratch.put_tables("sought", tables)
            tasks = [(keys, name) for keys in self._input.keys]
            for hits in self._runner.map(
                partial(find_hashed_rows, self._job), tasks, name="find rows that belong together"
            ):
                for key, rows in hits.items():
                    self._wanted.add(key, rows)

    def _report_orphans(self, violations: Violations) -> None:
        """Report the orphans of all partitions, in the order of the schema."""
        found = [orphans for part in self._comparison.inspected for orphans in part.orphans]
        catalog = self._job.catalog
        for node, edge, side in itertools.product(catalog.nodes, catalog.edges.values(), SIDES):
            same = [
                one for one in found if (one.node, one.edge, one.side) == (node, edge.name, side)
            ]
            if same:
                first = np.sort(np.concatenate([one.first for one in same]))[: self._job.listed]
                table = self._view.open(edge.table_key)
                listed = take_rows(table, pa.array(first), ("id", side))
                count = sum(one.count for one in same)
                report_orphans(edge.name, side, node, listed, count, violations)

    def _fetch(self) -> None:
        """Read the keys of wanted rows that are not there yet."""
        numbers: dict[int, dict[str, np.ndarray]] = defaultdict(dict)
        for key, parts in self._wanted.without(self._have).items():
            for part, rows in parts.items():
                if rows:
                    numbers[part][key] = np.array(sorted(rows), np.int64)
        tasks = [
            Wanted(
                self._input.keys[part],
                numbers.get(part, {}),
                {at: np.concatenate(found) for at, found in self._ends.get(part, {}).items()},
            )
            for part in sorted(numbers.keys() | self._ends.keys())
        ]
        self._ends = {}
        found = self._runner.map(
            partial(read_wanted, self._job), tasks, name="read suspected records again"
        )
        for task, tables in zip(tasks, found, strict=True):
            read = self._input.parts[task.keys.part]
            for key, keys in tables.items():
                self._have.numbers[key][read.number].update(keys.column(NUMBER).to_pylist())
                self._keys[key].append(self._at_place(keys, read))
        for key, fetched in self._keys.items():
            if fetched:
                self._keys[key] = [self._staying(key, pa.concat_tables(fetched))]

    def _staying(self, key: str, rows: pa.Table) -> pa.Table:
        """The rows that no later row of the same id replaces."""
        codes = _pairs(rows.column(PART), rows.column(NUMBER))
        stays = np.ones(len(codes), np.bool_)
        for name in self._comparison.objects(replaced_name(key)):
            gone = self._job.scratch.read_tables(name)[replaced_name(key)]
            stays &= ~np.isin(codes, _pairs(gone.column(PART), gone.column(ROW)))
        if not stays.all() and needs_sources(self._type(key)):
            gone_from = rows.filter(pa.array(~stays)).column("src")
            self._left_sources[key] += gone_from.drop_null().chunks
        return rows.filter(pa.array(stays))

    def _at_place(self, rows: pa.Table, part: PartRead) -> pa.Table:
        """The rows with places in the whole input."""
        count = rows.num_rows
        lines = pc.add(rows.column(LINE), self._input.first_lines[part.number])
        sources = pa.array(np.full(count, part.source_index, np.int32))
        for name, column in ((LINE, lines), (SOURCE, sources)):
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, rows.schema.field(place), column)
        return rows.append_column(PART, pa.array(np.full(count, part.number, np.int32)))

    def _add_edges_of_sources(self) -> None:
        """All edges of sources that may come to have too few."""
        sources: dict[str, pa.Array] = {}
        for key in list(self._keys):
            if needs_sources(self._type(key)):
                rows = pa.concat_tables(self._keys[key])
                chunks = [*rows.column("src").chunks, *self._old_sources(key, rows).chunks]
                chunks += self._left_sources[key]
                sources[end_name(key, "src")] = pc.unique(pa.chunked_array(chunks, pa.utf8()))
        names = {end_name(key, "src"): key for key in self._keys}
        for name, rows, _ in self._find(sources):
            self._wanted.add(names[name], rows)
        if sources:
            self._fetch()

    def _old_sources(self, key: str, rows: pa.Table) -> pa.ChunkedArray:
        """Where committed edges start that these replace."""
        known = rows.filter(pc.invert(rows.column(FRESH))).column("id")
        if self._job.mode is not LoadMode.MERGE or not len(known):
            return pa.chunked_array([], pa.utf8())
        return self._view.rows(key, "id", known, ("src",)).column("src")

    def _add_ends(self) -> None:
        """The nodes of the input that the edges end at."""
        ends: dict[str, list[pa.Array]] = defaultdict(list)
        node_keys = {}
        for key in self._comparison.loaded:
            type = self._type(key)
            if isinstance(type, EdgeType):
                for side, node in (("src", type.source), ("dst", type.target)):
                    node_key = self._job.catalog.nodes[node].table_key
                    node_keys[id_name(node_key)] = node_key
                    for rows in self._keys[key]:
                        ends[id_name(node_key)] += rows.column(side).chunks
                    if side == "src" and key in self._lost_sources:
                        ends[id_name(node_key)].append(self._lost_sources[key])
        values = {name: pc.unique(pa.chunked_array(c, pa.utf8())) for name, c in ends.items()}
        for name, rows, claimed in self._find(values):
            self._wanted.add(node_keys[name], rows)
            self._claimed[node_keys[name]].append(claimed)
        if values:
            self._fetch()

    def _find(self, values: Mapping[str, pa.Array]) -> Iterator[tuple[str, pa.Table, pa.Array]]:
        """Rows of the input that have one of the values, and ids that only refused records have."""
        if not any(len(found) for found in values.values()):
            return
        sought = {name: pa.table({"id": found}) for name, found in values.items()}
        name = self._job.scratch.put_tables("sought", sought)
        tasks = [(keys, name) for keys in self._input.keys]
        for hits in self._runner.map(
            partial(find_rows_of_part, self._job), tasks, name="find rows that belong together"
        ):
            for section, (rows, claimed) in hits.items():
                yield section, rows, claimed

    def _delta(self, key: str) -> TableDelta:
        rows = pa.concat_tables([_none(self._type(key)), *self._keys[key]])
        order = np.lexsort((rows.column(NUMBER).to_numpy(), rows.column(PART).to_numpy()))
        mode = self._job.mode
        return TableDelta(
            self._type(key),
            rows.take(pa.array(order)),
            _NO_IDS,
            is_overwrite=mode is LoadMode.OVERWRITE,
            is_strict=mode is LoadMode.APPEND,
            claimed=pa.concat_arrays([_NO_IDS, *self._claimed[key]]),
        )

    def _type(self, key: str) -> GraphType:
        return graph_type(self._job, key)


class _SuspectedView(CommittedView):
    """Committed rows beside suspected ones: of sources that had edges, those that have none now."""

    def __init__(self, whole: CommittedView, lost_sources: Mapping[str, pa.Array]) -> None:
        super().__init__(whole.open)
        self._lost_sources = lost_sources

    def scan(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        assert tuple(columns) == ("src",)  # all that is asked for without values to look up
        return pa.table({"src": self._lost_sources.get(table_key, _NO_IDS)})


def _none(type: GraphType) -> pa.Table:
    """The columns of keys with their places, without rows."""
    empty = no_keys(type)
    for name, kind in ((PLACE, pa.int64()), (PART, pa.int32())):
        empty = empty.append_column(name, pa.array([], kind))
    return empty


def _refs(rows: pa.Table) -> pa.Table:
    return rows.select([PART, NUMBER, PLACE]).rename_columns([PART, ROW, PLACE])


def _pairs(parts: pa.ChunkedArray, rows: pa.ChunkedArray) -> np.ndarray:
    """One number for a part and a row of it."""
    pairs: np.ndarray = parts.to_numpy().astype(np.int64) << 32 | rows.to_numpy().astype(np.int64)
    return pairs


def _by_part(rows: pa.Table) -> Iterable[tuple[int, np.ndarray]]:
    parts, numbers = rows.column(PART).to_numpy(), rows.column(ROW).to_numpy()
    for part in np.unique(parts):
        yield int(part), numbers[parts == part]
