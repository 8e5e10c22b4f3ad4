"""Work on tables in parts comes to the same as work done at once, down to what cannot be learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.spark.maintain.compaction import compact_tables
from omnigraph_core.spark.maintain.indexing import index_tables
from omnigraph_core.spark.runner import InProcessRunner
from omnigraph_core.storage import segments
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.fragments import current_fragments
from omnigraph_core.storage.indexes import index_coverage, stage_index
from omnigraph_core.storage.segments import MERGEABLE, IndexRequest, Metric, SegmentKind
from omnigraph_core.storage.staged import stage_append
from tests.support.parts import contents, nearest, new_table, part, parts, present, rows, shaped
from tests.support.table_writes import stage_delete_keys

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

VALUES = {
    SegmentKind.BTREE: ("stock", "`stock` BETWEEN 2 AND 7"),
    SegmentKind.BITMAP: ("stock", "`stock` = 3"),
    SegmentKind.LABEL_LIST: ("tags", "array_has(`tags`, 'm2')"),
    SegmentKind.NGRAM: ("name", "contains(`name`, 'umber1')"),
}
VECTORS = [kind for kind in SegmentKind if kind.is_vector]


class Told(InProcessRunner):
    """A runner that remembers how many tasks each job had."""

    def __init__(self) -> None:
        self.jobs: dict[str, int] = {}

    def map(self, work: Any, tasks: Sequence[Any], *, name: str, on_done: Any = None) -> list[Any]:
        if tasks:
            self.jobs[name] = len(tasks)
        return super().map(work, tasks, name=name, on_done=on_done)


def table_of(root: Path, *fragments: Sequence[dict[str, Any]]) -> Table:
    table = new_table(root)
    for items in fragments:
        table = present(stage_append(table, rows(items)))
    return table


def by_shape(kind: SegmentKind = SegmentKind.IVF_FLAT, metric: Metric = Metric.L2) -> IndexRequest:
    return IndexRequest("shape", kind, "shape_vectors", metric)


@pytest.mark.parametrize("kind", VALUES)
def test_values(tmp_path: Path, kind: SegmentKind) -> None:
    column, where = VALUES[kind]
    others = [part(f"x{number}", name=None, stock=None, tags=None) for number in range(5)]
    table = table_of(tmp_path, parts(range(40)), others, parts(range(40, 90)))
    table = present(stage_delete_keys(table, table.read(["id"]).column(0).slice(3, 4)))
    runner = Told()
    ((indexed, names),) = index_tables(
        runner, [(table, (IndexRequest(column, kind, "it"),))], part_rows=30
    )
    assert names == ("it",)
    (found,) = index_coverage(indexed)
    assert (found.segment_count, found.indexed_fragments) == (1, (0, 1, 2))
    assert runner.jobs == ({"index": 3, "merge indexes": 1} if kind in MERGEABLE else {"index": 1})
    plan = indexed.scanner(["id"], where=where).explain_plan()
    assert "ScalarIndexQuery" in plan
    assert indexed.read(["id"], where=where) == table.read(["id"], where=where)


def test_words(tmp_path: Path) -> None:
    words = IndexRequest("name", SegmentKind.INVERTED, "words")
    table = table_of(tmp_path, parts(range(40)), parts(range(40, 80), name=None), parts([90, 91]))
    ((indexed, _),) = index_tables(InProcessRunner(), [(table, (words,))], part_rows=30)
    whole = present(stage_index(table, words))
    for query in ("bolt", "number7", '"bolt number91"', "nothing"):
        asked = {"columns": ["name"], "query": query}
        scores = [
            each.dataset.to_table(columns=["id", "_score"], full_text_query=asked).sort_by("id")
            for each in (indexed, whole)
        ]
        assert scores[0] == scores[1]
    assert index_coverage(indexed) == index_coverage(whole)


@pytest.mark.parametrize("kind", VECTORS)
@pytest.mark.parametrize("metric", Metric)
def test_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: SegmentKind, metric: Metric
) -> None:
    monkeypatch.setitem(segments._PARTITION_ROWS, kind, 300)
    without = parts(range(50), shape=None)
    table = table_of(tmp_path, shaped(600, 1), without, shaped(600, 2), shaped(100, 3))
    runner = Told()
    ((indexed, _),) = index_tables(runner, [(table, (by_shape(kind, metric),))], part_rows=600)
    assert runner.jobs == (
        {"train indexes": 1, "index": 4, "merge indexes": 1} if kind in MERGEABLE else {"index": 1}
    )
    (found,) = index_coverage(indexed)
    assert (found.segment_count, found.unindexed_rows, found.metric) == (1, 0, metric)
    assert nearest(indexed, 20, metric, nprobes=100, refine_factor=20) == nearest(
        table, 20, metric, use_index=False
    )


@pytest.mark.parametrize(
    "fragments",
    [
        [parts(range(300), shape=None), parts(range(300, 600), shape=None)],
        [parts(range(300), shape=[0.0] * 4), parts(range(300, 600), shape=[0.0] * 4)],
        [shaped(3, 1), shaped(2, 2)],
        [shaped(2, 1), parts(range(300), shape=None)],
        [shaped(300, 1), parts(range(300), shape=[0.0] * 4)],
    ],
    ids=["null", "zero", "few", "hardly any", "some"],
)
def test_vectors_hardly_anything_can_be_learnt_from(
    tmp_path: Path, fragments: list[list[dict[str, Any]]]
) -> None:
    request = by_shape(metric=Metric.COSINE)
    table = table_of(tmp_path, *fragments)
    ((indexed, names),) = index_tables(InProcessRunner(), [(table, (request,))], part_rows=1)
    whole = stage_index(table, request)
    assert (indexed is table) == (names == ()) == (whole is None)
    if whole is not None:
        assert index_coverage(indexed) == index_coverage(whole)
        assert nearest(indexed, 5, Metric.COSINE) == nearest(whole, 5, Metric.COSINE)


def test_several_tables_are_worked_on_together(tmp_path: Path) -> None:
    by_id = IndexRequest("id", SegmentKind.BTREE, "id_btree")
    tables = [
        table_of(tmp_path / name, parts(range(20)), parts(range(20, 40))) for name in ("a", "b")
    ]
    runner = Told()
    done = index_tables(runner, [(table, (by_id, by_shape())) for table in tables], part_rows=20)
    # Vectors are too few to learn from: one task each.
    assert runner.jobs == {"train indexes": 2, "index": 6, "merge indexes": 2}
    assert [names for _, names in done] == [("id_btree", "shape_vectors")] * 2
    again = index_tables(runner, [(table, (by_id, by_shape())) for table, _ in done])
    assert [names for _, names in again] == [(), ()]
    assert [table for table, _ in again] == [table for table, _ in done]
    assert index_tables(runner, []) == []


def test_compaction_in_several_tasks(tmp_path: Path) -> None:
    tables = [
        table_of(tmp_path / name, *(parts(range(at, at + 10)) for at in range(0, 60, 10)))
        for name in ("a", "b")
    ]
    idle = table_of(tmp_path / "c", parts(range(10)))
    before = [contents(table) for table in tables]
    runner = Told()
    *done, unchanged = compact_tables(runner, [*tables, idle], target_rows=25)
    assert runner.jobs == {"compact": 6}
    assert unchanged is None
    assert [contents(present(table)) for table in done] == before
    expected = [present(compact(table, target_rows=25)) for table in tables]
    assert [_sizes(present(table)) for table in done] == [_sizes(table) for table in expected]
    assert compact_tables(runner, [present(table) for table in done], target_rows=25) == [None] * 2


def _sizes(table: Table) -> list[int]:
    return [fragment.num_rows for fragment in current_fragments(table)]
