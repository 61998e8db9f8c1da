"""Marked paths, and the sidecar that shows marks to other clients."""

from dataclasses import replace

import pytest

from mire.model.state import ETAG, Sidecar
from mire.plan.mark import Strange, cache_path, is_at_or_below, plan_cleared, plan_shown, strange_marks
from mire.wire.sidecar import PATHS_MAX

CACHE = "/home/ada/.swamp/repos/r1"
CLEAN = Sidecar(kind=ETAG, fingerprint="e1", last_verified_at="2026-05-02T08:00:00.000Z", extra={"later": 1})
MANY = tuple(f"data/{number}" for number in range(PATHS_MAX))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("data/a", "data/a"),
        ("data/a/", "data/a"),
        ("./data//a/../b", "data/b"),
        ("team/data/a", "team/data/a"),
        (f"{CACHE}/data/a", "data/a"),
        (f"{CACHE}//data/a/", "data/a"),
        (f"{CACHE}/../r1/data/a", "data/a"),
        ("..data/a", "..data/a"),
        ("data\\a", "data\\a"),
        ("", None),
        (".", None),
        ("data/..", None),
        ("..", None),
        ("../r1/data/a", None),
        ("data/../../x", None),
        ("/", None),
        ("/etc/passwd", None),
        (CACHE, None),
        (f"{CACHE}/", None),
        (f"{CACHE}2/data/a", None),
        ("data/\0", None),
        ("data/\udce9", None),
    ],
)
def test_paths_are_relative_to_the_cache(path: str, expected: str | None) -> None:
    """Forward slashes, no final one, no way out; the cache itself and what is not in it cannot be named."""
    assert cache_path(path, CACHE) == expected


@pytest.mark.parametrize(
    ("path", "tops", "expected"),
    [
        ("a/b/c", {"a/b"}, True),
        ("a/b", {"a/b"}, True),
        ("a/bc", {"a/b"}, False),
        ("a", {"a/b"}, False),
        ("a/b", {""}, True),
        ("a/b", set(), False),
    ],
)
def test_below_is_below_a_slash(*, path: str, tops: set[str], expected: bool) -> None:
    """A path is below a directory, not below what its name begins with."""
    assert is_at_or_below(path, tops) == expected


def test_paths_are_listed_up_to_the_limit() -> None:
    """The 200th path is listed; the 201st makes it bulk and is not, and the flag that deletes is never set."""
    full = plan_shown(CLEAN, MANY, is_bulk=False, kind=ETAG)
    assert (full.dirty_paths, full.bulk_invalidated, full.local_dirty) == (MANY, False, True)
    over = plan_shown(full, ["data/one-more"], is_bulk=False, kind=ETAG)
    assert (over.dirty_paths, over.bulk_invalidated, over.local_dirty) == (MANY, True, True)
    assert over.dirty_paths_overflowed is None
    assert plan_shown(over, ["data/another"], is_bulk=False, kind=ETAG) == over
    assert plan_shown(full, MANY[:5], is_bulk=False, kind=ETAG) == full


def test_a_longer_list_of_a_newer_client_is_kept() -> None:
    """A newer reference lists more paths; none of them is dropped, and ours does not fit."""
    long = replace(CLEAN, local_dirty=True, dirty_paths=tuple(f"x/{number}" for number in range(500)))
    shown = plan_shown(long, ["data/a"], is_bulk=False, kind=ETAG)
    assert (shown.dirty_paths, shown.bulk_invalidated) == (long.dirty_paths, True)


def test_a_path_that_is_listed_already_makes_a_clean_sidecar_dirty() -> None:
    """What the reference forgets after a commit (A1): the flag is set again although the path is in the list."""
    stale = replace(CLEAN, dirty_paths=("data/a",))
    assert plan_shown(stale, ["data/a"], is_bulk=False, kind=ETAG).local_dirty


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (None, Strange(is_bulk=True)),
        (CLEAN, Strange()),
        (replace(CLEAN, local_dirty=True), Strange(is_bulk=True)),
        (replace(CLEAN, local_dirty=True, dirty_paths=("a", "b/", "a")), Strange(paths=("a", "b"))),
        (replace(CLEAN, dirty_paths=("a",)), Strange(paths=("a",))),
        (replace(CLEAN, dirty_paths=("a",), bulk_invalidated=True), Strange(paths=("a",), is_bulk=True)),
        (replace(CLEAN, dirty_paths=("a",), dirty_paths_overflowed=True), Strange(paths=("a",), is_bulk=True)),
        (replace(CLEAN, dirty_paths=("a", "../x")), Strange(paths=("a",), is_bulk=True)),
        (replace(CLEAN, version=1, local_dirty=True), Strange(is_bulk=True)),
        (replace(CLEAN, version=1), Strange()),
    ],
)
def test_what_another_clients_sidecar_says(seen: Sidecar | None, expected: Strange) -> None:
    """Listed paths count whatever the flags say; dirt without a name, and a sidecar that is lost, mean everything."""
    assert strange_marks(seen, cache=CACHE) == expected


def test_clearing_keeps_what_is_left() -> None:
    """Only what is no longer marked leaves the list; flags go when nothing at all is left, all else stays."""
    dirty = replace(
        CLEAN,
        local_dirty=True,
        dirty_paths=("a", "b"),
        bulk_invalidated=True,
        dirty_paths_overflowed=True,
        commit_seq=4,
    )
    some = plan_cleared(dirty, {"b"}, is_clear=False, kind=ETAG)
    assert some == replace(dirty, dirty_paths=("b",))
    none = plan_cleared(dirty, set(), is_clear=True, kind=ETAG)
    assert none == replace(CLEAN, dirty_paths_overflowed=False, commit_seq=4)


def test_a_sidecar_of_ours_in_the_place_of_none_still_says_look_at_everything() -> None:
    """A reference that finds none looks at everything and deletes nothing: the one we make must not change that."""
    made = plan_shown(None, ["a"], is_bulk=False, kind=ETAG)
    assert (made.version, made.local_dirty, made.bulk_invalidated, made.lazy_pull_active) == (2, True, True, True)
    assert made.dirty_paths_overflowed is None


@pytest.mark.parametrize("is_dirty", [True, False])
def test_the_first_version_becomes_the_second(*, is_dirty: bool) -> None:
    """A dirty sidecar of version 1 does not say what is dirty: in version 2 that is bulk."""
    first = replace(CLEAN, version=1, local_dirty=is_dirty)
    shown = plan_shown(first, ["a"], is_bulk=False, kind=ETAG)
    assert (shown.version, shown.bulk_invalidated, shown.local_dirty) == (2, is_dirty, True)
    assert (shown.fingerprint, shown.extra) == (CLEAN.fingerprint, CLEAN.extra)
