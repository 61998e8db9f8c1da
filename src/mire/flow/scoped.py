"""What the index says about some models, for a number of requests that does not depend on the store.

Owns: which partitions one model needs, and when a partition beside a monolith is believed.
Must not know: files of the cache, downloads.
Keeps: a partition beside a monolith counts only with proof: the list names this monolith, and this very partition.
"""

from collections.abc import Callable, Iterable
from typing import Final

from mire.flow.delta import Delta
from mire.flow.place import Place
from mire.flow.reading import (
    MetaSeen,
    MonolithSeen,
    ShardSeen,
    check_derived,
    damaged_index,
    fetch_meta,
    fetch_monolith,
    fetch_shards,
    tag_of_monolith,
    torn,
)
from mire.flow.unsettled import load_unsettled
from mire.flow.whole import meta_again
from mire.model.artifact import ModelRef
from mire.model.names import RelPath
from mire.wire.layout import LATEST, RAW, model_dir
from mire.wire.partition import partition_of, partitions_for

_TORN_MAX: Final = 5


def read_models(place: Place, models: Iterable[ModelRef]) -> Delta | None:
    """What the index says about some models; None when nothing changed since everything was last dealt with."""
    wanted = tuple(models)
    meta = fetch_meta(place)
    if meta.is_sharded:
        if meta.is_same and place.state.fact("generation") == "2" and not _has_unsettled(place, wanted):
            return None
        return _of_shards(place, meta, wanted)
    tag = tag_of_monolith(place)
    if tag is not None and tag == place.state.fact("monolith") and not _has_unsettled(place, wanted):
        return None
    shards = None if tag is None else _proven(place, meta, tag, wanted)
    if shards is None:
        return _of_monolith(place, fetch_monolith(place), meta, wanted)
    delta = Delta(is_partial=True, monolith_tag=tag)
    delta.add_shards(place, shards, shards)
    delta.tags = {}
    return _only(place, delta, wanted)


def _below(models: Iterable[ModelRef]) -> Callable[[str], bool]:
    """Whether a path is of one of the models; it takes no longer for thousands of them."""
    directories = {model_dir(model) for model in models}

    def is_below(rel: str) -> bool:
        end = rel.find("/")
        while end >= 0 and rel[:end] not in directories:
            end = rel.find("/", end + 1)
        return end >= 0

    return is_below


def _has_unsettled(place: Place, models: tuple[ModelRef, ...]) -> bool:
    return any(map(_below(models), load_unsettled(place.state)))


def _proven(place: Place, seen: MetaSeen, monolith: str, models: tuple[ModelRef, ...]) -> dict[str, ShardSeen] | None:
    """The partitions of some models, if they certainly say what the monolith says now."""
    proof = None if seen.meta is None else seen.meta.proof
    if proof is None or proof.monolith != monolith:
        return None
    shards = fetch_shards(place, partitions_for(models, proof.shards), proof.shards)
    is_proven = all(shard.shard is not None and shard.tag == proof.shards[name] for name, shard in shards.items())
    return shards if is_proven else None


def _of_monolith(place: Place, seen: MonolithSeen, meta: MetaSeen, models: tuple[ModelRef, ...]) -> Delta:
    if seen.monolith is None:
        # No index is no news of deletions.
        return Delta(is_partial=True)
    if meta.meta is None and not seen.is_same:
        check_derived(place, seen)
    delta = Delta(is_partial=True, monolith_tag=seen.tag)
    is_below = _below(models)
    for rel in seen.monolith:
        if is_below(rel):
            delta.add(RelPath(rel), seen.monolith[rel])
    return _only(place, delta, models)


def _of_shards(place: Place, seen: MetaSeen, models: tuple[ModelRef, ...]) -> Delta:
    # Where a model's versions and markers are is known: they count even if another client unlisted them.
    own = {partition_of(f"{model_dir(model)}/name/{last}") for model in models for last in (f"1/{RAW}", LATEST)}
    for _ in range(_TORN_MAX):
        names = partitions_for(models, dict.fromkeys((*seen.partitions, *(name for name in own if name is not None))))
        shards = fetch_shards(place, names, seen.partitions)
        delta = Delta(is_partial=True)
        delta.add_shards(place, shards, seen.partitions)
        known = place.state.shard_tags()
        # Other models of these partitions were not dealt with: they are read again by whoever wants everything.
        delta.tags = {name: None for name, tag in delta.tags.items() if known.get(name) != tag and name in known}
        newer = meta_again(place, seen) if len(shards) > 1 or delta.skipped else None
        if newer is None:
            return _only(place, delta, models, among={name for name in names if name not in delta.skipped})
        if newer.meta is None:
            raise damaged_index("its list of partitions is gone")
        seen = newer
    raise torn()


def _only(place: Place, delta: Delta, models: tuple[ModelRef, ...], among: set[str] | None = None) -> Delta:
    """The part of a delta that is about some models; what we know of them and nobody lists is no longer listed."""
    is_below = _below(models)
    delta.entries = {rel: entry for rel, entry in delta.entries.items() if is_below(rel)}
    for model in models:
        for row in place.state.base_below(model_dir(model)):
            if among is None or row.partition in among:
                delta.entries.setdefault(RelPath(row.rel), None)
    return delta
