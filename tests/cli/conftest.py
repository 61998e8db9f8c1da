"""Two ways to run the command line: inside this process, and as a real process.

Wide tables run inside; promises about processes (exit codes, raw bytes, pipes, signals) run real ones.
"""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mire.cli.main import main

MIRE = Path(sys.executable).with_name("mire")
HANG_S = 60
"""No process of a test runs this long; it only turns a hang into a failure."""


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


@dataclass(frozen=True, slots=True)
class Result:
    """What an invocation left: its exit code, stdout and stderr."""

    code: int
    out: bytes
    err: bytes

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout; more, less or something else is an error."""
        assert self.err == b"", self.err
        document = json.loads(self.out.decode(), parse_constant=_refuse_constant)
        assert isinstance(document, dict)
        return document

    @property
    def error(self) -> dict[str, Any]:
        """The one JSON document on stderr, with stdout empty."""
        assert self.out == b"", self.out
        document = json.loads(self.err.decode(), parse_constant=_refuse_constant)
        assert isinstance(document, dict)
        assert document["exit"] == self.code
        return document

    @property
    def line(self) -> str:
        """The one line on stderr, with stdout empty."""
        assert self.out == b"", self.out
        text = self.err.decode()
        assert text.startswith("mire: ")
        assert text.endswith("\n")
        assert text.count("\n") == 1, text
        return text[len("mire: ") : -1]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, in force."""
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    return path


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store out of reach is asked as often as ever inside this process, without the waits, which have their tests."""
    monkeypatch.setattr("mire.edge.retrying.Patience.delay_ms", lambda *_: 0)


@pytest.fixture
def run(
    repo: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Callable[..., Result]]:
    """Run `mire` inside this process, in the repository."""
    monkeypatch.chdir(repo)
    before = signal.getsignal(signal.SIGTERM)

    def invoke(*arguments: str, stdin: bytes = b"") -> Result:
        capsysbinary.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsysbinary.readouterr()
        assert isinstance(ended.value.code, int)
        return Result(ended.value.code, out, err)

    yield invoke
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    """The environment of a real process: nothing but a path, an empty home and UTF-8."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}


@pytest.fixture
def process(repo: Path, environ: dict[str, str]) -> Callable[..., Result]:
    """Run the installed `mire` as a process, in the repository."""

    def invoke(
        *arguments: str | bytes,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Result:
        done = subprocess.run(
            [str(MIRE), *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            cwd=cwd or repo,
            env={**environ, **(env or {})},
            timeout=HANG_S,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return invoke


@pytest.fixture
def start(repo: Path, environ: dict[str, str]) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start the installed `mire` with pipes on all three streams; what is left over is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def invoke(*arguments: str) -> "subprocess.Popen[bytes]":
        child = subprocess.Popen(
            [str(MIRE), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=repo,
            env=environ,
        )
        started.append(child)
        return child

    yield invoke
    for child in started:
        child.kill()
        child.wait(HANG_S)
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue


@pytest.fixture
def foreign_lock() -> Callable[..., Path]:
    """Write a lock as another host would hold it, renewed just now."""

    def write(path: Path, *, nonce: str = "24ee2216-846a-4824-832c-0687886850f7") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        body = {
            "holder": "ada@elsewhere",
            "hostname": "elsewhere.example",
            "pid": 4711,
            "acquiredAt": "2026-08-01T12:00:00.000Z",
            "ttlMs": 30_000,
            "nonce": nonce,
        }
        path.write_text(json.dumps(body, indent=2))
        return path

    return write
