"""The rule that says which versions of a branch stay."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.constants import CLEANUP_GRACE_SECONDS
from omnigraph_core.errors import ConfigError
from omnigraph_core.history.retention import Retention, Version, retained, retention
from omnigraph_core.settings import PUBLISH_LEASE
from tests.support.cases import each

HOUR = 3600.0
NOW = 100 * HOUR


def version(number: int, hours_old: float | None, written: float | None = None) -> Version:
    """A version that says it is so old; by the store's clock it is as old, or as `written` says."""
    moment = None if hours_old is None else NOW - hours_old * HOUR
    age = written if written is not None else hours_old or 0.0
    return Version(number, moment, NOW - age * HOUR)


def hourly(count: int) -> list[Version]:
    """Versions 1 to `count`, one an hour; the newest is an hour old."""
    return [version(number, count + 1 - number) for number in range(1, count + 1)]


def policy(
    keep: int | None = None, older_than_hours: float | None = None, grace_hours: float = 0.5
) -> Retention:
    older_than = None if older_than_hours is None else older_than_hours * HOUR
    return Retention(keep, older_than, grace_hours * HOUR)


def kept(versions: list[Version], rule: Retention) -> list[int]:
    return sorted(retained(versions, rule, now=NOW))


def test_keep_counts_versions_that_exist() -> None:
    sparse = [version(3, 9), version(40, 8), version(41, 7), version(90, 6)]
    assert kept(sparse, policy(keep=2)) == [41, 90]
    assert kept(sparse, policy(keep=3)) == [40, 41, 90]
    assert kept(sparse, policy(keep=100)) == [3, 40, 41, 90]


def test_older_than_keeps_the_young_ones_and_the_newest() -> None:
    assert kept(hourly(5), policy(older_than_hours=2.5)) == [4, 5]
    assert kept(hourly(5), policy(older_than_hours=0)) == [5]
    assert kept(hourly(5), policy(older_than_hours=99)) == [1, 2, 3, 4, 5]


def test_a_version_as_old_as_the_limit_goes() -> None:
    versions = [version(1, 3), version(2, 2), version(3, 1)]
    assert kept(versions, policy(older_than_hours=2)) == [3]
    assert kept(versions, policy(older_than_hours=2 + 1e-9)) == [2, 3]


def test_with_both_only_what_fails_both_goes() -> None:
    assert kept(hourly(6), policy(keep=4, older_than_hours=2.5)) == [3, 4, 5, 6]
    assert kept(hourly(6), policy(keep=1, older_than_hours=2.5)) == [5, 6]


def test_grace_counts_from_when_a_version_was_superseded() -> None:
    """Version 2 is ten hours old, but it was the newest until half an hour ago."""
    versions = [version(1, 20), version(2, 10), version(3, 0.5)]
    assert kept(versions, policy(keep=1, grace_hours=1)) == [2, 3]
    assert kept(versions, policy(keep=1, grace_hours=0.25)) == [3]


def test_what_cannot_be_dated_is_not_old() -> None:
    versions = [version(1, 9), version(2, None, written=8), version(3, 7), version(4, 6)]
    assert kept(versions, policy(older_than_hours=1)) == [2, 4]
    assert kept(versions, policy(keep=1)) == [4]


def test_the_grace_is_measured_by_the_clock_of_the_store() -> None:
    """A writer three days behind has just superseded 1; one a year ahead supersedes nothing for
    longer."""
    behind = [version(1, 90, written=9), version(2, 80, written=0.1), version(3, 80, written=0.1)]
    assert kept(behind, policy(keep=1, grace_hours=1)) == [1, 2, 3]
    ahead = [version(1, -9000, written=9), version(2, -9000, written=8), version(3, 7)]
    assert kept(ahead, policy(older_than_hours=2)) == [3]


def test_nothing_to_choose_from() -> None:
    assert kept([], policy(keep=3)) == []
    assert kept([version(7, 50)], policy(older_than_hours=0)) == [7]


ages = st.lists(st.none() | st.floats(0, 50), max_size=12)


@given(ages, st.none() | st.integers(1, 15), st.none() | st.floats(0, 60), st.floats(0, 10))
def test_laws(
    hours: list[float | None], keep: int | None, older_than: float | None, grace: float
) -> None:
    versions = [version(number, age) for number, age in enumerate(hours, start=1)]
    stays = retained(versions, policy(keep, older_than, grace), now=NOW)
    numbers = [item.number for item in versions]
    assert stays <= set(numbers)
    assert set(numbers[-(keep or 1) :]) <= stays, "the newest are never taken"
    more = retained(
        versions, policy(None if keep is None else keep + 1, older_than, grace), now=NOW
    )
    assert stays <= more, "keeping more keeps all the rest"
    assert stays <= retained(versions, policy(keep, older_than, grace + 1), now=NOW)
    again = retained(
        [v for v in versions if v.number in stays], policy(keep, older_than, 0), now=NOW
    )
    assert again <= stays, "what goes does not come back"


def test_arguments() -> None:
    grace = timedelta(seconds=2 * PUBLISH_LEASE.default)
    assert retention(3, timedelta(days=1), grace) == Retention(3, 86_400.0, 43_200.0)
    assert retention(1, None) == Retention(1, None, CLEANUP_GRACE_SECONDS.value)
    assert retention(None, timedelta(0)).older_than == 0.0


@each(
    ("keep", "older_than", "grace", "told"),
    [
        (None, None, None, ["give `keep`, `older_than` or both"]),
        (0, None, None, ["`keep` is 0"]),
        (-3, None, None, ["`keep` is -3"]),
        (None, timedelta(seconds=-1), None, ["`older_than` must not be negative"]),
        (1, None, timedelta(0), ["`grace` is 0 s", "43200 s"]),
        (1, None, timedelta(seconds=43_199.9), ["`grace` is 43199.9 s"]),
        (None, None, timedelta(seconds=1), ["give `keep`", "`grace` is 1 s"]),
        (0, timedelta(seconds=-1), timedelta(0), ["`keep`", "`older_than`", "`grace`"]),
    ],
)
def test_wrong_arguments_are_all_told(
    keep: int | None, older_than: timedelta | None, grace: timedelta | None, told: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        retention(keep, older_than, grace)
    assert [text for text in told if text not in caught.value.message] == []


def test_grace_follows_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PUBLISH_LEASE.name, "0.05")
    assert retention(1, None, timedelta(seconds=0.1)).grace == 0.1
    monkeypatch.setenv(PUBLISH_LEASE.name, "86400")
    with pytest.raises(ConfigError, match="172800 s"):
        retention(1, None)
