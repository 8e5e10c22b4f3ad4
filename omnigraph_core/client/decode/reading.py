"""Reading documents of a server: what does not have the expected shape is told as one error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from omnigraph_core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

Document: TypeAlias = "dict[str, Any]"


def understood(decode: Callable[[Any], T], document: object) -> T:
    """What a document says.

    Raises:
        StorageError: it does not have the shape it should have.
    """
    try:
        return decode(document)
    except KeyError as missing:
        raise _strange(f"it has no {missing}") from missing
    except (TypeError, ValueError, AttributeError) as problem:
        raise _strange(str(problem)) from problem


def _strange(problem: str) -> StorageError:
    return StorageError(
        f"the answer of the server cannot be understood: {problem}",
        hint="is it an OmniGraph server, and of a release that fits this one?",
    )


def every(decode: Callable[[Any], T], items: Any) -> tuple[T, ...]:
    """The values of a list of documents."""
    return tuple(decode(item) for item in items)


def maybe(decode: Callable[[Any], T], document: Any) -> T | None:
    """The value of a document that may be null."""
    return None if document is None else decode(document)
