"""The demo does what it says, and leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_demo(tmp_path: Path, path: str) -> subprocess.CompletedProcess[str]:
    """Run the demo as `make demo` does, with temporary files where we can see them."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    environ = {"PATH": path, "HOME": str(home), "TMPDIR": str(scratch), "LANG": "C.UTF-8"}
    return subprocess.run(
        ["bash", "scripts/demo.sh"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_demo_runs_and_cleans_up(tmp_path: Path, forked_mire: Path) -> None:
    """The whole demo succeeds, shows the exit codes it is about, and removes its directory."""
    done = run_demo(tmp_path, os.pathsep.join((str(forked_mire), str(Path(sys.executable).parent), os.environ["PATH"])))
    assert done.returncode == 0, done.stdout + done.stderr
    for shown in ("$ mire init", "(exit 75)", "(exit 7)", "no locks", "The demo did what it said."):
        assert shown in done.stdout
    assert list((tmp_path / "scratch").iterdir()) == []


def test_demo_fails_when_a_command_says_something_else(tmp_path: Path) -> None:
    """With a `mire` that only says yes, the demo ends non-zero and still removes its directory."""
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "mire").write_text("#!/bin/sh\necho yes\n", encoding="utf-8")
    (fake / "mire").chmod(0o755)
    done = run_demo(tmp_path, f"{fake}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 1
    assert "DEMO FAILED" in done.stderr
    assert list((tmp_path / "scratch").iterdir()) == []
