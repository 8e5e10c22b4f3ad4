"""Which commits merges between branches can be compared with: heads come in, commits go out.

Pure, and one pass over the commits however many branches there are: what the newest commits common
to two heads can be is asked of all pairs at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from omnigraph_core.manifest.image import GraphCommit


def junctions(heads: Iterable[str], commits: Mapping[str, GraphCommit]) -> frozenset[str]:
    """Every commit that some two heads have in common with none of its successors.

    Also those that these have in common among each other, and so on: where several are the newest
    of one pair, they are joined by a merge of their own, which needs what they come from.
    """
    order = _children_first(commits)
    children = _children(commits)
    found: frozenset[str] = frozenset()
    asked = frozenset(heads) & commits.keys()
    while True:
        more = _between(sorted(asked | found), order, children)
        if more <= found:
            return found
        found |= more


def _children(commits: Mapping[str, GraphCommit]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {commit_id: [] for commit_id in commits}
    for commit_id, commit in commits.items():
        for parent in commit.parents:
            if parent in children:
                children[parent].append(commit_id)
    return children


def _children_first(commits: Mapping[str, GraphCommit]) -> list[str]:
    """All commits, each after everything that is built on it."""
    waiting = dict.fromkeys(commits, 0)
    for commit in commits.values():
        for parent in commit.parents:
            if parent in waiting:
                waiting[parent] += 1
    ready = [commit_id for commit_id, count in waiting.items() if count == 0]
    for commit_id in ready:  # grows while it is gone through
        for parent in commits[commit_id].parents:
            if parent in waiting:
                waiting[parent] -= 1
                if waiting[parent] == 0:
                    ready.append(parent)
    return ready


def _between(
    heads: Sequence[str], order: Sequence[str], children: Mapping[str, Sequence[str]]
) -> frozenset[str]:
    numbers = {head: number for number, head in enumerate(heads)}
    containing: dict[str, int] = {}
    """Which heads contain each commit, a bit for each."""
    found = set()
    for commit_id in order:
        own = 1 << numbers[commit_id] if commit_id in numbers else 0
        above = [containing[child] for child in children[commit_id]]
        together = own
        for heads_above in above:
            together |= heads_above
        containing[commit_id] = together
        if together not in above and _is_newest_of_two(together, above):
            found.add(commit_id)
    return frozenset(found)


def _is_newest_of_two(together: int, above: Iterable[int]) -> bool:
    """Whether two heads contain a commit, and no single one of its successors is in both."""
    left = together
    while left:
        head = left & -left
        left ^= head
        met = head
        for heads_above in above:
            if heads_above & head:
                met |= heads_above
        if met != together:
            return True
    return False
