"""Copies of remote files on this machine: a name and its content come in, a path goes out.

A copy appears whole or not at all. Together they stay below a number of bytes: those not used
longest go first. Nothing depends on one being there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omnigraph_core import settings
from omnigraph_core.constants import DERIVED_COPY_BYTES
from omnigraph_core.ids import new_ulid

if TYPE_CHECKING:
    from collections.abc import Iterable

TEMPORARY: Final = ".tmp-"
"""In the names of files that are being written."""

_OWN_DIRECTORY: Final = 0o700
_OWN_FILE: Final = 0o600
"""Copies hold words of the graph's texts: they are for their owner alone."""

_ABANDONED_SECONDS: Final = 86_400.0
"""After that a file being written is taken for one of a process that was killed."""


class LocalCopies:
    """The copies of one store's files. Safe for threads, and for processes that share them."""

    def __init__(self, root: str) -> None:
        self._store = hashlib.sha256(root.encode()).hexdigest()[:16]

    def path(self, name: str) -> Path | None:
        """Where the copy of a file is or would be; None without a directory for them."""
        directory = _directory()
        return None if directory is None else directory / self._store / name

    def use(self, path: Path) -> None:
        """Remember that a copy was needed just now."""
        with contextlib.suppress(OSError):
            os.utime(path)

    def add(self, path: Path, content: Iterable[bytes | memoryview]) -> None:
        """Keep a copy; others may have to go.

        Raises:
            OSError: there is no space or no permission.
        """
        path.parent.mkdir(parents=True, exist_ok=True, mode=_OWN_DIRECTORY)
        write_whole(path, content, mode=_OWN_FILE)
        directory = _directory()
        if directory is not None:
            _trim(directory, DERIVED_COPY_BYTES.value, spared=path)


def write_whole(path: Path, content: Iterable[bytes | memoryview], *, mode: int = 0o666) -> None:
    """Write a file that is seen with all of its content or not at all, replacing one that is there.

    Args:
        mode: who may read and write it, as far as the process lets anybody.

    Raises:
        OSError: it cannot be written.
    """
    temporary = path.with_name(f"{path.name}{TEMPORARY}{new_ulid()}")
    try:
        temporary.touch(mode, exist_ok=False)
        with temporary.open("wb") as file:
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())  # else a power cut may leave the name and not the content
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _directory() -> Path | None:
    named = settings.CACHE_DIR.read()
    try:
        if named is not None:
            return Path(named).expanduser()
        user = settings.XDG_CACHE_HOME.read()
        parent = Path(user) if user is not None else Path.home() / ".cache"
    except RuntimeError:  # there is no home directory
        return None
    return parent / "omnigraph" / "derived"


def _trim(directory: Path, capacity: int, *, spared: Path) -> None:
    """Remove copies until the others fit, and files that nobody finished."""
    abandoned = time.time() - _ABANDONED_SECONDS
    copies = []
    for path in directory.rglob("*.arrays*"):
        with contextlib.suppress(OSError):  # another process is doing the same
            found = path.stat()
            if TEMPORARY not in path.name:
                copies.append((found.st_mtime, found.st_size, path))
            elif found.st_mtime < abandoned:
                path.unlink()
    held = sum(size for _, size, _ in copies)
    for _, size, path in sorted(copies):
        if held <= capacity:
            return
        if path != spared:
            with contextlib.suppress(OSError):
                path.unlink()
            held -= size
