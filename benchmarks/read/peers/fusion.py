"""Two rankings made one, as a caller has to where the engine does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.read.operations import Rows


def fused(first: Rows, second: Rows) -> list[tuple[str]]:
    """The ten best by reciprocal ranks added up."""
    scores: dict[str, float] = {}
    for answer in (first, second):
        for rank, (code, *_) in enumerate(answer, 1):
            scores[code] = scores.get(code, 0.0) + 1 / (60 + rank)
    return [(code,) for code in sorted(scores, key=scores.__getitem__, reverse=True)[:10]]
