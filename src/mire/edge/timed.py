"""A remote with a deadline: after it no new request is made.

Owns: the clock of one sync.
Must not know: what is synced, or what to tell about it.
Keeps: a request that was made is waited for, so that nothing goes on unseen; every later one is refused with the same
error, in whatever thread.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from mire.edge import clock
from mire.edge.remote import Condition, Refused, Remote, Stat, Stored, Stream, Unknown
from mire.edge.wrap import Wrapper
from mire.errors import MireError

T = TypeVar("T")


class Timed(Wrapper):
    """A `Remote` that refuses requests once its time is up; `late` makes the error."""

    def __init__(
        self,
        remote: Remote,
        budget_ms: float,
        late: Callable[[], MireError],
        *,
        now_ms: Callable[[], float] = clock.monotonic_ms,
    ) -> None:
        super().__init__(remote)
        self._now_ms = now_ms
        self._end_ms = now_ms() + budget_ms
        self._late = late

    def _check(self) -> None:
        if self._now_ms() > self._end_ms:
            raise self._late()

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        self._check()
        return super()._around(operation, key, call)

    def get_stream(self, key: str) -> Stream:
        """The object in pieces, as long as there is time."""
        stream = super().get_stream(key)
        return replace(stream, chunks=self._bounded(stream.chunks))

    def put_stream(self, key: str, open_chunks: Callable[[], Iterable[bytes]]) -> Stored:
        """Store an object from pieces, as long as there is time."""
        return super().put_stream(key, lambda: self._bounded(open_chunks()))

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds, as long as there is time."""
        return super().put_stream_if(key, lambda: self._bounded(open_chunks()), condition)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix, as long as there is time."""
        self._check()
        for stat in self._remote.list(prefix, after=after):
            yield stat
            self._check()

    def _bounded(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._check()
            yield chunk
