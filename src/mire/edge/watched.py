"""A remote somebody watches: told how many objects have come and gone.

Owns: the count.
Must not know: who watches, what an object is.
Keeps: the watcher is called by one thread at a time, and what it does cannot change an answer.
"""

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from mire.edge.remote import Remote
from mire.edge.wrap import Wrapper

T = TypeVar("T")

_COUNTED: Final = frozenset(
    ("get", "get_stream", "put", "put_stream", "put_if", "put_stream_if", "delete", "delete_if")
)


class Watched(Wrapper):
    """A `Remote` that tells a watcher the number of objects moved so far."""

    def __init__(self, remote: Remote, watch: Callable[[int], None]) -> None:
        super().__init__(remote)
        self._watch = watch
        self._guard = threading.Lock()
        self._count = 0

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        answer = super()._around(operation, key, call)
        if operation in _COUNTED:
            with self._guard:
                self._count += 1
                self._watch(self._count)
        return answer
