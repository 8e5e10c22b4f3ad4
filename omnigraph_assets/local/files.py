"""The files that the services read, their commands and their variables."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from omnigraph_assets.local.places import EXAMPLE, HOST, NAME, REMOTE, ROOT, Places
from omnigraph_assets.run_launcher.client import PRELOAD, server_command

LOCATION: Final = "omnigraph"
_PROVIDERS: Final = (
    "OMNIGRAPH_EMBED_PROVIDER",
    "OMNIGRAPH_EMBED_BASE_URL",
    "GEMINI_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
)
_MOCK: Final = "OMNIGRAPH_EMBEDDINGS_MOCK"
_JAVA: Final = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError "
    f"-Dlog4j2.configurationFile={ROOT / 'omnigraph_core' / 'spark' / 'log4j2.properties'}"
)
"""Starts with half of the processor time. A server without memory ends, and is started again,
where it would hang otherwise."""
_RETAINED: Final = {
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "10000",
    "spark.sql.ui.retainedExecutions": "200",
    "spark.connect.ui.retainedStatements": "200",
}
"""How much history the Spark UI shows: a server that runs for days keeps it on its heap."""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start a service: its words, and variables that only this service gets."""

    words: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)


def write_files(places: Places) -> None:
    """Directories and settings; what is kept of earlier starts stays."""
    for directory in (places.dagster, places.logs, places.processes, places.drops / "main"):
        directory.mkdir(parents=True, exist_ok=True)
    if places.is_event_log_kept:
        places.spark_events.mkdir(exist_ok=True)
    instance = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    # Its path is a plain text and would be taken from where the process was started.
    instance["defs_state_storage"]["config"]["base_path"] = str(places.dagster / "defs-state")
    _write(places.dagster / "dagster.yaml", instance)
    code = {"host": HOST, "port": places.ports["CODE_PORT"], "location_name": LOCATION}
    _write(places.dagster / "workspace.yaml", {"load_from": [{"grpc_server": code}]})
    served = {
        "graphs": {NAME: {"uri": str(places.graph)}},
        "server": {"graph": NAME},
        "query": {"roots": [str(EXAMPLE)]},
    }
    _write(places.server_config, served)


def _write(path: Any, content: object) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def environment_of(places: Places, given: Mapping[str, str]) -> dict[str, str]:
    """The variables of all services. Tokens are left out: only this machine reaches the server."""
    kept = {k: v for k, v in given.items() if not k.startswith("OMNIGRAPH_SERVER_BEARER")}
    kept.pop("SPARK_PORT", None)  # Spark would read it as an address of its own
    if kept.pop("PYTHONDONTWRITEBYTECODE", None):
        # Every run is a process that imports Dagster: compiling it each time takes half a minute.
        kept.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / "build" / "bytecode"))
    if not any(given.get(name) for name in (*_PROVIDERS, _MOCK)):
        kept[_MOCK] = "1"
    return kept | {
        "DAGSTER_HOME": str(places.dagster),
        "OMNIGRAPH_DAGSTER_STATE": str(places.dagster),
        "OMNIGRAPH_PLATFORM_NAME": NAME,
        "OMNIGRAPH_PLATFORM_GRAPH": str(places.graph),
        "OMNIGRAPH_PLATFORM_DROPS": str(places.drops),
        "OMNIGRAPH_PLATFORM_ENGINE": places.engine,
        "OMNIGRAPH_PLATFORM_SERVER": places.server_url,
        "OMNIGRAPH_PLATFORM_WEBSERVER": places.dagster_url,
        "PYTHONUNBUFFERED": "1",
    }


def describe_embeddings(environment: Mapping[str, str]) -> str:
    """Say who makes the vectors."""
    found = [name for name in _PROVIDERS if environment.get(name)]
    if found and not environment.get(_MOCK):
        return f"by the provider of {', '.join(found)}"
    why = f"{_MOCK} is set" if found else "no key of a provider is set"
    return f"from a hash of the text, and tell no meaning: {why}"


def commands_of(places: Places) -> dict[str, Command]:
    """The command of each service by its name."""
    python, workspace = sys.executable, str(places.dagster / "workspace.yaml")
    ports = {name: str(port) for name, port in places.ports.items()}
    code = ("--module-name", "omnigraph_assets.definitions", "--location-name", LOCATION)
    where = ("--host", HOST, "--port")
    # Runs are processes of a fork server, or of the code server. The daemon starts a fork server if
    # it finds none, and so does the webserver if a run is launched there.
    remote = {REMOTE: places.spark_url} if places.has_spark else {}
    commands = {
        "code-server": Command(
            (python, "-m", "dagster", "code-server", "start", *code, *where, ports["CODE_PORT"]),
            remote,
        ),
        "fork-server": Command(tuple(server_command(places.dagster, python, PRELOAD)), remote),
        "server": Command(
            (
                *(python, "-m", "omnigraph_core.server", "--config", str(places.server_config)),
                *("--bind", f"{HOST}:{ports['SERVER_PORT']}"),
            )
        ),
        "webserver": Command(
            (
                *(python, "-m", "dagster_webserver", "--workspace", workspace),
                *(*where, ports["DAGSTER_PORT"]),
            ),
            remote,
        ),
        "daemon": Command(
            (python, "-m", "dagster._daemon", "run", "--workspace", workspace), remote
        ),
    }
    return commands | ({"spark": _spark_command(places)} if places.has_spark else {})


def _spark_command(places: Places) -> Command:
    conf = [item for pair in _spark_conf(places).items() for item in ("--conf", "=".join(pair))]
    return Command(
        (str(ROOT / "deploy" / "spark-connect.sh"), "--driver-memory", places.spark_memory, *conf),
        {
            "PYTHON": sys.executable,
            "SPARK_CONNECT_HOST": HOST,
            "SPARK_CONNECT_PORT": str(places.ports["SPARK_PORT"]),
            "SPARK_UI_PORT": str(places.ports["SPARK_UI_PORT"]),
        },
    )


def _spark_conf(places: Places) -> dict[str, str]:
    """Settings beyond those that the script gives to every server."""
    events = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": places.spark_events.as_uri(),
    }
    return {
        **_RETAINED,
        **(events if places.is_event_log_kept else {}),
        "spark.driver.extraJavaOptions": _JAVA,
        "spark.port.maxRetries": "0",  # the UI is where `make up` says it is
    }
