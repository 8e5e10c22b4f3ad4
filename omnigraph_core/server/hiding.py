"""Names in place of addresses: documents come in and go out without what is not to be told.

An address is known by every spelling that messages of the stores below have for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from omnigraph_core.storage.uri import normal_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Hiding:
    """What is told in place of each text; nothing is hidden without any."""

    names: Mapping[str, str]

    def over(self, document: Any) -> Any:
        return renamed(document, self.names) if self.names else document


def hiding_of(addresses: Iterable[tuple[str, str]]) -> Hiding:
    """Hides addresses behind the ids of their graphs.

    >>> hiding_of([("stock", "s3://lake/graphs/stock/")]).over(["no object lake/graphs/stock/x"])
    ['no object stock/x']
    """
    found = ((text, graph_id) for graph_id, uri in addresses for text in _spellings(uri))
    spelled = {text: graph_id for text, graph_id in found if text.strip("/")}
    return Hiding(dict(sorted(spelled.items(), key=lambda item: len(item[0]), reverse=True)))


def _spellings(uri: str) -> Iterator[str]:
    yield uri.rstrip("/")
    normal = normal_address(uri)
    plain = normal.removeprefix("s3://").strip("/")
    for text in (f"file://{normal}", normal, *([plain] if "/" in plain else [])):
        yield text
        yield quote(text, safe="/:")


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A document in which some texts are replaced, those before others that they hold."""
    if isinstance(value, str):
        for text, name in names.items():
            value = value.replace(text, name)
        return value
    if isinstance(value, dict):
        return {key: renamed(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [renamed(item, names) for item in value]
    return value
