"""Where a stored vector came from, as one number: the column `<vector>#origin` holds it.

A vector whose origin differs from the fingerprint of its source text today is stale. The numbers
are kept in graphs: how they are made must never change.
"""

from __future__ import annotations

import hashlib


def fingerprint(model: str, text: str) -> int:
    """A signed 64-bit hash of the model and the text a vector was made from.

    >>> fingerprint("mock", "alpha")
    666877664366122031
    >>> fingerprint("mock", "alpha") == fingerprint("mocka", "lpha")
    False
    """
    # The length keeps apart model and text: no two pairs are written alike.
    content = f"{len(model)}:{model}{text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big", signed=True)
