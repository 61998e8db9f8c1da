"""The data source `mire`, read as a stream: every version once, whenever the query dies."""

import json
import random
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows

import mire
from mire.edge.counted import Counted
from mire.edge.remote import Remote
from mire.edge.state import close_states
from mire.edge.wrap import Wrapper
from mire.errors import ConfigError, FormatError, InputError, NotFoundError
from mire.flow.migrate import migrate_index
from mire.pipeline.source.stream import StreamReader
from mire.pipeline.source.table import schema_of
from mire.plan.source import parse_source_options
from mire.testing.faults import Run
from mire.testing.s3server import S3Server
from sparkconnect import Connect
from sparks import Cluster

Key = tuple[str, str, int]
T = TypeVar("T")


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


def all_rows_of(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """What a batch has, damage included."""
    return [row for piece in reader.partitions(start, end) for batch in reader.read(piece) for row in batch.to_pylist()]


def rows_of(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Key]:
    """The versions a batch has, and nothing else."""
    found = all_rows_of(reader, start, end)
    assert [row["_error"] for row in found] == [None] * len(found)
    return [(row["model_id"], row["name"], row["version"]) for row in found]


def rewrite(path: Path, old: str, new: str) -> bytes:
    """Have a shard say something else, and the list of shards tell of a commit; what it said before."""
    before, meta = path.read_bytes(), path.with_name("_meta.json")
    text, count = re.subn(old, new, before.decode())
    assert count == 1
    path.write_text(text)
    document = json.loads(meta.read_text())
    meta.write_text(json.dumps({**document, "commitSeq": document["commitSeq"] + 1}))
    return before


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


def test_content_comes_with_a_stream_when_it_is_asked_for(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """As with a batch: the bytes of each version, else nothing."""
    put(synced(), "vpc-1", "state", 2)
    reader = reader_of(tmp_path, content="true")
    start = reader.initialOffset()
    rows = all_rows_of(reader, start, reader.latestOffset(start, ReadAllAvailable()))
    assert [json.loads(row["content"]) for row in rows] == [{"n": 0}, {"n": 1}]
    plain = reader_of(tmp_path, statelocation=str(tmp_path / "other"))
    start = plain.initialOffset()
    rows = all_rows_of(plain, start, plain.latestOffset(start, ReadAllAvailable()))
    assert [row["content"] for row in rows] == [None, None]


@pytest.mark.parametrize("index", ["sharded", "dual"])
def test_a_name_that_went_and_came_back(synced: Callable[..., mire.Store], tmp_path: Path, index: str) -> None:
    """A name that was seen gone is new when it comes back, whatever number it begins with, and after every restart.

    Other programs count from 1 again: the remote is put back into the states it had.
    """
    store, remote = synced(index=index), tmp_path / "remote"
    stages = dict[int, Path]()
    put(store, "vpc-2", "state")
    for number in range(6):
        stages[number] = Path(shutil.copytree(remote, tmp_path / f"stage-{number}"))
        put(store, "vpc-1", "state")
        put(store, "vpc-2", "log")
    reader = reader_of(tmp_path)
    offset = reader.initialOffset()
    found = list[list[Key]]()

    def both(start: int, end: int) -> list[Key]:
        return [(*name, number) for name in (("vpc-1", "state"), ("vpc-2", "log")) for number in range(start, end)]

    for number in (5, 0, 1, 3):
        shutil.rmtree(remote)
        shutil.copytree(stages[number], remote)
        reader.latestOffset(offset, ReadAllAvailable())  # and was not logged
        end = reader.latestOffset(offset, ReadAllAvailable())
        found.append(rows_of(reader, offset, end))
        reader, offset = reader_of(tmp_path), end
        assert reader.latestOffset(offset, ReadAllAvailable()) == offset
    assert sorted(found.pop(0)) == [*both(1, 6), ("vpc-2", "state", 1)]
    assert found == [[], both(1, 2), both(2, 4)]


def test_a_plan_of_a_driver_that_is_replaced_changes_nothing(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Whatever a driver plans after another took over, a logged batch stays what it was."""
    store, late, driver = synced(), reader_of(tmp_path), reader_of(tmp_path)
    first = put(store, "vpc-1", "state")
    start = late.initialOffset()
    late.latestOffset(start, ReadAllAvailable())
    (plan,) = (tmp_path / "state" / start["stream"]).iterdir()
    held = plan.rename(tmp_path / "held")  # on its way
    both = [*first, *put(store, "vpc-2", "state")]
    logged = driver.latestOffset(start, ReadAllAvailable())
    held.rename(plan)
    again = reader_of(tmp_path)
    assert rows_of(driver, start, logged) == rows_of(again, start, logged) == both
    assert again.latestOffset(logged, ReadAllAvailable()) == logged


def test_a_stream_can_begin_with_what_comes(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """With `startingFrom=latest` what is there at first is passed over, by a batch without rows, and nothing later."""
    store, remote = synced(), tmp_path / "remote"
    put(store, "vpc-1", "state", 2)
    begins: dict[str, str] = {"startingfrom": "latest", "latestonly": "true"}
    reader = reader_of(tmp_path, **begins)
    start = [reader.initialOffset() for _ in range(3)][-1]
    shard = remote / "_index/data--aws--ec2--vpc--vpc-1.json"
    whole = rewrite(shard, r"(?s).+", "{")
    with pytest.raises(FormatError, match=r"vpc-1' .* is skipped: .*; repair it, or begin with startingFrom=earliest"):
        reader.latestOffset(start, ReadAllAvailable())
    assert not list((tmp_path / "state").iterdir())
    shard.write_bytes(whole)
    first = reader.latestOffset(start, ReadAllAvailable())
    assert rows_of(reader, start, first) == []
    put(store, "vpc-1", "state", 2)
    again = reader_of(tmp_path, **begins)
    assert rows_of(again, first, again.latestOffset(first, ReadAllAvailable())) == [("vpc-1", "state", 4)]


SHARD = "the shard 'data--aws--ec2--vpc{}' of the index is skipped: "
DAMAGE = {
    "versions": ("data--aws--ec2--vpc--vpc-2", r"(?s).+", "{", None, SHARD.format("--vpc-2")),
    "markers": ("data--aws--ec2--vpc", r"(?s).+", "{", None, SHARD.format("")),
    "marker": (
        "data--aws--ec2--vpc",
        r'(vpc-2/state/latest":\{[^}]*"size":)\d+',
        r'\1"many"',
        "vpc-2",
        "the size 'many'",
    ),
}
"""By name: the shard that is damaged, what becomes what in it, the model that is told with it, and what is said."""


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_told_and_waited_for(synced: Callable[..., mire.Store], tmp_path: Path, what: str) -> None:
    """What a damaged shard or marker hides comes when it is whole again, not before; that it is damaged is a row, once.

    `FAILFAST` ends before anything is on record, and `DROPMALFORMED` says nothing; both go on when it is whole.
    """
    store, note = synced(), ("e", "note", 1)
    hidden = put(store, "vpc-2", "state", 2)
    store.model("echo", "e").put("note", "hello")
    partition, old, new, model, message = DAMAGE[what]
    shard = tmp_path / f"remote/_index/{partition}.json"
    whole = rewrite(shard, old, new)
    strict, mild, reader = (
        reader_of(tmp_path, mode="FAILFAST"),
        reader_of(tmp_path, mode="DROPMALFORMED"),
        reader_of(tmp_path),
    )
    start = reader.initialOffset()
    with pytest.raises(FormatError, match=f"{re.escape(message)}.*; mode=PERMISSIVE reads the rest"):
        strict.latestOffset(start, ReadAllAvailable())
    dropped = mild.latestOffset(start, ReadAllAvailable())
    assert rows_of(mild, start, dropped) == [note]
    end = reader.latestOffset(start, ReadAllAvailable())
    rows = all_rows_of(reader, start, end)
    assert [(row["model_id"], row["version"]) for row in rows] == [("e", 1), (model, None)]
    assert message in rows[1]["_error"]
    rewrite(shard, r"\Z", "\n" if what == "marker" else "")  # a commit that repairs nothing
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    shard.write_bytes(whole)
    late = [*hidden, *put(store, "vpc-3", "state")]
    for each, at in ((reader, end), (mild, dropped)):
        assert rows_of(each, at, each.latestOffset(at, ReadAllAvailable())) == late
    assert rows_of(strict, start, strict.latestOffset(start, ReadAllAvailable())) == [*late, note]


def test_a_damaged_entry_of_a_version_hides_nothing(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A version is read by its number; what else its entry says is not needed, so damage there loses no version."""
    wanted = put(synced(), "vpc-1", "state", 3)
    shard = tmp_path / "remote/_index/data--aws--ec2--vpc--vpc-1.json"
    rewrite(shard, r'(state/2/metadata.yaml":\{[^}]*"size":)\d+', r'\1"many"')
    reader = reader_of(tmp_path, mode="FAILFAST")
    start = reader.initialOffset()
    assert rows_of(reader, start, reader.latestOffset(start, ReadAllAvailable())) == wanted


@pytest.mark.parametrize("text", ["{", "[1]", '{"items":[]}'])
def test_damaged_state_is_told(synced: Callable[..., mire.Store], tmp_path: Path, text: str) -> None:
    """State that is not what was written is a typed error that names the file."""
    put(synced(), "vpc-1", "state")
    reader = reader_of(tmp_path)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    (plan,) = (tmp_path / "state" / end["stream"]).iterdir()
    plan.write_text(text)
    for call in (reader.partitions, lambda _, end: reader_of(tmp_path).latestOffset(end, ReadAllAvailable())):
        with pytest.raises(FormatError, match=rf"{plan.name}' of a stream's state is damaged: bring it back"):
            call(start, end)


def test_a_batch_is_as_large_as_was_said(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """`maxFilesPerTrigger` is `maxVersionsPerTrigger`, and Spark may hand either kind of limit over."""
    wanted = put(synced(), "vpc-1", "state", 3)
    for option, limit in (("maxfilespertrigger", None), ("maxversionspertrigger", ReadMaxFiles(2))):
        reader = reader_of(tmp_path, **{option: "2"})
        start = reader.initialOffset()
        end = reader.latestOffset(start, limit or reader.getDefaultReadLimit())
        assert rows_of(reader, start, end) == wanted[:2]


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
    lost = {"stream": "x", "batch": 3, "plan": "y", "commit": 1}
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


def test_a_look_goes_through_what_changed(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Names at rest are not gone through again, and shards of models that are not wanted are not read."""
    store, reader = synced(), reader_of(tmp_path)
    narrow = reader_of(tmp_path, models="aws/ec2/vpc/vpc-2")
    for number in range(5):
        put(store, f"vpc-{number}", "state")
    for each in (reader, narrow):
        offset = each.latestOffset(None, ReadAllAvailable())
        assert each.latestOffset(offset, ReadAllAvailable()) == offset
    (watch,), (other,) = reader._watches or [], narrow._watches or []
    other._remote = counted = Counted(other._remote)
    visited = list[str]()

    def mark_of(directory: str) -> int:
        visited.append(directory)
        return 1

    assert [*watch.arrived(mark_of), *visited] == []
    put(store, "vpc-3", "state")
    watch.look()
    assert [*watch.arrived(mark_of)] == [("data/aws/ec2/vpc/vpc-3/state", 2, [2])]
    assert visited == ["data/aws/ec2/vpc/vpc-3/state"]
    other.look()
    assert counted.costs().requests() == {"get_if_changed": 1, "list": 1, "get": 1}  # the shard with all markers
    store.model("echo", "e").put("note", "hello")
    other.look()
    assert counted.costs().requests() == {"get_if_changed": 2, "list": 2, "get": 1}


class Together(Wrapper):
    """A remote that answers when all of them were asked."""

    def __init__(self, remote: Remote, barrier: threading.Barrier) -> None:
        super().__init__(remote)
        self._barrier = barrier

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        self._barrier.wait(60)
        return super()._around(operation, key, call)


def test_namespaces_are_looked_at_together(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Many namespaces do not wait for each other: a look at one begins before that at another ended."""
    for space in ("red", "blue"):
        put(synced(space, namespace=space), "vpc-1", "state")
    reader = reader_of(tmp_path, namespaces="red, blue")
    offset = reader.latestOffset(None, ReadAllAvailable())
    barrier = threading.Barrier(2)
    for watch in reader._watches or []:
        watch._remote = Together(watch._remote, barrier)
    assert reader.latestOffset(offset, ReadAllAvailable()) == offset


def test_a_version_comes_when_its_marker_does(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A version that is listed before it is published is not given, and not passed over."""
    store, reader = synced(), reader_of(tmp_path)
    markers = tmp_path / "remote/_index/data--aws--ec2--vpc.json"
    put(store, "vpc-1", "state")
    offset = reader.latestOffset(None, ReadAllAvailable())
    assert reader.latestOffset(offset, ReadAllAvailable()) == offset
    before = markers.read_bytes()
    new = put(store, "vpc-1", "state")
    after = markers.read_bytes()
    markers.write_bytes(before)
    for each in (reader, reader_of(tmp_path)):
        assert each.latestOffset(offset, ReadAllAvailable()) == offset
    markers.write_bytes(after)
    rewrite(markers, r"\A", "")
    assert rows_of(reader, offset, reader.latestOffset(offset, ReadAllAvailable())) == new


@pytest.mark.parametrize("astray", ["state/3/", "state/"])
def test_an_entry_counts_once_wherever_it_is_listed(
    synced: Callable[..., mire.Store], tmp_path: Path, astray: str
) -> None:
    """A version that strayed into the shard of another model is given, in its place, and not again when it is home."""
    store, reader = synced(), reader_of(tmp_path)
    wanted = [*put(store, "vpc-1", "state"), *put(store, "vpc-2", "state", 3)]
    shards = [tmp_path / f"remote/_index/data--aws--ec2--vpc--vpc-{number}.json" for number in (1, 2)]
    first, second = (json.loads(path.read_text()) for path in shards)
    home = shards[1].read_bytes(), shards[0].read_bytes()
    for rel in [rel for rel in second["entries"] if astray in rel]:
        first["entries"][rel] = second["entries"].pop(rel)
    shards[0].write_text(json.dumps(first))
    shards[1].write_text(json.dumps(second))
    offset = reader.initialOffset()
    found = list[Key]()
    for _ in range(2):
        end = reader.latestOffset(offset, ReadMaxRows(3))
        found += rows_of(reader, offset, end)
        offset = end
    assert found == wanted
    assert reader_of(tmp_path).latestOffset(offset, ReadAllAvailable()) == offset
    for path, data in zip((shards[1], shards[0]), home, strict=True):
        path.write_bytes(data)
        rewrite(path, r"\A", "")
        assert reader.latestOffset(offset, ReadAllAvailable()) == offset


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


STREAM = """
import json
stream = spark.readStream.format("mire").option("path", {path!r}).option("stateLocation", {state!r})
stream = stream.option("startingFrom", "latest").option("maxFilesPerTrigger", {most}).load()
query = (
    stream.select("model_id", "version", "_error").writeStream.format("parquet").trigger(availableNow=True)
    .option("checkpointLocation", {out!r} + "/checkpoint").start({out!r} + "/rows")
)
query.awaitTermination()
print(json.dumps([each.numInputRows for each in query.recentProgress]))
"""
ROWS = """
import json
rows = spark.read.schema("model_id string, version long, _error string").parquet({out!r} + "/rows").collect()
print(json.dumps(sorted([row.model_id, row.version, row._error] for row in rows)))
"""


def test_a_worker_dies_under_a_stream_over_connect(
    spark_cluster: Cluster, spark_connect: Connect, bucket_repo: Callable[..., Path], tmp_path: Path
) -> None:
    """A query that is run now and then over Connect, its state in a bucket, gives what came since, each version once.

    Its first batch has no rows; a worker dies in one that has.
    """
    with S3Server(buckets=["bucket", "state"]) as server:
        at = [f"s3://{name}?region=us-east-1&forcePathStyle=true&endpoint={server.url}" for name in ("bucket", "state")]
        stream = STREAM.format(path=at[0], state=at[1], most=4, out=str(tmp_path / "out"))
        spark_cluster.have_workers()
        with mire.open(bucket_repo(server.url, "bucket")) as store:
            data = store.model("aws/ec2/vpc", "vpc-1")
            data.put("state", {"n": 1})
            assert spark_connect.run(stream) == [0]
            with data.hold():
                for number in range(6):
                    data.put("state", {"n": number})
            base = store.datastore.base
        close_states(base)
        death = server.inject(Run(spark_cluster.kill_worker), operation="GetObject", key="data/*/metadata.yaml", skip=1)
        assert spark_connect.run(stream) == [4, 2]
    assert death.hits == 1
    assert spark_connect.run(ROWS.format(out=str(tmp_path / "out"))) == [
        ["vpc-1", number, None] for number in range(2, 8)
    ]
