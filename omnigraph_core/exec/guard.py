"""What a query may not exceed: its memory, its time, and the patience of whoever asked.

Work is done in portions, and the guard is asked between them, so a query stops soon after it has to
and leaves nothing behind.
"""

from __future__ import annotations

import threading
import time

from omnigraph_core.errors import BudgetExceeded, ConfigError, QueryCancelled, QueryTimeout


class Cancellation:
    """A way to stop a running query from another thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Make the query stop at its next portion; it raises QueryCancelled."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        return self._event.is_set()


def check_limits(
    timeout: float | None = None, memory: int | None = None, max_age: float | None = None
) -> None:
    """
    Raises:
        ConfigError: nothing can be read within them.
    """
    if timeout is not None and not timeout > 0:
        raise ConfigError(f"`timeout` is {timeout:g}, give more than 0 seconds")
    if memory is not None and memory < 1:
        raise ConfigError(f"`memory` is {memory}, give 1 byte or more")
    if max_age is not None and not max_age >= 0:
        raise ConfigError(f"`max_age` is {max_age:g}, give 0 seconds or more")


class Guard:
    """The limits of one run. Not shared between queries."""

    def __init__(
        self,
        *,
        budget: int,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self.budget = budget
        self.held = 0
        self.peak = 0
        self._timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._cancellation = cancellation

    def check(self) -> None:
        """Ask whether to go on: between portions of work.

        Raises:
            QueryCancelled, QueryTimeout: it is time to stop.
        """
        if self._cancellation is not None and self._cancellation.is_cancelled:
            raise QueryCancelled
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise QueryTimeout(self._timeout or 0.0)

    def expect(self, byte_count: int, clause: str) -> None:
        """Ask whether so many bytes more would fit, before making them.

        Raises:
            BudgetExceeded: they would not; names the clause that needs them.
        """
        if self.held + byte_count > self.budget:
            raise BudgetExceeded(clause, self.held + byte_count, self.budget)

    def hold(self, byte_count: int, clause: str) -> None:
        """Count bytes that stay until `release`, or until the query ends.

        Raises:
            BudgetExceeded: they do not fit; names the clause that needs them.
        """
        self.expect(byte_count, clause)
        self.held += byte_count
        self.peak = max(self.peak, self.held)

    def release(self, byte_count: int) -> None:
        self.held -= byte_count
