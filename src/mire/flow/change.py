"""Looking for changes in the cache: at what is marked, or at everything when nobody knows.

Owns: which paths are looked at, and which marks were looked at completely.
Must not know: the remote, what is done about a change.
Keeps: what somebody is writing is left for later, with its mark; nothing is told to be removed unless it was looked at
twice and nothing on the way failed; memory does not grow with the cache.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal

from mire.edge import clock
from mire.edge.base import RawRow, numbers_in, row_of
from mire.edge.files import list_dir
from mire.edge.state import State
from mire.edge.tree import Tree, Trouble, hash_file
from mire.flow.datastore import Datastore
from mire.flow.mark import open_cache_state
from mire.model.base import BaseRow
from mire.model.mark import MarkKind, Pending
from mire.model.names import is_namespace
from mire.model.row import FileIdentity
from mire.plan.change import Numbers, absent_of, change_of, is_untouched, paired
from mire.plan.mark import is_at_or_below, tops_of
from mire.wire.relpath import check_rel, has_tier, is_internal, is_temporary

_PASSING: Final = frozenset(("unreadable", "vanished"))
"""Troubles that may be over next time; links and odd names stay, and are told, but hold no mark back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """One path of the cache as it is now, beside what was agreed on; without a namespace."""

    rel: str
    here: Literal["same", "changed", "hash", "removed", "missing"]
    """`hash`: ask `resolved`. `removed`: certainly gone, and somebody recorded that. `missing`: just not here."""
    file: FileIdentity | None
    base: BaseRow | None
    is_marked: bool
    sha256: str | None = None


class Look:
    """A look at the cache; iterate it once, then ask what of it was complete."""

    def __init__(self, ds: Datastore, state: State, pending: Pending, *, is_full: bool) -> None:
        self.looked_ns = clock.now_ns()
        """When the look began: no file given out was looked at earlier."""
        self._state = state
        named = [(rel_of(ds, mark.path), mark) for mark in pending.records]
        # A mark of our whole part says no more than a bulk mark: nothing below it is recorded by path.
        self._whole = [mark.path for rel, mark in named if rel == ""]
        strange = {rel for rel, _ in named if rel and (is_internal(rel) or is_other_tenant(ds, rel.partition("/")[0]))}
        self._elsewhere = [mark.path for rel, mark in named if rel is None or rel in strange]
        self._marks = {rel: mark for rel, mark in named if rel and rel not in strange}
        self._open = frozenset(rel for rel, mark in self._marks.items() if mark.is_open)
        self.is_full = is_full or bool(self._whole)
        self._tree = Tree(ds.tier, _skipping(ds), check_rel)
        self._troubled: set[str] = set()
        self._counted = 0
        self._unsure: set[str] = set()
        self._gone: dict[str, bool] = {}

    @property
    def troubles(self) -> list[Trouble]:
        """What could not be looked at, so far; paths are without a namespace."""
        return self._tree.troubles

    @property
    def is_complete(self) -> bool:
        """Whether everything was looked at, and nothing on the way failed: then a bulk mark is acknowledged."""
        return self.is_full and not self._unsure and not any(each.kind in _PASSING for each in self.troubles)

    def leave(self, rel: str) -> None:
        """Say that a path was given out and could not be dealt with: its marks stay."""
        self._unsure.add(rel)

    def is_removed(self, rel: str) -> bool:
        """Whether a path is marked and certainly gone, although nothing was agreed on about it; ask afterwards."""
        if self._kind_at(rel) is None or is_at_or_below(rel, self._open):
            return False
        return not is_at_or_below(rel, {each.path for each in self.troubles}) and self._tree.is_absent(rel)

    def settled(self) -> list[str]:
        """The marks, by path in the cache, of which everything was given out, and nothing was left."""
        failed = self._unsure | {each.path for each in self.troubles if each.kind in _PASSING}
        above = {top for path in failed for top in tops_of(path)}
        tops = failed | self._open
        settled = (mark.path for rel, mark in self._marks.items() if rel not in above and not is_at_or_below(rel, tops))
        return [*self._elsewhere, *(self._whole if self.is_complete else ()), *settled]

    def __iter__(self) -> Iterator[Local]:
        """What is marked, and whatever else is not certainly as agreed."""
        for rel, file, raw in self._pairs():
            if self._open and is_at_or_below(rel, self._open):
                continue
            kind = self._kind_at(rel)
            if kind is None and file is not None and raw is not None:
                agreed, looked_ns = numbers_in(raw)
                if is_untouched(file, agreed, looked_ns, self.looked_ns):
                    continue
            base = None if raw is None else row_of(raw)
            if file is not None:
                yield self._present(rel, FileIdentity(*file), base, is_marked=kind is not None)
            elif base is not None and self._is_surely_absent(rel, kind):
                here = absent_of(base, kind, is_top_gone=kind is not None and self._is_top_gone(rel))
                yield Local(rel=rel, here=here, file=None, base=base, is_marked=kind is not None)

    def _present(self, rel: str, file: FileIdentity, base: BaseRow | None, *, is_marked: bool) -> Local:
        change = change_of(file, base, now_ns=self.looked_ns, is_marked=is_marked)
        return Local(rel=rel, here=change, file=file, base=base, is_marked=is_marked)

    def _pairs(self) -> Iterator[tuple[str, Numbers | None, RawRow | None]]:
        if self.is_full:
            yield from paired(self._tree.files(), self._state.raw_base())
            return
        tops = [rel for rel in self._marks if not any(top in self._marks for top in tops_of(rel) if top != rel)]
        for top in sorted(tops):
            yield from paired(self._tree.files(top), self._state.raw_base(top))

    def _kind_at(self, rel: str) -> MarkKind | None:
        if not self._marks:
            return None
        kinds = [self._marks[top].kind for top in tops_of(rel) if top in self._marks]
        return None if not kinds else "remove" if "remove" in kinds else kinds[0]

    def _is_surely_absent(self, rel: str, kind: MarkKind | None) -> bool:
        self._troubled.update(each.path for each in self.troubles[self._counted :])
        self._counted = len(self.troubles)
        if self._troubled and is_at_or_below(rel, self._troubled):
            return False
        if kind is None or self._tree.is_absent(rel):
            return True
        self._unsure.add(rel)
        return False

    def _is_top_gone(self, rel: str) -> bool:
        for top in tops_of(rel):
            if top != rel and top in self._marks:
                if top not in self._gone:
                    self._gone[top] = self._tree.is_absent(top)
                if self._gone[top]:
                    return True
        return False


