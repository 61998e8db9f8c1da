"""The code blocks of documents: what they are, what is run of them, and whether what came of it is what is shown."""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WITH_SPARK = {"spark.md", "pipeline.md"}
"""Guides whose blocks are run where the other tests with Spark are."""
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


def shell(environ: dict[str, str]) -> Callable[[str], tuple[int, str]]:
    """What runs a command where we are: its exit code, and all it said."""

    def run(text: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", text],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout

    return run


def check_console(block: Block, run: Callable[[str], tuple[int, str]]) -> None:
    """Run the commands of a block; each must end as it is shown, and say what is shown."""
    for command in commands_of(block):
        code, real = run(command.text)
        assert code == command.exit_code, f"$ {command.text}\nexit {code}\n{real}"
        if command.shown:
            shown = "\n".join(command.shown)
            assert is_as_shown(command.shown, real), f"$ {command.text}\nshown:\n{shown}\nreal:\n{real}"
