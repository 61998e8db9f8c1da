"""Points in time as the store writes them: ISO-8601 text in UTC with a final `Z`.

Owns: what counts as an instant. The text itself is kept, so a document read and written again is equal.
Must not know: the clock.
"""

import re
from datetime import UTC, datetime
from typing import NewType

from mire.errors import InputError, shown

Instant = NewType("Instant", str)

_OFFSET = len("+00:00")
_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z")


def parse_instant(value: object, what: str = "time") -> Instant:
    """Check an instant; offsets other than `Z` are refused, as in the reference."""
    if isinstance(value, str) and _FORM.fullmatch(value):
        try:
            datetime_of(Instant(value))
        except ValueError:
            pass
        else:
            return Instant(value)
    raise InputError(
        f"{what} {shown(value)} is not an ISO-8601 time in UTC: write it like 2026-05-17T08:30:02.417Z",
        kind="bad_time",
        value=shown(value),
    )


def datetime_of(instant: Instant) -> datetime:
    """The instant as an aware datetime (microseconds at most)."""
    return datetime.fromisoformat(instant)


def instant_of(moment: datetime) -> Instant:
    """An aware datetime as an instant with milliseconds, the reference's precision."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return Instant(f"{utc.isoformat(timespec='milliseconds')[:-_OFFSET]}Z")
