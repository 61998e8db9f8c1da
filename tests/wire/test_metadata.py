"""`metadata.yaml`: the reference's files, the schema, and what must survive a rewrite."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from mire.errors import FormatError
from mire.model.artifact import Metadata
from mire.model.names import DataName, parse_data_name
from mire.testing.strategies import metadata
from mire.wire.metadata import check_agrees, decode_metadata, encode_metadata, metadata_document
from mire.wire.yamltext import decode_yaml_mapping, encode_yaml

TREE = Path(__file__).parent.parent / "golden" / "tree"
GOLDEN = sorted(TREE.glob("data/**/metadata.yaml"))

U1 = "9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21"
U2 = "c4e1a7b9-0f52-4d6d-b0c3-71f8e2a95d34"
FULL: dict[str, Any] = {
    "id": "5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15",
    "name": "rack-7-sensors",
    "version": 4,
    "contentType": "application/json",
    "lifetime": "90d",
    "garbageCollection": 12,
    "streaming": False,
    "tags": {"type": "resource", "specName": "sensors"},
    "ownerDefinition": {
        "definitionHash": "7e10932",
        "ownerType": "model-method",
        "ownerRef": "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603",
        "workflowId": U1,
        "workflowRunId": U2,
        "workflowName": "hourly-sweep",
        "jobName": "collect",
        "stepName": "read-rack",
        "source": "step-output",
    },
    "createdAt": "2026-05-17T08:30:02.417Z",
    "size": 731,
    "checksum": "3c59dc048e8850243be8079a5c74d079f0c1f1c8e5a1d6a7f6b3b0d9e2c4a817",
    "lifecycle": "deleted",
    "renamedTo": "rack-8",
}
OPTIONAL = ("streaming", "size", "checksum", "lifecycle", "renamedTo")
OPTIONAL_OWNER = tuple(key for key in FULL["ownerDefinition"] if key not in ("ownerType", "ownerRef"))


def changed(owner: dict[str, Any] | None = None, **members: Any) -> bytes:
    """The full document with some members changed."""
    document = {**FULL, **members}
    if owner is not None:
        document["ownerDefinition"] = {**FULL["ownerDefinition"], **owner}
    return encode_yaml(document).encode()


def without(*keys: str) -> bytes:
    """The full document without some members, of the owner too where they are written with a dot."""
    document = {key: value for key, value in FULL.items() if key not in keys}
    if isinstance(document.get("ownerDefinition"), dict):
        document["ownerDefinition"] = {
            key: value for key, value in FULL["ownerDefinition"].items() if f"owner.{key}" not in keys
        }
    return encode_yaml(document).encode()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: str(path.parent.relative_to(TREE / "data")))
def test_the_reference_s_metadata_survives(path: Path) -> None:
    """Metadata written by the reference is read, agrees with its directory, and is written with equal values."""
    data = path.read_bytes()
    read = decode_metadata(data)
    check_agrees(read, parse_data_name(path.parent.parent.name), int(path.parent.name))
    again = encode_metadata(read)
    assert decode_metadata(again) == read
    assert decode_yaml_mapping(again) == decode_yaml_mapping(data)
    assert list(decode_yaml_mapping(again)) == list(decode_yaml_mapping(data))


def test_there_is_golden_metadata() -> None:
    """The tree the tests rely on is there."""
    assert len(GOLDEN) == 49


@given(metadata())
def test_metadata_reads_back(described: Metadata) -> None:
    """Any metadata survives writing and reading, unknown members included."""
    assert decode_metadata(encode_metadata(described)) == described


@given(metadata())
def test_the_document_reads_back_equal(described: Metadata) -> None:
    """The document itself is equal after a read and a write, in values and in order."""
    once = encode_metadata(described)
    assert encode_metadata(decode_metadata(once)) == once
    assert decode_yaml_mapping(once) == metadata_document(described)


def test_members_stand_in_the_reference_s_order() -> None:
    """Known members come in the order of the format, those of the owner too, unknown ones last."""
    data = changed({"x-new": 1}, aaa=1)
    document = decode_yaml_mapping(encode_metadata(decode_metadata(data)))
    assert list(document) == [*FULL, "aaa"]
    assert list(document["ownerDefinition"]) == [*FULL["ownerDefinition"], "x-new"]


def test_every_member_has_its_place_in_the_noun() -> None:
    """Each member of the document is read into the field that means it."""
    read = decode_metadata(changed())
    assert (read.id, read.name, read.version) == (FULL["id"], "rack-7-sensors", 4)
    assert (read.content_type, read.lifetime, read.version_policy) == ("application/json", "90d", 12)
    assert (read.streaming, read.tags["specName"], read.created_at) == (False, "sensors", FULL["createdAt"])
    assert (read.size_bytes, read.checksum) == (731, FULL["checksum"])
    assert (read.is_deleted, read.renamed_to, read.extra) == (True, "rack-8", {})
    owner = read.owner
    assert (owner.definition_hash, owner.owner_type, owner.workflow_id) == ("7e10932", "model-method", U1)
    assert (owner.workflow_run_id, owner.workflow_name, owner.job_name) == (U2, "hourly-sweep", "collect")
    assert (owner.step_name, owner.source, owner.extra) == ("read-rack", "step-output", {})


@pytest.mark.parametrize("value", [None, "x", 3, [1, None], {"deep": {"er": None}}, True])
def test_unknown_members_survive(value: Any) -> None:
    """A member of a newer writer survives a rewrite, at the top and in the owner, even when it is null."""
    document = decode_yaml_mapping(encode_metadata(decode_metadata(changed({"future": value}, future=value))))
    assert document["future"] == document["ownerDefinition"]["future"] == value
    assert "future" in document
    assert "future" in document["ownerDefinition"]


def test_optional_members_may_be_missing() -> None:
    """Without its optional members a document is read, and they are not invented, but for `streaming`."""
    data = without(*OPTIONAL, *(f"owner.{key}" for key in OPTIONAL_OWNER))
    read = decode_metadata(data)
    assert (read.streaming, read.is_deleted, read.size_bytes, read.checksum) == (False, False, None, None)
    document = decode_yaml_mapping(encode_metadata(read))
    assert set(document) == set(FULL) - set(OPTIONAL) | {"streaming"}
    assert set(document["ownerDefinition"]) == {"ownerType", "ownerRef"}


def test_null_is_missing() -> None:
    """An optional member that is null counts as missing."""
    read = decode_metadata(changed(dict.fromkeys(OPTIONAL_OWNER), **dict.fromkeys(OPTIONAL)))
    assert read == decode_metadata(without(*OPTIONAL, *(f"owner.{key}" for key in OPTIONAL_OWNER)))


def test_an_active_lifecycle_is_none() -> None:
    """`active` is what a version is anyway, and the reference never writes it."""
    read = decode_metadata(changed(lifecycle="active"))
    assert read.is_active
    assert "lifecycle" not in metadata_document(read)


def test_a_lifetime_of_nothing_is_read_as_workflow() -> None:
    """The reference normalizes a zero duration when it reads, and so do we."""
    assert decode_metadata(changed(lifetime="0d")).lifetime == "workflow"


@pytest.mark.parametrize("name", ["latest", ".lock", "x" * 300, " "])
def test_names_the_reference_allows_stay_readable(name: str) -> None:
    """A name we would not create is still read where somebody else created it."""
    assert decode_metadata(changed(name=name)).name == name


@pytest.mark.parametrize("key", [key for key in FULL if key not in OPTIONAL])
def test_a_missing_member_is_named(key: str) -> None:
    """A document without a required member is refused by the name of that member."""
    for data in (without(key), changed(**{key: None})):
        with pytest.raises(FormatError, match=f"'{key}'"):
            decode_metadata(data)


@pytest.mark.parametrize("key", ["ownerType", "ownerRef"])
def test_a_missing_member_of_the_owner_is_named(key: str) -> None:
    """An owner without a type or a ref is refused by name."""
    with pytest.raises(FormatError, match=f"'ownerDefinition' lacks '{key}'"):
        decode_metadata(without(f"owner.{key}"))


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("id", "x"),
        ("id", 5),
        ("name", ""),
        ("name", "a/b"),
        ("name", ".."),
        ("name", "a\\b"),
        ("name", "a\0b"),
        ("name", 7),
        ("version", 0),
        ("version", "4"),
        ("version", 1.5),
        ("version", True),
        ("contentType", ""),
        ("contentType", 1),
        ("lifetime", "forever"),
        ("lifetime", 90),
        ("garbageCollection", 0),
        ("garbageCollection", "infinite"),
        ("garbageCollection", True),
        ("garbageCollection", 1.5),
        ("streaming", "false"),
        ("streaming", 0),
        ("tags", {}),
        ("tags", {"specName": "x"}),
        ("tags", {"type": 1}),
        ("tags", {"type": "x", "n": None}),
        ("tags", ["type"]),
        ("ownerDefinition", "me"),
        ("ownerDefinition", []),
        ("createdAt", "2026-05-17"),
        ("createdAt", "2026-05-17T08:30:02+02:00"),
        ("createdAt", 5),
        ("size", -1),
        ("size", 1.5),
        ("size", "731"),
        ("size", True),
        ("checksum", ""),
        ("checksum", 7),
        ("lifecycle", "gone"),
        ("renamedTo", ""),
        ("renamedTo", "../x"),
    ],
)
def test_a_bad_member_is_named(key: str, bad: object) -> None:
    """A member that breaks the schema is refused in one line that names it."""
    with pytest.raises(FormatError, match=f"'{key}'") as caught:
        decode_metadata(changed(**{key: bad}))
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("ownerType", "robot"),
        ("ownerType", 1),
        ("ownerRef", ""),
        ("ownerRef", 1),
        ("definitionHash", ""),
        ("workflowId", "x"),
        ("workflowRunId", 1),
        ("workflowName", ""),
        ("jobName", 1),
        ("stepName", []),
        ("source", ""),
    ],
)
def test_a_bad_member_of_the_owner_is_named(key: str, bad: object) -> None:
    """A member of the owner that breaks the schema is refused in one line that names it."""
    with pytest.raises(FormatError, match=f"'ownerDefinition': '{key}'"):
        decode_metadata(changed({key: bad}))


@pytest.mark.parametrize("data", [b"", b"[]", b"text", b"{", b"\xff"])
def test_what_is_no_mapping_is_no_metadata(data: bytes) -> None:
    """Other documents, and no document, are refused."""
    with pytest.raises(FormatError, match="metadata is"):
        decode_metadata(data)


def test_metadata_of_another_place_is_damage() -> None:
    """Metadata that names another name or version than its directory was copied or edited there."""
    read = decode_metadata(changed())
    check_agrees(read, read.name, 4)
    for name, version in ((DataName("other"), 4), (read.name, 5)):
        with pytest.raises(FormatError, match="stands in the directory of") as caught:
            check_agrees(read, name, version)
        assert caught.value.kind == "damaged"


def test_normalization_is_no_difference() -> None:
    """A disk that hands a name back in another Unicode normalization has not damaged it."""
    read = decode_metadata(changed(name="caf\u00e9"))
    check_agrees(read, DataName("cafe\u0301"), 4)
