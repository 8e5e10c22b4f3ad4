"""Every class of error that a call can meet is the same on every way: kind, code and details."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core import connect, errors
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    ConfigError,
    GraphNotFound,
    ObjectNotFound,
    OmnigraphError,
    PolicyDenied,
    StorageError,
)
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.policy.source import PolicyFile
from omnigraph_core.storage.objects import delete_all, list_objects
from omnigraph_core.storage.session import open_store
from tests.behaviour.stock import AMOUNTS, SCHEMA, STOCK, bin_, holds, lines, part, put
from tests.support.server import serving, tokens
from tests.support.ways import NOT_ON_S3, Place, facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.ways import Way, Ways

NOTHING = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
TWICE = "query q() { match { $p: Part } return { $p.sku } }"
UNSUPPORTED = SCHEMA.replace("is_new: Bool?", "is_new: Date?")

RAISED: dict[type[OmnigraphError], Callable[[Omnigraph], object]] = {
    errors.SchemaSyntaxError: lambda graph: graph.schema_plan("node Part {"),
    errors.SchemaError: lambda graph: graph.schema_apply("edge Holds: Bin -> Part"),
    errors.UnsupportedMigration: lambda graph: graph.schema_apply(UNSUPPORTED),
    errors.QuerySyntaxError: lambda graph: graph.query("main", "query q( { match"),
    errors.QueryTypeError: lambda graph: graph.explain("main", TWICE.replace("sku", "sko")),
    errors.QueryNotFound: lambda graph: graph.query("main", TWICE, "other"),
    errors.DataError: lambda graph: graph.load(lines(part("x", stock=-1), holds("x", "y"))),
    errors.RecordError: lambda graph: graph.load(lines({"type": "Part", "data": {"sku": [1]}})),
    errors.ConstraintViolation: lambda graph: graph.load(lines(bin_("b7", label="first"))),
    errors.EndpointNotFound: lambda graph: graph.load(lines(holds("b1", "none"))),
    errors.DuplicateKey: lambda graph: graph.load(lines(bin_("b1")), mode="append"),
    errors.ParameterError: lambda graph: graph.query("main", TWICE, params={"sku": 1, "b": None}),
    errors.CursorRejected: lambda graph: graph.poll("nonsense"),
    errors.NotFoundError: lambda graph: graph.read_blob("Part", "none", "drawing"),
    errors.BranchNotFound: lambda graph: graph.load(lines(bin_("b7")), branch="none"),
    errors.CommitNotFound: lambda graph: graph.commit_changes(NOTHING),
    errors.SnapshotNotFound: lambda graph: graph.run_query_at(99, TWICE),
    errors.TagNotFound: lambda graph: b"".join(graph.export_jsonl(ReadTarget(tag="none"))),
    errors.RunNotFound: lambda graph: graph.publish_run(NOTHING),
    errors.ConflictError: lambda graph: graph.abort_run(graph.list_runs()[0].run_id),
    errors.PreconditionFailed: lambda graph: graph.branch_merge("apart", if_commit=NOTHING),
    errors.AlreadyExists: lambda graph: graph.branch_create("apart"),
    errors.BranchInUse: lambda graph: graph.branch_delete("used"),
    errors.MergeConflicts: lambda graph: graph.branch_merge("apart"),
    errors.ConfigError: lambda graph: graph.branch_reset("main", ReadTarget(branch="apart")),
    errors.BudgetExceeded: lambda graph: graph.query("main", TWICE, memory=1),
    errors.QueryTimeout: lambda graph: graph.query("main", TWICE, timeout=1e-9),
}
ELSEWHERE: dict[type[OmnigraphError], str] = {
    errors.OmnigraphError: "the root of all",
    errors.CompileError: "one of its subclasses is raised",
    errors.QueryStopped: "one of its subclasses is raised",
    errors.TableNotFound: "test_branches: a snapshot has no such table",
    errors.QueryCancelled: "test_queries: who asked has cancelled it",
    errors.ChangeFeedGap: "test_changes: after a cleanup",
    errors.SchemaApplyLocked: "test_schemas: another one is about it",
    errors.GraphNotFound: "below",
    errors.PolicyDenied: "below",
    errors.StorageError: "below",
    errors.ObjectNotFound: "below",
    errors.Unauthenticated: "only a server knows tokens",
    errors.BlobElsewhere: "how a server tells of an address; at hand it is a value",
    errors.BlobIsNull: "how a server tells of a null; at hand it is a value",
    errors.VersionConflict: "tried again until it is another one",
    errors.PublishContention: "needs writers that win every time",
    errors.CommitOutcomeUnknown: "needs a store that stops answering",
    errors.EmbeddingError: "needs a provider that fails",
    errors.FormatTooNew: "needs a graph of a later release",
    errors.JobFailed: "needs Spark",
    errors.InvariantBroken: "needs a bug",
}


@NOT_ON_S3
def test_every_class_is_here() -> None:
    known = {value for name in errors.__all__ if isinstance(value := getattr(errors, name), type)}
    assert {kind for kind in known if issubclass(kind, OmnigraphError)} == {*RAISED, *ELSEWHERE}
    assert not RAISED.keys() & ELSEWHERE.keys()


@pytest.fixture(scope="module")
def crossed(shared: Place, way: Way, ways: Ways) -> Place:
    """With a branch that conflicts, one that another was made of, and a run that was given up."""
    at_hand = shared.at_hand
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ways.settings(way).items():
            patch.setenv(name, value)
        at_hand.branch_create("apart")
        put(at_hand, part("nut", stock=1), branch="apart")
        put(at_hand, part("nut", stock=2))
        at_hand.branch_create("used")
        at_hand.branch_create("user", source="used")
        at_hand.abort_run(at_hand.begin_run().run_id)
    return shared


@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: kind.__name__)
def test_an_error(crossed: Place, kind: type[OmnigraphError]) -> None:
    head = crossed.at_hand.head_commit_id_for_branch()
    problem = crossed.raised(RAISED[kind])
    assert type(problem) is kind
    assert (problem.kind, problem.code) == (kind.kind, kind.code)
    assert crossed.at_hand.head_commit_id_for_branch() == head


def test_no_graph(place: Place) -> None:
    nowhere = place.graph.uri.rpartition("/")[0] + "/nothing"
    with pytest.raises(GraphNotFound), connect(nowhere) as graph:
        graph.snapshot()
    with pytest.raises(ConfigError):
        connect(place.graph.uri, **({"actor": "ada"} if place.way.is_remote else {"token": "t"}))


def test_damage_is_told_as_it_is(way: Way, ways: Ways) -> None:
    place = ways.new(way, SCHEMA, STOCK)
    with place.graph, place.at_hand:
        store = open_store(place.at_hand.uri)
        below = place.at_hand.snapshot().table("node:Part").location
        data = [item.path for item in list_objects(store, below) if "/data/" in item.path]
        assert data
        delete_all(store, data)
        problem = place.raised(lambda graph: graph.query("main", AMOUNTS))
        assert isinstance(problem, ObjectNotFound)
        report = place.both(lambda graph: graph.verify())
        assert not report.is_sound
        with pytest.raises(StorageError, match="damaged"):
            report.require_sound()


RULES = """\
version: 1
groups:
  guests: [gus]
