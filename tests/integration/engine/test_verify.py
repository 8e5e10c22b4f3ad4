"""Verify finds every kind of damage, says where it is, and nothing else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest

from omnigraph_core.constants import RECENT_COMMITS
from omnigraph_core.engine import verify as verifying
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.verifying.model import Code, Severity
from omnigraph_core.errors import StorageError
from omnigraph_core.manifest.changes import AcceptSchema, UpdateTable
from omnigraph_core.manifest.image import AcceptedSchema, TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.manifest.rows import encode_image
from omnigraph_core.storage.staged import stage_overwrite
from tests.support.ageing import clean_up
from tests.support.graphs import (
    BIN,
    PART,
    append,
    append_pair,
    append_parts,
    copied,
    new_graph,
    parts,
    publish,
    touch,
)
from tests.support.table_writes import add_null_column, stage_delete_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from omnigraph_core.engine.verifying.catalogs import Seen
    from omnigraph_core.manifest.image import Image
    from omnigraph_core.storage.session import Store

FIRST = [f"p{number:03}" for number in range(40)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """Indexed rows, some of them deleted, and a branch that shares them."""
    og = new_graph(str(tmp_path_factory.mktemp("sound") / "graph"))
    append(og, BIN, ["bin"])
    append_pair(og, FIRST)
    og.optimize()
    append_parts(og, ["q1", "q2"])
    snapshot = og.snapshot()
    fewer = stage_delete_keys(og.table(snapshot, PART), pa.array(["q1"]))
    assert fewer is not None
    publish(og, snapshot, {PART: fewer}, TableOperation.DELETE)
    og.branch_create("review")
    assert og.verify(is_deep=True).is_sound
    return og


@pytest.fixture
def og(sound: Omnigraph, root: Path) -> Omnigraph:
    return copied(sound, root)


def errors(og: Omnigraph, branch: str | None = None, *, is_deep: bool = False) -> list[str]:
    """Codes of what a handle finds that has seen nothing before."""
    report = Omnigraph.open(og.uri).verify(branch, is_deep=is_deep)
    return sorted({str(f.code) for f in report.findings if f.severity is Severity.ERROR})


def location(og: Omnigraph, root: Path, key: str = PART) -> Path:
    return root / og.snapshot().table(key).location


def used(og: Omnigraph, root: Path, folder: str) -> Path:
    """A file that the head needs."""
    table = og.table(og.snapshot(), PART)
    place = location(og, root)
    if folder == "data":
        return place / "data" / table.dataset.get_fragments()[0].metadata.files[0].path
    if folder == "_deletions":
        (deleted,) = [
            f.metadata
            for f in table.dataset.get_fragments()
            if f.metadata.deletion_file is not None
        ]
        return place / deleted.deletion_file.path(deleted.id)
    if folder == "_indices":
        uuid = table.dataset.describe_indices()[0].segments[0].uuid
        return max((place / "_indices" / uuid).iterdir())
    return place / "_versions" / f"d{table.physical_version}.manifest"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("folder", "damage", "code"),
    [
        ("data", Path.unlink, Code.FILE_MISSING),
        ("data", truncate, Code.FILE_SIZE),
        ("_deletions", Path.unlink, Code.FILE_MISSING),
        ("_deletions", empty, Code.FILE_SIZE),
        ("_indices", Path.unlink, Code.FILE_SIZE),
        ("_indices", truncate, Code.FILE_SIZE),
        ("_indices", lambda path: shutil.rmtree(path.parent), Code.FILE_MISSING),
        ("_versions", Path.unlink, Code.TABLE_UNREADABLE),
        ("_versions", truncate, Code.TABLE_UNREADABLE),
    ],
)
def test_a_lost_or_short_file(
    og: Omnigraph, root: Path, folder: str, damage: Callable[[Path], None], code: Code
) -> None:
    path = used(og, root, folder)
    damage(path)
    report = Omnigraph.open(og.uri).verify()
    assert not report.is_sound
    (found,) = report.findings
    assert found.code == code
    assert found.place.endswith(PART)
    name = path.parent.name if folder == "_indices" else path.name
    assert name.removeprefix("d").removesuffix(".manifest") in found.message
    assert "restore" in str(found.hint)
    assert code in errors(og, is_deep=True)


def test_a_file_that_only_an_old_version_needs(og: Omnigraph, root: Path) -> None:
    path = used(og, root, "data")
    snapshot = og.snapshot()
    fresh = stage_overwrite(og.table(snapshot, PART), parts(["new", *FIRST]))
    assert fresh is not None
    publish(og, snapshot, {PART: fresh}, TableOperation.OVERWRITE)
    path.unlink()
    assert errors(og, "main") == []
    assert errors(og, "review") == [Code.FILE_MISSING]
    assert errors(og, "main", is_deep=True) == [Code.FILE_MISSING]
    place = Omnigraph.open(og.uri).verify("main", is_deep=True).findings[0].place
    assert place == f"main@{snapshot.manifest_version} {PART}"


def test_a_damaged_deletion_file_is_found_by_reading(og: Omnigraph, root: Path) -> None:
    """How long it should be is said nowhere."""
    truncate(used(og, root, "_deletions"))
    assert errors(og) == []
    assert errors(og, is_deep=True) == [Code.TABLE_UNREADABLE]


@pytest.mark.parametrize("changed", [{"row_count": 7}, {"fragment_count": 9}])
def test_wrong_counts(og: Omnigraph, changed: dict[str, int]) -> None:
    snapshot = og.snapshot()
    update = UpdateTable.of(PART, og.table(snapshot, PART), TableOperation.INDEX)
    og.commit([replace(update, **changed)], requirements_of(snapshot, touched=[PART]))
    report = og.verify()
    (found,) = report.findings
    assert found.code == Code.TABLE_COUNTS
    assert str(*changed.values()) in found.message
    assert errors(og, "review") == []


def test_other_columns_than_the_schema_has(og: Omnigraph) -> None:
    snapshot = og.snapshot()
    wider = add_null_column(og.table(snapshot, PART), pa.field("weight", pa.int64()))
    assert wider is not None
    publish(og, snapshot, {PART: wider}, TableOperation.SCHEMA)
    (found,) = og.verify().findings
    assert (found.code, found.message) == (
        Code.TABLE_COLUMNS,
        "the column `weight` is not of the schema",
    )
    assert errors(og, is_deep=True) == [Code.TABLE_COLUMNS]


def accept(og: Omnigraph, change: Callable[[AcceptedSchema], AcceptedSchema]) -> None:
    snapshot = og.snapshot()
    accepted = AcceptSchema(change(snapshot.schema))
    og.commit([accepted], requirements_of(snapshot, touched=[]))


def test_a_schema_that_is_not_what_its_hash_says(og: Omnigraph) -> None:
    accept(og, lambda schema: replace(schema, hash="sha256:0"))
    assert Code.SCHEMA_DAMAGED in errors(og)
    accept(og, lambda schema: replace(schema, document="{"))
    assert errors(og) == [Code.SCHEMA_DAMAGED]
    assert errors(og, is_deep=True) == [Code.SCHEMA_DAMAGED]


def test_a_type_without_a_table(og: Omnigraph) -> None:
    more = Omnigraph.init(
        f"{og.uri}-more", "node Part { sku: String @key name: String? @index stock: I64? }"
    )
    accept(og, lambda _: more.snapshot().schema)
    report = og.verify()
    told = {item.message for item in report.findings}
    assert told == {"the schema has no such type"}


def rewrite(og: Omnigraph, root: Path, change: Callable[[Image], Image]) -> None:
    """One more version of main's catalog, as nobody would write it."""
    rows = encode_image(change(og.snapshot().image))
    lance.write_dataset(rows, root / "__manifest", mode="overwrite")


