"""How a read of the data source is cut into pieces and parts, without a session."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.state import close_states
from mire.errors import FormatError
from mire.model.index import Meta
from mire.model.names import Namespace
from mire.pipeline.source import piece
from mire.pipeline.source.piece import Piece, plan_names, plan_tasks
from mire.pipeline.source.reader import Reader, request_of
from mire.pipeline.source.rows import rows_of as task_rows
from mire.pipeline.source.table import columns_of, schema_of
from mire.pipeline.store import StoreSpec
from mire.plan.source import parse_source_options
from mire.testing.faults import Run
from mire.testing.s3server import S3Server
from mire.wire.meta import encode_meta
from sparks import ACCESS

HANG_S = 20
"""Nothing takes this long; it only turns a hang into a failure."""


@pytest.fixture
def s3_server() -> Iterator[S3Server]:
    """Our S3 server, fresh, with a bucket whose name addresses accept."""
    with S3Server(buckets=["bucket"]) as server:
        yield server


def test_a_directory_is_read_in_few_large_pieces(tmp_path: Path) -> None:
    """Every shard is in one piece and in one part of it; pieces hold about a thousand, parts a quarter of that."""
    shards = tuple(f"data--aws--ec2--vpc--{number:05}" for number in range(20_000))
    (tmp_path / "_index").mkdir()
    (tmp_path / "_index" / "_meta.json").write_bytes(encode_meta(Meta(version=2, partitions=shards, commit_seq=1)))
    spec = StoreSpec(type="filesystem", settings=str(tmp_path))
    pieces = plan_tasks([spec], table="artifacts", wishes=(), tasks_max=None)
    assert tuple(chain.from_iterable(each.shards for each in pieces)) == shards
    assert len(pieces) == 20
    for each in pieces:
        parts = list(each.parts())
        assert tuple(chain.from_iterable(part.shards for part in parts)) == each.shards
        assert max(len(part.shards) for part in parts) <= 256


def pieces_of(root: Path, **options: str) -> list[Piece]:
    """The tasks of a read."""
    chosen = parse_source_options({"path": str(root), **options})
    return [each for each in Reader(chosen, schema_of(chosen)).partitions() if isinstance(each, Piece)]


def test_as_many_tasks_as_there_is_to_read(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a network some shards make a task, whatever machine plans; `partitions` says how many there are."""
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    shards = tuple(f"data--aws--ec2--vpc--{number:05}" for number in range(20_000))
    s3_server.put("bucket", "_index/_meta.json", encode_meta(Meta(version=2, partitions=shards, commit_seq=1)))
    address = f"s3://bucket?region=eu-central-1&forcePathStyle=true&endpoint={s3_server.url}"
    for asked, count in (({}, 625), ({"partitions": "7"}, 7)):
        chosen = parse_source_options({"path": address, **asked})
        pieces = [each for each in Reader(chosen, schema_of(chosen)).partitions() if isinstance(each, Piece)]
        assert len(pieces) == count
        assert tuple(chain.from_iterable(part.shards for each in pieces for part in each.parts())) == shards


@pytest.mark.parametrize("index", ["dual", "sharded"])
def test_namespaces_share_the_tasks(synced: Callable[..., mire.Store], tmp_path: Path, index: str) -> None:
    """`partitions` is for all namespaces together; small ones are read by one task, and every row is there once."""
    for space in ("red", "blue", "green"):
        store = synced(space, namespace=space, index=index)
        for number in range(5):
            store.model("aws/ec2/vpc", f"v-{number}").put("state", {"n": number})
    remote = tmp_path / "remote"
    wanted = {(space, f"v-{number}") for space in ("red", "blue", "green") for number in range(5)}
    for asked in (1, 2, 5, 100):
        assert len(pieces_of(remote, namespaces="*", partitions=str(asked))) == min(asked, 3 * 6)
        rows = rows_of(remote, namespaces="*", partitions=str(asked))
        assert len(rows) == len(wanted)
        assert {(row["namespace"], row["model_id"]) for row in rows} == wanted
    for form in ("files", "versions"):
        assert rows_of(remote, namespaces="*", table=form, partitions="2") == rows_of(
            remote, namespaces="*", table=form
        )


