"""A call with a deadline: what is not answered in time counts as not answered.

Owns: waiting for a call in another thread.
Must not know: what is called.
Keeps: after the deadline nobody waits; the call itself ends when it ends, and its answer is dropped.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from mire.edge import clock
from mire.errors import MireError, RemoteError

T = TypeVar("T")


def gather(calls: Sequence[Callable[[], T]], *, deadline_ms: float, what: str) -> list[T | MireError]:
    """The answers to all calls, made at the same time; an error in place of one that failed or came too late."""
    late = RemoteError(f"{what} was not answered in {deadline_ms / 1000:g} s", kind="timeout", transient=True)
    answers: list[T | MireError] = [late] * len(calls)
    if deadline_ms <= 0:
        return answers
    told: queue.SimpleQueue[tuple[int, T | MireError | BaseException]] = queue.SimpleQueue()
    for index, call in enumerate(calls):
        threading.Thread(target=_tell, args=(index, call, told), name="mire-deadline", daemon=True).start()
    started = clock.monotonic_ms()
    for _ in calls:
        try:
            index, answer = told.get(timeout=max(0.0, deadline_ms - (clock.monotonic_ms() - started)) / 1000)
        except queue.Empty:
            break
        if isinstance(answer, BaseException) and not isinstance(answer, MireError):
            raise answer
        answers[index] = answer
    return answers


def _tell(
    index: int, call: Callable[[], T], told: "queue.SimpleQueue[tuple[int, T | MireError | BaseException]]"
) -> None:
    try:
        told.put((index, call()))
    except BaseException as error:  # noqa: BLE001 - raised where somebody waits for it
        told.put((index, error))
