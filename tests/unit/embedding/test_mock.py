"""Mock vectors are the documented ones, however many are made at once."""

from __future__ import annotations

import random

import numpy as np

from omnigraph_core.embedding.mock import mock_vectors
from omnigraph_core.ids import fnv1a64
from tests.support.cases import each

DOCUMENTED = [
    ("alpha", "-0.5420488, -0.47179943, 0.16090508, 0.67653376"),
    (
        "alpha",
        "-0.37576953, -0.32706988, 0.11154571, 0.46899974, "
        "-0.46652523, 0.14769393, -0.50827646, -0.14702086",
    ),
    ("beta", "0.6659633, -0.5622195, -0.41636753, 0.25892115"),
    ("", "-0.43294, -0.7642615, -0.32645237, 0.34913632"),
    ("héllo", "0.20228654, 0.64871705, -0.37701112, -0.62937194"),
]


@each(("text", "numbers"), DOCUMENTED)
def test_documented_vectors(text: str, numbers: str) -> None:
    expected = numbers.split(", ")
    found = mock_vectors([text], len(expected))
    assert found.dtype == np.float32
    assert [str(number) for number in found[0]] == expected


def plain_vector(text: str, dimension: int) -> list[np.float32]:
    """The same, a number at a time."""
    seed, numbers = fnv1a64(text), []
    for _ in range(dimension):
        seed ^= seed << 13 & (2**64 - 1)
        seed ^= seed >> 7
        seed ^= seed << 17 & (2**64 - 1)
        numbers.append(np.float32(float(seed) / float(2**64 - 1)) * np.float32(2) - np.float32(1))
    total = 0.0
    for number in numbers:
        total += float(number) ** 2
    norm = np.float32(total**0.5)
    return [number / norm for number in numbers]


@each("count", [0, 1, 31, 32, 33, 34, 200])
def test_many_texts_of_any_length(count: int) -> None:
    choose = random.Random(count)
    texts = [
        "".join(chr(choose.randrange(32, 900)) for _ in range(choose.choice([0, 1, 2, 30, 300])))
        for _ in range(count)
    ]
    found = mock_vectors(texts, 7)
    assert found.shape == (count, 7)
    assert found.tolist() == [plain_vector(text, 7) for text in texts]


def test_one_dimension() -> None:
    assert mock_vectors(["alpha", "beta"], 1).tolist() == [[-1.0], [1.0]]
