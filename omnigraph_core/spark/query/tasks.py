"""The border of every task of a query: an error of ours on an executor is the same on the driver.

Rows have no room for errors, and Spark hands on nothing but the text of an exception. So the error
itself travels in that text.
"""

from __future__ import annotations

import base64
import re
import traceback
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import JobFailed, OmnigraphError
from omnigraph_core.spark.outcomes import Failed, WorkerTraceback
from omnigraph_core.spark.worker import pack_failure, take_on, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

_CARRIED: Final = re.compile(r"omnigraph-error<([A-Za-z0-9+/=]+)>")


class TaskError(Exception):
    """Carries an error of ours to the driver."""

    def __init__(self, problem: OmnigraphError) -> None:
        trace = "".join(traceback.format_exception(problem))
        packed = pack_failure(Failed(problem, problem.message, trace))
        super().__init__(f"omnigraph-error<{base64.b64encode(packed).decode()}>")


def bordered(
    batches: Iterator[pa.RecordBatch], variables: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """The same batches, made with the variables of the job; errors of ours can travel.

    Args:
        variables: of the environment, as the driver has them.
    """
    take_on(variables)
    try:
        yield from batches
    except OmnigraphError as problem:
        raise TaskError(problem) from problem


def original(failure: JobFailed) -> OmnigraphError:
    """The error that a task raised, if that is what made a job fail; else the failure itself."""
    found = _CARRIED.search(failure.trace)
    outcome = None if found is None else unpack(base64.b64decode(found.group(1)))
    if not isinstance(outcome, Failed) or outcome.error is None:
        return failure
    outcome.error.__cause__ = WorkerTraceback(f"\n{outcome.trace}")
    return outcome.error
