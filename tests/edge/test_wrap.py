"""Remotes around remotes: trying again, counting, tracing, throttling, pretending."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mire.edge import pool
from mire.edge.counted import Cost, Counted
from mire.edge.dryrun import DryRun, Planned
from mire.edge.limits import PART_BYTES
from mire.edge.memory import MemoryRemote
from mire.edge.objectstore import open_memory, open_s3
from mire.edge.remote import (
    Absent,
    Body,
    Matches,
    Refused,
    Remote,
    Removed,
    Stat,
    Stored,
    Stream,
    Unknown,
)
from mire.edge.retrying import Patience, Retrying
from mire.edge.throttled import Pace, Throttled
from mire.edge.traced import Traced
from mire.edge.wrap import Wrapper
from mire.errors import DeniedError, InputError, MireError, NotFoundError, RemoteError, ThrottledError
from mire.model.backend import S3Settings
from mire.testing import faults
from mire.testing.conformance import check_remote
from mire.testing.misbehaving import MisbehavingRemote
from mire.testing.s3server import S3Server

CALLS: dict[str, Callable[[Remote], object]] = {
    "get": lambda remote: remote.get("k").data,
    "get_if_changed": lambda remote: remote.get_if_changed("k", "x") is not None,
    "get_stream": lambda remote: b"".join(remote.get_stream("k").chunks),
    "head": lambda remote: remote.head("k").size_bytes,
    "put": lambda remote: remote.put("k", b"bytes"),
    "put_stream": lambda remote: remote.put_stream("k", lambda: [b"by", b"tes"]),
    "delete": lambda remote: remote.delete("other"),
    "list": lambda remote: [stat.key for stat in remote.list()],
    "list_level": lambda remote: len(remote.list_level().objects),
    "copy": lambda remote: remote.copy("k", "l"),
    "server_time_ms": lambda remote: remote.server_time_ms() > 0,
}


@dataclass
class Clock:
    """A clock that only pausing moves."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def now_ms(self) -> float:
        """The time."""
        return self.now

    def pause(self, milliseconds: float) -> None:
        """Let time pass."""
        self.pauses.append(milliseconds)
        self.now += milliseconds


@pytest.fixture
def clock() -> Clock:
    """A clock for one test."""
    return Clock()


@pytest.fixture
def patience(clock: Clock) -> Patience:
    """Five tries that take no time."""
    return Patience(pause=clock.pause, now_ms=clock.now_ms, jitter=lambda: 1.0)


@pytest.fixture
def broken() -> MisbehavingRemote:
    """A store in memory that misbehaves when told to, with one object."""
    remote = open_memory()
    remote.put("k", b"bytes")
    return MisbehavingRemote(remote)


def wrapped_in(remote: Remote, patience: Patience) -> dict[str, Remote]:
    """Every wrapper around a remote."""
    return {
        "wrapper": Wrapper(remote),
        "retrying": Retrying(remote, patience),
        "counted": Counted(remote),
        "traced": Traced(remote),
        "throttled": Throttled(remote, at_once=16),
        "dry run": DryRun(remote),
        "all": Counted(Retrying(Throttled(Traced(remote), at_once=16), patience)),
    }


@pytest.mark.parametrize("name", ["wrapper", "retrying", "counted", "traced", "throttled", "dry run", "all"])
@pytest.mark.parametrize("content_fingerprint", [True, False])
def test_a_wrapped_remote_keeps_the_contract(name: str, patience: Patience, *, content_fingerprint: bool) -> None:
    """Whatever is around a remote, it is still one."""
    remote = wrapped_in(MemoryRemote(content_fingerprint=content_fingerprint), patience)[name]
    check_remote(lambda: remote)


