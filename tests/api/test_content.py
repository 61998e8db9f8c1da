"""The main flow: open, put, get; every kind of content comes back byte for byte."""

import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import mire

Place = Callable[..., Path]


def test_the_first_ten_minutes(repo: Path) -> None:
    """A new user opens a directory, puts, gets, lists, renames and deletes."""
    with mire.open(repo) as store:
        vpc = store.model("AWS::EC2::VPC", "vpc-1")
        first = vpc.put("state", {"cidr": "10.0.0.0/16"}, tags={"env": "prod"}, lifetime="90d")
        assert (first.version, first.content_type, first.tags["env"]) == (1, "application/json", "prod")
        vpc.put("state", {"cidr": "10.1.0.0/16"})
        assert vpc.get("state").json() == {"cidr": "10.1.0.0/16"}
        assert vpc.get("state", version=1).json() == {"cidr": "10.0.0.0/16"}
        assert (vpc.latest("state"), vpc.versions("state")) == (2, [1, 2])
        vpc.rename("state", "network")
        assert vpc.get("state").name == "network"
        vpc.delete("network")
        with pytest.raises(mire.NotFoundError):
            vpc.get("state")
    assert [(model.type, model.id) for model in mire.open(repo).models()] == [("aws/ec2/vpc", "vpc-1")]


def test_a_directory_becomes_a_repository_with_the_first_write(repo: Path) -> None:
    """Opening and reading leave an empty directory empty; writing makes it a repository for every program."""
    store = mire.open(repo)
    assert store.models() == []
    assert store.model("t", "i").versions("n") == []
    assert list(store.audit.list()) == []
    assert list(repo.iterdir()) == []
    store.model("t", "i").put("n", "x")
    assert set(yaml.safe_load((repo / ".swamp.yaml").read_text())) == {"swampVersion", "initializedAt", "repoId"}


def test_create_false_writes_only_into_a_repository(repo: Path) -> None:
    """A caller that expects a repository is told when there is none."""
    with pytest.raises(mire.NotFoundError) as caught:
        mire.open(repo, create=False)
    assert caught.value.kind == "no_repository"
    mire.open(repo).model("t", "i").put("n", "x")
    assert mire.open(repo, create=False).model("t", "i").get("n").text() == "x"


def test_opening_what_is_not_a_directory(repo: Path) -> None:
    """A missing directory, or a file, cannot be a repository."""
    (repo / "file").write_text("")
    for path in (repo / "missing", repo / "file"):
        with pytest.raises(mire.NotFoundError, match="there is no directory"):
            mire.open(path)


class Seekless(io.RawIOBase):
    """A raw stream that gives a few bytes at a time, like a pipe."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Three bytes at most."""
        size = min(3, len(buffer), len(self._data))
        buffer[:size], self._data = self._data[:size], self._data[size:]
        return size


