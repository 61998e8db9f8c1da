"""Locks: hold models for writing, hold everything for structural work, see and release what is held.

Owns: the order in which locks are taken and waited for.
Must not know: what is done while they are held.
Keeps: a model writer that meets the global lock backs off before it waits, and structural work waits for
model writers before and after it takes the global lock, so neither can starve or deadlock the other.
"""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from mire.edge import clock, files, lockfile, process
from mire.errors import InputError, LockLostError, NotFoundError, RemoteError, shown
from mire.flow.datastore import Datastore
from mire.flow.setup import ensure_initialized
from mire.model.artifact import ModelRef
from mire.model.lease import TTL_MS, Lease, LockKey, Sighting
from mire.model.names import parse_model_id, parse_model_type
from mire.plan.lock import (
    GLOBAL_BACKOFF_MS,
    MODEL_BACKOFF_MS,
    ancestry_environ,
    is_expired,
    is_inherited,
    pause_ms,
    pid_to_probe,
    timeout_error,
)
from mire.wire.layout import DATA, HIGHEST, LATEST, LOCK, METADATA, RAW, global_locks, model_lock
from mire.wire.lockfile import decode_lease, encode_lease, renewal_offset

_announced = process.Announced(ancestry_environ)
_held: dict[tuple[str, int, int], "Lock"] = {}
"""Locks by path, process and thread, so that a write inside a hold does not wait for itself."""


class Lock:
    """A lock we hold; renewed in the background until released."""

    def __init__(self, key: LockKey, held: lockfile.HeldFile, lease: Lease, body: bytes) -> None:
        self.key = key
        self._held = held
        self._nonce = lease.nonce or ""
        self._offset = renewal_offset(body)
        self._ttl_ms = lease.ttl_ms
        self._confirmed_ms = clock.monotonic_ms()
        self._is_lost = False
        _announced.add(self._nonce)
        self._heartbeat = clock.Repeating(lease.ttl_ms / 3, self._renew)

    def check(self) -> None:
        """Raise if the lock is no longer ours; called before each step that makes a write visible."""
        if self._is_lost or not self._held.is_current():
            self._is_lost = True
            raise LockLostError(
                f"lock {self.key} was taken over or removed while we held it: what was being written may be"
                " incomplete; look at the current state and run the command again",
                lock_key=self.key,
            )

    def release(self) -> None:
        """Give the lock back; one that was lost is left to its new holder."""
        self._heartbeat.stop()
        _announced.remove(self._nonce)
        self._held.release()

    def _renew(self) -> bool:
        try:
            renewed = self._held.renew(self._offset, clock.now_instant().encode())
        except RemoteError:
            # Not being able to tell is not losing it, until nobody else could tell either.
            renewed = clock.monotonic_ms() - self._confirmed_ms <= self._ttl_ms
        else:
            self._confirmed_ms = clock.monotonic_ms()
        self._is_lost = not renewed
        return renewed


def _mine(path: str) -> tuple[str, int, int]:
    return path, os.getpid(), threading.get_ident()


class Hold:
    """What a block that holds locks can ask."""

    def __init__(self, locks: Iterable[Lock]) -> None:
        self._locks = tuple(locks)

    def check(self) -> None:
        """Raise `LockLostError` if any of the locks is gone."""
        for lock in self._locks:
            lock.check()


@contextmanager
def hold_models(
    ds: Datastore, models: Iterable[ModelRef], *, ttl_ms: int = TTL_MS, wait_ms: int | None = None
) -> Iterator[Hold]:
    """Hold the locks of some models (none: only wait for structural work); raises at the end if one was lost."""
    ds.check_writable()
    ensure_initialized(ds)
    deadline = _Deadline(ds.config.lock_timeout_ms if wait_ms is None else wait_ms)
    keys = sorted({model_lock(ds.config.namespace, model) for model in models})
    # Who already holds a model is let on: structural work is waiting for it, and waiting back would be for ever.
    is_inside = _holds_something(ds, keys)
    while True:
        if not is_inside:
            _wait_for_global(ds, deadline)
        with ExitStack() as stack:
            locks: list[Lock] = []
            for key in keys:
                locks += _acquire(ds, key, deadline, MODEL_BACKOFF_MS, ttl_ms, stack)
                if not is_inside and _global_sighting(ds) is not None:
                    break
            else:
                hold = Hold(locks)
                yield hold
                hold.check()
                return


