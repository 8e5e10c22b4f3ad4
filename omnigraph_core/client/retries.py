"""When a request may be sent again, and how long to wait before: pure decisions.

A read may always be repeated. A write may be repeated where it has certainly not begun, or under a
key by which the server knows it again: it is then done once, however often it is sent.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from typing import Final

ATTEMPTS: Final = 4
"""How often a request is sent at most."""
_FIRST_WAIT: Final = 0.2
_LONGEST_WAIT: Final = 5.0
_LONGEST_ASKED: Final = 30.0
"""A server that wants a longer pause gets none: the caller is told."""


class Failure(Enum):
    """What became of a request that has no usable answer."""

    NOT_SENT = "not sent"
    """There was no connection: the server knows nothing of it."""
    LOST = "lost"
    """It may have been carried out; the answer did not arrive."""
    REFUSED = "refused"
    """Too many requests: it has not begun."""
    UNAVAILABLE = "unavailable"
    """The server, or something behind it, cannot answer at the moment."""
    UNDER_WAY = "under way"
    """The same request was sent before and is being worked on."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a request that may be a write, and may have a key."""

    number: int
    """From 1."""
    is_read: bool
    is_keyed: bool

    def may_repeat(self, failure: Failure) -> bool:
        """Whether the request may be sent once more.

        >>> Attempt(1, is_read=False, is_keyed=False).may_repeat(Failure.LOST)
        False
        """
        if self.number >= ATTEMPTS:
            return False
        match failure:
            case Failure.NOT_SENT | Failure.REFUSED:
                return True
            case Failure.LOST:
                return self.is_read or self.is_keyed
            case Failure.UNAVAILABLE:
                return self.is_read
            case Failure.UNDER_WAY:
                return self.is_keyed and self.number > 1

    def wait(self, asked: float | None = None) -> float | None:
        """Seconds until the next try; None if the server asks for more than is worth waiting.

        Tries of many clients are spread, so that they do not come back all at once.
        """
        if asked is not None:
            return asked if asked <= _LONGEST_ASKED else None
        longest = min(_LONGEST_WAIT, _FIRST_WAIT * float(2 ** (self.number - 1)))
        return longest * random.uniform(0.5, 1.0)


def retry_after(header: str | None) -> float | None:
    """What a server asks for, in seconds; None without a number.

    >>> retry_after("2"), retry_after(None), retry_after("Wed, 21 Oct 2026 07:28:00 GMT")
    (2.0, None, None)
    """
    text = (header or "").strip()
    return float(text) if text.isascii() and text.isdigit() else None
