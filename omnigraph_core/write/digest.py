"""A digest of what a source holds: tells a repeated request from another one with the same key."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import types as kinds

from omnigraph_core.write.convert_values import convert_values

if TYPE_CHECKING:
    from omnigraph_core.write.sources import Source

BROKEN_FILE: Final = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading a compressed file raises that is cut off or damaged."""
_PIECE: Final = 2**20


def content_digest(source: Source) -> bytes:
    """SHA-256 of the content, decompressed, whatever the source is called.

    Of a file that breaks off, what can be read: it is the reading of records that reports it.
    """
    if source.digest is not None:
        return source.digest
    whole = hashlib.sha256(f"{source.format}:{source.type_name}:".encode())
    if isinstance(source.data, pa.Table):
        # A batch of dictionaries has their indices alone: other values would have the same digest.
        rows = convert_values(
            source.data, kinds.is_dictionary, pa.DictionaryArray.dictionary_decode
        )
        whole.update(rows.schema.serialize())
        for batch in rows.combine_chunks().to_batches():
            whole.update(batch.serialize())
        return whole.digest()
    with source.open() as file, suppress(*BROKEN_FILE):
        while piece := file.read(_PIECE):
            whole.update(piece)
    return whole.digest()
