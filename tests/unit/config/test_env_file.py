from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.config.env_file import adopt_env_file, read_env_file
from omnigraph_core.config.model import Config
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\ufeff
# tokens
PLAIN=a b # c
export EXPORTED = x=y
 SINGLE='it''s'
DOUBLE="two words"
HALF="open
EMPTY=
export\tTAB=1
"""


def test_lines(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(TEXT)
    assert read_env_file(tmp_path / "env") == {
        "PLAIN": "a b # c",
        "EXPORTED": "x=y",
        "SINGLE": "it''s",
        "DOUBLE": "two words",
        "HALF": '"open',
        "EMPTY": "",
        "TAB": "1",
    }


def test_wrong_lines_are_told_without_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text("A=1\nsecret\n1B=secret\n\n-C=secret\n")
    with pytest.raises(ConfigError) as refused:
        read_env_file(path)
    assert refused.value.message.splitlines() == [
        f"{path}:{line}: expected NAME=VALUE" for line in (2, 3, 5)
    ]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read env file"):
        read_env_file(tmp_path)
    (tmp_path / "env").write_bytes(b"A=\xe4")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_env_file(tmp_path / "env")


def test_what_is_set_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOCK_TAKEN", "outside")
    monkeypatch.setenv("STOCK_FREE", "")
    monkeypatch.delenv("STOCK_FREE")
    (tmp_path / "env").write_text("STOCK_TAKEN=file\nSTOCK_FREE=file\n")
    adopt_env_file(Config(env_file=tmp_path / "env"))
    assert (os.environ["STOCK_TAKEN"], os.environ["STOCK_FREE"]) == ("outside", "file")
    adopt_env_file(Config(env_file=tmp_path / "none"))  # need not be there
    adopt_env_file(Config())
