"""No case of the reference's suites is missing from ours, and the page that says which is where is true."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from mire.testing.conformance_sync import SYNC_CHECKS

PAGE = Path(__file__).resolve().parents[2] / "docs/guide/conformance.md"
ROW = re.compile(r"^\| (\d+)(?:\u2013(\d+))? \| .* \| `(\w+)\.(\w+)` \|$", re.MULTILINE)


def listed() -> Iterator[tuple[int, str, str]]:
    """The table of the page: each case with the module and function of its check."""
    for first, last, module, function in ROW.findall(PAGE.read_text(encoding="utf-8")):
        for case in range(int(first), int(last or first) + 1):
            yield case, module, function


def test_every_case_is_in_the_table_once() -> None:
    """1 to 57, in order."""
    assert [case for case, _, _ in listed()] == list(range(1, 58))


def test_the_check_of_every_case_names_it() -> None:
    """The function exists, and its module fails with the case's number or says where it is dealt with."""
    for case, name, function in listed():
        module = importlib.import_module(f"mire.testing.{name}")
        assert callable(getattr(module, function))
        named = re.compile(rf'expect\({case},|check {case}: |"{case}[a-e]? [a-z ]+"|# {case}: ')
        assert named.search(inspect.getsource(module)), case


def test_the_suite_of_sync_runs_its_cases() -> None:
    """Cases 21 to 33 are checks of `SYNC_CHECKS`, under the functions that the page names."""
    ran = [
        (case, check.run.__module__.rpartition(".")[2], check.run.__name__)
        for check in SYNC_CHECKS
        for case in check.cases
    ]
    assert ran == [row for row in listed() if 21 <= row[0] <= 33]
