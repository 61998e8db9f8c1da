"""A round of a migration in this process: for stores that are not worth a Spark.

Owns: what the two stores have, as long as the round.
Must not know: how many rounds there are, what makes the copies count.
Keeps: what `round_spark` would do is done, to the same objects.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from mire.flow.transfer import are_short
from mire.model.config import SyncSettings
from mire.model.index import Entry
from mire.model.names import DATASTORE_SUBDIRS, RelPath
from mire.pipeline.frames import TO_COPY
from mire.pipeline.progress import counted
from mire.pipeline.rounds import Looked, damaged, occupied
from mire.pipeline.sides import Side
from mire.pipeline.stages.copy import Copying, copy_here
from mire.pipeline.stages.scan import objects_in
from mire.pipeline.stages.shards import UNLISTED, EntryRow, entry_rows
from mire.pipeline.store import StoreSpec, open_spec
from mire.pipeline.view import IndexView, check_indexed, check_understood, look_at_index

_NAMES: Final = tuple(TO_COPY.names)
_SIZE: Final = 2
_MODIFIED: Final = 3
_SHA256: Final = 5
"""Where an `EntryRow` has them."""

_Entries = dict[str, EntryRow]
_Odd = tuple[str, str] | None
"""Where an index is damaged first, and how."""


@contextmanager
def round_here() -> "Iterator[HereRound]":
    """A round in this process."""
    yield HereRound()


def has_more(spec: StoreSpec, limit: int) -> bool:
    """Whether a store has more objects than that; no more of it is read than it takes to tell."""
    if limit == sys.maxsize:
        return False
    view = None if spec.is_directory else look_at_index(open_spec(spec))
    return next(islice(_rows(spec, view), limit, None), None) is not None


class HereRound:
    """One look at a source, and the copying of what was seen, by this process."""

    def look(self, source: StoreSpec) -> Looked:
        """Read what the source has: by its index, or (a directory) by what is in it."""
        self._source, view = source, None
        if not source.is_directory:
            view = look_at_index(open_spec(source))
            check_indexed(source, view)
        self._entries, odd = _taken(_rows(source, view))
        self._looked = Looked(
            objects=len(self._entries),
            size_bytes=sum(row[_SIZE] or 0 for row in self._entries.values()),
            view=view,
            damage=None if odd is None else damaged("source", *odd),
        )
        return self._looked

    def rels(self) -> set[str]:
        """The paths that were seen."""
        return set(self._entries)

    def copies(
        self, done: dict[RelPath, Entry], target: Side, *, is_new: bool, dry_run: bool
    ) -> Iterator[dict[str, Any]]:
        """What became of every object that is not done."""
        listed = self._listed(target)
        objects = () if is_new else objects_in(target.spec)
        there: dict[str, tuple[int | None, str | None]] = {rel: (size, tag) for rel, size, tag, _ in objects}
        fresh = [(rel, row) for rel, row in self._entries.items() if not _is_done(row, done.get(RelPath(rel)))]
        gathered = are_short(self._looked.size_bytes, self._looked.objects)
        how = Copying(
            source=self._source,
            target=None if is_new else target.spec,
            at_once=SyncSettings().pushes_at_once(are_short=gathered),
            gathered=gathered,
            dry_run=dry_run,
        )
        rows = (
            dict(zip(_NAMES, (*row, *there.get(rel, (None, None)), True if rel in listed else None), strict=True))
            for rel, row in fresh
        )
        return counted(copy_here(rows, how), len(fresh))

    def _listed(self, target: Side) -> _Entries:
        """What the index of the target lists; refuse one that has data of its own."""
        if target.spec.is_directory:
            return {}
        view = look_at_index(open_spec(target.spec))
        check_understood(view)
        if view.form == "none":
            return {}
        listed, odd = _taken(_rows(target.spec, view))
        if odd is not None:
            raise damaged("target", *odd)
        for rel, theirs in listed.items():
            ours = self._entries.get(rel)
            if ours is None or not _agree(ours, theirs):
                raise occupied(target, rel)
        return listed


def _rows(spec: StoreSpec, view: IndexView | None) -> Iterator[EntryRow]:
    if view is not None:
        yield from entry_rows(spec, view)
        return
    for rel, size, _, _ in objects_in(spec):
        if rel.split("/")[0] in DATASTORE_SUBDIRS:
            yield rel, None, size, None, None, None, None, None


def _taken(rows: Iterable[EntryRow]) -> tuple[_Entries, _Odd]:
    entries: _Entries = {}
    odd: list[tuple[str, str]] = []
    for row in rows:
        rel, partition, damage = row[0], row[1], row[-1]
        if damage is not None and damage != UNLISTED:
            odd.append((rel or partition or "", damage))
        if rel is not None:
            entries[rel] = row
    return entries, min(odd, default=None)


def _agree(ours: EntryRow, theirs: EntryRow) -> bool:
    """Whether two indexes may mean the same bytes: what one does not know does not speak against it."""
    one, other = ours[_SHA256], theirs[_SHA256]
    return ours[_SIZE] == theirs[_SIZE] and (one is None or other is None or one == other)


def _is_done(row: EntryRow, entry: Entry | None) -> bool:
    """Whether that is what the source has, as far as its index tells: without a hash, the time must be the same."""
    if entry is None or row[_MODIFIED] is None:
        return False
    is_same = (row[_SIZE], row[_MODIFIED]) == (entry.size_bytes, entry.last_modified)
    return is_same and row[_SHA256] in (None, entry.sha256)
