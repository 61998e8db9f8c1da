"""Holding and releasing: what is confirmed is on disk, what is not there cannot be held."""

import json
from pathlib import Path

import pytest

import mire
from mire.errors import FormatError, InputError, NotFoundError
from mire.flow.hold import HeldName, hold, list_holds, load_holds, unhold
from mire.flow.walk import Finding
from mire.model.names import DataName, Version

STATE = DataName("state")


@pytest.fixture
def model(store: mire.Store) -> mire.Model:
    """A model with two versions of a name."""
    model = store.model("svc", "web-1")
    model.put("state", "a")
    model.put("state", "b")
    return model


def place(repo: Path) -> Path:
    """The file of the name's holds."""
    return repo / ".swamp/data/svc/web-1/state/.hold"


def test_hold_and_release(store: mire.Store, model: mire.Model, repo: Path) -> None:
    """Holds add up, are seen by others, and the last release takes the file away."""
    ds = store.datastore
    hold(ds, model.ref, STATE, Version(1), "audit")
    hold(ds, model.ref, STATE)
    holds = load_holds(mire.open(repo).datastore, model.ref, STATE)
    assert [(item.version, item.reason, item.by) for item in holds.items] == [
        (1, "audit", ds.host.holder),
        (None, None, ds.host.holder),
    ]
    assert (holds.is_held(1), holds.is_held(2), holds.versions) == (True, True, (1,))
    assert list(list_holds(ds)) == [HeldName(model=model.ref, name=STATE, holds=holds)]
    assert unhold(ds, model.ref, STATE).version is None
    assert not load_holds(ds, model.ref, STATE).is_held(2)
    assert unhold(ds, model.ref, STATE, Version(1)).reason == "audit"
    assert not place(repo).exists()
    assert (list(list_holds(ds)), model.versions("state")) == ([], [1, 2])


def test_members_of_a_newer_writer_survive(store: mire.Store, model: mire.Model, repo: Path) -> None:
    """Holding and releasing beside unknown members keeps them, also when no hold is left."""
    entry = {"version": 1, "by": "ada@host", "at": "2026-01-01T00:00:00.000Z", "until": "2027"}
    place(repo).write_text(json.dumps({"holds": [entry], "format": 2}))
    hold(store.datastore, model.ref, STATE, Version(1), "longer")
    hold(store.datastore, model.ref, STATE, Version(2))
    document = json.loads(place(repo).read_text())
    assert document["format"] == 2
    assert [(item["version"], item.get("until")) for item in document["holds"]] == [(1, "2027"), (2, None)]
    unhold(store.datastore, model.ref, STATE, Version(1))
    unhold(store.datastore, model.ref, STATE, Version(2))
    assert json.loads(place(repo).read_text()) == {"holds": [], "format": 2}
    assert list(list_holds(store.datastore)) == []


def test_what_is_not_there(store: mire.Store, model: mire.Model, repo: Path) -> None:
    """Names, versions and holds that do not exist are errors that leave nothing behind."""
    ds = store.datastore
    for name, version in (("state", 3), ("other", None), ("other", 1)):
        with pytest.raises(NotFoundError):
            hold(ds, model.ref, DataName(name), None if version is None else Version(version))
    with pytest.raises(InputError):
        hold(ds, model.ref, STATE, None, " ")
    assert not place(repo).exists()
    hold(ds, model.ref, STATE, Version(2))
    for version in (None, 1):
        with pytest.raises(NotFoundError, match="held: version 2") as caught:
            unhold(ds, model.ref, STATE, None if version is None else Version(version))
        assert caught.value.kind == "not_held"


def test_damage_is_not_overwritten(store: mire.Store, model: mire.Model, repo: Path) -> None:
    """A file that cannot be read stays as it is, and the list tells of it."""
    place(repo).write_text("held!")
    with pytest.raises(FormatError, match=r"state/\.hold"):
        hold(store.datastore, model.ref, STATE)
    with pytest.raises(FormatError):
        unhold(store.datastore, model.ref, STATE)
    assert place(repo).read_text() == "held!"
    (found,) = list_holds(store.datastore)
    assert isinstance(found, Finding)
    assert found.name == "state"


def test_other_readers_do_not_mind(store: mire.Store, model: mire.Model) -> None:
    """A held name is listed, read, written and renamed as any other."""
    hold(store.datastore, model.ref, STATE)
    assert model.put("state", "c").version == 3
    assert [row.name for row in model.names()] == ["state"]
    model.rename("state", "fresh")
    assert (model.get("state").name, model.versions("state")) == ("fresh", [1, 2, 3, 4])
    assert store.locks() == []


def test_holds_from_python(store: mire.Store) -> None:
    """What Python holds back, retention leaves, until it is let go."""
    model = store.model("svc", "web")
    for number in range(3):
        model.put("log", str(number), version_policy=1)
    model.hold_back("log", 1, reason="evidence")
    assert [(held.name, held.holds.versions) for held in store.holds()] == [("log", (1,))]
    store.retain()
    assert model.versions("log") == [1, 3]
    model.let_go("log", 1)
    store.retain()
    assert model.versions("log") == [3]


def test_a_hold_that_cannot_be_read_is_an_error_in_python(store: mire.Store, repo: Path) -> None:
    """A damaged record of holds is never shown as "nothing is held"."""
    store.model("svc", "web").put("log", "x")
    (repo / ".swamp/data/svc/web/log/.hold").write_bytes(b"{")
    with pytest.raises(FormatError, match="svc/web"):
        store.holds()
