"""The store's clock, told by ours: in doubt an object is younger, never older."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.edge.memory import MemoryRemote
from mire.edge.storeclock import StoreClock
from mire.errors import RemoteError
from mire.testing.misbehaving import MisbehavingRemote


@given(
    offset_ms=st.integers(-(10**12), 10**12),
    age_ms=st.integers(-(10**6), 10**6),
    steps=st.tuples(st.sampled_from([1, 1000]), st.sampled_from([1, 1000])),
)
def test_an_age_is_never_told_as_greater_than_it_is(offset_ms: int, age_ms: int, steps: tuple[int, int]) -> None:
    """However far apart the clocks are, and whatever is rounded, the age told is at most the true one, and near it."""
    remote = MisbehavingRemote(MemoryRemote())
    before_ms = remote.server_time_ms()
    remote.clock_ms, remote.step_ms = offset_ms, steps[0]
    stamp = int(before_ms) + offset_ms - age_ms
    told = StoreClock(remote).age_ms(stamp - stamp % steps[1])
    took_ms = MemoryRemote().server_time_ms() - before_ms + 1
    if age_ms >= 0:
        assert max(0, age_ms - 2_000) <= told <= age_ms + took_ms
    else:
        assert age_ms <= told <= max(0, age_ms + 2_000 + took_ms)


def test_the_clock_is_asked_once_and_again_when_it_counts() -> None:
    """Many ages cost one request; one that decides something costs one more."""
    remote = MisbehavingRemote(MemoryRemote())
    store = StoreClock(remote)
    for _ in range(10):
        store.age_ms(0)
    assert remote.calls["server_time_ms"] == 1
    store.age_ms(0, is_fresh=True)
    assert remote.calls["server_time_ms"] == 2


def test_those_who_ask_together_share_an_answer() -> None:
    """While one measures, others wait for their turn; an answer to a question put after theirs serves all of them."""
    remote = MisbehavingRemote(MemoryRemote())
    store = StoreClock(remote)
    inside, others = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        others.wait()

    remote.run("server_time_ms", wait)
    threads = [threading.Thread(target=store.age_ms, args=(0,), kwargs={"is_fresh": True}) for _ in range(8)]
    threads[0].start()
    inside.wait()
    for thread in threads[1:]:
        thread.start()
    others.set()
    for thread in threads:
        thread.join()
    assert 2 <= remote.calls["server_time_ms"] <= 8


def test_a_clock_that_cannot_be_asked_is_an_error() -> None:
    """Without the store's clock nobody knows how old anything is; the next question is put again."""
    remote = MisbehavingRemote(MemoryRemote())
    remote.fail("server_time_ms")
    store = StoreClock(remote)
    with pytest.raises(RemoteError):
        store.age_ms(0)
    assert store.age_ms(0) > 0
