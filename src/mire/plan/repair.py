"""What to do about a path whose entry, object and local copy do not agree.

Owns: the table of remedies, each with its reason, and which of an old entry and its object an index believes.
Must not know: how anything is read or written.
Keeps: nothing is deleted, and no entry is dropped, unless somebody asked for it; even then the last copy of any bytes
stays; what somebody may be replacing right now is left alone.
"""

from dataclasses import dataclass
from typing import Final, Literal

from mire.model.index import Damaged, Entry
from mire.plan.threeway import Value, value_of

Action = Literal["restore", "reindex", "adopt", "drop", "delete", "leave"]
"""`restore`: store our copy again. `reindex`: describe what is stored. `adopt`: list an object that nothing lists.
`drop`: take an entry out whose bytes nobody has. `delete`: remove an object of which there is another copy."""

Orphans = Literal["leave", "adopt", "delete"]
ACTIONS: Final[tuple[Action, ...]] = ("restore", "reindex", "adopt", "drop", "delete", "leave")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What is known of one path."""

    entry: Entry | Damaged | None
    stored: Value | None
    """What the object is, as it was read; None when there is none, or it cannot be read."""
    here: Value | None
    """What our copy is, as it was read."""
    is_young: bool = False
    """Whether the object was stored a moment ago."""
    is_unreadable: bool = False
    """Whether the object is there and cannot be read."""
    is_disowned: bool = False
    """Whether the object is not what the metadata beside it says, or is metadata that cannot be understood."""
    is_agreed: bool = False
    """Whether this cache and the remote agreed on what the object is, before the index lost it."""
    has_twin: bool = False
    """Whether the index lists the same bytes under another path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What is done about a path, and why."""

    action: Action
    reason: str


def plan_repair(sides: Sides, *, orphans: Orphans, drop: bool) -> Remedy:
    """The remedy for one path."""
    if sides.is_unreadable:
        return Remedy(action="leave", reason="the object cannot be read: make it readable first")
    if sides.is_young:
        return Remedy(action="leave", reason="the object was stored a moment ago: somebody may be at work; look again")
    if sides.entry is None:
        return _orphan(sides, orphans)
    wanted = value_of(sides.entry) if isinstance(sides.entry, Entry) else None
    if wanted is not None and _is(sides.here, wanted):
        if sides.stored is None:
            return Remedy(action="restore", reason="the object is gone, and this cache has the bytes it had")
        return Remedy(action="restore", reason="the object has other bytes, and this cache has those it should have")
    if sides.stored is None:
        return _gone(sides, wanted, drop=drop)
    if sides.is_disowned:
        return Remedy(action="leave", reason="the object is damaged, and no good copy is here: ask who else has one")
    return Remedy(action="reindex", reason="the object is whole, and the index describes it wrongly")


def _orphan(sides: Sides, orphans: Orphans) -> Remedy:
    if sides.is_agreed and sides.stored is not None and orphans != "delete":
        return Remedy(action="adopt", reason="the index lost it, and the object is what was agreed on")
    if sides.stored is None or orphans == "leave":
        return Remedy(
            action="leave", reason="nothing lists the object: '--orphans adopt' or '--orphans delete' decides"
        )
    if orphans == "adopt":
        if sides.is_disowned:
            return Remedy(action="leave", reason="nothing lists the object, and it is damaged: it is not adopted")
        return Remedy(action="adopt", reason="nothing lists the object: from now on the index does")
    if sides.has_twin or _is(sides.here, sides.stored):
        return Remedy(action="delete", reason="nothing lists the object, and its bytes are elsewhere, too")
    return Remedy(action="leave", reason="nothing lists the object, but it may be the last copy of its bytes")


def _gone(sides: Sides, wanted: Value | None, *, drop: bool) -> Remedy:
    if wanted is None and sides.here is not None:
        return Remedy(action="restore", reason="entry and object are lost, and this cache has a copy")
    if drop:
        return Remedy(action="drop", reason="the object is gone, and no copy is here: the index no longer lists it")
    return Remedy(action="leave", reason="the object is gone, and no copy is here: ask who has one, or add --drop")


def plan_entry(
    entry: Entry | None, stored: Value, *, is_counting: bool, is_vouched: bool
) -> Literal["complete", "describe", "keep"]:
    """What an index that is made anew says of an object, in view of the entry that survived.

    `complete`: what the entry does, with the hash. `describe`: what the object is. `keep`: what the entry does, though
    the object is something else; `is_counting` says that the entry is more than a copy that may be old.
    """
    if entry is not None and stored.size_bytes == entry.size_bytes and entry.sha256 in (None, stored.sha256):
        return "complete"
    return "keep" if entry is not None and is_counting and not is_vouched else "describe"


def _is(value: Value | None, wanted: Value) -> bool:
    if value is None or value.size_bytes != wanted.size_bytes:
        return False
    return wanted.sha256 is not None and value.sha256 == wanted.sha256
