"""Files are replaced whole and durably, links are not followed out, and system errors become ours."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mire.edge import files
from mire.edge.boundary import Boundary
from mire.errors import DeniedError, FormatError, InputError, MireError, NotFoundError, RemoteError
from mire.testing.crash import _is_file_operation


def operations(call: Callable[[], object]) -> list[str]:
    """The file operations of a call, by name, in order."""
    seen: list[str] = []

    def hook(_frame: object, event: str, function: Any) -> None:
        if event == "c_call" and _is_file_operation(function):
            seen.append(function.__name__)

    sys.setprofile(hook)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def test_write_file_is_durable_step_by_step(tmp_path: Path) -> None:
    """Bytes are synced under a temporary name before the rename, and the directory after it."""
    seen = operations(lambda: files.write_file(str(tmp_path / "f"), [b"x"]))
    assert seen == ["open", "open", "write", "flush", "fsync", "__exit__", "replace", "open", "fsync", "close"]


def test_new_directories_are_synced_into_their_parents(tmp_path: Path) -> None:
    """Each directory made is followed by a sync of the one that holds it."""
    seen = operations(lambda: files.make_dirs(str(tmp_path / "a" / "b")))
    assert seen == ["mkdir", "open", "fsync", "close"] * 2


def test_removing_is_durable(tmp_path: Path) -> None:
    """A removal is followed by a sync of the directory."""
    (tmp_path / "f").touch()
    assert operations(lambda: files.remove_file(str(tmp_path / "f"))) == ["unlink", "open", "fsync", "close"]
    assert files.remove_file(str(tmp_path / "f")) is False


def test_growing_syncs_before_it_returns(tmp_path: Path) -> None:
    """Appended bytes are on disk before anything can count them; a dead writer's tail is cut off first."""
    path = tmp_path / "f"
    path.write_bytes(b"good" + b"torn")
    seen = operations(lambda: files.grow_file(str(path), 4, [b"!"]))
    assert seen.index("truncate") < seen.index("write") < seen.index("fsync")
    assert path.read_bytes() == b"good!"


def test_write_file_reports_what_went_in(tmp_path: Path) -> None:
    """Size and SHA-256 are computed while writing."""
    written = files.write_file(str(tmp_path / "f"), [b"ab", b"c"])
    assert written.size_bytes == 3
    assert written.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_failed_write_leaves_the_old_file_and_no_temporary(tmp_path: Path) -> None:
    """If the content cannot be read to its end, nothing changes."""
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def chunks() -> Iterator[bytes]:
        yield b"new"
        raise InputError("broken")

    with pytest.raises(InputError):
        files.write_file(str(path), chunks())
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("f", b"old")]


def test_temporary_names_are_never_synced(tmp_path: Path) -> None:
    """Temporary files have the one prefix that every client excludes at every depth."""
    name = os.path.basename(files.temporary_beside(str(tmp_path / "f")))
    assert name.startswith("_catalog.db-")
    assert name.endswith(".tmp")


def test_create_file_never_replaces(tmp_path: Path) -> None:
    """Creating is exclusive: the second one changes nothing and leaves no temporary."""
    path = tmp_path / "f"
    assert files.create_file(str(path), b"first") is True
    assert files.create_file(str(path), b"second") is False
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("f", b"first")]


def test_claiming_a_directory_is_exclusive(tmp_path: Path) -> None:
    """A directory can be claimed once."""
    assert files.claim_dir(str(tmp_path / "1")) is True
    assert files.claim_dir(str(tmp_path / "1")) is False


