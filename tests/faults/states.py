"""All of a graph that a user can see, as plain values: two states are equal or they are not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.history.log import CommitLog
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.ids import is_ulid
from omnigraph_core.manifest.layout import GRAPH_COMMIT_ACTORS
from omnigraph_core.storage.log import open_log, read
from omnigraph_core.storage.session import open_store

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.snapshot import Snapshot

Rows = list[dict[str, Any]]


def state_of(address: str) -> dict[str, Any]:
    """Everything but ids and times, which no two runs share. Checks what holds of every state."""
    og = Omnigraph.open(address)
    contents = Contents(og)
    state = {
        "branches": {name: _branch(og, contents, name) for name in og.branch_list()},
        "tags": {
            tag.tag: contents.of(og.snapshot_of(ReadTarget(tag=tag.tag))) for tag in og.tag_list()
        },
        "runs": sorted((run.operation_hash, str(run.status)) for run in og.list_runs()),
    }
    _check_log(address)
    return state


def _branch(og: Omnigraph, contents: Contents, name: str) -> dict[str, Any]:
    snapshot = og.snapshot(name)
    rows = contents.of(snapshot)
    for key, entry in snapshot.tables.items():
        assert entry.row_count == len(rows[key]), f"{key} on {name}"
    return {
        "version": snapshot.manifest_version,
        "schema": snapshot.schema.source,
        "rows": rows,
        "tables": {
            key: (entry.table_version, str(entry.operation), entry.fragment_count)
            for key, entry in snapshot.tables.items()
        },
        "commits": _commits(og, name),
    }


class Contents:
    """Rows of the snapshots of a graph; what several snapshots share is read once."""

    def __init__(self, og: Omnigraph) -> None:
        self._og = og
        self._known: dict[tuple[str, int], Rows] = {}

    def of(self, snapshot: Snapshot) -> dict[str, Rows]:
        """Every row of every table, by id; ids that were made up are all the same."""
        return {key: self._rows(snapshot, key) for key in snapshot.tables}

    def _rows(self, snapshot: Snapshot, key: str) -> Rows:
        entry = snapshot.table(key)
        pin = (entry.location, entry.physical_version)
        if pin not in self._known:
            rows = self._og.table(snapshot, key).read().to_pylist()
            self._known[pin] = sorted(
                map(_without_made_up_id, rows),
                key=lambda row: (str(row["id"]), str(row.get("src"))),
            )
        return self._known[pin]


def _without_made_up_id(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "id": "made up"} if is_ulid(row["id"]) else row


def _commits(og: Omnigraph, name: str) -> dict[str, list[tuple[Any, ...]]]:
    """Those of the branch itself, newest first, and those that merges have brought to it."""
    commits = {item.graph_commit_id: item for item in og.list_commits(name)}
    line = [commits.pop(og.head_commit_id_for_branch(name))]
    while (parent := line[-1].parent_commit_id) is not None:
        line.append(commits.pop(parent))
    merged = [item.merged_parent_commit_id for item in line if item.merged_parent_commit_id]
    assert set(merged) & set(commits) or not commits, "others are there because they were merged"
    return {"own": [_told(item) for item in line], "merged": sorted(map(_told, commits.values()))}


def _told(commit: GraphCommit) -> tuple[Any, ...]:
    return (
        commit.manifest_branch or "main",
        commit.manifest_version,
        commit.operation,
        commit.actor_id or "",
        commit.merged_parent_commit_id is not None,
    )


def _check_log(address: str) -> None:
    """Each commit once, and each at most once among those that have an actor."""
    commits, mapped = _logged(address)
    assert max(Counter(item.graph_commit_id for item in commits).values()) == 1
    assert max(Counter(mapped).values(), default=1) == 1
    assert set(mapped) <= _named(commits)


def check_actors(address: str) -> None:
    """The map that only repeats the log is complete: true after every commit that is recorded."""
    commits, mapped = _logged(address)
    assert set(mapped) == _named(commits)


def _logged(address: str) -> tuple[tuple[GraphCommit, ...], list[str]]:
    store = open_store(address)
    actors = open_log(store, GRAPH_COMMIT_ACTORS)
    mapped = [] if actors is None else read(actors)["graph_commit_id"].to_pylist()
    return CommitLog(store).commits(), mapped


def _named(commits: tuple[GraphCommit, ...]) -> set[str]:
    return {item.graph_commit_id for item in commits if item.actor_id is not None}
