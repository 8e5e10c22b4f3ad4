"""What every provider's client is: texts in, an answer or a failure out, one request per call.

A failure is a value, so that whoever repeats requests decides what becomes an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


class Task(StrEnum):
    """What a vector is for: some models tell stored texts from questions."""

    DOCUMENT = "RETRIEVAL_DOCUMENT"
    QUERY = "RETRIEVAL_QUERY"


@dataclass(frozen=True, slots=True)
class Ask:
    """What the texts of one call have in common."""

    model: str
    dimension: int
    task: Task


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request gave no vectors."""

    message: str
    is_retryable: bool = False
    retry_after: float | None = None
    """Seconds the provider asks to wait."""
    is_throttled: bool = False
    """The provider has had too many requests."""
    is_denied: bool = False
    """The provider does not accept the key."""
    is_missing: bool = False
    """The provider does not have what was asked for: a file, a batch, or the whole service."""


class Client(Protocol):
    """A provider; safe to share between threads."""

    def vectors(
        self, texts: Sequence[str], ask: Ask, *, timeout: float
    ) -> NDArray[np.float32] | Failure:
        """One unit vector per text, in order; one request, never repeated."""

    def close(self) -> None: ...
