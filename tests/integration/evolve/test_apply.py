"""Applying a schema beside others: branches, writers, other schema changes, failures, locks."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from omnigraph_core import failpoints
from omnigraph_core.engine import schema_apply
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchNotFound,
    ConfigError,
    ConstraintViolation,
    PreconditionFailed,
    QueryTypeError,
    SchemaApplyLocked,
    StorageError,
    VersionConflict,
)
from omnigraph_core.history import locks
from omnigraph_core.history.locks import schema_lock, try_read_lock
from omnigraph_core.settings import SCHEMA_LOCK
from omnigraph_core.storage import rearrange as storage_rearrange
from tests.integration.evolve.sensors import (
    SCHEMA,
    SENSORS,
    apply,
    changed,
    column,
    load,
    new_graph,
)
from tests.support.meanwhile import meanwhile

SENSOR = "node:Sensor"
WIDER = ("  reading: F32", "  reading: F64")
MORE = ("  text: String\n", '  text: String\n  colour: String @default("grey")\n')


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return new_graph(tmp_path)


def test_a_branch_has_a_schema_of_its_own(og: Omnigraph) -> None:
    og.branch_create("review")
    before = og.snapshot()
    apply(og, WIDER, MORE, ("edge Near: Site -> Site", ""), branch="review")
    assert og.snapshot() == before
    assert og.schema_show().source == SCHEMA
    assert og.schema_show("review").source == changed(WIDER, MORE, ("edge Near: Site -> Site", ""))
    assert set(column(og, SENSOR, "colour", "review").values()) == {"grey"}
    load(og, {"type": "Sensor", "data": {**SENSORS[0], "colour": "red"}}, branch="review")
    load(og, {"type": "Sensor", "data": {**SENSORS[0], "note": "main"}})
    assert column(og, SENSOR, "colour", "review")["s1"] == "red"
    assert column(og, SENSOR, "note")["s1"] == "main"
    with pytest.raises(BranchNotFound):
        og.schema_plan(SCHEMA, branch="none")
    with pytest.raises(BranchNotFound):
        og.schema_apply(SCHEMA, branch="none")


def test_both_branches_add_a_type_of_one_name(og: Omnigraph) -> None:
    og.branch_create("review")
    added = ("node Site {", "node Batch { code: String @key }\nnode Site {")
    for branch in ("main", "review"):
        apply(og, added, branch=branch)
        load(og, {"type": "Batch", "data": {"code": branch}}, branch=branch)
    for branch in ("main", "review"):
        assert set(column(og, "node:Batch", "code", branch)) == {branch}


@pytest.mark.parametrize(
    "point",
    [
        "schema.after_lock",
        "schema.after_table",
        "stage.after_files",
        "stage.after_version",
        "schema.after_stage",
        "publish.before_image",
    ],
)
def test_a_failure_before_publishing_changes_nothing(og: Omnigraph, point: str) -> None:
    before = og.snapshot()
    edits = (WIDER, MORE, ("node Site {", "node Batch { code: String @key }\nnode Site {"))
    with failpoints.arm(point, "error"), pytest.raises(StorageError):
        apply(og, *edits)
    assert og.snapshot() == before
    assert Omnigraph.open(og.uri).snapshot() == before
    apply(og, *edits)
    assert set(column(og, SENSOR, "colour").values()) == {"grey"}


def test_a_failure_after_publishing_changes_all(og: Omnigraph) -> None:
    with failpoints.arm("schema.after_publish", "error"), pytest.raises(StorageError):
        apply(og, WIDER, MORE)
    assert og.schema_show().source == changed(WIDER, MORE)
    assert set(column(og, SENSOR, "colour").values()) == {"grey"}


def test_rows_written_meanwhile_are_changed_too(og: Omnigraph) -> None:
    new = {"type": "Sensor", "data": {**SENSORS[0], "serial": "s9"}}
    with meanwhile(lambda: load(Omnigraph.open(og.uri), new)):
        apply(og, WIDER, MORE)
    assert column(og, SENSOR, "colour")["s9"] == "grey"
    assert og.table(og.snapshot(), SENSOR).schema.field("reading").type == "double"


def test_rows_written_meanwhile_are_checked_too(og: Omnigraph) -> None:
    bad = {"type": "Sensor", "data": {**SENSORS[0], "serial": "s9", "unit": "rankine"}}
    narrower = ("enum(celsius, kelvin, rankine)", "enum(celsius, kelvin)")
    with meanwhile(lambda: load(Omnigraph.open(og.uri), bad)), pytest.raises(ConstraintViolation):
        apply(og, narrower)
    assert og.schema_show().source == SCHEMA


def test_other_tables_may_move(og: Omnigraph) -> None:
    with meanwhile(lambda: load(Omnigraph.open(og.uri), {"type": "Site", "data": {"code": "new"}})):
        apply(og, MORE)
    assert set(column(og, "node:Site", "code")) == {"a", "b", "new"}


def test_writers_go_on_with_the_new_schema(og: Omnigraph) -> None:
    other = Omnigraph.open(og.uri)
    new = {"type": "Sensor", "data": {**SENSORS[0], "serial": "s9"}}
    with meanwhile(lambda: apply(other, WIDER, MORE)):
        load(og, new)
    assert column(og, SENSOR, "colour")["s9"] == "grey"
    added = 'query add() { insert Site { code: "c" } }'
    gone = changed(
        WIDER,
        MORE,
        (
            "node Site { code: String @key }",
            "node Site { code: String @key  size: I32 @default(3) }",
        ),
    )
    with meanwhile(lambda: other.schema_apply(gone)):
        og.mutate(added)
    assert column(og, "node:Site", "size") == {"a": 3, "b": 3, "c": 3}
    renamed = gone.replace("size: I32", 'width: I32 @rename_from("size")')
    with (
        meanwhile(lambda: other.schema_apply(renamed)),
        pytest.raises((QueryTypeError, PreconditionFailed)),
    ):
        og.mutate('query put() { insert Site { code: "d", size: 4 } }')
    assert set(column(og, "node:Site", "width")) == {"a", "b", "c"}


def test_of_two_schema_changes_one_wins(og: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the lock: the one that comes second does not take back what the first did."""
    monkeypatch.setattr(locks, "put_new", lambda *_: True)
    other = Omnigraph.open(og.uri)
    with meanwhile(lambda: apply(other, WIDER)), pytest.raises(PreconditionFailed) as problem:
        apply(og, MORE)
    assert problem.value.member == "schema"
    assert og.schema_show().source == changed(WIDER)


