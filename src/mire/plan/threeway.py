"""Local, base and remote: what happened on each side since they last agreed, and what that means.

Owns: the table of protocol §3, for push and for pull.
Must not know: files, objects, how an entry was read.
Keeps: nothing is overwritten, on either side, that the other side has not seen; a copy that did not change here is
never sent; what is merely missing here was not deleted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from mire.model.index import Entry

Here = Literal["same", "changed", "removed", "missing"]
"""Our side: as agreed, other bytes (or new), removed on purpose, or just not there."""

There = Literal["same", "changed", "removed"]
"""Their side: as agreed (or as absent as it was), another value (or new), gone from the index."""

Push = Literal["nothing", "upload", "remove", "agree", "forget", "conflict"]
Pull = Literal["nothing", "download", "remove", "agree", "forget", "conflict"]
"""`agree`: both sides came to the same value, so it is the new base. `forget`: both sides have nothing."""

_PUSH: Final[Mapping[tuple[Here, There], Push]] = {
    ("same", "same"): "nothing",
    ("same", "changed"): "nothing",  # a stale copy is never sent over a newer one
    ("same", "removed"): "nothing",
    ("changed", "same"): "upload",
    ("changed", "changed"): "conflict",
    ("changed", "removed"): "conflict",
    ("removed", "same"): "remove",
    ("removed", "changed"): "conflict",
    ("removed", "removed"): "forget",
    ("missing", "same"): "nothing",
    ("missing", "changed"): "nothing",
    ("missing", "removed"): "nothing",
}
_PULL: Final[Mapping[tuple[Here, There], Pull]] = {
    ("same", "same"): "nothing",
    ("same", "changed"): "download",
    ("same", "removed"): "remove",
    ("changed", "same"): "nothing",
    ("changed", "changed"): "conflict",
    ("changed", "removed"): "conflict",
    ("removed", "same"): "nothing",
    ("removed", "changed"): "conflict",
    ("removed", "removed"): "forget",
    ("missing", "same"): "download",
    ("missing", "changed"): "download",
    ("missing", "removed"): "forget",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What two sides compare: a size, and a hash where one is known."""

    size_bytes: int
    sha256: str | None


def value_of(entry: Entry) -> Value:
    """The value an entry describes."""
    return Value(size_bytes=entry.size_bytes, sha256=entry.sha256)


def is_equal(one: Entry | None, other: Entry | None) -> bool:
    """Whether two entries describe the same bytes, as far as can be told: without hashes the time must agree too."""
    if one is None or other is None:
        return one is other
    if one.size_bytes != other.size_bytes:
        return False
    if one.sha256 is not None and other.sha256 is not None:
        return one.sha256 == other.sha256
    return one.sha256 == other.sha256 and one.last_modified == other.last_modified


def there_of(base: Entry | None, remote: Entry | None) -> There:
    """What happened on their side."""
    if is_equal(base, remote):
        return "same"
    return "removed" if remote is None else "changed"


def plan_push_of(here: Here, base: Entry | None, remote: Entry | None, local: Value | None) -> Push:
    """What a push does about one path; `local` is the value of a file that changed."""
    if here == "changed" and local is not None and remote is not None and local == value_of(remote):
        return "agree"
    if base is None and remote is None:
        return {"changed": "upload", "removed": "forget"}.get(here, "nothing")  # type: ignore[return-value]
    return _PUSH[here, there_of(base, remote)]


def plan_pull_of(here: Here, base: Entry | None, remote: Entry | None, local: Value | None) -> Pull:
    """What a pull does about one path; `local` is the value of a file that changed."""
    if here == "changed" and local is not None and remote is not None and local == value_of(remote):
        return "agree"
    if remote is None and base is None:
        return "nothing" if here == "changed" else "forget"
    return _PULL[here, there_of(base, remote)]
