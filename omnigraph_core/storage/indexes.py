"""Indexes of a table: which there are, what they cover, and how they catch up.

A table and a request come in, the table with a segment more goes out, or None where the index is
complete or nothing can be indexed yet. Only fragments no segment covers are read, until segments
become too many and one takes the place of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lance.dataset import Index, LanceOperation

from omnigraph_core.errors import InvariantBroken, PreconditionFailed
from omnigraph_core.storage.detached import stage, try_stage
from omnigraph_core.storage.fragments import check_layout, current_fragments
from omnigraph_core.storage.segments import (
    IndexRequest,
    Metric,
    Segment,
    SegmentKind,
    build_segment,
    load_segment,
)
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from lance.lance.indices import IndexDescription

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.detached import Operation

MAX_SEGMENTS: Final = 4
"""Every search asks every segment: beyond this one segment replaces them all."""


@dataclass(frozen=True, slots=True)
class IndexCoverage:
    """What an index covers of the table's version; `kind` is that of its oldest segment."""

    name: str
    columns: tuple[str, ...]
    kind: SegmentKind
    metric: Metric | None
    segment_count: int
    indexed_fragments: tuple[int, ...]
    unindexed_fragments: tuple[int, ...]
    unindexed_rows: int


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The fragments a request needs indexed, and whether their segments replace all there are."""

    fragment_ids: tuple[int, ...]
    is_rebuild: bool


def index_coverage(table: Table) -> tuple[IndexCoverage, ...]:
    """Every index of the table, by name: reads metadata only."""
    rows = {fragment.id: fragment.num_rows for fragment in current_fragments(table)}
    found = [_coverage(description, rows) for description in _descriptions(table)]
    return tuple(sorted(found, key=lambda coverage: coverage.name))


def plan_index(
    table: Table, request: IndexRequest, *, fragment_ids: Collection[int] | None = None
) -> IndexPlan | None:
    """What building the requested index takes; None when it is complete or there are no rows.

    Args:
        fragment_ids: the only ones to index now, unless all have to be.

    Raises:
        InvariantBroken: the name is that of an index on another column.
    """
    existing = {coverage.name: coverage for coverage in index_coverage(table)}.get(request.name)
    everything = tuple(fragment.id for fragment in current_fragments(table))
    if existing is None:
        pending, is_rebuild = everything, False
    elif not _serves(existing, request):
        pending, is_rebuild = everything, True
    else:
        pending = existing.unindexed_fragments
        is_rebuild = bool(pending) and existing.segment_count >= MAX_SEGMENTS
    if is_rebuild:
        pending = everything
    elif fragment_ids is not None:
        pending = tuple(item for item in pending if item in fragment_ids)
    return IndexPlan(pending, is_rebuild) if pending else None


def stage_index(
    table: Table, request: IndexRequest, *, fragment_ids: Collection[int] | None = None
) -> Table | None:
    """Index what the request does not cover yet; None when that is nothing, or not possible yet.

    Args:
        fragment_ids: the only ones to index now, unless all have to be.
    """

    def prepare() -> Operation | None:
        plan = plan_index(table, request, fragment_ids=fragment_ids)
        if plan is None:
            return None
        content = build_segment(table, request, plan.fragment_ids)
        if content is None:
            return None
        return _create_operation(table, [content], [request.name] if plan.is_rebuild else [])

    return try_stage(table, "indexing", prepare)


def stage_segments(
    table: Table, segments: Iterable[bytes], *, replaced_names: Collection[str] = ()
) -> Table | None:
    """Add segments built elsewhere, in the place of all others of the named indexes.

    The table may have moved on since they were built: the fragments they cover must be there with
    the same files. Rows deleted since do not matter. None when there are no segments.

    Raises:
        PreconditionFailed: columns, or fragments they cover, have changed since.
    """
    given = list(segments)
    if not given:
        return None
    dated = table.since(min(load_segment(content).begun_at for content in given))
    return stage(dated, "indexing", lambda: _create_operation(table, given, replaced_names))


def stage_drop_index(table: Table, name: str) -> Table | None:
    """Take an index away; None when there is none of that name."""

    def prepare() -> Operation | None:
        removed = [
            index
            for description in _descriptions(table)
            if description.name == name
            for index in _segments(description)
        ]
        return LanceOperation.CreateIndex([], removed) if removed else None

    return try_stage(table, "dropping an index", prepare)


def _descriptions(table: Table) -> list[IndexDescription]:
    with translated("reading the indexes", table.uri):
        return table.dataset.describe_indices()


def _coverage(description: IndexDescription, rows: dict[int, int]) -> IndexCoverage:
    """Segments still name fragments that are gone: only those that are there count."""
    covered = [set(segment.fragment_ids) & set(rows) for segment in description.segments]
    indexed = set().union(*covered)
    unindexed = [fragment_id for fragment_id in rows if fragment_id not in indexed]
    metric = description.details.get("metric_type")
    return IndexCoverage(
        name=description.name,
        columns=tuple(description.field_names),
        kind=_kind(description.index_type),
        metric=None if metric is None else Metric(metric.lower()),
        segment_count=sum(1 for fragments in covered if fragments),
        indexed_fragments=tuple(sorted(indexed)),
        unindexed_fragments=tuple(unindexed),
        unindexed_rows=sum(rows[fragment_id] for fragment_id in unindexed),
    )


def _kind(index_type: str) -> SegmentKind:
    """Lance reports `BTree` and `LabelList` for what it is asked for as BTREE and LABEL_LIST."""
    spelling = index_type.upper()
    for kind in SegmentKind:
        if spelling in (kind.value, kind.value.replace("_", "")):
            return kind
    raise InvariantBroken(f"index type {index_type} is one we build")


def _serves(existing: IndexCoverage, request: IndexRequest) -> bool:
    """A vector index may hold segments of several kinds: small ones fall back to a plain one."""
    if existing.columns != (request.column,):
        raise InvariantBroken(f"index `{request.name}` stays on its column {existing.columns[0]}")
    if existing.metric != request.metric:
        return False
    return existing.kind is request.kind or (existing.kind.is_vector and request.kind.is_vector)


def _create_operation(
    table: Table, contents: Iterable[bytes], replaced_names: Collection[str]
) -> Operation:
    """Segments of the same indexes that cover nothing any more go with the commit."""
    new = [_checked(table, load_segment(content)) for content in contents]
    present = {fragment.id for fragment in current_fragments(table)}
    touched = {index.name for index in new}
    removed = [
        index
        for description in _descriptions(table)
        for index in _segments(description)
        if index.name in replaced_names
        or (index.name in touched and present.isdisjoint(index.fragment_ids))
    ]
    return LanceOperation.CreateIndex(new, removed)


def _checked(table: Table, segment: Segment) -> Index:
    check_layout(table, segment.layout)
    present = {
        fragment.id: tuple(file.path for file in fragment.files)
        for fragment in current_fragments(table)
    }
    for fragment_id, files in segment.files.items():
        if present.get(fragment_id) != files:
            member = f"fragment {fragment_id} of `{table.location}`"
            raise PreconditionFailed(member, "as it was indexed", "changed or gone")
    return segment.index


def _segments(description: IndexDescription) -> list[Index]:
    """What a commit needs to know of segments it removes."""
    return [
        Index(
            uuid=segment.uuid,
            name=description.name,
            fields=description.fields,
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
        )
        for segment in description.segments
    ]
