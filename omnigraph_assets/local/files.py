"""The files that the processes read, and the variables they are given."""

import sys
from collections.abc import Mapping
from typing import Any, Final

import yaml

from omnigraph_assets.local.places import EXAMPLE, HOST, NAME, ROOT, Places

LOCATION: Final = "omnigraph"
_PROVIDERS: Final = (
    "OMNIGRAPH_EMBED_PROVIDER",
    "OMNIGRAPH_EMBED_BASE_URL",
    "GEMINI_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
)
_MOCK: Final = "OMNIGRAPH_EMBEDDINGS_MOCK"


def write_files(places: Places) -> None:
    """Directories and settings; what is kept of earlier starts stays."""
    for directory in (places.dagster, places.logs, places.processes, places.drops / "main"):
        directory.mkdir(parents=True, exist_ok=True)
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
    """The variables of all processes. Tokens are left out: only this machine reaches the server."""
    kept = {k: v for k, v in given.items() if not k.startswith("OMNIGRAPH_SERVER_BEARER")}
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
        "OMNIGRAPH_PLATFORM_SERVER": places.server_url,
        "OMNIGRAPH_PLATFORM_WEBSERVER": places.dagster_url,
        "PYTHONUNBUFFERED": "1",
    }


def told_embeddings(environment: Mapping[str, str]) -> str:
    """Who makes the vectors, for whoever starts it."""
    found = [name for name in _PROVIDERS if environment.get(name)]
    if found and not environment.get(_MOCK):
        return f"by the provider of {', '.join(found)}"
    why = f"{_MOCK} is set" if found else "no key of a provider is set"
    return f"from a hash of the text, and tell no meaning: {why}"


def commands_of(places: Places) -> dict[str, tuple[str, ...]]:
    """What to start, by name. The code server comes first: the others ask it."""
    python, workspace = sys.executable, str(places.dagster / "workspace.yaml")
    ports = {name: str(port) for name, port in places.ports.items()}
    code = ("--module-name", "omnigraph_assets.definitions", "--location-name", LOCATION)
    where = ("--host", HOST, "--port")
    return {
        "code-server": (
            *(python, "-m", "dagster", "code-server", "start", *code, *where, ports["CODE_PORT"]),
        ),
        "server": (
            *(python, "-m", "omnigraph_core.server", "--config", str(places.server_config)),
            *("--bind", f"{HOST}:{ports['SERVER_PORT']}"),
        ),
        "webserver": (
            *(python, "-m", "dagster_webserver", "--workspace", workspace),
            *(*where, ports["DAGSTER_PORT"]),
        ),
        "daemon": (python, "-m", "dagster._daemon", "run", "--workspace", workspace),
    }
