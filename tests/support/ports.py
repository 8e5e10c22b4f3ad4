"""Ports of this machine: free ones for processes that cannot choose by themselves, and dead ones.

Whoever can bind port 0 does that instead. Between the choice and the start another process may take
a port, so who starts something on a chosen port has to be ready to choose again.
"""

from __future__ import annotations

import contextlib
import random
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

ATTEMPTS: Final = 3
"""How often to choose anew before giving up."""

_CHANCE: Final = random.SystemRandom()
"""Not to be seeded: two test runs must not choose alike."""


def free_port(apart: Collection[int] = (0,), *, least: int = 10_000, most: int = 29_000) -> int:
    """A port such that it, and those that far behind it, are free.

    The range is below the one from which the system hands out ports by itself.
    """
    while True:
        port = _CHANCE.randrange(least, most)
        if all(is_free(port + distance) for distance in apart):
            return port


def is_free(port: int) -> bool:
    """Whether somebody could listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def dead_port() -> Iterator[int]:
    """A port that refuses connections for a block: it is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
