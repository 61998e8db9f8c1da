"""Pulling: the cache comes to agree with the index.

Owns: what is brought, replaced and removed in the cache, and the report.
Must not know: how the index is read, what a file means.
Keeps: a pull writes nothing remote; it never destroys bytes that exist nowhere else; every file it writes has the size
and hash the index says; a local copy goes only with proof that its object is gone. The number it reports is exactly
the files written and removed.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from mire.edge import files, pool, staging, walk
from mire.errors import MireError, NotFoundError, RemoteError, shown
from mire.flow.catalog import note_paths
from mire.flow.datastore import Datastore
from mire.flow.delta import Delta, read_changes, read_models
from mire.flow.local import Here, Marks, agreed_row, entry_of, here_of, load_marks, mark_of, marks_of
from mire.flow.place import Place, open_place
from mire.flow.transfer import download
from mire.model.artifact import ModelRef
from mire.model.base import BaseRow
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.plan.lazy import is_left_out
from mire.plan.threeway import Pull, plan_pull_of
from mire.wire.layout import model_dir

_BATCH = 500
_CONFLICTS = "_index/mire-conflicts"
_STAGING = "_index/mire-staging"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A path that both sides changed: ours stays in place, `theirs` says where the remote's bytes were put."""

    rel: RelPath
    why: str
    theirs: str | None = None


@dataclass(slots=True, kw_only=True)
class Pulled:
    """What a pull did, or would do."""

    written: list[RelPath] = field(default_factory=list)
    removed: list[RelPath] = field(default_factory=list)
    left_out: int = 0
    """Files whose content was left for later."""
    conflicts: list[Conflict] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    is_dry_run: bool = False

    @property
    def count(self) -> int:
        """Files of the cache that were written or removed."""
        return len(self.written) + len(self.removed)

    @property
    def is_whole(self) -> bool:
        """Whether everything the index says was dealt with."""
        return not self.conflicts and not self.findings