def test_remove_tree_does_not_follow_links(tmp_path: Path) -> None:
    """Removing a tree removes links in it, not what they point to."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep" / "link").symlink_to(outside)
    (tree / "file").touch()
    files.remove_tree(str(tree))
    assert not tree.exists()
    assert (outside / "keep").exists()
    files.remove_tree(str(tree))


def _check_among_many(path: str, root: str) -> None:
    boundary = Boundary(root)
    for _ in range(2):
        boundary.check(path)


checkers = pytest.mark.parametrize("check", [files.check_inside, _check_among_many])


@checkers
@pytest.mark.parametrize("target", ["..", "../..", "/etc", "../sibling"])
def test_links_that_lead_out_are_refused(tmp_path: Path, target: str, check: Callable[[str, str], None]) -> None:
    """A path through a link out of its boundary is refused, existing or not."""
    root = tmp_path / "root"
    (tmp_path / "sibling").mkdir()
    root.mkdir()
    (root / "link").symlink_to(target)
    for below in ("link", "link/not/there/yet"):
        with pytest.raises(InputError) as caught:
            check(str(root / below), str(root))
        assert caught.value.kind == "outside"


@checkers
def test_links_that_stay_inside_are_fine(tmp_path: Path, check: Callable[[str, str], None]) -> None:
    """A link to another place of the same store is followed; a sibling with the same prefix is outside."""
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "b").symlink_to("a")
    check(str(root / "b" / "x"), str(root))
    (tmp_path / "root-2").mkdir()
    with pytest.raises(InputError):
        check(str(tmp_path / "root-2"), str(root))


def test_directories_of_many_files_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each further file only itself is looked at; one that is a link is still refused."""
    root = tmp_path / "root"
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/link").symlink_to("/etc")
    looked: list[str] = []
    is_link = os.path.islink

    def counted(path: str) -> bool:
        looked.append(path)
        return is_link(path)

    monkeypatch.setattr(os.path, "islink", counted)
    boundary = Boundary(str(root))
    boundary.check(str(root / "a/b/one"))
    boundary.check(str(root / "a/b/two"))
    assert looked == [str(root / each) for each in ("a/b/one", "a/b", "a", "a/b/two")]
    with pytest.raises(InputError):
        boundary.check(str(root / "a/b/link"))


def test_lines_are_appended_whole(tmp_path: Path) -> None:
    """A line torn by a dead writer is closed, so that the next one is a line of its own."""
    path = tmp_path / "log"
    files.append_line(str(path), b"one\n")
    with path.open("ab") as file:
        file.write(b"tor")
    files.append_line(str(path), b"two\n")
    assert path.read_bytes() == b"one\ntor\ntwo\n"


def test_many_processes_append_lines(tmp_path: Path) -> None:
    """Lines of several processes never mix."""
    path = tmp_path / "log"
    program = (
        "import sys; from mire.edge import files\n"
        "for n in range(50): files.append_line(sys.argv[1], (sys.argv[2] * 200 + '\\n').encode())"
    )
    started = [subprocess.Popen([sys.executable, "-c", program, str(path), letter]) for letter in "abcd"]
    assert [process.wait() for process in started] == [0, 0, 0, 0]
    lines = path.read_text().splitlines()
    assert sorted(lines) == sorted([letter * 200 for letter in "abcd"] * 50)


@pytest.mark.parametrize(
    ("code", "error", "kind"),
    [
        (errno.EACCES, DeniedError, "denied"),
        (errno.EPERM, DeniedError, "denied"),
        (errno.EROFS, DeniedError, "read_only"),
        (errno.ENOENT, NotFoundError, "not_found"),
        (errno.ENAMETOOLONG, InputError, "input"),
        (errno.ELOOP, InputError, "input"),
        (errno.ENOSPC, RemoteError, "full"),
        (errno.EDQUOT, RemoteError, "full"),
        (errno.EISDIR, FormatError, "in_the_way"),
        (errno.ENOTDIR, FormatError, "in_the_way"),
        (errno.EIO, RemoteError, "remote"),
        (errno.ESTALE, RemoteError, "remote"),
    ],
)
def test_system_errors_become_ours(code: int, error: type[MireError], kind: str) -> None:
    """Each operating system error is one of ours, naming the path."""
    found = files.error_of(OSError(code, os.strerror(code)), "/x/y")
    assert type(found) is error
    assert found.kind == kind
    assert "'/x/y'" in found.message


def test_only_passing_troubles_are_transient() -> None:
    """Trying again may help after an I/O error, not on a full disk."""
    stale = files.error_of(OSError(errno.ESTALE, "stale"), "x")
    full = files.error_of(OSError(errno.ENOSPC, "full"), "x")
    assert isinstance(stale, RemoteError)
    assert isinstance(full, RemoteError)
    assert (stale.transient, full.transient) == (True, False)


def test_a_full_disk_is_a_typed_error() -> None:
    """Writing to a device that is always full says so."""
    with pytest.raises(RemoteError) as caught, files.mapped("/dev/full"), open("/dev/full", "wb") as file:
        file.write(b"x")
    assert caught.value.kind == "full"


def test_markers_are_read_as_text_or_link(tmp_path: Path) -> None:
    """A marker is a small file; the older form is a link whose target is the text."""
    (tmp_path / "text").write_bytes(b"3")
    (tmp_path / "link").symlink_to("7/")
    assert files.read_marker(str(tmp_path / "text")) == b"3"
    assert files.read_marker(str(tmp_path / "link")) == b"7/"
    assert files.read_marker(str(tmp_path / "none")) is None
    assert files.read_marker(str(tmp_path / "text" / "below")) is None
