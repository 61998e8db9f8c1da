"""The data source `mire`, read in batches: tables, options, damage, request counts."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.testing import assertDataFrameEqual

import mire
from mire.errors import ConfigError, FormatError, InputError, RemoteError
from mire.pipeline.frames import ARTIFACTS, spark_schema
from mire.pipeline.source.source import MireSource
from pyspark_mire import spark_errors

MODELS = ("vpc-1", "vpc-2")
DEFINITION = "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603"
WORKFLOW = "9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21"


def fill(store: mire.Store) -> None:
    """Two models with three versions each, one of a short type, an output and a run."""
    for model in MODELS:
        data = store.model("aws/ec2/vpc", model)
        with data.hold():
            for number in range(3):
                data.put("state", {"n": number}, tags={"team": "a"})
    store.model("echo", "e").put("note", "hello")
    outputs = store.outputs
    outputs.finish(outputs.start("aws/ec2/vpc", DEFINITION, "create"), "failed", error="no route")
    run = store.runs.start(WORKFLOW, "nightly", tags={"team": "a"})
    jobs = ({"jobName": "j", "status": "failed", "steps": [{"stepName": "s", "status": "failed", "error": "bad"}]},)
    store.runs.finish(replace(run, jobs=jobs), "failed")


def read(spark: Any, **options: Any) -> Any:
    """A table of the source."""
    reader = spark.read.format("mire")
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load()


def keys(frame: Any) -> set[tuple[str, str, int]]:
    """Which versions a table has."""
    return {(row.model_id, row.name, row.version) for row in frame.select("model_id", "name", "version").collect()}


ALL = {(model, "state", number) for model in MODELS for number in (1, 2, 3)} | {("e", "note", 1)}


@pytest.mark.parametrize("index", ["dual", "sharded"])
def test_all_tables_of_both_indexes(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, index: str) -> None:
    """Artifacts, versions, files, runs and outputs are read, whichever form the index has."""
    fill(synced(index=index))
    remote = tmp_path / "remote"
    artifacts = read(spark, path=remote)
    found = {(row.model_id, row.name, row.version): row for row in artifacts.collect()}
    assert found.keys() == ALL
    third = found["vpc-1", "state", 3]
    assert (third.is_latest, third.attributes, third.tags["team"], third.content) == (True, '{"n":2}', "a", None)
    assert (third.model_type, third.owner_type, third._error) == ("aws/ec2/vpc", "manual", None)
    assert [row.content for row in read(spark, path=remote, content="true", models="echo/e").collect()] == [b"hello"]
    versions = read(spark, path=remote, table="versions")
    assertDataFrameEqual(
        versions.select("model_id", "name", "version", "is_latest", "size_bytes", "_error"),
        artifacts.select("model_id", "name", "version", "is_latest", "size_bytes", "_error"),
    )
    files = {row.path: row.size_bytes for row in read(spark, path=remote, table="files").collect()}
    assert files["data/echo/e/note/1/raw"] == 5
    assert len(files) == 7 * 2 + 3 + 2
    (output,) = read(spark, path=remote, table="outputs").collect()
    assert (output.model_type, output.status, output.error) == ("aws/ec2/vpc", "failed", "no route")
    (run,) = read(spark, path=remote, table="runs").collect()
    assert (run.workflow_name, run.status, run.tags["team"]) == ("nightly", "failed", "a")
    assert [(step.job_name, step.step_name, step.error) for step in run.steps] == [("j", "s", "bad")]


def test_narrowed_reads(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """`models`, `latestOnly` and a schema narrow what is read; a repository names its store."""
    store = synced()
    fill(store)
    repo = store.datastore.repo_dir
    assert keys(read(spark, repo=repo)) == ALL
    assert keys(read(spark, repo=repo, models="aws/ec2/vpc/vpc-2", latestOnly="true")) == {("vpc-2", "state", 3)}
    assert keys(read(spark, repo=repo, models="aws/ec2/*, echo/e")) == ALL
    few = spark.read.format("mire").schema("version long, model_id string").load(str(tmp_path / "remote"))
    assert few.columns == ["version", "model_id"]
    assert few.where("model_id = 'vpc-1'").count() == 3


def test_a_plain_directory_is_read(spark: Any, store: mire.Store) -> None:
    """A datastore without an index is walked: what a reader of it sees is what the table has."""
    fill(store)
    store.model("aws/ec2/vpc", "vpc-1").delete("state", 3)
    store.model("aws/ec2/vpc", "vpc-2").delete("state")
    wanted = {("vpc-1", "state", 1), ("vpc-1", "state", 2), ("e", "note", 1)}
    rows = read(spark, repo=store.datastore.repo_dir).collect()
    assert {(row.model_id, row.name, row.version) for row in rows} == wanted
    assert {row.version for row in rows if row.is_latest and row.model_id == "vpc-1"} == {2}
    assert keys(read(spark, repo=store.datastore.repo_dir, table="versions")) == wanted


def test_attributes_as_variant(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """With `attributes=variant` JSON content is a VARIANT, which Spark takes apart by path."""
    fill(synced())
    frame = read(spark, path=tmp_path / "remote", attributes="variant", latestOnly="true")
    found = frame.selectExpr("model_id", "variant_get(attributes, '$.n', 'int') as n")
    wanted = spark.createDataFrame([("vpc-1", 2), ("vpc-2", 2), ("e", None)], "model_id string, n int")
    assertDataFrameEqual(found, wanted)


def test_namespaces_are_read_together(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Several namespaces of a store, or all, are one table, told apart by a column."""
    for name in ("red", "blue"):
        synced(name, namespace=name).model("echo", name).put("note", "hello")
    for asked in (
        {"path": tmp_path / "remote", "namespaces": "red,blue"},
        {"repo": tmp_path / "red", "namespaces": "*"},
    ):
        frame = read(spark, **asked)
        assert {(row.namespace, row.model_id) for row in frame.collect()} == {("red", "red"), ("blue", "blue")}
    files = read(spark, path=tmp_path / "remote", namespace="blue", table="files").collect()
    assert {row.path.rpartition("/")[2] for row in files} == {"raw", "metadata.yaml", "latest", ".catalog-export.json"}


