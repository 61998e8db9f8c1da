"""The tree the reference wrote, through the command line."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
INDEX: dict[str, Any] = json.loads((GOLDEN / "tree.json").read_text())
FILES: dict[str, dict[str, Any]] = {entry["rel"]: entry for entry in INDEX["files"]}
NAMES = [(entry["modelType"], entry["modelId"], name) for entry in INDEX["models"] for name in entry["dataNames"]]
Run = Callable[..., Any]


@pytest.fixture
def golden(run: Run, repo: Path) -> Run:
    """A repository whose store is a copy of the golden tree."""
    shutil.copytree(GOLDEN / "tree", repo / ".swamp")
    assert run("init").code == 0
    return run


def test_ls_shows_every_model(golden: Run) -> None:
    """Every model with the number of its names."""
    models = golden("ls", "--json").document["models"]
    assert {(m["modelType"], m["modelId"]): m["names"] for m in models} == {
        (entry["modelType"], entry["modelId"]): len(entry["dataNames"]) for entry in INDEX["models"]
    }


def test_get_gives_the_bytes_of_every_version(golden: Run) -> None:
    """Each version of each name comes out with the size and SHA-256 of the list."""
    for kind, model_id, name in NAMES:
        for item in golden("versions", kind, model_id, name, "--json").document["versions"]:
            out = golden("get", kind, model_id, name, "--version", str(item["version"])).out
            entry = FILES[f"data/{kind}/{model_id}/{name}/{item['version']}/raw"]
            assert (len(out), hashlib.sha256(out).hexdigest()) == (entry["size"], entry["sha256"])


def test_odd_names_are_typed_as_they_are(process: Run, repo: Path) -> None:
    """Spaces, percent signs, other scripts and emoji need no encoding on a real command line."""
    shutil.copytree(GOLDEN / "tree", repo / ".swamp")
    assert process("init").code == 0
    for kind, model_id, name in NAMES:
        if name in {"name with space", "100%-done", "a%20b", "a+b&c=d", "käse-日本語", "🐊", "empty"}:
            result = process("get", kind, model_id, name)
            assert result.code == 0
            assert len(result.out) == FILES[f"data/{kind}/{model_id}/{name}/3/raw"]["size"]


def test_log_shows_every_record(golden: Run) -> None:
    """All outputs, runs and audit events, newest first, none damaged."""
    document = golden("log", "--json").document
    kinds = [event["kind"] for event in document["events"]]
    assert (kinds.count("output"), kinds.count("run"), kinds.count("audit")) == (10, 2, 2)
    assert document["damaged"] == []
    times = [event["time"] for event in document["events"]]
    assert times == sorted(times, reverse=True)
