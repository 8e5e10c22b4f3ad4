"""Who may do what where, as a table."""

from __future__ import annotations

from omnigraph_core.policy.authorize import Policy
from omnigraph_core.policy.matrix import MatrixRow, as_groups, decision_matrix
from omnigraph_core.policy.model import Action, PolicyDocument, Rule, Scope

DOCUMENT = PolicyDocument(
    groups={"team": ("ada", "bob"), "leads": ("ada",)},
    protected_branches=frozenset({"branch-1", "main"}),
    rules=(
        Rule("read", "team", (Action.READ,)),
        Rule("write", "team", (Action.CHANGE,), branch_scope=Scope.UNPROTECTED),
        Rule("promote", "leads", (Action.BRANCH_MERGE,), target_branch_scope=Scope.PROTECTED),
        Rule("keep", "leads", (Action.ADMIN,)),
    ),
)


def cells(row: MatrixRow) -> tuple[str | None, ...]:
    found = (row.protected, row.unprotected, row.no_branch)
    return tuple("?" if item is None else item.matched_rule for item in found)


def test_every_actor_and_action() -> None:
    rows = decision_matrix(Policy(DOCUMENT, "r"), DOCUMENT.actors, Action)
    assert len(rows) == 2 * len(Action)
    found = {(row.actor, row.action): cells(row) for row in rows}
    assert found["bob", Action.READ] == ("read", "read", "read")
    assert found["bob", Action.CHANGE] == (None, "write", None)
    assert found["bob", Action.BRANCH_MERGE] == (None, None, None)
    assert found["ada", Action.BRANCH_MERGE] == ("promote", None, None)
    assert found["ada", Action.ADMIN] == ("?", "?", "keep")
    assert found["ada", Action.GRAPH_LIST] == ("?", "?", None)


def test_no_protected_branch() -> None:
    open_document = PolicyDocument(DOCUMENT.groups, rules=DOCUMENT.rules)
    (row,) = decision_matrix(Policy(open_document, "r"), ["ada"], [Action.CHANGE])
    assert cells(row) == ("?", "write", None)
    assert row.to_json() == {
        "actor": "ada",
        "action": "change",
        "protected": None,
        "unprotected": {"allowed": True, "rule": "write"},
        "no_branch": {"allowed": False, "rule": None},
    }


def test_groups_in_place_of_actors() -> None:
    policy = Policy(as_groups(DOCUMENT), "r")
    rows = decision_matrix(policy, policy.document.actors, [Action.READ])
    assert {row.actor: cells(row) for row in rows} == {
        "leads": (None, None, None),
        "team": ("read", "read", "read"),
    }