def with_head(image: Image, **changes: object) -> Image:
    version = image.head.manifest_version + 1
    head = replace(
        image.head,
        graph_commit_id="01NEW",
        manifest_version=version,
        parent_commit_id=image.head.graph_commit_id,
    )
    return replace(image, commits=(*image.commits, replace(head, **changes)))  # type: ignore[arg-type]


def test_a_history_that_does_not_fit(og: Omnigraph, root: Path) -> None:
    rewrite(og, root, with_head)
    assert errors(og) == [], "as a writer would have written it"
    rewrite(og, root, lambda image: with_head(image, graph_commit_id="01B", parent_commit_id="01X"))
    (found,) = Omnigraph.open(og.uri).verify().findings
    assert found.code == Code.CATALOG_HISTORY
    assert "the first parent of 01B is 01X" in found.message


def test_a_head_of_another_version(og: Omnigraph, root: Path) -> None:
    rewrite(og, root, lambda image: with_head(image, manifest_version=99))
    assert errors(og) == [Code.CATALOG_HISTORY]


def test_versions_that_contradict_each_other(og: Omnigraph, root: Path) -> None:
    def forgetful(image: Image) -> Image:
        """The commits before are others than those that were published."""
        last = replace(image.commits[-1], graph_commit_id="01OTHER")
        return with_head(replace(image, commits=(*image.commits[:-1], last)))

    rewrite(og, root, forgetful)
    assert errors(og) == [], "the newest alone fits"
    assert errors(og, is_deep=True) == [Code.CATALOG_HISTORY]


