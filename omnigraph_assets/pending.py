"""Which dropped files a load is made of, and what becomes of those that cannot be loaded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.drops import DroppedFile, digest_of, open_drops, quarantine
from omnigraph_assets.loads import loaded_digests
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError

BATCH: Final = 256
"""Files of one load; the others wait for the next one."""

_OF_THE_SET: Final = frozenset({"unique", "key", "endpoint", "orphan", "cardinality"})
"""Rules that files break together: which of them is to blame, no report can tell."""


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """A load between two steps: its run, and the files as they were when it was planned."""

    run_id: str
    files: tuple[DroppedFile, ...]

    def to_json(self) -> dict[str, Any]:
        return {"run_id": self.run_id, "files": [asdict(file) for file in self.files]}


def planned_load(told: Mapping[str, Any]) -> PlannedLoad:
    """What `PlannedLoad.to_json` has told."""
    return PlannedLoad(told["run_id"], tuple(DroppedFile(**file) for file in told["files"]))


def waiting_for(
    graph: Omnigraph, config: GraphConfig, branch: str, addresses: Sequence[str]
) -> list[tuple[DroppedFile, str]]:
    """The files to load into a branch, each with its digest; contents the branch has left out.

    Args:
        addresses: the only ones to take; all that wait if there are none.

    Raises:
        ConfigError: the graph has no drop directory.
        BranchNotFound: there is no such branch.
    """
    if config.drops is None:
        raise ConfigError(
            f"the graph `{config.name}` has no directory to load from",
            hint="set `drops` in its defs.yaml",
        )
    store = open_drops(config.drops)
    loaded = loaded_digests(graph, branch, graph.branch_get(branch).incarnation)
    wanted = set(addresses)
    found: dict[str, DroppedFile] = {}
    for file in store.list():
        if file.branch == branch and (not wanted or file.address in wanted):
            found.setdefault(digest_of(store, file), file)
    chosen = [(file, digest) for digest, file in found.items() if digest not in loaded]
    return chosen[:BATCH]


def put_away_bad(
    config: GraphConfig, files: Iterable[DroppedFile], violations: Iterable[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Quarantine the files that are bad whatever is loaded beside them; where they are now.

    A load that is refused for what its files are together is divided instead, by who plans loads.
    """
    assert config.drops is not None
    store = open_drops(config.drops)
    reasons: dict[str, list[Mapping[str, Any]]] = {}
    for violation in violations:
        if violation["rule"] not in _OF_THE_SET and violation.get("file") is not None:
            reasons.setdefault(violation["file"], []).append(violation)
    return tuple(
        quarantine(store, file, {"violations": reasons[file.address]})
        for file in files
        if file.address in reasons and store.look(file) == file
    )
