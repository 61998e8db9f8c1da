"""Locks on an object store: one winner, the store's clock, lost answers settled, loss told before a commit."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mire.edge import clock
from mire.edge.lockobject import ObjectLocks
from mire.edge.objectstore import open_memory, open_s3
from mire.edge.remote import Remote
from mire.edge.retrying import Retrying
from mire.errors import LockLostError, LockTimeoutError, NotFoundError, RemoteError
from mire.flow.acquire import lease_text, new_lease
from mire.flow.datastore import Datastore
from mire.flow.lock import hold_global, hold_models, inspect_locks, release_lock
from mire.flow.locked import Lock
from mire.model.artifact import ModelRef
from mire.model.backend import S3Settings
from mire.model.lease import Host
from mire.model.names import SOLO, ModelId, Namespace
from mire.testing.conformance_lock import MODEL, lock_datastore
from mire.testing.faults import Action, ApplyThenDrop, ApplyThenFail, Drop, Fail
from mire.testing.misbehaving import MisbehavingRemote
from mire.testing.s3server import S3Server
from mire.wire.layout import model_lock
from mire.wire.lockfile import decode_lease

HERE = Path(__file__).parent
GOLDEN = (HERE.parent / "golden" / "lock-body.json").read_bytes()
KEY = model_lock(SOLO, MODEL)
GLOBAL = ".datastore.lock"
LONG_MS = 60_000
SHORT_MS = 1_000
STORE_CLOCK = "Unknown"
"""What the test server calls the request that asks for its clock: a HEAD of nothing."""


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that the test server does not look at."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")


@pytest.fixture
def remote(s3_server: S3Server) -> Remote:
    """The bucket of the test server."""
    return open_s3(S3Settings(bucket="b", endpoint=s3_server.url, force_path_style=True))


@pytest.fixture
def host(remote: Remote) -> Callable[..., Datastore]:
    """Datastores on that bucket as other hosts see them."""

    def see(hostname: str = "alpha", *, wait_ms: int = 30_000, namespace: str = "") -> Datastore:
        return lock_datastore(ObjectLocks(remote), hostname=hostname, wait_ms=wait_ms, namespace=Namespace(namespace))

    return see


def body(hostname: str = "far", pid: int = 1, *, ttl_ms: int | None = 30_000, nonce: str | None = "n-1") -> bytes:
    """A lock body as the reference writes it, with an old time in it: the object's own age decides."""
    members = {
        "holder": f"dana@{hostname}",
        "hostname": hostname,
        "pid": pid,
        "acquiredAt": "2026-05-02T08:00:00.000Z",
        "ttlMs": ttl_ms,
        "nonce": nonce,
    }
    return json.dumps({name: value for name, value in members.items() if value is not None}, indent=2).encode()


def elsewhere(call: Callable[[], Any]) -> threading.Thread:
    """Do something in another thread, which is another holder."""
    thread = threading.Thread(target=call)
    thread.start()
    return thread


def try_hold(ds: Datastore) -> str | None:
    """Take and give back the model's lock in another thread; who holds it, when it cannot be had."""
    told: list[str | None] = []

    def attempt() -> None:
        try:
            with hold_models(ds, [MODEL]):
                told.append(None)
        except LockTimeoutError as error:
            told.append(str(error.names["hostname"]))

    elsewhere(attempt).join()
    return told[0]


