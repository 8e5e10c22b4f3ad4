"""What comes in is the same bytes however they are cut, packed or not."""

from __future__ import annotations

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.errors import ConfigError
from omnigraph_core.server.receiving import Budget, Intake


class Kept(io.BytesIO):
    pass


def taken(pieces: list[bytes]) -> bytes:
    file, budget = Kept(), Budget(has_digest=True)
    intake = Intake(file, budget)
    for piece in pieces:
        intake.write(piece)
    intake.finish()
    assert budget.size == len(file.getvalue())
    return file.read()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted(place % (len(data) + 1) for place in places)
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


@given(st.lists(st.binary(max_size=400), min_size=1, max_size=3), st.lists(st.integers(0, 10**6)))
def test_packed_bytes_are_unpacked_wherever_they_are_cut(
    members: list[bytes], places: list[int]
) -> None:
    whole = b"x" + b"".join(members)  # not packed itself
    packed = gzip.compress(b"x") + b"".join(map(gzip.compress, members))
    assert taken(cut(packed, places)) == whole
    assert taken(cut(whole, places)) == whole


@given(st.binary(min_size=1, max_size=400), st.integers(1, 10**6))
def test_packed_bytes_that_break_off_are_refused(data: bytes, place: int) -> None:
    packed = gzip.compress(data)
    short = packed[: 2 + place % (len(packed) - 2)]
    if short.startswith(gzip.compress(b"")[:2]) and not data.startswith(b"\x1f\x8b"):
        with pytest.raises(ConfigError):
            taken([short])


def test_an_empty_body_is_empty() -> None:
    assert taken([]) == b""
    assert taken([b"{"]) == b"{"
