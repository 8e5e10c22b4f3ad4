"""Where `omnigraph.yaml` is: the file that was named, or the nearest one above.

A file above the current directory counts only if nobody else can have put it there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from omnigraph_core.config.model import Config

NAME: Final = "omnigraph.yaml"


def find_config(path: Path | None = None) -> Config:
    """
    Raises:
        ConfigError: the named file is missing, or the file is wrong; tells every problem.
    """
    here = _current_directory()
    found = path or (here and nearest(here))
    if found is None:
        return Config(directory=here)
    from omnigraph_core.config.load import load_config  # slow: reads YAML

    return load_config(found)


def _current_directory() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:  # removed meanwhile; addresses may be whole all the same
        return None


def nearest(directory: Path) -> Path | None:
    """The file in a directory, else in the nearest directory above that has one of ours."""
    if (directory / NAME).is_file():
        return directory / NAME
    return next(filter(_is_ours, (above / NAME for above in directory.parents)), None)


def _is_ours(path: Path) -> bool:
    """Whether a file further up was put there by whoever runs this, or by the administrator.

    In /tmp anybody could leave one, and send commands and tokens wherever they like.
    """
    try:
        file, directory = path.stat(), path.parent.stat()
    except OSError:
        return False
    is_shared = bool(directory.st_mode & stat.S_IWOTH)
    return stat.S_ISREG(file.st_mode) and not is_shared and file.st_uid in (0, _user(file.st_uid))


def _user(owner: int) -> int:
    return os.getuid() if hasattr(os, "getuid") else owner
