"""Long lists in parts: a page goes out with a token, and the token asks for the next page."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from fastapi import Query

from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

_MOST: Final = 10_000

Limit = Annotated[int | None, Query(ge=1, le=_MOST, description="Items of a page; unset: all.")]
PageToken = Annotated[str | None, Query(description="`next_page_token` of the page before.")]


def page(
    items: Sequence[T], name_of: Callable[[T], str], limit: int | None, token: str | None
) -> tuple[Sequence[T], str | None]:
    """The items after those that were seen, and the token for what comes after these.

    Args:
        name_of: what tells an item from the others; a token names the last one seen.

    Raises:
        ConfigError: the token is none of this list.
    """
    if token is None:
        return first_page(items, name_of, limit)
    seen = last_seen(token)
    for place, item in enumerate(items):
        if name_of(item) == seen:
            return first_page(items[place + 1 :], name_of, limit)
    raise _refused()


def page_by_name(
    items: Sequence[T], name_of: Callable[[T], str], limit: int | None, token: str | None
) -> tuple[Sequence[T], str | None]:
    """The same of a list in the order of its names: it goes on even if the last item seen is gone.

    Raises:
        ConfigError: it is no token.
    """
    start = 0 if token is None else bisect_right(items, last_seen(token), key=name_of)
    return first_page(items[start:], name_of, limit)


def first_page(
    items: Sequence[T], name_of: Callable[[T], str], limit: int | None
) -> tuple[Sequence[T], str | None]:
    """As many as are wanted, and the token for the rest."""
    if limit is None or len(items) <= limit:
        return items, None
    shown = items[:limit]
    return shown, base64.urlsafe_b64encode(name_of(shown[-1]).encode()).decode()


def told(token: str | None) -> dict[str, object]:
    """The token as a member of an answer; the last page has none."""
    return {} if token is None else {"next_page_token": token}


def last_seen(token: str) -> str:
    """The name of the last item of the page before.

    Raises:
        ConfigError: it is no token.
    """
    try:
        name = base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as problem:
        raise _refused() from problem
    if not name:
        raise _refused()
    return name


def _refused() -> ConfigError:
    return ConfigError("page_token: no such page", hint="begin again without a token")
