"""What merges and diffs ask of an S3 store: requests, and bytes of table data, by graph size.

Counted by a proxy before a real server, on a handle opened for each operation. Bytes of data are
those of data files of tables, deletion files and indexes; the rest are catalogs and manifests.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from unittest import mock

from benchmarks.merge.data import SCHEMA, change, change_devices, fill
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.storage.row_space import stored_bytes
from tests.support.counting_proxy import CountingProxy
from tests.support.stores import new_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.merge.data import Scale
    from tests.support.s3 import S3Server

MERGE: Final = "merge, both sides changed 100 rows"
DRY_RUN: Final = "merge of the two, as a dry run"
DIFF: Final = "diff of the two branches"
DIFF_IDS: Final = "the same without values"
FAST_FORWARD: Final = "fast-forward"
ADOPT: Final = "merge, tables of the other side taken over"
AFTER_OPTIMIZE: Final = "merge, the target compacted since"
REVERT: Final = "revert of a commit of 50 rows"
NEW_ENDS: Final = "merge, 50 edges got other ends"

CELLS: Final = {DIFF: 500, DIFF_IDS: 300, REVERT: 200}
"""Values of rows far apart that have to be read, for there is no telling or writing rows without
them: in a large graph each is a page of a column for itself, and so a request.

The diff tells 6 columns of people and 4 of edges at 50 places each, where every branch has kept the
row that the other has changed. Without values there remain their ids, the ends of edges, and of
each row a value that tells it from the one with its id. The revert writes 4 columns of 50 edges.
"""

NO_DATA: Final = frozenset({FAST_FORWARD, ADOPT})
MOST_SHARE: Final = 0.02
"""Of the bytes of the tables, that a merge or diff may read of the large graph."""
MOST_GROWTH: Final = 3.0
"""By which bytes and requests may exceed those of the small graph."""


@dataclass(frozen=True, slots=True)
class Reading:
    requests: int
    data_bytes: int
    """Received from data files, deletion files and indexes of tables."""
    row_file_bytes: int
    """Of these, from data files."""
    other_bytes: int
    stored: int
    """Bytes of all data files of the graph."""

    @property
    def share(self) -> float:
        return self.data_bytes / self.stored


Measured = dict[int, dict[str, Reading]]
"""By rows of the graph, then by operation."""


def measure(server: S3Server, scales: tuple[Scale, ...]) -> Measured:
    return {scale.rows: dict(_measure_at(server, scale)) for scale in scales}


def _measure_at(server: S3Server, scale: Scale) -> Iterator[tuple[str, Reading]]:
    with CountingProxy(server.port) as proxy, _environment(server, None):
        subject = _Subject(server, proxy, scale)
        graph = subject.graph
        graph.branch_create("same")
        graph.branch_create("devices")
        graph.branch_create("behind")
        change(graph, "same", scale, side=1)
        change_devices(graph, "devices")
        yield FAST_FORWARD, subject.reading(lambda own: own.branch_merge("same", into="behind"))
        change(graph, "main", scale, side=2)
        yield ADOPT, subject.reading(lambda own: own.branch_merge("devices"))
        yield DIFF, subject.reading(lambda own: own.diff_between("main", "same"))
        yield (
            DIFF_IDS,
            subject.reading(lambda own: own.diff_between("main", "same", has_values=False)),
        )
        yield DRY_RUN, subject.reading(lambda own: own.branch_merge("same", dry_run=True))
        graph.branch_create("other")
        graph.optimize(branch="main")
        yield AFTER_OPTIMIZE, subject.reading(lambda own: own.branch_merge("same"))
        yield MERGE, subject.reading(lambda own: own.branch_merge("same", into="other"))
        commit = graph.list_commits("same", limit=1)[0].graph_commit_id
        yield REVERT, subject.reading(lambda own: own.revert(commit, branch="other"))
        graph.branch_create("ends")
        change(graph, "ends", scale, side=3, has_new_ends=True)
        change(graph, "main", scale, side=2)
        yield NEW_ENDS, subject.reading(lambda own: own.branch_merge("ends"))


class _Subject:
    """A filled graph, and handles to it through the proxy."""

    def __init__(self, server: S3Server, proxy: CountingProxy, scale: Scale) -> None:
        self._server, self._proxy = server, proxy
        self._address = new_prefix(server.bucket)
        self.graph = Omnigraph.init(self._address, SCHEMA)
        fill(self.graph, scale)
        snapshot = self.graph.snapshot()
        sizes = [stored_bytes(self.graph.table(snapshot, key)) or 0 for key in snapshot.tables]
        self._stored = sum(sizes)

    def reading(self, act: Callable[[Omnigraph], object]) -> Reading:
        with _environment(self._server, self._proxy):
            graph = Omnigraph.open(self._address)
            self._proxy.clear()
            act(graph)
        requests = self._proxy.requests
        tables = [
            request
            for request in requests
            if request.method == "GET" and ("/nodes/" in request.path or "/edges/" in request.path)
        ]
        rows = sum(request.received for request in tables if "/data/" in request.path)
        data = sum(request.received for request in tables if not _is_about(request.path))
        received = sum(request.received for request in requests)
        return Reading(len(requests), data, rows, received - data, self._stored)


def _is_about(path: str) -> bool:
    """Whether a file of a table says what there is, and holds no rows."""
    return "/_versions/" in path or "/_transactions/" in path or "list-type" in path


@contextlib.contextmanager
def _environment(server: S3Server, proxy: CountingProxy | None) -> Iterator[None]:
    settings = server.environment()
    if proxy is not None:
        settings["AWS_ENDPOINT_URL"] = proxy.endpoint
    with mock.patch.dict(os.environ, settings):
        yield


def broken_budgets(measured: Measured) -> list[str]:
    """What reads more than it may."""
    small, large = min(measured), max(measured)
    broken = []
    for name, reading in measured[large].items():
        if name in NO_DATA and reading.data_bytes:
            broken.append(f"{name}: {reading.data_bytes} bytes of data, expected none")
        if reading.share > MOST_SHARE:
            broken.append(f"{name}: {reading.share:.1%} of the tables, at most {MOST_SHARE:.0%}")
        before = measured[small][name]
        for what, count, was in (
            ("bytes", reading.data_bytes, before.data_bytes),
            ("requests", reading.requests, before.requests),
        ):
            if count > MOST_GROWTH * was:
                broken.append(f"{name}: {count / max(was, 1):.1f} times the {what}")
    return broken
