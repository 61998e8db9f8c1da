"""Catalogs kept open: reused while they can be believed, never shared, never inherited."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import mire
from mire.edge.catalogpool import close_kept, open_kept
from mire.model.row import COLUMNS


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a catalog will be."""
    return str(tmp_path / "catalog.sqlite")


def is_open(path: str) -> bool:
    """Whether this process has the file open."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            continue
    return path in found


def test_a_catalog_is_used_again(path: str) -> None:
    """The second use gets the connection of the first; two at once get two."""
    with open_kept(path, COLUMNS) as first:
        pass
    with open_kept(path, COLUMNS) as second, open_kept(path, COLUMNS) as third:
        assert second is first
        assert third is not first
    close_kept(path)
    assert not is_open(path)


def test_one_that_failed_is_not_kept(path: str) -> None:
    """Whatever went wrong inside, the next use starts with a new connection."""
    with pytest.raises(KeyError), open_kept(path, COLUMNS) as first:
        raise KeyError
    with open_kept(path, COLUMNS) as second:
        assert second is not first


@pytest.mark.parametrize("change", ["replaced", "touched", "cut shm", "no shm"])
def test_one_whose_file_changed_is_not_used(path: str, change: str) -> None:
    """A file that is another, or was touched by somebody, is opened and examined anew."""
    with open_kept(path, COLUMNS) as first, first.transaction():
        first.run("INSERT INTO meta VALUES ('a', 'b')")
    if change == "replaced":
        os.rename(path, f"{path}.old")
    elif change == "touched":
        os.utime(path, ns=(1, 1))
    elif change == "cut shm":
        os.truncate(f"{path}-shm", 0)
    else:
        os.unlink(f"{path}-shm")
    with open_kept(path, COLUMNS) as second:
        assert second is not first
        expected = None if change == "replaced" else ("b",)
        assert second.one("SELECT value FROM meta") == expected


def test_no_more_than_a_few_stay_open(tmp_path: Path) -> None:
    """A process that visits many stores does not collect their files."""
    paths = [str(tmp_path / f"{number}.sqlite") for number in range(20)]
    for path in paths:
        with open_kept(path, COLUMNS):
            pass
    assert sum(map(is_open, paths)) == 8
    close_kept()
    assert not any(map(is_open, paths))


def test_threads_and_children_have_their_own(repo: Path) -> None:
    """Threads query and write at once; a forked child works, and leaves the parent's connection alone."""
    program = """
import os, sys, mire
from concurrent.futures import ThreadPoolExecutor
store = mire.open(sys.argv[1])
def work(number):
    store.model("svc", f"web-{number}").put("state", {"n": number})
    return len(store.query(f"modelId == 'web-{number}'"))
with ThreadPoolExecutor(4) as pool:
    assert set(pool.map(work, range(12))) == {1}
child = os.fork()
if child == 0:
    store.model("svc", "child").put("state", {"n": 0})
    os._exit(0 if len(store.query("true")) == 13 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert len(store.query("true")) == 13
"""
    assert subprocess.run([sys.executable, "-c", program, str(repo)], check=False).returncode == 0
    assert len(mire.open(repo).query("true")) == 13


def test_a_closed_store_keeps_nothing_open(store: mire.Store, repo: Path) -> None:
    """Closing gives the file back, and does not keep the store from being used."""
    store.model("svc", "web").put("state", "x")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: len(store.query("true")), range(4)))
    catalogs = [str(found) for found in (repo / ".swamp/data").glob("_catalog.db-mire-*.sqlite")]
    assert any(map(is_open, catalogs))
    store.close()
    assert not any(map(is_open, catalogs))
    assert len(store.query("true")) == 1
