"""Replacing one index object, only as it was read.

Owns: the three outcomes of a conditional write, as a commit sees them.
Must not know: what the object says.
Keeps: unknown is an error, never a guess: whoever tries again finds out.
"""

from mire.edge import clock
from mire.edge.remote import Absent, Condition, Matches, Refused, Stored, Unknown
from mire.errors import RemoteError
from mire.flow.place import Place


def swap(place: Place, key: str, data: bytes, tag: str | None) -> str | None:
    """Write an object over the one with this fingerprint (None: where there is none); its new one, None if refused."""
    condition: Condition = Absent() if tag is None else Matches(tag)
    match place.remote.put_if(key, data, condition, token=clock.new_uuid()):
        case Stored(fingerprint):
            return fingerprint
        case Refused():
            return None
        case Unknown(error):
            raise RemoteError(
                f"whether {key} was written could not be found out: {error.message}; nothing is lost, push again",
                transient=True,
                kind="unknown_outcome",
            )