def damaged(remote: Path) -> None:
    """A shard that is no JSON, metadata that is no YAML, and content of which a byte changed."""
    (remote / "_index/data--aws--ec2--vpc--vpc-2.json").write_text("{")
    (remote / "data/aws/ec2/vpc/vpc-1/state/2/metadata.yaml").write_text("version: [")
    (remote / "data/aws/ec2/vpc/vpc-1/state/3/raw").write_text('{"n":7}')


def test_damage_is_a_row(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A damaged shard, metadata file or content is told in `_error`, dropped, or an error, as the mode says."""
    fill(synced())
    remote = tmp_path / "remote"
    damaged(remote)
    told = {row.version: row._error for row in read(spark, path=remote).where("_error is not null").collect()}
    assert set(told) == {None, 2, 3}
    assert "data--aws--ec2--vpc--vpc-2" in told[None]
    assert "metadata" in told[2]
    assert "SHA-256" in told[3]
    assert keys(read(spark, path=remote, mode="dropmalformed")) == {("vpc-1", "state", 1), ("e", "note", 1)}
    with pytest.raises(FormatError, match=r"mode=PERMISSIVE reads the rest"), spark_errors("reading"):
        read(spark, path=remote, mode="FAILFAST").collect()


def test_a_damaged_list_is_an_error(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Without the list of shards nothing is known to be missing, so there are no rows at all, in no mode."""
    fill(synced())
    (tmp_path / "remote/_index/_meta.json").write_text("{")
    with pytest.raises(FormatError, match=r"mire index rebuild"), spark_errors("reading"):
        read(spark, path=tmp_path / "remote").collect()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"path": "/nowhere", "latestonly": "yes"}, ConfigError, "'latestOnly' is 'yes': give true or false"),
        ({"path": "/nowhere", "latest": "1"}, ConfigError, "has no 'latest': did you mean 'latestOnly'"),
        ({"path": "/nowhere", "modles": "a/b"}, ConfigError, "did you mean 'models'"),
        ({"path": "/nowhere", "table": "artefacts"}, ConfigError, "'table' is 'artefacts': give one of artifacts"),
        ({"path": "/nowhere", "repo": "/nowhere"}, ConfigError, "give 'path' .* or 'repo'"),
        ({"path": "/nowhere", "models": "vpc"}, InputError, "'vpc' is not TYPE/ID: write TYPE/"),
        ({"path": "/nowhere", "namespaces": "a b"}, InputError, "'a b' is not a slug"),
        ({"path": "s4://bucket"}, ConfigError, "'s4://' is no kind of datastore"),
        ({"path": "/nowhere", "secretkey": "x"}, ConfigError, "credentials come from"),
        ({"path": "/nowhere"}, RemoteError, "the store '/nowhere' is not there"),
    ],
)
def test_wrong_options_are_told(options: dict[str, str], error: type[Exception], message: str) -> None:
    """A wrong option is an error with its value, what is wanted and the nearest name; so is a missing store."""
    with pytest.raises(error, match=message):
        MireSource(options).reader(MireSource(options).schema()).partitions()


