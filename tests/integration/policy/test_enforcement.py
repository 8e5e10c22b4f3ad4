"""A policy on a real graph: what it allows happens, what it denies leaves no trace."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.embedding.embedder import Embedder
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchNotFound,
    CommitNotFound,
    ConfigError,
    PolicyDenied,
    RunNotFound,
    TagNotFound,
)
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.policy.authorize import Policy
from omnigraph_core.policy.load import parse_policy
from omnigraph_core.policy.model import Action
from tests.support.judges import Recorder

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "node Part {\n  sku: String @key\n}\n"
GROWN = SCHEMA + "node Bin {\n  code: String @key\n}\n"
READ = "query all() { match { $p: Part } return { $p.sku } order { $p.sku } }"

RULES = """\
version: 1
groups:
  team: [ada, bob]
  admins: [ada]
  guests: [gus]
  clerks: [cleo]
protected_branches: [main]
rules:
  - id: team-read
    allow: { actors: { group: team }, actions: [read, export], branch_scope: any }
  - id: team-write
    allow: { actors: { group: team }, actions: [change], branch_scope: unprotected }
  - id: team-fork
    allow: { actors: { group: team }, actions: [branch_create], target_branch_scope: unprotected }
  - id: admins-promote
    allow:
      actors: { group: admins }
      actions: [branch_merge, schema_apply, run_publish, run_abort]
      target_branch_scope: protected
  - id: guests-read
    allow: { actors: { group: guests }, actions: [read, change], branch_scope: unprotected }
  - id: clerks-write
    allow: { actors: { group: clerks }, actions: [change] }
"""


def part(sku: str) -> bytes:
    return f'{{"type": "Part", "data": {{"sku": "{sku}"}}}}\n'.encode()


@pytest.fixture
def free(tmp_path: Path) -> Omnigraph:
    """The graph without a policy: a part on main, another one on `side`."""
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    og.load(part("P-1"))
    og.branch_create("side")
    og.load(part("P-2"), branch="side")
    return og


@pytest.fixture
def og(free: Omnigraph) -> Omnigraph:
    """The graph with the policy, in nobody's hands."""
    return Omnigraph.open(free.uri, policy=Policy(parse_policy(RULES, "rules"), free.uri))


def parts(og: Omnigraph, target: str | ReadTarget) -> list[object]:
    found: list[object] = og.query(target, READ).to_arrow().column(0).to_pylist()
    return found


def test_team_reads_everything_and_changes_what_is_not_protected(
    free: Omnigraph, og: Omnigraph
) -> None:
    bob = og.acting_as("bob")
    assert parts(bob, "main") == ["P-1"]
    assert parts(bob, "side") == ["P-1", "P-2"]
    bob.load(part("P-3"), branch="side")
    assert free.snapshot("side").commit.actor_id == "bob"
    head = free.head_commit_id_for_branch()
    for branch in ("main", " main", "main\n"):
        with pytest.raises(PolicyDenied, match="on branch 'main' for actor 'bob'"):
            bob.load(part("P-4"), branch=branch)
    assert free.head_commit_id_for_branch() == head


def test_admins_alone_merge_into_main(free: Omnigraph, og: Omnigraph) -> None:
    message = "'branch_merge' on branch 'side' targeting branch 'main' for actor 'bob'"
    with pytest.raises(PolicyDenied, match=message):
        og.acting_as("bob").branch_merge("side")
    with pytest.raises(PolicyDenied, match=message):
        og.acting_as("bob").branch_merge("side", dry_run=True)
    merged = og.acting_as("ada").branch_merge("side")
    assert merged.commit is not None
    assert merged.commit.actor_id == "ada"
    assert parts(free, "main") == ["P-1", "P-2"]


def test_a_merge_that_must_not_delete_does_not_merge(free: Omnigraph, og: Omnigraph) -> None:
    head = free.head_commit_id_for_branch()
    with pytest.raises(PolicyDenied, match="'branch_delete' targeting branch 'side'"):
        og.acting_as("ada").branch_merge("side", delete_branch=True)
    assert free.head_commit_id_for_branch() == head


def test_schema_of_protected_branches_only(free: Omnigraph, og: Omnigraph) -> None:
    with pytest.raises(PolicyDenied, match="'schema_apply' targeting branch 'side'"):
        og.acting_as("ada").schema_apply(GROWN, branch="side")
    assert "node:Bin" not in free.snapshot("side").tables
    og.acting_as("ada").schema_apply(GROWN)
    assert "node:Bin" in free.snapshot().tables


