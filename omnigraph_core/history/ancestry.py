"""Walks over the commit graph: commit ids come in, commits or one common commit go out.

Pure: a commit is found through a one-method lookup, each at most once per walk. A parent the lookup
does not know, because cleanup has reclaimed it, is not followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from omnigraph_core.manifest.image import GraphCommit

    Lookup: TypeAlias = Callable[[str], GraphCommit | None]
    _Rank: TypeAlias = tuple[int, int, int, str]


def ancestors(head_id: str, lookup: Lookup) -> Iterator[GraphCommit]:
    """The commit and everything it is built on: breadth first over both parents, each once."""
    walk = _Walk(head_id, lookup)
    while walk.frontier:
        yield from walk.advance()


def first_parents(head_id: str, lookup: Lookup) -> Iterator[GraphCommit]:
    """The commit and its line of first parents: what happened on the branch itself."""
    commit = lookup(head_id)
    while commit is not None:
        yield commit
        commit = lookup(commit.parent_commit_id) if commit.parent_commit_id else None


def is_ancestor(older: str, newer: str, lookup: Lookup) -> bool:
    """Whether `newer` contains `older`; every commit contains itself."""
    return older == newer or any(older in commit.parents for commit in ancestors(newer, lookup))


def merge_base(source_head: str, target_head: str, lookup: Lookup) -> str | None:
    """The common ancestor nearest to both heads together.

    Nearest is the smallest sum of both distances in parent links; of equals, the largest by
    manifest version, then time, then id. Both sides are walked level by level, and no further than
    that sum: an old history costs nothing when the base is near.
    """
    known: dict[str, GraphCommit | None] = {}

    def find(commit_id: str) -> GraphCommit | None:
        if commit_id not in known:
            known[commit_id] = lookup(commit_id)
        return known[commit_id]

    source, target = _Walk(source_head, find), _Walk(target_head, find)
    best: _Rank | None = None
    depth = 0
    # What one side has not seen at this depth is at least this far away.
    while (source.frontier or target.frontier) and (best is None or depth <= -best[0]):
        for walk, other in ((source, target), (target, source)):
            best = max(filter(None, (best, *_common(walk.advance(), walk, other))), default=None)
        depth += 1
    return best[-1] if best else None


class _Walk:
    """One breadth-first walk: the distances so far, and the ids one step further."""

    def __init__(self, head_id: str, lookup: Lookup) -> None:
        self.distances: dict[str, int] = {}
        self.frontier: tuple[str, ...] = (head_id,)
        self._lookup = lookup
        self._depth = 0

    def advance(self) -> tuple[GraphCommit, ...]:
        """Take the step; the commits newly reached."""
        found = [self._lookup(commit_id) for commit_id in self.frontier]
        reached = tuple(commit for commit in found if commit is not None)
        self.distances.update(dict.fromkeys(self.frontier, self._depth))
        parents = dict.fromkeys(parent for commit in reached for parent in commit.parents)
        self.frontier = tuple(parent for parent in parents if parent not in self.distances)
        self._depth += 1
        return reached


def _common(reached: Iterable[GraphCommit], walk: _Walk, other: _Walk) -> Iterator[_Rank]:
    """Ranks of those among the reached that the other side has reached too: greatest is best."""
    for commit in reached:
        commit_id = commit.graph_commit_id
        if commit_id in other.distances:
            distance = walk.distances[commit_id] + other.distances[commit_id]
            yield (-distance, commit.manifest_version, commit.created_at, commit_id)
