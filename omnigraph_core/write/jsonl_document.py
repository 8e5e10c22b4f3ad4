"""Records that are not one per line: pretty-printed objects one after the other, or an array.

A text comes in, records go out with the line each begins at. After a broken record reading goes on
at the next line that begins with a brace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.write.json_text import JsonProblem, parse_json, parse_json_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLANKS: Final = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Document:
    """One record of a text: its value, or why it has none."""

    line: int
    text: str
    value: object = None
    problem: str | None = None


def is_document(data: bytes) -> bool:
    """Whether bytes, given from the first record on, spread that record over several lines."""
    if data.startswith(b"["):
        return True
    line_end = data.find(b"\n")
    try:
        parse_json(decoded(data[:line_end]))
    except JsonProblem:
        return _is_spread(decoded(data))
    return False


def decoded(data: bytes) -> str:
    """The text of bytes; what is not UTF-8 becomes half characters, which no value may hold."""
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> str:
    """A text that `decoded` gave, fit to be written."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_spread(text: str) -> bool:
    try:
        _, end = parse_json_at(text, 0)
    except JsonProblem:
        return False
    return end > text.index("\n")


def iter_documents(text: str) -> Iterator[Document]:
    """The records of a text in order."""
    place, line, seen = 0, 1, 0
    is_array = False
    while (place := _skip(text, place)) < len(text):
        line, seen = line + text.count("\n", seen, place), place
        if text[place] == "[" and not is_array:
            is_array, place = True, place + 1
        elif text[place] == "]" and is_array:
            is_array, place = False, place + 1
        elif text[place] == "," and is_array:
            place += 1
        else:
            document = _read(text, place, line)
            yield document
            place += len(document.text)
    if is_array:
        yield Document(line, "", problem="the array of records does not end")


def _skip(text: str, place: int) -> int:
    """Where something to read begins: past blanks and past lines that are comments."""
    while place < len(text):
        if text[place] in _BLANKS:
            place += 1
        elif text.startswith("//", place):
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
        else:
            break
    return place


def _read(text: str, place: int, line: int) -> Document:
    try:
        value, end = parse_json_at(text, place)
    except JsonProblem as problem:
        again = text.find("\n{", place)
        end = len(text) if again < 0 else again
        return Document(line, text[place:end], problem=str(problem))
    return Document(line, text[place:end], value)
