"""`omnigraph optimize`, `cleanup` and `verify`: what keeps a graph fast, small and sound."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph_core.cli.confirm import asked, can_ask
from omnigraph_core.cli.interrupt import Witness, interruptible
from omnigraph_core.cli.options import BranchOption, EngineOption, JsonOption, QuietOption
from omnigraph_core.cli.output import count, print_json, print_lines, spark_lines
from omnigraph_core.cli.progress import busy
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.job_report import spark_member

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.engine.cleanup import CleanupReport
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.engine.optimize import TableOptimizeStats

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PART: Final = re.compile(r"([0-9]+)([smhdw])")
_LONGEST: Final = 10**12
"""Seconds: far beyond any graph, and still a date."""


def parse_duration(text: str) -> timedelta:
    """A time span as options take it: `90`, `30m`, `1h30m`, `2w`.

    >>> parse_duration("1h30m"), parse_duration("90")
    (datetime.timedelta(seconds=5400), datetime.timedelta(seconds=90))

    Raises:
        typer.BadParameter: it is none.
    """
    parts = _PART.findall(text)
    if text.isascii() and text.isdigit():
        seconds = int(text[:20])
    elif parts and "".join(number + unit for number, unit in parts) == text:
        seconds = sum(int(number[:20]) * _SECONDS[unit] for number, unit in parts)
    else:
        raise typer.BadParameter(
            f"{text!r} is no duration: give whole numbers with s, m, h, d or w, as 30m or 1w2d"
        )
    if seconds > _LONGEST:
        raise typer.BadParameter(f"{text!r} is too long")
    return timedelta(seconds=seconds)


InheritedOption = Annotated[
    bool,
    typer.Option(
        "--include-inherited", help="Also the tables that are as another branch made them."
    ),
]
KeepOption = Annotated[
    int | None,
    typer.Option("--keep", metavar="N", min=1, help="Keep the newest N versions of each branch."),
]
OlderThanOption = Annotated[
    str | None,
    typer.Option(
        "--older-than", metavar="DUR", help="Keep versions that are younger: 30m, 12h, 7d, 1w2d."
    ),
]
GraceOption = Annotated[
    str | None,
    typer.Option(
        "--grace",
        metavar="DUR",
        help="Spare what was written or replaced so lately.  [default: 1d]",
    ),
]
BranchesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--branch", metavar="NAME", help="Take versions of this branch alone. May be repeated."
    ),
]
ConfirmOption = Annotated[
    bool,
    typer.Option("--confirm", "--yes", "-y", help="Remove them; without, they are shown first."),
]
VerifyBranchOption = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Branch to check.  [default: all, and tags]"),
]
DeepOption = Annotated[
    bool,
    typer.Option("--deep", help="Check every version that is kept, indexes, and all rows."),
]


@on_graph
def optimize(
    graph: GivenGraph,
    branch: BranchOption = None,
    include_inherited: InheritedOption = False,
    engine: EngineOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Join small files and complete indexes; no row changes.

    There is one commit at most.
    """
    on = graph.branch(branch)
    opened = graph.open()
    witness = Witness(opened, on)
    doing = busy(f"optimizing {on}", is_quiet=quiet)
    with interruptible(lambda: witness.outcome("optimized")), doing:
        tables = opened.optimize(
            branch=on, include_inherited=include_inherited, engine=engine, actor=graph.actor
        )
    if as_json:
        document = [table.to_json() for table in tables]
        facts = {"uri": graph.address, "branch": on}
        print_json({**facts, "tables": document, **spark_member(tables)})
        return
    header = f"optimized {graph.address} branch {on}: {count(len(tables), 'table')}"
    print_lines([header, *map(_table_line, tables), *spark_lines(tables)])