@pytest.mark.parametrize("name", CALLS)
def test_a_passing_failure_is_tried_again(
    name: str, broken: MisbehavingRemote, patience: Patience, clock: Clock
) -> None:
    """A call that fails four times succeeds; one that fails five times is given up with the last error."""
    expected = CALLS[name](broken)
    before = broken.calls[name]
    broken.fail(name, times=4)
    assert CALLS[name](Retrying(broken, patience)) == expected
    assert broken.calls[name] - before == 5
    assert clock.pauses == [100, 200, 400, 800]
    error = RemoteError("the last straw", transient=True)
    broken.fail(name, error, times=5)
    with pytest.raises(RemoteError) as caught:
        CALLS[name](Retrying(broken, patience))
    assert caught.value is error
    assert broken.calls[name] - before == 10


@pytest.mark.parametrize(
    "error",
    [DeniedError("no"), RemoteError("no"), RemoteError("tls", kind="tls"), DeniedError("x", kind="expired_token")],
)
@pytest.mark.parametrize("name", [*CALLS, "put_if", "delete_if"])
def test_a_final_failure_is_not_tried_again(
    name: str, error: RemoteError, broken: MisbehavingRemote, patience: Patience, clock: Clock
) -> None:
    """Rights, certificates and the like do not change by asking again."""
    calls = CALLS | {
        "put_if": lambda remote: remote.put_if("k", b"", Absent()),
        "delete_if": lambda remote: remote.delete_if("k", "x"),
    }
    broken.fail(name, error)
    with pytest.raises(RemoteError) as caught:
        calls[name](Retrying(broken, patience))
    assert caught.value is error
    assert clock.pauses == []


def test_missing_and_refused_are_answers(broken: MisbehavingRemote, patience: Patience, clock: Clock) -> None:
    """What is not there is not looked for again, and a refusal is believed."""
    remote = Retrying(broken, patience)
    with pytest.raises(NotFoundError):
        remote.get("nothing")
    assert remote.put_if("k", b"", Absent()) == Refused()
    assert remote.delete_if("k", "x") == Refused()
    assert clock.pauses == []


def test_waiting_doubles_up_to_a_limit_and_is_spread() -> None:
    """Each wait is up to twice the one before; half of it is left to chance."""
    patience = Patience(first_ms=100, most_ms=500, jitter=lambda: 0.0)
    assert [patience.delay_ms(tries) for tries in range(1, 6)] == [50, 100, 200, 250, 250]
    patience = replace(patience, jitter=lambda: 0.5)
    assert [patience.delay_ms(tries) for tries in range(1, 6)] == [75, 150, 300, 375, 375]


def test_a_store_that_cannot_be_reached_fails_soon(broken: MisbehavingRemote, clock: Clock) -> None:
    """A wrong address is not tried for as long as a busy store."""
    patience = Patience(
        attempts=1000, unreachable_ms=2_000, most_ms=500, pause=clock.pause, now_ms=clock.now_ms, jitter=lambda: 1.0
    )
    broken.fail("get", RemoteError("gone", transient=True, kind="unreachable"), times=1000)
    with pytest.raises(RemoteError):
        Retrying(broken, patience).get("k")
    assert 2_000 <= clock.now < 2_600


class Forgetful(Wrapper):
    """A store that keeps no tokens."""

    def get(self, key: str) -> Body:
        """The object, without its token."""
        return replace(super().get(key), token=None)


@pytest.fixture(params=["tokens", "no tokens"])
def store(request: pytest.FixtureRequest) -> MisbehavingRemote:
    """A misbehaving store whose writes all have fingerprints of their own, with and without tokens."""
    memory: Remote = MemoryRemote(content_fingerprint=False)
    memory.put("k", b"old")
    return MisbehavingRemote(memory if request.param == "tokens" else Forgetful(memory))


