"""What a test server holds: buckets, objects with their history of writes, uploads in parts.

Owns: objects by key, their order, and the numbers given to writes.
Must not know: HTTP, conditions, any dialect.
Keeps: `keys` is sorted by code point, which is the order of the keys' UTF-8 bytes.
"""

import itertools
import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

_AFTER_ALL: Final = "\U0010ffff"
"""Sorts behind every key with the same beginning: no key of a test holds it."""


@dataclass(slots=True, kw_only=True)
class Blob:
    """One object as it was written; `generation` is different for each write."""

    data: bytes
    etag: str
    modified_s: float
    generation: int
    content_type: str
    metadata: dict[str, str]
    checksums: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Part:
    """One part of an upload."""

    data: bytes
    etag: str


@dataclass(slots=True, kw_only=True)
class Upload:
    """An upload in parts that is not complete yet."""

    id: str
    key: str
    content_type: str
    metadata: dict[str, str]
    started_s: float
    parts: dict[int, Part] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Page:
    """One page of a listing; `last` is where the next one goes on, None at the end."""

    objects: list[tuple[str, Blob]]
    prefixes: list[str]
    last: str | None


class Bucket:
    """Objects by key."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.objects: dict[str, Blob] = {}
        self.keys: list[str] = []
        self.uploads: dict[str, Upload] = {}
        self._numbers = itertools.count(1)

    def number(self) -> int:
        """A number no other write of this bucket has."""
        return next(self._numbers)

    def put(self, key: str, blob: Blob) -> None:
        """Store an object."""
        if key not in self.objects:
            insort(self.keys, key)
        self.objects[key] = blob

    def remove(self, key: str) -> bool:
        """Remove an object; whether there was one."""
        if self.objects.pop(key, None) is None:
            return False
        del self.keys[bisect_left(self.keys, key)]
        return True

    def page(
        self, prefix: str, delimiter: str, after: str, most: int, *, since: str = "", until_s: float = math.inf
    ) -> Page:
        """One page of a listing: keys behind `after` and from `since` on, objects modified at or before `until_s`."""
        page = Page(objects=[], prefixes=[], last=None)
        keys = self.keys if until_s == math.inf else [key for key in self.keys if self._modified_s(key) <= until_s]
        start = max(bisect_left(keys, prefix), bisect_left(keys, since), bisect_right(keys, after) if after else 0)
        taken, last = 0, ""
        for name, blob in self._entries(keys, start, prefix, delimiter):
            if taken == most:
                page.last = last
                break
            if blob is None:
                page.prefixes.append(name)
            else:
                page.objects.append((name, blob))
            taken, last = taken + 1, name if blob is not None else name + _AFTER_ALL
        return page

    def _modified_s(self, key: str) -> float:
        return self.objects[key].modified_s

    def _entries(self, keys: list[str], at: int, prefix: str, delimiter: str) -> Iterator[tuple[str, Blob | None]]:
        while at < len(keys) and (key := keys[at]).startswith(prefix):
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            if end < 0:
                yield key, self.objects[key]
                at += 1
            else:
                group = key[: end + len(delimiter)]
                yield group, None
                at = bisect_left(keys, group + _AFTER_ALL, at)