@on_graph
def cleanup(
    graph: GivenGraph,
    keep: KeepOption = None,
    older_than: OlderThanOption = None,
    grace: GraceOption = None,
    branch: BranchesOption = None,
    is_confirmed: ConfirmOption = False,
    engine: EngineOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old versions and the files that nothing needs any more.

    Versions go that are neither among the newest nor young. Heads and tags stay, and merge bases.

    Without --confirm, shows what would go; on a terminal, asks then.
    """
    if keep is None and older_than is None:
        raise typer.BadParameter("give --keep, --older-than or both")
    age = None if older_than is None else parse_duration(older_than)
    span = None if grace is None else parse_duration(grace)
    wanted = Retention(keep, age, span, branch or None, engine)
    opened = graph.open()
    report = _clean(opened, wanted, is_preview=not is_confirmed, is_quiet=quiet)
    if as_json:
        print_json({"uri": graph.address, **wanted.to_json(), **report.to_json()})
    else:
        print_lines(_cleanup_lines(graph.address, report))
    if not report.is_preview:
        return
    # With a document for programs there is nobody to ask.
    if as_json or not can_ask() or not asked("remove them?"):
        typer.echo("nothing was removed: repeat with --confirm to do so", err=True)
        return
    report = _clean(opened, wanted, is_preview=False, is_quiet=quiet)
    print_lines(_cleanup_lines(graph.address, report))


@dataclass(frozen=True, slots=True)
class Retention:
    """What cleanup is asked to spare, of which branches, and who does it."""

    keep: int | None
    older_than: timedelta | None
    grace: timedelta | None
    branches: list[str] | None
    engine: str

    def to_json(self) -> dict[str, object]:
        age = self.older_than
        seconds = None if age is None else round(age.total_seconds())
        return {"keep_versions": self.keep, "older_than_secs": seconds}


def _clean(
    graph: Omnigraph, wanted: Retention, *, is_preview: bool, is_quiet: bool
) -> CleanupReport:
    doing = "looking for what can go" if is_preview else "removing old versions"
    told = "what was removed is gone, repeat to remove the rest"
    outcome = "nothing was removed" if is_preview else told
    with interruptible(lambda: outcome), busy(doing, is_quiet=is_quiet):
        return graph.cleanup(
            keep=wanted.keep,
            older_than=wanted.older_than,
            grace=wanted.grace,
            branches=wanted.branches,
            is_preview=is_preview,
            engine=wanted.engine,
        )


@on_graph
def verify(
    graph: GivenGraph,
    branch: VerifyBranchOption = None,
    deep: DeepOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check that a graph is whole; nothing is changed.

    The exit code is 1 if it is damaged.
    """
    opened = graph.open()
    with interruptible(lambda: "the check was stopped"), busy("checking", is_quiet=quiet):
        report = opened.verify(branch, is_deep=deep)
    if as_json:
        print_json({"uri": graph.address, **report.to_json()})
    else:
        print_lines([report.render()])
    if not report.is_sound:
        raise typer.Exit(1)


def _table_line(table: TableOptimizeStats) -> str:
    if table.reason is not None:
        return f"{table.table_key} no-op: {table.reason}"
    built = ", ".join(table.indexes_built) or "none"
    return (
        f"{table.table_key} fragments_removed={table.fragments_removed} "
        f"fragments_added={table.fragments_added} indexes_built={built}"
    )


def _cleanup_lines(address: str, report: CleanupReport) -> Iterator[str]:
    done = "would remove" if report.is_preview else "removed"
    versions = count(report.old_versions_removed, "version")
    yield f"{done} {versions} and {report.bytes_removed} bytes of {address}"
    for branch in report.branches:
        yield (
            f"branch {branch.branch} old_versions_removed={branch.old_versions_removed} "
            f"versions_kept={branch.versions_kept}"
        )
    for table in report.tables:
        yield (
            f"{table.table_key or table.location} bytes_removed={table.bytes_removed} "
            f"old_versions_removed={table.old_versions_removed} files_removed={table.files_removed}"
        )
    if report.derived_files_removed:
        yield (
            f"derived bytes_removed={report.derived_bytes_removed} "
            f"files_removed={report.derived_files_removed}"
        )
    yield from spark_lines(report)
