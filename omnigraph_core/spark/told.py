"""What Spark says when it fails: pages, of which a line matters."""

from __future__ import annotations

import re
from typing import Final

_SHOWN: Final = 500
_CALL: Final = re.compile(r"An error occurred while calling \S+\s*")
_CLASS: Final = re.compile(r"^:?\s*(?:[a-z_]\w*\.)+(?:\w+\$)?(?=[A-Z])")


def summary(problem: BaseException) -> str:
    """The line that matters, without the call that led to it.

    >>> summary(ValueError("An error occurred while calling o85.collect.\\n"
    ...                    ": org.apache.spark.SparkException: Job aborted\\n\\tat org.apache"))
    'SparkException: Job aborted'
    """
    said = _CALL.sub("", str(problem), count=1).strip()
    line = said.splitlines()[0].strip() if said else type(problem).__name__
    line = _CLASS.sub("", line)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
