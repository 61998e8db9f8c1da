"""Marking: every verb says which paths it changes before it changes them.

Owns: the block around a change, and what is pending and acknowledged, in the journal and in the shared sidecar.
Must not know: what is written, how a push decides.
Keeps: a path is marked durably before its bytes change, and still marked when the change has ended; a mark goes only
by an acknowledgement of its generation. Without a remote nothing is marked, at no cost.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TypeVar

from mire.edge.prefixed import Prefixed
from mire.edge.state import State, open_state
from mire.errors import InternalError, MireError, RemoteError, shown
from mire.flow.datastore import Datastore
from mire.flow.sidecar import settle_marks, show_marks, take_up_marks
from mire.model.mark import MarkKind, Pending, Ticket
from mire.plan.mark import cache_path

T = TypeVar("T")
_TRIES = 3


@contextmanager
def marking(ds: Datastore, *paths: str, removing: Iterable[str] = ()) -> Iterator[None]:
    """A block that writes some paths and removes others: marked before it, and once more where that was lost.

    Paths are absolute, or relative to the cache with the namespace: single files, or a directory of which
    everything may change. What is in the repository's own directory is never synced, and so not marked.
    """
    if ds.remote is None:
        yield
        return
    kinds = _kinds(ds, paths, removing)
    if kinds is None:
        mark_all(ds)
        try:
            yield
        finally:
            mark_all(ds)
    elif kinds:
        ticket = _with_state(ds, lambda state: _begin(ds, state, kinds))
        try:
            yield
        finally:
            # A mark that stays open is looked at once this process is gone; the change itself is done.
            with suppress(MireError):
                _with_state(ds, lambda state: _done(ds, state, ticket))
    else:
        yield


def mark(ds: Datastore, path: str) -> None:
    """Mark one path, file or directory, that something is about to change or has changed."""
    if ds.remote is None:
        return
    inside = cache_path(path, ds.base)
    if inside is None:
        mark_all(ds)
        return

    def record(state: State) -> None:
        _done(ds, state, _begin(ds, state, {inside: "unknown"}))

    _with_state(ds, record)


def mark_all(ds: Datastore) -> None:
    """Mark without a path: anything may have changed."""
    if ds.remote is None:
        return

    def record(state: State) -> None:
        with state.transaction(is_durable=True):
            state.mark_bulk()
            show_marks(ds, state, (), is_bulk=True)

    _with_state(ds, record)


def pending_marks(ds: Datastore) -> Pending:
    """Everything that is marked, by us or by another program that uses this cache."""

    def look(state: State) -> Pending:
        take_up_marks(ds, state)
        return state.pending()

    return _with_state(ds, look)


def acknowledge(ds: Datastore, pending: Pending, paths: Iterable[str], *, is_bulk: bool = False) -> None:
    """Forget the marks of these paths as far as `pending` saw them; `is_bulk` says that everything was looked at.

    Call it outside of a transaction of the state.
    """
    handled = tuple(paths)

    def forget(state: State) -> None:
        with state.transaction():
            state.acknowledge(pending, handled, is_bulk=is_bulk)
            settle_marks(ds, state, create=True)

    _with_state(ds, forget)


def open_cache_state(ds: Datastore) -> AbstractContextManager[State]:
    """The private state of a datastore's cache, bound to its remote and namespace."""
    if ds.remote is None:
        raise InternalError("a datastore without a remote has no private state")
    namespace = ds.config.namespace
    remote = Prefixed(ds.remote, namespace) if namespace else ds.remote
    return open_state(ds.base, remote.properties.name)


def _begin(ds: Datastore, state: State, kinds: dict[str, MarkKind]) -> Ticket:
    with state.transaction(is_durable=True):
        ticket = state.begin(kinds)
        show_marks(ds, state, kinds)
    return ticket


def _done(ds: Datastore, state: State, ticket: Ticket) -> None:
    with state.transaction():
        if made_again := state.done(ticket):
            show_marks(ds, state, made_again)


def _kinds(ds: Datastore, writing: Iterable[str], removing: Iterable[str]) -> dict[str, MarkKind] | None:
    """The marks of a block, by path in the cache; None when some path is nowhere we know."""
    kinds: dict[str, MarkKind] = {}
    named: list[tuple[str, MarkKind]] = [(path, "write") for path in writing]
    named += [(path, "remove") for path in removing]
    for path, kind in named:
        inside = cache_path(path, ds.base)
        if inside is not None:
            kinds.setdefault(inside, kind)
        elif not path.startswith(f"{ds.local}/"):
            return None
    return kinds


def _with_state(ds: Datastore, work: Callable[[State], T]) -> T:
    """Do something with the state; again with a new one if the file was damaged, or replaced meanwhile."""
    for _ in range(_TRIES):
        try:
            with open_cache_state(ds) as state:
                result = work(state)
                if state.is_current:
                    return result
        except RemoteError as error:
            if error.kind != "state_damaged":
                raise
    raise RemoteError(f"the private state of {shown(ds.base)} is lost again and again: look at its disk", path=ds.base)
