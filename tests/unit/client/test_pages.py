"""Lists that come in pages: how many items are asked for, and where it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.client.pages import iter_pages
from omnigraph_core.errors import StorageError

if TYPE_CHECKING:
    from omnigraph_core.client.requests import Call


class Numbers:
    """A server of the numbers below some bound, with pages of no more than so many."""

    def __init__(self, count: int, page: int) -> None:
        self._count, self._page = count, page
        self.asked: list[dict[str, str]] = []

    def fetch(self, call: Call) -> Any:
        given = dict(call.query)
        self.asked.append(given)
        start = int(given.get("page_token", "0"))
        end = min(self._count, start + min(self._page, int(given.get("limit", self._page))))
        more = {"next_page_token": str(end)} if end < self._count else {}
        return {"numbers": list(range(start, end)), **more}


def asked(server: Any, limit: int | None = None) -> list[int]:
    return list(iter_pages(server, "/numbers", "numbers", limit=limit, kind="even"))


def test_all_pages_are_read() -> None:
    server = Numbers(7, 3)
    assert asked(server) == list(range(7))
    assert server.asked == [
        {"kind": "even"},
        {"page_token": "3", "kind": "even"},
        {"page_token": "6", "kind": "even"},
    ]


def test_no_more_is_asked_for_than_wanted() -> None:
    server = Numbers(100, 3)
    assert asked(server, 5) == list(range(5))
    assert [item["limit"] for item in server.asked] == ["5", "2"]
    assert asked(Numbers(2, 3), 5) == [0, 1]
    assert asked(Numbers(2, 3), 0) == []


def test_more_than_a_page_holds_is_asked_for_in_pages() -> None:
    server = Numbers(25_000, 10_000)
    assert len(asked(server, 22_000)) == 22_000
    assert [item["limit"] for item in server.asked] == ["10000", "10000", "2000"]


def test_another_answer_is_refused() -> None:
    class Other:
        def fetch(self, _: Call) -> Any:
            return {"letters": []}

    with pytest.raises(StorageError, match="cannot be understood: it has no 'numbers'"):
        asked(Other())
