"""What an answer holds that its description does not tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def undescribed(document: Any, schema: Any, value: Any, place: str = "$") -> Iterator[str]:
    """The places of members no schema names; a schema without members takes any."""
    choices = list(_choices(document, schema))
    if isinstance(value, list):
        items = next((choice["items"] for choice in choices if "items" in choice), {})
        for item in value:
            yield from undescribed(document, items, item, f"{place}[]")
    if isinstance(value, dict):
        known = [choice["properties"] for choice in choices if "properties" in choice]
        is_free = any(choice.get("additionalProperties") for choice in choices)
        for name, member in value.items() if known and not is_free else ():
            named = [properties[name] for properties in known if name in properties]
            if not named:
                yield f"{place}.{name}"
            else:
                yield from undescribed(document, {"anyOf": named}, member, f"{place}.{name}")


def _choices(document: Any, schema: Any) -> Iterator[Any]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield from _choices(document, document["components"]["schemas"][name])
    elif "anyOf" in schema:
        for choice in schema["anyOf"]:
            yield from _choices(document, choice)
    else:
        yield schema