@pytest.mark.parametrize("is_applied", [True, False])
@pytest.mark.parametrize("times", [1, 3])
def test_a_lost_creation_is_settled(
    store: MisbehavingRemote, patience: Patience, *, is_applied: bool, times: int
) -> None:
    """Whether or not it happened, a creation whose answers were lost ends as ours, exactly once."""
    store.lose("put_if", is_applied=is_applied, times=times)
    outcome = Retrying(store, patience).put_if("new", b"mine", Absent())
    assert outcome == Stored(store.head("new").fingerprint)
    assert store.get("new").data == b"mine"
    assert store.calls["put_if"] == (1 if is_applied else times + 1)


@pytest.mark.parametrize("is_applied", [True, False])
def test_a_lost_update_is_settled(store: MisbehavingRemote, patience: Patience, *, is_applied: bool) -> None:
    """An update whose answer was lost is ours if it happened, and is made if it did not."""
    store.lose("put_if", is_applied=is_applied)
    old = store.head("k").fingerprint
    outcome = Retrying(store, patience).put_if("k", b"mine", Matches(old))
    assert outcome == Stored(store.head("k").fingerprint)
    assert store.get("k").data == b"mine"


@pytest.mark.parametrize("is_applied", [True, False])
def test_a_lost_removal_is_settled(store: MisbehavingRemote, patience: Patience, *, is_applied: bool) -> None:
    """A removal whose answer was lost is done in the end."""
    store.lose("delete_if", is_applied=is_applied)
    assert Retrying(store, patience).delete_if("k", store.head("k").fingerprint) == Removed()
    with pytest.raises(NotFoundError):
        store.head("k")


@pytest.mark.parametrize("condition", ["absent", "matches"])
def test_somebody_elses_write_is_not_ours(store: MisbehavingRemote, patience: Patience, condition: str) -> None:
    """When our write did not happen and another one did meanwhile, the answer is no."""
    key, wanted = ("new", Absent()) if condition == "absent" else ("k", Matches(store.head("k").fingerprint))
    store.lose("put_if", is_applied=False)
    store.run("get", lambda: store._remote.put(key, b"theirs"))
    assert Retrying(store, patience).put_if(key, b"mine", wanted) == Refused()
    assert store.get(key).data == b"theirs"


def test_a_refusal_by_our_own_write_is_not_a_refusal(store: MisbehavingRemote, patience: Patience) -> None:
    """A second try that is refused because the first one happened after all is a yes."""
    late: list[Callable[[], object]] = []
    inner = store._remote

    class Late(Wrapper):
        """Applies the first write only when the second one is made."""

        def put_if(self, key: str, data: bytes, condition: Any, *, token: str | None = None) -> Any:
            if not late:
                late.append(lambda: inner.put_if(key, data, condition, token=token))
                return Unknown(RemoteError("lost", transient=True))
            late[0]()
            return super().put_if(key, data, condition, token=token)

    outcome = Retrying(Late(store), patience).put_if("new", b"mine", Absent())
    assert outcome == Stored(inner.head("new").fingerprint)


@pytest.mark.parametrize("operation", ["put_if", "delete_if"])
def test_what_cannot_be_read_stays_unknown(store: MisbehavingRemote, patience: Patience, operation: str) -> None:
    """Only when the store cannot be read either, or keeps losing answers, is the outcome unknown."""
    calls: dict[str, Callable[[Remote], object]] = {
        "put_if": lambda remote: remote.put_if("new", b"mine", Absent()),
        "delete_if": lambda remote: remote.delete_if("k", store._remote.head("k").fingerprint),
    }
    reading = "get" if operation == "put_if" else "head"
    store.lose(operation, is_applied=False)
    store.fail(reading, times=5)
    assert isinstance(calls[operation](Retrying(store, patience)), Unknown)
    store.lose(operation, is_applied=False)
    store.fail(reading, DeniedError("write only"))
    assert isinstance(calls[operation](Retrying(store, patience)), Unknown)
    store.lose(operation, is_applied=False, times=5)
    assert isinstance(calls[operation](Retrying(store, patience)), Unknown)
    store.lose(operation, is_applied=False)
    store.fail(operation, DeniedError("expired meanwhile"))
    assert isinstance(calls[operation](Retrying(store, patience)), Unknown)


