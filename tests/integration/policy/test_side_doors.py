"""Ways around a right that lead through another one: all of them end at the right itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core import connect
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, PolicyDenied
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.changes import AcceptSchema, TombstoneTable
from omnigraph_core.policy.authorize import Policy
from omnigraph_core.policy.load import parse_policy
from omnigraph_core.policy.model import Action

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA = "node Part {\n  sku: String @key\n}\n"
GROWN = SCHEMA + "node Bin {\n  code: String @key\n}\n"
READ = "query all() { match { $p: Part } return { $p.sku } order { $p.sku } }"

RULES = """\
version: 1
groups:
  clerks: [cleo]
  guests: [gus]
  owners: [olga]
protected_branches: [main]
rules:
  - id: clerks-write
    allow: { actors: { group: clerks }, actions: [read, change], branch_scope: any }
  - id: clerks-draft
    allow:
      actors: { group: clerks }
      actions: [branch_create, schema_apply]
      target_branch_scope: unprotected
  - id: guests-look
    allow:
      actors: { group: guests }
      actions: [read, export, invoke_query]
      branch_scope: unprotected
  - id: owners-begin
    allow: { actors: { group: owners }, actions: [branch_create] }
  - id: owners-work
    allow: { actors: { group: owners }, actions: [read, change], branch_scope: unprotected }
"""


def part(sku: str) -> bytes:
    return f'{{"type": "Part", "data": {{"sku": "{sku}"}}}}\n'.encode()


@pytest.fixture
def free(tmp_path: Path) -> Omnigraph:
    """The graph without a policy."""
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    og.load(part("P-1"))
    return og


@pytest.fixture
def og(free: Omnigraph) -> Omnigraph:
    """The graph with the policy, in nobody's hands."""
    return Omnigraph.open(free.uri, policy=Policy(parse_policy(RULES, "rules"), free.uri))


# The schema of a branch where rows may be changed, and the schema may not


@pytest.fixture
def grown(free: Omnigraph, og: Omnigraph) -> str:
    """A commit of a branch of the clerk's that changed the schema; main has gone on since."""
    cleo = og.acting_as("cleo")
    cleo.branch_create("draft")
    commit = cleo.schema_apply(GROWN, branch="draft").commit
    assert commit is not None
    free.load(part("P-2"))
    return commit.graph_commit_id


AROUND: dict[str, Callable[[Omnigraph, str], Any]] = {
    "apply": lambda og, _: og.schema_apply(GROWN),
    "pick": lambda og, commit: og.cherry_pick(commit),
    "pick, dry run": lambda og, commit: og.cherry_pick(commit, dry_run=True),
    "reset": lambda og, commit: og.branch_reset("main", commit, confirm=True),
    "reset to a branch": lambda og, _: og.branch_reset(
        "main", ReadTarget(branch="draft"), confirm=True
    ),
    "reset, not confirmed": lambda og, commit: og.branch_reset("main", commit),
    "commit": lambda og, _: og.commit([AcceptSchema(og.schema_show("draft"))], []),
    "commit that drops": lambda og, _: og.commit([TombstoneTable("node:Part")], []),
}


@pytest.mark.parametrize("way", AROUND)
def test_rows_bring_no_schema_along(og: Omnigraph, free: Omnigraph, grown: str, way: str) -> None:
    head = free.head_commit_id_for_branch()
    with pytest.raises(PolicyDenied, match="'schema_apply' targeting branch 'main' for actor"):
        AROUND[way](og.acting_as("cleo"), grown)
    assert free.head_commit_id_for_branch() == head


def test_a_schema_is_not_taken_back_without_the_right(og: Omnigraph, free: Omnigraph) -> None:
    commit = free.schema_apply(GROWN).commit
    assert commit is not None
    with pytest.raises(PolicyDenied, match="'schema_apply' targeting branch 'main'"):
        og.acting_as("cleo").revert(commit.graph_commit_id)
    assert "node:Bin" in free.snapshot().tables


def test_rows_alone_need_no_right_to_the_schema(og: Omnigraph, free: Omnigraph, grown: str) -> None:
    cleo = og.acting_as("cleo")
    before = free.list_commits()[1].graph_commit_id
    last = free.head_commit_id_for_branch()
    assert cleo.revert(last).commit is not None
    assert cleo.cherry_pick(last).commit is not None
    assert cleo.branch_reset("main", before, confirm=True).actor_id == "cleo"
    assert cleo.branch_reset("draft", grown, confirm=True).graph_commit_id == grown
    cleo.branch_create("other")
    assert cleo.cherry_pick(grown, into="other").is_schema_changed  # not protected


# Rows of a protected branch, by the branch of a run that has them


def rows(og: Omnigraph, target: str | ReadTarget) -> list[object]:
    found: list[object] = og.query(target, READ).to_arrow().column(0).to_pylist()
    return found


def test_the_branch_of_a_run_is_read_by_those_who_may_read_its_target(
    og: Omnigraph, free: Omnigraph
) -> None:
    gus, cleo = og.acting_as("gus"), og.acting_as("cleo")
    run = free.begin_run()
    free.load(part("P-2"), branch=run.run_branch)
    made = ReadTarget(snapshot_id=free.head_commit_id_for_branch(run.run_branch))
    for target in (run.run_branch, f" {run.run_branch}\n", made):
        with pytest.raises(PolicyDenied, match="'read' on branch 'main' for actor 'gus'"):
            rows(gus, target)
        with pytest.raises(PolicyDenied, match="'export' on branch 'main'"):
            gus.export_jsonl(target)
        assert rows(cleo, target) == ["P-1", "P-2"]
    assert not gus.rights.allows(Action.INVOKE_QUERY, branch=run.run_branch)
    free.publish_run(run.run_id)
    with pytest.raises(PolicyDenied, match="'read' on branch 'main'"):
        rows(gus, made)  # the run is over: what was made there is a part of main
    assert rows(cleo, made) == ["P-1", "P-2"]


def test_the_branch_of_a_run_beside_an_open_branch_is_open(og: Omnigraph, free: Omnigraph) -> None:
    free.branch_create("side")
    run = free.begin_run("side")
    assert rows(og.acting_as("gus"), run.run_branch) == ["P-1"]
    with pytest.raises(PolicyDenied):
        rows(og.acting_as("gus"), "__run__01ARZ3NDEKTSV4RRFFQ69G5FAV")  # nobody knows of what


def test_whoever_began_a_run_reads_what_is_in_it(og: Omnigraph) -> None:
    olga = og.acting_as("olga")
    run = olga.begin_run()
    olga.load(part("P-2"), branch=run.run_branch)
    assert rows(olga, run.run_branch) == ["P-1", "P-2"]
    with pytest.raises(PolicyDenied, match="'read' on branch 'main'"):
        rows(olga, "main")
    with pytest.raises(PolicyDenied, match="'export' on branch 'main'"):
        olga.export_jsonl(run.run_branch)  # has no such right anywhere


# Opening a graph


def test_connect_takes_a_policy_for_a_graph_at_hand(free: Omnigraph) -> None:
    judge = Policy(parse_policy(RULES, "rules"), free.uri)
    for actor, message in (("gus", "for actor 'gus'"), (None, "for unknown actor ''")):
        graph = connect(free.uri, policy=judge, actor=actor)
        with graph, pytest.raises(PolicyDenied, match=f"'read' on branch 'main' {message}"):
            graph.snapshot()
    with pytest.raises(ConfigError, match="a server asks its own"):
        connect("http://127.0.0.1:9", policy=judge)
