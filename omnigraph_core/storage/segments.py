"""One index segment over some fragments of a table: files are written, no version is made.

A request and fragments come in; the segment goes out as bytes that any process may carry to the
one that commits, or None where nothing can be indexed yet: an index that is pending is normal,
since searches read what it does not cover.
"""

from __future__ import annotations

import dataclasses
import pickle
import re
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from lance.bitmap import Bitmap
from lance.indices import IndicesBuilder

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.failpoints import declare
from omnigraph_core.job_report import count_written
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.fragments import current_fragments, layout
from omnigraph_core.storage.translate import LIBRARY_ERRORS, brief, storage_error, translated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from lance.dataset import Index

    from omnigraph_core.storage.dataset import Table

_BUILT: Final = declare("index.after_build", "an index segment is built, no version refers to it")


class SegmentKind(StrEnum):
    """How a column is indexed, in Lance's spelling."""

    BTREE = "BTREE"
    BITMAP = "BITMAP"
    LABEL_LIST = "LABEL_LIST"
    NGRAM = "NGRAM"
    INVERTED = "INVERTED"
    IVF_FLAT = "IVF_FLAT"
    IVF_PQ = "IVF_PQ"
    IVF_HNSW_SQ = "IVF_HNSW_SQ"

    @property
    def is_vector(self) -> bool:
        return self in _PARTITION_ROWS


class Metric(StrEnum):
    """How far two vectors are apart. It must be given when searching, too."""

    COSINE = "cosine"
    L2 = "l2"
    DOT = "dot"


UNINDEXABLE: Final = frozenset(
    {
        "flat",
        "row_id",
        "__pq_code",
        "__sq_code",
        "_rabit_codes",
        "__ivf_part_id",
        "__centroid_dist",
        "_distance",
        "_rowid",
        "_rowaddr",
    }
)
"""Names Lance gives to columns of its own inside vector indexes: building one over a column of such
a name fails, some by ending the thread. Vectors of these names are searched without an index."""


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """An index to have on a column; `metric` goes with the vector kinds and with no other."""

    column: str
    kind: SegmentKind
    name: str
    metric: Metric | None = None

    def __post_init__(self) -> None:
        if (self.metric is None) == self.kind.is_vector:
            raise InvariantBroken(f"index `{self.name}` has a metric exactly if it is a vector's")


TEXT_OPTIONS: Final[Mapping[str, object]] = {
    "base_tokenizer": "simple",  # words are split at blanks and punctuation
    "language": "English",  # of stems and stop words
    "max_token_length": 40,  # words of 40 bytes or more are left out
    "lower_case": True,
    "stem": True,  # "bolts" is found as "bolt"
    "remove_stop_words": True,  # "the" finds nothing
    "ascii_folding": True,  # "Köln" is found as "koln"
    "with_position": True,  # phrases can be looked for
}
"""How text is cut into words, for indexing and therefore for searching."""

_PARTITION_ROWS: Final = {
    SegmentKind.IVF_FLAT: 4_096,
    SegmentKind.IVF_PQ: 8_192,
    SegmentKind.IVF_HNSW_SQ: 1_048_576,  # the graph inside a partition does the work
}
_MIN_PQ_VECTORS: Final = 256
"""A product quantizer learns that many codes and needs a vector for each."""

_MIN_SAMPLE: Final = 256
"""Vectors that are looked at to train one partition."""

MERGEABLE: Final = frozenset(
    {
        SegmentKind.BTREE,
        SegmentKind.BITMAP,
        SegmentKind.LABEL_LIST,
        SegmentKind.INVERTED,
        SegmentKind.IVF_FLAT,
    }
)
"""Kinds whose parts make the same segment as if it were built at once; of others each part has
learnt something of its own."""

_SUB_VECTOR_SIZES: Final = (16, 8, 4, 2, 1)
_UNTRAINABLE: Final = re.compile(r"cannot train|not enough rows to train", re.I)


@dataclass(frozen=True, slots=True)
class Segment:
    """What is carried as bytes: Lance's description, and what the segment was built on."""

    index: Index
    layout: str
    files: Mapping[int, tuple[str, ...]]
    begun_at: float


def build_segment(
    table: Table, request: IndexRequest, fragment_ids: Collection[int]
) -> bytes | None:
    """Index some fragments; None when they hold nothing an index can be trained on.

    Raises:
        InvariantBroken: the column is not there, or not of a type that kind of index can hold.
    """
    begun_at = time.time()
    _check_column(table, request)
    # Lance takes the handle for itself while it indexes: readers of a shared one would fail.
    table = open_table(table.store, table.location, table.physical_version)
    build = _build_vectors if request.kind.is_vector else _build_values
    built = build(table, request, sorted(fragment_ids))
    if built is None:
        return None
    _count_files(built)
    _BUILT.hit()
    files = _files(table, built.fragment_ids)
    return pickle.dumps(Segment(built, layout(table), files, begun_at))