@contextmanager
def open_look(ds: Datastore, pending: Pending, *, is_full: bool | None = None) -> Iterator[Look]:
    """A look at what is marked, or at everything when that is what the marks say (or `is_full`)."""
    wanted = pending.is_bulk or not pending.is_known if is_full is None else is_full
    with open_cache_state(ds) as state:
        yield Look(ds, state, pending, is_full=wanted)


def resolved(ds: Datastore, local: Local) -> Local:
    """The same with `here` decided by the content, where only that can tell; raises when it cannot be read."""
    if local.here != "hash" or local.base is None:
        return local
    found = hash_file(os.path.join(ds.tier, local.rel))
    is_same = (found.sha256, found.file.size_bytes) == (local.base.sha256, local.base.size_bytes)
    return replace(local, here="same" if is_same else "changed", file=found.file, sha256=found.sha256)


def rel_of(ds: Datastore, path: str) -> str | None:
    """A path of the cache without our namespace: empty for all of our part, None when it is not ours."""
    namespace = ds.config.namespace
    if not namespace:
        return path
    if path == namespace:
        return ""
    return path.removeprefix(f"{namespace}/") if path.startswith(f"{namespace}/") else None


def path_in_cache(ds: Datastore, rel: str) -> str:
    """The path of the cache that marks use, of one without a namespace."""
    return f"{ds.config.namespace}/{rel}" if ds.config.namespace else rel


def _skipping(ds: Datastore) -> Callable[[str], bool]:
    """What no client syncs, and whatever looks like the part of another tenant."""
    return lambda rel: is_internal(rel) or is_temporary(rel) or is_other_tenant(ds, rel)


def is_other_tenant(ds: Datastore, rel: str) -> bool:
    """Whether a name at the root of our part is the directory of another tenant: its files are not ours to sync."""
    if "/" in rel or not is_namespace(rel) or rel in ds.config.directories:
        return False
    return rel == ds.config.namespace or has_tier(entry.name for entry in list_dir(f"{ds.tier}/{rel}"))
