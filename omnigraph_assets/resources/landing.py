"""Files that were dropped for a branch: listed, opened, archived.

A drop directory has one folder for each branch, its name percent-escaped, and two of our own:
`_loaded` for files whose rows are published, `_quarantine` for files that were refused, each beside
a `.reason.json`. Who writes a file slowly writes `<name>.part` and renames it.
"""

import errno
import hashlib
import json
import os
import stat
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol, TypeAlias
from urllib.parse import quote, unquote

from omnigraph_core.errors import StorageError

SUFFIXES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
LOADED: Final = "_loaded"
QUARANTINE: Final = "_quarantine"
REASON: Final = ".reason.json"
_UNPRINTABLE: Final = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories that break a line, drive a terminal, or stand for bytes that are no UTF-8."""
_LINK: Final = "is a symbolic link"


@dataclass(frozen=True, slots=True)
class DroppedFile:
    """A file as it lies there. `stamp` changes whenever the file is written or moved."""

    branch: str
    address: str
    size: int
    stamp: int
    """Microseconds since the epoch."""
    tag: str = ""
    """What else the store tells a version of a file by: times of some stores are whole seconds."""

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]

    @property
    def id(self) -> str:
        """Tells a file as it lies there from every other: no content is read for it."""
        text = f"{self.address}\n{self.size}\n{self.stamp}\n{self.tag}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class DropProblem:
    """Something in a drop directory that cannot be loaded, or not be moved, and why."""

    address: str
    problem: str
    id: str = ""
    """Tells it from a later problem of the same address."""

    def __str__(self) -> str:
        """One line of text, whatever the name holds."""
        return f"{self.address!r} {self.problem}"


OnProblem: TypeAlias = Callable[[DropProblem], None]


def ignore_problem(_: DropProblem) -> None:
    """For those who look again at what another look has reported."""


class DropStore(Protocol):
    """Where files are dropped."""

    def list(self, on_problem: OnProblem = ignore_problem) -> list[DroppedFile]:
        """The files that wait, by branch and name; unfinished ones and our own left out.

        Args:
            on_problem: called for everything else that has the name of a file to load.
        """
        ...

    def look(self, file: DroppedFile) -> DroppedFile | None:
        """The file as it is now; None if it is gone."""
        ...

    def open(self, file: DroppedFile) -> IO[bytes]: ...

    def archive(self, file: DroppedFile, folder: str) -> str | None:
        """Move a file out of the way; where it is now. One of that name there is not replaced.

        Returns:
            None if it is gone or was written anew: what lies there now waits for a load.
        """
        ...

    def write(self, address: str, text: str) -> None: ...


def is_dropped(name: str) -> bool:
    """Whether a file of that name is meant to be loaded.

    >>> [is_dropped(name) for name in ("a.jsonl", "a.jsonl.part", ".a.jsonl", "a.jsonl.gz")]
    [True, False, False, True]
    """
    return name.endswith(SUFFIXES) and not name.startswith((".", "_"))


def name_problem(name: str) -> str | None:
    """Why no file or branch of that name is loaded; None if its name is no reason.

    >>> name_problem("a.jsonl"), name_problem("a\\n.jsonl")
    (None, 'has a name with control characters')
    """
    found = {unicodedata.category(character) for character in name}
    if "Cs" in found:
        return "has a name that is not UTF-8"
    return None if found.isdisjoint(_UNPRINTABLE) else "has a name with control characters"


def folder_of(branch: str) -> str:
    """The folder of a branch.

    >>> folder_of("team/import")
    'team%2Fimport'
    """
    return quote(branch, safe="")


def quarantine(store: DropStore, file: DroppedFile, reason: Mapping[str, object]) -> str | None:
    """Put a file that cannot be loaded away, with the reason beside it; where it is now.

    Returns:
        None if it is gone or was written anew.
    """
    address = store.archive(file, QUARANTINE)
    if address is not None:
        store.write(f"{address}{REASON}", json.dumps(reason, indent=2, default=str) + "\n")
    return address


def moved_files(
    files: Iterable[DroppedFile],
    move: Callable[[DroppedFile], str | None],
    on_problem: OnProblem,
) -> Iterator[tuple[DroppedFile, str]]:
    """Move files; those that were moved, and where they are.

    Args:
        move: one of the ways to put a file away; None if the file stays.
        on_problem: called for each file that cannot be moved: it keeps no other where it is.
    """
    for file in files:
        try:
            address = move(file)
        except (OSError, StorageError) as error:
            on_problem(DropProblem(file.address, f"cannot be moved: {error}", file.id))
            continue
        if address is not None:
            yield file, address


class LocalDrops:
    """Drops below a directory of this machine: regular files; links are not followed."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)

    def list(self, on_problem: OnProblem = ignore_problem) -> list[DroppedFile]:
        return sorted(self._found(on_problem), key=lambda file: (file.branch, file.address))

    def _found(self, on_problem: OnProblem) -> Iterator[DroppedFile]:
        if not self._root.is_dir():
            return
        for folder in self._root.iterdir():
            if not folder.name.startswith((".", "_")):
                branch = unquote(folder.name)
                yield from self._found_in(branch, _names_in(folder, branch, on_problem), on_problem)

    def _found_in(
        self, branch: str, paths: Iterable[Path], on_problem: OnProblem
    ) -> Iterator[DroppedFile]:
        for path in paths:
            if not is_dropped(path.name):
                continue
            try:
                state = path.lstat()
                problem = name_problem(path.name) or _file_problem(path, state)
            except FileNotFoundError:  # loaded or taken back meanwhile
                continue
            except OSError as error:
                on_problem(DropProblem(str(path), f"cannot be read: {error.strerror}"))
                continue
            if problem is None:
                yield _file(branch, path, state)
            else:
                on_problem(DropProblem(str(path), problem, str(state.st_ctime_ns)))

    def look(self, file: DroppedFile) -> DroppedFile | None:
        path = Path(file.address)
        try:
            return _file(file.branch, path, path.lstat())
        except FileNotFoundError:
            return None

    def open(self, file: DroppedFile) -> IO[bytes]:
        # Without O_NONBLOCK the open of a pipe that has taken the name would wait for a writer.
        opened = os.open(file.address, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise OSError(errno.EINVAL, "not a regular file", file.address)
        return os.fdopen(opened, "rb")

    def archive(self, file: DroppedFile, folder: str) -> str | None:
        if self.look(file) != file:
            return None
        target = self._root / folder / folder_of(file.branch)
        target.mkdir(parents=True, exist_ok=True)
        chosen = _free_name(target / file.name, file.stamp)
        path = Path(file.address)
        try:
            path.rename(chosen)
        except FileNotFoundError:
            return None
        if _is_moved(file, chosen.lstat()):
            return str(chosen)
        # Whoever writes the file was faster: the new content is no part of the load.
        chosen.rename(_free_name(path, time.time_ns()))
        return None

    def write(self, address: str, text: str) -> None:
        Path(address).write_text(text)


def _names_in(folder: Path, branch: str, on_problem: OnProblem) -> list[Path]:
    """What lies in the folder of a branch; nothing in what is none, as files beside the folders."""
    try:
        state = folder.lstat()
        problem = name_problem(f"{folder.name}{branch}")
        if stat.S_ISLNK(state.st_mode):
            problem = problem or _LINK
        if problem is None:
            return list(folder.iterdir()) if stat.S_ISDIR(state.st_mode) else []
    except FileNotFoundError:
        return []
    except OSError as error:
        problem = f"cannot be listed: {error.strerror}"
    on_problem(DropProblem(str(folder), problem))
    return []


def _file_problem(path: Path, state: os.stat_result) -> str | None:
    """Why a file is not loaded: whoever may drop files must not name those of others."""
    if stat.S_ISLNK(state.st_mode):
        return _LINK
    if not stat.S_ISREG(state.st_mode):
        return "is not a regular file"
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        return f"cannot be read: {os.strerror(errno.EACCES)}"
    return None


def _free_name(wanted: Path, number: int) -> Path:
    return wanted.with_name(f"{number}-{wanted.name}") if os.path.lexists(wanted) else wanted


def _is_moved(file: DroppedFile, state: os.stat_result) -> bool:
    """Whether a file that was moved is the one that was to be."""
    # Its change time is that of the move.
    is_written = state.st_mtime_ns // 1000 > file.stamp
    return not is_written and (str(state.st_ino), state.st_size) == (file.tag, file.size)


def _file(branch: str, path: Path, state: os.stat_result) -> DroppedFile:
    # Moving a file back keeps the time it was written; only its change time tells of it.
    stamp = max(state.st_mtime_ns, state.st_ctime_ns) // 1000
    return DroppedFile(branch, str(path), state.st_size, stamp, str(state.st_ino))


def open_drops(address: str) -> DropStore:
    """The store of a drop directory, on this machine or at `s3://bucket/prefix`."""
    if not address.startswith("s3://"):
        return LocalDrops(address)
    from omnigraph_assets.resources.landing_s3 import S3Drops  # it builds on this module

    return S3Drops(address)
