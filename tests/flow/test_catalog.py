"""The catalog follows the files whoever changes them, and heals itself."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mire
from mire.edge.catalog import CatalogFile
from mire.edge.workers import Workers
from mire.flow.catalog import catalog_path, fresh, note, opened, rebuild, refresh
from mire.flow.read import history
from mire.flow.scan import NameScan, scan_names
from mire.model.names import SOLO, DataName


def rows(store: mire.Store, *, force: bool = True) -> list[tuple[Any, ...]]:
    """What the catalog says, after looking."""
    sql = "SELECT model_id, name, version, is_latest, tags, lifecycle FROM version ORDER BY 1, 2, 3"
    with fresh(store.datastore, force=force) as (catalog, _):
        return list(catalog.rows(sql))


def truth(store: mire.Store) -> list[tuple[Any, ...]]:
    """What the files say, read one by one without a catalog."""
    found = []
    for model in store.models():
        for row in model.names():
            latest = row.version
            for entry in history(store.datastore, model.ref, row.name):  # type: ignore[arg-type]
                if entry.metadata is not None:
                    tags = entry.metadata.tags
                    text = "{" + ",".join(f'"{key}":"{value}"' for key, value in tags.items()) + "}"
                    state = "deleted" if entry.metadata.is_deleted else "active"
                    found.append((model.id, row.name, entry.version, int(entry.version == latest), text, state))
    return sorted(found)


@pytest.fixture
def filled(store: mire.Store) -> mire.Store:
    """A store with a few models, and its catalog."""
    for model_id in ("a", "b", "c"):
        for number in range(3):
            store.model("svc/web", model_id).put("state", {"n": number}, tags={"env": "prod"})
    store.model("svc/web", "a").put("log", "x", streaming=True)
    assert rows(store) == truth(store)
    return store


CHANGES: dict[str, Callable[[mire.Model], object]] = {
    "put": lambda model: model.put("state", {"n": 9}),
    "put new": lambda model: model.put("fresh", "x"),
    "append": lambda model: model.append("log", "more"),
    "delete latest": lambda model: model.delete("state", 3),
    "delete middle": lambda model: model.delete("state", 2),
    "delete name": lambda model: model.delete("state"),
    "rename": lambda model: model.rename("state", "status"),
    "mark": lambda model: model.mark_deleted("state"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_writes_are_in_the_catalog_at_once(filled: mire.Store, change: Callable[[mire.Model], object]) -> None:
    """Every verb writes through: no look at the files is needed to see it."""
    change(filled.model("svc/web", "a"))
    sql = "SELECT model_id, name, version, is_latest, tags, lifecycle FROM version ORDER BY 1, 2, 3"
    with opened(filled.datastore) as catalog:
        assert list(catalog.rows(sql)) == truth(filled)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_of_others_are_found(
    filled: mire.Store, repo: Path, tmp_path: Path, change: Callable[[mire.Model], object]
) -> None:
    """Another repository on the same files changes them without telling us; the next look finds it."""
    other = tmp_path / "other"
    other.mkdir()
    change(mire.open(other, datastore=f"filesystem:{repo}/.swamp").model("svc/web", "a"))
    assert rows(filled) == truth(filled)


def test_only_what_changed_is_read_again(filled: mire.Store, repo: Path) -> None:
    """A look after one new version reads one file."""
    old = 1_600_000_000
    for path in sorted((repo / ".swamp/data/svc").rglob("*"), reverse=True):
        os.utime(path, (old, old))
    with opened(filled.datastore) as catalog:
        refresh(filled.datastore, catalog, deep=True)
    version = repo / ".swamp/data/svc/web/b/state/4"
    shutil.copytree(version.with_name("3"), version)
    text = (version / "metadata.yaml").read_text()
    (version / "metadata.yaml").write_text(text.replace("version: 3", "version: 4"))
    (version.parent / "latest").write_text("4")
    with opened(filled.datastore) as catalog:
        done = refresh(filled.datastore, catalog)
    assert (done.read, done.removed, done.names) == (1, 0, 4)
    assert rows(filled) == truth(filled)


def test_vanished_data_leaves_the_catalog(filled: mire.Store, repo: Path) -> None:
    """Rows of a model that was removed by hand go away."""
    shutil.rmtree(repo / ".swamp/data/svc/web/b")
    assert {row[0] for row in rows(filled)} == {"a", "c"}


def test_edited_metadata_is_found_by_a_check(filled: mire.Store, repo: Path) -> None:
    """A metadata file edited in place is read again when every file is compared."""
    path = repo / ".swamp/data/svc/web/b/state/2/metadata.yaml"
    path.write_text(path.read_text().replace("'prod'", "'test'"))
    with opened(filled.datastore) as catalog:
        assert refresh(filled.datastore, catalog, deep=True).read == 1
    assert rows(filled) == truth(filled)


def test_damaged_metadata_is_reported_and_stays_out(filled: mire.Store, repo: Path) -> None:
    """A version that cannot be read is named, not listed, and looked at again every time until it can be."""
    path = repo / ".swamp/data/svc/web/b/state/3/metadata.yaml"
    good = path.read_text()
    path.write_text("not: [valid")
    os.utime(path.parent.parent)
    for _ in range(2):
        with fresh(filled.datastore, force=True) as (_, done):
            assert [str(path.parent) in error for error in done.errors] == [True]
    path.write_text(good)
    assert rows(filled) == truth(filled)


def test_another_datastore_means_another_catalog(filled: mire.Store, repo: Path, tmp_path: Path) -> None:
    """Pointing the repository elsewhere shows what is there, and nothing of before."""
    share = tmp_path / "share"
    share.mkdir()
    other = mire.open(repo, datastore=f"filesystem:{share}")
    assert rows(other) == []
    assert rows(filled) == truth(filled)


def damage_directory(path: Path) -> None:
    """A directory in the catalog's place."""
    path.unlink()
    path.mkdir()


