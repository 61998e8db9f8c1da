"""What the doctor's trials in a directory prove: a line for each check.

Owns: what each outcome means for somebody who wants to share the directory.
Must not know: how a trial is made, how a report is shown.
"""

from collections.abc import Mapping
from typing import Any, Final

from mire.model.backend import FILESYSTEM
from mire.model.doctor import UNTRIED, Check, Report, Trial
from mire.plan.doctor import cleanup_check, clock_check, refused, speed_check, worst_of

_DIRECTORY: Final = (
    ("access", "access", "the directory is there", ""),
    ("format", "format", "no format marker, or one this mire knows", ""),
    ("write", "write", "files can be made in it", ""),
    (
        "create only once",
        "create_again",
        "a second create of one name was refused",
        "a second create replaced the first",
    ),
    ("create complete", "create", "a new file appears with all its bytes", "a new file did not read back as written"),
    ("claim", "claim", "of two who make one directory, one is told so", "a directory could be made twice"),
    ("replace", "replace", "a file is replaced as a whole, synced to disk", "a replaced file showed its old content"),
    ("lock", "lock", "flock keeps two openers of a file apart", "flock locks nobody out"),
    ("listing", "listing", "every file once, in order", "a listing left out or repeated files"),
)
"""What is tried in a directory: the check, its trial, what it means when it is good, and when it is not."""

_OTHER_HOSTS: Final = Check(
    name="other hosts", result="skip", meaning="what a mount does between hosts: not proved; run it on each of them"
)
_DO_NOT_SHARE = "do not share this directory"


def directory_report_of(
    trials: Mapping[str, Trial], *, path: str, clock_ms: float, latency_ms: float, left_behind: tuple[str, ...]
) -> Report:
    """The report on a directory."""
    checks = []
    for name, key, good, bad in _DIRECTORY:
        tried = trials.get(key, UNTRIED)
        if tried is UNTRIED:
            continue
        tried = refused(tried) if key == "create_again" else tried
        checks.append(Check(name=name, **worst_of((tried,), good, f"{bad}: {_DO_NOT_SHARE}")))
    if "clock" in trials:
        checks.append(_OTHER_HOSTS)
        checks.append(clock_check(trials["clock"], clock_ms))
        checks.append(speed_check(latency_ms, len(trials)))
    if left_behind:
        checks.append(cleanup_check(left_behind))
    details: dict[str, Any] = {
        "path": path,
        "probeCleanup": "failed" if left_behind else "ok",
        "leftBehind": list(left_behind),
    }
    if "clock" in trials:
        details["clockDifferenceMs"] = round(clock_ms)
    return Report(datastore_type=FILESYSTEM, name=path, checks=tuple(checks), latency_ms=latency_ms, details=details)
