"""Calls with a deadline."""

import threading

import pytest

from mire.edge.deadline import gather
from mire.errors import DeniedError, RemoteError


def test_answers_come_in_the_order_of_the_calls() -> None:
    """Each call's answer stands in its place, None among them, and an error of ours is an answer."""

    def deny() -> int:
        raise DeniedError("no")

    first, error, nothing = gather([lambda: 1, deny, lambda: None], deadline_ms=60_000, what="x")
    assert (first, nothing) == (1, None)
    assert isinstance(error, DeniedError)


def test_calls_are_made_at_the_same_time() -> None:
    """Two calls that wait for each other both end."""
    met = threading.Barrier(2)
    assert gather([met.wait, met.wait], deadline_ms=60_000, what="x") in ([0, 1], [1, 0])


def test_what_is_late_is_an_error() -> None:
    """A call that does not end is not waited for; the others' answers count."""
    never = threading.Event()
    late, early = gather([never.wait, lambda: True], deadline_ms=50, what="reading it")
    assert early is True
    assert isinstance(late, RemoteError)
    assert (late.kind, late.transient) == ("timeout", True)
    assert "reading it was not answered in 0.05 s" in late.message
    never.set()


def test_without_time_nothing_is_called() -> None:
    """A deadline that is over makes no call."""
    called: list[int] = []
    (late,) = gather([lambda: called.append(1)], deadline_ms=0, what="x")
    assert isinstance(late, RemoteError)
    assert called == []


def test_a_bug_is_raised() -> None:
    """An error that is not one of ours reaches whoever waits."""

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        gather([fail], deadline_ms=60_000, what="x")
