"""Exit codes by error class as real processes show them, and bad input: one line, the value, nothing written."""

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.files import error_of

Run = Callable[..., Any]
Snapshot = Callable[[Path], dict[str, Any]]


def test_exit_2_for_bad_input(process: Run, repo: Path) -> None:
    """A name that would leave its directory is the caller's to fix."""
    assert process("init").code == 0
    result = process("put", "t", "i", "../n", stdin=b"x")
    assert result.code == 2
    assert "'../n'" in result.line


def test_exit_2_for_bad_settings(process: Run, repo: Path) -> None:
    """A settings file that cannot be read is the user's to fix."""
    (repo / ".swamp.yaml").write_text("datastore:\n  type: [\n")
    result = process("ls")
    assert result.code == 2
    assert ".swamp.yaml is not valid YAML" in result.line


def test_exit_3_for_what_is_not_there(process: Run, repo: Path, snapshot: Snapshot) -> None:
    """No repository, no name: both say what is missing, and neither creates it."""
    result = process("put", "t", "i", "n", stdin=b"x")
    assert result.code == 3
    assert "'mire init'" in result.line
    assert snapshot(repo) == {}
    assert process("init").code == 0
    result = process("get", "t", "i", "n")
    assert result.code == 3
    assert "t/i has no 'n'" in result.line


def test_exit_4_for_conflicts(process: Run, repo: Path) -> None:
    """Another owner, a renamed name and a name that exists are all someone else being first."""
    model = mire.open(repo).model("t", "i")
    model.put("owned", "1", owner="model-method:vpc")
    model.put("taken", "1")
    model.put("old", "1")
    model.rename("old", "new")
    owned = process("put", "t", "i", "owned", stdin=b"2")
    assert owned.code == 4
    assert "belongs to model-method:vpc, not to manual:i" in owned.line
    assert process("put", "t", "i", "old", stdin=b"2").code == 4
    assert process("mv", "t", "i", "taken", "new").code == 4
    assert process("put", "t", "i", "owned", "--owner", "model-method:vpc", stdin=b"2").code == 0


def test_exit_5_for_a_datastore_that_is_not_there(process: Run, repo: Path, tmp_path: Path, snapshot: Snapshot) -> None:
    """An unmounted share is not created: writing into the mount point would hide data under the mount."""
    (repo / ".swamp.yaml").write_text(f"datastore:\n  type: filesystem\n  path: {tmp_path}/share\n")
    before = snapshot(tmp_path)
    for command in (["put", "t", "i", "n"], ["get", "t", "i", "n"]):
        result = process(*command, stdin=b"x")
        assert result.code == 5
        assert f"'{tmp_path}/share' (from .swamp.yaml) is not there" in result.line
    assert snapshot(tmp_path) == before


DROPPED = """
import os, sys
import mire.api, mire.cli.put, mire.cli.get, mire.cli.status
from mire.cli.main import main
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
main(sys.argv[1:])
"""