def test_a_version_number_that_means_two_things(og: Omnigraph, root: Path) -> None:
    def swapped(image: Image) -> Image:
        other = og.snapshot_at_version(2).table(PART)
        entry = replace(other, table_version=image.tables[PART].table_version)
        return with_head(replace(image, tables={**image.tables, PART: entry}))

    rewrite(og, root, swapped)
    found = og.verify("main", is_deep=True).findings
    assert any("of node:Part means two things" in item.message for item in found)


def newest_manifest(catalog: Path) -> Path:
    return min((catalog / "_versions").glob("*.manifest"))  # numbers count down


def test_a_damaged_version_of_a_catalog(og: Omnigraph, root: Path) -> None:
    oldest = max((root / "__manifest" / "_versions").glob("*.manifest"))
    truncate(oldest)
    assert errors(og) == []
    assert errors(og, is_deep=True) == [Code.CATALOG_UNREADABLE]


def test_a_catalog_that_has_lost_commits(og: Omnigraph, root: Path) -> None:
    og.list_commits()
    newest_manifest(root / "__manifest").unlink()
    assert Code.LOG_DISAGREES in errors(og)
    (found,) = [item for item in og.verify("main").findings if item.code == Code.LOG_DISAGREES]
    assert "the log knows version 6, the newest of the catalog is 5" in found.message


def test_a_log_that_says_something_else(og: Omnigraph, root: Path) -> None:
    og.list_commits()
    other = new_graph(f"{og.uri}-other")
    append(other, BIN, ["bin"])
    other.list_commits()
    log = root / "_graph_commits.lance"
    shutil.rmtree(log)
    shutil.copytree(Path(other.uri) / "_graph_commits.lance", log)
    assert errors(og) == [Code.LOG_DISAGREES]
    shutil.rmtree(log)
    assert errors(og) == [], "it is made again from the catalogs"


def test_a_log_made_again_may_lack_what_was_cleaned_up(og: Omnigraph, root: Path) -> None:
    og.tag_create("v1")
    og.branch_delete("review")
    for _ in range(RECENT_COMMITS.value + 2):
        touch(og)
    clean_up(og, keep=1)
    shutil.rmtree(root / "_graph_commits.lance")
    shutil.rmtree(root / "_graph_commit_actors.lance", ignore_errors=True)
    again = Omnigraph.open(og.uri)
    again.list_commits()
    report = again.verify(is_deep=True).require_sound()
    assert {item.code for item in report.findings} <= {Code.LOG_DISAGREES, Code.GARBAGE}


@pytest.mark.parametrize("name", ["_graph_commits.lance", "_graph_commit_actors.lance"])
def test_a_damaged_log(og: Omnigraph, root: Path, name: str) -> None:
    og.list_commits()
    newest_manifest(root / name).write_bytes(b"nonsense")
    (found,) = Omnigraph.open(og.uri).verify().findings
    assert (found.code, found.place) == (Code.LOG_DAMAGED, name)


def test_damaged_runs(og: Omnigraph, root: Path) -> None:
    og.begin_run()
    assert errors(og) == []
    newest_manifest(root / "_graph_runs.lance").write_bytes(b"nonsense")
    assert errors(og) == [Code.LOG_DAMAGED]


def test_branches_that_name_nothing(og: Omnigraph, root: Path) -> None:
    file = root / "_refs/branches/review.json"
    shutil.copytree(root / og.branch_get("review").manifest, root / "kept")
    shutil.rmtree(root / og.branch_get("review").manifest)
    (found,) = Omnigraph.open(og.uri).verify().findings
    assert (found.code, found.place) == (Code.REF_DANGLING, "review")
    assert "delete the branch" in str(found.hint)
    shutil.move(root / "kept", root / json.loads(file.read_text())["manifest"])
    assert errors(og) == []
    ref = json.loads(file.read_text())
    file.write_text(json.dumps({**ref, "forked_from": {**ref["forked_from"], "commit_id": "01X"}}))
    assert errors(og) == [Code.CATALOG_HISTORY]
    file.write_text("{")
    assert errors(og) == [Code.REF_DAMAGED]
    assert errors(og, "main", is_deep=True) == []
    (root / "_refs/branches/not a branch.json").write_text("{}")
    assert errors(og) == [Code.REF_DAMAGED]


