"""The reject file: every record that breaks a rule, with its problems and its text.

One JSON object per line, in the order of the input, so that it can be read, mended and loaded.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph_core.errors import ConfigError, RecordError
from omnigraph_core.ids import new_ulid
from omnigraph_core.write.digest import BROKEN_FILE
from omnigraph_core.write.records import raw_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from omnigraph_core.violations import Violation, Violations
    from omnigraph_core.write.batches import Places
    from omnigraph_core.write.sources import Source


def write_rejects(
    path: Path, sources: Sequence[Source], places: Places, problems: Violations
) -> None:
    """Write the file; empty if there are no problems, so that an old one does not mislead.

    Raises:
        ConfigError: it cannot be written there.
    """
    by_record = _by_record(problems)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}.{new_ulid()}")
        try:
            with unfinished.open("x", encoding="utf-8") as file:
                for name, source in zip(places.names, sources, strict=True):
                    _write_source(file, name, source, by_record.get(name, {}))
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as problem:
        raise ConfigError(f"cannot write the reject file {path}: {problem.strerror}") from problem


def check_rejects(path: Path | None, sources: Sequence[Source]) -> None:
    """Refuse to write the reject file over an input or a directory.

    Raises:
        ConfigError: they are the same file, or it is a directory.
    """
    if path is None or not path.exists():
        return
    if path.is_dir():
        raise ConfigError(f"cannot write the reject file {path}: Is a directory")
    for source in sources:
        if isinstance(source.data, Path) and source.data.samefile(path):
            raise ConfigError(f"the reject file {path} is an input", hint="choose another name")


def count_records(problems: Violations) -> int:
    """How many records the problems are about."""
    return sum(len(lines) for lines in _by_record(problems).values())


def named_apart(places: Places) -> Places:
    """The places with a name for each of several inputs that no other has.

    >>> from omnigraph_core.write.batches import Places
    >>> named_apart(Places((None, "a.jsonl", "a.jsonl"), ("line",) * 3)).names
    ('input 1', 'a.jsonl', 'a.jsonl (input 3)')
    """
    if len(places.names) == 1:
        return places
    names: list[str] = []
    taken: set[str] = set()
    for number, name in enumerate(places.names, 1):
        if name is None:
            names.append(f"input {number}")
        else:
            names.append(f"{name} (input {number})" if name in taken else name)
        taken.add(names[-1])
    return replace(places, names=tuple(names))


def _by_record(problems: Violations) -> dict[str | None, dict[int, list[Violation]]]:
    grouped: dict[str | None, dict[int, list[Violation]]] = defaultdict(lambda: defaultdict(list))
    for violation in problems.listed:
        if violation.line is not None:
            grouped[violation.file][violation.line].append(violation)
    return grouped


def _write_source(
    file: TextIO, name: str | None, source: Source, problems: dict[int, list[Violation]]
) -> None:
    try:
        for line, text in raw_records(source, problems) if problems else ():
            entry = {
                "file": name,
                "line": line,
                "problems": [violation.message for violation in problems[line]],
                "record": text,
            }
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    except (RecordError, *BROKEN_FILE):
        return  # the input breaks off here, which is among the problems
