"""Graphs as a Spark data source: types are read and written as data frames."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from omnigraph_core.spark.source.frames import load_frames
    from omnigraph_core.spark.source.snapshot import read_snapshot
    from omnigraph_core.spark.source.source import register

__all__ = ["load_frames", "read_snapshot", "register"]

_HOMES: Final = {"load_frames": "frames", "read_snapshot": "snapshot", "register": "source"}


def __getattr__(name: str) -> object:
    """Imported when it is asked for: executors use parts of this package and need no engine."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
