"""Modules that are imported when a test first uses them.

Every worker of a run imports every test module, and only few run the tests of Dagster or of a
browser: those libraries take seconds to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """Stands for a module: its attributes are those of the module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
