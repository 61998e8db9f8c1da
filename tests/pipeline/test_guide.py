"""The guide to the pipeline does what it shows, in the session the tests share."""

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from docblocks import ROOT, blocks_of, check_console, shell
from mire.cli.main import mire

GUIDE = ROOT / "docs/guide/pipeline.md"
PIPED = ("|", ">", "&&", ";")
RUNS = 6
"""Commands of the guide that run on Spark."""


def test_the_guide_does_what_it_shows(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of the guide runs in order in one empty directory, and says what is shown."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PWD", str(work))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outside = shell({"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"})
    inside = []

    def either(text: str) -> tuple[int, str]:
        program, *arguments = shlex.split(os.path.expandvars(text))
        if program != "mire" or set(arguments) & set(PIPED):
            return outside(text)
        inside.append(text)
        code, out, err = run(*arguments)
        return code, out + err

    for block in blocks_of(GUIDE):
        if block.language == "console":
            check_console(block, either)
    assert len(inside) >= RUNS


def test_commands_that_are_only_shown_can_be_said() -> None:
    """What the guide shows for places that only the reader has is what the commands understand."""
    lines = [line for block in blocks_of(GUIDE) if block.language == "text" for line in block.lines]
    said = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("mire ")]
    assert len(said) > 4
    for arguments in said:
        parse(mire, arguments)


def parse(command: click.Command, arguments: list[str]) -> None:
    """Read arguments as the command line does, without running anything."""
    context = command.make_context(None, list(arguments))
    if isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None, name
        parse(found, rest)
