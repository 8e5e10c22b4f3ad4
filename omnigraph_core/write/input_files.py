"""Which files an input stands for: a path, a directory or a pattern comes in, sorted files go out.

A directory stands for all files below it, a pattern for the files it matches and those below the
directories it matches. Names that begin with `_` or `.` are left out, as Spark leaves them out,
unless a pattern spells that beginning. On S3 an input costs one listing, however many files it has.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.errors import ConfigError
from omnigraph_core.storage.inputs import iter_objects_below, split_address, try_find_object
from omnigraph_core.violations import MAX_LISTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from omnigraph_core.storage.inputs import ObjectFile

    OnProblem: TypeAlias = Callable[[ConfigError], None]

_WILDCARDS: Final = frozenset("*?[")
_ANY_DEPTH: Final = "**"
_HIDDEN: Final = ("_", ".")
_HIDDEN_HINT: Final = "names that begin with `_` or `.` are left out"
_PATTERN_HINT: Final = (
    "`*` and `?` match within a name, but no `_` or `.` at its start; `**` matches directories"
)


def local_files(given: Path, on_problem: OnProblem) -> list[Path]:
    """The files of a path; one that exists is never taken for a pattern.

    Args:
        on_problem: called for each part of a directory that cannot be listed or loaded.

    Raises:
        ConfigError: there are none. A path that is no pattern is returned even if nothing is there.
    """
    if given.is_dir():
        files = sorted(_walk(given, _Pattern(()), on_problem), key=str)
        if not files:
            raise _no_files(str(given))
        return files
    fixed = _count_fixed(given.parts)
    if fixed == len(given.parts) or given.exists():
        return [given]
    top = Path(*given.parts[:fixed])
    pattern = _Pattern(given.parts[fixed:])
    files = sorted(_walk(top, pattern, on_problem), key=str) if top.is_dir() else []
    if not files:
        raise _no_match(str(given))
    return files


def object_files(address: str) -> list[ObjectFile]:
    """The files of an address on S3; an object of that name is never taken for a pattern.

    Raises:
        ConfigError: there are none.
    """
    root, path = split_address(address)
    segments = tuple(segment for segment in path.split("/") if segment)
    fixed = _count_fixed(segments)
    is_pattern = fixed < len(segments)
    names_file = bool(path) and not path.endswith("/")
    if names_file and not is_pattern:
        file = try_find_object(address)
        if file is not None:
            return [file]
    files: list[ObjectFile] = []
    pattern, has_objects = _Pattern(segments[fixed:]), False
    for file in iter_objects_below(root, "/".join(segments[:fixed])):
        if is_pattern and file.path == path:
            return [file]
        has_objects = True
        below = file.path.split("/")[fixed:]
        if below and pattern.matches(below):
            files.append(file)
    files = _without_markers(files)
    if not files and is_pattern:
        raise _no_match(address)
    if not files and names_file and not has_objects:
        raise ConfigError(f"no such file: {address}")
    if not files:
        raise _no_files(address)
    return sorted(files, key=lambda file: file.path)


class InputProblems:
    """The problems of all inputs, so that one error names them."""

    def __init__(self) -> None:
        self._first: list[ConfigError] = []
        self._count = 0
        self._has_listed = False

    @contextmanager
    def gathered(self, *, is_listed: bool = False) -> Iterator[None]:
        """Keep a problem for later.

        Args:
            is_listed: it is about a file that was found, which a pattern could leave out.
        """
        try:
            yield
        except ConfigError as problem:
            self.add(problem, is_listed=is_listed)

    def add(self, problem: ConfigError, *, is_listed: bool = True) -> None:
        self._count += 1
        self._has_listed |= is_listed
        if len(self._first) < MAX_LISTED:
            self._first.append(problem)

    def check(self) -> None:
        """
        Raises:
            ConfigError: there is a problem.
        """
        if not self._count:
            return
        if self._count == 1 and not self._has_listed:
            raise self._first[0]
        hints = dict.fromkeys(problem.hint for problem in self._first if problem.hint)
        if self._has_listed:
            hints["leave files out with a pattern, as in 'exports/*.jsonl'"] = None
        raise ConfigError(self._message(), hint="; ".join(hints) or None)

    def _message(self) -> str:
        if self._count == 1:
            return self._first[0].message
        lines = [f"{self._count} inputs cannot be loaded:"]
        lines += [f"  {problem.message}" for problem in self._first]
        if self._count > len(self._first):
            lines.append(f"  and {self._count - len(self._first)} more")
        return "\n".join(lines)


def _without_markers(files: Sequence[ObjectFile]) -> list[ObjectFile]:
    """The files without empty objects that tools keep in place of directories.

    Their names end with `/`, but the client drops that.
    """
    directories: set[str] = set()
    for file in files:
        directory = file.path.rpartition("/")[0]
        while directory and directory not in directories:
            directories.add(directory)
            directory = directory.rpartition("/")[0]
    return [file for file in files if file.size or not _is_marker(file, directories)]


def _is_marker(file: ObjectFile, directories: set[str]) -> bool:
    return file.path in directories or "." not in file.path.rpartition("/")[2]


def _no_files(where: str) -> ConfigError:
    return ConfigError(f"no files to load in the directory {where}", hint=_HIDDEN_HINT)


def _no_match(pattern: str) -> ConfigError:
    return ConfigError(f"no file matches {pattern}", hint=_PATTERN_HINT)


def _count_fixed(names: Sequence[str]) -> int:
    """How many names come before the first with a wildcard."""
    for count, name in enumerate(names):
        if not _WILDCARDS.isdisjoint(name):
            return count
    return len(names)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The names of a path, some with wildcards. Without names it matches all that is not hidden.

    It is read as an automaton: a state is how many names have been matched.

    >>> pattern = _Pattern(("**", "*.jsonl"))
    >>> [pattern.matches(p.split("/")) for p in ("a.jsonl", "x/y/a.jsonl", "_x/a.jsonl", "a.csv")]
    [True, True, False, False]
    >>> _Pattern(("2024-*",)).matches(["2024-01", "day", "a.csv"])
    True
    """

    names: tuple[str, ...]

    @property
    def start(self) -> frozenset[int]:
        return self._open_to({0})

    def matches(self, path: Sequence[str]) -> bool:
        """Whether it matches a file, or a directory that the file is in."""
        states = self.start
        for name in path:
            states = self.after(states, name)
        return self.is_match(states)

    def is_match(self, states: frozenset[int]) -> bool:
        return len(self.names) in states

    def after(self, states: frozenset[int], name: str) -> frozenset[int]:
        """The states below a directory, or at a file; none if nothing there can match."""
        is_hidden = name.startswith(_HIDDEN)
        reached: set[int] = set()
        for state in states:
            expected = self.names[state] if state < len(self.names) else _ANY_DEPTH
            if expected == _ANY_DEPTH:
                if not is_hidden:
                    reached.add(state)
            elif fnmatchcase(name, expected) and (not is_hidden or expected[0] == name[0]):
                reached.add(state + 1)
        return self._open_to(reached)

    def _open_to(self, states: set[int]) -> frozenset[int]:
        """The states with those that `**` leads to without a name."""
        reached = set(states)
        for state, name in enumerate(self.names):
            if state in reached and name == _ANY_DEPTH:
                reached.add(state + 1)
        return frozenset(reached)


