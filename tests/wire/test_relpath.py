"""Paths from a remote: which never cross, and which are never followed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import rels
from mire.errors import InputError
from mire.model.names import parse_rel_path
from mire.wire import layout
from mire.wire.relpath import check_rel, is_internal, tenant_of

INTERNAL = (
    *(".datastore-index.json", ".push-queue.json", ".datastore.lock", ".datastore-sync-state.json", "_index"),
    *("_index/_meta.json", "_index/a/b", "_control", "_control/heartbeats/x", ".lock", "data/a/b/.lock"),
    *(".namespace.json", "other/.namespace.json", "_catalog.db", "data/_catalog.db", "data/_catalog.db-wal"),
    *(f"data/a/b/{layout.INTENT}", f"data/{layout.TEMPORARY_PREFIX}x{layout.TEMPORARY_SUFFIX}"),
)
SYNCED = (
    *("data/a/b/c/1/raw", "data/.datastore-index.json", "data/_index/x", "data/_control", ".locks/a.lock"),
    *("_indexes/a", ".catalog-export.json", ".1234.tmp", "_catalog.dbx", "_catalog.db-x/a", "data/a/.hold"),
    *("data/a/.highest", "a.lock"),
)


@pytest.mark.parametrize(("rel", "wanted"), [*((rel, True) for rel in INTERNAL), *((rel, False) for rel in SYNCED)])
def test_internal_paths(rel: str, wanted: object) -> None:
    """The table of the format, and our own private names."""
    assert is_internal(rel) is wanted


@pytest.mark.parametrize(
    "rel",
    [
        *("", " ", "/etc/passwd", "//a", "a//b", "a/", "/", ".", "..", "../a", "a/../b", "a/..", "./a", "a/./b"),
        *(
            "a\\b",
            "..\\a",
            "\\a",
            "C:/a",
            "c:\\a",
            "C:a",
            "c:",
            "a\x00b",
            "a\nb",
            "a\x1b",
            "a\x7f",
            "\ud800",
            "a/\udfff",
        ),
        *("a" * 256, "ä" * 128, "a/" * 2048 + "a", f"data/{'a' * 256}", "/".join(["ä" * 100] * 21)),
    ],
)
def test_hostile_paths_are_refused_with_a_reason(rel: str) -> None:
    """Each way out of a cache, and each name no file can have, has a reason in one line."""
    reason = check_rel(rel)
    assert reason
    assert "\n" not in reason


@pytest.mark.parametrize(
    "rel",
    ["a", "data/aws/ec2/vpc/9a35/100%-done/1/raw", "data/a/b/käse-日本語/🐊/1", "data/@x/a b/..c", "a" * 255, ".x/y:z"],
)
def test_usual_paths_are_followed(rel: str) -> None:
    """What clients write has no reason against it."""
    assert check_rel(rel) is None


@given(rels() | st.text("ab./\\:-_@", max_size=12))
def test_what_is_followed_stays_inside(rel: str) -> None:
    """No accepted path is absolute or climbs, and none that our own paths allow is refused for its form."""
    if check_rel(rel) is None:
        assert parse_rel_path(rel) == rel
        assert not set(rel.split("/")) & {"", ".", ".."}
    else:
        try:
            parse_rel_path(rel)
        except InputError:
            return
        assert rel[1:2] == ":"


@pytest.mark.parametrize(
    ("rel", "tenant"),
    [
        ("team-a/data/x", "team-a"),
        ("team-a/.namespace.json", "team-a"),
        ("team-a/_index/_meta.json", "team-a"),
        ("data/data/x", None),
        ("outputs/data/x", None),
        ("config/data/x", None),
        ("_index/data/x", None),
        ("Team/data/x", None),
        ("team-a/other/x", None),
        ("team-a/files/x", None),
        ("team-a", None),
        ("", None),
    ],
)
def test_the_part_of_another_tenant_is_told_by_its_shape(rel: str, tenant: str | None) -> None:
    """A slug and then a directory of a datastore; a directory of a datastore is never a tenant."""
    assert tenant_of(rel) == tenant
