"""What runs on an executor: tasks come in as bytes, one outcome for each goes out as bytes.

A worker that dies returns nothing, and Spark gives its task to another. Only descriptions of work,
of what was made, and keys pass through here, never rows.
"""

from __future__ import annotations

from functools import partial
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from omnigraph_core import settings
from omnigraph_core.errors.wire import error_document, error_from
from omnigraph_core.job_report import written_so_far
from omnigraph_core.spark.blocks import Blocks, Gathered
from omnigraph_core.spark.outcomes import Failed, Returned, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from omnigraph_core.errors import OmnigraphError
    from omnigraph_core.spark.blocks import Received

    Batches = Iterator[pa.RecordBatch]

R = TypeVar("R")

TASKS: Final = pa.schema([("task", pa.int32()), ("payload", pa.binary())])
OUTCOMES: Final = "task int, outcome binary"
BLOCKS: Final = "partition int, writer int, section int, block binary"

_FAILED: Final = -1
"""The section of a block that tells of a task that failed."""
_BATCH_BYTES: Final = 32 << 20
"""Of blocks that are handed to Spark together."""


def batch_worker(
    work: Callable[[Any], object], environment: Mapping[str, str]
) -> Callable[[Batches], Batches]:
    """A function for `mapInArrow`; the work and the variables travel in it.

    Args:
        environment: variables of the driver that its tasks see as well.
    """

    def run(batches: Batches) -> Batches:
        take_on(environment)
        for number, payload in _tasks(batches):
            yield _outcome_batch(number, outcome_of(work, payload, number))

    return run


def emitter(
    emit: Callable[[Any], Iterable[Blocks]], partitions: int, environment: Mapping[str, str]
) -> Callable[[Batches], Batches]:
    """A function for `mapInArrow`: tasks come in, their blocks for all partitions go out.

    Whatever attempt of a task wins, it has emitted the same bytes in the same order: Spark may
    repeat tasks of this stage while others have read what they emitted before.
    """

    def run(batches: Batches) -> Batches:
        take_on(environment)
        for number, payload in _tasks(batches):
            yield from _emitted(emit, partitions, payload, number)

    return run


def _emitted(
    emit: Callable[[Any], Iterable[Blocks]], partitions: int, payload: bytes, number: int
) -> Batches:
    begun = attempt(lambda packed: iter(emit(cloudpickle.loads(packed))), payload, number)
    found: Returned[Blocks | None] | Failed
    if isinstance(begun, Returned):
        found = attempt(_next, begun.value, number)
        while isinstance(found, Returned) and found.value is not None:
            yield from _block_batches(found.value, number)
            found = attempt(_next, begun.value, number)
    else:
        found = begun
    if isinstance(found, Failed):
        # One partition tells of it, the others only must not look at half of what there is.
        content = pack_failure(found)
        ends = np.append(0, len(content) + np.arange(partitions))
        failure = Blocks(_FAILED, ends, content + bytes(partitions - 1))
        yield from _block_batches(failure, number)


def _next(blocks: Iterator[Blocks]) -> Blocks | None:
    return next(blocks, None)


def _block_batches(blocks: Blocks, writer: int) -> Batches:
    """The blocks that have any bytes, some of them at a time."""
    ends = blocks.ends
    filled = np.flatnonzero(np.diff(ends))
    buffer = pa.py_buffer(blocks.content)
    start = 0
    while start < len(filled):
        first = int(ends[filled[start]])
        stop = int(np.searchsorted(ends[filled], first + _BATCH_BYTES))
        chosen = filled[start : max(stop, start + 1)]
        last = int(ends[chosen[-1] + 1])
        offsets = (np.append(ends[chosen], last) - first).astype(np.int32)
        count = len(chosen)
        contents = [None, pa.py_buffer(offsets), buffer.slice(first, last - first)]
        yield pa.record_batch(
            {
                "partition": chosen.astype(np.int32),
                "writer": np.full(count, writer, np.int32),
                "section": np.full(count, blocks.section, np.int32),
                "block": pa.Array.from_buffers(pa.binary(), count, contents),
            }
        )
        start += count


def meeter(
    meet: Callable[[int, Received], object], environment: Mapping[str, str]
) -> Callable[[Batches], Batches]:
    """A function for `mapInArrow` that turns all blocks of a partition into one outcome."""

    def run(batches: Batches) -> Batches:
        take_on(environment)
        gathered = Gathered()
        for batch in batches:
            columns = [batch.column(place).to_pylist() for place in range(4)]
            for partition, writer, section, block in zip(*columns, strict=True):
                gathered.add(partition, writer, section, block)
        for partition, received in gathered.partitions():
            failed = received.pop(_FAILED, None)
            if failed is None:
                work = partial(_met, meet, received)
                yield _outcome_batch(partition, outcome_of(work, pack(partition), partition))
            elif partition == 0:
                yield _outcome_batch(partition, failed[0][1])

    return run


def _met(meet: Callable[[int, Received], R], received: Received, partition: int) -> R:
    return meet(partition, received)


def _tasks(batches: Batches) -> Iterator[tuple[int, bytes]]:
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def _outcome_batch(number: int, outcome: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int32()), pa.array([outcome], pa.binary())], ["task", "outcome"]
    )


def outcome_of(work: Callable[[Any], object], payload: bytes, number: int) -> bytes:
    """Do a packed task, and pack what becomes of it."""

    def on_bytes(packed: bytes) -> bytes:
        return pack(work(cloudpickle.loads(packed)))  # what cannot be packed is an error, too

    before = written_so_far()
    done = attempt(on_bytes, payload, number)
    if isinstance(done, Failed):
        return pack_failure(done)
    return pack((True, done.value, written_so_far() - before))


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
    try:
        # Taken apart: to make it anew would need the arguments of its class.
        return pack((False, (type(error), error.args, error.__dict__), failure.trace))
    except (PicklingError, TypeError, AttributeError):  # it holds what cannot travel
        told = error_from(error_document(error), 500)
        return pack((False, (type(told), told.args, told.__dict__), failure.trace))


def unpack(outcome: bytes) -> Returned[Any] | Failed:
    """The outcome of a task, on the driver."""
    is_returned, *parts = cloudpickle.loads(outcome)
    if is_returned:
        value, written = parts
        return Returned(cloudpickle.loads(value), written)
    taken_apart, trace = parts
    return Failed(_joined(*taken_apart), trace)


def _joined(
    kind: type[OmnigraphError], arguments: tuple[Any, ...], facts: dict[str, Any]
) -> OmnigraphError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(facts)
    return error
