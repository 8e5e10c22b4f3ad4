"""Loads that find something wrong, and the whole report of each: the same wherever they run.

A case names files and how they are loaded into a graph. Whoever holds a session of Spark can be
told to load it: cases are known by name, and reports are text.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import pyarrow as pa
from pyarrow import feather, parquet

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import DataError, OmnigraphError
from omnigraph_core.spark.ingest import load, parts
from omnigraph_core.violations import MAX_LISTED
from omnigraph_core.write.sources import Format
from tests.support.load_worlds import content
from tests.support.loading import bin_, bin_id, edge, holds, lines, needs, note, part, small_graph
from tests.support.wrong_records import RECORDS, ROWS, SETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.spark.ingest.model import Part
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.write.batches import Places
    from omnigraph_core.write.sources import Source

COMMITTED: Final = 600
_SHARES: Final = 3
"""How many parts a file of lines is split into, about: each is a task of Spark."""
_GROUP_BYTES: Final = 100
"""Less than any row group of these files: each is a part."""
_ULID: Final = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


@dataclass(frozen=True)
class BadLoad:
    """Files that are loaded together, in their order."""

    name: str
    files: Mapping[str, bytes]
    options: dict[str, Any] = field(default_factory=dict)
    is_large: bool = False
    """Whether the graph has many rows, so that those of the input are looked up one by one."""
    has_rejects: bool = False
    """Whether records that are refused go to a file."""

    @property
    def is_refused(self) -> bool:
        """Whether nothing may be loaded; otherwise good records may be."""
        return "skip_bad" not in self.options


def _lines(name: str, *records: Any, is_large: bool = False, **options: Any) -> BadLoad:
    return BadLoad(name, {"input.jsonl": lines(*records)}, options, is_large)


def _tolerant(name: str, *records: Any, **options: Any) -> BadLoad:
    files = {"input.jsonl": lines(*records)}
    return BadLoad(name, files, options | {"skip_bad": True}, has_rejects=True)


def _packed(*records: Any) -> bytes:
    return gzip.compress(lines(*records), mtime=0)


def _damaged(data: bytes, at: int) -> bytes:
    """Data with one byte that is another."""
    changed = bytearray(data)
    changed[at] ^= 0xFF
    return bytes(changed)


def _parquet(table: pa.Table) -> bytes:
    """A file with a row group for every two rows."""
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, row_group_size=2)
    return bytes(sink.getvalue())


def _damaged_group(data: bytes, group: int) -> bytes:
    """A file with a row group that cannot be read."""
    column = parquet.ParquetFile(pa.BufferReader(data)).metadata.row_group(group).column(0)
    return _damaged(data, column.dictionary_page_offset + 2)


def _arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    feather.write_feather(table, sink, compression="uncompressed")
    return bytes(sink.getvalue())


def _parts(**columns: list[Any]) -> pa.Table:
    """Parts with keys and names and these columns."""
    names = [f"t{number}" for number in range(len(next(iter(columns.values()))))]
    return pa.table({"sku": names, "name": names} | columns)


def _good(*numbers: int) -> list[dict[str, Any]]:
    return [part(f"g{number}") for number in range(*numbers)]


_NOTES: Final = [note(f"n{number}") for number in range(400)]
_BAD_TABLE: Final = _parts(
    stock=[1, 500, None, -3, 7],
    code=["AB", "x", None, "CD", "abc"],
    serial=["S1", "Q", "Q", "R", None],
)
_MIXED: Final = (
    part("p1"),
    part("p2", stock=500, code="x"),
    "// a comment",
    '{"type": "Note", "data": {"text": "ü"',
    holds("south", "nowhere", "e1"),
    part("p3", serial="S1"),
    part("p4"),
    note("m"),
)

LINES: Final = (
    _lines("good and bad records, comments and empty lines", *_MIXED, ""),
    BadLoad("bad records in a file", {"input.jsonl": lines(*_MIXED)}, has_rejects=True),
    _lines(
        "lines of Windows",
        *(f"{json.dumps(record)}\r" for record in (*_good(3), part("a", stock="x"))),
    ),
    BadLoad(
        "a last line that does not end", {"input.jsonl": lines(*_good(3)) + b'{"type": "Part"'}
    ),
    BadLoad("a mark before the text", {"input.jsonl": b"\xef\xbb\xbf" + lines(*_good(3), "{")}),
    BadLoad("bytes that are no text", {"input.jsonl": lines(*_good(3)) + b'{"type": "\xff"}\n'}),
    _lines("an empty record among good ones", *_good(4), {}, *_good(4, 6)),
    _lines(
        "every kind of mistake",
        "{",
        {"type": "Widget"},
        {"edge": "Holds", "from": bin_id("south")},
        {"nothing": 1},
        part("p1", shape=[1]),
        part("p2", id="p3"),
        {"type": "Part", "data": {"name": "no key"}},
        part("p4", kind="screw", code="lower"),
        part("p5"),
        part("p5"),
        holds("south", "p5", "e1"),
    ),
    _lines(
        "records that are wrong in several ways",
        {"type": "Part", "data": {"sku": "p", "stock": 500, "code": "x", "shade": "red"}},
        holds("north", "b", grade="bad", count="many"),
        part("z", stock=101, code="x", kind="y", serial="S1"),
    ),
    _lines(
        "values of many kinds",
        *(part("p1", stock=True), part("p2", stock=1.5), part("p3", weight="heavy")),
        *(part("p4", tags="x"), part("p5", tags=[1]), part("p6", name=7), part("p7", shape="abc")),
        *(part("p8", colour=["red"]), bin_("east", row=2**31), {**bin_("west"), "data": 1}),
        *(part(""), {"type": "Part", "data": []}, {"type": 7}, {"type": "Part", "extra": 1}),
    ),
    _lines("a record that a better one replaces", note("z", rank=99), note("z", rank=2)),
    _lines(
        "more than a report lists",
        *(part(f"p{number}", stock=101) for number in range(MAX_LISTED + 20)),
        *(needs(f"m{number}", "a") for number in range(30)),
    ),
    _lines("one more than a report lists", *["{"] * (MAX_LISTED + 1)),
)
ROWS_TOGETHER: Final = (
    _lines(
        "edges of refused records",
        *(part("p", stock="many"), bin_("east", row="one"), holds("north", "p")),
        *(holds("east", "nowhere"), note("m", rank=None), edge("Needs", "m", "p")),
        *(part("z", stock=101), holds("south", "z")),
    ),
    _lines(
        "keys given several times",
        *(part("p"), part("q"), part("p", stock=1), bin_("x", 7), part("p", stock=2)),
        bin_("x", 7),
    ),
    _lines("keys of committed rows", part("p"), *map(part, "abc"), bin_("north"), mode="append"),
    _lines(
        "unique values of several rows",
        *(
            part(f"p{number}", serial=f"X{number % 2}", maker="M", model=f"{number % 3}")
            for number in range(7)
        ),
    ),
    _lines(
        "a unique value that its row gives up",
        *(part("a", serial="S2"), part("z", serial="S1"), part("y", serial="S2")),
    ),
    _lines(
        "ends that are missing",
        *(holds("west", f"w{number}", f"e{number}") for number in range(5)),
    ),
    _lines(
        "too many edges",
        *(holds("south", sku, f"e{sku}") for sku in "abc"),
        *(holds("north", "b"), holds("north", "c")),
    ),
    _lines("too few edges", note("m"), needs("m", "a", "w1")),
    _lines("edges that lose an end", part("b"), note("o"), mode="overwrite"),
    _lines("edges that lose both ends", part("b"), bin_("east"), note("o"), mode="overwrite"),
    _lines(
        "an overwrite with edges",
        *(part("b"), note("n"), bin_("north"), holds("north", "a", "h2"), needs("n", "b")),
        mode="overwrite",
    ),
    _lines("keys of many rows", part("p7"), part("new"), note("n7"), is_large=True, mode="append"),
    _lines(
        "unique values of many rows",
        *(part("new", serial="L7"), part("p8", serial="L9"), part("p10", serial="L8")),
        is_large=True,
    ),
    _lines(
        "ends among many rows",
        *(holds("north", "p599", "e1"), holds("north", "p600", "e2")),
        is_large=True,
    ),
    _lines("an overwrite below many edges", part("p1"), is_large=True, mode="overwrite"),
)
FILES: Final = (
    BadLoad(
        "keys across files",
        {"1.jsonl": lines(*_good(4)), "2.jsonl": lines(*_good(4, 6), part("g1"), part("g5"))},
    ),
    BadLoad(
        "unique values across files",
        {
            "1.jsonl": lines(part("p", serial="X")),
            "2.jsonl.gz": _packed(part("q", serial="X")),
            "Part.csv": b"sku,name,serial\nr,r,X\ns,s,Y\n",
        },
    ),
    BadLoad(
        "edges whose nodes are refused in another file",
        {
            "1.jsonl": lines(holds("south", "p1"), holds("south", "p2")),
            "2.jsonl": lines(part("p1", stock="many"), part("p2", stock=500)),
        },
    ),
    BadLoad(
        "too many edges across files",
        {
            "1.jsonl": lines(holds("south", "a")),
            "2.jsonl": lines(holds("south", "b"), holds("south", "c")),
        },
    ),
    BadLoad(
        "mistakes in several files",
        {
            "1.jsonl": lines(*_good(5), part("p", stock=500), *_good(5, 9)),
            "2.jsonl": lines(*_good(9, 12), "{", part("q", colr=1)),
            "nodes/Bin.csv": b"label,row\nx,1\ny,two\n",
        },
    ),
    BadLoad(
        "a packed file that is cut off",
        {"1.jsonl.gz": _packed(part("p", stock=500), *_NOTES)[:-12], "2.jsonl": lines("{")},
    ),
    BadLoad("a packed file with a wrong checksum", {"1.jsonl.gz": _damaged(_packed(*_NOTES), -6)}),
    BadLoad("a packed file that is damaged", {"1.jsonl.gz": _damaged(_packed(*_NOTES), 60)}),
    BadLoad("a packed file with mistakes", {"1.jsonl.gz": _packed(*_MIXED)}),
    BadLoad(
        "a list of records",
        {
            "input.json": json.dumps(
                [part("p"), 17, part("q", stock=500), part("p")], indent=1
            ).encode()
        },
    ),
    BadLoad(
        "a list that is cut off", {"input.json": json.dumps(_good(9), indent=1).encode()[:-40]}
    ),
    BadLoad(
        "a table of text with mistakes",
        {
            "Part.csv": b"sku,name,stock,code\nt1,one,1,AB\nt2,two,many,\n"
            b"t3,,500,x\nt1,again,2,\n,five,3,\n"
        },
    ),
    BadLoad("lines of other lengths", {"Part.csv": b"sku,name\nt1,one\nt2\nt3,three,3\n"}),
    BadLoad("an unknown column of text", {"Part.csv": b"sku,nmae\nt1,one\nt2,two\n"}),
    BadLoad("a column of text twice", {"Part.csv": b"sku,name,name\nt1,one,two\n"}),
    BadLoad("a needed column that is not there", {"Part.csv": b"sku,stock\nt1,1\nt2,2\n"}),
    BadLoad("a quote that does not end", {"Part.csv": b'sku,name\nt1,one\nt2,"two\nt3,three\n'}),
    BadLoad("a table that is no text", {"Part.csv": b"sku,name\nt1,one\nt2,\xff\nt3,three\n"}),
    BadLoad(
        "a table of edges",
        {
            "edges/Holds.csv": b'from,to,grade\n"[""south"",""1""]",a,fair\n'
            b"nowhere,zz,good\n,a,good\n"
        },
    ),
    BadLoad("Parquet with mistakes", {"Part.parquet": _parquet(_BAD_TABLE)}),
    BadLoad(
        "keys of Parquet",
        {"Part.parquet": _parquet(pa.table({"sku": list("xyzxy"), "name": list("abcde")}))},
    ),
    BadLoad(
        "a column of Parquet of another type",
        {"Part.parquet": _parquet(_parts(stock=["1", "two", "3"]))},
    ),
    BadLoad(
        "an unknown column of Parquet",
        {"Part.parquet": _parquet(_parts(size=[1, 2, 3])), "2.jsonl": lines("{")},
    ),
    BadLoad(
        "a needed column of Parquet without values",
        {"Bin.parquet": _parquet(pa.table({"label": ["x", None, "y"], "row": [1, 2, None]}))},
    ),
    BadLoad("no Parquet", {"Part.parquet": b"not parquet", "2.jsonl": lines("{")}),
    BadLoad("a damaged footer of Parquet", {"Part.parquet": _damaged(_parquet(_BAD_TABLE), -10)}),
    BadLoad("Parquet that is cut off", {"Part.parquet": _parquet(_BAD_TABLE)[:-30]}),
    BadLoad(
        "a first row group that is damaged",
        {"Part.parquet": _damaged_group(_parquet(_BAD_TABLE), 0), "2.jsonl": lines(part("t2"))},
    ),
    BadLoad(
        "a row group that is damaged among others",
        {"Part.parquet": _damaged_group(_parquet(_BAD_TABLE), 1), "2.jsonl": lines(part("t4"))},
    ),
    BadLoad("Arrow with mistakes", {"Part.arrow": _arrow(_BAD_TABLE)}),
    BadLoad("no Arrow", {"Part.arrow": b"not arrow"}),
    BadLoad("Arrow that is cut off", {"Part.arrow": _arrow(_BAD_TABLE)[:-30]}),
)
LEFT_OUT: Final = (
    _tolerant("bad records left out", *_MIXED),
    _tolerant(
        "what falls with what fell",
        *(note("m"), part("p1", serial="S1"), needs("m", "p1", "w2"), part("p2")),
        *(part("p3", shape=[1]), holds("south", "p3", "e3"), holds("south", "p2", "e2")),
    ),
    _tolerant(
        "the first of duplicates stays",
        *(part("p1", serial="X"), part("p2", serial="X"), part("p4"), part("p4", stock=1)),
        *(holds("south", "p4", "e1"), holds("south", "p4", "e2")),
    ),
    _tolerant(
        "the first of too many edges stay", *(holds("south", sku, f"e{sku}") for sku in "cba")
    ),
    _tolerant("rows that exist left out", part("a"), part("d"), mode="append"),
    _tolerant(
        "orphans that no record is to blame for",
        *(part("b", serial="X"), part("c", serial="X")),
        mode="overwrite",
    ),
    _tolerant("an overwrite that would empty a table", note("m", rank=50), mode="overwrite"),
    BadLoad(
        "bad records of several files left out",
        {
            "1.jsonl": lines(part("p1"), part("p2", stock=500)),
            "2.jsonl.gz": _packed(holds("south", "p2"), part("p3", code="x")),
            "Part.csv": b"sku,name,stock\nt1,one,1\nt2,two,many\nt3,three,500\n",
            "nodes/Part.parquet": _parquet(_BAD_TABLE.slice(1)),
        },
        {"skip_bad": True},
        has_rejects=True,
    ),
    BadLoad(
        "a broken file beside bad records",
        {"1.jsonl.gz": _packed(*_NOTES)[:-12], "2.jsonl": lines(part("p", stock=500))},
        {"skip_bad": True},
        has_rejects=True,
    ),
)

ALONE: Final = tuple(
    _lines(wrong.name, *wrong.given, **wrong.options) for wrong in (*RECORDS, *ROWS, *SETS)
)
"""Mistakes of which each has a load of its own."""
USUAL: Final = (*ROWS_TOGETHER, *FILES)
CASES: Final = {case.name: case for case in (*LINES, *ROWS_TOGETHER, *FILES, *LEFT_OUT, *ALONE)}


def large_graph(path: Path) -> Omnigraph:
    """The small graph with many parts, bins and edges more."""
    graph = small_graph(path)
    rows = [part(f"p{number}", serial=f"L{number}") for number in range(COMMITTED)]
    rows += [note(f"n{number}") for number in range(COMMITTED)]
    rows += [bin_(f"b{number}") for number in range(COMMITTED // 2)]
    rows += [holds(f"b{number}", f"p{number}") for number in range(COMMITTED // 2)]
    graph.load(lines(*rows))
    return graph


def write_files(case: BadLoad, directory: Path) -> list[str]:
    """The files of a case in a directory, in their order."""
    paths = [directory / name for name in case.files]
    for path, data in zip(paths, case.files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [str(path) for path in paths]


def report_here(name: str, address: str, files: Sequence[str], rejects: str) -> list[str]:
    """What a load in one process reports."""
    return _report(CASES[name], address, files, Path(rejects), engine="local")


def report_there(
    _: Runner, name: str, address: str, files: Sequence[str], rejects: str
) -> list[str]:
    """What a load in parts reports that the session of this process does."""
    with mock.patch.object(load, "split", _in_shares):
        return _report(CASES[name], address, files, Path(rejects), engine="spark")


def _in_shares(sources: Sequence[Source], places: Places) -> list[Part]:
    largest = max(source.size for source in sources)
    is_grouped = any(source.format is Format.PARQUET for source in sources)
    part_bytes = _GROUP_BYTES if is_grouped else max(largest // _SHARES, 1)
    return parts.split(sources, places, part_bytes=part_bytes)


def _report(
    case: BadLoad, address: str, files: Sequence[str], rejects: Path, *, engine: str
) -> list[str]:
    """All that a load says and leaves, in lines, without ids that are made anew each time."""
    graph = Omnigraph.open(address)
    before = visible(graph)
    options = case.options | ({"rejects": rejects} if case.has_rejects else {})
    try:
        result = graph.load(list(files), engine=engine, **options)
    except OmnigraphError as error:
        told = [*_error(error), f"nothing is visible: {visible(Omnigraph.open(address)) == before}"]
    else:
        told = [json.dumps({**result.to_json(), "commit_id": None, "spark": None}), *content(graph)]
    if case.has_rejects:
        told += ["rejects:", *rejects.read_text().splitlines()]
    return [_ULID.sub("ULID", line) for line in told]


def visible(graph: Omnigraph) -> tuple[object, ...]:
    """What others see of a graph."""
    return graph.head_commit_id_for_branch(), graph.branch_list(), content(graph)


def _error(error: OmnigraphError) -> list[str]:
    violations = error.violations if isinstance(error, DataError) else ()
    return [
        f"{type(error).__name__}: {error.message}",
        f"hint: {error.hint}",
        f"details: {json.dumps(error.details(), default=str)}",
        f"notes: {getattr(error, '__notes__', [])}",
        *map(repr, violations),
    ]