def train_model(
    table: Table, request: IndexRequest, fragment_ids: Collection[int]
) -> pa.Array | None:
    """The centroids that all parts of a vector index share; None if they cannot be trained."""
    _check_column(table, request)
    if request.column in UNINDEXABLE:
        return None
    chosen = sorted(fragment_ids)
    count = _count_vectors(table, request, chosen)
    if count < _MIN_SAMPLE:
        return None
    partitions = max(1, count // _PARTITION_ROWS[request.kind])
    try:
        builder = IndicesBuilder(table.dataset, request.column)
        model = builder.train_ivf(partitions, distance_type=request.metric, fragment_ids=chosen)
    except LIBRARY_ERRORS as problem:
        if _UNTRAINABLE.search(brief(problem)):
            return None
        raise storage_error(problem, f"training index `{request.name}`", table.uri) from problem
    return model.centroids


def build_part(
    table: Table, request: IndexRequest, fragment_ids: Collection[int], model: pa.Array | None
) -> bytes:
    """A part of a segment over some of its fragments, for `merge_parts`.

    Args:
        model: of `train_model`, for vectors.
    """
    _check_column(table, request)
    table = open_table(table.store, table.location, table.physical_version)
    options: dict[str, Any] = dict(TEXT_OPTIONS) if request.kind is SegmentKind.INVERTED else {}
    if model is not None:
        options = {
            "metric": request.metric,
            "num_partitions": len(model),
            "ivf_centroids": model,
        }
    with translated(f"building index `{request.name}`", table.uri):
        built = _create(table, request, sorted(fragment_ids), **options)
    _count_files(built)
    return pickle.dumps(_dated(built, table))


def merge_parts(
    table: Table, request: IndexRequest, fragment_ids: Collection[int], parts: Iterable[bytes]
) -> bytes:
    """One segment of parts that were built on this very version, as `build_segment` makes it.

    Args:
        fragment_ids: those of all parts; one without anything to index is covered all the same.
    """
    begun_at = time.time()
    given = [pickle.loads(part) for part in parts]
    with translated(f"merging index `{request.name}`", table.uri):
        merged = table.dataset.merge_existing_index_segments(given)
    _count_files(merged)
    _BUILT.hit()
    whole = dataclasses.replace(merged, fragment_ids=Bitmap(fragment_ids))
    return pickle.dumps(Segment(whole, layout(table), _files(table, fragment_ids), begun_at))


def load_segment(content: bytes) -> Segment:
    """The segment a process of ours has built."""
    segment = pickle.loads(content)
    if not isinstance(segment, Segment):
        raise InvariantBroken("an index segment comes from `build_segment`")
    return segment


def _check_column(table: Table, request: IndexRequest) -> None:
    if request.column not in table.schema.names:
        raise _unfit(table, request)
    type = table.schema.field(request.column).type
    if request.kind.is_vector != pa.types.is_fixed_size_list(type):
        raise _unfit(table, request)


def _unfit(table: Table, request: IndexRequest) -> InvariantBroken:
    where = f"`{request.column}` of `{table.location}`"
    return InvariantBroken(f"{where} can have an index of kind {request.kind}")


def _build_values(table: Table, request: IndexRequest, fragment_ids: list[int]) -> Index:
    is_text = request.kind is SegmentKind.INVERTED
    with translated(f"building index `{request.name}`", table.uri):
        built = _create(table, request, fragment_ids, **(TEXT_OPTIONS if is_text else {}))
        if not is_text:
            return built
        # The files of a text segment are in parts until merged: unmerged, every search fails.
        # Merging compares version numbers, which mean nothing on detached versions.
        return table.dataset.merge_existing_index_segments([_dated(built, table)])


def _count_files(built: Index) -> None:
    """Count the files of an index, for reports; it has no rows of its own."""
    files = built.files or ()
    count_written(0, sum(file.size_bytes for file in files), len(files))


def _dated(built: Index, table: Table) -> Index:
    return dataclasses.replace(built, dataset_version=table.physical_version)


def _files(table: Table, fragment_ids: Collection[int]) -> dict[int, tuple[str, ...]]:
    return {
        fragment.id: tuple(file.path for file in fragment.files)
        for fragment in current_fragments(table)
        if fragment.id in fragment_ids
    }


def _build_vectors(table: Table, request: IndexRequest, fragment_ids: list[int]) -> Index | None:
    """Each way in turn until one can be trained; the last one needs a single vector."""
    if request.column in UNINDEXABLE:
        return None
    for options in _vector_options(table, request, fragment_ids):
        try:
            return _create(table, request, fragment_ids, metric=request.metric, **options)
        except LIBRARY_ERRORS as problem:
            if not _UNTRAINABLE.search(brief(problem)):
                doing = f"building index `{request.name}`"
                raise storage_error(problem, doing, table.uri) from problem
    return None


def _vector_options(
    table: Table, request: IndexRequest, fragment_ids: list[int]
) -> Iterator[dict[str, Any]]:
    count = _count_vectors(table, request, fragment_ids)
    if not count:
        return
    partitions = max(1, count // _PARTITION_ROWS[request.kind])
    if request.kind is not SegmentKind.IVF_PQ:
        yield {"index_type": request.kind, "num_partitions": partitions}
    elif count >= _MIN_PQ_VECTORS:
        width = table.schema.field(request.column).type.list_size
        sub_vectors = next(width // size for size in _SUB_VECTOR_SIZES if width % size == 0)
        yield {
            "index_type": request.kind,
            "num_partitions": partitions,
            "num_sub_vectors": sub_vectors,
        }
    yield {"index_type": SegmentKind.IVF_FLAT, "num_partitions": 1}


def _count_vectors(table: Table, request: IndexRequest, fragment_ids: list[int]) -> int:
    with translated("counting vectors", table.uri):
        fragments = [table.dataset.get_fragment(item) for item in fragment_ids]
        present = f"`{request.column}` IS NOT NULL"
        return sum(item.count_rows(present) for item in fragments if item is not None)


def _create(table: Table, request: IndexRequest, fragment_ids: list[int], **options: Any) -> Index:
    index_type = options.pop("index_type", request.kind)
    try:
        return table.dataset.create_index_uncommitted(
            request.column,
            str(index_type),
            name=request.name,
            replace=True,  # another segment of that name may exist; nothing is removed by this
            fragment_ids=fragment_ids,
            storage_options=table.store.options,
            **options,
        )
    except TypeError as problem:
        raise _unfit(table, request) from problem
