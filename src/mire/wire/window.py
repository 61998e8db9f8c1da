"""Where two texts of an index differ, so that comparing costs what changed.

Owns: the parts of two usual texts outside of which they are the same.
Must not know: what an entry means.
Keeps: windows begin and end between members; what is outside of them stands in both texts, in the same order.

Clients set entries where they stand, leave some out, and append new ones. So two texts of an index share nearly all
of their bytes, and go on alike soon after a difference.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from mire.wire.canonical import Frame, all_members

_AHEAD: Final = 64
"""So many members are looked at for a name that both texts go on with; without one, the rest is one window."""
_STEP: Final = 1 << 12
_STEP_MAX: Final = 1 << 20
_HEAD: Final = b'":{"key":'


def windows_of(old: bytes, old_frame: Frame, new: bytes, new_frame: Frame) -> Iterator[tuple[Frame, Frame]]:
    """The parts of two texts without escapes that may differ, in order; either part may be empty."""
    at, new_at = old_frame.first, new_frame.first
    while at < old_frame.close or new_at < new_frame.close:
        same = _common(old, at, new, new_at, min(old_frame.close - at, new_frame.close - new_at))
        same = _member_before(old, at, at + same) - at
        at, new_at = at + same, new_at + same
        end, new_end = _meeting(old, Frame(at, old_frame.close), new, Frame(new_at, new_frame.close))
        yield Frame(at, end), Frame(new_at, new_end)
        at, new_at = end, new_end


def _common(old: bytes, at: int, new: bytes, new_at: int, length: int) -> int:
    """How many bytes are the same from two places on."""

    def is_same(start: int, step: int) -> bool:
        end = start + step
        return end <= length and old[at + start : at + end] == new[new_at + start : new_at + end]

    same, step = 0, _STEP
    while is_same(same, step):
        same += step
        step = min(2 * step, _STEP_MAX)
    while step:
        if is_same(same, step):
            same += step
        step //= 2
    return same


def _member_before(data: bytes, first: int, at: int) -> int:
    # Without escapes the quote before the head of an entry begins its name.
    head = data.rfind(_HEAD, first, at)
    return first if head < 0 else data.rindex(b'"', first, head)


def _meeting(old: bytes, old_frame: Frame, new: bytes, new_frame: Frame) -> tuple[int, int]:
    """Where both texts go on with the same name, or behind a member that both begin with, or at their ends."""
    ours, theirs = all_members(old, old_frame), all_members(new, new_frame)
    mine, other = next(ours, None), next(theirs, None)
    if mine is not None and other is not None and mine[0] == other[0]:
        return min(mine[2] + 1, old_frame.close), min(other[2] + 1, new_frame.close)
    starts = {name: start for name, start, _ in (*_some(mine), *islice(ours, _AHEAD))}
    for name, start, _ in (*_some(other), *islice(theirs, _AHEAD)):
        if name in starts:
            return starts[name], start
    return old_frame.close, new_frame.close


def _some(member: tuple[str, int, int] | None) -> tuple[tuple[str, int, int], ...]:
    return () if member is None else (member,)
