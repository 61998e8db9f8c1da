"""Locks as objects: created only where there is none, renewed, taken over and removed only while unchanged.

Owns: the requests of a lock on a remote. A lock is a state of an object: whoever holds it knows its fingerprint.
Must not know: what the body says, or when a lock is stale; it is given bytes and a judge.
Keeps: (1) every write and removal of a lock carries the fingerprint it was decided on, so of two programs that
judge one lock stale exactly one gets it, and a holder that stalled can neither overwrite nor remove its
successor's lock;
(2) each renewal writes bytes that never were there before, so a fingerprint made of content cannot come back;
(3) an answer that was lost is settled by reading back: the bytes we sent are ours, whenever they arrived;
(4) a renewal that the store confirmed proves more than that the lock is ours now: nobody had it in between.

Why a paused holder cannot commit after a takeover. Others take a lock over when the store's clock shows its
stamp to be older than its time to live, and never earlier, as `edge/storeclock` rounds towards young. Our stamp
is not older than the moment we sent it. So until a time to live after that moment the lock is ours without asking
anybody, by a clock that counts suspension; `flow/locked` uses half of that time and renews before it relies on
more. After a takeover such a renewal is refused, and reading back shows somebody else's bytes, or none. What is
left is a holder stopped between its check and its next request, for at least half a time to live. No lock can
close that window: the commit itself must be conditional on what the holder read (compare-and-swap of the index).
"""

import os
from collections.abc import Iterator
from dataclasses import replace

from mire.edge import clock
from mire.edge.lockplace import Found, Judge, LeaseText, Leaves
from mire.edge.remote import Absent, Body, Condition, Matches, Refused, Remote, Removed, Stored, Unknown
from mire.edge.storeclock import StoreClock
from mire.errors import NotFoundError, RemoteError, shown
from mire.model.lease import LockKey

_TRIES = 3

_PARTING_MS_MAX = 10_000
"""Between parting words and removal; they are a lease of minutes, and the removal must surely be done before."""


class ObjectLocks:
    """A `LockPlace` on a remote.

    Requests: create 1 PUT; refused, 1 GET to look; take over 1 more for the clock and 1 PUT; renew 1 PUT; give
    back 1 DELETE (2 requests where the store cannot remove conditionally). The first age costs 1 for the store's
    clock, and one more every ten seconds of waiting.

    Finding the locks of models lists everything below `data/`: one request for a thousand objects. The keys are
    the reference's and cannot move to a place of their own. Going down level by level costs a request for each
    model and each data name, which is more unless names have thousands of files; asking for the lock of every model
    an index knows costs one for each model, and misses the first write of a new one. Who knows better for one store
    can give its datastore another place with another `find`.
    """

    def __init__(self, remote: Remote) -> None:
        if not remote.properties.conditional_put:
            raise RemoteError(
                f"{remote.properties.name} does not honour conditions of writes, so a lock there protects nothing:"
                " see 'mire doctor'",
                kind="conditions_unsupported",
            )
        self._remote = remote
        self._clock = StoreClock(remote)

    @property
    def may_block(self) -> bool:
        """A renewal is a request."""
        return True

    def create(self, key: LockKey, text: LeaseText) -> "HeldObject | None":
        """Create a lock with its whole body; None when there is one already."""
        return self._put(key, text, Absent())

    def look(self, key: LockKey) -> Found | None:
        """The lock under a key, or None when there is none."""
        body = _fetch(self._remote, key)
        if body is None:
            return None
        stat = body.stat
        return Found(
            key=key,
            body=body.data,
            age_ms=self._clock.age_ms(stat.modified_ms),
            fingerprint=stat.fingerprint,
            modified_ms=stat.modified_ms,
        )

    def refreshed(self, found: Found) -> Found:
        """The same lock with its age by a new look at the store's clock."""
        return replace(found, age_ms=self._clock.age_ms(found.modified_ms, is_fresh=True))

    def take_over(self, found: Found, text: LeaseText, judge: Judge) -> "HeldObject | None":
        """Replace exactly the lock that was found, if `judge` still condemns it."""
        if not judge(found.body, self.refreshed(found).age_ms):
            return None
        return self._put(found.key, text, Matches(found.fingerprint))

    def remove(self, found: Found, judge: Judge, parting: bytes) -> bool:
        """Remove exactly the lock that was found, if `judge` still condemns it."""
        if not judge(found.body, self.refreshed(found).age_ms):
            return False
        match _remove(self._remote, found.key, found.fingerprint, parting):
            case Removed():
                return True
            case Refused():
                return False
            case Unknown() as unknown:
                body = _fetch(self._remote, found.key)
                if body is not None and body.stat.fingerprint == found.fingerprint:
                    raise unknown.error
                return body is None

    def find(self, root: str, name: str, leaves: Leaves) -> Iterator[LockKey]:
        """The locks below a prefix; a listing enters everything, and is cheaper for it."""
        del leaves
        return (LockKey(stat.key) for stat in self._remote.list(f"{root}/") if stat.key.endswith(f"/{name}"))

    def _put(self, key: LockKey, text: LeaseText, condition: Condition) -> "HeldObject | None":
        match self._remote.put_if(key, text.body, condition, token=text.token):
            case Stored(fingerprint):
                return HeldObject(self._remote, key, text, fingerprint)
            case Refused():
                return None
            case Unknown():
                # What is not there may still arrive: whoever tries again will find himself, and take that over.
                body = _fetch(self._remote, key)
                if body is None or body.data != text.body:
                    return None
                return HeldObject(self._remote, key, text, body.stat.fingerprint)


