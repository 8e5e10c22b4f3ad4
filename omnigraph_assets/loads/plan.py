"""Which dropped files a load is made of, and what becomes of those that cannot be loaded."""

import itertools
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.loads.run_records import (
    LoadedTypes,
    LoadFile,
    load_of,
    loaded_contents,
)
from omnigraph_assets.resources.landing import (
    LOADED,
    DroppedFile,
    DropProblem,
    DropStore,
    OnProblem,
    ignore_problem,
    moved_files,
    open_drops,
    quarantine,
)
from omnigraph_core.engine import run_calls
from omnigraph_core.engine.loading import content_digests
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, OmnigraphError, StorageError
from omnigraph_core.history.runs import RunRecord, RunStatus
from omnigraph_core.schema.catalog import Catalog

BATCH: Final = 256
"""Files of one load; the others wait for the next one."""
SMALL: Final = 1 << 20
"""Bytes of a file that is looked through for its types before it is loaded."""
_UNPACKED: Final = 4 * SMALL

_OF_THE_SET: Final = frozenset({"unique", "key", "endpoint", "orphan", "cardinality"})
"""Rules that files break together: which of them is to blame, no report can tell."""


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """A load between two steps: its run, and the files as they were when it was planned."""

    run_id: str
    files: tuple[DroppedFile, ...]

    def to_json(self) -> dict[str, Any]:
        return {"run_id": self.run_id, "files": [asdict(file) for file in self.files]}


