"""Long lists in parts: a page goes out with a token, and the token asks for the next page."""

from __future__ import annotations

import base64
import binascii
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
    rest = items if token is None else items[_place(items, name_of, token) + 1 :]
    if limit is None or len(rest) <= limit:
        return rest, None
    shown = rest[:limit]
    return shown, base64.urlsafe_b64encode(name_of(shown[-1]).encode()).decode()


def told(token: str | None) -> dict[str, object]:
    """The token as a member of an answer; the last page has none."""
    return {} if token is None else {"next_page_token": token}


def _place(items: Sequence[T], name_of: Callable[[T], str], token: str) -> int:
    try:
        name = base64.urlsafe_b64decode(token.encode()).decode()
    except (binascii.Error, ValueError) as problem:
        raise _refused() from problem
    for place, item in enumerate(items):
        if name_of(item) == name:
            return place
    raise _refused()


def _refused() -> ConfigError:
    return ConfigError("page_token: no such page", hint="begin again without a token")
