"""A policy that decides: a checked document goes in as Cedar, requests come in, decisions go out.

Whatever no rule allows is denied. A failure of Cedar is an error, never a decision.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import cedarpy

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.policy.model import Action, Decision, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.policy.model import PolicyDocument, Request, Rule

_CONTEXT: Final = ", ".join(
    (
        "has_branch: Bool",
        "branch: String",
        "has_target_branch: Bool",
        "target_branch: String",
        "branch_is_protected: Bool",
        "target_branch_is_protected: Bool",
    )
)
_SCHEMA: Final = f"""namespace Omnigraph {{
  entity Group;
  entity Actor in [Group];
  entity Repo;
  action {", ".join(f'"{action}"' for action in Action)} appliesTo {{
    principal: [Actor], resource: [Repo], context: {{ {_CONTEXT} }}
  }};
}}"""


@dataclass(frozen=True, slots=True)
class _Facts:
    """All that rules can tell requests apart by."""

    actor: str
    action: Action
    has_branch: bool
    branch_is_protected: bool
    has_target_branch: bool
    target_branch_is_protected: bool


class Policy:
    """A judge by one document. Safe to share between threads."""

    def __init__(self, document: PolicyDocument, resource: str) -> None:
        """
        Args:
            resource: what the policy is about, as Cedar is told: the address of a graph, or the
                name of a project.

        Raises:
            InvariantBroken: Cedar refuses what the document became.
        """
        self.document = document
        self.resource = resource
        self._actors = frozenset(document.actors)
        pairs = [(rule, action) for rule in document.rules for action in rule.actions]
        # Cedar names policies by their place, so the place tells the rule.
        self._rule_ids = {f"policy{place}": rule.id for place, (rule, _) in enumerate(pairs)}
        text = "\n".join(_permit(rule, action, resource) for rule, action in pairs)
        self._schema, self._policies, self._entities = _parsed(text, document, resource)
        self._known: dict[_Facts, str | None] = {}
        """The rule that allows, for what was asked before. Bounded: actors, actions, booleans."""

    def decide(self, request: Request) -> Decision:
        """
        Raises:
            InvariantBroken: Cedar could not evaluate the request.
        """
        if request.actor not in self._actors:
            message = f"{_denied(request)} for unknown actor '{request.actor}'"
            return Decision(request, is_allowed=False, matched_rule=None, message=message)
        rule = self._matched_rule(request)
        if rule is None:
            message = f"{_denied(request)} for actor '{request.actor}'"
        else:
            message = f"policy allowed action '{request.action}' for actor '{request.actor}'"
        return Decision(request, is_allowed=rule is not None, matched_rule=rule, message=message)

    def _matched_rule(self, request: Request) -> str | None:
        """The alphabetically first of the rules that allow it."""
        protected = self.document.protected_branches
        facts = _Facts(
            request.actor,
            request.action,
            has_branch=request.branch is not None,
            branch_is_protected=(request.branch or "").strip() in protected,
            has_target_branch=request.target_branch is not None,
            target_branch_is_protected=(request.target_branch or "").strip() in protected,
        )
        if facts not in self._known:
            self._known[facts] = min(self._iter_fired(request, facts), default=None)
        return self._known[facts]

    def _iter_fired(self, request: Request, facts: _Facts) -> Iterator[str]:
        answer = cedarpy.is_authorized(
            {
                "principal": _uid("Actor", facts.actor),
                "action": _uid("Action", facts.action),
                "resource": _uid("Repo", self.resource),
                "context": {
                    "has_branch": facts.has_branch,
                    "branch": _plain(request.branch),
                    "has_target_branch": facts.has_target_branch,
                    "target_branch": _plain(request.target_branch),
                    "branch_is_protected": facts.branch_is_protected,
                    "target_branch_is_protected": facts.target_branch_is_protected,
                },
            },
            self._policies,
            self._entities,
            self._schema,
        )
        if answer.diagnostics.errors or answer.decision is cedarpy.Decision.NoDecision:
            raise InvariantBroken(f"Cedar evaluates requests: {answer.diagnostics.errors}")
        return (self._rule_ids[policy] for policy in answer.diagnostics.reasons)


def _denied(request: Request) -> str:
    on = "" if request.branch is None else f" on branch '{request.branch}'"
    at = "" if request.target_branch is None else f" targeting branch '{request.target_branch}'"
    return f"policy denied action '{request.action}'{on}{at}"


def _parsed(
    text: str, document: PolicyDocument, resource: str
) -> tuple[cedarpy.Schema, cedarpy.PolicySet, cedarpy.Entities]:
    try:
        schema = cedarpy.Schema.from_str(_SCHEMA)
        found = cedarpy.validate_policies(text, schema)
        policies = cedarpy.PolicySet.from_str(text)
        entities = cedarpy.Entities.from_json_str(_entities(document, resource), schema)
    except ValueError as problem:
        raise InvariantBroken(f"Cedar accepts a checked policy: {problem}") from problem
    if not found.validation_passed:
        problems = "; ".join(map(str, found.errors))
        raise InvariantBroken(f"Cedar accepts a checked policy: {problems}")
    return schema, policies, entities


def _permit(rule: Rule, action: Action, resource: str) -> str:
    """
    >>> from omnigraph_core.policy.model import Rule
    >>> rule = Rule("r", "team", (Action.READ,), branch_scope=Scope.UNPROTECTED)
    >>> print(_permit(rule, Action.READ, "stock"))
    permit(principal in Omnigraph::Group::"team", action == Omnigraph::Action::"read", \
resource == Omnigraph::Repo::"stock") when { context.has_branch && !context.branch_is_protected };
    """
    scope = f"principal in Omnigraph::Group::{_quoted(rule.group)}, "
    scope += f"action == Omnigraph::Action::{_quoted(action)}, "
    scope += f"resource == Omnigraph::Repo::{_quoted(resource)}"
    return f"permit({scope}) when {{ {_condition(rule)} }};"


def _condition(rule: Rule) -> str:
    scopes = {"branch": rule.branch_scope, "target_branch": rule.target_branch_scope}
    wanted = {name: scope for name, scope in scopes.items() if scope not in (None, Scope.ANY)}
    for name, scope in wanted.items():
        sign = "" if scope is Scope.PROTECTED else "!"
        return f"context.has_{name} && {sign}context.{name}_is_protected"
    return "true"


def _entities(document: PolicyDocument, resource: str) -> str:
    parents: dict[str, list[dict[str, str]]] = {actor: [] for actor in document.actors}
    for group, members in document.groups.items():
        for actor in members:
            parents[actor].append(_uid("Group", group))
    entities = [
        *(_entity("Group", group) for group in document.groups),
        *(_entity("Actor", actor, of) for actor, of in parents.items()),
        _entity("Repo", resource),
    ]
    return json.dumps(entities)


def _entity(type: str, id: str, parents: list[dict[str, str]] | None = None) -> dict[str, object]:
    return {"uid": _uid(type, id), "attrs": {}, "parents": parents or []}


def _uid(type: str, id: str) -> dict[str, str]:
    return {"type": f"Omnigraph::{type}", "id": id}


def _quoted(text: str) -> str:
    r"""A Cedar string; its escapes are not those of JSON.

    >>> print(_quoted('a "b"'))
    "a \u{22}b\u{22}"
    """
    escaped = re.sub(r"[^A-Za-z0-9 ._/:-]", lambda found: f"\\u{{{ord(found[0]):x}}}", text)
    return f'"{escaped}"'


def _plain(name: str | None) -> str:
    """A name as Unicode text: no branch has another one, but anybody may ask for it."""
    return (name or "").encode(errors="replace").decode()
