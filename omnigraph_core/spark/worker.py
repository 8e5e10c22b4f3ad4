"""What runs on an executor: tasks come in as bytes, one outcome for each goes out as bytes.

A worker that dies returns nothing, and Spark gives its task to another. Only descriptions of work
and of what was made pass through here, never rows.
"""

from __future__ import annotations

from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import cloudpickle

from omnigraph_core import settings
from omnigraph_core.errors.wire import error_document, error_from
from omnigraph_core.spark.outcomes import Failed, Returned, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from omnigraph_core.errors import OmnigraphError

TASKS: Final = pa.schema([("task", pa.int32()), ("payload", pa.binary())])
OUTCOMES: Final = "task int, outcome binary"


def batch_worker(
    work: Callable[[Any], object], environment: Mapping[str, str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`; the work and the variables travel in it.

    Args:
        environment: variables of the driver that its tasks see as well.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                outcome = outcome_of(work, row["payload"], environment)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([row["task"]], pa.int32()), pa.array([outcome], pa.binary())],
                    ["task", "outcome"],
                )

    return run


def outcome_of(
    work: Callable[[Any], object], payload: bytes, environment: Mapping[str, str]
) -> bytes:
    """Do a packed task, and pack what becomes of it."""
    take_on(environment)

    def on_bytes(packed: bytes) -> bytes:
        return pack(work(cloudpickle.loads(packed)))  # what cannot be packed is an error, too

    done = attempt(on_bytes, payload)
    return pack((True, done.value)) if isinstance(done, Returned) else pack_failure(done)


_taken_on: Final[dict[str, str | None]] = {}
"""The variables that an earlier job set in this worker, with what they were before."""


def take_on(environment: Mapping[str, str]) -> None:
    """Have exactly the variables of this job.

    A worker serves many jobs, and libraries read variables in threads of their own: nothing is
    written if the job before had the same.
    """
    stale = {name: before for name, before in _taken_on.items() if name not in environment}
    settings.put(stale)
    for name in stale:
        del _taken_on[name]
    for name, before in settings.put(environment).items():
        _taken_on.setdefault(name, before)


def pack(value: object) -> bytes:
    """Any value as bytes; functions and classes of a script travel with it."""
    return bytes(cloudpickle.dumps(value))


def pack_failure(failure: Failed) -> bytes:
    """A failure as bytes, whatever its error holds."""
    error = failure.error
    if error is None:
        return pack((False, None, failure.summary, failure.trace))
    try:
        # Taken apart: to make it anew would need the arguments of its class.
        parts: tuple[Any, ...] = (type(error), error.args, error.__dict__)
        return pack((False, parts, failure.summary, failure.trace))
    except (PicklingError, TypeError, AttributeError):  # it holds what cannot travel
        told = error_from(error_document(error), 500)
        parts = (type(told), told.args, told.__dict__)
        return pack((False, parts, failure.summary, failure.trace))


def unpack(outcome: bytes) -> Returned[Any] | Failed:
    """The outcome of a task, on the driver."""
    is_returned, *parts = cloudpickle.loads(outcome)
    if is_returned:
        return Returned(cloudpickle.loads(parts[0]))
    taken_apart, summary, trace = parts
    return Failed(None if taken_apart is None else _joined(*taken_apart), summary, trace)


def _joined(
    kind: type[OmnigraphError], arguments: tuple[Any, ...], facts: dict[str, Any]
) -> OmnigraphError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(facts)
    return error
