"""Reading and writing the files a command names, with an error a person can act on."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO


def read_text(path: Path, *, what: str) -> str:
    """The UTF-8 text of a file, without a byte order mark.

    Line ends stay as they are: translated ones would shift the offsets of every diagnostic.

    Raises:
        ConfigError: missing, unreadable, or not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise ConfigError(f"cannot read {what} {path}: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(
            f"{what} {path} is not UTF-8 text (byte {problem.start})", hint="save it as UTF-8"
        ) from problem


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its place when it is whole; a failure leaves the old one.

    What is no file, such as a pipe, is written to as it is.

    Raises:
        ConfigError: it cannot be written there.
    """
    try:
        is_file = path.is_file() or not path.exists()
        partial = path.with_name(f"{path.name}.{os.getpid()}.part") if is_file else path
        try:
            with partial.open("wb") as file:
                yield file
            if is_file:
                partial.replace(path)
        finally:
            if is_file:
                with suppress(OSError):
                    partial.unlink(missing_ok=True)
    except OSError as problem:
        raise ConfigError(f"cannot write {path}: {problem.strerror}") from problem
