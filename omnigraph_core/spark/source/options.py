"""The options of the data source: texts as Spark hands them over come in, checked values go out.

Everything that is wrong with the options is told at once, before anything is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.errors import ConfigError
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.storage.uri import normal_address
from omnigraph_core.write.embed import EmbedMode
from omnigraph_core.write.load_model import LoadMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.engine.omnigraph import Omnigraph

DEFAULT_ROWS: Final = 1 << 19
"""Rows of a partition: a task should have some seconds of work."""

_GRAPH: Final = ("graph", "path", "type", "actor", "policy")
_READING: Final = (
    *_GRAPH,
    "rows_per_partition",
    "branch",
    "commit",
    "tag",
    "version",
    "columns",
    "where",
)
_WRITING: Final = (*_GRAPH, "branch", "mode", "embed", "idempotency_key", "if_commit")
_RESOURCE: Final = "default"
"""What policy calls the graph where no configuration names it."""


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """Which graph, and as whom."""

    address: str
    actor: str | None = None
    policy: Path | None = None

    def open(self) -> Omnigraph:
        """
        Raises:
            GraphNotFound: there is none at that address.
            ConfigError: the policy is wrong.
        """
        # Here, because options travel to executors, which have no use for these.
        from omnigraph_core.engine.omnigraph import Omnigraph
        from omnigraph_core.policy.source import PolicyFile

        judge = None if self.policy is None else PolicyFile(self.policy, _RESOURCE)
        return Omnigraph.open(self.address, policy=judge, actor=self.actor)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read: a type at a branch, at a version of it, at a commit or at a tag."""

    graph: GraphOptions
    type_name: str
    branch: str | None = None
    commit: str | None = None
    tag: str | None = None
    version: int | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    rows_per_partition: int = DEFAULT_ROWS


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where rows go, and how."""

    graph: GraphOptions
    type_name: str
    branch: str
    mode: LoadMode
    embed: EmbedMode
    idempotency_key: str | None = None
    if_commit: str | None = None


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """
    Raises:
        ConfigError: every option that is missing, unknown or wrong.
    """
    problems = _Problems(given, _READING)
    graph, type_name = problems.graph(), problems.required("type")
    named = [name for name in ("branch", "commit", "tag") if problems.text(name) is not None]
    if len(named) > 1:
        problems.add(f"`{'`, `'.join(named)}`: give one of them")
    version = problems.count("version")
    if version is not None and named not in ([], ["branch"]):
        problems.add(f"`version` is one of a branch: leave `{'`, `'.join(named)}` out")
    columns = problems.text("columns")
    names = None if columns is None else tuple(name.strip() for name in columns.split(","))
    rows = problems.count("rows_per_partition")
    problems.settle()
    return ReadOptions(
        graph,
        type_name,
        branch=problems.text("branch"),
        commit=problems.text("commit"),
        tag=problems.text("tag"),
        version=version,
        columns=names,
        where=problems.text("where"),
        rows_per_partition=DEFAULT_ROWS if rows is None else rows,
    )


def write_options(given: Mapping[str, str], *, is_overwriting: bool) -> WriteOptions:
    """
    Args:
        is_overwriting: Spark's own save mode is to overwrite.

    Raises:
        ConfigError: every option that is missing, unknown or wrong.
    """
    problems = _Problems(given, _WRITING)
    graph, type_name = problems.graph(), problems.required("type")
    usual = LoadMode.OVERWRITE if is_overwriting else LoadMode.APPEND
    mode = problems.one_of("mode", tuple(LoadMode), usual)
    if is_overwriting and mode != LoadMode.OVERWRITE:
        problems.add(f'.mode("overwrite") replaces all rows: it does not go with mode={mode}')
    embed = problems.one_of("embed", tuple(EmbedMode), EmbedMode.NOW)
    problems.settle()
    return WriteOptions(
        graph,
        type_name,
        branch=problems.text("branch") or MAIN,
        mode=LoadMode(mode),
        embed=EmbedMode(embed),
        idempotency_key=problems.text("idempotency_key"),
        if_commit=problems.text("if_commit"),
    )


class _Problems:
    """Reads options and gathers what is wrong with them."""

    def __init__(self, given: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._given = {name.lower(): text for name, text in given.items()}
        self._found: list[str] = []
        for name in sorted(self._given.keys() - set(known)):
            hint = did_you_mean(name, known)
            self.add(f"unknown option `{name}`" + (f": {hint}" if hint else ""))

    def add(self, problem: str) -> None:
        self._found.append(problem)

    def settle(self) -> None:
        if self._found:
            raise ConfigError("; ".join(self._found), hint="see the reference of the data source")

    def text(self, name: str) -> str | None:
        return self._given.get(name)

    def required(self, name: str) -> str:
        found = self._given.get(name)
        if not found:
            self.add(f"option `{name}` is missing")
        return found or ""

    def graph(self) -> GraphOptions:
        """`path` is what `load(address)` and `save(address)` give."""
        if "graph" in self._given and "path" in self._given:
            self.add("`graph`, `path`: give one of them")
        address = self._given.get("path") or self.required("graph")
        policy = self.text("policy")
        return GraphOptions(
            # Executors work in directories of their own.
            normal_address(address) if address else "",
            self.text("actor"),
            None if policy is None else Path(policy).absolute(),
        )

    def count(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if not text.isascii() or not text.isdigit() or not int(text):
            self.add(f"`{name}` is a number from 1 up, not {text!r}")
            return None
        return int(text)

    def one_of(self, name: str, known: tuple[str, ...], usual: str) -> str:
        text = self.text(name)
        if text is None or text in known:
            return text or usual
        self.add(f"`{name}` is one of {', '.join(known)}, not {text!r}")
        return usual
