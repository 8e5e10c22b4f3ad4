"""Reads the client's own TypeScript: `types.ts` into documents, `operations.ts` into operations.

Both files keep to one form, a member a line, and anything else in them is an error: what is not
understood would not be checked. `problems` holds a real answer against a document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

CLIENT: Final = Path(__file__).parent
_DECLARATION: Final = re.compile(
    r"^export (?:interface (?P<document>\w+) \{\n(?P<members>.*?)\n\}"
    r"|type (?P<enum>\w+) =(?P<values>[^;]*);)$",
    re.MULTILINE | re.DOTALL,
)
_MEMBER: Final = re.compile(r"  (?P<name>\w+)(?P<optional>\??): (?P<type>.+);")
_OPERATION: Final = re.compile(
    r"^export function (?P<function>\w+)\((?P<given>[^)]*)\): "
    r"Answer<(?:types\.)?(?P<answer>\w+)> \{"
    r'\n  return request\(\{ method: "(?P<method>\w+)", url: "(?P<url>[^"]+)" \}, options\);\n\}$',
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    alternatives: frozenset[str]
    is_optional: bool


@dataclass(frozen=True, slots=True)
class Types:
    enums: dict[str, frozenset[str]]
    documents: dict[str, tuple[Member, ...]]


@dataclass(frozen=True, slots=True)
class Operation:
    function: str
    method: str
    url: str
    body: str | None
    answer: str

    @property
    def operation_id(self) -> str:
        return self.function.rstrip("_")  # `export` is a word of the language

    def answers(self, method: str, path: str) -> bool:
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(self.url))
        return method == self.method and re.fullmatch(pattern, path) is not None


@cache
def client_types() -> Types:
    text = (CLIENT / "types.ts").read_text()
    found = list(_DECLARATION.finditer(text))
    assert len(found) == text.count("\nexport "), "a declaration in another form"
    return Types(
        {m["enum"]: frozenset(re.findall(r'"(\w+)"', m["values"])) for m in found if m["enum"]},
        {m["document"]: _members(m["members"]) for m in found if m["document"]},
    )


def _members(text: str) -> tuple[Member, ...]:
    return tuple(_member(line) for line in text.splitlines())


def _member(line: str) -> Member:
    found = _MEMBER.fullmatch(line)
    assert found is not None, f"a member in another form: {line}"
    return Member(found["name"], frozenset(found["type"].split(" | ")), found["optional"] == "?")


@cache
def client_operations() -> tuple[Operation, ...]:
    text = (CLIENT / "operations.ts").read_text()
    found = list(_OPERATION.finditer(text))
    assert len(found) == text.count("\nexport "), "a function in another form"
    return tuple(
        Operation(m["function"], m["method"], m["url"], _body(m["given"]), m["answer"])
        for m in found
    )


def _body(given: str) -> str | None:
    found = re.search(r"Body<types\.(\w+)>", given)
    return found[1] if found else None


def problems(name: str, value: object, where: str = "$") -> list[str]:
    """What keeps a JSON value from being the document; members it does not name are welcome."""
    if not isinstance(value, dict):
        return [f"{where}: not an object, {name} expected"]
    found: list[str] = []
    for member in client_types().documents[name]:
        place = f"{where}.{member.name}"
        if member.name in value:
            found += _member_problems(member, value[member.name], place)
        elif not member.is_optional:
            found.append(f"{place}: missing")
    return found


def _member_problems(member: Member, value: object, where: str) -> list[str]:
    if member.is_optional and value in (None, []):
        return [f"{where}: {value} where it is to be left out"]
    tried = [_type_problems(kind, value, where) for kind in sorted(member.alternatives)]
    return min(tried, key=len)


def _type_problems(kind: str, value: object, where: str) -> list[str]:
    if kind in client_types().documents:
        return problems(kind, value, where)
    if kind in client_types().enums:
        is_known = value in client_types().enums[kind]
        return [] if is_known else [f"{where}: {value!r} is no {kind}"]
    if kind.startswith("Array<") and isinstance(value, list):
        inner = kind.removeprefix("Array<").removesuffix(">")
        places = ((f"{where}[{n}]", member) for n, member in enumerate(value))
        return [line for place, member in places for line in _type_problems(inner, member, place)]
    return [] if _is_plain(kind, value) else [f"{where}: {value!r} is no {kind}"]


def _is_plain(kind: str, value: object) -> bool:
    if kind == "number":  # all of them count something: 1.0 would be a mistake
        return isinstance(value, int) and not isinstance(value, bool)
    kinds: dict[str, type] = {
        "string": str,
        "boolean": bool,
        "null": type(None),
        "Record<string, unknown>": dict,
    }
    return kind in kinds and isinstance(value, kinds[kind])
