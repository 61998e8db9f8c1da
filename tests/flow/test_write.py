"""What a write refuses, and what it leaves when it fails."""

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
