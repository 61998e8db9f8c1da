"""Every code block of the README and the guides does what it shows."""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WITH_SPARK = {"spark.md"}
"""Guides whose blocks are run where the other tests with Spark are."""
DOCUMENTS = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs/guide").glob("*.md")) if path.name not in WITH_SPARK),
]
SHOWN_ONLY = {"text", "yaml", "json"}
"""Blocks that show a picture, a command line's grammar or a file, not something to run."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    language: str
    lines: list[str]
    first_line: int


@dataclass(frozen=True)
class Command:
    """A command of a console block with what the document says comes of it."""

    text: str
    shown: list[str]
    exit_code: int


def blocks_of(document: Path) -> Iterator[Block]:
    """The fenced blocks of a document, in order."""
    language: str | None = None
    lines: list[str] = []
    first_line = 0
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.startswith("```"):
            lines.append(line)
        elif language is None:
            language, lines, first_line = line[3:].strip(), [], number + 1
        else:
            yield Block(language, lines, first_line)
            language = None
    assert language is None, f"{document.name}: a block is not closed"


def commands_of(block: Block) -> list[Command]:
    """The commands of a console block; `> ` continues one, `# exit N` says how it ends."""
    found: list[Command] = []
    for line in block.lines:
        if line.startswith("$ "):
            found.append(Command(line[2:], [], 0))
            continue
        assert found, f"line {block.first_line}: output stands before the first command"
        last = found[-1]
        if line.startswith("> ") and not last.shown:
            found[-1] = Command(f"{last.text}\n{line[2:]}", [], 0)
        elif match := re.fullmatch(r"# exit (\d+)", line):
            found[-1] = Command(last.text, last.shown, int(match[1]))
        else:
            last.shown.append(line)
    return found


def is_as_shown(shown: list[str], real: str) -> bool:
    """Whether output is what a document shows, `...` standing for anything."""
    wanted = "\n".join(line.rstrip() for line in shown).strip()
    pattern = ".*".join(map(re.escape, wanted.split("...")))
    found = "\n".join(line.rstrip() for line in real.splitlines()).strip()
    return re.fullmatch(pattern, found, re.DOTALL) is not None


def run_console(block: Block, environ: dict[str, str]) -> None:
    """Run the commands of a block where we are."""
    for command in commands_of(block):
        done = subprocess.run(
            ["bash", "-c", command.text],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == command.exit_code, f"$ {command.text}\nexit {done.returncode}\n{done.stdout}"
        if command.shown:
            shown = "\n".join(command.shown)
            assert is_as_shown(command.shown, done.stdout), f"$ {command.text}\nshown:\n{shown}\nreal:\n{done.stdout}"


def run_python(block: Block, namespace: dict[str, object], where: str) -> None:
    """Run a block; a comment behind a `print(...)` is what it prints."""
    code = compile("\n" * (block.first_line - 1) + "\n".join(block.lines), where, "exec")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, namespace)  # noqa: S102 - running the document is the point
    shown = [match[1] for line in block.lines if (match := re.match(r"\s*print\(.*\)  # (.+)", line))]
    real = iter(out.getvalue().splitlines())
    for line in shown:
        assert line in real, f"{where}: {line!r} is shown, but was not printed (in this order): {out.getvalue()}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_blocks_do_what_they_show(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a document run in order in one empty directory, with an empty home, as shown."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(document):
        if block.language == "console":
            run_console(block, environ)
        elif block.language == "python":
            run_python(block, namespace, str(document))
        else:
            assert block.language in SHOWN_ONLY, f"{document.name}:{block.first_line}: cannot run {block.language!r}"


def test_readme_shows_both_faces() -> None:
    """The README has commands and Python to run."""
    languages = {block.language for block in blocks_of(ROOT / "README.md")}
    assert {"console", "python"} <= languages


@pytest.mark.parametrize(
    ("shown", "real", "expected"),
    [
        (["a ... c"], "a b c\n", True),
        (["a", "..."], "a\nb\nc\n", True),
        (["a"], "a\nb\n", False),
        (["a (b)"], "a (b)  \n", True),
        (["...", "c"], "a\nb\nd\n", False),
    ],
)
def test_shown_output_is_compared_whole(shown: list[str], real: str, *, expected: bool) -> None:
    """Shown output must be all of the output, except where the document says `...`."""
    assert is_as_shown(shown, real) is expected
