"""Checks of a round trip: what one cache publishes, another brings, whole and once.

Owns: push and pull in one phase, deletions, marks.
Must not know: pytest, which backend is checked.
Keeps: each function is one check, run over an empty place by `check_sync`; the numbers are those of the reference.
"""

import os
from dataclasses import dataclass
from typing import Final

from mire.model.artifact import ModelRef
from mire.model.names import ModelId, ModelType, Namespace
from mire.testing.conformance_lock import expect
from mire.testing.synccache import Cut, SyncCache

NAMESPACE: Final = Namespace("mire-conformance")
MODEL: Final = ModelRef(model_type=ModelType("mire/conformance"), model_id=ModelId("web-1"))
FILE: Final = "data/mire/conformance/web-1/state/1/raw"
OTHER: Final = "data/mire/conformance/web-2/state/1/raw"
DEEP: Final = "data/mire/conformance/web-1/a/b/raw"
SETTLED: Final = "data/mire/conformance/web-3/state/1/raw"
BYTES: Final = bytes(range(256)) * 17 + b"\r\n\0\n"
"""Every byte there is: what is read or sent as text does not survive."""

_LONG_AGO_NS: Final = 978_307_200 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Two caches over one remote, each with a handle of its own."""

    first: SyncCache
    second: SyncCache
    way: Cut
    """The way from the first cache to the remote, which can be cut."""


def expect_count(check: str, got: object, wanted: int, what: str) -> None:
    """Raise unless a number is the one that was wanted."""
    is_number = isinstance(got, int) and not isinstance(got, bool)
    expect(check, holds=is_number and got == wanted, what=f"{what} told {got!r}, not {wanted}")


def publish(cache: SyncCache, rel: str, content: bytes) -> int:
    """Mark, write and push one file."""
    cache.mark(rel)
    cache.write(rel, content)
    return cache.push()


def expect_bytes(check: str, cache: SyncCache, rel: str, wanted: bytes | None) -> None:
    """Raise unless a file has these bytes, or is not there."""
    got = cache.read(rel)
    if got == wanted:
        return
    texts = ["not there" if each is None else f"{len(each)} bytes" for each in (got, wanted)]
    differ = "" if got is None or wanted is None or len(got) != len(wanted) else ", but not these"
    expect(check, holds=False, what=f"{rel} is {texts[0]}, expected was {texts[1]}{differ}")


def check_calls(sides: Sides) -> None:
    """A mark without a path, a pull and a push of nothing do nothing, and say so with a number."""
    sides.first.mark()
    expect_count("21 pull", sides.first.pull(), 0, "a pull of an empty remote")
    expect_count("21 push", sides.first.push(), 0, "a push of an empty cache")


def check_scope(sides: Sides) -> None:
    """A pull of one model brings its files and no other's."""
    for rel in (FILE, OTHER):
        publish(sides.first, rel, BYTES)
    expect_count("22 count", sides.second.pull(models=[MODEL]), 1, "a pull of one model with one file")
    expect_bytes("22 model", sides.second, FILE, BYTES)
    expect_bytes("22 others", sides.second, OTHER, None)


def check_round_trip(sides: Sides) -> None:
    """What is pushed arrives elsewhere with the same bytes."""
    expect_count("23 push", publish(sides.first, FILE, BYTES), 1, "a push of one file")
    expect_count("23 pull", sides.second.pull(), 1, "a pull of one file")
    expect_bytes("23 bytes", sides.second, FILE, BYTES)


def _settle(sides: Sides) -> None:
    """Let both caches agree about something: one that has never pushed looks at everything, marked or not."""
    publish(sides.first, SETTLED, b"")
    sides.second.pull()


def _delete(sides: Sides, check: str) -> None:
    sides.first.mark(FILE)
    sides.first.remove(FILE)
    expect_count(check, sides.first.push(), 1, "a push of one removal")


def check_push_deletes(sides: Sides) -> None:
    """Who never had a file that was removed does not get it."""
    publish(sides.first, FILE, BYTES)
    _delete(sides, "24 push")
    expect_count("24 pull", sides.second.pull(), 0, "a pull of a file that was removed before")
    expect_bytes("24 gone", sides.second, FILE, None)


def check_pull_deletes(sides: Sides) -> None:
    """Who has a file that was removed elsewhere loses it, even when it was the only one; and is told so."""
    publish(sides.first, FILE, BYTES)
    sides.second.pull()
    _delete(sides, "25 push")
    expect_count("25 pull", sides.second.pull(), 1, "a pull of one removal")
    expect_bytes("25 gone", sides.second, FILE, None)


def check_bulk_mark(sides: Sides) -> None:
    """A mark without a path covers whatever is written after it."""
    _settle(sides)
    sides.first.mark()
    for rel in (FILE, OTHER):
        sides.first.write(rel, BYTES + rel.encode())
    expect_count("26 push", sides.first.push(), 2, "a push of two files that were not marked by name")
    expect_count("26 pull", sides.second.pull(), 2, "a pull of two files")
    for rel in (FILE, OTHER):
        expect_bytes("26 bytes", sides.second, rel, BYTES + rel.encode())


def check_pull_nothing_new(sides: Sides) -> None:
    """A pull touches no file that is as the remote has it, whatever its time, also when others have changed."""
    publish(sides.first, FILE, BYTES)
    sides.second.pull()
    caches = (sides.first, sides.second)
    for cache in caches:
        os.utime(cache.path(FILE), ns=(_LONG_AGO_NS, _LONG_AGO_NS))
    for cache in caches:
        expect_count("29 pull", cache.pull(), 0, "a pull of nothing new")
        _expect_untouched("29 bytes", "29 time", cache)
    publish(sides.first, OTHER, BYTES)
    expect_count("29 only the new", sides.second.pull(), 1, "a pull of one new file beside an old one")
    _expect_untouched("29 old bytes", "29 old time", sides.second)


def _expect_untouched(of_bytes: str, of_time: str, cache: SyncCache) -> None:
    expect_bytes(of_bytes, cache, FILE, BYTES)
    time_ns = os.stat(cache.path(FILE)).st_mtime_ns
    expect(of_time, holds=time_ns == _LONG_AGO_NS, what=f"a pull of nothing new set the time of {FILE} to {time_ns}")


def check_forward_slash_paths(sides: Sides) -> None:
    """A marked path has '/' between its parts, and arrives where the system has it."""
    _settle(sides)
    expect_count("30 push", publish(sides.first, DEEP, BYTES), 1, f"a push of {DEEP}")
    expect_count("30 pull", sides.second.pull(), 1, f"a pull of {DEEP}")
    expect_bytes("30 bytes", sides.second, DEEP, BYTES)
