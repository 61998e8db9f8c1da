"""HTTP/1.1 by hand: bytes of a connection to requests, replies to bytes.

Owns: parsing of heads, bodies by length and in chunks, `Expect: 100-continue`, keep-alive and pipelining.
Must not know: what a request asks for, who answers it.
Keeps: the replies of one connection leave in the order of its requests; a request reaches the answerer whole or not
at all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, cast

_HEAD_MAX_BYTES: Final = 128 * 1024
_JOIN_MAX_BYTES: Final = 64 * 1024
"""Below this a reply is one write: a copy costs less than a second system call."""
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_NO_BODY: Final = frozenset((204, 304))


class BadRequestError(Exception):
    """What came is not HTTP as we read it."""


@dataclass(slots=True)
class Request:
    """A request as it came; header names are in lower case, `path` and `query` still percent-encoded."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes = b""
    keep_alive: bool = True


@dataclass(slots=True)
class Reply:
    """What is sent back; `length` is announced in place of the body's (for HEAD)."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    length: int | None = None
    cut_at: int | None = None
    """Send this many bytes of the body, then close the connection."""

    @property
    def sent_bytes(self) -> int:
        """How many bytes of the body go out."""
        return len(self.body) if self.cut_at is None else min(self.cut_at, len(self.body))


Outcome = Reply | None
"""None: close the connection without an answer."""
Answer = Callable[[Request], Outcome | Awaitable[Outcome]]


def parse_head(text: str) -> Request:
    """Read a request line and headers (without the empty line behind them)."""
    lines = text.split("\r\n")
    try:
        method, target, version = lines[0].split(" ")
    except ValueError:
        raise BadRequestError(f"request line {lines[0][:80]!r}") from None
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequestError(f"header {line[:80]!r}")
        name = name.lower()
        value = value.strip(" \t")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    path, _, query = target.partition("?")
    connection = headers.get("connection", "").lower()
    keep_alive = connection != "close" if version == "HTTP/1.1" else connection == "keep-alive"
    return Request(method, path, query, headers, keep_alive=keep_alive)


def encode_head(reply: Reply, date: str, *, keep_alive: bool) -> bytes:
    """The status line and headers of a reply, with the empty line behind them."""
    lines = [f"HTTP/1.1 {reply.status} {_REASONS.get(reply.status, 'Unknown')}\r\nDate: {date}\r\n"]
    lines += [f"{name}: {value}\r\n" for name, value in reply.headers]
    if reply.status not in _NO_BODY:
        lines.append(f"Content-Length: {len(reply.body) if reply.length is None else reply.length}\r\n")
    lines.append("\r\n" if keep_alive else "Connection: close\r\n\r\n")
    text = "".join(lines)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        # Only metadata that came through a document: what came in a header is latin-1, being its bytes.
        return text.encode()


class Chunks:
    """A body that comes in chunks, taken off a buffer as they arrive."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def take(self, buffer: bytearray) -> bytes | None:
        """Take what is there; the whole body once its end is, else None."""
        while (end := buffer.find(b"\r\n")) >= 0:
            try:
                size = int(buffer[:end].partition(b";")[0], 16)
            except ValueError:
                raise BadRequestError(f"chunk size {bytes(buffer[:40])!r}") from None
            if size == 0:
                # From this line's end on: where no trailer is, the empty line follows at once.
                close = buffer.find(b"\r\n\r\n", end)
                if close < 0:
                    return None
                del buffer[: close + 4]
                return b"".join(self._parts)
            stop = end + 2 + size
            if len(buffer) < stop + 2:
                return None
            self._parts.append(bytes(buffer[end + 2 : stop]))
            del buffer[: stop + 2]
        return None


class Connection(asyncio.Protocol):
    """One connection: requests in, replies out, in order."""

    def __init__(self, answer: Answer, date: Callable[[], str], alive: set["Connection"]) -> None:
        self._answer = answer
        self._date = date
        self._alive = alive
        self._buffer = bytearray()
        self._scanned = 0
        self._pending: Request | None = None
        self._length = 0
        self._chunks: Chunks | None = None
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = cast("asyncio.Transport", transport)
        self._alive.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; what is being answered goes on, as it would on a real server."""
        del exc
        self._transport = None
        self._alive.discard(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes and answer each request that is now complete."""
        self._buffer += data
        if self._task is None:
            self._advance()

    def close(self) -> asyncio.Task[None] | None:
        """Drop the connection at once; what it was still answering is cancelled and returned."""
        if self._transport is not None:
            self._transport.abort()
        if self._task is not None:
            self._task.cancel()
        return self._task

    def _advance(self) -> None:
        try:
            while self._task is None and (request := self._next()) is not None:
                outcome = self._answer(request)
                if outcome is None or isinstance(outcome, Reply):
                    self._send(request, outcome)
                else:
                    self._task = asyncio.get_running_loop().create_task(self._send_later(request, outcome))
        except BadRequestError as error:
            self._send(Request("", "", "", {}, keep_alive=False), Reply(400, body=str(error).encode()))

    async def _send_later(self, request: Request, outcome: Awaitable[Outcome]) -> None:
        reply = await outcome
        self._task = None
        self._send(request, reply)
        self._advance()

    def _next(self) -> Request | None:
        if self._pending is None and not self._begin():
            return None
        request = self._pending
        if request is None:
            return None
        if self._chunks is not None:
            body = self._chunks.take(self._buffer)
            if body is None:
                return None
        else:
            if len(self._buffer) < self._length:
                return None
            body = bytes(self._buffer[: self._length])
            del self._buffer[: self._length]
        request.body = body
        self._pending = None
        return request

    def _begin(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n", max(0, self._scanned - 3))
        if end < 0:
            self._scanned = len(self._buffer)
            if self._scanned > _HEAD_MAX_BYTES:
                raise BadRequestError("the head is too long")
            return False
        request = parse_head(self._buffer[:end].decode("latin-1"))
        del self._buffer[: end + 4]
        self._scanned = 0
        self._pending = request
        self._chunks = Chunks() if "chunked" in request.headers.get("transfer-encoding", "").lower() else None
        self._length = _length_of(request)
        if "expect" in request.headers and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _send(self, request: Request, reply: Outcome) -> None:
        transport = self._transport
        if transport is None:
            return
        if reply is None:
            transport.abort()
            return
        head = encode_head(reply, self._date(), keep_alive=request.keep_alive)
        body = reply.body if reply.cut_at is None else reply.body[: reply.cut_at]
        if len(body) <= _JOIN_MAX_BYTES:
            transport.write(head + body)
        else:
            transport.writelines(_pieces(head, body))
        if reply.cut_at is not None or not request.keep_alive:
            transport.close()


def _pieces(head: bytes, body: bytes) -> Iterable[bytes]:
    return (head, body)


def _length_of(request: Request) -> int:
    text = request.headers.get("content-length", "0")
    if not text.isdecimal():
        raise BadRequestError(f"Content-Length {text[:40]!r}")
    return int(text)
