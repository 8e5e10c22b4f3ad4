"""Fingerprints are kept in graphs: they must stay what they are."""

from __future__ import annotations

from omnigraph_core.embedding.origin import fingerprint


def test_known_fingerprints() -> None:
    assert fingerprint("mock", "alpha") == 666877664366122031
    assert fingerprint("gemini-embedding-2-preview", "héllo") == 7760077510526941449
    assert fingerprint("mock", "") == -5116921715746774962


def test_model_and_text_both_count() -> None:
    made = {fingerprint(model, text) for model in ("a", "ab", "") for text in ("b", "", "ab")}
    assert len(made) == 9


def test_the_number_fits_its_column() -> None:
    numbers = [fingerprint("mock", str(number)) for number in range(200)]
    assert all(-(2**63) <= number < 2**63 for number in numbers)
    assert min(numbers) < 0 < max(numbers)
