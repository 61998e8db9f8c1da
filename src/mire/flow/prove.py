"""Bringing the partitions beside a monolith in step with it, and vouching for them.

Owns: which partitions are written, and the proof in the list.
Must not know: what was changed, or why.
Keeps: the proof names one monolith, and each partition by the fingerprint under which it says what that monolith says.
So it holds whoever writes a partition later, and however late: a reader compares both, and believes neither by itself.
A list that says that the shards are the index is never replaced, nor is any shard beside it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from mire.edge import pool
from mire.flow.delta import now_ms
from mire.flow.place import META, Place, shard_key
from mire.flow.reading import AT_ONCE, MetaSeen, fetch_meta, list_shards, meta_facts, tag_of_monolith
from mire.flow.swap import swap
from mire.model.index import Meta, Proof
from mire.wire.indextext import IndexText
from mire.wire.meta import decode_meta, encode_meta
from mire.wire.shard import shard_of

_TRIES: Final = 8
_WRITTEN: Final = "written/"


def prove(place: Place, before: str | None, monolith: IndexText, tag: str, touched: set[str]) -> bool:
    """Vouch for the partitions of a monolith, which replaced the one `before`; False when shards are the index by now.

    When others commit all the time it is left to them: without a proof readers take the monolith.
    """
    meta = _remembered(place, before) or fetch_meta(place)
    for _ in range(_TRIES):
        if meta.is_sharded:
            return False
        shards = _in_step(place, meta, before, monolith, touched)
        if shards is not None and _vouch(place, meta, tag, shards):
            return True
        before = None  # somebody else wrote: nothing is taken for granted any more
        # First the partitions, then the list: it says what they were.
        present = list_shards(place)
        meta = fetch_meta(place)
        if meta.is_sharded:
            return False
        if tag_of_monolith(place) != tag:
            return True
        shards = _write(place, present, _all(monolith, present))
        if shards is not None and _vouch(place, meta, tag, shards):
            return True
        meta = fetch_meta(place)
    return True


def _remembered(place: Place, tag: str | None) -> MetaSeen | None:
    """The list we remember, if it vouches for the monolith we changed: then it need not be read."""
    known, text = place.state.fact("meta"), place.state.fact("meta_text")
    if known is None or text is None:
        return None
    meta = decode_meta(text.encode(), META)
    return MetaSeen(meta=meta, tag=known, is_same=True) if _proof_of(meta, tag) is not None else None


def _proof_of(meta: Meta | None, tag: str | None) -> Proof | None:
    proof = None if meta is None else meta.proof
    return proof if proof is not None and tag is not None and proof.monolith == tag else None


def _in_step(
    place: Place, meta: MetaSeen, before: str | None, monolith: IndexText, touched: Iterable[str]
) -> Mapping[str, str] | None:
    """The fingerprints of all partitions after writing the touched ones, if the others are vouched for."""
    proof = _proof_of(meta.meta, before)
    if proof is None:
        return None
    wanted = {name: shard_of(monolith, monolith.of_partition(name)) for name in sorted(touched)}
    written = _write(place, proof.shards, wanted)
    return None if written is None else {**proof.shards, **written}


def _all(monolith: IndexText, present: Iterable[str]) -> dict[str, bytes]:
    groups = monolith.by_partition()
    names = dict.fromkeys((*(name for name in groups if name is not None), *present))
    # One that the monolith has nothing for lists what is gone.
    return {name: shard_of(monolith, groups.get(name, ())) for name in names}


def _write(place: Place, seen: Mapping[str, str], wanted: Mapping[str, bytes]) -> dict[str, str] | None:
    """Write partitions over those that were seen; their fingerprints, None when one is another by now."""
    is_telling = place.remote.properties.content_fingerprint
    # Where a fingerprint does not tell what is there, we remember what we wrote under it.
    known = {} if is_telling else {name: place.state.fact(f"{_WRITTEN}{name}") for name in wanted}

    def write(name: str) -> str | None:
        data, tag = wanted[name], seen.get(name)
        if tag is not None and (tag if is_telling else known[name]) == _text(data, tag, is_telling=is_telling):
            return tag
        return swap(place, shard_key(name), data, tag)

    written = dict(pool.run(write, wanted, at_once=AT_ONCE))
    tags = {name: tag for name, tag in written.items() if tag is not None}
    if not is_telling:
        texts = {name: _text(wanted[name], tag, is_telling=False) for name, tag in tags.items()}
        place.state.set_facts({f"{_WRITTEN}{name}": text for name, text in texts.items()})
    return tags if len(tags) == len(written) else None


def _text(data: bytes, tag: str, *, is_telling: bool) -> str:
    # What S3 calls a small object whose upload was not encrypted with a customer's key; another form never matches.
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return digest if is_telling else f"{tag} {digest}"


def _vouch(place: Place, meta: MetaSeen, tag: str, shards: Mapping[str, str]) -> bool:
    old = meta.meta
    wanted = Meta(
        version=1,
        partitions=tuple(shards),
        proof=Proof(monolith=tag, shards=shards, extra=old.proof.extra if old is not None and old.proof else {}),
        extra=old.extra if old is not None else {},
    )
    stored = swap(place, META, encode_meta(wanted), meta.tag)
    if stored is None:
        return False
    seen = MetaSeen(meta=wanted, tag=stored, is_same=True)
    place.state.set_facts({"meta_looked_ms": now_ms(), **meta_facts(seen)})
    return True
