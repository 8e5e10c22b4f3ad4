"""Indexes by many tasks: parts of a segment over groups of fragments, joined to one segment.

Three rounds of tasks for all tables and indexes together: vectors are clustered once for all parts
of an index, the parts are built, and parts of one index are merged. What comes out is what one
process would have built; small tables, and kinds whose parts do not make the same whole, are one
task from the start. The driver stages one version per table.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.job_report import table_facts
from omnigraph_core.storage.fragments import current_fragments
from omnigraph_core.storage.indexes import plan_index, stage_segments
from omnigraph_core.storage.places import TablePlace
from omnigraph_core.storage.segments import (
    MERGEABLE,
    IndexRequest,
    build_part,
    build_segment,
    merge_parts,
    train_model,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.engine.workers import Indexed, Wanted
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table

PART_ROWS: Final = 1 << 20
"""Rows that one task indexes, or holds."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An index over fragments of a table. `model` is what vectors are clustered by."""

    place: TablePlace
    request: IndexRequest
    fragment_ids: tuple[int, ...]
    model: Any = None


@dataclass(frozen=True, slots=True)
class Merging:
    """Parts of one index, as `build_part` made them."""

    piece: Piece
    parts: tuple[bytes, ...]


def train(piece: Piece) -> Any:
    """The model of a vector index; None if it cannot be trained."""
    return train_model(piece.place.open(), piece.request, piece.fragment_ids)


def build_whole(piece: Piece) -> bytes | None:
    """A segment at once; None if there is nothing to index yet."""
    return build_segment(piece.place.open(), piece.request, piece.fragment_ids)


def build_one_part(piece: Piece) -> bytes:
    return build_part(piece.place.open(), piece.request, piece.fragment_ids, piece.model)


def build(work: tuple[Piece, bool]) -> bytes | None:
    """A segment, or a part of one."""
    piece, is_part = work
    return build_one_part(piece) if is_part else build_whole(piece)


def merge(work: Merging) -> bytes:
    """One segment of its parts."""
    piece = work.piece
    return merge_parts(piece.place.open(), piece.request, piece.fragment_ids, work.parts)


@dataclass(frozen=True, slots=True)
class _Job:
    """An index that one of the tables lacks."""

    table: int
    piece: Piece
    is_rebuild: bool
    groups: tuple[tuple[int, ...], ...]

    @property
    def is_shared(self) -> bool:
        """Whether several tasks build it."""
        return len(self.groups) > 1


def index_tables(
    runner: Runner, wanted: Sequence[Wanted], *, part_rows: int = PART_ROWS
) -> list[Indexed]:
    """Each table with its indexes completed, and the names of those that were not complete.

    Raises:
        JobFailed: a task could not be carried out.
    """
    jobs = [
        job for number in range(len(wanted)) for job in _jobs(number, wanted[number], part_rows)
    ]
    segments = _segments(runner, jobs)
    built = [(job, content) for job, content in zip(jobs, segments, strict=True) if content]
    return [
        _staged(table, [(job, content) for job, content in built if job.table == number])
        for number, (table, _) in enumerate(wanted)
    ]


def _jobs(number: int, wanted: Wanted, part_rows: int) -> list[_Job]:
    table, requests = wanted
    place = TablePlace.of(table)
    rows = {fragment.id: fragment.num_rows for fragment in current_fragments(table)}
    jobs = []
    for request in requests:
        plan = plan_index(table, request)
        if plan is not None:
            ids = plan.fragment_ids
            groups = _groups(ids, rows, part_rows) if request.kind in MERGEABLE else (ids,)
            jobs.append(_Job(number, Piece(place, request, ids), plan.is_rebuild, groups))
    return jobs


def _groups(
    ids: tuple[int, ...], rows: dict[int, int], part_rows: int
) -> tuple[tuple[int, ...], ...]:
    """Fragments in groups of at most so many rows, or one fragment."""
    groups: list[list[int]] = []
    held = 0
    for id in ids:
        if not groups or held + rows[id] > part_rows:
            groups.append([])
            held = 0
        groups[-1].append(id)
        held += rows[id]
    return tuple(map(tuple, groups))


def _segments(runner: Runner, jobs: Sequence[_Job]) -> list[bytes | None]:
    """The segment of each job; None if there is nothing to index yet."""
    models = _models(runner, jobs)
    tasks: list[tuple[int, Piece, bool]] = []
    for number, job in enumerate(jobs):
        piece, model = job.piece, models.get(number)
        if job.is_shared and (model is not None or not piece.request.kind.is_vector):
            parts = [Piece(piece.place, piece.request, ids, model) for ids in job.groups]
            tasks += [(number, part, True) for part in parts]
        else:
            tasks.append((number, piece, False))
    with table_facts(piece.place.location for _, piece, _ in tasks):
        results = runner.map(build, [(piece, is_part) for _, piece, is_part in tasks], name="index")
    found: list[bytes | None] = [None] * len(jobs)
    parts_of: dict[int, list[bytes]] = defaultdict(list)
    for (number, _, is_part), result in zip(tasks, results, strict=True):
        if not is_part:
            found[number] = result
        elif result is not None:
            parts_of[number].append(result)
    merging = [Merging(jobs[number].piece, tuple(parts)) for number, parts in parts_of.items()]
    with table_facts(work.piece.place.location for work in merging):
        merged = runner.map(merge, merging, name="merge indexes")
    for number, content in zip(parts_of, merged, strict=True):
        found[number] = content
    return found


def _models(runner: Runner, jobs: Sequence[_Job]) -> dict[int, Any]:
    """What the parts of vector indexes share, by the number of the job."""
    vectors = [
        number
        for number, job in enumerate(jobs)
        if job.is_shared and job.piece.request.kind.is_vector
    ]
    pieces = [jobs[number].piece for number in vectors]
    with table_facts(piece.place.location for piece in pieces):
        models = runner.map(train, pieces, name="train indexes")
    return dict(zip(vectors, models, strict=True))


def _staged(table: Table, built: Sequence[tuple[_Job, bytes]]) -> Indexed:
    replaced = [job.piece.request.name for job, _ in built if job.is_rebuild]
    staged = stage_segments(table, [content for _, content in built], replaced_names=replaced)
    names = tuple(job.piece.request.name for job, _ in built)
    return (table, ()) if staged is None else (staged, names)
