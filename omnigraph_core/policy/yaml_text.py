"""YAML with its lines: text comes in, members of known shapes go out, and every problem is kept.

Reading goes on after a problem, so that a file is told all of them at once.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import yaml
from yaml.reader import ReaderError

from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from yaml.nodes import Node

_MOST_SHOWN: Final = 60


def read_file(path: Path, what: str) -> str:
    """The text of a file.

    Raises:
        ConfigError: it cannot be read, or is no text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        message = f"cannot read the {what} {path}: {problem.strerror}"
        raise ConfigError(message) from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(f"the {what} {path} is no UTF-8 text") from problem


class YamlText:
    """A YAML document being read."""

    def __init__(self, text: str, name: str) -> None:
        """
        Raises:
            ConfigError: not YAML; says where.
        """
        self._name = name
        self._problems: list[tuple[int, str]] = []
        self._warnings: list[tuple[int, str]] = []
        try:
            self._loader = yaml.SafeLoader(text)
            self.root = self._loader.get_single_node()
        except yaml.YAMLError as problem:
            raise ConfigError(f"{name}{_described(problem, text)}") from problem
        except RecursionError as problem:
            raise ConfigError(f"{name}: nested too deep") from problem

    def warn(self, node: Node | None, text: str) -> None:
        """Keep what is found and means nothing."""
        self._warnings.append((_line(node), text))

    def problem(self, node: Node | None, text: str) -> None:
        """Keep a problem, with the line it is on."""
        self._problems.append((_line(node), text))

    def warnings(self) -> tuple[str, ...]:
        """What was found and means nothing, in the order of the lines."""
        return tuple(self._placed(item) for item in sorted(self._warnings))

    def finish(self) -> None:
        """
        Raises:
            ConfigError: there were problems; tells all of them.
        """
        if self._problems:
            raise ConfigError("\n".join(self._placed(item) for item in sorted(self._problems)))

    def members(
        self,
        node: Node | None,
        what: str,
        known: Collection[str] | None = None,
        *,
        is_lenient: bool = False,
    ) -> dict[str, Node] | None:
        """The members of a mapping; nothing at all is an empty one, None if it is something else.

        Args:
            known: the names there are; others are a problem.
            is_lenient: warn of others unless they look like one of those, misspelled.
        """
        if self.is_nothing(node):
            return {}
        if not isinstance(node, yaml.MappingNode):
            self.problem(node, f"{what} must be a mapping, not {_kind(node)}")
            return None
        found = self._pairs(node, what)
        if known is None:
            return {name: value for name, (_, value) in found.items()}
        for name, (key, _) in found.items():
            if name not in known:
                self._refuse_key(key, name, what, known, is_lenient=is_lenient)
        return {name: value for name, (_, value) in found.items() if name in known}

    def items(self, node: Node | None, what: str) -> list[Node] | None:
        """The items of a list; nothing at all is an empty one, None if it is something else."""
        if self.is_nothing(node):
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.problem(node, f"{what} must be a list, not {_kind(node)}")
            return None
        return list(node.value)

    def text(self, node: Node | None, what: str) -> str | None:
        """A text without blanks around it, maybe empty; None if it is something else."""
        if self.is_nothing(node):
            return ""
        value = self.value(node)
        if isinstance(value, str):
            return value.strip()
        quoted = f", quote it: '{node.value}'" if isinstance(node, yaml.ScalarNode) else ""
        self.problem(node, f"{what} must be text, not {_kind(node)}{quoted}")
        return None

    def value(self, node: Node | None) -> object:
        """A single value as YAML understands it; None for lists and mappings."""
        if not isinstance(node, yaml.ScalarNode):
            return None
        try:
            value: object = self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError):
            return node  # an unknown tag, a date that cannot be: no value that is asked for
        return value

    def is_nothing(self, node: Node | None) -> bool:
        """Whether it is missing or null."""
        return node is None or node.tag == "tag:yaml.org,2002:null"

    def _pairs(self, node: yaml.MappingNode, what: str) -> dict[str, tuple[Node, Node]]:
        """Keys and values by name."""
        found: dict[str, tuple[Node, Node]] = {}
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                self.problem(key, f"{what} has a merge key `<<`, write its members out")
                continue
            name = self.text(key, f"a key of {what}")
            if name is None:
                continue
            if name in found:
                self.problem(key, f"{what} has `{name}` twice")
            else:
                found[name] = key, value
        return found

    def _refuse_key(
        self, key: Node, name: str, what: str, known: Collection[str], *, is_lenient: bool
    ) -> None:
        unknown = f"{what} has an unknown key `{name[:_MOST_SHOWN]}`"
        close = get_close_matches(name, list(known), 1)
        if is_lenient and not close:
            self.warn(key, f"{unknown} that is ignored")
        else:
            # Whoever wrote it meant something by it: a rule that is to hold on some branches alone
            # must not hold on all of them.
            advice = f"did you mean `{close[0]}`?" if close else f"give {choices(known)}"
            self.problem(key, f"{unknown}, {advice}")

    def _placed(self, item: tuple[int, str]) -> str:
        line, text = item
        return f"{self._name}:{line}: {text}" if line else f"{self._name}: {text}"


def choices(known: Collection[str]) -> str:
    """
    >>> choices(["allow", "deny"])
    'allow or deny'
    """
    *most, last = known
    return f"{', '.join(most)} or {last}" if most else last


def _kind(node: Node | None) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "nothing" if node is None else f"`{node.value[:_MOST_SHOWN]}`"


def _line(node: Node | None) -> int:
    return 0 if node is None else node.start_mark.line + 1


def _described(problem: yaml.YAMLError, text: str) -> str:
    if isinstance(problem, yaml.MarkedYAMLError) and problem.problem_mark is not None:
        mark = problem.problem_mark
        return f":{mark.line + 1}:{mark.column + 1}: not YAML: {problem.problem}"
    if isinstance(problem, ReaderError):
        line = text.count("\n", 0, problem.position) + 1
        return f":{line}: not YAML: {problem.reason}"
    return f": not YAML: {problem}"
