from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typer

from omnigraph_core.cli.params import read_params
from omnigraph_core.errors import ConfigError
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path


def test_text_or_file_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "params.json"
    path.write_bytes(b'\xef\xbb\xbf{"sku": "M\xc3\xbc"}')
    assert read_params(None, None) == {}
    assert read_params('{"n": 9007199254740993, "x": null}', None) == {
        "n": 9007199254740993,
        "x": None,
    }
    assert read_params(None, path) == {"sku": "Mü"}
    with pytest.raises(typer.BadParameter, match="exclude each other"):
        read_params("{}", path)


@each(
    ("text", "message"),
    [
        ("", "--params: expected a JSON object: Expecting value"),
        ("[1]", r"--params: expected a JSON object, found \[1\]"),
        ('"' + "x" * 50 + '"', 'found "x{39}…'),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ('{"a": 1, "b": 2, "a": 3}', "`a` is given twice"),
        ('{"a": {"b": 1, "b": 1}}', "`b` is given twice"),
        ('{"a": ' + "[" * 100_000, "--params: nested too deeply"),
        ('{"a": ' + "1" * 5000 + "}", "--params: expected a JSON object"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_params(text, None)
