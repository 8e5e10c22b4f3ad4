"""`omnigraph policy …`, and a policy on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from subprocess import CompletedProcess

EXAMPLE = Path(__file__).parent.parent.parent.parent / "examples" / "policy"
STOCK = EXAMPLE.parent / "stock"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    return folder


def policy(*arguments: object, folder: Path) -> CompletedProcess[str]:
    return omnigraph("policy", *arguments, folder=folder)


def test_validate(folder: Path) -> None:
    done = policy("validate", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"policy valid: {folder}/policy.yaml [3 actors]\n"


def test_validate_tells_every_problem_and_warns(folder: Path) -> None:
    (folder / "wrong.yaml").write_text("version: 2\nowner: x\nprotected_branches: ['']\n")
    done = policy("validate", "--policy", "wrong.yaml", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: wrong.yaml:1: unsupported policy version 2, expected 1\n"
        "wrong.yaml:3: the name of a protected branch must not be blank\n"
    )
    (folder / "odd.yaml").write_text("version: 1\nowner: x\n")
    done = policy("validate", "--policy", "odd.yaml", "--json", folder=folder)
    warning = "odd.yaml:2: the policy has an unknown key `owner` that is ignored"
    assert done.stderr == f"warning: {warning}\n"
    assert json.loads(done.stdout) == {
        "policy": "odd.yaml", "actors": 0, "groups": 0, "rules": 0, "warnings": [warning],
    }  # fmt: skip


def test_cases_of_the_configured_file(folder: Path) -> None:
    done = policy("test", folder=folder)
    assert (done.returncode, done.stdout) == (0, "policy tests passed: 4 cases\n")


def test_cases_beside_a_policy(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "policy.yaml", tmp_path / "mine.yaml")
    cases = (folder / "policy.tests.yaml").read_text()
    swapped = cases.replace("expect: allow", "expect: deny", 1).replace(
        "main, expect: deny }\n  - { id: ada", "main, expect: allow }\n  - { id: ada"
    )
    (tmp_path / "policy.tests.yaml").write_text(swapped)
    done = policy("test", "--policy", tmp_path / "mine.yaml", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: 2 of 4 policy cases failed\n"
        "bob-reads-main: expected Deny but got allow\n"
        "bob-leaves-main-alone: expected Allow but got deny\n"
    )
    given = ("--tests", tmp_path / "policy.tests.yaml", "--json")
    done = policy("test", *given, folder=folder)
    assert done.returncode == 1
    assert json.loads(done.stdout)["failures"][0] == {
        "id": "bob-reads-main", "expected": "deny", "decision": "allow",
    }  # fmt: skip


def test_explain(folder: Path) -> None:
    asked = ("--actor", "ada", "--branch", "fix", "--target-branch", "main")
    allowed = policy("explain", *asked, "--action", "branch-merge", folder=folder)
    assert allowed.returncode == 0
    assert allowed.stdout == (
        "decision: allow\n"
        "actor: ada\n"
        "action: branch_merge\n"
        "branch: fix\n"
        "target_branch: main\n"
        "matched_rule: leads-promote\n"
        "message: policy allowed action 'branch_merge' for actor 'ada'\n"
    )
    denied = policy("explain", "--actor", "eve", "--action", "branch_merge", folder=folder)
    assert denied.returncode == 0
    assert denied.stdout == (
        "decision: deny\n"
        "actor: eve\n"
        "action: branch_merge\n"
        "message: policy denied action 'branch_merge' for unknown actor 'eve'\n"
    )
    document = policy("explain", *asked, "--action", "change", "--json", folder=folder)
    assert json.loads(document.stdout) == {
        "decision": "allow",
        "actor": "ada",
        "action": "change",
        "branch": "fix",
        "target_branch": "main",
        "matched_rule": "team-write",
        "message": "policy allowed action 'change' for actor 'ada'",
    }


def test_wrong_usage(folder: Path, tmp_path: Path) -> None:
    unknown = policy("explain", "--actor", "ada", "--action", "zap", folder=folder)
    assert unknown.returncode == 2
    assert "no action 'zap'" in unknown.stderr
    unset = policy("validate", folder=tmp_path)
    assert (unset.returncode, unset.stdout) == (1, "")
    assert unset.stderr == (
        "error: policy.file is not set in omnigraph.yaml\nhint: or give --policy FILE\n"
    )
    missing = policy("validate", "--target", "none", folder=folder)
    assert missing.stderr == (
        "error: graph 'none' not found in omnigraph.yaml\nhint: graphs there: stock\n"
    )


def test_a_graph_may_have_a_policy_of_its_own(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("version: 1\ngroups: { team: [ada] }\n")
    text = "graphs:\n  own: { uri: g, policy: { file: own.yaml } }\n"
    (tmp_path / "omnigraph.yaml").write_text(text)
    done = policy("validate", "--target", "own", folder=tmp_path)
    assert done.stdout == f"policy valid: {tmp_path}/own.yaml [1 actors]\n"


OWN = "version: 1\ngroups: { team: [ada] }\n"
OPEN = OWN + "rules:\n  - { id: all, allow: { actors: { group: team }, actions: [read] } }\n"


def test_the_policy_of_a_graph_holds_however_the_graph_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "omnigraph.yaml").write_text(
        "graphs:\n  own: { uri: g, policy: { file: own.yaml } }\n  none: { uri: elsewhere }\n"
    )
    made = omnigraph("init", "--schema", STOCK / "schema.pg", "g", folder=tmp_path)
    assert made.returncode == 0
    (tmp_path / "link").symlink_to("g")
    names = (["--target", "own"], ["g"], ["--uri", "./g/"], [tmp_path / "g"], ["link"])
    for name in (*names, [(tmp_path / "g").as_uri()]):
        done = omnigraph("branch", "list", *name, "--as", "ada", folder=tmp_path)
        assert done.stderr == "error: policy denied action 'read' for actor 'ada'\n", name
    shutil.copytree(tmp_path / "g", tmp_path / "copy")
    done = omnigraph("branch", "list", "copy", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "main\n")  # another graph


def test_a_graph_with_two_policies_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "open.yaml").write_text(OPEN)
    (tmp_path / "omnigraph.yaml").write_text(
        "graphs:\n  own: { uri: g, policy: { file: own.yaml } }\n"
        "  same: { uri: ./g, policy: { file: open.yaml } }\n"
    )
    omnigraph("init", "--schema", STOCK / "schema.pg", "g", folder=tmp_path)
    for name in ("own", "same"):
        done = omnigraph("branch", "list", "--target", name, "--as", "ada", folder=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert "`own` and `same` are the same graph and have different policies" in done.stderr


def test_matrix(folder: Path) -> None:
    wanted = ("--action", "read", "--action", "branch-merge", "--action", "admin")
    done = policy("matrix", *wanted, folder=folder)
    assert done.stdout == (
        "actor    action        protected      unprotected  no branch\n"
        "ada      read          team-read      team-read    team-read\n"
        "ada      branch_merge  leads-promote  -            -\n"
        "ada      admin                                     -\n"
        "bob      read          team-read      team-read    team-read\n"
        "bob      branch_merge  -              -            -\n"
        "bob      admin                                     -\n"
        "indexer  read          -              -            -\n"
        "indexer  branch_merge  -              -            -\n"
        "indexer  admin                                     robots-maintain\n"
    )
    grouped = policy("matrix", "--groups", "--action", "branch_merge", "--json", folder=folder)
    document = json.loads(grouped.stdout)
    assert document["protected_branches"] == ["main"]
    assert [row["protected"]["rule"] for row in document["rows"]] == ["leads-promote", None, None]
    one = policy("matrix", "--actor", "bob", "--json", folder=folder)
    assert {row["actor"] for row in json.loads(one.stdout)["rows"]} == {"bob"}


def test_local_commands_are_judged(folder: Path) -> None:
    def run(*arguments: object) -> CompletedProcess[str]:
        return omnigraph(*arguments, folder=folder)

    assert run("init", "--schema", STOCK / "schema.pg", "stock-graph").returncode == 0
    load = ("load", "--data", STOCK / "data.jsonl")
    denied = run(*load, "--as", "bob")
    assert (denied.returncode, denied.stdout) == (1, "")
    assert denied.stderr == (
        "error: policy denied action 'change' on branch 'main' for actor 'bob'\n"
    )
    nobody = run("snapshot")
    assert nobody.stderr == (
        "error: policy denied action 'read' on branch 'main' for unknown actor ''\n"
        "hint: say who acts: `--as ACTOR`, or `actor=` in Python\n"
    )
    assert run("branch", "create", "fix", "--as", "bob").returncode == 0
    assert run(*load, "--branch", "fix", "--as", "bob").returncode == 0
    merged = run("branch", "merge", "fix", "--as", "bob")
    assert "denied action 'branch_merge' on branch 'fix' targeting branch 'main'" in merged.stderr
    assert run("branch", "merge", "fix", "--as", "ada").returncode == 0
