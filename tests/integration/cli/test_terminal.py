"""What a person at a terminal sees and is asked; scripts see the same words without either."""

from __future__ import annotations

import os
import pty
import termios
from typing import TYPE_CHECKING, TypeAlias

import pytest

from omnigraph_core.settings import PUBLISH_LEASE
from tests.integration.cli.conftest import SCHEMA
from tests.integration.cli.process import call_main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

Typed: TypeAlias = "Callable[..., tuple[int, str]]"

BIN = b'{"type":"Bin","data":{"code":"B2"}}'


@pytest.fixture
def typed(folder: Path) -> Typed:
    """Run a command on a terminal where somebody has typed an answer; exit code and screen."""

    def run(answer: str, *arguments: object) -> tuple[int, str]:
        master, slave = pty.openpty()
        show_no_keys(slave)
        try:
            os.write(master, answer.encode())
            code = call_main(
                *arguments, folder=folder, environment=dict(os.environ), streams=(slave,) * 3
            )
        finally:
            os.close(slave)
            screen = everything(master)
            os.close(master)
        return code, screen.replace("\r\n", "\n")

    return run


def show_no_keys(slave: int) -> None:
    modes = termios.tcgetattr(slave)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, modes)


def everything(master: int) -> str:
    """What was written to a terminal that is closed now."""
    found = b""
    while True:
        try:
            found += os.read(master, 2**16)
        except OSError:  # how Linux says that nobody has it open any more
            return found.decode()


def test_a_branch_goes_after_a_yes(typed: Typed, full: Omnigraph) -> None:
    full.branch_create("review")
    question = "delete branch review of stock? [y/N] "
    for no in ("n\n", "\n", "nonsense\n", "\x04"):
        code, screen = typed(no, "branch", "delete", "review", "stock")
        assert (code, screen.split()) == (1, f"{question} nothing was changed".split())
    assert full.branch_list() == ("main", "review")
    code, screen = typed("Yes\n", "branch", "delete", "review", "stock")
    assert (code, screen) == (0, f"{question}deleted branch review\n")
    full.branch_create("review")
    assert typed("", "branch", "delete", "review", "stock", "-y") == (0, "deleted branch review\n")


def test_tags_and_runs(typed: Typed, full: Omnigraph) -> None:
    full.tag_create("v1")
    run = full.begin_run()
    assert typed("n\n", "tag", "delete", "v1", "stock")[0] == 1
    assert typed("n\n", "run", "abort", run.run_id, "stock")[0] == 1
    assert (len(full.tag_list()), full.get_run(run.run_id).status) == (1, "running")
    assert typed("n\n", "run", "fail", run.run_id, "stock")[0] == 1
    assert full.get_run(run.run_id).status == "running"
    assert typed("y\n", "tag", "delete", "v1", "stock")[0] == 0
    assert typed("y\n", "run", "abort", run.run_id, "stock")[0] == 0
    assert (full.tag_list(), full.get_run(run.run_id).status) == ((), "aborted")
    run = full.begin_run()
    code, screen = typed("y\n", "run", "fail", run.run_id, "stock")
    question = f"record run {run.run_id} as failed and drop what it has written? [y/N] "
    assert (code, screen.startswith(f"{question}run_id: ")) == (0, True)
    run = full.begin_run()
    assert "[y/N]" not in typed("", "run", "fail", run.run_id, "stock", "--yes")[1]
    assert full.get_run(run.run_id).status == "failed"


def test_a_merge_that_deletes(typed: Typed, full: Omnigraph) -> None:
    full.branch_create("review")
    full.load(BIN, mode="merge", branch="review")
    before = full.snapshot()
    arguments = ("branch", "merge", "review", "stock", "--delete-branch")
    assert typed("n\n", *arguments)[0] == 1
    assert typed("", *arguments, "--dry-run")[0] == 0
    assert (full.snapshot(), full.branch_list()) == (before, ("main", "review"))
    code, screen = typed("y\n", *arguments)
    assert code == 0
    assert screen.startswith("merge review into main and delete review? [y/N] merged review")
    assert full.branch_list() == ("main",)


def test_a_reset_is_shown_and_then_asked_for(typed: Typed, full: Omnigraph) -> None:
    first = full.list_commits()[-1].graph_commit_id
    arguments = ("branch", "reset", "main", "stock", "--to", first)
    code, screen = typed("n\n", *arguments)
    assert code == 0
    assert "node:Part +0 ~0 -2\nreset branch main? [y/N] nothing was changed" in screen
    assert "[y/N]" not in typed("", *arguments, "--json")[1]
    assert full.snapshot().table("node:Part").row_count == 2
    code, screen = typed("y\n", *arguments)
    assert f"[y/N] reset branch main to {first}\n" in screen
    assert full.snapshot().table("node:Part").row_count == 0


def test_cleanup_shows_and_then_asks(
    typed: Typed, full: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PUBLISH_LEASE.name, "0.0001")
    arguments = ("cleanup", "stock", "--keep", "1")
    code, screen = typed("n\n", *arguments)
    assert code == 0
    assert screen.startswith("would remove 0 versions")
    assert screen.endswith(
        "remove them? [y/N] nothing was removed: repeat with --confirm to do so\n"
    )
    code, screen = typed("y\n", *arguments)
    assert "remove them? [y/N] removed 0 versions" in screen
    assert typed("", *arguments, "--yes")[1].startswith("removed 0 versions")


def test_data_that_goes_with_a_schema(typed: Typed, folder: Path, full: Omnigraph) -> None:
    less = SCHEMA.replace("  price: F64?\n", "").replace("  @range(price, 0..)\n", "")
    (folder / "less.pg").write_text(less)
    arguments = ("schema", "apply", "stock", "--allow-data-loss", "--schema")
    code, screen = typed("n\n", *arguments, "less.pg")
    assert code == 1
    assert screen.startswith("- drop_property node:Part.price mode=hard")
    assert "take this away from main for good? [y/N] nothing was changed" in screen
    assert full.schema_show().source == SCHEMA
    (folder / "more.pg").write_text(f"{SCHEMA}\nnode Site {{ code: String @key }}\n")
    assert "[y/N]" not in typed("", *arguments, "more.pg")[1]
    assert typed("y\n", *arguments, "less.pg")[0] == 0
    assert full.schema_show().source == less


def test_colours(typed: Typed, full: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> None:
    full.branch_create("review")
    full.load(BIN, mode="merge", branch="review")
    full.mutate('query less() { delete Part where sku = "M8" }', branch="review")
    diff = ("branch", "diff", "main..review", "stock", "--no-values")
    screen = typed("", *diff)[1]
    assert "\x1b[32m+ Bin B2\x1b[0m\n" in screen
    assert "\x1b[31m- Part M8\x1b[0m\n" in screen
    graph = typed("", "commit", "graph", "stock")[1]
    assert graph.startswith("\x1b[34m●\x1b[0m \x1b[1m01")
    assert typed("", "branch", "delete", "main", "stock", "-y")[1].startswith(
        "\x1b[31merror:\x1b[0m"
    )
    monkeypatch.setenv("NO_COLOR", "1")
    for arguments in (
        diff,
        ("commit", "graph", "stock"),
        ("branch", "delete", "main", "-y", "stock"),
    ):
        assert "\x1b[" not in typed("", *arguments)[1]