def _holds_something(ds: Datastore, keys: list[LockKey]) -> bool:
    """Whether this thread, or a process it descends from, is already writing in this store."""
    process_id, thread_id = os.getpid(), threading.get_ident()
    if any(path.startswith(f"{ds.base}/") and (p, t) == (process_id, thread_id) for path, p, t in list(_held)):
        return True
    ancestry = ds.ancestry
    if not ancestry.pids and not ancestry.nonces:
        return False
    found = (lockfile.look(os.path.join(ds.base, key)) for key in keys)
    return any(seen is not None and is_inherited(_sighting(seen), ancestry, ds.host) for seen in found)


@contextmanager
def hold_global(ds: Datastore, *, ttl_ms: int = TTL_MS) -> Iterator[Hold]:
    """Hold the whole datastore (our namespace of it): nobody else writes while the block runs."""
    ds.check_writable()
    ensure_initialized(ds)
    deadline = _Deadline(ds.config.lock_timeout_ms)
    _drain(ds, deadline)
    with ExitStack() as stack:
        locks: list[Lock] = []
        for key in global_locks(ds.config.namespace):
            locks += _acquire(ds, key, deadline, GLOBAL_BACKOFF_MS, ttl_ms, stack)
        _drain(ds, deadline)
        hold = Hold(locks)
        yield hold
        hold.check()


class _Deadline:
    def __init__(self, budget_ms: int) -> None:
        self._start = clock.monotonic_ms()
        self._budget_ms = budget_ms
        self._attempt = 0

    def pause(self, key: LockKey, seen: Sighting | None, bounds: tuple[int, int]) -> None:
        """Wait a little, or raise because the time is up."""
        waited = clock.monotonic_ms() - self._start
        left = self._budget_ms - waited
        if left <= 0:
            raise timeout_error(key, round(waited), seen)
        clock.pause(pause_ms(self._attempt, bounds, clock.jitter(), left))
        self._attempt += 1


def _acquire(
    ds: Datastore, key: LockKey, deadline: _Deadline, bounds: tuple[int, int], ttl_ms: int, stack: ExitStack
) -> list[Lock]:
    """Take one lock and have `stack` release it; nothing to take when an ancestor or this thread has it."""
    path = os.path.join(ds.base, key)
    mine = _mine(path)
    if mine in _held:
        return [_held[mine]]
    files.check_inside(path, ds.base)
    while True:
        lock, found = _try(ds, key, path, ttl_ms, stack)
        if lock is not None:
            return [lock]
        seen = None if found is None else _sighting(found)
        if seen is not None and is_inherited(seen, ds.ancestry, ds.host):
            return []
        deadline.pause(key, seen, bounds)


def _try(
    ds: Datastore, key: LockKey, path: str, ttl_ms: int, stack: ExitStack
) -> tuple[Lock | None, lockfile.Found | None]:
    """Try once: the lock, or what is in the way. A signal cannot come between taking it and knowing it."""
    lease = _new_lease(ds, ttl_ms)
    body = encode_lease(lease)
    found = None
    with process.undisturbed():
        taken = lockfile.create(path, body)
        if taken is None:
            found = lockfile.look(path)
            if found is not None and _may_take(ds, _sighting(found)):
                taken = lockfile.take_over(path, body, lambda data, age: _may_take(ds, _sighted(data, age)))
        if taken is None:
            return None, found
        lock = Lock(key, taken, lease, body)
        mine = _mine(path)
        _held[mine] = lock
        stack.callback(lock.release)
        stack.callback(_held.pop, mine, None)
        return lock, None


def _may_take(ds: Datastore, seen: Sighting) -> bool:
    return _is_free(ds, seen) and not is_inherited(seen, ds.ancestry, ds.host)


def _new_lease(ds: Datastore, ttl_ms: int) -> Lease:
    host = ds.host
    return Lease(
        holder=host.holder,
        hostname=host.hostname,
        pid=host.pid,
        acquired_at=clock.now_instant(),
        ttl_ms=ttl_ms,
        nonce=clock.new_nonce(host.space),
    )


def _sighted(body: bytes, age_ms: int) -> Sighting:
    return Sighting(lease=decode_lease(body), age_ms=age_ms)


def _sighting(found: lockfile.Found) -> Sighting:
    return _sighted(found.body, found.age_ms)


def _is_free(ds: Datastore, seen: Sighting) -> bool:
    """Whether a lock that was found protects nobody any more."""
    pid = pid_to_probe(seen, ds.host)
    return is_expired(seen) or (pid is not None and not process.is_alive(pid))


