"""One platform with all its processes for the tests of this folder.

Its daemon is never idle, so it lives no longer than they need it: what takes long is begun early,
and pages are looked at meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.docs.snippets import ROOT, snippets
from tests.support.live_platform import LivePlatform, until

if TYPE_CHECKING:
    from collections.abc import Iterator

_DERIVED: Final = ("river/embeddings/Note.embedding", "river/indexes/Note", "river/topology")


@pytest.fixture(scope="package")
def live_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePlatform]:
    with LivePlatform(tmp_path_factory.mktemp("live")) as platform:
        yield platform


@pytest.fixture(scope="package")
def evening(live_platform: LivePlatform) -> Evening:
    """The file that the README drops by hand, on its way."""
    return Evening(live_platform)


class Evening:
    """What the README does under `make up`: a question without an answer, a file, the answer."""

    def __init__(self, platform: LivePlatform) -> None:
        self._platform = platform
        self._before = platform.materialised(*_DERIVED)
        assert all(self._before.values())
        drop, (self._question, *self.answer) = (block.splitlines() for block in flow(platform))
        assert self.ask() == self.answer[:1], "only the names of the columns"
        assert run("\n".join(drop)) == []

    def ask(self) -> list[str]:
        """What the question of the README finds now."""
        return run(self._question)

    def wait_until_put_away(self) -> None:
        until(
            (self._platform.directory / "drops/_loaded/main/evening.jsonl").exists, "the file to go"
        )

    def wait_until_enriched(self) -> None:
        until(
            lambda: all(
                now > self._before[key]
                for key, now in self._platform.materialised(*_DERIVED).items()
            ),
            "the note to be enriched",
        )


def flow(platform: LivePlatform) -> list[str]:
    """What the README shows under `make up`, for the platform of the tests."""
    return [
        snippet.text.replace("build/platform", str(platform.directory))
        .replace("http://127.0.0.1:8080", platform.server_url)
        .replace(".venv/bin/omnigraph", str(Path(sys.executable).parent / "omnigraph"))
        for snippet in snippets(ROOT / "README.md")
        if snippet.language == "text"
    ]


def run(script: str) -> list[str]:
    done = subprocess.run(
        ["bash", "-ec", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
