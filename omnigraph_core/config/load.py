"""`omnigraph.yaml` as values: a file comes in, a `Config` goes out.

Paths become whole from the directory of the file. Every problem is told at once, with its line;
names that mean nothing are warnings, so that a file for a later release can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

import yaml

from omnigraph_core.config.model import (
    AliasConfig,
    CellLayout,
    CliConfig,
    Config,
    Form,
    GraphConfig,
    PolicyConfig,
    ServerConfig,
)
from omnigraph_core.config.reader import Findings, Section, is_nothing
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_COMMANDS: Final = {"read": False, "query": False, "change": True, "mutate": True}
"""What an alias may run, and whether it is a mutation."""


def load_config(path: Path) -> Config:
    """
    Raises:
        ConfigError: the file cannot be read or is wrong; tells every problem.
    """
    file = path.absolute()
    findings = Findings(path)
    node = _parse(_read(file, path), path)
    whole = Section(node, node, "", findings) if node is not None else None
    config = Config(file, file.parent) if whole is None else _config(whole, file, findings)
    if findings.problems:
        raise ConfigError("\n".join(findings.told(findings.problems)))
    return config


def _read(file: Path, shown: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise ConfigError(
            f"cannot read configuration file {shown}: {problem.strerror}"
        ) from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(
            f"configuration file {shown} is not UTF-8 text (byte {problem.start})",
            hint="save it as UTF-8",
        ) from problem


def _parse(text: str, path: Path) -> yaml.Node | None:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as problem:
        line = "" if problem.problem_mark is None else f":{problem.problem_mark.line + 1}"
        raise ConfigError(f"{path}{line}: not YAML: {problem.problem}") from problem
    except yaml.YAMLError as problem:
        raise ConfigError(f"{path}: not YAML: {problem}") from problem
    except RecursionError as problem:
        raise ConfigError(f"{path}: nested too deeply") from problem
    return None if node is None or is_nothing(node) else node


def _config(whole: Section, file: Path, findings: Findings) -> Config:
    directory = file.parent
    project, query, auth = (whole.section(name) for name in ("project", "query", "auth"))
    project_name = project.text("name")
    roots = tuple(directory / root for root in query.texts("roots"))
    env_file = _path(auth, "env_file", directory)
    graphs, server, cli = _graphs(whole, directory), _server(whole), _cli(whole)
    aliases, policy = _aliases(whole), _policy(whole, directory)
    for section in (whole, project, query, auth):
        section.finish()
    return Config(
        path=file,
        directory=directory,
        project_name=project_name,
        graphs=graphs,
        server=server,
        cli=cli,
        query_roots=roots,
        env_file=env_file,
        aliases=aliases,
        policy=policy,
        warnings=tuple(findings.told(findings.warnings)),
    )


def _graphs(whole: Section, directory: Path) -> dict[str, GraphConfig]:
    """`targets` is the old name of the section; both may be there."""
    named = [*whole.section("graphs").sections(), *whole.section("targets").sections()]
    graphs: dict[str, GraphConfig] = {}
    for name, section in named:
        if name in graphs:
            section.refuse("uri", f"is given in `graphs` and in `targets`: `{name}`")
        graphs[name] = _graph(section, directory)
    return graphs


def _graph(section: Section, directory: Path) -> GraphConfig:
    uri = section.text("uri")
    if uri is None:
        section.refuse("uri", "is missing: the address of the graph")
    own = section.section("policy")
    graph = GraphConfig(
        uri=_address(uri or "", directory),
        bearer_token_env=section.text("bearer_token_env"),
        policy_file=_path(own, "file", directory),
    )
    own.finish()
    section.finish()
    return graph


def _address(uri: str, directory: Path) -> str:
    return uri if "://" in uri else str(directory / uri)


def _server(whole: Section) -> ServerConfig:
    section = whole.section("server")
    server = ServerConfig(
        graph=section.text("graph"),
        bind=section.text("bind"),
        cors_origins=section.texts("cors_origins"),
        per_actor_inflight=section.count("per_actor_inflight"),
        per_actor_bytes=section.count("per_actor_bytes"),
        hides_uris=section.switch("hides_uris"),
    )
    section.finish()
    return server


def _cli(whole: Section) -> CliConfig:
    section = whole.section("cli")
    usual = CliConfig()
    layout = section.choice("table_cell_layout", get_args(CellLayout))
    cli = CliConfig(
        graph=section.text("graph"),
        branch=section.text("branch"),
        actor=section.text("actor"),
        output_format=section.choice("output_format", get_args(Form)) or usual.output_format,
        table_max_column_width=section.count("table_max_column_width")
        or usual.table_max_column_width,
        table_cell_layout=layout or usual.table_cell_layout,
    )
    section.finish()
    return cli


def _aliases(whole: Section) -> dict[str, AliasConfig]:
    return {name: _alias(name, section) for name, section in whole.section("aliases").sections()}


def _alias(name: str, section: Section) -> AliasConfig:
    command, query = section.choice("command", tuple(_COMMANDS)), section.text("query")
    for member, about in (("command", "read or change"), ("query", "a file with queries")):
        if not section.has(member):
            section.refuse(member, f"is missing: {about}")
    is_mutation = _COMMANDS.get(command or "read", False)
    alias = AliasConfig(
        name=name,
        is_mutation=is_mutation,
        query=query or "",
        query_name=section.text("name"),
        args=section.texts("args"),
        graph=section.text("graph"),
        branch=section.text("branch"),
        format=None if is_mutation else section.choice("format", get_args(Form)),
    )
    section.finish()
    return alias


def _policy(whole: Section, directory: Path) -> PolicyConfig:
    section = whole.section("policy")
    policy = PolicyConfig(_path(section, "file", directory), _path(section, "tests", directory))
    section.finish()
    return policy


def _path(section: Section, name: str, directory: Path) -> Path | None:
    text = section.text(name)
    return None if text is None else directory / text
