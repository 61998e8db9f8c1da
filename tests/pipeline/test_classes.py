"""The classes of Spark in one file: used when it is whole, made by a command, and never in the way."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mire.errors import ConfigError, RemoteError
from mire.pipeline import classes
from mire.pipeline.classes import PLACE, classes_option, find_classes, make_classes

MIRE = str(Path(sys.executable).with_name("mire"))


def environ_of(place: Path) -> dict[str, str]:
    """The environment with files in a place of their own."""
    return {**os.environ, PLACE: str(place)}


def kept_in(place: Path, size: int = 100) -> Path:
    """A file as it would be there, of so many bytes."""
    path = place / f"{classes._key(os.environ)}-100.jsa"
    path.write_bytes(b"x" * size)
    return path


def test_sessions_map_the_file(spark: Any) -> None:
    """The Java of these tests has it: `make setup` made it."""
    if find_classes(os.environ) is None:
        pytest.skip(f"no classes of Spark in {PLACE}: run the tests with make, which makes them")
    java = spark.sparkContext._gateway.proc.pid
    assert str(find_classes(os.environ)) in Path(f"/proc/{java}/maps").read_text()


def test_only_a_whole_file_is_used(tmp_path: Path) -> None:
    """Java does not start with one that was cut off; nor is that of another Java or Spark taken."""
    environ = environ_of(tmp_path)
    assert find_classes(environ) is None
    path = kept_in(tmp_path, size=99)
    (tmp_path / "spark-0123456789abcdef-1.jsa").write_bytes(b"x")
    assert find_classes(environ) is None
    assert classes_option(environ, "") == ""
    path.write_bytes(b"x" * 100)
    assert find_classes(environ) == str(path)
    assert f"-XX:SharedArchiveFile={path}" in classes_option(environ, "")


@pytest.mark.parametrize("theirs", ["-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa", "-XX:ArchiveClassesAtExit=/m"])
def test_what_users_want_of_their_java_counts(tmp_path: Path, theirs: str) -> None:
    """Two such options would be one too many."""
    kept_in(tmp_path)
    assert classes_option(environ_of(tmp_path), f"-Dx=1 {theirs}") == ""


def test_the_same_java_has_the_same_file_for_every_user(tmp_path: Path) -> None:
    """The small directory that makes a packaged Java fit is each user's own."""
    path = kept_in(tmp_path)
    environ = {name: value for name, value in environ_of(tmp_path).items() if name != "XDG_CACHE_HOME"}
    for home in ("one", "two"):
        assert find_classes({**environ, "HOME": str(tmp_path / home)}) == str(path)


@pytest.mark.parametrize(
    "exercise", ["raise SystemExit('no Spark')", "import sys; open(sys.argv[2], 'w').write('[\"x\", []]')"]
)
def test_what_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exercise: str) -> None:
    """Neither a Spark that does not start, nor a Java that does not do it: one line, and all is as before."""
    path = kept_in(tmp_path)
    monkeypatch.setattr(classes, "_EXERCISE", exercise)
    with pytest.raises(RemoteError, match=r"cannot be kept: \S"):
        make_classes(environ_of(tmp_path))
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ConfigError, match=PLACE):
        make_classes(environ_of(path))


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    """As every command does."""
    (tmp_path / "file").write_text("in the way")
    done = subprocess.run(
        [MIRE, "spark", "prepare", "--json"],
        env=environ_of(tmp_path / "file"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stderr)["message"].startswith("the classes of Spark cannot be kept in")
    assert done.returncode == 2
