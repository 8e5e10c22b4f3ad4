"""Cases of a policy: files of them, and what comes out."""

from __future__ import annotations

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.policy.cases import Answer, Case, failures, parse_cases
from omnigraph_core.policy.model import Action, Request
from tests.support.judges import Recorder

WHOLE = """\
version: 1
cases:
  - { id: one, actor: ada, action: read, branch: main, expect: allow }
  - { id: two, actor: bob, action: branch_merge, branch: x, target_branch: main, expect: deny }
"""


def test_whole_file() -> None:
    found = parse_cases(WHOLE, "c.yaml")
    assert found.warnings == ()
    assert found.cases == (
        Case("one", Request("ada", Action.READ, "main"), Answer.ALLOW),
        Case("two", Request("bob", Action.BRANCH_MERGE, "x", "main"), Answer.DENY),
    )


def test_failures_are_told_one_by_one() -> None:
    cases = parse_cases(WHOLE, "c.yaml").cases
    assert [str(item) for item in failures(Recorder(is_allowing=True), cases)] == [
        "two: expected Deny but got allow"
    ]
    assert [str(item) for item in failures(Recorder(is_allowing=False), cases)] == [
        "one: expected Allow but got deny"
    ]


def test_all_problems_at_once() -> None:
    text = """\
version: 2
cases:
  - { id: a, actor: ada, action: read, expect: allow }
  - { id: a, actor: ' ', action: zap, expect: maybe }
  - { actor: ada, actoin: read }
  - seven
"""
    with pytest.raises(ConfigError) as refused:
        parse_cases(text, "c.yaml")
    assert refused.value.message.splitlines() == [
        "c.yaml:1: unsupported policy tests version 2, expected 1",
        "c.yaml:4: case 'a' has `expect: maybe`, give allow or deny",
        "c.yaml:4: case 'a' has an unknown action `zap`, give read, export, change, schema_apply, "
        "branch_create, branch_delete, branch_merge, run_publish, run_abort, admin, invoke_query "
        "or graph_list",
        "c.yaml:4: case 'a' has no actor",
        "c.yaml:4: duplicate policy test case id 'a'",
        "c.yaml:5: case '#3' has no `expect`, give allow or deny",
        "c.yaml:5: case '#3' has no action",
        "c.yaml:5: case 3 has an unknown key `actoin`, did you mean `action`?",
        "c.yaml:5: case 3 has no id",
        "c.yaml:6: case 4 must be a mapping, not `seven`",
    ]


def test_no_cases_and_no_mapping() -> None:
    assert parse_cases("version: 1", "c").cases == ()
    with pytest.raises(ConfigError, match="c:1: the file must be a mapping, not `text`"):
        parse_cases("text", "c")


def test_unknown_keys_are_warned_of() -> None:
    text = WHOLE.replace("id: one", "id: one, note: x")
    assert parse_cases(text, "c").warnings == (
        "c:3: case 1 has an unknown key `note` that is ignored",
    )


def test_misspelled_keys_are_refused() -> None:
    """Ignored, a case would ask something else than was meant."""
    with pytest.raises(ConfigError) as refused:
        parse_cases(WHOLE.replace("target_branch:", "target:"), "c")
    assert refused.value.message == (
        "c:4: case 2 has an unknown key `target`, did you mean `target_branch`?"
    )
