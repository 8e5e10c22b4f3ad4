"""`omnigraph optimize`, `cleanup` and `verify`: what keeps a graph fast, small and sound."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph_core.cli.interrupt import Witness, interruptible
from omnigraph_core.cli.options import MAIN, ActorOption, BranchOption, JsonOption
from omnigraph_core.cli.output import count, print_json, print_lines
from omnigraph_core.cli.target import UriArgument, UriOption, graph_address, open_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.engine.cleanup import CleanupReport
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
    bool, typer.Option("--confirm", help="Remove them; without it they are only shown.")
]
VerifyBranchOption = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Branch to check.  [default: all, and tags]"),
]
DeepOption = Annotated[
    bool,
    typer.Option("--deep", help="Check every version that is kept, indexes, and all rows."),
]


def optimize(
    uri: UriArgument = None,
    uri_option: UriOption = None,
    branch: BranchOption = MAIN,
    include_inherited: InheritedOption = False,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Join small files and complete indexes; no row changes.

    There is one commit at most.
    """
    address = graph_address(uri, uri_option)
    graph = open_graph(address)
    witness = Witness(graph, branch)
    with interruptible(lambda: witness.outcome("optimized")):
        tables = graph.optimize(branch=branch, include_inherited=include_inherited, actor=actor)
    if as_json:
        document = [table.to_json() for table in tables]
        print_json({"uri": address, "branch": branch, "tables": document})
        return
    header = f"optimized {address} branch {branch}: {count(len(tables), 'table')}"
    print_lines([header, *map(_table_line, tables)])


def cleanup(
    uri: UriArgument = None,
    uri_option: UriOption = None,
    keep: KeepOption = None,
    older_than: OlderThanOption = None,
    grace: GraceOption = None,
    branch: BranchesOption = None,
    confirm: ConfirmOption = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old versions and the files that nothing needs any more.

    Versions go that are neither among the newest nor young. Heads and tags stay, and merge bases.
    """
    address = graph_address(uri, uri_option)
    if keep is None and older_than is None:
        raise typer.BadParameter("give --keep, --older-than or both")
    age = None if older_than is None else parse_duration(older_than)
    report = open_graph(address).cleanup(
        keep=keep,
        older_than=age,
        grace=None if grace is None else parse_duration(grace),
        branches=branch or None,
        is_preview=not confirm,
    )
    if as_json:
        policy = {
            "keep_versions": keep,
            "older_than_secs": None if age is None else round(age.total_seconds()),
        }
        print_json({"uri": address, **policy, **report.to_json()})
    else:
        print_lines(_cleanup_lines(address, report))
    if report.is_preview:
        typer.echo("nothing was removed: repeat with --confirm to do so", err=True)


def verify(
    uri: UriArgument = None,
    uri_option: UriOption = None,
    branch: VerifyBranchOption = None,
    deep: DeepOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check that a graph is whole; nothing is changed.

    The exit code is 1 if it is damaged.
    """
    address = graph_address(uri, uri_option)
    report = open_graph(address).verify(branch, is_deep=deep)
    if as_json:
        print_json({"uri": address, **report.to_json()})
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
