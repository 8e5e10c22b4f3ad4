"""Every snippet of the README and the docs is run.

- `pg`: a schema that compiles; `pg context`: also the schema of the page's later queries.
- `pg-error [CODE…]`: refused, with those codes.
- `gq`: queries that compile against the page's context schema; `gq-error [CODE…]`: refused.
- `console`: `$` lines are run in one scratch copy of examples/, with the `>` lines that go on with
  them; what follows is the exact output (a line `…` stands for any lines, `…` in a line for any
  part of it); `console continued` goes on where the page's block before it has stopped.
- `python`: run as it is in an empty directory, doctests where it has prompts; `python continued`
  goes on where the page's block before it has stopped; `python alone` and what continues it has a
  process of its own, as a page that opens a Spark session needs.
- `sh`: only `make` targets and what a reader types before the project is there.
- `text`, `ebnf`, `json`, `mermaid`: shown, not run; `json` must parse.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import CompileError
from omnigraph_core.ir.compile import compile_file
from omnigraph_core.schema.build import compile_schema
from tests.docs.snippets import ROOT, Snippet, all_snippets, pages, snippets
from tests.integration.cli.process import call_main
from tests.support import warm
from tests.support.cases import each
from tests.support.server import restore_environment

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """A snippet may set variables for itself, not for the tests after it."""
    before = dict(os.environ)
    yield
    restore_environment(before)


SHOWN = {"text", "ebnf", "json", "mermaid"}
RUN = {"pg", "pg-error", "gq", "gq-error", "console", "python", "sh"}
OWN_PROCESS = re.compile(r" serve\b|--engine\b")
"""Commands that become another one, or start Spark."""
SH_LINE = re.compile(r"git clone \S+|cd \w+|make [a-z-]+( +#.*)?|#.*|")


def of(*languages: str) -> list[Snippet]:
    return [snippet for snippet in all_snippets() if snippet.language in languages]


def context_of(snippet: Snippet) -> str:
    """The schema the page declares as context above a snippet."""
    earlier = [
        other
        for other in snippets(ROOT / snippet.page)
        if other.line < snippet.line and other.arguments[:1] == ("context",)
    ]
    assert earlier, f"{snippet}: no `pg context` block above it"
    return earlier[-1].text


def codes(refused: CompileError) -> set[str]:
    return {item.code for item in refused.diagnostics}


def test_every_block_has_a_known_language() -> None:
    unknown = [str(s) for s in all_snippets() if s.language not in SHOWN | RUN]
    assert unknown == []
    assert len(pages()) > 5


@each("snippet", of("pg"), ids=str)
def test_schema(snippet: Snippet) -> None:
    catalog = compile_schema(snippet.text, str(snippet))
    assert catalog.nodes or catalog.interfaces or catalog.edges


@each("snippet", of("pg-error"), ids=str)
def test_refused_schema(snippet: Snippet) -> None:
    with pytest.raises(CompileError) as refused:
        compile_schema(snippet.text, str(snippet))
    assert set(snippet.arguments) <= codes(refused.value)


@each("snippet", of("gq"), ids=str)
def test_queries(snippet: Snippet) -> None:
    catalog = compile_schema(context_of(snippet))
    assert compile_file(snippet.text, catalog, str(snippet))


@each("snippet", of("gq-error"), ids=str)
def test_refused_queries(snippet: Snippet) -> None:
    catalog = compile_schema(context_of(snippet))
    with pytest.raises(CompileError) as refused:
        compile_file(snippet.text, catalog, str(snippet))
    assert set(snippet.arguments) <= codes(refused.value)


def chains(language: str) -> list[list[Snippet]]:
    """Blocks of a language, each with those that continue it."""
    found: list[list[Snippet]] = []
    for snippet in of(language):
        if snippet.arguments == ("continued",):
            assert found, f"{snippet}: nothing to continue"
            assert found[-1][0].page == snippet.page, f"{snippet}: nothing to continue"
            found[-1].append(snippet)
        else:
            found.append([snippet])
    return found


def programs(language: str) -> list[Any]:
    """Those that start a Spark of their own are left to the long run."""
    marks = [pytest.mark.long("tests/integration/spark makes the same calls in one session")]
    return [
        pytest.param(chain, id=str(chain[0]), marks=marks if _starts_spark(chain) else ())
        for chain in chains(language)
    ]


def _starts_spark(chain: list[Snippet]) -> bool:
    return chain[0].arguments == ("alone",) or any("--engine spark" in part.text for part in chain)


@pytest.mark.parametrize("program", programs("python"))
def test_python(program: list[Snippet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if program[0].arguments == ("alone",):
        run_alone(program, tmp_path)
    else:
        monkeypatch.chdir(tmp_path)
        run_python(program)


def run_alone(program: list[Snippet], folder: Path) -> None:
    code = "import sys; from tests.docs.test_snippets import chains, run_python; "
    code += "run_python(next(p for p in chains('python') if str(p[0]) == sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(program[0])],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run_python(program: list[Snippet]) -> None:
    names: dict[str, Any] = {}
    for snippet in program:
        test = doctest.DocTestParser().get_doctest(snippet.text, names, str(snippet), None, 0)
        if test.examples:
            flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            runner = doctest.DocTestRunner(optionflags=flags)
            assert runner.run(test, clear_globs=False).failed == 0
            names = test.globs
        else:
            exec(compile(snippet.text, str(snippet), "exec"), names)


@pytest.mark.parametrize("session", programs("console"))
def test_console(session: list[Snippet], tmp_path: Path, shell_environment: dict[str, str]) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for command, expected in (step for snippet in session for step in steps(snippet.text)):
        shown = run(command, tmp_path, shell_environment)
        pattern = "".join(map(line_pattern, expected.splitlines(keepends=True)))
        assert re.fullmatch(pattern, shown), f"{command}\n{shown}"


def line_pattern(line: str) -> str:
    return r"(?:.*\n)*?" if line == "…\n" else re.escape(line).replace("…", ".*")


def steps(text: str) -> list[tuple[str, str]]:
    """(command, expected output) pairs of a console block."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].strip(), ""))
        elif line.startswith((">\n", "> ")) and not found[-1][1]:
            command, _ = found.pop()
            found.append((f"{command}\n{line[2:].rstrip()}", ""))
        else:
            command, output = found.pop()
            found.append((command, output + line))
    return found


