"""What an offline run embeds: a spec (JSON) or a seed manifest (YAML) in, checked values out.

A document that is wrong is refused once, with everything that is wrong with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_EMBEDDED_SEED: Final = "./build/seed.embedded.jsonl"

_TRIPPED: Final = (ValueError, LookupError, AttributeError, RecursionError)
"""What the YAML library lets through over a day 99, a `!!bool` of other words, or deep nesting."""


@dataclass(frozen=True, slots=True)
class TypeSpec:
    """The fields whose text becomes the vector in `target`."""

    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmbedSpec:
    """`model` None: whatever is configured."""

    dimension: int
    types: Mapping[str, TypeSpec]
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """Where the rows of a seed manifest are, where embedded ones go, and how."""

    input: Path
    output: Path
    spec: EmbedSpec


def load_spec(path: Path) -> EmbedSpec:
    """
    Raises:
        ConfigError: the file cannot be read or is no spec; names every problem.
    """
    try:
        document = json.loads(_read(path))
    except (ValueError, RecursionError) as problem:
        raise ConfigError(f"{path}: expected JSON: {problem}") from problem
    problems: list[str] = []
    spec = _spec(document, "spec", problems)
    if spec is None or problems:
        raise _refusal(path, problems)
    return spec


def load_seed(path: Path) -> Seed:
    """Paths in the manifest are relative to it.

    Raises:
        ConfigError: the file cannot be read or is no manifest; names every problem.
    """
    import yaml  # here because it is needed for this alone

    try:
        document = yaml.safe_load(_read(path))
    except (yaml.YAMLError, *_TRIPPED) as problem:
        raise ConfigError(f"{path}: expected YAML: {problem}") from problem
    problems: list[str] = []
    manifest = _members(document, "manifest", problems)
    given = _path(manifest, ("sources", "raw_seed"), problems)
    given = given or _path(manifest, ("seed", "data"), problems)
    if given is None:
        problems.append("expected a path in sources.raw_seed")
    made = _path(manifest, ("artifacts", "embedded_seed"), problems) or _EMBEDDED_SEED
    spec = _spec(manifest.get("embeddings"), "embeddings", problems)
    if given is None or spec is None or problems:
        raise _refusal(path, problems)
    return Seed(path.parent / given, path.parent / made, spec)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ConfigError(f"cannot read {path}: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(f"{path}: expected UTF-8") from problem


def _refusal(path: Path, problems: list[str]) -> ConfigError:
    return ConfigError("\n".join(f"{path}: {problem}" for problem in problems))


def _path(
    manifest: Mapping[str, object], place: tuple[str, str], problems: list[str]
) -> str | None:
    """The text in a section of the manifest, if both are there."""
    section, name = place
    members = manifest.get(section)
    text = members.get(name) if isinstance(members, Mapping) else None
    if text is None or (isinstance(text, str) and _is_path(text)):
        return text
    problems.append(f"expected a path in {section}.{name}, found {shortened(text)}")
    return None


def _is_path(text: str) -> bool:
    try:
        return bool(text.strip()) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def _spec(document: object, name: str, problems: list[str]) -> EmbedSpec | None:
    before = len(problems)
    members = _members(document, name, problems)
    if len(problems) > before:
        return None
    dimension = members.get("dimension")
    if type(dimension) is not int or dimension < 1:
        problems.append(
            f"{name}.dimension: expected a number above zero, found {shortened(dimension)}"
        )
    model = members.get("model")
    if model is not None and not _is_name(model):
        problems.append(f"{name}.model: expected a name, found {shortened(model)}")
    types = {
        str(type_name): _type(value, f"{name}.types.{type_name}", problems)
        for type_name, value in _members(members.get("types"), f"{name}.types", problems).items()
    }
    if len(problems) > before:
        return None
    return EmbedSpec(int(str(dimension)), types, None if model is None else str(model))


def _type(document: object, name: str, problems: list[str]) -> TypeSpec:
    before = len(problems)
    members = _members(document, name, problems)
    if len(problems) > before:
        return TypeSpec("", ())
    target, fields = members.get("target"), members.get("fields")
    names = fields if isinstance(fields, list) else []
    if not _is_name(target):
        problems.append(f"{name}.target: expected a name, found {shortened(target)}")
    if not names or not all(map(_is_name, names)):
        problems.append(f"{name}.fields: expected a list of names, found {shortened(fields)}")
    return TypeSpec(str(target), tuple(str(field) for field in names))


def _members(document: object, name: str, problems: list[str]) -> Mapping[str, object]:
    if isinstance(document, Mapping):
        return document
    problems.append(f"{name}: expected an object, found {shortened(document)}")
    return {}


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
