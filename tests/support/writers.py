"""What the processes of concurrency tests do: open the graph, say `ready`, wait for `go`, write.

What a process was acknowledged, and how often it was refused on the way, is what it returns.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import AlreadyExists, BranchNotFound, ConflictError
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import StagedWithin, requirements_of
from omnigraph_core.manifest.retry import back_off
from omnigraph_core.settings import PUBLISH_LEASE
from omnigraph_core.storage.fragments import write_append
from omnigraph_core.storage.staged import stage_append
from tests.support.graphs import HOLDS, PART, SCHEMA, append_pair, holds, parts, update
from tests.support.processes import hear, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.snapshot import Snapshot

_LONGEST_BACK_OFF: Final = 5


def write_pairs(
    address: str, branch: str, writer: str, wanted: int, optimize_every: int
) -> dict[str, Any]:
    """Append pairs until that many are acknowledged; 0 to never optimize."""
    og = Omnigraph.open(address)
    refused: Counter[str] = Counter()
    acknowledged = []
    say("ready")
    hear()
    for number in range(1, wanted + 1):
        token = f"{writer}-{number:03}"
        commit = commit_pair(og, branch, token, refused)
        acknowledged.append([token, commit.graph_commit_id])
        if optimize_every and number % optimize_every == 0:
            _until_acknowledged(lambda: og.optimize(branch=branch, actor=writer), Counter())
    return {"acknowledged": acknowledged, "refused": dict(refused)}


def commit_pair(og: Omnigraph, branch: str, token: str, refused: Counter[str]) -> GraphCommit:
    """Append a pair, as often as it takes. Its files are written once and carried along."""
    snapshot = og.snapshot(branch)
    rows = {PART: parts([token]), HOLDS: holds([token])}
    files = {key: write_append(og.table(snapshot, key), rows[key]) for key in rows}
    # The files are as old as the first attempt, whatever the later ones are based on.
    lease = StagedWithin(snapshot.read_at, PUBLISH_LEASE.read())

    def attempt() -> GraphCommit:
        base = og.snapshot(branch)
        changes = []
        for key, written in files.items():
            staged = stage_append(og.table(base, key), written)
            assert staged is not None
            changes.append(update(key, staged, TableOperation.APPEND))
        requirements = (*requirements_of(base, touched=files), lease)
        return og.commit(changes, requirements, branch=branch, actor="tester")

    return _until_acknowledged(attempt, refused)


def _until_acknowledged(attempt: Callable[[], Any], refused: Counter[str]) -> Any:
    for number in count():
        try:
            return attempt()
        except ConflictError as conflict:
            if not conflict.retryable:
                raise
            refused[conflict.code] += 1
        back_off(min(number, _LONGEST_BACK_OFF))
    raise AssertionError("there is always another attempt")


def watch(address: str, branch: str) -> int:
    """Look at the branch again and again until told to stop; how many versions were seen."""
    og = Omnigraph.open(address)
    say("ready")
    hear()
    stopped = _heard_again()
    last, seen = og.snapshot(branch), 1
    is_last_look = False
    while not is_last_look:
        is_last_look = stopped.is_set()  # before looking: the final state is looked at, too
        snapshot = og.snapshot(branch)
        check_pairs(og, snapshot)
        check_follows(last, snapshot)
        seen += snapshot.manifest_version != last.manifest_version
        last = snapshot
    return seen


def record(address: str) -> None:
    """Keep the commit log complete until told to stop."""
    og = Omnigraph.open(address)
    say("ready")
    stopped = _heard_again()
    while not stopped.is_set():
        og.list_commits()


def _heard_again() -> threading.Event:
    """Set once another line has come."""
    heard = threading.Event()
    threading.Thread(target=lambda: (hear(), heard.set()), daemon=True).start()
    return heard


def check_pairs(og: Omnigraph, snapshot: Snapshot) -> None:
    """Both tables hold the same ids, each once, and as many rows as the image says."""
    part, edge = og.table(snapshot, PART), og.table(snapshot, HOLDS)
    ids = sorted(part.read(["id"])["id"].to_pylist())
    ends = sorted(edge.read(["dst"])["dst"].to_pylist())
    where = f"{snapshot.branch} at {snapshot.manifest_version}"
    assert ids == ends, f"torn: {set(ids) ^ set(ends)} on {where}"
    assert len(set(ids)) == len(ids), f"twice: {Counter(ids).most_common(3)} on {where}"
    for key, table in ((PART, part), (HOLDS, edge)):
        entry = snapshot.table(key)
        assert entry.row_count == len(ids) == table.count_rows(), f"{key} on {where}"
        assert entry.fragment_count == table.count_fragments(), f"{key} on {where}"


def check_follows(older: Snapshot, newer: Snapshot) -> None:
    """A later look shows the same version, or one built on it."""
    steps = newer.manifest_version - older.manifest_version
    assert steps >= 0, f"back from {older.manifest_version} to {newer.manifest_version}"
    commits = newer.image.commits
    versions = [commit.manifest_version for commit in commits]
    assert versions == list(range(versions[0], newer.manifest_version + 1))
    for parent, child in pairwise(commits):
        assert child.parent_commit_id == parent.graph_commit_id
    if steps < len(commits):
        assert commits[-1 - steps] == older.commit


def take_orders(address: str) -> None:
    """Do what each line says, and say how it went: `init`, `create NAME` or `delete NAME`."""
    say("ready")
    while (line := hear()) is not None:
        verb, _, name = line.partition(" ")
        try:
            say(f"done {_ORDERS[verb](address, name)}")
        except (AlreadyExists, BranchNotFound) as refused:
            say(f"refused {refused.code}")


def _init(address: str, name: str) -> str:
    """Each order names a place of its own below the address."""
    return Omnigraph.init(f"{address}/{name}", SCHEMA, actor="tester").head_commit_id_for_branch()


def _create(address: str, name: str) -> str:
    return Omnigraph.open(address).branch_create(name).incarnation


def _delete(address: str, name: str) -> str:
    Omnigraph.open(address).branch_delete(name)
    return name


_ORDERS: Final = {"init": _init, "create": _create, "delete": _delete}


def write_until_deleted(address: str) -> None:
    """On each branch heard of: append until it is gone, saying when each commit was begun."""
    og = Omnigraph.open(address)
    say("ready")
    while (branch := hear()) is not None:
        try:
            for number in count():
                begun = time.monotonic_ns()  # one clock for every process of the machine
                commit = append_pair(og, [f"{branch}-{number}"], branch)
                say(f"{begun} {commit.graph_commit_id}")
        except BranchNotFound:
            say("gone")
