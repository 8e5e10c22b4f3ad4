"""Cursors of the change feed: a place in the line of a branch as text that can stand in an address.

A cursor is bound to its graph, its branch and its filter, and refuses to be read if it is damaged.
It carries what the types of the filter are called where it stands. What is inside is nobody's
business: texts of later releases may look different.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Final, NoReturn

from omnigraph_core.diff.follow import FollowedType
from omnigraph_core.errors import CursorRejected

if TYPE_CHECKING:
    from omnigraph_core.diff.follow import Followed
    from omnigraph_core.diff.model import ChangeFilter

_VERSION: Final = 1
_CHECKSUM: Final = 8


@dataclass(frozen=True, slots=True)
class Cursor:
    """A commit of a branch: everything up to it is known to whoever holds the cursor.

    The commit may have been made before the branch was forked, in another catalog.
    """

    graph: str
    """The domain of its schema's identities: one per graph."""
    branch: str
    incarnation: str
    filter: str
    """Digest of the filter but for its types."""
    commit_id: str
    commit_incarnation: str
    commit_version: int
    types: Followed = ()
    """The types of the filter, as they are at the commit; none: all."""


def encode_cursor(cursor: Cursor) -> str:
    """The cursor as text."""
    body = json.dumps(astuple(cursor), ensure_ascii=False, separators=(",", ":")).encode()
    data = bytes([_VERSION]) + _checksum(body) + body
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_cursor(text: str) -> Cursor:
    """
    Raises:
        CursorRejected: it is no cursor, a damaged one, or one of a newer release.
    """
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        data = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        _refuse("no cursor")
    if not data:
        _refuse("empty")
    if data[0] > _VERSION:
        _refuse("of a newer release")
    checksum, body = data[1 : 1 + _CHECKSUM], data[1 + _CHECKSUM :]
    if data[0] != _VERSION or checksum != _checksum(body):
        _refuse("damaged")
    values = json.loads(body)
    if len(values) != len(fields(Cursor)):
        _refuse("damaged")
    values[-1] = tuple(FollowedType(tuple(names), tuple(keys)) for names, keys in values[-1])
    return Cursor(*values)


def filter_digest(filter: ChangeFilter) -> str:
    """The same text for the same kinds and operations, in whichever order they were given."""
    parts = [sorted(filter.kinds), sorted(filter.ops)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:_CHECKSUM]


def _refuse(what: str) -> NoReturn:
    raise CursorRejected(
        f"the cursor is {what}", hint="give it exactly as it was received, or begin with a new one"
    )
