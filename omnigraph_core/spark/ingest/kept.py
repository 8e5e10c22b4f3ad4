"""What the steps of a load keep for each other: documents beside the graph, one for each step.

A step may run again, in another process: the newest document of a step counts. Documents name only
files and numbers, so that whoever reads one runs nothing that it says.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnigraph_core.errors import StorageError
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import AcceptedSchema, TableOperation
from omnigraph_core.settings import PUBLISH_LEASE
from omnigraph_core.spark.ingest.inspect import Inspected, Orphans
from omnigraph_core.spark.ingest.model import Job, PartRead
from omnigraph_core.storage.inputs import ObjectFile
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.violations import Rule, Violation, Violations
from omnigraph_core.write.embed import EmbedMode
from omnigraph_core.write.load_model import LoadMode
from omnigraph_core.write.sources import Format, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.spark.ingest.comparing import Comparison
    from omnigraph_core.storage.session import Store
    from omnigraph_core.write.batches import Places

_PLAN: Final = "plan"
_READ: Final = "reading"
_AUDIT: Final = "audit"
_FOLDER: Final = "steps"


class Kept:
    """The documents of one run."""

    def __init__(self, store: Store, run: str) -> None:
        self._scratch = Scratch(store, f"{run}/{_FOLDER}")

    def plan(self) -> dict[str, Any] | None:
        """What the run loads, and how."""
        return self._get(_PLAN)

    def keep_plan(self, document: Mapping[str, Any]) -> None:
        self._put(_PLAN, document)

    def read(self) -> tuple[Job, list[PartRead]] | None:
        """The job, and what became of each part of the input."""
        found = self._get(_READ)
        if found is None or _is_old(found["begun_at"]):
            return None
        return _job(found["job"]), [_part_read(part) for part in found["parts"]]

    def keep_read(self, job: Job, read: Sequence[PartRead], begun_at: float) -> None:
        # Who asks for vectors, and how, is a matter of the process that has read.
        told = {name: value for name, value in asdict(job).items() if name != "share"}
        parts = [_part_document(part) for part in read]
        self._put(_READ, {"job": told, "parts": parts, "begun_at": begun_at})

    def inspected(self, table_key: str, snapshot: Snapshot, job: Job) -> list[Inspected] | None:
        """What was found about the rows of a table, if all that it rests on is as it was."""
        found = self._get(_inspection_of(table_key))
        if found is None or found["job"] != _name_of(job):
            return None
        if any(_version(snapshot, key) != version for key, version in found["versions"].items()):
            return None
        return [_inspected(one) for one in found["inspected"]]

    def keep_inspected(
        self, table_key: str, snapshot: Snapshot, job: Job, comparison: Comparison
    ) -> None:
        versions = {key: _version(snapshot, key) for key in comparison.looked_at}
        found = [_inspected_document(one) for one in comparison.inspected]
        document = {"job": _name_of(job), "versions": versions, "inspected": found}
        self._put(_inspection_of(table_key), document)

    def staged(
        self, table_key: str, snapshot: Snapshot, job: Job
    ) -> tuple[UpdateTable | None] | None:
        """The staged change of a table, in a tuple, if it was staged on its present version."""
        found = self._get(_stage_of(table_key))
        if found is None or found["job"] != _name_of(job):
            return None
        if found["version"] != _version(snapshot, table_key):
            return None
        change = found["change"]
        if change is None:
            return (None,)
        if _is_old(change["staged_since"]):
            return None
        return (UpdateTable(**change | {"operation": TableOperation(change["operation"])}),)

    def keep_staged(
        self, table_key: str, snapshot: Snapshot, job: Job, change: UpdateTable | None
    ) -> None:
        document = {
            "job": _name_of(job),
            "version": _version(snapshot, table_key),
            "change": None if change is None else asdict(change),
        }
        self._put(_stage_of(table_key), document)

    def audited(self) -> bool:
        """Whether the load was found to be good once, against a state of its branch.

        One whose plan is gone is not: cleanup takes what is oldest first, and without a plan there
        is nothing to go on from.
        """
        names = self._scratch.names("")
        return all(any(name.startswith(f"{step}-") for name in names) for step in (_PLAN, _AUDIT))

    def keep_audited(self) -> None:
        self._put(_AUDIT, {})

    def _put(self, step: str, document: Mapping[str, Any]) -> None:
        self._scratch.put(step, json.dumps(document, default=_plain).encode())

    def _get(self, step: str) -> dict[str, Any] | None:
        # Names end with the time they were made at, so the last one is the newest.
        names = sorted(self._scratch.names(f"{step}-"))
        if not names:
            return None
        try:
            document = json.loads(bytes(self._scratch.read_whole(names[-1])))
        except (ValueError, RecursionError) as problem:
            root, path = self._scratch.address(names[-1])
            raise StorageError(f"{root}/{path} is damaged: {problem}") from problem
        assert isinstance(document, dict)
        return document


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a load in steps goes on from."""

    kept: Kept
    digest: str
    places: Places


