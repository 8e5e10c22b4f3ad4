"""The input beside the committed rows: buckets are looked at, what they found is put together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.spark.ingest.inspect import PART, Bucket, inspect_bucket
from omnigraph_core.spark.ingest.keys import PLACE
from omnigraph_core.spark.ingest.needs import wanted_keys
from omnigraph_core.spark.ingest.read_table import read_table_part, table_parts
from omnigraph_core.spark.ingest.suspects import Suspicion
from omnigraph_core.write.load_model import LoadMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.spark.ingest.inspect import Inspected
    from omnigraph_core.spark.ingest.model import Job, Keys, PartRead
    from omnigraph_core.spark.ingest.removed import Places
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.violations import Violations

T = TypeVar("T")

_MANY_TIMES: Final = 20
"""Committed rows for each row of the input, from which they are looked up one by one."""
_MOST_SUSPECTS: Final = 1_000_000
"""Rows that are looked at again; what is beyond is counted as it was suspected."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What all buckets found."""

    loaded: tuple[str, ...]
    inspected: Sequence[Inspected]
    versions: Mapping[str, tuple[str, int]]
    looked_at: frozenset[str]
    """The keys of committed tables that this was found out from."""

    @property
    def is_suspicious(self) -> bool:
        return any(f.suspects or f.lost_sources or f.orphans for f in self.inspected)

    def removed(self, table_key: str) -> list[Places]:
        """Committed rows that the input replaces."""
        return [places for f in self.inspected for places in f.removed.get(table_key, ())]

    def replaced_places(self, table_key: str) -> list[tuple[int, int]]:
        """Rows of the input that later ones replace: parts, and places in their files."""
        return [
            pair
            for found in self.inspected
            for rows in found.replaced.get(table_key, ())
            for pair in zip(
                rows.column(PART).to_pylist(), rows.column(PLACE).to_pylist(), strict=True
            )
        ]

    def suspicion(self, violations: Violations) -> Suspicion:
        """The rows to look at again; those that are too many are counted."""
        suspects: dict[str, list[pa.Table]] = defaultdict(list)
        room = _MOST_SUSPECTS
        for found in self.inspected:
            for (key, rule), tables in found.suspects.items():
                for rows in tables:
                    suspects[key].append(rows.slice(0, room))
                    violations.count(rule, max(rows.num_rows - room, 0))
                    room = max(room - rows.num_rows, 0)
        return Suspicion(
            self.loaded,
            suspects,
            _joined(found.replaced for found in self.inspected),
            _joined({k: [v] for k, v in f.lost_sources.items()} for f in self.inspected),
            tuple(orphans for found in self.inspected for orphans in found.orphans),
        )


def _joined(parts: Iterable[Mapping[str, list[T]]]) -> dict[str, list[T]]:
    whole: dict[str, list[T]] = defaultdict(list)
    for part in parts:
        for key, values in part.items():
            whole[key] += values
    return whole


def compare_with_committed(
    job: Job,
    read: Sequence[PartRead],
    snapshot: Snapshot,
    left_out: Mapping[str, Mapping[int, frozenset[int]]],
    runner: Runner,
) -> Comparison:
    """Look at every bucket of the input, beside the rows of a state."""
    loaded = tuple(dict.fromkeys(key for part in read for key in part.types))
    known = {key: sum(part.known.get(key, 0) for part in read) for key in loaded}
    wanted = wanted_keys(job, loaded, known)
    filled = {key: names for key, names in wanted.items() if snapshot.table(key).row_count}
    is_looked_up = _is_small(job, read, snapshot, filled)
    versions = {
        key: (entry.location, entry.physical_version) for key, entry in snapshot.tables.items()
    }
    committed: Sequence[Keys] = ()
    if not is_looked_up:
        tasks = [
            part
            for key, names in sorted(filled.items())
            for part in table_parts(key, job.open_at(*versions[key]), names)
        ]
        committed = runner.map(partial(read_table_part, job), tasks, name="read committed keys")
    given = tuple((part.number, part.keys) for part in read if part.keys is not None)
    buckets = [
        Bucket(number, given, tuple(committed), versions, loaded, left_out, is_looked_up)
        for number in range(job.bucket_count)
    ]
    inspected = runner.map(partial(inspect_bucket, job), buckets, name="compare keys")
    return Comparison(loaded, inspected, versions, frozenset(wanted))


def _is_small(
    job: Job, read: Sequence[PartRead], snapshot: Snapshot, filled: Mapping[str, object]
) -> bool:
    if job.mode is LoadMode.OVERWRITE:
        return False
    given = sum(sum(part.rows.values()) for part in read)
    return given * _MANY_TIMES < sum(snapshot.table(key).row_count for key in filled)