def test_a_write_has_one_token_whatever_the_tries(patience: Patience) -> None:
    """All tries of one write have one token, and no two writes share one; one that is given is used."""
    tokens: list[str | None] = []

    class Watching(Wrapper):
        """Notes the tokens."""

        def put_if(self, key: str, data: bytes, condition: Any, *, token: str | None = None) -> Any:
            tokens.append(token)
            return super().put_if(key, data, condition, token=token)

    inner = MisbehavingRemote(open_memory())
    inner.lose("put_if", is_applied=False, times=2)
    remote = Retrying(Watching(inner), patience)
    remote.put_if("a", b"", Absent())
    remote.put_if("b", b"", Absent())
    remote.put_if("c", b"", Absent(), token="given")  # noqa: S106 - not a secret
    assert tokens[0] == tokens[1] == tokens[2] != tokens[3]
    assert tokens[3] is not None
    assert tokens[4:] == ["given"]
    assert inner.get("a").token == tokens[0]


class Torn(Wrapper):
    """A store whose streams and listings break off after so many pieces, as often as told."""

    def __init__(self, remote: Remote, breaks: list[int]) -> None:
        super().__init__(remote)
        self.breaks = breaks
        self.changes: list[Callable[[], object]] = []
        self.afters: list[str | None] = []

    def _torn(self, pieces: Iterator[Any]) -> Iterator[Any]:
        left = self.breaks.pop(0) if self.breaks else -1
        for piece in pieces:
            if left == 0:
                for change in self.changes:
                    change()
                raise RemoteError("torn", transient=True, kind="lost")
            left -= 1
            yield piece

    def get_stream(self, key: str) -> Stream:
        """A stream that breaks off; its pieces have five bytes."""
        body = self._remote.get(key)
        pieces = (body.data[start : start + 5] for start in range(0, len(body.data), 5))
        return Stream(stat=body.stat, chunks=self._torn(pieces))

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """A listing that breaks off."""
        self.afters.append(after)
        return self._torn(self._remote.list(prefix, after=after))


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(0, 120))
def test_a_torn_stream_goes_on_where_it_was(breaks: list[int], size: int) -> None:
    """However often a stream breaks, as long as it gets further the object arrives whole, no byte twice."""
    memory = open_memory()
    data = bytes(range(size))
    memory.put("k", data)
    patience = Patience(attempts=40, pause=lambda _: None)
    assert b"".join(Retrying(Torn(memory, breaks), patience).get_stream("k").chunks) == data


def test_a_stream_that_never_gets_further_is_given_up(patience: Patience) -> None:
    """Without progress the tries come to an end."""
    memory = open_memory()
    memory.put("k", bytes(20))
    torn = Torn(memory, [2] * 100)
    chunks = Retrying(torn, patience).get_stream("k").chunks
    assert [next(chunks), next(chunks)] == [bytes(5), bytes(5)]
    with pytest.raises(RemoteError, match="torn"):
        next(chunks)
    assert len(torn.breaks) == 100 - 5


def test_a_stream_of_something_else_is_not_continued(patience: Patience) -> None:
    """When the object was replaced in the middle, the rest of the new one is not glued to the old one."""
    memory = open_memory()
    memory.put("k", bytes(20))
    torn = Torn(memory, [2])
    torn.changes.append(lambda: memory.put("k", b"x" * 20))
    with pytest.raises(RemoteError, match="changed while it was read") as caught:
        list(Retrying(torn, patience).get_stream("k").chunks)
    assert caught.value.kind == "changed"


@given(st.lists(st.integers(0, 12), max_size=20))
def test_a_torn_listing_goes_on_behind_the_last_key(breaks: list[int]) -> None:
    """However often a listing breaks, each object is listed once."""
    memory = open_memory()
    keys = [f"k{number:02}" for number in range(10)]
    for key in keys:
        memory.put(key, b"")
    torn = Torn(memory, breaks)
    assert [stat.key for stat in Retrying(torn, Patience(attempts=30, pause=lambda _: None)).list()] == keys
    assert torn.afters == sorted(torn.afters, key=lambda after: after or "")


