"""Choices of sides from a file: JSON or lines of JSON come in, a side for each row goes out.

What a dry run prints is accepted with a `choose` added to its conflicts. Everything that is wrong
with a file is told at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import ConfigError
from omnigraph_core.merge.model import MergeConflictKind, MergeSide

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_TOLD: Final = 20
"""Problems an error spells out."""
_SIDES: Final = " or ".join(f"`{side}`" for side in MergeSide)


def parse_choices(text: str) -> dict[tuple[str, str], MergeSide]:
    """The chosen side of each row, by table key and row id.

    Entries are objects with `table_key`, `row_id` and `choose`. A conflict as a dry run prints it
    may be left without a choice.

    Raises:
        ConfigError: not JSON, or entries that say nothing or contradict others; tells all.

    >>> parse_choices('{"table_key": "node:Part", "row_id": "p1", "choose": "theirs"}')
    {('node:Part', 'p1'): <MergeSide.THEIRS: 'theirs'>}
    """
    found = _Found()
    for place, entry in _entries(text, found.problems):
        found.add(place, entry)
    refuse_choices(found.problems)
    return found.choices


def check_choices(choices: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], MergeSide]:
    """Choices given by a program.

    Raises:
        ConfigError: something else than a side is chosen; tells all.
    """
    sides = [str(side) for side in MergeSide]
    refuse_choices(
        f"{table_key}:{row_id}: `{chosen}` is chosen, give {_SIDES}"
        for (table_key, row_id), chosen in choices.items()
        if chosen not in sides
    )
    return {row: MergeSide(chosen) for row, chosen in choices.items()}


def refuse_choices(problems: Iterable[str]) -> None:
    """
    Raises:
        ConfigError: with every problem, if there is any.
    """
    told = list(problems)
    if not told:
        return
    lines = told[:_TOLD]
    if len(told) > _TOLD:
        lines.append(f"and {len(told) - _TOLD} more")
    raise ConfigError(
        "the resolution cannot be used:\n" + "\n".join(lines),
        hint="nothing was merged; a dry run lists the conflicts there are",
    )


@dataclass(slots=True)
class _Found:
    choices: dict[tuple[str, str], MergeSide] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, place: str, entry: object) -> None:
        problem = self._problem(entry)
        if problem is not None:
            self.problems.append(f"{place}: {problem}")

    def _problem(self, entry: object) -> str | None:
        if not isinstance(entry, dict):
            return "an entry is an object with `table_key`, `row_id` and `choose`"
        chosen, kind = entry.get("choose"), entry.get("kind")
        if chosen is None and kind is not None:
            return None  # a conflict that nobody has decided yet
        table_key, row_id = entry.get("table_key"), entry.get("row_id")
        if not isinstance(table_key, str) or not isinstance(row_id, str):
            return "`table_key` and `row_id` are texts that name a row"
        if kind is not None and not _is_choice(kind):
            return f"{table_key}:{row_id}: choosing a side does not settle a conflict of `{kind}`"
        if chosen not in [str(side) for side in MergeSide]:
            return f"{table_key}:{row_id}: `choose` is {json.dumps(chosen)}, give {_SIDES}"
        if self.choices.setdefault((table_key, row_id), MergeSide(chosen)) != chosen:
            return f"{table_key}:{row_id}: both sides are chosen"
        return None


def _is_choice(kind: object) -> bool:
    return any(kind == known for known in MergeConflictKind if known.is_choice)


def _entries(text: str, problems: list[str]) -> Iterator[tuple[str, object]]:
    """The entries with their places in the text."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        yield from _lines(text, problems)
        return
    if isinstance(whole, dict) and isinstance(whole.get("merge_conflicts"), list):
        whole = whole["merge_conflicts"]
    for number, entry in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"entry {number}", entry


def _lines(text: str, problems: list[str]) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as problem:
            problems.append(f"line {number}: not JSON: {problem}")
            continue
        yield f"line {number}", entry
