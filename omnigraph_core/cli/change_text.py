"""Changes of rows for people: counts and changes come in, lines go out, a row on one line each."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Final

from omnigraph_core.cli.output import change_lines, count, row_counts, with_actor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.diff.model import ChangeStats, CommitChanges, EntityChange

_SIGNS: Final = {"insert": "+", "update": "~", "delete": "-"}
_MOST: Final = 60
"""Characters of a value that are shown."""


def diff_lines(stats: ChangeStats, changes: Iterable[EntityChange]) -> Iterator[str]:
    """Counts of each table, and its changes as far as they are listed.

    Args:
        changes: nodes then edges, by type, as comparing gives them; each is asked for in its turn.
    """
    if not stats.tables:
        yield from change_lines(stats)
        return
    yield from (f"schema: {step}" for step in stats.schema_steps)
    left_out = stats.total
    listed = groupby(changes, lambda change: change.table_key)
    following = next(listed, None)
    for table in sorted(stats.tables, key=lambda item: item.table_key.startswith("edge:")):
        counts = row_counts(table.inserts, table.updates, table.deletes)
        yield f"{table.table_key} {counts}"
        if following is not None and following[0] == table.table_key:
            for change in following[1]:
                yield change_line(change)
                left_out -= 1
            following = next(listed, None)
    if left_out:
        yield f"… and {count(left_out, 'more change')}"


def block_lines(block: CommitChanges) -> Iterator[str]:
    """A commit and what it changed."""
    commit = block.commit
    headline = (
        f"commit {commit.graph_commit_id} version={commit.manifest_version} {commit.operation}"
    )
    yield with_actor(headline, commit.actor_id)
    yield from diff_lines(block.changes.stats, block.changes.changes)


def change_line(change: EntityChange) -> str:
    """
    >>> from omnigraph_core.diff.model import ChangeOp, Endpoints, EntityChange
    >>> from omnigraph_core.query.typed import EntityKind
    >>> edge = ("edge:Fits", EntityKind.EDGE, "Fits", "e9", ChangeOp.DELETE, 4)
    >>> change_line(EntityChange(*edge, Endpoints("p1", "b2")))
    '- Fits e9 (p1 -> b2)'
    """
    line = f"{_SIGNS[change.op]} {change.type_name} {_plain(change.id)}"
    if change.endpoints is not None:
        line += f" ({_plain(change.endpoints.src)} -> {_plain(change.endpoints.dst)})"
    if not change.properties:
        return line
    return f"{line}: {', '.join(_property(change, name) for name in change.properties)}"


def _property(change: EntityChange, name: str) -> str:
    before, after = change.before or {}, change.after or {}
    now = _value(after.get(name))
    if name not in before:  # it had another name, or was not there
        return f"{name} -> {now}"
    if before[name] == after.get(name):  # only what it was made from differs
        return f"{name} made anew"
    return f"{name} {_value(before[name])} -> {now}"


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    text = text if text.isprintable() else json.dumps(value)
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def _plain(text: str) -> str:
    """An id as it is, unless it would move the cursor of a terminal."""
    return text if text.isprintable() else json.dumps(text)
