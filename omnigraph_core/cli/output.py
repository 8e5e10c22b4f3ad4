"""How commands print: one JSON document, or lines for people."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TextIO

import typer

from omnigraph_core import settings
from omnigraph_core.cli.files import replacing
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from omnigraph_core.diff.model import ChangeStats
    from omnigraph_core.job_report import SparkResult, SparkResults

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_UNSEEN: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    ord("\r"): r"\r",
    ord("\t"): "\t",
    ord("\n"): "\n",
    0x2028: r"\u2028",
    0x2029: r"\u2029",
}
"""What a terminal obeys, as it is written in JSON; all but tabs and ends of lines."""
_SIGN_COLOURS: Final = {"+ ": "green", "~ ": "yellow", "- ": "red"}


def print_json(document: object) -> None:
    """One document: two-space indent, keys as given, text unescaped."""
    typer.echo(_json(document))


def _json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=not has_unicode())


def has_unicode() -> bool:
    """Whether whatever reads the output can have every character."""
    return ((sys.stdout and sys.stdout.encoding) or "").lower().startswith("utf")


def print_json_list(document: Mapping[str, object], name: str, items: Iterable[object]) -> None:
    """One document that ends with a list; its items are written as they come."""
    opening, _, closing = _json({**document, name: []}).rpartition("[]")
    typer.echo(f"{opening}[", nl=False)
    before, after = "\n    ", ""
    for item in items:
        text = _json(item).replace("\n", "\n    ")
        typer.echo(f"{before}{text}", nl=False)
        before, after = ",\n    ", "\n  "
    typer.echo(f"{after}]{closing}")


def spark_lines(result: SparkResult | SparkResults[Any]) -> Iterator[str]:
    """What the jobs of Spark wrote, all together, and what Spark wrote to its disks for it."""
    if result.spark is None:
        return
    jobs = result.spark["jobs"]
    rows, files, size = (sum(job[name] for job in jobs) for name in ("rows", "files", "bytes"))
    spilled = sum(job["spilled_bytes"] or 0 for job in jobs)
    seconds = sum(job["seconds"] for job in jobs)
    yield (
        f"spark: {count(len(jobs), 'job')} in {seconds:.1f} s, {count(rows, 'row')} in "
        f"{count(files, 'file')} of {size:,} bytes, {spilled:,} bytes spilled"
    )


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(visible(line))


def visible(text: str) -> str:
    """A text, maybe of several lines, in which a terminal finds nothing to obey.

    >>> visible("bolt\\x1b[31m\\nnut")
    'bolt\\\\x1b[31m\\nnut'
    """
    return text if text.isprintable() else text.translate(_UNSEEN)


def print_changes(lines: Iterable[str]) -> None:
    """Lines that say what is added, changed and removed, each in its colour on a terminal."""
    if not is_coloured(sys.stdout):
        print_lines(lines)
        return
    for line in lines:
        typer.secho(visible(line), fg=_SIGN_COLOURS.get(line[:2]))


def is_coloured(stream: TextIO | None) -> bool:
    """Whether what is written there may have colours."""
    return stream is not None and stream.isatty() and not settings.NO_COLOR.read()


def print_text(text: str, path: Path | None = None) -> None:
    """A text as it is, in UTF-8, to a file if one is named.

    Raises:
        ConfigError: the file cannot be written.
    """
    if path is None:
        write_chunks([text.encode()])
        return
    with replacing(path) as file:
        file.write(text.encode())


def write_chunks(chunks: Iterable[bytes]) -> None:
    """Many rows, as they come.

    Raises:
        ConfigError: there is nowhere to write to.
    """
    if sys.stdout is None:
        raise ConfigError("cannot write the output: it is closed")
    sys.stdout.buffer.writelines(chunks)
    sys.stdout.buffer.flush()


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "node"), count(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def moment(microseconds: int) -> str:
    """A time since the epoch, to the microsecond: `--at` with it finds what was made then.

    >>> moment(0)
    '1970-01-01T00:00:00.000000Z'
    """
    return f"{_EPOCH + timedelta(microseconds=microseconds):%Y-%m-%dT%H:%M:%S.%fZ}"


def key_values(members: Mapping[str, object]) -> Iterator[str]:
    """A line for each member that has a value.

    >>> list(key_values({"run_id": "01R", "actor_id": None}))
    ['run_id: 01R']
    """
    return (f"{name}: {value}" for name, value in members.items() if value is not None)


def with_actor(line: str, actor: str | None) -> str:
    """
    >>> with_actor("01C version=2", "ada"), with_actor("01C version=2", None)
    ('01C version=2 actor=ada', '01C version=2')
    """
    return line if actor is None else f"{line} actor={actor}"


def row_counts(inserted: int, updated: int, deleted: int) -> str:
    """
    >>> row_counts(2, 0, 1)
    '+2 ~0 -1'
    """
    return f"+{inserted} ~{updated} -{deleted}"


def change_lines(stats: ChangeStats) -> Iterator[str]:
    """How much differs: schema, then tables."""
    yield from (f"schema: {step}" for step in stats.schema_steps)
    for table in stats.tables:
        counts = row_counts(table.inserts, table.updates, table.deletes)
        yield f"{table.table_key} {counts}"
    if not stats.tables and not stats.schema_steps:
        yield "no difference"
