"""What a batch answers is believed no more than other answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import EmbeddingError
from tests.support.batch_backfills import Notes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.embedding_server import EmbeddingServer

    Answers = list[dict[str, Any]]

BOTH = pytest.mark.parametrize("provider", ["openai", "gemini"])
COUNT = 30
TEXTS = [f"note {number}" for number in range(COUNT)]


@pytest.fixture
def notes(tmp_path: Path, server: EmbeddingServer) -> Notes:
    return Notes(tmp_path / "graph", server)


def _first(answers: Answers, change: Callable[[dict[str, Any]], object]) -> Answers:
    change(answers[0])
    return answers


def _vector(answer: dict[str, Any]) -> list[Any]:
    """The list itself, to be changed."""
    response = answer["response"]
    found: list[Any] = (
        response["body"]["data"][0]["embedding"]
        if "body" in response
        else response["embedding"]["values"]
    )
    return found


def _id(answer: dict[str, Any]) -> str:
    return "key" if "key" in answer else "custom_id"


@BOTH
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: _first(given, lambda a: _vector(a).pop()), "expected 8 numbers, found 7"),
        (lambda given: _first(given, lambda a: _vector(a).__setitem__(0, "1")), "list of numbers"),
        (lambda given: _first(given, lambda a: _vector(a).__setitem__(0, 1e999)), "finite"),
        (lambda given: given[1:], "has no answer for it"),
        (lambda given: _first(given, lambda a: a.update({_id(a): "x"})), "nobody asked for: 'x'"),
        (lambda given: [*given, given[0]], "found a second one"),
        (lambda given: _first(given, dict.clear), "expected an answer with a"),
    ],
    ids=["short", "text", "infinite", "missing", "unknown", "twice", "empty"],
)
def test_answers_are_checked(
    notes: Notes, provider: str, change: Callable[[Answers], Answers], message: str
) -> None:
    """What is wrong is told, and asked for again by the next backfill; the rest is kept."""
    notes.provider = provider
    notes.server.batches.change = change
    with pytest.raises(EmbeddingError, match=message):
        notes.load(*TEXTS).backfill()
    assert notes.backfill()["vectors_made"] == COUNT
    assert len(notes.server.texts) == (0 if "second" in message else 1)
    notes.check_complete()
