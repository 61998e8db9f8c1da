"""What every remote must do, as functions that a backend runs against itself.

Owns: the names of the checks of objects, running them in a place of their own, and cleaning up.
Must not know: pytest, which backend is checked.
Keeps: a failed check says its name and what was expected; nothing outside one fresh prefix is touched, and nothing is
left in it.

A backend runs `check_remote(lambda: my_remote())`: each handle is opened anew, as by another process. The checks are
in `REMOTE_CHECKS`, to be run one by one where that is nicer. Locks and control records have suites of their own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from mire.edge import clock
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Remote
from mire.errors import MireError
from mire.testing import conformance_listing, conformance_objects, conformance_race
from mire.testing.conformance_lock import ConformanceError

OpenRemote = Callable[[], Remote]
"""A handle on the store that is checked; each call gives another handle on the same one."""


@dataclass(frozen=True, slots=True)
class RemoteCheck:
    """One check; it is given two handles on one empty place."""

    name: str
    run: Callable[[Remote, Remote], None]


REMOTE_CHECKS: Final = tuple(
    RemoteCheck(function.__name__.removeprefix("check_").replace("_", " "), function)
    for function in (*conformance_objects.CHECKS, *conformance_race.CHECKS, *conformance_listing.CHECKS)
)


def check_remote(open_remote: OpenRemote, *, checks: Iterable[RemoteCheck] = REMOTE_CHECKS) -> None:
    """Run the checks; all that fail are named in one `ConformanceError`."""
    raise_problems((check.name, partial(run_check, check, open_remote)) for check in checks)


def raise_problems(checks: Iterable[tuple[str, Callable[[], None]]]) -> None:
    """Run all, by their names; those that fail are named in one `ConformanceError`."""
    failures = [problem for name, run in checks if (problem := _problem(name, run)) is not None]
    if failures:
        raise ConformanceError("; ".join(failures))


def _problem(name: str, run: Callable[[], None]) -> str | None:
    try:
        run()
    except ConformanceError as error:
        return str(error)
    except MireError as error:
        return f"check {name}: {type(error).__name__}: {error}"
    return None


def run_check(check: RemoteCheck, open_remote: OpenRemote) -> None:
    """Run one check in a place of its own, which is empty again afterwards."""
    place = f"mire-conformance/{clock.new_uuid()}"
    handles = [Prefixed(open_remote(), place) for _ in range(2)]
    try:
        check.run(*handles)
    finally:
        for stat in list(handles[0].list()):
            handles[0].delete(stat.key)