def test_commits_and_tags_are_read_by_the_rights_of_their_branch(
    free: Omnigraph, og: Omnigraph
) -> None:
    gus = og.acting_as("gus")
    of_main = free.head_commit_id_for_branch()
    of_side = free.head_commit_id_for_branch("side")
    for name, branch in (("m", "main"), ("s", "side")):
        free.tag_create(name, branch)
    assert parts(gus, ReadTarget(snapshot_id=of_side)) == ["P-1", "P-2"]
    assert parts(gus, ReadTarget(tag="s")) == ["P-1", "P-2"]
    for target in (ReadTarget(snapshot_id=of_main), ReadTarget(tag="m")):
        with pytest.raises(PolicyDenied, match="'read' on branch 'main'"):
            parts(gus, target)
    with pytest.raises(PolicyDenied, match="'read' on branch 'main'"):
        gus.query(free.snapshot(), READ)
    with pytest.raises(PolicyDenied, match="'export' on branch 'side'"):
        gus.export_jsonl("side")


def test_rows_come_from_where_they_may_be_read(free: Omnigraph, og: Omnigraph) -> None:
    gus = og.acting_as("gus")
    free.load(part("P-9"))
    secret = free.head_commit_id_for_branch()
    before = parts(free, "side")
    with pytest.raises(PolicyDenied, match="'read' on branch 'main'"):
        gus.cherry_pick(secret, into="side")
    with pytest.raises(PolicyDenied, match="'read' on branch 'main'"):
        gus.revert(secret, branch="side")
    with pytest.raises(PolicyDenied, match="'read' on branch 'main'"):
        gus.branch_reset("side", ReadTarget(branch="main"), confirm=True)
    assert parts(free, "side") == before
    ada = og.acting_as("ada")
    ada.cherry_pick(secret, into="side")
    assert parts(free, "side") == [*before, "P-9"]


def test_a_refusal_does_not_tell_what_there_is(free: Omnigraph, og: Omnigraph) -> None:
    gus, eve = og.acting_as("gus"), og.acting_as("eve")
    for handle in (gus, eve):
        for target in (ReadTarget(snapshot_id="01NONE"), ReadTarget(tag="none")):
            with pytest.raises(PolicyDenied):
                handle.snapshot_of(target)
        with pytest.raises(PolicyDenied):
            handle.export_jsonl("none")
    with pytest.raises(PolicyDenied):
        gus.cherry_pick("01NONE", into="side")
    bob = og.acting_as("bob")
    with pytest.raises(CommitNotFound):
        bob.snapshot_of(ReadTarget(snapshot_id="01NONE"))
    with pytest.raises(CommitNotFound):
        bob.cherry_pick("01NONE", into="side")
    with pytest.raises(TagNotFound):
        bob.snapshot_of(ReadTarget(tag="none"))
    with pytest.raises(BranchNotFound):
        bob.snapshot("none")
    with pytest.raises(PolicyDenied):
        gus.list_commits()
    with pytest.raises(ConfigError, match="must not be empty"):
        gus.list_commits("")  # not protected, and not another word for main


def test_runs_are_looked_up_first(free: Omnigraph, og: Omnigraph) -> None:
    run = og.acting_as("bob").begin_run()
    assert run.actor_id == "bob"
    free.load(part("P-5"), branch=run.run_branch)
    for call in ("publish_run", "abort_run", "fail_run"):
        with pytest.raises(RunNotFound):
            getattr(og.acting_as("eve"), call)("01NONE")
        with pytest.raises(PolicyDenied, match="targeting branch 'main' for actor 'bob'"):
            getattr(og.acting_as("bob"), call)(run.run_id)
    assert free.get_run(run.run_id).status == "running"
    og.acting_as("ada").publish_run(run.run_id)
    assert free.snapshot().commit.actor_id == "ada"
    assert parts(free, "main") == ["P-1", "P-5"]


def test_a_run_is_written_by_its_owner_and_by_those_who_may_write_to_its_target(
    free: Omnigraph, og: Omnigraph
) -> None:
    bob, ada, gus, cleo = (og.acting_as(name) for name in ("bob", "ada", "gus", "cleo"))
    run = bob.begin_run()
    bob.load(part("P-5"), branch=run.run_branch)
    head = free.head_commit_id_for_branch(run.run_branch)
    for other in (ada, gus):  # both may change what is not protected
        for branch in (run.run_branch, f" {run.run_branch}\n"):
            with pytest.raises(PolicyDenied, match="'change' on branch 'main'"):
                other.load(part("P-6"), branch=branch)
        assert not other.rights.allows(Action.CHANGE, branch=run.run_branch)
    with pytest.raises(PolicyDenied, match="'change' on branch 'main'"):
        og.load(part("P-6"), branch=run.run_branch, actor="gus")
    assert free.head_commit_id_for_branch(run.run_branch) == head
    cleo.load(part("P-7"), branch=run.run_branch)
    on_side = free.begin_run("side")
    gus.load(part("P-8"), branch=on_side.run_branch)
    assert parts(free, on_side.run_branch) == ["P-1", "P-2", "P-8"]
    with pytest.raises(PolicyDenied, match="'change' on branch 'main'"):
        bob.load(part("P-9"), branch=free.begin_run().run_branch)  # of nobody
    with pytest.raises(PolicyDenied):
        bob.load(part("P-9"), branch="__run__01NONE")
    with pytest.raises(PolicyDenied, match="'schema_apply' targeting branch 'main'"):
        gus.schema_apply(GROWN, branch=run.run_branch)