def test_a_plain_directory_is_cut_into_as_many_tasks(store: mire.Store) -> None:
    """Of a directory without an index, too, there are no more tasks than were asked for, and all of it is read."""
    for number in range(5):
        store.model("aws/ec2/vpc", f"v-{number}").put("state", {"n": number})
    base = Path(store.datastore.base)
    for asked in (1, 3, 100):
        assert len(pieces_of(base, partitions=str(asked))) <= asked
        assert len(rows_of(base, partitions=str(asked))) == 5


def test_names_of_a_stream_share_the_tasks() -> None:
    """What came in several namespaces is read by as many tasks as were asked for, each name once."""
    specs = [StoreSpec(type="filesystem", settings="/s", namespace=Namespace(space)) for space in ("red", "blue")]
    names = [(f"data/echo/{number}/n", 1, (1,)) for number in range(10)]
    for asked in (None, 1, 3, 7):
        pieces = plan_names([(spec, names) for spec in specs], tasks_max=asked)
        assert len(pieces) == (asked or 16)
        parts = [part for piece in pieces for part in piece.parts()]
        assert [(part.spec, name) for part in parts for name in part.names] == [
            (spec, name) for spec in specs for name in names
        ]


def test_versions_of_a_name_are_read_at_once(s3_server: S3Server, bucket_repo: Callable[..., Path]) -> None:
    """While one version of a name is waited for the others are read; few are in memory before they are taken."""
    count = 60
    repo = bucket_repo(s3_server.url, "bucket")
    with mire.open(repo) as store:
        model = store.model("echo", "e")
        with model.hold():
            for number in range(count):
                model.put("note", f"{number}")
        base = store.datastore.base
    close_states(base)
    came, waited = threading.Event(), list[bool]()
    place = "data/echo/e/note"
    s3_server.inject(
        Run(lambda: waited.append(came.wait(HANG_S))), operation="GetObject", key=f"{place}/1/metadata.yaml", times=1
    )
    s3_server.inject(Run(came.set), operation="GetObject", key=f"{place}/16/metadata.yaml", times=1)
    s3_server.reset()
    chosen = parse_source_options({"repo": str(repo), "content": "true", "partitions": "1"})
    reader = Reader(chosen, schema_of(chosen))
    (piece,) = [each for each in reader.partitions() if isinstance(each, Piece)]
    rows = task_rows(piece, request_of(chosen, columns_of(chosen, schema_of(chosen))))
    found = [next(rows)]
    asked = {entry.key for entry in s3_server.log() if entry.key.endswith("/raw")}
    assert len(asked) < count
    found += rows
    assert waited == [True]
    assert sorted(row[4] for row in found) == list(range(1, count + 1))