def test_a_fork_point_that_is_gone(og: Omnigraph, root: Path) -> None:
    append_parts(og, ["later"])
    fork = og.branch_get("review").forked_from
    assert fork is not None
    path = root / "__manifest" / "_versions" / f"{2**64 - 1 - fork.manifest_version:020d}.manifest"
    path.unlink()
    assert errors(og) == [Code.REF_DANGLING]


def test_tags_that_name_nothing(og: Omnigraph, root: Path) -> None:
    og.tag_create("v1")
    assert errors(og) == []
    file = root / "_refs/tags/v1.json"
    tag = json.loads(file.read_text())
    for changed in ({"manifest_version": 99}, {"commit_id": "01X"}):
        file.write_text(json.dumps({**tag, **changed}))
        (found,) = Omnigraph.open(og.uri).verify().findings
        assert (found.code, found.place) == (Code.REF_DANGLING, "tag v1")
    file.write_text("[]")
    assert errors(og) == [Code.REF_DAMAGED]


def test_an_index_that_finds_other_rows(og: Omnigraph, root: Path, tmp_path: Path) -> None:
    """The files of another index of the same length: nothing but a lookup can tell."""
    other = new_graph(str(tmp_path / "other"))
    append_pair(other, [id.replace("p", "r") for id in FIRST])
    other.optimize()
    places = []
    for graph, below in ((og, root), (other, tmp_path / "other")):
        table = graph.table(graph.snapshot(), PART)
        (index,) = [i for i in table.dataset.describe_indices() if i.name == "id_btree"]
        places.append(below / table.location / "_indices" / index.segments[0].uuid)
    for file in places[1].iterdir():
        shutil.copy(file, places[0] / file.name)
    assert errors(og) == []
    (found,) = Omnigraph.open(og.uri).verify("main", is_deep=True).findings
    assert found.code == Code.INDEX_DAMAGED
    assert "index `id_btree`: looking" in found.message


def test_versions_that_cleanup_takes_meanwhile(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are gone when their tables are looked at, and that is no damage."""
    for name in "ab":
        snapshot = og.snapshot()
        fresh = stage_overwrite(og.table(snapshot, PART), parts([name, *FIRST]))
        assert fresh is not None
        publish(og, snapshot, {PART: fresh}, TableOperation.OVERWRITE)
    og.branch_delete("review")
    check = verifying.check_tables
    taken = []

    def late(store: Store, seen: Sequence[Seen], *, is_deep: bool) -> object:
        taken.append(clean_up(Omnigraph.open(og.uri), keep=1).old_versions_removed)
        return check(store, seen, is_deep=is_deep)

    monkeypatch.setattr(verifying, "check_tables", late)
    report = og.verify(is_deep=True)
    assert taken[0] > 0
    assert [item for item in report.findings if item.severity is Severity.ERROR] == []


def test_a_store_that_does_not_answer_is_no_damage(
    og: Omnigraph, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise StorageError("timed out", retryable=True)

    monkeypatch.setattr("omnigraph_core.engine.verifying.tables.open_table", unreachable)
    with pytest.raises(StorageError, match="timed out"):
        og.verify()


def test_damage_that_branches_share_is_told_once(og: Omnigraph, root: Path) -> None:
    used(og, root, "data").unlink()
    found = Omnigraph.open(og.uri).verify(is_deep=True).findings
    codes = [item.code for item in found if item.severity is Severity.ERROR]
    assert codes == [Code.FILE_MISSING], "of all branches and versions that need it"


@pytest.mark.parametrize("is_deep", [False, True])
def test_damage_is_told_of_main_first_and_of_runs_last(
    og: Omnigraph, root: Path, *, is_deep: bool
) -> None:
    path = used(og, root, "data")
    og.begin_run()

    def place() -> str:
        (found,) = [
            item
            for item in Omnigraph.open(og.uri).verify(is_deep=is_deep).findings
            if item.severity is Severity.ERROR
        ]
        return found.place

    path.rename(root / "lost")
    assert place() == f"main@{og.snapshot().manifest_version} {PART}"
    (root / "lost").rename(path)
    before = og.snapshot()
    fresh = stage_overwrite(og.table(before, PART), parts(["new", *FIRST]))
    assert fresh is not None
    publish(og, before, {PART: fresh}, TableOperation.OVERWRITE)
    path.unlink()
    older = f"main@{before.manifest_version} {PART}"
    assert place() == (
        older if is_deep else f"review@{og.snapshot('review').manifest_version} {PART}"
    )
