"""How long data is kept: lifetimes of an item and the policy for its versions.

Owns: which texts and numbers are valid, and what a duration means.
Must not know: when anything was written.
"""

import re
from datetime import timedelta
from typing import Final, NewType

from mire.errors import InputError, shown
from mire.model.names import VERSION_MAX

Lifetime = NewType("Lifetime", str)
VersionPolicy = int | str
"""`garbageCollection`: a number of versions to keep, or the age at which they go."""

INFINITE: Final = Lifetime("infinite")
WORKFLOW: Final = Lifetime("workflow")
_WORDS = ("ephemeral", "infinite", "job", "workflow")
_DURATION = re.compile(r"(\d+)(mo|y|h|m|d|w)", re.ASCII)
_UNIT = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "mo": timedelta(days=30),
    "y": timedelta(days=365),
}
_WANTED_DURATION = "a number and one of m h d w mo y, like 90d"


def duration_of(text: str) -> timedelta | None:
    """The length of a duration such as `90d`, or None when the text is not one."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    try:
        return int(match[1]) * _UNIT[match[2]]
    except (OverflowError, ValueError):
        return timedelta.max


def parse_lifetime(value: object) -> Lifetime:
    """Check a lifetime; a zero duration means `workflow`, as in the reference."""
    if isinstance(value, str):
        if value in _WORDS:
            return Lifetime(value)
        duration = duration_of(value)
        if duration is not None:
            return Lifetime(value) if duration else WORKFLOW
    raise InputError(
        f"lifetime {shown(value)} is unknown: use {', '.join(_WORDS)}, or {_WANTED_DURATION}",
        kind="bad_lifetime",
        value=shown(value),
    )


def parse_version_policy(value: object) -> VersionPolicy:
    """Check `garbageCollection`: a whole number above zero, or a duration above zero."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= VERSION_MAX:
        return value
    if isinstance(value, str) and duration_of(value):
        return value
    raise InputError(
        f"garbageCollection {shown(value)} is invalid: use a number of versions above 0, or {_WANTED_DURATION}",
        kind="bad_version_policy",
        value=shown(value),
    )
