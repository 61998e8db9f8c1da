"""The layer contracts hold, and each of them really catches who breaks it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINT = Path(sys.executable).with_name("lint-imports")

LAYERS = "Imports go down only"
BYTES = "The edge moves bytes: it reads no format"
PURE = "Nouns, formats and decisions touch nothing"
FACE = "Only the face knows the terminal"
SPARK = "Only the pipeline knows Spark"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, to be broken."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "mire", tmp_path / "src" / "mire", ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(copy: Path) -> tuple[int, str]:
    """Check the contracts on a copy."""
    done = subprocess.run(
        [LINT, "--no-cache", "--no-logo"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_contracts_are_kept(copy: Path) -> None:
    """The package as it is keeps every contract."""
    code, output = lint(copy)
    assert code == 0, output
    assert all(f"{contract} KEPT" in output for contract in (LAYERS, BYTES, PURE, FACE, SPARK))


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("plan/route.py", "import os", {PURE}),
        ("plan/lock.py", "def now():\n    import time\n    return time.time()", {PURE}),
        ("wire/latest.py", "from random import random", {PURE}),
        ("model/names.py", "import logging", {PURE}),
        ("edge/clock.py", "import mire.wire.latest", {BYTES}),
        ("edge/files.py", "from json import loads", {BYTES}),
        ("plan/write.py", "import mire.edge.clock", {LAYERS, PURE}),
        ("wire/fields.py", "import mire.plan.route", {LAYERS}),
        ("flow/read.py", "import click", {FACE}),
        ("flow/push.py", "import pyspark", {SPARK}),
        ("cli/push.py", "def now():\n    import pyarrow", {SPARK}),
        ("flow/pull.py", "import mire.pipeline.release", {LAYERS}),
        ("pipeline/session.py", "import click", {FACE}),
        ("util.py", "", {LAYERS}),
    ],
)
def test_a_breach_is_caught(copy: Path, module: str, line: str, broken: set[str]) -> None:
    """One import in the wrong place, or a module in no layer, breaks exactly the contracts it should."""
    with (copy / "src" / "mire" / module).open("a") as file:
        file.write(f"\n{line}\n")
    code, output = lint(copy)
    assert code == 1, output
    assert {contract for contract in (LAYERS, BYTES, PURE, FACE, SPARK) if f"{contract} BROKEN" in output} == broken
