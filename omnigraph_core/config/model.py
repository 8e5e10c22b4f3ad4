"""What `omnigraph.yaml` says, as values: paths are whole, names are as written.

Everything may be missing; nothing here has been looked for in the store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Form: TypeAlias = Literal["table", "kv", "csv", "jsonl", "json"]
CellLayout: TypeAlias = Literal["truncate", "wrap"]


@dataclass(frozen=True, slots=True)
class GraphConfig:
    """A graph by name. `uri` is an address or URL; a path in it starts where the file is."""

    uri: str
    bearer_token_env: str | None = None
    policy_file: Path | None = None
    """A policy of its own, in place of the one for all graphs."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    graph: str | None = None
    bind: str | None = None
    cors_origins: tuple[str, ...] = ()
    per_actor_inflight: int | None = None
    """Requests one actor may have under way; None leaves it to the settings."""
    per_actor_bytes: int | None = None
    hides_uris: bool = False
    """Whether answers name a graph by its id in place of its address."""


@dataclass(frozen=True, slots=True)
class CliConfig:
    graph: str | None = None
    branch: str | None = None
    actor: str | None = None
    output_format: Form = "table"
    table_max_column_width: int = 80
    table_cell_layout: CellLayout = "truncate"


@dataclass(frozen=True, slots=True)
class AliasConfig:
    """A query of a file under a name of one's own."""

    name: str
    is_mutation: bool
    query: str
    """The file, as written: looked for where queries are."""
    query_name: str | None = None
    args: tuple[str, ...] = ()
    graph: str | None = None
    branch: str | None = None
    format: Form | None = None


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    file: Path | None = None
    tests: Path | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """The whole file; `path` is None if there is none."""

    path: Path | None = None
    directory: Path | None = None
    """Where relative paths start: beside the file, else the current directory."""
    project_name: str | None = None
    graphs: Mapping[str, GraphConfig] = field(default_factory=dict)
    server: ServerConfig = field(default_factory=ServerConfig)
    cli: CliConfig = field(default_factory=CliConfig)
    query_roots: tuple[Path, ...] = ()
    env_file: Path | None = None
    aliases: Mapping[str, AliasConfig] = field(default_factory=dict)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    warnings: tuple[str, ...] = ()
    """What is in the file and means nothing, a line each."""
