"""How a read of the data source is cut into pieces and parts, without a session."""

import json
import os
import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.errors import FormatError
from mire.model.index import Meta
from mire.pipeline.source import piece
from mire.pipeline.source.piece import plan_tasks
from mire.pipeline.source.reader import Reader
from mire.pipeline.source.table import schema_of
from mire.pipeline.store import StoreSpec
from mire.plan.source import parse_source_options
from mire.wire.meta import encode_meta


def test_a_directory_is_read_in_few_large_pieces(tmp_path: Path) -> None:
    """Every shard is in one piece and in one part of it; pieces hold about a thousand, parts a quarter of that."""
    shards = tuple(f"data--aws--ec2--vpc--{number:05}" for number in range(20_000))
    (tmp_path / "_index").mkdir()
    (tmp_path / "_index" / "_meta.json").write_bytes(encode_meta(Meta(version=2, partitions=shards, commit_seq=1)))
    spec = StoreSpec(type="filesystem", settings=str(tmp_path))
    pieces = plan_tasks([spec], table="artifacts", wishes=(), tasks_max=None)
    assert tuple(chain.from_iterable(each.shards for each in pieces)) == shards
    assert len(pieces) == max(20, 4 * (os.cpu_count() or 1))
    for each in pieces:
        parts = list(each.parts())
        assert tuple(chain.from_iterable(part.shards for part in parts)) == each.shards
        assert max(len(part.shards) for part in parts) <= 256


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
    monkeypatch.setattr(piece, "_SHARDS_A_PIECE", 1)
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
