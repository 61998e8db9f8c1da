"""`mire retain`, `mire prune` and `mire hold`: what they print, ask and refuse."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mire.cli.retain import ranges

Run = Callable[..., Any]


@pytest.fixture
def data(run: Run, repo: Path) -> None:
    """Three versions of which one is to stay, and a model without a definition."""
    run("init")
    for text in (b"a", b"bb", b"ccc"):
        assert run("put", "svc", "web-1", "state", "--gc", "1", stdin=text).code == 0


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((1,), "1"), ((1, 2), "1-2"), ((1, 2, 3, 7), "1-3, 7"), ((1, 3, 5, 6), "1, 3, 5-6")],
)
def test_ranges(numbers: tuple[int, ...], text: str) -> None:
    """Runs of numbers are drawn together."""
    assert ranges(numbers) == text


def test_the_dry_run_prints_what_the_run_does(run: Run, data: None) -> None:
    """Text and JSON of a dry run are those of the run, but for the word that says it is one."""
    dry_text, dry = run("retain", "--dry-run").out.decode(), run("retain", "--dry-run", "--json").document
    assert dry == {
        "schema": "mire.retain/1",
        "dryRun": True,
        "namesRemoved": 0,
        "versionsRemoved": 2,
        "bytesReclaimed": 3,
        "removed": [
            {
                "modelType": "svc",
                "modelId": "web-1",
                "name": "state",
                "reason": "version-count",
                "versions": [1, 2],
                "wholeName": False,
                "bytes": 3,
            }
        ],
        "findings": [],
    }
    assert [line.split() for line in dry_text.splitlines()] == [
        ["MODEL", "NAME", "VERSIONS", "REASON", "SIZE"],
        ["svc/web-1", "state", "1-2", "version-count", "3", "B"],
        ["would", "remove", "0", "names,", "2", "versions,", "3", "B"],
    ]
    assert run("versions", "svc", "web-1", "state", "--json").document["versions"][-1]["version"] == 1
    assert run("retain").out.decode() == dry_text.replace("would remove", "removed")
    assert run("retain", "--json").document == {
        **dry, "dryRun": False, "versionsRemoved": 0, "bytesReclaimed": 0, "removed": []
    }  # fmt: skip
    assert run("retain").out == b"removed 0 names, 0 versions, 0 B\n"


def test_findings_are_told(run: Run, data: None, repo: Path) -> None:
    """What is left alone is said in both forms, with control characters made harmless."""
    (repo / ".swamp/data/svc/web-1/state/1/metadata.yaml").write_text("id: '\x1b[2J'\n")
    finding = run("retain", "--json").document["findings"][0]
    assert (finding["modelType"], finding["modelId"], finding["name"]) == ("svc", "web-1", "state")
    done = run("retain")
    assert (done.code, done.out.count(b"\n"), b"\x1b" in done.out) == (0, 2, False)
    assert done.out.startswith(b"note: svc/web-1 state: left alone")


def test_hold(run: Run, data: None) -> None:
    """What is held stays until it is released, and is listed meanwhile."""
    held = run("hold", "svc", "web-1", "state", "--version", "1", "--reason", "audit 7", "--json").document
    assert (held["schema"], held["released"], held["hold"]["version"], held["hold"]["reason"]) == (
        "mire.hold/1", False, 1, "audit 7",
    )  # fmt: skip
    listed = run("hold", "--list", "--json").document
    assert listed == {
        "schema": "mire.hold.list/1",
        "holds": [{**held["hold"], "modelType": "svc", "modelId": "web-1", "name": "state"}],
        "findings": [],
    }
    assert b"audit 7" in run("hold", "--list").out
    assert run("retain", "--json").document["removed"][0]["versions"] == [2]
    done = run("hold", "svc", "web-1", "state", "--version", "1", "--release")
    assert done.out == b"svc/web-1 state version 1: released\n"
    assert run("hold", "--list").out == b"no holds\n"
    assert run("hold", "svc", "web-1", "state").out == b"svc/web-1 state: held\n"
    assert run("retain", "--json").document["removed"] == []
    run("hold", "svc", "web-1", "state", "--release")
    assert run("retain", "--json").document["removed"][0]["versions"] == [1]


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        ((), 2, "usage"),
        (("svc", "web-1"), 2, "usage"),
        (("--list", "svc"), 2, "usage"),
        (("--list", "--release"), 2, "usage"),
        (("svc", "web-1", "state", "--release", "--reason", "x"), 2, "input"),
        (("svc", "web-1", "state", "--reason", ""), 2, "input"),
        (("svc", "web-1", "state", "--version", "0"), 2, "bad_name"),
        (("svc", "web-1", "state", "--version", "9"), 3, "not_found"),
        (("svc", "web-1", "other"), 3, "not_found"),
        (("svc", "web-1", "state", "--release"), 3, "not_held"),
        (("svc", "..", "state"), 2, "bad_name"),
    ],
)
def test_bad_holds(run: Run, data: None, repo: Path, arguments: tuple[str, ...], code: int, kind: str) -> None:
    """A hold that makes no sense is refused, and nothing is written."""
    error = run("hold", *arguments, "--json").error
    assert (error["exit"], error["kind"]) == (code, kind)
    assert not (repo / ".swamp/data/svc/web-1/state/.hold").exists()


def test_prune_wants_a_word(run: Run, data: None, repo: Path) -> None:
    """Without a terminal pruning needs --yes; without definitions it is refused altogether."""
    error = run("prune", "--json").error
    assert (error["kind"], "--yes" in error["message"]) == ("unconfirmed", True)
    assert "--yes" in run("prune").line
    assert run("prune", "--yes", "--json").error["kind"] == "no_definitions"
    (repo / "models").mkdir()
    dry = run("prune", "--dry-run", "--json").document
    assert (dry["schema"], dry["dryRun"], dry["namesRemoved"], dry["versionsRemoved"]) == ("mire.prune/1", True, 1, 3)
    done = run("prune", "--yes", "--json").document
    assert {**done, "dryRun": True} == dry
    assert run("ls", "--json").document["models"] == []


def test_prune_warns_where_others_may_have_the_definitions(run: Run, repo: Path, tmp_path: Path) -> None:
    """In a directory that is not the repository's own, data of others looks orphaned: that is said first."""
    (repo / "models").mkdir()
    run("init")
    assert b"may be shared" not in run("prune", "--dry-run").err
    run("init", "--datastore", f"filesystem:{tmp_path / 'share'}")
    assert b"may be shared" in run("prune", "--dry-run").err


@pytest.mark.parametrize(("typed", "left"), [(b"n\n", 1), (b"\n", 1), (b"y\n", 0)])
def test_prune_asks_on_a_terminal(
    run: Run, data: None, repo: Path, environ: dict[str, str], typed: bytes, left: int
) -> None:
    """On a terminal the orphans are shown, and only a yes removes them."""
    (repo / "models").mkdir()
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [Path(sys.executable).with_name("mire"), "prune"],
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=repo, env=environ,
    ) as child:  # fmt: skip
        os.close(theirs)
        os.write(ours, typed)
        out, err = child.communicate(timeout=60)
        os.close(ours)
    assert (child.returncode, err) == (0, b"")
    assert b"orphaned" in out
    assert (b"nothing was removed" in out) == bool(left)
    assert len(run("ls", "--json").document["models"]) == left
