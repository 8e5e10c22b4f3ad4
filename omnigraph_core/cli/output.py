"""How commands print: one JSON document, or lines for people."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import typer

from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable


def print_json(document: object) -> None:
    """One document: two-space indent, keys as given, text unescaped."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


def write_chunks(chunks: Iterable[bytes]) -> None:
    """Many rows, as they come.

    Raises:
        ConfigError: there is nowhere to write to.
    """
    if sys.stdout is None:
        raise ConfigError("cannot write the output: it is closed")
    sys.stdout.buffer.writelines(chunks)
    sys.stdout.buffer.flush()


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "node"), count(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
