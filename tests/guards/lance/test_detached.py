"""Detached versions: every table keeps its content in them, and nothing in its linear history."""

from __future__ import annotations

import dataclasses
import shutil
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments
from lance.optimize import Compaction

from tests.guards.lance import chain
from tests.guards.lance.chain import ids_of, skus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    """Two rows in a detached version over an empty linear one."""
    return chain.append(chain.create(tmp_path / "parts"), skus("a", "b"))


def reopen(dataset: LanceDataset, version: int | None = None) -> LanceDataset:
    return lance.dataset(dataset.uri, version=version)


def test_every_kind_of_write_chains(table: LanceDataset) -> None:
    """A table is a chain of detached versions: each write builds on a pin and yields a pin."""
    steps: list[tuple[Callable[[LanceDataset], LanceDataset], list[str]]] = [
        (lambda at: chain.append(at, skus("c")), ["a", "b", "c"]),
        (lambda at: chain.upsert(at, skus("b", "d", count=1)), ["a", "b", "c", "d"]),
        (lambda at: chain.delete(at, ["a"]), ["b", "c", "d"]),
        (lambda at: chain.compact(at), ["b", "c", "d"]),
        (lambda at: chain.reindex(at, "id", "BTREE"), ["b", "c", "d"]),
        (lambda at: chain.upsert(at, skus("d", "e", count=2)), ["b", "c", "d", "e"]),
        (lambda at: chain.overwrite(at, skus("z")), ["z"]),
    ]
    pins = {table.version: ["a", "b"]}
    pin = table.version
    for step, expected in steps:
        pin = step(reopen(table, pin)).version
        pins[pin] = expected
    assert len(pins) == len(steps) + 1
    assert min(pins) >= chain.FIRST_DETACHED, "a pin does not fit a signed 64-bit integer"
    assert {pin: ids_of(reopen(table, pin)) for pin in pins} == pins


def test_the_linear_head_never_moves(table: LanceDataset) -> None:
    """The catalog is the only authority: who opens a table without a pin sees nothing."""
    chain.overwrite(chain.delete(table, ["a"]), skus("c"))
    head = reopen(table)
    assert (head.version, head.count_rows()) == (1, 0)
    assert [version["version"] for version in head.versions()] == [1]


def test_siblings_do_not_see_each_other(table: LanceDataset) -> None:
    """Branches and retries build on the same pin, without a conflict and without mixing."""
    ours, theirs = chain.append(table, skus("ours")), chain.append(table, skus("theirs"))
    assert ids_of(ours) == ["a", "b", "ours"]
    assert ids_of(theirs) == ["a", "b", "theirs"]


def test_one_transaction_commits_twice(table: LanceDataset) -> None:
    """A retried commit makes a harmless sibling instead of duplicate rows."""
    fragments = write_fragments(skus("c"), table, mode="append")
    append = Transaction(table.version, LanceOperation.Append(fragments))
    twins = [LanceDataset.commit(table, append, detached=True) for _ in range(2)]
    assert twins[0].version != twins[1].version
    assert [ids_of(twin) for twin in twins] == [["a", "b", "c"]] * 2


def test_appended_fragments_can_be_adopted(table: LanceDataset) -> None:
    """A merge takes over rows appended on another branch without reading them."""
    theirs = chain.append(table, skus("theirs"))
    ours = chain.append(table, skus("ours"))
    known = {fragment.metadata.files[0].path for fragment in table.get_fragments()}
    adopted = [
        dataclasses.replace(fragment.metadata, id=0)
        for fragment in theirs.get_fragments()
        if fragment.metadata.files[0].path not in known
    ]
    assert ids_of(chain.commit(ours, LanceOperation.Append(adopted))) == [
        "a",
        "b",
        "ours",
        "theirs",
    ]


def test_a_version_needs_nothing_but_its_manifest_and_data(
    table: LanceDataset, tmp_path: Path
) -> None:
    """Cleanup may remove older manifests and every transaction file."""
    newest = chain.upsert(table, skus("b", "c", count=1))
    shutil.rmtree(tmp_path / "parts" / "_transactions")
    for manifest in (tmp_path / "parts" / "_versions").iterdir():
        if manifest.name != f"d{newest.version}.manifest":
            manifest.unlink()
    assert ids_of(reopen(newest, newest.version)) == ["a", "b", "c"]
    assert ids_of(chain.append(reopen(newest, newest.version), skus("d"))) == ["a", "b", "c", "d"]


