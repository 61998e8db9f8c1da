"""Looking for changes: what is marked is looked at, what failed is kept, and absence needs a record and two looks."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import mire
from mire.edge.objectstore import open_memory
from mire.edge.tree import hash_file
from mire.edge.walk import identity_at
from mire.flow.change import Local, open_look, path_in_cache, rel_of, resolved
from mire.flow.datastore import Datastore
from mire.flow.mark import acknowledge, mark, mark_all, marking, open_cache_state, pending_marks
from mire.model.base import BaseRow
from mire.model.names import Namespace

LONG_AGO_NS = 10**18


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The directory of a cache."""
    path = tmp_path / "cache"
    path.mkdir()
    return path


@pytest.fixture
def ds(repo: Path, cache: Path) -> Datastore:
    """A datastore with a cache of which everything is known."""
    found = mire.open(repo, datastore=f"filesystem:{cache}").datastore
    found = replace(found, remote=open_memory())
    acknowledge(found, pending_marks(found), [], is_bulk=True)
    return found


def fill(ds: Datastore, *rels: str) -> None:
    """Files with their own path as content, last changed long ago."""
    for rel in rels:
        path = Path(ds.tier, rel)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rel)
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def agree(ds: Datastore, *rels: str, is_hydrated: bool = True) -> None:
    """Agree on files as they are, some time after they were written; or on some that are not here."""
    rows = []
    for rel in rels:
        path = str(Path(ds.tier, rel))
        identity = identity_at(path)
        sha256 = hash_file(path).sha256 if identity else "ab" * 32
        later_ns = 0 if identity is None else identity.ctime_ns + 3 * 10**9
        rows.append(
            BaseRow(
                rel=rel,
                entry=b"{}",
                size_bytes=identity.size_bytes if identity else 5,
                sha256=sha256,
                last_modified="",
                partition="p",
                identity=identity if is_hydrated else None,
                looked_ns=later_ns,
            )
        )
    with open_cache_state(ds) as state:
        state.agree(rows)


def both(ds: Datastore, *rels: str) -> None:
    """Files that are here and agreed on."""
    fill(ds, *rels)
    agree(ds, *rels)


def seen(ds: Datastore, *, is_full: bool | None = None) -> tuple[dict[str, str], list[str], bool]:
    """What a look says of each path, by content where need be; the settled marks; and whether it was complete."""
    with open_look(ds, pending_marks(ds), is_full=is_full) as look:
        here = {local.rel: resolved(ds, local).here for local in look}
        return here, sorted(look.settled()), look.is_complete


def looks(ds: Datastore) -> list[Local]:
    """What a look at everything gives out, content unread."""
    with open_look(ds, pending_marks(ds), is_full=True) as look:
        look.looked_ns += 10 * 10**9  # the agreement above lies three seconds ahead
        return list(look)


def test_only_what_is_marked_is_looked_at(ds: Datastore) -> None:
    """New, changed and unchanged files at and below the marks; neighbours are nobody's business."""
    both(ds, "data/a/same", "data/a/changed", "data/ab", "data/c")
    Path(ds.tier, "data/a/changed").write_text("other bytes")
    fill(ds, "data/a/new", "data/new")
    mark(ds, "data/a")
    mark(ds, "data/c")
    here, settled, is_complete = seen(ds)
    assert here == {"data/a/changed": "changed", "data/a/new": "changed", "data/a/same": "same", "data/c": "same"}
    assert (settled, is_complete) == (["data/a", "data/c"], False)


def test_marks_inside_a_marked_directory_are_looked_at_once(ds: Datastore) -> None:
    """A directory and a file in it are marked: one answer per path, and both marks are settled."""
    both(ds, "data/a/1", "data/a/2")
    mark(ds, "data/a")
    mark(ds, "data/a/1")
    with open_look(ds, pending_marks(ds)) as look:
        assert [local.rel for local in look] == ["data/a/1", "data/a/2"]
        assert sorted(look.settled()) == ["data/a", "data/a/1"]


def test_equal_size_and_time_do_not_hide_a_marked_change(ds: Datastore) -> None:
    """A file rewritten with its old time and size is found by its content (hole h)."""
    both(ds, "data/a")
    Path(ds.tier, "data/a").write_text("DATA/A")
    os.utime(Path(ds.tier, "data/a"), ns=(LONG_AGO_NS, LONG_AGO_NS))
    mark(ds, "data/a")
    assert seen(ds)[0] == {"data/a": "changed"}


def test_a_full_look_reads_only_what_it_must(ds: Datastore) -> None:
    """What is certainly the same is passed over; another time, a new inode or a fresh file are judged by content."""
    both(ds, "data/same", "data/touched", "data/copied", "data/fresh")
    os.utime(Path(ds.tier, "data/touched"))
    Path(ds.tier, "data/copied").unlink()
    fill(ds, "data/copied", "data/new")
    with open_cache_state(ds) as state:
        fresh = state.base_of(["data/fresh"])["data/fresh"]
        state.identify([("data/fresh", fresh.identity, fresh.looked_ns - 2 * 10**9)])
    here = {local.rel: local.here for local in looks(ds)}
    expected = {"copied": "hash", "fresh": "hash", "new": "changed", "touched": "hash"}
    assert here == {f"data/{name}": verdict for name, verdict in expected.items()}
    found = seen(ds, is_full=True)[0]
    assert (found.pop("data/new"), set(found.values())) == ("changed", {"same"})