def test_the_owner_of_a_run_needs_the_right_that_began_it(free: Omnigraph) -> None:
    judge = Recorder(is_allowing=True)
    og = Omnigraph.open(free.uri, policy=judge, actor="ada")
    branch = og.begin_run().run_branch
    og.load(part("P-5"), branch=branch)
    asked = [(item.action, item.branch, item.target_branch) for item in judge.asked[1:]]
    assert asked == [("branch_create", "main", branch), ("change", branch, None)]
    judge.denied = frozenset({"branch_create"})
    judge.asked.clear()
    og.load(part("P-6"), branch=branch)
    assert (judge.asked[-1].action, judge.asked[-1].branch) == ("change", "main")


def test_ingest_needs_to_fork_only_what_is_missing(free: Omnigraph, og: Omnigraph) -> None:
    cleo, bob = og.acting_as("cleo"), og.acting_as("bob")
    done = cleo.ingest(part("P-6"), branch="side")
    assert (done.branch_created, done.actor_id) == (False, "cleo")
    message = "'branch_create' on branch 'main' targeting branch 'new' for actor 'cleo'"
    for is_rehearsed in (False, True):
        with pytest.raises(PolicyDenied, match=message):
            cleo.ingest(part("P-7"), branch="new", dry_run=is_rehearsed)
    assert "new" not in free.branch_list()
    assert bob.ingest(part("P-7"), branch="new").branch_created
    assert free.branch_get("new").actor == "bob"


def test_nobody_is_an_unknown_actor(og: Omnigraph) -> None:
    with pytest.raises(PolicyDenied) as refused:
        og.snapshot()
    assert refused.value.message == (
        "policy denied action 'read' on branch 'main' for unknown actor ''"
    )
    assert refused.value.hint == "say who acts: `--as ACTOR`, or `actor=` in Python"


def test_who_is_named_is_who_is_judged_and_recorded(free: Omnigraph, og: Omnigraph) -> None:
    og.load(part("P-8"), branch="side", actor="bob")
    assert free.snapshot("side").commit.actor_id == "bob"
    with pytest.raises(PolicyDenied, match="for unknown actor 'eve'"):
        og.acting_as("bob").load(part("P-9"), branch="side", actor="eve")


def test_without_a_policy_the_bound_actor_is_recorded(free: Omnigraph) -> None:
    og = Omnigraph.open(free.uri, actor="cli")
    og.load(part("P-8"))
    og.branch_create("other")
    og.tag_create("t")
    og.acting_as("bob").load(part("P-9"), branch="other")
    assert [free.snapshot(name).commit.actor_id for name in ("main", "other")] == ["cli", "bob"]
    assert free.branch_get("other").actor == "cli"
    assert free.tag_list()[0].actor == "cli"


def test_handles_of_actors_share_the_graph(
    free: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Embedder] = []
    monkeypatch.setattr(Embedder, "close", lambda embedder: closed.append(embedder))
    og = Omnigraph.open(free.uri, policy=Recorder(is_allowing=True), actor="ada")
    other = og.acting_as("bob")
    assert (og.actor, other.actor, other.acting_as(None).actor) == ("ada", "bob", None)
    assert other.rights.judge is og.rights.judge
    assert (other._context, other._queries) == (og._context, og._queries)
    del og
    gc.collect()
    assert closed == []
    del other
    gc.collect()
    assert len(closed) == 1
    with pytest.raises(ConfigError, match="control characters"):
        free.acting_as("a\nb")


def test_decisions_are_logged(og: Omnigraph, caplog: pytest.LogCaptureFixture) -> None:
    bob = og.acting_as("bob")
    with caplog.at_level(logging.INFO, logger="omnigraph.policy"):
        bob.snapshot("side")
        with pytest.raises(PolicyDenied):
            bob.branch_merge("side")
        assert not bob.rights.allows(Action.ADMIN)
    names = ("actor_id", "action", "branch", "target_branch", "allowed", "matched_rule_id")
    assert [tuple(getattr(record, name) for name in names) for record in caplog.records] == [
        ("bob", "read", "side", "", True, "team-read"),
        ("bob", "branch_merge", "side", "main", False, ""),
        ("bob", "admin", "", "", False, ""),
    ]
    assert caplog.messages[0] == "policy allowed action 'read' for actor 'bob'"
    assert {record.levelname for record in caplog.records} == {"INFO"}
