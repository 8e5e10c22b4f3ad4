"""Damaged graphs: one typed error that names the place, and nothing changed by finding out."""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING

import lance
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    AlreadyExists,
    BranchNotFound,
    FormatTooNew,
    ObjectNotFound,
    OmnigraphError,
    StorageError,
)
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.migrations import STAMP_KEY
from omnigraph_core.storage.staged import stage_append
from tests.support.graphs import (
    BIN,
    HOLDS,
    PART,
    append,
    append_pair,
    append_parts,
    copied,
    ids,
    new_graph,
    parts,
    publish,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.manifest.snapshot import Snapshot


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """Three commits on main, one on a branch."""
    og = new_graph(str(tmp_path_factory.mktemp("whole") / "graph"))
    append_pair(og, ["a"])
    append_pair(og, ["b"])
    append(og, BIN, ["bin"])
    og.branch_create("review")
    append_parts(og, ["r"], "review")
    return og


@pytest.fixture
def og(whole: Omnigraph, tmp_path: Path) -> Omnigraph:
    return copied(whole, tmp_path / "graph")


@pytest.fixture
def root(og: Omnigraph, tmp_path: Path) -> Path:
    return tmp_path / "graph"


def everything(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def newest_manifest(catalog: Path) -> Path:
    return min((catalog / "_versions").glob("*.manifest"))  # numbers count down


def image_file(catalog: Path) -> Path:
    """The data file of the newest image."""
    (fragment,) = lance.dataset(catalog).get_fragments()
    return catalog / "data" / fragment.metadata.files[0].path


def data_file(og: Omnigraph, snapshot: Snapshot, key: str) -> str:
    """The newest data file of a table, below the root."""
    fragment = og.table(snapshot, key).dataset.get_fragments()[-1]
    return f"{snapshot.table(key).location}/data/{fragment.metadata.files[0].path}"


def empty(file: Path) -> None:
    file.write_bytes(b"")


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_the_end(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


def fill_with_noise(file: Path) -> None:
    file.write_bytes(random.Random(7).randbytes(file.stat().st_size))


def fill_with_zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def spoil_the_beginning(file: Path) -> None:
    file.write_bytes(random.Random(7).randbytes(64) + file.read_bytes()[64:])


DAMAGES = [empty, truncate, cut_the_end, fill_with_noise, fill_with_zeros, spoil_the_beginning]


@pytest.mark.parametrize("find", [newest_manifest, image_file])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_catalog(
    root: Path, find: Callable[[Path], Path], damage: Callable[[Path], None]
) -> None:
    damage(find(root / "__manifest"))
    before = everything(root)
    for attempt in (lambda: Omnigraph.open(str(root)), lambda: new_graph(str(root))):
        with pytest.raises(StorageError) as caught:
            attempt()
        assert not caught.value.retryable
        assert f"{root}/__manifest" in caught.value.message
        assert "restore it from a copy" in str(caught.value.hint)
    assert everything(root) == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_catalog_that_is_damaged_under_an_open_graph(
    og: Omnigraph, root: Path, damage: Callable[[Path], None]
) -> None:
    """Another process commits, the file is damaged, then this one looks."""
    og.snapshot()
    append_pair(Omnigraph.open(str(root)), ["c"])
    damage(newest_manifest(root / "__manifest"))
    for attempt in (og.snapshot, lambda: append_pair(og, ["d"])):
        with pytest.raises(StorageError, match="__manifest"):
            attempt()
    assert ids(og, og.snapshot("review")) == ["a", "b", "r"]


def test_a_catalog_without_its_image(root: Path) -> None:
    image_file(root / "__manifest").unlink()
    for attempt in (lambda: Omnigraph.open(str(root)), lambda: new_graph(str(root))):
        with pytest.raises(StorageError, match="__manifest"):
            attempt()


def test_a_new_graph_without_its_image_is_not_made_again(tmp_path: Path) -> None:
    new_graph(str(tmp_path))
    image_file(tmp_path / "__manifest").unlink()
    with pytest.raises(OmnigraphError, match="__manifest"):
        Omnigraph.open(str(tmp_path))
    with pytest.raises((AlreadyExists, StorageError)):
        new_graph(str(tmp_path))


@pytest.mark.parametrize("what", ["__manifest", "__manifest/_versions"])
def test_a_lost_catalog(root: Path, what: str) -> None:
    shutil.rmtree(root / what)
    before = everything(root)
    for attempt in (lambda: Omnigraph.open(str(root)), lambda: new_graph(str(root))):
        with pytest.raises(StorageError, match="has lost its catalog") as caught:
            attempt()
        assert str(root) in caught.value.message
        assert "restore the directory" in str(caught.value.hint)
    assert everything(root) == before


def test_a_catalog_that_is_lost_under_an_open_graph(og: Omnigraph, root: Path) -> None:
    """Nothing may be published into the empty place: that would be a graph without a past."""
    snapshot = og.snapshot()
    shutil.rmtree(root / "__manifest")
    with pytest.raises(OmnigraphError):
        append_pair(og, ["c"])
    assert not list(root.glob("__manifest/_versions/*.manifest"))
    assert ids(og, snapshot) == ["a", "b"]


def test_a_graph_made_again_at_the_address_of_an_open_one(og: Omnigraph, root: Path) -> None:
    """The open one knows a graph that is gone: what was staged on that is not written into the new
    one, and after that it works with the new one."""
    old = og.snapshot()
    staged = stage_append(og.table(old, PART), parts(["stale"]))
    assert staged is not None
    shutil.rmtree(root)
    new = new_graph(str(root))
    append(new, BIN, ["new"])
    with pytest.raises(StorageError, match="removed or replaced"):
        publish(og, old, {PART: staged}, TableOperation.APPEND)
    for handle in (Omnigraph.open(str(root)), new, og):
        snapshot = handle.snapshot()
        assert snapshot.commit.parents == (handle.snapshot_at_version(1).commit.graph_commit_id,)
        assert (ids(handle, snapshot), ids(handle, snapshot, BIN)) == ([], ["new"])


def rewrite_with_stamp(catalog: Path, stamp: str) -> None:
    """The same image once more, as another release would write it."""
    dataset = lance.dataset(catalog)
    rows = dataset.to_table()
    metadata = {**(rows.schema.metadata or {}), STAMP_KEY.encode(): stamp.encode()}
    lance.write_dataset(rows.replace_schema_metadata(metadata), catalog, mode="overwrite")


def test_a_newer_format(og: Omnigraph, root: Path) -> None:
    rewrite_with_stamp(root / "__manifest", "3")
    before = everything(root)
    attempts = [
        lambda: Omnigraph.open(str(root)),
        lambda: new_graph(str(root)),
        og.snapshot,
        lambda: append_pair(og, ["c"]),
        lambda: og.branch_create("x"),
        lambda: og.optimize(),
    ]
    for attempt in attempts:
        with pytest.raises(
            FormatTooNew, match="has format 3; this release reads up to 2"
        ) as caught:
            attempt()
        assert f"{root}/__manifest" in caught.value.message
        assert caught.value.hint == "upgrade omnigraph first"
    assert everything(root) == before
    assert ids(og, og.snapshot("review")) == ["a", "b", "r"], "each branch has a format of its own"
    assert ids(og, og.snapshot_at_version(3)) == ["a", "b"]


def test_a_newer_format_on_a_branch(og: Omnigraph, root: Path) -> None:
    rewrite_with_stamp(root / og.branch_get("review").manifest, "12")
    again = Omnigraph.open(str(root))
    assert ids(again, again.snapshot()) == ["a", "b"]
    with pytest.raises(FormatTooNew):
        again.snapshot("review")
    with pytest.raises(FormatTooNew):
        append_parts(again, ["x"], "review")


def test_an_unreadable_stamp(root: Path) -> None:
    rewrite_with_stamp(root / "__manifest", "two")
    with pytest.raises(StorageError, match="'two', not a number"):
        Omnigraph.open(str(root))


def test_a_lost_data_file(og: Omnigraph, root: Path) -> None:
    """The graph opens; who reads that file is told its name, everything else is unharmed."""
    append_pair(og, ["c"])
    older, newest = og.snapshot_at_version(2), og.snapshot()
    name = data_file(og, newest, PART)
    (root / name).unlink()
    again = Omnigraph.open(str(root))
    with pytest.raises(ObjectNotFound, match=name.rpartition("/")[2]) as caught:
        ids(again, again.snapshot())
    assert newest.table(PART).location in caught.value.message
    assert "restore it from a copy" in str(caught.value.hint)
    assert ids(again, again.snapshot(), HOLDS) == ["a", "b", "c"]
    assert ids(again, again.snapshot(), BIN) == ["bin"]
    assert ids(again, older) == ["a"]
    assert ids(again, again.snapshot("review")) == ["a", "b", "r"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_data_file(og: Omnigraph, root: Path, damage: Callable[[Path], None]) -> None:
    name = data_file(og, og.snapshot(), PART)
    damage(root / name)
    again = Omnigraph.open(str(root))
    location = again.snapshot().table(PART).location
    with pytest.raises(StorageError, match=location) as caught:
        again.table(again.snapshot(), PART).read()
    assert not caught.value.retryable
    assert ids(again, again.snapshot(), HOLDS) == ["a", "b"]


@pytest.mark.parametrize("damage", [None, *DAMAGES])
def test_a_lost_or_damaged_table_version(
    og: Omnigraph, root: Path, damage: Callable[[Path], None] | None
) -> None:
    entry = og.snapshot().table(PART)
    file = root / entry.location / "_versions" / f"d{entry.physical_version}.manifest"
    if damage is None:
        file.unlink()
    else:
        damage(file)
    again = Omnigraph.open(str(root))
    before = everything(root)
    for attempt in (lambda: again.table(again.snapshot(), PART), lambda: append_pair(again, ["c"])):
        with pytest.raises(StorageError, match=entry.location) as caught:
            attempt()
        assert isinstance(caught.value, ObjectNotFound) or damage is not None
        assert str(entry.physical_version) in caught.value.message
        assert "restore it from a copy" in str(caught.value.hint)
    assert everything(root) == before
    assert ids(again, again.snapshot(), HOLDS) == ["a", "b"]
    assert ids(again, again.snapshot_at_version(2)) == ["a"]
    with pytest.raises(StorageError):
        again.optimize()
    with pytest.raises(StorageError):
        again.cleanup(keep=1)
    assert ids(again, again.snapshot_at_version(2)) == ["a"], "a root that cannot be read stops all"


def test_a_branch_without_its_catalog(og: Omnigraph, root: Path) -> None:
    shutil.rmtree(root / og.branch_get("review").manifest)
    again = Omnigraph.open(str(root))
    for attempt in (lambda: again.snapshot("review"), lambda: append_parts(again, ["x"], "review")):
        with pytest.raises(BranchNotFound, match="the catalog of `review` is gone") as caught:
            attempt()
        assert "restore the directory" in str(caught.value.hint)
    assert again.branch_list() == ("main", "review")
    assert ids(again, again.snapshot()) == ["a", "b"]
    with pytest.raises(StorageError):
        again.cleanup(keep=1)


def test_a_branch_without_its_catalog_can_be_deleted(og: Omnigraph, root: Path) -> None:
    """That is what the hint of the error says."""
    shutil.rmtree(root / og.branch_get("review").manifest)
    again = Omnigraph.open(str(root))
    again.branch_delete("review")
    assert again.branch_list() == ("main",)
    again.branch_create("review")
    assert ids(again, again.snapshot("review")) == ["a", "b"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"branch": "review"}', "\x00\x01"])
def test_a_damaged_branch_object(og: Omnigraph, root: Path, text: str) -> None:
    file = root / "_refs/branches/review.json"
    file.write_text(text)
    with pytest.raises(StorageError, match=str(file)) as caught:
        og.snapshot("review")
    assert "restore it" in str(caught.value.hint)
    assert ids(og, og.snapshot()) == ["a", "b"]
    assert og.branch_list() == ("main", "review")
    with pytest.raises(StorageError, match=str(file)):
        og.cleanup(keep=1)


def test_a_stray_file_among_the_branches(og: Omnigraph, root: Path) -> None:
    (root / "_refs/branches/not a branch.json").write_text("{}")
    (root / "_refs/branches/README").write_text("hello")
    with pytest.raises(StorageError, match="`not a branch` is not the file name of a branch"):
        og.branch_list()
    assert ids(og, og.snapshot("review")) == ["a", "b", "r"]


def test_a_damaged_tag(og: Omnigraph, root: Path) -> None:
    og.tag_create("v1")
    (root / "_refs/tags/v1.json").write_text('{"tag": 1}')
    with pytest.raises(StorageError, match=r"_refs/tags/v1\.json"):
        og.snapshot_of(ReadTarget(tag="v1"))
    with pytest.raises(StorageError, match=r"_refs/tags/v1\.json"):
        og.cleanup(keep=1)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_log_of_commits(
    og: Omnigraph, root: Path, damage: Callable[[Path], None]
) -> None:
    """It only repeats what catalogs say: writes do not need it, and removing it mends it."""
    listed = og.list_commits("review")
    log = root / "_graph_commits.lance"
    damage(newest_manifest(log))
    again = Omnigraph.open(str(root))
    append_pair(again, ["c"])
    assert ids(again, again.snapshot()) == ["a", "b", "c"]
    with pytest.raises(StorageError, match="_graph_commits"):
        again.list_commits()
    shutil.rmtree(log)
    assert Omnigraph.open(str(root)).list_commits("review") == listed


def test_permission_bits_and_times_mean_nothing(og: Omnigraph, root: Path) -> None:
    for path in root.rglob("*"):
        os.utime(path, (1, 1))
    again = Omnigraph.open(str(root))
    assert ids(again, again.snapshot()) == ["a", "b"]
    append_pair(again, ["c"])
    assert ids(og, og.snapshot()) == ["a", "b", "c"]
