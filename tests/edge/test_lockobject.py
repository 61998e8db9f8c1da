"""A lock object is a state: created once, changed and removed only by who knows its fingerprint."""

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from mire.edge.lockobject import ObjectLocks
from mire.edge.lockplace import LeaseText, Leaves
from mire.edge.memory import MemoryRemote
from mire.edge.remote import Properties
from mire.errors import RemoteError
from mire.model.lease import LockKey
from mire.testing.misbehaving import MisbehavingRemote

KEY = LockKey("data/svc/web-1/.lock")
LEAVES = Leaves(marks=("latest", ".highest"), parts=("metadata.yaml", "raw"))


def text(who: str, stamp: str = "08:00") -> LeaseText:
    """A body that says who, and when."""
    body = f"{who} at {stamp}!".encode()
    return LeaseText(
        body=body,
        stamp_at=len(who) + 4,
        stamp_end=len(who) + 4 + len(stamp),
        token=who,
        parting=f"{who} leaves".encode(),
    )


def always(_body: bytes, _age_ms: int) -> bool:
    """A judge that condemns everything."""
    return True


def older_than(limit_ms: int) -> Callable[[bytes, int], bool]:
    """A judge that condemns what is older, in either direction of time."""
    return lambda _body, age_ms: abs(age_ms) > limit_ms


@pytest.fixture(params=[True, False], ids=["content", "generation"])
def memory(request: pytest.FixtureRequest) -> MemoryRemote:
    """A store whose fingerprints are made of content, like S3's, or are numbers, like those of GCS."""
    return MemoryRemote(content_fingerprint=request.param)


@pytest.fixture
def remote(memory: MemoryRemote) -> MisbehavingRemote:
    """That store, with faults to come."""
    return MisbehavingRemote(memory)


@pytest.fixture
def locks(remote: MisbehavingRemote) -> ObjectLocks:
    """The locks of the store."""
    return ObjectLocks(remote)


