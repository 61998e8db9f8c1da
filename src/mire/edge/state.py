"""The private state of a cache: the journal of marks and the base, in one SQLite file that no client syncs.

Owns: which connections are open and idle; what a caller is told when the file turns out to be damaged.
Must not know: what is recorded.
Keeps: a connection is used by one caller at a time and never by a forked child; one whose file was replaced, or
bound to another remote, is not used.
"""

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mire.edge.base import Base
from mire.edge.journal import Journal
from mire.edge.statefault import Broken, damaged
from mire.edge.statefile import open_file, set_aside
from mire.errors import MireError

_IDLE_MAX = 8
_guard = threading.Lock()
_idle: list["State"] = []
_inherited: list["State"] = []
_owner_pid = os.getpid()


class State(Journal, Base):
    """An open state: marks, base rows and facts. For one thread at a time; open another one for another."""


def state_path(cache: str) -> str:
    """The file of a cache's state, in a directory that no client syncs."""
    return os.path.join(cache, "_index", "mire-state-1.sqlite")


@contextmanager
def open_state(cache: str, identity: str) -> Iterator[State]:
    """The state of a cache, bound to a remote and namespace; a new one, in which nothing is known, if need be.

    If the file turns out to be damaged in the block it is set aside, and a transient `RemoteError` of kind
    `state_damaged` says so: the next block finds a new one.
    """
    path = state_path(cache)
    state = _taken(path, identity) or open_file(path, identity, State)
    try:
        yield state
    except Broken as broken:
        set_aside(path, state)
        raise damaged(path) from broken
    except BaseException:
        state.close()
        raise
    _keep(state)


def close_states(cache: str | None = None) -> None:
    """Close the idle connections to a cache's state, or all."""
    with _guard:
        _forget_inherited()
        chosen = [state for state in _idle if cache is None or state.path == state_path(cache)]
        _idle[:] = [state for state in _idle if state not in chosen]
    for state in chosen:
        state.close()


def _taken(path: str, identity: str) -> State | None:
    while True:
        with _guard:
            _forget_inherited()
            found = next((state for state in reversed(_idle) if (state.path, state.identity) == (path, identity)), None)
            if found is None:
                return None
            _idle.remove(found)
        try:
            if found.is_current:
                return found
        except (Broken, MireError):
            pass  # opening it anew finds out what is wrong
        found.close()


def _keep(state: State) -> None:
    with _guard:
        _forget_inherited()
        _idle.append(state)
        surplus = _idle[:-_IDLE_MAX]
        del _idle[:-_IDLE_MAX]
    for each in surplus:
        each.close()


def _forget_inherited() -> None:
    global _owner_pid  # noqa: PLW0603 - the one fact about this process
    if _owner_pid != os.getpid():
        # A child must not even close its parent's connections: that would drop the parent's locks on the file.
        _inherited.extend(_idle)
        _idle.clear()
        _owner_pid = os.getpid()


atexit.register(close_states)
