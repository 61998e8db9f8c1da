"""What a write refuses, and what it leaves when it fails."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import mire
from mire.errors import ConflictError, InputError


def tree(root: Path) -> list[str]:
    """Every path below a directory."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("aws", "ec2", "vpc"), ("aws/ec2/vpc", "i-1", "state")),
        (("aws", "ec2", "vpc"), ("aws/ec2/vpc", "1", "state")),
        (("aws", "ec2", "vpc"), ("aws/ec2", "vpc", "1")),
        (("aws/ec2/vpc", "i-1", "state"), ("aws", "ec2", "vpc")),
        (("aws/ec2/vpc", "1", "state"), ("aws", "ec2", "vpc")),
        (("aws/ec2/vpc/x/y", "1", "state"), ("aws", "ec2", "vpc")),
    ],
)
def test_models_never_share_a_directory(repo: Path, first: tuple[str, str, str], second: tuple[str, str, str]) -> None:
    """A type and an id that spell the path of another model's data are refused, with nothing written."""
    store = mire.open(repo)
    store.model(*first[:2]).put(first[2], "kept")
    before = tree(repo / ".swamp" / "data")
    with pytest.raises(ConflictError) as caught:
        store.model(*second[:2]).put(second[2], "refused")
    assert caught.value.kind == "nested"
    assert tree(repo / ".swamp" / "data") == before
    assert store.model(*first[:2]).get(first[2]).text() == "kept"


def test_names_that_are_numbers_are_no_versions(store: mire.Store) -> None:
    """A data name made of digits is a name like any other, also beside versions and numeric ids."""
    for model_id in ("42", "i-1"):
        model = store.model("svc", model_id)
        model.put("207333", "a")
        model.put("1", "b")
        model.put("1", "c")
        assert [row.name for row in model.names()] == ["1", "207333"]
        assert (model.versions("1"), model.get("1").text()) == ([1, 2], "c")
    assert [model.id for model in store.models()] == ["42", "i-1"]


def test_content_that_cannot_be_read_leaves_nothing(store: mire.Store, repo: Path) -> None:
    """A put whose content fails half-way leaves no version, no number taken, no temporary file."""
    model = store.model("svc", "web-1")
    model.put("state", "one")
    before = tree(repo)

    class Broken:
        def __init__(self) -> None:
            self._reads = iter([b"some", "text"])

        def read(self, _size: int = -1) -> object:
            return next(self._reads, b"")

    with pytest.raises(InputError):
        model.put("state", Broken())  # type: ignore[arg-type]
    assert tree(repo) == before
    assert model.put("state", "two").version == 2


def test_a_large_file_is_copied_in_pieces(store: mire.Store, tmp_path: Path) -> None:
    """A file of several pieces arrives byte for byte."""
    source = tmp_path / "big"
    source.write_bytes(bytes(range(256)) * 20_000)
    model = store.model("svc", "web-1")
    assert model.put("big", source).size_bytes == 5_120_000
    assert model.get("big").bytes() == source.read_bytes()

    def pieces() -> Iterator[int]:
        yield from (len(chunk) for chunk in model.get("big").chunks())

    assert max(pieces()) == 1 << 20


def test_what_the_reference_writes_after_a_deletion_stays(store: mire.Store, repo: Path) -> None:
    """It counts from 1 again in a name we deleted; those versions are seen and never swept."""
    model = store.model("svc", "web-1")
    for text in ("a", "b", "c"):
        model.put("state", text)
    template = (repo / ".swamp/data/svc/web-1/state/1/metadata.yaml").read_bytes()
    model.delete("state")
    version = repo / ".swamp/data/svc/web-1/state/1"
    version.mkdir()
    (version / "metadata.yaml").write_bytes(template)
    (version / "raw").write_bytes(b"a")
    marker = repo / ".swamp/data/svc/web-1/state/latest"
    marker.write_bytes(b"1")
    assert model.versions("state") == [1]
    assert model.put("state", "d").version == 4
    marker.unlink()  # the reference's soft delete, or the moment between its delete and its write
    assert model.versions("state") == [1, 4]
    assert model.put("state", "e").version == 5
    assert model.versions("state") == [1, 4, 5]


def test_staged_content_of_dead_writers_is_removed(store: mire.Store, repo: Path) -> None:
    """What a killed put left is taken away by a later one, what a running put needs is not."""
    data = repo / ".swamp/data"
    data.mkdir(parents=True)
    old, new, other = (data / name for name in ("_catalog.db-old.tmp", "_catalog.db-new.tmp", "_catalog.db"))
    for path in (old, new, other):
        path.write_bytes(b"x")
    for path in (old, other):
        os.utime(path, (1, 1))
    store.model("svc", "web-1").put("state", "x")
    assert sorted(path.name for path in data.iterdir()) == ["_catalog.db", "_catalog.db-new.tmp", "svc"]
