"""The words of a policy: rules that allow, what is asked, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Action(StrEnum):
    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    RUN_PUBLISH = "run_publish"
    RUN_ABORT = "run_abort"
    ADMIN = "admin"
    """Maintenance: optimize, cleanup, indexes."""
    INVOKE_QUERY = "invoke_query"
    """Stored queries of a server."""
    GRAPH_LIST = "graph_list"
    """Which graphs a server has."""


ON_BRANCH: Final = frozenset({Action.READ, Action.EXPORT, Action.CHANGE, Action.INVOKE_QUERY})
"""Actions on a branch: a rule may say on which with `branch_scope`."""
ON_TARGET: Final = frozenset(
    {
        Action.SCHEMA_APPLY,
        Action.BRANCH_CREATE,
        Action.BRANCH_DELETE,
        Action.BRANCH_MERGE,
        Action.RUN_PUBLISH,
        Action.RUN_ABORT,
    }
)
"""Actions that aim at a branch: a rule may say at which with `target_branch_scope`."""


class Scope(StrEnum):
    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


@dataclass(frozen=True, slots=True)
class Rule:
    """Allows a group some actions; at most one of the scopes is given."""

    id: str
    group: str
    actions: tuple[Action, ...]
    branch_scope: Scope | None = None
    target_branch_scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """A policy file that has been checked."""

    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    protected_branches: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()
    warnings: tuple[str, ...] = ()
    """What is in the file and means nothing, a line each."""

    @property
    def actors(self) -> tuple[str, ...]:
        """Everybody who is in a group, by name."""
        return tuple(sorted({actor for members in self.groups.values() for actor in members}))


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants to do. A branch that plays no part is None."""

    actor: str
    action: Action
    branch: str | None = None
    target_branch: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    request: Request
    is_allowed: bool
    matched_rule: str | None
    """The alphabetically first rule that allows it."""
    message: str


class Judge(Protocol):
    """Whatever decides: a policy in memory, or a file that may change."""

    def decide(self, request: Request) -> Decision: ...
