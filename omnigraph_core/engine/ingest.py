"""Ingest: load into a branch that is made first if it is not there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph_core.engine.branching import create_branch
from omnigraph_core.errors import AlreadyExists, BranchNotFound
from omnigraph_core.history.snapshots import ReadTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.write.load_model import LoadOptions, LoadResult


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an ingest did; `base_branch` is what a new branch was, or would be, forked from."""

    branch: str
    base_branch: str
    branch_created: bool
    loaded: LoadResult
    actor_id: str | None

    def to_json(self) -> dict[str, object]:
        return {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": str(self.loaded.mode),
            "tables": [table.to_json() for table in self.loaded.tables],
            "actor_id": self.actor_id,
            **self.loaded.landed_json(),
        }


def ingest(
    context: GraphContext,
    base: str,
    options: LoadOptions,
    load: Callable[[LoadOptions], LoadResult],
    *,
    may_fork: Callable[[], None],
) -> IngestResult:
    """Load into a branch, forking it from `base` if it is missing.

    A branch made here stays even if the load is refused. A dry run makes none.

    Args:
        load: loads what is to be loaded.
        may_fork: raises if the branch is missing and must not be made.

    Raises:
        BranchNotFound: no such base.
        DataError, ConflictError, EmbeddingError: as of `load`; nothing was loaded.
    """
    branch, actor = options.write.branch, options.write.actor
    if options.is_dry_run and not _exists(context, branch):
        may_fork()
        on_base = replace(options, write=replace(options.write, branch=base))
        checked = replace(load(on_base), branch=branch)
        return IngestResult(branch, base, branch_created=False, loaded=checked, actor_id=actor)
    created = not options.is_dry_run and _ensure_branch(
        context, branch, base, may_fork=may_fork, actor=actor
    )
    loaded = load(options)
    return IngestResult(branch, base, branch_created=created, loaded=loaded, actor_id=actor)


def _exists(context: GraphContext, branch: str) -> bool:
    try:
        context.head(branch)
    except BranchNotFound:
        return False
    return True


def _ensure_branch(
    context: GraphContext,
    branch: str,
    base: str,
    *,
    may_fork: Callable[[], None],
    actor: str | None,
) -> bool:
    """Whether the branch had to be made."""
    if _exists(context, branch):
        return False
    may_fork()
    try:
        create_branch(context, branch, ReadTarget(branch=base), actor=actor)
    except AlreadyExists:
        return False  # another ingest was quicker
    return True
