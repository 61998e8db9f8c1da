"""From any store to any store: every object copied and verified, then shown at once.

Owns: the one step that makes it count.
Must not know: what is copied and how, how an index is written.
Keeps: nothing in the target counts before everything is there.
"""

import os
from dataclasses import replace
from typing import Final

from pyspark.sql import SparkSession

from mire.edge import files
from mire.errors import ConflictError, InputError, shown
from mire.flow.commit import commit
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_gate
from mire.flow.lock import hold_global
from mire.flow.place import open_place
from mire.flow.reading import read_for
from mire.pipeline.foreign import spark_errors
from mire.pipeline.rounds import Moved, copy_all, occupied, plan_all
from mire.pipeline.sides import Side
from mire.pipeline.store import StoreSpec
from mire.plan.commit import Changes
from mire.plan.threeway import value_of

_STAGING: Final = ".mire-migrating"


def migrate_store(spark: SparkSession, source: Side, target: Side, *, dry_run: bool = False) -> Moved:
    """Copy everything, then show it: an index is committed once, a directory gets its name last."""
    if source.spec == target.spec.to_read():
        raise InputError(f"SRC and DST are the same store, {shown(source.name)}: name two")
    with spark_errors("the migration"):
        if target.ds is not None:
            return _into_store(spark, source, target, target.ds, dry_run=dry_run)
        return _into_directory(spark, source, target, dry_run=dry_run)


def _into_store(spark: SparkSession, source: Side, target: Side, ds: Datastore, *, dry_run: bool) -> Moved:
    if dry_run:
        return plan_all(spark, source, target, is_new=False)
    check_gate(ds)
    # The lock alone, without what a cached datastore does around its own work: its cache stays empty.
    with hold_global(replace(ds, lifecycle=None)) as hold, open_place(ds) as place:
        wanted, done = copy_all(spark, source, target)
        hold.check(is_strict=True)
        is_sharded = ds.sync.is_sharded
        reading = read_for(place, wanted, is_fresh_sharded=is_sharded)
        # Compared with what the target said before a byte was copied: what somebody published since is a conflict.
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


def _into_directory(spark: SparkSession, source: Side, target: Side, *, dry_run: bool) -> Moved:
    root = str(target.spec.settings)
    final = os.path.join(root, target.spec.namespace) if target.spec.namespace else root
    if os.path.isdir(final) and os.listdir(final):
        raise ConflictError(
            f"DST {shown(final)} is not empty: name a directory that is not there yet", kind="target_in_use"
        )
    staging = f"{final.rstrip('/')}{_STAGING}"
    staged = replace(target, spec=StoreSpec(type=target.spec.type, settings=staging))
    if dry_run:
        return plan_all(spark, source, replace(staged, name=target.name), is_new=not os.path.isdir(staging))
    files.make_dirs(staging)
    _, done = copy_all(spark, source, staged)
    _show(staging, final)
    return replace(done, target=target.name)


def _show(staging: str, final: str) -> None:
    """Give the copy its name: until then nobody finds it there."""
    with files.mapped(final):
        if os.path.isdir(final):
            os.rmdir(final)
        os.rename(staging, final)
    files.sync_dir(os.path.dirname(final))
