"""What a kept version needs is never swept, and everything else can be."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest

from omnigraph_core import failpoints
from omnigraph_core.errors import ObjectNotFound, StorageError
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import EMPTY_VERSION, open_table
from omnigraph_core.storage.indexes import index_coverage, stage_index
from omnigraph_core.storage.segments import IndexRequest, Metric, SegmentKind
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append, stage_overwrite
from omnigraph_core.storage.sweep import (
    PERMANENT,
    TableFile,
    delete_files,
    list_files,
    reachable_files,
)
from tests.support.cases import each
from tests.support.parts import LARGE, LOCATION, contents, new_table, part, parts, present, rows
from tests.support.processes import spawn
from tests.support.table_writes import (
    add_filled_column,
    drop_column,
    stage_delete_keys,
    stage_delete_where,
    stage_upsert,
)

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store

REQUESTS = (
    IndexRequest("id", SegmentKind.BTREE, "id_btree"),
    IndexRequest("name", SegmentKind.INVERTED, "name_text"),
    IndexRequest("shape", SegmentKind.IVF_FLAT, "shape_vectors", Metric.L2),
)

ONLY_LOCAL = {"_versions/latest_version_hint.json"}
"""Lance writes it where a listing is slow, not to S3."""


def history(root: str) -> list[Table]:
    """Versions with blobs, deletions, several segments, a filled and a dropped column."""
    made = [new_table(root)]

    def step(table: Table | None) -> None:
        made.append(present(table))

    step(stage_append(made[-1], rows([part(1, drawing=LARGE), *parts(range(2, 9))])))
    for request in REQUESTS:
        step(stage_index(made[-1], request))
    step(stage_upsert(made[-1], rows([part(3, drawing=LARGE, name="nut"), part(20)])))
    step(stage_index(made[-1], REQUESTS[0]))
    step(stage_delete_keys(made[-1], pa.array(["2", "5"])))
    step(add_filled_column(made[-1], pa.field("grade", pa.utf8()), pa.scalar("A")))
    step(compact(made[-1]))
    step(stage_index(made[-1], REQUESTS[1]))
    step(drop_column(made[-1], "tags"))
    step(stage_delete_where(made[-1], "`stock` > 6"))
    step(stage_overwrite(made[-1], rows([part(1, drawing=LARGE, grade="B")], made[-1].schema)))
    return made


def answers(table: Table) -> dict[str, Any]:
    """All rows, and what every index says; from a cold handle."""
    cold = open_table(open_store(str(table.store.root)), table.location, table.physical_version)
    names = {coverage.name for coverage in index_coverage(cold)}
    found: dict[str, Any] = {"rows": contents(cold), "names": names}
    found["by id"] = cold.read(["stock"], where="`id` = '1'").to_pylist()
    if "name_text" in names:
        query = {"columns": ["name"], "query": "bolt"}
        hits = cold.dataset.to_table(columns=["id", "_score"], full_text_query=query)
        found["by text"] = sorted(hits.column("id").to_pylist())
    if cold.count_rows():
        near = {"column": "shape", "q": [1.0, 3.0, 3.0, 0.5], "k": 3, "metric": "l2"}
        found["by shape"] = cold.dataset.to_table(
            columns=["id", "_distance"], nearest=near
        ).to_pylist()
    return found


def garbage(store: Store, kept: list[Table]) -> list[str]:
    reachable = frozenset().union(*map(reachable_files, kept))
    return [file.path for file in list_files(store, LOCATION) if file.unit not in reachable]


def test_kept_versions_survive_the_sweep_of_all_others(graph_root: str) -> None:
    versions = history(graph_root)
    store = versions[0].store
    expected = [answers(table) for table in versions]
    kept = [2, 6, 9, 13]
    doomed = garbage(store, [versions[number] for number in kept])
    assert doomed
    delete_files(store, LOCATION, doomed)
    for number in kept:
        assert answers(versions[number]) == expected[number]
    left = {file.unit for file in list_files(store, LOCATION)} | ONLY_LOCAL
    assert left == frozenset().union(*(reachable_files(versions[number]) for number in kept))
    cold = open_store(graph_root)
    for number in set(range(1, len(versions))) - set(kept):
        with pytest.raises(ObjectNotFound):
            open_table(cold, LOCATION, versions[number].physical_version)


def test_everything_reachable_is_listed(tmp_path: Path) -> None:
    versions = history(str(tmp_path))
    listed = {file.unit for file in list_files(versions[0].store, LOCATION)}
    for table in versions:
        assert reachable_files(table) <= listed | ONLY_LOCAL


def test_a_kept_version_takes_new_ones_after_the_sweep(tmp_path: Path) -> None:
    table = history(str(tmp_path))[8]
    delete_files(table.store, LOCATION, garbage(table.store, [table]))
    cold = open_table(open_store(str(tmp_path)), LOCATION, table.physical_version)
    expected = contents(cold)
    added = part("new", grade="C", drawing=LARGE)
    later = present(stage_upsert(cold, rows([added], cold.schema)))
    later = present(compact(later))
    assert contents(later) == {**expected, "new": added}
    assert cold.dataset.latest_version == EMPTY_VERSION
    assert open_table(cold.store, LOCATION, EMPTY_VERSION).count_rows() == 0


def test_nothing_kept_leaves_an_empty_table(tmp_path: Path) -> None:
    versions = history(str(tmp_path))
    store = versions[0].store
    delete_files(store, LOCATION, garbage(store, [versions[0]]))
    assert {file.unit for file in list_files(store, LOCATION)} | ONLY_LOCAL == PERMANENT
    assert lance.dataset(versions[0].uri).count_rows() == 0


def test_a_moved_table_is_swept_as_before(tmp_path: Path) -> None:
    versions = history(str(tmp_path / "here"))
    expected = answers(versions[-3])
    shutil.move(tmp_path / "here", tmp_path / "there")
    store = open_store(str(tmp_path / "there"))
    moved = open_table(store, LOCATION, versions[-3].physical_version)
    delete_files(store, LOCATION, garbage(store, [moved]))
    assert answers(moved) == expected


def test_marking_reads_no_rows(tmp_path: Path) -> None:
    """The data files are gone; what a version needs is known all the same."""
    table = history(str(tmp_path))[-4]
    expected = reachable_files(table)
    for folder in ("data", "_indices", "_deletions", "_transactions"):
        shutil.rmtree(Path(table.uri) / folder)
    cold = open_table(open_store(str(tmp_path)), LOCATION, table.physical_version)
    assert reachable_files(cold) == expected


def test_a_listing_is_of_one_table(tmp_path: Path) -> None:
    table = present(stage_append(new_table(tmp_path), rows([part(1)])))
    neighbour = tmp_path / f"{LOCATION}-2" / "data"
    neighbour.mkdir(parents=True)
    (neighbour / "x.lance").write_bytes(b"12345")
    files = list_files(table.store, LOCATION)
    assert {str(Path(file.path).parent) for file in files} == {"_versions", "_transactions", "data"}
    (other,) = list_files(table.store, f"{LOCATION}-2")
    assert (other.path, other.size) == ("data/x.lance", 5)
    assert other.last_modified.tzinfo is not None
    assert list_files(table.store, "nodes/none") == ()


@each(
    ("path", "unit"),
    [
        ("_indices/6b1e/page_data.lance", "_indices/6b1e"),
        ("_indices/6b1e/staging/tokens.lance", "_indices/6b1e"),
        ("data/0110.lance", "data/0110.lance"),
        ("data/0110/1000.blob", "data/0110.lance"),
        ("_transactions/0-6b1e-77.txn", "_transactions/0"),
        ("_transactions/9223372036854775809-6b1e.txn", "_transactions/9223372036854775809"),
        ("_deletions/0-1-2.arrow", "_deletions/0-1-2.arrow"),
        ("_versions/d9223372036854775809.manifest", "_versions/d9223372036854775809.manifest"),
        ("stray", "stray"),
        ("_indices/stray", "_indices/stray"),
    ],
)
def test_files_are_kept_by_unit(path: str, unit: str) -> None:
    assert TableFile(path, 1, datetime.now(UTC)).unit == unit


def test_deleting_again_is_harmless(graph_root: str) -> None:
    table = present(stage_append(new_table(graph_root), rows([part(1)])))
    doomed = garbage(table.store, [open_table(table.store, LOCATION, EMPTY_VERSION)])
    assert len(doomed) == 3
    delete_files(table.store, LOCATION, doomed[:1])
    delete_files(table.store, LOCATION, ["data/never.lance", *doomed, "data/nor this.lance"])
    delete_files(table.store, LOCATION, doomed)
    delete_files(table.store, LOCATION, [])
    left = {file.unit for file in list_files(table.store, LOCATION)}
    assert left | ONLY_LOCAL == PERMANENT


def test_a_failure_to_delete_is_reported(tmp_path: Path) -> None:
    table = present(stage_append(new_table(tmp_path), rows([part(1)])))
    with pytest.raises(StorageError, match="deleting failed"):
        delete_files(table.store, LOCATION, ["data"])


def sweep_all_but(root: str, version: int) -> None:
    table = open_table(open_store(root), LOCATION, version)
    delete_files(table.store, LOCATION, garbage(table.store, [table]), batch_size=2)


def test_a_sweep_killed_half_way_is_finished_by_the_next(tmp_path: Path) -> None:
    versions = history(str(tmp_path))
    table = versions[7]
    expected = answers(table)
    count = len(garbage(table.store, [table]))
    target = "tests.integration.storage.test_sweep:sweep_all_but"
    outcome = spawn(
        target,
        str(tmp_path),
        table.physical_version,
        env={"OMNIGRAPH_FAILPOINTS": "sweep.after_some=crash"},
    ).wait()
    assert outcome.returncode == -9
    assert len(garbage(table.store, [table])) == count - 2
    assert answers(table) == expected
    with failpoints.arm("sweep.after_some", "error*1"), pytest.raises(StorageError):
        sweep_all_but(str(tmp_path), table.physical_version)
    assert len(garbage(table.store, [table])) == count - 4
    sweep_all_but(str(tmp_path), table.physical_version)
    assert garbage(table.store, [table]) == []
    assert answers(table) == expected
