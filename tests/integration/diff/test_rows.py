"""Rows in diffs: values of every type, rows of every size in portions, and no row too many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.compare.view import RowView
from omnigraph_core.diff import rows as diff_rows
from omnigraph_core.diff.model import ChangeFilter, ChangeOp
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.storage import lookup
from tests.integration.diff.conftest import load, part
from tests.support import loading
from tests.support.loading import article, lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

    from omnigraph_core.engine.omnigraph import Omnigraph

FULL: dict[str, Any] = {
    "kind": "bolt",
    "stock": 3,
    "code": "AB",
    "serial": "s",
    "maker": "m",
    "model": "n",
    "weight": 1.5,
    "shape": [1.0, 0.0, 2.5],
    "tags": ["x", "y"],
    "drawing": "base64:aGV4",
    "colour": "grey",
}
OTHER: dict[str, Any] = {
    "kind": "nut",
    "stock": None,
    "code": "CD",
    "serial": None,
    "maker": "",
    "model": "nn",
    "weight": -0.0,
    "shape": [1.0, -0.0, 2.5],
    "tags": [],
    "drawing": "base64:aGV5",
    "colour": "red",
}


@pytest.mark.parametrize("name", list(FULL))
def test_values_of_every_type(tmp_path: Path, name: str) -> None:
    graph = loading.small_graph(tmp_path)
    before = {**FULL, "weight": 0.0} if name == "weight" else FULL
    graph.load(lines(loading.part("p", **before)), mode="merge")
    graph.branch_create("review")
    graph.load(
        lines(loading.part("p", **{**before, name: OTHER[name]})), mode="merge", branch="review"
    )
    (change,) = graph.diff_between("main", "review").changes
    assert (change.id, change.op, change.properties) == ("p", ChangeOp.UPDATE, (name,))
    expected = {"id": "p", "sku": "p", "name": "part p", **before}
    assert change.before == expected
    assert change.after == {**expected, name: OTHER[name]}


def test_null_is_not_empty(tmp_path: Path) -> None:
    graph = loading.small_graph(tmp_path)
    graph.load(lines(loading.part("p", tags=[], maker="")), mode="merge")
    graph.branch_create("review")
    graph.load(lines(loading.part("p")), mode="merge", branch="review")
    (change,) = graph.diff_between("main", "review").changes
    assert change.properties == ("maker", "tags")


def test_what_accompanies_a_property_counts_as_the_property(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vector that was made from another text, and one that was given though it is the same."""
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = loading.new_graph(tmp_path)
    graph.load(lines(article("a", body="one")), mode="merge")
    made = (graph.entity_at("node:Article", "a", version=2) or {})["topic"]
    assert made is not None
    graph.branch_create("review")
    graph.load(lines(article("a", body="one", topic=made)), mode="merge", branch="review")
    (change,) = graph.diff_between("main", "review").changes
    assert change.properties == ("topic",)
    assert (change.before or {})["topic"] == (change.after or {})["topic"] == made
    assert not any("#" in name for name in change.after or {})


def test_an_address_in_place_of_bytes(tmp_path: Path) -> None:
    graph = loading.new_graph(tmp_path)
    graph.load(lines(article("a", picture="base64:aGV4")), mode="merge")
    graph.branch_create("review")
    elsewhere = "https://example.org/picture.png"
    graph.load(lines(article("a", picture=elsewhere)), mode="merge", branch="review")
    (change,) = graph.diff_between("main", "review").changes
    assert change.properties == ("picture",)
    assert (change.before or {})["picture"] == "base64:aGV4"
    assert (change.after or {})["picture"] == elsewhere


def test_many_changes_in_small_portions(og: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """However rows are cut while they are read, each change has its own rows."""
    load(og, *(part(f"{n:03}", stock=n) for n in range(200)))
    og.branch_create("review")
    load(og, *(part(f"{n:03}", stock=-n) for n in range(0, 300, 3)), branch="review")
    og.mutate("query gone() { delete Part where stock = 1 }", branch="review")
    og.mutate("query gone() { delete Part where stock = 100 }", branch="review")
    expected = og.diff_between("main", "review")
    assert (expected.stats.inserts, expected.stats.deletes) == (33, 2)

    def cut(table: Any, addresses: Any, columns: Any = None, **_: Any) -> Iterator[pa.Table]:
        step = 2 if table.count_rows() == 200 else 3
        for start in range(0, len(addresses), step):
            yield lookup.take_rows(table, addresses.slice(start, step), columns)

    monkeypatch.setattr("omnigraph_core.compare.view.iter_taken", cut)
    monkeypatch.setattr(diff_rows, "_WINDOW", 7)
    found = og.diff_between("main", "review")
    assert found == expected
    for change in found.changes:
        number = int(change.id)
        if change.op is ChangeOp.UPDATE:
            assert (change.before or {})["stock"] == number
        if change.op is not ChangeOp.DELETE:
            assert (change.after or {})["stock"] == -number
    ids = [change.id for change in found.changes]
    assert ids == sorted(ids)


class Reads:
    """Counts which columns of which rows views are asked for."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.columns: set[str] = set()
        self.rows = 0
        real = RowView.iter_taken

        def counted(view: RowView, addresses: Any, columns: Any = None) -> Iterator[pa.Table]:
            self.columns |= set(view.columns if columns is None else columns)
            self.rows += len(addresses)
            return real(view, addresses, columns)

        patch.setattr(RowView, "iter_taken", counted)


@pytest.fixture
def reads(og: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> Reads:
    """The graph has 50 parts, 20 of which differ on `review`, and 10 more there."""
    load(og, *(part(f"{n:02}", stock=n) for n in range(50)))
    og.branch_create("review")
    load(og, *(part(f"{n:02}", stock=-n) for n in range(30, 60)), branch="review")
    return Reads(monkeypatch)


def test_ids_alone_read_no_rows(og: Omnigraph, reads: Reads) -> None:
    inserts = ChangeFilter(ops=frozenset({ChangeOp.INSERT}))
    found = og.diff_between("main", "review", inserts, has_values=False)
    assert (found.stats.inserts, found.stats.updates, len(found.changes)) == (10, 0, 10)
    assert reads.columns <= {"id"}


def test_without_updates_contents_are_not_compared(og: Omnigraph, reads: Reads) -> None:
    deletes = ChangeFilter(ops=frozenset({ChangeOp.DELETE}))
    assert og.diff_between("main", "review", deletes).changes == ()
    assert reads.columns <= {"id"}


def test_edges_left_out_are_not_read(og: Omnigraph, reads: Reads) -> None:
    edges = ChangeFilter(kinds=frozenset({EntityKind.EDGE}))
    assert og.diff_between("main", "review", edges).changes == ()
    assert reads.rows == 0


def test_a_stream_reads_no_further_than_it_is_asked(
    og: Omnigraph, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff_rows, "_WINDOW", 4)
    inserts = ChangeFilter(ops=frozenset({ChangeOp.INSERT}))
    stream = og.iter_diff("main", "review", inserts)
    assert (reads.rows, reads.columns) == (0, set())
    next(stream)
    compared = reads.rows
    assert sum(1 for _ in stream) == 9
    assert reads.rows == compared + 6


def test_the_limit_bounds_what_is_read(og: Omnigraph, reads: Reads) -> None:
    bare = og.diff_between("main", "review", limit=0)
    assert bare.stats.updates == 20
    compared = reads.rows
    og.diff_between("main", "review", limit=3)
    assert reads.rows == 2 * compared + 6, "both sides of three updates"
