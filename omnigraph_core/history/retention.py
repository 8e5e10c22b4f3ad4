"""Which versions of a branch stay: a pure rule over versions and their moments."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from omnigraph_core.constants import CLEANUP_GRACE_SECONDS
from omnigraph_core.errors import ConfigError
from omnigraph_core.settings import PUBLISH_LEASE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Retention:
    """What cleanup keeps: the newest `keep` versions and those younger than `older_than`.

    Whatever was superseded less than `grace` ago stays as well: a reader or writer may be on it.
    Times are in seconds.
    """

    keep: int | None
    older_than: float | None
    grace: float


def retention(
    keep: int | None, older_than: timedelta | None, grace: timedelta | None = None
) -> Retention:
    """
    Raises:
        ConfigError: neither is given, or a figure would endanger running writers; tells all.
    """
    seconds = CLEANUP_GRACE_SECONDS.value if grace is None else grace.total_seconds()
    least = 2 * PUBLISH_LEASE.read()
    problems = []
    if keep is None and older_than is None:
        problems.append("give `keep`, `older_than` or both")
    if keep is not None and keep < 1:
        problems.append(f"`keep` is {keep}: the newest version always stays, give 1 or more")
    if older_than is not None and older_than.total_seconds() < 0:
        problems.append("`older_than` must not be negative")
    if seconds < least:
        problems.append(
            f"`grace` is {seconds:g} s: writers need twice {PUBLISH_LEASE.name}, {least:g} s"
        )
    if problems:
        raise ConfigError(f"cleanup: {'; '.join(problems)}")
    return Retention(keep, None if older_than is None else older_than.total_seconds(), seconds)


@dataclass(frozen=True, slots=True)
class Version:
    """A catalog version, when its writer says it was made and when the store says it was written.

    In seconds since the epoch; `created_at` is None if nothing tells it.
    """

    number: int
    created_at: float | None
    written_at: float


def retained(versions: Sequence[Version], policy: Retention, *, now: float) -> frozenset[int]:
    """The numbers of the versions to keep, of versions given oldest first.

    >>> hours = [Version(n, n * 3600.0, n * 3600.0) for n in range(1, 6)]
    >>> sorted(retained(hours, Retention(keep=2, older_than=None, grace=3600.0), now=6 * 3600.0))
    [4, 5]
    """
    kept = {version.number for version in versions[-max(1, policy.keep or 1) :]}
    for version, successor in pairwise(versions):
        is_young = policy.older_than is not None and _age(version, now) < policy.older_than
        # By the store's clock: that of a writer may be wrong either way.
        if is_young or now - successor.written_at < policy.grace:
            kept.add(version.number)
    return frozenset(kept)


def _age(version: Version, now: float) -> float:
    if version.created_at is None:
        return 0.0  # what cannot be dated is never taken for old
    return now - min(version.created_at, version.written_at)
