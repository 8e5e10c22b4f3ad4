"""Commands by people who may do that one thing and nothing else, not even look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from subprocess import CompletedProcess

STOCK = Path(__file__).parent.parent.parent.parent / "examples" / "stock"
ACTIONS = (
    "change", "schema_apply", "branch_create", "branch_delete", "branch_merge", "run_publish",
    "run_abort", "admin", "export",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For each action an actor of that name, who may do nothing else."""
    rules = "".join(
        f"  - {{ id: {name}, allow: {{ actors: {{ group: {name} }}, actions: [{name}] }} }}\n"
        for name in ACTIONS
    )
    groups = "".join(f"  {name}: [{name}]\n" for name in ACTIONS)
    (tmp_path / "policy.yaml").write_text(f"version: 1\ngroups:\n{groups}rules:\n{rules}")
    (tmp_path / "omnigraph.yaml").write_text(
        "graphs: { stock: { uri: graph } }\ncli: { graph: stock }\npolicy: { file: policy.yaml }\n"
    )
    (tmp_path / "grown.pg").write_text(
        (STOCK / "schema.pg").read_text() + "\nnode Shelf {\n  code: String @key\n}\n"
    )
    return tmp_path


def test_a_right_alone_is_enough(folder: Path) -> None:
    og = Omnigraph.init(str(folder / "graph"), (STOCK / "schema.pg").read_text())
    og.load(STOCK / "data.jsonl")
    for name in ("side", "old"):
        og.branch_create(name)
    runs = [og.begin_run().run_id for _ in range(3)]
    data = ("--data", STOCK / "data.jsonl")
    cases: list[tuple[str, tuple[object, ...]]] = [
        ("change", ("load", *data, "--mode", "merge")),
        ("change", ("ingest", *data, "--branch", "side")),
        ("branch_create", ("branch", "create", "new")),
        ("branch_create", ("run", "begin")),
        ("branch_create", ("tag", "create", "v1")),
        ("branch_delete", ("tag", "delete", "v1", "--yes")),
        ("branch_delete", ("branch", "delete", "old", "--yes")),
        ("branch_merge", ("branch", "merge", "side")),
        ("run_publish", ("run", "publish", runs[0])),
        ("run_abort", ("run", "abort", runs[1], "--yes")),
        ("run_abort", ("run", "fail", runs[2])),
        ("admin", ("optimize",)),
        ("admin", ("index", "ensure")),
        ("admin", ("cleanup", "--keep", "5")),
        ("export", ("export",)),
        ("schema_apply", ("schema", "apply", "--schema", "grown.pg")),
    ]

    def run(actor: str, arguments: tuple[object, ...]) -> CompletedProcess[str]:
        return omnigraph(*arguments, "--as", actor, folder=folder)

    for actor, arguments in cases:
        other = "admin" if actor != "admin" else "export"
        denied = run(other, arguments)
        assert denied.returncode == 1, arguments
        assert f"denied action '{actor}'" in denied.stderr, arguments
        done = run(actor, arguments)
        assert (done.returncode, done.stderr.startswith("error")) == (0, False), done.stderr
    assert {used for used, _ in cases} == set(ACTIONS)
