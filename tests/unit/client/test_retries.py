"""When a request is sent again."""

from __future__ import annotations

from omnigraph_core.client.retries import ATTEMPTS, Attempt, Failure, retry_after
from tests.support.cases import each

READ = Attempt(1, is_read=True, is_keyed=False)
KEYED = Attempt(1, is_read=False, is_keyed=True)
PLAIN = Attempt(1, is_read=False, is_keyed=False)


@each(
    ("failure", "read", "keyed", "plain"),
    [
        (Failure.NOT_SENT, True, True, True),
        (Failure.REFUSED, True, True, True),
        (Failure.LOST, True, True, False),
        (Failure.UNAVAILABLE, True, False, False),
        (Failure.UNDER_WAY, False, False, False),
    ],
)
def test_what_may_be_repeated(failure: Failure, read: bool, keyed: bool, plain: bool) -> None:
    assert READ.may_repeat(failure) is read
    assert KEYED.may_repeat(failure) is keyed
    assert PLAIN.may_repeat(failure) is plain


def test_a_repeat_may_meet_the_first_request() -> None:
    assert Attempt(2, is_read=False, is_keyed=True).may_repeat(Failure.UNDER_WAY)


def test_there_is_an_end() -> None:
    last = Attempt(ATTEMPTS, is_read=True, is_keyed=False)
    assert not any(last.may_repeat(failure) for failure in Failure)


def test_waits_grow_and_are_spread() -> None:
    waits = [Attempt(number, is_read=True, is_keyed=False).wait() for number in (1, 3, 30)]
    for wait, longest in zip(waits, (0.2, 0.8, 5.0), strict=True):
        assert wait is not None
        assert longest / 2 <= wait <= longest
    assert len({READ.wait() for _ in range(20)}) > 1


def test_what_the_server_asks_for_comes_first() -> None:
    assert READ.wait(2.0) == 2.0
    assert READ.wait(3600.0) is None
    assert retry_after(" 7 ") == 7.0
    assert retry_after("soon") is None
