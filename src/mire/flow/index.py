"""Looking at the whole index of a remote: which form it has, what it lists, whether its parts agree.

Owns: the reading of everything an index is made of, and its summary.
Must not know: files of the cache, what is done about a finding.
Keeps: nothing is written, here or there, and nothing that is read is remembered.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mire.flow.place import Place
from mire.flow.reading import MetaSeen, MonolithSeen, ShardSeen, fetch_meta, fetch_monolith, fetch_shards, list_shards
from mire.model.index import Damaged, Entry
from mire.wire.indextext import IndexText
from mire.wire.layout import DATA, LATEST
from mire.wire.partition import partition_of
from mire.wire.relpath import is_internal, tenant_of

Form = Literal["none", "dual", "sharded"]
"""No index yet; a monolith with partitions beside it (v1); shards and their list (v2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexParts:
    """Everything an index is made of, as it is now; shards that are there but not listed are among them."""

    meta: MetaSeen
    monolith: MonolithSeen
    shards: dict[str, ShardSeen]
    """All that are listed or there; empty when they were not asked for."""

    @property
    def form(self) -> Form:
        """Which of its parts count."""
        if self.meta.is_sharded:
            return "sharded"
        return "none" if self.monolith.monolith is None else "dual"

    @property
    def is_proven(self) -> bool:
        """Whether the partitions beside a monolith claim to be in step with it."""
        meta = self.meta.meta
        proof = None if meta is None else meta.proof
        return proof is not None and self.monolith.tag is not None and proof.monolith == self.monolith.tag

    @property
    def missing(self) -> tuple[str, ...]:
        """Partitions that are listed and not there."""
        seen = self.shards
        return tuple(name for name in self.meta.partitions if name in seen and _is_absent(seen[name]))

    @property
    def unlisted(self) -> tuple[str, ...]:
        """Shards with entries that nothing lists."""
        listed = set(self.meta.partitions)
        return tuple(name for name, seen in self.shards.items() if name not in listed and seen.shard)

    @property
    def unreadable(self) -> tuple[tuple[str, str], ...]:
        """Shards that are not understood, and why."""
        return tuple((name, seen.error) for name, seen in self.shards.items() if seen.error is not None)

    def entries(self) -> Iterator[tuple[str, Entry | Damaged]]:
        """What the index says, without what no client syncs."""
        if self.form == "sharded":
            listed = set(self.meta.partitions)
            for name, seen in self.shards.items():
                for rel, entry in _entries(seen.shard):
                    # A shard that nobody lists still counts; what else is in it may be left from another rule.
                    if name in listed or partition_of(rel) == name:
                        yield rel, entry
        else:
            yield from _entries(self.monolith.monolith)


def _entries(text: IndexText | None) -> Iterator[tuple[str, Entry | Damaged]]:
    return (item for item in (() if text is None else text.entries()) if not is_internal(item[0]))


def is_ours(rel: str) -> bool:
    """Whether an entry is about a file of this tenant; clients that mixed tenants up listed others."""
    return tenant_of(rel) is None


def _is_absent(seen: ShardSeen) -> bool:
    return seen.shard is None and seen.error is None


def fetch_index(place: Place, *, with_copies: bool = False) -> IndexParts:
    """All parts that count; `with_copies` also the partitions beside a monolith, which nobody needs to read it."""
    meta, monolith = fetch_meta(place), fetch_monolith(place)
    wanted = {*list_shards(place), *meta.partitions} if meta.is_sharded or with_copies else ()
    return IndexParts(meta=meta, monolith=monolith, shards=fetch_shards(place, wanted))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSummary:
    """An index in numbers."""

    form: Form
    partitions: int
    commit_seq: int | None
    is_proven: bool | None
    """Whether partitions beside a monolith can be believed; None where there is no monolith to agree with."""
    entries: int
    names: int
    """Data names, counted by their markers."""
    size_bytes: int
    damaged: int
    missing: tuple[str, ...]
    unlisted: tuple[str, ...]


def summary_of(parts: IndexParts) -> IndexSummary:
    """The numbers of an index."""
    entries = names = size_bytes = damaged = 0
    for rel, entry in parts.entries():
        entries += 1
        if isinstance(entry, Damaged):
            damaged += 1
            continue
        size_bytes += entry.size_bytes
        names += rel.startswith(f"{DATA}/") and rel.endswith(f"/{LATEST}")
    is_sharded = parts.form == "sharded"
    return IndexSummary(
        form=parts.form,
        partitions=len(parts.meta.partitions),
        commit_seq=parts.meta.meta.commit_seq if parts.meta.meta is not None and is_sharded else None,
        is_proven=parts.is_proven if parts.form == "dual" else None,
        entries=entries,
        names=names,
        size_bytes=size_bytes,
        damaged=damaged,
        missing=parts.missing if is_sharded else (),
        unlisted=parts.unlisted if is_sharded else (),
    )
