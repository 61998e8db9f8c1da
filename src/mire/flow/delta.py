"""What an index says about every path that may differ from the base.

Owns: taking entries out of what was read, and what is remembered of it.
Must not know: which objects are asked for, files of the cache.
Keeps: an entry that must not be followed is told, and left out; a path is missing only if the shard that would list it
was read and is valid; what must be looked at again is on record before a fingerprint says that the rest need not be.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from mire.edge import clock
from mire.edge.key import check_key
from mire.errors import InputError, shown
from mire.flow.monolith import remember_copy
from mire.flow.place import Place
from mire.flow.reading import ShardSeen
from mire.flow.unsettled import keep_unsettled, settle
from mire.model.index import Damaged, Entry
from mire.model.names import RelPath
from mire.wire.indextext import IndexText
from mire.wire.partition import partition_of
from mire.wire.relpath import check_rel, is_internal, is_temporary, tenant_of


@dataclass(slots=True, kw_only=True)
class Delta:
    """Paths that may differ from the base, each with its entry now (None: the index names it no more)."""

    entries: dict[RelPath, Entry | None] = field(default_factory=dict)
    origins: dict[RelPath, str] = field(default_factory=dict)
    """The partition of entries that are listed in another one than the rule says."""
    findings: list[str] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)
    """Partitions that could not be read."""
    facts: dict[str, str | None] = field(default_factory=dict)
    tags: dict[str, str | None] = field(default_factory=dict)
    monolith: bytes | None = None
    monolith_tag: str | None = None
    is_gone: bool = False
    """Whether there is no index at all, and there was one."""
    is_partial: bool = False
    """Whether only some models were read."""

    def add(self, rel: RelPath, entry: Entry | Damaged) -> None:
        """Take one entry of the index; one that cannot be used is told and left out."""
        if is_internal(rel) or is_temporary(rel):
            self.entries.pop(rel, None)
            return
        reason = entry.reason if isinstance(entry, Damaged) else check_rel(rel) or _why_no_key(rel)
        if reason is not None or isinstance(entry, Damaged):
            self.findings.append(f"{shown(rel)} in the index is skipped: {reason}")
            self.entries.pop(rel, None)
        else:
            self.entries[rel] = entry

    def leave_others(self, own: Collection[str]) -> None:
        """Take out what is the part of another tenant, unless it is a directory of our `own`.

        Clients that mixed tenants up list such; neither an object nor a file of it is looked at.
        """
        tenants = {rel: tenant for rel in self.entries if (tenant := tenant_of(rel)) is not None and tenant not in own}
        for rel, tenant in tenants.items():
            if self.entries.pop(rel) is not None:
                self.findings.append(
                    f"{shown(rel)} in the index is skipped: it is the part of the namespace {tenant}; see"
                    " 'mire namespace doctor'"
                )

    def look_up(self, index: IndexText | None, rels: Iterable[RelPath]) -> None:
        """Take what an index says of some paths, as far as they were not taken."""
        for rel in rels:
            if rel not in self.entries:
                self.entries[rel] = None
                if index is not None and (found := index.get(rel)) is not None:
                    self.add(rel, found)

    def add_shards(self, place: Place, shards: Mapping[str, ShardSeen], listed: Collection[str]) -> None:
        """Take what some shards say, and what they no longer say."""
        for name, seen in shards.items():
            if seen.error is not None:
                self._skip(name, seen.error)
            elif seen.shard is None and name in listed:
                self._skip(name, "the index lists it, but it is not there; 'mire verify' shows what can be done")
            else:
                self.add_rows(place, name)
                self.tags[name] = seen.tag
        strays: dict[RelPath, tuple[str, Entry | Damaged]] = {}
        for name, seen in shards.items():
            for text, entry in seen.shard.entries() if seen.shard is not None else ():
                rel = RelPath(text)
                if partition_of(rel) == name:
                    self.add(rel, entry)
                elif name in listed:  # one that nobody lists may be left from another rule
                    strays[rel] = (name, entry)
        self._add_strays(place, strays, shards)

    def _add_strays(
        self, place: Place, strays: Mapping[RelPath, tuple[str, Entry | Damaged]], shards: Mapping[str, ShardSeen]
    ) -> None:
        """Take entries that stand in another shard than the rule says, unless that one names them, too."""
        rows = place.state.base_of(strays)
        for rel, (name, entry) in strays.items():
            own, row = partition_of(rel), rows.get(rel)
            is_elsewhere = row is not None and row.partition == own and own not in shards
            if self.entries.get(rel) is None and not is_elsewhere:
                self.add(rel, entry)
                self.origins[rel] = name

    def add_rows(self, place: Place, partition: str) -> None:
        """Take every path that we know from a partition; as missing, until an entry comes."""
        for row in place.state.base_in(partition):
            self.entries.setdefault(RelPath(row.rel), None)

    def _skip(self, partition: str, why: str) -> None:
        self.skipped.add(partition)
        self.findings.append(f"the partition {shown(partition)} is skipped: {why}")

    def remember(self, place: Place, unsettled: Collection[RelPath]) -> None:
        """Keep what was read, once every path but the unsettled ones was dealt with: the next reading builds on it."""
        state = place.state
        # What was read of some models may be ahead of the copy that the next monolith is compared with.
        is_ahead = self.is_partial and state.fact("monolith") not in (None, self.monolith_tag)
        if not keep_unsettled(state, {*unsettled, *(self.entries if is_ahead else ())}) or self.is_gone:
            return
        if self.monolith is not None and self.monolith_tag is not None:
            remember_copy(place, self.monolith, self.monolith_tag, self.facts)
        else:
            state.set_facts(self.facts)
        state.set_shard_tags(self.tags)
        if not is_ahead:
            settle(state, self.entries.keys() - set(unsettled))


def _why_no_key(rel: RelPath) -> str | None:
    """Why no store can hold an object of this name: shorter paths than files may have."""
    try:
        check_key(rel)
    except InputError as error:
        return error.message
    return None


def now_ms() -> str:
    """The time, as it is remembered."""
    return str(clock.now_ns() / 1e6)