protected_branches: [main]
rules:
  - id: guests-read
    allow: { actors: { group: guests }, actions: [read], branch_scope: any }
  - id: guests-write
    allow: { actors: { group: guests }, actions: [change], branch_scope: unprotected }
"""


@pytest.fixture
def guest(place: Place, tmp_path: Path) -> Iterator[tuple[Any, Omnigraph]]:
    """What gus may do on this way, and at hand."""
    (tmp_path / "policy.yaml").write_text(RULES)
    uri = place.at_hand.uri
    policy = PolicyFile(tmp_path / "policy.yaml", uri)
    with Omnigraph.open(uri, policy=policy, actor="gus") as at_hand:
        if not place.way.is_remote:
            yield Omnigraph.open(uri, policy=policy, actor="gus"), at_hand
            return
        config = tmp_path / "omnigraph.yaml"
        config.write_text("policy: { file: policy.yaml }\n")
        with (
            serving(uri, config=config, env=tokens(gus="t")) as server,
            connect(server.url, token="t") as graph,
        ):
            yield graph, at_hand


@NOT_ON_S3
def test_what_policy_forbids(guest: tuple[Any, Omnigraph], way: Way) -> None:
    place = Place(way, *guest)
    assert place.both(lambda graph: graph.query("main", AMOUNTS)).num_rows == 3
    for call, action in (
        (lambda graph: graph.load(lines(bin_("b7"))), "change"),
        (lambda graph: graph.mutate('query q() { insert Bin { code: "b7" } }'), "change"),
        (lambda graph: b"".join(graph.export_jsonl()), "export"),
        (lambda graph: graph.branch_create("x"), "branch_create"),
        (lambda graph: graph.branch_delete("none"), "branch_delete"),
        (lambda graph: graph.branch_merge("none"), "branch_merge"),
        (lambda graph: graph.schema_apply(SCHEMA), "schema_apply"),
        (lambda graph: graph.tag_create("v1"), "branch_create"),
        (lambda graph: graph.optimize(), "admin"),
        (lambda graph: graph.cleanup(keep=1), "admin"),
        (lambda graph: graph.revert(graph.list_commits()[0].graph_commit_id), "change"),
    ):
        problem = place.raised(call)
        assert isinstance(problem, PolicyDenied)
        assert (problem.actor, problem.action) == ("gus", action)
        assert facts(problem)["retryable"] is False


@NOT_ON_S3
def test_who_acts_is_recorded(guest: tuple[Any, Omnigraph], place: Place) -> None:
    place.at_hand.branch_create("side")
    done = guest[0].load(lines(bin_("b7")), branch="side")
    assert done.commit.actor_id == "gus"
    assert place.graph.list_commits("side", limit=1)[0].actor_id == "gus"
