"""Every code block of the README and the guides does what it shows."""

import contextlib
import io
import os
import re
import sys
from pathlib import Path

import pytest

from docblocks import ROOT, SHOWN_ONLY, WITH_SPARK, Block, blocks_of, check_console, is_as_shown, shell

DOCUMENTS = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs/guide").glob("*.md")) if path.name not in WITH_SPARK),
]


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
def test_blocks_do_what_they_show(
    document: Path, tmp_path: Path, forked_mire: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All blocks of a document run in order in one empty directory, with an empty home, as shown."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(home))
    # The README runs the command as it is installed; of the guides nobody sees how it starts.
    front = [] if document.name == "README.md" else [str(forked_mire)]
    monkeypatch.setenv("PATH", os.pathsep.join((*front, str(Path(sys.executable).parent), os.environ["PATH"])))
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(document):
        if block.language == "console":
            check_console(block, shell(environ))
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
