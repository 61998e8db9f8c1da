"""Verifying this client's own view: index against cache, content against what was recorded, objects against the index.

Owns: what is read and compared, and in which order.
Must not know: what a difference means; the plan says.
Keeps: nothing is changed, here or at the remote; whatever could not be looked at is told, never taken for good.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice

from mire.edge import files, pool
from mire.edge.tree import Tree, hash_file
from mire.errors import FormatError, MireError, NotFoundError
from mire.flow.change import is_other_tenant
from mire.flow.datastore import Datastore
from mire.flow.index import IndexParts, fetch_index, is_ours
from mire.flow.local import Marks, mark_of, marks_of
from mire.flow.place import Place, open_place
from mire.flow.send import is_intended
from mire.flow.within import Watch, within_timeout
from mire.model.base import BaseRow
from mire.model.index import Damaged, Entry
from mire.model.names import RelPath
from mire.model.verify import Finding, Verified
from mire.plan.verify import (
    Content,
    State,
    checksum_finding,
    entry_finding,
    metadata_finding,
    object_finding,
    partition_finding,
    path_finding,
    shard_findings,
    state_of,
    unlisted_finding,
)
from mire.wire.layout import DATA, METADATA, RAW
from mire.wire.metadata import decode_metadata
from mire.wire.relpath import check_rel, is_internal
from mire.wire.shard import shard_of

_METADATA_BYTES_MAX = 1 << 20
_BATCH = 500


def verify(ds: Datastore, *, deep: bool = False, is_local: bool = False, watch: Watch | None = None) -> Verified:
    """Compare everything; `deep` looks for every object, `is_local` asks the remote nothing."""
    done = Verified()
    with ExitStack() as stack:
        place = None if ds.remote is None else stack.enter_context(open_place(within_timeout(ds, watch)))
        parts = None if place is None or is_local else fetch_index(place, with_copies=True)
        if parts is not None:
            _check_parts(parts, done)
        cache = _Cache(ds, place, parts, done)
        cache.check()
        if place is not None and parts is not None:
            _check_objects(place, parts, done, is_deep=deep)
            _check_unlisted(place, cache.unlisted, done)
    return done


class _Cache:
    """One pass over the files here, the base and the index."""

    def __init__(self, ds: Datastore, place: Place | None, parts: IndexParts | None, done: Verified) -> None:
        self._ds = ds
        self._done = done
        self._place = place
        self._index = None if parts is None else {rel: entry for rel, entry in parts.entries() if is_ours(rel)}
        self._tree = Tree(ds.tier, _skipping(ds), check_rel)
        pending = None if place is None else place.state.pending()
        self._marks = Marks(generation=0, by_path={}) if pending is None else marks_of(pending)
        self.unlisted: list[BaseRow] = []
        """What was agreed on, and the index does not name."""
        self._is_bulk = pending is not None and (pending.is_bulk or not pending.is_known)

    def check(self) -> None:
        """Look at everything once."""
        seen: set[str] = set()
        for rel, row in self._rows_of(self._files()):
            seen.add(rel)
            self._check_path(rel, row, is_here=True)
        for row in () if self._place is None else self._place.state.all_base():
            if row.rel not in seen:
                seen.add(row.rel)
                self._check_path(row.rel, row, is_here=False)
        for rel in sorted((self._index or {}).keys() - seen):
            self._check_path(rel, None, is_here=False)
        self._done.findings += [
            Finding(kind="unreadable", path=each.path, message=each.message, remedy="make it readable, or remove it")
            for each in self._tree.troubles
        ]

    def _files(self) -> Iterator[str]:
        if files.is_dir(self._ds.tier):
            # A cache mirrors whatever the index lists; in a directory of files others have theirs beside ours.
            shared = None if self._place is not None else self._ds.config.directories
            yield from (rel for rel, _ in self._tree.files() if shared is None or rel.partition("/")[0] in shared)

    def _rows_of(self, rels: Iterator[str]) -> Iterator[tuple[str, BaseRow | None]]:
        while batch := list(islice(rels, _BATCH)):
            rows = {} if self._place is None else self._place.state.base_of(batch)
            yield from ((rel, rows.get(rel)) for rel in batch)

    def _check_path(self, rel: str, row: BaseRow | None, *, is_here: bool) -> None:
        entry = None if self._index is None else self._index.get(rel)
        reason = entry.reason if isinstance(entry, Damaged) else check_rel(rel)
        if reason is not None:
            self._done.findings.append(entry_finding(rel, reason))
            return
        if row is not None and entry is None and self._index is not None:
            self.unlisted.append(row)
        content = self._hashed(rel) if is_here else None
        if is_here and content is None:
            return
        described = content
        if self._place is not None:
            state = state_of(
                content,
                row,
                entry,
                is_marked=mark_of(self._ds, rel, self._marks) is not None,
                is_bulk=self._is_bulk,
                has_index=self._index is not None,
            )
            self._count(rel, state, row, content)
            if state == "unhydrated" and row is not None and row.sha256 is not None:
                described = row.size_bytes, row.sha256  # what would come is known without fetching it
        else:
            self._count(rel, "fine", row, content)
        if described is not None and rel.startswith(f"{DATA}/") and rel.endswith(f"/{RAW}"):
            self._check_content(rel, described)

    def _hashed(self, rel: str) -> Content | None:
        path = os.path.join(self._ds.tier, rel)
        try:
            found = hash_file(path)
        except MireError as error:
            self._done.findings.append(
                Finding(kind="unreadable", path=rel, message=error.message, remedy="look again, or make it readable")
            )
            return None
        return found.file.size_bytes, found.sha256

    def _count(self, rel: str, state: State, row: BaseRow | None, content: Content | None) -> None:
        done = self._done
        if content is not None:
            done.here += 1
            done.size_bytes += content[0]
        match state:
            case "dirty":
                done.dirty += 1
            case "behind":
                done.behind += 1
            case "unhydrated":
                done.unhydrated += 1
                done.unhydrated_bytes += 0 if row is None else row.size_bytes
            case _:
                found = path_finding(rel, state)
                done.findings += [] if found is None else [found]

    def _check_content(self, rel: str, content: Content) -> None:
        path = os.path.join(self._ds.tier, os.path.dirname(rel), METADATA)
        try:
            data = files.read_file(path, limit=_METADATA_BYTES_MAX)
            # Without metadata the version was never finished, and nobody sees it.
            said = None if data is None else decode_metadata(data)
            found = None
            if said is not None:
                found = checksum_finding(rel, content, said.size_bytes, said.checksum, is_streaming=said.streaming)
        except FormatError as error:
            found = metadata_finding(f"{os.path.dirname(rel)}/{METADATA}", error.message)
        self._done.findings += [] if found is None else [found]


def _skipping(ds: Datastore) -> Callable[[str], bool]:
    """What no client syncs, and the parts of other tenants."""
    return lambda rel: is_internal(rel) or is_other_tenant(ds, rel)


def _check_parts(parts: IndexParts, done: Verified) -> None:
    done.entries = sum(1 for _ in parts.entries())
    if parts.form == "sharded":
        done.findings += shard_findings(parts.missing, parts.unreadable, parts.unlisted)
        return
    monolith = parts.monolith.monolith
    if monolith is None:
        return
    wanted = {name: shard_of(monolith, rels) for name, rels in monolith.by_partition().items() if name is not None}
    vouched = _vouched(parts)
    for name, seen in sorted(parts.shards.items()):
        said = b"" if seen.shard is None else seen.shard.data
        if (seen.shard or name in wanted) and said != wanted.get(name):
            done.findings.append(
                partition_finding(name, is_proven=seen.tag is not None and vouched.get(name) == seen.tag)
            )


def _vouched(parts: IndexParts) -> dict[str, str]:
    """The partitions that a reader believes, by fingerprint."""
    proof = None if parts.meta.meta is None else parts.meta.meta.proof
    return dict(proof.shards) if proof is not None and parts.is_proven else {}


def _check_unlisted(place: Place, rows: list[BaseRow], done: Verified) -> None:
    """Tell what was deleted, or is about to be, from what only the index lost."""
    marks = marks_of(place.state.pending())

    def is_there(row: BaseRow) -> bool:
        try:
            return place.remote.head(row.rel).size_bytes == row.size_bytes
        except NotFoundError:
            return False

    doubtful = [
        row for row in rows if mark_of(place.ds, row.rel, marks) is None and not is_intended(place, RelPath(row.rel))
    ]
    for row, is_dropped in pool.run(is_there, doubtful, at_once=place.ds.sync.pulls_at_once(are_short=True)):
        done.objects += 1
        done.findings += [unlisted_finding(row.rel)] if is_dropped else []


def _check_objects(place: Place, parts: IndexParts, done: Verified, *, is_deep: bool) -> None:
    """Look for the objects the cache does not have; deeply, for all."""

    def is_here(rel: str) -> bool:
        return os.path.lexists(os.path.join(place.ds.tier, rel))

    def look(item: tuple[str, Entry]) -> Finding | None:
        rel, entry = item
        try:
            size = place.remote.head(rel).size_bytes
        except NotFoundError:
            size = None
        return object_finding(rel, entry, size, is_here=is_here(rel))

    wanted = (
        (rel, entry)
        for rel, entry in parts.entries()
        if isinstance(entry, Entry) and is_ours(rel) and check_rel(rel) is None and (is_deep or not is_here(rel))
    )
    for _, found in pool.run(look, wanted, at_once=place.ds.sync.pulls_at_once(are_short=True)):
        done.objects += 1
        done.findings += [] if found is None else [found]
