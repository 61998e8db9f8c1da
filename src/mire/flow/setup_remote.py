"""Moving a repository to a remote: carry the data over, publish, fetch, and only then switch.

Owns: the order.
Must not know: how files are copied or synced, what was examined before.
Keeps: until the settings are replaced, in one step, the repository uses the datastore it had, which is left as it was;
after any crash the same command goes on. What two stores have under one path with different content is listed, and
nothing is overwritten unless somebody says whose counts.
"""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from mire.edge import clock, files
from mire.edge.remote import Absent, Unknown
from mire.errors import InputError, NotFoundError, shown
from mire.flow.backend import WITNESS
from mire.flow.cached import cache_dir, open_cached
from mire.flow.carry import Carried, carry, forget_journal
from mire.flow.claim import claim_namespace
from mire.flow.datastore import Datastore
from mire.flow.exchange import pull_now, push_now
from mire.flow.lock import hold_global
from mire.flow.moving import finish_move
from mire.flow.place import view_of
from mire.flow.prospect import Prospect, source_of
from mire.flow.pull import Conflict, Pulled
from mire.flow.push import Pushed
from mire.flow.within import Watch
from mire.model.backend import FILE
from mire.model.config import Extension
from mire.model.names import SOLO
from mire.plan.backend import STORE
from mire.wire.control import control_key
from mire.wire.layout import REPO_FILE
from mire.wire.repo import retarget_datastore


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """What was done."""

    ds: Datastore
    is_switched: bool
    carried: Carried
    pushed: Pushed = field(default_factory=Pushed)
    pulled: Pulled = field(default_factory=Pulled)
    old_cache: str | None = None
    """Where the cache of the former remote is now."""

    @property
    def conflicts(self) -> list[Conflict]:
        """Paths that two stores have with different content."""
        return [*self.carried.conflicts, *self.pushed.conflicts, *self.pulled.conflicts]

    @property
    def findings(self) -> list[str]:
        """What could not be carried, published or fetched."""
        return [*self.carried.findings, *self.pushed.findings, *self.pulled.findings]


def set_up(prospect: Prospect, *, ours: bool = False, theirs: bool = False, watch: Watch | None = None) -> SetUp:
    """Do it; run again after a crash, or after conflicts were dealt with, it goes on."""
    if ours and theirs:
        raise InputError("--ours and --theirs contradict each other: leave out one of the two")
    ds = open_cached(prospect.located, host=None, create=False, is_moving=prospect.is_moving)
    with ExitStack() as stack:
        claim_namespace(ds, prospect.former.repo_id or "")
        witness = _witness(ds)
        carried = Carried()
        source = source_of(prospect.former, prospect.located.repo_dir, is_moving=prospect.is_moving)
        if source is not None:
            settled = _settled(source, watch)
            # Whoever wrote there from now on would not be carried over.
            stack.enter_context(hold_global(replace(source, lifecycle=None)))
            carried = settled or carry(source, ds, watch)
        done = SetUp(ds=ds, is_switched=False, carried=carried)
        if not done.conflicts and not done.findings:
            done = _exchange(ds, done, ours=ours, theirs=theirs, watch=watch)
        if done.conflicts or done.carried.findings or done.pushed.findings:
            return done
        _switch(prospect, witness)
    forget_journal(ds)
    if not prospect.is_moving:
        return replace(done, is_switched=True)
    was = finish_move(cache_dir(prospect.located.config), view_of(ds).properties.name)
    return replace(done, is_switched=True, ds=open_cached(prospect.located, host=None, create=False), old_cache=was)


def _settled(source: Datastore, watch: Watch | None) -> Carried | None:
    """Bring a cache wholly in step with the remote it has; what stands in the way of that."""
    if source.remote is None:
        return None
    pulled = pull_now(source, full=True, watch=watch)
    pushed = push_now(source, watch=watch)
    if not pulled.is_whole or not pushed.is_whole:
        conflicts = {each.rel: each for each in (*pulled.conflicts, *pushed.conflicts)}
        return Carried(conflicts=list(conflicts.values()), findings=[*pulled.findings, *pushed.findings])
    return None


def _witness(ds: Datastore) -> dict[str, str]:
    """What tells a directory from the empty place it is mounted on, made on first use; empty for other stores."""
    target, remote = ds.config.target, ds.whole
    if not isinstance(target, Extension) or target.type != FILE or remote is None:
        return {}
    key = control_key(SOLO, WITNESS)
    outcome = remote.put_if(key, clock.new_uuid().encode(), Absent())
    if isinstance(outcome, Unknown):
        raise outcome.error
    return {STORE: remote.get(key).data.decode()}


def _exchange(ds: Datastore, done: SetUp, *, ours: bool, theirs: bool, watch: Watch | None) -> SetUp:
    """Publish and fetch; nothing at all is published while something is in conflict."""
    pulled = pull_now(ds, theirs=True, watch=watch) if theirs else Pulled()
    preview = push_now(ds, full=True, ours=ours, dry_run=True)
    if preview.conflicts or preview.findings:
        return replace(done, pushed=preview, pulled=pulled)
    pushed = push_now(ds, full=True, ours=ours, watch=watch)
    if pushed.conflicts or pushed.findings:
        return replace(done, pushed=pushed, pulled=pulled)
    more = pull_now(ds, watch=watch)
    more.written = [*pulled.written, *more.written]
    more.removed = [*pulled.removed, *more.removed]
    more.resolved = [*pulled.resolved, *more.resolved]
    return replace(done, pushed=pushed, pulled=more)


def _switch(prospect: Prospect, witness: Mapping[str, str]) -> None:
    path = os.path.join(prospect.located.repo_dir, REPO_FILE)
    existing = files.read_file(path)
    if existing is None:
        raise NotFoundError(f"{shown(path)} went away: restore it and run this again", path=path)
    block = {**prospect.block, "config": {**prospect.block["config"], **witness}}
    files.write_file(path, [retarget_datastore(existing, block)])
