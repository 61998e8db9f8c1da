"""Replacing an index as a whole, in either form, whatever state the old one is in.

Owns: the order of writes, and what a cache may no longer believe afterwards.
Must not know: where the entries come from.
Keeps: every object of the index is replaced only as it was seen before the entries were worked out; the list comes
last, and after it the copy that a monolith beside shards is. A shard has its name for good, so it counts as soon as it
is written: dying in between leaves new ones and old ones, each complete for its paths, beside an old list or an old
copy, and running again goes on.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from mire.errors import ConflictError
from mire.flow.derived import make_monolith
from mire.flow.migrate import next_seq, write_shards
from mire.flow.monolith import forget_copy
from mire.flow.place import META, MONOLITH, Place
from mire.flow.prove import prove
from mire.flow.swap import swap
from mire.model.index import Meta
from mire.wire.meta import encode_meta
from mire.wire.monolith import decode_monolith
from mire.wire.shard import encode_shard

_AT_A_TIME: Final = 500
"""Shards the driver holds in memory at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The objects of an index as they were before its entries were worked out, by fingerprint."""

    meta: Meta | None
    meta_tag: str | None
    monolith_tag: str | None
    shards: Mapping[str, str] = field(default_factory=dict)
    is_meta_damaged: bool = False


def replace_shards(place: Place, seen: Seen, texts: Iterable[tuple[str, bytes]], check: Callable[[], None]) -> int:
    """Write the shards, empty those that list nothing any more, then the list; the new count of commits."""
    names: list[str] = []
    remaining = iter(texts)
    while some := dict(islice(remaining, _AT_A_TIME)):
        names += some
        _write(place, seen, some)
    _write(place, seen, dict.fromkeys(seen.shards.keys() - set(names), encode_shard({})))
    check()
    seq = next_seq(place, seen.meta)
    extra = {} if seen.meta is None else seen.meta.extra
    if (
        swap(
            place,
            META,
            encode_meta(Meta(version=2, partitions=tuple(names), commit_seq=seq, extra=extra)),
            seen.meta_tag,
        )
        is None
    ):
        raise _busy()
    _forget(place)
    place.state.set_facts({"commit_seq": str(seq)})
    if place.ds.sync.is_monolith_kept:
        make_monolith(place, after=seq)
    return seq


def replace_monolith(place: Place, seen: Seen, data: bytes, check: Callable[[], None]) -> None:
    """Write the monolith, then its partitions and the list that vouches for them."""
    check()
    tag = swap(place, MONOLITH, data, seen.monolith_tag)
    if tag is None:
        raise _busy()
    if seen.is_meta_damaged and swap(place, META, encode_meta(Meta(version=1)), seen.meta_tag) is None:
        raise _busy()
    _forget(place)
    if not prove(place, None, decode_monolith(data), tag, set()):
        raise _busy()


def _write(place: Place, seen: Seen, texts: Mapping[str, bytes]) -> None:
    if not write_shards(place, seen.shards, texts):
        raise _busy()


def _forget(place: Place) -> None:
    """Compare everything the next time: what is remembered of the old index says nothing about the new one."""
    forget_copy(place)
    place.state.set_facts({"generation": None, "meta": None, "meta_text": None, "meta_looked_ms": None})
    place.state.set_shard_tags(dict.fromkeys(place.state.shard_tags()))


def _busy() -> ConflictError:
    return ConflictError(
        "the index was changed by somebody while it was worked out anew: what they wrote stays, the list was not"
        " written; run again",
        kind="busy_index",
    )
