"""What reads ask of an S3 store: nothing once warm, but whether the branch has moved.

| read | requests |
|---|---|
| of a snapshot, warm | none |
| of a branch within `max_age`, warm | none |
| of main, warm | 1: is there a newer manifest? |
| of another branch, warm | 2: its reference, and is there a newer manifest? |
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.history.snapshots import ReadTarget
from tests.integration.cost.test_write_requests import records
from tests.support.counting_proxy import CountingProxy
from tests.support.graphs import new_graph
from tests.support.stores import new_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.exec.result import QueryResult
    from omnigraph_core.manifest.snapshot import Snapshot
    from tests.support.s3 import S3Server

POINT = "query q($sku: String) { match { $p: Part {sku: $sku} } return { $p.name, $p.stock } }"
TWO_HOPS = """
query q($code: String) {
  match { $b: Bin {code: $code}  $b holds $p  $c holds $p }
  return { $p.name, $c.code }
}
"""
WARM = {
    "lookup": (POINT, {"sku": "p7"}),
    "lookup of nothing": (POINT, {"sku": "none"}),
    "two hops and names": (TWO_HOPS, {"code": "p-bin1"}),
    "groups": (
        "query q() { match { $b holds $p } return { $b.code, sum($p.stock) as n } order { n } }",
        None,
    ),
    "edge properties": (
        "query q() { match { $b $h:holds $p  $h.count is null } return { $h.id, $p } }",
        None,
    ),
    "not": ("query q() { match { $p: Part  not { $b holds $p } } return { $p } }", None),
    "words": (
        'query q() { match { $p: Part  search($p.name, "p7") } return { bm25($p.name, "p7") } }',
        None,
    ),
}
Asked = tuple[str, dict[str, Any] | None]


class Subject:
    """A graph, a handle whose requests are counted, and one that goes past the proxy."""

    def __init__(self, server: S3Server, proxy: CountingProxy) -> None:
        self.address = new_prefix(server.bucket)
        self.proxy = proxy
        with mock.patch.dict(os.environ, server.environment()):
            self.other = new_graph(self.address)
            self.other.load(records("p", 100))
            self.other.branch_create("review")
        with mock.patch.dict(os.environ, server.environment(endpoint=proxy.endpoint)):
            self.og = Omnigraph.open(self.address)
            self.og.snapshot()

    def ask(
        self, target: str | ReadTarget | Snapshot, asked: Asked = WARM["lookup"], **limits: float
    ) -> QueryResult:
        return self.og.query(target, asked[0], params=asked[1], max_age=limits.get("max_age"))

    def sent(self, act: Callable[[], object]) -> list[tuple[str, str]]:
        """The requests of one call: their kind, and what of the graph they are about."""
        self.proxy.clear()
        act()
        return [(request.kind, about(request.path)) for request in self.proxy.requests]


def about(path: str) -> str:
    """`__manifest/_versions`, `nodes/data`, …: the part of a graph a path belongs to."""
    parts = path.partition("?")[0].split("/")
    known = ("__manifest", "_refs", "_branches", "nodes", "edges", "_derived")
    whole = next((part for part in known if part in parts), "")
    return f"{whole}/{parts[-2]}"


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CountingProxy]:
    copies = str(tmp_path_factory.mktemp("copies"))
    with (
        mock.patch.dict(os.environ, OMNIGRAPH_CACHE_DIR=copies),
        CountingProxy(s3_server.port) as proxy,
    ):
        yield proxy


@pytest.fixture(scope="module")
def subject(s3_server: S3Server, proxy: CountingProxy) -> Subject:
    """A graph that tests only read."""
    return Subject(s3_server, proxy)


@pytest.fixture
def fresh(s3_server: S3Server, proxy: CountingProxy) -> Subject:
    """A graph that nobody has read."""
    return Subject(s3_server, proxy)


@pytest.mark.parametrize("asked", WARM.values(), ids=WARM)
def test_a_snapshot_costs_nothing_once_warm(subject: Subject, asked: Asked) -> None:
    snapshot = subject.og.snapshot()
    first = subject.ask(snapshot, asked)
    again: list[QueryResult] = []
    assert subject.sent(lambda: again.append(subject.ask(snapshot, asked))) == []
    assert again[0].to_arrow() == first.to_arrow()


def test_another_key_costs_nothing_either(subject: Subject) -> None:
    snapshot = subject.og.snapshot()
    subject.ask(snapshot)
    found: list[QueryResult] = []
    asked = (POINT, {"sku": "p42"})
    assert subject.sent(lambda: found.append(subject.ask(snapshot, asked))) == []
    assert found[0].to_pylist() == [{"p.name": "p42", "p.stock": 42}]


def test_main_is_asked_for_its_head_and_nothing_else(subject: Subject) -> None:
    subject.ask("main")
    asked = (POINT, {"sku": "p8"})
    assert subject.sent(lambda: subject.ask("main", asked)) == [("HEAD", "__manifest/_versions")]


def test_a_branch_is_asked_for_its_reference_and_its_head(subject: Subject) -> None:
    subject.ask("review")
    assert [kind for kind, _ in subject.sent(lambda: subject.ask("review"))] == ["GET", "HEAD"]


@pytest.mark.parametrize("branch", ["main", "review"])
def test_a_head_young_enough_is_not_asked_for(subject: Subject, branch: str) -> None:
    subject.ask(branch)
    assert subject.sent(lambda: subject.ask(branch, max_age=600)) == []


def test_how_young_may_be_a_setting(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    subject.ask("main")
    monkeypatch.setenv("OMNIGRAPH_READ_MAX_AGE", "600")
    assert subject.sent(lambda: subject.ask("main")) == []
    assert subject.sent(lambda: subject.ask("main", max_age=0)) != []


def test_a_branch_shares_what_main_has_read(fresh: Subject) -> None:
    """The fork has the same tables: nothing but the branch itself is looked up."""
    fresh.ask("main", WARM["two hops and names"])
    sent = fresh.sent(lambda: fresh.ask("review", WARM["two hops and names"]))
    assert not [part for _, part in sent if part.startswith(("nodes", "edges"))]


def test_after_a_commit_only_what_is_new_is_read(fresh: Subject) -> None:
    """The new head, and of each table the query needs its version and its new file."""
    asked = WARM["two hops and names"]
    fresh.ask("main", asked)
    old = {request.path.partition("?")[0] for request in fresh.proxy.requests}
    fresh.other.load(records("n", 1))
    sent = fresh.sent(lambda: fresh.ask("main", (TWO_HOPS, {"code": "n-bin0"})))
    read = {request.path.partition("?")[0] for request in fresh.proxy.requests}
    assert not [path for path in read & old if "/data/" in path]
    assert len([kind for kind, part in sent if part.startswith(("nodes", "edges"))]) <= 12
    assert not [kind for kind, _ in sent if kind in {"PUT", "POST delete"}]
    assert fresh.sent(lambda: fresh.ask("main", asked)) == [("HEAD", "__manifest/_versions")]


def test_nothing_is_written_by_small_reads(fresh: Subject) -> None:
    def act() -> None:
        for asked in WARM.values():
            fresh.ask("main", asked)

    assert {kind for kind, _ in fresh.sent(act)} <= {"GET", "HEAD"}


def test_a_commit_id_is_looked_up_once(subject: Subject) -> None:
    """A commit never changes: what it names is read once, and then asked for no more than that."""
    target = ReadTarget(snapshot_id=subject.og.head_commit_id_for_branch())
    subject.ask(target)
    sent = subject.sent(lambda: subject.ask(target))
    assert not [part for _, part in sent if part.startswith(("nodes", "edges"))]
