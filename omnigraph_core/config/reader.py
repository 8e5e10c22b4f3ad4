"""Reading a YAML mapping member by member: nodes come in, values and problems go out.

Each problem and each warning says the line it is about. Reading goes on after a problem, so that
all of them are told at once; an empty value counts as a member that is not there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import yaml

from omnigraph_core.diagnostics import nearest_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

C = TypeVar("C", bound=str)

_TAG: Final = "tag:yaml.org,2002:"


@dataclass(slots=True)
class Findings:
    """What is wrong and what means nothing, with the file and the line."""

    file: Path
    problems: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)

    def refuse(self, node: yaml.Node, message: str) -> None:
        self.problems.append((_line(node), message))

    def warn(self, node: yaml.Node, message: str) -> None:
        self.warnings.append((_line(node), message))

    def told(self, findings: Iterable[tuple[int, str]]) -> Iterator[str]:
        """In the order of the file."""
        return (f"{self.file}:{line}: {message}" for line, message in sorted(findings))


class Section:
    """A mapping of the file. Members are asked for by name; `finish` warns of those nobody asked
    for.
    """

    def __init__(
        self, key: yaml.Node, node: yaml.Node | None, path: str, findings: Findings
    ) -> None:
        self.path = path
        self._key = key
        self._findings = findings
        self._asked: set[str] = set()
        self._members = {} if node is None else self._read(node)

    def has(self, name: str) -> bool:
        return self._value(name) is not None

    def text(self, name: str) -> str | None:
        """Text, or a number or a word of YAML that is meant as text: `name: 2026`."""
        node = self._value(name)
        if node is None:
            return None
        if not isinstance(node, yaml.ScalarNode):
            self._refuse(name, node, "a text")
            return None
        return node.value.strip() or None

    def choice(self, name: str, choices: Iterable[C]) -> C | None:
        text = self.text(name)
        if text is None:
            return None
        known = tuple(choices)
        for one in known:
            if one == text:
                return one
        near = nearest_name(text, known)
        more = f"; did you mean `{near}`?" if near else ""
        node = self._members[name][1]
        self._findings.refuse(
            node, f"`{self._at(name)}`: expected {_listed(known)}, found `{text}`{more}"
        )
        return None

    def count(self, name: str) -> int | None:
        """A whole number above zero."""
        node = self._value(name)
        if node is None:
            return None
        if isinstance(node, yaml.ScalarNode) and node.value.isascii() and node.value.isdigit():
            number = int(node.value)
            if number:
                return number
        self._refuse(name, node, "a whole number above zero")
        return None

    def switch(self, name: str) -> bool:
        node = self._value(name)
        if node is None:
            return False
        if isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}bool":
            return node.value.lower() in ("yes", "true", "on")
        self._refuse(name, node, "true or false")
        return False

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; one text stands for a list of one."""
        node = self._value(name)
        if node is None:
            return ()
        if isinstance(node, yaml.ScalarNode):
            return (node.value,)
        items = node.value if isinstance(node, yaml.SequenceNode) else ()
        if isinstance(node, yaml.MappingNode) or not all(map(_is_text, items)):
            self._refuse(name, node, "a list of texts")
            return ()
        return tuple(item.value for item in items)

    def section(self, name: str) -> Section:
        key, _ = self._members.get(name, (self._key, None))
        return Section(key, self._value(name), self._at(name), self._findings)

    def sections(self) -> Iterator[tuple[str, Section]]:
        """A section for each member: the names are free."""
        return ((name, self.section(name)) for name in self._members)

    def refuse(self, name: str, message: str) -> None:
        """A problem of a member, or of the section if it lacks the member."""
        key = self._members[name][0] if name in self._members else self._key
        self._findings.refuse(key, f"`{self._at(name)}` {message}")

    def finish(self) -> None:
        """Warn of members that mean nothing."""
        for name, (key, _) in self._members.items():
            if name not in self._asked:
                near = nearest_name(name, self._asked)
                more = f"; did you mean `{near}`?" if near else ""
                self._findings.warn(key, f"`{self._at(name)}` means nothing here{more}")

    def _read(self, node: yaml.Node) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            what = f"`{self.path}`: " if self.path else ""
            self._findings.refuse(node, f"{what}expected `name: value` lines, found {_kind(node)}")
            return {}
        members: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is None:
                self._findings.refuse(key, f"a name is expected, found {_kind(key)}")
            elif name in members:
                self._findings.refuse(key, f"`{self._at(name)}` is given twice")
            else:
                members[name] = (key, value)
        return members

    def _value(self, name: str) -> yaml.Node | None:
        self._asked.add(name)
        _, node = self._members.get(name, (None, None))
        return None if node is None or is_nothing(node) else node

    def _refuse(self, name: str, node: yaml.Node, expected: str) -> None:
        found = f"`{node.value}`" if isinstance(node, yaml.ScalarNode) else _kind(node)
        self._findings.refuse(node, f"`{self._at(name)}`: expected {expected}, found {found}")

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def is_nothing(node: yaml.Node) -> bool:
    """Whether a value is left out: `name:`, `name: ~` or `name: null`."""
    return bool(node.tag == f"{_TAG}null")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _is_text(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and not is_nothing(node)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "`name: value` lines"
    return "a list" if isinstance(node, yaml.SequenceNode) else f"`{node.value}`"


def _listed(names: tuple[str, ...]) -> str:
    """
    >>> _listed(("table", "kv", "csv"))
    'table, kv or csv'
    """
    return f"{', '.join(names[:-1])} or {names[-1]}"
