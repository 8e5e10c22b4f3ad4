"""An error of ours that a task raises is the error of whoever waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.errors import BudgetExceeded, DataError, JobFailed, OmnigraphError
from omnigraph_core.spark.query.tasks import TaskError, bordered, original

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = pa.record_batch({"id": ["a"]})
ERRORS: list[OmnigraphError] = [
    DataError("sum exceeds I64", hint="sum less"),
    BudgetExceeded("return", 20, 10),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_travels_in_the_words_of_another(error: OmnigraphError) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield ROWS
        raise error

    made = bordered(batches(), {})
    assert next(made) is ROWS
    with pytest.raises(TaskError) as failed:
        next(made)
    said = f"An exception was thrown from the Python worker:\n  TaskError: {failed.value}\n  at …"
    found = original(JobFailed("Spark could not run it", job="q", trace=said))
    assert type(found) is type(error)
    assert (found.message, found.hint, found.details()) == (
        error.message,
        error.hint,
        error.details(),
    )
    assert "raise error" in str(found.__cause__)


def test_other_failures_stay_what_they_are() -> None:
    failure = JobFailed("Spark could not run it", job="q", trace="out of memory")
    assert original(failure) is failure


def test_what_is_no_error_of_ours_is_left_alone() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield ROWS
        raise KeyError("x")

    with pytest.raises(KeyError):
        list(bordered(batches(), {}))
