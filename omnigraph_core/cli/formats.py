"""The rows of a read on the command line: an answer comes in, text in one of five formats goes out.

Columns keep the order of the query in every format. Rows come as they are in JSON and are formatted
one by one: only `json` holds all of them.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from omnigraph_core.cli.output import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from omnigraph_core.config.model import Form
    from omnigraph_core.exec.result import QueryResult

MAX_WIDTH: Final = 80
_LEAST_CAP: Final = 8
_CUT: Final = "…"
_CHUNK_LINES: Final = 1_024


@dataclass(frozen=True, slots=True)
class Layout:
    """How wide the columns of a table may be, and whether longer cells are wrapped or cut."""

    max_width: int = MAX_WIDTH
    is_wrapping: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows, and whether they are those of a branch as it is now: else of one snapshot."""

    result: QueryResult
    is_head: bool


def iter_output(answer: Answer, form: Form, layout: Layout) -> Iterator[bytes]:
    """The whole output, some of it at a time."""
    if form == "jsonl":
        yield f"{_compact({'kind': 'metadata', **_facts(answer)})}\n".encode()
        yield from answer.result.iter_ndjson()
        return
    if form == "json":
        yield _document(answer).encode()
        return
    lines = {"table": _table, "kv": _key_values, "csv": _csv}[form](answer, layout)
    yield from _chunks(lines)


def _facts(answer: Answer) -> dict[str, object]:
    result = answer.result
    snapshot = result.snapshot
    return {
        "query_name": result.query_name,
        "target": {
            "branch": snapshot.branch if answer.is_head else None,
            "snapshot": None if answer.is_head else snapshot.commit.graph_commit_id,
        },
        "row_count": result.num_rows,
    }


def _document(answer: Answer) -> str:
    names = _columns(answer)
    columns = {"columns": names} if names else {}
    document = {**_facts(answer), **columns, "rows": answer.result.to_pylist()}
    return f"{json.dumps(document, indent=2, ensure_ascii=False)}\n"


def _chunks(lines: Iterable[str]) -> Iterator[bytes]:
    held = []
    for line in lines:
        held.append(f"{line}\n")
        if len(held) == _CHUNK_LINES:
            yield "".join(held).encode()
            held.clear()
    yield "".join(held).encode()


def _columns(answer: Answer) -> list[str]:
    return [column.name for column in answer.result.columns]


def _rows(answer: Answer) -> Iterator[list[str]]:
    """The cells of each row as text."""
    for chunk in answer.result.iter_ndjson():
        for line in chunk.splitlines():
            yield [_cell(value) for value in json.loads(line).values()]


def _cell(value: object) -> str:
    return value if isinstance(value, str) else _compact(value)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _headline(answer: Answer) -> str:
    snapshot = answer.result.snapshot
    where = (
        f"branch {snapshot.branch}"
        if answer.is_head
        else f"snapshot {snapshot.commit.graph_commit_id}"
    )
    return f"{answer.result.num_rows} rows from {where} via {answer.result.query_name}"


# csv


def _csv(answer: Answer, _: Layout) -> Iterator[str]:
    for cells in chain([_columns(answer)], _rows(answer)):
        yield ",".join(map(_field, cells))


def _field(text: str) -> str:
    """
    >>> _field('3" bolt'), _field("bolt")
    ('"3"" bolt"', 'bolt')
    """
    if not any(sign in text for sign in ',"\r\n'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


# kv


def _key_values(answer: Answer, _: Layout) -> Iterator[str]:
    yield _headline(answer)
    if not answer.result.num_rows:
        yield "(no rows)"
    names = _columns(answer)
    for number, cells in enumerate(_rows(answer), start=1):
        if number > 1:
            yield ""
        yield f"row {number}"
        yield from (f"{name}: {_one_line(text)}" for name, text in zip(names, cells, strict=True))


# table


def _table(answer: Answer, layout: Layout) -> Iterator[str]:
    yield _headline(answer)
    names = _columns(answer)
    if not names:
        yield "(no rows)"
        return
    widths = _widths(names, _rows(answer), layout)
    yield from _row_lines(names, widths, layout)
    yield "-+-".join("-" * width for width in widths)
    for cells in _rows(answer):
        yield from _row_lines(cells, widths, layout)


def _widths(names: Sequence[str], rows: Iterable[list[str]], layout: Layout) -> list[int]:
    longest = [0] * len(names)
    for cells in rows:
        for place, text in enumerate(cells):
            if longest[place] < layout.max_width:
                longest[place] = max(longest[place], display_width(_one_line(text)))
    cap = max(layout.max_width, _LEAST_CAP)
    return [
        min(max(display_width(name), min(most, layout.max_width)), cap)
        for name, most in zip(names, longest, strict=True)
    ]


def _row_lines(cells: Sequence[str], widths: Sequence[int], layout: Layout) -> Iterator[str]:
    """One line, or as many as the longest wrapped cell has pieces."""
    fit = _wrapped if layout.is_wrapping else _truncated
    columns = [fit(_one_line(text), width) for text, width in zip(cells, widths, strict=True)]
    for pieces in zip_longest(*columns, fillvalue=""):
        yield " | ".join(_padded(text, width) for text, width in zip(pieces, widths, strict=True))


def _one_line(text: str) -> str:
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def _truncated(text: str, width: int) -> list[str]:
    """
    >>> _truncated("hexagonal", 9), _truncated("hexagonal", 5)
    (['hexagonal'], ['hexa…'])
    """
    if display_width(text) <= width:
        return [text]
    return [text[: _fitting(text, width - 1)] + _CUT]


def _wrapped(text: str, width: int) -> list[str]:
    """
    >>> _wrapped("hexagonal", 4)
    ['hexa', 'gona', 'l']
    """
    pieces = []
    while display_width(text) > width:
        length = max(_fitting(text, width), 1)
        pieces.append(text[:length])
        text = text[length:]
    return [*pieces, text]


def _fitting(text: str, width: int) -> int:
    """Characters at the beginning of a text that take no more columns."""
    if text.isascii():
        return width
    taken = 0
    for place, character in enumerate(text):
        taken += _columns_of(character)
        if taken > width:
            return place
    return len(text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


def display_width(text: str) -> int:
    """Columns a text takes on a terminal.

    >>> display_width("bolt"), display_width("Köln"), display_width("螺栓")
    (4, 4, 4)
    """
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
