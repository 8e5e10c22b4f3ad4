"""One graph as the platform runs it: where it is, and how its assets are made."""

import re
from dataclasses import dataclass
from typing import Final

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
ACTOR: Final = "dagster"


@dataclass(frozen=True, slots=True)
class GraphConfig:
    """A graph by its name in the platform.

    `drops` is the directory, or the `s3://` prefix, that holds one folder of files for each branch.
    """

    name: str
    uri: str
    drops: str | None = None
    mode: str = "merge"
    embed: str = "off"
    """Vectors that a load lacks are made by the assets of embeddings, after it is published."""
    engine: str = "auto"
    settle_seconds: float = 3.0
    server_url: str | None = None
    owners: tuple[str, ...] = ()
    actor: str = ACTOR
    keep_versions: int = 100
    scheduled_cleanup: bool = False
    """Whether the weekly cleanup removes what it finds; if not, it tells."""
    fresh_within_hours: float | None = 48.0
    """How old the newest publish may get before the manifest counts as stale."""
    failure_webhook: str | None = None
    """Told of failed runs."""
    webserver_url: str | None = None
    """Where Dagster's own server is, to be asked to load definitions anew."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"{self.name!r} is no name for a graph",
                hint="begin with a letter and go on with letters, digits and underscores",
            )

    def open(self) -> Omnigraph:
        """
        Raises:
            GraphNotFound: there is none at its address.
        """
        return Omnigraph.open(self.uri, actor=self.actor)
