"""Tasks stay in the part of the store that they were given, and write nothing they were only given to read."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mire
from mire.edge.remote import Absent, Remote
from mire.errors import InternalError
from mire.model.names import SOLO, Namespace
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import batch_of, frame_of, mapped
from mire.pipeline.store import StoreSpec, open_spec, spec_of

WRITES: dict[str, Callable[[Remote, str], object]] = {
    "put": lambda remote, key: remote.put(key, b"x"),
    "put_if": lambda remote, key: remote.put_if(key, b"x", Absent()),
    "put_stream": lambda remote, key: remote.put_stream(key, lambda: [b"x"]),
    "put_stream_if": lambda remote, key: remote.put_stream_if(key, lambda: [b"x"], Absent()),
    "delete": lambda remote, key: remote.delete(key),
    "delete_if": lambda remote, key: remote.delete_if(key, "x"),
    "copy": lambda remote, key: remote.copy("data/mine", key),
}


def spec_in(root: Path, namespace: str = "") -> StoreSpec:
    """A part of a store in a directory."""
    return StoreSpec(type="filesystem", settings=str(root), namespace=Namespace(namespace))


@pytest.mark.parametrize("write", WRITES)
def test_a_task_writes_nothing_outside_its_part(tmp_path: Path, write: str, snapshot: Callable[[Path], Any]) -> None:
    """Neither without a namespace into one, nor into one that is only read: it is refused before it is sent."""
    root = tmp_path / "store"
    for key in ("data/mine", "team/data/theirs", "other/data/theirs", ".locks/team.lock"):
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_text("theirs")
    before = snapshot(root)
    solo = open_spec(spec_in(root))
    for key in ("team/data/theirs", "team/data/new", ".locks/team.lock"):
        with pytest.raises(InternalError, match="would leave our part"):
            WRITES[write](solo, key)
    for reader in (spec_in(root, "other").within(Namespace("team")), spec_in(root).within(Namespace("team"))):
        for key in ("data/theirs", "data/new"):
            with pytest.raises(InternalError, match="would leave our part"):
                WRITES[write](open_spec(reader), key)
    with pytest.raises(InternalError, match="would leave our part"):
        WRITES[write](open_spec(spec_in(root).to_read()), "data/mine")
    assert snapshot(root) == before


def test_a_task_sees_only_what_it_must_of_others(tmp_path: Path) -> None:
    """Without a namespace: the names at the top and their manifests. Of another namespace: no record, no lock."""
    root = tmp_path / "store"
    for key in ("data/mine", "team/data/theirs", "team/.namespace.json", "team/_control/x", "team/.datastore.lock"):
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_text("x")
    solo, team = open_spec(spec_in(root)), open_spec(spec_in(root).within(Namespace("team")))
    assert solo.list_level("").prefixes == ("data/", "team/")
    assert solo.head("team/.namespace.json").size_bytes == 1
    assert team.get("data/theirs").data == b"x"
    for call in (
        lambda: solo.get("team/data/theirs"),
        lambda: list(solo.list("team/data/")),
        lambda: list(solo.list("")),
        lambda: team.get("_control/x"),
        lambda: team.head(".datastore.lock"),
    ):
        with pytest.raises(InternalError, match="would leave our part"):
            call()


def test_a_task_of_spark_is_stopped_at_the_fence(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Where the work is, the same rule holds: the job ends with the error, and nothing was written."""
    store = synced(namespace="team")
    store.model("echo", "e").put("note", "hello")
    spec = spec_of(store.datastore).within(SOLO)
    schema = pa.schema([("key", pa.string())])

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            open_spec(spec).put("data/planted", b"x")
            yield batch_of([(batch.num_rows,)], schema)

    with pytest.raises(InternalError, match="would leave our part"), spark_errors("the test"):
        mapped(frame_of(spark, [("a",)], schema).coalesce(1), work, schema).collect()
    assert not (tmp_path / "remote/data").exists()
