"""Identities: ULIDs for commits and keyless rows, FNV-1a for directories, keys for tables."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_FNV64_OFFSET: Final = 14695981039346656037
_FNV64_PRIME: Final = 1099511628211
_FNV64_MASK: Final = 2**64 - 1


def new_ulid() -> str:
    """A fresh ULID: 26 characters that sort by creation time."""
    from ulid import ULID  # here because it loads slowly and compiling needs no ids

    return str(ULID())


def is_ulid(text: str) -> bool:
    """
    >>> is_ulid("01M7HCRA2YB7TR5DXVE32ATFRJ"), is_ulid("main")
    (True, False)
    """
    return _ULID.fullmatch(text) is not None


def fnv1a64(text: str) -> int:
    """64-bit FNV-1a of the UTF-8 bytes.

    >>> hex(fnv1a64("alpha"))
    '0x8ac625bb85ed202b'
    """
    value = _FNV64_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _FNV64_PRIME) & _FNV64_MASK
    return value


def table_directory(type_name: str) -> str:
    """The directory name of a type's dataset: its hash as 16 hex digits."""
    return f"{fnv1a64(type_name):016x}"


def node_table_key(type_name: str) -> str:
    """
    >>> node_table_key("Person")
    'node:Person'
    """
    return f"node:{type_name}"


def edge_table_key(edge_name: str) -> str:
    """
    >>> edge_table_key("Knows")
    'edge:Knows'
    """
    return f"edge:{edge_name}"


def key_id(texts: Sequence[str]) -> str:
    """The id of a keyed node from the canonical texts of its key columns.

    One column is its own text; several are a JSON array, so no two tuples share an id.

    >>> key_id(["a"]), key_id(["a", "b,c"])
    ('a', '["a","b,c"]')
    """
    if len(texts) == 1:
        return texts[0]
    return json.dumps(list(texts), ensure_ascii=False, separators=(",", ":"))
