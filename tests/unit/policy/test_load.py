"""Policy files: what is accepted, and every way to be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.policy.load import load_policy, parse_policy
from omnigraph_core.policy.model import Action, PolicyDocument, Rule, Scope
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = """\
version: 1
kind: server
groups:
  team: [act-a, act-b]
  admins: [act-a]
protected_branches: [main, " release "]
rules:
  - id: team-read
    allow:
      actors: { group: team }
      actions: [read, export, invoke_query]
      branch_scope: any
  - id: admins-promote
    allow:
      actors: { group: admins }
      actions: [branch_merge, branch_delete, schema_apply, branch_create, run_publish, run_abort]
      target_branch_scope: protected
  - id: admins-run
    allow:
      actors: { group: admins }
      actions: [admin, graph_list, invoke_query, read, branch_merge]
"""

HEAD = "version: 1\ngroups:\n  team: [ada]\n"


def rule(text: str, id: str = "r") -> str:
    return f"{HEAD}rules:\n  - id: {id}\n    allow: {{ {text} }}\n"


def refused(text: str) -> list[str]:
    with pytest.raises(ConfigError) as problem:
        parse_policy(text, "p.yaml")
    return problem.value.message.splitlines()


def test_whole_file() -> None:
    found = parse_policy(WHOLE, "p.yaml")
    assert found.groups == {"team": ("act-a", "act-b"), "admins": ("act-a",)}
    assert found.actors == ("act-a", "act-b")
    assert found.protected_branches == {"main", "release"}
    assert found.warnings == ()
    reading, promoting, running = found.rules
    assert reading == Rule(
        "team-read", "team", (Action.READ, Action.EXPORT, Action.INVOKE_QUERY), Scope.ANY
    )
    assert promoting.target_branch_scope is Scope.PROTECTED
    assert promoting.branch_scope is None
    assert (running.branch_scope, running.target_branch_scope) == (None, None)


def test_everything_but_the_version_may_be_missing() -> None:
    assert parse_policy("version: 1", "p") == PolicyDocument()
    assert parse_policy("version: 1\ngroups:\nrules:\nprotected_branches:\n", "p") == (
        PolicyDocument()
    )


def test_a_scope_without_a_value_is_none() -> None:
    text = rule("actors: { group: team }, actions: [admin], branch_scope: , target_branch_scope: ")
    assert parse_policy(text, "p").rules == (Rule("r", "team", (Action.ADMIN,)),)


SAID: dict[str, tuple[str, str]] = {
    "empty": ("", "p.yaml: the policy has no `version`, give `version: 1`"),
    "null version": ("version:", "p.yaml:1: unsupported policy version '', expected 1"),
    "version 2": ("version: 2", "p.yaml:1: unsupported policy version 2, expected 1"),
    "version as text": ("version: '1'", "p.yaml:1: unsupported policy version '1', expected 1"),
    "version true": ("version: true", "p.yaml:1: unsupported policy version True, expected 1"),
    "list": ("[1]", "p.yaml:1: the policy must be a mapping, not a list"),
    "groups": ("version: 1\ngroups: [a]", "p.yaml:2: `groups` must be a mapping, not a list"),
    "blank group": (
        "version: 1\ngroups:\n  '': [a]",
        "p.yaml:3: the name of a group must not be blank",
    ),
    "empty group": ("version: 1\ngroups:\n  team: []", "p.yaml:3: group 'team' has no actors"),
    "null group": ("version: 1\ngroups:\n  team:", "p.yaml:3: group 'team' has no actors"),
    "group of one": (
        "version: 1\ngroups:\n  team: ada",
        "p.yaml:3: group 'team' must be a list, not `ada`",
    ),
    "group twice": (
        "version: 1\ngroups:\n  team: [a]\n  team: [b]",
        "p.yaml:4: `groups` has `team` twice",
    ),
    "blank actor": (
        "version: 1\ngroups:\n  team: [' ']",
        "p.yaml:3: group 'team' has a blank actor",
    ),
    "actor no text": (
        "version: 1\ngroups:\n  team: [7]",
        "p.yaml:3: an actor of group 'team' must be text, not `7`, quote it: '7'",
    ),
    "actor a date": (
        "version: 1\ngroups:\n  team: [2026-99-01]",
        "p.yaml:3: an actor of group 'team' must be text, not `2026-99-01`, quote it: '2026-99-01'",
    ),
    "blank branch": (
        "version: 1\nprotected_branches: ['']",
        "p.yaml:2: the name of a protected branch must not be blank",
    ),
    "rules": ("version: 1\nrules: all", "p.yaml:2: `rules` must be a list, not `all`"),
    "rule": ("version: 1\nrules: [all]", "p.yaml:2: rule 1 must be a mapping, not `all`"),
    "blank id": (
        rule("actors: { group: team }, actions: [read]", id="''"),
        "p.yaml:5: rule 1 has no id",
    ),
    "duplicate id": (
        rule("actors: { group: team }, actions: [read]")
        + "  - id: r\n    allow: { actors: { group: team }, actions: [read] }",
        "p.yaml:7: duplicate policy rule id 'r'",
    ),
    "no allow": (
        f"{HEAD}rules:\n  - id: r\n",
        "p.yaml:5: rule 'r' has no `allow`: rules allow, what none allows is denied",
    ),
    "allow": (
        f"{HEAD}rules:\n  - id: r\n    allow: all\n",
        "p.yaml:6: `allow` of rule 'r' must be a mapping, not `all`",
    ),
    "no group": (
        rule("actions: [read]"),
        "p.yaml:6: rule 'r' has no group, give `actors: { group: NAME }`",
    ),
    "actors": (
        rule("actors: team, actions: [read]"),
        "p.yaml:6: `actors` of rule 'r' must be a mapping, not `team`",
    ),
    "unknown group": (
        rule("actors: { group: tem }, actions: [read]"),
        "p.yaml:6: rule 'r' references unknown group 'tem'",
    ),
    "no actions": (rule("actors: { group: team }"), "p.yaml:6: rule 'r' has no actions"),
    "empty actions": (
        rule("actors: { group: team }, actions: []"),
        "p.yaml:6: rule 'r' has no actions",
    ),
    "actions": (
        rule("actors: { group: team }, actions: read"),
        "p.yaml:6: `actions` of rule 'r' must be a list, not `read`",
    ),
    "unknown action": (
        rule("actors: { group: team }, actions: [raed]"),
        "p.yaml:6: rule 'r' has an unknown action `raed`, give read, export, change, schema_apply, "
        "branch_create, branch_delete, branch_merge, run_publish, run_abort, admin, invoke_query "
        "or graph_list",
    ),
    "unknown scope": (
        rule("actors: { group: team }, actions: [read], branch_scope: some"),
        "p.yaml:6: rule 'r' has an unknown branch_scope `some`, give any, protected or unprotected",
    ),
    "both scopes": (
        rule("actors: { group: team }, actions: [], branch_scope: any, target_branch_scope: any"),
        "p.yaml:6: rule 'r' has both branch_scope and target_branch_scope, give one",
    ),
    "merge on a branch": (
        rule("actors: { group: team }, actions: [branch_merge], branch_scope: any"),
        "p.yaml:6: rule 'r' has branch_scope with unsupported action `branch_merge`, it goes with "
        "read, export, change or invoke_query",
    ),
    "read at a target": (
        rule("actors: { group: team }, actions: [read], target_branch_scope: any"),
        "p.yaml:6: rule 'r' has target_branch_scope with unsupported action `read`, it goes with "
        "schema_apply, branch_create, branch_delete, branch_merge, run_publish or run_abort",
    ),
    "no YAML": (
        "version: 1\n groups: {",
        "p.yaml:2:8: not YAML: mapping values are not allowed here",
    ),
    "two documents": ("version: 1\n---\n", "p.yaml:2:1: not YAML: but found another document"),
    "merge key": (
        "version: 1\ngroups: &g\n  <<: *g\n",
        "p.yaml:3: `groups` has a merge key `<<`, write its members out",
    ),
    "deep": ("[" * 5_000, "p.yaml: nested too deep"),
    "control": ("version: 1\n\x07", "p.yaml:2: not YAML: special characters are not allowed"),
}  # fmt: skip


@each("case", SAID)
def test_refused(case: str) -> None:
    text, message = SAID[case]
    assert message in [line[: len(message)] for line in refused(text)]


@each("action", ["admin", "graph_list"])
@each("scope", ["branch_scope", "target_branch_scope"])
def test_no_scope_for_actions_without_a_branch(action: str, scope: str) -> None:
    text = rule(f"actors: {{ group: team }}, actions: [{action}], {scope}: any")
    assert f"unsupported action `{action}`" in refused(text)[0]


def test_all_problems_at_once_by_line() -> None:
    text = """\
