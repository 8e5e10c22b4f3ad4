"""Rows that a base cannot tell: several commits are the base, and they disagree about them.

The base has no such row. A side that has none either has removed it, one that has it has put it
there: unless both sides agree, somebody has to decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Undecided:
    """Rows of one table, by id; None stands for all."""

    ids: pa.StringArray | None

    def has(self, ids: pa.StringArray) -> np.ndarray:
        """Which of some rows are among them."""
        if self.ids is None:
            return np.ones(len(ids), np.bool_)
        found: np.ndarray = pc.is_in(ids, value_set=self.ids).to_numpy(zero_copy_only=False)
        return found

    def __or__(self, other: Undecided) -> Undecided:
        if self.ids is None or other.ids is None:
            return EVERY_ROW
        return Undecided(pc.unique(pa.concat_arrays([self.ids, other.ids])))


EVERY_ROW: Final = Undecided(None)
