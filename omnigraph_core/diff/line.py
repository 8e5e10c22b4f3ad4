"""The line of first parents of a branch as places in catalogs: where a commit is, what comes next.

Every commit of a branch is one version of its catalog. A branch begins as version 1, a copy of the
place it was forked from; what came before is in the catalog of its source. Nothing here costs more
for a longer history.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from omnigraph_core.history import refs
from omnigraph_core.history.snapshots import state_at
from omnigraph_core.manifest.layout import branch_manifest_path
from omnigraph_core.storage.image import has_version, list_versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.history.refs import BranchRef, ForkPoint
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.storage.session import Store

_FORK: Final = 1
"""The version of a branch's catalog that is a copy of where it was forked from."""


@dataclass(frozen=True, slots=True)
class Place:
    """A version of a catalog."""

    branch: str
    incarnation: str
    version: int


class Line:
    """A branch from a place of it up to its head."""

    def __init__(
        self, store: Store, head: Snapshot, stretches: tuple[Place, ...], version: int
    ) -> None:
        self._store = store
        self.head = head
        self._stretches = stretches
        """The last place of each catalog on the way, oldest catalog first."""
        self.start = self._normal(replace(stretches[0], version=version))
        """Where it begins: in place of a fork the copy of it that the branch begins with."""

    def iter_after(self, place: Place) -> Iterator[Place]:
        """The places after one, up to the head."""
        return (found for found in self._iter_from(place) if found.version != _FORK)

    def is_there(self, place: Place) -> bool:
        """Whether the catalog still has that version."""
        return has_version(self._store, _path(place), place.version)

    def load(self, place: Place) -> Snapshot:
        """
        Raises:
            SnapshotNotFound: cleanup has removed it.
        """
        head = self.head
        if (place.incarnation, place.version) == (head.incarnation, head.manifest_version):
            return head
        return state_at(self._store, place.branch, place.incarnation, place.version).snapshot

    def oldest_after(self, place: Place) -> Place:
        """The first place after one that is still there; the head always is."""
        kept: dict[str, dict[int, float]] = {}
        for found in self._iter_from(place):
            if found.incarnation not in kept:
                kept[found.incarnation] = list_versions(self._store, _path(found))
            if found.version in kept[found.incarnation]:
                return found
        return Place(self.head.branch, self.head.incarnation, self.head.manifest_version)

    def _normal(self, place: Place) -> Place:
        for last, following in pairwise(self._stretches):
            if place == last:
                place = replace(following, version=_FORK)
        return place

    def _iter_from(self, place: Place) -> Iterator[Place]:
        at = [item.incarnation for item in self._stretches].index(place.incarnation)
        first = place.version + 1
        for last in islice(self._stretches, at, None):
            for version in range(first, last.version + 1):
                yield Place(last.branch, last.incarnation, version)
            first = _FORK


def find_line(
    store: Store, ref: BranchRef, head: Snapshot, incarnation: str, version: int
) -> Line | None:
    """The line of a branch from a version of a catalog on; None if that is not on it."""
    stretches = [Place(ref.branch, ref.incarnation, head.manifest_version)]
    fork = ref.forked_from
    while stretches[0].incarnation != incarnation:
        if fork is None:
            return None
        stretches.insert(0, Place(fork.branch, fork.incarnation, fork.manifest_version))
        fork = _fork_of(store, fork)
    is_on_it = 0 < version <= stretches[0].version
    return Line(store, head, tuple(stretches), version) if is_on_it else None


def _fork_of(store: Store, source: ForkPoint) -> ForkPoint | None:
    """Where the source of a fork was forked from itself."""
    if source.incarnation == refs.MAIN_REF.incarnation:
        return None
    live = refs.try_read_branch(store, source.branch)
    if live is not None and live.incarnation == source.incarnation:
        return live.forked_from
    mark = refs.try_read_deleted(store, source.incarnation)
    return None if mark is None else mark.ref.forked_from


def _path(place: Place) -> str:
    is_main = place.incarnation == refs.MAIN_REF.incarnation
    return refs.MAIN_REF.manifest if is_main else branch_manifest_path(place.incarnation)
