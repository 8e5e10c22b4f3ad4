"""Any sequence of table operations equals the same sequence on a dict, at every version of it.

After each step the rows, and what the indexes find, are compared with the dict; at the end every
version made on the way still holds its rows, and so do the kept ones once all else is swept.
"""

from __future__ import annotations

import copy
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.fragments import combine, write_append
from omnigraph_core.storage.indexes import index_coverage, stage_drop_index, stage_index
from omnigraph_core.storage.lookup import ADDRESS, find_rows, take_rows
from omnigraph_core.storage.segments import IndexRequest, Metric, SegmentKind
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import (
    stage_append,
    stage_delete_addresses,
    stage_overwrite,
    stage_replace,
)
from omnigraph_core.storage.sweep import PERMANENT, delete_files, list_files, reachable_files
from tests.support.examples import examples
from tests.support.parts import LARGE, LOCATION, contents, new_table, part, rows
from tests.support.table_writes import (
    add_filled_column,
    add_null_column,
    drop_column,
    rename_column,
    stage_delete_keys,
    stage_delete_where,
    stage_upsert,
)

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table

Row = dict[str, Any]
IDS = 12
WORDS = ("bolt", "nut", "washer")
REQUESTS = (
    IndexRequest("id", SegmentKind.BTREE, "id_btree"),
    IndexRequest("stock", SegmentKind.BTREE, "stock_btree"),
    IndexRequest("stock", SegmentKind.BITMAP, "stock_btree"),
    IndexRequest("tags", SegmentKind.LABEL_LIST, "tags_labels"),
    IndexRequest("name", SegmentKind.INVERTED, "name_text"),
    IndexRequest("shape", SegmentKind.IVF_FLAT, "shape_vectors", Metric.L2),
    IndexRequest("shape", SegmentKind.IVF_HNSW_SQ, "shape_vectors", Metric.COSINE),
)
EXTRAS = {
    "number": (pa.int64(), 4),
    "text": (pa.utf8(), "four"),
    "list": (pa.list_(pa.field("item", pa.utf8())), ["four"]),
    "vector": (pa.list_(pa.field("item", pa.float32()), 2), [4.0, 5.0]),
}


@dataclass(frozen=True)
class Step:
    """One operation; what it needs of the numbers depends on its kind."""

    kind: str
    ids: tuple[int, ...]
    number: int
    extra: str


KINDS = (
    *("append", "upsert", "upsert", "delete_keys", "delete_where", "staged"),
    *("replace", "replace", "delete_addresses"),
    *("overwrite", "compact", "index", "index", "index", "index", "drop_index"),
    *("add_null", "add_filled", "rename", "drop"),
)
STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(KINDS),
        st.lists(st.integers(0, IDS - 1), min_size=1, max_size=5, unique=True).map(tuple),
        st.integers(0, 20),
        st.sampled_from(sorted(EXTRAS)),
    ),
    min_size=1,
    max_size=24,
)


@dataclass
class Model:
    """The table under test beside the dict that says what it must hold."""

    table: Table
    rows: dict[str, Row] = field(default_factory=dict)
    extras: dict[str, str] = field(default_factory=dict)
    versions: list[tuple[int, dict[str, Row]]] = field(default_factory=list)
    named: int = 0

    def make(self, ids: list[str], number: int) -> list[Row]:
        """Rows with these ids; every fourth number leaves out what may be null."""
        made = []
        for place, key in enumerate(ids):
            seed = number + place
            row = part(key, stock=seed, name=f"{WORDS[seed % 3]} m{seed}")
            if seed % 4 == 0:
                row |= {"name": None, "tags": None, "shape": None, "drawing": None}
            if seed % 7 == 0:
                row["drawing"] = LARGE
            extras = {name: EXTRAS[kind][1] for name, kind in self.extras.items()}
            made.append({**row, **(extras if seed % 2 else dict.fromkeys(extras))})
        return made

    def arrow(self, items: list[Row]) -> pa.Table:
        return rows(items, self.table.schema)

    def moved(self, table: Table | None, *, is_change: bool) -> None:
        assert (table is not None) == is_change
        if table is not None:
            self.table = table
            self.versions.append((table.physical_version, copy.deepcopy(self.rows)))

    def put(self, items: list[Row]) -> None:
        self.rows |= {item["id"]: item for item in items}

    def new_name(self) -> str:
        self.named += 1
        return f"extra{self.named}"


