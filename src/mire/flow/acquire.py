"""Taking one lock: try, judge what is in the way, wait, try again until the time is up.

Owns: the life of one attempt, and the budget of all of them.
Must not know: which locks are needed, or in which order; where they live.
Keeps: a signal cannot come between taking a lock and knowing it; all attempts carry one nonce, so that a lock whose
creation was answered by nobody is recognized as ours whenever it is seen.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from mire.edge import clock, process
from mire.edge.lockplace import Found, LeaseText
from mire.errors import RemoteError
from mire.flow.datastore import Datastore
from mire.flow.locked import Lock, held_by_nonce, held_lock
from mire.model.lease import Lease, LockKey, Sighting
from mire.plan.lock import (
    GLOBAL_BACKOFF_MS,
    PARTING_TTL_MS,
    is_expired,
    is_inherited,
    pause_ms,
    pid_to_probe,
    timeout_error,
)
from mire.wire.lockfile import decode_lease, encode_lease, renewal_offset

T = TypeVar("T")


class Deadline:
    """How long we are willing to wait, for all locks together."""

    def __init__(self, budget_ms: int) -> None:
        self._start = clock.monotonic_ms()
        self._budget_ms = budget_ms
        self._attempt = 0
        self._has_answer = False

    def pause(self, key: LockKey, seen: Sighting | None, bounds: tuple[int, int]) -> None:
        """Wait a little, or raise because the time is up."""
        waited = clock.monotonic_ms() - self._start
        left = self._budget_ms - waited
        if left <= 0:
            raise timeout_error(key, round(waited), seen)
        self._sleep(left, bounds)

    def ask(self, call: Callable[[], T]) -> T:
        """Ask the store; one that answered before and fails for a moment is asked again until the time is up."""
        while True:
            try:
                answer = call()
            except RemoteError as error:
                left = self._budget_ms - (clock.monotonic_ms() - self._start)
                if not error.transient or not self._has_answer or left <= 0:
                    raise
                self._sleep(left, GLOBAL_BACKOFF_MS)
            else:
                self._has_answer = True
                return answer

    def _sleep(self, left_ms: float, bounds: tuple[int, int]) -> None:
        clock.pause(pause_ms(self._attempt, bounds, clock.jitter(), left_ms))
        self._attempt += 1


def acquire(
    ds: Datastore, key: LockKey, deadline: Deadline, bounds: tuple[int, int], ttl_ms: int, stack: ExitStack
) -> list[Lock]:
    """Take one lock and have `stack` release it; nothing to take when an ancestor or this thread has it."""
    mine = held_lock(ds.locks, key)
    if mine is not None:
        return [mine]
    lease = new_lease(ds, ttl_ms)
    while True:
        lock, found = deadline.ask(lambda: _try(ds, key, lease, stack))
        if lock is not None:
            return [lock]
        seen = None if found is None else sighting_of(found)
        if seen is not None and is_inherited(seen, ds.ancestry, ds.host):
            return []
        if seen is not None and seen.lease and (mine := held_by_nonce(seen.lease.nonce)) is not None:
            return [mine]
        deadline.pause(key, seen, bounds)


def _try(ds: Datastore, key: LockKey, lease: Lease, stack: ExitStack) -> tuple[Lock | None, Found | None]:
    """Try once: the lock, or what is in the way."""
    lease = replace(lease, acquired_at=clock.now_instant())
    text = lease_text(lease)
    found = None
    with process.undisturbed():
        sent = clock.mark()
        held = ds.locks.create(key, text)
        if held is None:
            found = ds.locks.look(key)
            if found is not None and _may_take(ds, sighting_of(found), lease):
                held = ds.locks.take_over(found, text, lambda body, age: _may_take(ds, _sighted(body, age), lease))
        if held is None:
            return None, found
        lock = Lock(ds.locks, held, key, lease, sent)
        stack.callback(lock.release)
        return lock, None


def new_lease(ds: Datastore, ttl_ms: int) -> Lease:
    """A lease of ours that begins now."""
    host = ds.host
    return Lease(
        holder=host.holder,
        hostname=host.hostname,
        pid=host.pid,
        acquired_at=clock.now_instant(),
        ttl_ms=ttl_ms,
        nonce=clock.new_nonce(host.space),
    )


def lease_text(lease: Lease) -> LeaseText:
    """A lease as a lock says it."""
    body = encode_lease(lease)
    start = renewal_offset(body)
    return LeaseText(
        body=body,
        stamp_at=start,
        stamp_end=start + len(lease.acquired_at),
        token=f"{lease.nonce}-{lease.acquired_at}",
        parting=parting_of(lease),
    )


def parting_of(lease: Lease) -> bytes:
    """What a lock says while it is given back in two steps."""
    return encode_lease(replace(lease, ttl_ms=max(lease.ttl_ms, PARTING_TTL_MS)))


def sighting_of(found: Found) -> Sighting:
    """A lock that was found, understood."""
    return _sighted(found.body, found.age_ms)


def _sighted(body: bytes, age_ms: int) -> Sighting:
    return Sighting(lease=decode_lease(body), age_ms=age_ms)


def is_free(ds: Datastore, seen: Sighting) -> bool:
    """Whether a lock that was found protects nobody any more."""
    pid = pid_to_probe(seen, ds.host)
    return is_expired(seen) or (pid is not None and not process.is_alive(pid))


def is_surely_free(ds: Datastore, found: Found) -> bool:
    """The same for a lock that will not be asked about again: its age is measured once more before it is believed."""
    return is_free(ds, sighting_of(found)) and is_free(ds, sighting_of(ds.locks.refreshed(found)))


def _may_take(ds: Datastore, seen: Sighting, lease: Lease) -> bool:
    if seen.lease is not None and seen.lease.nonce == lease.nonce:
        return True  # an earlier attempt of ours, whose answer was lost
    return is_free(ds, seen) and not is_inherited(seen, ds.ancestry, ds.host)
