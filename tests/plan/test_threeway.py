"""Decisions between three sides: the table, and what holds for every combination."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.model.index import Entry
from mire.model.names import RelPath
from mire.plan.commit import Changes, plan_commit
from mire.plan.lazy import is_left_out
from mire.plan.threeway import Here, Pull, Push, Value, is_equal, plan_pull_of, plan_push_of, there_of, value_of


def entry(text: str, *, sha256: bool = True, modified: str = "t") -> Entry:
    """An entry of some content."""
    return Entry(size_bytes=1, last_modified=modified, sha256=text * 64 if sha256 else None)


A, B, C = entry("a"), entry("b"), entry("c")
SIDES = st.sampled_from([None, A, B, C])


@pytest.mark.parametrize(
    ("here", "base", "remote", "push", "pull"),
    [
        ("same", A, A, "nothing", "nothing"),
        ("changed", A, A, "upload", "nothing"),
        ("changed", None, None, "upload", "nothing"),
        ("same", A, B, "nothing", "download"),
        ("missing", None, B, "nothing", "download"),
        ("changed", A, B, "conflict", "conflict"),
        ("changed", None, B, "conflict", "conflict"),
        ("removed", A, A, "remove", "nothing"),
        ("removed", A, B, "conflict", "conflict"),
        ("removed", A, None, "forget", "forget"),
        ("same", A, None, "nothing", "remove"),
        ("changed", A, None, "conflict", "conflict"),
        ("missing", A, A, "nothing", "download"),
        ("missing", A, None, "nothing", "forget"),
        ("removed", None, None, "forget", "forget"),
    ],
)
def test_the_table(here: Here, base: Entry | None, remote: Entry | None, push: Push, pull: Pull) -> None:
    """Each row of the protocol's table, for both directions."""
    local = value_of(C) if here == "changed" else None
    assert plan_push_of(here, base, remote, local) == push
    assert plan_pull_of(here, base, remote, local) == pull


@given(st.sampled_from(get_args(Here)), SIDES, SIDES)
def test_nothing_is_overwritten_that_the_other_side_has_not_seen(
    here: Here, base: Entry | None, remote: Entry | None
) -> None:
    """A push writes only over what it knows; a pull replaces or removes only what did not change here."""
    local = value_of(C) if here == "changed" else None
    push, pull = plan_push_of(here, base, remote, local), plan_pull_of(here, base, remote, local)
    if push in ("upload", "remove"):
        assert here in ("changed", "removed")
        assert is_equal(base, remote)
    if pull in ("download", "remove"):
        assert here in ("same", "missing")
    if push == "agree" or pull == "agree":
        assert remote is not None
        assert local == value_of(remote)


def test_what_tells_two_entries_apart() -> None:
    """Hashes where both have them; else size and time must agree, and one with a hash is not one without."""
    assert is_equal(A, replace(A, last_modified="other"))
    assert not is_equal(A, B)
    assert not is_equal(A, entry("a", sha256=False))
    assert is_equal(entry("a", sha256=False), entry("b", sha256=False))
    assert not is_equal(entry("a", sha256=False), entry("a", sha256=False, modified="other"))
    assert there_of(A, None) == "removed"
    assert there_of(None, A) == "changed"
    assert there_of(None, None) == "same"


@given(st.dictionaries(st.sampled_from("pqrs"), SIDES), st.dictionaries(st.sampled_from("pqrs"), SIDES), SIDES)
def test_a_commit_changes_only_what_is_as_it_was(
    current: dict[str, Entry | None], wanted: dict[str, Entry | None], expected: Entry | None
) -> None:
    """A path with another value than was decided on is lost, one that says it already is skipped, others written."""
    changes = Changes(
        upserts={RelPath(rel): new for rel, new in wanted.items() if new is not None},
        removals=frozenset(RelPath(rel) for rel, new in wanted.items() if new is None),
        expected={RelPath(rel): expected for rel in wanted},
    )
    merge = plan_commit(changes, current.get)
    for text, new in wanted.items():
        rel, now = RelPath(text), current.get(text)
        if is_equal(now, new):
            assert rel not in {*merge.upserts, *merge.removals, *merge.lost}
        elif is_equal(now, expected):
            assert (merge.upserts.get(rel), rel in merge.removals) == (new, new is None)
        else:
            assert rel in merge.lost


@pytest.mark.parametrize(
    ("rel", "expected"),
    [
        ("data/t/m/n/1/raw", True),
        ("data/x/raw", True),
        ("data/raw", False),
        ("data/t/m/n/1/metadata.yaml", False),
        ("data/t/m/n/latest", False),
        ("outputs/t/m/raw", False),
        ("data/t/m/n/1/draw", False),
    ],
)
def test_what_a_lazy_pull_leaves_out(rel: str, expected: bool) -> None:  # noqa: FBT001 - a table
    """Content below `data`, and nothing else."""
    assert is_left_out(rel) is expected


def test_a_value_compares_size_and_hash() -> None:
    """The same hash with another size is another value."""
    assert value_of(A) == Value(size_bytes=1, sha256="a" * 64)
    assert value_of(A) != Value(size_bytes=2, sha256="a" * 64)
