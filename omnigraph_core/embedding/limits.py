"""How fast a provider is asked: the limits of an account, and who lets requests go by them.

Requests go one by one, evenly, at 95 % of what is allowed: some may take three seconds longer than
others to arrive, and still no 60 seconds at the provider hold more than the limit.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SHARE: Final = 0.95
"""Of a limit that is used."""
_MINUTE: Final = 60.0 / _SHARE
"""Seconds in which no more is sent than a minute allows."""
_BEHIND: Final = 1.0
"""Seconds of requests that may follow at once if they are late: a slow machine keeps the rate."""
_TURN_SECONDS: Final = 1.0
"""Between two looks, of those who wait for their turn, whether they are to stop."""
_BYTES_PER_TOKEN: Final = 3
"""English text has about four, Chinese three: rather too many tokens are expected than too few."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an account allows per minute; None: any number."""

    requests: float | None = None
    tokens: float | None = None

    def divided(self, parties: int) -> Limits:
        """The part of each of several parties that know nothing of each other."""
        return Limits(
            None if self.requests is None else self.requests / parties,
            None if self.tokens is None else self.tokens / parties,
        )


class Limiter(Protocol):
    """Lets requests go; safe to share between threads."""

    def acquire(self, tokens: int, stop: threading.Event) -> bool:
        """Wait until one request of so many tokens may be sent; False if `stop` was first."""
        ...

    def pause(self, seconds: float) -> None:
        """Let nobody go for so long: the provider has asked for it."""
        ...


class RateLimiter:
    """Holds limits for all who ask it."""

    def __init__(self, limits: Limits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._turn = threading.Lock()
        self._next = 0.0
        self._resumed = 0.0
        self._sent: deque[tuple[float, int]] = deque()
        self._sent_tokens = 0
        self.granted = 0
        """Requests that were let go."""

    def acquire(self, tokens: int, stop: threading.Event) -> bool:
        while not self._turn.acquire(timeout=_TURN_SECONDS):
            if stop.is_set():
                return False
        try:
            # Asked again after each wait: a pause may have been called for meanwhile.
            while (seconds := self._due(tokens) - self._clock()) > 0:
                if stop.wait(seconds):
                    return False
            if stop.is_set():
                return False
            self._take(tokens)
        finally:
            self._turn.release()
        return True

    def pause(self, seconds: float) -> None:
        self._resumed = max(self._resumed, self._clock() + seconds)

    def _due(self, tokens: int) -> float:
        """When a request may be sent."""
        due = max(self._next, self._resumed)
        allowed = self._limits.tokens
        if allowed is None:
            return due
        self._forget()
        total = self._sent_tokens + tokens
        for moment, count in self._sent:
            if total <= allowed:
                break
            due = max(due, moment + _MINUTE)
            total -= count
        return due

    def _forget(self) -> None:
        passed = self._clock() - _MINUTE
        while self._sent and self._sent[0][0] <= passed:
            self._sent_tokens -= self._sent.popleft()[1]

    def _take(self, tokens: int) -> None:
        now = self._clock()
        gap = 0.0
        if self._limits.requests is not None:
            gap = _MINUTE / self._limits.requests
        if self._limits.tokens is not None:
            gap = max(gap, tokens * _MINUTE / self._limits.tokens)
            self._sent.append((now, tokens))
            self._sent_tokens += tokens
        self._next = max(self._next, now - _BEHIND) + gap
        self.granted += 1


def estimated_tokens(texts: Sequence[str]) -> int:
    """About how many tokens texts have, rather more than fewer.

    >>> estimated_tokens(["a hex bolt", "螺栓"])
    6
    """
    return sum(-(-_byte_count(text) // _BYTES_PER_TOKEN) for text in texts)


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


_shared: Final[dict[tuple[str, Limits], RateLimiter]] = {}
_sharing: Final = threading.Lock()


def shared_limiter(base_url: str, limits: Limits) -> RateLimiter:
    """The limiter of this process for a provider: whoever asks it, its limits hold for all."""
    with _sharing:
        return _shared.setdefault((base_url, limits), RateLimiter(limits))
