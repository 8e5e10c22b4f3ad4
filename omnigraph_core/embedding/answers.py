"""What providers send back, checked: HTTP answers in, unit vectors or a failure out.

Nothing a provider says is believed: number, length and value of vectors are what was asked for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.embedding.client import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_MISSING: Final = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_IMPLEMENTED,
)
_MAX_SHOWN: Final = 500
"""Characters of a provider's own words in a message."""


def read_json(content: bytes) -> object | Failure:
    """The body of a good answer."""
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError):  # the former also for bytes that are no UTF-8
        return Failure(f"expected a JSON answer, found {_shown(content)}")
    return document


def unit_vectors(
    given: Sequence[object], count: int, dimension: int
) -> NDArray[np.float32] | Failure:
    """The vectors of an answer, each of length 1."""
    if len(given) != count:
        return Failure(f"expected {count} vectors, found {len(given)}")
    rows = np.empty((count, dimension), np.float64)
    for position, values in enumerate(given):
        vector = _numbers(values)
        if vector is None:
            return Failure(f"vector {position}: expected a list of numbers")
        if len(vector) != dimension:
            return Failure(f"vector {position}: expected {dimension} numbers, found {len(vector)}")
        rows[position] = vector
    return _normalised(rows)


def status_failure(status: int, headers: Mapping[str, str], content: bytes) -> Failure:
    """What an answer other than success means."""
    document = _parsed(content)
    return Failure(
        f"HTTP {status}: {_reason(document) or _shown(content)}",
        is_retryable=status == HTTPStatus.TOO_MANY_REQUESTS
        or status >= HTTPStatus.INTERNAL_SERVER_ERROR,
        retry_after=_retry_after(headers) or _retry_delay(document),
        is_throttled=status == HTTPStatus.TOO_MANY_REQUESTS,
        is_denied=status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN),
        is_missing=status in _MISSING,
    )


def _numbers(values: object) -> NDArray[np.float64] | None:
    if not isinstance(values, list):
        return None
    if not all(type(value) in (int, float) for value in values):
        return None
    try:
        return np.array(values, np.float64)
    except OverflowError:  # an integer no double can hold
        return None


def _normalised(rows: NDArray[np.float64]) -> NDArray[np.float32] | Failure:
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        return Failure(f"vector {int(np.argmin(finite))}: expected finite numbers")
    # Scaled first: the square of a great number would overflow.
    peaks = np.abs(rows).max(axis=1)
    if not peaks.all():
        return Failure(f"vector {int(np.argmin(peaks))}: expected a direction, found only zeros")
    rows /= peaks[:, np.newaxis]
    rows /= np.linalg.norm(rows, axis=1)[:, np.newaxis]
    return rows.astype(np.float32)


def _parsed(content: bytes) -> object:
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return document


def _reason(document: object) -> str | None:
    """The provider's own words, wherever its kind of service puts them."""
    if not isinstance(document, Mapping):
        return None
    error = document.get("error")
    places = (
        error.get("message") if isinstance(error, Mapping) else error,
        document.get("message"),
    )
    words = next((place for place in places if isinstance(place, str) and place.strip()), None)
    return None if words is None else words.strip()[:_MAX_SHOWN]


def _shown(content: bytes) -> str:
    text = content[: 4 * _MAX_SHOWN].decode("utf-8", "replace").strip()[:_MAX_SHOWN]
    return repr(text) if text else "an empty answer"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a number of them or from a date."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):  # no date, or one of a year no clock knows
        return None
    return max(0.0, moment - time.time())


def _retry_delay(document: object) -> float | None:
    """Seconds, from the details of a Gemini error: `{"retryDelay": "34s"}`."""
    error = document.get("error") if isinstance(document, Mapping) else None
    details = error.get("details") if isinstance(error, Mapping) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, Mapping) else None
        text = delay.removesuffix("s") if isinstance(delay, str) else ""
        if text.isascii() and text.replace(".", "", 1).isdigit():
            return float(text)
    return None
