"""How many requests each operation sends to an S3 store, by kind, at several depths of history.

Counted by a proxy before a real server, so the figures are exact and the same in every run. Each
operation runs on a handle opened for it, with nothing else going on.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from unittest import mock

from benchmarks.commit.depth import (
    deepen,
    deepen_to_flush,
    graph_at,
    republish,
    step_over_flush,
)
from omnigraph_core.constants import LOG_FLUSH_INTERVAL
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.storage.staged import stage_overwrite
from tests.support.counting_proxy import CountingProxy
from tests.support.graphs import (
    PART,
    append_pair,
    append_parts,
    parts,
    publish,
)
from tests.support.stores import new_prefix
from tests.support.table_writes import stage_upsert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.support.s3 import S3Server

    Act = Callable[[], object]

KINDS: Final = ("LIST", "GET", "HEAD", "PUT", "DELETE")
BRANCHES: Final = 40
UPSERT_ROWS: Final = 100
FEATURE: Final = "feature"

REFRESH: Final = "snapshot, nothing new"
REFRESH_MOVED: Final = "snapshot, others committed"
OPEN: Final = "open and snapshot"
PUBLISH: Final = "publish of staged versions"
ONE_TABLE: Final = "one-table commit"
ON_BRANCH: Final = "one-table commit on a branch"
TWO_TABLES: Final = "two-table commit"
UPSERT: Final = "one-row upsert"
UPSERT_INDEXED: Final = "one-row upsert, indexed"
BRANCH_CREATE: Final = "branch create"
BRANCH_LIST: Final = f"branch list, {BRANCHES} branches"
TAG_CREATE: Final = "tag create"
KNOWN_COMMIT: Final = "commit by id, read before"
FIRST_FLUSH: Final = "one-table commit, first flush of a handle"
WITH_FLUSH: Final = "one-table commit with a log flush"
FIND_COMMIT: Final = "commit by id, first read"

BUDGETS: Final = {
    OPEN: 4,
    ONE_TABLE: 12,
    ON_BRANCH: 13,  # the branch's ref is read three times
    BRANCH_CREATE: 8,
}
AMORTISED: Final = "one-table commit, flushes spread"
AMORTISED_BUDGET: Final = 12.0
GROWING: Final = frozenset({FIRST_FLUSH, WITH_FLUSH, FIND_COMMIT})
"""What reads the commit log costs more the more fragments that has; nothing else may grow."""
TOLERANCE: Final = 1


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests by kind, in the order of KINDS."""

    by_kind: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.by_kind)


Measured = dict[int, dict[str, Counts]]
"""By depth, then by operation."""


class Subject:
    """A graph behind the proxy, and a handle that writes to it for long."""

    writer: Omnigraph

    def __init__(self, server: S3Server, proxy: CountingProxy) -> None:
        self.address = new_prefix(server.bucket)
        self._direct = server.environment()
        self._proxy = proxy
        self._serial = 0

    def opened(self) -> Omnigraph:
        """A handle of its own: what other operations have read is not known to it."""
        return Omnigraph.open(self.address)

    @contextlib.contextmanager
    def uncounted(self) -> Iterator[None]:
        """Handles opened in this block go past the proxy: quicker, for building up."""
        with mock.patch.dict(os.environ, self._direct):
            yield

    def new_name(self) -> str:
        self._serial += 1
        return f"name-{self._serial}"

    def count(self, act: Act) -> Counts:
        """The requests of one call."""
        self._proxy.clear()
        act()
        sent = Counter(_kind(request.kind) for request in self._proxy.requests)
        return Counts(tuple(sent[kind] for kind in KINDS))


def measure(server: S3Server, depths: Sequence[int]) -> Measured:
    """Every operation at every depth, on two graphs that grow from one to the next."""
    with _behind_proxy(server) as proxy:
        main = Subject(server, proxy)
        with main.uncounted():
            graph = graph_at(main.address, 2)
            for _ in range(BRANCHES - 1):  # main is one too
                graph.branch_create(main.new_name())
        # On a graph of its own: the commits of a branch go into the same log.
        forked = Subject(server, proxy)
        graph_at(forked.address, 2).branch_create(FEATURE)
        return {depth: _measure_at(depth, main, forked) for depth in depths}


def measure_branch_create(server: S3Server, schema: str) -> Counts:
    """Creating a branch in a graph of that schema."""
    with _behind_proxy(server) as proxy:
        subject = Subject(server, proxy)
        og = Omnigraph.init(subject.address, schema)
        return subject.count(lambda: og.branch_create(FEATURE))


def wide_schema(types: int) -> str:
    """A schema of that many node types."""
    return "\n".join(f"node Part{number} {{ sku: String @key }}" for number in range(types))


def amortised(counts: Mapping[str, Counts]) -> float:
    """Requests of a one-table commit when its share of the log's flushes is added."""
    interval = LOG_FLUSH_INTERVAL.value
    return (counts[ONE_TABLE].total * (interval - 1) + counts[WITH_FLUSH].total) / interval


def broken_budgets(measured: Measured) -> list[str]:
    """What costs more than it may, or more the longer the history is."""
    found = []
    first = measured[min(measured)]
    for depth, counts in measured.items():
        for name, budget in BUDGETS.items():
            if counts[name].total > budget:
                found.append(f"{name} at depth {depth}: {counts[name].total}, budget {budget}")
        if amortised(counts) > AMORTISED_BUDGET:
            found.append(
                f"{AMORTISED}, at depth {depth}: {amortised(counts):.1f}, "
                f"budget {AMORTISED_BUDGET:.0f}"
            )
        for name in counts.keys() - GROWING:
            if abs(counts[name].total - first[name].total) > TOLERANCE:
                found.append(f"{name} grows: {first[name].total}, then {counts[name].total}")
    return found


