"""One graph as the platform runs it: where it is, and how its assets are made."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
ACTOR: Final = "dagster"
SPARK: Final = "spark"
LOCAL: Final = "local"
ENGINES: Final = (SPARK, LOCAL)
MODES: Final = ("merge", "append")


@dataclass(frozen=True, slots=True)
class GraphConfig:
    """A graph by its name in the platform.

    `drops` is the directory, or the `s3://` prefix, that holds one folder of files for each branch.
    """

    name: str
    uri: str
    drops: str | None = None
    mode: str = "merge"
    """How dropped files are loaded: `merge` replaces rows that exist, `append` refuses them."""
    embed: str = "off"
    """Vectors that a load lacks are made by the assets of embeddings, after it is published."""
    engine: str = SPARK
    """`spark`, or `local` for machines without the memory for it: then nothing runs on Spark."""
    spark_config: Mapping[str, str] = field(default_factory=dict)
    """`spark.remote` or `spark.master`, and other settings of Spark; else variables say where."""
    settle_seconds: float = 1.0
    """How long a file lies unchanged before it counts as whole."""
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
    embedding_limit: int = 1
    """How many runs of the graph make vectors at a time."""
    maintenance_limit: int = 2
    """How many runs of the graph index, compact or clean up at a time."""
    keep_runs_days: int = 30
    """How many days Dagster keeps finished runs of the graph and their events."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"{self.name!r} is no name for a graph",
                hint="begin with a letter and go on with letters, digits and underscores",
            )

        if self.mode not in MODES:
            # Files are loaded in batches, which are divided if they are refused, and a content that
            # the branch was given once is not loaded again: each of these would lose rows.
            raise ConfigError(
                f"`mode` of the graph `{self.name}` is {self.mode!r}",
                hint=f"give one of {', '.join(MODES)}; files that overwrite what others have "
                "loaded need an order, so load them with `omnigraph load` or `Omnigraph.load`",
            )
        if self.engine not in ENGINES:
            raise ConfigError(
                f"`engine` of the graph `{self.name}` is {self.engine!r}",
                hint=f"give one of {', '.join(ENGINES)}",
            )
        for name in ("embedding_limit", "maintenance_limit", "keep_runs_days"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"`{name}` of the graph `{self.name}` is {getattr(self, name)}",
                    hint="give a number of at least 1",
                )

    @property
    def kinds(self) -> set[str]:
        """What stores an asset, and what makes it."""
        return {"lance", "spark"} if self.engine == SPARK else {"lance"}

    def open(self) -> Omnigraph:
        """Open the graph outside of runs: in sensors, schedules and components.

        Raises:
            GraphNotFound: there is none at its address.
        """
        return Omnigraph.open(self.uri, actor=self.actor)
