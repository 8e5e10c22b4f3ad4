"""A text has one hash, however it is hashed, and texts that differ hardly ever share one."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.topology.text_hash import hash_text, hash_texts

LENGTHS = [0, 1, 7, 8, 9, 16, 26, 36, 127, 128, 129, 135, 136, 137, 300]
TEXTS = st.one_of(
    st.text(max_size=12),
    st.builds(lambda length, mark: mark * length, st.sampled_from(LENGTHS), st.sampled_from("aé")),
)


@given(st.lists(TEXTS, max_size=30), st.integers(0, 5))
def test_one_and_many_are_hashed_alike(texts: list[str], skipped: int) -> None:
    array = pa.array(texts, pa.utf8()).slice(skipped)
    assert hash_texts(array).tolist() == [hash_text(text) for text in texts[skipped:]]


def test_nulls_disturb_no_others() -> None:
    hashes = hash_texts(pa.array(["bolt", None, "nut"]))
    assert hashes[[0, 2]].tolist() == [hash_text("bolt"), hash_text("nut")]


def test_hashes_have_32_bits_and_spread() -> None:
    texts = [f"01ARZ3NDEKTSV4RRFF{n:08}" for n in range(50_000)]
    hashes = hash_texts(pa.array(texts))
    assert int(hashes.max()) < 2**32
    assert len(set(hashes.tolist())) > 49_990
    assert len({value >> 22 for value in hashes.tolist()}) == 1024


def test_zeros_at_the_end_count() -> None:
    assert len({hash_text("a" + "\0" * count) for count in range(20)}) == 20


def test_a_text_that_is_no_unicode_has_a_hash() -> None:
    assert hash_text("\ud800") != hash_text("")
