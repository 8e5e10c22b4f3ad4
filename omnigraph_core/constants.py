"""Every figure the system is built around, in one typed table.

Changing one is a code change. Each entry is documented in docs/reference/settings.md, which a test
compares with this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Constant(Generic[T]):
    """A figure the system is built around; changing it is a code change."""

    name: str
    value: T
    about: str


RESERVED_PARAMETER: Final = Constant(
    "reserved_parameter",
    "__nanograph_now",
    "The parameter name queries may not declare: it carries the query's one timestamp.",
)
RRF_K: Final = Constant("rrf_k", 60, "The rank constant of `rrf` when a query does not give one.")
FUZZY_MAX_EDITS: Final = Constant(
    "fuzzy_max_edits", 2, "Edits `fuzzy` tolerates per word when a query does not say."
)

MAX_NESTING: Final = Constant(
    "max_nesting",
    64,
    "Levels of brackets in a query: later passes recurse, far from Python's own limit.",
)
MAX_STEPS: Final = Constant(
    "max_steps",
    128,
    "Steps of a query's plan: they hand rows on to each other, far from Python's own limit.",
)
MAX_DIGITS: Final = Constant(
    "max_digits",
    640,
    "Characters of a number literal: Python reads that many whatever limit is set on it.",
)
SCHEMA_DOCUMENT_VERSION: Final = Constant(
    "schema_document_version",
    2,
    "The format of persisted schema documents that this release writes.",
)

INTERNAL_SCHEMA_VERSION: Final = Constant(
    "internal_schema_version", 2, "The format of catalogs that this release writes."
)
PUBLISHER_RETRY_BUDGET: Final = Constant(
    "publisher_retry_budget", 5, "Times a publish starts over after another writer was first."
)
PREPARE_BUDGET: Final = Constant(
    "prepare_budget",
    15,
    "Times an insert, append or merge is prepared again after a table it relies on has moved.",
)
MAX_LOG_FRAGMENTS: Final = Constant(
    "max_log_fragments",
    16,
    "Files of rows a log has at most; small ones are merged as it grows.",
)
RECENT_COMMITS: Final = Constant(
    "recent_commits", 64, "Commits a catalog image carries, newest last."
)
LOG_FLUSH_INTERVAL: Final = Constant(
    "log_flush_interval", 32, "Commits of a branch between two appends to the commit log."
)
CLEANUP_GRACE_SECONDS: Final = Constant(
    "cleanup_grace_seconds",
    86_400.0,
    "Age under which cleanup spares a file or a superseded version unless told otherwise.",
)
EMBED_BATCH_CHARACTERS: Final = Constant(
    "embed_batch_characters",
    200_000,
    "Characters of an embedding request at most, unless one text alone has more.",
)
EMBED_CACHE_ENTRIES: Final = Constant(
    "embed_cache_entries", 50_000, "Vectors the cache keeps; those not used longest go first."
)
EMBED_BATCH_FILE_TEXTS: Final = Constant(
    "embed_batch_file_texts",
    50_000,
    "Texts of one batch of the provider's batch API at most; OpenAI allows that many.",
)
EMBED_BATCH_FILE_BYTES: Final = Constant(
    "embed_batch_file_bytes",
    190_000_000,
    "Bytes of the file of such a batch at most; OpenAI allows 200 MB.",
)
EMBED_BATCH_KEPT_SECONDS: Final = Constant(
    "embed_batch_kept_seconds",
    7 * 86_400.0,
    "Age under which cleanup spares the records of batches that no backfill has collected, and the "
    "vectors beside them.",
)
EMBED_MAX_RETRY_AFTER: Final = Constant(
    "embed_max_retry_after",
    60.0,
    "Seconds an embedding service may ask to wait; it is asked again after that many anyway.",
)
DERIVED_MIN_ROWS: Final = Constant(
    "derived_min_rows",
    50_000,
    "Edges, or texts, from which what is derived from a table is kept as a file beside the graph.",
)
DERIVED_GROWTH: Final = Constant(
    "derived_growth",
    0.25,
    "Share of rows that have changed since a derived file was written for it to be written anew.",
)
DERIVED_COPY_BYTES: Final = Constant(
    "derived_copy_bytes",
    4 * 2**30,
    "Bytes of local copies of derived files; those not used longest go first.",
)

EXACT_VECTOR_BYTES: Final = Constant(
    "exact_vector_bytes",
    512 * 2**20,
    "Bytes of a column of vectors up to which `nearest` compares all of them, in memory; beyond, "
    "it asks the column's index.",
)

COMPARE_ROWS: Final = Constant(
    "compare_rows",
    2**20,
    "Rows whose ids are in memory at a time while two versions of a table are compared.",
)

CONSTANTS: Final[tuple[Constant[Any], ...]] = (
    RESERVED_PARAMETER,
    RRF_K,
    FUZZY_MAX_EDITS,
    MAX_NESTING,
    MAX_STEPS,
    MAX_DIGITS,
    SCHEMA_DOCUMENT_VERSION,
    INTERNAL_SCHEMA_VERSION,
    PUBLISHER_RETRY_BUDGET,
    PREPARE_BUDGET,
    MAX_LOG_FRAGMENTS,
    RECENT_COMMITS,
    LOG_FLUSH_INTERVAL,
    CLEANUP_GRACE_SECONDS,
    EMBED_BATCH_CHARACTERS,
    EMBED_CACHE_ENTRIES,
    EMBED_BATCH_FILE_TEXTS,
    EMBED_BATCH_FILE_BYTES,
    EMBED_BATCH_KEPT_SECONDS,
    EMBED_MAX_RETRY_AFTER,
    EXACT_VECTOR_BYTES,
    DERIVED_MIN_ROWS,
    DERIVED_GROWTH,
    DERIVED_COPY_BYTES,
    COMPARE_ROWS,
)
