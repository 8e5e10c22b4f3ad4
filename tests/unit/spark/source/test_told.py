"""Errors on their way through Spark."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.spark.source.told import told

if TYPE_CHECKING:
    from collections.abc import Iterator


@told
def refuse(what: str) -> None:
    try:
        raise ValueError("below")
    except ValueError as problem:
        raise ConfigError(what, hint="otherwise") from problem


@told
def some_then_refuse(count: int) -> Iterator[int]:
    yield from range(count)
    refuse("enough")


def test_an_error_of_ours_is_one_message() -> None:
    with pytest.raises(ConfigError) as refused:
        refuse("no")
    shown = "".join(traceback.format_exception(refused.value))
    assert "below" not in shown
    assert shown.endswith("omnigraph_core.errors.system.ConfigError: no\nhint: otherwise\n")


def test_generators_are_told_of_as_well() -> None:
    numbers = some_then_refuse(2)
    assert [next(numbers), next(numbers)] == [0, 1]
    with pytest.raises(ConfigError, match="enough"):
        next(numbers)
    assert refuse.__name__ == "refuse"
