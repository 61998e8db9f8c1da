"""Renames: the new name has the latest content, the old one forwards and keeps its history."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import mire

Place = Callable[..., Path]
Snapshot = Callable[[Path], dict[str, object]]


def test_a_rename_leaves_what_the_reference_leaves(model: mire.Model, place: Place) -> None:
    """The copy is a first version with a new id; the old name ends in a tombstone that points to it."""
    model.put("old", "one")
    two = model.put("old", {"a": 1}, tags={"env": "prod"}, lifetime="90d")
    done = model.rename("old", "new")
    assert (done.copied_version, done.new_version, done.tombstone_version) == (2, 1, 3)
    copy = model.get("new").metadata
    assert (copy.size_bytes, copy.checksum, copy.tags, copy.lifetime) == (
        two.size_bytes,
        two.checksum,
        two.tags,
        two.lifetime,
    )
    assert copy.id != two.id
    tombstone = yaml.safe_load(place("old/3/metadata.yaml").read_text())
    assert (tombstone["lifecycle"], tombstone["renamedTo"], tombstone["contentType"], tombstone["streaming"]) == (
        "deleted",
        "new",
        "application/json",
        False,
    )
    assert not {"size", "checksum"} & set(tombstone)
    assert set(model.get("old", 3).json()) == {"renamedTo", "renamedAt"}
    assert place("old/latest").read_bytes() == b"3"


def test_the_old_name_forwards_and_keeps_its_history(model: mire.Model) -> None:
    """Without a number the old name answers with the new one; with a number it is itself."""
    model.put("old", "one")
    model.rename("old", "new")
    model.put("new", "two")
    assert (model.get("old").name, model.get("old").text(), model.latest("old")) == ("new", "two", 2)
    assert (model.get("old", 1).name, model.get("old", 1).text()) == ("old", "one")
    assert model.versions("old") == [1, 2]
    assert [(row.name, row.metadata is not None and row.metadata.is_deleted) for row in model.names()] == [
        ("new", False),
        ("old", True),
    ]


def test_five_renames_are_followed_and_not_six(model: mire.Model) -> None:
    """A lookup gives up where the reference does, and says so."""
    model.put("n0", "x")
    for step in range(6):
        model.rename(f"n{step}", f"n{step + 1}")
    assert model.get("n1").name == "n6"
    with pytest.raises(mire.NotFoundError) as caught:
        model.get("n0")
    assert caught.value.kind == "too_many_renames"


def test_renaming_there_and_back(model: mire.Model) -> None:
    """A name can come back: its newest version is data again, so nothing goes round in circles."""
    model.put("a", "x")
    model.rename("a", "b")
    model.rename("b", "a")
    assert (model.get("a").name, model.get("a").version) == ("a", 3)
    assert model.get("b").name == "a"


def test_a_circle_of_renames_ends(model: mire.Model, place: Place) -> None:
    """Two tombstones that point to each other are an error, not an endless lookup."""
    model.put("a", "x")
    model.rename("a", "b")
    model.rename("b", "a")
    place("a/latest").write_bytes(b"2")
    for name in ("a", "b"):
        with pytest.raises(mire.NotFoundError) as caught:
            model.get(name)
        assert caught.value.kind == "too_many_renames"


def test_a_tombstone_to_a_bad_name_is_not_followed(model: mire.Model, place: Place) -> None:
    """A forward reference out of the model's directory is damage, whatever wrote it."""
    model.put("a", "x")
    model.rename("a", "b")
    text = place("a/2/metadata.yaml").read_text()
    place("a/2/metadata.yaml").write_text(text.replace("renamedTo: 'b'", "renamedTo: '../../other/i/n'"))
    with pytest.raises(mire.FormatError, match="would leave its directory"):
        model.get("a")


@pytest.mark.parametrize("renamed_to", [".lock", "LATEST", "."])
def test_a_tombstone_to_a_name_we_would_not_create(model: mire.Model, place: Place, renamed_to: str) -> None:
    """The error of following it is about stored bytes or a missing name, not about the caller's input."""
    model.put("a", "x")
    model.rename("a", "b")
    text = place("a/2/metadata.yaml").read_text()
    place("a/2/metadata.yaml").write_text(text.replace("renamedTo: 'b'", f"renamedTo: '{renamed_to}'"))
    with pytest.raises((mire.FormatError, mire.NotFoundError)):
        model.get("a")


def test_what_stands_in_the_way_of_a_rename(model: mire.Model, repo: Path, snapshot: Snapshot) -> None:
    """An active name, itself, nothing, something deleted: each is refused, and nothing is written."""
    for name in ("a", "b", "gone", "moved"):
        model.put(name, name)
    model.mark_deleted("gone")
    model.rename("moved", "c")
    before = snapshot(repo)
    with pytest.raises(mire.ConflictError) as exists:
        model.rename("a", "b")
    assert exists.value.kind == "exists"
    with pytest.raises(mire.InputError):
        model.rename("a", "a")
    with pytest.raises(mire.NotFoundError):
        model.rename("none", "d")
    for old in ("gone", "moved"):
        with pytest.raises(mire.NotFoundError) as deleted:
            model.rename(old, "d")
        assert deleted.value.kind == "deleted"
    assert snapshot(repo) == before


def test_a_rename_onto_what_is_gone(model: mire.Model) -> None:
    """A deleted, marked or forwarding name can be taken; its numbers go on."""
    for name in ("deleted", "marked", "moved"):
        model.put(name, "old")
    model.delete("deleted")
    model.mark_deleted("marked")
    model.rename("moved", "elsewhere")
    for name, version in (("deleted", 2), ("marked", 3), ("moved", 3)):
        model.put(f"to-{name}", name)
        assert model.rename(f"to-{name}", name).new_version == version
        assert model.get(name).text() == name


def test_writing_an_old_name_needs_revive(model: mire.Model, repo: Path, snapshot: Snapshot) -> None:
    """A write that would silently end a forwarding is refused; on request it ends it."""
    model.put("old", "1")
    model.rename("old", "new")
    before = snapshot(repo)
    with pytest.raises(mire.ConflictError) as caught:
        model.put("old", "2")
    assert (caught.value.kind, caught.value.names["renamed_to"]) == ("renamed", "new")
    assert snapshot(repo) == before
    assert model.put("old", "2", revive=True).version == 3
    assert (model.get("old").text(), model.get("new").text()) == ("2", "1")


def test_a_rename_of_damaged_content_is_refused(
    model: mire.Model, place: Place, repo: Path, snapshot: Snapshot
) -> None:
    """Damage is not copied under a fresh name with a fresh date."""
    model.put("old", "good")
    place("old/1/raw").write_bytes(b"evil")
    before = snapshot(repo)
    with pytest.raises(mire.FormatError):
        model.rename("old", "new")
    assert snapshot(repo) == before


def test_a_renamed_stream_goes_on_growing(model: mire.Model) -> None:
    """The copy is streaming as the original was, and the old name appends to it."""
    model.put("old", "a", streaming=True)
    model.rename("old", "new")
    model.append("new", "b")
    model.append("old", "c")
    assert model.get("new").text() == "abc"
    assert model.get("old", 1).text() == "a"
