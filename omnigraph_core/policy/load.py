"""Policy files: text comes in, a document whose rules can all be carried out goes out.

Whatever is wrong is told at once, each with its line and its rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.policy.model import ON_BRANCH, ON_TARGET, Action, PolicyDocument, Rule, Scope
from omnigraph_core.policy.yaml_text import YamlText, choices, read_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from yaml.nodes import Node

VERSION: Final = 1

_DOCUMENT: Final = ("version", "kind", "groups", "protected_branches", "rules")
_RULE: Final = ("id", "allow")
_ALLOW: Final = ("actors", "actions", "branch_scope", "target_branch_scope")
_SCOPES: Final = {
    "branch_scope": tuple(action for action in Action if action in ON_BRANCH),
    "target_branch_scope": tuple(action for action in Action if action in ON_TARGET),
}


def load_policy(path: Path) -> PolicyDocument:
    """
    Raises:
        ConfigError: the file cannot be read, or is wrong; tells every problem.
    """
    return parse_policy(read_file(path, "policy file"), str(path))


def parse_policy(text: str, name: str) -> PolicyDocument:
    """
    Args:
        name: what the text is called in messages.

    Raises:
        ConfigError: the text is wrong; tells every problem.
    """
    yaml = YamlText(text, name)
    found = yaml.members(yaml.root, "the policy", _DOCUMENT, is_lenient=True)
    document = PolicyDocument() if found is None else _document(yaml, found)
    yaml.finish()
    return document


def _document(yaml: YamlText, found: Mapping[str, Node]) -> PolicyDocument:
    check_version(yaml, found, "policy")
    groups = _groups(yaml, found.get("groups"))
    protected = _protected(yaml, found.get("protected_branches"))
    rules = _rules(yaml, found.get("rules"), groups)
    known = {group: members for group, members in groups.items() if members is not None}
    return PolicyDocument(known, frozenset(protected), rules, yaml.warnings())


def check_version(yaml: YamlText, members: Mapping[str, Node], what: str) -> None:
    """Keep a problem unless `version` is the one there is."""
    node = members.get("version")
    value = yaml.value(node)
    if node is None:
        yaml.problem(yaml.root, f"the {what} has no `version`, give `version: {VERSION}`")
    elif value != VERSION or isinstance(value, bool):
        shown = value if isinstance(value, int) else repr(getattr(node, "value", None))
        yaml.problem(node, f"unsupported {what} version {shown}, expected {VERSION}")


def find_action(yaml: YamlText, node: Node, what: str) -> Action | None:
    """The action a node names; a problem is kept if there is none of that name."""
    name = yaml.text(node, f"an action of {what}")
    if name in tuple(Action):
        return Action(name)
    if name is not None:
        yaml.problem(node, f"{what} has an unknown action `{name}`, give {choices(tuple(Action))}")
    return None


def _groups(yaml: YamlText, node: Node | None) -> dict[str, tuple[str, ...] | None]:
    """The groups; those whose members are wrong have None, so that rules may name them."""
    groups: dict[str, tuple[str, ...] | None] = {}
    for name, members in (yaml.members(node, "`groups`") or {}).items():
        if not name:
            yaml.problem(members, "the name of a group must not be blank")
            continue
        groups[name] = _members(yaml, name, members)
    return groups


def _members(yaml: YamlText, group: str, node: Node) -> tuple[str, ...] | None:
    items = yaml.items(node, f"group '{group}'")
    if items is None:
        return None
    names = [yaml.text(item, f"an actor of group '{group}'") for item in items]
    for item, name in zip(items, names, strict=True):
        if name == "":
            yaml.problem(item, f"group '{group}' has a blank actor")
    if not items:
        yaml.problem(node, f"group '{group}' has no actors")
    return tuple(dict.fromkeys(name for name in names if name)) or None


def _protected(yaml: YamlText, node: Node | None) -> list[str]:
    items = yaml.items(node, "`protected_branches`") or []
    names = [yaml.text(item, "a protected branch") for item in items]
    for item, name in zip(items, names, strict=True):
        if name == "":
            yaml.problem(item, "the name of a protected branch must not be blank")
    return [name for name in names if name]


def _rules(
    yaml: YamlText, node: Node | None, groups: Mapping[str, tuple[str, ...] | None]
) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    ids: set[str] = set()
    for place, item in enumerate(yaml.items(node, "`rules`") or [], 1):
        members = yaml.members(item, f"rule {place}", _RULE)
        if members is None:
            continue
        id = yaml.text(members.get("id"), f"the id of rule {place}")
        if id == "":
            yaml.problem(members.get("id", item), f"rule {place} has no id")
        elif id in ids:
            yaml.problem(members["id"], f"duplicate policy rule id '{id}'")
        ids |= {id} if id else set()
        rules += _rule(yaml, item, members.get("allow"), id or f"#{place}", groups)
    return tuple(rules)


def _rule(
    yaml: YamlText,
    item: Node,
    allow: Node | None,
    id: str,
    groups: Mapping[str, tuple[str, ...] | None],
) -> list[Rule]:
    """The rule, or nothing if it has been found wrong."""
    what = f"rule '{id}'"
    if allow is None or yaml.is_nothing(allow):
        yaml.problem(item, f"{what} has no `allow`: rules allow, what none allows is denied")
        return []
    members = yaml.members(allow, f"`allow` of {what}", _ALLOW)
    if members is None:
        return []
    group = _group(yaml, allow, members.get("actors"), what, groups)
    actions = _actions(yaml, allow, members.get("actions"), what)
    scopes = {name: _scope(yaml, members.get(name), name, what, actions) for name in _SCOPES}
    if not any(yaml.is_nothing(members.get(name)) for name in _SCOPES):
        yaml.problem(allow, f"{what} has both branch_scope and target_branch_scope, give one")
    return [Rule(id, group, actions, scopes["branch_scope"], scopes["target_branch_scope"])]


def _group(
    yaml: YamlText,
    allow: Node,
    actors: Node | None,
    what: str,
    groups: Mapping[str, tuple[str, ...] | None],
) -> str:
    members = yaml.members(actors, f"`actors` of {what}", ("group",))
    if members is None:
        return ""
    node = members.get("group")
    group = yaml.text(node, f"the group of {what}")
    if group == "":
        yaml.problem(actors or allow, f"{what} has no group, give `actors: {{ group: NAME }}`")
    elif group is not None and group not in groups:
        yaml.problem(node, f"{what} references unknown group '{group}'")
    return group or ""


def _actions(yaml: YamlText, allow: Node, node: Node | None, what: str) -> tuple[Action, ...]:
    items = yaml.items(node, f"`actions` of {what}")
    if items == []:
        yaml.problem(node or allow, f"{what} has no actions")
    found = [find_action(yaml, item, what) for item in items or ()]
    return tuple(dict.fromkeys(action for action in found if action is not None))


def _scope(
    yaml: YamlText, node: Node | None, name: str, what: str, actions: tuple[Action, ...]
) -> Scope | None:
    if yaml.is_nothing(node):
        return None
    for action in actions:
        if action not in _SCOPES[name]:
            supported = f"it goes with {choices(_SCOPES[name])}"
            yaml.problem(node, f"{what} has {name} with unsupported action `{action}`, {supported}")
    scope = yaml.text(node, f"{name} of {what}")
    if scope in tuple(Scope):
        return Scope(scope)
    if scope is not None:
        yaml.problem(node, f"{what} has an unknown {name} `{scope}`, give {choices(tuple(Scope))}")
    return None
