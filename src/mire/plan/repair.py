"""What to do about a path whose entry, object and local copy do not agree.

Owns: the table of remedies, each with its reason, and which of an old entry and its object an index believes.
Must not know: how anything is read or written.
Keeps: nothing is deleted, and no entry is dropped, unless somebody asked for it; what somebody may be replacing right
now is left alone. Caches follow an index: what it says of an object takes the place of their copies, and what it no
longer says takes them away. So it comes to say that other bytes are right only on evidence; an object is deleted only
if no copy goes with it, and an entry dropped only where no copy is here.
"""

from dataclasses import dataclass
from typing import Final, Literal

from mire.model.index import Damaged, Entry
from mire.plan.threeway import Value, value_of

Action = Literal["restore", "reindex", "adopt", "drop", "delete", "leave"]
"""`restore`: store our copy again. `reindex`: describe what is stored. `adopt`: list an object that nothing lists.
`drop`: take an entry out whose bytes nobody has. `delete`: remove an object of which there is another copy."""

Orphans = Literal["leave", "adopt", "delete"]
REBUILD: Final = "'mire index rebuild' makes it anew from what is stored"


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
    is_vouched: bool = False
    """Whether sound metadata beside the object says that it has these bytes."""
    is_disowned: bool = False
    """Whether the object is not what the metadata beside it says, or is metadata that cannot be understood."""
    agreed: Value | None = None
    """What this cache and the remote last agreed on."""
    has_twin: bool = False
    """Whether a sound object with the same bytes is listed under another path."""
    is_index_lost: bool = False
    """Whether the part of the index that would list the path is gone, or not understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What is done about a path, and why."""

    action: Action
    reason: str


def plan_repair(sides: Sides, *, orphans: Orphans, drop: bool) -> Remedy:
    """The remedy for one path."""
    if sides.is_index_lost:
        return Remedy(action="leave", reason=f"what the index says of it cannot be read: {REBUILD}")
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
    return _other(sides, wanted)


def _other(sides: Sides, wanted: Value | None) -> Remedy:
    if sides.is_disowned:
        return Remedy(action="leave", reason="the object is damaged, and no good copy is here: ask who else has one")
    if sides.is_vouched:
        return Remedy(action="reindex", reason="the object is what its metadata says, and the index is wrong")
    known = [value for value in (sides.here, sides.agreed) if value is not None]
    if wanted is None and (not known or sides.stored in known):
        return Remedy(action="reindex", reason="the entry says nothing usable, and nothing speaks against the object")
    return Remedy(
        action="leave",
        reason="the object is not what is known of it, and no good copy is here: ask who else has one;"
        " 'mire index rebuild --deep' believes the objects",
    )


def _orphan(sides: Sides, orphans: Orphans) -> Remedy:
    if sides.stored is None:
        return Remedy(action="leave", reason="nothing lists the path, and there is no object")
    if sides.agreed is not None:
        # A deletion that was interrupted looks the same; it can be repeated, and what is gone cannot be brought back.
        if _is(sides.stored, sides.agreed):
            return Remedy(action="adopt", reason="the index lost it, and the object is what was agreed on")
        if orphans != "adopt" or sides.agreed.sha256 is not None:
            return Remedy(
                action="leave",
                reason="the index lost it, and nothing shows that the object is what was agreed on: write the path"
                " again, or delete the object in the store",
            )
    if orphans == "leave":
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
    if sides.here is not None:
        if wanted is None:
            return Remedy(action="restore", reason="entry and object are lost, and this cache has a copy")
        return Remedy(
            action="leave",
            reason="the object is gone, and this cache has another version: ask who has the right one, or write the"
            " path again",
        )
    if drop:
        return Remedy(
            action="drop",
            reason="the object is gone, and no copy is here: to whoever pulls, it was deleted from now on",
        )
    return Remedy(
        action="leave", reason="the object is gone, and no copy is here: ask who has one first, then add --drop"
    )


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
