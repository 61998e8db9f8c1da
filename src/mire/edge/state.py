"""The private state of a cache: the journal of marks and the base, in one SQLite file that no client syncs.

Owns: what a caller is told when the file turns out to be damaged.
Must not know: what is recorded.
Keeps: an idle connection whose file was replaced, or bound to another remote, is not used.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mire.edge.base import Base
from mire.edge.idle import Idle
from mire.edge.journal import Journal
from mire.edge.statefault import Broken, damaged
from mire.edge.statefile import open_file, set_aside
from mire.errors import MireError


class State(Journal, Base):
    """An open state: marks, base rows and facts. For one thread at a time; open another one for another."""


_idle: Final[Idle[State]] = Idle()


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
    found = _idle.take(lambda each: (each.path, each.identity) == (path, identity), _is_good)
    state = found or open_file(path, identity, State)
    try:
        yield state
    except Broken as broken:
        set_aside(path, state)
        raise damaged(path) from broken
    except BaseException:
        state.close()
        raise
    _idle.keep(state)


def close_states(cache: str | None = None) -> None:
    """Close the idle connections to a cache's state, or all."""
    _idle.close(lambda state: cache is None or state.path == state_path(cache))


def _is_good(state: State) -> bool:
    try:
        return state.is_current
    except (Broken, MireError):
        return False  # opening it anew finds out what is wrong
