"""Decisions of a policy: rules, scopes, messages, and odd names."""

from __future__ import annotations

import threading
from itertools import product

import pytest

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.policy import authorize
from omnigraph_core.policy.authorize import Policy
from omnigraph_core.policy.load import parse_policy
from omnigraph_core.policy.model import (
    ON_BRANCH,
    ON_TARGET,
    Action,
    PolicyDocument,
    Request,
    Rule,
    Scope,
)
from tests.support.cases import each

TEXT = """\
version: 1
groups:
  team: [ada, bob]
  admins: [ada]
protected_branches: [main]
rules:
  - id: team-read
    allow: { actors: { group: team }, actions: [read, export], branch_scope: any }
  - id: team-write
    allow: { actors: { group: team }, actions: [change], branch_scope: unprotected }
  - id: admins-promote
    allow:
      actors: { group: admins }
      actions: [branch_merge, branch_delete, schema_apply]
      target_branch_scope: protected
  - id: admins-keep
    allow: { actors: { group: admins }, actions: [admin] }
"""


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy(parse_policy(TEXT, "p"), "s3://bucket/stock")


def allows(policy: Policy, actor: str, action: Action, **branches: str) -> bool:
    return policy.decide(Request(actor, action, **branches)).is_allowed


def test_team_reads_any_branch_and_changes_unprotected_ones(policy: Policy) -> None:
    for branch in ("main", "feature"):
        assert allows(policy, "bob", Action.READ, branch=branch)
    assert allows(policy, "bob", Action.READ)
    assert allows(policy, "bob", Action.CHANGE, branch="feature")
    assert not allows(policy, "bob", Action.CHANGE, branch="main")


def test_a_scope_never_matches_without_a_branch(policy: Policy) -> None:
    assert not allows(policy, "bob", Action.CHANGE)
    assert not allows(policy, "ada", Action.BRANCH_MERGE)
    assert not allows(policy, "ada", Action.BRANCH_MERGE, branch="main")


def test_admins_promote_to_protected_branches(policy: Policy) -> None:
    merge = Action.BRANCH_MERGE
    assert allows(policy, "ada", merge, branch="feature", target_branch="main")
    assert not allows(policy, "ada", merge, branch="main", target_branch="feature")
    assert not allows(policy, "bob", merge, branch="feature", target_branch="main")
    assert allows(policy, "ada", Action.SCHEMA_APPLY, target_branch="main")
    assert not allows(policy, "ada", Action.SCHEMA_APPLY, target_branch="feature")


def test_blanks_around_a_name_change_nothing(policy: Policy) -> None:
    assert not allows(policy, "bob", Action.CHANGE, branch=" main\n")
    assert allows(policy, "ada", Action.SCHEMA_APPLY, target_branch="main ")


def test_messages(policy: Policy) -> None:
    def message(*asked: str, **branches: str) -> str:
        return policy.decide(Request(asked[0], Action(asked[1]), **branches)).message

    assert message("ada", "read", branch="x") == "policy allowed action 'read' for actor 'ada'"
    assert message("bob", "admin") == "policy denied action 'admin' for actor 'bob'"
    assert message("bob", "change", branch="main") == (
        "policy denied action 'change' on branch 'main' for actor 'bob'"
    )
    assert message("bob", "branch_merge", branch="x", target_branch="main") == (
        "policy denied action 'branch_merge' on branch 'x' targeting branch 'main' for actor 'bob'"
    )
    assert message("eve", "read", branch="x") == (
        "policy denied action 'read' on branch 'x' for unknown actor 'eve'"
    )
    assert message("", "read") == "policy denied action 'read' for unknown actor ''"


def test_the_first_rule_by_name_is_told() -> None:
    rules = tuple(Rule(id, "team", (Action.READ,)) for id in ("c", "a", "b"))
    policy = Policy(PolicyDocument({"team": ("ada",)}, rules=rules), "r")
    decision = policy.decide(Request("ada", Action.READ))
    assert (decision.is_allowed, decision.matched_rule) == (True, "a")


def test_nobody_may_do_anything_without_rules() -> None:
    policy = Policy(PolicyDocument({"team": ("ada",)}), "r")
    decision = policy.decide(Request("ada", Action.READ))
    assert (decision.is_allowed, decision.matched_rule) == (False, None)


@each("scope", [None, *Scope])
@each("action", Action)
def test_truth_table(action: Action, scope: Scope | None) -> None:
    """Against a reading of the rules that knows nothing of Cedar."""
    is_aimed = action in ON_TARGET
    if scope is not None and action not in ON_BRANCH | ON_TARGET:
        return
    rule = Rule("r", "team", (action,), *((None, scope) if is_aimed else (scope, None)))
    groups = {"team": ("ada",), "others": ("bob",)}
    policy = Policy(PolicyDocument(groups, frozenset({"main"}), (rule,)), "r")
    for branch, target in product((None, "main", "side"), repeat=2):
        where = target if is_aimed else branch
        expected = scope in (None, Scope.ANY) or (
            where is not None and (where == "main") == (scope is Scope.PROTECTED)
        )
        for other in Action:
            decision = policy.decide(Request("ada", other, branch, target))
            assert decision.is_allowed == (expected and other is action), (branch, target)
        assert not policy.decide(Request("bob", action, branch, target)).is_allowed


@each(
    "name", ['a "b"', "back\\slash", "new\nline", "\x00", "\x7f", "é\u2028😀", "*", "a::b", "${x}"]
)
def test_any_name_will_do(name: str) -> None:
    rule = Rule(name, name, (Action.READ,), Scope.PROTECTED)
    document = PolicyDocument({name: (name,)}, frozenset({name}), (rule,))
    decision = Policy(document, name).decide(Request(name, Action.READ, branch=name))
    assert (decision.is_allowed, decision.matched_rule) == (True, name)
    assert not Policy(document, name).decide(Request(name, Action.READ, branch="x")).is_allowed


def test_a_branch_that_is_no_unicode_is_like_any_other(policy: Policy) -> None:
    assert allows(policy, "bob", Action.CHANGE, branch="\ud800")


def test_a_failure_of_cedar_is_no_decision(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorize, "_plain", lambda _: 7)
    fresh = Policy(policy.document, "r")
    with pytest.raises(InvariantBroken, match="Cedar evaluates requests"):
        fresh.decide(Request("ada", Action.READ))


def test_what_cedar_refuses_is_told_at_load() -> None:
    rule = Rule("r", "team", ("zap",))  # type: ignore[arg-type]
    with pytest.raises(InvariantBroken, match="unrecognized action"):
        Policy(PolicyDocument({"team": ("ada",)}, rules=(rule,)), "r")


def test_decisions_are_remembered_whatever_the_branch_is_called(policy: Policy) -> None:
    fresh = Policy(policy.document, "r")
    for number in range(50):
        assert allows(fresh, "bob", Action.CHANGE, branch=f"b{number}")
        fresh.decide(Request(f"stranger-{number}", Action.READ))
    assert len(fresh._known) == 1


def test_threads_get_the_same_answers(policy: Policy) -> None:
    fresh = Policy(policy.document, "r")
    wrong: list[str] = []

    def ask() -> None:
        for branch, expected in (("main", False), ("side", True)) * 50:
            if allows(fresh, "bob", Action.CHANGE, branch=branch) is not expected:
                wrong.append(branch)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
