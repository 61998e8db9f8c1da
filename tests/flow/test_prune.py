"""Pruning: only data whose definition is surely gone, and never on half a look."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

import mire
from mire.errors import FormatError, NotFoundError
from mire.flow.hold import hold
from mire.flow.prune import look_again, plan_prune, prune
from mire.flow.retain import carry_out
from mire.model.names import DataName

IDS = [f"31f6d0aa-8c47-4b0e-a5d9-e47c2b19f60{n}" for n in range(8)]


def define(path: Path, text: str) -> None:
    """Write a definition."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def furnished(store: mire.Store, repo: Path) -> mire.Store:
    """Models with definitions of every kind, one without, one that needs none."""
    for kind, model_id in (
        *(("svc/web", model_id) for model_id in IDS[:6]),
        ("workflow", IDS[0]),
        ("workflow", IDS[6]),
        ("swamp/worker", IDS[7]),
    ):
        store.model(kind, model_id).put("state", model_id[-1])
    define(repo / "models/svc/web/plain.yaml", f"type: svc/web\nid: {IDS[0]}\nname: plain\n")
    define(repo / "models/svc/web/upper.yml", f"id: '{IDS[1].upper()}'\n")
    define(repo / f"models/svc/web/{IDS[2]}.yaml", "name: '!'\n")
    define(repo / f"elsewhere/{IDS[3]}.yaml", f"id: {IDS[3]}\n")
    os.symlink("../elsewhere", repo / "models/linked")
    os.symlink("..", repo / "models/svc/loop")
    define(repo / ".swamp/auto-definitions/svc/web/auto.yaml", f"id: {IDS[4]}\n")
    define(repo / "models/notes.yaml", "- not a definition\n")
    define(repo / "workflows/flow.yaml", f"id: {IDS[6]}\n")
    return store


def test_orphans_go(furnished: mire.Store) -> None:
    """Exactly the models without a definition of their kind lose their data, as the dry run says."""
    model = furnished.model("svc/web", IDS[5])
    model.put("log", "xyz")
    model.put("log", "x", version_policy=1)
    model.rename("state", "status")
    dry = prune(furnished.datastore, dry_run=True)
    assert [(str(item.model), item.name, item.versions, item.reason) for item in dry.decisions] == [
        (f"svc/web/{IDS[5]}", "log", (1, 2), "orphaned"),
        (f"svc/web/{IDS[5]}", "state", (1, 2), "orphaned"),
        (f"svc/web/{IDS[5]}", "status", (1,), "orphaned"),
        (f"workflow/{IDS[0]}", "state", (1,), "orphaned"),
    ]
    assert len(furnished.models()) == 9
    assert replace(prune(furnished.datastore), is_dry_run=True) == dry
    assert [str(model.ref) for model in furnished.models()] == [
        *(f"svc/web/{model_id}" for model_id in IDS[:5]),
        f"swamp/worker/{IDS[7]}",
        f"workflow/{IDS[6]}",
    ]
    assert prune(furnished.datastore).decisions == ()
    assert furnished.model("svc/web", IDS[5]).put("log", "back").version == 3


def test_what_is_held_stays(furnished: mire.Store) -> None:
    """A held name of an orphan is reported, and left with all its versions."""
    model = furnished.model("svc/web", IDS[5])
    model.put("other", "x")
    hold(furnished.datastore, model.ref, DataName("state"))
    report = prune(furnished.datastore)
    assert {item.name for item in report.decisions if item.model == model.ref} == {"other"}
    assert [(item.model, item.name) for item in report.findings] == [(model.ref, "state")]
    assert model.get("state").text() == "5"


def test_without_definitions_nothing_is_an_orphan(store: mire.Store, repo: Path) -> None:
    """No `models` directory is an error, no `workflows` directory leaves workflows alone."""
    store.model("workflow", IDS[0]).put("report", "x")
    for dry_run in (True, False):
        with pytest.raises(NotFoundError) as caught:
            prune(store.datastore, dry_run=dry_run)
        assert caught.value.kind == "no_definitions"
    (repo / "models").mkdir()
    report = prune(store.datastore)
    assert (report.decisions, len(report.findings)) == ((), 1)
    (repo / "workflows").mkdir()
    assert prune(store.datastore).names_removed == 1


@pytest.mark.parametrize("damage", ["id: [", b"\xff", "a: 1\na: 2\n", "link", "fifo"])
def test_a_definition_that_cannot_be_read(furnished: mire.Store, repo: Path, damage: str | bytes) -> None:
    """One definition nobody can read could be anybody's: nothing is removed, and the error names it."""
    path = repo / "models/svc/broken.yaml"
    match damage:
        case "link":
            path.symlink_to("nowhere")
        case "fifo":
            os.mkfifo(path)
        case bytes():
            path.write_bytes(damage)
        case _:
            path.write_text(damage)
    with pytest.raises(FormatError, match=r"broken\.yaml") as caught:
        prune(furnished.datastore)
    assert caught.value.kind == "bad_definition"
    assert len(furnished.models()) == 9


def test_a_definition_that_comes_back(furnished: mire.Store, repo: Path) -> None:
    """What was an orphan when looked at, and is none under the lock, keeps its data."""
    planned = list(plan_prune(furnished.datastore))
    define(repo / "models/back.yaml", f"id: {IDS[5]}\n")
    report = carry_out(furnished.datastore, iter(planned), lambda: look_again(furnished.datastore))
    assert [str(item.model) for item in report.decisions] == [f"workflow/{IDS[0]}"]
    assert furnished.model("svc/web", IDS[5]).get("state").text() == "5"
