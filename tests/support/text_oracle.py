"""A second opinion on text search: what it means, in dicts and loops over whole texts.

`analyse` asks Lance's analyser about one text at a time; everything else works on its words.
Nothing is shared with the engine.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import lance

if TYPE_CHECKING:
    from collections.abc import Sequence

K1, B = 1.2, 0.75


@dataclass(frozen=True)
class TextWord:
    """A word of a text: as written but for case and accents, its stem, whether it is indexed."""

    raw: str
    stem: str
    is_indexed: bool


Words = tuple[TextWord, ...]


@cache
def analyse(text: str) -> Words:
    """The words of a text in order."""
    every: dict[str, Any] = {"remove_stop_words": False, "max_token_length": None}
    raw = [token.text for token in lance.tokenize(text, stem=False, **every)]
    stems = [token.text for token in lance.tokenize(text, **every)]
    kept = {token.position for token in lance.tokenize(f"anchor {text}")}
    return tuple(
        TextWord(*pair, place + 1 in kept)
        for place, pair in enumerate(zip(raw, stems, strict=True))
    )


def is_match(function: str, text: str | None, query: str, edits: int = 2) -> bool:
    """`search`, `match_text` or `fuzzy`."""
    if text is None:
        return False
    if function == "search":
        return has_shared_word(analyse(text), analyse(query))
    if function == "match_text":
        return has_phrase(analyse(text), analyse(query))
    return has_near_word(analyse(text), analyse(query), edits)


def has_shared_word(text: Words, query: Words) -> bool:
    return bool(set(indexed(text)) & set(indexed(query)))


def has_phrase(text: Words, query: Words) -> bool:
    """All words count, stop words too; a phrase without words is nowhere."""
    stems = [word.stem for word in text]
    wanted = [word.stem for word in query]
    ends = range(len(wanted), len(stems) + 1)
    return bool(wanted) and any(stems[end - len(wanted) : end] == wanted for end in ends)


def has_near_word(text: Words, query: Words, edits: int) -> bool:
    """What searches leave out of a query finds nothing; every word of the text can be found."""
    return any(
        distance(word.raw, wanted.raw) <= edits
        for wanted in query
        if wanted.is_indexed
        for word in text
    )


@cache
def distance(one: str, other: str) -> int:
    """Levenshtein's."""
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        line = [row]
        for column, wanted in enumerate(other, start=1):
            changed = above[column - 1] + (letter != wanted)
            line.append(min(above[column] + 1, line[-1] + 1, changed))
        above = line
    return above[-1]


def bm25(texts: Sequence[str | None], query: str) -> dict[int, float]:
    """Scores by place, of texts that have a word of the query."""
    documents = {
        place: indexed(analyse(text)) for place, text in enumerate(texts) if text is not None
    }
    if not documents:
        return {}
    average = sum(map(len, documents.values())) / len(documents)
    scores: dict[int, float] = {}
    for word in sorted(set(indexed(analyse(query)))):
        hits = {place: Counter(words)[word] for place, words in documents.items() if word in words}
        rarity = math.log(1 + (len(documents) - len(hits) + 0.5) / (len(hits) + 0.5))
        for place, count in hits.items():
            norm = K1 * (1 - B + B * len(documents[place]) / average)
            scores[place] = scores.get(place, 0.0) + rarity * count * (K1 + 1) / (count + norm)
    return scores


def statistics(texts: Sequence[str | None], query: str) -> tuple[int, int, dict[str, int]]:
    """Texts, their indexed words, and for words of the query that are there the texts with it."""
    documents = [indexed(analyse(text)) for text in texts if text is not None]
    wanted = set(indexed(analyse(query)))
    frequencies = {word: sum(word in words for words in documents) for word in wanted}
    found = {word: count for word, count in frequencies.items() if count}
    return len(documents), sum(map(len, documents)), found


def indexed(words: Words) -> list[str]:
    """What searches see of a text."""
    return [word.stem for word in words if word.is_indexed]
