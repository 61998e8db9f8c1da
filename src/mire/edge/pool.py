"""Bounded concurrency: many calls at once, never more than so many, results as they come.

Owns: the threads of one run.
Must not know: what the calls do.
Keeps: a slow call holds up nobody but itself (there are no batches). The first error stops new calls; those under way
are waited for and their results handed out before it is raised, so nothing goes on behind the caller's back. Items
are taken in the caller's thread and only a little ahead, so an endless iterable or a database cursor is fine.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_PROCESSOR = 36
"""The field of a thread's state, counted behind its name, that says where it runs."""
_AHEAD = 2
"""Items taken for each thread: one to work on, one to go on with while the caller looks at a result."""


@dataclass(frozen=True, slots=True)
class _Done(Generic[Item, Result]):
    item: Item
    result: Result


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


class _Skipped:
    """An item that was taken but not worked on, because of an error."""


def run(
    call: Callable[[Item], Result], items: Iterable[Item], *, at_once: int, gathered: bool = False
) -> Iterator[tuple[Item, Result]]:
    """Call with every item, up to `at_once` of them at the same time; pairs of item and result, as they finish.

    Leaving the loop early, an error in a call or in `items`, and Ctrl-C stop new calls and wait for those under way.
    Nothing is called before the first pair is asked for. `gathered` is for many short calls: their threads share one
    processor. They take turns in the interpreter anyway, and passing it from one processor to the next with every
    system call takes longer than the calls do; long ones, which hash outside of it, are better off apart.
    """
    crew = _Crew(call, at_once, gathered=gathered)
    try:
        yield from crew.work(iter(items))
    finally:
        crew.dismiss()


class _Crew(Generic[Item, Result]):
    """The threads of one run; they are started as items come."""

    def __init__(self, call: Callable[[Item], Result], at_once: int, *, gathered: bool = False) -> None:
        self._call = call
        self._processor = _processor() if gathered else None
        self._at_once = max(1, at_once)
        self._todo: SimpleQueue[_Done[Item, None] | None] = SimpleQueue()
        self._done: SimpleQueue[_Done[Item, Result] | _Failed | _Skipped] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._is_stopped = False
        self._open = 0

    def work(self, items: Iterator[Item]) -> Iterator[tuple[Item, Result]]:
        """Feed items and hand out results until both have ended."""
        error: BaseException | None = None
        is_exhausted = False
        while True:
            while error is None and not is_exhausted and self._open < self._at_once * _AHEAD:
                try:
                    self._add(next(items))
                except StopIteration:
                    is_exhausted = True
                except Exception as problem:  # noqa: BLE001 - raised below, when what is under way has ended
                    error = self._stop(problem)
            if self._open == 0:
                break
            match self._take():
                case _Done(item, result):
                    yield item, result
                case _Failed(failed):
                    error = error or self._stop(failed)
                case _Skipped():
                    pass
        if error is not None:
            raise error

    def _add(self, item: Item) -> None:
        self._open += 1
        self._todo.put(_Done(item, None))
        if len(self._threads) < self._at_once:
            thread = threading.Thread(target=self._run, name="mire-pool", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _take(self) -> _Done[Item, Result] | _Failed | _Skipped:
        outcome = self._done.get()
        self._open -= 1
        return outcome

    def _stop(self, error: BaseException) -> BaseException:
        self._is_stopped = True
        return error

    def _run(self) -> None:
        if self._processor is not None:
            _stay_on(self._processor)
        while (task := self._todo.get()) is not None:
            if self._is_stopped:
                self._done.put(_Skipped())
                continue
            try:
                self._done.put(_Done(task.item, self._call(task.item)))
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
                self._is_stopped = True
                self._done.put(_Failed(error))

    def dismiss(self) -> None:
        """Start nothing more and wait for what is under way; a second Ctrl-C leaves without waiting."""
        self._is_stopped = True
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            if thread.ident is not None:  # else Ctrl-C came right before it was started
                thread.join()


def _processor() -> int | None:
    """The processor this thread runs on, where the system tells."""
    try:
        with open("/proc/thread-self/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[_PROCESSOR])
    except (OSError, ValueError, IndexError):
        return None


def _stay_on(processor: int) -> None:
    """Keep this thread, and no other, on a processor; without the right to say so it goes where it will."""
    with suppress(OSError, AttributeError):
        os.sched_setaffinity(0, {processor})
