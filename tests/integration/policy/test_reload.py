"""A policy in a file that changes under a running process."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.policy.model import Action, Request
from omnigraph_core.policy.source import PolicyFile

if TYPE_CHECKING:
    from pathlib import Path

ASKED = Request("ada", Action.READ)


def rules(*actions: str, extra: str = "") -> str:
    allow = f"{{ actors: {{ group: team }}, actions: [{', '.join(actions)}] }}"
    return (
        f"version: 1\n{extra}groups: {{ team: [ada] }}\nrules:\n  - {{ id: r, allow: {allow} }}\n"
    )


def replaced(path: Path, text: str) -> None:
    """As editors and deployments do it: another file takes the name."""
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(rules("read"))
    return path


def test_a_changed_file_is_in_force_at_once(path: Path) -> None:
    judge = PolicyFile(path, "graph", look_every=0)
    assert judge.decide(ASKED).is_allowed
    replaced(path, rules("change"))
    assert not judge.decide(ASKED).is_allowed
    assert judge.document.rules[0].actions == (Action.CHANGE,)


def test_the_file_is_not_looked_at_all_the_time(path: Path) -> None:
    judge = PolicyFile(path, "graph", look_every=3600)
    replaced(path, rules("change"))
    assert judge.decide(ASKED).is_allowed


def test_a_broken_file_keeps_the_policy_before(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judge = PolicyFile(path, "graph", look_every=0)
    for broken in (lambda: replaced(path, "version: 2"), path.unlink):
        broken()
        assert judge.decide(ASKED).is_allowed
        assert judge.decide(ASKED).is_allowed
    messages = [item.getMessage() for item in caplog.records if item.levelno == logging.ERROR]
    assert messages == [  # once each, however often it is looked at
        f"the policy before stays in force: {path}:1: unsupported policy version 2, expected 1",
        f"the policy before stays in force: cannot read the policy file {path}: "
        "No such file or directory",
    ]
    replaced(path, rules("change"))
    assert not judge.decide(ASKED).is_allowed


def test_a_broken_file_is_refused_at_the_start(path: Path, tmp_path: Path) -> None:
    path.write_text("version: 1\nrules: 7")
    with pytest.raises(ConfigError, match="`rules` must be a list"):
        PolicyFile(path, "graph")
    with pytest.raises(ConfigError, match="No such file"):
        PolicyFile(tmp_path / "none.yaml", "graph")


def test_warnings_are_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text(rules("read", extra="owner: ada\n"))
    PolicyFile(path, "graph")
    assert caplog.messages == [f"{path}:2: the policy has an unknown key `owner` that is ignored"]


def test_threads_see_one_policy_or_the_other(path: Path) -> None:
    judge = PolicyFile(path, "graph", look_every=0)
    answers: set[tuple[bool, bool]] = set()
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            document = judge.document
            answers.add(
                (len(document.rules) == 1, judge.decide(ASKED).message.startswith("policy"))
            )

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(20):
        replaced(path, rules("read" if turn % 2 else "change"))
    is_over.set()
    for thread in threads:
        thread.join()
    assert answers == {(True, True)}
    assert judge.decide(ASKED).is_allowed
