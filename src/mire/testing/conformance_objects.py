"""Checks of single objects: read, write, conditions, streams, copies.

Owns: what a remote must do with one key.
Must not know: pytest, which backend is checked.
Keeps: each function is one check with a name of its own, run in an empty place by `check_remote`.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from mire.edge.limits import PART_BYTES
from mire.edge.remote import Absent, Matches, Refused, Remote, Removed, Stored
from mire.errors import InputError, NotFoundError
from mire.testing.conformance_lock import expect

_NEVER = "0" * 32
_LARGE_BYTES = 2 * PART_BYTES + 12_345
BAD_KEYS: Final = ("", "/a", "a/", "a//b", ".", "..", "a/./b", "a/../b", "a\x00b", "a\nb", "a\x7f", "a\\b", "x" * 1025)


def check_missing_objects(remote: Remote, again: Remote) -> None:
    """What is not there is `NotFoundError` to readers and nothing to removers."""
    del again
    reads: dict[str, Callable[[], object]] = {
        "get": lambda: remote.get("nothing"),
        "head": lambda: remote.head("nothing"),
        "get_if_changed": lambda: remote.get_if_changed("nothing", _NEVER),
        "get_stream": lambda: list(remote.get_stream("nothing").chunks),
        "copy": lambda: remote.copy("nothing", "else"),
    }
    for name, read in reads.items():
        _expect_raises(NotFoundError, read, "missing objects", f"{name} of a missing object")
    remote.delete("nothing")
    if remote.properties.conditional_delete:
        expect(
            "missing objects",
            holds=remote.delete_if("nothing", _NEVER) == Removed(),
            what="a conditional delete of a missing object is not Removed",
        )


def _expect_raises(kind: type[Exception], call: Callable[[], object], check: str, what: str) -> None:
    try:
        call()
    except kind:
        return
    expect(check, holds=False, what=f"{what} does not raise {kind.__name__}")


def check_round_trip(remote: Remote, again: Remote) -> None:
    """What is put is read back, at once, through every handle, and every answer agrees on it."""
    for data in (b"one", b"", bytes(range(256)) * 1000, b"three"):
        stored = remote.put("a/key", data)
        body, stat = again.get("a/key"), again.head("a/key")
        expect("round trip", holds=body.data == data, what=f"{len(data)} bytes read back as {len(body.data)} others")
        expect("round trip", holds=body.stat == stat, what=f"get says {body.stat}, head says {stat}")
        expect("round trip", holds=stat.size_bytes == len(data), what=f"{len(data)} bytes are {stat.size_bytes}")
        expect("round trip", holds=stat.fingerprint == stored.fingerprint, what=f"put says {stored}, head says {stat}")
        listed = list(again.list("a/"))
        seen = [(each.key, each.size_bytes, each.fingerprint) for each in listed]
        expect("round trip", holds=seen == [("a/key", len(data), stat.fingerprint)], what=f"it is listed as {listed}")
    again.delete("a/key")
    _expect_raises(NotFoundError, lambda: remote.head("a/key"), "round trip", "head of a removed object")


def check_fingerprints(remote: Remote, again: Remote) -> None:
    """Other bytes have another fingerprint; equal ones the same, where the store says so."""
    first, second = remote.put("k", b"aaaa").fingerprint, again.put("k", b"bbbb").fingerprint
    third = remote.put("k", b"aaaa").fingerprint
    expect("fingerprints", holds=first != second, what=f"two contents share {first}")
    expect(
        "fingerprints",
        holds=(first == third) == remote.properties.content_fingerprint,
        what=f"equal bytes had {first} and {third}, and content_fingerprint is {remote.properties.content_fingerprint}",
    )


def check_conditional_get(remote: Remote, again: Remote) -> None:
    """An unchanged object is None, a changed one is read."""
    fingerprint = remote.put("k", b"one").fingerprint
    expect("conditional get", holds=again.get_if_changed("k", fingerprint) is None, what="unchanged is not None")
    remote.put("k", b"two")
    body = again.get_if_changed("k", fingerprint)
    expect("conditional get", holds=body is not None and body.data == b"two", what=f"a change is read as {body}")


def check_create_only(remote: Remote, again: Remote) -> None:
    """Only the first of two creations happens, and only until the object is removed."""
    first = remote.put_if("k", b"one", Absent())
    expect("create only", holds=isinstance(first, Stored), what=f"the first creation is {first}")
    second = again.put_if("k", b"two", Absent())
    expect("create only", holds=second == Refused(), what=f"the second creation is {second}")
    expect("create only", holds=again.get("k").data == b"one", what="a refused creation changed the object")
    remote.delete("k")
    third = again.put_if("k", b"three", Absent())
    expect("create only", holds=isinstance(third, Stored), what=f"a creation after removal is {third}")


def check_conditional_put(remote: Remote, again: Remote) -> None:
    """An object is replaced only under the fingerprint it has."""
    if not remote.properties.conditional_put:
        return
    old = remote.put("k", b"one").fingerprint
    new = again.put_if("k", b"two", Matches(old))
    expect("conditional put", holds=isinstance(new, Stored), what=f"with the right fingerprint it is {new}")
    for fingerprint in (old, _NEVER):
        stale = remote.put_if("k", b"three", Matches(fingerprint))
        expect("conditional put", holds=stale == Refused(), what=f"with a stale fingerprint it is {stale}")
    expect("conditional put", holds=again.get("k").data == b"two", what="a refused write changed the object")
    missing = remote.put_if("nothing", b"x", Matches(old))
    expect("conditional put", holds=missing == Refused(), what=f"of a missing object it is {missing}")
    _expect_raises(NotFoundError, lambda: again.head("nothing"), "conditional put", "head after a refused write")
    head = again.head("k")
    expect(
        "conditional put",
        holds=isinstance(new, Stored) and new.fingerprint == head.fingerprint,
        what=f"it answered {new} of what is {head}",
    )


def check_conditional_delete(remote: Remote, again: Remote) -> None:
    """An object is removed only under the fingerprint it has."""
    if not remote.properties.conditional_delete:
        return
    old = remote.put("k", b"one").fingerprint
    new = remote.put("k", b"two").fingerprint
    for fingerprint in (old, _NEVER):
        stale = again.delete_if("k", fingerprint)
        expect("conditional delete", holds=stale == Refused(), what=f"with a stale fingerprint it is {stale}")
    expect("conditional delete", holds=remote.get("k").data == b"two", what="a refused delete changed the object")
    gone = again.delete_if("k", new)
    expect("conditional delete", holds=gone == Removed(), what=f"with the right fingerprint it is {gone}")
    _expect_raises(NotFoundError, lambda: remote.head("k"), "conditional delete", "head of a removed object")


def check_tokens(remote: Remote, again: Remote) -> None:
    """The token of a conditional write comes back, or none does; never another one."""
    first = remote.put_if("k", b"one", Absent(), token="token-1")  # noqa: S106 - not a secret
    token = again.get("k").token
    expect("tokens", holds=token in ("token-1", None), what=f"token-1 came back as {token!r}")
    if isinstance(first, Stored) and remote.properties.conditional_put:
        remote.put_if("k", b"two", Matches(first.fingerprint), token="token-2")  # noqa: S106
        token = again.get("k").token
        expect("tokens", holds=token in ("token-2", None), what=f"token-2 came back as {token!r}")
    remote.put("k", b"three")
    expect("tokens", holds=again.get("k").token is None, what="a plain write kept somebody's token")


def check_bad_keys(remote: Remote, again: Remote) -> None:
    """A key that cannot be carried everywhere is refused by every call, and nothing is stored."""
    remote.put("good", b"x")
    for key in BAD_KEYS:
        for name, call in _calls_with(remote, key).items():
            _expect_raises(InputError, call, "bad keys", f"{name} with {key[:20]!r}")
    stored = [stat.key for stat in again.list()]
    expect("bad keys", holds=stored == ["good"], what=f"they left {stored}")


def _calls_with(remote: Remote, key: str) -> dict[str, Callable[[], object]]:
    return {
        "get": lambda: remote.get(key),
        "get_if_changed": lambda: remote.get_if_changed(key, _NEVER),
        "get_stream": lambda: remote.get_stream(key),
        "head": lambda: remote.head(key),
        "put": lambda: remote.put(key, b"x"),
        "put_if": lambda: remote.put_if(key, b"x", Absent()),
        "put_stream": lambda: remote.put_stream(key, lambda: [b"x"]),
        "put_stream_if": lambda: remote.put_stream_if(key, lambda: [b"x"], Absent()),
        "delete": lambda: remote.delete(key),
        "delete_if": lambda: remote.delete_if(key, _NEVER),
        "copy from": lambda: remote.copy(key, "else"),
        "copy to": lambda: remote.copy("good", key),
    }


def check_streams(remote: Remote, again: Remote) -> None:
    """Objects of any size go up and come down in pieces, whole."""
    for size in (0, 1, 70_000, PART_BYTES, PART_BYTES + 1, _LARGE_BYTES):
        stored = remote.put_stream("large", partial(_bytes_of, size))
        stream = again.get_stream("large")
        digest, length = hashlib.sha256(), 0
        for chunk in stream.chunks:
            digest.update(chunk)
            length += len(chunk)
        expected = hashlib.sha256(b"".join(_bytes_of(size)))
        expect("streams", holds=length == stream.stat.size_bytes == size, what=f"{size} bytes came back as {length}")
        expect("streams", holds=digest.digest() == expected.digest(), what=f"{size} bytes came back as others")
        expect("streams", holds=stream.stat.fingerprint == stored.fingerprint, what=f"{stored} is {stream.stat}")


def check_conditional_streams(remote: Remote, again: Remote) -> None:
    """Large objects, too, are stored only where there is none, or over what was seen."""
    for size in (3, PART_BYTES + 1):
        key = f"large-{size}"
        made = remote.put_stream_if(key, partial(_bytes_of, size), Absent())
        expect("conditional streams", holds=isinstance(made, Stored), what=f"{size} new bytes were {made}")
        taken = again.put_stream_if(key, partial(_bytes_of, size + 1), Absent())
        expect("conditional streams", holds=taken == Refused(), what=f"{size} bytes over others were {taken}")
        found = again.head(key)
        expect("conditional streams", holds=found.size_bytes == size, what=f"{size} bytes became {found}")
        if not isinstance(made, Stored) or not remote.properties.conditional_put:
            continue
        expect("conditional streams", holds=found.fingerprint == made.fingerprint, what=f"{made} is {found}")
        replaced = again.put_stream_if(key, partial(_bytes_of, size + 2), Matches(made.fingerprint))
        expect("conditional streams", holds=isinstance(replaced, Stored), what=f"a known object was {replaced}")
        stale = remote.put_stream_if(key, partial(_bytes_of, size + 3), Matches(made.fingerprint))
        expect("conditional streams", holds=stale == Refused(), what=f"a stale write was {stale}")
        missing = remote.put_stream_if("none", partial(_bytes_of, size), Matches(made.fingerprint))
        expect("conditional streams", holds=missing == Refused(), what=f"a write over nothing was {missing}")
        expect("conditional streams", holds=again.head(key).size_bytes == size + 2, what="a refused write was stored")


def _bytes_of(size: int) -> Iterator[bytes]:
    block = bytes(range(251)) * 271  # neither a power of two nor a divisor of a part
    while size > 0:
        yield block[:size]
        size -= len(block)


class _SourceError(Exception):
    """The source of an upload fails."""


def check_broken_uploads(remote: Remote, again: Remote) -> None:
    """An upload whose source fails changes nothing, and the error is the source's own."""
    remote.put("k", b"old")

    def broken(size: int) -> Iterator[bytes]:
        yield from _bytes_of(size)
        raise _SourceError

    for size in (0, 100, 2 * PART_BYTES):
        known = Matches(again.head("k").fingerprint)
        for upload in (remote.put_stream, lambda key, chunks: remote.put_stream_if(key, chunks, known)):  # noqa: B023
            _expect_raises(
                _SourceError,
                partial(upload, "k", partial(broken, size)),
                "broken uploads",
                f"a source that fails after {size} bytes",
            )
        expect("broken uploads", holds=again.get("k").data == b"old", what=f"{size} bytes of one were stored")


def check_copies(remote: Remote, again: Remote) -> None:
    """A copy has the bytes of its source, replaces what was there, and leaves the source alone."""
    remote.put("from/a b", b"bytes")
    remote.put("to/ü", b"old")
    remote.copy("from/a b", "to/ü")
    expect("copies", holds=again.get("to/ü").data == b"bytes", what="a copy has other bytes")
    expect("copies", holds=again.get("from/a b").data == b"bytes", what="the source of a copy changed")


CHECKS: Final = (
    check_missing_objects,
    check_round_trip,
    check_fingerprints,
    check_conditional_get,
    check_create_only,
    check_conditional_put,
    check_conditional_delete,
    check_tokens,
    check_bad_keys,
    check_streams,
    check_conditional_streams,
    check_broken_uploads,
    check_copies,
)