def damage_schema(path: Path) -> None:
    """A newer schema."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"\x00garbage" * 5_000),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut header": lambda path: path.write_bytes(path.read_bytes()[:60]),
    "directory": damage_directory,
    "newer schema": damage_schema,
    "stray wal": lambda path: Path(f"{path}-wal").write_bytes(b"nonsense" * 1_000),
    "stray shm": lambda path: Path(f"{path}-shm").write_bytes(b"nonsense" * 1_000),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_catalog_is_replaced(filled: mire.Store, damage: Callable[[Path], object]) -> None:
    """Whatever is wrong with the file, the next answer is right, and so is the one after a write."""
    damage(Path(catalog_path(filled.datastore)))
    assert rows(filled) == truth(filled)
    damage_again = Path(catalog_path(filled.datastore))
    assert damage_again.is_file()
    damage(damage_again)
    filled.model("svc/web", "a").put("state", {"n": 10})
    assert rows(filled) == truth(filled)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
def test_flipped_bits_anywhere_are_noticed(filled: mire.Store, place: float, mask: int) -> None:
    """One changed byte, wherever it is, never changes an answer."""
    path = Path(catalog_path(filled.datastore))
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= mask
    path.write_bytes(data)
    assert rows(filled) == truth(filled)


def test_a_catalog_that_cannot_be_written_is_built_in_memory(filled: mire.Store) -> None:
    """Where the disk refuses, the answer is still right, with a notice."""
    path = Path(catalog_path(filled.datastore))
    path.unlink()
    expected = truth(filled)
    path.symlink_to("/proc/nowhere/catalog")  # nothing can be created there, by nobody
    with fresh(filled.datastore) as (catalog, done):
        assert catalog.is_in_memory
        assert any("in memory" in notice for notice in done.notices)
        assert catalog.one("SELECT count(*) FROM version") == (len(expected),)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_rebuild_reads_everything(filled: mire.Store, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """Rebuilding gives the same rows, in one process or in several, which are worth it for many names only."""
    monkeypatch.setattr("mire.flow.catalog.BATCH", 1)
    monkeypatch.setattr("mire.flow.catalog._POOL_FROM", 2)
    given: list[str] = []

    class Watched(Workers):
        def submit(self, call: Callable[..., Any], *args: Any) -> Any:
            given.append(call.__name__)
            return super().submit(call, *args)

    monkeypatch.setattr("mire.flow.catalog.Workers", Watched)
    done = rebuild(filled.datastore, workers=workers)
    assert (done.read, done.names, done.errors) == (10, 4, [])
    assert rows(filled) == truth(filled)
    assert given == ["scan_names"] * (3 if workers > 1 else 0)


def test_a_store_without_a_catalog_gets_none_from_writes(store: mire.Store) -> None:
    """Who never asks pays nothing: a put does not create the catalog."""
    store.model("svc", "a").put("state", "x")
    assert not os.path.exists(catalog_path(store.datastore))


def test_processes_share_the_catalog(repo: Path) -> None:
    """Writers find what they just wrote, also while others write and the catalog is thrown away under them."""
    script = Path(__file__).with_name("catalog_race.py")
    done = subprocess.run([sys.executable, script, repo, "6", "20"], capture_output=True, text=True, check=False)
    assert done.stdout == "0 120\n", done.stderr


def test_two_first_looks_at_once_do_not_forget_each_other(store: mire.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find a catalog that knows nothing; the later one leaves what the earlier one read, and answers from."""
    store.model("svc", "web").put("state", "x")
    found = []
    with opened(store.datastore) as late, opened(store.datastore) as early:
        transaction = CatalogFile.transaction

        def overtaken(catalog: CatalogFile) -> AbstractContextManager[None]:
            monkeypatch.setattr(CatalogFile, "transaction", transaction)
            refresh(store.datastore, early)
            return catalog.transaction()

        def watched(root: str, paths: Iterator[str]) -> Iterator[list[NameScan]]:
            found.append(early.one("SELECT count(*) FROM version"))
            return iter([scan_names(root, SOLO, list(paths), {})])

        monkeypatch.setattr(CatalogFile, "transaction", overtaken)
        refresh(store.datastore, late, scanner=watched)
    assert found == [(1,)]


