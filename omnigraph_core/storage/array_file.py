"""Arrays in one file: named arrays and a few facts come in, the same come out, mapped.

A file tells its own length and carries sums of its header and its arrays. Whatever does not add up
is no file of arrays: the answer is None, never an error and never other numbers.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnigraph_core.errors import InvariantBroken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

FORMAT: Final = 1
PREFIX: Final = struct.Struct("<8sIIQ16s")
"""Magic, format, bytes of the header, bytes of the file, digest of all that and the header."""

_MAGIC: Final = b"OGARRAYS"
_ALIGNMENT: Final = 64
_KINDS: Final = frozenset("biuf")
_MAX_HEADER: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class DerivedArrays:
    """Arrays that are not to be written to, and what is known about them."""

    arrays: Mapping[str, np.ndarray]
    about: Mapping[str, Any]
    nbytes: int


@dataclass(frozen=True, slots=True)
class _Place:
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    sum: int

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * self.count

    @property
    def count(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count


@dataclass(frozen=True, slots=True)
class _Header:
    places: tuple[_Place, ...]
    about: Mapping[str, Any]
    total: int


@dataclass(frozen=True, slots=True)
class PiecedArray:
    """An array that is nowhere whole: what a header tells of it, and its bytes in order."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    sum: int
    """As `sum_of` has it."""
    pieces: Iterable[bytes | memoryview]
    """Asked for once."""

    @property
    def nbytes(self) -> int:
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


def pack_arrays(
    arrays: Mapping[str, np.ndarray], about: Mapping[str, object]
) -> Iterator[bytes | memoryview]:
    """The content of a file, piece by piece.

    Args:
        arrays: of numbers or booleans.
        about: what JSON can say.
    """
    content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    whole = [
        PiecedArray(name, array.dtype.str, array.shape, sum_of(array), (_octets(array).data,))
        for name, array in content.items()
    ]
    yield from pack_pieces(whole, about)


def pack_pieces(
    arrays: Sequence[PiecedArray], about: Mapping[str, object]
) -> Iterator[bytes | memoryview]:
    """The same for arrays that come in pieces.

    Raises:
        InvariantBroken: the pieces of an array are not as long as it is.
    """
    # Places depend on the length of the header, which tells the places: they count from its end.
    places: list[tuple[object, ...]] = []
    begins: list[int] = []
    end = 0
    for array in arrays:
        begins.append(_aligned(end))
        places.append((array.name, array.dtype, array.shape, begins[-1], array.sum))
        end = begins[-1] + array.nbytes
    header = json.dumps({"arrays": places, "about": about}, separators=(",", ":")).encode()
    start = _aligned(PREFIX.size + len(header))
    total = start + end
    yield PREFIX.pack(_MAGIC, FORMAT, len(header), total, _digest(header, total)) + header
    written = PREFIX.size + len(header) - start
    for array, begin in zip(arrays, begins, strict=True):
        yield bytes(begin - written)
        written = begin
        for piece in array.pieces:
            yield piece
            written += len(piece)
        if written != begin + array.nbytes:
            raise InvariantBroken(f"the pieces of `{array.name}` are as long as it is")


def map_arrays(path: Path) -> DerivedArrays | None:
    """The arrays of a file, read as they are touched; None if there is no whole one."""
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # not there, not allowed, or empty
        return None
    return parse_arrays(content)


def parse_arrays(content: bytes | mmap.mmap) -> DerivedArrays | None:
    """The arrays in the content of a file, which they share."""
    header = _parse_header(content)
    if header is None or header.total != len(content):
        return None
    arrays = {place.name: _array(content, place) for place in header.places}
    if any(sum_of(arrays[place.name]) != place.sum for place in header.places):
        return None
    return DerivedArrays(arrays, header.about, header.total)


def header_length(prefix: bytes) -> int | None:
    """How many bytes of a file tell everything about it, from the first `PREFIX.size` of them."""
    if len(prefix) < PREFIX.size:
        return None
    magic, version, length, _, _ = PREFIX.unpack_from(prefix)
    is_known = magic == _MAGIC and version == FORMAT and length <= _MAX_HEADER
    return PREFIX.size + length if is_known else None


def parse_about(beginning: bytes) -> Mapping[str, Any] | None:
    """What a file says about its arrays, from as many bytes as `header_length` tells."""
    header = _parse_header(beginning)
    return None if header is None else header.about


def _parse_header(content: bytes | mmap.mmap) -> _Header | None:
    end = header_length(content[: PREFIX.size])
    if end is None or end > len(content):
        return None
    _, _, _, total, digest = PREFIX.unpack_from(content)
    text = content[PREFIX.size : end]
    if digest != _digest(text, total):
        return None
    try:
        told = json.loads(text)
        places = tuple(_place(_aligned(end), *item) for item in told["arrays"])
        about = dict(told["about"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None  # nobody wrote it by accident: the digest is right
    if any(place.offset + place.nbytes > total for place in places):
        return None
    return _Header(places, about, total)


def _place(start: int, name: str, dtype: str, shape: list[int], offset: int, sum: int) -> _Place:
    place = _Place(str(name), np.dtype(dtype), tuple(map(int, shape)), start + int(offset), sum)
    if place.dtype.kind not in _KINDS or place.offset % _ALIGNMENT or offset < 0:
        raise ValueError(f"no array of numbers: {name}")
    if any(length < 0 for length in place.shape):
        raise ValueError(f"an array of less than nothing: {name}")
    return place


def _array(content: bytes | mmap.mmap, place: _Place) -> np.ndarray:
    if not place.count:
        return np.empty(place.shape, place.dtype)
    flat = np.frombuffer(content, place.dtype, place.count, place.offset)
    return flat.reshape(place.shape)


def _digest(header: bytes, total: int) -> bytes:
    return hashlib.blake2b(total.to_bytes(8, "little") + header, digest_size=16).digest()


def sum_of(array: np.ndarray) -> int:
    """Of all words of eight bytes, and of the bytes after them."""
    octets = _octets(array)
    whole = len(octets) // 8 * 8
    words = octets[:whole].view(np.uint64)
    total = int(np.add.reduce(words, dtype=np.uint64)) + int(octets[whole:].sum(dtype=np.uint64))
    return total % 2**64


def _octets(array: np.ndarray) -> np.ndarray:
    octets: np.ndarray = array.reshape(-1).view(np.uint8)
    return octets


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT
