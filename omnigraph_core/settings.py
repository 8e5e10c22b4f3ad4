"""Every environment variable, in one typed table.

Nothing else in the project reads the environment. Each entry is documented in
docs/reference/settings.md, which a test compares with this table.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from omnigraph_core.errors import ConfigError
from omnigraph_core.setting_texts import (
    above_zero,
    byte_count,
    choice,
    count_or,
    flag,
    milliseconds,
    pairs,
    positive_seconds,
    row_count,
    seconds,
    switch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """An environment variable: its type is the type of its default."""

    name: str
    default: T
    parse: Callable[[str], T]
    about: str
    aliases: tuple[str, ...] = ()
    """Older names, read in this order when the name itself is not set."""

    def read(self, environ: Mapping[str, str] | None = None) -> T:
        """The current value; unset or blank means the default.

        Raises:
            ConfigError: the text does not parse; names the variable and what it takes.
        """
        source = os.environ if environ is None else environ
        for name in (self.name, *self.aliases):
            text = source.get(name, "").strip()
            if text:
                return self._parsed(name, text)
        return self.default

    def _parsed(self, name: str, text: str) -> T:
        try:
            return self.parse(text)
        except ValueError as problem:
            raise ConfigError(f"{name}={text!r}: {problem}", hint=self.about) from problem


FAILPOINTS: Final[Setting[Mapping[str, str]]] = Setting(
    "OMNIGRAPH_FAILPOINTS",
    default={},
    parse=pairs,
    about="Arms failpoints for fault tests: `name=crash; other=error*2; third=sleep(50)`.",
)


_optional: Final = str


AWS_REGION: Final[Setting[str | None]] = Setting(
    "AWS_REGION", None, _optional, "The region of an `s3://` graph."
)
AWS_ACCESS_KEY_ID: Final[Setting[str | None]] = Setting(
    "AWS_ACCESS_KEY_ID", None, _optional, "The key id that signs S3 requests."
)
AWS_SECRET_ACCESS_KEY: Final[Setting[str | None]] = Setting(
    "AWS_SECRET_ACCESS_KEY", None, _optional, "The secret that signs S3 requests."
)
AWS_SESSION_TOKEN: Final[Setting[str | None]] = Setting(
    "AWS_SESSION_TOKEN", None, _optional, "The token of temporary S3 credentials."
)
AWS_ENDPOINT_URL: Final[Setting[str | None]] = Setting(
    "AWS_ENDPOINT_URL", None, _optional, "The address of an S3-compatible store."
)
AWS_ENDPOINT_URL_S3: Final[Setting[str | None]] = Setting(
    "AWS_ENDPOINT_URL_S3", None, _optional, "Like AWS_ENDPOINT_URL, and stronger."
)
AWS_S3_FORCE_PATH_STYLE: Final = Setting(
    "AWS_S3_FORCE_PATH_STYLE",
    True,
    flag,
    "With an endpoint: the bucket stands in the path, not in the host name.",
)
AWS_ALLOW_HTTP: Final = Setting(
    "AWS_ALLOW_HTTP", False, flag, "Allows an endpoint without TLS: for local stores."
)
PUBLISH_LEASE: Final = Setting(
    "OMNIGRAPH_PUBLISH_LEASE",
    21_600.0,
    positive_seconds,
    "Seconds from reading a base to publishing on it; a slower writer must prepare again. "
    "Cleanup spares everything younger than twice this. The same for every process of a graph.",
)

RUN_EXPIRY: Final = Setting(
    "OMNIGRAPH_RUN_EXPIRY",
    86_400.0,
    positive_seconds,
    "Seconds without a write after which a running run counts as left behind: it no longer keeps "
    "its target from being deleted, and cleanup ends it.",
)
SCHEMA_LOCK: Final = Setting(
    "OMNIGRAPH_SCHEMA_LOCK",
    600.0,
    positive_seconds,
    "Seconds after which the lock of a schema change counts as left behind. It only spares two "
    "people the work of which one would be refused; data is written all the while.",
)
SYNC: Final = Setting(
    "OMNIGRAPH_SYNC",
    False,
    flag,
    "On a local disk: wait before and after each publish until the operating system has written "
    "everything out, so that a commit survives a power cut and not only a crash.",
)


EMBED_PROVIDER: Final[Setting[str | None]] = Setting(
    "OMNIGRAPH_EMBED_PROVIDER",
    None,
    choice("gemini", "openai", "openai-compatible", "mock"),
    "Who makes embeddings: `gemini`, `openai`, `openai-compatible` or `mock`. Unset: the one "
    "whose key is set, `gemini` first.",
)
EMBED_MODEL: Final[Setting[str | None]] = Setting(
    "OMNIGRAPH_EMBED_MODEL",
    None,
    _optional,
    "The model for vectors whose `@embed` names none. Unset: the provider's usual one.",
)
NANOGRAPH_EMBED_MODEL: Final[Setting[str | None]] = Setting(
    "NANOGRAPH_EMBED_MODEL",
    None,
    _optional,
    "Like OMNIGRAPH_EMBED_MODEL, weaker, and not for `gemini`.",
)
EMBED_BASE_URL: Final[Setting[str | None]] = Setting(
    "OMNIGRAPH_EMBED_BASE_URL",
    None,
    _optional,
    "The address of the embedding service, version included: `http://localhost:11434/v1`.",
)
GEMINI_BASE_URL: Final[Setting[str | None]] = Setting(
    "OMNIGRAPH_GEMINI_BASE_URL",
    None,
    _optional,
    "Like OMNIGRAPH_EMBED_BASE_URL, weaker, for `gemini` alone.",
)
OPENAI_BASE_URL: Final[Setting[str | None]] = Setting(
    "OPENAI_BASE_URL",
    None,
    _optional,
    "Like OMNIGRAPH_EMBED_BASE_URL, weaker, for `openai` and `openai-compatible`.",
)
GEMINI_API_KEY: Final[Setting[str | None]] = Setting(
    "GEMINI_API_KEY", None, _optional, "The key for `gemini`."
)
OPENAI_API_KEY: Final[Setting[str | None]] = Setting(
    "OPENAI_API_KEY", None, _optional, "The key for `openai`, and for services like it."
)
OPENROUTER_API_KEY: Final[Setting[str | None]] = Setting(
    "OPENROUTER_API_KEY",
    None,
    _optional,
    "The key for OpenRouter, which `openai-compatible` uses when no address is set.",
)
EMBED_TIMEOUT_MS: Final = Setting(
    "OMNIGRAPH_EMBED_TIMEOUT_MS",
    30_000,
    count_or(30_000),
    "Milliseconds to wait for an answer of the embedding service. "
    "`NANOGRAPH_EMBED_TIMEOUT_MS` is read after it.",
    aliases=("NANOGRAPH_EMBED_TIMEOUT_MS",),
)
EMBED_RETRY_ATTEMPTS: Final = Setting(
    "OMNIGRAPH_EMBED_RETRY_ATTEMPTS",
    4,
    count_or(4),
    "Times an embedding request is sent at most. `NANOGRAPH_EMBED_RETRY_ATTEMPTS` is read "
    "after it.",
    aliases=("NANOGRAPH_EMBED_RETRY_ATTEMPTS",),
)
EMBED_RETRY_BACKOFF_MS: Final = Setting(
    "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS",
    200,
    count_or(200),
    "Milliseconds before an embedding request is sent again; doubles each time. "
    "`NANOGRAPH_EMBED_RETRY_BACKOFF_MS` is read after it.",
    aliases=("NANOGRAPH_EMBED_RETRY_BACKOFF_MS",),
)
EMBED_DEADLINE_MS: Final[Setting[int | None]] = Setting(
    "OMNIGRAPH_EMBED_DEADLINE_MS",
    None,
    milliseconds,
    "Milliseconds one embedding request may take, waits and repetitions included.",
)
EMBEDDINGS_MOCK: Final = Setting(
    "OMNIGRAPH_EMBEDDINGS_MOCK",
    False,
    switch,
    "Makes vectors from a hash of the text, without a provider: `1`, `true`, `yes` or `on`. "
    "`NANOGRAPH_EMBEDDINGS_MOCK` is read after it.",
    aliases=("NANOGRAPH_EMBEDDINGS_MOCK",),
)
EMBED_BATCH: Final = Setting(
    "OMNIGRAPH_EMBED_BATCH", 64, count_or(64), "Texts per embedding request at most."
)
EMBED_CONCURRENCY: Final = Setting(
    "OMNIGRAPH_EMBED_CONCURRENCY", 4, count_or(4), "Embedding requests under way at one time."
)
EMBED_REQUESTS_PER_MINUTE: Final[Setting[int | None]] = Setting(
    "OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE",
    None,
    above_zero,
    "Requests the embedding service allows per minute. They are sent evenly, a little below the "
    "limit. Unset: no limit.",
)
EMBED_TOKENS_PER_MINUTE: Final[Setting[int | None]] = Setting(
    "OMNIGRAPH_EMBED_TOKENS_PER_MINUTE",
    None,
    above_zero,
    "Tokens the embedding service allows per minute; three bytes of UTF-8 count as one. Unset: no "
    "limit.",
)
EMBED_BATCH_FROM: Final[Setting[int | None]] = Setting(
    "OMNIGRAPH_EMBED_BATCH_FROM",
    None,
    above_zero,
    "Pending texts from which a backfill uses the provider's batch API, which is cheaper and may "
    "take a day. Unset: never.",
)
EMBED_BATCH_POLL_MS: Final = Setting(
    "OMNIGRAPH_EMBED_BATCH_POLL_MS",
    60_000,
    count_or(60_000),
    "Milliseconds between two questions whether a batch is done, at most. The first waits are "
    "shorter.",
)
EMBED_CACHE: Final[Setting[str | None]] = Setting(
    "OMNIGRAPH_EMBED_CACHE",
    None,
    _optional,
    "The file that keeps vectors already paid for; `off` keeps none. Unset: "
    "`omnigraph/embeddings.sqlite` in the user's cache directory.",
)
XDG_CACHE_HOME: Final[Setting[str | None]] = Setting(
    "XDG_CACHE_HOME", None, _optional, "The user's cache directory. Unset: `~/.cache`."
)


QUERY_MEMORY: Final = Setting(
    "OMNIGRAPH_QUERY_MEMORY",
    2 * 2**30,
    byte_count,
    "Bytes the rows of one query may take in memory: `512M`, `4G`. A query that needs more stops.",
)
QUERY_TIMEOUT: Final[Setting[float | None]] = Setting(
    "OMNIGRAPH_QUERY_TIMEOUT",
    None,
    positive_seconds,
    "Seconds a query may run. Unset: as long as it takes.",
)
CACHE_MEMORY: Final = Setting(
    "OMNIGRAPH_CACHE_MEMORY",
    2 * 2**30,
    byte_count,
    "Bytes of columns, adjacency, words and handles of versions a process keeps between queries.",
)
CACHE_DIR: Final[Setting[str | None]] = Setting(
    "OMNIGRAPH_CACHE_DIR",
    None,
    _optional,
    "The directory for local copies of files derived from a graph on S3. Unset: "
    "`omnigraph/derived` in the user's cache directory.",
)
DERIVED_FILES: Final = Setting(
    "OMNIGRAPH_DERIVED_FILES",
    True,
    flag,
    "Keeps adjacency and words as files beside the graph, for the next process to map.",
)
MAINTENANCE_CONCURRENCY: Final = Setting(
    "OMNIGRAPH_MAINTENANCE_CONCURRENCY",
    8,
    count_or(8),
    "Tables that `optimize`, `cleanup` and `verify` work on at a time. What computes more than it "
    "waits for the store is never done on more tables than there are processors, or two.",
)
READ_MAX_AGE: Final = Setting(
    "OMNIGRAPH_READ_MAX_AGE",
    0.0,
    seconds,
    "Seconds a reader may rely on the newest commit it knows of a branch before it asks the store "
    "for a newer one. 0: it asks for every query.",
)


SPARK_ROWS: Final = Setting(
    "OMNIGRAPH_SPARK_ROWS",
    50_000_000,
    row_count,
    "Rows beyond which a query whose engine is `auto` runs on Spark: of a table that it reads, or "
    "expected after one of its steps.",
)

NO_COLOR: Final = Setting(
    "NO_COLOR", False, lambda _: True, "Any text: no colours, on a terminal either."
)

BEARER_TOKEN: Final[Setting[str | None]] = Setting(
    "OMNIGRAPH_BEARER_TOKEN",
    None,
    _optional,
    "The token for graphs behind a server, if the graph has no variable of its own in "
    "`omnigraph.yaml`.",
)

CLIENT_TIMEOUT: Final = Setting(
    "OMNIGRAPH_CLIENT_TIMEOUT",
    300.0,
    positive_seconds,
    "Seconds a client of a server waits for an answer, or for the next part of one.",
)

SERVER_SPOOL: Final[Setting[str | None]] = Setting(
    "OMNIGRAPH_SERVER_SPOOL",
    None,
    _optional,
    "The directory in which a server keeps uploads, the state of jobs and answers under "
    "idempotency keys, for a day. Unset: one of the user's own among the temporary files.",
)
UPLOAD_MAX: Final = Setting(
    "OMNIGRAPH_UPLOAD_MAX",
    64 * 2**30,
    byte_count,
    "Bytes an upload to a server may have, unpacked: `512M`, `64G`.",
)
SERVER_JOBS: Final = Setting(
    "OMNIGRAPH_SERVER_JOBS",
    4,
    count_or(4),
    "Jobs that one process of a server works on at a time; others wait.",
)

SETTINGS: Final[tuple[Setting[Any], ...]] = (
    FAILPOINTS,
    AWS_REGION,
    AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY,
    AWS_SESSION_TOKEN,
    AWS_ENDPOINT_URL,
    AWS_ENDPOINT_URL_S3,
    AWS_S3_FORCE_PATH_STYLE,
    AWS_ALLOW_HTTP,
    PUBLISH_LEASE,
    RUN_EXPIRY,
    SCHEMA_LOCK,
    SYNC,
    EMBED_PROVIDER,
    EMBED_MODEL,
    NANOGRAPH_EMBED_MODEL,
    EMBED_BASE_URL,
    GEMINI_BASE_URL,
    OPENAI_BASE_URL,
    GEMINI_API_KEY,
    OPENAI_API_KEY,
    OPENROUTER_API_KEY,
    EMBED_TIMEOUT_MS,
    EMBED_RETRY_ATTEMPTS,
    EMBED_RETRY_BACKOFF_MS,
    EMBED_DEADLINE_MS,
    EMBEDDINGS_MOCK,
    EMBED_BATCH,
    EMBED_CONCURRENCY,
    EMBED_REQUESTS_PER_MINUTE,
    EMBED_TOKENS_PER_MINUTE,
    EMBED_BATCH_FROM,
    EMBED_BATCH_POLL_MS,
    EMBED_CACHE,
    XDG_CACHE_HOME,
    QUERY_MEMORY,
    QUERY_TIMEOUT,
    CACHE_MEMORY,
    CACHE_DIR,
    DERIVED_FILES,
    READ_MAX_AGE,
    SPARK_ROWS,
    MAINTENANCE_CONCURRENCY,
    BEARER_TOKEN,
    CLIENT_TIMEOUT,
    NO_COLOR,
    SERVER_SPOOL,
    UPLOAD_MAX,
    SERVER_JOBS,
)


def text(name: str) -> str | None:
    """A variable that only the configuration knows by name."""
    return os.environ.get(name)


def adopt(pairs: Mapping[str, str]) -> None:
    """Set the variables that are not set."""
    put({name: value for name, value in pairs.items() if name not in os.environ})


def put(pairs: Mapping[str, str | None]) -> dict[str, str | None]:
    """Set variables, or remove those that are None; returns what they were."""
    before = {name: os.environ.get(name) for name in pairs}
    for name, value in pairs.items():
        if value is None:
            os.environ.pop(name, None)
        elif before[name] != value:
            os.environ[name] = value
    return before


def configure_lance() -> None:
    """Set what Lance takes from the environment only; to be called before it is imported."""
    # Lance would rewrite a hint file on every local commit, at a third of its cost. We open
    # versions by number and never look at the hint.
    os.environ.setdefault("LANCE_USE_VERSION_HINT", "0")
