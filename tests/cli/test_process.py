"""Promises about processes: raw bytes through pipes, signals, odd streams and arguments, lock inheritance."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import mire

Run = Callable[..., Any]
Start = Callable[..., "subprocess.Popen[bytes]"]
Snapshot = Callable[[Path], dict[str, Any]]

MIRE = Path(sys.executable).with_name("mire")
HANG_S = 60
PIPE_BYTES = 65_536
READING_BYTES = 20 * PIPE_BYTES
"""More than a pipe and a first piece hold: whoever got rid of it knows that its reader is writing a version."""


def test_bytes_go_through_pipes_unchanged(process: Run) -> None:
    """Every byte value, line ends of all kinds and more than a pipe holds come out as they went in."""
    content = bytes(range(256)) * 1_000 + b"\r\n\n\r"
    assert process("init").code == 0
    assert process("put", "t", "i", "n", stdin=content).code == 0
    result = process("get", "t", "i", "n")
    assert (result.code, result.out, result.err) == (0, content, b"")


def test_the_module_is_the_command(repo: Path, environ: dict[str, str]) -> None:
    """`python -m mire` and `mire` are the same program."""
    by_module = subprocess.run(
        [sys.executable, "-m", "mire", "--help"], capture_output=True, check=True, cwd=repo, env=environ
    )
    by_name = subprocess.run([MIRE, "--help"], capture_output=True, check=True, cwd=repo, env=environ)
    assert by_module.stdout == by_name.stdout


def test_names_beyond_ascii_work_in_any_locale(process: Run, repo: Path) -> None:
    """Names are UTF-8 on disk and on the command line, also where the locale is plain C."""
    assert process("init").code == 0
    for locale in ("C", "C.UTF-8", "POSIX"):
        assert process("put", "käse", "日本語", "🐊", stdin=b"x", env={"LC_ALL": locale}).code == 0
    document = process("ls", "käse", "日本語", "--json", env={"LC_ALL": "C"}).document
    assert [(item["name"], item["version"]) for item in document["items"]] == [("🐊", 3)]
    assert (repo / ".swamp/data/käse/日本語/🐊/3/raw").is_file()


def test_arguments_that_are_not_utf8_are_refused(process: Run, repo: Path, snapshot: Snapshot) -> None:
    """Bytes that are no text cannot become names; the line shows them and is itself valid UTF-8."""
    assert process("init").code == 0
    before = snapshot(repo)
    for line in ([b"\xff", b"i", b"n"], [b"t", b"i\x80", b"n"], [b"t", b"i", b"n\xc3"]):
        result = process(b"put", *line, stdin=b"x")
        assert result.code == 2
        assert "is not valid UTF-8" in result.line
    assert process(b"get", b"t", b"i", b"\xff", b"--json").error["kind"] == "bad_name"
    assert snapshot(repo) == before


def test_a_file_whose_name_is_not_utf8_can_be_put(process: Run, repo: Path) -> None:
    """Only what becomes a name must be text: FILE may be any path the system has."""
    assert process("init").code == 0
    path = os.fsencode(repo) + b"/in-\xff.txt"
    Path(os.fsdecode(path)).write_bytes(b"content")
    assert process(b"put", b"t", b"i", b"n", path).code == 0
    assert process(b"get", b"t", b"i", b"n", b"-o", b"out-\xff").code == 0
    assert Path(os.fsdecode(os.fsencode(repo) + b"/out-\xff")).read_bytes() == b"content"
    missing = process(b"put", b"t", b"i", b"n", b"no-\xff", b"--json")
    assert missing.code == 3
    assert "no-\\udcff" in missing.error["message"]


def test_a_repository_whose_path_is_not_utf8_is_shown_as_json(process: Run, repo: Path) -> None:
    """A path that is no text is escaped somehow, so that stdout stays one JSON document."""
    inner = Path(os.fsdecode(os.fsencode(repo) + b"/r-\xff"))
    inner.mkdir()
    assert process("init", "--json", cwd=inner).document["created"] is True


def test_a_reader_that_leaves_early_ends_the_command_quietly(start: Start, repo: Path) -> None:
    """`mire get … | head -c 1` ends like any other program: by broken pipe, without a word."""
    mire.open(repo).model("t", "i").put("n", bytes(40 * PIPE_BYTES))
    child = start("get", "t", "i", "n")
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.read(1) == b"\x00"
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait(HANG_S) == 141


@pytest.mark.parametrize("command", ["get t i n", "ls", "ls --json", "show t i n"])
def test_a_full_disk_behind_stdout_is_the_worlds_fault(repo: Path, environ: dict[str, str], command: str) -> None:
    """Output that cannot be written is reported as the world failing, not as a bug in mire."""
    mire.open(repo).model("t", "i").put("n", "x")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [MIRE, *command.split()], stdout=full, stderr=subprocess.PIPE, check=False, cwd=repo, env=environ
        )
    assert b"a bug in mire" not in done.stderr
    assert done.returncode == 5


@pytest.mark.parametrize(("command", "closed"), [("put t i n", "<&-"), ("get t i n", ">&-"), ("ls", ">&-")])
def test_a_closed_stream_is_not_a_bug_in_mire(
    repo: Path, environ: dict[str, str], snapshot: Snapshot, command: str, closed: str
) -> None:
    """A stream that was closed before we started is told in one line, and nothing is written."""
    mire.open(repo).model("t", "i").put("n", "x")
    before = snapshot(repo)
    shell = f'exec "$0" {command} {closed}'
    done = subprocess.run(["/bin/sh", "-c", shell, MIRE], capture_output=True, check=False, cwd=repo, env=environ)
    assert b"a bug in mire" not in done.stderr
    assert done.returncode != 70
    assert snapshot(repo) == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_put_without_a_trace(
    start: Start, process: Run, repo: Path, number: signal.Signals, code: int
) -> None:
    """The version under way is not there afterwards, and the lock is free at once."""
    model = mire.open(repo).model("t", "i")
    model.put("n", "old")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        child = start("put", "t", "i", "n")
    finally:
        signal.signal(signal.SIGINT, before)
    assert child.stdin is not None
    child.stdin.write(bytes(READING_BYTES))
    child.stdin.flush()
    child.send_signal(number)
    with suppress(BrokenPipeError):  # a signal between two reads is seen after the second one
        child.stdin.write(b"x")
        child.stdin.flush()
    assert child.wait(HANG_S) == code
    assert not (repo / ".swamp/data/t/i/.lock").exists()
    assert model.versions("n") == [1]
    assert list((repo / ".swamp/data/t/i/n").glob("*/*.tmp")) == []
    assert process("put", "t", "i", "n", "--lock-timeout", "0", stdin=b"new").code == 0
    assert model.get("n").bytes() == b"new"


def test_a_killed_put_leaves_the_old_state(start: Start, process: Run, repo: Path) -> None:
    """After kill -9 the old version is the latest, and the next writer need not wait for the dead one's lock."""
    model = mire.open(repo).model("t", "i")
    model.put("n", "old")
    child = start("put", "t", "i", "n")
    assert child.stdin is not None
    child.stdin.write(bytes(READING_BYTES))
    child.stdin.flush()
    child.kill()
    child.wait(HANG_S)
    assert process("get", "t", "i", "n").out == b"old"
    written = process("put", "t", "i", "n", "--lock-timeout", "0", "--json", stdin=b"new").document
    assert written["metadata"]["version"] > 1
    assert process("get", "t", "i", "n").out == b"new"