version: 3
groups:
  team: []
protected_branches: ['']
rules:
  - id: one
    allow: { actors: { group: who }, actions: [admin, zap], branch_scope: any }
  - id: one
"""
    lines = [line.split(": ")[0] for line in refused(text)]
    assert lines == [f"p.yaml:{line}" for line in (1, 3, 4, 7, 7, 7, 8, 8)]


def test_unknown_keys_beside_the_rules_are_warned_of() -> None:
    found = parse_policy("version: 1\nowner: ada\ngroups: { team: [ada] }\n", "p.yaml")
    assert found.warnings == ("p.yaml:2: the policy has an unknown key `owner` that is ignored",)


def test_unknown_keys_that_meant_a_limit_are_refused() -> None:
    """Ignored, each of them would allow more than was written."""
    text = """\
version: 1
protected_branch: [main]
protected: [main]
groups: { team: [ada] }
rules:
  - id: r
    deny: {}
    target_branch_scope: unprotected
    allow:
      actors: { group: team, user: x }
      actions: [read]
      branch_scop: protected
      scope: protected
"""
    assert refused(text) == [
        "p.yaml:2: the policy has an unknown key `protected_branch`, "
        "did you mean `protected_branches`?",
        "p.yaml:3: the policy has an unknown key `protected`, did you mean `protected_branches`?",
        "p.yaml:7: rule 1 has an unknown key `deny`, give id or allow",
        "p.yaml:8: rule 1 has an unknown key `target_branch_scope`, give id or allow",
        "p.yaml:10: `actors` of rule 'r' has an unknown key `user`, give group",
        "p.yaml:12: `allow` of rule 'r' has an unknown key `branch_scop`, "
        "did you mean `branch_scope`?",
        "p.yaml:13: `allow` of rule 'r' has an unknown key `scope`, give actors, actions, "
        "branch_scope or target_branch_scope",
    ]


def test_aliases_are_understood() -> None:
    text = "version: 1\ngroups:\n  team: &all [ada]\n  others: *all\n"
    assert parse_policy(text, "p").groups == {"team": ("ada",), "others": ("ada",)}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the policy file .*No such file"):
        load_policy(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"cannot read the policy file .*Is a directory"):
        load_policy(tmp_path)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ConfigError, match="is no UTF-8 text"):
        load_policy(tmp_path / "bytes.yaml")
