"""Options as Spark hands them over: everything wrong is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.spark.source.options import (
    DEFAULT_ROWS,
    GraphOptions,
    ReadOptions,
    read_options,
    write_options,
)
from omnigraph_core.write.embed import EmbedMode
from omnigraph_core.write.load_model import LoadMode
from tests.support.cases import each


def test_reading() -> None:
    found = read_options({"graph": "/g/", "TYPE": "Person"})
    assert found == ReadOptions(GraphOptions("/g"), "Person", rows_per_partition=DEFAULT_ROWS)
    found = read_options(
        {
            "path": "s3://lake/g/",
            "type": "edge:Knows",
            "branch": "side",
            "version": "7",
            "columns": "id, src ,dst",
            "where": "`id` > 'k'",
            "rows_per_partition": "10",
            "actor": "ada",
            "policy": "/p.yaml",
        }
    )
    assert found.graph == GraphOptions("s3://lake/g", "ada", Path("/p.yaml"))
    assert (found.branch, found.version, found.rows_per_partition) == ("side", 7, 10)
    assert (found.columns, found.where) == (("id", "src", "dst"), "`id` > 'k'")


def test_relative_addresses_mean_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = read_options({"graph": "g", "type": "Person", "policy": "p.yaml"})
    assert found.graph == GraphOptions(str(tmp_path / "g"), None, tmp_path / "p.yaml")


@each(
    ("given", "problems"),
    [
        ({}, ["option `graph` is missing", "option `type` is missing"]),
        ({"graph": "", "type": ""}, ["option `graph` is missing", "option `type` is missing"]),
        ({"graph": "/g", "path": "/h", "type": "T"}, ["`graph`, `path`: give one of them"]),
        (
            {"graph": "/g", "type": "T", "branch": "b", "commit": "c", "tag": "t"},
            ["`branch`, `commit`, `tag`: give one of them"],
        ),
        (
            {"graph": "/g", "type": "T", "tag": "t", "version": "3"},
            ["`version` is one of a branch: leave `tag` out"],
        ),
        (
            {"graph": "/g", "type": "T", "colums": "id", "mode": "append"},
            ["unknown option `colums`: did you mean `columns`?", "unknown option `mode`"],
        ),
        (
            {"graph": "/g", "type": "T", "version": "-1", "rows_per_partition": "²"},
            [
                "`version` is a number from 1 up, not '-1'",
                "`rows_per_partition` is a number from 1 up, not '²'",
            ],
        ),
    ],
)
def test_what_cannot_be_read(given: dict[str, str], problems: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        read_options(given)
    assert refused.value.message == "; ".join(problems)


def test_writing() -> None:
    given = {"graph": "/g", "type": "Person"}
    found = write_options(given, is_overwriting=False)
    assert (found.branch, found.mode, found.embed) == ("main", LoadMode.APPEND, EmbedMode.NOW)
    assert write_options(given, is_overwriting=True).mode is LoadMode.OVERWRITE
    more = {
        "mode": "merge",
        "embed": "off",
        "branch": "b",
        "idempotency_key": "k",
        "if_commit": "c",
    }
    found = write_options(given | more, is_overwriting=False)
    assert (found.branch, found.mode, found.embed) == ("b", LoadMode.MERGE, EmbedMode.OFF)
    assert (found.idempotency_key, found.if_commit) == ("k", "c")


def test_what_cannot_be_written() -> None:
    given = {"type": "T", "mode": "replace", "embed": "yes", "columns": "id"}
    with pytest.raises(ConfigError) as refused:
        write_options(given, is_overwriting=False)
    assert refused.value.message == (
        "unknown option `columns`; option `graph` is missing; "
        "`mode` is one of overwrite, append, merge, not 'replace'; "
        "`embed` is one of now, defer, off, not 'yes'"
    )
    with pytest.raises(ConfigError, match="does not go with mode=append"):
        write_options({"graph": "/g", "type": "T", "mode": "append"}, is_overwriting=True)