def test_creating_is_exclusive_and_costs_one_request(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """The first creation wins; each costs one write, giving back costs one removal."""
    held = locks.create(KEY, text("ann"))
    assert held is not None
    assert locks.create(KEY, text("bob")) is None
    assert remote.get(KEY).data == b"ann at 08:00!"
    remote.calls.clear()
    assert held.release() is True
    assert held.release() is True
    assert dict(remote.calls) == {"delete_if": 1}
    assert locks.look(KEY) is None


def test_a_look_costs_one_request_and_one_for_the_clock_now_and_then(
    remote: MisbehavingRemote, locks: ObjectLocks
) -> None:
    """The body carries its stamp, and the store's clock is asked once for many looks."""
    locks.create(KEY, text("ann"))
    remote.calls.clear()
    assert locks.look(LockKey("other")) is None
    assert dict(remote.calls) == {"get": 1}
    for _ in range(5):
        found = locks.look(KEY)
        assert found is not None
        assert found.body == b"ann at 08:00!"
    assert dict(remote.calls) == {"get": 6, "server_time_ms": 1}


def test_renewing_changes_the_time_only(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """A renewal is one conditional write of the same body with another time."""
    held = locks.create(KEY, text("ann"))
    assert held is not None
    remote.calls.clear()
    assert held.renew(b"08:10") is True
    assert held.renew(b"08:20") is True
    assert dict(remote.calls) == {"put_if": 2}
    assert remote.get(KEY).data == b"ann at 08:20!"
    assert held.release() is True


def test_two_stealers_of_one_stale_lock_one_wins_d1(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """D1: of two who read one stale lock, the second write is refused, however late it comes."""
    locks.create(KEY, text("ann"))
    found = locks.look(KEY)
    assert found is not None
    others = ObjectLocks(remote)
    remote.run("put_if", lambda: others.take_over(found, text("bob"), always))
    assert locks.take_over(found, text("eve"), always) is None
    assert remote.get(KEY).data == b"bob at 08:00!"


def test_a_renewal_in_time_saves_the_lock(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """A lock renewed between the look and the takeover stays its holder's, also within one tick of the clock."""
    held = locks.create(KEY, text("ann"))
    found = locks.look(KEY)
    assert held is not None
    assert found is not None
    assert held.renew(b"08:01") is True
    assert locks.take_over(found, text("bob"), always) is None
    assert locks.remove(found, always, b"") is False
    assert remote.get(KEY).data == b"ann at 08:01!"


def test_a_stalled_holder_cannot_touch_its_successor_d2(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """D2: after a takeover the former holder's renewal and release are refused, and it learns so."""
    held = locks.create(KEY, text("ann"))
    found = locks.look(KEY)
    assert held is not None
    assert found is not None
    successor = locks.take_over(found, text("bob"), always)
    assert successor is not None
    assert held.is_current() is True
    assert held.renew(b"08:10") is False
    assert held.is_current() is False
    assert held.release() is False
    assert remote.get(KEY).data == b"bob at 08:00!"
    assert successor.renew(b"09:00") is True


def test_a_stalled_release_cannot_remove_its_successor_s_lock_d2(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """D2: a removal that arrives after the takeover removes nothing."""
    held = locks.create(KEY, text("ann"))
    found = locks.look(KEY)
    assert held is not None
    assert found is not None
    remote.run("delete_if", lambda: locks.take_over(found, text("bob"), always))
    assert held.release() is False
    assert remote.get(KEY).data == b"bob at 08:00!"


def test_a_removed_and_recreated_lock_is_not_ours(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """The reference takes a stale lock by removing it and creating its own: the renewal notices both."""
    for body in (None, b"eve at 08:00!"):
        held = locks.create(KEY, text("ann"))
        assert held is not None
        remote.delete(KEY)
        if body is not None:
            remote.put(KEY, body)
        assert held.renew(b"08:10") is False
        assert held.release() is False
        assert (None if (found := locks.look(KEY)) is None else found.body) == body


def test_a_creation_given_up_long_ago_is_not_ours(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """Our own body of another time, which arrived after somebody else had the lock, proves nothing."""
    held = locks.create(KEY, text("ann", "08:00"))
    assert held is not None
    remote.delete(KEY)
    remote.put(KEY, text("ann", "07:59").body)
    assert held.renew(b"08:10") is False


def test_a_created_lock_whose_answer_was_lost_is_ours(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """The body that is there is the one we sent: one more request, and no waiting."""
    remote.lose("put_if")
    held = locks.create(KEY, text("ann"))
    assert held is not None
    assert dict(remote.calls) == {"put_if": 1, "get": 1}
    assert held.renew(b"08:10") is True
    assert held.release() is True


@pytest.mark.parametrize("other", [None, "bob"])
def test_a_lost_answer_to_what_did_not_happen_is_no_lock(
    remote: MisbehavingRemote, locks: ObjectLocks, other: str | None
) -> None:
    """Neither nothing nor somebody else's lock is taken for ours."""
    remote.lose("put_if", is_applied=False)
    if other:
        remote.run("get", lambda: locks.create(KEY, text(other)))
    assert locks.create(KEY, text("ann")) is None
    assert locks.create(KEY, text("cyd")) is None if other else locks.create(KEY, text("cyd"))


def test_a_takeover_whose_answer_was_lost_is_ours(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """The same holds for taking over."""
    locks.create(KEY, text("ann"))
    found = locks.look(KEY)
    assert found is not None
    remote.lose("put_if")
    held = locks.take_over(found, text("bob"), always)
    assert held is not None
    assert held.renew(b"08:10") is True


def test_a_renewal_whose_answer_was_lost_counts(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """It happened, as reading back shows; the next renewal and the release know the new state."""
    held = locks.create(KEY, text("ann"))
    assert held is not None
    remote.lose("put_if")
    assert held.renew(b"08:10") is True
    assert held.renew(b"08:20") is True
    assert held.release() is True
    assert locks.look(KEY) is None


def test_a_renewal_that_did_not_happen_does_not_count(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """A lost answer to a write that never arrived confirms nothing, and loses nothing."""
    held = locks.create(KEY, text("ann"))
    assert held is not None
    remote.lose("put_if", is_applied=False)
    with pytest.raises(RemoteError):
        held.renew(b"08:10")
    assert held.is_current() is True
    assert held.renew(b"08:20") is True


def test_one_failed_read_does_not_drop_the_lock_d3(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """D3: when neither the renewal nor the reading back is answered nobody can tell; the next renewal settles it."""
    held = locks.create(KEY, text("ann"))
    assert held is not None
    remote.lose("put_if")
    remote.fail("get")
    with pytest.raises(RemoteError):
        held.renew(b"08:10")
    remote.calls.clear()
    assert held.renew(b"08:20") is True
    assert dict(remote.calls) == {"put_if": 2, "get": 1}
    assert remote.get(KEY).data == b"ann at 08:20!"


def test_a_release_whose_answer_was_lost_is_settled(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """A removal that happened is one; one that did not is repeated."""
    for is_applied in (True, False):
        held = locks.create(KEY, text("ann"))
        assert held is not None
        remote.lose("delete_if", is_applied=is_applied)
        assert held.release() is True
        assert locks.look(KEY) is None


def test_a_release_nobody_answers_is_left_to_expire(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """The work under the lock is done: it must not seem failed because the lock could not be given back."""
    held = locks.create(KEY, text("ann"))
    assert held is not None
    remote.fail("delete_if")
    assert held.release() is False
    assert locks.look(KEY) is not None


def test_a_release_knows_a_renewal_nobody_answered(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """A renewal that happened unknown to us does not keep us from giving back."""
    held = locks.create(KEY, text("ann"))
    assert held is not None
    remote.lose("put_if")
    remote.fail("get")
    with pytest.raises(RemoteError):
        held.renew(b"08:10")
    assert held.release() is True
    assert locks.look(KEY) is None


@pytest.mark.parametrize("offset_ms", [0, 3_600_000, -86_400_000])
def test_the_store_s_clock_decides_d5(remote: MisbehavingRemote, locks: ObjectLocks, offset_ms: int) -> None:
    """D5: however far the store's clock and ours are apart, a lock is as old as the store says."""
    remote.clock_ms = offset_ms
    locks.create(KEY, text("ann"))
    found = locks.look(KEY)
    assert found is not None
    assert 0 <= found.age_ms < 30_000
    assert locks.take_over(found, text("bob"), older_than(30_000)) is None
    remote.aged_ms = 31_000
    found = locks.look(KEY)
    assert found is not None
    assert 30_000 < found.age_ms < 60_000
    assert locks.take_over(found, text("bob"), older_than(30_000)) is not None


def test_a_clock_that_is_set_steals_nothing_d5(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """D5: before a lock is taken the store's clock is asked again, so an old measure condemns nobody."""
    locks.create(LockKey("a/.lock"), text("ann"))
    assert locks.look(LockKey("a/.lock")) is not None
    remote.clock_ms = 3_600_000
    locks.create(KEY, text("bob"))
    found = locks.look(KEY)
    assert found is not None
    assert found.age_ms < -30_000
    assert 0 <= locks.refreshed(found).age_ms < 30_000
    assert locks.take_over(found, text("eve"), older_than(30_000)) is None
    assert locks.remove(found, older_than(30_000), b"") is False
    assert locks.look(KEY) is not None


def test_whole_seconds_never_make_a_lock_older(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """Stamps and clocks that drop milliseconds leave a new lock without an age, also in the future."""
    remote.step_ms = 1_000
    for n in range(20):
        key = LockKey(f"{n}/.lock")
        locks.create(key, text("ann"))
        found = locks.look(key)
        assert found is not None
        assert locks.refreshed(found).age_ms == 0
        remote.clock_ms += 137
    remote.aged_ms = 5_000
    locks.create(KEY, text("bob"))
    found = locks.look(KEY)
    assert found is not None
    assert 2_000 <= locks.refreshed(found).age_ms <= 5_000


def without_conditional_removal(remote: MemoryRemote) -> MisbehavingRemote:
    """The store, saying that only its writes are conditional."""
    return MisbehavingRemote(remote, properties=replace(remote.properties, conditional_delete=False))


def test_without_conditional_removal_the_lock_is_written_first(memory: MemoryRemote) -> None:
    """Where a removal cannot be conditional, a conditional write proves the lock ours and protects the removal."""
    remote = without_conditional_removal(memory)
    locks = ObjectLocks(remote)
    held = locks.create(KEY, text("ann"))
    assert held is not None
    seen: list[bytes] = []
    remote.run("delete", lambda: seen.append(memory.get(KEY).data))
    remote.calls.clear()
    assert held.release() is True
    assert seen == [b"ann leaves"]
    assert dict(remote.calls) == {"put_if": 1, "delete": 1}
    assert locks.look(KEY) is None


def test_without_conditional_removal_a_successor_s_lock_stays_d2(memory: MemoryRemote) -> None:
    """D2: a holder that stalled removes nothing, as its write is refused; a stale lock is removed the same way."""
    remote = without_conditional_removal(memory)
    locks = ObjectLocks(remote)
    held = locks.create(KEY, text("ann"))
    found = locks.look(KEY)
    assert held is not None
    assert found is not None
    assert locks.take_over(found, text("bob"), always) is not None
    assert held.release() is False
    assert locks.remove(found, always, b"eve leaves") is False
    assert memory.get(KEY).data == b"bob at 08:00!"
    now = locks.look(KEY)
    assert now is not None
    assert locks.remove(now, always, b"eve leaves") is True
    assert locks.look(KEY) is None
    assert remote.calls["delete"] == 1


def test_without_conditional_removal_a_lost_answer_is_settled(memory: MemoryRemote) -> None:
    """Parting words that arrived are recognized; others are said again."""
    for is_applied in (True, False):
        remote = without_conditional_removal(memory)
        held = ObjectLocks(remote).create(KEY, text("ann"))
        assert held is not None
        remote.lose("put_if", is_applied=is_applied)
        assert held.release() is True
        assert remote.calls["delete"] == 1


def test_a_store_without_conditional_writes_has_no_locks(memory: MemoryRemote) -> None:
    """A lock that protects nothing is refused, not pretended."""
    properties = Properties(name="x:", conditional_put=False, conditional_delete=False, content_fingerprint=True)
    with pytest.raises(RemoteError, match="protects nothing") as caught:
        ObjectLocks(MisbehavingRemote(memory, properties=properties))
    assert caught.value.kind == "conditions_unsupported"


def test_removing_takes_exactly_what_was_seen(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """A lock is removed once, only if condemned, and a lost answer is settled by looking."""
    locks.create(KEY, text("ann"))
    found = locks.look(KEY)
    assert found is not None
    assert locks.remove(found, lambda _body, _age: False, b"") is False
    remote.lose("delete_if", is_applied=False)
    with pytest.raises(RemoteError):
        locks.remove(found, always, b"")
    remote.lose("delete_if")
    assert locks.remove(found, always, b"") is True
    assert locks.look(KEY) is None
    held = locks.create(KEY, text("ann"))
    found = locks.look(KEY)
    assert held is not None
    assert found is not None
    remote.lose("delete_if", is_applied=False)
    remote.run("get", lambda: held.renew(b"08:10"))
    assert locks.remove(found, always, b"") is False


def test_a_forked_child_neither_releases_nor_trusts_what_it_remembers(
    remote: MisbehavingRemote, locks: ObjectLocks
) -> None:
    """A child that inherits a held lock cannot give it away, and asks the store whether it is still there."""
    held = locks.create(KEY, text("ann"))
    assert held is not None
    assert held.renew(b"08:10") is True
    held._pid = os.getpid() + 1  # as in a child: the pid is another one
    assert held.release() is True
    assert held.is_current() is True
    remote.put(KEY, text("ann", "08:20").body)  # the parent's renewal, which the child does not know of
    assert held.is_current() is True
    remote.put(KEY, text("bob", "08:20").body)
    assert held.is_current() is False
    remote.delete(KEY)
    assert held.is_current() is False


def test_locks_are_found_at_any_depth(remote: MisbehavingRemote, locks: ObjectLocks) -> None:
    """Every lock below the root is found, no file that only looks like one, in one listing."""
    there = ["data/a/.lock", "data/a/b/c/.lock", "data/x y/é/.lock"]
    for key in (*there, "data/a/b/n/1/raw", "data/a/b/.locked", "data2/a/.lock", "ns/data/a/.lock", ".datastore.lock"):
        remote.put(key, b"")
    assert list(locks.find("data", ".lock", LEAVES)) == there
    assert list(locks.find("ns/data", ".lock", LEAVES)) == ["ns/data/a/.lock"]
    assert list(locks.find("none/data", ".lock", LEAVES)) == []
    assert remote.calls["list"] == 3