def test_a_look_that_fails_does_not_fail_the_write(filled: mire.Store, repo: Path) -> None:
    """Writing through happens after the write is published, so it tells nobody that the write failed."""
    (repo / ".swamp/data/svc/web/a/state/.highest").mkdir()
    note(filled.datastore, filled.model("svc/web", "a").ref, DataName("state"))


def test_a_dry_rebuild_counts_and_changes_nothing(filled: mire.Store, repo: Path) -> None:
    """Its numbers and errors are those of the rebuild that follows; the catalog stays as it was until then."""
    before = len(rows(filled))
    next((repo / ".swamp/data").rglob("metadata.yaml")).write_text("{")
    planned = rebuild(filled.datastore, dry_run=True)
    with opened(filled.datastore) as catalog:
        assert catalog.one("SELECT count(*) FROM version") == (before,)
    done = rebuild(filled.datastore)
    assert (planned.names, planned.read, planned.errors) == (done.names, done.read, done.errors)
    assert (done.read, len(done.errors)) == (before - 1, 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_rebuild_goes_on_later(store: mire.Store, repo: Path, workers: int) -> None:
    """Stopped in the middle, what was read is kept, and the next look reads the rest."""
    store.model("svc/web", "first").put("state", {"n": 1})
    source = repo / ".swamp/data/svc/web/first"
    for number in range(1, 3000):
        shutil.copytree(source, source.with_name(f"copy-{number}"))

    def stop(count: int) -> None:
        if count >= 500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(store.datastore, workers=workers, progress=stop)
    with opened(store.datastore) as catalog:
        kept = catalog.one("SELECT count(*) FROM version")
        assert kept is not None
        assert 500 <= kept[0] < 3000
    with fresh(store.datastore) as (catalog, done):
        assert catalog.one("SELECT count(*), sum(is_latest) FROM version") == (3000, 3000)
        assert done.read == 3000 - kept[0]
        plans = catalog.rows("EXPLAIN QUERY PLAN SELECT * FROM version WHERE is_latest=1 ORDER BY created_at LIMIT 1")
        assert any("version_by_time" in str(step) for step in plans)


def test_a_key_is_found_by_its_index_whatever_the_order(store: mire.Store, repo: Path) -> None:
    """In a large store a lookup by id does not read all latest versions in the order of their time."""
    store.model("svc/web", "first").put("state", {"n": 1})
    source = repo / ".swamp/data/svc/web/first"
    for number in range(1, 1200):
        shutil.copytree(source, source.with_name(f"copy-{number}"))
    rebuild(store.datastore)
    sql = "EXPLAIN QUERY PLAN SELECT * FROM version WHERE is_latest=1 AND model_id='x' ORDER BY created_at DESC"
    with opened(store.datastore) as catalog:
        assert "version_by_id" in str(list(catalog.rows(sql)))
