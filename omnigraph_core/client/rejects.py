"""Records that a server refused: they come with its answer and go to a file of the caller's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph_core.errors import ConfigError
from omnigraph_core.ids import new_ulid

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Rejects:
    """What is done with the answer to a load: its texts call files as the caller does."""

    def __init__(self, path: Path | None, renamed: Callable[[Any], Any]) -> None:
        self._path = path
        self._renamed = renamed

    def of_error(self, document: dict[str, Any]) -> dict[str, Any]:
        """The document of an error as the caller is to read it; its records are written."""
        mended: dict[str, Any] = self._renamed(document)
        details = mended.get("details")
        if isinstance(details, dict):
            self._write(details)
        return mended

    def of_answer(self, document: dict[str, Any]) -> dict[str, Any]:
        """The same for a load that was done."""
        self._write({"rejects": self._renamed(document.get("rejects"))})
        return document

    def _write(self, told: dict[str, Any]) -> None:
        text = told.get("rejects")
        if self._path is None or not isinstance(text, str):
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = self._path.with_name(f".{self._path.name}.{new_ulid()}")
            try:
                unfinished.write_text(text, encoding="utf-8", newline="")
                unfinished.replace(self._path)
            finally:
                unfinished.unlink(missing_ok=True)
        except OSError as problem:
            reason = problem.strerror
            raise ConfigError(f"cannot write the reject file {self._path}: {reason}") from problem
