"""Reads at their edges: exact weights, steady groups, sliced results, sums beyond floats, stops."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import socket
import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.constants import MAX_STEPS
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, DataError, ParameterError, QueryTimeout
from omnigraph_core.exec.guard import Guard
from omnigraph_core.settings import DERIVED_FILES
from omnigraph_core.topology import memory
from omnigraph_core.topology.memory import shared_cache

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PEOPLE = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
edge Likes: Person -> Person
"""
THINGS = """
node Thing {
  k: I64 @key
  team: String?
  big: U64?
  f: F64?
  day: Date?
  at: DateTime?
  moments: [DateTime]?
  v: Vector(2)?
}
"""


def graph(root: Path, schema: str, records: Iterable[dict[str, object]]) -> Omnigraph:
    og = Omnigraph.init(str(root / "g"), schema)
    og.load("\n".join(map(json.dumps, records)).encode())
    return og


def person(name: str, age: int | None = None) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, "age": age}}


def edge(kind: str, source: str, target: str) -> dict[str, object]:
    return {"edge": kind, "from": source, "to": target}


def thing(k: int, **data: object) -> dict[str, object]:
    return {"type": "Thing", "data": {"k": k, **data}}


def rows(og: Omnigraph, body: str, **params: object) -> list[dict[str, object]]:
    head = ", ".join(f"${name}: I64" for name in params)
    return og.query("main", f"query q({head}) {{ {body} }}", None, params).to_pylist()


@pytest.mark.parametrize("hubs", [2, 6])
def test_counts_beyond_what_floats_hold(tmp_path: Path, hubs: int) -> None:
    """The weights of all rows together pass 64 bits, that of the one row which stays does not."""
    degree = 999
    records = [person(f"h{hub}", 1) for hub in range(hubs)]
    records += [person(f"t{hub}_{i}") for hub in range(hubs) for i in range(degree)]
    records += [
        edge("Knows", f"h{hub}", f"t{hub}_{i}") for hub in range(hubs) for i in range(degree)
    ]
    og = graph(tmp_path, PEOPLE, [*records, edge("Likes", "t0_5", "h0")])
    match = "$a: Person " + "$a knows $_ " * 6 + "$a knows $b $b likes $c"
    assert rows(og, f"match {{ {match} }} return {{ count($c) as n }}") == [{"n": degree**6}]


def test_a_row_that_stands_for_too_many(tmp_path: Path) -> None:
    records = [person(f"n{i}", 3) for i in range(3001)]
    records += [edge("Knows", "n0", f"n{i}") for i in range(1, 3001)]
    og = graph(tmp_path, PEOPLE, records)
    body = "match {{ $a: Person {} }} return {{ count($a) as n }}"
    assert rows(og, body.format("$a knows $_ " * 5)) == [{"n": 3000**5}]
    with pytest.raises(DataError, match="64 bits"):
        rows(og, body.format("$a knows $_ " * 6))


def test_walks_are_added_up_not_listed(tmp_path: Path) -> None:
    """A clique has 30 * 29**6 walks of six steps: far too many to make a row for each."""
    size = 30
    names = [f"n{i:02}" for i in range(size)]
    records = [person(name, 3) for name in names]
    records += [edge("Knows", a, b) for a in names for b in names if a != b]
    og = graph(tmp_path, PEOPLE, records)
    chain = " ".join(f"$v{i} knows $v{i + 1}" for i in range(6))
    walks = size * (size - 1) ** 6
    query = (
        f"query q() {{ match {{ {chain} }} return {{ sum($v6.age) as n, count($v6.age) as c }} }}"
    )
    result = og.query("main", query, memory=64 * 2**20).to_pylist()
    assert result == [{"n": 3 * walks, "c": walks}]
    report = og.profile("main", query)
    assert max(step.work.rows_out for step in report.steps if step.work) <= size * size


