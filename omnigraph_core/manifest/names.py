"""What branches and tags may be called: text as given comes in, the trimmed name goes out.

Checked before anything is written. `a` and `a/b` may exist side by side.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from omnigraph_core.errors import ConfigError
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.layout import escape_name

RUN_PREFIX: Final = "__run__"
SCHEMA_APPLY_LOCK: Final = "__schema_apply_lock__"

MAX_ACTOR: Final = 256
_CONTROL: Final = ("Cc", "Zl", "Zp")
"""Unicode categories that break a line or drive a terminal."""


def check_branch_name(name: str, *, is_internal_allowed: bool = False) -> str:
    """The name of a branch to be made, trimmed.

    Raises:
        ConfigError: a rule is broken; says which.

    >>> check_branch_name(" review/parts ")
    'review/parts'
    """
    return _check("branch", name, is_internal_allowed=is_internal_allowed)


def check_tag_name(name: str) -> str:
    """The name of a tag to be made, trimmed; the rules are those of branches.

    Raises:
        ConfigError: a rule is broken; says which.
    """
    return _check("tag", name, is_internal_allowed=False)


def check_actor(actor: str | None) -> str | None:
    """Who does something, as given.

    Raises:
        ConfigError: no name that can be written down and read back.
    """
    if actor is None:
        return None
    try:
        actor.encode()
    except UnicodeEncodeError as problem:
        raise ConfigError(f"the actor {actor!r} is not Unicode text") from problem
    if not actor.strip() or len(actor) > MAX_ACTOR:
        raise ConfigError(f"an actor has 1 to {MAX_ACTOR} characters, not {len(actor)}")
    if any(unicodedata.category(character) in _CONTROL for character in actor):
        raise ConfigError(f"the actor {actor!r} holds control characters")
    return actor


def is_internal(name: str) -> bool:
    """Whether the name belongs to OmniGraph's own work: runs and the schema lock."""
    bare = name.strip().lstrip("/")
    return bare.startswith(RUN_PREFIX) or bare == SCHEMA_APPLY_LOCK


def _check(what: str, given: str, *, is_internal_allowed: bool) -> str:
    name = given.strip()
    if not name:
        raise ConfigError(f"the name of a {what} must not be empty")
    if name == MAIN:
        raise ConfigError(f"`{MAIN}` is reserved", hint=f"choose another name for the {what}")
    if is_internal(name) and not is_internal_allowed:
        raise ConfigError(
            f"the {what} name `{name}` is reserved for internal use",
            hint=f"names must not start with `{RUN_PREFIX}` or be `{SCHEMA_APPLY_LOCK}`",
        )
    if any(unicodedata.category(character) in _CONTROL for character in name):
        raise ConfigError(f"the {what} name {name!r} holds control characters")
    _check_segments(what, name)
    escape_name(name)  # refuses what no file name can carry
    return name


def _check_segments(what: str, name: str) -> None:
    segments = name.split("/")
    if not segments[0]:
        raise ConfigError(f"the {what} name `{name}` starts with a slash")
    if not segments[-1]:
        raise ConfigError(f"the {what} name `{name}` ends with a slash")
    if "" in segments:
        raise ConfigError(f"the {what} name `{name}` holds two slashes in a row")
    if "." in segments or ".." in segments:
        raise ConfigError(f"the {what} name `{name}` has a part that is `.` or `..`")
