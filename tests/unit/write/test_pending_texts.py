"""The set of keys that a backfill by batches tells texts apart with."""

from __future__ import annotations

import numpy as np

from omnigraph_core.write.pending_texts import KeySet, PendingText, key_numbers


def rows(*numbers: int) -> list[PendingText]:
    return [
        PendingText("Note", f"n{at}", "topic", f"text {number}", number.to_bytes(8, "little") * 4)
        for at, number in enumerate(numbers)
    ]


def taken(keys: KeySet, *numbers: int) -> list[str]:
    return [row.text for row in keys.take_new(rows(*numbers))]


def test_every_key_is_taken_once() -> None:
    keys = KeySet(key_numbers([row.key for row in rows(3, 1, 3)]))
    assert taken(keys, 5, 3, 4, 5, 1) == ["text 5", "text 4"]
    assert taken(keys, 5, 4, 3, 2) == ["text 2"]
    assert taken(keys) == []
    assert taken(KeySet(np.array([], np.uint64)), 7, 7) == ["text 7"]


def test_many_keys_are_in_few_runs() -> None:
    keys = KeySet(np.array([], np.uint64))
    rng = np.random.default_rng(1)
    given = rng.integers(0, 5_000, 20_000).tolist()
    found = [
        text for at in range(0, len(given), 100) for text in taken(keys, *given[at : at + 100])
    ]
    assert len(found) == len(set(found)) == len(set(given))
    assert len(keys._runs) <= 13
