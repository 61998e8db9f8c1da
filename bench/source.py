"""Reading all artifacts into Spark: the data source `mire` beside Spark's own `binaryFile` on the same tree.

Usage: python bench/source.py [ARTIFACTS [ROUNDS]], or python bench/source.py growth [ARTIFACTS …] for `mire` alone and
trees that grow. The tree is a remote with a sharded index, made here, ten names in
each model. Both readers make the same columns of `metadata.yaml` with the same decoder, in one session of two cores, in
turns; their rows go to Spark's sink for nothing. `binaryFile` does less: it does not know which version is published.
The second line is with content: there `binaryFile` only hands over all files, and does not even bring metadata and
content of a version together. The tree is in a temporary directory below MIRE_BENCH_DIR.

What stands beside us is what Spark's guide leads to: `recursiveFileLookup` and `pathGlobFilter` find the files, a
function on Arrow batches parses them; nothing is tuned on either side, so `binaryFile` packs files by Spark's own
estimate of what opening one costs. It gets our decoder, so that the ratio is one of readers, not of YAML parsers. Both
read a small tree first, untimed. A further line is with that estimate set for small files, as an expert would, and the
last with PyYAML, which who has no mire would parse with; each of them once.
"""

import hashlib
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import yaml

from mire.flow.scan import key_of
from mire.model.artifact import Metadata, Owner
from mire.model.index import Entry, Meta
from mire.model.instant import Instant
from mire.model.lifetime import INFINITE
from mire.model.names import SOLO, DataName, RelPath, Uuid, Version
from mire.pipeline.frames import ARTIFACTS, batches_of, rows_of, spark_schema
from mire.pipeline.session import open_session
from mire.pipeline.stages.parse import columns_of
from mire.wire.meta import encode_meta
from mire.wire.metadata import decode_metadata, encode_metadata
from mire.wire.partition import partition_of
from mire.wire.shard import encode_shard
from pipeline import peak_mb

NOW = Instant("2026-03-04T05:06:07.089Z")
NAMES = 10
COLUMNS = pa.schema([field for field in ARTIFACTS if field.name not in ("attributes", "content", "_error")])


