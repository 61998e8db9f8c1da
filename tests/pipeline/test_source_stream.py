"""The data source `mire`, read as a stream: every version once, whenever the query dies."""

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import mire
from mire.edge.counted import Counted
from mire.errors import ConfigError, InputError, NotFoundError
from mire.flow.migrate import migrate_index
from mire.pipeline.source.stream import StreamReader
from mire.pipeline.source.table import schema_of
from mire.plan.source import parse_source_options

Key = tuple[str, str, int]


def put(store: mire.Store, model: str, name: str, count: int = 1) -> list[Key]:
    """Commit some versions of a name; which ones they are."""
    data = store.model("aws/ec2/vpc", model)
    with data.hold():
        return [(model, name, data.put(name, {"n": number}).version) for number in range(count)]


def reader_of(tmp_path: Path, **options: str) -> StreamReader:
    """A reader as Spark makes one."""
    given = {"path": str(tmp_path / "remote"), "statelocation": str(tmp_path / "state"), **options}
    asked = parse_source_options(given)
    return StreamReader(asked, schema_of(asked))


def rows_of(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Key]:
    """What a batch has."""
    found = [
        row for piece in reader.partitions(start, end) for batch in reader.read(piece) for row in batch.to_pylist()
    ]
    assert all(row["_error"] is None for row in found)
    return [(row["model_id"], row["name"], row["version"]) for row in found]


@pytest.mark.parametrize("index", ["sharded", "dual"])
@pytest.mark.parametrize("seed", range(2))
def test_every_version_once_wherever_it_dies(
    synced: Callable[..., mire.Store], tmp_path: Path, index: str, seed: int
) -> None:
    """As Spark calls it, with crashes before and after every step: no version is lost, none comes twice.

    What Spark keeps is played here: an offset is logged before its batch is read, and a batch that was not noted as
    done is read again, with the offsets that were logged.
    """
    chance = random.Random(seed)  # noqa: S311 - for variety, not for secrets
    store, wanted = synced(index=index), list[Key]()
    logged: list[dict[str, Any]] = []
    done: dict[int, list[Key]] = {}
    reader = reader_of(tmp_path)
    for _ in range(25):
        if chance.random() < 0.5:
            wanted += put(store, f"vpc-{chance.randrange(3)}", f"name-{chance.randrange(2)}", chance.randrange(1, 4))
        if index == "dual" and len(wanted) > 20:
            index = "sharded"
            migrate_index(store.datastore)
        if chance.random() < 0.4:
            reader = reader_of(tmp_path)
        start = logged[-1] if logged else reader.initialOffset()
        if len(done) == len(logged):
            end = reader.latestOffset(start, ReadMaxRows(chance.randrange(1, 5)))
            if end == start or chance.random() < 0.3:
                reader = reader_of(tmp_path) if end != start else reader  # died before the offset was logged
                continue
            logged.append(json.loads(json.dumps(end)))
        batch = len(logged) - 1
        start = logged[batch - 1] if batch else reader.initialOffset()
        first = rows_of(reader, start, logged[batch])
        if chance.random() < 0.4:
            reader = reader_of(tmp_path)  # died while the batch was read
            assert sorted(rows_of(reader, start, logged[batch])) == sorted(first)
        done[batch] = first
        reader.commit(logged[batch])
    end = logged[-1]
    last = reader.latestOffset(end, ReadAllAvailable())
    if last != end:
        done[len(logged)] = rows_of(reader, end, last)
    assert Counter(key for batch in done.values() for key in batch) == Counter(wanted)
    assert all(len(json.dumps(offset)) < 120 for offset in logged)


