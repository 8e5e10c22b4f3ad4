"""Every call of a graph asks the policy, first and for the right thing."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import PolicyDenied
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.names import RUN_PREFIX
from omnigraph_core.policy.model import Action
from tests.support.judges import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

FREE = {"init", "open", "close", "uri", "acting_as", "actor", "rights"}
"""What says nothing of a graph and does nothing to it."""

SCHEMA = "node Part {\n  sku: String @key\n  name: String?\n  photo: Blob?\n}\n"
READ = "query all() { match { $p: Part } return { $p.sku } }"
WRITE = 'query add() { insert Part { sku: "P-9" } }'
PART = b'{"type": "Part", "data": {"sku": "P-1", "photo": "base64:AAAA"}}\n'
LATER = datetime(2100, 1, 1, tzinfo=UTC)
PAGE = Path(__file__).parent.parent.parent / "docs" / "guides" / "policy.md"


@dataclass(frozen=True)
class World:
    """A graph with something of everything; `side` is a branch beside main."""

    root: Path
    commit_id: str
    """Made on `side`."""
    run_id: str
    """Aimed at `side`."""

    @property
    def commit(self) -> ReadTarget:
        return ReadTarget(snapshot_id=self.commit_id)

    def files(self) -> set[tuple[str, int]]:
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {(str(path), path.stat().st_mtime_ns) for path in found}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("graph")
    og = Omnigraph.init(str(root), SCHEMA)
    og.load(PART)
    for name in ("side", "merged", "doomed", "picky"):
        og.branch_create(name)
    for name in ("side", "merged"):
        og.load(PART.replace(b"P-1", name.encode()), branch=name)
    og.tag_create("v1", ReadTarget(branch="side"))
    run = og.begin_run("side")
    return World(root, og.head_commit_id_for_branch("side"), run.run_id)


Asked = tuple[str, str | None, str | None]
Call = tuple["Callable[[Omnigraph, World], Any]", list[Asked]]

ON_SIDE: list[Asked] = [("read", "side", None)]
NOWHERE: list[Asked] = [("read", None, None)]
SIDE = ReadTarget(branch="side")

# What each call asks, in this order, with the branches it is asked for.
CALLS: dict[str, Call] = {
    "query": (lambda og, w: og.query(w.commit, READ), ON_SIDE),
    "run_query_at": (lambda og, _: og.run_query_at(2, READ, branch="side"), ON_SIDE),
    "explain": (lambda og, _: og.explain("side", READ), ON_SIDE),
    "profile": (lambda og, _: og.profile(ReadTarget(tag="v1"), READ), ON_SIDE),
    "index_status": (lambda og, _: og.index_status(SIDE), ON_SIDE),
    "embedding_status": (lambda og, _: og.embedding_status(SIDE), ON_SIDE),
    "open_blob": (lambda og, _: og.open_blob("Part", "P-1", "photo", target="side"), ON_SIDE),
    "read_blob": (lambda og, _: og.read_blob("Part", "P-1", "photo", target="side"), ON_SIDE),
    "snapshot": (lambda og, _: og.snapshot("side"), ON_SIDE),
    "snapshot_of": (lambda og, w: og.snapshot_of(w.commit), ON_SIDE),
    "snapshot_at_version": (lambda og, _: og.snapshot_at_version(2, branch="side"), ON_SIDE),
    "snapshot_at_time": (lambda og, _: og.snapshot_at_time(LATER, branch="side"), ON_SIDE),
    "head_commit_id_for_branch": (lambda og, _: og.head_commit_id_for_branch("side"), ON_SIDE),
    "entity_at": (
        lambda og, _: og.entity_at("node:Part", "P-1", version=2, branch="side"),
        ON_SIDE,
    ),
    "hold": (lambda og, w: held(og, w), ON_SIDE),
    "table": (lambda og, w: og.table(plain(w).snapshot("side"), "node:Part"), ON_SIDE),
    "list_commits": (lambda og, _: og.list_commits("side"), ON_SIDE),
    "poll": (lambda og, _: og.poll(branch="side"), ON_SIDE),
    "cursor_at": (lambda og, _: og.cursor_at(branch="side"), ON_SIDE),
    "commit_changes": (lambda og, w: og.commit_changes(w.commit_id), ON_SIDE),
    "open_commit_changes": (lambda og, w: og.open_commit_changes(w.commit_id), ON_SIDE),
    "diff_between": (
        lambda og, _: og.diff_between("side", "main"),
        [*ON_SIDE, ("read", "main", None)],
    ),
    "diff_commits": (lambda og, w: og.diff_commits(w.commit_id, w.commit_id), ON_SIDE * 2),
    "iter_diff": (lambda og, _: og.iter_diff("side", "side"), ON_SIDE * 2),
    "open_diff": (lambda og, _: og.open_diff("side", "side"), ON_SIDE * 2),
    "schema_show": (lambda og, _: og.schema_show("side"), NOWHERE),
    "schema_plan": (lambda og, _: og.schema_plan(SCHEMA, branch="side"), NOWHERE),
    "branch_list": (lambda og, _: og.branch_list(), NOWHERE),
    "branch_get": (lambda og, _: og.branch_get("side"), NOWHERE),
    "get_commit": (lambda og, w: og.get_commit(w.commit_id), NOWHERE),
    "tag_list": (lambda og, _: og.tag_list(), NOWHERE),
    "list_runs": (lambda og, _: og.list_runs(), NOWHERE),
    "get_run": (lambda og, w: og.get_run(w.run_id), NOWHERE),
    "preview_run": (lambda og, w: og.preview_run(w.run_id), NOWHERE),
    "verify": (lambda og, _: og.verify("side"), NOWHERE),
    "export_jsonl": (lambda og, _: og.export_jsonl("side"), [("export", "side", None)]),
    "export_parquet": (
        lambda og, w: og.export_parquet(w.root.parent / f"out-{w.root.name}", w.commit),
        [("export", "side", None)],
    ),
    "load": (lambda og, _: og.load(PART, branch="side"), [("change", "side", None)]),
    "plan_load": (
        lambda og, _: og.plan_load("planned", PART, branch="side", engine="local"),
        [("change", "side", None)],
    ),
    "load_steps": (
        lambda og, _: og.load_steps("steps", branch="side", engine="local"),
        [("change", "side", None)],
    ),
    "mutate": (lambda og, _: og.mutate(WRITE, branch="side"), [("change", "side", None)]),
    "commit": (lambda og, _: og.commit([], [], branch="side"), [("change", "side", None)]),
    "embed_backfill": (
        lambda og, _: og.embed_backfill(branch="side"),
        [("change", "side", None)],
    ),
    "ingest": (
        lambda og, _: og.ingest(PART, branch="new", source="side"),
        [("change", "new", None), ("branch_create", "side", "new")],
    ),
    "cherry_pick": (
        lambda og, w: og.cherry_pick(w.commit_id, into="picky"),
        [("change", "picky", None), *ON_SIDE],
    ),
    "revert": (
        lambda og, w: og.revert(w.commit_id, branch="picky"),
        [("change", "picky", None), *ON_SIDE],
    ),
    "branch_reset": (
        lambda og, w: og.branch_reset("picky", w.commit, confirm=True),
        [("change", "picky", None), *ON_SIDE],
    ),
    "schema_apply": (
        lambda og, _: og.schema_apply(f"{SCHEMA}node Bin {{ code: String @key }}", branch="side"),
        [("schema_apply", None, "side")],
    ),
    "branch_create": (
        lambda og, w: og.branch_create("other", source=w.commit),
        [("branch_create", "side", "other")],
    ),
    "branch_delete": (
        lambda og, _: og.branch_delete("doomed"),
        [("branch_delete", None, "doomed")],
    ),
    "branch_merge": (
        lambda og, _: og.branch_merge("merged", delete_branch=True),
        [("branch_merge", "merged", "main"), ("branch_delete", None, "merged")],
    ),
    "tag_create": (lambda og, w: og.tag_create("v2", w.commit), [("branch_create", "side", None)]),
    "tag_delete": (lambda og, _: og.tag_delete("v1"), [("branch_delete", None, None)]),
    "begin_run": (
        lambda og, _: og.begin_run("side"),
        [("branch_create", "side", RUN_PREFIX)],
    ),
    "publish_run": (lambda og, w: og.publish_run(w.run_id), [("run_publish", None, "side")]),
    "abort_run": (
        lambda og, w: og.abort_run(plain(w).begin_run("side").run_id),
        [("run_abort", None, "side")],
    ),
    "fail_run": (
        lambda og, w: og.fail_run(plain(w).begin_run("side").run_id),
        [("run_abort", None, "side")],
    ),
    "ensure_indices": (lambda og, _: og.ensure_indices(branch="side"), [("admin", None, None)]),
    "build_topology": (lambda og, _: og.build_topology(branch="side"), ON_SIDE),
    "optimize": (lambda og, _: og.optimize(branch="side"), [("admin", None, None)]),
    "cleanup": (lambda og, _: og.cleanup(keep=100), [("admin", None, None)]),
}  # fmt: skip

FOUND_FIRST = {
    "query", "profile", "snapshot_of", "commit_changes", "open_commit_changes", "diff_commits",
    "export_parquet", "branch_create", "tag_create", "publish_run", "abort_run", "fail_run",
    "hold", "table",
}  # fmt: skip
"""Called here with a commit, tag, snapshot or run: only that tells the branch."""


def plain(world: World) -> Omnigraph:
    return Omnigraph.open(str(world.root))


def held(og: Omnigraph, world: World) -> None:
    snapshot = plain(world).snapshot("side")
    with og.hold(snapshot, purpose="test", lasting=timedelta(minutes=1)):
        pass


class Untouchable:
    """What a refused call must not even look at."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"`{name}` was looked at before the policy was asked")


