"""What runs tell of a graph: errors as failures, commits as metadata."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol
from urllib.parse import quote

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.loads.run_records import Published, PublishedTable
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.table_facts import table_facts
from omnigraph_core.errors import DataError, OmnigraphError
from omnigraph_core.history.snapshots import ReadTarget

RUN_TAG: Final = "omnigraph/load"
PREVIEW_ROWS: Final = 5
PROGRESS_SECONDS: Final = 5.0
"""Between two lines in the log of a run that tell how far it is."""
_SHOWN: Final = 120
"""Characters of a value in a preview."""
_LISTED: Final = 20
"""Violations, and conflicts, that the metadata of a check spells out."""


@contextmanager
def failures() -> Iterator[None]:
    """Errors of the engine become failures; only those that may pass are tried again."""
    try:
        yield
    except OmnigraphError as problem:
        metadata: dict[str, Any] = {
            "code": problem.code,
            "details": dg.MetadataValue.json(_plain(problem)),
        }
        if isinstance(problem, DataError) and problem.violations:
            broken = [{**item.to_json(), "place": item.place()} for item in problem.violations]
            metadata |= violation_metadata(broken) | {"violations": sum(problem.counts.values())}
        raise dg.Failure(
            str(problem),
            metadata=metadata,
            allow_retries=problem.retryable,
        ) from problem


class Progress(Protocol):
    """So many rows have passed a step of a write, as the engine tells it."""

    @property
    def step(self) -> str: ...

    @property
    def rows(self) -> int: ...


class ProgressLogger:
    """Hears of the progress of a write, and tells of it now and then."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._rows: dict[str, int] = {}
        self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        self._rows[progress.step] = progress.rows
        if time.monotonic() - self._last >= PROGRESS_SECONDS:
            self._last = time.monotonic()
            self._tell(", ".join(f"{rows:,} rows {step}" for step, rows in self._rows.items()))


def _plain(problem: OmnigraphError) -> Any:
    return json.loads(json.dumps(problem.details(), default=str))


def commit_metadata(config: GraphConfig, published: Published) -> dict[str, Any]:
    """Which commit made something visible."""
    metadata: dict[str, Any] = {
        "manifest_version": published.manifest_version,
        "commit_id": published.commit_id,
    }
    if published.seconds:
        metadata["seconds"] = round(published.seconds, 3)
    if config.server_url is not None:
        address = f"{config.server_url.rstrip('/')}/commits/{quote(published.commit_id)}"
        metadata["commit"] = dg.MetadataValue.url(address)
    return metadata


def table_metadata(
    graph: Omnigraph, config: GraphConfig, published: Published, *, has_previews: bool = True
) -> Iterator[tuple[PublishedTable, dict[str, Any]]]:
    """What became of each table that a publish changed.

    Args:
        has_previews: whether rows are read to be shown: a scan of each table, under a lease.
    """
    snapshot = graph.snapshot_of(ReadTarget(snapshot_id=published.commit_id))
    facts = table_facts(graph, snapshot, [table.table_key for table in published.tables])
    for table in published.tables:
        known = facts[table.table_key]
        preview = _preview(graph, published.commit_id, table.table_key) if has_previews else None
        measured = {"bytes": known.stored_bytes, "index_coverage": known.index_coverage}
        yield (
            table,
            {
                "dagster/row_count": table.rows,
                "table_version": table.table_version,
                "fragments": table.fragments,
                **{name: value for name, value in measured.items() if value is not None},
                **commit_metadata(config, published),
                **({} if preview is None else {"preview": dg.MetadataValue.md(preview)}),
            },
        )


def manifest_metadata(config: GraphConfig, published: Published) -> dict[str, Any]:
    return {
        **commit_metadata(config, published),
        "tables_changed": len(published.tables),
        "rows": sum(table.rows for table in published.tables),
    }


def spark_metadata(report: Mapping[str, Any] | None) -> dict[str, Any]:
    """The jobs of work on Spark and where the Spark UI shows them; nothing of work in one process.

    `spark_job` is the page of the job that took longest. Jobs name theirs if it is another one:
    behind Spark Connect all have that of their session, and events are kept several times.
    """
    if report is None:
        return {}
    jobs = report["jobs"]
    longest = max(jobs, key=lambda job: float(job["seconds"]))
    links = {"spark_ui": report["ui"], "spark_job": longest["page"]}
    known = [
        {name: value for name, value in job.items() if value not in (None, longest["page"])}
        for job in jobs
    ]
    return {
        **{name: dg.MetadataValue.url(link) for name, link in links.items() if link is not None},
        "spark_jobs": dg.MetadataValue.json(known),
    }


def _preview(graph: Omnigraph, commit_id: str, table_key: str) -> str:
    """The first rows of a table as records, as far as the first piece of an export has them."""
    pieces = graph.export_jsonl(ReadTarget(snapshot_id=commit_id), table_keys=[table_key])
    lines = next(iter(pieces), b"").splitlines()[:PREVIEW_ROWS]
    shown = [json.dumps(_shortened(json.loads(line)), ensure_ascii=False) for line in lines]
    return "\n".join(["```json", *shown, "```"]) if shown else "no rows"


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return value if len(value) <= 4 else [*value[:3], f"… {len(value)} in all"]
    if isinstance(value, str) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]}…"
    return value


def violation_metadata(violations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The rows that break a rule, as a table."""
    names = ("rule", "place", "id", "property", "message")
    rows = [{name: item.get(name) or "" for name in names} for item in violations[:_LISTED]]
    return {"violations": len(violations), **_table("violating_rows", rows)}


def conflict_metadata(
    conflicts: Sequence[Mapping[str, Any]], source: str, into: str
) -> dict[str, Any]:
    """What keeps a branch from being merged, as a table: a row for each conflict."""
    rows = [
        {
            "kind": item["kind"],
            "type": item["table_key"],
            "id": item["row_id"] or "",
            "base": _side(item, "base"),
            f"on {into}": _side(item, "ours"),
            f"on {source}": _side(item, "theirs"),
            "message": item["message"],
        }
        for item in conflicts[:_LISTED]
    ]
    about = {"source": source, "into": into, "conflicts": len(conflicts)}
    return {**about, **_table("conflicting_rows", rows)}


def _side(conflict: Mapping[str, Any], side: str) -> str:
    """The values of a side that are in conflict; empty where the conflict is not one of rows."""
    if side not in conflict:
        return ""
    row = conflict[side]
    if row is None:
        return "no such row"
    names = conflict.get("properties") or tuple(row)
    return ", ".join(
        f"{name}: {json.dumps(_shortened(row[name]), ensure_ascii=False, default=str)}"
        for name in names
        if name in row
    )


def _table(name: str, rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Rows of the same columns under a name; nothing if there are none."""
    if not rows:
        return {}
    schema = dg.TableSchema(columns=[dg.TableColumn(column, "string") for column in rows[0]])
    records = [dg.TableRecord(row) for row in rows]
    return {name: dg.MetadataValue.table(records, schema=schema)}
