"""Retention: what lifetimes, version policies and holds let go is removed.

Owns: looking at every name, deciding again under the lock, removing, the report.
Must not know: the rules (`plan/retention`).
Keeps: nothing is removed but under the global lock, on a decision made under that lock; `latest` never points
to a version that is gone; dying anywhere leaves each version whole or gone.

Whoever runs it dry sees what a run would do: both come from `decide`, and nothing else decides.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Literal

from mire.edge import clock, files
from mire.errors import LockLostError, MireError
from mire.flow.catalog import note
from mire.flow.datastore import Datastore
from mire.flow.hold import load_holds
from mire.flow.lock import Hold, hold_global
from mire.flow.mark import marking
from mire.flow.read import finished_numbers, load_metadata, look_at_name
from mire.flow.remove import delete
from mire.flow.version import remove_version
from mire.flow.walk import Finding, walk_names
from mire.model.artifact import Metadata, ModelRef
from mire.model.names import DataName
from mire.plan.retention import Facts, Reason, RunRecord, needs_history, plan_retention, run_of
from mire.plan.write import leftover_numbers, published_number
from mire.wire.layout import RAW, RUNS, intent_path, name_dir, run_path

_BATCH = 200
"""Names removed under one global lock: looking takes none, and writers get their turn between two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What goes of one name, or has gone.

    `left-over` are versions that a deletion published as gone but did not live to remove; `orphaned` are those
    of a model without a definition.
    """

    model: ModelRef
    name: DataName
    reason: Reason | Literal["left-over", "orphaned"]
    versions: tuple[int, ...]
    is_whole_name: bool
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run removed, or would remove, and what it left alone for a reason worth telling."""

    decisions: tuple[Decision, ...]
    findings: tuple[Finding, ...]
    is_dry_run: bool

    @property
    def names_removed(self) -> int:
        """Names that are gone with all their versions."""
        return sum(decision.is_whole_name for decision in self.decisions)

    @property
    def versions_removed(self) -> int:
        """Versions a reader saw before and no longer sees."""
        return sum(len(decision.versions) for decision in self.decisions if decision.reason != "left-over")

    @property
    def bytes_reclaimed(self) -> int:
        """Bytes of content."""
        return sum(decision.size_bytes for decision in self.decisions)


Outcome = Decision | Finding
Decide = Callable[[ModelRef, DataName], Iterable[Outcome]]


def retain(ds: Datastore, *, dry_run: bool = False, now: datetime | None = None) -> Report:
    """Remove what retention lets go; a dry run takes no lock and changes nothing."""
    moment = now or clock.now()
    found = plan_retain(ds, now=moment)
    if dry_run:
        return report_of(found)
    return carry_out(ds, found, lambda: lambda model, name: decide(ds, model, name, moment))


def plan_retain(ds: Datastore, *, now: datetime | None = None) -> Iterator[Outcome]:
    """What a run would do, name by name; nothing is collected on the way."""
    moment = now or clock.now()
    return plan_names(ds, None, lambda model, name: decide(ds, model, name, moment))


def plan_names(ds: Datastore, wanted: Iterable[ModelRef] | None, decide_name: Decide) -> Iterator[Outcome]:
    """Decide about every name of all models, or of some; one that fails is a finding."""
    for found in walk_names(ds, wanted):
        if isinstance(found, Finding):
            yield found
        else:
            yield from decided(ds, *found, decide_name)


def decided(ds: Datastore, model: ModelRef, name: DataName, decide_name: Decide) -> list[Outcome]:
    """What goes of one name; a failure, and a rename under way, are findings."""
    try:
        outcomes = list(decide_name(model, name))
        # The next reader or writer of the model finishes or undoes it; a dry run could not say which.
        if outcomes and files.is_file(ds.path_of(intent_path(model))):
            return [Finding(model=model, name=name, message="left alone: a rename in its model is not finished yet")]
    except LockLostError:
        raise
    except MireError as error:
        return [Finding(model=model, name=name, message=error.message)]
    return outcomes


def decide(ds: Datastore, model: ModelRef, name: DataName, now: datetime) -> Iterator[Outcome]:
    """What goes of one name as it is now."""
    state = look_at_name(ds, model, name)
    finished = finished_numbers(ds, model, name, state)
    if left := leftover_numbers(state):
        yield _decision(ds, model, name, "left-over", left)
    if not finished:
        return
    if published_number(state) not in (None, finished[-1]):
        message = f"left alone: 'latest' says version {published_number(state)}, which has no metadata here"
        yield Finding(model=model, name=name, message=message)
        return
    facts = _look(ds, model, name, finished, now)
    retention = plan_retention(facts)
    if retention.warning is not None:
        yield Finding(model=model, name=name, message=retention.warning)
    if retention.reason is not None:
        yield replace(
            _decision(ds, model, name, retention.reason, retention.numbers),
            is_whole_name=retention.is_whole_name,
        )


