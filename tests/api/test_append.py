"""Appending: only streaming data grows, and only what is recorded counts."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import mire

Place = Callable[..., Path]
Snapshot = Callable[[Path], dict[str, object]]


def test_append_grows_the_latest_version(model: mire.Model, place: Place) -> None:
    """Every kind of content can be added; size grows, the checksum goes, version and id stay."""
    first = model.put("log", "one\n", streaming=True)
    model.append("log", b"two\n")
    model.append("log", io.BytesIO(b"three\n"))
    grown = model.append("log", "")
    assert model.get("log").text() == "one\ntwo\nthree\n"
    assert (grown.version, grown.id, grown.size_bytes, grown.checksum) == (1, first.id, 14, None)
    document = yaml.safe_load(place("log/1/metadata.yaml").read_text())
    assert (document["size"], "checksum" in document, document["createdAt"]) == (14, False, first.created_at)


def test_a_new_version_starts_empty(model: mire.Model) -> None:
    """A put ends the growth of the version before; append goes to the new one."""
    model.put("log", "a", streaming=True)
    model.append("log", "b")
    model.put("log", "c", streaming=True)
    model.append("log", "d")
    assert (model.get("log", 1).text(), model.get("log").text()) == ("ab", "cd")


def test_only_streaming_data_grows(model: mire.Model, repo: Path, snapshot: Snapshot) -> None:
    """Ordinary, missing and deleted data are refused, and nothing changes."""
    model.put("state", "x")
    model.put("gone", "x", streaming=True)
    model.mark_deleted("gone")
    before = snapshot(repo)
    with pytest.raises(mire.InputError, match="not streaming"):
        model.append("state", "y")
    for name in ("none", "gone"):
        with pytest.raises(mire.NotFoundError):
            model.append(name, "y")
    assert snapshot(repo) == before


def test_the_tail_of_a_dead_append_is_ignored_and_overwritten(model: mire.Model, place: Place) -> None:
    """Bytes behind the recorded size were never finished: no reader sees them, the next append replaces them."""
    model.put("log", "committed\n", streaming=True)
    with place("log/1/raw").open("ab") as file:
        file.write(b"half a line of a dead wri")
    artifact = model.get("log")
    with artifact.open() as file:
        assert artifact.bytes() == file.read() == b"committed\n"
    artifact.verify()
    model.append("log", "next\n")
    assert place("log/1/raw").read_bytes() == b"committed\nnext\n"
    assert model.get("log").text() == "committed\nnext\n"


def test_a_rename_leaves_the_dead_tail_behind(model: mire.Model, place: Place) -> None:
    """Only what counts is copied."""
    model.put("log", "committed\n", streaming=True)
    with place("log/1/raw").open("ab") as file:
        file.write(b"tail")
    model.rename("log", "new")
    assert place("new/1/raw").read_bytes() == b"committed\n"


def test_content_shorter_than_recorded_does_not_grow(model: mire.Model, place: Place) -> None:
    """Appending to a version that lost bytes would hide the loss."""
    model.put("log", "0123456789", streaming=True)
    place("log/1/raw").write_bytes(b"012")
    with pytest.raises(mire.FormatError) as caught:
        model.append("log", "x")
    assert caught.value.kind == "damaged"
    place("log/1/raw").unlink()
    with pytest.raises(mire.NotFoundError) as missing:
        model.append("log", "x")
    assert missing.value.kind == "content_missing"


def test_flipped_content_is_not_laundered_by_an_append(model: mire.Model, place: Place) -> None:
    """The checksum is dropped by an append, so it has to hold before: else damage becomes undetectable."""
    model.put("log", "good", streaming=True)
    place("log/1/raw").write_bytes(b"evil")
    with pytest.raises(mire.FormatError):
        model.append("log", "!")


def test_data_of_a_writer_that_records_no_size_can_grow(model: mire.Model, place: Place) -> None:
    """The reference's size is optional: then all bytes count, and the append records them."""
    model.put("log", "ab", streaming=True)
    path = place("log/1/metadata.yaml")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith(("size", "checksum"))))
    assert model.get("log").text() == "ab"
    assert model.append("log", "cd").size_bytes == 4
    assert model.get("log").text() == "abcd"


def test_an_append_that_fails_midway_adds_nothing(model: mire.Model) -> None:
    """A source that breaks leaves the content as it was, and the next append works."""

    class Breaking(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().read(3 if size else 0)

        read1 = read

    model.put("log", "old", streaming=True)
    with pytest.raises(mire.RemoteError):
        model.append("log", Breaking(b"abcdef"))
    assert model.get("log").text() == "old"
    model.append("log", "new")
    assert model.get("log").text() == "oldnew"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> mire.Store:
    """A store that all examples of a property write to."""
    return mire.open(tmp_path_factory.mktemp("shared"))


@given(parts=st.lists(st.binary(max_size=20), max_size=4))
def test_parts_add_up(shared: mire.Store, parts: list[bytes]) -> None:
    """However content is cut into appends, the whole is the parts in order."""
    model = shared.model("t", "append")
    model.put("n", b"", streaming=True)
    for part in parts:
        model.append("n", part)
    assert model.get("n").bytes() == b"".join(parts)
