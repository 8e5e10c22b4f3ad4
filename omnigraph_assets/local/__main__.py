"""`python -m omnigraph_assets.local up|down|reset`; variables say where and on which ports."""

import argparse
import os
import sys

from omnigraph_assets.local.dagster_state import BadDefinitions
from omnigraph_assets.local.places import read_places
from omnigraph_assets.local.up import CannotStart, down, reset, say, up
from omnigraph_core.errors import ConfigError


def main() -> int:
    """Do what the command line asks for; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m omnigraph_assets.local", description=__doc__)
    parser.add_argument("action", choices=("up", "down", "reset"))
    action = parser.parse_args().action
    try:
        places = read_places(os.environ)
        if action == "up":
            return up(places, os.environ)
        if action == "down":
            say("stopped" if down(places) else "nothing is running")
        else:
            reset(places)
            say(f"{places.directory} is empty: `make up` begins anew")
    except (CannotStart, BadDefinitions, ConfigError) as problem:
        sys.stderr.write(f"error: {problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
