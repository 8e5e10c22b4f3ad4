"""Which of the files that wait are loaded together next: pure, so that every case can be tried.

Whatever waits for a branch is one load. A load that was refused is divided: one half, then the
other, down to the file that is to blame, which goes to quarantine while all others are loaded.
"""

import hashlib
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
    batch: str | None = None
    """The name of the batch it was made from. Files that lack different types are no one load."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What to load, and what can never be."""

    files: tuple[Candidate, ...] = ()
    unloadable: tuple[Candidate, ...] = ()


def batch_name(ids: Iterable[str]) -> str:
    """Tells the files of a batch, by their ids, from those of any other."""
    return hashlib.sha256(",".join(sorted(ids)).encode()).hexdigest()[:32]


def next_batch(waiting: Sequence[Candidate], refused: Iterable[Refused]) -> Batch:
    """The next load of a branch.

    >>> a, b, c = (Candidate(name, name) for name in "abc")
    >>> next_batch([a, b, c], []).files == (a, b, c)
    True
    >>> next_batch([a, b, c], [Refused(frozenset("abc"))]).files == (a,)
    True
    >>> next_batch([c], [Refused(frozenset("c"))]).unloadable == (c,)
    True
    >>> next_batch([a, b], [Refused(frozenset("b"), batch_name("ab"))])
    Batch(files=(Candidate(address='a', id='a'),), unloadable=(Candidate(address='b', id='b'),))
    """
    known = tuple(refused)
    halves = _divided(waiting, known) if waiting else None
    if halves is None:
        return Batch(files=tuple(waiting))
    if len(waiting) == 1:
        return Batch(unloadable=tuple(waiting))
    first, second = (next_batch(half, known) for half in halves)
    if first.files:
        return first
    return Batch(second.files, (*first.unloadable, *second.unloadable))


def _divided(
    waiting: Sequence[Candidate], refused: Iterable[Refused]
) -> tuple[Sequence[Candidate], Sequence[Candidate]] | None:
    """Two parts of files that were refused together; None if they were not.

    These very files count: one that is put back has another id. Of a batch that was refused for
    some of its files, these are one part, and what was not loaded with them is the other.
    """
    ids = frozenset(file.id for file in waiting)
    if any(load.files == ids for load in refused):
        middle = len(waiting) // 2
        return waiting[:middle], waiting[middle:]
    name = batch_name(ids)
    for load in refused:
        if load.batch == name and load.files < ids:
            taken = [file for file in waiting if file.id in load.files]
            return taken, [file for file in waiting if file.id not in load.files]
    return None