def test_exit_6_without_the_right_to_write(environ: dict[str, str], snapshot: Snapshot) -> None:
    """A read-only directory is read, but a write says that the right is missing and leaves nothing."""
    with tempfile.TemporaryDirectory() as name:  # below /tmp, where another user can enter
        root = Path(name)
        root.chmod(0o755)
        mire.open(root).model("t", "i").put("n", "old")
        directories = [root, *(path for path in root.rglob("*") if path.is_dir())]
        before = snapshot(root)

        def as_nobody(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
            return subprocess.run(
                [sys.executable, "-c", DROPPED, *arguments],
                input=b"x",
                capture_output=True,
                check=False,
                cwd=root,
                env=environ,
                timeout=60,
            )

        for directory in directories:
            directory.chmod(0o555)
        try:
            written = as_nobody("put", "t", "i", "n")
            read = as_nobody("get", "t", "i", "n")
            assert (written.returncode, written.stdout) == (6, b"")
            assert b"no right to use" in written.stderr
            assert written.stderr.count(b"\n") == 1
            assert (read.returncode, read.stdout) == (0, b"old")
            assert snapshot(root) == before
        finally:
            for directory in directories:
                directory.chmod(0o755)


@pytest.mark.parametrize(
    ("code", "kind", "exit_code"),
    [
        (errno.EACCES, "denied", 6),
        (errno.EPERM, "denied", 6),
        (errno.EROFS, "read_only", 6),
        (errno.ENOSPC, "full", 5),
        (errno.EDQUOT, "full", 5),
        (errno.EIO, "remote", 5),
        (errno.ESTALE, "remote", 5),
        (errno.ENOENT, "not_found", 3),
        (errno.ENAMETOOLONG, "input", 2),
    ],
)
def test_operating_system_errors_have_an_exit_code(code: int, kind: str, exit_code: int) -> None:
    """What the kernel says is told as one of ours, with the path."""
    error = error_of(OSError(code, os.strerror(code)), "/some/path")
    assert (error.kind, error.exit_code) == (kind, exit_code)
    assert "'/some/path'" in error.message


def test_exit_7_for_damage(process: Run, repo: Path) -> None:
    """Metadata that breaks the format and content that differs from its checksum are both damage."""
    model = mire.open(repo).model("t", "i")
    model.put("content", "good")
    model.put("metadata", "good")
    (repo / ".swamp/data/t/i/content/1/raw").write_bytes(b"evil")
    (repo / ".swamp/data/t/i/metadata/1/metadata.yaml").write_text("version: one\n")
    content = process("get", "t", "i", "content")
    assert (content.code, content.out) == (7, b"")
    assert "is damaged: it has SHA-256" in content.line
    metadata = process("get", "t", "i", "metadata")
    assert metadata.code == 7
    assert "metadata/1/metadata.yaml" in metadata.line


def test_exit_7_for_a_datastore_from_the_future(process: Run, repo: Path, snapshot: Snapshot) -> None:
    """A format marker that asks for more than we know is obeyed, also when it is only a link or garbage."""
    mire.open(repo).model("t", "i").put("n", "1")
    marker = repo / ".swamp/datastore-format.json"
    marker.write_text('{"format": 3}')
    before = snapshot(repo)
    assert process("get", "t", "i", "n", "--json").error["kind"] == "datastore_format_unsupported"
    assert process("put", "t", "i", "n", stdin=b"2").code == 7
    assert snapshot(repo) == before
    marker.write_text("garbage")
    assert process("get", "t", "i", "n", "--json").error["kind"] == "datastore_format_marker_invalid"
    marker.unlink()
    marker.symlink_to("nowhere")
    assert process("get", "t", "i", "n").code == 7


@pytest.mark.parametrize(
    ("lock", "key"), [("data/t/i/.lock", "data/t/i/.lock"), (".datastore.lock", ".datastore.lock")]
)
def test_exit_75_names_holder_host_and_age(
    process: Run, repo: Path, foreign_lock: Callable[..., Path], snapshot: Snapshot, lock: str, key: str
) -> None:
    """Waiting for somebody on another host ends with who, where and since when; reading does not wait."""
    mire.open(repo).model("t", "i").put("n", "1")
    foreign_lock(repo / ".swamp" / lock)
    before = snapshot(repo)
    result = process("put", "t", "i", "n", "--lock-timeout", "0", stdin=b"2")
    assert result.code == 75
    assert f"lock {key} is held by ada@elsewhere on host elsewhere.example (pid 4711), last renewed " in result.line
    assert " s ago; gave up after " in result.line
    assert process("get", "t", "i", "n").out == b"1"
    assert snapshot(repo) == before


def test_exit_75_as_a_document(run: Run, repo: Path, foreign_lock: Callable[..., Path]) -> None:
    """Programs get holder, host, pid and age as members."""
    run("init")
    foreign_lock(repo / ".swamp/data/t/i/.lock")
    result = run("put", "t", "i", "n", "--lock-timeout", "0", "--json", stdin=b"2")
    assert result.code == 75
    error = result.error
    assert (error["kind"], error["holder"], error["hostname"], error["pid"]) == (
        "lock_timeout",
        "ada@elsewhere",
        "elsewhere.example",
        4711,
    )
    assert 0 <= error["ageMs"] < 30_000


BAD_SEGMENTS = [
    "..",
    ".",
    "../n",
    "a/../b",
    "a/b",
    "/etc",
    "a..b",
    "a\\b",
    "..\\..",
    ".lock",
    ".LOCK",
    "_catalog.db",
    "",
    " ",
    "\u3000",
    "new\nline",
    "tab\t",
    "bell\x07",
    "\x7f",
    "x" * 256,
    "é" * 128,
    "\udcff",
    "a\udc80b",
]
BAD_NAMES = [*BAD_SEGMENTS, "latest", "LATEST", "Latest"]
BAD_TYPES = [
    "..",
    ".",
    "a/../b",
    "../a",
    "a/..",
    "./a",
    "a\\b",
    "",
    " ",
    "/",
    "::",
    "...",
    "a\nb",
    "x" * 256,
    "a/" + "é" * 128,
    "\udcff",
]


def _is_shown(value: str, line: str) -> bool:
    return repr(value)[:40] in line or repr(value)[1:40] in line


def _ids(values: list[str]) -> list[str]:
    return [ascii(value)[:20] for value in values]


@pytest.fixture
def filled(run: Run, repo: Path) -> Run:
    """A repository with one streaming name."""
    run("init")
    run("put", "t", "i", "n", "--streaming", stdin=b"1")
    return run


@pytest.mark.parametrize("value", BAD_NAMES, ids=_ids(BAD_NAMES))
def test_bad_data_names_are_refused_everywhere(filled: Run, tmp_path: Path, snapshot: Snapshot, value: str) -> None:
    """Every command that takes a name refuses a bad one with one line that shows it, and writes nothing."""
    before = snapshot(tmp_path)
    for line in (
        ["put", "t", "i", value],
        ["append", "t", "i", value],
        ["get", "t", "i", value],
        ["show", "t", "i", value],
        ["versions", "t", "i", value],
        ["rm", "t", "i", value],
        ["rm", "t", "i", value, "--mark"],
        ["mv", "t", "i", value, "m"],
        ["mv", "t", "i", "n", value],
    ):
        result = filled(*line, stdin=b"x")
        assert result.code == 2, line
        assert _is_shown(value, result.line), result.line
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("value", BAD_SEGMENTS, ids=_ids(BAD_SEGMENTS))
def test_bad_model_ids_are_refused_everywhere(filled: Run, tmp_path: Path, snapshot: Snapshot, value: str) -> None:
    """Every command that takes an id refuses a bad one with one line that shows it, and writes nothing."""
    before = snapshot(tmp_path)
    for line in (
        ["put", "t", value, "n"],
        ["append", "t", value, "n"],
        ["get", "t", value, "n"],
        ["show", "t", value, "n"],
        ["versions", "t", value, "n"],
        ["rm", "t", value, "n"],
        ["mv", "t", value, "n", "m"],
        ["ls", "t", value],
    ):
        result = filled(*line, stdin=b"x")
        assert result.code == 2, line
        assert _is_shown(value, result.line), result.line
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("value", BAD_TYPES, ids=_ids(BAD_TYPES))
def test_bad_types_are_refused_everywhere(filled: Run, tmp_path: Path, snapshot: Snapshot, value: str) -> None:
    """Every command that takes a type refuses a bad one with one line that shows it, and writes nothing."""
    before = snapshot(tmp_path)
    for line in (
        ["put", value, "i", "n"],
        ["append", value, "i", "n"],
        ["get", value, "i", "n"],
        ["show", value, "i", "n"],
        ["versions", value, "i", "n"],
        ["rm", value, "i", "n"],
        ["mv", value, "i", "n", "m"],
        ["ls", value],
        ["ls", value, "i"],
    ):
        result = filled(*line, stdin=b"x")
        assert result.code == 2, line
        assert _is_shown(value.removeprefix("a/") if len(value) > 100 else value, result.line), result.line
    assert snapshot(tmp_path) == before


def test_a_path_longer_than_the_system_takes_leaves_nothing(filled: Run, tmp_path: Path, snapshot: Snapshot) -> None:
    """Segments that are short enough, but too many of them, are refused before any directory exists."""
    before = snapshot(tmp_path)
    result = filled("put", "/".join(["x" * 250] * 20), "i", "n", stdin=b"x")
    assert result.code == 2
    assert "too long" in result.line
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("version", ["0", "-1", "9007199254740992", "9" * 30])
@pytest.mark.parametrize("command", ["get", "show", "rm"])
def test_bad_version_numbers_are_refused(filled: Run, command: str, version: str) -> None:
    """A version is a whole number from 1 that every program can count."""
    result = filled(command, "t", "i", "n", f"--version={version}")
    assert result.code == 2
    assert version in result.line


def test_a_directory_as_file_is_bad_input(filled: Run, repo: Path, snapshot: Snapshot) -> None:
    """A directory cannot be put or appended; the line names it."""
    (repo / "directory").mkdir()
    before = snapshot(repo)
    for command in (["put", "t", "i", "new", "directory"], ["append", "t", "i", "n", "directory"]):
        result = filled(*command)
        assert "'directory'" in result.line
        assert snapshot(repo) == before
        assert result.code == 2


def test_a_missing_file_is_not_found(filled: Run, repo: Path, snapshot: Snapshot) -> None:
    """The line names the file, and nothing is written."""
    before = snapshot(repo)
    for command in (["put", "t", "i", "new", "no/file"], ["append", "t", "i", "n", "no/file"]):
        result = filled(*command)
        assert result.code == 3
        assert "'no/file'" in result.line
    assert snapshot(repo) == before


@pytest.mark.parametrize(
    "options", [["--tag", "k=\udcff"], ["--content-type", "a/\udcff"], ["--owner", "manual:\udcff"]]
)
def test_options_that_are_not_utf8_write_nothing(
    filled: Run, repo: Path, snapshot: Snapshot, options: list[str]
) -> None:
    """Text that cannot be written as UTF-8 is refused before a version is claimed."""
    before = snapshot(repo)
    result = filled("put", "t", "i", "new", *options, stdin=b"x")
    assert result.code == 2
    assert "\\udcff" in result.line
    assert snapshot(repo) == before


PLACES = [
    ".swamp/data",
    ".swamp/data/t",
    ".swamp/data/t/i",
    ".swamp/data/t/i/n",
    ".swamp/data/t/i/n/1",
    ".swamp/data/t/i/n/1/raw",
    ".swamp/data/t/i/n/1/metadata.yaml",
]


@pytest.mark.parametrize("place", PLACES)
def test_links_out_of_the_store_are_refused(
    filled: Run, repo: Path, tmp_path: Path, snapshot: Snapshot, place: str
) -> None:
    """A link in any place is neither read nor written through, and the line says where it leads."""
    outside = tmp_path / "outside"
    (repo / place).rename(outside)
    (repo / place).symlink_to(outside)
    before = snapshot(tmp_path)
    for line in (["get", "t", "i", "n"], ["get", "t", "i", "n", "--version", "1"], ["append", "t", "i", "n"]):
        result = filled(*line, stdin=b"x")
        assert result.code == 2, line
        assert f"to '{outside}" in result.line
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a: [\n", "not valid YAML"),
        ("- a\n", "['a']"),
        ("just text\n", "'just text'"),
        ("datastore: text\n", "'text'"),
        ("datastore: {}\n", "'type'"),
        ("datastore: {type: 7}\n", "7"),
        ("datastore: {type: filesystem, path: [a]}\n", "['a']"),
        ("datastore: {type: filesystem, directories: data}\n", "'data'"),
        ("datastore: {type: filesystem, directories: ['../x']}\n", "'../x'"),
        ("datastore: {type: filesystem, directories: [7]}\n", "7"),
        ("datastore: {type: filesystem, exclude: 7}\n", "7"),
        ("datastore: {type: filesystem, namespace: ../x}\n", "'../x'"),
        ("datastore: {type: filesystem, namespace: data}\n", "'data'"),
        ("datastore: {type: filesystem, namespace: 7}\n", "7"),
        ("datastore: {type: filesystem, lockTimeoutMs: soon}\n", "'soon'"),
        ("datastore: {type: filesystem, lockTimeoutMs: -1}\n", "-1"),
        ("datastore: {type: filesystem, syncTimeoutMs: 1.5}\n", "1.5"),
        ("datastore: {type: filesystem, path: $NO_SUCH_VARIABLE/x}\n", "$NO_SUCH_VARIABLE"),
        ("datastore: {type: '@acme/blob'}\n", "'@acme/blob'"),
        ("repoId: 7\n", "7"),
        ("a: 1\na: 2\n", "'a'"),
        ("a: \xff\n", ".swamp.yaml"),
        ("[" * 100_000, ".swamp.yaml"),
    ],
)
def test_bad_settings_are_one_line_that_shows_the_value(
    run: Run, repo: Path, snapshot: Snapshot, text: str, shown: str
) -> None:
    """Settings that are wrong stop every command before it writes."""
    (repo / ".swamp.yaml").write_bytes(text.encode("latin-1"))
    before = snapshot(repo)
    for line in (["put", "t", "i", "n"], ["ls"], ["status"]):
        result = run(*line, stdin=b"x")
        assert result.code == 2, line
        assert shown in result.line
    assert snapshot(repo) == before


@pytest.mark.parametrize(
    "spec",
    [
        "nonsense",
        "filesystem:",
        ":",
        "s3:B/prefix",
        "s3://bucket?datastore=x",
        "@acme/blob:{",
        "@acme/blob:[]",
        "filesystem:~x/$NO",
    ],
)
def test_bad_datastores_are_refused(run: Run, repo: Path, snapshot: Snapshot, spec: str) -> None:
    """A datastore that cannot be understood is refused, by flag and by variable alike."""
    run("init")
    before = snapshot(repo)
    result = run("put", "t", "i", "n", "--datastore", spec, stdin=b"x")
    assert result.code == 2
    assert "datastore" in result.line
    assert snapshot(repo) == before


@pytest.mark.parametrize("option", ["--lock-timeout", "--timeout"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "21601"])
def test_timeouts_out_of_range_are_refused(run: Run, option: str, value: str) -> None:
    """A wait is a number of seconds within bounds."""
    run("init")
    result = run("ls", f"{option}={value}")
    assert result.code == 2
    assert value in result.line
