"""The catalog at a size: rebuild, refresh, lookups and pages, beside plain SQLite and plain walks in one run.

Usage: python bench/catalog.py [MODELS [VERSIONS [DIRECTORY]]]. Generates MODELS names with VERSIONS versions each
in a temporary directory below MIRE_BENCH_DIR and removes it, or in DIRECTORY, which stays for the next run.
"""

import itertools
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import mire
from mire.edge.catalog import CatalogFile, open_catalog
from mire.flow.catalog import note, opened, rebuild, refresh
from mire.model.artifact import Metadata, Owner
from mire.model.instant import Instant
from mire.model.lifetime import INFINITE
from mire.model.names import DataName, Uuid, Version
from mire.model.row import COLUMNS
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


def percentiles(calls: Iterable[Callable[[], object]]) -> str:
    """The median and the 99th percentile of some calls, in milliseconds."""
    times = []
    for call in calls:
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1000)
    times.sort()
    return f"p50 {times[len(times) // 2]:8.3f} ms   p99 {times[int(len(times) * 0.99)]:8.3f} ms"


def elapsed_ms(call: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def show(what: str, figure: str) -> None:
    """One line of the result."""
    print(f"{what:<42}{figure}", flush=True)


def measure_rebuild(store: mire.Store, total: int) -> None:
    """Everything read from files, beside the same rows inserted into a plain SQLite file."""
    for workers in sorted({1, os.cpu_count() or 1}):
        taken = elapsed_ms(lambda count=workers: rebuild(store.datastore, workers=count)) / 1000
        show(f"rebuild, {workers} processes", f"{total / taken:9.0f} versions/s")
    memory = [resource.getrusage(who).ru_maxrss // 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    show("peak memory, this process / largest child", f"{memory[0]:5d} / {memory[1]} MB")
    with tempfile.TemporaryDirectory(dir=os.environ.get("MIRE_BENCH_DIR")) as directory:
        plain = open_catalog(f"{directory}/plain.sqlite", COLUMNS)
        with opened(store.datastore) as catalog:
            rows = catalog.rows("SELECT * FROM version")
            spent = 0.0
            while batch := list(itertools.islice(rows, 10_000)):
                start = time.perf_counter()
                with plain.transaction():
                    plain.insert(batch)
                spent += time.perf_counter() - start
        plain.close()
    show("plain insert of the same rows, indexed", f"{total / spent:9.0f} rows/s")


def measure_questions(store: mire.Store, models: int) -> None:
    """Lookups and pages, beside the statement alone on an open connection."""
    chosen = random.Random(1).sample(range(models), min(models, 500))  # noqa: S311 - repeatable, not secret
    keys = [(f"aws/ec2/t{n % 50}", str(uuid.uuid5(uuid.NAMESPACE_URL, str(n)))) for n in chosen]
    show("latest of a name", percentiles(partial(store.latest, kind, id_, "state") for kind, id_ in keys))
    point = "modelType == '{}' && modelId == '{}' && name == 'state'"
    show("point lookup by query", percentiles(partial(rows_of, store, point.format(*key)) for key in keys))
    page = "modelType == '{}' && tags.env == 'prod' && createdAt >= '2026-02'"
    pages = [partial(rows_of, store, page.format(kind), limit=100) for kind, _ in keys]
    show("page of 100 by type, tag and time", percentiles(pages))
    with opened(store.datastore) as catalog:
        by_key = (
            "SELECT * FROM version WHERE namespace='' AND model_type=? AND model_id=? AND name='state' AND is_latest"
        )
        by_page = (
            "SELECT * FROM version WHERE is_latest=1 AND model_type=? AND json_extract(tags,'$.env')='prod'"
            " AND created_at>='2026-02' ORDER BY created_at DESC LIMIT 100"
        )
        show("plain select by key", percentiles(partial(selected, catalog, by_key, key) for key in keys))
        show("plain select of the page", percentiles(partial(selected, catalog, by_page, key[:1]) for key in keys))


def rows_of(store: mire.Store, predicate: str, limit: int | None = None) -> list[Any]:
    """The rows a predicate matches."""
    return store.query(predicate, limit=limit).rows


def selected(catalog: CatalogFile, sql: str, parameters: Sequence[str]) -> list[Any]:
    """The rows of a statement."""
    return list(catalog.rows(sql, parameters))


def measure_refresh(store: mire.Store, directory: str, versions: int) -> None:
    """One changed file, when its name is told and when it must be found, beside walks that only look."""
    model = store.model("aws/ec2/t1", str(uuid.uuid5(uuid.NAMESPACE_URL, "1")))
    path = f"{directory}/.swamp/data/aws/ec2/t1/{model.id}/state/{versions}/metadata.yaml"

    def touch() -> None:
        with open(path, "rb+") as file:
            data = file.read()
            file.seek(0)
            file.write(data)

    def told() -> None:
        note(store.datastore, model.ref, DataName("state"))

    times = []
    for _ in range(50):
        touch()
        times.append(elapsed_ms(told))
    times.sort()
    show("one changed file, its name told", f"p50 {times[25]:8.3f} ms   p99 {times[-1]:8.3f} ms")
    with opened(store.datastore) as catalog:
        show("full look, nothing told", f"{elapsed_ms(lambda: refresh(store.datastore, catalog)):9.0f} ms")
        deep = elapsed_ms(lambda: refresh(store.datastore, catalog, deep=True))
        show("full look at every file", f"{deep:9.0f} ms")
    show("plain walk to the names with stat", f"{elapsed_ms(lambda: walk_to_names(directory)):9.0f} ms")
    show("plain walk of all files with stat", f"{elapsed_ms(lambda: walk_all(directory)):9.0f} ms")


def walk_to_names(directory: str) -> int:
    """What a look at every name cannot do without: list down to the names, and stat them."""
    found = 0
    for top, below, _ in os.walk(f"{directory}/.swamp/data"):
        if "state" in below:
            os.stat(f"{top}/state")
            below.clear()
            found += 1
    return found


def walk_all(directory: str) -> int:
    """List everything and stat every file."""
    return sum(
        len([os.stat(f"{top}/{name}") for name in names]) for top, _, names in os.walk(f"{directory}/.swamp/data")
    )


def main(models: int, versions: int, kept: str | None) -> None:
    """Generate (unless a directory of an earlier run is given), measure, print."""
    directory = kept or tempfile.mkdtemp(prefix="mire-bench-", dir=os.environ.get("MIRE_BENCH_DIR"))
    try:
        if not os.path.isdir(f"{directory}/.swamp/data"):
            generate(directory, models, versions)
        store = mire.open(directory)
        total = models * versions
        show("versions", f"{total:9d} of {models} names")
        measure_rebuild(store, total)
        with opened(store.datastore) as catalog:
            refresh(store.datastore, catalog)
        measure_questions(store, models)
        measure_refresh(store, directory, versions)
    finally:
        if kept is None:
            shutil.rmtree(directory)


if __name__ == "__main__":
    sizes = [int(text) for text in sys.argv[1:3]]
    main(*(sizes + [4000, 25][len(sizes) :]), sys.argv[3] if len(sys.argv) > 3 else None)  # noqa: PLR2004 - the third
