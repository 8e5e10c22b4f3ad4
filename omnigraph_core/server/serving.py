"""What a server as a whole has, put together once from its options and the environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.config.env_file import adopt_env_file
from omnigraph_core.config.find import find_config
from omnigraph_core.errors import ConfigError
from omnigraph_core.server.auth import Tokens, read_tokens
from omnigraph_core.server.graphs import Graphs, find_graphs
from omnigraph_core.server.options import DEFAULT_BIND, Address, parse_bind

if TYPE_CHECKING:
    from omnigraph_core.config.model import Config
    from omnigraph_core.server.options import ServerOptions
    from omnigraph_core.server.stored_queries import StoredQueries


@dataclass(frozen=True, slots=True)
class Serving:
    options: ServerOptions
    config: Config
    tokens: Tokens
    graphs: Graphs
    address: Address
    stored_queries: StoredQueries

    @property
    def is_open(self) -> bool:
        """Whether anybody may call: without tokens there is no policy either."""
        return not len(self.tokens)


def prepare(options: ServerOptions) -> Serving:
    """Everything a server needs; no graph is opened yet.

    Raises:
        ConfigError: something of it cannot be used.
    """
    config = find_config(options.config)
    adopt_env_file(config)
    tokens = read_tokens()
    graphs = find_graphs(options, config)
    address = parse_bind(options.bind or config.server.bind or DEFAULT_BIND)
    if graphs.has_policy and not len(tokens):
        raise ConfigError(
            "a policy is configured, and there are no bearer tokens to tell actors apart",
            hint="set OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, or remove `policy.file`",
        )
    if not (len(tokens) or address.is_loopback or options.is_open_allowed):
        raise ConfigError(
            f"without bearer tokens everybody who reaches {address} may read and write",
            hint="set OMNIGRAPH_SERVER_BEARER_TOKEN, or allow it with --unauthenticated",
        )
    graphs.check_policies()
    from omnigraph_core.server.stored_queries import StoredQueries  # slow: the query language

    stored = StoredQueries(config.query_roots)
    return Serving(options, config, tokens, graphs, address, stored)
