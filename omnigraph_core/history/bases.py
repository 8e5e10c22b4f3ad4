"""What two heads are compared with in a merge: ids come in, one commit or several to join go out.

Pure. Where branches merged each other crosswise several commits are the newest that both contain;
each alone lacks what the other has brought, so they are joined by a merge of their own first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.history.ancestry import merge_bases

if TYPE_CHECKING:
    from omnigraph_core.history.ancestry import Lookup
    from omnigraph_core.manifest.image import GraphCommit

MOST_LEVELS: Final = 32
"""How far joins of joins are followed; whatever commits beyond that disagree about is not known."""


@dataclass(frozen=True, slots=True)
class Join:
    """Two states to be joined, the second a commit, and what they are compared with for that.

    `root` is None where that is not known.
    """

    ours: MergeBase
    theirs: str
    root: MergeBase | None


MergeBase: TypeAlias = "str | Join"
"""A commit id, or what has to be joined."""


def find_base(source_head: str, target_head: str, lookup: Lookup) -> MergeBase | None:
    """What two heads are compared with; None if they have no commit in common."""
    return _found(source_head, target_head, lookup, MOST_LEVELS)


def nearest(base: MergeBase) -> str:
    """The commit that comes first."""
    while isinstance(base, Join):
        base = base.ours
    return base


def commits_of(base: MergeBase | None) -> frozenset[str]:
    """Every commit whose state is needed."""
    if isinstance(base, Join):
        return commits_of(base.ours) | {base.theirs} | commits_of(base.root)
    return frozenset() if base is None else frozenset({base})


def _found(one: str, other: str, lookup: Lookup, levels: int) -> MergeBase | None:
    commits = merge_bases(one, other, lookup)
    if not commits:
        return None
    if levels == 0:
        return commits[0] if len(commits) == 1 else None
    joined: MergeBase = commits[0]
    head = commits[0]
    made: dict[str, GraphCommit] = {}

    def find(commit_id: str) -> GraphCommit | None:
        return made.get(commit_id) or lookup(commit_id)

    for commit_id in commits[1:]:
        joined = Join(joined, commit_id, _found(head, commit_id, find, levels - 1))
        head = _made_of(head, commit_id, find, made)
    return joined


def _made_of(one: str, other: str, find: Lookup, made: dict[str, GraphCommit]) -> str:
    """A commit that would be built on two, so that what it has in common with others is found."""
    first, second = find(one), find(other)
    assert first is not None  # bases are known
    assert second is not None
    commit_id = f"{one}+{other}"
    made[commit_id] = replace(
        first,
        graph_commit_id=commit_id,
        parent_commit_id=one,
        merged_parent_commit_id=other,
        created_at=max(first.created_at, second.created_at),
    )
    return commit_id
