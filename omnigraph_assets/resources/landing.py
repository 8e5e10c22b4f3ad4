"""Files that were dropped for a branch: listed, opened, archived.

A drop directory has one folder for each branch, its name percent-escaped, and two of our own:
`_loaded` for files whose rows are published, `_quarantine` for files that were refused, each beside
a `.reason.json`. Who writes a file slowly writes `<name>.part` and renames it.
"""

import hashlib
import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol
from urllib.parse import quote, unquote

SUFFIXES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
LOADED: Final = "_loaded"
QUARANTINE: Final = "_quarantine"
REASON: Final = ".reason.json"


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


class DropStore(Protocol):
    """Where files are dropped."""

    def list(self) -> list[DroppedFile]:
        """The files that wait, by branch and name; unfinished ones and our own left out."""
        ...

    def look(self, file: DroppedFile) -> DroppedFile | None:
        """The file as it is now; None if it is gone."""
        ...

    def open(self, file: DroppedFile) -> IO[bytes]: ...

    def archive(self, file: DroppedFile, folder: str) -> str:
        """Move a file out of the way; where it is now. One of that name there is not replaced."""
        ...

    def write(self, address: str, text: str) -> None: ...


def is_dropped(name: str) -> bool:
    """Whether a file of that name is meant to be loaded.

    >>> [is_dropped(name) for name in ("a.jsonl", "a.jsonl.part", ".a.jsonl", "a.jsonl.gz")]
    [True, False, False, True]
    """
    return name.endswith(SUFFIXES) and not name.startswith((".", "_"))


def folder_of(branch: str) -> str:
    """The folder of a branch.

    >>> folder_of("team/import")
    'team%2Fimport'
    """
    return quote(branch, safe="")


def quarantine(store: DropStore, file: DroppedFile, reason: Mapping[str, object]) -> str:
    """Put a file that cannot be loaded away, with the reason beside it; where it is now."""
    address = store.archive(file, QUARANTINE)
    store.write(f"{address}{REASON}", json.dumps(reason, indent=2, default=str) + "\n")
    return address


class LocalDrops:
    """Drops below a directory of this machine."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)

    def list(self) -> list[DroppedFile]:
        return sorted(self._found(), key=lambda file: (file.branch, file.address))

    def _found(self) -> Iterator[DroppedFile]:
        if not self._root.is_dir():
            return
        for folder in self._root.iterdir():
            if not folder.is_dir() or folder.name.startswith((".", "_")):
                continue
            branch = unquote(folder.name)
            for path in folder.iterdir():
                found = _seen(branch, path) if is_dropped(path.name) else None
                if found is not None:
                    yield found

    def look(self, file: DroppedFile) -> DroppedFile | None:
        return _seen(file.branch, Path(file.address))

    def open(self, file: DroppedFile) -> IO[bytes]:
        return Path(file.address).open("rb")

    def archive(self, file: DroppedFile, folder: str) -> str:
        target = self._root / folder / folder_of(file.branch)
        target.mkdir(parents=True, exist_ok=True)
        chosen = target / file.name
        if chosen.exists():
            chosen = target / f"{file.stamp}-{file.name}"
        Path(file.address).rename(chosen)
        return str(chosen)

    def write(self, address: str, text: str) -> None:
        Path(address).write_text(text)


def _seen(branch: str, path: Path) -> DroppedFile | None:
    try:
        state = path.stat()
    except FileNotFoundError:  # loaded or taken back meanwhile
        return None
    if not stat.S_ISREG(state.st_mode):  # a directory or a pipe of that name
        return None
    # Moving a file back keeps the time it was written; only its change time tells of it.
    stamp = max(state.st_mtime_ns, state.st_ctime_ns) // 1000
    return DroppedFile(branch, str(path), state.st_size, stamp, str(state.st_ino))


def open_drops(address: str) -> DropStore:
    """The store of a drop directory, on this machine or at `s3://bucket/prefix`."""
    if not address.startswith("s3://"):
        return LocalDrops(address)
    from omnigraph_assets.resources.landing_s3 import S3Drops  # it builds on this module

    return S3Drops(address)
