"""The border of every task of a query: an error of ours on an executor is the same on the driver.

Rows have no room for errors, and Spark hands on nothing but the text of an exception. So a note on
the exception tells of the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import OmnigraphError
from omnigraph_core.spark.outcomes import note_error
from omnigraph_core.spark.worker import take_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa


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
        note_error(problem)
        raise
