"""kill -9 between any two file operations leaves the old or the new state."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("crash_scenarios.py")
LINES = SCRIPT.read_text().splitlines()
SCENARIOS = [line.split('"')[1] for line in LINES if line.startswith('    "') and '": (' in line]


def test_every_verb_has_a_scenario() -> None:
    """The list of scenarios read from the script is complete."""
    assert {"put", "append", "rename", "delete-name", "delete-latest", "mark-deleted"} <= set(SCENARIOS)
    assert len(SCENARIOS) == 18


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_dying_between_any_two_operations(scenario: str, tmp_path: Path) -> None:
    """Whatever the operation a process dies before, a new one sees the old or the new state and can go on."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), scenario, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 3
