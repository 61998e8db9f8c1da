"""Locks we hold: renewed in the background, proved before each visible step, known to this thread and its children.

Owns: a held lock's life from creation to release, and the record of what this process holds.
Must not know: how a lock is waited for, or where it lives.
Keeps: `check` passes only while nobody else can have the lock, at the moment it is called: without asking
when the store confirmed the lock a short while ago, else only after the store confirms it again.
"""

import os
import threading
from collections.abc import Iterable

from mire.edge import clock, process
from mire.edge.lockplace import Held, LockPlace
from mire.errors import LockLostError, MireError
from mire.model.lease import Lease, LockKey
from mire.plan.lock import ancestry_environ, is_overdue, is_surely_ours

_announced = process.Announced(ancestry_environ)
_held: dict[tuple[LockPlace, LockKey, int, int], "Lock"] = {}
"""Locks by place, key, process and thread, so that a write inside a hold does not wait for itself."""


class Lock:
    """A lock we hold; renewed in the background until released.

    `sent` is when the call that made it ours began: the store cannot have stamped it earlier.
    """

    def __init__(self, place: LockPlace, held: Held, key: LockKey, lease: Lease, sent: clock.Mark) -> None:
        self.key = key
        self.nonce = lease.nonce or ""
        self._held = held
        self._ttl_ms = lease.ttl_ms
        self._stamp = lease.acquired_at
        self._confirmed = sent
        self._is_lost = False
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._record = (place, key, self._pid, threading.get_ident())
        _held[self._record] = self
        _announced.add(self.nonce)
        self._heartbeat = clock.Repeating(lease.ttl_ms / 3, self._beat, may_block=place.may_block)

    def check(self, *, is_strict: bool = False) -> None:
        """Raise if the lock may be somebody else's; called before each step that makes a write visible."""
        if self._is_lost or not self._is_ours(is_strict=is_strict):
            self._is_lost = True
            raise LockLostError(
                f"lock {self.key} was taken over or removed while we held it: what was being written may be"
                " incomplete; look at the current state and run the command again",
                lock_key=self.key,
            )

    def release(self) -> None:
        """Give the lock back; one that was lost is left to its new holder."""
        _held.pop(self._record, None)
        self._heartbeat.stop()
        self._is_lost = True
        _announced.remove(self.nonce)
        self._held.release()

    def _is_ours(self, *, is_strict: bool) -> bool:
        is_sure = not is_strict and is_surely_ours(clock.since_ms(self._confirmed), self._ttl_ms)
        # A forked child does not renew for its parent; it has no heartbeat, and the mutex may be taken for ever.
        if is_sure or self._pid != os.getpid():
            return self._held.is_current()
        try:
            return self._renew()
        except MireError:
            if is_overdue(clock.since_ms(self._confirmed), self._ttl_ms):
                return False
            raise

    def _beat(self) -> bool:
        try:
            renewed = self._renew()
        except MireError:
            # Not being able to tell is not losing it, until nobody else could tell either.
            renewed = not is_overdue(clock.since_ms(self._confirmed), self._ttl_ms)
        self._is_lost = self._is_lost or not renewed
        return renewed

    def _renew(self) -> bool:
        with self._mutex:
            sent = clock.mark()
            self._stamp = clock.instant_after(self._stamp)
            renewed = self._held.renew(self._stamp.encode())
            if renewed:
                self._confirmed = sent
            return renewed


class Hold:
    """What a block that holds locks can ask."""

    def __init__(self, locks: Iterable[Lock]) -> None:
        self._locks = tuple(locks)

    def check(self, *, is_strict: bool = False) -> None:
        """Raise `LockLostError` if any of the locks is gone, or may have been taken over.

        A few microseconds while the locks were confirmed lately, else one request for each that was not. Strictly
        it is always one for each, and notices at once that somebody removed a lock by force or took it too early.
        Call it right before a commit, and make the commit conditional on what was read under the lock: nothing here
        can see that the process is stopped between the two, for half a time to live or longer.
        """
        for lock in self._locks:
            lock.check(is_strict=is_strict)


def held_lock(place: LockPlace, key: LockKey) -> Lock | None:
    """The lock of this name that this thread holds."""
    return _held.get((place, key, os.getpid(), threading.get_ident()))


def held_by_nonce(nonce: str | None) -> Lock | None:
    """The lock with this nonce that this thread holds, through whatever handle it was taken."""
    mine = os.getpid(), threading.get_ident()
    found = (lock for (_, _, *who), lock in list(_held.items()) if tuple(who) == mine and lock.nonce == nonce)
    return next(found, None)


def holds_any(place: LockPlace) -> bool:
    """Whether this thread holds any lock of a place."""
    mine = place, os.getpid(), threading.get_ident()
    return any((held, *who) == mine for held, _, *who in list(_held))
