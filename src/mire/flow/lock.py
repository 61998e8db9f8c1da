"""Locks: hold models for writing, hold everything for structural work, see and release what is held.

Owns: the order in which locks are taken and waited for.
Must not know: what is done while they are held, or where locks live.
Keeps: a model writer that meets the global lock backs off before it waits, and structural work waits for
model writers before and after it takes the global lock, so neither can starve or deadlock the other.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from mire.edge.lockdir import LockDir
from mire.edge.lockplace import Found, Leaves
from mire.errors import DeniedError, InputError, NotFoundError, RemoteError, shown
from mire.flow.acquire import Deadline, acquire, is_free, is_surely_free, new_lease, parting_of, sighting_of
from mire.flow.datastore import Datastore, Lifecycle
from mire.flow.locked import Hold, Lock, held_lock, holds_any
from mire.flow.publishdir import is_shown, publishing
from mire.flow.setup import ensure_initialized
from mire.model.artifact import ModelRef
from mire.model.lease import TTL_MS, Lease, LockKey, Sighting
from mire.model.names import parse_model_id, parse_model_type
from mire.plan.lock import GLOBAL_BACKOFF_MS, MODEL_BACKOFF_MS, is_inherited
from mire.wire.layout import HIGHEST, LATEST, LOCK, METADATA, RAW, data_root, global_locks, model_lock
from mire.wire.lockfile import decode_lease

__all__ = ["Hold", "LockReport", "hold_global", "hold_models", "inspect_locks", "parse_lock_target", "release_lock"]

_NAME_DIRS = Leaves(marks=(LATEST, HIGHEST), parts=(METADATA, RAW))
_RELEASE_TRIES = 5


@contextmanager
def hold_models(
    ds: Datastore, models: Iterable[ModelRef], *, ttl_ms: int = TTL_MS, wait_ms: int | None = None
) -> Iterator[Hold]:
    """Hold the locks of some models (none: only wait for structural work); raises at the end if one was lost.

    In a cached datastore the outermost hold pulls these models first, and pushes what was changed at the end.
    """
    wanted = tuple(models)
    is_inside = holds_any(ds.locks)
    life = None if is_inside else ds.lifecycle
    with ExitStack() as stack:
        hold = _locked_at_remote(ds, life, wanted, ttl_ms, wait_ms, stack) if life is not None else None
        if hold is not None and life is not None:
            stack.enter_context(life.around(ds, wanted, hold))
        if hold is None:
            # Without the remote there is no lock that others see; those who use this cache see one of ours.
            here = ds if life is None else replace(ds, locks=LockDir(ds.base), lifecycle=None)
            hold = stack.enter_context(_hold_models(here, wanted, ttl_ms, wait_ms))
        if wanted and not is_inside and is_shown(ds):
            stack.enter_context(publishing(ds))
        yield hold


def _locked_at_remote(
    ds: Datastore, life: Lifecycle, models: Sequence[ModelRef], ttl_ms: int, wait_ms: int | None, stack: ExitStack
) -> Hold | None:
    """The locks at the remote; None when it cannot be reached, and the work is to be done without it."""
    try:
        reason = life.gate()
        if reason is None:
            life.check_settled()
            return stack.enter_context(_hold_models(ds, models, ttl_ms, wait_ms))
    except RemoteError as error:
        if not error.transient:
            raise
        reason = error.message
    life.offline(reason)
    return None


@contextmanager
def _hold_models(ds: Datastore, models: Sequence[ModelRef], ttl_ms: int, wait_ms: int | None) -> Iterator[Hold]:
    ds.check_writable()
    ensure_initialized(ds)
    deadline = Deadline(ds.config.lock_timeout_ms if wait_ms is None else wait_ms)
    keys = sorted({model_lock(ds.config.namespace, model) for model in models})
    # Who already holds a model is let on: structural work is waiting for it, and waiting back would be for ever.
    is_inside = _holds_something(ds, keys)
    while True:
        if not is_inside:
            _wait_for_global(ds, deadline)
        with ExitStack() as stack:
            locks: list[Lock] = []
            for key in keys:
                locks += acquire(ds, key, deadline, MODEL_BACKOFF_MS, ttl_ms, stack)
                if not is_inside and deadline.ask(lambda: _global_sighting(ds)) is not None:
                    break
            else:
                hold = Hold(locks)
                yield hold
                hold.check()
                return


def _holds_something(ds: Datastore, keys: list[LockKey]) -> bool:
    """Whether this thread, or a process it descends from, is already writing in this store."""
    if holds_any(ds.locks):
        return True
    ancestry = ds.ancestry
    if not ancestry.pids and not ancestry.nonces:
        return False
    found = (ds.locks.look(key) for key in keys)
    return any(seen is not None and is_inherited(sighting_of(seen), ancestry, ds.host) for seen in found)


@contextmanager
def hold_global(
    ds: Datastore, *, models: Sequence[ModelRef] | None = None, ttl_ms: int = TTL_MS, wait_ms: int | None = None
) -> Iterator[Hold]:
    """Hold the whole datastore (our namespace of it): nobody else writes while the block runs.

    In a cached datastore everything, or what `models` have, is pulled first, and what was changed is pushed at the end;
    it takes the remote.
    """
    is_inside = holds_any(ds.locks)
    life = None if is_inside else ds.lifecycle
    reason = None if life is None else life.gate()
    if reason is not None:
        raise DeniedError(reason, kind="read_only")
    if life is not None:
        life.check_settled()
    with ExitStack() as stack:
        hold = stack.enter_context(_hold_global(ds, ttl_ms, wait_ms))
        if life is not None:
            stack.enter_context(life.around(ds, models, hold))
        if not is_inside and is_shown(ds):
            stack.enter_context(publishing(ds))
        yield hold


@contextmanager
def _hold_global(ds: Datastore, ttl_ms: int, wait_ms: int | None) -> Iterator[Hold]:
    ds.check_writable()
    ensure_initialized(ds)
    deadline = Deadline(ds.config.lock_timeout_ms if wait_ms is None else wait_ms)
    _drain(ds, deadline)
    with ExitStack() as stack:
        locks: list[Lock] = []
        for key in global_locks(ds.config.namespace):
            locks += acquire(ds, key, deadline, GLOBAL_BACKOFF_MS, ttl_ms, stack)
        _drain(ds, deadline)
        hold = Hold(locks)
        yield hold
        hold.check()


def _global_sighting(ds: Datastore) -> tuple[LockKey, Sighting] | None:
    """A global lock that keeps us out, if there is one; stale ones are removed on the way."""
    for key in global_locks(ds.config.namespace):
        if held_lock(ds.locks, key) is not None:
            continue
        found = ds.locks.look(key)
        if found is None or is_inherited(sighting_of(found), ds.ancestry, ds.host):
            continue
        if not is_free(ds, sighting_of(found)) or not _remove_stale(ds, found):
            return key, sighting_of(found)
    return None


def _remove_stale(ds: Datastore, found: Found) -> bool:
    """Remove a lock that protects nobody; False when it is somebody's after all."""

    def is_stale(body: bytes, age_ms: int) -> bool:
        return is_free(ds, Sighting(lease=decode_lease(body), age_ms=age_ms))

    return ds.locks.remove(found, is_stale, parting_of(new_lease(ds, TTL_MS))) or ds.locks.look(found.key) is None


