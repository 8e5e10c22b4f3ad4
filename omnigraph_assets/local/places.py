"""Where the platform of this machine keeps everything, and which ports it listens on."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph_core.errors import ConfigError

ROOT: Final = Path(__file__).parent.parent.parent
NAME: Final = "river"
"""The graph, and the example it is made of."""
EXAMPLE: Final = ROOT / "examples" / NAME
HOST: Final = "127.0.0.1"
PORTS: Final = {"DAGSTER_PORT": 3000, "SERVER_PORT": 8080, "CODE_PORT": 4000}
DIRECTORY: Final = "PLATFORM_DIR"
LIMIT: Final = "PLATFORM_SECONDS"


@dataclass(frozen=True, slots=True)
class Places:
    """One directory with all that is kept, and the ports by the names of their variables."""

    directory: Path
    ports: Mapping[str, int]
    seconds: float = 600.0
    """How long a start may take before it is given up."""

    @property
    def graph(self) -> Path:
        return self.directory / "graph"

    @property
    def drops(self) -> Path:
        return self.directory / "drops"

    @property
    def dagster(self) -> Path:
        return self.directory / "dagster"

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def processes(self) -> Path:
        """A file for each process, locked by it for as long as it lives."""
        return self.directory / "processes"

    @property
    def lock(self) -> Path:
        """Held by whoever runs the platform, with the number of its process in it."""
        return self.directory / "up.pid"

    @property
    def server_config(self) -> Path:
        return self.directory / "omnigraph.yaml"

    @property
    def done(self) -> Path:
        """There once the example has come through."""
        return self.directory / "example-is-loaded"

    @property
    def owned(self) -> tuple[Path, ...]:
        """All that is made below the directory; the directory itself may be anybody's."""
        made = (self.graph, self.drops, self.dagster, self.logs, self.server_config, self.done)
        return (*made, self.processes, self.lock)

    @property
    def dagster_url(self) -> str:
        return f"http://{HOST}:{self.ports['DAGSTER_PORT']}"

    @property
    def server_url(self) -> str:
        return f"http://{HOST}:{self.ports['SERVER_PORT']}"


def read_places(environment: Mapping[str, str]) -> Places:
    """What the variables say, and the usual for what they do not.

    Raises:
        ConfigError: some of them make no sense; all of them are told.
    """
    problems: list[str] = []
    ports = {
        name: _number(environment, name, usual, 65_535, problems) for name, usual in PORTS.items()
    }
    seconds = _number(environment, LIMIT, 600, 86_400, problems)
    for name, port in ports.items():
        others = [other for other in ports if ports[other] == port and other < name]
        problems += [f"{other} and {name} are both {port}" for other in others]
    if problems:
        raise ConfigError("\n".join(problems), hint="make up DAGSTER_PORT=3100 SERVER_PORT=8180")
    directory = Path(environment.get(DIRECTORY) or ROOT / "build" / "platform")
    return Places(directory.resolve(), ports, float(seconds))


def _number(
    environment: Mapping[str, str], name: str, usual: int, most: int, problems: list[str]
) -> int:
    text = environment.get(name) or str(usual)
    if text.isdecimal() and 1 <= int(text) <= most:
        return int(text)
    problems.append(f"{name} is {text!r}: it must be a number from 1 to {most}")
    return usual


def check_ports(places: Places) -> None:
    """
    Raises:
        ConfigError: somebody listens on one of them already; all such are told.
    """
    taken = [f"port {port} is taken" for port in places.ports.values() if not _is_free(port)]
    names = [name for name, port in places.ports.items() if f"port {port} is taken" in taken]
    if taken:
        chosen = " ".join(f"{name}={places.ports[name] + 100}" for name in names)
        raise ConfigError("\n".join(taken), hint=f"choose another: make up {chosen}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
