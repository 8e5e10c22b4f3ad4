"""Where everything of a graph lives below its root: names come in, relative paths go out.

A name becomes exactly one path segment, and no two names share one, so `a` and `a/b` never meet in
a directory and no name leads out of its own.
"""

from __future__ import annotations

import re
from typing import Final

from omnigraph_core.errors import ConfigError, InvariantBroken, StorageError
from omnigraph_core.ids import table_directory

MANIFEST: Final = "__manifest"
BRANCH_REFS: Final = "_refs/branches"
BRANCH_MANIFESTS: Final = "_refs/manifests"
TAG_REFS: Final = "_refs/tags"
LEASES: Final = "_refs/leases"
DELETED_REFS: Final = "_refs/deleted"
CLEANUPS: Final = "_refs/cleanups"
SCHEMA_LOCKS: Final = "_refs/schema_locks"
GRAPH_COMMITS: Final = "_graph_commits.lance"
GRAPH_COMMIT_ACTORS: Final = "_graph_commit_actors.lance"
GRAPH_RUNS: Final = "_graph_runs.lance"
GRAPH_RUN_ACTORS: Final = "_graph_run_actors.lance"

REF_SUFFIX: Final = ".json"
MAX_ESCAPED: Final = 240
"""Bytes of an escaped name: with `.json`, and the `#<n>` that local stores add to a file while it
is written, it still fits the 255 of a file name."""

_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
_ESCAPED: Final = re.compile(r"%([0-9A-F]{2})")
_TABLE_KEY: Final = re.compile(r"(node|edge):(.+)", re.DOTALL)
_TOKEN: Final = re.compile(r"[0-9A-Za-z]+")


def escape_name(name: str) -> str:
    """A name as one path segment: UTF-8 bytes other than letters, digits and `-_.` as `%XX`.

    Raises:
        ConfigError: the name is empty, no Unicode text, or too long for a file name.

    >>> escape_name("team a/nightly"), escape_name("..")
    ('team%20a%2Fnightly', '%2E.')
    """
    try:
        data = name.encode()
    except UnicodeEncodeError as problem:
        raise ConfigError(f"the name {name!r} is not Unicode text") from problem
    if not data:
        raise ConfigError("a name must not be empty")
    # A leading dot makes hidden files, and `.` and `..` are directories.
    segment = "".join(
        chr(byte) if byte in _PLAIN and (at or byte != ord(".")) else f"%{byte:02X}"
        for at, byte in enumerate(data)
    )
    if len(segment) > MAX_ESCAPED:
        raise ConfigError(
            f"the name `{name:.40}…` is too long: {len(segment)} bytes once escaped",
            hint=f"at most {MAX_ESCAPED}; every byte but A-Z a-z 0-9 - _ . counts three",
        )
    return segment


def unescape_name(segment: str) -> str:
    """The name a path segment stands for.

    Raises:
        StorageError: no name is written so; something else put the file there.

    >>> unescape_name("team%20a%2Fnightly")
    'team a/nightly'
    """
    try:
        raw = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), segment).encode("latin-1")
        name = raw.decode()
        if escape_name(name) == segment:
            return name
    except (UnicodeError, ConfigError):
        pass  # told below, together with what decodes but is written differently
    raise StorageError(
        f"`{segment}` is not the file name of a branch or a tag",
        hint="remove the file: OmniGraph has not written it",
    )


def branch_ref_path(name: str) -> str:
    """The object that says a branch exists.

    >>> branch_ref_path("review/parts")
    '_refs/branches/review%2Fparts.json'
    """
    return f"{BRANCH_REFS}/{escape_name(name)}{REF_SUFFIX}"


def tag_ref_path(name: str) -> str:
    return f"{TAG_REFS}/{escape_name(name)}{REF_SUFFIX}"


def branch_manifest_path(incarnation: str) -> str:
    """The catalog of a branch other than main."""
    return f"{BRANCH_MANIFESTS}/{escape_name(incarnation)}"


def table_location(table_key: str, *, token: str | None = None) -> str:
    """The directory of a table. A type made again after its removal needs a token of its own.

    >>> table_location("node:Part"), table_location("edge:Fits", token="2f")
    ('nodes/2e3f2619ed36c3b4', 'edges/d1a61884ee71b50d-2f')
    """
    found = _TABLE_KEY.fullmatch(table_key)
    if found is None:
        raise InvariantBroken(f"a table key starts with node: or edge:, unlike {table_key!r}")
    if token is not None and not _TOKEN.fullmatch(token):
        raise InvariantBroken(f"a token of a table is letters and digits, unlike {token!r}")
    directory = f"{found[1]}s/{table_directory(found[2])}"
    return directory if token is None else f"{directory}-{token}"