OWNER = ("ownerType", "ownerRef", "workflowId", "workflowRunId", "workflowName", "jobName", "stepName", "source")
Parser = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def generate(root: str, count: int) -> None:
    """A remote with so many artifacts, each with one version."""
    shards: dict[str, dict[RelPath, Entry]] = {}
    for number in range(count):
        model = uuid.uuid5(uuid.NAMESPACE_URL, str(number // NAMES))
        name = f"state-{number % NAMES}"
        directory = f"data/aws/ec2/kind-{number // NAMES % 50}/{model}/{name}"
        content = b'{"cidr":"10.%d.0.0/16","zones":["a","b"],"n":%d}' % (number % 256, number)
        metadata = Metadata(
            id=Uuid(str(uuid.uuid5(model, name))),
            name=DataName(name),
            version=Version(1),
            content_type="application/json",
            lifetime=INFINITE,
            version_policy=10,
            streaming=False,
            tags={"type": "resource", "specName": name, "modelName": str(model), "team": f"team-{number % 7}"},
            owner=Owner(owner_type="manual", owner_ref=str(model)),
            created_at=NOW,
            size_bytes=len(content),
            checksum=hashlib.sha256(content).hexdigest(),
        )
        os.makedirs(os.path.join(root, directory, "1"))
        for rel, data in (
            (f"{directory}/1/raw", content),
            (f"{directory}/1/metadata.yaml", encode_metadata(metadata)),
            (f"{directory}/latest", b"1"),
        ):
            with open(os.path.join(root, rel), "wb") as file:
                file.write(data)
            digest = hashlib.sha256(data).hexdigest()
            entry = Entry(size_bytes=len(data), last_modified=NOW, local_mtime=NOW, sha256=digest)
            shards.setdefault(partition_of(rel) or "", {})[RelPath(rel)] = entry
    os.mkdir(os.path.join(root, "_index"))
    for shard, entries in shards.items():
        with open(os.path.join(root, "_index", f"{shard}.json"), "wb") as file:
            file.write(encode_shard(entries))
    with open(os.path.join(root, "_index", "_meta.json"), "wb") as file:
        file.write(encode_meta(Meta(version=2, partitions=tuple(shards), commit_seq=1)))


def ours(spark: Any, root: str, **options: str) -> Any:
    """What the data source reads."""
    return spark.read.format("mire").options(attributes="none", **options).load(root)


def parsed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Files of metadata as rows."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for row in rows_of(batches):
            directory = row["path"][row["path"].index("/data/") + 1 :].rsplit("/", 2)[0]
            key = key_of(directory, SOLO)
            assert key is not None  # noqa: S101 - we made it
            yield columns_of(key, decode_metadata(row["content"]), is_latest=True)

    return batches_of(rows(), COLUMNS)


def theirs(spark: Any, root: str, parse: Parser = parsed) -> Any:
    """What `binaryFile` and a parser of metadata read."""
    files = spark.read.format("binaryFile").options(recursiveFileLookup="true", pathGlobFilter="metadata.yaml")
    frame = files.load(os.path.join(root, "data")).select("path", "content")
    return frame.mapInArrow(parse, spark_schema(COLUMNS))


def by_hand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Files of metadata as rows, by PyYAML in its fastest form."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    def rows() -> Iterator[tuple[Any, ...]]:
        for row in rows_of(batches):
            kind, model, name = row["path"].split("/data/", 1)[1].rsplit("/", 4)[:3]
            found = yaml.load(row["content"], loader)  # noqa: S506 - both are safe
            owner, tags = found["ownerDefinition"], found["tags"]
            said = [found.get(key) for key in ("id", "contentType", "lifetime", "garbageCollection", "streaming")]
            size = [found.get(key) for key in ("size", "checksum", "createdAt")]
            who = [owner.get(key) for key in OWNER]
            head = ("", kind, model, name, found["version"], True, said[0], tags["type"], *said[1:3], str(said[3]))
            yield (*head, found.get("lifecycle", "active"), found.get("renamedTo"), said[4], *size, *who, tags)

    return batches_of(rows(), COLUMNS)


def files_of(spark: Any, root: str) -> Any:
    """All files of the tree, as `binaryFile` reads them."""
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(os.path.join(root, "data"))


def timed(make: Callable[[], Any]) -> float:
    """Seconds to read all rows of a table."""
    started = time.perf_counter()
    make().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def show(name: str, ours_s: float, theirs_s: float, count: int) -> None:
    """One line of the table."""
    ratio, rate = theirs_s / ours_s, count / ours_s
    print(f"{name:<18} {ours_s:>6.2f}   {theirs_s:>12.2f}   {ratio:>5.1f}   {rate:>16,.0f}", flush=True)


def main(count: int, rounds: int) -> None:
    """Measure both, in turns, and print the best of each."""
    with (
        tempfile.TemporaryDirectory(prefix="mire-bench-", dir=os.environ.get("MIRE_BENCH_DIR")) as base,
        open_session("local[2]") as spark,
    ):
        for name, artifacts in (("small", 200), ("tree", count)):
            generate(os.path.join(base, name), artifacts)
        small, root = os.path.join(base, "small"), os.path.join(base, "tree")
        for warm in (lambda: ours(spark, small, content="true"), lambda: theirs(spark, small)):
            timed(warm)
        found = ours(spark, root).count(), theirs(spark, root).count()
        if found != (count, count):
            raise SystemExit(f"{found} rows, not {count}")
        print(f"{count} artifacts in {len(os.listdir(os.path.join(root, '_index'))) - 1} shards, best of {rounds}")
        print("columns            mire s   binaryFile s   ratio   mire artifacts/s")
        pairs = (
            ("metadata", lambda: ours(spark, root), lambda: theirs(spark, root)),
            ("and content", lambda: ours(spark, root, content="true"), lambda: files_of(spark, root)),
        )
        best = {}
        for name, mine, other in pairs:
            times = [(timed(mine), timed(other)) for _ in range(rounds)]
            best[name], b = (min(column) for column in zip(*times, strict=True))
            show(name, best[name], b, count)
        spark.conf.set("spark.sql.files.openCostInBytes", str(64 << 10))
        show("metadata, tuned", best["metadata"], timed(lambda: theirs(spark, root)), count)
        spark.conf.unset("spark.sql.files.openCostInBytes")
        show("metadata, PyYAML", best["metadata"], timed(lambda: theirs(spark, root, by_hand)), count)


def growth(counts: list[int]) -> None:
    """Read trees that grow, each once, after a small one."""
    with open_session("local[2]") as spark:
        java = spark.sparkContext._gateway.proc.pid  # noqa: SLF001 - how else to tell
        # Not the memory of this process: it makes the trees.
        print(f"{'artifacts':>10} {'seconds':>8} {'artifacts/s':>12} {'Java MB':>8}")
        for number, count in enumerate([200, *counts]):
            with tempfile.TemporaryDirectory(prefix="mire-bench-", dir=os.environ.get("MIRE_BENCH_DIR")) as base:
                generate(base, count)
                seconds = timed(lambda root=base: ours(spark, root))
                if number > 0:  # told before the tree is removed, which takes longer
                    print(f"{count:>10} {seconds:>8.2f} {count / seconds:>12,.0f} {peak_mb(java):>8.0f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["growth"]:
        growth([int(each) for each in sys.argv[2:]] or [10_000, 100_000, 300_000])
    else:
        arguments = [int(each) for each in sys.argv[1:3]]
        main(*(arguments + [2_000, 3][len(arguments) :]))
