"""Bringing the partitions beside a monolith in step with it.

Owns: which partitions are written, and stopping when the monolith is no longer ours.
Must not know: the list that vouches for them.
Keeps: a partition is replaced only as it was seen, and only while the monolith it was made from is the current one,
so that a slow writer never puts an old partition over a newer one.
"""

import hashlib

from mire.edge import pool
from mire.edge.remote import Absent, Matches, Refused, Stored, Unknown
from mire.errors import NotFoundError
from mire.flow.place import META, MONOLITH, SHARDS, Place, partition_at, shard_key
from mire.flow.reading import AT_ONCE
from mire.wire.indextext import IndexText
from mire.wire.shard import shard_of

_TRIES = 8


def heal_partitions(place: Place, monolith: IndexText, tag: str, touched: set[str] | None) -> tuple[str, ...] | None:
    """Write the touched partitions (None: all that differ); their names, or None when the monolith was replaced."""
    if touched is not None:
        wanted = {name: shard_of(monolith, monolith.of_partition(name)) for name in sorted(touched)}
        seen: dict[str, str | None] = dict(place.state.shard_tags())
        names = tuple(wanted)
    else:
        seen = {
            partition_at(stat.key): stat.fingerprint
            for stat in place.remote.list(SHARDS)
            if stat.key != META and stat.key.endswith(".json")
        }
        groups = monolith.by_partition()
        names = tuple(name for name in groups if name is not None)
        # One that the monolith has nothing for lists what is gone.
        wanted = {name: shard_of(monolith, groups.get(name, ())) for name in dict.fromkeys((*names, *seen))}

    def write(name: str) -> str | None:
        return _write(place, name, wanted[name], seen.get(name), tag)

    tags: dict[str, str | None] = {}
    is_superseded = False
    for name, stored in pool.run(write, wanted, at_once=AT_ONCE):
        tags[name] = stored
        is_superseded = is_superseded or stored is None
    place.state.set_shard_tags(tags)
    return None if is_superseded else names


def _write(place: Place, name: str, data: bytes, seen: str | None, tag: str) -> str | None:
    """The fingerprint of a partition that has these bytes now; None when the monolith is another by now."""
    key = shard_key(name)
    if seen is not None and place.remote.properties.content_fingerprint and seen == _etag_of(data):
        return seen
    for _ in range(_TRIES):
        match place.remote.put_if(key, data, Absent() if seen is None else Matches(seen)):
            case Stored(fingerprint):
                return fingerprint
            case Unknown(error):
                raise error
            case Refused():
                if not _is_current(place, tag):
                    return None
                seen = _tag_at(place, key)
    return None


def _etag_of(data: bytes) -> str:
    # What S3 calls a small object whose upload was not encrypted with a customer's key; another form never matches.
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _is_current(place: Place, tag: str) -> bool:
    return _tag_at(place, MONOLITH) == tag


def _tag_at(place: Place, key: str) -> str | None:
    try:
        return place.remote.head(key).fingerprint
    except NotFoundError:
        return None
