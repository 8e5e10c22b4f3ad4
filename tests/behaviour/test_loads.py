"""Loads of every form, and what they answer."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from omnigraph_core.engine.ingest import IngestResult
from omnigraph_core.errors import (
    ConflictError,
    DataError,
    DuplicateKey,
    PreconditionFailed,
    RecordError,
)
from omnigraph_core.violations import Rule
from omnigraph_core.write.load_model import LoadMode, LoadResult, TableLoad
from omnigraph_core.write.progress import Step
from tests.behaviour.stock import DRAWING, amounts, bin_, holds, lines, part
from tests.support.ways import NOT_ON_S3, told

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.write.progress import Progress
    from tests.support.ways import Place

TABLE = pa.table({"sku": ["t1", "t2"], "stock": [1, None]})
NEW = lines(part("t1", stock=1), part("t2"))


def check(place: Place, done: LoadResult, expected: LoadResult) -> None:
    """What a load says, with the commit that is the head now."""
    assert done.commit is not None
    head = place.at_hand.snapshot(done.branch).commit
    assert told(done.commit) == told(head)
    assert told(replace(done, commit=None)) == told(expected)


def new_file(directory: Path, name: str, content: bytes) -> Path:
    path = directory / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def arrow(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pc.write_csv(table, sink)
    return sink.getvalue()


GIVEN: dict[str, Callable[[Path], dict[str, Any]]] = {
    "bytes": lambda _: {"data": NEW},
    "a stream": lambda _: {"data": io.BytesIO(NEW)},
    "packed bytes": lambda _: {"data": gzip.compress(NEW)},
    "a file of records": lambda folder: {"data": new_file(folder, "new.jsonl", NEW)},
    "a table": lambda _: {"data": TABLE, "type": "Part"},
    "batches": lambda _: {"data": TABLE.to_reader(), "type": "node:Part"},
    "parquet": lambda folder: {"data": new_file(folder, "nodes/Part.parquet", parquet(TABLE))},
    "arrow": lambda folder: {
        "data": str(new_file(folder, "x.arrow", arrow(TABLE))), "type": "Part"
    },
    "csv": lambda _: {"data": csv(TABLE), "format": "csv", "type": "Part"},
    "several": lambda folder: {
        "data": [new_file(folder, "a.jsonl", lines(part("t1", stock=1))),
                 new_file(folder, "nodes/Part.csv", b"sku\nt2\n")],
    },
}  # fmt: skip


@NOT_ON_S3
@pytest.mark.parametrize("given", GIVEN)
def test_what_can_be_loaded(shared: Place, tmp_path: Path, given: str) -> None:
    shared.at_hand.branch_create(given)
    done = shared.graph.load(branch=given, embed="off", **GIVEN[given](tmp_path))
    check(shared, done, LoadResult(given, LoadMode.MERGE, (TableLoad("node:Part", 2),), None))
    held = amounts(shared.graph, given)
    assert (held["t1"], held["t2"], len(held)) == (1, None, 5)


def test_records_of_every_kind_with_vectors(place: Place) -> None:
    data = lines(
        part("new", note="a text", drawing="base64:AAE="),
        bin_("b3"),
        holds("b3", "new"),
        holds("b3", "bolt", count=2),
    )
    done = place.graph.load(data, mode="append")
    tables = (TableLoad("node:Bin", 1), TableLoad("node:Part", 1), TableLoad("edge:Holds", 2))
    assert sorted(done.tables, key=str) == sorted(tables, key=str)
    assert (done.nodes_loaded, done.edges_loaded, done.vectors_made) == (2, 2, 1)
    assert (done.mode, done.commit and done.commit.operation) == (LoadMode.APPEND, "load")
    assert place.graph.read_blob("Part", "new", "drawing") == b"\0\1"
    assert place.graph.read_blob("Part", "bolt", "drawing") == DRAWING
    assert place.both(lambda graph: graph.embedding_status())[0].ready == 2


def test_modes(place: Place) -> None:
    graph = place.graph
    problem = place.raised(lambda graph: graph.load(lines(part("nut")), mode="append"))
    assert isinstance(problem, DuplicateKey)
    assert problem.counts == {Rule.KEY: 1}
    done = graph.load(lines(bin_("b1"), bin_("b9")), mode=LoadMode.OVERWRITE)
    tables = (TableLoad("node:Bin", 2),)
    check(place, done, LoadResult("main", LoadMode.OVERWRITE, tables, None))
    codes = graph.query("main", "query q() { match { $b: Bin } return { $b.code as c } }")
    assert {row["c"] for row in codes.to_pylist()} == {"b1", "b9"}


@NOT_ON_S3
def test_a_dry_run_and_an_empty_load_write_nothing(place: Place) -> None:
    head = place.at_hand.head_commit_id_for_branch()
    tried = place.both(lambda graph: graph.load(NEW, dry_run=True, embed="off"))
    tables = (TableLoad("node:Part", 2),)
    assert tried == LoadResult("main", LoadMode.MERGE, tables, None, is_dry_run=True)
    nothing = place.both(lambda graph: graph.load(b"\n"))
    assert nothing == LoadResult("main", LoadMode.MERGE, (), None)
    assert place.at_hand.head_commit_id_for_branch() == head


@NOT_ON_S3
def test_every_problem_is_told_and_nothing_is_written(place: Place) -> None:
    bad = lines(part("x", stock=-1), part("y", size="big"), part("z"), holds("none", "bolt"))
    problem = place.raised(lambda graph: graph.load(bad))
    assert isinstance(problem, DataError)
    assert [item.rule for item in problem.violations] == [Rule.RANGE, Rule.VALUE, Rule.ENDPOINT]
    assert [item.line for item in problem.violations] == [1, 2, 4]
    assert problem.violations[1].value == "big"
    assert problem.counts == dict.fromkeys((Rule.RANGE, Rule.VALUE, Rule.ENDPOINT), 1)
    assert len(amounts(place.graph)) == 3


@NOT_ON_S3
def test_bad_records_are_set_aside(place: Place, tmp_path: Path) -> None:
    source = new_file(tmp_path, "in.jsonl", lines(part("x", stock=-1), part("y"), bin_("y", n=1)))
    rejects = {name: tmp_path / name for name in ("here", "at hand")}
    done = place.graph.load(source, rejects=rejects["here"], skip_bad=True, embed="off")
    tables = (TableLoad("node:Part", 1),)
    expected = LoadResult("main", LoadMode.MERGE, tables, None, records_rejected=2)
    check(place, done, expected)
    place.at_hand.load(source, rejects=rejects["at hand"], skip_bad=True, embed="off")
    kept = {name: path.read_text() for name, path in rejects.items()}
    assert kept["here"] == kept["at hand"]
    assert len(kept["here"].splitlines()) == 2
    assert str(source) in kept["here"] or "in.jsonl" in kept["here"]


def test_a_repeat_under_a_key_loads_nothing(place: Place) -> None:
    graph = place.graph
    first = graph.load(NEW, idempotency_key="night 1")
    again = graph.load(NEW, idempotency_key="night 1")
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert told(replace(again, is_repeat=False)) == told(first)
    problem = place.raised(lambda graph: graph.load(lines(bin_("b9")), idempotency_key="night 1"))
    assert isinstance(problem, ConflictError)
    heard: list[Progress] = []
    watched = [graph.load(NEW, idempotency_key="night 2", progress=heard.append) for _ in range(2)]
    assert [done.is_repeat for done in watched] == [False, True]
    assert told(watched[1].commit) == told(watched[0].commit)
    at_hand = place.at_hand.load(NEW, idempotency_key="night 1")
    assert at_hand.is_repeat, "the key is one of the graph, however it is reached"


def test_a_load_that_expects_a_head(place: Place) -> None:
    head = place.graph.head_commit_id_for_branch()
    done = place.graph.load(NEW, if_commit=head)
    assert done.commit is not None
    assert done.commit.parent_commit_id == head
    problem = place.raised(lambda graph: graph.load(NEW, if_commit=head))
    assert isinstance(problem, PreconditionFailed)
    expected = {"member": "head", "expected": head, "actual": done.commit.graph_commit_id}
    assert problem.details() == expected


@NOT_ON_S3
def test_progress_is_told(graph: Omnigraph) -> None:
    heard: list[Progress] = []
    data = lines(*(bin_(f"x{number}") for number in range(500)))
    assert graph.load(data, progress=heard.append).nodes_loaded == 500
    assert {Step.READ, Step.VALIDATED, Step.STAGED} <= {item.step for item in heard}
    assert max(item.rows for item in heard) == 500


def test_an_ingest_makes_its_branch_once(place: Place) -> None:
    graph = place.graph
    made = graph.ingest(NEW, branch="night", source="main", embed="off")
    tables = (TableLoad("node:Part", 2),)
    check(place, made.loaded, LoadResult("night", LoadMode.MERGE, tables, None))
    expected = IngestResult("night", "main", True, made.loaded, None)
    assert made == expected
    again = graph.ingest(NEW, branch="night", mode="merge", embed="off")
    assert (again.branch_created, again.base_branch) == (False, "main")
    place.raised(lambda graph: graph.ingest(NEW, branch="x", source="none"))
    tried = place.both(lambda graph: graph.ingest(NEW, branch="y", dry_run=True, embed="off"))
    assert (tried.branch_created, tried.loaded.branch) == (False, "y")
    assert place.both(lambda graph: graph.branch_list()) == ("main", "night")


@NOT_ON_S3
def test_what_cannot_be_read_is_refused(place: Place, tmp_path: Path) -> None:
    broken = place.raised(lambda graph: graph.load(b'{"type": "Part"\n{}\n\xff'))
    assert isinstance(broken, RecordError)
    for given in (
        {"data": tmp_path / "none.jsonl"},
        {"data": TABLE},
        {"data": TABLE, "type": "Prt"},
        {"data": NEW, "mode": "replace"},
        {"data": NEW, "embed": "later"},
        {"data": NEW, "branch": "none"},
        {"data": pa.table({"sku": [None, "x"], "size": [1, 2**40]}), "type": "Part"},
    ):
        place.raised(lambda graph, given=given: graph.load(**given))  # type: ignore[misc]
