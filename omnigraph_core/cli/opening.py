"""Opening the graph that was chosen: in a store, with its policy, or behind a server.

Slow to import: the engine comes with it. Commands reach it through `GivenGraph.open`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from omnigraph_core.config.addresses import bearer_token, policy_file, resource_id
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from omnigraph_core.cli.target import ChosenGraph
    from omnigraph_core.config.model import Config
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.policy.model import Judge

_HOST_AND_PORT: Final = re.compile(r"(?:\w[\w.-]*|\[[0-9a-fA-F:]+\]):\d{1,5}(?:/.*)?")


def open_chosen(config: Config, chosen: ChosenGraph, actor: str | None) -> Omnigraph:
    """The graph; one behind a server answers the same calls.

    Raises:
        GraphNotFound: there is none at that address.
        ConfigError: the policy of the configuration is wrong, or the address has no scheme.
    """
    if chosen.is_remote:
        return _behind_server(config, chosen)
    if _HOST_AND_PORT.fullmatch(chosen.address) and not Path(chosen.address).exists():
        raise ConfigError(
            f"no graph at {chosen.address}", hint=f"for a server, write http://{chosen.address}"
        )
    from omnigraph_core.engine.omnigraph import Omnigraph  # not needed for a remote one

    return Omnigraph.open(chosen.address, policy=_policy(config, chosen), actor=actor)


def _behind_server(config: Config, chosen: ChosenGraph) -> Omnigraph:
    from omnigraph_core.client.remote import RemoteGraph  # not needed for a local one

    remote = RemoteGraph(chosen.address, token=bearer_token(config, chosen.name))
    return cast("Omnigraph", remote)


def _policy(config: Config, chosen: ChosenGraph) -> Judge | None:
    """The policy of the graph, whether it was chosen by its name or by its address.

    Raises:
        ConfigError: it is wrong, or the graph has two.
    """
    from omnigraph_core.storage.uri import normal_address  # slow: a part of the engine

    address = normal_address(chosen.address)
    names = [name for name, it in config.graphs.items() if normal_address(it.uri) == address]
    files = {name: policy_file(config, name) for name in names}
    if len({*files.values()}) > 1:
        raise ConfigError(
            f"{' and '.join(f'`{name}`' for name in names)} are the same graph and have different "
            "policies",
            hint="give all of them the same `policy.file`, or leave one",
        )
    path = next(iter(files.values()), config.policy.file)
    if path is None:
        return None
    from omnigraph_core.policy.source import PolicyFile  # slow: brings Cedar

    return PolicyFile(path, resource_id(config))
