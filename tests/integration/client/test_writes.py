"""What is written behind a server is what is written at hand: loads of every form, mutations."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph_core.errors import ConfigError, DataError, OmnigraphError, PreconditionFailed
from omnigraph_core.write.load_model import LoadMode
from omnigraph_core.write.progress import Step
from tests.integration.client.conftest import Pair, lines
from tests.support.cases import each

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.write.progress import Progress

PART = {"type": "Part", "data": {"sku": "n1", "name": "new", "note": "text"}}
BIN = {"type": "Bin", "data": {"code": "n1"}}
HOLDS = {"edge": "Holds", "from": "n1", "to": "n1", "data": {"count": 1}}
TABLE = pa.table({"sku": ["t1", "t2"], "stock": [1, 2]})
GROW = "query grow($sku: String, $by: I64) { insert Part { sku: $sku, stock: $by } }"


class Twins:
    """Two branches of the same state: one is written at hand, the other behind the server."""

    def __init__(self, pair: Pair, name: str) -> None:
        self.names = (pair.fork(f"{name}-local"), pair.fork(f"{name}-remote"))
        self.graphs = (pair.local, pair.remote)

    def both(self, call: Callable[[Any, str], Any]) -> Any:
        """What a call gives on either side; the same, but for names, ids and commits."""
        results = [call(graph, name) for graph, name in zip(self.graphs, self.names, strict=True)]
        local, remote = (self._plain(result) for result in results)
        assert remote == local
        return results[1]

    def _plain(self, result: Any) -> Any:
        document = result.to_json()
        text = json.dumps({
            key: value for key, value in document.items()
            if not key.endswith("commit_id") and key not in ("actor_id", "commit")
        })  # fmt: skip
        return text.replace("-local", "").replace("-remote", "")

    def check_rows(self) -> None:
        """The branches hold the same."""
        local, remote = (
            [_without_id(line) for line in b"".join(self.graphs[0].export_jsonl(name)).splitlines()]
            for name in self.names
        )
        assert sorted(remote) == sorted(local)


def _without_id(line: bytes) -> str:
    record = json.loads(line)
    if "edge" in record:
        del record["data"]["id"]
    return json.dumps(record)


@pytest.fixture
def twins(pair: Pair, request: pytest.FixtureRequest) -> Twins:
    return Twins(pair, f"w{abs(hash(request.node.name)) % 10**8}")


def csv_file(directory: Path) -> Path:
    path = directory / "edges" / "Holds.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text("from,to,count\nb1,p3,5\n")
    return path


def parquet_file(directory: Path) -> Path:
    path = directory / "nodes" / "Part.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(TABLE, path)
    return path


def packed_file(directory: Path) -> Path:
    path = directory / "some records.jsonl.gz"
    path.write_bytes(gzip.compress(lines(PART, BIN, HOLDS)))
    return path


def named_file(directory: Path) -> Path:
    path = directory / "records.jsonl"
    path.write_bytes(lines(PART, BIN))
    return path


GIVEN: dict[str, Callable[[Path], dict[str, Any]]] = {
    "bytes": lambda _: {"data": lines(PART, BIN, HOLDS)},
    "packed bytes": lambda _: {"data": gzip.compress(lines(PART, BIN))},
    "stream": lambda _: {"data": io.BytesIO(lines(PART))},
    "path": lambda directory: {"data": named_file(directory)},
    "text of a path": lambda directory: {"data": str(named_file(directory))},
    "packed file": lambda directory: {"data": packed_file(directory)},
    "table": lambda _: {"data": TABLE, "type": "Part"},
    "reader of batches": lambda _: {"data": TABLE.to_reader(), "type": "node:Part"},
    "parquet": lambda directory: {"data": parquet_file(directory)},
    "csv": lambda directory: {"data": csv_file(directory)},
    "csv bytes": lambda _: {"data": b"sku,stock\nc1,3\n", "format": "csv", "type": "Part"},
    "several files": lambda directory: {
        "data": [named_file(directory), csv_file(directory), parquet_file(directory)]
    },
    "several tables": lambda _: {"data": [TABLE.slice(0, 1), TABLE.slice(1)], "type": "Part"},
}


@pytest.mark.parametrize("given", GIVEN)
def test_loads_of_every_form(twins: Twins, tmp_path: Path, given: str) -> None:
    result = twins.both(
        lambda graph, branch: graph.load(branch=branch, embed="off", **GIVEN[given](tmp_path))
    )
    assert result.nodes_loaded + result.edges_loaded > 0
    assert result.commit.actor_id is None
    twins.check_rows()


def test_modes_and_switches(twins: Twins) -> None:
    data = lines(PART)
    assert twins.both(lambda graph, branch: graph.load(data, branch=branch)).vectors_made == 1
    twins.both(lambda graph, branch: graph.load(data, branch=branch, dry_run=True, embed="off"))
    bins = lines(BIN, {"type": "Bin", "data": {"code": "b1"}})
    done = twins.both(
        lambda graph, branch: graph.load(bins, branch=branch, mode=LoadMode.OVERWRITE)
    )
    assert done.mode is LoadMode.OVERWRITE
    twins.check_rows()
    nothing = twins.both(lambda graph, branch: graph.load(b"", branch=branch))
    assert nothing.commit is None


def test_a_load_under_a_key_is_done_once(pair: Pair) -> None:
    branch = pair.fork("keyed")
    data, key = lines(PART), "load 1"
    first = pair.remote.load(data, branch=branch, idempotency_key=key)
    again = pair.remote.load(data, branch=branch, idempotency_key=key)
    assert again == replace(first, is_repeat=True)
    head = first.commit and first.commit.graph_commit_id
    assert pair.local.head_commit_id_for_branch(branch) == head
    with pytest.raises(OmnigraphError, match="key"):
        pair.remote.load(lines(BIN), branch=branch, idempotency_key=key)


def test_progress_and_large_loads(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    branch = pair.fork("large")
    heard: list[Progress] = []
    data = lines(*({"type": "Bin", "data": {"code": f"x{number}"}} for number in range(2_000)))
    done = pair.remote.load(data, branch=branch, progress=heard.append)
    assert done.nodes_loaded == 2_000
    assert {item.step for item in heard} >= {Step.READ, Step.VALIDATED}
    assert max(item.rows for item in heard) == 2_000
    assert done.commit is not None
    assert done.commit.graph_commit_id == pair.local.head_commit_id_for_branch(branch)
    monkeypatch.setattr("omnigraph_core.client.uploads.AS_JOB", 100)
    before = len(pair.remote.list_jobs())
    again = pair.remote.load(data, branch=branch)
    assert again.nodes_loaded == 2_000
    jobs = pair.remote.list_jobs()
    assert len(jobs) == before + 1
    assert (jobs[0].operation, jobs[0].status, jobs[0].branch) == ("load", "done", branch)
    assert jobs[0].progress["bytes"] == len(data)
    known = pair.remote.get_job(jobs[0].job_id)
    assert known.result["nodes_loaded"] == 2_000
    assert replace(known, result=None) == jobs[0]
    with pytest.raises(OmnigraphError, match="cannot be cancelled"):
        pair.remote.cancel_job(jobs[0].job_id)


BAD = {"type": "Part", "data": {"sku": "bad", "stock": -1, "weight": "heavy"}}


@pytest.mark.parametrize("is_job", [False, True])
def test_bad_records_are_told_alike(
    twins: Twins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_job: bool
) -> None:
    if is_job:
        monkeypatch.setattr("omnigraph_core.client.uploads.AS_JOB", 0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "bad.jsonl").write_bytes(lines(PART, BAD))
    problems, written = [], []
    for graph, branch in zip(twins.graphs, twins.names, strict=True):
        with pytest.raises(DataError) as problem:
            graph.load("in/bad.jsonl", branch=branch, rejects=f"out/{branch}.jsonl")
        problems.append(problem.value)
        written.append((tmp_path / "out" / f"{branch}.jsonl").read_text())
    local, remote = problems
    assert type(remote) is type(local)
    assert str(remote) == str(local)
    assert "in/bad.jsonl:2" in str(remote)
    assert remote.violations == local.violations
    assert remote.counts == local.counts
    assert written[0] == written[1] != ""
    done = twins.both(
        lambda graph, branch: graph.load(
            "in/bad.jsonl", branch=branch, skip_bad=True, embed="off", rejects="out/skipped.jsonl"
        )
    )
    assert done.records_rejected == 1
    assert (tmp_path / "out" / "skipped.jsonl").read_text() == written[0]
    twins.check_rows()


def test_a_reject_file_is_no_input(pair: Pair, tmp_path: Path) -> None:
    path = named_file(tmp_path)
    with pytest.raises(ConfigError, match="is an input"):
        pair.remote.load(path, rejects=path)


WRONG: dict[str, Callable[[Any], Any]] = {
    "no file": lambda graph: graph.load("none.jsonl"),
    "no format": lambda graph: graph.load(__file__),
    "no type": lambda graph: graph.load(TABLE),
    "an unknown type": lambda graph: graph.load(TABLE, type="Prt"),
    "a wrong table": lambda graph: graph.load(pa.table({"sku": [None, "x"]}), type="Part"),
    "two wrong tables": lambda graph: graph.load(
        [TABLE, pa.table({"sku": [None, "x"]})], type="Part"
    ),
    "a branch": lambda graph: graph.load(lines(PART), branch="none"),
    "broken JSON": lambda graph: graph.load(b'{"type": "Part"\n{}'),
    "another head": lambda graph: graph.load(lines(PART), if_commit="01M7HCRA2YB7TR5DXVE32ATFRJ"),
    "a read": lambda graph: graph.mutate("query x() { match { $p: Part } return { $p } }"),
    "parameters": lambda graph: graph.mutate(GROW, {"sku": 1}),
    "a rule": lambda graph: graph.mutate(GROW, {"sku": "p1", "by": -1}),
    "a query": lambda graph: graph.mutate("query x() { insert Prt { } }"),
    "another head of a mutation": lambda graph: graph.mutate(
        GROW, {"sku": "x", "by": 1}, if_commit="01M7HCRA2YB7TR5DXVE32ATFRJ"
    ),
}


@each("name", WRONG)
def test_errors_are_the_same(pair: Pair, name: str) -> None:
    head = pair.local.head_commit_id_for_branch()
    with pytest.raises(OmnigraphError) as local:
        WRONG[name](pair.local)
    with pytest.raises(OmnigraphError) as remote:
        WRONG[name](pair.remote)
    assert type(remote.value) is type(local.value)
    assert str(remote.value) == str(local.value)
    assert remote.value.details() == local.value.details()
    assert remote.value.retryable == local.value.retryable
    assert pair.local.head_commit_id_for_branch() == head


def test_ingest_makes_the_branch(pair: Pair) -> None:
    results = []
    for name, graph in (("in-local", pair.local), ("in-remote", pair.remote)):
        made = graph.ingest(lines(PART), branch=name, source="main", embed="off")
        again = graph.ingest(lines(PART), branch=name, mode="merge", embed="off")
        results.append([made, again])
        assert (made.branch_created, again.branch_created) == (True, False)
        assert made.base_branch == "main"
        assert made.loaded.commit is not None
    for local, remote in zip(*results, strict=True):
        assert remote.to_json().keys() == local.to_json().keys()
        assert replace(remote.loaded, branch="", commit=None) == replace(
            local.loaded, branch="", commit=None
        )


def test_mutations(twins: Twins) -> None:
    done = twins.both(
        lambda graph, branch: graph.mutate(GROW, {"sku": "m1", "by": 2}, branch=branch, name="grow")
    )
    assert (done.affected_nodes, done.query_name, done.is_repeat) == (1, "grow", False)
    twins.check_rows()
    nothing = twins.both(
        lambda graph, branch: graph.mutate(
            'query x() { delete Part where sku = "none" }', branch=branch
        )
    )
    assert nothing.commit is None
    graph, branch = twins.graphs[1], twins.names[1]
    first, again = (
        graph.mutate(GROW, {"sku": "m2", "by": 1}, branch=branch, idempotency_key="m")
        for _ in range(2)
    )
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert first.commit == again.commit
    with pytest.raises(PreconditionFailed) as problem:
        graph.mutate(GROW, {"sku": "m3", "by": 1}, branch=branch, if_commit="other")
    assert (problem.value.expected, problem.value.actual) == ("other", first.commit_id)
    assert graph.mutate(GROW, {"sku": "m3", "by": 1}, branch=branch, if_commit=first.commit_id)


def test_embeddings_are_made_later(twins: Twins) -> None:
    twins.both(lambda graph, branch: graph.load(lines(PART), branch=branch, embed="off"))
    heard: list[Progress] = []
    graph, branch = twins.graphs[1], twins.names[1]
    assert graph.embedding_status(branch)[0].pending == 1
    done = graph.embed_backfill(branch=branch, progress=heard.append)
    assert (done.branch, done.vectors_made, len(done.commits)) == (branch, 1, 1)
    assert [item.step for item in heard][-1] is Step.EMBEDDED
    assert graph.embedding_status(branch)[0].pending == 0
    twins.graphs[0].embed_backfill(branch=twins.names[0])
    twins.check_rows()


def test_upkeep(twins: Twins) -> None:
    for number in range(3):
        row = {"type": "Bin", "data": {"code": f"u{number}"}}
        twins.both(lambda graph, branch, row=row: graph.load(lines(row), branch=branch))  # type: ignore[misc]
    (local, remote), (one, two) = twins.graphs, twins.names
    assert remote.ensure_indices(branch=two) == local.ensure_indices(branch=one)
    assert remote.optimize(branch=two) == local.optimize(branch=one)
    assert remote.verify(two, is_deep=True).is_sound
    assert remote.cleanup(keep=1, branches=[two]).is_preview is False
    twins.check_rows()
