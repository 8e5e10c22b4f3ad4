"""Cursors: what goes in comes out, and nothing else does."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace

import pytest

from omnigraph_core.diff.cursor import Cursor, decode_cursor, encode_cursor, filter_digest
from omnigraph_core.diff.follow import FollowedType
from omnigraph_core.diff.model import ChangeFilter, ChangeOp
from omnigraph_core.errors import CursorRejected
from omnigraph_core.query.typed import EntityKind
from tests.support.cases import each

PARTS = FollowedType(("Part", "Item"), ("edge:Part", "node:Item"))
CURSOR = Cursor("01DOMAIN", "review/parts", "01BRANCH", "f00d", "01COMMIT", "main", 7, (PARTS,))


def sealed(version: int, body: bytes) -> str:
    data = bytes([version]) + hashlib.sha256(body).digest()[:8] + body
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def refusal(text: str) -> str:
    with pytest.raises(CursorRejected) as caught:
        decode_cursor(text)
    return caught.value.message


@each("branch", ["main", "a", "ab", "abc", "Prüfung ✓"])
def test_round_trip(branch: str) -> None:
    """Texts of every length: none needs padding."""
    for cursor in (replace(CURSOR, branch=branch), replace(CURSOR, branch=branch, types=())):
        text = encode_cursor(cursor)
        assert "=" not in text
        assert text.isascii()
        assert decode_cursor(text) == cursor


def test_every_damaged_character_is_found() -> None:
    text = encode_cursor(CURSOR)
    for at, sign in enumerate(text):
        other = "A" if sign != "A" else "B"
        damaged = text[:at] + other + text[at + 1 :]
        if base64.urlsafe_b64decode(damaged + "==") == base64.urlsafe_b64decode(text + "=="):
            continue  # the last character has bits that say nothing
        with pytest.raises(CursorRejected):
            decode_cursor(damaged)


def test_what_is_no_cursor() -> None:
    text = encode_cursor(CURSOR)
    assert refusal("") == "the cursor is empty"
    assert refusal("what is this?") == "the cursor is no cursor"
    assert refusal("ü") == "the cursor is no cursor"
    assert refusal(text[:-4]) == "the cursor is damaged"
    assert refusal("AA") == "the cursor is damaged"
    assert refusal(sealed(1, json.dumps(["a", "b"]).encode())) == "the cursor is damaged"
    assert refusal(sealed(2, b"{}")) == "the cursor is of a newer release"


def test_equal_filters_have_one_digest() -> None:
    one = ChangeFilter(
        frozenset(EntityKind), frozenset({"Part", "Bin"}), frozenset({ChangeOp.INSERT})
    )
    two = ChangeFilter(
        frozenset(reversed(EntityKind)), frozenset(["Bin", "Part"]), frozenset({ChangeOp("insert")})
    )
    assert filter_digest(one) == filter_digest(two)


def test_other_filters_have_others() -> None:
    filters = [
        ChangeFilter(),
        ChangeFilter(kinds=frozenset({EntityKind.NODE})),
        ChangeFilter(kinds=frozenset({EntityKind.EDGE})),
        ChangeFilter(ops=frozenset({ChangeOp.INSERT})),
        ChangeFilter(kinds=frozenset({EntityKind.NODE}), ops=frozenset({ChangeOp.INSERT})),
    ]
    assert len(set(map(filter_digest, filters))) == len(filters)
    named = ChangeFilter(type_names=frozenset({"Part"}))
    assert filter_digest(named) == filter_digest(ChangeFilter()), "types are told by the cursor"
