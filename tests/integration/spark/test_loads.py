"""Loads by Spark are loads: same rows and same reports on this machine, a cluster and Connect."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa
import pytest
from pyarrow import parquet

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.spark.conftest import NOT_ON_THE_CLUSTER, ON_CLUSTERS, ON_THIS_MACHINE
from tests.support import spark_loads
from tests.support.load_worlds import SCHEMA, content, outcome, records
from tests.support.s3 import s3_store
from tests.support.spark_cluster import kill_an_executor
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.integration.spark.conftest import Mortal
    from tests.support.s3 import S3Server
    from tests.support.spark import Driver


KILLED_UNDER = 24_000
"""Rows of a load that lasts long enough for a process to be killed in its midst."""


def part(number: int) -> str:
    return json.dumps({"type": "Part", "data": {"sku": f"p{number}", "stock": number % 50}})


@NOT_ON_THE_CLUSTER
def test_what_loads_find_does_not_depend_on_where_they_run(driver: Driver, tmp_path: Path) -> None:
    rng = random.Random(7)
    whole = Omnigraph.init(str(tmp_path / "whole"), SCHEMA)
    Omnigraph.init(str(tmp_path / "spread"), SCHEMA).close()
    for step, (mode, bad) in enumerate([("append", 0.0), ("merge", 0.1), ("merge", 0.0)]):
        data = tmp_path / f"{step}.jsonl"
        data.write_text("\n".join(records(rng, 60, bad)))
        expected = outcome(lambda data=data, mode=mode: whole.load(str(data), mode=mode))
        found = driver.call(
            spark_loads.load_in_parts, str(tmp_path / "spread"), [str(data)], mode, 2_000
        )
        assert found == json.loads(json.dumps(expected))
    assert content(Omnigraph.open(str(tmp_path / "spread"))) == content(whole)


@ON_THIS_MACHINE
def test_a_load_reports_its_jobs(driver: Driver, tmp_path: Path) -> None:
    """What its tasks wrote is what lies there, however often Spark had to begin."""
    data = tmp_path / "parts.jsonl"
    data.write_text("\n".join(part(number) for number in range(300)))
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    report = driver.call(spark_loads.reported_load, graph.uri, str(data))
    assert [job["name"] for job in report["jobs"]] == ["read and check records", "compare keys"]
    reading, comparing = report["jobs"]
    files = list((tmp_path / "graph").glob("nodes/**/data/*.lance"))
    assert (reading["rows"], reading["files"]) == (300, len(files))
    assert reading["bytes"] == sum(path.stat().st_size for path in files)
    assert (comparing["rows"], comparing["files"]) == (0, 0)
    for job in report["jobs"]:
        assert job["seconds"] > 0
        assert job["shuffle_bytes"] > 0
        assert job["spilled_bytes"] == 0
        assert job["failed_tasks"] == (None if driver.name == "connect" else 0)


@ON_THIS_MACHINE
def test_files_of_every_kind_are_loaded_together(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    lines = tmp_path / "parts.jsonl"
    lines.write_text("\n".join(part(number) for number in range(40)))
    packed = tmp_path / "more.jsonl.gz"
    packed.write_bytes(gzip.compress("\n".join(part(n) for n in range(40, 60)).encode()))
    spread = tmp_path / "spread.json"
    spread.write_text(json.dumps([json.loads(part(n)) for n in range(60, 70)], indent=1))
    rows = tmp_path / "nodes" / "Bin.parquet"
    labels = [f"b{number}" for number in range(30)]
    parquet.write_table(pa.table({"label": labels}), rows, row_group_size=7)
    text = tmp_path / "Note.csv"
    text.write_text("id,text\n" + "".join(f'n{number},"a\nb"\n' for number in range(20)))
    given = [str(path) for path in (lines, packed, spread, rows, text)]

    Omnigraph.init(str(tmp_path / "graph"), SCHEMA).close()
    found = driver.call(spark_loads.load_in_parts, str(tmp_path / "graph"), given, "append", 500)
    assert found[0] == "loaded"
    assert found[1]["nodes_loaded"] == 120
    whole = Omnigraph.init(str(tmp_path / "whole"), SCHEMA)
    whole.load(given, mode="append")
    assert content(Omnigraph.open(str(tmp_path / "graph"))) == content(whole)


@ON_THIS_MACHINE
def test_a_mistake_is_named_by_its_file_and_line(driver: Driver, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text("\n".join(part(number) for number in range(200)))
    lines = [part(number) for number in range(200, 400)]
    lines[150] = '{"type": "Part", "data": {"sku": "broken"'
    lines[160] = part(3)
    bad.write_text("\n".join(lines))
    Omnigraph.init(str(tmp_path / "graph"), SCHEMA).close()
    found = driver.call(
        spark_loads.load_in_parts,
        str(tmp_path / "graph"),
        [str(good), str(bad)],
        "append",
        2_000,
    )
    assert found[0] == "refused"
    told = json.loads("".join(found[1]))["violations"]
    places = [(Path(item["file"]).name, item["line"], item["rule"]) for item in told]
    assert places == [("bad.jsonl", 151, "json"), ("bad.jsonl", 161, "key")]
    assert f"{good}:4" in told[1]["message"]
    assert content(Omnigraph.open(str(tmp_path / "graph"))) == []


@ON_CLUSTERS
def test_an_executor_that_is_killed_costs_time_alone(mortal: Mortal, tmp_path: Path) -> None:
    data = tmp_path / "parts.jsonl"
    data.write_text("\n".join(part(number) for number in range(KILLED_UNDER)))
    graph = tmp_path / "graph"
    Omnigraph.init(str(graph), SCHEMA).close()
    mortal.driver.start(
        spark_loads.load_in_parts, str(graph), [str(data)], "merge", data.stat().st_size // 16
    )
    scratch = graph / "_scratch"
    wait_until(lambda: list(scratch.glob("*/read-*")), "the first part that is read", seconds=300)
    kill_an_executor(mortal.cluster)
    kind, result = mortal.driver.result()
    assert (kind, result["nodes_loaded"]) == ("loaded", KILLED_UNDER)
    opened = Omnigraph.open(str(graph))
    assert len(opened.list_commits()) == 2
    assert content(opened) == sorted(_exported(range(KILLED_UNDER)))
    assert opened.verify(is_deep=True).is_sound


def _exported(numbers: range) -> list[str]:
    return [
        json.dumps(
            {
                "type": "Part",
                "data": {
                    "id": f"p{number}",
                    "sku": f"p{number}",
                    "name": None,
                    "stock": number % 50,
                    "code": None,
                    "size": None,
                    "grade": None,
                },
            },
            separators=(",", ":"),
        )
        for number in numbers
    ]


@pytest.mark.parametrize("driver", ["local"], indirect=True)
def test_graph_and_drops_on_s3(
    driver: Driver, s3_server: S3Server, s3_root: str, tmp_path: Path
) -> None:
    data = tmp_path / "parts.jsonl"
    data.write_text("\n".join(part(number) for number in range(500)))
    store = s3_store(s3_server.bucket, s3_server.endpoint)
    obstore.put(store, "drops/parts.jsonl", data.read_bytes())
    address = f"s3://{s3_server.bucket}/drops/parts.jsonl"
    Omnigraph.init(s3_root, SCHEMA).close()
    kind, result = driver.call(spark_loads.load_in_parts, s3_root, [address], "merge", 4_000)
    assert (kind, result["nodes_loaded"]) == ("loaded", 500)
    graph = Omnigraph.open(s3_root)
    assert len(content(graph)) == 500
    assert graph.verify(is_deep=True).is_sound
