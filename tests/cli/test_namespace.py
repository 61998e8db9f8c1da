"""`mire namespace` from end to end, as documents and as text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mire.flow.relocate import Trees

Run = Callable[..., Any]


def test_the_life_of_a_namespace(run: Run, repo: Path) -> None:
    """Take it, move in, look, move out; every step is one document with the numbers of the step."""
    run("init")
    run("put", "svc", "web", "state", stdin=b"x")
    done = run("namespace", "set", "team-a", "--json").document
    assert (done["namespace"], done["registered"], done["rootData"]) == ("team-a", True, True)
    planned = run("namespace", "migrate", "--dry-run", "--json").document
    moved = run("namespace", "migrate", "--json").document
    assert {**planned, "dryRun": False} == moved
    assert (moved["files"], [each["directory"] for each in moved["directories"]]) == (3, ["data"])
    (listed,) = run("namespace", "list", "--json").document["namespaces"]
    assert (listed["namespace"], listed["current"]) == ("team-a", True)
    stray = repo / ".swamp/team-a/team-a/data/x"
    stray.parent.mkdir(parents=True)
    stray.write_text("stray")
    found = run("namespace", "doctor", "--json")
    assert found.code == 7
    assert found.document["left"] == 1
    assert run("namespace", "doctor", "--repair", "--json").document["left"] == 0
    back = run("namespace", "migrate", "--reverse", "--json").document
    assert (back["reverse"], back["files"]) == (True, 4)
    assert run("namespace", "show", "--json").document["namespace"] is None
    assert run("get", "svc", "web", "state").out == b"x"
    assert b"no namespaces" in run("namespace", "list").out


def test_an_empty_namespace_is_left(run: Run) -> None:
    """And the settings say nothing of it any more."""
    run("init")
    run("namespace", "set", "team-a")
    assert b"left the namespace team-a" in run("namespace", "unset").out
    assert run("namespace", "unset").code == 3


def test_ctrl_c_says_how_to_go_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 130, with the way on; a look shows that it waits, and the same command ends it."""
    run("init")
    run("put", "svc", "web", "state", stdin=b"x")
    run("namespace", "set", "team-a")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Trees, "move", interrupt)
        stopped = run("namespace", "migrate")
    assert stopped.code == 130
    assert b"goes on" in stopped.err
    assert b"not finished: 'mire namespace migrate'" in run("namespace", "show").out
    assert run("put", "svc", "web", "state", stdin=b"y").code == 6
    assert run("namespace", "migrate", "--json").document["resumed"]
    assert run("get", "svc", "web", "state").out == b"x"
