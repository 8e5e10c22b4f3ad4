"""An error of ours that a task raises is the error of whoever waits for it."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.errors import BudgetExceeded, DataError, OmnigraphError
from omnigraph_core.spark.outcomes import error_of
from omnigraph_core.spark.query.tasks import bordered

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
    with pytest.raises(type(error)) as failed:
        next(made)
    said = "".join(traceback.format_exception(failed.value))
    found = error_of(f"An exception was thrown:\n{said}\n  at …", summary="", name="q", count=1)
    assert found is not None
    assert type(found) is type(error)
    assert (found.message, found.hint, found.details()) == (
        error.message,
        error.hint,
        error.details(),
    )
    assert "raise error" in str(found.__cause__)


def test_other_failures_stay_what_they_are() -> None:
    assert error_of("out of memory", summary="out of memory", name="q", count=1) is None


def test_what_is_no_error_of_ours_is_left_alone() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield ROWS
        raise KeyError("x")

    with pytest.raises(KeyError):
        list(bordered(batches(), {}))
