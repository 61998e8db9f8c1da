"""What sync must do over every remote, as functions that a backend runs against itself.

Owns: the names of the checks of sync, running each over a fresh place with two empty caches, and cleaning up.
Must not know: pytest, which backend is checked.
Keeps: a failed check says its number and what was expected; nothing outside one fresh prefix of the remote and one
temporary directory is touched, and nothing is left in either.

A backend runs `check_sync(lambda: my_remote())`, and once more with `is_sharded=True`: each handle is opened anew, as
by another process. The checks are in `SYNC_CHECKS`, to be run one by one where that is nicer. The numbers are those of
the reference's checks, which count what was sent and brought; here the counts must be exact.
"""

import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from mire.edge import clock
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Remote
from mire.model.names import SOLO, Namespace
from mire.testing import conformance_fetch, conformance_phase, conformance_trip
from mire.testing.conformance import OpenRemote, raise_problems
from mire.testing.conformance_trip import NAMESPACE, Sides
from mire.testing.synccache import Cut, SyncCache


class MakeCache(Protocol):
    """Makes a cache in an empty directory."""

    def __call__(self, directory: str, remote: Remote, *, namespace: Namespace, is_sharded: bool) -> SyncCache:
        """The cache."""


@dataclass(frozen=True, slots=True)
class SyncCheck:
    """One check; it is given two caches that have pulled an empty remote."""

    name: str
    cases: tuple[int, ...]
    """The reference's checks it stands for."""
    run: Callable[[Sides], None]
    namespace: Namespace = SOLO


SYNC_CHECKS: Final = (
    SyncCheck("calls", (21,), conformance_trip.check_calls),
    SyncCheck("scope", (22,), conformance_trip.check_scope),
    SyncCheck("round trip", (23,), conformance_trip.check_round_trip),
    SyncCheck("push deletes", (24,), conformance_trip.check_push_deletes),
    SyncCheck("pull deletes", (25,), conformance_trip.check_pull_deletes),
    SyncCheck("bulk mark", (26,), conformance_trip.check_bulk_mark),
    SyncCheck("failed push retry", (27,), conformance_phase.check_failed_push_retry),
    SyncCheck("two phases", (28,), conformance_phase.check_two_phases),
    SyncCheck("pull nothing new", (29,), conformance_trip.check_pull_nothing_new),
    SyncCheck("forward slash paths", (30,), conformance_trip.check_forward_slash_paths),
    SyncCheck("fetch content", (31,), conformance_fetch.check_fetch_content),
    SyncCheck("fetch content error", (32,), conformance_fetch.check_fetch_content_error),
    SyncCheck("fetch content namespace", (33,), conformance_fetch.check_fetch_content_namespace, NAMESPACE),
)


def check_sync(open_remote: OpenRemote, *, is_sharded: bool = False, checks: Iterable[SyncCheck] = SYNC_CHECKS) -> None:
    """Run the checks; all that fail are named in one `ConformanceError`."""
    raise_problems((check.name, partial(run_sync_check, check, open_remote, is_sharded=is_sharded)) for check in checks)


def run_sync_check(
    check: SyncCheck,
    open_remote: OpenRemote,
    *,
    is_sharded: bool = False,
    directory: str | None = None,
    make_cache: MakeCache = SyncCache,
) -> None:
    """Run one check over an empty place, with caches in a temporary directory (inside of `directory`)."""
    place = f"mire-conformance/{clock.new_uuid()}"
    with ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory(prefix="mire-conformance-", dir=directory))
        handles = [Prefixed(open_remote(), place) for _ in range(2)]
        stack.callback(_empty, handles[0])
        cuts = [Cut(handle) for handle in handles]
        caches = []
        for name, cut in zip(("first", "second"), cuts, strict=True):
            caches.append(make_cache(os.path.join(root, name), cut, namespace=check.namespace, is_sharded=is_sharded))
            stack.callback(caches[-1].close)
            caches[-1].pull()
        check.run(Sides(first=caches[0], second=caches[1], way=cuts[0]))


def _empty(remote: Remote) -> None:
    for stat in list(remote.list()):
        remote.delete(stat.key)
