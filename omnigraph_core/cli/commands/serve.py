"""`omnigraph serve`: the server, in place of this process."""

from __future__ import annotations

import os
import sys
from typing import Final

import typer  # noqa: TC002 - typer reads annotations

# Everything is passed on, `--help` too: the server knows its options.
PASSED_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True}


def serve(ctx: typer.Context) -> None:
    """Serve graphs over HTTP; the options are those of omnigraph-server."""
    # The server takes this process: signals and the exit code are its own.
    os.execv(sys.executable, [sys.executable, "-m", "omnigraph_core.server", *ctx.args])