def _walk(top: Path, pattern: _Pattern, on_problem: OnProblem) -> Iterator[Path]:
    """The files that match, in the order of the disk. Links are followed."""
    waiting = [(top, pattern.start, frozenset([_identity(top.stat())]))]
    while waiting:
        directory, states, above = waiting.pop()
        try:
            entries = _entries(directory)
        except OSError as problem:
            where = problem.filename or directory
            on_problem(ConfigError(f"cannot list {where}: {problem.strerror}"))
            continue
        for entry in entries:
            path, reached = directory / entry.name, pattern.after(states, entry.name)
            if entry.directory in above and reached:
                on_problem(ConfigError(f"{path} links to a directory that it is in"))
            elif entry.directory is not None and reached:
                waiting.append((path, reached, above | {entry.directory}))
            elif entry.is_file and pattern.is_match(reached):
                yield path
            elif entry.directory is None and pattern.is_match(reached):
                on_problem(ConfigError(f"{path} is not a regular file"))


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    directory: tuple[int, int] | None
    """What tells a directory from others; None for anything else."""
    is_file: bool


def _entries(directory: Path) -> list[_Entry]:
    with os.scandir(directory) as found:
        return [
            _Entry(entry.name, _identity(entry.stat()) if entry.is_dir() else None, entry.is_file())
            for entry in found
        ]


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
