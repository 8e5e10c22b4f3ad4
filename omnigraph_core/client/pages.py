"""Long lists of a server, which come in pages: a path comes in, the items go out one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.client.decode.reading import every, understood
from omnigraph_core.client.requests import get

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.client.transport import Transport

_MOST: Final = 10_000
"""Items that a server puts on one page."""


def iter_pages(
    http: Transport, path: str, member: str, *, limit: int | None = None, **query: object
) -> Iterator[Any]:
    """The items of a list, `limit` of them at most; without one all."""
    token: str | None = None
    left = limit
    while left is None or left > 0:
        wanted = None if left is None else min(left, _MOST)
        document = http.fetch(get(path, limit=wanted, page_token=token, **query))
        items = understood(lambda found: every(_itself, found[member]), document)
        yield from items
        token = document.get("next_page_token")
        if token is None:
            return
        left = None if left is None else left - len(items)


def _itself(item: Any) -> Any:
    return item
