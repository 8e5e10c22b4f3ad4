"""Tags that make a run fail on purpose; apart, since reading them must not load Dagster's side."""

from __future__ import annotations

from typing import Final

FAILPOINTS: Final = "test/failpoints"
ENVIRONMENT: Final = "test/environment"
