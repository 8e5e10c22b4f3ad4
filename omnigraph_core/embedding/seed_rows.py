"""Lines of a seed file and what embedding needs of them: which are meant, and which text they give.

A line becomes a row, or a violation that names what is wrong with it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import ConfigError
from omnigraph_core.violations import Rule, Violation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.embedding.spec import TypeSpec

_BLANKS: Final = b" \t\r\n\x0b\x0c"

_DEEPEST: Final = 200
"""Levels of a line; what can be read may still be too deep to be written."""


@dataclass(frozen=True, slots=True)
class SeedRow:
    """A line; `type_name` None: it is no node and passes as it is."""

    text: str
    members: dict[str, object]
    type_name: str | None = None
    repeated: str | None = None
    """A member given more than once, which the line would lose if it were written anew."""
    is_comment: bool = False

    @property
    def data(self) -> dict[str, object]:
        """The properties of a node."""
        data = self.members["data"]
        assert isinstance(data, dict)
        return data

    def render(self) -> str:
        """The line, with what has been changed in `data`."""
        text = json.dumps(self.members, ensure_ascii=False, separators=(",", ":"))
        return text if is_encodable(text) else json.dumps(self.members, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Selector:
    """Rows whose field shows this text, of one type or of any."""

    field: str
    value: str
    type_name: str | None = None

    def matches(self, row: SeedRow) -> bool:
        if self.type_name is not None and self.type_name != row.type_name:
            return False
        return rendered(row.data.get(self.field)) == self.value


def parse_selector(text: str) -> Selector:
    """
    >>> parse_selector("Part:name=bolt")
    Selector(field='name', value='bolt', type_name='Part')

    Raises:
        ConfigError: the text is not `[Type:]field=value`.
    """
    place, equals, value = text.partition("=")
    type_name, colon, field = place.rpartition(":")
    if not equals or not field.strip() or (colon and not type_name.strip()):
        raise ConfigError(f"expected [Type:]field=value, found {text!r}")
    return Selector(field.strip(), value.strip(), type_name.strip() or None)


def parse_row(line: bytes) -> SeedRow | Violation | None:
    """The row of a line; None if it is blank."""
    if line.lstrip(_BLANKS).startswith(b"//"):
        # Nobody reads what a comment says, so it may be in any encoding.
        return SeedRow(line.decode(errors="surrogateescape").rstrip("\r\n"), {}, is_comment=True)
    repeated: list[str] = []
    try:
        text = line.decode().strip()
        if not text:
            return None
        members = json.loads(
            text,
            parse_float=_finite,
            parse_constant=_finite,
            object_pairs_hook=partial(_object, repeated),
        )
    except (ValueError, RecursionError) as problem:
        return Violation(Rule.JSON, f"invalid JSON: {problem}")
    if _is_deep(text, members):
        return Violation(Rule.JSON, "invalid JSON: nested too deeply")
    if not isinstance(members, dict):
        return Violation(Rule.RECORD, f"expected a JSON object, found {_shown(members)}")
    type_name = members.get("type")
    if not isinstance(type_name, str):
        return SeedRow(text, members)
    if not isinstance(members.get("data"), dict):
        found = _shown(members.get("data"))
        message = f"expected an object `data`, found {found}"
        return Violation(Rule.RECORD, message, type_name=type_name)
    return SeedRow(text, members, type_name, next(iter(repeated), None))


def source_text(row: SeedRow, spec: TypeSpec) -> str:
    """What is embedded: the type and every field that has something to say.

    >>> from omnigraph_core.embedding.spec import TypeSpec
    >>> row = SeedRow("", {"data": {"name": " bolt ", "sizes": [4, 6], "note": None}}, "Part")
    >>> source_text(row, TypeSpec("vector", ("name", "sizes", "note")))
    'type: Part\\nname: bolt\\nsizes: 4, 6'
    """
    lines = [f"type: {row.type_name}"]
    for field in spec.fields:
        value = rendered(row.data.get(field))
        if value:
            lines.append(f"{field}: {value}")
    return "\n".join(lines)


def rendered(value: object) -> str:
    """A JSON value as plain text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return ", ".join(rendered(member) for member in value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_encodable(text: str) -> bool:
    """JSON can spell half of a surrogate pair, which is no text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _object(repeated: list[str], pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        repeated.extend(_short(name) for name in members if names.count(name) > 1)
    return members


def _is_deep(text: str, value: object) -> bool:
    if text.count("[") + text.count("{") <= _DEEPEST:  # so that most lines are not walked through
        return False
    level, depth = [value], 0
    while level and depth <= _DEEPEST:
        level = [member for container in level for member in _inside(container)]
        depth += 1
    return bool(level)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, found {text}")
    return number


def _shown(value: object) -> str:
    return _short(json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    clean = text.encode(errors="backslashreplace").decode()
    return clean if len(clean) <= 40 else f"{clean[:40]}…"