def test_a_table_can_be_moved(table: LanceDataset, tmp_path: Path) -> None:
    """A graph is a directory that may be moved or copied: no manifest holds an absolute path."""
    indexed = chain.reindex(chain.delete(table, ["a"]), "id", "BTREE")
    shutil.move(table.uri, tmp_path / "elsewhere")
    moved = lance.dataset(str(tmp_path / "elsewhere"), version=indexed.version)
    assert moved.to_table(filter="id = 'b'").num_rows == 1
    assert ids_of(chain.append(moved, skus("c"))) == ["b", "c"]


def test_a_lance_branch_cannot_be_moved(tmp_path: Path) -> None:
    """Why graph branches are catalogs of their own: Lance's branches hold absolute paths."""
    dataset = lance.write_dataset(skus("a"), str(tmp_path / "parts"))
    dataset.create_branch("side")
    shutil.move(tmp_path / "parts", tmp_path / "elsewhere")
    moved = lance.dataset(str(tmp_path / "elsewhere"))
    assert ids_of(moved) == ["a"]
    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        moved.checkout_version(("side", None)).to_table()


MUTATORS: dict[str, Callable[[LanceDataset], object]] = {
    "append": lambda at: lance.write_dataset(skus("x"), at, mode="append"),
    "overwrite": lambda at: lance.write_dataset(skus("x"), at, mode="overwrite"),
    "insert": lambda at: at.insert(skus("x")),
    "delete": lambda at: at.delete("id = 'a'"),
    "update": lambda at: at.update({"count": "1"}),
    "merge insert": lambda at: (
        at.merge_insert("id").when_not_matched_insert_all().execute(skus("x"))
    ),
    "add columns": lambda at: at.add_columns({"more": "count"}),
    "drop columns": lambda at: at.drop_columns(["count"]),
    "alter columns": lambda at: at.alter_columns({"path": "count", "name": "number"}),
    "update config": lambda at: at.update_config({"a": "b"}),
    "create index": lambda at: at.create_scalar_index("id", "BTREE"),
    "compact files": lambda at: at.optimize.compact_files(),
}


@pytest.mark.parametrize("mutate", MUTATORS.values(), ids=MUTATORS)
def test_convenience_writes_are_refused(
    mutate: Callable[[LanceDataset], object], table: LanceDataset
) -> None:
    """A slip cannot move the linear head: on a detached handle such a call fails."""
    pin = chain.delete(chain.append(table, skus("c")), ["b"])
    with pytest.raises((OSError, RuntimeError), match="appearing as 'detached' versions"):
        mutate(pin)
    assert reopen(table).version == 1
    assert ids_of(reopen(table, pin.version)) == ["a", "c"]


def test_optimizing_indexes_is_refused(table: LanceDataset) -> None:
    """Delta segments are built and committed by us; the one-call way is for linear tables."""
    indexed = chain.append(chain.reindex(table, "id", "BTREE"), skus("c"))
    with pytest.raises(OSError, match="appearing as 'detached' versions"):
        indexed.optimize.optimize_indices()


def test_a_refused_compaction_takes_its_files_with_it(table: LanceDataset, tmp_path: Path) -> None:
    """Why a compaction is committed as a plain Rewrite: Lance's own commit destroys the work."""
    pin = chain.append(table, skus("c"))
    data = tmp_path / "parts" / "data"
    before = set(data.iterdir())
    done = [task.execute(pin) for task in Compaction.plan(pin, {}).tasks]
    assert len(set(data.iterdir()) - before) == 1
    with pytest.raises(OSError, match="appearing as 'detached' versions"):
        Compaction.commit(pin, done)
    assert set(data.iterdir()) == before


def test_what_a_detached_commit_cannot_do(table: LanceDataset, tmp_path: Path) -> None:
    """A table begins linear and empty; a detached commit keeps its retries, to find a free id."""
    fragments = write_fragments(skus("c"), table, mode="append")
    append = Transaction(table.version, LanceOperation.Append(fragments))
    with pytest.raises(CommitConflictError, match="Failed find unused random u64"):
        LanceDataset.commit(table, append, detached=True, max_retries=0)
    overwrite = LanceOperation.Overwrite(chain.SKUS, fragments)
    with pytest.raises(OSError, match="cannot currently be used to create new datasets"):
        LanceDataset.commit(str(tmp_path / "other"), overwrite, detached=True)


def test_a_version_given_as_text_is_a_tag(table: LanceDataset) -> None:
    """Pins are kept as text in the catalog and must be made numbers before they are opened."""
    with pytest.raises(ValueError, match=f"tag {table.version} does not exist"):
        lance.dataset(table.uri, version=str(table.version))


def test_an_empty_dataset_is_false(tmp_path: Path) -> None:
    """Why a dataset is compared with None and never asked for its truth."""
    assert not chain.create(tmp_path / "parts")
