"""Remedies: the table, and what holds for every combination."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.model.index import Damaged, Entry
from mire.plan.repair import Orphans, Sides, plan_entry, plan_repair
from mire.plan.threeway import Value, value_of


def entry(text: str) -> Entry:
    """An entry of some content."""
    return Entry(size_bytes=1, last_modified="t", sha256=text * 64)


A, B, BAD = entry("a"), entry("b"), Damaged(reason="is no entry")
VA, VB = value_of(A), value_of(B)


@pytest.mark.parametrize(
    ("sides", "action"),
    [
        (Sides(entry=A, stored=None, here=VA), "restore"),
        (Sides(entry=A, stored=VB, here=VA), "restore"),
        (Sides(entry=A, stored=VB, here=None), "reindex"),
        (Sides(entry=A, stored=VB, here=None, is_disowned=True), "leave"),
        (Sides(entry=A, stored=VB, here=VA, is_young=True), "leave"),
        (Sides(entry=A, stored=None, here=VB), "leave"),
        (Sides(entry=BAD, stored=VB, here=VA), "reindex"),
        (Sides(entry=BAD, stored=None, here=VA), "restore"),
        (Sides(entry=BAD, stored=None, here=None), "leave"),
        (Sides(entry=None, stored=VA, here=VA), "leave"),
        (Sides(entry=None, stored=VA, here=None, is_agreed=True), "adopt"),
        (Sides(entry=None, stored=None, here=None, is_agreed=True), "leave"),
        (Sides(entry=A, stored=None, here=None, is_unreadable=True), "leave"),
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
        (Sides(entry=A, stored=None, here=None), "leave", "drop"),
    ],
)
def test_what_is_asked_for(sides: Sides, orphans: Orphans, action: str) -> None:
    """Orphans are listed or deleted, and entries of nothing dropped, only when somebody asks."""
    assert plan_repair(sides, orphans=orphans, drop=True).action == action


VALUES = st.sampled_from([None, VA, VB, Value(size_bytes=2, sha256="a" * 64)])
SIDES = st.builds(
    Sides,
    entry=st.sampled_from([None, A, B, BAD]),
    stored=VALUES,
    here=VALUES,
    is_young=st.booleans(),
    is_unreadable=st.booleans(),
    is_disowned=st.booleans(),
    is_agreed=st.booleans(),
    has_twin=st.booleans(),
)


@given(SIDES, st.sampled_from(get_args(Orphans)), st.booleans())
def test_the_last_copy_is_never_deleted(sides: Sides, orphans: Orphans, drop: bool) -> None:  # noqa: FBT001
    """Deleted is only what has another copy, dropped only what has no bytes; nothing that is young is touched."""
    remedy = plan_repair(sides, orphans=orphans, drop=drop)
    if remedy.action == "delete":
        assert sides.entry is None
        assert sides.has_twin or sides.here == sides.stored
    if remedy.action == "drop":
        assert sides.stored is None
        assert drop
    if remedy.action == "restore":
        assert sides.here is not None
    if remedy.action in ("reindex", "adopt"):
        assert sides.stored is not None
    if sides.is_young or sides.is_unreadable:
        assert remedy.action == "leave"
    assert remedy.reason


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