class HeldObject:
    """A lock object that is ours: the state we wrote last. One thread at a time."""

    def __init__(self, remote: Remote, key: LockKey, text: LeaseText, fingerprint: str) -> None:
        self._remote = remote
        self._key = key
        self._text = text
        self._fingerprint = fingerprint
        self._written = {text.body}
        self._writes = 0
        self._is_gone = self._is_released = False
        self._pid = os.getpid()

    def is_current(self) -> bool:
        """Whether no renewal has found it gone; a forked child, which renews nothing, has to look."""
        if self._pid == os.getpid():
            return not self._is_gone
        found = _fetch(self._remote, self._key)
        return found is not None and self._is_renewed(found.data)

    def renew(self, stamp: bytes) -> bool:
        """Write the time into our body; False when the lock is no longer ours, an error when nobody can tell."""
        text = self._text
        body = text.body[: text.stamp_at] + stamp + text.body[text.stamp_end :]
        for _ in range(_TRIES):
            outcome = self._write(body)
            if isinstance(outcome, Stored):
                self._fingerprint, self._written = outcome.fingerprint, {body}
                return True
            found = self._read_back()
            if found is None:
                self._is_gone = True
                return False
            # Ours, in a state we did not know of: an earlier renewal whose answer was lost, or this one.
            self._fingerprint = found.stat.fingerprint
            if found.data == body:
                return True
            if isinstance(outcome, Unknown):
                raise outcome.error
        raise RemoteError(
            f"{self._remote.properties.name} refuses to renew the lock {shown(self._key)} although it is unchanged",
            transient=True,
            key=self._key,
        )

    def release(self) -> bool:
        """Remove the lock if it is still ours; False when it is not, or when the store does not answer."""
        if self._is_released or self._pid != os.getpid():  # a forked child must not give away its parent's lock
            return True
        if self._is_gone:
            return False
        self._is_gone = self._is_released = True
        try:
            return self._give_back()
        except RemoteError:
            # What was done under the lock is done; a lock that stays behind expires by itself.
            return False

    def _give_back(self) -> bool:
        for _ in range(_TRIES):
            outcome = _remove(self._remote, self._key, self._fingerprint, self._text.parting)
            if isinstance(outcome, Removed):
                return True
            found = self._read_back()
            if found is None:
                return isinstance(outcome, Unknown)
            self._fingerprint = found.stat.fingerprint
        return False

    def _write(self, body: bytes) -> Stored | Refused | Unknown:
        self._writes += 1
        self._written.add(body)
        # A token of its own: that of an earlier write would prove nothing about this one.
        token = f"{self._text.token}-{self._writes}"
        return self._remote.put_if(self._key, body, Matches(self._fingerprint), token=token)

    def _read_back(self) -> Body | None:
        """The object if it is in a state we brought about: the one confirmed last, or one of those tried since.

        Our nonce alone proves less: a creation given up long ago may arrive after somebody else had the lock.
        """
        found = _fetch(self._remote, self._key)
        return found if found is not None and found.data in self._written else None

    def _is_renewed(self, data: bytes) -> bool:
        """Whether this is our body with any time in it."""
        ours, start, end = self._text.body, self._text.stamp_at, self._text.stamp_end
        return len(data) == len(ours) and data.startswith(ours[:start]) and data.endswith(ours[end:])


def _fetch(remote: Remote, key: str) -> Body | None:
    try:
        return remote.get(key)
    except NotFoundError:
        return None


def _remove(remote: Remote, key: str, fingerprint: str, parting: bytes) -> Removed | Refused | Unknown:
    """Remove a lock in one known state.

    Where only writes can be conditional, the lock first becomes one of ours that lives for minutes, which nobody
    takes over, and is then removed. Leaving an expired body instead would make every release a stale lock, and
    the reference removes those without a condition: the next holder's, if it is slow.
    """
    if remote.properties.conditional_delete:
        return remote.delete_if(key, fingerprint)
    started = clock.mark()
    outcome = remote.put_if(key, parting, Matches(fingerprint), token=clock.new_uuid())
    if isinstance(outcome, Refused):
        return outcome
    if isinstance(outcome, Unknown):
        found = _fetch(remote, key)
        if found is None or found.data != parting:
            return outcome
    if clock.since_ms(started) < _PARTING_MS_MAX:
        remote.delete(key)
    return Removed()
