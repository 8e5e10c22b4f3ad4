"""What loads and mutations ask of an S3 store: within bounds, flat, and as the page says."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from benchmarks.commit.depth import deepen, step_over_flush
from benchmarks.commit.requests import KINDS
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.exec import queries
from tests.integration.cost.test_requests import cells
from tests.support.counting_proxy import CountingProxy
from tests.support.graphs import new_graph
from tests.support.meanwhile import meanwhile
from tests.support.stores import new_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.counting_proxy import Request
    from tests.support.s3 import S3Server

DEPTHS = (10, 100)
INSERT = "query add($sku: String) { insert Part { sku: $sku } }"
LINK = 'query link() { insert Holds { from: "p-bin1", to: "p1" } }'
UPDATE = 'query fill() { update Part set { stock: 7 } where sku = "p7" }'
DELETE = 'query drop() { delete Part where sku = "p7" }'
BOUNDS = {
    "insert of a node": 10,
    "insert of an edge": 20,
    "update of a node": 14,
    "delete of a node and its edges": 22,
    "load of three types": 22,
}
"""Requests, whether tables are indexed or not."""


def records(prefix: str, parts: int) -> bytes:
    """Parts, for each ten of them a bin, and for each part an edge from its bin."""
    found: list[dict[str, object]] = []
    for number in range(parts):
        id, bin = f"{prefix}{number}", f"{prefix}-bin{number // 10}"
        found.append({"type": "Part", "data": {"sku": id, "name": id, "stock": number}})
        found.append({"edge": "Holds", "from": bin, "to": id})
        if number % 10 == 0:
            found.append({"type": "Bin", "data": {"code": bin}})
    return "".join(json.dumps(record) + "\n" for record in found).encode()


OPERATIONS: dict[str, Callable[[Omnigraph], object]] = {
    "insert of a node": lambda og: og.mutate(INSERT, {"sku": "new"}),
    "insert of an edge": lambda og: og.mutate(LINK),
    "update of a node": lambda og: og.mutate(UPDATE),
    "delete of a node and its edges": lambda og: og.mutate(DELETE),
    "load of three types": lambda og: og.load(records("n", 3)),
}
Counts = tuple[int, ...]


class Subject:
    """A graph, a handle that goes past the proxy, and handles whose requests are counted."""

    def __init__(self, server: S3Server, proxy: CountingProxy) -> None:
        self.address = new_prefix(server.bucket)
        self.proxy = proxy
        self._counted = server.environment(endpoint=proxy.endpoint)
        with mock.patch.dict(os.environ, server.environment()):
            self.other = new_graph(self.address)

    def refill(self, *, is_indexed: bool) -> None:
        """Every table is one file again; the next commit is an ordinary one."""
        self.other.load(records("p", 100), mode="overwrite")
        if is_indexed:
            self.other.optimize()
        step_over_flush(self.other)

    def requests(self, act: Callable[[Omnigraph], object]) -> tuple[Request, ...]:
        """What one call sends on a handle that has looked at the graph and done nothing else."""
        with mock.patch.dict(os.environ, self._counted):
            og = Omnigraph.open(self.address)
            og.snapshot()
        self.proxy.clear()
        act(og)
        return self.proxy.requests

    def counts(self, act: Callable[[Omnigraph], object], *, is_indexed: bool) -> Counts:
        self.refill(is_indexed=is_indexed)
        sent = Counter(request.kind for request in self.requests(act))
        assert set(sent) <= {"GET", "HEAD", "PUT"}, "nothing is listed or deleted"
        return tuple(sent[kind] for kind in KINDS)


@pytest.fixture(scope="module")
def subject(s3_server: S3Server) -> Iterator[Subject]:
    with CountingProxy(s3_server.port) as proxy:
        yield Subject(s3_server, proxy)


Measured = dict[int, dict[str, tuple[Counts, Counts]]]


@pytest.fixture(scope="module")
def measured(subject: Subject) -> Measured:
    """By depth and operation: without indexes, and with."""
    found: Measured = {}
    for depth in DEPTHS:
        deepen(subject.other, depth)
        found[depth] = {
            name: (subject.counts(act, is_indexed=False), subject.counts(act, is_indexed=True))
            for name, act in OPERATIONS.items()
        }
    return found


def test_bounds_hold(measured: Measured) -> None:
    most = {
        name: max(sum(counts) for at in measured.values() for counts in at[name])
        for name in OPERATIONS
    }
    assert {name: count for name, count in most.items() if count > BOUNDS[name]} == {}


def test_nothing_grows_with_history(measured: Measured) -> None:
    shallow, deep = (measured[depth] for depth in DEPTHS)
    assert shallow == deep


def test_the_page_says_what_is_measured(measured: Measured) -> None:
    header, *rows = cells("Loads and mutations").items()
    assert header[1][: len(KINDS) + 2] == [*KINDS, "all", "indexed"]
    told = {name: [int(cell) for cell in row[: len(KINDS) + 2]] for name, row in rows}
    assert told == {
        name: [*plain, sum(plain), sum(indexed)]
        for name, (plain, indexed) in measured[DEPTHS[-1]].items()
    }


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_load_that_loses_a_race_writes_no_row_again(subject: Subject, mode: str) -> None:
    """All three tables move under it: new versions are staged from the files that are there."""
    subject.refill(is_indexed=False)
    given = records({"append": "n", "merge": "p"}[mode], 50)
    with meanwhile(lambda: subject.other.load(records("rival", 3))):
        sent = subject.requests(lambda og: og.load(given, mode=mode))
    assert len(data_files(sent)) == len(set(data_files(sent))) == 3
    snapshot = subject.other.snapshot()
    assert snapshot.table("node:Part").row_count == (153 if mode == "append" else 103)
    assert snapshot.table("edge:Holds").row_count == 153


def test_nor_one_that_had_to_choose_among_records(subject: Subject) -> None:
    """Of two records with one id the later counts, whatever others do."""
    subject.refill(is_indexed=False)
    edge = {"edge": "Holds", "from": "p-bin1", "to": "p1", "data": {"id": "twice"}}
    given = "".join(json.dumps({**edge, "to": end}) + "\n" for end in ("p1", "p2")).encode()
    alone = data_files(subject.requests(lambda og: og.load(given)))
    with meanwhile(lambda: subject.other.load(records("rival", 3))):
        raced = data_files(subject.requests(lambda og: og.load(given)))
    assert len(raced) == len(alone)
    rows = subject.other.table(subject.other.snapshot(), "edge:Holds").read(["id", "dst"])
    assert {"id": "twice", "dst": "p2"} in rows.to_pylist()


def data_files(sent: tuple[Request, ...]) -> list[str]:
    """The paths of the files with rows that were written; images are not among them."""
    paths = [request.path.partition("?")[0] for request in sent if request.method == "PUT"]
    return [p for p in paths if "/data/" in p and ("/nodes/" in p or "/edges/" in p)]


def test_a_mutation_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for every call, and not for every attempt to publish one."""
    compiled: list[str] = []
    compile_one = queries.compile_one

    def compile_counted(text: str, *given: object) -> object:
        compiled.append(text)
        return compile_one(text, *given)

    monkeypatch.setattr(queries, "compile_one", compile_counted)
    og = new_graph(str(tmp_path / "graph"))
    other = Omnigraph.open(og.uri)
    og.mutate(INSERT, {"sku": "c1"})
    with meanwhile(lambda: other.load(records("m", 1))):
        og.mutate(INSERT, {"sku": "c2"})
    og.mutate(INSERT, {"sku": "c3"})
    assert compiled == [INSERT]
