"""Lance's own cleanup: fatal for tables with detached versions, exact for catalogs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

from tests.guards.lance import chain
from tests.guards.lance.chain import ids_of, skus

if TYPE_CHECKING:
    from pathlib import Path

NOW = timedelta(0)


def files(root: Path, part: str) -> set[str]:
    return {path.name for path in (root / part).iterdir()}


def test_cleanup_spares_young_detached_data_only_by_its_age(tmp_path: Path) -> None:
    """Why cleanup of tables is ours: to Lance a detached version owns no data at all."""
    root = tmp_path / "parts"
    pin = chain.append(chain.append(chain.create(root), skus("a")), skus("b"))
    lance.dataset(str(root)).cleanup_old_versions(older_than=NOW)
    assert ids_of(lance.dataset(str(root), version=pin.version)) == ["a", "b"]
    stats = lance.dataset(str(root)).cleanup_old_versions(older_than=NOW, delete_unverified=True)
    assert stats.data_files_removed == 2
    assert files(root, "data") == set()
    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        lance.dataset(str(root), version=pin.version).to_table()


def test_cleanup_through_a_detached_handle_destroys_the_linear_history(tmp_path: Path) -> None:
    """Even without `delete_unverified` and whatever the age: the table cannot be opened again."""
    root = tmp_path / "parts"
    linear = lance.write_dataset(skus("linear"), str(root))
    pin = chain.append(linear, skus("a"))
    stats = pin.cleanup_old_versions(older_than=NOW)
    assert (stats.old_versions, stats.data_files_removed) == (1, 1)
    with pytest.raises(ValueError, match="was not found"):
        lance.dataset(str(root))
    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        lance.dataset(str(root), version=pin.version).to_table()


def test_a_tag_does_not_protect_a_detached_version(tmp_path: Path) -> None:
    """Why tags are entries of our catalog: Lance takes one, and then removes the data."""
    root = tmp_path / "parts"
    table = chain.create(root)
    table.tags.create("keep", chain.append(table, skus("a")).version)
    lance.dataset(str(root)).cleanup_old_versions(
        older_than=NOW, delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert files(root, "data") == set()


@pytest.fixture
def catalog(tmp_path: Path) -> LanceDataset:
    """Seven versions, each an overwrite with one file of its own."""
    newest = lance.write_dataset(skus("1"), str(tmp_path / "catalog"))
    for number in range(2, 8):
        fragments = write_fragments(skus(str(number)), newest, mode="overwrite")
        overwrite = LanceOperation.Overwrite(newest.lance_schema, fragments)
        transaction = Transaction(newest.version, overwrite)
        newest = LanceDataset.commit(newest, transaction, max_retries=0)
    return newest


def data_of(catalog: LanceDataset, version: int) -> set[str]:
    fragments = lance.dataset(catalog.uri, version=version).get_fragments()
    return {file.path for fragment in fragments for file in fragment.metadata.files}


def test_named_versions_are_removed_and_no_others(catalog: LanceDataset, tmp_path: Path) -> None:
    """A catalog is trimmed by naming versions: branch points and the rest stay as they are."""
    root = tmp_path / "catalog"
    doomed = set.union(*(data_of(catalog, version) for version in (2, 3, 5)))
    before = files(root, "data")
    stats = catalog.cleanup_old_versions(versions=[2, 3, 5])
    assert stats.old_versions == 3
    assert files(root, "data") == before - doomed
    assert len(files(root, "_transactions")) == 4
    assert [version["version"] for version in catalog.versions()] == [1, 4, 6, 7]
    kept = [ids_of(lance.dataset(catalog.uri, version=version)) for version in (1, 4, 6, 7)]
    assert kept == [["1"], ["4"], ["6"], ["7"]]
    with pytest.raises(ValueError, match="was not found"):
        lance.dataset(catalog.uri, version=3)


def test_the_newest_version_and_missing_ones_are_passed_over(catalog: LanceDataset) -> None:
    """Trimming is idempotent, and cannot remove what everybody reads."""
    assert catalog.cleanup_old_versions(versions=[7]).old_versions == 0
    assert catalog.cleanup_old_versions(versions=[2]).old_versions == 1
    assert catalog.cleanup_old_versions(versions=[2, 3]).old_versions == 1
    assert ids_of(lance.dataset(catalog.uri)) == ["7"]


def test_a_publish_under_way_survives_trimming(catalog: LanceDataset) -> None:
    """Files written but not yet committed are left alone; the publish lands on top."""
    fragments = write_fragments(skus("8"), catalog, mode="overwrite")
    lance.dataset(catalog.uri).cleanup_old_versions(versions=[1, 2, 3, 4, 5, 6])
    overwrite = LanceOperation.Overwrite(catalog.lance_schema, fragments)
    LanceDataset.commit(catalog, Transaction(catalog.version, overwrite), max_retries=0)
    assert ids_of(lance.dataset(catalog.uri)) == ["8"]