def shown(recorder: Recorder) -> list[Asked]:
    """What was asked; the id of a run is different every time."""
    return [
        (
            item.action,
            item.branch,
            RUN_PREFIX if _is_run(item.target_branch) else item.target_branch,
        )
        for item in recorder.asked
    ]


def _is_run(branch: str | None) -> bool:
    return branch is not None and branch.startswith(RUN_PREFIX)


def test_every_call_is_listed() -> None:
    public = {name for name in dir(Omnigraph) if not name.startswith("_")}
    assert public == set(CALLS) | FREE
    assert not set(CALLS) & FREE


def test_denied_calls_do_nothing(world: World) -> None:
    for name, (call, asked) in CALLS.items():
        judge = Recorder(is_allowing=False)
        denied = Omnigraph.open(str(world.root), policy=judge, actor="ada")
        is_begun_here = name in ("abort_run", "fail_run")
        before = world.files()
        with pytest.raises(PolicyDenied) as refused:
            call(denied, world)
        assert shown(judge) == asked[:1], name
        assert refused.value.actor == "ada"
        assert is_begun_here or world.files() == before, name
    assert not (world.root.parent / f"out-{world.root.name}").exists()


def test_nothing_is_read_before_the_policy_is_asked(world: World) -> None:
    for name, (call, _) in CALLS.items():
        if name not in FOUND_FIRST:
            denied = Omnigraph.open(str(world.root), policy=Recorder(is_allowing=False))
            denied._context = Untouchable()  # type: ignore[assignment]
            with pytest.raises(PolicyDenied):
                call(denied, world)


def test_each_call_asks_once_and_for_the_right_thing(world: World) -> None:
    for name, (call, asked) in CALLS.items():
        judge = Recorder(is_allowing=True)
        call(Omnigraph.open(str(world.root), policy=judge, actor="ada"), world)
        assert shown(judge) == asked, name
        assert {item.actor for item in judge.asked} == {"ada"}


def test_guide_tells_what_each_call_needs() -> None:
    rows = re.findall(r"^\| (.*) \| (.*) \| .* \|$", PAGE.read_text(), re.MULTILINE)
    told: dict[str, set[str]] = defaultdict(set)
    for calls, actions in rows:
        for name in re.findall(r"`(\w+)`", calls):
            told[name] |= set(re.findall(r"`(\w+)`", actions))
    needed = {name: {action for action, _, _ in asked} for name, (_, asked) in CALLS.items()}
    assert told == needed
    assert {action for actions in needed.values() for action in actions} <= set(Action)
