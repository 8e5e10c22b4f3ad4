"""Texts of the libraries, as they were seen, and what they stand for."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance.commit import CommitConflictError
from obstore.exceptions import (
    AlreadyExistsError,
    GenericError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from omnigraph_core.errors import InvariantBroken, ObjectNotFound, StorageError
from omnigraph_core.storage.translate import brief, is_missing, storage_error, translated
from tests.support.cases import each

WHERE = "/lake/nodes/2e3f2619ed36c3b4"


def told(problem: Exception) -> StorageError:
    return storage_error(problem, "reading", WHERE)


MISSING = [
    ValueError("Dataset at path lake/x was not found: Not found: lake/x/_versions"),
    FileNotFoundError(2, "gone"),
    NotFoundError("Object at location x not found"),
    OSError("LanceError(IO): No such file or directory (os error 2)"),
    GenericError("Generic S3 error: <Code>NoSuchKey</Code>"),
    GenericError("Generic S3 error: <Code>NoSuchBucket</Code>"),
    GenericError("Unable to canonicalize filesystem root: /lake"),
    pa.ArrowInvalid("External error: Not found: lake/x/data/1.lance"),
]


@each("problem", MISSING)
def test_missing(problem: Exception) -> None:
    found = told(problem)
    assert isinstance(found, ObjectNotFound)
    assert is_missing(problem)
    assert not found.retryable
    assert found.message.startswith(f"reading failed at {WHERE}: ")
    assert "restore" in str(found)


FULL = [
    OSError(28, "No space left on device"),
    OSError("LanceError(IO): Generic LocalFileSystem error: No space left on device (os error 28)"),
    OSError("LanceError(IO): Unable to copy data: File too large (os error 27)"),
    OSError(122, "Disk quota exceeded"),
]


@each("problem", FULL)
def test_full(problem: Exception) -> None:
    found = told(problem)
    assert type(found) is StorageError
    assert not found.retryable
    assert found.hint == "free some space and try again; nothing was published"


FORBIDDEN = [
    PermissionDeniedError("The operation lacked the necessary privileges"),
    UnauthenticatedError("no valid credentials"),
    PermissionError(13, "Permission denied"),
    OSError("LanceError(IO): Unable to create dir: Permission denied (os error 13)"),
    OSError("Operation not permitted (os error 1)"),
    OSError("LanceError(IO): Read-only file system (os error 30)"),
    OSError("Client error with status 403 Forbidden: <Code>AccessDenied</Code>"),
    OSError("Client error with status 403 Forbidden: <Code>SignatureDoesNotMatch</Code>"),
    OSError("Client error with status 401 Unauthorized"),
]


@each("problem", FORBIDDEN)
def test_forbidden(problem: Exception) -> None:
    found = told(problem)
    assert type(found) is StorageError
    assert not found.retryable
    assert found.hint == "check permissions and credentials of this store"


UNREACHABLE = [
    GenericError("Generic S3 error: error sending request for url (http://127.0.0.1:1/x)"),
    OSError("LanceError(IO): tcp connect error: Connection refused (os error 111)"),
    OSError("connection closed before message completed"),
    OSError("Connection reset by peer (os error 104)"),
    OSError("operation timed out"),
    OSError("dns error: failed to lookup address information"),
    OSError("Server error: retries exhausted after 6 retries, max_retries: 6"),
    OSError("HTTP error: status 503 Service Unavailable"),
    OSError("Client error with status 503: <Code>SlowDown</Code>"),
]


@each("problem", UNREACHABLE)
def test_unreachable(problem: Exception) -> None:
    found = told(problem)
    assert type(found) is StorageError
    assert found.retryable
    assert found.hint is not None
    assert "did not answer" in found.hint


DAMAGED = [
    OSError("LanceError(IO): does not have sufficient data, len: 0"),
    OSError("LanceError(IO): Generic memory error: Invalid range 0..0 for object of size 0 bytes"),
    OSError("LanceError(IO): file size is too small"),
    OSError("LanceError(IO): Generic LocalFileSystem error: failed to fill whole buffer"),
    ValueError("file does not appear to be a Lance file (invalid magic: [76, 65, 78, 67])"),
    ValueError("failed to decode Protobuf message: invalid wire type value: 7"),
    OSError("Encountered corrupt file miniblock_metadata"),
]


@each("problem", DAMAGED)
def test_damaged(problem: Exception) -> None:
    found = told(problem)
    assert type(found) is StorageError
    assert not found.retryable
    assert found.hint == "the file is damaged: restore it from a copy of the graph"


@pytest.mark.parametrize("problem", [AlreadyExistsError("x"), CommitConflictError("x", 3)])
def test_another_writer(problem: Exception) -> None:
    found = told(problem)
    assert type(found) is StorageError
    assert found.retryable


def test_what_is_not_known_is_told_as_it_is() -> None:
    found = told(RuntimeError("LanceError(Index): something else"))
    assert (found.message, found.hint) == (
        f"reading failed at {WHERE}: LanceError(Index): something else",
        "check the store, and try again",
    )
    assert not found.is_refused
    assert not found.retryable


@each("digits", ["403", "401", "500", "502", "503", "504"])
def test_numbers_in_names_of_files_mean_nothing(digits: str) -> None:
    """Versions and directories are numbers: one of them often holds these digits."""
    name = f"_versions/d98515378{digits}.manifest of /lake/{digits}f2619ed36c3b4/9{digits}1"
    found = told(OSError(f"LanceError(IO): failed to fill whole buffer: {name}"))
    assert (found.hint, found.retryable) == (
        "the file is damaged: restore it from a copy of the graph",
        False,
    )
    found = told(OSError(f"error sending request for url (http://store/lake/{name})"))
    assert found.retryable


def test_the_cause_is_kept() -> None:
    cause = OSError("disk on fire")
    with pytest.raises(StorageError) as caught, translated("writing", WHERE):
        raise cause
    assert caught.value.__cause__ is cause
    assert caught.value.message == f"writing failed at {WHERE}: disk on fire"


@pytest.mark.parametrize("error", [InvariantBroken("x"), KeyError("x"), KeyboardInterrupt()])
def test_what_is_not_of_the_libraries_passes(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, translated("writing", WHERE):
        raise error
    assert caught.value is error


class PanicException(BaseException):
    """What a panic in Rust arrives as: not an `Exception`, and its class cannot be imported."""

    __module__ = "pyo3_runtime"


def test_a_panic_in_a_library_is_a_failure_of_the_store() -> None:
    with pytest.raises(StorageError, match="range end index 27 out of range"), translated("x", "y"):
        raise PanicException("range end index 27 out of range for slice of length 12")


def test_texts_are_short() -> None:
    text = (
        "LanceError(IO): not there,\n /build/lance/rust/lance-io/src/utils.rs:12:9"
        "\n\nDebug source:\nGeneric { source: … }"
    )
    assert brief(OSError(text)) == "LanceError(IO): not there"
    assert brief(OSError("full, /rustc/48a229ce/library/core/src/ops/function.rs:250:5")) == "full"
    assert brief(OSError()) == "OSError"
    assert brief(ValueError("  many \n spaces ")) == "many spaces"