def planned_load(document: Mapping[str, Any]) -> PlannedLoad:
    """The inverse of `PlannedLoad.to_json`."""
    return PlannedLoad(document["run_id"], tuple(DroppedFile(**f) for f in document["files"]))


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What a load is to be made of. `types` are table keys, None for all types.

    Files of one content are all named, and are loaded once.
    """

    files: Mapping[DroppedFile, LoadFile]
    types: frozenset[str] | None
    finished: tuple[DroppedFile, ...] = ()
    """Files whose content the branch has already."""
    problems: tuple[DropProblem, ...] = ()
    """Files that are left out, as they cannot be read."""


def table_keys(catalog: Catalog) -> frozenset[str]:
    nodes = (type.table_key for type in catalog.nodes.values())
    return frozenset((*nodes, *(type.table_key for type in catalog.edges.values())))


def plan_files(
    graph: Omnigraph,
    config: GraphConfig,
    catalog: Catalog,
    branch: str,
    *,
    addresses: Sequence[str] = (),
    selected: frozenset[str] | None = None,
) -> LoadPlan:
    """The files to load into a branch, and the types of their records that it lacks.

    Files that lack different types are not loaded together: the later ones wait.

    Args:
        addresses: the only files to take; all that wait if there are none.
        selected: the only types to load, as table keys.

    Raises:
        ConfigError: the graph has no drop directory, Spark cannot be reached, or all files are
            there and none can be read.
        BranchNotFound: there is no such branch.
        StorageError: the store gives no file.
    """
    store, wanted = landing_of(config), set(addresses)
    problems: list[DropProblem] = []
    waiting = [
        file
        for file in store.list(problems.append)
        if file.branch == branch and (not wanted or file.address in wanted)
    ]
    every = table_keys(catalog)
    found = _Inspected({}, [], {})
    # The first files may wait for types that are not selected, so later ones are looked at too.
    for start in range(0, len(waiting), BATCH):
        some = waiting[start : start + BATCH]
        _inspect(found, graph, config, catalog, branch, some, selected or every)
        if len(found.first_load()) >= BATCH:
            break
    if not found.lacking and not found.finished:
        _raise_unreadable(found.unreadable)
    types = found.first_types()
    return LoadPlan(
        dict(itertools.islice(found.first_load().items(), BATCH)),
        None if types == every else types,
        tuple(found.finished),
        (
            *(problem for problem in problems if not wanted or problem.address in wanted),
            *(
                DropProblem(file.address, f"cannot be read: {problem}", file.id)
                for file, problem in found.unreadable.items()
            ),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Inspected:
    """What is known of files that wait."""

    lacking: dict[DroppedFile, tuple[str, frozenset[str]]]
    """The digest of a file, and the types that the branch lacks of it."""
    finished: list[DroppedFile]
    unreadable: dict[DroppedFile, Exception]

    def first_types(self) -> frozenset[str] | None:
        return next((types for _, types in self.lacking.values()), None)

    def first_load(self) -> dict[DroppedFile, LoadFile]:
        """The files that lack the same types as the first one."""
        first = self.first_types()
        return {
            file: LoadFile(digest, file.id)
            for file, (digest, types) in self.lacking.items()
            if types == first
        }


def _inspect(
    found: _Inspected,
    graph: Omnigraph,
    config: GraphConfig,
    catalog: Catalog,
    branch: str,
    files: Sequence[DroppedFile],
    selected: frozenset[str],
) -> None:
    store = landing_of(config)
    digests = _digests(store, config, files, found.unreadable)
    incarnation = graph.branch_get(branch).incarnation
    loaded = loaded_contents(graph, branch, incarnation, digests.values())
    for file, digest in digests.items():
        known = loaded.get(digest, LoadedTypes(frozenset()))
        try:
            is_done = digest in loaded and is_finished(store, file, known, catalog)
        except (OSError, StorageError) as problem:  # taken back meanwhile, say
            found.unreadable[file] = problem
            continue
        if is_done:
            found.finished.append(file)
        elif known.types is not None and (left := selected - known.types):
            found.lacking[file] = (digest, left)


def _digests(
    store: DropStore,
    config: GraphConfig,
    files: Sequence[DroppedFile],
    unreadable: dict[DroppedFile, Exception],
) -> dict[DroppedFile, str]:
    """The digests of all files that can be read; why others cannot is put into `unreadable`.

    Raises:
        OmnigraphError, OSError: all files can be opened, and yet they have no digests.
    """
    left = list(files)
    while True:
        try:
            found = content_digests([file.address for file in left], engine=config.engine)
            return dict(zip(left, found, strict=True))
        except (OSError, OmnigraphError):  # no matter which: files are opened to find the bad ones
            problems = {file: _read_problem(store, file) for file in left}
            bad = {file: problem for file, problem in problems.items() if problem is not None}
            if not bad:
                raise
            unreadable |= bad
            left = [file for file in left if file not in bad]


def _raise_unreadable(unreadable: Mapping[DroppedFile, Exception]) -> None:
    """A load that is left with nothing fails for the files that are there; gone ones are none."""
    for problem in unreadable.values():
        if isinstance(problem, StorageError):
            raise problem
        if not isinstance(problem, FileNotFoundError):
            raise ConfigError(f"no file can be read: {problem}") from problem


def _read_problem(store: DropStore, file: DroppedFile) -> Exception | None:
    try:
        with store.open(file) as opened:
            opened.read(1)
    except (OSError, StorageError) as problem:
        return problem
    return None


def landing_of(config: GraphConfig) -> DropStore:
    """
    Raises:
        ConfigError: the graph has no drop directory.
    """
    if config.drops is None:
        raise ConfigError(
            f"the graph `{config.name}` has no directory to load from",
            hint="set `drops` in its defs.yaml",
        )
    return open_drops(config.drops)


def is_finished(store: DropStore, file: DroppedFile, loaded: LoadedTypes, catalog: Catalog) -> bool:
    """Whether a branch has all records of a file, by the types it was given of its content."""
    if loaded.covers(table_keys(catalog)):
        return True
    found = types_in(store, file, catalog)
    return found is not None and loaded.covers(found)


def types_in(store: DropStore, file: DroppedFile, catalog: Catalog) -> frozenset[str] | None:
    """The table keys of the records of a small file; None if it is large, or a record is odd."""
    if file.size > SMALL:
        return None
    with store.open(file) as opened:
        data = opened.read(SMALL + 1)
    text = _unpacked(data) if file.name.endswith(".gz") else data
    if text is None or len(data) > SMALL:
        return None
    found: set[str] = set()
    for line in text.splitlines():
        if not line.strip():
            continue
        key = _table_key_of(line, catalog)
        if key is None:
            return None
        found.add(key)
    return frozenset(found)


def _unpacked(data: bytes) -> bytes | None:
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unpacking.decompress(data, _UNPACKED)
    except zlib.error:
        return None
    return text if unpacking.eof and not unpacking.unused_data else None


def _table_key_of(line: bytes, catalog: Catalog) -> str | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or ("type" in record) == ("edge" in record):
        return None
    name = record.get("type", record.get("edge"))
    if not isinstance(name, str):
        return None
    found = catalog.try_edge(name) if "edge" in record else catalog.nodes.get(name)
    return None if found is None else found.table_key


def read_anew(graph: Omnigraph, config: GraphConfig, run: RunRecord) -> bool:
    """Read the files of a load again, if what was read has become too old to be published.

    Returns:
        False if they are not what they were: others' records would pass for theirs.
    """
    if run.status is not RunStatus.RUNNING or run_calls.is_landed(graph, run):
        return True
    if run_calls.is_read(graph, run.run_id):
        return True
    if not _are_there(config, run):
        return False
    graph.load_steps(run.run_id, branch=run.target_branch, engine=config.engine).read()
    return _are_there(config, run)


def _are_there(config: GraphConfig, run: RunRecord) -> bool:
    """Whether all files of a load lie where they were dropped, as they were."""
    load = load_of(run)
    assert load is not None
    return {file.id for file in load.files} <= {file.id for file in landing_of(config).list()}


def archive_finished(
    config: GraphConfig, files: Iterable[DroppedFile], on_problem: OnProblem
) -> tuple[str, ...]:
    """Archive files whose content a branch has; where they are now."""
    store = landing_of(config)
    moved = moved_files(files, lambda file: store.archive(file, LOADED), on_problem)
    return tuple(address for _, address in moved)


def archive_loaded(
    graph: Omnigraph,
    config: GraphConfig,
    catalog: Catalog,
    run: RunRecord,
    on_problem: OnProblem = ignore_problem,
) -> tuple[str, ...]:
    """Archive the files of a published load of which the branch has every record; where they are.

    Args:
        on_problem: called for each file that cannot be moved; the next load finds it loaded.

    Raises:
        OSError, StorageError: the files cannot be listed.
    """
    store, load = landing_of(config), load_of(run)
    assert load is not None
    digests = {file.id: file.digest for file in load.files}
    loaded = loaded_contents(graph, run.target_branch, load.incarnation, digests.values())

    def archive(file: DroppedFile) -> str | None:
        is_done = is_finished(store, file, loaded[digests[file.id]], catalog)
        return store.archive(file, LOADED) if is_done else None

    ours = [file for file in store.list() if file.id in digests]
    return tuple(address for _, address in moved_files(ours, archive, on_problem))


def quarantine_invalid(
    config: GraphConfig,
    files: Iterable[DroppedFile],
    violations: Iterable[Mapping[str, Any]],
    on_problem: OnProblem = ignore_problem,
) -> tuple[str, ...]:
    """Quarantine the files that are bad whatever is loaded beside them; where they are now.

    A load that is refused for what its files are together is divided instead, by who plans loads.

    Args:
        on_problem: called for each file that cannot be moved.
    """
    store = landing_of(config)
    reasons: dict[str, list[Mapping[str, Any]]] = {}
    for violation in violations:
        if violation["rule"] not in _OF_THE_SET and violation.get("file") is not None:
            reasons.setdefault(violation["file"], []).append(violation)
    moved = moved_files(
        (file for file in files if file.address in reasons),
        lambda file: quarantine(store, file, {"violations": reasons[file.address]}),
        on_problem,
    )
    return tuple(address for _, address in moved)
