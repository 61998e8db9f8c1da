"""The data source `mire`, written to: rows become versions, all of them at once, or none."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import StructType

import mire
from disks import fill_up
from mire.errors import ConfigError, InputError, MireError, OwnershipError, RemoteError
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import spark_schema
from mire.pipeline.source import commit as source_commit
from mire.pipeline.source.draft import drafts_of
from mire.pipeline.source.source import MireSource
from mire.pipeline.source.writer import Writer
from mire.plan.source import parse_source_options
from mire.wire.meta import decode_meta

COLUMNS = "model_type string, model_id string, name string, attributes string, tags map<string,string>"

PLAIN = "model_type string, model_id string, name string, content string"

NESTED = b'{"n":[{"a":{"b":true,"c":null,"d":1.5}}]}'


def rows_for(count: int) -> list[tuple[Any, ...]]:
    """Rows of three models, with two names each."""
    return [
        ("aws/ec2/vpc", f"vpc-{number % 3}", f"name-{number % 2}", f'{{"n":{number}}}', {"team": "a"})
        for number in range(count)
    ]


def save(frame: Any, path: Path | str, **options: str) -> None:
    """Write a table with the source."""
    with spark_errors("writing"):
        frame.write.format("mire").mode("append").options(**options).save(str(path))


def found_in(store: mire.Store) -> dict[tuple[str, str, int], Any]:
    """Every version that a client sees after a pull, with its content."""
    from mire.flow.exchange import pull_now  # noqa: PLC0415

    if store.datastore.remote is not None:
        pull_now(store.datastore)
    return {
        (model.id, row.name, version): model.get(row.name, version).bytes()
        for model in store.models()
        for row in model.names()
        for version in model.versions(row.name)
    }


def tree(root: Path) -> dict[str, bytes]:
    """All files below a directory."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("index", ["sharded", "dual"])
def test_rows_become_versions_in_one_commit(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, index: str
) -> None:
    """Every row is a version that clients see, published by one commit; nothing staged is left."""
    store, remote = synced(index=index), tmp_path / "remote"
    store.model("aws/ec2/vpc", "vpc-0").put("name-0", "before")
    before = (remote / "_index/_meta.json").read_bytes()
    save(spark.createDataFrame(rows_for(12), COLUMNS).repartition(3, "model_id"), remote)
    found = found_in(store)
    assert len(found) == 13
    assert {number for model, _, number in found if model == "vpc-0"} == {1, 2, 3}
    assert store.model("aws/ec2/vpc", "vpc-1").get("name-0").metadata.tags["team"] == "a"
    assert sorted(found.values()) == sorted([b"before", *(row[3].encode() for row in rows_for(12))])
    if index == "sharded":
        meta = decode_meta((remote / "_index/_meta.json").read_bytes(), "meta")
        assert meta.commit_seq == (decode_meta(before, "meta").commit_seq or 0) + 1
    assert not [path for path in tree(remote) if "mire-spark" in path or path.endswith(".lock")]


