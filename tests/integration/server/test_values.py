"""Values as clients of a real server see them: how each type looks in rows, lines and exports, and
which values a parameter of it takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.cases import each
from tests.support.server import server_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.server import Client

SCHEMA: Final = """
node Thing {
  key: String @key
  flag: Bool?
  small: I32?
  count: U32?
  large: I64?
  huge: U64?
  ratio: F32?
  exact: F64?
  day: Date?
  moment: DateTime?
  words: [String]?
  place: Vector(3)?
}
"""
TYPES: Final = {
    "key": "String", "flag": "Bool", "small": "I32", "count": "U32", "large": "I64", "huge": "U64",
    "ratio": "F32", "exact": "F64", "day": "Date", "moment": "DateTime", "words": "[String]",
    "place": "Vector(3)",
}  # fmt: skip
FULL: Final = {
    "key": 'Zoë "1"\n',
    "flag": False,
    "small": -2147483648,
    "count": 4294967295,
    "large": 9223372036854775807,
    "huge": 9007199254740993,
    "ratio": 0.1,
    "exact": -1e-7,
    "day": "2031-05-02",
    "moment": "2031-05-02T10:00:00+02:00",
    "words": ["a", "ü"],
    "place": [0.5, -1, 2],
}
TEXT: Final = (
    '{"key":"Zoë \\"1\\"\\n","flag":false,"small":-2147483648,"count":4294967295,'
    '"large":9223372036854775807,"huge":9007199254740993,"ratio":0.1,"exact":-1e-7,'
    '"day":"2031-05-02","moment":"2031-05-02T08:00:00.000Z","words":["a","ü"],'
    '"place":[0.5,-1.0,2.0]}'
)
"""The row as it is sent: keys in the order of the projection, integers with all their digits."""
COLUMNS: Final = ", ".join(f"$t.{name} as {name}" for name in TYPES)
READ: Final = f"query all() {{ match {{ $t: Thing }} return {{ {COLUMNS} }} order {{ $t.key }} }}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    root = tmp_path_factory.mktemp("values") / "things"
    graph = Omnigraph.init(str(root), SCHEMA)
    records = [{"type": "Thing", "data": data} for data in (FULL, {"key": "none"})]
    graph.load("\n".join(map(json.dumps, records)).encode())
    with server_process(root) as running, running.client() as client:
        yield client


def answered(answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    return answer


def test_rows_hold_values_as_they_are(server: Client) -> None:
    nothing = json.dumps({"key": "none", **dict.fromkeys(list(TYPES)[1:])}, separators=(",", ":"))
    answer = answered(server.post("/read", {"query_source": READ}))
    assert answer.text.endswith(f'"rows":[{TEXT},{nothing}]}}')
    assert answer.json()["columns"] == list(TYPES)
    lines = {"Accept": "application/x-ndjson"}
    answer = answered(server.post("/read", {"query_source": READ}, headers=lines))
    assert answer.text.splitlines()[1:] == [TEXT, nothing]


def test_an_export_holds_the_same_values(server: Client) -> None:
    answer = answered(server.post("/export", {}))
    first = answer.text.splitlines()[0]
    assert first.replace('"id":"Zoë \\"1\\"\\n",', "") == f'{{"type":"Thing","data":{TEXT}}}'


@each(
    ("expression", "text"),
    [
        ("avg($t.exact)", "-1e-7"),
        ("sum($t.small)", "-2147483648"),
        ("min($t.day)", '"2031-05-02"'),
        ("max($t.moment)", '"2031-05-02T08:00:00.000Z"'),
        ("count($t)", "2"),
    ],
)
def test_what_is_worked_out_looks_the_same(server: Client, expression: str, text: str) -> None:
    query = f"query one() {{ match {{ $t: Thing }} return {{ {expression} as x }} }}"
    answer = answered(server.post("/read", {"query_source": query}))
    assert answer.text.endswith(f'"rows":[{{"x":{text}}}]}}')


def sent(server: Client, type: str, value: object) -> Any:
    """A parameter, by whether a row is found that has a key whatever the parameter is."""
    query = f"query q($x: {type}) {{ match {{ $t: Thing }} return {{ $t.key as key, $x as x }} }}"
    return server.post("/read", {"query_source": query, "params": {"x": value}})


@each(
    ("type", "value", "found"),
    [
        ("String", "ü", "ü"),
        ("Bool", True, True),
        ("I32", 5, 5),
        ("I32", "-5", -5),
        ("I64", "9223372036854775807", 9223372036854775807),
        ("U32", "4294967295", 4294967295),
        ("U64", 9223372036854775807, 9223372036854775807),
        ("F64", 1, 1.0),
        ("Date", "2031-05-02", "2031-05-02"),
        ("DateTime", "2031-05-02T10:00:00Z", "2031-05-02T10:00:00.000Z"),
        ("String?", None, None),
    ],
)
def test_a_parameter_takes(server: Client, type: str, value: object, found: object) -> None:
    rows = answered(sent(server, type, value)).json()["rows"]
    assert [row["x"] for row in rows] == [found] * 2


@each(
    ("type", "value"),
    [
        ("String", 5),
        ("String", None),
        ("Bool", "true"),
        ("Bool", 1),
        ("I32", 2147483648),
        ("I32", 1.5),
        ("I32", "1.0"),
        ("I32", True),
        ("U32", -1),
        ("U32", "4294967296"),
        ("I64", 2**63),
        ("U64", -1),
        ("F64", "1.5"),
        ("Date", "2031-13-02"),
        ("Date", 20310502),
        ("DateTime", "soon"),
        ("[I32]", 5),
        ("[I32]", ["a"]),
        ("Vector(3)", [1, 2]),
        ("Vector(3)", [1, 2, "3"]),
    ],
)
def test_a_parameter_refuses(server: Client, type: str, value: object) -> None:
    answer = sent(server, type, value)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request"), answer.text
    assert answer.json()["error"].startswith("param 'x': "), answer.text
