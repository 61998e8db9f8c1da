"""A push or pull that dies, or loses an answer, at any step: the next one converges, nothing is lost or invented."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from mire.edge.remote import Stat
from mire.edge.wrap import Wrapper
from mire.errors import NotFoundError, RemoteError
from sync_world import Client, Hooked, World, data, latest

T = TypeVar("T")
SCRIPT = Path(__file__).with_name("sync_crash.py")


@pytest.mark.parametrize("form", ["v1", "v2"])
@pytest.mark.parametrize("scenario", ["push", "pull", "first-push"])
def test_dying_at_any_step(scenario: str, form: str, fast_path: Path) -> None:
    """Whatever the step, others see old or new values, marks wait for what is not published, a retry finishes it."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), scenario, form, str(fast_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 15


class Failing(Wrapper):
    """A remote one of whose requests fails, before or after it happened."""

    def __init__(self, world: World) -> None:
        super().__init__(world.remote)
        self._mutex = threading.Lock()
        self.left = 0
        self.is_done_first = False

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        with self._mutex:
            self.left -= 1
            is_hit = self.left == 0
        if not is_hit:
            return call()
        if self.is_done_first:
            with suppress(NotFoundError):
                call()
        raise RemoteError(f"{operation} of {key} fails, as told", transient=True)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix."""
        return self._around("list", prefix, lambda: iter([*self._remote.list(prefix, after=after)]))


def scene(world: World, failing: Failing) -> tuple[Client, Client]:
    """Two caches that agree, one of which has changes to push."""
    one, other = world.client(failing), world.client()
    one.version("m", 1, "one")
    one.write("logs/a", "old")
    one.write("logs/b", "going")
    one.push()
    other.pull()
    one.version("m", 2, "two")
    one.version("n", 1, "new")
    one.write("logs/a", "new")
    one.remove("logs/b")
    return one, other


@pytest.mark.parametrize("is_done_first", [False, True])
@pytest.mark.parametrize("form", ["v1", "v2"])
def test_a_push_whose_request_fails(worlds: Callable[..., World], form: str, *, is_done_first: bool) -> None:
    """Whichever request it is, every mark stays, every entry has its object, and pushing again publishes all of it."""
    for number in range(1, 100):
        here = worlds(sharded=form == "v2", two_phase=is_done_first)
        failing = Failing(here)
        one, other = scene(here, failing)
        marks, before = one.marks(), other.files()
        failing.left, failing.is_done_first = number, is_done_first
        try:
            one.push()
        except RemoteError:
            assert one.marks() == marks, number
        else:
            assert number > 10
            return
        here.check_present()
        other.pull()
        for rel, content in other.files().items():
            assert content in (before.get(rel), one.read(rel)), (number, rel)
        assert one.push().is_whole, number
        assert not one.is_dirty
        here.check()
        assert here.objects() == one.files(), number
        other.pull()
        assert other.files() == one.files(), number
        assert one.pull().count == 0
    pytest.fail("a push never came to its end")


@pytest.mark.parametrize("is_done_first", [False, True])
@pytest.mark.parametrize("scope", [(), ("m",)], ids=["whole", "scoped"])
def test_a_pull_whose_request_fails(
    plain: World, worlds: Callable[..., World], scope: tuple[str, ...], *, is_done_first: bool
) -> None:
    """Whichever request it is, files are whole, old or new, and pulling again brings all of it."""
    for number in range(1, 100):
        here = worlds(sharded=plain.sharded)
        failing = Failing(here)
        one, other = scene(here, failing)
        reader = other.on(failing)
        before = reader.files()
        one.push()
        failing.left, failing.is_done_first = number, is_done_first
        try:
            reader.pull(*scope)
        except RemoteError:
            pass
        else:
            assert number > 5
            return
        for rel, content in reader.files().items():
            assert content in (before.get(rel), one.read(rel)), (number, rel)
        reader.pull(*scope)
        for rel in (data("m", version=2), latest("m")):
            assert reader.read(rel) == one.read(rel)
        assert reader.marks() == set()
        reader.pull()
        assert reader.files() == one.files(), number
    pytest.fail("a pull never came to its end")


def test_a_pull_that_stops_in_the_middle_keeps_what_came(plain: World) -> None:
    """The next one brings the rest, and nothing twice."""
    failing = Failing(plain)
    one, other = plain.client(), plain.client(failing)
    for number in range(20):
        one.write(f"logs/{number}", str(number))
    one.push()
    failing.left = 15
    with pytest.raises(RemoteError):
        other.pull()
    came = len(other.files())
    assert came > 0
    plain.remote.take()
    assert other.pull().is_whole
    streams = [key for operation, key in plain.remote.take() if operation == "get_stream"]
    assert len(streams) == 20 - came
    assert other.files() == one.files()


def _again(one: Client) -> None:
    one.write("logs/new", "newer")
    one.write("logs/changed", "changed again")


def _back(one: Client) -> None:
    one.write("logs/gone", "back")
    one.write(data("m"), "back")


def _away(one: Client) -> None:
    one.remove("logs/changed")
    one.remove("logs/new")


@pytest.mark.parametrize("pulls", [False, True])
@pytest.mark.parametrize("form", ["v1", "v2"])
@pytest.mark.parametrize("after", [_again, _back, _away, lambda _: None], ids=["again", "back", "away", "nothing"])
def test_what_a_failed_push_said_is_no_conflict(
    worlds: Callable[..., World], after: Callable[[Client], None], form: str, *, pulls: bool
) -> None:
    """Whatever request failed, perhaps after the commit, and whatever is changed then: ours goes on from what we said.

    A peer commits beside it meanwhile, so that nothing of the index is as we remember it.
    """
    for number in range(100):
        world = worlds(sharded=form == "v2")
        hooked = Hooked(world.remote)
        one, other = world.client(hooked), world.client()
        one.version("m", 1, "x")
        one.write("logs/gone", "old")
        one.write("logs/changed", "old")
        one.push()
        other.pull()
        for rel in ("logs/gone", data("m")):
            one.remove(rel)
        for rel in ("logs/new", "logs/changed"):
            one.write(rel, "first")
        hooked.fail("*", "*", skip=number)
        has_failed, one = _fails(one), one.on(world.remote)
        other.write(data("m", "beside"), "theirs")
        other.write("logs/beside", "theirs")
        other.push()
        after(one)
        assert not pulls or one.pull().is_whole
        assert one.push().is_whole
        assert not one.is_dirty
        one.pull()
        assert other.pull().is_whole
        assert one.files() == other.files()
        assert world.index().keys() == one.files().keys()
        world.check()
        if not has_failed:
            return
    raise AssertionError("a push of four files makes more than 100 requests")


def test_what_a_push_said_and_left_in_conflict_stays_ours(
    worlds: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two files that were published by a push that died, one is settled: the other is not forgotten with it."""
    world = worlds(sharded=True)
    one, other = world.client(), world.client()
    one.write("logs/settled", "first")
    one.write("logs/changed", "first")
    with monkeypatch.context() as patch:
        patch.setattr("mire.flow.push._agree", _dies)
        assert _fails(one)
    other.pull()
    other.write("logs/changed", "theirs")
    other.push()
    one.write("logs/settled", "second")
    one.write("logs/changed", "second")
    assert [each.rel for each in one.push().conflicts] == ["logs/changed"]
    one.remove("logs/changed")
    assert [each.rel for each in one.push().conflicts] == ["logs/changed"]


def _dies(*_: object) -> None:
    raise RemoteError("told to die")


def _fails(one: Client) -> bool:
    try:
        one.push()
    except RemoteError:
        return True
    return False
