"""The tree the reference wrote is read completely, and can be written on."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import mire

GOLDEN = Path(__file__).parents[1] / "golden"
INDEX: dict[str, Any] = json.loads((GOLDEN / "tree.json").read_text())
FILES: dict[str, dict[str, Any]] = {entry["rel"]: entry for entry in INDEX["files"]}
Snapshot = Callable[[Path], dict[str, Any]]


def as_text(data: bytes) -> Any:
    """A YAML document by another reader than ours, every scalar as the text it is."""
    return yaml.load(data, yaml.BaseLoader)  # noqa: S506 - it makes nothing but text, lists and maps


def copied(repo: Path) -> mire.Store:
    """A store on a copy of the golden tree."""
    shutil.copytree(GOLDEN / "tree", repo / ".swamp")
    return mire.open(repo)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> mire.Store:
    """A store on a copy that no test writes to."""
    return copied(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def writable(repo: Path) -> mire.Store:
    """A store on a copy of its own, whose one garbled lock has expired."""
    store = copied(repo)
    (lock,) = (repo / ".swamp").rglob(".lock")
    os.utime(lock, (1_000_000_000, 1_000_000_000))
    return store


def test_every_model_and_name_is_listed(golden: mire.Store) -> None:
    """The walk finds what the reference's own list names, and nothing else."""
    found = {(model.type, model.id): [row.name for row in model.names()] for model in golden.models()}
    assert found == {(entry["modelType"], entry["modelId"]): sorted(entry["dataNames"]) for entry in INDEX["models"]}


def test_every_version_and_content_is_read(golden: mire.Store) -> None:
    """Each version's content has the size and the SHA-256 of the list, and passes its own checksum."""
    read = set()
    for model in golden.models():
        for row in model.names():
            versions = model.versions(row.name)
            assert (row.error, row.version, model.latest(row.name)) == (None, versions[-1], versions[-1])
            for version in versions:
                artifact = model.get(row.name, version)
                artifact.verify()
                rel = f"data/{model.type}/{model.id}/{row.name}/{version}"
                content = artifact.bytes()
                assert (len(content), hashlib.sha256(content).hexdigest()) == (
                    FILES[f"{rel}/raw"]["size"],
                    FILES[f"{rel}/raw"]["sha256"],
                )
                assert artifact.metadata.checksum == FILES[f"{rel}/raw"]["sha256"]
                read.update((f"{rel}/raw", f"{rel}/metadata.yaml"))
            read.add(f"data/{model.type}/{model.id}/{row.name}/latest")
    assert read == {rel for rel in FILES if rel.startswith("data/")}


def test_metadata_has_the_values_of_the_file(golden: mire.Store) -> None:
    """What the metadata object says is what an independent reader finds in the document."""
    for model in golden.models():
        for row in model.names():
            for version in model.versions(row.name):
                artifact = model.get(row.name, version)
                found = artifact.metadata
                document = as_text(Path(artifact.path).with_name("metadata.yaml").read_bytes())
                assert document == {
                    "id": found.id,
                    "name": row.name,
                    "version": str(version),
                    "contentType": found.content_type,
                    "lifetime": found.lifetime,
                    "garbageCollection": str(found.version_policy),
                    "streaming": str(found.streaming).lower(),
                    "tags": dict(found.tags),
                    "ownerDefinition": {
                        "definitionHash": found.owner.definition_hash,
                        "ownerType": found.owner.owner_type,
                        "ownerRef": found.owner.owner_ref,
                    },
                    "createdAt": found.created_at,
                    "size": str(found.size_bytes),
                    "checksum": found.checksum,
                }


def test_every_record_is_read(golden: mire.Store) -> None:
    """All outputs, runs and audit events, none damaged."""
    outputs, runs, events = golden.outputs.list(), golden.runs.list(), golden.audit.list()
    assert (outputs.damaged, runs.damaged, events.damaged) == ((), (), ())
    assert len(outputs) == sum(rel.startswith("outputs/") and rel.endswith(".yaml") for rel in FILES)
    assert len(runs) == sum(rel.startswith("workflow-runs/") and rel.endswith(".yaml") for rel in FILES)
    assert [event.command for event in events if isinstance(event, mire.CommandEvent)] == [
        "data list",
        "model method run",
    ]
    assert {output.definition_id for output in outputs} == {entry["modelId"] for entry in INDEX["models"]}
    assert {run.workflow_id for run in runs} == {INDEX["workflowId"]}
    for output in outputs:
        assert golden.outputs.get(output.id) == output


