"""Commits side by side: commits come in, each one goes out with the lane it stands in.

A lane leads down to the next commit it waits for. Every commit stands above its parents, whatever
the clocks of those who made them said.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from omnigraph_core.manifest.image import GraphCommit


@dataclass(frozen=True, slots=True)
class Place:
    """A commit and the lanes around it."""

    commit: GraphCommit
    lane: int
    above: tuple[int, ...]
    """Lanes that come from above."""
    joining: tuple[int, ...]
    """Those of them that end in this commit, beside its own."""
    leaving: int | None
    """The lane that leads to the merged parent."""
    is_leaving_begun: bool
    """Whether that lane begins here; it may lead there from another commit already."""
    below: tuple[int, ...]
    """Lanes that go on."""


def arrange(commits: Iterable[GraphCommit]) -> tuple[Place, ...]:
    """Newest first, each in its lane."""
    lanes: list[str | None] = []
    return tuple(_placed(commit, lanes) for commit in children_first(tuple(commits)))


def _placed(commit: GraphCommit, lanes: list[str | None]) -> Place:
    above = _alive(lanes)
    waiting = [lane for lane in above if lanes[lane] == commit.graph_commit_id]
    lane, *joining = waiting or [_free(lanes)]
    for ended in joining:
        lanes[ended] = None
    lanes[lane] = commit.parent_commit_id
    merged = commit.merged_parent_commit_id
    if merged is None or merged == commit.parent_commit_id:
        return Place(commit, lane, above, tuple(joining), None, False, _alive(lanes))
    is_begun = merged not in lanes
    leaving = _free(lanes) if is_begun else lanes.index(merged)
    lanes[leaving] = merged
    return Place(commit, lane, above, tuple(joining), leaving, is_begun, _alive(lanes))


def _alive(lanes: Sequence[str | None]) -> tuple[int, ...]:
    return tuple(lane for lane, awaited in enumerate(lanes) if awaited is not None)


def _free(lanes: list[str | None]) -> int:
    """The first lane nobody is in."""
    if None in lanes:
        return lanes.index(None)
    lanes.append(None)
    return len(lanes) - 1


def children_first(commits: Sequence[GraphCommit]) -> tuple[GraphCommit, ...]:
    """Newest first, but no commit before one that was made upon it."""
    known = {commit.graph_commit_id: commit for commit in commits}
    children = Counter(parent for commit in known.values() for parent in commit.parents)
    ready = [_age(commit) for commit in known.values() if not children[commit.graph_commit_id]]
    heapq.heapify(ready)
    found = []
    while ready:
        commit = known[heapq.heappop(ready)[-1]]
        found.append(commit)
        for parent in commit.parents:
            children[parent] -= 1
            if parent in known and not children[parent]:
                heapq.heappush(ready, _age(known[parent]))
    return tuple(found)


def _age(commit: GraphCommit) -> tuple[int, str]:
    return -commit.created_at, commit.graph_commit_id
