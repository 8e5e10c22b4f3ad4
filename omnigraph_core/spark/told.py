"""What Spark says when it fails: pages, of which a line matters."""

from __future__ import annotations

import re
from typing import Final

_SHOWN: Final = 500
_CALL: Final = re.compile(r"An error occurred while calling \S+\s*")
_CLASS: Final = re.compile(r"^:?\s*(?:[a-z_]\w*\.)+(?:\w+\$)?(?=[A-Z])")
_TRACE: Final = "Traceback (most recent call last):\n"
_MISSING: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def summary(problem: BaseException) -> str:
    """The line that matters, without the call that led to it.

    >>> summary(ValueError("An error occurred while calling o85.collect.\\n"
    ...                    ": org.apache.spark.SparkException: Job aborted\\n\\tat org.apache"))
    'SparkException: Job aborted'
    >>> summary(ValueError("An exception was thrown:\\nTraceback (most recent call last):\\n"
    ...                    "  File \\"x.py\\", line 1\\nKeyError: 3\\n\\nDriver stacktrace:"))
    'KeyError: 3'
    """
    said = _CALL.sub("", str(problem), count=1).strip()
    line = _raised(said) or (said.splitlines()[0].strip() if said else type(problem).__name__)
    line = _CLASS.sub("", line)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _raised(said: str) -> str | None:
    """What Python raised on an executor: the first line after its trace that is not indented."""
    _, found, rest = said.partition(_TRACE)
    lines = rest.splitlines() if found else []
    return next((line for line in lines if line and not line.startswith(" ")), None)


def advice(problem: BaseException) -> str | None:
    """What to do about it, if that can be told."""
    missing = _MISSING.search(str(problem))
    if missing is None:
        return None
    return (
        f"the executors have no `{missing.group(1)}`: they need a Python with the packages of "
        "`omnigraph[spark]`, which `spark.pyspark.python` names"
    )