def test_reading_changes_nothing(repo: Path, snapshot: Snapshot) -> None:
    """A reader leaves every byte, and no file of its own; the directory does not even become a repository."""
    store = copied(repo)
    before = snapshot(repo)
    for model in store.models():
        for row in model.names():
            model.get(row.name).bytes()
            model.history(row.name)
    list(store.outputs.list())
    list(store.runs.list())
    list(store.audit.list())
    store.locks()
    assert snapshot(repo) == before


def test_records_saved_again_are_the_same_documents(golden: mire.Store, repo: Path) -> None:
    """Every record read here and saved elsewhere lands under the same path with equal values in equal order."""
    fresh = mire.open(repo)
    for output in golden.outputs.list():
        fresh.outputs.save(output)
    for run in golden.runs.list():
        fresh.runs.save(run)
    for event in reversed(list(golden.audit.list())):
        fresh.audit.append(event)
    records = [
        rel
        for rel in FILES
        if rel.startswith(("outputs/", "workflow-runs/", "audit/")) and rel.endswith((".yaml", ".jsonl"))
    ]
    written = repo / ".swamp"
    assert sorted(str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()) == sorted(records)
    for rel in records:
        original, copy = (GOLDEN / "tree" / rel).read_bytes(), (written / rel).read_bytes()
        if rel.endswith(".jsonl"):
            assert copy == original
        else:
            assert _items(as_text(copy)) == _items(as_text(original))


def _items(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, _items(item)) for key, item in value.items()]
    return [_items(item) for item in value] if isinstance(value, list) else value


def test_a_garbled_lock_holds_until_it_expires(repo: Path) -> None:
    """The `{}` the reference left says nothing about its holder: fresh, it keeps writers out; old, it does not."""
    store = copied(repo)
    (lock,) = (repo / ".swamp").rglob(".lock")
    lock.touch()
    patient = mire.open(repo, lock_timeout=0)
    owned = next(model for model in patient.models() if model.id == lock.parent.name)
    with pytest.raises(mire.LockTimeoutError, match="unknown holder"):
        owned.put("new", "x")
    os.utime(lock, (1_000_000_000, 1_000_000_000))
    assert owned.put("new", "x").version == 1
    assert not lock.exists()
    assert [report.key for report in store.locks()] == []


def test_every_name_can_be_written_on(writable: mire.Store, repo: Path) -> None:
    """The owner adds a version to each, other producers cannot, and everything else stays byte for byte."""
    for model in writable.models():
        for row in model.names():
            assert row.metadata is not None
            with pytest.raises(mire.OwnershipError):
                model.put(row.name, "x")
            new = model.put(row.name, "x", owner=row.metadata.owner)
            assert new.version == row.metadata.version + 1
            assert model.get(row.name).text() == "x"
    for rel, entry in FILES.items():
        if not rel.endswith("/latest"):
            data = (repo / ".swamp" / rel).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (entry["size"], entry["sha256"])
    for entry in INDEX["internal"]:
        if not entry["rel"].endswith(".lock"):
            data = (repo / ".swamp" / entry["rel"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == entry["sha256"]


def test_every_name_can_be_renamed_and_deleted(writable: mire.Store) -> None:
    """Structure written by the reference is changed like our own."""
    for model in writable.models():
        for row in model.names():
            versions = model.versions(row.name)
            checksum = model.get(row.name).metadata.checksum
            model.rename(row.name, f"{row.name} 2")
            renamed = model.get(row.name)
            renamed.verify()
            assert (renamed.name, renamed.metadata.checksum) == (f"{row.name} 2", checksum)
            assert model.versions(row.name) == [*versions, versions[-1] + 1]
            model.delete(row.name)
            assert model.versions(row.name) == []
    assert len(writable.models()) == len(INDEX["models"])
