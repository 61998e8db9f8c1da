"""What every place of locks must do, as functions that a backend runs against itself.

Owns: the checks of the reference's suites for locks, translated, and what these leave out: exclusion, expiry,
takeover, racing, drain.
Must not know: pytest, which backend is checked.
Keeps: a failed check says its number or name and what was expected; what a check created it removes.

A backend that has a `Remote` runs `check_all_locks(lambda: ObjectLocks(my_remote()))`. Each handle is opened anew, as
by another process. The numbers are those of the reference's checks.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from mire.edge import clock
from mire.edge.lockplace import LockPlace
from mire.errors import LockLostError, LockTimeoutError, NotFoundError
from mire.flow.acquire import lease_text, new_lease
from mire.flow.datastore import Datastore
from mire.flow.lock import Hold, hold_global, hold_models, inspect_locks, release_lock
from mire.model.artifact import ModelRef
from mire.model.config import Config, Filesystem
from mire.model.lease import Host
from mire.model.names import SOLO, ModelId, ModelType, Namespace
from mire.wire.layout import global_locks, model_lock

OpenPlace = Callable[[], LockPlace]

MODEL = ModelRef(model_type=ModelType("mire/conformance"), model_id=ModelId("web-1"))
_OTHER = ModelRef(model_type=ModelType("mire/conformance"), model_id=ModelId("web-2"))
_GLOBAL = global_locks(SOLO)[0]
_WAIT_MS = 30_000
_SHORT_TTL_MS = 400


class ConformanceError(AssertionError):
    """A backend does not do what it must."""


def expect(check: int | str, *, holds: bool, what: str) -> None:
    """Raise unless something holds that a check expects."""
    if not holds:
        raise ConformanceError(f"check {check}: {what}")


def lock_datastore(
    place: LockPlace, *, hostname: str = "mire-conformance", namespace: Namespace = SOLO, wait_ms: int = _WAIT_MS
) -> Datastore:
    """A datastore that has locks and nothing else: what holding them needs, as seen from some host."""
    return Datastore(
        repo_dir="/nonexistent",
        base="/nonexistent",
        config=Config(
            target=Filesystem(path="/nonexistent"), origin="conformance", namespace=namespace, lock_timeout_ms=wait_ms
        ),
        locks=place,
        given_host=Host(hostname=hostname, pid=1, user="mire"),
        is_initialized=True,
        may_initialize=False,
    )


def check_lock(open_place: OpenPlace) -> None:
    """One lock: seen while it is held, free afterwards, released by force only by its nonce."""
    ds = lock_datastore(open_place())
    expect(7, holds=inspect_locks(ds) == [], what="a lock is seen before any was taken")
    with hold_global(ds):
        reports = inspect_locks(lock_datastore(open_place()))
        expect(8, holds=[report.key for report in reports] == [_GLOBAL], what=f"a held lock is seen as {reports}")
        lease = reports[0].lease
        expect(8, holds=lease is not None, what="the body of a held lock cannot be read")
        if lease is not None:
            expect(8, holds=lease.holder == "mire@mire-conformance" and lease.pid == 1, what=f"the holder is {lease}")
            expect(8, holds=bool(lease.acquired_at) and lease.ttl_ms > 0, what=f"the times are those of {lease}")
            expect(14, holds=bool(lease.nonce), what="a held lock has no nonce")
    expect(9, holds=inspect_locks(ds) == [], what="a released lock is still seen")
    held = ds.locks.create(_GLOBAL, lease_text(new_lease(ds, _WAIT_MS)))
    expect(10, holds=held is not None, what="a lock that is free cannot be created")
    if held is not None:
        held.release()
        held.release()
    expect(11, holds=_return_from_hold(ds) == "value", what="what a held block returns is lost")
    expect(12, holds=inspect_locks(ds) == [], what="the lock is not free after a held block")
    with suppress(_OnPurposeError):
        _fail_in_hold(ds)
    expect(13, holds=inspect_locks(ds) == [], what="the lock is not free after a held block failed")
    _check_force(open_place)


class _OnPurposeError(Exception):
    """Raised inside a held block."""


def _return_from_hold(ds: Datastore) -> str:
    with hold_global(ds):
        return "value"


def _fail_in_hold(ds: Datastore) -> None:
    with hold_global(ds):
        raise _OnPurposeError


def _check_force(open_place: OpenPlace) -> None:
    ds = lock_datastore(open_place())
    try:
        with hold_global(ds) as hold:
            try:
                release_lock(ds, _GLOBAL, nonce="another")
            except NotFoundError:
                pass
            else:
                raise ConformanceError("check 15: a lock was released by a nonce that is not its own")
            (report,) = inspect_locks(ds)
            hold.check(is_strict=True)
            nonce = report.lease.nonce if report.lease else None
            release_lock(lock_datastore(open_place()), _GLOBAL, nonce=nonce)
            expect(14, holds=inspect_locks(ds) == [], what="a lock released by force is still there")
            hold.check(is_strict=True)
    except LockLostError:
        return
    raise ConformanceError("check 'loss': a holder whose lock was released by force is not told")


def check_lock_timeout(open_place: OpenPlace) -> None:
    """Two locks of one key: who waits in vain is told so, with the holder."""
    waiter = lock_datastore(open_place(), hostname="mire-waiter", wait_ms=200)
    with hold_global(lock_datastore(open_place())):
        error = _timeout_of(lambda: hold_global(waiter))
    if error is None:
        raise ConformanceError("check 16: two hold one lock at the same time")
    expect(17, holds=error.kind == "lock_timeout" and error.exit_code == 75, what=f"the error is {error.kind}")  # noqa: PLR2004 - the code itself is the promise
    expect(18, holds=error.names.get("lock_key") == _GLOBAL, what=f"the error names {error.names}")
    waited_ms = error.names.get("waited_ms")
    expect(19, holds=isinstance(waited_ms, int) and waited_ms >= 200, what=f"it waited {waited_ms}")  # noqa: PLR2004 - as asked for above
    expect("holder", holds=error.names.get("hostname") == "mire-conformance", what=f"held by {error.names}")
    expect("release", holds=_timeout_of(lambda: hold_global(waiter)) is None, what="a released lock cannot be taken")


def _timeout_of(hold: Callable[[], AbstractContextManager[Hold]]) -> LockTimeoutError | None:
    """What somebody else is told who wants a lock, None when he gets it; a thread does not wait for itself."""
    told: list[LockTimeoutError | None] = []

    def attempt() -> None:
        try:
            with hold():
                told.append(None)
        except LockTimeoutError as error:
            told.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    if not told:
        raise ConformanceError("a lock could neither be taken nor waited for: the error was printed")
    return told[0]


def check_lock_exclusion(open_place: OpenPlace, *, threads: int = 8, rounds: int = 3) -> None:
    """Of many that try at once exactly one gets the lock, and many that wait get it one after the other."""
    for number in range(rounds):
        won = _race(open_place, threads, wait_ms=0)
        expect("racing", holds=won == 1, what=f"{won} of {threads} got one lock in round {number}")
    won = _race(open_place, threads, wait_ms=_WAIT_MS)
    expect("exclusion", holds=won == threads, what=f"{won} of {threads} got the lock in time")
    left = inspect_locks(lock_datastore(open_place()))
    expect("exclusion", holds=left == [], what=f"locks were left behind: {left}")


def _race(open_place: OpenPlace, threads: int, *, wait_ms: int) -> int:
    """How many of the threads got the lock; without time to wait the winner keeps it until all have tried."""
    start, tried = threading.Barrier(threads), threading.Barrier(threads)
    inside = threading.Semaphore(1)
    won: list[int] = []
    failures: list[BaseException] = []

    def racer(number: int) -> None:
        ds = lock_datastore(open_place(), hostname=f"mire-{number}")
        start.wait()
        try:
            with hold_models(ds, [MODEL], wait_ms=wait_ms):
                expect("exclusion", holds=inside.acquire(blocking=False), what="two hold one lock at the same time")
                won.append(number)
                if not wait_ms:
                    tried.wait()
                inside.release()
        except LockTimeoutError:
            tried.wait()
        except BaseException as error:  # noqa: BLE001 - raised where the threads are joined
            failures.append(error)
            tried.abort()

    racers = [threading.Thread(target=racer, args=(number,)) for number in range(threads)]
    # A process that holds any lock says so in its environment. Were the last one given back while a client of some
    # store reads the environment in another thread, that one would fail, and nothing would be said about locks.
    with hold_models(lock_datastore(open_place()), [_OTHER]):
        for thread in racers:
            thread.start()
        for thread in racers:
            thread.join()
    if failures:
        raise failures[0]
    return len(won)


def check_lock_expiry(open_place: OpenPlace, *, stealers: int = 4) -> None:
    """A lock nobody renews is free after its time to live, not before, for exactly one; its holder is told.

    Takes a few seconds: stores show whole seconds, and a doubt never makes a lock older.
    """
    ds = lock_datastore(open_place(), hostname="mire-holder")
    key = model_lock(SOLO, MODEL)
    started = clock.mark()
    abandoned = ds.locks.create(key, lease_text(new_lease(ds, _SHORT_TTL_MS)))
    expect("expiry", holds=abandoned is not None, what="a lock that is free cannot be created")
    won = _race(open_place, stealers, wait_ms=_WAIT_MS)
    waited_ms = clock.since_ms(started)
    expect("takeover", holds=won == stealers, what=f"{won} of {stealers} got an expired lock one after the other")
    expect("expiry", holds=waited_ms >= _SHORT_TTL_MS, what=f"a lock was taken over after {waited_ms:.0f} ms")
    if abandoned is not None:
        told = abandoned.renew(clock.now_instant().encode())
        expect("loss", holds=told is False, what="a lock that was taken over can be renewed by its former holder")
        abandoned.release()
    _check_stealing_once(open_place)


def _check_stealing_once(open_place: OpenPlace) -> None:
    """Of two that saw the same stale lock only one can take it, and the other cannot remove the winner's."""
    first, second = (lock_datastore(open_place(), hostname=name) for name in ("mire-first", "mire-second"))
    key = model_lock(SOLO, MODEL)
    stale = lease_text(new_lease(first, _WAIT_MS))
    first.locks.create(key, stale)
    seen = [(ds, ds.locks.look(key)) for ds in (first, second)]
    text = lease_text(new_lease(second, _WAIT_MS))
    held = [
        None if found is None else ds.locks.take_over(found, text, lambda body, _age_ms: body == stale.body)
        for ds, found in seen
    ]
    expect("takeover", holds=held[0] is not None and held[1] is None, what=f"two took one lock over: {held}")
    if held[0] is not None:
        expect("takeover", holds=held[0].renew(clock.now_instant().encode()), what="the winner lost the lock")
        held[0].release()
    expect("takeover", holds=second.locks.look(key) is None, what="the winner could not give the lock back")


