"""Data frames that one process after another stages, and one publishes together with one commit.

    stage_frame     one frame of one type is checked by its columns and written beside the graph
    publish_frames  all rows are checked, and one compare-and-swap makes them visible

A staging has a name and lies in `_scratch/<name>`: rows as Parquet, and a document for each frame.
Nobody sees a row before the publish. A repeated publish returns the result of the first one;
`published_frames` says what a repeat is. Cleanup removes what was given up.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet

from omnigraph_core import failpoints
from omnigraph_core.engine.beyond import AUTO, spark_module
from omnigraph_core.engine.published_frames import (
    PublishedFrames,
    StagedFrame,
    plan_publish,
    published_by_name,
)
from omnigraph_core.engine.type_names import find_type
from omnigraph_core.engine.writes import load_options, load_sources
from omnigraph_core.errors import BranchNotFound, ConfigError, DataError, ObjectNotFound
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.storage.inputs import find_object, is_object_address
from omnigraph_core.storage.objects import put_if_absent, try_get
from omnigraph_core.storage.places import shared_store
from omnigraph_core.storage.scratch import SCRATCH, Scratch
from omnigraph_core.write.convert_values import convert_values
from omnigraph_core.write.digest import content_digest
from omnigraph_core.write.embed import EmbedMode
from omnigraph_core.write.export import exported_columns, iter_by_id
from omnigraph_core.write.export_parquet import portable_type
from omnigraph_core.write.load_model import LoadMode
from omnigraph_core.write.sources import Format, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.storage.inputs import ObjectFile
    from omnigraph_core.write.batches import GraphType
    from omnigraph_core.write.load_model import LoadOptions

_FRAME: Final = "frame"
_PUBLISHED: Final = "published"
_ROWS: Final = "rows"
_AFTER_COMMIT: Final = failpoints.declare(
    "frames.after_commit", "staged frames are published, and the staging does not know it yet"
)


def is_spark_frame(frame: object) -> bool:
    """Whether this is a data frame of Spark; asks without an import of Spark."""
    kind = type(frame)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def stage_frame(
    graph: Omnigraph,
    staging: str,
    type_name: str,
    frame: Any,
    *,
    label: str,
    branch: str = MAIN,
    mode: LoadMode | str = LoadMode.MERGE,
    actor: str | None = None,
) -> StagedFrame:
    """Write the rows of a frame beside the graph, where nobody sees them.

    Args:
        staging: the name under which frames are published together.
        type_name: `Person` or `edge:Knows`.
        frame: an Arrow table, or a data frame of Spark, whose tasks write the rows.

    Raises:
        ConfigError: no such branch or type, or there are no rows to overwrite a type with.
        DataError: columns that the type cannot take; carries all of them.
        PolicyDenied: the actor may not write there.
    """
    is_spark = is_spark_frame(frame)
    schema = spark_module("source.columns").arrow_schema(frame.schema) if is_spark else frame.schema
    options = load_options(branch, mode=mode, actor=actor)
    table_key = _check_target(graph, type_name, schema, options, has_decimals=is_spark)
    scratch = _scratch(graph, staging)
    with job_facts(operation="stage", branch=branch, type=table_key):
        staged = (_stage_spark if is_spark else _stage_table)(scratch, table_key, frame)
    if options.mode is LoadMode.OVERWRITE and not staged["row_count"]:
        raise ConfigError(
            f"{label} has no rows: overwriting with nothing would empty {type_name}",
            hint="delete rows with a mutation, if that is meant",
        )
    about = {"label": label, "branch": branch, "table_key": table_key, **staged}
    name = scratch.put(_FRAME, json.dumps(about).encode())
    return StagedFrame(name, **about)


def publish_frames(
    graph: Omnigraph,
    staging: str,
    frames: Mapping[str, str],
    *,
    branch: str = MAIN,
    mode: LoadMode | str = LoadMode.MERGE,
    embed: EmbedMode | str = EmbedMode.NOW,
    engine: str = AUTO,
    reader: str | None = None,
    actor: str | None = None,
) -> PublishedFrames:
    """Publish staged frames with one commit.

    What the staging has published before is left out, also if the same rows were staged again: by
    frame, or by table if tables are overwritten.

    Args:
        frames: names of frames, each with the label that messages call it by.
        reader: who reads at the commit of this publish from now on (`pin_commit`).

    The other arguments are those of `load`.

    Raises:
        ConfigError: frames that are gone, or are staged for another branch; names all of them.
        DataError: rows break a rule; carries all of them.
        ConflictError: others changed the branch meanwhile.
    """
    scratch = _scratch(graph, staging)
    before = _publishes(scratch, branch)
    done = published_by_name(before)
    staged = _frames(scratch, {n: label for n, label in frames.items() if n not in done}, branch)
    asked = [*(done[name] for name in frames if name in done), *staged]
    plan = plan_publish(asked, before, load_options(branch, mode=mode).mode)
    _check_rows_are_kept([frame for frame in plan.waiting if frame.name in done])
    if not plan.waiting:
        _remove(scratch, plan.repeated)
        if plan.repeats is None:
            raise ConfigError("there is no staged frame to publish")
        return replace(plan.repeats, is_repeat=True)
    facts = ((one.table_key, one.digest) for one in plan.waiting)
    told = [branch, str(mode), str(embed), *facts, plan.replaced]
    key = f"{staging}-{hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]}"
    options = load_options(branch, mode=mode, embed=embed, idempotency_key=key, actor=actor)
    sources = [source for one in plan.waiting for source in _sources(scratch, one)]
    loaded = load_sources(graph, sources, options, engine=engine)
    published = PublishedFrames(
        branch=branch,
        commit_id=None if loaded.commit is None else loaded.commit.graph_commit_id,
        manifest_version=None if loaded.commit is None else loaded.commit.manifest_version,
        rows={table.table_key: table.rows_loaded for table in loaded.tables},
        frames=plan.waiting,
        reader=reader,
        is_repeat=loaded.is_repeat,
        spark=loaded.spark,
    )
    _AFTER_COMMIT.hit()
    # Before the rows go: a publish that dies in between must find either of them.
    scratch.put(_PUBLISHED, json.dumps(asdict(published)).encode())
    _remove(scratch, asked)
    return published


def read_frame(graph: Omnigraph, type_name: str, *, commit: str) -> pa.Table:
    """All rows of a type at a commit, by id; bytes of blobs are left out.

    Raises:
        ConfigError: no such type.
        NotFoundError: no such commit.
    """
    snapshot = graph.snapshot_of(ReadTarget(snapshot_id=commit))
    type = find_type(accepted_catalog(snapshot.schema), type_name)
    columns = [name for name in exported_columns(type) if name not in type.blob_properties]
    table = graph.table(snapshot, type.table_key)
    found = list(iter_by_id(table, columns))
    rows = pa.concat_tables(found) if found else table.schema.empty_table().select(columns)
    fields = [one.with_type(portable_type(one.type)) for one in rows.schema]
    return rows.cast(pa.schema([pa.field(one.name, one.type, one.nullable) for one in fields]))


def read_spark_frame(graph: Omnigraph, session: Any, type_name: str, *, commit: str) -> Any:
    """All rows of a type at a commit as a data frame of Spark; tasks read them.

    Raises:
        ConfigError: no such type.
        NotFoundError: no such commit.
    """
    spark_module("source").register(session)
    options = {"graph": graph.uri, "type": type_name, "commit": commit}
    if graph.actor is not None:
        options["actor"] = graph.actor
    return session.read.format("omnigraph").options(**options).load()


def make_spark_frame(session: Any, rows: pa.Table) -> Any:
    """Rows that this process holds as a data frame of Spark.

    Raises:
        ConfigError: Spark has no type for a column; names all of them.
    """
    return spark_module("source.arrow_frames").frame_of(session, rows)


def read_staged(graph: Omnigraph, staging: str, name: str) -> pa.Table | None:
    """The rows of a staged frame as they were given; None when they are published, or gone."""
    scratch = _scratch(graph, staging)
    try:
        parts = [scratch.read_whole(part) for part in _frame_of(scratch, name).parts]
    except ObjectNotFound:  # a publish removes the parts and the document in any order
        return None
    return pa.concat_tables(
        parquet.read_table(pa.BufferReader(pa.py_buffer(part))) for part in parts
    )


def pin_commit(graph: Omnigraph, staging: str, reader: str, *, branch: str = MAIN) -> str:
    """The commit that all reads of a reader see: of its last publish, or of its first read.

    The first read leaves an object beside the graph, for reads of other processes.

    Raises:
        BranchNotFound: there is none of that name.
    """
    head = graph.snapshot(branch).commit.graph_commit_id
    scratch = _scratch(graph, staging)
    for publish in reversed(_publishes(scratch, branch)):
        if publish.reader == reader and publish.commit_id is not None:
            return publish.commit_id
    name = hashlib.sha256(f"{reader} {branch}".encode()).hexdigest()[:32]
    path = f"{SCRATCH}/{staging}/pin-{name}"
    if put_if_absent(scratch.store, path, head.encode()):
        return head
    pinned = try_get(scratch.store, path)
    return head if pinned is None else pinned.decode()


def _check_target(
    graph: Omnigraph,
    type_name: str,
    schema: pa.Schema,
    options: LoadOptions,
    *,
    has_decimals: bool,
) -> str:
    """The table key of the type; refuses what can be refused before any row is written."""
    problems: list[str] = []
    branch = options.write.branch
    try:
        snapshot = graph.snapshot(branch)
    except BranchNotFound:
        problems.append(
            f"there is no branch `{branch}`; branches there: {', '.join(graph.branch_list())}"
        )
        # The type and the columns are judged all the same, to name every problem at once.
        options = replace(options, write=replace(options.write, branch=MAIN))
        snapshot = graph.snapshot(MAIN)
    catalog = accepted_catalog(snapshot.schema)
    type: GraphType | None = None
    try:
        type = find_type(catalog, type_name)
    except ConfigError as problem:
        nodes, edges = ", ".join(catalog.nodes), ", ".join(f"edge:{name}" for name in catalog.edges)
        problems.append(
            f"{problem.message}; node types: {nodes or 'none'}; edge types: {edges or 'none'}"
        )
    if type is not None:
        nothing = Source(
            schema.empty_table(), Format.ARROW, None, type.table_key, has_decimals=has_decimals
        )
        try:
            load_sources(graph, [nothing], replace(options, is_dry_run=True))
        except DataError as problem:
            if not problems:
                raise
            problems += [item.render() for item in problem.violations] or [problem.message]
    if problems or type is None:
        raise ConfigError("\n".join(problems), hint="nothing was staged")
    return type.table_key


def _stage_table(scratch: Scratch, table_key: str, rows: pa.Table) -> dict[str, Any]:
    digest = content_digest(Source(rows, Format.ARROW, None, table_key)).hex()
    return {"row_count": rows.num_rows, "parts": (_put_rows(scratch, rows),), "digest": digest}


def _put_rows(scratch: Scratch, rows: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    # Parquet keeps the day of a date64, which is how query results hold a DateTime.
    rows = convert_values(rows, _is_moment, lambda values: values.cast(portable_type(pa.date64())))
    parquet.write_table(rows, sink, compression="zstd")
    return scratch.put(_ROWS, bytes(sink.getvalue()))


def _is_moment(kind: pa.DataType) -> bool:
    is_coded = pa.types.is_dictionary(kind)
    return bool(pa.types.is_date64(kind.value_type if is_coded else kind))


def _stage_spark(scratch: Scratch, table_key: str, frame: Any) -> dict[str, Any]:
    written = spark_module("source.frames").write_frame(frame, scratch, is_hashed=True)
    # A sum, so that the same rows in other partitions are known again.
    total = sum(one.row_hash for one in written) & (2**64 - 1)
    parts = tuple(part for one in written for part in one.parts)
    if not parts:
        columns = spark_module("source.columns").arrow_schema(frame.schema)
        parts = (_put_rows(scratch, columns.empty_table()),)
    return {
        "row_count": sum(one.row_count for one in written),
        "parts": parts,
        "digest": hashlib.sha256(f"{table_key}:{total}".encode()).hexdigest(),
        "has_decimals": True,
    }


def _frames(scratch: Scratch, names: Mapping[str, str], branch: str) -> list[StagedFrame]:
    found = {name: _try_frame(scratch, name) for name in names}
    problems = [
        f"{names[name]} is not staged any more" for name, frame in found.items() if frame is None
    ]
    frames = [frame for frame in found.values() if frame is not None]
    problems += [
        f"{frame.label} is staged for the branch `{frame.branch}`, not for `{branch}`"
        for frame in frames
        if frame.branch != branch
    ]
    if problems:
        raise ConfigError("\n".join(problems), hint="stage the frames again, and publish them then")
    return frames


def _check_rows_are_kept(published: list[StagedFrame]) -> None:
    """Refuse to overwrite a table with a part of its rows, because the others are published."""
    if published:
        raise ConfigError(
            "\n".join(
                f"{frame.label} is published already and not staged again, so overwriting "
                f"{frame.table_key} would remove its rows"
                for frame in published
            ),
            hint="stage all frames of the type again, and publish them then",
        )


def _remove(scratch: Scratch, frames: Iterable[StagedFrame]) -> None:
    scratch.remove([name for one in frames for name in (*one.parts, one.name)])


def _try_frame(scratch: Scratch, name: str) -> StagedFrame | None:
    try:
        return _frame_of(scratch, name)
    except ObjectNotFound:
        return None


def _frame_of(scratch: Scratch, name: str) -> StagedFrame:
    return _frame({"name": name, **json.loads(bytes(scratch.read_whole(name)))})


def _frame(about: Mapping[str, Any]) -> StagedFrame:
    return StagedFrame(**{**about, "parts": tuple(about["parts"])})


def _publishes(scratch: Scratch, branch: str) -> list[PublishedFrames]:
    """What the staging has published on a branch, oldest first."""
    names = sorted(scratch.names(f"{_PUBLISHED}-"))
    documents = [json.loads(bytes(scratch.read_whole(name))) for name in names]
    return [
        PublishedFrames(**document | {"frames": tuple(map(_frame, document["frames"]))})
        for document in documents
        if document["branch"] == branch
    ]


def _sources(scratch: Scratch, frame: StagedFrame) -> list[Source]:
    many = len(frame.parts) > 1
    return [
        Source(
            _file("/".join(scratch.address(part))),
            Format.PARQUET,
            f"{frame.label}, part {at}" if many else frame.label,
            frame.table_key,
            digest=b"" if at > 1 else bytes.fromhex(frame.digest),  # of all parts together
            has_decimals=frame.has_decimals,
        )
        for at, part in enumerate(frame.parts, 1)
    ]


def _file(address: str) -> ObjectFile | Path:
    return find_object(address) if is_object_address(address) else Path(address)


def _scratch(graph: Omnigraph, staging: str) -> Scratch:
    return Scratch(shared_store(graph.uri), staging)