def test_an_upload_begins_anew(broken: MisbehavingRemote, patience: Patience) -> None:
    """Each try of an upload asks for the pieces again; what the source raises is not tried again."""
    opened = []

    def open_chunks() -> list[bytes]:
        opened.append(1)
        return [b"abc"]

    class Late(Wrapper):
        """Fails after it has read everything."""

        def put_stream(self, key: str, open_chunks: Any) -> Stored:
            list(open_chunks())
            return super().put_stream(key, open_chunks)

    broken.fail("put_stream", times=2)
    Retrying(Late(broken), patience).put_stream("k", open_chunks)
    assert len(opened) == 4
    with pytest.raises(ZeroDivisionError):
        Retrying(broken, patience).put_stream("k", lambda: [bytes(1 // len([]))])


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_answers_of_a_server_that_pass(s3_server: S3Server, aws: None, patience: Patience, status: int) -> None:
    """On a real connection, too, each of these is tried again, for objects and for listings."""
    remote = Retrying(open_s3(S3Settings(bucket="b", endpoint=s3_server.url)), patience)
    for name, call in CALLS.items():
        if name == "server_time_ms":
            continue
        s3_server.put("b", "k", b"bytes")
        s3_server.reset()
        s3_server.inject(faults.Fail(status), times=2)
        call(remote)
        assert sum(s3_server.counts().values()) == 3, name
    s3_server.inject(faults.Fail(status), times=2)
    assert isinstance(remote.put_if("new", b"", Absent()), Stored)


@pytest.mark.parametrize("action", [faults.Drop(), faults.ApplyThenDrop(), faults.ApplyThenFail(503)])
def test_lost_answers_of_a_server_are_settled(
    s3_server: S3Server, aws: None, patience: Patience, action: faults.Action
) -> None:
    """A conditional write over a real connection whose answer is lost ends as ours, and so does a removal."""
    remote = Retrying(open_s3(S3Settings(bucket="b", endpoint=s3_server.url)), patience)
    s3_server.inject(action, operation="PutObject", times=2)
    first = remote.put_if("k", b"one", Absent())
    assert first == Stored(remote.head("k").fingerprint)
    s3_server.inject(action, operation="PutObject", times=2)
    second = remote.put_if("k", b"two", Matches(first.fingerprint))
    assert second == Stored(remote.head("k").fingerprint)
    assert s3_server.get("b", "k") == b"two"
    s3_server.inject(action, operation="DeleteObject")
    assert remote.delete_if("k", second.fingerprint) == Removed()
    assert s3_server.keys("b") == []


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that our server accepts."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")


@pytest.mark.parametrize("is_applied", [True, False])
def test_a_lost_answer_to_a_large_conditional_write_is_settled(patience: Patience, *, is_applied: bool) -> None:
    """Whether it happened is read from the bytes: it is ours, or tried again; somebody else's is a refusal."""
    store = MisbehavingRemote(open_memory())
    store.lose("put_stream_if", is_applied=is_applied)
    remote = Retrying(store, patience)
    first = remote.put_stream_if("k", lambda: [b"mi", b"ne"], Absent())
    assert isinstance(first, Stored)
    assert store.calls["put_stream_if"] == (1 if is_applied else 2)
    store.lose("put_stream_if", is_applied=is_applied)
    assert isinstance(remote.put_stream_if("k", lambda: [b"new"], Matches(first.fingerprint)), Stored)
    store.lose("put_stream_if", is_applied=False)
    store.run("get_stream", lambda: store.put("k", b"theirs"))
    assert remote.put_stream_if("k", lambda: [b"x"], Matches(store.head("k").fingerprint)) == Refused()
    assert store.get("k").data == b"theirs"


def test_counting_agrees_with_the_server(s3_server: S3Server, aws: None) -> None:
    """What is counted on this side is what the server counted on the other."""
    remote = Counted(open_s3(S3Settings(bucket="b", endpoint=s3_server.url)))
    stored = remote.put("k", b"12345")
    remote.put_if("new", b"123", Absent())
    remote.get("k")
    remote.get_if_changed("k", stored.fingerprint)
    remote.head("k")
    remote.copy("k", "l")
    remote.put_stream("s", lambda: [b"12", b"34"])
    remote.put_stream("large", lambda: (bytes(1 << 20) for _ in range(20)))
    list(remote.get_stream("large").chunks)
    for _ in pool.run(lambda number: s3_server.put("b", f"many/{number:04}", b""), range(2001), at_once=1):
        pass
    assert len(list(remote.list("many/"))) == 2001
    assert len(remote.list_level("many/").objects) == 2001
    remote.delete("k")
    remote.delete_if("l", stored.fingerprint)
    costs = remote.costs()
    assert costs.requests() == {
        "put": 1,
        "put_if": 1,
        "get": 1,
        "get_if_changed": 1,
        "head": 1,
        "copy": 1,
        "put_stream": 1 + 3 + 2,
        "get_stream": 1,
        "list": 3,
        "list_level": 3,
        "delete": 1,
        "delete_if": 1,
    }
    assert costs.total.requests == sum(s3_server.counts().values())
    assert costs.by_operation["put"] == Cost(requests=1, up_bytes=5)
    assert costs.by_operation["get"] == Cost(requests=1, down_bytes=5)
    assert costs.by_operation["get_if_changed"] == Cost(requests=1)
    assert costs.by_operation["put_stream"].up_bytes == 4 + (20 << 20)
    assert costs.by_operation["get_stream"].down_bytes == 20 << 20


def test_costs_can_be_subtracted_and_failures_count(broken: MisbehavingRemote) -> None:
    """The difference of two moments is what was asked in between; a failed request is one, too."""
    remote = Counted(broken)
    remote.head("k")
    before = remote.costs()
    broken.fail("get")
    with pytest.raises(RemoteError):
        remote.get("k")
    remote.get("k")
    assert (remote.costs() - before).by_operation == {"get": Cost(requests=2, down_bytes=5)}
    assert (remote.costs() - remote.costs()).by_operation == {}


def test_counting_is_exact_from_many_threads() -> None:
    """No request is counted twice or lost."""
    remote = Counted(open_memory())
    for _ in pool.run(lambda number: remote.put(f"k{number % 7}", b"12"), range(2000), at_once=16):
        pass
    assert remote.costs().by_operation == {"put": Cost(requests=2000, up_bytes=4000)}


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES])
def test_parts_are_requests(s3_server: S3Server, aws: None, size: int) -> None:
    """An upload of any size costs as many requests as the server sees."""
    remote = Counted(open_s3(S3Settings(bucket="b", endpoint=s3_server.url)))
    remote.put_stream("k", lambda: [bytes(size)])
    assert remote.costs().total.requests == sum(s3_server.counts().values())


