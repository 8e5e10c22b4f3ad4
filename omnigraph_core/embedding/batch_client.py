"""The batch API of a provider: a file of requests is submitted, and its answers come within a day.

Every method is one request that is never repeated. A failure is a value, as in `client`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from omnigraph_core.embedding.client import Ask, Failure

TRANSFER_SECONDS: Final = 600.0
"""A provider may be silent while a file is uploaded or downloaded."""


class BatchState(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the provider describes it."""

    id: str
    state: BatchState
    reason: str = ""
    """Why it failed, in the provider's words."""
    results: tuple[str, ...] = ()
    """Files of answers; one that did not complete may have some, too."""
    is_queue_full: bool = False
    """It failed because the account has too much in its queue."""


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The answer to one request of a batch: one unit vector, or why there is none."""

    id: str
    vector: NDArray[np.float32] | Failure


class BatchClient(Protocol):
    def request_line(self, id: str, text: str, ask: Ask) -> bytes:
        """The line of a file that asks for one vector."""

    def upload(self, path: Path) -> str | Failure:
        """Upload a file of requests; the provider's name of it."""

    def create(self, file: str, label: str, ask: Ask) -> Batch | Failure:
        """Submit an uploaded file; `label` finds the batch again."""

    def find(self, label: str) -> Batch | Failure | None:
        """The batch that was submitted with a label; None if there is none."""

    def get(self, id: str) -> Batch | Failure: ...

    def download(self, file: str, path: Path) -> Failure | None:
        """Write a file of answers to a path, part by part."""

    def delete_file(self, file: str) -> Failure | None: ...

    def read_answer(self, line: bytes, dimension: int) -> BatchAnswer | Failure:
        """One line of a file of answers; a failure if nobody can say which request it answers."""

    def close(self) -> None: ...
