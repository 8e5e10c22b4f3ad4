"""Processes that end with their test, however it ends."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.support.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.processes import Worker


class Start(Protocol):
    def __call__(
        self, function: str, *arguments: Any, env: Mapping[str, str] | None = None
    ) -> Worker: ...


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a function of `tests.support.writers` in a process of its own."""
    with ExitStack() as stack:

        def start(function: str, *arguments: Any, env: Mapping[str, str] | None = None) -> Worker:
            worker = spawn(f"tests.support.writers:{function}", *arguments, env=env)
            return stack.enter_context(worker)

        yield start
