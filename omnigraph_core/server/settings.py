"""The environment variables of a server, in one typed table beside those of everybody.

Each entry is documented in docs/reference/settings.md, which a test compares with this table.
"""

from __future__ import annotations

from typing import Any, Final

from omnigraph_core import settings
from omnigraph_core.settings import Setting


def _as_given(text: str) -> str | None:
    return text


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError("expected a number above zero")
    return int(text)


def _level(text: str) -> str:
    if text.lower() not in ("debug", "info", "warning", "error"):
        raise ValueError("expected debug, info, warning or error")
    return text.lower()


_flag: Final = settings.SYNC.parse
_seconds: Final = settings.READ_MAX_AGE.parse
_bytes: Final = settings.QUERY_MEMORY.parse

TOKEN: Final = Setting(
    "OMNIGRAPH_SERVER_BEARER_TOKEN", None, _as_given, "The bearer token of the actor `default`."
)
TOKENS_FILE: Final = Setting(
    "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE",
    None,
    _as_given,
    "A file of bearer tokens: a JSON object, actor to token.",
)
TOKENS_JSON: Final = Setting(
    "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON",
    None,
    _as_given,
    "The same object as text. Does not count beside a file.",
)
TOKENS_AWS_SECRET: Final = Setting(
    "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET",
    None,
    _as_given,
    "The secret of AWS Secrets Manager that holds the object. No other source of tokens counts "
    "beside it.",
)
TARGET_URI: Final = Setting(
    "OMNIGRAPH_TARGET_URI", None, _as_given, "The graph to serve, when there are no arguments."
)
CONFIG_FILE: Final = Setting(
    "OMNIGRAPH_CONFIG",
    None,
    _as_given,
    "The `omnigraph.yaml` to serve, when there are no arguments and no OMNIGRAPH_TARGET_URI.",
)
TARGET: Final = Setting(
    "OMNIGRAPH_TARGET", None, _as_given, "Beside OMNIGRAPH_CONFIG: the graph to serve by name."
)
BIND: Final = Setting(
    "OMNIGRAPH_BIND",
    None,
    _as_given,
    "Where to listen, as host:port, when there are no arguments. Unset: `0.0.0.0:8080` if the "
    "graph comes from the environment.",
)
UNAUTHENTICATED: Final = Setting(
    "OMNIGRAPH_UNAUTHENTICATED",
    False,
    _flag,
    "Allows a server without tokens to be reached from other machines.",
)
LOG_LEVEL: Final = Setting(
    "OMNIGRAPH_LOG", "info", _level, "What is logged: `debug`, `info`, `warning` or `error`."
)
SOURCE_VERSION: Final = Setting(
    "OMNIGRAPH_SOURCE_VERSION",
    None,
    _as_given,
    "The source the server was built from, shown at `/healthz`.",
)
READERS: Final = Setting(
    "OMNIGRAPH_SERVER_READERS", 8, _count, "Reads a process works on at a time; others wait."
)
WRITERS: Final = Setting(
    "OMNIGRAPH_SERVER_WRITERS", 4, _count, "Writes a process works on at a time; others wait."
)
SHUTDOWN_TIMEOUT: Final = Setting(
    "OMNIGRAPH_SHUTDOWN_TIMEOUT",
    30.0,
    _seconds,
    "Seconds a server that is told to stop waits for requests under way.",
)
ACTOR_REQUESTS: Final = Setting(
    "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX",
    64,
    _count,
    "Requests one actor may have under way in a process; one more is refused with 429.",
)
ACTOR_BYTES: Final = Setting(
    "OMNIGRAPH_PER_ACTOR_BYTES_MAX",
    4 * 2**30,
    _bytes,
    "Bytes the bodies of those requests may have together.",
)
JOBS_MAX: Final = Setting(
    "OMNIGRAPH_SERVER_JOBS_MAX",
    256,
    _count,
    "Jobs that may be under way in a process, those that wait for their turn included; one more is "
    "refused with 429.",
)
ACTOR_JOBS: Final = Setting(
    "OMNIGRAPH_PER_ACTOR_JOBS_MAX", 64, _count, "Of those, how many may be of one actor."
)

MULTIPROCESS_DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Where workers share their figures: read by the library of the figures when it is imported."""

SERVER_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    TOKEN,
    TOKENS_FILE,
    TOKENS_JSON,
    TOKENS_AWS_SECRET,
    TARGET_URI,
    CONFIG_FILE,
    TARGET,
    BIND,
    UNAUTHENTICATED,
    LOG_LEVEL,
    SOURCE_VERSION,
    READERS,
    WRITERS,
    SHUTDOWN_TIMEOUT,
    ACTOR_REQUESTS,
    ACTOR_BYTES,
    JOBS_MAX,
    ACTOR_JOBS,
)
