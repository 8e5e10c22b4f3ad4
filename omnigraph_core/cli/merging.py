"""Options of everything that merges, and how its outcome is told.

Conflicts come out in the form in which choices are taken in: a person adds `choose` to each object
of the file that `--conflicts` has written, and passes it with `--resolve`.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from omnigraph_core.cli.files import read_text
from omnigraph_core.cli.output import count, print_json, print_lines, row_counts, spark_lines
from omnigraph_core.errors import ConfigError, MergeConflicts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.merge.model import MergeResult, TableMerge

# Spelled out like the other enums of the storage code; a test compares them.
Strategy: TypeAlias = Literal["row", "property"]

UNTOLD: Final = "kept"
"""What is done with a table that has no line: nothing."""

COUNTED: Final = frozenset({"merged", "reshaped"})
"""What is done with a table whose rows are counted; others are taken as they are."""

StrategyOption = Annotated[
    Strategy,
    typer.Option(
        "--strategy",
        help="`row`: a row that both sides changed is in conflict; `property`: only if both "
        "changed the same property.",
    ),
]
OursOption = Annotated[bool, typer.Option("--ours", help="In conflicts keep the target's row.")]
TheirsOption = Annotated[bool, typer.Option("--theirs", help="In conflicts take the other row.")]
ResolveOption = Annotated[
    Path | None,
    typer.Option(
        "--resolve",
        metavar="FILE",
        help="Choices for single rows: what --conflicts wrote, with `choose` added to each.",
    ),
]
ConflictsOption = Annotated[
    Path | None,
    typer.Option("--conflicts", metavar="FILE", help="Write conflicts here, if there are any."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the outcome, write nothing.")]


@dataclass(frozen=True, slots=True)
class MergeChoice:
    """What is chosen where both sides changed a row."""

    strategy: Strategy
    resolve: Literal["ours", "theirs"] | None = None
    choices: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """As the engine takes it."""
        return {"strategy": self.strategy, "resolve": self.resolve, "choices": self.choices}


def merge_choice(
    strategy: Strategy, resolve: Path | None, *, is_ours: bool, is_theirs: bool
) -> MergeChoice:
    """
    Raises:
        typer.BadParameter: options that exclude each other.
        ConfigError: the file of choices cannot be read, or says something else.
    """
    if is_ours and is_theirs:
        raise typer.BadParameter("--ours and --theirs exclude each other")
    choices = {} if resolve is None else _read_choices(resolve)
    if is_ours or is_theirs:
        return MergeChoice(strategy, "ours" if is_ours else "theirs", choices)
    return MergeChoice(strategy, None, choices)


def _read_choices(path: Path) -> Mapping[tuple[str, str], str]:
    from omnigraph_core.merge.resolve import parse_choices  # slow: beside the storage code

    return parse_choices(read_text(path, what="file of choices"))


@contextmanager
def reported_conflicts(path: Path | None) -> Iterator[None]:
    """Run the block; what it conflicts in is written to the file, if one is named."""
    try:
        yield
    except MergeConflicts as refused:
        _write_conflicts(path, refused.conflicts)
        raise


def _write_conflicts(path: Path | None, conflicts: Sequence[Mapping[str, object]]) -> None:
    if path is None or not conflicts:
        return
    text = json.dumps(list(conflicts), indent=2, ensure_ascii=False)
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"cannot write conflicts to {path}: {problem.strerror}") from problem
    told = f"{count(len(conflicts), 'conflict')} in {path}"
    typer.echo(f'{told}: add "choose": "ours" or "theirs" and pass it with --resolve', err=True)


def print_merge(
    result: MergeResult,
    headline: str,
    conflicts: Path | None,
    *,
    actor: str | None,
    as_json: bool,
) -> None:
    """Tell what came of a merge.

    Raises:
        typer.Exit: with 1, after a dry run that has found conflicts.
    """
    # A server knows its caller better than the command line does.
    who = actor if result.commit is None else result.commit.actor_id
    if as_json:
        print_json(_document(result, who))
    else:
        print_lines(_lines(result, headline, who))
    if result.conflicts:
        _write_conflicts(conflicts, [conflict.to_json() for conflict in result.conflicts])
        raise typer.Exit(1)


def _document(result: MergeResult, actor: str | None) -> dict[str, object]:
    members = result.to_json()
    first = {name: members.pop(name) for name in ("source", "target", "outcome")}
    return {**first, "actor_id": actor, **members}


def _lines(result: MergeResult, headline: str, actor: str | None) -> Iterator[str]:
    yield f"{'dry run: ' if result.is_dry_run else ''}{headline}: {result.outcome}"
    for table in result.tables:
        if table.disposition != UNTOLD or table.conflicts:
            yield _table_line(table)
    if result.is_schema_changed:
        yield "schema: changed"
    if result.resolved:
        yield f"resolved: {count(result.resolved, 'conflict')}"
    for conflict in result.conflicts:
        row = "" if conflict.row_id is None else f":{conflict.row_id}"
        yield f"conflict: {conflict.table_key}{row} ({conflict.kind}) {conflict.message}"
    if result.is_source_deleted:
        yield f"deleted branch {result.source}"
    if actor is not None:
        yield f"actor_id: {actor}"
    if result.commit is not None:
        yield f"commit_id: {result.commit.graph_commit_id}"
    yield from spark_lines(result)


def _table_line(table: TableMerge) -> str:
    parts = [table.table_key, str(table.disposition)]
    if table.disposition in COUNTED:
        parts.append(row_counts(table.inserted, table.updated, table.deleted))
    if table.conflicts:
        parts.append(count(table.conflicts, "conflict"))
    return " ".join(parts)
