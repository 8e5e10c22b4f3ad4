"""What a server is told: which graphs, where to listen, how to log. Holds no secrets.

They are handed to worker processes as they are.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

LogFormat: TypeAlias = Literal["text", "json"]

DEFAULT_BIND: Final = "127.0.0.1:8080"
CONTAINER_BIND: Final = "0.0.0.0:8080"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """`uri` or `target` names the default graph; else the configuration does."""

    uri: str | None = None
    target: str | None = None
    config: Path | None = None
    """The file; None looks for the nearest one."""
    bind: str | None = None
    """`host:port`; None leaves it to the configuration."""
    workers: int = 1
    is_open_allowed: bool = False
    """Whether a server without tokens may be reached from other machines."""
    lists_graphs: bool = False
    """Whether a server without a policy tells which graphs it has."""
    log_format: LogFormat = "text"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False  # a name may lead anywhere

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_bind(text: str) -> Address:
    """
    Raises:
        ConfigError: not an address to listen on.

    >>> str(parse_bind("[::1]:0")), parse_bind("0.0.0.0:80").is_loopback
    ('[::1]:0', False)
    """
    host, colon, port = text.strip().rpartition(":")
    name = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and int(port) < 65_536
    if not (colon and name and is_port) or (":" in name and name == host):
        raise ConfigError(f"cannot listen on {text!r}", hint="give host:port, as 127.0.0.1:8080")
    return Address(name, int(port))
