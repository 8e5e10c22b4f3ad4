"""What of the configuration goes with one graph: its policy, its token, and its name in policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core import settings
from omnigraph_core.config.env_file import env_file_pairs

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.config.model import Config

_UNNAMED: Final = "default"


def resource_id(config: Config) -> str:
    """What policy calls the thing it protects: the project, else the graph people mean most.

    >>> from omnigraph_core.config.model import Config
    >>> resource_id(Config(project_name="stock")), resource_id(Config())
    ('stock', 'default')
    """
    named = (config.graphs.get(name or "") for name in (config.server.graph, config.cli.graph))
    uris = (graph.uri for graph in named if graph is not None)
    return config.project_name or next(uris, _UNNAMED)


def policy_file(config: Config, name: str | None) -> Path | None:
    """The policy of a graph by its name: its own, else the one for all."""
    graph = config.graphs.get(name or "")
    own = None if graph is None else graph.policy_file
    return own or config.policy.file


def bearer_token(config: Config, name: str | None) -> str | None:
    """The token for a graph behind a server: of its own variable if it was chosen by name, else of
    the one for all. The environment is stronger than the env file.

    Raises:
        ConfigError: the env file cannot be read.
    """
    graph = config.graphs.get(name or "")
    own = None if graph is None else graph.bearer_token_env
    variables = [variable for variable in (own, settings.BEARER_TOKEN.name) if variable]
    pairs = env_file_pairs(config)
    found = (
        text for variable in variables for text in (settings.text(variable), pairs.get(variable))
    )
    return next((text.strip() for text in found if text and text.strip()), None)
