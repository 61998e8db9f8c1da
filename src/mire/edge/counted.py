"""A remote that counts: what things cost.

Owns: the number of requests and bytes of each operation.
Must not know: what they are for, what they cost in money.
Keeps: counting is exact from many threads. A page of a listing is a request, and so is each part of a large upload and
its beginning and end. What a remote asks besides to make an error clear is not counted.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from mire.edge.limits import PAGE_KEYS, PART_BYTES
from mire.edge.remote import (
    Body,
    Condition,
    Level,
    Refused,
    Remote,
    Stat,
    Stored,
    Stream,
    Unknown,
)
from mire.edge.wrap import Wrapper

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one operation cost so far."""

    requests: int = 0
    up_bytes: int = 0
    down_bytes: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            requests=self.requests + other.requests,
            up_bytes=self.up_bytes + other.up_bytes,
            down_bytes=self.down_bytes + other.down_bytes,
        )

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(
            requests=self.requests - other.requests,
            up_bytes=self.up_bytes - other.up_bytes,
            down_bytes=self.down_bytes - other.down_bytes,
        )


@dataclass(frozen=True, slots=True)
class Costs:
    """What was asked of a remote until a moment, by operation (the name of the method)."""

    by_operation: dict[str, Cost]

    @property
    def total(self) -> Cost:
        """All operations together."""
        return sum(self.by_operation.values(), Cost())

    def requests(self) -> dict[str, int]:
        """The number of requests of each operation that made any."""
        return {name: cost.requests for name, cost in self.by_operation.items() if cost.requests}

    def __sub__(self, earlier: "Costs") -> "Costs":
        """What was asked since an earlier moment; operations that cost nothing since are left out."""
        differences = {name: cost - earlier.by_operation.get(name, Cost()) for name, cost in self.by_operation.items()}
        return Costs({name: cost for name, cost in differences.items() if cost != Cost()})


class Counted(Wrapper):
    """A `Remote` that counts requests and bytes; those that fail count, too."""

    def __init__(self, remote: Remote) -> None:
        super().__init__(remote)
        self._mutex = threading.Lock()
        self._costs: dict[str, Cost] = {}

    def costs(self) -> Costs:
        """What was asked so far; subtract two of these."""
        with self._mutex:
            return Costs(dict(self._costs))

    def _count(self, operation: str, *, requests: int = 0, up_bytes: int = 0, down_bytes: int = 0) -> None:
        cost = Cost(requests=requests, up_bytes=up_bytes, down_bytes=down_bytes)
        with self._mutex:
            self._costs[operation] = self._costs.get(operation, Cost()) + cost

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        del key
        self._count(operation, requests=1)
        answer = call()
        if isinstance(answer, Body):
            self._count(operation, down_bytes=len(answer.data))
        return answer

    def put(self, key: str, data: bytes) -> Stored:
        """Store an object."""
        self._count("put", up_bytes=len(data))
        return super().put(key, data)

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds."""
        self._count("put_if", up_bytes=len(data))
        return super().put_if(key, data, condition, token=token)

    def get_stream(self, key: str) -> Stream:
        """The object in pieces, counted as they come."""
        stream = super().get_stream(key)
        return replace(stream, chunks=self._downloaded(stream.chunks))

    def _downloaded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._count("get_stream", down_bytes=len(chunk))
            yield chunk

    def put_stream(self, key: str, open_chunks: Callable[[], Iterable[bytes]]) -> Stored:
        """Store an object from pieces, counted as they go."""
        return super().put_stream(key, lambda: self._uploaded("put_stream", open_chunks()))

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds, counted as they go."""
        return super().put_stream_if(key, lambda: self._uploaded("put_stream_if", open_chunks()), condition)

    def _uploaded(self, operation: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
        size = 0
        for chunk in chunks:
            before, size = _requests_for(size), size + len(chunk)
            self._count(operation, requests=_requests_for(size) - before, up_bytes=len(chunk))
            yield chunk

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix."""
        self._count("list", requests=1)
        for number, stat in enumerate(self._remote.list(prefix, after=after)):
            if number and number % PAGE_KEYS == 0:
                self._count("list", requests=1)
            yield stat

    def list_level(self, prefix: str = "") -> Level:
        """One level of the listing."""
        level = super().list_level(prefix)
        entries = len(level.objects) + len(level.prefixes)
        self._count("list_level", requests=max(0, (entries - 1) // PAGE_KEYS))
        return level


def _requests_for(size_bytes: int) -> int:
    """How many requests an upload of so many bytes takes: its parts, the beginning and the end; or just itself."""
    return 1 if size_bytes <= PART_BYTES else -(-size_bytes // PART_BYTES) + 2