def test_groups_keep_their_order_when_columns_become_known(tmp_path: Path) -> None:
    teams = ["b", "c", "b", "d", "a", None]
    records = [thing(i, team=teams[i % 6]) for i in range(3000)]
    og = graph(tmp_path, THINGS, records)
    body = "match { $t: Thing } return { $t.team as s, count($t) as n }"
    expected = [{"s": s, "n": 1000 if s == "b" else 500} for s in ("b", "c", "d", "a", None)]
    for _ in range(5):
        assert rows(og, body) == expected
        assert rows(og, f"{body} limit 2") == expected[:2]


def test_one_row_in_every_form(tmp_path: Path) -> None:
    moment = "2026-01-02T03:04:05.006Z"
    records = [
        thing(1, moments=[moment], v=[1.0, 2.0], big=2**64 - 1),
        thing(2, moments=None, v=None),
        thing(3, moments=[moment, moment], v=[3.0, 4.0], big=7),
    ]
    og = graph(tmp_path, THINGS, records)
    for _ in range(4):  # the columns come to stay in memory
        for k in (1, 2, 3):
            for shown in ("$t", "$t.moments as m", "$t.v as v", "$t.big as big"):
                query = (
                    f"query q($k: I64) {{ match {{ $t: Thing {{ k: $k }} }} return {{ {shown} }} }}"
                )
                result = og.query("main", query, None, {"k": k})
                assert len(result.to_pandas()) == len(result.to_polars()) == 1
    three = og.query(
        "main", "query q() { match { $t: Thing { k: 3 } } return { $t.moments as m } }"
    )
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 6000, dt.UTC)
    assert three.to_polars()["m"].to_list() == [[at, at]]


def test_pandas_keeps_every_digit_beside_a_null(tmp_path: Path) -> None:
    og = graph(tmp_path, THINGS, [thing(1, big=2**64 - 1), thing(2)])
    query = "query q() { match { $t: Thing } return { $t.big as big, $t } order { $t.k } }"
    frame = og.query("main", query).to_pandas()
    assert frame["big"][0] == 2**64 - 1
    assert frame["big"].isna().tolist() == [False, True]
    assert [node["big"] for node in frame["t"]] == [2**64 - 1, None]


@pytest.mark.parametrize("aggregate", ["sum", "avg"])
def test_floats_whose_sum_is_none(tmp_path: Path, aggregate: str) -> None:
    records = [thing(i, f=1e308) for i in range(3)]
    og = graph(tmp_path, THINGS, records)
    with pytest.raises(DataError, match=r"of \$t.f exceeds F64"):
        rows(og, f"match {{ $t: Thing }} return {{ {aggregate}($t.f) as v }}")
    with pytest.raises(DataError, match=r"of \$t.f exceeds F64"):
        rows(og, f"match {{ $t: Thing $o: Thing }} return {{ $t.k, {aggregate}($t.f) as v }}")


def test_dates_may_be_given_as_python_has_them(tmp_path: Path) -> None:
    og = graph(tmp_path, THINGS, [thing(1, day="2026-01-02", at="2026-01-02T01:00:00.5Z")])
    query = (
        "query q($d: Date, $at: DateTime) "
        "{ match { $t: Thing $t.day = $d $t.at = $at } return { $t.k as k } }"
    )
    zone = dt.timezone(dt.timedelta(hours=2))
    moment = dt.datetime(2026, 1, 2, 3, 0, 0, 500_999, zone)
    params = {"d": dt.date(2026, 1, 2), "at": moment}
    assert og.query("main", query, None, params).to_pylist() == [{"k": 1}]
    with pytest.raises(ParameterError, match="param 'd': expected Date text"):
        og.query("main", query, None, {**params, "d": moment})


def test_a_number_too_long_to_write_out(tmp_path: Path) -> None:
    og = graph(tmp_path, THINGS, [thing(1)])
    with pytest.raises(ParameterError, match="a number of more than 40 digits is out of range"):
        rows(og, "match { $t: Thing { k: $k } } return { $t.k }", k=10**5000)


