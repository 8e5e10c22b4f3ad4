"""Vectors already paid for, in one SQLite file: keys in, vectors out.

Several threads and processes may use the file at once. It is only a cache: one that cannot be
opened is done without, a damaged one is set aside and begun anew.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
import time
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from omnigraph_core.constants import EMBED_CACHE_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

T = TypeVar("T")

_log = logging.getLogger(__name__)

_CHUNK: Final = 500
"""Keys per statement: every SQLite allows that many."""

_PRECISION: Final = 60.0
"""Seconds a last use may be out by: reading again soon need not write."""

_BUSY: Final = 10.0
"""Seconds to wait for another process."""

_PAUSE: Final = 0.01
"""Seconds before asking another process again."""

_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_IN_USE: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, used REAL NOT NULL);
CREATE INDEX IF NOT EXISTS vectors_by_use ON vectors (used);
"""


def cache_key(scope: Sequence[str], text: str) -> bytes:
    """What a vector is kept under: a hash of everything it depends on."""
    # Lengths keep the parts apart: no two sequences are written alike.
    content = "".join(f"{len(part)}:{part}" for part in (*scope, text))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()


class VectorCache:
    """A file of vectors, opened on first need; safe to share between threads."""

    def __init__(self, path: Path, limit: int = EMBED_CACHE_ENTRIES.value) -> None:
        self._path = path
        self._limit = limit
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._is_off = False

    def iter_found(
        self, keys: Sequence[bytes], dimension: int
    ) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Positions of keys that are known, with their vectors, some at a time."""
        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            known = self._attempt(partial(_read, keys=chunk)) or {}
            found = {
                start + offset: vector
                for offset, key in enumerate(chunk)
                if (vector := _vector(known.get(key), dimension)) is not None
            }
            if found:
                yield list(found), np.stack(list(found.values()))

    def put(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep these; the ones not used longest make room."""
        rows = [
            (key, vector.astype("<f4").tobytes()) for key, vector in zip(keys, vectors, strict=True)
        ]
        self._attempt(partial(_write, rows=rows, limit=self._limit))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """The work done, or None: whatever is wrong with the file must not stop an embedding."""
        with self._lock:
            if self._is_off:
                return None
            try:
                return self._work(work)
            except (sqlite3.Error, OSError) as problem:
                _log.warning("the embedding cache %s is not used: %s", self._path, problem)
                self._is_off = _code(problem) not in _IN_USE
                return None

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._open())
        except sqlite3.DatabaseError as problem:
            if _code(problem) not in _DAMAGED:
                raise
            self._begin_anew()
            return work(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _connect(self._path)
        return self._connection

    def _begin_anew(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if _is_sound(self._path):  # another process was faster
            return
        aside = self._path.with_name(f"{self._path.name}.damaged")
        _log.warning("the embedding cache %s is damaged: moved to %s", self._path, aside)
        with suppress(FileNotFoundError):
            self._path.replace(aside)
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    patience = time.monotonic() + _BUSY
    while True:
        connection = sqlite3.connect(
            path, timeout=_BUSY, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection)
        except sqlite3.Error as problem:
            connection.close()
            # SQLite itself does not wait for another process that is making the file.
            if _code(problem) not in _IN_USE or time.monotonic() > patience:
                raise
            time.sleep(_PAUSE)
        else:
            return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    # A power cut may lose the newest vectors, never the file.
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.executescript(_SCHEMA)


def _code(problem: Exception) -> int:
    """What SQLite calls the problem, without its finer distinctions; 0 if it is not SQLite's."""
    return int(getattr(problem, "sqlite_errorcode", 0)) & 0xFF


def _is_sound(path: Path) -> bool:
    try:
        with closing(_connect(path)) as connection:
            verdict: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError:
        return False
    return verdict == "ok"


def _read(connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    marks = ",".join("?" * len(keys))
    rows = connection.execute(
        f"SELECT key, vector, used FROM vectors WHERE key IN ({marks})", keys
    ).fetchall()
    now = time.time()
    idle = [(now, key) for key, _, used in rows if abs(now - used) > _PRECISION]
    if idle:
        with _transaction(connection):
            connection.executemany("UPDATE vectors SET used = ? WHERE key = ?", idle)
    return {key: vector for key, vector, _ in rows}


def _write(connection: sqlite3.Connection, rows: Sequence[tuple[bytes, bytes]], limit: int) -> None:
    now = time.time()
    with _transaction(connection):
        connection.executemany(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", [(*row, now) for row in rows]
        )
        (count,) = connection.execute("SELECT COUNT(*) FROM vectors").fetchone()
        if count > limit:
            connection.execute(
                "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors ORDER BY used LIMIT ?)",
                (count - limit,),
            )


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    # Takes the write lock at once: one taken midway cannot wait for another process.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.rollback()


def _vector(content: bytes | None, dimension: int) -> NDArray[np.float32] | None:
    if content is None or len(content) != 4 * dimension:
        return None
    vector = np.frombuffer(content, "<f4").astype(np.float32, copy=False)
    return vector if np.isfinite(vector).all() else None
