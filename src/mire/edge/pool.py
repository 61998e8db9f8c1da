"""Bounded concurrency: many calls at once, never more than so many, results as they come.

Owns: the threads of one run.
Must not know: what the calls do.
Keeps: a slow call holds up nobody but itself (there are no batches, but of calls said to be short). The first error
stops new calls; those under way are waited for and their results handed out before it is raised, so nothing goes on
behind the caller's back. Items are taken in the caller's thread and only a little ahead, so an endless iterable or a
database cursor is fine.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

from mire.edge.processor import open_gathering, stay_on

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD: Final = 2
"""Groups taken for each thread: one to work on, one to go on with while the caller looks at a result."""
_TOGETHER: Final = 4
"""Short calls in a group, once every thread had that many: waking a thread takes longer than calling it."""


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[Item, Result]):
    """What became of a group: pairs of item and result, up to an error."""

    pairs: list[tuple[Item, Result]]
    error: BaseException | None


def run(
    call: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    at_once: int,
    gathered: bool = False,
    is_alone: bool = True,
) -> Iterator[tuple[Item, Result]]:
    """Call with every item, up to `at_once` of them at the same time; pairs of item and result, as they finish.

    Leaving the loop early, an error in a call or in `items`, and Ctrl-C stop new calls and wait for those under way.
    Nothing is called before the first pair is asked for. `gathered` is for many short calls: their threads share one
    processor, and take several calls at a time. They take turns in the interpreter anyway, and passing it from one
    processor to the next with every system call takes longer than the calls do; long ones, which hash outside of it,
    are better off apart. `is_alone` as in `open_gathering`: not so in a task, beside which others run.
    """
    if not gathered:
        yield from _run(_Crew(call, at_once), items)
        return
    with open_gathering(is_alone=is_alone) as processor:
        yield from _run(_Crew(call, at_once, processor=processor, together=_TOGETHER), items)


def _run(crew: "_Crew[Item, Result]", items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
    try:
        yield from crew.work(iter(items))
    finally:
        crew.dismiss()


class _Crew(Generic[Item, Result]):
    """The threads of one run; they are started as items come."""

    def __init__(
        self, call: Callable[[Item], Result], at_once: int, *, processor: int | None = None, together: int = 1
    ) -> None:
        self._call = call
        self._processor = processor
        self._together = together
        self._at_once = max(1, at_once)
        self._todo: SimpleQueue[list[Item] | None] = SimpleQueue()
        self._done: SimpleQueue[_Outcome[Item, Result]] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._is_stopped = False
        self._open = 0
        self._singles = self._at_once * together

    def work(self, items: Iterator[Item]) -> Iterator[tuple[Item, Result]]:
        """Feed items and hand out results until both have ended."""
        error: BaseException | None = None
        is_exhausted = False
        while True:
            while error is None and not is_exhausted and self._open < self._at_once * _AHEAD:
                try:
                    is_exhausted = not self._add(items)
                except Exception as problem:  # noqa: BLE001 - raised below, when what is under way has ended
                    error = self._stop(problem)
            if self._open == 0:
                break
            outcome = self._done.get()
            self._open -= 1
            yield from outcome.pairs
            if outcome.error is not None:
                error = error or self._stop(outcome.error)
        if error is not None:
            raise error

    def _add(self, items: Iterator[Item]) -> bool:
        """Take a group; False when there was less than one."""
        # Few items are spread over all threads.
        size = 1 if self._singles > 0 else self._together
        self._singles -= 1
        group: list[Item] = []
        try:
            group.extend(islice(items, size))
        finally:
            if group:
                self._hand_out(group)
        return len(group) == size

    def _hand_out(self, group: list[Item]) -> None:
        self._open += 1
        self._todo.put(group)
        if len(self._threads) < self._at_once:
            thread = threading.Thread(target=self._run, name="mire-pool", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _stop(self, error: BaseException) -> BaseException:
        self._is_stopped = True
        return error

    def _run(self) -> None:
        if self._processor is not None:
            stay_on({self._processor})
        while (group := self._todo.get()) is not None:
            self._done.put(self._called(group))

    def _called(self, group: list[Item]) -> _Outcome[Item, Result]:
        """What becomes of a group; what is left of it is not called after an error, its own or another's."""
        pairs: list[tuple[Item, Result]] = []
        for item in group:
            if self._is_stopped:
                break
            try:
                pairs.append((item, self._call(item)))
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
                self._is_stopped = True
                return _Outcome(pairs, error)
        return _Outcome(pairs, None)

    def dismiss(self) -> None:
        """Start nothing more and wait for what is under way; a second Ctrl-C leaves without waiting."""
        self._is_stopped = True
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            if thread.ident is not None:  # else Ctrl-C came right before it was started
                thread.join()
