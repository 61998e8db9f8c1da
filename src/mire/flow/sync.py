"""The life of a change in a cached datastore: lock, pull what it touches, work, push, release.

Owns: when a command syncs, and what happens when the remote cannot be reached.
Must not know: how anything is locked, pulled or pushed.
Keeps: offline a change is made in the cache, said so, and its marks wait; nothing is published without the lock it was
made under.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from mire.edge import clock
from mire.errors import ConflictError, DeniedError, MissingBucketError, RemoteError
from mire.flow.datastore import Datastore
from mire.flow.locked import Hold
from mire.flow.place import open_place
from mire.flow.pull import Pulled, pull
from mire.flow.push import Pushed, push
from mire.flow.within import within_timeout
from mire.model.artifact import ModelRef

_PATHS_SHOWN = 3


class Sync:
    """What a cached datastore does around each piece of work that writes."""

    def __init__(self, gate: Callable[[], str | None], check_settled: Callable[[], None]) -> None:
        self.gate = gate
        self.check_settled = check_settled
        self.notices: list[str] = []

    @contextmanager
    def around(self, ds: Datastore, models: Sequence[ModelRef] | None, hold: Hold) -> Iterator[None]:
        """Work under a lock: pull before it (None: everything), push after it."""
        if models is None or models:
            self._pull(ds, models or ())
        yield
        hold.check()
        self._push(ds, hold)

    def offline(self, error: RemoteError | str) -> None:
        """Remember to say that a change stays here for now."""
        why = error if isinstance(error, str) else error.message
        self.say(
            f"the remote could not be reached, so this was done in the cache only; 'mire push' publishes it ({why})"
        )

    def say(self, notice: str) -> None:
        """Remember to say something, once."""
        if notice not in self.notices:
            self.notices.append(notice)

    def _pull(self, ds: Datastore, models: Sequence[ModelRef]) -> None:
        try:
            self._tell(pull(within_timeout(ds), models=models))
        except RemoteError as error:
            if not is_offline(error):
                raise
            self.offline(error)

    def _push(self, ds: Datastore, hold: Hold) -> None:
        try:
            patient = replace(ds, sync=replace(ds.sync, is_patient=True))
            done = push(within_timeout(patient), guard=lambda: hold.check(is_strict=True))
        except RemoteError as error:
            if not is_offline(error):
                raise
            self.offline(error)
            return
        self._tell(done)
        if done.conflicts:
            raise conflict_error(done)

    def _tell(self, done: Pulled | Pushed) -> None:
        for finding in done.findings:
            self.say(finding)
        for each in done.repeated if isinstance(done, Pulled) else ():
            self.say(f"{each.rel} {each.why}; its bytes are kept in {each.theirs}")


def is_offline(error: RemoteError) -> bool:
    """Whether a failure is of the way to the remote, and not of the remote, its rights or its bucket."""
    return error.transient and not isinstance(error, (DeniedError, MissingBucketError))


def conflict_error(done: Pushed) -> ConflictError:
    """What is told when something was written here but not published, because others changed it too."""
    shown = ", ".join(conflict.rel for conflict in done.conflicts[:_PATHS_SHOWN])
    more = len(done.conflicts) - _PATHS_SHOWN
    return ConflictError(
        f"{len(done.conflicts)} changed here and at the remote, and stay here unpublished: {shown}"
        f"{f' and {more} more' if more > 0 else ''}; look with 'mire status', then 'mire push --ours' or"
        " 'mire pull --theirs'",
        kind="sync_conflict",
        paths=[conflict.rel for conflict in done.conflicts],
    )


def refresh_older(ds: Datastore, max_age_s: float) -> str | None:
    """Pull if the last pull is longer ago than that; what to say when the remote could not be reached."""
    if ds.remote is None:
        return None
    with open_place(ds) as place:
        pulled_ms = float(place.state.fact("pulled_ms") or 0)
    age_s = (clock.now_ns() / 1e6 - pulled_ms) / 1000
    if 0 <= age_s <= max_age_s:
        return None
    try:
        if ds.lifecycle is not None:
            ds.lifecycle.gate()  # a newer format must not even be read; one that must not be written may be
        done = pull(within_timeout(ds))
    except RemoteError as error:
        if not is_offline(error):
            raise
        age = f"{age_s:.0f} s old" if pulled_ms else "of unknown age"
        return f"the remote could not be reached, so this answer is {age} ({error.message})"
    if not done.is_whole:
        counts = f"{len(done.conflicts)} in conflict, {len(done.findings)} not brought"
        return f"not everything could be pulled ({counts}): see 'mire pull'"
    return None
