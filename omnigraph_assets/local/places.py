"""Where the platform of this machine keeps everything, and which ports it listens on."""

import re
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
SPARK_PORTS: Final = {"SPARK_PORT": 15002, "SPARK_UI_PORT": 4040}
DIRECTORY: Final = "PLATFORM_DIR"
LIMIT: Final = "PLATFORM_SECONDS"
ENGINES: Final = ("spark", "local")
REMOTE: Final = "OMNIGRAPH_SPARK_REMOTE"
_MEMORY: Final = re.compile(r"[1-9][0-9]*[mg]")


@dataclass(frozen=True, slots=True)
class Places:
    """One directory with all that is kept, and the ports by the names of their variables."""

    directory: Path
    ports: Mapping[str, int]
    seconds: float = 600.0
    """How long a start may take before it is given up."""
    engine: str = "spark"
    """What loads, compacts, indexes and cleans up: one of ENGINES."""
    spark_memory: str = "1g"
    """The heap of the Spark Connect server."""
    is_event_log_kept: bool = False

    @property
    def has_spark(self) -> bool:
        """Whether the platform starts a Spark Connect server of its own."""
        return "SPARK_PORT" in self.ports

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
    def spark_events(self) -> Path:
        """The event log of Spark, for its history server."""
        return self.directory / "spark-events"

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
        return (*made, self.spark_events, self.processes, self.lock)

    @property
    def dagster_url(self) -> str:
        return f"http://{HOST}:{self.ports['DAGSTER_PORT']}"

    @property
    def server_url(self) -> str:
        return f"http://{HOST}:{self.ports['SERVER_PORT']}"

    @property
    def spark_url(self) -> str:
        """The address of the Spark Connect server."""
        return f"sc://{HOST}:{self.ports['SPARK_PORT']}"

    @property
    def spark_ui_url(self) -> str:
        return f"http://{HOST}:{self.ports['SPARK_UI_PORT']}"


def read_places(environment: Mapping[str, str]) -> Places:
    """Read the settings from variables; those that are not set have defaults.

    Raises:
        ConfigError: some of them make no sense; the message lists all of them.
    """
    problems: list[str] = []
    engine = environment.get("ENGINE") or environment.get("OMNIGRAPH_PLATFORM_ENGINE") or ENGINES[0]
    if engine not in ENGINES:
        problems.append(f"ENGINE is {engine!r}: it must be one of {', '.join(ENGINES)}")
    # Who names a Spark Connect server uses that one.
    has_spark = engine != "local" and not environment.get(REMOTE)
    ports = {
        name: _number(environment, name, usual, 65_535, problems)
        for name, usual in (PORTS | SPARK_PORTS if has_spark else PORTS).items()
    }
    seconds = _number(environment, LIMIT, 600, 86_400, problems)
    memory = environment.get("SPARK_MEMORY") or "1g"
    if not _MEMORY.fullmatch(memory):
        problems.append(f"SPARK_MEMORY is {memory!r}: it must be a size such as 800m or 2g")
    for name, port in ports.items():
        others = [other for other in ports if ports[other] == port and other < name]
        problems += [f"{other} and {name} are both {port}" for other in others]
    if problems:
        raise ConfigError("\n".join(problems), hint="make up DAGSTER_PORT=3100 SERVER_PORT=8180")
    return Places(
        Path(environment.get(DIRECTORY) or ROOT / "build" / "platform").resolve(),
        ports,
        float(seconds),
        engine,
        memory,
        environment.get("SPARK_EVENT_LOG", "0") not in ("", "0"),
    )


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
        ConfigError: somebody listens on one of them already; the error names all such.
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
