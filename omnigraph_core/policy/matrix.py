"""Who may do what where: a document comes in, a row for every actor and action goes out.

Each cell is a decision of the policy itself; nothing here reads rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from omnigraph_core.policy.model import ON_BRANCH, ON_TARGET, Action, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.policy.authorize import Policy
    from omnigraph_core.policy.model import Decision, PolicyDocument


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """What one actor may do with one action. None: it is never asked for there."""

    actor: str
    action: Action
    protected: Decision | None
    """On, or aimed at, a protected branch; None also if no branch is protected."""
    unprotected: Decision | None
    no_branch: Decision | None

    def to_json(self) -> dict[str, object]:
        return {
            "actor": self.actor,
            "action": str(self.action),
            "protected": _cell(self.protected),
            "unprotected": _cell(self.unprotected),
            "no_branch": _cell(self.no_branch),
        }


def decision_matrix(
    policy: Policy, actors: Iterable[str], actions: Iterable[Action]
) -> tuple[MatrixRow, ...]:
    """A row for each actor and action, in the order given."""
    document = policy.document
    protected = min(document.protected_branches, default=None)
    unprotected = next(name for name in _names() if name not in document.protected_branches)
    wanted = tuple(actions)

    def row(actor: str, action: Action) -> MatrixRow:
        return MatrixRow(
            actor,
            action,
            protected=_decided(policy, actor, action, protected),
            unprotected=_decided(policy, actor, action, unprotected),
            no_branch=policy.decide(Request(actor, action)),
        )

    return tuple(row(actor, action) for actor in actors for action in wanted)


def as_groups(document: PolicyDocument) -> PolicyDocument:
    """The same rules, with each group in place of its members: what a group alone may do."""
    return replace(document, groups={group: (group,) for group in document.groups})


def _names() -> Iterator[str]:
    """Branches anybody might make."""
    return (f"branch-{number}" for number in count(1))


def _decided(policy: Policy, actor: str, action: Action, branch: str | None) -> Decision | None:
    if branch is not None and action in ON_BRANCH:
        return policy.decide(Request(actor, action, branch=branch))
    if branch is not None and action in ON_TARGET:
        return policy.decide(Request(actor, action, target_branch=branch))
    return None


def _cell(decision: Decision | None) -> dict[str, object] | None:
    if decision is None:
        return None
    return {"allowed": decision.is_allowed, "rule": decision.matched_rule}