def run_append(model: Model, step: Step) -> None:
    new = model.make([key for key in keys(step) if key not in model.rows], step.number)
    model.put(new)
    model.moved(stage_append(model.table, model.arrow(new)), is_change=bool(new))


def run_staged(model: Model, step: Step) -> None:
    new = model.make([key for key in keys(step) if key not in model.rows], step.number)
    base = model.table
    pieces = [write_append(base, model.arrow([item]).to_reader()) for item in new]
    model.put(new)
    model.moved(stage_append(base, combine(base, pieces)), is_change=bool(new))


def run_upsert(model: Model, step: Step) -> None:
    given = model.make(keys(step), step.number)
    model.put(given)
    model.moved(stage_upsert(model.table, model.arrow(given)), is_change=True)


def run_replace(model: Model, step: Step) -> None:
    """Some rows go, others come, as one step: those with the same ids are among them."""
    given = model.make(keys(step), step.number)
    gone = {*keys(step), str(step.number % IDS)}
    there = addresses(model.table, gone)
    for key in gone:
        model.rows.pop(key, None)
    model.put(given)
    model.moved(stage_replace(model.table, model.arrow(given), there), is_change=True)


def run_delete_addresses(model: Model, step: Step) -> None:
    there = addresses(model.table, set(keys(step)))
    gone = [key for key in keys(step) if model.rows.pop(key, None) is not None]
    model.moved(stage_delete_addresses(model.table, there), is_change=bool(gone))


def addresses(table: Table, ids: set[str]) -> pa.ChunkedArray:
    found = find_rows(table, "id", pa.array(sorted(ids)), ["id"], has_addresses=True)
    assert take_rows(table, found.column(ADDRESS), ["id"]) == found.select(["id"])
    return found.column(ADDRESS)


def run_delete_keys(model: Model, step: Step) -> None:
    gone = [key for key in keys(step) if model.rows.pop(key, None) is not None]
    model.moved(stage_delete_keys(model.table, pa.array(keys(step))), is_change=bool(gone))


def run_delete_where(model: Model, step: Step) -> None:
    gone = [key for key, row in model.rows.items() if row["stock"] > step.number]
    for key in gone:
        del model.rows[key]
    staged = stage_delete_where(model.table, f"`stock` > {step.number}")
    model.moved(staged, is_change=bool(gone))


def run_overwrite(model: Model, step: Step) -> None:
    given = model.make(keys(step) if step.number % 3 else [], step.number)
    is_change = bool(given or model.rows)
    model.rows.clear()
    model.put(given)
    model.moved(stage_overwrite(model.table, model.arrow(given)), is_change=is_change)


def run_compact(model: Model, step: Step) -> None:
    before = model.table.count_fragments()
    staged = compact(model.table, target_rows=4 + step.number)
    if staged is not None:
        assert staged.count_fragments() <= before
        assert compact(staged, target_rows=4 + step.number) is None
    model.moved(staged, is_change=staged is not None)


def run_index(model: Model, step: Step) -> None:
    staged = stage_index(model.table, REQUESTS[step.number % len(REQUESTS)])
    model.moved(staged, is_change=staged is not None)


def run_drop_index(model: Model, step: Step) -> None:
    names = [coverage.name for coverage in index_coverage(model.table)]
    if names:
        name = names[step.number % len(names)]
        model.moved(stage_drop_index(model.table, name), is_change=True)


def run_add_null(model: Model, step: Step) -> None:
    name = model.new_name()
    model.extras[name] = step.extra
    for row in model.rows.values():
        row[name] = None
    model.moved(add_null_column(model.table, pa.field(name, EXTRAS[step.extra][0])), is_change=True)


