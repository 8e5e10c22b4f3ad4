"""The answers of one batch: lines of files in, checked vectors into the store, failures by key out.

Nothing a provider says is believed: an answer nobody asked for, a second one and a missing one
count as failures. Of the vectors only some are in memory at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.embedding.client import Failure

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from omnigraph_core.embedding.batch_jobs import BatchJobs
    from omnigraph_core.write.batch_records import BatchRecord
    from omnigraph_core.write.paid_vectors import PaidVectors

_KEPT_BYTES: Final = 32 << 20
"""Of vectors that are kept as one object."""
_SHOWN_PROBLEMS: Final = 10
_SHOWN_ID: Final = 64


class Collector:
    """Reads the answers of a batch."""

    def __init__(
        self, paid: PaidVectors, jobs: BatchJobs, record: BatchRecord, keys: np.ndarray
    ) -> None:
        self._paid = paid
        self._jobs = jobs
        self._record = record
        self._expected = {key.tobytes().hex(): key.tobytes() for key in keys}
        self._left = dict(self._expected)
        self._some: dict[bytes, NDArray[np.float32]] = {}
        self.answered = 0
        """Vectors that are kept."""
        self.problems: list[str] = []
        """What is wrong with lines that answer no request, the first ones."""
        self.refused: dict[bytes, str] = {}
        """Why texts got no vector and would get none if they were sent again, by key."""

    def add_file(self, path: Path) -> None:
        """Keep the vectors of a file."""
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    self._add(number, line)
        self._keep()

    def end(self, *, is_complete: bool) -> int:
        """How many texts have no vector. In a batch that is complete, one without any answer was
        refused; in another it was not sent."""
        unanswered = self._record.count - self.answered
        if is_complete:
            for key in self._left.values():
                self.refused[key] = "the batch is complete and has no answer for it"
        return unanswered

    def _add(self, number: int, line: bytes) -> None:
        answer = self._jobs.read_answer(line, self._record.dimension)
        if isinstance(answer, Failure):
            self._object(number, answer.message)
            return
        key = self._left.pop(answer.id, None)
        if key is None:
            found = "a second one" if answer.id in self._expected else "one that nobody asked for"
            shown = answer.id[:_SHOWN_ID]
            self._object(number, f"expected one answer to each request, found {found}: {shown!r}")
        elif not isinstance(answer.vector, Failure):
            self._some[key] = answer.vector
            if len(self._some) * self._record.dimension * 4 >= _KEPT_BYTES:
                self._keep()
        elif not answer.vector.is_retryable:
            self.refused[key] = answer.vector.message

    def _keep(self) -> None:
        if self._some:
            self._paid.keep(list(self._some), np.stack(list(self._some.values())))
            self.answered += len(self._some)
            self._some.clear()

    def _object(self, number: int, message: str) -> None:
        if len(self.problems) < _SHOWN_PROBLEMS:
            self.problems.append(f"line {number} of its answers: {message}")