@pytest.fixture
def spans() -> tuple[InMemorySpanExporter, TracerProvider]:
    """Where spans of a test end up."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, provider


def test_every_call_is_a_span(spans: tuple[InMemorySpanExporter, TracerProvider]) -> None:
    """Each call has one span with its name, the key, the size and the outcome."""
    remote = Traced(open_memory(), provider=spans[1])
    stored = remote.put("k", b"12345")
    remote.get("k")
    remote.get_if_changed("k", stored.fingerprint)
    remote.head("k")
    remote.put_if("k", b"x", Absent(), token="very-secret")  # noqa: S106 - looked for below
    remote.put_if("k", b"x", Matches(stored.fingerprint))
    list(remote.get_stream("k").chunks)
    remote.put_stream("s", lambda: [b"12"])
    list(remote.list())
    remote.list_level()
    remote.copy("k", "l")
    remote.delete("l")
    remote.delete_if("k", "x")
    remote.server_time_ms()
    with pytest.raises(NotFoundError):
        remote.get("nothing")
    seen = [(span.name, dict(span.attributes or {})) for span in spans[0].get_finished_spans()]
    said = [(name, attributes.get("mire.key"), attributes.get("mire.outcome")) for name, attributes in seen]
    assert said == [
        ("mire.remote.put", "k", "stored"),
        ("mire.remote.get", "k", "found"),
        ("mire.remote.get_if_changed", "k", "done"),
        ("mire.remote.head", "k", "found"),
        ("mire.remote.put_if", "k", "refused"),
        ("mire.remote.put_if", "k", "stored"),
        ("mire.remote.get_stream", "k", "found"),
        ("mire.remote.put_stream", "s", "stored"),
        ("mire.remote.list", "", "found"),
        ("mire.remote.list_level", "", "found"),
        ("mire.remote.copy", "k", "done"),
        ("mire.remote.delete", "l", "done"),
        ("mire.remote.delete_if", "k", "refused"),
        ("mire.remote.server_time_ms", "", "done"),
        ("mire.remote.get", "nothing", "not_found"),
    ]
    assert seen[0][1]["mire.size_bytes"] == seen[1][1]["mire.size_bytes"] == 5
    assert seen[8][1]["mire.objects"] == 2
    assert all(attributes["mire.remote"] == "memory:" for _, attributes in seen)
    assert all(span.status.is_ok or span.status.is_unset for span in spans[0].get_finished_spans())
    assert "very-secret" not in json.dumps(seen)


def test_failures_are_in_the_span(
    broken: MisbehavingRemote, spans: tuple[InMemorySpanExporter, TracerProvider]
) -> None:
    """A call that fails has its kind as outcome and its message as status; an unknown outcome is told as such."""
    remote = Traced(broken, provider=spans[1])
    for name, call in CALLS.items():
        if name not in ("get_stream", "list"):
            broken.fail(name, ThrottledError(f"slow down, {name}"))
            with pytest.raises(ThrottledError):
                call(remote)
    broken.fail("get_stream", ThrottledError("slow down, get_stream"))
    with pytest.raises(ThrottledError):
        remote.get_stream("k")
    torn = Traced(Torn(broken, [0]), provider=spans[1])
    with pytest.raises(RemoteError):
        list(torn.get_stream("k").chunks)
    finished = spans[0].get_finished_spans()
    assert dict(finished[-1].attributes or {})["mire.outcome"] == "lost"
    assert [dict(span.attributes or {})["mire.outcome"] for span in finished[:10]] == ["throttled"] * 10
    assert all(not span.status.is_ok and "slow down" in (span.status.description or "") for span in finished[:10])
    broken.lose("put_if")
    remote.put_if("k", b"", Absent())
    assert dict(spans[0].get_finished_spans()[-1].attributes or {})["mire.outcome"] == "unknown"


def test_a_stream_that_is_left_ends_its_span(spans: tuple[InMemorySpanExporter, TracerProvider]) -> None:
    """Leaving a listing in the middle closes its span with what was seen."""
    memory = open_memory()
    for key in ("a", "b", "c"):
        memory.put(key, b"")
    listing = Traced(memory, provider=spans[1]).list()
    next(listing)
    listing.close()  # type: ignore[attr-defined]
    (span,) = spans[0].get_finished_spans()
    assert dict(span.attributes or {})["mire.outcome"] == "left"
    assert dict(span.attributes or {})["mire.objects"] == 1


def test_a_pace_is_kept(clock: Clock) -> None:
    """After a burst, requests begin at equal distances; a rest earns a burst again, and no more than one."""
    pace = Pace(10, burst=3, now_ms=clock.now_ms, pause=clock.pause)
    begun = []
    for _ in range(6):
        pace.wait()
        begun.append(clock.now)
    assert begun == [0, 0, 0, 100, 200, 300]
    clock.now = 10_000
    for _ in range(5):
        pace.wait()
        begun.append(clock.now)
    assert begun[6:] == [10_000, 10_000, 10_000, 10_100, 10_200]


def test_a_pace_that_never_begins_is_refused() -> None:
    """No requests at all per second is a mistake."""
    for per_second, burst in ((0, 1), (-1, 1), (1, 0)):
        with pytest.raises(InputError):
            Pace(per_second, burst=burst)


def test_every_call_waits_for_its_turn(clock: Clock, broken: MisbehavingRemote) -> None:
    """Each request takes one turn, and so does each page of a listing."""
    pace = Pace(1, now_ms=clock.now_ms, pause=clock.pause)
    remote = Throttled(broken, pace=pace)
    for number, call in enumerate(CALLS.values()):
        call(remote)
        assert clock.now == number * 1000


def test_no_more_than_allowed_are_under_way() -> None:
    """With a limit of two, a third request begins only when one has ended."""
    gate = threading.Barrier(2)
    mutex = threading.Lock()
    running = peak = 0

    class Slow(Wrapper):
        """Counts who is inside."""

        def get(self, key: str) -> Body:
            nonlocal running, peak
            with mutex:
                running += 1
                peak = max(peak, running)
            gate.wait()
            body = super().get(key)
            with mutex:
                running -= 1
            return body

    memory = open_memory()
    memory.put("k", b"")
    remote = Throttled(Slow(memory), at_once=2)
    for _ in pool.run(lambda _: remote.get("k"), range(20), at_once=8):
        pass
    assert peak == 2


def test_a_dry_run_changes_nothing_and_sees_its_own_changes(broken: MisbehavingRemote) -> None:
    """Writes and removals are noted, not done; reads, conditions and listings go by what they would have made."""
    broken.put("gone", b"x")
    broken.put("kept", b"x")
    before = [broken.get(key) for key in ("k", "gone", "kept")]
    broken.calls.clear()
    remote = DryRun(broken)
    fingerprint = remote.put("k", b"new").fingerprint
    assert remote.put_if("k", b"newer", Absent()) == Refused()
    assert isinstance(remote.put_if("k", b"newer", Matches(fingerprint)), Stored)
    remote.delete("gone")
    remote.put_stream("dir/a", lambda: [b"a", b"b"])
    remote.copy("kept", "dir/b")
    assert remote.delete_if("kept", remote.head("kept").fingerprint) == Removed()
    assert remote.delete_if("dir/a", "x") == Refused()
    assert remote.get("k").data == b"newer"
    assert remote.get("dir/b").data == b"x"
    with pytest.raises(NotFoundError):
        remote.head("gone")
    assert [stat.key for stat in remote.list()] == ["dir/a", "dir/b", "k"]
    assert remote.list_level().prefixes == ("dir/",)
    assert set(broken.calls) <= {"get", "head", "list", "list_level", "get_stream"}
    assert [broken.get(key) for key in ("k", "gone", "kept")] == before
    assert remote.planned() == (
        Planned(operation="put", key="k", size_bytes=3),
        Planned(operation="put_if", key="k", size_bytes=5),
        Planned(operation="delete", key="gone"),
        Planned(operation="put_stream", key="dir/a", size_bytes=2),
        Planned(operation="copy", key="dir/b", size_bytes=1, source="kept"),
        Planned(operation="delete_if", key="kept"),
    )


def test_errors_pass_through_every_wrapper(broken: MisbehavingRemote, patience: Patience) -> None:
    """No wrapper hides or changes an error that is not its own."""
    for name, remote in wrapped_in(broken, patience).items():
        error = DeniedError("no")
        broken.fail("get", error)
        with pytest.raises(MireError) as caught:
            remote.get("k")
        assert caught.value is error, name
