"""What a write does to a name: which number it takes, who may write, what becomes visible, what goes.

Owns: the rules for versions of one name, as functions of what a look into its directory showed.
Must not know: paths, files, locks, the clock.
Keeps: a version is visible when it is at or below the `latest` marker (where there is none: above the floor
of deleted ones) and its metadata exists. Every change below therefore has one step that makes it true, and
dying before or after that step leaves the old or the new state. The floor has no say beside a marker: the
reference, which knows no floor, counts from 1 again in a name we deleted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mire.errors import ConflictError, InputError, NotFoundError, OwnershipError, shown
from mire.model.artifact import Highest, Metadata, NameState, Owner
from mire.model.instant import Instant
from mire.model.names import VERSION_MAX, DataName, Uuid, Version

HOPS_MAX: Final = 5
"""How many renames a lookup follows, as in the reference."""


def next_version(state: NameState) -> Version:
    """The first number never given out: directories, marker and high-water mark all have a say."""
    given_out = _given_out(state)
    if given_out >= VERSION_MAX:
        raise InputError(f"version {given_out} is the last one there can be: start a new name")
    return Version(given_out + 1)


def _given_out(state: NameState) -> int:
    return max(state.taken, *state.numbers, state.marker or 0, state.highest.number, 0)


def visible_numbers(state: NameState) -> tuple[int, ...]:
    """The numbers a reader may see, ascending, if their metadata exists."""
    return tuple(n for n in state.numbers if is_visible(state, n))


def is_visible(state: NameState, number: int) -> bool:
    """Whether a reader may see a number, if its metadata exists; no listing of the others is needed."""
    ceiling = published_number(state)
    return number > state.highest.floor if ceiling is None else number <= ceiling


def published_number(state: NameState) -> int | None:
    """The number `latest` points to, or None when there is no marker."""
    return state.marker or None


def leftover_numbers(state: NameState) -> tuple[int, ...]:
    """Directories a deletion published as gone but did not live to remove."""
    dead_to = state.highest.floor if published_number(state) is None else state.highest.number
    return tuple(n for n in state.numbers if n <= dead_to and not is_visible(state, n))


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """How to delete: first `highest` (if any), then `latest` (None: remove it), then directories."""

    highest: Highest | None
    latest: int | None
    keeps_latest: bool
    numbers: tuple[int, ...]


def plan_delete_version(state: NameState, finished: Iterable[int], version: int) -> Removal:
    """Delete one version; `finished` are the visible numbers whose metadata exists."""
    remaining = [n for n in finished if n != version]
    if not remaining:
        return plan_delete_name(state)
    top = max(remaining)
    # Above the new `latest` only the high-water mark tells a deleted version from one still being written;
    # and no number may be forgotten, not even that of a marker whose version is not here.
    is_needed = version > top or _given_out(replace(state, marker=top)) < _given_out(state)
    highest = replace(state.highest, number=_given_out(state))
    return Removal(
        highest=highest if is_needed and highest != state.highest else None,
        latest=top,
        keeps_latest=published_number(state) in (None, top),
        numbers=(version,),
    )


def plan_delete_name(state: NameState) -> Removal:
    """Delete every version; the high-water mark stays, so no number ever means two things."""
    given_out = _given_out(state)
    return Removal(
        highest=Highest(number=given_out, floor=given_out),
        latest=None,
        keeps_latest=False,
        numbers=state.numbers,
    )


def check_owner(current: Metadata | None, owner: Owner) -> None:
    """Only the producer of a name may write it."""
    if current is not None and not current.owner.is_same_producer(owner):
        raise OwnershipError(
            f"{shown(current.name)} belongs to {current.owner}, not to {owner}:"
            f" write as its owner (--owner {current.owner}) or choose another name",
            name=current.name,
            owner=str(current.owner),
        )


def check_not_renamed(current: Metadata | None, *, revive: bool) -> None:
    """A write under an old name would silently undo the forwarding to the new one."""
    if current is not None and current.renamed_to is not None and not revive:
        raise ConflictError(
            f"{shown(current.name)} was renamed to {shown(current.renamed_to)}: write to the new name,"
            " or pass --revive (revive=True) to use the old one again",
            kind="renamed",
            name=current.name,
            renamed_to=current.renamed_to,
        )


def check_streaming(current: Metadata | None, name: DataName) -> Metadata:
    """Only streaming data can grow."""
    if current is None or not current.is_active:
        raise NotFoundError(f"there is no {shown(name)} to append to: put it first, with --streaming", name=name)
    if not current.streaming:
        raise InputError(
            f"{shown(name)} is not streaming data, so it cannot grow: put a new version,"
            " or put it once with --streaming",
            name=name,
        )
    return current


def check_rename(old: DataName, new: DataName, source: Metadata, target: Metadata | None) -> None:
    """A rename needs something to rename, and nothing in its way."""
    if old == new:
        raise InputError(f"{shown(old)} already has that name: give another", name=old)
    if not source.is_active:
        raise NotFoundError(f"{shown(old)} is deleted: there is nothing to rename", kind="deleted", name=old)
    if target is not None and target.is_active:
        raise ConflictError(
            f"{shown(new)} already exists (version {target.version}): delete it first, or choose another name",
            kind="exists",
            name=new,
        )


def plan_grown(current: Metadata, size_bytes: int) -> Metadata:
    """Metadata after an append: the reference drops the checksum, which no longer describes the content."""
    return replace(current, size_bytes=size_bytes, checksum=None)


def plan_renamed(source: Metadata, *, new: DataName, version: Version, id: Uuid, now: Instant) -> Metadata:
    """The first version under the new name: the old one's content and facts."""
    return replace(source, id=id, name=new, version=version, created_at=now)


def plan_tombstone(
    source: Metadata, *, version: Version, renamed_to: DataName, id: Uuid, now: Instant
) -> tuple[Metadata, dict[str, Any]]:
    """The last version under the old name, which forwards, and its content."""
    metadata = replace(
        source,
        id=id,
        version=version,
        content_type="application/json",
        streaming=False,
        created_at=now,
        size_bytes=None,
        checksum=None,
        is_deleted=True,
        renamed_to=renamed_to,
    )
    return metadata, {"renamedTo": renamed_to, "renamedAt": now}


def plan_deletion_content(last: object, *, now: Instant, method: str) -> dict[str, Any]:
    """What a deletion marker holds: the last known attributes, and when and by what they ended."""
    attributes = dict(last) if isinstance(last, Mapping) else {}
    return {**attributes, "deletedAt": now, "deletedByMethod": method}