def check_lock_drain(open_place: OpenPlace) -> None:
    """Structural work waits for every model lock of its namespace, and for no other."""
    writer = lock_datastore(open_place(), hostname="mire-writer")
    structural = lock_datastore(open_place(), hostname="mire-structural", wait_ms=200)
    neighbour = lock_datastore(open_place(), hostname="mire-neighbour", namespace=Namespace("green"), wait_ms=200)
    key = model_lock(SOLO, MODEL)
    with hold_models(writer, [MODEL]):
        error = _timeout_of(lambda: hold_global(structural))
        expect("drain", holds=error is not None, what="structural work did not wait for a model's writer")
        named = error.names.get("lock_key") if error else None
        expect("drain", holds=named == key, what=f"structural work waited for {named}, not {key}")
        with hold_global(neighbour):
            seen = [report.key for report in inspect_locks(neighbour)]
            expect("drain", holds=seen == list(global_locks(Namespace("green"))), what=f"a namespace has {seen}")
    with hold_global(structural):
        error = _timeout_of(lambda: hold_models(writer, [MODEL], wait_ms=200))
        expect("drain", holds=error is not None, what="a model was written while the global lock was held")
        named = error.names.get("lock_key") if error else None
        expect("drain", holds=named == _GLOBAL, what=f"a writer waited for {named}, not {_GLOBAL}")


def check_all_locks(open_place: OpenPlace, *, threads: int = 8) -> None:
    """Every check of locks."""
    check_lock(open_place)
    check_lock_timeout(open_place)
    check_lock_exclusion(open_place, threads=threads)
    check_lock_expiry(open_place, stealers=max(2, threads // 2))
    check_lock_drain(open_place)