@pytest.mark.parametrize(
    ("use", "options", "message"),
    [
        *(
            ("read", {"table": table, name: value}, f"'{name}' means nothing for the table '{table}', .* leave it out")
            for name, value in (
                ("models", "a/b"),
                ("latestOnly", "true"),
                ("attributes", "variant"),
                ("content", "true"),
            )
            for table in ("files", "runs", "outputs", "versions")
            if (table, name) not in {("versions", "models"), ("versions", "latestOnly")}
        ),
        *(
            ("read", {name: value}, f"'{name}' is for a {use}, not for a read: leave it out")
            for name, value, use in (
                ("stateLocation", "/s", "stream"),
                ("startingFrom", "latest", "stream"),
                ("maxVersionsPerTrigger", "1", "stream"),
                ("maxFilesPerTrigger", "1", "stream"),
                ("owner", "manual:x", "write"),
            )
        ),
        ("read", {"txnAppId": "a", "txnVersion": "1"}, "'txnAppId' is for a write, not for a read"),
        ("stream", {"stateLocation": "/s", "pushdown": "true"}, "'pushdown' is for a read, not for a stream"),
        ("stream", {"stateLocation": "/s", "owner": "manual:x"}, "'owner' is for a write, not for a stream"),
        (
            "stream",
            {"stateLocation": "/s", "maxVersionsPerTrigger": "5", "maxFilesPerTrigger": "7"},
            "are the same: give one of them",
        ),
        ("write", {"table": "runs"}, "'table' is for a read or stream, not for a write"),
        ("write", {"models": "a/b"}, "'models' is for a read or stream, not for a write"),
        ("write", {"mode": "FAILFAST"}, "'mode' is for a read or stream, not for a write"),
        *(
            ("read", {name: text}, f"'{name}' is '{re.escape(text)}', with nothing in it: name some, or leave it out")
            for name in ("models", "namespaces")
            for text in ("", " , ", "[]")
        ),
        ("read", {"namespace": "red,blue"}, "namespace 'red,blue' is not a slug"),
    ],
)
def test_options_that_would_make_no_difference_are_told(use: str, options: dict[str, str], message: str) -> None:
    """An option that means nothing for what is asked is an error, not silence; so is a list with nothing in it."""
    source = MireSource({"path": "/nowhere", **options})
    ask = {
        "read": source.reader,
        "stream": source.streamReader,
        "write": lambda schema: source.writer(schema, overwrite=False),
    }
    with pytest.raises(InputError, match=message):
        ask[use](spark_schema(ARTIFACTS))


def test_errors_of_the_driver_arrive_as_what_they_are(spark: Any) -> None:
    """What is wrong is found before any task runs, and is raised where the table is asked for."""
    with pytest.raises(ConfigError, match="did you mean 'latestOnly'"), spark_errors("reading"):
        read(spark, path="/nowhere", latest="1")
    with pytest.raises(RemoteError, match="the store '/nowhere' is not there") as raised, spark_errors("reading"):
        read(spark, path="/nowhere").collect()
    assert raised.value.kind == "unreachable"


def said(error: BaseException) -> list[str]:
    """The lines that whoever sees only what Spark raises looks for."""
    return [line for line in str(error).splitlines() if line.startswith("mire.errors.")]


def test_what_arrives_without_more_has_our_message_in_one_line(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """Options, columns, the store and a task: in what Spark raises one line is our error, with its message."""
    synced().model("echo", "e").put("note", "hello")
    remote = tmp_path / "remote"
    with pytest.raises(PySparkException) as raised:
        read(spark, path=remote, latest="1")
    (line,) = said(raised.value)
    assert line.startswith("mire.errors.ConfigError: option of format 'mire': format 'mire' has no 'latest': did you")
    rows = spark.createDataFrame(
        [("echo", "e", "..", "x")], "model_type string, model_id string, name string, content string"
    )
    with pytest.raises(PySparkException) as raised:
        rows.write.format("mire").mode("overwrite").save(str(remote))
    assert said(raised.value) == [
        'mire.errors.InputError: versions are never overwritten: write with mode("append"), which adds a version'
    ]
    with pytest.raises(InputError) as ours, spark_errors("writing"):
        rows.write.format("mire").mode("append").save(str(remote))
    assert (ours.value.kind, ours.value.message.startswith("data name '..' would leave")) == ("bad_name", True)
    assert ours.value.__cause__ is not None
    assert said(ours.value.__cause__)[-1] == f"mire.errors.InputError: {ours.value.message}"
    (remote / "data/echo/e/note/1/metadata.yaml").unlink()
    with pytest.raises(FormatError) as told, spark_errors("reading"):
        read(spark, path=remote, mode="FAILFAST").collect()
    assert told.value.kind == "format"


def test_a_column_that_is_none_is_told(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A schema names columns of the table, as they are; anything else is told with the nearest."""
    fill(synced())
    for schema, message in (("modelid string", "did you mean 'model_id'"), ("version string", "is bigint, not string")):
        with pytest.raises(InputError, match=message), spark_errors("reading"):
            spark.read.format("mire").schema(schema).load(str(tmp_path / "remote")).collect()
