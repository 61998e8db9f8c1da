"""Pulling: the cache comes to agree with the index.

Owns: what is brought, replaced and removed in the cache.
Must not know: how the index is read, how files get into their places.
Keeps: a pull writes nothing remote; a path that could not be dealt with is looked at again, even if the index does not
move. The number it reports is exactly the files written and removed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from mire.errors import MireError, NotFoundError
from mire.flow.apply import Action, Pulled, Step, bring, let_go
from mire.flow.catalog import note_paths
from mire.flow.conflict import Conflict, drop_kept, keep_theirs, why_of
from mire.flow.datastore import Datastore
from mire.flow.deleted import Deleted, load_deleted, repeat_deletions
from mire.flow.delta import Delta, now_ms
from mire.flow.local import Here, agreed_row, entry_of, here_of, is_open_at, load_marks
from mire.flow.place import Place, open_place
from mire.flow.publish import is_published
from mire.flow.said import is_ours
from mire.flow.scoped import read_models
from mire.flow.sidecar import update_sidecar
from mire.flow.startover import offer_again
from mire.flow.whole import read_changes
from mire.model.artifact import ModelRef
from mire.model.base import BaseRow
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.plan.lazy import is_left_out
from mire.plan.threeway import plan_pull_of
from mire.wire.layout import model_dir

__all__ = ["Conflict", "Pulled", "bring_content", "pull"]

_BATCH: Final = 500
_LAZY: Final = "lazy"
"""The fact that content was left out, and not all of it was brought since."""
_ROUNDS: Final = 3
"""Times an index is read again because objects were being replaced while it was dealt with."""


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
    is_full = full or not ds.sync.is_lazy
    with open_place(ds) as place:
        _follow(place, models, done, full=is_full, theirs=theirs)
        if is_full:
            _hydrate_rest(place, models, done)
        if not dry_run and not models:
            place.state.set_facts({"pulled_ms": now_ms()})
    if not dry_run:
        note_paths(ds, [*done.written, *done.removed])
    return done


def _follow(place: Place, models: Sequence[ModelRef], done: Pulled, *, full: bool, theirs: bool) -> None:
    """Deal with what the index says, and once more with what moved on meanwhile."""
    for _ in range(_ROUNDS):
        delta = read_models(place, models) if models else read_changes(place)
        if delta is None or _is_no_news(delta, done):
            return
        delta.leave_others(place.ds.config.directories)
        done.notes = delta.findings
        done.begin_again(delta.entries)
        if delta.is_gone and not done.is_dry_run:
            offer_again(place)
        _deal_with(place, delta, done, full=full, theirs=theirs)
        if done.is_dry_run:
            return
        delta.remember(place, done.unsettled)
        if not done.in_flight:
            return


def _is_no_news(delta: Delta, done: Pulled) -> bool:
    """Whether the index still says of objects that are being replaced what it said a moment ago."""
    return bool(done.in_flight) and all(delta.entries.get(rel) == entry for rel, entry in done.in_flight.items())


def _deal_with(place: Place, delta: Delta, done: Pulled, *, full: bool, theirs: bool) -> None:
    rels, deleted = iter(sorted(delta.entries)), load_deleted(place)
    while batch := list(islice(rels, _at_a_time(place))):
        steps = list(_planned(place, batch, delta, done, full=full, theirs=theirs, deleted=deleted))
        if done.is_dry_run:
            done.written += [step.rel for step in steps if step.action == "download"]
            done.removed += [step.rel for step in steps if step.action == "remove"]
            done.conflicts += [
                Conflict(rel=step.rel, why=why_of(step.here.state, step.entry))
                for step in steps
                if step.action == "conflict"
            ]
        else:
            _carry_out(place, steps, done)


def _at_a_time(place: Place) -> int:
    return _BATCH if place.ds.carrier is None else place.ds.carrier.at_a_time


def _planned(
    place: Place,
    rels: Iterable[RelPath],
    delta: Delta,
    done: Pulled,
    *,
    full: bool,
    theirs: bool,
    deleted: Mapping[RelPath, Deleted],
) -> Iterator[Step]:
    marks = load_marks(place)
    rows = place.state.base_of(rels)
    for rel in rels:
        row, entry = rows.get(rel), delta.entries[rel]
        if is_open_at(place.ds, rel, marks):
            done.leave(rel, "is left alone: it is being written here")
            continue
        try:
            base = None if row is None else entry_of(row)
            here = here_of(place.ds, rel, row, marks, needs_hash=entry is not None)
        except MireError as error:
            done.leave(rel, f"is left alone: {error.message}")
            continue
        action: Action = plan_pull_of(here.state, base, entry, here.value)
        if action == "conflict" and is_ours(place, rel, entry):
            action = plan_pull_of(here.state, entry, entry, here.value)
        if is_published(place.ds, rel):
            action = _derived(action, here, entry, full=full)
        is_won = action == "conflict" and theirs
        if is_won:
            action = "remove" if entry is None else "download"
        if action == "download" and here.state == "missing":
            action = _instead(rel, row, entry, deleted, full=full)
            done.left_out += action == "note"
        if action != "nothing":
            yield Step(
                rel=rel,
                action=action,
                entry=entry,
                here=here,
                generation=marks.generation,
                partition=delta.origins.get(rel),
                is_ours_kept=is_won,
            )


def _instead(
    rel: RelPath, row: BaseRow | None, entry: Entry | None, deleted: Mapping[RelPath, Deleted], *, full: bool
) -> Action:
    """What is done about a file that is not here, if it is not brought now."""
    gone = deleted.get(rel) if row is None else None
    if gone is not None and entry is not None and gone.is_undone_by(entry):
        return "repeat"
    return "note" if not full and is_left_out(rel) else "download"


def _derived(action: Action, here: Here, entry: Entry | None, *, full: bool) -> Action:
    """What is done about our own published catalog: the next push composes it anew, so no copy of it is worth keeping.

    It is not brought unless everything is: whoever publishes fetches it then.
    """
    if action == "conflict":
        action = "nothing" if entry is None else "download"
    if action != "download" or full:
        return action
    return "note" if here.state == "missing" else "nothing"


def _carry_out(place: Place, steps: Sequence[Step], done: Pulled) -> None:
    """Do what was planned for some paths; what fails is told, and its path stays as it is."""
    if any(step.action == "note" for step in steps):
        _show_lazy(place, is_lazy=True)
    place.state.agree([_agreed(step) for step in steps if step.action in ("note", "agree")])
    place.state.forget([step.rel for step in steps if step.action == "forget"])
    bring(place, [step for step in steps if step.action == "download"], done)
    let_go(place, [step for step in steps if step.action == "remove"], done)
    repeat_deletions(place, [step for step in steps if step.action == "repeat"], done)
    for step in steps:
        if step.action == "conflict":
            _clash(place, step, done)


def _agreed(step: Step) -> BaseRow:
    assert step.entry is not None  # noqa: S101 - by the plan
    sha256 = None if step.here.value is None else step.here.value.sha256
    return agreed_row(
        step.rel,
        step.entry,
        step.here.identity,
        looked_ns=step.here.looked_ns,
        sha256=sha256,
        partition=step.partition,
    )


def _clash(place: Place, step: Step, done: Pulled) -> None:
    """Leave ours in its place, and put theirs beside the cache; the same bytes are no conflict."""
    why, kept = why_of(step.here.state, step.entry), None
    if step.entry is not None:
        try:
            kept = keep_theirs(place, step.rel, step.entry)
        except NotFoundError:
            done.in_flight[step.rel] = step.entry
        except MireError as error:
            why = f"{why}; theirs could not be kept: {error.message}"
    if kept is not None and step.here.value is not None and step.here.value.sha256 == kept.sha256:
        place.state.agree([_agreed(step)])
        drop_kept(place, step.rel, kept.sha256)
    else:
        done.conflicts.append(Conflict(rel=step.rel, why=why, theirs=None if kept is None else kept.path))


def _show_lazy(place: Place, *, is_lazy: bool) -> None:
    """Tell others who use this cache that files are missing on purpose: they might take them for deleted."""
    if (place.state.fact(_LAZY) is not None) != is_lazy:
        update_sidecar(place.ds, place.state, lambda sidecar: replace(sidecar, lazy_pull_active=is_lazy))
        place.state.set_facts({_LAZY: "1" if is_lazy else None})


def _hydrate_rest(place: Place, models: Sequence[ModelRef], done: Pulled) -> None:
    """Bring the content that was left out so far."""
    if place.state.fact(_LAZY) is None:
        return
    rows = [row for model in models for row in place.state.base_below(model_dir(model)) if row.identity is None]
    bring_content(place, [RelPath(row.rel) for row in (rows if models else place.state.unhydrated())], done)
    if not done.is_dry_run and not models and next(place.state.unhydrated(), None) is None:
        _show_lazy(place, is_lazy=False)


def bring_content(place: Place, rels: Iterable[RelPath], done: Pulled) -> None:
    """Bring the agreed content of some paths that is not here, and only that."""
    marks = load_marks(place)
    remaining = iter(rels)
    while batch := list(islice(remaining, _at_a_time(place))):
        steps = []
        for text, row in place.state.base_of(batch).items():
            rel, entry = RelPath(text), entry_of(row)
            try:
                here = here_of(place.ds, rel, row, marks, needs_hash=False)
            except MireError as error:
                done.leave(rel, f"is left alone: {error.message}")
                continue
            if entry is not None and here.state == "missing" and rel not in done.troubles:
                steps.append(Step(rel=rel, action="download", entry=entry, here=here, generation=marks.generation))
        if done.is_dry_run:
            done.written += [step.rel for step in steps]
        else:
            bring(place, steps, done)
