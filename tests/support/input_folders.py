"""Directories of inputs in every format, for the graph of `load_worlds`; some with mistakes."""

from __future__ import annotations

import gzip
import io
import json

import pyarrow as pa
from pyarrow import parquet


def part(number: int) -> str:
    return json.dumps({"type": "Part", "data": {"sku": f"p{number}", "stock": number % 50}})


def inputs(*, has_mistakes: bool = False) -> dict[str, bytes]:
    """By path below a directory the content of its files; 305 nodes without mistakes."""
    first = [part(number) for number in range(100)]
    second = [part(number) for number in range(100, 160)]
    third = [part(number) for number in range(160, 260)]
    labels: list[str | None] = [f"b{number}" for number in range(30)]
    if has_mistakes:
        second[41] = '{"type": "Part", "data": {"sku": 7}}'
        third[66] = '{"type": "Part", "data": {"sku": "broken"'
        third[90] = part(3)
        labels[23] = None
    rows = io.BytesIO()
    parquet.write_table(pa.table({"label": labels}), rows, row_group_size=7)
    return {
        "2024/1.jsonl": "\n".join(first).encode(),
        "2024/2.jsonl.gz": gzip.compress("\n".join(second).encode(), mtime=0),
        "2024/3.jsonl": "\n".join(third).encode(),
        "Note.csv": b"id,text\n" + b"".join(b'n%d,"a\nb"\n' % number for number in range(15)),
        "nodes/Bin.parquet": rows.getvalue(),
        "_SUCCESS": b"",
        "_temporary/4.jsonl": part(999).encode(),
        "2024/.3.jsonl.crc": b"crc",
    }


MISTAKES = [
    ("2024/2.jsonl.gz", 42, "value"),
    ("2024/3.jsonl", 67, "json"),
    ("2024/3.jsonl", 91, "key"),
    ("nodes/Bin.parquet", 24, "required"),
]
"""File, line or row, and rule of each mistake."""


def mistakes(report: list[str]) -> list[tuple[str, int, str]]:
    """The mistakes in the report of a refused load."""
    listed = json.loads("".join(report))["violations"]
    return [
        (
            "/".join(item["file"].split("/")[-2:]),
            item.get("line") or item.get("row"),
            item["rule"],
        )
        for item in listed
    ]
