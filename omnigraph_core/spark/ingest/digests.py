"""Digests of the contents of files, by tasks: large files are hashed in pieces, side by side."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omnigraph_core.spark.runner import InProcessRunner, SparkRunner
from omnigraph_core.spark.session import open_session
from omnigraph_core.storage.inputs import ObjectFile
from omnigraph_core.write.slices import open_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.write.sources import Source

PIECE: Final = 64 << 20
"""Bytes that one task hashes. The digest of a file depends on it."""
_IN_PROCESS: Final = PIECE
"""Files that are no larger together are not worth a job."""
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Piece:
    file: Path | ObjectFile
    start: int


def content_digests(sources: Sequence[Source], *, is_local: bool) -> list[str]:
    """By source a digest of its bytes: SHA-256, or that of the digests of its pieces.

    Raises:
        ConfigError: Spark cannot be started or reached, or a file cannot be read.
    """
    is_small = sum(source.size for source in sources) <= _IN_PROCESS
    runner: Runner = InProcessRunner() if is_local or is_small else SparkRunner(open_session())
    pieces = [_pieces(source) for source in sources]
    flat = list(itertools.chain.from_iterable(pieces))
    hashed = iter(runner.map(_hashed, flat, name="digest the input") if flat else [])
    return [_joined([next(hashed) for _ in some]) for some in pieces]


def _pieces(source: Source) -> list[_Piece]:
    file = source.data
    assert isinstance(file, Path | ObjectFile)
    return [_Piece(file, start) for start in range(0, max(source.size, 1), PIECE)]


def _hashed(piece: _Piece) -> bytes:
    digest = hashlib.sha256()
    left = PIECE
    with open_file(piece.file) as opened:
        opened.seek(piece.start)
        while left and (block := opened.read(min(_BLOCK, left))):
            digest.update(block)
            left -= len(block)
    return digest.digest()


def _joined(digests: list[bytes]) -> str:
    if len(digests) == 1:
        return digests[0].hex()
    return hashlib.sha256(b"".join(digests)).hexdigest()
