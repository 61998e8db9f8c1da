"""The usual text of an index, told and searched without building what it says.

Owns: which texts are usual: compact, flat, `key` first in each entry, as every client writes them.
Must not know: what an entry means, which object the text comes from.
Keeps: a usual text is valid JSON, and what is found in it is what a JSON parser would find.

A store has up to a million entries, in a monolith of 400 MB. Parsing one into objects takes seconds and three times
its size; one expression over the bytes takes a sixth of a second for 100 MB, and nothing. Two facts carry it:
inside a JSON string every quote has a backslash before it; and in a flat text only entries have an object with `key`
first. So `"REL":{"key":` behind a `{` or a `,` is the entry of REL and nothing else.
"""

import re
from codecs import getincrementaldecoder
from collections.abc import Iterator
from functools import lru_cache
from math import ceil
from typing import Final, NamedTuple

from mire.wire.jsontext import decode_json, encode_compact
from mire.wire.partition import ROOT, partition_of

_START_BITS: Final = 36
_CHUNK: Final = 1 << 17
_NUMBER: Final = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
_PLAIN: Final = rb'[^"]*+'
# The escapes JSON.stringify and json.dumps write: a name has one spelling only, so that it can be searched for.
_ESCAPED: Final = rb'[^"\\]*+(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))[^"\\]*+)*+'


class Frame(NamedTuple):
    """Where the members of `entries` begin and end in a text."""

    first: int
    close: int


class Span(NamedTuple):
    """Where a member stands, its name included."""

    start: int
    end: int


def place_of(start: int, end: int) -> int:
    """A span as one number: as a pair, a million of them would take 100 MB more."""
    return end - start << _START_BITS | start


def span_of(place: int) -> Span:
    """The span a number stands for."""
    start = place & (1 << _START_BITS) - 1
    return Span(start, start + (place >> _START_BITS))


def length_of(place: int) -> int:
    """How long the span is that a number stands for."""
    return place >> _START_BITS


class _Form:
    """The expressions for texts without any backslash, or with; the former are five times as fast."""

    def __init__(self, string: bytes) -> None:
        scalar = rb'(?:"' + string + rb'"|true|false|null|' + _NUMBER + rb")"
        other = rb',"(?!(?:version|lastPulled|entries)")' + string + rb'":' + scalar
        rest = rb'":\{"key":"' + string + rb'"(?:,"' + string + rb'":' + scalar + rb")*+\}"
        entry = rb'"' + string + rest
        self.whole = re.compile(
            rb'\{"version":1(?:,"lastPulled":"' + string + rb'")?+(?:' + other + rb')*+,"entries":\{()'
            rb"(?:" + entry + rb"(?:," + entry + rb")*+)?+()\}(?:" + other + rb")*+\}"
        )
        self.entry = re.compile(rb'"(' + string + rb")" + rest)
        self.string = string


_FORMS: Final = {False: _Form(_PLAIN), True: _Form(_ESCAPED)}


def frame_of(data: bytes) -> Frame | None:
    """Where the entries stand, or None when the text is not a usual one, valid or not."""
    whole = _form(data).whole.fullmatch(data)
    if whole is None or not _is_text(data):
        return None
    return Frame(first=whole.start(1), close=whole.start(2))


def _form(data: bytes) -> _Form:
    return _FORMS[not is_plain(data)]


def _is_text(data: bytes) -> bool:
    # Pieces that stay in the processor's cache make the 32 searches cost as much as two.
    starts = range(0, len(data), _CHUNK)
    if any(data.find(control, start, start + _CHUNK) >= 0 for start in starts for control in range(0x20)):
        return False
    if data.isascii():
        return True
    decoder = getincrementaldecoder("utf-8")()
    try:
        for start in starts:
            decoder.decode(data[start : start + _CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def is_plain(data: bytes) -> bool:
    """Whether a text has no escapes: every quote in it then begins or ends a string."""
    return b"\\" not in data


def all_members(data: bytes, frame: Frame) -> Iterator[tuple[str, int, int]]:
    """Every member in order: its name, and where it starts and ends."""
    form = _form(data)
    has_escapes = form.string is _ESCAPED
    for found in form.entry.finditer(data, frame.first, frame.close):
        start, end = found.span()
        yield (_name(found[1]) if has_escapes else found[1].decode()), start, end


def names_ending(data: bytes, frame: Frame, end: str) -> Iterator[str]:
    """The names with an end, in order, duplicates included, of a text without escapes."""
    return (name.decode() for name in _ending(end).findall(data, frame.first, frame.close))


@lru_cache(maxsize=64)
def _ending(end: str) -> re.Pattern[bytes]:
    # Every quote begins or ends a string: behind one that ends, no object can follow what it seems to begin.
    return re.compile(rb'"(' + _PLAIN + rb")(?<=" + re.escape(end.encode()) + rb')":\{"key":')


def members_named(data: bytes, frame: Frame, name: str) -> Iterator[Span]:
    """The members of that name; a parser takes the last, and there should be one at most."""
    needle = encode_compact(name) + b':{"key":'
    entry = _form(data).entry
    at = data.find(needle, frame.first, frame.close)
    while at >= 0:
        if data[at - 1] in b"{,":
            found = entry.match(data, at)
            if found is not None:
                yield Span(*found.span())
        at = data.find(needle, at + 1, frame.close)


def members_in(data: bytes, frame: Frame, partition: str) -> Iterator[tuple[str, Span]]:
    """The members of a partition in order, and their names; duplicates included."""
    form = _form(data)
    if partition == ROOT:
        found_all = all_members(data, frame)
        yield from ((name, Span(start, end)) for name, start, end in found_all if partition_of(name) == ROOT)
        return
    # A run of dashes may have been dashes, or up to half as many slashes.
    directory = re.sub(rb"-{2,}", _dashes, _escaped(encode_compact(partition)[1:-1]))
    search = re.compile(rb'"(' + directory + rb"/" + form.string + rb')":\{"key":')
    for candidate in search.finditer(data, frame.first, frame.close):
        name = _name(candidate[1])
        if data[candidate.start() - 1] in b"{," and partition_of(name) == partition:
            found = form.entry.match(data, candidate.start())
            if found is not None:
                yield name, Span(*found.span())


def _escaped(text: bytes) -> bytes:
    return re.escape(text).replace(rb"\-", b"-")


def _dashes(run: re.Match[bytes]) -> bytes:
    length = len(run[0])
    return rb"[-/]{%d,%d}" % (ceil(length / 2), length)


def _name(text: bytes) -> str:
    return str(decode_json(b'"' + text + b'"', "name")) if b"\\" in text else text.decode()
