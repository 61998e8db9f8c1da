"""All entries of one index object, kept as the text they were read as.

Owns: looking entries up, comparing and changing an index, without decoding what is not asked for.
Must not know: whether the object is a monolith or a shard, or where it is kept.
Keeps: entries that are not changed stay byte for byte, in their order; new ones come last, as every client appends.

An index of 250,000 entries is 100 MB of text. A few look-ups search the text; more of them build a map from names
to places, which costs half a second and half as much memory as the text.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from mire.model.index import Damaged, Diff, Entry
from mire.model.instant import Instant
from mire.model.names import RelPath
from mire.wire.canonical import (
    Frame,
    Span,
    all_members,
    frame_of,
    is_plain,
    length_of,
    members_in,
    members_named,
    names_ending,
    place_of,
    span_of,
)
from mire.wire.entry import decode_member, encode_member
from mire.wire.jsontext import encode_compact
from mire.wire.partition import partition_of
from mire.wire.rewrite import rewrite_index
from mire.wire.window import windows_of

_FEW: Final = 8
"""So many searches through the text cost about as much as the map."""
_SMALL: Final = 1 << 16
_HEAD: Final = re.compile(rb'\{"version":1(?:,"lastPulled":"[^"\\]*+(?:\\.[^"\\]*+)*+")?+')


def decode_index(data: bytes, what: str) -> "IndexText":
    """The index in `data`; a `FormatError` names `what` when it is not an index, cut off, or of a newer version."""
    frame = frame_of(data)
    return IndexText(*rewrite_index(data, what)) if frame is None else IndexText(data, frame)


class IndexText(Mapping[str, Entry | Damaged]):
    """An index by rel_path. Its names are untrusted text: `check_rel` says which ones may be followed."""

    __slots__ = ("_asked", "_data", "_found", "_frame", "_is_usual", "_places")

    def __init__(self, data: bytes, frame: Frame, places: dict[str, int] | None = None) -> None:
        self._data = data
        self._frame = frame
        self._places = places
        self._is_usual = places is None
        self._found: dict[str, Span | None] = {}
        self._asked = 0

    @property
    def data(self) -> bytes:
        """The text; the one it was decoded from when that was in the usual form."""
        return self._data

    def __getitem__(self, rel: str) -> Entry | Damaged:
        span = self._span(rel)
        if span is None:
            raise KeyError(rel)
        return decode_member(rel, self._data, *span)

    def __contains__(self, rel: object) -> bool:
        return isinstance(rel, str) and self._span(rel) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._map())

    def __len__(self) -> int:
        return len(self._map())

    def __bool__(self) -> bool:
        return self._frame.close > self._frame.first

    def entries(self) -> Iterator[tuple[str, Entry | Damaged]]:
        """All entries in order, without the map that `items` needs; of a name that comes twice the last counts."""
        if self._places is None and self._is_usual:
            for rel, start, end in all_members(self._data, self._frame):
                yield rel, decode_member(rel, self._data, start, end)
        else:
            for rel, place in self._map().items():
                yield rel, decode_member(rel, self._data, *span_of(place))

    def ending(self, end: str) -> Collection[str]:
        """The names with an end, in order, without the map that looking them up needs."""
        if self._places is None and self._is_usual and is_plain(self._data):
            return dict.fromkeys(names_ending(self._data, self._frame, end)).keys()
        return [rel for rel in self._map() if rel.endswith(end)]

    def with_changes(
        self, upserts: Mapping[RelPath, Entry], removals: Collection[str] = (), *, last_pulled: Instant | None = None
    ) -> bytes:
        """The text with entries set and others left out; a path that is in both is set."""
        self._settle((*removals, *upserts))
        edits: dict[Span, bytes] = {}
        new: list[bytes] = []
        for rel in removals:
            if (span := self._span(rel)) is not None:
                edits[span] = b""
        for rel, entry in upserts.items():
            if (span := self._span(rel)) is None:
                new.append(encode_member(rel, entry))
            else:
                edits[span] = encode_member(rel, entry)
        return self._spliced(edits, new, last_pulled)

    def members(self, rels: Iterable[str]) -> Iterator[bytes]:
        """The texts of some entries, names included; those that are not there are passed over."""
        for rel in rels:
            if (span := self._span(rel)) is not None:
                yield self._data[span.start : span.end]

    def diff(self, newer: "IndexText") -> Diff:
        """What a newer index says otherwise; entries are compared as text, and only where the texts differ."""
        ours, theirs = self._windows(newer)
        changed = [rel for rel, at in theirs.items() if rel in ours and self._differs(ours[rel], newer, at)]
        gone = [rel for rel in ours if rel not in theirs]
        # A name given twice may be gone from one place only. Asking may rewrite the text: after the comparison.
        kept = {rel for rel in gone if rel in newer}
        return Diff(
            added=tuple(rel for rel in theirs if rel not in ours),
            changed=(*changed, *(rel for rel in gone if rel in kept)),
            removed=tuple(rel for rel in gone if rel not in kept),
        )

    def of_partition(self, partition: str) -> tuple[str, ...]:
        """The paths of one partition, in order."""
        if self._is_searched():
            found = list(members_in(self._data, self._frame, partition))
            only = dict(found)
            if len(only) == len(found):
                self._found.update(only)
                return tuple(only)
        return tuple(rel for rel in self if partition_of(rel) == partition)

    def by_partition(self) -> dict[str | None, list[str]]:
        """All paths by partition, in grouping order; under None those that no shard can list."""
        groups: dict[str | None, list[str]] = {}
        for rel in self:
            groups.setdefault(partition_of(rel), []).append(rel)
        return groups

    def _spliced(self, edits: Mapping[Span, bytes], new: Iterable[bytes], last_pulled: Instant | None) -> bytes:
        view, (at, close) = memoryview(self._data), self._frame
        pieces: list[bytes | memoryview] = []
        for span in sorted(edits):
            if span.start > at:
                pieces += [view[at : span.start - 1], b","]
            if edits[span]:
                pieces += [edits[span], b","]
            at = span.end + 1
        if at < close:
            pieces += [view[at:close], b","]
        for member in new:
            pieces += [member, b","]
        return b"".join([self._head(last_pulled), *pieces[:-1], view[close:]])

    def _head(self, last_pulled: Instant | None) -> bytes:
        head = self._data[: self._frame.first]
        if last_pulled is None:
            return head
        return _HEAD.sub(lambda _: b'{"version":1,"lastPulled":' + encode_compact(last_pulled), head, count=1)

    def _windows(self, newer: "IndexText") -> tuple[dict[str, int], dict[str, int]]:
        if not (self._is_usual and newer._is_usual and is_plain(self._data) and is_plain(newer.data)):  # noqa: SLF001
            return self._map(), newer._map()  # noqa: SLF001 - of the same class
        ours: dict[str, int] = {}
        theirs: dict[str, int] = {}
        for mine, other in windows_of(self._data, self._frame, newer.data, newer._frame):  # noqa: SLF001
            ours |= _places(self._data, mine)[0]
            theirs |= _places(newer.data, other)[0]
        return ours, theirs

    def _differs(self, place: int, newer: "IndexText", newer_place: int) -> bool:
        if length_of(place) != length_of(newer_place):
            return True
        (start, end), (newer_start, newer_end) = span_of(place), span_of(newer_place)
        return self._data[start:end] != newer.data[newer_start:newer_end]

    def _is_searched(self) -> bool:
        return self._places is None and len(self._data) > _SMALL

    def _settle(self, rels: Collection[str]) -> None:
        """After this, looking these up does not move what was found before."""
        if len(rels) > _FEW:
            self._map()
        for rel in rels:
            self._span(rel)

    def _span(self, rel: str) -> Span | None:
        if self._places is not None:
            place = self._places.get(rel)
            return None if place is None else span_of(place)
        if self._is_searched() and rel not in self._found and self._asked < _FEW:
            self._asked += 1
            spans = list(members_named(self._data, self._frame, rel))
            if len(spans) <= 1:
                self._found[rel] = spans[0] if spans else None
        if rel in self._found:
            return self._found[rel]
        place = self._map().get(rel)
        return None if place is None else span_of(place)

    def _map(self) -> dict[str, int]:
        if self._places is None:
            places, count = _places(self._data, self._frame)
            if count == len(places):
                self._places = places
            else:
                self._data, self._frame, self._places = rewrite_index(self._data, "index")
                self._is_usual = False
            self._found = {}
        return self._places


def _places(data: bytes, frame: Frame) -> tuple[dict[str, int], int]:
    """Where the members of a usual text are, and how many; fewer places are names given twice."""
    places: dict[str, int] = {}
    count = 0
    for rel, start, end in all_members(data, frame):
        places[rel] = place_of(start, end)
        count += 1
    return places, count