def _look(ds: Datastore, model: ModelRef, name: DataName, finished: list[int], now: datetime) -> Facts:
    versions: list[Metadata] = []
    damaged: list[str] = []

    def load(number: int) -> Metadata | None:
        try:
            metadata = load_metadata(ds, model, name, number)
        except MireError as error:
            damaged.append(error.message)
            return None
        if metadata is not None:  # else removed by somebody since the directory was listed
            versions.append(metadata)
        return metadata

    latest = load(finished[-1])
    if latest is None:
        return Facts(versions=(), now=now, damaged=tuple(damaged))
    run = run_record(ds, latest)
    if not needs_history(latest, len(finished), run=run, now=now):
        return Facts(versions=(latest,), now=now, run=run)
    for number in finished[:-1]:
        load(number)
    versions.sort(key=lambda version: version.version)
    return Facts(versions=tuple(versions), now=now, holds=load_holds(ds, model, name), run=run, damaged=tuple(damaged))


def run_record(ds: Datastore, latest: Metadata) -> RunRecord:
    """Whether the record of the run that decides about a name is there."""
    ids = run_of(latest)
    # Without the directory every run would look deleted: a share that is not mounted, a tier never used.
    if ids is None or not files.is_dir(ds.path_of(RUNS)):
        return "unknown"
    path = run_path(*ids)
    # `size_of` tells "not there" from "cannot be looked at", which is an error and removes nothing.
    places = (ds.path_of(path), os.path.join(ds.local, path))
    return "there" if any(files.size_of(place) is not None for place in places) else "gone"


def whole_name(ds: Datastore, model: ModelRef, name: DataName) -> Decision | None:
    """The decision to remove everything under a name; None when nothing is there."""
    finished = finished_numbers(ds, model, name, look_at_name(ds, model, name))
    if not finished:
        return None
    return replace(_decision(ds, model, name, "orphaned", tuple(finished)), is_whole_name=True)


def _decision(
    ds: Datastore,
    model: ModelRef,
    name: DataName,
    reason: Reason | Literal["left-over", "orphaned"],
    numbers: tuple[int, ...],
) -> Decision:
    directory = ds.path_of(name_dir(model, name))
    sizes = (files.size_of(os.path.join(directory, str(number), RAW)) or 0 for number in numbers)
    return Decision(model=model, name=name, reason=reason, versions=numbers, is_whole_name=False, size_bytes=sum(sizes))


def carry_out(ds: Datastore, found: Iterator[Outcome], look_again: Callable[[], Decide]) -> Report:
    """Remove what was found, in batches; each name is decided about again once nobody else can write.

    `look_again` is called under each lock that is taken, and gives the function that then decides.
    """
    outcomes: list[Outcome] = []
    while batch := list(islice(found, _BATCH)):
        outcomes += [outcome for outcome in batch if isinstance(outcome, Finding)]
        names = dict.fromkeys((item.model, item.name) for item in batch if isinstance(item, Decision))
        if not names:
            continue
        with hold_global(ds) as hold:
            decide_name = look_again()
            for model, name in names:
                # A finding beside a decision was told already when it was found.
                again = decided(ds, model, name, decide_name)
                outcomes += [outcome for outcome in again if isinstance(outcome, Finding) and outcome not in batch]
                for decision in again:
                    if isinstance(decision, Decision):
                        outcomes += _remove(ds, decision, hold)
    return report_of(outcomes, is_dry_run=False)


def _remove(ds: Datastore, decision: Decision, hold: Hold) -> list[Outcome]:
    """Carry out one decision; on failure what was done, and why no more."""
    model, name = decision.model, decision.name
    removed: list[int] = []
    try:
        if decision.is_whole_name:
            hold.check()
            delete(ds, model, name)
            return [decision]
        directory = ds.path_of(name_dir(model, name))
        # Neither the highest version nor one that `latest` names is ever among them, so both small files of
        # the name stay as they are, and removing its metadata is the one step that ends a version.
        with marking(ds, removing=[os.path.join(directory, str(number)) for number in decision.versions]):
            for number in decision.versions:
                hold.check()
                remove_version(os.path.join(directory, str(number)))
                removed.append(number)
        note(ds, model, name)
    except LockLostError:
        raise
    except MireError as error:
        note(ds, model, name)
        done: list[Outcome] = [Finding(model=model, name=name, message=f"could not be removed: {error.message}")]
        return [*done, _partly(decision, tuple(removed))] if removed else done
    return [decision]


def _partly(decision: Decision, removed: tuple[int, ...]) -> Decision:
    # The sizes of what is gone are gone with it; of a run that failed in the middle none are claimed.
    return replace(decision, versions=removed, size_bytes=0)


def report_of(outcomes: Iterable[Outcome], *, is_dry_run: bool = True) -> Report:
    """What was found, sorted by kind."""
    decisions: list[Decision] = []
    findings: list[Finding] = []
    for outcome in outcomes:
        if isinstance(outcome, Decision):
            decisions.append(outcome)
        else:
            findings.append(outcome)
    return Report(decisions=tuple(decisions), findings=tuple(findings), is_dry_run=is_dry_run)
