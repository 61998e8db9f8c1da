"""A remote whose calls are spans of OpenTelemetry; where nobody has configured it, they are nothing.

Owns: a span for each call, and what it says.
Must not know: where spans go.
Keeps: a span has the store's name, the key, sizes and the outcome: nothing of what is stored, no token, no foreign
text. A listing and a stream are one span each, from the first piece to the last.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from mire.edge.remote import (
    Body,
    Condition,
    Level,
    Refused,
    Remote,
    Removed,
    Stat,
    Stored,
    Stream,
    Unknown,
)
from mire.edge.wrap import Wrapper
from mire.errors import MireError, NotFoundError

T = TypeVar("T")


class Traced(Wrapper):
    """A `Remote` with a span `mire.remote.<operation>` for each call; of the global provider, unless one is given.

    A provider must be there when a store is opened: spans of nobody, one for each of many small calls, are not free.
    """

    def __init__(self, remote: Remote, *, provider: Any = None) -> None:
        super().__init__(remote)
        from opentelemetry import trace  # noqa: PLC0415 - only who traces pays for the import

        self._tracer = trace.get_tracer("mire", tracer_provider=provider)
        self._is_on = provider is not None or not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
        self._error_status = trace.StatusCode.ERROR
        self._name = remote.properties.name

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        return self._spanned(operation, key, call, {})

    def _spanned(self, operation: str, key: str, call: Callable[[], T], facts: dict[str, Any]) -> T:
        if not self._is_on:
            return call()
        with self._tracer.start_as_current_span(
            f"mire.remote.{operation}", record_exception=False, set_status_on_exception=False
        ) as span:
            if not span.is_recording():
                return call()
            span.set_attributes({"mire.remote": self._name, "mire.key": key, **facts})
            try:
                answer = call()
            except MireError as error:
                self._fail(span, error)
                raise
            span.set_attributes(_facts_of(answer))
            return answer

    def _fail(self, span: Any, error: MireError) -> None:
        span.set_attribute("mire.outcome", error.kind)
        if not isinstance(error, NotFoundError):
            span.set_status(self._error_status, error.message)

    def put(self, key: str, data: bytes) -> Stored:
        """Store an object."""
        return self._spanned("put", key, lambda: self._remote.put(key, data), {"mire.size_bytes": len(data)})

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds."""
        facts = {"mire.size_bytes": len(data), "mire.condition": type(condition).__name__.lower()}
        return self._spanned("put_if", key, lambda: self._remote.put_if(key, data, condition, token=token), facts)

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds."""
        facts = {"mire.condition": type(condition).__name__.lower()}
        return self._spanned(
            "put_stream_if", key, lambda: self._remote.put_stream_if(key, open_chunks, condition), facts
        )

    def get_stream(self, key: str) -> Stream:
        """The object in pieces; the span ends with the last one."""
        if not self._is_on:
            return self._remote.get_stream(key)
        span = self._begin("get_stream", key)
        try:
            stream = self._remote.get_stream(key)
        except MireError as error:
            self._fail(span, error)
            span.end()
            raise
        return replace(stream, chunks=self._watched(span, stream.chunks, len, "mire.size_bytes"))

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix; the span ends with the last one."""
        found = self._remote.list(prefix, after=after)
        yield from self._watched(self._begin("list", prefix), found, lambda _: 1, "mire.objects")

    def _begin(self, operation: str, key: str) -> Any:
        span = self._tracer.start_span(f"mire.remote.{operation}")
        if span.is_recording():
            span.set_attributes({"mire.remote": self._name, "mire.key": key})
        return span

    def _watched(self, span: Any, pieces: Iterator[T], weight: Callable[[T], int], total: str) -> Iterator[T]:
        seen, outcome = 0, "left"
        try:
            for piece in pieces:
                seen += weight(piece)
                yield piece
            outcome = "found"
        except MireError as error:
            outcome = error.kind
            self._fail(span, error)
            raise
        finally:
            span.set_attributes({total: seen, "mire.outcome": outcome})
            span.end()


def _facts_of(answer: object) -> dict[str, Any]:
    match answer:
        case Body():
            return {"mire.outcome": "found", "mire.size_bytes": len(answer.data)}
        case Stat():
            return {"mire.outcome": "found", "mire.size_bytes": answer.size_bytes}
        case Level():
            return {"mire.outcome": "found", "mire.objects": len(answer.objects) + len(answer.prefixes)}
        case Stored() | Removed() | Refused():
            return {"mire.outcome": type(answer).__name__.lower()}
        case Unknown():
            return {"mire.outcome": "unknown", "mire.error": answer.error.kind}
        case _:
            return {"mire.outcome": "done"}
