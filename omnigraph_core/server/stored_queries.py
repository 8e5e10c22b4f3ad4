"""Stored queries: every query of the `.gq` files below the query roots, by name.

Files are read again when they change. A set of files that is wrong stops a start; later it is told
in the log, and what was read before stays in force.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import CompileError, ConfigError
from omnigraph_core.manifest.layout import MANIFEST
from omnigraph_core.query.ast import Read
from omnigraph_core.query.parse import parse_queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from starlette.requests import Request

    from omnigraph_core.query import ast

_LOG: Final = logging.getLogger("omnigraph.server")
_SECONDS: Final = 1.0
"""Between two looks at the directories."""

_TOLD: Final = ("description", "instruction")
_KINDS: Final = {
    "String": "string",
    "Blob": "blob",
    "Bool": "bool",
    "I32": "int",
    "U32": "int",
    "I64": "bigint",
    "U64": "bigint",
    "F32": "float",
    "F64": "float",
    "Date": "date",
    "DateTime": "datetime",
    "Vector": "vector",
}


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A query of a file; `text` is that of the whole file."""

    name: str
    path: Path
    text: str
    query: ast.Query

    @property
    def is_mutation(self) -> bool:
        return not isinstance(self.query.body, Read)

    def to_json(self) -> dict[str, object]:
        texts = {str(note.name): note.text for note in self.query.annotations}
        told = {name: text for name, text in texts.items() if name in _TOLD}
        return {
            "name": self.name,
            "tool_name": self.name,
            **told,
            "mutation": self.is_mutation,
            "params": [_param(param) for param in self.query.params],
        }


def _param(param: ast.Param) -> dict[str, object]:
    type = param.type
    kind = _KINDS.get(str(type.name), "string")
    members: dict[str, object] = {"name": str(param.name), "kind": "list" if type.is_list else kind}
    if type.is_list:
        members["item_kind"] = kind
    if type.dimension is not None:
        members["vector_dim"] = type.dimension
    return {**members, "nullable": type.is_nullable}


class StoredQueries:
    """The queries of some directories. Safe to share between threads."""

    def __init__(self, roots: Iterable[Path]) -> None:
        """
        Raises:
            ConfigError: a file cannot be read, is wrong, or repeats a name; tells every problem.
        """
        self._roots = tuple(roots)
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        self._stamp = self._stamps()
        self._found = _read(self._stamp)

    @property
    def is_due(self) -> bool:
        """Whether the next call looks at the directories, which takes a while."""
        return time.monotonic() - self._looked >= _SECONDS

    def look(self) -> None:
        """Read what has changed, if it is time to. What was there before is given meanwhile."""
        with self._lock:
            if not self.is_due:
                return
            self._looked = time.monotonic()
            stamp = self._stamps()
            if stamp != self._stamp:
                self._stamp = stamp
                self._read_again(stamp)

    def all(self) -> tuple[StoredQuery, ...]:
        """By name."""
        found = self._newest()
        return tuple(found[name] for name in sorted(found))

    def get(self, name: str) -> StoredQuery | None:
        return self._newest().get(name)

    def _newest(self) -> Mapping[str, StoredQuery]:
        if self.is_due:
            self.look()
        return self._found

    def _read_again(self, stamp: Mapping[Path, tuple[int, int]]) -> None:
        try:
            self._found = _read(stamp)
        except ConfigError as problem:
            _LOG.error("stored queries stay as they were: %s", problem.message)

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        return dict(sorted(stamp for root in self._roots for stamp in _stamped(root)))


def stored_queries_of(request: Request) -> StoredQueries:
    """The stored queries of the server that answers a request."""
    found: StoredQueries = request.app.state.stored_queries
    return found


def _stamped(root: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    # What cannot be listed is gone meanwhile, or somebody else's: there is nothing to find.
    for directory, inside, files in os.walk(root):
        if MANIFEST in inside:  # a graph: many files, none of them a query
            inside.clear()
            continue
        for name in files:
            if name.endswith(".gq"):
                yield from _stamp(Path(directory, name))


def _stamp(path: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    try:
        facts = path.stat()
    except OSError:
        return  # gone meanwhile
    if stat.S_ISREG(facts.st_mode):
        yield path, (facts.st_mtime_ns, facts.st_size)


def _read(paths: Iterable[Path]) -> dict[str, StoredQuery]:
    found: dict[str, StoredQuery] = {}
    problems: list[str] = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
            queries = parse_queries(text, str(path)).queries
        except OSError as problem:
            problems.append(f"cannot read {path}: {problem.strerror}")
            continue
        except UnicodeDecodeError:
            problems.append(f"{path} is not UTF-8")
            continue
        except CompileError as problem:
            problems.append(problem.message)
            continue
        for query in queries:
            name = str(query.name)
            if name in found:
                problems.append(f"`{name}` is in {found[name].path} and in {path}")
            else:
                found[name] = StoredQuery(name, path, text, query)
    if problems:
        raise ConfigError(
            "stored queries cannot be used:\n" + "\n".join(problems),
            hint="names are unique in all `.gq` files below `query.roots`",
        )
    return found
