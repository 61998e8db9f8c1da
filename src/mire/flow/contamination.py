"""Looking for what other programs mixed up between namespaces, and moving it out.

Owns: what is looked at, and the order of a repair: copied, listed, unlisted, and only then removed.
Must not know: how strays are told from what belongs here.
Keeps: without `repair` nothing is changed; with it the only copy of anything is moved, never deleted, nothing is
written into another tenant's part, and nothing that the solo tenant's index lists is touched.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from mire.edge import pool
from mire.edge.local import LocalRemote
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Remote, Stat
from mire.errors import FormatError, InputError
from mire.flow.commit import commit
from mire.flow.contamination_cache import cached_strangers, put_beside, strays_in_cache
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_gate
from mire.flow.foreign import foreign_view
from mire.flow.index import fetch_index
from mire.flow.lock import hold_global
from mire.flow.namespace import solo_of
from mire.flow.place import Place
from mire.flow.reading import read_for
from mire.flow.relocate_remote import hash_object, is_same_object, open_side, stat_at
from mire.flow.transfer import mtime_text
from mire.flow.within import Watch, within_timeout
from mire.model.index import Entry
from mire.model.names import SOLO, Namespace, RelPath
from mire.plan.commit import Changes
from mire.plan.contamination import QUARANTINE, Stray, copies_among, plan_repair, strays_among, tenants_among
from mire.wire.manifest import MANIFEST
from mire.wire.relpath import check_rel, is_internal

_AT_ONCE = 16


@dataclass(slots=True, kw_only=True)
class Finding:
    """One thing that does not belong where it is, and what became of it."""

    kind: str
    key: str
    home: str
    """Where it belongs."""
    message: str
    action: str = "found"
    """What became of it; `left` is what no repair deals with."""
    moved_to: str | None = None


@dataclass(slots=True, kw_only=True)
class Contamination:
    """What was found in a tenant's part."""

    namespace: Namespace
    is_repaired: bool
    findings: list[Finding] = field(default_factory=list)

    @property
    def left(self) -> int:
        """How many are where they were."""
        return sum(each.action in ("found", "left") for each in self.findings)


def examine_namespace(
    ds: Datastore, *, repair: bool = False, root: bool = False, watch: Watch | None = None
) -> Contamination:
    """Look through our part of a store; `root` also for copies of our files at the root, by name."""
    done = Contamination(namespace=ds.config.namespace, is_repaired=repair)
    if repair and ds.remote is not None:
        check_gate(ds)
    with ExitStack() as stack:
        bare = replace(ds, lifecycle=None)
        if repair and root:
            stack.enter_context(hold_global(solo_of(bare)))
        if repair:
            stack.enter_context(hold_global(bare))
        with _opened(within_timeout(bare, watch)) as work:
            work.look(done)
            if root and ds.config.namespace:
                work.look_at_root(done)
    return done


@contextmanager
def _opened(ds: Datastore) -> Iterator["_Work"]:
    if ds.remote is None:
        whole = LocalRemote(ds.base)
        yield _Work(ds, Prefixed(whole, ds.config.namespace) if ds.config.namespace else None, whole, None)
        return
    with open_side(ds, ds.config.namespace) as place:
        yield _Work(ds, place.remote if ds.config.namespace else None, ds.whole or ds.remote, place)


