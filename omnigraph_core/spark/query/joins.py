"""Joins that suit the sizes of their sides, which Spark cannot know.

A side that is certainly small is sent to every executor. If it is the other one that seems small,
it is counted first, and of the large side only what can match takes part. Else both are shuffled.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from omnigraph_core.spark.query.frame import column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from omnigraph_core.spark.query.actions import Actions
    from omnigraph_core.spark.query.frame import Frame
    from omnigraph_core.spark.query.tables import Side

BROADCAST_BYTES: Final = 32 << 20
"""Of a side that every executor may have a copy of."""
FEW_ROWS: Final = 200_000
"""Rows of a match whose keys every executor may have a copy of."""
_HASHED_ROWS: Final = 20_000_000
"""Rows of which each task may hold its part in memory: more are sorted, which needs none."""


class Joins:
    """Joins rows of a match with others."""

    def __init__(self, actions: Actions) -> None:
        self._actions = actions

    def joined(
        self,
        frame: Frame,
        side: Side,
        keys: Sequence[tuple[str, str]],
        how: str,
        *,
        is_null_safe: bool = False,
    ) -> DataFrame:
        """The rows of a match beside those of another side that have equal keys.

        Args:
            keys: columns of the match, and those of the other side that they have to equal.
            how: as Spark calls it: `inner`, `left`, `left_semi`, `left_anti`.
            is_null_safe: null equals null.
        """
        assert frame.rows is not None
        left, right = frame.rows, side.rows
        if side.most_bytes <= BROADCAST_BYTES:
            return left.join(right.hint("broadcast"), _equal(keys, is_null_safe=is_null_safe), how)
        narrowed = side
        if not is_null_safe:
            frame, narrowed = self.narrowed(frame, side, keys)
            assert frame.rows is not None
            left, right = frame.rows, narrowed.rows
        condition = _equal(keys, is_null_safe=is_null_safe)
        if how == "inner" and frame.estimate < narrowed.most:
            return left.hint(_way(frame.estimate)).join(right, condition, how)
        return left.join(right.hint(_way(narrowed.most)), condition, how)

    def narrowed(
        self, frame: Frame, side: Side, keys: Sequence[tuple[str, str]]
    ) -> tuple[Frame, Side]:
        """The same two sides, the other one without what certainly matches no row of the match.

        Only if there are few rows to match with. Whether there are is found out, not guessed.
        """
        is_large = BROADCAST_BYTES < side.most_bytes < math.inf
        if frame.rows is None or frame.estimate > FEW_ROWS or not is_large:
            return frame, side
        held = self._actions.held(frame.rows)
        count = self._actions.act(held.count)
        frame = replace(frame, rows=held, estimate=count)
        if count > FEW_ROWS:
            return frame, side
        wanted = held.select(*(column(ours).alias(theirs) for ours, theirs in keys)).distinct()
        named = [theirs for _, theirs in keys]
        matching = side.rows.join(wanted.hint("broadcast"), named, "left_semi")
        return frame, replace(side, rows=matching)

    def multiplied(self, frame: Frame, side: Side) -> DataFrame:
        """Every row of a match with every row of the other side."""
        assert frame.rows is not None
        if side.most_bytes <= BROADCAST_BYTES:
            return frame.rows.crossJoin(side.rows.hint("broadcast"))
        if frame.estimate <= FEW_ROWS:
            held = self._actions.held(frame.rows)
            if self._actions.act(held.count) <= FEW_ROWS:
                return held.hint("broadcast").crossJoin(side.rows)
            return held.hint("shuffle_replicate_nl").crossJoin(side.rows)
        return frame.rows.hint("shuffle_replicate_nl").crossJoin(side.rows)


def _way(rows: float) -> str:
    """How a side of about so many rows is put beside the other when both are shuffled."""
    return "merge" if _HASHED_ROWS < rows < math.inf else "shuffle_hash"


def _equal(keys: Sequence[tuple[str, str]], *, is_null_safe: bool) -> Column:
    condition = F.lit(True)
    for ours, theirs in keys:
        left, right = column(ours), column(theirs)
        condition &= left.eqNullSafe(right) if is_null_safe else left == right
    return condition
