"""Blocks of bytes that tasks exchange: each task emits some for every partition, where they meet.

A section says what the bytes mean. A task emits a section once, for all partitions together, so
that nothing here is done once per partition.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa

Received: TypeAlias = "dict[int, list[tuple[int, bytes]]]"
"""By section the blocks of a partition, in the order of the tasks that emitted them."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """What a task emits of one section: bytes `ends[p]` to `ends[p + 1]` are for partition p."""

    section: int
    ends: np.ndarray
    """One more than there are partitions; the first is 0."""
    content: bytes | np.ndarray | pa.Buffer


class Gathered:
    """Blocks by partition and section, whatever order they arrive in."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[int, list[tuple[int, bytes]]]] = defaultdict(
            lambda: defaultdict(list)
        )

    def add(self, partition: int, writer: int, section: int, block: bytes) -> None:
        self._blocks[partition][section].append((writer, block))

    def partitions(self) -> Iterator[tuple[int, dict[int, list[tuple[int, bytes]]]]]:
        """Each partition once, its blocks by the number of the task that emitted them."""
        for partition in sorted(self._blocks):
            found = self._blocks.pop(partition)
            yield (
                partition,
                {
                    section: sorted(blocks, key=lambda one: one[0])
                    for section, blocks in sorted(found.items())
                },
            )
