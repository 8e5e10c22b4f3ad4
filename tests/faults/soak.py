"""The processes of the soak test: writers that keep a journal, a cleaner, and a reader that checks.

A writer says what it is about to do and, once it is acknowledged, that it is done. It alone touches
its rows and branches, so its journal tells what the graph must hold, but for the last entry.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchInUse,
    BranchNotFound,
    ConflictError,
    NotFoundError,
    ObjectNotFound,
    PreconditionFailed,
    SnapshotNotFound,
)
from omnigraph_core.history.snapshots import ReadTarget
from tests.support.graphs import HOLDS, PART
from tests.support.processes import hear, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.snapshot import Snapshot

GRACE: Final = 5.0
ENVIRONMENT: Final = {"OMNIGRAPH_PUBLISH_LEASE": "2"}

_BIN: Final = "bin"
"""The edges of all pairs start there."""
_DELETE: Final = "query drop($sku: String) { delete Part where sku = $sku }"

_MAX_BRANCHES: Final = 2
_REMEMBERED: Final = 20
"""Commits that are named again: old ones as well as those that are just being cleaned up."""


def prepare(og: Omnigraph) -> None:
    """Load what every pair refers to."""
    og.load(_jsonl({"type": "Bin", "data": {"code": _BIN}}), actor="tester")


def load_pair(og: Omnigraph, branch: str, token: str, value: int) -> GraphCommit | None:
    """One commit on two tables: the token is a part and an edge, both with the value."""
    edge = {"edge": "Holds", "from": _BIN, "to": token, "data": {"id": token, "count": value}}
    part = {"type": "Part", "data": {"sku": token, "stock": value}}
    return og.load(_jsonl(part, edge), branch=branch, actor="tester").commit


def delete_pair(og: Omnigraph, branch: str, token: str) -> GraphCommit | None:
    """One commit: the part goes, and with it the edge that ends there."""
    return og.mutate(_DELETE, {"sku": token}, branch=branch, actor="tester").commit


def _jsonl(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def until_told(work: Callable[[], None]) -> None:
    """Do the work again and again, until a line comes or the process is killed."""
    told = threading.Event()
    threading.Thread(target=lambda: (hear(), told.set()), daemon=True).start()
    say("ready")
    while not told.is_set():
        work()


def churn(address: str, name: str, seed: int) -> None:
    """Write pairs to main and to branches of its own, change and delete them, compact."""
    until_told(Churn(Omnigraph.open(address), name, random.Random(seed)).step)


def sweep(address: str) -> None:
    """Clean up without end; says how much went each time."""
    og = Omnigraph.open(address)

    def work() -> None:
        report = og.cleanup(keep=1, grace=timedelta(seconds=GRACE))
        versions = sum(branch.old_versions_removed for branch in report.branches)
        say(f"{versions} {report.bytes_removed}")

    until_told(work)


def inspect(address: str) -> None:
    """Read all of every branch without end; says how many snapshots were whole."""
    og = Omnigraph.open(address)

    def work() -> None:
        for branch in og.branch_list():
            for is_held in (False, True):
                if _is_whole(og, branch, is_held=is_held):
                    say(branch)

    until_told(work)


def _is_whole(og: Omnigraph, branch: str, *, is_held: bool) -> bool:
    try:
        snapshot = og.snapshot(branch)
    except BranchNotFound:
        return False  # deleted since it was listed
    if not is_held:
        with _overtaken():
            read_pairs(og, snapshot)
            return True
        return False
    with contextlib.ExitStack() as stack:
        claim = og.hold(snapshot, purpose="test", lasting=timedelta(minutes=2))
        try:
            stack.enter_context(claim)
        except (ConflictError, NotFoundError):
            return False  # cleanup was first
        read_pairs(og, snapshot)
    return True


@contextlib.contextmanager
def _overtaken() -> Iterator[None]:
    """Files may vanish under who holds no claim, but only after the grace period."""
    started = time.monotonic()
    try:
        yield
    except ObjectNotFound:
        if time.monotonic() - started < GRACE:
            raise


def read_pairs(og: Omnigraph, snapshot: Snapshot) -> dict[str, int]:
    """Value by token; both tables tell the same, each token once."""
    part, edge = og.table(snapshot, PART).read(), og.table(snapshot, HOLDS).read()
    stocks = sorted(zip(part["id"].to_pylist(), part["stock"].to_pylist(), strict=True))
    counts = sorted(zip(edge["dst"].to_pylist(), edge["count"].to_pylist(), strict=True))
    where = f"{snapshot.branch} at {snapshot.manifest_version}"
    assert stocks == counts, f"torn: {set(stocks) ^ set(counts)} on {where}"
    assert max(Counter(token for token, _ in stocks).values(), default=1) == 1, where
    assert snapshot.table(PART).row_count == snapshot.table(HOLDS).row_count == len(stocks), where
    return dict(stocks)


class Churn:
    """One writer. `step` does one thing, chosen by chance."""

    def __init__(self, og: Omnigraph, name: str, chance: random.Random) -> None:
        self._og = og
        self._name = name
        self._chance = chance
        self._made = 0
        self._values: dict[str, dict[str, int]] = {"main": {}}
        self._commits: list[str] = []

    def step(self) -> None:
        steps = [self._add, self._add, self._change, self._remove, self._optimize, self._tag]
        steps.append(self._fork if len(self._values) <= _MAX_BRANCHES else self._drop)
        self._chance.choice(steps)()

    def _add(self) -> None:
        self._set(self._branch(), self._new_name("p"), 0)

    def _change(self) -> None:
        branch = self._branch()
        if self._values[branch]:
            token = self._chance.choice(sorted(self._values[branch]))
            self._set(branch, token, self._values[branch][token] + 1)

    def _set(self, branch: str, token: str, value: int) -> None:
        with self._journal("set", branch, token, value):
            self._write(lambda: load_pair(self._og, branch, token, value))
        self._values[branch][token] = value

    def _remove(self) -> None:
        branch = self._branch()
        if not self._values[branch]:
            return
        token = self._chance.choice(sorted(self._values[branch]))
        with self._journal("set", branch, token, None):
            self._write(lambda: delete_pair(self._og, branch, token))
        del self._values[branch][token]

    def _optimize(self) -> None:
        branch = self._branch()
        with _overtaken():
            _until_acknowledged(lambda: self._og.optimize(branch=branch))

    def _fork(self) -> None:
        """From main as it is, or as it was: cleanup may be about to remove that."""
        branch, source = self._new_name("b"), self._old_commit()
        with self._journal("create", branch):
            self._og.branch_create(branch, source=source or "main")
            self._values[branch] = {}

    def _tag(self) -> None:
        tag, target = self._new_name("t"), self._old_commit()
        with self._journal("tag", tag):
            self._og.tag_create(tag, target or "main")

    def _drop(self) -> None:
        branch = self._chance.choice([name for name in self._values if name != "main"])
        with self._journal("drop", branch):
            self._og.branch_delete(branch)
            del self._values[branch]

    def _old_commit(self) -> ReadTarget | None:
        known = self._commits[-_REMEMBERED:]
        return ReadTarget(snapshot_id=self._chance.choice(known)) if known else None

    def _branch(self) -> str:
        return self._chance.choice(list(self._values))

    def _new_name(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._name}-{self._made}"

    @contextlib.contextmanager
    def _journal(self, *entry: Any) -> Iterator[None]:
        say(json.dumps(["try", *entry]))
        try:
            yield
        except (SnapshotNotFound, PreconditionFailed, BranchInUse):
            # Cleanup was first, or a branch was forked from this one.
            say(json.dumps(["refused", *entry]))
        else:
            say(json.dumps(["done", *entry]))

    def _write(self, write: Callable[[], GraphCommit | None]) -> None:
        def attempt() -> bool:
            with _overtaken():
                commit = write()
                assert commit is not None
                self._commits.append(commit.graph_commit_id)
                return True
            return False

        while not _until_acknowledged(attempt):
            pass


def _until_acknowledged(attempt: Callable[[], Any]) -> Any:
    while True:
        try:
            return attempt()
        except ConflictError as conflict:
            if not conflict.retryable:
                raise