def source_document(source: Source) -> dict[str, Any]:
    """A source that every executor can open."""
    file = source.data
    assert isinstance(file, Path | ObjectFile)
    place = str(file) if isinstance(file, Path) else asdict(file)
    return {
        "file": place,
        "format": str(source.format),
        "name": source.name,
        "type_name": source.type_name,
        "has_decimals": source.has_decimals,
    }


def source_of(document: Mapping[str, Any]) -> Source:
    place = document["file"]
    file = Path(place) if isinstance(place, str) else ObjectFile(**place)
    return Source(
        file,
        Format(document["format"]),
        document["name"],
        document["type_name"],
        has_decimals=document["has_decimals"],
    )


def _plain(value: object) -> object:
    """Values of records that JSON does not have are shown in messages only."""
    return str(value)


def _is_old(moment: float) -> bool:
    """Whether files that were begun then may not be published any more when all is done."""
    return time.time() - moment > PUBLISH_LEASE.read() / 2


def _inspection_of(table_key: str) -> str:
    return f"inspect-{table_key.replace(':', '-')}"


def _stage_of(table_key: str) -> str:
    return f"stage-{table_key.replace(':', '-')}"


def _name_of(job: Job) -> str:
    """Tells one reading of the input from another of the same run."""
    return f"{job.id} {job.seed}"


def _version(snapshot: Snapshot, table_key: str) -> str | None:
    entry = snapshot.tables.get(table_key)
    return None if entry is None else f"{entry.location} {entry.physical_version}"


def _job(document: dict[str, Any]) -> Job:
    given = document | {
        "schema": AcceptedSchema(**document["schema"]),
        "tables": {key: (place, version) for key, (place, version) in document["tables"].items()},
        "mode": LoadMode(document["mode"]),
        "embed": EmbedMode(document["embed"]),
        "only": None if document["only"] is None else tuple(document["only"]),
    }
    return Job(**given)


def _part_document(part: PartRead) -> dict[str, Any]:
    document = {field.name: getattr(part, field.name) for field in fields(part)}
    return document | {"problems": _violations_document(part.problems)}


def _part_read(document: dict[str, Any]) -> PartRead:
    given = document | {
        "problems": _violations(document["problems"]),
        "types": tuple(document["types"]),
    }
    return PartRead(**given)


def _violations_document(found: Violations) -> dict[str, Any]:
    listed = [asdict(violation) for violation in found.listed]
    return {"listed": listed, "counts": {str(rule): n for rule, n in found.counts.items()}}


def _violations(document: dict[str, Any]) -> Violations:
    whole = Violations(len(document["listed"]))
    listed: Counter[Rule] = Counter()
    for given in document["listed"]:
        violation = Violation(**given | {"rule": Rule(given["rule"])})
        listed[violation.rule] += 1
        whole.add(violation)
    for name, count in document["counts"].items():
        whole.count(Rule(name), count - listed[Rule(name)])
    return whole


def _inspected_document(found: Inspected) -> dict[str, Any]:
    return {
        "name": found.name,
        "tables": sorted(found.tables),
        "suspects": [[key, str(rule), n] for (key, rule), n in found.suspects.items()],
        "replaced": found.replaced,
        "removed": found.removed,
        "lost_sources": found.lost_sources,
        "orphans": [asdict(replace(one, first=one.first.tolist())) for one in found.orphans],
    }


def _inspected(document: dict[str, Any]) -> Inspected:
    orphans = (
        Orphans(**one | {"first": np.array(one["first"], np.uint64)}) for one in document["orphans"]
    )
    return Inspected(
        document["name"],
        frozenset(document["tables"]),
        Counter({(key, Rule(rule)): n for key, rule, n in document["suspects"]}),
        Counter(document["replaced"]),
        Counter(document["removed"]),
        Counter(document["lost_sources"]),
        tuple(orphans),
    )
