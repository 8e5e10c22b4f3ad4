"""`RemoteGraph`: a graph behind a server, with the methods of `Omnigraph`.

Parameters, results and errors are those of a graph at hand, so that a program need not know which
one it has. A handle is cheap, holds no branch of its own and is safe to share between threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.client.address import parse_address
from omnigraph_core.client.diffs import Diffs
from omnigraph_core.client.merging import Merging
from omnigraph_core.client.reads import Reads
from omnigraph_core.client.transport import Transport
from omnigraph_core.client.upkeep import Upkeep
from omnigraph_core.client.writes import Writes

if TYPE_CHECKING:
    from typing import Self

    import httpx2


class RemoteGraph(Reads, Writes, Diffs, Merging, Upkeep):
    """A graph behind a server. Who acts is decided by the token."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """
        Args:
            url: the server, or one of its graphs: `https://host/graphs/stock`.
            timeout: seconds to wait for an answer, or for the next part of one.
            transport: sends requests in another way than over the network.

        Raises:
            ConfigError: not the address of a server, or one with a password in it.
        """
        self._http = Transport(parse_address(url), token, timeout, transport)

    @property
    def uri(self) -> str:
        """The address it was opened with."""
        return self._http.url

    def close(self) -> None:
        """Close all connections; the handle may be used again all the same."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteGraph {self.uri}>"