def _wait_for_global(ds: Datastore, deadline: Deadline) -> None:
    while (blocking := deadline.ask(lambda: _global_sighting(ds))) is not None:
        deadline.pause(*blocking, MODEL_BACKOFF_MS)


def _drain(ds: Datastore, deadline: Deadline) -> None:
    """Wait until no model of our namespace is being written; each lock found is watched, not searched again."""
    for key in deadline.ask(lambda: list(_model_lock_keys(ds))):
        while (blocking := deadline.ask(partial(_model_sighting, ds, key))) is not None:
            deadline.pause(key, blocking, MODEL_BACKOFF_MS)


def _model_sighting(ds: Datastore, key: LockKey) -> Sighting | None:
    """A model's lock that keeps structural work waiting, if it does."""
    found = None if held_lock(ds.locks, key) is not None else ds.locks.look(key)
    if found is None or is_inherited(sighting_of(found), ds.ancestry, ds.host) or is_surely_free(ds, found):
        return None
    return sighting_of(found)


def _model_lock_keys(ds: Datastore) -> Iterator[LockKey]:
    """The model locks there are. What finding them costs is said where they live."""
    return ds.locks.find(data_root(ds.config.namespace), LOCK, _NAME_DIRS)


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
    found = (ds.locks.look(key) for key in keys)
    return [_report(ds, each) for each in found if each is not None]


def release_lock(ds: Datastore, key: LockKey, *, nonce: str | None = None) -> LockReport:
    """Remove somebody's lock by force: exactly the one that was seen (with this nonce, if given), garbled ones too."""
    for _ in range(_RELEASE_TRIES):
        found = ds.locks.look(key)
        if found is None:
            raise NotFoundError(f"lock {key} is not held: there is nothing to release", lock_key=key)
        report = _report(ds, found)
        seen = _identity(report.lease)
        if nonce is not None and nonce != seen[1]:
            break
        if ds.locks.remove(found, partial(_is_the_same, seen), parting_of(new_lease(ds, TTL_MS))):
            return report
        # With the same nonce it was only renewed in between; without one nobody can tell.
        if (nonce := seen[1]) is None:
            break
    raise NotFoundError(f"lock {key} changed hands in the meantime: see 'mire lock status'", lock_key=key)


def _identity(lease: Lease | None) -> tuple[bool, str | None]:
    return lease is not None, lease.nonce if lease else None


def _is_the_same(identity: tuple[bool, str | None], body: bytes, _age_ms: int) -> bool:
    return _identity(decode_lease(body)) == identity


def _report(ds: Datastore, found: Found) -> LockReport:
    seen = sighting_of(found)
    return LockReport(key=found.key, lease=seen.lease, age_ms=seen.age_ms, is_stale=is_free(ds, seen))


def parse_lock_target(ds: Datastore, model: str | None) -> tuple[LockKey, ...]:
    """The locks a `lock release` names: a model's (`TYPE/ID`), else the global ones that exist."""
    if model is None:
        keys = global_locks(ds.config.namespace)
        return tuple(key for key in keys if ds.locks.look(key)) or keys[-1:]
    kind, slash, model_id = model.rpartition("/")
    if not slash:
        raise InputError(f"model {shown(model)} is not TYPE/ID: the last '/' separates type and id")
    ref = ModelRef(model_type=parse_model_type(kind), model_id=parse_model_id(model_id))
    return (model_lock(ds.config.namespace, ref),)
