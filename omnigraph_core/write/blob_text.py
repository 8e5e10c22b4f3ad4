"""The text form of a blob: `base64:<data>` for bytes, a URI for bytes that are kept elsewhere."""

from __future__ import annotations

import binascii
import re
from typing import Final

from omnigraph_core.values import ValueProblem

BASE64_PREFIX: Final = "base64:"
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:[^\s\x00-\x1f\x7f]+")
_SHOWN: Final = 40


def parse_blob(text: str) -> tuple[bytes | None, str | None]:
    """The bytes a text holds, or the URI it is; exactly one of the two.

    >>> parse_blob("base64:AQI="), parse_blob("s3://bucket/drawing.png")
    ((b'\\x01\\x02', None), (None, 's3://bucket/drawing.png'))

    Raises:
        ValueProblem: it is neither, or the base64 is not exact.
    """
    if text.startswith(BASE64_PREFIX):
        return _decode(text), None
    # A scheme has two letters at least: `C:\drawing.png` is a path, and paths mean nothing later.
    if _URI.fullmatch(text) and not text.lower().startswith(BASE64_PREFIX):
        return None, text
    raise ValueProblem(f"expected a blob as base64:<data> or a URI, found text {_shortened(text)}")


def format_blob(data: bytes) -> str:
    """The text form of bytes.

    >>> format_blob(b"\\x01\\x02")
    'base64:AQI='
    """
    return BASE64_PREFIX + binascii.b2a_base64(data, newline=False).decode("ascii")


def _decode(text: str) -> bytes:
    try:
        encoded = text[len(BASE64_PREFIX) :].encode("ascii")
        data = binascii.a2b_base64(encoded, strict_mode=True)
    except (UnicodeEncodeError, binascii.Error) as problem:
        raise ValueProblem(f"not valid base64: {_shortened(text)} ({problem})") from problem
    # Unused bits of the last character must be zero, or two texts would mean the same bytes.
    if len(encoded) % 4 or binascii.b2a_base64(data, newline=False) != encoded:
        raise ValueProblem(f"not valid base64: {_shortened(text)} (wrong padding)")
    return data


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
