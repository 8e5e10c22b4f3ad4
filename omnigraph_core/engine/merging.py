"""Merging as `Omnigraph` offers it: branches, single commits, and taking commits back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.engine import merge_branches, merge_commits
from omnigraph_core.engine.beyond import AUTO
from omnigraph_core.engine.comparing import workers_for
from omnigraph_core.engine.merge_commits import Author
from omnigraph_core.errors import ConfigError
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.merge.model import MergeOptions, MergeSide, MergeStrategy, Resolution
from omnigraph_core.merge.resolve import check_choices
from omnigraph_core.policy.model import Action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.engine.rights import Rights
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.merge.model import MergeResult


class Merging:
    """What brings the work of one branch, or one commit, to another."""

    _context: GraphContext
    _rights: Rights

    def branch_merge(
        self,
        source: str,
        *,
        into: str = MAIN,
        strategy: MergeStrategy | str = MergeStrategy.ROW,
        resolve: MergeSide | str | None = None,
        choices: Mapping[tuple[str, str], str] | None = None,
        dry_run: bool = False,
        delete_branch: bool = False,
        if_commit: str | None = None,
        engine: str = AUTO,
        actor: str | None = None,
    ) -> MergeResult:
        """Bring what a branch has and another lacks to the other, with one commit.

        Args:
            strategy: `row`, or `property` to merge rows that both sides changed in different
                properties.
            resolve: the side that wins where both have changed a row, `ours` or `theirs`.
            choices: the side that wins for single rows, by table key and row id.
            dry_run: tell what would be done and what stands in the way; write nothing.
            delete_branch: delete the source afterwards; failing to never fails the merge.
            if_commit: refuse unless this commit is the head of the target.
            engine: who compares, decides about and writes rows: `local` is this process, `spark`
                executors of Spark, `auto` these where they are on other machines and many rows of
                a table have changed.

        Raises:
            ConfigError: the same branch twice, or options that cannot be used.
            BranchNotFound: there is no such branch.
            MergeConflicts: something has to be decided first; carries everything. Nothing was
                written, and a dry run never raises it.
            ConflictError: the head is not `if_commit`, or the target moved every time.
            JobFailed: Spark could not carry it out; nothing was committed.
        """
        actor = self._rights.demand(
            Action.BRANCH_MERGE, branch=source, target_branch=into, actor=actor
        )
        if delete_branch:
            self._rights.demand(Action.BRANCH_DELETE, target_branch=source, actor=actor)
        options = merge_options(strategy, resolve, choices, is_dry_run=dry_run)
        with (
            job_facts(operation="merge") as report,
            workers_for(engine, self._context) as workers,
        ):
            result = merge_branches.merge_into(
                self._context,
                source,
                into,
                options,
                is_internal_allowed=False,
                operation="merge",
                if_commit=if_commit,
                actor=actor,
                workers=workers,
            )
        result = replace(result, spark=report.result)
        if not delete_branch or dry_run:
            return result
        return merge_branches.delete_merged(self._context, result, actor=actor)

    def cherry_pick(
        self,
        commit_id: str,
        *,
        into: str = MAIN,
        strategy: MergeStrategy | str = MergeStrategy.ROW,
        resolve: MergeSide | str | None = None,
        choices: Mapping[tuple[str, str], str] | None = None,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> MergeResult:
        """Bring what one commit changed to a branch; of a merge, what it changed on its own branch.

        Without anything to do there is no commit, and the outcome says so.

        Raises:
            CommitNotFound, BranchNotFound, SnapshotNotFound: there is no such thing any more.
            ConfigError: the first commit of a graph, or options that cannot be used.
            MergeConflicts: something has to be decided first. Nothing was written.
        """
        author = self._demand_step(commit_id, into, actor)
        options = merge_options(strategy, resolve, choices, is_dry_run=dry_run)
        return merge_commits.pick_commit(self._context, commit_id, into, options, author)

    def revert(
        self,
        commit_id: str,
        *,
        branch: str = MAIN,
        strategy: MergeStrategy | str = MergeStrategy.ROW,
        resolve: MergeSide | str | None = None,
        choices: Mapping[tuple[str, str], str] | None = None,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> MergeResult:
        """Take back what one commit changed, and nothing that came after it.

        Raises:
            as `cherry_pick`.
        """
        author = self._demand_step(commit_id, branch, actor)
        options = merge_options(strategy, resolve, choices, is_dry_run=dry_run)
        return merge_commits.revert_commit(self._context, commit_id, branch, options, author)

    def branch_reset(
        self,
        branch: str,
        target: str | ReadTarget,
        *,
        confirm: bool = False,
        actor: str | None = None,
    ) -> GraphCommit:
        """Give a branch the state of a commit, tag or other branch; its history stays.

        Args:
            target: a commit id, or what to read.
            confirm: without it nothing is changed, and the error says what would be.

        Returns:
            The new commit; the head if the branch is in that state already.

        Raises:
            ConfigError: not confirmed.
            NotFoundError: no such branch or target.
        """
        author = self._author(branch, actor)
        chosen = ReadTarget(snapshot_id=target) if isinstance(target, str) else target
        wanted = self._rights.demand_at(
            self._context, Action.READ, chosen, actor=author.actor
        ).snapshot
        return merge_commits.reset_branch(
            self._context, branch, wanted, author, is_confirmed=confirm
        )

    def _demand_step(self, commit_id: str, branch: str, actor: str | None) -> Author:
        """Writing to the branch, and reading where the commit was made: its rows come over."""
        author = self._author(branch, actor)
        self._rights.demand_commit(self._context, Action.READ, commit_id, actor=author.actor)
        return author

    def _author(self, branch: str, actor: str | None) -> Author:
        """Whoever may change the rows of a branch; its schema only with the right to do that."""
        demand = self._rights.demand
        who = demand(Action.CHANGE, branch=branch, actor=actor)
        return Author(who, lambda: demand(Action.SCHEMA_APPLY, target_branch=branch, actor=who))


def merge_options(
    strategy: MergeStrategy | str,
    resolve: MergeSide | str | None,
    choices: Mapping[tuple[str, str], str] | None,
    *,
    is_dry_run: bool,
) -> MergeOptions:
    """How a merge is to be done, as callers say it.

    Raises:
        ConfigError: no such strategy or side.
    """
    try:
        chosen = MergeStrategy(strategy)
    except ValueError as problem:
        known = ", ".join(MergeStrategy)
        raise ConfigError(f"no strategy `{strategy}`", hint=f"give one of {known}") from problem
    try:
        side = None if resolve is None else MergeSide(resolve)
    except ValueError as problem:
        known = ", ".join(MergeSide)
        raise ConfigError(f"no side `{resolve}`", hint=f"give one of {known}") from problem
    return MergeOptions(chosen, Resolution(side, check_choices(choices or {})), is_dry_run)
