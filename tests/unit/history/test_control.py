"""Control objects to JSON and back, and what is said of damaged ones."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from omnigraph_core.errors import StorageError
from omnigraph_core.history import refs
from omnigraph_core.history.control import Kind, decode, encode
from omnigraph_core.history.refs import (
    BranchRef,
    CleanupIntent,
    DeletedBranch,
    ForkPoint,
    Lease,
    Tag,
)
from tests.support.cases import each

BRANCH = BranchRef(
    "review/parts",
    "01J0",
    "_refs/manifests/01J0",
    ForkPoint("main", "main", 7, "01HZ"),
    1_700_000_000_000_000,
    "dana",
)
VALUES: list[tuple[Kind[Any], Any]] = [
    (refs._BRANCHES, BRANCH),
    (refs._BRANCHES, BranchRef("größe", "01J1", "_refs/manifests/01J1", None, 0, "\ud800")),
    (refs._DELETED, DeletedBranch(BRANCH, 1_700_000_000_000_001, "kim")),
    (refs._TAGS, Tag("v1.0", "01HZ", "main", "main", 7, 1, None)),
    (refs._LEASES, Lease("01L0", "main", 7, "export", 2)),
    (refs._CLEANUPS, CleanupIntent("01C0", 1, 2, {"main": (1, 2), "01J0": ()})),
]
NAMES = [f"{type(value).__name__}{at}" for at, (_, value) in enumerate(VALUES)]


@each(("kind", "value"), VALUES, ids=NAMES)
def test_round_trip(kind: Kind[Any], value: object) -> None:
    assert decode(kind, encode(value), "there") == value


@each(("kind", "value"), VALUES, ids=NAMES)
def test_fields_of_a_newer_release_are_ignored(kind: Kind[Any], value: Any) -> None:
    newer = json.dumps({**asdict(value), "colour": {"deep": [1]}}).encode()
    assert decode(kind, newer, "there") == value


@each(("kind", "value"), VALUES, ids=NAMES)
def test_every_field_is_checked(kind: Kind[Any], value: Any) -> None:
    """A wrong type in any field, and the absence of any required one, is told with the path."""
    for name in asdict(value):
        wrong = json.dumps({**asdict(value), name: True}).encode()
        with pytest.raises(StorageError, match=rf"at s3://lake/x is damaged: `{name}` should be"):
            decode(kind, wrong, "s3://lake/x")
        if name not in ("actor", "forked_from"):
            rest = {key: kept for key, kept in asdict(value).items() if key != name}
            with pytest.raises(StorageError, match=rf"`{name}` should be .*, found nothing"):
                decode(kind, json.dumps(rest).encode(), "there")


@each(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\xfa", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"id": "a", "started_at": -1}', "`doomed` should be {…}, found nothing"),
        (b'{"doomed": {"main": [1, "2"]}}', "`id` should be text, found nothing"),
        (b'{"doomed": {}, "id": "a", "started_at": -1}', "`started_at` should be a whole number"),
        (b'{"doomed": {}, "id": "a", "started_at": 1.0}', "`started_at` should be a whole number"),
        (
            b'{"doomed": {"main": [1, "2"]}, "id": "a", "started_at": 1, "expires_at": 2}',
            r"`main` should be a list of whole numbers, found \[1, '2'\]",
        ),
        (
            b'{"doomed": {"main": 3}, "id": "a", "started_at": 1, "expires_at": 2}',
            "`main` should be a list of whole numbers, found 3",
        ),
    ],
)
def test_damaged(content: bytes, message: str) -> None:
    with pytest.raises(StorageError, match=message) as caught:
        decode(refs._CLEANUPS, content, "there")
    assert caught.value.hint is not None
    assert "restore" in caught.value.hint
