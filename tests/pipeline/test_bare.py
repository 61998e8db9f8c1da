"""A store without an index: lost, never there, or new; what is not known to be empty does not pass for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import mire
from mire.errors import FormatError, MireError, NotFoundError
from mire.flow.migrate import migrate_index
from mire.pipeline.jobs.export import export_store
from mire.pipeline.jobs.migrate import migrate_store
from mire.pipeline.jobs.verify import verify_store
from mire.pipeline.round_spark import round_on_spark
from mire.pipeline.sides import open_source, open_target
from mire.pipeline.source.source import MireSource
from mire.pipeline.source.stream import StreamReader
from mire.pipeline.source.table import schema_of
from mire.plan.source import parse_source_options

LIST, MONOLITH = "_index/_meta.json", ".datastore-index.json"
Lose = Callable[[Path], None]


def lose(*keys: str) -> Lose:
    """Take objects out of a store, or all of an index."""

    def take(root: Path) -> None:
        for key in keys or [str(path.relative_to(root)) for path in (root / "_index").iterdir()]:
            (root / key).unlink()

    return take


def lose_everything(root: Path) -> None:
    """Take all of an index away."""
    (root / MONOLITH).unlink()
    lose()(root)


def rows_of(**options: str) -> list[dict[str, Any]]:
    """The rows of the data source, as tasks make them."""
    source = MireSource(options)
    reader = source.reader(source.schema())
    return [row for piece in reader.partitions() for batch in reader.read(piece) for row in batch.to_pylist()]


def stream_of(tmp_path: Path, **options: str) -> StreamReader:
    """A stream as Spark makes one."""
    asked = parse_source_options({"stateLocation": str(tmp_path / "state"), **options})
    return StreamReader(asked, schema_of(asked))


BARE = pytest.mark.parametrize(
    ("index", "damage", "address", "namespace", "error", "message"),
    [
        ("sharded", lose(LIST), "remote", "", FormatError, r"has the shard 'data--echo--e', but nothing that lists it"),
        (
            "moved",
            lose(LIST),
            "remote",
            "",
            FormatError,
            r"is gone, and the shard 'data--echo--e' is newer than \.data",
        ),
        ("dual", lose(MONOLITH), "remote", "", FormatError, r"beside a monolith, but there is no \.datastore-index"),
        ("dual", lose_everything, "remote", "", FormatError, r"/remote has objects, but no index: its first push"),
        ("sharded", None, "typo", "", NotFoundError, r"/typo has no index and no data, and no namespace"),
        ("sharded", None, "remote", "teem", NotFoundError, r"/remote/teem has no .*the store has the namespaces team"),
    ],
    ids=[
        "list lost",
        "list lost beside an old monolith",
        "monolith lost",
        "all lost",
        "wrong prefix",
        "wrong namespace",
    ],
)


@BARE
def test_it_is_not_read_as_if_it_were_empty(
    synced: Callable[..., mire.Store],
    tmp_path: Path,
    index: str,
    damage: Lose | None,
    address: str,
    namespace: str,
    error: type[MireError],
    message: str,
) -> None:
    """The data source says which it is, in batches and as a stream, and names what is there."""
    store = synced(index="dual" if index == "moved" else index)
    store.model("echo", "e").put("note", "hello")
    if index == "moved":
        migrate_index(store.datastore)
        synced("three").model("echo", "e").put("note", "since")
    synced("two", namespace="team").model("echo", "e").put("note", "hello")
    (tmp_path / "typo").mkdir()
    if damage is not None:
        damage(tmp_path / "remote")
    options = {"path": f"cached:{tmp_path / address}", **({"namespace": namespace} if namespace else {})}
    with pytest.raises(error, match=message):
        rows_of(**options)
    stream = stream_of(tmp_path, **options)
    if damage is not lose_everything:
        with pytest.raises(error, match=message):
            stream.latestOffset(None, ReadAllAvailable())
        return
    # It may be the first push that is not done: that is told, and the first commit is waited for.
    start = stream.initialOffset()
    told = stream.latestOffset(start, ReadAllAvailable())
    assert "first push is not done" in errors_of(stream, start, told)[0]
    assert stream.latestOffset(told, ReadAllAvailable()) == told


def errors_of(stream: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    """What the rows of a batch say of damage."""
    pieces = stream.partitions(start, end)
    return [row["_error"] for piece in pieces for batch in stream.read(piece) for row in batch.to_pylist()]


@pytest.mark.parametrize("index", ["sharded", "dual"])
def test_a_stream_tells_that_the_index_is_gone_and_goes_on_when_it_is_back(
    synced: Callable[..., mire.Store], tmp_path: Path, index: str
) -> None:
    """Nothing is given again because of that, neither by the stream nor after it was started anew."""
    store = synced(index=index)
    store.model("echo", "e").put("note", "hello")
    options = {"path": f"cached:{tmp_path / 'remote'}"}
    stream = stream_of(tmp_path, **options)
    first = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    place = tmp_path / "remote" / (LIST if index == "sharded" else MONOLITH)
    data = place.read_bytes()
    place.unlink()
    gone = stream.latestOffset(first, ReadAllAvailable())
    (said,) = errors_of(stream, first, gone)
    assert "'mire index rebuild' makes a new one" in said
    assert stream.latestOffset(gone, ReadAllAvailable()) == gone
    place.write_bytes(data)
    assert stream.latestOffset(gone, ReadAllAvailable()) == gone
    store.model("echo", "e").put("note", "again")
    last = stream.latestOffset(gone, ReadAllAvailable())
    assert errors_of(stream, gone, last) == [None]
    data = place.read_bytes()
    place.unlink()
    with pytest.raises(FormatError, match="mire index rebuild"):
        stream_of(tmp_path, **options).latestOffset(last, ReadAllAvailable())
    place.write_bytes(data)
    assert stream_of(tmp_path, **options).latestOffset(last, ReadAllAvailable()) == last


def test_a_namespace_that_is_claimed_is_empty(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Somebody has it and published nothing yet: that is no error, and the first commit comes."""
    store = synced(namespace="team")
    (tmp_path / "remote/team").mkdir()
    (tmp_path / "remote/team/.namespace.json").write_text("{}")
    options = {"path": f"cached:{tmp_path / 'remote'}", "namespaces": "*"}
    assert rows_of(**options) == []
    stream = stream_of(tmp_path, **options)
    start = stream.initialOffset()
    assert stream.latestOffset(start, ReadAllAvailable()) == start
    (tmp_path / "remote/team/.namespace.json").unlink()
    store.model("echo", "e").put("note", "hello")
    assert errors_of(stream, start, stream.latestOffset(start, ReadAllAvailable())) == [None]


def test_no_job_takes_it_for_empty(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Migration and export stop, verification finds it; what the shards say is compared all the same."""
    store, out = synced(), str(tmp_path / "out")
    with pytest.raises(NotFoundError, match="no index and no data"):
        export_store(spark, store.datastore, out)
    with pytest.raises(NotFoundError, match="no index and no data"):
        verify_store(spark, store.datastore)
    store.model("echo", "e").put("note", "hello")
    (tmp_path / "remote" / LIST).unlink()
    source = open_source(f"cached:{tmp_path / 'remote'}", namespace="", repo_dir=str(tmp_path))
    target = open_target(f"file://{tmp_path}/copy", namespace="", index="dual", repo_dir=str(tmp_path))
    with pytest.raises(FormatError, match="nothing that lists it"):
        migrate_store(lambda: round_on_spark(spark), source, target)
    assert not (tmp_path / "copy").exists()
    with pytest.raises(FormatError, match="nothing that lists it"):
        export_store(spark, store.datastore, out)
    found = verify_store(spark, store.datastore)
    assert (found.is_damaged, found.entries, found.kinds["list_unreadable"]) == (True, 3, 1)
