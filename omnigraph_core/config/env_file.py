"""The file of `auth.env_file`: variables for those that the environment does not have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from omnigraph_core import settings
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.config.model import Config

_LINE: Final = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_QUOTES: Final = ("'", '"')


def adopt_env_file(config: Config) -> None:
    """Let the configured file, if it is there, fill in what the environment lacks.

    Raises:
        ConfigError: the file cannot be read, or a line is not one of it.
    """
    settings.adopt(env_file_pairs(config))


def env_file_pairs(config: Config) -> dict[str, str]:
    """What the configured file says; nothing if there is none.

    Raises:
        ConfigError: the file cannot be read, or a line is not one of it.
    """
    path = config.env_file
    return {} if path is None or not path.exists() else read_env_file(path)


def read_env_file(path: Path) -> dict[str, str]:
    """
    Raises:
        ConfigError: the file cannot be read, or a line is not `NAME=VALUE`; tells every line, but
            not what it says: it may be a secret.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise ConfigError(f"cannot read env file {path}: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(f"env file {path} is not UTF-8 text (byte {problem.start})") from problem
    return _pairs(text, path)


def _pairs(text: str, path: Path) -> dict[str, str]:
    pairs, problems = {}, []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        found = _LINE.fullmatch(stripped)
        if found is None or "\0" in stripped:
            problems.append(f"{path}:{number}: expected NAME=VALUE")
        else:
            pairs[found[1]] = _unquoted(found[2].strip())
    if problems:
        raise ConfigError("\n".join(problems))
    return pairs


def _unquoted(text: str) -> str:
    """
    >>> _unquoted('"a b"'), _unquoted("'"), _unquoted("a'")
    ('a b', "'", "a'")
    """
    is_quoted = len(text) > 1 and text[0] in _QUOTES and text[-1] == text[0]
    return text[1:-1] if is_quoted else text
