"""Remedies: the table, and what holds for every combination."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

from mire.model.index import Damaged, Entry
from mire.plan.repair import Action, Orphans, Sides, plan_entry, plan_repair
from mire.plan.threeway import Here, Value, plan_pull_of, value_of


def entry(text: str) -> Entry:
    """An entry of some content."""
    return Entry(size_bytes=1, last_modified="t", sha256=text * 64)


A, B, BAD = entry("a"), entry("b"), Damaged(reason="is no entry")
VA, VB = value_of(A), value_of(B)
UNHASHED = Value(size_bytes=1, sha256=None)


@pytest.mark.parametrize(
    ("sides", "action"),
    [
        (Sides(entry=A, stored=None, here=VA), "restore"),
        (Sides(entry=A, stored=VB, here=VA), "restore"),
        (Sides(entry=A, stored=VB, here=None), "leave"),
        (Sides(entry=A, stored=VB, here=VB, agreed=VB), "leave"),
        (Sides(entry=A, stored=VB, here=None, is_vouched=True), "reindex"),
        (Sides(entry=A, stored=VB, here=None, is_disowned=True), "leave"),
        (Sides(entry=A, stored=VB, here=VA, is_young=True), "leave"),
        (Sides(entry=A, stored=None, here=VB), "leave"),
        (Sides(entry=BAD, stored=VB, here=VA), "leave"),
        (Sides(entry=BAD, stored=VB, here=VA, is_vouched=True), "reindex"),
        (Sides(entry=BAD, stored=VB, here=None, agreed=VA), "leave"),
        (Sides(entry=BAD, stored=VB, here=VB, agreed=VA), "reindex"),
        (Sides(entry=BAD, stored=VB, here=None), "reindex"),
        (Sides(entry=BAD, stored=None, here=VA), "restore"),
        (Sides(entry=BAD, stored=None, here=None), "leave"),
        (Sides(entry=None, stored=VA, here=VA), "leave"),
        (Sides(entry=None, stored=VA, here=None, agreed=VA), "adopt"),
        (Sides(entry=None, stored=VB, here=VA, agreed=VA), "leave"),
        (Sides(entry=None, stored=None, here=None, agreed=VA), "leave"),
        (Sides(entry=A, stored=None, here=None, is_unreadable=True), "leave"),
        (Sides(entry=None, stored=VA, here=VA, agreed=VA, is_index_lost=True), "leave"),
    ],
)
def test_the_table(sides: Sides, action: str) -> None:
    """Each case has its remedy when nobody asked for more."""
    assert plan_repair(sides, orphans="leave", drop=False).action == action


@pytest.mark.parametrize(
    ("sides", "orphans", "action"),
    [
        (Sides(entry=None, stored=VA, here=None), "adopt", "adopt"),
        (Sides(entry=None, stored=VA, here=None, is_disowned=True), "adopt", "leave"),
        (Sides(entry=None, stored=VA, here=None), "delete", "leave"),
        (Sides(entry=None, stored=VA, here=VA), "delete", "delete"),
        (Sides(entry=None, stored=VA, here=VB, has_twin=True), "delete", "delete"),
        (Sides(entry=None, stored=VA, here=VA, agreed=VA), "delete", "adopt"),
        (Sides(entry=None, stored=VA, here=VB, agreed=VB, has_twin=True), "delete", "leave"),
        (Sides(entry=None, stored=VA, here=None, agreed=VB), "adopt", "leave"),
        (Sides(entry=None, stored=VA, here=None, agreed=UNHASHED), "adopt", "adopt"),
        (Sides(entry=None, stored=VA, here=VA, agreed=UNHASHED), "delete", "leave"),
        (Sides(entry=A, stored=None, here=None), "leave", "drop"),
        (Sides(entry=A, stored=None, here=VB), "leave", "leave"),
    ],
)
def test_what_is_asked_for(sides: Sides, orphans: Orphans, action: str) -> None:
    """Orphans are listed or deleted, and entries of nothing dropped, only when somebody asks."""
    assert plan_repair(sides, orphans=orphans, drop=True).action == action


VALUES = (None, VA, VB, Value(size_bytes=2, sha256="a" * 64))
FLAGS = (False, True)
SIDES = [
    Sides(
        entry=entry,
        stored=stored,
        here=here,
        agreed=agreed,
        is_vouched=is_vouched,
        is_disowned=is_disowned,
        has_twin=has_twin,
    )
    for entry, stored, here, agreed in product((None, A, B, BAD), VALUES, VALUES, (*VALUES, UNHASHED))
    for is_vouched, is_disowned, has_twin in product(FLAGS, FLAGS, FLAGS)
]
"""Every combination of what matters."""
ASKED = list(product(get_args(Orphans), FLAGS))


def decisions() -> Iterator[tuple[Sides, bool, Action]]:
    """Every remedy, and whether it was asked to drop entries."""
    for sides, (orphans, drop) in product(SIDES, ASKED):
        yield sides, drop, plan_repair(sides, orphans=orphans, drop=drop).action


def test_the_last_copy_is_never_deleted() -> None:
    """Deleted is only what has another copy, dropped only what has no bytes."""
    for sides, drop, action in decisions():
        if action == "delete":
            assert sides.entry is None
            assert sides.has_twin or sides.here == sides.stored
        if action == "drop":
            assert sides.stored is None
            assert drop
        if action == "restore":
            assert sides.here is not None
        if action in ("reindex", "adopt"):
            assert sides.stored is not None


@pytest.mark.parametrize("flag", ["is_young", "is_unreadable", "is_index_lost"])
def test_what_cannot_be_judged_is_left(flag: str) -> None:
    """Nothing is done about an object that is young or cannot be read, or where the index cannot, whoever asks."""
    for sides, (orphans, drop) in product(SIDES, ASKED):
        remedy = plan_repair(replace(sides, **{flag: True}), orphans=orphans, drop=drop)
        assert remedy.action == "leave"
        assert remedy.reason


def entry_of(value: Value | None) -> Entry | None:
    """The entry that describes a value."""
    if value is None:
        return None
    return Entry(size_bytes=value.size_bytes, last_modified="t", sha256=value.sha256)


def repaired(sides: Sides, action: Action) -> tuple[Entry | Damaged | None, Value | None, set[Value | None]]:
    """The entry and the object after a remedy, and what is left of the bytes elsewhere."""
    elsewhere = {sides.stored} if sides.has_twin else set()
    match action:
        case "restore":
            entry = sides.entry if isinstance(sides.entry, Entry) else entry_of(sides.here)
            return entry, sides.here, {*elsewhere, sides.stored}
        case "reindex" | "adopt":
            return entry_of(sides.stored), sides.stored, elsewhere
        case "drop":
            return None, None, elsewhere
        case "delete":
            return sides.entry, None, elsewhere
        case "leave":
            return sides.entry, sides.stored, elsewhere


def pulled(copy: Value | None, base: Entry | None, entry: Entry | Damaged | None, stored: Value | None) -> Value | None:
    """What a cache has after a pull."""
    if isinstance(entry, Damaged):
        return copy
    state: Here = "missing" if copy is None else "same" if base is not None and copy == value_of(base) else "changed"
    match plan_pull_of(state, base, entry, copy):
        case "remove":
            return None if stored is None else copy
        case "download":
            return stored if entry is not None and stored == value_of(entry) else copy
        case _:
            return copy


def test_a_pull_after_a_repair_takes_nothing_away() -> None:
    """Whatever bytes there were in the store and here, they are somewhere after a remedy and a pull."""
    for sides, _, action in decisions():
        if action != "leave" and not sides.is_vouched:
            entry, stored, elsewhere = repaired(sides, action)
            here = pulled(sides.here, entry_of(sides.agreed), entry, stored)
            assert {sides.stored, sides.here} <= {stored, here, None, *elsewhere}, sides


def test_what_the_index_says_is_not_overruled() -> None:
    """A cache that has what the index describes still has it after somebody else repairs, and after its pull."""
    for sides, drop, action in decisions():
        if isinstance(sides.entry, Entry) and not sides.is_vouched and not drop:
            entry, stored, _ = repaired(sides, action)
            assert pulled(value_of(sides.entry), sides.entry, entry, stored) == value_of(sides.entry), sides


@pytest.mark.parametrize(
    ("before", "stored", "is_counting", "is_vouched", "decision"),
    [
        (None, VA, False, False, "describe"),
        (A, VA, True, False, "complete"),
        (replace(A, sha256=None), VA, True, False, "complete"),
        (A, VB, True, False, "keep"),
        (replace(A, size_bytes=7, sha256=None), VB, True, False, "keep"),
        (A, VB, True, True, "describe"),
        (A, VB, False, False, "describe"),
    ],
)
def test_which_of_entry_and_object_a_new_index_believes(
    before: Entry | None,
    stored: Value,
    is_counting: bool,  # noqa: FBT001
    is_vouched: bool,  # noqa: FBT001
    decision: str,
) -> None:
    """The entry, unless it is an old copy, or there is evidence for the object."""
    assert plan_entry(before, stored, is_counting=is_counting, is_vouched=is_vouched) == decision