def _global_sighting(ds: Datastore) -> tuple[LockKey, Sighting] | None:
    """A global lock that keeps us out, if there is one; stale ones are removed on the way."""
    for key in global_locks(ds.config.namespace):
        path = os.path.join(ds.base, key)
        if _mine(path) in _held:
            continue
        found = lockfile.look(path)
        if found is None or is_inherited(_sighting(found), ds.ancestry, ds.host):
            continue
        if _is_free(ds, _sighting(found)):
            lockfile.remove(path, lambda data, age: _is_free(ds, _sighted(data, age)))
            continue
        return key, _sighting(found)
    return None


def _wait_for_global(ds: Datastore, deadline: _Deadline) -> None:
    while (blocking := _global_sighting(ds)) is not None:
        deadline.pause(*blocking, MODEL_BACKOFF_MS)


def _drain(ds: Datastore, deadline: _Deadline) -> None:
    """Wait until no model of our namespace is being written; each lock found is watched, not searched again."""
    for key in _model_lock_keys(ds):
        path = os.path.join(ds.base, key)
        while (found := lockfile.look(path)) is not None:
            seen = _sighting(found)
            mine = _mine(path) in _held
            if mine or is_inherited(seen, ds.ancestry, ds.host) or _is_free(ds, seen):
                break
            deadline.pause(key, seen, MODEL_BACKOFF_MS)


def _model_lock_keys(ds: Datastore) -> Iterator[LockKey]:
    """The model locks there are, found without entering the directories of data names."""
    pending = [os.path.join(ds.tier, DATA)]
    while pending:
        directory = pending.pop()
        entries = files.list_dir(directory)
        if any(entry.name == LOCK for entry in entries):
            yield LockKey(os.path.relpath(os.path.join(directory, LOCK), ds.base))
        if not _is_name_dir(directory, entries):
            pending += [os.path.join(directory, entry.name) for entry in entries if entry.is_dir and entry.name != LOCK]


def _is_name_dir(directory: str, entries: list[files.Entry]) -> bool:
    if any(entry.name in (LATEST, HIGHEST) and not entry.is_dir for entry in entries):
        return True
    number = next((entry.name for entry in entries if entry.is_dir and entry.name.isdigit()), None)
    return number is not None and any(files.is_file(os.path.join(directory, number, name)) for name in (METADATA, RAW))


@dataclass(frozen=True, slots=True, kw_only=True)
class LockReport:
    """One lock as `lock status` shows it."""

    key: LockKey
    lease: Lease | None
    age_ms: int
    is_stale: bool


def inspect_locks(ds: Datastore) -> list[LockReport]:
    """Every lock of our namespace that exists, the global one first."""
    keys = [*global_locks(ds.config.namespace), *sorted(_model_lock_keys(ds))]
    reports = []
    for key in keys:
        found = lockfile.look(os.path.join(ds.base, key))
        if found is not None:
            seen = _sighting(found)
            reports.append(LockReport(key=key, lease=seen.lease, age_ms=seen.age_ms, is_stale=_is_free(ds, seen)))
    return reports


def release_lock(ds: Datastore, key: LockKey) -> LockReport:
    """Remove somebody's lock by force: exactly the one that was seen, garbled ones too."""
    path = os.path.join(ds.base, key)
    found = lockfile.look(path)
    if found is None:
        raise NotFoundError(f"lock {key} is not held: there is nothing to release", lock_key=key)
    seen = _sighting(found)
    nonce = seen.lease.nonce if seen.lease else None

    def is_the_same(body: bytes, _age: int) -> bool:
        lease = decode_lease(body)
        return (lease.nonce if lease else None) == nonce and (lease is None) == (seen.lease is None)

    if not lockfile.remove(path, is_the_same):
        raise NotFoundError(f"lock {key} changed hands in the meantime: see 'mire lock status'", lock_key=key)
    return LockReport(key=key, lease=seen.lease, age_ms=seen.age_ms, is_stale=_is_free(ds, seen))


def parse_lock_target(ds: Datastore, model: str | None) -> tuple[LockKey, ...]:
    """The locks a `lock release` names: a model's (`TYPE/ID`), else the global ones that exist."""
    if model is None:
        return (
            tuple(key for key in global_locks(ds.config.namespace) if lockfile.look(os.path.join(ds.base, key)))
            or global_locks(ds.config.namespace)[-1:]
        )
    kind, slash, model_id = model.rpartition("/")
    if not slash:
        raise InputError(f"model {shown(model)} is not TYPE/ID: the last '/' separates type and id")
    ref = ModelRef(model_type=parse_model_type(kind), model_id=parse_model_id(model_id))
    return (model_lock(ds.config.namespace, ref),)
