"""The catalog at a size: rebuild, refresh, lookups and pages, beside plain SQLite and a plain walk in one run.

Usage: python bench/catalog.py [MODELS [VERSIONS]]. Generates MODELS names with VERSIONS versions each in a
temporary directory (MIRE_BENCH_DIR), never touches anything else.
"""

import os
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
import uuid
from collections.abc import Callable

import mire
from mire.flow.catalog import fresh, opened, rebuild, refresh
from mire.model.artifact import Metadata, Owner
from mire.model.instant import Instant
from mire.model.lifetime import INFINITE
from mire.model.names import DataName, Uuid, Version
from mire.wire.metadata import encode_metadata


def generate(directory: str, models: int, versions: int) -> None:
    """Files as a store of that size has them."""
    for number in range(models):
        base = f"{directory}/.swamp/data/aws/ec2/t{number % 50}/{uuid.uuid5(uuid.NAMESPACE_URL, str(number))}/state"
        for version in range(1, versions + 1):
            os.makedirs(f"{base}/{version}")
            metadata = Metadata(
                id=Uuid(str(uuid.uuid4())),
                name=DataName("state"),
                version=Version(version),
                content_type="application/json",
                lifetime=INFINITE,
                version_policy=10,
                streaming=False,
                tags={"type": "resource", "modelName": f"m{number}", "env": ("prod", "dev", "test")[number % 3]},
                owner=Owner(owner_type="model-method", owner_ref=f"m{number}"),
                created_at=Instant(f"2026-0{1 + number % 9}-{1 + version % 28:02d}T10:00:00.{number % 1000:03d}Z"),
                size_bytes=2,
            )
            with open(f"{base}/{version}/metadata.yaml", "wb") as file:
                file.write(encode_metadata(metadata))
            with open(f"{base}/{version}/raw", "wb") as file:
                file.write(b"{}")
        with open(f"{base}/latest", "w", encoding="ascii") as file:
            file.write(str(versions))


def percentiles(call: Callable[[], object], count: int) -> str:
    """The median and the 99th percentile of a call, in milliseconds."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1000)
    times.sort()
    return f"p50 {times[len(times) // 2]:.2f} ms, p99 {times[int(len(times) * 0.99)]:.2f} ms"


def main(models: int, versions: int) -> None:
    """Generate, measure, print."""
    directory = tempfile.mkdtemp(prefix="mire-bench-", dir=os.environ.get("MIRE_BENCH_DIR"))
    try:
        generate(directory, models, versions)
        store = mire.open(directory)
        total = models * versions
        for workers in (1, os.cpu_count() or 1):
            start = time.perf_counter()
            rebuild(store.datastore, workers=workers)
            print(f"rebuild, {workers} processes   {total / (time.perf_counter() - start):9.0f} versions/s of {total}")
        start = time.perf_counter()
        walked = sum(len(found) for _, _, found in os.walk(f"{directory}/.swamp/data"))
        print(f"plain walk               {(time.perf_counter() - start) * 1000:9.0f} ms for {walked} files")
        with opened(store.datastore) as catalog:
            start = time.perf_counter()
            refresh(store.datastore, catalog)
            print(f"full look, unchanged     {(time.perf_counter() - start) * 1000:9.0f} ms for {models} names")
        model = store.models("aws/ec2/t1")[0]
        print("latest of a name        ", percentiles(lambda: store.latest(model.type, model.id, "state"), 500))
        page = "modelType == 'aws/ec2/t1' && tags.env == 'prod' && createdAt >= '2026-02'"
        print("page of 100             ", percentiles(lambda: store.query(page, limit=100), 100))
        with fresh(store.datastore) as (catalog, _):
            sql = "SELECT * FROM version WHERE model_type=? AND is_latest=1 LIMIT 100"
            rows = lambda: list(catalog.rows(sql, ("aws/ec2/t1",)))  # noqa: E731 - measured below
            print("plain select of 100     ", percentiles(rows, 100))
        memory = sqlite3.connect(":memory:")
        memory.execute("CREATE TABLE t (a, b, c, d, e, f, g, h)")
        start = time.perf_counter()
        memory.executemany("INSERT INTO t VALUES (?,?,?,?,?,?,?,?)", ((n,) * 8 for n in range(total)))
        print(f"plain SQLite insert      {total / (time.perf_counter() - start):9.0f} rows/s")
        print(f"peak memory              {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:9d} MB")
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    arguments = [int(text) for text in sys.argv[1:]]
    main(*(arguments + [4000, 25][len(arguments) :]))
