"""A remote that tries again, and finds out what became of a conditional write whose answer was lost.

Owns: which failures are worth another try, how long to wait, and settling by reading back.
Must not know: what the bytes mean, which store it is.
Keeps: `Unknown` leaves only when the store cannot be read either. Our own write is never taken for somebody else's:
each logical write has one token, whatever the number of tries. Rights, missing things and refusals are final.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from mire.edge import clock
from mire.edge.remote import (
    Absent,
    Body,
    Condition,
    Refused,
    Remote,
    Removed,
    Stat,
    Stored,
    Stream,
    Unknown,
)
from mire.edge.wrap import Wrapper
from mire.errors import NotFoundError, RemoteError, shown

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and how long; the functions are those of `clock`, unless a test brings its own."""

    attempts: int = 5
    first_ms: float = 100
    most_ms: float = 5_000
    unreachable_ms: float = 2_000
    """After this long nothing is expected of a store that cannot be reached: a wrong address should fail at once."""
    pause: Callable[[float], None] = clock.pause
    jitter: Callable[[], float] = clock.jitter
    now_ms: Callable[[], float] = clock.monotonic_ms

    def delay_ms(self, tries: int) -> float:
        """How long to wait after so many tries: doubling, half of it by chance, so that waiters spread."""
        limit = min(self.most_ms, self.first_ms * 2.0 ** (tries - 1))
        return limit * (0.5 + 0.5 * self.jitter())


class _Tries:
    """The tries of one logical call."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._started_ms = patience.now_ms()
        self._count = 0

    def again(self, error: RemoteError) -> bool:
        """Whether to try once more after this error; if so, the wait is over."""
        self._count += 1
        if not error.transient or self._count >= self._patience.attempts:
            return False
        waited_ms = self._patience.now_ms() - self._started_ms
        if error.kind == "unreachable" and waited_ms >= self._patience.unreachable_ms:
            return False
        self._patience.pause(self._patience.delay_ms(self._count))
        return True

    def progress(self) -> None:
        """Something was achieved: count from the beginning."""
        self._count = 0


class Retrying(Wrapper):
    """A `Remote` that does not give up at the first failure."""

    def __init__(
        self, remote: Remote, patience: Patience | None = None, *, new_token: Callable[[], str] = clock.new_uuid
    ) -> None:
        super().__init__(remote)
        self._patience = patience or Patience()
        self._new_token = new_token

    def with_inside(self, wrap: Callable[[Remote], Remote]) -> "Retrying":
        """The same patience around a wrapper of the remote inside, which then sees every single try."""
        return Retrying(wrap(self._remote), self._patience, new_token=self._new_token)

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        del operation, key
        tries = _Tries(self._patience)
        while True:
            try:
                return call()
            except RemoteError as error:
                if not tries.again(error):
                    raise

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds; a lost answer is settled by reading the object back."""
        token = token or self._new_token()
        return self._settled(
            lambda: self._remote.put_if(key, data, condition, token=token),
            lambda: _put_verdict(self._read(key), data, condition, token),
        )

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds; a lost answer is settled by reading the object back."""
        sent = hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            nonlocal sent
            sent = hashlib.sha256()
            for chunk in open_chunks():
                sent.update(chunk)
                yield chunk

        return self._settled(
            lambda: self._remote.put_stream_if(key, hashed, condition),
            lambda: self._stream_verdict(key, sent.digest(), condition),
        )

    def _stream_verdict(self, key: str, sent: bytes, condition: Condition) -> Stored | Refused | None:
        """What became of a large write: its bytes are read again, as nothing else tells whose they are."""
        try:
            stream = self.get_stream(key)
        except NotFoundError:
            return None if isinstance(condition, Absent) else Refused()
        if not isinstance(condition, Absent) and stream.stat.fingerprint == condition.fingerprint:
            return None
        found = hashlib.sha256()
        for chunk in stream.chunks:
            found.update(chunk)
        return Stored(stream.stat.fingerprint) if found.digest() == sent else Refused()

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Remove the object only if it has this fingerprint; a lost answer is settled by looking."""
        return self._settled(
            lambda: self._remote.delete_if(key, fingerprint),
            lambda: _delete_verdict(self._look(key), fingerprint),
        )

    def _settled(
        self, act: Callable[[], T | Refused | Unknown], verdict: Callable[[], T | Refused | None]
    ) -> T | Refused | Unknown:
        """Act until the outcome is known; `verdict` reads the store, None when it is as it was before."""
        tries = _Tries(self._patience)
        doubt: Unknown | None = None
        while True:
            outcome = _caught(act)
            if isinstance(outcome, RemoteError):
                if tries.again(outcome):
                    continue
                if doubt is None:
                    raise outcome
                return doubt
            if isinstance(outcome, Unknown):
                doubt = outcome
            if doubt is None or not isinstance(outcome, Unknown | Refused):
                return outcome
            known = _caught(verdict)
            if known is not None:
                return doubt if isinstance(known, RemoteError) else known
            if isinstance(outcome, Refused):
                return outcome
            if not tries.again(doubt.error):
                return doubt

    def _read(self, key: str) -> Body | None:
        try:
            return self.get(key)
        except NotFoundError:
            return None

    def _look(self, key: str) -> Stat | None:
        try:
            return self.head(key)
        except NotFoundError:
            return None

    def get_stream(self, key: str) -> Stream:
        """The object in pieces; a broken stream is begun again and goes on where it was, if nothing changed."""
        stream = super().get_stream(key)
        return Stream(stat=stream.stat, chunks=self._resumed(stream))

    def _resumed(self, stream: Stream) -> Iterator[bytes]:
        expected, given, tries = stream.stat, 0, _Tries(self._patience)
        while True:
            try:
                for chunk in _after(stream.chunks, given):
                    given += len(chunk)
                    tries.progress()
                    yield chunk
            except RemoteError as error:
                if not tries.again(error):
                    raise
            else:
                return
            stream = super().get_stream(expected.key)
            if stream.stat.fingerprint != expected.fingerprint:
                raise RemoteError(
                    f"object {shown(expected.key)} in {self.properties.name} changed while it was read: read it again",
                    kind="changed",
                    transient=True,
                    key=expected.key,
                )

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix; a broken listing goes on behind the last key."""
        tries = _Tries(self._patience)
        while True:
            try:
                for stat in self._remote.list(prefix, after=after):
                    after = stat.key
                    tries.progress()
                    yield stat
            except RemoteError as error:
                if not tries.again(error):
                    raise
            else:
                return


def _caught(call: Callable[[], T]) -> T | RemoteError:
    try:
        return call()
    except RemoteError as error:
        return error


def _put_verdict(found: Body | None, data: bytes, condition: Condition, token: str) -> Stored | Refused | None:
    """What became of a write, from what is there now; None when it did not happen and still may."""
    if found is None:
        return None if isinstance(condition, Absent) else Refused()
    # A store that keeps no tokens leaves the bytes to tell.
    is_ours = found.token == token if found.token is not None else found.data == data
    if is_ours:
        return Stored(found.stat.fingerprint)
    if not isinstance(condition, Absent) and found.stat.fingerprint == condition.fingerprint:
        return None
    return Refused()


def _delete_verdict(found: Stat | None, fingerprint: str) -> Removed | Refused | None:
    if found is None:
        return Removed()
    return None if found.fingerprint == fingerprint else Refused()


def _after(chunks: Iterable[bytes], skip: int) -> Iterator[bytes]:
    """The pieces without their first bytes."""
    for chunk in chunks:
        if skip >= len(chunk):
            skip -= len(chunk)
        else:
            yield chunk[skip:] if skip else chunk
            skip = 0
