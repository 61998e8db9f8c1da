"""The data source over namespaces: one, several, or every one of a store, in batches and as a stream."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import mire
from mire.errors import ConfigError, InputError, NotFoundError
from mire.pipeline.frames import spark_schema
from mire.pipeline.source.source import MireSource
from mire.pipeline.source.stream import StreamReader
from mire.pipeline.source.table import schema_of
from mire.plan.source import parse_source_options
from mire.testing.s3server import S3Server
from sparks import ACCESS
from tenants import Tenant

SPACES = ("blue", "red")
DEFINITION = "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603"
WORKFLOW = "9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21"
TABLES = ("artifacts", "versions", "files", "runs", "outputs")


def fill(store: mire.Store) -> None:
    """A version, an output and a run."""
    store.model("echo", "e").put("note", "hello")
    store.outputs.finish(store.outputs.start("echo", DEFINITION, "create"), "succeeded")
    store.runs.finish(store.runs.start(WORKFLOW, "nightly"), "succeeded")


def plain(tmp_path: Path, name: str) -> Tenant:
    """A tenant of a directory that is used in place."""
    (tmp_path / "remote").mkdir(exist_ok=True)
    tenant = Tenant(tmp_path / f"of-{name}", None, {"type": "filesystem", "path": str(tmp_path / "remote")})
    if name:
        tenant.take(name)
    return tenant


@pytest.fixture(params=["indexed", "plain", "s3"])
def shared(
    request: pytest.FixtureRequest,
    synced: Callable[..., mire.Store],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """The address of a store with two namespaces, a tenant without one, and a directory that is none."""
    root = tmp_path / "remote"
    for name in (*SPACES, ""):
        if request.param == "plain":
            with plain(tmp_path, name).open() as store:
                fill(store)
        else:
            fill(synced(f"of-{name}", namespace=name))
    (root / "stuff").mkdir()
    (root / "stuff/readme").write_text("no namespace")
    if request.param != "s3":
        yield str(root)
        return
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    with S3Server(buckets=["bucket"]) as server:
        for path in root.rglob("*"):
            if path.is_file():
                server.put("bucket", str(path.relative_to(root)), path.read_bytes())
        yield f"s3://bucket?region=eu-central-1&forcePathStyle=true&endpoint={server.url}"


def rows_of(**options: str) -> list[dict[str, Any]]:
    """The rows of a table, as tasks make them."""
    source = MireSource(options)
    reader = source.reader(source.schema())
    return [row for piece in reader.partitions() for batch in reader.read(piece) for row in batch.to_pylist()]


def test_every_namespace_of_every_table(shared: str) -> None:
    """`*` is the same as naming all of them, whatever the store is; what is no namespace is not read."""
    for table in TABLES:
        found = rows_of(path=shared, namespaces="*", table=table)
        assert sorted({row["namespace"] for row in found}) == [*SPACES], table
        assert all(row["_error"] is None for row in found), table
        named = rows_of(path=shared, namespaces="red,blue", table=table)
        assert sorted(map(str, found)) == sorted(map(str, named)), table
        (one,) = {row["namespace"] for row in rows_of(path=shared, namespace="red", table=table)}
        assert one == "red"
        assert {row["namespace"] for row in rows_of(path=shared, table=table)} == {""}
    assert all(not row["path"].startswith(SPACES) for row in rows_of(path=shared, table="files"))


def test_a_stream_of_every_namespace(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A namespace that comes while the stream runs is read, too; a restart reads nothing again."""
    red = synced("red", namespace="red").model("echo", "r")
    red.put("note", "one")
    given = {"path": str(tmp_path / "remote"), "namespaces": "*", "stateLocation": str(tmp_path / "state")}
    asked = parse_source_options(given)

    def batch(reader: StreamReader, start: Any) -> tuple[Any, list[tuple[str, int]]]:
        end = reader.latestOffset(start, ReadAllAvailable())
        pieces = reader.partitions(start or {**end, "batch": 0}, end)
        rows = [row for piece in pieces for some in reader.read(piece) for row in some.to_pylist()]
        return end, sorted((row["namespace"], row["version"]) for row in rows)

    reader = StreamReader(asked, schema_of(asked))
    offset, rows = batch(reader, None)
    assert rows == [("red", 1)]
    synced("blue", namespace="blue").model("echo", "b").put("note", "one")
    red.put("note", "two")
    offset, rows = batch(reader, offset)
    assert rows == [("blue", 1), ("red", 2)]
    assert batch(StreamReader(asked, schema_of(asked)), offset)[1] == []


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"namespaces": "*,red"}, ConfigError, "'\\*' is every namespace, so it stands alone"),
        ({"namespaces": "*"}, NotFoundError, "has no namespace: leave the option 'namespaces' out"),
    ],
)
def test_what_cannot_be_meant_is_told(
    tmp_path: Path, options: dict[str, str], error: type[Exception], message: str
) -> None:
    """Every one and another one, and every one where there is none, are errors with advice."""
    with pytest.raises(error, match=message):
        rows_of(path=str(tmp_path), **options)


def test_a_stream_of_a_plain_namespace_is_told(tmp_path: Path) -> None:
    """In a directory that is used in place nothing tells what is new, in a namespace as little as without."""
    plain(tmp_path, "red").put("vpc-1", "hello")
    given = {"path": str(tmp_path / "remote"), "namespaces": "*", "stateLocation": str(tmp_path / "state")}
    asked = parse_source_options(given)
    with pytest.raises(InputError, match=r"this directory has none: read it in batches"):
        StreamReader(asked, schema_of(asked)).latestOffset(None, ReadAllAvailable())


def test_a_write_to_every_namespace_is_refused(tmp_path: Path) -> None:
    """A write goes to one."""
    source = MireSource({"path": str(tmp_path), "namespaces": "*"})
    columns = pa.schema([(name, pa.string()) for name in ("model_type", "model_id", "name", "content")])
    with pytest.raises(InputError, match=r"not to \*: give the 'repo' that has it"):
        source.writer(spark_schema(columns), overwrite=False)
