"""Lance, Arrow and object-store exceptions become ours, here and nowhere else.

`translated(doing, where)` wraps calls into the libraries. They report by text more than by type,
so the text decides: what is missing, what is full, what is forbidden, what may pass if tried again.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance.commit import CommitConflictError
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from omnigraph_core.errors import ObjectNotFound, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_SOURCE_PLACE: Final = re.compile(r",?\s*/(?:[^,\s]*/)?rustc?/[^,\s]+:\d+:\d+")
_DEBUG: Final = re.compile(r"\n\nDebug source:.*", re.S)


@contextlib.contextmanager
def translated(doing: str, where: str) -> Iterator[None]:
    """Raise library failures as StorageError or ObjectNotFound that say what was done where."""
    try:
        yield
    except LIBRARY_ERRORS as problem:
        raise storage_error(problem, doing, where) from problem


def storage_error(problem: Exception, doing: str, where: str) -> StorageError:
    """The error of ours that a library failure stands for."""
    reason = brief(problem)
    message = f"{doing} failed at {where}: {reason}"
    if isinstance(problem, AlreadyExistsError | CommitConflictError):
        return StorageError(message, hint="another writer was first; try again", retryable=True)
    if is_missing(problem):
        return ObjectNotFound(
            message,
            hint="the file is gone: check the address, or restore it from a copy of the graph",
        )
    if isinstance(problem, PermissionDeniedError | UnauthenticatedError) or _FORBIDDEN.search(
        reason
    ):
        return StorageError(message, hint="check permissions and credentials of this store")
    if _FULL.search(reason):
        return StorageError(message, hint="free some space and try again; nothing was published")
    if _UNREACHABLE.search(reason):
        return StorageError(
            message, hint="the store did not answer; check endpoint and network", retryable=True
        )
    if _DAMAGED.search(reason):
        return StorageError(
            message, hint="the file is damaged: restore it from a copy of the graph"
        )
    return StorageError(message)


def is_missing(problem: Exception) -> bool:
    """Whether a library failure says that something does not exist."""
    return isinstance(problem, FileNotFoundError) or bool(_MISSING.search(brief(problem)))


def brief(problem: Exception) -> str:
    """The library's text without its source positions and debug dump."""
    text = _SOURCE_PLACE.sub("", _DEBUG.sub("", str(problem)))
    return " ".join(text.split()) or type(problem).__name__