@contextlib.contextmanager
def _behind_proxy(server: S3Server) -> Iterator[CountingProxy]:
    with CountingProxy(server.port) as proxy:
        environment = server.environment(endpoint=proxy.endpoint)
        with mock.patch.dict(os.environ, environment):
            yield proxy


def _measure_at(depth: int, main: Subject, forked: Subject) -> dict[str, Counts]:
    with main.uncounted():
        deepen(main.opened(), depth)
        deepen(forked.opened(), depth, FEATURE)
    return {
        name: subject.count(prepare(subject))
        for subject, operations in ((main, _ON_MAIN), (forked, {ON_BRANCH: _append_on_branch}))
        for name, prepare in operations.items()
    }


def _refresh(subject: Subject) -> Act:
    return subject.opened().snapshot


def _refresh_moved(subject: Subject) -> Act:
    og = subject.opened()
    republish(subject.opened())
    return og.snapshot


def _open(subject: Subject) -> Act:
    return lambda: subject.opened().snapshot()


def _publish(subject: Subject) -> Act:
    og = _ready(subject)
    snapshot = og.snapshot()
    table = og.table(snapshot, PART)
    return lambda: publish(og, snapshot, {PART: table}, TableOperation.COMPACTION)


def _append(subject: Subject) -> Act:
    og = _ready(subject)
    return lambda: append_parts(og, [subject.new_name()])


def _append_on_branch(subject: Subject) -> Act:
    og = subject.opened()
    step_over_flush(og, FEATURE)
    return lambda: append_parts(og, [subject.new_name()], FEATURE)


def _append_pair(subject: Subject) -> Act:
    og = _ready(subject)
    return lambda: append_pair(og, [subject.new_name()])


def _upsert(subject: Subject) -> Act:
    _refill(subject)
    return _upsert_one(subject)


def _upsert_indexed(subject: Subject) -> Act:
    _refill(subject)
    subject.opened().optimize()
    return _upsert_one(subject)


def _branch_create(subject: Subject) -> Act:
    og = subject.opened()
    return lambda: og.branch_create(subject.new_name())


def _branch_list(subject: Subject) -> Act:
    og = subject.opened()
    for surplus in og.branch_list()[BRANCHES:]:  # from measuring at the depth before
        og.branch_delete(surplus)
    assert len(og.branch_list()) == BRANCHES
    return og.branch_list


def _tag_create(subject: Subject) -> Act:
    og = subject.opened()
    return lambda: og.tag_create(subject.new_name())


def _append_with_first_flush(subject: Subject) -> Act:
    with subject.uncounted():
        deepen_to_flush(subject.opened())
    subject.writer = subject.opened()
    return lambda: append_parts(subject.writer, [subject.new_name()])


def _append_with_flush(subject: Subject) -> Act:
    deepen_to_flush(subject.writer)
    return lambda: append_parts(subject.writer, [subject.new_name()])


def _find_commit(subject: Subject) -> Act:
    og = subject.opened()
    head = og.head_commit_id_for_branch()  # just flushed: this runs after `_append_with_flush`
    return lambda: og.get_commit(head)


def _find_known_commit(subject: Subject) -> Act:
    og = subject.opened()
    head = og.head_commit_id_for_branch()
    og.get_commit(head)
    return lambda: og.get_commit(head)


_ON_MAIN: Final[Mapping[str, Callable[[Subject], Act]]] = {
    REFRESH: _refresh,
    REFRESH_MOVED: _refresh_moved,
    OPEN: _open,
    PUBLISH: _publish,
    ONE_TABLE: _append,
    TWO_TABLES: _append_pair,
    UPSERT: _upsert,
    UPSERT_INDEXED: _upsert_indexed,
    BRANCH_LIST: _branch_list,
    BRANCH_CREATE: _branch_create,
    TAG_CREATE: _tag_create,
    FIRST_FLUSH: _append_with_first_flush,
    WITH_FLUSH: _append_with_flush,
    FIND_COMMIT: _find_commit,
    KNOWN_COMMIT: _find_known_commit,
}


def _ready(subject: Subject) -> Omnigraph:
    """A handle whose next commit on main is an ordinary one."""
    step_over_flush(subject.opened())
    return subject.opened()


def _refill(subject: Subject) -> None:
    """The parts anew: one file, no deletions, no files that a cache may know."""
    og = subject.opened()
    snapshot = og.snapshot()
    rows = parts([f"p{number}" for number in range(UPSERT_ROWS)])
    staged = stage_overwrite(og.table(snapshot, PART), rows)
    assert staged is not None
    publish(og, snapshot, {PART: staged}, TableOperation.OVERWRITE)


def _upsert_one(subject: Subject) -> Act:
    og = _ready(subject)

    def act() -> None:
        snapshot = og.snapshot()
        staged = stage_upsert(og.table(snapshot, PART), parts(["p7"], stock=1))
        assert staged is not None
        publish(og, snapshot, {PART: staged}, TableOperation.UPSERT)

    return act


def _kind(kind: str) -> str:
    name = {"GET list": "LIST", "POST delete": "DELETE"}.get(kind, kind)
    assert name in KINDS, f"a kind of request this benchmark does not know: {kind}"
    return name