def test_a_long_stream_keeps_little(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """What was read is summed up now and then, and what no offset can ask for goes; a restart knows all of it."""
    store, reader = synced(), reader_of(tmp_path)
    offset = reader.initialOffset()
    wanted = put(store, "vpc-1", "state", 40)
    found = list[Key]()
    for _ in wanted:
        end = reader.latestOffset(offset, ReadMaxRows(1))
        found += rows_of(reader, offset, end)
        reader.commit(end)
        offset = end
    assert found == wanted
    names = sorted(path.name for path in (tmp_path / "state" / offset["stream"]).iterdir())
    assert [name for name in names if name.startswith("state")] == ["state-32"]
    assert len(names) == 1 + 8
    again = reader_of(tmp_path)
    assert again.latestOffset(offset, ReadAllAvailable()) == offset
    (key,) = put(store, "vpc-1", "state")
    assert rows_of(again, offset, again.latestOffset(offset, ReadAllAvailable())) == [key]


def test_a_name_that_went_and_came_back(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A name that was seen gone is new when it comes back, whatever number it begins with."""
    store, reader = synced(), reader_of(tmp_path)
    put(store, "vpc-1", "state", 2)
    put(store, "vpc-2", "state")
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    store.model("aws/ec2/vpc", "vpc-1").delete("state")
    assert reader.latestOffset(first, ReadAllAvailable()) == first
    assert [name for _, name in reader._seen if "vpc-1" in name] == []


def test_a_stream_can_begin_with_what_comes(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """With `startingFrom=latest` what is there is passed over."""
    store = synced()
    put(store, "vpc-1", "state", 2)
    reader = reader_of(tmp_path, startingfrom="latest", latestonly="true")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    put(store, "vpc-1", "state", 2)
    assert rows_of(reader, start, reader.latestOffset(start, ReadAllAvailable())) == [("vpc-1", "state", 4)]


def test_a_damaged_shard_is_told_and_waited_for(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """What a damaged shard lists comes when it is whole again; that it is damaged is a row, once."""
    store, reader = synced(), reader_of(tmp_path)
    put(store, "vpc-1", "state")
    put(store, "vpc-2", "state")
    shard = tmp_path / "remote/_index/data--aws--ec2--vpc--vpc-2.json"
    whole = shard.read_bytes()
    shard.write_text("{")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    rows = [row for piece in reader.partitions(start, end) for batch in reader.read(piece) for row in batch.to_pylist()]
    assert [(row["model_id"], row["_error"] is None) for row in rows] == [("vpc-1", True), (None, False)]
    shard.write_bytes(whole)
    put(store, "vpc-3", "state")
    last = reader.latestOffset(end, ReadAllAvailable())
    assert rows_of(reader, end, last) == [("vpc-2", "state", 1), ("vpc-3", "state", 1)]


def test_what_a_stream_cannot_do_is_told(synced: Callable[..., mire.Store], tmp_path: Path, store: mire.Store) -> None:
    """Without a place for its state, or with that lost, of another table, of a directory without index: an error."""
    put(synced(), "vpc-1", "state")
    asked = parse_source_options({"path": str(tmp_path / "remote")})
    with pytest.raises(ConfigError, match=r"a stream needs option 'stateLocation'"):
        StreamReader(asked, schema_of(asked)).latestOffset(None, ReadAllAvailable())
    with pytest.raises(InputError, match=r"reads the table 'artifacts', not 'runs'"):
        reader_of(tmp_path, table="runs")
    store.model("echo", "e").put("note", "hello")
    with pytest.raises(InputError, match=r"this directory has none: read it in batches"):
        reader_of(tmp_path, path=store.datastore.base).latestOffset(None, ReadAllAvailable())
    lost = {"stream": "x", "batch": 3, "commit": 1}
    with pytest.raises(NotFoundError, match=r"begin again with a new checkpoint"):
        reader_of(tmp_path).latestOffset(lost, ReadAllAvailable())


def test_idle_looks_cost_one_request(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Nothing new is one request; a commit is that one, a listing of the index, and the shards that changed."""
    store, reader = synced(), reader_of(tmp_path)
    for model in ("vpc-1", "vpc-2", "vpc-3"):
        put(store, model, "state")
    offset = reader.latestOffset(None, ReadAllAvailable())
    (watch,) = reader._watches or []
    watch._remote = counted = Counted(watch._remote)

    def asked() -> dict[str, int]:
        return counted.costs().requests()

    assert reader.latestOffset(offset, ReadAllAvailable()) == offset
    assert asked() == {"get_if_changed": 1}
    put(store, "vpc-2", "state", 2)
    assert reader.latestOffset(offset, ReadAllAvailable()) != offset
    assert asked() == {"get_if_changed": 2, "list": 1, "get": 2}


def test_a_query_that_dies_goes_on(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A real query, ended by errors between and inside its batches, goes on from its checkpoint: each version once."""
    store, wanted = synced(), list[Key]()
    batches: dict[int, list[Key]] = {}
    deaths = iter([False, True])

    def sink(frame: Any, number: int) -> None:
        rows = [(row.model_id, row.name, row.version) for row in frame.collect()]
        is_late = next(deaths, None)
        if is_late is False:
            batches[number] = rows
        if is_late is not None:
            raise ZeroDivisionError
        batches[number] = rows

    reader = spark.readStream.format("mire").option("path", str(tmp_path / "remote"))
    frame = reader.option("stateLocation", str(tmp_path / "state")).option("maxVersionsPerTrigger", 5).load()
    for turn in range(3):
        wanted += put(store, f"vpc-{turn % 2}", "state", 3)
        query = (
            frame.writeStream.foreachBatch(sink)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except Exception as error:  # noqa: BLE001 - the death that was ordered
            assert "ZeroDivisionError" in str(error)  # noqa: PT017
    assert Counter(key for rows in batches.values() for key in rows) == Counter(wanted)
    assert max(len(rows) for rows in batches.values()) <= 5
