"""Readers beside healthy writers see a state there was, never an error about data that exists."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mire

WRITER = """
import sys, mire
model = mire.open(sys.argv[1]).model("svc", "web-1")
for n in range(60):
    {change}
"""
CHANGES = {
    "newest": "model.put('state', 'x' * 50); model.delete('state', model.latest('state'))",
    "oldest": "model.put('state', 'x' * 50); model.delete('state', model.versions('state')[0])",
    "rename": "model.rename('state', f'other-{n}'); model.put('state', 'x' * 50, revive=True)",
    "append": "model.append('log', 'more')",
}


def content_of(found: mire.Artifact) -> str:
    """The content, or how it went away between finding and reading it."""
    try:
        return found.text()
    except mire.NotFoundError as error:
        return error.kind


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_reader_beside_a_writer(store: mire.Store, repo: Path, change: str) -> None:
    """While versions come and go the name always answers, with whole content."""
    model = store.model("svc", "web-1")
    model.put("log", "", streaming=True)
    for _ in range(3):
        model.put("state", "x" * 50)
    program = WRITER.format(change=change)
    with subprocess.Popen([sys.executable, "-c", program, str(repo)]) as writer:
        while writer.poll() is None:
            assert content_of(model.get("log")).strip("more") == ""
            assert content_of(model.get("state")) in ("x" * 50, "deleted")
            assert model.history("state")
    assert writer.returncode == 0


@pytest.mark.parametrize("place", [".swamp/data/svc/web-1/state/latest", ".swamp/data/svc/web-1/.lock"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(store: mire.Store, repo: Path, place: str) -> None:
    """Nobody writes to it, so opening it would wait for ever."""
    model = store.model("svc", "web-1")
    model.put("state", "x")
    path = repo / place
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert model.get("state").text() == "x"
    assert store.locks() is not None


def test_a_link_to_itself_breaks_no_listing(store: mire.Store, repo: Path) -> None:
    """One bad entry does not hide the others."""
    store.model("svc", "web-1").put("state", "x")
    (repo / ".swamp/data/svc/loop").symlink_to("loop")
    assert [model.id for model in store.models()] == ["web-1"]
    with store.hold():
        assert len(store.locks()) == 1


@pytest.mark.parametrize("name", ["state", "fresh"])
def test_a_put_that_cannot_be_published_leaves_nothing(store: mire.Store, repo: Path, name: str) -> None:
    """If `latest` cannot be written the version is taken back: a failed put never becomes history."""
    model = store.model("svc", "web-1")
    model.put("state", "old")
    marker = repo / f".swamp/data/svc/web-1/{name}/latest"
    marker.parent.mkdir(exist_ok=True)
    marker.unlink(missing_ok=True)
    marker.mkdir()
    (marker / "in the way").touch()
    with pytest.raises(mire.MireError):
        model.put(name, "failed")
    (marker / "in the way").unlink()
    marker.rmdir()
    if name == "state":
        marker.write_text("1")
    assert model.put(name, "next").version in (1, 2, 3)
    contents = [model.get(name, number).text() for number in model.versions(name)]
    assert contents == (["old", "next"] if name == "state" else ["next"])


def test_metadata_too_large_to_read_back_is_not_written(store: mire.Store, repo: Path) -> None:
    """Tags beyond what a reader takes are refused before anything is touched."""
    model = store.model("svc", "web-1")
    with pytest.raises(mire.InputError, match="too many"):
        model.put("state", "x", tags={"k": "x" * 2_000_000})
    assert list(repo.iterdir()) == []
