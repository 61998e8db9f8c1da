"""The copying of a migration: everything the source has, until it says nothing new.

Owns: in how many rounds it is copied, what is done already, and the numbers.
Must not know: where the stores are read and the objects copied, what makes the copies count.
Keeps: nothing is copied into a store with data of somebody else, and nothing that its index describes is replaced; the
source is only read, and an object that is not as its index says is damage only if that index is still the same; what a
run that died left is verified and used; the index and the listing are each read once in a round.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from mire.edge import clock
from mire.errors import ConflictError, FormatError, MireError, RemoteError, shown
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.pipeline.sides import Side
from mire.pipeline.stages.transfer import error_in
from mire.pipeline.store import StoreSpec, open_spec
from mire.pipeline.view import IndexView, look_at_index

_ROUNDS: Final = 3
"""Times what was published at the source meanwhile is brought, too."""
_LEFT_OUT_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What was moved, or would be."""

    source: str
    target: str
    objects: int
    size_bytes: int
    copied: int
    there: int
    """Objects that were in the target already: left by a run that died, and verified."""
    left_out: tuple[str, ...] = ()
    """Paths that no index can list, or that are in the part of somebody else."""
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What the source has, as it was looked at."""

    objects: int
    size_bytes: int
    view: IndexView | None
    """The index that says so; None of a directory, which has none."""
    damage: FormatError | None
    """What is wrong with that index, or was while it was read."""


class Round(Protocol):
    """One look at a source, and the copying of what was seen: in tasks of Spark, or by this process."""

    def look(self, source: StoreSpec) -> Looked:
        """Read what the source has: by its index, or (a directory) by what is in it."""

    def rels(self) -> set[str]:
        """The paths that were seen."""

    def copies(
        self, done: dict[RelPath, Entry], target: Side, *, is_new: bool, dry_run: bool
    ) -> Iterator[dict[str, Any]]:
        """What became of every object that is not done, a row of `MOVED` each; `is_new`: there is no target yet."""


OpenRound = Callable[[], AbstractContextManager[Round]]


@dataclass(slots=True)
class _Done:
    """What became of every object so far."""

    entries: dict[RelPath, Entry]
    copied: set[RelPath]
    left_out: list[str]

    def take(self, rows: Iterable[dict[str, Any]]) -> MireError | None:
        """Note what rows say; the first error of one."""
        trouble: MireError | None = None
        for row in rows:
            rel = RelPath(row["rel"])
            error = error_in(row)
            if error is not None:
                trouble = trouble or error
                self.entries.pop(rel, None)  # what was copied in an earlier round is not what the source has now
            elif row["outcome"] == "left_out":
                self.left_out.append(rel)
            else:
                self.entries[rel] = _entry(row)
                if row["outcome"] == "copied":
                    self.copied.add(rel)
        return trouble

    def told(self, source: Side, target: Side, *, is_dry_run: bool) -> Moved:
        copied = len(self.copied & self.entries.keys())
        return Moved(
            source=source.name,
            target=target.name,
            objects=len(self.entries),
            size_bytes=sum(entry.size_bytes for entry in self.entries.values()),
            copied=copied,
            there=len(self.entries) - copied,
            left_out=tuple(sorted(self.left_out)[:_LEFT_OUT_MAX]),
            is_dry_run=is_dry_run,
        )


def plan_all(open_round: OpenRound, source: Side, target: Side, *, is_new: bool) -> Moved:
    """What `copy_all` would do; `is_new`: the target is not there yet."""
    done = _Done({}, set(), [])
    with open_round() as a_round:
        looked = a_round.look(source.spec)
        if looked.damage is not None:
            raise looked.damage
        trouble = done.take(a_round.copies({}, target, is_new=is_new, dry_run=True))
    if trouble is not None:
        raise _told(trouble, source)
    return done.told(source, target, is_dry_run=True)


def copy_all(open_round: OpenRound, source: Side, target: Side) -> tuple[dict[RelPath, Entry], Moved]:
    """Copy until the source says nothing new; what every object is, and the numbers."""
    done = _Done({}, set(), [])
    for _ in range(_ROUNDS):
        done.left_out = []
        with open_round() as a_round:
            looked = a_round.look(source.spec)
            trouble: MireError | None = looked.damage
            if trouble is None:
                if done.entries:
                    found = a_round.rels()
                    done.entries = {rel: entry for rel, entry in done.entries.items() if rel in found}
                trouble = done.take(a_round.copies(done.entries, target, is_new=False, dry_run=False))
        if source.spec.is_directory or look_at_index(open_spec(source.spec)) == looked.view:
            if trouble is not None:
                raise _told(trouble, source)
            return done.entries, done.told(source, target, is_dry_run=False)
    raise RemoteError(
        f"{source.name} was changed again and again while it was copied: nothing was switched; run again when less is"
        " written there",
        transient=True,
        kind="torn",
    )


def damaged(whose: str, what: str, damage: str) -> FormatError:
    """What to say of an index that cannot be followed."""
    return FormatError(
        f"the index of the {whose} is damaged at {shown(what)} ({damage}): 'mire repair' or 'mire index rebuild' there"
        " first",
        kind="damaged_index",
    )


def occupied(target: Side, rel: str) -> ConflictError:
    """What to say of a target that has data of its own: two stores are not mixed."""
    return ConflictError(
        f"{target.name} already has data of its own, for example {shown(rel)}, which is not what the source has: name"
        " an empty store, or a namespace with --to-namespace",
        kind="target_in_use",
    )


def _told(error: MireError, source: Side) -> MireError:
    return type(error)(
        f"{error.message}; nothing was switched, and {source.name} is as it was: run again to go on", kind=error.kind
    )


def _entry(row: dict[str, Any]) -> Entry:
    """The entry in the target: what the source says of the object, with the hash that was verified."""
    extra = {} if row["extra"] is None else json.loads(row["extra"])
    extra.pop("key", None)
    return Entry(
        size_bytes=row["size_bytes"],
        last_modified=row["last_modified"] or clock.now_instant(),
        local_mtime=row["local_mtime"],
        sha256=row["sha256"],
        extra=extra,
    )
