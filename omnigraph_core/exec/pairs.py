"""Whether two nodes are linked, for many pairs at once: pure functions over sorted neighbours.

Few pairs are looked up by bisection inside the slice of their source. For many pairs a table of
hashed bits first rejects nearly all that are not linked; what it lets through is looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.exec.expand import slices_of

if TYPE_CHECKING:
    from omnigraph_core.topology.neighbours import Neighbours

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)
_BITS_PER_PAIR: Final = 16
_MOST_BITS: Final = 30


def are_linked(neighbours: Neighbours, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Which targets are among the neighbours of the source beside them."""
    if len(sources) > 1 and bool((sources == sources[0]).all()):
        return among(neighbours, int(sources[0]), targets)
    starts, counts = slices_of(neighbours, sources)
    ends = starts + counts
    found = _bisect(neighbours.targets, starts, counts, targets)
    # A place at the end of its slice holds nothing of it; any other place will do for the look-up.
    held = neighbours.targets.take(found, mode="clip") if len(neighbours.targets) else targets
    linked: np.ndarray = (found < ends) & (held == targets)
    return linked


def among(neighbours: Neighbours, source: int, targets: np.ndarray) -> np.ndarray:
    """Which targets are among the neighbours of one node."""
    starts, counts = neighbours.slices(np.array([source]))
    held = neighbours.targets[starts[0] : starts[0] + counts[0]]
    if not len(held):
        return np.zeros(len(targets), np.bool_)
    flags = np.zeros(max(int(held[-1]), int(targets.max(initial=0))) + 1, np.bool_)
    flags[held] = True
    return flags.take(targets)


def slices_between(
    neighbours: Neighbours, sources: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where the edges of each pair start, and how many there are: parallel ones are several."""
    starts, counts = slices_of(neighbours, sources)
    first = _bisect(neighbours.targets, starts, counts, targets)
    after = _bisect(neighbours.targets, first, starts + counts - first, targets + 1)
    return first, after - first


def _bisect(
    held: np.ndarray, starts: np.ndarray, counts: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """For each ascending slice the first position that holds no less than what is wanted."""
    found = starts.copy()
    if not len(held):
        return found
    ends = starts + counts
    step = 1 << int(counts.max(initial=0)).bit_length()
    while step := step >> 1:
        probes = found + (step - 1)
        is_less = held.take(probes, mode="clip") < wanted
        is_less &= probes < ends
        found += is_less * step
    return found


@dataclass(frozen=True, slots=True)
class PairTable:
    """A set of linked pairs that may say yes wrongly, never no: bits at hashed places."""

    bits: np.ndarray
    shift: np.uint64

    @property
    def nbytes(self) -> int:
        return int(self.bits.nbytes)

    def may_hold(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Which pairs may be linked; no number is negative."""
        places = _places(sources, targets, self.shift)
        bits = self.bits.take(places >> 3) >> (places & 7).astype(np.uint8)
        bits &= 1
        return bits.view(np.bool_)


def pair_table(neighbours: Neighbours) -> PairTable:
    """The table of all linked pairs."""
    neighbours = neighbours.packed()
    width = (len(neighbours.targets) * _BITS_PER_PAIR).bit_length()
    width = min(max(width, 10), _MOST_BITS)
    shift = np.uint64(64 - width)
    flags = np.zeros(1 << width, np.bool_)
    sources = np.repeat(np.arange(neighbours.node_count, dtype=np.int32), neighbours.degrees())
    flags[_places(sources, neighbours.targets, shift)] = True
    return PairTable(np.packbits(flags, bitorder="little"), shift)


def _places(sources: np.ndarray, targets: np.ndarray, shift: np.uint64) -> np.ndarray:
    mixed = sources.astype(np.uint64)
    mixed <<= _HALF
    mixed |= targets.astype(np.uint64)
    mixed *= _SPREAD
    mixed >>= shift
    return mixed.view(np.int64)
