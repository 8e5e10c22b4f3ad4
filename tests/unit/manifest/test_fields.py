"""Typed reads of catalog values."""

from __future__ import annotations

from enum import StrEnum

import pytest

from omnigraph_core.errors import StorageError
from omnigraph_core.manifest.fields import Fields, damaged, json_text
from tests.support.cases import each


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def fields(**values: object) -> Fields:
    return Fields(values, "row `r`", "s3://lake/g")


def test_damage_says_where_and_what_to_do() -> None:
    problem = damaged("s3://lake/g", "all is gone")
    assert problem.message == "the catalog at s3://lake/g is damaged: all is gone"
    assert problem.hint == "restore it from a copy of the graph"
    assert not problem.retryable


def test_reads() -> None:
    given = fields(a="x", n=7, d=str(2**64 - 1), c="blue", j='{"k":"v"}', gone=None)
    assert given.text("a") == "x"
    assert given.optional_text("a") == "x"
    assert given.optional_text("gone") is None
    assert given.optional_text("missing") is None
    assert given.whole("n") == 7
    assert given.decimal("d") == 2**64 - 1
    assert given.member("c", Colour) is Colour.BLUE
    assert given.json("j").text("k") == "v"
    given.check("a", "x")


@each("value", [-1, 2**64, True, 1.0, "1"])
def test_no_whole_number(value: object) -> None:
    with pytest.raises(StorageError, match=r"n of row `r` is .*, expected a whole number from 0"):
        fields(n=value).whole("n")


def test_the_least_whole_number() -> None:
    assert fields(n=1).whole("n", least=1) == 1
    with pytest.raises(StorageError, match="expected a whole number from 1"):
        fields(n=0).whole("n", least=1)


@each("text", ["", "0", "01", "-1", "1.0", "٣", "1\n", str(2**64), "9" * 5000])
def test_no_decimal(text: str) -> None:
    with pytest.raises(StorageError, match="expected a number in decimal digits"):
        fields(n=text).decimal("n")


@each("text", ["", "{", "{'a': 1}", "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_no_json(text: str) -> None:
    with pytest.raises(StorageError, match="metadata of row `r` is not JSON"):
        fields(metadata=text).json("metadata")


@each("text", ["[]", "1", '"x"', "NaN"])
def test_no_object(text: str) -> None:
    with pytest.raises(StorageError, match="expected an object"):
        fields(metadata=text).json("metadata")


def test_problems_inside_json_say_whose_it_is() -> None:
    inner = fields(metadata='{"a":null,"b":1}').json("metadata")
    with pytest.raises(StorageError, match="metadata of row `r` has no a"):
        inner.text("a")
    with pytest.raises(StorageError, match="b of metadata of row `r` is 1, expected text"):
        inner.optional_text("b")


def test_no_member() -> None:
    with pytest.raises(StorageError, match=r"c of row `r` is 'green', expected red \| blue"):
        fields(c="green").member("c", Colour)


def test_another_text() -> None:
    with pytest.raises(StorageError, match="a of row `r` is 'y', expected `x`"):
        fields(a="y").check("a", "x")


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(StorageError) as caught:
        fields(a="y" * 1000).check("a", "x")
    assert len(caught.value.message) < 200


def test_json_leaves_out_what_is_none() -> None:
    assert json_text({"a": "ü", "b": None, "c": 1}) == '{"a":"\\u00fc","c":1}'
