"""The spool: a private directory for what outlives a request but not a day.

Uploads, the state of jobs and answers under idempotency keys are small files here, so that all
workers of a server see the same. A file is whole or not there, and names of clients are never names
of files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from omnigraph_core.errors import ConfigError, StorageError
from omnigraph_core.ids import new_ulid
from omnigraph_core.settings import SERVER_SPOOL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

KEPT_SECONDS: Final = 86_400
"""How long a job and the answer to a key can be asked for."""

_SWEEP_SECONDS: Final = 600
_PRIVATE: Final = 0o700
_UPLOADS: Final = "uploads"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Spool:
    """The directory; made when it is first needed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._swept = 0.0

    @classmethod
    def from_settings(cls) -> Spool:
        """
        Raises:
            ConfigError: the directory cannot be made, or is open to others.
        """
        chosen = SERVER_SPOOL.read()
        root = Path(chosen) if chosen else _default_root()
        spool = cls(root)
        try:
            spool.area(_UPLOADS)
        except StorageError as problem:
            told = getattr(problem.__cause__, "strerror", None)
            raise ConfigError(
                f"cannot make the spool directory {root}: {told}", hint=_HINT
            ) from problem
        return spool

    def area(self, *names: str) -> Path:
        """A directory below; the names are ours or digests.

        Raises:
            ConfigError: the spool is not ours alone.
            StorageError: the directory cannot be made.
        """
        path = self._root.joinpath(*names)
        try:
            # Whenever: those who tidy up temporary files take it away under a running server.
            self._root.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            self._check()
            path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        except OSError as problem:
            raise spool_failed(problem) from problem
        return path

    def _check(self) -> None:
        # In a directory all may write to, somebody else could have made it before us.
        facts = self._root.lstat()
        is_ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
        if not is_ours or facts.st_mode & 0o022:
            raise ConfigError(f"others may write to the spool directory {self._root}", hint=_HINT)

    def unnamed_file(self) -> IO[bytes]:
        """A file to write and read, gone when it is closed or the process ends."""
        return tempfile.TemporaryFile(dir=self.area(_UPLOADS))

    @contextmanager
    def directory(self) -> Iterator[Path]:
        """A directory of one request, gone after the block."""
        path = self.area(_UPLOADS, new_ulid())
        claim = Claim.try_take(path / Claim.SUFFIX)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
            if claim is not None:
                claim.release()

    def sweep(self) -> None:
        """Remove what is older than a day; looks every ten minutes at most."""
        now = time.time()
        if now - self._swept < _SWEEP_SECONDS:
            return
        self._swept = now
        for path in self._kept():
            with contextlib.suppress(OSError):  # another worker sweeps, too
                if path.lstat().st_mtime < now - KEPT_SECONDS:
                    _remove(path)

    def _kept(self) -> tuple[Path, ...]:
        found: list[Path] = []
        with contextlib.suppress(FileNotFoundError):  # nothing was ever kept, or it is gone
            for area in self._root.iterdir():
                if area.is_dir():
                    found += area.iterdir() if area.name == _UPLOADS else area.rglob("*")
        return tuple(found)


def spool_of(request: Request) -> Spool:
    """The spool of the server that answers a request."""
    state = request.app.state
    if not hasattr(state, "spool"):
        state.spool = Spool.from_settings()
    found: Spool = state.spool
    return found


_HINT: Final = f"name another one with {SERVER_SPOOL.name}"


def _default_root() -> Path:
    return Path(tempfile.gettempdir()) / f"omnigraph-server-{os.getuid()}"


def _remove(path: Path) -> None:
    """Remove a file, or a directory with all that is in it, unless somebody claims it."""
    is_directory = path.is_dir() and not path.is_symlink()
    if not is_directory and path.suffix != Claim.SUFFIX:
        path.unlink()
        return
    if is_directory and not (path / Claim.SUFFIX).exists():
        path.rmdir()  # refused while there is something in it
        return
    claim = Claim.try_take(path / Claim.SUFFIX if is_directory else path)
    if claim is not None:
        shutil.rmtree(path) if is_directory else path.unlink()
        claim.release()


class Claim:
    """A lock on a name that ends with its process, however that ends."""

    SUFFIX: Final = ".lock"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def try_take(cls, path: Path) -> Claim | None:
        """The claim; None while anybody else has it, in this process or another.

        Raises:
            StorageError: the disk does not take it.
        """
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as problem:
                raise spool_failed(problem) from problem
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            if os.fstat(descriptor).st_nlink:
                return cls(descriptor)
            os.close(descriptor)  # swept between opening and locking: it protects nothing

    def release(self) -> None:
        os.close(self._descriptor)


def digest_of(*parts: str) -> str:
    """A name for a file that several texts stand for."""
    whole = json.dumps(parts, ensure_ascii=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:40]


def keep(path: Path, document: object) -> None:
    """Write a document so that readers see the old one or the new one.

    Raises:
        StorageError: it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{new_ulid()}")
    try:
        try:
            unfinished.write_bytes(json.dumps(document, ensure_ascii=False).encode())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as problem:
        raise spool_failed(problem) from problem


def try_read(path: Path) -> dict[str, Any] | None:
    """A document that was kept; None if there is none."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def spool_failed(problem: OSError) -> StorageError:
    """What to tell whoever sent more than the disk takes."""
    is_full = problem.errno in _FULL
    reason = "is full" if is_full else f"failed: {problem.strerror}"
    return StorageError(f"the spool directory of the server {reason}", hint=_HINT)