Action = Pull | Literal["note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What is to be done about one path."""

    rel: RelPath
    action: Action
    entry: Entry | None
    here: Here
    row: BaseRow | None
    generation: int
    """The marks that were considered: a newer one means that somebody came in between."""


def pull(
    ds: Datastore,
    *,
    models: Sequence[ModelRef] = (),
    full: bool = False,
    theirs: bool = False,
    dry_run: bool = False,
) -> Pulled:
    """Bring the cache in step with the remote, wholly or for some models.

    `full` brings content too; `theirs` lets the remote win where both sides changed, and keeps ours beside the cache.
    """
    done = Pulled(is_dry_run=dry_run)
    with open_place(ds) as place:
        delta = read_models(place, models) if models else read_changes(place)
        if delta is not None:
            done.findings += delta.findings
            _deal_with(place, delta, done, full=full, theirs=theirs)
        if full:
            _hydrate_rest(place, models, done)
        if delta is not None and not dry_run and not models and done.is_whole:
            delta.remember(place)
    if not dry_run:
        note_paths(ds, [*done.written, *done.removed])
    return done


def _deal_with(place: Place, delta: Delta, done: Pulled, *, full: bool, theirs: bool) -> None:
    rels = iter(sorted(delta.entries))
    while batch := list(islice(rels, _BATCH)):
        steps = list(_planned(place, batch, delta, done, full=full, theirs=theirs))
        if done.is_dry_run:
            done.written += [step.rel for step in steps if step.action == "download"]
            done.removed += [step.rel for step in steps if step.action == "remove"]
        else:
            _carry_out(place, steps, done)


def _planned(
    place: Place, rels: Iterable[RelPath], delta: Delta, done: Pulled, *, full: bool, theirs: bool
) -> Iterator[_Step]:
    marks = load_marks(place)
    rows = place.state.base_of(rels)
    for rel in rels:
        row, entry = rows.get(rel), delta.entries[rel]
        try:
            base = None if row is None else entry_of(row)
            here = here_of(place.ds, rel, row, marks, needs_hash=entry is not None)
        except MireError as error:
            done.findings.append(f"{shown(rel)} is left alone: {error.message}")
            continue
        action: Action = plan_pull_of(here.state, base, entry, here.value)
        if action == "conflict" and theirs:
            action = "remove" if entry is None else "download"
        if action == "download" and here.state == "missing" and not full and is_left_out(rel):
            done.left_out += 1
            action = "note"
        if action != "nothing":
            yield _Step(rel=rel, action=action, entry=entry, here=here, row=row, generation=marks.generation)


def _carry_out(place: Place, steps: Sequence[_Step], done: Pulled) -> None:
    """Do what was planned for some paths; what fails is told, and its path stays as it is."""
    settled: list[BaseRow] = []
    forgotten: list[RelPath] = []
    for step in steps:
        match step.action:
            case "note" | "agree":
                assert step.entry is not None  # noqa: S101 - by the plan
                settled.append(agreed_row(step.rel, step.entry, step.here.identity))
            case "forget":
                forgotten.append(step.rel)
            case _:
                pass
    place.state.agree(settled)
    place.state.forget(forgotten)
    _bring(place, [step for step in steps if step.action == "download"], done)
    _let_go(place, [step for step in steps if step.action == "remove"], done)
    for step in steps:
        if step.action == "conflict":
            done.conflicts.append(_keep_both(place, step))


def _bring(place: Place, steps: Sequence[_Step], done: Pulled) -> None:
    """Download, then put every file that came whole into its place, and remember it."""
    directory = os.path.join(place.ds.base, _STAGING)
    files.make_dirs(directory)

    def fetch(step: _Step) -> str | MireError:
        assert step.entry is not None  # noqa: S101 - by the plan
        try:
            return download(place.remote, step.rel, step.entry, directory)
        except MireError as error:
            if isinstance(error, RemoteError) and not error.transient and error.kind != "mismatch":
                raise
            return error

    arrived: list[tuple[_Step, str]] = []
    try:
        for step, result in pool.run(fetch, steps, at_once=place.ds.sync.pull_concurrency):
            if isinstance(result, str):
                arrived.append((step, result))
            else:
                done.findings.append(_not_brought(step.rel, result))
        _put_in_place(place, arrived, done)
    finally:
        for _, temporary in arrived:
            staging.discard(temporary)


def _not_brought(rel: RelPath, error: MireError) -> str:
    if isinstance(error, NotFoundError):
        return f"{shown(rel)} is in the index, but its object is not there: 'mire verify' shows what can be done"
    return f"{shown(rel)} was not brought: {error.message}"


def _put_in_place(place: Place, arrived: Sequence[tuple[_Step, str]], done: Pulled) -> None:
    rows: list[BaseRow] = []
    directories: set[str] = set()
    # A writer marks before it writes, and marking waits for this transaction: nobody begins in between.
    with place.state.transaction():
        marks = marks_of(place.state.pending())
        for step, temporary in arrived:
            path = os.path.join(place.ds.tier, step.rel)
            try:
                reason = _why_not(place, step, path, marks)
                if reason is not None:
                    done.findings.append(f"{shown(step.rel)} is left alone: {reason}")
                    continue
                staging.put_in_place(temporary, path)
            except MireError as error:
                done.findings.append(f"{shown(step.rel)} was not written: {error.message}")
                continue
            directories.add(os.path.dirname(path))
            assert step.entry is not None  # noqa: S101 - by the plan
            rows.append(agreed_row(step.rel, step.entry, walk.identity_at(path)))
            done.written.append(step.rel)
    staging.sync_dirs(directories)
    place.state.agree(rows)


def _why_not(place: Place, step: _Step, path: str, marks: Marks) -> str | None:
    """Why a file must not be replaced or removed after all: somebody came in between."""
    mark = mark_of(place.ds, step.rel, marks)
    if mark is not None and mark.generation > step.generation:
        return "it is being changed here"
    files.check_inside(path, place.ds.tier)
    if walk.identity_at(path) != step.here.identity:
        return "it changed here a moment ago"
    return None


def _let_go(place: Place, steps: Sequence[_Step], done: Pulled) -> None:
    """Remove local copies whose objects are gone from the remote, each with its own proof."""

    def is_gone(step: _Step) -> bool:
        try:
            place.remote.head(step.rel)
        except NotFoundError:
            return True
        return False

    proven: list[_Step] = []
    for step, gone in pool.run(is_gone, steps, at_once=place.ds.sync.pull_concurrency):
        if gone:
            proven.append(step)
        else:
            done.findings.append(
                f"{shown(step.rel)} is no longer in the index, but its object is there: the copy here is kept;"
                " 'mire verify' shows what can be done"
            )
    removed: list[RelPath] = []
    with place.state.transaction():
        marks = marks_of(place.state.pending())
        for step in proven:
            path = os.path.join(place.ds.tier, step.rel)
            try:
                reason = _why_not(place, step, path, marks)
                if reason is None:
                    files.remove_file(path)
                    removed.append(step.rel)
                    continue
            except MireError as error:
                reason = error.message
            done.findings.append(f"{shown(step.rel)} was not removed: {reason}")
    place.state.forget(removed)
    done.removed += removed
    _tidy(place, removed)


def _tidy(place: Place, removed: Iterable[RelPath]) -> None:
    """Remove directories that became empty, but never one of the tier's own."""
    for rel in removed:
        parts = rel.split("/")[:-1]
        files.remove_empty([os.path.join(place.ds.tier, *parts[:end]) for end in range(2, len(parts) + 1)])


def _keep_both(place: Place, step: _Step) -> Conflict:
    """Leave ours in its place, and put theirs beside the cache where it can be looked at."""
    if step.entry is None:
        return Conflict(rel=step.rel, why="changed here, removed there")
    why = "removed here, changed there" if step.here.state == "removed" else "changed here and there"
    theirs = os.path.join(place.ds.base, _CONFLICTS, step.rel)
    try:
        files.make_dirs(os.path.dirname(theirs))
        files.move_file(download(place.remote, step.rel, step.entry, os.path.dirname(theirs)), theirs)
    except MireError:
        return Conflict(rel=step.rel, why=why)
    return Conflict(rel=step.rel, why=why, theirs=theirs)


def _hydrate_rest(place: Place, models: Sequence[ModelRef], done: Pulled) -> None:
    """Bring the content that was left out so far."""
    below = tuple(f"{model_dir(model)}/" for model in models)
    rels = [RelPath(row.rel) for row in place.state.unhydrated() if not below or row.rel.startswith(below)]
    bring_content(place, rels, done)


def bring_content(place: Place, rels: Iterable[RelPath], done: Pulled) -> None:
    """Bring the agreed content of some paths that is not here, and only that."""
    marks = load_marks(place)
    remaining = iter(rels)
    while batch := list(islice(remaining, _BATCH)):
        steps = []
        for rel, row in place.state.base_of(batch).items():
            entry = entry_of(row)
            here = here_of(place.ds, RelPath(rel), row, marks, needs_hash=False)
            if entry is not None and here.state == "missing":
                action: Action = "download"
                steps.append(
                    _Step(rel=RelPath(rel), action=action, entry=entry, here=here, row=row, generation=marks.generation)
                )
        if done.is_dry_run:
            done.written += [step.rel for step in steps]
        else:
            _bring(place, steps, done)
