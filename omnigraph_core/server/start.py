"""The entry of the `omnigraph-server` command."""

from __future__ import annotations

from typing import NoReturn

from omnigraph_core.startup import hide_pandas


def main() -> NoReturn:
    """Run the server and leave with its exit code."""
    hide_pandas()
    from omnigraph_core.server.main import main as run  # loads nearly everything

    run()
