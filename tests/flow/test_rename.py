"""A rename whose writer died is finished or undone, and touches nothing that is not its own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import mire


def intent(repo: Path) -> Path:
    """The file of a rename under way."""
    return repo / ".swamp/data/svc/web-1/_catalog.db-rename.json"


def document(version: int, tombstone: int, ids: tuple[str, str] = ("a", "b")) -> dict[str, Any]:
    """An intent as a writer leaves it."""
    return {
        "copy": {"name": "new", "version": version, "id": ids[0]},
        "tombstone": {"name": "old", "version": tombstone, "id": ids[1]},
    }


def test_what_others_wrote_since_is_never_undone(store: mire.Store, repo: Path) -> None:
    """Versions that stand where a dead rename meant to write are somebody else's, and stay."""
    model = store.model("svc", "web-1")
    for text in ("a", "b", "c"):
        model.put("old", text)
    model.put("new", "n")
    intent(repo).write_text(json.dumps(document(1, 3)))
    assert [model.get("old", n).text() for n in model.versions("old")] == ["a", "b", "c"]
    assert model.get("new").text() == "n"
    assert not intent(repo).exists()


def test_an_unpublished_version_of_somebody_else_stays(store: mire.Store, repo: Path) -> None:
    """Above `latest` only what carries the rename's own id is taken back."""
    model = store.model("svc", "web-1")
    model.put("old", "a")
    foreign = repo / ".swamp/data/svc/web-1/old/2"
    shutil.copytree(foreign.with_name("1"), foreign)
    text = (foreign / "metadata.yaml").read_text()
    (foreign / "metadata.yaml").write_text(text.replace("version: 1", "version: 2"))
    intent(repo).write_text(json.dumps(document(1, 2)))
    model.get("old")
    assert (foreign / "raw").exists()
    assert (foreign / "metadata.yaml").exists()


@pytest.mark.parametrize(
    "data",
    [
        "",
        "not json",
        "[" * 100_000,
        "{}",
        json.dumps({"copy": 1, "tombstone": 2}),
        json.dumps({**document(1, 1), "copy": {"name": "..", "version": 1, "id": "x"}}),
        json.dumps({**document(1, 1), "copy": {"name": "new", "version": 0, "id": "x"}}),
    ],
)
def test_a_garbled_intent_stops_nobody(store: mire.Store, repo: Path, data: str) -> None:
    """What is not a rename of ours is cleared away, and reading and writing go on."""
    model = store.model("svc", "web-1")
    model.put("old", "a")
    intent(repo).write_text(data)
    assert model.get("old").text() == "a"
    assert model.put("old", "b").version == 2
    assert not intent(repo).exists()
