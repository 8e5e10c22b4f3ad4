"""Lance, Arrow and object-store exceptions become ours, here and nowhere else.

`translated(doing, where)` wraps calls into the libraries. They report by text more than by type,
so the text decides: what is missing, what is full, what is forbidden, what may pass if tried again.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
from lance.commit import CommitConflictError
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from omnigraph_core.errors import ObjectNotFound, StorageError

LIBRARY_ERRORS: Final = (BaseError, OSError, ValueError, RuntimeError, pa.ArrowException)
"""Everything Lance, Arrow and obstore raise; wrap library calls only, never our own code."""

_MISSING: Final = re.compile(
    r"not found|no such file|NoSuchKey|NoSuchBucket|Unable to canonicalize filesystem root", re.I
)
_FULL: Final = re.compile(r"no space left|os error 28|os error 27|file too large|quota", re.I)
_FORBIDDEN: Final = re.compile(
    r"permission denied|os error 13|os error 1\b|os error 30|read-only|\b403\b|AccessDenied"
    r"|InvalidAccessKeyId|SignatureDoesNotMatch|not authorized|\b401\b",
    re.I,
)
_UNREACHABLE: Final = re.compile(
    r"error sending request|connection (refused|reset|closed)|timed? ?out|dns error"
    r"|after \d+ retries|incomplete message|\b50[0234]\b|SlowDown",
    re.I,
)
_DAMAGED: Final = re.compile(
    r"sufficient data|invalid range|decode|corrupt|magic|invalid (wire|protobuf|tag)|malformed"
    r"|out of bounds|overflow|unexpected (end|eof)|fill whole buffer|file size is too small",
    re.I,
)
_TOO_LARGE: Final = re.compile(r"offset overflow|overflowed .*capacity|capacity error", re.I)
_SOURCE_PLACE: Final = re.compile(r",?\s*/(?:[^,\s]*/)?rustc?/[^,\s]+:\d+:\d+")
_PATHS: Final = re.compile(r"[^\s<>]*/[^\s<>]*")
_DEBUG: Final = re.compile(r"\n\nDebug source:.*", re.S)


class translated:
    """Raise library failures as StorageError or ObjectNotFound that say what was done where."""

    __slots__ = ("_doing", "_where")

    def __init__(self, doing: str, where: str) -> None:
        self._doing = doing
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, _: object
    ) -> None:
        if problem is not None and (isinstance(problem, LIBRARY_ERRORS) or is_panic(problem)):
            raise storage_error(problem, self._doing, self._where) from problem


def is_panic(problem: BaseException) -> bool:
    """Whether Rust code gave up, as on a damaged file: no `Exception`, and nobody exports it."""
    return type(problem).__name__ == "PanicException"


def storage_error(problem: BaseException, doing: str, where: str) -> StorageError:
    """The error of ours that a library failure stands for."""
    told = brief(problem)
    message = f"{doing} failed at {where}: {told}"
    reason = _PATHS.sub("", told)  # a directory may be called anything
    if isinstance(problem, AlreadyExistsError | CommitConflictError):
        return StorageError(message, hint="another writer was first; try again", retryable=True)
    if is_missing(problem):
        return ObjectNotFound(
            message,
            hint="the file is gone: check the address, or restore it from a copy of the graph",
        )
    is_forbidden = isinstance(problem, PermissionDeniedError | UnauthenticatedError)
    if is_forbidden or _FORBIDDEN.search(reason):
        hint = "check permissions and credentials of this store"
        return StorageError(message, hint=hint, is_refused=True)
    if _FULL.search(reason):
        hint = "free some space and try again; nothing was published"
        return StorageError(message, hint=hint, is_refused=True)
    if _UNREACHABLE.search(reason):
        hint = "the store did not answer; check endpoint and network"
        return StorageError(message, hint=hint, retryable=True)
    if _TOO_LARGE.search(reason):
        hint = "these rows are too large to be read at once: ask for fewer of them"
        return StorageError(message, hint=hint, is_refused=True)
    if is_panic(problem) or _DAMAGED.search(reason):
        hint = "the file is damaged: restore it from a copy of the graph"
        return StorageError(message, hint=hint)
    return StorageError(message, hint="check the store, and try again")


def is_missing(problem: BaseException) -> bool:
    """Whether a library failure says that something does not exist."""
    if isinstance(problem, FileNotFoundError):
        return True
    return bool(_MISSING.search(_PATHS.sub("", brief(problem))))


def brief(problem: BaseException) -> str:
    """The library's text without its source positions and debug dump."""
    text = _SOURCE_PLACE.sub("", _DEBUG.sub("", str(problem)))
    return " ".join(text.split()) or type(problem).__name__
