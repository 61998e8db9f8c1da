"""Putting files of a pull into their places, and taking away what is gone.

Owns: the steps of a pull, how they are carried out in the cache, and the report.
Must not know: how the index is read, why a step was planned.
Keeps: bytes that exist nowhere else are never destroyed; a file is replaced only as it was when that was decided; a
local copy goes only with proof that its object is gone; whoever begins to write meanwhile is left alone.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from mire.edge import clock, files, pool, staging, walk
from mire.edge.files import Written
from mire.edge.remote import Remote
from mire.errors import DeniedError, FormatError, InputError, MireError, NotFoundError, RemoteError, shown
from mire.flow.conflict import Conflict, drop_kept, keep_ours, why_of
from mire.flow.local import Here, Marks, agreed_row, mark_of, marks_of
from mire.flow.place import Place, staging_dir
from mire.flow.transfer import are_short, download
from mire.model.base import BaseRow
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.plan.threeway import Pull

Action = Pull | Literal["note", "repeat"]
"""`note`: agree on content that is left at the remote; `repeat`: delete once more what we deleted."""


@dataclass(slots=True, kw_only=True)
class Pulled:
    """What a pull did, or would do."""

    written: list[RelPath] = field(default_factory=list)
    removed: list[RelPath] = field(default_factory=list)
    left_out: int = 0
    """Files whose content was left for later."""
    conflicts: list[Conflict] = field(default_factory=list)
    resolved: list[Conflict] = field(default_factory=list)
    """Conflicts in which the remote won, with the place where our version is kept."""
    repeated: list[Conflict] = field(default_factory=list)
    """Deletions of ours that somebody undid, and the next push repeats; with the place where the file is kept."""
    notes: list[str] = field(default_factory=list)
    troubles: dict[RelPath, str] = field(default_factory=dict)
    """Paths that stayed as they were, and why."""
    in_flight: dict[RelPath, Entry | None] = field(default_factory=dict)
    """Those of them whose object is not what the index said: somebody may be replacing it."""
    is_dry_run: bool = False

    @property
    def count(self) -> int:
        """Files of the cache that were written or removed."""
        return len(self.written) + len(self.removed)

    @property
    def findings(self) -> list[str]:
        """Everything that is worth telling."""
        return [*self.notes, *self.troubles.values()]

    @property
    def is_whole(self) -> bool:
        """Whether everything the index says was dealt with."""
        return not self.conflicts and not self.notes and not self.troubles

    @property
    def unsettled(self) -> set[RelPath]:
        """The paths that were not dealt with."""
        return {*self.troubles, *(conflict.rel for conflict in self.conflicts)}

    def leave(self, rel: RelPath, why: str) -> None:
        """Tell why a path stays as it is."""
        self.troubles[rel] = f"{shown(rel)} {why}"

    def begin_again(self, rels: Iterable[RelPath]) -> None:
        """Forget what was told about paths that are dealt with once more."""
        again = set(rels)
        self.troubles = {rel: why for rel, why in self.troubles.items() if rel not in again}
        self.conflicts = [conflict for conflict in self.conflicts if conflict.rel not in again]
        self.in_flight = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is to be done about one path."""

    rel: RelPath
    action: Action
    entry: Entry | None
    here: Here
    generation: int
    """The marks that were considered: a newer one means that somebody came in between."""
    partition: str | None = None
    is_ours_kept: bool = False
    """Whether the local bytes exist nowhere else, and are kept beside the cache first."""


def bring(place: Place, steps: Sequence[Step], done: Pulled) -> None:
    """Download, then put every file that came whole into its place, and remember it."""
    if not steps:
        return
    directory = staging_dir(place)
    staging.sweep(directory)
    if place.ds.carrier is None:
        _bring(place, steps, directory, done)
        return
    with staging.open_own(directory) as own:
        _bring(place, steps, own, done)


def _bring(place: Place, steps: Sequence[Step], directory: str, done: Pulled) -> None:
    arrived: list[tuple[Step, str, Written]] = []
    failure: RemoteError | None = None
    try:
        try:
            for step, result in _fetched(place, steps, directory):
                if isinstance(result, MireError):
                    done.leave(step.rel, _not_brought(result))
                    done.in_flight[step.rel] = step.entry
                else:
                    arrived.append((step, *result))
        except RemoteError as error:
            failure = error  # what came is kept: the next pull goes on from there
        # By path: the files of a version come before the marker that shows it.
        _put_in_place(place, sorted(arrived, key=lambda each: each[0].rel), done)
    finally:
        for _, temporary, _ in arrived:
            staging.discard(temporary)
    if failure is not None:
        raise failure


