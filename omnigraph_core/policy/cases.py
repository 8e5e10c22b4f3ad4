"""Cases of a policy: who asks for what, and what should be the answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from omnigraph_core.policy.load import check_version, find_action
from omnigraph_core.policy.model import Request
from omnigraph_core.policy.yaml_text import YamlText, choices, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from yaml.nodes import Node

    from omnigraph_core.policy.model import Judge

_DOCUMENT: Final = ("version", "cases")
_CASE: Final = ("id", "actor", "action", "branch", "target_branch", "expect")


class Answer(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    request: Request
    expected: Answer


@dataclass(frozen=True, slots=True)
class CaseFile:
    cases: tuple[Case, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that was answered otherwise."""

    case: Case
    answer: Answer

    def __str__(self) -> str:
        expected = self.case.expected.capitalize()
        return f"{self.case.id}: expected {expected} but got {self.answer}"


def load_cases(path: Path) -> CaseFile:
    """
    Raises:
        ConfigError: the file cannot be read, or is wrong; tells every problem.
    """
    return parse_cases(read_file(path, "policy tests file"), str(path))


def parse_cases(text: str, name: str) -> CaseFile:
    """
    Raises:
        ConfigError: the text is wrong; tells every problem.
    """
    yaml = YamlText(text, name)
    found = yaml.members(yaml.root, "the file", _DOCUMENT, is_lenient=True)
    cases = () if found is None else _cases(yaml, found)
    yaml.finish()
    return CaseFile(cases, yaml.warnings())


def failures(judge: Judge, cases: Iterable[Case]) -> tuple[Failure, ...]:
    """The cases that are not answered as expected."""
    answers = ((case, answer_of(judge, case.request)) for case in cases)
    return tuple(Failure(case, answer) for case, answer in answers if answer is not case.expected)


def answer_of(judge: Judge, request: Request) -> Answer:
    return Answer.ALLOW if judge.decide(request).is_allowed else Answer.DENY


def _cases(yaml: YamlText, found: Mapping[str, Node]) -> tuple[Case, ...]:
    check_version(yaml, found, "policy tests")
    cases: list[Case] = []
    ids: set[str] = set()
    for place, item in enumerate(yaml.items(found.get("cases"), "`cases`") or [], 1):
        members = yaml.members(item, f"case {place}", _CASE, is_lenient=True)
        if members is None:
            continue
        id = yaml.text(members.get("id"), f"the id of case {place}")
        if id == "":
            yaml.problem(members.get("id", item), f"case {place} has no id")
        elif id in ids:
            yaml.problem(members["id"], f"duplicate policy test case id '{id}'")
        ids |= {id} if id else set()
        case = _case(yaml, item, members, id or f"#{place}")
        cases += [] if case is None else [case]
    return tuple(cases)


def _case(yaml: YamlText, item: Node, members: Mapping[str, Node], id: str) -> Case | None:
    what = f"case '{id}'"
    actor = yaml.text(members.get("actor"), f"the actor of {what}")
    if actor == "":
        yaml.problem(members.get("actor", item), f"{what} has no actor")
    action = find_action(yaml, members.get("action", item), what) if "action" in members else None
    if "action" not in members:
        yaml.problem(item, f"{what} has no action")
    branch, target = (
        yaml.text(members.get(name), f"{name} of {what}") or None
        for name in ("branch", "target_branch")
    )
    expected = _expected(yaml, item, members.get("expect"), what)
    if not actor or action is None or expected is None:
        return None
    return Case(id, Request(actor, action, branch, target), expected)


def _expected(yaml: YamlText, item: Node, node: Node | None, what: str) -> Answer | None:
    text = yaml.text(node, f"`expect` of {what}")
    if text in tuple(Answer):
        return Answer(text)
    if text is not None:
        given = f"`expect: {text}`" if text else "no `expect`"
        yaml.problem(node or item, f"{what} has {given}, give {choices(tuple(Answer))}")
    return None
