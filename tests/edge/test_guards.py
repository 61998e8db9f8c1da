"""Wrappers around a remote that guard a sync: a deadline, a watcher, a mount."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mire.edge.local import LocalRemote
from mire.edge.memory import MemoryRemote
from mire.edge.mounted import Mounted
from mire.edge.remote import Absent, Remote
from mire.edge.retrying import Patience, Retrying
from mire.edge.timed import Timed
from mire.edge.watched import Watched
from mire.errors import RemoteError

CALLS: dict[str, Callable[[Remote], Any]] = {
    "get": lambda remote: remote.get("a"),
    "get_if_changed": lambda remote: remote.get_if_changed("a", "x"),
    "get_stream": lambda remote: list(remote.get_stream("a").chunks),
    "head": lambda remote: remote.head("a"),
    "put": lambda remote: remote.put("b", b"1"),
    "put_if": lambda remote: remote.put_if("c", b"1", Absent()),
    "put_stream": lambda remote: remote.put_stream("d", lambda: [b"1"]),
    "put_stream_if": lambda remote: remote.put_stream_if("f", lambda: [b"1"], Absent()),
    "delete": lambda remote: remote.delete("a"),
    "delete_if": lambda remote: remote.delete_if("a", "x"),
    "list": lambda remote: list(remote.list()),
    "list_level": lambda remote: remote.list_level(),
    "copy": lambda remote: remote.copy("a", "e"),
    "server_time_ms": lambda remote: remote.server_time_ms(),
}


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def late() -> RemoteError:
    """The error of a sync that took too long."""
    return RemoteError("too late", kind="sync_timeout")


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_asked_after_the_deadline(name: str) -> None:
    """Every call passes before it and is refused afterwards, without reaching the store."""
    store, clock = MemoryRemote(), Clock()
    store.put("a", b"1")
    remote = Timed(store, 100, late, now_ms=clock)
    clock.now = 100
    CALLS[name](remote)
    clock.now = 101
    before = [(stat.key, stat.fingerprint) for stat in store.list()]
    with pytest.raises(RemoteError, match="too late"):
        CALLS[name](remote)
    assert [(stat.key, stat.fingerprint) for stat in store.list()] == before


def test_a_stream_ends_at_the_deadline() -> None:
    """A large object does not go on for ever, in either direction."""
    store, clock = MemoryRemote(), Clock()
    store.put("a", b"12")

    def slow() -> Any:
        yield b"1"
        clock.now = 101
        yield b"2"

    remote = Timed(store, 100, late, now_ms=clock)
    stream = remote.get_stream("a")
    clock.now = 101
    with pytest.raises(RemoteError, match="too late"):
        list(stream.chunks)
    clock.now = 0
    with pytest.raises(RemoteError, match="too late"):
        Timed(store, 100, late, now_ms=clock).put_stream("b", slow)


def test_the_deadline_ends_retries() -> None:
    """Inside of a patience every try is bound: a store that fails is not asked once the time is up."""
    clock = Clock()
    asked: list[float] = []

    class Failing(MemoryRemote):
        """A store that takes its time and fails."""

        def head(self, key: str) -> Any:
            asked.append(clock.now)
            clock.now += 60
            raise RemoteError(f"no answer about {key}", transient=True)

    patient = Retrying(Failing(), Patience(pause=lambda _: None, now_ms=clock))
    with pytest.raises(RemoteError, match="too late"):
        patient.with_inside(lambda inside: Timed(inside, 100, late, now_ms=clock)).head("a")
    assert asked == [0, 60]


def test_a_watcher_counts_objects() -> None:
    """What is brought, stored and removed is counted; looking is not."""
    seen: list[int] = []
    remote = Watched(MemoryRemote(), seen.append)
    remote.put("a", b"1")
    remote.get("a")
    remote.head("a")
    list(remote.list())
    remote.delete("a")
    remote.put_if("a", b"1", Absent())
    remote.put_stream_if("b", lambda: [b"1"], Absent())
    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", CALLS)
def test_a_directory_that_is_away_is_out_of_reach(name: str, tmp_path: Path) -> None:
    """Missing, empty or another one: every call says so, may be tried again, and creates nothing."""
    share = tmp_path / "share"
    remote = Mounted(LocalRemote(str(share)), str(share), ("_control/mire-store", "id-1"))

    def refuse(says: str) -> None:
        with pytest.raises(RemoteError, match=says) as refused:
            CALLS[name](remote)
        assert (refused.value.kind, refused.value.transient) == ("unreachable", True)

    refuse("is not there")
    assert not share.exists()
    share.mkdir()
    refuse("not mounted")
    assert list(share.iterdir()) == []
    (share / "_control").mkdir()
    (share / "_control/mire-store").write_text("id-2")
    refuse("another one than was set up")
    (share / "_control/mire-store").write_text("id-1\n")
    (share / "a").write_text("1")
    CALLS[name](remote)
