"""Tags that make a run fail or wait; apart, since reading them must not load Dagster's side."""

from __future__ import annotations

from typing import Final

FAILPOINTS: Final = "test/failpoints"
ENVIRONMENT: Final = "test/environment"
KILLED_AFTER: Final = "test/killed_after"
"""A step of a load: its run is killed when the step has done its work and is not over yet."""
HELD_AFTER: Final = "test/held_after"
"""The same, as a step and a directory: the run makes `held` there and waits for `released`."""
