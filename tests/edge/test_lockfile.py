"""A lock file is an inode: created whole, renewed in place, removed only while it is still the same."""

import os
from pathlib import Path

import pytest

from mire.edge import lockfile
from mire.errors import InputError

BODY = b'{"acquiredAt": "2026-05-02T08:00:00.000Z"}'


def always(_body: bytes, _age_ms: int) -> bool:
    """A judge that condemns everything."""
    return True


def never(_body: bytes, _age_ms: int) -> bool:
    """A judge that condemns nothing."""
    return False


def names(directory: Path) -> list[str]:
    """What is in a directory."""
    return sorted(path.name for path in directory.iterdir())


def test_creating_is_exclusive_and_leaves_nothing(tmp_path: Path) -> None:
    """The first creation wins; no temporary stays, and a directory made only to lock in goes with the lock."""
    path = tmp_path / "deep" / ".lock"
    held = lockfile.create(str(path), BODY)
    assert held is not None
    assert lockfile.create(str(path), b"other") is None
    assert path.read_bytes() == BODY
    assert names(path.parent) == [".lock"]
    assert held.release() is True
    assert names(tmp_path) == []
    assert held.release() is True


def test_renewing_writes_in_place(tmp_path: Path) -> None:
    """Renewing changes the given bytes of the same file and refreshes its age."""
    path = tmp_path / ".lock"
    held = lockfile.create(str(path), BODY)
    assert held is not None
    os.utime(path, (1, 1))
    inode = path.stat().st_ino
    assert held.renew(16, b"2026-05-02T08:00:10.000Z") is True
    assert path.read_bytes() == BODY.replace(b"00:00", b"00:10")
    assert path.stat().st_ino == inode
    found = lockfile.look(str(path))
    assert found is not None
    assert found.age_ms < 60_000


def test_a_replaced_lock_is_not_ours(tmp_path: Path) -> None:
    """After a takeover the former holder can neither renew nor remove the file."""
    path = tmp_path / ".lock"
    first = lockfile.create(str(path), BODY)
    second = lockfile.take_over(str(path), b"second", always)
    assert first is not None
    assert second is not None
    assert first.is_current() is False
    assert first.renew(0, b"clobber") is False
    assert first.release() is False
    assert path.read_bytes() == b"second"
    assert second.is_current() is True


def test_a_removed_and_recreated_lock_is_not_ours(tmp_path: Path) -> None:
    """Also a file of equal bytes under the same name is another lock."""
    path = tmp_path / ".lock"
    held = lockfile.create(str(path), BODY)
    assert held is not None
    path.unlink()
    path.write_bytes(BODY)
    assert held.is_current() is False
    assert held.release() is False
    assert path.exists()


def test_only_condemned_locks_are_taken_or_removed(tmp_path: Path) -> None:
    """The judge sees body and age, and its word decides."""
    path = tmp_path / ".lock"
    path.write_bytes(b"theirs")
    stamp = path.stat().st_mtime - 100
    os.utime(path, (stamp, stamp))
    told: list[tuple[bytes, int]] = []

    def judge(body: bytes, age_ms: int) -> bool:
        told.append((body, age_ms))
        return False

    assert lockfile.take_over(str(path), BODY, judge) is None
    assert lockfile.remove(str(path), never) is False
    assert path.read_bytes() == b"theirs"
    assert told[0][0] == b"theirs"
    assert 100_000 <= told[0][1] < 200_000
    assert lockfile.remove(str(path), always) is True
    assert lockfile.remove(str(path), always) is False
    assert lockfile.take_over(str(path), BODY, always) is None
    assert names(tmp_path) == []


def test_a_lock_reached_through_a_link_is_not_touched(tmp_path: Path) -> None:
    """A link in the place of a lock file is neither followed nor replaced."""
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    link = tmp_path / ".lock"
    link.symlink_to(target)
    with pytest.raises(InputError):
        lockfile.remove(str(link), always)
    with pytest.raises(InputError):
        lockfile.take_over(str(link), BODY, always)
    assert target.read_bytes() == b"precious"


def test_without_hard_links_creation_is_still_exclusive(tmp_path: Path) -> None:
    """On file systems without hard links the exclusive creation of the file itself decides."""
    path = tmp_path / ".lock"
    held = lockfile._create_without_links(str(path), BODY)
    assert held is not None
    assert lockfile._create_without_links(str(path), b"other") is None
    assert path.read_bytes() == BODY
    assert held.renew(0, b"{") is True
    assert held.release() is True


def test_a_forked_child_does_not_release(tmp_path: Path) -> None:
    """A child that inherits a held lock object cannot give its parent's lock away."""
    path = tmp_path / ".lock"
    held = lockfile.create(str(path), BODY)
    assert held is not None
    held._pid = os.getpid() + 1  # as in a child: the pid is another one
    assert held.release() is True
    assert path.exists()
