"""Suspected rows looked at again: the checks of every write, on as many rows as they need to see.

Rows that share a value with a suspected one are suspected with it. Beside them the checks need the
nodes that suspected edges end at and, where a least number of edges is asked for, all edges of
their sources; then what they find is what they would find in the whole input.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.catalog import EdgeType
from omnigraph_core.spark.ingest.find import find_rows_of_input, searches
from omnigraph_core.spark.ingest.inspect import PART
from omnigraph_core.spark.ingest.keys import PLACE, ROW, end_name, id_name, needs_sources
from omnigraph_core.spark.ingest.orphans import Orphans, report_all
from omnigraph_core.spark.ingest.read_part import read_keys
from omnigraph_core.spark.ingest.read_table import graph_type
from omnigraph_core.write.batches import FRESH, LINE, SOURCE
from omnigraph_core.write.collect import NUMBER, no_keys
from omnigraph_core.write.integrity import TableDelta, check_delta
from omnigraph_core.write.load_model import LoadMode
from omnigraph_core.write.view import CommittedView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from omnigraph_core.spark.ingest.model import Job, Keys, Part
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import GraphType, Places

_NO_IDS: Final = pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class Input:
    """The parts of the input, once they are read."""

    parts: Sequence[Part]
    first_lines: Sequence[int]
    """By part how many lines its source has before it."""
    keys: tuple[tuple[int, Keys], ...]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What was found in the buckets; rows are `(part, row)`."""

    loaded: Sequence[str]
    """The keys of the tables the input has rows for."""
    suspects: Mapping[str, Sequence[pa.Table]]
    replaced: Mapping[str, Sequence[pa.Table]]
    """Rows that do not count: later ones replace them."""
    lost_sources: Mapping[str, Sequence[pa.Array]]
    orphans: Sequence[Orphans]


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
    suspicion: Suspicion,
    view: CommittedView,
    places: Places,
    violations: Violations,
    runner: Runner,
) -> dict[str, pa.Table]:
    """Report what suspected rows really break.

    Returns:
        By table key the rows that take part in a problem, as `(part, row, place)`.
    """
    return _Check(job, input, suspicion, view, runner).run(places, violations)


class _Check:
    def __init__(
        self,
        job: Job,
        input: Input,
        suspicion: Suspicion,
        view: CommittedView,
        runner: Runner,
    ) -> None:
        self._job = job
        self._input = input
        self._suspicion = suspicion
        self._view = view
        self._runner = runner
        self._replaced = _Rows()
        for key, tables in suspicion.replaced.items():
            for rows in tables:
                self._replaced.add(key, rows)
        self._wanted = _Rows()
        self._have = _Rows()
        self._keys: dict[str, list[pa.Table]] = defaultdict(list)
        self._claimed: dict[str, list[pa.Array]] = defaultdict(list)

    def run(self, places: Places, violations: Violations) -> dict[str, pa.Table]:
        for key, tables in self._suspicion.suspects.items():
            for rows in tables:
                self._wanted.add(key, rows)
        self._fetch()
        self._add_edges_of_sources()
        self._add_ends()
        deltas = {key: self._delta(key) for key in self._suspicion.loaded}
        view = _SuspectedView(self._view, self._suspicion.lost_sources)
        bad = check_delta(
            deltas,
            self._job.catalog,
            view,
            places,
            violations,
            report_orphans=lambda: report_all(self._job, self._suspicion.orphans, violations),
        )
        return {key: _refs(deltas[key].rows.filter(mask)) for key, mask in bad.items()}

    def _fetch(self) -> None:
        """Read the keys of wanted rows that are not there yet."""
        by_part: dict[int, dict[str, pa.Array]] = defaultdict(dict)
        for key, parts in self._wanted.without(self._have).items():
            for part, numbers in parts.items():
                numbers = numbers - self._replaced.numbers[key][part]
                if numbers:
                    by_part[part][key] = pa.array(sorted(numbers), pa.int64())
        tasks = [(self._input.parts[number], keys) for number, keys in sorted(by_part.items())]
        found = self._runner.map(
            partial(_read_keys, self._job), tasks, name="read suspected records again"
        )
        for (read, wanted), tables in zip(tasks, found, strict=True):
            for key, rows in tables.items():
                self._keys[key].append(self._at_place(rows, read))
                self._have.numbers[key][read.number].update(wanted[key].to_pylist())

    def _at_place(self, rows: pa.Table, part: Part) -> pa.Table:
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
        for key in self._suspicion.loaded:
            type = self._type(key)
            if isinstance(type, EdgeType):
                for side, node in (("src", type.source), ("dst", type.target)):
                    node_key = self._job.catalog.nodes[node].table_key
                    node_keys[id_name(node_key)] = node_key
                    for rows in self._keys[key]:
                        ends[id_name(node_key)] += rows.column(side).chunks
                    if side == "src":
                        ends[id_name(node_key)] += self._suspicion.lost_sources.get(key, ())
        values = {name: pc.unique(pa.chunked_array(c, pa.utf8())) for name, c in ends.items()}
        for name, rows, claimed in self._find(values):
            self._wanted.add(node_keys[name], rows)
            self._claimed[node_keys[name]].append(claimed)
        if values:
            self._fetch()

    def _find(self, values: Mapping[str, pa.Array]) -> Iterable[tuple[str, pa.Table, pa.Array]]:
        tasks = list(searches(self._job, self._input.keys, values))
        for hits in self._runner.map(
            partial(find_rows_of_input, self._job), tasks, name="find rows that belong together"
        ):
            for name, rows in hits.rows.items():
                yield name, rows, hits.claimed[name]

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

    def __init__(
        self, whole: CommittedView, lost_sources: Mapping[str, Sequence[pa.Array]]
    ) -> None:
        super().__init__(whole.open)
        self._lost_sources = lost_sources

    def scan(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        assert tuple(columns) == ("src",)  # all that is asked for without values to look up
        lost = pa.chunked_array(list(self._lost_sources.get(table_key, ())), pa.utf8())
        return pa.table({"src": lost})


def _none(type: GraphType) -> pa.Table:
    """The columns of keys with their places, without rows."""
    empty = no_keys(type)
    for name, kind in ((PLACE, pa.int64()), (PART, pa.int32())):
        empty = empty.append_column(name, pa.array([], kind))
    return empty


def _read_keys(job: Job, task: tuple[Part, Mapping[str, pa.Array]]) -> dict[str, pa.Table]:
    return read_keys(job, *task)


def _refs(rows: pa.Table) -> pa.Table:
    return rows.select([PART, NUMBER, PLACE]).rename_columns([PART, ROW, PLACE])


def _by_part(rows: pa.Table) -> Iterable[tuple[int, np.ndarray]]:
    parts, numbers = rows.column(PART).to_numpy(), rows.column(ROW).to_numpy()
    for part in np.unique(parts):
        yield int(part), numbers[parts == part]