def test_what_is_gone_was_removed_only_if_somebody_said_so(ds: Datastore) -> None:
    """A recorded path that is gone was removed; the same without a record, or never fetched, is just missing."""
    both(ds, "data/v/1/metadata.yaml", "data/lost", "data/w/2/metadata.yaml")
    agree(ds, "data/v/1/raw", "data/w/2/raw", is_hydrated=False)
    with marking(ds, removing=[f"{ds.tier}/data/v/1"]):
        Path(ds.tier, "data/v/1/metadata.yaml").unlink()
    Path(ds.tier, "data/lost").unlink()
    mark(ds, "data/w/2")
    expected = {"data/v/1/metadata.yaml": "removed", "data/v/1/raw": "removed"}
    expected |= {"data/w/2/metadata.yaml": "same", "data/w/2/raw": "missing"}
    assert seen(ds)[0] == expected
    assert seen(ds, is_full=True)[0] == expected | {"data/lost": "missing"}


def test_a_bulk_mark_does_not_drop_a_recorded_removal(ds: Datastore) -> None:
    """Looking at everything finds the removal that was recorded by path, and calls nothing else one (hole a)."""
    both(ds, "data/x", "data/y")
    with marking(ds, removing=["data/x"]):
        Path(ds.tier, "data/x").unlink()
    Path(ds.tier, "data/y").unlink()
    mark_all(ds)
    here, settled, is_complete = seen(ds)
    assert here == {"data/x": "removed", "data/y": "missing"}
    assert (settled, is_complete) == (["data/x"], True)


def test_a_directory_another_client_removed_as_a_whole(ds: Datastore) -> None:
    """A marked directory that is gone took along what was never fetched, too."""
    both(ds, "data/v/1/metadata.yaml")
    agree(ds, "data/v/1/raw", is_hydrated=False)
    Path(ds.tier, "data/v/1/metadata.yaml").unlink()
    Path(ds.tier, "data/v/1").rmdir()
    mark(ds, "data/v/1")
    assert seen(ds)[0] == {"data/v/1/metadata.yaml": "removed", "data/v/1/raw": "removed"}


def test_what_peers_added_is_not_ours_to_remove(ds: Datastore) -> None:
    """Below a marked directory only paths of our own base can be gone (hole i, A9)."""
    both(ds, "data/d/mine")
    mark(ds, "data/d")
    assert seen(ds)[0] == {"data/d/mine": "same"}


def test_a_mark_before_the_write_means_nothing_yet(ds: Datastore) -> None:
    """A marked path that is neither here nor in the base gives nothing out, and is settled by whoever decides so."""
    mark(ds, "data/soon")
    assert seen(ds)[0] == {}


def test_what_somebody_is_writing_is_left_for_later(ds: Datastore) -> None:
    """Below an open mark nothing is given out and nothing settled, by path or in a look at everything (hole g)."""
    both(ds, "data/a/1", "data/b")
    mark(ds, "data/a/1")
    with marking(ds, "data/a"):
        Path(ds.tier, "data/a/1").unlink()
        mark(ds, "data/b")
        assert seen(ds)[:2] == ({"data/b": "same"}, ["data/b"])
        here, settled, is_complete = seen(ds, is_full=True)
        assert (here, settled, is_complete) == ({"data/b": "same"}, ["data/b"], True)
    assert seen(ds)[0] == {"data/a/1": "removed", "data/b": "same"}


def test_links_in_a_marked_directory_remove_nothing(ds: Datastore) -> None:
    """A dangling link, and one in the place of a file that was agreed on: told, and everything else goes on (A4)."""
    both(ds, "data/d/a", "data/d/latest", "data/d/sub/x")
    for name in ("latest", "sub"):
        os.rename(Path(ds.tier, "data/d", name), Path(ds.base, f"moved-{name}"))
        Path(ds.tier, "data/d", name).symlink_to("nowhere" if name == "latest" else Path(ds.base, "moved-sub"))
    mark(ds, "data/d")
    with open_look(ds, pending_marks(ds)) as look:
        assert [(local.rel, resolved(ds, local).here) for local in look] == [("data/d/a", "same")]
        assert sorted((each.path, each.kind) for each in look.troubles) == [
            ("data/d/latest", "link"),
            ("data/d/sub", "link"),
        ]
        assert look.settled() == ["data/d"]


def unlisted(ds: Datastore) -> str:
    """A directory whose path is too long to be listed, with an agreed file in it; its path."""
    rel, name = "data", "d" * 50
    os.makedirs(Path(ds.tier, rel), exist_ok=True)
    fd = os.open(Path(ds.tier, rel), os.O_RDONLY)
    while len(os.fsencode(ds.tier)) + len(rel) < 4_096:
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd, rel = inner, f"{rel}/{name}"
    os.close(fd)
    return rel


