"""Errors on their way through Spark: one message that says what is wrong, without our own stack.

Spark hands on the text of what a Python process raised. Errors that were raised on purpose say
everything in their message; whatever else is raised keeps its trace.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from omnigraph_core.errors import OmnigraphError

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def told(method: Callable[P, R]) -> Callable[P, R]:
    """The same method, whose errors of ours begin here. Generators may be wrapped as well."""
    if inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def generate(*arguments: P.args, **named: P.kwargs) -> object:
            try:
                yield from method(*arguments, **named)
            except OmnigraphError as problem:
                raise problem.with_traceback(None) from None

        return generate  # type: ignore[return-value]

    @functools.wraps(method)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return method(*arguments, **named)
        except OmnigraphError as problem:
            raise problem.with_traceback(None) from None

    return call
