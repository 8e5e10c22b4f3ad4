"""Changes as bytes, made while they are sent: of any number of them few are in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.server.answers import compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.engine.diffs import OpenDiff

_CHUNK: Final = 65_536


def diff_document(found: OpenDiff, *, has_values: bool, limit: int | None) -> Iterator[bytes]:
    """One JSON document with all changes, or so many of them."""
    items = _changes(found, has_values=has_values, limit=limit)
    head = compact(_summary(found, limit) | {"changes": []})
    yield from _gathered(_listed(head.removesuffix(b"]}"), items))


def diff_lines(found: OpenDiff, *, has_values: bool, limit: int | None) -> Iterator[bytes]:
    """A line about all of them, then a line for each change."""
    items = _changes(found, has_values=has_values, limit=limit)
    yield from _gathered(_lined(compact(_summary(found, limit)), items))


def _summary(found: OpenDiff, limit: int | None) -> dict[str, object]:
    is_complete = limit is None or found.summary.stats.total <= limit
    document = replace(found.summary, is_complete=is_complete).to_json()
    del document["changes"]
    return document


def _changes(found: OpenDiff, *, has_values: bool, limit: int | None) -> Iterator[bytes]:
    for change in found.iter_changes(has_values=has_values, limit=limit):
        yield compact(change.to_json(has_values=has_values))


def _listed(head: bytes, items: Iterable[bytes]) -> Iterator[bytes]:
    yield head
    before = b""
    for item in items:
        yield before + item
        before = b","
    yield b"]}"


def _lined(head: bytes, items: Iterable[bytes]) -> Iterator[bytes]:
    yield head + b"\n"
    for item in items:
        yield item + b"\n"


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces put together to chunks that are worth sending."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