def test_a_look_that_failed_removes_nothing_and_keeps_the_mark(ds: Datastore) -> None:
    """Nothing at or below a path that could not be looked at is told to be gone; its mark stays (X3, X5, A5)."""
    deep = unlisted(ds)
    fill(ds, "data/z")
    agree(ds, "data/z")
    with open_cache_state(ds) as state:
        row = state.base_of(["data/z"])["data/z"]
        state.agree([replace(row, rel=f"{deep}/raw")])
    top = "/".join(deep.split("/")[:2])
    with marking(ds, removing=[top]):
        mark(ds, "data/z")
    mark_all(ds)
    here, settled, is_complete = seen(ds)
    assert (here, settled, is_complete) == ({"data/z": "same"}, ["data/z"], False)
    assert seen(ds, is_full=False)[:2] == ({"data/z": "same"}, ["data/z"])


def test_what_could_not_be_dealt_with_keeps_its_mark(ds: Datastore) -> None:
    """Whoever decides can hand a path back: its own mark and those above it are not settled."""
    both(ds, "data/a/1", "data/b")
    mark(ds, "data/a")
    mark(ds, "data/b")
    with open_look(ds, pending_marks(ds), is_full=True) as look:
        for local in look:
            if local.rel == "data/a/1":
                look.leave(local.rel)
        assert (look.settled(), look.is_complete) == (["data/b"], False)


def test_a_cache_that_is_gone_proves_nothing(ds: Datastore, tmp_path: Path) -> None:
    """The directory of our part is not there: nothing is removed, nothing settled, nothing complete."""
    other = replace(ds, config=replace(ds.config, namespace=Namespace("team-a")))
    both(other, "data/a")
    mark(other, f"{other.tier}/data/a")
    Path(other.tier).rename(tmp_path / "elsewhere")
    assert seen(other) == ({}, [], False)


def test_internal_files_are_nobodys_business(ds: Datastore) -> None:
    """Locks, temporary files, the index and the journal are not looked at, and their marks are settled."""
    fill(ds, "data/a", "data/.lock", "data/_catalog.db-1.tmp", "_index/x.json", "_control/y", ".datastore-index.json")
    mark(ds, "data/.lock")
    here, settled, is_complete = seen(ds, is_full=True)
    assert (here, settled, is_complete) == ({"data/a": "changed"}, ["data/.lock"], True)


@pytest.fixture
def team(ds: Datastore) -> Datastore:
    """The same cache, in a namespace."""
    found = replace(ds, config=replace(ds.config, namespace=Namespace("team-a")))
    acknowledge(found, pending_marks(found), [], is_bulk=True)
    return found


def test_a_path_outside_the_namespace_is_not_ours(team: Datastore) -> None:
    """A mark without the namespace is not taken for the path of the same name inside it (A12)."""
    both(team, "data/a")
    Path(team.tier, "data/a").unlink()
    mark(team, "data/a")
    mark(team, "team-ab/data/a")
    assert seen(team)[:2] == ({}, ["data/a", "team-ab/data/a"])
    assert [rel_of(team, path) for path in ("team-a/data/a", "team-a", "data/a")] == ["data/a", "", None]
    assert path_in_cache(team, "data/a") == "team-a/data/a"


def test_a_mark_of_the_whole_namespace_is_a_look_at_everything(team: Datastore) -> None:
    """It names nothing by path, so nothing below it counts as removed."""
    both(team, "data/a", "data/b")
    Path(team.tier, "data/a").unlink()
    mark(team, "team-a/")
    with open_look(team, pending_marks(team)) as look:
        here = {local.rel: local.here for local in look}
        assert (look.is_full, here["data/a"], look.settled()) == (True, "missing", ["team-a"])


def test_without_a_namespace_those_of_others_are_left_alone(ds: Datastore) -> None:
    """A directory of somebody who has a namespace is not part of ours."""
    fill(ds, "data/a", "team-b/data/b", "team-b/.namespace.json", "plain/c")
    assert set(seen(ds, is_full=True)[0]) == {"data/a", "plain/c"}


def test_every_verb_leaves_what_a_look_finds(ds: Datastore) -> None:
    """After the verbs of a day a look at the marks finds what a look at everything finds."""
    from mire.api import Store  # noqa: PLC0415 - only here

    model = Store(ds).model("svc", "web-1")
    for text in "abc":
        model.put("state", text)
    model.put("log", "one\n", streaming=True)
    with open_look(ds, pending_marks(ds)) as look:
        agreed = [local.rel for local in look]
    agree(ds, *agreed)
    acknowledge(ds, pending_marks(ds), (record.path for record in pending_marks(ds).records))
    model.append("log", "two\n")
    model.delete("state", 2)
    model.rename("state", "status")
    model.delete("log")
    model.hold_back("status")
    marked, settled, _ = seen(ds)
    everything = seen(ds, is_full=True)[0]
    assert set(settled) == {record.path for record in pending_marks(ds).records}
    assert differing(marked.items()) == differing(everything.items())
    assert "missing" not in everything.values()


def differing(here: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What is not as agreed."""
    return {rel: verdict for rel, verdict in here if verdict != "same"}
