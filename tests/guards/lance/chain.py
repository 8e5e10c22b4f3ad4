"""The ways this project writes a Lance table, as plain as can be: one detached commit per step.

Every function takes a dataset opened at a version and returns the dataset of the next one; the
linear versions of the table stay as they were. The tripwires examine Lance through these.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import lance
import pyarrow as pa
from lance.dataset import Index, LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments
from lance.optimize import Compaction

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FIRST_DETACHED: Final = 2**63
SKUS: Final = pa.schema([pa.field("id", pa.string(), nullable=False), ("count", pa.int64())])


def skus(*ids: str, count: int = 0) -> pa.Table:
    counts = pa.array([count] * len(ids), pa.int64())
    return pa.table([pa.array(ids, pa.string()), counts], schema=SKUS)


def ids_of(dataset: LanceDataset) -> list[str]:
    return sorted(dataset.to_table(columns=["id"])["id"].to_pylist())


def create(path: Path | str, schema: pa.Schema = SKUS) -> LanceDataset:
    """A table as it begins: empty, linear version 1."""
    return lance.write_dataset(schema.empty_table(), str(path), mode="create")


def commit(dataset: LanceDataset, operation: LanceOperation.BaseOperation) -> LanceDataset:
    return LanceDataset.commit(dataset, Transaction(dataset.version, operation), detached=True)


def append(dataset: LanceDataset, rows: pa.Table) -> LanceDataset:
    fragments = write_fragments(rows, dataset, mode="append")
    return commit(dataset, LanceOperation.Append(fragments))


def upsert(dataset: LanceDataset, rows: pa.Table) -> LanceDataset:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    transaction, _ = merge.execute_uncommitted(rows)
    return LanceDataset.commit(dataset, transaction, detached=True)


def delete(dataset: LanceDataset, ids: Sequence[str]) -> LanceDataset:
    keys = pa.table({"id": pa.array(ids, pa.string())})
    transaction, _ = dataset.merge_insert("id").when_matched_delete().execute_uncommitted(keys)
    return LanceDataset.commit(dataset, transaction, detached=True)


def overwrite(dataset: LanceDataset, rows: pa.Table) -> LanceDataset:
    fragments = write_fragments(rows, dataset, mode="overwrite")
    return commit(dataset, LanceOperation.Overwrite(dataset.lance_schema, fragments))


def compact(dataset: LanceDataset) -> LanceDataset:
    """Rewritten fragments get fresh ids: what Lance's own commit of a compaction would do."""
    last = max(fragment.fragment_id for fragment in dataset.get_fragments())
    groups = []
    for task in Compaction.plan(dataset, {"target_rows_per_fragment": 1_000_000}).tasks:
        done = task.execute(dataset)
        fresh = [
            dataclasses.replace(fragment, id=last + number)
            for number, fragment in enumerate(done.new_fragments, start=1)
        ]
        last += len(fresh)
        groups.append(LanceOperation.RewriteGroup(list(done.original_fragments), fresh))
    return commit(dataset, LanceOperation.Rewrite(groups, []))


def segment(
    dataset: LanceDataset, column: str, kind: str, fragments: Sequence[int], **options: Any
) -> Index:
    """A segment over some fragments. Text segments need a second step before they can be read."""
    built = dataset.create_index_uncommitted(
        column, kind, name=f"{column}_index", replace=True, fragment_ids=list(fragments), **options
    )
    return dataset.merge_existing_index_segments([built]) if kind == "INVERTED" else built


def index(
    dataset: LanceDataset, column: str, kind: str, fragments: Sequence[int], **options: Any
) -> LanceDataset:
    """Add a segment beside those there are."""
    built = segment(dataset, column, kind, fragments, **options)
    return commit(dataset, LanceOperation.CreateIndex([built], []))


def reindex(dataset: LanceDataset, column: str, kind: str, **options: Any) -> LanceDataset:
    """One segment over all fragments in place of those there are."""
    removed = segments(dataset, column)
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    built = segment(dataset, column, kind, fragments, **options)
    return commit(dataset, LanceOperation.CreateIndex([built], removed))


def segments(dataset: LanceDataset, column: str) -> list[Index]:
    """The segments of a column's index, as far as a commit needs to know them to remove them."""
    return [
        Index(
            uuid=part.uuid,
            name=described.name,
            fields=described.fields,
            dataset_version=part.dataset_version_at_last_update,
            fragment_ids=part.fragment_ids,
            index_version=part.index_version,
        )
        for described in dataset.describe_indices()
        if described.name == f"{column}_index"
        for part in described.segments
    ]


def uncovered(dataset: LanceDataset, column: str) -> list[int]:
    """Fragments that no segment of a column's index covers."""
    covered = {number for part in segments(dataset, column) for number in part.fragment_ids}
    fragments = {fragment.fragment_id for fragment in dataset.get_fragments()}
    return sorted(fragments - covered)
