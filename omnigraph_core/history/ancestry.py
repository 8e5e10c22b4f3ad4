"""Walks over the commit graph: commit ids come in, commits or common ones go out.

Pure: a commit is found through a one-method lookup, each at most once per walk. A parent the lookup
does not know, because cleanup has reclaimed it, is not followed.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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
    """The nearest of the merge bases, where one has to do; None if there is none."""
    return next(iter(merge_bases(source_head, target_head, lookup)), None)


def merge_bases(source_head: str, target_head: str, lookup: Lookup) -> tuple[str, ...]:
    """The newest states that both heads are built on: no other common ancestor is built on them.

    There are several where branches merged each other crosswise. The nearest to both heads together
    in parent links comes first; of equals, the largest by manifest version, then time, then id. An
    old history costs nothing: what is walked is newer than the bases, or than what they have in
    common if there are several.
    """
    known: dict[str, GraphCommit | None] = {}

    def find(commit_id: str) -> GraphCommit | None:
        if commit_id not in known:
            known[commit_id] = lookup(commit_id)
        return known[commit_id]

    meeting = _Meeting(find)
    found = meeting.common(source_head, target_head)
    if len(found) > 1:
        # Clocks of writers may be wrong: then something older is among them.
        found = {item for item in found if not _is_older(item, found, find)}
    if len(found) < 2:
        return tuple(found)
    return _nearest_first(
        found, [meeting.distances(head) for head in (source_head, target_head)], find
    )


class _Meeting:
    """The ancestors of two sides, newest first, each marked with the sides it was reached from.

    Ancestors of a common commit are stale. What a side reaches without passing a common commit is
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

    def common(self, one: str, *others: str) -> set[str]:
        """Commits that one head and any of the others contain, all of the newest among them."""
        self._reach(one, 0b001)
        for other in others:
            self._reach(other, 0b010)
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

    def distances(self, head: str) -> dict[str, int]:
        """How many parent links the common commits are away from a head, and what is before them.

        Nothing is looked at that was not before: no way to one of the newest common commits leads
        through another common one.
        """
        return _Walk((head,), self._find_own).all_distances()

    def _find_own(self, commit_id: str) -> GraphCommit | None:
        marks = self._marks.get(commit_id, 0)
        return None if marks & self._COMMON == self._COMMON else self._find(commit_id)

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


def _is_older(commit_id: str, found: set[str], find: Lookup) -> bool:
    """Whether another one is built on it."""
    return commit_id in _Meeting(find).common(commit_id, *(found - {commit_id}))


def _nearest_first(
    found: set[str], distances: Sequence[Mapping[str, int]], find: Lookup
) -> tuple[str, ...]:
    def rank(commit_id: str) -> tuple[int, int, int, str]:
        commit = find(commit_id)
        version, moment = (commit.manifest_version, commit.created_at) if commit else (0, 0)
        return (-sum(far[commit_id] for far in distances), version, moment, commit_id)

    return tuple(sorted(found, key=rank, reverse=True))


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

    def all_distances(self) -> dict[str, int]:
        """Those of everything there is to reach."""
        while self.frontier:
            self.advance()
        return self.distances