def test_a_directory_is_read_version_by_version(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A row is there before the next version is read, however many versions its name has."""
    model = synced().model("echo", "e")
    with model.hold():
        for number in range(3):
            model.put("note", f"{number}")
    chosen = parse_source_options({"path": str(tmp_path / "remote"), "content": "true"})
    columns = columns_of(chosen, schema_of(chosen))
    pieces = [each for each in Reader(chosen, schema_of(chosen)).partitions() if isinstance(each, Piece)]
    rows = chain.from_iterable(task_rows(piece, request_of(chosen, columns)) for piece in pieces)
    assert next(rows)[-1] is None
    (tmp_path / "remote/data/echo/e/note/3/raw").unlink()
    assert [row[-1] is None for row in rows] == [True, False]


def rows_of(root: Path, **options: str) -> list[Any]:
    """All rows of a store, read here, in the order of their keys."""
    chosen = parse_source_options({"path": str(root), **options})
    reader = Reader(chosen, schema_of(chosen))
    batches = chain.from_iterable(reader.read(each) for each in reader.partitions())
    return sorted((row for batch in batches for row in batch.to_pylist()), key=repr)


def unfit(remote: Path) -> None:
    """Numbers and texts in metadata, a record, content and the index that are well-formed, and fit into no column."""
    for path in (*(remote / "outputs").rglob("*.yaml"), remote / "data/aws/ec2/vpc/vpc-1/state/1/metadata.yaml"):
        text = path.read_text()
        path.write_text(re.sub(r"(?m)^(durationMs|size): .*", rf"\1: {10**20}", text))
        assert path.read_text() != text
    shard = remote / "_index/data--aws--ec2--vpc--vpc-1.json"
    known = json.loads(shard.read_text())
    known["entries"]["data/aws/ec2/vpc/vpc-1/sta\ud800te/1/raw"] = {"key": "x", "size": 1, "lastModified": "x"}
    shard.write_text(json.dumps(known))


def test_what_no_column_can_hold_is_damage_of_its_row(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A number beyond 64 bits and half of a surrogate pair are a row's `_error`, or what else the mode says."""
    store, remote = synced(), tmp_path / "remote"
    for model in ("vpc-1", "vpc-2"):
        half = '{"a":"\\ud800"}' if model == "vpc-2" else "{}"
        store.model("aws/ec2/vpc", model).put("state", half, content_type="application/json")
    outputs = store.outputs
    outputs.finish(outputs.start("aws/ec2/vpc", "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603", "create"), "succeeded")
    unfit(remote)
    for table, more, message in (
        ("artifacts", {}, f"'size': {10**20} is not a whole number from 0 to 2^53"),
        ("outputs", {}, f"'durationMs': {10**20} is not a whole number from 0 to 2^53"),
        ("files", {}, r"path 'data/aws/ec2/vpc/vpc-1/sta\ud800te/1/raw' is not valid UTF-8"),
        ("artifacts", {"attributes": "variant", "models": "aws/ec2/vpc/vpc-2"}, "the column 'attributes' cannot hold"),
    ):
        whole = rows_of(remote, table=table, **more)
        (bad,) = [row for row in whole if row["_error"] is not None]
        assert message in bad["_error"]
        kept = rows_of(remote, table=table, mode="DROPMALFORMED", **more)
        assert kept == [row for row in whole if row["_error"] is None]
        with pytest.raises(FormatError, match=re.escape(message)):
            rows_of(remote, table=table, mode="FAILFAST", **more)
    (row,) = rows_of(remote, models="aws/ec2/vpc/vpc-2")
    assert (row["attributes"], row["_error"]) == ('{"a":"\\ud800"}', None)


@pytest.mark.parametrize("index", ["dual", "sharded"])
def test_parts_make_the_rows_of_the_piece(
    synced: Callable[..., mire.Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """However small the parts are, all tables have the same rows."""
    store = synced(index=index)
    for model in ("vpc-1", "vpc-2"):
        data = store.model("aws/ec2/vpc", model)
        with data.hold():
            for number in range(3):
                data.put("state", {"n": number})
    store.model("echo", "e").put("note", "hello")
    tables = ("artifacts", "versions", "files")
    whole = [rows_of(tmp_path / "remote", table=table) for table in tables]
    assert [len(rows) for rows in whole] == [7, 7, 7 * 2 + 3]
    monkeypatch.setattr(piece, "_SHARDS_A_PART", 1)
    assert [rows_of(tmp_path / "remote", table=table, partitions="1") for table in tables] == whole


@pytest.mark.parametrize("text", ["{", None])
def test_nothing_is_published_by_a_marker_that_cannot_be_read(
    synced: Callable[..., mire.Store], tmp_path: Path, text: str | None
) -> None:
    """With the shard of its markers damaged or lost a name is an error, in every narrowing, never all its versions.

    A name that never had a marker has none, and all its versions count.
    """
    store, remote = synced(), tmp_path / "remote"
    store.model("aws/ec2/vpc", "vpc-1").put("state", {"n": 1})
    store.model("echo", "e").put("note", "hello")
    bare = "data--echo--e--note"
    meta = remote / "_index/_meta.json"
    (remote / f"_index/{bare}.json").unlink()
    meta.write_text(meta.read_text().replace(f'"{bare}"', "").replace(",,", ",").replace(",]", "]"))
    markers = remote / "_index/data--aws--ec2--vpc.json"
    markers.unlink()
    if text is not None:
        markers.write_text(text)
    for table in ("artifacts", "versions"):
        (row,) = rows_of(remote, table=table, models="aws/ec2/vpc/vpc-1")
        assert (row["model_id"], row["name"], row["version"]) == ("vpc-1", "state", None)
        assert "/latest in the index belongs to the shard 'data--aws--ec2--vpc', which cannot be read" in row["_error"]
        found = rows_of(remote, table=table, mode="DROPMALFORMED", latestonly="true")
        assert [(row["model_id"], row["version"]) for row in found] == [("e", 1)]
    with pytest.raises(FormatError, match=r"'data--aws--ec2--vpc', which cannot be read"):
        rows_of(remote, models="aws/ec2/vpc/vpc-1", mode="FAILFAST")
