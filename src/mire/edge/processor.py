"""On which processor threads run: those of many short calls share one.

Owns: where threads of this process are let run, and that they may go everywhere again afterwards.
Must not know: what the threads do.
Keeps: where the system does not tell or does not allow it, threads go where they will.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_PROCESSOR: Final = 36
"""The field of a thread's state, counted behind its name, that says where it runs."""
_TASKS: Final = "/proc/self/task"
_STORE_THREAD: Final = b"tokio-rt-worker\n"
"""The threads that obstore speaks to a store with."""
_FEW: Final = 2
"""Processors of a machine on which everything is gathered: with more, threads outside of the interpreter are better
off apart (not measured)."""


@contextmanager
def open_gathering(*, is_alone: bool) -> Iterator[int | None]:
    """The processor that the threads of a run shall share, None where nobody knows.

    `is_alone`: no other process of ours is at work here. Then, on a machine with few of them, the thread that asks and
    those that speak to the store are gathered there, too, until the block ends.
    """
    found = _current()
    ours = _allowed()
    if found is None or not is_alone or len(ours) != _FEW:
        yield found
        return
    # By its number: a generator that was left may be ended by another thread.
    caller = threading.get_native_id()
    stay_on({found}, caller)
    _let_store_threads(on={found})
    try:
        yield found
    finally:
        stay_on(ours, caller)
        _let_store_threads(on=ours)


def stay_on(processors: set[int], thread: int = 0) -> None:
    """Keep a thread, this one unless another is named, on processors."""
    with suppress(OSError, AttributeError):
        os.sched_setaffinity(thread, processors)


def _let_store_threads(*, on: set[int]) -> None:
    with suppress(OSError):
        for name in os.listdir(_TASKS):
            with suppress(OSError), open(f"{_TASKS}/{name}/comm", "rb") as comm:
                if comm.read() == _STORE_THREAD:
                    stay_on(on, int(name))


def _allowed() -> set[int]:
    try:
        return os.sched_getaffinity(0)
    except (OSError, AttributeError):
        return set()


def _current() -> int | None:
    """The processor this thread runs on."""
    try:
        with open("/proc/thread-self/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[_PROCESSOR])
    except (OSError, ValueError, IndexError):
        return None
