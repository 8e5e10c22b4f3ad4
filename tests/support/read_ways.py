"""Ways the engine can take to one answer: in memory, in small portions, nothing kept, from files.

What decides between them at run time is size; here it is set, so that small graphs take them all.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.constants import Constant
from omnigraph_core.engine import reads
from omnigraph_core.exec import (
    aggregate,
    closing,
    collect,
    comparisons,
    dedupe,
    distinct,
    ends,
    evaluate,
    expand,
    group,
    joins,
    match,
    order,
    ordinals,
    reach,
    run,
    scope,
    select,
    shrink,
    tally,
    text_places,
    traverse,
    vectors,
    walk,
)
from omnigraph_core.topology import (
    adjacency,
    dense,
    fuzzy,
    lexicon,
    links,
    phrases,
    pieces,
    postings,
    text_map,
    widths,
    word_index,
    word_search,
)
from omnigraph_core.topology.memory import ByteCache
from omnigraph_core.values import epoch_milliseconds
from tests.support.read_contents import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator

PLENTY = 2**28
NOTHING = 64
"""Bytes of a cache that nothing fits in."""
HARDLY_ANYTHING = 12_000

Patch = tuple[Any, str, Any]

_PORTIONS: tuple[Patch, ...] = (
    (scope, "PORTION_ROWS", 5),
    (scope, "_FIRST_ROWS", 2),
    (match, "PORTION_ROWS", 5),
    (traverse, "PORTION_ROWS", 5),
    (aggregate, "_PORTION_ROWS", 4),
    (aggregate, "_MOST_WAITING", 3),
    (distinct, "_MOST_WAITING", 3),
    (collect, "_MOST_WAITING", 3),
    (joins, "_OUTER_ROWS", 3),
    (reach, "SEEN_CELLS", 32),
    (reach, "_STEP_ROWS", 4),
    (select, "_PORTION", 3),
    (evaluate, "_PORTION", 4),
    (vectors, "_PORTION_BYTES", 100),
)
_AS_IF_LARGE: tuple[Patch, ...] = (
    (order, "_FEW", 2),
    (order, "_BLOCKS", 2),
    (ordinals, "_FEW", 0),
    (group, "_SMALL_SPACE", 1),
    (group, "_SPACE_PER_ROW", 0),
    (expand, "_MANY_ROWS", 0),
    (closing, "_FEW_ROWS", 0),
    (joins, "_FEW_PLACES", 0),
    (comparisons, "_FEW", 0),
    (evaluate, "_FEW_ROWS", 0),
    (evaluate, "_REPEATS", 0),
    (select, "_FEW_TEXTS", 0),
    (text_places, "_SMALL", 0),
    (text_places, "_PATIENCE", 0),
    (vectors, "_FEW", 0),
    (vectors, "_FEW_IN_MEMORY", 0),
    (vectors, "_SHARE_IN_MEMORY", 0.0),
    (text_map, "_FEW", 0),
    (text_map, "_SORTED_FROM", 0),
    (lexicon, "_FEW", 0),
    (word_index, "_FEW", 0),
    (word_index, "_SCANNED", 3),
    (fuzzy, "_CELLS", 4),
    (pieces, "_PORTION_BYTES", 10),
    (tally, "_PORTION", 3),
    (dedupe, "_PACKED_BITS", 1),
    (group, "_KEY_BITS", 1),
    (adjacency, "_KEY_BITS", 1),
)


def _shares(number: int) -> tuple[Patch, ...]:
    """What counts as few of many: with 0 nearly everything does, with many nothing."""
    return (
        (walk, "_FEW_SHARE", number),
        (ends, "_WHOLE_SHARE", number),
        (traverse, "_TALLY_SHARE", number),
        (shrink, "_MERGE_SHARE", number),
        (reach, "_DENSE_SHARE", number),
        (closing, "_TABLE_SHARE", number),
        (select, "_FEW_SHARE", number),
        (word_search, "_SPARSE", number),
        (word_index, "_RARE", number),
        (phrases, "_FEW", number),
    )


_UNKEPT: tuple[Patch, ...] = (
    (dense, "_SMALL", 0),
    (dense, "_FEW", 0),
    (widths, "_SMALL_ROWS", 0),
    (vectors, "_FEW_STORED", 0),
)
_FILES: tuple[Patch, ...] = tuple(
    (module, "DERIVED_MIN_ROWS", Constant("derived_min_rows", 1, ""))
    for module in (links, postings)
)


@dataclass(frozen=True)
class Way:
    """Figures that make the engine take one."""

    name: str
    patches: tuple[Patch, ...] = ()
    capacity: int = PLENTY
    is_forgetful: bool = False
    """Every query starts with nothing in memory."""
    is_profiled: bool = False
    """It is also asked what each step takes, and what it would."""

    @contextmanager
    def taken(self, cache: ByteCache) -> Iterator[None]:
        """Within, queries go this way, keep what they keep in this cache, and find it is `NOW`."""
        if self.is_forgetful:
            cache.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "now_us", lambda: epoch_milliseconds(NOW) * 1000)
            patch.setattr(reads, "shared_cache", lambda: cache)
            for module, name, value in self.patches:
                patch.setattr(module, name, value)
            yield

    def new_cache(self) -> ByteCache:
        return ByteCache(self.capacity)


WAYS = (
    Way("usual"),
    Way("portions", _PORTIONS),
    Way("as if large", (*_PORTIONS, *_AS_IF_LARGE, *_shares(0))),
    Way("as if many", _shares(10**6)),
    Way("unkept", _UNKEPT, NOTHING),
    Way("hardly kept", _UNKEPT, HARDLY_ANYTHING),
    Way("files", _FILES, is_forgetful=True),
    Way("profiled", is_profiled=True),
)
