"""File modes that hold for root too, as tests often run as root."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION = 0x20080522
"""The third version of Linux's capabilities: two words for each set."""
_OVERRIDES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which root passes over the modes of files."""


@contextmanager
def modes_hold() -> Iterator[None]:
    """This thread, and those it starts, may read and write what the modes of files permit."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()
    _check(libc.capget(header, sets))
    effective = sets[0]
    sets[0] = effective & ~_OVERRIDES
    _check(libc.capset(header, sets))
    try:
        yield
    finally:
        sets[0] = effective
        _check(libc.capset(header, sets))


def _check(code: int) -> None:
    if code != 0:
        raise OSError(ctypes.get_errno(), "capabilities")
