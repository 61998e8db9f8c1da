"""Holding versions back from retention: hold, release, list.

Owns: the file of holds in the directory of a name.
Must not know: what retention would remove.
Keeps: a hold that was confirmed is on disk; one that cannot be read is an error, never "not held".
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from mire.edge import clock, files
from mire.errors import InputError, MireError, NotFoundError, shown
from mire.flow.datastore import Datastore
from mire.flow.lock import hold_models
from mire.flow.mark import marking
from mire.flow.read import naming, not_found, versions
from mire.flow.settle import settle
from mire.flow.walk import Finding, walk_names
from mire.model.artifact import ModelRef
from mire.model.hold import NO_HOLDS, Holds, NameHold
from mire.model.names import DataName, Version
from mire.wire.hold import HOLD, HOLD_BYTES_MAX, decode_holds, encode_holds
from mire.wire.layout import name_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldName:
    """A name with holds, as `list_holds` shows it."""

    model: ModelRef
    name: DataName
    holds: Holds


def hold(
    ds: Datastore, model: ModelRef, name: DataName, version: Version | None = None, reason: str | None = None
) -> NameHold:
    """Hold a version, or the whole name with all versions it has and will have; held again, the last word counts."""
    _check_reason(reason)
    if not ds.is_cache:
        _check_there(ds, model, name, version)
    with hold_models(ds, [model]) as lock:
        settle(ds, model)
        _check_there(ds, model, name, version)
        wanted = NameHold(version=version, reason=reason, by=ds.host.holder, at=clock.now_instant())
        holds = load_holds(ds, model, name).with_hold(wanted)
        path = _path(ds, model, name)
        with marking(ds, path):
            lock.check()
            files.write_file(path, [encode_holds(holds)])
        return wanted


def unhold(ds: Datastore, model: ModelRef, name: DataName, version: Version | None = None) -> NameHold:
    """Release the hold of a version, or the one of the whole name; holds of single versions stay."""
    if not ds.is_cache:
        _check_held(load_holds(ds, model, name), model, name, version)
    with hold_models(ds, [model]) as lock:
        holds = load_holds(ds, model, name)
        released = _check_held(holds, model, name, version)
        left = holds.without(version)
        path = _path(ds, model, name)
        if left.items or left.extra:
            with marking(ds, path):
                lock.check()
                files.write_file(path, [encode_holds(left)])
        else:
            with marking(ds, removing=[path]):
                lock.check()
                files.remove_file(path)
        return released


def list_holds(ds: Datastore) -> Iterator[HeldName | Finding]:
    """Every name with holds, by type, id and name; holds that cannot be read are findings."""
    for found in walk_names(ds):
        if isinstance(found, Finding):
            yield found
            continue
        model, name = found
        try:
            holds = load_holds(ds, model, name)
        except MireError as error:
            yield Finding(model=model, name=name, message=error.message)
            continue
        if holds.items:
            yield HeldName(model=model, name=name, holds=holds)


def load_holds(ds: Datastore, model: ModelRef, name: DataName) -> Holds:
    """The holds of a name."""
    path = _path(ds, model, name)
    with naming(path):
        files.check_inside(path, ds.root_of(name_dir(model, name)))
        data = files.read_file(path, limit=HOLD_BYTES_MAX)
        return NO_HOLDS if data is None else decode_holds(data)


def _path(ds: Datastore, model: ModelRef, name: DataName) -> str:
    return os.path.join(ds.path_of(name_dir(model, name)), HOLD)


def _check_reason(reason: str | None) -> None:
    if reason is not None and not reason.strip():
        raise InputError(f"reason {shown(reason)} is empty: say why, or leave it out")


def _check_there(ds: Datastore, model: ModelRef, name: DataName, version: Version | None) -> None:
    numbers = versions(ds, model, name)
    if not numbers or (version is not None and version not in numbers):
        raise not_found(ds, model, name, version)


def _check_held(holds: Holds, model: ModelRef, name: DataName, version: Version | None) -> NameHold:
    found = holds.of(version)
    if found is None:
        what = f"{shown(name)} of {model}" if version is None else f"version {version} of {shown(name)} of {model}"
        held = ["the whole name"] * holds.is_whole_name + [f"version {number}" for number in holds.versions]
        raise NotFoundError(
            f"{what} is not held by itself; held: {', '.join(held) or 'nothing'}", kind="not_held", name=name
        )
    return found
