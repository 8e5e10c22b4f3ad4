"""Identities."""

from __future__ import annotations

from omnigraph_core.ids import (
    edge_table_key,
    fnv1a64,
    key_id,
    new_ulid,
    node_table_key,
    table_directory,
)


def test_fnv1a64_known_values() -> None:
    assert fnv1a64("") == 0xCBF29CE484222325
    assert fnv1a64("alpha") == 0x8AC625BB85ED202B


def test_directories_are_sixteen_hex_digits() -> None:
    assert table_directory("alpha") == "8ac625bb85ed202b"
    assert all(len(table_directory(f"T{n}")) == 16 for n in range(500))


def test_ulids_are_fresh_and_sort_by_time() -> None:
    made = [new_ulid() for _ in range(50)]
    assert len(set(made)) == 50
    assert all(len(item) == 26 for item in made)
    assert [item[:10] for item in made] == sorted(item[:10] for item in made)


def test_table_keys() -> None:
    assert (node_table_key("Part"), edge_table_key("Fits")) == ("node:Part", "edge:Fits")


def test_composite_ids_never_collide() -> None:
    tuples = [["a", "b"], ["a,b", ""], ['a","b', ""], ["", "a,b"], ["ä", "b"]]
    assert len({key_id(texts) for texts in tuples}) == len(tuples)
    assert key_id(["ä", "b"]) == '["ä","b"]'
