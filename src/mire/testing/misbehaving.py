"""A remote around a remote that fails, loses answers and lies about time when told to, and counts its calls.

Owns: faults of single calls, without any server.
Must not know: what the calls are for.
Keeps: a fault hits exactly the calls it was made for, in their order; what is not told to misbehave does not.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from mire.edge.remote import (
    Body,
    Condition,
    Level,
    Properties,
    Refused,
    Remote,
    Removed,
    Stat,
    Stored,
    Stream,
    Unknown,
)
from mire.edge.wrap import Wrapper
from mire.errors import RemoteError

T = TypeVar("T")
_Kind = Literal["raise", "lose", "never", "delay", "run"]


@dataclass(slots=True, kw_only=True)
class _Fault:
    call: str
    kind: _Kind
    error: RemoteError
    callback: Callable[[], object]
    skip: int
    times: int


class MisbehavingRemote(Wrapper):
    """A `Remote` with faults. `calls` counts by the name of the method."""

    def __init__(self, remote: Remote, *, properties: Properties | None = None) -> None:
        super().__init__(remote)
        self._properties = properties
        self._mutex = threading.Lock()
        self._faults: list[_Fault] = []
        self._late: list[Callable[[], object]] = []
        self.calls: Counter[str] = Counter()
        self.clock_ms = 0
        """How far the store's clock is ahead, for stamps and for what it tells."""
        self.aged_ms = 0
        """How much older than they are objects seem."""
        self.step_ms = 1
        """What stamps and the clock are rounded down to."""

    def fail(self, call: str, error: RemoteError | None = None, *, skip: int = 0, times: int = 1) -> None:
        """Let calls fail before anything happens."""
        self._add(call, "raise", error, skip=skip, times=times)

    def lose(self, call: str, *, is_applied: bool = True, skip: int = 0, times: int = 1) -> None:
        """Let the answers of conditional calls be lost: `Unknown`, whether or not it happened."""
        self._add(call, "lose" if is_applied else "never", None, skip=skip, times=times)

    def delay(self, call: str, *, skip: int = 0, times: int = 1) -> None:
        """Let conditional calls be answered by nobody, and happen only right before the next of their kind."""
        self._add(call, "delay", None, skip=skip, times=times)

    def run(self, call: str, callback: Callable[[], object], *, skip: int = 0, times: int = 1) -> None:
        """Do something right before a call happens."""
        self._add(call, "run", None, callback=callback, skip=skip, times=times)

    def _add(
        self,
        call: str,
        kind: _Kind,
        error: RemoteError | None,
        *,
        skip: int,
        times: int,
        callback: Callable[[], object] = lambda: None,
    ) -> None:
        error = error or RemoteError(f"{call} fails because it was told to", transient=True)
        with self._mutex:
            self._faults.append(_Fault(call=call, kind=kind, error=error, callback=callback, skip=skip, times=times))

    def _hit(self, call: str) -> _Fault | None:
        with self._mutex:
            self.calls[call] += 1
            for fault in self._faults:
                if fault.call != call or fault.times == 0:
                    continue
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        del key
        fault = self._hit(operation)
        if fault is not None and fault.kind != "run":
            raise fault.error
        if fault is not None:
            fault.callback()
        return call()

    def _decided(self, operation: str, act: Callable[[], T | Unknown]) -> T | Unknown:
        fault = self._hit(operation)
        late, self._late = self._late, []
        for each in late:
            each()
        if fault is None:
            return act()
        match fault.kind:
            case "raise":
                raise fault.error
            case "run":
                fault.callback()
                return act()
            case "lose":
                act()
            case "delay":
                self._late.append(act)
            case "never":
                pass
        return Unknown(fault.error)

    def _stat(self, stat: Stat) -> Stat:
        modified_ms = stat.modified_ms + self.clock_ms - self.aged_ms
        return replace(stat, modified_ms=modified_ms - modified_ms % self.step_ms)

    @property
    def properties(self) -> Properties:
        """What this remote says it can do."""
        return self._properties or super().properties

    def get(self, key: str) -> Body:
        """The object, all at once."""
        body = super().get(key)
        return replace(body, stat=self._stat(body.stat))

    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint."""
        body = super().get_if_changed(key, fingerprint)
        return None if body is None else replace(body, stat=self._stat(body.stat))

    def get_stream(self, key: str) -> Stream:
        """The object in pieces."""
        stream = super().get_stream(key)
        return replace(stream, stat=self._stat(stream.stat))

    def head(self, key: str) -> Stat:
        """What is known of the object."""
        return self._stat(super().head(key))

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds."""
        return self._decided("put_if", lambda: self._remote.put_if(key, data, condition, token=token))

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds."""
        return self._decided("put_stream_if", lambda: self._remote.put_stream_if(key, open_chunks, condition))

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Remove the object only if it has this fingerprint."""
        return self._decided("delete_if", lambda: self._remote.delete_if(key, fingerprint))

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix."""
        return map(self._stat, self._around("list", prefix, lambda: self._remote.list(prefix, after=after)))

    def list_level(self, prefix: str = "") -> Level:
        """One level of the listing."""
        level = super().list_level(prefix)
        return replace(level, objects=tuple(map(self._stat, level.objects)))

    def server_time_ms(self) -> float:
        """The store's clock, moved and rounded as told."""
        told = super().server_time_ms() + self.clock_ms
        return told if self.step_ms == 1 else told - told % self.step_ms
