"""What Dagster says of its definitions, its runs and what they made, asked over GraphQL."""

from dataclasses import dataclass
from typing import Any, Final

from omnigraph_assets.local.places import NAME, Places
from omnigraph_assets.local.web import NoAnswer, ask

DERIVED: Final = (f"{NAME}_embeddings", f"{NAME}_indexes")
"""The groups of assets that automation makes after a load."""
_LOADED: Final = """{ workspaceOrError { __typename
  ... on PythonError { message }
  ... on Workspace { locationEntries { loadStatus locationOrLoadError { __typename
    ... on PythonError { message }
    ... on RepositoryLocation { repositories { sensors { name sensorState {
      status typeSpecificData { ... on SensorData { lastTickTimestamp } } } } } } } } } } }"""
"""Ticks themselves are kept by the address of the code server, so they would be missing after a
start with another port."""
_RUNS: Final = (
    """{ runsOrError(limit: 100) { ... on Runs { results { runId jobName status } } } }"""
)
_ASSETS: Final = """{ assetNodes { assetKey { path } groupName dependencyKeys { path }
  assetMaterializations(limit: 1) { timestamp } } }"""
_OVER: Final = ("SUCCESS", "FAILURE", "CANCELED")


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a job."""

    run_id: str
    job: str
    status: str


class BadDefinitions(Exception):
    """The code location does not load."""


def not_ready(places: Places) -> str | None:
    """What is still missing until drops are seen; None if nothing is.

    Raises:
        BadDefinitions: waiting will not help.
    """
    try:
        workspace = _graphql(places, _LOADED)["workspaceOrError"]
    except NoAnswer:
        return "Dagster's webserver"
    problem = workspace.get("message")
    sensors: list[Any] = []
    for entry in workspace.get("locationEntries", ()):
        loaded = entry["locationOrLoadError"]
        if entry["loadStatus"] != "LOADED" or loaded is None:
            return "the definitions"
        problem = problem or loaded.get("message")
        sensors += [one for repo in loaded.get("repositories", ()) for one in repo["sensors"]]
    if problem is not None:
        raise BadDefinitions(problem)
    stopped = [one["name"] for one in sensors if one["sensorState"]["status"] != "RUNNING"]
    if stopped or not sensors:
        return f"sensors that are stopped: {', '.join(stopped)}"
    # Automation answers to changes that come after its first look, so that has to come first.
    idle = [
        one["name"]
        for one in sensors
        if not one["sensorState"]["typeSpecificData"]["lastTickTimestamp"]
    ]
    return f"the first look of {', '.join(idle)}" if idle else None


def runs(places: Places) -> list[Run]:
    """The newest runs, newest first."""
    found = _graphql(places, _RUNS)["runsOrError"]["results"]
    return [Run(run["runId"], run["jobName"], run["status"]) for run in found]


def describe_live_runs(found: list[Run]) -> str:
    """Say what runs are doing; an empty text if none is live.

    >>> describe_live_runs([Run("1", "load_job", "STARTED"), Run("2", "load_job", "SUCCESS")])
    'load_job is started'
    """
    live = {(run.job, run.status) for run in found if run.status not in _OVER}
    return ", ".join(
        f"{'a run of automation' if job.startswith('__') else job} is {status.lower()}"
        for job, status in sorted(live)
    )


def has_loaded(found: list[Run]) -> bool:
    """Whether a load has come to its end, well."""
    return any(run.job == f"{NAME}_load_job" and run.status == "SUCCESS" for run in found)


def not_derived(places: Places) -> list[str]:
    """Embeddings and indexes that are older than what they are made of, or were never made."""
    nodes = _graphql(places, _ASSETS)["assetNodes"]
    times = {_key(node["assetKey"]): _time(node) for node in nodes}
    return [
        _key(node["assetKey"])
        for node in nodes
        if node["groupName"] in DERIVED
        and (_time(node) or -1) < _newest(times, node["dependencyKeys"])
    ]


def _newest(times: dict[str, int | None], keys: list[Any]) -> int:
    return max((times.get(_key(key)) or 0 for key in keys), default=0)


def _key(key: Any) -> str:
    return "/".join(key["path"])


def _time(node: Any) -> int | None:
    """When it was made last, in milliseconds."""
    found = node["assetMaterializations"]
    return int(found[0]["timestamp"]) if found else None


def _graphql(places: Places, query: str) -> Any:
    answer = ask(f"{places.dagster_url}/graphql", {"query": query})
    if answer.get("errors"):
        raise NoAnswer(f"Dagster does not answer: {answer['errors']}")
    return answer["data"]
