"""The entry of the `omnigraph` command.

Nothing else is imported before it runs: Ctrl-C while the commands are read is no traceback either.
"""

from __future__ import annotations

import sys

from omnigraph_core.cli.signals import make_interrupts_certain
from omnigraph_core.startup import hide_pandas


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        make_interrupts_certain()
        hide_pandas()
        from omnigraph_core.cli.app import run_command  # slow: a person may not want to wait for it

        run_command()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("interrupted\n")
        sys.exit(130)
