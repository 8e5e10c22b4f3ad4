"""Verify: what a graph says of itself against what is there. Reads only, safe beside writers.

Without depth it looks at the head of every branch: that tables open, have their files and are what
the catalog says. In depth it looks at every version that is kept, asks indexes, and checks every
row of heads and tags by the rules of the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine.sweeping import list_tables
from omnigraph_core.engine.verifying.catalogs import read_branch, read_tags, readable_versions
from omnigraph_core.engine.verifying.logs import check_logs
from omnigraph_core.engine.verifying.model import Code, Finding, Part, report, unreadable
from omnigraph_core.engine.verifying.rows import check_contents
from omnigraph_core.engine.verifying.tables import check_tables, find_garbage
from omnigraph_core.errors import StorageError
from omnigraph_core.history import refs
from omnigraph_core.history.branches import find_branch
from omnigraph_core.manifest.names import is_internal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.engine.verifying.catalogs import Seen
    from omnigraph_core.engine.verifying.model import VerifyReport
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.refs import BranchRef


def verify(context: GraphContext, branch: str | None = None, *, is_deep: bool) -> VerifyReport:
    """Check a branch, or all branches and tags.

    Raises:
        BranchNotFound: there is none of that name.
    """
    store = context.store
    listed = list_tables(store) if is_deep and branch is None else None
    live, part = _branches(context, branch)
    parts = [part]
    seen: list[Seen] = []
    for ref in live:
        versions, part = read_branch(store, ref, is_deep=is_deep)
        seen += versions
        parts.append(part)
    parts.append(check_logs(store, seen))
    if branch is None:
        tagged, part = read_tags(store)
        seen += tagged
        parts.append(part)
    tables, unfit = check_tables(store, seen, is_deep=is_deep)
    parts.append(tables)
    if is_deep:
        parts.append(check_contents(store, _readable(seen, parts), unfit))
    if listed is not None:
        parts.append(find_garbage(store, [*seen, *_of_deleted(context)], listed))
    return report(branch, parts, is_deep=is_deep)


def _branches(context: GraphContext, branch: str | None) -> tuple[tuple[BranchRef, ...], Part]:
    """Main, then those that people made: what several share is told of the first."""
    if branch is not None:
        return (find_branch(context.store, branch),), Part()
    found: list[BranchRef] = [refs.MAIN_REF]
    problems: list[Finding] = []
    try:
        names = refs.list_branch_names(context.store, has_internal=True)[1:]
    except StorageError as problem:
        return tuple(found), Part((unreadable(Code.REF_DAMAGED, "branches", problem),))
    for name in sorted(names, key=is_internal):
        try:
            ref = refs.try_read_branch(context.store, name)
        except StorageError as problem:
            problems.append(unreadable(Code.REF_DAMAGED, name, problem))
            continue
        if ref is not None:  # else deleted meanwhile
            found.append(ref)
    return tuple(found), Part(tuple(problems))


def _readable(seen: Iterable[Seen], parts: Iterable[Part]) -> list[Seen]:
    """Heads and tagged versions whose schema can be read."""
    damaged = {
        finding.place
        for part in parts
        for finding in part.findings
        if finding.code == Code.SCHEMA_DAMAGED
    }
    return [item for item in seen if item.is_head and item.place not in damaged]


def _of_deleted(context: GraphContext) -> list[Seen]:
    return [
        item
        for mark in refs.list_deleted(context.store)
        for item in readable_versions(context.store, mark.ref)
    ]
