"""Which of the files that wait are loaded together next: pure, so that every case can be tried.

Whatever waits for a branch is one load. A load that was refused is divided: one half, then the
other, down to the file that is to blame, which goes to quarantine while all others are loaded.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that has settled. Its id changes whenever it is written or moved."""

    address: str
    id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A load that was refused for its rows, by the ids of its files."""

    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class Batch:
    """What to load, and what can never be."""

    files: tuple[Candidate, ...] = ()
    unloadable: tuple[Candidate, ...] = ()


def next_batch(waiting: Sequence[Candidate], refused: Iterable[Refused]) -> Batch:
    """The next load of a branch.

    >>> a, b, c = (Candidate(name, name) for name in "abc")
    >>> next_batch([a, b, c], []).files == (a, b, c)
    True
    >>> next_batch([a, b, c], [Refused(frozenset("abc"))]).files == (a,)
    True
    >>> next_batch([c], [Refused(frozenset("c"))]).unloadable == (c,)
    True
    """
    known = tuple(refused)
    if not waiting or not _is_refused(waiting, known):
        return Batch(files=tuple(waiting))
    if len(waiting) == 1:
        return Batch(unloadable=tuple(waiting))
    middle = len(waiting) // 2
    first = next_batch(waiting[:middle], known)
    if first.files:
        return first
    second = next_batch(waiting[middle:], known)
    return Batch(second.files, (*first.unloadable, *second.unloadable))


def _is_refused(waiting: Sequence[Candidate], refused: Iterable[Refused]) -> bool:
    """Whether these very files were refused: one that is put back has another id."""
    ids = frozenset(file.id for file in waiting)
    return any(load.files == ids for load in refused)