ENVIRONMENT = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "COLUMNS": "100"}


@pytest.fixture(scope="module")
def shell_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """That of a shell whose `omnigraph` is loaded already: each start would take a second."""
    commands = tmp_path_factory.mktemp("commands")
    asked = warm.shell_command("omnigraph_core.cli.main:main", commands / "omnigraph")
    return ENVIRONMENT | asked | {"PATH": f"{commands}:{ENVIRONMENT['PATH']}"}


def needs_no_shell(command: str) -> bool:
    """Whether it is a command of ours alone: most are, and a process for each takes minutes."""
    unquoted = re.sub(r"'[^']*'", "", command)
    is_ours = command.startswith("omnigraph ") and re.fullmatch(r'[\w\s./:=,@%+"-]*', unquoted)
    return bool(is_ours) and not OWN_PROCESS.search(command)


def run(command: str, folder: Path, shell_environment: dict[str, str]) -> str:
    """Output of a shell command, both streams as a terminal shows them."""
    if needs_no_shell(command):
        with tempfile.TemporaryFile() as screen, Path(os.devnull).open() as nothing:
            streams = (nothing.fileno(), screen.fileno(), screen.fileno())
            arguments = shlex.split(command)[1:]
            call_main(*arguments, folder=folder, environment=ENVIRONMENT, streams=streams)
            screen.seek(0)
            return screen.read().decode()
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=ENVIRONMENT if OWN_PROCESS.search(command) else shell_environment,
        close_fds=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


@each("snippet", of("sh"), ids=str)
def test_shell_blocks_name_real_targets(snippet: Snippet) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in snippet.text.splitlines():
        assert SH_LINE.fullmatch(line), f"{snippet}: cannot run {line!r}"
        if line.startswith("make "):
            assert line.split()[1] in targets


@each("snippet", of("json"), ids=str)
def test_json_blocks_parse(snippet: Snippet) -> None:
    assert json.loads(snippet.text)