def test_a_command_started_inside_a_hold_works_under_it(process: Run, repo: Path) -> None:
    """A child of the holder is told by the reference's variables, and does not wait for its parent."""
    model = mire.open(repo).model("t", "i")
    with model.hold():
        told = {name: value for name, value in os.environ.items() if name.startswith("SWAMP_LOCK_")}
        assert process("put", "t", "i", "n", "--lock-timeout", "0", stdin=b"x").code == 75
        assert process("put", "t", "i", "n", "--lock-timeout", "0", stdin=b"x", env=told).code == 0
        assert (repo / ".swamp/data/t/i/.lock").is_file()
    assert model.get("n").bytes() == b"x"


def test_numbers_are_not_reused_by_a_new_process(process: Run, repo: Path) -> None:
    """A deleted number stays used, whoever asks next."""
    assert process("init").code == 0
    for _ in range(2):
        assert process("put", "t", "i", "n", stdin=b"x").code == 0
    assert process("rm", "t", "i", "n", "--version", "2").code == 0
    assert process("put", "t", "i", "n", "--json").document["metadata"]["version"] == 3
    assert process("rm", "t", "i", "n").code == 0
    assert process("put", "t", "i", "n", "--json").document["metadata"]["version"] == 4


def test_processes_that_write_one_name_take_turns(start: Start, repo: Path) -> None:
    """Several puts at once all succeed, each with a number of its own."""
    mire.open(repo).model("t", "i").put("n", "first")
    for index in range(6):
        (repo / f"in-{index}").write_text(str(index))
    children = [start("put", "t", "i", "n", f"in-{index}", "--json") for index in range(6)]
    numbers = set()
    for child in children:
        out, err = child.communicate(timeout=HANG_S)
        assert (child.returncode, err) == (0, b"")
        numbers.add(json.loads(out)["metadata"]["version"])
    assert numbers == {2, 3, 4, 5, 6, 7}
    contents = {mire.open(repo).model("t", "i").get("n", number).text() for number in numbers}
    assert contents == {"0", "1", "2", "3", "4", "5"}


def test_help_needs_no_repository_and_no_home(repo: Path) -> None:
    """The first thing a user types works in an empty environment."""
    done = subprocess.run([MIRE, "--help"], capture_output=True, check=False, cwd=repo, env={})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"First steps:" in done.stdout
