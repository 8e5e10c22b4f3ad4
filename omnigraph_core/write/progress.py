"""What a long write tells while it runs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Step(StrEnum):
    READ = "read"
    VALIDATED = "validated"
    BATCHED = "batched"
    """Texts whose vectors came by the provider's batch API."""
    EMBEDDED = "embedded"
    STAGED = "staged"


@dataclass(frozen=True, slots=True)
class Progress:
    """So many rows have passed a step since the write began."""

    step: Step
    rows: int


Listener: TypeAlias = Callable[[Progress], None]


class Reporter:
    """Counts rows per step and tells a listener, if there is one, from one thread at a time."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._rows: Counter[Step] = Counter()
        self._lock = threading.Lock()

    def add(self, step: Step, rows: int) -> None:
        with self._lock:
            self._rows[step] += rows
            if self._listener is not None and rows:
                self._listener(Progress(step, self._rows[step]))

    def restart(self) -> None:
        """Begin counting anew: the input is read another time."""
        self._rows.clear()
