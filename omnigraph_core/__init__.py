"""OmniGraph: a typed property graph kept in a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph_core.client.remote import RemoteGraph
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.policy.model import Judge

__version__ = "0.1.0"


def connect(
    address: str,
    *,
    token: str | None = None,
    actor: str | None = None,
    policy: Judge | None = None,
    timeout: float | None = None,
) -> Omnigraph | RemoteGraph:
    """Open a graph, at hand or behind a server: both have the same methods.

    Args:
        address: a path, `s3://bucket/prefix`, or the URL of a server.
        token: for a server.
        actor: who acts, for a graph at hand; a server knows by the token.
        policy: asked before anything is done, for a graph at hand; a server has its own.
        timeout: seconds to wait for an answer of a server.

    Raises:
        GraphNotFound: there is none at that address.
        ConfigError: something was given that such an address has no use for.
    """
    # Here, because either half takes longer to import than most programs need the other.
    from omnigraph_core.client.address import is_url
    from omnigraph_core.errors import ConfigError

    if is_url(address):
        from omnigraph_core.client.places import refuse_actor
        from omnigraph_core.client.remote import RemoteGraph

        refuse_actor(actor)
        if policy is not None:
            raise ConfigError("`policy` is for graphs at hand: a server asks its own")
        return RemoteGraph(address, token, timeout)
    if token is not None or timeout is not None:
        raise ConfigError("`token` and `timeout` are for graphs behind a server")
    from omnigraph_core.engine.omnigraph import Omnigraph

    return Omnigraph.open(address, policy=policy, actor=actor)
