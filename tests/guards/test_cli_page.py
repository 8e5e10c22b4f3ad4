"""The command line page shows the help of every command, so that no command or option is missing.

Help is run and compared where snippets are; here it is made sure that none is left out, and that
options help does not show are named.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from omnigraph_core.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "cli.md"
ALIASES = {
    ("query", "check"): ("query", "lint"),
    ("lint",): ("query", "lint"),
    ("check",): ("query", "lint"),
    ("explain",): ("query", "explain"),
    ("mutate",): ("change",),
    ("schema", "get"): ("schema", "show"),
    ("commit", "cherry-pick"): ("commit", "pick"),
}
"""Commands that are another one under a second name."""


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_every_command_shows_its_help() -> None:
    text = PAGE.read_text()
    shown = {tuple(line.split()) for line in re.findall(r"^\$ omnigraph (.*)--help$", text, re.M)}
    expected = {ALIASES.get(path, path) for path in COMMANDS}
    assert shown == expected
    for path in ALIASES:
        assert path in COMMANDS
        assert f"`{' '.join(path)}`" in text or f"omnigraph {' '.join(path)}" in text


def test_hidden_options_are_named() -> None:
    text = PAGE.read_text()
    hidden = {
        name
        for command in COMMANDS.values()
        for option in command.params
        if getattr(option, "hidden", False)
        for name in option.opts
    }
    assert hidden == {"--jsonl", "--reembed_all"}
    assert [name for name in sorted(hidden) if f"`{name}`" not in text] == []


def test_an_alias_is_the_same_command() -> None:
    for alias, original in ALIASES.items():
        assert COMMANDS[alias].callback.__wrapped__ is COMMANDS[original].callback.__wrapped__
