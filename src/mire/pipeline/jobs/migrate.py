"""From any store to any store: every object copied and verified, then shown at once.

Owns: the one step that makes it count.
Must not know: what is copied and how, how an index is written.
Keeps: nothing in the target counts before everything is there; a directory that gets its name has what the source has,
and nothing that an earlier run left; two migrations never fill the same one.
"""

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from mire.edge import files
from mire.edge.turn import open_turn
from mire.errors import ConflictError, InputError, shown
from mire.flow.commit import commit
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_gate
from mire.flow.lock import hold_global
from mire.flow.place import open_place
from mire.flow.reading import read_for
from mire.model.names import PRIVATE_PREFIX
from mire.pipeline.rounds import Moved, OpenRound, copy_all, occupied, plan_all
from mire.pipeline.sides import Side
from mire.pipeline.store import StoreSpec, open_spec
from mire.plan.commit import Changes
from mire.plan.threeway import value_of

_STAGING: Final = ".mire-migrating"
_NOTE: Final = f"{PRIVATE_PREFIX}-mire-migration.json"
_LOCK: Final = f"{PRIVATE_PREFIX}-mire-migration.lock"
"""Which source is copied into a directory, and whose turn it is; both go when it has its name."""


def migrate_store(open_round: OpenRound, source: Side, target: Side, *, dry_run: bool = False) -> Moved:
    """Copy everything, then show it: an index is committed once, a directory gets its name last."""
    if source.spec == target.spec.to_read():
        raise InputError(f"SRC and DST are the same store, {shown(source.name)}: name two")
    if target.spec.is_directory:
        return _into_directory(open_round, source, target, dry_run=dry_run)
    if dry_run or target.ds is None:
        return plan_all(open_round, source, target, is_new=False)
    return _into_store(open_round, source, target, target.ds)


def _into_store(open_round: OpenRound, source: Side, target: Side, ds: Datastore) -> Moved:
    check_gate(ds)
    # The lock alone, without what a cached datastore does around its own work: its cache stays empty.
    with hold_global(replace(ds, lifecycle=None)) as hold, open_place(ds) as place:
        wanted, done = copy_all(open_round, source, target)
        hold.check(is_strict=True)
        is_sharded = ds.sync.is_sharded
        reading = read_for(place, wanted, is_fresh_sharded=is_sharded)
        # It was compared before a byte was copied: what somebody published since is a conflict.
        found = {rel: reading.entry(rel) for rel in wanted}
        odd = [rel for rel, entry in found.items() if entry is not None and value_of(entry) != value_of(wanted[rel])]
        if odd:
            raise occupied(target, odd[0])
        # What a run before this one committed is not committed again.
        new = [rel for rel, entry in found.items() if entry is None]
        changes = Changes(upserts={rel: wanted[rel] for rel in new}, expected=dict.fromkeys(new))
        lost = commit(place, changes, reading, is_fresh_sharded=is_sharded).lost
    if lost:
        raise occupied(target, lost[0])
    return done


def _into_directory(open_round: OpenRound, source: Side, target: Side, *, dry_run: bool) -> Moved:
    root = str(target.spec.settings)
    final = os.path.join(root, target.spec.namespace) if target.spec.namespace else root
    staging = f"{final.rstrip('/')}{_STAGING}"
    staged = replace(target, spec=StoreSpec(type=target.spec.type, settings=staging))
    _check_free(final)
    if dry_run:
        is_new = not os.path.isdir(staging)
        if not is_new:
            _check_staging(staging, source)
        return plan_all(open_round, source, replace(staged, name=target.name), is_new=is_new)
    with _open_staging(staging, final, source):
        wanted, done = copy_all(open_round, source, staged)
        _prune(staging, wanted)
        _show(staging, final)
    return replace(done, target=target.name)


def _check_free(final: str) -> None:
    if os.path.isdir(final) and os.listdir(final):
        raise ConflictError(
            f"DST {shown(final)} is not empty: name a directory that is not there yet", kind="target_in_use"
        )


@contextmanager
def _open_staging(staging: str, final: str, source: Side) -> Iterator[None]:
    """The directory to copy into, for one migration at a time and from one source; what a run that died left stays."""
    files.make_dirs(staging)
    with open_turn(os.path.join(staging, _LOCK), wait_ms=0.0, what="another migration into this directory is at work"):
        # Whoever had the turn may have shown its copy meanwhile.
        _check_free(final)
        if not _check_staging(staging, source):
            files.write_file(os.path.join(staging, _NOTE), [json.dumps(_note_of(source)).encode()])
        yield


def _check_staging(staging: str, source: Side) -> bool:
    """Refuse what a migration of another store left, or nobody knows who; False when nothing was left."""
    note = files.read_file(os.path.join(staging, _NOTE))
    if note is None:
        if any(entry.name != _LOCK for entry in files.list_dir(staging)):
            raise ConflictError(
                f"{shown(staging)} is in the way, and does not say which migration left it: move it away",
                kind="target_in_use",
            )
        return False
    try:
        said = json.loads(note)
    except ValueError:
        said = None
    if said != _note_of(source):
        whose = said.get("source") if isinstance(said, dict) else None
        raise ConflictError(
            f"{shown(staging)} has what a migration from {shown(whose)} left, not from {source.name}: finish that one,"
            " or remove it",
            kind="target_in_use",
        )
    return True


def _note_of(source: Side) -> dict[str, object]:
    return {"version": 1, "source": open_spec(source.spec).properties.name}


def _prune(staging: str, wanted: Collection[str]) -> None:
    """Remove what the source does not have: what it had when a run died, or in an earlier round."""
    with files.mapped(staging):
        for where, _, names in os.walk(staging, topdown=False):
            for name in names:
                path = os.path.join(where, name)
                if os.path.relpath(path, staging) not in wanted and name not in (_NOTE, _LOCK):
                    with suppress(FileNotFoundError):  # an attempt that is late took its own away
                        os.unlink(path)
            with suppress(OSError):  # not empty
                os.rmdir(where)


def _show(staging: str, final: str) -> None:
    """Give the copy its name: until then nobody finds it there."""
    with files.mapped(final):
        if os.path.isdir(final):
            os.rmdir(final)
        # Not between two steps of an attempt that is late: it would make directories where this one was.
        with files.directory_guard(staging):
            os.rename(staging, final)
        for name in os.listdir(final):
            is_unfinished = name.startswith(f"{PRIVATE_PREFIX}-") and name.endswith(".tmp")
            if is_unfinished or name in (_NOTE, _LOCK):
                files.remove_file(os.path.join(final, name))
    files.sync_dir(os.path.dirname(final))
