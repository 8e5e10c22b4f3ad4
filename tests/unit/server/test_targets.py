"""Which state a request is about, and lists in pages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.server.paging import page, page_by_name
from omnigraph_core.server.targets import named_target, which
from tests.support.cases import each

COMMIT = "01HZY000000000000000000000"


def test_places() -> None:
    assert which().branch == "main"
    assert which().is_head
    assert which("draft").read_target == ReadTarget(branch="draft")
    assert which("").branch == ""
    assert which(snapshot=COMMIT).read_target == ReadTarget(snapshot_id=COMMIT)
    assert which(tag="v1").read_target == ReadTarget(tag="v1")
    assert not which("draft", version=3).is_head
    assert which(at="2031-05-02T10:00:00Z").moment == datetime(2031, 5, 2, 10, tzinfo=UTC)


@each(
    ("given", "message"),
    [
        ({"branch": "main", "snapshot": COMMIT}, "branch and snapshot exclude each other"),
        ({"branch": "main", "tag": "v1"}, "branch and tag exclude each other"),
        ({"version": 1, "at": "2031-05-02"}, "version and at exclude each other"),
        ({"at": "tomorrow"}, "'tomorrow' is no moment"),
    ],
)
def test_no_place(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        which(**given)  # type: ignore[arg-type]


def test_names() -> None:
    assert named_target("draft") == ReadTarget(branch="draft")
    assert named_target(f" {COMMIT} ") == ReadTarget(snapshot_id=COMMIT)
    assert named_target("tag:v1") == ReadTarget(tag="v1")
    assert named_target(f"branch:{COMMIT}") == ReadTarget(branch=COMMIT)
    for text in ("", " ", "tag:"):
        with pytest.raises(ConfigError, match="names nothing"):
            named_target(text)


def test_pages_cover_everything_once() -> None:
    names = ["a", "b/ü", "c", "d", "e"]
    seen: list[str] = []
    token: str | None = None
    while True:
        shown, token = page(names, str, 2, token)
        seen += shown
        if token is None:
            break
    assert seen == names
    assert page(names, str, None, None) == (names, None)
    assert page(names, str, 5, None) == (names, None)


@each("token", ["", "x", "%", "ü", "bm9uZQ=="])
def test_a_token_of_another_list(token: str) -> None:
    with pytest.raises(ConfigError, match="no such page"):
        page(["a"], str, 1, token)


@each("token", ["", "x", "%", "ü", "YQ", "YQ=="[:3]])
def test_what_is_no_token(token: str) -> None:
    with pytest.raises(ConfigError, match="no such page"):
        page_by_name(["a"], str, 1, token)


def test_a_list_by_name_goes_on_where_an_item_was() -> None:
    _, token = page_by_name(["a", "b", "d"], str, 2, None)
    assert page_by_name(["a", "c", "d", "e"], str, 2, token) == (["c", "d"], "ZA==")
    assert page_by_name(["a"], str, 2, token) == ([], None)
