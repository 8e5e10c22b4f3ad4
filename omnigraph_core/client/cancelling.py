"""A request that is given up from another thread: its connection is ended, and the server stops."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from omnigraph_core.exec.guard import Cancellation

_GLANCE: Final = 0.05
"""Seconds between two looks at whether to give up."""


class Watch:
    """Ends the connections of a block once a cancellation says so."""

    def __init__(self, cancellation: Cancellation) -> None:
        self._cancellation = cancellation
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="omnigraph-cancel", daemon=True)
        self._socket: socket.socket | None = None

    @property
    def is_cancelled(self) -> bool:
        return self._cancellation.is_cancelled

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def trace(self, event: str, facts: Mapping[str, Any]) -> None:
        """Told by the connection pool what it does: which connection it has made."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = facts["return_value"].get_extra_info("socket")

    def _watch(self) -> None:
        while not self._done.wait(_GLANCE):
            if self._cancellation.is_cancelled:
                self._end()

    def _end(self) -> None:
        """Closing alone would not wake the thread that waits for the answer."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