@pytest.mark.parametrize(
    ("content", "stored", "content_type", "kind"),
    [
        (b"\x00\xff", b"\x00\xff", "application/octet-stream", "file"),
        (bytearray(b"ab"), b"ab", "application/octet-stream", "file"),
        (memoryview(b"abcd")[::2], b"ac", "application/octet-stream", "file"),
        ("käse\r\n", "käse\r\n".encode(), "text/plain", "file"),
        ("", b"", "text/plain", "file"),
        ({"a": [1, None, "ü"]}, '{"a":[1,null,"ü"]}'.encode(), "application/json", "resource"),
        ({}, b"{}", "application/json", "resource"),
        ([1, {"b": True}], b'[1,{"b":true}]', "application/json", "resource"),
        (MappingProxyType({"a": 1}), b'{"a":1}', "application/json", "resource"),
        (io.BytesIO(b"stream"), b"stream", "application/octet-stream", "file"),
        (Seekless(b"a long pipe"), b"a long pipe", "application/octet-stream", "file"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_content_is_stored(
    model: mire.Model, place: Place, content: Any, stored: bytes, content_type: str, kind: str
) -> None:
    """Bytes, text, JSON and open files are stored as documented, with size, checksum and type recorded."""
    metadata = model.put("n", content)
    assert place("n/1/raw").read_bytes() == stored
    assert (metadata.size_bytes, metadata.checksum) == (len(stored), hashlib.sha256(stored).hexdigest())
    assert (metadata.content_type, metadata.tags["type"]) == (content_type, kind)


def test_a_path_and_an_open_file_are_read(model: mire.Model, tmp_path: Path) -> None:
    """A path gives its content and its type; an open file is read from where it stands and stays open."""
    source = tmp_path / "source.json"
    source.write_bytes(b'{"a": 1}')
    assert model.put("path", source).content_type == "application/json"
    assert model.get("path").bytes() == b'{"a": 1}'
    with source.open("rb") as file:
        file.seek(5)
        model.put("file", file)
        assert not file.closed
    assert model.get("file").bytes() == b" 1}"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> mire.Store:
    """A store that all examples of a property write to."""
    return mire.open(tmp_path_factory.mktemp("shared"))


@given(content=st.binary(max_size=300))
def test_any_bytes_come_back(shared: mire.Store, content: bytes) -> None:
    """What was put is what is got, whatever the bytes and however they are asked for."""
    model = shared.model("t", "i")
    version = model.put("n", content).version
    artifact = model.get("n", version)
    with artifact.open() as file:
        assert artifact.bytes() == b"".join(artifact.chunks()) == file.read() == content


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(value=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), _json, max_size=3))
def test_any_dict_comes_back(shared: mire.Store, value: dict[str, Any]) -> None:
    """A dict is stored as compact JSON without a newline, and parsed back equal."""
    model = shared.model("t", "json")
    model.put("n", value)
    artifact = model.get("n")
    assert artifact.json() == value
    assert artifact.bytes() == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_what_an_artifact_tells(model: mire.Model, place: Place) -> None:
    """An artifact has its content in three forms, its metadata, its place, and can be verified."""
    put = model.put("n", {"a": 1}, tags={"env": "prod"}, owner="model-method:m", version_policy="30d")
    artifact = model.get("n")
    assert (artifact.name, artifact.version, artifact.metadata) == ("n", 1, put)
    assert (artifact.bytes(), artifact.text(), artifact.json()) == (b'{"a":1}', '{"a":1}', {"a": 1})
    artifact.verify()
    assert artifact.path == str(place("n/1/raw"))
    assert (put.owner.owner_type, put.owner.owner_ref, put.version_policy) == ("model-method", "m", "30d")


def test_content_in_the_wrong_form(model: mire.Model) -> None:
    """Asking for text or JSON of what is neither is told, with the way to read it."""
    model.put("binary", b"\xff\x00")
    model.put("text", "not json")
    with pytest.raises(mire.FormatError) as not_text:
        model.get("binary").text()
    with pytest.raises(mire.FormatError) as not_json:
        model.get("text").json()
    assert (not_text.value.kind, not_json.value.kind) == ("not_text", "not_json")
    assert "bytes()" in not_text.value.message


def test_metadata_on_disk_is_what_the_reference_writes(model: mire.Model, place: Place) -> None:
    """Members, their order and their forms are those of the specification."""
    metadata = model.put("n", "text", tags={"env": "1e5"}, lifetime="90d", version_policy=12)
    text = place("n/1/metadata.yaml").read_text()
    document = yaml.safe_load(text)
    assert list(document) == [
        "id",
        "name",
        "version",
        "contentType",
        "lifetime",
        "garbageCollection",
        "streaming",
        "tags",
        "ownerDefinition",
        "createdAt",
        "size",
        "checksum",
    ]
    assert document["tags"] == {"type": "file", "specName": "n", "modelName": "web-1", "env": "1e5"}
    assert document["ownerDefinition"] == {"ownerType": "manual", "ownerRef": "web-1"}
    assert (document["version"], document["garbageCollection"], document["size"]) == (1, 12, 4)
    assert document["createdAt"] == metadata.created_at
    assert "env: '1e5'\n" in text
    assert place("n/latest").read_bytes() == b"1"
    assert sorted(os.listdir(place("n"))) == ["1", "latest"]
    assert sorted(os.listdir(place("n/1"))) == ["metadata.yaml", "raw"]


def test_the_model_name_is_recorded(store: mire.Store) -> None:
    """The name of a model goes into the tag the reference looks at, unless a tag says otherwise."""
    model = store.model("t", "i", name="vpc-prod")
    assert model.put("a", "x").tags["modelName"] == "vpc-prod"
    assert model.put("b", "x", tags={"modelName": "other", "type": "report"}).tags["modelName"] == "other"
    assert model.get("b").metadata.tags["type"] == "report"


def test_models_and_names_are_listed(store: mire.Store) -> None:
    """Every model with data is found again, of all types or of one, with its names in order."""
    for kind, model_id in (("b", "2"), ("a/x", "1"), ("a/x", "0")):
        store.model(kind, model_id).put("second", "x")
        store.model(kind, model_id).put("207333", "x")
    assert [(m.type, m.id) for m in store.models()] == [("a/x", "0"), ("a/x", "1"), ("b", "2")]
    assert [(m.type, m.id) for m in store.models("A.X")] == [("a/x", "0"), ("a/x", "1")]
    assert [row.name for row in store.model("b", "2").names()] == ["207333", "second"]
    assert store.models("nothing") == []


def test_types_are_normalized(store: mire.Store) -> None:
    """The reference's spellings of a type lead to the same model."""
    store.model("Acme::Net::Router", "r").put("n", "x")
    for spelling in ("acme/net/router", "ACME.NET.ROUTER", "acme  net\u00a0router", "/acme//net/router/"):
        assert store.model(spelling, "r").get("n").text() == "x"


def test_a_name_of_the_longest_length(store: mire.Store) -> None:
    """255 bytes are allowed for ids and names, and everything works with them."""
    model = store.model("t", "é" * 127 + "x")
    name = "x" * 255
    model.put(name, "1", streaming=True)
    model.append(name, "2")
    assert model.get(name).text() == "12"
    model.rename(name, "y" * 255)
    assert model.get(name).text() == "12"
