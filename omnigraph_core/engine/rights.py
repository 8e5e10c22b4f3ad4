"""What an actor may do with a graph: asked by every public method before it looks at anything.

Without a judge everything is allowed. A decision is made for the very actor that is recorded, and
for the branch by the name it is found by, so that no spelling of a name gets around a rule. The
branch of a run is judged as what it came from and is about to become: a part of the run's target.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.engine.branching import resolve
from omnigraph_core.errors import CommitNotFound, NotFoundError, PolicyDenied, RunNotFound
from omnigraph_core.history.runs import RunRegistry
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.names import RUN_PREFIX
from omnigraph_core.policy.model import ON_BRANCH, Action, Request

if TYPE_CHECKING:
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.runs import RunRecord
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.policy.model import Decision, Judge

_LOG: Final = logging.getLogger("omnigraph.policy")
_IN_RUNS: Final = ON_BRANCH | {Action.SCHEMA_APPLY}
"""What can be done on the branch of a run by its name."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Who acts, and who judges it. Safe to share between threads."""

    judge: Judge | None = None
    actor: str | None = None
    runs: RunRegistry | None = None
    """Tells whose the branch of a run is."""

    def of(self, actor: str | None) -> Rights:
        """The rights of somebody else by the same policy."""
        return replace(self, actor=actor)

    def who(self, actor: str | None) -> str | None:
        """Who acts: the actor given, else the one bound."""
        return self.actor if actor is None else actor

    def demand(
        self,
        action: Action,
        *,
        branch: str | None = None,
        target_branch: str | None = None,
        actor: str | None = None,
    ) -> str | None:
        """Refuse unless the policy allows it.

        Returns:
            Who acts, to be recorded with what is written.

        Raises:
            PolicyDenied: it does not.
        """
        who = self.who(actor)
        if self.judge is None:
            return who
        decision = self._decide(self.judge, who, action, branch, target_branch)
        if not decision.is_allowed:
            raise _denied(decision)
        return who

    def allows(
        self,
        action: Action,
        *,
        branch: str | None = None,
        target_branch: str | None = None,
        actor: str | None = None,
    ) -> bool:
        """Whether `demand` would let it pass."""
        if self.judge is None:
            return True
        who = self.who(actor)
        return self._decide(self.judge, who, action, branch, target_branch).is_allowed

    def _decide(
        self,
        judge: Judge,
        who: str | None,
        action: Action,
        branch: str | None,
        target_branch: str | None,
    ) -> Decision:
        name = ((target_branch if branch is None else branch) or "").strip()
        run_id = name.removeprefix(RUN_PREFIX)
        if self.runs is None or action not in _IN_RUNS or run_id == name:
            return _ask(judge, who, action, branch, target_branch)
        try:
            run = self.runs.get(run_id)
        except RunNotFound:
            return _ask(judge, who, action, None, None)
        return _ask_in_run(judge, who, action, run)

    def demand_at(
        self,
        context: GraphContext,
        action: Action,
        target: ReadTarget,
        *,
        target_branch: str | None = None,
        actor: str | None = None,
    ) -> CatalogState:
        """The state a target names, unless the policy denies the action on its branch.

        A commit or tag is found first, as nothing else tells its branch. What is returned is what
        was judged: a tag may name something else a moment later.

        Raises:
            PolicyDenied: it does, whether or not there is such a thing.
            NotFoundError: no such branch, commit or tag.
        """
        if target.branch is not None:
            self.demand(action, branch=target.branch, target_branch=target_branch, actor=actor)
            return resolve(context, target)
        try:
            state = resolve(context, target)
        except NotFoundError:
            home = None if self.judge is None else _branch_of_lost(context, target)
            self.demand(action, branch=home, target_branch=target_branch, actor=actor)
            raise
        found = state.snapshot.branch
        self.demand(action, branch=found, target_branch=target_branch, actor=actor)
        return state

    def demand_commit(
        self, context: GraphContext, action: Action, commit_id: str, *, actor: str | None = None
    ) -> None:
        """Refuse unless the policy allows it on the branch a commit was made on.

        Raises:
            PolicyDenied: it does not, whether or not there is such a commit.
            CommitNotFound: there is no such commit.
        """
        if self.judge is None:
            return
        try:
            commit = context.commits.find(commit_id)
        except CommitNotFound:
            self.demand(action, actor=actor)
            raise
        self.demand(action, branch=commit.manifest_branch or MAIN, actor=actor)

    def demand_run(
        self, context: GraphContext, action: Action, run_id: str, *, actor: str | None = None
    ) -> str | None:
        """Refuse unless the policy allows it on the target of a run.

        Returns:
            Who acts, as `demand` does.

        Raises:
            RunNotFound: there is no such run, whoever asks.
            PolicyDenied: it does not.
        """
        if self.judge is None:
            return self.demand(action, actor=actor)
        run = RunRegistry(context.store).get(run_id)
        return self.demand(action, target_branch=run.target_branch, actor=actor)


def _branch_of_lost(context: GraphContext, target: ReadTarget) -> str | None:
    """The branch of a commit whose state is gone; None if it is not known either."""
    try:
        return context.commits.find(target.snapshot_id or "").manifest_branch or MAIN
    except CommitNotFound:
        return None


def _ask_in_run(judge: Judge, who: str | None, action: Action, run: RunRecord) -> Decision:
    """Who began a run works in it, with the right to begin it still; others do there only what
    they may do on its target: its rows are those of the target, and more. A job publishes its run
    without asking anybody, so what is in there is nobody's own."""
    if who is not None and who == run.actor_id and not run.is_job:
        begun = _ask(judge, who, Action.BRANCH_CREATE, run.target_branch, run.run_branch)
        own = _ask(judge, who, action, *_place(action, run.run_branch))
        if begun.is_allowed and own.is_allowed:
            return own
    return _ask(judge, who, action, *_place(action, run.target_branch))


def _place(action: Action, branch: str) -> tuple[str | None, str | None]:
    """The branch and the target branch of a request for something on one branch."""
    return (None, branch) if action is Action.SCHEMA_APPLY else (branch, None)


def _ask(
    judge: Judge, actor: str | None, action: Action, branch: str | None, target_branch: str | None
) -> Decision:
    request = Request(actor or "", action, _as_found(branch), _as_found(target_branch))
    decision = judge.decide(request)
    if _LOG.isEnabledFor(logging.INFO):
        facts = {
            "actor_id": request.actor,
            "action": str(action),
            "branch": request.branch or "",
            "target_branch": request.target_branch or "",
            "allowed": decision.is_allowed,
            "matched_rule_id": decision.matched_rule or "",
        }
        _LOG.info("%s", decision.message, extra=facts)
    return decision


def _as_found(branch: str | None) -> str | None:
    """Branches are found by their trimmed names."""
    return None if branch is None else branch.strip()


def _denied(decision: Decision) -> PolicyDenied:
    asked = decision.request
    return PolicyDenied(
        decision.message,
        actor=asked.actor,
        action=asked.action,
        branch=asked.branch,
        target_branch=asked.target_branch,
        rule=decision.matched_rule,
        hint=None if asked.actor else "say who acts: `--as ACTOR`, or `actor=` in Python",
    )
