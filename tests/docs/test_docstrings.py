"""The examples in docstrings are true."""

import doctest
from pathlib import Path

import pytest

import mire.api


def test_examples_of_the_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example in the docstrings of the public API gives what it shows."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = doctest.testmod(mire.api)
    assert result.attempted > 0
    assert result.failed == 0
