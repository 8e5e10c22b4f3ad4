"""Imported by processes that others are forked from: everything that is slow to load, once.

The parsers of both languages are built and all commands imported. Nothing of Lance runs here, so
that no thread is lost by a fork.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

from omnigraph_core.cli import commands
from omnigraph_core.startup import hide_pandas

_MODULES: Final = (
    "httpx2",
    "numpy.ma",
    "pytest",
    "ulid",
    "tests.support.parsers",
    "omnigraph_core.cli.app",
    "omnigraph_core.cli.opening",
    "omnigraph_core.client.remote",
    "omnigraph_core.engine.omnigraph",
    "omnigraph_core.server.app",
    "omnigraph_core.server.main",
    "omnigraph_core.server.protocol",
    "omnigraph_core.server.threads",
)

hide_pandas()
for _module in _MODULES:
    importlib.import_module(_module)
for _found in pkgutil.walk_packages(commands.__path__, f"{commands.__name__}."):
    importlib.import_module(_found.name)