def test_reading_columns_and_linking_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cold query is stopped while it reads what it needs, and leaves nothing half made."""
    og = graph(tmp_path, PEOPLE, [person("a")])
    ids = pa.array([f"p{i}" for i in range(200_000)])
    og.load(pa.table({"name": ids}), type="Person")
    og.load(pa.table({"src": ids, "dst": ids}), type="Knows")
    monkeypatch.setenv(DERIVED_FILES.name, "false")
    cache = memory.ByteCache(2**28)
    monkeypatch.setattr("omnigraph_core.engine.reads.shared_cache", lambda: cache)
    asked = []

    def check(guard: Guard) -> None:
        asked.append(1)
        if len(asked) == limit:
            raise QueryTimeout(1.0)

    query = "query q() { match { $a: Person $a knows $b } return { count(distinct $b.name) as n } }"
    monkeypatch.setattr(Guard, "check", check)
    limit = 0
    assert og.query("main", query).to_pylist() == [{"n": 200_000}]
    most = len(asked)
    assert most > 8
    for limit in range(1, most, 3):  # noqa: B007 - the check looks at it
        cache.clear()
        asked.clear()
        with pytest.raises(QueryTimeout):
            og.query("main", query)
    cache.clear()
    limit = 0
    assert og.query("main", query).to_pylist() == [{"n": 200_000}]


def test_a_provider_that_does_not_answer_holds_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai-compatible")
        monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", address)
        monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "any")
        monkeypatch.setenv("OMNIGRAPH_EMBED_CACHE", "off")
        og = graph(tmp_path, THINGS, [thing(1, v=[1.0, 2.0])])
        nearest = "order { nearest($t.v, $w) } limit 1"
        query = f"query q($w: String) {{ match {{ $t: Thing }} return {{ $t.k }} {nearest} }}"
        with pytest.raises(QueryTimeout):
            og.query("main", query, None, {"w": "hello"}, timeout=0.2)


def test_a_plan_of_too_many_steps(tmp_path: Path) -> None:
    og = graph(tmp_path, PEOPLE, [person("a", 1), edge("Knows", "a", "a")])
    chain = "match {{ {} }} return {{ count(distinct $v1) as n }}"

    def walk(steps: int) -> str:
        return chain.format(" ".join(f"$v{i} knows $v{i + 1}" for i in range(steps)))

    assert rows(og, walk(MAX_STEPS.value - 1)) == [{"n": 1}]
    for body in (walk(MAX_STEPS.value), walk(1000)):
        with pytest.raises(ConfigError, match="steps, and 128 are the most"):
            rows(og, body)


def test_readers_go_on_while_indexes_are_built(tmp_path: Path) -> None:
    """An index is built on a handle of its own: Lance lets nobody else use it meanwhile."""
    og = graph(tmp_path, THINGS.replace("f: F64?", "f: F64? @index"), [thing(0)])
    failures: list[Exception] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            shared_cache().clear()  # so that tables are read again
            try:
                rows(og, "match { $t: Thing $t.f < 3.0 } return { count($t) as n }")
            except Exception as problem:  # noqa: BLE001 - whatever it is, it is shown
                failures.append(problem)
                return

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for part in range(6):
        numbers = list(range(part * 5000 + 1, part * 5000 + 5001))
        og.load(pa.table({"k": numbers, "f": [float(n) for n in numbers]}), type="Thing")
        og.ensure_indices()
    is_over.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_a_point_lookup_gives_nothing_else_away(tmp_path: Path) -> None:
    og = graph(tmp_path, THINGS, [thing(i, team=f"team {i}" * 50) for i in range(1000)])
    query = "query q() { match { $t: Thing { k: 7 } } return { $t.team as team, $t.k as k, $t } }"
    for _ in range(4):
        table = og.query("main", query).to_arrow()
        assert len(pickle.dumps(table)) < 20_000