def test_the_same_change_twice_is_one_commit(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "put_new", lambda *_: True)
    other = Omnigraph.open(og.uri)
    with meanwhile(lambda: apply(other, WIDER)):
        result = og.schema_apply(changed(WIDER))
    assert not result.applied
    assert len(og.list_commits()) == 4


def test_many_writers_and_a_schema_change(og: Omnigraph) -> None:
    def write(worker: int) -> None:
        graph = Omnigraph.open(og.uri)
        for number in range(5):
            data = {**SENSORS[0], "serial": f"w{worker}-{number}"}
            load(graph, {"type": "Sensor", "data": data})

    workers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for worker in workers:
        worker.start()
    apply(og, WIDER, MORE)
    for worker in workers:
        worker.join()
    assert len(column(og, SENSOR, "colour")) == 13
    assert set(column(og, SENSOR, "colour").values()) == {"grey"}


def test_a_rehearsal_writes_nothing(og: Omnigraph, tmp_path: Path) -> None:
    before = sorted(path for path in tmp_path.rglob("*"))
    result = og.schema_apply(changed(WIDER, MORE), dry_run=True)
    assert (result.applied, result.is_dry_run, len(result.steps)) == (False, True, 2)
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_the_lock_tells_who_has_it_and_stops_no_writer(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = og._context.store
    with schema_lock(store, "main", actor="ann") as held:
        assert try_read_lock(store, "main") == held
        with pytest.raises(SchemaApplyLocked, match="being changed by ann") as problem:
            apply(og, MORE)
        assert problem.value.retryable
        assert not og.schema_apply(SCHEMA).applied  # nothing to do needs no lock
        load(og, {"type": "Site", "data": {"code": "c"}})
        og.branch_create("review")
        apply(og, MORE, branch="review")
    assert try_read_lock(store, "main") is None
    monkeypatch.setenv(SCHEMA_LOCK.name, "0.000001")
    with schema_lock(store, "main", actor="ann"):
        apply(og, MORE)  # expired, so it was taken over
        assert try_read_lock(store, "main") is None
    assert try_read_lock(store, "main") is None


@pytest.mark.parametrize("left", [b"", b'{"id": "x', b'{"branch": "main"}'])
def test_a_lock_that_a_power_cut_left_is_nobodys(
    og: Omnigraph, tmp_path: Path, left: bytes
) -> None:
    (tmp_path / "_refs/schema_locks").mkdir(parents=True)
    Path(tmp_path / "_refs/schema_locks/main.json").write_bytes(left)
    apply(og, MORE)
    assert not list((tmp_path / "_refs/schema_locks").iterdir())


def test_a_lock_that_cannot_be_given_back_expires(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the store is away")

    monkeypatch.setattr(locks.objects, "delete_all", fail)
    assert og.schema_apply(changed(MORE)).applied
    assert try_read_lock(og._context.store, "main") is not None


def test_a_lost_race_does_not_write_again_what_is_written(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    write = storage_rearrange._write_fragment
    monkeypatch.setattr(
        storage_rearrange,
        "_write_fragment",
        lambda *args: written.append(args[2].fragment_id) or write(*args),
    )
    new = {"type": "Sensor", "data": {**SENSORS[0], "serial": "s4"}}
    again = {"type": "Sensor", "data": {**SENSORS[1], "text": "other"}}
    with meanwhile(lambda: load(Omnigraph.open(og.uri), new, again)):
        apply(og, WIDER, MORE)
    assert len(written) == 3  # two fragments at first, then only the new one
    assert column(og, SENSOR, "colour") == dict.fromkeys(("s1", "s2", "s3", "s4"), "grey")
    assert column(og, SENSOR, "text")["s2"] == "other"
    assert column(og, SENSOR, "reading")["s2"] == -2.5


def test_who_never_gets_a_turn_is_told_what_to_do(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object, **__: object) -> None:
        raise VersionConflict(SENSOR, 1, 2)

    monkeypatch.setattr(schema_apply.door, "commit", lose)
    monkeypatch.setattr(schema_apply, "back_off", lambda _: None)
    with pytest.raises(VersionConflict, match="pause the writers of branch main"):
        apply(og, MORE)


def test_an_actor_is_checked_first(og: Omnigraph) -> None:
    with pytest.raises(ConfigError):
        apply(og, MORE, actor=" ")
