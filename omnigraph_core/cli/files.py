"""Reading the files a command names, with an error a person can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


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