def _fetched(
    place: Place, steps: Sequence[Step], directory: str
) -> Iterator[tuple[Step, tuple[str, Written] | MireError]]:
    """What came of every step, in whatever order."""
    by_rel = {step.rel: step for step in steps}
    wanted = {step.rel: step.entry for step in steps if step.entry is not None}
    carrier = place.ds.carrier
    carried = None if carrier is None else carrier.fetch(place, wanted, directory)
    if carried is None:
        fetch = partial(_fetch_one, place, wanted, directory)
        gathered = are_short(sum(entry.size_bytes for entry in wanted.values()), len(wanted))
        carried = pool.run(fetch, wanted, at_once=place.ds.sync.pulls_at_once(are_short=gathered), gathered=gathered)
    return ((by_rel[rel], result) for rel, result in carried)


def _fetch_one(
    place: Place, wanted: Mapping[RelPath, Entry], directory: str, rel: RelPath
) -> tuple[str, Written] | MireError:
    return fetch_one(place.remote, rel, wanted[rel], directory)


def fetch_one(remote: Remote, rel: RelPath, entry: Entry, directory: str) -> tuple[str, Written] | MireError:
    """A file under a temporary name, or what is wrong with its object alone."""
    try:
        return download(remote, rel, entry, directory)
    except (NotFoundError, FormatError, DeniedError, InputError) as error:
        return error
    except RemoteError as error:
        if error.kind != "changed":
            raise
        return error


def _not_brought(error: MireError) -> str:
    if isinstance(error, NotFoundError):
        return "is in the index, but its object is not there: 'mire verify' shows what can be done"
    return f"was not brought: {error.message}"


def _put_in_place(place: Place, arrived: Sequence[tuple[Step, str, Written]], done: Pulled) -> None:
    placed: list[tuple[Step, Written]] = []
    directories: set[str] = set()
    # A writer marks before it writes, and marking waits for this transaction: nobody begins in between.
    with place.state.transaction():
        marks = marks_of(place.state.pending())
        for step, temporary, written in arrived:
            path = os.path.join(place.ds.tier, step.rel)
            try:
                if _stays(place, step, path, marks, done):
                    continue
                directories.update(staging.put_in_place(temporary, path))
            except MireError as error:
                done.leave(step.rel, f"was not written: {error.message}")
                continue
            placed.append((step, written))
        rows = [_placed_row(place, step, written) for step, written in placed]
    staging.sync_dirs(directories)
    place.state.agree(rows)
    for step, written in placed:
        if step.is_ours_kept:
            drop_kept(place, step.rel, written.sha256)
    done.written += [step.rel for step, _ in placed]


def _placed_row(place: Place, step: Step, written: Written) -> BaseRow:
    assert step.entry is not None  # noqa: S101 - by the plan
    looked_ns = clock.now_ns()
    identity = walk.identity_at(os.path.join(place.ds.tier, step.rel))
    return agreed_row(
        step.rel, step.entry, identity, looked_ns=looked_ns, sha256=written.sha256, partition=step.partition
    )


def _stays(place: Place, step: Step, path: str, marks: Marks, done: Pulled) -> bool:
    """Whether a file must not be replaced or removed after all, which is told; else our version is safe."""
    mark = mark_of(place.ds, step.rel, marks)
    if mark is not None and mark.generation > step.generation:
        done.leave(step.rel, "is left alone: it is being changed here")
        return True
    files.check_inside(path, place.ds.tier)
    if walk.identity_at(path) != step.here.identity:
        done.leave(step.rel, "is left alone: it changed here a moment ago")
        return True
    if step.is_ours_kept:
        ours = keep_ours(place, step.rel) if step.here.identity is not None else None
        done.resolved.append(Conflict(rel=step.rel, why=why_of(step.here.state, step.entry), ours=ours))
    return False


def let_go(place: Place, steps: Sequence[Step], done: Pulled) -> None:
    """Remove local copies whose objects are gone from the remote, each with its own proof."""

    def is_gone(step: Step) -> bool:
        try:
            place.remote.head(step.rel)
        except NotFoundError:
            return True
        return False

    proven: list[Step] = []
    for step, gone in pool.run(is_gone, steps, at_once=place.ds.sync.pulls_at_once(are_short=True)):
        if gone:
            proven.append(step)
        else:
            done.leave(
                step.rel,
                "is no longer in the index, but its object is there: the copy here is kept;"
                " 'mire verify' shows what can be done",
            )
            done.in_flight[step.rel] = step.entry
    removed: list[RelPath] = []
    with place.state.transaction():
        marks = marks_of(place.state.pending())
        for step in proven:
            path = os.path.join(place.ds.tier, step.rel)
            try:
                if not _stays(place, step, path, marks, done):
                    files.remove_file(path)
                    removed.append(step.rel)
            except MireError as error:
                done.leave(step.rel, f"was not removed: {error.message}")
    place.state.forget(removed)
    done.removed += removed
    _tidy(place, removed)


def _tidy(place: Place, removed: Iterable[RelPath]) -> None:
    """Remove directories that became empty, but never one of the tier's own."""
    for rel in removed:
        parts = rel.split("/")[:-1]
        files.remove_empty([os.path.join(place.ds.tier, *parts[:end]) for end in range(2, len(parts) + 1)])
