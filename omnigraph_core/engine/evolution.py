"""The schema of a graph as `Omnigraph` offers it: shown, planned and applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.clock import now_us
from omnigraph_core.engine import branching
from omnigraph_core.engine.schema_apply import (
    SchemaRequest,
    apply_schema,
    rehearse_schema,
    report_plan,
)
from omnigraph_core.history.locks import try_read_lock
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.snapshot import Snapshot
from omnigraph_core.policy.model import Action

if TYPE_CHECKING:
    from omnigraph_core.engine.rights import Rights
    from omnigraph_core.evolve.report import SchemaApplyResult, SchemaPlanReport
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.image import AcceptedSchema


class Evolution:
    """What changes the schema of a graph."""

    _context: GraphContext
    _rights: Rights

    def schema_show(self, target: str | ReadTarget | Snapshot = MAIN) -> AcceptedSchema:
        """The schema in force: its source as it was given, and its compiled document.

        Raises:
            NotFoundError: there is no such branch, commit or tag.
        """
        self._rights.demand(Action.READ)
        if isinstance(target, Snapshot):
            return target.schema
        wanted = ReadTarget(branch=target) if isinstance(target, str) else target
        return branching.resolve(self._context, wanted).snapshot.schema

    def schema_plan(
        self, source: str, *, branch: str = MAIN, allow_data_loss: bool = False
    ) -> SchemaPlanReport:
        """The steps from the schema of a branch to another, and what they take; reads no rows.

        Args:
            source: the whole new schema.
            allow_data_loss: drops take their data away for good.

        Raises:
            CompileError: the text is wrong; a change that cannot be carried out is a step.
            BranchNotFound: there is none of that name.
        """
        self._rights.demand(Action.READ)
        return report_plan(self._context, SchemaRequest(source, branch, allow_data_loss))

    def schema_apply(
        self,
        source: str,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> SchemaApplyResult:
        """Bring a schema into force on a branch with one commit; other branches keep theirs.

        Rows are checked first, as they will be. Writers go on meanwhile.

        Args:
            source: the whole new schema.
            allow_data_loss: drops take their data away for good, older versions of the branch too.
            dry_run: plan and check the rows, change nothing.

        Raises:
            CompileError: the text is wrong, or a change cannot be carried out; nothing changed.
            DataError: rows do not allow it, with all of them; nothing changed.
            SchemaApplyLocked: somebody else is changing the schema of this branch.
            ConflictError: the schema changed meanwhile, or the tables kept moving.
            BranchNotFound: there is none of that name.
        """
        actor = self._rights.demand(Action.SCHEMA_APPLY, target_branch=branch, actor=actor)
        request = SchemaRequest(source, branch, allow_data_loss, actor)
        return (rehearse_schema if dry_run else apply_schema)(self._context, request)


def schema_changed_by(graph: Evolution, branch: str = MAIN) -> str | None:
    """Who is changing the schema of a branch right now; None if nobody is."""
    graph._rights.demand(Action.READ, branch=branch)
    held = try_read_lock(graph._context.store, branch)
    return None if held is None or held.expires_at <= now_us() else held.owner