def run_add_filled(model: Model, step: Step) -> None:
    name = model.new_name()
    type, value = EXTRAS[step.extra]
    model.extras[name] = step.extra
    for row in model.rows.values():
        row[name] = value
    filled = add_filled_column(model.table, pa.field(name, type), pa.scalar(value, type))
    model.moved(filled, is_change=True)


def run_rename(model: Model, step: Step) -> None:
    if model.extras:
        old = list(model.extras)[step.number % len(model.extras)]
        new = model.new_name()
        model.extras[new] = model.extras.pop(old)
        for row in model.rows.values():
            row[new] = row.pop(old)
        model.moved(rename_column(model.table, old, new), is_change=True)


def run_drop(model: Model, step: Step) -> None:
    if model.extras:
        name = list(model.extras)[step.number % len(model.extras)]
        del model.extras[name]
        for row in model.rows.values():
            del row[name]
        model.moved(drop_column(model.table, name), is_change=True)


RUN = {kind: globals()[f"run_{kind}"] for kind in KINDS}


def keys(step: Step) -> list[str]:
    return [str(number) for number in step.ids]


def check(table: Table, expected: dict[str, Row]) -> None:
    assert contents(table) == expected
    assert table.count_rows() == len(expected)
    asked = "`id` IN ('1', '4', '9', 'none')"
    found = table.read(["id"], where=asked).column("id").to_pylist()
    assert sorted(found) == sorted(set(expected) & {"1", "4", "9"})
    found = table.read(["id"], where="`stock` BETWEEN 3 AND 9").column("id").to_pylist()
    assert sorted(found) == sorted(key for key, row in expected.items() if 3 <= row["stock"] <= 9)
    found = table.read(["id"], where="array_has(`tags`, 'm1')").column("id").to_pylist()
    tagged = [key for key, row in expected.items() if "m1" in (row["tags"] or ())]
    assert sorted(found) == sorted(tagged)
    for coverage in index_coverage(table):
        if coverage.kind is SegmentKind.INVERTED:
            check_text(table, expected)
        if coverage.kind.is_vector:
            check_vectors(table, coverage.metric)


def check_text(table: Table, expected: dict[str, Row]) -> None:
    for word in WORDS:
        query = {"columns": ["name"], "query": word}
        hits = table.dataset.to_table(columns=["id", "_score"], full_text_query=query)
        named = [key for key, row in expected.items() if word in (row["name"] or "").split()]
        assert sorted(hits.column("id").to_pylist()) == sorted(named)


def check_vectors(table: Table, metric: Metric | None) -> None:
    assert metric is not None
    answers = []
    for uses_index in (True, False):
        query = {"column": "shape", "q": [1.0, 2.0, 3.0, 4.0], "k": IDS, "metric": metric.value}
        found = table.dataset.to_table(
            columns=["id", "_distance"],
            nearest={**query, "use_index": uses_index, "refine_factor": 4, "nprobes": 9},
        )
        answers.append(sorted(found.column("id").to_pylist()))
    assert answers[0] == answers[1]


@settings(max_examples=examples(40))
@given(STEPS, st.sets(st.integers(0, 23)))
def test_a_table_is_a_dict_at_every_version(steps: list[Step], kept: set[int]) -> None:
    with tempfile.TemporaryDirectory() as root:
        model = Model(new_table(root))
        for step in steps:
            RUN[step.kind](model, step)
            check(model.table, model.rows)
        for version, expected in model.versions:
            check_cold(root, version, expected)
        retained = [pair for place, pair in enumerate(model.versions) if place in kept]
        sweep(root, [version for version, _ in retained])
        for version, expected in retained:
            check_cold(root, version, expected)


def check_cold(root: str, version: int, expected: dict[str, Row]) -> None:
    check(open_table(open_store(root), LOCATION, version), expected)


def sweep(root: str, versions: list[int]) -> None:
    store = open_store(root)
    listed = list_files(store, LOCATION)
    marked = [reachable_files(open_table(store, LOCATION, version)) for version in versions]
    reachable = frozenset().union(*marked)
    assert reachable - PERMANENT <= {file.unit for file in listed}
    delete_files(store, LOCATION, [file.path for file in listed if file.unit not in reachable])