def test_a_task_that_is_tried_again_adds_nothing(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Tasks that fail after they made their rows are tried again; each row is written once."""
    store = synced()
    store.model("echo", "e").put("note", "hello")

    def late(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            raise ZeroDivisionError

    frame = spark.createDataFrame(rows_for(6), COLUMNS).repartition(2, "model_id")
    save(frame.mapInArrow(late, frame.schema), tmp_path / "remote")
    assert len(found_in(store)) == 7
    assert not [path for path in tree(tmp_path / "remote") if "mire-spark" in path]


def test_a_job_that_fails_leaves_nothing(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """One row that cannot be written ends the job, and nothing of the others is there: not an object."""
    store, remote = synced(), tmp_path / "remote"
    store.model("echo", "e").put("note", "hello")
    before = tree(remote)
    rows = [*rows_for(6), ("aws/ec2/vpc", "vpc-9", "..", "{}", {})]
    with pytest.raises(InputError, match=r"data name '\.\.' would leave its directory"):
        save(spark.createDataFrame(rows, COLUMNS).repartition(2), remote)
    assert tree(remote) == before


def test_a_full_disk_leaves_nothing(
    spark: Any, synced: Callable[..., mire.Store], small_disk: Callable[[str], Path]
) -> None:
    """Rows for which there is no space are one typed error, and nothing of them is there; with space they are."""
    remote = small_disk("remote")
    store = synced()
    store.model("echo", "e").put("note", "hello")
    filler, before = fill_up(remote, 64 << 10), tree(remote)
    table = spark.createDataFrame([("t", f"m{number}", "n", "x" * 20_000) for number in range(12)], PLAIN)
    with pytest.raises(RemoteError, match="no space left"):
        save(table.repartition(2), remote)
    assert tree(remote) == before
    filler.unlink()
    save(table.repartition(2), remote)
    assert len(found_in(store)) == 13


def writer_for(remote: Path | str, **options: str) -> tuple[Writer, pa.Schema]:
    """A writer as Spark makes one, and the schema of its rows."""
    kinds = [(name, pa.string()) for name in ("model_type", "model_id", "name", "content")]
    schema = pa.schema(kinds)
    asked = parse_source_options({"path": str(remote), **options})
    return Writer(asked, spark_schema(schema), overwrite=False), schema


def batch(schema: pa.Schema, *rows: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """One batch of rows."""
    return iter([pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)])


def test_two_attempts_at_once_count_as_one(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Of a task that ran twice only the attempt that Spark names is committed; what the other staged goes."""
    store, remote = synced(), tmp_path / "remote"
    store.model("echo", "e").put("note", "hello")
    writer, schema = writer_for(remote)
    first = writer.write(batch(schema, ("echo", "f", "note", "one")))
    second = writer.write(batch(schema, ("echo", "f", "note", "one")))
    assert first.key != second.key
    empty = writer.write(iter(()))
    writer.commit([second, empty])
    assert found_in(store) == {("e", "note", 1): b"hello", ("f", "note", 1): b"one"}
    assert not [path for path in tree(remote) if "mire-spark" in path]


def test_a_commit_that_is_refused_leaves_nothing(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A name of somebody else is found before the first version is made: nothing becomes visible, nothing waits."""
    store, remote = synced(), tmp_path / "remote"
    store.model("echo", "e").put("note", "hello", owner="workflow-step:s")
    before = tree(remote)
    writer, schema = writer_for(remote)
    staged = writer.write(batch(schema, ("echo", "a", "note", "one"), ("echo", "e", "note", "two")))
    with pytest.raises(OwnershipError, match=r"belongs to workflow-step:s"):
        writer.commit([staged])
    writer.abort([staged])
    assert tree(remote) == before
    writer, schema = writer_for(remote, owner="workflow-step:s")
    writer.commit([writer.write(batch(schema, ("echo", "e", "note", "two")))])
    assert found_in(store)["e", "note", 2] == b"two"


def test_a_plain_directory_is_written(store: mire.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A datastore without a remote takes versions, too; when one of them fails, those before it go again."""
    store.model("echo", "e").put("note", "hello")
    writer, schema = writer_for(Path(store.datastore.base))
    writer.commit([writer.write(batch(schema, ("echo", "e", "note", "two"), ("echo", "f", "log", "x")))])
    wanted = {("e", "note", 1): b"hello", ("e", "note", 2): b"two", ("f", "log", 1): b"x"}
    assert found_in(store) == wanted
    writer, schema = writer_for(Path(store.datastore.base))
    staged = writer.write(batch(schema, ("echo", "e", "note", "three"), ("echo/e/note", "y", "z", "nested")))
    with pytest.raises(MireError, match=r"would share a directory"):
        writer.commit([staged])
    assert found_in(store) == wanted


def test_an_empty_directory_is_written_as_it_is_said_to_be_used(
    synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """By its bare path it is refused, for it may be one that clients sync with and have pushed nothing to yet."""
    store, remote, plain = synced(), tmp_path / "remote", tmp_path / "plain"
    plain.mkdir()
    for path in (remote, plain):
        with pytest.raises(InputError, match=f"write 'cached:{path}' if repositories sync with it, or 'file://{path}'"):
            writer_for(path)
        assert tree(path) == {}
    for address in (f"cached:{remote}", f"file://{plain}"):
        writer, schema = writer_for(address)
        writer.commit([writer.write(batch(schema, ("echo", "e", "note", "one")))])
    assert found_in(store) == {("e", "note", 1): b"one"}
    assert {"data/echo/e/note/1/raw", "data/echo/e/note/latest"} <= tree(plain).keys()
    assert not [path for path in tree(plain) if "_index" in path]
    for path in (remote, plain):
        writer, schema = writer_for(path)
        writer.commit([writer.write(batch(schema, ("echo", "e", "note", "two")))])
    assert found_in(store)["e", "note", 2] == b"two"
    assert tree(plain)["data/echo/e/note/2/raw"] == b"two"


def test_many_models_are_written_under_the_global_lock(
    synced: Callable[..., mire.Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to a number of models each has its lock; for more the one lock of the store is held; it is one commit.

    Either way only what the written models have is brought to the driver.
    """
    store, remote = synced(), tmp_path / "remote"
    store.model("echo", "e").put("note", "hello")
    store.model("echo", "m-0").put("note", "before")
    really, seen = source_commit.check_may_write, list[set[str]]()
    brought = set[str]()

    def look(ds: Any, *arguments: Any, **options: Any) -> None:
        seen.append({str(path.relative_to(remote)) for path in remote.rglob("*.lock")})
        brought.update(path.parts[-4] for path in Path(ds.base).rglob("metadata.yaml"))
        really(ds, *arguments, **options)

    assert source_commit._LOCKS_MAX == 200
    monkeypatch.setattr(source_commit, "_LOCKS_MAX", 3)
    monkeypatch.setattr(source_commit, "check_may_write", look)
    for count in (3, 4):
        seq = decode_meta((remote / "_index/_meta.json").read_bytes(), "meta").commit_seq or 0
        writer, schema = writer_for(remote)
        rows = [("echo", f"m-{number}", "note", "x") for number in range(count)]
        writer.commit([writer.write(batch(schema, *rows))])
        wanted = {".datastore.lock"} if count == 4 else {f"data/echo/{row[1]}/.lock" for row in rows}
        assert seen == [wanted] * count
        assert brought == {f"m-{number}" for number in range(1 if count == 3 else 3)}
        seen.clear()
        brought.clear()
        assert decode_meta((remote / "_index/_meta.json").read_bytes(), "meta").commit_seq == seq + 1
        assert not list(remote.rglob("*.lock"))
    assert len(found_in(store)) == 2 + 3 + 4


@pytest.mark.parametrize(
    ("schema", "options", "error", "message"),
    [
        ("model_type string, model_id string, content string", {}, InputError, "a version needs model_type"),
        (f"{COLUMNS}, version long", {}, InputError, r"'version' is decided by the store .* drop it"),
        (f"{COLUMNS}, lifetme string", {}, InputError, "did you mean 'lifetime'"),
        (COLUMNS.replace("name string", "name int"), {}, InputError, "'name' is int: give string"),
        (COLUMNS.replace("string,string", "string,int"), {}, InputError, r"'tags' is map<string,int>: give .*cast"),
        (COLUMNS.replace("string,string", "int,string"), {}, InputError, r"'tags' is map<int,string>: give .*cast"),
        *(
            (COLUMNS.replace("attributes string", f"attributes {kind}"), {}, InputError, f"without {odd}, .*to_json")
            for kind, odd in (
                ("struct<at:timestamp>", "timestamp"),
                ("map<string,date>", "date"),
                ("struct<a:array<struct<b:decimal(3,1)>>>", r"decimal\(3,1\)"),
                ("map<string,array<binary>>", "binary"),
                ("map<double,int>", "double"),
                ("struct<v:variant>", "variant"),
            )
        ),
        (COLUMNS, {"namespace": "team"}, InputError, "give the 'repo' that has it"),
        (COLUMNS, {"ownr": "a:b"}, ConfigError, "did you mean 'owner'"),
    ],
)
def test_tables_that_cannot_be_written_are_told(
    spark: Any, tmp_path: Path, schema: str, options: dict[str, str], error: type[Exception], message: str
) -> None:
    """A column that is missing, misspelt or of another type is an error before any task runs; so is an option."""
    with pytest.raises(error, match=message):
        MireSource({"path": str(tmp_path), **options}).writer(StructType.fromDDL(schema), overwrite=False)


@pytest.mark.parametrize(
    ("attributes", "policy", "message"),
    [
        ([("n", float("nan"))], "3", "the attributes of 'state' are not JSON"),
        ([("n", float("inf"))], "3", "the attributes of 'state' are not JSON"),
        ('{"n":NaN}', "3", "the attributes of 'state' are not JSON .*NaN is no number"),
        ("{}", "²", "garbageCollection '²' is invalid"),
        ("{}", "9" * 5000, "garbageCollection '9+…? is invalid"),
    ],
)
def test_rows_that_cannot_be_written_are_told(attributes: Any, policy: str, message: str) -> None:
    """A number that JSON does not have, and a policy that is none, are errors of ours, with the value."""
    text = pa.string()
    kind = text if isinstance(attributes, str) else pa.map_(text, pa.float64())
    names = ("model_type", "model_id", "name", "version_policy")
    schema = pa.schema([*((name, text) for name in names), ("attributes", kind)])
    row = dict(zip(schema.names, ("echo", "e", "state", policy, attributes), strict=True))
    with pytest.raises(InputError, match=message):
        list(drafts_of([pa.RecordBatch.from_pylist([row], schema)], spark_schema(schema), None))


def test_overwriting_is_refused(spark: Any, tmp_path: Path) -> None:
    """Versions are never replaced: a write adds some."""
    with pytest.raises(InputError, match=r"never overwritten"), spark_errors("writing"):
        spark.createDataFrame([], COLUMNS).write.format("mire").mode("overwrite").save(str(tmp_path))


def test_what_was_read_can_be_written(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Attributes as text, VARIANT, struct or map, and content as bytes, come back as they were written."""
    store = synced()
    store.model("echo", "e").put("note", "hello")
    frame = spark.createDataFrame([("echo", "f")], "model_type string, model_id string")
    kinds = {
        "text": "'{\"n\":1}' as attributes",
        "variant": "parse_json('{\"n\":1}') as attributes",
        "struct": "struct(1 as n) as attributes",
        "map": "map('n', 1) as attributes",
        "nested": "struct(array(map('a', named_struct('b', true, 'c', null, 'd', 1.5D))) as n) as attributes",
        "bytes": "X'00ff' as content",
    }
    wanted = {**dict.fromkeys(kinds, b'{"n":1}'), "bytes": b"\x00\xff", "nested": NESTED}
    for name, column in kinds.items():
        save(frame.selectExpr("*", f"'{name}' as name", column, "30 as version_policy"), tmp_path / "remote")
    found = found_in(store)
    assert {name: found["f", name, 1] for name in kinds} == wanted
    assert store.model("echo", "f").get("map").metadata.version_policy == 30
