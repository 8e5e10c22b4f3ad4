"""What is asked of a server: one value per request, and how its parts are written.

A read may be repeated at will. A write carries a key by which the server knows a repeat, so that a
lost answer can be asked for again.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from omnigraph_core.errors import ConfigError, ParameterError
from omnigraph_core.ids import new_ulid
from omnigraph_core.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
ARROW: Final = "application/vnd.apache.arrow.stream"

KEY_HEADER: Final = "Idempotency-Key"
IF_COMMIT_HEADER: Final = "Omnigraph-If-Graph-Commit"


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `path` is below the address of the graph, its names escaped."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content: Callable[[], Iterable[bytes]] | None = None
    """A body that is too large to hold; made anew for every try."""
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    """Of a write."""
    seconds: float | None = None
    """To wait for the answer; None: as for every request."""
    mend: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Given the document of an error, makes the one that is raised."""

    @property
    def is_read(self) -> bool:
        return self.key is None

    def accepting(self, media_type: str) -> Call:
        """The same request for an answer of another form."""
        return replace(self, headers={**self.headers, "Accept": media_type})

    def as_job(self) -> Call:
        """The same request, to be carried out beside it."""
        return replace(self, headers={**self.headers, "Prefer": "respond-async"})

    def waiting(self, seconds: float | None) -> Call:
        return replace(self, seconds=seconds)


def get(path: str, **query: object) -> Call:
    """A read of what an address names; parameters that are None are left out."""
    return Call("GET", path, _parameters(query))


def ask(path: str, **body: object) -> Call:
    """A read that is described by a body; members that are None are left out."""
    return Call("POST", path, body=_encoded(body), headers={"Content-Type": JSON})


def write(
    method: str,
    path: str,
    body: Mapping[str, object] | None = None,
    *,
    key: str | None = None,
    if_commit: str | None = None,
) -> Call:
    """A write; without a key of the caller's it gets one of its own.

    Args:
        if_commit: the commit that must be the head of the branch.
    """
    content = _encoded(body or {}) if method == "POST" else None
    headers = _conditions({} if content is None else {"Content-Type": JSON}, if_commit)
    return Call(method, path, body=content, headers=headers, key=chosen_key(key))


def upload(
    path: str,
    content: Callable[[], Iterable[bytes]],
    headers: Mapping[str, str],
    *,
    key: str | None,
    if_commit: str | None,
    **query: object,
) -> Call:
    """A write whose body is data."""
    told = _conditions(headers, if_commit)
    return Call(
        "POST", path, _parameters(query), content=content, headers=told, key=chosen_key(key)
    )


def chosen_key(key: str | None) -> str:
    """The key of a write.

    Raises:
        ConfigError: it cannot be sent.
    """
    return new_ulid() if key is None else _header(key, "idempotency_key")


def segment(name: str) -> str:
    """A name as one part of a path.

    >>> segment("review/2026"), segment("..")
    ('review%2F2026', '%2E%2E')
    """
    if not name:
        raise ConfigError("a name must not be empty")
    if name in (".", ".."):  # would be taken for a way through the path
        return name.replace(".", "%2E")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError as problem:
        raise ConfigError(f"not a name that can be sent: {name!r}") from problem


def moment(value: dt.datetime) -> str:
    """A moment in UTC; without a zone it is that already."""
    zoned = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
    return zoned.isoformat().replace("+00:00", "Z")


def _parameters(given: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Pairs of a query string; several values of one name follow each other."""
    pairs: list[tuple[str, str]] = []
    for name, value in given.items():
        values = value if isinstance(value, list | tuple) else [value]
        pairs += [(name.rstrip("_"), _text(item)) for item in values if item is not None]
    return tuple(pairs)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _encoded(body: Mapping[str, object]) -> bytes:
    # `from` is a keyword of Python, so the parameter that carries it is called `from_`.
    given = {name.rstrip("_"): value for name, value in body.items() if value is not None}
    try:
        text = json.dumps(given, ensure_ascii=False, allow_nan=False, default=_plain)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise ParameterError([f"the parameters are no JSON values: {problem}"]) from problem


def _plain(value: Any) -> object:
    """Values that Python has and JSON has not, as the engine takes them."""
    if isinstance(value, dt.datetime):
        return moment(value)
    if isinstance(value, dt.date | tuple):
        return to_json(value)
    raise TypeError(f"{value!r:.60} is none")


def _conditions(headers: Mapping[str, str], if_commit: str | None) -> dict[str, str]:
    if if_commit is None:
        return dict(headers)
    return {**headers, IF_COMMIT_HEADER: _header(if_commit, "if_commit")}


def _header(text: str, name: str) -> str:
    if not text or text != text.strip() or not all(" " <= char <= "~" for char in text):
        raise ConfigError(f"`{name}` is printable ASCII text behind a server, not {text!r:.60}")
    return text
