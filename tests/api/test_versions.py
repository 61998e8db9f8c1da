"""Versions of a name: which is latest, which are visible, which numbers are taken, and what damage is told."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import mire

Place = Callable[..., Path]
Snapshot = Callable[[Path], dict[str, object]]


@pytest.fixture
def two(model: mire.Model) -> mire.Model:
    """A model whose name `n` has versions 1 and 2."""
    model.put("n", "one")
    model.put("n", "two")
    return model


@pytest.mark.parametrize(("target", "version"), [("1", 1), ("1/", 1), ("2", 2), ("2/", 2)])
def test_a_legacy_link_names_the_latest(two: mire.Model, place: Place, target: str, version: int) -> None:
    """Older programs kept `latest` as a symbolic link; the next write replaces it by a text file."""
    place("n/latest").unlink()
    place("n/latest").symlink_to(target)
    assert two.get("n").version == version
    assert two.put("n", "three").version == 3
    assert not place("n/latest").is_symlink()
    assert place("n/latest").read_bytes() == b"3"
    assert two.get("n").text() == "three"


def test_without_a_marker_the_highest_version_is_latest(two: mire.Model, place: Place) -> None:
    """A missing marker reads as the highest finished version, and the next write brings it back."""
    place("n/latest").unlink()
    place("n/7").mkdir()
    assert two.get("n").version == 2
    assert two.put("n", "x").version == 8
    assert place("n/latest").read_bytes() == b"8"


@pytest.mark.parametrize("text", [b"", b"garbage", b"\xff\xfe", b"-1", b"0", b"\n", b"latest"])
def test_a_garbled_marker_reads_as_missing(two: mire.Model, place: Place, text: bytes) -> None:
    """What names no version leaves the highest one as the latest."""
    place("n/latest").write_bytes(text)
    assert two.get("n").version == 2
    assert two.versions("n") == [1, 2]


@pytest.mark.parametrize("text", [b"1", b"1\n", b" \t1 \r\n", b"1abc", b"01", b"+1"])
def test_a_marker_is_read_like_the_reference_reads_it(two: mire.Model, place: Place, text: bytes) -> None:
    """White space and what follows the number do not count."""
    place("n/latest").write_bytes(text)
    assert two.get("n").text() == "one"


def test_a_marker_that_leads_nowhere_is_told(two: mire.Model, place: Place) -> None:
    """A marker naming a version that is not here is an error that lists what is; writing goes on above it."""
    place("n/latest").write_bytes(b"9")
    with pytest.raises(mire.NotFoundError) as caught:
        two.get("n")
    assert caught.value.kind == "dangling_latest"
    assert "says version 9" in caught.value.message
    assert "by number: 1, 2" in caught.value.message
    assert two.get("n", 2).text() == "two"
    assert two.put("n", "ten").version == 10
    assert two.get("n").text() == "ten"


def test_an_unfinished_version_is_invisible(two: mire.Model, place: Place) -> None:
    """A directory without metadata claims nothing, but its number is taken."""
    place("n/3").mkdir()
    place("n/3/raw").write_bytes(b"half")
    assert (two.latest("n"), two.versions("n")) == (2, [1, 2])
    with pytest.raises(mire.NotFoundError):
        two.get("n", 3)
    assert [row.version for row in two.history("n")] == [1, 2]
    assert two.put("n", "four").version == 4


def test_a_version_that_was_never_published_is_invisible(two: mire.Model, place: Place) -> None:
    """A writer that died between metadata and marker leaves the old state."""
    place("n/latest").write_bytes(b"1")
    assert (two.latest("n"), two.versions("n")) == (1, [1])
    assert two.put("n", "three").version == 3


@pytest.mark.parametrize("stray", ["3abc", "003", "3.5"])
def test_strange_directories_take_their_number(two: mire.Model, place: Place, stray: str) -> None:
    """Other clients read `3abc` as 3: where the directory is listed (no marker), the number is not given out."""
    place("n", stray).mkdir()
    place("n/latest").unlink()
    assert two.versions("n") == [1, 2]
    assert two.put("n", "x").version == 4


def test_numbers_are_never_reused(two: mire.Model, repo: Path) -> None:
    """Not after deleting the highest, not after deleting the name, not by another store or process."""
    two.delete("n", 2)
    assert two.put("n", "x").version == 3
    two.delete("n", 3)
    two.delete("n", 1)
    assert two.versions("n") == []
    assert two.put("n", "x").version == 4
    deleted = two.delete("n")
    assert (deleted.versions, deleted.is_whole_name) == ((4,), True)
    assert mire.open(repo).model("svc", "web-1").put("n", "x").version == 5
    two.delete("n")
    program = "import mire, sys; print(mire.open(sys.argv[1]).model('svc', 'web-1').put('n', 'x').version)"
    done = subprocess.run([sys.executable, "-c", program, repo], capture_output=True, check=True, text=True)
    assert done.stdout == "6\n"


def test_deleting_an_older_version_keeps_the_latest(two: mire.Model, place: Place) -> None:
    """Only the named version goes."""
    assert two.delete("n", 1).versions == (1,)
    assert (two.latest("n"), two.versions("n")) == (2, [2])
    assert not place("n/1").exists()


def test_deleting_the_latest_shows_the_one_before(two: mire.Model, place: Place) -> None:
    """The marker goes back to the highest version that remains."""
    two.delete("n", 2)
    assert two.get("n").text() == "one"
    assert place("n/latest").read_bytes() == b"1"


def test_deleting_what_is_not_there(two: mire.Model, repo: Path, snapshot: Snapshot) -> None:
    """An unknown name or version is not found, and nothing changes."""
    before = snapshot(repo)
    for name, version in (("none", None), ("n", 3), ("none", 1)):
        with pytest.raises(mire.NotFoundError):
            two.delete(name, version)
    assert snapshot(repo) == before


def test_a_name_deleted_completely_has_no_files_left(two: mire.Model, place: Place) -> None:
    """Nothing another program could take for a version remains."""
    two.delete("n")
    assert two.versions("n") == []
    assert two.names() == []
    assert [entry for entry in os.listdir(place("n")) if entry != ".highest"] == []


def test_truncated_extended_and_flipped_content_is_damage(two: mire.Model, place: Place) -> None:
    """Content that differs from what was recorded is never handed out as if it were whole."""
    for damage in (b"tw", b"two!", b"tvo"):
        place("n/2/raw").write_bytes(damage)
        for read in ("bytes", "text", "json", "verify"):
            with pytest.raises(mire.FormatError) as caught:
                getattr(two.get("n"), read)()
            assert caught.value.kind == "damaged"
            assert str(place("n/2/raw")) in caught.value.message
    place("n/2/raw").write_bytes(b"two!")
    with pytest.raises(mire.FormatError):
        two.get("n").open()


def test_missing_content_is_not_found(two: mire.Model, place: Place) -> None:
    """Metadata without content says so, with its own kind, and the other versions are unharmed."""
    place("n/2/raw").unlink()
    for read in ("bytes", "open", "verify"):
        with pytest.raises(mire.NotFoundError) as caught:
            getattr(two.get("n"), read)()
        assert caught.value.kind == "content_missing"
    assert two.get("n", 1).text() == "one"


BROKEN = [
    (b"id: [\n", "not valid YAML"),
    (b"", "not a mapping"),
    (b"- a\n", "not a mapping"),
    (b"\xff", "not UTF-8"),
    (b"a: 1\na: 2\n", "stands twice"),
    (b"name: n\n", "lacks 'id'"),
    (b"? [a]\n: b\n", "cannot be a key"),
    (b"a: &a [*a]\n", "metadata"),
    (b"[" * 5_000, "levels deep"),
    (b"x: " + b"y" * (1 << 20), "larger than"),
]


@pytest.mark.parametrize(("data", "why"), BROKEN, ids=[why for _, why in BROKEN])
def test_metadata_that_cannot_be_read_names_its_file(two: mire.Model, place: Place, data: bytes, why: str) -> None:
    """Broken metadata is one line with the path and the reason, for reading and before writing."""
    place("n/2/metadata.yaml").write_bytes(data)
    for call in (
        lambda: two.get("n"),
        lambda: two.get("n", 2),
        lambda: two.put("n", "x"),
        lambda: two.rename("n", "m"),
    ):
        with pytest.raises(mire.FormatError) as caught:
            call()
        assert why in caught.value.message
        assert str(place("n/2/metadata.yaml"))[:60] in caught.value.message
        assert "\n" not in caught.value.message
    assert [(row.version, row.metadata is None) for row in two.history("n")] == [(1, False), (2, True)]
    assert [row.error is not None for row in two.names()] == [True]
    assert two.get("n", 1).text() == "one"


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("id", "not-a-uuid"),
        ("id", 7),
        ("name", ""),
        ("version", 0),
        ("version", "2"),
        ("version", 2.5),
        ("version", True),
        ("contentType", ""),
        ("contentType", 7),
        ("lifetime", "forever"),
        ("lifetime", 7),
        ("garbageCollection", 0),
        ("garbageCollection", "infinite"),
        ("garbageCollection", True),
        ("streaming", "yes"),
        ("tags", {"env": "prod"}),
        ("tags", {"type": 7}),
        ("tags", ["type"]),
        ("ownerDefinition", "manual"),
        ("ownerDefinition", {"ownerType": "robot", "ownerRef": "x"}),
        ("ownerDefinition", {"ownerType": "manual"}),
        ("ownerDefinition", {"ownerType": "manual", "ownerRef": "x", "workflowId": "x"}),
        ("createdAt", "2026-05-17T08:30:02+02:00"),
        ("createdAt", "yesterday"),
        ("size", -1),
        ("size", "3"),
        ("checksum", 7),
        ("lifecycle", "zombie"),
        ("renamedTo", "../x"),
    ],
)
def test_metadata_with_a_wrong_member_names_it(two: mire.Model, place: Place, member: str, value: object) -> None:
    """A member of the wrong type or value is refused, and the message names it."""
    document = yaml.safe_load(place("n/2/metadata.yaml").read_text())
    place("n/2/metadata.yaml").write_text(yaml.safe_dump({**document, member: value}))
    with pytest.raises(mire.FormatError) as caught:
        two.get("n")
    assert f"'{member}'" in caught.value.message


@pytest.mark.parametrize(("member", "value"), [("name", "other"), ("version", 1)])
def test_metadata_of_another_version_is_damage(two: mire.Model, place: Place, member: str, value: object) -> None:
    """A copied metadata file does not pass for the version it stands in."""
    document = yaml.safe_load(place("n/2/metadata.yaml").read_text())
    place("n/2/metadata.yaml").write_text(yaml.safe_dump({**document, member: value}))
    with pytest.raises(mire.FormatError) as caught:
        two.get("n")
    assert caught.value.kind == "damaged"


def test_members_of_a_newer_writer_survive(model: mire.Model, place: Place) -> None:
    """What we do not know is kept when a file is rewritten, at both levels."""
    model.put("n", "one", streaming=True)
    document = yaml.safe_load(place("n/1/metadata.yaml").read_text())
    document["futureMember"] = {"a": [1, None, "x"]}
    document["ownerDefinition"]["futureOwner"] = "x"
    place("n/1/metadata.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    model.append("n", "two")
    grown = yaml.safe_load(place("n/1/metadata.yaml").read_text())
    assert grown["futureMember"] == {"a": [1, None, "x"]}
    assert grown["ownerDefinition"]["futureOwner"] == "x"
    assert (grown["size"], "checksum" in grown) == (6, False)


def test_only_the_owner_writes_a_name(model: mire.Model, repo: Path, snapshot: Snapshot) -> None:
    """Another producer is refused with both names; what else the owner says does not matter."""
    mine = mire.Owner(owner_type="model-method", owner_ref="vpc", definition_hash="abc")
    model.put("n", "1", owner=mine)
    before = snapshot(repo)
    for owner in (None, "manual:vpc", "model-method:other"):
        with pytest.raises(mire.OwnershipError) as caught:
            model.put("n", "2", owner=owner)
        assert "model-method:vpc" in caught.value.message
        assert caught.value.exit_code == 4
    assert snapshot(repo) == before
    assert model.put("n", "2", owner="model-method:vpc").version == 2
    model.mark_deleted("n")
    with pytest.raises(mire.OwnershipError):
        model.put("n", "3")


def test_a_deletion_marker_ends_a_name(model: mire.Model, place: Place) -> None:
    """The latest version says when and by what the thing ended, history stays, and a new version revives it."""
    model.put("n", {"cidr": "10/8"}, tags={"env": "prod"}, owner="model-method:m")
    marker = model.mark_deleted("n", method="destroy")
    assert (marker.version, marker.is_deleted, marker.tags["env"]) == (2, True, "prod")
    assert str(marker.owner) == "model-method:m"
    assert yaml.safe_load(place("n/2/metadata.yaml").read_text())["lifecycle"] == "deleted"
    content = model.get("n", 2).json()
    assert (content.pop("deletedAt") <= marker.created_at, content) == (
        True,
        {"cidr": "10/8", "deletedByMethod": "destroy"},
    )
    with pytest.raises(mire.NotFoundError) as gone:
        model.get("n")
    assert gone.value.kind == "deleted"
    with pytest.raises(mire.ConflictError) as again:
        model.mark_deleted("n")
    assert again.value.kind == "already_deleted"
    assert model.get("n", 1).json() == {"cidr": "10/8"}
    assert model.put("n", {"cidr": "11/8"}, owner="model-method:m").version == 3
    assert model.get("n").json() == {"cidr": "11/8"}


@pytest.mark.parametrize("content", [b"\x00\xff", "text", [1, 2]])
def test_a_deletion_marker_for_what_has_no_attributes(model: mire.Model, content: object) -> None:
    """Content that is no JSON object leaves only the facts of the deletion."""
    model.put("n", content)
    model.mark_deleted("n")
    assert set(model.get("n", 2).json()) == {"deletedAt", "deletedByMethod"}


def test_a_deletion_marker_for_nothing(model: mire.Model) -> None:
    """What was never put cannot end."""
    with pytest.raises(mire.NotFoundError):
        model.mark_deleted("n")
