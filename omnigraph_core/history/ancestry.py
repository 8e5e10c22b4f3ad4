"""Walks over the commit graph: commit ids come in, commits or one common commit go out.

Pure: a commit is found through a one-method lookup, each at most once per walk. A parent the lookup
does not know, because cleanup has reclaimed it, is not followed.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.manifest.image import GraphCommit

    Lookup: TypeAlias = Callable[[str], GraphCommit | None]


def ancestors(head_id: str, lookup: Lookup) -> Iterator[GraphCommit]:
    """The commit and everything it is built on: breadth first over both parents, each once."""
    walk = _Walk((head_id,), lookup)
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
    """The newest state that both heads are built on: no other common ancestor is built on it.

    Of several, where branches merged each other crosswise, the nearest to both heads together in
    parent links; of equals, the largest by manifest version, then time, then id. An old history
    costs nothing when there is one such state and it is near.
    """
    known: dict[str, GraphCommit | None] = {}

    def find(commit_id: str) -> GraphCommit | None:
        if commit_id not in known:
            known[commit_id] = lookup(commit_id)
        return known[commit_id]

    found = _Meeting(find).common((source_head, target_head))
    if len(found) > 1:
        found -= _older(found, find)
    if len(found) > 1:
        return _nearest(found, (source_head, target_head), find)
    return next(iter(found), None)


class _Meeting:
    """Both heads' ancestors, newest first, each marked with the heads it was reached from.

    Ancestors of a common commit are stale. What a head reaches without passing a common commit is
    walked in any case, so no newest common commit is missed, whatever the clocks of the writers
    said; wrong clocks can only give an older one besides.
    """

    _COMMON: Final = 0b011
    _STALE: Final = 0b100

    def __init__(self, find: Lookup) -> None:
        self._find = find
        self._marks: dict[str, int] = {}
        self._queue: list[tuple[int, str]] = []
        self._fresh: set[str] = set()
        """Queued ones that are not stale."""

    def common(self, heads: tuple[str, str]) -> set[str]:
        """Common commits, all of the newest among them."""
        self._reach(heads[0], 0b001)
        self._reach(heads[1], 0b010)
        found = set()
        while self._fresh:
            commit_id = heappop(self._queue)[1]
            self._fresh.discard(commit_id)
            marks = self._marks[commit_id]
            if marks == self._COMMON:
                found.add(commit_id)
                marks |= self._STALE
            commit = self._find(commit_id)
            for parent in commit.parents if commit else ():
                self._reach(parent, marks)
        return {commit_id for commit_id in found if not self._marks[commit_id] & self._STALE}

    def _reach(self, commit_id: str, marks: int) -> None:
        commit, before = self._find(commit_id), self._marks.get(commit_id, 0)
        if commit is None or before | marks == before:
            return
        self._marks[commit_id] = before | marks
        if (before | marks) & self._STALE:
            self._fresh.discard(commit_id)
        else:
            self._fresh.add(commit_id)
        heappush(self._queue, (-commit.created_at, commit_id))


def _older(found: set[str], find: Lookup) -> set[str]:
    """Those that another one is built on."""
    commits = [commit for commit in map(find, found) if commit is not None]
    walk = _Walk(tuple({parent for commit in commits for parent in commit.parents}), find)
    while walk.frontier:
        walk.advance()
    return found & walk.distances.keys()


def _nearest(found: set[str], heads: tuple[str, str], find: Lookup) -> str:
    distances = [_distances(head, found, find) for head in heads]

    def rank(commit_id: str) -> tuple[int, int, int, str]:
        commit = find(commit_id)
        version, moment = (commit.manifest_version, commit.created_at) if commit else (0, 0)
        return (-sum(far[commit_id] for far in distances), version, moment, commit_id)

    return max(found, key=rank)


def _distances(head: str, wanted: set[str], find: Lookup) -> dict[str, int]:
    """How many parent links these are away, as far as has to be walked to know."""
    walk = _Walk((head,), find)
    while walk.frontier and not wanted <= walk.distances.keys():
        walk.advance()
    return walk.distances


class _Walk:
    """One breadth-first walk: the distances so far, and the ids one step further."""

    def __init__(self, heads: tuple[str, ...], lookup: Lookup) -> None:
        self.distances: dict[str, int] = {}
        self.frontier = heads
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