def test_requests_of_a_hold_are_counted(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """Holding one model costs four requests: the global lock before and after, create, remove; checks cost none."""
    ds = host()
    s3_server.reset()
    with hold_models(ds, [MODEL]) as hold:
        for _ in range(100):
            hold.check()
    assert s3_server.counts() == {"GetObject": 2, "PutObject": 1, "DeleteObject": 1}
    s3_server.reset()
    with hold_models(host(namespace="green"), [MODEL]):
        pass
    assert s3_server.counts() == {"GetObject": 4, "PutObject": 1, "DeleteObject": 1}


def test_requests_of_a_global_hold_are_counted(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """Structural work lists twice, and creates and removes each global key."""
    with hold_global(host()):
        pass
    assert s3_server.counts() == {"ListObjectsV2": 2, "PutObject": 1, "DeleteObject": 1}
    s3_server.reset()
    with hold_global(host(namespace="green")):
        assert s3_server.keys("b") == [".locks/green.lock", "green/.datastore.lock"]
    assert s3_server.counts() == {"ListObjectsV2": 2, "PutObject": 2, "DeleteObject": 2}


def test_requests_of_attempts_are_counted(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """An attempt in vain is one PUT and one GET, a takeover one PUT more; the store's clock is asked when it counts."""
    s3_server.put("b", KEY, body())
    ds = host(wait_ms=0)
    with pytest.raises(LockTimeoutError), hold_models(ds, [MODEL]):
        pass
    assert s3_server.counts() == {"GetObject": 2, "PutObject": 1, STORE_CLOCK: 1}
    s3_server.reset()
    with pytest.raises(LockTimeoutError), hold_models(ds, [MODEL]):
        pass
    assert s3_server.counts() == {"GetObject": 2, "PutObject": 1}
    s3_server.age("b", KEY, 60)
    s3_server.reset()
    with hold_models(ds, [MODEL]):
        assert s3_server.counts() == {"GetObject": 3, "PutObject": 2, STORE_CLOCK: 1}


def test_a_strict_check_asks_the_store(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """A strict check is one request for each lock, and sees at once that a lock was removed."""
    lost: list[LockLostError] = []
    try:
        with hold_models(host(), [MODEL]) as hold:
            s3_server.reset()
            hold.check(is_strict=True)
            assert s3_server.counts() == {"PutObject": 1}
            s3_server.delete("b", KEY)
            hold.check()
            hold.check(is_strict=True)
    except LockLostError as error:
        lost.append(error)
    assert [error.names["lock_key"] for error in lost] == [KEY]
    assert s3_server.keys("b") == []


def test_the_reference_s_lock_is_respected(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """A body the reference wrote keeps us out while it is fresh, by name, and is taken over when it is stale."""
    s3_server.put("b", KEY, GOLDEN)
    with pytest.raises(LockTimeoutError, match="unknown@vm") as caught, hold_models(host(wait_ms=0), [MODEL]):
        pass
    assert (caught.value.names["hostname"], caught.value.names["pid"]) == ("vm", 8969)
    s3_server.age("b", KEY, 33)
    with hold_models(host(wait_ms=0), [MODEL]):
        ours = json.loads(s3_server.get("b", KEY) or b"")
    assert list(ours) == list(json.loads(GOLDEN))
    assert (ours["hostname"], ours["pid"], ours["ttlMs"]) == ("alpha", 1, 30_000)


def test_our_lock_is_written_as_the_reference_s(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """Our body has the same members in the same order, two spaces deep, without a newline, also after a renewal."""
    with hold_models(host(), [MODEL]) as hold:
        first = s3_server.get("b", KEY) or b""
        hold.check(is_strict=True)
        second = s3_server.get("b", KEY) or b""
    for text in (first, second):
        assert text == json.dumps(json.loads(text), indent=2).encode()
        assert list(json.loads(text)) == list(json.loads(GOLDEN))
    assert json.loads(first) | {"acquiredAt": ""} == json.loads(second) | {"acquiredAt": ""}
    assert json.loads(first)["acquiredAt"] < json.loads(second)["acquiredAt"]


def test_lost_answers_are_settled_below_too(s3_server: S3Server, remote: Remote) -> None:
    """Through a remote that tries again, lost answers to creating, renewing and removing change nothing."""
    ds = lock_datastore(ObjectLocks(Retrying(remote)), wait_ms=0)
    rules = [s3_server.inject(ApplyThenDrop(), operation="PutObject", key=KEY, times=2)]
    rules.append(s3_server.inject(ApplyThenDrop(), operation="DeleteObject", key=KEY))
    with hold_models(ds, [MODEL]) as hold:
        hold.check(is_strict=True)
        hold.check(is_strict=True)
    assert [rule.hits for rule in rules] == [2, 1]
    assert s3_server.counts()["PutObject"] == 3
    assert s3_server.keys("b") == []


@pytest.mark.parametrize("has_answer", [True, False])
def test_a_created_lock_whose_answer_was_lost_is_ours_at_once(
    s3_server: S3Server,
    host: Callable[..., Datastore],
    has_answer: bool,  # noqa: FBT001 - a table
) -> None:
    """A create that happened but was not answered (or answered 500) is read back: one GET, and no waiting."""
    s3_server.inject(ApplyThenFail(500) if has_answer else ApplyThenDrop(), operation="PutObject", key=KEY)
    with hold_models(host(wait_ms=0), [MODEL]) as hold:
        assert s3_server.counts() == {"GetObject": 3, "PutObject": 1}
        hold.check(is_strict=True)
    assert s3_server.keys("b") == []


def test_a_create_that_arrives_late_is_ours(remote: Remote) -> None:
    """When even the reading back comes before the create, the next attempt finds our own nonce and takes it over."""
    late = MisbehavingRemote(remote)
    late.delay("put_if")
    with hold_models(lock_datastore(ObjectLocks(late)), [MODEL]) as hold:
        hold.check(is_strict=True)
    assert late.calls["put_if"] == 4  # answered by nobody, refused by itself, taken over, renewed
    assert not list(remote.list())


def test_two_stealers_of_one_stale_lock_one_wins_d1(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """D1: a stealer that stalls between its look and its write finds its write refused, and waits as any other."""
    s3_server.put("b", KEY, body())
    s3_server.age("b", KEY, 60)
    stalled = s3_server.hold(operation="PutObject", key=KEY, skip=1)
    told: list[str | None] = []
    stealer = elsewhere(lambda: told.append(try_hold(host("beta", wait_ms=0))))
    stalled.arrived.wait()
    with hold_models(host("alpha"), [MODEL]) as hold:
        stalled.release()
        stealer.join()
        hold.check(is_strict=True)
    assert told == ["far"]


def test_a_stalled_renewal_does_not_overwrite_the_successor_d2(
    s3_server: S3Server, host: Callable[..., Datastore]
) -> None:
    """D2: a renewal that arrives after a takeover is refused; the holder is told, and its release removes nothing."""
    stalled = s3_server.hold(operation="PutObject", key=KEY, skip=1)
    lost: list[LockLostError] = []
    taken, done = threading.Event(), threading.Event()

    def holder() -> None:
        try:
            with hold_models(host("alpha"), [MODEL], ttl_ms=300) as hold:
                taken.set()
                done.wait()
                hold.check(is_strict=True)
        except LockLostError as error:
            lost.append(error)

    thread = elsewhere(holder)
    taken.wait()
    stalled.arrived.wait()
    s3_server.age("b", KEY, 60)
    with hold_models(host("beta"), [MODEL]) as hold:
        successor = s3_server.get("b", KEY)
        stalled.release()
        done.set()
        thread.join()
        assert s3_server.get("b", KEY) == successor
        hold.check(is_strict=True)
    assert [error.names["lock_key"] for error in lost] == [KEY]


def test_one_failed_heartbeat_does_not_drop_the_lock_d3(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """D3: a renewal that nobody answers, and whose reading back fails, is followed by the next one."""
    ttl_ms = 3_000
    with hold_models(host(), [MODEL], ttl_ms=ttl_ms) as hold:
        s3_server.inject(ApplyThenDrop(), operation="PutObject", key=KEY)
        s3_server.inject(Fail(503), operation="GetObject", key=KEY)
        again = s3_server.hold(operation="PutObject", key=KEY, skip=1)
        again.arrived.wait()
        again.release()
        hold.check(is_strict=True)
        assert [report.lease.ttl_ms for report in inspect_locks(host()) if report.lease] == [ttl_ms]


def test_a_paused_holder_cannot_commit_d4(s3_server: S3Server, worker: Callable[[str], "Worker"]) -> None:
    """D4: a process stopped past its time to live learns of the takeover before it commits, and harms nobody."""
    first, second = worker("alpha"), worker("beta")
    assert first.ask("hold", ttl=SHORT_MS)["ok"]
    first.signal(signal.SIGSTOP)
    assert second.ask("hold", ttl=LONG_MS)["ok"]
    successor = s3_server.get("b", KEY)
    first.signal(signal.SIGCONT)
    lost = first.ask("commit")
    assert (lost["ok"], lost["kind"], lost["exit"]) == (False, "lock_lost", 4)
    assert first.ask("release")["kind"] == "lock_lost"
    assert s3_server.keys("b") == [KEY]
    assert s3_server.get("b", KEY) == successor
    assert second.ask("commit")["ok"]
    assert second.ask("release")["ok"]
    assert s3_server.get("b", "commit") == b"beta"


def test_a_paused_holder_nobody_replaced_goes_on(
    s3_server: S3Server, host: Callable[..., Datastore], worker: Callable[[str], "Worker"]
) -> None:
    """A holder that stood still past its time to live may commit when the store confirms that it is still the one."""
    holder = worker("alpha")
    assert holder.ask("hold", ttl=SHORT_MS)["ok"]
    holder.signal(signal.SIGSTOP)
    other = ModelRef(model_type=MODEL.model_type, model_id=ModelId("web-2"))
    s3_server.put("b", model_lock(SOLO, other), body())
    with pytest.raises(LockTimeoutError), hold_models(host("beta", wait_ms=SHORT_MS), [other]):
        pass  # waiting in vain for something else is how the time passes
    holder.signal(signal.SIGCONT)
    assert holder.ask("commit")["ok"]
    assert holder.ask("release")["ok"]
    assert KEY not in s3_server.keys("b")


@pytest.mark.parametrize("offset_s", [86_400, -86_400, 40])
def test_a_skewed_clock_never_steals_d5(s3_server: S3Server, host: Callable[..., Datastore], offset_s: float) -> None:
    """D5: a machine whose clock is a day off, or little more than a time to live, waits for a live lock."""
    s3_server.clock_offset_s = offset_s
    with hold_models(host("alpha"), [MODEL]):
        assert try_hold(host("beta", wait_ms=0)) == "alpha"
        s3_server.age("b", KEY, 60)
        assert try_hold(host("gamma", wait_ms=0)) is None


def test_a_clock_that_is_set_while_we_wait_steals_nothing_d5(
    s3_server: S3Server, host: Callable[..., Datastore]
) -> None:
    """D5: an old measure of the store's clock makes no live lock stale, also not for structural work."""
    ds = host("beta", wait_ms=0)
    s3_server.put("b", KEY, body())
    assert try_hold(ds) == "far"
    s3_server.clock_offset_s = 86_400
    s3_server.put("b", KEY, body())
    assert try_hold(ds) == "far"
    with pytest.raises(LockTimeoutError), hold_global(ds):
        pass


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"not json", b'{"holder": ', b"[1]", body(ttl_ms=None), body(nonce=None)]
)
def test_every_body_expires_d6(s3_server: S3Server, host: Callable[..., Datastore], content: bytes) -> None:
    """D6: an unreadable body, or one without a time to live, is respected while fresh and replaced when old."""
    ds = host(wait_ms=0)
    s3_server.put("b", KEY, content)
    with pytest.raises(LockTimeoutError), hold_models(ds, [MODEL]):
        pass
    s3_server.age("b", KEY, 33)
    with hold_models(ds, [MODEL]):
        assert decode_lease(s3_server.get("b", KEY) or b"") is not None


TROUBLE = [Fail(409, "ConditionalRequestConflict"), Fail(429), Fail(500), Fail(503), Drop(), ApplyThenDrop()]


@pytest.mark.parametrize("operation", ["GetObject", "PutObject", "DeleteObject"])
@pytest.mark.parametrize("trouble", TROUBLE, ids=lambda each: type(each).__name__ + str(getattr(each, "status", "")))
def test_a_moment_s_trouble_is_no_failure_d7(
    s3_server: S3Server, host: Callable[..., Datastore], operation: str, trouble: Action
) -> None:
    """D7: conflicts, throttling, server errors and lost connections on calls of a lock do not end the command."""
    ds = host()
    rule = s3_server.inject(trouble, operation=operation, skip=operation == "GetObject")
    with hold_models(ds, [MODEL]) as hold:
        hold.check(is_strict=True)
    assert rule.hits == 1
    with hold_models(ds, [MODEL]):
        pass


def test_trouble_at_the_first_request_is_told_at_once(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """A store that never answered is not waited for: whoever tries again below us has tried already."""
    s3_server.inject(Fail(503), operation="GetObject", times=None)
    with pytest.raises(RemoteError), hold_models(host(), [MODEL]):
        pass
    assert s3_server.counts() == {"GetObject": 1}


def test_structural_work_waits_for_models_written_elsewhere_d10(
    s3_server: S3Server, host: Callable[..., Datastore]
) -> None:
    """D10: the global lock is granted when the model locks on the store are gone, those of other namespaces aside."""
    s3_server.put("b", "green/data/svc/x/.lock", body())
    s3_server.put("b", KEY, body())
    with pytest.raises(LockTimeoutError, match="dana@far") as caught, hold_global(host(wait_ms=0)):
        pass
    assert caught.value.names["lock_key"] == KEY
    assert GLOBAL not in s3_server.keys("b")
    gone = s3_server.hold(operation="GetObject", key=KEY, skip=1)
    granted: list[list[str]] = []

    def structural() -> None:
        with hold_global(host("beta")):
            granted.append(s3_server.keys("b"))

    thread = elsewhere(structural)
    gone.arrived.wait()
    assert granted == []
    s3_server.delete("b", KEY)
    gone.release()
    thread.join()
    assert granted == [[GLOBAL, "green/data/svc/x/.lock"]]


def test_structural_work_drains_again_when_it_has_the_lock_d10(
    s3_server: S3Server, host: Callable[..., Datastore]
) -> None:
    """D10: a writer that came between the first drain and the global lock is waited for, or backs off itself."""
    create = s3_server.hold(operation="PutObject", key=GLOBAL)
    order: list[str] = []

    def structural() -> None:
        with hold_global(host("beta")):
            order.append("structural")

    thread = elsewhere(structural)
    create.arrived.wait()
    with hold_models(host("alpha"), [MODEL]):
        waiting = s3_server.hold(operation="GetObject", key=KEY)
        create.release()
        waiting.arrived.wait()
        waiting.release()
        order.append("writer")
    thread.join()
    assert order == ["writer", "structural"]


def test_writers_wait_for_structural_work_on_any_of_its_keys(
    s3_server: S3Server, host: Callable[..., Datastore]
) -> None:
    """Either generation of the namespaced global key keeps a writer out; stale ones are removed on the way."""
    for key in (".locks/green.lock", "green/.datastore.lock"):
        s3_server.put("b", key, body())
        with pytest.raises(LockTimeoutError) as caught, hold_models(host(wait_ms=0, namespace="green"), [MODEL]):
            pass
        assert caught.value.names["lock_key"] == key
        assert s3_server.keys("b") == [key]
        s3_server.age("b", key, 60)
        with hold_models(host(wait_ms=0, namespace="green"), [MODEL]):
            assert s3_server.keys("b") == [f"green/{KEY}"]


def test_a_dead_holder_on_this_host_is_replaced_at_once(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """A pid frees a lock only on the host it belongs to; there, at once."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    s3_server.put("b", KEY, body("far", process.pid))
    assert try_hold(host("alpha", wait_ms=0)) == "far"
    here = replace(host(wait_ms=0), given_host=Host(hostname=socket.gethostname(), pid=os.getpid(), user="dana"))
    assert try_hold(here) == "far"
    s3_server.put("b", KEY, body(socket.gethostname(), process.pid))
    assert try_hold(here) is None


def test_a_thread_may_lock_twice_through_two_handles(host: Callable[..., Datastore], s3_server: S3Server) -> None:
    """Holding is reentrant in one thread, whichever handle it uses, and exclusive between threads."""
    first, second = host(wait_ms=0), host(wait_ms=0)
    with hold_models(first, [MODEL]), hold_models(first, [MODEL]), hold_models(second, [MODEL]) as hold:
        hold.check(is_strict=True)
        assert try_hold(second) == "alpha"
    assert s3_server.keys("b") == []


def test_a_lock_of_an_ancestor_protects_us(
    s3_server: S3Server, host: Callable[..., Datastore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child of the holder, told by its nonce, works under the lock, and neither takes nor removes it."""
    s3_server.put("b", KEY, body(nonce="n-7"))
    monkeypatch.setenv("SWAMP_LOCK_HOLDER_TOKENS", "7:n-7")
    with hold_models(host(wait_ms=0), [MODEL]):
        pass
    assert s3_server.get("b", KEY) == body(nonce="n-7")


def test_the_reference_takes_a_stale_lock_by_removing_it(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """When it deletes our lock and creates its own, the next confirmation fails and nothing of it is touched."""
    with pytest.raises(LockLostError), hold_models(host(), [MODEL]) as hold:  # noqa: PT012 - lost inside the hold
        s3_server.delete("b", KEY)
        s3_server.put("b", KEY, GOLDEN)
        hold.check(is_strict=True)
    assert s3_server.get("b", KEY) == GOLDEN


def test_force_release_survives_a_renewal(s3_server: S3Server, host: Callable[..., Datastore]) -> None:
    """A lock renewed while it is released by force is the same lock; one of somebody else is not."""
    with pytest.raises(LockLostError), hold_models(host(), [MODEL]) as hold:  # noqa: PT012 - lost inside the hold
        once = s3_server.hold(operation="DeleteObject", key=KEY)
        thread = elsewhere(lambda: release_lock(host("beta"), KEY))
        once.arrived.wait()
        hold.check(is_strict=True)
        once.release()
        thread.join()
        assert s3_server.keys("b") == []
        hold.check(is_strict=True)
    s3_server.put("b", KEY, body(nonce="n-1"))
    with pytest.raises(NotFoundError, match="changed hands"):
        release_lock(host(), KEY, nonce="n-2")
    assert release_lock(host(), KEY, nonce="n-1").key == KEY


def aged_lock(ds: Datastore, boot_ms: float, wall_ms: float, *, ttl_ms: int = 30_000) -> Lock:
    """A lock of ours that was confirmed some time ago by either clock, and not renewed since."""
    lease = new_lease(ds, ttl_ms)
    held = ds.locks.create(KEY, lease_text(lease))
    assert held is not None
    now = clock.mark()
    return Lock(ds.locks, held, KEY, lease, clock.Mark(now.boot_ms - boot_ms, now.wall_ms - wall_ms))


@pytest.mark.parametrize(
    ("boot_ms", "wall_ms", "asks"),
    [(0, 0, False), (14_000, 14_000, False), (16_000, 16_000, True), (0, 16_000, True), (16_000, -(10**7), True)],
)
def test_a_check_asks_when_the_last_confirmation_is_old(
    boot_ms: float,
    wall_ms: float,
    asks: bool,  # noqa: FBT001 - a table
) -> None:
    """By either clock, half the time to live is the limit: a machine may sleep, a virtual one may be frozen."""
    remote = MisbehavingRemote(open_memory())
    lock = aged_lock(lock_datastore(ObjectLocks(remote)), boot_ms, wall_ms)
    remote.calls.clear()
    lock.check()
    lock.check()
    assert dict(remote.calls) == ({"put_if": 1} if asks else {})
    lock.release()


def test_an_unanswered_check_does_not_pass() -> None:
    """Whoever cannot be confirmed gets the store's error while nobody can have the lock, and afterwards has lost it."""
    for age_ms, expected in ((20_000, RemoteError), (31_000, LockLostError)):
        remote = MisbehavingRemote(open_memory())
        lock = aged_lock(lock_datastore(ObjectLocks(remote)), age_ms, age_ms)
        remote.fail("put_if")
        with pytest.raises(expected):
            lock.check()
        if expected is LockLostError:
            with pytest.raises(LockLostError):
                lock.check()
        else:
            lock.check()
        lock.release()


def test_a_heartbeat_nobody_answers_loses_the_lock_after_its_time_to_live() -> None:
    """Failed renewals are inconclusive until the time to live is over; then the lock is lost, whoever asks."""
    remote = MisbehavingRemote(open_memory())
    ds = lock_datastore(ObjectLocks(remote))
    lost = False
    try:
        with hold_models(ds, [MODEL], ttl_ms=300) as hold:
            remote.fail("put_if", times=10**6)
            while True:
                try:
                    hold.check()
                except RemoteError:
                    continue
    except LockLostError:
        lost = True
    assert lost
    assert remote.calls["put_if"] > 1


class Worker:
    """A process that locks on command."""

    def __init__(self, url: str, hostname: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "object_worker.py"), url, hostname],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, do: str, **arguments: Any) -> None:
        """Give a command without waiting for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The answer to the oldest command not yet answered."""
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Give a command and wait for its answer."""
        self.send(do, **arguments)
        return self.answer()

    def signal(self, number: int) -> None:
        """Signal the process, by its pid."""
        os.kill(self.process.pid, number)


@pytest.fixture
def worker(s3_server: S3Server) -> Iterator[Callable[[str], Worker]]:
    """Starts workers on the test's server; ends them with the test."""
    workers: list[Worker] = []

    def start(hostname: str) -> Worker:
        workers.append(Worker(s3_server.url, hostname))
        return workers[-1]

    yield start
    for started in workers:
        started.process.kill()
        started.process.communicate()


PROCESSES, THREADS = 8, 50


def race(workers: list[Worker]) -> int:
    """How many of fifty threads in eight processes got the lock, which they keep until all have tried."""
    for number, racing in enumerate(workers):
        racing.send("race", threads=THREADS // PROCESSES + (number < THREADS % PROCESSES))
    answers = [racing.answer() for racing in workers]
    assert [answer["trouble"] for answer in answers if not answer["ok"]] == []
    won = sum(answer["won"] for answer in answers)
    for racing in workers:
        racing.send("end")
    assert all(racing.answer()["ok"] for racing in workers)
    return won


def test_fifty_threads_in_eight_processes_one_winner(s3_server: S3Server, worker: Callable[[str], Worker]) -> None:
    """In each of two hundred rounds exactly one gets the lock, and nothing is left behind."""
    workers = [worker(f"host-{number}") for number in range(PROCESSES)]
    assert [race(workers) for _ in range(200)] == [1] * 200
    assert s3_server.keys("b") == []
    assert s3_server.counts()["PutObject"] == THREADS * 200


def test_fifty_stealers_in_eight_processes_one_winner(s3_server: S3Server, worker: Callable[[str], Worker]) -> None:
    """Of fifty that find one stale lock exactly one takes it over, in each of ten rounds."""
    workers = [worker(f"host-{number}") for number in range(PROCESSES)]
    for _ in range(10):
        s3_server.put("b", KEY, body())
        s3_server.age("b", KEY, 60)
        assert race(workers) == 1
    assert s3_server.keys("b") == []


def test_object_locks_exclude(s3_server: S3Server, worker: Callable[[str], Worker]) -> None:
    """Four processes that add to one object carelessly lose no addition, because they hold the lock."""
    s3_server.put("b", "number", b"0")
    workers = [worker(f"host-{number}") for number in range(4)]
    for adding in workers:
        adding.send("count", rounds=10)
    assert all(adding.answer()["ok"] for adding in workers)
    assert s3_server.get("b", "number") == b"40"
