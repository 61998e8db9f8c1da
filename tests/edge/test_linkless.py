"""Opening files that no link leads to: the short way and the long one, on real files."""

import os
from pathlib import Path

import pytest

from mire.edge import files
from mire.edge.linkless import Opener, open_regular
from mire.errors import InputError

ALWAYS, NEVER = 0, 1 << 40


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with a file, a link to it, links to directories inside and outside, and a pipe."""
    root = tmp_path.resolve() / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_bytes(b"inside")
    (root / "a" / "link").symlink_to("b/file")
    (root / "inwards").symlink_to("a")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"secret")
    (root / "outwards").symlink_to(outside)
    os.mkfifo(root / "pipe")
    return root


def opened(root: Path, key: str, opener: Opener) -> bytes | None:
    """The bytes that are read, or None."""
    found = open_regular(f"{root}/{key}", str(root), opener)
    return None if found is None else files.read_open(found[0], found[1].st_size, key)


@pytest.mark.parametrize("few", [ALWAYS, NEVER])
def test_both_ways_open_the_same(root: Path, few: int) -> None:
    """A regular file inside is opened, also through a link that stays inside; nothing else is."""
    opener = Opener(few)
    assert opened(root, "a/b/file", opener) == opened(root, "inwards/b/file", opener) == b"inside"
    for key in ("a/link", "a/b", "a/b/none", "a/b/file/none", "pipe"):
        assert opened(root, key, opener) is None
    with pytest.raises(InputError, match="leads out of the datastore"):
        opened(root, "outwards/file", opener)


def test_the_short_way_answers_only_without_links(root: Path) -> None:
    """It opens what has no link in its path, once enough files were opened; it leaves everything else to the other."""
    if (fd := Opener(ALWAYS).open("/")) is None:
        pytest.skip("this system has no openat2")
    os.close(fd)
    opener = Opener(1)
    path = f"{root}/a/b/file"
    assert opener.open(path) is None
    fd = opener.open(path)
    assert fd is not None
    assert files.read_open(fd, 6, path) == b"inside"
    for key in ("a/link", "inwards/b/file", "outwards/file", "a/b/none"):
        assert opener.open(f"{root}/{key}") is None


@pytest.mark.parametrize("size", [0, 3, 9, 10, 11, 4000])
def test_a_file_that_changes_is_read_to_its_end(tmp_path: Path, size: int) -> None:
    """All bytes come, whatever size the file had when somebody looked."""
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert files.read_open(os.open(path, os.O_RDONLY), size, str(path)) == b"0123456789"
