"""The doctor for a directory: tries there what mire relies on, and leaves nothing behind.

Owns: the trials on a file system, their order and their removal.
Must not know: what an outcome means; the plan says.
Keeps: nothing is written outside one directory of our own making, which is removed however the trials end.
"""

import os
from collections.abc import Callable

from mire.edge import clock, files, probe, process
from mire.errors import DeniedError, MireError, RemoteError, shown
from mire.flow.datastore import check_marker
from mire.model.doctor import Report, Trial
from mire.plan.doctor import surely_ahead_ms
from mire.plan.doctordir import directory_report_of
from mire.wire.control import CONTROL

_TICK_MS = 20.0
"""Kernels stamp files with a clock that stands still for some milliseconds."""


def diagnose_directory(path: str) -> Report:
    """Examine a directory and say whether it can be trusted."""
    started_ms = clock.monotonic_ms()
    trials = {"access": _trial(lambda: _check_directory(path))}
    ahead_ms = 0.0
    left_behind: tuple[str, ...] = ()
    if trials["access"].outcome == "yes":
        trials["format"] = _trial(lambda: _check_marker(path))
        room = os.path.join(path, CONTROL, f"mire-probe-{clock.new_uuid()}")
        made: list[str] = []
        try:
            trials["write"] = _trial(lambda: made.extend(files.make_dirs(room)))
            if trials["write"].outcome == "yes":
                trials |= _try_files(room)
                trials["clock"], ahead_ms = _try_clock(room)
        finally:
            left_behind = _clean_up(room, made)
    return directory_report_of(
        trials,
        path=path,
        clock_ms=ahead_ms,
        latency_ms=(clock.monotonic_ms() - started_ms) / max(1, len(trials)),
        left_behind=left_behind,
    )


def _trial(call: Callable[[], object]) -> Trial:
    try:
        result = call()
    except MireError as error:
        return Trial("failed", error)
    return Trial("no" if result is False else "yes")


def _check_directory(path: str) -> bool:
    if not files.is_dir(path):
        raise RemoteError(
            f"the datastore {shown(path)} is not there: mount it, or create it with 'mire init --datastore'",
            kind="unreachable",
            path=path,
        )
    files.list_dir(path)
    return True


def _check_marker(path: str) -> bool:
    reason = check_marker(path)
    if reason is not None:
        raise DeniedError(reason, kind="read_only")
    return True


def _try_files(room: str) -> dict[str, Trial]:
    name, subdir = os.path.join(room, "a"), os.path.join(room, "b")
    first, second, third = b"first", b"second", b"third"
    trials = {"create": _trial(lambda: files.create_file(name, first) and files.read_file(name) == first)}
    trials["create_again"] = _trial(lambda: files.create_file(name, second) or files.read_file(name) != first)
    trials["claim"] = _trial(lambda: files.claim_dir(subdir) and not files.claim_dir(subdir))
    trials["replace"] = _trial(lambda: _replaces(name, third))
    trials["lock"] = _trial(lambda: probe.is_flock_exclusive(os.path.join(room, "lock")))
    trials["listing"] = _trial(lambda: [entry.name for entry in files.list_dir(room)] == ["a", "b", "lock"])
    return trials


def _replaces(name: str, data: bytes) -> bool:
    """Whether a rename replaces a file at once, durably; an error where the file system cannot sync."""
    files.write_file(name, [data])
    return files.read_file(name) == data


def _try_clock(room: str) -> tuple[Trial, float]:
    """How far the clock that stamps files is surely ahead of ours (or behind)."""
    name = os.path.join(room, "stamp")
    before_ms = clock.now_ns() / 1e6
    tried = _trial(lambda: files.create_file(name, b"stamp"))
    after_ms = clock.now_ns() / 1e6
    if tried.outcome != "yes":
        return tried, 0.0
    return tried, surely_ahead_ms(probe.stamp_ms(name), _TICK_MS, before_ms, after_ms)


def _clean_up(room: str, made: list[str]) -> tuple[str, ...]:
    """Remove what the trials left, and the directories that were made for them; what could not be removed."""
    left = []
    with process.undisturbed():
        for entry in files.list_dir(room):
            path = os.path.join(room, entry.name)
            try:
                if entry.is_dir:
                    files.remove_empty([path])
                else:
                    files.remove_file(path)
            except MireError:
                left.append(path)
        files.remove_empty(made)
    return tuple(left) or ((room,) if files.is_dir(room) else ())
