"""The text form of blobs."""

from __future__ import annotations

import pytest

from omnigraph_core.values import ValueProblem
from omnigraph_core.write.blob_text import format_blob, parse_blob
from tests.support.cases import each


@each("data", [b"", b"a", b"ab", b"abc", bytes(range(256))])
def test_bytes_come_back(data: bytes) -> None:
    assert parse_blob(format_blob(data)) == (data, None)


@each("uri", ["s3://bucket/a.png", "urn:part:7", "file:///a", "ab:c"])
def test_uri(uri: str) -> None:
    assert parse_blob(uri) == (None, uri)


@each(
    "text",
    [
        "",
        "drawing.png",
        r"C:\drawing.png",
        "http:",
        "s3://a b",
        "base64:AQI",  # not padded
        "base64:AQI==",
        "base64:AQ==AQ==",
        "base64:AR==",  # unused bits are set
        "base64:A QI=",
        "base64:AQI=\n",
        "base64:-_8=",
        "base64:é",
        "BASE64:AQI=",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueProblem):
        parse_blob(text)


def test_a_long_text_is_shortened() -> None:
    with pytest.raises(ValueProblem) as caught:
        parse_blob("x" * 10_000)
    assert len(str(caught.value)) < 200
