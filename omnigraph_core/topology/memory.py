"""What a process keeps between queries: values by key, never more bytes than it was given.

A key and a way to make its value come in, the value goes out. Whoever asks for a value that is
being made waits for it, so nothing is made twice at a time; what was not used longest goes first.

What only one version of a table has is kept in a small part of it. Each commit makes some more of
that, such as a handle that knows of all fragments, and nobody may ever ask for the old ones again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from omnigraph_core import settings
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.interruption import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

T = TypeVar("T")

_MISSING: Final = object()

_VERSION_SHARE: Final = 8
_MOST_VERSION_BYTES: Final = 64 * 2**20
"""What single versions have takes one byte of so many of the whole, and never more than that."""
_LARGE_SHARE: Final = 8
"""One byte of so many of that part: what takes more is kept like everything else."""
_MOST_OF_SERIES: Final = 4
"""Versions that have something large of their own: branches take turns."""
_MOST_SERIES: Final = 4_096


@dataclass(slots=True)
class _Making:
    """A value under way: who makes it, and whether that has ended, well or not."""

    maker: int
    ended: threading.Event = field(default_factory=threading.Event)
    value: object = _MISSING


class ByteCache:
    """Values bounded by their bytes, the least recently used dropped first. Safe for threads."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._held = 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._of_versions: OrderedDict[Hashable, None] = OrderedDict()
        """The entries that single versions have, the one not used longest first."""
        self._held_of_versions = 0
        self._series: dict[Hashable, tuple[Hashable, ...]] = {}
        """What versions one after another have made of the same, the last one at the end."""
        self._making: dict[Hashable, _Making] = {}

    @property
    def held(self) -> int:
        """Bytes of everything kept."""
        return self._held

    @property
    def version_capacity(self) -> int:
        """Bytes that what single versions have may take of the whole."""
        return min(self.capacity // _VERSION_SHARE, _MOST_VERSION_BYTES)

    @property
    def held_of_versions(self) -> int:
        """Bytes of what single versions have, among everything kept."""
        return self._held_of_versions

    def get(self, key: Hashable, build: Callable[[], T], size: Callable[[T], int]) -> T:
        """The value of a key, made if it is not kept.

        If making it fails for one caller, those who waited try themselves. A value larger than the
        whole cache is returned and not kept. A value is never asked for while itself being made.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._touch(key)
                found: T = entry[0]
                return found
        while True:
            made = self.get_many((key,), lambda _: ((value := build(), size(value)),))
            if key in made:
                result: T = made[key]
                return result

    def get_of_version(self, key: Hashable, build: Callable[[], T], size: Callable[[T], int]) -> T:
        """The same for something that a single version has and that is cheap to make again."""
        found = self.get(key, build, size)
        with self._lock:
            if key in self._entries and key not in self._of_versions:
                self._put_aside(key)
        return found

    def get_of_series(
        self,
        series: Hashable,
        key: Hashable,
        build: Callable[[], T],
        size: Callable[[T], int],
    ) -> T:
        """The same for something large that versions do not share: of each series, what was asked
        for last is kept."""
        found = self.get(key, build, size)
        with self._lock:
            others = [item for item in self._series.pop(series, ()) if item != key]
            self._series[series] = (*others, key)[-_MOST_OF_SERIES:]
            for former in others[: 1 - _MOST_OF_SERIES]:
                self._remove(former)
            if len(self._series) > _MOST_SERIES:
                del self._series[next(iter(self._series))]
        return found

    def get_many(
        self,
        keys: Sequence[Hashable],
        build: Callable[[Sequence[Hashable]], Sequence[tuple[Any, int]]],
    ) -> Mapping[Hashable, Any]:
        """The values of several keys, those that nobody has or makes made together.

        Keys whose values another caller was making and failed to are left out.

        Args:
            build: makes the values of these keys, each with its size.
        """
        found, own, others = self._claim(keys)
        if own:
            found.update(self._made(own, build))
        for key, making in others.items():
            wait_for(making.ended)
            if making.value is not _MISSING:
                found[key] = making.value
        return found

    def peek(self, key: Hashable) -> object | None:
        """The value if it is kept; counts as a use."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._touch(key)
            value: object = entry[0]
            return value

    def glance(self, key: Hashable) -> object | None:
        """The value if it is kept; does not count as a use."""
        with self._lock:
            entry = self._entries.get(key)
            return None if entry is None else entry[0]

    def resize(self, key: Hashable, size: int) -> None:
        """Count a value that is kept as so many bytes from now on; does not count as a use."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return
            self._entries[key] = (entry[0], size)
            self._held += size - entry[1]
            if key in self._of_versions:
                self._held_of_versions += size - entry[1]
            self._shrink()

    def supersede(self, key: Hashable, size: int) -> None:
        """Count a value as so many bytes, its own: most versions ask for a newer one from now on,
        which has all else. If those are few, it is kept as what only one version has."""
        self.resize(key, size)
        with self._lock:
            is_small = size * _LARGE_SHARE <= self.version_capacity
            if is_small and key in self._entries and key not in self._of_versions:
                self._put_aside(key)

    def put(self, key: Hashable, value: object, size: int) -> None:
        """Keep a value in the place of what the key had."""
        with self._lock:
            self._keep(key, value, size)

    def drop(self, key: Hashable) -> None:
        """Keep the value of a key no longer."""
        with self._lock:
            self._remove(key)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._of_versions.clear()
            self._series.clear()
            self._held = self._held_of_versions = 0

    def _claim(
        self, keys: Sequence[Hashable]
    ) -> tuple[dict[Hashable, Any], dict[Hashable, _Making], dict[Hashable, _Making]]:
        """What is kept, what this caller is to make now, and what others are making."""
        found: dict[Hashable, Any] = {}
        own: dict[Hashable, _Making] = {}
        others: dict[Hashable, _Making] = {}
        me = threading.get_ident()
        with self._lock:
            for key in keys:
                if (entry := self._entries.get(key)) is not None:
                    self._touch(key)
                    found[key] = entry[0]
                elif (making := self._making.get(key)) is None:
                    own[key] = _Making(me)
                elif making.maker == me:
                    raise InvariantBroken(f"making {key!r} does not need itself")
                else:
                    others[key] = making
            self._making.update(own)
        return found, own, others

    def _made(
        self,
        own: Mapping[Hashable, _Making],
        build: Callable[[Sequence[Hashable]], Sequence[tuple[Any, int]]],
    ) -> dict[Hashable, Any]:
        made: dict[Hashable, Any] = {}
        try:
            for (key, making), (value, size) in zip(own.items(), build(tuple(own)), strict=True):
                made[key] = making.value = value
                self.put(key, value, size)
        finally:
            with self._lock:
                for key in own:
                    del self._making[key]
            for making in own.values():
                making.ended.set()
        return made

    def _touch(self, key: Hashable) -> None:
        self._entries.move_to_end(key)
        if key in self._of_versions:
            self._of_versions.move_to_end(key)

    def _keep(self, key: Hashable, value: object, size: int) -> None:
        self._remove(key)
        if size > self.capacity:
            return
        self._entries[key] = (value, size)
        self._held += size
        self._shrink()

    def _shrink(self) -> None:
        while self._held > self.capacity:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: Hashable) -> None:
        removed = self._entries.pop(key, None)
        if removed is None:
            return
        self._held -= removed[1]
        if key in self._of_versions:
            del self._of_versions[key]
            self._held_of_versions -= removed[1]

    def _put_aside(self, key: Hashable) -> None:
        self._of_versions[key] = None
        self._held_of_versions += self._entries[key][1]
        while self._held_of_versions > self.version_capacity:
            self._remove(next(iter(self._of_versions)))


_shared: ByteCache | None = None
_shared_lock: Final = threading.Lock()


def shared_cache() -> ByteCache:
    """The cache of this process; its capacity is read from the settings once."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = ByteCache(settings.CACHE_MEMORY.read())
        return _shared