class _Work:
    """One look at one part: `own` is our namespace, None for the solo tenant, whose part has no end."""

    def __init__(self, ds: Datastore, own: Remote | None, whole: Remote, place: Place | None) -> None:
        self._ds, self._own, self._whole, self._place = ds, own, whole, place
        parts = None if place is None else fetch_index(place)
        self._listed = {} if parts is None else {rel: e for rel, e in parts.entries() if isinstance(e, Entry)}

    def look(self, done: Contamination) -> None:
        """Find strays in our part, and in our index; deal with them, if asked to."""
        if self._own is None:
            self._look_at_solo_index(done)
            return
        stats = {stat.key: stat for stat in self._own.list("") if not stat.key.startswith(QUARANTINE)}
        namespace, own = self._ds.config.namespace, self._ds.config.directories
        rels = [rel for rel in {**stats, **self._listed} if rel.partition("/")[0] not in own]
        cached = [] if self._place is None else cached_strangers(self._ds)
        known = self._known(tenants_among((*rels, *cached), namespace), stats)
        strays = strays_among((rel for rel in rels if rel in stats), namespace, known)
        listed_only = strays_among((rel for rel in rels if rel not in stats), namespace, known)
        unsure = [each for each in strays if each.kind == "foreign" and each.tenant not in known]
        done.findings += [_unsure(each, namespace) for each in unsure]
        strays = [each for each in strays if each not in unsure]
        found = [_finding(stray, namespace) for stray in (*strays, *listed_only)]
        done.findings += found
        if done.is_repaired and found:
            self._repair(
                strays, stats, listed_only, dict(zip((s.rel for s in (*strays, *listed_only)), found, strict=True))
            )
        self._look_into_cache(done, strays_in_cache(self._ds, cached, known))

    def _look_into_cache(self, done: Contamination, strays: list[Stray]) -> None:
        for stray in strays:
            told = _finding(stray, self._ds.config.namespace)
            told.key, told.message = os.path.join(self._ds.tier, stray.rel), f"in the cache, {told.message}"
            done.findings.append(told)
            if done.is_repaired:
                told.moved_to = put_beside(self._ds, stray)
                told.action = "dropped" if told.moved_to is None else "quarantined"
                became = "removed, the same is there" if told.moved_to is None else f"moved to {told.moved_to}"
                told.message = f"{told.message}; it was {became}"

    def _known(self, names: set[Namespace], stats: dict[str, Stat]) -> frozenset[Namespace]:
        """The names that somebody registered, here or where namespaces are registered."""
        view = foreign_view(self._ds)

        def is_known(name: Namespace) -> bool:
            try:
                return f"{name}/{MANIFEST}" in stats or view.manifest(name) is not None
            except FormatError:
                return True

        return frozenset(name for name in names if is_known(name))

    def _look_at_solo_index(self, done: Contamination) -> None:
        """Entries of namespaces in the solo index: those lose their entry there, and nothing else."""
        strays = strays_among(self._listed, SOLO)
        found = [_finding(stray, SOLO) for stray in strays]
        done.findings += found
        if done.is_repaired and found:
            self._unlist(strays)
            for each in found:
                each.action, each.message = "unlisted", f"{each.message}; it is no longer listed here"

    def _repair(
        self, strays: list[Stray], stats: dict[str, Stat], listed_only: list[Stray], told: dict[str, Finding]
    ) -> None:
        homes: dict[RelPath, Entry] = {}
        for stray, entry in pool.run(
            lambda each: self._copy_out(each, stats[each.rel], told[each.rel]), strays, at_once=_AT_ONCE
        ):
            if entry is not None:
                homes[RelPath(stray.home)] = entry
        self._unlist([*strays, *listed_only], homes)
        for stray in listed_only:
            told[stray.rel].action = "unlisted"
        for _ in pool.run(lambda each: _remove(self._owned, stats[each.rel]), strays, at_once=_AT_ONCE):
            pass

    def _copy_out(self, stray: Stray, stat: Stat, told: Finding) -> Entry | None:
        """See that the bytes are where they belong, or in quarantine; the entry they get, if they come home."""
        own = self._owned
        action = plan_repair(stray, self._is_same_at_home(stray, stat))
        if action == "drop":
            told.action, told.message = "dropped", f"{told.message}; the same is there already, so it was removed"
            return None
        if action == "home":
            own.copy(stray.rel, stray.home)
            told.action, told.moved_to = "moved", self._key(stray.home)
            told.message = f"{told.message}; it was moved there"
            sha256 = hash_object(own, stray.home)
            return Entry(
                size_bytes=stat.size_bytes, last_modified=mtime_text(stat.modified_ms * 1_000_000), sha256=sha256
            )
        target = f"{QUARANTINE}{stray.rel}"
        there = stat_at(own, target)
        if there is not None and not is_same_object(own, stat, own, there):
            target = f"{target}.{stat.fingerprint}"
        own.copy(stray.rel, target)
        told.action, told.moved_to = "quarantined", self._key(target)
        told.message = f"{told.message}; it was moved to {told.moved_to}"
        return None

    def _is_same_at_home(self, stray: Stray, stat: Stat) -> bool | None:
        own = self._owned
        if stray.kind == "doubled":
            there = stat_at(own, stray.home)
            return None if there is None else is_same_object(own, stat, own, there)
        try:
            other = foreign_view(self._ds).head(stray.tenant, stray.home)
        except (InputError, LookupError):
            return None  # what may not be looked at may not be compared
        mine = replace(stat, key=self._key(stray.rel))
        return is_same_object(self._whole, mine, self._whole, other)

    def _unlist(self, strays: list[Stray], homes: dict[RelPath, Entry] | None = None) -> None:
        if self._place is None:
            return
        expected: dict[RelPath, Entry | None] = {
            RelPath(each.rel): self._listed[each.rel] for each in strays if each.rel in self._listed
        }
        upserts = homes or {}
        removals = frozenset(expected)
        expected |= {rel: self._listed.get(rel) for rel in upserts}
        changes = Changes(upserts=upserts, removals=removals, expected=expected)
        if changes.paths:
            commit(self._place, changes, read_for(self._place, changes.paths))

    def look_at_root(self, done: Contamination) -> None:
        """Find objects of ours that lie at the root, too, without our namespace; each is asked for by name."""
        own, solo = self._owned, self._solo_entries()
        mine = [stat for stat in own.list("") if not is_internal(stat.key) and check_rel(stat.key) is None]
        wanted = [stat for stat in mine if stat.key not in solo and not strays_among([stat.key], done.namespace)]

        def compare(stat: Stat) -> tuple[Stat | None, bool]:
            there = stat_at(self._whole, stat.key)
            return there, there is not None and is_same_object(own, stat, self._whole, there)

        compared = list(pool.run(compare, wanted, at_once=_AT_ONCE))
        # No index tells whose the files of a directory are: there only what cannot be alike by chance is a copy.
        copies = copies_among({stat.key for stat, (_, is_same) in compared if is_same})
        for stat, (there, is_same) in compared:
            if there is None or (self._place is None and stat.key not in copies):
                continue
            what = "the same as ours" if is_same else "other bytes than ours"
            told = Finding(
                kind="stripped",
                key=stat.key,
                home=self._key(stat.key),
                message=f"{what}, at the root, where nothing lists it",
            )
            done.findings.append(told)
            if self._place is None:
                told.action = "left"
                told.message = f"{what}, at the root; if that is this repository's, 'mire namespace migrate' removes it"
            elif not is_same:
                told.action = "left"
            elif done.is_repaired:
                _remove(self._whole, there)
                told.action, told.message = "dropped", f"{told.message}, so it was removed"

    def _solo_entries(self) -> frozenset[str]:
        if self._place is None:
            return frozenset()
        with open_side(self._ds, SOLO) as place:
            return frozenset(rel for rel, _ in fetch_index(place).entries())

    @property
    def _owned(self) -> Remote:
        assert self._own is not None  # noqa: S101 - only a namespace has strays
        return self._own

    def _key(self, rel: str) -> str:
        return f"{self._ds.config.namespace}/{rel}"


def _remove(remote: Remote, stat: Stat) -> None:
    if remote.properties.conditional_delete:
        remote.delete_if(stat.key, stat.fingerprint)
    else:
        remote.delete(stat.key)


def _unsure(stray: Stray, namespace: Namespace) -> Finding:
    told = _finding(stray, namespace)
    told.action = "left"
    told.message = f"looks like {told.home}, but nobody registered {stray.tenant}: look at it yourself"
    return told


def _finding(stray: Stray, namespace: Namespace) -> Finding:
    key = f"{namespace}/{stray.rel}" if namespace else stray.rel
    home = f"{stray.tenant}/{stray.home}"
    return Finding(kind=stray.kind, key=key, home=home, message=f"belongs to {home}")
