"""Rows by the text they have in a column whose texts hardly repeat: texts come in, rows go out.

Where a column is asked for repeatedly, the way from its texts to numbers is kept: what has the hash
of a text is compared with the text itself, so two texts of one hash only cost time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.topology.dense import DenseTable

_SMALL: Final = 4_096
"""Rows up to which comparing all of them costs no more."""
_PATIENCE: Final = 2
"""Times a column is compared whole before its texts are sorted."""


def try_numbers_with(dense: DenseTable, name: str, texts: Iterable[str]) -> np.ndarray | None:
    """The ascending numbers, int32, of rows with one of the texts; None to compare them all.

    Only a column in memory is sorted, and only when it is asked for repeatedly.
    """
    if dense.count <= _SMALL or not dense.is_resident(name):
        return None
    if not dense.is_mapped(name) and not dense.is_repeated(f"text {name}", _PATIENCE):
        return None
    known, column = dense.text_map(name), dense.column(name)
    found = [known.numbers_with(column, text, dense.rows) for text in dict.fromkeys(texts)]
    if len(found) == 1:
        return found[0]
    return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int32)
