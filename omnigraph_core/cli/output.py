"""How commands print: one JSON document, or lines for people."""

from __future__ import annotations

import json

import typer


def print_json(document: object) -> None:
    """One document: two-space indent, keys as given, text unescaped."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
